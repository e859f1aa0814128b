//! The plant: the nodes and links of a running lab, for both drivers.
//!
//! A plant is what stands in the machine room: nodes, links, power switches, cables that can be cut, and the list of
//! what is due next. `sim` runs it in virtual time and `live` in real time.
//!
//! | part | modules |
//! |---|---|
//! | nodes, links and their state | this module, [`schedule`] |
//! | a node in the view of its links | [`node`]; the nodes of a lab: [`lab_node`] |
//! | the events, power, and cut links | [`driver`] |
//! | links that change or train; blocks that are lost | `changes`, `blocks` |
//! | cells that need no event of their own | [`trains`] |
//! | losses, and packets that wait somewhere | `books` |
//! | faults, programs and restarts of a lab | [`operation`], [`faults`] |
//! | a running lab becomes another one | `converge` |
//! | the results of a lab | [`ledger`] |
//!
//! # Order
//!
//! A plant has a fixed set of *sources* of events: the deadline of each node, and each direction of a link (a
//! [`Line`]). Each source waits for at most one event. Events happen by time, and events of one instant by source, in
//! the order in which nodes and links were added. The event of a line first takes the cells that have left the port in
//! front of it, and then delivers the first cells that have arrived. Faults happen after all events of their instant.
//! Traffic that waits for its hosts starts after the event by which the last of them has become ready. These rules hold
//! under both drivers, so a lab tells the same story under both.
//!
//! # What the drivers do not share
//!
//! - *The clock.* Virtual time is that of the next event. Real time comes from outside, and the network may lag behind.
//! - *The size of a run of cells* ([`Driver::IN_TURNS`]). In virtual time each cell leaves a port and arrives alone,
//!   when its last bit has arrived; cells that only pass through have these times without events ([`trains`]). In real
//!   time the cells of one turn leave together, and arrive when the first of them would: cells of one PDU, or whole
//!   PDUs of a train, for at most 50 µs, and for at most 3 µs while another queue waits. So on lines up to the rate of
//!   an OC-3 cells of different connections leave in the order of virtual time while they compete. A cell that arrives
//!   during a turn waits for its end.
//! - *Errors of a line* ([`Medium`]). In virtual time bits of single cells are inverted, and header error control
//!   sees them. In real time a damaged cell costs the cells of its turn, and so its whole PDU, if the PDU was made in
//!   the lab.
//! - *Observation.* A run in virtual time hands packets to its observer. A running lab has clients that come and go.
//!
//! Everything that crosses a line passes [`Driver::event_of_line`] under both drivers. Only cells from outside the lab
//! pass [`Driver::enter`] instead, because their line ends at the peer's end of the link.

mod blocks;
mod books;
mod changes;
mod converge;
pub mod driver;
pub mod faults;
pub mod lab_node;
pub mod ledger;
mod line;
pub mod node;
pub mod operation;
pub mod schedule;
pub mod trains;

pub use crate::model::{LinkEnd, LinkId, NodeId};
pub use blocks::Blocks;
pub use changes::{Change, LineNow};
pub use converge::{Converge, Refused};
pub use driver::Driver;
pub use lab_node::{LabEvent, LabNode};
pub use line::{Crossed, Line, LineConfig, LineId, LinkConfig, Medium};
pub use node::{Node, NodeOutput};
pub use operation::Operation;

use crate::circuits::{LinkCounters, Network};
use crate::model::{self, NodeKind};
use aerostat_node::atm::{CellRun, Key, OutputPort, Pdu, Trains};
use aerostat_node::host::Station;
use aerostat_node::ip::books::Place;
use aerostat_node::switch::Switch;
use aerostat_proto::{Duration, Instant};
use aerostat_wire::Vc;
use litemap::LiteMap;
use schedule::Schedule;
use std::collections::{BTreeMap, BTreeSet};

/// Next event and its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The deadline of a node is due.
    Deadline(NodeId),
    /// Cells leave or arrive on a line.
    Line(LineId),
}

