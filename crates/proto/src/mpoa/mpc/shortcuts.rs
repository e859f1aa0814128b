//! The shortcuts of a client: which flow takes which connection, and when a connection is released.
//!
//! Best effort connections are shared by all flows for one MPC, in both directions. A connection with more than best
//! effort, opened here for one flow, is used by that flow alone and is released with it. A connection that the other
//! end opened with more than best effort may carry packets back. It may carry one flow that wants the same traffic, or
//! flows that want only best effort and whose destination is the source of the packets that arrive on the connection.
//! Source: thesis Figures 6.1 and 6.3, §6.1.3.

use super::api::Bus;
use super::data::DataPlane;
use super::entries::Left;
use super::ingress::Call;
use crate::mpoa::messages::{FlowName, ToDaemon};
use crate::{Cause, ConnId, Deadlines, Duration, Instant, Trace};
use aerostat_wire::{AtmAddress, Qos, Vc};
use core::net::IpAddr;
use core::ops::Deref;
use std::collections::{BTreeMap, BTreeSet};

/// How long a shortcut without entries stays if the other end opened it (normally the end that opened it closes it), or
/// if a purge was sent over it lately: to close the shortcut at once would lose the purge.
pub(super) const LINGER: Duration = Duration::from_secs(20);

/// How often the source of packets on a shortcut is checked.
const SOURCE_GAP: Duration = Duration::from_secs(1);

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
    /// Source of the packets that arrive, and the time of the last check.
    latest_source: Option<(IpAddr, Instant)>,
}

impl Shortcut {
    pub(super) const fn new(
        peer: AtmAddress,
        qos: Option<Qos>,
        opened: bool,
        flow: Option<FlowName>,
    ) -> Self {
        Self {
            peer,
            vc: None,
            qos,
            opened,
            flow,
            idle_since: None,
            last_purge: None,
            latest_source: None,
        }
    }
    /// A packet came from `source`; true if the source is new. At most one check a second, however many sources there
    /// are.
    pub(super) fn note_source(&mut self, source: IpAddr, now: Instant) -> bool {
        let old = self.latest_source;
        if old.is_some_and(|(_, at)| now.since(at) < SOURCE_GAP) {
            return false;
        }
        self.latest_source = Some((source, now));
        old.is_none_or(|(ip, _)| ip != source)
    }
    /// True if a flow to `destination` that wants `qos` may use the shortcut and need not share it.
    fn suits(&self, qos: Option<Qos>, destination: IpAddr) -> bool {
        match (qos, self.qos) {
            (None, None) => true,
            (None, Some(_)) => {
                !self.opened && self.latest_source.is_some_and(|(ip, _)| ip == destination)
            }
            (Some(wanted), Some(has)) => !self.opened && wanted == has,
            (Some(_), None) => false,
        }
    }
}

