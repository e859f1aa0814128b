//! Point-to-point messages of an existing call. Source: Q.2931 §5.1–5.4.

use aerostat_wire::q2931::{CauseIe, Decoded, Ie, MessageType, id};

use crate::{Cause, Instant};

use super::build;
use super::state::{CallKey, CallState, PartyState};
use super::timers::Timer;
use super::{Indication, Reason, Side, Uni};

/// VPCI/VCI assignment failure.
const LABEL_FAILURE: Cause = Cause(36);

impl Uni {
    pub(super) fn state(&self, key: CallKey) -> Option<CallState> {
        self.calls.get(&key).map(|call| call.state)
    }

    /// Takes the label from the peer's first answer. False if the call had to be cleared or the answer cannot be used.
    fn learn_label(&mut self, key: CallKey, decoded: &Decoded, now: Instant) -> bool {
        let have = self.calls.get(&key).and_then(|call| call.vc);
        match (have, build::label(decoded)) {
            (None, None) => {
                // The label is mandatory in the first answer to a SETUP without a label.
                self.report(key, Some((Cause(96), vec![id::CONNECTION_ID])));
                false
            }
            (Some(_), None) => true,
            (Some(have), Some(vc)) if have == vc => true,
            (None, Some(vc)) if self.params.side == Side::User && self.usable(vc) => {
                self.labels.insert(vc, key);
                if let Some(call) = self.calls.get_mut(&key) {
                    call.vc = Some(vc);
                }
                true
            }
            (None, Some(_)) => {
                self.clear(key, Cause::VC_UNAVAILABLE, now);
                false
            }
            (Some(_), Some(_)) => {
                self.clear(key, LABEL_FAILURE, now);
                false
            }
        }
    }

    fn answered(&mut self, key: CallKey) {
        self.stop(key, Timer::T303);
        self.stop(key, Timer::T310);
        if let Some(call) = self.calls.get_mut(&key) {
            call.setup = None;
        }
    }

    pub(super) fn on_call_proceeding(&mut self, key: CallKey, decoded: &Decoded, now: Instant) {
        if self.state(key) != Some(CallState::SetupSent) {
            self.unexpected(key, decoded.message.kind);
            return;
        }
        if !self.learn_label(key, decoded, now) {
            return;
        }
        self.answered(key);
        self.enter(key, CallState::ProceedingReceived);
        self.start(key, Timer::T310, now);
        if let Some(call) = self.calls.get(&key) {
            let (call, vc) = (call.id, call.vc);
            self.indicate(Indication::Proceeding { call, vc });
        }
    }

    pub(super) fn on_alerting(&mut self, key: CallKey, decoded: &Decoded, now: Instant) {
        if !matches!(
            self.state(key),
            Some(CallState::SetupSent | CallState::ProceedingReceived)
        ) {
            self.unexpected(key, decoded.message.kind);
            return;
        }
        if !self.learn_label(key, decoded, now) {
            return;
        }
        self.answered(key);
        self.enter(key, CallState::AlertingReceived);
        self.enter_first(key, PartyState::AlertingDelivered);
        self.start(key, Timer::T301, now);
        if let Some(call) = self.calls.get(&key) {
            let (call, vc) = (call.id, call.vc);
            let elements = build::handed_on(decoded);
            self.indicate(Indication::Alerting { call, vc, elements });
        }
    }

    pub(super) fn on_connect(&mut self, key: CallKey, decoded: &Decoded, now: Instant) {
        if !self.state(key).is_some_and(CallState::is_offering) {
            self.unexpected(key, decoded.message.kind);
            return;
        }
        if !self.learn_label(key, decoded, now) {
            return;
        }
        self.answered(key);
        self.stop(key, Timer::T301);
        self.send(self.message(key, MessageType::CONNECT_ACK));
        self.enter(key, CallState::Active);
        self.enter_first(key, PartyState::Active);
        let Some(call) = self.calls.get(&key) else {
            return;
        };
        if let Some(vc) = call.vc {
            let call = call.id;
            let info = build::connect_info(decoded);
            self.indicate(Indication::Connected { call, info, vc });
        }
    }

    pub(super) fn on_connect_ack(&mut self, key: CallKey) {
        match self.state(key) {
            Some(CallState::ConnectSent) => {
                self.stop(key, Timer::T313);
                self.activate(key);
            }
            // The network side has been active since its CONNECT.
            Some(CallState::Active) if self.params.side == Side::Network && !key.ours => {}
            _ => self.unexpected(key, MessageType::CONNECT_ACK),
        }
    }

    /// A RELEASE is answered at once, so the label is free when the owner is told.
    pub(super) fn on_release(&mut self, key: CallKey, decoded: &Decoded) {
        if self.state(key) == Some(CallState::Releasing) {
            // Both sides released at the same time: neither answers.
            let call = self.calls.get(&key);
            let cause = call.map_or(Reason::NORMAL, |call| call.cause.clone());
            self.free(key, cause);
            return;
        }
        let (cause, answer) = match self.received_cause(decoded) {
            Ok(reason) => {
                let answer = self.reason(&reason.echo());
                (reason, answer)
            }
            Err(fault) => (Cause(31).into(), self.cause_with(fault, &[id::CAUSE])),
        };
        let message = self.message(key, MessageType::RELEASE_COMPLETE);
        self.send(message.with(&answer));
        self.free(key, cause);
    }

    pub(super) fn on_release_complete(&mut self, key: CallKey, decoded: &Decoded) {
        let Some(call) = self.calls.get(&key) else {
            return;
        };
        let own = (call.state == CallState::Releasing).then(|| call.cause.clone());
        let theirs = self.received_cause(decoded);
        self.free(
            key,
            own.unwrap_or_else(|| theirs.unwrap_or(Cause(31).into())),
        );
    }

    /// The cause in a message, numbered as in UNI 3.1; the error is the fault of the cause element.
    pub(super) fn received_cause(&self, decoded: &Decoded) -> Result<Reason, Cause> {
        match decoded.ie(id::CAUSE) {
            Some(Ie::Cause(CauseIe {
                coding,
                location,
                value,
                diagnostics,
            })) => {
                let forum = coding == 3;
                let version = self.params.version;
                Ok(Reason {
                    cause: Cause(if forum {
                        value
                    } else {
                        version.cause_in(value)
                    }),
                    location: Some(location),
                    forum,
                    diagnostics,
                    elements: {
                        let mut rest = build::handed_on(decoded);
                        rest.retain(|e| e.id != id::CAUSE);
                        rest
                    },
                })
            }
            _ if decoded.message.find(id::CAUSE).is_none() => Err(Cause(96)),
            _ => Err(Cause(100)),
        }
    }
}
