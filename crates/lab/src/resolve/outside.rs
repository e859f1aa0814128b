//! Links out of the lab, and nodes for their far ends.

use super::links::connect;
use super::stage::Building;
use super::{Class, Names, direct, pseudowires, queues, uplink};
use crate::diag::{Diagnostics, Span};
use crate::field::{At, Key, Optional as _};
use crate::file::{
    AtmTcpFile, EthernetFile, LabFile, LinkFile, Mac, OutsideFile, OutsideOptions, Time, UdpFile,
};
use crate::model::{
    Attachment, Errors, Gathering, Lab, LaneServer, LineParams, Link, LinkId, Node, NodeId,
    NodeKind, Outside, OutsideTrunk, OutsideWay, Packing, Side,
};
use crate::plan::{self, Kind};
use aerostat_proto::Duration;
use aerostat_wire::{AtmAddress, MacAddr};
use std::net::{IpAddr, Ipv4Addr};

/// Propagation delay of a link out of the lab, as far as the lab has it.
const DELAY: Duration = Duration::from_micros(5);
/// Limit of ATM addresses of one peer.
const MAX_ADDRESSES: usize = 64;

/// The links out of the lab, in the order of the file.
pub(super) fn links(file: &LabFile) -> impl Iterator<Item = &OutsideFile> {
    file.links.iter().flatten().filter_map(|link| match link {
        LinkFile::Outside(link) => Some(&**link),
        LinkFile::Trunk(_) => None,
    })
}

/// The trunk out of the lab behind which the LANE services are, if they are not in this lab.
pub(super) fn with_lane(file: &LabFile) -> Option<&OutsideFile> {
    let on = file.lane.as_ref()?.on.as_ref()?;
    let lane = |(number, link): &(u16, &OutsideFile)| name(link, *number).0 == on.value;
    (1..).zip(links(file)).find(lane).map(|(_, link)| link)
}

/// The far ends of links out of the lab have this name and their number if the file gives no name.
pub(crate) const UNNAMED: &str = "outside";

/// Name of the far end of the link out of the lab number `number` (from 1), and the place for messages about it.
pub(super) fn name(link: &OutsideFile, number: u16) -> (String, Span) {
    match &link.options.name {
        Some(name) => (name.value.0.clone(), name.at),
        None => (format!("{UNNAMED}{number}"), link.on.at),
    }
}

/// Adds a node, its port and its link for each.
pub(super) fn build(file: &LabFile, names: &Names, lab: &mut Building<'_>, d: &mut Diagnostics) {
    let site = super::nodes::site(file);
    lane_elsewhere(file, d);
    for (number, link) in (1..).zip(links(file)) {
        let at_end = direct::is_end(names, &link.on.value);
        let on = match at_end {
            true => direct::free_end(file, names, &link.on, lab, d),
            false => names.find(&link.on, &[Class::Switch], "a switch", d),
        };
        let way = way(&link.options, d);
        let prefix = match on.and_then(|on| lab.nodes.get(on.0)).map(|on| &on.kind) {
            Some(NodeKind::Switch(switch)) => switch.prefix,
            _ => [0; 13],
        };
        let addresses = match at_end {
            true => Vec::new(),
            false => addresses(link, lab, d),
        };
        // A link with a mistake still has its entry in the list, because names stand for indices of nodes.
        let way = way.unwrap_or_else(|| OutsideWay::AtmTcpConnect { to: String::new() });
        let trunk = match at_end {
            true => {
                uplink::keys(&link.options, &link.on.value, d);
                None
            }
            false => trunk(file, link, lab, d),
        };
        let esi = plan::mac(site, Kind::Outside, number, 0);
        let stands_for_it = AtmAddress::from_parts(prefix, esi, 0);
        attach(
            link,
            number,
            on,
            (way, trunk),
            (stands_for_it, addresses),
            lab,
        );
    }
    direct::check(file, names, lab, d);
}

