//! Nominal times of cells that a driver moves as one run.
//!
//! A driver in frame mode hands all cells of a PDU over when the first one leaves. On a line they would come one by one, so
//! whoever judges cells by their times (a policer) must not take the hand-over as the time of each. A [`Timing`] says when
//! the *source* of the cells sends each of them: a shaper by its calendar, a link out of the lab at its line rate. It travels
//! with the run unchanged. The way from the source to a switch is the same for all cells of a connection, and the generic
//! cell rate algorithm looks at differences of times alone, so times at the source judge as well as those of arrival, without
//! the coarse turns that runs take at queues.
//!
//! A driver that moves cells one by one needs none of this: a cell without a timing counts when it arrives.

use super::rate::{CellRate, Pacer};
use aerostat_proto::{Duration, Instant};

/// When the cells of a run are sent by their source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Time of the cell `origin`.
    start: Instant,
    /// Index of a cell in its PDU; 0 for a cell without a PDU.
    origin: u16,
    /// Cells follow each other at this rate,
    pace: CellRate,
    /// but not before these times: of the cell `origin`, in nanoseconds (a burst begins in the past), and the rate from there on.
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
    /// Cells spread evenly from `start` to `end`: `count` of them, from index 0 on.
    #[must_use]
    pub fn spread(start: Instant, end: Instant, count: u16) -> Self {
        let span = u64::try_from(end.since(start).as_nanos()).unwrap_or(u64::MAX);
        let gaps = u64::from(count.saturating_sub(1));
        Self::even(start, 0, CellRate::of_ratio(gaps * 1_000_000_000, span))
    }
    /// Besides, cell `origin` + i is not sent before `first` + i cell times of `rate`; `first` in nanoseconds.
    #[must_use]
    pub const fn not_faster_than(mut self, first: i64, rate: CellRate) -> Self {
        self.sustained = Some((first, rate));
        self
    }
    /// Time of the cell with this index in its PDU. Cells before the first known one count with it.
    #[must_use]
    pub fn of(&self, index: u16) -> Instant {
        let later = u64::from(index.saturating_sub(self.origin));
        let peak = self.start + self.pace.time_of(later);
        let Some((first, rate)) = self.sustained else {
            return peak;
        };
        let after = i128::try_from(rate.time_of(later).as_nanos()).unwrap_or(i128::MAX);
        let nanos = u64::try_from(i128::from(first).saturating_add(after).max(0));
        peak.max(Instant::from_nanos(nanos.unwrap_or(u64::MAX)))
    }
}

/// The line by which cells come from a source that does not say when it sent them: one cell after the other, at the
/// line's rate, none before it is there.
#[derive(Clone, Copy, Debug)]
pub struct Arrivals {
    line: Pacer,
    rate: CellRate,
}

impl Arrivals {
    /// A line that was never used.
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
    /// Cells are there at `now`; gives the times at which they came, the first of them with index 0.
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
    /// How far what came is ahead of `now`.
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
        // One cell, and cells all at once.
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
