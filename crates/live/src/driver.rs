//! The loop of a running lab. See [`crate::run`].
//!
//! **Sleeping.** The loop uses `epoll` with a `timerfd`, because `epoll`'s own time-outs have a resolution of
//! milliseconds. For a deadline less than [`SPIN`] away the loop does not sleep, because going to sleep would take
//! longer.
//!
//! **Fairness.** A turn does a bounded amount of each kind of work: due work of the network, frames from every TAP,
//! requests. TAPs and links out of the lab are read in every turn, also while the network lags behind because hundreds
//! of nodes set up their connections at the same time (`budget.rs`). A TAP is not read while its adapter has a backlog,
//! so that the kernel's own queue fills and its TCP slows down, as with a network card.

use crate::answers;
use crate::budget::{self, Budget, STEP};
use crate::clock::{Alarm, Clock};
use crate::confine::{Needs, confine};
use crate::control::{self, Answer, Pending, Reply, Request};
use crate::converge::{self, Prepared};
use crate::daemons::Daemons;
use crate::detach::Ties;
use crate::helper::Helper;
use crate::keepers::Keepers;
use crate::kernel::Kernels;
use crate::next_hops::NextHopFiles;
use crate::notice::{File, Notice, Report, ToAnswer, UpError};
use crate::outside::Links;
use crate::pictures::Pictures;
use crate::programs::Commanded;
use crate::results;
use crate::runtime_dir::Claim;
use crate::signals::Signals;
use crate::site::{Carried, Inside, Site, Sources, Word};
use crate::socket_service::SocketService;
use crate::source::Slot;
use crate::story::Story;
use crate::threads::spawn_named;
use crate::world::World;
use aerostat_lab::Override;
use aerostat_lab::build::{Builder, Flavour};
use aerostat_lab::event::Names;
use aerostat_lab::model::{FaultKind, NodeId};
use aerostat_lab::plant::faults::Faults;
use aerostat_lab::report::RunReport;
use aerostat_node::host::{HostCommand, ServiceKind};
use aerostat_proto::{Duration, Instant};
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token, Waker};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, channel};

/// The loop does not sleep for deadlines nearer than this.
const SPIN: Duration = Duration::from_micros(10);
/// How long the loop may handle near events of the network in one turn.
const HURRY: Duration = Duration::from_micros(50);
/// How often the loop checks whether the lab is ready, or whether the end is reached.
const LOOK: Duration = Duration::from_millis(20);
/// Interval after which the missing conditions are reported again.
const REMIND: Duration = Duration::from_secs(2);
/// The interval doubles each time, up to this value.
const RARELY: Duration = Duration::from_secs(60);
/// Limit of the time to release calls.
const RELEASE: Duration = Duration::from_secs(3);
/// When the switches release the calls that the end systems have not released.
const CLEAR: Duration = Duration::from_millis(500);
/// Limit of requests answered in one turn: clients with continuous requests must not stop the network.
const ANSWERS: usize = 64;
/// How long clients that requested the end may take to read its results.
const FAREWELL: Duration = Duration::from_secs(1);
const ALARM: Token = Token(0);
const REQUESTS: Token = Token(1);
const SIGNALS: Token = Token(2);

/// The end of a lab.
#[derive(Default)]
struct Ending {
    /// Somebody has requested it.
    asked: bool,
    /// Clients that requested it; they get the results.
    stoppers: Vec<SyncSender<Reply>>,
    /// When all calls must have been released.
    by: Option<Instant>,
    /// When the switches clear their calls; `None` if they have, or should not.
    clear_at: Option<Instant>,
    /// The results at the time of the request. The effects of releasing calls are not part of them.
    found: Option<RunReport>,
}

/// The parts of which a loop is made.
pub(crate) struct Parts<'a, 'b> {
    pub(crate) file: &'a File,
    pub(crate) builder: &'a Builder<'a>,
    pub(crate) kernels: Kernels,
    /// Daemons in processes of their own.
    pub(crate) daemons: Option<Daemons>,
    pub(crate) helper: Option<Arc<Helper>>,
    pub(crate) ties: Option<Ties>,
    pub(crate) claim: &'b Claim,
    pub(crate) needs: &'b Needs,
    pub(crate) signals: Signals,
    /// Time of the start, since 1970.
    pub(crate) epoch: Duration,
    pub(crate) caller: &'a mut dyn FnMut(Notice<'_>),
    /// True if this machine itself is the lab's host.
    pub(crate) machine: bool,
}

