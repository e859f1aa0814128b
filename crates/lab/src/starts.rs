//! Start of traffic that has no start time: as soon as both its hosts and the routers between them can be reached
//! ([`Members`]).

use crate::build::{Placed, programs_of};
use crate::members::Members;
use crate::model::{Flow, Lab, NodeId};
use crate::resolve::{Owners, Step, owners, trace};
use aerostat_node::ip::apps::AppSpec;
use aerostat_proto::{Instant, Trace};
use aerostat_wire::AtmAddress;
use std::collections::{BTreeMap, BTreeSet};

/// Flows that wait, and the start times of those that have started.
#[derive(Clone, Debug)]
pub struct Starts {
    /// By flow; `None` if the flow has a start time.
    flows: Vec<Option<Start>>,
    /// Flows that pass a node, by node: an event looks at these flows only.
    of: BTreeMap<NodeId, Vec<usize>>,
    members: Members,
    /// Nodes of which an interface has become ready since [`Self::ready`] looked last.
    fresh: BTreeSet<NodeId>,
}

#[derive(Clone, Debug)]
struct Start {
    waits: bool,
    /// Time of the first start.
    first: Option<Instant>,
    /// The interfaces that its packets and the answers pass.
    passes: Vec<(NodeId, usize)>,
}

impl Starts {
    /// A state in which no flow has started.
    #[must_use]
    pub fn new(lab: &Lab) -> Self {
        let owners = owners(lab);
        let flows = lab.traffic.iter().map(|flow| {
            flow.waits.then(|| Start {
                waits: true,
                first: None,
                passes: passes(lab, &owners, flow),
            })
        });
        let flows: Vec<Option<Start>> = flows.collect();
        Self {
            of: of_nodes(&flows),
            flows,
            members: Members::new(lab),
            fresh: BTreeSet::new(),
        }
    }

    /// The lab has changed. A flow that is new starts when its hosts can be reached, and not before its start time,
    /// counted from now.
    pub fn adopt(&mut self, lab: &Lab, now: Instant) {
        let mut new = Self::new(lab);
        let owners = owners(lab);
        for (index, start) in new.flows.iter_mut().enumerate() {
            let flow = &lab.traffic[index];
            match self.flows.get(index) {
                Some(None) => *start = None,
                Some(Some(was)) => {
                    let (waits, first) = (was.waits, was.first);
                    let passes = passes(lab, &owners, flow);
                    *start = Some(Start {
                        waits,
                        first,
                        passes,
                    });
                }
                None if flow.waits => {}
                None => {
                    *start = Some(Start {
                        waits: true,
                        first: Some(now + flow.start),
                        passes: passes(lab, &owners, flow),
                    });
                }
            }
            if lab.retired.flows.contains(&index)
                && let Some(start) = start
            {
                start.waits = false;
            }
        }
        new.of = of_nodes(&new.flows);
        new.members = self.members.clone();
        new.members.adopt(lab);
        new.fresh = lab.nodes().map(|(id, _)| id).collect();
        *self = new;
    }

    /// The interfaces that can be reached.
    #[must_use]
    pub const fn members(&self) -> &Members {
        &self.members
    }

    /// Records that an interface has joined its network, or is no longer a member.
    pub fn joined(&mut self, node: NodeId, itf: usize, joined: bool) {
        if self.members.joined(node, itf, joined) {
            self.fresh.insert(node);
        }
    }

    /// Records that a BUS of node `server` reaches a LANE client, or no longer reaches it.
    pub fn reaches(&mut self, server: NodeId, address: AtmAddress, reached: bool) {
        let ready = self.members.reaches(server, address, reached);
        self.fresh.extend(ready);
    }

    /// Records that a node is switched off.
    pub fn off(&mut self, node: NodeId) {
        self.members.off(node);
    }

    /// True if [`Self::ready`] may find a sender to start.
    #[must_use]
    pub fn has_news(&self) -> bool {
        !self.fresh.is_empty()
    }

    /// True if this program is the sender of a flow that waits, or that was started here.
    #[must_use]
    pub fn holds_back(&self, program: &AppSpec) -> bool {
        let flow = self.flows.get(program.id.0 as usize / 2);
        program.id.0.is_multiple_of(2) && flow.is_some_and(Option::is_some)
    }

