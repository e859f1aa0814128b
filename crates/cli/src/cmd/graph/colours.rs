//! Colours of networks that can be distinguished with any colour vision.
//!
//! Source: M. Okabe, K. Ito, "Color Universal Design", 2008. Black is for lines and text. From the eighth network on,
//! colours are repeated. Every drawing also names the networks, so the colour is never the only sign.

/// A fill colour, each with black text on it.
const COLOURS: [&str; 7] = [
    "#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7",
];

/// Colour of a machine without a network.
pub(super) const NEUTRAL: &str = "#E8E8E8";
/// Colour of parts that are down.
pub(super) const DOWN: &str = "#A00000";

/// Colour of the network with this number.
pub(super) fn of(network: usize) -> &'static str {
    COLOURS[network % COLOURS.len()]
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
                ((value + 0.055) / 1.055).powf(2.4)
            }
        };
        0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5)
    }

    #[test]
    fn neighbours_in_the_list_differ_and_the_list_begins_again_after_the_seventh() {
        let all: BTreeSet<&str> = (0..7).map(of).collect();
        assert_eq!(all.len(), 7);
        assert_eq!(of(0), of(7));
        assert!(!all.contains(NEUTRAL));
    }

    #[test]
    fn a_line_in_any_colour_is_seen_on_the_neutral_ground_or_has_a_dark_edge() {
        // Shapes have a black edge, which must stand out from every fill.
        for colour in (0..7).map(of) {
            let contrast = (luminance(colour) + 0.05) / 0.05;
            assert!(contrast >= 3.0, "{colour}: {contrast:.1}");
        }
    }
}
