//! A daemon's process: a socket, a clock, signals, and the machine.

use super::{Action, Program, batch};
use crate::clock::Clock;
use crate::confine::confine_daemon;
use crate::seqpacket::{Frames, Got, buffer};
use crate::signals;
use aerostat_proto::split::codec::Message as _;
use aerostat_proto::split::{Greeting, Role, Signal as Sent, VERSION};
use aerostat_proto::{Duration, Instant};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use std::io::{self, Read as _};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// How long the lab may take to answer a greeting.
const GREETING: Duration = Duration::from_secs(5);
/// Frames taken in one turn.
const TURN: usize = 64;

/// How the work of a daemon ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// A signal ended it, and the servers have been told.
    Asked,
    /// The lab is gone.
    LabGone,
}

/// Why a daemon cannot work.
#[derive(Debug)]
pub enum DaemonError {
    /// There is no listener at the socket: the lab does not run, or not with `--split`.
    NoLab(io::Error),
    /// The lab has no seat for the daemon; the lab's reason.
    Refused(String),
    /// An error of the operating system.
    Io(io::Error),
    /// The lab sent an invalid message.
    Nonsense(String),
}

impl std::fmt::Display for DaemonError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoLab(error) => write!(f, "the lab has no place for daemons: {error}"),
            Self::Refused(why) => f.write_str(why),
            Self::Io(error) => write!(f, "{error}"),
            Self::Nonsense(error) => write!(f, "the lab is not understood: {error}"),
        }
    }
}
impl std::error::Error for DaemonError {}

impl From<io::Error> for DaemonError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Runs this daemon of `node` until a signal ends it or the lab is gone. Call this function while the process has one
/// thread: it drops the privileges of the process. `child`: the lab started the process, which ends with the lab.
///
/// # Errors
/// See [`DaemonError`].
pub fn serve(role: Role, socket: &Path, node: &str, child: bool) -> Result<End, DaemonError> {
    if child {
        // Its program was opened as /proc/self/exe.
        rustix::thread::set_name(c"aerostat").map_err(io::Error::from)?;
    }
    let terminate = signals::pipe([SIGTERM, SIGINT, SIGQUIT])?;
    let reload = signals::pipe([SIGHUP])?;
    let frames = Frames::connect(socket).map_err(DaemonError::NoLab)?;
    let mut process = Process {
        frames,
        signals: [terminate, reload],
        clock: Clock::start(),
        program: super::program(role),
        buffer: buffer(),
        packet: Vec::new(),
    };
    process.greet(role, node)?;
    let may = confine_daemon(child);
    process.say(&Greeting::Confined(may).encode())?;
    process.run()
}

struct Process {
    frames: Frames,
    signals: [UnixStream; 2],
    clock: Clock,
    program: Box<dyn Program>,
    /// Buffer for what arrives.
    buffer: Vec<u8>,
    /// Packet that is sent.
    packet: Vec<u8>,
}

impl Process {
    fn greet(&mut self, role: Role, node: &str) -> Result<(), DaemonError> {
        let hello = Greeting::Hello {
            version: VERSION,
            role,
            node: node.to_owned(),
        };
        self.say(&hello.encode())?;
        let until = Instant::ZERO + GREETING;
        loop {
            let now = self.clock.now();
            if now >= until {
                return Err(DaemonError::Refused("the lab does not answer".into()));
            }
            match self.frames.receive(&mut self.buffer) {
                Got::Nothing => {
                    self.wait(Some(until))?;
                }
                Got::End => return Err(DaemonError::Refused("the lab has ended".into())),
                Got::Frame(frame) => {
                    let nonsense = |error| DaemonError::Nonsense(format!("{error}"));
                    return match Greeting::decode(frame).map_err(nonsense)? {
                        Greeting::Welcome { version: VERSION } => Ok(()),
                        Greeting::Welcome { version } => Err(DaemonError::Nonsense(format!(
                            "it speaks version {version}, this daemon {VERSION}"
                        ))),
                        Greeting::Refused(why) => Err(DaemonError::Refused(why)),
                        Greeting::Hello { .. } | Greeting::Confined(_) => {
                            Err(DaemonError::Nonsense("it greets as a daemon".into()))
                        }
                    };
                }
            }
        }
    }