/// Reports settings that are invalid when another lab has the LANE services.
fn lane_elsewhere(file: &LabFile, d: &mut Diagnostics) {
    let (Some(link), Some(section)) = (with_lane(file), &file.lane) else {
        return;
    };
    if let Some(on) = section.on.as_ref().filter(|_| link.options.trunk.is_none()) {
        d.error(on.at, format!("'{}' is no trunk", on.value))
            .hint("give its link 'trunk: network', 'trunk: user' or 'trunk: auto'")
            .rests_in(link.options.place, ["trunk"]);
    }
    if let Some(name) = &section.name {
        d.error(
            name.at,
            "the LANE services are outside: their host has no name here",
        );
    }
    super::lane::nothing_to_serve(section, d);
}

fn trunk(
    file: &LabFile,
    link: &OutsideFile,
    lab: &Lab,
    d: &mut Diagnostics,
) -> Option<OutsideTrunk> {
    let options = &link.options;
    let Some(side) = &options.trunk else {
        if let Some(route) = options.routes.iter().flatten().next() {
            d.error(route.at, "'routes' is for trunks")
                .hint("give the link 'trunk: network', 'trunk: user' or 'trunk: auto'")
                .rests_in(options.place, ["trunk"]);
        }
        return None;
    };
    let ilmi = options.ilmi.as_ref().filter(|ilmi| ilmi.value);
    if options.address.is_some() || ilmi.is_some() {
        let text = "a trunk leads to a switch, which has neither 'address' nor 'ilmi' of its own";
        d.error(side.at, text).hint("use 'routes:'");
    }
    let lane = with_lane(file).is_some_and(|with| std::ptr::eq(with, link));
    let mut prefixes: Vec<Vec<u8>> = Vec::new();
    for At { value, at } in options.routes.iter().flatten() {
        let own = lab
            .switches()
            .find(|(_, _, switch)| value.octets().starts_with(&switch.prefix));
        if let Some((_, node, _)) = own {
            let text = format!("addresses of this prefix are those of {}", node.name);
            d.error(*at, text)
                .hint("joined labs need different prefixes: give one a 'site:'")
                .rests_on(["site", "switches"]);
        }
        prefixes.push(value.octets().to_vec());
    }
    if prefixes.is_empty() && !lane {
        d.error(side.at, "a trunk needs 'routes:'")
            .rests_in(options.place, ["routes"])
            .rests_on(["lane"]);
    }
    Some(OutsideTrunk {
        side: side.value.0,
        prefixes,
        lane,
    })
}

fn attach(
    link: &OutsideFile,
    number: u16,
    on: Option<NodeId>,
    (way, trunk): (OutsideWay, Option<OutsideTrunk>),
    (stands_for_it, addresses): (AtmAddress, Vec<AtmAddress>),
    lab: &mut Building<'_>,
) {
    let (name, _) = name(link, number);
    let address = addresses.first().copied().unwrap_or(stands_for_it);
    let node = NodeId(lab.nodes.len());
    let mut attachment = Attachment {
        switch: on.unwrap_or(node),
        port: 0,
        link: LinkId(0),
        address,
    };
    // The node must be in the list before a link can lead to it; its kind follows later.
    lab.nodes_mut().push(Node {
        name: name.clone(),
        kind: NodeKind::LaneServer(LaneServer::at(attachment.clone())),
    });
    if let Some(on) = on {
        let (options, name) = (&link.options, format!("{name}-{}", link.on.value));
        let id = connect(lab, node, on, |(ends, user)| Link {
            name,
            ends,
            user,
            lines: [LineParams {
                rate: options.rate.get(),
                delay: DELAY,
                errors: Errors::NONE,
            }; 2],
            framing: None,
            police: options.police.plain(),
            cdvt: options.cdvt.plain(),
            queues: queues::of(options.queues.as_ref()),
            tunnels: queues::tunnels(options.tunnels.as_ref()),
            call_vpi: 0,
        });
        attachment.link = id;
        attachment.port = lab.links[id.0].ends[1].port.into();
        if let NodeKind::Switch(switch) = &mut lab.nodes_mut()[on.0].kind
            && let Some(port) = switch.ports.get_mut(attachment.port)
        {
            match &trunk {
                Some(trunk) => port.side = trunk.side.unwrap_or(Side::Network),
                None => port.station = Some(address),
            }
        }
    }
    let at_end = on.filter(|on| !matches!(lab.nodes[on.0].kind, NodeKind::Switch(_)));
    if let Some(end) = at_end {
        direct::attach(lab, end, node, attachment.link);
    }
    lab.nodes_mut()[node.0].kind = NodeKind::Outside(Outside {
        attachment,
        way,
        ilmi: match &trunk {
            _ if at_end.is_some() => false,
            Some(trunk) => trunk.side.is_none(),
            None => link.options.ilmi.plain().unwrap_or(addresses.is_empty()),
        },
        trunk,
        addresses,
        version: link.options.uni.plain(),
    });
}

