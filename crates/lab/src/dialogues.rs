//! PDUs of programs with ATM sockets on each connection, from the writing program to the reading one.
//!
//! ```text
//! offered = sent + refused + waiting              counted by the writing program
//! sent    = delivered + lost + under way          by the accounts of the PDUs, which FlowStats keeps as for packets
//! ```
//!
//! A host that is switched off loses its memory, but not its results: a driver keeps the counts of its programs before
//! that ([`Past::keep`]). The accounts of PDUs are outside of all nodes anyway.

mod past;

pub use past::{Life, Past};

use crate::circuits::Network;
use crate::model::{Expect, Lab, NodeId, NodeKind};
use aerostat_node::distribution::Summary;
use aerostat_node::host::sockets::programs::{
    Figures, Measured, Outcome, Pace, Program, Role, State, Step,
};
use aerostat_node::ip::flow_stats::{Census, ConnectionReport, FlowStats};
use aerostat_node::rate::PacketRate;
use aerostat_proto::{Cause, Duration, Instant};
use aerostat_wire::Vc;
use aerostat_wire::counted;
use past::Tally;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// One direction of a connection between two programs.
#[derive(Clone, Debug, PartialEq)]
pub struct Dialogue {
    /// The node and the program that writes.
    pub from: (String, String),
    /// The node and the program that reads. `None` if the connection leads out of the lab, or to a user that is no
    /// program; also for answers to a caller that is not known.
    pub to: Option<(String, String)>,
    /// State of the connection at the writing end; of a permanent connection, its last state.
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
    /// PDUs that reached a program; `None` if the connection leads out of the lab, or to a user that is no program.
    pub delivered: Option<u64>,
    /// PDUs that are still in queues and on links.
    pub under_way: u64,
    /// Octets of the PDUs that reached a program.
    pub delivered_octets: u64,
    /// Time from the first to the last PDU that the adapter took; the sum over all lives.
    pub duration: Duration,
    /// `delivered_octets` over the time from the first PDU that the adapter took to the last one delivered, or the time
    /// of so many PDUs at the rate of the program, if that is longer; 10⁶ bit/s; of a permanent connection with several
    /// lives, in the last life with PDUs. `None` if nothing came, and for a single PDU without a rate.
    pub throughput_mbps: Option<f64>,
    /// Time from the adapter of the writer to the reading program; as `throughput_mbps` for several lives.
    pub delay: Summary,
    /// Lost PDUs by place, as for flows.
    pub lost_by: BTreeMap<String, u64>,
    /// How the connection was cut off before the program had begun to write its last PDU.
    pub cut: Option<Cut>,
    /// ATP at the end that writes these PDUs.
    pub atp: Option<Figures>,
    /// The expectation of the lab file.
    pub expect: Option<Expect>,
}

/// The end of a connection on which a program had still to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// PDUs that the program never began to write.
    pub unwritten: u64,
    /// Cause of the release; `None` if the program's host was switched off.
    pub cause: Option<Cause>,
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
                    "program {name}: 'expect: nothing', but {came} of {} arrived",
                    counted(offered, "PDU", "PDUs")
                ));
            }
            Some(Expect::Loss) => {
                let why = match offered {
                    0 => "it never sent anything",
                    _ => "no PDU was lost, refused or late",
                };
                let complaint = format!("program {name}: 'expect: loss', but {why}");
                return (lost + self.refused + self.late == 0).then_some(complaint);
            }
            None => {}
        }
        if let Some(atp) = &self.atp {
            return complaint_of(atp).map(|text| format!("program {name}: ATP: {text}"));
        }
        let counts = [
            (lost, "lost"),
            (self.refused, "refused"),
            (self.late, "late"),
        ];
        let wrong = counts.into_iter().filter(|(pdus, _)| *pdus > 0);
        let wrong: Vec<_> = wrong.map(|(pdus, what)| format!("{pdus} {what}")).collect();
        let cut = self.cut.map(|cut| cut.after(offered));
        if wrong.is_empty() {
            return cut.map(|cut| format!("program {name}: {cut}"));
        }
        let why = self.places();
        let wrong = wrong.join(", ");
        let cut = cut.map_or(String::new(), |cut| format!("; {cut}"));
        Some(format!(
            "program {name}: of {} {wrong}{why}{cut}",
            counted(offered, "PDU", "PDUs")
        ))
    }
}

