//! IP routing tables: the routes of the file, and computed ones for all other subnets.
//!
//! A router's computed route has the fewest routers (among equal ones, the first in the file). A host has one default
//! route: to its `gateway`, or to the first router on its ELAN.

use super::stage::Joining;
use crate::diag::Diagnostics;
use crate::field::{At, Table};
use crate::file::{Ip, LabFile, Net};
use crate::model::{IpRoute, Lab, Lec, NodeId, NodeKind};
use crate::units::IpNet;
use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::Ipv4Addr;

/// Parts of a file that make an address on a subnet one of a router, in the lab or outside.
fn routers_on(lab: &Lab, lec: &Lec) -> [String; 4] {
    let elan = &lab.elan(lec.elan).name;
    [
        format!("routers/*/elans/{elan}"),
        format!("lane/elans/{elan}/lecs"),
        format!("lane/elans/{elan}/les"),
        "links/*/1/.".to_owned(),
    ]
}

/// Parts of a file that make the routes between hosts.
pub(super) const ROUTES: [&str; 9] = [
    "hosts/*/elans",
    "links/*/.",
    "lane/elans",
    "clip",
    "lines",
    "routers/*/elans",
    "routers/*/routes",
    "hosts/*/gateway",
    "hosts/*/routes",
];

/// Fills the routing tables of routers and hosts.
pub(super) fn route(file: &LabFile, lab: &mut Joining<'_>, d: &mut Diagnostics) {
    let routers: Vec<NodeId> = lab.routers().map(|(id, _, _)| id).collect();
    let files = file.routers.iter().flat_map(|table| &table.0);
    let members = members(lab);
    for (&id, (name, section)) in routers.iter().zip(files) {
        let mut routes = given(lab, &members, id, section.routes.as_ref(), d);
        let lab_now: &Lab = lab;
        let computed = LazyCell::new(|| computed(lab_now, &members, id));
        let mut unknown = Vec::new();
        let networks = lab
            .elans()
            .filter(|(elan, _)| lab.network_of(*elan) == *elan);
        for (_, elan) in networks {
            let mut lecs = lab.node(id).lecs().iter();
            let own = lecs.any(|lec| lab.elan(lec.elan).subnet == elan.subnet);
            if own || routes.iter().any(|route| covers(route.to, elan.subnet)) {
                continue;
            }
            match computed.get(&elan.subnet) {
                Some(route) => routes.push(*route),
                None => unknown.push(format!("{} ({elan})", elan.subnet)),
            }
        }
        if !unknown.is_empty() {
            let (router, subnets) = (&name.value.0, aerostat_wire::some_of(&unknown));
            d.warning(
                name.at,
                format!("router {router} has no route to {subnets}"),
            )
            .hint("put it on a common network with a router that leads there, or add 'routes:'");
        }
        if let NodeKind::Router(router) = &mut lab.nodes_mut()[id.0].kind {
            router.routes = routes;
        }
    }
    let hosts: Vec<NodeId> = lab.hosts().map(|(id, _, _)| id).collect();
    for (&id, (_, section)) in hosts.iter().zip(&file.hosts.0) {
        let mut routes = given(lab, &members, id, section.routes.as_ref(), d);
        if let Some((via, lec)) = gateway(lab, &members, id, section.gateway.as_ref(), d) {
            routes.push(IpRoute {
                to: IpNet::ALL,
                via,
                lec,
            });
        }
        let of_stations = of_stations(lab, &members, id, &routes);
        if let NodeKind::Host(host) = &mut lab.nodes_mut()[id.0].kind {
            for (station, routes) in host.bridge.iter_mut().zip(of_stations) {
                station.routes = routes;
            }
            host.routes = routes;
        }
    }
}

