//! A network as an SVG drawing for browsers.

mod canvas;
mod ways;

use crate::layout::{self, Area, Layout, Line};
use crate::signs;
use aerostat_lab::picture::{Cable, Kind, MOST_SHOWN, Machine, Picture, Shortcut, Thread};
use aerostat_wire::cell::CELL_BITS;
use aerostat_wire::counted;
use canvas::Canvas;
use std::collections::BTreeSet;
use std::fmt;
use ways::Ways;

/// Height of a line of text in a box.
const TEXT_LINE: f64 = 15.0;
/// Width of a character in a box, at 12 pixels.
const CHARACTER: f64 = 7.4;
/// Room around the text of a box, and around the whole drawing.
const MARGIN: f64 = 8.0;
/// Width of the coloured mark in front of an address.
const MARK: f64 = 14.0;

/// Limit of links in a drawing. Each link looks for a place for its label.
const MOST_LINKS: usize = 2 * MOST_SHOWN;

/// A network with more links than a drawing has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyLinks(pub usize);

impl fmt::Display for TooManyLinks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a drawing has at most {MOST_LINKS} links, and these are {}",
            self.0
        )
    }
}
impl std::error::Error for TooManyLinks {}

/// The drawing of a network, or of its drawn part, as SVG.
///
/// # Errors
/// If there are too many links for a drawing.
pub fn draw(picture: &Picture) -> Result<String, TooManyLinks> {
    if picture.cables.len() > MOST_LINKS {
        return Err(TooManyLinks(picture.cables.len()));
    }
    let (lines, kinds) = lines(picture);
    let layout = layout_of(picture, &lines);
    let ways = Ways::new(picture, &layout);
    let mut canvas = Canvas::default();
    links(picture, &ways, &mut canvas);
    let segments = layout.paths.iter().zip(&kinds).skip(picture.cables.len());
    for (path, kind) in segments {
        canvas.path(path, kind, "Ethernet");
    }
    let mut taken = layout.boxes.clone();
    let labels = link_labels(picture, &lines, &ways, &mut taken);
    let plates = threads(picture, &ways, &mut taken, &mut canvas);
    let marks = connections(picture, &layout, &mut taken, &mut canvas);
    for (machine, area) in picture.machines.iter().zip(&layout.boxes) {
        canvas.machine(picture, machine, area);
    }
    for (label, area) in labels.iter().chain(&marks) {
        canvas.label(label, area);
    }
    for (label, area) in &plates {
        canvas.plate(label, area);
    }
    for area in &taken {
        canvas.reach(area);
    }
    canvas.legend(picture);
    Ok(canvas.finish(&picture.lab))
}

/// The drawing as an element of an HTML page: its style concerns nothing else there. `None` if it would be too large.
#[must_use]
pub fn inline(picture: &Picture) -> Option<String> {
    let drawing = draw(picture).ok()?;
    let style = canvas::style();
    let rules = style.lines().map(|rule| format!(".graph {rule}\n"));
    let rules: String = rules.collect();
    let drawing = drawing.replacen(&style, &rules, 1);
    Some(drawing.replacen("<svg ", "<svg class=\"graph\" ", 1))
}

/// The layout of a network that is not too large, and its lines.
pub(crate) fn place(picture: &Picture) -> (Layout, Vec<Line>) {
    let (lines, _) = lines(picture);
    (layout_of(picture, &lines), lines)
}

fn layout_of(picture: &Picture, lines: &[Line]) -> Layout {
    let sizes: Vec<_> = picture.machines.iter().map(|m| size(picture, m)).collect();
    layout::place(picture, &sizes, lines)
}

/// Links, and Ethernet segments, each with its style.
fn lines(picture: &Picture) -> (Vec<Line>, Vec<&'static str>) {
    let cables = picture.cables.iter().map(|cable| {
        let cut = if cable.down { " (cut)" } else { "" };
        let label = format!("{}\n{}{cut}", cable.name, cable.what);
        let ends = cable.ends;
        let style = if cable.down { "cut" } else { "link" };
        (Line { ends, label }, style)
    });
    let stations = picture.machines.iter().enumerate();
    let stations = stations.filter_map(|(number, machine)| {
        let ends = [machine.behind?, number];
        let label = String::new();
        Some((Line { ends, label }, "ethernet"))
    });
    cables.chain(stations).unzip()
}

