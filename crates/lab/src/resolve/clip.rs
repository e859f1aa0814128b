//! Classical IP subnets: their servers, and preconfigured next hops.

use super::{Class, Names, limits};
use crate::diag::Diagnostics;
use crate::field::At;
use crate::file::{Ip, LabFile, LisFile, NextHopFile};
use crate::model::{Elan, Lab, Lis, NextHop};
use crate::parameter::with;
use aerostat_proto::clip::Params;
use aerostat_proto::parameters::Value;
use aerostat_wire::AtmAddress;
use aerostat_wire::lane::MaxFrameSize;
use std::net::Ipv4Addr;

/// Appends the subnets to those of LANE.
pub(super) fn subnets(file: &LabFile, lab: &mut Lab, d: &mut Diagnostics) {
    let Some(table) = &file.clip else {
        return;
    };
    for (name, lis) in &table.0 {
        if lab.elans.iter().any(|elan| elan.name == name.value.0) {
            d.error(
                name.at,
                format!("two subnets with one name: {}", name.value.0),
            );
        }
        let subnet = lis.subnet.value.0;
        limits::subnet(&lis.subnet, "Classical IP", d);
        if lab.elans.iter().any(|elan| elan.subnet.overlaps(subnet)) {
            d.error(lis.subnet.at, "this subnet overlaps with another");
        }
        let mtu = lis.mtu.as_ref().map_or(9180, At::get);
        if let Some(given) = lis.mtu.as_ref().filter(|_| !(576..=65_521).contains(&mtu)) {
            d.error(
                given.at,
                "an MTU of Classical IP is 576 to 65521 octets here",
            );
        }
        let params = with(Params::DEFAULT, [&lis.given]);
        lives(lis, &params, d);
        lab.elans.push(Elan {
            name: name.value.0.clone(),
            id: 0,
            subnet,
            ip6: None,
            max_frame: MaxFrameSize::UNSPECIFIED,
            les: AtmAddress::ZERO,
            bus: AtmAddress::ZERO,
            standby: Vec::new(),
            v2: false,
            members: Vec::new(),
            macs: Vec::new(),
            data: None,
            multicast_send: None,
            foreign: None,
            clip: Some(Lis {
                mtu: mtu.try_into().unwrap_or(u16::MAX),
                server: None,
                servers: lis
                    .servers
                    .iter()
                    .flat_map(|list| &list.0)
                    .map(|a| a.value.0)
                    .collect(),
                params,
                mux: lis.mux.as_ref().is_some_and(At::get),
                nhrp: lis.nhrp.as_ref().is_some_and(At::get),
                next_hops: Vec::new(),
            }),
        });
    }
}

/// Refuses entries that a server would forget before their clients register again.
fn lives(lis: &LisFile, params: &Params, d: &mut Diagnostics) {
    let (life, refresh) = (params.server_life, params.refresh);
    if refresh < life {
        return;
    }
    let [life, refresh] = [life, refresh].map(Value::from);
    let text = format!("refresh ({refresh}) is not shorter than server_life ({life})");
    let names = ["refresh", "server_life"];
    super::timers::disagree(&lis.given, lis.place, names, text, d)
        .hint("the server would forget a client before it registers again");
}

/// Resolves the servers of the subnets, and the preconfigured next hops.
pub(super) fn members(file: &LabFile, names: &Names, lab: &mut Lab, d: &mut Diagnostics) {
    servers(file, names, lab, d);
    for (name, lis) in file.clip.iter().flat_map(|table| &table.0) {
        let found = lab.elans.iter().position(|elan| elan.name == name.value.0);
        let (Some(at), Some(table)) = (found, &lis.next_hops) else {
            continue;
        };
        let mut hops: Vec<NextHop> = Vec::new();
        for (ip, hop) in &table.0 {
            if hops.iter().any(|known| known.ip == ip.value.0) {
                d.error(ip.at, format!("{} stands here twice", ip.value.0));
            }
            hops.extend(next_hop(lab, at, (ip, hop), names, d));
        }
        if let Some(lis) = &mut lab.elans[at].clip {
            lis.next_hops = hops;
        }
    }
}

