//! The result of arriving cells, for captures: whether a run was received, or why it was dropped, on arrival or in
//! front of one of its output queues. The cell plane only counts, so a probe compares counters before and after. Nodes
//! that are not captured are not probed.

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
    /// Counters of the input port, if it is captured.
    input: Option<Drops>,
    /// Counters of captured output ports of the same switch: line, port, drops.
    outputs: Vec<(usize, u16, Drops)>,
}

impl World {
    /// Reads the counters before `run` arrives on `line`; `None` if there is no capture.
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

    /// Reads the counters again afterwards, and records what has happened.
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

    /// Cells dropped at an input before any queue, of one connection or of all unknown ones.
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

    /// Cells dropped at the captured output ports of a switch, with their lines.
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

    /// The label under which cells of `from` leave by port `out`; the same label if they do not.
    fn label_at(&self, node: usize, from: PortVc, out: u16) -> Vc {
        let Some(Machine::Switch(switch)) = &self.nodes[node].machine else {
            return from.vc;
        };
        let connection = switch.fabric().connections().find(|c| c.from == from);
        let leaf = connection.and_then(|c| c.to.into_iter().find(|leaf| leaf.port == out));
        leaf.map_or(from.vc, |leaf| leaf.vc)
    }
}

/// The first reason whose count has grown.
fn grown(before: &Drops, after: &Drops) -> Option<DropReason> {
    let mut reasons = DropReason::ALL.into_iter();
    reasons.find(|reason| after.of(*reason) != before.of(*reason))
}
