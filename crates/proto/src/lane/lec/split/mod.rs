//! The control part of a LANE client in a process of its own: what it and the lab's process say to each other.
//!
//! **Purpose.** The two halves of a client ([`super`]) talk by typed messages. Here they get a form for a socket between
//! two processes, together with what else the control part needs: calls, and the client's user.
//!
//! ```text
//!   lab's process                                     lecd, for all clients of a host
//!   Lec: data plane, mirror     ── ToLecd ──────────► LecDaemon: the control part of each client: all
//!   signalling manager          ◄───────── FromLecd ─       that reads a server's or peer's control frame
//! ```
//!
//! **Objects and owners.** [`Lec::away`](super::Lec::away) keeps the seat of the daemon; [`LecDaemon`](super::LecDaemon) is the
//! daemon. A frame is one message for or from one client ([`codec`]); its number is N of the interface `lecN`. Neither side
//! trusts the other: a frame that cannot be decoded ends the connection; what is not the daemon's to ask is refused and counted.
//!
//! **One process for all clients of a host**, as they share its signalling manager and its MPOA client: what a process for
//! each would keep apart is one client's servers from the other clients of the same host, and a death costs no
//! forwarding. A router with ten ELANs has one more process, not ten.
//!
//! **The mirror.** The daemon tells what it knows whenever that changes: where it stands ([`Standing`]), its connections
//! ([`KnownConn`]), its LE_ARP cache ([`KnownEntry`]). `inspect lec` shows the mirror.
//!
//! **When the daemon dies** (not when it ends in good order):
//! - As a member, with all its connections up: the seat keeps the LECID, the connections that are up and the table of
//!   destinations for ten seconds ([`GRACE`](super::GRACE)), as a kernel that holds the sockets. Frames flow on the paths they have.
//!   Calls that were being set up are released. Control frames, and calls that are offered, wait (64 at most).
//!   A daemon that comes meanwhile gets the mirror and goes on from there: no server and no peer notices, and the
//!   user (MPOA) hears nothing, as nothing has changed. It orders its paths anew (which changes nothing if they stand),
//!   asks again what was being asked, and registers again, as its predecessor may have died over it. Ages of entries are
//!   told at most 30 s late, so a binding is verified earlier rather than later.
//! - Otherwise, or if nobody comes in time, if a connection with a server goes meanwhile, or if a daemon that took over
//!   dies within five seconds (what it was given may be the reason): everything is released, the user hears
//!   Dissociate for each association and Left, and the next daemon joins anew. The LES sees its control direct
//!   connection released, as when a process ends and its sockets close.
//!
//! **When it ends in good order** (SIGTERM) it leaves its ELANs. SIGHUP: it leaves and joins anew.
//!
//! **Bounds.** Lists of MAC addresses are cut at [`MACS`]. The cache, the associations and the calls have the bounds of
//! [`LecLimits`](crate::lane::LecLimits).
//!
//! **Standards.** None; the octets are this project's own, and both ends are of one version.

pub mod codec;
#[cfg(test)]
mod tests;

pub use super::control::Role;
pub use super::messages::{ToControl, ToData};

use super::{ArpStatus, ControlCounters, LecConfig, LecState};
use crate::lane::LecParams;
use crate::{ConnId, Duration};
use aerostat_wire::lane::{ElanName, LanType, MaxFrameSize, Tlv};
use aerostat_wire::{AtmAddress, MacAddr, Vc};

/// Most MAC addresses in one message.
pub const MACS: usize = 8192;

/// Where a client stands.
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
    /// What the LECS said.
    pub lecs_tlvs: Vec<Tlv>,
    /// Group addresses that the LES has registered; `None`: it refused one.
    pub groups: Option<Vec<MacAddr>>,
    /// Variables in force.
    pub params: LecParams,
}

/// A connection as its daemon knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownConn {
    /// The connection.
    pub conn: ConnId,
    /// What it is for.
    pub role: Role,
    /// The other end.
    pub peer: AtmAddress,
    /// This end called.
    pub outgoing: bool,
    /// Its label, once connected.
    pub vc: Option<Vc>,
    /// LLC-multiplexed.
    pub mux: bool,
    /// Data direct: frames may be sent.
    pub ready: bool,
}

/// An entry of the LE_ARP cache as its daemon knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownEntry {
    /// The MAC address.
    pub mac: MacAddr,
    /// Its owner.
    pub atm: Option<AtmAddress>,
    /// How far.
    pub status: ArpStatus,
    /// The MAC address is behind its owner.
    pub remote: bool,
    /// Learned from a data frame, not from LE_ARP.
    pub from_data: bool,
    /// The user was told.
    pub associated: bool,
    /// What the owner says of itself.
    pub tlvs: Vec<Tlv>,
    /// How long ago the binding was last verified.
    pub age: Duration,
}

/// To the daemon, for one client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToLecd {
    /// There is this client. What it takes over follows; [`Self::Go`] ends it.
    Start {
        /// Its configuration, with the TLVs of now and a seed that no daemon before had.
        config: Box<LecConfig>,
        /// Where its transaction ids begin.
        transaction: u32,
        /// Connections that it opens have greater ids, at first.
        conn: ConnId,
    },
    /// A connection that it takes over.
    Conn(KnownConn),
    /// An entry that it takes over.
    Entry(KnownEntry),
    /// Go on from here, or join.
    Go(Option<Box<Standing>>),
    /// Leave the ELAN, and say so.
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
    /// See [`Output::Associate`](super::Output::Associate).
    Associate {
        /// The MAC address.
        mac: MacAddr,
        /// Its owner.
        atm: AtmAddress,
        /// The owner's TLVs.
        tlvs: Vec<Tlv>,
    },
    /// See [`Output::Dissociate`](super::Output::Dissociate).
    Dissociate {
        /// The MAC address.
        mac: MacAddr,
    },
    /// See [`Output::RemoteMoved`](super::Output::RemoteMoved).
    RemoteMoved {
        /// The MAC address.
        mac: MacAddr,
    },
    /// See [`Output::Resolved`](super::Output::Resolved).
    Resolved {
        /// The MAC address.
        mac: MacAddr,
        /// Its owner and the owner's TLVs.
        owner: Option<(AtmAddress, Vec<Tlv>)>,
    },
    /// See [`Output::Joined`](super::Output::Joined).
    Joined {
        /// Identifier within the ELAN.
        lecid: u16,
        /// Name of the ELAN.
        elan: ElanName,
        /// Frame size of the ELAN.
        max_frame: MaxFrameSize,
        /// Number of the ELAN.
        elan_id: u32,
        /// TLVs of the LECS.
        tlvs: Vec<Tlv>,
    },
    /// See [`Output::Left`](super::Output::Left).
    Left,
    /// What was counted since the last message of this kind.
    Counted(ControlCounters),
    /// Where it stands now.
    Standing(Box<Standing>),
    /// What it knows of a connection now.
    Conn(KnownConn),
    /// The connection is none any more.
    ConnGone(ConnId),
    /// What it knows of a MAC address now.
    Entry(KnownEntry),
    /// The entry is gone.
    EntryGone(MacAddr),
}
