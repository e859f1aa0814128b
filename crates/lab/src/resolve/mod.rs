//! From the sections of a file to a [`Lab`]: names become indices, addresses are assigned, routes computed.
//!
//! Nodes first ([`nodes`]), then the ATM network ([`atm`]), then IP ([`ip`]), then the events of the run ([`events`]).
//! Each stage reports all mistakes it can find. A stage that needs a valid result of an earlier one does not start
//! without it, so that a mistake is not reported twice.

mod adapters;
mod atm;
mod atp;
mod calls;
mod capacity;
mod clip;
mod contracts;
mod cpu;
mod direct;
mod ethernet;
mod events;
mod faults;
mod frames;
mod identity;
mod ip;
pub(crate) mod lane;
mod limits;
mod lines;
mod links;
mod load;
mod machine;
mod mpoa;
mod neighbours;
mod never;
mod nhrp;
mod nodes;
pub(crate) mod outside;
mod permanent;
mod ports;
mod proxies;
mod pseudowires;
mod queues;
mod rate_queues;
pub(crate) mod sockets;
mod stage;
mod tcp;
mod timers;
mod uplink;
mod vlans;

pub(crate) use ip::{Owners, Step, owners, trace};
pub(crate) use limits::fits;
pub(crate) use machine::{Obstacle, obstacles};
pub(crate) use never::in_virtual_time;
pub use permanent::label;

use crate::diag::{Diagnostics, Severity, Span};
use crate::field::{At, FromText as _, Optional as _};
use crate::file::{LabFile, LabName, Name};
use crate::model::{Lab, NodeId, Retired};
use crate::numbers::Numbers;
use stage::{Building, Connecting, Happening, Joining, Programming};
use std::collections::BTreeMap;

aerostat_wire::named! {
    /// The kind of node that a name stands for.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum Class {
        /// A switch.
        Switch = "a switch",
        /// The host of the LANE services.
        LaneServer = "the LANE server",
        /// A router.
        Router = "a router",
        /// A host.
        Host = "a host",
        /// The far end of a link out of the lab.
        Outside = "the far end of a link out of the lab",
    }
}

impl Class {
    /// Says that a node of this class stands where `what` is wanted.
    pub(crate) fn instead_of(self, name: &str, what: &str) -> String {
        format!("'{name}' is {}, not {what}", self.name())
    }
    /// The table of the file that defines such nodes, as a path for [`rests_on`](crate::diag::Diagnostic::rests_on).
    const fn table(self) -> &'static str {
        match self {
            Self::Switch => "switches/.",
            Self::LaneServer => "lane/.",
            Self::Router => "routers/.",
            Self::Host => "hosts/.",
            Self::Outside => "links/.",
        }
    }
}

/// All node names of the lab.
#[derive(Debug, Default)]
pub(crate) struct Names {
    by_name: BTreeMap<String, (NodeId, Class, Span)>,
    /// Hosts on Ethernet segments: the host in front of them, their index, and the place of the name.
    behind: BTreeMap<String, (NodeId, usize, Span)>,
    /// The first switch by name.
    switch: Option<String>,
    count: usize,
}

