//! ATP on a connection of a program.
//!
//! The program at each end of the connection gives its messages to a machine ([`Atp`]), and the PDUs of the machine go
//! the way of echoed PDUs: they wait in the program while the adapter has no room, at most [`QUEUE`] of them. A caller
//! gives the next message when every octet of the one before has had its first transmission, and releases the call
//! `hold` after the last acknowledgement; until then it takes what the other end sends. When the machine fails, the
//! program releases the call, with cause 102 if timers ended it. A permanent connection has no release: its machine
//! keeps the failure, and a host that restarts begins with new numbers while the other end does not, so both ends have
//! to begin anew.

use super::{Answer, Behaviour, Output, Program, Role, SocketLayer, SocketRef, parts};
use aerostat_proto::atp::{
    Amount, Atp, Counters, Event, Failure, Input, Meter, Output as Told, Params, Profile, pattern,
};
use aerostat_proto::{Cause, Duration, Instant, Machine, Trace};

/// Limit of PDUs of ATP that wait in the program: two largest windows. ATP repeats what is refused here.
const QUEUE: usize = 8192;

/// Messages that a program sends by ATP, and their rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Octets in all; 0 if it only receives.
    pub octets: u64,
    /// Octets of each message, at least 1; the last message may be shorter.
    pub message: usize,
    /// Parameters. Both ends need the same profile.
    pub params: Params,
    /// True to keep every change of the window.
    pub series: bool,
}

/// Limit of changes of the window that are kept for a connection; further changes are counted.
pub const STEPS: usize = 10_000;

/// A change of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// When, by the clock of the host.
    pub at: Instant,
    /// The window since then, eighths of a packet.
    pub window: u32,
    /// The smoothed round trip then; before the first measurement the one that the machine begins with.
    pub round_trip: Duration,
}

/// How ATP on a connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Messages may still come or go.
    Open,
    /// All messages that this end sent were acknowledged, and no message was cut by the end of the connection.
    Complete,
    /// The connection ended in the middle of a message from the other end, or before this end had given all messages.
    Cut,
    /// The machine failed.
    Failed(Failure),
    /// The host was switched off.
    Off,
}

impl Outcome {
    /// The outcome in words.
    #[must_use]
    pub fn text(self) -> String {
        match self {
            Self::Open => "open".to_owned(),
            Self::Complete => "complete".to_owned(),
            Self::Cut => "the connection ended in the middle".to_owned(),
            Self::Failed(failure) => failure.to_string(),
            Self::Off => "its host was switched off".to_owned(),
        }
    }
}

/// Figures of one end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figures {
    /// The rules that it follows.
    pub profile: Profile,
    /// Messages given to the machine; the time is that until all of them were acknowledged, zero before.
    pub sent: Amount,
    /// Octets that the program has not given to the machine.
    pub left: u64,
    /// Complete messages from the other end.
    pub received: Amount,
    /// Messages that an echo could not send back.
    pub refused: u64,
    /// Messages from the other end with other octets than the pattern that programs send.
    pub wrong: u64,
    /// Time from the first message given to the machine to the last complete message that came back; zero before.
    pub turn: Duration,
    /// Smallest, largest and last window, eighths of a packet.
    pub window: [u32; 3],
    /// Smoothed round trip when the figures were taken, or at the end.
    pub round_trip: Duration,
    /// Counters of the machine.
    pub counters: Counters,
    /// Changes of the window that were not kept because [`STEPS`] were.
    pub steps_left_out: u64,
    /// How it stands.
    pub outcome: Outcome,
}

/// ATP at one end of a connection.
#[derive(Debug)]
pub(super) struct End {
    machine: Atp,
    message: usize,
    answer: Option<Answer>,
    /// When the program begins to send; `None` once it has begun.
    starts: Option<Instant>,
    begun: Instant,
    meter: Meter,
    figures: Figures,
    /// Changes of the window, in the order of time; `None` if they are not kept.
    steps: Option<Vec<Step>>,
}

