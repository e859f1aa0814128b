//! Selection of a call's route, and calls that wait until a route exists.
//!
//! A call takes one of the shortest ways. Of several shortest ways (parallel links, or other switches at the same
//! distance) it takes one that has room for the call, of these the one with the most free bandwidth, and of these the
//! one with the fewest calls. So parallel links share the load.
//!
//! **Bounds.** A call that waits counts as unanswered at its port ([`super::PortConfig::max_pending`]). There is room
//! for [`MAX_HELD`] waiting calls and parties together, or for the number set by [`Switch::hold_at_most`]; further ones
//! are refused with cause 47.

use core::cmp::Reverse;

use aerostat_proto::uni::SetupInfo;
use aerostat_proto::{Cause, Instant, PartyId};

use super::crankback::{Obstacle, Tries};
use super::port::{Port, Reservation};
use super::{LegKey, Output, PortKind, PortNo, RouteSelect, Switch, Way};
use crate::inspect::words::WayState;
use aerostat_proto::interface::Phase;

/// Limit of calls and parties of a switch that wait for signalling, unless [`Switch::hold_at_most`] sets another one.
pub const MAX_HELD: usize = 8192;

/// The kind of a waiting entry.
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

/// The next step of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// The call goes out at this port.
    Port(PortNo),
    /// The call waits until signalling at a port is up.
    Wait,
}

/// The shortest of the ways to an address, which are in order; empty if no way is usable at present.
pub(super) fn shortest(ways: &[Way]) -> &[Way] {
    let Some(least) = ways.first().and_then(|way| way.hops) else {
        return &[];
    };
    let end = ways.partition_point(|way| way.hops == Some(least));
    &ways[..end]
}

impl<R: RouteSelect> Switch<R> {
    /// The next step of an offer that came in at `from`, by a way that it has not tried.
    pub(super) fn route(&self, tries: &Tries, from: PortNo) -> Result<Next, Obstacle> {
        let info = &tries.offer;
        let all = self.routes.select(&info.called)?;
        let shortest = shortest(&all);
        let known = |way: &Way| {
            let port = self.port(way.port).filter(|_| !tries.has_tried(way.port));
            port.map(|port| (way.port, port))
        };
        // A call that would return to where it came from has no route there, either.
        let onwards = |(number, port): &(PortNo, &Port)| {
            *number != from || port.config.kind == PortKind::Host
        };
        let usable = shortest.iter().filter_map(known).filter(onwards);
        let ready = usable
            .clone()
            .filter(|(_, port)| port.interface.phase() == Phase::Ready);
        let wanted = Reservation::of(info.qos);
        let best = ready.max_by_key(|(number, port)| {
            let free = port.free_for_calls();
            let room = !port.is_full() && free.covers(wanted);
            (room, free.tx, Reverse(port.held), Reverse(*number))
        });
        if let Some((number, _)) = best {
            return Ok(Next::Port(number));
        }
        let mut others = all.iter().filter_map(known).filter(onwards).peekable();
        let Some((number, first)) = others.peek() else {
            return Err(Cause::NO_ROUTE.into());
        };
        let lost = match first.config.kind {
            PortKind::Host => Obstacle::at(*number, Cause::OUT_OF_ORDER),
            PortKind::Trunk => Obstacle::at(*number, Cause::NETWORK_OUT_OF_ORDER),
        };
        if others.any(|(_, port)| port.awaited.is_some()) {
            Ok(Next::Wait)
        } else {
            Err(lost)
        }
    }

    /// Sets the limit of calls and parties that wait for signalling.
    pub const fn hold_at_most(&mut self, most: usize) {
        self.max_held = most;
    }

    /// Stores a call or a party until signalling comes up.
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

    /// Tries all waiting calls and parties again, oldest first.
    pub(super) fn try_held(&mut self, now: Instant) {
        for held in core::mem::take(&mut self.held) {
            let Held { root, what, info } = held;
            match what {
                What::Call(party) => {
                    self.answered(root.port);
                    self.find_way(root, Tries::new(info, now), party, false, now);
                }
                What::Party(party) => self.party_again(root, party, info, now),
            }
        }
    }

    /// Removes the waiting entries of this half-call and its parties, or that of one `party`.
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

    /// Refuses all waiting calls, because the switch is about to stop. Parties end with their calls.
    pub(super) fn refuse_held(&mut self, now: Instant) {
        for held in core::mem::take(&mut self.held) {
            if let What::Call(_) = held.what {
                self.answered(held.root.port);
                let cause = Cause::NETWORK_OUT_OF_ORDER.into();
                self.refuse(held.root, &held.info.called, cause, now);
            }
        }
    }

    /// The line of a port is up, so its signalling may come up.
    pub(super) fn await_signalling(&mut self, port: PortNo, now: Instant) {
        self.changed.insert(port, ());
        if let Some(port) = self.port_mut(port)
            && port.interface.phase() != Phase::Ready
        {
            port.awaited = Some(now + port.config.patience);
        }
    }

    /// Signalling of a port is up, or cannot come up.
    pub(super) fn stop_waiting(&mut self, port: PortNo) {
        self.changed.insert(port, ());
        if let Some(port) = self.port_mut(port) {
            port.awaited = None;
        }
    }

    /// Reports whether calls can go out at a port.
    pub(super) fn tell_usable(&mut self, port: PortNo, usable: bool) {
        let kind = self.port(port).map(|port| port.config.kind);
        let trunk = kind == Some(PortKind::Trunk);
        self.outputs.push_back(Output::Usable {
            port,
            trunk,
            usable,
        });
    }

    /// Gives up ports whose signalling did not come up in time.
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

    /// The state that `inspect` shows for a way of rank `order`.
    pub(super) fn way_state(&self, way: &Way, order: u64) -> WayState {
        let Some(port) = self.port(way.port) else {
            return WayState::NoPort;
        };
        match (way.hops, port.interface.phase()) {
            (None, _) => WayState::Nowhere,
            (_, Phase::Ready) if order == 1 => WayState::InUse,
            (_, Phase::Ready) => WayState::Alternate,
            _ if port.awaited.is_some() => WayState::Awaited,
            _ => WayState::SignallingDown,
        }
    }
}