/// One next hop of subnet `at`.
fn next_hop(
    lab: &Lab,
    at: usize,
    (ip, hop): (&At<Ip>, &NextHopFile),
    names: &Names,
    d: &mut Diagnostics,
) -> Option<NextHop> {
    let (elan, number) = (&lab.elans[at], ip.value.0);
    if !elan.subnet.contains(number) {
        let text = format!(
            "{number} is not in {}, the subnet {}",
            elan.subnet, elan.name
        );
        d.error(ip.at, text);
    }
    if hop.address.is_none() && hop.qos.is_none() {
        d.error(ip.at, "nothing is said of this next hop")
            .hint("give an 'address:', a 'qos:', or both")
            .rests_in(hop.place, ["address", "qos"]);
    }
    let address = match &hop.address {
        None => None,
        Some(text) => Some(known_address(lab, at, number, text, names, d)?),
    };
    let qos = hop.qos.as_ref().map(|qos| qos.value.0);
    if let (Some(file), Some(qos)) = (&hop.qos, qos) {
        if qos.tx.category.is_none() || qos.rx.category.is_none() {
            d.error(file.at, "Classical IP needs both directions");
        }
        if qos.tx.max_sdu != 0 || qos.rx.max_sdu != 0 {
            d.error(file.at, "the size of SDUs follows from the subnet's 'mtu:'");
        }
    }
    Some(NextHop {
        ip: number,
        address,
        qos,
    })
}

/// The address as written, or that of a member of subnet `at` with this IP address.
fn known_address(
    lab: &Lab,
    at: usize,
    ip: Ipv4Addr,
    text: &At<String>,
    names: &Names,
    d: &mut Diagnostics,
) -> Option<AtmAddress> {
    if let Ok(address) = text.value.parse() {
        return Some(address);
    }
    // A name has letters that are no hex digits, or fewer digits.
    let digits = text.value.bytes().filter(u8::is_ascii_hexdigit).count();
    if text.value.contains('.') || digits >= 38 {
        let error = text.value.parse::<AtmAddress>().err()?;
        d.error(text.at, error.to_string());
        return None;
    }
    let wanted = [Class::Host, Class::Router];
    let id = names.find(text, &wanted, "a host or router", d)?;
    let mut lecs = lab.node(id).lecs().iter();
    let found = lecs.find(|lec| lec.elan.0 == at && lec.ip == Some(ip));
    if found.is_none() {
        let text_of = format!("{} has not {ip} on {}", text.value, lab.elans[at].name);
        d.error(text.at, text_of)
            .rests_on(of_member(&text.value).iter().map(String::as_str));
    }
    found.map(|lec| lec.address)
}

/// What decides of which subnets a node is a member.
fn of_member(name: &str) -> [String; 3] {
    [
        format!("hosts/{name}/elan"),
        format!("hosts/{name}/ip"),
        format!("routers/{name}/elans"),
    ]
}

