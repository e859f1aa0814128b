//! Crankback, its first part: a call that a switch further on refuses for lack of room takes another way.
//!
//! **Rule.** A call, or a leaf, that is released before an answer takes the next of the shortest ways if the cause is
//! one of [`LACK_OF_ROOM`], and if neither the called user nor the network that serves this user has refused it: then
//! all paths end at the same place. So the nearest switch with another way moves the call, and the caller sees the
//! cause of the last try only if no way is left.
//!
//! **Bounds.** A switch tries each way once for an offer, and no further one [`TIME`] after the offer came. All ways
//! lead nearer to the destination, so there is no loop. A switch that has looked for a rate in vain remembers this for
//! a short time (`Searches`): in a grid the same call comes to it by many paths, and is refused at once then. So a
//! call costs each switch a search, and not one for each path.
//!
//! **State.** `Tries` lies beside a call, or beside a leaf, until it is answered; that of a call that was moved stays
//! for display.
//!
//! **Standards.** Causes and locations of Q.850; the idea of PNNI 1.0 (af-pnni-0055) §8. **Not implemented**: the
//! crankback element, which says where the obstacle is; longer ways. **Deviations**: between switches of IISP no
//! standard asks for this.

use aerostat_proto::uni::{Reason, SetupInfo, location};
use aerostat_proto::{Cause, Duration, Instant, Trace};
use aerostat_wire::AtmAddress;
use std::collections::BTreeMap;

use super::held::Next;
use super::port::Reservation;
use super::route::{EndSystem, end_system};
use super::{Branch, LegKey, PortKind, PortNo, RouteSelect, Switch, SwitchCallId};

/// How long after an offer came it may take a further way. The caller's T310 is 10 s, and the times of the switches on
/// a path add up.
pub const TIME: Duration = Duration::from_secs(1);
/// Least time for which a search in vain is remembered, and the most.
const MEMORY: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(1));
/// A search is remembered for so many times its length, between the bounds of [`MEMORY`].
const LENGTHS: u32 = 64;
/// Limit of searches that are remembered; beyond it further ones are made again.
const SEARCHES: usize = 1024;

/// Causes of lack of room: label not available (35, 45), rate (37; interfaces give 51 of UNI 3.0 this number),
/// resources (47), quality of service (49). Source: Q.850 and UNI 3.1 §5.4.5.15.
pub const LACK_OF_ROOM: [Cause; 5] = [Cause(35), Cause(37), Cause(45), Cause(47), Cause(49)];

/// A way that was tried in vain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// The output port.
    pub port: PortNo,
    /// The reason of the release that came back, or of this switch.
    pub reason: Reason,
}

/// An offer, and the ways that it has taken in vain.
#[derive(Debug)]
pub(super) struct Tries {
    pub(super) offer: SetupInfo,
    pub(super) failed: Vec<Failed>,
    since: Instant,
}

impl Tries {
    pub(super) fn new(offer: SetupInfo, now: Instant) -> Self {
        Self {
            offer,
            failed: Vec::new(),
            since: now,
        }
    }

    /// True if a way by this port was tried.
    pub(super) fn has_tried(&self, port: PortNo) -> bool {
        self.failed.iter().any(|failed| failed.port == port)
    }
}

/// Why an offer cannot go on, and the port where the obstacle is, if it is at one.
#[derive(Debug)]
pub(super) struct Obstacle {
    pub(super) reason: Reason,
    pub(super) at: Option<PortNo>,
}

impl Obstacle {
    pub(super) fn at(port: PortNo, cause: Cause) -> Self {
        let (reason, at) = (cause.into(), Some(port));
        Self { reason, at }
    }
}

impl From<Cause> for Obstacle {
    fn from(cause: Cause) -> Self {
        let (reason, at) = (cause.into(), None);
        Self { reason, at }
    }
}

/// A search in vain: no way had these rates.
#[derive(Debug)]
struct Search {
    wanted: Reservation,
    reason: Reason,
    until: Instant,
}

/// Searches in vain, by the called end system.
#[derive(Debug, Default)]
pub(super) struct Searches {
    all: BTreeMap<EndSystem, Search>,
}

impl Searches {
    /// The reason of a search for at most these rates that ended a short time ago. An offer with alternatives may be
    /// content with less.
    fn known(&self, offer: &SetupInfo, now: Instant) -> Option<Reason> {
        let search = self.all.get(&end_system(&offer.called))?;
        let as_much = Reservation::of(offer.qos).covers(search.wanted);
        let holds = now < search.until && as_much && offer.fallback().is_none();
        holds.then(|| search.reason.clone())
    }

    /// Remembers a search that was for a rate, and has tried all ways.
    fn remember(&mut self, tries: &Tries, reason: &Reason, now: Instant) {
        let in_vain = reason.cause == Cause::RATE_UNAVAILABLE && lacks_room(reason);
        if !in_vain || now >= tries.since + TIME {
            return;
        }
        self.all.retain(|_, search| now < search.until);
        if self.all.len() < SEARCHES {
            let length = now.since(tries.since).as_nanos() as u64;
            let length = Duration::from_nanos(length.saturating_mul(LENGTHS.into()));
            let search = Search {
                wanted: Reservation::of(tries.offer.qos),
                // Other elements of a release are from one user to another.
                reason: Reason {
                    elements: Vec::new(),
                    ..reason.clone()
                },
                until: now + length.clamp(MEMORY.0, MEMORY.1),
            };
            self.all.insert(end_system(&tries.offer.called), search);
        }
    }

    /// Rates are free again at a port: another search may find them.
    pub(super) fn forget(&mut self) {
        self.all.clear();
    }
}

