//! The leaky-bucket shaper of one VC: it decides when the next cell may leave.
//!
//! Cells leave on a calendar of exact 1/PCR steps. A cell that other traffic holds up does not move the
//! calendar by more than half the delay variation tolerance, so the mean rate holds and the output still
//! conforms to GCRA(1/PCR, tolerance). A VC that was idle starts a new calendar: no credit is saved up.
//! VBR adds a sustainable-rate bucket whose limit is the burst tolerance.
//!
//! **Real time.** A driver may handle a departure late, by its own clock. The cells that were due in the meantime then
//! leave together, and outside the network they are a burst. So [`Shaper::sent`] takes the driver's clock, too, and the
//! calendar is never more than the *credit* behind that clock. Proof that the cells conform: let e be the time of a
//! cell by the calendar, W >= e the clock when it leaves, T = 1/PCR, and c the credit. If the theoretical arrival time
//! of GCRA(T, L) is at most e + c, the next one is at most max(e + c, W) + T, which is max(e, W - c) + T + c, and
//! max(e, W - c) + T is the next time by the calendar. The cells of one turn leave up to [`Shaper::early`] before their
//! times, so L is the sum of both: the tolerance of the contract, or [`LATE_CDVT`] if the contract gives none. The time
//! by which a stall moves the calendar is lost: [`Shaper::lost`].

use super::police::{burst_tolerance, cdvt};
use super::rate::{CellRate, Pacer};
use super::timing::Timing;
use aerostat_proto::{Duration, Instant};
use aerostat_wire::{ServiceCategory, TrafficParams};

/// Tolerance of cells of a contract without a tolerance at a link out of the lab in real time. An operating system that
/// is not for real time lets a process wait for longer than the 250 µs that such contracts have elsewhere, and each
/// such wait would cost rate (docs/traffic.md, "Shaping in real time").
pub const LATE_CDVT: Duration = Duration::from_millis(1);

/// The longest time that the cells of a turn take at the rate of a shaper.
const EARLY: Duration = Duration::from_micros(50);

/// Shaper of one VC.
#[derive(Clone, Debug)]
pub struct Shaper {
    peak: Pacer,
    peak_rate: CellRate,
    sustained_rate: CellRate,
    /// Nanoseconds by which a cell that other traffic held up may leave behind the calendar: half the tolerance.
    slack: u64,
    /// Nanoseconds by which the calendar may be behind the clock of a late driver.
    credit: u64,
    sustained: Option<(Pacer, u64)>,
    /// Nanoseconds by which a late driver moved the calendar.
    lost: u64,
    /// Nanoseconds by which the last departure moved it: lost if the next cell could have left before.
    moved: u64,
}

