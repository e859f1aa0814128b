//! The world: nodes, links, and every cell between them.
//!
//! **Way of a cell.** A node sends a PDU; its adapter (or, for a switch's own control plane, the output port)
//! queues the cells; when the transmitter is free one cell leaves, is on the line for exactly one cell time,
//! then travels for the delay of the link, and is taken by the far adapter or fabric when its last bit is there.
//! Only a receiver that has all cells of a PDU makes an SDU.
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
use aerostat_node::atm::fabric::Switched;
use aerostat_node::atm::{
    CellRate, CellRun, Departure, Fabric, Nic, NicEvent, OutputPort, Pdu, PortLimits, PortVc,
    Received, RunReassembler,
};
use aerostat_node::ip::random;
use aerostat_proto::{Duration, Instant};
use aerostat_wire::cell::HeaderForm;
use aerostat_wire::pcapng::Direction;
use aerostat_wire::{TrafficParams, Vc};
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

/// The cell plane of a node.
#[derive(Debug)]
enum Plane {
    Host(Box<Nic>),
    Switch(Box<SwitchPlane>),
}

#[derive(Debug)]
struct SwitchPlane {
    fabric: Fabric,
    location: [u8; 16],
    rates: Vec<CellRate>,
    /// Receivers of local labels.
    local: BTreeMap<PortVc, RunReassembler>,
}

impl SwitchPlane {
    fn new(location: [u8; 16], rates: Vec<CellRate>) -> Self {
        let mut fabric = Fabric::new(location);
        for rate in &rates {
            let port = fabric.add_port(*rate, PortLimits::SWITCH);
            for vc in [Vc::SIGNALLING, Vc::ILMI] {
                let opened = fabric.open_local(PortVc::new(port, vc), TrafficParams::ubr(0));
                debug_assert!(opened.is_ok());
            }
            fabric.set_link(port, false);
        }
        Self {
            fabric,
            location,
            rates,
            local: BTreeMap::new(),
        }
    }
}

