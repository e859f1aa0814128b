//! The lab's side: who has which role at which node, and the processes that were started for it.

use super::frames::{Door, Frames, Got, buffer};
use super::{DAEMON_ARGUMENT, Glue, SOCKET, Said};
use crate::supervisor::die_with_parent;
use aerostat_lab::model::{Lab, NodeId, Service};
use aerostat_node::host::HostInput;
use aerostat_node::inspect::{Table, Value, text};
use aerostat_proto::lane::split::ToServer;
use aerostat_proto::split::codec::Message as _;
use aerostat_proto::split::{Greeting, Role, VERSION};
use aerostat_proto::{Duration, Instant, Trace};
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use rustix::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use rustix::process::{PidfdFlags, pidfd_open};
use std::collections::VecDeque;
use std::io::{self, Read as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};

/// Frames taken from one daemon in one turn.
const TURN: usize = 64;
/// Frames that may wait for one daemon to read.
const QUEUE: usize = 4096;
/// Who has not greeted may stay so long, and so many of them.
const PATIENCE: Duration = Duration::from_secs(2);
const NEWCOMERS: usize = 16;
/// Connections taken in one turn.
const TAKEN: usize = 64;
/// When the door is looked at again after the operating system had no descriptor for a connection.
const BREATH: Duration = Duration::from_millis(250);
/// Wait before the first new start, and the longest; one that lived for as long as the latter starts over.
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// Octets kept of what a daemon that died left on its standard error.
const WORDS: u64 = 400;

/// What the daemons did.
#[derive(Debug)]
pub(crate) enum Event {
    /// From or about a daemon of a node.
    Input(NodeId, Box<HostInput<'static>>),
    /// Something to tell.
    Trace(NodeId, Trace),
}

/// The daemon that has the seat.
#[derive(Debug)]
struct Conn {
    frames: Frames,
    pid: u32,
    since: Instant,
    queue: VecDeque<Vec<u8>>,
    /// It does not read, or its socket is broken.
    lost: bool,
    /// It has said that it ends.
    farewell: bool,
}

/// A process that this lab started.
#[derive(Debug)]
struct Started {
    child: Child,
    at: Instant,
    /// Readable when it has ended.
    _pidfd: Option<OwnedFd>,
}

/// Whether and when a daemon is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plan {
    /// At this time, if there is none.
    Start(Instant),
    /// It is there, or on its way.
    Watch,
    /// Not by this lab: it ended in good order, or the experimenter made it crash.
    Leave,
}

/// A daemon's place at one node.
#[derive(Debug)]
struct Seat {
    node: NodeId,
    glue: &'static Glue,
    name: String,
    conn: Option<Conn>,
    started: Option<Started>,
    plan: Plan,
    wait: Duration,
    starts: u32,
    last_end: Option<String>,
}

/// All daemons of a lab.
#[derive(Debug)]
pub(crate) struct Daemons {
    program: PathBuf,
    socket: PathBuf,
    door: Door,
    token: Token,
    newcomers: Vec<(Frames, u32, Instant)>,
    /// Somebody waits at the door for whom there was no descriptor: look again at this time.
    again_at: Option<Instant>,
    /// How often there was none.
    exhausted: u64,
    seats: Vec<Seat>,
    /// The poller spoke of any of them.
    ready: bool,
    buffer: Vec<u8>,
}

impl Daemons {
    /// Opens the socket in the lab's directory; nobody is started before [`Self::register`]. `program` is the command itself.
    pub(crate) fn new(lab: &Lab, directory: &Path, program: &Path) -> io::Result<Self> {
        Self::with(super::ROLES, lab, directory, program)
    }

