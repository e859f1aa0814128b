//! One UNI interface: the calls of Q.2931 and Q.2971 between a user and a network side.
//!
//! # Purpose
//! [`Uni`] turns an owner's requests ([`Request`]) and a peer's messages into messages and [`Indication`]s. A host's
//! signalling daemon owns one on the user side. A switch owns one per port, on the network side, or on the user side
//! of a trunk (IISP). The owner also connects it with the signalling link below.
//!
//! # Objects and owners
//! The interface owns its calls. The peer knows a call by its call reference (value, and the side that chose it), the
//! owner by its [`CallId`]. Each call owns its parties, which are identified by endpoint reference. Labels belong to
//! the owner of the network side: it passes a label with its first message about a call and gets it back with
//! `Released`. A label that is in use here is refused (cause 35 to a peer).
//!
//! # States
//! The two sides of an interface have the same half-calls with different state numbers, so there is one machine:
//! ```text
//! started here    SetupSent ~> ProceedingReceived ~> AlertingReceived ~> Active    (U1 U3 U4 U10, N6 N9 N7 N10)
//! started there   SetupReceived ~> ProceedingSent ~> AlertingSent ~> ConnectSent ~> Active
//!                                                                  (U6 U9 U7 U8 U10, N1 N3 N4 – N10)
//! any             ~> Releasing ~> gone                             (U11, N12)
//! party           AddInitiated ~> AlertingDelivered ~> Active ~> DropInitiated ~> gone
//!                 AddReceived ~> AlertingReceived ~> Active
//! ```
//! A peer's RELEASE is answered at once, so U12 and N11 do not last. The global call reference is in REST1 while our
//! RESTART is unanswered, in REST2 while the owner frees the resources of the peer's RESTART.
//!
//! # Timers
//! T301, T303, T308, T310, T313, T322 per call, T397, T398, T399 per party, T309, T316 and T317 per interface, with
//! the resends of the standard; values in [`TimerValues`].
//!
//! # Errors of the peer
//! The decoder judges every element. The order of the answers is: mandatory element missing (96), the action requested
//! by an element's sender, mandatory element bad (100), optional one bad (STATUS, continue). Messages that do not fit
//! the state get STATUS 101, unknown ones 97, unknown calls RELEASE COMPLETE 81. No STATUS is ever sent in answer to a
//! STATUS. An undefined element goes to an owner that forwards messages ([`Params::passes_along`]) if its pass-along
//! indicator says so. A call ends with a [`Reason`], which a switch forwards with the location and diagnostics that it
//! received.
//!
//! # Standards
//! ITU-T Q.2931 (02/95) §5, annex H omitted; Q.2971 (10/95) §9; ATM Forum UNI 3.0, 3.1 §5.5–5.6, UNI
//! Signalling 4.0 (call control of annexes 1, 5 and 8 only); Q.2962; the pass-along indicator of PNNI 1.0 §6.4.5.1.
//!
//! # Not implemented
//! Leaf initiated join (refused, cause 63), Q.2963 modification, Q.2932 facility, overlap sending, N-ISDN interworking,
//! virtual path connections, VP-associated signalling, negotiation of QoS (negotiation of traffic is left to the owner:
//! `negotiate.rs`). Elements of these pass through in a [`SetupInfo`]. Undefined messages are not passed along.
//!
//! # Deviations
//! CONNECT is acknowledged by the network side at once (N8 does not last). In state Releasing, messages that crossed
//! our RELEASE are dropped without a STATUS. Elements that are known but not allowed in their message are ignored
//! without a STATUS. A STATUS that reports ADD PARTY or DROP PARTY as unknown (Linux leaves) ends the waiting parties
//! at once. A RESTART for one idle channel is acknowledged. Calls that the owner requests while the link is down wait
//! for it.

mod api;
mod build;
mod call;
mod expiry;
mod negotiate;
mod notify;
mod params;
mod party;
mod receive;
mod requests;
mod restart;
mod state;
mod status;
mod timers;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};