/// The place of a node.
struct Slot<N> {
    name: String,
    /// `None` while the node is off.
    node: Option<N>,
    /// True for a switch: links between switches have NNI cells.
    switch: bool,
    /// Number of restarts.
    life: u32,
    /// When it was last switched on.
    since: Instant,
    /// Time at which it was switched off, while it is off.
    off: Option<Instant>,
    /// Source of its deadlines.
    source: u32,
    /// By port: the line into which the port sends.
    lines: Vec<Option<LineId>>,
    /// Ports with waiting cells.
    waiting: LiteMap<u16, ()>,
    /// Ports that get cells of trains.
    fed: BTreeSet<u16>,
    /// True if it is one of the nodes of [`Plant::changed`].
    changed: bool,
    /// State of the ways in the node ([`Node::ways`]) that its trains have; `None` if they may have others.
    ways: Option<u64>,
}

/// A link.
#[derive(Debug)]
struct Link {
    name: String,
    config: LinkConfig,
    cut: bool,
    /// True once it was removed from the lab.
    gone: bool,
    /// True while its ends train.
    training: bool,
    /// True once a rate has changed: a node that starts has to learn it.
    other_rate: bool,
}

/// Nodes and links with their state. `M` is the [`Medium`] of each line.
pub struct Plant<N: Node, M> {
    now: Instant,
    schedule: Schedule,
    /// The meaning of each source of the schedule.
    sources: Vec<Source>,
    slots: Vec<Slot<N>>,
    links: Vec<Link>,
    /// Two per link: from end 0 to end 1, and back.
    lines: Vec<Line<M>>,
    management: N::Management,
    /// True if each departure is an event of its own; see [`Self::every_departure`].
    every_departure: bool,
    /// Ports that a node has touched, while it forwards cells.
    touched: Vec<u16>,
    /// True to report losses.
    books: bool,
    /// True if ports tell the PDUs that lose cells there, for [`Self::books`] or for taps.
    tells_drops: bool,
    /// True if nodes report the steps of data units.
    steps: bool,
    /// PDUs that lost cells on lines and are not reported yet: their senders report them as sent first.
    harmed: Vec<(Place, Pdu, Instant)>,
    /// True if cells that only pass through switches move as trains; see [`trains`].
    by_train: bool,
    trains: Trains,
    /// The event that happens now: what arrives before it has arrived.
    key: Key,
    /// Nodes and links whose state may have changed; `None` if no driver asks.
    changed: Option<Changed>,
}

/// Nodes and links whose state may have changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changed {
    /// Nodes that had an input or a deadline, or were switched on or off.
    pub nodes: BTreeSet<NodeId>,
    /// Links that were cut or mended.
    pub links: BTreeSet<LinkId>,
}

impl Changed {
    /// True if nothing has changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty() && self.links.is_empty()
    }
}

impl<N: Node, M> Plant<N, M> {
    /// An empty plant at time `now`.
    #[must_use]
    pub fn new(now: Instant, management: N::Management) -> Self {
        Self {
            now,
            schedule: Schedule::default(),
            sources: Vec::new(),
            slots: Vec::new(),
            links: Vec::new(),
            lines: Vec::new(),
            management,
            every_departure: false,
            touched: Vec::new(),
            books: false,
            tells_drops: false,
            steps: false,
            harmed: Vec::new(),
            by_train: false,
            trains: Trains::default(),
            key: (now.as_nanos(), u32::MAX),
            changed: None,
        }
    }

    /// Adds a node, which is off. A node other than a switch is an end system, and has one port.
    pub fn add(&mut self, name: &str, switch: bool, ports: u16) -> NodeId {
        let id = NodeId(self.slots.len());
        let source = self.add_source(Source::Deadline(id));
        self.slots.push(Slot {
            name: name.into(),
            node: None,
            switch,
            life: 0,
            since: self.now,
            off: None,
            source,
            lines: vec![None; usize::from(ports)],
            waiting: LiteMap::new(),
            fed: BTreeSet::new(),
            changed: false,
            ways: None,
        });
        id
    }

    fn add_source(&mut self, source: Source) -> u32 {
        self.sources.push(source);
        self.schedule.add_source()
    }

