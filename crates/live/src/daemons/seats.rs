//! The lab's side: which daemon has which role at which node, and the processes that were started for the roles.

use super::beat::Round;
use super::seat::{Plan, Seat};
use super::{RoleInfo, SOCKET};
use crate::agenda::Agenda;
use crate::helper::Helper;
use crate::seqpacket::{Door, Frames, Got, buffer};
use crate::source::{Said, Source, Turn};
use aerostat_lab::model::{Lab, NodeId, Service};
use aerostat_node::host::DaemonMessage;
use aerostat_node::inspect::Table;
use aerostat_proto::sigd;
use aerostat_proto::split::codec::Message as _;
use aerostat_proto::split::{Greeting, ProcessEvent, Role, ToDaemon, VERSION};
use aerostat_proto::{Duration, Instant, Trace};
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use rustix::fd::{AsFd as _, AsRawFd as _};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How long a connection may stay without a greeting.
const PATIENCE: Duration = Duration::from_secs(2);
/// Connections that may stay without a greeting, beside one for each seat: all daemons of a lab connect at once.
const NEWCOMERS: usize = 16;
/// Connections taken in one turn.
const TAKEN: usize = 64;
/// Wait before the socket is checked again after the operating system had no descriptor for a connection.
const RETRY: Duration = Duration::from_millis(250);
/// Events of the daemons.
#[derive(Debug)]
pub(crate) enum Event {
    /// A message from a daemon of a node, or an event of its process.
    Input(NodeId, Role, Box<ProcessEvent<DaemonMessage>>),
    /// A trace.
    Trace(NodeId, Trace),
}

/// All daemons of a lab.
#[derive(Debug)]
pub(crate) struct Daemons {
    /// The helper that starts the processes.
    helper: Option<Arc<Helper>>,
    socket: PathBuf,
    door: Door,
    token: Token,
    newcomers: Vec<(Frames, u32, Instant)>,
    /// A connection waits for which there was no descriptor: check again at this time.
    again_at: Option<Instant>,
    /// How often no descriptor was free.
    exhausted: u64,
    seats: Vec<Seat>,
    /// The seat of each role of a node.
    places: BTreeMap<(NodeId, Role), usize>,
    /// The poller has reported the door or a newcomer.
    knocks: bool,
    /// Seats that the poller has reported, or that have more to read.
    ready: BTreeSet<usize>,
    /// Seats with frames to send.
    queued: BTreeSet<usize>,
    /// Seats with frames that may rest ([`sigd::may_rest`]): they leave with the next frame, or at the next tick.
    resting: BTreeSet<usize>,
    /// When daemons are started.
    starts: Agenda,
    round: Round,
    /// Buffer for what arrives.
    buffer: Vec<u8>,
    /// Packet that is sent.
    packet: Vec<u8>,
}

impl Source for Daemons {
    fn takes_part(&self) -> bool {
        true
    }

    fn ready(&mut self, distance: usize) {
        match distance.checked_sub(1) {
            None => self.knocks = true,
            Some(number) if number < self.seats.len() => {
                self.ready.insert(number);
            }
            Some(_) => {}
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let next = [self.deadline(), Some(self.round.at)];
        next.into_iter().flatten().min()
    }

    fn turn(&mut self, turn: &mut Turn<'_>) -> bool {
        let mut told = Vec::new();
        let more = self.turn(turn.registry, turn.now, &mut told);
        pass_on(told, turn);
        more
    }

    fn flush(&mut self, turn: &mut Turn<'_>) {
        self.flush(turn.registry);
    }
}

/// Passes on events of daemons.
pub(crate) fn pass_on(events: Vec<Event>, turn: &mut Turn<'_>) {
    for event in events {
        match event {
            Event::Input(node, role, event) => turn.world.daemon(node, (role, *event), turn.now),
            Event::Trace(node, trace) => turn.said.push(Said::Trace(node, trace)),
        }
    }
}

impl Daemons {
    /// Opens the socket in the lab's directory; no process is started before [`Self::helped_by`].
    pub(crate) fn new(lab: &Lab, directory: &Path) -> io::Result<Self> {
        Self::with(super::ROLES, lab, directory)
    }

