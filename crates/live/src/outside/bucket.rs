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

    /// Charges all these cells, if all are within the limit; returns the times at which a line of this rate would bring
    /// them. This costs no more for many cells than for one.
    #[inline]
    pub(crate) fn take_all(&mut self, cells: u16, now: Instant) -> Option<Timing> {
        let mut after = self.line;
        let all = after.take(cells.into(), now);
        (after.ahead(now) <= self.burst).then(|| {
            self.line = after;
            all
        })
    }

    /// Charges as many of these cells as are within the limit. Returns how many they are, and the times at which a line
    /// of this rate would bring them.
    pub(crate) fn take(&mut self, cells: u16, now: Instant) -> (u16, Timing) {
        if let Some(all) = self.take_all(cells, now) {
            return (cells, all);
        }
        let all = { self.line }.take(cells.into(), now);
        let fit = (0..cells).take_while(|_| {
            let room = self.full_until(now).is_none();
            if room {
                self.charge(1, now);
            }
            room
        });
        (fit.count() as u16, all)
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
            // Ten times the rate, one by one and together.
            passed += (0..5).map(|_| bucket.take(1, now).0).sum::<u16>() as usize;
            passed += usize::from(bucket.take(5, now).0);
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
        assert_eq!(bucket.take(1, at).0, 1);
    }
}
