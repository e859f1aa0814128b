//! Emulated LANs, and their servers outside the lab.

use super::stage::Building;
use super::{contracts, limits, outside};
use crate::diag::{Diagnostics, Span};
use crate::field::{At, Optional as _};
use crate::file::{ElanFile, LabFile, LaneFile, LecFile, Name, StandbyFile};
use crate::ipv6;
use crate::model::{Elan, ElanId, ForeignServers, Lab, LesAndBus, NodeKind};
use crate::parameter::with;
use crate::plan;
use aerostat_proto::lane::lecs::Criterion;
use aerostat_proto::lane::{LecLimits, LecsConfig, Quotas};
use aerostat_wire::lane::{ElanName, MaxFrameSize};
use aerostat_wire::{AtmAddress, MacAddr};

/// The LANE services of the lab itself, if it has any, and the switch to which their host is attached.
pub(super) fn own(file: &LabFile) -> Option<(&LaneFile, &At<String>)> {
    let section = file.lane.as_ref()?;
    let on = section.on.as_ref()?;
    outside::with_lane(file).is_none().then_some((section, on))
}

/// The host of the LANE services has this name if the file gives no name; a standby host also has its number.
pub(crate) const UNNAMED: &str = "lane";

/// Name of the host of the LANE services, and the place for messages about it.
pub(super) fn server_name(section: &LaneFile) -> (&str, Span) {
    match &section.name {
        Some(name) => (&name.value.0, name.at),
        None => (UNNAMED, section.place),
    }
}

/// Limit of standby hosts.
const MAX_STANDBY: usize = 8;

/// Name of the host of LANE services number `number`, from 2, and the place for messages about it.
pub(super) fn standby_name(section: &StandbyFile, number: u16) -> (String, Span) {
    match &section.name {
        Some(name) => (name.value.0.clone(), name.at),
        None => (format!("{UNNAMED}{number}"), section.place),
    }
}

/// LES and BUS on the host with this address, for each ELAN that the lab's services serve.
pub(super) fn pairs<'a>(
    lab: &'a mut Building<'_>,
    host: AtmAddress,
) -> impl Iterator<Item = (LesAndBus, &'a mut Elan)> {
    let numbers = lab.numbers.served.clone();
    let own = lab.elans_mut().iter_mut().filter(|elan| elan.is_own());
    // More ELANs are an error that was reported.
    own.filter_map(move |elan| {
        let n = numbers.of(&elan.name).checked_sub(1)?;
        let n = u8::try_from(n)
            .ok()
            .filter(|n| usize::from(*n) < plan::MAX_ELANS)?;
        let pair = LesAndBus {
            les: host.with_selector(plan::SELECTOR_LES + n),
            bus: host.with_selector(plan::SELECTOR_BUS + n),
        };
        Some((pair, elan))
    })
}

/// True if the lab itself serves an ELAN, by its section.
pub(super) const fn is_served(elan: &ElanFile) -> bool {
    elan.lecs.is_none() && elan.les.is_none()
}

/// How the LECS assigns clients.
pub(super) fn policies(section: &LaneFile) -> Vec<Vec<Criterion>> {
    let Some(levels) = &section.policies else {
        return LecsConfig::default().policies;
    };
    let level = |level: &Vec<At<_>>| level.iter().map(criterion).collect();
    levels.iter().map(level).collect()
}

/// Limits of a BUS, or a LES, on frames from one end system.
pub(super) fn quota(section: &LaneFile) -> Quotas {
    with(
        Quotas::DEFAULT,
        section
            .quota
            .iter()
            .map(|quota| &quota.given)
            .collect::<Vec<_>>(),
    )
}

fn criterion(text: &At<crate::file::CriterionText>) -> Criterion {
    text.value.0
}

/// The ELAN of clients that give no name.
pub(super) fn default(section: &LaneFile, lab: &Lab, d: &mut Diagnostics) -> Option<ElanId> {
    let Some(given) = &section.default else {
        return lab.elans.iter().position(Elan::is_own).map(ElanId);
    };
    let own = || lab.elans.iter().filter(|elan| elan.is_own());
    let names = |elan: &&Elan| elan.name == given.value;
    if own().find(names).is_none() {
        d.error(
            given.at,
            format!("the LECS serves no ELAN '{}'", given.value),
        )
        .suggest(&given.value, own().map(|elan| elan.name.as_str()))
        .rests_on_name(&given.value)
        .rests_on(["lane/elans/."]);
    }
    let mut elans = lab.elans.iter();
    elans.position(|elan| names(&elan)).map(ElanId)
}

