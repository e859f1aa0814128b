//! Call control: indications of the interfaces, and point-to-point calls.

use aerostat_proto::uni::{CallId, ConnectInfo, Indication, Reason, Request, Restart, SetupInfo};
use aerostat_proto::{Cause, Instant, PartyId, Trace, Words};
use aerostat_wire::q2931::Element;
use aerostat_wire::{AtmAddress, Vc};

use super::crankback::{Obstacle, Tries};
use super::held::{Next, What};
use super::{Branch, Call, LegKey, PortNo, RouteSelect, Switch, SwitchCallId};

/// The role of a leg in its call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Root,
    Branch,
}

impl<R: RouteSelect> Switch<R> {
    pub(super) fn indication(&mut self, port: PortNo, indication: Indication, now: Instant) {
        match indication {
            Indication::Up => {
                self.port_is(port, "up");
                self.stop_waiting(port);
                self.tell_usable(port, true);
                self.try_held(now);
            }
            Indication::Down => {
                self.port_is(port, "down");
                self.tell_usable(port, false);
                self.try_held(now);
            }
            Indication::Setup {
                call,
                info,
                vc,
                party,
            } => self.offered(LegKey { port, call }, info, vc, party, now),
            Indication::Proceeding { call, vc } => {
                self.progress(LegKey { port, call }, vc, None, now);
            }
            Indication::Alerting { call, vc, elements } => {
                self.progress(LegKey { port, call }, vc, Some(elements), now);
            }
            Indication::Connected { call, info, vc } => {
                self.connected(LegKey { port, call }, info, vc, now);
            }
            Indication::Clearing { call, cause } => self.cleared(LegKey { port, call }, cause, now),
            Indication::Released { call, cause } => {
                let key = LegKey { port, call };
                if let Some(port) = self.port_mut(port) {
                    port.count(cause.cause);
                }
                self.cleared(key, cause, now);
                self.free_leg(key);
            }
            Indication::AddParty { call, party, info } => {
                self.party_offered(LegKey { port, call }, party, info, now);
            }
            Indication::PartyAlerting {
                call,
                party,
                elements,
            } => self.party_alerting(LegKey { port, call }, party, elements, now),
            Indication::PartyAdded { call, party, info } => {
                self.party_added(LegKey { port, call }, party, info, now);
            }
            Indication::PartyRejected { call, party, cause }
            | Indication::PartyDropped { call, party, cause } => {
                self.party_gone(LegKey { port, call }, party, cause, now);
            }
            // A half-call that this side accepted is confirmed; its connection is in the fabric already.
            Indication::Active { .. } | Indication::RestartDone { .. } => {}
            Indication::Restarted { what } => self.restarted(port, what, now),
            Indication::Notify {
                call,
                party,
                elements,
            } => self.notified(LegKey { port, call }, party, &elements, now),
        }
    }

    /// The other end of a port wants channels idle. The answer is sent once no half-call holds any of them.
    fn restarted(&mut self, port: PortNo, what: Restart, now: Instant) {
        let first = LegKey {
            port,
            call: CallId(0),
        };
        let of_port = self.legs.range(first..);
        let mut of_port = of_port.take_while(|(key, _)| key.port == port);
        if of_port.any(|(_, leg)| what.covers(leg.vc)) {
            return;
        }
        // The interface refuses this if the link is lost; the peer then asks again.
        let _ = self.ask(port, Request::RestartCleared { what }, now);
    }

    fn port_is(&mut self, port: PortNo, state: &str) {
        let name = self.port(port).map(|p| p.config.name.clone());
        let text = format!("signalling on port {} is {state}", name.unwrap_or_default());
        self.trace(Trace::detail("switch.port", text).with("port", port));
    }

    /// The call that a leg is part of, and its role there.
    pub(super) fn role(&self, key: LegKey) -> Option<(SwitchCallId, Role)> {
        let id = self.legs.get(&key)?.call?;
        let call = self.calls.get(&id)?;
        let role = if call.root == key {
            Role::Root
        } else {
            Role::Branch
        };
        Some((id, role))
    }

    /// A call arrived.
    fn offered(
        &mut self,
        key: LegKey,
        mut info: SetupInfo,
        vc: Option<Vc>,
        party: Option<PartyId>,
        now: Instant,
    ) {
        self.counters.offered += 1;
        let done = self.admit_root(key, vc).and_then(|()| {
            let port = self.port(key.port).ok_or(Cause::TEMPORARY)?;
            port.screen(&mut info)
        });
        match done {
            Ok(()) => self.find_way(key, Tries::new(info, now), party, true, now),
            Err(cause) => self.refuse(key, &info.called, cause.into(), now),
        }
    }

