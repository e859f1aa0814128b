//! TCP, as real hosts have it: a machine whose parameters are those of a host.
//!
//! **Purpose.** In experiments with TCP over ATM the behaviour of TCP is what is measured. So each point in which hosts
//! differed is a parameter ([`Params`]), and [`profiles`] has the values of hosts.
//!
//! **Objects and owners.** One [`Tcp`] for each end of a connection, owned by the host. It has a sending half
//! (`send.rs`, with `scoreboard.rs`, `growth.rs`, and `recovery.rs`) and a receiving half (`receive.rs`, `ack.rs`).
//! `arrive.rs` has the rules of RFC 9293 for segments that arrive. The owner finds the connection of a segment, and
//! answers segments of no connection by [`reset_for`].
//!
//! **The loop.** An input, then [`Machine::poll_output`] until no output is left. Events come before segments, and
//! segments are made when they are asked for. So a program that reads and writes at an event has its effect in the
//! segments that follow: an acknowledgement offers the window after the reading, and a window of k segments carries k.
//!
//! **States.** Those of RFC 9293 §3.3.2 ([`State`]). [`Input::Close`] ends the sending direction only (a half close):
//! the program may read until the peer's FIN. [`Input::Leave`] ends both.
//!
//! **Timers.** Retransmission (RFC 6298), persist, the tail and the order of transmissions (RFC 8985), delayed
//! acknowledgements, handshake, keep-alive, FIN-WAIT-2 and TIME-WAIT. With [`TimerParams::slow_tick`] retransmission
//! and persist follow a clock of the whole host, whose phase is an argument.
//!
//! **Bounds.** [`SendParams::most`] and [`ReceiveParams::most`] bound what is kept; [`MAX_RANGES`] the pieces beyond
//! holes. Answers to segments outside the window are limited (RFC 5961 §7), and all that is cut off or not answered is
//! counted.
//!
//! **Standards.** RFC 9293, RFC 1122 §4.2, RFC 5961 (challenge ACKs for RST, SYN and ACK), RFC 7323 (window scale, time
//! stamps, PAWS), RFC 2018 and 2883 (selective acknowledgements), RFC 3168 (ECN), those of `recovery.rs` and
//! `growth.rs`.
//!
//! **Not implemented.** Path MTU discovery (the owner knows the MTU); a listening end has one connection (the owner has
//! as many as its backlog); a SYN in TIME-WAIT that opens the connection anew; TCP Fast Open; pacing.
//!
//! **Deviations.** Urgent data is passed as data, and its pointer is counted only. A segment without time stamps where
//! they are agreed is dropped, as RFC 7323 §3.2 says; Linux takes it. A peer that offers a maximum segment size below
//! 48 is taken at 48, as in Linux.

mod ack;
mod api;
mod arrive;
mod clock;
mod growth;
pub mod params;
pub mod profiles;
mod receive;
mod recovery;
mod scoreboard;
mod send;
mod snapshot;
#[cfg(test)]
mod tests;

pub use arrive::reset_for;
pub use params::{Params, ReceiveParams, SendParams, TimerParams};
pub use profiles::Profile;
pub use receive::MAX_RANGES;
pub use recovery::Phase;
pub use snapshot::{Counters, Snapshot};

use crate::mix::mix;
use crate::{Instant, Machine, TimerTable};
use aerostat_wire::tcp::{Flags, Options, Segment, TimeStamps};
pub use api::{Config, Event, Failure, Input, Output, Refusal, State};
use arrive::Challenges;
use clock::StampClock;
use receive::Receiver;
use send::{Outgoing, SendTimer, Sender};
use std::collections::VecDeque;

crate::timer_kinds! {
    /// Timers of a connection, besides those of its halves.
    enum Timer {
        /// SYN, or SYN with ACK, is sent again.
        Handshake,
        /// The connection is idle.
        KeepAlive,
        /// FIN-WAIT-2 or TIME-WAIT ends.
        End,
    }
}

/// Explicit congestion notification of a connection.
#[derive(Clone, Copy, Debug, Default)]
struct Ecn {
    /// Both ends have it.
    agreed: bool,
    /// A mark is echoed until the peer has reduced its window.
    echo: bool,
}

/// The time stamps of a connection.
#[derive(Clone, Copy, Debug, Default)]
struct Stamps {
    /// Both ends have them.
    agreed: bool,
    /// The value that is echoed, and when it was taken.
    recent: u32,
    taken: Instant,
}