/// Groups whose frames the client receives, if not all.
pub(super) fn groups(section: &LecFile, bridge: bool, d: &mut Diagnostics) -> Option<Vec<MacAddr>> {
    let groups = section.groups.as_ref()?;
    if let Some(first) = groups.first().filter(|_| bridge) {
        d.error(first.at, "a bridge takes the frames of all groups");
    }
    if let Some(one) = groups.get(LecLimits::default().groups) {
        d.error(one.at, "more groups than a LANE client can register");
    }
    if let Some(version) = section.version.as_ref().filter(|version| !version.get()) {
        d.error(version.at, "LANE v1 has no selective multicast");
    }
    Some(groups.iter().map(|group| group.value.0).collect())
}

/// Reports settings for servers that the lab does not have.
pub(super) fn nothing_to_serve(section: &LaneFile, d: &mut Diagnostics) {
    let keys = ["standby", "policies", "quota", "default"];
    if let Some((_, at)) = section.given.of(&keys).next() {
        d.error(
            at,
            "the lab has no LANE servers of its own to which this could apply",
        )
        .rests_in(section.place, ["on"]);
    }
}

/// Fills `lab.elans`.
pub(super) fn elans(file: &LabFile, lab: &mut Building<'_>, d: &mut Diagnostics) {
    let Some(section) = &file.lane else {
        return;
    };
    let table = &section.elans.0;
    if table.is_empty() {
        d.error(section.place, "lane.elans names no ELAN")
            .hint("for example: elans: { a: { subnet: 10.1.0.0/24 } }")
            .rests_in(section.place, ["elans"]);
    }
    if let Some((name, _)) = table.get(plan::MAX_ELANS) {
        d.error(
            name.at,
            format!(
                "{} ELANs: LANE servers have addresses for at most {}",
                table.len(),
                plan::MAX_ELANS
            ),
        );
    }
    match section
        .standby
        .as_ref()
        .and_then(|all| all.get(MAX_STANDBY))
    {
        Some(one) => {
            d.error(
                one.place,
                format!("more than {MAX_STANDBY} hosts that stand by"),
            );
        }
        None if section.on.is_none() => nothing_to_serve(section, d),
        None => {}
    }
    for (n, (name, elan)) in table.iter().enumerate() {
        let id = lab.numbers.elans.of(&name.value.0).into();
        check_subnet(&table[..n], name, elan, d);
        ipv6::check(&table[..n], name, elan, d);
        check_size(elan, d);
        let foreign = foreign(name, elan, d);
        if foreign.is_none() && section.on.is_none() {
            d.error(name.at, format!("ELAN {} has no servers", name.value.0))
                .hint("give 'lane:' an 'on:', the switch of servers in the lab; or the ELAN 'lecs:' or 'les:'")
                .rests_in(section.place, ["on"])
                .rests_in(elan.place, ["lecs", "les"]);
        }
        lab.elans_mut().push(Elan {
            id,
            ip6: elan.ip6.plain(),
            max_frame: elan.mtu.plain().unwrap_or(MaxFrameSize::S1516),
            v2: elan.version.get(),
            members: elan
                .members
                .iter()
                .flatten()
                .map(|prefix| prefix.value.octets().to_vec())
                .collect(),
            macs: elan.macs.iter().flatten().map(|mac| mac.value.0).collect(),
            data: contracts::of_data_direct(elan.qos.as_ref(), d),
            multicast_send: contracts::of_multicast_send(elan, foreign.is_some(), d),
            foreign,
            // The addresses of its servers are filled in when the LANE server has its own.
            ..Elan::with_subnet(name.value.0.clone(), elan.subnet.value.0)
        });
    }
    let own = lab.elans.iter().any(Elan::is_own);
    if let Some(on) = section.on.as_ref().filter(|_| !own && !d.has_errors()) {
        d.warning(on.at, "these servers have no ELAN: all are served outside");
    }
}

