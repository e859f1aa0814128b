//! Limits on the size of a lab, and networks that can be its subnets.
//!
//! Counts are checked before anything is built, because later steps number nodes with 16 bits, and compare all entries
//! of a list with each other.

use crate::diag::{Diagnostics, Span};
use crate::field::At;
use crate::file::{LabFile, Net};
use crate::model::{Lab, Limits, Scale};
use crate::parameter::Given;
use crate::units::IpNet;
use aerostat_proto::parameters::Parameters;
use std::collections::BTreeSet;
use std::net::Ipv4Addr;

/// Limit of nodes, well within the 16 bits of a node's number in its MAC address.
const MAX_NODES: usize = 12_000;
/// Limit of links between switches; together with one link for each node, all ports of a switch have numbers of 16
/// bits.
const MAX_LINKS: usize = 10_000;
/// Limit of flows: each has a port of its own at either end.
pub(super) const MAX_FLOWS: usize = 10_000;
/// Limit of permanent connections: each is admitted together with all others.
const MAX_PVCS: usize = 2_000;
/// Limit of faults.
const MAX_FAULTS: usize = 100_000;

/// Limit of LANE clients: each needs three of some 65 000 labels on the links of the LANE servers while it joins.
const MAX_CLIENTS: usize = 20_000;

/// IPv4 networks in which no host can have an address. Source: RFC 6890 §2.2.2.
const NOT_FOR_HOSTS: [(IpNet, &str); 5] = [
    (net([0, 0, 0, 0], 8), "\"this network\""),
    (net([127, 0, 0, 0], 8), "the loopback network"),
    (net([169, 254, 0, 0], 16), "for link-local addresses"),
    (net([224, 0, 0, 0], 4), "for multicast"),
    (net([240, 0, 0, 0], 4), "reserved"),
];

const fn net([a, b, c, d]: [u8; 4], length: u8) -> IpNet {
    IpNet {
        network: Ipv4Addr::new(a, b, c, d),
        length,
    }
}

/// The limits of nodes that the file gives, or the defaults.
pub(super) fn limits(file: &LabFile) -> Limits {
    let mut all = Limits::default();
    let Some(given) = &file.limits else {
        return all;
    };
    let names = &mut all.given;
    take(
        "port",
        given.port.as_ref().map(|section| &section.given),
        &mut all.port,
        names,
    );
    take(
        "mps",
        given.mps.as_ref().map(|section| &section.given),
        &mut all.mps,
        names,
    );
    take(
        "nhrp",
        given.nhrp.as_ref().map(|section| &section.given),
        &mut all.nhrp,
        names,
    );
    all
}

/// Takes the limits of a section that the file gives, and their names.
fn take(
    section: &'static str,
    given: Option<&Given>,
    limits: &mut impl Parameters,
    names: &mut BTreeSet<(&'static str, &'static str)>,
) {
    if let Some(given) = given {
        given.apply(limits);
        names.extend(given.parameters().map(|(key, _)| (section, key)));
    }
}

/// Refuses a lab that exceeds a limit. True if the lab is small enough for further checks.
pub(crate) fn fits(file: &LabFile, d: &mut Diagnostics) -> bool {
    let routers = file.routers.as_ref().map_or(0, |table| table.0.len());
    let standby = file.lane.as_ref().and_then(|lane| lane.standby.as_ref());
    let outside = super::outside::links(file).count();
    let links = file.links.as_ref().map_or(0, Vec::len) - outside;
    let nodes = file.switches.0.len() + routers + file.hosts.0.len() + outside;
    let pvcs = file.pvcs.as_deref().unwrap_or_default();
    let flows = file.traffic.as_deref().unwrap_or_default();
    let faults = file.faults.as_deref().unwrap_or_default();
    let of = |count, most, what, at: Option<Span>| (count, most, what, at.unwrap_or(file.place));
    let counts = [
        of(
            nodes + standby.map_or(0, Vec::len),
            MAX_NODES,
            "nodes",
            None,
        ),
        of(links, MAX_LINKS, "links between switches", None),
        of(
            pvcs.len(),
            MAX_PVCS,
            "permanent connections",
            pvcs.get(MAX_PVCS).map(|pvc| pvc.place),
        ),
        of(
            flows.len(),
            MAX_FLOWS,
            "flows",
            flows.get(MAX_FLOWS).map(|flow| flow.place),
        ),
        of(
            faults.len(),
            MAX_FAULTS,
            "faults",
            faults.get(MAX_FAULTS).map(|fault| fault.place),
        ),
    ];
    let mut fits = true;
    for (count, most, what, at) in counts {
        if count > most {
            d.error(at, format!("{count} {what}: a lab has at most {most}"));
            fits = false;
        }
    }
    fits
}

/// Refuses a subnet whose addresses hosts cannot have, or that is too small or too large for hosts. `what` is the word
/// for its kind.
pub(super) fn subnet(given: &At<Net>, what: &str, d: &mut Diagnostics) {
    let net = given.value.0;
    if !(8..=30).contains(&net.length) {
        let text = format!("/{} is no subnet for {what}: use /8 to /30", net.length);
        d.error(given.at, text);
    } else if let Some((with, why)) = NOT_FOR_HOSTS.iter().find(|(with, _)| with.overlaps(net)) {
        d.error(
            given.at,
            format!("hosts cannot have addresses of {net}: {with} is {why}"),
        )
        .hint("for example: subnet: 10.1.0.0/24");
    }
}

