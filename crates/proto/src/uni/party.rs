//! Parties of point-to-multipoint calls. Source: Q.2971 §9.
//!
//! The root is the side that started the call. Parties end with their call, without individual messages.

use aerostat_wire::q2931::{Decoded, Element, Ie, Message, MessageType};

use crate::{Cause, Instant, PartyId, Refused};

use super::build;
use super::receive::Fault;
use super::state::{Call, CallKey, CallState, Party, PartyState};
use super::timers::{Timer, TimerKey};
use super::{ConnectInfo, Indication, Reason, SetupInfo, Uni, Version};

/// Invalid endpoint reference.
const UNKNOWN_PARTY: Cause = Cause(89);
const NO_PARTY: Refused = Refused("no such party");
const WRONG_STATE: Refused = Refused("the state of the party does not allow this");

/// A party of a call, as an answer names it.
pub(super) struct NamedParty {
    /// Its endpoint reference.
    pub(super) party: u16,
    pub(super) state: PartyState,
    pub(super) call: super::CallId,
}

impl Uni {
    // --- What the owner asks for ---

    pub(super) fn add_party(
        &mut self,
        key: CallKey,
        party: PartyId,
        info: &SetupInfo,
        now: Instant,
    ) -> Result<(), Refused> {
        let limit = self.params.limits.parties;
        let call = self.calls.get_mut(&key).ok_or(NO_PARTY)?;
        if !key.ours || !call.multipoint {
            return Err(Refused("only the root of a multipoint call adds parties"));
        }
        if !matches!(call.state, CallState::Active | CallState::AlertingReceived) {
            return Err(Refused("the call has no leaf yet, or none any more"));
        }
        if call.parties.contains_key(&party.0) || party.0 > 0x7fff {
            return Err(Refused("the party is not free"));
        }
        if call.parties.len() >= limit {
            return Err(Refused("too many parties on this call"));
        }
        let new = Party::new(PartyState::AddInitiated, info.called);
        call.parties.insert(party.0, new);
        let kind = MessageType::ADD_PARTY;
        let elements = self.setup_elements(kind, info, None, Some(party.0));
        self.send(Message::new(key.reference(), kind).with_elements(elements));
        self.start_party(key, party.0, Timer::T399, now);
        Ok(())
    }

    pub(super) fn alert_party(
        &mut self,
        key: CallKey,
        party: PartyId,
        elements: &[Element],
    ) -> Result<(), Refused> {
        let p = self.party_mut(key, party.0).ok_or(NO_PARTY)?;
        if p.state != PartyState::AddReceived {
            return Err(WRONG_STATE);
        }
        if self.params.version == Version::Uni40 {
            self.enter_party(key, party.0, PartyState::AlertingReceived);
            let kind = MessageType::PARTY_ALERTING;
            let elements = build::relayed(self.params.version, kind, elements);
            let endpoint = self.endpoint(key, party.0);
            let message = self.message(key, kind).with(&endpoint);
            self.send(message.with_elements(elements));
        }
        Ok(())
    }

    pub(super) fn accept_party(
        &mut self,
        key: CallKey,
        party: PartyId,
        info: &ConnectInfo,
    ) -> Result<(), Refused> {
        self.expect_offered(key, party.0)?;
        self.enter_party(key, party.0, PartyState::Active);
        let kind = MessageType::ADD_PARTY_ACK;
        let mut message = self.message(key, kind);
        message.elements = self.connect_elements(kind, info);
        let endpoint = self.endpoint(key, party.0);
        self.send(message.with(&endpoint));
        Ok(())
    }

    pub(super) fn reject_party(
        &mut self,
        key: CallKey,
        party: PartyId,
        cause: Reason,
        now: Instant,
    ) -> Result<(), Refused> {
        self.expect_offered(key, party.0)?;
        self.send_party(
            key,
            MessageType::ADD_PARTY_REJECT,
            party.0,
            Some(cause.clone()),
        );
        self.forget_party(key, party.0);
        self.clear_if_empty(key, cause, now);
        Ok(())
    }

