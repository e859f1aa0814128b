//! NHRP: keys that neighbours share, and who may register.
//!
//! A server's own block comes before the lab's, field by field: a router with a `key:` of its own has that one for all
//! neighbours, and an entry in `keys:` before any `key:`.

use super::{Class, Names};
use crate::diag::Diagnostics;
use crate::field::At;
use crate::file::{LabFile, NhrpFile, NhrpKeyFile};
use crate::model::{Lab, NodeKind};
use aerostat_proto::nhrp::auth::Key;
use aerostat_wire::AtmAddress;
use std::collections::BTreeMap;

/// A key, if it can be one. The lab's own is read once per router, but its mistakes are told once.
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

/// The servers of a lab by name.
fn servers(lab: &Lab) -> BTreeMap<String, AtmAddress> {
    let named = lab.routers().filter_map(|(_, node, router)| {
        let server = router.mpoa.as_ref()?;
        Some((node.name.clone(), server.control))
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
    // The lab's first, so that the router's own take their place.
    let single = blocks.iter().rev().flat_map(|block| &block.keys);
    for (neighbour, file) in single.flat_map(|table| &table.0) {
        let text = At {
            value: neighbour.value.0.clone(),
            at: neighbour.at,
        };
        let told = d.iter().any(|finding| finding.at == neighbour.at);
        if told || names.find(&text, &[Class::Router], "a router", d).is_none() {
            continue;
        }
        let Some(address) = servers.get(&text.value) else {
            let what = format!("{} has no NHRP server: it has no MPOA", text.value);
            d.error(neighbour.at, what);
            continue;
        };
        if let Some(key) = key(file, d).filter(|_| text.value != name) {
            table.insert(*address, key);
        }
    }
    table
}

/// Tells the servers what the file says.
pub(super) fn build(file: &LabFile, names: &Names, lab: &mut Lab, d: &mut Diagnostics) {
    let servers = servers(lab);
    for (name, section) in file.routers.iter().flat_map(|table| &table.0) {
        let name = &name.value.0;
        let blocks: Vec<&NhrpFile> = [&section.nhrp, &file.nhrp].into_iter().flatten().collect();
        let keys = keys(name, &blocks, &servers, names, d);
        let register = blocks.iter().find_map(|block| block.register.as_ref());
        let node = lab.nodes.iter_mut().find(|node| node.name == *name);
        let Some(NodeKind::Router(router)) = node.map(|node| &mut node.kind) else {
            continue;
        };
        if let Some(server) = &mut router.mpoa {
            server.keys = keys;
            server.register = register.is_some_and(At::get);
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

    #[test]
    fn mistakes() {
        for (nhrp, says) in [
            ("{ key: { spi: 65536, secret: x } }", "from 0 to 65535"),
            ("{ key: { spi: 1, secret: '' } }", "at least one character"),
            ("{ key: { spi: 1 } }", "'secret' is missing"),
            ("{ keys: { r9: { spi: 1, secret: x } } }", "no router 'r9'"),
            ("{ keys: { r4: { spi: 1, secret: x } } }", "has no MPOA"),
            ("{ kex: 1 }", "unknown key"),
        ] {
            let found = crate::parse("t.atm.yml", &with(nhrp, ""), &[]);
            let error = found.expect_err(nhrp).to_string();
            assert!(error.contains(says), "{nhrp}: {error}");
            assert_eq!(error.matches("error:").count(), 1, "{nhrp}: {error}");
        }
    }
}
