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

mod budget;
mod faults;
mod hops;
mod outer;
mod taps;
mod telling;

use crate::answers;
use crate::clock::{Alarm, Clock};
use crate::confine::{Confinement, Needs, confine};
use crate::control::{self, Answer, Connections, Pending, Reply, Request};
use crate::daemons::{self, Daemons};
use crate::detach::Ties;
use crate::frames::FrameBuffers;
use crate::helper::Helper;
use crate::keepers::Keepers;
use crate::kernel::tcp::Followed;
use crate::namespace::NetNs;
use crate::next_hops::NextHopFiles;
use crate::outside;
use crate::pictures::Pictures;
use crate::programs::Commanded;
use crate::recorder::Recorder;
use crate::results;
use crate::routes::KernelRoutes;
use crate::run::{Kernels, Notice, Report, UpError};
use crate::runtime_dir::Claim;
use crate::signals::Signals;
use crate::socket_service::SocketService;
use crate::stations::Stations;
use crate::story::{Step, Story};
use crate::supervisor::LabProcesses;
use crate::world::{Output, World};
use aerostat_lab::build::Builder;
use aerostat_lab::event::Names;
use aerostat_lab::model::{Lab, NodeId};
use aerostat_lab::plant::faults::Faults;
use aerostat_lab::report::RunReport;
use aerostat_node::host::{HostCommand, ServiceKind};
use aerostat_proto::{Duration, Instant, Trace};
use budget::Budget;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token, Waker};
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel};
use taps::TapPort;

/// Limit of network events handled in one turn.
const STEP: usize = 256;
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
const FIRST_TAP: usize = 3;
/// First token of daemons: those from here on are theirs.
const DAEMONS: Token = Token(usize::MAX / 2);
const ROUTES: Token = Token(usize::MAX / 2 - 1);
const KEEPERS: Token = Token(usize::MAX / 2 - 2);
/// First token of the socket service.
const SOCKETS: Token = Token(usize::MAX / 4);

/// A trace event about a node.
type Word = (NodeId, Trace);

/// Frames that were lost between kernel and network.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FrameCounters {
    /// Frames with an invalid offload header.
    pub(crate) bad: u64,
    /// Frames that the kernel refused.
    pub(crate) refused: u64,
}

/// A lab that runs. The fields that answers need are visible in the crate.
pub(crate) struct Driver<'a> {
    pub(crate) lab: &'a Lab,
    builder: &'a Builder<'a>,
    pub(crate) world: World,
    clock: Clock,
    pub(crate) epoch_ns: u64,
    poll: Poll,
    alarm: Alarm,
    taps: Vec<TapPort>,
    /// The TAP whose turn is first.
    first_tap: usize,
    /// Memory for their frames.
    buffers: FrameBuffers,
    /// True if a TAP has given frames in this turn.
    frames_came: bool,
    tap_of: BTreeMap<(usize, usize), usize>,
    /// How much the network does between two looks at TAPs and links.
    pub(crate) budget: Budget,
    /// Links out of the lab.
    pub(crate) outside: Vec<outside::Link>,
    /// Their places, by node.
    outside_of: BTreeMap<usize, usize>,
    /// The link whose turn is first.
    first_link: usize,
    /// Packets that these links read in a turn.
    inbox: outside::Inbox,
    told: Vec<outside::Event>,
    /// Programs that clients of the control socket started.
    pub(crate) commanded: Commanded,
    /// Daemons that are processes of their own.
    pub(crate) daemons: Option<Daemons>,
    /// ATM sockets of programs of the machine.
    pub(crate) sockets: SocketService,
    /// Note about hosts that the socket service leaves out.
    pub(crate) without_sockets: Option<String>,
    /// Routes of kernel routers.
    routes: Vec<(NodeId, KernelRoutes)>,
    /// Files with next hops of Classical IP subnets.
    next_hops: NextHopFiles,
    pub(crate) namespaces: BTreeMap<usize, NetNs>,
    /// The keys `tcp` that the kernels of hosts follow.
    pub(crate) followed: BTreeMap<usize, Vec<Followed>>,
    /// Kernel hosts behind bridging hosts.
    pub(crate) stations: Stations,
    pub(crate) processes: Option<LabProcesses>,
    /// Rights that this process has given up.
    pub(crate) confinement: Confinement,
    /// The ties with the parent process, until the lab is ready.
    pub(crate) ties: Option<Ties>,
    requests: Receiver<Pending>,
    /// The connections of the control socket.
    pub(crate) connections: Connections,
    /// How often no descriptor was free for a client, as far as it has been reported.
    exhausted: u64,
    /// Clients that requested the end; they get its results.
    stoppers: Vec<SyncSender<Reply>>,
    /// Results of other threads.
    done: (Sender<Word>, Receiver<Word>),
    waker: Arc<Waker>,
    /// The recording that the lab file asks for.
    pub(crate) recorder: Option<Recorder>,
    signals: Signals,
    /// Processes that the lab depends on.
    pub(crate) keepers: Keepers,
    pub(crate) story: Story,
    /// Clients that follow the state.
    pub(crate) pictures: Pictures<'a>,
    /// Events of the network that are not told yet.
    untold: VecDeque<(NodeId, Instant, Trace)>,
    /// The names of the nodes.
    nodes: Vec<Arc<str>>,
    /// The results at the time of the request to end. The effects of releasing calls are not part of them.
    found: Option<RunReport>,
    faults: Faults,
    pub(crate) frames: FrameCounters,
    pub(crate) missing: Vec<String>,
    pub(crate) ready: bool,
    pub(crate) stop_asked: bool,
    /// When all calls must have been released.
    stop_by: Option<Instant>,
    /// When the switches clear their calls; `None` if they have, or should not.
    clear_at: Option<Instant>,
}