    /// With seats for these roles alone.
    pub(super) fn with(
        roles: &'static [Glue],
        lab: &Lab,
        directory: &Path,
        program: &Path,
    ) -> io::Result<Self> {
        let socket = directory.join(SOCKET);
        let _ = std::fs::remove_file(&socket);
        let all = lab
            .nodes()
            .flat_map(|node| roles.iter().map(move |glue| (node, glue)));
        let seats = all.filter(|((_, model), glue)| (glue.has_seat)(model));
        let seats = seats.map(|((node, model), glue)| Seat {
            node,
            glue,
            name: model.name.clone(),
            conn: None,
            started: None,
            plan: Plan::Start(Instant::ZERO),
            wait: FIRST_WAIT,
            starts: 0,
            last_end: None,
        });
        Ok(Self {
            program: program.to_owned(),
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

    /// Makes the poller speak of them under `token`.
    pub(crate) fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        self.token = token;
        let door = self.door.as_fd().as_raw_fd();
        registry.register(&mut SourceFd(&door), token, Interest::READABLE)
    }

    /// The poller spoke of them.
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
        missing.map(|seat| format!("{} of {} to start", seat.glue.role, seat.name))
    }

    /// Does what can be done; true if more may be left.
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
        for seat in &mut self.seats {
            more |= seat.hear(&mut self.buffer, now, told);
            seat.look_after(now, told);
            if matches!(seat.plan, Plan::Start(at) if at <= now) {
                let (program, socket) = (&self.program, &self.socket);
                seat.start((program, socket), (registry, self.token), now, told);
            }
        }
        self.ready |= more;
        more
    }

    /// Takes who waits at the door; true if more may wait.
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