    /// With seats only for these roles.
    pub(super) fn with(
        roles: &'static [RoleInfo],
        lab: &Lab,
        directory: &Path,
    ) -> io::Result<Self> {
        let socket = directory.join(SOCKET);
        let _ = std::fs::remove_file(&socket);
        let all = lab
            .nodes()
            .flat_map(|node| roles.iter().map(move |info| (node, info)));
        let seats = all.filter(|((_, model), info)| (info.has_seat)(lab, model));
        let seats = seats.zip(0..).map(|(((node, model), info), number)| {
            let name = model.name.clone();
            Seat::new(number, node, name, info)
        });
        let seats: Vec<Seat> = seats.collect();
        let places = seats.iter().enumerate();
        let places = places.map(|(number, seat)| ((seat.node, seat.info.role), number));
        let mut starts = Agenda::new(seats.len());
        for (number, seat) in seats.iter().enumerate() {
            starts.set(number, seat.start_at());
        }
        Ok(Self {
            helper: None,
            door: Door::open(&socket)?,
            socket,
            token: Token(usize::MAX - 1),
            newcomers: Vec::new(),
            again_at: None,
            exhausted: 0,
            places: places.collect(),
            seats,
            knocks: true,
            ready: BTreeSet::new(),
            queued: BTreeSet::new(),
            resting: BTreeSet::new(),
            starts,
            round: Round::default(),
            buffer: buffer(),
            packet: Vec::new(),
        })
    }

    /// The path of the socket to which daemons connect.
    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }

    /// All seats, for a helper: their numbers are their indices.
    pub(crate) fn seats(&self) -> Vec<(Role, &str)> {
        let all = self.seats.iter();
        all.map(|seat| (seat.info.role, seat.name.as_str()))
            .collect()
    }

    /// The helper that starts the processes from now on.
    pub(crate) fn helped_by(&mut self, helper: &Arc<Helper>) {
        self.helper = Some(Arc::clone(helper));
    }

