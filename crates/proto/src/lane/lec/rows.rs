//! The LE_ARP cache as a table that knows when its rows are due.

use super::arp::Entry;
use crate::{Deadlines, Instant};
use aerostat_wire::MacAddr;
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
}

impl Deref for Rows {
    type Target = BTreeMap<MacAddr, Entry>;
    fn deref(&self) -> &Self::Target {
        &self.map
    }
}

impl Rows {
    pub(super) fn get_mut(&mut self, mac: &MacAddr) -> Option<&mut Entry> {
        let entry = self.map.get_mut(mac)?;
        self.touched.insert(*mac);
        Some(entry)
    }
    pub(super) fn insert(&mut self, mac: MacAddr, entry: Entry) {
        self.map.insert(mac, entry);
        self.touched.insert(mac);
    }
    pub(super) fn remove(&mut self, mac: &MacAddr) -> Option<Entry> {
        self.touched.remove(mac);
        self.deadlines.set(*mac, None);
        self.map.remove(mac)
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
