//! Cells that move as trains: how a node is brought up to date, and which cells are events.
//!
//! [`Trains`] are cells on lines at whose arrival no event happens. This module decides when a node gets them.
//!
//! **Cells that matter.** The event of a line is the arrival of the next cell that matters: the first cell of a train,
//! whose way through the node must be found; the last cell of a PDU; each cell that is no cell of a PDU; each cell of a
//! train that the node must see cell by cell ([`Node::through`]). At an end system only the last cell of a PDU matters.
//! While such a cell still waits in the port in front of the line, the event is a lower bound of its arrival
//! ([`OutputPort::next_matter`](aerostat_node::atm::OutputPort::next_matter)); then the line looks again.
//!
//! **Settling.** A port is *settled* to a moment when it has taken all cells that arrive before it and has decided all
//! departures up to it. For this, the ports in front of the lines that feed it must be settled to an earlier moment:
//! the delay of the line and a cell time before. So the recursion goes back in time and ends, in a ring of links too.
//! Only lines with trains to this very port of which further cells come count, so cells in the other direction do not
//! matter, and an idle line costs nothing. A port that rests, as most do, costs a look. A port that lags far behind is
//! settled in steps, which bounds the depth of the recursion.
//!
//! **Order.** Everything comes out as if each cell were an event: cells of one instant arrive by the number of their
//! line, departures of an instant come before cells that are queued at that instant, and before a node's control plane
//! acts, its ports and lines are settled to this very event. As the control plane may change the table of connections,
//! each train at the node looks for its way again afterwards.

use super::driver::Driver;
use super::line::LineId;
use super::node::Node;
use super::{LinkEnd, NodeId, Plant, Source};
use aerostat_node::atm::{Alone, AloneCells, Bound, CellRun, Key, Pdu, Trains};
use aerostat_proto::{Duration, Instant};
use std::collections::BTreeSet;

/// A port that lags more cell times than this is settled in steps of as many cell times.
const STEP: u64 = 64;

/// Limit of counts of passed cells that wait to be given to their nodes.
const MOST_PASSED: usize = 4096;

impl<N: Node, M: super::Medium> Plant<N, M> {
    /// Makes cells that only pass through switches move as trains, or every cell alone. Call this before the first node
    /// is switched on.
    pub fn by_train(&mut self, on: bool) {
        self.by_train = on;
        for line in self.lines() {
            self.choose_trains(line);
        }
    }

    /// Decides whether a line has trains. If it has no more of them, the trains of its port come to an end.
    pub(super) fn choose_trains(&mut self, line: LineId) {
        let single = self.is_single(line);
        self.trains.set_single(line.0, single);
    }

    /// True if the cells of a line have to leave it one by one.
    pub(super) fn is_single(&self, line: LineId) -> bool {
        !self.lines[line.0 as usize].up || self.why_single(line).is_some()
    }

    /// Why the cells of a line that is up have to leave it one by one; `None` if they need not.
    pub(super) fn why_single(&self, line: LineId) -> Option<Alone> {
        // The cells of a frame arrive together, and not one by one.
        let framed = self.links[line.link().0].config.framing.is_some();
        match &self.lines[line.0 as usize].medium {
            _ if framed => Some(Alone::Framed),
            _ if !self.by_train => Some(Alone::Recorded),
            medium => (!medium.is_plain()).then_some(Alone::Errors),
        }
    }

    /// Cells that were events of their own, by reason.
    #[must_use]
    pub const fn alone(&self) -> AloneCells {
        self.trains.alone
    }

    /// Ends the trains of the port in front of a line, and decides whether further ones begin.
    pub(super) fn end_trains(&mut self, line: LineId) {
        if let Some((port, trains)) = self.port_and_trains(line) {
            port.end_trains(trains);
        }
        self.choose_trains(line);
    }
}

impl<N: Node, M> Plant<N, M> {
    /// The event of a source begins.
    pub(super) fn begin(&mut self, source: Source) {
        let number = match source {
            Source::Line(line) => self.line(line).source,
            Source::Deadline(node) => self.slots[node.0].source,
        };
        self.key = (self.now.as_nanos(), number);
    }

