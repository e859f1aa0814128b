//! The generic cell rate algorithm, and usage parameter control built from it.
//!
//! **Arithmetic.** Times are whole nanoseconds. The increment 1/rate is seldom a whole number of them, so the
//! theoretical arrival time (TAT) has a fraction in units of 1/rate nanoseconds: 10⁹/rate = `step_nanos` +
//! `step_fraction`/rate, exactly. Nothing is rounded, however long the algorithm runs, and a cell costs additions and
//! one comparison. A cell at the nanosecond t conforms if TAT ≤ t + L in exact numbers; t = TAT − L conforms. As t + L
//! is a whole number, that is the same as ⌈TAT⌉ ≤ t + L.
//!
//! **Rounding.** The times of cells are whole nanoseconds, too, so a sender at exactly its peak rate cannot keep a
//! limit of 0: wherever a time is rounded, the cell is late by less than a nanosecond, and the next one may be late by
//! less. Its source rounds once, and each line on its way once ([`CellRun::rounding`](super::CellRun::rounding)). A
//! [`Policer`] adds that many nanoseconds to its limits. Proof: let the exact times of a source conform to GCRA(I, L),
//! and let r be the number of roundings. The cell with the exact time x arrives at x + d + e, where d is the same for
//! all cells of the connection and 0 ≤ e < r. The TAT of the policer is then below that of the exact times by d, plus
//! r. So a cell comes before it by less than L + r.
//!
//! Standards: I.371, Traffic Management 4.0 §4 (GCRA by virtual scheduling; conformance definitions).
//! Not implemented: frame-based GCRA for GFR, dynamic GCRA for ABR.

use super::counters::UpcReason;
use super::pdu::CellRun;
use super::timing::{EvenRun, Timing};
use aerostat_proto::{Duration, Instant};
use aerostat_wire::{Conformance, TrafficParams};
use core::num::NonZeroU32;

/// Cell delay variation tolerance of contracts that do not give a tolerance.
pub const DEFAULT_CDVT: Duration = Duration::from_micros(250);

/// The tolerance for cells from a program outside the network. That program, and the process that reads from it, may
/// have to wait for a processor; cells that are sent in the meantime arrive together.
pub const OUTSIDE_CDVT: Duration = Duration::from_millis(250);

/// GCRA(I, L): increment 1/rate, limit L.
#[derive(Clone, Copy, Debug)]
pub struct Gcra {
    /// Theoretical arrival time, in nanoseconds, without its fraction.
    nanos: u64,
    limit: u64,
    /// The fraction of the time, in units of 1 / `rate` nanoseconds.
    fraction: u32,
    /// The increment in nanoseconds, and its fraction.
    step_nanos: u32,
    step_fraction: u32,
    /// Cells per second.
    rate: NonZeroU32,
}

