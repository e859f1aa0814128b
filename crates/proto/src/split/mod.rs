//! Daemons in processes of their own: what they and the lab's process say to each other, and how it becomes octets.
//!
//! **Purpose.** On a Linux host mpcd, zeppelin, atmsigd, lecs, les and bus are processes beside the kernel; `up --split`
//! makes the same of this program's machines. A daemon is a machine that runs in a process of its own; its *seat* is the
//! machine in the lab's process that stands where the whole one would stand. Here is what all daemons have in common.
//!
//! **Objects and owners.** A connection begins with a [`Greeting`] each way, which names the node and the [`Role`]; then a
//! frame is one message of the role, in the form of [`codec`]. Each role has two enums of messages, to and from its
//! daemon; the daemon's machine and its seat own what they mean. The socket and the processes are the live driver's.
//!
//! **What all roles share.** Calls belong to a daemon as its sockets would: the seat releases them when it is
//! gone. Neither side trusts the other: a frame that cannot be decoded ends the connection, a request about something that is
//! not the daemon's is refused and counted. Traces keep the words of the program ([`names`]).
//!
//! **A role is added** by: a line in [`Role`] (here and in `codec.rs`), its two enums with [`split_messages!`](crate::split_messages),
//! [`split_choice!`](crate::split_choice) and [`split_record!`](crate::split_record) (in whatever crate the types are), its list in
//! [`names`], and a test that calls [`testing::survives`] for both. The rest is in the essay of `aerostat_live::daemons`.
//!
//! **Bounds.** A frame has at most [`FRAME_MAX`] octets.
//!
//! **Standards.** None: the octets are this project's own, and both ends are of one version.

pub mod codec;
pub mod names;
pub mod testing;
#[cfg(test)]
mod tests;

use crate::{AtmEvent, AtmRequest, Cause, ConnId, PartyId};
use aerostat_wire::{AtmAddress, Qos, Sap, Vc};
use core::fmt;
pub use testing::Random;

/// What a daemon is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// The MPOA client's daemon: [`crate::mpoa::split`].
    Mpcd,
    /// The control parts of LANE clients: [`crate::lane::lec::split`].
    Lecd,
    /// LANE configuration servers: [`crate::lane::split`].
    Lecs,
    /// LAN emulation servers.
    Les,
    /// Broadcast and unknown servers.
    Bus,
    /// The signalling manager: [`crate::sigd`].
    Sigd,
}

impl Role {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Mpcd,
        Self::Lecd,
        Self::Lecs,
        Self::Les,
        Self::Bus,
        Self::Sigd,
    ];

    /// The process's name, as people use it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mpcd => "mpcd",
            Self::Lecd => "lecd",
            Self::Lecs => "lecs",
            Self::Les => "les",
            Self::Bus => "bus",
            Self::Sigd => "sigd",
        }
    }
    /// The role of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.name() == name)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Version of the messages. Ends of different versions part.
pub const VERSION: u16 = 4;
/// Octets of the longest frame: an SDU of 65 535 octets with what stands around it.
pub const FRAME_MAX: usize = 65_535 + 64;

/// First frame of a connection, each way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Greeting {
    /// From the daemon: it would serve this node.
    Hello {
        /// [`VERSION`] of the daemon.
        version: u16,
        /// What it would be there.
        role: Role,
        /// Name of the node.
        node: String,
    },
    /// From the lab: the seat is the daemon's.
    Welcome {
        /// [`VERSION`] of the lab.
        version: u16,
    },
    /// From the lab: it is not, and why.
    Refused(String),
}

/// What mpcd asks of the ATM service: what it may of [`AtmRequest`], with its one service access point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SocketRequest {
    /// See [`AtmRequest::Listen`].
    Listen {
        /// Control or data address.
        address: AtmAddress,
        /// Largest SDU, octets.
        max_sdu: u16,
    },
    /// See [`AtmRequest::Unlisten`].
    Unlisten {
        /// As in `Listen`.
        address: AtmAddress,
    },
    /// See [`AtmRequest::Connect`].
    Connect {
        /// Chosen by the daemon.
        conn: ConnId,
        /// Control or data address.
        calling: AtmAddress,
        /// The other end.
        called: AtmAddress,
        /// Traffic.
        qos: Qos,
    },
    /// See [`AtmRequest::Accept`].
    Accept {
        /// The connection.
        conn: ConnId,
    },
    /// See [`AtmRequest::Release`].
    Release {
        /// The connection.
        conn: ConnId,
        /// Why.
        cause: Cause,
    },
    /// See [`AtmRequest::Send`].
    Send {
        /// The connection.
        conn: ConnId,
        /// The SDU.
        sdu: Vec<u8>,
    },
}