    /// Adds a link, with the medium of each direction. The rate is that of the output ports at its ends.
    ///
    /// # Panics
    /// If a port does not exist or has a link already: the plant was built incorrectly.
    pub fn connect(
        &mut self,
        name: &str,
        ends: [LinkEnd; 2],
        config: LinkConfig,
        media: [M; 2],
    ) -> LinkId {
        let link = LinkId(self.links.len());
        let ways = [(ends[0], ends[1]), (ends[1], ends[0])];
        for ((from, to), medium) in ways.into_iter().zip(media) {
            let id = LineId(self.lines.len() as u32);
            let port = &mut self.slots[from.node.0].lines[usize::from(from.port)];
            assert_eq!(*port, None, "{name}: the port has a link");
            *port = Some(id);
            let source = self.add_source(Source::Line(id));
            let [first, ends] = [from, to].map(|end| !self.slots[end.node.0].switch);
            let delay = config.lines[id.side()].delay;
            (self.trains).add_line(source, delay, first, ends);
            let line = Line::new([from, to], delay, source, medium);
            self.lines.push(line);
        }
        self.links.push(Link {
            name: name.into(),
            config,
            cut: false,
            gone: false,
            training: false,
            other_rate: false,
        });
        link
    }

    /// Gives a node at least this number of ports.
    pub fn add_ports(&mut self, node: NodeId, ports: u16) {
        let lines = &mut self.slots[node.0].lines;
        lines.resize(lines.len().max(usize::from(ports)), None);
    }

    /// Takes a link out of the lab: it goes down, whatever its ends do.
    fn remove(&mut self, link: LinkId) {
        let own = &mut self.links[link.0];
        (own.gone, own.cut, own.training) = (true, false, false);
    }

    /// Takes the cable out of a port, if it has a cable: its link was removed.
    fn free(&mut self, end: LinkEnd) {
        let Some(line) = self.line_from(end) else {
            return;
        };
        self.slots[end.node.0].lines[usize::from(end.port)] = None;
        self.slots[end.node.0].ways = None;
        let (side, waiting) = (line.side(), &mut self.slots[end.node.0].waiting);
        waiting.remove(&end.port);
        // No port has this number, so the line takes no cells.
        let nowhere = u16::MAX;
        for own in LineId::both(line.link()) {
            let own_side = own.side();
            let on = &mut self.lines[own.0 as usize];
            let end = if own_side == side {
                &mut on.from
            } else {
                &mut on.to
            };
            end.port = nowhere;
        }
        self.reschedule(line);
    }

    /// Puts the cables of a link that was removed into these ports again.
    fn put_back(&mut self, link: LinkId, ends: [LinkEnd; 2]) {
        self.links[link.0].gone = false;
        for (line, side) in LineId::both(link).into_iter().zip([0, 1]) {
            let (from, to) = (ends[side], ends[1 - side]);
            if self.line_from(from) != Some(line) {
                self.free(from);
                self.slots[from.node.0].lines[usize::from(from.port)] = Some(line);
            }
            let on = &mut self.lines[line.0 as usize];
            (on.from, on.to) = (from, to);
        }
    }

    /// Adds a node of a lab, which is off.
    pub fn add_model(&mut self, node: &model::Node) -> NodeId {
        match &node.kind {
            NodeKind::Switch(switch) => self.add(&node.name, true, switch.ports.len() as u16),
            _ => self.add(&node.name, false, 1),
        }
    }

    /// The time of the network.
    #[must_use]
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// Moves the time on. It never goes back.
    pub fn advance_to(&mut self, now: Instant) -> Instant {
        self.now = self.now.max(now);
        self.now
    }

    /// The time of the network is over: everything of this instant has happened.
    pub const fn end_instant(&mut self) {
        self.key = (self.now.as_nanos(), u32::MAX);
    }

    /// The next event, and its time. [`Driver::happen`] makes it happen.
    #[must_use]
    pub fn next_event(&self) -> Option<(Instant, Source)> {
        let (at, source) = self.schedule.next()?;
        Some((at, self.sources[source as usize]))
    }

    /// Makes each departure of cells an event of its own. Without this, a line with cells on it looks at its port when
    /// the first of them arrives: the port itself decides departures at their due times
    /// ([`OutputPort::allow_late`]), so this changes no result.
    pub const fn every_departure(&mut self, on: bool) {
        self.every_departure = on;
    }

