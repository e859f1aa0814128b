//! A lab from its first event to its last, as in `aerostat run`.

use crate::capture::Capture;
use crate::lab_world;
use crate::node::{Observer, Packet, PassedCell};
use crate::nodes::{LabEvent, LabNode};
use crate::world::{LinkEnd, LinkId, NodeId, World};
use aerostat_lab::Lab;
use aerostat_lab::build::{Builder, Flavour, programs};
use aerostat_lab::circuits;
use aerostat_lab::dialogues::{self, Life, Past};
use aerostat_lab::event::{self, Event, Names};
use aerostat_lab::ladder::Message;
use aerostat_lab::model::{self, FaultKind};
use aerostat_lab::report::{self, Met, RunReport};
use aerostat_lab::starts::{self, Starts};
use aerostat_node::atm::DataUnit;
use aerostat_node::host::HostCommand;
use aerostat_node::ip::apps::{AppCommand, AppResult};
use aerostat_node::ip::books::{Cause, Place, Spot};
use aerostat_node::ip::flow_stats::{Census, FlowStats};
use aerostat_proto::{Duration, Instant, Trace};
use aerostat_wire::pcapng::Direction;
use aerostat_wire::summary;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;

/// Events between two calls of [`Watcher::interrupted`]. In a large lab, a tenth of a virtual second takes many real
/// seconds.
const EVENTS: u32 = 1024;

/// A listener to a running lab.
pub trait Watcher {
    /// A node reported an event.
    fn event(&mut self, event: &Event);
    /// Virtual time has reached `now`; called about every tenth of a virtual second.
    fn progress(&mut self, now: Instant, end: Instant) {
        let _ = (now, end);
    }
    /// True to end the run early; called at least every 1024 events, and every tenth of a virtual second.
    fn interrupted(&self) -> bool {
        false
    }
    /// True to get every [`Self::message`].
    fn wants_messages(&self) -> bool {
        false
    }
    /// A message of a protocol was sent on a link, or dropped in front of it. Messages come in the order of time, but
    /// not exactly in order with events.
    fn message(&mut self, message: &Message) {
        let _ = message;
    }
}

/// No listener.
impl Watcher for () {
    fn event(&mut self, _event: &Event) {}
}

/// A lab being run.
pub struct LabRun<'a> {
    lab: &'a Lab,
    builder: Builder<'a>,
    world: World<LabNode>,
    /// Number of power-ups of each node.
    lives: Vec<u32>,
    /// True if all links are tapped.
    tapped: bool,
    /// Number of the lab's faults that have happened.
    faulted: usize,
    seen: Seen<'a>,
}

/// Data collected during the run.
struct Seen<'a> {
    lab: &'a Lab,
    watcher: &'a mut dyn Watcher,
    stats: FlowStats,
    /// Counts of programs of hosts that were switched off.
    past: Past,
    starts: Starts,
    /// Events since the watcher was asked whether the run is to end.
    unasked: u32,
    /// The run is to end.
    stop: bool,
    finished: Vec<(usize, &'static str, AppResult)>,
    /// Bounds that were met.
    met: Met,
    captures: Vec<Capture<BufWriter<File>>>,
    /// Names for the texts of messages, if the watcher wants messages.
    names: Option<Names>,
    /// First error of a capture file; the run continues without captures then.
    error: Option<io::Error>,
}

impl Observer<LabEvent> for Seen<'_> {
    fn trace(&mut self, node: NodeId, trace: Trace, now: Instant) {
        let name = &self.lab.nodes[node.0].name;
        self.met.hear(name, &trace);
        self.watcher.event(&Event::new(now, name, &trace));
    }
    fn event(&mut self, node: NodeId, event: LabEvent, now: Instant) {
        match event {
            LabEvent::Sample(sample) => self.stats.record(&sample),
            LabEvent::Finished(app, result) => {
                let role = if app.0.is_multiple_of(2) {
                    "from"
                } else {
                    "to"
                };
                self.finished.push((app.0 as usize / 2, role, result));
            }
            LabEvent::Lost(cause, head) => {
                let spot = Spot::Node(node.0);
                self.stats.lost(head.view(), Place { spot, cause }, now);
            }
            LabEvent::Socket(event) => self.stats.socket(node.0, event, now),
            LabEvent::Joined { itf, joined } => {
                self.starts.joined(model::NodeId(node.0), itf, joined);
            }
            LabEvent::Reaches { address, reached } => {
                self.starts.reaches(model::NodeId(node.0), address, reached);
            }
        }
    }
    fn lost(&mut self, place: Place, unit: DataUnit<'_>, at: Instant) {
        self.stats.lost(unit, place, at);
    }
    fn interrupts(&mut self) -> bool {
        // The rest of the moment at which the run ends happens without a break.
        if self.stop {
            return false;
        }
        self.unasked += 1;
        if self.unasked >= EVENTS {
            self.unasked = 0;
            self.stop = self.watcher.interrupted();
        }
        self.stop || self.starts.has_news()
    }
    fn packet(&mut self, packet: &Packet<'_>) {
        self.message(packet);
        self.record(|capture| capture.packet(packet));
    }
    fn cell(&mut self, cell: &PassedCell<'_>) {
        self.record(|capture| capture.cell(cell));
    }
}

