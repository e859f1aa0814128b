//! What an experiment sees of its flows: one sample when a packet leaves a host's stack, one when
//! it arrives.
//!
//! The meter stands outside of all protocols. The node that carries frames between a host's stack
//! (embedded or a kernel's) and its LAN emulation client knows by which path each goes or came; it
//! shows every frame and that path to its [`Meter`], which recognises the flows that the lab
//! declared and nothing else. [`super::flow_stats::FlowStats`] brings the samples of both ends
//! together.
//!
//! A packet is recognised at the other end by its [`PacketKey`], never by a mark that the network
//! would carry.

use super::apps::Stamp;
use aerostat_proto::Instant;
use smoltcp::wire::{
    EthernetFrame, EthernetProtocol, Icmpv4Message, Icmpv4Packet, IpProtocol, Ipv4Packet,
    TcpPacket, UdpPacket,
};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// By which way a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Path {
    /// Through the emulated LAN, and so through the routers between two of them.
    Lane,
    /// Over an MPOA shortcut.
    Shortcut,
}

impl Path {
    /// The word for results: `routed` or `shortcut`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Lane => "routed",
            Self::Shortcut => "shortcut",
        }
    }
}

/// The protocols whose flows can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// TCP segments with payload.
    Tcp,
    /// UDP datagrams.
    Udp,
    /// ICMP echo requests.
    Icmp,
}

/// A flow, in one direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowSpec {
    /// The name that the lab gives it.
    pub name: String,
    /// Source address.
    pub source: Ipv4Addr,
    /// Destination address.
    pub destination: Ipv4Addr,
    /// Protocol.
    pub protocol: Protocol,
    /// Source port; `None`: any, and always for ICMP.
    pub source_port: Option<u16>,
    /// Destination port; `None`: any, and always for ICMP.
    pub destination_port: Option<u16>,
    /// A telephone call, to be rated by [`super::emodel`].
    pub voice: bool,
}

/// A flow's place in the lab's list of flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(
    /// From 0.
    pub usize,
);

/// At which end a packet was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// It left the sending host's stack.
    Sent,
    /// It reached the receiving host's stack.
    Received,
    /// Its answer is back at the sending host's stack: the reply to an ICMP echo request.
    Answered,
}

/// What tells one packet of a flow from the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PacketKey {
    /// A datagram with a [`Stamp`]: its number.
    Stamped {
        /// From 0, by one.
        sequence: u64,
    },
    /// A datagram of some other program.
    Datagram {
        /// Identification of the IP header.
        ident: u16,
        /// UDP checksum: tells datagrams apart when the host leaves `ident` zero.
        checksum: u16,
    },
    /// A TCP segment.
    Segment {
        /// Sequence number of the first octet.
        sequence: u32,
        /// Octets of payload.
        length: u32,
        /// Identification of the IP header: tells a retransmission from the first.
        ident: u16,
    },
    /// An ICMP echo request.
    Echo {
        /// Identifier.
        ident: u16,
        /// Sequence number.
        sequence: u16,
    },
}

/// One observation of one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Its flow.
    pub flow: FlowId,
    /// At which end.
    pub side: Side,
    /// By which way it goes (sent) or came (received).
    pub path: Path,
    /// When.
    pub at: Instant,
    /// Which packet.
    pub key: PacketKey,
    /// Octets of TCP, UDP or ICMP payload.
    pub payload: u32,
    /// Octets of the IP datagram.
    pub ip_octets: u32,
}

/// Recognises the flows that begin or end at one host.
#[derive(Clone, Debug, Default)]
pub struct Meter {
    flows: BTreeMap<(Ipv4Addr, Ipv4Addr, Protocol), Vec<(FlowId, Ports)>>,
    address: Option<Ipv4Addr>,
}

#[derive(Clone, Copy, Debug)]
struct Ports {
    source: Option<u16>,
    destination: Option<u16>,
}

impl Meter {
    /// The meter of the host with this address, for the lab's list of flows.
    #[must_use]
    pub fn new(flows: &[FlowSpec], address: Ipv4Addr) -> Self {
        let mut meter = Self {
            address: Some(address),
            ..Self::default()
        };
        for (index, flow) in flows.iter().enumerate() {
            if flow.source == address || flow.destination == address {
                let ports = Ports {
                    source: flow.source_port,
                    destination: flow.destination_port,
                };
                let key = (flow.source, flow.destination, flow.protocol);
                meter
                    .flows
                    .entry(key)
                    .or_default()
                    .push((FlowId(index), ports));
            }
        }
        meter
    }

