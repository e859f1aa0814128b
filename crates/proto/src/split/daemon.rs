//! Daemons: the control halves of clients and servers, and the process in which they run with `--split`.
//!
//! **Purpose.** Every client and every server has a data half and a control half that exchange only typed messages. The
//! control half is a [`Daemon`]: it reads the frames of peers, and owns only what it was told and what it has asked
//! for. The daemon runs beside its data half, in the same process, or in a process of its own; the
//! [`Seat`](super::Seat) of the data half knows which.
//!
//! ```text
//!   one process:   data half ── Seat ── Daemon
//!   --split:       data half ── Seat ══ socket ══ Process ── Daemon, one for each number
//! ```
//!
//! **Objects and owners.** A frame of the socket is [`ToDaemon`] or [`FromDaemon`] with the number of the daemon that
//! receives or sent it: a process serves all daemons of its role at a node, and the node assigned the numbers.

use super::codec::{Field, Message};
use crate::{AtmEvent, AtmRequest, Duration, Instant, Machine, Trace, split_choice, split_record};
use core::convert::Infallible;
use std::collections::{BTreeMap, VecDeque};

/// A signal from a user to a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// SIGTERM and similar signals: release everything regularly, then exit.
    Terminate,
    /// SIGHUP: release everything regularly, then start again.
    Reload,
}

/// How a daemon has ended regularly, with everything released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The daemon is idle until it is told to start.
    Stops,
    /// The daemon starts again by itself.
    Restarts,
    /// The daemon's process ends.
    Exits,
}

/// To a daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToDaemon<M> {
    /// From the ATM service.
    Atm(AtmEvent<Vec<u8>>),
    /// From its data half.
    Message(M),
}

/// From a daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromDaemon<M> {
    /// To the ATM service.
    Atm(AtmRequest),
    /// To its data half.
    Message(M),
    /// An observation.
    Trace(Trace),
    /// The daemon has ended.
    Ended(Ended),
}

/// A control half: the part of a client or server that reads the frames of peers.
///
/// It is idle until a message starts it. No frame of a peer makes it panic.
pub trait Daemon: Default {
    /// Messages from its data half.
    type To;
    /// Messages to its data half.
    type From;
    /// In a process of its own: how long after a change [`Self::report`] is called. `None`: the daemon has nothing to
    /// report.
    const REPORT: Option<Duration> = None;

    /// A message of the data half.
    fn message(&mut self, message: Self::To, now: Instant);
    /// An event of the ATM service.
    fn atm(&mut self, event: AtmEvent<&[u8]>, now: Instant);
    /// A signal to its process.
    fn signal(&mut self, signal: Signal, now: Instant);
    /// Reports the state that the data half needs if it is in another process. A data half in the same process can read
    /// the state directly.
    fn report(&mut self, _now: Instant) {}
    /// See [`Machine::handle_timeout`].
    fn handle_timeout(&mut self, now: Instant);
    /// See [`Machine::poll_timeout`].
    fn poll_timeout(&self) -> Option<Instant>;
    /// See [`Machine::poll_output`].
    fn poll_output(&mut self) -> Option<FromDaemon<Self::From>>;
}

/// A message to or from one of the daemons of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numbered<M> {
    /// The number of the daemon.
    pub number: u16,
    /// The message.
    pub message: M,
}

/// Input of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::large_enum_variant, reason = "lives on the stack for one move")]
pub enum ProcessInput<M> {
    /// A frame of the lab's process.
    Frame(Numbered<ToDaemon<M>>),
    /// A signal.
    Signal(Signal),
}

/// Output of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::large_enum_variant, reason = "lives on the stack for one move")]
pub enum ProcessOutput<M> {
    /// A frame for the lab's process.
    Frame(Numbered<FromDaemon<M>>),
    /// All its daemons have ended regularly, and have reported this: the process may end.
    Exit,
}

/// One daemon of a process.
#[derive(Debug)]
struct Hosted<D> {
    daemon: D,
    /// Time of the next report.
    report_at: Option<Instant>,
}

/// The daemons of one role at a node, as the whole of a process.
#[derive(Debug)]
pub struct Process<D: Daemon> {
    all: BTreeMap<u16, Hosted<D>>,
    exiting: bool,
    out: VecDeque<ProcessOutput<D::From>>,
}

impl<D: Daemon> Default for Process<D> {
    fn default() -> Self {
        Self {
            all: BTreeMap::new(),
            exiting: false,
            out: VecDeque::new(),
        }
    }
}