struct Slot<N> {
    name: String,
    node: Option<N>,
    plane: Plane,
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
        }
    }

    /// Adds a host with one port; off until [`Self::power_on`].
    pub fn add_host(&mut self, name: &str, rate: CellRate) -> NodeId {
        let mut nic = Nic::new(rate);
        nic.set_link(false);
        self.add(name, Plane::Host(Box::new(nic)), 1)
    }

    /// Adds a switch with one port per rate; off until [`Self::power_on`]. `location` is its loopback id.
    pub fn add_switch(&mut self, name: &str, rates: Vec<CellRate>, location: [u8; 16]) -> NodeId {
        let ports = rates.len();
        self.add(
            name,
            Plane::Switch(Box::new(SwitchPlane::new(location, rates))),
            ports,
        )
    }

    fn add(&mut self, name: &str, plane: Plane, ports: usize) -> NodeId {
        self.slots.push(Slot {
            name: name.into(),
            node: None,
            plane,
            due: None,
            directions: vec![NO_DIRECTION; ports],
        });
        NodeId(self.slots.len() - 1)
    }

    /// Plugs a link in. Its random errors are a stream of their own per direction.
    ///
    /// # Panics
    /// If a port does not exist or has a link already: a mistake in building the world.
    pub fn connect(&mut self, name: &str, ends: [LinkEnd; 2], config: LinkConfig) -> LinkId {
        let id = LinkId(self.links.len());
        let host = ends
            .iter()
            .any(|end| matches!(self.slots[end.node.0].plane, Plane::Host(_)));
        let form = if host {
            HeaderForm::Uni
        } else {
            HeaderForm::Nni
        };
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

    /// Watches both ends of a link: SDUs go to [`Observer::packet`] from now on.
    pub fn tap(&mut self, link: LinkId) {
        for travel in &mut self.travels[2 * link.0..2 * link.0 + 2] {
            for tap in &mut travel.taps {
                tap.get_or_insert_default();
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
    /// A host's adapter.
    #[must_use]
    pub fn nic(&self, node: NodeId) -> Option<&Nic> {
        match &self.slots[node.0].plane {
            Plane::Host(nic) => Some(nic),
            Plane::Switch(_) => None,
        }
    }
    /// A switch's fabric.
    #[must_use]
    pub fn fabric(&self, node: NodeId) -> Option<&Fabric> {
        match &self.slots[node.0].plane {
            Plane::Host(_) => None,
            Plane::Switch(switch) => Some(&switch.fabric),
        }
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

    /// Switches nodes on at one instant: first their links come up, then the nodes start in this order,
    /// then each is told which links came up.
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
        let changed = self.refresh_links();
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
        match &mut slot.plane {
            Plane::Host(nic) => nic.reset(),
            Plane::Switch(switch) => {
                **switch = SwitchPlane::new(switch.location, std::mem::take(&mut switch.rates));
            }
        }
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
        for (way, text) in ["forth", "back"].into_iter().enumerate() {
            let travel = &mut self.travels[2 * link.0 + way];
            let host = [travel.from, travel.to]
                .iter()
                .any(|end| matches!(self.slots[end.node.0].plane, Plane::Host(_)));
            let form = if host {
                HeaderForm::Uni
            } else {
                HeaderForm::Nni
            };
            let rng = random::stream(self.seed ^ self.now.as_nanos(), name, text);
            travel.impairment = Impairment::new(config, form, rng);
        }
    }

    /// Brings every link to the state that its cut and its ends ask for; gives what changed.
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
            let from = travel.from;
            match &mut self.slots[from.node.0].plane {
                Plane::Host(nic) => nic.set_link(up),
                Plane::Switch(switch) => {
                    switch.fabric.set_link(from.port, up);
                    if !up {
                        switch.local.retain(|at, _| at.port != from.port);
                    }
                }
            }
            changed.push((from, up));
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
                NodeOutput::Send { port, vc, pdu } => self.send(node, port, vc, pdu, observer),
                NodeOutput::OpenVc {
                    port,
                    vc,
                    traffic,
                    max_sdu,
                } => match &mut self.slots[node.0].plane {
                    Plane::Host(nic) => {
                        nic.open(vc, traffic, max_sdu);
                    }
                    Plane::Switch(switch) => {
                        let _ = switch.fabric.open_local(PortVc::new(port, vc), traffic);
                    }
                },
                NodeOutput::CloseVc { port, vc } => match &mut self.slots[node.0].plane {
                    Plane::Host(nic) => {
                        nic.close(vc);
                    }
                    Plane::Switch(switch) => {
                        let _ = switch.fabric.close_local(PortVc::new(port, vc));
                        switch.local.remove(&PortVc::new(port, vc));
                    }
                },
                NodeOutput::Fabric(op) => {
                    if let Plane::Switch(switch) = &mut self.slots[node.0].plane
                        && let Err(error) = switch.fabric.apply(op)
                    {
                        observer.refused(node, op, error, now);
                    }
                }
                NodeOutput::Trace(trace) => observer.trace(node, trace, now),
                NodeOutput::Event(event) => observer.event(node, event, now),
            }
        }
        self.schedule_deadline(node);
    }

    fn send(
        &mut self,
        node: NodeId,
        port: u16,
        vc: Vc,
        pdu: Pdu,
        observer: &mut impl Observer<N::Event>,
    ) {
        let now = self.now;
        let way = self.way(node, port);
        let tapped = way.is_some_and(|way| self.travels[way as usize].taps[0].is_some());
        let copy = tapped.then(|| pdu.clone());
        let admission = match &mut self.slots[node.0].plane {
            Plane::Host(nic) => nic.send(vc, pdu, now),
            Plane::Switch(switch) => switch.fabric.send_local(PortVc::new(port, vc), pdu, now),
        };
        if let (Some(pdu), Some(admission)) = (&copy, admission)
            && admission.accepted == 0
        {
            observer.packet(&Packet {
                end: LinkEnd { node, port },
                at: now,
                direction: Direction::Sent,
                vc,
                pdu,
                clp: pdu.clp(),
                dropped: admission.reason,
            });
        }
        if let Some(way) = way {
            self.schedule_departure(way);
        }
    }

    /// The direction that a port sends into.
    fn way(&self, node: NodeId, port: u16) -> Option<u32> {
        let way = self.slots[node.0].directions.get(usize::from(port));
        way.copied().filter(|way| *way != NO_DIRECTION)
    }

    fn output(&mut self, end: LinkEnd) -> Option<&mut OutputPort> {
        match &mut self.slots[end.node.0].plane {
            Plane::Host(nic) => Some(nic.output_mut()),
            Plane::Switch(switch) => switch.fabric.output_mut(end.port),
        }
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
        match &mut self.slots[to.node.0].plane {
            Plane::Host(nic) => match nic.receive(run, now) {
                NicEvent::Sdu { vc, sdu } => self.deliver(to, vc, sdu, observer),
                NicEvent::Answered => self.port_touched(to),
                NicEvent::Nothing
                | NicEvent::Lost { .. }
                | NicEvent::LoopbackReturned { .. }
                | NicEvent::Dropped(_) => {}
            },
            Plane::Switch(switch) => {
                let mut touched = std::mem::take(&mut self.touched);
                let switched = switch
                    .fabric
                    .receive(to.port, run, now, |port| touched.push(port));
                if let Switched::Local(run) = switched {
                    let vc = run.vc;
                    let receiver = switch.local.entry(PortVc::new(to.port, vc));
                    let receiver = receiver.or_insert_with(|| RunReassembler::new(0));
                    if let Some(Ok(sdu)) = receiver.push(run) {
                        self.deliver(to, vc, sdu, observer);
                    }
                }
                for port in touched.drain(..) {
                    self.port_touched(LinkEnd { port, ..to });
                }
                self.touched = touched;
            }
        }
    }

    fn port_touched(&mut self, end: LinkEnd) {
        if let Some(way) = self.way(end.node, end.port) {
            self.schedule_departure(way);
        }
    }

    fn deliver(
        &mut self,
        to: LinkEnd,
        vc: Vc,
        sdu: Received,
        observer: &mut impl Observer<N::Event>,
    ) {
        self.with_node(to.node, observer, |node, now| {
            node.sdu(to.port, vc, sdu, now)
        });
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