/// Keys that say how a link leaves the lab.
const WAYS: [&str; 5] = ["atmtcp", "udp", "ethernet", "mpls", "l2tp"];

fn way(options: &OutsideOptions, d: &mut Diagnostics) -> Option<OutsideWay> {
    if options.given.of(&WAYS).count() != 1 {
        let text =
            "a link out of the lab has one of 'atmtcp', 'udp', 'ethernet', 'mpls' and 'l2tp'";
        d.error(options.place, text)
            .hint("for example: [s1, { udp: { local: 127.0.0.1:10001, peer: 127.0.0.1:10002 } }]")
            .rests_in(options.place, WAYS);
        return None;
    }
    (options.atmtcp.as_ref().and_then(|file| atmtcp(file, d)))
        .or_else(|| udp(options.udp.as_ref()?, d))
        .or_else(|| Some(ethernet(options.ethernet.as_ref()?, d)))
        .or_else(|| pseudowires::mpls(options.mpls.as_ref()?, d))
        .or_else(|| pseudowires::l2tp(options.l2tp.as_ref()?, d))
}

fn udp(file: &UdpFile, d: &mut Diagnostics) -> Option<OutsideWay> {
    let (local, peer) = (file.local.value.0, file.peer.value.0);
    let wrong = if peer.port() == 0 || !single(peer.ip()) {
        "the peer needs the address of a single system, and a port"
    } else if local.port() == 0 || local.ip().is_multicast() {
        d.error(file.local.at, "the peer has to know this address and port")
            .hint("for example: local: 127.0.0.1:10001");
        return None;
    } else if local.is_ipv4() != peer.is_ipv4() {
        "'local' and 'peer' must be of one IP version"
    } else if local == peer {
        "'local' and 'peer' are the same"
    } else {
        let packing = packing(file, d)?;
        return Some(OutsideWay::Udp {
            local,
            peer,
            packing,
        });
    };
    d.error(file.peer.at, wrong);
    None
}

/// True for the address of a single system.
pub(super) fn single(ip: IpAddr) -> bool {
    !ip.is_unspecified() && !ip.is_multicast() && ip != IpAddr::V4(Ipv4Addr::BROADCAST)
}

fn packing(file: &UdpFile, d: &mut Diagnostics) -> Option<Packing> {
    if let Some(cells) = file.cells.plain() {
        return Some(many(gathering(cells, &file.wait), file.word.get()));
    }
    for (_, at) in file.given.of(&["wait", "word"]) {
        d.error(at, "this is for many cells in a datagram")
            .hint("for example: cells: 28")
            .rests_in(file.place, ["cells"]);
    }
    Some(Packing::One)
}

const fn many(Gathering { cells, wait }: Gathering, word: bool) -> Packing {
    Packing::Many { cells, wait, word }
}

/// Gathering of so many cells, each for a time at most.
pub(super) fn gathering(cells: u64, wait: &Key<Time>) -> Gathering {
    Gathering {
        cells: cells as u16,
        wait: wait.get(),
    }
}

/// Checks the name of an interface and the MAC address of the peer there; returns the address.
pub(super) fn cable(interface: &At<String>, peer: &At<Mac>, d: &mut Diagnostics) -> MacAddr {
    // The kernel's limit, IFNAMSIZ without the final 0.
    if interface.value.is_empty() || interface.value.len() > 15 {
        d.error(interface.at, "an interface's name has 1 to 15 octets");
    }
    let address = peer.value.0;
    if address.0[0] & 1 != 0 || address.0 == [0; 6] {
        d.error(peer.at, "this is no station's MAC address");
    }
    address
}

