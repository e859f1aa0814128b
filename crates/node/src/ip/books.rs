//! Where packets are lost, and to which flow they belonged: the vocabulary of a flow's accounts.
//!
//! For every flow `offered = sent + refused` and `sent = delivered + lost + under way`. Every part that discards a
//! packet, a cell of a packet or a whole queue reports a [`Place`] and the packet. [`FlowIndex`] finds the flow of the
//! packet, behind any encapsulation; [`super::flow_stats::FlowStats`] keeps the accounts.

use super::apps::{SHORT_STAMP, Stamp};
use super::meter::{FlowId, FlowSpec, PacketKey, Protocol};
use super::router;
use super::source_ports::SourcePorts;
use crate::atm::{DropReason, Mark, SocketId};
use crate::encapsulation::Encapsulation;
use aerostat_proto::Instant;
use aerostat_proto::discard::Discard;
use aerostat_wire::line::{PPP_IPV4, PPP_LLC};
use aerostat_wire::llc::LlcSnap;
use aerostat_wire::vlan::TAG_LEN;
use core::fmt;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Octets of an Ethernet header, and of an 802.3 header with LLC and SNAP.
const ETHERNET: usize = 14;
/// Octets of PPPoE in front of PPP.
const PPPOE: usize = 6;
const SNAP: usize = 22;

/// A part of the network that discards packets; numbers are those of the lab.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Spot {
    /// A node: its hosts, services and adapter.
    Node(usize),
    /// A port of a switch, or the adapter of an end system (port 0).
    Port(usize, u16),
    /// A link.
    Link(usize),
}

/// Why a packet was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// A cell of the packet was dropped at a port or by the fabric.
    Cells(DropReason),
    /// A cell of the packet was lost on a link.
    CellLost,
    /// Bits of the packet were inverted on a link.
    BitErrors,
    /// A cell of the packet was in a block that a link lost.
    BlockLost,
    /// The link was cut while a cell of the packet was on it.
    Cut,
    /// The link was down to train anew while a cell of the packet was on it.
    Retrain,
    /// The node was switched off.
    Off,
    /// The packet's cells were mixed with those of another PDU whose last cell was lost, or the packet was too long.
    Reassembly,
    /// A service of a host dropped the packet.
    Service(Discard),
    /// The sending host dropped the packet: there was no ARP reply, or too many packets wait.
    Arp,
    /// The sending host has no route.
    NoRoute,
    /// A router dropped the packet.
    Router(router::DropReason),
    /// The cable of an Ethernet segment had no room.
    Segment,
    /// Too many packets waited for the CPU of a host.
    Cpu,
    /// The receive path of an adapter had no free buffer.
    Intake,
    /// The queue of an Ethernet port of a bridging host was full.
    EthernetPort,
    /// An Ethernet port did not take the frame, because of its VLAN.
    Vlan(VlanRefusal),
    /// No program of the receiving host listens at the port.
    Receiver,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cells(DropReason::Policed) => "policer",
            Self::Cells(reason) => reason.name(),
            Self::CellLost => "cell lost",
            Self::BitErrors => "bit errors",
            Self::BlockLost => "block lost",
            Self::Cut => "cut",
            Self::Retrain => "retrain",
            Self::Off => "switched off",
            Self::Reassembly => "reassembly",
            Self::Service(why) => why.name(),
            Self::Arp => "ARP",
            Self::NoRoute => "no route",
            Self::Router(reason) => match reason {
                router::DropReason::Malformed => "malformed",
                router::DropReason::NotIp => "not IP",
                router::DropReason::Multicast => "multicast is not routed",
                router::DropReason::QueueFull => "router queue full",
                router::DropReason::TimeToLive => "TTL",
                router::DropReason::NoRoute => "no route",
                router::DropReason::TooBig => "larger than the MTU",
                router::DropReason::NoNeighbour | router::DropReason::ArpQueueFull => "ARP",
            },
            Self::Segment => "Ethernet segment full",
            Self::Cpu => "CPU queue full",
            Self::Intake => "receive buffer full",
            Self::EthernetPort => "Ethernet port full",
            Self::Vlan(refusal) => refusal.name(),
            Self::Receiver => "nobody listens",
        })
    }
}

