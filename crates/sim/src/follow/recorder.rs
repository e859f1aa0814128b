//! Notes of an observer about packets that are followed.

use super::departures::Departures;
use super::{PacketId, Wait};
use crate::observer::PassedCell;
use aerostat_lab::plant::{LineId, NodeId};
use aerostat_node::atm::{DataUnit, Pdu};
use aerostat_node::host::Step;
use aerostat_node::ip::books::{FlowIndex, Place};
use aerostat_node::ip::meter::{FlowId, FlowSpec, PacketKey, Path, Sample, Side};
use aerostat_proto::Instant;
use aerostat_wire::Vc;
use aerostat_wire::pcapng::Direction;
use std::collections::{BTreeMap, BTreeSet};

/// Follows packets.
#[derive(Debug)]
pub(crate) struct Recorder {
    index: FlowIndex,
    /// Packets that have not been made yet.
    wanted: BTreeSet<PacketId>,
    /// Packets that are under way.
    trails: BTreeMap<PacketId, Trail>,
    /// The same by what is found in their headers.
    keys: BTreeMap<(FlowId, PacketKey), PacketId>,
    /// PDUs that carry them, by identity: their packet, and the number of the leg.
    pdus: BTreeMap<usize, (PacketId, usize)>,
    /// Nodes at both ends of each line.
    ends: Vec<[NodeId; 2]>,
    departures: Vec<Departures>,
    /// Since when a followed cell may wait in each node.
    floors: Vec<Option<Instant>>,
    looks: Vec<Look>,
    ended: Vec<Trail>,
    /// True to end the run with the last packet.
    only: bool,
}

/// Parts that the owner of the world is asked to look at after an event.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Look {
    /// The path of a packet that leaves its stack here.
    Path(PacketId, NodeId),
    /// The user of a label of an end system.
    User(PacketId, usize, NodeId, Vc),
    /// The way of a packet that has ended is to be made now, as long as its connections are there.
    Way,
}

/// Knowledge of one packet.
#[derive(Clone, Debug)]
pub(crate) struct Trail {
    pub(super) packet: PacketId,
    pub(super) key: PacketKey,
    pub(super) offered: Option<(Instant, NodeId)>,
    pub(super) sent: Option<(Instant, NodeId)>,
    pub(super) path: Option<Path>,
    pub(super) why: Option<String>,
    pub(super) received: Option<(Instant, NodeId)>,
    /// The place of its loss, if it does not arrive after all.
    pub(super) lost: Option<(Place, Instant)>,
    pub(super) legs: Vec<Leg>,
    /// Time at which the CPU of a node got it to send it.
    to_cpu: Vec<(NodeId, Instant)>,
    pub(super) ambiguous: bool,
    /// Censuses since its loss that have found no copy.
    gone: u8,
}

/// A PDU that carries the packet from one end system to others.
#[derive(Clone, Debug)]
pub(super) struct Leg {
    pub(super) pdu: Pdu,
    pub(super) origin: NodeId,
    pub(super) user: Option<String>,
    pub(super) to_cpu: Option<Instant>,
    pub(super) queued: Instant,
    pub(super) hops: Vec<Hop>,
    /// Node and time at which the receive path of an adapter was through with it.
    pub(super) taken_in: Vec<(NodeId, Instant)>,
    /// Node and time at which a host got it.
    pub(super) delivered: Vec<(NodeId, Instant)>,
}

/// A line that carries the PDU.
#[derive(Clone, Debug)]
pub(super) struct Hop {
    pub(super) line: LineId,
    pub(super) vc: Vc,
    pub(super) clp: bool,
    /// Its last cell, if that has left.
    pub(super) last: Option<LastCell>,
}

/// The last cell of a PDU on a line.
#[derive(Clone, Debug)]
pub(super) struct LastCell {
    /// Since when it waited at the port.
    pub(super) since: Instant,
    pub(super) wait: Wait,
    pub(super) start: Instant,
    pub(super) finish: Instant,
    pub(super) arrived: Option<Instant>,
}