    /// Checks that a party was added by ADD PARTY and waits for the owner's answer.
    fn expect_offered(&mut self, key: CallKey, party: u16) -> Result<(), Refused> {
        let call = self.calls.get(&key).ok_or(NO_PARTY)?;
        let p = call.parties.get(&party).ok_or(NO_PARTY)?;
        let offered = matches!(
            p.state,
            PartyState::AddReceived | PartyState::AlertingReceived
        );
        // The party of the SETUP is answered together with the call.
        let with_call = call.first == Some(party) && call.state.is_offered();
        if !offered || with_call || call.state == CallState::Releasing {
            return Err(WRONG_STATE);
        }
        Ok(())
    }

    pub(super) fn drop_requested(
        &mut self,
        key: CallKey,
        party: PartyId,
        cause: Reason,
        now: Instant,
    ) -> Result<(), Refused> {
        let call = self.calls.get(&key).ok_or(NO_PARTY)?;
        let state = call.parties.get(&party.0).ok_or(NO_PARTY)?.state;
        let gone = state == PartyState::DropInitiated || call.state == CallState::Releasing;
        let with_call = call.first == Some(party.0) && call.state != CallState::Active;
        if gone || with_call {
            return Err(WRONG_STATE);
        }
        if call.last_party(party.0) {
            self.release(key, cause, now);
        } else {
            self.drop_party(key, party.0, cause, now);
        }
        Ok(())
    }

    // --- What the peer says ---

    pub(super) fn on_add_party(&mut self, key: CallKey, decoded: &Decoded) {
        let kind = decoded.message.kind;
        let (Some(party), Some(call)) = (build::party(decoded), self.calls.get(&key)) else {
            return;
        };
        let ready = matches!(
            call.state,
            CallState::AlertingSent | CallState::ConnectSent | CallState::Active
        );
        if key.ours || !call.multipoint || !ready {
            self.unexpected(key, kind);
            return;
        }
        match call.parties.get(&party).map(|p| p.state) {
            // A duplicate.
            Some(PartyState::AddReceived) => return,
            Some(_) => {
                self.unexpected(key, kind);
                return;
            }
            None => {}
        }
        let Some(called) = build::called(decoded) else {
            self.send_party(
                key,
                MessageType::ADD_PARTY_REJECT,
                party,
                Some(Cause(28).into()),
            );
            return;
        };
        if call.parties.len() >= self.params.limits.parties {
            self.counters.parties_refused += 1;
            let pending = match self.params.version {
                Version::Uni40 => Cause(32),
                Version::Uni30 | Version::Uni31 => Cause(92),
            };
            self.send_party(
                key,
                MessageType::ADD_PARTY_REJECT,
                party,
                Some(pending.into()),
            );
            return;
        }
        let call_id = call.id;
        let info = build::setup_info(decoded, called, &call.inherited);
        if let Some(call) = self.calls.get_mut(&key) {
            let new = Party::new(PartyState::AddReceived, called);
            call.parties.insert(party, new);
        }
        self.indicate(Indication::AddParty {
            call: call_id,
            party: PartyId(party),
            info,
        });
    }

    pub(super) fn on_add_party_ack(&mut self, key: CallKey, decoded: &Decoded) {
        let Some(NamedParty { party, state, call }) = self.named_party(key, decoded) else {
            return;
        };
        match state {
            PartyState::AddInitiated | PartyState::AlertingDelivered if key.ours => {
                self.timers.stop_party(key, party);
                self.enter_party(key, party, PartyState::Active);
                self.indicate(Indication::PartyAdded {
                    call,
                    party: PartyId(party),
                    info: build::connect_info(decoded),
                });
            }
            // The message crossed our DROP PARTY.
            PartyState::DropInitiated => {}
            _ => self.unexpected(key, decoded.message.kind),
        }
    }

    pub(super) fn on_party_alerting(&mut self, key: CallKey, decoded: &Decoded, now: Instant) {
        let Some(NamedParty { party, state, call }) = self.named_party(key, decoded) else {
            return;
        };
        match state {
            PartyState::AddInitiated if key.ours => {
                self.timers.stop_party(key, party);
                self.enter_party(key, party, PartyState::AlertingDelivered);
                self.start_party(key, party, Timer::T397, now);
                self.indicate(Indication::PartyAlerting {
                    call,
                    party: PartyId(party),
                    elements: build::handed_on(decoded),
                });
            }
            PartyState::DropInitiated => {}
            _ => self.unexpected(key, decoded.message.kind),
        }
    }

