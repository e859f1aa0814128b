//! The world: a plant in virtual time, and every cell between its nodes.
//!
//! **Path of a cell.** A cell leaves a port when the transmitter is free, is on the line for exactly one cell time,
//! travels for the delay of the link, and is given to the far node when its last bit has arrived.
//!
//! **Events.** The rules are those of the [plant](aerostat_lab::plant). Cells that only pass through switches move
//! as [trains](aerostat_lab::plant::trains): their line has an event for the first and the last cell of a PDU, and
//! ports take the cells between when they are brought up to date. The port itself decides departures at their due times
//! ([`OutputPort::allow_late`](aerostat_node::atm::OutputPort::allow_late)), so the delay makes no difference.
//!
//! Every cell is an event of its own where its arrival has effects: on links with errors, at policers, on connections
//! with several leaves, on labels that end at a switch, and everywhere while links are tapped for PDUs of all kinds.
//! [`World::tap_messages`] costs little: the train in which a PDU leaves knows when its last cell has left.
//! [`World::cell_by_cell`] makes every cell of every link an event, and [`World::every_departure`] each departure, for
//! a test that compares.
//!
//! There is no other influence, so a world is a function of its construction, its seed and the calls on it.

use crate::link::{CellLine, Random};
use crate::observer::{Observer, Packet, PassedCell};
use aerostat_lab::circuits::LinkCounters;
use aerostat_lab::model::{Lab, LineChange};
use aerostat_lab::plant::{
    Blocks, Change as _, Driver, LineId, LinkConfig, LinkEnd, LinkId, Node, NodeId, Plant,
};
use aerostat_lab::report::Work;
use aerostat_node::atm::{CellRun, DataUnit, Departure, DroppedPdu, Pdu};
use aerostat_node::ip::books::Place;
use aerostat_node::random;
use aerostat_proto::{Instant, Trace};
use aerostat_wire::Vc;
use aerostat_wire::cell::HeaderForm;
use aerostat_wire::pcapng::Direction;
use aerostat_wire::summary;
use std::collections::BTreeMap;

/// A network in virtual time. See the documentation of this module.
pub struct World<N: Node> {
    plant: Plant<N, CellLine>,
    events: u64,
    most_events: u64,
    seed: u64,
}

/// A world, and who observes it.
pub(crate) struct Observed<'a, N: Node, O> {
    pub(crate) world: &'a mut World<N>,
    pub(crate) observer: &'a mut O,
}

