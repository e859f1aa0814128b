//! The network of a lab in real time: a [plant](aerostat_lab::plant) that moves short runs of cells, driven by a caller
//! that supplies the time.
//!
//! This module does not touch the operating system. The driver calls [`World::step`] with the time, takes
//! [`World::poll_output`] (frames for the kernel, events) and sleeps until [`World::poll_timeout`].
//!
//! **Path of a cell.** The cells of one turn of a queue leave a port as one run, at the time that the port's rate
//! gives. The run is handed to the far end when its *first* cell begins, plus the delay of the cable; an idle cable
//! adds no other delay. On lines below 40 000 cells per second, on which a turn has one cell alone, the run is handed
//! over when its cell ends, as in virtual time: there the time of a cell is what users measure. The next run leaves
//! when the last cell of this one has left, so rates, shaping and policing are correct.
//!
//! **Turns.** A turn takes at most 50 µs at the rate of the line, and at that of the queue's shaper, and at most 3 µs
//! while another queue of the port waits; it always has one cell. So cells of different connections interleave one by
//! one on lines up to the rate of an OC-3 (cell time 2.8 µs), and in turns of 3 µs on faster lines: 4 cells of an
//! OC-12, 283 cells of a line of 40 Gb/s. A cell that finds a line busy waits for the turn that has begun, at most 17
//! cell times of an OC-3, and the last cells of a turn are up to 50 µs too early at the far end. A turn of a super
//! frame has whole PDUs if one fits. A port asks its shapers when they will let a cell pass, and a turn ends before
//! that.
//!
//! **Cost.** Single cells cost events of their own at every line, as in virtual time without trains. Turns bound this:
//! one for each PDU and each 50 µs while one queue sends, and about one for each 3 µs while several compete. Cells of
//! one VC that come from outside together are one run, whatever PDUs they have (`outside/cells/gathering.rs`). All
//! cells that leave the lab by one line in one step are one event (`plant/driver.rs`, "Lines out of the network").
//! While the network is more than [`LATE`] behind, queues that compete take turns of 50 µs as well, so that a processor
//! that is too slow for single cells costs their interleaving, and no throughput. `inspect lab` counts the events of
//! such times.
//!
//! **Rest.** As events have their own times, a busy network in which no source takes part has turns a millisecond
//! apart (`budget.rs`): its events wake the driver together.
//!
//! **Time.** A driver always wakes up a little late. Events that were due in the meantime happen in order and each at
//! its own time, not at the driver's. So departures keep their spacing through every switch, and a late driver causes
//! no bursts that would fill queues. Only a driver that is more than [`MAX_LAG`] behind loses the excess time for good.
//! In a lab with links to the outside, shaped connections are the exception, because there such departures are a burst:
//! a shaper is at most half its tolerance behind the driver's clock, and counts the time that it loses
//! (`atm/shaper.rs`).
//!
//! **Policing.** A run carries the time at which its source sends each cell (`atm/timing.rs`), and policers use these
//! times. So turns at a queue cost no conforming cell.
//!
//! **Losses.** A cell that is lost or damaged on a cable costs the cells of its turn, if its PDU was made in the lab;
//! the receiver loses the PDU, as AAL5 does. Cells from outside are lost one by one; the receiver finds out what they
//! cost.

mod converge;
pub mod line;
mod probe;
mod waits;

use crate::capture::{Captures, End};
use aerostat_lab::build::Builder;
use aerostat_lab::circuits::LinkCounters;
use aerostat_lab::model::{FaultKind, Lab, LineParams, LinkId, NodeId};
use aerostat_lab::occupancy::Sampler;
use aerostat_lab::plant::ledger::Ledger;
use aerostat_lab::plant::{
    Driver, LabEvent, LabNode, LineId, LinkConfig, LinkEnd, Operation, Plant,
};
use aerostat_lab::report::{Extent, RunReport};
use aerostat_node::atm::{CellRun, DataUnit, Departure, DropReason, Sdus};
use aerostat_node::host::sockets;
use aerostat_node::host::{DaemonMessage, HostCommand, HostEvent, HostInput, Station};
use aerostat_node::ip::books::Place;
use aerostat_node::ip::flow_stats::{FlowStats, Totals};
use aerostat_node::offload::SuperFrame;
use aerostat_node::switch::{PortNo, Switch};
use aerostat_proto::socket::SocketRef;
use aerostat_proto::split::{ProcessEvent, Role};
use aerostat_proto::{Duration, Instant, Refused, Trace};
use aerostat_wire::pcapng::Direction;
use aerostat_wire::{Qos, Vc};
use converge::media;
use line::RunLine;
use probe::Probe;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

