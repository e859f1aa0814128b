//! SSCOP: an assured link between two signalling entities over one AAL5 connection.
//!
//! **Purpose.** Messages from one end come out at the other end in order, exactly once, as long as the connection
//! exists; both ends learn when it ends. The receiver never acknowledges by itself: the sender sends POLLs, and the
//! receiver answers with a STAT that lists every gap. A gap is also announced at once with a USTAT.
//!
//! **Objects and owners.** One [`Sscop`] per signalling channel, owned by [`crate::saal::Saal`]. It owns the
//! transmission queue (messages without a number), the transmission buffer (sent, unacknowledged), the retransmission
//! queue (numbers) and the receiver buffer (messages behind a gap). The first two together hold at most
//! [`Params::max_queue`] messages, the receiver buffer at most [`Params::window`]. For each connection the user chooses
//! whether unacknowledged messages outlive it ([`Buffers`]). If they do, [`Request::Retrieve`] returns them, until a
//! new connection or an answer of the user removes them.
//!
//! **States.** The ten of the standard ([`State`]); one function each in `connection.rs` (1 to 5),
//! `recovery.rs` (6 to 9) and `ready.rs` (10), whose data transfer is `data.rs`. Layer management's error
//! codes come out as [`Output::Management`].
//!
//! **Timers.** CC repeats BGN, END, RS and ER; POLL, KEEP-ALIVE and IDLE pace the polls of the three phases
//! of state 10 (active: data outstanding; transient: awaiting a STAT; idle); NO-RESPONSE ends it.
//!
//! **Standards.** ITU-T Q.2110 (07/94); the drafts Q.SAAL.1 and Q.SAAL.2 of UNI 3.0 as [`Mode::Qsaal1`].
//! `table.rs`, a test, restates the SDL diagrams of Q.2110 §8.2 as a table of states and events.
//!
//! **Not implemented.** The lower layer is never busy: every PDU is sent at once.
//!
//! **Deviations.** A message is not queued twice for retransmission when a USTAT and a STAT both report it. A STAT that
//! comes before the first POLL of a connection is an N(PS) error (R); literal modulo arithmetic would accept any number
//! there. An N(S) of a POLL behind VR(R) is error Q at once; modulo arithmetic would take it for an N(S) far ahead, and
//! the peer would find the error. Messages from the user while an ER is unanswered are queued, not lost, whatever BR
//! is. The user may stop the granting of credit ([`Request::Busy`]). A retransmitted BGN, RS or ER restarts NO-RESPONSE
//! only if the timer runs: in the idle phase, which has no POLL to answer, it would end a link that works.

mod connection;
mod data;
mod params;
mod primitives;
mod ready;
mod recovery;
#[cfg(test)]
mod tests;

pub use params::{Mode, ParamRanges, Params};
pub use primitives::{Buffers, Indication, MaaError, Request, Retrieval, Source};

use crate::{Instant, Machine, Refused, TimerTable};
use aerostat_wire::{Seq8, Seq24, SscopPdu};
use data::{Receiver, Sender};
use std::collections::VecDeque;

/// The ten states. Source: Q.2110 §7.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// State 1.
    Idle,
    /// State 2: BGN sent.
    OutgoingConnectionPending,
    /// State 3: BGN received, the user has not answered.
    IncomingConnectionPending,
    /// State 4: END sent.
    OutgoingDisconnectionPending,
    /// State 5: RS sent.
    OutgoingResyncPending,
    /// State 6: RS received, the user has not answered.
    IncomingResyncPending,
    /// State 7: ER sent.
    OutgoingRecoveryPending,
    /// State 8: recovered on our ER, the user has not answered.
    RecoveryResponsePending,
    /// State 9: ER received, the user has not answered.
    IncomingRecoveryPending,
    /// State 10.
    DataTransferReady,
}

/// Inputs of [`Sscop`].
#[derive(Clone, Debug)]
pub enum Input<'a> {
    /// One AAL5 SDU from the peer.
    Lower(&'a [u8]),
    /// A primitive from the user.
    Upper(Request),
}