/// The loop of a lab.
pub(crate) struct Driver<'a> {
    pub(crate) site: Site<'a>,
    file: &'a File,
    poll: Poll,
    alarm: Alarm,
    signals: Signals,
    requests: Receiver<Pending>,
    /// Results of other threads.
    done: Receiver<Word>,
    /// New labs of other threads.
    prepared: Receiver<Prepared>,
    /// How often no descriptor was free for a client, as far as it has been reported.
    exhausted: u64,
    ending: Ending,
}

/// How a loop ends.
pub(crate) enum Run {
    /// The lab is over.
    Ended(Box<Report>),
    /// The lab becomes another one.
    Halted(Box<(Halted, Prepared)>),
}

/// A loop between two files.
pub(crate) struct Halted {
    /// Time of its last turn.
    now: Instant,
    carried: Carried,
    poll: Poll,
    alarm: Alarm,
    signals: Signals,
    requests: Receiver<Pending>,
    done: Receiver<Word>,
    prepared: Receiver<Prepared>,
    exhausted: u64,
}

impl Halted {
    /// Makes the lab that of its new file, which is returned.
    pub(crate) fn converge(
        &mut self,
        next: Prepared,
        how: (Flavour, bool),
        tell: &mut dyn FnMut(Notice<'_>),
    ) -> File {
        self.carried.converge(next, how, (self.now, tell))
    }
}

impl<'a> Driver<'a> {
    /// Goes on with another file.
    pub(crate) fn resume(
        halted: Halted,
        (file, builder): (&'a File, &'a Builder<'a>),
        caller: &'a mut dyn FnMut(Notice<'_>),
    ) -> Self {
        Self {
            site: halted.carried.site(caller, (&file.checked.lab, builder)),
            file,
            poll: halted.poll,
            alarm: halted.alarm,
            signals: halted.signals,
            requests: halted.requests,
            done: halted.done,
            prepared: halted.prepared,
            exhausted: halted.exhausted,
            ending: Ending::default(),
        }
    }

    /// The new lab of another thread, if there is one for the lab as it is.
    fn next_lab(&mut self, now: Instant) -> Option<Prepared> {
        let next = self.prepared.try_recv().ok()?;
        let site = &mut self.site;
        let ends = self.ending.asked || self.ending.by.is_some();
        if !next.is_current(site.generation, ends) {
            return None;
        }
        // What is due, or was asked for in this turn, happens to the lab that it was meant for.
        site.faults(now);
        for node in &next.again {
            site.daemon_fault(FaultKind::Restart(*node, None), now);
        }
        site.drain(now);
        site.recount();
        Some(next)
    }

    fn halt(self, next: Prepared, now: Instant) -> Run {
        let halted = Halted {
            now,
            carried: self.site.carry(),
            poll: self.poll,
            alarm: self.alarm,
            signals: self.signals,
            requests: self.requests,
            done: self.done,
            prepared: self.prepared,
            exhausted: self.exhausted,
        };
        Run::Halted(Box::new((halted, next)))
    }

