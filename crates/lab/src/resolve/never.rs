//! Warnings about parts of a file that have no effect.

use super::outside;
use crate::diag::{Diagnostics, Span};
use crate::field::At;
use crate::file::{FaultFile, HostFile, LabFile, MpoaFile, Socket, Time};
use crate::model::{Elan, ElanId, Host, Lab, Lec, Node, NodeId, NodeKind};
use aerostat_proto::Duration;
use std::net::SocketAddr;

/// Looks for events after the end of the run.
pub(super) fn too_late(file: &LabFile, d: &mut Diagnostics) {
    // A user who ends a run early by an option knows that later events are left out.
    if let Some(until) = file.until.as_ref().filter(|until| until.at.source == 0) {
        match until.value.0 {
            Duration::ZERO => {
                d.warning(until.at, "the run ends before anything happens");
            }
            end => {
                for (at, text) in after_the_end(file, end) {
                    d.warning(at, text);
                }
            }
        }
    }
}

/// Looks for other such parts in a valid lab.
pub(super) fn warn(file: &LabFile, lab: &Lab, d: &mut Diagnostics) {
    no_shortcuts(file, lab, d);
    for (n, elan) in lab.elans.iter().enumerate() {
        no_way(file, lab, (ElanId(n), elan), d);
        no_announcement(file, lab, (ElanId(n), elan), d);
        no_nhrp(file, lab, (ElanId(n), elan), d);
        no_members(file, lab, (ElanId(n), elan), d);
    }
    one_port(file, d);
}

/// Parts that a run in virtual time leaves out: kernels, and without 'until' traffic that begins after all with an end.
pub(crate) fn in_virtual_time(file: &LabFile, lab: &Lab) -> Vec<(Span, String)> {
    let late = match file.until {
        Some(_) => Vec::new(),
        None => after_the_end(file, lab.end()),
    };
    [kernels(file), late].concat()
}

/// Places of `kernel: true`.
fn kernels(file: &LabFile) -> Vec<(Span, String)> {
    let routers = file.routers.iter().flat_map(|table| &table.0);
    let routers = routers.map(|(name, router)| (name, &router.kernel));
    let hosts = file.hosts.0.iter().map(|(name, host)| (name, &host.kernel));
    let wanted = routers.chain(hosts).filter_map(|(name, kernel)| {
        let kernel = kernel.as_ref().filter(|kernel| kernel.value)?;
        let text = format!("in virtual time {} is no Linux kernel", name.value.0);
        Some((kernel.at, text))
    });
    let keys = file
        .hosts
        .0
        .iter()
        .flat_map(|(_, host)| super::tcp::in_virtual_time(host));
    wanted.chain(keys).collect()
}

fn after_the_end(file: &LabFile, end: Duration) -> Vec<(Span, String)> {
    let mut all = Vec::new();
    let mut late = |time: Option<&At<Time>>, what: &str| {
        if let Some(time) = time.filter(|time| time.value.0 >= end) {
            all.push((time.at, format!("{what} when the run is over")));
        }
    };
    for flow in file.traffic.iter().flatten() {
        late(flow.start.as_ref(), "this flow starts");
    }
    for FaultFile { at, .. } in file.faults.iter().flatten() {
        late(Some(at), "this happens");
    }
    let hosts = || file.hosts.0.iter().map(|(_, host)| host);
    for socket in hosts().flat_map(|host| host.sockets.iter().flatten()) {
        let start = socket.start.at.map(|at| At {
            value: Time(socket.start.get()),
            at,
        });
        late(start.as_ref(), "this program starts");
    }
    let routers = file.routers.iter().flat_map(|table| &table.0);
    let of_routers = routers.map(|(_, router)| &router.mpoa);
    let of_hosts = hosts().map(|HostFile { mpoa, .. }| mpoa);
    for mpoa in of_routers.chain(of_hosts).chain([&file.mpoa]).flatten() {
        if let MpoaFile::Params(params) = mpoa {
            late(params.start.as_ref(), "MPOA starts");
        }
    }
    all
}

