//! Classical IP subnets: their servers, and preconfigured next hops.

use super::stage::{Building, Joining};
use super::{Class, Names, limits};
use crate::diag::Diagnostics;
use crate::field::{At, Optional as _, Table};
use crate::file::{
    Ip, LEAST_MTU, LabFile, LisFile, MemberFile, NextHopFile, NextHopsFile, PortsText, QosText,
};
use crate::hops;
use crate::model::{Elan, ElanId, Lab, Lis, MapFile, Member, NextHop, NodeId, NodeKind};
use crate::parameter::with;
use aerostat_proto::clip::{Params, PortContract};
use aerostat_proto::parameters::Value;
use aerostat_wire::{AtmAddress, Qos};
use std::net::Ipv4Addr;

/// Appends the subnets to those of LANE.
pub(super) fn subnets(file: &LabFile, lab: &mut Building<'_>, d: &mut Diagnostics) {
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
        let params = with(Params::DEFAULT, [&lis.given]);
        lives(lis, &params, d);
        let name = name.value.0.clone();
        lab.elans_mut().push(Elan {
            clip: Some(Lis {
                mtu: lis.mtu.get() as u16,
                server: None,
                servers: lis
                    .servers
                    .iter()
                    .flat_map(|list| &list.0)
                    .map(|a| a.value.0)
                    .collect(),
                params,
                mux: lis.mux.get(),
                nhrp: lis.nhrp.get(),
                next_hops: Vec::new(),
                map: None,
                usual: usual(lis, d),
            }),
            ..Elan::with_subnet(name, subnet)
        });
    }
}

/// Settings of a member without settings of its own.
fn usual(lis: &LisFile, d: &mut Diagnostics) -> Member {
    Member {
        mtu: lis.mtu.get() as u16,
        per: lis.per.get(),
        contract: lis.qos.as_ref().map(|text| contract(text, d)),
        ports: lis
            .ports
            .as_ref()
            .map(|table| rules(table, d))
            .unwrap_or_default(),
        sessions: lis.sessions.get() as usize,
        next_hops: Vec::new(),
        map: None,
    }
}

/// The contract of connections, which ATMARP's users must be able to have.
fn contract(text: &At<QosText>, d: &mut Diagnostics) -> Qos {
    if let Err(why) = hops::check(&text.value.0) {
        d.error(text.at, why);
    }
    text.get()
}

/// The contracts of sessions by their ports.
fn rules(table: &Table<PortsText, At<QosText>>, d: &mut Diagnostics) -> Vec<PortContract> {
    let rules = table.0.iter().map(|(ports, text)| {
        let (protocol, first, last) = ports.get();
        PortContract {
            protocol,
            ports: first..=last,
            qos: contract(text, d),
        }
    });
    rules.collect()
}

/// The members that differ from what is usual on their subnets.
fn different(file: &LabFile, names: &Names, lab: &mut Joining<'_>, d: &mut Diagnostics) {
    let hosts = file.hosts.0.iter();
    let hosts = hosts.map(|(name, section)| (name, section.clip.as_ref()));
    let routers = file.routers.iter().flat_map(|table| &table.0);
    let routers = routers.map(|(name, section)| (name, section.clip.as_ref()));
    let given = hosts.chain(routers);
    let given = given.filter_map(|(name, table)| Some((name, table?)));
    for (name, table) in given {
        let Some(id) = lab.find(&name.value.0) else {
            continue;
        };
        for (subnet, section) in &table.0 {
            let lecs = lab.node(id).lecs().iter();
            let named = lecs.map(|lec| (lab.elan(lec.elan), lec));
            let on_clip = named.filter(|(elan, _)| elan.clip.is_some());
            let all: Vec<_> = on_clip
                .map(|(elan, lec)| (elan.name.clone(), lec.elan, lec.index))
                .collect();
            let found = all.iter().find(|(name, ..)| *name == subnet.value);
            let Some((_, elan, index)) = found else {
                let text = format!(
                    "{} is on no Classical IP subnet '{}'",
                    name.value.0, subnet.value
                );
                d.error(subnet.at, text)
                    .suggest(&subnet.value, all.iter().map(|(name, ..)| name.as_str()))
                    .rests_on(of_member(&name.value.0).iter().map(String::as_str));
                continue;
            };
            let member = different_member(section, *elan, (names, lab), d);
            if let Some(member) = member {
                set_member(lab, (id, usize::from(*index)), member);
            }
        }
    }
}

fn set_member(lab: &mut Joining<'_>, (id, index): (NodeId, usize), member: Member) {
    let lecs = match &mut lab.nodes_mut()[id.0].kind {
        NodeKind::Host(host) => &mut host.lecs,
        NodeKind::Router(router) => &mut router.lecs,
        NodeKind::Switch(_) | NodeKind::LaneServer(_) | NodeKind::Outside(_) => return,
    };
    if let Some(lec) = lecs.iter_mut().find(|lec| usize::from(lec.index) == index) {
        lec.member = Some(Box::new(member));
    }
}