impl Names {
    fn collect(file: &LabFile, d: &mut Diagnostics) -> Self {
        let mut names = Self::default();
        for (name, _) in &file.switches.0 {
            names.add(&name.value.0, Class::Switch, name.at, d);
        }
        if let Some((section, _)) = lane::own(file) {
            let (lane, at) = lane::server_name(section);
            names.add(lane, Class::LaneServer, at, d);
            for (number, standby) in (2..).zip(section.standby.iter().flatten()) {
                let (name, at) = lane::standby_name(standby, number);
                names.add(&name, Class::LaneServer, at, d);
            }
        }
        for (name, _) in file.routers.iter().flat_map(|table| &table.0) {
            names.add(&name.value.0, Class::Router, name.at, d);
        }
        for (name, _) in &file.hosts.0 {
            names.add(&name.value.0, Class::Host, name.at, d);
        }
        for (number, link) in (1..).zip(outside::links(file)) {
            let (name, at) = outside::name(link, number);
            names.add(&name, Class::Outside, at, d);
        }
        for (front, host) in &file.hosts.0 {
            for (place, (name, _)) in host.bridge.iter().flat_map(|t| &t.0).enumerate() {
                names.add_behind(&front.value.0, place, name, d);
            }
        }
        names
    }
    fn add(&mut self, name: &str, class: Class, at: Span, d: &mut Diagnostics) {
        let id = NodeId(self.count);
        self.count += 1;
        if let Some((_, other, first)) = self.by_name.get(name) {
            d.error(at, format!("two nodes with one name: '{name}'"))
                .see(*first, format!("here it is {}", other.name()))
                .rests_on_name(name);
            return;
        }
        if class == Class::Switch && self.switch.as_deref().is_none_or(|first| name < first) {
            self.switch = Some(name.to_owned());
        }
        self.by_name.insert(name.to_owned(), (id, class, at));
    }
    /// Adds a host on the segment behind `front`. It is not a node, but has a name like one.
    fn add_behind(&mut self, front: &str, place: usize, name: &At<Name>, d: &mut Diagnostics) {
        let text = &name.value.0;
        if let Some((_, other, first)) = self.by_name.get(text) {
            d.error(name.at, format!("two nodes with one name: '{text}'"))
                .see(*first, format!("here it is {}", other.name()));
        } else if self.behind.contains_key(text) {
            d.error(name.at, format!("two nodes with one name: '{text}'"));
        }
        if let Some((id, _, _)) = self.by_name.get(front) {
            self.behind.insert(text.clone(), (*id, place, name.at));
        }
    }
    /// All names with their places.
    fn places(&self) -> impl Iterator<Item = (&str, Span)> {
        let nodes = self.by_name.iter().map(|(name, (_, _, at))| (&**name, *at));
        nodes.chain(self.behind.iter().map(|(name, (_, _, at))| (&**name, *at)))
    }
    /// The kind of node that has this name.
    fn class(&self, name: &str) -> Option<Class> {
        self.by_name.get(name).map(|(_, class, _)| *class)
    }
    /// The host with the name `name`; if it is on a segment, its index there.
    pub(crate) fn host(
        &self,
        name: &At<String>,
        d: &mut Diagnostics,
    ) -> Option<(NodeId, Option<usize>)> {
        if let Some((id, place, _)) = self.behind.get(&name.value) {
            return Some((*id, Some(*place)));
        }
        let id = self.find(name, &[Class::Host], "a host", d)?;
        Some((id, None))
    }
    /// The node with the name `name`, which must be of one of the classes in `wanted`.
    pub(crate) fn find(
        &self,
        name: &At<String>,
        wanted: &[Class],
        what: &str,
        d: &mut Diagnostics,
    ) -> Option<NodeId> {
        let known = || {
            self.by_name
                .iter()
                .filter(|(_, (_, class, _))| wanted.contains(class))
                .map(|(name, _)| name.as_str())
        };
        match self.by_name.get(&name.value) {
            Some((id, class, _)) if wanted.contains(class) => Some(*id),
            Some((_, class, at)) => {
                let text = class.instead_of(&name.value, what);
                d.error(name.at, text)
                    .suggest("", known())
                    .see(*at, "it is defined here")
                    .rests_on_name(&name.value);
                None
            }
            None => {
                let text = format!("there is no {} '{}'", bare(what), name.value);
                let found = d.error(name.at, text);
                // Another switch makes no other mistakes: only links get other names.
                let switch = self.switch.as_ref().filter(|_| wanted == [Class::Switch]);
                found.sample = switch.cloned();
                found
                    .suggest(&name.value, known())
                    .rests_on_name(&name.value)
                    .rests_on(wanted.iter().map(|class| class.table()));
                None
            }
        }
    }
}

/// `a switch` without the article.
fn bare(what: &str) -> &str {
    what.split_once(' ').map_or(what, |(_, noun)| noun)
}