aerostat_wire::named! {
    /// Why an Ethernet port of a bridge with VLANs did not take a frame.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum VlanRefusal {
        /// The VLAN of the tag is not one of the port.
        NotAllowed = "VLAN not allowed at the port",
        /// An access port takes no frame with the tag of a VLAN.
        TagAtAccess = "VLAN tag at an access port",
        /// A trunk without a native VLAN takes no frame without a tag.
        NoTag = "no VLAN tag at a trunk",
        /// The tag is cut, or its VID is reserved.
        BadTag = "bad VLAN tag",
    }
}

/// Where and why a packet was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Where.
    pub spot: Spot,
    /// Why.
    pub cause: Cause,
}

impl Place {
    /// Its rank among the places at which copies of one packet were discarded, at `at`: the least is the place of the
    /// loss. A member of an ELAN that ignores a flooded frame counts only if there is no other place.
    #[must_use]
    pub fn rank(self, at: Instant) -> (bool, Instant) {
        (self.cause == Cause::Service(Discard::NotForUs), at)
    }
}

/// An event of a program with an ATM socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketEvent {
    /// The adapter of the writing program took a PDU.
    Sent {
        /// The PDU.
        mark: Mark,
        /// Octets of its SDU.
        octets: u32,
    },
    /// A PDU reached a program.
    Received {
        /// The PDU.
        mark: Mark,
        /// Index of the reading program at its node.
        program: usize,
        /// Octets of its SDU.
        octets: u32,
    },
    /// A PDU left the programs of the lab: it reached the far end of a link out of the lab, or a user of the ATM
    /// service that is no program.
    Left(Mark),
    /// A host has forgotten one of its calls.
    Forgotten(SocketId),
}

aerostat_wire::named! {
    /// Why a host's stack refused a packet.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Refusal {
        /// The payload has no room for the stamp, or the packet does not fit the MTU.
        Size = "size",
        /// A host may not send to this destination address.
        Address = "address",
    }
}

/// The parts of a packet that are needed to find its flow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) protocol: Protocol,
    pub(super) source_port: u16,
    pub(super) destination_port: u16,
    pub(super) key: PacketKey,
    pub(super) payload: u32,
    pub(super) ip_octets: u32,
    pub(super) ends: (Ipv4Addr, Ipv4Addr),
    /// True for the answer to a packet of the flow.
    pub(super) answer: bool,
}

/// A packet of a flow, or the answer to a packet of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The flow.
    pub flow: FlowId,
    /// The packet, or the packet that is answered.
    pub key: PacketKey,
    /// True for the answer.
    pub answer: bool,
}

/// Finds the flow of a packet. The cost does not depend on the number of flows, if each has ports of its own.
#[derive(Clone, Debug, Default)]
pub struct FlowIndex(BTreeMap<(Ipv4Addr, Ipv4Addr, Protocol), BTreeMap<Ports, Vec<Listed>>>);

/// The ports by which flows of a pair of hosts are found: source and destination. `None` if any fits, or one of
/// several.
type Ports = [Option<u16>; 2];

/// A flow, and its source ports if these are several.
type Listed = (FlowId, Option<SourcePorts>);

impl FlowIndex {
    /// An index of those flows of the lab that `of` selects.
    #[must_use]
    pub fn new(flows: &[FlowSpec], of: impl Fn(&FlowSpec) -> bool) -> Self {
        let mut index = Self::default();
        for (number, flow) in flows.iter().enumerate().filter(|(_, flow)| of(flow)) {
            let only = flow.source_ports.and_then(SourcePorts::single);
            let several = flow.source_ports.filter(|_| only.is_none());
            let key = (flow.source, flow.destination, flow.protocol);
            let flows = index.0.entry(key).or_default();
            let list = flows.entry([only, flow.destination_port]).or_default();
            list.push((FlowId(number), several));
        }
        index
    }

    /// True if the index has no flows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The flow of a packet, or of the packet that it answers.
    pub(super) fn flow_of(&self, seen: &Seen) -> Option<FlowId> {
        let (from, to) = if seen.answer {
            (seen.ends.1, seen.ends.0)
        } else {
            seen.ends
        };
        let flows = self.0.get(&(from, to, seen.protocol))?;
        let (source, destination) = (Some(seen.source_port), Some(seen.destination_port));
        let ports = [
            [source, destination],
            [source, None],
            [None, destination],
            [None, None],
        ];
        // Of the flows that fit, the first one of the lab counts.
        let fits = |(_, ports): &&Listed| ports.is_none_or(|of| of.contains(seen.source_port));
        let lists = ports.iter().filter_map(|ports| flows.get(ports));
        let found = lists.filter_map(|list| list.iter().find(fits));
        found.map(|(flow, _)| *flow).min()
    }