impl Dialogue {
    /// Where PDUs were lost, the worst places first, in parentheses; empty if no PDU was lost.
    fn places(&self) -> String {
        /// Places that a warning names; their other numbers are one sum.
        const NAMED: usize = 4;
        let mut all: Vec<(&String, &u64)> = self.lost_by.iter().collect();
        if all.is_empty() {
            return String::new();
        }
        all.sort_by_key(|(place, pdus)| (Reverse(**pdus), *place));
        let (named, others) = all.split_at(NAMED.min(all.len()));
        let mut texts: Vec<String> = named
            .iter()
            .map(|(place, pdus)| format!("{place}: {pdus}"))
            .collect();
        if !others.is_empty() {
            let (count, sum) = (
                others.len(),
                others.iter().map(|(_, pdus)| **pdus).sum::<u64>(),
            );
            texts.push(format!("{count} other places: {sum}, see --table programs"));
        }
        format!(" ({})", texts.join(", "))
    }
}

/// A warning about ATP; lost PDUs that it has repaired are no reason for one.
fn complaint_of(atp: &Figures) -> Option<String> {
    let open = atp.outcome == Outcome::Open;
    let done = atp.left == 0 && (atp.sent.messages == 0 || !atp.sent.time.is_zero());
    match atp.outcome {
        Outcome::Complete => None,
        Outcome::Open if done => None,
        outcome => {
            let why = if open {
                "the run ended before the transfer".to_owned()
            } else {
                outcome.text()
            };
            let (given, all) = (atp.sent.octets, atp.sent.octets + atp.left);
            let all = counted(all, "octet was", "octets were");
            Some(format!("{why}; {given} of {all} given to it"))
        }
    }
}

impl Cut {
    /// The cut in words, after so many PDUs.
    fn after(self, offered: u64) -> String {
        let all = offered + self.unwritten;
        let cause = match self.cause {
            Some(cause) => cause.to_string(),
            None => "its host was switched off".to_owned(),
        };
        let all = counted(all, "PDU", "PDUs");
        format!("its connection ended after {offered} of {all}: {cause}")
    }
}

/// The PDUs of all programs: a row for each call, and for each permanent connection over all lives of its host, in
/// which PDUs were offered.
#[must_use]
pub fn read(
    lab: &Lab,
    network: &impl Network,
    past: &Past,
    stats: &FlowStats,
    census: &Census,
) -> Vec<Dialogue> {
    let reader = Reader {
        lab,
        network,
        stats,
        census,
    };
    let mut all = Vec::new();
    for (node, _, model) in lab.hosts() {
        let now = network
            .station(node)
            .and_then(|station| Life::of(node, station));
        let now = now.iter().flat_map(|life| &life.tallies);
        let mut rows: Vec<(&Program, Dialogue)> = Vec::new();
        for tally in past.of(node).chain(now).filter(|tally| tally.offered > 0) {
            let Some(program) = model.sockets.get(tally.program) else {
                continue;
            };
            let row = reader.row(program, tally);
            let permanent = matches!(program.role, Role::Permanent { .. });
            let before = rows
                .iter_mut()
                .filter(|(of, _)| permanent && of.name == program.name);
            match before.last() {
                Some((_, before)) => before.add(row),
                None => rows.push((program, row)),
            }
        }
        all.extend(rows.into_iter().map(|(_, row)| row));
    }
    all
}

impl Dialogue {
    /// Adds a later life of the same permanent connection.
    fn add(&mut self, later: Self) {
        self.to = later.to.or(self.to.take());
        self.state = later.state;
        self.offered += later.offered;
        self.refused += later.refused;
        self.waiting += later.waiting;
        self.late += later.late;
        self.sent += later.sent;
        self.delivered = self
            .delivered
            .zip(later.delivered)
            .map(|(before, after)| before + after);
        self.under_way += later.under_way;
        self.delivered_octets += later.delivered_octets;
        self.duration += later.duration;
        if later.sent > 0 {
            (self.throughput_mbps, self.delay) = (later.throughput_mbps, later.delay);
        }
        // The program writes all of its PDUs in each life.
        self.cut = later.cut;
        self.atp = later.atp;
        for (place, pdus) in later.lost_by {
            *self.lost_by.entry(place).or_default() += pdus;
        }
    }
}

/// Measurements of a tester of cells in the last life of its host.
#[derive(Clone, Debug, PartialEq)]
pub struct Tested {
    /// The node and the program.
    pub at: (String, String),
    /// Label of the connection there.
    pub vc: Vc,
    /// The figures.
    pub measured: Measured,
}

