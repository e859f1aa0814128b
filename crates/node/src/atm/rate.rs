//! Cell rates as ratios, and time that advances by exact cell times.

use aerostat_proto::{Duration, Instant};
use core::fmt;

const NANOS: u128 = 1_000_000_000;

/// A cell rate: `numerator / denominator` cells per second, both above 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellRate {
    numerator: u64,
    denominator: u64,
}

impl CellRate {
    /// OC-3c / STM-1: 149.76 Mb/s of cells, 353207.547 cells/s.
    pub const OC3: Self = Self::of_bits(149_760_000);
    /// OC-12c / STM-4c: 599.04 Mb/s of cells.
    pub const OC12: Self = Self::of_bits(599_040_000);
    /// DS3 with PLCP framing: 12 cells in 125 µs, 40.704 Mb/s. Source: ITU-T G.804 §7.2, af-phy-0054.000.
    pub const DS3: Self = Self::of_cells(96_000);
    /// DS3 with cells delineated by their HEC: 84 of 85 bits of 44.736 Mb/s, 44.2097 Mb/s of cells. Source: ITU-T
    /// G.804, af-phy-0054.000.
    pub const DS3_HEC: Self = Self {
        numerator: 44_736_000 * 84,
        denominator: 85 * 424,
    };
    /// E3 with direct mapping into 530 octets in 125 µs (G.832): 33.92 Mb/s of cells. Source: ITU-T G.804.
    pub const E3: Self = Self::of_cells(80_000);
    /// E3 with PLCP framing (G.751): 9 cells in 125 µs, 30.528 Mb/s. Source: ETSI ETS 300 214.
    pub const E3_PLCP: Self = Self::of_cells(72_000);
    /// 25.6 Mb/s: 54 octets per cell and 8000 timing octets per second, 59 111.1 cells/s, rounded down (2 ppm). Source:
    /// af-phy-0040.000.
    pub const ATM25: Self = Self::of_cells(59_111);
    /// TAXI 100 Mb/s: 54 octets per cell, of 80 ns each. Source: ATM Forum UNI 3.1 §2.3.
    pub const TAXI: Self = Self {
        numerator: 100_000_000,
        denominator: 432,
    };
    /// E1: 1.92 Mb/s of cells.
    pub const E1: Self = Self::of_bits(1_920_000);
    /// DS1: 1.536 Mb/s of cells.
    pub const DS1: Self = Self::of_bits(1_536_000);

