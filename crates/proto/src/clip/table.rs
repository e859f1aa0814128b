//! The entries of a member by next hop, with what is asked of them often: the next deadline, and the entries of a
//! connection or of an ATM address. A server has as many entries as its subnet has members, and a walk over all of them
//! with each packet would cost the square of that.

use super::entries::Entry;
use crate::{ConnId, Deadlines, Instant};
use aerostat_wire::AtmAddress;
use std::collections::BTreeSet;
use std::collections::btree_map::{self, BTreeMap};
use std::net::Ipv4Addr;

/// The entries. What may have been changed is noted, and [`Self::settle`] brings the indexes up to date.
#[derive(Debug, Default)]
pub(super) struct Entries {
    map: BTreeMap<Ipv4Addr, Entry>,
    touched: BTreeSet<Ipv4Addr>,
    due: Deadlines<Ipv4Addr>,
    /// Keys of an entry in the indexes.
    seen: BTreeMap<Ipv4Addr, (Option<ConnId>, Option<AtmAddress>)>,
    by_conn: BTreeSet<(ConnId, Ipv4Addr)>,
    by_atm: BTreeSet<(AtmAddress, Ipv4Addr)>,
}

const FIRST: Ipv4Addr = Ipv4Addr::UNSPECIFIED;
const LAST: Ipv4Addr = Ipv4Addr::BROADCAST;

impl Entries {
    pub(super) fn get(&self, ip: &Ipv4Addr) -> Option<&Entry> {
        self.map.get(ip)
    }
    pub(super) fn get_mut(&mut self, ip: &Ipv4Addr) -> Option<&mut Entry> {
        self.touched.insert(*ip);
        self.map.get_mut(ip)
    }
    pub(super) fn entry(&mut self, ip: Ipv4Addr) -> btree_map::Entry<'_, Ipv4Addr, Entry> {
        self.touched.insert(ip);
        self.map.entry(ip)
    }
    pub(super) fn insert(&mut self, ip: Ipv4Addr, entry: Entry) {
        self.touched.insert(ip);
        self.map.insert(ip, entry);
    }
    pub(super) fn remove(&mut self, ip: &Ipv4Addr) -> Option<Entry> {
        self.touched.insert(*ip);
        self.map.remove(ip)
    }
    pub(super) fn contains_key(&self, ip: &Ipv4Addr) -> bool {
        self.map.contains_key(ip)
    }
    pub(super) fn len(&self) -> usize {
        self.map.len()
    }
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Ipv4Addr, &Entry)> {
        self.map.iter()
    }
    pub(super) fn keys(&self) -> impl Iterator<Item = &Ipv4Addr> {
        self.map.keys()
    }
    pub(super) fn values(&self) -> impl Iterator<Item = &Entry> {
        self.map.values()
    }
    pub(super) fn into_values(self) -> impl Iterator<Item = Entry> {
        self.map.into_values()
    }

    /// Brings the indexes up to date.
    pub(super) fn settle(&mut self) {
        for ip in core::mem::take(&mut self.touched) {
            let entry = self.map.get(&ip);
            self.due.set(ip, entry.and_then(Entry::due));
            let new = entry.map(|entry| (entry.conn, entry.atm));
            let old = self.seen.get(&ip).copied();
            if new == old {
                continue;
            }
            let (conn, atm) = old.unwrap_or_default();
            conn.map(|conn| self.by_conn.remove(&(conn, ip)));
            atm.map(|atm| self.by_atm.remove(&(atm, ip)));
            let (conn, atm) = new.unwrap_or_default();
            self.by_conn.extend(conn.map(|conn| (conn, ip)));
            self.by_atm.extend(atm.map(|atm| (atm, ip)));
            match new {
                Some(new) => self.seen.insert(ip, new),
                None => self.seen.remove(&ip),
            };
        }
    }
    /// The earliest deadline of an entry.
    pub(super) fn next(&self) -> Option<Instant> {
        self.due.next()
    }
    /// The entries whose deadline is over, by address.
    pub(super) fn due(&mut self, now: Instant) -> Vec<Ipv4Addr> {
        self.settle();
        self.due.due(now)
    }
    /// The entries of a connection, by address.
    pub(super) fn on(&mut self, conn: ConnId) -> Vec<Ipv4Addr> {
        self.settle();
        let all = self.by_conn.range((conn, FIRST)..=(conn, LAST));
        all.map(|(_, ip)| *ip).collect()
    }
    /// The number of entries of a connection or an ATM address.
    pub(super) fn count_of(&mut self, conn: Option<ConnId>, atm: Option<AtmAddress>) -> usize {
        let of_conn = conn.map(|conn| self.on(conn)).unwrap_or_default();
        let ours = |ip: &Ipv4Addr| self.map.get(ip).is_some_and(|entry| entry.conn == conn);
        let of_atm = atm.map_or(0, |atm| {
            let all = self.by_atm.range((atm, FIRST)..=(atm, LAST));
            all.filter(|(_, ip)| conn.is_none() || !ours(ip)).count()
        });
        of_conn.len() + of_atm
    }
}

#[cfg(test)]
mod tests {
    use super::super::entries::State;
    use super::*;
    use proptest::prelude::*;

    fn atm(n: u8) -> AtmAddress {
        AtmAddress([n; 20])
    }

    proptest! {
        /// Against walks over all entries, whatever happens to them.
        #[test]
        fn the_indexes_are_those_of_the_entries(
            steps in prop::collection::vec((0_u8..6, 0_u8..12, 0_u8..4, 0_u64..9), 0..80)
        ) {
            let mut entries = Entries::default();
            for (what, ip, number, seconds) in steps {
                let ip = Ipv4Addr::new(10, 0, 0, ip);
                let until = Instant::from_secs(seconds);
                match what {
                    0 => {
                        let state = State::Resolving { tries: 1, at: until };
                        entries.insert(ip, Entry::new(state, atm(0)));
                    }
                    1 => drop(entries.remove(&ip)),
                    2 => {
                        let state = State::Known { renew: Instant::from_secs(seconds / 2), until };
                        let entry = entries.entry(ip);
                        entry.or_insert_with(|| Entry::fixed(atm(number), atm(0))).state = state;
                    }
                    _ => {
                        if let Some(entry) = entries.get_mut(&ip) {
                            match what {
                                3 => entry.conn = (number > 0).then_some(ConnId(number.into())),
                                4 => entry.atm = (number > 0).then(|| atm(number)),
                                _ => entry.used = !entry.used,
                            }
                        }
                    }
                }
                entries.settle();
                prop_assert_eq!(entries.next(), entries.values().filter_map(Entry::due).min());
                let late = entries.iter().filter(|(_, entry)| entry.due().is_some_and(|at| at <= until));
                let late: Vec<Ipv4Addr> = late.map(|(ip, _)| *ip).collect();
                prop_assert_eq!(entries.due(until), late);
                for number in 1..4 {
                    let (conn, atm) = (Some(ConnId(number.into())), Some(atm(number)));
                    let on = entries.iter().filter(|(_, entry)| entry.conn == conn);
                    let on: Vec<Ipv4Addr> = on.map(|(ip, _)| *ip).collect();
                    prop_assert_eq!(entries.on(ConnId(number.into())), on);
                    let own = |entry: &&Entry| entry.conn == conn || entry.atm == atm;
                    let count = entries.values().filter(own).count();
                    prop_assert_eq!(entries.count_of(conn, atm), count);
                }
            }
        }
    }
}