impl<D: Daemon> Process<D> {
    /// The daemon with this number.
    #[must_use]
    pub fn daemon(&self, number: u16) -> Option<&D> {
        self.all.get(&number).map(|hosted| &hosted.daemon)
    }
    /// The same, for tests that change its state.
    #[cfg(test)]
    pub(crate) fn daemon_mut(&mut self, number: u16) -> Option<&mut D> {
        self.all.get_mut(&number).map(|hosted| &mut hosted.daemon)
    }

    /// Passes on the outputs of one daemon after an event. A daemon that has ended with the process is removed.
    fn drain(&mut self, number: u16, happened: bool, now: Instant) {
        let Some(hosted) = self.all.get_mut(&number) else {
            return;
        };
        if let Some(after) = D::REPORT.filter(|_| happened) {
            hosted.report_at.get_or_insert(now + after);
        }
        if hosted.report_at.is_some_and(|at| at <= now) {
            hosted.report_at = None;
            hosted.daemon.report(now);
        }
        let mut ended = false;
        while let Some(message) = hosted.daemon.poll_output() {
            ended |= matches!(message, FromDaemon::Ended(Ended::Exits));
            let frame = Numbered { number, message };
            self.out.push_back(ProcessOutput::Frame(frame));
        }
        if ended {
            self.all.remove(&number);
            self.exit();
        }
    }

    /// Ends the process if it is to end and no daemon is left.
    fn exit(&mut self) {
        if self.exiting && self.all.is_empty() {
            self.out.push_back(ProcessOutput::Exit);
        }
    }

    fn signal(&mut self, signal: Signal, now: Instant) {
        if signal == Signal::Terminate && !core::mem::replace(&mut self.exiting, true) {
            // A process without daemons has nothing to wait for.
            self.exit();
        }
        for number in self.all.keys().copied().collect::<Vec<_>>() {
            if let Some(hosted) = self.all.get_mut(&number) {
                hosted.daemon.signal(signal, now);
            }
            self.drain(number, true, now);
        }
    }
}

impl<D: Daemon> Machine for Process<D> {
    type Input<'a> = ProcessInput<D::To>;
    type Output = ProcessOutput<D::From>;
    type Refusal = Infallible;

    fn handle_input(&mut self, input: ProcessInput<D::To>, now: Instant) -> Result<(), Infallible> {
        let Numbered { number, message } = match input {
            ProcessInput::Frame(frame) => frame,
            ProcessInput::Signal(signal) => {
                self.signal(signal, now);
                return Ok(());
            }
        };
        if self.exiting && !self.all.contains_key(&number) {
            // The frame crossed the end of that daemon.
            return Ok(());
        }
        let hosted = self.all.entry(number).or_insert_with(|| Hosted {
            daemon: D::default(),
            report_at: None,
        });
        match message {
            ToDaemon::Atm(event) => hosted.daemon.atm(event.borrow(), now),
            ToDaemon::Message(message) => hosted.daemon.message(message, now),
        }
        self.drain(number, true, now);
        Ok(())
    }

    fn handle_timeout(&mut self, now: Instant) {
        for number in self.all.keys().copied().collect::<Vec<_>>() {
            if let Some(hosted) = self.all.get_mut(&number)
                && hosted.poll_timeout().is_some_and(|at| at <= now)
            {
                let due = hosted.daemon.poll_timeout().is_some_and(|at| at <= now);
                if due {
                    hosted.daemon.handle_timeout(now);
                }
                self.drain(number, due, now);
            }
        }
    }

    fn poll_output(&mut self) -> Option<ProcessOutput<D::From>> {
        self.out.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.all.values().filter_map(Hosted::poll_timeout).min()
    }
}

impl<D: Daemon> Hosted<D> {
    fn poll_timeout(&self) -> Option<Instant> {
        let daemon = self.daemon.poll_timeout();
        daemon.into_iter().chain(self.report_at).min()
    }
}

/// A message from a process, or an event of it, for the data halves that have seats for its daemons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessEvent<M> {
    /// The process is there.
    Came,
    /// The process is gone.
    Gone,
    /// A message from the process.
    Said(M),
}

split_record!(Numbered<M> { number, message });
impl<M: Field> Message for Numbered<M> {}

impl<M> ToDaemon<M> {
    /// True for the frame of an SDU: a daemon that cannot keep up may lose such frames.
    #[must_use]
    pub fn is_data(frame: &[u8]) -> bool {
        matches!(frame, [_, _, 0, 1, 0, 8, ..])
    }
}

split_choice!(ToDaemon<M> { 1 Atm(event); 2 Message(message); });
split_choice!(FromDaemon<M> { 1 Atm(request); 2 Message(message); 3 Trace(trace); 4 Ended(ended); });
split_choice!(Ended { 1 Stops; 2 Restarts; 3 Exits; });