/// The text under the name of a machine; no text for a host, the most frequent kind.
fn under(machine: &Machine) -> Option<String> {
    let kind = match machine.kind {
        Kind::Host => None,
        kind => Some(kind.name()),
    };
    let hosts =
        (machine.hosts > 0).then(|| format!("+{}", counted(machine.hosts, "host", "hosts")));
    let words = [
        kind.map(str::to_owned),
        hosts,
        machine.down.then(|| "down".to_owned()),
    ];
    let words: Vec<String> = words.into_iter().flatten().collect();
    (!words.is_empty()).then(|| words.join(", "))
}

fn size(picture: &Picture, machine: &Machine) -> (f64, f64) {
    let addresses = picture.addresses(machine);
    let longest = addresses.iter().map(|text| text.chars().count()).max();
    let width = longest.map_or(0.0, |longest| longest as f64 * CHARACTER + MARK);
    let name = machine.name.chars().count() as f64 * (CHARACTER + 1.0);
    let kind = under(machine).map_or(0, |text| text.chars().count()) as f64 * 6.0;
    let lines = 1 + usize::from(kind > 0.0) + addresses.len();
    (
        width.max(name).max(kind) + 2.0 * MARGIN,
        lines as f64 * TEXT_LINE + 1.5 * MARGIN,
    )
}

/// Width of what a full link carries, pixels; its conduit is a little wider.
const CONDUIT: f64 = 9.0;

/// Draws links, and what they carry.
fn links(picture: &Picture, ways: &Ways<'_>, canvas: &mut Canvas) {
    let cables = || picture.cables.iter().enumerate();
    for (number, _) in cables() {
        canvas.line(&ways::path(ways.link(number)), "conduit", 13.0, "");
    }
    for (number, cable) in cables() {
        let carried = cable.carried.unwrap_or_default();
        let shares = carried.iter().zip(cable.rates);
        let shares = shares.map(|(carried, rate)| carried / rate.max(1.0));
        let share = shares.fold(0.0, f64::max).min(1.0);
        if share > 0.0 {
            let width = 0.5 + share * (CONDUIT - 0.5);
            canvas.line(&ways::path(ways.link(number)), "carry", width, "");
        }
    }
    for (number, cable) in cables() {
        let style = if cable.down { "cut" } else { "link" };
        let title = format!("{}: {}", cable.name, cable.what);
        canvas.path(&ways::path(ways.link(number)), style, &title);
        if cable.down {
            let (x, y, _) = ways::along(ways.link(number), 0.5);
            canvas.cross((x, y));
        }
    }
}

/// The labels of links with their places beside them: the name, and what the link is or carries.
fn link_labels(
    picture: &Picture,
    lines: &[Line],
    ways: &Ways<'_>,
    taken: &mut Vec<Area>,
) -> Vec<(String, Area)> {
    let labelled = ways.layout.labels.iter();
    let labelled: BTreeSet<usize> = labelled.map(|(number, _)| *number).collect();
    let cables = picture.cables.iter().zip(lines).enumerate();
    let cables = cables.filter(|(number, _)| labelled.contains(number));
    let labels = cables.map(|(number, (cable, line))| {
        let [a, b] = cable.ends.map(|end| &*picture.machines[end].name);
        let name = &cable.name;
        // A name that only repeats the ends leaves room for what happens.
        let named = *name != format!("{a}-{b}") && *name != format!("{b}-{a}");
        let what = match cable.down && picture.running {
            true => Some("cut".to_owned()),
            false => carried(cable, ways.layout),
        };
        let label = match what {
            None if named || !picture.running => line.label.clone(),
            None => cable.what.clone(),
            Some(rates) if named => format!("{name}\n{rates}"),
            Some(rates) => rates,
        };
        let area = ways.beside(&[number], layout::label_size(&label), 8.0, taken);
        taken.push(area);
        (label, area)
    });
    labels.collect()
}