/// The shortcuts by connection; they can also be found by their other end.
#[derive(Debug, Default)]
pub(super) struct Shortcuts {
    map: BTreeMap<ConnId, Shortcut>,
    by_peer: BTreeSet<(AtmAddress, ConnId)>,
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
        self.new.insert(shortcut.peer);
        self.map.insert(conn, shortcut);
    }
    fn remove(&mut self, conn: &ConnId) -> Option<Shortcut> {
        let gone = self.map.remove(conn)?;
        self.by_peer.remove(&(gone.peer, *conn));
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
    /// Notes whether a shortcut is used; true if it is to be closed.
    fn judge(&mut self, conn: ConnId, used: bool, now: Instant) -> bool {
        let Some(shortcut) = self.map.get_mut(&conn) else {
            return false;
        };
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
        } else {
            self.shortcuts.insert(conn, Shortcut { vc, ..new });
            match flow {
                Some(flow) => self.ingress.granted(flow, conn, peer, qos),
                None => self.adopt(peer),
            }
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

    /// Ingress entries for `peer` that have no connection take a suitable existing one.
    pub(super) fn adopt(&mut self, peer: AtmAddress) {
        let shortcuts = &self.shortcuts;
        let guaranteed = |conn: &ConnId| shortcuts.get(conn).is_some_and(|s| s.qos.is_some());
        let keys = self.ingress.entries.of(peer);
        let entries = keys.iter().filter_map(|key| self.ingress.entries.get(key));
        let bindings = entries.filter_map(|entry| entry.binding.as_ref());
        let mut taken: BTreeSet<ConnId> = bindings
            .filter_map(|binding| binding.conn)
            .filter(guaranteed)
            .collect();
        let pick = |qos, destination, taken: &BTreeSet<ConnId>| {
            pick(shortcuts, peer, (qos, destination), taken)
        };
        for key in keys {
            let Some(entry) = self.ingress.entries.get_mut(&key) else {
                continue;
            };
            let Some(binding) = entry.binding.as_mut() else {
                continue;
            };
            // A flow that has requested its own connection waits for that connection.
            let waits = binding.qos.is_some() && binding.call == Call::Asked;
            if binding.conn.is_none()
                && !waits
                && let Some(conn) = pick(binding.qos, key.1, &taken)
            {
                (binding.conn, binding.call, binding.spare) = (Some(conn), Call::Idle, None);
                if binding.qos.is_some() {
                    taken.insert(conn);
                }
            }
            if let Some(spare) = binding.spare.as_mut().filter(|spare| spare.conn.is_none())
                && let Some(conn) = pick(None, key.1, &taken)
            {
                (spare.conn, spare.call) = (Some(conn), Call::Idle);
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
        let text = format!("no shortcut to {egress}: {cause}");
        let trace = Trace::milestone("mpc.shortcut.failed", text);
        bus.trace(trace.with("egress", egress).with("cause", cause.0));
    }

    pub(super) fn detach(&mut self, conn: ConnId, cause: Cause, now: Instant, bus: &mut Bus) {
        let Some(gone) = self.shortcuts.remove(&conn) else {
            return;
        };
        let wait = now + self.params.initial_retry;
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
            let (shared, used) = self.uses(peer);
            for conn in self.shortcuts.of(peer).collect::<Vec<_>>() {
                let own = self.shortcuts.get(&conn).is_some_and(|s| s.flow.is_some());
                let used = shared && !own || used.contains(&conn);
                if self.shortcuts.judge(conn, used, now) {
                    idle.insert(conn);
                }
            }
        }
        for conn in idle {
            if let Some(shortcut) = self.shortcuts.remove(&conn) {
                bus.daemon(ToDaemon::CloseShortcut { conn });
                down(&shortcut, "no entry uses it", bus);
            }
        }
        self.note(self.shortcuts.lingers_until());
    }

    /// Whether entries use any connection with `peer`, and the connections that they name.
    fn uses(&mut self, peer: AtmAddress) -> (bool, BTreeSet<ConnId>) {
        let mut shared = self.egress.has_ingress(peer);
        let mut used = BTreeSet::new();
        for key in self.ingress.entries.of(peer) {
            let entry = self.ingress.entries.get(&key);
            if let Some(binding) = entry.and_then(|entry| entry.binding.as_ref()) {
                used.extend(binding.conn);
                shared |= binding.qos.is_none() || binding.spare.is_some();
            }
        }
        (shared, used)
    }
}

/// The shortcut for traffic `qos` to a destination behind `peer`: best effort is preferred to more.
fn pick(
    shortcuts: &Shortcuts,
    peer: AtmAddress,
    (qos, destination): (Option<Qos>, IpAddr),
    taken: &BTreeSet<ConnId>,
) -> Option<ConnId> {
    let all = shortcuts.of(peer).filter(|conn| !taken.contains(conn));
    let suitable = all.filter_map(|conn| Some((conn, shortcuts.get(&conn)?)));
    let suitable = suitable.filter(|(_, s)| s.suits(qos, destination));
    let mut suitable = suitable.map(|(conn, s)| (s.qos.is_some(), conn));
    let first = suitable.next()?;
    Some(suitable.fold(first, core::cmp::min).1)
}

fn down(shortcut: &Shortcut, why: &str, bus: &mut Bus) {
    let label = shortcut.vc.map_or_else(String::new, |vc| vc.to_string());
    let text = format!("shortcut with {} on {label} is down: {why}", shortcut.peer);
    let trace = Trace::milestone("mpc.shortcut.down", text);
    bus.trace(trace.with("peer", shortcut.peer).with("vc", label));
}
