//! The network of a lab: nodes and the cables between them, in frame mode, driven by a caller that supplies the time.
//!
//! This module does not touch the operating system. The driver calls [`World::step`] with the time, takes
//! [`World::poll_output`] (frames for the kernel, events, samples) and sleeps until [`World::poll_timeout`].
//!
//! **Path of a PDU.** All cells of a PDU leave a port as one run, at the time that the port's rate gives. The run is
//! handed to the far end when its *first* cell leaves, plus the delay of the cable; an idle cable adds no other delay.
//! The next run leaves when the last cell of this one has left, so rates, shaping and policing are correct.
//!
//! **Time.** A driver always wakes up a little late. Events that were due in the meantime happen in order and each at
//! its own time, not at the driver's. So departures keep their spacing through every switch, and a late driver causes
//! no bursts that would fill queues. Only a driver that is more than [`MAX_LAG`] behind loses the excess time for good.
//!
//! **Policing.** A run carries the time at which its source sends each cell (`atm/timing.rs`), and policers use these
//! times. So turns of whole runs at a queue cost no conforming cell.
//!
//! **Losses.** A cell that is lost or damaged on a cable costs its whole PDU, as it would in AAL5.

mod books;
mod line;
mod probe;
mod traffic;

use crate::agenda::Agenda;
use crate::capture::{Captures, End};
use aerostat_lab::build::Builder;
use aerostat_lab::dialogues::Life;
use aerostat_lab::model::{self, FaultKind, Lab, LinkId, NodeId, NodeKind};
use aerostat_lab::routing::Routing;
use aerostat_lab::starts::Starts;
use aerostat_node::atm::{CellRun, DataUnitBuf, Departure, DropReason, OutputPort, Pdu};
use aerostat_node::host::{HostCommand, HostInput, Station, StationEvent, Waits};
use aerostat_node::interface::Phase;
use aerostat_node::ip::apps::{AppCommand, AppId, AppResult, AppSpec};
use aerostat_node::ip::books::{Cause, Place, SocketEvent, Spot};
use aerostat_node::ip::meter::Sample;
use aerostat_node::ip::random::derived_seed;
use aerostat_node::switch::{self, PortNo, Switch};
use aerostat_proto::split::Role;
use aerostat_proto::{Duration, Instant, Machine as _, Trace};
use aerostat_wire::pcapng::Direction;
use line::Line;
use std::collections::{BTreeSet, VecDeque};

/// How far behind the driver's time the network may run.
pub const MAX_LAG: Duration = Duration::from_millis(50);
/// Cells in an adapter's queues above which the kernel's interface is not read, so that the kernel's own queue slows
/// down TCP.
const BACKLOG: u32 = 2048;

/// Outputs of the world for its driver.
#[derive(Debug)]
pub enum Output {
    /// A frame for interface `lecN` of a kernel node.
    Frame {
        /// The node.
        node: NodeId,
        /// N.
        itf: usize,
        /// The frame.
        frame: Vec<u8>,
    },
    /// A measured packet.
    Sample(Sample),
    /// A program of an embedded host ended.
    Finished(NodeId, AppId, AppResult),
    /// A packet, or a cell of it, was lost: an SDU, a frame or a packet, or its head.
    Lost(Place, Instant, DataUnitBuf),
    /// A PDU of a program was sent or received, or a call of a program is forgotten.
    Socket(NodeId, Instant, SocketEvent),
    /// A host with programs was switched off: their counts.
    Life(Box<Life>),
    /// A node was switched off, so packets that had not left it are lost.
    Off(NodeId, Place, Instant),
    /// Cells for the far end of a link out of the lab.
    Outside(NodeId, CellRun),
    /// A frame for a daemon of a node.
    Daemon(NodeId, Role, Vec<u8>),
    /// A trace event.
    Trace(NodeId, Instant, Trace),
}

/// The machine of a node.
pub enum Machine {
    /// An end system.
    Station(Box<Station>),
    /// A switch.
    Switch(Box<Switch>),
    /// The far end of a link out of the lab.
    Outside(Outside),
}

