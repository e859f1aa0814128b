//! The difference between a running lab and a file, by kind and name.

use super::needs::{self, Means};
use crate::model::{ElanId, Lab, LinkId, NodeId, NodeKind, Pvc};
use crate::settings::settings;
use aerostat_proto::Instant;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::fmt;

/// The changes that bring a running lab to a file, in the order in which they are told.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The changes.
    pub changes: Vec<Change>,
}

/// A change of one thing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// Its fate.
    pub act: Act,
    /// Its kind.
    pub kind: Kind,
    /// Its name.
    pub name: String,
    /// The values that change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<Detail>,
    /// Its needs.
    pub needs: Needs,
}

aerostat_wire::named! {
    /// The fate of a thing.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Act {
        /// It is added.
        Add = "+",
        /// It is removed.
        Remove = "-",
        /// Some of its values change.
        Change = "~",
    }
}

aerostat_wire::named! {
    /// The kind of a thing.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Kind {
        /// A switch.
        Switch = "switch",
        /// A host of LANE services.
        LaneServer = "LANE server",
        /// A router.
        Router = "router",
        /// A host.
        Host = "host",
        /// A link out of the lab.
        Outside = "link out of the lab",
        /// A link.
        Link = "link",
        /// An ELAN or a subnet.
        Subnet = "subnet",
        /// A permanent connection.
        Pvc = "pvc",
        /// A flow.
        Traffic = "traffic",
        /// The schedule of faults.
        Faults = "faults",
        /// A key of the whole lab.
        Lab = "lab",
    }
}

/// A value that changes. A value that is not there is null.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Detail {
    /// Its name in the settings of a lab.
    pub key: String,
    /// The value so far.
    pub from: Value,
    /// The new value.
    pub to: Value,
}

/// Needs of a change in a running lab.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Needs {
    /// Nothing: the lab goes on.
    #[default]
    Nothing,
    /// These nodes must start again, with empty state.
    Restart(BTreeSet<String>),
    /// The whole lab must be started again, for this reason.
    NewStart(String),
}

impl Plan {
    /// True if the lab is as the file says.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// The nodes that must start again.
    #[must_use]
    pub fn restarts(&self) -> BTreeSet<&str> {
        let all = self.changes.iter().flat_map(|change| match &change.needs {
            Needs::Restart(nodes) => nodes.iter().map(String::as_str).collect(),
            Needs::Nothing | Needs::NewStart(_) => Vec::new(),
        });
        all.collect()
    }

    /// The changes for which the whole lab must be started again, each with the reason.
    pub fn new_starts(&self) -> impl Iterator<Item = (&Change, &str)> {
        self.changes
            .iter()
            .filter_map(|change| match &change.needs {
                Needs::NewStart(reason) => Some((change, reason.as_str())),
                Needs::Nothing | Needs::Restart(_) => None,
            })
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.act, self.kind, self.name)?;
        for (number, Detail { key, from, to }) in self.details.iter().enumerate() {
            f.write_str(if number == 0 { ": " } else { ", " })?;
            match self.act {
                Act::Change => write!(f, "{key} {} -> {}", plain(from), plain(to))?,
                Act::Add => write!(f, "{key} {}", plain(to))?,
                Act::Remove => write!(f, "{key} {}", plain(from))?,
            }
        }
        Ok(())
    }
}

/// Longest group of values that is told to people, octets.
const LONG: usize = 60;

/// A value for people.
fn plain(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(all) if all.is_empty() => "none".to_owned(),
        Value::Object(all) if all.is_empty() => "none".to_owned(),
        Value::Array(all) => {
            let all: Vec<String> = all.iter().map(plain).collect();
            format!("[{}]", all.join(" "))
        }
        Value::Object(all) => {
            let all = all
                .iter()
                .map(|(key, value)| format!("{key} {}", plain(value)));
            let all = format!("{{{}}}", all.collect::<Vec<_>>().join(" "));
            match all.len() > LONG {
                true => "given".to_owned(),
                false => all,
            }
        }
        other => other.to_string(),
    }
}

/// The changes that bring the lab `old` to `new`, which has the same indices ([`super::beside`]).
#[must_use]
pub fn plan(old: &Lab, new: &Lab, means: Means) -> Plan {
    let settings = [old, new].map(|lab| settings(lab, Instant::ZERO));
    let mut making = Making {
        labs: [old, new],
        settings,
        means,
        changes: Vec::new(),
    };
    making.nodes();
    making.links();
    making.subnets();
    making.pvcs();
    making.traffic();
    making.whole();
    Plan {
        changes: making.changes,
    }
}

/// A plan that is being made: of the lab so far and of the new one.
struct Making<'a> {
    labs: [&'a Lab; 2],
    settings: [Value; 2],
    means: Means,
    changes: Vec<Change>,
}