impl Gcra {
    /// A GCRA for `rate` cells per second, at least 1, with `limit`.
    #[must_use]
    pub fn new(rate: u32, limit: Duration) -> Self {
        let rate = NonZeroU32::new(rate).unwrap_or(NonZeroU32::MIN);
        Self {
            nanos: 0,
            limit: u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX),
            fraction: 0,
            step_nanos: 1_000_000_000 / rate,
            step_fraction: 1_000_000_000 % rate,
            rate,
        }
    }
    /// True if a cell that arrives at `now` conforms. The state is unchanged.
    #[must_use]
    pub const fn conforms(&self, now: Instant) -> bool {
        self.conforms_within(now, 0)
    }
    /// The same with a limit that is longer by `rounding` nanoseconds.
    #[must_use]
    #[inline]
    pub const fn conforms_within(&self, now: Instant, rounding: u64) -> bool {
        let expected = self.nanos.saturating_add((self.fraction > 0) as u64);
        let early = expected.saturating_sub(now.as_nanos());
        early <= self.limit.saturating_add(rounding)
    }
    /// Updates the state for a conforming cell.
    #[inline]
    pub const fn update(&mut self, now: Instant) {
        if self.nanos < now.as_nanos() {
            self.nanos = now.as_nanos();
            self.fraction = 0;
        }
        let fraction = self.fraction as u64 + self.step_fraction as u64;
        let carry = fraction >= self.rate.get() as u64;
        let rest = if carry {
            fraction - self.rate.get() as u64
        } else {
            fraction
        };
        self.fraction = rest as u32;
        self.nanos = self
            .nanos
            .saturating_add(self.step_nanos as u64 + carry as u64);
    }
    /// Tests a cell, and updates the state if the cell conforms.
    #[inline]
    pub const fn arrive(&mut self, now: Instant) -> bool {
        let conforms = self.conforms(now);
        if conforms {
            self.update(now);
        }
        conforms
    }
    /// The state after all cells of a run, as if they came one by one; `None` if it does not follow without a look at
    /// each cell that all of them conform, or where that leaves the state. The limit is longer by `rounding`
    /// nanoseconds.
    ///
    /// The theoretical arrival time (TAT) and the times of the cells are rounded separately, each by less than 1 ns. So
    /// increments and gaps that differ by less than that are left to the loop.
    fn after(&self, run: &EvenRun, rounding: u64) -> Option<Self> {
        let (increment, first) = (u64::from(self.step_nanos), Instant::from_nanos(run.first));
        if !self.conforms_within(first, rounding) {
            return None;
        }
        let mut after = *self;
        if run.gap > increment {
            // Slower than the rate: if the first cell is not early, no cell is. Each one resets the TAT.
            let early = self.nanos > run.first || self.nanos == run.first && self.fraction > 0;
            if early {
                return None;
            }
            after.update(Instant::from_nanos(run.last));
            return Some(after);
        }
        if increment <= run.gap {
            return None;
        }
        // Faster than the rate: the TAT moves away from the cells. If the second cell does not reset it, later ones do
        // not, either; and if the last one conforms, those before it do.
        after.update(first);
        let second = run.first.checked_add(run.gap)?.checked_add(1)?;
        if after.nanos <= second {
            return None;
        }
        let more = u64::from(run.count).checked_sub(2)?;
        let fraction = u64::from(after.fraction) + more * u64::from(after.step_fraction);
        let rate = u64::from(after.rate.get());
        let moved = more * increment + fraction / rate;
        after.nanos = after.nanos.checked_add(moved)?;
        after.fraction = (fraction % rate) as u32;
        let last = Instant::from_nanos(run.last.checked_sub(2)?);
        if !after.conforms_within(last, rounding) {
            return None;
        }
        after.update(last);
        Some(after)
    }
}

/// Burst tolerance: `(MBS - 1) (1/SCR - 1/PCR)`, rounded down to a nanosecond, so that a sender keeps it, and rounded
/// up, so that a policer takes a whole burst.
#[must_use]
pub fn burst_tolerance(pcr: u32, scr: u32, mbs: u32) -> [Duration; 2] {
    if scr == 0 || pcr <= scr {
        return [Duration::ZERO; 2];
    }
    let (pcr, scr, mbs) = (u128::from(pcr), u128::from(scr), u128::from(mbs));
    let scaled = mbs.saturating_sub(1) * 1_000_000_000 * (pcr - scr);
    let nanos = |nanos| Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
    [scaled / (pcr * scr), scaled.div_ceil(pcr * scr)].map(nanos)
}

/// The tolerances of a contract: of the peak rate, and of the second bucket. `unsaid` is used for the peak rate if the
/// contract does not give its tolerance; the second bucket has that of the peak rate unless it has its own.
#[must_use]
pub fn tolerances(traffic: &TrafficParams, unsaid: Duration) -> [Duration; 2] {
    let given = |own: Duration, usual| if own.is_zero() { usual } else { own };
    let peak = given(traffic.max_cdv, unsaid);
    [peak, given(traffic.second_cdv, peak)]
}

/// The tolerance that a sender keeps, which shapes to all rates of its contract: the smaller one.
#[must_use]
pub fn cdvt(traffic: &TrafficParams) -> Duration {
    let [peak, second] = tolerances(traffic, DEFAULT_CDVT);
    peak.min(second)
}

/// Scope of a switch's policing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Policing {
    /// Nothing.
    #[default]
    Off,
    /// Contracts with a guarantee: CBR and VBR.
    Guaranteed,
    /// These, and the peak rate of best effort (UBR).
    All,
}

impl Policing {
    /// True if nothing is policed.
    #[must_use]
    pub const fn is_off(self) -> bool {
        matches!(self, Self::Off)
    }
}

impl From<bool> for Policing {
    /// [`Self::Guaranteed`] or [`Self::Off`].
    fn from(on: bool) -> Self {
        if on { Self::Guaranteed } else { Self::Off }
    }
}