impl<'a> Driver<'a> {
    pub(crate) fn new(
        lab: &'a Lab,
        builder: &'a Builder<'a>,
        (kernels, mut daemons, helper): (Option<Kernels>, Option<Daemons>, Option<Arc<Helper>>),
        (claim, needs, signals): (&Claim, &Needs, Signals),
        epoch: Duration,
    ) -> Result<Self, UpError> {
        let poll = Poll::new()?;
        let alarm = Alarm::new()?;
        let registry = poll.registry();
        registry.register(&mut SourceFd(&alarm.raw_fd()), ALARM, Interest::READABLE)?;
        registry.register(
            &mut SourceFd(&signals.raw_fd()),
            SIGNALS,
            Interest::READABLE,
        )?;
        let (processes, nodes, stations) =
            kernels.map_or_else(Default::default, |k| (k.processes, k.nodes, k.stations));
        let taps::Opened {
            taps,
            tap_of,
            namespaces,
            routes,
            followed,
        } = taps::open(nodes, registry)?;
        let mut links = Vec::new();
        for (node, _, model) in lab.outside() {
            let token = FIRST_TAP + taps.len() + links.len() * outside::Link::TOKENS;
            let at = lab.link(model.attachment.link);
            let link = outside::Link::new(node, &model.way, at.rate, registry, Token(token));
            let told = |e| UpError::Link(outside::explained(&model.way, &at.name, &e));
            links.push(link.map_err(told)?);
        }
        if let Some(daemons) = &mut daemons {
            daemons.register(registry, DAEMONS)?;
        }
        let (first, second) = (processes.as_ref(), helper.as_deref());
        let (sockets, note) = SocketService::open(lab, claim.directory(), registry, SOCKETS)
            .map_err(|error| UpError::Io("the sockets for programs".into(), error))?;
        let keepers = Keepers::watch(first, second, registry, KEEPERS)?;
        let waker = Arc::new(Waker::new(registry, REQUESTS)?);
        let for_clients = Arc::clone(&waker);
        let wake = move || drop(for_clients.wake());
        let socket = |error| UpError::Io("the lab's control socket".into(), error);
        let listener = control::listen(&claim.socket()).map_err(socket)?;
        // All files are open; no thread runs yet, and no input from outside has been read.
        let confinement = confine(needs).with(helper);
        let (requests, connections) = control::serve(listener, wake).map_err(socket)?;
        let clock = Clock::start();
        Ok(Self {
            lab,
            builder,
            world: World::new(builder, clock.now()),
            clock,
            epoch_ns: u64::try_from(epoch.as_nanos()).unwrap_or_default(),
            poll,
            alarm,
            taps,
            first_tap: 0,
            budget: Budget::default(),
            buffers: FrameBuffers::default(),
            frames_came: false,
            tap_of,
            outside_of: links.iter().map(|link| link.node.0).zip(0..).collect(),
            outside: links,
            first_link: 0,
            inbox: outside::Inbox::new(clock),
            told: Vec::new(),
            daemons,
            sockets,
            without_sockets: note,
            routes,
            next_hops: NextHopFiles::of(lab),
            namespaces,
            followed,
            stations,
            processes,
            confinement,
            ties: None,
            requests,
            connections,
            exhausted: 0,
            stoppers: Vec::new(),
            done: channel(),
            waker,
            recorder: None,
            signals,
            keepers,
            story: Story::new(Names::new(lab)),
            pictures: Pictures::default(),
            untold: VecDeque::new(),
            commanded: Commanded::default(),
            nodes: lab
                .nodes
                .iter()
                .map(|node| node.name.as_str().into())
                .collect(),
            found: None,
            faults: Faults::of(lab),
            frames: FrameCounters::default(),
            missing: Vec::new(),
            ready: false,
            stop_asked: false,
            stop_by: None,
            clear_at: None,
        })
    }