/// Keys of a node's settings that follow from other parts of the lab.
const FOLLOWS: [&str; 1] = ["ports"];
/// Keys that tell what a new or removed thing is.
const TELLING: [&str; 9] = [
    "on", "subnet", "ends", "from", "to", "kind", "rate_cps", "qos", "start_s",
];

impl Making<'_> {
    fn put(&mut self, act: Act, (kind, name): (Kind, &str), details: Vec<Detail>, needs: Needs) {
        self.changes.push(Change {
            act,
            kind,
            name: name.to_owned(),
            details,
            needs,
        });
    }

    /// The settings of a thing, in the lab so far and in the new one.
    fn of(&self, section: &str, name: &str) -> [Value; 2] {
        [0, 1].map(|side| self.settings[side][section][name].clone())
    }

    /// The values of a thing that differ; of one that is new or removed, those that tell what it is.
    fn details(&self, act: Act, section: &str, name: &str) -> Vec<Detail> {
        details(act, self.of(section, name))
    }

    fn nodes(&mut self) {
        let [old, new] = self.labs;
        for (id, node) in new.nodes.iter().enumerate() {
            let id = NodeId(id);
            let before = old.nodes.get(id.0).filter(|_| old.has_node(id));
            let (kind, name) = (kind_of(&node.kind), node.name.as_str());
            let act = match (before, new.has_node(id)) {
                (None, true) => Act::Add,
                (Some(_), false) => Act::Remove,
                (Some(before), true) if !needs::same_node(&before.kind, &node.kind) => Act::Change,
                _ => continue,
            };
            let needs = needs::of_node(self.labs, id, act, self.means);
            let mut details = self.details(act, "nodes", name);
            // The kind is told by its own word.
            details.retain(|detail| detail.key != "kind");
            self.put(act, (kind, name), details, needs);
        }
    }

    fn links(&mut self) {
        let [old, new] = self.labs;
        for (id, link) in new.links.iter().enumerate() {
            let id = LinkId(id);
            let before = old.links.get(id.0).filter(|_| old.has_link(id));
            let act = match (before, new.has_link(id)) {
                (None, true) => Act::Add,
                (Some(_), false) => Act::Remove,
                (Some(before), true) if before != link => Act::Change,
                _ => continue,
            };
            // The link of a node that comes or goes is part of it.
            let comes = |end: NodeId| {
                let (was, is) = (
                    end.0 < old.nodes.len() && old.has_node(end),
                    new.has_node(end),
                );
                was != is
            };
            let switch = |id: NodeId| matches!(new.node(id).kind, NodeKind::Switch(_));
            let ends = link.ends.map(|end| end.node);
            if act != Act::Change && ends.iter().any(|end| comes(*end) && !switch(*end)) {
                continue;
            }
            let needs = needs::of_link(self.labs, id, act);
            let details = self.details(act, "links", &link.name);
            self.put(act, (Kind::Link, &link.name), details, needs);
        }
    }

    fn subnets(&mut self) {
        let [old, new] = self.labs;
        for (id, elan) in new.elans.iter().enumerate() {
            let id = ElanId(id);
            let before = old.elans.get(id.0).filter(|_| old.has_elan(id));
            let act = match (before, new.has_elan(id)) {
                (None, true) => Act::Add,
                (Some(_), false) => Act::Remove,
                (Some(before), true) if before != elan => Act::Change,
                _ => continue,
            };
            let needs = needs::of_subnet(self.labs, id, act, self.means);
            let details = self.details(act, "subnets", &elan.name);
            self.put(act, (Kind::Subnet, &elan.name), details, needs);
        }
    }

    /// Permanent connections have no names: those with the same ends are the same.
    fn pvcs(&mut self) {
        let [old, new] = self.labs;
        let ends = |pvc: &Pvc| pvc.ends;
        let sides = [0, 1].map(|side| {
            let all = self.settings[side]["pvcs"].as_array().cloned();
            all.unwrap_or_default()
        });
        let at = |lab: &Lab, of: &Pvc| lab.pvcs.iter().position(|pvc| ends(pvc) == ends(of));
        let mut put = Vec::new();
        for (index, pvc) in old.pvcs.iter().enumerate() {
            let now = at(new, pvc);
            if now.is_some_and(|now| new.pvcs[now] == *pvc) {
                continue;
            }
            let act = if now.is_some() {
                Act::Change
            } else {
                Act::Remove
            };
            let other = now.and_then(|now| sides[1].get(now)).cloned();
            let values = [sides[0][index].clone(), other.unwrap_or_default()];
            put.push((act, pvc, now.map(|now| &new.pvcs[now]), values));
        }
        for (index, pvc) in new.pvcs.iter().enumerate() {
            if at(old, pvc).is_none() {
                put.push((Act::Add, pvc, None, [Value::Null, sides[1][index].clone()]));
            }
        }
        for (act, pvc, then, values) in put {
            let lab = if act == Act::Add { new } else { old };
            let name = pvc
                .ends
                .map(|(node, vc)| format!("{}:{vc}", lab.node(node).name));
            let needs = needs::of_pvc(self.labs, (pvc, then), act);
            let details = details(act, values);
            self.put(act, (Kind::Pvc, &name.join(" - ")), details, needs);
        }
    }

    fn traffic(&mut self) {
        let [old, new] = self.labs;
        let flows = |lab: &Lab| -> Vec<(usize, String)> {
            let all = lab.traffic.iter().enumerate();
            let there = all.filter(|(id, _)| !lab.retired.flows.contains(id));
            there.map(|(id, flow)| (id, flow.name.clone())).collect()
        };
        let [before, after] = [flows(old), flows(new)];
        let names = |all: &[(usize, String)]| -> BTreeSet<String> {
            all.iter().map(|(_, name)| name.clone()).collect()
        };
        let [had, has] = [names(&before), names(&after)];
        for (_, name) in before.iter().filter(|(_, name)| !has.contains(name)) {
            let details = self.details(Act::Remove, "traffic", name);
            self.put(Act::Remove, (Kind::Traffic, name), details, Needs::Nothing);
        }
        for (id, name) in after.iter().filter(|(id, _)| *id >= old.traffic.len()) {
            let act = if had.contains(name) {
                Act::Change
            } else {
                Act::Add
            };
            let needs = needs::of_flow(new, *id);
            let mut details = self.details(act, "traffic", name);
            let given = |detail: &Detail| detail.key != "port" || new.traffic[*id].port.is_some();
            details.retain(given);
            self.put(act, (Kind::Traffic, name), details, needs);
        }
    }

    /// Changes of no single part.
    fn whole(&mut self) {
        let [old, new] = self.labs;
        if old.faults != new.faults {
            self.put(
                Act::Change,
                (Kind::Faults, "schedule"),
                Vec::new(),
                Needs::Nothing,
            );
        }
        for needs::Whole { key, same, why } in needs::of_lab(old, new) {
            if same {
                continue;
            }
            let pair = [0, 1].map(|side| self.settings[side][key].clone());
            let details = match pair {
                [Value::Object(_), Value::Object(_)] => details(Act::Change, pair),
                [from, to] if from != to => vec![Detail {
                    key: key.to_owned(),
                    from,
                    to,
                }],
                _ => Vec::new(),
            };
            let needs = why.map_or(Needs::Nothing, |why| Needs::NewStart(why.to_owned()));
            self.put(Act::Change, (Kind::Lab, key), details, needs);
        }
    }
}

