//! UDP of an embedded host: the ports that its programs have opened, and the datagrams of these programs.
//!
//! A host has thousands of programs that send or receive datagrams. A datagram goes from its program to the Ethernet
//! side at once, and one that arrives finds its program by its port. The host answers a datagram for a port that no
//! program has opened with ICMP port unreachable.
//!
//! **Standards**: RFC 768; RFC 1122 §4.1.3.4 (a datagram with a wrong checksum is dropped in silence).

use super::apps::AppId;
use super::packet;
use aerostat_wire::ipv4::{Ipv4View, UDP};
use aerostat_wire::nhrp::internet_checksum;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Octets of a UDP header.
const UDP_HEADER: usize = 8;
/// Time to live of datagrams (RFC 1700).
const TIME_TO_LIVE: u8 = 64;

/// The open ports.
#[derive(Debug, Default)]
pub(super) struct Udp {
    /// The programs of each port in the order in which they have opened it: the first one gets the datagrams.
    ports: BTreeMap<u16, Vec<AppId>>,
}

/// A datagram that has arrived.
pub(super) struct Datagram<'a> {
    /// The program that gets it.
    pub(super) to: AppId,
    /// Address and port of the sender.
    pub(super) from: (Ipv4Addr, u16),
    /// `None` if the checksum is wrong.
    pub(super) payload: Option<&'a [u8]>,
}

impl Udp {
    /// Opens a port for a program.
    pub(super) fn open(&mut self, port: u16, app: AppId) {
        self.ports.entry(port).or_default().push(app);
    }

    /// Closes the port of a program.
    pub(super) fn close(&mut self, port: u16, app: AppId) {
        if let Some(apps) = self.ports.get_mut(&port) {
            apps.retain(|other| *other != app);
            if apps.is_empty() {
                self.ports.remove(&port);
            }
        }
    }

    /// True if a program has opened this port.
    pub(super) fn is_open(&self, port: u16) -> bool {
        self.ports.contains_key(&port)
    }

    /// The datagram in a whole IP packet for this host, if its port is open. `own` tells whether the destination is an
    /// address of the host or a broadcast address.
    pub(super) fn receive<'a>(
        &self,
        packet: &'a [u8],
        own: impl FnOnce(Ipv4Addr) -> bool,
    ) -> Option<Datagram<'a>> {
        let ip = Ipv4View::new(packet)?;
        let whole = !ip.more_fragments() && ip.fragment_offset() == 0;
        if ip.protocol() != UDP || !whole || !own(ip.destination()) || !ip.checksum_ok() {
            return None;
        }
        let udp = ip.packet().get(ip.header_len()..)?;
        let [a, b, c, d, e, f, g, h] = *udp.first_chunk::<UDP_HEADER>()?;
        let udp = udp.get(..u16::from_be_bytes([e, f]).into())?;
        let to = *self.ports.get(&u16::from_be_bytes([c, d]))?.first()?;
        // A datagram may have no checksum.
        let good = (g, h) == (0, 0) || checksum(udp, ip.source(), ip.destination()) == 0;
        Some(Datagram {
            to,
            from: (ip.source(), u16::from_be_bytes([a, b])),
            payload: udp.get(UDP_HEADER..).filter(|_| good),
        })
    }
}

/// The packet of a datagram, with room for an Ethernet header in front.
pub(super) fn datagram(from: (Ipv4Addr, u16), to: (Ipv4Addr, u16), payload: &[u8]) -> Vec<u8> {
    let length = UDP_HEADER + payload.len();
    let mut packet = packet::begin(from.0, to.0, UDP, TIME_TO_LIVE, length);
    let start = packet.len();
    packet.extend(from.1.to_be_bytes());
    packet.extend(to.1.to_be_bytes());
    // Payloads are limited where they are made.
    packet.extend(u16::try_from(length).unwrap_or(u16::MAX).to_be_bytes());
    packet.extend([0, 0]);
    packet.extend(payload);
    let sum = match checksum(packet.get(start..).unwrap_or_default(), from.0, to.0) {
        // 0 would say that the datagram has no checksum.
        0 => u16::MAX,
        sum => sum,
    };
    if let Some(place) = packet.get_mut(start + 6..start + 8) {
        place.copy_from_slice(&sum.to_be_bytes());
    }
    packet
}