/// How far behind the driver's time the network may run.
pub const MAX_LAG: Duration = Duration::from_millis(50);
/// How far behind the driver's time the network may run before its queues take long turns
/// ([`OutputPort::pop_turn`](aerostat_node::atm::OutputPort::pop_turn)). A driver that is less late sees the same
/// network as a punctual one.
pub const LATE: Duration = Duration::from_millis(20);
/// Cells in an adapter's queues above which the kernel's interface is not read, so that the kernel's own queue slows
/// down TCP.
const BACKLOG: u32 = 2048;
/// Limit of results of programs of the lab file that are kept.
const PROGRAMS: usize = 10_000;

/// Outputs of the world for its driver.
#[derive(Debug)]
pub enum Output {
    /// An event of a host that the accounts of the lab do not take.
    Host(NodeId, HostEvent),
    /// A program of an embedded host ended; it belongs to the flow with this number.
    Finished(NodeId, usize),
    /// Cells for the far end of a link out of the lab.
    Outside(NodeId, CellRun),
    /// A trace event.
    Trace(NodeId, Instant, Trace),
}

/// A running network. See the documentation of this module.
pub struct World {
    plant: Plant<LabNode, RunLine>,
    lab: Arc<Lab>,
    /// The accounts of the traffic.
    ledger: Ledger,
    sampler: Sampler,
    /// Nodes whose IP stack is a Linux kernel.
    kernels: BTreeSet<NodeId>,
    out: VecDeque<Output>,
    /// Number of events so far.
    events: u64,
    /// Events that were more than [`LATE`] behind the driver's time.
    late_events: u64,
    /// True if the present event is.
    is_late: bool,
    /// The driver's time when it handles the present event.
    clock: Instant,
    /// True if cells can leave the lab.
    leaves: bool,
    /// Far ends of links out of the lab whose lines are up.
    connected: BTreeSet<NodeId>,
    /// True if something outside can be reached now that could not before: hosts ask again what had no answer.
    reaches: bool,
    /// Counters before the cells arrived that a node is getting.
    probe: Option<Probe>,
    /// The captures.
    pub captures: Captures,
}

impl World {
    /// The nodes and links of the lab. Nothing happens before [`Self::start`].
    #[must_use]
    pub fn new(builder: &Builder<'_>, now: Instant) -> Self {
        let lab = builder.lab();
        let mut plant = Plant::new(now, builder.routing().clone());
        for (_, node) in lab.nodes() {
            plant.add_model(node);
        }
        for (id, link) in lab.links.iter().enumerate() {
            let lines = media(lab, LinkId(id));
            plant.connect(&link.name, link.ends, LinkConfig::of(link), lines);
        }
        // Each departure is a turn.
        plant.every_departure(true);
        let kernels = lab.nodes().map(|(id, _)| id);
        Self {
            plant,
            lab: Arc::new(lab.clone()),
            ledger: Ledger::new(builder, PROGRAMS),
            sampler: Sampler::endless(lab),
            kernels: kernels.filter(|id| builder.is_kernel(*id)).collect(),
            out: VecDeque::new(),
            events: 0,
            late_events: 0,
            is_late: false,
            clock: now,
            leaves: lab.outside().next().is_some(),
            connected: BTreeSet::new(),
            reaches: false,
            probe: None,
            captures: Captures::default(),
        }
    }

    /// Switches all nodes on.
    pub fn start(&mut self, builder: &Builder<'_>, now: Instant) {
        self.plant.advance_to(now);
        if self.lab.keeps_books() {
            self.keep_books();
        }
        Operation::start(self, builder);
        // Everything has just been asked, over the lines that are up already.
        self.reaches = false;
    }

