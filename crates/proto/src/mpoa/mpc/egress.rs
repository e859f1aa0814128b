//! The egress cache: the header to put before packets that arrive on shortcuts.
//!
//! Source: MPOA 1.1 appendix I.5. An entry is named by the MPS that imposed it and its cache
//! id. Tagged packets find it by tag; untagged ones by the data address at the other end and the destination.

use super::entries::{Left, Tally};
use crate::mpoa::messages::EgressInfo;
use crate::{ConnId, Deadlines, Duration, Instant};
use aerostat_wire::AtmAddress;
use aerostat_wire::mpoa::{LLC_IPV4, LLC_IPV6};
use aerostat_wire::prefix::{masked, width};
use core::net::IpAddr;
use std::collections::{BTreeMap, BTreeSet};

/// Name of an entry: control address of the MPS, cache id.
pub(super) type Key = (AtmAddress, u32);

/// State of an egress cache entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EgressState {
    /// Valid.
    Active,
    /// The MPS was asked to remove the entry. `usable`: packets are still delivered, since the header is valid.
    Purging {
        /// True while the client ends regularly.
        usable: bool,
    },
}

impl EgressState {
    /// The name that Linux displays.
    #[must_use]
    pub const fn linux_name(self) -> &'static str {
        match self {
            Self::Active => "resolved",
            Self::Purging { .. } => "purge",
        }
    }
}

/// An egress cache entry.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) info: EgressInfo,
    pub(super) state: EgressState,
    pub(super) expires: Instant,
    pub(super) packets: u64,
    pub(super) latest_source: Option<IpAddr>,
    /// The shortcut that brought the last packet.
    pub(super) conn: Option<ConnId>,
}

/// A destination prefix as seen from one ingress MPC.
type Route = (AtmAddress, u8, IpAddr);

fn route(info: &EgressInfo) -> Route {
    (
        info.ingress,
        info.prefix,
        masked(info.destination, info.prefix),
    )
}

/// Egress cache entries by name, by tag and by route.
#[derive(Debug, Default)]
pub(super) struct Egress {
    pub(super) entries: BTreeMap<Key, Entry>,
    by_tag: BTreeMap<u32, Key>,
    by_route: BTreeMap<Route, Key>,
    by_ingress: BTreeSet<(AtmAddress, Key)>,
    servers: Tally,
    /// Ends of the holding times of active entries.
    deadlines: Deadlines<Key>,
    left: Left,
}

impl Egress {
    /// 106 with a holding time: creates or refreshes an entry; the daemon has checked the bounds.
    pub(super) fn impose(&mut self, info: EgressInfo, now: Instant) {
        let key = (info.mps, info.cache_id);
        let expires = now + Duration::from_secs(info.holding_s.into());
        let old = self.remove(key);
        match info.tag {
            Some(tag) => self.by_tag.insert(tag, key),
            None => self.by_route.insert(route(&info), key),
        };
        let (packets, latest_source, conn) =
            old.map_or((0, None, None), |e| (e.packets, e.latest_source, e.conn));
        self.by_ingress.insert((info.ingress, key));
        self.servers.add(info.mps);
        self.deadlines.set(key, Some(expires));
        self.left.peers.insert(info.ingress);
        let state = EgressState::Active;
        let entry = Entry {
            info,
            state,
            expires,
            packets,
            latest_source,
            conn,
        };
        self.entries.insert(key, entry);
    }

    /// Removes an entry and its indexes.
    pub(super) fn remove(&mut self, key: Key) -> Option<Entry> {
        let entry = self.entries.remove(&key)?;
        self.by_ingress.remove(&(entry.info.ingress, key));
        self.servers.sub(entry.info.mps);
        self.deadlines.set(key, None);
        self.left.peers.insert(entry.info.ingress);
        self.left.servers.insert(entry.info.mps);
        if let Some(tag) = entry.info.tag {
            if self.by_tag.get(&tag) == Some(&key) {
                self.by_tag.remove(&tag);
            }
            return Some(entry);
        }
        let route_of = route(&entry.info);
        if self.by_route.get(&route_of) == Some(&key) {
            // Another MPS may have imposed an entry for the same route with the same header.
            let same = |e: &&Entry| e.info.tag.is_none() && route(&e.info) == route_of;
            match self.entries.values().find(same) {
                Some(e) => self
                    .by_route
                    .insert(route_of, (e.info.mps, e.info.cache_id)),
                None => self.by_route.remove(&route_of),
            };
        }
        Some(entry)
    }

