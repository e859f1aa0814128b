//! Links between two end systems, without a switch.
//!
//! Such a link has one label for both ends of a permanent connection. For calls, the end that the file names first
//! plays the network side of the UNI, because a UNI between two users carries no calls. There is nothing behind that
//! side: LANE services, ILMI and further nodes need a switch.
//!
//! A link out of the lab may begin at an end system, too. The far end is a switch then, which plays the network side;
//! this module checks what the end system may expect there.

use super::links::{connect, inside};
use super::nodes::LinkNames;
use super::stage::Building;
use super::{Class, Names, outside, uplink};
use crate::diag::{Diagnostics, Span};
use crate::field::{At, Key, Optional as _};
use crate::file::{Atm, HostFile, LabFile, LinkFile, Name, RouterFile, TrunkFile};
use crate::model::{Attachment, Lab, LinkId, NodeId, NodeKind};
use crate::parameter::Given;
use aerostat_node::atm::Policing;
use aerostat_wire::AtmAddress;

/// The nodes that a link may join without a switch.
const ENDS: [Class; 2] = [Class::Host, Class::Router];

/// True for an entry of `links:` between two end systems; one of its ends may be unknown.
pub(super) fn joins(names: &Names, link: &TrunkFile) -> bool {
    let classes = link.ends.each_ref().map(|end| names.class(&end.value));
    let is_end = |class: &Option<Class>| class.is_some_and(|class| ENDS.contains(&class));
    classes.iter().any(is_end) && !classes.contains(&Some(Class::Switch))
}

/// True for the name of an end system that may have a link without a switch of the lab.
pub(super) fn is_end(names: &Names, name: &str) -> bool {
    names.class(name).is_some_and(|class| ENDS.contains(&class))
}

/// True if anything in the file is to be attached to a switch.
pub(super) fn wants_a_switch(file: &LabFile) -> bool {
    let lane = file.lane.as_ref().is_some_and(|lane| lane.on.is_some());
    lane || ends(file).any(|end| end.on.is_some())
}

/// The entries of `links:` between two end systems.
fn links<'a>(file: &'a LabFile, names: &'a Names) -> impl Iterator<Item = &'a TrunkFile> + 'a {
    file.links.iter().flatten().filter_map(|link| match link {
        LinkFile::Trunk(link) => joins(names, link).then_some(&**link),
        LinkFile::Outside(_) => None,
    })
}

/// Parts of the file about an end system.
pub(super) struct End<'a> {
    pub(super) name: &'a At<Name>,
    pub(super) place: Span,
    on: Option<&'a At<String>>,
    link: Option<Span>,
    pub(super) ilmi: &'a Key<bool>,
    /// Its own ATM address.
    address: Option<&'a At<Atm>>,
    /// Names of the subnets that it joins.
    pub(super) elans: Vec<&'a str>,
}

impl<'a> End<'a> {
    fn of_host((name, host): &'a (At<Name>, HostFile)) -> Self {
        Self {
            name,
            place: host.place,
            on: host.on.as_ref(),
            link: host.given.at("link"),
            ilmi: &host.ilmi,
            address: host.address.as_ref(),
            elans: vec![&host.elan.value],
        }
    }
    fn of_router((name, router): &'a (At<Name>, RouterFile)) -> Self {
        Self {
            name,
            place: router.place,
            on: router.on.as_ref(),
            link: router.given.at("link"),
            ilmi: &router.ilmi,
            address: router.address.as_ref(),
            elans: router
                .elans
                .0
                .iter()
                .map(|(name, _)| &*name.value)
                .collect(),
        }
    }
    pub(super) fn text(&self) -> &str {
        &self.name.value.0
    }
}

/// The end systems of the file, in the order of their nodes.
fn ends(file: &LabFile) -> impl Iterator<Item = End<'_>> {
    let routers = file.routers.iter().flat_map(|table| &table.0);
    routers
        .map(End::of_router)
        .chain(file.hosts.0.iter().map(End::of_host))
}

