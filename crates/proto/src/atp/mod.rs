//! ATP, the ATM Transport Protocol: messages of any length over one native ATM connection, complete and in order.
//!
//! **Purpose.** A transport protocol with the function of TCP and without what ATM does already: no checksum (AAL5 has
//! one), no ports (the connection is the demultiplexer), four octets of header, a window that follows the delay.
//!
//! **Objects and owners.** One [`Atp`] for each end of a connection, owned by what owns the connection: a program's
//! socket or a program of a lab. It has a sending half (`sender.rs`, with the window in `window.rs`) and a receiving
//! half (`receiver.rs`) that know nothing of each other; ACK and NAK of one direction travel in the other. A message
//! is accepted as a whole ([`Input::Send`]), cut into packets of at most the MTU, and given out as a whole
//! ([`Atp::take`]). Message boundaries stay.
//!
//! **Limits.** [`Params::send_limit`] bounds what waits for its first transmission. Beside it the sender keeps the
//! octets of the messages that are in its window: each of them until its last packet is acknowledged. The receiver
//! takes no new message and no packet behind a gap once [`Params::receive_limit`] octets wait for its user; the
//! message that has begun may grow to [`Params::max_message`] beside them, and the packet that all others wait for
//! finds room always if the user reads. Packets are kept up to [`MAX_WINDOW`] ahead, and 64 missing ones are asked for
//! at a time.
//!
//! **States.** Open, closing (no new messages; what is accepted is still sent), closed ([`Event::Closed`]), failed
//! ([`Event::Failed`]). Complete messages can be read in each of them. A closed end acknowledges what it had received
//! when the peer repeats it, for as long as the owner keeps the connection below.
//!
//! **Timers.** A retransmission timer for each packet (500 ms, fixed) or, in the adaptive profile, for the oldest one
//! (from measured round trips, doubled after each expiry until a round trip is measured again); the time that a close
//! waits for a new ACK (ten timers). The adaptive receiver holds an ACK back for [`Params::ack_delay`] at most, and
//! repeats NAKs [`Params::retransmissions`] times.
//!
//! **Standards.** Z. Yang, *ATP Implementation and Performance*, report for a master's project, University of Hawaii,
//! 1999. The report's basis (X. Hu and Z. Jia, *A Reliable Transport Protocol over ATM*, 1998) was not available. Wire
//! format: [`aerostat_wire::atp`].
//!
//! **Not implemented.** Negotiation: both ends must have the same profile and MTU. Flow control on the wire: a
//! receiver whose user does not read drops new messages without an ACK, and the sender's timers end the connection.
//! Restart of one end: nothing on the wire tells a new connection from an old one, so the owner begins both ends anew
//! (a released call does this; at a permanent connection it is the user's duty).
//!
//! **Deviations.** The report says nothing about the following points; the choices are Aerostat's own. Numbers begin
//! with 0 and wrap at 2³⁰. A NAK is for one packet. It is repeated at the earliest after the time of the retransmission
//! timer, with the next packet that comes; in the adaptive profile after two of the times that a NAK took to bring its
//! packet, and at least a quarter of [`Params::min_timer`], or at once if a packet comes that was asked for later: a
//! connection keeps the order. The adaptive window does not count packets that have arrived behind a gap: the receiver
//! repeats its ACK for each of them. The first NAK of a packet is answered at once, others once in half a round trip. A
//! connection fails when the timer of one packet has expired more than ten times. Round trips of packets that were sent
//! twice are not measured (Karn's rule), and CARD decides nothing without a measurement. A decision of CARD takes three
//! round trips, not two (`window.rs` says why). An expired timer takes an eighth from the window, once for each round
//! trip. Quick start doubles the window for each round trip until a round trip is 1.5 times the shortest, or begins
//! with half of what the contract's rate needs.

mod meter;
mod params;
mod receiver;
mod sender;
#[cfg(test)]
mod tests;
mod window;

