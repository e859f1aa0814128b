//! Roles of programs with ATM sockets.

use super::Transfer;
use crate::atm::Shaping;
use crate::rate::PacketRate;
use aerostat_proto::{Duration, Instant};
use aerostat_wire::{AtmAddress, Qos, Sap, Vc};

/// Treatment of received PDUs by a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Counts them.
    Sink,
    /// Sends them back.
    Echo,
    /// Counts them and reports their text.
    Read,
}

/// PDUs that a program sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sending {
    /// When sending begins, or when the call for it is made.
    pub start: Instant,
    /// Number of PDUs.
    pub pdus: u64,
    /// Octets of each.
    pub size: u16,
    /// How fast.
    pub pace: Pace,
}

/// How fast a program writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// At this rate, while the adapter has room.
    At(PacketRate),
    /// The next PDU as soon as the adapter has taken the one before, as `ttcp` does: no PDU has a time of its own, so
    /// none is late.
    Line,
}

/// Role of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Waits for calls.
    Listen {
        /// Treatment of received PDUs.
        answer: Answer,
        /// Largest SDU that the program accepts, octets.
        max_sdu: u16,
        /// Limit of simultaneous calls; further calls are refused with cause 17.
        calls: usize,
    },
    /// Makes one call, or calls one after another.
    Call {
        /// The other end.
        to: AtmAddress,
        /// Traffic, seen from here.
        qos: Qos,
        /// The PDUs to send.
        send: Sending,
        /// Time from the last PDU to the release.
        hold: Duration,
        /// Time from the end of a call to the next call, whatever the outcome. With `None` there is one call. It is
        /// repeated, soon at first, while it fails with a temporary cause
        /// ([`is_temporary`](aerostat_proto::Cause::is_temporary)) and the other end has not answered.
        every: Option<Duration>,
    },
    /// Uses a permanent connection, as `aread` and `awrite` do.
    Permanent {
        /// Its label on this host's link.
        vc: Vc,
        /// Traffic, seen from here.
        qos: Qos,
        /// Treatment of received PDUs, if the program is there to read; other programs discard them.
        answer: Option<Answer>,
        /// The PDUs to send.
        send: Sending,
    },
}

impl Role {
    pub(super) const fn answer(&self) -> Option<Answer> {
        match *self {
            Self::Listen { answer, .. } => Some(answer),
            Self::Permanent { answer, .. } => answer,
            Self::Call { .. } => None,
        }
    }
    /// Traffic that the program writes by itself; `None` for a program that only answers calls.
    #[must_use]
    pub const fn sending(&self) -> Option<Sending> {
        match *self {
            Self::Listen { .. } => None,
            Self::Call { send, .. } | Self::Permanent { send, .. } => Some(send),
        }
    }
}

/// A program and its socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Name, for people.
    pub name: String,
    /// Address of its socket; for a permanent connection, of its host.
    pub local: AtmAddress,
    /// The SAP that a listener listens for, or that the caller puts in its call; unused for a permanent connection.
    pub sap: Sap,
    /// How the adapter sends its calls; `None`: as the adapter does with others.
    pub shaping: Option<Shaping>,
    /// Messages that it sends and receives by ATP; `None`: PDUs without a protocol.
    pub atp: Option<Transfer>,
    /// True for a cell tester on a permanent connection: it sends test cells instead of PDUs, and measures those that
    /// arrive.
    pub tester: bool,
    /// Role of the program.
    pub role: Role,
}
