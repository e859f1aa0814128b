//! The world: nodes, links, and every cell between them.
//!
//! **Way of a cell.** It waits at an output port of a node; when the transmitter is free it leaves, is on the
//! line for exactly one cell time, then travels for the delay of the link, and is given to the far node when
//! its last bit is there. What nodes do with cells is theirs; the world owns links, time and events.
//!
//! **Events.** One queue ([`EventQueue`]) holds, per direction of a link, at most one departure and one
//! arrival, and per node its next deadline. A deadline that has moved leaves a stale event behind, which is
//! recognised and ignored: nodes are called only when something is due.
//!
//! **Order.** Events of one instant happen in the order in which they were scheduled. Nothing else
//! decides anything, so a world is a function of its construction, its seed and the calls made on it.

use crate::event::EventQueue;
use crate::link::{Impairment, LinkConfig, LinkCounters};
use crate::node::{Node, NodeOutput, Observer, Packet};
use aerostat_node::atm::{CellRun, Departure, OutputPort, RunReassembler};
use aerostat_node::ip::random;
use aerostat_proto::{Duration, Instant};
use aerostat_wire::Vc;
use aerostat_wire::cell::HeaderForm;
use aerostat_wire::pcapng::Direction;
use std::collections::{BTreeMap, VecDeque};

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
    /// The transmitter of a direction may be due.
    Departure(u32),
    /// The first cell on its way in a direction arrives.
    Arrival(u32),
    /// The deadline of a node may be due.
    Deadline(u32),
}

struct Slot<N> {
    name: String,
    node: Option<N>,
    /// Links of a switch to a switch have NNI cells.
    switch: bool,
    /// When the deadline event that counts is due: not later than the node's own deadline.
    due: Option<Instant>,
    /// Direction that each port sends into; `u32::MAX` where no link is plugged in.
    directions: Vec<u32>,
}

/// One direction of a link.
#[derive(Debug)]
struct Travel {
    from: LinkEnd,
    to: LinkEnd,
    delay: Duration,
    on_the_way: VecDeque<(Instant, CellRun)>,
    /// When the departure event that counts is due.
    due: Option<Instant>,
    impairment: Option<Impairment>,
    counters: LinkCounters,
    up: bool,
    /// Watchers of what is sent and of what arrives.
    taps: [Option<Tap>; 2],
}

/// Puts the SDUs that pass one link end in one direction together.
type Tap = BTreeMap<Vc, RunReassembler>;

#[derive(Debug)]
struct Link {
    name: String,
    config: LinkConfig,
    cut: bool,
}

/// A network in virtual time. See the module's text.
pub struct World<N: Node> {
    now: Instant,
    events: EventQueue<Event>,
    slots: Vec<Slot<N>>,
    links: Vec<Link>,
    /// Two per link: from end 0 to end 1, then back.
    travels: Vec<Travel>,
    seed: u64,
    touched: Vec<u16>,
    /// Directions that are watched.
    tapped: Vec<u32>,
}

const NO_DIRECTION: u32 = u32::MAX;

