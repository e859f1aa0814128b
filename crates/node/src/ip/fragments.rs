//! Fragments at an embedded host: reassembly of what arrives, and the MTUs of paths that ICMP has told.
//!
//! **Reassembly** (RFC 791 §3.2). Fragments with the same addresses, protocol and identification wait for each other. A
//! piece that overlaps another one ends the datagram, as RFC 5722 asks for IPv6: no sender does that, but attackers do.
//!
//! **Path MTU** (RFC 1191). The host does not make its segments smaller, as Linux does. It allows fragments (clears DF)
//! of packets that are larger than the path to their destination is known to carry.
//!
//! **Bounds.** [`DATAGRAMS`] datagrams, of which the oldest gives way, for [`TIME`] each; [`PATHS`] paths, for [`LIFE`]
//! each. What is given up is counted.

use super::packet;
use aerostat_proto::{Duration, Instant};
use aerostat_wire::fragments;
use aerostat_wire::ipv4::{HEADER_LEN, Ipv4View};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Limit of datagrams that wait for fragments.
pub const DATAGRAMS: usize = 64;
/// How long a datagram waits for its fragments.
pub const TIME: Duration = Duration::from_secs(30);
/// Limit of paths with an MTU of their own.
pub const PATHS: usize = 256;
/// How long the MTU of a path is believed. Source: RFC 1191 §6.3.
pub const LIFE: Duration = Duration::from_secs(600);
/// Largest IPv4 packet, octets.
const MOST: usize = 65_535;

/// Addresses, protocol and identification.
type Key = (Ipv4Addr, Ipv4Addr, u8, u16);

/// A datagram some of whose fragments have arrived.
#[derive(Debug)]
struct Partial {
    since: Instant,
    /// The header of the first fragment.
    header: Option<Vec<u8>>,
    /// Pieces of payload by their offset.
    pieces: BTreeMap<usize, Vec<u8>>,
    /// Octets of the payload, once the last fragment is here.
    length: Option<usize>,
}

impl Partial {
    const fn new(since: Instant) -> Self {
        Self {
            since,
            header: None,
            pieces: BTreeMap::new(),
            length: None,
        }
    }

    /// Adds a piece; false if it cannot belong to the others.
    fn add(&mut self, offset: usize, piece: &[u8], last: bool) -> bool {
        let end = offset + piece.len();
        if self.pieces.get(&offset).is_some_and(|known| known == piece) {
            return true;
        }
        let before = self.pieces.range(..=offset).next_back();
        let overlaps = before.is_some_and(|(at, known)| at + known.len() > offset)
            || self.pieces.range(offset..end).next().is_some();
        let beyond = self.length.is_some_and(|length| end > length);
        let ends = last && self.length.is_some_and(|length| length != end);
        let behind = self.pieces.last_key_value();
        let longer = last && behind.is_some_and(|(at, known)| at + known.len() > end);
        if piece.is_empty() || overlaps || beyond || ends || longer {
            return false;
        }
        self.length = self.length.or(last.then_some(end));
        self.pieces.insert(offset, piece.to_vec());
        true
    }

    /// The whole packet, if nothing is missing.
    fn whole(&self) -> Option<Vec<u8>> {
        let (mut packet, length) = (self.header.clone()?, self.length?);
        let have: usize = self.pieces.values().map(Vec::len).sum();
        if have != length || packet.len() + length > MOST {
            return None;
        }
        for piece in self.pieces.values() {
            packet.extend(piece);
        }
        let total = packet.len() as u16;
        let header = packet.first_chunk_mut::<HEADER_LEN>()?;
        header[2..4].copy_from_slice(&total.to_be_bytes());
        header[6..8].fill(0);
        packet::seal(&mut packet);
        Some(packet)
    }
}