    /// Handles due events, at most `budget`; false if more may be due.
    pub fn step(&mut self, now: Instant, budget: usize) -> bool {
        let oldest = Instant::ZERO + now.since(Instant::ZERO + MAX_LAG);
        self.sweep();
        self.captures.pass_on(now);
        for _ in 0..budget {
            if self.ledger.starts.has_news() {
                let lab = Arc::clone(&self.lab);
                self.start_ready(&lab);
            }
            let next = self.plant.next_event().filter(|(due, _)| *due <= now);
            if self.sample(next.map_or(now, |(due, _)| due), next.is_some(), oldest) {
                continue;
            }
            let Some((due, source)) = next else {
                return true;
            };
            self.plant.advance_to(due.max(oldest));
            self.events += 1;
            self.is_late = now.since(due) > LATE;
            self.clock = now;
            self.late_events += u64::from(self.is_late);
            self.happen(source);
        }
        false
    }

    /// Keeps the memory of the accounts down to the packets under way. What left for a process or a kernel may not
    /// return.
    fn sweep(&mut self) {
        if self.ledger.wants_sweep() {
            self.settle_books();
            let now = self.plant.now();
            self.ledger.sweep(&mut self.plant, now, true);
        }
    }

    /// Takes the samples of buffers that are due before the next event, or by `until` if no event is; false if no
    /// sample is due.
    fn sample(&mut self, until: Instant, event: bool, oldest: Instant) -> bool {
        let due = self.sampler.next_at();
        // Everything of the moment of a sample comes before it.
        let Some(at) = due.filter(|at| *at < until || (!event && *at == until)) else {
            return false;
        };
        self.plant.advance_to(at.max(oldest));
        self.sampler.take(&self.plant);
        true
    }

    /// Number of events that were more than [`LATE`] behind the driver's time.
    #[must_use]
    pub const fn late_events(&self) -> u64 {
        self.late_events
    }
    /// Number of events that [`Self::step`] has handled.
    #[must_use]
    pub const fn events(&self) -> u64 {
        self.events
    }

    /// Moves the time on for what comes from outside now. A network that lags behind need not catch up first: what
    /// comes enters at the time of the network, before all events that are due later.
    fn meet(&mut self, now: Instant) -> Instant {
        let lags = self.plant.next_event().is_some_and(|(due, _)| due <= now);
        let oldest = Instant::ZERO + now.since(Instant::ZERO + MAX_LAG);
        while !lags && self.sample(now, false, oldest) {}
        self.plant.advance_to(if lags { oldest } else { now })
    }

