//! The results of a running lab so far, in the form of a run in virtual time.

use crate::world::{Output, World};
use aerostat_lab::build::Builder;
use aerostat_lab::circuits;
use aerostat_lab::dialogues::{self, Past};
use aerostat_lab::event::Names;
use aerostat_lab::model::Lab;
use aerostat_lab::report::{self, Met, RunReport};
use aerostat_node::ip::apps::AppResult;
use aerostat_node::ip::flow_stats::{Census, FlowStats};
use aerostat_proto::Instant;

/// Limit of results of programs of the lab file that are kept. Each program ends once per start of its host.
const PROGRAMS: usize = 10_000;

/// Collects the world's reports about its traffic.
pub struct Results<'a> {
    lab: &'a Lab,
    builder: &'a Builder<'a>,
    /// The accounts of the flows.
    pub stats: FlowStats,
    /// Counts of programs of hosts that were switched off.
    past: Past,
    finished: Vec<(usize, &'static str, AppResult)>,
    /// Bounds that were met.
    pub met: Met,
}

impl<'a> Results<'a> {
    /// Empty results.
    #[must_use]
    pub fn new(lab: &'a Lab, builder: &'a Builder<'a>) -> Self {
        Self {
            lab,
            builder,
            stats: FlowStats::new(builder.flows()),
            past: Past::default(),
            finished: Vec::new(),
            met: Met::default(),
        }
    }

    /// Takes an output of the world if it is about traffic; returns any other output.
    pub fn take(&mut self, output: Output) -> Option<Output> {
        match output {
            Output::Sample(sample) => self.stats.record(&sample),
            Output::Lost(place, at, head) => self.stats.lost(head.view(), place, at),
            Output::Socket(node, at, event) => self.stats.socket(node.0, event, at),
            Output::Life(life) => self.past.keep(*life, &mut self.stats),
            Output::Off(node, place, at) => {
                for address in self.lab.addresses_of(node) {
                    self.stats.host_off(address, place, at);
                }
            }
            other => return Some(other),
        }
        None
    }

    /// Records that a program has ended; returns the name of its flow, if the program is one of the lab file.
    pub fn finished(&mut self, app: u32, result: AppResult) -> Option<&'a str> {
        let number = app as usize / 2;
        let flow = self.lab.traffic.get(number)?;
        let role = if app.is_multiple_of(2) { "from" } else { "to" };
        if self.finished.len() < PROGRAMS {
            self.finished.push((number, role, result));
        }
        Some(&flow.name)
    }

    /// All results as of `now`. Call this after [`World::settle_books`] and after all outputs of the world have been
    /// taken. Packets in other processes, or outside the lab, cannot be seen. If there are such places (`elsewhere`),
    /// packets sent less than [`IN_FLIGHT`](aerostat_node::ip::flow_stats::IN_FLIGHT) ago count as under way.
    #[must_use]
    pub fn report(&self, world: &World, now: Instant, elsewhere: bool) -> RunReport {
        let mut census = Census::default();
        world.census(&mut |unit| self.stats.note_held(unit, &mut census));
        if elsewhere {
            self.stats.note_recent(now, &mut census);
        }
        let circuits = circuits::read(self.lab, world);
        RunReport {
            end: now,
            dialogues: dialogues::read(self.lab, world, &self.past, &self.stats, &census),
            failed_programs: dialogues::failed(self.lab, world, &self.past),
            flows: self.stats.report_with(now, Some(&census)),
            programs: self.finished.clone(),
            circuits,
            nodes: report::nodes(self.lab, world),
            began: world.began(),
            not_joined: self.not_joined(world),
            limits: self.met.texts(&Names::new(self.lab)),
            not_due: self.not_due(now),
        }
    }

    /// Hosts that have not joined. Without traffic the list is empty, because the user has already been told what the
    /// lab waits for. With traffic, results may lack what these hosts would have sent.
    fn not_joined(&self, world: &World) -> Vec<String> {
        if self.lab.traffic.is_empty() {
            return Vec::new();
        }
        report::not_joined(self.lab, |id| world.ever_joined(id))
    }

    /// Flows that have not started. Between kernel hosts no program makes them; for other flows the time may not have
    /// come.
    fn not_due(&self, now: Instant) -> Vec<usize> {
        let flows = self.lab.traffic.iter().enumerate();
        let not = flows.filter(|(_, flow)| {
            let kernel = [flow.from, flow.to]
                .into_iter()
                .any(|id| self.builder.is_kernel(id));
            kernel || (!flow.waits && Instant::ZERO + flow.start >= now)
        });
        not.map(|(number, _)| number).collect()
    }
}
