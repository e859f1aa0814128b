//! The messages between the two halves of ILMI.
//!
//! **Purpose.** The control half, [`Ilmid`](super::Ilmid), reads the messages of the other side of the link. The data
//! half, [`Channel`](super::Channel), is a host's or a switch port's: it carries the SDUs of VPI 0 VCI 16, keeps the
//! results, and asks the owner about each registration.
//!
//! ```text
//!   data half                                     control half
//!   results, registered addresses  ── ToIlmid ──────────► agent and manager (Ime)
//!   VPI 0 VCI 16 of the adapter    ◄──────── FromIlmid ──
//! ```
//!
//! **Objects and owners.** The daemon is a user of the ATM service: the line is
//! [`AtmEvent::Up`](crate::AtmEvent::Up) or [`AtmEvent::Down`](crate::AtmEvent::Down), and the SDUs are those of its
//! only connection, [`MANAGEMENT`]. A process has the daemons of all interfaces of a node: the number of a daemon is
//! that of the port of a switch, and 0 at a host.
//!
//! **Trust.** The data half checks each result: addresses are under the configured prefixes and have the configured
//! end system identifiers, numbers are within the limits. Results for the other kind of end are refused and counted.
//!
//! **Bounds.** Permanent connections are sent in parts of [`PVCS`], because a frame has a bound.
//!
//! **Standards.** None: the encoding is this project's own, and both ends have the same version.

use super::{Config, Link, Prefix, Pvc, Snapshot};
use crate::ConnId;
use aerostat_wire::q2931::Version;
use aerostat_wire::{AtmAddress, MacAddr};

/// The daemon's connection over VPI 0 VCI 16, which is permanent.
pub const MANAGEMENT: ConnId = ConnId(0);

/// Permanent connections in one message at most.
pub const PVCS: usize = 512;

crate::split_record! {
    /// The start of a daemon.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Start {
        /// Number of this start, from 1: the answer repeats it, and earlier messages belong to an earlier start.
        pub life: u32,
        /// This end of the link, without permanent connections: they follow.
        pub config: Config,
        /// Addresses that a former daemon has left; `None` if no former daemon had found the other side.
        pub former: Option<Vec<AtmAddress>>,
    }
}

/// To the daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToIlmid {
    /// Start. The permanent connections and the state of the line follow.
    Start(Box<Start>),
    /// Network side: the prefixes to offer.
    Prefixes(Vec<Prefix>),
    /// User side: the end system identifiers to register.
    Esis(Vec<MacAddr>),
    /// Permanent connections of the interface.
    Pvcs {
        /// A part of them, at most [`PVCS`].
        pvcs: Vec<Pvc>,
        /// True if a further part follows.
        more: bool,
    },
    /// The answer to [`FromIlmid::Claim`].
    Claimed {
        /// The number of the claim.
        claim: u32,
        /// The index of the first address that cannot be registered; `None` if all are registered.
        refused: Option<u16>,
    },
}

/// From the daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromIlmid {
    /// The first message after a [`Start`]: all further messages belong to that life.
    Begun {
        /// [`Start::life`].
        life: u32,
    },
    /// The other side has answered.
    Up {
        /// See [`Event::Up`](super::Event::Up).
        version: Version,
    },
    /// The kind of link, before `Up`, if [`Config::detect`] is set.
    Link(Link),
    /// The other side was lost or replaced, or has restarted.
    Down,
    /// Network side: the host wants to register these addresses, all or none. [`ToIlmid::Claimed`] is the answer.
    Claim {
        /// The number of the claim.
        claim: u32,
        /// The addresses, selector 0.
        addresses: Vec<AtmAddress>,
    },
    /// Network side: an address is no longer registered.
    Withdrawn(AtmAddress),
    /// User side: an address can be used, or can no longer be used.
    Address {
        /// The address.
        address: AtmAddress,
        /// True if the address can be used.
        usable: bool,
    },
    /// User side: the LECSs that the network names.
    Services(Vec<AtmAddress>),
    /// The state for display in another process; the data half has the addresses.
    Shown(Box<Snapshot>),
    /// The daemon was told to start anew, and has no state any more.
    Again,
}
