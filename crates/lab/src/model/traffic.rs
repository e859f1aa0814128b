//! Events in a lab: flows and faults.

use super::{Arrivals, ElanId, LineChange, LinkId, Load, NodeId, NodeKind, Trace};
use aerostat_node::atm::CellRate;
use aerostat_node::atm::shaper::Shaper;
use aerostat_node::host::ServiceKind;
use aerostat_node::host::sockets::programs::{Pace, Program, Role};
use aerostat_node::ip::flow_stats::Schedule;
use aerostat_node::rate::PacketRate;
use aerostat_proto::{Duration, Instant};
use aerostat_wire::aal5::cells_for;
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
    /// If sender or receiver is on an Ethernet segment behind `from` or `to`: its index in
    /// [`Host::bridge`](super::Host::bridge).
    pub segment: [Option<usize>; 2],
    /// The ELAN or subnet whose interface receives; `None`: the first one of the receiver.
    pub over: Option<ElanId>,
    /// IP address to which the sender sends.
    pub destination: Ipv4Addr,
    /// Kind of traffic.
    pub kind: FlowKind,
    /// TCP or UDP port of the receiver; `None` means 5001 plus the flow's index in the list.
    pub port: Option<u16>,
    /// TCP: octets of each write of the sender; `None` if it keeps the send buffer full.
    pub write: Option<usize>,
    /// TCP: octets that the sender sends; `None` if it sends until its duration is over.
    pub octets: Option<u64>,
    /// UDP: the coarse timer of the sender, if it has one.
    pub ticks: Option<Ticks>,
    /// Load in per cent of a link, from which size and rate follow.
    pub load: Option<Load>,
    /// Flows of a group share something: the results tell how fairly.
    pub group: Option<String>,
    /// True for one direction of a telephone call, which is rated.
    pub voice: bool,
    /// True to keep its packets one by one for the results.
    pub series: bool,
    /// Earliest start time; see `waits`.
    pub start: Duration,
    /// True to start as soon as its hosts and the routers between them can be reached, instead of at a time that the
    /// file gives.
    pub waits: bool,
    /// How long it sends; `None` means to the end of the run.
    pub duration: Option<Duration>,
    /// The failure that the flow is expected to show.
    pub expect: Option<Expect>,
}

impl Flow {
    /// Its kind in the words of the lab file.
    #[must_use]
    pub const fn kind_name(&self) -> &'static str {
        match self.kind {
            _ if self.load.is_some() => "load",
            _ if self.voice => "voice",
            FlowKind::Tcp => "tcp",
            FlowKind::Udp { .. } => "udp",
            FlowKind::Ping { .. } => "ping",
            FlowKind::Rr { .. } => "rr",
        }
    }

    /// The trace that it sends; `None` if it has another kind of arrivals.
    #[must_use]
    pub fn trace(&self) -> Option<&Trace> {
        match &self.load.as_ref()?.arrivals {
            Arrivals::Trace(trace) => Some(trace),
            _ => None,
        }
    }

    /// When the flow may send, if it began at this time in a run that ends at `end`. `None` for a transfer of a number
    /// of octets, which takes the time that it takes.
    #[must_use]
    pub fn schedule(&self, began: Instant, end: Instant) -> Option<Schedule> {
        if self.octets.is_some() {
            return None;
        }
        let trace = self.trace().and_then(|trace| trace.list.last());
        let trace = trace.map(|last| last.at);
        let length = [self.duration, trace].into_iter().flatten().min();
        Some(Schedule {
            from: began.min(end),
            to: length.map_or(end, |length| end.min(began + length)),
        })
    }
}

/// A failure that a flow is expected to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// Some of its packets are lost.
    Loss,
    /// No packet arrives.
    Nothing,
}

/// A sender with a coarse timer: all datagrams that have become due are sent at the next tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticks {
    /// Time between ticks, not zero.
    pub tick: Duration,
    /// Time between datagrams of one tick; all datagrams of a tick fit before the next tick.
    pub spacing: Duration,
}

/// Kinds of traffic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FlowKind {
    /// One TCP connection that sends as fast as it can.
    Tcp,
    /// UDP datagrams.
    Udp {
        /// Octets of UDP payload, 24..=65507; of a load from 18.
        size: usize,
        /// Rate.
        rate: SendRate,
        /// True for exponentially distributed gaps, false for equal ones.
        poisson: bool,
    },
    /// ICMP echo requests.
    Ping {
        /// Octets of ICMP payload, 0..=65507.
        size: usize,
        /// Rate; one per second by default.
        rate: SendRate,
    },
    /// TCP requests and responses, one after another, to count transactions.
    Rr {
        /// Octets of a request and of a response.
        size: usize,
    },
}

