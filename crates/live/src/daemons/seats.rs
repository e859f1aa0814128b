//! The lab's side: which daemon has which role at which node, and the processes that were started for the roles.

use super::frames::{Door, Frames, Got, buffer};
use super::queue::Queue;
use super::{RoleInfo, SOCKET};
use crate::helper::{Ended, Helper};
use aerostat_lab::model::{Lab, NodeId, Service};
use aerostat_node::host::{DaemonMessage, HostInput};
use aerostat_node::inspect::{Table, Value, text};
use aerostat_proto::split::codec::Message as _;
use aerostat_proto::split::{Greeting, ProcessEvent, Role, ToDaemon, VERSION};
use aerostat_proto::{Duration, Instant, Trace};
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;

/// Frames taken from one daemon in one turn.
const TURN: usize = 64;
/// How long a connection may stay without a greeting.
const PATIENCE: Duration = Duration::from_secs(2);
/// Connections that may stay without a greeting, beside one for each seat: all daemons of a lab connect at once.
const NEWCOMERS: usize = 16;
/// Connections taken in one turn.
const TAKEN: usize = 64;
/// When the socket is checked again after the operating system had no descriptor for a connection.
const BREATH: Duration = Duration::from_millis(250);
/// Wait before the first restart, and the longest wait; a daemon that lived for the longest wait starts over with the
/// first one.
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// Events of the daemons.
#[derive(Debug)]
pub(crate) enum Event {
    /// A message from a daemon of a node, or an event of its process.
    Input(NodeId, Box<HostInput<'static>>),
    /// A trace.
    Trace(NodeId, Trace),
}

/// The connection of the daemon that has the seat.
#[derive(Debug)]
struct Conn {
    frames: Frames,
    pid: u32,
    since: Instant,
    queue: Queue,
    /// The daemon does not read, or its socket is broken.
    lost: bool,
    /// The daemon has announced its end.
    farewell: bool,
}

/// A process that this lab's helper started.
#[derive(Debug)]
struct Started {
    pid: u32,
    at: Instant,
    /// Readable when the process has ended.
    pidfd: Option<OwnedFd>,
}

impl Started {
    /// True if the process may have ended.
    fn may_have_ended(&self) -> bool {
        let now = Timespec::default();
        let running = |fd| poll(&mut [PollFd::new(fd, PollFlags::IN)], Some(&now)) == Ok(0);
        !self.pidfd.as_ref().is_some_and(running)
    }
}

/// Whether and when a daemon is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plan {
    /// Start a daemon at this time unless a daemon runs.
    Start(Instant),
    /// A daemon is connected, or has been started.
    Watch,
    /// The lab does not start a daemon: it ended regularly, or the experimenter made it crash.
    Leave,
}