    /// Routes a call, or makes it wait, or refuses it. `new` is false if the call has waited before.
    pub(super) fn find_way(
        &mut self,
        root: LegKey,
        tries: Tries,
        party: Option<PartyId>,
        new: bool,
        now: Instant,
    ) {
        let called = tries.offer.called;
        let done = match self.route(&tries, root.port) {
            Ok(Next::Port(to)) => self.start_call(root, to, tries, party, now),
            Ok(Next::Wait) => self
                .put_aside(root, What::Call(party), tries.offer)
                .map_err(Obstacle::from),
            Err(obstacle) => Err(obstacle),
        };
        match done {
            Err(obstacle) => self.refuse(root, &called, obstacle, now),
            Ok(()) if new => {
                let (call, vc) = (root.call, self.legs.get(&root).and_then(|leg| leg.vc));
                // The interface refuses this if the caller has just given up.
                let _ = self.ask(root.port, Request::Proceeding { call, vc }, now);
            }
            Ok(()) => {}
        }
    }

    pub(super) fn refuse(
        &mut self,
        root: LegKey,
        called: &AtmAddress,
        obstacle: Obstacle,
        now: Instant,
    ) {
        self.counters.refused += 1;
        let reason = self.reason_towards(root.port, obstacle);
        let text = format!("call to {called} refused: {reason}");
        self.trace(Trace::detail("switch.call.refused", text).with("port", root.port));
        self.release_leg(root, reason, None, now);
    }

    fn start_call(
        &mut self,
        root: LegKey,
        to: PortNo,
        mut tries: Tries,
        party: Option<PartyId>,
        now: Instant,
    ) -> Result<(), Obstacle> {
        let id = SwitchCallId(self.next_call);
        self.next_call += 1;
        let negotiable = tries.offer.fallback().is_some() && self.speaks_40(root.port);
        let (branch, info) = self.go_out((id, root), to, &mut tries, now)?;
        if let Some(last) = tries.failed.last().cloned() {
            self.tell_moved(&info.called, &last, branch.port);
        }
        let mut call = Call {
            root,
            info,
            negotiable,
            accepted: false,
            open: false,
            branches: [(branch, Branch::default())].into_iter().collect(),
            parties: Default::default(),
            tries: Some(Box::new(tries)),
            joining: Default::default(),
        };
        if let Some(party) = party {
            call.first_party(branch, party);
        }
        self.calls.insert(id, Box::new(call));
        if let Some(port) = self.port_mut(root.port) {
            port.pending += 1;
        }
        let leg = self.legs.get_mut(&root).ok_or(Cause::TEMPORARY)?;
        leg.call = Some(id);
        Ok(())
    }

    /// CALL PROCEEDING, or ALERTING with its elements, from a branch.
    fn progress(
        &mut self,
        key: LegKey,
        vc: Option<Vc>,
        alerting: Option<Vec<Element>>,
        now: Instant,
    ) {
        let Some((id, Role::Branch)) = self.role(key) else {
            return;
        };
        if let Err(cause) = self.learn_label(key, vc) {
            self.lose_branch(id, key, cause.into(), now);
            return;
        }
        let Some(call) = self.calls.get(&id) else {
            return;
        };
        if let Some(elements) = alerting.filter(|_| !call.accepted) {
            let root = call.root;
            if let Err(cause) = self.hand_on(key, root.port, &elements, now) {
                self.lose_branch(id, key, cause.into(), now);
                return;
            }
            let request = Request::Alerting {
                call: root.call,
                vc: None,
                elements,
            };
            // The interface refuses this if the caller has been answered or has released the call.
            let _ = self.ask(root.port, request, now);
        }
    }

    /// A called side accepted the call.
    fn connected(&mut self, key: LegKey, info: ConnectInfo, vc: Vc, now: Instant) {
        let Some((id, Role::Branch)) = self.role(key) else {
            return;
        };
        let root = self.calls.get(&id).map_or(key, |call| call.root);
        let joined = self
            .learn_label(key, Some(vc))
            .and_then(|()| self.hand_on(key, root.port, &info.elements, now))
            .and_then(|()| self.settle(id, key, info))
            .and_then(|info| self.join(id, key).map(|()| info));
        let info = match joined {
            Ok(info) => info,
            Err(cause) => {
                self.lose_branch(id, key, cause.into(), now);
                return;
            }
        };
        let Some(call) = self.calls.get_mut(&id) else {
            return;
        };
        if let Some(branch) = call.branches.get_mut(&key) {
            branch.connected = true;
        }
        if !call.accepted {
            call.accept(key);
            let (root, called) = (call.root, call.info.called);
            let text = Words::later(move |f| write!(f, "call to {called} connected"));
            self.answered(root.port);
            self.counters.connected += 1;
            self.trace(Trace::detail("switch.call.up", text).with_value("call", id.0));
            let request = Request::Accept {
                call: root.call,
                info,
                vc: None,
            };
            if self.ask(root.port, request, now).is_err() {
                self.end_call(id, Cause::TEMPORARY.into(), None, now);
            }
        } else {
            self.branch_connected(id, key, info, now);
        }
    }

    /// A leg is being released or has ended.
    fn cleared(&mut self, key: LegKey, cause: Reason, now: Instant) {
        match self.role(key) {
            Some((id, Role::Root)) => self.end_call(id, cause, Some(key), now),
            Some((id, Role::Branch)) => {
                if let Some(leg) = self.legs.get_mut(&key) {
                    leg.call = None;
                }
                self.branch_gone(id, key, cause, now);
            }
            None => self.forget_held(key, None),
        }
    }
}