fn different_member(
    section: &MemberFile,
    elan: ElanId,
    (names, lab): (&Names, &Lab),
    d: &mut Diagnostics,
) -> Option<Member> {
    let usual = lab.elan(elan).clip.as_ref()?.usual.clone();
    let mtus = LEAST_MTU..=usual.mtu.into();
    if let Some(given) = section
        .mtu
        .as_ref()
        .filter(|mtu| !mtus.contains(&mtu.value))
    {
        let text = format!("mtu is {LEAST_MTU} to {} on this subnet", usual.mtu);
        d.error(given.at, text)
            .hint("'mtu:' of the subnet is the largest of its members")
            .rests_on(["clip/*/mtu"]);
    }
    let (next_hops, map) = known(section.next_hops.as_ref(), elan.0, (names, lab), d);
    Some(Member {
        mtu: section.mtu.plain().map_or(usual.mtu, |mtu| mtu as u16),
        per: section.per.plain().unwrap_or(usual.per),
        contract: section
            .qos
            .as_ref()
            .map(|text| contract(text, d))
            .or(usual.contract),
        ports: section
            .ports
            .as_ref()
            .map_or(usual.ports, |table| rules(table, d)),
        sessions: section
            .sessions
            .plain()
            .map_or(usual.sessions, |most| most as usize),
        next_hops,
        map,
    })
}

/// The next hops of a section, and the file that they come from.
fn known(
    given: Option<&NextHopsFile>,
    at: usize,
    (names, lab): (&Names, &Lab),
    d: &mut Diagnostics,
) -> (Vec<NextHop>, Option<MapFile>) {
    let file = match given {
        None => return (Vec::new(), None),
        Some(NextHopsFile::Table(table)) => return (table_of(table, at, (names, lab), d), None),
        Some(NextHopsFile::File(file)) => file,
    };
    let path = d.beside(&file.value);
    let path = std::path::absolute(&path).unwrap_or(path);
    let map = MapFile {
        name: file.value.clone(),
        path,
    };
    match hops::read(&map.path, lab, ElanId(at)) {
        Ok(list) => (list, Some(map)),
        Err(why) => {
            d.error(file.at, format!("{}: {why}", file.value))
                .hint("each line has an IP address or prefix, and an ATM address or a node");
            (Vec::new(), Some(map))
        }
    }
}

/// The next hops of a table.
fn table_of(
    table: &Table<Ip, NextHopFile>,
    at: usize,
    (names, lab): (&Names, &Lab),
    d: &mut Diagnostics,
) -> Vec<NextHop> {
    let mut hops: Vec<NextHop> = Vec::new();
    for (ip, hop) in &table.0 {
        if hops.iter().any(|known| known.ip == ip.value.0) {
            d.error(ip.at, format!("{} stands here twice", ip.value.0));
        }
        hops.extend(next_hop(lab, at, (ip, hop), names, d));
    }
    hops
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
pub(super) fn members(file: &LabFile, names: &Names, lab: &mut Joining<'_>, d: &mut Diagnostics) {
    servers(file, names, lab, d);
    for (name, lis) in file.clip.iter().flat_map(|table| &table.0) {
        let found = lab.elans.iter().position(|elan| elan.name == name.value.0);
        let (Some(at), Some(given)) = (found, &lis.next_hops) else {
            continue;
        };
        let (hops, map) = known(Some(given), at, (names, lab), d);
        if let Some(lis) = &mut lab.elans_mut()[at].clip {
            (lis.next_hops, lis.map) = (hops, map);
        }
    }
    different(file, names, lab, d);
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
    let qos = hop.qos.plain();
    if let (Some(file), Some(qos)) = (&hop.qos, qos)
        && let Err(why) = hops::check(&qos)
    {
        d.error(file.at, why);
    }
    Some(NextHop {
        ip: number,
        length: 32,
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
        other_owner(lab, at, (ip, address), text, d);
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

/// Warns of an address that is not that of the member with this IP address.
fn other_owner(
    lab: &Lab,
    at: usize,
    (ip, address): (Ipv4Addr, AtmAddress),
    text: &At<String>,
    d: &mut Diagnostics,
) {
    let mut members = lab.nodes().flat_map(|(_, node)| {
        let lecs = node.lecs().iter();
        lecs.map(move |lec| (&node.name, lec))
    });
    let owner = members.find(|(_, lec)| lec.elan.0 == at && lec.ip == Some(ip));
    if let Some((name, lec)) = owner.filter(|(_, lec)| lec.address != address) {
        let words = format!(
            "{ip} is {name}, which has another ATM address: {}",
            lec.address
        );
        d.warning(text.at, words)
            .hint(format!("'address: {name}' stands for its address"));
    }
}

/// Parts of the file that decide of which subnets a node is a member.
fn of_member(name: &str) -> [String; 4] {
    [
        format!("hosts/{name}/elan"),
        format!("hosts/{name}/ip"),
        format!("hosts/{name}/elans"),
        format!("routers/{name}/elans"),
    ]
}

fn servers(file: &LabFile, names: &Names, lab: &mut Joining<'_>, d: &mut Diagnostics) {
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
        if let Some(lis) = &mut lab.elans_mut()[at].clip {
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