    pub(crate) fn new(parts: Parts<'a, '_>) -> Result<Self, UpError> {
        let Parts {
            file,
            builder,
            mut daemons,
            helper,
            claim,
            signals,
            ..
        } = parts;
        let lab = &file.checked.lab;
        let poll = Poll::new()?;
        let alarm = Alarm::new()?;
        let registry = poll.registry().try_clone()?;
        for (fd, token) in [(alarm.raw_fd(), ALARM), (signals.raw_fd(), SIGNALS)] {
            registry.register(&mut SourceFd(&fd), token, Interest::READABLE)?;
        }
        let (inside, taps, routes) = Inside::open(parts.kernels, &registry)?;
        let links = Links::open(lab, &registry).map_err(UpError::Link)?;
        if let Some(daemons) = &mut daemons {
            daemons.register(&registry, Slot::Daemons.token())?;
        }
        let first = Slot::Sockets.token();
        let (sockets, without) = SocketService::open(lab, claim.directory(), &registry, first)
            .map_err(|error| UpError::Io("the sockets for programs".into(), error))?;
        let keepers = Keepers::watch(inside.processes.as_ref(), helper.as_deref(), &registry)?;
        let waker = Arc::new(Waker::new(&registry, REQUESTS)?);
        let for_clients = Arc::clone(&waker);
        let wake = move || drop(for_clients.wake());
        let socket = |error| UpError::Io("the lab's control socket".into(), error);
        let listener = control::listen(&claim.socket()).map_err(socket)?;
        // All files are open; no thread runs yet, and no input from outside has been read.
        let confinement = confine(parts.needs).with(helper);
        let (requests, connections) = control::serve(listener, wake).map_err(socket)?;
        let (to_loop, done) = channel();
        let (to_converge, prepared) = channel();
        let clock = Clock::start();
        let mut site = Site {
            caller: parts.caller,
            lab,
            builder,
            world: World::new(builder, clock.now()),
            clock,
            epoch_ns: u64::try_from(parts.epoch.as_nanos()).unwrap_or_default(),
            registry,
            sources: Sources {
                taps,
                links: Links::new(links, clock),
                daemons,
                sockets,
                routes,
                next_hops: NextHopFiles::of(lab),
                keepers,
            },
            budget: Budget::default(),
            inside,
            commanded: Commanded::default(),
            confinement,
            ties: parts.ties,
            connections,
            done: to_loop,
            waker,
            recorder: None,
            story: Story::new(Names::new(lab)),
            pictures: Pictures::default(),
            untold: VecDeque::new(),
            names: (lab.nodes.iter())
                .map(|node| node.name.as_str().into())
                .collect(),
            faults: Faults::of(lab),
            missing: Vec::new(),
            ready: false,
            machine: parts.machine,
            generation: 0,
            file: file.name.clone(),
            prepared: to_converge,
        };
        for text in site.confinement.missing().into_iter().chain(without) {
            site.tell(Notice::Note(text));
        }
        Ok(Self {
            site,
            poll,
            alarm,
            signals,
            requests,
            done,
            prepared,
            file,
            exhausted: 0,
            ending: Ending::default(),
        })
    }

    /// Starts the network.
    pub(crate) fn start(&mut self) {
        let begin = self.site.clock.now();
        (self.site).visit(Slot::Links, (true, begin), |links, turn| {
            links.come_up(turn);
        });
        let now = self.site.clock.now();
        self.site.world.start(self.site.builder, now);
    }

    /// Runs until stopped, or until the lab becomes another one.
    pub(crate) fn run(
        mut self,
        patience: Option<Duration>,
        results: ToAnswer,
    ) -> Result<Run, UpError> {
        let broken = |error| UpError::Io("the lab's loop".into(), error);
        let mut events = Events::with_capacity(256);
        let mut look_at = Instant::ZERO;
        let mut remind = (Instant::ZERO + LOOK * 10, REMIND);
        loop {
            let now = self.site.clock.now();
            self.site.tell(Notice::Turn(now));
            let mut reading = self.work(now);
            reading |= self.answer(now, results);
            self.others(now);
            if let Some(next) = self.next_lab(now) {
                return Ok(self.halt(next, now));
            }
            self.site.turn(Slot::Keepers, true, now);
            self.ending.asked |= self.signals.come() > 0;
            if self.ending.asked && self.ending.by.is_none() {
                let calls = self.site.world.calls();
                self.site.tell(Notice::Stopping(calls));
                self.ending.found = Some(self.found_so_far());
                self.release(now);
            }
            let waiting = !self.site.ready || self.ending.by.is_some();
            if waiting && now >= look_at {
                look_at = now + LOOK;
                // Check for the end in the next turn: the messages of the switches must go out first.
                if self.ending.clear_at.take_if(|at| *at <= now).is_some() {
                    self.site.world.clear_calls(now);
                    continue;
                }
                if let Some(mut report) = self.end(now) {
                    report.recording = self.site.end_recording();
                    if !self.ending.stoppers.is_empty() {
                        self.farewell(results(&report));
                    }
                    return Ok(Run::Ended(Box::new(report)));
                }
                self.look(now, &mut remind);
                if let Some(patience) = patience
                    && !self.site.ready
                    && self.ending.by.is_none()
                    && now >= Instant::ZERO + patience
                {
                    self.site.end_recording();
                    return Err(UpError::NotReady(self.site.missing));
                }
            }
            let until = if waiting { Some(look_at) } else { None };
            self.sleep(reading, until, &mut events).map_err(broken)?;
        }
    }