/// The load of a link in words: both directions in Mbit/s of cells, that to the right or downwards first.
fn carried(cable: &Cable, layout: &Layout) -> Option<String> {
    let [there, back] = cable.carried?.map(|cells| cells * CELL_BITS as f64 / 1e6);
    let mega = |rate: f64| match rate {
        ..0.05 => "0".to_owned(),
        ..9.95 => format!("{rate:.1}"),
        _ => format!("{rate:.0}"),
    };
    let [a, b] = cable.ends.map(|end| layout.boxes[end]);
    let arrows = match (b.x - a.x).abs() >= (b.y - a.y).abs() {
        true if b.x >= a.x => ["→", "←"],
        true => ["←", "→"],
        false if b.y >= a.y => ["↓", "↑"],
        false => ["↑", "↓"],
    };
    let mut told = [(arrows[0], there), (arrows[1], back)]
        .map(|(arrow, rate)| format!("{arrow} {}", mega(rate)));
    if matches!(arrows[0], "←" | "↑") {
        told.reverse();
    }
    Some(format!("{} Mbit/s", told.join("  ")))
}

/// Draws calls with data as threads beside the links that they take, and shortcuts above them. Returns the labels of
/// the shortcuts with their places.
fn threads(
    picture: &Picture,
    ways: &Ways<'_>,
    taken: &mut Vec<Area>,
    canvas: &mut Canvas,
) -> Vec<(String, Area)> {
    let mut carried: Vec<Vec<&Shortcut>> = vec![Vec::new(); picture.threads.len()];
    for shortcut in &picture.shortcuts {
        if let Some(of) = shortcut.thread.and_then(|thread| carried.get_mut(thread)) {
            of.push(shortcut);
        }
    }
    let names = carried.iter().map(|shortcuts| words(picture, shortcuts));
    let shown = picture.threads.iter().zip(names);
    let shown = shown.filter(|(thread, name)| thread.data || name.is_some());
    let (shown, names): (Vec<&Thread>, Vec<Option<String>>) = shown.unzip();
    let lanes = ways.lanes(&shown);
    let rates = picture.cables.iter().flat_map(|cable| cable.rates);
    let fastest = rates.fold(1.0, f64::max);
    let mut above = Vec::new();
    for ((thread, lane), name) in shown.into_iter().zip(lanes).zip(names) {
        let path = ways.thread(thread, lane);
        let wide = 5.0 * (thread.rate / fastest).clamp(0.0, 1.0).sqrt();
        if let Some(name) = name {
            above.push((path, 3.5 + wide, thread, name));
            continue;
        }
        let colour = thread.network.map_or(signs::shade("muted"), signs::line);
        let dashes = match thread.pending {
            true => " stroke-dasharray=\"3 4\"",
            false => "",
        };
        // What carries nothing steps back, as in the page.
        let idle = picture.sampled.is_some() && thread.rate == 0.0;
        let pale = if idle { "; stroke-opacity: 0.3" } else { "" };
        let more = format!(" style=\"stroke: {colour}{pale}\"{dashes}");
        canvas.line(&path, "calls", 1.2 + wide, &more);
    }
    let mut plates = Vec::new();
    for (path, width, thread, label) in above {
        canvas.line(&path, "casing", width + 4.0, "");
        canvas.line(&path, "shortcut", width, "");
        let area = ways.room(thread, &label, taken);
        taken.push(area);
        plates.push((label, area));
    }
    plates
}

/// The words for the shortcuts on one connection, as in the page: its ends, and the number of destinations that are not
/// at them. `None` without shortcuts.
fn words(picture: &Picture, shortcuts: &[&Shortcut]) -> Option<String> {
    let [from, to] = shortcuts.first()?.ends;
    let name = |number: usize| picture.machines.get(number).map_or("?", |of| &*of.name);
    let both = shortcuts.iter().any(|one| one.ends == [to, from]);
    let arrow = if both { "⇄" } else { "→" };
    let ends = format!("shortcut {} {arrow} {}", name(from), name(to));
    let places: BTreeSet<&str> = shortcuts.iter().map(|one| &*one.to).collect();
    let own = if both { 2 } else { 1 };
    Some(match places.len() {
        more if more > own => format!("{ends}, {more} destinations"),
        _ => ends,
    })
}