impl<N: Node> World<N> {
    /// An empty world at time zero.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut plant = Plant::new(Instant::ZERO, N::Management::default());
        plant.by_train(true);
        Self {
            plant,
            events: 0,
            most_events: u64::MAX,
            seed,
        }
    }

    /// Nodes and links.
    #[must_use]
    pub const fn plant(&self) -> &Plant<N, CellLine> {
        &self.plant
    }
    pub(crate) const fn plant_mut(&mut self) -> &mut Plant<N, CellLine> {
        &mut self.plant
    }
    pub(crate) const fn observed<'a, O>(&'a mut self, observer: &'a mut O) -> Observed<'a, N, O> {
        let world = self;
        Observed { world, observer }
    }

    /// Adds an end system with one port; off until [`Self::power_on`].
    pub fn add_host(&mut self, name: &str) -> NodeId {
        self.plant.add(name, false, 1)
    }

    /// Adds a switch; off until [`Self::power_on`].
    pub fn add_switch(&mut self, name: &str, ports: u16) -> NodeId {
        self.plant.add(name, true, ports)
    }

    /// Adds a link. Its random errors have a random stream of their own per direction. The rate is that of the nodes'
    /// output ports; the link adds delay and errors.
    ///
    /// # Panics
    /// If a port does not exist or has a link already: the world was built incorrectly.
    pub fn connect(&mut self, name: &str, ends: [LinkEnd; 2], config: LinkConfig) -> LinkId {
        let lines = self.lines(name, ends, &config);
        self.plant.connect(name, ends, config, lines)
    }

    /// Adds the nodes and links of a lab, with the numbers that they have there.
    pub(crate) fn add_lab(&mut self, lab: &Lab) {
        for (_, node) in lab.nodes() {
            self.plant.add_model(node);
        }
        for link in &lab.links {
            self.connect(&link.name, link.ends, LinkConfig::of(link));
        }
    }

    /// Both directions of a link. UNI cells are where an end system is, NNI cells between switches.
    fn lines(&self, name: &str, ends: [LinkEnd; 2], config: &LinkConfig) -> [CellLine; 2] {
        let switches = ends.map(|end| self.plant.is_switch(end.node));
        let form = match switches {
            [true, true] => HeaderForm::Nni,
            _ => HeaderForm::Uni,
        };
        [("forth", 0), ("back", 1)].map(|(way, side)| {
            let random = Random {
                rng: random::stream(self.seed, name, way),
                blocks: Blocks::seed(self.seed, name, side),
                form,
            };
            CellLine::new(&config.lines[side].errors, random, !switches[side])
        })
    }

    /// Makes [`Observer::cell`] get every cell on this link, at both ends.
    pub fn tap_cells(&mut self, link: LinkId) {
        for line in LineId::both(link) {
            self.plant.medium_mut(line).cells = true;
        }
        self.cell_by_cell();
    }

    /// Taps both ends of a link: SDUs go to [`Observer::packet`] from now on.
    pub fn tap(&mut self, link: LinkId) {
        for line in LineId::both(link) {
            for tap in &mut self.plant.medium_mut(line).taps {
                tap.get_or_insert_default();
            }
            self.plant.log_drops(line);
        }
        self.cell_by_cell();
    }

    /// Makes [`Observer::packet`] get the messages of control protocols that leave ports, on all links, and PDUs that
    /// ports drop. Cells may still move as trains, so a message may be told a little later than it left, but before its
    /// last cell arrives.
    pub fn tap_messages(&mut self) {
        let lines: Vec<LineId> = self.plant.lines().collect();
        for line in lines {
            self.plant.medium_mut(line).taps[0].get_or_insert_default();
            self.plant.log_drops(line);
        }
        self.plant.note_ends(|run| {
            let control = |pdu: &Pdu| summary::is_control(run.vc, pdu.sdu());
            run.pdu().is_some_and(control)
        });
    }

    /// The time of the last event.
    #[must_use]
    pub const fn now(&self) -> Instant {
        self.plant.now()
    }
    /// Time of the next event.
    #[must_use]
    pub fn next_at(&self) -> Option<Instant> {
        self.plant.next_event().map(|next| next.0)
    }
    /// Number of events so far.
    #[must_use]
    pub const fn events(&self) -> u64 {
        self.events
    }
    /// Events and cells of the run so far.
    #[must_use]
    pub fn work(&self) -> Work {
        let lines = self.plant.lines();
        Work {
            events: self.events,
            crossings: lines.map(|line| self.plant.line(line).counters.sent).sum(),
            alone: self.plant.alone(),
        }
    }
    /// A node's name.
    #[must_use]
    pub fn name(&self, node: NodeId) -> &str {
        self.plant.name(node)
    }
    /// The two ends of a link.
    #[must_use]
    pub fn ends(&self, link: LinkId) -> [LinkEnd; 2] {
        self.plant.ends(link)
    }
    /// A node; `None` if it is off.
    #[must_use]
    pub fn node(&self, node: NodeId) -> Option<&N> {
        self.plant.node(node)
    }
    /// Cells on a link, by their VC there: from end 0 to end 1, and back.
    #[must_use]
    pub fn on_the_way(&self, link: LinkId) -> [BTreeMap<Vc, u64>; 2] {
        self.plant.on_the_way(link)
    }
    /// Counters of a link: from end 0 to end 1, and back.
    #[must_use]
    pub fn link_counters(&self, link: LinkId) -> [LinkCounters; 2] {
        self.plant.counters(link)
    }

    /// Runs all events up to and including `until`, which is the time afterwards. The time is earlier if the observer
    /// interrupts, or if the plant is watched and something has changed ([`Plant::take_changed`]): then everything of
    /// the time has happened.
    pub fn run_until(&mut self, until: Instant, observer: &mut impl Observer<N::Event>) {
        while let Some((at, source)) = self.plant.next_event().filter(|next| next.0 <= until) {
            if self.exhausted() || at > self.now() && self.plant.has_changed() {
                return;
            }
            self.plant.advance_to(at);
            self.events += 1;
            self.observed(observer).happen(source);
            self.observed(observer).tell_ended();
            if observer.interrupts() {
                return;
            }
        }
        if until > self.now() && self.plant.has_changed() {
            return;
        }
        self.plant.advance_to(until);
        self.plant.end_instant();
        self.observed(observer).advance_all();
        self.observed(observer).tell_ended();
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

    /// Makes every cell of every link an event. This changes no result and only takes more time. Taps do so, too: what
    /// they see is in the order of time over all links.
    pub fn cell_by_cell(&mut self) {
        self.plant.by_train(false);
        self.observed(&mut ()).choose_trains();
    }

    /// Makes each departure an event of its own. This changes no result and only takes more time.
    pub const fn every_departure(&mut self, on: bool) {
        self.plant.every_departure(on);
    }

    /// Makes [`Observer::lost`] get everything that is lost.
    pub fn keep_books(&mut self) {
        self.observed(&mut ()).keep_books();
    }

    /// Calls a node with the current time, then handles its outputs. Does nothing if the node is off.
    pub fn with_node(
        &mut self,
        node: NodeId,
        observer: &mut impl Observer<N::Event>,
        act: impl FnOnce(&mut N, Instant),
    ) {
        self.observed(observer).with_node(node, act);
    }

    /// Switches a node on, as `machine`. Links come up if both ends are on.
    pub fn power_on(&mut self, node: NodeId, machine: N, observer: &mut impl Observer<N::Event>) {
        self.observed(observer).power_on(node, machine);
    }

    /// Switches nodes on at one instant: first their links come up, then the nodes start, in this order.
    pub fn power_on_all(
        &mut self,
        machines: impl IntoIterator<Item = (NodeId, N)>,
        observer: &mut impl Observer<N::Event>,
    ) {
        self.observed(observer).power_on_all(machines);
    }

    /// Switches a node off: it loses its state, and its links go down.
    pub fn power_off(&mut self, node: NodeId, observer: &mut impl Observer<N::Event>) {
        self.observed(observer).power_off(node);
    }

    /// Cuts or restores a link.
    pub fn set_cut(&mut self, link: LinkId, cut: bool, observer: &mut impl Observer<N::Event>) {
        self.observed(observer).set_cut(link, cut);
    }

    /// Gives the directions of a link new values, by the end at which they start.
    pub fn change_link(
        &mut self,
        link: LinkId,
        changes: &[LineChange; 2],
        observer: &mut impl Observer<N::Event>,
    ) {
        self.observed(observer).change_link(link, changes);
    }

    /// Makes a link train, which is down meanwhile, or ends this.
    pub fn set_training(
        &mut self,
        link: LinkId,
        training: bool,
        observer: &mut impl Observer<N::Event>,
    ) {
        self.observed(observer).set_training(link, training);
    }
}