/// State of the far end of a link out of the lab.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outside {
    connected: bool,
}

struct Node {
    name: String,
    /// True if its IP stack is a Linux kernel.
    kernel: bool,
    /// `None` while the node is crashed.
    machine: Option<Machine>,
    /// By port: the line into which it sends.
    lines: Vec<usize>,
    /// Programs, each with the number of its host on the segment, or `None` for the node itself.
    programs: Vec<(Option<usize>, AppSpec)>,
    life: u32,
    /// When the node was last switched on.
    since: Instant,
    /// Interfaces on Classical IP subnets whose ATMARP server is in the lab.
    servers_inside: BTreeSet<usize>,
    /// The server of its NHRP client is in the lab.
    nhs_inside: bool,
}

/// A running network. See the documentation of this module.
pub struct World {
    nodes: Vec<Node>,
    /// Line 2N goes from end 0 to end 1 of link N, line 2N + 1 back.
    lines: Vec<Line>,
    /// Agenda; the keys are nodes, then departures of lines, then arrivals of lines.
    agenda: Agenda,
    /// Links that faults have cut.
    cut: BTreeSet<usize>,
    /// Time of the network, which never goes back.
    time: Instant,
    out: VecDeque<Output>,
    routing: Routing,
    lab: Lab,
    /// Traffic that waits for its hosts.
    starts: Starts,
    /// True to report everything that is lost.
    books: bool,
    /// The captures.
    pub captures: Captures,
}

impl World {
    /// Makes every node and cable of the lab. Nothing happens before [`Self::start`].
    #[must_use]
    pub fn new(lab: &Lab, builder: &Builder<'_>, now: Instant) -> Self {
        let mut nodes: Vec<Node> = lab
            .nodes()
            .map(|(id, node)| Node {
                name: node.name.clone(),
                kernel: builder.is_kernel(id),
                machine: make(lab, builder, id, 0, now),
                lines: Vec::new(),
                programs: Vec::new(),
                life: 0,
                since: now,
                servers_inside: servers_inside(lab, node),
                nhs_inside: nhs_inside(lab, node),
            })
            .collect();
        let mut lines = Vec::new();
        for link in &lab.links {
            for (from, to) in [(0, 1), (1, 0)] {
                let (from, to) = (link.ends[from], link.ends[to]);
                let ports = &mut nodes[from.node.0].lines;
                ports.resize(ports.len().max(from.port + 1), usize::MAX);
                ports[from.port] = lines.len();
                let random = derived_seed(lab.seed, &link.name, "loss") ^ lines.len() as u64;
                let ends = [from, to].map(|end| (end.node.0, end.port as u16));
                lines.push(Line::new(link, ends, random));
            }
        }
        let starts = Starts::new(lab);
        for (host, behind, program) in aerostat_lab::build::programs(lab) {
            if !builder.is_kernel(host) && !starts.holds_back(&program) {
                nodes[host.0].programs.push((behind, program));
            }
        }
        let agenda = Agenda::new(nodes.len() + 2 * lines.len());
        let mut world = Self {
            nodes,
            lines,
            agenda,
            cut: BTreeSet::new(),
            time: now,
            out: VecDeque::new(),
            routing: builder.routing().clone(),
            lab: lab.clone(),
            starts,
            books: lab.keeps_books(),
            captures: Captures::default(),
        };
        (0..world.nodes.len()).for_each(|node| world.keep_books_at(node));
        world
    }

    /// Switches all nodes on.
    pub fn start(&mut self, now: Instant) {
        let now = self.advance(now);
        for node in 0..self.nodes.len() {
            self.start_node(node, now);
        }
    }

