//! An experiment's observation of its flows: one sample when a packet leaves a host's stack, one when it arrives.
//!
//! The meter is independent of all protocols. A node that carries frames between a host's stack (embedded or a
//! kernel's) and its LAN emulation client knows the path of each frame. It shows every frame and the path to its
//! [`Meter`], which recognises only the flows that the lab declares. [`super::flow_stats::FlowStats`] combines the
//! samples of both ends.
//!
//! A packet is recognised at the other end by its [`PacketKey`], never by a mark in the packet for the network.

use super::apps::{AppId, Offer};
use super::books::{FlowIndex, Refusal, look};
use super::packet::{self, Frame};
use super::source_ports::SourcePorts;
use aerostat_proto::Instant;
use aerostat_wire::ipv4::Ipv4View;
use std::net::Ipv4Addr;

aerostat_wire::named! {
    /// The path of a packet.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Path {
        /// Over the emulated LAN, which includes the routers between two ELANs.
        Lane = "routed",
        /// Over an MPOA shortcut.
        Shortcut = "shortcut",
    }
}

impl FlowId {
    /// The flow that a program sends, if the program is a sender: the flow with number N of a lab has the sender 2N and
    /// the receiver 2N + 1.
    #[must_use]
    pub const fn of_sender(app: AppId) -> Option<Self> {
        if app.0.is_multiple_of(2) {
            Some(Self(app.0 as usize / 2))
        } else {
            None
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
    /// The name in the lab.
    pub name: String,
    /// Source address.
    pub source: Ipv4Addr,
    /// Destination address.
    pub destination: Ipv4Addr,
    /// Protocol.
    pub protocol: Protocol,
    /// Source ports, or the identifier of echo requests; `None` matches any.
    pub source_ports: Option<SourcePorts>,
    /// Destination port; `None` matches any, and is always used for ICMP.
    pub destination_port: Option<u16>,
    /// True for a telephone call, to be rated by [`super::emodel`].
    pub voice: bool,
    /// True to keep its packets one by one ([`super::flow_stats::Series`]).
    pub series: bool,
}

/// A flow's index in the lab's list of flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(
    /// Counted from 0.
    pub usize,
);

/// The event that a sample records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// The packet left the sending host's stack.
    Sent,
    /// The packet reached the receiving host's stack.
    Received,
    /// The answer has returned to the sending host's stack: the reply to an ICMP echo request.
    Answered,
    /// The sending program made the packet, and the host's stack accepted it.
    Offered,
    /// The sending program made the packet, and the host's stack refused it.
    Refused(Refusal),
}

/// Identifies one packet of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PacketKey {
    /// A datagram with a [`super::apps::Stamp`]: its number.
    Stamped {
        /// Counted from 0.
        sequence: u64,
    },
    /// A datagram of another program.
    Datagram {
        /// Identification of the IP header.
        ident: u16,
        /// UDP checksum, which distinguishes datagrams when the host leaves `ident` zero.
        checksum: u16,
    },
    /// A TCP segment.
    Segment {
        /// Source port, which distinguishes the connections of a flow.
        port: u16,
        /// Sequence number of the first octet.
        sequence: u32,
        /// Octets of payload.
        length: u32,
        /// Identification of the IP header, which distinguishes a retransmission from the first transmission.
        ident: u16,
    },
    /// An ICMP echo request.
    Echo {
        /// Identifier.
        ident: u16,
        /// Number of the request: that of its [`super::apps::Stamp`], or the sequence number, which wraps after 65 536
        /// requests.
        sequence: u64,
    },
}

/// One observation of one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Its flow.
    pub flow: FlowId,
    /// The event.
    pub side: Side,
    /// The path on which the packet leaves (sent) or came (received).
    pub path: Path,
    /// Time.
    pub at: Instant,
    /// Key of the packet.
    pub key: PacketKey,
    /// Octets of TCP, UDP or ICMP payload.
    pub payload: u32,
    /// Octets of the IP datagram.
    pub ip_octets: u32,
}

/// Recognises the flows that begin or end at one host.
#[derive(Clone, Debug, Default)]
pub struct Meter {
    flows: FlowIndex,
    addresses: Vec<Ipv4Addr>,
}

impl Meter {
    /// The meter of the host with these addresses, for the lab's list of flows.
    #[must_use]
    pub fn new(flows: &[FlowSpec], addresses: Vec<Ipv4Addr>) -> Self {
        let is_own = |address: Ipv4Addr| addresses.contains(&address);
        let own = |flow: &FlowSpec| is_own(flow.source) || is_own(flow.destination);
        Self {
            flows: FlowIndex::new(flows, own),
            addresses,
        }
    }

    /// True if no flow begins or ends at this host.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.flows.is_empty()
    }

    /// Takes a frame that the host's stack sends by `path`.
    #[must_use]
    pub fn sent(&self, frame: &[u8], path: Path, now: Instant) -> Option<Sample> {
        self.sample(frame, Side::Sent, path, now)
    }

    /// Takes a frame that came by `path` and goes to the host's stack.
    #[must_use]
    pub fn received(&self, frame: &[u8], path: Path, now: Instant) -> Option<Sample> {
        self.sample(frame, Side::Received, path, now)
    }

    /// Takes a packet that a program of the host wanted to send.
    #[must_use]
    pub fn offered(&self, app: AppId, offer: &Offer, now: Instant) -> Option<Sample> {
        let flow = FlowId::of_sender(app).filter(|_| !self.flows.is_empty())?;
        Some(Sample {
            flow,
            side: offer.refused.map_or(Side::Offered, Side::Refused),
            path: Path::Lane,
            at: now,
            key: offer.key,
            payload: offer.payload,
            ip_octets: 0,
        })
    }

    fn sample(&self, frame: &[u8], side: Side, path: Path, at: Instant) -> Option<Sample> {
        if self.flows.is_empty() {
            return None;
        }
        let frame = Frame::of(frame).filter(|frame| frame.kind == packet::IPV4)?;
        let packet = Ipv4View::new(frame.payload)?;
        let own = if side == Side::Sent {
            packet.source()
        } else {
            packet.destination()
        };
        if !self.addresses.contains(&own) {
            return None;
        }
        let seen = look(frame.payload)?;
        let side = match (side, seen.answer) {
            (side, false) => side,
            (Side::Received, true) => Side::Answered,
            (_, true) => return None,
        };
        Some(Sample {
            flow: self.flows.flow_of(&seen)?,
            side,
            path,
            at,
            key: seen.key,
            payload: seen.payload,
            ip_octets: seen.ip_octets,
        })
    }
}
