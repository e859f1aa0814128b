//! What happens in a lab: flows, and what breaks.

use super::{LinkId, NodeId};
use aerostat_node::host::sockets::Role;
use aerostat_node::rate::PacketRate;
use aerostat_proto::{Duration, Instant};
use std::net::Ipv4Addr;

/// Traffic between two hosts (or routers).
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// Unique name.
    pub name: String,
    /// Sender.
    pub from: NodeId,
    /// Receiver.
    pub to: NodeId,
    /// If they are on Ethernet segments behind `from` and `to`: their places in [`Host::bridge`](super::Host::bridge).
    pub segment: [Option<usize>; 2],
    /// IP address that the sender sends to.
    pub destination: Ipv4Addr,
    /// What is sent.
    pub kind: FlowKind,
    /// TCP or UDP port of the receiver; `None`: 5001 and the flow's place in the list.
    pub port: Option<u16>,
    /// UDP: the sender's timer ticks.
    pub ticks: Option<Ticks>,
    /// One direction of a telephone call, to be rated as such.
    pub voice: bool,
    /// When it starts, or nothing sooner: see `waits`.
    pub start: Duration,
    /// It starts as soon as both its hosts have joined their networks, not at a time that the file gives.
    pub waits: bool,
    /// How long it sends; `None`: to the end of the run.
    pub duration: Option<Duration>,
    /// The failure that it is there to show.
    pub expect: Option<Expect>,
}

/// A failure that a flow is there to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// Some of its packets are lost.
    Loss,
    /// None of its packets arrives.
    Nothing,
}

/// A sender whose timer ticks coarsely: what has become due is sent at the next tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticks {
    /// Time between ticks, not zero.
    pub tick: Duration,
    /// Time between datagrams of one tick; all of a tick fit before the next.
    pub spacing: Duration,
}

/// What a flow sends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FlowKind {
    /// One TCP connection that sends as fast as it can.
    Tcp,
    /// UDP datagrams.
    Udp {
        /// Octets of UDP payload, 24..=65507.
        size: usize,
        /// How fast.
        rate: SendRate,
        /// True: exponentially distributed gaps; false: equal ones.
        poisson: bool,
    },
    /// ICMP echo requests.
    Ping {
        /// Octets of ICMP payload, 0..=65507.
        size: usize,
        /// How fast; one per second unless the file says otherwise.
        rate: SendRate,
    },
    /// TCP request and response, one after the other: counts transactions.
    Rr {
        /// Octets of a request and of a response.
        size: usize,
    },
}

/// A sending rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SendRate {
    /// As the file gives it.
    pub given: GivenRate,
    /// What it makes with packets of the flow's size.
    pub packets: PacketRate,
}

/// A sending rate as the file gives it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum GivenRate {
    /// Packets per second.
    Packets(f64),
    /// Bits of payload per second.
    Bits(u64),
}

impl GivenRate {
    /// The rate of packets that carry `size` octets of payload; `None` if they are more than
    /// [`PacketRate::MOST`] per second, or `size` is zero and the rate in bits.
    #[must_use]
    pub fn packets(self, size: usize) -> Option<PacketRate> {
        match self {
            Self::Packets(rate) => PacketRate::per_second(rate),
            Self::Bits(bits) => PacketRate::of_bits(bits, size),
        }
    }
}

/// Something that breaks, or is mended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// When.
    pub at: Duration,
    /// What.
    pub what: FaultKind,
}

/// What breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The node, or one service of it, stops and forgets everything.
    Crash(NodeId, Option<Service>),
    /// It starts again, empty.
    Restart(NodeId, Option<Service>),
    /// The link loses every cell.
    LinkDown(LinkId),
    /// The link works again.
    LinkUp(LinkId),
}

/// A part of a node that can fail on its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Service {
    /// The MPOA client daemon of a host.
    Mpc,
    /// The MPOA server of a router.
    Mps,
    /// The LAN emulation configuration server.
    Lecs,
    /// All LAN emulation servers.
    Les,
    /// All broadcast and unknown servers.
    Bus,
}

/// When the call of a socket program is released, counted from the start, if it is set up at once; when the last PDU
/// is sent, if its connection is permanent.
pub(super) fn call_end(role: &Role) -> Option<Duration> {
    let (send, hold) = match *role {
        Role::Call { send, hold, .. } => (send, hold),
        Role::Permanent { send, .. } if send.pdus > 0 => (send, Duration::ZERO),
        Role::Listen { .. } | Role::Permanent { .. } => return None,
    };
    let sending = send.rate.after(send.pdus.saturating_sub(1));
    Some(send.start.since(Instant::ZERO) + sending + hold)
}