/// Adds the links between end systems to a lab that has all end systems.
pub(super) fn build(file: &LabFile, names: &Names, lab: &mut Building<'_>, d: &mut Diagnostics) {
    for link in links(file, names) {
        join(file, names, link, lab, d);
    }
}

/// Checks what works without a switch of the lab, once all links are there.
pub(super) fn check(file: &LabFile, names: &Names, lab: &Lab, d: &mut Diagnostics) {
    let known = |end: &At<String>| names.class(&end.value).is_some();
    // A node may be the one that a wrong name stands for.
    let between = links(file, names).flat_map(|link| &link.ends);
    let sure = between
        .chain(outside::links(file).map(|link| &link.on))
        .all(known);
    for end in ends(file).filter(|end| end.address.is_some() || end.on.is_none()) {
        let Some(id) = lab.find(end.text()) else {
            continue;
        };
        if let Some(address) = end.address {
            uplink::own_address(&end, address, lab.uplink(id).is_some(), d);
        }
        if end.on.is_some() {
            continue;
        }
        match lab.back_to_back(id) {
            Some((peer, _)) => needs_no_switch(&end, id, peer, lab, d),
            None if !sure => {}
            None => {
                let name = end.text();
                d.error(end.name.at, format!("{name} is attached to nothing"))
                    .hint(format!(
                        "name its switch ('on: s1'), join it to another host: links: [[{name}, OTHER]], or lead its link \
                         out of the lab: links: [[{name}, {{ udp: ... }}]]"
                    ))
                    .rests_in(end.place, ["on"])
                    .rests_on(["links/*/0", "links/*/1/.", "hosts/*/on", "routers/*/on"]);
            }
        }
    }
}

fn join(
    file: &LabFile,
    names: &Names,
    link: &TrunkFile,
    lab: &mut Building<'_>,
    d: &mut Diagnostics,
) {
    let [a, b] = &link.ends;
    let (Some(a_id), Some(b_id)) = (find(file, names, a, d), find(file, names, b, d)) else {
        return;
    };
    if a_id == b_id {
        d.error(b.at, format!("a link from {} to itself", a.value))
            .rests_on(["links/*/0", "links/*/1/."]);
        return;
    }
    // Both are looked at: one mistake does not hide the other.
    let free = [(a, a_id), (b, b_id)].map(|(end, node)| is_free(file, (end, node), lab, d));
    if free.contains(&false) {
        return;
    }
    let options = &link.options;
    let name = LinkNames::of(lab).add(link, d);
    no_effect(&options.given, options.police.plain(), d);
    let id = connect(lab, a_id, b_id, |ends| inside(name, ends, options));
    attach(lab, a_id, b_id, id);
    attach(lab, b_id, a_id, id);
    let [ours, theirs] = [a_id, b_id].map(|end| version(lab, end));
    if let (Some(ours), Some(theirs)) = (ours, theirs)
        && ours != theirs
    {
        d.error(
            b.at,
            format!(
                "{} speaks UNI {ours} and {} UNI {theirs}: one link has one version",
                a.value, b.value
            ),
        )
        .hint("give both the same 'uni:'")
        .rests_on(["hosts/*/uni", "routers/*/uni"]);
    }
}

/// False, and an error, if the end system has a link already.
fn is_free(
    file: &LabFile,
    (end, node): (&At<String>, NodeId),
    lab: &Lab,
    d: &mut Diagnostics,
) -> bool {
    let attached = ends(file).find(|known| known.text() == end.value);
    if let Some(on) = attached.and_then(|known| known.on) {
        d.error(
            end.at,
            format!("{} has a link already, to {}", end.value, on.value),
        )
        .see(on.at, "it is attached here")
        .hint("a host has one ATM link: leave 'on:' out, or leave this link out");
        return false;
    }
    if let Some((peer, _)) = lab.back_to_back(node) {
        let peer = &lab.node(peer).name;
        let text = format!("{} has a link already, to {peer}", end.value);
        d.error(end.at, text)
            .hint("a host has one ATM link: three hosts need a switch");
        return false;
    }
    true
}

