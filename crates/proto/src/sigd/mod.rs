//! Signalling of a host: the messages between its two halves.
//!
//! **Purpose.** Signalling has two halves. The host half keeps the state that the kernel of a real end system keeps:
//! users and their listeners, which user has which connection, VCs, permanent connections, data. The daemon half reads
//! the network's signalling messages (SSCOP, call states, timers), as `atmsigd` of Linux does, and as the user-space
//! connection manager of the Cambridge stack of 1993 did. Here are the messages that both halves exchange.
//!
//! ```text
//!   host half                                          daemon half
//!   users, connections, adapter    ── ToSigd ────────► call states over SSCF over SSCOP
//!   VPI 0 VCI 5 of the adapter     ◄──────── FromSigd ──
//! ```
//!
//! **Objects and owners.** Both halves are in the node (`aerostat_node::signalling`). The daemon half runs beside the
//! host half, or in a process of its own. A call has one [`CallId`] in both halves: the host half chooses the id of a
//! call that it starts, and call control that of a call received. The host half keeps an id until
//! [`FromSigd::Released`], after which no message names it, and so a message never concerns another call than its
//! sender meant.
//!
//! The daemon is itself a user of the ATM service: the line is [`AtmEvent::Up`](crate::AtmEvent::Up) or
//! [`AtmEvent::Down`](crate::AtmEvent::Down), and the SDUs of VPI 0 VCI 5 are those of its only connection,
//! [`SIGNALLING`].
//!
//! Neither half trusts the other: a frame that cannot be decoded ends the connection between them, and messages of a
//! daemon about calls that are not its own are refused and counted.
//!
//! **Bounds.** A frame is at most as long as the longest signalling SDU with its header fields, or as a text
//! ([`TEXT_MAX`](crate::split::codec::TEXT_MAX)) with its fields.
//!
//! **Standards.** None: the encoding is this project's own, and both ends have the same version. The requests are those
//! of Linux' `PF_ATMSVC` sockets to `atmsigd`: connect, accept, reject, close, add and drop a party.

mod codec;
#[cfg(test)]
mod tests;

use crate::uni::{self, CallId, Version};
use crate::{Cause, ConnId, Duration, PartyId, saal, sscop};
use aerostat_wire::q2931::{Message, MessageType, UserData};
use aerostat_wire::{AalType, AtmAddress, Bhli, Blli, Qos, Sap, SscopPdu, Vc};

/// Octets of the longest SDU of VPI 0 VCI 5: 4096 octets, pad and trailer of SSCOP.
pub const SDU_MAX: usize = 4104;

/// The daemon's connection over VPI 0 VCI 5, which is permanent.
pub const SIGNALLING: ConnId = ConnId(0);

/// The start of a daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// Number of this start: the answer repeats it, and earlier messages belong to an earlier start.
    pub life: u32,
    /// Call control. A host plays the user side.
    pub uni: uni::Params,
    /// The link. N(SQ) of its first BGN differs from that of the previous daemon's last one.
    pub sscop: sscop::Params,
    /// Longest wait for the answer to RESTART.
    pub restart_wait: Duration,
    /// Pause before a lost link is requested again.
    pub reestablish: Duration,
}

/// A call to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// Its id, below [`CallId::INCOMING`].
    pub call: CallId,
    /// The caller.
    pub calling: AtmAddress,
    /// The called party; of a point-to-multipoint call the first leaf, whose [`PartyId`] is 0.
    pub called: AtmAddress,
    /// Protocol that the connection carries.
    pub sap: Sap,
    /// Traffic, seen from this host.
    pub qos: Qos,
    /// True for the root of a point-to-multipoint call.
    pub multipoint: bool,
    /// The AAL; single cells are a user-defined AAL in the SETUP.
    pub aal: AalType,
    /// User data of the SETUP. Only an interface of UNI 4.0 carries user data.
    pub data: UserData,
}

/// A call received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Its id, from [`CallId::INCOMING`] upwards.
    pub call: CallId,
    /// The caller, if the SETUP names it.
    pub calling: Option<AtmAddress>,
    /// The address that was called.
    pub called: AtmAddress,
    /// The B-LLI in the caller's order of preference, at most three.
    pub bllis: Vec<Blli>,
    /// The B-HLI.
    pub bhli: Option<Bhli>,
    /// Traffic, seen from this host.
    pub qos: Qos,
    /// True if this host is a leaf of a point-to-multipoint call.
    pub multipoint: bool,
    /// The AAL; a user-defined AAL in the SETUP stands for single cells.
    pub aal: AalType,
    /// The label, if the SETUP gives it (the network's does).
    pub vc: Option<Vc>,
    /// User data of the SETUP.
    pub data: UserData,
}