/// The policer's decision on a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The cell conforms.
    Pass,
    /// The cell is forwarded with CLP 1.
    Tag(UpcReason),
    /// The cell is discarded.
    Discard(UpcReason),
}

/// Usage parameter control of one connection: at most two buckets, both updated only by a cell that conforms to both,
/// as far as they apply to it.
#[derive(Clone, Debug)]
pub struct Policer {
    /// Peak rate of all cells.
    peak: Gcra,
    /// Sustainable rate, or the peak rate of cells with CLP 0.
    second: Option<Gcra>,
    /// Why a cell fails the second bucket; without a bucket, why it is tagged.
    reason: UpcReason,
    /// True if the second bucket is for cells with CLP 0 only.
    clp0: bool,
    /// True if cells with CLP 0 are tagged that fail the second bucket; without a bucket (UBR.2), all of them.
    tag: bool,
}

impl Policer {
    /// A policer for a contract, after its [conformance definition](aerostat_wire::Conformance); `None` if there is
    /// nothing to police: no peak rate, no contract of CBR or VBR unless `what` is all, ABR, GFR. The cell delay
    /// variation tolerances are those of the contract, see [`tolerances`] for `unsaid`.
    ///
    /// UBR.2 permits the network to tag any cell. Here every cell that conforms to the peak rate is tagged.
    #[must_use]
    pub fn new(traffic: &TrafficParams, what: Policing, unsaid: Duration) -> Option<Self> {
        use Conformance::{Cbr1, Cbr2, Cbr3, Ubr1, Ubr2, Vbr1, Vbr2, Vbr3};
        let pcr = traffic.peak()?;
        let [tolerance, of_second] = tolerances(traffic, unsaid);
        let conformance = traffic.conformance()?;
        let best_effort = matches!(conformance, Ubr1 | Ubr2);
        if what.is_off() || best_effort && what != Policing::All {
            return None;
        }
        let second = match conformance {
            Cbr1 | Ubr1 | Ubr2 => None,
            Cbr2 | Cbr3 => Some(Gcra::new(traffic.pcr0, of_second)),
            Vbr1 | Vbr2 | Vbr3 => (traffic.scr > 0).then(|| {
                let [_, burst] = burst_tolerance(pcr, traffic.scr, traffic.mbs);
                Gcra::new(traffic.scr, burst + of_second)
            }),
        };
        Some(Self {
            peak: Gcra::new(pcr, tolerance),
            reason: match conformance {
                Cbr1 | Cbr2 | Cbr3 => UpcReason::PeakClp0,
                Vbr1 | Vbr2 | Vbr3 => UpcReason::Sustained,
                Ubr1 | Ubr2 => UpcReason::BestEffort,
            },
            clp0: matches!(conformance, Cbr2 | Cbr3 | Vbr2 | Vbr3),
            tag: matches!(conformance, Cbr3 | Vbr3 | Ubr2),
            second,
        })
    }
    /// Polices a run at once, if it follows without a look at each cell that all of them have the same fate and none is
    /// discarded. Otherwise the state is unchanged.
    pub(super) fn passes_all(&mut self, cells: &CellRun, times: &Timing) -> Option<Verdict> {
        let (clp, rounding) = (cells.clp, cells.rounding());
        let run = times.even_run(cells.first(), cells.count)?;
        let peak = self.peak.after(&run, rounding)?;
        let mut verdict = Verdict::Pass;
        match &mut self.second {
            Some(second) if !(self.clp0 && clp) => *second = second.after(&run, rounding)?,
            None if self.tag && !clp => verdict = Verdict::Tag(self.reason),
            _ => {}
        }
        self.peak = peak;
        Some(verdict)
    }
    /// Polices one cell. Its time may be late by less than `rounding` nanoseconds: see
    /// [`CellRun::rounding`](super::CellRun::rounding).
    #[inline]
    pub fn police(&mut self, clp: bool, now: Instant, rounding: u64) -> Verdict {
        if !self.peak.conforms_within(now, rounding) {
            return Verdict::Discard(UpcReason::Peak);
        }
        let mut verdict = Verdict::Pass;
        match &mut self.second {
            Some(second) => {
                let tested = !(self.clp0 && clp);
                if tested && second.conforms_within(now, rounding) {
                    second.update(now);
                } else if tested {
                    if !self.tag {
                        return Verdict::Discard(self.reason);
                    }
                    verdict = Verdict::Tag(self.reason);
                }
            }
            None => {
                if self.tag && !clp {
                    verdict = Verdict::Tag(self.reason);
                }
            }
        }
        self.peak.update(now);
        verdict
    }
}

