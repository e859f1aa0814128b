//! Dispatch of a message from the peer: its call, the validity of its elements, and its handler.

use aerostat_wire::Vc;
use aerostat_wire::q2931::{
    Action, CallRef, Decoded, Element, Ie, Message, MessageType, Verdict, convert, id,
};

use crate::{Cause, Instant};

use super::build::{self, INHERITED};
use super::state::{Call, CallKey, CallState, Party, PartyState};
use super::{Indication, Reason, SetupInfo, Side, Uni, Version};

/// Service or option not available, unspecified.
const NOT_AVAILABLE: Cause = Cause(63);
const MISSING: Cause = Cause(96);
const UNKNOWN_MESSAGE: Cause = Cause(97);
const UNKNOWN_ELEMENT: Cause = Cause(99);
const BAD_ELEMENT: Cause = Cause(100);
pub(super) const WRONG_STATE: Cause = Cause(101);
pub(super) const UNKNOWN_CALL: Cause = Cause(81);

/// A cause with its diagnostics.
pub(super) type Fault = (Cause, Vec<u8>);

/// The result of checking a message's elements.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Check {
    /// Handle the message, then report the fault, if it has one.
    Good(Option<Fault>),
    /// Do not handle the message; report the fault, if it has one.
    Ignore(Option<Fault>),
    /// Clear the call.
    Clear(Fault),
    /// A mandatory element is missing or bad.
    Refuse(Fault),
}

/// A SETUP that can be accepted.
struct Offer {
    report: Option<Fault>,
    info: SetupInfo,
    vc: Option<Vc>,
    party: Option<u16>,
}

impl Uni {
    pub(super) fn receive(&mut self, octets: &[u8], now: Instant) {
        self.counters.received += 1;
        let Ok(mut decoded) = Message::decode(octets) else {
            self.counters.ignored += 1;
            return;
        };
        if self.params.passes_along {
            self.counters.passed_along += decoded.pass_along() as u64;
        }
        self.count_faults(&decoded);
        match decoded.message.call.value {
            CallRef::GLOBAL => self.receive_global(&decoded, now),
            CallRef::DUMMY if decoded.message.kind == MessageType::LEAF_SETUP_REQUEST => {
                self.refuse_leaf(&decoded);
            }
            // Connection-oriented bearer-independent calls are not supported.
            CallRef::DUMMY => self.counters.ignored += 1,
            _ => {
                let key = CallKey::received(decoded.message.call);
                if self.calls.contains_key(&key) {
                    self.receive_call(key, &decoded, now);
                } else {
                    self.receive_unknown(key, &decoded);
                }
            }
        }
    }

    /// Leaf initiated join is not supported; the leaf is told at once instead of after T331.
    /// Source: UNI Signalling 4.0 §6.
    fn refuse_leaf(&mut self, decoded: &Decoded) {
        let sequence = decoded.good().find(|e| e.id == id::LEAF_SEQUENCE);
        let refused = match check(decoded) {
            Check::Good(_) => Some((NOT_AVAILABLE, Vec::new())),
            Check::Clear(fault) | Check::Refuse(fault) => Some(fault),
            Check::Ignore(_) => None,
        };
        let known = self.params.version == Version::Uni40;
        let (Some(sequence), Some((cause, diagnostics)), true) = (sequence, refused, known) else {
            self.counters.ignored += 1;
            return;
        };
        self.counters.leaf_requests += 1;
        let cause = self.cause_with(cause, &diagnostics).encode();
        let call = decoded.message.call.answer();
        let failure = Message::new(call, MessageType::LEAF_SETUP_FAILURE);
        self.send(failure.with_elements([cause, sequence.clone()]));
    }

    fn count_faults(&mut self, decoded: &Decoded) {
        for (_, verdict) in decoded.faults() {
            match verdict {
                Verdict::Unknown | Verdict::Unexpected => self.counters.unknown_elements += 1,
                _ => self.counters.bad_elements += 1,
            }
        }
        if !decoded.missing().is_empty() {
            self.counters.missing_elements += 1;
        }
    }

    /// A message for a call that does not exist. Source: Q.2931 §5.6.3.2.
    fn receive_unknown(&mut self, key: CallKey, decoded: &Decoded) {
        let call = decoded.message.call;
        match decoded.message.kind {
            MessageType::SETUP if call.flag => self.counters.ignored += 1,
            MessageType::SETUP => self.offered(key, decoded),
            MessageType::RELEASE_COMPLETE => self.counters.ignored += 1,
            MessageType::STATUS_ENQUIRY => {
                let cause = self.cause(Cause(30));
                self.send_to(
                    call.answer(),
                    MessageType::STATUS,
                    &[Ie::CallState(0), cause],
                );
            }
            MessageType::STATUS => {
                self.counters.unknown_references += 1;
                if !matches!(decoded.ie(id::CALL_STATE), Some(Ie::CallState(0))) {
                    let cause = self.cause(WRONG_STATE);
                    self.send_to(call.answer(), MessageType::RELEASE_COMPLETE, &[cause]);
                }
            }
            _ => {
                self.counters.unknown_references += 1;
                let cause = self.cause(UNKNOWN_CALL);
                self.send_to(call.answer(), MessageType::RELEASE_COMPLETE, &[cause]);
            }
        }
    }

