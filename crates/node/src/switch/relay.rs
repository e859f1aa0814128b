//! Elements and notifications that are forwarded from one leg of a call to the others.

use aerostat_proto::uni::{Reason, Request};
use aerostat_proto::{Cause, Instant, PartyId};
use aerostat_wire::q2931::{Action, Element};

use super::calls::Role;
use super::{Call, LegKey, PortNo, RouteSelect, Switch};

/// Information element non-existent or not implemented.
const UNKNOWN_ELEMENT: Cause = Cause(99);

impl<R: RouteSelect> Switch<R> {
    /// Checks whether elements that came in at `from` can go out at port `to`. An element with the pass-along request
    /// that cannot be sent there (an interface of UNI 3.0 or 3.1) is left out, and its sender's action is taken. `Err`
    /// means that the message must not be forwarded.
    pub(super) fn hand_on(
        &mut self,
        from: LegKey,
        to: PortNo,
        elements: &[Element],
        now: Instant,
    ) -> Result<(), Cause> {
        let version = self.port(to).map(|port| port.interface.version());
        let obstacle = version.and_then(|version| version.obstacle(elements));
        let Some((action, id)) = obstacle else {
            return Ok(());
        };
        match action {
            Action::DiscardElement => Ok(()),
            Action::DiscardElementReport => {
                let request = Request::Report {
                    call: from.call,
                    cause: Reason::from(UNKNOWN_ELEMENT).with(&[id]),
                };
                // The interface refuses this if the half-call is being released.
                let _ = self.ask(from.port, request, now);
                Ok(())
            }
            // A message that has been acted on can no longer be ignored, so these actions make it fail.
            Action::ClearCall | Action::DiscardMessage | Action::DiscardMessageReport => {
                Err(UNKNOWN_ELEMENT)
            }
        }
    }

    /// NOTIFY is forwarded to the other side of the call, or of the party that it names.
    pub(super) fn notified(
        &mut self,
        key: LegKey,
        party: Option<PartyId>,
        elements: &[Element],
        now: Instant,
    ) {
        let Some((id, role)) = self.role(key) else {
            return;
        };
        let Some(call) = self.calls.get(&id) else {
            return;
        };
        for (leg, party) in call.other_side(key, role, party) {
            if let Err(cause) = self.hand_on(key, leg.port, elements, now) {
                self.end_call(id, cause.into(), None, now);
                return;
            }
            let request = Request::Notify {
                call: leg.call,
                party,
                elements: elements.to_vec(),
            };
            match self.ask(leg.port, request, now) {
                Ok(()) => self.counters.notifications += 1,
                // The other side has not answered yet, or is being released.
                Err(_) => self.counters.notifications_dropped += 1,
            }
        }
    }
}

impl Call {
    /// The destination of notifications from a leg: legs, each with the id of the notified party there.
    fn other_side(
        &self,
        key: LegKey,
        role: Role,
        party: Option<PartyId>,
    ) -> Vec<(LegKey, Option<PartyId>)> {
        match (role, party) {
            (Role::Root, None) => self.branches.keys().map(|branch| (*branch, None)).collect(),
            (Role::Root, Some(party)) => {
                let place = self.parties.get(&party);
                let place = place.map(|place| (place.branch, Some(place.party)));
                place.into_iter().collect()
            }
            (Role::Branch, party) => {
                let parties = self.branches.get(&key).map(|branch| &branch.parties);
                let root_id = parties.and_then(|parties| match party {
                    Some(party) => parties.get(&party),
                    // A branch with one leaf; the leaf may not know that it is part of a point-to-multipoint call.
                    None if parties.len() == 1 => parties.values().next(),
                    None => None,
                });
                vec![(self.root, root_id.copied())]
            }
        }
    }
}
