//! An MPOA daemon in a process of its own: what it and the client in the lab's process say to each other.
//!
//! **Purpose.** The two halves of a client ([`mpc`](crate::mpoa::mpc)) talk by typed messages. Here they get a form
//! for a socket between two processes, together with what else a daemon needs from the operating system: calls.
//!
//! ```text
//!   lab's process                                        mpcd
//!   Mpc: data plane, both caches   ── ToMpcd ──────────► Mpcd: all that reads a peer's packets
//!   signalling manager             ◄───────── FromMpcd ──
//! ```
//!
//! **Objects and owners.** [`Mpc`](crate::mpoa::Mpc) with [`split`](crate::mpoa::MpcConfig::split) keeps the seat of the
//! daemon; [`Mpcd`](crate::mpoa::mpc::Mpcd) is the daemon with its timers. A frame is one message ([`codec`]); a
//! connection begins with a [`Greeting`] each way. Calls belong to the daemon as its sockets would: they are
//! released when it is gone. Neither side trusts the other: a frame that cannot be decoded ends the connection, a
//! request about something that is not the daemon's is refused and counted.
//!
//! **Bounds.** A frame has at most [`FRAME_MAX`] octets.
//!
//! **Standards.** None. The messages of Tables 4.1 and 4.2 of the thesis keep the numbers of the Linux client; the
//! octets are this project's own, and both ends are of one version.

pub mod codec;
#[cfg(test)]
mod tests;

use crate::mpoa::messages::{ToDaemon, ToKernel};
use crate::mpoa::mpc::{MpcConfig, MpcCounters};
use crate::mpoa::params::MpcParams;
use crate::{AtmRequest, Cause, ConnId, Duration, Trace};
use aerostat_wire::{AtmAddress, MacAddr, Qos, Sap, Vc};

/// Version of the messages. Ends of different versions part.
pub const VERSION: u16 = 2;
/// Octets of the longest frame: an SDU of 65 535 octets with what stands around it.
pub const FRAME_MAX: usize = 65_535 + 64;

/// First frame of a connection, each way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Greeting {
    /// From the daemon: it would serve this node.
    Hello {
        /// [`VERSION`] of the daemon.
        version: u16,
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

/// What a daemon asks of the ATM service: what it may of [`AtmRequest`], with its one service access point.
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

/// What the ATM service tells a daemon: what concerns it of [`AtmEvent`](crate::AtmEvent).
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

/// An ELAN of which the host is a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ElanInfo {
    /// The LANE interface.
    pub itf: usize,
    /// Number of the ELAN; 0 if it has none.
    pub elan_id: u32,
    /// Largest IP packet, octets.
    pub mtu: u16,
}

/// To the daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToMpcd {
    /// Run.
    Start {
        /// Addresses, bounds and the like; a seed that no daemon before had.
        config: Box<MpcConfig>,
        /// Parameters in force.
        params: MpcParams,
        /// ELANs joined so far.
        elans: Vec<ElanInfo>,
    },
    /// End in good order; with `reload`, start again after five seconds.
    Stop {
        /// As SIGHUP.
        reload: bool,
    },
    /// An ELAN was joined.
    ElanUp(ElanInfo),
    /// An ELAN was left.
    ElanDown {
        /// The LANE interface.
        itf: usize,
    },
    /// The LECS changed the parameters.
    Params(MpcParams),
    /// A message of the data plane.
    Message(ToDaemon),
    /// From the ATM service.
    Socket(SocketEvent),
}

/// From the daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromMpcd {
    /// A message for the data plane.
    Message(ToKernel),
    /// To the ATM service.
    Socket(SocketRequest),
    /// LE_ARP may know who owns this address.
    Discover {
        /// The LANE interface.
        itf: usize,
        /// The MAC address.
        mac: MacAddr,
    },
    /// An observation.
    Trace(Trace),
    /// What was counted since the last message of this kind.
    Counted(Box<MpcCounters>),
    /// The MPSs that are watched, and how long each is still trusted.
    Watched(Vec<(AtmAddress, Duration)>),
    /// Everything is purged and released.
    Ended {
        /// It will start again by itself.
        restarts: bool,
        /// Its process ends.
        exits: bool,
    },
}