impl Shaper {
    /// A shaper for the contract of a sender; `None` if the sender may send at line rate. All its cells count as cells
    /// with CLP 0.
    #[must_use]
    pub fn new(traffic: &TrafficParams) -> Option<Self> {
        let tolerance = cdvt(traffic);
        let late = match traffic.tightest_cdv().is_zero() {
            true => tolerance.max(LATE_CDVT),
            false => tolerance,
        };
        Self::of(traffic, tolerance, late)
    }
    /// The same, with this tolerance instead of that of the contract.
    #[must_use]
    pub fn with_tolerance(traffic: &TrafficParams, tolerance: Duration) -> Option<Self> {
        Self::of(traffic, tolerance, tolerance)
    }
    /// A shaper with the tolerance that its cells keep, and with the one that they keep if the driver is late.
    fn of(traffic: &TrafficParams, tolerance: Duration, late: Duration) -> Option<Self> {
        let pcr = match (traffic.peak(), traffic.pcr0) {
            (all, 0) => all?,
            (all, pcr0) => all.map_or(pcr0, |all| all.min(pcr0)),
        };
        let nanos = |d: Duration| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX);
        let vbr = matches!(
            traffic.category,
            Some(ServiceCategory::RtVbr | ServiceCategory::NrtVbr)
        );
        let slack = nanos(tolerance) / 2;
        Some(Self {
            peak: Pacer::new(CellRate::of_cells(pcr)),
            peak_rate: CellRate::of_cells(pcr),
            sustained_rate: CellRate::of_cells(traffic.scr),
            slack,
            credit: nanos(late).saturating_sub(nanos(EARLY.min(Duration::from_nanos(slack)))),
            sustained: (vbr && traffic.scr > 0).then(|| {
                let [burst, _] = burst_tolerance(pcr, traffic.scr, traffic.mbs);
                (Pacer::new(CellRate::of_cells(traffic.scr)), nanos(burst))
            }),
            lost: 0,
            moved: 0,
        })
    }
    /// The rate of a queue that never runs empty: the sustainable rate of VBR, the peak rate of others.
    #[must_use]
    pub const fn mean_rate(&self) -> CellRate {
        match self.sustained {
            Some(_) => self.sustained_rate,
            None => self.peak_rate,
        }
    }
    /// Called when the VC was empty and gets a cell at `now`; returns when that cell may leave.
    pub fn wake(&mut self, now: Instant) -> Instant {
        // A time in which no cell waited is not lost.
        self.moved = self.moved.min(until(now, self.mean().at_floor()));
        self.peak.not_before(now);
        self.eligible()
    }
    /// The calendar of the mean rate: of the sustainable rate of VBR, of the peak rate of others.
    fn mean(&self) -> &Pacer {
        self.sustained.as_ref().map_or(&self.peak, |(tat, _)| tat)
    }
    /// How much earlier than by its calendar a cell may leave together with others of its turn: 50 µs, or half the
    /// tolerance if that is less.
    #[must_use]
    pub fn early(&self) -> Duration {
        EARLY.min(Duration::from_nanos(self.slack))
    }
    /// How far the calendar may be behind the clock of a late driver: the tolerance of the contract, or [`LATE_CDVT`],
    /// less [`Self::early`]. A stall that is not longer costs nothing.
    #[must_use]
    pub const fn credit(&self) -> Duration {
        Duration::from_nanos(self.credit)
    }
    /// Sending time that the VC lost because the driver was late by more than [`Self::credit`], or for VBR by more than
    /// that and the burst tolerance, while cells waited. Multiplied by [`Self::mean_rate`] it is the cells that could
    /// have left. The loss that the last departure caused counts when the next cell leaves. Always 0 in virtual time.
    #[must_use]
    pub const fn lost(&self) -> Duration {
        Duration::from_nanos(self.lost)
    }
    /// When the next cell may leave.
    #[must_use]
    pub fn eligible(&self) -> Instant {
        let peak = self.peak.at();
        match &self.sustained {
            Some((tat, burst)) => peak.max(Instant::from_nanos(
                tat.at().as_nanos().saturating_sub(*burst),
            )),
            None => peak,
        }
    }
    /// The earliest time of the cell that follows the next `count` cells.
    #[must_use]
    pub fn after(&self, count: u32) -> Instant {
        let mut later = self.clone();
        let count = u16::try_from(count).unwrap_or(u16::MAX);
        later.peak.advance(count);
        if let Some((tat, _)) = &mut later.sustained {
            tat.advance(count);
        }
        later.eligible()
    }
    /// A number of cells, at most `most`, that all may leave before `end`; at least 1.
    #[must_use]
    pub fn most_before(&self, end: Instant, mut most: u16) -> u16 {
        while most > 1 && self.after(u32::from(most) - 1) >= end {
            most /= 2;
        }
        most.max(1)
    }
    /// The times of the calendar for cells that leave from `start` on, for a driver that moves them as one run. The
    /// first cell has index `origin` in its PDU. Call this before [`Self::sent`].
    #[must_use]
    pub fn calendar(&self, start: Instant, origin: u16) -> Timing {
        let earliest = Instant::from_nanos(start.as_nanos().saturating_sub(self.slack));
        let first = self.eligible().max(earliest);
        let timing = Timing::even(first, origin, self.peak_rate);
        match &self.sustained {
            Some((tat, burst)) => {
                let tat = tat.at().max(first).as_nanos();
                let first = i64::try_from(i128::from(tat) - i128::from(*burst));
                timing.not_faster_than(first.unwrap_or(i64::MAX), self.sustained_rate)
            }
            None => timing,
        }
    }
    /// Records that `count` cells leave from `start` on, and that the clock of the driver shows `clock` then: in
    /// virtual time `start`, in real time `start` or later.
    pub fn sent(&mut self, start: Instant, clock: Instant, count: u16) {
        self.lost = self.lost.saturating_add(core::mem::take(&mut self.moved));
        let earliest = start.as_nanos().saturating_sub(self.slack);
        self.peak.not_before(Instant::from_nanos(earliest));
        if let Some((tat, _)) = &mut self.sustained {
            tat.not_before(start);
        }
        if clock > start {
            self.stalled(clock);
        }
        self.peak.advance(count);
        if let Some((tat, _)) = &mut self.sustained {
            tat.advance(count);
        }
    }
    /// Moves a calendar that is more than the credit behind the driver's clock.
    fn stalled(&mut self, clock: Instant) {
        let latest = Instant::from_nanos(clock.as_nanos().saturating_sub(self.credit));
        self.moved = until(self.mean().at_floor(), latest);
        self.peak.not_before(latest);
        if let Some((tat, _)) = &mut self.sustained {
            tat.not_before(latest);
        }
    }
}