fn ethernet(file: &EthernetFile, d: &mut Diagnostics) -> OutsideWay {
    let gathering = gathering(file.cells.get(), &file.wait);
    OutsideWay::Ethernet {
        interface: file.interface.value.clone(),
        peer: cable(&file.interface, &file.peer, d),
        packing: many(gathering, file.word.get()),
    }
}

fn atmtcp(file: &AtmTcpFile, d: &mut Diagnostics) -> Option<OutsideWay> {
    match (&file.listen, &file.connect) {
        (Some(listen), None) if listen.value.0.ip().is_multicast() => {
            d.error(listen.at, "no system can listen on a multicast address");
            None
        }
        (Some(listen), None) => Some(OutsideWay::AtmTcpListen {
            at: listen.value.0,
            from: file.from.plain(),
        }),
        (None, Some(to)) => {
            if let Some(from) = &file.from {
                d.error(from.at, "'from' is for 'listen'");
            }
            let port = to
                .value
                .rsplit_once(':')
                .map(|(host, port)| (host, port.parse::<u16>()));
            if !matches!(port, Some((host, Ok(1..))) if !host.is_empty()) {
                d.error(to.at, format!("'{}': expected HOST:PORT", to.value))
                    .hint("for example: connect: 127.0.0.1:2812");
                return None;
            }
            Some(OutsideWay::AtmTcpConnect {
                to: to.value.clone(),
            })
        }
        _ => {
            d.error(file.place, "atmtcp has one of 'listen' and 'connect'")
                .hint("for example: atmtcp: { listen: 127.0.0.1:2812 }")
                .rests_in(file.place, ["listen", "connect"]);
            None
        }
    }
}

/// The addresses of the peer that are given.
fn addresses(link: &OutsideFile, lab: &Lab, d: &mut Diagnostics) -> Vec<AtmAddress> {
    let Some(given) = &link.options.address else {
        if let Some(ilmi) = link.options.ilmi.as_ref().filter(|ilmi| !ilmi.value) {
            d.error(ilmi.at, "without ILMI the peer needs an 'address'")
                .rests_in(link.options.place, ["address"]);
        }
        return Vec::new();
    };
    if given.0.is_empty() || given.0.len() > MAX_ADDRESSES {
        let text = format!("a peer has 1 to {MAX_ADDRESSES} ATM addresses");
        d.error(link.options.place, text)
            .rests_in(link.options.place, ["address"]);
    }
    let mut all: Vec<AtmAddress> = Vec::new();
    for At { value, at } in &given.0 {
        let owner = lab.nodes.iter().find(|node| owns(node, &value.0));
        let lecs = lab.lane_server();
        let lecs = lecs.filter(|_| value.0.same_end_system(&AtmAddress::LECS));
        if let Some(owner) = owner.or(lecs.map(|(_, node, _)| node)) {
            let text = format!("this ATM address is of {} already", owner.name);
            d.error(*at, text);
        }
        all.push(value.0);
    }
    all
}

/// True if calls to this address go to this node.
fn owns(node: &Node, address: &AtmAddress) -> bool {
    match &node.kind {
        NodeKind::Outside(outside) => outside
            .addresses
            .iter()
            .any(|own| own.same_end_system(address)),
        _ => node
            .attachment()
            .is_some_and(|attachment| attachment.address.same_end_system(address)),
    }
}

#[cfg(test)]
mod tests {
    use crate::model::{Lab, NodeKind, OutsideWay, Packing, Side};
    use crate::resolve::tests::{SMALL, lab, next_hop};
    use crate::routing::{Route, Routing};
    use aerostat_wire::AtmAddress;

    fn with(link: &str) -> String {
        SMALL.replace("[[s1, s2]]", &format!("[[s1, s2], {link}]"))
    }

    fn error(link: &str) -> String {
        let found = crate::parse("t.atm.yml", &with(link), &[]);
        found.expect_err("an error").to_string()
    }

