//! NHRP: keys shared by neighbours, registration rights, and the clients on Classical IP subnets.
//!
//! A node's own block has precedence over the lab's, field by field. A node with a `key:` of its own uses it for all
//! neighbours; an entry in `keys:` has precedence over any `key:`. Neighbours are a server, and the servers and clients
//! on its ELANs and subnets: they alone call each other's control addresses.
//!
//! With `unsigned: true`, a `key:` is for the neighbours to which the lab gives one, too: those without one are obeyed
//! without signatures, and get none. A neighbour that has a key must use it, also one that is named in `keys:`. So no
//! neighbour gets around a key by leaving the signature out.

use super::stage::Joining;
use super::{Class, Names};
use crate::diag::Diagnostics;
use crate::field::At;
use crate::file::{LabFile, NhrpFile, NhrpKeyFile};
use crate::model::{ElanId, Host, Lab, Lec, Nhc, NodeKind, Router};
use crate::parameter::with;
use crate::plan;
use crate::units::IpNet;
use aerostat_proto::nhrp::auth::{Key, Keys, Neighbour};
use aerostat_proto::nhrp::client::Params;
use aerostat_wire::AtmAddress;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// A key, if it is valid. The lab's own key is read once per router, but its mistakes are reported once.
fn key(file: &NhrpKeyFile, d: &mut Diagnostics) -> Option<Key> {
    let told = |at, d: &Diagnostics| d.iter().any(|finding| finding.at == at);
    let spi = u16::try_from(file.spi.value).ok();
    if spi.is_none() && !told(file.spi.at, d) {
        d.error(
            file.spi.at,
            "a security parameter index is a number from 0 to 65535",
        );
    }
    if file.secret.value.is_empty() {
        if !told(file.secret.at, d) {
            d.error(file.secret.at, "a secret has at least one character");
        }
        return None;
    }
    let clear_text = file.clear_text.as_ref().is_some_and(|one| one.value);
    if clear_text {
        if spi != Some(1) && !told(file.spi.at, d) {
            d.error(
                file.spi.at,
                "a secret in clear text has the security parameter index 1",
            )
            .hint("spi: 1 is that of Cisco's routers");
        }
        if file.secret.value.len() > CLEAR_TEXT && !told(file.secret.at, d) {
            let text = format!("a secret in clear text has at most {CLEAR_TEXT} characters");
            d.error(file.secret.at, text);
        }
    }
    Some(Key {
        spi: spi?,
        secret: file.secret.value.clone().into_bytes(),
        clear_text,
    })
}

/// Longest secret in clear text. Source: FRR's `nhrpd` (`NHRP_CISCO_PASS_LEN`), as IOS.
const CLEAR_TEXT: usize = 8;

/// Parts of a file that make NHRP servers and clients.
const SERVERS: [&str; 6] = [
    "clip",
    "mpoa",
    "routers/*/elans",
    "routers/*/mpoa",
    "hosts/*/elan",
    "hosts/*/gateway",
];

/// A server, or a client of NHRP or MPOA.
struct Station {
    /// Its node.
    node: usize,
    /// Control address.
    address: AtmAddress,
    /// The address in its signatures: that of its first interface. A bridge without an address has none.
    signs_as: Ipv4Addr,
    /// Its ELANs and subnets.
    elans: Vec<ElanId>,
    role: Part,
}

/// Role of a station.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Server,
    Mpc,
    Nhc,
}

/// The stations of a lab, in the order of the nodes.
struct Stations {
    all: Vec<Station>,
    /// Places in `all` by ELAN.
    on: BTreeMap<ElanId, Vec<usize>>,
}

impl Stations {
    fn of(lab: &Lab) -> Self {
        let mut all = Vec::new();
        for (node, known) in lab.nodes.iter().enumerate() {
            let mut add = |role, address: AtmAddress, lecs: Vec<&Lec>| {
                let ip = lecs.iter().find_map(|lec| lec.ip);
                all.push(Station {
                    node,
                    address,
                    signs_as: ip.unwrap_or(Ipv4Addr::UNSPECIFIED),
                    elans: lecs.iter().map(|lec| lec.elan).collect(),
                    role,
                });
            };
            let lane = |lec: &&Lec| lab.elan(lec.elan).is_lane();
            match &known.kind {
                NodeKind::Router(router) => {
                    let lecs = router
                        .lecs
                        .iter()
                        .filter(|lec| lane(lec) || on_nhrp(lab, lec));
                    if let Some(server) = &router.mpoa {
                        add(Part::Server, server.control, lecs.collect());
                    }
                }
                NodeKind::Host(host) => {
                    if let Some(client) = &host.mpoa {
                        add(
                            Part::Mpc,
                            client.control,
                            host.lecs.iter().filter(lane).collect(),
                        );
                    }
                    if let Some(client) = &host.nhrp {
                        add(Part::Nhc, client.address, vec![host.lec()]);
                    }
                }
                _ => {}
            }
        }
        let mut on: BTreeMap<ElanId, Vec<usize>> = BTreeMap::new();
        for (place, station) in all.iter().enumerate() {
            for elan in &station.elans {
                on.entry(*elan).or_default().push(place);
            }
        }
        Self { all, on }
    }