    /// The entry of a tagged packet, if the packet comes from the end system that the tag was given to, and its
    /// destination is that of the entry: a tag alone proves nothing, since others can guess it.
    pub(super) fn tagged(
        &mut self,
        tag: u32,
        peer: AtmAddress,
        destination: IpAddr,
    ) -> Option<&mut Entry> {
        let key = self.by_tag.get(&tag)?;
        let fits = |info: &EgressInfo| {
            let same = masked(info.destination, info.prefix) == masked(destination, info.prefix);
            same && info.ingress.same_end_system(&peer)
        };
        let entry = self.entries.get_mut(key)?;
        (usable(entry) && fits(&entry.info)).then_some(entry)
    }

    /// The entry of an untagged packet: the longest prefix that covers the destination.
    pub(super) fn untagged(&mut self, peer: AtmAddress, destination: IpAddr) -> Option<&mut Entry> {
        let at = |prefix| (peer, prefix, masked(destination, prefix));
        let key = (1..=width(destination))
            .rev()
            .find_map(|prefix| self.by_route.get(&at(prefix)))?;
        self.entries.get_mut(key).filter(|e| usable(e))
    }

    /// Marks the entries that `which` selects as purging. Returns the messages for their MPSs.
    pub(super) fn start_purge(
        &mut self,
        state: EgressState,
        which: impl Fn(&Entry) -> bool,
    ) -> Vec<EgressInfo> {
        let hit = self.entries.iter().filter(|(_, entry)| which(entry));
        let keys: Vec<Key> = hit.map(|(key, _)| *key).collect();
        self.purge_these(state, keys)
    }

    /// Marks these entries as purging. Returns the messages for their MPSs.
    fn purge_these(&mut self, state: EgressState, keys: Vec<Key>) -> Vec<EgressInfo> {
        let mut purged = Vec::new();
        for key in keys {
            let entry = self.entries.get_mut(&key);
            if let Some(entry) = entry.filter(|entry| entry.state == EgressState::Active) {
                entry.state = state;
                purged.push(entry.info.clone());
                self.deadlines.set(key, None);
            }
        }
        purged
    }

    /// Marks the entries whose holding time is over as purging. Returns the messages for their MPSs.
    pub(super) fn expire(&mut self, state: EgressState, now: Instant) -> Vec<EgressInfo> {
        let due = self.deadlines.due(now);
        self.purge_these(state, due)
    }

    /// The earliest end of a holding time.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.deadlines.next()
    }

    fn of(&self, ingress: AtmAddress) -> impl Iterator<Item = Key> {
        let first = (ingress, (AtmAddress([0; 20]), 0));
        let all = self.by_ingress.range(first..);
        let of = all.take_while(move |(of, _)| *of == ingress);
        of.map(|(_, key)| *key)
    }
    /// True if there are entries for packets from `ingress`.
    pub(super) fn has_ingress(&self, ingress: AtmAddress) -> bool {
        self.of(ingress).next().is_some()
    }
    /// True if an entry comes from this MPS.
    pub(super) fn has_server(&self, mps: &AtmAddress) -> bool {
        self.servers.has(mps)
    }
    /// A connection with `peer` went down.
    pub(super) fn detach(&mut self, conn: ConnId, peer: AtmAddress) {
        for key in self.of(peer).collect::<Vec<_>>() {
            if let Some(entry) = self.entries.get_mut(&key) {
                entry.conn = entry.conn.filter(|known| *known != conn);
            }
        }
    }
    /// The ends of shortcuts and the MPSs whose last entry may have been removed since the last call.
    pub(super) fn take_left(&mut self) -> Left {
        core::mem::take(&mut self.left)
    }
}

fn usable(entry: &Entry) -> bool {
    matches!(
        entry.state,
        EgressState::Active | EgressState::Purging { usable: true }
    )
}

/// Length of an Ethernet II header.
pub(super) const ETHERNET_HEADER: usize = 14;
/// Length of an 802.3 header with LLC and SNAP.
const SNAP_HEADER: usize = 22;
/// The longest of the data link headers that packets get here.
pub(super) const HEADER_MAX: usize = SNAP_HEADER;

/// True for a data link header that can carry packets to `destination` here: Ethernet II or 802.3 with SNAP, with the
/// right protocol.
pub(super) fn header_supported(header: &[u8], destination: IpAddr) -> bool {
    let llc = if destination.is_ipv6() {
        LLC_IPV6
    } else {
        LLC_IPV4
    };
    match header.len() {
        ETHERNET_HEADER => header.ends_with(&llc[6..]),
        SNAP_HEADER => header.ends_with(&llc),
        _ => false,
    }
}