    /// Registers the descriptors with the poller, under `token` and as many following tokens as there are seats.
    pub(crate) fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        self.token = token;
        let door = self.door.as_fd().as_raw_fd();
        registry.register(&mut SourceFd(&door), token, Interest::READABLE)
    }

    /// The next start, or the end of a patience with newcomers.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let silent = self.newcomers.iter().map(|(_, _, since)| *since + PATIENCE);
        let rest = [self.starts.next(), self.again_at];
        silent.chain(rest.into_iter().flatten()).min()
    }

    /// Nodes that wait for a daemon.
    pub(crate) fn missing(&self) -> impl Iterator<Item = String> {
        let without = |seat: &&Seat| seat.conn.is_none() && seat.plan != Plan::Leave;
        let missing = self.seats.iter().filter(without);
        missing.map(|seat| format!("{} of {} to start", seat.info.role, seat.name))
    }

    /// Does the work that is possible now; true if more may be left.
    pub(crate) fn turn(
        &mut self,
        registry: &Registry,
        now: Instant,
        told: &mut Vec<Event>,
    ) -> bool {
        let due = self.poll_timeout().is_some_and(|at| at <= now);
        if !due && !self.knocks && self.ready.is_empty() {
            return false;
        }
        if self.knocks || self.again_at.is_some_and(|at| at <= now) {
            self.knocks = self.take_newcomers(registry, now);
        }
        self.greet(registry, now, told);
        let helper = self.helper.clone();
        let helper = helper.as_deref();
        for number in core::mem::take(&mut self.ready) {
            let seat = &mut self.seats[number];
            if seat.hear((helper, &mut self.buffer), now, told) {
                self.ready.insert(number);
            }
            seat.look_after(helper, now, told);
            self.starts.set(number, seat.start_at());
        }
        self.beat(helper, now, told);
        while let Some((_, number)) = self.starts.pop_due(now) {
            let token = self.token_of(number);
            let seat = &mut self.seats[number];
            seat.start(helper, (registry, token), now, told);
            self.starts.set(number, seat.start_at());
        }
        self.knocks || !self.ready.is_empty()
    }

    /// Asks those daemons whose turn it is, and judges silent ones.
    fn beat(&mut self, helper: Option<&Helper>, now: Instant, told: &mut Vec<Event>) {
        if now < self.round.at {
            return;
        }
        self.queued.append(&mut self.resting);
        for number in self.round.turn(self.seats.len(), now) {
            if self.seats[number].ask(now) {
                self.queued.insert(number);
            }
        }
        let all = self.seats.iter().enumerate();
        self.ready.extend(
            (all.clone())
                .filter(|(_, seat)| seat.is_blind())
                .map(|(number, _)| number),
        );
        let silent = all.filter(|(_, seat)| seat.is_silent(now));
        let silent: Vec<usize> = silent.map(|(number, _)| number).collect();
        for number in self.round.looks(&silent) {
            self.seats[number].judge(helper, now, told);
            // Its end may have been found.
            self.ready.insert(number);
            self.starts.set(number, self.seats[number].start_at());
        }
    }

    const fn token_of(&self, number: usize) -> Token {
        Token(self.token.0 + 1 + number)
    }

    /// Accepts waiting connections; true if more may wait.
    fn take_newcomers(&mut self, registry: &Registry, now: Instant) -> bool {
        if self.again_at.is_some_and(|at| now < at) {
            return false;
        }
        self.again_at = None;
        for _ in 0..TAKEN {
            match self.door.accept() {
                Ok(Some(frames)) => self.came(frames, registry, now),
                Ok(None) => return false,
                Err(_) => {
                    self.exhausted += 1;
                    self.again_at = Some(now + RETRY);
                    return false;
                }
            }
        }
        true
    }

    /// How often a connection could not be accepted for lack of descriptors.
    pub(crate) fn exhausted(&self) -> u64 {
        self.exhausted
    }

    fn came(&mut self, frames: Frames, registry: &Registry, now: Instant) {
        let Some(pid) = frames.peer() else {
            return;
        };
        let fd = frames.as_fd().as_raw_fd();
        let known = registry.register(&mut SourceFd(&fd), self.token, Interest::READABLE);
        if known.is_ok() {
            self.newcomers.push((frames, pid, now));
        }
    }

    /// Gives seats to daemons that greet. If too many connections are silent, those that came first are closed.
    fn greet(&mut self, registry: &Registry, now: Instant, told: &mut Vec<Event>) {
        for (frames, pid, since) in core::mem::take(&mut self.newcomers) {
            let refused = match frames.receive(&mut self.buffer) {
                Got::Nothing if now < since + PATIENCE => {
                    self.newcomers.push((frames, pid, since));
                    continue;
                }
                Got::Nothing | Got::End => continue,
                Got::Frame(frame) => match Greeting::decode(frame) {
                    Ok(Greeting::Hello {
                        version: VERSION,
                        role,
                        node,
                    }) => match self.find(role, &node) {
                        None => format!("{node} has no seat for {role} in this lab"),
                        Some(number) => match &self.seats[number].conn {
                            Some(conn) => format!("{role} of {node} is process {}", conn.pid),
                            None => {
                                let token = self.token_of(number);
                                let seat = &mut self.seats[number];
                                seat.take((frames, pid), (registry, token), now, told);
                                self.starts.set(number, seat.start_at());
                                self.ready.insert(number);
                                self.queued.insert(number);
                                continue;
                            }
                        },
                    },
                    Ok(Greeting::Hello { version, .. }) => {
                        format!("the lab speaks version {VERSION}, this daemon {version}")
                    }
                    Ok(_) | Err(_) => continue,
                },
            };
            // If the refusal cannot be sent, the daemon does not need it.
            let _ = frames.send(&Greeting::Refused(refused).encode());
        }
        // Only here is it known which connections are silent: a greeting of another one may have arrived unread.
        let most = NEWCOMERS + self.seats.len();
        let extra = self.newcomers.len().saturating_sub(most);
        self.newcomers.drain(..extra);
    }

    fn find(&self, role: Role, node: &str) -> Option<usize> {
        let mut seats = self.seats.iter();
        seats.position(|seat| seat.name == node && seat.info.role == role)
    }

    /// A frame for a daemon of a node; dropped if there is no daemon.
    pub(crate) fn send(&mut self, place: (NodeId, Role), frame: Vec<u8>) {
        let Some(&number) = self.places.get(&place) else {
            return;
        };
        let seat = &mut self.seats[number];
        let Some(conn) = &mut seat.conn else {
            return;
        };
        // A BUS that cannot keep up loses data frames, as on a line, but not its process.
        let data = place.1 == Role::Bus && ToDaemon::<()>::is_data(&frame);
        if data && !conn.queue.takes_data() {
            seat.dropped += 1;
            return;
        }
        // A set-up by this host wakes its daemon twice, and not three times.
        let rests = place.1 == Role::Sigd && sigd::may_rest(&frame);
        conn.beat.told();
        if conn.lost || !conn.queue.push(frame) {
            conn.lost = true;
            self.ready.insert(number);
        }
        match rests {
            true => self.resting.insert(number),
            false => self.queued.insert(number),
        };
    }

    /// Sends the queued frames.
    pub(crate) fn flush(&mut self, registry: &Registry) {
        let (seats, packet, first) = (&mut self.seats, &mut self.packet, self.token.0 + 1);
        // A seat stays in the set while its socket has no room.
        self.queued.retain(|number| {
            let token = Token(first + number);
            let conn = seats[*number].conn.as_mut();
            conn.is_some_and(|conn| conn.flush(packet, (registry, token)))
        });
    }

    /// The experimenter's `kill -9` of the daemon of this service, or of all daemons of a node; no daemon is started
    /// again before [`Self::resume`]. False if no daemon belongs to this service.
    pub(crate) fn crash(
        &mut self,
        node: NodeId,
        service: Option<Service>,
        now: Instant,
        told: &mut Vec<Event>,
    ) -> bool {
        let helper = self.helper.clone();
        let serving = self.serving(node, service);
        for number in &serving {
            let seat = &mut self.seats[*number];
            seat.crash(helper.as_deref(), now, told);
            self.starts.set(*number, seat.start_at());
        }
        !serving.is_empty()
    }

    /// The daemons are to be started again.
    pub(crate) fn resume(&mut self, node: NodeId, service: Option<Service>, now: Instant) {
        for number in self.serving(node, service) {
            self.seats[number].plan = Plan::Start(now);
            self.starts.set(number, Some(now));
        }
    }

    /// The seats of a node that serve this service, or all.
    fn serving(&self, node: NodeId, service: Option<Service>) -> Vec<usize> {
        let all = self.seats.iter().enumerate();
        let of = all.filter(|(_, seat)| {
            seat.node == node && (service.is_none() || seat.info.service == service)
        });
        of.map(|(number, _)| number).collect()
    }

    /// No process is started any more.
    pub(crate) fn leave(&mut self) {
        for (number, seat) in self.seats.iter_mut().enumerate() {
            seat.plan = Plan::Leave;
            self.starts.set(number, None);
        }
    }

    /// The processes of one node; `None` if the node has no seats.
    pub(crate) fn table(&self, node: NodeId, now: Instant) -> Option<Table> {
        let mut seats = self
            .seats
            .iter()
            .filter(|seat| seat.node == node)
            .peekable();
        seats.peek()?;
        Some(Table::of(seats.map(|seat| seat.row(now))))
    }
}
