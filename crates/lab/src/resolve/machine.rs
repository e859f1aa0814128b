//! Parts that a lab file may not have if its one node is the machine itself (`aerostat host`).

use super::outside;
use crate::diag::Span;
use crate::field::At;
use crate::file::{HostFile, LabFile, LinkFile, Name, RouterFile};

/// Something that such a file may not have, or lacks: its place, what is wrong, and what to do.
pub(crate) type Obstacle = (Span, String, String);

/// The hint for parts that make further nodes.
const ONE: &str = "remove it: 'aerostat host' runs one node; 'aerostat up' runs whole labs";

/// All obstacles in the order of their kinds; a lab without any has one node and its link out of the lab.
pub(crate) fn obstacles(file: &LabFile) -> Vec<Obstacle> {
    let routers = || file.routers.iter().flat_map(|table| &table.0);
    let hosts = || file.hosts.0.iter();
    let mut names = routers()
        .map(|(name, _)| name)
        .chain(hosts().map(|(name, _)| name));
    let mut all = Vec::new();
    let Some(own) = names.next() else {
        let text = "no host: one entry of 'hosts:' or 'routers:' is this machine".to_owned();
        all.push((file.place, text, "see docs/host.md".to_owned()));
        return all;
    };
    let own_name = &own.value.0;
    for further in names {
        let text = format!("{} is a second node beside {own_name}", further.value.0);
        all.push((further.at, text, ONE.to_owned()));
    }
    for (switch, _) in &file.switches.0 {
        let text = format!("switch {} is a node, too", switch.value.0);
        let hint = format!(
            "remove it: the link goes out from the host itself, [{own_name}, {{ udp: ... }}]"
        );
        all.push((switch.at, text, hint));
    }
    if let Some(on) = file.lane.as_ref().and_then(|lane| lane.on.as_ref()) {
        let hint = "remove 'on:', and give each ELAN its servers: 'lecs: well-known'";
        all.push((
            on.at,
            "LANE servers would be a second node".to_owned(),
            hint.to_owned(),
        ));
    }
    links(file, own, &mut all);
    for (name, host) in hosts() {
        of_host(&name.value.0, host, &mut all);
    }
    for (name, router) in routers() {
        of_router(&name.value.0, router, &mut all);
    }
    all
}

fn links(file: &LabFile, own: &At<Name>, all: &mut Vec<Obstacle>) {
    for link in file.links.iter().flatten() {
        if let LinkFile::Trunk(link) = link {
            let [a, b] = &link.ends;
            let text = format!(
                "the link from {} to {} stays inside the lab",
                a.value, b.value
            );
            all.push((
                a.at,
                text,
                "remove it, or lead it out of the lab".to_owned(),
            ));
        }
    }
    let own_name = &own.value.0;
    if !outside::links(file).any(|link| link.on.value == *own_name) {
        let text = format!("{own_name} has no link out of the lab");
        let hint = format!(
            "for example: links: [[{own_name}, {{ udp: {{ local: 198.51.100.2:10001, peer: 198.51.100.1:10001 }} }}]]"
        );
        all.push((own.at, text, hint));
    }
}

fn of_host(name: &str, host: &HostFile, all: &mut Vec<Obstacle>) {
    not_embedded(name, host.kernel.as_ref(), all);
    let stations = host.bridge.as_ref().and_then(|table| table.0.first());
    if let Some((station, _)) = stations {
        let text = format!("{} would be a station of its own", station.value.0);
        let hint = "remove 'bridge:'; with 'lec: { proxy: true, bridge: br0 }' a bridge of this machine has the interface as a port";
        all.push((station.at, text, hint.to_owned()));
    }
    if let Some(port) = host.lec.ports.iter().flatten().next() {
        let text = format!("{} would be taken from this machine", port.value);
        let hint = "remove 'ports:'; 'bridge: br0' puts the interface of the host into a bridge with ports of its own";
        all.push((port.at, text, hint.to_owned()));
    }
    let proxy = host.lec.proxy.get();
    let routes = host.given.of(&["gateway", "routes"]);
    for (key, at) in routes.filter(|_| proxy) {
        let text = format!("the interface has no address, and so no {key}");
        let hint = "remove it: address and routes belong to the bridge, as 'ip address' sets them";
        all.push((at, text, hint.to_owned()));
    }
    if let Some((vlan, _)) = host.vlans.as_ref().and_then(|table| table.0.first()) {
        let hint = "remove 'vlans:'; a host for each ELAN, each with a file of its own, has them";
        let text = "hosts with VLANs are embedded".to_owned();
        all.push((vlan.at, text, hint.to_owned()));
    }
    if let Some(tcp) = &host.tcp {
        let text = "these keys would change TCP for all interfaces of this machine".to_owned();
        let hint =
            "remove 'tcp:'; 'sysctl net.ipv4.tcp_congestion_control' and its neighbours set them";
        all.push((tcp.place, text, hint.to_owned()));
    }
}

