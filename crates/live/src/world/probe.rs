//! The result of arriving cells, for captures: whether a run was received, or why it was dropped, on arrival or in
//! front of one of its output queues. The cell plane only counts, so a probe compares counters before and after. Cells
//! that no client wants are not probed.

use super::World;
use crate::capture::End;
use aerostat_lab::model::NodeId;
use aerostat_lab::plant::{LabNode, LineId, LinkEnd};
use aerostat_node::atm::{CellRun, DropReason, Drops, PortVc};
use aerostat_proto::Instant;
use aerostat_wire::Vc;
use aerostat_wire::pcapng::Direction;

/// Counters before the arrival.
pub(super) struct Probe {
    run: CellRun,
    line: LineId,
    /// Counters of the input port, if it is captured.
    input: Option<Drops>,
    /// Counters of captured output ports of the same switch: line, port, drops.
    outputs: Vec<(LineId, u16, Drops)>,
}

impl World {
    /// Reads the counters before `run` arrives on `line`; `None` if there is no capture.
    pub(super) fn probe_before(&self, line: LineId, run: &CellRun) -> Option<Probe> {
        if self.captures.is_empty() {
            return None;
        }
        let LinkEnd { node, port } = self.plant.line(line).to;
        let end = End::receiver(line);
        let told = self.captures.tells(end, run);
        let input = (self.captures.records(end, Direction::Received)
            || told && self.captures.watches(end))
        .then(|| self.drops_at_input(node, port, run.vc));
        // What a queue refuses reaches no link, so only ladders show it.
        let outputs = match told {
            true => self.drops_at_outputs(node),
            false => Vec::new(),
        };
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
        let LinkEnd { node, port } = self.plant.line(line).to;
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
    fn drops_at_input(&self, node: NodeId, port: u16, vc: Vc) -> Drops {
        let here = self.plant.node(node);
        if let Some(station) = here.and_then(LabNode::as_station) {
            return station.nic().counters.dropped;
        }
        let Some(switch) = here.and_then(LabNode::as_switch) else {
            return Drops::default();
        };
        let fabric = switch.fabric();
        let mut drops = fabric.input_counters(port).unwrap_or_default().dropped;
        let from = PortVc::new(port, vc);
        let policed = fabric.connection(from);
        let policed = policed.map(|known| known.counters.dropped);
        drops.merge(&policed.unwrap_or_default());
        drops
    }

    /// Cells dropped at the captured output ports of a switch, with their lines.
    fn drops_at_outputs(&self, node: NodeId) -> Vec<(LineId, u16, Drops)> {
        let Some(switch) = self.plant.node(node).and_then(LabNode::as_switch) else {
            return Vec::new();
        };
        let drops = (0..self.plant.ports(node)).filter_map(|port| {
            let line = self.plant.line_from(LinkEnd { node, port })?;
            let watched = self.captures.watches(End::sender(line));
            let output = switch.fabric().output(port).filter(|_| watched)?;
            Some((line, port, output.totals().dropped))
        });
        drops.collect()
    }

    /// The label under which cells of `from` leave by port `out`; the same label if they do not.
    fn label_at(&self, node: NodeId, from: PortVc, out: u16) -> Vc {
        let Some(switch) = self.plant.node(node).and_then(LabNode::as_switch) else {
            return from.vc;
        };
        let connection = switch.fabric().connection(from);
        let leaf = connection.and_then(|c| c.to.into_iter().find(|leaf| leaf.port == out));
        leaf.map_or(from.vc, |leaf| leaf.vc)
    }
}

/// The first reason whose count has grown.
fn grown(before: &Drops, after: &Drops) -> Option<DropReason> {
    let mut reasons = DropReason::ALL.into_iter();
    reasons.find(|reason| after.of(*reason) != before.of(*reason))
}
