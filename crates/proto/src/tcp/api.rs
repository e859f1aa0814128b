//! The interface of a connection: its construction, states, inputs, outputs and failures.

use super::params::Params;
use crate::{Duration, Refused};
use aerostat_wire::tcp::Segment;
use core::fmt;

aerostat_wire::named! {
    /// The states of RFC 9293 §3.3.2, by the standard's names.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum State {
        /// No connection.
        Closed = "CLOSED",
        /// A SYN of any peer is waited for.
        Listen = "LISTEN",
        /// SYN was sent.
        SynSent = "SYN-SENT",
        /// SYN was sent and received.
        SynReceived = "SYN-RECEIVED",
        /// Data passes.
        Established = "ESTABLISHED",
        /// FIN was sent.
        FinWait1 = "FIN-WAIT-1",
        /// FIN was sent and acknowledged.
        FinWait2 = "FIN-WAIT-2",
        /// FIN was received.
        CloseWait = "CLOSE-WAIT",
        /// FIN was sent and received, and is not acknowledged.
        Closing = "CLOSING",
        /// FIN was received, then sent.
        LastAck = "LAST-ACK",
        /// Both FINs are acknowledged; late segments die.
        TimeWait = "TIME-WAIT",
    }
}

/// Configuration of an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Parameters; values outside their ranges are moved into them.
    pub params: Params,
    /// Own port.
    pub local: u16,
    /// Port of the peer; an end that listens takes that of the first SYN.
    pub remote: u16,
    /// Seed of the first number and of the clock of time stamps. Hosts must not share it.
    pub seed: u64,
    /// A time at which the host's ticks are: their phase.
    pub phase: Duration,
}

/// Inputs of [`Tcp`](super::Tcp).
#[derive(Clone, Copy, Debug)]
pub enum Input<'a> {
    /// Connect to the peer.
    Connect,
    /// Wait for a peer.
    Listen,
    /// A segment from the peer.
    Segment {
        /// Header.
        segment: &'a Segment,
        /// Data behind it.
        data: &'a [u8],
        /// Its packet carries a congestion mark.
        marked: bool,
    },
    /// Octets of the program; all of them are taken or none.
    Write(&'a [u8]),
    /// No more octets: FIN after those that were written.
    Close,
    /// The program is gone: as [`Input::Close`], and reading ends. Octets that were not read, or that come now, are
    /// answered by a reset. Source: RFC 2525 §2.17, RFC 9293 §3.6.1.
    Leave,
    /// The connection ends now, with a reset for the peer.
    Abort,
}

/// Outputs of [`Tcp`](super::Tcp).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// A segment for the peer.
    Segment {
        /// Header.
        segment: Segment,
        /// Data behind it.
        data: Vec<u8>,
        /// Its packet may be marked instead of dropped. Source: RFC 3168 §6.1.
        markable: bool,
    },
    /// News for the program.
    Event(Event),
}

/// News for the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The connection is established.
    Connected,
    /// [`Tcp::read`](super::Tcp::read) has octets.
    Readable,
    /// [`Tcp::room`](super::Tcp::room) has grown.
    Writable,
    /// The peer has sent everything.
    PeerClosed,
    /// Both directions have ended in order.
    Closed,
    /// The connection has failed.
    Failed(Failure),
}

/// Why a connection has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The peer has answered the first SYN by a reset.
    Refused,
    /// The peer has reset the connection.
    Reset,
    /// The peer does not answer.
    TimedOut,
}

impl Failure {
    /// A word for tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Reset => "reset",
            Self::TimedOut => "timeout",
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Refused => "the peer refused the connection",
            Self::Reset => "the peer reset the connection",
            Self::TimedOut => "the peer did not answer",
        })
    }
}

/// Why an input of the program is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The connection is not in a state for it.
    State(State),
    /// There is room for so many octets only.
    Full {
        /// Octets that fit.
        room: usize,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::State(state) => write!(f, "not in state {state}"),
            Self::Full { room } => write!(f, "the send buffer has room for {room} more"),
        }
    }
}

impl std::error::Error for Refusal {}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        Self(match refusal {
            Refusal::State(_) => "the connection is not in a state for this",
            Refusal::Full { .. } => "the send buffer is full",
        })
    }
}
