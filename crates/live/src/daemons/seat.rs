//! A daemon's place at one node: its connection, its process, its heartbeat.

#[cfg(test)]
mod tests;

use super::beat::{Beat, SERVING, STARTING, Why};
use super::queue::Queue;
use super::seats::Event;
use super::{RoleInfo, batch};
use crate::helper::{Ended, Helper, Looked};
use crate::seqpacket::{Frames, Got};
use aerostat_lab::model::NodeId;
use aerostat_node::host::DaemonMessage;
use aerostat_node::inspect::{Name, named};
use aerostat_proto::split::codec::Message as _;
use aerostat_proto::split::{Greeting, ProcessEvent, VERSION};
use aerostat_proto::{Duration, Instant, Trace};
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

/// Packets taken from one daemon in one turn; fewer if they have [`FRAMES`] frames.
const TURN: usize = 64;
/// Frames taken from one daemon in one turn, and the rest of the last packet.
const FRAMES: usize = 4 * batch::MOST;
/// Turns with more packets than [`TURN`] that read all packets which a socket held before them: with the usual buffers
/// of the kernel, a socket holds some hundred packets.
const TURNS: u32 = 64;
/// Wait before the first restart, and the longest wait; a daemon that lived for the longest wait starts over with the
/// first one.
pub(super) const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(10);

aerostat_node::rows! {
    /// One row for each daemon of a node.
    pub(super) struct ProcessRow: "processes.processes" {
        /// Its role.
        process: Name,
        /// Process id; empty if it does not run.
        pid: Option<u32>,
        /// State of the process.
        state: Name,
        /// Seconds since it connected.
        up_s: Option<u64>,
        /// Starts after the first.
        restarts: u32,
        /// How it ended the last time.
        last_end: Option<String>,
        /// Frames for it that were dropped.
        dropped: u64,
        /// How often it hung and was replaced.
        hung: u32,
        /// Slowest answer to a heartbeat, of those that are remembered.
        slowest_ms: Option<u64>,
        /// Rights that the process still has, as the kernel reports it.
        may_still: Option<String>,
    }
}

/// The connection of the daemon that has the seat.
#[derive(Debug)]
pub(super) struct Conn {
    pub(super) frames: Frames,
    pub(super) pid: u32,
    since: Instant,
    pub(super) queue: Queue,
    /// The socket had no room for the next frame.
    blocked: bool,
    /// The daemon does not read, or its socket is broken.
    pub(super) lost: bool,
    /// The daemon has announced its end.
    farewell: bool,
    /// All frames of the daemon that have come are read.
    drained: bool,
    /// Turns since a question became overdue in which the daemon had more frames than the lab read.
    overdue: u32,
    /// Rights that the daemon still has; `None` until it has told that it is confined.
    may: Option<Vec<String>>,
    pub(super) beat: Beat,
}

/// A process that this lab's helper started.
#[derive(Debug)]
pub(super) struct Started {
    pid: u32,
    at: Instant,
    /// Readable when the process has ended.
    pidfd: Option<OwnedFd>,
    /// Its end, if a look has found it.
    ended: Option<Ended>,
    /// The lab ended it.
    dismissed: Option<Dismissal>,
    /// The heartbeat while it has no connection: its greeting is the answer.
    beat: Beat,
}

/// Why the lab ended a process that it had started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dismissal {
    /// It misbehaved or hung: that is a failure, whatever its exit code.
    Failed,
    /// The experimenter's order (`fault crash`): that is no failure of the process.
    Ordered,
}

impl Started {
    /// True if the process may have ended.
    fn may_have_ended(&self) -> bool {
        let now = Timespec::default();
        let running = |fd| poll(&mut [PollFd::new(fd, PollFlags::IN)], Some(&now)) == Ok(0);
        !self.pidfd.as_ref().is_some_and(running)
    }
}