/// Measurements of the testers of cells.
#[must_use]
pub fn tested(lab: &Lab, network: &impl Network) -> Vec<Tested> {
    let mut all = Vec::new();
    for (node, name, model) in lab.hosts() {
        let life = network
            .station(node)
            .and_then(|station| Life::of(node, station));
        for tally in life.iter().flat_map(|life| &life.tallies) {
            let program = model.sockets.get(tally.program);
            if let (Some(program), Some(measured)) = (program, tally.measured)
                && let Role::Permanent { vc, .. } = program.role
            {
                all.push(Tested {
                    at: (name.name.clone(), program.name.clone()),
                    vc,
                    measured,
                });
            }
        }
    }
    all
}

/// A change of the window of ATP.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowStep {
    /// The node and the program.
    pub at: (String, String),
    /// Number of the connection in the last life of the host, from 0.
    pub connection: u64,
    /// The change.
    pub step: Step,
}

/// The changes of windows of the programs that want them (`series:`), in the order of time for each connection.
#[must_use]
pub fn windows(lab: &Lab, network: &impl Network) -> Vec<WindowStep> {
    let mut all = Vec::new();
    for (node, name, model) in lab.hosts() {
        let sockets = network
            .station(node)
            .and_then(|station| station.host().sockets());
        for record in sockets.into_iter().flat_map(|sockets| sockets.calls()) {
            let Some(program) = model.sockets.get(record.program) else {
                continue;
            };
            all.extend(record.own.window_steps().iter().map(|step| WindowStep {
                at: (name.name.clone(), program.name.clone()),
                connection: record.own.id.number,
                step: *step,
            }));
        }
    }
    all
}

struct Reader<'a, N> {
    lab: &'a Lab,
    network: &'a N,
    stats: &'a FlowStats,
    census: &'a Census,
}

impl<N: Network> Reader<'_, N> {
    fn row(&self, program: &Program, tally: &Tally) -> Dialogue {
        let (lab, now) = (self.lab, self.network.time());
        let name = |node: NodeId, program: &Program| {
            let node = lab.node(node).name.clone();
            (node, program.name.clone())
        };
        let account = self.stats.connection(tally.id, now, Some(self.census));
        let figures = account.as_ref().map(|account| &account.figures);
        let left = account.as_ref().map_or(0, |account| account.left);
        let came = account.as_ref().and_then(|account| account.reader);
        let came = came.and_then(|(node, program)| {
            let node = NodeId(node);
            Some((node, programs_of(lab, node).get(program)?))
        });
        let to = came.or_else(|| meant(lab, program, tally));
        Dialogue {
            from: name(tally.node, program),
            to: to.filter(|_| left == 0).map(|(node, to)| name(node, to)),
            state: tally.state,
            offered: tally.offered,
            refused: tally.refused,
            waiting: tally.waiting,
            late: tally.late,
            sent: tally.sent,
            delivered: (left == 0).then(|| figures.map_or(0, |found| found.received_packets)),
            under_way: figures.map_or(0, |found| found.in_flight),
            delivered_octets: figures.map_or(0, |found| found.received_octets),
            duration: figures.map_or(Duration::ZERO, |found| found.duration),
            throughput_mbps: account.as_ref().and_then(|account| {
                let writers = [Some(program), to.map(|(_, other)| other)];
                let rate = rate_of(writers.into_iter().flatten());
                let time = rate.map(|rate| rate.after(tally.offered));
                throughput(account, time, now)
            }),
            delay: figures.map_or_else(Summary::default, |found| found.delay),
            lost_by: figures.map_or_else(BTreeMap::new, |found| lab.lost_by(found)),
            cut: (tally.state == State::Ended && tally.unwritten > 0).then_some(Cut {
                unwritten: tally.unwritten,
                cause: tally.cause,
            }),
            atp: tally.atp,
            expect: lab
                .sockets_expect
                .get(&(tally.node, tally.program))
                .copied(),
        }
    }
}

/// The rate at which a program writes, the first of `writers`: that of the second one if it only sends back what it
/// gets. `None` for ATP, and for programs that write as fast as they can.
fn rate_of<'a>(mut writers: impl Iterator<Item = &'a Program>) -> Option<PacketRate> {
    let (writer, sending) = writers.find_map(|writer| {
        let sending = writer.role.sending().filter(|sending| sending.pdus > 0);
        Some((writer, sending?))
    })?;
    match sending.pace {
        Pace::At(rate) => Some(rate).filter(|_| writer.atp.is_none()),
        Pace::Line => None,
    }
}

