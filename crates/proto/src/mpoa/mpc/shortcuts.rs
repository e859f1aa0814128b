//! The shortcuts of a client: which flow takes which connection, and when a connection is released.
//!
//! Best effort connections are shared by all flows for one MPC, in both directions. A connection with more than best
//! effort, opened here for one flow, is used by that flow alone and is released with it. A connection that the other
//! end opened with more than best effort, and with a guarantee for this direction, carries one flow that wants the same
//! traffic, or the packets without a QoS entry that answer what arrives on it (`returns.rs`).
//! Source: thesis Figures 6.1 and 6.3, §6.1.3.
//!
//! **One connection for both directions.** Both ends may call at the same time, so that there are two connections where
//! one is enough. Both ends know which one stays: a guaranteed connection stays, and of two for the same traffic the
//! one whose caller has the smaller ATM address (as LANE does with data direct connections). The other end moves its
//! packets at once. The end that opened the connection too much releases it when neither has used it for [`SETTLE`].

use super::api::Bus;
use super::data::DataPlane;
use super::entries::Left;
use super::ingress::Call;
use crate::mpoa::messages::{FlowName, ToDaemon};
use crate::mpoa::params::ENCAPSULATION;
use crate::{Cause, ConnId, Deadlines, Duration, Instant, Trace};
use aerostat_wire::{AtmAddress, Qos, ServiceCategory, Vc};
use core::net::IpAddr;
use core::ops::Deref;
use std::collections::{BTreeMap, BTreeSet};

/// How long a shortcut without entries stays if the other end opened it (normally the end that opened it closes it), or
/// if a purge was sent over it lately: to close the shortcut at once would lose the purge.
pub(super) const LINGER: Duration = Duration::from_secs(20);

/// Time for which both ends must have left a connection that another one replaces, before it is released. Packets that
/// were under way on it have arrived by then, and a flow that still needs it has sent again.
pub(super) const SETTLE: Duration = Duration::from_secs(1);

/// A connection attached as a shortcut.
#[derive(Clone, Debug)]
pub(super) struct Shortcut {
    pub(super) peer: AtmAddress,
    pub(super) vc: Option<Vc>,
    /// Its traffic, if more than best effort.
    pub(super) qos: Option<Qos>,
    pub(super) opened: bool,
    /// The only flow that may use the shortcut.
    flow: Option<FlowName>,
    /// Time since which the shortcut has no entries; `None` while it has some.
    pub(super) idle_since: Option<Instant>,
    /// Time and destination of the last data-plane purge over the shortcut.
    pub(super) last_purge: Option<(Instant, IpAddr)>,
    /// When it was attached.
    since: Instant,
    /// When the last packet arrived on it.
    arrived: Option<Instant>,
    /// Since when another connection is used in its place.
    replaced: Option<Instant>,
    /// A flow with a QoS entry of this client has taken it.
    taken: bool,
}

impl Shortcut {
    pub(super) const fn new(
        peer: AtmAddress,
        qos: Option<Qos>,
        (opened, flow): (bool, Option<FlowName>),
        now: Instant,
    ) -> Self {
        Self {
            peer,
            vc: None,
            qos,
            opened,
            flow,
            idle_since: None,
            last_purge: None,
            since: now,
            arrived: None,
            replaced: None,
            taken: false,
        }
    }
    /// A packet arrived; true for the first one of a guaranteed connection, from which on both ends know that it is in
    /// use.
    pub(super) fn note_arrival(&mut self, now: Instant) -> bool {
        self.arrived.replace(now).is_none() && self.qos.is_some()
    }
    /// True for a connection of the other end that has a guarantee for packets in this direction.
    pub(super) fn leads_back(&self) -> bool {
        let category = self.qos.and_then(|qos| qos.tx.category);
        !self.opened && category.is_some_and(ServiceCategory::is_guaranteed)
    }
    /// The longest packet that goes back over it, octets; `None` if packets that answer do not take it.
    pub(super) fn room_back(&self) -> Option<u16> {
        let sdu = self.qos?.tx.max_sdu;
        let room = if sdu == 0 {
            u16::MAX
        } else {
            sdu.saturating_sub(ENCAPSULATION)
        };
        (self.leads_back() && !self.taken).then_some(room)
    }
    /// True while it may still show what its caller needs it for.
    fn is_fresh(&self, now: Instant) -> bool {
        now.since(self.since) < SETTLE
    }
    /// True if a flow that wants `qos` may use the shortcut and need not share it.
    fn suits(&self, qos: Option<Qos>) -> bool {
        match (qos, self.qos) {
            (None, None) => true,
            (Some(wanted), Some(has)) => self.leads_back() && wanted == has,
            (None, Some(_)) | (Some(_), None) => false,
        }
    }
}