use aerostat_wire::Vc;
pub use aerostat_wire::q2931::Version;
use aerostat_wire::q2931::{CallRef, CauseIe, Element, Ie, Message, MessageType};
pub use api::location;
pub use api::{
    CallId, ConnectInfo, Indication, Input, Output, Reason, Request, Restart, SetupInfo,
};
pub use negotiate::Fallback;
pub use params::{Limits, Params, TimerValues};
pub use state::{CallSnapshot, CallState, Counters, PartyState};

use crate::{Cause, Instant, Machine, PartyId, Refused, Trace, Words};
use state::{Call, CallKey};
use timers::{Timer, TimerKey, Timers};

/// The side of the interface that this end has. Between two switches (IISP) one has the user side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The user side, which is told the labels.
    User,
    /// The network side, which chooses the labels.
    Network,
}

/// One UNI interface. It requests its link at once, so take its outputs after making it.
#[derive(Debug)]
pub struct Uni {
    params: Params,
    up: bool,
    /// A box for each call: a node of the table has room for eleven, and most nodes are half full.
    calls: BTreeMap<CallKey, Box<Call>>,
    ids: BTreeMap<CallId, CallKey>,
    labels: BTreeMap<Vc, CallKey>,
    last_reference: u32,
    last_id: u32,
    restart: Option<restart::Pending>,
    restarts: VecDeque<Restart>,
    clearing: Vec<restart::Clearing>,
    timers: Timers,
    outputs: VecDeque<Output>,
    counters: Counters,
}

impl Uni {
    /// An interface whose link is down; its first output requests the link.
    #[must_use]
    pub fn new(params: Params) -> Self {
        Self {
            params,
            up: false,
            calls: BTreeMap::new(),
            ids: BTreeMap::new(),
            labels: BTreeMap::new(),
            last_reference: 0,
            last_id: CallId::INCOMING - 1,
            restart: None,
            restarts: VecDeque::new(),
            clearing: Vec::new(),
            timers: Timers::default(),
            outputs: VecDeque::from([Output::SaalEstablish]),
            counters: Counters::default(),
        }
    }
    /// Changes the location of causes of this interface.
    pub(crate) const fn set_location(&mut self, location: u8) {
        self.params.location = location;
    }
    /// Side, version, timers and limits.
    #[must_use]
    pub const fn params(&self) -> &Params {
        &self.params
    }
    /// True while the link is up.
    #[must_use]
    pub const fn is_up(&self) -> bool {
        self.up
    }
    /// The counters.
    #[must_use]
    pub const fn counters(&self) -> Counters {
        self.counters
    }
    /// True if a call has this label.
    #[must_use]
    pub fn uses(&self, label: Vc) -> bool {
        self.labels.contains_key(&label)
    }
    /// All calls, by reference.
    pub fn calls(&self) -> impl Iterator<Item = CallSnapshot> {
        self.calls.iter().map(|(key, call)| CallSnapshot {
            call: call.id,
            reference: key.value,
            ours: key.ours,
            state: call.state,
            called: call.called,
            calling: call.calling,
            blli: call.blli,
            vc: call.vc,
            multipoint: call.multipoint,
            parties: {
                let parties = call.parties.iter();
                parties
                    .map(|(id, p)| (PartyId(*id), p.state, p.called))
                    .collect()
            },
        })
    }

    fn link_up(&mut self, now: Instant) {
        let was_up = core::mem::replace(&mut self.up, true);
        self.timers.stop(TimerKey::link(Timer::T309));
        if !was_up {
            self.indicate(Indication::Up);
            self.trace("uni.up", "Signalling link is up");
        }
        self.resume_restart();
        let keys: Vec<_> = self.calls.keys().copied().collect();
        for key in keys {
            self.resume_call(key, now);
        }
    }

