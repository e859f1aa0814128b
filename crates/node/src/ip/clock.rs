//! The clock of a host: it may be late, and it may run fast or slow.
//!
//! Clocks of hosts are not those of the lab: they are set at different times, and quartzes differ by some ten
//! millionths. The stack of a host with such a clock, its programs and its TCP measure all time by it. A receiver that
//! compares its own clock with the stamp of the sender finds a delay that contains the difference of the two clocks.

use aerostat_proto::{Duration, Instant};

const BILLION: i128 = 1_000_000_000;

/// A clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    /// How late it is.
    pub phase: Duration,
    /// How much faster it runs, in billionths; negative if it is slow. Between ±[`Self::MOST`].
    pub ppb: i32,
}

impl Clock {
    /// Largest error of the frequency: 1000 ppm.
    pub const MOST: i32 = 1_000_000;

    /// Time of the lab's clock in units of this one, without the phase.
    fn scaled(self, at: Instant) -> i128 {
        let nanos = i128::from(at.as_nanos());
        nanos + (nanos * i128::from(self.ppb)).div_euclid(BILLION)
    }

    fn late(self) -> i128 {
        i128::try_from(self.phase.as_nanos()).unwrap_or(i128::MAX)
    }

    /// True if it shows the time of the lab.
    #[must_use]
    pub const fn is_the_labs(self) -> bool {
        self.ppb == 0 && self.phase.is_zero()
    }

    /// Time of this clock; 0 while it is late by more than the time since the start of the run.
    #[must_use]
    pub fn local(self, at: Instant) -> Instant {
        if self.is_the_labs() {
            return at;
        }
        instant(self.scaled(at) - self.late())
    }

    /// Time of this clock when a program starts that the lab starts at `at`, and that goes by this clock: the program
    /// starts as late as the clock is.
    #[must_use]
    pub fn start(self, at: Instant) -> Instant {
        instant(self.scaled(at))
    }

    /// The earliest time of the lab at which this clock shows `local`.
    #[must_use]
    pub fn of_lab(self, local: Instant) -> Instant {
        if self.is_the_labs() {
            return local;
        }
        let shown = i128::from(local.as_nanos()).saturating_add(self.late());
        let rate = BILLION + i128::from(self.ppb);
        let mut at = instant(shown.saturating_mul(BILLION).div_euclid(rate));
        // Rounding down twice may be a nanosecond early.
        while self.local(at) < local && at.as_nanos() < u64::MAX {
            at = Instant::from_nanos(at.as_nanos() + 1);
        }
        at
    }
}

fn instant(nanos: i128) -> Instant {
    let nanos = nanos.clamp(0, u64::MAX.into());
    Instant::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_fast_clock_gains_and_a_late_one_is_behind() {
        let clock = Clock {
            phase: Duration::from_millis(3),
            ppb: 50_000,
        };
        // 50 ppm are 500 µs in 10 s.
        let at = Instant::from_secs(10);
        assert_eq!(clock.local(at).as_nanos(), 10_000_500_000 - 3_000_000);
        assert_eq!(clock.start(at).as_nanos(), 10_000_500_000);
        assert_eq!(clock.local(Instant::ZERO), Instant::ZERO);
    }

    proptest! {
        #[test]
        fn a_time_of_the_clock_comes_at_the_first_time_of_the_lab_that_shows_it(
            ppb in -Clock::MOST..=Clock::MOST,
            phase in 0_u64..10_000_000_000,
            local in 1_u64..1 << 50,
        ) {
            let clock = Clock { phase: Duration::from_nanos(phase), ppb };
            let local = Instant::from_nanos(local);
            let at = clock.of_lab(local);
            prop_assert!(clock.local(at) >= local);
            prop_assert!(clock.local(Instant::from_nanos(at.as_nanos() - 1)) < local);
        }
    }
}