    /// The stations of a node.
    fn at(&self, node: Option<usize>) -> &[Station] {
        let place = |bound: usize| self.all.partition_point(|station| station.node < bound);
        node.map_or(&[], |node| &self.all[place(node)..place(node + 1)])
    }

    /// Neighbours of a station: a server with all on its ELANs, a client with the servers there.
    fn neighbours<'a>(&'a self, of: &'a Station) -> impl Iterator<Item = &'a Station> {
        let near = of
            .elans
            .iter()
            .filter_map(|elan| self.on.get(elan))
            .flatten();
        let near = near.map(|place| &self.all[*place]);
        near.filter(move |other| {
            other.node != of.node && (of.role == Part::Server || other.role == Part::Server)
        })
    }
}

/// The blocks of the file by node: the node's own one first, then that of the lab.
struct Blocks<'a> {
    of: BTreeMap<usize, Vec<&'a NhrpFile>>,
    places: &'a Places,
}

impl<'a> Blocks<'a> {
    fn new(file: &'a LabFile, stations: &Stations, places: &'a Places) -> Self {
        let routers = file.routers.iter().flat_map(|table| &table.0);
        let routers = routers.map(|(name, section)| (&name.value.0, &section.nhrp));
        let hosts = file.hosts.0.iter();
        let hosts = hosts.map(|(name, section)| (&name.value.0, &section.nhrp));
        let mut of: BTreeMap<usize, Vec<&NhrpFile>> = BTreeMap::new();
        for (name, block) in routers.chain(hosts) {
            if let Some(node) = places.get(name) {
                of.entry(*node).or_default().extend(block);
            }
        }
        for station in &stations.all {
            of.entry(station.node).or_default();
        }
        for blocks in of.values_mut() {
            blocks.extend(&file.nhrp);
        }
        Self { of, places }
    }

    fn of(&self, node: usize) -> &[&'a NhrpFile] {
        self.of.get(&node).map_or(&[], Vec::as_slice)
    }

    /// True if the node `own` names the node `other` in `keys:`.
    fn names(&self, own: usize, other: usize) -> bool {
        let tables = self.of(own).iter().flat_map(|block| &block.keys);
        let mut names = tables.flat_map(|table| table.0.iter().map(|(name, _)| &name.value.0));
        names.any(|name| self.places.get(name) == Some(&other))
    }

    /// True if the node `own` has a key for the node `other`.
    fn has_key(&self, own: usize, other: usize) -> bool {
        self.of(own).iter().any(|block| block.key.is_some()) || self.names(own, other)
    }
}

/// The keys of the station `of`.
fn keys(
    of: &Station,
    blocks: &Blocks<'_>,
    (stations, names): (&Stations, &Names),
    d: &mut Diagnostics,
) -> Keys {
    let mut table = BTreeMap::new();
    let own = blocks.of(of.node);
    let unsigned = own.iter().find_map(|block| block.unsigned.as_ref());
    let unsigned = unsigned.map(At::get);
    let shared = own.iter().find_map(|block| block.key.as_ref());
    let shared = shared.and_then(|file| key(file, d));
    let with = |other: &Station, key: &Key| {
        let (key, signs_as) = (key.clone(), other.signs_as);
        (other.address, Neighbour { key, signs_as })
    };
    if let Some(shared) = &shared {
        let signs =
            |other: &&Station| unsigned != Some(true) || blocks.has_key(other.node, of.node);
        let all = stations.neighbours(of).filter(signs);
        table.extend(all.map(|other| with(other, shared)));
    }
    // The lab's keys come first, so that the station's own replace them.
    let single = own.iter().rev().flat_map(|block| &block.keys);
    for (neighbour, file) in single.flat_map(|table| &table.0) {
        let text = At {
            value: neighbour.value.0.clone(),
            at: neighbour.at,
        };
        let told = d.iter().any(|finding| finding.at == neighbour.at);
        if told
            || names
                .find(&text, &[Class::Router, Class::Host], "a router or host", d)
                .is_none()
        {
            continue;
        }
        let others = stations.at(blocks.places.get(&text.value).copied());
        if others.is_empty() {
            let what = format!("{} is no NHRP server or client", text.value);
            d.error(neighbour.at, what).rests_on(SERVERS);
            continue;
        }
        let others = others.iter().filter(|other| other.node != of.node);
        if let Some(key) = key(file, d) {
            table.extend(others.map(|other| with(other, &key)));
        }
    }
    let keyless = table.is_empty() && shared.is_none();
    Keys {
        signs_as: of.signs_as,
        neighbours: table,
        shortcuts: shared,
        unsigned: unsigned.unwrap_or(keyless),
    }
}