/// A sending rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SendRate {
    /// The rate as in the file.
    pub given: GivenRate,
    /// The resulting rate of packets of the flow's size.
    pub packets: PacketRate,
}

/// A sending rate as in the file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum GivenRate {
    /// Packets per second.
    Packets(f64),
    /// Bits of payload per second.
    Bits(u64),
}

impl GivenRate {
    /// The rate of packets that carry `size` octets of payload; `None` if it exceeds [`PacketRate::MOST`] per second,
    /// or if `size` is zero and the rate is in bits.
    #[must_use]
    pub fn packets(self, size: usize) -> Option<PacketRate> {
        match self {
            Self::Packets(rate) => PacketRate::per_second(rate),
            Self::Bits(bits) => PacketRate::of_bits(bits, size),
        }
    }
}

/// A fault, or its end.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// Time.
    pub at: Duration,
    /// Kind.
    pub what: FaultKind,
}

impl Fault {
    /// When it is over, as far as it ends by itself: a link has trained.
    #[must_use]
    pub const fn end(&self) -> Duration {
        match self.what {
            FaultKind::Retrain(_, time, _) => self.at.saturating_add(time),
            _ => self.at,
        }
    }
}

/// Kinds of faults.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FaultKind {
    /// The node, or one of its services, stops and loses its state.
    Crash(NodeId, Option<Service>),
    /// The node or service starts again with empty state.
    Restart(NodeId, Option<Service>),
    /// The link loses every cell.
    LinkDown(LinkId),
    /// The link works again.
    LinkUp(LinkId),
    /// Directions of the link have new values, by the end at which they start.
    Change(LinkId, [LineChange; 2]),
    /// The link has the values of the lab file again, and does not train.
    Reset(LinkId),
    /// The link trains anew: it is down for this time, and then its directions have new values.
    Retrain(LinkId, Duration, [LineChange; 2]),
    /// The link is ready, with new values of its directions. No lab has this fault: a training ends with it.
    Trained(LinkId, [LineChange; 2]),
}

/// A part of a node that can fail alone.
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

impl NodeKind {
    /// The services of [`Self::services`] that are there: a host without MPOA has no MPOA client.
    pub fn present(&self) -> impl Iterator<Item = Service> + use<> {
        let there = match self {
            Self::Router(router) => router.mpoa.is_some(),
            Self::Host(host) => host.mpoa.is_some(),
            Self::LaneServer(_) | Self::Switch(_) | Self::Outside(_) => true,
        };
        self.services().iter().copied().filter(move |_| there)
    }
}

impl From<Service> for ServiceKind {
    fn from(service: Service) -> Self {
        match service {
            Service::Mpc => Self::Mpc,
            Service::Mps => Self::Mps,
            Service::Lecs => Self::Lecs,
            Service::Les => Self::Les,
            Service::Bus => Self::Bus,
        }
    }
}

impl Service {
    /// Its name in a lab file and on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        ServiceKind::from(self).name()
    }
}

/// When the call of a socket program is released, counted from the start, if the call is set up at once and the link of
/// its host, with this rate, is free. For a permanent connection: when the last PDU is sent.
pub(super) fn call_end(program: &Program, link: CellRate) -> Option<Duration> {
    let (send, tx, hold) = match &program.role {
        Role::Call {
            send, qos, hold, ..
        } => (send, &qos.tx, *hold),
        Role::Permanent { send, qos, .. } if send.pdus > 0 => (send, &qos.tx, Duration::ZERO),
        Role::Listen { .. } | Role::Permanent { .. } => return None,
    };
    // Cells of a program leave by its contract and the line, whatever the pace of the program.
    let each = match program.tester {
        true => 1,
        false => cells_for(send.size.into()) as u64,
    };
    let cells = send.pdus.saturating_mul(each);
    let contract = Shaper::new(tx).map(|shaper| shaper.mean_rate().time_of(cells));
    let leaving = contract.unwrap_or_default().max(link.time_of(cells));
    let sending = match send.pace {
        Pace::At(rate) => rate.after(send.pdus.saturating_sub(1)).max(leaving),
        Pace::Line => leaving,
    };
    Some(send.start.since(Instant::ZERO) + sending + hold)
}