    fn receive_call(&mut self, key: CallKey, decoded: &Decoded, now: Instant) {
        let kind = decoded.message.kind;
        match kind {
            // A duplicate: the peer's T303 expired before our answer arrived.
            MessageType::SETUP => self.counters.ignored += 1,
            MessageType::RELEASE => self.on_release(key, decoded),
            MessageType::RELEASE_COMPLETE => self.on_release_complete(key, decoded),
            MessageType::STATUS => self.on_status(key, decoded, now),
            _ if kind.definition().is_none() => self.unknown_message(key, decoded, now),
            // UNI 3.0 and 3.1 exclude NOTIFY of Q.2931.
            MessageType::NOTIFY if !self.params.version.has_message(kind) => {
                self.unknown_message(key, decoded, now);
            }
            _ => self.receive_checked(key, decoded, now),
        }
    }

    fn receive_checked(&mut self, key: CallKey, decoded: &Decoded, now: Instant) {
        match check(decoded) {
            Check::Good(report) => {
                self.dispatch(key, decoded, now);
                self.report(key, report);
            }
            Check::Ignore(report) => self.report(key, report),
            Check::Clear((cause, diagnostics)) => {
                self.clear(key, Reason::from(cause).with(&diagnostics), now);
            }
            Check::Refuse(fault) => {
                if !self.reject_bad_party(key, decoded, &fault) {
                    self.report(key, Some(fault));
                }
            }
        }
    }

    fn dispatch(&mut self, key: CallKey, decoded: &Decoded, now: Instant) {
        match decoded.message.kind {
            MessageType::CALL_PROCEEDING => self.on_call_proceeding(key, decoded, now),
            MessageType::ALERTING => self.on_alerting(key, decoded, now),
            MessageType::CONNECT => self.on_connect(key, decoded, now),
            MessageType::CONNECT_ACK => self.on_connect_ack(key),
            MessageType::STATUS_ENQUIRY => self.on_status_enquiry(key, decoded),
            MessageType::NOTIFY => self.on_notify(key, decoded),
            MessageType::ADD_PARTY => self.on_add_party(key, decoded),
            MessageType::ADD_PARTY_ACK => self.on_add_party_ack(key, decoded),
            MessageType::PARTY_ALERTING => self.on_party_alerting(key, decoded, now),
            MessageType::ADD_PARTY_REJECT => self.on_add_party_reject(key, decoded, now),
            MessageType::DROP_PARTY => self.on_drop_party(key, decoded, now),
            MessageType::DROP_PARTY_ACK => self.on_drop_party_ack(key, decoded),
            // Information about an ISDN behind the peer, which is not used here.
            MessageType::PROGRESS => self.counters.ignored += 1,
            _ => self.unexpected(key, decoded.message.kind),
        }
    }

    /// A message that is not allowed in its call's state: STATUS 101, nothing else changes.
    pub(super) fn unexpected(&mut self, key: CallKey, kind: MessageType) {
        self.counters.unexpected += 1;
        let releasing = self.calls.get(&key).map(|call| call.state) == Some(CallState::Releasing);
        if !releasing {
            self.report(key, Some((WRONG_STATE, vec![kind.0])));
        }
    }

    /// Source: Q.2931 §5.6.4, §5.7.2: the action that the message requests, or STATUS 97.
    fn unknown_message(&mut self, key: CallKey, decoded: &Decoded, now: Instant) {
        self.counters.unknown_messages += 1;
        let diagnostics = vec![decoded.message.kind.0];
        match decoded.message.action() {
            Some(0) => {
                let reason = Reason::from(UNKNOWN_MESSAGE).with(&diagnostics);
                self.clear(key, reason, now);
            }
            Some(1) => {}
            _ => self.report(key, Some((UNKNOWN_MESSAGE, diagnostics))),
        }
    }

    /// Tells the peer about a fault with STATUS and the state of the call.
    pub(super) fn report(&mut self, key: CallKey, fault: Option<Fault>) {
        let (Some((cause, diagnostics)), Some(call)) = (fault, self.calls.get(&key)) else {
            return;
        };
        let state = Ie::CallState(call.state.number(self.params.side));
        let cause = self.cause_with(cause, &diagnostics);
        self.send_to(key.reference(), MessageType::STATUS, &[state, cause]);
    }