/// The identity of a PDU as long as it exists.
fn identity(pdu: &Pdu) -> usize {
    pdu.sdu().as_ptr() as usize
}

impl Recorder {
    /// Follows these packets of the flows, over lines with these ends.
    pub(crate) fn new(
        flows: &[FlowSpec],
        wanted: BTreeSet<PacketId>,
        ends: Vec<[NodeId; 2]>,
        only: bool,
    ) -> Self {
        let nodes = ends.iter().flatten().map(|node| node.0 + 1).max();
        Self {
            index: FlowIndex::new(flows, |_| true),
            wanted,
            trails: BTreeMap::new(),
            keys: BTreeMap::new(),
            pdus: BTreeMap::new(),
            departures: ends.iter().map(|_| Departures::default()).collect(),
            floors: vec![None; nodes.unwrap_or(0)],
            ends,
            looks: Vec::new(),
            ended: Vec::new(),
            only,
        }
    }

    /// True if the run need not go on.
    pub(crate) fn is_done(&self) -> bool {
        self.only && self.wanted.is_empty() && self.trails.is_empty()
    }
    /// True if something must be looked at before the next event.
    pub(crate) const fn wants_a_look(&self) -> bool {
        !self.looks.is_empty()
    }
    pub(crate) fn take_looks(&mut self) -> Vec<Look> {
        std::mem::take(&mut self.looks)
    }
    pub(crate) fn take_ended(&mut self) -> Vec<Trail> {
        std::mem::take(&mut self.ended)
    }
    pub(crate) fn ends(&self) -> &[[NodeId; 2]] {
        &self.ends
    }
    pub(crate) fn explain(&mut self, packet: PacketId, why: Option<String>) {
        if let Some(trail) = self.trails.get_mut(&packet) {
            trail.why = why;
        }
    }
    pub(crate) fn name_user(&mut self, packet: PacketId, leg: usize, user: Option<String>) {
        let trail = self.trails.get_mut(&packet);
        if let Some(leg) = trail.and_then(|trail| trail.legs.get_mut(leg)) {
            leg.user = user;
        }
    }

    /// A sample of the meters; `number` is that of its packet.
    pub(crate) fn sample(&mut self, node: NodeId, sample: &Sample, number: u64, now: Instant) {
        let packet = (sample.flow, number);
        match sample.side {
            Side::Offered => {
                if let Some(trail) = self.begin(packet, sample.key) {
                    trail.offered = Some((sample.at, node));
                }
            }
            Side::Sent => {
                if let Some(trail) = self.begin(packet, sample.key) {
                    trail.sent = Some((sample.at, node));
                    trail.path = Some(sample.path);
                    self.looks.push(Look::Path(packet, node));
                }
            }
            Side::Received => {
                if let Some(trail) = self.trails.get_mut(&packet) {
                    trail.received = Some((now, node));
                    self.end(packet);
                }
            }
            Side::Answered | Side::Refused(_) => {}
        }
    }

    /// The notes of a packet that is made now, or that has been made.
    fn begin(&mut self, packet: PacketId, key: PacketKey) -> Option<&mut Trail> {
        let listed = (packet.0, key);
        if self.wanted.remove(&packet) {
            let earlier = self.keys.insert(listed, packet);
            let ambiguous = earlier.is_some();
            if let Some(earlier) = earlier.and_then(|earlier| self.trails.get_mut(&earlier)) {
                earlier.ambiguous = true;
            }
            let trail = Trail {
                packet,
                key,
                offered: None,
                sent: None,
                path: None,
                why: None,
                received: None,
                lost: None,
                legs: Vec::new(),
                to_cpu: Vec::new(),
                ambiguous,
                gone: 0,
            };
            self.trails.insert(packet, trail);
        } else if let Some(other) = self.keys.get(&listed).filter(|other| **other != packet)
            && let Some(other) = self.trails.get_mut(other)
        {
            other.ambiguous = true;
        }
        self.trails.get_mut(&packet)
    }

