//! Parties of point-to-multipoint calls.
//!
//! The root's interface knows each party by one id, its branch by another. A party is *active* once the root has been
//! told that it was added. If a party ends before that, the root gets a rejection, after that a drop.

use std::collections::VecDeque;

use aerostat_proto::uni::{ConnectInfo, Reason, Request, SetupInfo};
use aerostat_proto::{Cause, Instant, PartyId};
use aerostat_wire::q2931::Element;

use super::calls::Role;
use super::crankback::{Failed, Obstacle, Tries};
use super::held::{Next, What, shortest};
use super::{Branch, Call, LegKey, PartyLeg, PortKind, PortNo, RouteSelect, Switch, SwitchCallId};

/// Endpoint references on a branch lie in 0..=32767; 0 is the party of its SETUP.
const MAX_PARTY: u16 = 0x7fff;

impl Call {
    /// Records the party that the SETUP of a branch carries.
    pub(super) fn first_party(&mut self, branch: LegKey, root_id: PartyId) {
        let party = PartyId(0);
        let entry = self.branches.entry(branch).or_default();
        entry.parties.insert(party, root_id);
        entry.next_party = 1;
        let leg = PartyLeg {
            branch,
            party,
            active: false,
        };
        self.parties.insert(root_id, leg);
    }
    /// The root is answered with CONNECT, which adds the first party of this branch.
    pub(super) fn accept(&mut self, branch: LegKey) {
        self.accepted = true;
        // A choice that the caller left stands in its elements, and may be settled again by a further branch.
        if !self.negotiable {
            self.info.elements = Vec::new();
        }
        self.tries = self.tries.take().filter(|tries| !tries.failed.is_empty());
        for party in self.parties.values_mut() {
            party.active |= party.branch == branch;
        }
    }
}

impl Call {
    /// Removes a party by the root's id.
    fn forget(&mut self, root_id: PartyId) -> Option<Gone> {
        let active = self.parties.remove(&root_id)?.active;
        let tries = self.joining.remove(&root_id);
        Some(Gone {
            root_id,
            active,
            tries,
        })
    }
}

/// A party that was removed.
struct Gone {
    root_id: PartyId,
    /// The root has been told that it was added.
    active: bool,
    /// Its offer, if it was not answered.
    tries: Option<Tries>,
}

impl Branch {
    /// An id that is free on this branch.
    fn new_party(&mut self) -> Option<PartyId> {
        let free = (self.next_party..=MAX_PARTY)
            .chain(1..self.next_party)
            .map(PartyId)
            .find(|id| !self.parties.contains_key(id))?;
        self.next_party = free.0 % MAX_PARTY + 1;
        Some(free)
    }
}

impl<R: RouteSelect> Switch<R> {
    /// The root wants to add a party.
    pub(super) fn party_offered(
        &mut self,
        key: LegKey,
        root_id: PartyId,
        mut info: SetupInfo,
        now: Instant,
    ) {
        let Some((id, Role::Root)) = self.role(key) else {
            return;
        };
        let screened = self.port(key.port).ok_or(Cause::TEMPORARY);
        let done = screened
            .and_then(|port| port.screen(&mut info))
            .map_err(Obstacle::from)
            .and_then(|()| self.add_party(id, root_id, Tries::new(info, now), now));
        self.party_answered(key, root_id, done, now);
    }

    /// A party that has waited for signalling is tried again.
    pub(super) fn party_again(
        &mut self,
        key: LegKey,
        root_id: PartyId,
        info: SetupInfo,
        now: Instant,
    ) {
        if let Some((id, Role::Root)) = self.role(key) {
            let done = self.add_party(id, root_id, Tries::new(info, now), now);
            self.party_answered(key, root_id, done, now);
        }
    }

    fn party_answered(
        &mut self,
        key: LegKey,
        root_id: PartyId,
        done: Result<(), Obstacle>,
        now: Instant,
    ) {
        if let Err(obstacle) = done {
            self.counters.parties_refused += 1;
            let request = Request::RejectParty {
                call: key.call,
                party: root_id,
                cause: self.reason_towards(key.port, obstacle),
            };
            // The interface refuses this if the root has just dropped the party.
            let _ = self.ask(key.port, request, now);
        }
    }

