//! NOTIFY: notifications about a call or a party that change no state. Source: Q.2931 §5.9, UNI Signalling 4.0 §2.

use aerostat_wire::q2931::{Decoded, Element, MessageType, id};

use crate::{PartyId, Refused};

use super::build;
use super::state::{CallKey, CallState, PartyState};
use super::{Indication, Uni};

impl Uni {
    /// Sends a notification of the owner about a call.
    pub(super) fn notify(
        &mut self,
        key: CallKey,
        party: Option<PartyId>,
        elements: &[Element],
    ) -> Result<(), Refused> {
        let call = self.calls.get(&key).ok_or(Refused("no such call"))?;
        let silent = [
            CallState::SetupSent,
            CallState::SetupReceived,
            CallState::Releasing,
        ];
        if silent.contains(&call.state) {
            return Err(Refused("the state of the call does not allow this"));
        }
        let known = |party: PartyId| {
            let party = call.parties.get(&party.0);
            party.is_some_and(|p| p.state != PartyState::DropInitiated)
        };
        if !party.is_none_or(known) {
            return Err(Refused("no such party"));
        }
        let (kind, version) = (MessageType::NOTIFY, self.params.version);
        if !version.has_message(kind) {
            self.counters.notifications_unsent += 1;
            return Ok(());
        }
        let elements = build::relayed(version, kind, elements);
        if elements.iter().all(|e| e.id != id::NOTIFICATION) {
            return Err(Refused("a NOTIFY needs a notification"));
        }
        let mut message = self.message(key, kind).with_elements(elements);
        if let Some(party) = party {
            message = message.with(&self.endpoint(key, party.0));
        }
        self.send(message);
        Ok(())
    }

    /// Handles a notification of the peer: the owner is told, and nothing changes.
    pub(super) fn on_notify(&mut self, key: CallKey, decoded: &Decoded) {
        let Some(call) = self.calls.get(&key) else {
            return;
        };
        if call.state == CallState::Releasing {
            return;
        }
        let (id, multipoint) = (call.id, call.multipoint);
        // An endpoint reference in a point-to-point call has no meaning.
        let party = match build::party(decoded).filter(|_| multipoint) {
            None => None,
            Some(_) => match self.named_party(key, decoded) {
                Some(named) if named.state != PartyState::DropInitiated => {
                    Some(PartyId(named.party))
                }
                _ => return,
            },
        };
        self.counters.notifications += 1;
        self.indicate(Indication::Notify {
            call: id,
            party,
            elements: build::handed_on(decoded),
        });
    }
}