    /// The trains on a line with cells: a run that begins with the first of these cells, and their number.
    pub(super) fn waiting_on(&self, line: LineId) -> impl Iterator<Item = (&CellRun, u64)> {
        let on = self.trains.on(line.0).iter();
        let trains = on.filter_map(|id| self.trains.get(*id)?.waiting());
        trains.filter(|(_, cells)| *cells > 0)
    }

    /// When the next cell of trains on a line matters, or can matter. With `later` only cells on the line count; cells
    /// in the queues of the port in front of it are looked at later.
    pub(super) fn next_matter(&mut self, line: LineId, later: bool) -> Option<Instant> {
        if let Some((at, _)) = self.trains.due(line.0) {
            return Some(Instant::from_nanos(at));
        }
        if later {
            return None;
        }
        let delay = self.line(line).delay;
        let (port, trains) = self.port_and_trains(line)?;
        Some(port.next_matter(trains, line.0)? + delay)
    }

    /// The time between the start of a cell at the port in front of a line and its arrival.
    fn crossing(&mut self, line: LineId) -> u64 {
        let (from, delay) = (self.line(line).from, self.line(line).delay);
        let cell = self.output(from).map_or(Duration::ZERO, |o| o.cell_time());
        u64::try_from((delay + cell).as_nanos()).map_or(u64::MAX, |nanos| nanos.max(1))
    }

    /// Gives nodes the counts of the cells that have passed them.
    fn tell_passed(&mut self) {
        for passed in self.trains.take_passed() {
            let line = &mut self.lines[passed.line as usize];
            line.counters.delivered += passed.cells;
            let to = line.to;
            if let Some(node) = self.node_mut(to.node) {
                node.pass(to.port, passed.connection, passed.cells);
            }
        }
    }

    /// Gives a node the counts of all cells that have passed it.
    fn count_passed(&mut self, node: NodeId) {
        for port in &self.slots[node.0].fed {
            if let Some(line) = self.line_from(LinkEnd { node, port: *port }) {
                self.trains.count_passed(line.0);
            }
        }
        self.tell_passed();
    }

    /// Forgets the ports of a node that get no more cells of trains.
    fn forget_unfed(&mut self, node: NodeId) {
        let (lines, trains) = (&self.slots[node.0].lines, &self.trains);
        let is_fed = |port: &u16| {
            let line = lines.get(usize::from(*port)).copied().flatten();
            line.is_some_and(|line| trains.is_fed(line.0))
        };
        let fed = &self.slots[node.0].fed;
        if fed.iter().all(is_fed) {
            return;
        }
        let fed: BTreeSet<u16> = fed.iter().copied().filter(is_fed).collect();
        self.slots[node.0].fed = fed;
    }

    /// Makes the destinations of the trains to the ports of a node unknown: these trains, with their lines.
    fn unbind(&mut self, node: NodeId) -> Vec<(u32, u32)> {
        let mut all = Vec::new();
        for port in std::mem::take(&mut self.slots[node.0].fed) {
            if let Some(line) = self.line_from(LinkEnd { node, port }) {
                all.extend(self.trains.unbind_all(line.0));
            }
        }
        self.tell_passed();
        all
    }

    /// Removes the trains of a line that went down: the PDUs, and the numbers of cells that were on the line.
    pub(super) fn clear_trains(&mut self, line: LineId) -> Vec<(Pdu, u64)> {
        let mut gone = Vec::new();
        let mut lost = 0;
        self.trains.clear(line.0, &mut |run, cells| {
            lost += cells;
            gone.extend(run.pdu().map(|pdu| (pdu.clone(), cells)));
        });
        self.lines[line.0 as usize].counters.down += lost;
        let from = self.line(line).from;
        if let Some(output) = self.output(from) {
            output.forget_trains();
        }
        gone
    }

    /// The port in front of a line, and all trains.
    fn port_and_trains(
        &mut self,
        line: LineId,
    ) -> Option<(&mut aerostat_node::atm::OutputPort, &mut Trains)> {
        let from = self.line(line).from;
        let node = self.slots[from.node.0].node.as_mut()?;
        Some((node.output_port(from.port)?, &mut self.trains))
    }
}

