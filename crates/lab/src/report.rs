//! The results of a lab when it ends, in virtual or in real time.

use crate::circuits::{Circuits, Network};
use crate::dialogues::{Dialogue, Tested, WindowStep};
use crate::event::Names;
use crate::model::{Lab, NodeId, NodeKind, Queues, SubnetKind};
use crate::occupancy::Sample;
use aerostat_node::atm::AloneCells;
use aerostat_node::distribution::Summary;
use aerostat_node::host::{Attempts, Waits};
use aerostat_node::inspect::{StateKind, Table};
use aerostat_node::ip::apps::AppResult;
use aerostat_node::ip::flow_stats::FlowReport;
use aerostat_proto::{Instant, Trace};
use aerostat_wire::counted;
use std::sync::Arc;

/// The data from which results are made.
#[derive(Clone, Debug)]
pub struct RunReport {
    /// The end of the run.
    pub end: Instant,
    /// When the run was to end: [`Lab::end_from`], with the starts of the flows.
    pub until: Instant,
    /// The flows of the lab, in its order.
    pub flows: Vec<FlowReport>,
    /// Results of the lab's programs that have ended, by flow and role (`from` or `to`).
    pub programs: Vec<(usize, &'static str, AppResult)>,
    /// Connections end to end, queues, policers and links at the end.
    pub circuits: Circuits,
    /// State of every node at the end: name, and the tables of each kind.
    pub nodes: Arc<Vec<NodeState>>,
    /// When each flow of the lab started; `None` if it never did, because its hosts have not joined.
    pub began: Vec<Option<Instant>>,
    /// Nodes with an interface that was never a member of its network.
    pub not_joined: Vec<String>,
    /// Parts of nodes that were never members of their networks, or never registered, with the reason.
    pub troubles: Vec<Trouble>,
    /// PDUs between programs with ATM sockets, by connection and direction.
    pub dialogues: Vec<Dialogue>,
    /// Changes of the windows of ATP, of programs that want them.
    pub windows: Vec<WindowStep>,
    /// Measurements of testers of cells.
    pub tested: Vec<Tested>,
    /// Programs with ATM sockets that have never had a connection, in words: [`crate::dialogues::failed`].
    pub failed_programs: Vec<String>,
    /// Levels of buffers over time, in the order of time.
    pub occupancy: Vec<Sample>,
    /// Bounds that were met, in words, with the node; each once.
    pub limits: Vec<String>,
    /// Messages of daemons that their seats have refused, in words: see [`refusals`].
    pub refusals: Vec<String>,
    /// The events of the run, if they were recorded.
    pub events: Option<crate::stream::Stream>,
    /// Flows that cannot have results: in real time those whose start time has not come, and those of kernel hosts,
    /// whose traffic no program makes.
    pub not_due: Vec<usize>,
}

impl RunReport {
    /// Times from requests to whole responses of a flow; `None` without responses, and for a flow of another kind.
    #[must_use]
    pub fn response_of(&self, flow: usize) -> Option<&Summary> {
        self.programs
            .iter()
            .find_map(|(of, _, result)| match result {
                AppResult::TransactionClient(client) if *of == flow => {
                    (client.latency.count > 0).then_some(&client.latency)
                }
                _ => None,
            })
    }
}

/// Events and cells of a run in virtual time.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    /// Number of events.
    pub events: u64,
    /// Cells that the lines carried, each once for every line.
    pub crossings: u64,
    /// Of these, the ones that were events of their own, by reason.
    pub alone: AloneCells,
}

/// A node's name, and its tables by kind.
pub type NodeState = (String, Vec<(StateKind, Vec<Table>)>);

/// How much of the state of the network a report has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Extent {
    /// All tables of all nodes, and all connections end to end.
    #[default]
    Whole,
    /// The tables of nodes from which the tables for people and the warnings are made. All tables of a large lab take
    /// more memory than the lab itself.
    People,
}