    #[test]
    fn a_peer_gets_a_port() {
        let lab: Lab = lab(&with("[s1, { atmtcp: { listen: 127.0.0.1:2812 } }]"));
        let (id, node, outside) = lab.outside().next().unwrap();
        assert_eq!(
            (id.0, node.name.as_str()),
            (lab.nodes.len() - 1, "outside1")
        );
        assert_eq!((outside.ilmi, outside.version), (true, None));
        assert_eq!(
            outside.way,
            OutsideWay::AtmTcpListen {
                at: "127.0.0.1:2812".parse().unwrap(),
                from: None
            }
        );
        assert!(outside.addresses.is_empty(), "it registers its own");
        let NodeKind::Switch(switch) = &lab.node(outside.attachment.switch).kind else {
            panic!("not on a switch");
        };
        let port = &switch.ports[outside.attachment.port];
        assert_eq!((port.peer, port.side), (id, Side::Network));
        assert_eq!(lab.link(port.link).name, "outside1-s1");
    }

    #[test]
    fn foreign_addresses_are_known_everywhere() {
        let given = "47.0005.80FFE1000000F21A26D8.0020EA0000B0.00";
        let text = format!(
            "[s1, {{ atmtcp: {{ connect: 127.0.0.1:2812 }}, name: vm, uni: 3.0, rate: ds3, address: [{given}, \
             47.0005.80FFE1000000F21A26D8.0020EA0000C0.00] }}]"
        );
        let lab = lab(&with(&text));
        let (_, _, outside) = lab.outside().next().unwrap();
        assert!(!outside.ilmi);
        assert_eq!(
            (outside.version, outside.addresses.len()),
            (Some(aerostat_wire::q2931::Version::Uni30), 2)
        );
        let routing = Routing::new(&lab);
        for (id, _, _) in lab.switches() {
            for address in &outside.addresses {
                let known = |(prefix, _): &&Route| address.0.starts_with(prefix);
                assert_eq!(routing.routes(id).iter().filter(known).count(), 1);
            }
        }
    }

    #[test]
    fn cells_over_udp() {
        let lab = lab(&with(
            "[s1, { udp: { local: 127.0.0.1:10001, peer: 127.0.0.1:10002 } }]",
        ));
        let (_, _, outside) = lab.outside().next().unwrap();
        let (local, peer) = ("127.0.0.1:10001".parse(), "127.0.0.1:10002".parse());
        assert_eq!(
            outside.way,
            OutsideWay::Udp {
                local: local.unwrap(),
                peer: peer.unwrap(),
                packing: Packing::One
            }
        );
        let wrong = |ends: &str| error(&format!("[s1, {{ udp: {{ {ends} }} }}]"));
        let text = wrong("local: 127.0.0.1:1, peer: 127.0.0.1:1");
        assert!(text.contains("are the same"), "{text}");
        let text = wrong("local: 127.0.0.1:1, peer: '[::1]:1'");
        assert!(text.contains("one IP version"), "{text}");
        for peer in [
            "0.0.0.0:1",
            "224.0.0.5:1",
            "255.255.255.255:1",
            "127.0.0.1:0",
        ] {
            let text = wrong(&format!("local: 127.0.0.1:1, peer: {peer}"));
            assert!(text.contains("the address of a single system"), "{text}");
        }
        let text = wrong("local: 127.0.0.1:0, peer: 127.0.0.1:1");
        assert!(text.contains("has to know this address"), "{text}");
        assert!(error("[s1, { name: x9 }]").contains("one of 'atmtcp', 'udp', 'ethernet', 'mpls'"));
    }

    #[test]
    fn many_cells_in_a_datagram() {
        let ends = "local: 127.0.0.1:1, peer: 127.0.0.1:2";
        let lab = lab(&with(&format!(
            "[s1, {{ udp: {{ {ends}, cells: 28, word: true }} }}]"
        )));
        let (_, _, outside) = lab.outside().next().unwrap();
        let OutsideWay::Udp { packing, .. } = outside.way else {
            panic!("{:?}", outside.way);
        };
        let wait = super::Duration::from_micros(100);
        assert_eq!(
            packing,
            Packing::Many {
                cells: 28,
                wait,
                word: true
            }
        );
        let wrong = |more: &str| error(&format!("[s1, {{ udp: {{ {ends}, {more} }} }}]"));
        for cells in ["cells: 0", "cells: 173", "cells: 100000"] {
            assert!(wrong(cells).contains("cells is 1 to 172"), "{cells}");
        }
        assert!(wrong("cells: 2, wait: 11ms").contains("wait is 0s to 10ms"));
        assert!(wrong("wait: 1ms").contains("for many cells"));
        assert!(wrong("word: true").contains("for many cells"));
    }

