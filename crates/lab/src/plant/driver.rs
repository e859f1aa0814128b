//! Course of events in a plant: events, inputs, power, and cut links.
//!
//! **Path of a cell.** A cell waits at an output port of a node. It leaves when the transmitter is free, crosses the
//! line, and is given to the far node. Nodes decide what to do with cells; the plant owns lines, time and events.
//!
//! **Events.** Nodes are called only when something is due. Departures of an instant come before cells that are queued
//! at that instant: before a node's control plane acts, its ports are brought up to date. In virtual time a cell that
//! only passes through switches has no event of its own ([`trains`](super::trains)).
//!
//! **Lines out of the network.** Cells that leave by a line to an outlet ([`Node::is_outlet`]) change nothing in the
//! network, and leave the program when the driver's step is over. So the first event of such a line in a step is put
//! off to the end of the step, and then all cells that are due leave and arrive in one event. The port decides its
//! departures in the same order, because it decides those that are due before it queues further cells
//! ([`OutputPort::allow_late_turns`](aerostat_node::atm::OutputPort::allow_late_turns)).
//!
//! **Power.** A node that starts assumes that its links are up. It is told at once of those that are down, and of every
//! later change. Cells on a line that goes down are lost.

use super::line::{Crossed, LineId, Medium};
use super::node::{Node, NodeOutput};
use super::trains::Settle as _;
use super::{Plant, Source};
use crate::model::{LinkEnd, LinkId, NodeId};
use aerostat_node::atm::{CellRun, DataUnit, Departure, DroppedPdu, InFrame};
use aerostat_node::ip::books::{Cause, Place};
use aerostat_proto::{Instant, Trace};

/// A plant with what its driver does by itself: what becomes of the outputs of nodes, and who sees cells.
///
/// A driver implements the first methods. The others are the same under every driver.
pub trait Driver: Sized {
    /// The nodes.
    type Node: Node;
    /// Effects of lines on cells.
    type Medium: Medium;
    /// True if the cells of one turn of a queue leave a port together
    /// ([`OutputPort::pop_turn`](aerostat_node::atm::OutputPort::pop_turn)), and arrive when the first of them begins;
    /// where a turn has one cell alone, when the cell ends.
    /// False if each cell leaves and arrives alone.
    const IN_TURNS: bool;

    /// True while the network lags behind the driver's clock so far that queues take long turns, which cost less.
    fn is_late(&self) -> bool {
        false
    }

    /// True if the fate of each PDU is recorded, so that PDUs must not cross a line together.
    fn watches_pdus(&self) -> bool {
        false
    }

    /// Time of the driver's clock, if it may be ahead of the plant's time, as in real time. Shapers send no bursts to
    /// catch up with it ([`OutputPort::set_clock`](aerostat_node::atm::OutputPort::set_clock)).
    fn clock(&self) -> Option<Instant> {
        None
    }

    /// The time up to which the driver handles events in its present step, if lines out of the network may wait for
    /// everything else of the step ("Lines out of the network" in the documentation of this module).
    fn horizon(&self) -> Option<Instant> {
        None
    }