/// The shortcuts by connection; they can also be found by their other end.
#[derive(Debug, Default)]
pub(super) struct Shortcuts {
    map: BTreeMap<ConnId, Shortcut>,
    by_peer: BTreeSet<(AtmAddress, ConnId)>,
    /// Connections of `by_peer` that lead back; mostly the list is empty.
    leading: BTreeSet<(AtmAddress, ConnId)>,
    /// When shortcuts without entries have lingered for long enough.
    lingering: Deadlines<ConnId>,
    /// Other ends of shortcuts that have not been checked yet.
    new: BTreeSet<AtmAddress>,
}

impl Deref for Shortcuts {
    type Target = BTreeMap<ConnId, Shortcut>;
    fn deref(&self) -> &Self::Target {
        &self.map
    }
}

impl Shortcuts {
    /// The shortcut; its other end must not change.
    pub(super) fn get_mut(&mut self, conn: &ConnId) -> Option<&mut Shortcut> {
        self.map.get_mut(conn)
    }
    fn insert(&mut self, conn: ConnId, shortcut: Shortcut) {
        self.by_peer.insert((shortcut.peer, conn));
        if shortcut.leads_back() {
            self.leading.insert((shortcut.peer, conn));
        }
        self.new.insert(shortcut.peer);
        self.map.insert(conn, shortcut);
    }
    fn remove(&mut self, conn: &ConnId) -> Option<Shortcut> {
        let gone = self.map.remove(conn)?;
        self.by_peer.remove(&(gone.peer, *conn));
        self.leading.remove(&(gone.peer, *conn));
        self.lingering.set(*conn, None);
        Some(gone)
    }
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
    /// The connections with `peer`.
    pub(super) fn of(&self, peer: AtmAddress) -> impl Iterator<Item = ConnId> {
        let all = self.by_peer.range((peer, ConnId(0))..);
        let of = all.take_while(move |(of, _)| *of == peer);
        of.map(|(_, conn)| *conn)
    }
    /// The connections that `peer` opened and that lead back.
    fn back_to(&self, peer: AtmAddress) -> impl Iterator<Item = &Shortcut> {
        let all = self.leading.range((peer, ConnId(0))..);
        let of = all.take_while(move |(of, _)| *of == peer);
        let known = of.filter_map(|(_, conn)| self.map.get(conn));
        known.filter(|shortcut| shortcut.room_back().is_some())
    }
    /// True if a connection that `peer` opened leads back.
    pub(super) fn lead_back(&self, peer: AtmAddress) -> bool {
        self.back_to(peer).next().is_some()
    }
    /// True if nothing has arrived yet on such a connection, although something soon may.
    pub(super) fn expects(&self, peer: AtmAddress, now: Instant) -> bool {
        let fresh = |s: &Shortcut| s.arrived.is_none() && s.is_fresh(now);
        !self.leading.is_empty() && self.back_to(peer).any(fresh)
    }
    /// Another connection is used in place of this one, which this end has opened: it is checked after [`SETTLE`].
    fn replace(&mut self, conn: ConnId, now: Instant) {
        if let Some(shortcut) = self.map.get_mut(&conn).filter(|s| s.opened) {
            shortcut.replaced = Some(now);
            self.lingering.set(conn, Some(now + SETTLE));
        }
    }
    /// Notes whether a shortcut is used, and when a packet was last sent on it; true if it is to be closed.
    fn judge(&mut self, conn: ConnId, mut used: bool, sent: Option<Instant>, now: Instant) -> bool {
        let Some(shortcut) = self.map.get_mut(&conn) else {
            return false;
        };
        if let Some(since) = shortcut.replaced {
            if sent.max(shortcut.arrived).is_some_and(|at| at > since) {
                // Other flows need it.
                shortcut.replaced = None;
            } else if now < since + SETTLE {
                self.lingering.set(conn, Some(since + SETTLE));
                return false;
            } else {
                used = false;
            }
        }
        if used {
            shortcut.idle_since = None;
            self.lingering.set(conn, None);
            return false;
        }
        let since = *shortcut.idle_since.get_or_insert(now);
        self.lingering.set(conn, Some(since + LINGER));
        let purged = shortcut.last_purge.map(|(at, _)| now.since(at));
        let purging = purged.is_some_and(|ago| ago < LINGER);
        shortcut.opened && !purging || now.since(since) >= LINGER
    }
    /// When the first unused shortcut has lingered for long enough.
    pub(super) fn lingers_until(&self) -> Option<Instant> {
        self.lingering.next()
    }
    /// Marks shortcuts that have lingered for long enough to be checked again; true if there are any.
    pub(super) fn expire(&mut self, now: Instant) -> bool {
        let due = self.lingering.due(now);
        let peers = due.iter().filter_map(|conn| self.map.get(conn));
        self.new.extend(peers.map(|shortcut| shortcut.peer));
        !due.is_empty()
    }
}