/// The routes of the stations behind a host that has `routes`: the same in the VLAN of the host, and the default router
/// of its ELAN in another one.
fn of_stations(lab: &Lab, members: &Members, id: NodeId, routes: &[IpRoute]) -> Vec<Vec<IpRoute>> {
    let NodeKind::Host(host) = &lab.node(id).kind else {
        return Vec::new();
    };
    let stations = host.bridge.iter().map(|station| {
        let mut others = host.lecs.iter().skip(1);
        let Some(lec) = others.find(|lec| lec.elan == station.elan) else {
            return routes.to_vec();
        };
        let via = neighbours(members, lec, id).map(|(_, ip)| ip).next();
        let (to, lec) = (IpNet::ALL, 0);
        via.map(|via| IpRoute { to, via, lec })
            .into_iter()
            .collect()
    });
    stations.collect()
}

/// True if `wide` holds all of `narrow`.
fn covers(wide: IpNet, narrow: IpNet) -> bool {
    wide.length <= narrow.length && wide.contains(narrow.network)
}

/// Routers on the ELAN of `lec`, except `but`, with their addresses there.
fn neighbours<'a>(
    members: &'a Members,
    lec: &Lec,
    but: NodeId,
) -> impl Iterator<Item = (NodeId, Ipv4Addr)> + use<'a> {
    let all = members.get(lec.elan.0).into_iter().flatten();
    all.copied().filter(move |(id, _)| *id != but)
}

/// The routes of the file, each checked against the interfaces of the node.
fn given(
    lab: &Lab,
    members: &Members,
    id: NodeId,
    table: Option<&Table<Net, At<Ip>>>,
    d: &mut Diagnostics,
) -> Vec<IpRoute> {
    let node = lab.node(id);
    let mut routes = Vec::new();
    for (to, via) in table.into_iter().flat_map(|table| &table.0) {
        let hop = via.value.0;
        let on = |lec: &&Lec| lab.elan(lec.elan).subnet.contains(hop);
        let Some(lec) = node.lecs().iter().find(on) else {
            d.error(
                via.at,
                format!("next hop {hop} is on no subnet of {}", node.name),
            )
            .rests_on([&*format!("routers/{}/elans", node.name)]);
            continue;
        };
        let may_be_outside = lab.is_open(lab.elan(lec.elan));
        if !may_be_outside && !neighbours(members, lec, id).any(|(_, ip)| ip == hop) {
            let routers: Vec<String> = neighbours(members, lec, id)
                .map(|(_, ip)| ip.to_string())
                .collect();
            d.error(via.at, format!("next hop {hop} is no router"))
                .suggest("", routers.iter().map(String::as_str))
                .rests_on(routers_on(lab, lec).iter().map(String::as_str));
            continue;
        }
        routes.push(IpRoute {
            to: to.value.0,
            via: hop,
            lec: usize::from(lec.index),
        });
    }
    routes
}

/// The host's default router, and the number of its interface there.
fn gateway(
    lab: &Lab,
    members: &Members,
    id: NodeId,
    wanted: Option<&At<Ip>>,
    d: &mut Diagnostics,
) -> Option<(Ipv4Addr, usize)> {
    let lecs = lab.node(id).lecs();
    let of = |lec| neighbours(members, lec, id).map(|(_, ip)| ip);
    let Some(wanted) = wanted else {
        // A bridge has no IP side in its further VLANs.
        let own = lecs.iter().filter(|lec| lec.ip.is_some());
        let mut all = own.flat_map(|lec| of(lec).map(|ip| (ip, usize::from(lec.index))));
        return all.next();
    };
    let ip = wanted.value.0;
    let on = |lec: &&Lec| lec.ip.is_some() && lab.elan(lec.elan).subnet.contains(ip);
    let lec = lecs.iter().find(on).or(lecs.first())?;
    let routers: Vec<Ipv4Addr> = of(lec).collect();
    let elan = lab.elan(lec.elan);
    let may_be_outside = lab.is_open(elan) && elan.subnet.contains(ip) && Some(ip) != lec.ip;
    if !routers.contains(&ip) && !may_be_outside {
        let known: Vec<String> = routers.iter().map(Ipv4Addr::to_string).collect();
        d.error(wanted.at, format!("gateway {ip} is no router on {elan}"))
            .suggest("", known.iter().map(String::as_str))
            .rests_on(routers_on(lab, lec).iter().map(String::as_str));
    }
    Some((ip, usize::from(lec.index)))
}

