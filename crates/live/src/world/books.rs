//! The world's accounts of lost packets: those that lose cells at ports, in fabrics and on cables, those that are lost
//! when a node dies, and those that are still in the network.

use super::{Machine, Output, World};
use aerostat_lab::circuits::{LinkCounters, Network};
use aerostat_lab::model::{LinkId, NodeId};
use aerostat_node::atm::{CellRun, DataUnit, DropReason, OutputPort};
use aerostat_node::host::Station;
use aerostat_node::ip::books::{Cause, Place, Spot};
use aerostat_node::switch::Switch;
use aerostat_proto::Instant;
use aerostat_proto::discard::HEAD;
use aerostat_wire::Vc;
use std::collections::BTreeMap;

impl World {
    /// Starts the accounts of a new node, if anything in the lab is measured.
    pub(super) fn keep_books_at(&mut self, node: usize) {
        if !self.books {
            return;
        }
        match &mut self.nodes[node].machine {
            Some(Machine::Station(station)) => station.keep_books(),
            Some(Machine::Switch(switch)) => switch.fabric_mut().log_discards(),
            Some(Machine::Outside(_)) | None => return,
        }
        for port in 0..self.nodes[node].lines.len() as u16 {
            if let Some(output) = self.port(node, port) {
                output.log_drops();
            }
        }
    }

    /// Calls `see` for every packet that is still in queues, on cables or in the memory of hosts: SDUs, frames or
    /// packets, including those of which only some cells are left.
    pub fn census(&self, see: &mut dyn FnMut(DataUnit<'_>)) {
        for line in &self.lines {
            for (_, run) in &line.on_the_way {
                run.pdu().into_iter().for_each(|pdu| see(pdu.into()));
            }
        }
        for node in 0..self.nodes.len() {
            self.held_by(node, see);
        }
    }

    fn held_by(&self, node: usize, see: &mut dyn FnMut(DataUnit<'_>)) {
        let mut ports = |output: &OutputPort| output.pdus().for_each(|pdu| see(pdu.into()));
        match &self.nodes[node].machine {
            Some(Machine::Station(station)) => {
                ports(station.nic().output());
                station.host().held(see);
            }
            Some(Machine::Switch(switch)) => {
                let fabric = switch.fabric();
                (0..fabric.ports())
                    .filter_map(|port| fabric.output(port))
                    .for_each(ports);
            }
            Some(Machine::Outside(_)) | None => {}
        }
    }

    /// Makes all nodes report their pending losses.
    pub fn settle_books(&mut self) {
        for node in 0..self.nodes.len() {
            self.settle(node);
            self.tell_discards(node);
            for port in 0..self.nodes[node].lines.len() as u16 {
                self.tell_drops(node, port);
            }
        }
    }

    /// Reports everything that is lost when a node dies.
    pub(super) fn lose_all_of(&mut self, node: usize) {
        if !self.books {
            return;
        }
        for port in 0..self.nodes[node].lines.len() as u16 {
            self.tell_drops(node, port);
        }
        let mut heads = Vec::new();
        self.held_by(node, &mut |unit| heads.push(unit.first(HEAD)));
        let (place, time) = (off(node), self.time);
        let lost = heads
            .into_iter()
            .map(|head| Output::Lost(place, time, head));
        self.out.extend(lost);
        self.out.push_back(Output::Off(NodeId(node), place, time));
    }

    /// Reports the loss of cells of a PDU.
    pub(super) fn lose(&mut self, place: Place, run: &CellRun, at: Instant) {
        if let Some(pdu) = run.pdu().filter(|_| self.books) {
            self.out
                .push_back(Output::Lost(place, at, DataUnit::from(pdu).first(HEAD)));
        }
    }

    /// The place of a loss on a cable: the cable itself, or a dead node at one of its ends.
    pub(super) fn place_on(&self, line: usize, cause: Cause) -> Place {
        let on = &self.lines[line];
        let ends = [on.to.0, on.from.0];
        let dead = ends
            .into_iter()
            .find(|node| self.nodes[*node].machine.is_none());
        match (cause, dead) {
            (Cause::Cut, Some(node)) => off(node),
            _ => Place {
                spot: Spot::Link(line / 2),
                cause,
            },
        }
    }

    /// Reports PDUs that have lost cells at a port.
    pub(super) fn tell_drops(&mut self, node: usize, port: u16) {
        let Some(output) = self.port(node, port).filter(|output| output.has_drops()) else {
            return;
        };
        let drops = output.take_drops();
        let down = self.nodes[node].lines.get(usize::from(port));
        let down = down.map(|line| self.place_on(*line, Cause::Cut));
        for drop in drops {
            let place = match (drop.reason, down) {
                // Cells of a queue that is emptied because its link is down are lost with the link.
                (DropReason::LinkDown, Some(down)) => down,
                (reason, _) => Place {
                    spot: Spot::Port(node, port),
                    cause: Cause::Cells(reason),
                },
            };
            self.out.push_back(Output::Lost(
                place,
                drop.at,
                DataUnit::from(&drop.pdu).first(HEAD),
            ));
        }
    }

    /// Reports PDUs that have lost cells in a fabric.
    pub(super) fn tell_discards(&mut self, node: usize) {
        while let Some(Machine::Switch(switch)) = &mut self.nodes[node].machine
            && let Some((port, drop)) = switch.fabric_mut().take_discard()
        {
            let place = Place {
                spot: Spot::Port(node, port),
                cause: Cause::Cells(drop.reason),
            };
            self.out.push_back(Output::Lost(
                place,
                drop.at,
                DataUnit::from(&drop.pdu).first(HEAD),
            ));
        }
    }
}

pub(super) const fn off(node: usize) -> Place {
    Place {
        spot: Spot::Node(node),
        cause: Cause::Off,
    }
}

impl Network for World {
    fn time(&self) -> Instant {
        self.time
    }
    fn station(&self, node: NodeId) -> Option<&Station> {
        match &self.nodes.get(node.0)?.machine {
            Some(Machine::Station(station)) => Some(station),
            _ => None,
        }
    }
    fn switch(&self, node: NodeId) -> Option<&Switch> {
        match &self.nodes.get(node.0)?.machine {
            Some(Machine::Switch(switch)) => Some(switch),
            _ => None,
        }
    }
    fn cells_on(&self, link: LinkId) -> [BTreeMap<Vc, u64>; 2] {
        [0, 1].map(|way| {
            let mut cells = BTreeMap::new();
            for (_, run) in &self.lines[2 * link.0 + way].on_the_way {
                *cells.entry(run.vc).or_default() += u64::from(run.count);
            }
            cells
        })
    }
    fn on_since(&self, node: NodeId) -> Instant {
        self.nodes
            .get(node.0)
            .map_or(Instant::ZERO, |node| node.since)
    }
    fn counters_of(&self, link: LinkId) -> [LinkCounters; 2] {
        [0, 1].map(|way| self.lines[2 * link.0 + way].counters)
    }
}