/// Plan for the next start of a daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plan {
    /// Start a daemon at this time unless a daemon runs.
    Start(Instant),
    /// A daemon is connected, or has been started.
    Watch,
    /// The lab does not start a daemon: it ended regularly, or the experimenter made it crash.
    Leave,
}

/// A daemon's place at one node.
#[derive(Debug)]
pub(super) struct Seat {
    /// Its index among all seats, which is its number for the helper.
    number: u32,
    pub(super) node: NodeId,
    pub(super) info: &'static RoleInfo,
    pub(super) name: String,
    pub(super) conn: Option<Conn>,
    started: Option<Started>,
    pub(super) plan: Plan,
    wait: Duration,
    starts: u32,
    /// Data frames that were dropped because too many frames waited.
    pub(super) dropped: u64,
    /// Processes that hung.
    hung: u32,
    /// Why the last process that hung was killed, until its end has been reported.
    why: Option<Why>,
    last_end: Option<String>,
}

impl Conn {
    /// Sends the queued frames, in `packet`; true if some are left. The poller knows the connection under `token`.
    pub(super) fn flush(
        &mut self,
        packet: &mut Vec<u8>,
        (registry, token): (&Registry, Token),
    ) -> bool {
        while !self.lost {
            let count = batch::pack(packet, self.queue.iter());
            if count == 0 {
                break;
            }
            match self.frames.send(packet) {
                Ok(true) => {
                    self.queue.pop(count);
                    if core::mem::take(&mut self.blocked) {
                        // The daemon has read a frame.
                        self.beat.heard();
                        self.wait_for(Interest::READABLE, (registry, token));
                    }
                }
                Ok(false) => {
                    if !core::mem::replace(&mut self.blocked, true) {
                        self.wait_for(Interest::READABLE | Interest::WRITABLE, (registry, token));
                    }
                    return true;
                }
                // Its last frames must still be read; then the end follows.
                Err(_) => self.queue.clear(),
            }
        }
        false
    }

    /// Tells the poller what to report. Each frame that the daemon reads makes room, so the poller reports room only if
    /// a frame waits for it: otherwise each frame would wake the lab once more.
    fn wait_for(&self, what: Interest, (registry, token): (&Registry, Token)) {
        let fd = self.frames.as_fd().as_raw_fd();
        // The change needs no memory. Without it, the next turn would try again.
        let _ = registry.reregister(&mut SourceFd(&fd), token, what);
    }
}

impl Seat {
    /// An empty place, whose daemon starts at once.
    pub(super) fn new(number: u32, node: NodeId, name: String, info: &'static RoleInfo) -> Self {
        Self {
            number,
            node,
            info,
            name,
            conn: None,
            started: None,
            plan: Plan::Start(Instant::ZERO),
            wait: FIRST_WAIT,
            starts: 0,
            dropped: 0,
            hung: 0,
            why: None,
            last_end: None,
        }
    }

    /// When a daemon is to be started.
    pub(super) fn start_at(&self) -> Option<Instant> {
        match self.plan {
            Plan::Start(at) => Some(at),
            Plan::Watch | Plan::Leave => None,
        }
    }

    /// True if no event reports the end of its process.
    pub(super) fn is_blind(&self) -> bool {
        matches!(&self.started, Some(started) if started.pidfd.is_none())
    }

    /// Its row in the table of processes.
    pub(super) fn row(&self, now: Instant) -> ProcessRow {
        let started = self.started.as_ref().map(|started| started.pid);
        let (pid, state) = match (&self.conn, self.plan) {
            (Some(conn), _) => (Some(conn.pid), "running"),
            (None, _) if started.is_some() => (started, "starting"),
            (None, Plan::Start(_) | Plan::Watch) => (None, "waiting"),
            (None, Plan::Leave) => (None, "ended"),
        };
        let conn = self.conn.as_ref();
        let may = conn.and_then(|conn| conn.may.as_ref());
        ProcessRow {
            process: named(self.info.role.name()),
            pid,
            state: state.into(),
            up_s: conn.map(|conn| now.since(conn.since).as_secs()),
            restarts: self.starts.saturating_sub(1),
            last_end: self.last_end.clone(),
            dropped: self.dropped,
            hung: self.hung,
            slowest_ms: conn.map(|conn| conn.beat.slowest(now).as_millis() as u64),
            may_still: may.map(|may| match may.join("; ") {
                nothing if nothing.is_empty() => "nothing else".to_owned(),
                some => some,
            }),
        }
    }