    fn add_party(
        &mut self,
        id: SwitchCallId,
        root_id: PartyId,
        mut tries: Tries,
        now: Instant,
    ) -> Result<(), Obstacle> {
        let call = self.calls.get(&id).ok_or(Cause::TEMPORARY)?;
        tries.offer.multipoint = true;
        tries.offer.qos = call.info.qos;
        let root = call.root;
        loop {
            let call = self.calls.get(&id).ok_or(Cause::TEMPORARY)?;
            let shared = self.shared_branch(call, &tries);
            let to = match shared.map_or_else(
                || self.route(&tries, root.port),
                |branch| Ok(Next::Port(branch.port)),
            )? {
                Next::Port(to) => to,
                Next::Wait => {
                    let what = What::Party(root_id);
                    return Ok(self.put_aside(root, what, tries.offer)?);
                }
            };
            let done = self.hand_on(root, to, &tries.offer.elements, now);
            let done = done.and_then(|()| match shared {
                Some(branch) => self.add_to_branch(id, root_id, branch, &tries.offer, now),
                None => self.add_branch(id, root_id, to, &tries.offer, now),
            });
            let Err(cause) = done else { break };
            let failed = Failed {
                port: to,
                reason: cause.into(),
            };
            if self.next_way(root, &mut tries, failed, now).is_none() {
                return Err(Obstacle::at(to, cause));
            }
        }
        let (last, called) = (tries.failed.last().cloned(), tries.offer.called);
        let Some(call) = self.calls.get_mut(&id) else {
            return Ok(());
        };
        call.joining.insert(root_id, tries);
        let by = call.parties.get(&root_id).map(|place| place.branch.port);
        if let (Some(last), Some(to)) = (last, by) {
            self.tell_moved(&called, &last, to);
        }
        Ok(())
    }

    /// A party gets a branch of its own.
    fn add_branch(
        &mut self,
        id: SwitchCallId,
        root_id: PartyId,
        to: PortNo,
        info: &SetupInfo,
        now: Instant,
    ) -> Result<(), Cause> {
        let branch = self.set_up(id, to, info, now)?;
        let call = self.calls.get_mut(&id).ok_or(Cause::TEMPORARY)?;
        call.first_party(branch, root_id);
        Ok(())
    }

    /// A party shares a branch with others.
    fn add_to_branch(
        &mut self,
        id: SwitchCallId,
        root_id: PartyId,
        branch: LegKey,
        info: &SetupInfo,
        now: Instant,
    ) -> Result<(), Cause> {
        let call = self.calls.get_mut(&id).ok_or(Cause::TEMPORARY)?;
        let leg = call.branches.get_mut(&branch).ok_or(Cause::TEMPORARY)?;
        let party = leg.new_party().ok_or(Cause::RESOURCES)?;
        leg.parties.insert(party, root_id);
        let place = PartyLeg {
            branch,
            party,
            active: false,
        };
        call.parties.insert(root_id, place);
        let info = info.clone();
        if !leg.connected {
            leg.waiting.push_back((party, info));
            return Ok(());
        }
        let request = Request::AddParty {
            call: branch.call,
            party,
            info,
        };
        if self.ask(branch.port, request, now).is_err() {
            self.forget_party(id, branch, party);
            return Err(Cause::RESOURCES);
        }
        Ok(())
    }

    /// A branch of a call that can take a new party: it leads to another switch, by one of the shortest ways.
    fn shared_branch(&self, call: &Call, tries: &Tries) -> Option<LegKey> {
        let ways = self.routes.select(&tries.offer.called).ok()?;
        let ways = || {
            shortest(&ways)
                .iter()
                .filter(|way| !tries.has_tried(way.port))
        };
        let trunk = |port| {
            let port = self.port(port);
            port.is_some_and(|port| port.config.kind == PortKind::Trunk)
        };
        let mut branches = call.branches.keys();
        branches
            .find(|key| trunk(key.port) && ways().any(|way| way.port == key.port))
            .copied()
    }

    /// Removes a party of a branch from the call; returns what the root knows of it.
    fn forget_party(&mut self, id: SwitchCallId, key: LegKey, party: PartyId) -> Option<Gone> {
        let call = self.calls.get_mut(&id)?;
        let branch = call.branches.get_mut(&key)?;
        branch.waiting.retain(|(waiting, _)| *waiting != party);
        let root_id = branch.parties.remove(&party)?;
        call.forget(root_id)
    }