    /// When [`Self::step`] is next needed; it may lie in the past.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        if self.ledger.starts.has_news() {
            return Some(self.plant.now());
        }
        let event = self.plant.next_event().map(|(at, _)| at);
        [event, self.sampler.next_at()].into_iter().flatten().min()
    }

    /// The next output for the driver.
    #[must_use]
    pub fn poll_output(&mut self) -> Option<Output> {
        self.out.pop_front()
    }

    /// A complete Ethernet frame from interface `lecN` of a kernel node.
    pub fn kernel_frame(&mut self, node: NodeId, itf: usize, frame: Vec<u8>, now: Instant) {
        self.meet(now);
        self.with_node(node, |node, now| node.frame(itf, frame, now));
    }

    /// A super frame from interface `lecN` of a kernel node.
    pub fn kernel_super_frame(
        &mut self,
        node: NodeId,
        itf: usize,
        frame: SuperFrame,
        now: Instant,
    ) {
        if self.captures.needs_singles() {
            for frame in frame.segments() {
                self.kernel_frame(node, itf, frame, now);
            }
            return;
        }
        self.meet(now);
        self.with_node(node, |node, now| node.super_frame(itf, frame, now));
    }

    /// True if this node takes frames from its kernel.
    #[must_use]
    pub fn takes_frames(&self, node: NodeId) -> bool {
        let station = self.plant.node(node).and_then(LabNode::as_station);
        // A node that is down takes and loses all frames, as a dead network does.
        station.is_none_or(|station| station.nic().output().queued_total() < BACKLOG)
    }

    /// Passes an experimenter's command to one end system.
    pub fn command(&mut self, node: NodeId, command: HostCommand, now: Instant) {
        self.plant.advance_to(now);
        Operation::command(self, node, command);
    }

    /// Passes a message or an event of a daemon to its node.
    pub fn daemon(
        &mut self,
        node: NodeId,
        (role, event): (Role, ProcessEvent<DaemonMessage>),
        now: Instant,
    ) {
        self.meet(now);
        self.with_node(node, |node, now| node.daemon(role, event, now));
    }

    /// Something of a program of the machine for the socket service of a host.
    pub fn program(&mut self, node: NodeId, input: sockets::Input<'_>, now: Instant) {
        self.meet(now);
        self.with_node(node, |node, now| node.input(HostInput::Program(input), now));
    }

    /// A program writes PDUs that `read` gives, at most as many at once as it is asked for, until it has no more or the
    /// adapter takes no more. A host whose packets cost time takes them one by one.
    pub fn write_all(
        &mut self,
        node: NodeId,
        socket: SocketRef,
        now: Instant,
        mut read: impl FnMut(usize) -> Option<Sdus>,
    ) {
        self.meet(now);
        self.with_node(node, |node, now| {
            let costs = node.as_station().is_some_and(Station::costs_time);
            let takes = |node: &mut LabNode| match node.sockets_mut() {
                None => Some(1),
                Some(layer) => {
                    let most = if costs { 1 } else { layer.most(socket) };
                    layer.asks_to_write(socket).then_some(most)
                }
            };
            while let Some(most) = takes(node)
                && let Some(sdus) = read(most)
            {
                let input = sockets::Input::Write { socket, sdus };
                node.input(HostInput::Program(input), now);
            }
        });
    }

    /// True if a program may write a PDU now. If false, [`sockets::ToPrograms::Room`] will tell when it may.
    pub fn asks_to_write(&mut self, node: NodeId, socket: SocketRef) -> bool {
        let layer = self.plant.node_mut(node).and_then(LabNode::sockets_mut);
        layer.is_none_or(|layer| layer.asks_to_write(socket))
    }

    /// True if a socket has, or had, a connection.
    #[must_use]
    pub fn is_open(&self, node: NodeId, socket: SocketRef) -> bool {
        let station = self.node(node).and_then(LabNode::as_station);
        let layer = station.and_then(|station| station.host().sockets());
        layer.is_none_or(|layer| layer.is_open(socket))
    }

    /// A switch, to change its permanent connections; `None` for another node, or while it is down.
    pub fn switch_mut(&mut self, node: NodeId) -> Option<&mut Switch> {
        self.plant.node_mut(node)?.as_switch_mut()
    }

    /// A node; `None` while it is down.
    #[must_use]
    pub fn node(&self, node: NodeId) -> Option<&LabNode> {
        self.plant.node(node)
    }

    /// All nodes by number.
    pub fn nodes(&self) -> impl Iterator<Item = (NodeId, &str, Option<&LabNode>)> {
        let all = self.plant.nodes().filter(|id| self.lab.has_node(*id));
        all.map(|id| (id, self.plant.name(id), self.plant.node(id)))
    }

    /// Number of calls, at all switches together, and at end systems whose link leads out of the lab.
    #[must_use]
    pub fn calls(&self) -> usize {
        let of_node = |(id, _, node): (NodeId, &str, Option<&LabNode>)| {
            let node = node?;
            let at_end = || self.lab.uplink(id).and(node.as_station());
            let switched = node.as_switch().map(|switch| switch.calls().count());
            switched.or_else(|| at_end().map(|station| station.host().open_calls()))
        };
        self.nodes().filter_map(of_node).sum()
    }

    /// Makes the switches release their remaining calls: those between two ends outside the lab, and those of hosts
    /// that do not answer.
    pub fn clear_calls(&mut self, now: Instant) {
        self.plant.advance_to(now);
        for node in self.plant.nodes() {
            self.with_node(node, LabNode::clear_calls);
        }
    }

    /// A switch has a new permanent connection with this contract, seen from its first end: end systems at its ends
    /// send by it.
    pub fn contract(
        &mut self,
        switch: NodeId,
        (ends, qos): ([(PortNo, Vc); 2], Qos),
        now: Instant,
    ) {
        self.plant.advance_to(now);
        for ((port, vc), qos) in ends.into_iter().zip([qos, qos.reversed()]) {
            let end = LinkEnd {
                node: switch,
                port: port.0,
            };
            if let Some(line) = self.plant.line_from(end) {
                let host = self.plant.line(line).to.node;
                Operation::command(self, host, HostCommand::Contract(vc, qos));
            }
        }
    }

    /// Sends a loopback request on a connection of an end system; returns its tag. `None` if the node is off or no end
    /// system.
    pub fn loopback(
        &mut self,
        node: NodeId,
        vc: Vc,
        segment: bool,
        now: Instant,
    ) -> Option<Result<u32, Refused>> {
        self.plant.advance_to(now);
        let mut asked = None;
        self.with_node(node, |node, now| asked = node.loopback(vc, segment, now));
        asked
    }

    /// Causes or ends a fault.
    pub fn fault(&mut self, builder: &Builder<'_>, what: FaultKind, now: Instant) {
        self.plant.advance_to(now);
        Operation::fault(self, builder, what);
        if let FaultKind::Change(link, _) | FaultKind::Reset(link) | FaultKind::Trained(link, _) =
            what
        {
            let lines = self.lines_of(link);
            self.captures.change_link(link, lines);
        }
    }

    /// The directions of a link now, by the end at which they start.
    #[must_use]
    pub fn lines_of(&self, link: LinkId) -> [LineParams; 2] {
        let given = self.lab.link(link).lines;
        let now = self.plant.link_now(link).map(|line| line.config);
        [0, 1].map(|side| LineParams {
            rate: now[side].rate.unwrap_or(given[side].rate),
            delay: now[side].delay,
            errors: now[side].errors,
        })
    }

    /// True if a link carries cells.
    #[must_use]
    pub fn carries(&self, link: LinkId) -> bool {
        self.plant.line(LineId::of(link, 0)).up
    }

    /// True while a link trains.
    #[must_use]
    pub fn is_training(&self, link: LinkId) -> bool {
        self.plant.is_training(link)
    }

    /// True if a fault has cut this link.
    #[must_use]
    pub fn is_cut(&self, link: LinkId) -> bool {
        self.plant.is_cut(link)
    }

    /// Counters of a link: from its first end to its second, and back.
    #[must_use]
    pub fn counters_of(&self, link: LinkId) -> [LinkCounters; 2] {
        self.plant.counters(link)
    }

    /// The far end of a link out of the lab has connected or disconnected. What connects before the start of the lab is
    /// there when the first node sends.
    pub fn outside_link(&mut self, node: NodeId, connected: bool, now: Instant) {
        match connected {
            true => self.connected.insert(node),
            false => self.connected.remove(&node),
        };
        self.reaches |= connected;
        self.meet(now);
        self.advance_all();
        if let Some(node) = self.plant.node_mut(node) {
            node.connect(connected);
        }
        let changed = self.refresh_links();
        self.tell_links(&changed);
    }

    /// Cells have come from a peer outside for the first time, or after a silence.
    pub fn outside_heard(&mut self) {
        self.reaches = true;
    }

    /// Makes hosts ask again what had no answer, if something outside can be reached now that could not before.
    pub fn ask_again(&mut self, now: Instant) {
        if !std::mem::take(&mut self.reaches) {
            return;
        }
        self.meet(now);
        for node in self.plant.nodes() {
            Operation::command(self, node, HostCommand::AskAgain);
        }
    }

    /// Tells that runs of cells on these VCs come next from the far end of a link out of the lab: a switch there looks
    /// at their connections all at once. This changes only the time that it takes.
    pub fn outside_ahead(&self, node: NodeId, labels: impl IntoIterator<Item = Vc>) {
        let to =
            (self.plant.line_from(LinkEnd { node, port: 0 })).map(|line| self.plant.line(line).to);
        let switch = to.and_then(|to| self.plant.node(to.node)?.as_switch().zip(Some(to.port)));
        if let Some((switch, port)) = switch {
            switch.fabric().look_ahead(port, labels);
        }
    }

    /// Cells from the far end of a link out of the lab.
    pub fn outside_cells(&mut self, node: NodeId, run: CellRun, now: Instant) {
        self.meet(now);
        let Some(line) = self.plant.line_from(LinkEnd { node, port: 0 }) else {
            return;
        };
        self.capture_sent(line, &run);
        self.enter(line, run);
    }

    /// Records a run that leaves a port, or is lost there because the link is down. Its time is that of the network,
    /// as at its arrival: a network that has lost time makes up for departures that were due in it.
    fn capture_sent(&mut self, line: LineId, run: &CellRun) {
        let (up, now) = (self.plant.line(line).up, self.plant.now());
        let reason = (!up).then_some(DropReason::LinkDown);
        self.captures
            .packet(End::sender(line), Direction::Sent, run, reason, now);
    }

    /// Bounds that were met: takes an event of a node.
    pub fn hear(&mut self, node: &str, trace: &Trace) {
        self.ledger.met.hear(node, trace);
    }

    /// The accounts of the flows.
    #[must_use]
    pub fn stats(&self) -> &FlowStats {
        &self.ledger.stats
    }

    /// Makes all nodes report their pending losses.
    pub fn settle_books(&mut self) {
        Driver::settle_books(self);
    }

    /// The counters of all flows as of `now`; see [`Ledger::totals`].
    pub(crate) fn totals(&mut self, now: Instant, elsewhere: bool) -> Vec<Totals> {
        self.settle_books();
        self.ledger.totals(&mut self.plant, now, elsewhere)
    }

    /// All results as of `now`; see [`Ledger::report`].
    #[must_use]
    pub fn report(&mut self, now: Instant, elsewhere: bool) -> RunReport {
        let (lab, plant) = (&self.lab, &mut self.plant);
        let mut report = (self.ledger).report(lab, plant, now, elsewhere, Extent::Whole);
        self.sampler.report(&mut report);
        report
    }
}

