//! The state of a lab in a drawing, from the lines of its stream of events.

use super::{Calls, Joined, Picture, Shortcut, Thread};
use crate::model::Lab;
use crate::plant::{LabNode, Plant};
use crate::stream::{PVC, Present};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Purposes of calls that carry no user's data.
const CONTROL: [&str; 2] = ["lane-control", "lane-multicast"];

/// The fields of a state.
type Fields = Map<String, Value>;

/// States of one kind by their ids.
type States = BTreeMap<u64, Fields>;

/// Counters by group and name.
type Counters = BTreeMap<(String, String), Vec<u64>>;

/// Cells of one direction that make a link one that is used: a second of 50 kbit/s. The page has the same rule.
const BUSY: u64 = 118;

impl Picture {
    /// The lab after all of these lines of its stream, as JSON.
    #[must_use]
    pub fn at(lab: &Lab, lines: &[Value]) -> Self {
        let mut picture = Self::of(lab);
        picture.running = true;
        let end = lines.iter().find(|line| line["is"] == "end");
        picture.at = end.and_then(|end| end["t"].as_u64());
        for state in states(lines, "fault").values() {
            picture.show_fault(state);
        }
        for state in states(lines, "member").values() {
            picture.show_member(state);
        }
        let rates = picture.rates(lines);
        let (calls, shortcuts) = (states(lines, "call"), states(lines, "shortcut"));
        let threads = picture.show_calls(lab, &calls, &rates);
        picture.show_shortcuts(lab, &shortcuts, &threads);
        picture
    }

    /// A lab that runs, as its stream of events would tell it now.
    #[must_use]
    pub fn running<M>(lab: &Lab, plant: &Plant<LabNode, M>) -> Self {
        let mut present = Present::new(lab);
        present.read(plant);
        let lines = present.lines(plant.now());
        // Text and finite numbers always have a JSON form.
        let lines = lines.filter_map(|line| serde_json::to_value(line).ok());
        Self::at(lab, &lines.collect::<Vec<_>>())
    }

    fn show_fault(&mut self, state: &Fields) {
        let name = text(state, "name");
        match text(state, "what") {
            "link" => {
                let cables = self.cables.iter_mut();
                let cables = cables.filter(|cable| cable.name == name);
                cables.for_each(|cable| cable.down = true);
            }
            "node" => {
                let machines = self.machines.iter_mut();
                let machines = machines.filter(|machine| machine.name == name);
                machines.for_each(|machine| machine.down = true);
            }
            _ => {}
        }
    }

    fn show_member(&mut self, state: &Fields) {
        let (node, network) = (text(state, "node"), text(state, "network"));
        let network = self.networks.iter().position(|of| of.name == network);
        let joined = match text(state, "state") {
            "joined" => Joined::Yes,
            _ => Joined::Joining,
        };
        let machines = self.machines.iter_mut();
        for machine in machines.filter(|machine| machine.name == node) {
            for ((_, of), shown) in machine.addresses.iter().zip(&mut machine.joined) {
                if Some(*of) == network && *shown != Joined::Yes {
                    *shown = joined;
                }
            }
        }
    }

    /// Notes what links carried in the last whole interval of samples. Returns the rates of calls by their ids, cells
    /// per second.
    fn rates(&mut self, lines: &[Value]) -> BTreeMap<String, f64> {
        let head = lines.iter().find(|line| line["is"] == "head");
        let every = head.and_then(|head| head["sample"].as_u64()).unwrap_or(0);
        let to = self.at.and_then(|at| Some(at.checked_div(every)? * every));
        let Some((from, to)) = to.and_then(|to| Some((to.checked_sub(every)?, to))) else {
            return BTreeMap::new();
        };
        self.sampled = Some([from, to]);
        let (before, after) = (counters(lines, from), counters(lines, to));
        let rate = |key: &(String, String), end: usize| {
            let of = |all: &Counters| all.get(key)?.get(end).copied();
            let (before, after) = (of(&before), of(&after));
            let grown = after.unwrap_or(0).saturating_sub(before.unwrap_or(0));
            grown as f64 * 1e9 / every as f64
        };
        for cable in &mut self.cables {
            let key = ("links".to_owned(), cable.name.clone());
            let rates = [0, 1].map(|end| rate(&key, end));
            let sent = after.get(&key).map_or(&[][..], |sent| &sent[..]);
            let used = sent.iter().take(2).any(|cells| *cells >= BUSY);
            let busy = rates.iter().any(|rate| *rate >= BUSY as f64);
            cable.carried = (used || busy).then_some(rates);
        }
        let calls = after.keys().filter(|(group, _)| group == "calls");
        calls
            .map(|key| (key.1.clone(), rate(key, 0) + rate(key, 1)))
            .collect()
    }