    /// Does the work of the network and of its sources in one turn, and tells some of its events; true if more could
    /// be done at once.
    fn work(&mut self, now: Instant) -> bool {
        let site = &mut self.site;
        let caught_up = budget::catch_up(&mut site.world, site.clock, now);
        site.faults(now);
        // Unless the network lags behind, what comes now comes after all events that were due before.
        site.budget.look(now, site.world.events());
        let mut reading = false;
        for slot in [Slot::Taps, Slot::Links] {
            reading |= site.turn(slot, caught_up, now);
        }
        site.world.ask_again(now);
        for slot in [Slot::Daemons, Slot::Sockets] {
            reading |= site.turn(slot, caught_up, now);
        }
        site.drain(now);
        if caught_up {
            self.hurry(reading);
        }
        let site = &mut self.site;
        for slot in [Slot::Routes, Slot::NextHops] {
            site.turn(slot, caught_up, now);
        }
        // What has just come leaves in this turn, if its queues let it.
        if caught_up {
            site.world.step(now, STEP);
        }
        site.drain(now);
        // Daemons come last: what answers a peer has often a message beside it that only tells a daemon, and a daemon
        // that wakes up may take this processor from the peer.
        for slot in [Slot::Links, Slot::Daemons] {
            site.flush(slot, now);
        }
        reading |= site.sources.sockets.is_ready();
        site.tell(Notice::Served);
        reading |= site.recount_some();
        site.recording_grows();
        site.tell_pictures(now);
        reading
    }

    /// Handles events of the network that are too near to sleep or poll in between: those of a frame that has just
    /// come, until it leaves the network. While links or daemons have more to be read, the loop waits for no event in
    /// which no frame of a TAP takes part.
    fn hurry(&mut self, reading: bool) {
        if self.site.rests() {
            return;
        }
        let wait = match self.site.sources.taps.have_come() || !reading {
            true => SPIN,
            false => Duration::ZERO,
        };
        let start = self.site.clock.now();
        let mut now = start;
        while let Some(next) = self.site.world.poll_timeout()
            && next <= now + wait
            && now < start + HURRY
        {
            if next <= now && !self.site.world.step(now, STEP) {
                return;
            }
            core::hint::spin_loop();
            now = self.site.clock.now();
        }
    }

    /// Sleeps until the next event.
    fn sleep(
        &mut self,
        reading: bool,
        look_at: Option<Instant>,
        events: &mut Events,
    ) -> io::Result<()> {
        let site = &mut self.site;
        let rests = site.rests();
        let network = site.world.poll_timeout();
        let network = network.map(|at| if rests { site.budget.rested(at) } else { at });
        let next = [
            network,
            site.faults.next_at(),
            look_at,
            site.sources.poll_timeout(),
            site.pictures.poll_timeout(),
            site.world
                .captures
                .has_backlog()
                .then(|| site.clock.now() + crate::ladder::GATHER),
        ]
        .into_iter()
        .flatten()
        .min();
        let now = site.clock.now();
        let at_once = reading || next.is_some_and(|at| at <= now + SPIN);
        if !at_once {
            self.alarm.set(next, now)?;
        }
        match self.poll.poll(events, at_once.then_some(Duration::ZERO)) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            other => other?,
        }
        for event in events.iter() {
            match event.token() {
                SIGNALS => self.signals.ready(),
                token => site.sources.ready(token),
            }
        }
        Ok(())
    }

    /// Answers requests; true if more requests may wait.
    fn answer(&mut self, now: Instant, results: ToAnswer) -> bool {
        for _ in 0..ANSWERS {
            let Ok(pending) = self.requests.try_recv() else {
                return false;
            };
            let Pending {
                request,
                descriptors,
                reply,
            } = pending;
            self.site.recount();
            // The fault takes effect before the next request is answered.
            let waits = matches!(request, Request::Fault { .. });
            match request {
                Request::Move { station, host } => {
                    answers::move_station(&self.site, &station, &host, reply);
                }
                Request::Converge(file) => converge::begin(&self.site, (file, descriptors), reply),
                Request::Results => self.results_so_far(now, results, reply),
                Request::Stop => {
                    self.ending.asked = true;
                    self.ending.stoppers.push(reply);
                }
                // The client may have closed the connection.
                request => drop(reply.try_send(answers::answer(&mut self.site, &request, now))),
            }
            if waits {
                return true;
            }
        }
        true
    }

    /// Reports the results of other threads, and a lack of descriptors for clients.
    fn others(&mut self, now: Instant) {
        while let Ok((node, trace)) = self.done.try_recv() {
            self.site.event(node, trace, now);
        }
        let exhausted = self.site.connections.counters().exhausted;
        if exhausted > 0 && self.exhausted == 0 {
            let text = "the lab's process has no file descriptor left for clients: 'ulimit -n' is too small, or there \
                        are too many of them";
            self.site.tell(Notice::Note(text.into()));
        }
        self.exhausted = exhausted;
    }

