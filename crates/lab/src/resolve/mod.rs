//! From the sections of a file to a [`Lab`]: names become indices, addresses are assigned, routes computed.
//!
//! Nodes first ([`nodes`]), then the ATM network ([`atm`]), then IP ([`ip`]), then what happens during the run
//! ([`events`]). Each stage reports all mistakes it can see; a stage that needs a sound result of an earlier one
//! does not start without it, so that one mistake is not told twice.

mod atm;
mod clip;
mod events;
mod ip;
mod lane;
mod mpoa;
mod nhrp;
mod nodes;
mod outside;
mod permanent;
pub(crate) use permanent::label;
mod sockets;

use crate::diag::{Diagnostics, Span};
use crate::field::At;
use crate::file::LabFile;
use crate::model::{Lab, NodeId};
use std::collections::BTreeMap;

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// A switch.
    Switch,
    /// The host of the LANE services.
    LaneServer,
    /// A router.
    Router,
    /// A host.
    Host,
    /// The far end of a link out of the lab.
    Outside,
}

impl Class {
    const fn text(self) -> &'static str {
        match self {
            Self::Switch => "a switch",
            Self::LaneServer => "the LANE server",
            Self::Router => "a router",
            Self::Host => "a host",
            Self::Outside => "the far end of a link out of the lab",
        }
    }
}

/// All node names of the lab.
#[derive(Debug, Default)]
pub(crate) struct Names {
    by_name: BTreeMap<String, (NodeId, Class, Span)>,
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
        names
    }
    fn add(&mut self, name: &str, class: Class, at: Span, d: &mut Diagnostics) {
        let id = NodeId(self.count);
        self.count += 1;
        if let Some((_, other, first)) = self.by_name.get(name) {
            d.error(at, format!("two nodes with one name: '{name}'"))
                .see(*first, format!("here it is {}", other.text()));
            return;
        }
        self.by_name.insert(name.to_owned(), (id, class, at));
    }
    /// The node that `name` refers to, of one of the classes in `wanted`.
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
                let text = format!("'{}' is {}, not {what}", name.value, class.text());
                d.error(name.at, text)
                    .suggest("", known())
                    .see(*at, "it is defined here");
                None
            }
            None => {
                let text = format!("there is no {} '{}'", bare(what), name.value);
                d.error(name.at, text).suggest(&name.value, known());
                None
            }
        }
    }
}

/// `a switch` without the article.
fn bare(what: &str) -> &str {
    what.split_once(' ').map_or(what, |(_, noun)| noun)
}

/// Checks and resolves a file whose sections could all be read. `default_name` is the lab's name unless the file
/// gives one.
pub(crate) fn resolve(file: &LabFile, default_name: &str, d: &mut Diagnostics) -> Option<Lab> {
    let names = Names::collect(file, d);
    let mut lab = Lab {
        name: file
            .name
            .as_ref()
            .map_or(default_name, |name| &name.value.0)
            .to_owned(),
        description: file.description.as_ref().map(|text| text.value.clone()),
        seed: file.seed.as_ref().map_or(1, At::get),
        until: file.until.as_ref().map(|time| time.value.0),
        nodes: Vec::new(),
        links: Vec::new(),
        elans: Vec::new(),
        pvcs: Vec::new(),
        traffic: Vec::new(),
        faults: Vec::new(),
        capture: Vec::new(),
    };
    nodes::build(file, &names, &mut lab, d);
    outside::build(file, &names, &mut lab, d);
    lane::check_foreign(file, &lab, d);
    clip::members(file, &names, &mut lab, d);
    nhrp::build(file, &names, &mut lab, d);
    permanent::connections(file, &names, &mut lab, d);
    if d.has_errors() {
        return None;
    }
    sockets::build(file, &names, &mut lab, d);
    atm::route(file, &mut lab, d);
    ip::route(file, &mut lab, d);
    if d.has_errors() {
        return None;
    }
    events::build(file, &names, &mut lab, d);
    (!d.has_errors()).then_some(lab)
}

#[cfg(test)]
pub(crate) mod tests {
    use crate::model::Lab;

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
}