    fn run(mut self) -> Result<End, DaemonError> {
        // The greeting may have left anything unread.
        let mut ready = [true; 3];
        let mut said = Vec::new();
        loop {
            let now = self.clock.now();
            let [lab, signals @ ..] = ready;
            if lab && !self.listen(now)? {
                return Ok(End::LabGone);
            }
            for (which, signal) in [Sent::Terminate, Sent::Reload].into_iter().enumerate() {
                let come = signals[which];
                if come && matches!(self.signals[which].read(&mut [0; 16]), Ok(1..)) {
                    self.program.signal(signal, now);
                }
            }
            if self.program.poll_timeout().is_some_and(|at| at <= now) {
                self.program.handle_timeout(now);
            }
            let mut exits = false;
            while let Some(action) = self.program.poll() {
                match action {
                    Action::Send(frame) => said.push(frame),
                    Action::Exit => exits = true,
                }
            }
            if self.say_all(&mut said).is_err() {
                return Ok(End::LabGone);
            }
            if exits {
                return Ok(End::Asked);
            }
            ready = self.wait(self.program.poll_timeout())?;
        }
    }

    /// Takes the lab's frames; false if the lab is gone. A lone frame seldom has others behind it: the next wait would
    /// return at once. After a packet of several, all are read.
    fn listen(&mut self, now: Instant) -> Result<bool, DaemonError> {
        let Self {
            frames,
            buffer,
            program,
            ..
        } = self;
        for _ in 0..TURN {
            let packet = match frames.receive(buffer) {
                Got::Nothing => break,
                Got::End => return Ok(false),
                Got::Frame(packet) => packet,
            };
            for frame in batch::frames(packet) {
                match frame {
                    None => return Err(DaemonError::Nonsense("an invalid packet".into())),
                    // A question of the lab: it goes back as it is.
                    Some(question @ &[_]) => {
                        if say(frames, question).is_err() {
                            return Ok(false);
                        }
                    }
                    Some(frame) => program
                        .frame(frame, now)
                        .map_err(|error| DaemonError::Nonsense(error.to_string()))?,
                }
            }
            if !batch::is_batch(packet) {
                break;
            }
        }
        Ok(true)
    }

    /// Sends frames, as many as possible in one packet.
    fn say_all(&mut self, said: &mut Vec<Vec<u8>>) -> io::Result<()> {
        let mut rest = said.as_slice();
        while !rest.is_empty() {
            let count = batch::pack(&mut self.packet, rest);
            say(&self.frames, &self.packet)?;
            rest = &rest[count..];
        }
        said.clear();
        Ok(())
    }

    fn say(&self, frame: &[u8]) -> io::Result<()> {
        say(&self.frames, frame)
    }

    /// Waits for the socket, for signals, or for `until`; returns which of them may have something.
    fn wait(&self, until: Option<Instant>) -> io::Result<[bool; 3]> {
        let left = until.map(|at| at.since(self.clock.now()));
        let left = left.map(|left| Timespec {
            tv_sec: left.as_secs().min(1 << 30) as i64,
            tv_nsec: left.subsec_nanos().into(),
        });
        let [terminate, reload] = &self.signals;
        let mut all = [
            PollFd::new(&self.frames, PollFlags::IN),
            PollFd::new(terminate, PollFlags::IN),
            PollFd::new(reload, PollFlags::IN),
        ];
        match poll(&mut all, left.as_ref()) {
            Ok(_) => Ok(all.map(|one| !one.revents().is_empty())),
            // The signal may be one of ours.
            Err(rustix::io::Errno::INTR) => Ok([true; 3]),
            Err(error) => Err(error.into()),
        }
    }
}

/// Sends a packet; waits while there is no room for it. Signals wait, too.
fn say(frames: &Frames, packet: &[u8]) -> io::Result<()> {
    while !frames.send(packet)? {
        match poll(&mut [PollFd::new(frames, PollFlags::OUT)], None) {
            Err(rustix::io::Errno::INTR) | Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