    fn tell(&self, trace: Trace, told: &mut Vec<Event>) {
        told.push(Event::Trace(self.node, trace));
    }

    /// A trace about this daemon for all users.
    fn story(&self, name: &'static str, text: String) -> Trace {
        Trace::milestone(name, text).with("daemon", self.info.role)
    }

    fn input(&self, event: ProcessEvent<DaemonMessage>, told: &mut Vec<Event>) {
        told.push(Event::Input(self.node, self.info.role, Box::new(event)));
    }

    pub(super) fn start(
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
        let beat = Beat::starting(now);
        self.started = Some(Started {
            pid,
            at: now,
            pidfd,
            ended: None,
            dismissed: None,
            beat,
        });
    }

    /// A daemon gets the seat.
    pub(super) fn take(
        &mut self,
        (frames, pid): (Frames, u32),
        (registry, token): (&Registry, Token),
        now: Instant,
        told: &mut Vec<Event>,
    ) {
        let fd = frames.as_fd().as_raw_fd();
        if registry
            .reregister(&mut SourceFd(&fd), token, Interest::READABLE)
            .is_err()
        {
            return;
        }
        // The daemon expects it alone, and a new socket has room for it.
        let welcome = Greeting::Welcome { version: VERSION }.encode();
        let lost = !matches!(frames.send(&welcome), Ok(true));
        let conn = Conn {
            frames,
            pid,
            since: now,
            lost,
            queue: Queue::default(),
            blocked: false,
            farewell: false,
            drained: true,
            overdue: 0,
            may: None,
            beat: Beat::default(),
        };
        self.conn = Some(conn);
        let whose = match self.started.as_mut().filter(|s| s.pid == pid) {
            Some(started) => {
                // It has greeted; from now on its connection has the heartbeat.
                started.beat = Beat::default();
                ""
            }
            None => ", started by hand",
        };
        let text = format!("{} is process {pid}{whose}", self.info.role);
        self.tell(self.story("daemon.up", text).with("pid", pid), told);
        if self.plan != Plan::Watch && self.started.is_none() {
            self.plan = Plan::Watch;
        }
        self.input(ProcessEvent::Came, told);
    }

    /// Takes the daemon's frames; true if more may be left.
    pub(super) fn hear(
        &mut self,
        (helper, buffer): (Option<&Helper>, &mut [u8]),
        now: Instant,
        told: &mut Vec<Event>,
    ) -> bool {
        let mut taken = 0;
        for _ in 0..TURN {
            if taken >= FRAMES {
                break;
            }
            let Some(conn) = self.conn.as_mut() else {
                return false;
            };
            if conn.lost {
                self.misbehaved("does not read", told);
                self.lose(helper, now, told);
                return false;
            }
            conn.drained = false;
            let packet = match conn.frames.receive(buffer) {
                Got::Nothing => {
                    conn.drained = true;
                    conn.overdue = 0;
                    return false;
                }
                Got::End => {
                    self.gone(now, told);
                    return false;
                }
                Got::Frame(packet) => packet,
            };
            for frame in batch::frames(packet) {
                taken += 1;
                if let Err(how) = self.heard(frame, now, told) {
                    self.misbehaved(&how, told);
                    self.lose(helper, now, told);
                    return false;
                }
            }
        }
        if let Some(conn) = &mut self.conn
            && conn.beat.silent(now) >= SERVING.unseen
        {
            conn.overdue = conn.overdue.saturating_add(1);
        }
        true
    }