    /// Finds the flow of an SDU, an Ethernet frame or an IP packet, which may be a packet of the flow or the answer to
    /// one. `octets` may end after the headers.
    #[must_use]
    pub fn recognise(&self, octets: &[u8]) -> Option<Found> {
        if self.0.is_empty() {
            return None;
        }
        let mut packets = packets_in(octets).into_iter().flatten();
        packets.find_map(|packet| self.of_packet(packet))
    }

    fn of_packet(&self, packet: &[u8]) -> Option<Found> {
        let seen = look(packet)?;
        Some(Found {
            flow: self.flow_of(&seen)?,
            key: seen.key,
            answer: seen.answer,
        })
    }
}

/// Values of the headers of a packet by which it is told from others on its way, whatever carries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Identity {
    /// Source and destination.
    pub ends: (Ipv4Addr, Ipv4Addr),
    /// Protocol.
    pub protocol: Protocol,
    /// Source and destination port; the identifier and 0 for ICMP.
    pub ports: (u16, u16),
    /// Number of the packet.
    pub key: PacketKey,
    /// Octets of the IP packet.
    pub octets: u32,
    /// True for an echo reply.
    pub answer: bool,
}

/// The packet in an SDU, an Ethernet frame or an IP packet, with the rules of [`FlowIndex::recognise`]: a datagram,
/// a segment with payload, an echo request or a reply. `octets` may end after the headers.
#[must_use]
pub fn identify(octets: &[u8]) -> Option<Identity> {
    let seen = packets_in(octets).into_iter().flatten().find_map(look)?;
    Some(Identity {
        ends: seen.ends,
        protocol: seen.protocol,
        ports: (seen.source_port, seen.destination_port),
        key: seen.key,
        octets: seen.ip_octets,
        answer: seen.answer,
    })
}

/// Where an IP packet may begin in an SDU, an Ethernet frame or an IP packet, the most likely place first. `octets` may
/// end after the headers.
pub(crate) fn packets_in(octets: &[u8]) -> [Option<&[u8]>; 4] {
    match behind_llc(octets) {
        Some(packet) => [packet, None, None, None],
        None => [
            Some(octets),
            packet_in_frame(octets),
            packet_in_lane(octets),
            packet_in_ppp(octets),
        ],
    }
}

/// The packet behind a header of LLC; `None` if there is no such header of IP, LANE, a bridged frame or PPP.
fn behind_llc(octets: &[u8]) -> Option<Option<&[u8]>> {
    if let Some(ppp) = octets.strip_prefix(&PPP_LLC) {
        return Some(packet_in_ppp(ppp));
    }
    match LlcSnap::decode(octets).ok()? {
        (LlcSnap::Ipv4 | LlcSnap::MpoaTagged { .. }, packet) => Some(Some(packet)),
        (LlcSnap::LaneData { .. }, data) => Some(packet_in_lane(data)),
        (LlcSnap::BridgedEthernet { .. }, frame) => Some(packet_in_frame(frame)),
        _ => None,
    }
}

/// The IPv4 packet of PPP.
fn packet_in_ppp(ppp: &[u8]) -> Option<&[u8]> {
    ppp.strip_prefix(&PPP_IPV4.to_be_bytes())
}

/// The IPv4 packet in an SDU that crosses the network so.
pub(crate) fn packet_in(sdu: &[u8], over: Encapsulation) -> Option<&[u8]> {
    match (over, behind_llc(sdu)) {
        (Encapsulation::Native | Encapsulation::Atp, _) => None,
        (_, Some(packet)) => packet,
        (Encapsulation::Lane, None) => packet_in_lane(sdu),
        (Encapsulation::ClassicalIp, None) => Some(sdu),
        // Octets of VC multiplexing tell which of the three it is.
        (Encapsulation::Line, None) => match sdu {
            [0, 0, ..] => packet_in_lane(sdu),
            [0, ..] => packet_in_ppp(sdu),
            _ => Some(sdu),
        },
        (Encapsulation::Mpoa, None) => None,
    }
}

