//! The signalling manager of a host in a process of its own: what it and the host in the lab's process say to each other.
//!
//! **Purpose.** What the kernel of a real end system keeps stays in the lab's process: connections, their queues in the
//! adapter, which user has which of them, permanent connections. What reads the network's signalling messages
//! (SSCOP, call states, timers) is the daemon, as `atmsigd` of Linux is, and as the user-space connection manager of
//! the Cambridge stack of 1993 was.
//!
//! ```text
//!   lab's process                                         sigd
//!   users, connections, adapter    ── ToSigd ──────────► call states over SSCF over SSCOP
//!   VPI 0 VCI 5 of the adapter     ◄───────── FromSigd ──
//! ```
//!
//! **Objects and owners.** The machines are those of the node: the seat of the daemon in the host, and the daemon. Here are
//! their messages alone. Users and connections have numbers of their own on this boundary, which the seat gives
//! out and does not use again while anything about a former one can be on its way: a message that crosses another one
//! is then about nothing, and never about somebody else. Neither side trusts the other: a frame that cannot be
//! decoded ends the connection between them, what a daemon says about something that is not its own is refused and
//! counted.
//!
//! **Bounds.** A frame is as long as the longest signalling SDU with what stands around it, or a text
//! ([`TEXT_MAX`](crate::split::codec::TEXT_MAX)) with its fields.
//!
//! **Standards.** None: the octets are this project's own, and both ends are of one version. The requests are those
//! that Linux' `PF_ATMSVC` sockets make of `atmsigd`: bind and listen, connect, accept, close.

mod codec;
#[cfg(test)]
mod tests;

use crate::uni::Version;
use crate::{AtmEvent, AtmRequest, ConnId, Duration, Trace, saal};
use aerostat_wire::{Qos, Vc};

/// Octets of the longest SDU of VPI 0 VCI 5: 4096 octets, pad and trailer of SSCOP.
pub const SDU_MAX: usize = 4104;

/// A user of the ATM service, on this boundary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UserNo(pub u16);

/// How a daemon begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// Number of this beginning: the answer names it, and what was said before is about an earlier one.
    pub life: u32,
    /// The version of the interface.
    pub version: Version,
    /// N(SQ) of the last BGN of the daemon before: the network tells this one's from it.
    pub initial_sq: u8,
    /// How long a call waits for the link.
    pub wait: Duration,
    /// Number of the first call received: ids of the daemon before do not come again.
    pub first_incoming: u32,
    /// Users of the service at most.
    pub users: usize,
    /// Calls of one user at most.
    pub calls_per_user: usize,
    /// Listeners of one user at most.
    pub listeners_per_user: usize,
    /// Leaves of one call at most.
    pub parties_per_call: usize,
}

/// To the daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToSigd {
    /// Run. Users, listeners and the state of the line follow.
    Start(Start),
    /// The line is alive, so that the link can be brought up; or dead.
    Line {
        /// Alive.
        up: bool,
    },
    /// The version that both ends speak.
    Version(Version),
    /// One SDU of VPI 0 VCI 5.
    Signalling(Vec<u8>),
    /// A new user.
    AddUser(UserNo),
    /// A user is gone, and all that it has.
    DropUser(UserNo),
    /// Asks for a sign of life.
    Ping(u32),
    /// What a user asks of the daemon: all but data and permanent connections, which are the lab's process' alone.
    Request {
        /// The user.
        user: UserNo,
        /// The request.
        request: AtmRequest,
    },
}

/// The signalling link, for display.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkInfo {
    /// State of SSCF and SSCOP.
    pub state: saal::State,
    /// Messages that the peer has not acknowledged.
    pub outstanding: u64,
    /// How often it came up.
    pub established: u64,
    /// How often it went down.
    pub released: u64,
    /// PDUs sent again.
    pub retransmitted: u64,
    /// Reports to layer management.
    pub errors: u64,
    /// The same by code, a letter of Q.2110 Annex A.
    pub codes: Vec<(u8, u64)>,
}

impl Default for LinkInfo {
    fn default() -> Self {
        Self {
            state: saal::State::Released,
            outstanding: 0,
            established: 0,
            released: 0,
            retransmitted: 0,
            errors: 0,
            codes: Vec::new(),
        }
    }
}

/// From the daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromSigd {
    /// First after a [`Start`]: what comes now is about that life.
    Begun {
        /// [`Start::life`].
        life: u32,
    },
    /// Answers [`ToSigd::Ping`].
    Pong(u32),
    /// One SDU for VPI 0 VCI 5.
    Signalling(Vec<u8>),
    /// Signalling is up: calls need not wait; or down.
    Link {
        /// Up.
        up: bool,
    },
    /// The host opens the VC of a call. This message is ahead of the signalling SDU that lets the other end send.
    OpenVc {
        /// The connection.
        conn: ConnId,
        /// Its label.
        vc: Vc,
        /// Traffic that was agreed on, seen from this end.
        qos: Qos,
    },
    /// For a user: what happened to a call. The number of an incoming call is from [`Start::first_incoming`] upwards; `Up`, `Down`
    /// and `Received` have messages of their own.
    Event {
        /// The user.
        user: UserNo,
        /// What happened.
        event: AtmEvent<Vec<u8>>,
    },
    /// For display: when the link comes or goes, and at most every second.
    Status(LinkInfo),
    /// An observation.
    Trace(Trace),
    /// It was asked to end: nobody gets a connection any more, and what there is it releases. Signalling SDUs still go
    /// both ways; then the process exits.
    Ending,
    /// It was asked to begin anew, and has forgotten everything.
    Again,
}

impl LinkInfo {
    /// Reports of a link.
    #[must_use]
    pub fn of(saal: &saal::Saal) -> Self {
        let counters = saal.counters();
        Self {
            state: saal.state(),
            outstanding: saal.outstanding() as u64,
            established: counters.established,
            released: counters.released,
            retransmitted: counters.retransmitted,
            errors: counters.errors,
            codes: counters.by_code().map(|(c, n)| (c as u8, n)).collect(),
        }
    }
}