/// The end system with this name, if it has no link yet.
pub(super) fn free_end(
    file: &LabFile,
    names: &Names,
    end: &At<String>,
    lab: &Lab,
    d: &mut Diagnostics,
) -> Option<NodeId> {
    let id = names.find(end, &ENDS, "an end system", d)?;
    is_free(file, (end, id), lab, d).then_some(id)
}

/// The end system of this name. For a name that does not exist, one that no link has stands while the rest is checked.
fn find(file: &LabFile, names: &Names, end: &At<String>, d: &mut Diagnostics) -> Option<NodeId> {
    if names.class(&end.value).is_some() {
        return names.find(end, &ENDS, "an end system", d);
    }
    let linked = |name: &str| {
        let mut all = links(file, names).flat_map(|link| &link.ends);
        all.any(|end| end.value == name)
    };
    let mut free = ends(file).filter(|known| known.on.is_none() && !linked(known.text()));
    let sample = free.next().map(|known| known.text().to_owned());
    let text = format!("there is no end system '{}'", end.value);
    let found = d.error(end.at, text);
    found.sample = sample;
    found
        .suggest(
            &end.value,
            ends(file).map(|known| known.name.value.0.as_str()),
        )
        .rests_on_name(&end.value)
        .rests_on(["hosts/.", "routers/."]);
    None
}

/// Warns of keys of a link without a switch of the lab that mean something at a switch alone.
pub(super) fn no_effect(given: &Given, police: Option<Policing>, d: &mut Diagnostics) {
    let policers = "policers stand where cells enter a switch";
    let schedulers = "queues and shaped paths are those of switches";
    for (key, at) in given.of(&["police", "cdvt", "queues", "tunnels"]) {
        if key == "police" && police.is_some_and(Policing::is_off) {
            continue;
        }
        let text = format!("'{key}' has no effect: this link has no switch");
        let of_cells = matches!(key, "police" | "cdvt");
        d.warning(at, text)
            .hint(if of_cells { policers } else { schedulers });
    }
}

/// The attachment of an end system.
fn attachment<'a>(lab: &'a mut Building<'_>, id: NodeId) -> Option<&'a mut Attachment> {
    match &mut lab.nodes_mut().get_mut(id.0)?.kind {
        NodeKind::Host(host) => Some(&mut host.attachment),
        NodeKind::Router(router) => Some(&mut router.attachment),
        NodeKind::Switch(_) | NodeKind::LaneServer(_) | NodeKind::Outside(_) => None,
    }
}

/// Says at an end system where its link leads.
pub(super) fn attach(lab: &mut Building<'_>, id: NodeId, peer: NodeId, link: LinkId) {
    if let Some(own) = attachment(lab, id) {
        (own.switch, own.port, own.link) = (peer, 0, link);
    }
}

fn version(lab: &Lab, id: NodeId) -> Option<aerostat_wire::q2931::Version> {
    match &lab.node(id).kind {
        NodeKind::Host(host) => Some(host.uni),
        NodeKind::Router(router) => Some(router.uni),
        _ => None,
    }
}