#[cfg(test)]
mod tests {
    use super::super::rate::{CellRate, Pacer};
    use super::*;
    use aerostat_wire::ServiceCategory;
    use proptest::prelude::*;

    fn at(us: u64) -> Instant {
        Instant::from_nanos(us * 1000)
    }

    /// OC-3c, PCR 100 000, tolerance 50 µs gives 7 back-to-back cells: 1 + ⌊τ / (T − δ)⌋, δ being the time of a cell
    /// on the link. Source: Traffic Management 4.0 §4.
    #[test]
    fn back_to_back_cells() {
        let mut gcra = Gcra::new(100_000, Duration::from_micros(50));
        let mut line = Pacer::new(CellRate::OC3);
        let passed = (0..20)
            .take_while(|_| {
                let now = line.at();
                line.step();
                gcra.arrive(now)
            })
            .count();
        assert_eq!(passed, 7);
        assert_eq!(
            burst_tolerance(50_000, 10_000, 200),
            [Duration::from_micros(15_920); 2]
        );
    }

    #[test]
    fn vbr_two_buckets() {
        let traffic = TrafficParams {
            category: Some(ServiceCategory::NrtVbr),
            max_pcr: Some(100_000),
            scr: 10_000,
            mbs: 5,
            max_cdv: Duration::from_micros(1),
            ..TrafficParams::none()
        };
        let run = |tag| {
            let traffic = TrafficParams {
                clp0: tag,
                tagging: tag,
                ..traffic
            };
            let mut policer = Policer::new(&traffic, Policing::Guaranteed, DEFAULT_CDVT).unwrap();
            (0..7)
                .map(|i| policer.police(false, at(10 * i), 0))
                .collect::<Vec<_>>()
        };
        use Verdict::{Discard, Pass, Tag};
        let why = UpcReason::Sustained;
        let [discard, tag] = [Discard(why), Tag(why)];
        assert_eq!(run(false), [Pass, Pass, Pass, Pass, Pass, discard, discard]);
        assert_eq!(run(true), [Pass, Pass, Pass, Pass, Pass, tag, tag]);
    }

    proptest! {
        /// Virtual scheduling and the continuous-state leaky bucket decide alike.
        #[test]
        fn leaky_bucket_agrees(gaps in proptest::collection::vec(0_u64..40, 1..200), limit in 0_u64..60) {
            let mut gcra = Gcra::new(50_000, Duration::from_micros(limit));
            let (mut level, mut last, mut now) = (0_i64, 0_i64, 1_000_u64);
            for gap in gaps {
                now += gap;
                let drained = (level - (now as i64 - last)).max(0);
                let conforms = drained <= limit as i64;
                if conforms {
                    (level, last) = (drained + 20, now as i64);
                }
                prop_assert_eq!(gcra.arrive(at(now)), conforms);
            }
        }

        /// A run that is policed at once leaves the same state as its cells one by one, to the last fraction.
        #[test]
        fn a_run_at_once_is_its_cells_one_by_one(
            (rate, line) in (1_u32..5_000_000, 1_u64..5_000_000),
            near in any::<bool>(),
            limit in 0_u64..2_000_000,
            runs in proptest::collection::vec((0_u64..3_000_000, 2_u16..200, 0_u16..9), 1..30),
        ) {
            let line = if near { u64::from(rate) + line % 3 } else { line };
            let mut cells = Gcra::new(rate, Duration::from_nanos(limit));
            let mut now = 0;
            for (gap, count, first) in runs {
                now += gap;
                let times = Timing::even(Instant::from_nanos(now), 0, CellRate::of_ratio(line * 3, 7));
                let at_once = times.even_run(first, count).and_then(|run| cells.after(&run, 0));
                let mut all = true;
                for at in times.from(first).take(count.into()) {
                    all &= cells.arrive(at);
                }
                if let Some(at_once) = at_once {
                    prop_assert!(all);
                    let state = |gcra: &Gcra| (gcra.nanos, gcra.fraction);
                    prop_assert_eq!(state(&at_once), state(&cells));
                }
            }
        }
    }
}
