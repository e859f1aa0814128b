//! The size of the captures of a run, in words.

use aerostat_lab::growth::{Growth, size};

/// The captures of a run so far.
#[derive(Debug, Default)]
pub(super) struct Recorded {
    growth: Growth,
    /// True if the captures have become ten times as large since this was last told.
    grown: bool,
}

impl Recorded {
    /// The captures have this many octets now.
    pub(super) fn reached(&mut self, octets: u64) {
        self.grown |= self.growth.reached(octets);
    }

    /// A line for the moment at which the captures become large, at `now` of `end` seconds: their size, and the size
    /// that they will have if the rest of the run is like its beginning.
    pub(super) fn grown(&mut self, now: f64, end: f64) -> Option<String> {
        // The last line says what there is at the end.
        (std::mem::take(&mut self.grown) && now < end).then(|| {
            let (octets, whole) = (size(self.growth.octets()), size(self.in_all(now, end)));
            format!(
                "note: the captures have {octets} at {now:.1} s; about {whole} in all at {end:.1} s (--until ends the run earlier)"
            )
        })
    }

    /// Text of the captures for the line of progress; empty if nothing is captured.
    pub(super) fn so_far(&self, now: f64, end: f64) -> String {
        match self.growth.octets() {
            0 => String::new(),
            octets => {
                let (octets, whole) = (size(octets), size(self.in_all(now, end)));
                format!(", {octets} of about {whole} captured")
            }
        }
    }

    /// The last line about the captures; with `quiet` it is for large captures only.
    pub(super) fn whole(&self, quiet: bool) -> Option<String> {
        let told = self.growth.octets() > 0 && (!quiet || self.growth.is_large());
        told.then(|| format!("the captures have {}", size(self.growth.octets())))
    }

    fn in_all(&self, now: f64, end: f64) -> u64 {
        let octets = self.growth.octets();
        let whole = octets as f64 * (end / now).max(1.0);
        // Nothing is known at the beginning.
        if whole.is_finite() {
            whole as u64
        } else {
            octets
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_captures_are_told_with_what_they_will_be_and_small_ones_at_the_end() {
        let mut recorded = Recorded::default();
        assert_eq!(recorded.whole(false), None);
        recorded.reached(5000);
        assert_eq!(recorded.grown(0.0, 12.0), None);
        assert_eq!(
            recorded.so_far(0.0, 12.0),
            ", 5.0 kB of about 5.0 kB captured"
        );
        assert_eq!(
            recorded.so_far(1.0, 12.0),
            ", 5.0 kB of about 60 kB captured"
        );
        assert_eq!(recorded.whole(true), None);
        assert_eq!(
            recorded.whole(false).as_deref(),
            Some("the captures have 5.0 kB")
        );
        recorded.reached(120_000_000);
        let said = recorded.grown(3.0, 12.0).unwrap();
        assert!(
            said.contains("120 MB at 3.0 s; about 480 MB in all at 12.0 s"),
            "{said}"
        );
        recorded.reached(130_000_000);
        assert_eq!(recorded.grown(3.1, 12.0), None);
        recorded.reached(1_300_000_000);
        assert_eq!(recorded.grown(12.0, 12.0), None);
        assert_eq!(
            recorded.whole(true).as_deref(),
            Some("the captures have 1.3 GB")
        );
    }
}
