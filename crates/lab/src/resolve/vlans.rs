//! VLANs of a host that bridges: each has an ELAN or a bridged line, its client, and ports that carry it.

use crate::diag::{Diagnostics, Span};
use crate::field::{At, Optional as _, Table};
use crate::file::{HostFile, Ip, PortFile, Vid};
use crate::model::{Elan, ElanId, EthernetPort, PortVlans, SegmentHost};

/// A VLAN: its VID and its ELAN.
pub(super) type Vlan = (u16, ElanId);

/// Checks the VLANs of a host, each with the place of its VID, against the rest of the host, and puts that of the host
/// itself in front.
pub(super) fn in_order(
    host: &HostFile,
    given: Vec<(Span, Vlan)>,
    (own, elans): (ElanId, &[Elan]),
    d: &mut Diagnostics,
) -> Vec<Vlan> {
    let Some(table) = &host.vlans else {
        return Vec::new();
    };
    fits(host, table, d);
    let mut vlans: Vec<Vlan> = Vec::new();
    for (at, (vid, elan)) in given {
        let name = &elans[elan.0].name;
        if !elans[elan.0].is_ethernet() {
            d.error(at, format!("{} carries no Ethernet frames", elans[elan.0]))
                .hint("a VLAN is an ELAN or a bridged line")
                .rests_on_name(name);
        }
        if let Some((other, _)) = vlans.iter().find(|(_, known)| *known == elan) {
            d.error(at, format!("ELAN {name} is that of VLAN {other} already"));
            continue;
        }
        vlans.push((vid, elan));
    }
    match vlans.iter().position(|(_, elan)| *elan == own) {
        Some(at) => vlans[..=at].rotate_right(1),
        // The one with a wrong name may be that of the host.
        None if vlans.len() < table.0.len() => {}
        None => {
            let name = &elans[own.0].name;
            let text = format!("{name}, the ELAN of the host itself, is not one of its VLANs");
            d.error(host.elan.at, text)
                .hint(format!("for example: vlans: {{ 1: {name} }}"))
                .rests_in(host.place, ["vlans"]);
        }
    }
    vlans
}

/// Checks the other keys of a host with VLANs.
fn fits(host: &HostFile, table: &Table<Vid, At<String>>, d: &mut Diagnostics) {
    let ports = host.ethernet.as_ref().and_then(|all| all.ports.as_ref());
    if let Some((first, _)) = table
        .0
        .first()
        .filter(|_| ports.is_none() && host.lines.is_none())
    {
        d.error(first.at, "VLANs need Ethernet ports")
            .hint("for example: bridge: { phone: 10.1.0.11 }, ethernet: { ports: { e1: { stations: [phone], vlan: 10 } } }")
            .rests_in(host.place, ["ethernet", "bridge", "lines"]);
    }
    if let Some(kernel) = host.kernel.as_ref().filter(|kernel| kernel.value) {
        d.error(kernel.at, "the bridge of a Linux kernel host has no VLANs")
            .hint("a host with 'vlans:' is embedded: leave 'kernel:' out")
            .rests_in(host.place, ["vlans"]);
    }
    let of_ports = ports.iter().flat_map(|ports| &ports.0);
    let of_ports = of_ports.filter_map(|(_, port)| port.tag.place());
    let own = host.ethernet.iter().filter_map(|all| all.tag.at);
    if let Some(at) = own.chain(of_ports).next() {
        d.error(at, "with 'vlans:' the ports say which frames have tags")
            .hint("'trunk:' of a port: the VLANs with tags; 'vlan:': the one without")
            .rests_in(host.place, ["vlans"]);
    }
}