/// Drivers that settle ports.
pub(super) trait Settle: Driver {
    /// Settles the port in front of a line.
    fn settle(&mut self, line: LineId, key: Key) {
        let plant = self.plant_mut();
        if !plant.by_train {
            return;
        }
        let mut reached = plant.lines[line.0 as usize].settled;
        if plant.trains.feeders(line.0) == 0 {
            if let Some((port, trains)) = plant.port_and_trains(line)
                && port.rests(trains, line.0, key)
            {
                plant.lines[line.0 as usize].settled = key.max(reached);
                return;
            }
        } else {
            let step = STEP.saturating_mul(plant.crossing(line));
            while key.0.saturating_sub(reached.0) > step {
                reached = (reached.0 + step, u32::MAX);
                self.settle_step(line, reached);
            }
        }
        self.settle_step(line, key);
    }

    /// Settles the port in front of a line that is not far behind.
    fn settle_step(&mut self, line: LineId, key: Key) {
        for place in (0..self.plant().trains.feeders(line.0)).rev() {
            let Some(feeder) = self.plant().trains.feeder(line.0, place).map(LineId) else {
                continue;
            };
            let crossing = self.plant_mut().crossing(feeder);
            if let Some(start) = key.0.checked_sub(crossing)
                && self.plant().lines[feeder.0 as usize].settled < (start, u32::MAX)
            {
                self.settle(feeder, (start, u32::MAX));
            }
        }
        let plant = self.plant_mut();
        let settled = &mut plant.lines[line.0 as usize].settled;
        *settled = key.max(*settled);
        if let Some((port, trains)) = plant.port_and_trains(line) {
            let left = port.run(trains, line.0, key);
            plant.lines[line.0 as usize].counters.sent += left;
        }
        if plant.trains.is_single(line.0) {
            let from = plant.line(line).from;
            let now = Instant::from_nanos(key.0);
            while let Some(departure) =
                (self.plant_mut().output(from)).and_then(|output| output.pop(now, 1))
            {
                self.transmit(line, departure);
            }
        }
        if self.plant().trains.passed() > MOST_PASSED {
            self.plant_mut().tell_passed();
        }
    }

    /// Settles the ports of a node that get cells of trains.
    fn settle_fed(&mut self, node: NodeId) {
        if self.plant().slots[node.0].fed.is_empty() {
            return;
        }
        let mut from = 0;
        while let Some(&port) = self.plant().slots[node.0].fed.range(from..).next() {
            if let Some(line) = self.plant().line_from(LinkEnd { node, port }) {
                self.advance(line);
            }
            let Some(next) = port.checked_add(1) else {
                break;
            };
            from = next;
        }
    }

    /// Settles a node whose control plane is about to act.
    fn settle_node(&mut self, node: NodeId) {
        if !self.plant().by_train {
            return;
        }
        self.settle_fed(node);
        self.plant_mut().count_passed(node);
        if !self.plant().is_switch(node) {
            self.settle_end(node);
        }
    }

    /// Gives an end system the cells of trains that have arrived.
    fn settle_end(&mut self, node: NodeId) {
        let key = self.plant().key;
        for port in 0..self.plant().ports(node) {
            let Some(line) = self.plant().line_from(LinkEnd { node, port }) else {
                continue;
            };
            let back = LineId(line.0 ^ 1);
            if self.plant().trains.is_single(back.0) && self.plant().trains.on(back.0).is_empty() {
                continue;
            }
            let crossing = self.plant_mut().crossing(back);
            if let Some(start) = key.0.checked_sub(crossing) {
                self.settle(back, (start, u32::MAX));
            }
            self.give(back, key);
        }
    }

    /// Gives an end system the cells that arrive before `key`, none of which ends a PDU.
    fn give(&mut self, line: LineId, key: Key) {
        for id in self.plant_mut().trains.arrived(line.0, key) {
            if let Some(run) = self.plant_mut().trains.take(id, key, u16::MAX) {
                debug_assert!(!run.ends_pdu(), "an event is missing");
                self.arrive(line, run);
            }
        }
    }