impl Seen<'_> {
    fn record(&mut self, mut write: impl FnMut(&mut Capture<BufWriter<File>>) -> io::Result<()>) {
        for capture in &mut self.captures {
            if let Err(error) = write(capture) {
                self.error.get_or_insert(error);
            }
        }
        if self.error.is_some() {
            self.captures.clear();
        }
    }

    /// Passes a message to the watcher where it is sent, if the watcher wants messages.
    fn message(&mut self, packet: &Packet<'_>) {
        let (vc, sdu) = (packet.vc, packet.pdu.sdu());
        let Some(names) = &self.names else { return };
        if packet.direction != Direction::Sent || !summary::is_control(vc, sdu) {
            return;
        }
        let here = |end: &model::LinkEnd| {
            end.node.0 == packet.end.node.0 && end.port == usize::from(packet.end.port)
        };
        let place = self.lab.links.iter().enumerate().find_map(|(link, model)| {
            let side = model.ends.iter().position(here)?;
            Some((model::LinkId(link), side))
        });
        let Some(place) = place else { return };
        let mut message = Message::new(self.lab, names, place, packet.at, (vc, sdu));
        message.dropped = packet.dropped.map(|reason| reason.text().to_owned());
        self.watcher.message(&message);
    }
}

impl<'a> LabRun<'a> {
    /// All nodes built and switched on at time zero, all links plugged in, all programs scheduled.
    #[must_use]
    pub fn new(lab: &'a Lab, watcher: &'a mut dyn Watcher) -> Self {
        let builder = Builder::new(lab, lab.seed, Flavour::Embedded);
        let mut world = lab_world::build(lab, lab.seed);
        if lab.keeps_books() {
            world.keep_books();
        }
        let stats = FlowStats::new(builder.flows());
        let (finished, captures) = (Vec::new(), Vec::new());
        let names = watcher.wants_messages().then(|| Names::new(lab));
        let traced = names.is_some();
        let seen = Seen {
            lab,
            watcher,
            stats,
            past: Past::default(),
            starts: Starts::new(lab),
            unasked: 0,
            stop: false,
            finished,
            met: Met::default(),
            captures,
            names,
            error: None,
        };
        let mut run = Self {
            lab,
            builder,
            world,
            lives: vec![0; lab.nodes.len()],
            tapped: false,
            faulted: 0,
            seen,
        };
        if traced {
            run.tap();
        }
        run
    }

    /// Records every link end: one pcapng file per node, one interface per link end. With `cells` it records single
    /// cells instead of whole PDUs.
    ///
    /// # Errors
    /// If a file cannot be made.
    pub fn capture_into(&mut self, directory: &Path, cells: bool) -> io::Result<()> {
        std::fs::create_dir_all(directory)?;
        for (id, node) in self.lab.nodes() {
            let file = File::create(directory.join(format!("{}.pcapng", node.name)))?;
            let comment = format!(
                "lab {}, node {}, seed {}",
                self.lab.name, node.name, self.lab.seed
            );
            let mut capture = Capture::new(BufWriter::new(file), &comment)?.of_cells(cells);
            for link in &self.lab.links {
                for end in link.ends.iter().filter(|end| end.node == id) {
                    let end = LinkEnd {
                        node: NodeId(id.0),
                        port: end.port as u16,
                    };
                    capture.add(end, &format!("{}:{}", node.name, link.name), false)?;
                }
            }
            self.seen.captures.push(capture);
        }
        self.watch(cells);
        Ok(())
    }

    /// Records the links of `capture:` of the lab file into one pcapng file, one interface per link. With `cells` it
    /// records single cells instead of whole PDUs.
    ///
    /// # Errors
    /// If the file cannot be made.
    pub fn record(&mut self, path: &Path, cells: bool) -> io::Result<()> {
        let comment = format!("lab {}, seed {}", self.lab.name, self.lab.seed);
        let file = BufWriter::new(File::create(path)?);
        let mut capture = Capture::new(file, &comment)?.of_cells(cells);
        for &link in &self.lab.capture {
            let link = self.lab.link(link);
            let ends = link.ends.map(|end| LinkEnd {
                node: NodeId(end.node.0),
                port: end.port as u16,
            });
            let [from, to] = link.ends.map(|end| &*self.lab.node(end.node).name);
            let about = format!(
                "{from} port {} and {to} port {}; sent is from {from}",
                link.ends[0].port, link.ends[1].port
            );
            capture.add_link(ends, &link.name, &about)?;
        }
        self.seen.captures.push(capture);
        self.watch(cells);
        Ok(())
    }

