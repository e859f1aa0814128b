//! States that a stream has told so far, each with its number.

use std::collections::BTreeMap;
use std::ops::Bound;

/// A state of one kind, which can be told.
pub(super) trait Tellable: PartialEq + Default {
    /// The line about what differs from `before`, at a time and with a number.
    fn line(&self, at: (u64, u64), before: &Self) -> super::Line;
    /// The line that says that it is gone.
    fn gone(at: (u64, u64)) -> super::Line;
}

macro_rules! tellable {
    ($($state:ident => $kind:ident),+) => {$(
        impl Tellable for super::lines::$state {
            fn line(&self, at: (u64, u64), before: &Self) -> super::Line {
                super::Line::$kind(self.line(at, before))
            }
            fn gone(at: (u64, u64)) -> super::Line {
                super::Line::$kind(Self::gone(at))
            }
        }
    )+};
}
tellable! { CallState => Call, MemberState => Member, ShortcutState => Shortcut, FaultState => Fault }

/// States of one kind by key. A key that comes again has a new number.
#[derive(Debug)]
pub(super) struct Told<K, S> {
    all: BTreeMap<K, (u64, S)>,
    next: u64,
}

impl<K, S> Default for Told<K, S> {
    fn default() -> Self {
        Self {
            all: BTreeMap::new(),
            next: 1,
        }
    }
}

impl<K: Ord + Clone, S: Tellable> Told<K, S> {
    /// Takes the state of now, `None` if it is gone. Returns the line about it if it has changed.
    pub(super) fn update(&mut self, key: K, now: Option<S>, t: u64) -> Option<super::Line> {
        match (self.all.get_mut(&key), now) {
            (Some((id, before)), Some(now)) => {
                if *before == now {
                    return None;
                }
                let line = now.line((t, *id), before);
                *before = now;
                Some(line)
            }
            (Some((id, _)), None) => {
                let line = S::gone((t, *id));
                self.all.remove(&key);
                Some(line)
            }
            (None, Some(now)) => {
                let id = self.next;
                self.next += 1;
                let line = now.line((t, id), &S::default());
                self.all.insert(key, (id, now));
                Some(line)
            }
            (None, None) => None,
        }
    }
    pub(super) fn get(&self, key: &K) -> Option<&(u64, S)> {
        self.all.get(key)
    }
    pub(super) fn iter(&self) -> impl Iterator<Item = (&K, &(u64, S))> {
        self.all.iter()
    }
    /// The keys from `first` on that `belong`, which come one after the other.
    pub(super) fn keys_from(&self, first: &K, belong: impl Fn(&K) -> bool) -> Vec<K> {
        let all = self.all.range((Bound::Included(first), Bound::Unbounded));
        let of = all.take_while(|(key, _)| belong(key));
        of.map(|(key, _)| key.clone()).collect()
    }
    /// All states as lines at `t`.
    pub(super) fn lines(&self, t: u64) -> impl Iterator<Item = super::Line> + '_ {
        let all = self.all.values();
        all.map(move |(id, state)| state.line((t, *id), &S::default()))
    }
}