/// Counters of fragments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FragmentCounters {
    /// Fragments received.
    pub fragments: u64,
    /// Datagrams that were put together.
    pub whole: u64,
    /// Datagrams given up: late, too many at a time, or with pieces that do not belong together.
    pub given_up: u64,
    /// Packets sent with permission to fragment them, because they are larger than their path carries.
    pub permitted: u64,
    /// Messages about the MTU of a path.
    pub told: u64,
}

/// The fragments and paths of a host.
#[derive(Debug, Default)]
pub(super) struct Fragments {
    partial: BTreeMap<Key, Partial>,
    paths: BTreeMap<Ipv4Addr, (u16, Instant)>,
    pub(super) counters: FragmentCounters,
}

impl Fragments {
    /// Takes a packet: a whole one comes back, a fragment does when it completes its datagram.
    pub(super) fn take(&mut self, packet: Vec<u8>, now: Instant) -> Option<Vec<u8>> {
        let Some(view) = Ipv4View::new(&packet) else {
            return Some(packet);
        };
        let (offset, more) = (usize::from(view.fragment_offset()), view.more_fragments());
        if offset == 0 && !more {
            return Some(packet);
        }
        self.counters.fragments += 1;
        let (header, piece) = view.packet().split_at(view.header_len());
        let ident = u16::from_be_bytes([header[4], header[5]]);
        let key = (view.source(), view.destination(), view.protocol(), ident);
        self.make_room(key, now);
        let partial = self.partial.entry(key).or_insert_with(|| Partial::new(now));
        if offset == 0 {
            partial.header = Some(header.to_vec());
        }
        // All fragments except the last are a multiple of 8 octets.
        let fits = (!more || piece.len() % 8 == 0) && offset + piece.len() <= MOST - HEADER_LEN;
        if !view.checksum_ok() || !fits || !partial.add(offset, piece, !more) {
            self.partial.remove(&key);
            self.counters.given_up += 1;
            return None;
        }
        let whole = partial.whole()?;
        self.partial.remove(&key);
        self.counters.whole += 1;
        Some(whole)
    }

    /// Gives up what is late, and the oldest datagram if there are too many.
    fn make_room(&mut self, key: Key, now: Instant) {
        let before = self.partial.len();
        self.partial
            .retain(|_, partial| now.since(partial.since) < TIME);
        if self.partial.len() >= DATAGRAMS && !self.partial.contains_key(&key) {
            let oldest = self.partial.iter().min_by_key(|(_, partial)| partial.since);
            let oldest = oldest.map(|(key, _)| *key);
            oldest.and_then(|key| self.partial.remove(&key));
        }
        self.counters.given_up += (before - self.partial.len()) as u64;
    }

    /// Learns the MTU of a path from a message that the host got.
    pub(super) fn hear(&mut self, packet: &[u8], own: impl Fn(Ipv4Addr) -> bool, now: Instant) {
        let Some((destination, mtu)) = fragments::needs_fragments(packet, own) else {
            return;
        };
        self.counters.told += 1;
        if self.paths.len() >= PATHS && !self.paths.contains_key(&destination) {
            let oldest = self.paths.iter().min_by_key(|(_, (_, until))| *until);
            let oldest = oldest.map(|(destination, _)| *destination);
            oldest.and_then(|oldest| self.paths.remove(&oldest));
        }
        self.paths.insert(destination, (mtu, now + LIFE));
    }

