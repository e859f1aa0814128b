//! Hosts whose LANE client stands for stations behind a bridge of the kernel.

use crate::diag::{Diagnostics, Span};
use crate::file::{HostFile, LabFile, LecFile};
use crate::model::Proxy;
use std::collections::{BTreeMap, BTreeSet};

/// Longest name of an interface, octets.
const NAME_MAX: usize = 15;
/// Interfaces that a host has itself.
const OWN: [&str; 3] = ["lo", "br0", "lec0"];

/// The Ethernet behind a host; `routed`: the network of the host carries no Ethernet frames.
pub(super) fn of(
    name: &str,
    host: &HostFile,
    routed: bool,
    d: &mut Diagnostics,
) -> Option<Box<Proxy>> {
    let section = &host.lec;
    let Some(at) = section.given.at("proxy").filter(|_| section.proxy.get()) else {
        for (_, at) in section.given.of(&["ports", "bridge"]) {
            d.error(at, "only proxies have ports and a bridge")
                .hint("lec: { proxy: true } makes the LANE client a proxy")
                .rests_in(section.place, ["proxy"]);
        }
        return None;
    };
    if routed {
        d.error(at, "only stations on ELANs and bridged lines are proxies")
            .hint("a Classical IP subnet, a routed line and PPP carry no Ethernet frames")
            .rests_in(host.place, ["elan"]);
    }
    if host.kernel.as_ref().is_some_and(|kernel| !kernel.value) {
        d.error(
            at,
            format!("host {name} is embedded, and has no bridge of the kernel"),
        )
        .hint("bridge: { phone: 10.1.0.11 } puts embedded stations behind it")
        .rests_in(host.place, ["kernel"]);
    }
    if host.vlans.is_some() {
        d.error(at, "a kernel's bridge has no VLANs here")
            .hint("a host for each VLAN, or 'bridge:' with embedded stations")
            .rests_in(host.place, ["vlans"]);
    }
    check_names(section, d);
    let ports = section.ports.iter().flatten();
    Some(Box::new(Proxy {
        ports: ports.map(|port| port.value.clone()).collect(),
        bridge: section.bridge.as_ref().map(|bridge| bridge.value.clone()),
    }))
}

/// Reports stations of the lab behind a host that cannot bridge.
pub(super) fn no_stations(host: &HostFile, at: Span, d: &mut Diagnostics) {
    let (text, hint) = match host.ilmi.get() {
        true => (
            "a host with ilmi: true has no stations of the lab behind it",
            "give the host an 'address:', or 'lec: { proxy: true }' for real stations",
        ),
        false => (
            "only stations on ELANs and bridged lines bridge",
            "a Classical IP subnet, a routed line and PPP carry no Ethernet frames",
        ),
    };
    d.error(at, text).hint(hint);
}

/// Checks the names of ports and of the bridge.
fn check_names(section: &LecFile, d: &mut Diagnostics) {
    let ports = section.ports.iter().flatten();
    let names = || ports.clone().chain(&section.bridge);
    for given in names() {
        let good = |octet: u8| octet.is_ascii_alphanumeric() || b"._-@:".contains(&octet);
        let text = &given.value;
        let begins = text
            .bytes()
            .next()
            .is_some_and(|octet| octet.is_ascii_alphanumeric());
        if !begins || text.len() > NAME_MAX || !text.bytes().all(good) {
            d.error(given.at, format!("'{text}' is no name of an interface"))
                .hint("an interface has a name of 1 to 15 characters, such as eth1");
        }
    }
    for given in ports.clone().filter(|port| OWN.contains(&&*port.value)) {
        d.error(
            given.at,
            format!("{} is an interface of every host", given.value),
        )
        .hint("a port is another interface of this machine, such as eth1");
    }
    let mut seen = BTreeSet::new();
    for given in names().filter(|given| !seen.insert(&given.value)) {
        d.error(given.at, format!("{} stands here twice", given.value));
    }
}