    fn start_node(&mut self, node: usize, now: Instant) {
        let Node {
            machine, programs, ..
        } = &mut self.nodes[node];
        match machine {
            Some(Machine::Station(station)) => {
                station.handle_input(HostInput::Start, now);
                for (behind, program) in programs {
                    let command = HostCommand::app(*behind, AppCommand::Start(program.clone()));
                    station.handle_input(HostInput::Command(command), now);
                }
            }
            Some(Machine::Switch(switch)) => {
                let Ok(()) = switch.handle_input(switch::Input::Start, now);
            }
            Some(Machine::Outside(_)) | None => {}
        }
        self.settle(node);
        for line in self.nodes[node].lines.clone() {
            if !self.is_whole(line / 2) {
                self.set_link(LinkId(line / 2), false, now);
            }
        }
    }

    /// Advances the network's time to `now`, if it is not later already; returns it.
    fn advance(&mut self, now: Instant) -> Instant {
        self.time = self.time.max(now);
        self.time
    }

    /// Handles due events, at most `budget`; false if more are due.
    pub fn step(&mut self, now: Instant, budget: usize) -> bool {
        let (nodes, lines) = (self.nodes.len(), self.lines.len());
        let oldest = Instant::ZERO + now.since(Instant::ZERO + MAX_LAG);
        for _ in 0..budget {
            let Some((due, key)) = self.agenda.pop_due(now) else {
                return true;
            };
            let now = self.advance(due.max(oldest));
            if key < nodes {
                self.node_due(key, now);
            } else if key < nodes + lines {
                self.departures(key - nodes, now);
            } else {
                self.arrivals(key - nodes - lines, now);
            }
        }
        false
    }