/// The checksum of a datagram between two addresses; 0 for one that has a right checksum.
fn checksum(datagram: &[u8], from: Ipv4Addr, to: Ipv4Addr) -> u16 {
    let [a, b] = [from, to].map(|address| address.octets());
    let length = (datagram.len() as u16).to_be_bytes();
    let pseudo = [&a[..], &b, &[0, UDP], &length].concat();
    let sums = [&pseudo, datagram].map(|part| u32::from(!internet_checksum(part)));
    let sum = sums[0] + sums[1];
    !((sum & 0xffff) + (sum >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ip::packet::ETHERNET_HEADER;

    const A: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const B: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

    fn packet(payload: &[u8]) -> Vec<u8> {
        let mut packet = datagram((A, 40_001), (B, 5001), payload);
        packet.drain(..ETHERNET_HEADER);
        packet::seal(&mut packet);
        packet
    }

    /// The header checksum of RFC 1071, computed here.
    fn sums_to_zero(words: impl Iterator<Item = u16>) -> bool {
        let sum: u32 = words.map(u32::from).sum();
        let sum = (sum & 0xffff) + (sum >> 16);
        (sum & 0xffff) + (sum >> 16) == 0xffff
    }

    #[test]
    fn a_datagram_has_the_headers_of_rfc_791_and_rfc_768() {
        let packet = packet(b"abc");
        let word =
            |at: usize| u16::from_be_bytes([packet[at], packet.get(at + 1).copied().unwrap_or(0)]);
        assert_eq!(
            (packet[0], word(2), packet[8], packet[9]),
            (0x45, 31, 64, 17)
        );
        assert_eq!(word(6), 0x4000, "not to be fragmented");
        assert_eq!(
            (packet[12..16] == A.octets(), packet[16..20] == B.octets()),
            (true, true)
        );
        assert_eq!((word(20), word(22), word(24)), (40_001, 5001, 11));
        assert!(sums_to_zero((0..20).step_by(2).map(word)));
        let pseudo = (12..20).step_by(2).map(word).chain([17, 11]);
        assert!(sums_to_zero(pseudo.chain((20..31).step_by(2).map(word))));
    }

    #[test]
    fn a_datagram_finds_the_program_that_has_opened_its_port_first() {
        let mut udp = Udp::default();
        let packet = packet(b"abc");
        assert!(udp.receive(&packet, |_| true).is_none(), "not open");
        udp.open(5001, AppId(7));
        udp.open(5001, AppId(3));
        let found = udp.receive(&packet, |to| to == B).expect("open");
        assert_eq!((found.to, found.payload), (AppId(7), Some(&b"abc"[..])));
        assert_eq!(found.from, (A, 40_001));
        assert!(udp.receive(&packet, |_| false).is_none(), "of another host");
        let mut damaged = packet.clone();
        damaged[29] ^= 1;
        let found = udp.receive(&damaged, |_| true).expect("open");
        assert_eq!(found.payload, None, "wrong checksum");
        udp.close(5001, AppId(7));
        assert_eq!(
            udp.receive(&packet, |_| true).map(|of| of.to),
            Some(AppId(3))
        );
        udp.close(5001, AppId(3));
        assert!(!udp.is_open(5001) && udp.receive(&packet, |_| true).is_none());
    }

    proptest::proptest! {
        #[test]
        fn no_octets_panic(octets in proptest::collection::vec(0u8.., 0..80), cut in 0usize..60) {
            let mut udp = Udp::default();
            udp.open(5001, AppId(0));
            let _ = udp.receive(&octets, |_| true);
            let mut packet = packet(b"some payload");
            packet.truncate(cut);
            let _ = udp.receive(&packet, |_| true);
        }
    }
}
