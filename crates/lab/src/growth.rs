//! The size of a recording in words, as it grows.

use aerostat_wire::counted;

/// Size at which a recording is told for the first time, octets; then ten times as much, and so on.
const FIRST: u64 = 100_000_000;

/// A recording that grows, and the size at which it is told next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Growth {
    next: u64,
    octets: u64,
}

impl Default for Growth {
    fn default() -> Self {
        Self {
            next: FIRST,
            octets: 0,
        }
    }
}

impl Growth {
    /// The recording has this many octets now; true if that is worth a word: at 100 MB, 1 GB, 10 GB and so on.
    pub fn reached(&mut self, octets: u64) -> bool {
        self.octets = octets;
        let told = octets >= self.next && self.next < u64::MAX;
        while octets >= self.next && self.next < u64::MAX {
            self.next = self.next.saturating_mul(10);
        }
        told
    }

    /// True if the recording has been worth a word.
    #[must_use]
    pub const fn is_large(&self) -> bool {
        self.octets >= FIRST
    }

    /// Octets so far.
    #[must_use]
    pub const fn octets(&self) -> u64 {
        self.octets
    }
}

/// A number of octets for people: `829 MB`, `1.2 GB`, `640 octets`. The units are powers of 1000.
#[must_use]
pub fn size(octets: u64) -> String {
    let units = [
        (1_000_000_000_000, "TB"),
        (1_000_000_000, "GB"),
        (1_000_000, "MB"),
        (1000, "kB"),
    ];
    let Some((unit, name)) = units.into_iter().find(|(unit, _)| octets >= *unit) else {
        return match octets {
            1 => "1 octet".to_owned(),
            _ => counted(octets, "octet", "octets").to_string(),
        };
    };
    let value = octets as f64 / unit as f64;
    match value {
        ..9.95 => format!("{value:.1} {name}"),
        _ => format!("{value:.0} {name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_is_told_at_each_power_of_ten_once() {
        let mut growth = Growth::default();
        let sizes = [
            0,
            99_999_999,
            100_000_000,
            900_000_000,
            20_000_000_000,
            20_000_000_001,
        ];
        let told = sizes.map(|octets| growth.reached(octets));
        assert_eq!(told, [false, false, true, false, true, false]);
        assert!(growth.is_large() && !Growth::default().is_large());
        assert!(growth.reached(u64::MAX) && !growth.reached(u64::MAX));
    }

    #[test]
    fn sizes_have_two_or_three_digits() {
        let told = [
            (0, "0 octets"),
            (1, "1 octet"),
            (999, "999 octets"),
            (1000, "1.0 kB"),
            (9_949, "9.9 kB"),
            (9_950, "10 kB"),
            (829_412_345, "829 MB"),
            (1_249_000_000, "1.2 GB"),
            (20_000_000_000_000, "20 TB"),
        ];
        for (octets, text) in told {
            assert_eq!(size(octets), text);
        }
    }
}
