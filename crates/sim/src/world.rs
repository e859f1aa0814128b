//! The world: nodes, links, and every cell between them.
//!
//! **Path of a cell.** A cell waits at an output port of a node. It leaves when the transmitter is free, is on the line
//! for exactly one cell time, travels for the delay of the link, and is given to the far node when its last bit has
//! arrived. Nodes decide what to do with cells; the world owns links, time and events.
//!
//! **Events.** A direction of a link has at most one pending event, a node one deadline: these are the sources of the
//! [`Schedule`]. Nodes are called only when something is due. A direction with cells on it waits for the first of them
//! to arrive, and then collects the cells that have left the port since. The port itself decides departures at their
//! due times ([`OutputPort::allow_late`]), so the delay makes no difference. Before a node's control plane acts, all
//! its ports are brought up to date. [`World::every_departure`] makes each departure an event of its own, for a test
//! that compares the two.
//!
//! **Order.** Departures of an instant come before cells that are queued at that instant. Otherwise events of one
//! instant happen in the order of their sources, which is the order of creation. There is no other influence, so a
//! world is a function of its construction, its seed and the calls on it.

mod books;

use crate::event::Schedule;
use crate::link::{Impairment, LinkConfig};
use crate::node::{Node, NodeOutput, Observer, Packet, PassedCell};
use aerostat_lab::circuits::LinkCounters;
use aerostat_node::atm::{CellRun, Departure, OutputPort, Pdu, RunReassembler};
use aerostat_node::ip::books::Place;
use aerostat_node::ip::random;
use aerostat_proto::{Duration, Instant};
use aerostat_wire::Vc;
use aerostat_wire::cell::HeaderForm;
use aerostat_wire::pcapng::Direction;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Number of a node, in order of creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub usize);

/// Number of a link, in order of creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub usize);

/// One end of a link: a port of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkEnd {
    /// The node.
    pub node: NodeId,
    /// Its port; 0 on a host.
    pub port: u16,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    /// Cells leave or arrive in a direction of a link.
    Way(u32),
    /// The deadline of a node is due.
    Deadline(u32),
}

struct Slot<N> {
    name: String,
    node: Option<N>,
    /// When it was last switched on.
    since: Instant,
    /// True for a switch: links between switches have NNI cells.
    switch: bool,
    /// Source of its deadlines.
    deadline: u32,
    /// Direction into which each port sends; `u32::MAX` for a port without a link.
    directions: Vec<u32>,
    /// Ports with waiting cells.
    waiting: BTreeSet<u16>,
}

/// One direction of a link.
#[derive(Debug)]
struct Travel {
    from: LinkEnd,
    to: LinkEnd,
    delay: Duration,
    on_the_way: VecDeque<(Instant, CellRun)>,
    /// Source of its events.
    source: u32,
    /// True if the sender is an end system, where transfer delays start.
    first: bool,
    impairment: Option<Impairment>,
    counters: LinkCounters,
    up: bool,
    /// Taps at the sending end and at the receiving end.
    taps: [Option<Tap>; 2],
    /// True if every cell is shown, too.
    cells: bool,
}

/// Reassembles the SDUs that pass one link end in one direction.
type Tap = BTreeMap<Vc, RunReassembler>;

#[derive(Debug)]
struct Link {
    name: String,
    config: LinkConfig,
    cut: bool,
}

/// A network in virtual time. See the documentation of this module.
pub struct World<N: Node> {
    now: Instant,
    schedule: Schedule,
    /// The meaning of each source of the schedule.
    sources: Vec<Event>,
    events: u64,
    most_events: u64,
    every_departure: bool,
    slots: Vec<Slot<N>>,
    links: Vec<Link>,
    /// Two per link: from end 0 to end 1, and back.
    travels: Vec<Travel>,
    seed: u64,
    touched: Vec<u16>,
    /// Tapped directions.
    tapped: Vec<u32>,
    plant: N::Plant,
    /// True to report losses.
    books: bool,
    /// PDUs that lost cells on links and are not reported yet: their senders report them as sent first.
    harmed: Vec<(Place, Pdu, Instant)>,
}