impl DataPlane {
    pub(super) fn attach(
        &mut self,
        conn: ConnId,
        new: Shortcut,
        vc: Option<Vc>,
        now: Instant,
        bus: &mut Bus,
    ) {
        let (peer, qos, opened, flow) = (new.peer, new.qos, new.opened, new.flow);
        if let Some(known) = self.shortcuts.get_mut(&conn) {
            known.vc = vc;
            for key in self.ingress.entries.of(peer) {
                self.ingress.entries.shows_other(key);
            }
        } else {
            self.shortcuts.insert(conn, Shortcut { vc, ..new });
            if let Some(flow) = flow {
                self.ingress.granted(flow, conn, peer, qos);
            }
            self.adopt(peer);
            self.unite(peer, now);
        }
        if let Some(vc) = vc {
            let way = if opened { "to" } else { "from" };
            let kind = qos.map_or_else(String::new, |qos| format!(" with {}", qos.tx));
            let text = format!("shortcut {way} {peer} is up on {vc}{kind}");
            bus.trace(
                Trace::milestone("mpc.shortcut.up", text)
                    .with("peer", peer)
                    .with("vc", vc)
                    .with("opened", opened),
            );
        }
        self.collect(now, bus);
    }

    /// The order in which two connections with `peer` are preferred: best effort before more, which is for those who
    /// want it; then that of the caller with the smaller address.
    fn rank(&self, conn: ConnId) -> (bool, AtmAddress, ConnId) {
        let shortcut = self.shortcuts.get(&conn);
        let caller = match shortcut {
            Some(shortcut) if !shortcut.opened => shortcut.peer,
            _ => self.data,
        };
        (shortcut.is_some_and(|s| s.qos.is_some()), caller, conn)
    }

    /// The best connection with `peer` for a flow that wants `qos`, of those that are not taken.
    fn pick(&self, peer: AtmAddress, qos: Option<Qos>, taken: &BTreeSet<ConnId>) -> Option<ConnId> {
        let all = self.shortcuts.of(peer).filter(|conn| !taken.contains(conn));
        let suitable = all.filter(|conn| self.shortcuts.get(conn).is_some_and(|s| s.suits(qos)));
        suitable.min_by_key(|conn| self.rank(*conn))
    }