/// Nanoseconds from one time to a later one; 0 if it is not later.
const fn until(from: Instant, to: Instant) -> u64 {
    to.as_nanos().saturating_sub(from.as_nanos())
}

#[cfg(test)]
mod tests {
    use super::super::police::{DEFAULT_CDVT, Policer, Policing, Verdict};
    use super::*;
    use crate::atm::police::Gcra;

    #[test]
    fn a_sustainable_rate_without_a_peak_rate_is_shaped_as_it_is_policed() {
        let traffic: TrafficParams = "nrt-vbr:scr=1000,mbs=10".parse().unwrap();
        let mut shaper = Shaper::new(&traffic).unwrap();
        let mut policer = Policer::new(&traffic, Policing::Guaranteed, DEFAULT_CDVT).unwrap();
        let mut now = shaper.wake(Instant::from_secs(1));
        for _ in 0..1000 {
            assert_eq!(policer.police(false, now, 0), Verdict::Pass);
            shaper.sent(now, now, 1);
            now = shaper.eligible();
        }
        // After a burst of 10 cells, cell n leaves n - 9 milliseconds after the first.
        assert_eq!(now.since(Instant::from_secs(1)).as_millis(), 991);
    }

    #[test]
    fn a_delayed_cell_does_not_cost_rate() {
        let traffic = TrafficParams::cbr(80_000, 0);
        let mut shaper = Shaper::new(&traffic).unwrap();
        let mut upc = Gcra::new(80_000, cdvt(&traffic));
        let mut now = shaper.wake(Instant::from_nanos(77));
        for cell in 0..80_000 {
            // Other traffic delays every third cell by one slot.
            let start = Instant::from_nanos(now.as_nanos() + if cell % 3 == 0 { 2832 } else { 0 });
            assert!(upc.arrive(start));
            shaper.sent(start, start, 1);
            now = shaper.eligible();
        }
        assert_eq!(now, Instant::from_nanos(1_000_000_077));
        assert_eq!(shaper.wake(Instant::from_secs(3)), Instant::from_secs(3));
    }

    #[test]
    fn vbr_sends_a_burst_then_the_sustainable_rate() {
        let traffic = TrafficParams {
            category: Some(ServiceCategory::NrtVbr),
            max_pcr: Some(100_000),
            scr: 10_000,
            mbs: 5,
            ..TrafficParams::none()
        };
        let mut shaper = Shaper::new(&traffic).unwrap();
        let mut times = Vec::new();
        let mut now = shaper.wake(Instant::from_secs(1));
        for _ in 0..8 {
            times.push(now.as_nanos() / 1000 - 1_000_000);
            shaper.sent(now, now, 1);
            now = shaper.eligible();
        }
        assert_eq!(times, [0, 10, 20, 30, 40, 140, 240, 340]);
    }
}
