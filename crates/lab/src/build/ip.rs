//! The configuration of an embedded host's IP stack.

use crate::model::{Host as HostModel, IpRoute};
use aerostat_node::ip::router::StaticRoute;
use std::net::Ipv4Addr;

/// The routes of a router, or of a host and of the embedded hosts behind it.
pub(crate) fn static_routes(routes: &[IpRoute]) -> Vec<StaticRoute> {
    let routes = routes.iter().map(|route| StaticRoute {
        destination: route.to.network,
        prefix: route.to.length,
        next_hop: route.via,
    });
    routes.collect()
}

/// The permanent neighbours of a host, which it never requests.
pub(super) fn static_neighbours(model: &HostModel) -> Vec<(Ipv4Addr, [u8; 6])> {
    let neighbours = model.neighbours.iter();
    neighbours.map(|(address, mac)| (*address, mac.0)).collect()
}