    /// Taps all links for a capture.
    fn watch(&mut self, cells: bool) {
        if !cells {
            return self.tap();
        }
        for link in 0..self.lab.links.len() {
            self.world.tap_cells(LinkId(link));
        }
    }

    /// Taps all links, unless they are tapped already.
    fn tap(&mut self) {
        if !std::mem::replace(&mut self.tapped, true) {
            for link in 0..self.lab.links.len() {
                self.world.tap(LinkId(link));
            }
        }
    }

    /// The world, for tests and tools that inspect it.
    #[must_use]
    pub fn world(&self) -> &World<LabNode> {
        &self.world
    }

    /// Limits the number of events, because a lab may ask for more than any machine can do.
    pub fn limit_events(&mut self, most: u64) {
        self.world.limit_events(most);
    }

    /// True if the run has used up its events (see [`Self::limit_events`]); then its time stands still.
    #[must_use]
    pub fn exhausted(&self) -> bool {
        self.world.exhausted()
    }

    /// Switches all nodes on and starts the lab's programs.
    pub fn start(&mut self) {
        lab_world::power_on(&mut self.world, self.lab, &self.builder, &mut self.seen);
        self.start_programs(None);
        self.start_ready();
    }

    /// Starts the programs of a node, or of all nodes in their order.
    fn start_programs(&mut self, of: Option<model::NodeId>) {
        let mut all = programs(self.lab);
        all.retain(|(node, _, spec)| {
            of.is_none_or(|id| id == *node) && !self.seen.starts.holds_back(spec)
        });
        all.sort_by_key(|(node, _, _)| node.0);
        for (node, behind, spec) in all {
            self.command(node, HostCommand::app(behind, AppCommand::Start(spec)));
        }
    }

    /// Passes a command to an end system; nothing happens if it is off, or is a switch.
    pub fn command(&mut self, id: model::NodeId, command: HostCommand) {
        let id = NodeId(id.0);
        self.world
            .with_node(id, &mut self.seen, |node, now| node.command(command, now));
    }

    /// Runs to `until`, with the faults of the lab at their times, unless the watcher ends the run.
    pub fn run_until(&mut self, until: Instant) {
        const STEP: Duration = Duration::from_millis(100);
        let lab = self.lab;
        while !self.seen.stop && !self.world.exhausted() {
            let now = self.world.now();
            let fault = lab.faults.get(self.faulted);
            let fault = fault.map(|fault| (Instant::ZERO + fault.at, fault.what));
            let fault = fault.filter(|(at, _)| *at <= (now + STEP).min(until));
            if let Some((at, what)) = fault {
                self.step(at);
                if !self.seen.stop && self.world.now() >= at {
                    self.faulted += 1;
                    self.fault(what);
                }
            } else if now < until {
                self.step((now + STEP).min(until));
            } else {
                return;
            }
            self.seen.watcher.progress(self.world.now(), until);
            self.seen.stop |= self.seen.watcher.interrupted();
        }
    }

    /// Runs to `until`. Traffic that waits for its hosts starts at the moment when they have joined.
    fn step(&mut self, until: Instant) {
        loop {
            self.world.run_until(until, &mut self.seen);
            if self.seen.stop {
                // What belongs to this moment still happens, so that all parts have come equally far.
                return self.world.run_until(self.world.now(), &mut self.seen);
            }
            if !self.seen.starts.has_news() {
                return;
            }
            self.start_ready();
        }
    }

    /// Starts traffic whose hosts have joined now.
    fn start_ready(&mut self) {
        let (lab, now) = (self.lab, self.world.now());
        for (node, behind, spec) in self.seen.starts.ready(lab, now) {
            let trace = starts::told(lab, &spec);
            self.seen.trace(NodeId(node.0), trace, now);
            self.command(node, HostCommand::app(behind, AppCommand::Start(spec)));
        }
    }

    /// When the run ends by default: like [`Lab::end`], counted from the actual start of each flow.
    #[must_use]
    pub fn end(&self) -> Instant {
        self.seen.starts.end(self.lab)
    }

    /// Switches a node off.
    fn power_off(&mut self, node: model::NodeId) {
        let (id, now) = (NodeId(node.0), self.world.now());
        let station = self.world.node(id).and_then(LabNode::as_station);
        if let Some(life) = station.and_then(|station| Life::of(node, station)) {
            self.seen.past.keep(life, &mut self.seen.stats);
        }
        self.world.power_off(id, &mut self.seen);
        self.seen.starts.off(node);
        let (spot, cause) = (Spot::Node(node.0), Cause::Off);
        for address in self.lab.addresses_of(node) {
            let place = Place { spot, cause };
            self.seen.stats.host_off(address, place, now);
        }
    }