const NO_DIRECTION: u32 = u32::MAX;

impl<N: Node> World<N> {
    /// An empty world at time zero.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            now: Instant::ZERO,
            schedule: Schedule::default(),
            sources: Vec::new(),
            events: 0,
            most_events: u64::MAX,
            every_departure: false,
            slots: Vec::new(),
            links: Vec::new(),
            travels: Vec::new(),
            seed,
            touched: Vec::new(),
            tapped: Vec::new(),
            plant: N::Plant::default(),
            books: false,
            harmed: Vec::new(),
        }
    }

    /// The state of the network's management, to be set before the first node is switched on.
    pub fn plant_mut(&mut self) -> &mut N::Plant {
        &mut self.plant
    }

    /// Adds an end system with one port; off until [`Self::power_on`].
    pub fn add_host(&mut self, name: &str) -> NodeId {
        self.add(name, false, 1)
    }

    /// Adds a switch; off until [`Self::power_on`].
    pub fn add_switch(&mut self, name: &str, ports: u16) -> NodeId {
        self.add(name, true, ports.into())
    }

    fn add(&mut self, name: &str, switch: bool, ports: usize) -> NodeId {
        let deadline = self.add_source(Event::Deadline(self.slots.len() as u32));
        self.slots.push(Slot {
            name: name.into(),
            node: None,
            since: Instant::ZERO,
            switch,
            deadline,
            directions: vec![NO_DIRECTION; ports],
            waiting: BTreeSet::new(),
        });
        NodeId(self.slots.len() - 1)
    }

    fn add_source(&mut self, event: Event) -> u32 {
        self.sources.push(event);
        self.schedule.add_source()
    }

    /// Adds a link. Its random errors have a random stream of their own per direction. The rate is that of the nodes'
    /// output ports; the link adds delay and errors.
    ///
    /// # Panics
    /// If a port does not exist or has a link already: the world was built incorrectly.
    pub fn connect(&mut self, name: &str, ends: [LinkEnd; 2], config: LinkConfig) -> LinkId {
        let id = LinkId(self.links.len());
        let form = self.form(ends);
        for (from, to, way) in [(ends[0], ends[1], "forth"), (ends[1], ends[0], "back")] {
            let direction = &mut self.slots[from.node.0].directions[usize::from(from.port)];
            assert_eq!(*direction, NO_DIRECTION, "{name}: the port has a link");
            *direction = self.travels.len() as u32;
            let rng = random::stream(self.seed, name, way);
            let number = self.travels.len() as u32;
            let source = self.add_source(Event::Way(number));
            let first = !self.slots[from.node.0].switch;
            self.travels.push(Travel {
                from,
                to,
                delay: config.delay,
                on_the_way: VecDeque::new(),
                source,
                first,
                impairment: Impairment::new(&config, form, rng),
                counters: LinkCounters::default(),
                up: false,
                taps: [None, None],
                cells: false,
            });
        }
        self.links.push(Link {
            name: name.into(),
            config,
            cut: false,
        });
        id
    }

    /// UNI cells where an end system is, NNI cells between switches.
    fn form(&self, ends: [LinkEnd; 2]) -> HeaderForm {
        if ends.iter().all(|end| self.slots[end.node.0].switch) {
            HeaderForm::Nni
        } else {
            HeaderForm::Uni
        }
    }

    /// Makes [`Observer::cell`] get every cell on this link, at both ends.
    pub fn tap_cells(&mut self, link: LinkId) {
        for way in [2 * link.0, 2 * link.0 + 1] {
            self.travels[way].cells = true;
        }
    }

    /// Taps both ends of a link: SDUs go to [`Observer::packet`] from now on.
    pub fn tap(&mut self, link: LinkId) {
        for way in [2 * link.0, 2 * link.0 + 1] {
            for tap in &mut self.travels[way].taps {
                tap.get_or_insert_default();
            }
            self.tapped.push(way as u32);
            self.log_drops(way);
        }
    }

    fn log_drops(&mut self, way: usize) {
        let from = self.travels[way].from;
        if let Some(output) = self.output(from) {
            output.log_drops();
        }
    }

    /// Shows the cells that tapped output ports have dropped.
    fn show_drops(&mut self, observer: &mut impl Observer<N::Event>) {
        for index in 0..self.tapped.len() {
            self.tell_drops(self.tapped[index], observer);
        }
    }

    /// The time of the last event.
    #[must_use]
    pub const fn now(&self) -> Instant {
        self.now
    }
    /// Time of the next event.
    #[must_use]
    pub fn next_at(&self) -> Option<Instant> {
        self.schedule.next().map(|next| next.0)
    }
    /// Number of events so far.
    #[must_use]
    pub const fn events(&self) -> u64 {
        self.events
    }
    /// A node's name.
    #[must_use]
    pub fn name(&self, node: NodeId) -> &str {
        &self.slots[node.0].name
    }
    /// A link's name.
    #[must_use]
    pub fn link_name(&self, link: LinkId) -> &str {
        &self.links[link.0].name
    }
    /// The two ends of a link.
    #[must_use]
    pub fn ends(&self, link: LinkId) -> [LinkEnd; 2] {
        let travel = &self.travels[2 * link.0];
        [travel.from, travel.to]
    }
    /// A node; `None` if it is off.
    #[must_use]
    pub fn node(&self, node: NodeId) -> Option<&N> {
        self.slots[node.0].node.as_ref()
    }
    /// When a node was last switched on.
    #[must_use]
    pub fn on_since(&self, node: NodeId) -> Instant {
        self.slots[node.0].since
    }
    /// Cells on a link, by their VC there: from end 0 to end 1, and back.
    #[must_use]
    pub fn on_the_way(&self, link: LinkId) -> [BTreeMap<Vc, u64>; 2] {
        [0, 1].map(|way| {
            let mut cells = BTreeMap::new();
            for (_, run) in &self.travels[2 * link.0 + way].on_the_way {
                *cells.entry(run.vc).or_default() += u64::from(run.count);
            }
            cells
        })
    }
    /// Counters of a link: from end 0 to end 1, and back.
    #[must_use]
    pub fn link_counters(&self, link: LinkId) -> [LinkCounters; 2] {
        [0, 1].map(|way| self.travels[2 * link.0 + way].counters)
    }

    /// Runs all events up to and including `until`, which is the time afterwards. The time is earlier if the observer
    /// interrupts.
    pub fn run_until(&mut self, until: Instant, observer: &mut impl Observer<N::Event>) {
        while let Some((at, source)) = self.schedule.next().filter(|next| next.0 <= until) {
            if self.exhausted() {
                return;
            }
            self.now = at;
            self.events += 1;
            match self.sources[source as usize] {
                Event::Way(way) => self.travel(way, observer),
                Event::Deadline(node) => {
                    let node = NodeId(node as usize);
                    self.with_node(node, observer, |machine, now| machine.handle_timeout(now));
                }
            }
            if !self.tapped.is_empty() {
                self.show_drops(observer);
            }
            if observer.interrupts() {
                return;
            }
        }
        self.now = self.now.max(until);
        self.advance_all(observer);
    }

    /// Limits the number of events; at the limit time stands still.
    pub const fn limit_events(&mut self, most: u64) {
        self.most_events = most;
    }

    /// True if the number of events has reached the limit of [`Self::limit_events`].
    #[must_use]
    pub const fn exhausted(&self) -> bool {
        self.events >= self.most_events
    }

    /// Makes each departure an event of its own. This changes no result and only takes more time.
    pub const fn every_departure(&mut self, on: bool) {
        self.every_departure = on;
    }

    /// Calls a node with the current time, then handles its outputs. Does nothing if the node is off.
    pub fn with_node(
        &mut self,
        node: NodeId,
        observer: &mut impl Observer<N::Event>,
        act: impl FnOnce(&mut N, Instant),
    ) {
        let now = self.now;
        // A port without cells has no departures to catch up with.
        let waiting: Vec<u16> = self.slots[node.0].waiting.iter().copied().collect();
        for port in waiting {
            self.port_touched(node, port, observer);
        }
        if let Some(machine) = &mut self.slots[node.0].node {
            act(machine, now);
            self.serve(node, observer);
        }
    }

    /// Switches a node on, as `machine`. Links come up if both ends are on.
    pub fn power_on(&mut self, node: NodeId, machine: N, observer: &mut impl Observer<N::Event>) {
        self.power_on_all([(node, machine)], observer);
    }

    /// Switches nodes on at one instant: first their links come up, then the nodes start, in this order.
    ///
    /// A node that starts assumes that its links are up. It is told at once of those that are down, and of every later
    /// change.
    pub fn power_on_all(
        &mut self,
        machines: impl IntoIterator<Item = (NodeId, N)>,
        observer: &mut impl Observer<N::Event>,
    ) {
        let mut started = Vec::new();
        for (node, machine) in machines {
            self.power_off(node, observer);
            self.slots[node.0].node = Some(machine);
            self.slots[node.0].since = self.now;
            self.keep_books_at(node);
            started.push(node);
        }
        for index in 0..self.tapped.len() {
            self.log_drops(self.tapped[index] as usize);
        }
        for way in 0..self.travels.len() {
            let from = self.travels[way].from;
            if let Some(output) = self.output(from) {
                output.allow_late();
            }
        }
        let mut changed = self.refresh_links(observer);
        changed.retain(|(end, _)| !started.contains(&end.node));
        let starters = self
            .travels
            .iter()
            .filter(|t| started.contains(&t.from.node));
        changed.extend(starters.filter(|t| !t.up).map(|t| (t.from, false)));
        for node in started {
            self.manage(node, observer);
            self.with_node(node, observer, |machine, now| machine.start(now));
        }
        self.tell_links(&changed, observer);
    }

    /// Switches a node off: it loses its state, and its links go down.
    pub fn power_off(&mut self, node: NodeId, observer: &mut impl Observer<N::Event>) {
        if self.slots[node.0].node.is_none() {
            return;
        }
        self.advance_all(observer);
        self.drain(node, observer);
        self.lose_all_of(node, observer);
        let slot = &mut self.slots[node.0];
        slot.node = None;
        self.schedule.set(slot.deadline, None);
        let changed = self.refresh_links(observer);
        self.tell_links(&changed, observer);
    }

    /// Cuts or restores a link.
    pub fn set_cut(&mut self, link: LinkId, cut: bool, observer: &mut impl Observer<N::Event>) {
        self.advance_all(observer);
        self.links[link.0].cut = cut;
        let changed = self.refresh_links(observer);
        self.tell_links(&changed, observer);
    }

    /// Changes the random errors of a link.
    pub fn set_errors(
        &mut self,
        link: LinkId,
        loss: f64,
        bit_errors: f64,
        observer: &mut impl Observer<N::Event>,
    ) {
        self.advance_all(observer);
        let Link { name, config, .. } = &mut self.links[link.0];
        (config.loss, config.bit_errors) = (loss, bit_errors);
        let config = *config;
        let name = name.clone();
        let form = self.form(self.ends(link));
        for (way, text) in ["forth", "back"].into_iter().enumerate() {
            let rng = random::stream(self.seed ^ self.now.as_nanos(), &name, text);
            let travel = &mut self.travels[2 * link.0 + way];
            travel.impairment = Impairment::new(&config, form, rng);
        }
    }

    /// Updates the state of every link from its cut and its ends; returns the changes. Cells on a link that goes down
    /// are lost.
    fn refresh_links(&mut self, observer: &mut impl Observer<N::Event>) -> Vec<(LinkEnd, bool)> {
        let mut changed = Vec::new();
        for way in 0..self.travels.len() {
            let travel = &mut self.travels[way];
            let on = |end: LinkEnd| self.slots[end.node.0].node.is_some();
            let up = on(travel.from) && on(travel.to) && !self.links[way / 2].cut;
            if travel.up == up {
                continue;
            }
            travel.up = up;
            travel.counters.down += travel.on_the_way.len() as u64;
            let gone = std::mem::take(&mut travel.on_the_way);
            for tap in travel.taps.iter_mut().flatten() {
                tap.clear();
            }
            changed.push((travel.from, up));
            if self.books {
                let gone = gone.into_iter().map(|(_, run)| run);
                books::tell_gone(self.down_place(way), gone, self.now, observer);
            }
            self.reschedule(way as u32);
        }
        changed
    }

    fn tell_links(&mut self, ends: &[(LinkEnd, bool)], observer: &mut impl Observer<N::Event>) {
        for (end, up) in ends {
            self.with_node(end.node, observer, |node, now| {
                node.link(end.port, *up, now)
            });
        }
    }

    /// Handles the outputs of a node, then schedules its next deadline. A timer that is due at the instant of an input
    /// fires after the input.
    fn serve(&mut self, node: NodeId, observer: &mut impl Observer<N::Event>) {
        let now = self.now;
        self.drain(node, observer);
        if let Some(machine) = &mut self.slots[node.0].node
            && machine.poll_timeout().is_some_and(|at| at <= now)
        {
            machine.handle_timeout(now);
            self.drain(node, observer);
        }
        let slot = &self.slots[node.0];
        let deadline = slot.node.as_ref().and_then(N::poll_timeout);
        if let Some(at) = deadline {
            assert!(at > now, "{}: deadline {at} is not after {now}", slot.name);
        }
        self.schedule.set(slot.deadline, deadline);
    }

    fn drain(&mut self, node: NodeId, observer: &mut impl Observer<N::Event>) {
        let now = self.now;
        while let Some(output) = self.slots[node.0].node.as_mut().and_then(N::poll_output) {
            match output {
                NodeOutput::Touched(port) => self.port_touched(node, port, observer),
                NodeOutput::Trace(trace) => observer.trace(node, trace, now),
                NodeOutput::Event(event) => observer.event(node, event, now),
                NodeOutput::Report(report) => {
                    if N::report(&mut self.plant, node, report) {
                        for node in 0..self.slots.len() {
                            self.manage(NodeId(node), observer);
                        }
                    }
                }
            }
        }
        self.tell_harmed(observer);
    }

    /// Tells a node the state of management.
    fn manage(&mut self, node: NodeId, observer: &mut impl Observer<N::Event>) {
        let now = self.now;
        if let Some(machine) = &mut self.slots[node.0].node {
            machine.managed(node, &self.plant, now);
            self.serve(node, observer);
        }
    }

    /// The direction into which the port sends.
    fn way(&self, node: NodeId, port: u16) -> Option<u32> {
        let way = self.slots[node.0].directions.get(usize::from(port));
        way.copied().filter(|way| *way != NO_DIRECTION)
    }

    fn output(&mut self, end: LinkEnd) -> Option<&mut OutputPort> {
        self.slots[end.node.0].node.as_mut()?.output_port(end.port)
    }

    /// Updates the event of a direction in the schedule.
    fn reschedule(&mut self, way: u32) {
        let travel = &self.travels[way as usize];
        let (from, source) = (travel.from, travel.source);
        let mut next = travel.on_the_way.front().map(|front| front.0);
        if self.every_departure || next.is_none() {
            let departure = self.output(from).and_then(|output| output.next_departure());
            next = [next, departure].into_iter().flatten().min();
        }
        self.schedule.set(source, next);
    }

    /// Puts the cells that have left a port by now on its link.
    fn advance(&mut self, way: u32, observer: &mut impl Observer<N::Event>) {
        let (from, now) = (self.travels[way as usize].from, self.now);
        while let Some(departure) = self.output(from).and_then(|output| output.pop(now, 1)) {
            self.transmit(way, departure, observer);
        }
        let idle = self.output(from).is_none_or(|output| output.is_idle());
        let waiting = &mut self.slots[from.node.0].waiting;
        if idle {
            waiting.remove(&from.port);
        } else {
            waiting.insert(from.port);
        }
        self.reschedule(way);
    }

    fn advance_all(&mut self, observer: &mut impl Observer<N::Event>) {
        for way in 0..self.travels.len() {
            self.advance(way as u32, observer);
        }
        self.tell_harmed(observer);
    }

    /// The queues of a port may have changed.
    fn port_touched(&mut self, node: NodeId, port: u16, observer: &mut impl Observer<N::Event>) {
        if let Some(way) = self.way(node, port) {
            self.advance(way, observer);
        }
    }

    /// Handles the event of a direction.
    fn travel(&mut self, way: u32, observer: &mut impl Observer<N::Event>) {
        let now = self.now;
        let arrived = &mut self.travels[way as usize].on_the_way;
        let arrived = arrived.pop_front_if(|front| front.0 <= now);
        self.advance(way, observer);
        // This cannot be done when the port is touched, because the node has yet to report the packet that found no
        // room.
        if self.books {
            self.tell_drops(way, observer);
        }
        if let Some((_, run)) = arrived {
            self.arrive(way, run, observer);
        }
        self.tell_harmed(observer);
    }

    /// A cell enters the link.
    fn transmit(&mut self, way: u32, departure: Departure, observer: &mut impl Observer<N::Event>) {
        let travel = &mut self.travels[way as usize];
        let Departure {
            run, start, finish, ..
        } = departure;
        travel.counters.sent += 1;
        if travel.first
            && run.ends_pdu()
            && let Some(pdu) = run.pdu()
        {
            pdu.last_cell_leaves(start);
        }
        if travel.cells {
            observer.cell(&PassedCell {
                end: travel.from,
                at: start,
                direction: Direction::Sent,
                run: &run,
            });
        }
        if travel.taps[0].is_some() {
            tap(travel, false, &run, finish, observer);
        }
        if !travel.up {
            travel.counters.down += 1;
            if self.books {
                let pdu = run.pdu().cloned();
                let place = self.down_place(way as usize);
                self.harmed.extend(pdu.map(|pdu| (place, pdu, finish)));
            }
            return;
        }
        let run = match &mut travel.impairment {
            None => Some(run),
            Some(impairment) => {
                let pdu = run.pdu().filter(|_| self.books).cloned();
                let lost = travel.counters.lost;
                let run = impairment.cross(run, start, finish, &mut travel.counters);
                let lost = travel.counters.lost > lost;
                if let Some((place, pdu)) = books::harmed(way as usize, pdu, run.as_ref(), lost) {
                    self.harmed.push((place, pdu, finish));
                }
                run
            }
        };
        let Some(run) = run else {
            return;
        };
        travel.on_the_way.push_back((finish + travel.delay, run));
    }

    /// A cell arrives.
    fn arrive(&mut self, way: u32, run: CellRun, observer: &mut impl Observer<N::Event>) {
        let now = self.now;
        let travel = &mut self.travels[way as usize];
        travel.counters.delivered += 1;
        let to = travel.to;
        if travel.cells {
            observer.cell(&PassedCell {
                end: to,
                at: now,
                direction: Direction::Received,
                run: &run,
            });
        }
        if travel.taps[1].is_some() {
            tap(travel, true, &run, now, observer);
        }
        let Some(node) = &mut self.slots[to.node.0].node else {
            return;
        };
        let mut touched = std::mem::take(&mut self.touched);
        let kept = node.forward(to.port, run, now, &mut touched);
        for port in touched.drain(..) {
            self.port_touched(to.node, port, observer);
        }
        self.touched = touched;
        if let Some(run) = kept {
            self.with_node(to.node, observer, |node, now| node.cells(to.port, run, now));
        }
        if self.books {
            self.tell_discards(to.node, observer);
        }
    }
}

/// Shows a cell to the observer at the sending or receiving end.
fn tap<E>(
    travel: &mut Travel,
    receiving: bool,
    run: &CellRun,
    at: Instant,
    observer: &mut impl Observer<E>,
) {
    let (end, direction) = if receiving {
        (travel.to, Direction::Received)
    } else {
        (travel.from, Direction::Sent)
    };
    let Some(tap) = &mut travel.taps[usize::from(receiving)] else {
        return;
    };
    let receiver = tap.entry(run.vc).or_insert_with(|| RunReassembler::new(0));
    if let Some(Ok(sdu)) = receiver.push(run.clone()) {
        observer.packet(&Packet {
            end,
            at,
            direction,
            vc: run.vc,
            pdu: &sdu.pdu,
            clp: sdu.clp,
            dropped: None,
        });
    }
}
