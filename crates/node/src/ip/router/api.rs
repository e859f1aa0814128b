//! The interface of a router: its construction, inputs, outputs and counters.

use super::engine::{Forwarding, QueueLimit};
use crate::ip::neighbours::{ArpEvent, ArpParams};
use crate::ip::routes::StaticRoute;
use aerostat_proto::Trace;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

/// One interface of a router.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouterInterface {
    /// Its name, for people.
    pub name: String,
    /// Hardware address; unicast.
    pub mac: [u8; 6],
    /// IPv4 address.
    pub address: Ipv4Addr,
    /// Prefix length of the subnet, 0–32.
    pub prefix: u8,
    /// Largest IP datagram, octets; at least 576.
    pub mtu: usize,
}

/// Configuration of a router.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouterConfig {
    /// Its interfaces; an interface's number is its index here.
    pub interfaces: Vec<RouterInterface>,
    /// Routes in addition to those to the subnets of the interfaces.
    pub routes: Vec<StaticRoute>,
    /// Forwarding speed.
    pub forwarding: Forwarding,
    /// How much may wait while one packet is being forwarded; ignored with [`Forwarding::Wire`].
    pub queue: QueueLimit,
    /// Timers and limits of ARP.
    pub arp: ArpParams,
}

/// Inputs of a [`Router`](super::Router).
#[derive(Clone, Copy, Debug)]
pub enum RouterInput<'a> {
    /// An Ethernet frame that reached an interface.
    Frame {
        /// The interface's number.
        interface: usize,
        /// The octets from the destination address to the end of the payload.
        bytes: &'a [u8],
    },
    /// An IP packet from a shortcut that ends at this router, to be forwarded like any other.
    Inject(
        /// The octets from the IP header on.
        &'a [u8],
    ),
    /// Asks for the hardware address of a neighbour; the answer is [`RouterOutput::Resolved`].
    Resolve {
        /// Copied to the answer.
        token: u64,
        /// The interface's number.
        interface: usize,
        /// The neighbour.
        address: IpAddr,
    },
    /// The link of an interface came up or went down. Routes over an interface without a link are not used, and their
    /// destinations are unreachable unless another route has the same prefix. All links are up at first.
    Link {
        /// The interface's number.
        interface: usize,
        /// True if the link is up.
        up: bool,
    },
    /// Replaces the static routes.
    Routes(&'a [StaticRoute]),
}

/// Outputs of a [`Router`](super::Router).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RouterOutput {
    /// An Ethernet frame to send, without padding and check sequence.
    Frame {
        /// The interface's number.
        interface: usize,
        /// The octets from the destination address to the end of the payload.
        bytes: Vec<u8>,
    },
    /// The answer to [`RouterInput::Resolve`].
    Resolved {
        /// As asked.
        token: u64,
        /// As in the question.
        interface: usize,
        /// As in the question.
        address: IpAddr,
        /// `None` if there was no answer to ARP.
        mac: Option<[u8; 6]>,
        /// There was no answer, but the neighbour was lost less than [`RETURN`](aerostat_proto::mpoa::mps::RETURN) ago,
        /// or that cannot be told.
        lately: bool,
    },
    /// A neighbour was learned, has another hardware address, or is no longer known.
    NeighbourChanged {
        /// The interface's number.
        interface: usize,
        /// The neighbour.
        address: IpAddr,
        /// Its hardware address; `None`: no longer known.
        mac: Option<[u8; 6]>,
    },
    /// The routing table changed.
    RoutesChanged,
    /// A trace event.
    Trace(Trace),
}

impl RouterOutput {
    /// The output that tells an event of the neighbours of an interface, if it concerns others.
    pub(super) fn news<J, A: Into<IpAddr>>(
        event: ArpEvent<J, A>,
        interface: usize,
    ) -> Option<Self> {
        Some(match event {
            ArpEvent::Changed { address, mac } => Self::NeighbourChanged {
                interface,
                address: address.into(),
                mac,
            },
            ArpEvent::Answer {
                token,
                address,
                mac,
                lately,
            } => Self::Resolved {
                token,
                interface,
                address: address.into(),
                mac,
                lately,
            },
            ArpEvent::Ask { .. }
            | ArpEvent::Release { .. }
            | ArpEvent::Failed { .. }
            | ArpEvent::Overflow(_) => return None,
        })
    }
}

aerostat_wire::named! {
    /// Why a packet or frame was dropped.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum DropReason {
        /// Cut short, wrong header checksum, or addresses that routers do not forward.
        Malformed = "malformed",
        /// Neither IPv4 nor ARP.
        NotIp = "not_ip",
        /// Multicast or broadcast: never forwarded.
        Multicast = "multicast",
        /// The forwarding queue was full.
        QueueFull = "queue_full",
        /// The time to live had expired.
        TimeToLive = "time_to_live",
        /// There was no route.
        NoRoute = "no_route",
        /// Larger than the MTU of the outgoing interface.
        TooBig = "too_big",
        /// The neighbour did not answer ARP.
        NoNeighbour = "no_neighbour",
        /// The neighbour has not answered yet, and too many packets or neighbours wait already.
        ArpQueueFull = "arp_queue_full",
    }
}

/// Counters of an interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InterfaceCounters {
    /// Frames received for this router.
    pub in_frames: u64,
    /// Octets of these.
    pub in_octets: u64,
    /// Frames sent.
    pub out_frames: u64,
    /// Octets of these.
    pub out_octets: u64,
    /// Packets among `out_frames` that were forwarded; packets made here are not included.
    pub forwarded_packets: u64,
    /// IP octets of these.
    pub forwarded_octets: u64,
    /// Packets that arrived here and were dropped, by reason.
    pub dropped: BTreeMap<DropReason, u64>,
}