/// Checks and resolves a file whose sections could all be read, and which [`fits`]. `default_name` is the name of the
/// lab if the file gives no name. What is in `known` keeps its number. Unknown keys are separate mistakes.
pub(crate) fn resolve(
    file: &LabFile,
    default_name: &str,
    known: &Numbers,
    d: &mut Diagnostics,
) -> Option<Lab> {
    let before = d.count(Severity::Error);
    let wrong = |d: &Diagnostics| d.count(Severity::Error) > before;
    let names = Names::collect(file, d);
    let mut lab = empty(file, default_name, known.clone(), d);
    let mut building = Building::of(&mut lab);
    nodes::build(file, &names, &mut building, d);
    outside::build(file, &names, &mut building, d);
    nodes::link_names(file, &lab, d);
    limits::clients(file, &lab, d);
    queues::check(file, &lab, d);
    frames::check(file, d);
    if wrong(d) {
        return None;
    }
    lane::check_foreign(file, &lab, d);
    clip::members(file, &names, &mut Joining::of(&mut lab), d);
    lines::stations(file, &names, &mut Joining::of(&mut lab), d);
    permanent::connections(file, &names, &mut Connecting::of(&mut lab), d);
    lines::connected(file, &lab, d);
    adapters::paths(file, &lab, d);
    pseudowires::check(file, &lab, d);
    if wrong(d) {
        return None;
    }
    sockets::build(file, &names, &mut Programming::of(&mut lab), d);
    atm::route(file, &lab, d);
    let mut joining = Joining::of(&mut lab);
    ip::route(file, &mut joining, d);
    neighbours::neighbours(file, &mut joining, d);
    nhrp::build(file, &names, &mut joining, d);
    if wrong(d) {
        return None;
    }
    events::build(file, &names, &mut Happening::of(&mut lab), d);
    if lab.nodes.is_empty() {
        nodes::no_switch(file, d);
    }
    never::too_late(file, d);
    proxies::clashes(file, d);
    if wrong(d) {
        return None;
    }
    never::warn(file, &lab, d);
    contracts::warn(file, &lab, d);
    crate::kinds::warn(names.places(), d);
    Some(lab)
}

/// The lab without its parts: what is said of all of it.
fn empty(file: &LabFile, default_name: &str, mut numbers: Numbers, d: &mut Diagnostics) -> Lab {
    nodes::number(file, &mut numbers);
    Lab {
        name: name(file, default_name, d),
        description: file.description.plain(),
        seed: file.seed.get(),
        until: file.until.plain(),
        nodes: Vec::new(),
        links: Vec::new(),
        elans: Vec::new(),
        pvcs: Vec::new(),
        sockets_expect: BTreeMap::new(),
        traffic: Vec::new(),
        faults: Vec::new(),
        capture: Vec::new(),
        occupancy: None,
        names: identity::names(file, d),
        sockets_group: sockets::group(file, d),
        numbers,
        retired: Retired::default(),
        timers: timers::timers(file, d),
        limits: limits::limits(file),
    }
}

/// The lab's name: its own, or else that of its file.
fn name(file: &LabFile, default: &str, d: &mut Diagnostics) -> String {
    if let Some(name) = &file.name {
        return name.value.0.clone();
    }
    if let Err(why) = LabName::from_text(default) {
        d.error(
            file.place,
            format!("the lab is called after its file, '{default}': {why}"),
        )
        .hint("give it a 'name:', or rename the file")
        .rests_on(["name"]);
    }
    default.to_owned()
}

#[cfg(test)]
pub(crate) mod tests {
    use crate::model::{Lab, NodeId, NodeKind};
    use crate::routing::Routing;
    use aerostat_node::atm::Shaping;
    use aerostat_wire::Vc;

    /// Two switches, two ELANs, a router between them.
    pub(crate) const SMALL: &str = "
switches: { s1: {}, s2: {} }
links: [[s1, s2]]
lane: { on: s1, elans: { a: { subnet: 10.1.0.0/24 }, b: { subnet: 10.2.0.0/24 } } }
routers: { r: { on: s2, elans: { a: 10.1.0.1, b: 10.2.0.1 } } }
hosts:
  x: { on: s1, elan: a, ip: 10.1.0.10 }
  y: { on: s2, elan: b, ip: 10.2.0.10 }
";

    pub(crate) fn lab(text: &str) -> Lab {
        crate::parse("t.atm.yml", text, &[])
            .unwrap_or_else(|d| panic!("{d}"))
            .lab
    }

