//! Legs: the resources of a half-call at its port, and how legs are joined to calls and removed from them.

use aerostat_proto::uni::{Reason, Request, SetupInfo};
use aerostat_proto::{Cause, Instant, PartyId, Refused, Trace, Words};
use aerostat_wire::{TrafficParams, Vc};

use super::crankback::Obstacle;
use super::port::{Port, Reservation};
use super::{Call, Leg, LegKey, PortNo, RouteSelect, Switch, SwitchCallId};
use crate::atm::fabric::{FabricOp, PortVc};
use aerostat_proto::interface::{self, Phase};

impl<R: RouteSelect> Switch<R> {
    /// Passes a request to the interface of a leg.
    pub(super) fn ask(
        &mut self,
        port: PortNo,
        request: Request,
        now: Instant,
    ) -> Result<(), Refused> {
        self.feed(port, interface::Input::Request(request), now)
    }

    /// Reports which limit of a port is reached.
    fn tell_full(&mut self, port: PortNo) {
        if let Some(text) = self.port_mut(port).and_then(Port::limit_met) {
            self.trace(Trace::milestone("switch.port.full", text).with("port", port));
        }
    }

    /// Makes the leg of a call that came in: takes or allocates its label. Its rates are reserved once the route is
    /// known. The leg exists from here on, even if this fails, because the interface will report its end.
    pub(super) fn admit_root(&mut self, key: LegKey, offered: Option<Vc>) -> Result<(), Cause> {
        let mut leg = Leg {
            call: None,
            vc: None,
            reserved: Reservation::default(),
        };
        let admitted = match self.port_mut(key.port) {
            None => Err(Cause::TEMPORARY),
            Some(port) if port.is_full() || port.pending >= port.config.max_pending => {
                Err(Cause::RESOURCES)
            }
            Some(port) => match (offered, port.is_network()) {
                (Some(vc), _) => port.take(vc).map(|()| vc),
                (None, true) => port.allocate(),
                // Only the network side may choose the label.
                (None, false) => Err(Cause::VC_UNAVAILABLE),
            }
            .map(|vc| leg.vc = Some(vc)),
        };
        if admitted == Err(Cause::RESOURCES) {
            self.tell_full(key.port);
        }
        self.hold_leg(key, leg);
        admitted
    }

    fn hold_leg(&mut self, key: LegKey, leg: Leg) {
        let before = self.legs.insert(key, leg);
        debug_assert!(before.is_none(), "ids of half-calls are used once");
        if let Some(port) = self.port_mut(key.port) {
            port.held += 1;
        }
    }

    /// Sends a call out at a port. Returns the new leg, or the cause of the failure.
    pub(super) fn set_up(
        &mut self,
        id: SwitchCallId,
        to: PortNo,
        info: &SetupInfo,
        now: Instant,
    ) -> Result<LegKey, Cause> {
        let port = self.port_mut(to).ok_or(Cause::NO_ROUTE)?;
        if port.is_full() {
            self.tell_full(to);
            return Err(Cause::RESOURCES);
        }
        if port.interface.phase() != Phase::Ready {
            return Err(Cause::NETWORK_OUT_OF_ORDER);
        }
        let reserved = Reservation::of(info.qos);
        let vpi = port.config.call_vpi;
        port.reserve(vpi, reserved)?;
        let vc = if port.is_network() {
            match port.allocate() {
                Ok(vc) => Some(vc),
                Err(cause) => {
                    port.unreserve(vpi, reserved);
                    return Err(cause);
                }
            }
        } else {
            None
        };
        let call = port.new_call_id();
        let key = LegKey { port: to, call };
        let request = Request::Setup {
            call,
            info: info.clone(),
            vc,
            party: info.multipoint.then_some(PartyId(0)),
        };
        let leg = Leg {
            call: Some(id),
            vc,
            reserved,
        };
        self.hold_leg(key, leg);
        if self.ask(to, request, now).is_err() {
            self.free_leg(key);
            return Err(Cause::RESOURCES);
        }
        Ok(key)
    }

    /// The network side of a branch has chosen the label.
    pub(super) fn learn_label(&mut self, key: LegKey, vc: Option<Vc>) -> Result<(), Cause> {
        let (Some(vc), Some(leg)) = (vc, self.legs.get_mut(&key)) else {
            return Ok(());
        };
        match leg.vc {
            Some(known) if known == vc => Ok(()),
            Some(_) => Err(Cause::VC_UNAVAILABLE),
            None => {
                let port = &mut self.ports[usize::from(key.port.0)];
                port.take(vc)?;
                leg.vc = Some(vc);
                Ok(())
            }
        }
    }

    /// The half-call has ended: frees its resources.
    pub(super) fn free_leg(&mut self, key: LegKey) {
        let Some(leg) = self.legs.remove(&key) else {
            return;
        };
        if let Some(port) = self.port_mut(key.port) {
            port.held -= 1;
            port.unreserve(port.config.call_vpi, leg.reserved);
            if let Some(vc) = leg.vc {
                port.give_back(vc);
            }
        }
    }

