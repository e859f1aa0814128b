//! An agenda: one deadline per key, which may move in either direction.

use aerostat_proto::Instant;
use std::collections::BTreeSet;

/// Deadlines of the keys `0..size`.
#[derive(Debug)]
pub(crate) struct Agenda {
    deadlines: Vec<Option<Instant>>,
    order: BTreeSet<(Instant, usize)>,
}

impl Agenda {
    pub(crate) fn new(size: usize) -> Self {
        Self {
            deadlines: vec![None; size],
            order: BTreeSet::new(),
        }
    }

    /// Sets or clears the deadline of `key`.
    pub(crate) fn set(&mut self, key: usize, at: Option<Instant>) {
        let old = std::mem::replace(&mut self.deadlines[key], at);
        if old == at {
            return;
        }
        if let Some(old) = old {
            self.order.remove(&(old, key));
        }
        if let Some(at) = at {
            self.order.insert((at, key));
        }
    }

    /// Removes the earliest key that is due at `now`, and returns it with its deadline.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<(Instant, usize)> {
        let &(at, key) = self.order.first()?;
        if at > now {
            return None;
        }
        self.set(key, None);
        Some((at, key))
    }

    /// The earliest deadline.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.order.first().map(|&(at, _)| at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_move_both_ways() {
        let at = Instant::from_millis;
        let mut agenda = Agenda::new(3);
        agenda.set(0, Some(at(5)));
        agenda.set(1, Some(at(3)));
        agenda.set(2, Some(at(9)));
        agenda.set(2, Some(at(1)));
        agenda.set(1, Some(at(7)));
        assert_eq!(agenda.next(), Some(at(1)));
        assert_eq!(agenda.pop_due(at(6)), Some((at(1), 2)));
        assert_eq!(agenda.pop_due(at(6)), Some((at(5), 0)));
        assert_eq!(agenda.pop_due(at(6)), None);
        agenda.set(1, None);
        assert_eq!(agenda.next(), None);
    }
}
