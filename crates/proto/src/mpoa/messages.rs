//! The boundary inside an MPOA client: what its daemon and its data plane say to each other.
//!
//! The data plane forwards, counts and ages; the daemon signals and speaks MPOA. They share nothing but these
//! messages, so that each can live in a process of its own, and the daemon may die without taking LANE along.
//! Numbers are those of the Linux MPOA client. Messages without a number are what Linux does with socket calls
//! there: attaching a connection as a shortcut, closing it, and handing up packets; and what Linux has not: handing
//! the entries of a daemon that died to the next one.
//!
//! Source: "An Implementation of the MPOA Client for Linux" (Tampere thesis, 1999), Tables 4.1 and 4.2.

use crate::mpoa::params::MpcParams;
use crate::{Cause, ConnId};
use aerostat_wire::mpoa::FlowFilter;
use aerostat_wire::{AtmAddress, MacAddr, Qos, Vc};
use core::net::IpAddr;

/// Name of an ingress cache entry: control address of the MPS that would route the flow, destination, and the QoS entry
/// that its packets fit, if any.
pub type FlowName = (AtmAddress, IpAddr, Option<FlowFilter>);

/// Control information of an ingress cache entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IngressInfo {
    /// Control address of the ingress MPS.
    pub mps: AtmAddress,
    /// Destination of the flow.
    pub destination: IpAddr,
    /// The QoS entry that its packets fit; each makes a flow of its own.
    pub filter: Option<FlowFilter>,
    /// Source of the flow that was detected; unspecified if a Trigger asked for the resolution.
    pub source: IpAddr,
    /// Code of the last NHRP client information entry; 0 is success.
    pub code: u8,
    /// Data address of the egress MPC; zero if unknown.
    pub egress: AtmAddress,
    /// Tag to put before each packet.
    pub tag: Option<u32>,
    /// Largest IP packet the egress takes, octets; 0 if it did not say.
    pub mtu: u16,
    /// Holding time, s.
    pub holding_s: u16,
    /// Service categories besides UBR that the egress takes, if it says ([`aerostat_wire::mpoa::category`]).
    pub category: Option<u16>,
}

impl IngressInfo {
    /// A flow of which nothing is known yet.
    #[must_use]
    pub const fn unresolved(flow: FlowName, source: IpAddr) -> Self {
        let (mps, destination, filter) = flow;
        Self {
            mps,
            destination,
            filter,
            source,
            code: 0,
            egress: AtmAddress::ZERO,
            tag: None,
            mtu: 0,
            holding_s: 0,
            category: None,
        }
    }
    /// The flow.
    #[must_use]
    pub const fn flow(&self) -> FlowName {
        (self.mps, self.destination, self.filter)
    }
}

/// Control information of an egress cache entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EgressInfo {
    /// Control address of the egress MPS.
    pub mps: AtmAddress,
    /// Its protocol address.
    pub mps_ip: IpAddr,
    /// Cache id; with `mps` the name of the entry.
    pub cache_id: u32,
    /// The tag under which packets arrive; `None` if they arrive untagged.
    pub tag: Option<u32>,
    /// Destination.
    pub destination: IpAddr,
    /// Its prefix length, 1..=32.
    pub prefix: u8,
    /// Data address of the ingress MPC.
    pub ingress: AtmAddress,
    /// Interface of the ELAN on which packets would have arrived.
    pub itf: usize,
    /// The ELAN-ID that the MPS gave.
    pub elan_id: u32,
    /// Data link header to put before each packet.
    pub header: Vec<u8>,
    /// Holding time, s; 0 removes the entry.
    pub holding_s: u16,
}

/// Whose shortcuts a purge may remove.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PurgeScope {
    /// Those that this MPS resolved.
    Mps(AtmAddress),
    /// Those that end at this data address: the purge came from there over the shortcut.
    Egress(AtmAddress),
}

/// From the daemon to the data plane ("kernel").
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToKernel {
    /// 101 MPOA_TRIGGER_RCVD: resolve this destination as if a flow had been detected.
    TriggerReceived {
        /// Who asks.
        mps: AtmAddress,
        /// For which destination.
        destination: IpAddr,
    },
    /// 102 MPOA_RES_REPLY_RCVD: the answer, good (`code` 0) or bad.
    ResolutionReply(IngressInfo),
    /// 103 INGRESS_PURGE_RCVD: forget all destinations under a prefix.
    IngressPurge {
        /// Among which entries.
        scope: PurgeScope,
        /// Address.
        destination: IpAddr,
        /// Prefix length, 0..=32.
        prefix: u8,
    },
    /// 104 EGRESS_PURGE_RCVD: the MPS confirmed the purge of an egress entry, or never will.
    EgressPurged {
        /// The MPS.
        mps: AtmAddress,
        /// The entry.
        cache_id: u32,
    },
    /// 105 MPS_DEATH: no sign of life; forget all that it said.
    MpsDeath {
        /// The MPS.
        mps: AtmAddress,
    },
    /// 106 CACHE_IMPOS_RCVD: make, refresh or (holding time 0) remove an egress entry.
    CacheImposition(EgressInfo),
    /// 107 SET_MPC_CTRL_ADDR: the daemon runs and has this control address; tell the LEC.
    SetMpcControlAddress(AtmAddress),
    /// 108 SET_MPS_MAC_ADDR: an MPS that does not announce itself, as the user gave it.
    SetMpsMacAddress {
        /// On this interface.
        itf: usize,
        /// Its MAC address.
        mac: MacAddr,
        /// Its control address.
        mps: AtmAddress,
    },
    /// 109 CLEAN_UP_AND_EXIT: purge everything, then say [`ToDaemon::Die`].
    CleanUpAndExit,
    /// 110 SET_MPC_PARAMS.
    SetParams(MpcParams),
    /// 301 RELOAD: purge everything, then say [`ToDaemon::Reload`].
    Reload,
    /// ioctl ATMMPC_DATA: use this connection as a shortcut, both ways. Again with a label once it is known.
    Attach {
        /// The connection.
        conn: ConnId,
        /// Data address at the other end.
        peer: AtmAddress,
        /// Its label.
        vc: Option<Vc>,
        /// Its traffic if it is more than best effort.
        qos: Option<Qos>,
        /// True if this end opened it.
        opened: bool,
        /// The flow that alone may use it: the one for which this end opened it with more than best effort.
        flow: Option<FlowName>,
    },
    /// The connection is gone.
    Detach {
        /// The connection.
        conn: ConnId,
        /// Why.
        cause: Cause,
    },
    /// A shortcut that [`ToDaemon::OpenIngressSvc`] asked for could not be opened.
    OpenFailed {
        /// To this data address.
        egress: AtmAddress,
        /// With this traffic, if more than best effort.
        qos: Option<Qos>,
        /// For this flow alone.
        flow: Option<FlowName>,
        /// Why.
        cause: Cause,
    },
}