impl End {
    fn new(transfer: &Transfer, answer: Option<Answer>) -> Self {
        let machine = Atp::new(transfer.params);
        let window = machine.snapshot().window_eighths;
        let none = Amount::default();
        let figures = Figures {
            profile: transfer.params.profile,
            sent: none,
            left: transfer.octets,
            received: none,
            refused: 0,
            wrong: 0,
            turn: Duration::ZERO,
            window: [window; 3],
            round_trip: Duration::ZERO,
            counters: *machine.counters(),
            steps_left_out: 0,
            outcome: Outcome::Open,
        };
        Self {
            machine,
            message: transfer.message.max(1),
            answer,
            starts: None,
            begun: Instant::ZERO,
            meter: Meter::default(),
            figures,
            steps: transfer.series.then(Vec::new),
        }
    }

    /// When there is work to do.
    fn deadline(&self) -> Option<Instant> {
        let starts = self.starts.into_iter();
        starts.chain(self.machine.poll_timeout()).min()
    }

    /// Gives messages to the machine.
    fn send(&mut self, now: Instant) {
        if self.starts.is_some_and(|at| at <= now) {
            self.starts = None;
            self.begun = now;
        }
        if self.starts.is_some() || self.figures.left == 0 {
            return;
        }
        while self.figures.left > 0 && self.machine.snapshot().waiting == 0 {
            let octets = self.figures.left.min(self.message as u64);
            let input = Input::Send(pattern(octets as usize).collect());
            if self.machine.handle_input(input, now).is_err() {
                return;
            }
            self.figures.left -= octets;
            self.figures.sent.octets += octets;
            self.figures.sent.messages += 1;
        }
    }

    /// Takes a message, and sends it back if the program echoes; false if no message is there.
    fn receive(&mut self, now: Instant) -> bool {
        let Some(message) = self.machine.take() else {
            return false;
        };
        let octets = message.len() as u64;
        self.meter.message(octets, now);
        self.figures.received = self.meter.received();
        self.figures.wrong += u64::from(!message.iter().copied().eq(pattern(message.len())));
        if self.answer != Some(Answer::Echo) {
            if self.figures.sent.messages > 0 {
                self.figures.turn = now.since(self.begun);
            }
            return true;
        }
        if self.figures.sent.messages == 0 {
            self.begun = now;
        }
        match self.machine.handle_input(Input::Send(message), now) {
            Ok(()) => {
                self.figures.sent.messages += 1;
                self.figures.sent.octets += octets;
            }
            Err(_) => self.figures.refused += 1,
        }
        true
    }

    fn measure(&mut self, at: Instant) {
        let seen = self.machine.snapshot();
        let figures = &mut self.figures;
        figures.counters = *self.machine.counters();
        if figures.outcome == Outcome::Open {
            let [least, most, _] = figures.window;
            let now = seen.window_eighths;
            figures.window = [least.min(now), most.max(now), now];
            figures.round_trip = seen.round_trip;
            if let Some(steps) = &mut self.steps
                && steps.last().is_none_or(|last| last.window != now)
            {
                let (window, round_trip) = (now, seen.round_trip);
                match steps.len() < STEPS {
                    true => steps.push(Step {
                        at,
                        window,
                        round_trip,
                    }),
                    false => figures.steps_left_out += 1,
                }
            }
        }
    }

    /// The connection is gone.
    fn over(&mut self, now: Instant) {
        if self.figures.outcome != Outcome::Open {
            return;
        }
        self.measure(now);
        let cut = self.figures.left > 0 || self.machine.snapshot().kept > 0;
        let _ = self.machine.handle_input(Input::Released, now);
        let mut outcome = if cut { Outcome::Cut } else { Outcome::Complete };
        while let Some(told) = self.machine.poll_output() {
            if let Told::Event(Event::Failed(failure)) = told {
                outcome = Outcome::Failed(failure);
            }
        }
        self.figures.outcome = outcome;
    }
}