/// Refuses more LANE clients than the links of the LANE servers have labels for.
pub(super) fn clients(file: &LabFile, lab: &Lab, d: &mut Diagnostics) {
    let count = Scale::of(lab).all;
    if let Some(section) = file.lane.as_ref().filter(|_| count > MAX_CLIENTS) {
        let text = format!(
            "{count} LANE clients: the lab's LANE servers have labels for at most {MAX_CLIENTS}"
        );
        d.error(section.place, text);
    }
}

#[cfg(test)]
mod tests {
    use crate::resolve::tests::SMALL;

    fn error(text: &str) -> String {
        let found = crate::parse("t.atm.yml", text, &[]);
        found.expect_err("an error").to_string()
    }

    #[test]
    fn networks_whose_addresses_no_host_can_have_are_refused_as_subnets() {
        for (network, host, why) in [
            ("0.1.0.0/24", "0.1.0", "\"this network\""),
            ("127.1.0.0/24", "127.1.0", "loopback"),
            ("169.254.3.0/24", "169.254.3", "link-local"),
            ("224.1.0.0/24", "224.1.0", "multicast"),
            ("239.1.0.0/24", "239.1.0", "multicast"),
            ("240.1.0.0/24", "240.1.0", "reserved"),
            ("255.255.255.0/24", "255.255.255", "reserved"),
            ("169.0.0.0/8", "169.0.0", "link-local"),
        ] {
            let text = SMALL
                .replace("10.1.0.0/24", network)
                .replace("10.1.0.", &format!("{host}."));
            let said = error(&text);
            assert!(said.contains(why), "{network}: {said}");
            assert!(
                said.starts_with("t.atm.yml:4:39: error: hosts cannot have addresses of"),
                "{said}"
            );
            let clip = format!(
                "switches: {{ s: {{}} }}\nclip: {{ w: {{ subnet: {network}, server: h }} }}\n\
                 hosts: {{ h: {{ on: s, elan: w, ip: {host}.1 }} }}\n"
            );
            let said = error(&clip);
            assert!(said.contains(why), "{network}: {said}");
        }
        for length in [0, 7, 31, 32] {
            let clip = format!(
                "switches: {{ s: {{}} }}\nclip: {{ w: {{ subnet: 0.0.0.0/{length} }} }}\n\
                 hosts: {{ h: {{ on: s, elan: w, ip: 10.1.0.1 }} }}\n"
            );
            assert!(error(&clip).contains(&format!("/{length} is no subnet")));
        }
    }

    #[test]
    fn a_subnet_of_classical_ip_has_an_mtu_that_every_ip_stack_takes() {
        for (mtu, good) in [(575, false), (576, true), (65_521, true), (65_522, false)] {
            let clip = format!(
                "switches: {{ s: {{}} }}\nclip: {{ w: {{ subnet: 10.1.0.0/24, server: h, mtu: {mtu} }} }}\n\
                 hosts: {{ h: {{ on: s, elan: w, ip: 10.1.0.1 }}, g: {{ on: s, elan: w, ip: 10.1.0.2 }} }}\n"
            );
            match crate::parse("t.atm.yml", &clip, &[]) {
                Ok(_) => assert!(good, "{mtu}"),
                Err(said) => assert!(!good && said.to_string().contains("576 to 65521"), "{said}"),
            }
        }
    }

    #[test]
    fn what_is_too_large_is_said_with_its_number_at_once() {
        let many = |count: usize, one: &str| {
            let list: Vec<String> = (0..count)
                .map(|n| one.replace('#', &n.to_string()))
                .collect();
            list.join(", ")
        };
        let hosts: String = (0..12_000)
            .map(|n| format!("h{n}: {{ on: s1, elan: a, ip: 10.1.0.10 }}\n  "))
            .collect();
        let outside = many(
            12_000,
            "[s1, { udp: { local: '127.0.0.1:1', peer: '127.0.0.1:2' } }]",
        );
        let flows = many(10_001, "{ from: x, to: y, kind: tcp }");
        for (text, says) in [
            (
                SMALL.replace("x: {", &format!("{hosts}x: {{")),
                "12005 nodes: a lab has at most 12000",
            ),
            (
                SMALL.replace("[[s1, s2]]", &format!("[[s1, s2], {outside}]")),
                "12005 nodes: a lab has at most 12000",
            ),
            (
                SMALL.replace("[[s1, s2]]", &format!("[{}]", many(10_001, "[s1, s2]"))),
                "10001 links between switches: a lab has at most 10000",
            ),
            (
                format!("{SMALL}traffic: [{flows}]\n"),
                "10001 flows: a lab has at most 10000",
            ),
        ] {
            let said = error(&text);
            assert!(said.contains(says), "{}", &said[..said.len().min(500)]);
        }
    }
}