    /// Records the links of `capture:` from now on.
    ///
    /// # Errors
    /// If no thread can be started.
    pub(crate) fn record(&mut self, file: File) -> io::Result<()> {
        let captures = &mut self.world.captures;
        self.recorder = Some(Recorder::start(self.lab, file, captures, self.epoch_ns)?);
        Ok(())
    }

    /// True if packets may be in other processes, or outside the lab.
    pub(crate) fn elsewhere(&self) -> bool {
        self.daemons.is_some() || !self.outside.is_empty()
    }

    /// Runs until stopped.
    pub(crate) fn run(
        mut self,
        patience: Option<Duration>,
        tell: &mut dyn FnMut(Notice<'_>),
        results: &dyn Fn(&Report) -> serde_json::Value,
    ) -> Result<Report, UpError> {
        let broken = |error| UpError::Io("the lab's loop".into(), error);
        self.lines_up(self.clock.now(), tell);
        self.world.start(self.builder, self.clock.now());
        let mut events = Events::with_capacity(256);
        let mut look_at = Instant::ZERO;
        let mut remind = (Instant::ZERO + LOOK * 10, REMIND);
        loop {
            let now = self.clock.now();
            tell(Notice::Turn(now));
            let caught_up = self.catch_up(now);
            self.faults(now, tell);
            // Unless the network lags behind, what comes now comes after all events that were due before.
            self.budget.look(self.world.events());
            let mut reading = self.read_taps(caught_up, now) | self.outside(now, tell);
            self.world.ask_again(now);
            reading |= self.daemons(now, tell) | self.serve_programs(now);
            if caught_up {
                self.hurry(reading);
            }
            self.routes(now, tell);
            self.next_hops(now, tell);
            // What has just come leaves in this turn, if its queues let it.
            if caught_up {
                self.world.step(now, STEP);
            }
            self.drain(now);
            self.flush(now, tell);
            reading |= self.sockets.is_ready();
            tell(Notice::Served);
            reading |= self.recount_some(tell);
            self.recording_grows(tell);
            self.tell_pictures(now);
            reading |= self.answer(now, tell);
            self.others(now, tell);
            self.keepers(now, tell);
            self.stop_asked |= self.signals.come() > 0;
            if self.stop_asked && self.stop_by.is_none() {
                tell(Notice::Stopping(self.world.calls()));
                self.found = Some(self.found_so_far(tell));
                self.release(now);
            }
            let waiting = !self.ready || self.stop_by.is_some();
            if waiting && now >= look_at {
                look_at = now + LOOK;
                // Check for the end in the next turn: the messages of the switches must go out first.
                if self.clear_at.take_if(|at| *at <= now).is_some() {
                    self.world.clear_calls(now);
                    continue;
                }
                if let Some(mut report) = self.end(now) {
                    report.recording = self.end_recording(tell);
                    if !self.stoppers.is_empty() {
                        self.farewell(results(&report));
                    }
                    return Ok(report);
                }
                self.look(now, &mut remind, tell);
                if let Some(patience) = patience
                    && !self.ready
                    && self.stop_by.is_none()
                    && now >= Instant::ZERO + patience
                {
                    self.end_recording(tell);
                    return Err(UpError::NotReady(self.missing));
                }
            }
            let until = if waiting { Some(look_at) } else { None };
            self.sleep(reading, until, &mut events).map_err(broken)?;
        }
    }

    /// Handles events of the network that are too near to sleep or poll in between: those of a frame that has just
    /// come, until it leaves the network. While links or daemons have more to be read, the loop waits for no event in
    /// which no frame of a TAP takes part.
    fn hurry(&mut self, reading: bool) {
        let wait = match std::mem::take(&mut self.frames_came) || !reading {
            true => SPIN,
            false => Duration::ZERO,
        };
        let start = self.clock.now();
        let mut now = start;
        while let Some(next) = self.world.poll_timeout()
            && next <= now + wait
            && now < start + HURRY
        {
            if next <= now && !self.world.step(now, STEP) {
                return;
            }
            core::hint::spin_loop();
            now = self.clock.now();
        }
    }

    /// Sleeps until the next event.
    fn sleep(
        &mut self,
        reading: bool,
        look_at: Option<Instant>,
        events: &mut Events,
    ) -> io::Result<()> {
        let link = self
            .outside
            .iter()
            .filter_map(outside::Link::poll_timeout)
            .min();
        let daemon = self.daemons.as_ref().and_then(Daemons::poll_timeout);
        let watched = self.routes.iter();
        let routes = watched
            .filter_map(|(_, routes)| routes.poll_timeout())
            .min();
        let next = [
            self.world.poll_timeout(),
            self.faults.next_at(),
            look_at,
            link,
            daemon,
            self.sockets.poll_timeout(),
            routes,
            self.next_hops.poll_timeout(),
            self.pictures.poll_timeout(),
        ]
        .into_iter()
        .flatten()
        .min();
        let now = self.clock.now();
        let at_once = reading || next.is_some_and(|at| at <= now + SPIN);
        if !at_once {
            self.alarm.set(next, now)?;
        }
        match self.poll.poll(events, at_once.then_some(Duration::ZERO)) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            other => other?,
        }
        for event in events.iter() {
            if let Some(distance) = event.token().0.checked_sub(DAEMONS.0) {
                if let Some(daemons) = &mut self.daemons {
                    daemons.ready(distance);
                }
                continue;
            }
            if let Some(distance) = event.token().0.checked_sub(SOCKETS.0)
                && self.sockets.owns(distance)
            {
                self.sockets.ready(distance);
                continue;
            }
            if event.token() == KEEPERS {
                self.keepers.ready();
                continue;
            }
            if event.token() == SIGNALS {
                self.signals.ready();
                continue;
            }
            if event.token() == ROUTES {
                self.routes
                    .iter_mut()
                    .for_each(|(_, routes)| routes.ready());
                continue;
            }
            let Some(place) = event.token().0.checked_sub(FIRST_TAP) else {
                continue;
            };
            if let Some(port) = self.taps.get_mut(place) {
                port.readable = true;
                continue;
            }
            let place = place - self.taps.len();
            if let Some(link) = self.outside.get_mut(place / outside::Link::TOKENS) {
                link.ready(place % outside::Link::TOKENS);
            }
        }
        Ok(())
    }