    /// Gives all end systems their cells, and all nodes their counts.
    fn settle_ends(&mut self) {
        if !self.plant().by_train {
            return;
        }
        for node in self.plant().nodes() {
            if !self.plant().is_switch(node) {
                self.settle_end(node);
            }
            self.plant_mut().count_passed(node);
        }
        self.plant()
            .lines()
            .for_each(|line| self.plant_mut().reschedule(line));
    }

    /// The trains at a node look for their way again, because its control plane has acted, unless all ways are as
    /// before.
    fn unbind_trains(&mut self, node: NodeId) {
        let plant = self.plant_mut();
        let ways = plant.node(node).and_then(Node::ways);
        if ways.is_some() && plant.slots[node.0].ways == ways {
            return plant.forget_unfed(node);
        }
        plant.slots[node.0].ways = ways;
        for (line, train) in self.plant_mut().unbind(node) {
            self.bind(LineId(line), train);
        }
    }

    /// Cells of trains that matter have arrived on a line, whose next event is not known then.
    fn trains_of(&mut self, line: LineId) {
        let now = self.plant().now.as_nanos();
        while let Some((at, id)) = self.plant().trains.due(line.0).filter(|due| due.0 <= now) {
            self.plant_mut().trains.pop_due(line.0);
            let train = self.plant().trains.get(id);
            let Some(train) = train.filter(|train| train.line == line.0) else {
                continue;
            };
            if train.bound() == Bound::Unknown && train.next().is_some_and(|next| next <= now) {
                self.bind(line, id);
            }
            self.matters(line, id, at);
        }
    }

    /// Finds the way of a train.
    fn bind(&mut self, line: LineId, id: u32) {
        let plant = self.plant();
        let to = plant.line(line).to;
        let vc = plant
            .trains
            .get(id)
            .and_then(|train| Some(train.waiting()?.0.vc));
        let way = plant.node(to.node).zip(vc);
        let way = way.map_or(Err(Alone::NoWay), |(node, vc)| node.through(to.port, vc));
        let next = way.and_then(|way| {
            let port = way.port;
            let next = plant.line_from(LinkEnd {
                node: to.node,
                port,
            });
            let next = next.filter(|next| !plant.trains.is_single(next.0));
            Ok((way, next.ok_or(Alone::NextLine)?))
        });
        let (bound, dense) = match next {
            Err(why) => (Bound::Cells(why), true),
            Ok((way, next)) => {
                let key = self.plant().key;
                self.settle(next, key);
                let plant = self.plant_mut();
                plant.slots[to.node.0].fed.insert(way.port);
                let bound = Bound::Queue {
                    line: next.0,
                    queue: way.queue,
                    connection: way.connection,
                };
                (bound, plant.trains.is_dense(next.0, way.queue))
            }
        };
        let plant = self.plant_mut();
        plant.trains.bind(id, bound);
        if dense {
            let mut changed = Vec::new();
            plant.trains.make_dense(id, &mut changed);
            for line in changed {
                plant.reschedule(LineId(line));
            }
        }
    }

    /// A cell of a train that matters has arrived at `at`.
    fn matters(&mut self, line: LineId, id: u32, at: u64) {
        let (time, source) = self.plant().key;
        let Some(train) = self.plant().trains.get(id) else {
            return;
        };
        let (bound, alone) = (train.bound(), train.why_alone(at));
        if let Some(why) = alone {
            self.plant_mut().trains.alone.add(why, 1);
        }
        match bound {
            Bound::Unknown => {}
            Bound::Queue { line: next, .. } => {
                let next = LineId(next);
                self.settle(next, (time, source + 1));
                self.plant_mut().reschedule(next);
                let from = self.plant().line(next).from;
                self.plant_mut().slots[from.node.0]
                    .waiting
                    .insert(from.port, ());
                if self.plant().tells_drops {
                    self.tell_drops(next);
                }
            }
            Bound::Cells(_) => {
                if let Some(run) = self.plant_mut().trains.take(id, (at, u32::MAX), 1) {
                    self.arrive(line, run);
                }
            }
            Bound::End => {
                self.give(line, (at, 0));
                if let Some(run) = self.plant_mut().trains.take(id, (at, u32::MAX), 1) {
                    self.arrive(line, run);
                }
            }
        }
    }
}

impl<D: Driver> Settle for D {}
