//! What `inspect lec` shows.

use super::control::{Control, Role};
use super::forward::Forwarder;
use super::{ControlCounters, DataCounters};
use aerostat_wire::lane::{ElanName, MaxFrameSize, Tlv};
use aerostat_wire::{AtmAddress, MacAddr, Vc};
use core::fmt;

/// State of a client, in the words of the LEC MIB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LecState {
    /// Not started, or stopped.
    Stopped,
    /// Waiting to start over.
    Initial,
    /// Calling the LECS.
    LecsConnect,
    /// LE_CONFIGURE_REQUEST is out.
    Configure,
    /// Calling the LES, or LE_JOIN_REQUEST is out.
    Join,
    /// Registering.
    InitialRegistration,
    /// Finding and calling the BUS.
    BusConnect,
    /// Frames flow.
    Operational,
}

impl fmt::Display for LecState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stopped => "stopped",
            Self::Initial => "initial",
            Self::LecsConnect => "lecsConnect",
            Self::Configure => "configure",
            Self::Join => "join",
            Self::InitialRegistration => "initialRegistration",
            Self::BusConnect => "busConnect",
            Self::Operational => "operational",
        })
    }
}

/// State of a destination, in the words of Linux's `/proc/net/atm/lec`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ArpStatus {
    /// The address is unknown, or it is known and no path was asked for.
    Unknown,
    /// LE_ARP is out.
    ArpPending,
    /// The data direct connection is being set up.
    VcPending,
    /// The old path is being flushed.
    FlushPending,
    /// Frames go on a data direct connection.
    ForwardDirect,
}

impl fmt::Display for ArpStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unknown => "UNKNOWN",
            Self::ArpPending => "ARP_PENDING",
            Self::VcPending => "VC_PENDING",
            Self::FlushPending => "FLUSH_PENDING",
            Self::ForwardDirect => "FORWARD_DIRECT",
        })
    }
}

/// One row of the LE_ARP cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LecArpRow {
    /// MAC address.
    pub mac: MacAddr,
    /// Owner, once known.
    pub atm: Option<AtmAddress>,
    /// State of the destination.
    pub status: ArpStatus,
    /// The MAC address is behind its owner.
    pub remote: bool,
    /// Learned from a data frame, not from LE_ARP.
    pub from_data: bool,
    /// Label of the connection that carries its frames.
    pub vc: Option<Vc>,
    /// The TLVs of the owner.
    pub tlvs: Vec<Tlv>,
}

/// One connection of the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LecConnRow {
    /// `config direct`, `control direct`, `control distribute`, `multicast send`, `multicast forward`,
    /// `selective multicast send` or `data direct` (with `, LLC` if multiplexed).
    pub role: &'static str,
    /// The other end.
    pub peer: AtmAddress,
    /// True if this end called.
    pub outgoing: bool,
    /// Label, once connected.
    pub vc: Option<Vc>,
}

/// A client, seen from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LecSnapshot {
    /// State.
    pub state: LecState,
    /// LECID; 0 before the join.
    pub lecid: u16,
    /// Name of the ELAN.
    pub elan: ElanName,
    /// ELAN-ID; 0 with a v1 LES.
    pub elan_id: u32,
    /// LANE v2 is in force.
    pub v2: bool,
    /// The TLVs of this client, such as its MPOA device type.
    pub tlvs: Vec<Tlv>,
    /// Frame size.
    pub max_frame: MaxFrameSize,
    /// Own MAC address.
    pub mac: MacAddr,
    /// Own ATM address.
    pub address: AtmAddress,
    /// The LES; zero before it is known.
    pub les: AtmAddress,
    /// The BUS; zero before it is known.
    pub bus: AtmAddress,
    /// C19.
    pub topology_change: bool,
    /// C15: the wanted groups, and whether the LES knows each; `None`: all groups are wanted, C32 is false.
    pub groups: Option<Vec<(MacAddr, bool)>>,
    /// LE_ARP cache.
    pub cache: Vec<LecArpRow>,
    /// Connections.
    pub connections: Vec<LecConnRow>,
    /// Counters of the control part.
    pub control: ControlCounters,
    /// Counters of the data plane.
    pub data: DataCounters,
}

pub(super) fn take(control: &Control, data: &Forwarder) -> LecSnapshot {
    // Frames of such a group use the connection with the BUS as other frames use data direct connections.
    let by_bus = |mac: MacAddr| {
        let entry = control.cache.get(&mac)?;
        let bus = control.multicast_send?;
        (mac.is_group() && entry.atm == Some(control.bus)).then_some(bus)
    };
    let vc_of = |mac| {
        let conn = data.direct(mac).or_else(|| by_bus(mac))?;
        control.conns.get(&conn)?.vc
    };
    let cache = control.cache.iter().map(|(mac, entry)| LecArpRow {
        mac: *mac,
        atm: entry.atm,
        status: match by_bus(*mac) {
            Some(_) => ArpStatus::ForwardDirect,
            None => entry.status(),
        },
        remote: entry.remote,
        from_data: entry.from_data,
        vc: vc_of(*mac),
        tlvs: entry.tlvs.clone(),
    });
    let connections = control.conns.values().map(|conn| LecConnRow {
        role: match conn.role {
            Role::ConfigDirect => "config direct",
            Role::ControlDirect => "control direct",
            Role::Distribute => "control distribute",
            Role::MulticastSend => "multicast send",
            Role::MulticastForward => "multicast forward",
            Role::SelectiveSend => "selective multicast send",
            Role::DataDirect if conn.mux => "data direct, LLC",
            Role::DataDirect => "data direct",
        },
        peer: conn.peer,
        outgoing: conn.outgoing,
        vc: conn.vc,
    });
    LecSnapshot {
        state: control.state,
        lecid: control.lecid,
        elan: control.elan,
        elan_id: control.elan_id,
        v2: control.v2,
        tlvs: control.config.tlvs.clone(),
        max_frame: control.max_frame,
        mac: control.config.mac,
        address: control.config.address,
        les: control.les,
        bus: control.bus,
        topology_change: control.topology_change,
        groups: (control.config.selective && !control.config.proxy).then(|| control.groups.rows()),
        cache: cache.collect(),
        connections: connections.collect(),
        control: control.counters,
        data: data.counters,
    }
}