/// Octets of payload delivered over the time that this took, or the `time` of as many PDUs at the rate of the program,
/// if that is longer, 10⁶ bit/s. That time ends with the run. A single PDU without such a time has no rate.
fn throughput(account: &ConnectionReport, time: Option<Duration>, now: Instant) -> Option<f64> {
    let found = &account.figures;
    let since = account.first.map(|first| now.since(first));
    let time = time.zip(since).map(|(time, since)| time.min(since));
    let seconds = found.busy.max(time.unwrap_or_default()).as_secs_f64();
    let enough = found.received_packets > u64::from(time.is_none());
    (enough && seconds > 0.0).then(|| found.received_octets as f64 * 8.0 / seconds / 1e6)
}

fn programs_of(lab: &Lab, node: NodeId) -> &[Program] {
    match &lab.node(node).kind {
        NodeKind::Host(host) => &host.sockets,
        _ => &[],
    }
}

/// The program at the other end of a connection, by the lab file.
fn meant<'a>(lab: &'a Lab, program: &Program, tally: &Tally) -> Option<(NodeId, &'a Program)> {
    let programs = || {
        lab.hosts()
            .flat_map(|(node, _, host)| host.sockets.iter().map(move |program| (node, program)))
    };
    match program.role {
        Role::Call { to, .. } => programs().find(|(_, other)| {
            let listens = matches!(other.role, Role::Listen { .. });
            listens && (other.local, other.sap) == (to, program.sap)
        }),
        // Programs of a host have one address, so callers of one listener cannot be distinguished.
        Role::Listen { .. } => {
            let mut callers = programs().filter(|(_, other)| {
                let calls = matches!(other.role, Role::Call { to, .. } if to == program.local);
                calls && other.sap == program.sap && Some(other.local) == tally.peer
            });
            callers.next().filter(|_| callers.next().is_none())
        }
        Role::Permanent { vc, .. } => {
            let pvcs = lab.pvcs.iter().filter(|pvc| !pvc.path);
            let mut ends = pvcs.flat_map(|pvc| [pvc.ends, [pvc.ends[1], pvc.ends[0]]]);
            let [_, (node, label)] = ends.find(|[own, _]| *own == (tally.node, vc))?;
            let mut at = programs_of(lab, node).iter();
            let other =
                at.find(|other| matches!(other.role, Role::Permanent { vc, .. } if vc == label))?;
            Some((node, other))
        }
    }
}

/// Programs that call, or use a permanent connection, and have never had one, because all of their calls were refused
/// or failed. The text has the cause of the last failure. Failures that the lab file expects are left out.
#[must_use]
pub fn failed(lab: &Lab, network: &impl Network, past: &Past) -> Vec<String> {
    let mut all = Vec::new();
    for (node, _, model) in lab.hosts() {
        let now = network.station(node);
        let now = now.and_then(|station| Life::of(node, station));
        for (number, program) in model.sockets.iter().enumerate() {
            let expected = lab.sockets_expect.contains_key(&(node, number));
            let what = match program.role {
                // A listener is not to blame: the caller may have requested too much.
                Role::Listen { .. } => continue,
                Role::Call { .. } => "call",
                Role::Permanent { .. } => "connection",
            };
            let now = now.as_ref().and_then(|life| life.fates.get(number));
            let fate = past.fate(node, number, now);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_places_of_a_warning_add_up() {
        let end = |program: &str| ("a".to_owned(), program.to_owned());
        let mut dialogue = Dialogue {
            from: end("raw"),
            to: Some(end("sink")),
            state: State::Connected,
            offered: 3000,
            refused: 0,
            waiting: 0,
            late: 0,
            sent: 3000,
            delivered: Some(2758),
            under_way: 0,
            delivered_octets: 0,
            duration: Duration::ZERO,
            throughput_mbps: None,
            delay: Summary::default(),
            lost_by: BTreeMap::new(),
            cut: None,
            atp: None,
            expect: None,
        };
        let places = [
            ("b: no buffer", 1),
            ("a: off", 1),
            ("link trunk: cell lost", 241),
        ];
        dialogue.lost_by = places.map(|(at, pdus)| (at.to_owned(), pdus)).into();
        assert_eq!(
            dialogue.complaint().unwrap(),
            "program a/raw: of 3000 PDUs 243 lost (link trunk: cell lost: 241, a: off: 1, b: no buffer: 1)"
        );
        let more = (2..5).map(|pdus| (format!("s{pdus}: queue full"), pdus));
        dialogue.lost_by.extend(more);
        let told = dialogue.complaint().unwrap();
        assert!(told.contains("of 3000 PDUs 252 lost (link trunk"), "{told}");
        assert!(
            told.ends_with("s2: queue full: 2, 2 other places: 2, see --table programs)"),
            "{told}"
        );
    }
}