/// Draws permanent connections as curves beside the links. Labels go where there is room for them.
fn connections(
    picture: &Picture,
    layout: &Layout,
    taken: &mut Vec<Area>,
    canvas: &mut Canvas,
) -> Vec<(String, Area)> {
    let (mut labels, mut used) = (Vec::new(), BTreeSet::new());
    let mut draw = |ends: [usize; 2], style, bow: f64, title: &str, label: String| {
        let curve = Curve::clear(layout, ends, bow, &mut used);
        canvas.path(&curve.path(), style, title);
        curve.reached(canvas);
        let area = curve.room(&label, taken);
        taken.push(area);
        labels.push((label, area));
    };
    for (number, (pvc, label)) in picture.pvcs.iter().zip(picture.pvc_labels()).enumerate() {
        let bow = 0.2 + (number % 4) as f64 * 0.06;
        draw(pvc.ends, "pvc", bow, &pvc.qos, label);
    }
    labels
}

/// Curves that have been drawn: the numbers of the machines, and that of the curve.
type Used = BTreeSet<([usize; 2], i64)>;

/// A quadratic curve.
struct Curve {
    points: [(f64, f64); 3],
}

impl Curve {
    /// A curve from the middle of one box to that of another; `bow` is the height of its bend relative to the distance.
    fn between(a: &Area, b: &Area, bow: f64) -> Self {
        let (dx, dy) = (b.x - a.x, b.y - a.y);
        let middle = ((a.x + b.x) / 2.0 + dy * bow, (a.y + b.y) / 2.0 - dx * bow);
        Self {
            points: [(a.x, a.y), middle, (b.x, b.y)],
        }
    }

    /// A curve along one side of two boxes that stand above each other, `away` pixels beyond the outer one: on the
    /// right, or on the left if `away` is negative.
    fn beside(a: &Area, b: &Area, away: f64) -> Self {
        let side = |area: &Area| area.x + area.width / 2.0 * away.signum();
        let outer = match away > 0.0 {
            true => side(a).max(side(b)),
            false => side(a).min(side(b)),
        };
        Self {
            points: [
                (side(a), a.y),
                (outer + away, f64::midpoint(a.y, b.y)),
                (side(b), b.y),
            ],
        }
    }

    /// Curves between two boxes, each with a number of its own. Bends near `bow` come first, to both sides.
    fn all(a: &Area, b: &Area, bow: f64) -> impl Iterator<Item = (i64, Self)> {
        const BENDS: [f64; 8] = [0.1, 0.15, 0.3, 0.4, 0.5, 0.65, 0.8, 0.05];
        const AWAY: [f64; 5] = [0.3, 0.5, 0.7, 0.9, 1.2];
        let (a, b) = (*a, *b);
        let number = |side: f64| (side * 1000.0) as i64;
        let bends = std::iter::once(bow).chain(BENDS);
        let bends = bends.flat_map(|bend| [bend, -bend]);
        let bends = bends.map(move |bend| (number(bend), Self::between(&a, &b, bend)));
        let distance = 30.0 + (a.y - b.y).abs();
        let sides = AWAY.into_iter().flat_map(|away| [away, -away]);
        let sides = sides.map(move |away| {
            let curve = Self::beside(&a, &b, away * distance);
            (number(away + 10.0 * away.signum()), curve)
        });
        bends.chain(sides)
    }