impl SocketRequest {
    /// The request, if it is one that a daemon makes.
    #[must_use]
    pub fn of(request: AtmRequest) -> Option<Self> {
        Some(match request {
            AtmRequest::Listen {
                address, max_sdu, ..
            } => Self::Listen { address, max_sdu },
            AtmRequest::Unlisten { address, .. } => Self::Unlisten { address },
            AtmRequest::Connect {
                conn,
                calling,
                called,
                qos,
                multipoint: false,
                ..
            } => Self::Connect {
                conn,
                calling,
                called,
                qos,
            },
            AtmRequest::Accept { conn } => Self::Accept { conn },
            AtmRequest::Release { conn, cause } => Self::Release { conn, cause },
            AtmRequest::Send { conn, sdu } => Self::Send { conn, sdu },
            AtmRequest::Connect { .. }
            | AtmRequest::OpenPermanent { .. }
            | AtmRequest::AddParty { .. }
            | AtmRequest::DropParty { .. } => return None,
        })
    }
}

impl From<SocketRequest> for AtmRequest {
    fn from(request: SocketRequest) -> Self {
        let (sap, multipoint) = (Sap::LLC, false);
        match request {
            SocketRequest::Listen { address, max_sdu } => Self::Listen {
                address,
                sap,
                max_sdu,
            },
            SocketRequest::Unlisten { address } => Self::Unlisten { address, sap },
            SocketRequest::Connect {
                conn,
                calling,
                called,
                qos,
            } => Self::Connect {
                conn,
                calling,
                called,
                sap,
                qos,
                multipoint,
            },
            SocketRequest::Accept { conn } => Self::Accept { conn },
            SocketRequest::Release { conn, cause } => Self::Release { conn, cause },
            SocketRequest::Send { conn, sdu } => Self::Send { conn, sdu },
        }
    }
}

/// What the ATM service tells mpcd: what concerns it of [`AtmEvent`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SocketEvent {
    /// A call is offered.
    Incoming {
        /// The connection.
        conn: ConnId,
        /// The caller.
        calling: Option<AtmAddress>,
        /// Control or data address.
        called: AtmAddress,
        /// Traffic.
        qos: Qos,
    },
    /// The connection can be used.
    Connected {
        /// The connection.
        conn: ConnId,
        /// Its label.
        vc: Vc,
    },
    /// The connection is gone.
    Released {
        /// The connection.
        conn: ConnId,
        /// Why.
        cause: Cause,
    },
    /// An SDU on a control connection.
    Received {
        /// The connection.
        conn: ConnId,
        /// The SDU.
        sdu: Vec<u8>,
    },
}

/// An [`AtmEvent`] that owns its octets: the ATM service's whole vocabulary, for daemons that use all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are those of `AtmEvent`")]
pub enum OwnedEvent {
    /// See [`AtmEvent::Up`].
    Up,
    /// See [`AtmEvent::Down`].
    Down,
    /// See [`AtmEvent::Incoming`].
    Incoming {
        conn: ConnId,
        calling: Option<AtmAddress>,
        called: AtmAddress,
        sap: Sap,
        qos: Qos,
        multipoint: bool,
    },
    /// See [`AtmEvent::Connected`].
    Connected { conn: ConnId, vc: Vc },
    /// See [`AtmEvent::Released`].
    Released { conn: ConnId, cause: Cause },
    /// See [`AtmEvent::PartyAdded`].
    PartyAdded { conn: ConnId, party: PartyId },
    /// See [`AtmEvent::PartyGone`].
    PartyGone {
        conn: ConnId,
        party: PartyId,
        cause: Cause,
    },
    /// See [`AtmEvent::Received`].
    Received { conn: ConnId, sdu: Vec<u8> },
}

impl From<&AtmEvent<'_>> for OwnedEvent {
    fn from(event: &AtmEvent<'_>) -> Self {
        match *event {
            AtmEvent::Up => Self::Up,
            AtmEvent::Down => Self::Down,
            AtmEvent::Incoming {
                conn,
                calling,
                called,
                sap,
                qos,
                multipoint,
            } => Self::Incoming {
                conn,
                calling,
                called,
                sap,
                qos,
                multipoint,
            },
            AtmEvent::Connected { conn, vc } => Self::Connected { conn, vc },
            AtmEvent::Released { conn, cause } => Self::Released { conn, cause },
            AtmEvent::PartyAdded { conn, party } => Self::PartyAdded { conn, party },
            AtmEvent::PartyGone { conn, party, cause } => Self::PartyGone { conn, party, cause },
            AtmEvent::Received { conn, sdu } => Self::Received {
                conn,
                sdu: sdu.to_vec(),
            },
        }
    }
}

impl OwnedEvent {
    /// The event, to hand to a machine.
    #[must_use]
    pub fn event(&self) -> AtmEvent<'_> {
        match *self {
            Self::Up => AtmEvent::Up,
            Self::Down => AtmEvent::Down,
            Self::Incoming {
                conn,
                calling,
                called,
                sap,
                qos,
                multipoint,
            } => AtmEvent::Incoming {
                conn,
                calling,
                called,
                sap,
                qos,
                multipoint,
            },
            Self::Connected { conn, vc } => AtmEvent::Connected { conn, vc },
            Self::Released { conn, cause } => AtmEvent::Released { conn, cause },
            Self::PartyAdded { conn, party } => AtmEvent::PartyAdded { conn, party },
            Self::PartyGone { conn, party, cause } => AtmEvent::PartyGone { conn, party, cause },
            Self::Received { conn, ref sdu } => AtmEvent::Received { conn, sdu },
        }
    }
}