    /// Repeats or enquires about everything that the link may have lost.
    fn resume_call(&mut self, key: CallKey, now: Instant) {
        let Some(call) = self.calls.get_mut(&key) else {
            return;
        };
        let cause = call.cause.clone();
        match call.state {
            CallState::Active => {
                call.asked_again = false;
                self.enquire(key, now);
            }
            CallState::SetupSent if call.waiting => {
                call.waiting = false;
                call.resent = false;
                let setup = call.setup.clone().unwrap_or_default();
                self.send_octets(setup);
                self.start(key, Timer::T303, now);
            }
            CallState::Releasing => {
                self.send(self.ending(key, MessageType::RELEASE, &cause));
            }
            _ => {}
        }
    }

    fn link_down(&mut self, now: Instant) {
        if core::mem::replace(&mut self.up, false) {
            self.indicate(Indication::Down);
            self.trace("uni.down", "Signalling link is down");
        }
        let lost = self
            .calls
            .iter()
            .filter(|(_, c)| c.state != CallState::Active);
        let lost: Vec<_> = lost.map(|(key, _)| *key).collect();
        for key in lost {
            self.counters.lost_with_link += 1;
            self.free(key, Cause::OUT_OF_ORDER.into());
        }
        let kept: Vec<_> = self.calls.keys().copied().collect();
        for key in kept {
            self.stop(key, Timer::T322);
        }
        // The peer repeats its request once the link is back.
        self.clearing.clear();
        self.timers.stop(TimerKey::link(Timer::T317));
        let t309 = TimerKey::link(Timer::T309);
        if !self.calls.is_empty() && !self.timers.runs(t309) {
            self.timers.start(t309, now, self.params.timers.t309);
        }
        self.outputs.push_back(Output::SaalEstablish);
    }

    /// A message of a call to the peer, still without elements.
    fn message(&self, key: CallKey, kind: MessageType) -> Message {
        Message::new(key.reference(), kind)
    }
    fn cause(&self, cause: Cause) -> Ie {
        self.cause_with(cause, &[])
    }
    fn cause_with(&self, cause: Cause, diagnostics: &[u8]) -> Ie {
        self.reason(&Reason::from(cause).with(diagnostics))
    }
    /// The cause element for a reason. An invalid cause is sent as 31 (normal, unspecified).
    fn reason(&self, reason: &Reason) -> Ie {
        let value = match reason.cause.0 {
            value @ 1..=127 if reason.forum => value,
            value @ 1..=127 => self.params.version.cause_out(value),
            _ => 31,
        };
        let kept = reason.diagnostics.len().min(Reason::DIAGNOSTICS);
        Ie::Cause(CauseIe {
            coding: if reason.forum { 3 } else { 0 },
            location: reason.location.unwrap_or(self.params.location),
            value,
            diagnostics: reason.diagnostics[..kept].to_vec(),
        })
    }
    /// A message that ends a call or a party: the cause, and its further elements.
    fn ending(&self, key: CallKey, kind: MessageType, reason: &Reason) -> Message {
        let rest = build::relayed(self.params.version, kind, &reason.elements);
        let message = self.message(key, kind).with(&self.reason(reason));
        message.with_elements(rest)
    }
    fn send(&mut self, message: Message) {
        self.send_octets(message.encode());
    }
    fn send_octets(&mut self, octets: Vec<u8>) {
        if self.up {
            self.counters.sent += 1;
            self.outputs.push_back(Output::SaalData(octets));
        } else {
            self.counters.unsent += 1;
        }
    }
    fn send_to(&mut self, call: CallRef, kind: MessageType, ies: &[Ie]) {
        let elements = ies.iter().map(Ie::encode).collect::<Vec<Element>>();
        self.send(Message::new(call, kind).with_elements(elements));
    }
    fn indicate(&mut self, indication: Indication) {
        self.outputs.push_back(Output::Indication(indication));
    }
    fn trace(&mut self, name: &'static str, text: impl Into<Words>) {
        let trace = Trace::detail(name, text);
        self.outputs.push_back(Output::Trace(trace));
    }

