//! A fixed table of timers: one optional deadline per kind.

use crate::{Duration, Instant};
use core::fmt;

/// The timers of one machine: an enum without data. [`timer_kinds!`](crate::timer_kinds) declares it.
pub trait TimerKind: Copy + fmt::Debug + 'static {
    /// One deadline per timer: `[Option<Instant>; N]` with the number of timers as N.
    type Deadlines: AsRef<[Option<Instant>]> + AsMut<[Option<Instant>]> + Clone + fmt::Debug;
    /// The deadlines of a table in which no timer runs.
    const STOPPED: Self::Deadlines;
    /// All timers in the order of declaration. Of timers that expire at the same instant, the first declared comes
    /// first.
    const ALL: &'static [Self];
    /// The position of this timer in [`Self::ALL`].
    fn index(self) -> usize;
}

/// Declares an enum of timers and implements [`TimerKind`] for it.
///
/// The order of the variants is the order in which timers with the same deadline expire.
///
/// ```
/// use aerostat_proto::{Duration, Instant, TimerTable};
///
/// aerostat_proto::timer_kinds! {
///     /// The timers of a small machine.
///     enum Timer {
///         /// Repeat the request.
///         Repeat,
///         /// Give the request up.
///         GiveUp,
///     }
/// }
///
/// let mut timers = TimerTable::default();
/// timers.start(Timer::Repeat, Instant::ZERO, Duration::from_secs(1));
/// timers.start(Timer::GiveUp, Instant::ZERO, Duration::from_secs(4));
/// let now = Instant::ZERO + Duration::from_secs(1);
/// let expired = timers.expire(now).map(|timer| match timer {
///     Timer::Repeat => "send again", // A timer without an arm does not compile.
///     Timer::GiveUp => "fail",
/// });
/// assert_eq!(expired, Some("send again"));
/// ```
#[macro_export]
macro_rules! timer_kinds {
    ($(#[$meta:meta])* $vis:vis enum $name:ident { $($(#[$doc:meta])* $timer:ident),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis enum $name { $($(#[$doc])* $timer),+ }

        impl $crate::timers::TimerKind for $name {
            type Deadlines = [Option<$crate::Instant>; [$($name::$timer),+].len()];
            const STOPPED: Self::Deadlines = [None; [$($name::$timer),+].len()];
            const ALL: &'static [Self] = &[$($name::$timer),+];
            fn index(self) -> usize {
                self as usize
            }
        }
    };
}

/// One timer per value of `K`. `K` has few values: the next deadline is a linear minimum.
#[derive(Clone, Debug)]
pub struct TimerTable<K: TimerKind> {
    deadlines: K::Deadlines,
}

impl<K: TimerKind> Default for TimerTable<K> {
    fn default() -> Self {
        Self {
            deadlines: K::STOPPED,
        }
    }
}

impl<K: TimerKind> TimerTable<K> {
    fn slot(&mut self, kind: K) -> &mut Option<Instant> {
        &mut self.deadlines.as_mut()[kind.index()]
    }
    /// Starts or restarts timer `kind` so that it expires `after` from `now`.
    pub fn start(&mut self, kind: K, now: Instant, after: Duration) {
        // A zero timer would be due at once and violate the law that deadlines lie in the future.
        *self.slot(kind) = Some(now + after.max(Duration::from_nanos(1)));
    }
    /// Stops timer `kind`; nothing happens if it does not run.
    pub fn stop(&mut self, kind: K) {
        *self.slot(kind) = None;
    }
    /// Stops all timers.
    pub fn stop_all(&mut self) {
        self.deadlines = K::STOPPED;
    }
    /// True while timer `kind` runs.
    #[must_use]
    pub fn runs(&self, kind: K) -> bool {
        self.deadlines.as_ref()[kind.index()].is_some()
    }
    /// Returns one expired timer, earliest first (in the order of [`TimerKind::ALL`] on a tie), and stops it.
    pub fn expire(&mut self, now: Instant) -> Option<K> {
        let (kind, _) = K::ALL
            .iter()
            .zip(self.deadlines.as_ref())
            .filter_map(|(kind, at)| at.filter(|at| *at <= now).map(|at| (*kind, at)))
            .min_by_key(|&(kind, at)| (at, kind.index()))?;
        self.stop(kind);
        Some(kind)
    }
    /// The earliest deadline.
    #[must_use]
    pub fn next(&self) -> Option<Instant> {
        self.deadlines.as_ref().iter().flatten().min().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    crate::timer_kinds! {
        enum Timer { Early, Late, Other }
    }

    #[test]
    fn timers_expire_by_deadline_and_on_a_tie_in_the_order_of_declaration() {
        let at = |s| Instant::ZERO + Duration::from_secs(s);
        let mut timers = TimerTable::default();
        timers.start(Timer::Other, at(0), Duration::from_secs(1));
        timers.start(Timer::Late, at(0), Duration::from_secs(2));
        timers.start(Timer::Early, at(1), Duration::from_secs(1));
        assert_eq!(timers.next(), Some(at(1)));
        let expired: Vec<_> = core::iter::from_fn(|| timers.expire(at(2))).collect();
        assert_eq!(expired, [Timer::Other, Timer::Early, Timer::Late]);
        assert_eq!(timers.next(), None);
    }

    #[test]
    fn each_timer_has_its_own_place_in_the_table() {
        for &one in Timer::ALL {
            let mut timers = TimerTable::default();
            timers.start(one, Instant::ZERO, Duration::ZERO);
            for &other in Timer::ALL {
                assert_eq!(timers.runs(other), other == one);
            }
            assert_eq!(Timer::ALL[one.index()], one);
        }
    }
}
