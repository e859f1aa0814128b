//! The lab's side: who serves which host, and the processes that were started for it.

use super::frames::{Door, Frames, Got, buffer};
use super::{MPCD_ARGUMENT, SOCKET};
use crate::supervisor::die_with_parent;
use aerostat_lab::model::{Lab, NodeId, NodeKind};
use aerostat_node::inspect::{Table, text};
use aerostat_proto::mpoa::mpc;
use aerostat_proto::mpoa::split::codec::Message as _;
use aerostat_proto::mpoa::split::{FromMpcd, Greeting, ToMpcd, VERSION};
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
/// Wait before the first new start, and the longest; one that lived for as long as the latter starts over.
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// Octets kept of what a daemon that died left on its standard error.
const WORDS: u64 = 400;

/// What the daemons did.
#[derive(Debug)]
pub(crate) enum Event {
    /// For the MPOA client of a node.
    Input(NodeId, Box<mpc::Input<'static>>),
    /// Something to tell.
    Trace(NodeId, Trace),
}

/// The daemon that serves a host.
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

/// The daemon's place at one host.
#[derive(Debug)]
struct Seat {
    node: NodeId,
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
    seats: Vec<Seat>,
    /// The poller spoke of any of them.
    ready: bool,
    buffer: Vec<u8>,
}

impl Daemons {
    /// Opens the socket in the lab's directory; nobody is started before [`Self::register`]. `program` is the command itself.
    pub(crate) fn new(lab: &Lab, directory: &Path, program: &Path) -> io::Result<Self> {
        let socket = directory.join(SOCKET);
        let _ = std::fs::remove_file(&socket);
        let clients = lab.nodes().filter(|(_, node)| match &node.kind {
            NodeKind::Host(host) => host.mpoa.is_some(),
            _ => false,
        });
        let seats = clients.map(|(node, model)| Seat {
            node,
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
        starts.chain(silent).min()
    }

    /// Hosts that wait for their daemon.
    pub(crate) fn missing(&self) -> impl Iterator<Item = String> {
        let without = |seat: &&Seat| seat.conn.is_none() && seat.plan != Plan::Leave;
        let missing = self.seats.iter().filter(without);
        missing.map(|seat| format!("mpcd of {} to start", seat.name))
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
        while let Some(frames) = self.door.accept() {
            self.came(frames, registry, now);
        }
        self.greet(now, told);
        let mut more = false;
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

    fn came(&mut self, frames: Frames, registry: &Registry, now: Instant) {
        let Some(pid) = frames.peer() else {
            return;
        };
        let fd = frames.as_fd().as_raw_fd();
        let both = Interest::READABLE | Interest::WRITABLE;
        let known = registry.register(&mut SourceFd(&fd), self.token, both);
        if known.is_ok() && self.newcomers.len() < NEWCOMERS {
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
                        node,
                    }) => match self.seats.iter_mut().find(|seat| seat.name == node) {
                        None => format!("{node} has no MPOA client in this lab"),
                        Some(Seat {
                            conn: Some(conn), ..
                        }) => format!("{node} is served by process {}", conn.pid),
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

    /// For the daemon of a node; lost if there is none.
    pub(crate) fn send(&mut self, node: NodeId, message: &ToMpcd) {
        let seat = self.seats.iter_mut().find(|seat| seat.node == node);
        if let Some(conn) = seat.and_then(|seat| seat.conn.as_mut()) {
            conn.lost |= conn.queue.len() >= QUEUE;
            if conn.lost {
                self.ready = true;
            } else {
                conn.queue.push_back(message.encode());
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

    /// The experimenter's `kill -9`; nobody starts it again before [`Self::resume`].
    pub(crate) fn crash(&mut self, node: NodeId, now: Instant, told: &mut Vec<Event>) {
        for seat in self.seats.iter_mut().filter(|seat| seat.node == node) {
            seat.plan = Plan::Leave;
            seat.lose(now, told);
        }
    }

    /// A daemon is wanted again.
    pub(crate) fn resume(&mut self, node: NodeId, now: Instant) {
        for seat in self.seats.iter_mut().filter(|seat| seat.node == node) {
            seat.plan = Plan::Start(now);
        }
    }

    /// Nobody is started any more.
    pub(crate) fn leave(&mut self) {
        for seat in &mut self.seats {
            seat.plan = Plan::Leave;
        }
    }

    /// The processes of one node; `None` if it has no seat for any.
    pub(crate) fn table(&self, node: NodeId, now: Instant) -> Option<Table> {
        let seat = self.seats.iter().find(|seat| seat.node == node)?;
        let mut table = Table::new(
            "processes",
            &["process", "pid", "state", "up_s", "restarts", "last_end"],
        );
        let started = seat.started.as_ref().map(|started| started.child.id());
        let (pid, state) = match (&seat.conn, seat.plan) {
            (Some(conn), _) => (Some(conn.pid), "running"),
            (None, _) if started.is_some() => (started, "starting"),
            (None, Plan::Start(_) | Plan::Watch) => (None, "waiting"),
            (None, Plan::Leave) => (None, "ended"),
        };
        let up = seat.conn.as_ref().map(|conn| now.since(conn.since));
        table.row(vec![
            text("mpcd"),
            pid.into(),
            state.into(),
            up.map(|up| up.as_secs()).into(),
            seat.starts.saturating_sub(1).into(),
            seat.last_end.clone().into(),
        ]);
        Some(table)
    }
}

impl Seat {
    fn tell(&self, trace: Trace, told: &mut Vec<Event>) {
        told.push(Event::Trace(self.node, trace));
    }

    fn input(&self, input: mpc::Input<'static>, told: &mut Vec<Event>) {
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
        command.arg(MPCD_ARGUMENT).arg(socket).arg(&self.name);
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
        let text = format!("mpcd is process {pid}{whose}");
        self.tell(Trace::milestone("mpcd.up", text).with("pid", pid), told);
        if self.plan != Plan::Watch && self.started.is_none() {
            self.plan = Plan::Watch;
        }
        self.input(mpc::Input::StartDaemon, told);
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
                Got::Frame(frame) => FromMpcd::decode(frame),
            };
            match message {
                Ok(message) => {
                    conn.farewell |= matches!(message, FromMpcd::Ended { exits: true, .. });
                    self.input(mpc::Input::Mpcd(message), told);
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
        let text = format!("mpcd {how}; it loses its seat");
        self.tell(Trace::milestone("mpcd.misbehaved", text), told);
    }

    /// The connection is over, from the daemon's side.
    fn gone(&mut self, now: Instant, told: &mut Vec<Event>) {
        let Some(conn) = self.conn.take() else {
            return;
        };
        self.input(mpc::Input::KillDaemon, told);
        let mine = |s: &Started| s.child.id() == conn.pid;
        if self.started.as_ref().is_some_and(mine) {
            // Its exit code tells the rest.
            return;
        }
        let text = format!("mpcd, process {}, is gone", conn.pid);
        self.tell(
            Trace::milestone("mpcd.down", text).with("pid", conn.pid),
            told,
        );
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
            let text = format!("mpcd, process {pid}, has ended; 'aerostat mpcd' starts another");
            self.tell(Trace::milestone("mpcd.down", text).with("pid", pid), told);
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
        let mut text = format!("mpcd {what}");
        if self.plan == Plan::Watch && self.conn.is_none() {
            self.plan = Plan::Start(now + self.wait);
            text += &format!("; started again in {:.1} s", self.wait.as_secs_f64());
            self.wait = (self.wait * 2).min(LONGEST_WAIT);
        }
        self.tell(Trace::milestone("mpcd.down", text), told);
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
