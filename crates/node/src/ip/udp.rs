//! UDP of an embedded host: the ports that its programs have opened, and the datagrams of these programs.
//!
//! Datagrams do not pass smoltcp, whose sockets have buffers in both directions and are all looked at for each packet: a
//! host has thousands of programs that send or receive datagrams. Here a datagram goes from its program to the Ethernet
//! side at once, and one that arrives finds its program by its port. A datagram for a port that no program has opened
//! goes to smoltcp, which answers with ICMP port unreachable.
//!
//! **Standards**: RFC 768; RFC 1122 §4.1.3.4 (a datagram with a wrong checksum is dropped in silence).

use super::apps::AppId;
use super::packet::ETHERNET_HEADER;
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{IpAddress, IpEndpoint, IpProtocol, Ipv4Packet, Ipv4Repr, UdpPacket, UdpRepr};
use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;

/// Octets of a UDP header.
const UDP_HEADER: usize = 8;
/// Time to live of datagrams (RFC 1700).
const TIME_TO_LIVE: u8 = 64;

/// The open ports, and datagrams that wait to be taken.
#[derive(Debug, Default)]
pub(super) struct Udp {
    /// The programs of each port in the order in which they have opened it: the first one gets the datagrams.
    ports: BTreeMap<u16, Vec<AppId>>,
    /// Packets with room for an Ethernet header in front. The owner takes them after each run of a program.
    sent: VecDeque<Vec<u8>>,
}

/// A datagram that has arrived.
pub(super) struct Datagram<'a> {
    /// The program that gets it.
    pub(super) to: AppId,
    /// Address and port of the sender.
    pub(super) from: IpEndpoint,
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

    /// Sends a datagram.
    pub(super) fn send(&mut self, from: (Ipv4Addr, u16), to: (Ipv4Addr, u16), payload: &[u8]) {
        let checksums = ChecksumCapabilities::default();
        let udp = UdpRepr {
            src_port: from.1,
            dst_port: to.1,
        };
        let ip = Ipv4Repr {
            src_addr: from.0,
            dst_addr: to.0,
            next_header: IpProtocol::Udp,
            payload_len: UDP_HEADER + payload.len(),
            hop_limit: TIME_TO_LIVE,
        };
        let start = ETHERNET_HEADER + ip.buffer_len();
        let mut packet = vec![0; start + UDP_HEADER + payload.len()];
        // The checksum of the IP header follows with the identification.
        ip.emit(
            &mut Ipv4Packet::new_unchecked(&mut packet[ETHERNET_HEADER..]),
            &ChecksumCapabilities::ignored(),
        );
        udp.emit(
            &mut UdpPacket::new_unchecked(&mut packet[start..]),
            &IpAddress::Ipv4(from.0),
            &IpAddress::Ipv4(to.0),
            payload.len(),
            |place| place.copy_from_slice(payload),
            &checksums,
        );
        self.sent.push_back(packet);
    }

    /// The next packet to be sent.
    pub(super) fn take_sent(&mut self) -> Option<Vec<u8>> {
        self.sent.pop_front()
    }

    /// The datagram in a whole IP packet for this host, if its port is open. `own` tells whether the destination is an
    /// address of the host or a broadcast address.
    pub(super) fn receive<'a>(
        &self,
        packet: &'a [u8],
        own: impl FnOnce(Ipv4Addr) -> bool,
    ) -> Option<Datagram<'a>> {
        let ip = Ipv4Packet::new_checked(packet).ok()?;
        let whole = !ip.more_frags() && ip.frag_offset() == 0;
        if ip.next_header() != IpProtocol::Udp || !whole || !own(ip.dst_addr()) {
            return None;
        }
        if !ip.verify_checksum() {
            return None;
        }
        let (source, destination) = (ip.src_addr(), ip.dst_addr());
        let start = usize::from(ip.header_len());
        let udp = packet.get(start..usize::from(ip.total_len()))?;
        let udp = UdpPacket::new_checked(udp).ok()?;
        let to = *self.ports.get(&udp.dst_port())?.first()?;
        let ends = [source, destination].map(IpAddress::Ipv4);
        let checksums = ChecksumCapabilities::default();
        let good = UdpRepr::parse(&udp, &ends[0], &ends[1], &checksums).is_ok();
        let from = IpEndpoint::new(ends[0], udp.src_port());
        let length = usize::from(udp.len());
        let payload = packet.get(start + UDP_HEADER..start + length);
        Some(Datagram {
            to,
            from,
            payload: payload.filter(|_| good),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const B: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

    fn packet(payload: &[u8]) -> Vec<u8> {
        let mut udp = Udp::default();
        udp.send((A, 40_001), (B, 5001), payload);
        let mut packet = udp.take_sent().expect("a packet");
        packet.drain(..ETHERNET_HEADER);
        Ipv4Packet::new_unchecked(&mut packet[..]).fill_checksum();
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
        assert_eq!(found.from, IpEndpoint::new(A.into(), 40_001));
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