    /// Gives the daemons their turn; true if more work could be done at once.
    fn daemons(&mut self, now: Instant, tell: &mut dyn FnMut(Notice<'_>)) -> bool {
        let mut told = Vec::new();
        let Some(daemons) = &mut self.daemons else {
            return false;
        };
        let more = daemons.turn(self.poll.registry(), now, &mut told);
        self.daemon_events(told, now, tell);
        more
    }

    /// Passes changes in the kernels of routers to their MPOA servers.
    fn routes(&mut self, now: Instant, tell: &mut dyn FnMut(Notice<'_>)) {
        for place in 0..self.routes.len() {
            let (node, watched) = &mut self.routes[place];
            let (node, read) = (*node, watched.turn(now));
            if let Some(routes) = read {
                let text = format!("{} routes read from the kernel", routes.len());
                self.event(node, Trace::detail("kernel.routes", text), now, tell);
                self.world.command(node, HostCommand::Routes(routes), now);
            }
        }
    }

    fn daemon_events(
        &mut self,
        told: Vec<daemons::Event>,
        now: Instant,
        tell: &mut dyn FnMut(Notice<'_>),
    ) {
        for event in told {
            match event {
                daemons::Event::Input(node, role, event) => {
                    self.world.daemon(node, (role, *event), now);
                }
                daemons::Event::Trace(node, trace) => self.event(node, trace, now, tell),
            }
        }
    }

    /// Sends what has been collected for peers outside and for daemons. Daemons come last: what answers a peer has
    /// often a message beside it that only tells a daemon, and a daemon that wakes up may take this processor from the
    /// peer.
    fn flush(&mut self, now: Instant, tell: &mut dyn FnMut(Notice<'_>)) {
        let mut told = std::mem::take(&mut self.told);
        for place in 0..self.outside.len() {
            let link = &mut self.outside[place];
            link.flush(self.poll.registry(), now, &mut told);
            let node = link.node;
            for event in told.drain(..) {
                self.outside_event(node, event, now, tell);
            }
        }
        self.told = told;
        if let Some(daemons) = &mut self.daemons {
            daemons.flush(self.poll.registry());
        }
    }

    /// Handles the outputs of the network. Its events wait for [`Self::recount`], because a peer or a daemon must not
    /// wait for the text of an event.
    fn drain(&mut self, now: Instant) {
        while let Some(output) = self.world.poll_output() {
            match output {
                Output::Frame { node, itf, frame } => {
                    self.write_to((node, itf), 1, |tap| tap.write(&frame));
                }
                Output::Train { node, itf, frame } => {
                    self.write_to((node, itf), frame.count(), |tap| {
                        frame.frame().map_or(Ok(true), |part| tap.write_part(&part))
                    });
                    self.buffers.recycle(frame.into_memory());
                }
                Output::Outside(node, run) => {
                    let place = self.outside_of.get(&node.0);
                    if let Some(link) = place.and_then(|place| self.outside.get_mut(*place)) {
                        link.send(&run);
                    }
                }
                Output::Daemon(node, role, frame) => {
                    if let Some(daemons) = &mut self.daemons {
                        daemons.send((node, role), frame);
                    }
                }
                Output::Program(node, what) => {
                    let registry = self.poll.registry();
                    self.sockets
                        .take(registry, (node, what), &mut self.world, now);
                }
                Output::Trace(node, at, trace) => self.untold.push_back((node, at, trace)),
                Output::Finished(node, flow) => {
                    let name = &self.lab.traffic[flow].name;
                    let text = format!("traffic {name} has ended");
                    let trace = Trace::milestone("traffic.ended", text).with("flow", name);
                    self.untold.push_back((node, now, trace));
                }
            }
        }
    }

    /// Answers requests; true if more requests may wait.
    fn answer(&mut self, now: Instant, tell: &mut dyn FnMut(Notice<'_>)) -> bool {
        for _ in 0..ANSWERS {
            let Ok(Pending { request, reply }) = self.requests.try_recv() else {
                return false;
            };
            self.recount(tell);
            match &request {
                Request::Move { station, host } => {
                    answers::move_station(self, station, host, reply);
                }
                Request::Stop => {
                    self.stop_asked = true;
                    self.stoppers.push(reply);
                }
                // The client may have closed the connection.
                _ => drop(reply.try_send(answers::answer(self, &request, now))),
            }
            // The fault takes effect before the next request is answered.
            if matches!(request, Request::Fault { .. }) {
                return true;
            }
        }
        true
    }

    /// A callback by which other threads report to the loop when they are done, with a trace event about a node.
    pub(crate) fn when_done(&self) -> impl FnOnce(NodeId, Trace) + Send + 'static {
        let (to_loop, waker) = (self.done.0.clone(), Arc::clone(&self.waker));
        move |node, trace| {
            // The lab may have ended.
            let _ = to_loop.send((node, trace));
            let _ = waker.wake();
        }
    }

    /// Reports the results of other threads, and a lack of descriptors for clients.
    fn others(&mut self, now: Instant, tell: &mut dyn FnMut(Notice<'_>)) {
        while let Ok((node, trace)) = self.done.1.try_recv() {
            self.event(node, trace, now, tell);
        }
        let exhausted = self.connections.counters().exhausted;
        if exhausted > 0 && self.exhausted == 0 {
            let text = "the lab's process has no file descriptor left for clients: 'ulimit -n' is too small, or there \
                        are too many of them";
            tell(Notice::Note(text.into()));
        }
        self.exhausted = exhausted;
    }

    /// Gives the results to the clients that requested the end.
    fn farewell(&mut self, results: serde_json::Value) {
        for reply in self.stoppers.drain(..) {
            let answer = Answer::Ok(serde_json::json!({ "results": results }));
            // The client may have closed the connection.
            let _ = reply.try_send(Reply::Answer(answer));
        }
        self.connections.settle(FAREWELL);
    }

    /// Reports processes of the lab that have died.
    fn keepers(&mut self, now: Instant, tell: &mut dyn FnMut(Notice<'_>)) {
        for trace in self.keepers.died() {
            let step = Step::new(now, self.lab.name.as_str().into(), trace);
            self.tell_step(step, tell);
        }
    }

    /// Checks whether the lab is ready, and reports what is missing.
    fn look(
        &mut self,
        now: Instant,
        (remind_at, pause): &mut (Instant, Duration),
        tell: &mut dyn FnMut(Notice<'_>),
    ) {
        if self.ready || self.stop_by.is_some() {
            return;
        }
        self.missing = self.world.waits_for();
        let daemons = self.daemons.iter().flat_map(Daemons::missing);
        self.missing.extend(daemons);
        if self.missing.is_empty() {
            self.ready = true;
            self.recount(tell);
            for link in self.silent_links() {
                tell(Notice::Note(link));
            }
            return tell(Notice::Ready {
                ties: self.ties.as_ref(),
            });
        }
        if now >= *remind_at {
            *remind_at = now + *pause;
            *pause = (*pause * 2).min(RARELY);
            let mut all = self.missing.clone();
            let links = self.silent_links().into_iter();
            all.extend(links.map(|link| format!("the peer of {link}")));
            tell(Notice::Waiting(&all));
        }
    }

    /// Starts the end: MPOA shuts down in order, then all calls are cleared.
    fn release(&mut self, now: Instant) {
        const ALL: [ServiceKind; 10] = [
            ServiceKind::Mpc,
            ServiceKind::Mps,
            ServiceKind::Lec,
            ServiceKind::Les,
            ServiceKind::Bus,
            ServiceKind::Lecs,
            ServiceKind::Clip,
            ServiceKind::Nhc,
            ServiceKind::Sockets,
            ServiceKind::SocketLayer,
        ];
        self.stop_by = Some(now + RELEASE);
        self.clear_at = Some(now + CLEAR);
        self.faults.clear();
        if let Some(daemons) = &mut self.daemons {
            daemons.leave();
        }
        let nodes: Vec<NodeId> = self.world.nodes().map(|(id, _, _)| id).collect();
        for &node in &nodes {
            self.world.command(node, HostCommand::Mpoa(false), now);
        }
        for kind in ALL {
            for &node in &nodes {
                self.world.command(node, HostCommand::Crash(kind), now);
            }
        }
    }

    /// The report, once all calls are released or the time limit is reached.
    fn end(&mut self, now: Instant) -> Option<Report> {
        let by = self.stop_by?;
        let calls_left = self.world.calls();
        let over = calls_left == 0 || now >= by || self.signals.come() > 1;
        let run = self.found.take_if(|_| over)?;
        Some(Report {
            run,
            calls_left,
            recording: None,
        })
    }

    /// All results of the lab so far.
    fn found_so_far(&mut self, tell: &mut dyn FnMut(Notice<'_>)) -> RunReport {
        let now = self.clock.now();
        self.world.settle_books();
        self.drain(now);
        self.recount(tell);
        let elsewhere = self.elsewhere();
        let mut report = results::report(&mut self.world, self.builder, now, elsewhere);
        self.stations.in_results(self.lab, &mut report);
        report
    }
}
