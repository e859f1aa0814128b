//! Nominal times of cells that a driver moves as one run.
//!
//! A driver in real time hands over all cells of a turn when the first one leaves. On a line the cells would come one
//! by one, so a policer must not take the time of this hand-over as the arrival time of each cell. A [`Timing`] tells
//! when the *source* of the cells sends each of them: a shaper by its calendar, a link out of the lab at its line rate.
//! The timing travels with the run unchanged. The path from the source to a switch is the same for all cells of a
//! connection, and the generic cell rate algorithm depends on time differences alone. So times at the source give the
//! same verdicts as arrival times, without the coarse turns that runs take at queues.
//!
//! A driver that moves cells one by one needs no timing: a cell without a timing counts at its arrival.

use super::rate::{CellRate, Pacer};
use aerostat_proto::{Duration, Instant};

/// The times at which the source sends the cells of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Time of the cell `origin`.
    start: Instant,
    /// Index of a cell in its PDU; 0 for a cell without a PDU.
    origin: u16,
    /// The rate at which cells follow each other.
    pace: CellRate,
    /// Additional lower bound: the time of the cell `origin` in nanoseconds (a burst begins in the past), and the rate
    /// from there on.
    sustained: Option<(i64, CellRate)>,
}

impl Timing {
    /// Cells at even distances; `start` is the time of the cell with index `origin`.
    #[must_use]
    pub const fn even(start: Instant, origin: u16, pace: CellRate) -> Self {
        Self {
            start,
            origin,
            pace,
            sustained: None,
        }
    }
    /// `count` cells, spread evenly from `start` to `end`; the first has index 0.
    #[must_use]
    pub fn spread(start: Instant, end: Instant, count: u16) -> Self {
        let span = u64::try_from(end.since(start).as_nanos()).unwrap_or(u64::MAX);
        let gaps = u64::from(count.saturating_sub(1));
        Self::even(start, 0, CellRate::of_ratio(gaps * 1_000_000_000, span))
    }
    /// Adds a lower bound: cell `origin` + i is not sent before `first` + i cell times of `rate`; `first` is in
    /// nanoseconds.
    #[must_use]
    pub const fn not_faster_than(mut self, first: i64, rate: CellRate) -> Self {
        self.sustained = Some((first, rate));
        self
    }
    /// The time of a cell and of those behind it, without the divisions of [`Self::of`].
    pub fn from(&self, index: u16) -> impl Iterator<Item = Instant> {
        let mut peak = Pacer::new(self.pace);
        peak.advance(index.saturating_sub(self.origin));
        let mut sustained = self.sustained.map(|(first, rate)| {
            let mut pacer = Pacer::new(rate);
            pacer.advance(index.saturating_sub(self.origin));
            (first, pacer)
        });
        let timing = *self;
        (index..=u16::MAX).map(move |index| {
            let mut at =
                Instant::from_nanos(timing.start.as_nanos().saturating_add(peak.at().as_nanos()));
            if let Some((first, pacer)) = &sustained {
                let after = i128::from(pacer.at().as_nanos());
                let nanos = u64::try_from(i128::from(*first).saturating_add(after).max(0));
                at = at.max(Instant::from_nanos(nanos.unwrap_or(u64::MAX)));
            }
            // All cells up to `origin` have the same time.
            if index >= timing.origin {
                peak.step();
                if let Some((_, pacer)) = &mut sustained {
                    pacer.step();
                }
            }
            at
        })
    }
    /// The times of a run whose cells follow each other at an even pace; `None` if another bound holds, too, or if the
    /// run begins before `origin`.
    #[must_use]
    pub(super) fn even_run(&self, first: u16, count: u16) -> Option<EvenRun> {
        if self.sustained.is_some() || first < self.origin {
            return None;
        }
        let gap = self.pace.denominator().checked_mul(1_000_000_000)?;
        Some(EvenRun {
            first: self.of(first).as_nanos(),
            last: self
                .of(first.saturating_add(count.saturating_sub(1)))
                .as_nanos(),
            gap: gap / self.pace.numerator(),
            count,
        })
    }
    /// The same times, when the index of each cell is less by `before`: those of one PDU of a train.
    #[must_use]
    pub fn from_cell(&self, before: u16) -> Self {
        let later = u64::from(before.saturating_sub(self.origin));
        let after = |rate: CellRate| rate.time_of(later);
        Self {
            start: self.start + after(self.pace),
            origin: self.origin.saturating_sub(before),
            pace: self.pace,
            sustained: self.sustained.map(|(first, rate)| {
                let nanos = i64::try_from(after(rate).as_nanos()).unwrap_or(i64::MAX);
                (first.saturating_add(nanos), rate)
            }),
        }
    }
    /// Time of the cell with this index in its PDU. For cells before `origin`, the time of cell `origin`.
    #[must_use]
    pub fn of(&self, index: u16) -> Instant {
        let later = u64::from(index.saturating_sub(self.origin));
        if later == 0 && self.sustained.is_none() {
            return self.start;
        }
        let peak = self.start + self.pace.time_of(later);
        let Some((first, rate)) = self.sustained else {
            return peak;
        };
        let after = i128::try_from(rate.time_of(later).as_nanos()).unwrap_or(i128::MAX);
        let nanos = u64::try_from(i128::from(first).saturating_add(after).max(0));
        peak.max(Instant::from_nanos(nanos.unwrap_or(u64::MAX)))
    }
}