fn check_subnet(
    before: &[(At<Name>, ElanFile)],
    name: &At<Name>,
    elan: &ElanFile,
    d: &mut Diagnostics,
) {
    let subnet = elan.subnet.value.0;
    limits::subnet(&elan.subnet, "an ELAN", d);
    for (other_name, other) in before {
        if other.subnet.value.0.overlaps(subnet) {
            let (a, b) = (&other_name.value.0, &name.value.0);
            let text = format!("the subnets of ELANs {a} and {b} overlap");
            d.error(elan.subnet.at, text)
                .see(other.subnet.at, format!("subnet of {a}"));
        }
    }
}

/// Checks the frame size: version 1 has four of the five sizes.
fn check_size(elan: &ElanFile, d: &mut Diagnostics) {
    if let Some(mtu) = &elan.mtu
        && !elan.version.get()
        && mtu.value.0 == MaxFrameSize::S1580
    {
        d.error(mtu.at, "LANE v1 has no frames of 1580 octets")
            .hint("it has 1516, 4544, 9234 and 18190");
    }
}

/// Servers outside the lab, if the file gives any.
fn foreign(name: &At<Name>, elan: &ElanFile, d: &mut Diagnostics) -> Option<ForeignServers> {
    if is_served(elan) {
        if let Some(other) = &elan.name {
            d.error(other.at, "an ELAN of the lab is called by its key")
                .hint("'name' is for ELANs with 'lecs' or 'les' outside")
                .rests_in(elan.place, ["lecs", "les"]);
        }
        return None;
    }
    let keys = ["version", "members", "macs"];
    if let Some((_, at)) = elan.given.of(&keys).next() {
        d.error(
            at,
            "this is for servers in the lab, and those of this ELAN are outside",
        );
    }
    let called = match &elan.name {
        Some(other) => other.value.clone(),
        None => name.value.0.clone(),
    };
    if let Some(other) = &elan.name
        && ElanName::new(&called).is_none()
    {
        d.error(other.at, "the name of an ELAN has at most 32 octets");
    }
    Some(ForeignServers {
        name: called,
        well_known: elan.lecs.plain() == Some(None),
        lecs: elan.lecs.plain().flatten(),
        les: elan.les.plain(),
        max_frame: elan.mtu.plain().unwrap_or(MaxFrameSize::UNSPECIFIED),
    })
}

/// Checks that calls to servers outside can leave the lab: there must be links out of the lab.
pub(super) fn check_foreign(file: &LabFile, lab: &Lab, d: &mut Diagnostics) {
    let table = file.lane.iter().flat_map(|section| &section.elans.0);
    for (_, elan) in table {
        if let Some(lecs) = &elan.lecs {
            check_server(lecs.value.0.unwrap_or(AtmAddress::LECS), lecs.at, lab, d);
        }
        if let Some(les) = &elan.les {
            check_server(les.value.0, les.at, lab, d);
        }
    }
}

fn check_server(address: AtmAddress, at: Span, lab: &Lab, d: &mut Diagnostics) {
    let well_known = address.same_end_system(&AtmAddress::LECS);
    if well_known && lab.lane_server().is_some() {
        d.error(at, "the well-known address is that of the lab's own LECS")
            .hint("name the LECS outside by another address of its");
        return;
    }
    let inside = lab.nodes().find(|(_, node)| {
        let own = node
            .attachment()
            .filter(|_| !matches!(node.kind, NodeKind::Outside(_)));
        own.is_some_and(|own| own.address.same_end_system(&address))
    });
    if let Some((_, node)) = inside {
        // Programs of the machine at the socket service of a host may be the servers.
        let program = address.selector() >= plan::SELECTOR_SOCKET;
        if !program || !matches!(node.kind, NodeKind::Host(_)) {
            let text = format!("this ATM address is of {}, in the lab", node.name);
            d.error(at, text).hint(
                "servers that are programs at the sockets of a host have the selectors e0 to ff",
            );
        }
        return;
    }
    let leads_there = lab.outside().any(|(_, _, outside)| {
        // The far end of an end system's link is a switch, which takes calls further.
        if lab.uplink(outside.attachment.switch).is_some() {
            return true;
        }
        let registers = outside.ilmi && outside.addresses.is_empty();
        let mut known = outside.addresses.iter();
        let trunk = outside.trunk.as_ref();
        registers
            || known.any(|own| own.same_end_system(&address))
            || trunk.is_some_and(|trunk| {
                let mut prefixes = trunk.prefixes.iter();
                trunk.lane && well_known || prefixes.any(|p| address.0.starts_with(p))
            })
    });
    if !leads_there {
        d.error(at, "no link out of the lab leads to this address")
            .hint(format!(
                "give a link 'address: [..., {address}]', or a trunk 'routes:'"
            ))
            .rests_on(["links", "lane/on"]);
    }
}