impl Behaviour {
    /// Figures of ATP, if the program uses it.
    #[must_use]
    pub fn atp(&self) -> Option<Figures> {
        self.atp.as_ref().map(|end| end.figures)
    }
    /// The kept changes of the window of ATP; empty if the program does not want them.
    #[must_use]
    pub fn window_steps(&self) -> &[Step] {
        let steps = self.atp.as_ref().and_then(|end| end.steps.as_deref());
        steps.unwrap_or_default()
    }
    /// When ATP has work to do.
    pub(super) fn atp_deadline(&self) -> Option<Instant> {
        self.atp.as_ref().and_then(|end| end.deadline())
    }
    /// The connection is gone: what was not acknowledged is not sent any more.
    pub(super) fn end_atp(&mut self, now: Instant) {
        if let Some(end) = &mut self.atp {
            end.over(now);
        }
    }
}

impl SocketLayer {
    /// A connection of this program is open, or may get PDUs: ATP begins, if the program uses it. It sends from the
    /// time `starts` on.
    pub(super) fn begin_atp(&mut self, at: SocketRef, index: usize, starts: Option<Instant>) {
        let program = &self.programs.list[index];
        let own = parts(&mut self.table, at).map(|(_, own)| own);
        let (Some(transfer), Some(own)) = (&program.atp, own) else {
            return;
        };
        let new = || Box::new(End::new(transfer, program.role.answer()));
        let end = own.atp.get_or_insert_with(new);
        end.starts = starts.filter(|_| end.figures.left > 0);
        (own.left, own.next) = (0, None);
    }

    /// An SDU for ATP, or the time (`None`).
    pub(super) fn atp(&mut self, at: SocketRef, sdu: Option<&[u8]>) {
        let now = self.programs.now;
        let Some((socket, own)) = parts(&mut self.table, at) else {
            return;
        };
        let Some((index, mut end)) = socket.program.zip(own.atp.take()) else {
            return;
        };
        let Program { name, role, .. } = &self.programs.list[index];
        match sdu {
            Some(sdu) => {
                let _ = end.machine.handle_input(Input::Sdu(sdu), now);
                end.meter.sdu(&end.machine, sdu.len(), now);
                end.figures.received = end.meter.received();
            }
            None => end.machine.handle_timeout(now),
        }
        let mut failed = None;
        end.send(now);
        while let Some(told) = end.machine.poll_output() {
            match told {
                Told::Sdu(sdu) => own.queue(socket, sdu, QUEUE, usize::MAX),
                Told::Event(Event::Readable) => {
                    // One event may stand for several messages: those behind a gap that is filled.
                    while end.receive(now) {}
                }
                Told::Event(Event::Drained) => {
                    end.figures.sent.time = now.since(end.begun);
                    if let (Role::Call { hold, .. }, 0) = (role, end.figures.left) {
                        own.next = Some(now + *hold);
                    }
                }
                // The machine is not closed: what the other end sends back must find it open.
                Told::Event(Event::Closed) => {}
                Told::Event(Event::Failed(failure)) => {
                    end.measure(now);
                    end.starts = None;
                    end.figures.outcome = Outcome::Failed(failure);
                    failed = Some(failure);
                }
            }
        }
        end.measure(now);
        own.atp = Some(end);
        if let Some(failure) = failed {
            let text = format!("{name}: ATP failed: {failure}");
            let trace = Trace::milestone("socket.atp", text).with("socket", name);
            self.out.push_back(Output::Trace(trace));
            if !matches!(role, Role::Permanent { .. }) {
                return self.release(at, cause_of(failure));
            }
        }
        self.write_next(at);
    }
}

/// The cause with which a program releases its call when ATP has failed.
const fn cause_of(failure: Failure) -> Cause {
    match failure {
        Failure::Retransmissions(_) | Failure::Close => Cause::TIMER,
        Failure::TooLong(_) | Failure::Released => Cause::TEMPORARY,
    }
}
