//! The places at which a plant loses packets, and the packets that are still in it.

use super::Plant;
use super::line::LineId;
use super::node::Node;
use crate::model::{LinkEnd, NodeId};
use aerostat_node::atm::{CellRun, DataUnit, DropReason, DroppedPdu, Ended};
use aerostat_node::ip::books::{Cause, Place, Spot};
pub(super) use aerostat_proto::discard::HEAD;

impl LineId {
    /// A place on the link of this line.
    pub(super) const fn place(self, cause: Cause) -> Place {
        Place {
            spot: Spot::Link(self.link().0),
            cause,
        }
    }
}

impl<N: Node, M> Plant<N, M> {
    /// Starts the accounts of a new node.
    pub(super) fn keep_books_at(&mut self, node: NodeId) {
        let books = self.books;
        let steps = self.steps;
        if let Some(machine) = self.node_mut(node) {
            if books {
                machine.keep_books();
            }
            if steps {
                machine.show_steps();
            }
        }
        for port in 0..self.ports(node) {
            let end = LinkEnd { node, port };
            let wanted = |line: LineId| self.line(line).logs_drops;
            let logs = books || self.line_from(end).is_some_and(wanted);
            if let Some(output) = self.output(end).filter(|_| logs) {
                output.log_drops();
            }
        }
    }

    /// Makes all nodes report the steps of data units, also those that start later.
    pub fn show_steps(&mut self) {
        self.steps = true;
        for node in self.nodes() {
            if let Some(machine) = self.node_mut(node) {
                machine.show_steps();
            }
        }
    }

    /// Makes [`Driver::dropped`](super::Driver::dropped) get the PDUs that lose cells at the port in front of a line,
    /// also after a restart of the node.
    pub fn log_drops(&mut self, line: LineId) {
        let on = &mut self.lines[line.0 as usize];
        on.logs_drops = true;
        let from = on.from;
        self.tells_drops = true;
        if let Some(output) = self.output(from) {
            output.log_drops();
        }
    }

    /// Notes the whole PDUs that leave a port in a train and are wanted; [`Self::take_ended`] has them.
    pub fn note_ends(&mut self, wanted: fn(&CellRun) -> bool) {
        self.trains.note_ends(wanted);
    }
    /// Takes the PDUs that were noted, with the lines on which they are.
    pub fn take_ended(&mut self) -> impl Iterator<Item = (LineId, Ended)> + use<N, M> {
        let ended = self.trains.take_ended().into_iter();
        ended.map(|ended| (LineId(ended.line), ended))
    }

    /// Calls `see` for every packet that is still in queues, on lines or in the memory of hosts: SDUs, frames or
    /// packets, including those of which only some cells are left.
    pub fn census(&mut self, see: &mut dyn FnMut(DataUnit<'_>)) {
        for line in self.lines() {
            let on_the_way = self.line(line).on_the_way.iter();
            let single = on_the_way.filter_map(|(_, run)| run.pdu());
            let waiting = self.waiting_on(line);
            let pdus = single.chain(waiting.filter_map(|(run, _)| run.pdu()));
            pdus.for_each(|pdu| see(pdu.into()));
        }
        self.nodes().for_each(|node| self.held_by(node, see));
    }

    pub(super) fn held_by(&mut self, node: NodeId, see: &mut dyn FnMut(DataUnit<'_>)) {
        for port in 0..self.ports(node) {
            if let Some(output) = self.output(LinkEnd { node, port }) {
                output.pdus().for_each(|pdu| see(pdu.into()));
            }
        }
        if let Some(machine) = self.node(node) {
            machine.held(see);
        }
    }

    /// Why a line that is down carries nothing.
    pub(super) fn place_while_down(&self, line: LineId) -> Place {
        let on = self.line(line);
        let ends = [on.to.node, on.from.node];
        let dead = ends.into_iter().find(|node| self.node(*node).is_none());
        let link = &self.links[line.link().0];
        let cause = match link.training && !link.cut {
            true => Cause::Retrain,
            false => Cause::Cut,
        };
        dead.map_or(line.place(cause), off)
    }

    /// The place of a loss at the port in front of a line. Cells of a queue that is emptied because its link is down
    /// are lost with the link.
    pub(super) fn place_at_port(&self, line: LineId, drop: &DroppedPdu) -> Place {
        match drop.reason {
            DropReason::LinkDown => self.place_while_down(line),
            _ => in_fabric(self.line(line).from, drop),
        }
    }
}

/// A loss of cells at a port.
pub(super) const fn in_fabric(end: LinkEnd, drop: &DroppedPdu) -> Place {
    Place {
        spot: Spot::Port(end.node.0, end.port),
        cause: Cause::Cells(drop.reason),
    }
}

/// The place of what is lost when a node is switched off.
pub(super) const fn off(node: NodeId) -> Place {
    Place {
        spot: Spot::Node(node.0),
        cause: Cause::Off,
    }
}