    /// Notes which nodes and links may change from now on, or no longer does so.
    pub fn watch(&mut self, on: bool) {
        self.changed = on.then(Changed::default);
        self.slots.iter_mut().for_each(|slot| slot.changed = false);
    }
    /// True if a node or a link may have changed since the last [`Self::take_changed`].
    #[must_use]
    pub fn has_changed(&self) -> bool {
        let changed = self.changed.as_ref();
        changed.is_some_and(|changed| !changed.is_empty())
    }
    /// Nodes and links that may have changed since the last call. Only what passes a node's control plane counts: cells
    /// that a switch forwards change only counters.
    pub fn take_changed(&mut self) -> Changed {
        let changed = self.changed.as_mut().map(std::mem::take);
        let changed = changed.unwrap_or_default();
        for node in &changed.nodes {
            self.slots[node.0].changed = false;
        }
        changed
    }
    /// A node may have changed. It has many inputs between two looks, and all later ones cost a compare.
    #[inline]
    fn note_node(&mut self, node: NodeId) {
        let slot = &mut self.slots[node.0];
        if let Some(changed) = &mut self.changed
            && !std::mem::replace(&mut slot.changed, true)
        {
            changed.nodes.insert(node);
        }
    }

    /// The state of the network's management.
    #[must_use]
    pub const fn management(&self) -> &N::Management {
        &self.management
    }
    /// The state of the network's management, to be changed before the first node is switched on.
    pub const fn management_mut(&mut self) -> &mut N::Management {
        &mut self.management
    }