    /// Where a call to `to` goes from a switch: the node behind the port.
    pub(crate) fn next_hop(lab: &Lab, switch: NodeId, to: &[u8]) -> Option<NodeId> {
        let routes = Routing::new(lab).routes(switch).into_iter();
        let fits = routes.filter(|(prefix, _)| to.starts_with(prefix));
        let (_, ways) = fits.max_by_key(|(prefix, _)| prefix.len())?;
        let port = ways.first()?.port.0;
        match &lab.node(switch).kind {
            NodeKind::Switch(model) => Some(model.ports.get(usize::from(port))?.peer),
            _ => None,
        }
    }

    /// Findings about a lab file: its errors, or else its warnings.
    pub(crate) fn told(text: &str) -> String {
        match crate::parse("t.atm.yml", text, &[]) {
            Ok(checked) => checked.warnings.to_string(),
            Err(errors) => errors.to_string(),
        }
    }

    /// The small lab with more keys of its host `x` and more sections.
    pub(crate) fn with_x(hosts: &str, rest: &str) -> String {
        let text = match hosts {
            "" => SMALL.to_owned(),
            hosts => SMALL.replacen("ip: 10.1.0.10", &format!("ip: 10.1.0.10, {hosts}"), 1),
        };
        assert!(
            hosts.is_empty() || text != SMALL,
            "no such place in {SMALL}"
        );
        format!("{text}{rest}\n")
    }

    /// Shaping of single labels by the adapter of a host.
    pub(crate) fn shapings(lab: &Lab, name: &str) -> Vec<(Vc, Shaping)> {
        let node = lab.node(lab.find(name).unwrap());
        let NodeKind::Host(host) = &node.kind else {
            panic!("{name} is a host");
        };
        host.nic
            .shapes_of
            .iter()
            .map(|(vc, shaping)| (*vc, *shaping))
            .collect()
    }

    fn error(text: &str) -> String {
        let found = crate::parse("t.atm.yml", text, &[]);
        found.expect_err("an error").to_string()
    }

    #[test]
    fn hosts_behind_a_bridge_have_names_and_addresses_of_their_own() {
        let bridge = "ip: 10.1.0.10, bridge: { p: 10.1.0.20, q: 10.1.0.21 }";
        let text = SMALL.replace("ip: 10.1.0.10", bridge);
        let flow = |from: &str, to: &str| {
            format!("{text}traffic: [{{ from: {from}, to: {to}, kind: voice }}]\n")
        };
        let lab = lab(&flow("q", "y"));
        let call = &lab.traffic[0];
        assert_eq!((call.segment, call.voice), ([Some(1), None], true));
        assert_eq!(lab.ends_of(call), ["q", "y"]);
        let host = lab.behind(call.from, call.segment[0]).expect("behind x");
        assert_eq!(host.mac.to_string(), "02:a7:03:00:01:02");
        assert_eq!(lab.node(call.from).name, "x");
        let there = crate::parse("t.atm.yml", &flow("y", "p"), &[]).expect("good");
        assert_eq!(there.lab.traffic[0].destination.to_string(), "10.1.0.20");
        for (text, says) in [
            (flow("p", "p"), "a flow from a host to itself"),
            (flow("p", "z"), "there is no host 'z'"),
            (
                text.replace("q: 10.1.0.21", "y: 10.1.0.21"),
                "two nodes with one name: 'y'",
            ),
            (
                text.replace("10.1.0.21", "10.1.0.20"),
                "both have 10.1.0.20",
            ),
            (text.replace("10.1.0.21", "10.3.0.1"), "outside 10.1.0.0/24"),
        ] {
            let found = error(&text);
            assert!(found.contains(says), "{found}");
        }
    }

    #[test]
    fn no_two_links_have_one_name() {
        let link = |name: &str| {
            SMALL.replace(
                "[[s1, s2]]",
                &format!("[[s1, s2], [s1, s2, {{ name: {name} }}]]"),
            )
        };
        for (name, says) in [
            ("s1-s2", "two links with one name: 's1-s2'"),
            ("x-s1", "two links with one name: 'x-s1' is that of x, too"),
            (
                "lane-s1",
                "two links with one name: 'lane-s1' is that of lane, too",
            ),
        ] {
            let said = error(&link(name));
            assert!(said.contains(says), "{said}");
            assert_eq!(said.matches("error:").count(), 1, "{said}");
        }
        assert_eq!(lab(&link("x-s2")).links[1].name, "x-s2");
    }