#[cfg(test)]
mod tests {
    use crate::build::{Builder, Flavour};
    use crate::model::Lab;
    use crate::resolve::tests::{lab, next_hop};
    use crate::routing::Routing;
    use aerostat_wire::AtmAddress;

    const WITHOUT: &str = "
switches: { s1: {}, s2: {} }
links:
  - [s1, s2]
  - [s2, { atmtcp: { listen: 127.0.0.1:2812 }, name: vm, address: [47.0005.80FFE1000000F21A26D8.0020EA0000B0.00,
      47.0079.00000000000000000000.00A03E000001.00] }]
lane:
  elans:
    a: { subnet: 10.1.0.0/24, lecs: well-known }
    b: { subnet: 10.2.0.0/24, les: 47.0005.80FFE1000000F21A26D8.0020EA0000B0.01, name: '', mtu: 4544 }
hosts:
  x: { on: s1, elan: a, ip: 10.1.0.10, gateway: 10.1.0.77 }
  y: { on: s2, elan: b, ip: 10.2.0.10 }
traffic: [{ from: x, to: y, kind: ping }]
";

    fn error(from: &str, to: &str) -> String {
        assert!(WITHOUT.contains(from), "{from}");
        let found = crate::parse("t.atm.yml", &WITHOUT.replace(from, to), &[]);
        found.expect_err("an error").to_string()
    }

    fn peer(lab: &Lab, switch: &str, to: AtmAddress) -> Option<String> {
        let id = lab.find(switch)?;
        Some(lab.node(next_hop(lab, id, &to.0)?).name.clone())
    }

    #[test]
    fn a_lab_needs_no_servers_of_its_own() {
        let lab = lab(WITHOUT);
        assert!(lab.lane_server().is_none());
        let names: Vec<&str> = lab.nodes.iter().map(|node| node.name.as_str()).collect();
        assert_eq!(names, ["s1", "s2", "x", "y", "vm"]);
        let (a, b) = (
            lab.elans[0].foreign.clone().unwrap(),
            lab.elans[1].foreign.clone().unwrap(),
        );
        assert!(a.well_known && a.lecs.is_none() && a.les.is_none());
        assert_eq!((a.name.as_str(), b.name.as_str()), ("a", ""));
        assert_eq!(b.max_frame.octets(), Some(4544));
        let les = b.les.unwrap();
        for to in [les, AtmAddress::LECS] {
            assert_eq!(peer(&lab, "s1", to).as_deref(), Some("s2"));
            assert_eq!(peer(&lab, "s2", to).as_deref(), Some("vm"));
        }
        assert_eq!(peer(&lab, "s1", AtmAddress::LECS_ANYCAST), None);
        let builder = Builder::new(&lab, 1, Flavour::Embedded);
        let hosts = lab.nodes().filter_map(|(id, _)| builder.host(id, 0));
        assert_eq!(hosts.count(), 2);
    }

    #[test]
    fn a_lab_needs_no_lane_at_all() {
        let text = "
switches: { s1: {} }
clip: { c: { subnet: 10.5.0.0/24, server: x } }
hosts: { x: { on: s1, elan: c, ip: 10.5.0.1 }, y: { on: s1, elan: c, ip: 10.5.0.2 } }
";
        let lab = lab(text);
        assert_eq!(lab.nodes.len(), 3);
        let (id, _, _) = lab.switches().next().unwrap();
        let known = Routing::new(&lab).routes(id).len();
        assert_eq!(known, 2, "the two hosts");
        let wrong = crate::parse(
            "t.atm.yml",
            &text.replace("c, ip: 10.5.0.2", "d, ip: 10.5.0.2"),
            &[],
        );
        assert!(
            wrong
                .expect_err("an error")
                .to_string()
                .contains("no ELAN 'd'")
        );
        let cut = text.replace("s1: {} }", "s1: {}, s2: {} }");
        let cut = crate::parse("t.atm.yml", &cut, &[]).expect_err("an error");
        assert!(
            cut.to_string()
                .contains("no path between switches s1 and s2")
        );
    }