    /// All nodes.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> + use<N, M> {
        (0..self.slots.len()).map(NodeId)
    }
    /// A node's name.
    #[must_use]
    pub fn name(&self, node: NodeId) -> &str {
        &self.slots[node.0].name
    }
    /// A node; `None` if it is off.
    #[must_use]
    pub fn node(&self, node: NodeId) -> Option<&N> {
        self.slots.get(node.0)?.node.as_ref()
    }
    /// A node, to change it; `None` if it is off. The plant does not look at the consequences:
    /// [`Driver::with_node`] does.
    pub fn node_mut(&mut self, node: NodeId) -> Option<&mut N> {
        self.slots.get_mut(node.0)?.node.as_mut()
    }
    /// True for a switch, false for an end system.
    #[must_use]
    pub fn is_switch(&self, node: NodeId) -> bool {
        self.slots[node.0].switch
    }
    /// When a node was last switched on.
    #[must_use]
    pub fn since(&self, node: NodeId) -> Instant {
        self.slots[node.0].since
    }
    /// Counts a restart of a node; returns the number of its restarts so far.
    fn next_life(&mut self, node: NodeId) -> u32 {
        let life = &mut self.slots[node.0].life;
        *life += 1;
        *life
    }
    /// Number of restarts of a node so far.
    fn life(&self, node: NodeId) -> u32 {
        self.slots[node.0].life
    }
    /// Number of ports of a node.
    #[must_use]
    pub fn ports(&self, node: NodeId) -> u16 {
        self.slots[node.0].lines.len() as u16
    }

    /// All lines.
    pub fn lines(&self) -> impl Iterator<Item = LineId> + use<N, M> {
        (0..self.lines.len() as u32).map(LineId)
    }
    /// A line.
    #[must_use]
    pub fn line(&self, line: LineId) -> &Line<M> {
        &self.lines[line.0 as usize]
    }
    /// The medium of a line.
    pub fn medium_mut(&mut self, line: LineId) -> &mut M {
        &mut self.lines[line.0 as usize].medium
    }
    /// The line into which a port sends.
    #[must_use]
    pub fn line_from(&self, end: LinkEnd) -> Option<LineId> {
        let lines = &self.slots[end.node.0].lines;
        *lines.get(usize::from(end.port))?
    }
    /// A link's name.
    #[must_use]
    pub fn link_name(&self, link: LinkId) -> &str {
        &self.links[link.0].name
    }
    /// The two ends of a link.
    #[must_use]
    pub fn ends(&self, link: LinkId) -> [LinkEnd; 2] {
        let forth = self.line(LineId::of(link, 0));
        [forth.from, forth.to]
    }
    /// True if a link is cut.
    #[must_use]
    pub fn is_cut(&self, link: LinkId) -> bool {
        self.links[link.0].cut
    }

    /// The transmitter of a port; `None` if its node is off or has no such port.
    pub fn output(&mut self, end: LinkEnd) -> Option<&mut OutputPort> {
        self.node_mut(end.node)?.output_port(end.port)
    }

    /// Gives the ports of a node the frames of their links.
    fn frame_at(&mut self, node: NodeId) {
        for port in 0..self.ports(node) {
            let end = LinkEnd { node, port };
            let framing = self.line_from(end);
            let framing = framing.and_then(|line| self.links[line.link().0].config.framing);
            if let Some(output) = self.output(end) {
                output.set_framing(framing);
            }
        }
    }

    /// True if a link is neither cut nor trains, and both its ends are on.
    fn is_whole(&self, link: LinkId) -> bool {
        let on = |end: &LinkEnd| self.node(end.node).is_some_and(Node::is_connected);
        let carries = !self.is_cut(link) && !self.is_training(link) && !self.links[link.0].gone;
        carries && self.ends(link).iter().all(on)
    }

    /// True if the far end of a line is an outlet: see [`Node::is_outlet`].
    fn leads_out(&self, line: LineId) -> bool {
        self.node(self.line(line).to.node)
            .is_some_and(Node::is_outlet)
    }

    /// The next cells that have arrived on a line by now.
    fn arrived(&mut self, line: LineId) -> Option<CellRun> {
        let now = self.now;
        let on_the_way = &mut self.lines[line.0 as usize].on_the_way;
        Some(on_the_way.pop_front_if(|front| front.0 <= now)?.1)
    }

    /// Updates the event of a line in the schedule.
    fn reschedule(&mut self, line: LineId) {
        let Line {
            from,
            source,
            on_the_way,
            put_off,
            ..
        } = &self.lines[line.0 as usize];
        if *put_off {
            return;
        }
        let (from, source) = (*from, *source);
        let mut next = on_the_way.front().map(|front| front.0);
        if !self.trains.is_single(line.0) {
            let matters = self.next_matter(line, next.is_some());
            let next = [next, matters].into_iter().flatten().min();
            self.schedule.set(source, next);
            return;
        }
        // Trains that were on the line when it began to take cells one by one.
        if self.by_train
            && let Some((due, _)) = self.trains.due(line.0)
        {
            let due = Instant::from_nanos(due);
            next = Some(next.map_or(due, |next| next.min(due)));
        }
        if self.every_departure || next.is_none() {
            let departure = self.output(from).and_then(|output| output.next_departure());
            next = [next, departure].into_iter().flatten().min();
        }
        self.schedule.set(source, next);
    }

    /// Updates the deadline of a node in the schedule.
    fn set_deadline(&mut self, node: NodeId) {
        self.due(node, self.node(node).and_then(N::poll_timeout));
    }

    /// The deadline of a node is this.
    fn due(&mut self, node: NodeId, deadline: Option<Instant>) {
        let slot = &self.slots[node.0];
        let (name, now) = (&slot.name, self.now);
        let deadline = deadline.map(|at| {
            debug_assert!(at > now, "{name}: deadline {at} is not after {now}");
            // A node that breaks the rule may cost time, but time must not stand still.
            at.max(now + Duration::from_nanos(1))
        });
        self.schedule.set(slot.source, deadline);
    }

    /// Cells on a link, by their VC there: from end 0 to end 1, and back.
    #[must_use]
    pub fn on_the_way(&self, link: LinkId) -> [BTreeMap<Vc, u64>; 2] {
        LineId::both(link).map(|line| {
            let mut cells = BTreeMap::new();
            for (_, run) in &self.line(line).on_the_way {
                *cells.entry(run.vc).or_default() += u64::from(run.count);
            }
            for (run, count) in self.waiting_on(line) {
                *cells.entry(run.vc).or_default() += count;
            }
            cells
        })
    }

    /// Counters of a link: from end 0 to end 1, and back.
    #[must_use]
    pub fn counters(&self, link: LinkId) -> [LinkCounters; 2] {
        LineId::both(link).map(|line| self.line(line).counters)
    }
}

impl<M> Network for Plant<LabNode, M> {
    fn time(&self) -> Instant {
        self.now
    }
    fn station(&self, node: NodeId) -> Option<&Station> {
        self.node(node)?.as_station()
    }
    fn switch(&self, node: NodeId) -> Option<&Switch> {
        self.node(node)?.as_switch()
    }
    fn cells_on(&self, link: LinkId) -> [BTreeMap<Vc, u64>; 2] {
        self.on_the_way(link)
    }
    fn on_since(&self, node: NodeId) -> Instant {
        self.since(node)
    }
    fn off_since(&self, node: NodeId) -> Option<Instant> {
        self.slots.get(node.0)?.off
    }
    fn counters_of(&self, link: LinkId) -> [LinkCounters; 2] {
        self.counters(link)
    }
    fn link_now(&self, link: LinkId) -> [LineNow; 2] {
        self.link_now(link)
    }
}