fn lacks_room(reason: &Reason) -> bool {
    let ends_all = [Some(location::USER), Some(location::REMOTE)];
    !reason.forum && LACK_OF_ROOM.contains(&reason.cause) && !ends_all.contains(&reason.location)
}

impl<R: RouteSelect> Switch<R> {
    fn kind(&self, port: PortNo) -> Option<PortKind> {
        self.port(port).map(|port| port.config.kind)
    }

    /// Location of a cause of this switch, as the end behind the port `towards` sees it; `at` is the port of the
    /// obstacle. Source: Q.850 §2.2.3.
    pub(super) fn location(&self, towards: PortNo, at: Option<PortNo>) -> u8 {
        let serves = |port| self.kind(port) == Some(PortKind::Host);
        match at {
            _ if serves(towards) => location::LOCAL,
            Some(port) if serves(port) => location::REMOTE,
            _ => location::TRANSIT,
        }
    }

    /// The reason of an obstacle with its location, as the end behind the port `towards` sees it.
    pub(super) fn reason_towards(&self, towards: PortNo, obstacle: Obstacle) -> Reason {
        let place = self.location(towards, obstacle.at);
        obstacle.reason.located(place)
    }

    /// The next way of an offer after one that has failed; `None` if the reason is another one, if the time is over, or
    /// if no way is left.
    pub(super) fn next_way(
        &self,
        root: LegKey,
        tries: &mut Tries,
        failed: Failed,
        now: Instant,
    ) -> Option<PortNo> {
        let may = lacks_room(&failed.reason) && now < tries.since + TIME;
        tries.failed.push(failed);
        match self.route(tries, root.port).ok().filter(|_| may)? {
            Next::Port(to) => Some(to),
            Next::Wait => None,
        }
    }

    /// Sends an offer out at a port, or by the next ways, if this switch has no room for it there. Returns the leg and
    /// the offer as it was sent.
    pub(super) fn go_out(
        &mut self,
        (id, root): (SwitchCallId, LegKey),
        mut to: PortNo,
        tries: &mut Tries,
        now: Instant,
    ) -> Result<(LegKey, SetupInfo), Obstacle> {
        if let Some(reason) = self.searches.known(&tries.offer, now) {
            return Err(Obstacle { reason, at: None });
        }
        loop {
            let obstacle = match self.go_by((id, root), to, &tries.offer, now) {
                Ok(gone) => return Ok(gone),
                Err(obstacle) => obstacle,
            };
            let reason = obstacle.reason.clone();
            let failed = Failed { port: to, reason };
            match self.next_way(root, tries, failed, now) {
                Some(next) => to = next,
                None => {
                    // Rates that lack at the root's port say nothing of other calls.
                    if obstacle
                        .at
                        .is_some_and(|at| self.kind(at) == Some(PortKind::Trunk))
                    {
                        self.searches.remember(tries, &obstacle.reason, now);
                    }
                    return Err(obstacle);
                }
            }
        }
    }

    fn go_by(
        &mut self,
        (id, root): (SwitchCallId, LegKey),
        to: PortNo,
        offer: &SetupInfo,
        now: Instant,
    ) -> Result<(LegKey, SetupInfo), Obstacle> {
        self.hand_on(root, to, &offer.elements, now)?;
        // What an earlier way needed does not stand in the way of this one.
        self.reserve_nothing(root);
        let info = self.fit(offer.clone(), root.port, to)?;
        // Traffic of the caller arrives at the port of the root.
        self.reserve_leg(root, info.qos.reversed())?;
        let branch = self.set_up(id, to, &info, now);
        let branch = branch.map_err(|cause| Obstacle::at(to, cause))?;
        Ok((branch, info))
    }

    /// The only branch of a call has ended before an answer: the call takes the next way. The error is the reason with
    /// which it ends, if no way is left.
    pub(super) fn move_call(
        &mut self,
        id: SwitchCallId,
        key: LegKey,
        reason: Reason,
        now: Instant,
    ) -> Result<(), Reason> {
        let call = self.calls.get_mut(&id).filter(|call| !call.accepted);
        let taken = call.and_then(|call| Some((call.root, call.tries.take()?)));
        let Some((root, mut tries)) = taken else {
            return Err(reason);
        };
        self.part_open(id);
        let failed = Failed {
            port: key.port,
            reason: reason.clone(),
        };
        let gone = match self.next_way(root, &mut tries, failed, now) {
            Some(to) => self.go_out((id, root), to, &mut tries, now),
            None => {
                self.searches.remember(&tries, &reason, now);
                Err(Obstacle { reason, at: None })
            }
        };
        let gone = gone.map_err(|obstacle| self.reason_towards(root.port, obstacle));
        let (branch, info) = gone?;
        let Some(call) = self.calls.get_mut(&id) else {
            return Ok(());
        };
        let called = info.called;
        let last = tries.failed.last().cloned();
        (call.info, call.tries) = (info, Some(tries));
        call.branches.remove(&key);
        match call.parties.keys().next() {
            Some(root_id) => call.first_party(branch, *root_id),
            None => {
                call.branches.insert(branch, Branch::default());
            }
        }
        if let Some(last) = last {
            self.tell_moved(&called, &last, branch.port);
        }
        Ok(())
    }

    /// Counts and reports that a call, or a leaf, is tried by another way than the one that has failed.
    pub(super) fn tell_moved(&mut self, called: &AtmAddress, failed: &Failed, to: PortNo) {
        self.counters.moved += 1;
        let name = |port| self.port(port).map_or("", |port| &port.config.name);
        let text = format!(
            "call to {called} is tried by {} after {}: {}",
            name(to),
            name(failed.port),
            failed.reason
        );
        let trace = Trace::milestone("switch.call.moved", text);
        self.trace(trace.with("port", failed.port).with("to", to));
    }
}