    pub(super) fn on_add_party_reject(&mut self, key: CallKey, decoded: &Decoded, now: Instant) {
        let Some(party) = build::party(decoded) else {
            return;
        };
        let cause = self.received_cause(decoded);
        let cause = cause.unwrap_or(Cause(31).into());
        match self.party_mut(key, party).map(|p| p.state) {
            None => self.counters.ignored += 1,
            Some(PartyState::AddInitiated | PartyState::AlertingDelivered) if key.ours => {
                self.party_failed(key, party, cause, now);
            }
            Some(PartyState::DropInitiated) => self.party_gone(key, party),
            Some(_) => self.unexpected(key, decoded.message.kind),
        }
    }

    pub(super) fn on_drop_party(&mut self, key: CallKey, decoded: &Decoded, now: Instant) {
        let Some(party) = build::party(decoded) else {
            return;
        };
        let cause = self.received_cause(decoded);
        let cause = cause.unwrap_or(Cause(31).into());
        match self.party_mut(key, party).map(|p| p.state) {
            None => {
                let kind = MessageType::DROP_PARTY_ACK;
                self.send_party(key, kind, party, Some(UNKNOWN_PARTY.into()));
            }
            // Both sides dropped the party at the same time: neither answers.
            Some(PartyState::DropInitiated) => self.party_gone(key, party),
            Some(_) => {
                if self
                    .calls
                    .get(&key)
                    .is_some_and(|call| call.last_party(party))
                {
                    self.clear(key, cause, now);
                    return;
                }
                self.send_party(key, MessageType::DROP_PARTY_ACK, party, Some(cause.echo()));
                if let Some(p) = self.party_mut(key, party) {
                    p.cause = Some(Box::new(cause));
                }
                self.party_gone(key, party);
            }
        }
    }

    pub(super) fn on_drop_party_ack(&mut self, key: CallKey, decoded: &Decoded) {
        let Some(party) = build::party(decoded) else {
            return;
        };
        match self.party_mut(key, party).map(|p| p.state) {
            None => self.counters.ignored += 1,
            Some(PartyState::DropInitiated) => self.party_gone(key, party),
            Some(_) => self.unexpected(key, decoded.message.kind),
        }
    }

    /// Answers a party message with a bad or missing element that still identifies the party. True if it was answered.
    pub(super) fn reject_bad_party(
        &mut self,
        key: CallKey,
        decoded: &Decoded,
        fault: &Fault,
    ) -> bool {
        let Some(party) = build::party(decoded) else {
            return false;
        };
        let known = self.party_mut(key, party).is_some();
        let (kind, applies) = match decoded.message.kind {
            MessageType::ADD_PARTY => (MessageType::ADD_PARTY_REJECT, !key.ours && !known),
            MessageType::DROP_PARTY => (MessageType::DROP_PARTY_ACK, known),
            _ => return false,
        };
        let several = self
            .calls
            .get(&key)
            .is_some_and(|call| !call.last_party(party));
        if !applies || (known && !several) {
            return false;
        }
        let cause = self.cause_with(fault.0, &fault.1);
        let endpoint = self.endpoint(key, party);
        self.send(self.message(key, kind).with(&cause).with(&endpoint));
        self.party_gone(key, party);
        true
    }

    // --- Parts ---

    /// The party that an answer names. For an unknown party DROP PARTY ACK 89 is sent.
    pub(super) fn named_party(&mut self, key: CallKey, decoded: &Decoded) -> Option<NamedParty> {
        let party = build::party(decoded)?;
        let call = self.calls.get(&key)?;
        let id = call.id;
        let Some(state) = call.parties.get(&party).map(|p| p.state) else {
            let kind = MessageType::DROP_PARTY_ACK;
            self.send_party(key, kind, party, Some(UNKNOWN_PARTY.into()));
            return None;
        };
        if call.state == CallState::Releasing {
            return None;
        }
        Some(NamedParty {
            party,
            state,
            call: id,
        })
    }