    /// Ingress entries for `peer` that have no connection, or one that another replaces, take the best existing one.
    pub(super) fn adopt(&mut self, peer: AtmAddress) {
        let keys = self.ingress.entries.of(peer);
        let entries = keys.iter().filter_map(|key| self.ingress.entries.get(key));
        let bindings = entries.filter_map(|entry| entry.binding.as_ref());
        let mut taken: BTreeSet<ConnId> = bindings
            .filter(|binding| binding.qos.is_some())
            .filter_map(|binding| binding.conn)
            .collect();
        // Where both ends call, the call of the smaller address stays: its caller waits for it.
        let ours = self.data < peer;
        for key in keys {
            let Some(binding) = self
                .ingress
                .entries
                .get(&key)
                .and_then(|e| e.binding.as_ref())
            else {
                continue;
            };
            let (qos, old, spare) = (binding.qos, binding.conn, binding.spare);
            let may_take = |call: Call, conn: &ConnId| {
                let waits = call == Call::Asked && ours;
                !waits || self.shortcuts.get(conn).is_some_and(|s| s.opened)
            };
            let best = self.pick(peer, qos, &taken).filter(|best| match old {
                None => may_take(binding.call, best),
                Some(old) => self.rank(*best) < self.rank(old),
            });
            let plain = spare.filter(|_| best.is_none() && old.is_none());
            let plain = plain.and_then(|spare| {
                let found = self.pick(peer, None, &taken)?;
                let moves = match spare.conn {
                    None => may_take(spare.call, &found),
                    Some(old) => self.rank(found) < self.rank(old),
                };
                moves.then_some(found)
            });
            if best.is_none() && plain.is_none() {
                continue;
            }
            let entry = self.ingress.entries.get_mut(&key);
            let Some(binding) = entry.and_then(|entry| entry.binding.as_mut()) else {
                continue;
            };
            if let Some(best) = best {
                (binding.conn, binding.call, binding.spare) = (Some(best), Call::Idle, None);
                if qos.is_some() {
                    taken.insert(best);
                }
            } else if let (Some(spare), Some(_)) = (&mut binding.spare, plain) {
                (spare.conn, spare.call) = (plain, Call::Idle);
            }
        }
        for conn in self.shortcuts.of(peer).collect::<Vec<_>>() {
            if let Some(shortcut) = self.shortcuts.get_mut(&conn) {
                shortcut.taken = taken.contains(&conn);
            }
        }
    }

    /// Finds the connections with `peer` that this end opened and that another one replaces.
    ///
    /// Best effort is replaced by that of the smaller address. A guaranteed connection replaces it, too, for the
    /// packets that answer; whatever else takes best effort shows by its packets that it needs it. A connection of one
    /// flow is replaced if the flow has taken that of the other end.
    pub(super) fn unite(&mut self, peer: AtmAddress, now: Instant) {
        let all: Vec<ConnId> = self.shortcuts.of(peer).collect();
        let known = all.iter().filter_map(|conn| self.shortcuts.get(conn));
        let answers = known.filter(|s| s.qos.is_some()).any(|s| {
            let begins = s.arrived == Some(now) || s.is_fresh(now);
            begins && s.arrived.is_some() && (s.leads_back() || s.opened)
        });
        let best = self.pick(peer, None, &BTreeSet::new());
        for conn in all {
            let Some(shortcut) = self.shortcuts.get(&conn).filter(|s| s.opened) else {
                continue;
            };
            let entry = shortcut
                .flow
                .and_then(|flow| self.ingress.entries.get(&flow));
            let binding = entry.and_then(|entry| entry.binding.as_ref());
            let replaced = match (shortcut.qos, shortcut.flow) {
                (None, _) => answers || best != Some(conn),
                (Some(_), Some(_)) => {
                    binding.is_some_and(|b| b.conn.is_some_and(|other| other != conn))
                }
                (Some(_), None) => false,
            };
            if replaced {
                self.shortcuts.replace(conn, now);
                self.note(Some(now + SETTLE));
            }
        }
    }

    /// The binding is valid, only the call failed: the flow uses best effort instead, or LANE; the call is tried again
    /// later.
    pub(super) fn open_failed(
        &mut self,
        (egress, qos): (AtmAddress, Option<Qos>),
        flow: Option<FlowName>,
        cause: Cause,
        now: Instant,
        bus: &mut Bus,
    ) {
        let wait = now + self.params.hold_down;
        if let Some(flow) = flow {
            self.ingress.refused(flow, (egress, qos), cause, wait, bus);
            self.adopt(egress);
            return self.ingress.open(flow, now, bus);
        }
        self.ingress.open_failed(egress, cause, wait);
        // The other end may have opened one in the meantime.
        self.adopt(egress);
        let text = format!("no shortcut to {egress}: {cause}");
        let trace = Trace::milestone("mpc.shortcut.failed", text);
        bus.trace(trace.with("egress", egress).with("cause", cause.0));
    }