/// Warns of MPOA clients without a server.
fn no_shortcuts(file: &LabFile, lab: &Lab, d: &mut Diagnostics) {
    let clients = lab.hosts().any(|(_, _, host)| host.mpoa.is_some());
    let servers = lab.routers().any(|(_, _, router)| router.mpoa.is_some());
    let elsewhere = lab.outside().next().is_some();
    if !clients || servers || elsewhere {
        return;
    }
    let hosts = file
        .hosts
        .0
        .iter()
        .filter_map(|(_, host)| host.mpoa.as_ref());
    let place = |mpoa: &MpoaFile| match mpoa {
        MpoaFile::Switch(on) => on.value.then_some(on.at),
        MpoaFile::Params(params) => Some(params.place),
    };
    let Some(at) = file.mpoa.iter().chain(hosts).find_map(place) else {
        return;
    };
    d.warning(
        at,
        "MPOA without a router with MPOA: there will be no shortcuts",
    )
    .hint("a router with MPOA between two ELANs answers for what is behind it");
}

/// The hosts with an interface on an ELAN, or on a Classical IP subnet.
fn hosts_on(lab: &Lab, id: ElanId) -> impl Iterator<Item = (&Node, &Host, &Lec)> {
    lab.hosts().flat_map(move |(_, node, host)| {
        let lecs = host.lecs.iter().filter(move |lec| lec.elan == id);
        lecs.map(move |lec| (node, host, lec))
    })
}

/// Warns of MPOA clients that can hear of no server: in LANE version 1 no station tells its kind of device.
fn no_announcement(file: &LabFile, lab: &Lab, (id, elan): (ElanId, &Elan), d: &mut Diagnostics) {
    let servers = lab.routers().any(|(_, _, router)| {
        router.mpoa.is_some() && router.lecs.iter().any(|lec| lec.elan == id)
    });
    let told = |host: &Host| {
        host.mpoa
            .as_ref()
            .is_some_and(|mpc| mpc.static_mps.is_empty())
    };
    let clients = hosts_on(lab, id).filter(|(_, host, _)| told(host));
    let names: Vec<&str> = clients.map(|(node, ..)| node.name.as_str()).collect();
    if !elan.is_own() || elan.v2 || !servers || names.is_empty() {
        return;
    }
    if let Some(at) = elan_at(file, &elan.name) {
        let (who, name) = (some(&names), &elan.name);
        let text = format!(
            "there will be no shortcuts from {who}: on {name} LANE has version 1, so no MPOA server announces itself"
        );
        d.warning(at, text).hint(
            "without 'version: 1' the ELAN has version 2, which tells clients what a device is",
        );
    }
}

/// Warns of a Classical IP subnet with NHRP whose hosts have no server.
fn no_nhrp(file: &LabFile, lab: &Lab, (id, elan): (ElanId, &Elan), d: &mut Diagnostics) {
    if elan.clip.as_ref().is_none_or(|lis| !lis.nhrp) || lab.outside().next().is_some() {
        return;
    }
    let alone = hosts_on(lab, id).filter(|(_, host, _)| host.nhrp.is_none());
    let names: Vec<&str> = alone.map(|(node, ..)| node.name.as_str()).collect();
    let mut table = file.clip.iter().flat_map(|table| &table.0);
    let found = table.find(|(name, _)| name.value.0 == elan.name);
    if let Some((name, _)) = found.filter(|_| !names.is_empty()) {
        let text = format!(
            "NHRP without a server: there will be no shortcuts from {}",
            some(&names)
        );
        d.warning(name.at, text)
            .hint("the router of a host's default route is its NHRP server, unless 'mpoa: false' turns that off");
    }
}

/// Warns of hosts that the LECS will refuse, because an ELAN is for other ATM addresses.
fn no_members(file: &LabFile, lab: &Lab, (id, elan): (ElanId, &Elan), d: &mut Diagnostics) {
    if !elan.is_own() || elan.members.is_empty() {
        return;
    }
    let belongs = |lec: &Lec| {
        let listed = elan
            .members
            .iter()
            .any(|prefix| lec.address.0.starts_with(prefix));
        listed || elan.macs.contains(&lec.mac)
    };
    let nodes = lab.nodes().filter(|(_, node)| {
        let mut lecs = node.lecs().iter().filter(|lec| lec.elan == id);
        lecs.any(|lec| !belongs(lec))
    });
    let nodes: Vec<&Node> = nodes.map(|(_, node)| node).collect();
    let names: Vec<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
    if let (Some(at), false) = (elan_at(file, &elan.name), names.is_empty()) {
        let text = format!(
            "the LECS will refuse {}: its ATM address is not among the members of {}",
            some(&names),
            elan.name
        );
        let own = nodes.first().and_then(|node| {
            let lec = node
                .lecs()
                .iter()
                .find(|lec| lec.elan == id && !belongs(lec));
            Some(format!("{} has {}", node.name, lec?.address))
        });
        d.warning(at, text).hint(format!(
            "{}; a member may be given by its leading octets",
            own.unwrap_or_default()
        ));
    }
}