pub use meter::{Amount, Meter, pattern};
pub use params::{MAX_WINDOW, ParamRanges, Params, Profile};

use crate::{Instant, Machine, Refused};
use aerostat_wire::atp::Pdu;
use aerostat_wire::counted;
use core::fmt;
use receiver::Receiver;
use sender::{Out, Sender};
use std::collections::VecDeque;

/// Retransmission timers that a close waits for a new acknowledgement.
const CLOSE_TIMERS: u32 = 10;

/// Inputs of [`Atp`].
#[derive(Debug)]
pub enum Input<'a> {
    /// An SDU from the peer.
    Sdu(&'a [u8]),
    /// A message for the peer.
    Send(Vec<u8>),
    /// No more messages; the connection ends when all are acknowledged.
    Close,
    /// The connection below is gone.
    Released,
}

/// Outputs of [`Atp`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// An SDU for the peer.
    Sdu(Vec<u8>),
    /// News for the user.
    Event(Event),
}

/// News for the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// [`Atp::take`] has a message.
    Readable,
    /// Every message is acknowledged.
    Drained,
    /// The connection was closed; the owner releases the connection below.
    Closed,
    /// The connection has failed; the owner releases the connection below.
    Failed(Failure),
}

/// Why a connection failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The timer of a packet expired more often than this.
    Retransmissions(u32),
    /// The peer's message is longer than this limit, octets.
    TooLong(usize),
    /// While the connection was closing, no new acknowledgement came in the time that may pass between two.
    Close,
    /// The connection below was released while messages were under way.
    Released,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Retransmissions(times) => write!(
                f,
                "a packet was sent again after {} without an acknowledgement",
                counted(*times, "timer", "timers")
            ),
            Self::TooLong(limit) => {
                write!(
                    f,
                    "the peer's message is longer than the limit of {limit} octets"
                )
            }
            Self::Close => write!(
                f,
                "the peer acknowledged nothing new until the close timed out"
            ),
            Self::Released => write!(
                f,
                "the connection was released before everything was acknowledged"
            ),
        }
    }
}

/// Why a message is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The connection is closing or closed.
    Closed,
    /// The message is too long.
    TooLong {
        /// Its octets.
        octets: usize,
        /// Octets of the longest message.
        limit: usize,
    },
    /// Too much waits already. The message will be taken when less waits, at the latest after [`Event::Drained`].
    Full {
        /// Octets that wait.
        waiting: usize,
        /// Octets that may wait.
        limit: usize,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("the connection is closed or closing"),
            Self::TooLong { octets, limit } => write!(
                f,
                "a message of {}, and {limit} is the limit",
                counted(*octets, "octet", "octets")
            ),
            Self::Full { waiting, limit } => write!(
                f,
                "{} for transmission, and {limit} is the limit",
                counted(*waiting, "octet waits", "octets wait")
            ),
        }
    }
}
impl std::error::Error for Refusal {}
impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        Self(match refusal {
            Refusal::Closed => "the connection is closed or closing",
            Refusal::TooLong { .. } => "the message is too long",
            Refusal::Full { .. } => "too much waits for transmission",
        })
    }
}

crate::counters! {
    /// Counters of a connection.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Counters {
        /// Messages accepted from the user.
        pub messages_sent: u64,
        /// Complete messages received.
        pub messages_received: u64,
        /// Packets sent for the first time.
        pub packets_sent: u64,
        /// Packets sent again.
        pub packets_repeated: u64,
        /// Packets received for the first time.
        pub packets_received: u64,
        /// Packets received that were there already.
        pub duplicates: u64,
        /// Packets dropped: their number is too far ahead.
        pub out_of_window: u64,
        /// Packets dropped: the user does not read.
        pub no_room: u64,
        /// ACKs sent.
        pub acks_sent: u64,
        /// ACKs of packets that are not outstanding.
        pub acks_ignored: u64,
        /// NAKs sent.
        pub naks_sent: u64,
        /// NAKs received.
        pub naks_received: u64,
        /// NAKs of packets that are not outstanding, or that were just sent again.
        pub naks_ignored: u64,
        /// Expired retransmission timers.
        pub timeouts: u64,
        /// SDUs that are no PDU of ATP, or are longer than the MTU.
        pub malformed: u64,
        /// SDUs that came after the end of the connection.
        pub late: u64,
        /// Packets and numbers that were looked at: a measure of the work.
        pub steps: u64,
    }
}

