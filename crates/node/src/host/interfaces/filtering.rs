//! The filtering database of a host that bridges: where the station with a MAC address is.
//!
//! The ports of the bridge are its Ethernet ports, its bridged lines and its LANE client. The first two are the
//! Ethernet side. The bridge learns from the source address of each frame, whichever port the frame comes from; an
//! address is at the port where the bridge heard it last. An entry ends 300 s after the last frame. The entries of the
//! Ethernet side also end with a claim of another proxy (LE_NARP); those of the ELAN end when the LANE client leaves. A
//! frame for a known address goes to the port of this address only, and to no port if the frame came from there. A
//! frame for a group or for an unknown address goes to all other ports.
//!
//! Each side has a limit of its own, so addresses of the ELAN cannot take the place of stations on Ethernet, for which
//! the LANE client answers. An address that finds no room is counted, and frames for it are flooded.
//!
//! Frames from shortcuts teach nothing: their Ethernet header comes from the egress cache, not from a station.
//!
//! **Standards.** IEEE 802.1D-1998 §7.8 (learning) and §7.9 (filtering database, ageing time 300 s); LANE v2 §2.1.3.
//! Sections from memory. While the topology of a kernel's bridge changes, entries age by its forward delay (§8.5.3.13).
//! **Not implemented**: static entries, an ageing time of one's own choice, a spanning tree of the embedded bridge.

use aerostat_proto::{Duration, Instant};
use aerostat_wire::MacAddr;
use std::collections::BTreeMap;

/// Limit of addresses on the Ethernet ports together.
pub(in crate::host) const NEAR: usize = 1024;
/// Limit of addresses behind the LANE client.
pub(in crate::host) const FAR: usize = 8192;
/// How long the bridge remembers an address.
pub(in crate::host) const AGEING: Duration = Duration::from_secs(300);

/// Where a frame for an address goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::host) enum Way {
    /// To an Ethernet port, by its number.
    Port(usize),
    /// To the ELAN.
    Elan,
    /// To all ports: it is a group, or unknown.
    All,
}

/// State of a source address in the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::host) enum Heard {
    /// Unknown on this side until now.
    New,
    /// Known on this side, perhaps at another port.
    Known,
    /// New, and the table of this side was full.
    Full,
}

/// The database. See the documentation of this module.
#[derive(Clone, Debug, Default)]
pub(in crate::host) struct FilteringDatabase {
    /// When an address on Ethernet was heard last, and at which port.
    near: BTreeMap<MacAddr, (Instant, usize)>,
    /// When an address behind the LANE client was heard last. Entries past their age may still be here.
    far: BTreeMap<MacAddr, Instant>,
    /// No entry of `far` is older.
    oldest: Instant,
    /// Ageing time during a change of the topology; `None`: [`AGEING`].
    faster: Option<Duration>,
}

impl FilteringDatabase {
    /// Learns a source address that was heard at an Ethernet port.
    pub(in crate::host) fn hear_port(&mut self, mac: MacAddr, port: usize, now: Instant) -> Heard {
        self.far.remove(&mac);
        if let Some(entry) = self.near.get_mut(&mac) {
            *entry = (now, port);
            return Heard::Known;
        }
        if self.near.len() >= NEAR {
            return Heard::Full;
        }
        self.near.insert(mac, (now, port));
        Heard::New
    }

    /// Learns a source address that was heard from the ELAN.
    pub(in crate::host) fn hear_elan(&mut self, mac: MacAddr, now: Instant) -> Heard {
        self.near.remove(&mac);
        let ageing = self.ageing();
        if let Some(heard) = self.far.get_mut(&mac) {
            let known = *heard + ageing > now;
            *heard = now;
            return if known { Heard::Known } else { Heard::New };
        }
        // A full table is searched only when its oldest entry can be over.
        if self.far.len() >= FAR && !self.fresh(self.oldest, now) {
            self.far.retain(|_, heard| *heard + ageing > now);
            self.oldest = self.far.values().min().copied().unwrap_or(now);
        }
        if self.far.len() >= FAR {
            return Heard::Full;
        }
        if self.far.is_empty() {
            self.oldest = now;
        }
        self.far.insert(mac, now);
        Heard::New
    }

    /// Where a frame for this address goes.
    pub(in crate::host) fn way(&self, to: MacAddr, now: Instant) -> Way {
        match (self.near.get(&to), self.far.get(&to)) {
            (Some((_, port)), _) => Way::Port(*port),
            (None, Some(heard)) if self.fresh(*heard, now) => Way::Elan,
            _ => Way::All,
        }
    }

    /// True if the address was heard on Ethernet.
    pub(in crate::host) fn is_near(&self, mac: MacAddr) -> bool {
        self.near.contains_key(&mac)
    }

    /// Forgets an address on Ethernet; true if it was known there.
    pub(in crate::host) fn forget(&mut self, mac: MacAddr) -> bool {
        self.near.remove(&mac).is_some()
    }