    /// Switches that are joined by equipment outside at most need a path in the lab only if something there uses one.
    #[test]
    fn switches_may_be_joined_outside_if_nothing_needs_a_path() {
        let text = |s2: &str, more: &str| {
            format!(
                "
switches: {{ s1: {{}}, s2: {{}} }}
links:
- [s1, {{ name: o1, trunk: user, routes: [47.0091], udp: {{ local: 127.0.0.1:1, peer: 127.0.0.1:2 }} }}]
{s2}
clip:
  a: {{ subnet: 10.5.0.0/24, server: x }}
  b: {{ subnet: 10.6.0.0/24, server: z }}
  p: {{ subnet: 10.7.0.0/24 }}
hosts:
  x: {{ on: s1, elan: a, ip: 10.5.0.1 }}
  y: {{ on: s1, elan: a, ip: 10.5.0.2 }}
  z: {{ on: s2, elan: b, ip: 10.6.0.1 }}
  p1: {{ on: s1, elan: p, ip: 10.7.0.1 }}
  p2: {{ on: s2, elan: p, ip: 10.7.0.2 }}
{more}"
            )
        };
        let out = "- [s2, { name: o2, udp: { local: 127.0.0.1:3, peer: 127.0.0.1:4 } }]";
        assert_eq!(lab(&text(out, "")).switches().count(), 2);
        let lane = |members: &str| {
            format!("{members}lane: {{ on: s1, elans: {{ e: {{ subnet: 10.8.0.0/24 }} }} }}\n")
        };
        for (s2, more, says) in [
            ("", "", "no path between switches s1 and s2"),
            (
                out,
                "  q: { on: s2, elan: a, ip: 10.5.0.9 }\n",
                "switches s1 and s2, which subnet a needs",
            ),
            (
                out,
                &lane("  q: { on: s2, elan: e, ip: 10.8.0.9 }\n"),
                "switches s1 and s2, which ELAN e needs",
            ),
            (
                out,
                "  q: { on: s2, elan: b, ip: 10.6.0.9, sockets: [{ name: tel, call: x, pdus: 1, size: 9 }] }\n",
                "switches s1 and s2, which program tel of q needs",
            ),
        ] {
            let wrong = crate::parse("t.atm.yml", &text(s2, more), &[]).expect_err("an error");
            assert!(wrong.to_string().contains(says), "{wrong}");
        }
        assert_eq!(
            lab(&text(
                out,
                &lane("  q: { on: s1, elan: e, ip: 10.8.0.9 }\n")
            ))
            .elans
            .len(),
            4
        );
    }

    const STANDBY: &str = "
switches: { s1: {}, s2: {} }
links: [[s1, s2]]
lane:
  on: s1
  standby: [{ on: s2 }, { on: s2, name: third }]
  policies: [[mac], [name], [type, size]]
  default: b
  elans:
    a: { subnet: 10.1.0.0/24, version: 1, members: [47.0091] }
    b: { subnet: 10.2.0.0/24, mtu: 9234, macs: ['02:a7:03:00:02:00'] }
hosts:
  x: { on: s1, elan: a, ip: 10.1.0.10, lec: { version: 1 } }
  y: { on: s2, elan: b, ip: 10.2.0.10, lec: { named: false } }
faults: [{ at: 1s, crash: lane/lecs }, { at: 2s, crash: third/bus }]
";

    #[test]
    fn servers_that_stand_by_and_policies() {
        use aerostat_proto::lane::lecs::Criterion;
        let lab = lab(STANDBY);
        let names: Vec<&str> = lab.nodes.iter().map(|node| node.name.as_str()).collect();
        assert_eq!(names, ["s1", "s2", "lane", "lane2", "third", "x", "y"]);
        let (_, _, server) = lab.lane_server().unwrap();
        assert_eq!((server.rank, server.default.map(|id| id.0)), (0, Some(1)));
        assert_eq!(server.policies.len(), 3);
        assert_eq!(
            server.policies[2],
            [Criterion::LanType, Criterion::FrameSize]
        );
        for (n, elan) in lab.elans.iter().enumerate() {
            assert_eq!(elan.standby.len(), 2);
            for crate::model::LesAndBus { les, bus } in &elan.standby {
                assert_eq!(
                    (les.selector(), bus.selector()),
                    (0x80 + n as u8, 0xc0 + n as u8)
                );
                assert!(les.same_end_system(bus) && !les.same_end_system(&elan.les));
            }
        }
        assert_eq!((lab.elans[0].v2, lab.elans[1].v2), (false, true));
        assert_eq!(lab.elans[0].members, [vec![0x47, 0, 0x91]]);
        let mut hosts = lab
            .hosts()
            .map(|(_, _, host)| (host.lec().v2, host.lec().named));
        assert_eq!(
            (hosts.next(), hosts.next()),
            (Some((false, true)), Some((true, false)))
        );
    }

