//! A lab from its first event to its last, as in `aerostat run`.

mod following;

use crate::capture::Capture;
use crate::follow::{Followed, PacketId, Recorder, Sought};
use crate::lab_world;
use crate::observer::{Observer, Packet, PassedCell};
use crate::world::{Observed, World};
use aerostat_lab::Lab;
use aerostat_lab::build::{Builder, Flavour};
use aerostat_lab::event::{self, Event, Names};
use aerostat_lab::files::{self, Named};
use aerostat_lab::ladder::Message;
use aerostat_lab::model::FaultKind;
use aerostat_lab::occupancy::Sampler;
use aerostat_lab::plant::faults::Faults;
use aerostat_lab::plant::ledger::Ledger;
use aerostat_lab::plant::{Driver as _, LabEvent, LabNode, LinkId, NodeId, Operation};
use aerostat_lab::report::{Extent, RunReport, Work};
use aerostat_lab::stream;
use aerostat_node::atm::DataUnit;
use aerostat_node::host::{HostCommand, HostEvent};
use aerostat_node::ip::books::Place;
use aerostat_proto::{Duration, Instant, Trace};
use aerostat_wire::pcapng::Direction;
use aerostat_wire::summary;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;

/// Events between two calls of [`Watcher::interrupted`]. In a large lab, a tenth of a virtual second takes many real
/// seconds.
const EVENTS: u32 = 1024;

/// Most events of a moment that still happen when the run is interrupted.
const MOMENT: u32 = 10_000_000;

/// A listener to a running lab.
pub trait Watcher {
    /// A node reported an event.
    fn event(&mut self, event: &Event);
    /// False for a trace event that [`Self::event`] would pass over.
    fn hears(&self, trace: &Trace) -> bool {
        let _ = trace;
        true
    }
    /// Virtual time has reached `now`; called about every tenth of a virtual second.
    fn progress(&mut self, now: Instant, end: Instant) {
        let _ = (now, end);
    }
    /// The captures have this many octets so far; called before [`Self::progress`], if anything is captured.
    fn recorded(&mut self, octets: u64) {
        let _ = octets;
    }
    /// Events and cells of the run, at its end.
    fn worked(&mut self, work: &Work) {
        let _ = work;
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
    fn hears(&self, _trace: &Trace) -> bool {
        false
    }
}

/// A lab being run.
pub struct LabRun<'a> {
    lab: &'a Lab,
    builder: Builder<'a>,
    world: World<LabNode>,
    /// True if all links are tapped.
    tapped: bool,
    faults: Faults,
    sampler: Sampler,
    seen: Seen<'a>,
    /// How much the report has of the state at the end.
    extent: Extent,
}

/// Data collected during the run.
struct Seen<'a> {
    lab: &'a Lab,
    watcher: &'a mut dyn Watcher,
    ledger: Ledger,
    /// Events since the watcher was asked whether the run is to end.
    unasked: u32,
    /// The run is to end.
    stop: bool,
    captures: Vec<Capture<BufWriter<File>>>,
    /// Names for the texts of messages, if the run records messages.
    names: Option<Names>,
    /// Packets that are followed, if there are any.
    recorder: Option<Box<Recorder>>,
    /// The ways of packets that have ended.
    followed: Vec<Followed>,
    /// A packet that is sought, and what is known of it.
    sought: Option<(PacketId, Sought)>,
    /// The stream of events, if it is recorded.
    stream: Option<stream::Recorder<'a>>,
    /// First error of a capture file; the run continues without captures then.
    error: Option<io::Error>,
}

