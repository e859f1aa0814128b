//! A fixed table of timers: one optional deadline per kind.

use crate::{Duration, Instant};

/// `N` timers, addressed by index (`kind as usize`). `N` is small: the next deadline is a linear minimum.
#[derive(Clone, Debug)]
pub struct TimerTable<const N: usize> {
    deadlines: [Option<Instant>; N],
}

impl<const N: usize> Default for TimerTable<N> {
    fn default() -> Self {
        Self {
            deadlines: [None; N],
        }
    }
}

impl<const N: usize> TimerTable<N> {
    /// Starts or restarts timer `kind` so that it expires `after` from `now`.
    pub fn start(&mut self, kind: usize, now: Instant, after: Duration) {
        // A zero timer would be due at once and violate the law that deadlines lie in the future.
        self.deadlines[kind] = Some(now + after.max(Duration::from_nanos(1)));
    }
    /// Stops timer `kind`; nothing happens if it does not run.
    pub fn stop(&mut self, kind: usize) {
        self.deadlines[kind] = None;
    }
    /// Stops all timers.
    pub fn stop_all(&mut self) {
        self.deadlines = [None; N];
    }
    /// True while timer `kind` runs.
    #[must_use]
    pub fn runs(&self, kind: usize) -> bool {
        self.deadlines[kind].is_some()
    }
    /// Returns one expired timer, earliest first (lowest index on a tie), and stops it.
    pub fn expire(&mut self, now: Instant) -> Option<usize> {
        let (kind, _) = self
            .deadlines
            .iter()
            .enumerate()
            .filter_map(|(kind, at)| at.filter(|at| *at <= now).map(|at| (kind, at)))
            .min_by_key(|&(kind, at)| (at, kind))?;
        self.deadlines[kind] = None;
        Some(kind)
    }
    /// The earliest deadline.
    #[must_use]
    pub fn next(&self) -> Option<Instant> {
        self.deadlines.iter().flatten().min().copied()
    }
}
