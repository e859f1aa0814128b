//! An event of a run as a line: JSON for programs, text for people. Both drivers write these lines.

use crate::lines;
use crate::model::{FaultKind, Lab, LineChange, LinkId, NodeId, Service};
use crate::units;
use aerostat_proto::{Instant, Trace};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Choice of the events that the story tells. All commands that tell it ask here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Telling {
    /// No step at all.
    Nothing,
    /// The main steps, which a reader follows: who joined, which shortcut was found, what failed.
    #[default]
    Milestones,
    /// All of them, such as every call of signalling.
    All,
}

impl Telling {
    /// Steps for a reader who has asked for quiet.
    #[must_use]
    pub const fn unless(quiet: bool) -> Self {
        if quiet {
            Self::Nothing
        } else {
            Self::Milestones
        }
    }

    /// True if the story has an event, which is a milestone or a detail.
    #[must_use]
    pub const fn tells(self, milestone: bool) -> bool {
        match self {
            Self::Nothing => false,
            Self::Milestones => milestone,
            Self::All => true,
        }
    }
}

/// An event that a node reported, with its time.
///
/// ```text
/// {"time":2.003412,"node":"urku","event":"lane.joined","text":"joined ELAN a","milestone":true,"fields":{"lecid":"3"}}
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Seconds since the start of the run; a double is precise to the nanosecond for runs of weeks.
    pub time: f64,
    /// The node.
    pub node: String,
    /// Stable dotted name: protocol, then the event.
    pub event: String,
    /// One sentence.
    pub text: String,
    /// True for the main steps of the story.
    #[serde(default)]
    pub milestone: bool,
    /// Values for programs.
    #[serde(default)]
    pub fields: BTreeMap<String, String>,
}

impl Event {
    /// The event for `trace` of node `node` at `at`.
    #[must_use]
    pub fn new(at: Instant, node: &str, trace: &Trace) -> Self {
        Self {
            time: at.as_secs_f64(),
            node: node.to_owned(),
            event: trace.name.to_owned(),
            text: trace.text.to_string(),
            milestone: trace.milestone,
            fields: trace
                .fields
                .iter()
                .map(|(key, value)| ((*key).to_owned(), value.to_string()))
                .collect(),
        }
    }

    /// The event as one JSON line, without the line end.
    #[must_use]
    pub fn json(&self) -> String {
        // Text and finite numbers always have a JSON form.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The event as a line of the story: `    2.003412  urku          joined ELAN a as LECID 3`.
    #[must_use]
    pub fn story(&self) -> String {
        let Self {
            time, node, text, ..
        } = self;
        format!("{time:>12.6}  {node:<12}  {text}")
    }
}

/// The story's text about a fault: the node (for a link, that of its first end) and the words.
#[must_use]
pub fn of_fault(lab: &Lab, what: FaultKind) -> (NodeId, Trace) {
    let victim = |name, node, of: Option<Service>, whole: &'static str, part: &str| {
        let trace = match of {
            None => Trace::milestone(name, whole),
            Some(of) => {
                let of = of.name();
                Trace::milestone(name, format!("its {of} {part}")).with("service", of)
            }
        };
        (node, trace)
    };
    let link = |name, id: LinkId, how: &str| {
        let link = lab.link(id);
        let there = &lab.node(link.ends[1].node).name;
        let text = format!("link {} to {there} {how}", link.name);
        let trace = Trace::milestone(name, text).with("link", &link.name);
        (link.ends[0].node, trace)
    };
    match what {
        FaultKind::Crash(node, of) => victim("fault.crash", node, of, "crashes", "crashes"),
        FaultKind::Restart(node, of) => {
            victim("fault.restart", node, of, "starts again", "starts again")
        }
        FaultKind::LinkDown(id) => link("fault.link-down", id, "is cut"),
        FaultKind::LinkUp(id) => link("fault.link-up", id, "is mended"),
        FaultKind::Change(id, changes) => {
            let values = lines::changes(lab.link(id), &changes);
            let (node, trace) = link("fault.link-change", id, &format!("changes: {values}"));
            (node, trace.with("values", values))
        }
        FaultKind::Reset(id) => {
            let all = lab.link(id).lines.map(LineChange::from);
            let values = lines::changes(lab.link(id), &all);
            let (node, trace) = link("fault.link-reset", id, "is as the lab file says");
            (node, trace.with("values", values))
        }
        FaultKind::Retrain(id, time, _) => {
            let time = units::time_text(time);
            let how = format!("retrains, and is down for {time}");
            let (node, trace) = link("fault.link-retrain", id, &how);
            (node, trace.with("duration", time))
        }
        FaultKind::Trained(id, changes) => {
            let values = lines::changes(lab.link(id), &changes);
            let how = match values.as_str() {
                "" => "has trained".to_owned(),
                values => format!("has trained: {values}"),
            };
            let (node, trace) = link("fault.link-trained", id, &how);
            (node, trace.with("values", values))
        }
    }
}

