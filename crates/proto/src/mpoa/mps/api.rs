//! Inputs and outputs of a server in a host.

use super::split::{FromMpsd, ToMpsd};
use crate::split::{FromDaemon, ProcessEvent, ToDaemon};
use crate::{AtmEvent, AtmRequest, Duration, Trace};
use aerostat_wire::lane::Tlv;
use aerostat_wire::{AtmAddress, MacAddr};
use std::net::IpAddr;

/// The router's answer about a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteResult {
    /// The destination is on the network of this interface.
    Connected {
        /// The interface.
        itf: u32,
    },
    /// The destination is behind another router.
    Via {
        /// The interface.
        itf: u32,
        /// That router's address.
        next_hop: IpAddr,
    },
    /// The destination is an address of the router itself.
    Local,
    /// The path leads over an interface that is no ELAN.
    Outside,
    /// There is a route, but its interface is no member of its network just now.
    Down,
}

/// How long a neighbour that was there a moment ago may take to come back, and a network that came up a moment ago may
/// take to be complete: as long as clients go on asking by default (MPC-p5).
pub const RETURN: Duration = Duration::from_secs(40);

/// Why a neighbour was not found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absent {
    /// The neighbour was there less than [`RETURN`] ago, or the network came up less than [`RETURN`] ago, or nothing is
    /// known about the neighbour.
    ForNow,
    /// The neighbour has not been heard for longer.
    Unheard,
}

/// MAC address, ATM address of its owner, and the TLVs that came with LE_ARP.
pub type L2Answer = (MacAddr, AtmAddress, Vec<Tlv>);

/// Answers and news of the router. Between the halves of a server questions and answers have the daemon's numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromRouter {
    /// An interface's LAN Emulation client heard TLVs of a device.
    Associate {
        /// The interface.
        itf: u32,
        /// MAC address of the device.
        mac: MacAddr,
        /// ATM address of its LAN Emulation client.
        atm: AtmAddress,
        /// The TLVs.
        tlvs: Vec<Tlv>,
    },
    /// Answer to [`ToRouter::LookupRoute`]; `None` if there is no route.
    Route {
        /// The number from the question.
        query: u32,
        /// The way.
        result: Option<RouteResult>,
        /// The length of the shortest prefix around the address that takes this path as a whole; the full length of the
        /// address, or more, if only the path of the address itself is known.
        covers: u8,
    },
    /// Answer to [`ToRouter::ResolveL2`]; `Err` if ARP or LE_ARP was not answered.
    L2 {
        /// The number from the question.
        query: u32,
        /// The neighbour.
        answer: Result<L2Answer, Absent>,
    },
    /// The routing table changed.
    RoutesChanged,
    /// ARP or LE_ARP found, changed or lost a neighbour.
    NeighbourChanged {
        /// The interface.
        itf: u32,
        /// The neighbour's address.
        ip: IpAddr,
    },
}

impl FromRouter {
    /// The number of the question that this answers.
    pub(super) const fn query_mut(&mut self) -> Option<&mut u32> {
        match self {
            Self::Route { query, .. } | Self::L2 { query, .. } => Some(query),
            Self::Associate { .. } | Self::RoutesChanged | Self::NeighbourChanged { .. } => None,
        }
    }
}

/// Questions and orders to the router.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToRouter {
    /// Question: which path leads to this address?
    LookupRoute {
        /// A number that comes back in the answer.
        query: u32,
        /// The address.
        dst: IpAddr,
    },
    /// Question: who is this neighbour? (ARP, then LE_ARP.)
    ResolveL2 {
        /// A number that comes back in the answer.
        query: u32,
        /// The interface.
        itf: u32,
        /// The neighbour.
        ip: IpAddr,
    },
    /// TLVs that the interface's LAN Emulation client is to register and announce.
    SetTlvs {
        /// The interface.
        itf: u32,
        /// All of them.
        tlvs: Vec<Tlv>,
    },
}

impl ToRouter {
    /// The number of this question.
    pub(super) const fn query_mut(&mut self) -> Option<&mut u32> {
        match self {
            Self::LookupRoute { query, .. } | Self::ResolveL2 { query, .. } => Some(query),
            Self::SetTlvs { .. } => None,
        }
    }
}

/// Input of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input<'a> {
    /// Start serving.
    Start,
    /// Release everything and forget all state.
    Stop,
    /// From the ATM service.
    Atm(AtmEvent<&'a [u8]>),
    /// From the router.
    Router(FromRouter),
    /// The router forwarded this IP packet, which came in on an ELAN. Used only for triggers.
    Routed {
        /// The interface on which it came in.
        itf: u32,
        /// The packet.
        packet: &'a [u8],
    },
    /// A message from the daemon in a process of its own, or an event of the process.
    Process(ProcessEvent<FromDaemon<FromMpsd>>),
}

/// Output of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// To the ATM service.
    Atm(AtmRequest),
    /// To the router.
    Router(ToRouter),
    /// An IP packet from a shortcut that ends here.
    ForwardIp(Vec<u8>),
    /// For the daemon in a process of its own.
    Process(ToDaemon<ToMpsd>),
    /// An observation.
    Trace(Trace),
}