    /// Handles a frame of the daemon, `None` if its packet was invalid.
    ///
    /// # Errors
    /// How the daemon has misbehaved.
    fn heard(
        &mut self,
        frame: Option<&[u8]>,
        now: Instant,
        told: &mut Vec<Event>,
    ) -> Result<(), String> {
        let Some(conn) = self.conn.as_mut() else {
            return Ok(());
        };
        match frame {
            None => return Err("sends an invalid packet".into()),
            Some(&[octet]) => {
                if !conn.beat.answered(octet, now) {
                    return Err("answers a question that was not asked".into());
                }
                conn.overdue = 0;
            }
            Some(frame) if conn.may.is_none() => match Greeting::decode(frame) {
                Ok(Greeting::Confined(may)) => conn.may = Some(may),
                _ => return Err("does not tell what it may do".into()),
            },
            Some(frame) => {
                let message = DaemonMessage::decode(self.info.role, frame);
                conn.beat.heard();
                let message = message.map_err(|error| format!("is not understood: {error}"))?;
                conn.farewell |= message.exits();
                self.input(ProcessEvent::Said(message), told);
            }
        }
        Ok(())
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
        if let Some(started) = self.started.as_mut().filter(|s| s.pid == conn.pid) {
            // The exit code tells the reason. If the process lives on without a connection, that is its silence.
            started.beat = Beat::starting(now);
            return;
        }
        let text = format!("{}, process {}, is gone", self.info.role, conn.pid);
        self.tell(self.story("daemon.down", text).with("pid", conn.pid), told);
        self.last_end = Some(match self.why.take() {
            Some(why) => format!("hung ({why})"),
            None if conn.farewell => "asked".into(),
            None => "gone".into(),
        });
        if self.plan == Plan::Watch {
            self.plan = match conn.farewell {
                true => Plan::Leave,
                false => Plan::Start(now + self.wait),
            };
        }
    }

    /// Asks the daemon for an answer; true if there is a question to send.
    pub(super) fn ask(&mut self, now: Instant) -> bool {
        let Some(conn) = self.conn.as_mut().filter(|conn| !conn.lost) else {
            return false;
        };
        match conn.beat.ask(now) {
            Some(question) => {
                conn.lost |= !conn.queue.push(question.into());
                true
            }
            None => false,
        }
    }

    /// True if a process is silent for so long that its state is needed.
    pub(super) fn is_silent(&self, now: Instant) -> bool {
        match (&self.conn, &self.started) {
            // Its answer may be among the frames that are not read yet, but not for ever.
            (Some(conn), _) => (conn.drained || conn.overdue >= TURNS) && conn.beat.wants_look(now),
            (None, Some(started)) => started.ended.is_none() && started.beat.wants_look(now),
            (None, None) => false,
        }
    }