/// The place of an ELAN's name in the file.
fn elan_at(file: &LabFile, name: &str) -> Option<Span> {
    let mut all = file.lane.iter().flat_map(|lane| &lane.elans.0);
    let found = all.find(|(known, _)| known.value.0 == name);
    found.map(|(known, _)| known.at)
}

/// Names for a sentence: all of a few, or the number of many.
fn some(names: &[&str]) -> String {
    match names {
        [first, .., last] if names.len() > 5 => {
            format!("{} nodes ({first} to {last})", names.len())
        }
        few => few.join(", "),
    }
}

/// Warns of members that cannot find each other: members of a Classical IP subnet need a server, preconfigured next
/// hops, or permanent connections.
fn no_way(file: &LabFile, lab: &Lab, (id, elan): (ElanId, &Elan), d: &mut Diagnostics) {
    let Some(lis) = &elan.clip else {
        return;
    };
    let on_it = |node: &Node| node.lecs().iter().any(|lec| lec.elan == id);
    let members: Vec<NodeId> = lab
        .nodes()
        .filter(|(_, node)| on_it(node))
        .map(|(id, _)| id)
        .collect();
    let known = lis.next_hops.iter().any(|hop| hop.address.is_some());
    if members.len() < 2 || !lis.servers.is_empty() || known {
        return;
    }
    // A permanent connection leads to another member, or out of the lab.
    let leads =
        |id: NodeId| on_it(lab.node(id)) || matches!(lab.node(id).kind, NodeKind::Outside(_));
    let connected = |member: NodeId| {
        let mut pvcs = lab.pvcs.iter().map(|pvc| pvc.ends.map(|(node, _)| node));
        pvcs.any(|[a, b]| (a == member && leads(b)) || (b == member && leads(a)))
    };
    let names = members.iter().filter(|member| !connected(**member));
    let names: Vec<&str> = names
        .map(|member| lab.node(*member).name.as_str())
        .collect();
    if names.is_empty() {
        return;
    }
    let mut table = file.clip.iter().flat_map(|table| &table.0);
    if let Some((name, _)) = table.find(|(name, _)| name.value.0 == elan.name) {
        let elan = &elan.name;
        let text = match &names[..] {
            all if all.len() == members.len() => {
                format!("the members of {elan} have no way to each other")
            }
            [one] => format!("{one} has no way to the other members of {elan}"),
            [first, .., last] if names.len() > 5 => {
                let count = names.len();
                format!("{count} members of {elan} have no way to the others: {first} to {last}")
            }
            some => {
                let some = some.join(", ");
                format!("some members of {elan} have no way to the others: {some}")
            }
        };
        d.warning(name.at, text).hint(
            "give it a 'server:', 'next_hops:' with addresses, or 'pvcs:' between its members",
        );
    }
}

