//! Which way a call takes, and calls that wait until there is one.
//!
//! A call takes a way that no other is shorter than. Of several such ways (parallel links, or other switches just as near) the
//! one is taken that has room for the call, then the one with the most bandwidth to give, then the one with the fewest calls:
//! so parallel links share what comes.
//!
//! **Bounds.** A call that waits counts as unanswered at its port ([`super::PortConfig::max_pending`]); there is room for
//! [`MAX_HELD`] calls and parties together, or as many as [`Switch::hold_at_most`] says; more are refused with cause 47.

use core::cmp::Reverse;

use aerostat_proto::uni::SetupInfo;
use aerostat_proto::{Cause, Instant, PartyId};
use aerostat_wire::AtmAddress;

use super::port::{Port, Reservation};
use super::{LegKey, Output, PortKind, PortNo, RouteSelect, Switch, Way};
use crate::interface::Phase;

/// Calls and parties of a switch that wait for signalling, unless [`Switch::hold_at_most`] says otherwise.
pub const MAX_HELD: usize = 8192;

/// What waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// A call, with the party of its SETUP if it is point-to-multipoint.
    Call(Option<PartyId>),
    /// A further party of the root's call.
    Party(PartyId),
}

/// A call or a party that waits.
#[derive(Debug)]
pub(super) struct Held {
    root: LegKey,
    what: What,
    info: SetupInfo,
}

/// How a call goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Out at this port.
    Port(PortNo),
    /// Not before signalling at a port is up.
    Wait,
}

impl<R: RouteSelect> Switch<R> {
    /// The ways to an address that no other is shorter than; empty if none leads there at present.
    pub(super) fn shortest(&self, called: &AtmAddress) -> Result<&[Way], Cause> {
        let ways = self.routes.select(called)?;
        let Some(least) = ways.first().and_then(|way| way.hops) else {
            return Ok(&[]);
        };
        let end = ways.partition_point(|way| way.hops == Some(least));
        Ok(&ways[..end])
    }

    /// How an offer that came in at `from` goes on.
    pub(super) fn route(&self, info: &SetupInfo, from: PortNo) -> Result<Next, Cause> {
        let all = self.routes.select(&info.called)?;
        let shortest = self.shortest(&info.called)?;
        let known = |way: &Way| self.port(way.port).map(|port| (way.port, port));
        // A call that would go back where it came from has no route there either.
        let onwards = |(number, port): &(PortNo, &Port)| {
            *number != from || port.config.kind == PortKind::Host
        };
        let usable = shortest.iter().filter_map(known).filter(onwards);
        let ready = usable
            .clone()
            .filter(|(_, port)| port.interface.phase() == Phase::Ready);
        let wanted = Reservation::of(info.qos);
        let best = ready.max_by_key(|(number, port)| {
            let room = !port.is_full() && port.free().covers(wanted);
            (room, port.free().tx, Reverse(port.held), Reverse(*number))
        });
        if let Some((number, _)) = best {
            return Ok(Next::Port(number));
        }
        let mut others = all.iter().filter_map(known).filter(onwards).peekable();
        let Some((_, first)) = others.peek() else {
            return Err(Cause::NO_ROUTE);
        };
        let lost = match first.config.kind {
            PortKind::Host => Cause::OUT_OF_ORDER,
            PortKind::Trunk => Cause::NETWORK_OUT_OF_ORDER,
        };
        if others.any(|(_, port)| port.awaited.is_some()) {
            Ok(Next::Wait)
        } else {
            Err(lost)
        }
    }

    /// Bounds the calls and parties that wait for signalling.
    pub const fn hold_at_most(&mut self, most: usize) {
        self.max_held = most;
    }

    /// Puts a call or a party aside until signalling comes up.
    pub(super) fn put_aside(
        &mut self,
        root: LegKey,
        what: What,
        info: SetupInfo,
    ) -> Result<(), Cause> {
        if self.held.len() >= self.max_held {
            return Err(Cause::RESOURCES);
        }
        if let (What::Call(_), Some(port)) = (what, self.port_mut(root.port)) {
            port.pending += 1;
        }
        self.held.push_back(Held { root, what, info });
        Ok(())
    }

    /// Tries everything that waits again, oldest first.
    pub(super) fn try_held(&mut self, now: Instant) {
        for held in core::mem::take(&mut self.held) {
            let Held { root, what, info } = held;
            match what {
                What::Call(party) => {
                    self.answered(root.port);
                    self.find_way(root, info, party, false, now);
                }
                What::Party(party) => self.party_again(root, party, info, now),
            }
        }
    }

    /// Nobody waits any more for this half-call's call and its parties, or for one `party` only.
    pub(super) fn forget_held(&mut self, root: LegKey, party: Option<PartyId>) {
        let gone = |held: &Held| match (held.what, party) {
            (What::Party(id), Some(party)) => held.root == root && id == party,
            (What::Call(_), Some(_)) => false,
            (_, None) => held.root == root,
        };
        let calls = |held: &&Held| gone(held) && matches!(held.what, What::Call(_));
        let calls = self.held.iter().filter(calls).count();
        self.held.retain(|held| !gone(held));
        if let Some(port) = self.port_mut(root.port) {
            port.pending -= calls;
        }
    }

    /// Refuses what waits: the switch is about to stop. Parties go with their calls.
    pub(super) fn refuse_held(&mut self, now: Instant) {
        for held in core::mem::take(&mut self.held) {
            if let What::Call(_) = held.what {
                self.answered(held.root.port);
                self.refuse(held.root, &held.info, Cause::NETWORK_OUT_OF_ORDER, now);
            }
        }
    }

    /// The line of a port is alive: its signalling may come up.
    pub(super) fn await_signalling(&mut self, port: PortNo, now: Instant) {
        self.changed.insert(port);
        if let Some(port) = self.port_mut(port)
            && port.interface.phase() != Phase::Ready
        {
            port.awaited = Some(now + port.config.patience);
        }
    }

    /// Signalling of a port is up, or cannot come up.
    pub(super) fn stop_waiting(&mut self, port: PortNo) {
        self.changed.insert(port);
        if let Some(port) = self.port_mut(port) {
            port.awaited = None;
        }
    }

    /// Whether calls can go out at a port matters to others if a switch is behind it.
    pub(super) fn tell_usable(&mut self, number: PortNo, usable: bool) {
        let port = self.port(number);
        if port.is_some_and(|port| port.config.kind == PortKind::Trunk) {
            self.outputs.push_back(Output::Usable(number, usable));
        }
    }

    /// Gives ports up whose signalling did not come in time.
    pub(super) fn waited(&mut self, due: &[PortNo], now: Instant) {
        let late = |number: &&PortNo| {
            let port = self.port(**number);
            port.is_some_and(|port| port.awaited.is_some_and(|until| until <= now))
        };
        let late: Vec<PortNo> = due.iter().filter(late).copied().collect();
        for port in &late {
            self.stop_waiting(*port);
            self.tell_usable(*port, false);
        }
        if !late.is_empty() {
            self.try_held(now);
        }
    }

    /// What `inspect` says of a way that is number `order`.
    pub(super) fn way_state(&self, way: &Way, order: u64) -> &'static str {
        let Some(port) = self.port(way.port) else {
            return "no such port";
        };
        match (way.hops, port.interface.phase()) {
            (None, _) => "leads nowhere now",
            (_, Phase::Ready) if order == 1 => "in use",
            (_, Phase::Ready) => "alternate",
            _ if port.awaited.is_some() => "signalling comes up",
            _ => "signalling is down",
        }
    }
}