/// The VLANs of a port.
pub(super) fn of_port(host: &HostFile, port: &PortFile, d: &mut Diagnostics) -> PortVlans {
    let trunk = || port.trunk.iter().flatten();
    let all = || port.vlan.iter().chain(trunk());
    let known = |vid: &At<Vid>| {
        let table = host.vlans.iter().flat_map(|table| &table.0);
        let mut vids = table.map(|(known, _)| known.value.0);
        vids.any(|known| known == vid.value.0)
    };
    match (&host.vlans, all().next()) {
        (None, None) => {}
        (None, Some(first)) => {
            d.error(first.at, "this host has no VLANs")
                .hint("for example: vlans: { 10: red, 20: blue }, with the names of ELANs")
                .rests_in(host.place, ["vlans"]);
        }
        (Some(_), None) => {
            d.error(port.place, "a port of a bridge with VLANs needs one")
                .hint("vlan: 10 for an access port; trunk: [10, 20] for frames with tags")
                .rests_in(host.place, ["vlans"])
                .rests_in(port.place, ["vlan", "trunk"]);
        }
        (Some(_), Some(_)) => {
            if let Some(vid) = all().find(|vid| !known(vid)) {
                let text = format!("there is no VLAN {} on this host", vid.value.0);
                d.error(vid.at, text).rests_in(host.place, ["vlans"]);
            }
        }
    }
    let mut tagged = Vec::new();
    for vid in trunk() {
        let native = port.vlan.plain() == Some(vid.get());
        if native || tagged.contains(&vid.value.0) {
            let text = format!("VLAN {} is twice on this port", vid.value.0);
            d.error(vid.at, text)
                .hint("frames of a VLAN leave a port with a tag ('trunk:') or without ('vlan:')")
                .rests_in(port.place, ["vlan"]);
        } else {
            tagged.push(vid.value.0);
        }
    }
    tagged.sort_unstable();
    PortVlans {
        untagged: port.vlan.plain(),
        tagged,
    }
}

/// The ELAN of a station: with VLANs that whose subnet has the address; `None` if there is no such VLAN.
pub(super) fn of_address(
    ip: &At<Ip>,
    (own, vlans): (ElanId, &[Vlan]),
    elans: &[Elan],
    (host, station): (&HostFile, &str),
    d: &mut Diagnostics,
) -> Option<ElanId> {
    if vlans.is_empty() {
        return Some(own);
    }
    let all = vlans.iter().map(|(_, elan)| *elan);
    let found = all
        .clone()
        .find(|elan| elans[elan.0].subnet.contains(ip.value.0));
    // A VLAN that has been reported may be that of the station.
    let sure = host
        .vlans
        .as_ref()
        .is_some_and(|table| table.0.len() == vlans.len());
    if found.is_none() && sure {
        let subnets = all.map(|elan| format!("{} {}", elans[elan.0].name, elans[elan.0].subnet));
        let subnets: Vec<String> = subnets.collect();
        let text = format!(
            "{station}: no VLAN of this host has an ELAN with {}",
            ip.value.0
        );
        d.error(ip.at, text)
            .hint(format!("its ELANs are {}", subnets.join(", ")))
            .rests_on(["lane/elans"])
            .rests_in(host.place, ["vlans", "elan"]);
    }
    found
}