/// The times of consecutive cells at even distances, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct EvenRun {
    /// The first cell.
    pub(super) first: u64,
    /// The last cell.
    pub(super) last: u64,
    /// From one cell to the next, rounded down.
    pub(super) gap: u64,
    /// Number of cells.
    pub(super) count: u16,
}

/// The input line of a source that does not tell when it sends its cells: the cells follow each other at the line's
/// rate, and no cell is earlier than its arrival here.
#[derive(Clone, Copy, Debug)]
pub struct Arrivals {
    line: Pacer,
    rate: CellRate,
}

impl Arrivals {
    /// An idle line.
    #[must_use]
    pub fn new(rate: CellRate) -> Self {
        Self {
            line: Pacer::new(rate),
            rate,
        }
    }
    /// The rate.
    #[must_use]
    pub const fn rate(&self) -> CellRate {
        self.rate
    }
    /// Takes cells that are present at `now`; returns their times on the line. The first cell has index 0.
    pub fn take(&mut self, cells: u64, now: Instant) -> Timing {
        self.line.not_before(now);
        let timing = Timing::even(self.line.at(), 0, self.rate);
        let mut left = cells;
        while left > 0 {
            let step = u16::try_from(left).unwrap_or(u16::MAX);
            self.line.advance(step);
            left -= u64::from(step);
        }
        timing
    }
    /// How far the line is ahead of `now`.
    #[must_use]
    pub fn ahead(&self, now: Instant) -> Duration {
        self.line.at().since(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_keep_exact_distances() {
        let start = Instant::from_nanos(10);
        let timing = Timing::even(start, 3, CellRate::of_cells(3));
        assert_eq!(timing.of(0), start);
        assert_eq!(timing.of(3), start);
        assert_eq!(timing.of(4), Instant::from_nanos(333_333_344));
        assert_eq!(timing.of(9), Instant::from_nanos(2_000_000_010));
        let spread = Timing::spread(start, Instant::from_nanos(910), 10);
        assert_eq!(
            (spread.of(9), spread.of(1)),
            (Instant::from_nanos(910), Instant::from_nanos(110))
        );
        let late: Vec<_> = timing.from(2).take(8).collect();
        assert_eq!(late, (2..10).map(|n| timing.of(n)).collect::<Vec<_>>());
        // A single cell, and cells that all come at once.
        assert_eq!(Timing::spread(start, start, 1).of(0), start);
        assert!(Timing::spread(start, start, 9).of(8) <= Instant::from_nanos(20));
    }

    #[test]
    fn a_line_takes_one_cell_after_the_other() {
        let mut line = Arrivals::new(CellRate::of_cells(1000));
        let (zero, later) = (Instant::ZERO, Instant::from_secs(1));
        assert_eq!(
            line.take(100_000, zero).of(1),
            Instant::from_nanos(1_000_000)
        );
        assert_eq!(line.ahead(later), Duration::from_secs(99));
        assert_eq!(line.take(1, later).of(0), Instant::from_secs(100));
        assert_eq!(
            line.take(1, Instant::from_secs(200)).of(0),
            Instant::from_secs(200)
        );
    }
}
