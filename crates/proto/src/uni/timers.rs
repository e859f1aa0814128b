//! The running timers of an interface: many calls, one ordered table.

use core::cmp::Ordering;
use core::ops::Bound;
use std::collections::{BTreeMap, BTreeSet};

use crate::{Cause, Duration, Instant};

use super::Reason;
use super::state::CallKey;

/// Kind of timer. The numbers are the standard's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    T301,
    T303,
    T308,
    T309,
    T310,
    T313,
    T316,
    T317,
    T322,
    T397,
    T398,
    T399,
}

impl Timer {
    /// The timer number in IA5, as diagnostics of cause 102.
    pub(super) const fn digits(self) -> &'static [u8; 3] {
        match self {
            Self::T301 => b"301",
            Self::T303 => b"303",
            Self::T308 => b"308",
            Self::T309 => b"309",
            Self::T310 => b"310",
            Self::T313 => b"313",
            Self::T316 => b"316",
            Self::T317 => b"317",
            Self::T322 => b"322",
            Self::T397 => b"397",
            Self::T398 => b"398",
            Self::T399 => b"399",
        }
    }
    /// The reason for recovery on the expiry of this timer.
    pub(super) fn reason(self) -> Reason {
        Reason::from(Cause::TIMER).with(self.digits())
    }
}

/// Key of a timer: of the interface (no call), of a call, or of a party. All timers of a call are adjacent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TimerKey {
    pub(super) call: Option<CallKey>,
    pub(super) party: Option<u16>,
    pub(super) timer: Timer,
}

/// A key has four bits for its timer.
const _: () = assert!((Timer::T399 as u64) < 1 << 4);

impl TimerKey {
    /// One number for the key, in the order of call, party and timer. Each message of a call looks for its timers.
    const fn number(self) -> u64 {
        let call = match self.call {
            None => 0,
            // A call reference has 23 bits.
            Some(call) => 1 << 24 | (call.ours as u64) << 23 | call.value as u64 & 0x7f_ffff,
        };
        let party = match self.party {
            None => 0,
            Some(party) => 1 << 16 | party as u64,
        };
        call << 21 | party << 4 | self.timer as u64
    }
    pub(super) const fn link(timer: Timer) -> Self {
        Self {
            call: None,
            party: None,
            timer,
        }
    }
    pub(super) const fn call(call: CallKey, timer: Timer) -> Self {
        Self {
            call: Some(call),
            party: None,
            timer,
        }
    }
    pub(super) const fn party(call: CallKey, party: u16, timer: Timer) -> Self {
        Self {
            call: Some(call),
            party: Some(party),
            timer,
        }
    }
}

impl PartialOrd for TimerKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for TimerKey {
    fn cmp(&self, other: &Self) -> Ordering {
        self.number().cmp(&other.number())
    }
}

/// Deadlines by timer and by time.
#[derive(Clone, Debug, Default)]
pub(super) struct Timers {
    by_key: BTreeMap<TimerKey, Instant>,
    by_time: BTreeSet<(Instant, TimerKey)>,
}

impl Timers {
    /// Starts or restarts a timer.
    pub(super) fn start(&mut self, key: TimerKey, now: Instant, after: Duration) {
        self.stop(key);
        let at = now + after.max(Duration::from_nanos(1));
        self.by_key.insert(key, at);
        self.by_time.insert((at, key));
    }
    /// Stops a timer; nothing happens if it does not run.
    pub(super) fn stop(&mut self, key: TimerKey) {
        if let Some(at) = self.by_key.remove(&key) {
            self.by_time.remove(&(at, key));
        }
    }
    /// Stops all timers of a call, including those of its parties.
    pub(super) fn stop_call(&mut self, call: CallKey) {
        let from = TimerKey::call(call, Timer::T301);
        let range = (Bound::Included(from), Bound::Unbounded);
        let keys = self.by_key.range(range).map(|(key, _)| *key);
        let keys: Vec<_> = keys.take_while(|key| key.call == Some(call)).collect();
        keys.into_iter().for_each(|key| self.stop(key));
    }
    /// Stops all timers of a party.
    pub(super) fn stop_party(&mut self, call: CallKey, party: u16) {
        for timer in [Timer::T397, Timer::T398, Timer::T399] {
            self.stop(TimerKey::party(call, party, timer));
        }
    }
    pub(super) fn runs(&self, key: TimerKey) -> bool {
        self.by_key.contains_key(&key)
    }
    /// Returns one expired timer, earliest first, and stops it.
    pub(super) fn expire(&mut self, now: Instant) -> Option<TimerKey> {
        let (at, key) = *self.by_time.first()?;
        if at > now {
            return None;
        }
        self.stop(key);
        Some(key)
    }
    pub(super) fn next(&self) -> Option<Instant> {
        self.by_time.first().map(|(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KINDS: [Timer; 12] = [
        Timer::T301,
        Timer::T303,
        Timer::T308,
        Timer::T309,
        Timer::T310,
        Timer::T313,
        Timer::T316,
        Timer::T317,
        Timer::T322,
        Timer::T397,
        Timer::T398,
        Timer::T399,
    ];

    fn keys() -> impl Strategy<Value = TimerKey> {
        let call = (any::<bool>(), 0_u32..1 << 23);
        let call = proptest::option::of(call.prop_map(|(ours, value)| CallKey { ours, value }));
        let key = (call, any::<Option<u16>>(), proptest::sample::select(&KINDS));
        key.prop_map(|(call, party, timer)| TimerKey { call, party, timer })
    }

    proptest! {
        /// The number of a key orders keys as their fields do, and no two keys have the same one.
        #[test]
        fn keys_are_in_the_order_of_their_fields(a in keys(), b in keys(), same in any::<bool>()) {
            let b = if same { TimerKey { timer: b.timer, ..a } } else { b };
            let fields = |key: TimerKey| (key.call, key.party, key.timer);
            prop_assert_eq!(a.cmp(&b), fields(a).cmp(&fields(b)));
        }
    }
}