/// State of a connection, for people and series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The window in eighths of a packet.
    pub window_eighths: u32,
    /// Packets that were sent and are not acknowledged.
    pub outstanding: u32,
    /// Octets that wait for their first transmission. Each message counts 64 octets more.
    pub waiting: usize,
    /// Smoothed round trip.
    pub round_trip: crate::Duration,
    /// Complete messages that the user has not read.
    pub unread_messages: usize,
    /// Octets that the receiving half keeps: those messages, the incomplete one, packets behind gaps. Each message and
    /// packet counts 64 octets more.
    pub kept: usize,
    /// Octets of these that are no complete message: a connection that ends now would cut a message.
    pub incomplete: usize,
    /// Missing packets that the receiving half asks for.
    pub asked: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// Until this time, unless a packet is acknowledged before.
    Closing(Instant),
    Closed,
    Failed,
}

/// One end of a connection.
#[derive(Debug)]
pub struct Atp {
    params: Params,
    state: State,
    sender: Sender,
    receiver: Receiver,
    out: Out,
    events: VecDeque<Event>,
}

impl Atp {
    /// An end of a connection that has just been set up. Parameters are moved into their ranges.
    #[must_use]
    pub fn new(params: Params) -> Self {
        let params = params.in_range();
        Self {
            params,
            state: State::Open,
            sender: Sender::new(&params),
            receiver: Receiver::new(&params),
            out: Out::default(),
            events: VecDeque::new(),
        }
    }
    /// The next complete message.
    pub fn take(&mut self) -> Option<Vec<u8>> {
        self.receiver.take()
    }
    /// Octets of the messages that became complete last and were not read, the last one first; at most `messages`.
    pub fn newest(&self, messages: u64) -> impl Iterator<Item = usize> {
        let messages = usize::try_from(messages).unwrap_or(usize::MAX);
        self.receiver.newest(messages)
    }
    /// `Ok` if a message of this length is taken now, so that a caller who would wait need not give it away.
    ///
    /// # Errors
    /// As [`Input::Send`] with this message.
    pub fn can_send(&self, octets: usize) -> Result<(), Refusal> {
        match self.state {
            State::Open => self.sender.fits(octets, &self.params),
            _ => Err(Refusal::Closed),
        }
    }
    /// The parameters in force.
    #[must_use]
    pub const fn params(&self) -> &Params {
        &self.params
    }
    /// Counters.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.out.counters
    }
    /// State of the connection.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let (unread_messages, unread) = self.receiver.unread();
        Snapshot {
            window_eighths: self.sender.window.eighths(),
            outstanding: self.sender.outstanding(),
            waiting: self.sender.waiting(),
            round_trip: self.sender.smoothed(),
            unread_messages,
            kept: unread + self.receiver.incomplete(),
            incomplete: self.receiver.incomplete(),
            asked: self.receiver.asked(),
        }
    }

    fn sdu(&mut self, sdu: &[u8], now: Instant) {
        let Self {
            params,
            sender,
            receiver,
            out,
            ..
        } = self;
        let pdu = match Pdu::decode(sdu) {
            Ok(pdu) if sdu.len() <= params.mtu => pdu,
            _ => {
                out.counters.malformed += 1;
                return;
            }
        };
        match pdu {
            Pdu::Data { seq, last, octets } => receiver.data(seq, last, octets, params, now, out),
            Pdu::Ack(seq) => {
                let new = sender.acknowledged(seq, params, now, out);
                if let (State::Closing(until), true) = (&mut self.state, new) {
                    *until = now + params.timer * CLOSE_TIMERS;
                }
            }
            Pdu::Nak(seq) => {
                out.counters.naks_received += 1;
                sender.asked_again(seq, params, now, out);
            }
        }
    }

    /// An SDU after the end. The peer repeats a packet whose ACK was lost, and its connection would fail without need.
    fn late(&mut self, sdu: &[u8]) {
        let counters = &mut self.out.counters;
        counters.late += 1;
        if self.state == State::Closed
            && sdu.len() <= self.params.mtu
            && let Ok(Pdu::Data { seq, .. }) = Pdu::decode(sdu)
            && let Some(ack) = self.receiver.answer(seq)
        {
            counters.acks_sent += 1;
            self.out.sdus.push_back(ack.encode());
        }
    }

    const fn ended(&self) -> bool {
        matches!(self.state, State::Closed | State::Failed)
    }

    /// Does what follows from a step: sends more, tells the user, ends the connection.
    fn go_on(&mut self, messages: u64, idle: bool, now: Instant) {
        if self.ended() {
            return;
        }
        // What was complete before a failure can be read.
        if self.out.counters.messages_received > messages {
            self.events.push_back(Event::Readable);
        }
        if let Some(failure) = self.out.failed.take() {
            return self.end(Event::Failed(failure));
        }
        self.sender.send(&self.params, now, &mut self.out);
        if self.sender.is_idle() {
            if !idle {
                self.events.push_back(Event::Drained);
            }
            if matches!(self.state, State::Closing(_)) {
                self.end(Event::Closed);
            }
        }
    }

    fn end(&mut self, event: Event) {
        self.state = match event {
            Event::Failed(_) => State::Failed,
            _ => State::Closed,
        };
        self.sender = Sender::new(&self.params);
        self.receiver.abandon();
        self.events.push_back(event);
    }
}

