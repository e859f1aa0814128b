//! Accounts of a lab's traffic so far, for the results.

use super::{LabNode, Plant};
use crate::build::Builder;
use crate::circuits::{self, Circuits};
use crate::dialogues::{self, Life, Past};
use crate::event::Names;
use crate::model::{Lab, NodeId};
use crate::report::{self, Extent, Met, RunReport};
use crate::starts::Starts;
use aerostat_node::atm::DataUnit;
use aerostat_node::host::HostEvent;
use aerostat_node::host::sockets::programs::ENDED;
use aerostat_node::ip::apps::{AppId, AppResult};
use aerostat_node::ip::books::{Cause, Place, SocketEvent, Spot};
use aerostat_node::ip::flow_stats::{Census, FlowStats, Totals};
use aerostat_node::ip::meter::FlowId;
use aerostat_proto::Instant;
use aerostat_wire::counted;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The accounts of a running lab.
pub struct Ledger {
    /// The accounts of the flows.
    pub stats: FlowStats,
    /// Traffic that waits for its hosts.
    pub starts: Starts,
    /// Bounds that were met.
    pub met: Met,
    /// Counts of programs of hosts that were switched off.
    past: Past,
    /// Ended calls of programs that were displaced by later ones, by node.
    forgotten: BTreeMap<NodeId, u64>,
    /// Results of programs that found no room in `finished`.
    unkept: u64,
    /// Results of programs of the lab file, each with the number of its flow and its role in it.
    finished: Vec<(usize, &'static str, AppResult)>,
    /// Limit of results of programs that are kept.
    most_finished: usize,
    /// For each flow, true if a program of the lab file sends it, which keeps to the schedule.
    scheduled: Vec<bool>,
}

impl Ledger {
    /// Empty accounts, for at most `most_finished` results of programs. Each program ends once per start of its host.
    #[must_use]
    pub fn new(builder: &Builder<'_>, most_finished: usize) -> Self {
        Self {
            stats: FlowStats::new(builder.flows()),
            starts: Starts::new(builder.lab()),
            met: Met::default(),
            past: Past::default(),
            forgotten: BTreeMap::new(),
            unkept: 0,
            finished: Vec::new(),
            most_finished,
            scheduled: builder
                .lab()
                .traffic
                .iter()
                .map(|flow| !builder.is_kernel(flow.from))
                .collect(),
        }
    }

    /// The lab has changed; these nodes start.
    pub(super) fn change(&mut self, builder: &Builder<'_>, fresh: &[NodeId], now: Instant) {
        let lab = builder.lab();
        self.stats.set_flows(builder.flows());
        self.starts.adopt(lab, now);
        for node in fresh {
            self.starts.again(lab, *node);
        }
        let sent = lab.traffic.iter().map(|flow| !builder.is_kernel(flow.from));
        self.scheduled = sent.collect();
    }

    /// Takes an event of a host if it is about traffic; returns any other event.
    pub fn take(&mut self, node: NodeId, event: HostEvent, now: Instant) -> Option<HostEvent> {
        match event {
            HostEvent::Sample(sample) => {
                self.stats.record(&sample);
            }
            HostEvent::Lost(cause, head) => {
                let spot = Spot::Node(node.0);
                self.lost(Place { spot, cause }, head.view(), now);
            }
            HostEvent::Socket(event) => {
                if let SocketEvent::Forgotten(_) = event {
                    *self.forgotten.entry(node).or_default() += 1;
                }
                self.stats.socket(node.0, event, now);
            }
            HostEvent::Joined { itf, joined } => self.starts.joined(node, itf, joined),
            HostEvent::Reaches { address, reached } => self.starts.reaches(node, address, reached),
            other => return Some(other),
        }
        None
    }

    /// A packet, or a cell of it, was lost.
    pub fn lost(&mut self, place: Place, unit: DataUnit<'_>, at: Instant) {
        self.stats.lost(unit, place, at);
    }

    /// A program has ended; returns the number of its flow, if the program is one of the lab file.
    pub fn finished(&mut self, lab: &Lab, app: AppId, result: AppResult) -> Option<usize> {
        let flow = app.0 as usize / 2;
        if flow >= lab.traffic.len() {
            return None;
        }
        let role = if app.0.is_multiple_of(2) {
            "from"
        } else {
            "to"
        };
        if self.finished.len() < self.most_finished {
            self.finished.push((flow, role, result));
        } else {
            self.unkept += 1;
        }
        Some(flow)
    }

    /// A host is about to be switched off: keeps the counts of its programs.
    pub(super) fn keep(&mut self, life: Life) {
        let node = life.node();
        let forgotten = self.past.keep(life, &mut self.stats);
        if forgotten > 0 {
            *self.forgotten.entry(node).or_default() += forgotten;
        }
    }