/// To the daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToSigd {
    /// Start. The state of the line follows.
    Start(Box<Start>),
    /// The version that both ends speak.
    Version(Version),
    /// Make a call. [`FromSigd::Connected`] or [`FromSigd::Released`] is the answer.
    Setup(Setup),
    /// A call to a listener of this host: may it be made? No message of the network belongs to it. [`FromSigd::Join`]
    /// or [`FromSigd::Released`] is the answer, and after it the daemon does not know the call.
    Join {
        /// The call.
        call: CallId,
    },
    /// Accept a call. [`FromSigd::Connected`] or [`FromSigd::Released`] follows.
    Accept {
        /// The call.
        call: CallId,
        /// The choice among several B-LLI; `None` if the caller left no choice.
        blli: Option<Blli>,
        /// The contract of the answer, seen from this host, which the offer allows ([`crate::atm::answered`]); `None`:
        /// as offered.
        terms: Option<Qos>,
        /// User data of the CONNECT.
        data: UserData,
    },
    /// Refuse a call. No further message concerns it.
    Refuse {
        /// The call.
        call: CallId,
        /// The cause.
        cause: Cause,
    },
    /// Release a call. [`FromSigd::Released`] follows when its label is free again.
    Release {
        /// The call.
        call: CallId,
        /// The cause.
        cause: Cause,
        /// User data of the RELEASE.
        data: UserData,
    },
    /// Add a leaf. The answer is [`FromSigd::PartyAdded`] or [`FromSigd::PartyGone`].
    AddParty {
        /// The call.
        call: CallId,
        /// The leaf.
        party: PartyId,
        /// Its address.
        called: AtmAddress,
        /// User data of the ADD PARTY.
        data: UserData,
    },
    /// Drop a leaf. [`FromSigd::PartyGone`] follows, or [`FromSigd::Released`] if it was the last leaf.
    DropParty {
        /// The call.
        call: CallId,
        /// The leaf.
        party: PartyId,
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
    /// Signalling is up, so calls need not wait; or it is down.
    Link {
        /// True if signalling is up.
        up: bool,
    },
    /// A call is offered: [`ToSigd::Accept`], [`ToSigd::Refuse`] or [`ToSigd::Release`] is the answer.
    Offered(Box<Offer>),
    /// The call that [`ToSigd::Join`] asks about may be made.
    Join {
        /// The call.
        call: CallId,
    },
    /// A call can be used.
    Connected {
        /// The call.
        call: CallId,
        /// Its label.
        vc: Vc,
        /// Agreed traffic, seen from this host.
        qos: Qos,
        /// User data of the CONNECT.
        data: UserData,
    },
    /// A call carries no more data: this interface has begun to release it. `Released` follows.
    Clearing {
        /// The call.
        call: CallId,
        /// The cause.
        cause: Cause,
        /// User data of the message that clears the call.
        data: UserData,
    },
    /// A call has ended, and its label is free.
    Released {
        /// The call.
        call: CallId,
        /// The cause.
        cause: Cause,
        /// User data of the message that clears the call.
        data: UserData,
    },
    /// A leaf was added.
    PartyAdded {
        /// The call.
        call: CallId,
        /// The leaf.
        party: PartyId,
        /// User data of the ADD PARTY ACKNOWLEDGE.
        data: UserData,
    },
    /// A leaf could not be added, has left or was dropped.
    PartyGone {
        /// The call.
        call: CallId,
        /// The leaf.
        party: PartyId,
        /// The cause.
        cause: Cause,
        /// User data of the message that drops the leaf.
        data: UserData,
    },
    /// The link, for display in another process.
    Status(LinkInfo),
    /// The daemon was told to end: it accepts no new connections and releases the existing ones. Signalling SDUs still
    /// pass in both directions; then the process exits.
    Ending,
    /// The daemon was told to start anew, and has no state any more.
    Again,
}

/// True for the frame of a message of the network that asks for nothing and answers nothing: CALL PROCEEDING. Its
/// daemon need not wake up for it, but may hear of it together with what comes next.
///
/// This is a look at the type of the message alone, and decides about time, not about the call: a frame that is taken
/// for another one is a little late.
#[must_use]
pub fn may_rest(frame: &[u8]) -> bool {
    // Number of the daemon, types of message and event, connection, length of the SDU.
    let received = frame.split_first_chunk::<12>();
    let Some(([_, _, 0, 1, 0, 8, ..], sdu)) = received else {
        return false;
    };
    SscopPdu::is_data(sdu) && Message::kind_in(sdu) == Some(MessageType::CALL_PROCEEDING)
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
