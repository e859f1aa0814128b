//! Deadlines of many objects, without a walk over all of them.
//!
//! A machine with a table needs the next due time after each step. With a walk over the table each step would cost as
//! much as there are rows, and a network of N rows at least N².

use crate::Instant;
use std::collections::{BTreeMap, BTreeSet};

/// Deadlines by key. Each operation costs the logarithm of the number of keys that have a deadline.
#[derive(Clone, Debug)]
pub struct Deadlines<K> {
    at: BTreeMap<K, Instant>,
    order: BTreeSet<(Instant, K)>,
}

impl<K> Default for Deadlines<K> {
    fn default() -> Self {
        Self {
            at: BTreeMap::new(),
            order: BTreeSet::new(),
        }
    }
}

impl<K: Copy + Ord> Deadlines<K> {
    /// Sets, moves or (`None`) removes the deadline of `key`.
    pub fn set(&mut self, key: K, at: Option<Instant>) {
        let before = match at {
            Some(at) => self.at.insert(key, at),
            None => self.at.remove(&key),
        };
        if before == at {
            return;
        }
        if let Some(before) = before {
            self.order.remove(&(before, key));
        }
        if let Some(at) = at {
            self.order.insert((at, key));
        }
    }
    /// The earliest deadline.
    #[must_use]
    pub fn next(&self) -> Option<Instant> {
        self.order.first().map(|first| first.0)
    }
    /// The deadline of `key`.
    #[must_use]
    pub fn at(&self, key: &K) -> Option<Instant> {
        self.at.get(key).copied()
    }
    /// The keys whose deadline is `now` or before, in the order of keys. They keep their deadlines.
    #[must_use]
    pub fn due(&self, now: Instant) -> Vec<K> {
        let due = self.order.iter().take_while(|(at, _)| *at <= now);
        let mut keys: Vec<K> = due.map(|(_, key)| *key).collect();
        keys.sort_unstable();
        keys
    }
    /// Number of keys that have a deadline.
    #[must_use]
    pub fn len(&self) -> usize {
        self.at.len()
    }
    /// True if no key has a deadline.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.at.is_empty()
    }
    /// Removes all deadlines.
    pub fn clear(&mut self) {
        self.at.clear();
        self.order.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a plain walk over all keys.
        #[test]
        fn agrees_with_a_walk(
            moves in proptest::collection::vec((0_u8..20, proptest::option::weighted(0.8, 0_u64..50)), 1..300),
        ) {
            let mut deadlines = Deadlines::default();
            let mut plain = BTreeMap::new();
            for (key, at) in moves {
                let at = at.map(Instant::from_nanos);
                deadlines.set(key, at);
                match at {
                    Some(at) => plain.insert(key, at),
                    None => plain.remove(&key),
                };
                prop_assert_eq!(deadlines.next(), plain.values().min().copied());
                let now = Instant::from_nanos(25);
                let due: Vec<u8> = plain.iter().filter(|(_, at)| **at <= now).map(|(key, _)| *key).collect();
                prop_assert_eq!(deadlines.due(now), due);
            }
        }
    }
}
