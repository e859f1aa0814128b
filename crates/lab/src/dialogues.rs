//! PDUs of programs with ATM sockets on each connection, from the writing program to the reading one: the counts of
//! both ends combined.
//!
//! ```text
//! offered = sent + refused + waiting
//! sent    = delivered + lost + under way
//! ```

use crate::circuits::{Circuits, Network};
use crate::model::{Expect, Lab, NodeId};
use aerostat_node::host::sockets::{Program, Record, Role, State};
use aerostat_wire::AtmAddress;
use std::collections::BTreeMap;

/// One direction of a connection between two programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dialogue {
    /// The node and the program that writes.
    pub from: (String, String),
    /// The node and the program that reads. `None` if the connection was refused, leads out of the lab, or is no longer
    /// remembered at that end.
    pub to: Option<(String, String)>,
    /// State of the connection at the writing end.
    pub state: State,
    /// PDUs that the program began to write, or had to send back.
    pub offered: u64,
    /// Of these, PDUs that were never sent.
    pub refused: u64,
    /// PDUs that wait for room in the adapter.
    pub waiting: u64,
    /// PDUs that were written after their time.
    pub late: u64,
    /// PDUs that the adapter accepted.
    pub sent: u64,
    /// PDUs that arrived as sent; `None` if that is unknown.
    pub delivered: Option<u64>,
    /// PDUs that are still in queues and on links.
    pub under_way: u64,
    /// Lost PDUs by place. If no PDU arrived, those lost after the adapter count as lost `on the way`.
    pub lost_by: BTreeMap<String, u64>,
    /// The expectation of the lab file.
    pub expect: Option<Expect>,
}

impl Dialogue {
    /// PDUs lost.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost_by.values().sum()
    }

    /// A warning in words, if there is reason for one.
    #[must_use]
    pub fn complaint(&self) -> Option<String> {
        let name = format!("{}/{}", self.from.0, self.from.1);
        let (lost, offered) = (self.lost(), self.offered);
        match self.expect {
            Some(Expect::Nothing) => {
                let came = self.delivered.filter(|came| *came > 0)?;
                return Some(format!(
                    "program {name}: 'expect: nothing', but {came} of {offered} PDUs arrived"
                ));
            }
            Some(Expect::Loss) => {
                return (lost + self.refused + self.late == 0).then(|| {
                    format!("program {name}: 'expect: loss', but no PDU was lost, refused or late")
                });
            }
            None => {}
        }
        let counts = [
            (lost, "lost"),
            (self.refused, "refused"),
            (self.late, "late"),
        ];
        let wrong = counts.into_iter().filter(|(pdus, _)| *pdus > 0);
        let wrong: Vec<_> = wrong.map(|(pdus, what)| format!("{pdus} {what}")).collect();
        if wrong.is_empty() {
            return None;
        }
        let most = self.lost_by.iter().max_by_key(|(_, pdus)| **pdus);
        let why = most.map_or(String::new(), |(place, pdus)| format!(" ({place}: {pdus})"));
        let wrong = wrong.join(", ");
        Some(format!("program {name}: of {offered} PDUs {wrong}{why}"))
    }
}

/// One end of a connection.
#[derive(Clone, Copy)]
struct End<'a> {
    node: NodeId,
    program: &'a Program,
    record: &'a Record,
    expect: Option<Expect>,
}

/// All connections of running programs, with each direction in which PDUs were offered.
#[must_use]
pub fn read(lab: &Lab, network: &impl Network, circuits: &Circuits) -> Vec<Dialogue> {
    let mut ends = Vec::new();
    for (node, ..) in lab.hosts() {
        let sockets = network
            .station(node)
            .and_then(|station| station.host().sockets());
        let Some(sockets) = sockets else { continue };
        for record in sockets.calls() {
            let Some(program) = sockets.programs().get(record.program) else {
                continue;
            };
            let expect = lab.sockets_expect.get(&(node, record.program)).copied();
            ends.push(End {
                node,
                program,
                record,
                expect,
            });
        }
    }
    let mut all = Vec::new();
    for (one, other) in pairs(lab, &ends) {
        let (one, other) = (ends[one], other.map(|other| ends[other]));
        if one.record.offered > 0 {
            all.push(dialogue(lab, circuits, one, other));
        }
    }
    all
}