/// Refuses what only a switch offers.
fn needs_no_switch(end: &End<'_>, id: NodeId, peer: NodeId, lab: &Lab, d: &mut Diagnostics) {
    let (name, other) = (end.text(), &lab.node(peer).name);
    if let Some(at) = end.link {
        let text = format!(
            "the link of {name} is described under 'links:', where it is joined to {other}"
        );
        d.error(at, text);
    }
    if lab.uplink(id).is_some() {
        return uplink::servers_elsewhere(end, id, lab, d);
    }
    if let Some(at) = end.ilmi.at.filter(|_| end.ilmi.get()) {
        d.error(
            at,
            "a switch gives addresses by ILMI, and this link has no switch",
        )
        .hint("leave 'ilmi' out: the lab assigns the addresses");
    }
    for lec in lab.node(id).lecs() {
        let elan = lab.elans.get(lec.elan.0);
        // A name that does not exist has been reported.
        let Some(elan) = elan.filter(|elan| end.elans.contains(&&*elan.name)) else {
            continue;
        };
        if elan.is_lane() {
            let text = format!(
                "{name} cannot join ELAN {}: {other} alone is at the other end of its link",
                elan.name
            );
            d.error(end.name.at, text)
                .hint("LANE needs a switch; two hosts use a subnet of 'clip:', or 'sockets:'")
                .rests_in(end.place, ["elan", "elans"]);
            continue;
        }
        let on_it = |(node, _): &(NodeId, &crate::model::Node)| {
            let mut lecs = lab.node(*node).lecs().iter();
            ![id, peer].contains(node) && lecs.any(|other| other.elan == lec.elan)
        };
        if let Some((_, third)) = lab.nodes().find(on_it) {
            let text = format!("{name} cannot reach {} of subnet {}", third.name, elan.name);
            d.error(end.name.at, text)
                .hint(format!("without a switch, {name} reaches {other} alone"))
                .rests_in(end.place, ["elan", "elans"])
                // The third node may be a member of the subnet that a wrong entry stands for.
                .rests_on(["clip/*/subnet", "clip/."]);
        }
    }
}

/// Refuses a call that no switch takes further. True if the call can be made.
pub(super) fn reaches(
    lab: &Lab,
    id: NodeId,
    (to, at): (AtmAddress, Span),
    d: &mut Diagnostics,
) -> bool {
    let address = |node: NodeId| lab.node(node).attachment().map(|own| own.address);
    // A call inside the host needs no link.
    if lab.uplink(id).is_some() || address(id) == Some(to.with_selector(0)) {
        return true;
    }
    if let Some((peer, _)) = lab.back_to_back(id) {
        let there = address(peer).is_some_and(|own| own == to.with_selector(0));
        if !there {
            let (name, other) = (&lab.node(id).name, &lab.node(peer).name);
            d.error(at, format!("{name} can call {other} alone"))
                .hint("its link has no switch that takes calls further")
                .rests_on(["links/*/0", "links/*/1/."]);
        }
        return there;
    }
    let mut nodes = lab.nodes().map(|(node, _)| node);
    let called = nodes.find(|node| address(*node) == Some(to.with_selector(0)));
    if let Some((called, (peer, _))) = called.and_then(|node| Some((node, lab.back_to_back(node)?)))
    {
        let (name, other) = (&lab.node(called).name, &lab.node(peer).name);
        d.error(at, format!("{other} alone can call {name}"))
            .hint(format!("the link of {name} has no switch"));
        return false;
    }
    true
}

#[cfg(test)]
mod tests {
    use crate::model::Side;
    use crate::resolve::tests::{lab, told};
    use aerostat_wire::Vc;

    const TWO: &str = "
switches: {}
links: [[x, y, { rate: taxi, delay: 1us }]]
clip: { wire: { subnet: 10.1.0.0/24, server: y } }
pvcs: [{ from: x, vc: 0.100, to: y, pcr: 1000 }]
hosts:
  x: { elan: wire, ip: 10.1.0.1 }
  y: { elan: wire, ip: 10.1.0.2, sockets: [{ call: x }] }
";

    #[test]
    fn two_hosts_share_a_link() {
        let lab = lab(TWO);
        let [x, y] = ["x", "y"].map(|name| lab.find(name).expect("a node"));
        assert_eq!(lab.back_to_back(x), Some((y, Side::Network)));
        assert_eq!(lab.back_to_back(y), Some((x, Side::User)));
        let pvc = &lab.pvcs[0];
        let label = Vc::new(0, 100);
        assert_eq!(pvc.ends, [(x, label), (y, label)]);
        assert!(pvc.hops.is_empty());
        assert_eq!(lab.links[0].name, "x-y");
        let [a, b] = [x, y].map(|id| lab.node(id).attachment().expect("a link").address);
        assert_ne!(a, b);
        assert_eq!(a.prefix(), b.prefix());
    }