    pub(super) fn detach(&mut self, conn: ConnId, cause: Cause, now: Instant, bus: &mut Bus) {
        let Some(gone) = self.shortcuts.remove(&conn) else {
            return;
        };
        let wait = now + self.params.initial_retry;
        self.returns.forget(conn);
        self.ingress.detach(conn, gone.peer, cause, wait);
        self.egress.detach(conn, gone.peer);
        // Another connection to the same peer takes over at once.
        self.adopt(gone.peer);
        down(&gone, &format!("{cause}"), bus);
    }

    /// Closes shortcuts without entries and stops the Keep-Alive check of MPSs without entries; only shortcuts and MPSs
    /// with changes since the last call are checked.
    pub(super) fn collect(&mut self, now: Instant, bus: &mut Bus) {
        let Left {
            mut peers,
            mut servers,
        } = self.ingress.entries.take_left();
        let left = self.egress.take_left();
        peers.extend(left.peers);
        peers.append(&mut self.shortcuts.new);
        servers.extend(left.servers);
        for mps in servers {
            let known = self.ingress.entries.has_server(&mps) || self.egress.has_server(&mps);
            if !known && self.active.remove(&mps) {
                bus.daemon(ToDaemon::StopKeepAlive { mps });
            }
        }
        let mut idle = BTreeSet::new();
        for peer in peers {
            let uses = self.uses(peer);
            for conn in self.shortcuts.of(peer).collect::<Vec<_>>() {
                let own = self.shortcuts.get(&conn).is_some_and(|s| s.flow.is_some());
                let sent = uses.named.get(&conn).copied().flatten();
                let used = uses.shared && !own || uses.named.contains_key(&conn);
                if let Some(shortcut) = self.shortcuts.get_mut(&conn) {
                    shortcut.taken = uses.taken.contains(&conn);
                }
                if self.shortcuts.judge(conn, used, sent, now) {
                    idle.insert(conn);
                }
            }
        }
        for conn in idle {
            if let Some(shortcut) = self.shortcuts.remove(&conn) {
                bus.daemon(ToDaemon::CloseShortcut { conn });
                let why = match shortcut.replaced {
                    Some(_) => "another connection takes its place",
                    None => "no entry uses it",
                };
                self.returns.forget(conn);
                self.ingress.leave(conn, shortcut.peer);
                down(&shortcut, why, bus);
            }
        }
        self.note(self.shortcuts.lingers_until());
    }

    /// The use that entries make of the connections with `peer`.
    fn uses(&mut self, peer: AtmAddress) -> Uses {
        let mut uses = Uses {
            shared: self.egress.has_ingress(peer),
            named: BTreeMap::new(),
            taken: BTreeSet::new(),
        };
        for key in self.ingress.entries.of(peer) {
            let entry = self.ingress.entries.get(&key);
            if let Some(binding) = entry.and_then(|entry| entry.binding.as_ref()) {
                let spare = binding.spare.and_then(|spare| spare.conn);
                for conn in binding.conn.into_iter().chain(spare) {
                    let sent = uses.named.entry(conn).or_default();
                    *sent = (*sent).max(binding.sent);
                }
                uses.taken
                    .extend(binding.conn.filter(|_| binding.qos.is_some()));
                uses.shared |= binding.qos.is_none() || binding.spare.is_some();
            }
        }
        uses
    }
}

/// The use of the connections with another client.
struct Uses {
    /// Entries use best effort, whichever connection it is.
    shared: bool,
    /// The connections that entries name, each with the time of the last packet that was sent on it.
    named: BTreeMap<ConnId, Option<Instant>>,
    /// The connections of flows with QoS entries.
    taken: BTreeSet<ConnId>,
}

fn down(shortcut: &Shortcut, why: &str, bus: &mut Bus) {
    let label = shortcut.vc.map_or_else(String::new, |vc| vc.to_string());
    let text = format!("shortcut with {} on {label} is down: {why}", shortcut.peer);
    let trace = Trace::milestone("mpc.shortcut.down", text);
    bus.trace(trace.with("peer", shortcut.peer).with("vc", label));
}
