//! A small seeded generator (SplitMix64): delays that must differ between stations, not secrets.

use crate::Duration;
use crate::mix::{STEP, mix};

/// Source of random delays.
#[derive(Clone, Debug)]
pub(super) struct Rng(u64);

impl Rng {
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed)
    }
    fn next(&mut self) -> u64 {
        let number = mix(self.0);
        self.0 = self.0.wrapping_add(STEP);
        number
    }
    /// A whole number of milliseconds from `min` to `max`, both included.
    pub(super) fn between(&mut self, min: Duration, max: Duration) -> Duration {
        let span = max.saturating_sub(min).as_millis() as u64;
        min + Duration::from_millis(self.next() % (span + 1))
    }
}