fn of_router(name: &str, router: &RouterFile, all: &mut Vec<Obstacle>) {
    not_embedded(name, router.kernel.as_ref(), all);
}

/// Refuses `kernel: false`: the machine is a kernel.
fn not_embedded(name: &str, kernel: Option<&At<bool>>, all: &mut Vec<Obstacle>) {
    if let Some(kernel) = kernel.filter(|kernel| !kernel.value) {
        let text = format!("{name} is the kernel of this machine");
        all.push((kernel.at, text, "remove 'kernel: false'".to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use crate::build::{Builder, Flavour};

    const GOOD: &str = "
switches: {}
links: [[here, { udp: { local: 127.0.0.1:7001, peer: 127.0.0.1:7002 } }]]
lane: { elans: { a: { subnet: 10.1.0.0/24, lecs: well-known } } }
hosts: { here: { elan: a, ip: 10.1.0.50, ilmi: true } }
";

    fn checked(text: &str) -> crate::Checked {
        crate::parse("m.atm.yml", text, &[]).unwrap_or_else(|d| panic!("{d}"))
    }

    #[test]
    fn one_node_with_a_link_out_of_the_lab_is_a_machine() {
        let router = GOOD
            .replace(
                "hosts: { here: { elan: a, ip: 10.1.0.50, ilmi: true } }",
                "hosts: {}",
            )
            .replace(
                "switches: {}",
                "switches: {}\nrouters: { here: { elans: { a: 10.1.0.50 }, ilmi: true } }",
            );
        for text in [GOOD, &router] {
            let checked = checked(text).as_machine().unwrap_or_else(|d| panic!("{d}"));
            let node = checked.lab.find("here").unwrap();
            let builder = Builder::new(&checked.lab, 1, Flavour::Kernel);
            assert!(builder.is_kernel(node));
            let (peer, outside) = checked.lab.uplink(node).unwrap();
            assert_eq!(checked.lab.node(peer).name, "outside1");
            assert_eq!(outside.attachment.switch, node);
            assert_eq!(checked.warnings.iter().count(), 0);
        }
    }

    #[test]
    fn each_part_that_needs_more_is_told_with_its_place_and_a_remedy() {
        let second = GOOD.replace(
            "ilmi: true } }",
            "ilmi: true }, there: { elan: w, ip: 10.5.0.2 } }",
        );
        let second = second.replace("/7002 } }]]", "");
        let second = second.replace(
            "7002 } }]]",
            "7002 } }], [there, { udp: { local: 127.0.0.1:7003, peer: 127.0.0.1:7004 } }]]\n\
             clip: { w: { subnet: 10.5.0.0/24, servers: 47.0005.80FFE1000000F21A26D8.0020EA0000B0.00 } }",
        );
        let switch = GOOD
            .replace("switches: {}", "switches: { s: {} }")
            .replace("[[here,", "[[s,")
            .replace("here: { elan", "here: { on: s, elan");
        let key = |key: &str| GOOD.replace("ilmi: true", &format!("ilmi: true, {key}"));
        for (text, says) in [
            (
                second,
                &[
                    "there is a second node beside here",
                    "remove it: 'aerostat host'",
                ][..],
            ),
            (
                switch,
                &[
                    "switch s is a node, too",
                    "here has no link out of the lab",
                    "m.atm.yml:2:13",
                ],
            ),
            (
                key("kernel: false"),
                &[
                    "here is the kernel of this machine",
                    "remove 'kernel: false'",
                ],
            ),
            (
                key("tcp: { buffer: 64KiB }"),
                &["change TCP for all interfaces", "remove 'tcp:'"],
            ),
            (
                GOOD.replace("ilmi: true", "bridge: { p: 10.1.0.51 }"),
                &["p would be a station of its own", "remove 'bridge:'"],
            ),
        ] {
            let Err(found) = checked(&text).as_machine() else {
                panic!("accepted: {text}");
            };
            let said = found.to_string();
            for part in says {
                assert!(said.contains(part), "{part}: {said}");
            }
        }
    }
}