    /// Whole cells per second, at least 1.
    #[must_use]
    pub const fn of_cells(per_second: u32) -> Self {
        Self {
            numerator: if per_second == 0 {
                1
            } else {
                per_second as u64
            },
            denominator: 1,
        }
    }
    /// A rate in bit/s of cells with their headers (424 bits each), at least 1.
    #[must_use]
    pub const fn of_bits(per_second: u64) -> Self {
        Self {
            numerator: if per_second == 0 { 1 } else { per_second },
            denominator: 424,
        }
    }
    /// `numerator / denominator` cells per second; 0 counts as 1.
    #[must_use]
    pub const fn of_ratio(numerator: u64, denominator: u64) -> Self {
        Self {
            numerator: if numerator == 0 { 1 } else { numerator },
            denominator: if denominator == 0 { 1 } else { denominator },
        }
    }
    /// Usual names of lines, in lower case. The first name of a rate is the one that is shown.
    const NAMES: [(&str, Self); 19] = [
        ("oc3", Self::OC3),
        ("oc3c", Self::OC3),
        ("stm1", Self::OC3),
        ("oc12", Self::OC12),
        ("oc12c", Self::OC12),
        ("stm4", Self::OC12),
        ("ds3", Self::DS3),
        ("ds3-plcp", Self::DS3),
        ("t3", Self::DS3),
        ("ds3-hec", Self::DS3_HEC),
        ("e3", Self::E3),
        ("e3-plcp", Self::E3_PLCP),
        ("25.6", Self::ATM25),
        ("atm25", Self::ATM25),
        ("taxi", Self::TAXI),
        ("taxi100", Self::TAXI),
        ("e1", Self::E1),
        ("ds1", Self::DS1),
        ("t1", Self::DS1),
    ];
    /// All names that [`Self::named`] knows.
    pub fn names() -> impl Iterator<Item = &'static str> {
        Self::NAMES.iter().map(|(name, _)| *name)
    }
    /// The rate with the usual name of a line, in lower case, for example `oc3`, `ds3-hec` or `25.6`.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let mut names = Self::NAMES.iter();
        names
            .find(|(known, _)| *known == name)
            .map(|(_, rate)| *rate)
    }
    /// Cells per second are this number divided by [`Self::denominator`].
    #[must_use]
    pub const fn numerator(self) -> u64 {
        self.numerator
    }
    /// See [`Self::numerator`].
    #[must_use]
    pub const fn denominator(self) -> u64 {
        self.denominator
    }
    /// Cells per second, rounded down.
    #[must_use]
    pub const fn cells_per_second(self) -> u32 {
        let whole = self.numerator / self.denominator;
        if whole > u32::MAX as u64 {
            u32::MAX
        } else {
            whole as u32
        }
    }
    /// Whole cells in this time.
    #[must_use]
    pub fn cells_in(self, time: Duration) -> u64 {
        let cells =
            time.as_nanos() * u128::from(self.numerator) / (u128::from(self.denominator) * NANOS);
        u64::try_from(cells).unwrap_or(u64::MAX)
    }
    /// Transmission time of `cells` cells, in nanoseconds, rounded up.
    #[must_use]
    pub fn time_of(self, cells: u64) -> Duration {
        if let Some(scaled) = self
            .denominator
            .checked_mul(NANOS as u64)
            .and_then(|gap| gap.checked_mul(cells))
        {
            return Duration::from_nanos(scaled.div_ceil(self.numerator));
        }
        let nanos = (u128::from(cells) * u128::from(self.denominator) * NANOS)
            .div_ceil(self.numerator.into());
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

impl fmt::Display for CellRate {
    /// The text of lab files: `oc3` and the like, `155Mbps` of a rate given in bits, or cells per second.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut names = Self::NAMES.iter();
        match names.find(|(_, rate)| rate == self) {
            Some((name, _)) => f.write_str(name),
            None if self.denominator == 424 => {
                let (unit, factor) = match self.numerator {
                    1_000_000_000.. => ("Gbps", 1e9),
                    1_000_000.. => ("Mbps", 1e6),
                    1_000.. => ("kbps", 1e3),
                    _ => ("bps", 1.0),
                };
                write!(f, "{}{unit}", self.numerator as f64 / factor)
            }
            None if self.denominator == 1 => write!(f, "{}cells/s", self.numerator),
            None => {
                let rate = self.numerator as f64 / self.denominator as f64;
                write!(f, "{rate:.2}cells/s")
            }
        }
    }
}

/// A point in time that advances by exact cell times: nanoseconds and a fraction that is never rounded.
#[derive(Clone, Copy, Debug)]
pub struct Pacer {
    nanos: u64,
    /// The fraction, in units of 1 / `modulus` nanoseconds.
    fraction: u64,
    step_nanos: u64,
    step_fraction: u64,
    modulus: u64,
}

