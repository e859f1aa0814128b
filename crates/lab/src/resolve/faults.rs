//! Faults, and links that change or train.

use super::events::link;
use super::{Class, Names};
use crate::diag::{Diagnostics, Span};
use crate::field::{At, FromTree as _, Own, SomeWays};
use crate::file::{BLOCK, DELAY, FaultFile, TRAINING};
use crate::lines::NAMES;
use crate::model::{
    Fault, FaultKind, Lab, LineChange, Link, LinkId, Node, NodeId, NodeKind, Service, Way,
};
use crate::overrides::{self, Override};
use crate::tree::{Key, Tree, Value};
use crate::units::time_text;
use aerostat_proto::Duration;
use std::collections::{BTreeMap, BTreeSet};

/// The keys of which a fault has one.
const ONE_OF: [&str; 6] = [
    "crash",
    "restart",
    "link_down",
    "link_up",
    "change",
    "retrain",
];
/// The fault of a section.
pub(super) fn of(
    section: &FaultFile,
    names: &Names,
    lab: &Lab,
    d: &mut Diagnostics,
) -> Option<Fault> {
    let at = section.at.value.0;
    let given: Vec<_> = section.given.of(&ONE_OF).collect();
    let [(key, _)] = given[..] else {
        let all = ONE_OF.join(", ");
        d.error(
            section.place,
            format!("a fault has a time and one of {all}"),
        )
        .hint("for example: { at: 8s, crash: asn9000/mps }")
        .rests_in(section.place, ONE_OF);
        return None;
    };
    if let Some(name) = section.change.as_ref().or(section.retrain.as_ref()) {
        let what = of_line(section, name, lab, d)?;
        return Some(Fault { at, what });
    }
    let others = NAMES.iter().chain(&["duration"]).copied();
    for (other, at) in section.given.of(&others.collect::<Vec<_>>()) {
        d.error(
            at,
            format!("'{other}' is for 'change' and 'retrain', not for '{key}'"),
        )
        .rests_in(section.place, ONE_OF);
    }
    let what = if let Some(name) = &section.crash {
        let (node, service) = victim(name, names, lab, d)?;
        FaultKind::Crash(node, service)
    } else if let Some(name) = &section.restart {
        let (node, service) = victim(name, names, lab, d)?;
        FaultKind::Restart(node, service)
    } else if let Some(name) = &section.link_down {
        FaultKind::LinkDown(link(name, lab, d)?)
    } else {
        FaultKind::LinkUp(link(section.link_up.as_ref()?, lab, d)?)
    };
    Some(Fault { at, what })
}

/// A link that changes, or trains.
pub(super) fn of_line(
    section: &FaultFile,
    name: &At<String>,
    lab: &Lab,
    d: &mut Diagnostics,
) -> Option<FaultKind> {
    let id = link(name, lab, d)?;
    let changes = changes(section, lab.link(id), d);
    let fits = fits(section, (name, id), lab, d);
    if section.retrain.is_none() {
        if let Some(given) = &section.duration {
            d.error(
                given.at,
                "'duration' is for 'retrain': a change lasts until the next one",
            )
            .rests_in(section.place, ["duration", "change"]);
            return None;
        }
        if section.given.of(&NAMES).next().is_none() {
            let text = format!("nothing of link {} changes", name.value);
            d.error(name.at, text)
                .hint(format!("give one of {}", NAMES.join(", ")))
                .rests_in(section.place, NAMES);
            return None;
        }
        let what = FaultKind::Change(id, changes?);
        return fits.then_some(what);
    }
    let time = match &section.duration {
        Some(given) => {
            let duration = Own::new("duration").within(TRAINING);
            if !duration.check(&given.value, given.at, d) {
                return None;
            }
            given.value.0
        }
        None => {
            d.error(
                section.place,
                "'duration' is missing here: how long the link is down",
            )
            .hint("for example: { at: 8s, retrain: x-s1, duration: 5s }")
            .rests_in(section.place, ["duration"]);
            return None;
        }
    };
    let what = FaultKind::Retrain(id, time, changes?);
    fits.then_some(what)
}

/// The new values of a link, by the end at which its directions start.
fn changes(section: &FaultFile, link: &Link, d: &mut Diagnostics) -> Option<[LineChange; 2]> {
    /// The value of a direction.
    fn value<T: Copy>(given: Option<&SomeWays<T>>, way: Way) -> Option<T> {
        given?.get(way).map(|given| given.value)
    }
    for (name, range, given) in [
        ("delay", DELAY, &section.delay),
        ("block", BLOCK, &section.block),
    ] {
        let own = Own::new(name).within(range);
        for way in Way::ALL {
            if let Some(At { value, at }) = given.as_ref().and_then(|given| given.get(way))
                && !own.check(value, *at, d)
            {
                return None;
            }
        }
    }
    let line = |way: Way| LineChange {
        rate: value(section.rate.as_ref(), way).map(|rate| rate.0),
        delay: value(section.delay.as_ref(), way).map(|time| time.0),
        loss: value(section.loss.as_ref(), way).map(|loss| loss.0),
        bits: value(section.bit_errors.as_ref(), way).map(|errors| errors.0),
        blocks: value(section.block_errors.as_ref(), way).map(|errors| errors.0),
        block: value(section.block.as_ref(), way).map(|time| time.0),
    };
    let mut lines = [line(Way::Up), line(Way::Down)];
    lines.rotate_left(link.user);
    Some(lines)
}