/// Kinds of state that the tables for people and the warnings need.
const FOR_PEOPLE: [StateKind; 3] = [StateKind::Mpc, StateKind::Qos, StateKind::Nhrp];

impl Extent {
    /// The kinds of state of each node.
    const fn kinds(self) -> &'static [StateKind] {
        match self {
            Self::Whole => &SHOWN,
            Self::People => &FOR_PEOPLE,
        }
    }
}

/// Kinds of state that the report shows of each node.
pub const SHOWN: [StateKind; 18] = [
    StateKind::Port,
    StateKind::Call,
    StateKind::Saal,
    StateKind::Pvc,
    StateKind::Lec,
    StateKind::Les,
    StateKind::Bus,
    StateKind::Mpc,
    StateKind::Qos,
    StateKind::Mps,
    StateKind::Clip,
    StateKind::Line,
    StateKind::Nhrp,
    StateKind::Sockets,
    StateKind::Tcp,
    StateKind::Bridge,
    StateKind::Cpu,
    StateKind::Queue,
];

/// True if a kind of state belongs to the results of a node. Queues do at switches whose queues or paths the lab file
/// sets, since every switch has queues, and many of them.
fn belongs(lab: &Lab, id: NodeId, what: StateKind) -> bool {
    let NodeKind::Switch(switch) = &lab.node(id).kind else {
        return true;
    };
    what != StateKind::Queue
        || switch.ports.iter().any(|port| {
            let link = lab.link(port.link);
            Queues::at(switch, link) != Queues::default() || !link.tunnels.is_empty()
        })
}

/// True for the names of events about a bound that refuses something.
fn is_limit(name: &str) -> bool {
    matches!(
        name,
        "bridge.full"
            | "lecs.full"
            | "les.full"
            | "les.over-quota"
            | "bus.over-quota"
            | "switch.port.full"
    )
}

/// Limit of such events that a report repeats; the story has all of them.
const MOST_LIMITS: usize = 100;

/// Bounds that were met while a lab ran. Such an event is also a warning in the results.
#[derive(Clone, Debug, Default)]
pub struct Met {
    texts: Vec<String>,
    more: usize,
}

impl Met {
    /// Takes an event of a node.
    pub fn hear(&mut self, node: &str, trace: &Trace) {
        if !is_limit(trace.name) {
            return;
        }
        let text = format!("{node}: {}", trace.text);
        if self.texts.contains(&text) {
            return;
        }
        if self.texts.len() < MOST_LIMITS {
            self.texts.push(text);
        } else {
            self.more += 1;
        }
    }
    /// All of them in the order of time, with names for ATM addresses.
    #[must_use]
    pub fn texts(&self, names: &Names) -> Vec<String> {
        let texts = self.texts.iter().map(|text| names.in_text(text));
        let mut all: Vec<String> = texts.collect();
        if self.more > 0 {
            let more = counted(self.more, "time more", "times more");
            all.push(format!(
                "bounds refused something {more}; the story has all"
            ));
        }
        all
    }
}

/// The tables of one kind of a node; `None` if the node is off, or has no such state.
#[must_use]
pub fn inspect(network: &impl Network, id: NodeId, what: StateKind) -> Option<Vec<Table>> {
    let now = network.time();
    match network.switch(id) {
        Some(switch) => switch.inspect(what, now),
        None => network.station(id)?.inspect(what, now),
    }
}

/// Messages of the daemons of one kind of a node that their seats have refused.
#[must_use]
pub fn refused(network: &impl Network, id: NodeId, what: StateKind) -> u64 {
    match network.switch(id) {
        Some(switch) => switch.daemons_refused(what),
        None => network
            .station(id)
            .map_or(0, |station| station.host().daemons_refused(what)),
    }
}

/// Current state of every node.
#[must_use]
pub fn nodes(lab: &Lab, network: &impl Network, extent: Extent) -> Vec<NodeState> {
    let tables = |id: NodeId, what: StateKind| inspect(network, id, what);
    let nodes = lab.nodes().map(|(id, node)| {
        let known = extent
            .kinds()
            .iter()
            .filter(|what| belongs(lab, id, **what))
            .filter_map(|what| Some((*what, tables(id, *what)?)));
        (node.name.clone(), known.collect())
    });
    nodes.collect()
}

