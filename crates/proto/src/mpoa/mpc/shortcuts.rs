//! The shortcuts of a client: which flow takes which connection, and when a connection goes.
//!
//! Best effort connections are shared by everything for one MPC, both ways. A connection with more than best effort,
//! opened here for one flow, is used by that flow alone and goes with it. One that the other end opened may carry
//! the way back: of one flow that wants the same traffic, or of what wants none and goes to where the packets on
//! it come from. Source: thesis Figures 6.1 and 6.3, §6.1.3.

use super::api::Bus;
use super::data::DataPlane;
use super::ingress::Call;
use crate::mpoa::messages::{FlowName, ToDaemon};
use crate::{Cause, ConnId, Duration, Instant, Trace};
use aerostat_wire::{AtmAddress, Qos, Vc};
use core::net::IpAddr;
use std::collections::{BTreeMap, BTreeSet};

/// How long a shortcut that the other end opened stays without entries; its opener normally closes it.
pub(super) const LINGER: Duration = Duration::from_secs(20);

/// How often the source of packets on a shortcut is looked at.
const SOURCE_GAP: Duration = Duration::from_secs(1);

/// A connection attached as a shortcut.
#[derive(Clone, Debug)]
pub(super) struct Shortcut {
    pub(super) peer: AtmAddress,
    pub(super) vc: Option<Vc>,
    /// Its traffic, if more than best effort.
    pub(super) qos: Option<Qos>,
    pub(super) opened: bool,
    /// The flow that alone may use it.
    flow: Option<FlowName>,
    /// Without entries since; `None` while there are some.
    pub(super) idle_since: Option<Instant>,
    pub(super) last_purge: Option<(Instant, IpAddr)>,
    /// Source of the packets that arrive, and when it was last looked at.
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
    /// A packet came from `source`; true if that is news. At most one look a second, however many sources there are.
    pub(super) fn note_source(&mut self, source: IpAddr, now: Instant) -> bool {
        let old = self.latest_source;
        if old.is_some_and(|(_, at)| now.since(at) < SOURCE_GAP) {
            return false;
        }
        self.latest_source = Some((source, now));
        old.is_none_or(|(ip, _)| ip != source)
    }
    /// True if a flow to `destination` that wants `qos` may use it and need not share it.
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

    /// The ingress entries for `peer` that have no connection take what they may of what there is.
    pub(super) fn adopt(&mut self, peer: AtmAddress) {
        let shortcuts = &self.shortcuts;
        let guaranteed = |conn: &ConnId| shortcuts.get(conn).is_some_and(|s| s.qos.is_some());
        let entries = self.ingress.entries.values();
        let bindings = entries.filter_map(|entry| entry.binding.as_ref());
        let mut taken: BTreeSet<ConnId> = bindings
            .filter_map(|binding| binding.conn)
            .filter(guaranteed)
            .collect();
        let pick = |qos, destination, taken: &BTreeSet<ConnId>| {
            pick(shortcuts, peer, (qos, destination), taken)
        };
        for (key, entry) in &mut self.ingress.entries {
            let Some(binding) = entry.binding.as_mut().filter(|b| b.egress == peer) else {
                continue;
            };
            // A flow that has asked for its own connection waits for that.
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

    /// The binding is good, only the call is not: best effort in its place, or LANE; and try again later.
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
        self.ingress
            .detach(conn, cause, now + self.params.retry_initial);
        for entry in self.egress.entries.values_mut() {
            entry.conn = entry.conn.filter(|c| *c != conn);
        }
        // Another connection to the same place takes over at once.
        self.adopt(gone.peer);
        down(&gone, &format!("{cause}"), bus);
    }

    /// Closes shortcuts without entries and stops the keep-alive check of MPSs without entries.
    pub(super) fn collect(&mut self, now: Instant, bus: &mut Bus) {
        let mut used = BTreeSet::new();
        let mut peers = BTreeSet::new();
        let mut servers = BTreeSet::new();
        for (key, entry) in &self.ingress.entries {
            if let Some(binding) = &entry.binding {
                used.extend(binding.conn);
                if binding.qos.is_none() || binding.spare.is_some() {
                    peers.insert(binding.egress);
                }
                servers.insert(key.0);
            }
        }
        for entry in self.egress.entries.values() {
            peers.insert(entry.info.ingress);
            servers.insert(entry.info.mps);
        }
        for mps in self.active.difference(&servers) {
            bus.daemon(ToDaemon::StopKeepAlive { mps: *mps });
        }
        self.active = &self.active & &servers;
        let mut idle = Vec::new();
        for (conn, shortcut) in &mut self.shortcuts {
            let shared = shortcut.flow.is_none() && peers.contains(&shortcut.peer);
            if shared || used.contains(conn) {
                shortcut.idle_since = None;
                continue;
            }
            let since = *shortcut.idle_since.get_or_insert(now);
            if shortcut.opened || now.since(since) >= LINGER {
                idle.push(*conn);
            }
        }
        for conn in idle {
            if let Some(shortcut) = self.shortcuts.remove(&conn) {
                bus.daemon(ToDaemon::CloseShortcut { conn });
                down(&shortcut, "no entry uses it", bus);
            }
        }
        let next = self.shortcuts.values().filter_map(|s| s.idle_since).min();
        self.note(next.map(|at| at + LINGER));
    }
}

/// The shortcut for what wants `qos` to a destination behind `peer`: best effort before what is more.
fn pick(
    shortcuts: &BTreeMap<ConnId, Shortcut>,
    peer: AtmAddress,
    (qos, destination): (Option<Qos>, IpAddr),
    taken: &BTreeSet<ConnId>,
) -> Option<ConnId> {
    let suitable = shortcuts
        .iter()
        .filter(|(conn, s)| s.peer == peer && s.suits(qos, destination) && !taken.contains(conn));
    let mut suitable = suitable.map(|(conn, s)| (s.qos.is_some(), *conn));
    let first = suitable.next()?;
    Some(suitable.fold(first, core::cmp::min).1)
}

fn down(shortcut: &Shortcut, why: &str, bus: &mut Bus) {
    let label = shortcut.vc.map_or_else(String::new, |vc| vc.to_string());
    let text = format!("shortcut with {} on {label} is down: {why}", shortcut.peer);
    let trace = Trace::milestone("mpc.shortcut.down", text);
    bus.trace(trace.with("peer", shortcut.peer).with("vc", label));
}