    /// Bounds that were met, in words.
    fn limits(&self, lab: &Lab) -> Vec<String> {
        let mut all = self.met.texts(&Names::new(lab));
        all.extend(self.forgotten.iter().map(|(node, calls)| {
            let name = &lab.node(*node).name;
            let calls = counted(*calls, "ended call", "ended calls");
            format!("{name}: {calls} of programs left out: a host keeps the last {ENDED}")
        }));
        if self.unkept > 0 {
            let results = counted(self.unkept, "result", "results");
            let most = self.most_finished;
            all.push(format!(
                "{results} of programs left out: the first {most} are kept"
            ));
        }
        all
    }

    /// A node has been switched off, so packets that had not left it are lost.
    pub(super) fn off(&mut self, lab: &Lab, node: NodeId, now: Instant) {
        self.starts.off(node);
        let (spot, cause) = (Spot::Node(node.0), Cause::Off);
        for address in lab.addresses_of(node) {
            self.stats.host_off(address, Place { spot, cause }, now);
        }
    }

    /// True if [`Self::sweep`] is worth its cost.
    #[must_use]
    pub fn wants_sweep(&self) -> bool {
        self.stats.wants_sweep()
    }

    /// Turns packets that are lost for good into numbers, so that the accounts need memory for packets under way only.
    /// Call this after [`Driver::settle_books`](super::Driver::settle_books). `elsewhere` as for [`Self::report`].
    pub fn sweep<M>(&mut self, plant: &mut Plant<LabNode, M>, now: Instant, elsewhere: bool) {
        let census = self.census(plant, now, elsewhere);
        self.stats.sweep(now, &census, elsewhere);
    }

    /// The packets that are still in the network.
    fn census<M>(&self, plant: &mut Plant<LabNode, M>, now: Instant, elsewhere: bool) -> Census {
        let mut census = Census::default();
        plant.census(&mut |unit| self.stats.note_held(unit, &mut census));
        if elsewhere {
            self.stats.note_recent(now, &mut census);
        }
        census
    }

    /// The counters of all flows now. Call this after [`Driver::settle_books`](super::Driver::settle_books).
    /// `elsewhere` as for [`Self::report`].
    pub fn totals<M>(
        &self,
        plant: &mut Plant<LabNode, M>,
        now: Instant,
        elsewhere: bool,
    ) -> Vec<Totals> {
        let census = self.census(plant, now, elsewhere);
        self.stats.totals(&census)
    }

    /// All results so far. Call this after [`Driver::settle_books`](super::Driver::settle_books). Packets in other
    /// processes, or outside the lab, cannot be seen. If there are such places (`elsewhere`), packets sent less than
    /// [`IN_FLIGHT`](aerostat_node::ip::flow_stats::IN_FLIGHT) ago count as under way.
    #[must_use]
    pub fn report<M>(
        &self,
        lab: &Lab,
        plant: &mut Plant<LabNode, M>,
        now: Instant,
        elsewhere: bool,
        extent: Extent,
    ) -> RunReport {
        let (stats, past) = (&self.stats, &self.past);
        let census = self.census(plant, now, elsewhere);
        let plant = &*plant;
        let starts = self.starts.began(lab);
        let ever = |id| self.starts.members().ever_joined(id);
        let schedule = |FlowId(index): FlowId| {
            let began = starts.get(index).copied().flatten()?;
            let flow = lab.traffic.get(index)?;
            let kept = self.scheduled.get(index).copied().unwrap_or(false);
            flow.schedule(began, now).filter(|_| kept)
        };
        RunReport {
            end: now,
            until: self.starts.end(lab),
            flows: stats.report_with(now, Some(&census), schedule),
            dialogues: dialogues::read(lab, plant, past, stats, &census),
            windows: dialogues::windows(lab, plant),
            tested: dialogues::tested(lab, plant),
            failed_programs: dialogues::failed(lab, plant, past),
            circuits: match extent {
                Extent::Whole => circuits::read(lab, plant),
                Extent::People => Circuits::default(),
            },
            nodes: Arc::new(report::nodes(lab, plant, extent)),
            troubles: report::troubles(lab, plant, ever),
            refusals: report::refusals(lab, |id, what| report::refused(plant, id, what)),
            began: starts.clone(),
            not_joined: report::not_joined(lab, ever),
            occupancy: Vec::new(),
            limits: self.limits(lab),
            not_due: Vec::new(),
            events: None,
            programs: self.finished.clone(),
        }
    }
}