    /// Looks at a silent process, and takes the seat from a process that hangs.
    pub(super) fn judge(&mut self, helper: Option<&Helper>, now: Instant, told: &mut Vec<Event>) {
        let pid = self.started.as_ref().map(|started| started.pid);
        // The helper sees only processes that it has started.
        let own = match &self.conn {
            Some(conn) => pid == Some(conn.pid),
            None => pid.is_some(),
        };
        let looked = helper
            .filter(|_| own)
            .map(|helper| helper.look_at_daemon(self.number));
        let sight = match looked {
            Some(Ok(Looked::Runs(sight))) => sight,
            Some(Ok(Looked::Ended(ended))) => {
                // The helper tells the end only once.
                if let Some(started) = &mut self.started {
                    started.ended = Some(ended);
                }
                return;
            }
            // Without a helper no other process could start the next one.
            Some(Err(_)) => return,
            None => None,
        };
        let (why, silent) = match (&mut self.conn, &mut self.started) {
            (Some(conn), _) => {
                let why = conn.beat.look(sight, SERVING, now);
                (why, conn.beat.silent(now))
            }
            (None, Some(started)) => {
                let why = started.beat.look(sight, STARTING, now);
                (why, started.beat.silent(now))
            }
            (None, None) => return,
        };
        let Some(why) = why else {
            return;
        };
        self.hung += 1;
        let role = self.info.role;
        let (what, end) = match &self.conn {
            Some(_) => ("answer", "loses its seat"),
            None => ("connection", "is killed"),
        };
        let silence = silent.as_secs_f64();
        let text = format!("{role} hangs: {why}, no {what} for {silence:.1} s; it {end}");
        let trace = self.story("daemon.hung", text).with("why", why);
        let trace = trace.with("silent_ms", silent.as_millis());
        self.tell(trace, told);
        self.why = Some(why);
        match &self.conn {
            Some(_) => self.lose(helper, now, told),
            None => self.kill(helper),
        }
    }

    fn kill(&self, helper: Option<&Helper>) {
        if let (Some(_), Some(helper)) = (&self.started, helper) {
            helper.kill_daemon(self.number);
        }
    }

    /// Ends the connection, and the process if this lab started it.
    pub(super) fn lose(&mut self, helper: Option<&Helper>, now: Instant, told: &mut Vec<Event>) {
        self.dismiss(Dismissal::Failed, helper, now, told);
    }

    /// The experimenter's `kill -9`; no daemon is started again before an order to do so.
    pub(super) fn crash(&mut self, helper: Option<&Helper>, now: Instant, told: &mut Vec<Event>) {
        self.plan = Plan::Leave;
        self.dismiss(Dismissal::Ordered, helper, now, told);
    }

    fn dismiss(
        &mut self,
        why: Dismissal,
        helper: Option<&Helper>,
        now: Instant,
        told: &mut Vec<Event>,
    ) {
        if let Some(started) = &mut self.started {
            started.dismissed = Some(why);
        }
        // The connection ends after that: a healthy process that saw its end would exit in good order.
        self.kill(helper);
        self.gone(now, told);
    }

    /// Checks whether the process has ended.
    pub(super) fn look_after(
        &mut self,
        helper: Option<&Helper>,
        now: Instant,
        told: &mut Vec<Event>,
    ) {
        let Some(started) = self.started.as_mut() else {
            return;
        };
        let (pid, at) = (started.pid, started.at);
        if self.conn.as_ref().is_some_and(|conn| conn.pid == pid) || !started.may_have_ended() {
            // Its last frames come first; then the socket reports the end.
            return;
        }
        let looked = match (started.ended.take(), helper) {
            (Some(ended), _) => Some(Ok(Looked::Ended(ended))),
            (None, helper) => helper.map(|helper| helper.look_at_daemon(self.number)),
        };
        let Ended { status, words } = match looked {
            Some(Ok(Looked::Ended(ended))) => ended,
            Some(Ok(Looked::Runs(_))) => return,
            // The process ended with the helper, or will soon.
            Some(Err(error)) => {
                (self.started, self.plan) = (None, Plan::Leave);
                return self.failed(&format!("is gone: {error}"), now, told);
            }
            None => return,
        };
        let dismissed = started.dismissed;
        self.started = None;
        if now.since(at) >= LONGEST_WAIT || dismissed == Some(Dismissal::Ordered) {
            self.wait = FIRST_WAIT;
        }
        if status.success() && dismissed.is_none() {
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
        let what = match self.why.take() {
            Some(why) => format!("hung ({why}) and was killed"),
            None => format!("died ({}{words})", how(status)),
        };
        if dismissed == Some(Dismissal::Ordered) && self.plan == Plan::Watch {
            // The order to start it again has come before its end.
            self.plan = Plan::Start(now);
        }
        self.failed(&what, now, told);
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
