//! The world's accounts of lost packets: those that lose cells at ports, in fabrics and on links, and those that are
//! lost when a node is switched off.

use super::{LinkEnd, NodeId, World};
use crate::node::{Node, Observer, Packet};
use aerostat_node::atm::{CellRun, Content, DataUnit, DroppedPdu, Pdu};
use aerostat_node::ip::books::{Cause, Place, Spot};
use aerostat_proto::Instant;
use aerostat_wire::pcapng::Direction;

impl<N: Node> World<N> {
    /// Makes [`Observer::lost`] get everything that is lost.
    pub fn keep_books(&mut self) {
        self.books = true;
        for node in 0..self.slots.len() {
            self.keep_books_at(NodeId(node));
        }
    }

    pub(super) fn keep_books_at(&mut self, node: NodeId) {
        if !self.books {
            return;
        }
        let Some(machine) = &mut self.slots[node.0].node else {
            return;
        };
        machine.keep_books();
        for port in 0..self.slots[node.0].directions.len() as u16 {
            if let Some(output) = self.output(LinkEnd { node, port }) {
                output.log_drops();
            }
        }
    }

    /// Calls `see` for every packet that is still in queues, on links or in the memory of hosts: SDUs, frames or
    /// packets, including those of which only some cells are left.
    pub fn census(&mut self, see: &mut dyn FnMut(DataUnit<'_>)) {
        for travel in &self.travels {
            for (_, run) in &travel.on_the_way {
                run.pdu().into_iter().for_each(|pdu| see(pdu.into()));
            }
        }
        for node in 0..self.slots.len() {
            self.held_by(NodeId(node), see);
        }
    }

    fn held_by(&mut self, node: NodeId, see: &mut dyn FnMut(DataUnit<'_>)) {
        for port in 0..self.slots[node.0].directions.len() as u16 {
            if let Some(output) = self.output(LinkEnd { node, port }) {
                output.pdus().for_each(|pdu| see(pdu.into()));
            }
        }
        if let Some(machine) = &self.slots[node.0].node {
            machine.held(see);
        }
    }

    /// Makes all nodes report their pending losses.
    pub fn settle_books(&mut self, observer: &mut impl Observer<N::Event>) {
        for node in 0..self.slots.len() {
            let node = NodeId(node);
            self.with_node(node, observer, |_, _| {});
            self.tell_discards(node, observer);
        }
        for way in 0..self.travels.len() {
            self.tell_drops(way as u32, observer);
        }
    }

    /// Reports everything that is lost when a node is switched off.
    pub(super) fn lose_all_of(&mut self, node: NodeId, observer: &mut impl Observer<N::Event>) {
        if !self.books {
            return;
        }
        for port in 0..self.slots[node.0].directions.len() as u16 {
            if let Some(way) = self.way(node, port) {
                self.tell_drops(way, observer);
            }
        }
        let (place, now) = (off(node), self.now);
        self.held_by(node, &mut |unit| observer.lost(place, unit, now));
    }

    /// Why a direction of a link carries nothing.
    pub(super) fn down_place(&self, way: usize) -> Place {
        let travel = &self.travels[way];
        let ends = [travel.to.node, travel.from.node];
        let dead = ends.into_iter().find(|n| self.slots[n.0].node.is_none());
        dead.map_or(link(way, Cause::Cut), off)
    }

    /// Reports the PDUs that have lost cells on links.
    pub(super) fn tell_harmed(&mut self, observer: &mut impl Observer<N::Event>) {
        for (place, pdu, at) in self.harmed.drain(..) {
            observer.lost(place, (&pdu).into(), at);
        }
    }

    /// Reports PDUs that have lost cells at the port that sends into this direction.
    pub(super) fn tell_drops(&mut self, way: u32, observer: &mut impl Observer<N::Event>) {
        let end = self.travels[way as usize].from;
        let tapped = self.travels[way as usize].taps[0].is_some();
        let (books, down) = (self.books, self.down_place(way as usize));
        let Some(output) = self.output(end).filter(|output| output.has_drops()) else {
            return;
        };
        for drop in output.take_drops() {
            if books {
                observer.lost(port_place(end, &drop, down), (&drop.pdu).into(), drop.at);
            }
            if tapped {
                observer.packet(&Packet {
                    end,
                    at: drop.at,
                    direction: Direction::Sent,
                    vc: drop.vc,
                    pdu: &drop.pdu,
                    clp: drop.pdu.clp(),
                    dropped: Some(drop.reason),
                });
            }
        }
    }

    /// Reports PDUs that have lost cells in a fabric.
    pub(super) fn tell_discards(&mut self, node: NodeId, observer: &mut impl Observer<N::Event>) {
        while let Some(machine) = &mut self.slots[node.0].node
            && let Some((port, drop)) = machine.poll_discard()
        {
            let place = Place {
                spot: Spot::Port(node.0, port),
                cause: Cause::Cells(drop.reason),
            };
            observer.lost(place, (&drop.pdu).into(), drop.at);
        }
    }
}

fn off(node: NodeId) -> Place {
    Place {
        spot: Spot::Node(node.0),
        cause: Cause::Off,
    }
}

/// A place on the link of a direction.
pub(super) fn link(way: usize, cause: Cause) -> Place {
    Place {
        spot: Spot::Link(way / 2),
        cause,
    }
}

/// Cells of a queue that is emptied because its link is down are lost with the link.
fn port_place(end: LinkEnd, drop: &DroppedPdu, down: Place) -> Place {
    use aerostat_node::atm::DropReason;
    if drop.reason == DropReason::LinkDown {
        return down;
    }
    Place {
        spot: Spot::Port(end.node.0, end.port),
        cause: Cause::Cells(drop.reason),
    }
}

/// The effect of a link on a cell of `pdu`: `None` if it arrives unchanged.
pub(super) fn harmed(
    way: usize,
    pdu: Option<Pdu>,
    arrives: Option<&CellRun>,
    lost: bool,
) -> Option<(Place, Pdu)> {
    let pdu = pdu?;
    match arrives {
        Some(run) if matches!(run.content, Content::Pdu { .. }) => None,
        None if lost => Some((link(way, Cause::CellLost), pdu)),
        _ => Some((link(way, Cause::BitErrors), pdu)),
    }
}

/// Reports a run that was on a link that went down.
pub(super) fn tell_gone<E>(
    place: Place,
    runs: impl IntoIterator<Item = CellRun>,
    now: Instant,
    observer: &mut impl Observer<E>,
) {
    for run in runs {
        if let Some(pdu) = run.pdu() {
            observer.lost(place, pdu.into(), now);
        }
    }
}