    pub(super) fn party_mut(&mut self, key: CallKey, party: u16) -> Option<&mut Party> {
        self.calls.get_mut(&key)?.parties.get_mut(&party)
    }
    fn enter_party(&mut self, key: CallKey, party: u16, state: PartyState) {
        if let Some(p) = self.party_mut(key, party) {
            p.state = state;
        }
    }
    fn start_party(&mut self, key: CallKey, party: u16, timer: Timer, now: Instant) {
        let after = self.duration(timer);
        self.timers
            .start(TimerKey::party(key, party, timer), now, after);
    }
    pub(super) fn send_party(
        &mut self,
        key: CallKey,
        kind: MessageType,
        party: u16,
        cause: Option<Reason>,
    ) {
        let message = match cause {
            Some(cause) => self.ending(key, kind, &cause),
            None => self.message(key, kind),
        };
        let endpoint: Ie = self.endpoint(key, party);
        self.send(message.with(&endpoint));
    }
    fn forget_party(&mut self, key: CallKey, party: u16) -> Option<Party> {
        self.timers.stop_party(key, party);
        self.calls.get_mut(&key)?.parties.remove(&party)
    }

    /// Sends DROP PARTY for one of several parties.
    pub(super) fn drop_party(&mut self, key: CallKey, party: u16, cause: Reason, now: Instant) {
        self.timers.stop_party(key, party);
        if let Some(p) = self.party_mut(key, party) {
            p.state = PartyState::DropInitiated;
            p.cause = Some(Box::new(cause.clone()));
        }
        self.send_party(key, MessageType::DROP_PARTY, party, Some(cause));
        self.start_party(key, party, Timer::T398, now);
    }

    /// A party has ended.
    pub(super) fn party_gone(&mut self, key: CallKey, party: u16) {
        let Some(gone) = self.forget_party(key, party) else {
            return;
        };
        if gone.told {
            return;
        }
        if let Some(call) = self.calls.get(&key) {
            self.indicate(Indication::PartyDropped {
                call: call.id,
                party: PartyId(party),
                cause: gone.cause.map_or(Reason::NORMAL, |cause| *cause),
            });
        }
    }

    /// A party could not be added.
    pub(super) fn party_failed(&mut self, key: CallKey, party: u16, cause: Reason, now: Instant) {
        if self.forget_party(key, party).is_none() {
            return;
        }
        if let Some(call) = self.calls.get(&key) {
            self.indicate(Indication::PartyRejected {
                call: call.id,
                party: PartyId(party),
                cause: cause.clone(),
            });
        }
        self.clear_if_empty(key, cause, now);
    }

    fn clear_if_empty(&mut self, key: CallKey, cause: Reason, now: Instant) {
        if self
            .calls
            .get(&key)
            .is_some_and(|call| call.parties.is_empty())
        {
            self.clear(key, cause, now);
        }
    }

    /// T397, T398 or T399 expired.
    pub(super) fn party_expired(&mut self, key: CallKey, party: u16, timer: Timer, now: Instant) {
        let Some(call) = self.calls.get(&key) else {
            return;
        };
        if timer == Timer::T398 {
            let cause = self.cause_with(Cause::TIMER, timer.digits());
            let endpoint = self.endpoint(key, party);
            let message = self.message(key, MessageType::DROP_PARTY_ACK);
            self.send(message.with(&cause).with(&endpoint));
            self.party_gone(key, party);
            return;
        }
        let cause: Reason = match (timer, self.params.side) {
            (Timer::T397, _) => Cause(19).into(),
            (_, super::Side::Network) => Cause::NO_RESPONSE.into(),
            (_, super::Side::User) => timer.reason(),
        };
        let (id, last) = (call.id, call.last_party(party));
        self.indicate(Indication::PartyRejected {
            call: id,
            party: PartyId(party),
            cause: cause.clone(),
        });
        if last {
            self.clear(key, cause, now);
            return;
        }
        if let Some(p) = self.party_mut(key, party) {
            p.told = true;
        }
        self.drop_party(key, party, cause, now);
    }

    /// The peer does not support ADD PARTY or DROP PARTY (Linux leaves): parties that wait for an answer end now.
    pub(super) fn parties_not_known(&mut self, key: CallKey, kind: MessageType, now: Instant) {
        let waiting = |call: &Call| -> Vec<u16> {
            let wanted = match kind {
                MessageType::ADD_PARTY => PartyState::AddInitiated,
                _ => PartyState::DropInitiated,
            };
            let parties = call.parties.iter();
            parties
                .filter(|(_, p)| p.state == wanted)
                .map(|(id, _)| *id)
                .collect()
        };
        let Some(parties) = self.calls.get(&key).map(|call| waiting(call)) else {
            return;
        };
        for party in parties {
            match kind {
                MessageType::ADD_PARTY => self.party_failed(key, party, Cause(97).into(), now),
                _ => self.party_gone(key, party),
            }
        }
    }
}