fn kind_of(kind: &NodeKind) -> Kind {
    match kind {
        NodeKind::Switch(_) => Kind::Switch,
        NodeKind::LaneServer(_) => Kind::LaneServer,
        NodeKind::Router(_) => Kind::Router,
        NodeKind::Host(_) => Kind::Host,
        NodeKind::Outside(_) => Kind::Outside,
    }
}

/// The values that differ; of a thing that is new or removed, those that tell what it is.
fn details(act: Act, [old, new]: [Value; 2]) -> Vec<Detail> {
    let nothing = Map::new();
    let [before, after] = [&old, &new].map(|value| value.as_object().unwrap_or(&nothing));
    let keys: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let mut all = Vec::new();
    for key in keys {
        let [from, to] = [before, after].map(|side| side.get(key).cloned().unwrap_or_default());
        let told = act == Act::Change || TELLING.contains(&key.as_str());
        if from == to || FOLLOWS.contains(&key.as_str()) || !told {
            continue;
        }
        match (&from, &to) {
            // The members of a group are told one by one.
            (Value::Object(_), Value::Object(_)) => {
                let inner = details(act, [from, to]).into_iter();
                all.extend(inner.map(|one| Detail {
                    key: format!("{key}.{}", one.key),
                    ..one
                }));
            }
            (Value::Array(was), Value::Array(is))
                if was.len() == is.len() && act == Act::Change =>
            {
                let entries = |all: &[Value]| -> Value {
                    let all = all.iter().enumerate();
                    all.map(|(place, one)| (place.to_string(), one.clone()))
                        .collect()
                };
                let inner = details(act, [entries(was), entries(is)]).into_iter();
                all.extend(inner.map(|one| Detail {
                    key: format!("{key}.{}", one.key),
                    ..one
                }));
            }
            _ => all.push(Detail {
                key: key.clone(),
                from,
                to,
            }),
        }
    }
    all
}