fn servers(file: &LabFile, names: &Names, lab: &mut Lab, d: &mut Diagnostics) {
    for (name, lis) in file.clip.iter().flat_map(|table| &table.0) {
        let Some(at) = lab.elans.iter().position(|elan| elan.name == name.value.0) else {
            continue;
        };
        let LisFile { server, .. } = lis;
        let Some(server) = server else {
            continue;
        };
        let wanted = [Class::Host, Class::Router];
        let Some(id) = names.find(server, &wanted, "a host or router", d) else {
            continue;
        };
        let on_it = lab.node(id).lecs().iter().find(|lec| lec.elan.0 == at);
        let Some(address) = on_it.map(|lec| lec.address) else {
            d.error(
                server.at,
                format!("{} is not on {}", server.value, name.value.0),
            )
            .rests_on(of_member(&server.value).iter().map(String::as_str));
            continue;
        };
        if let Some(lis) = &mut lab.elans[at].clip {
            lis.server = Some(id);
            lis.servers.insert(0, address);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::resolve::tests::lab;
    use aerostat_wire::Qos;

    /// A subnet with `more` in its section.
    fn with(more: &str) -> String {
        format!(
            "
switches: {{ s: {{}} }}
lane: {{ on: s, elans: {{ a: {{ subnet: 10.1.0.0/24 }} }} }}
clip:
  wan: {{ subnet: 10.5.0.0/24, server: one, {more} }}
  other: {{ subnet: 10.6.0.0/24 }}
hosts:
  one: {{ on: s, elan: wan, ip: 10.5.0.1 }}
  two: {{ on: s, elan: wan, ip: 10.5.0.2 }}
  far: {{ on: s, elan: other, ip: 10.6.0.1 }}
"
        )
    }

    #[test]
    fn a_server_remembers_clients_until_they_register_again() {
        let errors = |keys: &str| {
            let found = crate::parse("t.atm.yml", &with(keys), &[]);
            found.err().map_or(String::new(), |d| d.to_string())
        };
        assert_eq!(errors("server_life: 5min, refresh: 4min"), "");
        let says = "refresh (10min) is not shorter than server_life (300s)";
        let told = errors("server_life: 5min");
        assert!(told.contains(says), "{told}");
    }

    #[test]
    fn next_hops() {
        let outside = "47.0005.80FFE1000000F21A26D8.0020EA0000B0.00";
        let known = format!(
            "mux: true, next_hops: {{ 10.5.0.2: {{ address: two, qos: 'cbr:max_pcr=2000' }}, \
             10.5.0.9: {{ address: {outside} }}, 10.5.0.1: {{ qos: 'ubr:pcr=500' }} }}"
        );
        let lab = lab(&with(&known));
        let elan = lab.elans.iter().find(|elan| elan.name == "wan").unwrap();
        let lis = elan.clip.as_ref().unwrap();
        assert!(lis.mux);
        let [two, nine, one] = lis.next_hops[..] else {
            panic!("{:?}", lis.next_hops);
        };
        let node = lab.node(lab.find("two").unwrap());
        assert_eq!(two.address, Some(node.lecs()[0].address));
        assert_eq!(two.qos, Some(Qos::cbr(2000, 0)));
        assert_eq!(nine.address, outside.parse().ok());
        assert_eq!((nine.qos, one.address), (None, None));
        assert_eq!(one.qos.unwrap().tx.max_pcr, Some(500));
        assert!(
            !lab.elans
                .iter()
                .any(|elan| elan.name == "other" && elan.clip.as_ref().is_some_and(|lis| lis.mux))
        );
    }

    #[test]
    fn mistakes() {
        for (hop, at, says) in [
            (
                "10.6.0.1: { address: far }",
                "10.6.0.1",
                "10.6.0.1 is not in 10.5.0.0/24",
            ),
            (
                "10.5.0.2: {}",
                "10.5.0.2",
                "nothing is said of this next hop",
            ),
            ("10.5.0.2: { address: tow }", "tow", "did you mean 'two'?"),
            ("10.5.0.2: { address: s }", "s }", "'s' is a switch"),
            (
                "10.5.0.2: { address: one }",
                "one }",
                "one has not 10.5.0.2 on wan",
            ),
            (
                "10.5.0.2: { address: 47.0005.80 }",
                "47.0005.80",
                "40 are needed",
            ),
            ("10.5.0.2: { qos: fast }", "fast", "no class"),
            (
                "10.5.0.2: { qos: 'cbr:tx:max_pcr=5,rx:none' }",
                "'cbr",
                "both directions",
            ),
            (
                "10.5.0.2: { qos: 'cbr:max_pcr=5,sdu=100' }",
                "'cbr",
                "follows from the subnet",
            ),
            (
                "10.5.0.x: { qos: ubr }",
                "10.5.0.x",
                "expected an IPv4 address",
            ),
            ("10.5.0.2: { qs: ubr }", "qs", "unknown key"),
        ] {
            let text = with(&format!("next_hops: {{ {hop} }}"));
            let found = crate::parse("t.atm.yml", &text, &[]);
            let error = found.expect_err(hop).to_string();
            assert!(error.contains(says), "{hop}: {error}");
            let line = text.lines().nth(4).unwrap();
            let column = line.find("next_hops").unwrap();
            let column = column + line[column..].find(at).unwrap() + 1;
            assert!(
                error.contains(&format!("t.atm.yml:5:{column}: ")),
                "{hop}: {error}"
            );
        }
    }
}