    #[test]
    fn mistakes() {
        let lane = "lane: { on: s, elans: { a: { subnet: 10.2.0.0/24 } } }\npvcs:";
        for (was, is, says) in [
            (
                "[[x, y, { rate: taxi, delay: 1us }]]",
                "[]",
                "x is attached to nothing",
            ),
            (
                "delay: 1us",
                "police: true",
                "'police' has no effect: this link has no switch",
            ),
            (
                "delay: 1us",
                "queues: { buffer: 100 }",
                "'queues' has no effect: this link has no switch",
            ),
            (
                "delay: 1us",
                "tunnels: { 5: { pcr: 1000 } }",
                "'tunnels' has no effect: this link has no switch",
            ),
            (
                "to: y, pcr",
                "to: y, queue: { shape: true }, pcr",
                "'queue' has no effect: this link has no switch",
            ),
            ("[[x, y,", "[[x, x,", "a link from x to itself"),
            ("1us }]]", "1us }], [y, x]]", "y has a link already, to x"),
            (
                "x: { elan",
                "x: { ilmi: true, elan",
                "a switch gives addresses by ILMI",
            ),
            (
                "x: { elan",
                "x: { link: { rate: oc3 }, elan",
                "the link of x is described under 'links:'",
            ),
            (
                "x: { elan",
                "x: { uni: 4.0, elan",
                "x speaks UNI 4.0 and y UNI 3.1: one link has one version",
            ),
            (
                "to: y, pcr",
                "to: y, to_vc: 0.101, pcr",
                "a link without a switch has one label",
            ),
            ("vc: 0.100", "vc: 0.1024", "VCIs from 1024 are for calls"),
            (
                "pcr: 1000",
                "pcr: 231000",
                "link x-y cannot guarantee 231000 cells/s",
            ),
            ("to: y, pcr", "to: x, pcr", "x has 0.100 in use already"),
            (
                "  x:",
                "  z: { elan: wire, ip: 10.1.0.3 }\n  x:",
                "z is attached to nothing",
            ),
        ] {
            let said = told(&TWO.replacen(was, is, 1));
            assert!(said.contains(says), "{is}: {said}");
        }
        let other = TWO
            .replace("links: [", "links: [[z, w], ")
            .replace("to: y, pcr", "to: z, pcr")
            .replace("clip: {", "clip: { more: { subnet: 10.2.0.0/24 },")
            .replace(
                "  x:",
                "  z: { elan: more, ip: 10.2.0.3 }\n  w: { elan: more, ip: 10.2.0.4 }\n  x:",
            );
        let said = told(&other);
        assert!(
            said.contains("x and z are not at the two ends of a link"),
            "{said}"
        );
        let switched = TWO
            .replace("switches: {}", "switches: { s: {} }")
            .replace("pvcs:", lane);
        for (was, is, says) in [
            (
                "x: { elan",
                "x: { on: s, elan",
                "x has a link already, to s",
            ),
            (
                "x: { elan: wire, ip: 10.1.0.1",
                "x: { elan: a, ip: 10.2.0.1",
                "x cannot join ELAN a",
            ),
            (
                "  x:",
                "  z: { on: s, elan: wire, ip: 10.1.0.3 }\n  x:",
                "x cannot reach z of subnet wire",
            ),
            (
                "  x:",
                "  z: { on: s, elan: a, ip: 10.2.0.3, sockets: [{ call: x }] }\n  x:",
                "y alone can call x",
            ),
            ("[[x, y,", "[[x, s,", "'x' is a host, not a switch"),
        ] {
            let text = switched.replacen(was, is, 1);
            let found = crate::parse("t.atm.yml", &text, &[]);
            let said = found.expect_err(is).to_string();
            assert!(said.contains(says), "{is}: {said}");
        }
    }
}
