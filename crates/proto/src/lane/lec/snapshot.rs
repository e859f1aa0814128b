//! Contents of `inspect lec`.

use super::control::Role;
use super::forward::Forwarder;
use super::split::{KnownConn, KnownEntry, Standing};
use super::{ControlCounters, DataCounters, LecConfig};
use crate::ConnId;
use crate::split::SeatCounters;
use aerostat_wire::lane::{ElanName, MaxFrameSize, Tlv};
use aerostat_wire::{AtmAddress, MacAddr, TrafficParams, Vc};
use std::collections::BTreeMap;

aerostat_wire::named! {
    /// State of a client, in the words of the LEC MIB.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum LecState {
        /// Not started, or stopped.
        Stopped = "stopped",
        /// Waiting to start over.
        Initial = "initial",
        /// Calling the LECS.
        LecsConnect = "lecsConnect",
        /// LE_CONFIGURE_REQUEST is out.
        Configure = "configure",
        /// Calling the LES, or LE_JOIN_REQUEST is out.
        Join = "join",
        /// Registering.
        InitialRegistration = "initialRegistration",
        /// Finding and calling the BUS.
        BusConnect = "busConnect",
        /// Frames flow.
        Operational = "operational",
    }
}

aerostat_wire::named! {
    /// State of a destination, in the words of Linux's `/proc/net/atm/lec`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum ArpStatus {
        /// The address is unknown, or it is known and no path was asked for.
        Unknown = "UNKNOWN",
        /// LE_ARP is out.
        ArpPending = "ARP_PENDING",
        /// The data direct connection is being set up.
        VcPending = "VC_PENDING",
        /// The old path is being flushed.
        FlushPending = "FLUSH_PENDING",
        /// Frames go on a data direct connection.
        ForwardDirect = "FORWARD_DIRECT",
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
    /// Traffic of this end, if it is not best effort.
    pub traffic: Option<TrafficParams>,
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
    /// Counters of the control part's seat.
    pub seat: SeatCounters,
    /// Counters of the data plane.
    pub data: DataCounters,
}

/// Knowledge about a control part, here or elsewhere.
pub(super) struct View {
    pub(super) standing: Standing,
    pub(super) conns: Vec<KnownConn>,
    pub(super) entries: Vec<KnownEntry>,
    pub(super) counters: ControlCounters,
}

pub(super) fn take(
    config: &LecConfig,
    view: View,
    seat: SeatCounters,
    data: &Forwarder,
) -> LecSnapshot {
    let View {
        standing,
        conns,
        entries,
        counters,
    } = view;
    let labels: BTreeMap<ConnId, Option<Vc>> = conns.iter().map(|row| (row.conn, row.vc)).collect();
    let bus_conn = (conns.iter()).find(|row| row.role == Role::MulticastSend);
    // Frames of such a group use the connection with the BUS as other frames use data direct connections.
    let by_bus = |row: &KnownEntry| {
        let to_bus = row.mac.is_group() && row.atm == Some(standing.bus);
        bus_conn.filter(|_| to_bus).map(|row| row.conn)
    };
    let vc_of = |row: &KnownEntry| {
        let conn = data.direct(row.mac).or_else(|| by_bus(row))?;
        *labels.get(&conn)?
    };
    let cache = entries.iter().map(|row| LecArpRow {
        mac: row.mac,
        atm: row.atm,
        status: match by_bus(row) {
            Some(_) => ArpStatus::ForwardDirect,
            None => row.status,
        },
        remote: row.remote,
        from_data: row.from_data,
        vc: vc_of(row),
        tlvs: row.tlvs.clone(),
    });
    let connections = conns.iter().map(|conn| LecConnRow {
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
        traffic: conn.traffic,
    });
    let registered = standing.groups.as_deref().unwrap_or_default();
    let groups = config.groups.iter();
    let groups = groups.map(|mac| (*mac, registered.contains(mac))).collect();
    LecSnapshot {
        state: standing.state,
        lecid: standing.lecid,
        elan: standing.elan,
        elan_id: standing.elan_id,
        v2: standing.v2,
        tlvs: config.tlvs.clone(),
        max_frame: standing.max_frame,
        mac: config.mac,
        address: config.address,
        les: standing.les,
        bus: standing.bus,
        topology_change: standing.topology_change,
        groups: (config.selective && !config.proxy).then_some(groups),
        cache: cache.collect(),
        connections: connections.collect(),
        control: counters,
        seat,
        data: data.counters,
    }
}