/// A frame of LAN emulation has two octets in front of it.
fn packet_in_lane(data: &[u8]) -> Option<&[u8]> {
    data.get(2..).and_then(packet_in_frame)
}

fn packet_in_frame(frame: &[u8]) -> Option<&[u8]> {
    match frame.get(12..ETHERNET)? {
        [8, 0] => frame.get(ETHERNET..),
        [0x88, 0x64] => frame.get(ETHERNET + PPPOE..).and_then(packet_in_ppp),
        // What is behind the tag of a VLAN stands there as behind the addresses.
        [0x81, 0] => frame.get(TAG_LEN..).and_then(packet_in_frame),
        _ => match LlcSnap::decode(frame.get(ETHERNET..SNAP)?) {
            Ok((LlcSnap::Ipv4, _)) => frame.get(SNAP..),
            _ => None,
        },
    }
}

/// Reads the head of an IPv4 packet, up to the stamp of a datagram.
///
/// `None` for fragments (only the first has ports, and none of them is a complete packet), other protocols, and TCP
/// segments without payload: acknowledgements and handshakes do not count as part of the stream. Neither does a
/// keep-alive probe.
pub(super) fn look(packet: &[u8]) -> Option<Seen> {
    let header: &[u8; 20] = packet.first_chunk()?;
    let (version, header_len) = (header[0] >> 4, usize::from(header[0] & 15) * 4);
    let total = usize::from(u16_at(packet, 2)?);
    if version != 4 || header_len < 20 || total < header_len || u16_at(packet, 6)? & 0x3fff != 0 {
        return None;
    }
    let ident = u16_at(packet, 4)?;
    let address =
        |at: usize| Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]);
    let body = packet.get(header_len..)?;
    let octets = total - header_len;
    let mut seen = Seen {
        protocol: Protocol::Udp,
        source_port: u16_at(body, 0)?,
        destination_port: u16_at(body, 2)?,
        key: PacketKey::Stamped { sequence: 0 },
        payload: 0,
        ip_octets: total as u32,
        ends: (address(12), address(16)),
        answer: false,
    };
    match header[9] {
        6 => {
            let length = octets.checked_sub(usize::from(*body.get(12)? >> 4) * 4)? as u32;
            seen.protocol = Protocol::Tcp;
            seen.payload = length;
            seen.key = PacketKey::Segment {
                port: seen.source_port,
                sequence: u32::from(u16_at(body, 4)?) << 16 | u32::from(u16_at(body, 6)?),
                length,
                ident,
            };
            let probe = length == 1 && is_probe(body);
            (length > 0 && !probe).then_some(seen)
        }
        17 => {
            let checksum = u16_at(body, 6)?;
            seen.payload = octets.checked_sub(8)? as u32;
            seen.key = match stamp_of(&body[8..], seen.payload) {
                Some(stamp) => PacketKey::Stamped {
                    sequence: stamp.sequence,
                },
                None => PacketKey::Datagram { ident, checksum },
            };
            Some(seen)
        }
        1 => {
            seen.answer = match body[0] {
                8 => false,
                0 => true,
                _ => return None,
            };
            let ident = u16_at(body, 4)?;
            seen.protocol = Protocol::Icmp;
            (seen.source_port, seen.destination_port) = (ident, 0);
            seen.payload = octets.checked_sub(8)? as u32;
            let sequence = u16_at(body, 6)?;
            let stamp = stamp_of(body.get(8..)?, seen.payload);
            let stamp = stamp.filter(|stamp| stamp.sequence as u16 == sequence);
            seen.key = PacketKey::Echo {
                ident,
                sequence: stamp.map_or(sequence.into(), |stamp| stamp.sequence),
            };
            Some(seen)
        }
        _ => None,
    }
}

/// The stamp of a datagram with this many octets of payload, of which `data` may have fewer, or more (padding).
fn stamp_of(data: &[u8], payload: u32) -> Option<Stamp> {
    let payload = payload as usize;
    Stamp::decode(data.get(..payload).unwrap_or(data)).filter(|_| payload >= SHORT_STAMP)
}