    #[test]
    fn mistakes_with_servers_are_told() {
        let error = |from: &str, to: &str| {
            assert!(STANDBY.contains(from), "{from}");
            let found = crate::parse("t.atm.yml", &STANDBY.replace(from, to), &[]);
            found.expect_err("an error").to_string()
        };
        assert!(error("third/bus", "third/lecs").contains("no service 'lecs'"));
        assert!(error("default: b", "default: c").contains("serves no ELAN 'c'"));
        assert!(error("[name]", "[nam]").contains("expected name, address"));
        assert!(error("name: third", "name: lane").contains("two nodes with one name"));
        assert!(error("{ on: s2 }", "{ on: s9 }").contains("no switch 's9'"));
        assert!(error("version: 1,", "version: 3,").contains("expected 1 or 2"));
        assert!(error("version: 1,", "version: 1, mtu: 1580,").contains("no frames of 1580"));
        let alone = STANDBY.replace("  on: s1\n  standby", "  standby");
        let alone = crate::parse("t.atm.yml", &alone, &[]).expect_err("an error");
        assert!(
            alone.to_string().contains("no LANE servers of its own"),
            "{alone}"
        );
        let many = "{ on: s2 }, ".repeat(8) + "{ on: s2 }";
        assert!(error("{ on: s2 }", &many).contains("more than 8"));
    }

    #[test]
    fn groups_of_a_client() {
        let with = |lec: &str| STANDBY.replace("lec: { named: false }", lec);
        let chosen = lab(&with("lec: { groups: [239.129.1.2, '33:33:00:00:00:fb'] }"));
        let groups = chosen.hosts().map(|(_, _, host)| host.lec().groups.clone());
        let mac = |text: &str| text.parse().expect("a MAC address");
        let some = vec![mac("01:00:5e:01:01:02"), mac("33:33:00:00:00:fb")];
        assert_eq!(groups.collect::<Vec<_>>(), [None, Some(some)]);
        let error = |lec: &str| {
            let found = crate::parse("t.atm.yml", &with(lec), &[]);
            found.expect_err("an error").to_string()
        };
        assert!(error("lec: { groups: [10.1.1.1] }").contains("the address of a group"));
        assert!(error("lec: { groups: ['02:00:00:00:00:01'] }").contains("the address of a group"));
        assert!(error("lec: { version: 1, groups: [] }").contains("no selective multicast"));
        let many = vec!["239.1.1.1"; 65].join(", ");
        assert!(error(&format!("lec: {{ groups: [{many}] }}")).contains("more groups"));
    }

    #[test]
    fn mistakes_are_told() {
        let none = error("lecs: well-known", "mtu: 1516");
        assert!(none.contains("ELAN a has no servers"), "{none}");
        let lost = error("B0.01", "B1.01");
        assert!(lost.contains("no link out of the lab leads"), "{lost}");
        let lost = error("00A03E000001", "00A03E000002");
        assert!(lost.contains("no link out of the lab leads"), "{lost}");
        let own = error("lane:\n", "lane:\n  on: s1\n");
        assert!(own.contains("the lab's own LECS"), "{own}");
        let inside = error(
            "47.0005.80FFE1000000F21A26D8.0020EA0000B0.01",
            "47.0091.8100.0000.02a7.0000.0100.02a703000100.01",
        );
        assert!(inside.contains("of x, in the lab"), "{inside}");
        let version = error("lecs: well-known", "lecs: well-known, version: 1");
        assert!(version.contains("servers in the lab"), "{version}");
        assert!(error("lecs: well-known", "lecs: wellknown").contains("expected well-known or"));
        assert!(error("name: ''", "name: 012345678901234567890123456789012").contains("32 octets"));
        let named = error("lecs: well-known }", "name: z }");
        assert!(named.contains("called by its key"), "{named}");
        let gateway = error("gateway: 10.1.0.77", "gateway: 10.9.0.77");
        assert!(gateway.contains("is no router"), "{gateway}");
    }
}
