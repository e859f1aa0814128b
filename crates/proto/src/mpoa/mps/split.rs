//! Messages between an MPOA server and its daemon.
//!
//! **Purpose.** The server of a router has two halves ([`mps`](super)) that talk by typed messages. The messages are
//! the same in one process and over a socket between two.
//!
//! ```text
//!   router                                            mpsd: one process for each node with a server
//!   Mps: connections, packets of shortcuts   ── ToMpsd, AtmEvent ─────► Mpsd: all that reads a peer's packets
//!   routes, ARP, LE_ARP, signalling          ◄── FromMpsd, AtmRequest ──
//! ```
//!
//! **Objects and owners.** [`Mps`](super::Mps) has the [`Seat`](crate::split::Seat) of the daemon,
//! [`Mpsd`](super::Mpsd) has the caches, the requests and their timers. A question of the daemon to the router has a
//! number of the daemon; the data half gives it another one, so that the answer to an earlier daemon never reaches a
//! later daemon.
//!
//! **Bounds.** The settings of a server are sent one by one before the start, so that each fits a frame.
//!
//! **Standards.** None: the encoding is this project's own, and both ends have the same version.

use super::report::Part;
use super::{Absent, FromRouter, Interface, MpsConfig, RouteResult, ToRouter};
use crate::nhrp::auth;
use crate::split_choice;
use aerostat_wire::AtmAddress;
use std::net::{IpAddr, Ipv4Addr};

/// To the daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToMpsd {
    /// One more interface of the server that is about to start.
    Interface(Interface),
    /// A key of the server that is about to start: see [`MpsConfig::keys`].
    Key {
        /// The address from which the neighbour calls.
        caller: AtmAddress,
        /// The neighbour.
        neighbour: auth::Neighbour,
    },
    /// A next hop server of the server that is about to start: see [`MpsConfig::servers`].
    NextHop {
        /// The address that routes use.
        hop: Ipv4Addr,
        /// Its control address.
        server: AtmAddress,
    },
    /// Start to serve. The interfaces, keys and next hop servers were sent before.
    Start(Box<MpsConfig>),
    /// Release everything, forget all state, and stop.
    Stop,
    /// From the router.
    Router(FromRouter),
    /// The router forwarded the first packet of a flow that starts on the ELAN of an interface.
    Flow {
        /// The interface.
        itf: u32,
        /// Source of the flow.
        source: IpAddr,
        /// Destination of the flow.
        target: IpAddr,
    },
}

/// From the daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromMpsd {
    /// To the router.
    Router(ToRouter),
    /// The flow of [`ToMpsd::Flow`] needs no trigger: a client has asked for its destination already.
    Served {
        /// Source of the flow.
        source: IpAddr,
        /// Destination of the flow.
        target: IpAddr,
    },
    /// A part of a report of the state, for display.
    Shown(Part),
}

split_choice!(RouteResult {
    1 Connected { itf };
    2 Via { itf, next_hop };
    3 Local;
    4 Outside;
    5 Down;
});
split_choice!(Absent { 1 ForNow; 2 Unheard; });
split_choice!(FromRouter {
    1 Associate { itf, mac, atm, tlvs };
    2 Route { query, result, covers };
    3 L2 { query, answer };
    4 RoutesChanged;
    5 NeighbourChanged { itf, ip };
});
split_choice!(ToRouter {
    1 LookupRoute { query, dst };
    2 ResolveL2 { query, itf, ip };
    3 SetTlvs { itf, tlvs };
});
split_choice!(ToMpsd {
    1 Interface(interface);
    2 Key { caller, neighbour };
    3 NextHop { hop, server };
    4 Start(config);
    5 Stop;
    6 Router(event);
    7 Flow { itf, source, target };
});
split_choice!(FromMpsd {
    1 Router(request);
    2 Served { source, target };
    3 Shown(part);
});