/// The frame that would have arrived from the ELAN.
pub(super) fn frame(header: &[u8], packet: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(header.len() + packet.len());
    frame.extend(header);
    frame.extend(packet);
    if header.len() == SNAP_HEADER {
        // 802.3: the length of LLC, SNAP and packet.
        let length = ((packet.len() + 8) as u16).to_be_bytes();
        if let Some(field) = frame.get_mut(12..14) {
            field.copy_from_slice(&length);
        }
    }
    frame
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::{Ipv4Addr, Ipv6Addr};

    const PEER: AtmAddress = AtmAddress([1; 20]);
    const FOUR: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
    const SIX: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);

    fn info(mps: u8, cache_id: u32, tag: Option<u32>, prefix: u8) -> EgressInfo {
        EgressInfo {
            mps: AtmAddress([mps; 20]),
            mps_ip: IpAddr::V4(Ipv4Addr::new(10, 2, 0, 1)),
            cache_id,
            tag,
            destination: IpAddr::V4(Ipv4Addr::new(10, 2, 0, 20)),
            prefix,
            ingress: PEER,
            itf: 0,
            elan_id: 2,
            header: vec![mps; 14],
            holding_s: 10,
        }
    }

    #[test]
    fn tagged_and_untagged_are_apart() {
        let mut egress = Egress::default();
        egress.impose(info(1, 1, Some(7), 32), Instant::ZERO);
        assert!(egress.untagged(PEER, [10, 2, 0, 20].into()).is_none());
        let mut known = |tag, peer, ip: [u8; 4]| egress.tagged(tag, peer, ip.into()).is_some();
        assert!(known(7, PEER, [10, 2, 0, 20]) && !known(8, PEER, [10, 2, 0, 20]));
        assert!(!known(7, PEER, [10, 2, 0, 21]), "not its destination");
        assert!(!known(7, AtmAddress([2; 20]), [10, 2, 0, 20]), "of another");
        egress.impose(info(2, 1, None, 24), Instant::ZERO);
        egress.impose(info(2, 2, None, 32), Instant::ZERO);
        let mut id = |ip: [u8; 4]| egress.untagged(PEER, ip.into()).map(|e| e.info.cache_id);
        assert_eq!(id([10, 2, 0, 20]), Some(2), "the longest prefix");
        assert_eq!(id([10, 2, 0, 21]), Some(1));
        assert_eq!(id([10, 3, 0, 21]), None);
    }

    #[test]
    fn two_servers_may_impose_one_route() {
        let mut egress = Egress::default();
        egress.impose(info(1, 1, None, 32), Instant::ZERO);
        egress.impose(info(2, 1, None, 32), Instant::ZERO);
        egress.remove((AtmAddress([2; 20]), 1));
        let left = egress
            .untagged(PEER, IpAddr::V4(Ipv4Addr::new(10, 2, 0, 20)))
            .map(|e| e.info.mps);
        assert_eq!(left, Some(AtmAddress([1; 20])));
        egress.remove((AtmAddress([1; 20]), 1));
        assert!(egress.by_route.is_empty() && egress.by_tag.is_empty());
    }

    #[test]
    fn refresh_keeps_the_counts() {
        let mut egress = Egress::default();
        egress.impose(info(1, 1, Some(7), 32), Instant::ZERO);
        let to = IpAddr::V4(Ipv4Addr::new(10, 2, 0, 20));
        egress.tagged(7, PEER, to).unwrap().packets = 5;
        egress.impose(info(1, 1, Some(7), 32), Instant::from_secs(5));
        assert_eq!(egress.tagged(7, PEER, to).unwrap().packets, 5);
        assert_eq!(egress.deadline(), Some(Instant::from_secs(15)));
    }

    #[test]
    fn snap_header_gets_its_length() {
        let mut header = vec![2; 12];
        header.extend([0, 0, 0xaa, 0xaa, 3, 0, 0, 0, 8, 0]);
        assert!(header_supported(&header, FOUR) && !header_supported(&header[..14], FOUR));
        assert_eq!(frame(&header, &[0x45; 100])[12..14], [0, 108]);
        assert!(!header_supported(&header, SIX) && !header_supported(&[], FOUR));
        for (kind, right, wrong) in [([8, 0], FOUR, SIX), ([0x86, 0xdd], SIX, FOUR)] {
            let header = [&[2; 12][..], &kind].concat();
            assert!(header_supported(&header, right) && !header_supported(&header, wrong));
        }
        header.splice(20.., [0x86, 0xdd]);
        assert!(header_supported(&header, SIX) && !header_supported(&header, FOUR));
    }
}