/// By ELAN: its routers with their addresses there.
type Members = Vec<Vec<(NodeId, Ipv4Addr)>>;

fn members(lab: &Lab) -> Members {
    let mut members = vec![Vec::new(); lab.elans.len()];
    for (id, _, router) in lab.routers() {
        for lec in &router.lecs {
            if let Some(on) = members.get_mut(lab.network_of(lec.elan).0) {
                on.extend(lec.ip.map(|ip| (id, ip)));
            }
        }
    }
    for (part, _) in lab.elans() {
        let network = lab.network_of(part);
        if network != part {
            members[part.0] = members[network.0].clone();
        }
    }
    members
}

/// For every subnet that `from` can reach over other routers: the route over the fewest of them.
fn computed(lab: &Lab, members: &Members, from: NodeId) -> BTreeMap<IpNet, IpRoute> {
    let mut found: BTreeMap<IpNet, IpRoute> = BTreeMap::new();
    let mut seen = BTreeSet::from([from]);
    // All routers of an ELAN are seen once it has been crossed.
    let mut crossed = vec![false; lab.elans.len()];
    let mut queue = VecDeque::from([(from, None::<(Ipv4Addr, usize)>)]);
    while let Some((at, first)) = queue.pop_front() {
        for lec in lab.node(at).lecs() {
            if let Some((via, lec_index)) = first {
                let to = lab.elan(lec.elan).subnet;
                found.entry(to).or_insert(IpRoute {
                    to,
                    via,
                    lec: lec_index,
                });
            }
            let elan = lec.elan.0;
            if std::mem::replace(&mut crossed[elan], true) {
                continue;
            }
            for &(next, ip) in &members[elan] {
                if seen.insert(next) {
                    queue.push_back((next, first.or(Some((ip, usize::from(lec.index))))));
                }
            }
        }
    }
    found
}

/// One step of a packet through a network: the interface that sends it, and the one that gets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// Node and its interface.
    pub(crate) from: (NodeId, usize),
    /// Next node and its interface.
    pub(crate) to: (NodeId, usize),
}

/// The node and interface that have an IP address, or that bridge to the station that has the address.
pub(crate) type Owners = BTreeMap<Ipv4Addr, (NodeId, usize)>;

/// The owners of all IP addresses of the lab; of several owners the first.
pub(crate) fn owners(lab: &Lab) -> Owners {
    let mut owners = Owners::new();
    for (id, node) in lab.nodes() {
        for (itf, lec) in node.lecs().iter().enumerate() {
            if let Some(ip) = lec.ip {
                owners.entry(ip).or_insert((id, itf));
            }
        }
        if let NodeKind::Host(host) = &node.kind {
            for station in &host.bridge {
                let itf = host.lecs.iter().position(|lec| lec.elan == station.elan);
                owners.entry(station.ip).or_insert((id, itf.unwrap_or(0)));
            }
        }
    }
    owners
}

