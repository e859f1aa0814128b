//! The words of the tables: each state has one spelling, which is the same in JSON, in CSV and on a terminal.
//!
//! A column of states has the type of the states, so that a new state does not compile until it has a name. States
//! whose machines name them in the words of Linux or of a MIB ([`Name`](super::Name)) have their spelling there.

use super::{Cell, Kind, Value};
use crate::signalling;
use crate::switch::PortKind;
use aerostat_proto::interface;
use aerostat_proto::mpoa::mps;
use aerostat_proto::{saal, sscop, uni};
use core::fmt;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

aerostat_wire::named! {
    /// Kind of state that `aerostat inspect` shows.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum StateKind {
        /// Connections.
        Vc = "vc",
        /// Calls.
        Call = "call",
        /// LANE clients.
        Lec = "lec",
        /// LANE Emulation Servers.
        Les = "les",
        /// Broadcast and Unknown Servers.
        Bus = "bus",
        /// MPOA clients.
        Mpc = "mpc",
        /// MPOA servers.
        Mps = "mps",
        /// NHRP clients and servers.
        Nhrp = "nhrp",
        /// Ports and interfaces.
        Port = "port",
        /// Queues of output ports.
        Queue = "queue",
        /// Routes of calls, and next hops.
        Route = "route",
        /// ILMI.
        Ilmi = "ilmi",
        /// Classical IP.
        Clip = "clip",
        /// ATM lines.
        Line = "line",
        /// Signalling links.
        Saal = "saal",
        /// Programs with ATM sockets.
        Sockets = "sockets",
        /// Entries of flows with QoS of their own.
        Qos = "qos",
        /// Processes of daemons.
        Processes = "processes",
        /// Bridges and segments.
        Bridge = "bridge",
        /// Processors.
        Cpu = "cpu",
        /// Settings of TCP.
        Tcp = "tcp",
        /// Neighbours.
        Arp = "arp",
        /// Permanent connections.
        Pvc = "pvc",
        /// The whole lab, which is no state of a node.
        Lab = "lab",
        /// State that `atmarp` shows.
        Atmarp = "atmarp",
        /// State that `atmaddr` shows.
        Atmaddr = "atmaddr",
        /// State that `atmdiag` shows.
        Atmdiag = "atmdiag",
        /// Reasons for shortcuts.
        Why = "why",
    }
    /// Direction of a call.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Direction {
        /// The call came in.
        In = "in",
        /// The call went out.
        Out = "out",
    }
    /// State of a line.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Line {
        /// The line works.
        Up = "up",
        /// The line does not work.
        Down = "down",
    }
    /// Number of called parties that a call may have.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Reach {
        /// Exactly one.
        PointToPoint = "point-to-point",
        /// Several.
        Multipoint = "multipoint",
    }
    /// Unit that a permanent connection joins.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Permanence {
        /// VCs.
        Channel = "channel",
        /// VPs.
        Path = "path",
    }
    /// Use that a program makes of its connection.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Does {
        /// It calls.
        Call = "call",
        /// It writes on a permanent connection.
        Write = "write",
        /// It discards PDUs.
        Sink = "sink",
        /// It sends PDUs back.
        Echo = "echo",
        /// It counts PDUs.
        Read = "read",
    }
    /// Side that released a call.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Releaser {
        /// This end.
        Us = "us",
        /// The other end, or the network.
        Peer = "peer",
    }
    /// Half of a service that gives the reason why packets take a shortcut or not.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Half {
        /// An MPOA or NHRP client.
        Client = "client",
        /// An MPOA server.
        Server = "server",
    }
    /// State of an entry in the words of `atmarpd`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum AtmarpState {
        /// The address is asked for.
        Resolving = "RESOLV",
        /// The entry can be used.
        Valid = "VALID",
        /// The entry cannot be used yet.
        Invalid = "INVALID",
    }
    /// How a connection of Classical IP came about.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum AtmarpEnd {
        /// This end called.
        Active = "active",
        /// The other end called.
        Passive = "passive",
        /// It is configured.
        Permanent = "permanent",
    }
    /// ATM adaptation layers of `atmdiag`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Aal {
        /// Raw cells.
        Aal0 = "AAL0",
        /// AAL5.
        Aal5 = "AAL5",
    }
    /// Kind of a system according to ILMI.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Device {
        /// An end system.
        User = "user",
        /// A switch.
        Node = "node",
        /// It has not said.
        Unknown = "-",
    }
    /// State of a way for a switch.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum WayState {
        /// The port does not exist.
        NoPort = "no such port",
        /// No path over this port is left.
        Nowhere = "leads nowhere now",
        /// Calls take it.
        InUse = "in use",
        /// Calls take it if the better ways fail.
        Alternate = "alternate",
        /// Signalling was lost a moment ago, and is awaited.
        Awaited = "signalling comes up",
        /// Signalling of the port is down.
        SignallingDown = "signalling is down",
    }
}

/// Makes cells of the names of states.
macro_rules! cells {
    ($($states:ty),+ $(,)?) => {
        super::rows::texts! { $($states: <$states>::by_name),+ }
    };
}

cells! {
    StateKind,
    Direction,
    Line,
    Reach,
    Permanence,
    Does,
    Releaser,
    Half,
    AtmarpState,
    AtmarpEnd,
    Aal,
    Device,
    WayState,
    signalling::Phase,
    interface::Phase,
    PortKind,
    saal::State,
    sscop::Mode,
    uni::Version,
    mps::IngressState,
    mps::EgressState,
    mps::ConnUse,
    mps::ConnState,
}

impl From<bool> for Line {
    fn from(up: bool) -> Self {
        if up { Self::Up } else { Self::Down }
    }
}

impl Direction {
    /// The direction of a call that this end makes, or gets.
    #[must_use]
    pub const fn of(outgoing: bool) -> Self {
        if outgoing { Self::Out } else { Self::In }
    }
}

impl Reach {
    /// The reach of a call.
    #[must_use]
    pub const fn of(multipoint: bool) -> Self {
        if multipoint {
            Self::Multipoint
        } else {
            Self::PointToPoint
        }
    }
}

/// A word that is no kind of state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoKind;

impl fmt::Display for NoKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no such kind of state")
    }
}
impl std::error::Error for NoKind {}

impl core::str::FromStr for StateKind {
    type Err = NoKind;
    fn from_str(word: &str) -> Result<Self, NoKind> {
        Self::by_name(word).ok_or(NoKind)
    }
}

impl StateKind {
    /// The kinds that users name: all except those of the tools of Linux, and reasons.
    pub fn named() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|kind| {
            !matches!(
                kind,
                Self::Atmarp | Self::Atmaddr | Self::Atmdiag | Self::Why
            )
        })
    }
}

impl Serialize for StateKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for StateKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        word.parse().map_err(de::Error::custom)
    }
}