/// One end of a connection.
#[derive(Debug)]
pub struct Tcp {
    config: Config,
    state: State,
    now: Instant,
    rx: Receiver,
    tx: Sender,
    clock: StampClock,
    stamps: Stamps,
    ecn: Ecn,
    /// Both ends have selective acknowledgements.
    sack: bool,
    /// Both ends scale their windows.
    scaled: bool,
    /// The end was listening.
    passive: bool,
    /// The program is gone.
    left: bool,
    /// SYN, or SYN with ACK, is to be sent.
    syn_due: bool,
    /// Time of the first SYN, and how many were sent.
    syn_at: Instant,
    syn_sent: u32,
    /// A probe of the idle connection is to be sent; probes without an answer.
    alive_due: bool,
    alive_sent: u32,
    timers: TimerTable<Timer>,
    challenges: Challenges,
    /// Answers without data that are to be sent: resets.
    replies: VecDeque<Segment>,
    events: VecDeque<Event>,
    counters: Counters,
}

impl Tcp {
    /// An end without a connection.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let mut config = config;
        config.params = config.params.in_range();
        let params = &config.params;
        let ports = u64::from(config.local) << 16 | u64::from(config.remote);
        let random = mix(config.seed ^ ports << 32);
        let clock = StampClock::new(params.timers.stamp_unit, (random >> 32) as u32);
        let mut tx = Sender::new(params, random as u32, clock, config.phase);
        tx.repair.initial_window = params.initial_window(tx.mss);
        Self {
            state: State::Closed,
            now: Instant::ZERO,
            rx: Receiver::new(params.receive, u64::from(params.mss), config.phase),
            tx,
            clock,
            stamps: Stamps::default(),
            ecn: Ecn::default(),
            sack: false,
            scaled: false,
            passive: false,
            left: false,
            syn_due: false,
            syn_at: Instant::ZERO,
            syn_sent: 0,
            alive_due: false,
            alive_sent: 0,
            timers: TimerTable::default(),
            challenges: Challenges::default(),
            replies: VecDeque::new(),
            events: VecDeque::new(),
            counters: Counters::default(),
            config,
        }
    }
    /// The state.
    #[must_use]
    pub const fn state(&self) -> State {
        self.state
    }
    /// The parameters in force.
    #[must_use]
    pub const fn params(&self) -> &Params {
        &self.config.params
    }
    /// Own port and that of the peer.
    #[must_use]
    pub const fn ports(&self) -> (u16, u16) {
        (self.config.local, self.config.remote)
    }
    /// Counters.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }
    /// Octets that [`Input::Write`] takes now.
    #[must_use]
    pub fn room(&self) -> usize {
        self.tx.room()
    }
    /// Octets that [`Self::read`] gives now.
    #[must_use]
    pub fn unread(&self) -> usize {
        self.rx.unread()
    }
    /// Reads at most `most` octets. As after an input, outputs are to be taken then: the window may have moved.
    pub fn read(&mut self, most: usize, now: Instant) -> Vec<u8> {
        self.now = now;
        self.rx.read(most, now)
    }
    /// Octets that were written and are not acknowledged.
    #[must_use]
    pub fn unacknowledged(&self) -> usize {
        self.tx.queued()
    }
    /// News for the program, apart from segments: an owner takes all news, lets its program run, and asks for segments
    /// then ([`Machine::poll_output`]), so that they offer the window after the program has read.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Data can be sent, and acknowledgements.
    const fn is_synchronized(&self) -> bool {
        !matches!(
            self.state,
            State::Closed | State::Listen | State::SynSent | State::SynReceived
        )
    }

    fn tell(&mut self, event: Event) {
        if self.events.back() != Some(&event) {
            self.events.push_back(event);
        }
    }

    fn open(&mut self, state: State, now: Instant) {
        self.state = state;
        if state == State::Listen {
            self.passive = true;
            return;
        }
        self.tx.next = 1;
        self.syn_at = now;
        self.syn_due = true;
    }

    /// The connection ends; nothing is sent or waited for any more.
    fn end(&mut self, event: Option<Event>) {
        self.state = State::Closed;
        self.timers.stop_all();
        self.tx.timers.stop_all();
        self.syn_due = false;
        self.alive_due = false;
        if let Some(event) = event {
            self.tell(event);
        }
    }

    fn fail(&mut self, failure: Failure) {
        self.end(Some(Event::Failed(failure)));
    }

    fn close(&mut self) -> Result<(), Refusal> {
        match self.state {
            State::Closed => return Err(Refusal::State(self.state)),
            State::Listen | State::SynSent => self.end(Some(Event::Closed)),
            State::SynReceived => self.tx.closing = true,
            State::Established => {
                self.tx.closing = true;
                self.state = State::FinWait1;
            }
            State::CloseWait => {
                self.tx.closing = true;
                self.state = State::LastAck;
            }
            State::FinWait1
            | State::FinWait2
            | State::Closing
            | State::LastAck
            | State::TimeWait => {}
        }
        Ok(())
    }

    fn leave(&mut self) -> Result<(), Refusal> {
        self.close()?;
        self.left = true;
        if self.rx.unread() > 0 {
            self.abort();
            return Ok(());
        }
        self.rx.release();
        if self.state == State::FinWait2 {
            self.wait_for_fin();
        }
        Ok(())
    }

    /// FIN-WAIT-2 of a program that is gone does not last for ever.
    fn wait_for_fin(&mut self) {
        if let (Some(time), true) = (self.config.params.timers.fin_wait, self.left) {
            self.timers.start(Timer::End, self.now, time);
        }
    }

    fn abort(&mut self) {
        if self.state == State::SynReceived
            || (self.is_synchronized() && self.state != State::TimeWait)
        {
            let mut reset = self.header(self.tx.number(self.tx.next), Flags::RST.with(Flags::ACK));
            reset.ack = self.rx.ack_number();
            self.counters.resets_sent += 1;
            self.replies.push_back(reset);
        }
        self.end(None);
    }

    fn write(&mut self, octets: &[u8]) -> Result<(), Refusal> {
        match self.state {
            State::SynSent | State::SynReceived | State::Established | State::CloseWait
                if !self.tx.closing => {}
            _ => return Err(Refusal::State(self.state)),
        }
        let room = self.tx.room();
        if octets.len() > room {
            return Err(Refusal::Full { room });
        }
        self.tx.write(octets);
        Ok(())
    }

    fn header(&self, seq: u32, flags: Flags) -> Segment {
        Segment {
            source: self.config.local,
            destination: self.config.remote,
            seq,
            flags,
            ..Segment::default()
        }
    }

    /// A segment of a synchronized connection, with acknowledgement, window and options.
    fn segment(&mut self, seq: u32, flags: Flags) -> Segment {
        let mut segment = self.header(seq, flags.with(Flags::ACK));
        segment.ack = self.rx.ack_number();
        segment.window = self.rx.offer(true);
        segment.options = Options {
            timestamps: self.stamp(),
            ..Options::default()
        };
        if self.ecn.echo {
            segment.flags = segment.flags.with(Flags::ECE);
        }
        if self.sack {
            let most = if self.stamps.agreed { 3 } else { 4 };
            segment.options.sack = self.rx.blocks(most);
        }
        self.counters.segments_sent += 1;
        segment
    }

    fn stamp(&self) -> Option<TimeStamps> {
        let echo = self.stamps.recent;
        let value = self.clock.value(self.now);
        self.stamps.agreed.then_some(TimeStamps { value, echo })
    }

    /// SYN, or SYN with ACK. An answer has the options that the peer has offered.
    fn syn(&mut self) -> Segment {
        let answer = self.state == State::SynReceived;
        let params = &self.config.params;
        let flags = if answer {
            Flags::SYN.with(Flags::ACK)
        } else {
            Flags::SYN
        };
        let mut segment = self.header(self.tx.iss, flags);
        let window = self.rx.offer(false);
        segment.window = window;
        segment.options.mss = Some(params.mss);
        segment.options.sack_permitted = if answer { self.sack } else { params.sack };
        let scales = if answer {
            self.scaled
        } else {
            params.window_scaling
        };
        segment.options.window_scale = scales.then(|| params.scale());
        if answer {
            segment.ack = self.rx.ack_number();
            segment.options.timestamps = self.stamp();
            if self.ecn.agreed {
                segment.flags = segment.flags.with(Flags::ECE);
            }
        } else {
            let value = self.clock.value(self.now);
            segment.options.timestamps = params.timestamps.then_some(TimeStamps { value, echo: 0 });
            if params.ecn {
                segment.flags = segment.flags.with(Flags::ECE).with(Flags::CWR);
            }
        }
        self.syn_sent += 1;
        self.counters.segments_sent += 1;
        let timers = self.config.params.timers;
        let doubled = (self.syn_sent - 1).saturating_sub(timers.syn_linear);
        let back_off = 1 << doubled.min(16);
        let after = timers.initial.saturating_mul(back_off).min(timers.most);
        let at = self.tx.estimator.expiry(self.now, after);
        self.timers
            .start(Timer::Handshake, self.now, at.since(self.now));
        segment
    }

    fn data(&mut self, out: Outgoing) -> Output {
        let mut flags = Flags::default();
        if out.fin {
            flags = flags.with(Flags::FIN);
        }
        if out.push && !out.data.is_empty() {
            flags = flags.with(Flags::PSH);
        }
        let fresh = self.ecn.agreed && !out.data.is_empty() && !out.again;
        if fresh && core::mem::take(&mut self.tx.tell_reduced) {
            flags = flags.with(Flags::CWR);
        }
        let segment = self.segment(self.tx.number(out.start), flags);
        if !out.data.is_empty() {
            self.rx.ack.sent_data(self.now);
        }
        Output::Segment {
            segment,
            data: out.data,
            markable: fresh,
        }
    }

    fn bare(segment: Segment) -> Output {
        Output::Segment {
            segment,
            data: Vec::new(),
            markable: false,
        }
    }

    fn restart_keep_alive(&mut self) {
        self.alive_sent = 0;
        if let (Some((idle, _, _)), true) =
            (self.config.params.timers.keep_alive, self.is_synchronized())
        {
            self.timers.start(Timer::KeepAlive, self.now, idle);
        }
    }

    fn keep_alive(&mut self) {
        let Some((_, gap, most)) = self.config.params.timers.keep_alive else {
            return;
        };
        if self.alive_sent >= most {
            self.abort();
            return self.tell(Event::Failed(Failure::TimedOut));
        }
        // Outstanding data has a timer of its own.
        if self.tx.board.is_empty() {
            self.alive_sent += 1;
            self.alive_due = true;
        }
        self.timers.start(Timer::KeepAlive, self.now, gap);
    }

    fn expired(&mut self, timer: Timer) {
        match timer {
            Timer::Handshake if self.syn_sent > self.config.params.timers.syn_most() => {
                self.fail(Failure::TimedOut);
            }
            Timer::Handshake => {
                self.counters.timeouts += 1;
                self.syn_due = true;
            }
            Timer::KeepAlive => self.keep_alive(),
            Timer::End => self.end(None),
        }
    }

    fn expired_sender(&mut self, timer: SendTimer) {
        let (now, counters) = (self.now, &mut self.counters);
        let goes_on = match timer {
            SendTimer::Retransmit => self.tx.retransmit_timer(now, counters),
            SendTimer::Persist => self.tx.persist_timer(now),
            SendTimer::Tail => {
                self.tx.tail_timer(now);
                true
            }
            SendTimer::Reorder => {
                self.tx.reorder_timer(now, counters);
                true
            }
        };
        if !goes_on {
            self.abort();
            self.tell(Event::Failed(Failure::TimedOut));
        }
    }
}