    /// A further branch was accepted: its first party is active, and the parties that waited can be added.
    pub(super) fn branch_connected(
        &mut self,
        id: SwitchCallId,
        key: LegKey,
        info: ConnectInfo,
        now: Instant,
    ) {
        self.tell_added(id, key, PartyId(0), info, now);
        let waiting = match self
            .calls
            .get_mut(&id)
            .and_then(|c| c.branches.get_mut(&key))
        {
            Some(branch) => core::mem::take(&mut branch.waiting),
            None => VecDeque::new(),
        };
        for (party, info) in waiting {
            let request = Request::AddParty {
                call: key.call,
                party,
                info,
            };
            if self.ask(key.port, request, now).is_err() {
                self.lose_party(id, key, party, Cause::RESOURCES.into(), now);
            }
        }
    }

    /// Tells the root that a party was added.
    fn tell_added(
        &mut self,
        id: SwitchCallId,
        key: LegKey,
        party: PartyId,
        info: ConnectInfo,
        now: Instant,
    ) {
        let Some(call) = self.calls.get_mut(&id) else {
            return;
        };
        let root_id = call.branches.get(&key).and_then(|b| b.parties.get(&party));
        let Some(root_id) = root_id.copied() else {
            return;
        };
        if let Some(place) = call.parties.get_mut(&root_id) {
            place.active = true;
        }
        call.joining.remove(&root_id);
        let root = call.root;
        let request = Request::AcceptParty {
            call: root.call,
            party: root_id,
            info,
        };
        // The interface refuses this if the root has just dropped the party; an indication follows.
        let _ = self.ask(root.port, request, now);
    }

    pub(super) fn party_added(
        &mut self,
        key: LegKey,
        party: PartyId,
        info: ConnectInfo,
        now: Instant,
    ) {
        let Some((id, Role::Branch)) = self.role(key) else {
            return;
        };
        let root = self.calls.get(&id).map_or(key, |call| call.root);
        match self.hand_on(key, root.port, &info.elements, now) {
            Ok(()) => self.tell_added(id, key, party, info, now),
            Err(cause) => self.refuse_party(id, key, party, cause, now),
        }
    }

    pub(super) fn party_alerting(
        &mut self,
        key: LegKey,
        party: PartyId,
        elements: Vec<Element>,
        now: Instant,
    ) {
        let Some((id, Role::Branch)) = self.role(key) else {
            return;
        };
        let Some(call) = self.calls.get(&id) else {
            return;
        };
        let root_id = call.branches.get(&key).and_then(|b| b.parties.get(&party));
        if let Some(&root_id) = root_id {
            let root = call.root;
            let request = Request::AlertParty {
                call: root.call,
                party: root_id,
                elements,
            };
            // The interface refuses this if the root has just dropped the party.
            let _ = self.ask(root.port, request, now);
        }
    }

    /// A party has ended: rejected or dropped by a branch, or dropped by the root.
    pub(super) fn party_gone(&mut self, key: LegKey, party: PartyId, cause: Reason, now: Instant) {
        match self.role(key) {
            Some((id, Role::Branch)) => self.lose_party(id, key, party, cause, now),
            Some((id, Role::Root)) => self.root_dropped(id, party, cause, now),
            None => {}
        }
    }

    /// The root dropped a party.
    fn root_dropped(&mut self, id: SwitchCallId, root_id: PartyId, cause: Reason, now: Instant) {
        let Some(call) = self.calls.get(&id) else {
            return;
        };
        let Some(&PartyLeg { branch, party, .. }) = call.parties.get(&root_id) else {
            let root = call.root;
            return self.forget_held(root, Some(root_id));
        };
        let root = call.root.port;
        let waiting = call
            .branches
            .get(&branch)
            .is_some_and(|b| b.waiting.iter().any(|(waiting, _)| *waiting == party));
        self.forget_party(id, branch, party);
        let empty = self
            .calls
            .get(&id)
            .and_then(|call| call.branches.get(&branch))
            .is_some_and(|branch| branch.parties.is_empty());
        if empty {
            self.drop_branch(id, branch, cause, now);
        } else if !waiting {
            let request = Request::DropParty {
                call: branch.call,
                party,
                cause: cause.located(self.location(branch.port, Some(root))),
            };
            // The interface refuses this if the party has ended already; an indication follows.
            let _ = self.ask(branch.port, request, now);
        }
    }