    /// Shows a frame that the host's stack sends by `path`.
    #[must_use]
    pub fn sent(&self, frame: &[u8], path: Path, now: Instant) -> Option<Sample> {
        self.sample(frame, Side::Sent, path, now)
    }

    /// Shows a frame that came by `path` and goes to the host's stack.
    #[must_use]
    pub fn received(&self, frame: &[u8], path: Path, now: Instant) -> Option<Sample> {
        self.sample(frame, Side::Received, path, now)
    }

    fn sample(&self, frame: &[u8], side: Side, path: Path, at: Instant) -> Option<Sample> {
        if self.flows.is_empty() {
            return None;
        }
        let frame = EthernetFrame::new_checked(frame).ok()?;
        if frame.ethertype() != EthernetProtocol::Ipv4 {
            return None;
        }
        let packet = Ipv4Packet::new_checked(frame.payload()).ok()?;
        // Only the first fragment has ports, and none of them is a whole packet.
        if packet.more_frags() || packet.frag_offset() != 0 {
            return None;
        }
        let (from, to) = (packet.src_addr(), packet.dst_addr());
        let own = if side == Side::Sent { from } else { to };
        if self.address != Some(own) {
            return None;
        }
        let seen = look(&packet)?;
        let (side, ends) = match (side, seen.answer) {
            (side, false) => (side, (from, to)),
            (Side::Received, true) => (Side::Answered, (to, from)),
            (Side::Sent | Side::Answered, true) => return None,
        };
        let flows = self.flows.get(&(ends.0, ends.1, seen.protocol))?;
        let fits = |wanted: Option<u16>, port| wanted.is_none_or(|wanted| wanted == port);
        let (flow, _) = flows.iter().find(|(_, ports)| {
            fits(ports.source, seen.source_port) && fits(ports.destination, seen.destination_port)
        })?;
        Some(Sample {
            flow: *flow,
            side,
            path,
            at,
            key: seen.key,
            payload: seen.payload,
            ip_octets: u32::from(packet.total_len()),
        })
    }
}

/// The parts of a packet that matter.
struct Seen {
    protocol: Protocol,
    source_port: u16,
    destination_port: u16,
    key: PacketKey,
    payload: u32,
    /// Not a packet of the flow, but the answer to one.
    answer: bool,
}

fn look(packet: &Ipv4Packet<&[u8]>) -> Option<Seen> {
    match packet.next_header() {
        IpProtocol::Tcp => {
            let tcp = TcpPacket::new_checked(packet.payload()).ok()?;
            let length = tcp.payload().len() as u32;
            // Acknowledgements and handshakes are no part of the stream.
            (length > 0).then(|| Seen {
                protocol: Protocol::Tcp,
                source_port: tcp.src_port(),
                destination_port: tcp.dst_port(),
                key: PacketKey::Segment {
                    sequence: tcp.seq_number().0 as u32,
                    length,
                    ident: packet.ident(),
                },
                payload: length,
                answer: false,
            })
        }
        IpProtocol::Udp => {
            let udp = UdpPacket::new_checked(packet.payload()).ok()?;
            let key = match Stamp::decode(udp.payload()) {
                Some(stamp) => PacketKey::Stamped {
                    sequence: stamp.sequence,
                },
                None => PacketKey::Datagram {
                    ident: packet.ident(),
                    checksum: udp.checksum(),
                },
            };
            Some(Seen {
                protocol: Protocol::Udp,
                source_port: udp.src_port(),
                destination_port: udp.dst_port(),
                key,
                payload: udp.payload().len() as u32,
                answer: false,
            })
        }
        IpProtocol::Icmp => {
            let icmp = Icmpv4Packet::new_checked(packet.payload()).ok()?;
            let answer = match icmp.msg_type() {
                Icmpv4Message::EchoRequest => false,
                Icmpv4Message::EchoReply => true,
                _ => return None,
            };
            Some(Seen {
                protocol: Protocol::Icmp,
                source_port: 0,
                destination_port: 0,
                key: PacketKey::Echo {
                    ident: icmp.echo_ident(),
                    sequence: icmp.echo_seq_no(),
                },
                payload: icmp.data().len() as u32,
                answer,
            })
        }
        _ => None,
    }
}