    /// Gives the results to the clients that requested the end.
    fn farewell(&mut self, results: serde_json::Value) {
        for reply in self.ending.stoppers.drain(..) {
            let answer = Answer::Ok(serde_json::json!({ "results": results }));
            // The client may have closed the connection.
            let _ = reply.try_send(Reply::Answer(answer));
        }
        self.site.connections.settle(FAREWELL);
    }

    /// Checks whether the lab is ready, and reports what is missing.
    fn look(&mut self, now: Instant, (remind_at, pause): &mut (Instant, Duration)) {
        let site = &mut self.site;
        if site.ready || self.ending.by.is_some() {
            return;
        }
        site.missing = site.world.waits_for();
        let daemons = site.sources.daemons.iter().flat_map(Daemons::missing);
        site.missing.extend(daemons);
        if site.missing.is_empty() {
            site.ready = true;
            site.recount();
            for link in site.sources.links.silent(site.lab) {
                site.tell(Notice::Note(link));
            }
            return (site.caller)(Notice::Ready {
                ties: site.ties.as_ref(),
            });
        }
        if now >= *remind_at {
            *remind_at = now + *pause;
            *pause = (*pause * 2).min(RARELY);
            let mut all = site.missing.clone();
            let links = site.sources.links.silent(site.lab).into_iter();
            all.extend(links.map(|link| format!("the peer of {link}")));
            site.tell(Notice::Waiting(&all));
        }
    }

    /// Starts the end: MPOA shuts down in order, then all calls are cleared.
    fn release(&mut self, now: Instant) {
        // Clients of MPOA go before those of LANE, over which they ask.
        const FIRST: [ServiceKind; 2] = [ServiceKind::Mpc, ServiceKind::Mps];
        let others = ServiceKind::ALL
            .into_iter()
            .filter(|kind| !FIRST.contains(kind));
        self.ending.by = Some(now + RELEASE);
        self.ending.clear_at = Some(now + CLEAR);
        let site = &mut self.site;
        site.faults.clear();
        if let Some(daemons) = &mut site.sources.daemons {
            daemons.leave();
        }
        let nodes: Vec<NodeId> = site.world.nodes().map(|(id, _, _)| id).collect();
        for &node in &nodes {
            site.world.command(node, HostCommand::Mpoa(false), now);
        }
        for kind in FIRST.into_iter().chain(others) {
            for &node in &nodes {
                site.world.command(node, HostCommand::Crash(kind), now);
            }
        }
    }

    /// The report, once all calls are released or the time limit is reached.
    fn end(&mut self, now: Instant) -> Option<Report> {
        let by = self.ending.by?;
        let calls_left = self.site.world.calls();
        let over = calls_left == 0 || now >= by || self.signals.come() > 1;
        let run = self.ending.found.take_if(|_| over)?;
        Some(Report {
            run,
            calls_left,
            recording: None,
            file: self.file.clone(),
        })
    }

    /// Answers with the file of the lab and its results so far; at its end, those of the end. A thread of its own makes
    /// the answer, because the results of a large lab take time.
    fn results_so_far(&mut self, now: Instant, results: ToAnswer, reply: SyncSender<Reply>) {
        let run = self.ending.found.clone();
        let report = Report {
            run: run.unwrap_or_else(|| self.found_so_far()),
            calls_left: 0,
            recording: None,
            file: self.file.clone(),
        };
        let for_error = reply.clone();
        let started = spawn_named("results", move || {
            let File { checked, set, .. } = &report.file;
            let set: Vec<&str> = set.iter().map(Override::change).collect();
            let answer = serde_json::json!({
                "text": checked.text,
                "set": set,
                "up_s": now.as_secs_f64(),
                "results": results(&report),
            });
            // The client may have closed the connection.
            let _ = reply.try_send(Reply::Answer(Answer::Ok(answer)));
        });
        if let Err(error) = started {
            let answer = Answer::error(error.to_string(), "");
            let _ = for_error.try_send(Reply::Answer(answer));
        }
    }

    /// All results of the lab so far.
    fn found_so_far(&mut self) -> RunReport {
        let site = &mut self.site;
        let now = site.clock.now();
        site.world.settle_books();
        site.drain(now);
        site.recount();
        let elsewhere = site.elsewhere();
        let mut report = results::report(&mut site.world, site.builder, now, elsewhere);
        site.inside.stations.in_results(site.lab, &mut report);
        report
    }
}