    /// A branch lost a party; the root is told.
    fn lose_party(
        &mut self,
        id: SwitchCallId,
        key: LegKey,
        party: PartyId,
        cause: Reason,
        now: Instant,
    ) {
        let Some(gone) = self.forget_party(id, key, party) else {
            return;
        };
        self.move_or_end(id, key, gone, cause.clone(), now);
        // The interface releases a half-call with its last party. A party that only waited may leave the half-call
        // without parties.
        let empty = self
            .calls
            .get(&id)
            .and_then(|call| call.branches.get(&key))
            .is_some_and(|branch| branch.parties.is_empty());
        if empty {
            self.drop_branch(id, key, cause, now);
        }
    }

    /// A party that was just added is dropped again, and the root is told that it was not added.
    fn refuse_party(
        &mut self,
        id: SwitchCallId,
        key: LegKey,
        party: PartyId,
        cause: Cause,
        now: Instant,
    ) {
        let request = Request::DropParty {
            call: key.call,
            party,
            cause: Reason::from(cause).located(self.location(key.port, None)),
        };
        // The interface refuses this if the party has ended already. The last party takes the branch with it.
        let _ = self.ask(key.port, request, now);
        self.lose_party(id, key, party, cause.into(), now);
    }

    /// A party behind the branch `key` has ended. If it was not answered, it may take the next way.
    fn move_or_end(
        &mut self,
        id: SwitchCallId,
        key: LegKey,
        gone: Gone,
        mut reason: Reason,
        now: Instant,
    ) {
        let Gone {
            root_id,
            active,
            tries,
        } = gone;
        let root = self.calls.get(&id).map(|call| call.root);
        if let (Some(mut tries), Some(root)) = (tries, root) {
            let failed = Failed {
                port: key.port,
                reason: reason.clone(),
            };
            if self.next_way(root, &mut tries, failed, now).is_some() {
                match self.add_party(id, root_id, tries, now) {
                    Ok(()) => return,
                    Err(obstacle) => reason = self.reason_towards(root.port, obstacle),
                }
            }
        }
        self.tell_gone(id, (root_id, active), (key.port, reason), now);
    }

    fn tell_gone(
        &mut self,
        id: SwitchCallId,
        (root_id, active): (PartyId, bool),
        (at, cause): (PortNo, Reason),
        now: Instant,
    ) {
        let Some(call) = self.calls.get(&id) else {
            return;
        };
        let (root, accepted, last) = (call.root, call.accepted, call.parties.is_empty());
        if !accepted || last {
            self.end_call(id, cause, None, now);
            return;
        }
        let (call, party) = (root.call, root_id);
        let cause = cause.located(self.location(root.port, Some(at)));
        let request = if active {
            Request::DropParty { call, party, cause }
        } else {
            Request::RejectParty { call, party, cause }
        };
        // The interface refuses this if the root has just dropped the party.
        let _ = self.ask(root.port, request, now);
    }

    /// Removes a branch from a call and releases it.
    fn drop_branch(&mut self, id: SwitchCallId, key: LegKey, cause: Reason, now: Instant) {
        let Some(call) = self.calls.get_mut(&id) else {
            return;
        };
        call.branches.remove(&key);
        let root = call.root;
        self.part_branch(root, key);
        self.release_leg(key, cause, Some(root.port), now);
    }

    /// A branch cannot be used: it is released, and the root is told.
    pub(super) fn lose_branch(
        &mut self,
        id: SwitchCallId,
        key: LegKey,
        cause: Reason,
        now: Instant,
    ) {
        let root = self.calls.get(&id).map(|call| call.root.port);
        self.release_leg(key, cause.clone(), root, now);
        self.branch_gone(id, key, cause, now);
    }

    /// A branch is being released or has ended. So have its parties, and the call if it was the last branch.
    pub(super) fn branch_gone(
        &mut self,
        id: SwitchCallId,
        key: LegKey,
        cause: Reason,
        now: Instant,
    ) {
        let cause = match self.move_call(id, key, cause, now) {
            Ok(()) => return,
            Err(cause) => cause,
        };
        let Some(call) = self.calls.get_mut(&id) else {
            return;
        };
        if !call.accepted || call.parties.is_empty() {
            self.end_call(id, cause, Some(key), now);
            return;
        }
        let root = call.root;
        let Some(branch) = call.branches.remove(&key) else {
            return;
        };
        let parties = branch.parties.into_values();
        let mut gone: Vec<Gone> = parties.filter_map(|root_id| call.forget(root_id)).collect();
        // Those that may move come first: the call ends with its last party.
        gone.sort_by_key(|gone| gone.tries.is_none());
        self.part_branch(root, key);
        for gone in gone {
            self.move_or_end(id, key, gone, cause.clone(), now);
        }
    }
}