/// Reports ports that two hosts want, and those with the name of a station behind their host.
pub(super) fn clashes(file: &LabFile, d: &mut Diagnostics) {
    let mut taken: BTreeMap<&str, &str> = BTreeMap::new();
    for (name, host) in file.hosts.0.iter() {
        let stations = host.bridge.iter().flat_map(|table| &table.0);
        let stations: BTreeSet<&str> = stations.map(|(station, _)| &*station.value.0).collect();
        for port in host.lec.ports.iter().flatten() {
            if stations.contains(&*port.value) {
                let text = format!(
                    "the cable of station {} has this name at the bridge",
                    port.value
                );
                d.error(port.at, text).hint("give the station another name");
            }
            let before = taken.insert(&port.value, &name.value.0);
            if let Some(other) = before.filter(|other| *other != name.value.0) {
                d.error(
                    port.at,
                    format!("{} is a port of {other} already", port.value),
                );
            }
        }
    }
}

/// Refuses the keys of proxies in the section of a router.
pub(super) fn none(section: &LecFile, d: &mut Diagnostics) {
    for (_, at) in section.given.of(&["proxy", "ports", "bridge"]) {
        d.error(
            at,
            "only hosts are proxies: a router forwards packets, and no frames",
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::model::NodeKind;
    use crate::resolve::tests::{told, with_x};

    #[test]
    fn a_proxy_has_ports_or_a_bridge() {
        let text = with_x("lec: { proxy: true, ports: [eth1, eth2], bridge: br7 }", "");
        let lab = crate::resolve::tests::lab(&text);
        let NodeKind::Host(host) = &lab.node(lab.find("x").unwrap()).kind else {
            panic!("a host");
        };
        let proxy = host.proxy.as_ref().unwrap();
        assert_eq!(proxy.ports, ["eth1", "eth2"]);
        assert_eq!(proxy.bridge.as_deref(), Some("br7"));
        assert!(host.bridges() && host.bridge.is_empty());
    }

    #[test]
    fn each_mistake_is_located_and_has_a_hint() {
        for (keys, says) in [
            ("lec: { ports: [eth1] }", "only proxies have ports"),
            ("lec: { bridge: br0 }", "only proxies have ports"),
            ("lec: { proxy: true }, kernel: false", "host x is embedded"),
            (
                "lec: { proxy: true, ports: [lec0] }",
                "lec0 is an interface of every host",
            ),
            (
                "lec: { proxy: true, ports: [lo] }",
                "lo is an interface of every host",
            ),
            (
                "lec: { proxy: true, ports: [eth1, eth1] }",
                "eth1 stands here twice",
            ),
            (
                "lec: { proxy: true, ports: [a-name-of-16-cha] }",
                "'a-name-of-16-cha' is no name",
            ),
            ("lec: { proxy: true, ports: ['a/b'] }", "'a/b' is no name"),
            ("lec: { proxy: true, ports: ['-h'] }", "'-h' is no name"),
            ("lec: { proxy: true, ports: ['e%d'] }", "'e%d' is no name"),
            (
                "lec: { proxy: true, groups: [239.1.1.1] }",
                "a bridge takes the frames of all groups",
            ),
            (
                "lec: { proxy: true, ports: [p] }, bridge: { p: 10.1.0.20 }",
                "the cable of station p has this name",
            ),
        ] {
            let found = told(&with_x(keys, ""));
            assert!(found.contains(says), "{keys}: {found}");
            assert!(
                found.contains("error: ") && found.contains("t.atm.yml:"),
                "{found}"
            );
        }
        let two = with_x("lec: { proxy: true, ports: [eth1] }", "");
        let two = two.replacen(
            "ip: 10.2.0.10",
            "ip: 10.2.0.10, lec: { proxy: true, ports: [eth1] }",
            1,
        );
        assert!(
            told(&two).contains("eth1 is a port of x already"),
            "{}",
            told(&two)
        );
    }
}