/// Outputs of [`Sscop`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// One AAL5 SDU for the peer.
    Lower(Vec<u8>),
    /// A primitive for the user.
    Upper(Indication),
    /// A report for layer management.
    Management(MaaError),
}

crate::timer_kinds! {
    /// The timers of an SSCOP entity.
    enum Timer {
        Cc,
        Poll,
        KeepAlive,
        NoResponse,
        Idle,
    }
}

/// An event for a state function.
enum Event {
    Request(Request),
    Pdu(SscopPdu),
    /// Timer_CC expired.
    CcExpiry,
}

const NOT_NOW: Refused = Refused("SSCOP: request not allowed in this state");
const QUEUE_FULL: Refused = Refused("SSCOP: transmission queue full");
const TOO_LONG: Refused = Refused("SSCOP: message longer than 4096 octets");

/// One SSCOP entity.
#[derive(Debug)]
pub struct Sscop {
    params: Params,
    /// The edition in use; never `Auto` after the first BGN.
    mode: Mode,
    state: State,
    timers: TimerTable<Timer>,
    outputs: VecDeque<Output>,
    /// VT(SQ).
    vt_sq: Seq8,
    /// VR(SQ).
    vr_sq: Seq8,
    /// VT(CC).
    vt_cc: u32,
    /// UU data of the BGN, END or RS that Timer_CC repeats.
    uu: Vec<u8>,
    /// UU data of the BGAK or BGREJ that answered the peer's last BGN, in case that BGN is repeated.
    answer_uu: Vec<u8>,
    /// BR of the current connection, or of the last one.
    buffers: Buffers,
    tx: Sender,
    rx: Receiver,
}

