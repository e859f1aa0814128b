//! The LE_ARP cache as a table that finds its rows by owner, and knows when they are due.

use super::arp::Entry;
use crate::{Deadlines, Instant};
use aerostat_wire::{AtmAddress, MacAddr};
use core::ops::Deref;
use std::collections::{BTreeMap, BTreeSet};

/// Rows by MAC address. The table can be read as a map; all changes of a row use the methods of this type, so that no
/// deadline is missed.
#[derive(Clone, Debug, Default)]
pub(super) struct Rows {
    map: BTreeMap<MacAddr, Entry>,
    /// Rows that may have changed since their deadlines were computed.
    touched: BTreeSet<MacAddr>,
    deadlines: Deadlines<MacAddr>,
    /// Rows whose owner may have changed since they were indexed.
    unfiled: BTreeSet<MacAddr>,
    /// The owner under which a row is indexed.
    filed: BTreeMap<MacAddr, AtmAddress>,
    by_owner: BTreeSet<(AtmAddress, MacAddr)>,
    /// Rows that were inserted, changed or removed since the last report, if there are reports.
    unreported: Option<BTreeSet<MacAddr>>,
}

impl Deref for Rows {
    type Target = BTreeMap<MacAddr, Entry>;
    fn deref(&self) -> &Self::Target {
        &self.map
    }
}

impl Rows {
    pub(super) fn get_mut(&mut self, mac: &MacAddr) -> Option<&mut Entry> {
        if !self.map.contains_key(mac) {
            return None;
        }
        self.changed(*mac);
        self.touched.insert(*mac);
        self.unfiled.insert(*mac);
        self.map.get_mut(mac)
    }
    pub(super) fn insert(&mut self, mac: MacAddr, entry: Entry) {
        self.map.insert(mac, entry);
        self.touched.insert(mac);
        self.unfiled.insert(mac);
        self.changed(mac);
    }
    pub(super) fn remove(&mut self, mac: &MacAddr) -> Option<Entry> {
        self.changed(*mac);
        self.touched.remove(mac);
        self.deadlines.set(*mac, None);
        self.unfiled.remove(mac);
        if let Some(owner) = self.filed.remove(mac) {
            self.by_owner.remove(&(owner, *mac));
        }
        self.map.remove(mac)
    }
    fn changed(&mut self, mac: MacAddr) {
        if let Some(unreported) = &mut self.unreported {
            unreported.insert(mac);
        }
    }
    /// The rows that may have changed since the last call, in order, with those that are gone; all rows at the first
    /// call.
    pub(super) fn changes(&mut self) -> BTreeSet<MacAddr> {
        let changed = self.unreported.replace(BTreeSet::new());
        changed.unwrap_or_else(|| self.map.keys().copied().collect())
    }
    /// The rows of this owner.
    pub(super) fn of(&mut self, owner: AtmAddress) -> Vec<MacAddr> {
        for mac in core::mem::take(&mut self.unfiled) {
            let now = self.map.get(&mac).and_then(|entry| entry.atm);
            let before = match now {
                Some(now) => self.filed.insert(mac, now),
                None => self.filed.remove(&mac),
            };
            if let Some(before) = before.filter(|_| before != now) {
                self.by_owner.remove(&(before, mac));
            }
            if let Some(now) = now {
                self.by_owner.insert((now, mac));
            }
        }
        let (first, last) = (MacAddr([0; 6]), MacAddr([0xff; 6]));
        let rows = self.by_owner.range((owner, first)..=(owner, last));
        rows.map(|(_, mac)| *mac).collect()
    }
    /// A value that all deadlines depend on has changed.
    pub(super) fn touch_all(&mut self) {
        self.touched.extend(self.map.keys());
    }
    /// Computes the deadlines of the rows that may have changed.
    pub(super) fn reckon(&mut self, due: impl Fn(&Entry) -> Instant) {
        for mac in core::mem::take(&mut self.touched) {
            self.deadlines.set(mac, self.map.get(&mac).map(&due));
        }
    }
    /// The earliest deadline, as computed last.
    pub(super) fn next(&self) -> Option<Instant> {
        self.deadlines.next()
    }
    /// Rows that are due, as computed last.
    pub(super) fn due(&self, now: Instant) -> Vec<MacAddr> {
        self.deadlines.due(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Compares the table with a plain walk over all rows.
        #[test]
        fn rows_of_an_owner_agree_with_a_walk(
            moves in proptest::collection::vec((0_u8..10, proptest::option::weighted(0.8, 0_u8..4), 0_u8..4), 1..200),
        ) {
            let mut rows = Rows::default();
            let mut reported: BTreeMap<MacAddr, Option<AtmAddress>> = BTreeMap::new();
            for (mac, owner, asked) in moves {
                let mac = MacAddr([2, 0, 0, 0, 0, mac]);
                let owner = owner.map(|n| AtmAddress([n; 20]));
                match (rows.get_mut(&mac), owner) {
                    (Some(entry), Some(_)) => entry.atm = owner,
                    (Some(_), None) => {
                        rows.remove(&mac);
                    }
                    (None, _) => {
                        let mut entry = Entry::new(Instant::ZERO);
                        entry.atm = owner;
                        rows.insert(mac, entry);
                    }
                }
                let asked = AtmAddress([asked; 20]);
                let walk = rows.iter().filter(|(_, entry)| entry.atm == Some(asked));
                let walk: Vec<MacAddr> = walk.map(|(mac, _)| *mac).collect();
                prop_assert_eq!(rows.of(asked), walk);
                prop_assert!(rows.filed.len() <= rows.map.len());
                // Reports of changes alone give the same table.
                if asked.0[0] == 0 {
                    for mac in rows.changes() {
                        match rows.get(&mac) {
                            Some(entry) => reported.insert(mac, entry.atm),
                            None => reported.remove(&mac),
                        };
                    }
                    let all = rows.iter().map(|(mac, entry)| (*mac, entry.atm));
                    prop_assert_eq!(&reported, &all.collect());
                }
            }
        }
    }
}