    /// Nothing more happens to a packet.
    fn end(&mut self, packet: PacketId) {
        let Some(trail) = self.trails.remove(&packet) else {
            return;
        };
        let listed = (packet.0, trail.key);
        if self.keys.get(&listed) == Some(&packet) {
            self.keys.remove(&listed);
        }
        self.pdus.retain(|_, (other, _)| *other != packet);
        if self.pdus.is_empty() {
            self.floors.fill(None);
        }
        self.ended.push(trail);
        self.looks.push(Look::Way);
    }

    /// The run ends: so do all packets that are still under way.
    pub(crate) fn end_all(&mut self) {
        let all: Vec<PacketId> = self.trails.keys().copied().collect();
        all.into_iter().for_each(|packet| self.end(packet));
    }

    /// The followed packet in a data unit.
    fn packet_in(&self, unit: DataUnit<'_>) -> Option<PacketId> {
        if self.keys.is_empty() || unit.mark.is_some() {
            return None;
        }
        let found = self.index.recognise(unit.octets)?;
        let packet = self.keys.get(&(found.flow, found.key)).copied();
        packet.filter(|_| !found.answer)
    }

    /// A packet, or a cell of it, is lost.
    pub(crate) fn lost(&mut self, place: Place, unit: DataUnit<'_>, at: Instant) {
        let packet = self.packet_in(unit);
        if let Some(trail) = packet.and_then(|packet| self.trails.get_mut(&packet)) {
            let before = trail.lost.map(|(place, at)| place.rank(at));
            if before.is_none_or(|before| place.rank(at) < before) {
                trail.lost = Some((place, at));
            }
        }
    }