/// The path of a packet from `from`, or a station behind it, to the address `to` of a node, or where the path ends;
/// `owners` are [`owners`] of the lab.
///
/// # Errors
/// The name of the node that has no route, or of the node where the packet enters a loop.
pub(crate) fn trace(
    lab: &Lab,
    owners: &Owners,
    (from, behind): (NodeId, Option<usize>),
    to: Ipv4Addr,
) -> Result<Vec<Step>, String> {
    let mut way = Vec::new();
    let mut at = from;
    let first = lab.client_of((from, behind));
    for _ in 0..=lab.nodes.len() {
        let node = lab.node(at);
        let stuck = || node.name.clone();
        let on = |ip: Ipv4Addr| {
            let mut lecs = node.lecs().iter();
            lecs.position(|lec| {
                // A station has one subnet, that of its VLAN; a bridge has no IP side in its further VLANs.
                let other = at == from && first.is_some_and(|own| own.elan != lec.elan);
                let apart = behind.is_some() || lec.ip.is_none();
                let host = matches!(node.kind, NodeKind::Host(_));
                !(host && other && apart) && lab.elan(lec.elan).subnet.contains(ip)
            })
        };
        let hop = if on(to).is_some() {
            to
        } else {
            let routes = match &node.kind {
                NodeKind::Host(host) => match behind.and_then(|station| host.bridge.get(station)) {
                    Some(station) if at == from => &station.routes,
                    _ => &host.routes,
                },
                NodeKind::Router(router) => &router.routes,
                _ => return Err(stuck()),
            };
            routes
                .iter()
                .filter(|route| route.to.contains(to))
                .max_by_key(|route| route.to.length)
                .map(|route| route.via)
                .ok_or_else(stuck)?
        };
        let next = *owners.get(&hop).ok_or_else(stuck)?;
        let from = (at, on(hop).ok_or_else(stuck)?);
        way.push(Step { from, to: next });
        at = next.0;
        if hop == to {
            return Ok(way);
        }
    }
    Err(lab.node(at).name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resolve::tests::{SMALL, lab};

    fn way(lab: &Lab, from: &str, to: &str) -> Result<Vec<String>, String> {
        let ip = lab.node(lab.find(to).unwrap()).lecs()[0].own_ip();
        let from = lab.find(from).unwrap();
        let steps = trace(lab, &owners(lab), (from, None), ip)?;
        let path = steps.iter().map(|step| step.to.0);
        let path = std::iter::once(from).chain(path);
        Ok(path.map(|id| lab.node(id).name.clone()).collect())
    }

    #[test]
    fn one_router() {
        let lab = lab(SMALL);
        assert_eq!(way(&lab, "x", "y").unwrap(), ["x", "r", "y"]);
    }

    /// If the neighbours of each router were searched again for each router, this would take minutes.
    #[test]
    fn thousands_of_routers_on_one_subnet_have_routes_at_once() {
        let address = |n: usize| format!("10.1.{}.{}", n / 200 + 1, n % 200 + 1);
        let more: String = (0..2000)
            .map(|n| format!(", q{n}: {{ on: s1, elans: {{ a: {} }} }}", address(n)))
            .collect();
        let text = SMALL
            .replace("10.1.0.0/24", "10.1.0.0/16")
            .replace("b: 10.2.0.1 } }", &format!("b: 10.2.0.1 }} }}{more}"));
        let lab = lab(&text);
        let routes = lab.routers().map(|(_, _, router)| router.routes.clone());
        let routes: Vec<Vec<IpRoute>> = routes.collect();
        assert_eq!(routes.len(), 2001);
        assert!(routes[0].is_empty());
        let over_r =
            |routes: &Vec<IpRoute>| routes.len() == 1 && routes[0].via.to_string() == "10.1.0.1";
        assert!(routes[1..].iter().all(over_r));
    }

    #[test]
    fn a_chain_of_routers() {
        let text = SMALL
            .replace("b: { subnet: 10.2.0.0/24 }", "b: { subnet: 10.2.0.0/24 }, m: { subnet: 10.8.0.0/24 }, n: { subnet: 10.9.0.0/24 }")
            .replace(
                "routers: { r: { on: s2, elans: { a: 10.1.0.1, b: 10.2.0.1 } } }",
                "routers:\n  r1: { on: s1, elans: { a: 10.1.0.1, m: 10.8.0.1 } }\n  r2: { on: s1, elans: { n: 10.9.0.1, m: 10.8.0.2 } }\n  r3: { on: s2, elans: { b: 10.2.0.1, n: 10.9.0.2 } }",
            );
        let chain = lab(&text);
        assert_eq!(way(&chain, "x", "y").unwrap(), ["x", "r1", "r2", "r3", "y"]);
        assert_eq!(way(&chain, "y", "x").unwrap(), ["y", "r3", "r2", "r1", "x"]);
        // A route of the file has precedence over a computed one: here it sends the packet back.
        let circle = lab(&text.replace(
            "m: 10.8.0.2 } }",
            "m: 10.8.0.2 }, routes: { 10.2.0.0/24: 10.8.0.1 } }",
        ));
        assert!(way(&circle, "x", "y").is_err());
    }
}