/// The names of the ATM addresses of a lab, for people: `urku/51` instead of 20 octets.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// Names by the text of an address up to the dot before its selector.
    known: BTreeMap<String, String>,
    /// The lengths of these texts, in octets; all addresses have the same length.
    lengths: BTreeSet<usize>,
}

impl FromIterator<(String, String)> for Names {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(known: I) -> Self {
        let known: BTreeMap<String, String> = known.into_iter().collect();
        let lengths = known.keys().map(String::len).collect();
        Self { known, lengths }
    }
}

impl Names {
    /// The end systems of `lab`, and those outside that it names.
    #[must_use]
    pub fn new(lab: &Lab) -> Self {
        let nodes = lab.nodes.iter().filter_map(|node| {
            let address = node.attachment()?.address;
            Some((node.name.clone(), address.to_string()))
        });
        let outside = lab.names.iter().map(|(name, address)| {
            let system = address.with_selector(0).to_string();
            (name.clone(), system)
        });
        Self::of(outside.chain(nodes))
    }

    /// End systems by name and ATM address with selector 0.
    pub fn of(known: impl Iterator<Item = (String, String)>) -> Self {
        let known = known.filter_map(|(name, address)| {
            // The selector is not part of the key; it follows the name.
            let end_system = address.strip_suffix("00")?;
            Some((end_system.to_owned(), format!("{name}/")))
        });
        known.collect()
    }

    /// `text` with the known addresses replaced by names and selectors.
    #[must_use]
    pub fn in_text(&self, text: &str) -> String {
        let mut shorter = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((at, address, name)) = self.first_in(rest) {
            shorter.push_str(&rest[..at]);
            shorter.push_str(name);
            rest = &rest[at + address..];
        }
        shorter.push_str(rest);
        shorter
    }

    /// The first known address in a text: position, length, name. The effort does not depend on the number of names,
    /// because the story of a large lab has many lines.
    fn first_in(&self, text: &str) -> Option<(usize, usize, &str)> {
        let dots = text.match_indices('.').map(|(at, _)| at + 1);
        let ends = dots.flat_map(|end| self.lengths.iter().map(move |length| (end, *length)));
        ends.filter_map(|(end, length)| {
            let start = end.checked_sub(length)?;
            let name = self.known.get(text.get(start..end)?)?;
            Some((start, length, name.as_str()))
        })
        .next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_become_names() {
        let names: Names = [("47.00.02a702000100.".into(), "r1/".into())]
            .into_iter()
            .collect();
        assert_eq!(
            names.in_text("é 47.00.02a702000100.5247.00.02a702000100.0é, 47.00.02a70200010"),
            "é r1/52r1/0é, 47.00.02a70200010"
        );
        assert_eq!(
            names.in_text("asks 47.00.02a702000100.52 for help"),
            "asks r1/52 for help"
        );
        assert_eq!(
            names.in_text("asks 47.00.02a702000200.52"),
            "asks 47.00.02a702000200.52"
        );
    }

    #[test]
    fn both_lines() {
        let trace = Trace::milestone("lane.joined", "joined ELAN a as LECID 3").with("lecid", 3);
        let event = Event::new(Instant::from_nanos(2_003_412_000), "urku", &trace);
        let json = r#"{"time":2.003412,"node":"urku","event":"lane.joined","text":"joined ELAN a as LECID 3","milestone":true,"fields":{"lecid":"3"}}"#;
        assert_eq!(event.json(), json);
        assert_eq!(serde_json::from_str::<Event>(json).unwrap(), event);
        assert_eq!(
            event.story(),
            "    2.003412  urku          joined ELAN a as LECID 3"
        );
    }
}