    /// The plant.
    fn plant(&self) -> &Plant<Self::Node, Self::Medium>;
    /// The plant.
    fn plant_mut(&mut self) -> &mut Plant<Self::Node, Self::Medium>;
    /// A node reports a trace event.
    fn trace(&mut self, node: NodeId, trace: Trace);
    /// A switch reports that calls can leave by this port now.
    fn usable(&mut self, end: LinkEnd) {
        let _ = end;
    }
    /// A node reports an event.
    fn event(&mut self, node: NodeId, event: <Self::Node as Node>::Event);
    /// A packet, or a cell of it, was lost: an SDU, a frame or a packet, or its head.
    fn lost(&mut self, place: Place, unit: DataUnit<'_>, at: Instant);
    /// Cells have left the port in front of a line. If the line is down, they are lost.
    fn leaves(&mut self, line: LineId, departure: &Departure);
    /// Cells have arrived, and the node at the end of the line is about to get them.
    fn arrives(&mut self, line: LineId, run: &CellRun);
    /// The node at the end of the line has got the cells.
    fn arrived(&mut self) {}
    /// A PDU lost cells at the port in front of a line.
    fn dropped(&mut self, line: LineId, drop: &DroppedPdu) {
        let _ = (line, drop);
    }

    /// The event of a source happens now.
    fn happen(&mut self, source: Source) {
        self.plant_mut().begin(source);
        match source {
            Source::Line(line) => self.event_of_line(line),
            Source::Deadline(node) => self.with_node(node, |node, now| node.handle_timeout(now)),
        }
    }

    /// Calls a node with the current time, then handles its outputs. Does nothing if the node is off.
    fn with_node(&mut self, node: NodeId, act: impl FnOnce(&mut Self::Node, Instant)) {
        self.settle_node(node);
        // A port without cells has no departures to catch up with.
        let waiting = &self.plant().slots[node.0].waiting;
        for port in waiting.keys().copied().collect::<Vec<_>>() {
            if let Some(line) = self.plant().line_from(LinkEnd { node, port }) {
                self.advance(line);
            }
        }
        let now = self.plant().now;
        if let Some(machine) = self.plant_mut().node_mut(node) {
            act(machine, now);
            self.plant_mut().note_node(node);
            self.serve(node);
        }
        self.unbind_trains(node);
    }

    /// Handles the outputs of a node, then schedules its next deadline. A timer that is due at the instant of an input
    /// fires after the input.
    fn serve(&mut self, node: NodeId) {
        self.drain(node);
        let now = self.plant().now;
        let deadline = self.plant().node(node).and_then(Node::poll_timeout);
        if deadline.is_some_and(|at| at <= now)
            && let Some(machine) = self.plant_mut().node_mut(node)
        {
            machine.handle_timeout(now);
            self.drain(node);
            return self.plant_mut().set_deadline(node);
        }
        self.plant_mut().due(node, deadline);
    }

    /// Handles the outputs of a node.
    fn drain(&mut self, node: NodeId) {
        let mut dark = Vec::new();
        while let Some(output) = self.plant_mut().node_mut(node).and_then(Node::poll_output) {
            match output {
                NodeOutput::Touched(port) => {
                    let end = LinkEnd { node, port };
                    self.touched(end);
                    dark.extend(self.dark_line(end));
                }
                NodeOutput::Trace(trace) => self.trace(node, trace),
                NodeOutput::Event(event) => self.event(node, event),
                NodeOutput::Report(report) => {
                    if let Some(port) = Self::Node::usable(&report) {
                        self.usable(LinkEnd { node, port });
                    }
                    let management = &mut self.plant_mut().management;
                    if Self::Node::report(management, node, report) {
                        let nodes = self.plant().nodes();
                        let switches: Vec<NodeId> =
                            nodes.filter(|node| self.plant().is_switch(*node)).collect();
                        switches.into_iter().for_each(|node| self.manage(node));
                    }
                }
            }
        }
        dark.into_iter().for_each(|line| self.tell_drops(line));
        self.tell_harmed();
    }

    /// The line of a port, if the line is down. Such a line has no events at which its port could report drops.
    fn dark_line(&self, end: LinkEnd) -> Option<LineId> {
        let line = self.plant().line_from(end)?;
        (self.plant().tells_drops && !self.plant().line(line).up).then_some(line)
    }

    /// Tells a node the state of management.
    fn manage(&mut self, node: NodeId) {
        self.settle_node(node);
        let plant = self.plant_mut();
        if let Some(machine) = &mut plant.slots[node.0].node {
            machine.managed(node, &plant.management, plant.now);
            self.plant_mut().note_node(node);
            self.serve(node);
        }
        self.unbind_trains(node);
    }

    /// The queues of a port may have changed.
    fn touched(&mut self, end: LinkEnd) {
        match self.plant().line_from(end) {
            // A run takes a departure of its own, so that a burst of events cannot starve the driver's other work.
            Some(line) if Self::IN_TURNS => {
                self.plant_mut().slots[end.node.0]
                    .waiting
                    .insert(end.port, ());
                self.plant_mut().reschedule(line);
            }
            Some(line) => self.advance(line),
            None => {}
        }
    }

    /// Puts the cells that have left a port by now on its line, whose next event is known then.
    fn advance(&mut self, line: LineId) {
        self.let_out(line);
        self.plant_mut().reschedule(line);
    }

    /// Puts the cells that have left a port by now on its line.
    fn let_out(&mut self, line: LineId) {
        let key = self.plant().key;
        self.settle(line, key);
        let (from, now) = (self.plant().line(line).from, self.plant().now);
        let late = self.is_late() || self.plant().line(line).late;
        let clock = self.clock();
        while self.plant().trains.is_single(line.0)
            && let Some(departure) = (self.plant_mut().output(from)).and_then(|output| {
                if Self::IN_TURNS {
                    output.set_clock(clock.unwrap_or(now));
                    output.pop_turn(now, late)
                } else {
                    output.pop(now, 1)
                }
            })
        {
            self.transmit(line, departure);
        }
        let plant = self.plant_mut();
        let idle = plant.output(from).is_none_or(|output| output.is_idle());
        let waiting = &mut plant.slots[from.node.0].waiting;
        if idle {
            waiting.remove(&from.port);
        } else {
            waiting.insert(from.port, ());
        }
    }

    /// Puts all cells that have left their ports by now on their lines.
    fn advance_all(&mut self) {
        self.plant().lines().for_each(|line| self.advance(line));
        self.settle_ends();
        self.tell_harmed();
        self.tell_all_drops();
    }

    /// Cells have left the port in front of a line, or have arrived at its end.
    fn event_of_line(&mut self, line: LineId) {
        if self.puts_off(line) {
            return;
        }
        let arrived = self.plant_mut().arrived(line);
        self.let_out(line);
        // This cannot be done when the port is touched, because the node has yet to report the packet that found no
        // room.
        if self.plant().tells_drops {
            self.tell_drops(line);
        }
        if let Some(run) = arrived {
            self.arrive(line, run);
        }
        if self.plant().leads_out(line) {
            while let Some(run) = self.plant_mut().arrived(line) {
                self.arrive(line, run);
            }
        }
        self.trains_of(line);
        self.plant_mut().reschedule(line);
        self.tell_harmed();
    }

    /// Puts the event of a line out of the network off to the end of the driver's step; false for another line, and at
    /// that end.
    fn puts_off(&mut self, line: LineId) -> bool {
        let (horizon, late, clock) = (self.horizon(), self.is_late(), self.clock());
        let plant = self.plant();
        let now = plant.now;
        let waits = !plant.line(line).put_off && plant.leads_out(line);
        let until = horizon.filter(|until| waits && *until > now);
        let plant = self.plant_mut();
        let on = &mut plant.lines[line.0 as usize];
        on.put_off = until.is_some();
        let (from, source) = (on.from, on.source);
        if let Some(until) = until {
            on.late = late;
            plant.schedule.set(source, Some(until));
            if let Some(output) = plant.output(from) {
                output.allow_late_turns();
                output.set_clock(clock.unwrap_or(now));
            }
        }
        until.is_some()
    }

    /// Cells enter a line.
    fn transmit(&mut self, line: LineId, departure: Departure) {
        self.leaves(line, &departure);
        let Departure {
            run,
            start,
            finish,
            frame,
            ..
        } = departure;
        let plant = self.plant_mut();
        if !Self::IN_TURNS
            && let Some(why) = plant.why_single(line)
        {
            plant.trains.alone.add(why, run.count.into());
        }
        let on = &mut plant.lines[line.0 as usize];
        on.counters.frames += u64::from(frame == InFrame::First);
        let from = on.from;
        // The cells of a turn arrive with its first one, since more events would cost more than the time is worth. What
        // is in a frame arrives with the end of the frame, and a cell of a slow line when it ends.
        let exact = !Self::IN_TURNS
            || frame != InFrame::No
            || plant
                .output(from)
                .is_some_and(|port| port.has_turns_of_one_cell());
        let arrives_from = if exact { finish } else { start };
        let at = if Self::IN_TURNS { plant.now } else { finish };
        let mut rest = Some(run);
        while let Some(run) = self.next_part(line, &mut rest) {
            if let Some(run) = self.cross(line, run, (start, finish), at) {
                let plant = self.plant_mut();
                let on = &mut plant.lines[line.0 as usize];
                let at = plant.trains.in_order(line.0, arrives_from + on.delay);
                on.on_the_way.push_back((at, run));
            }
        }
    }

    /// The cells that cross the line next: all that are left, those of a single PDU, or a single cell.
    fn next_part(&self, line: LineId, rest: &mut Option<CellRun>) -> Option<CellRun> {
        let mut run = rest.take()?;
        if self.watches_pdus() {
            *rest = Some(run);
            return CellRun::next_single(rest);
        }
        if self.plant().line(line).medium.one_by_one(&run) {
            if run.train().is_some() {
                *rest = Some(run);
                return CellRun::next_single(rest);
            }
            if let Some(cell) = run.split_off_front(1) {
                *rest = Some(run);
                return Some(cell);
            }
        }
        Some(run)
    }

    /// The run that arrives if `run` enters a line from `start` to `finish`; a loss has the time `at`.
    fn cross(
        &mut self,
        line: LineId,
        run: CellRun,
        (start, finish): (Instant, Instant),
        at: Instant,
    ) -> Option<CellRun> {
        let plant = self.plant_mut();
        let on = &mut plant.lines[line.0 as usize];
        let cells = u64::from(run.count);
        on.counters.sent += cells;
        let (arrives, harmed, place) = if on.up {
            match on.medium.cross(run, start, finish, &mut on.counters) {
                Crossed::Intact(run) => return Some(run),
                Crossed::Damaged(arrives, run) => {
                    let lines = run.lines;
                    let arrives = CellRun { lines, ..arrives };
                    (Some(arrives), run, line.place(Cause::BitErrors))
                }
                Crossed::Lost(run, cause) => (None, run, line.place(cause)),
            }
        } else {
            on.counters.down += cells;
            (None, run, plant.place_while_down(line))
        };
        if plant.books
            && let Some(pdu) = harmed.pdu()
        {
            plant.harmed.push((place, pdu.clone(), at));
        }
        arrives
    }

    /// Cells arrive.
    fn arrive(&mut self, line: LineId, run: CellRun) {
        self.plant_mut().lines[line.0 as usize].counters.delivered += u64::from(run.count);
        self.arrives(line, &run);
        self.settle_fed(self.plant().line(line).to.node);
        let plant = self.plant_mut();
        let (to, now) = (plant.line(line).to, plant.now);
        let mut touched = std::mem::take(&mut plant.touched);
        let Some(node) = plant.node_mut(to.node) else {
            return;
        };
        let kept = node.forward(to.port, run, now, &mut touched);
        for port in touched.drain(..) {
            let node = to.node;
            self.touched(LinkEnd { node, port });
            if let Some(dark) = self.dark_line(LinkEnd { node, port }) {
                self.tell_drops(dark);
            }
        }
        self.plant_mut().touched = touched;
        match kept {
            Some(run) if self.plant().leads_out(line) => {
                let plant = self.plant_mut();
                if let Some(outlet) = plant.node_mut(to.node) {
                    outlet.cells(to.port, run, now);
                    plant.note_node(to.node);
                }
                self.drain(to.node);
            }
            Some(run) => self.with_node(to.node, |node, now| node.cells(to.port, run, now)),
            None => {}
        }
        if self.plant().books {
            self.tell_discards(to.node);
        }
        self.arrived();
    }

    /// Cells of a peer outside enter a line at its far end, and arrive at once.
    fn enter(&mut self, line: LineId, run: CellRun) {
        let now = self.plant().now;
        let mut rest = Some(run);
        while let Some(run) = self.next_part(line, &mut rest) {
            if let Some(run) = self.cross(line, run, (now, now), now) {
                self.arrive(line, run);
            }
        }
        self.tell_harmed();
    }

    /// Decides anew which lines have trains: a medium has changed, or [`Plant::by_train`]. All ports must be up to
    /// date.
    fn choose_trains(&mut self) {
        for line in self.plant().lines() {
            self.plant_mut().end_trains(line);
        }
        for node in self.plant().nodes() {
            self.plant_mut().slots[node.0].ways = None;
            self.unbind_trains(node);
        }
        self.plant()
            .lines()
            .for_each(|line| self.plant_mut().reschedule(line));
    }

    /// Switches a node on. Links come up if both ends are on.
    fn power_on(&mut self, node: NodeId, machine: Self::Node) {
        self.power_on_all([(node, machine)]);
    }

    /// Switches nodes on at one instant: first their links come up, then the nodes start, in this order.
    fn power_on_all(&mut self, machines: impl IntoIterator<Item = (NodeId, Self::Node)>) {
        let mut started = Vec::new();
        self.tell_all_drops();
        for (node, machine) in machines {
            self.power_off(node);
            let plant = self.plant_mut();
            let slot = &mut plant.slots[node.0];
            slot.node = Some(machine);
            slot.ways = None;
            (slot.since, slot.off) = (plant.now, None);
            plant.keep_books_at(node);
            plant.frame_at(node);
            plant.rates_at(node);
            started.push(node);
        }
        if !Self::IN_TURNS {
            self.allow_late();
        }
        let mut changed = self.refresh_links();
        changed.retain(|(end, _)| !started.contains(&end.node));
        let lines = self.plant().lines.iter();
        let starters = lines.filter(|line| !line.up && started.contains(&line.from.node));
        changed.extend(starters.map(|line| (line.from, false)));
        for node in started {
            self.manage(node);
            self.with_node(node, |machine, now| machine.start(now));
        }
        self.tell_links(&changed);
    }

    /// Makes all ports decide departures at their due times, so that the plant may ask them later.
    fn allow_late(&mut self) {
        for line in self.plant().lines() {
            let from = self.plant().line(line).from;
            if let Some(output) = self.plant_mut().output(from) {
                output.allow_late();
            }
        }
    }

    /// Switches a node off: it loses its state, and its links go down.
    fn power_off(&mut self, node: NodeId) {
        if self.plant().node(node).is_none() {
            return;
        }
        self.advance_all();
        self.drain(node);
        self.lose_all_of(node);
        let plant = self.plant_mut();
        let slot = &mut plant.slots[node.0];
        (slot.node, slot.off) = (None, Some(plant.now));
        plant.note_node(node);
        plant.set_deadline(node);
        let changed = self.refresh_links();
        self.tell_links(&changed);
    }

    /// Cuts or restores a link.
    fn set_cut(&mut self, link: LinkId, cut: bool) {
        self.advance_all();
        self.plant_mut().links[link.0].cut = cut;
        self.link_may_be_up(link);
    }

    /// A link was cut or mended, or has trained: it may have gone down or come up. All ports must be up to date.
    fn link_may_be_up(&mut self, link: LinkId) {
        if let Some(changed) = &mut self.plant_mut().changed {
            changed.links.insert(link);
        }
        let changed = self.refresh_links();
        self.tell_links(&changed);
    }

    /// Updates the state of every line from its cut and its ends; returns the changes. Cells on a line that goes down
    /// are lost.
    fn refresh_links(&mut self) -> Vec<(LinkEnd, bool)> {
        let mut changed = Vec::new();
        for id in self.plant().lines() {
            let plant = self.plant_mut();
            let up = plant.is_whole(id.link());
            let line = &mut plant.lines[id.0 as usize];
            if line.up == up {
                continue;
            }
            line.up = up;
            let gone = std::mem::take(&mut line.on_the_way);
            let cells = gone.iter().map(|(_, run)| u64::from(run.count));
            line.counters.down += cells.sum::<u64>();
            line.medium.interrupt();
            changed.push((line.from, up));
            let ends = [line.from.node, line.to.node];
            let (books, now) = (plant.books, plant.now);
            let place = plant.place_while_down(id);
            for (_, run) in gone.into_iter().filter(|_| books) {
                if let Some(pdu) = run.pdu() {
                    self.lost(place, pdu.into(), now);
                }
            }
            for (pdu, cells) in self.plant_mut().clear_trains(id) {
                let told = if books { cells } else { 0 };
                (0..told).for_each(|_| self.lost(place, (&pdu).into(), now));
            }
            let plant = self.plant_mut();
            for end in ends {
                plant.slots[end.0].ways = None;
            }
            plant.choose_trains(id);
            plant.reschedule(id);
        }
        changed
    }

    /// Tells nodes which of their ports have a link that went down or came up.
    fn tell_links(&mut self, ends: &[(LinkEnd, bool)]) {
        for (end, up) in ends {
            // The cable of a link that was removed may be out of its port.
            if self.plant().line_from(*end).is_none() {
                continue;
            }
            self.with_node(end.node, |node, now| node.link(end.port, *up, now));
            if let Some(dark) = self.dark_line(*end) {
                self.tell_drops(dark);
            }
        }
    }

    /// Reports losses to [`Self::lost`] from now on.
    fn keep_books(&mut self) {
        let plant = self.plant_mut();
        (plant.books, plant.tells_drops) = (true, true);
        plant.nodes().for_each(|node| plant.keep_books_at(node));
    }

    /// Makes all nodes report their pending losses.
    fn settle_books(&mut self) {
        for node in self.plant().nodes() {
            self.with_node(node, |_, _| {});
            self.tell_discards(node);
        }
        self.tell_all_drops();
    }

    /// Reports everything that is lost when a node is switched off.
    fn lose_all_of(&mut self, node: NodeId) {
        if !self.plant().books {
            return;
        }
        for port in 0..self.plant().ports(node) {
            if let Some(line) = self.plant().line_from(LinkEnd { node, port }) {
                self.tell_drops(line);
            }
        }
        let (place, now) = (super::books::off(node), self.plant().now);
        let mut heads = Vec::new();
        let plant = self.plant_mut();
        plant.held_by(node, &mut |unit| heads.push(unit.first(super::books::HEAD)));
        for head in heads {
            self.lost(place, head.view(), now);
        }
    }

    /// Reports the PDUs that have lost cells on lines.
    fn tell_harmed(&mut self) {
        if self.plant().harmed.is_empty() {
            return;
        }
        let mut harmed = std::mem::take(&mut self.plant_mut().harmed);
        for (place, pdu, at) in harmed.drain(..) {
            self.lost(place, (&pdu).into(), at);
        }
        self.plant_mut().harmed = harmed;
    }

    /// Reports PDUs that have lost cells at the port in front of a line.
    fn tell_drops(&mut self, line: LineId) {
        let from = self.plant().line(line).from;
        let output = self.plant_mut().output(from);
        let Some(output) = output.filter(|output| output.has_drops()) else {
            return;
        };
        for drop in output.take_drops() {
            let plant = self.plant();
            if plant.books {
                let place = plant.place_at_port(line, &drop);
                self.lost(place, (&drop.pdu).into(), drop.at);
            }
            self.dropped(line, &drop);
        }
    }

    /// Reports PDUs that have lost cells at ports so far: their places depend on which nodes are on and which links are
    /// cut.
    fn tell_all_drops(&mut self) {
        self.plant().lines().for_each(|line| self.tell_drops(line));
    }

    /// Reports PDUs that have lost cells in a fabric.
    fn tell_discards(&mut self, node: NodeId) {
        while let Some(machine) = self.plant_mut().node_mut(node)
            && let Some((port, drop)) = machine.poll_discard()
        {
            let place = super::books::in_fabric(LinkEnd { node, port }, &drop);
            self.lost(place, (&drop.pdu).into(), drop.at);
        }
    }
}