/// Kinds of state with the counters of seats.
const SEATS: [StateKind; 7] = [
    StateKind::Call,
    StateKind::Ilmi,
    StateKind::Lec,
    StateKind::Les,
    StateKind::Bus,
    StateKind::Mpc,
    StateKind::Mps,
];

/// Messages that a daemon must not send, in words, with their node and number. The daemons of a lab are this program's
/// own, so each of them is a defect of this program: the daemon's wish was not fulfilled, and no other message tells
/// this. `refused` gives their number for the daemons of one kind of a node.
#[must_use]
pub fn refusals(lab: &Lab, refused: impl Fn(NodeId, StateKind) -> u64) -> Vec<String> {
    let mut all = Vec::new();
    for (id, node) in lab.nodes() {
        for what in SEATS {
            let refused = refused(id, what);
            if refused > 0 {
                all.push(format!(
                    "{}: the {what} seat refused {} of its daemon, which is a defect of this program",
                    node.name,
                    counted(refused, "message", "messages")
                ));
            }
        }
    }
    all
}

/// A part of a node that was never a member of its network, or never registered with its server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// The node.
    pub node: String,
    /// Condition that it waits for.
    pub waits: Waits,
    /// Name of the network of the interface, if the node has several interfaces.
    pub network: Option<String>,
    /// Its attempts.
    pub attempts: Attempts,
}

/// The parts of all nodes that wait for something that has never come, each with a reason: that of its last attempt,
/// the step of its first one, or since when the node is off. `ever` is that of [`not_joined`].
#[must_use]
pub fn troubles(lab: &Lab, network: &impl Network, ever: impl Fn(NodeId) -> bool) -> Vec<Trouble> {
    let mut all = Vec::new();
    for (id, node) in lab.nodes() {
        let lecs = node.lecs();
        let several = |waits: Waits| match waits {
            Waits::Elan(n) | Waits::Clip(n) | Waits::Line(n) if lecs.len() > 1 => lecs.get(n),
            _ => None,
        };
        let mut add = |waits: Waits, attempts: Attempts| {
            all.push(Trouble {
                node: node.name.clone(),
                waits,
                network: several(waits).map(|lec| lab.elan(lec.elan).name.clone()),
                attempts,
            });
        };
        if let Some(station) = network.station(id) {
            let host = station.host();
            for waits in host.waits() {
                let mut attempts = host.attempts(waits);
                if attempts.why.is_none() {
                    attempts.why = host.stage(waits).map(str::to_owned);
                }
                if !attempts.ever {
                    add(waits, attempts);
                }
            }
        } else if let Some(since) = network.off_since(id).filter(|_| !ever(id)) {
            let microseconds = since.since(Instant::ZERO).as_secs_f64() * 1e6;
            let seconds = microseconds.round() / 1e6;
            for (n, lec) in lecs.iter().enumerate() {
                let waits = match lab.elan(lec.elan).kind() {
                    SubnetKind::ClassicalIp => Waits::Clip(n),
                    SubnetKind::Line => Waits::Line(n),
                    SubnetKind::Lane => Waits::Elan(n),
                };
                let why = Some(format!("it has been switched off since {seconds} s"));
                add(
                    waits,
                    Attempts {
                        why,
                        ..Attempts::default()
                    },
                );
            }
        }
    }
    all
}

/// Nodes with an interface that was never a member of its network; `ever` tells whether all interfaces of a node have
/// been members.
#[must_use]
pub fn not_joined(lab: &Lab, ever: impl Fn(NodeId) -> bool) -> Vec<String> {
    let members = lab.nodes().filter(|(_, node)| !node.lecs().is_empty());
    let never = members.filter(|(id, _)| !ever(*id));
    never.map(|(_, node)| node.name.clone()).collect()
}
