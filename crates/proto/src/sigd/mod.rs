//! The signalling manager of a host in a process of its own: its messages to and from the host in the lab's process.
//!
//! **Purpose.** The state that the kernel of a real end system keeps stays in the lab's process: connections, their
//! queues in the adapter, which user has which connection, permanent connections. The daemon handles the network's
//! signalling messages (SSCOP, call states, timers), as `atmsigd` of Linux does, and as the user-space connection
//! manager of the Cambridge stack of 1993 did.
//!
//! ```text
//!   lab's process                                         sigd
//!   users, connections, adapter    ── ToSigd ──────────► call states over SSCF over SSCOP
//!   VPI 0 VCI 5 of the adapter     ◄───────── FromSigd ──
//! ```
//!
//! **Objects and owners.** The machines are in the node: the seat of the daemon in the host, and the daemon. This
//! module has only their messages. Users and connections have their own numbers on this boundary. The seat assigns a
//! number and does not use it again while a message about its former owner can be under way. So a message that crosses
//! another one concerns nothing, and never another user or connection. Neither side trusts the other: a frame that
//! cannot be decoded ends the connection between them, and messages of a daemon about users and connections that are
//! not its own are refused and counted.
//!
//! **Bounds.** A frame is at most as long as the longest signalling SDU with its header fields, or as a text
//! ([`TEXT_MAX`](crate::split::codec::TEXT_MAX)) with its fields.
//!
//! **Standards.** None: the encoding is this project's own, and both ends have the same version. The requests are those
//! of Linux' `PF_ATMSVC` sockets to `atmsigd`: bind and listen, connect, accept, close.

mod codec;
#[cfg(test)]
mod tests;

use crate::uni::Version;
use crate::{AtmEvent, AtmRequest, ConnId, Duration, saal};
use aerostat_wire::{Qos, Vc};

/// Octets of the longest SDU of VPI 0 VCI 5: 4096 octets, pad and trailer of SSCOP.
pub const SDU_MAX: usize = 4104;

/// A user of the ATM service, on this boundary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UserNo(pub u16);

/// The start of a daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// Number of this start: the answer repeats it, and earlier messages belong to an earlier start.
    pub life: u32,
    /// The version of the interface.
    pub version: Version,
    /// N(SQ) of the previous daemon's last BGN: the network distinguishes this daemon's BGN from it.
    pub initial_sq: u8,
    /// How long a call waits for the link.
    pub wait: Duration,
    /// Number of the first received call: ids of the previous daemon are not used again.
    pub first_incoming: u32,
    /// Largest number of users of the service.
    pub users: usize,
    /// Largest number of calls of one user.
    pub calls_per_user: usize,
    /// Largest number of listeners of one user.
    pub listeners_per_user: usize,
    /// Largest number of leaves of one call.
    pub parties_per_call: usize,
}

/// To the daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToSigd {
    /// Start. Users, listeners and the state of the line follow.
    Start(Start),
    /// The line is up, so that the link can be established; or the line is down.
    Line {
        /// True if the line is up.
        up: bool,
    },
    /// The version that both ends speak.
    Version(Version),
    /// One SDU of VPI 0 VCI 5.
    Signalling(Vec<u8>),
    /// A new user.
    AddUser(UserNo),
    /// A user is gone, with all its listeners and calls.
    DropUser(UserNo),
    /// A request of a user to the daemon: any request but those for data and permanent connections, which the lab's
    /// process handles alone.
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
    /// How often the link came up.
    pub established: u64,
    /// How often the link went down.
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
    /// The first message after a [`Start`]: all further messages belong to that life.
    Begun {
        /// [`Start::life`].
        life: u32,
    },
    /// One SDU for VPI 0 VCI 5.
    Signalling(Vec<u8>),
    /// Signalling is up, so calls need not wait; or it is down.
    Link {
        /// True if signalling is up.
        up: bool,
    },
    /// The host opens the VC of a call. This message precedes the signalling SDU that lets the other end send.
    OpenVc {
        /// The connection.
        conn: ConnId,
        /// Its label.
        vc: Vc,
        /// Agreed traffic, seen from this end.
        qos: Qos,
    },
    /// For a user: an event of a call. The number of an incoming call is from [`Start::first_incoming`] upwards; `Up`,
    /// `Down` and `Received` have messages of their own.
    Event {
        /// The user.
        user: UserNo,
        /// The event.
        event: AtmEvent<Vec<u8>>,
    },
    /// For display: when the link comes or goes, and at most every second.
    Status(LinkInfo),
    /// The daemon was told to end: it accepts no new connections and releases the existing ones. Signalling SDUs still
    /// pass in both directions; then the process exits.
    Ending,
    /// The daemon was told to start anew, and has no state any more.
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