    /// When [`Self::step`] is next needed; it may lie in the past.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.agenda.next()
    }

    /// The next output for the driver.
    #[must_use]
    pub fn poll_output(&mut self) -> Option<Output> {
        self.out.pop_front()
    }

    /// A complete Ethernet frame from interface `lecN` of a kernel node.
    pub fn kernel_frame(&mut self, node: NodeId, itf: usize, frame: Vec<u8>, now: Instant) {
        let now = self.advance(now);
        if let Some(Machine::Station(station)) = &mut self.nodes[node.0].machine {
            station.handle_input(HostInput::Frame { itf, frame }, now);
            self.settle(node.0);
        }
    }

    /// True if this node takes frames from its kernel.
    #[must_use]
    pub fn takes_frames(&self, node: NodeId) -> bool {
        match &self.nodes[node.0].machine {
            Some(Machine::Station(station)) => station.nic().output().queued_total() < BACKLOG,
            // A node that is down takes and loses all frames, as a dead network does.
            Some(Machine::Switch(_) | Machine::Outside(_)) | None => true,
        }
    }

    /// Passes an experimenter's command to one end system.
    pub fn command(&mut self, node: NodeId, command: HostCommand, now: Instant) {
        let now = self.advance(now);
        if let Some(Machine::Station(station)) = &mut self.nodes[node.0].machine {
            station.handle_input(HostInput::Command(command), now);
            self.settle(node.0);
        }
    }

    /// Passes a message or an event of a daemon to its node. A network that lags behind need not catch up first.
    pub fn daemon(&mut self, node: NodeId, input: HostInput<'_>, now: Instant) {
        let lags = self.agenda.next().is_some_and(|due| due <= now);
        let oldest = Instant::ZERO + now.since(Instant::ZERO + MAX_LAG);
        let now = self.advance(if lags { oldest } else { now });
        if let Some(Machine::Station(station)) = &mut self.nodes[node.0].machine {
            station.handle_input(input, now);
            self.settle(node.0);
        }
    }

    /// A switch, to change its permanent connections; `None` for another node, or while it is down.
    pub fn switch_mut(&mut self, node: NodeId) -> Option<&mut Switch> {
        match &mut self.nodes.get_mut(node.0)?.machine {
            Some(Machine::Switch(switch)) => Some(switch),
            _ => None,
        }
    }

    /// All nodes by number.
    pub fn machines(&self) -> impl Iterator<Item = (NodeId, &str, Option<&Machine>)> {
        self.nodes
            .iter()
            .enumerate()
            .map(|(id, node)| (NodeId(id), node.name.as_str(), node.machine.as_ref()))
    }

    /// Number of calls, at all switches together.
    #[must_use]
    pub fn calls(&self) -> usize {
        self.nodes
            .iter()
            .map(|node| match &node.machine {
                Some(Machine::Switch(switch)) => switch.calls().count(),
                Some(Machine::Station(_) | Machine::Outside(_)) | None => 0,
            })
            .sum()
    }

    /// Makes the switches release their remaining calls: those between two ends outside the lab, and those of hosts
    /// that do not answer.
    pub fn clear_calls(&mut self, now: Instant) {
        let now = self.advance(now);
        for node in 0..self.nodes.len() {
            if let Some(Machine::Switch(switch)) = &mut self.nodes[node].machine {
                let Ok(()) = switch.handle_input(switch::Input::Clear, now);
                self.settle(node);
            }
        }
    }

    /// The conditions that are missing before the lab can be used, in words.
    #[must_use]
    pub fn waits_for(&self) -> Vec<String> {
        let mut missing = Vec::new();
        for (number, node) in self.nodes.iter().enumerate() {
            let name = &node.name;
            match &node.machine {
                None => missing.push(format!("{name} to start")),
                Some(Machine::Switch(switch)) => {
                    let inside = |port: &PortNo| {
                        let line = node.lines.get(usize::from(port.0));
                        line.is_none_or(|line| self.outside(self.lines[*line].to.0).is_none())
                    };
                    let down = switch
                        .port_infos()
                        .filter(|port| port.phase != Phase::Ready && inside(&port.port));
                    missing.extend(
                        down.map(|port| format!("signalling between {name} and {}", port.name)),
                    );
                }
                Some(Machine::Station(station)) => {
                    let waits = station.host().waits().into_iter();
                    missing.extend(waits.filter_map(|waits| match waits {
                        Waits::Elan(n) => {
                            let why = station.host().why_down(n);
                            let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
                            Some(format!("lec{n} of {name} to join its ELAN{why}"))
                        }
                        Waits::Clip(n) if node.servers_inside.contains(&n) => Some(format!(
                            "lec{n} of {name} to register with its ATMARP server"
                        )),
                        Waits::Nhrp if node.nhs_inside => {
                            Some(format!("{name} to register with its NHRP server"))
                        }
                        // The lab cannot know whether a server outside is present.
                        Waits::Clip(_) | Waits::Nhrp => None,
                    }));
                    let unreached = self.starts.members().unreached(NodeId(number));
                    missing.extend(unreached.map(|n| format!("the BUS to reach lec{n} of {name}")));
                }
                // The lab cannot know whether there is a peer.
                Some(Machine::Outside(_)) => {}
            }
        }
        missing
    }

    /// Causes or ends a fault.
    pub fn fault(&mut self, lab: &Lab, builder: &Builder<'_>, what: FaultKind, now: Instant) {
        let now = self.advance(now);
        match what {
            FaultKind::Crash(node, None) => self.crash(node.0, now),
            FaultKind::Restart(node, None) => {
                self.crash(node.0, now);
                let life = self.nodes[node.0].life + 1;
                self.nodes[node.0].life = life;
                self.nodes[node.0].since = now;
                self.nodes[node.0].machine = make(lab, builder, node, life, now);
                self.keep_books_at(node.0);
                self.starts.again(lab, node);
                self.start_again(node.0, now);
                self.reroute();
            }
            FaultKind::Crash(node, Some(service)) => {
                self.command(node, HostCommand::Crash(service.into()), now);
            }
            FaultKind::Restart(node, Some(service)) => {
                self.command(node, HostCommand::Restart(service.into()), now);
            }
            FaultKind::LinkDown(link) => self.cut(link, true, now),
            FaultKind::LinkUp(link) => self.cut(link, false, now),
        }
    }

    /// True if a fault has cut this link.
    #[must_use]
    pub fn is_cut(&self, link: LinkId) -> bool {
        self.cut.contains(&link.0)
    }

    fn crash(&mut self, node: usize, now: Instant) {
        self.lose_all_of(node);
        if let Some(Machine::Station(station)) = &self.nodes[node].machine {
            let life = Life::of(NodeId(node), station).map(Box::new);
            self.out.extend(life.map(Output::Life));
        }
        self.starts.off(NodeId(node));
        self.nodes[node].machine = None;
        self.settle(node);
        for line in self.nodes[node].lines.clone() {
            self.agenda.set(self.nodes.len() + line, None);
            // The peer sees that the line is dead.
            if self.lines[line].up {
                self.set_link(LinkId(line / 2), false, now);
            }
        }
    }

    /// True if a link is not cut, and both its ends are switched on.
    fn is_whole(&self, link: usize) -> bool {
        let ends = [2 * link, 2 * link + 1].map(|line| self.lines[line].from.0);
        let on = |node: usize| match &self.nodes[node].machine {
            Some(Machine::Outside(outside)) => outside.connected,
            Some(Machine::Station(_) | Machine::Switch(_)) => true,
            None => false,
        };
        !self.cut.contains(&link) && ends.into_iter().all(on)
    }

    /// A node starts again: its links come up, and then its peers notice it. A starting node assumes that its links are
    /// up.
    fn start_again(&mut self, node: usize, now: Instant) {
        let lines = self.nodes[node].lines.clone();
        let whole: Vec<usize> = lines
            .into_iter()
            .filter(|line| self.is_whole(line / 2))
            .collect();
        for line in &whole {
            self.set_lines(line / 2, true, now);
        }
        self.start_node(node, now);
        for line in whole {
            self.tell_link(self.lines[line].to, true, now);
        }
    }

    /// The far end `node`, if it is outside the lab.
    fn outside(&self, node: usize) -> Option<&Outside> {
        match &self.nodes[node].machine {
            Some(Machine::Outside(outside)) => Some(outside),
            _ => None,
        }
    }

    fn cut(&mut self, link: LinkId, cut: bool, now: Instant) {
        if cut {
            self.cut.insert(link.0);
        } else {
            self.cut.remove(&link.0);
        }
        self.set_link(link, self.is_whole(link.0), now);
    }

    /// The far end of a link out of the lab has connected or disconnected.
    pub fn outside_link(&mut self, node: NodeId, connected: bool, now: Instant) {
        let now = self.advance(now);
        let Some(Machine::Outside(outside)) = &mut self.nodes[node.0].machine else {
            return;
        };
        outside.connected = connected;
        for line in self.nodes[node.0].lines.clone() {
            self.set_link(LinkId(line / 2), self.is_whole(line / 2), now);
        }
    }

    /// Cells from the far end of a link out of the lab.
    pub fn outside_cells(&mut self, node: NodeId, run: CellRun, now: Instant) {
        let now = self.advance(now);
        let Some(&line) = self.nodes[node.0].lines.first() else {
            return;
        };
        let reason = (!self.lines[line].up).then_some(DropReason::LinkDown);
        self.captures
            .packet(End::sender(line), Direction::Sent, &run, reason, now);
        if let Some(cause) = self.lines[line].take(run.count) {
            self.lose(self.place_on(line, cause), &run, now);
            return;
        }
        self.arrive(line, run, now);
    }

    fn set_link(&mut self, link: LinkId, up: bool, now: Instant) {
        self.set_lines(link.0, up, now);
        for line in [2 * link.0, 2 * link.0 + 1] {
            self.tell_link(self.lines[line].from, up, now);
        }
    }

    /// The two directions of a link work, or lose their cells.
    fn set_lines(&mut self, link: usize, up: bool, now: Instant) {
        for line in [2 * link, 2 * link + 1] {
            self.lines[line].up = up;
            let gone = std::mem::take(&mut self.lines[line].on_the_way);
            for (_, run) in gone {
                self.lines[line].counters.down += u64::from(run.count);
                self.lose(self.place_on(line, Cause::Cut), &run, now);
            }
        }
    }

    /// Tells an end of a link whether it works.
    fn tell_link(&mut self, (node, port): (usize, u16), up: bool, now: Instant) {
        match &mut self.nodes[node].machine {
            Some(Machine::Station(station)) => station.set_link(up, now),
            Some(Machine::Switch(switch)) => {
                let Ok(()) = switch.handle_input(switch::Input::Link(PortNo(port), up), now);
            }
            Some(Machine::Outside(_)) | None => {}
        }
        self.settle(node);
        self.look_at_port(node, port);
    }

    fn node_due(&mut self, node: usize, now: Instant) {
        match &mut self.nodes[node].machine {
            Some(Machine::Station(station)) => station.handle_timeout(now),
            Some(Machine::Switch(switch)) => switch.handle_timeout(now),
            Some(Machine::Outside(_)) | None => {}
        }
        self.settle(node);
    }

    /// Handles the outputs of a node, and updates its deadlines.
    fn settle(&mut self, node: usize) {
        let (id, time) = (NodeId(node), self.time);
        let mut touched = Vec::new();
        let mut news = false;
        let deadline = match &mut self.nodes[node].machine {
            Some(Machine::Outside(_)) | None => None,
            Some(Machine::Station(station)) => {
                while let Some(event) = station.poll_event() {
                    self.out.push_back(match event {
                        StationEvent::Joined { itf, joined } => {
                            self.starts.joined(id, itf, joined);
                            continue;
                        }
                        StationEvent::Reaches { address, reached } => {
                            self.starts.reaches(id, address, reached);
                            continue;
                        }
                        StationEvent::Frame { itf, frame } => Output::Frame {
                            node: id,
                            itf,
                            frame,
                        },
                        StationEvent::Sample(sample) => Output::Sample(sample),
                        StationEvent::Finished(app, result) => Output::Finished(id, app, result),
                        StationEvent::Daemon(role, frame) => Output::Daemon(id, role, frame),
                        StationEvent::Lost(cause, head) => {
                            let spot = Spot::Node(id.0);
                            Output::Lost(Place { spot, cause }, time, head)
                        }
                        StationEvent::Socket(event) => Output::Socket(id, time, event),
                        StationEvent::Trace(trace) => Output::Trace(id, time, trace),
                    });
                }
                touched.push(0);
                station.poll_timeout()
            }
            Some(Machine::Switch(switch)) => {
                while let Some(output) = switch.poll_output() {
                    match output {
                        switch::Output::Touched(port) => touched.push(port.0),
                        switch::Output::Usable(port, usable) => {
                            news |= self.routing.report(id, port, usable);
                        }
                        switch::Output::Trace(trace) => {
                            self.out.push_back(Output::Trace(id, time, trace));
                        }
                    }
                }
                switch.poll_timeout()
            }
        };
        self.agenda.set(node, deadline);
        for port in touched {
            self.look_at_port(node, port);
        }
        if news {
            self.reroute();
        }
        if self.starts.has_news() {
            self.start_ready();
        }
    }

    /// Gives every switch its current routes.
    fn reroute(&mut self) {
        let time = self.time;
        for id in self.routing.switches().collect::<Vec<_>>() {
            let routes = self.routing.routes(id);
            let Some(switch) = self.switch_mut(id) else {
                continue;
            };
            for (prefix, ways) in routes {
                switch.routes_mut().set_prefix(&prefix, ways);
            }
            let Ok(()) = switch.handle_input(switch::Input::Rerouted, time);
            self.settle(id.0);
        }
    }

    fn port(&mut self, node: usize, port: u16) -> Option<&mut OutputPort> {
        match &mut self.nodes[node].machine {
            Some(Machine::Station(station)) => Some(station.nic_mut().output_mut()),
            Some(Machine::Switch(switch)) => switch.fabric_mut().output_mut(port),
            Some(Machine::Outside(_)) | None => None,
        }
    }

    /// The next departure of a port may have changed.
    fn look_at_port(&mut self, node: usize, port: u16) {
        self.tell_drops(node, port);
        let Some(&line) = self.nodes[node].lines.get(usize::from(port)) else {
            return;
        };
        let at = self.port(node, port).and_then(|port| port.next_departure());
        let key = self.nodes.len() + line;
        self.agenda.set(key, at);
    }

    fn departures(&mut self, line: usize, now: Instant) {
        let (node, port) = self.lines[line].from;
        let departure = self
            .port(node, port)
            .and_then(|port| port.pop(now, u16::MAX));
        self.look_at_port(node, port);
        if let Some(departure) = departure {
            self.depart(line, departure, now);
        }
    }

    fn depart(&mut self, line: usize, departure: Departure, now: Instant) {
        let (run, start) = (departure.run, departure.start);
        let reason = (!self.lines[line].up).then_some(DropReason::LinkDown);
        self.captures
            .packet(End::sender(line), Direction::Sent, &run, reason, start);
        if let Some(cause) = self.lines[line].take(run.count) {
            return self.lose(self.place_on(line, cause), &run, now);
        }
        let on = &mut self.lines[line];
        let arrival = departure.start + on.delay;
        if arrival <= now && on.on_the_way.is_empty() {
            return self.arrive(line, run, now);
        }
        on.on_the_way.push_back((arrival, run));
        self.look_at_arrivals(line);
    }

    fn look_at_arrivals(&mut self, line: usize) {
        let at = self.lines[line].on_the_way.front().map(|(at, _)| *at);
        let key = self.nodes.len() + self.lines.len() + line;
        self.agenda.set(key, at);
    }

    fn arrivals(&mut self, line: usize, now: Instant) {
        let due = self.lines[line]
            .on_the_way
            .pop_front_if(|(at, _)| *at <= now);
        self.look_at_arrivals(line);
        if let Some((_, run)) = due {
            self.arrive(line, run, now);
        }
    }

    fn arrive(&mut self, line: usize, run: CellRun, now: Instant) {
        let (node, port) = self.lines[line].to;
        let probe = self.probe(line, &run);
        self.lines[line].counters.delivered += u64::from(run.count);
        match &mut self.nodes[node].machine {
            Some(Machine::Station(station)) => station.receive(run, now),
            Some(Machine::Switch(switch)) => {
                let Ok(()) = switch.handle_input(switch::Input::Cells(PortNo(port), run), now);
            }
            Some(Machine::Outside(_)) => {
                if let Some(mark) = run.pdu().and_then(Pdu::mark) {
                    let left = SocketEvent::Left(mark);
                    self.out.push_back(Output::Socket(NodeId(node), now, left));
                }
                self.out.push_back(Output::Outside(NodeId(node), run));
            }
            None => self.lose(books::off(node), &run, now),
        }
        self.tell_discards(node);
        if let Some(probe) = probe {
            self.record(probe, now);
        }
        self.settle(node);
    }
}

