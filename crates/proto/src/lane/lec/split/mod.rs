//! The control part of a LANE client in a process of its own: its messages to and from the lab's process.
//!
//! **Purpose.** The two halves of a client ([`super`]) exchange typed messages. This module encodes them for a socket
//! between two processes, together with the other messages of the control part: calls, and the inputs and outputs of
//! the client's user.
//!
//! ```text
//!   lab's process                                     lecd, for all clients of a host
//!   Lec: data plane, mirror     ── ToLecd ──────────► LecDaemon: the control part of each client: all
//!   signalling of the host      ◄───────── FromLecd ─       that reads a server's or peer's control frame
//! ```
//!
//! **Objects and owners.** [`Lec`](super::Lec) has the seat of the daemon; [`LecDaemon`](super::LecDaemon) is the
//! daemon. A frame is one message for or from one client ([`codec`]); its number is N of the interface `lecN`. Neither
//! side trusts the other: a frame that cannot be decoded ends the connection; what is not the daemon's to ask is
//! refused and counted.
//!
//! **One process for all clients of a host**, as they share its signalling and its MPOA client. A process for
//! each client would only isolate the servers of one client from the other clients of the same host, and a death costs
//! no forwarding. A router with ten ELANs has one more process, not ten.
//!
//! **The mirror.** The daemon reports its state whenever the state changes: that of the client ([`Standing`]), its
//! connections ([`KnownConn`]), its LE_ARP cache ([`KnownEntry`]). `inspect lec` shows the mirror.
//!
//! **When the daemon dies** (not when it ends regularly):
//! - As a member, with all its connections up: the seat keeps the LECID, the connections that are up and the table of
//!   destinations for ten seconds ([`GRACE`](super::GRACE)), as a kernel that holds the sockets. Frames continue on
//!   their paths. Calls that were being set up are released. Control frames and offered calls wait (64 at most). A
//!   daemon that starts meanwhile gets the mirror and continues from there: no server and no peer notices, and the user
//!   (MPOA) is told nothing, as nothing has changed. The daemon sets its paths again (which changes nothing if they are
//!   still valid), repeats outstanding requests, and registers again, as its predecessor may have died during a
//!   registration. Ages of entries are reported at most 30 s late, so a binding is verified earlier rather than later.
//! - Otherwise everything is released, the user gets Dissociate for each association and Left, and the next daemon
//!   joins anew. The same happens if no daemon comes in time, if a connection with a server ends meanwhile, or if a
//!   daemon that took over dies within five seconds (the state that it took over may be the reason). The LES sees its
//!   control direct connection released, as when a process ends and its sockets close.
//!
//! **When the daemon ends regularly** (SIGTERM) it leaves its ELANs. SIGHUP: it leaves and joins anew.
//!
//! **Bounds.** Lists of MAC addresses are limited to [`MACS`]. The cache, the associations and the calls have the
//! bounds of [`LecLimits`](crate::lane::LecLimits).
//!
//! **Standards.** None: the encoding is this project's own, and both ends have the same version.

pub mod codec;
#[cfg(test)]
mod tests;

pub use super::control::Role;
pub use super::messages::{ToControl, ToData};

use super::{ArpStatus, ControlCounters, LecConfig, LecState, News};
use crate::lane::LecParams;
use crate::{ConnId, Duration};
use aerostat_wire::lane::{ElanName, LanType, MaxFrameSize, Tlv};
use aerostat_wire::{AtmAddress, MacAddr, TrafficParams, Vc};

/// Largest number of MAC addresses in one message.
pub const MACS: usize = 8192;

crate::split_record! {
    /// State of a client.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Standing {
        /// State.
        pub state: LecState,
        /// LECID; 0 before the join.
        pub lecid: u16,
        /// LANE v2 is in force.
        pub v2: bool,
        /// Name of the ELAN.
        pub elan: ElanName,
        /// ELAN-ID; 0 with a v1 LES.
        pub elan_id: u32,
        /// LAN type.
        pub lan_type: LanType,
        /// Frame size.
        pub max_frame: MaxFrameSize,
        /// The LES; zero before it is known.
        pub les: AtmAddress,
        /// The BUS; zero before it is known.
        pub bus: AtmAddress,
        /// C19.
        pub topology_change: bool,
        /// The TLVs from the LECS.
        pub lecs_tlvs: Vec<Tlv>,
        /// Group addresses that the LES has registered; `None`: the LES refused a group.
        pub groups: Option<Vec<MacAddr>>,
        /// Variables in force.
        pub params: LecParams,
    }
}

crate::split_record! {
    /// A connection as its daemon knows it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct KnownConn {
        /// The connection.
        pub conn: ConnId,
        /// Its purpose.
        pub role: Role,
        /// The other end.
        pub peer: AtmAddress,
        /// True if this end called.
        pub outgoing: bool,
        /// Its label, once connected.
        pub vc: Option<Vc>,
        /// LLC-multiplexed.
        pub mux: bool,
        /// Traffic of this end, if it is not best effort.
        pub traffic: Option<TrafficParams>,
        /// Data direct: frames may be sent.
        pub ready: bool,
    }
}

crate::split_record! {
    /// An entry of the LE_ARP cache as its daemon knows it.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct KnownEntry {
        /// The MAC address.
        pub mac: MacAddr,
        /// Its owner.
        pub atm: Option<AtmAddress>,
        /// Its state.
        pub status: ArpStatus,
        /// The MAC address is behind its owner.
        pub remote: bool,
        /// Learned from a data frame, not from LE_ARP.
        pub from_data: bool,
        /// True if the user was told of the association.
        pub associated: bool,
        /// The TLVs of the owner.
        pub tlvs: Vec<Tlv>,
        /// How long ago the binding was last verified.
        pub age: Duration,
    }
}

/// To the daemon, for one client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToLecd {
    /// Creates this client. The state that it takes over follows; [`Self::Go`] ends the list.
    Start {
        /// Its configuration, with the current TLVs and a seed that no earlier daemon had.
        config: Box<LecConfig>,
        /// Its first transaction id.
        transaction: u32,
        /// Its first new connections have greater ids than this.
        conn: ConnId,
    },
    /// A connection that it takes over.
    Conn(KnownConn),
    /// An entry that it takes over.
    Entry(KnownEntry),
    /// Continue from this state, or join.
    Go(Option<Box<Standing>>),
    /// Leave the ELAN, and report the end.
    Stop,
    /// A message of the data plane.
    Data(ToControl),
    /// See [`Input::SetTlvs`](super::Input::SetTlvs).
    SetTlvs(Vec<Tlv>),
    /// See [`Input::SetRemote`](super::Input::SetRemote).
    SetRemote(Vec<MacAddr>),
    /// See [`Input::SetGroups`](super::Input::SetGroups).
    SetGroups(Vec<MacAddr>),
    /// See [`Input::TopologyChange`](super::Input::TopologyChange).
    TopologyChange(bool),
    /// See [`Input::Resolve`](super::Input::Resolve).
    Resolve(MacAddr),
}

/// From the daemon, of one client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromLecd {
    /// A message for the data plane.
    Data(ToData),
    /// News for the user.
    News(News),
    /// The counters since the last message of this kind.
    Counted(ControlCounters),
    /// The current state of the client.
    Standing(Box<Standing>),
    /// The current state of a connection.
    Conn(KnownConn),
    /// The connection is gone.
    ConnGone(ConnId),
    /// The current state of a MAC address.
    Entry(KnownEntry),
    /// The entry is gone.
    EntryGone(MacAddr),
}