    /// Adds calls and their threads. Returns the numbers of the threads by the ids of the calls.
    fn show_calls(
        &mut self,
        lab: &Lab,
        calls: &States,
        rates: &BTreeMap<String, f64>,
    ) -> BTreeMap<u64, usize> {
        let mut count: BTreeMap<([usize; 2], &str), usize> = BTreeMap::new();
        let mut threads = BTreeMap::new();
        for (id, call) in calls {
            let what = text(call, "what");
            if what == PVC {
                continue;
            }
            let (ends, connected) = (ends(lab, call), text(call, "state") == "connected");
            if let Some(ends) = ends.filter(|_| connected) {
                *count.entry((ends, what)).or_default() += 1;
            }
            let (from, via) = (lab.find(text(call, "from")), self.links(call));
            if let Some(from) = from.filter(|_| !via.is_empty()) {
                threads.insert(*id, self.threads.len());
                self.threads.push(Thread {
                    from: from.0,
                    via,
                    network: ends.and_then(|ends| self.common(ends)),
                    data: !CONTROL.contains(&what),
                    pending: !connected,
                    rate: rates.get(&id.to_string()).copied().unwrap_or(0.0),
                });
            }
        }
        let calls = count.into_iter().map(|((ends, what), count)| Calls {
            ends,
            what: what.to_owned(),
            count,
        });
        self.calls = calls.collect();
        threads
    }

    fn show_shortcuts(&mut self, lab: &Lab, states: &States, threads: &BTreeMap<u64, usize>) {
        let shortcuts = states.values().filter_map(|state| {
            // A shortcut that has a connection and whose other end is in the lab.
            let call = state.get("call").and_then(Value::as_u64);
            Some(Shortcut {
                ends: ends(lab, state)?,
                to: text(state, "dest").to_owned(),
                vc: state.get("vc")?.as_str()?.to_owned(),
                thread: call.and_then(|call| threads.get(&call).copied()),
            })
        });
        self.shortcuts = shortcuts.collect();
    }

    /// The links of a call by their numbers.
    fn links(&self, call: &Fields) -> Vec<usize> {
        let via = call.get("via").and_then(Value::as_array);
        let number = |name: &Value| {
            let name = name.as_str()?;
            self.cables.iter().position(|cable| cable.name == name)
        };
        via.into_iter().flatten().filter_map(number).collect()
    }

    /// The network that both machines have addresses in, if it is exactly one.
    fn common(&self, ends: [usize; 2]) -> Option<usize> {
        let [a, b] = ends.map(|end| self.machines.get(end));
        let (a, b) = (a?, b?);
        let networks = a.addresses.iter().map(|(_, network)| *network);
        let mut both = networks.filter(|network| b.addresses.iter().any(|(_, of)| of == network));
        let first = both.next()?;
        both.all(|other| other == first).then_some(first)
    }
}

/// Numbers of the machines at the ends of a call or shortcut, if the lab has both.
fn ends(lab: &Lab, state: &Fields) -> Option<[usize; 2]> {
    let [from, to] = ["from", "to"].map(|end| lab.find(text(state, end)));
    Some([from?.0, to?.0])
}

/// The states of a kind: the first line of an id says that it is there, later ones have the fields that changed.
fn states(lines: &[Value], kind: &str) -> States {
    let mut all = States::new();
    for line in lines.iter().filter(|line| line["is"] == kind) {
        let (Some(id), Some(fields)) = (line["id"].as_u64(), line.as_object()) else {
            continue;
        };
        if line["gone"] == true {
            all.remove(&id);
        } else {
            all.entry(id).or_default().extend(fields.clone());
        }
    }
    all
}

/// Counters of links and calls after the samples up to a time.
fn counters(lines: &[Value], until: u64) -> Counters {
    let mut all = Counters::new();
    let samples = lines.iter().filter(|line| line["is"] == "sample");
    for sample in samples.filter(|sample| sample["t"].as_u64().is_some_and(|t| t <= until)) {
        for group in ["links", "calls"] {
            for (name, values) in sample[group].as_object().into_iter().flatten() {
                let values = values.as_array().into_iter().flatten();
                let values = values.filter_map(Value::as_u64).collect();
                all.insert((group.to_owned(), name.clone()), values);
            }
        }
    }
    all
}

fn text<'a>(state: &'a Fields, key: &str) -> &'a str {
    let value = state.get(key).and_then(Value::as_str);
    value.unwrap_or_default()
}
