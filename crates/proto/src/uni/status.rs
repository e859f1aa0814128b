//! STATUS and STATUS ENQUIRY. Source: Q.2931 §5.6.11–5.6.12.

use aerostat_wire::q2931::{Decoded, Ie, MessageType, id};

use crate::{Cause, Instant};

use super::build;
use super::receive::WRONG_STATE;
use super::state::{CallKey, CallState};
use super::timers::Timer;
use super::{Reason, Uni};

impl Uni {
    /// Asks the peer for its state of a call.
    pub(super) fn enquire(&mut self, key: CallKey, now: Instant) {
        self.send(self.message(key, MessageType::STATUS_ENQUIRY));
        self.start(key, Timer::T322, now);
    }

    pub(super) fn on_status_enquiry(&mut self, key: CallKey, decoded: &Decoded) {
        let Some(call) = self.calls.get(&key) else {
            return;
        };
        let state = Ie::CallState(call.state.number(self.params.side));
        let mut ies = vec![state, self.cause(Cause(30))];
        if let Some(party) = build::party(decoded) {
            let known = call.parties.get(&party);
            ies.push(self.endpoint(key, party));
            ies.push(Ie::EndpointState(known.map_or(0, |p| p.state as u8)));
        }
        self.send_to(key.reference(), MessageType::STATUS, &ies);
    }

    pub(super) fn on_status(&mut self, key: CallKey, decoded: &Decoded, now: Instant) {
        let Some(call) = self.calls.get(&key) else {
            return;
        };
        let own = call.state;
        // An unreadable STATUS does not cause another STATUS.
        let Some(Ie::CallState(reported)) = decoded.ie(id::CALL_STATE) else {
            self.counters.ignored += 1;
            return;
        };
        if reported == 0 {
            let cause = match own {
                CallState::Releasing => call.cause.clone(),
                _ => WRONG_STATE.into(),
            };
            self.free(key, cause);
            return;
        }
        if own == CallState::Releasing {
            return;
        }
        self.stop(key, Timer::T322);
        if !own.agrees_with(self.params.side, reported) {
            let reason = Reason::from(WRONG_STATE).with(&[MessageType::STATUS.0]);
            self.clear(key, reason, now);
            return;
        }
        self.party_status(key, decoded, now);
        if self.state(key) != Some(own) {
            return;
        }
        self.message_not_known(key, decoded, now);
    }

    /// Compares the states of a party, if the STATUS reports a party. Source: Q.2971 §9.5.
    fn party_status(&mut self, key: CallKey, decoded: &Decoded, now: Instant) {
        let state = decoded.ie(id::ENDPOINT_STATE);
        let (Some(party), Some(Ie::EndpointState(reported))) = (build::party(decoded), state)
        else {
            return;
        };
        let Some(call) = self.calls.get(&key).filter(|call| call.multipoint) else {
            return;
        };
        let (active, last) = (call.state == CallState::Active, call.last_party(party));
        let own = call.parties.get(&party).map(|p| p.state);
        match own {
            // The peer has a party that does not exist here. It will answer the DROP PARTY, and nothing here waits for
            // that.
            None if active && !matches!(reported, 0 | 11 | 12) => {
                let cause = Some(WRONG_STATE.into());
                self.send_party(key, MessageType::DROP_PARTY, party, cause);
            }
            None => {}
            Some(own) if own.agrees_with(key.ours, reported) => {}
            Some(_) if last && active => {
                let reason = Reason::from(WRONG_STATE).with(&[MessageType::STATUS.0]);
                self.clear(key, reason, now);
            }
            Some(_) if last => {}
            // A party that the peer does not have has ended.
            Some(_) if reported == 0 => {
                if let Some(p) = self.party_mut(key, party) {
                    p.cause = Some(Box::new(WRONG_STATE.into()));
                }
                self.party_gone(key, party);
            }
            Some(_) if active => self.drop_party(key, party, WRONG_STATE.into(), now),
            Some(_) => {}
        }
    }

    /// Cause 97 with the message type in the diagnostics.
    fn message_not_known(&mut self, key: CallKey, decoded: &Decoded, now: Instant) {
        let Some(Ie::Cause(cause)) = decoded.ie(id::CAUSE) else {
            return;
        };
        let about = cause.diagnostics.first().map(|kind| MessageType(*kind));
        if let (97, Some(kind @ (MessageType::ADD_PARTY | MessageType::DROP_PARTY))) =
            (cause.value, about)
        {
            self.parties_not_known(key, kind, now);
        }
    }
}