impl Sscop {
    /// An entity in state 1.
    #[must_use]
    pub fn new(params: Params) -> Self {
        let params = params.bounded();
        Self {
            mode: params.mode,
            state: State::Idle,
            timers: TimerTable::default(),
            outputs: VecDeque::new(),
            vt_sq: Seq8(params.initial_sq),
            vr_sq: Seq8(0),
            vt_cc: 0,
            uu: Vec::new(),
            answer_uu: Vec::new(),
            buffers: Buffers::Release,
            tx: Sender::default(),
            rx: Receiver::default(),
            params,
        }
    }
    /// The state.
    #[must_use]
    pub const fn state(&self) -> State {
        self.state
    }
    /// VT(SQ): the number of the last BGN, RS or ER sent.
    #[must_use]
    pub const fn connection_sq(&self) -> u8 {
        self.vt_sq.0
    }
    /// Messages accepted from the user and not yet acknowledged by the peer; without a connection, those that
    /// [`Request::Retrieve`] would return.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.tx.len()
    }

    fn dispatch(&mut self, event: Event, now: Instant) -> Result<(), Refused> {
        match self.state {
            State::Idle => self.idle(event, now),
            State::OutgoingConnectionPending => self.outgoing_connection(event, now),
            State::IncomingConnectionPending => self.incoming_connection(event, now),
            State::OutgoingDisconnectionPending => self.outgoing_disconnection(event, now),
            State::OutgoingResyncPending => self.outgoing_resync(event, now),
            State::IncomingResyncPending => self.incoming_resync(event, now),
            State::OutgoingRecoveryPending => self.outgoing_recovery(event, now),
            State::RecoveryResponsePending => self.recovery_response(event, now),
            State::IncomingRecoveryPending => self.incoming_recovery(event, now),
            State::DataTransferReady => self.ready(event, now),
        }
    }

    fn send(&mut self, pdu: &SscopPdu) {
        self.outputs.push_back(Output::Lower(pdu.encode()));
    }
    fn tell(&mut self, indication: Indication) {
        self.outputs.push_back(Output::Upper(indication));
    }
    fn report(&mut self, code: char) {
        self.report_count(code, 0);
    }
    fn report_count(&mut self, code: char, count: u32) {
        self.outputs
            .push_back(Output::Management(MaaError { code, count }));
    }
    /// Reports an unexpected PDU with its own letter, A to M.
    fn unexpected(&mut self, pdu: &SscopPdu) {
        let code = match pdu {
            SscopPdu::Data { .. } => 'A',
            SscopPdu::Begin { .. } => 'B',
            SscopPdu::BeginAck { .. } => 'C',
            SscopPdu::BeginReject { .. } => 'D',
            SscopPdu::End { .. } => 'E',
            SscopPdu::EndAck => 'F',
            SscopPdu::Poll { .. } => 'G',
            SscopPdu::Stat { .. } => 'H',
            SscopPdu::Ustat { .. } => 'I',
            SscopPdu::Resync { .. } => 'J',
            SscopPdu::ResyncAck { .. } => 'K',
            SscopPdu::Recover { .. } => 'L',
            SscopPdu::RecoverAck { .. } => 'M',
            // Both are handled in every state before the state functions.
            SscopPdu::UnitData { .. } | SscopPdu::ManagementData { .. } => return,
        };
        self.report(code);
    }

    fn start(&mut self, timer: Timer, now: Instant) {
        let after = match timer {
            Timer::Cc => self.params.timer_cc,
            Timer::Poll => self.params.timer_poll,
            Timer::KeepAlive => self.params.timer_keep_alive,
            Timer::NoResponse => self.params.timer_no_response,
            Timer::Idle => self.params.timer_idle,
        };
        self.timers.start(timer, now, after);
    }
    fn stop(&mut self, timer: Timer) {
        self.timers.stop(timer);
    }
    /// Restarts NO-RESPONSE if it runs.
    fn restart_no_response(&mut self, now: Instant) {
        if self.runs(Timer::NoResponse) {
            self.start(Timer::NoResponse, now);
        }
    }
    fn runs(&self, timer: Timer) -> bool {
        self.timers.runs(timer)
    }

    /// Checks N(SQ) of a BGN, RS or ER: false if the PDU is a retransmission. Source: Q.2110 §8.2 "detect
    /// retransmission".
    fn is_new(&mut self, sq: Seq8) -> bool {
        match self.mode {
            Mode::Qsaal1 => true,
            Mode::Q2110 | Mode::Auto => {
                let new = sq != self.vr_sq;
                self.vr_sq = sq;
                new
            }
        }
    }

    /// Decides the edition at the entity's first BGN.
    fn note_begin(&mut self, sq: Seq8) {
        if self.mode == Mode::Auto {
            self.mode = if sq == Seq8(0) {
                Mode::Qsaal1
            } else {
                Mode::Q2110
            };
            if self.mode == Mode::Qsaal1 {
                self.vt_sq = Seq8(0);
            }
        }
    }

    /// VT(SQ) for a new BGN, RS or ER.
    fn next_sq(&mut self) {
        self.vt_sq = match self.mode {
            Mode::Qsaal1 => Seq8(0),
            Mode::Q2110 | Mode::Auto => self.vt_sq.next(),
        };
    }

    /// "init MR": the initial credit, counted from VR(R) = 0 of the new connection.
    fn init_mr(&mut self) -> Seq24 {
        self.rx.vr_mr = Seq24::new(self.params.window);
        self.rx.vr_mr
    }

    fn send_begin(&mut self) {
        let (sq, mr, uu) = (self.vt_sq, self.rx.vr_mr, self.uu.clone());
        self.send(&SscopPdu::Begin { sq, mr, uu });
    }
    fn send_begin_ack(&mut self, uu: Vec<u8>) {
        let mr = self.rx.vr_mr;
        self.send(&SscopPdu::BeginAck { mr, uu });
    }
    fn send_end(&mut self, by_sscop: bool, uu: Vec<u8>) {
        self.send(&SscopPdu::End { by_sscop, uu });
    }

    /// AA-ESTABLISH.request in states 1 and 4.
    fn establish(&mut self, uu: Vec<u8>, buffers: Buffers, now: Instant) {
        self.clear_buffers();
        self.buffers = buffers;
        self.vt_cc = 1;
        self.next_sq();
        self.init_mr();
        self.uu = uu;
        self.answer_uu.clear();
        self.send_begin();
        self.start(Timer::Cc, now);
        self.state = State::OutgoingConnectionPending;
    }
    /// AA-RELEASE.request in every state except 1, 3 and 4.
    fn release(&mut self, uu: Vec<u8>, now: Instant) {
        self.prepare_retrieval();
        self.vt_cc = 1;
        self.uu = uu;
        self.answer_uu.clear();
        self.send_end(false, self.uu.clone());
        self.start(Timer::Cc, now);
        self.state = State::OutgoingDisconnectionPending;
    }
    /// AA-RESYNC.request in states 7 to 10: whatever BR is, all messages are removed.
    fn resync(&mut self, uu: Vec<u8>, now: Instant) {
        self.timers.stop_all();
        self.clear_buffers();
        self.vt_cc = 1;
        self.next_sq();
        self.uu = uu;
        let (sq, mr, uu) = (self.vt_sq, self.init_mr(), self.uu.clone());
        self.send(&SscopPdu::Resync { sq, mr, uu });
        self.start(Timer::Cc, now);
        self.state = State::OutgoingResyncPending;
    }
    /// Errors Q, R, S, T of state 10.
    fn recover(&mut self, code: char, now: Instant) {
        self.report(code);
        self.prepare_recovery();
        self.vt_cc = 1;
        self.next_sq();
        let (sq, mr) = (self.vt_sq, self.init_mr());
        self.send(&SscopPdu::Recover { sq, mr });
        self.start(Timer::Cc, now);
        self.state = State::OutgoingRecoveryPending;
    }

    /// "Prepare retrieval" where a connection ends, or the peer resynchronises it: stops every timer, forgets what lay
    /// behind a gap and, with BR = yes, what the user handed in. Source: Q.2110 §8.2, its macros.
    fn prepare_retrieval(&mut self) {
        self.timers.stop_all();
        self.tx.stop(self.buffers);
        self.rx.clear();
    }
    /// "Prepare recovery": the same, except that with BR = no messages behind a gap wait to be delivered.
    fn prepare_recovery(&mut self) {
        self.timers.stop_all();
        self.tx.stop(self.buffers);
        if self.buffers == Buffers::Release {
            self.rx.clear();
        }
    }
    /// "Deliver data" of a recovery: the messages behind a gap, in order.
    fn deliver_rest(&mut self) {
        for (sn, message) in self.rx.take_rest() {
            self.tell(Indication::Data(message, sn));
        }
    }
    fn clear_buffers(&mut self) {
        self.tx.clear();
        self.rx.clear();
    }

    /// "→ 10": initialises the data variables and starts the active phase.
    fn enter_ready(&mut self, now: Instant) {
        self.timers.stop_all();
        self.tx.init();
        self.rx.init();
        self.start(Timer::Poll, now);
        self.start(Timer::NoResponse, now);
        self.state = State::DataTransferReady;
        // Messages may have been queued while the user's answer to a recovery was outstanding.
        self.send_loop(now);
    }
    fn enter_idle(&mut self, uu: Vec<u8>, source: Source) {
        self.prepare_retrieval();
        self.answer_uu.clear();
        self.tell(Indication::Released(uu, source));
        self.state = State::Idle;
    }

    /// A new BGN while a connection, or part of one, exists: the old one is released, a new one is offered.
    fn replaced_by(&mut self, mr: Seq24, uu: Vec<u8>) {
        self.prepare_retrieval();
        self.tx.vt_ms = mr;
        self.tell(Indication::Released(Vec::new(), Source::Sscop));
        self.tell(Indication::Establish(uu));
        self.state = State::IncomingConnectionPending;
    }

    /// Timer_CC expired in states 2, 4, 5 and 7: true if the PDU is to be sent once more.
    fn try_again(&mut self, now: Instant) -> bool {
        if self.vt_cc < self.params.max_cc {
            self.vt_cc += 1;
            self.start(Timer::Cc, now);
            return true;
        }
        self.report('O');
        false
    }
    /// Ends a connection on this entity's own initiative.
    fn give_up(&mut self) {
        self.send_end(true, Vec::new());
        self.enter_idle(Vec::new(), Source::Sscop);
    }

    /// AA-DATA.request in states 7 to 10.
    fn enqueue(&mut self, message: Vec<u8>) -> Result<(), Refused> {
        if message.len() > SscopPdu::MAX_INFO {
            return Err(TOO_LONG);
        }
        if self.tx.len() >= self.params.max_queue {
            return Err(QUEUE_FULL);
        }
        self.tx.queue.push_back(message);
        Ok(())
    }

    /// AA-RETRIEVE.request in states 1, 3, 4, 6, 8 and 9. Source: Q.2110 §8.2, "data retrieval".
    fn retrieve(&mut self, from: Retrieval) {
        for message in self.tx.retrieve(from) {
            self.tell(Indication::Retrieved(message));
        }
        self.tell(Indication::RetrieveComplete);
    }

    /// UD and MD, which are accepted in every state and change none.
    fn unassured(&mut self, message: Vec<u8>, management: bool) -> Result<(), Refused> {
        if message.len() > SscopPdu::MAX_INFO {
            return Err(TOO_LONG);
        }
        self.send(&if management {
            SscopPdu::ManagementData { info: message }
        } else {
            SscopPdu::UnitData { info: message }
        });
        Ok(())
    }

    fn request(&mut self, request: Request, now: Instant) -> Result<(), Refused> {
        match request {
            Request::UnitData(message) => self.unassured(message, false),
            Request::ManagementData(message) => self.unassured(message, true),
            Request::Busy(busy) => {
                self.rx.busy = busy;
                if self.state == State::DataTransferReady {
                    self.rx.grant(self.params.window);
                }
                Ok(())
            }
            Request::Establish(ref uu, _)
            | Request::EstablishResponse(ref uu, _)
            | Request::Release(ref uu)
            | Request::Resync(ref uu)
                if uu.len() > SscopPdu::MAX_UU =>
            {
                Err(TOO_LONG)
            }
            Request::Establish(..)
            | Request::EstablishResponse(..)
            | Request::Release(_)
            | Request::Data(_)
            | Request::Resync(_)
            | Request::ResyncResponse
            | Request::RecoverResponse
            | Request::Retrieve(_) => self.dispatch(Event::Request(request), now),
        }
    }

    fn receive(&mut self, octets: &[u8], now: Instant) {
        match SscopPdu::decode(octets) {
            Err(_) => self.report('U'),
            Ok(SscopPdu::UnitData { info }) => self.tell(Indication::UnitData(info)),
            Ok(SscopPdu::ManagementData { info }) => self.tell(Indication::ManagementData(info)),
            Ok(pdu) => {
                if let SscopPdu::Begin { sq, .. } = &pdu {
                    self.note_begin(*sq);
                }
                let done = self.dispatch(Event::Pdu(pdu), now);
                debug_assert!(done.is_ok(), "only requests are refused");
            }
        }
    }
}

impl Machine for Sscop {
    type Input<'a> = Input<'a>;
    type Output = Output;
    type Refusal = Refused;

    fn handle_input(&mut self, input: Input<'_>, now: Instant) -> Result<(), Refused> {
        match input {
            Input::Lower(octets) => {
                self.receive(octets, now);
                Ok(())
            }
            Input::Upper(request) => self.request(request, now),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some(timer) = self.timers.expire(now) {
            match timer {
                Timer::Cc => {
                    let done = self.dispatch(Event::CcExpiry, now);
                    debug_assert!(done.is_ok(), "only requests are refused");
                }
                Timer::Poll | Timer::KeepAlive => self.poll_expiry(now),
                Timer::Idle => {
                    self.start(Timer::NoResponse, now);
                    self.poll_expiry(now);
                }
                Timer::NoResponse => {
                    self.report('P');
                    self.give_up();
                }
            }
        }
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.timers.next()
    }
}