/// Interfaces of a node that are on a Classical IP subnet with a server in the lab.
fn servers_inside(lab: &Lab, node: &model::Node) -> BTreeSet<usize> {
    let lecs = node.lecs().iter().enumerate();
    let with_server = lecs.filter(|(_, lec)| {
        let lis = lab.elan(lec.elan).clip.as_ref();
        lis.is_some_and(|lis| lis.server.is_some())
    });
    with_server.map(|(n, _)| n).collect()
}

fn nhs_inside(lab: &Lab, node: &model::Node) -> bool {
    let NodeKind::Host(host) = &node.kind else {
        return false;
    };
    let server = host.nhrp.as_ref().map(|nhc| nhc.server.0);
    let mut lecs = lab.nodes().flat_map(|(_, node)| node.lecs());
    lecs.any(|lec| Some(lec.ip) == server)
}

fn make(lab: &Lab, builder: &Builder<'_>, id: NodeId, life: u32, now: Instant) -> Option<Machine> {
    if let Some(switch) = builder.switch(id, life) {
        return Some(Machine::Switch(Box::new(switch)));
    }
    if matches!(lab.node(id).kind, NodeKind::Outside(_)) {
        return Some(Machine::Outside(Outside::default()));
    }
    let host = builder.host(id, life, now)?;
    let link = lab.link(lab.node(id).attachment()?.link);
    let station = Station::new(host, link.rate);
    Some(Machine::Station(Box::new(station)))
}
