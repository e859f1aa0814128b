//! When to repeat a failed call: soon at first, then less and less often.
//!
//! After a temporary cause ([`Cause::is_temporary`]) the first wait is short, and each further one is twice as long, up
//! to a longest wait. After any other cause the longest wait is used at once. Each wait is drawn between half its
//! length and its full length, so that many stations that failed at the same time do not repeat their calls at the same
//! time.

use crate::mix::mix;
use crate::{Cause, Duration};
use aerostat_wire::AtmAddress;

/// Waits between calls to one destination, or for one purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    seed: u64,
    tries: u32,
    draws: u64,
}

impl Backoff {
    /// The first wait after a temporary cause.
    pub const FIRST: Duration = Duration::from_millis(20);

    /// Waits drawn from `seed`, which must differ between stations.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self {
            seed,
            tries: 0,
            draws: 0,
        }
    }
    /// Waits of the station with this address.
    #[must_use]
    pub fn of(own: &AtmAddress) -> Self {
        let octets = own.0.iter();
        Self::new(octets.fold(0, |seed, octet| mix(seed ^ u64::from(*octet))))
    }
    /// Failures since the last answer.
    #[must_use]
    pub const fn tries(&self) -> u32 {
        self.tries
    }
    /// The call was answered: the next wait is a first one.
    pub const fn reset(&mut self) {
        self.tries = 0;
    }
    /// The wait after a call that ended with `cause`, or after a failure without a cause; between `least` and `most`.
    pub fn wait(&mut self, cause: Option<Cause>, least: Duration, most: Duration) -> Duration {
        let soon = cause.is_none_or(Cause::is_temporary);
        let doubled = 1_u32.checked_shl(self.tries).unwrap_or(u32::MAX);
        let window = if soon {
            Self::FIRST.saturating_mul(doubled).min(most)
        } else {
            most
        };
        self.tries = self.tries.saturating_add(1);
        self.draws = self.draws.wrapping_add(1);
        let half = window / 2;
        let draw =
            mix(self.seed ^ self.draws) % (window.saturating_sub(half).as_nanos() as u64 + 1);
        (half + Duration::from_nanos(draw)).clamp(least.min(most), most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: Duration = Duration::from_secs(5);

    #[test]
    fn waits_double_up_to_the_longest_and_begin_anew_after_an_answer() {
        let mut backoff = Backoff::new(7);
        let cause = Some(Cause::NETWORK_OUT_OF_ORDER);
        for window in [20, 40, 80, 160, 320, 640, 1280, 2560, 5000, 5000, 5000] {
            let wait = backoff.wait(cause, Duration::ZERO, MOST).as_millis();
            assert!(
                (window / 2..=window).contains(&wait),
                "{wait} of {window} ms"
            );
        }
        for _ in 0..100 {
            assert!(backoff.wait(cause, Duration::ZERO, MOST) <= MOST);
        }
        backoff.reset();
        assert!(backoff.wait(cause, Duration::ZERO, MOST) <= Backoff::FIRST);
    }

    #[test]
    fn a_refusal_that_will_not_pass_waits_long_at_once() {
        let mut backoff = Backoff::new(7);
        let wait = backoff.wait(Some(Cause::REJECTED), Duration::ZERO, MOST);
        assert!(wait >= MOST / 2);
    }

    #[test]
    fn stations_that_fail_together_come_back_apart() {
        let waits: std::collections::BTreeSet<_> = (0..1000)
            .map(|station| Backoff::new(mix(station)).wait(None, Duration::ZERO, MOST))
            .collect();
        assert!(waits.len() > 990, "{}", waits.len());
    }

    #[test]
    fn the_least_wait_of_a_standard_holds() {
        let least = Duration::from_millis(100);
        assert_eq!(Backoff::new(1).wait(None, least, MOST), least);
    }
}