impl Observer<LabEvent> for Seen<'_> {
    fn trace(&mut self, node: NodeId, trace: Trace, now: Instant) {
        let name = &self.lab.nodes[node.0].name;
        self.ledger.met.hear(name, &trace);
        if let Some(stream) = &mut self.stream {
            stream.story(now, name, &trace);
        }
        if self.watcher.hears(&trace) {
            self.watcher.event(&Event::new(now, name, &trace));
        }
    }
    fn event(&mut self, node: NodeId, event: LabEvent, now: Instant) {
        let LabEvent::Host(event) = event else {
            return;
        };
        let Some(event) = self.follow(node, event, now) else {
            return;
        };
        // The other events are for a kernel, a process or a peer outside, which do not exist in virtual time.
        if let Some(HostEvent::Finished(app, result)) = self.ledger.take(node, event, now) {
            let sends = app.0.is_multiple_of(2);
            let flow = self.ledger.finished(self.lab, app, result);
            if let (Some(stream), Some(flow), true) = (&mut self.stream, flow, sends) {
                stream.traffic(now, flow, "ended");
            }
        }
    }
    fn lost(&mut self, place: Place, unit: DataUnit<'_>, at: Instant) {
        if let Some(recorder) = &mut self.recorder {
            recorder.lost(place, unit, at);
        }
        self.ledger.lost(place, unit, at);
    }
    fn interrupts(&mut self) -> bool {
        self.unasked = self.unasked.saturating_add(1);
        // The rest of the moment at which the run ends happens without a break, unless it has no end.
        if self.stop {
            return self.unasked > MOMENT;
        }
        if self.unasked >= EVENTS {
            self.unasked = 0;
            self.stop = self.watcher.interrupted();
        }
        let recorder = self.recorder.as_ref();
        self.stop |= recorder.is_some_and(|recorder| recorder.is_done());
        self.stop
            || self.ledger.starts.has_news()
            || recorder.is_some_and(|recorder| recorder.wants_a_look())
    }
    fn packet(&mut self, packet: &Packet<'_>) {
        self.message(packet);
        self.record(|capture| capture.packet(packet));
    }
    fn cell(&mut self, cell: &PassedCell<'_>) {
        if let Some(recorder) = &mut self.recorder {
            recorder.cell(cell);
        }
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

    /// Passes a message on where it is sent, if the run records messages.
    fn message(&mut self, packet: &Packet<'_>) {
        let (vc, sdu) = (packet.vc, packet.pdu.sdu());
        let Some(names) = &self.names else { return };
        if packet.direction != Direction::Sent || !summary::is_control(vc, sdu) {
            return;
        }
        let place = (packet.line.link(), packet.line.side());
        let told = self.watcher.wants_messages();
        let stream = self.stream.as_mut();
        let stream = stream.and_then(|stream| stream.wants_message(place.0).then_some(stream));
        if !told && stream.is_none() {
            return;
        }
        let mut message = Message::new(self.lab, names, place, packet.at, (vc, sdu));
        message.dropped = packet.dropped.map(|reason| reason.name().to_owned());
        if told {
            self.watcher.message(&message);
        }
        if let Some(stream) = stream {
            stream.message(packet.at, (place.0, vc), &message);
        }
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
        let ledger = Ledger::new(&builder, usize::MAX);
        let names = watcher.wants_messages().then(|| Names::new(lab));
        let traced = names.is_some();
        let seen = Seen {
            lab,
            watcher,
            ledger,
            unasked: 0,
            stop: false,
            captures: Vec::new(),
            names,
            recorder: None,
            sought: None,
            followed: Vec::new(),
            stream: None,
            error: None,
        };
        let mut run = Self {
            lab,
            builder,
            world,
            tapped: false,
            faults: Faults::of(lab),
            sampler: Sampler::new(lab),
            seen,
            extent: Extent::Whole,
        };
        if traced {
            run.world.tap_messages();
        }
        run
    }

    /// Chooses how much the report has of the state at the end.
    pub const fn report_only(&mut self, extent: Extent) {
        self.extent = extent;
    }

    /// Records the stream of events from now on; the results will have it. Call this before [`Self::start`].
    pub fn record_events(&mut self, options: stream::Options) {
        let wants_messages = options.bounds.messages > 0;
        self.seen.stream = Some(stream::Recorder::new(self.lab, options));
        self.seen.names.get_or_insert_with(|| Names::new(self.lab));
        self.world.plant_mut().watch(true);
        if wants_messages {
            self.world.tap_messages();
        }
    }

    /// Records every link end: one pcapng file per node, one interface per link end. With `cells` it records single
    /// cells instead of whole PDUs.
    ///
    /// # Errors
    /// If a file cannot be made.
    pub fn capture_into(&mut self, directory: &Path, cells: bool) -> io::Result<()> {
        std::fs::create_dir_all(directory).map_err(of_file(directory))?;
        for (id, node) in self.lab.nodes() {
            let name = directory.join(format!("{}.pcapng", node.name));
            let file = files::begin(&name, Named::ByProgram).map_err(of_file(&name))?;
            let comment = format!(
                "lab {}, node {}, seed {}",
                self.lab.name, node.name, self.lab.seed
            );
            let mut capture = Capture::new(BufWriter::new(file), &comment)?.of_cells(cells);
            for link in &self.lab.links {
                for end in link.ends.into_iter().filter(|end| end.node == id) {
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
        let file = files::begin(path, Named::ByProgram).map_err(of_file(path))?;
        let file = BufWriter::new(file);
        let mut capture = Capture::new(file, &comment)?.of_cells(cells);
        for &link in &self.lab.capture {
            let link = self.lab.link(link);
            let [from, to] = link.ends.map(|end| &*self.lab.node(end.node).name);
            let about = format!(
                "{from} port {} and {to} port {}; sent is from {from}",
                link.ends[0].port, link.ends[1].port
            );
            capture.add_link(link.ends, &link.name, &about)?;
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

    /// Makes every cell of every link an event: see [`World::cell_by_cell`].
    pub fn cell_by_cell(&mut self) {
        self.world.cell_by_cell();
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

    fn observed(&mut self) -> Observed<'_, LabNode, Seen<'a>> {
        self.world.observed(&mut self.seen)
    }

    /// Switches all nodes on and starts the lab's programs.
    pub fn start(&mut self) {
        self.world.observed(&mut self.seen).start(&self.builder);
    }

    /// Passes a command to an end system; nothing happens if it is off, or is a switch.
    pub fn command(&mut self, id: NodeId, command: HostCommand) {
        self.observed().command(id, command);
    }

    /// Runs to `until`, with the faults of the lab at their times, unless the watcher ends the run.
    pub fn run_until(&mut self, until: Instant) {
        self.run_while(|_| until);
    }

    /// Runs to its end ([`Self::end`]), as [`Self::run_until`]. A flow that starts moves the end.
    pub fn run_to_end(&mut self) {
        self.run_while(Self::end);
    }

    /// One step of [`Self::run_to_end`], of at most a tenth of a virtual second, for a caller with other work between
    /// two steps. False if the run is over.
    pub fn step_to_end(&mut self) -> bool {
        let end = self.end();
        self.step_towards(end)
    }

    fn run_while(&mut self, until: impl Fn(&Self) -> Instant) {
        while self.step_towards(until(self)) {}
    }

    /// One step towards `until`. False if no step is left, or the run has been ended.
    fn step_towards(&mut self, until: Instant) -> bool {
        const STEP: Duration = Duration::from_millis(100);
        if self.seen.stop || self.world.exhausted() {
            return false;
        }
        let now = self.world.now();
        let fault = self.faults.next_at();
        if let Some(at) = fault.filter(|at| *at <= (now + STEP).min(until)) {
            self.step(at);
            let now = self.world.now();
            let due = (!self.seen.stop).then(|| self.faults.pop_due(now));
            due.flatten().into_iter().for_each(|what| self.happen(what));
        } else if now < until {
            self.step((now + STEP).min(until));
        } else {
            return false;
        }
        if !self.seen.captures.is_empty() {
            let octets = self.seen.captures.iter().map(Capture::octets).sum();
            self.seen.watcher.recorded(octets);
        }
        self.sweep();
        self.settle_followed();
        self.seen.watcher.progress(self.world.now(), until);
        self.seen.stop |= self.seen.watcher.interrupted();
        true
    }

    /// Keeps the memory of the accounts down to the packets under way.
    fn sweep(&mut self) {
        if self.seen.ledger.wants_sweep() {
            self.observed().settle_books();
            let now = self.world.now();
            let plant = self.world.plant_mut();
            self.seen.ledger.sweep(plant, now, false);
        }
    }

    /// Runs to `until`, and takes the samples that are due by then, after everything of their moment.
    fn step(&mut self, until: Instant) {
        loop {
            let stream = self.seen.stream.as_ref().map(stream::Recorder::next_sample);
            // Faults of a moment come before its sample.
            let fault = self.faults.next_at();
            let stream = stream.filter(|at| fault != Some(*at));
            let next = self.sampler.next_at().into_iter().chain(stream).min();
            let Some(at) = next.filter(|at| *at <= until) else {
                return self.run_to(until);
            };
            self.run_to(at);
            if self.seen.stop || self.world.exhausted() {
                return;
            }
            if stream.is_some_and(|due| due <= at) {
                self.sample();
            }
            self.sampler.take(self.world.plant());
        }
    }

    /// Takes a sample of counters and levels for the stream of events.
    fn sample(&mut self) {
        self.observed().settle_books();
        let now = self.world.now();
        let plant = self.world.plant_mut();
        if let Some(stream) = &mut self.seen.stream {
            let totals = self.seen.ledger.totals(plant, now, false);
            stream.sample(plant, &totals);
        }
    }

    /// Tells the stream of events what has changed in this moment.
    fn tell_changes(&mut self) {
        if let Some(stream) = &mut self.seen.stream {
            stream.changes(self.world.plant_mut());
        }
    }

    /// Runs to `until`. Traffic that waits for its hosts starts at the moment when they have joined.
    fn run_to(&mut self, until: Instant) {
        loop {
            self.world.run_until(until, &mut self.seen);
            let looked = self.look();
            if self.seen.stop {
                // What belongs to this moment still happens, so that all parts have come equally far.
                return self.world.run_until(self.world.now(), &mut self.seen);
            }
            if self.seen.ledger.starts.has_news() {
                let lab = self.lab;
                self.observed().start_ready(lab);
            } else if self.world.plant().has_changed() {
                self.tell_changes();
            } else if !looked {
                return;
            }
        }
    }

    /// When the run ends as far as is known: [`Lab::end_from`], counted from the actual start of each flow.
    #[must_use]
    pub fn end(&self) -> Instant {
        self.seen.ledger.starts.end(self.lab)
    }

    /// Echo requests that were answered so far, by flow, in the order of the lab.
    pub fn answered(&mut self) -> Vec<u64> {
        self.observed().settle_books();
        let (lab, now) = (self.lab, self.world.now());
        let ledger = &self.seen.ledger;
        let report = ledger.report(lab, self.world.plant_mut(), now, false, Extent::People);
        let flows = report.flows.iter();
        flows
            .map(|flow| flow.sum(|path| path.round_trip.count))
            .collect()
    }

    /// Causes or ends a fault now, as the schedule does.
    pub fn fault(&mut self, what: FaultKind) {
        let now = self.world.now();
        self.faults.add_first(what, now);
        let due = self.faults.pop_due(now);
        due.into_iter().for_each(|what| self.happen(what));
    }

    /// Makes a fault of the schedule happen.
    fn happen(&mut self, what: FaultKind) {
        let (node, trace) = event::of_fault(self.lab, what);
        self.seen.trace(node, trace, self.world.now());
        self.world
            .observed(&mut self.seen)
            .fault(&self.builder, what);
    }

    /// Events and cells of the run so far.
    #[must_use]
    pub fn work(&self) -> Work {
        self.world.work()
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
        self.observed().settle_books();
        let (lab, end) = (self.lab, self.world.now());
        if self.seen.stream.is_some() {
            self.sample();
        }
        if let Some(stream) = &mut self.seen.stream {
            stream.settle(self.world.plant());
        }
        let ledger = &self.seen.ledger;
        let plant = self.world.plant_mut();
        let mut report = ledger.report(lab, plant, end, false, self.extent);
        self.sampler.report(&mut report);
        report.events = self.seen.stream.take().map(|mut stream| {
            for (flow, began) in report.began.iter().enumerate() {
                let began = began.filter(|began| *began <= end);
                began
                    .into_iter()
                    .for_each(|at| stream.traffic(at, flow, "started"));
            }
            stream.finish(end)
        });
        (report, captured)
    }
}

impl Operation for Observed<'_, LabNode, Seen<'_>> {
    fn ledger(&mut self) -> &mut Ledger {
        &mut self.observer.ledger
    }
    fn make(
        &self,
        builder: &Builder<'_>,
        node: NodeId,
        life: u32,
        now: Instant,
    ) -> Option<LabNode> {
        lab_world::machine(builder, node, life, now)
    }
}

/// Names the file in its error.
fn of_file(path: &Path) -> impl Fn(io::Error) -> io::Error + '_ {
    move |error| io::Error::new(error.kind(), format!("{}: {error}", path.display()))
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
    /// The stream of events, for the results.
    pub events: Option<&'a stream::Options>,
    /// How much the report has of the state at the end.
    pub extent: Extent,
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
        events: None,
        extent: Extent::Whole,
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
        let recorded = running.record(file, recording.cells);
        recorded.map_err(|error| {
            let text = format!("the recording of 'capture:', {error}");
            io::Error::new(error.kind(), text)
        })?;
    }
    if let Some(options) = recording.events {
        running.record_events(options.clone());
    }
    running.report_only(recording.extent);
    running.start();
    running.run_to_end();
    let work = running.work();
    running.seen.watcher.worked(&work);
    Ok(running.finish_both())
}
