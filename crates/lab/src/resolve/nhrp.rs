//! NHRP: keys shared by neighbours, registration rights, and the clients on Classical IP subnets.
//!
//! A server's own block has precedence over the lab's, field by field. A router with a `key:` of its own uses it for
//! all neighbours; an entry in `keys:` has precedence over any `key:`.

use super::{Class, Names};
use crate::diag::Diagnostics;
use crate::field::At;
use crate::file::{LabFile, NhrpFile, NhrpKeyFile};
use crate::model::{Host, Lab, Lec, Nhc, NodeKind, Router};
use crate::parameter::with;
use crate::plan;
use crate::units::IpNet;
use aerostat_proto::nhrp::auth::Key;
use aerostat_proto::nhrp::client::Params;
use aerostat_wire::AtmAddress;
use std::collections::BTreeMap;
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
    Some(Key {
        spi: spi?,
        secret: file.secret.value.clone().into_bytes(),
    })
}

/// Parts of a file that make NHRP servers and clients.
const SERVERS: [&str; 6] = [
    "clip",
    "mpoa",
    "routers/*/elans",
    "routers/*/mpoa",
    "hosts/*/elan",
    "hosts/*/gateway",
];

/// The servers and clients of a lab by name.
fn neighbours(lab: &Lab) -> BTreeMap<String, AtmAddress> {
    let named = lab.nodes().filter_map(|(_, node)| {
        let address = match &node.kind {
            NodeKind::Router(router) => router.mpoa.as_ref()?.control,
            NodeKind::Host(host) => host.nhrp.as_ref()?.address,
            _ => return None,
        };
        Some((node.name.clone(), address))
    });
    named.collect()
}

/// The keys of the server `name`, by the control addresses of its neighbours.
fn keys(
    name: &str,
    blocks: &[&NhrpFile],
    servers: &BTreeMap<String, AtmAddress>,
    names: &Names,
    d: &mut Diagnostics,
) -> BTreeMap<AtmAddress, Key> {
    let mut table = BTreeMap::new();
    let shared = blocks.iter().find_map(|block| block.key.as_ref());
    if let Some(shared) = shared.and_then(|file| key(file, d)) {
        let others = servers.iter().filter(|(other, _)| *other != name);
        table.extend(others.map(|(_, address)| (*address, shared.clone())));
    }
    // The lab's keys come first, so that the router's own replace them.
    let single = blocks.iter().rev().flat_map(|block| &block.keys);
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
        let Some(address) = servers.get(&text.value) else {
            let what = format!("{} is no NHRP server or client", text.value);
            d.error(neighbour.at, what).rests_on(SERVERS);
            continue;
        };
        if let Some(key) = key(file, d).filter(|_| text.value != name) {
            table.insert(*address, key);
        }
    }
    table
}

/// The server of a host on a subnet with NHRP: the router of its default route.
fn server_of(lab: &Lab, host: &Host) -> Option<(Ipv4Addr, AtmAddress)> {
    let nhrp = |elan| lab.elan(elan).clip.as_ref().is_some_and(|lis| lis.nhrp);
    let gateway = host.routes.iter().rfind(|route| route.to == IpNet::ALL)?;
    let elan = Some(host.lec().elan).filter(|elan| nhrp(*elan))?;
    let there = |router: &Router| {
        let mut lecs = router.lecs.iter();
        lecs.any(|lec| lec.elan == elan && lec.ip == Some(gateway.via))
    };
    let (.., router) = lab.routers().find(|(_, _, router)| there(router))?;
    Some((gateway.via, router.mpoa.as_ref()?.control))
}