/// From the data plane ("kernel") to the daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToDaemon {
    /// 201 SND_MPOA_RES_RQST: a flow was detected; resolve it under a new request id.
    SendResolutionRequest {
        /// What is known of the destination.
        info: IngressInfo,
        /// Traffic wanted if more than best effort.
        qos: Option<Qos>,
    },
    /// 202 SET_MPS_CTRL_ADDR: an MPS was discovered on an interface.
    SetMpsControlAddress {
        /// The interface.
        itf: usize,
        /// The MPS.
        mps: AtmAddress,
    },
    /// 203 SND_MPOA_RES_RTRY: no answer yet; repeat with the same request id.
    SendResolutionRetry(IngressInfo),
    /// 204 STOP_KEEP_ALIVE_SM: nothing is left that this MPS said.
    StopKeepAlive {
        /// The MPS.
        mps: AtmAddress,
    },
    /// 205 EGRESS_ENTRY_REMOVED: the entry's tag can be used again.
    EgressEntryRemoved {
        /// The MPS.
        mps: AtmAddress,
        /// The entry.
        cache_id: u32,
    },
    /// 206 SND_EGRESS_PURGE: tell the MPS that an entry is void.
    SendEgressPurge(EgressInfo),
    /// 207 DIE: everything is purged.
    Die,
    /// 208 DATA_PLANE_PURGE: tell the ingress MPC, over the shortcut, to stop.
    DataPlanePurge {
        /// The shortcut.
        conn: ConnId,
        /// Address that is not, or no more, reachable here.
        destination: IpAddr,
        /// Its prefix length.
        prefix: u8,
    },
    /// 209 OPEN_INGRESS_SVC: open a shortcut.
    OpenIngressSvc {
        /// Where to, and why.
        info: IngressInfo,
        /// Traffic if more than best effort.
        qos: Option<Qos>,
    },
    /// 301 RELOAD: everything is purged; start again.
    Reload,
    /// An ingress entry that a daemon before left: what it holds was said by this MPS.
    IngressEntry(IngressInfo),
    /// An egress entry that a daemon before left, with the holding time that remains.
    EgressEntry(EgressInfo),
    /// No entry uses this shortcut any more: close it.
    CloseShortcut {
        /// The shortcut.
        conn: ConnId,
    },
    /// A control packet arrived on a shortcut.
    Control {
        /// The shortcut.
        conn: ConnId,
        /// The packet without its LLC header.
        packet: Vec<u8>,
    },
}

impl ToKernel {
    /// The number of the message in the Linux client; `None` for what is no message there.
    #[must_use]
    pub const fn number(&self) -> Option<u16> {
        Some(match self {
            Self::TriggerReceived { .. } => 101,
            Self::ResolutionReply(_) => 102,
            Self::IngressPurge { .. } => 103,
            Self::EgressPurged { .. } => 104,
            Self::MpsDeath { .. } => 105,
            Self::CacheImposition(_) => 106,
            Self::SetMpcControlAddress(_) => 107,
            Self::SetMpsMacAddress { .. } => 108,
            Self::CleanUpAndExit => 109,
            Self::SetParams(_) => 110,
            Self::Reload => 301,
            Self::Attach { .. } | Self::Detach { .. } | Self::OpenFailed { .. } => return None,
        })
    }
}

impl ToDaemon {
    /// As [`ToKernel::number`].
    #[must_use]
    pub const fn number(&self) -> Option<u16> {
        Some(match self {
            Self::SendResolutionRequest { .. } => 201,
            Self::SetMpsControlAddress { .. } => 202,
            Self::SendResolutionRetry(_) => 203,
            Self::StopKeepAlive { .. } => 204,
            Self::EgressEntryRemoved { .. } => 205,
            Self::SendEgressPurge(_) => 206,
            Self::Die => 207,
            Self::DataPlanePurge { .. } => 208,
            Self::OpenIngressSvc { .. } => 209,
            Self::Reload => 301,
            Self::IngressEntry(_)
            | Self::EgressEntry(_)
            | Self::CloseShortcut { .. }
            | Self::Control { .. } => return None,
        })
    }
}