    /// A node restarts: the flows that it sends wait for it again.
    pub fn again(&mut self, lab: &Lab, node: NodeId) {
        let flows = self.flows.iter_mut().zip(&lab.traffic);
        for (index, (start, flow)) in flows.enumerate() {
            let there = flow.from == node && !lab.retired.flows.contains(&index);
            if let Some(start) = start.as_mut().filter(|_| there) {
                start.waits = true;
            }
        }
    }

    /// The senders that start now, in the order of the flows.
    pub fn ready(&mut self, lab: &Lab, now: Instant) -> Vec<Placed> {
        let fresh = std::mem::take(&mut self.fresh);
        let waiting = fresh.iter().filter_map(|node| self.of.get(node));
        let waiting: BTreeSet<usize> = waiting.flatten().copied().collect();
        let mut ready = Vec::new();
        for index in waiting {
            let Some(start) = self.flows[index].as_mut().filter(|start| start.waits) else {
                continue;
            };
            if !start.passes.iter().all(|itf| self.members.is_ready(*itf)) {
                continue;
            }
            start.waits = false;
            // A restarted sender continues its flow, to the same end.
            let start = *start.first.get_or_insert(now);
            let sender = programs_of(lab, index).map(|(sender, _)| sender);
            ready.extend(sender.map(|mut sender| {
                sender.program.start = start;
                sender
            }));
        }
        ready
    }

    /// When each flow started first: the time in the lab file, or the time at which its hosts had joined; `None` if
    /// they have not joined yet.
    #[must_use]
    pub fn began(&self, lab: &Lab) -> Vec<Option<Instant>> {
        let flows = self.flows.iter().zip(&lab.traffic);
        flows
            .map(|(start, flow)| match start {
                Some(start) => start.first,
                None => Some(Instant::ZERO + flow.start),
            })
            .collect()
    }

    /// When the run ends as far as is known: [`Lab::end_from`] with the actual start of each flow.
    #[must_use]
    pub fn end(&self, lab: &Lab) -> Instant {
        let began = self.began(lab);
        let start = |index| {
            let first: Option<Instant> = began.get(index).copied().flatten();
            first.map(|first| first.since(Instant::ZERO))
        };
        Instant::ZERO + lab.end_from(start)
    }
}

/// The flows that wait for each node.
fn of_nodes(flows: &[Option<Start>]) -> BTreeMap<NodeId, Vec<usize>> {
    let mut of: BTreeMap<NodeId, Vec<usize>> = BTreeMap::new();
    for (index, start) in flows.iter().enumerate() {
        for (node, _) in start.iter().flat_map(|start| &start.passes) {
            let list = of.entry(*node).or_default();
            if list.last() != Some(&index) {
                list.push(index);
            }
        }
    }
    of
}

/// The interfaces that the packets of a flow and their answers pass; if the lab does not know the path, only the
/// interfaces at its ends.
fn passes(lab: &Lab, owners: &Owners, flow: &Flow) -> Vec<(NodeId, usize)> {
    let [near, far] = [(flow.from, flow.segment[0]), (flow.to, flow.segment[1])];
    let steps = [(near, far), (far, near)]
        .into_iter()
        .flat_map(|(from, to)| {
            let address = lab.ip_over(to, flow.over);
            let way = address.and_then(|address| trace(lab, owners, from, address).ok());
            way.unwrap_or_default()
        });
    // Between a line and the rest of its network a host bridges.
    let between = |Step { from, to }: Step| {
        let [here, there] = [from, to].map(|(node, itf)| lab.node(node).lecs()[itf].elan);
        let ports = lab.line_ports(lab.network_of(here));
        let ports = ports.filter(move |_| here != there);
        ports.flat_map(|port| port.interfaces.map(|itf| (port.host, itf)))
    };
    let mut all: BTreeSet<_> = steps
        .flat_map(|step| [step.from, step.to].into_iter().chain(between(step)))
        .collect();
    if all.is_empty() {
        for node in [flow.from, flow.to] {
            let interfaces = 0..lab.node(node).lecs().len();
            all.extend(interfaces.map(|itf| (node, itf)));
        }
    }
    all.into_iter().collect()
}

/// The story's text when this program, one of [`Starts::ready`], starts.
#[must_use]
pub fn told(lab: &Lab, program: &AppSpec) -> Trace {
    let Some(flow) = lab.traffic.get(program.id.0 as usize / 2) else {
        return Trace::milestone("traffic.started", "traffic starts");
    };
    let [from, to] = lab.ends_of(flow);
    let text = format!("traffic {} starts: {from} and {to} have joined", flow.name);
    Trace::milestone("traffic.started", text).with("flow", &flow.name)
}
