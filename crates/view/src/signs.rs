//! Signs of drawings: colours and patterns of networks, glyphs of machines, and shades of everything else.
//!
//! `graph` draws with them, and the recorded page gets them as data ([`data`]) and in its style sheet ([`rules`]). So
//! both show a network with the same colour and pattern, and a machine with the same glyph.
//!
//! Source of the colours: M. Okabe, K. Ito, "Color Universal Design", 2008; any colour vision tells them apart. Lines
//! of calls are darker on light ground and lighter on dark ground. From the eighth network on, colours are repeated.
//! With the patterns there are 35 pairs, and every drawing names the networks, so a sign never stands alone.

use aerostat_lab::picture::Kind;
use serde_json::json;
use std::fmt::Write as _;

/// Fill colours, each with black text on it.
const COLOURS: [&str; 7] = [
    "#e69f00", "#56b4e9", "#009e73", "#f0e442", "#0072b2", "#d55e00", "#cc79a7",
];
/// Colours of lines on light and on dark ground.
const LINES: [[&str; 2]; 7] = [
    ["#a86f00", "#f0b640"],
    ["#1f7fb5", "#7cc7f2"],
    ["#00785a", "#3fc79b"],
    ["#8a8000", "#f0e442"],
    ["#005a8e", "#5aaee0"],
    ["#b34700", "#f08a45"],
    ["#a94f80", "#e3a0c5"],
];
/// Patterns over the colours, as paths in a square of 6 pixels, by name.
pub const PATTERNS: [(&str, &str); 5] = [
    ("plain", ""),
    ("striped", "M-1 5L5 -1M1 7L7 1"),
    ("lined", "M0 1.5H6M0 4.5H6"),
    ("dotted", "M1.5 1.5h.01M4.5 4.5h.01"),
    ("barred", "M1.5 0V6M4.5 0V6"),
];
/// Kinds of machines in the order of a legend.
pub const KINDS: [Kind; 6] = [
    Kind::Switch,
    Kind::LaneServer,
    Kind::Router,
    Kind::Host,
    Kind::Outside,
    Kind::Station,
];
/// Shades of the drawing by name, on light and on dark ground.
const SHADES: [(&str, [&str; 2]); 12] = [
    ("ground", ["#fff", "#14171b"]),
    ("ink", ["#14181d", "#e8ebef"]),
    ("muted", ["#56606b", "#a3adb9"]),
    ("outline", ["#2a3038", "#c3cad3"]),
    ("box", ["#fff", "#1f242b"]),
    ("box-switch", ["#eef1f5", "#2a313a"]),
    ("conduit", ["#e9ecf0", "#272d35"]),
    ("carry", ["#b4c6da", "#3d536b"]),
    ("fibre", ["#98a2ae", "#6d7885"]),
    ("shortcut", ["#86198f", "#e9a8f5"]),
    ("fault", ["#b00020", "#ff8a8a"]),
    ("fault-soft", ["#f8dade", "#4a2226"]),
];

/// Colour of a machine without a network.
pub const NEUTRAL: &str = "#E8E8E8";

/// Colour of the network with this number.
#[must_use]
pub fn colour(network: usize) -> &'static str {
    COLOURS[network % COLOURS.len()]
}
/// Colour of lines of the network with this number, on light ground.
#[must_use]
pub fn line(network: usize) -> &'static str {
    LINES[network % LINES.len()][0]
}
/// Name of the pattern of the network with this number.
#[must_use]
pub fn pattern(network: usize) -> &'static str {
    PATTERNS[network % PATTERNS.len()].0
}
/// A shade on light ground; that of text for an unknown name.
#[must_use]
pub fn shade(name: &str) -> &'static str {
    let found = SHADES.iter().find(|(shade, _)| *shade == name);
    found.map_or("#000", |(_, [light, _])| light)
}
/// Glyph of a kind of machine: a path of 12 by 12 pixels.
#[must_use]
pub const fn glyph(kind: Kind) -> &'static str {
    match kind {
        Kind::Switch => "M1 3.5H11M8.5 1L11 3.5L8.5 6M11 8.5H1M3.5 6L1 8.5L3.5 11",
        Kind::LaneServer => "M1.5 1.5H10.5V4.5H1.5ZM1.5 7.5H10.5V10.5H1.5ZM3.5 3h.01M3.5 9h.01",
        Kind::Router => "M6 .8A5.2 5.2 0 1 1 5.99 .8ZM3.2 6H8.8M6 3.2V8.8",
        Kind::Host => "M1 1.5H11V8H1ZM6 8V10.5M3.5 10.5H8.5",
        Kind::Outside => "M1 6H9M6 2.5L9.5 6L6 9.5",
        Kind::Station => "M2.5 2.5H9.5V8H2.5ZM4 10.5H8",
    }
}

/// The signs as data for the script of the page.
#[must_use]
pub fn data() -> String {
    let kinds = KINDS.map(|kind| json!([kind.word(), kind.name(), glyph(kind)]));
    json!({ "colours": COLOURS.len(), "kinds": kinds, "patterns": PATTERNS }).to_string()
}

/// The signs as rules for the style sheet of the page.
#[must_use]
pub fn rules() -> String {
    let mut rules = String::from(":root {\n");
    // Writing to a String cannot fail.
    for (name, [light, dark]) in SHADES {
        let _ = writeln!(rules, "  --{name}: light-dark({light}, {dark});");
    }
    for (number, (colour, [light, dark])) in COLOURS.iter().zip(LINES).enumerate() {
        let _ = writeln!(
            rules,
            "  --net-{number}: {colour}; --line-{number}: light-dark({light}, {dark});"
        );
    }
    rules.push('}');
    for number in 0..COLOURS.len() {
        let _ = write!(rules, "\n.net-{number} {{ --net: var(--net-{number}); }}");
    }
    rules
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Brightness of a colour on a screen, 0 to 1. Source: WCAG 2.2, relative luminance.
    fn luminance(colour: &str) -> f64 {
        let part = |at: usize| {
            let octet = u8::from_str_radix(&colour[at..at + 2], 16).unwrap();
            let value = f64::from(octet) / 255.0;
            if value <= 0.04045 {
                value / 12.92
            } else {
                libm::pow((value + 0.055) / 1.055, 2.4)
            }
        };
        0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5)
    }

    #[test]
    fn neighbours_in_the_list_differ_and_35_networks_have_signs_of_their_own() {
        let all: BTreeSet<&str> = (0..7).map(colour).collect();
        assert_eq!(all.len(), 7);
        assert_eq!(colour(0), colour(7));
        assert!(!all.contains(NEUTRAL));
        let pairs: BTreeSet<_> = (0..35).map(|n| (colour(n), pattern(n))).collect();
        assert_eq!(pairs.len(), 35);
    }

    #[test]
    fn shapes_have_an_edge_that_stands_out_and_lines_stand_out_from_the_ground() {
        for fill in (0..7).map(colour) {
            let contrast = (luminance(fill) + 0.05) / 0.05;
            assert!(contrast >= 3.0, "{fill}: {contrast:.1}");
        }
        for stroke in (0..7).map(line) {
            let contrast = 1.05 / (luminance(stroke) + 0.05);
            assert!(contrast >= 3.0, "{stroke}: {contrast:.1}");
        }
    }
}