/// The keys of a station that has some.
fn keys_of<'a>(lab: &'a Lab, station: &Station) -> Option<&'a Keys> {
    match (&lab.nodes[station.node].kind, station.role) {
        (NodeKind::Router(router), _) => router.mpoa.as_ref().map(|server| &server.keys),
        (NodeKind::Host(host), Part::Mpc) => host.mpoa.as_ref().map(|client| &client.keys),
        (NodeKind::Host(host), _) => host.nhrp.as_ref().map(|client| &client.keys),
        _ => None,
    }
}

/// Warns of servers and their neighbours that have different keys: they refuse each other's messages.
fn strangers(
    file: &LabFile,
    lab: &Lab,
    (stations, blocks): (&Stations, &Blocks<'_>),
    d: &mut Diagnostics,
) {
    let servers = stations.all.iter().filter(|one| one.role == Part::Server);
    for server in servers {
        let Some(own) = keys_of(lab, server) else {
            continue;
        };
        let agree = |other: &Station| {
            let theirs = keys_of(lab, other)?;
            let key = own.neighbours.get(&other.address).map(|known| &known.key);
            let same = key
                == theirs
                    .neighbours
                    .get(&server.address)
                    .map(|known| &known.key);
            Some(same && (key.is_some() || (own.unsigned && theirs.unsigned)))
        };
        // Of two servers, the first one is told of.
        let told = |other: &&Station| other.role != Part::Server || other.node > server.node;
        let others = stations.neighbours(server).filter(told);
        let strange: Vec<&Station> = (others.filter(|other| agree(other) == Some(false))).collect();
        if strange.is_empty() {
            continue;
        }
        let names = strange.iter().map(|other| &*lab.nodes[other.node].name);
        let names: BTreeSet<&str> = names.collect();
        let would_obey = |own: &Station, other: &Station| {
            !blocks.has_key(other.node, own.node) && !blocks.names(own.node, other.node)
        };
        let leniency_helps =
            (strange.iter()).all(|other| would_obey(server, other) || would_obey(other, server));
        let name = &lab.nodes[server.node].name;
        let section = file.routers.iter().flat_map(|table| &table.0);
        let mut section = section.filter(|(known, _)| known.value.0 == *name);
        let Some((at, section)) = section.next() else {
            continue;
        };
        let block = section.nhrp.as_ref().or(file.nhrp.as_ref());
        let at = block.map_or(at.at, |block| block.place);
        let text = format!(
            "{name} shares no key with {}: they refuse each other's messages of NHRP and MPOA",
            aerostat_wire::some_of(&names.iter().collect::<Vec<_>>())
        );
        d.warning(at, text).hint(match leniency_helps {
            true => "give both the same key, or let those with keys obey others: 'nhrp: { unsigned: true }'",
            false => "give both the same key",
        });
    }
}

/// True for an interface on a Classical IP subnet with NHRP.
fn on_nhrp(lab: &Lab, lec: &Lec) -> bool {
    lab.elan(lec.elan).clip.as_ref().is_some_and(|lis| lis.nhrp)
}

/// The server of a host on a subnet with NHRP: the router of its default route.
fn server_of(lab: &Lab, host: &Host) -> Option<(Ipv4Addr, AtmAddress)> {
    let gateway = host.routes.iter().rfind(|route| route.to == IpNet::ALL)?;
    let elan = host.lec().elan;
    if !on_nhrp(lab, host.lec()) {
        return None;
    }
    let there = |router: &Router| {
        let mut lecs = router.lecs.iter();
        lecs.any(|lec| lec.elan == elan && lec.ip == Some(gateway.via))
    };
    let (.., router) = lab.routers().find(|(_, _, router)| there(router))?;
    Some((gateway.via, router.mpoa.as_ref()?.control))
}

/// Makes the hosts of subnets with NHRP clients of their routers.
fn clients(file: &LabFile, places: &Places, lab: &mut Joining<'_>, d: &mut Diagnostics) {
    for (name, section) in &file.hosts.0 {
        let blocks: Vec<&NhrpFile> = [&section.nhrp, &file.nhrp].into_iter().flatten().collect();
        let found = places.get(&name.value.0).copied();
        let Some((at, NodeKind::Host(host))) = found.map(|at| (at, &lab.nodes[at].kind)) else {
            continue;
        };
        let server = server_of(lab, host);
        // A client of MPOA has use for keys alone.
        let useful =
            |file: &NhrpFile| host.mpoa.is_some() && file.given.parameters().next().is_none();
        if let (Some(file), None) = (section.nhrp.as_ref().filter(|file| !useful(file)), server) {
            let at = file.given.parameters().map(|(_, at)| at).next();
            let at = at.or(file.key.as_ref().map(|key| key.spi.at));
            d.error(
                at.unwrap_or(name.at),
                format!("{} has no NHRP server", name.value.0),
            )
            .hint("give its Classical IP subnet 'nhrp: true' and a router in this lab")
            .rests_on(SERVERS)
            .rests_in(section.place, ["elan", "gateway", "routes", "nhrp"]);
        }
        let Some(server) = server else {
            continue;
        };
        let client = Nhc {
            address: host.lec().address.with_selector(plan::SELECTOR_NHC),
            server,
            keys: Keys::default(),
            params: with(Params::DEFAULT, blocks.iter().map(|block| &block.given)),
        };
        if let NodeKind::Host(host) = &mut lab.nodes_mut()[at].kind {
            host.nhrp = Some(client);
        }
    }
}

/// Other servers on the subnets with NHRP of a router.
fn beside(lab: &Lab, own: &Router) -> BTreeMap<Ipv4Addr, AtmAddress> {
    let mut table = BTreeMap::new();
    for lec in own.lecs.iter().filter(|lec| on_nhrp(lab, lec)) {
        for (.., other) in lab.routers() {
            let there = other
                .lecs
                .iter()
                .filter(|l| l.elan == lec.elan && l.ip != lec.ip);
            let control = other.mpoa.as_ref().map(|server| server.control);
            table.extend(there.filter_map(|l| Some((l.ip?, control?))));
        }
    }
    table
}

/// Places of nodes in the lab, by name.
type Places = BTreeMap<String, usize>;

/// Applies the settings of the file to servers and clients.
pub(super) fn build(file: &LabFile, names: &Names, lab: &mut Joining<'_>, d: &mut Diagnostics) {
    let places = lab.nodes.iter().enumerate();
    let places: Places = places.map(|(at, node)| (node.name.clone(), at)).collect();
    clients(file, &places, lab, d);
    let stations = Stations::of(lab);
    let blocks = Blocks::new(file, &stations, &places);
    for station in &stations.all {
        let keys = keys(station, &blocks, (&stations, names), d);
        let mut own = blocks.of(station.node).iter();
        let register = own.find_map(|block| block.register.as_ref());
        let servers = match &lab.nodes[station.node].kind {
            NodeKind::Router(router) => beside(lab, router),
            _ => BTreeMap::new(),
        };
        let default = serves_a_subnet(lab, station);
        match &mut lab.nodes_mut()[station.node].kind {
            NodeKind::Router(router) => {
                if let Some(server) = &mut router.mpoa {
                    (server.keys, server.servers) = (keys, servers);
                    server.register = register.map_or(default, At::get);
                }
            }
            NodeKind::Host(host) => match station.role {
                Part::Nhc => host
                    .nhrp
                    .iter_mut()
                    .for_each(|client| client.keys = keys.clone()),
                _ => host
                    .mpoa
                    .iter_mut()
                    .for_each(|client| client.keys = keys.clone()),
            },
            _ => {}
        }
    }
    strangers(file, lab, (&stations, &blocks), d);
}

/// True for the server of a Classical IP subnet with NHRP.
fn serves_a_subnet(lab: &Lab, station: &Station) -> bool {
    let mut elans = station.elans.iter();
    elans.any(|elan| lab.elan(*elan).clip.is_some())
}

#[cfg(test)]
mod tests;