    /// A new call. Source: Q.2931 §5.1, §5.2.
    fn offered(&mut self, key: CallKey, decoded: &Decoded) {
        let Offer {
            report,
            info,
            vc,
            party,
        } = match self.examine(decoded) {
            Ok(offer) => offer,
            Err(None) => return,
            Err(Some((cause, diagnostics))) => {
                self.counters.offers_refused += 1;
                let cause = self.cause_with(cause, &diagnostics);
                self.send_to(key.reference(), MessageType::RELEASE_COMPLETE, &[cause]);
                return;
            }
        };
        let id = self.new_id();
        // Only parties of a point-to-multipoint call use them.
        let kept = |e: &&Element| info.multipoint && INHERITED.contains(&e.id);
        let inherited = info.elements.iter().filter(kept);
        // The user side is told its label; the owner of the network side chooses one, whatever the user proposed.
        let own_label = vc.filter(|_| self.params.side == Side::User);
        let call = Call {
            id,
            state: CallState::SetupReceived,
            vc: own_label,
            called: info.called,
            calling: info.calling,
            blli: info.blli,
            multipoint: info.multipoint,
            inherited: inherited.cloned().collect::<Vec<Element>>(),
            setup: None,
            waiting: false,
            resent: false,
            asked_again: false,
            cause: Reason::NORMAL,
            first: party,
            parties: party
                .map(|p| (p, Party::new(PartyState::AddReceived, info.called)))
                .into_iter()
                .collect(),
        };
        self.ids.insert(id, key);
        if let Some(vc) = own_label {
            self.labels.insert(vc, key);
        }
        self.calls.insert(key, Box::new(call));
        self.indicate(Indication::Setup {
            call: id,
            info,
            vc,
            party: party.map(crate::PartyId),
        });
        self.report(key, report);
    }

    /// Checks whether a SETUP can be accepted. The error is the cause of its refusal, or `None` if it is to be ignored.
    fn examine(&mut self, decoded: &Decoded) -> Result<Offer, Option<Fault>> {
        let refuse = |cause: u8, element: &[u8]| Err(Some((Cause(cause), element.to_vec())));
        if self.calls.len() >= self.params.limits.calls {
            self.counters.calls_refused += 1;
            return refuse(Cause::RESOURCES.0, &[]);
        }
        let report = match check(decoded) {
            Check::Good(report) => report,
            Check::Ignore(_) => return Err(None),
            Check::Clear(fault) | Check::Refuse(fault) => return Err(Some(fault)),
        };
        let Some(called) = build::called(decoded) else {
            // Only ATM end system addresses are routed; other formats are invalid.
            return refuse(28, &[]);
        };
        let info = build::setup_info(decoded, called, &[]);
        let party = build::party(decoded);
        if info.multipoint && party.is_none() {
            return refuse(MISSING.0, &[id::ENDPOINT_REFERENCE]);
        }
        if let Some(Ie::Traffic(traffic)) = decoded.ie(id::TRAFFIC_DESCRIPTOR)
            && !convert::combination_allowed(&traffic, info.multipoint)
        {
            return refuse(73, &[]);
        }
        let vc = build::label(decoded);
        if self.params.side == Side::User {
            match vc {
                None => return refuse(MISSING.0, &[id::CONNECTION_ID]),
                Some(vc) if !self.usable(vc) => return refuse(Cause::VC_UNAVAILABLE.0, &[]),
                Some(_) => {}
            }
        }
        // An endpoint reference in a point-to-point SETUP has no meaning.
        let party = party.filter(|_| info.multipoint);
        Ok(Offer {
            report,
            info,
            vc,
            party,
        })
    }
}

/// The order in which errors count. Source: Q.2931 §5.6.6–5.6.8 and §5.7.
pub(super) fn check(decoded: &Decoded) -> Check {
    let missing = decoded.missing();
    if !missing.is_empty() {
        return Check::Refuse((MISSING, missing));
    }
    let definition = decoded.message.kind.definition();
    let mandatory = |id: u8| {
        definition.is_some_and(|d| d.mandatory.contains(&id))
            || (id == id::QOS_PARAMETER && decoded.message.kind == MessageType::SETUP)
    };
    // Known elements in the wrong message are ignored, but an action requested by their sender counts.
    let faults: Vec<_> = decoded
        .faults()
        .filter(|(e, verdict)| *verdict != Verdict::Unexpected || e.instruction.action().is_some())
        .collect();
    let fault_of = |wanted: &dyn Fn(&Element) -> bool| -> Option<Fault> {
        let hit = faults.iter().filter(|(e, _)| wanted(e));
        let mut cause = None;
        let mut ids = Vec::new();
        for (element, verdict) in hit {
            let this = match verdict {
                Verdict::Unknown | Verdict::Unexpected => UNKNOWN_ELEMENT,
                _ => BAD_ELEMENT,
            };
            // A STATUS has one cause, so only the elements with the first one are named.
            if *cause.get_or_insert(this) == this && ids.len() < 28 {
                ids.push(element.id);
            }
        }
        cause.map(|cause| (cause, ids))
    };
    let asks = |action: Action| move |e: &Element| e.instruction.action() == Some(action);
    if let Some(fault) = fault_of(&asks(Action::ClearCall)) {
        return Check::Clear(fault);
    }
    if let Some(fault) = fault_of(&asks(Action::DiscardMessageReport)) {
        return Check::Ignore(Some(fault));
    }
    if fault_of(&asks(Action::DiscardMessage)).is_some() {
        return Check::Ignore(None);
    }
    if let Some(fault) = fault_of(&|e| mandatory(e.id)) {
        return Check::Refuse(fault);
    }
    Check::Good(fault_of(&|e| {
        e.instruction.action() != Some(Action::DiscardElement)
    }))
}