    /// Removes a leg from its call and releases it; a cause of this switch is `at` a port. Its resources are freed when
    /// the half-call has ended.
    pub(super) fn release_leg(
        &mut self,
        key: LegKey,
        reason: Reason,
        at: Option<PortNo>,
        now: Instant,
    ) {
        let Some(leg) = self.legs.get_mut(&key) else {
            return;
        };
        leg.call = None;
        let cause = self.reason_towards(key.port, Obstacle { reason, at });
        let call = key.call;
        // The interface refuses this if it is about to report the end of the half-call anyway.
        let _ = self.ask(key.port, Request::Release { call, cause }, now);
    }

    fn end_of(&self, key: LegKey) -> Option<PortVc> {
        let vc = self.legs.get(&key)?.vc?;
        Some(PortVc::new(key.port.0, vc))
    }

    /// Opens the connection of a call in the fabric, or adds a branch to it.
    pub(super) fn join(&mut self, id: SwitchCallId, branch: LegKey) -> Result<(), Cause> {
        let call = self.calls.get(&id).ok_or(Cause::TEMPORARY)?;
        let (root, qos, open) = (call.root, call.info.qos, call.open);
        let multipoint = call.info.multipoint;
        let police = |key: LegKey| {
            let port = self.port(key.port);
            port.map(|port| port.config.police).unwrap_or_default()
        };
        let (police_root, police_branch) = (police(root), police(branch));
        let from = self.end_of(root).ok_or(Cause::VC_UNAVAILABLE)?;
        let to = self.end_of(branch).ok_or(Cause::VC_UNAVAILABLE)?;
        let forward = if open {
            FabricOp::AddLeaf { from, to }
        } else {
            FabricOp::Connect {
                from,
                to,
                traffic: qos.tx,
                police: police_root,
            }
        };
        let refused = |_| Cause::RESOURCES;
        self.fabric.apply(forward).map_err(refused)?;
        self.tune(from, to, &qos.tx);
        if let Some(call) = self.calls.get_mut(&id) {
            call.open = true;
        }
        if !multipoint {
            let backward = FabricOp::Connect {
                from: to,
                to: from,
                traffic: qos.rx,
                police: police_branch,
            };
            self.fabric.apply(backward).map_err(refused)?;
            self.tune(to, from, &qos.rx);
        }
        Ok(())
    }

    /// Gives the queue of a leaf of a call what the port has for calls of its category.
    fn tune(&mut self, from: PortVc, to: PortVc, traffic: &TrafficParams) {
        let port = self.port(PortNo(to.port));
        if let Some(queue) = port.and_then(|port| port.config.calls.of(traffic)) {
            self.fabric.tune(from, to, &queue.tuning());
        }
    }

    /// Removes one branch from the fabric. The fabric refuses this if the branch was never opened.
    pub(super) fn part_branch(&mut self, root: LegKey, branch: LegKey) {
        if let (Some(from), Some(to)) = (self.end_of(root), self.end_of(branch)) {
            let _ = self.fabric.apply(FabricOp::DropLeaf { from, to });
        }
    }

    /// Removes a whole call from the fabric. The fabric refuses directions that were never opened.
    fn part_call(&mut self, call: &Call) {
        if call.open {
            self.disconnect(call.branches.keys().chain([&call.root]));
        }
    }

    /// Removes a call that goes on from the fabric, if it is there: it takes another way.
    pub(super) fn part_open(&mut self, id: SwitchCallId) {
        let Some(call) = self.calls.get_mut(&id).filter(|call| call.open) else {
            return;
        };
        call.open = false;
        let ends: Vec<LegKey> = call.branches.keys().copied().chain([call.root]).collect();
        self.disconnect(&ends);
    }

    fn disconnect<'a>(&mut self, ends: impl IntoIterator<Item = &'a LegKey>) {
        for key in ends {
            if let Some(from) = self.end_of(*key) {
                let _ = self.fabric.apply(FabricOp::Disconnect { from });
            }
        }
    }

    /// A call that came in at a port no longer waits for its answer.
    pub(super) fn answered(&mut self, port: PortNo) {
        if let Some(port) = self.port_mut(port) {
            port.pending -= 1;
        }
    }

    /// Ends a call: releases every leg except `gone`, which has ended already.
    pub(super) fn end_call(
        &mut self,
        id: SwitchCallId,
        cause: Reason,
        gone: Option<LegKey>,
        now: Instant,
    ) {
        let Some(call) = self.calls.remove(&id) else {
            return;
        };
        match call.accepted {
            true => self.searches.forget(),
            false => self.answered(call.root.port),
        }
        self.forget_held(call.root, None);
        self.part_call(&call);
        let (called, why) = (call.info.called, cause.clone());
        let text = Words::later(move |f| write!(f, "call to {called} ended: {why}"));
        self.trace(Trace::detail("switch.call.end", text).with_value("call", id.0));
        let legs = call.branches.keys().chain([&call.root]);
        let first = call.branches.keys().next().map(|branch| branch.port);
        for key in legs.filter(|key| Some(**key) != gone) {
            let at = match *key == call.root {
                true => first,
                false => Some(call.root.port),
            };
            self.release_leg(*key, cause.clone(), at, now);
        }
        if let Some(leg) = gone.and_then(|gone| self.legs.get_mut(&gone)) {
            leg.call = None;
        }
    }
}
