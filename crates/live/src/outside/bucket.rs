//! The limit of a peer outside: the rate of its link, and bursts.
//!
//! A real line carries no more than its rate, but TCP and UDP may. The bucket is the generic cell rate algorithm of
//! I.371 over the whole line: a point in time advances by one cell time for each cell and may be at most `BURST` and
//! `BURST_CELLS` cell times ahead. The burst is generous, because a program that had to wait for a processor gets all
//! cells of that time at once. Policers in the network use the times that the bucket assigns to the cells: one after
//! another at the line's rate.

use aerostat_node::atm::{Arrivals, CellRate, Timing};
use aerostat_proto::{Duration, Instant};

/// Size of a burst: the cells of this time at the line's rate, plus this many cells.
const BURST: Duration = Duration::from_millis(250);
const BURST_CELLS: u64 = 4096;

/// Compares received cells with a rate.
pub(crate) struct Bucket {
    burst: Duration,
    /// When a line of this rate would have carried all charged cells.
    line: Arrivals,
}

impl Bucket {
    pub(crate) fn new(rate: CellRate) -> Self {
        Self {
            burst: BURST + rate.time_of(BURST_CELLS),
            line: Arrivals::new(rate),
        }
    }

    /// Charges `cells`, even above the limit; returns the times at which a line of this rate would bring them.
    pub(crate) fn charge(&mut self, cells: u64, now: Instant) -> Timing {
        self.line.take(cells, now)
    }

    /// Charges a cell if it is within the limit; returns the time at which a line of this rate would bring it.
    pub(crate) fn take(&mut self, now: Instant) -> Option<Instant> {
        let room = self.full_until(now).is_none();
        room.then(|| self.charge(1, now).of(0))
    }

    /// When the bucket has room again; `None` if it has room now.
    pub(crate) fn full_until(&self, now: Instant) -> Option<Instant> {
        let ahead = self.line.ahead(now);
        ahead
            .checked_sub(self.burst)
            .filter(|over| !over.is_zero())
            .map(|over| now + over)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_pass_and_the_rate_is_kept() {
        let mut bucket = Bucket::new(CellRate::of_cells(1000));
        let mut passed = 0;
        for ms in 0..10_000 {
            let now = Instant::ZERO + Duration::from_millis(ms);
            // Ten times the rate.
            passed += (0..10).filter(|_| bucket.take(now).is_some()).count();
        }
        let burst = 250 + BURST_CELLS as usize;
        assert!(
            (10_000 + burst..10_010 + burst).contains(&passed),
            "{passed}"
        );
        let now = Instant::ZERO + Duration::from_secs(10);
        let again = bucket.full_until(now);
        assert!(again.is_none_or(|at| at <= now + Duration::from_millis(2)));
        bucket.charge(1000, now);
        let at = bucket.full_until(now).unwrap();
        assert!(at >= now + Duration::from_millis(900));
        assert!(bucket.full_until(at).is_none());
        assert!(bucket.take(at).is_some());
    }
}
