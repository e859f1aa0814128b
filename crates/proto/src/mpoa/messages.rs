//! The boundary inside an MPOA client: what its daemon and its data plane say to each other.
//!
//! The data plane forwards, counts and ages; the daemon signals and speaks MPOA. They share only these messages, so
//! each can run in a process of its own, and LANE goes on if the daemon dies. Numbers are those of the Linux MPOA
//! client. Messages without a number replace socket calls of the Linux client: to attach a connection as a shortcut, to
//! close it, and to pass packets up. Linux has no counterpart of one more message, which hands the entries of a daemon
//! that died to the next daemon.
//!
//! Source: "Implementation and testing of Multi-Protocol Over ATM client on Linux" (Tampere thesis, 1999), Tables 4.1
//! and 4.2.

use crate::mpoa::params::MpcParams;
use crate::{Cause, ConnId};
use aerostat_wire::mpoa::FlowFilter;
use aerostat_wire::{AtmAddress, MacAddr, Qos, Vc};
use core::net::IpAddr;

/// Name of an ingress cache entry: control address of the MPS that would route the flow, destination, and the QoS entry
/// that its packets fit, if any.
pub type FlowName = (AtmAddress, IpAddr, Option<FlowFilter>);

crate::split_record! {
    /// Control information of an ingress cache entry.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct IngressInfo {
        /// Control address of the ingress MPS.
        pub mps: AtmAddress,
        /// Destination of the flow.
        pub destination: IpAddr,
        /// The QoS entry that its packets fit; each entry makes a flow of its own.
        pub filter: Option<FlowFilter>,
        /// Source of the flow that was detected; unspecified if a Trigger asked for the resolution.
        pub source: IpAddr,
        /// Code of the last NHRP client information entry; 0 is success.
        pub code: u8,
        /// Data address of the egress MPC; zero if unknown.
        pub egress: AtmAddress,
        /// Tag to put before each packet.
        pub tag: Option<u32>,
        /// Largest IP packet that the egress takes, octets; 0 if unknown.
        pub mtu: u16,
        /// Holding time, s.
        pub holding_s: u16,
        /// Service categories besides UBR that the egress takes, if the egress told them
        /// ([`aerostat_wire::mpoa::category`]).
        pub category: Option<u16>,
    }
}

impl IngressInfo {
    /// A flow whose destination is not resolved yet.
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

crate::split_record! {
    /// Control information of an egress cache entry.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct EgressInfo {
        /// Control address of the egress MPS.
        pub mps: AtmAddress,
        /// Its protocol address.
        pub mps_ip: IpAddr,
        /// Cache id; with `mps`, this is the name of the entry.
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
}

/// From the daemon to the data plane ("kernel").
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToKernel {
    /// 101 MPOA_TRIGGER_RCVD: resolve this destination as if a flow had been detected.
    TriggerReceived {
        /// The MPS that asks.
        mps: AtmAddress,
        /// The destination.
        destination: IpAddr,
    },
    /// 102 MPOA_RES_REPLY_RCVD: the answer, positive (`code` 0) or negative.
    ResolutionReply(IngressInfo),
    /// 103 INGRESS_PURGE_RCVD: forget all destinations under a prefix.
    IngressPurge {
        /// The MPS that purges what it resolved.
        mps: AtmAddress,
        /// Address.
        destination: IpAddr,
        /// Prefix length, 0..=32.
        prefix: u8,
    },
    /// 104 EGRESS_PURGE_RCVD: the MPS confirmed the purge of an egress entry, or will not confirm it any more.
    EgressPurged {
        /// The MPS.
        mps: AtmAddress,
        /// The entry.
        cache_id: u32,
    },
    /// 105 MPS_DEATH: no Keep-Alive arrived in time; forget all information from this MPS.
    MpsDeath {
        /// The MPS.
        mps: AtmAddress,
    },
    /// 106 CACHE_IMPOS_RCVD: create, refresh or (holding time 0) remove an egress entry.
    CacheImposition(EgressInfo),
    /// 107 SET_MPC_CTRL_ADDR: the daemon runs and has this control address; tell the LEC.
    SetMpcControlAddress(AtmAddress),
    /// 108 SET_MPS_MAC_ADDR: an MPS that does not announce itself, as configured by the user.
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
    /// ioctl ATMMPC_DATA: use this connection as a shortcut, in both directions. Sent again with the label once it is
    /// known.
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
        /// The cause.
        cause: Cause,
    },
    /// A shortcut that was requested with [`ToDaemon::OpenIngressSvc`] could not be opened.
    OpenFailed {
        /// The called data address.
        egress: AtmAddress,
        /// The requested traffic, if more than best effort.
        qos: Option<Qos>,
        /// The only flow that would have used the shortcut.
        flow: Option<FlowName>,
        /// The cause.
        cause: Cause,
    },
}

/// From the data plane ("kernel") to the daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToDaemon {
    /// 201 SND_MPOA_RES_RQST: a flow was detected; resolve its destination under a new request id.
    SendResolutionRequest {
        /// Knowledge of the destination.
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
    /// 203 SND_MPOA_RES_RTRY: no answer yet; repeat the request with the same request id.
    SendResolutionRetry(IngressInfo),
    /// 204 STOP_KEEP_ALIVE_SM: no information from this MPS is left.
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
    /// 209 OPEN_INGRESS_SVC: open a shortcut.
    OpenIngressSvc {
        /// Where the shortcut leads, and for which flow.
        info: IngressInfo,
        /// Traffic if more than best effort.
        qos: Option<Qos>,
    },
    /// 301 RELOAD: everything is purged; start again.
    Reload,
    /// An ingress entry that the previous daemon left: its contents came from this MPS.
    IngressEntry(IngressInfo),
    /// An egress entry that the previous daemon left, with the remaining holding time.
    EgressEntry(EgressInfo),
    /// No entry uses this shortcut any more: close it.
    CloseShortcut {
        /// The shortcut.
        conn: ConnId,
    },
}

impl ToKernel {
    /// The number of the message in the Linux client; `None` for messages that the Linux client does not have.
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
            Self::OpenIngressSvc { .. } => 209,
            Self::Reload => 301,
            Self::IngressEntry(_) | Self::EgressEntry(_) | Self::CloseShortcut { .. } => {
                return None;
            }
        })
    }
}