/// False, and an error, if a link of its kind has no such value.
fn fits(
    section: &FaultFile,
    (name, id): (&At<String>, LinkId),
    lab: &Lab,
    d: &mut Diagnostics,
) -> bool {
    let link = lab.link(id);
    let mut ends = link.ends.iter();
    let leads_out = ends.any(|end| matches!(lab.node(end.node).kind, NodeKind::Outside(_)));
    let (keys, why): (&[&str], _) = if leads_out {
        (&NAMES, "leads out of the lab: what is there decides")
    } else if link.framing.is_some() {
        let keys = &["rate", "loss", "bit_errors", "block_errors", "block"];
        (keys, "is an Ethernet: its delay alone can change")
    } else {
        return true;
    };
    let mut wrong = section.given.of(keys);
    let Some((key, at)) = wrong.next() else {
        return true;
    };
    d.error(at, format!("no '{key}' here: link {} {why}", link.name))
        .see(name.at, "the link")
        .rests_in(section.place, NAMES)
        .rests_on(["links/*/2/ethernet"]);
    false
}

/// Warns of faults without effect: the node has no such service, or node, service or link has that state already.
pub(super) fn idle(faults: &[(Fault, Span)], lab: &Lab, d: &mut Diagnostics) {
    let (mut off, mut cut) = (BTreeSet::new(), BTreeSet::new());
    for (fault, at) in faults {
        let name = |node: NodeId| &lab.node(node).name;
        let text = match fault.what {
            FaultKind::Crash(node, Some(service)) | FaultKind::Restart(node, Some(service))
                if !lab.node(node).kind.present().any(|one| one == service) =>
            {
                let (name, service) = (name(node), service.name());
                Some(format!(
                    "{name} has no service '{service}', because its MPOA is off"
                ))
            }
            FaultKind::Crash(node, service) => {
                let dead = off.contains(&(node, None));
                let again = dead || !off.insert((node, service));
                again.then(|| match service.filter(|_| !dead) {
                    Some(service) => {
                        format!("{}/{} has crashed already", name(node), service.name())
                    }
                    None => format!("{} has crashed already", name(node)),
                })
            }
            FaultKind::Restart(node, None) => {
                off.retain(|(one, _)| *one != node);
                None
            }
            FaultKind::Restart(node, service) => {
                off.remove(&(node, service));
                let dead = off.contains(&(node, None));
                dead.then(|| format!("{} has crashed, and all services with it", name(node)))
            }
            FaultKind::LinkDown(link) => {
                let idle = !cut.insert(link);
                idle.then(|| format!("link {} is down already", lab.link(link).name))
            }
            FaultKind::LinkUp(link) => {
                let idle = !cut.remove(&link);
                idle.then(|| format!("link {} is up already", lab.link(link).name))
            }
            FaultKind::Change(..)
            | FaultKind::Reset(_)
            | FaultKind::Retrain(..)
            | FaultKind::Trained(..) => None,
        };
        if let Some(text) = text {
            d.warning(*at, format!("{text}: this fault changes nothing"));
        }
    }
}

/// Refuses a link that is to train while it trains.
pub(super) fn trainings(faults: &[(Fault, Span)], lab: &Lab, d: &mut Diagnostics) {
    let mut before: BTreeMap<LinkId, (Duration, Span)> = BTreeMap::new();
    for (fault, at) in faults {
        let FaultKind::Retrain(link, ..) = fault.what else {
            continue;
        };
        let end = fault.end();
        match before.get(&link) {
            Some((until, first)) if fault.at < *until => {
                let (name, until) = (&lab.link(link).name, time_text(*until));
                d.error(*at, format!("link {name} trains until {until} already"))
                    .see(*first, "it begins here")
                    .hint("a later 'at:', or a shorter 'duration:' of the other training")
                    .rests_in(*at, ["at", "retrain"])
                    .rests_in(*first, ["at", "retrain", "duration"]);
            }
            _ => {
                before.insert(link, (end, *at));
            }
        }
    }
}

impl Node {
    /// Why no fault may crash or restart this node: the words in which a lab file hears it. `None` if a fault may.
    #[must_use]
    pub fn no_victim(&self) -> Option<String> {
        let outside = matches!(self.kind, NodeKind::Outside(_));
        outside.then(|| Class::Outside.instead_of(&self.name, "a node"))
    }
}