    /// How often a daemon could not be taken for want of descriptors.
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
            // Who has been silent for longest gives way: a daemon that greets must not wait for others.
            if self.newcomers.len() >= NEWCOMERS {
                self.newcomers.remove(0);
            }
            self.newcomers.push((frames, pid, now));
        }
    }

    /// Gives seats to those who greet.
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
            // Whoever does not take it does not need it.
            let _ = frames.send(&Greeting::Refused(refused).encode());
        }
    }

    fn find(&mut self, role: Role, node: &str) -> Option<&mut Seat> {
        let mut seats = self.seats.iter_mut();
        seats.find(|seat| seat.name == node && seat.glue.role == role)
    }

    /// A frame for a daemon of a node; lost if there is none.
    pub(crate) fn send(&mut self, (node, role): (NodeId, Role), frame: Vec<u8>) {
        let mut seats = self.seats.iter_mut();
        let seat = seats.find(|seat| seat.node == node && seat.glue.role == role);
        if let Some(conn) = seat.and_then(|seat| seat.conn.as_mut()) {
            // A BUS that cannot keep up loses frames, as on a line, not its process.
            if role == Role::Bus && conn.queue.len() >= QUEUE / 2 && ToServer::is_data(&frame) {
                return;
            }
            conn.lost |= conn.queue.len() >= QUEUE;
            if conn.lost {
                self.ready = true;
            } else {
                conn.queue.push_back(frame);
            }
        }
    }

    /// Sends what has gathered.
    pub(crate) fn flush(&mut self) {
        for conn in self.seats.iter_mut().filter_map(|seat| seat.conn.as_mut()) {
            while let Some(frame) = conn.queue.front().filter(|_| !conn.lost) {
                match conn.frames.send(frame) {
                    Ok(true) => {
                        conn.queue.pop_front();
                    }
                    Ok(false) => break,
                    // What it said last is still to be read; then comes the end.
                    Err(_) => conn.queue.clear(),
                }
            }
        }
    }

    /// The experimenter's `kill -9` of what is this service, or of all daemons of a node; nobody starts them again
    /// before [`Self::resume`]. False if none is this service.
    pub(crate) fn crash(
        &mut self,
        node: NodeId,
        service: Option<Service>,
        now: Instant,
        told: &mut Vec<Event>,
    ) -> bool {
        let mut any = false;
        for seat in self.serving(node, service) {
            seat.plan = Plan::Leave;
            seat.lose(now, told);
            any = true;
        }
        any
    }

    /// They are wanted again.
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
            seat.node == node && (service.is_none() || seat.glue.service == service)
        };
        self.seats.iter_mut().filter(of)
    }

    /// Nobody is started any more.
    pub(crate) fn leave(&mut self) {
        for seat in &mut self.seats {
            seat.plan = Plan::Leave;
        }
    }

    /// The processes of one node; `None` if it has no seat for any.
    pub(crate) fn table(&self, node: NodeId, now: Instant) -> Option<Table> {
        let mut seats = self
            .seats
            .iter()
            .filter(|seat| seat.node == node)
            .peekable();
        seats.peek()?;
        let mut table = Table::new(
            "processes",
            &["process", "pid", "state", "up_s", "restarts", "last_end"],
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
        let started = self.started.as_ref().map(|started| started.child.id());
        let (pid, state) = match (&self.conn, self.plan) {
            (Some(conn), _) => (Some(conn.pid), "running"),
            (None, _) if started.is_some() => (started, "starting"),
            (None, Plan::Start(_) | Plan::Watch) => (None, "waiting"),
            (None, Plan::Leave) => (None, "ended"),
        };
        let up = self.conn.as_ref().map(|conn| now.since(conn.since));
        vec![
            text(self.glue.role.name()),
            pid.into(),
            state.into(),
            up.map(|up| up.as_secs()).into(),
            self.starts.saturating_sub(1).into(),
            self.last_end.clone().into(),
        ]
    }

    fn tell(&self, trace: Trace, told: &mut Vec<Event>) {
        told.push(Event::Trace(self.node, trace));
    }

    /// What everybody should know of this daemon.
    fn story(&self, name: &'static str, text: String) -> Trace {
        Trace::milestone(name, text).with("daemon", self.glue.role)
    }

    fn input(&self, input: HostInput<'static>, told: &mut Vec<Event>) {
        told.push(Event::Input(self.node, Box::new(input)));
    }

    fn start(
        &mut self,
        (program, socket): (&Path, &Path),
        (registry, token): (&Registry, Token),
        now: Instant,
        told: &mut Vec<Event>,
    ) {
        self.plan = Plan::Watch;
        if self.conn.is_some() || self.started.is_some() {
            return;
        }
        let mut command = Command::new(program);
        command.arg(DAEMON_ARGUMENT).arg(self.glue.role.name());
        command.arg(socket).arg(&self.name);
        // A group of its own: Ctrl-C is for the lab, which ends in good order.
        let command = die_with_parent(command.stdin(Stdio::null()).process_group(0));
        // Its last words are read when it has died. Our own standard error would outlive `up -d`.
        let child = match command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn() {
            Ok(child) => child,
            Err(error) => return self.failed(&format!("cannot be started: {error}"), now, told),
        };
        self.starts += 1;
        let pid = rustix::process::Pid::from_child(&child);
        // Without it (Linux before 5.3) the end is noticed when the next thing happens.
        let pidfd = pidfd_open(pid, PidfdFlags::NONBLOCK).ok();
        if let Some(fd) = &pidfd {
            let raw = fd.as_raw_fd();
            let _ = registry.register(&mut SourceFd(&raw), token, Interest::READABLE);
        }
        self.started = Some(Started {
            child,
            at: now,
            _pidfd: pidfd,
        });
    }

    /// A daemon sits down.
    fn take(&mut self, frames: Frames, pid: u32, now: Instant, told: &mut Vec<Event>) {
        let welcome = Greeting::Welcome { version: VERSION };
        let conn = Conn {
            frames,
            pid,
            since: now,
            queue: VecDeque::from([welcome.encode()]),
            lost: false,
            farewell: false,
        };
        self.conn = Some(conn);
        let mine = |s: &Started| s.child.id() == pid;
        let whose = match self.started.as_ref().is_some_and(mine) {
            true => "",
            false => ", started by hand",
        };
        let text = format!("{} is process {pid}{whose}", self.glue.role);
        self.tell(self.story("daemon.up", text).with("pid", pid), told);
        if self.plan != Plan::Watch && self.started.is_none() {
            self.plan = Plan::Watch;
        }
        self.input((self.glue.came)(), told);
    }

    /// Takes what the daemon said; true if more may be left.
    fn hear(&mut self, buffer: &mut [u8], now: Instant, told: &mut Vec<Event>) -> bool {
        for _ in 0..TURN {
            let Some(conn) = self.conn.as_mut() else {
                return false;
            };
            if conn.lost {
                self.misbehaved("does not read", told);
                self.lose(now, told);
                return false;
            }
            let message = match conn.frames.receive(buffer) {
                Got::Nothing => return false,
                Got::End => {
                    self.gone(now, told);
                    return false;
                }
                Got::Frame(frame) => (self.glue.said)(frame),
            };
            match message {
                Ok(Said { input, farewell }) => {
                    conn.farewell |= farewell;
                    self.input(input, told);
                }
                Err(error) => {
                    self.misbehaved(&format!("is not understood: {error}"), told);
                    self.lose(now, told);
                    return false;
                }
            }
        }
        true
    }

    fn misbehaved(&self, how: &str, told: &mut Vec<Event>) {
        let text = format!("{} {how}; it loses its seat", self.glue.role);
        self.tell(self.story("daemon.misbehaved", text), told);
    }

    /// The connection is over, from the daemon's side.
    fn gone(&mut self, now: Instant, told: &mut Vec<Event>) {
        let Some(conn) = self.conn.take() else {
            return;
        };
        self.input((self.glue.gone)(), told);
        let mine = |s: &Started| s.child.id() == conn.pid;
        if self.started.as_ref().is_some_and(mine) {
            // Its exit code tells the rest.
            return;
        }
        let text = format!("{}, process {}, is gone", self.glue.role, conn.pid);
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
    fn lose(&mut self, now: Instant, told: &mut Vec<Event>) {
        self.gone(now, told);
        if let Some(started) = &mut self.started {
            let _ = started.child.kill();
        }
    }

    /// Looks whether the process has ended.
    fn look_after(&mut self, now: Instant, told: &mut Vec<Event>) {
        let talks = |pid| self.conn.as_ref().is_some_and(|conn| conn.pid == pid);
        if (self.started.as_ref()).is_some_and(|started| talks(started.child.id())) {
            // What it said last comes first; then its socket tells.
            return;
        }
        let ended = self.started.as_mut().and_then(|started| {
            let status = started.child.try_wait().ok()??;
            let words = last_words(started.child.stderr.take());
            Some((status, words, started.at, started.child.id()))
        });
        let Some((status, words, at, pid)) = ended else {
            return;
        };
        self.started = None;
        if now.since(at) >= LONGEST_WAIT {
            self.wait = FIRST_WAIT;
        }
        if status.success() {
            self.last_end = Some("asked".into());
            let role = self.glue.role;
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

    /// It has died or could not be started: again, a little later.
    fn failed(&mut self, what: &str, now: Instant, told: &mut Vec<Event>) {
        self.last_end = Some(what.to_owned());
        let mut text = format!("{} {what}", self.glue.role);
        if self.plan == Plan::Watch && self.conn.is_none() {
            self.plan = Plan::Start(now + self.wait);
            text += &format!("; started again in {:.1} s", self.wait.as_secs_f64());
            self.wait = (self.wait * 2).min(LONGEST_WAIT);
        }
        self.tell(self.story("daemon.down", text), told);
    }
}

/// What a process that has ended left on its standard error, in one line.
fn last_words(from: Option<ChildStderr>) -> String {
    let mut octets = Vec::new();
    if let Some(from) = from {
        // Nobody else has the other end.
        let _ = from.take(WORDS).read_to_end(&mut octets);
    }
    let text = String::from_utf8_lossy(&octets);
    match text.split_whitespace().collect::<Vec<_>>().join(" ") {
        words if words.is_empty() => words,
        words => format!(": {words}"),
    }
}

fn how(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(signal), _) => format!("signal {signal}"),
        (None, code) => format!("exit code {}", code.unwrap_or(-1)),
    }
}

/// Processes do not outlive the lab.
impl Drop for Daemons {
    fn drop(&mut self) {
        for started in self.seats.iter_mut().filter_map(|s| s.started.as_mut()) {
            let _ = started.child.kill();
            let _ = started.child.wait();
        }
    }
}