    #[test]
    fn qos_entries_are_those_of_the_host_or_else_of_the_lab() {
        let list = |own: &str| {
            let host = format!("ip: 10.1.0.10{own}");
            let lab_wide = "mpoa: { qos: [\"10.2.0.9 tx=7,1600 rx=tx\"] }\n";
            format!(
                "{lab_wide}{}",
                SMALL.replace("ip: 10.1.0.10", &host).trim_start()
            )
        };
        let entries = |text: &str| {
            let lab = lab(text);
            let all = lab
                .hosts()
                .map(|(_, _, host)| host.mpoa.clone().expect("a client").qos);
            all.map(|qos| {
                qos.iter()
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
                    .join("; ")
            })
            .collect::<Vec<_>>()
        };
        let wide = "10.2.0.9 tx=7,0,1600 rx=tx";
        assert_eq!(entries(&list("")), [wide, wide]);
        let own = ", mpoa: { qos: [\"10.2.0.10:9 udp tx=5,300 rx=tx\"] }";
        let one = "0.0.0.0:0 10.2.0.10:9 udp tx=5,0,300 rx=tx";
        assert_eq!(entries(&list(own)), [one, wide]);
        let twice = own.replace("rx=tx\"", "rx=tx\", \"10.2.0.10:9 udp tx=6,300 rx=tx\"");
        assert!(error(&list(&twice)).contains("two entries for 0.0.0.0:0 10.2.0.10:9 udp"));
        let wrong = own.replace("tx=5", "tx=0");
        assert!(error(&list(&wrong)).contains("no traffic at 0 cells/s"));
    }

    #[test]
    fn an_unknown_key_hides_no_other_mistake() {
        let text = SMALL
            .replace("ip: 10.2.0.10", "ip: 10.3.0.10, gatway: 10.2.0.1")
            .replace("links:", "trafic: []\nlinks:");
        let text = format!("{text}traffic: [{{ from: x, to: z, kind: tcp }}]\n");
        let said = error(&text.replace("10.3.0.10", "10.2.0.10"));
        for mistake in [
            "unknown key 'trafic'",
            "unknown key 'gatway'",
            "there is no host 'z'",
        ] {
            assert!(said.contains(mistake), "{said}");
        }
        assert!(error(&text).contains("10.3.0.10 is outside"));
    }

    #[test]
    fn a_lab_has_a_name_that_sockets_and_commands_can_take() {
        let long = "n".repeat(65);
        for (file, says) in [
            ("..atm.yml", "'.': a lab's name has 1 to 64 letters"),
            ("-x.atm.yml", "starts with a letter or digit"),
            ("a b.atm.yml", "letters, digits, '-', '_' and '.'"),
            (
                &format!("{long}.atm.yml"),
                "65 octets: a lab's name has at most 64",
            ),
        ] {
            let found = crate::parse(&format!("labs/{file}"), SMALL, &[]);
            let said = found.expect_err(file).to_string();
            assert!(said.contains(says), "{said}");
            assert!(
                said.contains("give it a 'name:', or rename the file"),
                "{said}"
            );
            // A name in the file is as valid as the file's own name.
            let named = format!("name: good\n{SMALL}");
            assert_eq!(
                crate::parse(file, &named, &[]).expect("a lab").lab.name,
                "good"
            );
        }
        let long = format!("name: {long}\n{SMALL}");
        assert!(error(&long).contains("t.atm.yml:1:7: error: 'nnn"));
        for (file, name) in [("v1.2.atm.yml", "v1.2"), ("-", "lab"), ("/dev/fd/63", "63")] {
            assert_eq!(crate::parse(file, SMALL, &[]).expect(file).lab.name, name);
        }
    }

    #[test]
    fn the_version_of_the_format_can_be_told() {
        let good = format!("schema: aerostat.lab.v1\n{SMALL}");
        assert!(crate::parse("t.atm.yml", &good, &[]).is_ok());
        let later = format!("schema: aerostat.lab.v2\n{SMALL}");
        assert!(error(&later).contains("'aerostat.lab.v2': this version reads aerostat.lab.v1"));
        assert_eq!(crate::schema()["$id"], "urn:aerostat:aerostat.lab.v1");
    }
}