    /// Ends packets that are lost and of which nothing is in the network any more: `see_all` shows all that is there.
    /// A loss may be reported a little later than it happens, so two censuses must agree.
    pub(crate) fn settle(&mut self, see_all: impl FnOnce(&mut dyn FnMut(DataUnit<'_>))) {
        if self.trails.values().all(|trail| trail.lost.is_none()) {
            return;
        }
        let mut held = BTreeSet::new();
        see_all(&mut |unit| held.extend(self.packet_in(unit)));
        for (packet, trail) in &mut self.trails {
            if trail.lost.is_some() && !held.contains(packet) {
                trail.gone += 1;
            }
        }
        let gone = self.trails.iter().filter(|(_, trail)| trail.gone > 1);
        let gone: Vec<PacketId> = gone.map(|(packet, _)| *packet).collect();
        gone.into_iter().for_each(|packet| self.end(packet));
    }

    /// A step inside an end system.
    pub(crate) fn step(&mut self, node: NodeId, step: &Step, now: Instant) {
        match step {
            Step::ToCpu(unit) => {
                let packet = self.packet_in(unit.view());
                if let Some(trail) = packet.and_then(|packet| self.trails.get_mut(&packet)) {
                    trail.to_cpu.push((node, now));
                }
            }
            Step::Queued { vc, pdu } => self.queued(node, *vc, pdu, now),
            Step::TakenIn { pdu, .. } => {
                if let Some(leg) = self.leg_of(pdu) {
                    leg.taken_in.push((node, now));
                }
            }
            Step::Delivered { pdu, .. } => {
                if let Some(leg) = self.leg_of(pdu) {
                    leg.delivered.push((node, now));
                }
            }
        }
    }

    fn queued(&mut self, node: NodeId, vc: Vc, pdu: &Pdu, now: Instant) {
        let Some(packet) = self.packet_in(pdu.into()) else {
            return;
        };
        let Some(trail) = self.trails.get_mut(&packet) else {
            return;
        };
        let through = trail.to_cpu.iter().position(|(at, _)| *at == node);
        let to_cpu = through.map(|at| trail.to_cpu.remove(at).1);
        self.pdus.insert(identity(pdu), (packet, trail.legs.len()));
        self.looks
            .push(Look::User(packet, trail.legs.len(), node, vc));
        trail.legs.push(Leg {
            pdu: pdu.clone(),
            origin: node,
            user: None,
            to_cpu,
            queued: now,
            hops: Vec::new(),
            taken_in: Vec::new(),
            delivered: Vec::new(),
        });
        self.waits_at(node, now);
    }

    /// A followed cell waits at this node from now on.
    fn waits_at(&mut self, node: NodeId, now: Instant) {
        if let Some(floor) = self.floors.get_mut(node.0) {
            floor.get_or_insert(now);
        }
    }

    fn leg_of(&mut self, pdu: &Pdu) -> Option<&mut Leg> {
        let (packet, leg) = self.pdus.get(&identity(pdu))?;
        self.trails.get_mut(packet)?.legs.get_mut(*leg)
    }

    /// A cell passes an end of a link.
    pub(crate) fn cell(&mut self, cell: &PassedCell<'_>) {
        let line = cell.line.0 as usize;
        let run = cell.run;
        let own = run.pdu().map(identity);
        let own = own.filter(|own| !self.pdus.is_empty() && self.pdus.contains_key(own));
        if cell.direction == Direction::Sent {
            let floor = self.ends.get(line).map_or(NodeId(0), |ends| ends[0]);
            let floor = self.floors.get(floor.0).copied().flatten();
            if let Some(departures) = self.departures.get_mut(line) {
                departures.push(run.vc, own, cell.at, cell.finish, floor);
            }
        }
        let (Some(pdu), Some(_)) = (run.pdu(), own) else {
            return;
        };
        match cell.direction {
            Direction::Sent => self.leaves(cell, pdu),
            Direction::Received if run.ends_pdu() => {
                let node = self.ends[line][1];
                if let Some(leg) = self.leg_of(pdu) {
                    let hop = leg.hops.iter_mut().find(|hop| hop.line == cell.line);
                    if let Some(last) = hop.and_then(|hop| hop.last.as_mut()) {
                        last.arrived = Some(cell.at);
                    }
                }
                self.waits_at(node, cell.at);
            }
            Direction::Received => {}
        }
    }

    /// A cell of a followed PDU leaves a port.
    fn leaves(&mut self, cell: &PassedCell<'_>, pdu: &Pdu) {
        let line = cell.line.0 as usize;
        let own = identity(pdu);
        let Some((packet, leg)) = self.pdus.get(&own) else {
            return;
        };
        let trail = self.trails.get_mut(packet);
        let (Some(leg), Some(ends)) = (
            trail.and_then(|trail| trail.legs.get_mut(*leg)),
            self.ends.get(line),
        ) else {
            return;
        };
        let before = leg.hops.iter().find(|hop| {
            let to = self.ends.get(hop.line.0 as usize).map(|ends| ends[1]);
            to == Some(ends[0])
        });
        let arrived = before
            .and_then(|hop| hop.last.as_ref())
            .and_then(|last| last.arrived);
        let since = if ends[0] == leg.origin {
            Some(leg.queued)
        } else {
            arrived
        };
        let known = leg.hops.iter().position(|hop| hop.line == cell.line);
        let at = known.unwrap_or_else(|| {
            leg.hops.push(Hop {
                line: cell.line,
                vc: cell.run.vc,
                clp: cell.run.clp,
                last: None,
            });
            leg.hops.len() - 1
        });
        let hop = &mut leg.hops[at];
        if let (true, Some(since), Some(departures)) =
            (cell.run.ends_pdu(), since, self.departures.get(line))
        {
            hop.clp = cell.run.clp;
            hop.last = Some(LastCell {
                since,
                wait: departures.between(since, cell.at, own),
                start: cell.at,
                finish: cell.finish,
                arrived: None,
            });
        }
    }
}