impl<N: Node> World<N> {
    /// An empty world at time zero.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            now: Instant::ZERO,
            events: EventQueue::default(),
            slots: Vec::new(),
            links: Vec::new(),
            travels: Vec::new(),
            seed,
            touched: Vec::new(),
            tapped: Vec::new(),
        }
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
        self.slots.push(Slot {
            name: name.into(),
            node: None,
            switch,
            due: None,
            directions: vec![NO_DIRECTION; ports],
        });
        NodeId(self.slots.len() - 1)
    }

    /// Plugs a link in. Its random errors are a stream of their own per direction. The rate is that of the
    /// nodes' output ports; the link adds delay and errors.
    ///
    /// # Panics
    /// If a port does not exist or has a link already: a mistake in building the world.
    pub fn connect(&mut self, name: &str, ends: [LinkEnd; 2], config: LinkConfig) -> LinkId {
        let id = LinkId(self.links.len());
        let form = self.form(ends);
        for (from, to, way) in [(ends[0], ends[1], "forth"), (ends[1], ends[0], "back")] {
            let direction = &mut self.slots[from.node.0].directions[usize::from(from.port)];
            assert_eq!(*direction, NO_DIRECTION, "{name}: the port has a link");
            *direction = self.travels.len() as u32;
            let rng = random::stream(self.seed, name, way);
            self.travels.push(Travel {
                from,
                to,
                delay: config.delay,
                on_the_way: VecDeque::new(),
                due: None,
                impairment: Impairment::new(&config, form, rng),
                counters: LinkCounters::default(),
                up: false,
                taps: [None, None],
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

    /// Watches both ends of a link: SDUs go to [`Observer::packet`] from now on.
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

    /// Shows what output ports that are watched have dropped.
    fn show_drops(&mut self, observer: &mut impl Observer<N::Event>) {
        for index in 0..self.tapped.len() {
            let end = self.travels[self.tapped[index] as usize].from;
            let drops = self.output(end).map(|output| output.take_drops());
            for drop in drops.into_iter().flatten() {
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

    /// The time of the last event.
    #[must_use]
    pub const fn now(&self) -> Instant {
        self.now
    }
    /// When something happens next.
    #[must_use]
    pub fn next_at(&self) -> Option<Instant> {
        self.events.next_at()
    }
    /// Events scheduled so far.
    #[must_use]
    pub const fn events(&self) -> u64 {
        self.events.inserted()
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
    /// A node, unless it is off.
    #[must_use]
    pub fn node(&self, node: NodeId) -> Option<&N> {
        self.slots[node.0].node.as_ref()
    }
    /// Counters of a link: from end 0 to end 1, then back.
    #[must_use]
    pub fn link_counters(&self, link: LinkId) -> [LinkCounters; 2] {
        [0, 1].map(|way| self.travels[2 * link.0 + way].counters)
    }

    /// Lets everything happen up to and including `until`; the time is `until` afterwards.
    pub fn run_until(&mut self, until: Instant, observer: &mut impl Observer<N::Event>) {
        while let Some((at, event)) = self.events.pop_due(until) {
            self.now = at;
            match event {
                Event::Arrival(way) => self.arrival(way, observer),
                Event::Departure(way) => self.departure(way, observer),
                Event::Deadline(node) => self.deadline(NodeId(node as usize), observer),
            }
            if !self.tapped.is_empty() {
                self.show_drops(observer);
            }
        }
        self.now = self.now.max(until);
    }

    /// Calls a node with the present time, then carries out what it wants. Does nothing if it is off.
    pub fn with_node(
        &mut self,
        node: NodeId,
        observer: &mut impl Observer<N::Event>,
        act: impl FnOnce(&mut N, Instant),
    ) {
        let now = self.now;
        if let Some(machine) = &mut self.slots[node.0].node {
            act(machine, now);
            self.serve(node, observer);
        }
    }

    /// Switches a node on, as `machine`. Links whose two ends are on come up.
    pub fn power_on(&mut self, node: NodeId, machine: N, observer: &mut impl Observer<N::Event>) {
        self.power_on_all([(node, machine)], observer);
    }

    /// Switches nodes on at one instant: first their links come up, then the nodes start, in this order.
    ///
    /// A node that starts takes its links for up; it is told at once of those that are not, and of every
    /// change later.
    pub fn power_on_all(
        &mut self,
        machines: impl IntoIterator<Item = (NodeId, N)>,
        observer: &mut impl Observer<N::Event>,
    ) {
        let mut started = Vec::new();
        for (node, machine) in machines {
            self.power_off(node, observer);
            self.slots[node.0].node = Some(machine);
            started.push(node);
        }
        for index in 0..self.tapped.len() {
            self.log_drops(self.tapped[index] as usize);
        }
        let mut changed = self.refresh_links();
        changed.retain(|(end, _)| !started.contains(&end.node));
        let starters = self
            .travels
            .iter()
            .filter(|t| started.contains(&t.from.node));
        changed.extend(starters.filter(|t| !t.up).map(|t| (t.from, false)));
        for node in started {
            self.with_node(node, observer, |machine, now| machine.start(now));
        }
        self.tell_links(&changed, observer);
    }

    /// Switches a node off: it forgets everything, its links go down.
    pub fn power_off(&mut self, node: NodeId, observer: &mut impl Observer<N::Event>) {
        let slot = &mut self.slots[node.0];
        if slot.node.take().is_none() {
            return;
        }
        slot.due = None;
        let changed = self.refresh_links();
        self.tell_links(&changed, observer);
    }

    /// Cuts a link, or mends it.
    pub fn set_cut(&mut self, link: LinkId, cut: bool, observer: &mut impl Observer<N::Event>) {
        self.links[link.0].cut = cut;
        let changed = self.refresh_links();
        self.tell_links(&changed, observer);
    }

    /// Changes the random errors of a link.
    pub fn set_errors(&mut self, link: LinkId, loss: f64, bit_errors: f64) {
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

    /// Brings every link to the state that its cut and its ends ask for; gives what changed.
    /// Cells on the way of a link that goes down are gone.
    fn refresh_links(&mut self) -> Vec<(LinkEnd, bool)> {
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
            travel.on_the_way.clear();
            for tap in travel.taps.iter_mut().flatten() {
                tap.clear();
            }
            changed.push((travel.from, up));
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

    fn deadline(&mut self, node: NodeId, observer: &mut impl Observer<N::Event>) {
        let now = self.now;
        let slot = &mut self.slots[node.0];
        if slot.due != Some(now) {
            return;
        }
        slot.due = None;
        let deadline = slot.node.as_ref().and_then(N::poll_timeout);
        if deadline.is_some_and(|at| at <= now) {
            self.with_node(node, observer, |machine, now| machine.handle_timeout(now));
        } else {
            self.schedule_deadline(node);
        }
    }

    /// Makes sure that an event waits for the node's deadline, or for an earlier one that has moved.
    fn schedule_deadline(&mut self, node: NodeId) {
        let slot = &mut self.slots[node.0];
        let Some(at) = slot.node.as_ref().and_then(N::poll_timeout) else {
            return;
        };
        assert!(
            at > self.now,
            "{}: deadline {at} is not after {}",
            slot.name,
            self.now
        );
        if slot.due.is_none_or(|due| at < due) {
            slot.due = Some(at);
            self.events.push(at, Event::Deadline(node.0 as u32));
        }
    }

    /// Carries out what a node wants, then schedules its next deadline.
    fn serve(&mut self, node: NodeId, observer: &mut impl Observer<N::Event>) {
        let now = self.now;
        while let Some(output) = self.slots[node.0].node.as_mut().and_then(N::poll_output) {
            match output {
                NodeOutput::Touched(port) => self.port_touched(LinkEnd { node, port }),
                NodeOutput::Trace(trace) => observer.trace(node, trace, now),
                NodeOutput::Event(event) => observer.event(node, event, now),
            }
        }
        self.schedule_deadline(node);
    }

    /// The direction that a port sends into.
    fn way(&self, node: NodeId, port: u16) -> Option<u32> {
        let way = self.slots[node.0].directions.get(usize::from(port));
        way.copied().filter(|way| *way != NO_DIRECTION)
    }

    fn output(&mut self, end: LinkEnd) -> Option<&mut OutputPort> {
        self.slots[end.node.0].node.as_mut()?.output_port(end.port)
    }

    /// Makes sure that an event waits for the next departure.
    fn schedule_departure(&mut self, way: u32) {
        let from = self.travels[way as usize].from;
        let now = self.now;
        let next = self.output(from).and_then(|output| output.next_departure());
        let travel = &mut self.travels[way as usize];
        let Some(next) = next.map(|next| next.max(now)) else {
            return;
        };
        if travel.due.is_none_or(|due| next < due) {
            travel.due = Some(next);
            self.events.push(next, Event::Departure(way));
        }
    }

    fn departure(&mut self, way: u32, observer: &mut impl Observer<N::Event>) {
        let now = self.now;
        let travel = &mut self.travels[way as usize];
        if travel.due != Some(now) {
            return;
        }
        travel.due = None;
        let from = travel.from;
        let departure = self.output(from).and_then(|output| output.pop(now, 1));
        if let Some(departure) = departure {
            self.transmit(way, departure, observer);
        }
        self.schedule_departure(way);
    }

    /// A cell goes onto the link.
    fn transmit(&mut self, way: u32, departure: Departure, observer: &mut impl Observer<N::Event>) {
        let travel = &mut self.travels[way as usize];
        let Departure {
            run, start, finish, ..
        } = departure;
        travel.counters.sent += 1;
        if travel.taps[0].is_some() {
            tap(travel, false, &run, finish, observer);
        }
        if !travel.up {
            travel.counters.down += 1;
            return;
        }
        let run = match &mut travel.impairment {
            None => Some(run),
            Some(impairment) => impairment.cross(run, start, finish, &mut travel.counters),
        };
        let Some(run) = run else {
            return;
        };
        let arrival = finish + travel.delay;
        if travel.on_the_way.is_empty() {
            self.events.push(arrival, Event::Arrival(way));
        }
        travel.on_the_way.push_back((arrival, run));
    }

    fn arrival(&mut self, way: u32, observer: &mut impl Observer<N::Event>) {
        let now = self.now;
        let travel = &mut self.travels[way as usize];
        // After a cut the event of a cell that is gone may still come.
        if travel.on_the_way.front().is_none_or(|front| front.0 != now) {
            return;
        }
        let Some((_, run)) = travel.on_the_way.pop_front() else {
            return;
        };
        if let Some((at, _)) = travel.on_the_way.front() {
            self.events.push(*at, Event::Arrival(way));
        }
        travel.counters.delivered += 1;
        let to = travel.to;
        if travel.taps[1].is_some() {
            tap(travel, true, &run, now, observer);
        }
        let Some(node) = &mut self.slots[to.node.0].node else {
            return;
        };
        let mut touched = std::mem::take(&mut self.touched);
        let involved = node.cells(to.port, run, now, &mut touched);
        for port in touched.drain(..) {
            self.port_touched(LinkEnd { port, ..to });
        }
        self.touched = touched;
        if involved {
            self.serve(to.node, observer);
        }
    }

    fn port_touched(&mut self, end: LinkEnd) {
        if let Some(way) = self.way(end.node, end.port) {
            self.schedule_departure(way);
        }
    }
}

/// Shows a cell to the watcher of the sending or receiving end.
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