    fn start(&mut self, key: CallKey, timer: Timer, now: Instant) {
        let after = self.duration(timer);
        self.timers.start(TimerKey::call(key, timer), now, after);
    }
    fn stop(&mut self, key: CallKey, timer: Timer) {
        self.timers.stop(TimerKey::call(key, timer));
    }
    const fn duration(&self, timer: Timer) -> crate::Duration {
        let t = &self.params.timers;
        match timer {
            Timer::T301 => t.t301,
            Timer::T303 => t.t303,
            Timer::T308 => t.t308,
            Timer::T309 => t.t309,
            Timer::T310 => t.t310,
            Timer::T313 => t.t313,
            Timer::T316 => t.t316,
            Timer::T317 => t.t317,
            Timer::T322 => t.t322,
            Timer::T397 => t.t397,
            Timer::T398 => t.t398,
            Timer::T399 => t.t399,
        }
    }

    /// Changes the state of a call. States change only here.
    fn enter(&mut self, key: CallKey, state: CallState) {
        let side = self.params.side;
        if let Some(call) = self.calls.get_mut(&key) {
            let from = core::mem::replace(&mut call.state, state);
            let text = Words::later(move |f| {
                let [from, to] = [from, state].map(|state| state.name(side));
                write!(f, "Call {} goes from {from} to {to}", key.value)
            });
            self.trace("uni.call", text);
        }
    }
    /// Removes a call and tells the owner that it has ended.
    fn free(&mut self, key: CallKey, cause: Reason) {
        self.timers.stop_call(key);
        let Some(call) = self.calls.remove(&key) else {
            return;
        };
        self.ids.remove(&call.id);
        if let Some(label) = call.vc {
            self.labels.remove(&label);
        }
        self.indicate(Indication::Released {
            call: call.id,
            cause,
        });
    }
    /// Starts the release of a call on the interface's own initiative.
    fn clear(&mut self, key: CallKey, cause: impl Into<Reason>, now: Instant) {
        let Some(call) = self.calls.get(&key) else {
            return;
        };
        if call.state == CallState::Releasing {
            return;
        }
        let call = call.id;
        let cause = cause.into();
        self.indicate(Indication::Clearing {
            call,
            cause: Reason::clone(&cause),
        });
        self.release(key, cause, now);
    }
    fn release(&mut self, key: CallKey, cause: Reason, now: Instant) {
        self.timers.stop_call(key);
        let message = self.ending(key, MessageType::RELEASE, &cause);
        if let Some(call) = self.calls.get_mut(&key) {
            call.cause = cause;
            call.resent = false;
            call.setup = None;
        }
        self.enter(key, CallState::Releasing);
        self.send(message);
        self.start(key, Timer::T308, now);
    }
}

impl Machine for Uni {
    type Input<'a> = Input<'a>;
    type Output = Output;
    type Refusal = Refused;

    fn handle_input(&mut self, input: Input<'_>, now: Instant) -> Result<(), Refused> {
        self.handle_timeout(now);
        match input {
            Input::SaalUp => self.link_up(now),
            Input::SaalDown => self.link_down(now),
            Input::LineDown => {
                self.link_down(now);
                self.timers.stop(TimerKey::link(Timer::T309));
                self.link_given_up();
            }
            Input::SaalData(octets) => self.receive(octets, now),
            Input::Request(request) => {
                let result = self.request(request, now);
                self.counters.refused_requests += u64::from(result.is_err());
                return result;
            }
        }
        Ok(())
    }
    fn handle_timeout(&mut self, now: Instant) {
        while let Some(key) = self.timers.expire(now) {
            self.counters.timeouts += 1;
            self.expired(key, now);
        }
    }
    fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }
    fn poll_timeout(&self) -> Option<Instant> {
        self.timers.next()
    }
}
