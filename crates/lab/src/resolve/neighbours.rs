//! Permanent neighbours of hosts, which are never requested by ARP.

use super::stage::Joining;
use crate::diag::Diagnostics;
use crate::field::{At, Table};
use crate::file::{Ip, LabFile, Mac};
use crate::model::{Lab, NodeId, NodeKind};
use aerostat_wire::MacAddr;
use std::net::Ipv4Addr;

/// Limit of them at one host: half of the host's table.
const MOST: usize = 512;

/// Fills the neighbours of the hosts.
pub(super) fn neighbours(file: &LabFile, lab: &mut Joining<'_>, d: &mut Diagnostics) {
    let hosts: Vec<NodeId> = lab.hosts().map(|(id, _, _)| id).collect();
    for (&id, (_, section)) in hosts.iter().zip(&file.hosts.0) {
        if let Some(table) = &section.neighbours {
            let given = given(lab, id, table, d);
            if let NodeKind::Host(host) = &mut lab.nodes_mut()[id.0].kind {
                host.neighbours = given;
            }
        }
    }
}

fn given(
    lab: &Lab,
    id: NodeId,
    table: &Table<Ip, At<Mac>>,
    d: &mut Diagnostics,
) -> Vec<(Ipv4Addr, MacAddr)> {
    let Some(lec) = lab.node(id).lecs().first() else {
        return Vec::new();
    };
    let (elan, name) = (lab.elan(lec.elan), &lab.node(id).name);
    if let Some((first, _)) = table.0.first()
        && !elan.is_ethernet()
    {
        let text = format!("stations of {elan} have no MAC addresses");
        let found = d.error(first.at, text);
        if elan.clip.is_some() {
            found.hint("'clip:' has entries of its ATMARP server");
        }
        return Vec::new();
    }
    if let Some((one, _)) = table.0.get(MOST) {
        d.error(one.at, format!("more than {MOST} neighbours at one host"));
    }
    let mut given = Vec::new();
    for (address, mac) in table.0.iter().take(MOST) {
        let (ip, subnet) = (address.value.0, elan.subnet);
        let edge = subnet.length < 31 && (ip == subnet.network || ip == subnet.broadcast());
        if !subnet.contains(ip) || edge {
            d.error(
                address.at,
                format!("{ip} is no address of a host on {subnet}"),
            )
            .hint(format!("neighbours of {name} are on its own subnet"));
        } else if Some(ip) == lec.ip {
            d.error(address.at, format!("{ip} is {name}'s own address"));
        } else if mac.value.0.is_group() || mac.value.0.0 == [0; 6] {
            let text = format!("{} is no MAC address of a single station", mac.value.0);
            d.error(mac.at, text)
                .hint("the lowest bit of its first octet is 0");
        } else {
            warn_of_another(lab, lec.elan, (ip, mac), d);
            given.push((ip, mac.value.0));
        }
    }
    given
}

/// Warns of an address that differs from the real one. The difference may be intended, but is reported.
fn warn_of_another(
    lab: &Lab,
    elan: crate::model::ElanId,
    (ip, mac): (Ipv4Addr, &At<Mac>),
    d: &mut Diagnostics,
) {
    let members = lab.nodes().flat_map(|(_, node)| {
        let lecs = node
            .lecs()
            .iter()
            .filter(|lec| lab.network_of(lec.elan) == lab.network_of(elan));
        lecs.map(move |lec| (node, lec))
    });
    let mut members = members.filter(|(_, lec)| lec.ip == Some(ip) && lec.mac != mac.value.0);
    if let Some((node, lec)) = members.next() {
        let text = format!("{ip} is {}, whose MAC address is {}", node.name, lec.mac);
        d.warning(mac.at, text)
            .hint("frames for it are lost, or reach another station");
    }
}

#[cfg(test)]
mod tests {
    use crate::resolve::tests::{SMALL, lab};

    fn error(text: &str) -> String {
        let found = crate::parse("t.atm.yml", text, &[]);
        found.expect_err("an error").to_string()
    }

    fn with(neighbours: &str) -> String {
        let host = format!("ip: 10.1.0.10, neighbours: {{ {neighbours} }}");
        SMALL.replace("ip: 10.1.0.10", &host)
    }

    #[test]
    fn neighbours_are_on_the_subnet_and_single_stations() {
        let model = lab(&with("10.1.0.77: \"02:a7:00:00:00:01\""));
        let (_, _, host) = model.hosts().next().unwrap();
        let (address, mac) = host.neighbours[0];
        assert_eq!(
            (address.to_string(), mac.to_string()),
            ("10.1.0.77".into(), "02:a7:00:00:00:01".into())
        );
        for (wrong, says) in [
            (
                "10.2.0.77: \"02:a7:00:00:00:01\"",
                "10.2.0.77 is no address of a host on 10.1.0.0/24",
            ),
            (
                "10.1.0.255: \"02:a7:00:00:00:01\"",
                "10.1.0.255 is no address of a host",
            ),
            (
                "10.1.0.10: \"02:a7:00:00:00:01\"",
                "10.1.0.10 is x's own address",
            ),
            (
                "10.1.0.77: \"01:a7:00:00:00:01\"",
                "no MAC address of a single station",
            ),
            (
                "10.1.0.77: \"00:00:00:00:00:00\"",
                "no MAC address of a single station",
            ),
            ("10.1.0.77: 10.1.0.78", "expected a MAC address"),
        ] {
            let found = error(&with(wrong));
            assert!(found.contains(says), "{found}");
        }
        let many =
            (0..600).map(|n| format!("10.1.{}.{}: \"02:00:00:00:00:01\"", n / 200, 20 + n % 200));
        let many = with(&many.collect::<Vec<_>>().join(", ")).replace("10.1.0.0/24", "10.1.0.0/16");
        assert!(error(&many).contains("more than 512 neighbours"));
    }

    #[test]
    fn a_neighbour_with_another_hosts_mac_address_is_said() {
        let text = with("10.1.0.1: \"02:a7:00:00:00:01\"");
        let checked = crate::parse("t.atm.yml", &text, &[]).unwrap();
        assert!(
            checked
                .warnings
                .to_string()
                .contains("10.1.0.1 is r, whose MAC address is")
        );
    }
}