/// True if a TCP segment of one octet is a keep-alive probe, which repeats the last number of its stream with an octet
/// of garbage (RFC 9293 §3.8.4). A probe has the flag ACK alone; a message of one octet has PSH or FIN, too.
fn is_probe(segment: &[u8]) -> bool {
    const FLAGS: u8 = 0x3f;
    const ACK: u8 = 0x10;
    let flags = segment.get(13).map(|flags| flags & FLAGS);
    let start = segment
        .get(12)
        .map_or(0, |offset| usize::from(offset >> 4) * 4);
    flags == Some(ACK) && segment.get(start) == Some(&0)
}

fn u16_at(octets: &[u8], at: usize) -> Option<u16> {
    let two = octets.get(at..at + 2)?;
    Some(u16::from_be_bytes([two[0], two[1]]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(number: u16, source: SourcePorts) -> FlowSpec {
        FlowSpec {
            name: number.to_string(),
            source: Ipv4Addr::new(10, 0, 0, 1),
            destination: Ipv4Addr::new(10, 0, 0, 2),
            protocol: Protocol::Udp,
            source_ports: Some(source),
            destination_port: Some(5001 + number),
            voice: false,
            series: false,
        }
    }

    fn seen(ports: [u16; 2]) -> Seen {
        Seen {
            protocol: Protocol::Udp,
            source_port: ports[0],
            destination_port: ports[1],
            key: PacketKey::Stamped { sequence: 0 },
            payload: 100,
            ip_octets: 128,
            ends: (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2)),
            answer: false,
        }
    }

    #[test]
    fn a_flow_of_a_pair_is_found_without_a_look_at_the_others() {
        let flows: Vec<FlowSpec> = (0..10_000)
            .map(|number| flow(number, SourcePorts::only(40_001 + number)))
            .collect();
        let index = FlowIndex::new(&flows, |_| true);
        let lists = index.0.values().flat_map(BTreeMap::values);
        assert_eq!(lists.map(Vec::len).max(), Some(1));
        for number in [0, 1, 9999] {
            let found = index.flow_of(&seen([40_001 + number, 5001 + number]));
            assert_eq!(found, Some(FlowId(number.into())));
        }
        assert_eq!(index.flow_of(&seen([40_001, 5002])), None);
    }

    #[test]
    fn of_the_flows_that_fit_the_first_one_counts_whatever_their_ports() {
        let any = FlowSpec {
            source_ports: None,
            destination_port: None,
            ..flow(0, SourcePorts::only(1))
        };
        let several = flow(7, SourcePorts::every(40_001, 2));
        let only = flow(7, SourcePorts::only(40_003));
        let orders = [
            [&any, &several, &only],
            [&only, &several, &any],
            [&several, &any, &only],
        ];
        for order in orders {
            let flows: Vec<FlowSpec> = order.into_iter().cloned().collect();
            let index = FlowIndex::new(&flows, |_| true);
            assert_eq!(index.flow_of(&seen([40_003, 5008])), Some(FlowId(0)));
        }
        let index = FlowIndex::new(&[only, several.clone()], |_| true);
        assert_eq!(index.flow_of(&seen([40_005, 5008])), Some(FlowId(1)));
        assert_eq!(index.flow_of(&seen([40_004, 5008])), None);
    }

    #[test]
    fn a_packet_is_found_by_its_encapsulation_and_not_in_what_programs_write() {
        use Encapsulation::{Atp, ClassicalIp, Lane, Mpoa, Native};
        let packet = [&[0x45, 0, 0, 20][..], &[7; 16]].concat();
        let frame = [&[2; 12][..], &[8, 0], &packet].concat();
        let lane = [&[0, 1][..], &frame].concat();
        let llc = [&[0xaa, 0xaa, 3, 0, 0, 0, 8, 0][..], &packet].concat();
        let tagged = [
            &[0xaa, 0xaa, 3, 0, 0, 0, 0x88, 0x4c, 1, 2, 3, 4][..],
            &packet,
        ]
        .concat();
        for (sdu, over) in [
            (&lane, vec![Lane]),
            (&llc, vec![ClassicalIp, Mpoa]),
            (&tagged, vec![Mpoa]),
            (&packet, vec![ClassicalIp]),
        ] {
            for over in over {
                assert_eq!(packet_in(sdu, over), Some(&packet[..]), "{over:?}");
            }
            for over in [Native, Atp] {
                assert_eq!(packet_in(sdu, over), None);
            }
        }
        assert_eq!(packet_in(&packet, Lane), None);
        assert_eq!(packet_in(&[0xff, 0, 1, 1], Lane), None);
    }
}
