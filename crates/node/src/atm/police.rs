//! The generic cell rate algorithm, and usage parameter control built from it.
//!
//! Standards: I.371, Traffic Management 4.0 §4 (GCRA by virtual scheduling; conformance definitions).
//! Not implemented: frame-based GCRA for GFR, dynamic GCRA for ABR.

use super::rate::{CellRate, Pacer};
use aerostat_proto::{Duration, Instant};
use aerostat_wire::{ServiceCategory, TrafficParams};

/// Cell delay variation tolerance of contracts that do not give a tolerance.
pub const DEFAULT_CDVT: Duration = Duration::from_micros(250);

/// The tolerance for cells from a program outside the network. That program, and the process that reads from it, may
/// have to wait for a processor; cells that are sent in the meantime arrive together.
pub const OUTSIDE_CDVT: Duration = Duration::from_millis(250);

/// GCRA(I, L): increment 1/rate, limit L.
#[derive(Clone, Copy, Debug)]
pub struct Gcra {
    /// Theoretical arrival time.
    tat: Pacer,
    limit: u64,
}

impl Gcra {
    /// A GCRA with increment 1/`rate` and `limit`.
    #[must_use]
    pub fn new(rate: CellRate, limit: Duration) -> Self {
        Self {
            tat: Pacer::new(rate),
            limit: u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX),
        }
    }
    /// True if a cell that arrives at `now` conforms. The state is unchanged.
    #[must_use]
    pub const fn conforms(&self, now: Instant) -> bool {
        now.as_nanos().saturating_add(self.limit) >= self.tat.at().as_nanos()
    }
    /// Updates the state for a conforming cell.
    pub const fn update(&mut self, now: Instant) {
        self.tat.not_before(now);
        self.tat.step();
    }
    /// Tests a cell, and updates the state if the cell conforms.
    pub const fn arrive(&mut self, now: Instant) -> bool {
        let conforms = self.conforms(now);
        if conforms {
            self.update(now);
        }
        conforms
    }
}

/// Burst tolerance: `(MBS - 1) (1/SCR - 1/PCR)`.
#[must_use]
pub fn burst_tolerance(pcr: u32, scr: u32, mbs: u32) -> Duration {
    if scr == 0 || pcr <= scr {
        return Duration::ZERO;
    }
    let (pcr, scr, mbs) = (u128::from(pcr), u128::from(scr), u128::from(mbs));
    let nanos = mbs.saturating_sub(1) * 1_000_000_000 * (pcr - scr) / (pcr * scr);
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// The tolerance of a contract.
#[must_use]
pub fn cdvt(traffic: &TrafficParams) -> Duration {
    match traffic.max_cdv {
        0 => DEFAULT_CDVT,
        micros => Duration::from_micros(micros.into()),
    }
}

/// The policer's decision on a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The cell conforms.
    Pass,
    /// The cell is forwarded with CLP 1.
    Tag,
    /// The cell is discarded.
    Discard,
}

/// Usage parameter control of one connection.
#[derive(Clone, Debug)]
pub struct Policer {
    peak: Gcra,
    /// Applied to cells with CLP 0 only if `sustained_clp0`.
    sustained: Option<Gcra>,
    sustained_clp0: bool,
    tag: bool,
}

impl Policer {
    /// A policer for a contract of CBR or VBR (CBR.1, VBR.1, or VBR.3 with `tag`); `None` for best effort, which is not
    /// policed. The cell delay variation tolerance is that of the contract; `unsaid` is used if the contract does not
    /// give a tolerance.
    #[must_use]
    pub fn new(traffic: &TrafficParams, tag: bool, unsaid: Duration) -> Option<Self> {
        let pcr = traffic.max_pcr?;
        let tolerance = match traffic.max_cdv {
            0 => unsaid,
            _ => cdvt(traffic),
        };
        let sustained = match traffic.category? {
            ServiceCategory::Cbr => None,
            ServiceCategory::RtVbr | ServiceCategory::NrtVbr => (traffic.scr > 0).then(|| {
                let burst = burst_tolerance(pcr, traffic.scr, traffic.mbs);
                Gcra::new(CellRate::of_cells(traffic.scr), burst + tolerance)
            }),
            ServiceCategory::Abr | ServiceCategory::Gfr | ServiceCategory::Ubr => return None,
        };
        Some(Self {
            peak: Gcra::new(CellRate::of_cells(pcr), tolerance),
            sustained_clp0: tag,
            sustained,
            tag,
        })
    }
    /// Polices one cell. With tagging, CBR cells above the peak are tagged, too (CBR.3).
    pub fn police(&mut self, clp: bool, now: Instant) -> Verdict {
        if !self.peak.conforms(now) {
            let tags = self.tag && self.sustained.is_none() && !clp;
            return if tags { Verdict::Tag } else { Verdict::Discard };
        }
        let mut verdict = Verdict::Pass;
        if let Some(sustained) = &mut self.sustained
            && !(self.sustained_clp0 && clp)
            && !sustained.arrive(now)
        {
            if !self.tag {
                return Verdict::Discard;
            }
            verdict = Verdict::Tag;
        }
        self.peak.update(now);
        verdict
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(us: u64) -> Instant {
        Instant::from_nanos(us * 1000)
    }

    /// OC-3c, PCR 100 000, tolerance 50 µs gives 7 back-to-back cells: 1 + ⌊τ / (T − δ)⌋, δ being the time of a cell
    /// on the link. Source: Traffic Management 4.0 §4.
    #[test]
    fn back_to_back_cells() {
        let mut gcra = Gcra::new(CellRate::of_cells(100_000), Duration::from_micros(50));
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
            Duration::from_micros(15_920)
        );
    }

    #[test]
    fn vbr_two_buckets() {
        let traffic = TrafficParams {
            category: Some(ServiceCategory::NrtVbr),
            max_pcr: Some(100_000),
            scr: 10_000,
            mbs: 5,
            max_cdv: 1,
            ..TrafficParams::none()
        };
        let run = |tag| {
            let mut policer = Policer::new(&traffic, tag, DEFAULT_CDVT).unwrap();
            (0..7)
                .map(|i| policer.police(false, at(10 * i)))
                .collect::<Vec<_>>()
        };
        use Verdict::{Discard, Pass, Tag};
        assert_eq!(run(false), [Pass, Pass, Pass, Pass, Pass, Discard, Discard]);
        assert_eq!(run(true), [Pass, Pass, Pass, Pass, Pass, Tag, Tag]);
        assert!(Policer::new(&TrafficParams::ubr(0), false, DEFAULT_CDVT).is_none());
    }

    proptest! {
        /// Virtual scheduling and the continuous-state leaky bucket decide alike.
        #[test]
        fn leaky_bucket_agrees(gaps in proptest::collection::vec(0_u64..40, 1..200), limit in 0_u64..60) {
            let mut gcra = Gcra::new(CellRate::of_cells(50_000), Duration::from_micros(limit));
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
    }
}