impl<N: Node, O: Observer<N::Event>> Driver for Observed<'_, N, O> {
    type Node = N;
    type Medium = CellLine;
    const IN_TURNS: bool = false;

    fn plant(&self) -> &Plant<N, CellLine> {
        &self.world.plant
    }
    fn plant_mut(&mut self) -> &mut Plant<N, CellLine> {
        &mut self.world.plant
    }
    fn trace(&mut self, node: NodeId, trace: Trace) {
        self.observer.trace(node, trace, self.world.plant.now());
    }
    fn event(&mut self, node: NodeId, event: N::Event) {
        self.observer.event(node, event, self.world.plant.now());
    }
    fn lost(&mut self, place: Place, unit: DataUnit<'_>, at: Instant) {
        self.observer.lost(place, unit, at);
    }

    fn leaves(&mut self, line: LineId, departure: &Departure) {
        let end = self.world.plant.line(line).from;
        let (run, start) = (&departure.run, departure.start);
        let wire = self.world.plant.medium_mut(line);
        if wire.first
            && run.ends_pdu()
            && let Some(pdu) = run.pdu()
        {
            pdu.last_cell_leaves(start);
        }
        if wire.cells {
            self.observer.cell(&PassedCell {
                line,
                end,
                at: start,
                finish: departure.finish,
                direction: Direction::Sent,
                run,
            });
        }
        if wire.taps[0].is_some() {
            let at = departure.finish;
            self.tap(line, (end, Direction::Sent), run, at);
        }
    }

    fn arrives(&mut self, line: LineId, run: &CellRun) {
        let (end, now) = (self.world.plant.line(line).to, self.world.plant.now());
        let wire = self.world.plant.medium_mut(line);
        if wire.cells {
            self.observer.cell(&PassedCell {
                line,
                end,
                at: now,
                finish: now,
                direction: Direction::Received,
                run,
            });
        }
        if wire.taps[1].is_some() {
            self.tap(line, (end, Direction::Received), run, now);
        }
    }

    fn dropped(&mut self, line: LineId, drop: &DroppedPdu) {
        if self.world.plant.medium_mut(line).taps[0].is_some() {
            self.observer.packet(&Packet {
                line,
                end: self.world.plant.line(line).from,
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

impl<N: Node, O: Observer<N::Event>> Observed<'_, N, O> {
    /// Shows the messages that have left ports in trains.
    fn tell_ended(&mut self) {
        for (line, ended) in self.world.plant.take_ended() {
            let Some(pdu) = ended.run.pdu() else { continue };
            self.observer.packet(&Packet {
                line,
                end: self.world.plant.line(line).from,
                at: ended.at,
                direction: Direction::Sent,
                vc: ended.run.vc,
                pdu,
                clp: pdu.clp(),
                dropped: None,
            });
        }
    }

    /// Shows a cell to the tap at the sending or receiving end of a line.
    fn tap(
        &mut self,
        line: LineId,
        (end, direction): (LinkEnd, Direction),
        run: &CellRun,
        at: Instant,
    ) {
        let wire = self.world.plant.medium_mut(line);
        if let Some(sdu) = wire.complete(direction, run) {
            self.observer.packet(&Packet {
                line,
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
}
