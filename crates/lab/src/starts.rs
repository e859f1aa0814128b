//! When traffic starts that has no time of its own: as soon as both its hosts have joined their networks.

use crate::build::programs;
use crate::model::{Lab, NodeId};
use aerostat_node::ip::apps::AppSpec;
use aerostat_proto::{Duration, Instant, Trace};

/// How long a run without an end of its own waits for hosts that do not join.
const PATIENCE: Duration = Duration::from_secs(15);
/// Time after the last limited flow.
const GRACE: Duration = Duration::from_secs(2);

/// Which flows wait, and when those that do not have started.
#[derive(Clone, Debug)]
pub struct Starts {
    /// By flow: `None` if it starts by itself.
    flows: Vec<Option<Start>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Start {
    waits: bool,
    /// When it started first.
    first: Option<Instant>,
}

impl Starts {
    /// Nothing has started.
    #[must_use]
    pub fn new(lab: &Lab) -> Self {
        let flows = lab.traffic.iter().map(|flow| {
            flow.waits.then_some(Start {
                waits: true,
                first: None,
            })
        });
        Self {
            flows: flows.collect(),
        }
    }

    /// True if this program is the sender of a flow that waits, or has been started here.
    #[must_use]
    pub fn holds_back(&self, program: &AppSpec) -> bool {
        let flow = self.flows.get(program.id.0 as usize / 2);
        program.id.0.is_multiple_of(2) && flow.is_some_and(Option::is_some)
    }

    /// A node starts anew: the flows that it sends wait for it again.
    pub fn again(&mut self, lab: &Lab, node: NodeId) {
        for (start, flow) in self.flows.iter_mut().zip(&lab.traffic) {
            if let Some(start) = start.as_mut().filter(|_| flow.from == node) {
                start.waits = true;
            }
        }
    }

    /// The senders that start now: host, its place on an Ethernet segment behind it, program. `joined` tells of which nodes all
    /// interfaces are members of their networks.
    pub fn ready(
        &mut self,
        lab: &Lab,
        joined: impl Fn(NodeId) -> bool,
        now: Instant,
    ) -> Vec<(NodeId, Option<usize>, AppSpec)> {
        let mut due = Vec::new();
        for (index, (start, flow)) in self.flows.iter_mut().zip(&lab.traffic).enumerate() {
            if let Some(start) = start
                && start.waits
                && joined(flow.from)
                && joined(flow.to)
            {
                start.waits = false;
                due.push((index, *start.first.get_or_insert(now)));
            }
        }
        if due.is_empty() {
            return Vec::new();
        }
        let all = programs(lab).into_iter();
        // A sender that starts again goes on with what it began, to the same end.
        let ready = all.filter_map(|(node, behind, spec)| {
            let sender = spec.id.0.is_multiple_of(2);
            let index = due.binary_search_by_key(&(spec.id.0 as usize / 2), |(index, _)| *index);
            let (_, start) = *due.get(index.ok().filter(|_| sender)?)?;
            Some((node, behind, AppSpec { start, ..spec }))
        });
        ready.collect()
    }

    /// Numbers of the flows that have never started.
    #[must_use]
    pub fn missing(&self) -> Vec<usize> {
        let never = |start: &Option<Start>| start.is_some_and(|start| start.first.is_none());
        let flows = self.flows.iter().enumerate();
        flows
            .filter(|(_, start)| never(start))
            .map(|(index, _)| index)
            .collect()
    }

    /// As [`Lab::end`], counted from the time that each flow has started; a little later while some have not.
    #[must_use]
    pub fn end(&self, lab: &Lab) -> Instant {
        let mut end = Instant::ZERO + lab.end();
        if lab.until.is_some() {
            return end;
        }
        for (start, flow) in self.flows.iter().zip(&lab.traffic) {
            match start {
                Some(Start { first: None, .. }) => end = end.max(Instant::ZERO + PATIENCE),
                Some(Start {
                    first: Some(first), ..
                }) => {
                    let length = flow
                        .duration
                        .map_or(Duration::ZERO, |length| length + GRACE);
                    end = end.max(*first + length);
                }
                None => {}
            }
        }
        end
    }
}

/// What the story says when this program, one of [`Starts::ready`], starts.
#[must_use]
pub fn told(lab: &Lab, program: &AppSpec) -> Trace {
    let Some(flow) = lab.traffic.get(program.id.0 as usize / 2) else {
        return Trace::milestone("traffic.started", "traffic starts");
    };
    let [from, to] = lab.ends_of(flow);
    let text = format!("traffic {} starts: {from} and {to} have joined", flow.name);
    Trace::milestone("traffic.started", text).with("flow", &flow.name)
}