impl Machine for Tcp {
    type Input<'a> = Input<'a>;
    type Output = Output;
    type Refusal = Refusal;

    fn handle_input(&mut self, input: Input<'_>, now: Instant) -> Result<(), Refusal> {
        self.now = now;
        match input {
            Input::Connect | Input::Listen if self.state != State::Closed || self.syn_sent > 0 => {
                return Err(Refusal::State(self.state));
            }
            Input::Connect => self.open(State::SynSent, now),
            Input::Listen => self.open(State::Listen, now),
            Input::Segment {
                segment,
                data,
                marked,
            } => self.arrive(segment, data, marked),
            Input::Write(octets) => self.write(octets)?,
            Input::Close => self.close()?,
            Input::Leave => self.leave()?,
            Input::Abort => self.abort(),
        }
        Ok(())
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.now = now;
        while let Some(timer) = self.timers.expire(now) {
            self.expired(timer);
        }
        self.rx.ack.expire(now);
        while let Some(timer) = self.tx.timers.expire(now) {
            self.expired_sender(timer);
        }
    }

    fn poll_output(&mut self) -> Option<Output> {
        if let Some(event) = self.poll_event() {
            return Some(Output::Event(event));
        }
        if let Some(reply) = self.replies.pop_front() {
            return Some(Self::bare(reply));
        }
        if core::mem::take(&mut self.syn_due) {
            return Some(Self::bare(self.syn()));
        }
        if !self.is_synchronized() {
            return None;
        }
        if self.rx.ack.is_due() {
            self.counters.acks_sent += 1;
            let segment = self.segment(self.tx.number(self.tx.next), Flags::default());
            return Some(Self::bare(segment));
        }
        if let Some(out) = self.tx.next_segment(self.now, &mut self.counters) {
            return Some(self.data(out));
        }
        if core::mem::take(&mut self.alive_due) {
            let number = self.tx.number(self.tx.next.saturating_sub(1));
            return Some(Self::bare(self.segment(number, Flags::default())));
        }
        None
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let delayed = match self.is_synchronized() {
            true => self.rx.ack.deadline(),
            false => None,
        };
        let all = [self.timers.next(), self.tx.timers.next(), delayed];
        all.into_iter().flatten().min()
    }
}