    /// A curve between two machines that passes behind no box of another one, and that no earlier curve (`used`) has
    /// taken. If there is no such curve, the one behind the fewest boxes is taken.
    fn clear(layout: &Layout, ends: [usize; 2], bow: f64, used: &mut Used) -> Self {
        let [a, b] = ends.map(|end| layout.boxes[end]);
        let others = layout.boxes.iter().enumerate();
        let others = others.filter(|(number, _)| !ends.contains(number));
        let others: Vec<&Area> = others.map(|(_, area)| area).collect();
        let mut best: Option<(usize, i64, Self)> = None;
        for (number, curve) in Self::all(&a, &b, bow) {
            if used.contains(&(ends, number)) {
                continue;
            }
            let behind = others.iter().filter(|area| curve.meets(area)).count();
            if best.as_ref().is_none_or(|(fewest, ..)| behind < *fewest) {
                best = Some((behind, number, curve));
            }
            if behind == 0 {
                break;
            }
        }
        let Some((_, number, curve)) = best else {
            return Self::between(&a, &b, bow);
        };
        // The same curve in the other direction bends to the other side; beside both it is the same.
        let [from, to] = ends;
        let back = if number.abs() < 10_000 {
            -number
        } else {
            number
        };
        used.extend([([from, to], number), ([to, from], back)]);
        curve
    }

    /// True if the curve passes through the area, or close by.
    fn meets(&self, area: &Area) -> bool {
        const STEPS: i32 = 64;
        /// Room beside a box, pixels.
        const GAP: f64 = 3.0;
        let point = |(x, y): (f64, f64)| Area {
            x,
            y,
            width: 0.0,
            height: 0.0,
        };
        // The curve lies inside the triangle of its three points.
        let [(ax, ay), (mx, my), (bx, by)] = self.points;
        let hull = |a: f64, m: f64, b: f64| (a.min(m).min(b), a.max(m).max(b));
        let ((left, right), (top, bottom)) = (hull(ax, mx, bx), hull(ay, my, by));
        let around = Area {
            x: (left + right) / 2.0,
            y: (top + bottom) / 2.0,
            width: right - left,
            height: bottom - top,
        };
        let mut steps = 0..=STEPS;
        area.meets(&around, GAP)
            && steps.any(|step| {
                let at = self.at(f64::from(step) / f64::from(STEPS));
                area.meets(&point(at), GAP)
            })
    }

    /// Makes the drawing large enough.
    fn reached(&self, canvas: &mut Canvas) {
        for step in 0..=16 {
            let (x, y) = self.at(f64::from(step) / 16.0);
            let (width, height) = (4.0, 4.0);
            canvas.reach(&Area {
                x,
                y,
                width,
                height,
            });
        }
    }

    fn path(&self) -> String {
        let [(ax, ay), (mx, my), (bx, by)] = self.points;
        format!("M {ax:.1} {ay:.1} Q {mx:.1} {my:.1}, {bx:.1} {by:.1}")
    }

    fn at(&self, t: f64) -> (f64, f64) {
        let [a, m, b] = self.points;
        let mix = |a: f64, m: f64, b: f64| {
            (1.0 - t) * (1.0 - t) * a + 2.0 * t * (1.0 - t) * m + t * t * b
        };
        (mix(a.0, m.0, b.0), mix(a.1, m.1, b.1))
    }

    /// The place on the curve, or beside it, that is nearest to its middle and free.
    fn room(&self, label: &str, taken: &[Area]) -> Area {
        let (width, height) = layout::label_size(label);
        let place = |t: f64, aside: f64| {
            let (x, y) = self.at(t);
            let y = y + aside;
            Area {
                x,
                y,
                width,
                height,
            }
        };
        let along = (0..18).map(|step| {
            let offset = f64::from(step / 2) * 0.05;
            if step % 2 == 0 {
                0.5 + offset
            } else {
                0.5 - offset
            }
        });
        let along: Vec<f64> = along.collect();
        let asides = (0..40).map(|step| {
            let offset = f64::from((step + 1) / 2) * 14.0;
            if step % 2 == 0 { offset } else { -offset }
        });
        let mut places = asides.flat_map(|aside| along.iter().map(move |t| (*t, aside)));
        let free = places.find(|(t, aside)| {
            let area = place(*t, *aside);
            !taken.iter().any(|other| other.meets(&area, 2.0))
        });
        let (t, aside) = free.unwrap_or((0.5, 0.0));
        place(t, aside)
    }
}

#[cfg(test)]
mod tests;
