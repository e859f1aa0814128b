//! Other work of a host that takes its CPU now and then: interrupts of other devices, and programs that wake up.
//!
//! Interruptions begin at random times, and each takes a random time; both are exponential, with a mean. A packet in
//! service waits for their end, as one that comes meanwhile does. They run whether the CPU has packets or not.

use crate::random;
use aerostat_proto::{Duration, Instant};
use rand_pcg::Pcg32;

/// Picoseconds of a nanosecond.
const NANO: u128 = 1000;

/// How often the CPU is interrupted, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interruptions {
    /// Mean time from the end of one to the beginning of the next.
    pub every: Duration,
    /// Mean time of one.
    pub length: Duration,
}

/// Interruptions of a CPU as time goes on.
#[derive(Debug)]
pub(super) struct Interrupted {
    means: Interruptions,
    random: Pcg32,
    /// Beginning and end of the next one, or of the one that lasts, picoseconds.
    next: (u128, u128),
}

impl Interrupted {
    /// Interruptions of a CPU that was switched on at `now`.
    pub(super) fn new(means: Interruptions, seed: u64, now: Instant) -> Self {
        let mut all = Self {
            means,
            random: random::stream(seed, "cpu", "interruptions"),
            next: (0, u128::from(now.as_nanos()) * NANO),
        };
        all.advance();
        all
    }

    /// Time that work takes which begins at `begins`, picoseconds, like the work. Later calls have later beginnings.
    pub(super) fn takes(&mut self, begins: Instant, work: u128) -> u128 {
        let begins = u128::from(begins.as_nanos()) * NANO;
        let mut ends = begins + work;
        while work > 0 && self.next.0 < ends {
            let (from, to) = self.next;
            ends += to.saturating_sub(from.max(begins));
            if to > ends {
                break;
            }
            self.advance();
        }
        ends - begins
    }

    fn advance(&mut self) {
        let mut time = |mean: Duration| {
            let picos = mean.as_nanos() as f64 * NANO as f64;
            (random::exponential(&mut self.random) * picos) as u128
        };
        let begins = self.next.1 + time(self.means.every);
        self.next = (begins, begins + time(self.means.length));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn means(every: u64, length: u64) -> Interruptions {
        Interruptions {
            every: Duration::from_micros(every),
            length: Duration::from_micros(length),
        }
    }

    #[test]
    fn work_takes_longer_by_the_share_of_the_interruptions() {
        // A CPU that always works has 10 of 11 parts of its time.
        let mut all = Interrupted::new(means(1000, 100), 1, Instant::ZERO);
        let work = 50_000_000;
        let mut now = 0;
        for _ in 0..200_000 {
            now += all.takes(Instant::from_nanos((now / NANO) as u64), work);
        }
        let share = 200_000.0 * work as f64 / now as f64;
        assert!((share - 10.0 / 11.0).abs() < 0.002, "{share}");
    }

    #[test]
    fn an_interruption_of_an_idle_cpu_is_over_or_delays_what_comes_meanwhile() {
        let mut all = Interrupted::new(means(1000, 100), 3, Instant::ZERO);
        let (from, to) = all.next;
        // Just before it: not touched. Nothing takes no time. In its middle: until its end.
        let before = Instant::from_nanos((from / NANO) as u64 - 2);
        assert_eq!(all.takes(before, NANO), NANO);
        let middle = u64::try_from((from + to) / 2 / NANO).unwrap();
        assert_eq!(all.takes(Instant::from_nanos(middle), 0), 0);
        let waits = to - u128::from(middle) * NANO;
        assert_eq!(all.takes(Instant::from_nanos(middle), 7), waits + 7);
        // The next one takes the CPU from what it finds there.
        let (from, to) = all.next;
        let before = Instant::from_nanos((from / NANO) as u64);
        assert_eq!(all.takes(before, 5000), to - from + 5000);
    }

    #[test]
    fn the_same_seed_has_the_same_interruptions_and_another_one_others() {
        let of = |seed| {
            let mut all = Interrupted::new(means(1000, 100), seed, Instant::ZERO);
            all.takes(Instant::ZERO, 1_000_000_000_000)
        };
        assert_eq!(of(5), of(5));
        assert_ne!(of(5), of(6));
    }
}