    #[test]
    fn cells_in_ethernet_frames() {
        let with_ends =
            |ends: &str| with(&format!("[s1, {{ ethernet: {{ interface: {ends} }} }}]"));
        let lab = lab(&with_ends("eth1, peer: '02:00:00:00:00:0b'"));
        let (_, _, outside) = lab.outside().next().unwrap();
        let OutsideWay::Ethernet {
            interface,
            peer,
            packing,
        } = &outside.way
        else {
            panic!("{:?}", outside.way);
        };
        assert_eq!((interface.as_str(), peer.0), ("eth1", [2, 0, 0, 0, 0, 0xb]));
        assert!(matches!(
            packing,
            Packing::Many {
                cells: 28,
                word: false,
                ..
            }
        ));
        let wrong = |ends: &str| {
            let found = crate::parse("t.atm.yml", &with_ends(ends), &[]);
            found.expect_err("an error").to_string()
        };
        assert!(wrong("eth1, peer: eth2").contains("expected a MAC address"));
        assert!(wrong("eth1, peer: 'ff:ff:ff:ff:ff:ff'").contains("no station's"));
        assert!(wrong("interface-of-17ch, peer: '02:00:00:00:00:0b'").contains("1 to 15"));
    }

    /// Two labs, of which the second has its LANE services in the first.
    const WEST: &str = "
switches: { s1: {}, s2: {} }
links:
  - [s1, s2]
  - [s2, { name: east, trunk: network, routes: [47.0091.81.000000.02a7.10], udp: { local: 127.0.0.1:1, peer: 127.0.0.1:2 } }]
lane: { on: s1, elans: { a: { subnet: 10.1.0.0/24 }, b: { subnet: 10.2.0.0/24 } } }
routers: { r: { on: s1, elans: { a: 10.1.0.1, b: 10.2.0.1 } } }
hosts: { x: { on: s1, elan: a, ip: 10.1.0.10 } }
";
    const EAST: &str = "
site: 1
switches: { s3: {}, s4: {} }
links:
  - [s3, s4]
  - [s3, { name: west, trunk: user, routes: [47.0091.81.000000.02a7.00], udp: { local: 127.0.0.1:2, peer: 127.0.0.1:1 } }]
lane: { on: west, elans: { a: { subnet: 10.1.0.0/24 }, b: { subnet: 10.2.0.0/24 } } }
hosts: { y: { on: s4, elan: b, ip: 10.2.0.10, gateway: 10.2.0.1 } }
";

    /// The next hop of a call to `to` from `switch`: the peer behind the port.
    fn next(lab: &Lab, switch: &str, to: &[u8]) -> Option<String> {
        let id = lab.find(switch).unwrap();
        Some(lab.node(next_hop(lab, id, to)?).name.clone())
    }

