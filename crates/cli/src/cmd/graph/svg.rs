//! A network as an SVG drawing for browsers.

use super::layout::{self, Area, LABEL_LINE, Layout, Line};
use super::{colours, text};
use crate::exit::Failure;
use crate::plot::escaped;
use aerostat_lab::picture::{Kind, Machine, Picture};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Height of a line of text in a box.
const TEXT_LINE: f64 = 15.0;
/// Width of a character in a box, at 12 pixels.
const CHARACTER: f64 = 7.4;
/// Room around the text of a box, and around the whole drawing.
const MARGIN: f64 = 8.0;
/// Width of the coloured mark in front of an address.
const MARK: f64 = 14.0;

const STYLE: &str = "\
text { font-family: 'DejaVu Sans', Verdana, Arial, sans-serif; font-size: 12px; fill: #000 }
.name { font-weight: bold; text-anchor: middle }
.kind { font-size: 10px; text-anchor: middle; fill: #444 }
.label { font-size: 10px; text-anchor: middle; fill: #222 }
.link { fill: none; stroke: #444; stroke-width: 1.5px }
.ethernet { fill: none; stroke: #888; stroke-width: 4px }
.cut { fill: none; stroke: #A00000; stroke-width: 1.5px; stroke-dasharray: 2 6 }
.pvc { fill: none; stroke: #000; stroke-width: 1.5px; stroke-dasharray: 8 4 }
.calls { fill: none; stroke: #777; stroke-width: 1px; stroke-dasharray: 1 3 }
.shortcut { fill: none; stroke: #000; stroke-width: 3px }
";

/// The drawing as SVG.
///
/// # Errors
/// If there are too many machines and links for a readable drawing.
pub(super) fn draw(picture: &Picture) -> Result<String, Failure> {
    let things = picture.machines.len() + picture.cables.len();
    if things > layout::MOST {
        let most = layout::MOST;
        let text =
            format!("a drawing has at most {most} machines and links, and these are {things}");
        return Err(Failure::failed(text).hint("-o dot and Graphviz' sfdp draw large networks"));
    }
    let (lines, kinds) = lines(picture);
    let layout = layout_of(picture, &lines);
    let mut canvas = Canvas::default();
    for (number, path) in layout.paths.iter().enumerate() {
        canvas.path(
            path,
            kinds[number],
            &lines[number].label.replace('\n', ": "),
        );
    }
    let mut taken = layout.boxes.clone();
    taken.extend(layout.labels.iter().map(|(_, area)| *area));
    let marks = connections(picture, &layout, &mut taken, &mut canvas);
    for (machine, area) in picture.machines.iter().zip(&layout.boxes) {
        canvas.machine(picture, machine, area);
    }
    for (number, area) in &layout.labels {
        canvas.label(&lines[*number].label, area);
    }
    for (label, area) in &marks {
        canvas.label(label, area);
    }
    for area in &taken {
        canvas.reach(area);
    }
    canvas.legend(picture);
    Ok(canvas.finish(&picture.lab))
}

/// The drawing as an element of an HTML page: its style concerns nothing else there. `None` if it would be too large.
pub(super) fn inline(picture: &Picture) -> Option<String> {
    let drawing = draw(picture).ok()?;
    let rules = STYLE.lines().map(|rule| format!(".graph {rule}\n"));
    let rules: String = rules.collect();
    let drawing = drawing.replacen(STYLE, &rules, 1);
    Some(drawing.replacen("<svg ", "<svg class=\"graph\" ", 1))
}

/// The layout of a network that is not too large, and its lines.
pub(super) fn place(picture: &Picture) -> (Layout, Vec<Line>) {
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
    match (kind, machine.down) {
        (Some(kind), true) => Some(format!("{kind}, down")),
        (None, true) => Some("down".to_owned()),
        (kind, false) => kind.map(str::to_owned),
    }
}

pub(super) fn size(picture: &Picture, machine: &Machine) -> (f64, f64) {
    let addresses = text::addresses(picture, machine);
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

/// Draws connections as curves beside the links. Labels go where there is room for them.
fn connections(
    picture: &Picture,
    layout: &Layout,
    taken: &mut Vec<Area>,
    canvas: &mut Canvas,
) -> Vec<(String, Area)> {
    let (mut labels, mut used) = (Vec::new(), BTreeSet::new());
    let mut draw = |ends: [usize; 2], style, bow: f64, title: &str, label: Option<String>| {
        let curve = Curve::clear(layout, ends, bow, &mut used);
        canvas.path(&curve.path(), style, title);
        curve.reached(canvas);
        if let Some(label) = label {
            let area = curve.room(&label, taken);
            taken.push(area);
            labels.push((label, area));
        }
    };
    for calls in &picture.calls {
        let title = format!("{} {}", calls.count, calls.what);
        draw(calls.ends, "calls", 0.1, &title, None);
    }
    for (number, (pvc, label)) in picture.pvcs.iter().zip(picture.pvc_labels()).enumerate() {
        let bow = 0.2 + (number % 4) as f64 * 0.06;
        draw(pvc.ends, "pvc", bow, &pvc.qos, Some(label));
    }
    let shortcuts = picture.shortcuts.iter().zip(picture.shortcut_labels());
    for (number, (shortcut, label)) in shortcuts.enumerate() {
        let bow = 0.25 + (number % 4) as f64 * 0.08;
        let title = format!("on {}", shortcut.vc);
        draw(shortcut.ends, "shortcut", bow, &title, Some(label));
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

    /// A curve along one side of two boxes that stand above each other, `away` pixels beyond the outer one: on the right,
    /// or on the left if `away` is negative.
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

/// The drawing so far.
#[derive(Default)]
struct Canvas {
    body: String,
    /// Left, top, right and lower edge.
    edges: Option<[f64; 4]>,
}

impl Canvas {
    fn reach(&mut self, area: &Area) {
        let (w, h) = (area.width / 2.0, area.height / 2.0);
        let new = [area.x - w, area.y - h, area.x + w, area.y + h];
        let old = self.edges.unwrap_or(new);
        self.edges = Some([
            old[0].min(new[0]),
            old[1].min(new[1]),
            old[2].max(new[2]),
            old[3].max(new[3]),
        ]);
    }

    fn path(&mut self, path: &str, style: &str, title: &str) {
        let title = escaped(title);
        let _ = writeln!(
            self.body,
            "<path class=\"{style}\" d=\"{path}\"><title>{title}</title></path>"
        );
    }

    fn text(&mut self, style: &str, (x, y): (f64, f64), text: &str) {
        let text = escaped(text);
        let class = match style {
            "" => String::new(),
            style => format!(" class=\"{style}\""),
        };
        let _ = writeln!(
            self.body,
            "<text{class} x=\"{x:.1}\" y=\"{y:.1}\">{text}</text>"
        );
    }

    fn label(&mut self, label: &str, area: &Area) {
        let (left, top) = (area.x - area.width / 2.0, area.y - area.height / 2.0);
        let (width, height) = (area.width, area.height);
        // The label stays legible even if a line passes behind it.
        let _ = writeln!(
            self.body,
            "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"#fff\"/>"
        );
        let mut y = top + LABEL_LINE - 3.0;
        for line in label.lines() {
            self.text("label", (area.x, y), line);
            y += LABEL_LINE;
        }
    }

    fn mark(&mut self, (x, y): (f64, f64), network: usize) {
        let fill = colours::of(network);
        let _ = writeln!(
            self.body,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"10\" height=\"10\" fill=\"{fill}\" stroke=\"#000\" stroke-width=\"0.5\"/>"
        );
    }

    fn machine(&mut self, picture: &Picture, machine: &Machine, area: &Area) {
        let (left, top) = (area.x - area.width / 2.0, area.y - area.height / 2.0);
        let round = match machine.kind {
            Kind::Switch | Kind::Host => 2,
            Kind::Router | Kind::LaneServer | Kind::Outside => 12,
            Kind::Station => 20,
        };
        let fill = match machine.kind {
            Kind::Host | Kind::Station => "#FFFFFF",
            _ => colours::NEUTRAL,
        };
        let edge = match machine.addresses[..] {
            _ if machine.down => colours::DOWN,
            [(_, network)] => colours::of(network),
            _ => "#000000",
        };
        let dashes = match machine.kind {
            Kind::Outside => " stroke-dasharray=\"6 3\"",
            _ => "",
        };
        let _ = writeln!(
            self.body,
            "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"{round}\" fill=\"{fill}\" stroke=\"{edge}\" stroke-width=\"2\"{dashes}/>",
            area.width, area.height,
        );
        let mut y = top + TEXT_LINE;
        self.text("name", (area.x, y), &machine.name);
        if let Some(under) = under(machine) {
            y += TEXT_LINE;
            self.text("kind", (area.x, y - 2.0), &under);
        }
        let addresses = text::addresses(picture, machine);
        for ((_, network), address) in machine.addresses.iter().zip(addresses) {
            y += TEXT_LINE;
            self.mark((left + MARGIN, y - 9.0), *network);
            self.text("", (left + MARGIN + MARK, y), &address);
        }
    }

    /// The networks with their colours, below the drawing.
    fn legend(&mut self, picture: &Picture) {
        let [left, _, right, mut bottom] = self.edges.unwrap_or_default();
        bottom += 3.0 * MARGIN;
        let mut x = left;
        for (number, network) in picture.networks.iter().enumerate() {
            let kind = if network.clip { "LIS" } else { "ELAN" };
            let label = format!("{kind} {} {}", network.name, network.subnet);
            let width = label.chars().count() as f64 * CHARACTER + MARK + 2.0 * MARGIN;
            if x > left && x + width > right.max(left + 400.0) {
                x = left;
                bottom += TEXT_LINE;
            }
            self.mark((x, bottom), number);
            self.text("", (x + MARK, bottom + 9.0), &label);
            self.reach(&Area {
                x: x + width / 2.0,
                y: bottom + TEXT_LINE / 2.0,
                width,
                height: TEXT_LINE,
            });
            x += width;
        }
    }

    fn finish(self, name: &str) -> String {
        let [left, top, right, bottom] = self.edges.unwrap_or_default();
        let (x, y) = (left - MARGIN, top - MARGIN);
        let (width, height) = (right - left + 2.0 * MARGIN, bottom - top + 2.0 * MARGIN);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
             viewBox=\"{x:.1} {y:.1} {width:.1} {height:.1}\">\n<title>{}</title>\n<style>\n{STYLE}</style>\n\
             <rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"#fff\"/>\n{}</svg>\n",
            escaped(name),
            self.body
        )
    }
}

#[cfg(test)]
mod tests;