impl Pacer {
    /// A pacer at time zero.
    #[must_use]
    pub fn new(rate: CellRate) -> Self {
        // Divisions of 128 bits are slow, and the numbers of common rates are small.
        let (step_nanos, step_fraction) = match rate.denominator.checked_mul(NANOS as u64) {
            Some(scaled) => (scaled / rate.numerator, scaled % rate.numerator),
            None => {
                let scaled = u128::from(rate.denominator) * NANOS;
                let modulus = u128::from(rate.numerator);
                let nanos = u64::try_from(scaled / modulus).unwrap_or(u64::MAX);
                (nanos, (scaled % modulus) as u64)
            }
        };
        Self {
            nanos: 0,
            fraction: 0,
            step_nanos,
            step_fraction,
            modulus: rate.numerator,
        }
    }
    /// The point in time, rounded up to a nanosecond.
    #[must_use]
    pub const fn at(&self) -> Instant {
        Instant::from_nanos(self.nanos.saturating_add((self.fraction > 0) as u64))
    }
    /// The point in time, rounded down to a nanosecond.
    #[must_use]
    pub const fn at_floor(&self) -> Instant {
        Instant::from_nanos(self.nanos)
    }
    /// The time of a cell in nanoseconds, rounded down.
    #[must_use]
    pub const fn step_floor(&self) -> u64 {
        self.step_nanos
    }
    /// Moves the point to `earliest` if it is before that.
    pub const fn not_before(&mut self, earliest: Instant) {
        if self.nanos < earliest.as_nanos() {
            self.nanos = earliest.as_nanos();
            self.fraction = 0;
        }
    }
    /// Advances the point by one cell time.
    #[inline]
    pub const fn step(&mut self) {
        self.nanos = self.nanos.saturating_add(self.step_nanos);
        self.fraction += self.step_fraction;
        if self.fraction >= self.modulus {
            self.fraction -= self.modulus;
            self.nanos = self.nanos.saturating_add(1);
        }
    }
    /// Advances the point by `cells` cell times.
    #[inline]
    pub fn advance(&mut self, cells: u16) {
        match cells {
            1 => self.step(),
            cells => self.advance_by(cells),
        }
    }
    fn advance_by(&mut self, cells: u16) {
        let few = u64::from(cells);
        let fraction = few.checked_mul(self.step_fraction);
        let fraction = fraction.and_then(|more| more.checked_add(self.fraction));
        if let (Some(fraction), Some(nanos)) = (fraction, few.checked_mul(self.step_nanos)) {
            let nanos = nanos.saturating_add(fraction / self.modulus);
            self.nanos = self.nanos.saturating_add(nanos);
            self.fraction = fraction % self.modulus;
            return;
        }
        let cells = u128::from(cells);
        let fraction = u128::from(self.fraction) + cells * u128::from(self.step_fraction);
        let modulus = u128::from(self.modulus);
        let nanos = cells * u128::from(self.step_nanos) + fraction / modulus;
        self.nanos = self
            .nanos
            .saturating_add(u64::try_from(nanos).unwrap_or(u64::MAX));
        self.fraction = (fraction % modulus) as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_drift_at_oc3() {
        let mut pacer = Pacer::new(CellRate::OC3);
        let mut runs = pacer;
        for _ in 0..353_207_547 / 1000 {
            pacer.step();
        }
        runs.advance(353);
        // 149 760 000 bit/s: 4680 cells take 13.25 ms exactly.
        let mut exact = Pacer::new(CellRate::OC3);
        for _ in 0..4680 {
            exact.step();
        }
        assert_eq!(exact.at(), Instant::from_nanos(13_250_000));
        assert_eq!(exact.at_floor(), exact.at());
        assert_eq!(
            runs.at().as_nanos(),
            (353 * 424_000_000_000_u64).div_ceil(149_760_000)
        );
        assert_eq!(
            pacer.at().as_nanos(),
            (353_207 * 424_000_000_000_u128).div_ceil(149_760_000) as u64
        );
    }

    /// Cells/s of the links' payload, without the overhead of SDH, PLCP or line code.
    #[test]
    fn rates() {
        for (name, cells) in [
            ("oc3", 353_207),
            ("oc12", 1_412_830),
            ("ds3", 96_000),
            ("e3", 80_000),
            ("atm25", 59_111),
            ("taxi", 231_481),
            ("e1", 4_528),
            ("ds1", 3_622),
            ("oc3c", 353_207),
            ("oc12c", 1_412_830),
            ("ds3-plcp", 96_000),
            ("ds3-hec", 104_268),
            ("e3-plcp", 72_000),
            ("taxi100", 231_481),
        ] {
            assert_eq!(CellRate::named(name).unwrap().cells_per_second(), cells);
        }
        for (name, rate) in CellRate::NAMES {
            assert_eq!(CellRate::named(&rate.to_string()), Some(rate), "{name}");
        }
        assert_eq!(CellRate::OC3.time_of(1), Duration::from_nanos(2832));
        // 54 octets of 80 ns.
        assert_eq!(CellRate::TAXI.time_of(1), Duration::from_nanos(54 * 80));
    }

    /// The number of cells in a time in which the standard has a whole number of frames: SDH and PLCP have 8000 frames
    /// a second, and a DS3 with HEC has 4704 bits of cells in an M-frame of 4760 bits.
    #[test]
    fn cells_in_whole_frames_of_the_standards() {
        let second = Duration::from_secs(1);
        for (name, cells, time) in [
            // 260 columns of 9 octets in each frame of STM-1, and four times as many in one of STM-4c.
            ("oc3c", 8000 * 2340, second * 53),
            ("oc12c", 8000 * 9360, second * 53),
            ("ds3-plcp", 8000 * 12, second),
            ("ds3-hec", 44_736_000 * 4704, second * (4760 * 424)),
            ("e3", 8000 * 10, second),
            ("e3-plcp", 8000 * 9, second),
            ("taxi", 100_000_000, second * (54 * 8)),
        ] {
            let rate = CellRate::named(name).unwrap();
            assert_eq!(rate.cells_in(time), cells, "{name}");
            assert_eq!(rate.time_of(cells), time, "{name}");
        }
    }
}
