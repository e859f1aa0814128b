use super::{Neighbour, plan};
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
    let keys = router
        .mpoa
        .iter()
        .flat_map(|server| &server.keys.neighbours);
    let servers = keys.filter(|(address, _)| address.selector() == plan::SELECTOR_MPS_CONTROL);
    servers
        .map(|(address, Neighbour { key, .. })| {
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
    assert_eq!(told("r3"), ["r2 7 all"], "r1 is on no ELAN of r3");
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

fn warnings(text: &str) -> Vec<String> {
    let checked = crate::parse("t.atm.yml", text, &[]).unwrap_or_else(|d| panic!("{d}"));
    let texts = checked.warnings.iter().map(|one| one.message.clone());
    texts.collect()
}

/// MPOA clients and servers take part in the keys of the lab, and a warning names those with another key, or
/// without one.
#[test]
fn neighbours_without_a_common_key_are_told() {
    let key = |secret: &str| format!("{{ key: {{ spi: 7, secret: {secret} }} }}");
    assert_eq!(warnings(&with(&key("all"), "")), [""; 0]);
    assert_eq!(warnings(&with("{ register: true }", "")), [""; 0]);
    let lab = lab(&with(&key("all"), ""));
    let x = lab.hosts().find(|(_, node, _)| node.name == "x").unwrap().2;
    let x = x.mpoa.as_ref().unwrap();
    let servers: Vec<_> = x.keys.neighbours.keys().collect();
    assert_eq!(servers.len(), 2, "r1 and r2 are on its ELAN: {servers:?}");
    assert!(!x.keys.unsigned && x.keys.shortcuts.is_some());
    let says = |with: &str| format!("{with}: they refuse each other's messages of NHRP and MPOA");
    let own = format!(", nhrp: {}", key("other"));
    let other = with(&key("all"), &own);
    assert_eq!(warnings(&other), [says("r1 shares no key with r2, x")]);
    // One router alone has a key.
    let alone = with("{ holding: 9s }", &own);
    assert_eq!(warnings(&alone), [says("r1 shares no key with r2, x")]);
    let host = |block: &str| {
        let text = with("{ holding: 9s }", &own);
        text.replace("ip: 10.1.0.10", &format!("ip: 10.1.0.10, nhrp: {block}"))
    };
    let keys = "{ keys: { r1: { spi: 7, secret: other } } }";
    let but = "r1 shares no key with r2";
    assert_eq!(
        warnings(&host(keys)),
        [says("r2 shares no key with x"), says(but)]
    );
    let lenient = "{ keys: { r1: { spi: 7, secret: other } }, unsigned: true }";
    assert_eq!(warnings(&host(lenient)), [says(but)]);
    // Leniency lets those with a key for all obey a neighbour without one, and does not lead around a key.
    let unsigned = ", nhrp: { key: { spi: 7, secret: other }, unsigned: true }";
    assert_eq!(warnings(&with("{ holding: 9s }", unsigned)), [""; 0]);
    assert_eq!(
        warnings(&with(&key("all"), unsigned)),
        [says("r1 shares no key with r2, x")]
    );
    let nobody = warnings(&with("{ unsigned: false }", ""));
    assert_eq!(nobody.first(), Some(&says("r1 shares no key with r2, x")));
}

/// Pairs of settings at r1 and x: whether they agree, and whether the hint names `unsigned`, which must help then.
#[test]
fn leniency_is_advised_where_it_helps_and_nowhere_else() {
    const KEYS: [&str; 7] = [
        "",
        "unsigned: false",
        "key: { spi: 7, secret: one }",
        "key: { spi: 7, secret: two }",
        "keys: { r1: ONE, r2: ONE, x: ONE }",
        "key: { spi: 7, secret: one }, unsigned: true",
        "keys: { r1: ONE, r2: ONE, x: ONE }, unsigned: true",
    ];
    // Told of, and with the hint.
    let told = |server: &str, client: &str| {
        let [server, client] =
            [server, client].map(|of| of.replace("ONE", "{ spi: 7, secret: one }"));
        let text = PLAIN
            .replace(
                "nhrp: { key: { spi: 1, secret: all }, holding: 10min }\n",
                "",
            )
            .replace(
                "10.7.0.1 } }",
                &format!("10.7.0.1 }}, nhrp: {{ {server} }} }}"),
            )
            .replace("holding: 60s, authoritative: false, prefix: 24", &client)
            .replace(
                "10.8.0.1 } }",
                &format!("10.8.0.1 }}, nhrp: {{ {server} }} }}"),
            );
        let checked = crate::parse("t.atm.yml", &text, &[]).unwrap_or_else(|d| panic!("{d}"));
        let with = checked.warnings.iter();
        let mut with = with.filter(|one| one.message.contains("x: they refuse"));
        with.next().map(|one| {
            one.hint
                .as_deref()
                .is_some_and(|hint| hint.contains("unsigned"))
        })
    };
    let lenient = |of: &str| match of.contains("unsigned") {
        true => of.replace("false", "true"),
        false => format!(
            "{of}{} unsigned: true",
            if of.is_empty() { "" } else { "," }
        ),
    };
    let mut seen = BTreeMap::new();
    for server in KEYS {
        for client in KEYS {
            let helps = told(&lenient(server), &lenient(client)).is_none();
            let found = told(server, client);
            *seen.entry(found).or_insert(0) += 1;
            if let Some(advised) = found {
                assert_eq!(advised, helps, "{server:?} and {client:?}");
            }
        }
    }
    assert_eq!(seen.len(), 3, "{seen:?}");
}

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
    assert_eq!(x.address.selector(), plan::SELECTOR_NHC);
    let (of_x, of_r1) = (
        &x.keys.neighbours[&r1.control],
        &r1.keys.neighbours[&x.address],
    );
    assert_eq!(of_x.key, of_r1.key);
    assert_eq!(of_x.signs_as, r1.keys.signs_as);
    assert_eq!(of_r1.signs_as, std::net::Ipv4Addr::new(10, 5, 0, 10));
    assert_eq!(x.keys.shortcuts.as_ref(), Some(&of_x.key));
    assert!(!x.keys.unsigned && !r1.keys.unsigned);
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

#[test]
fn a_secret_in_clear_text_is_that_of_cisco() {
    let with = |key: &str| PLAIN.replace("key: { spi: 1, secret: all }", &format!("key: {key}"));
    let parse = |key: &str| crate::parse("t.atm.yml", &with(key), &[]);
    let lab =
        parse("{ spi: 1, secret: geheim, clear_text: true }").unwrap_or_else(|d| panic!("{d}"));
    let clients = lab.lab.nodes.iter().filter_map(|node| match &node.kind {
        crate::model::NodeKind::Host(host) => host.nhrp.as_ref(),
        _ => None,
    });
    let keys: Vec<_> = clients
        .flat_map(|client| client.keys.neighbours.values())
        .collect();
    assert!(!keys.is_empty());
    assert!(
        keys.iter()
            .all(|one| one.key.clear_text && one.key.spi == 1)
    );
    for (key, told) in [
        (
            "{ spi: 7, secret: geheim, clear_text: true }",
            "has the security parameter index 1",
        ),
        (
            "{ spi: 1, secret: neunstellig, clear_text: true }",
            "has at most 8 characters",
        ),
    ] {
        let refused = parse(key).expect_err("an error").to_string();
        assert!(refused.contains(told), "{refused}");
    }
}
