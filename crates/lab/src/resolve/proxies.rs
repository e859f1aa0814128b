//! Hosts whose LANE client stands for stations behind a bridge of the kernel.

use crate::diag::Diagnostics;
use crate::file::{HostFile, LecFile};
use crate::model::Proxy;

/// Longest name of an interface, octets.
const NAME_MAX: usize = 15;

/// The Ethernet behind a host; `clip`: the host is on a Classical IP subnet.
pub(super) fn of(
    name: &str,
    host: &HostFile,
    clip: bool,
    d: &mut Diagnostics,
) -> Option<Box<Proxy>> {
    let section = &host.lec;
    let Some(at) = section.given.at("proxy").filter(|_| section.proxy.get()) else {
        for (_, at) in section.given.of(&["ports", "bridge"]) {
            d.error(at, "this needs proxy: true")
                .rests_in(section.place, ["proxy"]);
        }
        return None;
    };
    if clip {
        d.error(at, "only members of ELANs are proxies")
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
            .rests_in(host.place, ["vlans"]);
    }
    let ports = section.ports.iter().flatten();
    let names = || ports.clone().chain(&section.bridge);
    for given in names() {
        let odd = |octet: u8| octet == b'/' || !octet.is_ascii_graphic();
        let text = &given.value;
        if text.is_empty() || text.len() > NAME_MAX || text.bytes().any(odd) || text == "lec0" {
            d.error(
                given.at,
                format!("'{text}' is no interface that can be a port"),
            )
            .hint("an interface has a name of 1 to 15 characters, such as eth1");
        }
    }
    let mut seen = std::collections::BTreeSet::new();
    for given in names().filter(|given| !seen.insert(&given.value)) {
        d.error(given.at, format!("{} stands here twice", given.value));
    }
    Some(Box::new(Proxy {
        ports: ports.map(|port| port.value.clone()).collect(),
        bridge: section.bridge.as_ref().map(|bridge| bridge.value.clone()),
    }))
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