/// Programs that call, or use a permanent connection, and have never had one, because all of their calls were refused
/// or failed. The text has the cause of the last failure. Failures that the lab file expects are left out.
#[must_use]
pub fn failed(lab: &Lab, network: &impl Network) -> Vec<String> {
    let mut all = Vec::new();
    for (node, ..) in lab.hosts() {
        let sockets = network
            .station(node)
            .and_then(|station| station.host().sockets());
        let Some(sockets) = sockets else { continue };
        let programs = sockets.programs().iter().zip(sockets.fates());
        for (number, (program, fate)) in programs.enumerate() {
            let expected = lab.sockets_expect.contains_key(&(node, number));
            let what = match program.role {
                // A listener is not to blame: the caller may have requested too much.
                Role::Listen { .. } => continue,
                Role::Call { .. } => "call",
                Role::Permanent { .. } => "connection",
            };
            let Some(cause) = fate.cause.filter(|_| fate.opened == 0 && !expected) else {
                continue;
            };
            let name = format!("{}/{}", lab.node(node).name, program.name);
            all.push(match fate.failed {
                1 => format!("program {name}: its {what} failed: {cause}"),
                times => format!(
                    "program {name}: its {what} failed {times} times, the last time: {cause}"
                ),
            });
        }
    }
    all
}

/// Pairs the ends of connections, as indices into the list.
fn pairs(lab: &Lab, ends: &[End<'_>]) -> Vec<(usize, Option<usize>)> {
    // Calls between two addresses have the same order at both ends, but one end may have forgotten the oldest ones.
    let mut calls: BTreeMap<(AtmAddress, AtmAddress), [Vec<usize>; 2]> = BTreeMap::new();
    let mut other = vec![None; ends.len()];
    for (at, end) in ends.iter().enumerate() {
        let (Some(peer), Some(_)) = (end.record.peer, end.record.setup) else {
            continue;
        };
        match end.program.role {
            Role::Call { .. } => calls.entry((end.program.local, peer)).or_default()[0].push(at),
            Role::Listen { .. } => calls.entry((peer, end.program.local)).or_default()[1].push(at),
            Role::Permanent { .. } => {}
        }
    }
    for [callers, listeners] in calls.into_values() {
        for (caller, listener) in callers.into_iter().rev().zip(listeners.into_iter().rev()) {
            (other[caller], other[listener]) = (Some(listener), Some(caller));
        }
    }
    for pvc in lab.pvcs.iter().filter(|pvc| !pvc.path) {
        let [one, two] = pvc.ends.map(|(node, label)| {
            ends.iter().position(|end| {
                let Role::Permanent { vc, .. } = end.program.role else {
                    return false;
                };
                end.node == node && vc == label
            })
        });
        if let (Some(one), Some(two)) = (one, two) {
            (other[one], other[two]) = (Some(two), Some(one));
        }
    }
    other.into_iter().enumerate().collect()
}

fn dialogue(lab: &Lab, circuits: &Circuits, from: End<'_>, to: Option<End<'_>>) -> Dialogue {
    let record = from.record;
    let name = |end: End<'_>| (lab.node(end.node).name.clone(), end.program.name.clone());
    let sent = record.sent.pdus;
    // These ends were paired by mistake.
    let to = to.filter(|to| to.record.received.pdus <= sent);
    let mut lost_by = BTreeMap::new();
    let mut under_way = 0;
    if let Some(to) = to {
        let mut rest = sent - to.record.received.pdus;
        let mut lose = |place: String, pdus: u64, rest: &mut u64| {
            let pdus = pdus.min(*rest);
            *rest -= pdus;
            if pdus > 0 {
                lost_by.insert(place, pdus);
            }
        };
        let [here, there] = [from, to].map(|end| &lab.node(end.node).name);
        lose(
            format!("{here} adapter: connection closed"),
            record.unsent,
            &mut rest,
        );
        under_way = in_queues(circuits, from).min(rest);
        rest -= under_way;
        lose(format!("{there}: reassembly"), to.record.damaged, &mut rest);
        let all = rest;
        lose("on the way".to_owned(), all, &mut rest);
    }
    Dialogue {
        from: name(from),
        to: to.map(name),
        state: record.state,
        offered: record.offered,
        refused: record.refused,
        waiting: record.waiting(),
        late: record.late,
        sent,
        delivered: to.map(|to| to.record.received.pdus),
        under_way,
        lost_by,
        expect: from.expect,
    }
}

/// PDUs with cells still under way: these are the last PDUs that were sent.
fn in_queues(circuits: &Circuits, from: End<'_>) -> u64 {
    let record = from.record;
    if record.state == State::Ended || record.sent.pdus == 0 {
        return 0;
    }
    let mut all = circuits.circuits.iter();
    let circuit =
        all.find(|circuit| circuit.from.node == from.node && Some(circuit.from.vc) == record.vc);
    let cells = circuit.map_or(0, |circuit| circuit.waiting + circuit.under_way);
    // The PDU with the AAL5 trailer.
    let each = (record.sent.octets.div_ceil(record.sent.pdus) + 8).div_ceil(48);
    cells.div_ceil(each)
}