/// Checks that the port of each station carries the VLAN of its ELAN.
pub(super) fn reach(
    host: &HostFile,
    (vlans, elans): (&[Vlan], &[Elan]),
    (ports, stations): (&[EthernetPort], &[SegmentHost]),
    d: &mut Diagnostics,
) {
    let names = host.bridge.iter().flat_map(|table| &table.0);
    for (number, ((name, ip), station)) in names.zip(stations).enumerate() {
        // An address of no VLAN has been reported.
        let here = |elan: ElanId| elan == station.elan && elans[elan.0].subnet.contains(station.ip);
        let vlan = vlans.iter().find(|(_, elan)| here(*elan));
        let port = ports.iter().find(|port| port.stations.contains(&number));
        let Some(((vid, elan), port)) = vlan.zip(port) else {
            continue;
        };
        let PortVlans { untagged, tagged } = &port.vlans;
        // A port without VLANs has been reported.
        let none = untagged.is_none() && tagged.is_empty();
        if !none && *untagged != Some(*vid) && !tagged.contains(vid) {
            let (station, port, elan) = (&name.value.0, &port.name, &elans[elan.0].name);
            let text = format!(
                "{station} has an address of ELAN {elan}, but its port {port} does not carry VLAN {vid}"
            );
            d.error(ip.at, text)
                .hint("give the port this VLAN, or the station an address of the port's ELAN")
                .rests_in(host.place, ["vlans", "ethernet"])
                .rests_on(["lane/elans"])
                .rests_on_name(elan);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::model::{Lab, NodeKind};
    use crate::resolve::tests::{SMALL, lab};

    const VLANS: &str = "vlans: { 10: a, 20: b }";
    const PORTS: &str = "ports: { e1: { stations: [p, q], trunk: [20], vlan: 10 }, e2: { stations: [r2], vlan: 20 } }";

    fn with(vlans: &str, ports: &str) -> String {
        let more = format!(
            "ip: 10.1.0.10, {vlans}, bridge: {{ p: 10.1.0.20, q: 10.2.0.20, r2: 10.2.0.21 }}, ethernet: {{ {ports} }}"
        );
        SMALL.replace("ip: 10.1.0.10", &more)
    }

    fn host<'a>(lab: &'a Lab, name: &str) -> &'a crate::model::Host {
        match &lab.node(lab.find(name).expect("a host")).kind {
            NodeKind::Host(host) => host,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn each_vlan_has_a_client_and_its_stations_the_router_there() {
        for vlans in [VLANS, "vlans: { 20: b, 10: a }"] {
            let lab = lab(&with(vlans, PORTS));
            let x = host(&lab, "x");
            assert_eq!((&x.vlans[..], x.kernel), (&[10, 20][..], Some(false)));
            let clients = x.lecs.iter().map(|lec| {
                let elan = lab.elan(lec.elan).name.as_str();
                (
                    lec.index,
                    elan,
                    lec.ip.map(|ip| ip.to_string()),
                    lec.address.selector(),
                )
            });
            let clients: Vec<_> = clients.collect();
            assert_eq!(
                clients,
                [(0, "a", Some("10.1.0.10".to_owned()), 0), (1, "b", None, 1)]
            );
            let macs = lab
                .nodes()
                .flat_map(|(_, node)| node.lecs())
                .map(|lec| lec.mac);
            let mut macs: Vec<_> = macs.chain(x.bridge.iter().map(|p| p.mac)).collect();
            let all = macs.len();
            macs.sort_unstable();
            macs.dedup();
            assert_eq!(macs.len(), all, "each interface has an address of its own");
            let ways = x
                .bridge
                .iter()
                .map(|p| (&*p.name, p.routes[0].via.to_string()));
            let ways: Vec<_> = ways.collect();
            let (a, b) = ("10.1.0.1".to_owned(), "10.2.0.1".to_owned());
            assert_eq!(ways, [("p", a), ("q", b.clone()), ("r2", b)]);
            // Only the frames of q have a tag: VLAN 10 is the native VLAN of its trunk, and r2 is at an access port.
            assert_eq!([0, 1, 2].map(|p| x.tag_of(p)), [None, Some(20), None]);
            assert_eq!(
                [0, 1, 2].map(|p| x.cable_of(p).tagged),
                [false, true, false]
            );
        }
    }

    #[test]
    fn mistakes() {
        for (vlans, ports, says) in [
            ("vlans: { 0: a }", PORTS, "a VLAN has a number of 1 to 4094"),
            (
                "vlans: { 4095: a }",
                PORTS,
                "a VLAN has a number of 1 to 4094",
            ),
            ("vlans: { 10: c, 20: b }", PORTS, "there is no ELAN 'c'"),
            (
                "vlans: { 20: b }",
                PORTS,
                "a, the ELAN of the host itself, is not one of its VLANs",
            ),
            (
                "vlans: { 10: a, 20: b, 30: b }",
                PORTS,
                "ELAN b is that of VLAN 20 already",
            ),
            (
                "vlans: { 10: a }",
                PORTS,
                "there is no VLAN 20 on this host",
            ),
            ("mpoa: {}", PORTS, "this host has no VLANs"),
            (VLANS, "rate: 10Mbps", "VLANs need Ethernet ports"),
            (
                VLANS,
                "ports: { e1: { stations: [p, q, r2] } }",
                "a port of a bridge with VLANs needs one",
            ),
            (
                VLANS,
                "ports: { e1: { stations: [p, q, r2], trunk: [10, 20], vlan: 10 } }",
                "VLAN 10 is twice on this port",
            ),
            (
                VLANS,
                "ports: { e1: { stations: [p, q, r2], trunk: [10] } }",
                "q has an address of ELAN b, but its port e1 does not carry VLAN 20",
            ),
            (
                VLANS,
                "ports: { e1: { stations: [p, q, r2], trunk: [10, 20], tag: true } }",
                "with 'vlans:' the ports say which frames have tags",
            ),
            (
                "vlans: { 10: a, 20: b }, kernel: true",
                PORTS,
                "the bridge of a Linux kernel host has no VLANs",
            ),
        ] {
            let found = crate::parse("t.atm.yml", &with(vlans, ports), &[]);
            let said = found.expect_err(says).to_string();
            assert!(said.contains(says), "{vlans} {ports}: {said}");
        }
        let text = with(VLANS, PORTS).replace("10.2.0.21", "10.9.0.21");
        let found = crate::parse("t.atm.yml", &text, &[]);
        let said = found.expect_err("an address").to_string();
        assert!(
            said.contains("r2: no VLAN of this host has an ELAN with 10.9.0.21"),
            "{said}"
        );
    }
}