/// Reports a local port that two links out of the lab share.
fn one_port(file: &LabFile, d: &mut Diagnostics) {
    let mut taken: Vec<(bool, SocketAddr, Span)> = Vec::new();
    for link in outside::links(file) {
        let udp = link.options.udp.as_ref().map(|udp| &udp.local);
        let tcp = link
            .options
            .atmtcp
            .as_ref()
            .and_then(|tcp| tcp.listen.as_ref());
        let l2tp = link.options.l2tp.as_ref().and_then(|l2tp| {
            let (ip, port) = l2tp.local.value.0;
            Some((SocketAddr::new(ip, port?), l2tp.local.at))
        });
        let place = |local: &At<Socket>| (local.value.0, local.at);
        let all = [
            (true, udp.map(place)),
            (false, tcp.map(place)),
            (true, l2tp),
        ];
        for (udp, (own, at)) in all.into_iter().filter_map(|(udp, at)| Some((udp, at?))) {
            if own.port() == 0 {
                continue;
            }
            let same = |other: &&(bool, SocketAddr, Span)| {
                let any = own.ip().is_unspecified() || other.1.ip().is_unspecified();
                other.0 == udp && other.1.port() == own.port() && (any || other.1.ip() == own.ip())
            };
            if let Some((_, _, first)) = taken.iter().find(same) {
                d.warning(at, "another link of this lab has this local port")
                    .see(*first, "the first is here");
            }
            taken.push((udp, own, at));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::resolve::tests::SMALL;

    fn warnings(text: &str, set: &[&str]) -> Vec<String> {
        let set: Vec<crate::Override> = set.iter().map(|&one| one.into()).collect();
        let checked = crate::parse("t.atm.yml", text, &set).unwrap_or_else(|d| panic!("{d}"));
        let checked = checked.in_virtual_time();
        let texts = checked.warnings.iter().map(|one| one.message.clone());
        texts.collect()
    }

    #[test]
    fn what_never_happens_is_told() {
        let flow = |times: &str| format!("traffic: [{{ from: x, to: y, kind: tcp, {times} }}]\n");
        let (short, unlimited) = (flow("start: 1s, duration: 2s"), flow("start: 40s"));
        let faults = "faults: [{ at: 5s, link_down: s1-s2 }, { at: 6s, link_up: s1-s2 }]\n";
        let program = SMALL.replace(
            "ip: 10.1.0.10",
            "ip: 10.1.0.10, sockets: [{ call: y, start: 7s }]",
        );
        let clip = "switches: { s: {} }\nclip: { w: { subnet: 10.5.0.0/24 } }\n\
            hosts: { p: { on: s, elan: w, ip: 10.5.0.1 }, q: { on: s, elan: w, ip: 10.5.0.2 } }\n";
        let three = clip.replace(
            "hosts: {",
            "hosts: { o: { on: s, elan: w, ip: 10.5.0.3 }, other: { on: s, elan: v, ip: 10.6.0.1 },",
        );
        let three = three.replace("clip: {", "clip: { v: { subnet: 10.6.0.0/24 },");
        let no_router = SMALL.replace(
            "routers: { r: { on: s2, elans: { a: 10.1.0.1, b: 10.2.0.1 } } }\n",
            "",
        );
        let links = |way: &str| SMALL.replace("[[s1, s2]]", &format!("[[s1, s2], {way}]"));
        let udp = "[s1, { udp: { local: '127.0.0.1:7', peer: '127.0.0.1:8' } }], \
            [s2, { udp: { local: '0.0.0.0:7', peer: '127.0.0.1:9' } }]";
        let tcp = "[s1, { atmtcp: { listen: '127.0.0.1:7' } }], [s2, { atmtcp: { listen: '127.0.0.1:7' } }]";
        for (text, says) in [
            (
                format!("{SMALL}until: 0s\n"),
                "the run ends before anything happens",
            ),
            (
                format!("{SMALL}{faults}until: 6s\n"),
                "this happens when the run is over",
            ),
            (
                format!("{program}until: 7s\n"),
                "this program starts when the run is over",
            ),
            (
                format!("{SMALL}mpoa: {{ start: 6s }}\nuntil: 6s\n"),
                "MPOA starts when the run is over",
            ),
            (
                format!("{SMALL}mpoa: {{ start: 20s }}\n{short}"),
                "MPOA starts when the run is over",
            ),
            (
                format!("{SMALL}{unlimited}"),
                "this flow starts when the run is over",
            ),
            (
                format!("{no_router}mpoa: true\n"),
                "MPOA without a router with MPOA: there will be no shortcuts",
            ),
            (
                clip.to_owned(),
                "the members of w have no way to each other",
            ),
            (
                format!("{three}pvcs: [{{ from: p, vc: 0.100, to: q }}]\n"),
                "o has no way to the other members of w",
            ),
            (
                format!("{three}pvcs: [{{ from: p, vc: 0.100, to: other }}]\n"),
                "the members of w have no way to each other",
            ),
            (
                SMALL.replace("[[s1, s2]]", "[[s1, s2, { cdvt: 1ms }]]"),
                "'cdvt' has no effect: nothing polices between these switches",
            ),
            (
                SMALL.replace("[[s1, s2]]", "[[s1, s2, { cdvt: 1ms, police: false }]]"),
                "'cdvt' has no effect: nothing polices between these switches",
            ),
            (links(udp), "another link of this lab has this local port"),
            (links(tcp), "another link of this lab has this local port"),
        ] {
            assert_eq!(warnings(&text, &[]), [says], "{text}");
        }
    }

    /// Clients that can never get what they are there for.
    #[test]
    fn clients_that_cannot_work_are_named() {
        let lane = |elan: &str, mpoa: &str| {
            format!(
                "switches: {{ s: {{}} }}\nmpoa: {mpoa}\n\
                 lane: {{ on: s, elans: {{ a: {{ subnet: 10.1.0.0/24{elan} }}, b: {{ subnet: 10.2.0.0/24 }} }} }}\n\
                 routers: {{ r: {{ on: s, elans: {{ a: 10.1.0.1, b: 10.2.0.1 }} }} }}\n\
                 hosts: {{ x: {{ on: s, elan: a, ip: 10.1.0.10 }}, y: {{ on: s, elan: b, ip: 10.2.0.10 }} }}\n"
            )
        };
        let v1 = "there will be no shortcuts from x: on a LANE has version 1, so no MPOA server announces itself";
        assert_eq!(warnings(&lane(", version: 1", "true"), &[]), [v1]);
        assert_eq!(warnings(&lane(", version: 1", "false"), &[]), [""; 0]);
        assert_eq!(warnings(&lane(", version: 2", "true"), &[]), [""; 0]);
        let known = "{ static_mps: [{ mac: '02:00:00:00:00:07', \
            address: 47.0005.80FFE1000000F21A26D8.0020EA0000B0.34 }] }";
        assert_eq!(warnings(&lane(", version: 1", known), &[]), [""; 0]);

        let members = |list: &str| lane(&format!(", members: [{list}]"), "false");
        let refused = "the LECS will refuse r, x: its ATM address is not among the members of a";
        assert_eq!(warnings(&members("47.0005"), &[]), [refused]);
        assert_eq!(warnings(&members("47.0005, 47.0091"), &[]), [""; 0]);

        let clip = |nhrp: &str, router: &str| {
            format!(
                "switches: {{ s: {{}} }}\n\
                 clip: {{ c: {{ subnet: 10.5.0.0/24, server: p, nhrp: {nhrp} }} }}\n{router}\
                 hosts: {{ p: {{ on: s, elan: c, ip: 10.5.0.2 }}, q: {{ on: s, elan: c, ip: 10.5.0.3 }} }}\n"
            )
        };
        let router = "routers: { r: { on: s, elans: { c: 10.5.0.1 } } }\n";
        let alone = "NHRP without a server: there will be no shortcuts from p, q";
        assert_eq!(warnings(&clip("true", ""), &[]), [alone]);
        assert_eq!(warnings(&clip("false", ""), &[]), [""; 0]);
        assert_eq!(warnings(&clip("true", router), &[]), [""; 0]);
    }

    #[test]
    fn what_does_happen_is_not_warned_of() {
        let faults = "faults: [{ at: 5s, link_down: s1-s2 }, { at: 6s, link_up: s1-s2 }]\n";
        let ports = "[s1, { udp: { local: '127.0.0.1:7', peer: '127.0.0.1:8' } }], \
            [s2, { atmtcp: { listen: '127.0.0.1:7' } }], \
            [s2, { udp: { local: '127.0.0.2:7', peer: '127.0.0.1:8' } }]";
        for text in [
            format!("{SMALL}{faults}until: 7s\n"),
            format!("{SMALL}mpoa: true\n"),
            SMALL.replace("[[s1, s2]]", "[[s1, s2, { cdvt: 1ms, police: true }]]"),
            SMALL.replace("[[s1, s2]]", "[[s1, s2, { cdvt: 1ms, police: all }]]"),
            SMALL.replace("[[s1, s2]]", &format!("[[s1, s2], {ports}]")),
        ] {
            assert_eq!(warnings(&text, &[]), [""; 0], "{text}");
        }
        // A user who ends a run early by an option intends that.
        assert_eq!(
            warnings(&format!("{SMALL}{faults}"), &["until=1s"]),
            [""; 0]
        );
    }

    #[test]
    fn a_run_in_virtual_time_says_that_it_has_no_kernels() {
        let text = SMALL.replace("ip: 10.1.0.10", "ip: 10.1.0.10, kernel: true");
        let checked = crate::parse("t.atm.yml", &text, &[]).expect("a lab");
        assert_eq!(checked.warnings.iter().count(), 0);
        let said = checked.in_virtual_time().warnings.to_string();
        assert!(
            said.contains("warning: in virtual time x is no Linux kernel"),
            "{said}"
        );
    }
}
