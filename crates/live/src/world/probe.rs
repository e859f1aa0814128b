//! What a capture sees where a run of cells arrives: that it was received, or why it was dropped, here or in front
//! of one of the queues that it should have joined. The cell plane only counts; a probe looks at the counters before
//! and after. Nothing of this happens at nodes that nobody watches.

use super::{Machine, World};
use crate::capture::End;
use aerostat_node::atm::{CellRun, DropReason, Drops, PortVc};
use aerostat_proto::Instant;
use aerostat_wire::Vc;
use aerostat_wire::pcapng::Direction;

/// Counters before the arrival.
pub(super) struct Probe {
    run: CellRun,
    line: usize,
    /// Of the port where it arrives, if that is watched.
    input: Option<Drops>,
    /// Of watched output ports of the same switch: the line and the port.
    outputs: Vec<(usize, u16, Drops)>,
}

impl World {
    /// Looks at the counters before `run` arrives by `line`; `None` if nobody watches.
    pub(super) fn probe(&self, line: usize, run: &CellRun) -> Option<Probe> {
        if self.captures.is_empty() {
            return None;
        }
        let (node, port) = self.lines[line].to;
        let input = self
            .captures
            .watches(End::receiver(line), Direction::Received)
            .then(|| self.drops_at_input(node, port, run.vc));
        let outputs = self.drops_at_outputs(node);
        (input.is_some() || !outputs.is_empty()).then(|| Probe {
            run: run.clone(),
            line,
            input,
            outputs,
        })
    }

    /// Looks again afterwards, and records what has happened.
    pub(super) fn record(&mut self, probe: Probe, now: Instant) {
        let Probe {
            run,
            line,
            input,
            outputs,
        } = probe;
        let (node, port) = self.lines[line].to;
        if let Some(before) = input {
            let reason = grown(&before, &self.drops_at_input(node, port, run.vc));
            let end = End::receiver(line);
            self.captures
                .packet(end, Direction::Received, &run, reason, now);
        }
        let after = self.drops_at_outputs(node);
        for (before, after) in outputs.iter().zip(&after) {
            let (line, out, _) = *before;
            let Some(reason) = grown(&before.2, &after.2) else {
                continue;
            };
            let mut lost = run.clone();
            lost.vc = self.label_at(node, PortVc::new(port, run.vc), out);
            self.captures.refused(End::sender(line), &lost, reason, now);
        }
    }

    /// What was dropped at an input, of one connection or of all unknown ones, before any queue.
    fn drops_at_input(&self, node: usize, port: u16, vc: Vc) -> Drops {
        match &self.nodes[node].machine {
            Some(Machine::Station(station)) => station.nic().counters.dropped,
            Some(Machine::Switch(switch)) => {
                let fabric = switch.fabric();
                let mut drops = fabric.input_counters(port).unwrap_or_default().dropped;
                let from = PortVc::new(port, vc);
                let policed = fabric.connections().find(|known| known.from == from);
                drops.merge(
                    &policed
                        .map(|known| known.counters.dropped)
                        .unwrap_or_default(),
                );
                drops
            }
            Some(Machine::Outside(_)) | None => Drops::default(),
        }
    }

    /// What was dropped at the watched output ports of a switch, with their lines.
    fn drops_at_outputs(&self, node: usize) -> Vec<(usize, u16, Drops)> {
        let Some(Machine::Switch(switch)) = &self.nodes[node].machine else {
            return Vec::new();
        };
        let lines = self.nodes[node].lines.iter().zip(0..);
        let watched =
            lines.filter(|(line, _)| self.captures.watches(End::sender(**line), Direction::Sent));
        let drops = watched.filter_map(|(line, port)| {
            let output = switch.fabric().output(port)?;
            Some((*line, port, output.totals().dropped))
        });
        drops.collect()
    }

    /// Under which label cells of `from` leave by port `out`; the same if they do not.
    fn label_at(&self, node: usize, from: PortVc, out: u16) -> Vc {
        let Some(Machine::Switch(switch)) = &self.nodes[node].machine else {
            return from.vc;
        };
        let connection = switch.fabric().connections().find(|c| c.from == from);
        let leaf = connection.and_then(|c| c.to.into_iter().find(|leaf| leaf.port == out));
        leaf.map_or(from.vc, |leaf| leaf.vc)
    }
}

/// The first reason for which more has been dropped.
fn grown(before: &Drops, after: &Drops) -> Option<DropReason> {
    let mut reasons = DropReason::ALL.into_iter();
    reasons.find(|reason| after.of(*reason) != before.of(*reason))
}