/// Makes the hosts of subnets with NHRP clients of their routers.
fn clients(file: &LabFile, lab: &mut Lab, d: &mut Diagnostics) {
    for (name, section) in &file.hosts.0 {
        let blocks: Vec<&NhrpFile> = [&section.nhrp, &file.nhrp].into_iter().flatten().collect();
        let found = lab.nodes.iter().position(|node| node.name == name.value.0);
        let Some((at, NodeKind::Host(host))) = found.map(|at| (at, &lab.nodes[at].kind)) else {
            continue;
        };
        let server = server_of(lab, host);
        if let (Some(file), None) = (&section.nhrp, server) {
            let at = file.given.iter().map(|(_, at)| at).next();
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
        let shared = blocks.iter().find_map(|block| block.key.as_ref());
        let client = Nhc {
            address: host.lec().address.with_selector(plan::SELECTOR_NHC),
            server,
            key: shared.and_then(|file| key(file, d)),
            params: with(Params::DEFAULT, blocks.iter().map(|block| &block.given)),
        };
        if let NodeKind::Host(host) = &mut lab.nodes[at].kind {
            host.nhrp = Some(client);
        }
    }
}

/// Other servers on the subnets with NHRP of a router.
fn beside(lab: &Lab, own: &Router) -> BTreeMap<Ipv4Addr, AtmAddress> {
    let mut table = BTreeMap::new();
    let nhrp = |lec: &&Lec| lab.elan(lec.elan).clip.as_ref().is_some_and(|lis| lis.nhrp);
    for lec in own.lecs.iter().filter(nhrp) {
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

/// Applies the settings of the file to servers and clients.
pub(super) fn build(file: &LabFile, names: &Names, lab: &mut Lab, d: &mut Diagnostics) {
    clients(file, lab, d);
    let neighbours = neighbours(lab);
    for (name, section) in file.routers.iter().flat_map(|table| &table.0) {
        let name = &name.value.0;
        let blocks: Vec<&NhrpFile> = [&section.nhrp, &file.nhrp].into_iter().flatten().collect();
        let keys = keys(name, &blocks, &neighbours, names, d);
        let register = blocks.iter().find_map(|block| block.register.as_ref());
        let found = lab.nodes.iter().position(|node| node.name == *name);
        let Some((at, NodeKind::Router(router))) = found.map(|at| (at, &lab.nodes[at].kind)) else {
            continue;
        };
        let on_nhrp = |lec: &Lec| lab.elan(lec.elan).clip.as_ref().is_some_and(|lis| lis.nhrp);
        let default = router.lecs.iter().any(on_nhrp);
        let servers = beside(lab, router);
        if let NodeKind::Router(router) = &mut lab.nodes[at].kind
            && let Some(server) = &mut router.mpoa
        {
            server.keys = keys;
            server.servers = servers;
            server.register = register.map_or(default, At::get);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::model::Lab;
    use crate::resolve::tests::lab;
    use std::collections::BTreeMap;

    fn with(nhrp: &str, own: &str) -> String {
        format!(
            "
mpoa: true
nhrp: {nhrp}
switches: {{ s: {{}} }}
lane: {{ on: s, elans: {{ a: {{ subnet: 10.1.0.0/24 }}, b: {{ subnet: 10.2.0.0/24 }} }} }}
routers:
  r1: {{ on: s, elans: {{ a: 10.1.0.1 }}{own} }}
  r2: {{ on: s, elans: {{ a: 10.1.0.2, b: 10.2.0.2 }} }}
  r3: {{ on: s, elans: {{ b: 10.2.0.3 }} }}
  r4: {{ on: s, elans: {{ b: 10.2.0.4 }}, mpoa: false }}
hosts: {{ x: {{ on: s, elan: a, ip: 10.1.0.10 }} }}
"
        )
    }

    /// The secrets that a router shares, by neighbour.
    fn secrets(lab: &Lab, name: &str) -> BTreeMap<String, (u16, String)> {
        let (_, _, router) = lab
            .routers()
            .find(|(_, node, _)| node.name == name)
            .unwrap();
        let keys = router.mpoa.iter().flat_map(|server| &server.keys);
        keys.map(|(address, key)| {
            let of =
                |r: &crate::model::Router| r.mpoa.as_ref().is_some_and(|m| m.control == *address);
            let (_, node, _) = lab.routers().find(|(_, _, r)| of(r)).unwrap();
            let secret = String::from_utf8(key.secret.clone()).unwrap();
            (node.name.clone(), (key.spi, secret))
        })
        .collect()
    }

    #[test]
    fn one_key_for_all_and_others_for_some() {
        let shared = "{ key: { spi: 7, secret: all }, keys: { r3: { spi: 8, secret: three } } }";
        let own = ", nhrp: { register: true, keys: { r2: { spi: 9, secret: two } } }";
        let lab = lab(&with(shared, own));
        let told = |of: &str| {
            let all = secrets(&lab, of).into_iter();
            all.map(|(name, (spi, secret))| format!("{name} {spi} {secret}"))
                .collect::<Vec<_>>()
        };
        assert_eq!(told("r1"), ["r2 9 two", "r3 8 three"]);
        assert_eq!(told("r2"), ["r1 7 all", "r3 8 three"]);
        assert_eq!(told("r3"), ["r1 7 all", "r2 7 all"]);
        let register = |name: &str| {
            let mut routers = lab.routers().filter(|(_, node, _)| node.name == name);
            routers.next().unwrap().2.mpoa.as_ref().unwrap().register
        };
        assert_eq!((register("r1"), register("r2")), (true, false));
    }

    /// Two subnets with NHRP and one without, no MPOA.
    const PLAIN: &str = "
nhrp: { key: { spi: 1, secret: all }, holding: 10min }
switches: { s: {} }
clip:
  a: { subnet: 10.5.0.0/24, server: r1, nhrp: true }
  m: { subnet: 10.7.0.0/24, server: r1, nhrp: true }
  c: { subnet: 10.8.0.0/24, server: r2 }
routers:
  r1: { on: s, elans: { a: 10.5.0.1, m: 10.7.0.1 } }
  r2: { on: s, elans: { m: 10.7.0.2, c: 10.8.0.1 } }
hosts:
  x: { on: s, elan: a, ip: 10.5.0.10, nhrp: { holding: 60s, authoritative: false, prefix: 24 } }
  z: { on: s, elan: c, ip: 10.8.0.10 }
";

    #[test]
    fn members_are_clients_of_their_routers() {
        let lab = lab(PLAIN);
        let server = |name: &str| {
            let mut routers = lab.routers().filter(|(_, node, _)| node.name == name);
            routers.next().unwrap().2.mpoa.clone().unwrap()
        };
        let (r1, r2) = (server("r1"), server("r2"));
        assert!(r1.register && r2.register);
        assert_eq!(
            r1.servers,
            BTreeMap::from([([10, 7, 0, 2].into(), r2.control)])
        );
        assert_eq!(
            r2.servers,
            BTreeMap::from([([10, 7, 0, 1].into(), r1.control)])
        );
        let client = |name: &str| {
            let mut hosts = lab.hosts().filter(|(_, node, _)| node.name == name);
            hosts.next().unwrap().2.nhrp.clone()
        };
        assert_eq!(client("z"), None);
        let x = client("x").unwrap();
        assert_eq!(x.server, ([10, 5, 0, 1].into(), r1.control));
        assert_eq!(x.params.holding, aerostat_proto::Duration::from_secs(60));
        assert_eq!(x.address.selector(), crate::plan::SELECTOR_NHC);
        assert_eq!(x.key, r1.keys.get(&x.address).cloned());
        assert!(x.key.is_some());
        assert_eq!((x.params.authoritative, x.params.prefix), (false, 24));
    }

    #[test]
    fn mistakes_of_clients() {
        for (from, to, says) in [
            (
                "ip: 10.8.0.10",
                "ip: 10.8.0.10, nhrp: { holding: 9s }",
                "z has no NHRP server",
            ),
            ("holding: 60s", "holding: 19h", "holding is 1s to 65535s"),
            ("holding: 10min", "prefix: 7", "prefix is 8 to 32"),
            ("holding: 10min", "holding: 0s", "holding is 1s to 65535s"),
        ] {
            let text = PLAIN.replace(from, to).replace(
                "nhrp: { holding: 60s, authoritative: false, prefix: 24 }",
                "",
            );
            let text = if to.contains("19h") {
                PLAIN.replace(from, to)
            } else {
                text
            };
            let error = crate::parse("t.atm.yml", &text.replace(", }", " }"), &[])
                .expect_err(to)
                .to_string();
            assert!(error.contains(says), "{to}: {error}");
            assert_eq!(error.matches("error:").count(), 1, "{to}: {error}");
        }
    }

    #[test]
    fn a_value_out_of_its_range_is_told_where_nobody_uses_it_too() {
        let text = format!(
            "nhrp: {{ holding: 0s, prefix: 33 }}\n{}",
            crate::resolve::tests::SMALL
        );
        let error = crate::parse("t.atm.yml", &text, &[])
            .expect_err("mistakes")
            .to_string();
        assert!(error.contains("holding is 1s to 65535s"), "{error}");
        assert!(error.contains("prefix is 8 to 32"), "{error}");
        assert_eq!(error.matches("error:").count(), 2, "{error}");
    }

    #[test]
    fn mistakes() {
        for (nhrp, says) in [
            ("{ key: { spi: 65536, secret: x } }", "from 0 to 65535"),
            ("{ key: { spi: 1, secret: '' } }", "at least one character"),
            ("{ key: { spi: 1 } }", "'secret' is missing"),
            (
                "{ keys: { r9: { spi: 1, secret: x } } }",
                "no router or host 'r9'",
            ),
            (
                "{ keys: { r4: { spi: 1, secret: x } } }",
                "is no NHRP server or client",
            ),
            ("{ kex: 1 }", "unknown key"),
        ] {
            let found = crate::parse("t.atm.yml", &with(nhrp, ""), &[]);
            let error = found.expect_err(nhrp).to_string();
            assert!(error.contains(says), "{nhrp}: {error}");
            assert_eq!(error.matches("error:").count(), 1, "{nhrp}: {error}");
        }
    }
}