    /// Allows fragments of a packet that is larger than its path carries.
    pub(super) fn permit(&mut self, packet: &mut [u8], now: Instant) {
        if self.paths.is_empty() {
            return;
        }
        let Some(view) = Ipv4View::new(packet) else {
            return;
        };
        let (total, known) = (view.total_len(), self.paths.get(&view.destination()));
        let Some((mtu, _)) = known.filter(|(_, until)| *until > now) else {
            return;
        };
        if total > *mtu && packet::dont_fragment(packet) {
            packet[6] &= !0x40;
            packet::seal(packet);
            self.counters.permitted += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aerostat_wire::fragments::{LEAST_MTU, fragment, fragmentation_needed};
    use proptest::prelude::*;

    const A: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const B: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

    fn packet(ident: u16, payload: &[u8], df: bool) -> Vec<u8> {
        let mut packet = packet::begin(A, B, aerostat_wire::ipv4::UDP, 64, payload.len());
        packet.drain(..packet::ETHERNET_HEADER);
        packet.extend(payload);
        packet[6] = if df { 0x40 } else { 0 };
        packet::number(&mut packet, ident);
        packet
    }

    #[test]
    fn the_bound_holds_and_the_late_are_given_up() {
        let mut all = Fragments::default();
        let first =
            |ident| fragment(&packet(ident, &[7; 200], false), 100).expect("cut")[0].clone();
        for ident in 0..1000 {
            assert_eq!(all.take(first(ident), Instant::ZERO), None);
        }
        assert_eq!(all.partial.len(), DATAGRAMS);
        assert_eq!(all.counters.given_up, 1000 - DATAGRAMS as u64);
        assert_eq!(all.take(first(5), Instant::ZERO + TIME), None);
        assert_eq!((all.partial.len(), all.counters.given_up), (1, 1000));
    }

    #[test]
    fn pieces_that_overlap_end_the_datagram() {
        let parts = fragment(&packet(1, &[7; 200], false), 100).expect("cut");
        let other = fragment(&packet(1, &[8; 200], false), 68).expect("cut");
        let mut all = Fragments::default();
        assert_eq!(all.take(parts[0].clone(), Instant::ZERO), None);
        assert_eq!(
            all.take(parts[0].clone(), Instant::ZERO),
            None,
            "a copy is no mistake"
        );
        assert_eq!(all.take(other[1].clone(), Instant::ZERO), None);
        assert_eq!((all.partial.len(), all.counters.given_up), (0, 1));
    }

    #[test]
    fn a_path_allows_fragments_of_what_is_too_large() {
        let mut all = Fragments::default();
        let large = packet(1, &[7; 1400], true);
        let told = fragmentation_needed(&large, 576, B).expect("a message");
        all.hear(&told, |ip| ip == A, Instant::ZERO);
        for (payload, at, df) in [
            (1400, 1, false),
            (556, 1, true),
            (557, 1, false),
            (1400, 601, true),
        ] {
            let mut sent = packet(2, &vec![0; payload], true);
            all.permit(&mut sent, Instant::from_secs(at));
            assert!(Ipv4View::new(&sent).is_some_and(|view| view.checksum_ok()));
            assert_eq!(packet::dont_fragment(&sent), df, "{payload} at {at} s");
        }
        assert_eq!((all.counters.told, all.counters.permitted), (1, 2));
    }

    proptest! {
        #[test]
        fn what_is_cut_comes_together_in_any_order(
            payload in prop::collection::vec(any::<u8>(), 1..4000),
            mtu in LEAST_MTU..1500,
            order in any::<u64>(),
            copies in any::<bool>(),
        ) {
            let whole = packet(9, &payload, false);
            let mut parts = fragment(&whole, mtu).expect("cut");
            if copies {
                parts.extend(parts.clone());
            }
            let mut all = Fragments::default();
            let mut x = order;
            let mut got = Vec::new();
            while !parts.is_empty() {
                x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let part = parts.swap_remove((x >> 33) as usize % parts.len());
                got.extend(all.take(part, Instant::ZERO));
            }
            prop_assert!(!got.is_empty());
            prop_assert!(got.iter().all(|packet| *packet == whole));
        }
        #[test]
        fn never_panics(packets in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 0..20)) {
            let mut all = Fragments::default();
            for mut packet in packets {
                if let Some(first) = packet.first_mut() {
                    *first = 0x45;
                }
                all.hear(&packet, |_| true, Instant::ZERO);
                let _ = all.take(packet, Instant::ZERO);
            }
            prop_assert!(all.partial.len() <= DATAGRAMS);
        }
    }
}