impl Driver for World {
    type Node = LabNode;
    type Medium = RunLine;
    const IN_TURNS: bool = true;

    fn is_late(&self) -> bool {
        self.is_late
    }

    fn watches_pdus(&self) -> bool {
        self.captures.needs_singles()
    }

    fn clock(&self) -> Option<Instant> {
        Some(self.clock).filter(|_| self.leaves)
    }

    fn horizon(&self) -> Option<Instant> {
        // Captures tell the time of each cell.
        Some(self.clock).filter(|_| self.captures.is_empty())
    }

    fn plant(&self) -> &Plant<LabNode, RunLine> {
        &self.plant
    }
    fn plant_mut(&mut self) -> &mut Plant<LabNode, RunLine> {
        &mut self.plant
    }
    fn trace(&mut self, node: NodeId, trace: Trace) {
        let now = self.plant.now();
        self.out.push_back(Output::Trace(node, now, trace));
    }
    fn event(&mut self, node: NodeId, event: LabEvent) {
        let event = match event {
            LabEvent::Outside(run) => return self.out.push_back(Output::Outside(node, run)),
            LabEvent::Host(event) => self.ledger.take(node, event, self.plant.now()),
        };
        let output = match event {
            None => return,
            Some(HostEvent::Finished(app, result)) => {
                // Other programs were started by a client, which reads their report.
                let Some(flow) = self.ledger.finished(&self.lab, app, result) else {
                    return;
                };
                Output::Finished(node, flow)
            }
            Some(event) => Output::Host(node, event),
        };
        self.out.push_back(output);
    }
    fn usable(&mut self, end: LinkEnd) {
        let to = self
            .plant
            .line_from(end)
            .map(|line| self.plant.line(line).to.node);
        let outside = to.is_some_and(|to| matches!(self.node(to), Some(LabNode::Outside(_))));
        self.reaches |= outside;
    }
    fn lost(&mut self, place: Place, unit: DataUnit<'_>, at: Instant) {
        self.ledger.lost(place, unit, at);
    }
    fn leaves(&mut self, line: LineId, departure: &Departure) {
        self.capture_sent(line, &departure.run);
    }
    fn arrives(&mut self, line: LineId, run: &CellRun) {
        self.probe = self.probe_before(line, run);
    }
    fn arrived(&mut self) {
        if let Some(probe) = self.probe.take() {
            self.record(probe, self.plant.now());
        }
    }
}

impl Operation for World {
    fn ledger(&mut self) -> &mut Ledger {
        &mut self.ledger
    }
    fn make(
        &self,
        builder: &Builder<'_>,
        node: NodeId,
        life: u32,
        now: Instant,
    ) -> Option<LabNode> {
        let mut made = LabNode::make(builder, node, life, now)?;
        made.connect(self.connected.contains(&node));
        Some(made)
    }
    fn runs_programs(&self, node: NodeId) -> bool {
        !self.kernels.contains(&node)
    }
}