/// The target `node` or `node/service`.
fn victim(
    name: &At<String>,
    names: &Names,
    lab: &Lab,
    d: &mut Diagnostics,
) -> Option<(NodeId, Option<Service>)> {
    const ANY: [Class; 4] = [Class::Switch, Class::LaneServer, Class::Router, Class::Host];
    let (node, service) = match name.value.split_once('/') {
        Some((node, service)) => (node, Some(service)),
        None => (name.value.as_str(), None),
    };
    let node_name = At {
        value: node.to_owned(),
        at: name.at,
    };
    let id = names.find(&node_name, &ANY, "a node", d)?;
    let Some(service) = service else {
        return Some((id, None));
    };
    let known = lab.node(id).kind.services();
    let found = known.iter().find(|known| known.name() == service);
    if found.is_none() {
        d.error(name.at, format!("{node} has no service '{service}'"))
            .suggest(service, known.iter().map(|known| known.name()))
            .rests_on([
                "mpoa",
                "lane",
                &format!("hosts/{node}"),
                &format!("routers/{node}"),
            ]);
    }
    found.map(|service| (id, Some(*service)))
}

/// Says why a word of `aerostat link` is no new value of a link; it begins with the name `key`.
fn no_value(word: &str, key: &str, d: &mut Diagnostics) {
    let source = d.add_source(format!("value {word}"), word);
    let (start, end) = (0, word.len());
    let at = Span { source, start, end };
    if NAMES.contains(&key) {
        let text = format!("'{word}': expected NAME=VALUE, such as rate=10Mbps");
        d.error(at, text);
    } else {
        let text = format!("'{word}' is no new value of a link");
        d.error(at, text).suggest(key, NAMES);
    }
}

/// Reports a value that stands before, too.
fn not_again(value: &str, before: &[String], d: &mut Diagnostics) {
    let path = |value: &str| value.split('=').next().unwrap_or_default().to_owned();
    if before.iter().any(|earlier| path(earlier) == path(value)) {
        let at = Span {
            source: d.add_source("value".to_owned(), value),
            start: 0,
            end: path(value).len(),
        };
        d.error(at, format!("{} stands here twice", path(value)));
    }
}

impl Lab {
    /// The link with this name. A link between two switches may be named from either end, and a link out of the lab by
    /// the node at its far end.
    ///
    /// # Errors
    /// There is no such link; the hint has a name that is near, or all of them.
    pub fn find_link(&self, name: &str) -> Result<LinkId, Diagnostics> {
        let mut outside = self.outside();
        let far = outside.find(|(id, ..)| self.node(*id).name == name);
        if let Some((_, _, model)) = far {
            return Ok(model.attachment.link);
        }
        let mut d = Diagnostics::default();
        let source = d.add_source("link".to_owned(), name);
        let (start, end) = (0, name.len());
        let name = At {
            value: name.to_owned(),
            at: Span { source, start, end },
        };
        link(&name, self, &mut d).ok_or(d)
    }

    /// A change of a link by words of `aerostat link`, with the checks of a lab file: values such as `loss=1%` or
    /// `rate.up=512kbps`; with `retrain` the link is down for this time first.
    ///
    /// # Errors
    /// What is wrong, with a hint; the text that it is about is named as a source.
    pub fn link_fault(
        &self,
        name: &str,
        values: &[String],
        retrain: Option<&str>,
    ) -> Result<FaultKind, Diagnostics> {
        let mut d = Diagnostics::default();
        let found = self.read_change(name, values, retrain, &mut d);
        found.filter(|_| !d.has_errors()).ok_or(d)
    }

    fn read_change(
        &self,
        name: &str,
        values: &[String],
        retrain: Option<&str>,
        d: &mut Diagnostics,
    ) -> Option<FaultKind> {
        let what = if retrain.is_some() {
            "retrain"
        } else {
            "change"
        };
        let mut root = Tree {
            at: Span::default(),
            value: Value::Map(Vec::new()),
        };
        let given = [
            ("at", Some("0s")),
            (what, Some(name)),
            ("duration", retrain),
        ];
        let given = given
            .into_iter()
            .filter_map(|(key, text)| Some((key, text?)));
        let Value::Map(entries) = &mut root.value else {
            return None;
        };
        for (key, text) in given {
            let at = Span {
                source: d.add_source(format!("link {what}"), text),
                start: 0,
                end: text.len(),
            };
            let value = Value::Text(text.to_owned());
            let key = Key {
                at,
                text: key.to_owned(),
            };
            entries.push((key, Tree { at, value }));
        }
        for (number, value) in values.iter().enumerate() {
            let key = value.split(['=', '.']).next().unwrap_or_default();
            not_again(value, &values[..number], d);
            let given = value.split_once('=').map(|(_, given)| given.trim());
            if NAMES.contains(&key) && given.is_some_and(|given| !given.is_empty()) {
                overrides::apply(&mut root, &Override::new("value", value.clone()), d);
                continue;
            }
            no_value(value, key, d);
        }
        if d.has_errors() {
            return None;
        }
        let section = FaultFile::from_tree(&root, d)?;
        let name = section.change.as_ref().or(section.retrain.as_ref())?;
        of_line(&section, name, self, d)
    }
}