    /// Forgets all addresses behind the LANE client.
    pub(in crate::host) fn forget_elan(&mut self) {
        self.far.clear();
    }

    /// Sets the ageing time during a change of the topology, or `None` once that is over.
    pub(in crate::host) fn age_faster(&mut self, faster: Option<Duration>) {
        self.faster = faster;
    }

    fn ageing(&self) -> Duration {
        self.faster.unwrap_or(AGEING).min(AGEING)
    }

    /// True if an entry of this age still counts.
    fn fresh(&self, heard: Instant, now: Instant) -> bool {
        heard + self.ageing() > now
    }

    /// Ends the entries of Ethernet that are past their age; true if there were any.
    pub(in crate::host) fn age(&mut self, now: Instant) -> bool {
        let known = self.near.len();
        let ageing = self.ageing();
        self.near.retain(|_, (heard, _)| *heard + ageing > now);
        self.near.len() < known
    }

    /// When the next entry of Ethernet ends. Those of the ELAN need no timer: they do not count once they are past
    /// their age.
    pub(in crate::host) fn deadline(&self) -> Option<Instant> {
        let oldest = self.near.values().map(|(heard, _)| *heard).min();
        oldest.map(|heard| heard + self.ageing())
    }

    /// The addresses on Ethernet.
    pub(in crate::host) fn near(&self) -> impl Iterator<Item = Near> {
        self.near.iter().map(|(mac, (heard, port))| Near {
            mac: *mac,
            heard: *heard,
            port: *port,
        })
    }

    /// The addresses behind the LANE client, with the time of their last frame.
    pub(in crate::host) fn far(&self, now: Instant) -> impl Iterator<Item = (MacAddr, Instant)> {
        let entries = self.far.iter().map(|(mac, heard)| (*mac, *heard));
        entries.filter(move |(_, heard)| self.fresh(*heard, now))
    }
}

/// An address on Ethernet.
pub(in crate::host) struct Near {
    pub(in crate::host) mac: MacAddr,
    /// Time of its last frame.
    pub(in crate::host) heard: Instant,
    /// Number of its port.
    pub(in crate::host) port: usize,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn mac(number: u32) -> MacAddr {
        let [a, b, c, d] = number.to_be_bytes();
        MacAddr([2, 0, a, b, c, d])
    }

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn each_side_has_a_limit_that_the_other_cannot_use_up() {
        let mut table = FilteringDatabase::default();
        for number in 0..FAR as u32 {
            assert_eq!(
                table.hear_elan(mac(number), at(u64::from(number % 200))),
                Heard::New
            );
        }
        assert_eq!(table.hear_elan(mac(9000), at(200)), Heard::Full);
        assert_eq!(table.way(mac(9000), at(200)), Way::All);
        for number in 0..NEAR as u32 {
            assert_eq!(
                table.hear_port(mac(10_000 + number), 1, at(200)),
                Heard::New
            );
        }
        assert_eq!(table.hear_port(mac(9001), 1, at(200)), Heard::Full);
        // A station of the ELAN that moves to Ethernet while the table there is full is not known behind ATM any more.
        assert_eq!(table.way(mac(5), at(200)), Way::Elan);
        assert_eq!(table.hear_port(mac(5), 1, at(200)), Heard::Full);
        assert_eq!(table.way(mac(5), at(200)), Way::All);
        // The first entries are over after 300 s: there is room again.
        assert_eq!(table.hear_elan(mac(9000), at(299)), Heard::New);
        assert_eq!(table.hear_elan(mac(9001), at(299)), Heard::Full);
        assert_eq!(table.hear_elan(mac(9001), at(300)), Heard::New);
        assert!(table.far(at(300)).count() < FAR);
    }

    proptest! {
        /// Against a table without limits that keeps every event.
        #[test]
        fn the_way_is_where_an_address_was_heard_last(
            events in prop::collection::vec((0u32..6, prop::option::of(0usize..3), 0u64..150), 1..80)
        ) {
            let (mut table, mut now) = (FilteringDatabase::default(), 0);
            let mut past: Vec<(u32, Option<usize>, u64)> = Vec::new();
            for (number, port, pause) in events {
                now += pause;
                table.age(at(now));
                match port {
                    Some(port) => table.hear_port(mac(number), port, at(now)),
                    None => table.hear_elan(mac(number), at(now)),
                };
                past.push((number, port, now));
                for number in 0..6 {
                    let last = past.iter().rfind(|(of, ..)| *of == number);
                    let expected = match last {
                        Some((_, Some(port), heard)) if heard + 300 > now => Way::Port(*port),
                        Some((_, None, heard)) if heard + 300 > now => Way::Elan,
                        _ => Way::All,
                    };
                    prop_assert_eq!(table.way(mac(number), at(now)), expected);
                }
            }
        }
    }
}