    /// Causes or ends a fault now.
    pub fn fault(&mut self, what: FaultKind) {
        let (node, trace) = event::of_fault(self.lab, what);
        self.seen.trace(NodeId(node.0), trace, self.world.now());
        match what {
            FaultKind::Crash(node, None) => self.power_off(node),
            FaultKind::Restart(node, None) => {
                self.power_off(node);
                self.lives[node.0] += 1;
                let (id, life, now) = (NodeId(node.0), self.lives[node.0], self.world.now());
                let fresh = lab_world::machine(self.lab, &self.builder, id, life, now);
                if let Some(fresh) = fresh {
                    self.world.power_on(id, fresh, &mut self.seen);
                }
                self.seen.starts.again(self.lab, node);
                self.start_programs(Some(node));
            }
            FaultKind::Crash(node, Some(service)) => {
                self.command(node, HostCommand::Crash(service.into()));
            }
            FaultKind::Restart(node, Some(service)) => {
                self.command(node, HostCommand::Restart(service.into()));
            }
            FaultKind::LinkDown(link) => self.world.set_cut(LinkId(link.0), true, &mut self.seen),
            FaultKind::LinkUp(link) => self.world.set_cut(LinkId(link.0), false, &mut self.seen),
        }
    }

    /// Ends the run.
    ///
    /// # Errors
    /// If a capture file could not be written.
    pub fn finish(self) -> io::Result<RunReport> {
        let (report, captured) = self.finish_both();
        captured.map(|()| report)
    }

    /// Ends the run: its results, and whether all captures could be written.
    pub fn finish_both(mut self) -> (RunReport, io::Result<()>) {
        let mut captured = self.seen.error.take().map_or(Ok(()), Err);
        for capture in self.seen.captures.drain(..) {
            let finished = capture.finish().map(drop);
            captured = captured.and(finished);
        }
        let end = self.world.now();
        self.world.settle_books(&mut self.seen);
        let mut census = Census::default();
        let stats = &self.seen.stats;
        self.world
            .census(&mut |unit| stats.note_held(unit, &mut census));
        let flows = stats.report_with(end, Some(&census));
        let (starts, past) = (&self.seen.starts, &self.seen.past);
        let circuits = circuits::read(self.lab, &self.world);
        let report = RunReport {
            end,
            flows,
            dialogues: dialogues::read(self.lab, &self.world, past, stats, &census),
            failed_programs: dialogues::failed(self.lab, &self.world, past),
            circuits,
            nodes: report::nodes(self.lab, &self.world),
            began: starts.began(self.lab),
            not_joined: report::not_joined(self.lab, |id| starts.members().ever_joined(id)),
            limits: self.seen.met.texts(&Names::new(self.lab)),
            not_due: Vec::new(),
            programs: self.seen.finished,
        };
        (report, captured)
    }
}

/// The recordings of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Recording<'a> {
    /// Directory for one pcapng file per node.
    pub nodes: Option<&'a Path>,
    /// File for the links of `capture:` of the lab file.
    pub links: Option<&'a Path>,
    /// True for single cells, false for whole PDUs.
    pub cells: bool,
}

/// Runs a lab from start to end; `captures` is a directory for one pcapng file per node.
///
/// # Errors
/// If a capture file cannot be written.
pub fn run(lab: &Lab, captures: Option<&Path>, watcher: &mut dyn Watcher) -> io::Result<RunReport> {
    let recording = Recording {
        nodes: captures,
        links: None,
        cells: false,
    };
    let (report, captured) = run_and_record(lab, recording, watcher)?;
    captured.map(|()| report)
}

/// Like [`run`], with other recordings.
///
/// # Errors
/// If a capture file cannot be written.
pub fn run_and_record(
    lab: &Lab,
    recording: Recording<'_>,
    watcher: &mut dyn Watcher,
) -> io::Result<(RunReport, io::Result<()>)> {
    let mut running = LabRun::new(lab, watcher);
    if let Some(directory) = recording.nodes {
        running.capture_into(directory, recording.cells)?;
    }
    if let Some(file) = recording.links.filter(|_| !lab.capture.is_empty()) {
        running.record(file, recording.cells)?;
    }
    running.start();
    loop {
        let end = running.end();
        running.run_until(end);
        let stopped = running.world.exhausted() || running.seen.stop;
        // A flow that has started in the meantime may have moved the end.
        if stopped || running.end() <= end {
            return Ok(running.finish_both());
        }
    }
}
