//! Elements of the drawing: machines, links, labels, the legend.

use super::{CHARACTER, MARGIN, MARK, TEXT_LINE, under};
use crate::escaped;
use crate::layout::{Area, LABEL_LINE};
use crate::signs;
use aerostat_lab::picture::{Joined, Kind, Machine, Picture};
use std::fmt::Write as _;

/// Shades are in the place of variables, as in the style sheet of the recorded page.
pub(super) const STYLE: &str = "\
text { font-family: 'DejaVu Sans', Verdana, Arial, sans-serif; font-size: 12px; fill: var(--ink) }
.name { font-weight: bold; text-anchor: middle }
.kind { font-size: 10px; text-anchor: middle; fill: var(--muted) }
.label { font-size: 10px; text-anchor: middle; fill: var(--muted); stroke: var(--ground); stroke-width: 3px; paint-order: stroke }
.conduit { fill: none; stroke: var(--conduit); stroke-width: 13px }
.carry { fill: none; stroke: var(--carry) }
.link { fill: none; stroke: var(--fibre); stroke-width: 1px }
.ethernet { fill: none; stroke: var(--fibre); stroke-width: 3px }
.cut { fill: none; stroke: var(--fault); stroke-width: 2px; stroke-dasharray: 2 5 }
.cross { stroke: var(--fault); stroke-width: 2.5px; stroke-linecap: round }
.pvc { fill: none; stroke: var(--ink); stroke-width: 1.5px; stroke-dasharray: 8 4 }
.calls { fill: none; stroke: var(--muted); stroke-linejoin: round }
.casing { fill: none; stroke: var(--ground); stroke-linejoin: round }
.shortcut { fill: none; stroke: var(--shortcut); stroke-linejoin: round }
.plate { fill: var(--shortcut) }
.on { font-size: 11px; font-weight: bold; text-anchor: middle; fill: var(--ground) }
.machine { fill: var(--box); stroke: var(--outline); stroke-width: 1.5px }
.machine.switch { fill: var(--box-switch) }
.machine.outside { stroke-dasharray: 6 3 }
.machine.down { fill: var(--fault-soft); stroke: var(--fault); stroke-dasharray: 4 3 }
.inner { fill: none; stroke: var(--outline); stroke-width: 0.75px }
.glyph { fill: none; stroke: var(--muted); stroke-width: 1.2px; stroke-linecap: round; stroke-linejoin: round }
.sign { stroke: var(--outline); stroke-width: 0.75px }
.empty { fill: none; stroke: var(--muted); stroke-width: 1px; stroke-dasharray: 2 1.5 }
.texture { fill: none; stroke: #000; stroke-opacity: 0.75; stroke-width: 1.1px; stroke-linecap: round }
";

/// The style with the shades on light ground.
pub(super) fn style() -> String {
    let mut parts = STYLE.split("var(--");
    let mut style = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = part.split_once(')').unwrap_or((part, ""));
        style.push_str(signs::shade(name));
        style.push_str(rest);
    }
    style
}

/// The drawing so far.
#[derive(Default)]
pub(super) struct Canvas {
    body: String,
    /// Left, top, right and lower edge.
    edges: Option<[f64; 4]>,
}

