//! The entries of the ingress cache as a table that finds them by egress, and knows when they are due.
//!
//! A client may have thousands of entries, and each step concerns a few of them: a walk over all entries for each
//! answer and each connection would make the work grow with the square of the flows.

use super::ingress::{Entry, Key};
use crate::{Changes, Deadlines, Instant};
use aerostat_wire::AtmAddress;
use core::ops::Deref;
use std::collections::{BTreeMap, BTreeSet};

/// Ends of shortcuts, and MPSs, that may have lost their last entry since the last check.
#[derive(Debug, Default)]
pub(super) struct Left {
    pub(super) peers: BTreeSet<AtmAddress>,
    pub(super) servers: BTreeSet<AtmAddress>,
}

/// Counts items per address.
#[derive(Debug, Default)]
pub(super) struct Tally(BTreeMap<AtmAddress, usize>);

impl Tally {
    pub(super) fn add(&mut self, whom: AtmAddress) {
        *self.0.entry(whom).or_default() += 1;
    }
    pub(super) fn sub(&mut self, whom: AtmAddress) {
        if let Some(count) = self.0.get_mut(&whom) {
            *count -= 1;
            if *count == 0 {
                self.0.remove(&whom);
            }
        }
    }
    pub(super) fn has(&self, whom: &AtmAddress) -> bool {
        self.0.contains_key(whom)
    }
}

/// Entries by name. The table can be read as a map; all changes of an entry's binding or state use the methods of this
/// type.
#[derive(Debug, Default)]
pub(super) struct Entries {
    map: BTreeMap<Key, Entry>,
    /// Entries that may have changed since they were indexed.
    touched: BTreeSet<Key>,
    /// The egress under which an entry with a binding is indexed.
    filed: BTreeMap<Key, AtmAddress>,
    by_egress: BTreeSet<(AtmAddress, Key)>,
    servers: Tally,
    deadlines: Deadlines<Key>,
    left: Left,
    /// Entries whose state or connection may have changed, for display.
    changes: Changes<Key>,
}

impl Deref for Entries {
    type Target = BTreeMap<Key, Entry>;
    fn deref(&self) -> &Self::Target {
        &self.map
    }
}

impl Entries {
    pub(super) fn get_mut(&mut self, key: &Key) -> Option<&mut Entry> {
        let entry = self.map.get_mut(key)?;
        self.touched.insert(*key);
        self.changes.note(*key);
        Some(entry)
    }
    /// The entry, for counting: neither its state nor its binding may change, and its deadline may only become later.
    pub(super) fn count_mut(&mut self, key: &Key) -> Option<&mut Entry> {
        self.map.get_mut(key)
    }
    pub(super) fn touch(&mut self, key: Key) {
        self.touched.insert(key);
        self.changes.note(key);
    }
    pub(super) fn insert(&mut self, key: Key, entry: Entry) {
        self.map.insert(key, entry);
        self.touched.insert(key);
        self.changes.note(key);
    }
    /// Removes the entries for which `keep` is false.
    pub(super) fn retain(&mut self, keep: impl Fn(&Key, &Entry) -> bool) {
        let (touched, changes) = (&mut self.touched, &mut self.changes);
        self.map.retain(|key, entry| {
            let stays = keep(key, entry);
            if !stays {
                touched.insert(*key);
                changes.note(*key);
            }
            stays
        });
    }
    pub(super) fn remove(&mut self, key: &Key) {
        self.map.remove(key);
        self.touched.insert(*key);
        self.changes.note(*key);
    }
    /// Records that the connection of an entry is shown with another label, or that the entry shows another connection.
    pub(super) fn shows_other(&mut self, key: Key) {
        self.changes.note(key);
    }
    /// Entries whose state or connection may have changed since the last call.
    pub(super) fn take_changes(&mut self) -> Changes<Key> {
        self.changes.take()
    }
    pub(super) fn keys_now(&self) -> Vec<Key> {
        self.map.keys().copied().collect()
    }

    /// Indexes the touched entries.
    fn file(&mut self) {
        for key in core::mem::take(&mut self.touched) {
            let entry = self.map.get(&key);
            let egress = entry.and_then(|entry| entry.binding.as_ref().map(|b| b.egress));
            self.deadlines.set(key, entry.and_then(Entry::deadline));
            let before = match egress {
                Some(egress) => self.filed.insert(key, egress),
                None => self.filed.remove(&key),
            };
            // The connection in use may have changed even if the egress has not.
            self.left.peers.extend(before.into_iter().chain(egress));
            if before == egress {
                continue;
            }
            if let Some(before) = before {
                self.by_egress.remove(&(before, key));
                self.servers.sub(key.0);
                self.left.servers.insert(key.0);
            }
            if let Some(egress) = egress {
                self.by_egress.insert((egress, key));
                self.servers.add(key.0);
            }
        }
    }
    /// The entries with a binding to `egress`.
    pub(super) fn of(&mut self, egress: AtmAddress) -> Vec<Key> {
        self.file();
        let first = (egress, FIRST);
        let all = self.by_egress.range(first..);
        let of = all.take_while(|(of, _)| *of == egress);
        of.map(|(_, key)| *key).collect()
    }
    /// True if an entry contains information from this MPS.
    pub(super) fn has_server(&mut self, mps: &AtmAddress) -> bool {
        self.file();
        self.servers.has(mps)
    }
    /// The ends of shortcuts and the MPSs whose last entry may have been removed since the last call.
    pub(super) fn take_left(&mut self) -> Left {
        self.file();
        core::mem::take(&mut self.left)
    }
    /// Not later than the earliest deadline.
    pub(super) fn next(&mut self) -> Option<Instant> {
        self.file();
        self.deadlines.next()
    }
    /// The entries that may be due.
    pub(super) fn due(&mut self, now: Instant) -> Vec<Key> {
        self.file();
        self.deadlines.due(now)
    }
}

/// A key before all others.
const FIRST: Key = (
    AtmAddress([0; 20]),
    core::net::IpAddr::V4(core::net::Ipv4Addr::UNSPECIFIED),
    None,
);