    #[test]
    fn a_trunk_joins_two_labs() {
        let (west, east) = (lab(WEST), lab(EAST));
        let address = |lab: &Lab, name: &str| {
            let id = lab.find(name).unwrap();
            lab.node(id).attachment().unwrap().address.0
        };
        let (x, y) = (address(&west, "x"), address(&east, "y"));
        assert_eq!(next(&west, "s1", &y).as_deref(), Some("s2"));
        assert_eq!(next(&west, "s2", &y).as_deref(), Some("east"));
        assert_eq!(next(&east, "s3", &y).as_deref(), Some("s4"));
        assert_eq!(next(&east, "s4", &x).as_deref(), Some("s3"));
        assert_eq!(next(&east, "s3", &x).as_deref(), Some("west"));
        for lecs in [AtmAddress::LECS, AtmAddress::LECS_ANYCAST] {
            assert_eq!(next(&east, "s4", &lecs.0).as_deref(), Some("s3"));
            assert_eq!(next(&east, "s3", &lecs.0).as_deref(), Some("west"));
            assert_eq!(next(&west, "s2", &lecs.0).as_deref(), Some("s1"));
        }
        // There is no route for other addresses.
        assert_eq!(next(&west, "s2", &[0x39; 20]), None);
        assert_eq!(next(&east, "s3", &[0x39; 20]), None);
        let auto = WEST.replace("trunk: network", "trunk: auto");
        let auto = lab(&auto);
        let (_, _, outside) = auto.outside().next().unwrap();
        let side = outside.trunk.as_ref().unwrap().side;
        assert_eq!((side, outside.ilmi), (None, true));
        for (lab, side) in [(&west, Side::Network), (&east, Side::User)] {
            let (_, _, outside) = lab.outside().next().unwrap();
            let NodeKind::Switch(switch) = &lab.node(outside.attachment.switch).kind else {
                panic!("not on a switch");
            };
            let port = &switch.ports[outside.attachment.port];
            assert_eq!((port.side, port.station, outside.ilmi), (side, None, false));
        }
        assert!(east.lane_server().is_none());
        let y = east.hosts().next().unwrap().2;
        assert_eq!(y.routes[0].via.to_string(), "10.2.0.1");
        assert_eq!(y.lec().mac.to_string(), "02:a7:13:00:01:00");
    }

    #[test]
    fn mistakes_with_trunks_are_told() {
        let error = |text: &str, from: &str, to: &str| {
            assert!(text.contains(from), "{from}");
            let found = crate::parse("t.atm.yml", &text.replace(from, to), &[]);
            found.expect_err("an error").to_string()
        };
        let routes = "routes: [47.0091.81.000000.02a7.10], ";
        assert!(error(WEST, routes, "").contains("a trunk needs 'routes:'"));
        assert!(error(WEST, "trunk: network, ", "").contains("'routes' is for trunks"));
        assert!(error(WEST, "trunk: network", "trunk: both").contains("network, user or auto"));
        assert!(error(WEST, "02a7.10]", "02a7.1]").contains("1 to 19 octets"));
        assert!(error(WEST, routes, &format!("{routes}ilmi: true, ")).contains("neither"));
        let own = "routes: [47.0091.81.000000.02a7.00.0002.00], ";
        assert!(error(WEST, routes, own).contains("are those of s2"));
        assert!(error(EAST, "site: 1", "site: 16").contains("0 to 15"));
        assert!(error(EAST, "on: west,", "on: west, name: l,").contains("no name here"));
        assert!(error(EAST, "gateway: 10.2.0.1", "gateway: 10.3.0.1").contains("is no router"));
        let no_trunk = error(
            EAST,
            "trunk: user, routes: [47.0091.81.000000.02a7.00], ",
            "",
        );
        assert!(no_trunk.contains("'west' is no trunk"), "{no_trunk}");
    }

    #[test]
    fn mistakes_are_told() {
        let one = "atmtcp has one of";
        assert!(error("[s1, { atmtcp: {} }]").contains(one));
        assert!(
            error("[s1, { atmtcp: { listen: 127.0.0.1:1, connect: 127.0.0.1:1 } }]").contains(one)
        );
        assert!(error("[s1, { atmtcp: { connect: 127.0.0.1 } }]").contains("expected HOST:PORT"));
        assert!(error("[s1, { atmtcp: { listen: 2812 } }]").contains("expected ADDRESS:PORT"));
        let from = "[s1, { atmtcp: { connect: 127.0.0.1:1, from: 127.0.0.1 } }]";
        assert!(error(from).contains("'from' is for 'listen'"));
        assert!(error("[zz, { atmtcp: { listen: 127.0.0.1:1 } }]").contains("no switch 'zz'"));
        let taken = "[s1, { atmtcp: { listen: 127.0.0.1:1 }, name: x }]";
        assert!(error(taken).contains("two nodes with one name"));
        let address = "[s1, { atmtcp: { listen: 127.0.0.1:1 }, \
            address: 47.0091.81.000000.02a7.0000.0100.02a703000100.07 }]";
        assert!(
            error(address).contains("of x already"),
            "{}",
            error(address)
        );
    }
}