/// An entry of the legend.
enum Entry {
    Machine(Kind),
    Network(usize),
    /// A line with this class and width.
    Line(&'static str, f64),
    Words,
}

impl Canvas {
    pub(super) fn reach(&mut self, area: &Area) {
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

    /// A line of a class with a title.
    pub(super) fn path(&mut self, path: &str, style: &str, title: &str) {
        let title = escaped(title);
        let _ = writeln!(
            self.body,
            "<path class=\"{style}\" d=\"{path}\"><title>{title}</title></path>"
        );
    }

    /// A line of a class with a width and further attributes.
    pub(super) fn line(&mut self, path: &str, style: &str, width: f64, more: &str) {
        let _ = writeln!(
            self.body,
            "<path class=\"{style}\" d=\"{path}\" stroke-width=\"{width:.1}\"{more}/>"
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

    fn rect(&mut self, class: &str, area: &Area, round: f64) {
        let (left, top) = (area.x - area.width / 2.0, area.y - area.height / 2.0);
        let (width, height) = (area.width, area.height);
        let _ = writeln!(
            self.body,
            "<rect class=\"{class}\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"{round}\"/>"
        );
    }

    pub(super) fn label(&mut self, label: &str, area: &Area) {
        let mut y = area.y - area.height / 2.0 + LABEL_LINE - 3.0;
        for line in label.lines() {
            self.text("label", (area.x, y), line);
            y += LABEL_LINE;
        }
    }

    /// The label of a shortcut.
    pub(super) fn plate(&mut self, label: &str, area: &Area) {
        self.rect("plate", area, area.height / 2.0);
        self.text("on", (area.x, area.y + 4.0), label);
    }

    /// The cross of a link that is cut.
    pub(super) fn cross(&mut self, (x, y): (f64, f64)) {
        let _ = writeln!(
            self.body,
            "<path class=\"cross\" d=\"M-7 -7L7 7M-7 7L7 -7\" transform=\"translate({x:.1} {y:.1})\"/>"
        );
    }

    /// The sign of a network, with its upper left corner at a point. A machine that is no member has none.
    fn sign(
        &mut self,
        (x, y): (f64, f64),
        (width, height): (f64, f64),
        network: usize,
        how: Joined,
    ) {
        let place = format!("x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width}\" height=\"{height}\"");
        let colour = signs::colour(network);
        let _ = match how {
            Joined::No => writeln!(self.body, "<rect class=\"empty\" {place}/>"),
            Joined::Joining => writeln!(
                self.body,
                "<rect class=\"sign\" {place} fill=\"{colour}\" fill-opacity=\"0.3\"/>"
            ),
            Joined::Yes => writeln!(
                self.body,
                "<rect class=\"sign\" {place} fill=\"{colour}\"/><rect {place} fill=\"url(#sign-{})\"/>",
                signs::pattern(network)
            ),
        };
    }

    /// The outline of a kind of machine.
    fn outline(&mut self, kind: Kind, down: bool, area: &Area) {
        let (left, top) = (area.x - area.width / 2.0, area.y - area.height / 2.0);
        let down = if down { " down" } else { "" };
        let class = format!("machine {}{down}", kind.word());
        let round = match kind {
            Kind::Switch => 0.0,
            Kind::Router => 16.0_f64.min(area.height / 2.0),
            _ => 2.0,
        };
        if kind == Kind::LaneServer {
            let cut = 10.0_f64.min(area.height / 3.0);
            let (wide, high) = (area.width - 2.0 * cut, area.height - 2.0 * cut);
            let _ = writeln!(
                self.body,
                "<path class=\"{class}\" d=\"M{:.1} {top:.1}h{wide:.1}l{cut:.1} {cut:.1}v{high:.1}l-{cut:.1} {cut:.1}h-{wide:.1}l-{cut:.1} -{cut:.1}v-{high:.1}Z\"/>",
                left + cut,
            );
            return;
        }
        self.rect(&class, area, round);
        if kind == Kind::Switch {
            let inner = Area {
                width: (area.width - 6.0).max(1.0),
                height: (area.height - 6.0).max(1.0),
                ..*area
            };
            self.rect("inner", &inner, 0.0);
        }
    }

    fn glyph(&mut self, kind: Kind, (x, y): (f64, f64)) {
        let glyph = signs::glyph(kind);
        let _ = writeln!(
            self.body,
            "<path class=\"glyph\" d=\"{glyph}\" transform=\"translate({x:.1} {y:.1})\"/>"
        );
    }

    pub(super) fn machine(&mut self, picture: &Picture, machine: &Machine, area: &Area) {
        let (left, top) = (area.x - area.width / 2.0, area.y - area.height / 2.0);
        self.outline(machine.kind, machine.down, area);
        let mut y = top + TEXT_LINE;
        self.text("name", (area.x, y), &machine.name);
        if let Some(under) = under(machine) {
            y += TEXT_LINE;
            // The glyph stands in front of the kind.
            let half = under.chars().count() as f64 * 2.8;
            let shift = (area.width / 2.0 - half - 5.0).clamp(0.0, 8.0);
            self.text("kind", (area.x + shift, y - 2.0), &under);
            let x = (area.x + shift - half - 14.0).max(left + 4.0);
            self.glyph(machine.kind, (x, top + TEXT_LINE + 2.5));
        } else if area.width / 2.0 - machine.name.chars().count() as f64 * 4.2 > 22.0 {
            self.glyph(machine.kind, (left + 7.0, top + 5.0));
        }
        let addresses = picture.addresses(machine);
        let networks = machine.addresses.iter().zip(&machine.joined);
        for (((_, network), joined), address) in networks.zip(addresses) {
            y += TEXT_LINE;
            // Before a run, it does not matter which hosts have joined.
            let joined = if picture.running {
                *joined
            } else {
                Joined::Yes
            };
            let at = (left + MARGIN, y - 9.0);
            self.sign(at, (10.0, 10.0), *network, joined);
            self.text("", (left + MARGIN + MARK, y), &address);
        }
    }

    /// Legend of the signs, below the drawing.
    pub(super) fn legend(&mut self, picture: &Picture) {
        let [left, _, right, mut bottom] = self.edges.unwrap_or_default();
        bottom += 3.0 * MARGIN;
        let mut x = left;
        // The first line of the legend of a run says which instant it is.
        let mut alone = false;
        for (entry, words) in entries(picture) {
            let mark = match entry {
                Entry::Words => 0.0,
                _ => 26.0,
            };
            let width = words.chars().count() as f64 * CHARACTER + mark + 2.0 * MARGIN;
            if x > left && (x + width > right.max(left + 400.0) || alone) {
                x = left;
                bottom += TEXT_LINE + 3.0;
            }
            let middle = bottom + 5.0;
            match entry {
                Entry::Machine(kind) => {
                    let (width, height) = (18.0, 12.0);
                    let x = x + 10.0;
                    self.outline(
                        kind,
                        false,
                        &Area {
                            x,
                            y: middle,
                            width,
                            height,
                        },
                    );
                }
                Entry::Network(number) => {
                    self.sign((x + 1.0, middle - 6.0), (18.0, 12.0), number, Joined::Yes);
                }
                Entry::Line(class, width) => {
                    let path = format!("M{x:.1} {middle:.1}h20");
                    self.line(&path, class, width, "");
                }
                Entry::Words => {}
            }
            self.text("", (x + mark, bottom + 9.0), &words);
            self.reach(&Area {
                x: x + width / 2.0,
                y: bottom + TEXT_LINE / 2.0,
                width,
                height: TEXT_LINE,
            });
            x += width;
            alone = matches!(entry, Entry::Words);
        }
    }

    pub(super) fn finish(self, name: &str) -> String {
        let [left, top, right, bottom] = self.edges.unwrap_or_default();
        let (x, y) = (left - MARGIN, top - MARGIN);
        let (width, height) = (right - left + 2.0 * MARGIN, bottom - top + 2.0 * MARGIN);
        let patterns = signs::PATTERNS.map(|(name, path)| {
            format!(
                "<pattern id=\"sign-{name}\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\"><path class=\"texture\" d=\"{path}\"/></pattern>\n"
            )
        });
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
             viewBox=\"{x:.1} {y:.1} {width:.1} {height:.1}\">\n<title>{}</title>\n<style>\n{}</style>\n<defs>\n{}</defs>\n\
             <rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"#fff\"/>\n{}</svg>\n",
            escaped(name),
            style(),
            patterns.concat(),
            self.body
        )
    }
}

/// The entries of the legend: what this drawing has.
fn entries(picture: &Picture) -> Vec<(Entry, String)> {
    let mut entries = Vec::new();
    if let Some(at) = picture.at {
        let seconds = |t: u64| t as f64 / 1e9;
        let rates = picture
            .sampled
            .map(|[from, to]| format!("; rates of {} to {} s", seconds(from), seconds(to)));
        let words = format!(
            "{} at {} s{}",
            picture.lab,
            seconds(at),
            rates.unwrap_or_default()
        );
        entries.push((Entry::Words, words));
    }
    for kind in signs::KINDS {
        if picture.machines.iter().any(|machine| machine.kind == kind) {
            entries.push((Entry::Machine(kind), kind.name().to_owned()));
        }
    }
    for (number, network) in picture.networks.iter().enumerate() {
        let words = format!("{} {} {}", network.word(), network.name, network.subnet);
        entries.push((Entry::Network(number), words));
    }
    let mut line = |there: bool, class, width, words: &str| {
        if there {
            entries.push((Entry::Line(class, width), words.to_owned()));
        }
    };
    let data = picture.threads.iter().any(|thread| thread.data);
    line(!picture.pvcs.is_empty(), "pvc", 1.5, "PVC");
    let calls = match picture.sampled {
        Some(_) => "call, as wide as its rate",
        None => "call",
    };
    line(data, "calls", 2.2, calls);
    line(!picture.shortcuts.is_empty(), "shortcut", 4.0, "shortcut");
    let down = picture.machines.iter().any(|machine| machine.down)
        || picture.cables.iter().any(|cable| cable.down);
    line(down, "cut", 2.0, "cut or down");
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shade_of_the_style_exists() {
        let rules = signs::rules();
        for part in STYLE.split("var(--").skip(1) {
            let (name, _) = part.split_once(')').unwrap();
            assert!(rules.contains(&format!("--{name}: ")), "{name}");
        }
        assert!(!style().contains("var("));
    }
}