impl Machine for Atp {
    type Input<'a> = Input<'a>;
    type Output = Output;
    type Refusal = Refusal;

    fn handle_input(&mut self, input: Input<'_>, now: Instant) -> Result<(), Refusal> {
        let (messages, idle) = (self.out.counters.messages_received, self.sender.is_idle());
        match (input, self.state) {
            (Input::Send(message), State::Open) => {
                self.sender.accept(message, &self.params)?;
                self.out.counters.messages_sent += 1;
            }
            (Input::Send(_), _) => return Err(Refusal::Closed),
            (Input::Sdu(sdu), State::Closed | State::Failed) => self.late(sdu),
            (Input::Sdu(sdu), _) => self.sdu(sdu, now),
            (Input::Close, State::Open) => {
                self.state = State::Closing(now + self.params.timer * CLOSE_TIMERS);
            }
            (Input::Released, State::Open | State::Closing(_)) => self.end(match idle {
                true => Event::Closed,
                false => Event::Failed(Failure::Released),
            }),
            (Input::Close | Input::Released, _) => {}
        }
        self.go_on(messages, idle, now);
        Ok(())
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.ended() {
            return;
        }
        let (messages, idle) = (self.out.counters.messages_received, self.sender.is_idle());
        self.sender.expire(&self.params, now, &mut self.out);
        self.receiver.expire(&self.params, now, &mut self.out);
        if matches!(self.state, State::Closing(until) if until <= now) {
            self.out.failed.get_or_insert(Failure::Close);
        }
        self.go_on(messages, idle, now);
    }

    fn poll_output(&mut self) -> Option<Output> {
        let sdu = self.out.sdus.pop_front().map(Output::Sdu);
        sdu.or_else(|| self.events.pop_front().map(Output::Event))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let own = match self.state {
            State::Open => None,
            State::Closing(until) => Some(until),
            State::Closed | State::Failed => return None,
        };
        let halves = self
            .sender
            .deadline()
            .into_iter()
            .chain(self.receiver.deadline());
        own.into_iter().chain(halves).min()
    }
}