/// A daemon's place at one node.
#[derive(Debug)]
struct Seat {
    /// Its index among all seats, which is its number for the helper.
    number: u32,
    node: NodeId,
    info: &'static RoleInfo,
    name: String,
    conn: Option<Conn>,
    started: Option<Started>,
    plan: Plan,
    wait: Duration,
    starts: u32,
    /// Data frames that were dropped because too many frames waited.
    dropped: u64,
    last_end: Option<String>,
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
    /// The poller has reported one of them.
    ready: bool,
    buffer: Vec<u8>,
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
        let seats = all.filter(|((_, model), info)| (info.has_seat)(model));
        let seats = seats.zip(0..).map(|(((node, model), info), number)| Seat {
            number,
            node,
            info,
            name: model.name.clone(),
            conn: None,
            started: None,
            plan: Plan::Start(Instant::ZERO),
            wait: FIRST_WAIT,
            starts: 0,
            dropped: 0,
            last_end: None,
        });
        Ok(Self {
            helper: None,
            door: Door::open(&socket)?,
            socket,
            token: Token(usize::MAX - 1),
            newcomers: Vec::new(),
            again_at: None,
            exhausted: 0,
            seats: seats.collect(),
            ready: true,
            buffer: buffer(),
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

    /// Registers the descriptors with the poller under `token`.
    pub(crate) fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        self.token = token;
        let door = self.door.as_fd().as_raw_fd();
        registry.register(&mut SourceFd(&door), token, Interest::READABLE)
    }

    /// The poller has reported a descriptor.
    pub(crate) fn ready(&mut self) {
        self.ready = true;
    }

    /// When [`Self::turn`] is next needed if nothing is ready.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let starts = self.seats.iter().filter_map(|seat| match seat.plan {
            Plan::Start(at) => Some(at),
            Plan::Watch | Plan::Leave => None,
        });
        let silent = self.newcomers.iter().map(|(_, _, since)| *since + PATIENCE);
        starts.chain(silent).chain(self.again_at).min()
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
        if !due && !core::mem::take(&mut self.ready) {
            return false;
        }
        let mut more = self.take_newcomers(registry, now);
        self.greet(now, told);
        let helper = self.helper.as_deref();
        for seat in &mut self.seats {
            more |= seat.hear((helper, &mut self.buffer), now, told);
            seat.look_after(helper, now, told);
            if matches!(seat.plan, Plan::Start(at) if at <= now) {
                seat.start(helper, (registry, self.token), now, told);
            }
        }
        self.ready |= more;
        more
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
                    self.again_at = Some(now + BREATH);
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
        let both = Interest::READABLE | Interest::WRITABLE;
        let known = registry.register(&mut SourceFd(&fd), self.token, both);
        if known.is_ok() {
            self.newcomers.push((frames, pid, now));
        }
    }

    /// Gives seats to daemons that greet. If too many connections are silent, those that came first are closed.
    fn greet(&mut self, now: Instant, told: &mut Vec<Event>) {
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
                        Some(Seat {
                            conn: Some(conn), ..
                        }) => format!("{role} of {node} is process {}", conn.pid),
                        Some(seat) => {
                            seat.take(frames, pid, now, told);
                            continue;
                        }
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

    fn find(&mut self, role: Role, node: &str) -> Option<&mut Seat> {
        let mut seats = self.seats.iter_mut();
        seats.find(|seat| seat.name == node && seat.info.role == role)
    }

    /// A frame for a daemon of a node; dropped if there is no daemon.
    pub(crate) fn send(&mut self, (node, role): (NodeId, Role), frame: Vec<u8>) {
        let mut seats = self.seats.iter_mut();
        let seat = seats.find(|seat| seat.node == node && seat.info.role == role);
        if let Some(seat) = seat
            && let Some(conn) = &mut seat.conn
        {
            // A BUS that cannot keep up loses data frames, as on a line, but not its process.
            let data = role == Role::Bus && ToDaemon::<()>::is_data(&frame);
            if data && !conn.queue.takes_data() {
                seat.dropped += 1;
                return;
            }
            if conn.lost || !conn.queue.push(frame) {
                (conn.lost, self.ready) = (true, true);
            }
        }
    }

    /// Sends the queued frames.
    pub(crate) fn flush(&mut self) {
        for conn in self.seats.iter_mut().filter_map(|seat| seat.conn.as_mut()) {
            while let Some(frame) = conn.queue.front().filter(|_| !conn.lost) {
                match conn.frames.send(frame) {
                    Ok(true) => conn.queue.pop(),
                    Ok(false) => break,
                    // Its last frames must still be read; then the end follows.
                    Err(_) => conn.queue.clear(),
                }
            }
        }
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
        let mut any = false;
        let helper = self.helper.clone();
        for seat in self.serving(node, service) {
            seat.plan = Plan::Leave;
            seat.lose(helper.as_deref(), now, told);
            any = true;
        }
        any
    }

    /// The daemons are to be started again.
    pub(crate) fn resume(&mut self, node: NodeId, service: Option<Service>, now: Instant) {
        for seat in self.serving(node, service) {
            seat.plan = Plan::Start(now);
        }
    }

    fn serving(
        &mut self,
        node: NodeId,
        service: Option<Service>,
    ) -> impl Iterator<Item = &mut Seat> {
        let of = move |seat: &&mut Seat| {
            seat.node == node && (service.is_none() || seat.info.service == service)
        };
        self.seats.iter_mut().filter(of)
    }

    /// No process is started any more.
    pub(crate) fn leave(&mut self) {
        for seat in &mut self.seats {
            seat.plan = Plan::Leave;
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
        let mut table = Table::new(
            "processes",
            &[
                "process", "pid", "state", "up_s", "restarts", "last_end", "dropped",
            ],
        );
        for seat in seats {
            table.row(seat.row(now));
        }
        Some(table)
    }
}

impl Seat {
    /// Its row in the table of processes.
    fn row(&self, now: Instant) -> Vec<Value> {
        let started = self.started.as_ref().map(|started| started.pid);
        let (pid, state) = match (&self.conn, self.plan) {
            (Some(conn), _) => (Some(conn.pid), "running"),
            (None, _) if started.is_some() => (started, "starting"),
            (None, Plan::Start(_) | Plan::Watch) => (None, "waiting"),
            (None, Plan::Leave) => (None, "ended"),
        };
        let up = self.conn.as_ref().map(|conn| now.since(conn.since));
        vec![
            text(self.info.role.name()),
            pid.into(),
            state.into(),
            up.map(|up| up.as_secs()).into(),
            self.starts.saturating_sub(1).into(),
            self.last_end.clone().into(),
            self.dropped.into(),
        ]
    }

    fn tell(&self, trace: Trace, told: &mut Vec<Event>) {
        told.push(Event::Trace(self.node, trace));
    }

    /// A trace about this daemon for all users.
    fn story(&self, name: &'static str, text: String) -> Trace {
        Trace::milestone(name, text).with("daemon", self.info.role)
    }

    fn input(&self, event: ProcessEvent<DaemonMessage>, told: &mut Vec<Event>) {
        let input = HostInput::Daemon(self.info.role, event);
        told.push(Event::Input(self.node, Box::new(input)));
    }

    fn start(
        &mut self,
        helper: Option<&Helper>,
        (registry, token): (&Registry, Token),
        now: Instant,
        told: &mut Vec<Event>,
    ) {
        self.plan = Plan::Watch;
        if self.conn.is_some() || self.started.is_some() {
            return;
        }
        let gone = io::Error::other("the lab has no helper");
        let pid = match helper.map_or(Err(gone), |helper| helper.start_daemon(self.number)) {
            Ok(pid) => pid,
            Err(error) => {
                if !helper.is_some_and(Helper::serves) {
                    self.plan = Plan::Leave;
                }
                return self.failed(&error.to_string(), now, told);
            }
        };
        self.starts += 1;
        // The helper reaps the process only on request, so the id belongs to no other process. Without the descriptor
        // (Linux before 5.3) the end is noticed at the next event.
        let process = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let pidfd = process.and_then(|pid| pidfd_open(pid, PidfdFlags::NONBLOCK).ok());
        if let Some(fd) = &pidfd {
            let raw = fd.as_raw_fd();
            let _ = registry.register(&mut SourceFd(&raw), token, Interest::READABLE);
        }
        self.started = Some(Started {
            pid,
            at: now,
            pidfd,
        });
    }

    /// A daemon gets the seat.
    fn take(&mut self, frames: Frames, pid: u32, now: Instant, told: &mut Vec<Event>) {
        let welcome = Greeting::Welcome { version: VERSION };
        let mut queue = Queue::default();
        let conn = Conn {
            frames,
            pid,
            since: now,
            lost: !queue.push(welcome.encode()),
            queue,
            farewell: false,
        };
        self.conn = Some(conn);
        let mine = |s: &Started| s.pid == pid;
        let whose = match self.started.as_ref().is_some_and(mine) {
            true => "",
            false => ", started by hand",
        };
        let text = format!("{} is process {pid}{whose}", self.info.role);
        self.tell(self.story("daemon.up", text).with("pid", pid), told);
        if self.plan != Plan::Watch && self.started.is_none() {
            self.plan = Plan::Watch;
        }
        self.input(ProcessEvent::Came, told);
    }

    /// Takes the daemon's frames; true if more may be left.
    fn hear(
        &mut self,
        (helper, buffer): (Option<&Helper>, &mut [u8]),
        now: Instant,
        told: &mut Vec<Event>,
    ) -> bool {
        for _ in 0..TURN {
            let Some(conn) = self.conn.as_mut() else {
                return false;
            };
            if conn.lost {
                self.misbehaved("does not read", told);
                self.lose(helper, now, told);
                return false;
            }
            let message = match conn.frames.receive(buffer) {
                Got::Nothing => return false,
                Got::End => {
                    self.gone(now, told);
                    return false;
                }
                Got::Frame(frame) => DaemonMessage::decode(self.info.role, frame),
            };
            match message {
                Ok(message) => {
                    conn.farewell |= message.exits();
                    self.input(ProcessEvent::Said(message), told);
                }
                Err(error) => {
                    self.misbehaved(&format!("is not understood: {error}"), told);
                    self.lose(helper, now, told);
                    return false;
                }
            }
        }
        true
    }

    fn misbehaved(&self, how: &str, told: &mut Vec<Event>) {
        let text = format!("{} {how}; it loses its seat", self.info.role);
        self.tell(self.story("daemon.misbehaved", text), told);
    }

    /// The daemon has closed the connection.
    fn gone(&mut self, now: Instant, told: &mut Vec<Event>) {
        let Some(conn) = self.conn.take() else {
            return;
        };
        self.input(ProcessEvent::Gone, told);
        let mine = |s: &Started| s.pid == conn.pid;
        if self.started.as_ref().is_some_and(mine) {
            // The exit code tells the reason.
            return;
        }
        let text = format!("{}, process {}, is gone", self.info.role, conn.pid);
        self.tell(self.story("daemon.down", text).with("pid", conn.pid), told);
        self.last_end = Some(if conn.farewell { "asked" } else { "gone" }.into());
        if self.plan == Plan::Watch {
            self.plan = match conn.farewell {
                true => Plan::Leave,
                false => Plan::Start(now + self.wait),
            };
        }
    }

    /// Ends the connection, and the process if this lab started it.
    fn lose(&mut self, helper: Option<&Helper>, now: Instant, told: &mut Vec<Event>) {
        self.gone(now, told);
        if let (Some(_), Some(helper)) = (&self.started, helper) {
            helper.kill_daemon(self.number);
        }
    }

    /// Checks whether the process has ended.
    fn look_after(&mut self, helper: Option<&Helper>, now: Instant, told: &mut Vec<Event>) {
        let Some(started) = self.started.as_ref() else {
            return;
        };
        let (pid, at) = (started.pid, started.at);
        if self.conn.as_ref().is_some_and(|conn| conn.pid == pid) || !started.may_have_ended() {
            // Its last frames come first; then the socket reports the end.
            return;
        }
        let looked = helper.map(|helper| helper.look_at_daemon(self.number));
        let Ended { status, words } = match looked {
            Some(Ok(Some(ended))) => ended,
            Some(Ok(None)) => return,
            // The process ended with the helper, or will soon.
            Some(Err(error)) => {
                (self.started, self.plan) = (None, Plan::Leave);
                return self.failed(&format!("is gone: {error}"), now, told);
            }
            None => return,
        };
        self.started = None;
        if now.since(at) >= LONGEST_WAIT {
            self.wait = FIRST_WAIT;
        }
        if status.success() {
            self.last_end = Some("asked".into());
            let role = self.info.role;
            let text =
                format!("{role}, process {pid}, has ended; 'aerostat {role}' starts another");
            self.tell(self.story("daemon.down", text).with("pid", pid), told);
            if self.plan == Plan::Watch {
                self.plan = Plan::Leave;
            }
            return;
        }
        self.failed(&format!("died ({}{words})", how(status)), now, told);
    }

    /// The process has died or could not be started: it is started again a little later.
    fn failed(&mut self, what: &str, now: Instant, told: &mut Vec<Event>) {
        self.last_end = Some(what.to_owned());
        let mut text = format!("{} {what}", self.info.role);
        if self.plan == Plan::Watch && self.conn.is_none() {
            self.plan = Plan::Start(now + self.wait);
            text += &format!("; started again in {:.1} s", self.wait.as_secs_f64());
            self.wait = (self.wait * 2).min(LONGEST_WAIT);
        }
        self.tell(self.story("daemon.down", text), told);
    }
}

fn how(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(signal), _) => format!("signal {signal}"),
        (None, code) => format!("exit code {}", code.unwrap_or(-1)),
    }
}
