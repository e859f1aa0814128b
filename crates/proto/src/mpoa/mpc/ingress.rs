//! The ingress cache: flows that enter the ATM network here, and the shortcuts they take.
//!
//! Source: MPOA 1.1 appendix I.2. An entry is named by the MPS that would route the flow, by its destination, and by
//! the QoS entry that its packets fit. *Query* while a binding is held is the refresh of appendix I.2: the shortcut
//! stays in use.

mod entry;

use super::api::{Bus, MpcLimits};
use super::daemon::category_bits;
use super::entries::Entries;
use super::purge::Own;
use crate::mpoa::messages::{FlowName, IngressInfo, ToDaemon};
use crate::mpoa::params::MpcParams;
use crate::{Cause, ConnId, Duration, Instant, Trace};
use aerostat_wire::counted;
use aerostat_wire::mpoa::code_name;
use aerostat_wire::prefix::within;
use aerostat_wire::{AtmAddress, Qos};
use core::net::{IpAddr, Ipv4Addr};
pub use entry::IngressState;
pub(super) use entry::{Back, Binding, Call, Entry, Spare};

/// How long an entry that only counts is kept without a frame.
const IDLE: Duration = Duration::from_secs(1200);

/// Name of an entry.
pub(super) type Key = FlowName;

/// Text for a flow: its destination, and its QoS entry if that has more fields.
pub(super) fn name(key: &Key) -> String {
    match key.2 {
        Some(filter) if filter.is_layer_4() => format!("{} ({filter})", key.1),
        _ => key.1.to_string(),
    }
}

/// Where a candidate frame goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Path {
    Lane,
    Shortcut {
        conn: ConnId,
        tag: Option<u32>,
        first: bool,
    },
}

/// Ingress cache entries by name.
#[derive(Debug, Default)]
pub(super) struct Ingress {
    pub(super) entries: Entries,
    pub(super) own: Own,
    /// Entries are not searched for removal before this time.
    next_sweep: Option<Instant>,
}

/// Candidate frames for a shortcut: one, or the segments of a super frame.
pub(super) struct Frames {
    pub(super) source: IpAddr,
    /// Octets of the longest IP packet.
    pub(super) longest: usize,
    pub(super) count: u16,
}

impl Ingress {
    /// Candidate frames: counts them and chooses their path. `back` tells their way back to an egress.
    pub(super) fn frames(
        &mut self,
        key: Key,
        Frames {
            source,
            longest,
            count,
        }: Frames,
        (qos, back): (Option<Qos>, impl FnOnce(AtmAddress) -> Back),
        now: Instant,
        (params, limits): (&MpcParams, &MpcLimits),
        bus: &mut Bus,
    ) -> Path {
        if !self.entries.contains_key(&key) && !self.make_room(now, params, limits) {
            bus.counters.ingress_limit += 1;
            return Path::Lane;
        }
        if !self.entries.contains_key(&key) {
            self.entries.insert(key, Entry::new(source, now));
        }
        let Some(mut entry) = self.entries.count_mut(&key) else {
            return Path::Lane;
        };
        let flow = entry.count_frames(count, now, params);
        if flow && matches!(entry.state, IngressState::Cached | IngressState::Refresh) {
            self.entries.touch(key);
            let Some(asking) = self.entries.count_mut(&key) else {
                return Path::Lane;
            };
            entry = asking;
            entry.source = source;
            let frames = counted(entry.count, "frame", "frames");
            let text = format!("a flow to {} reached {frames}", name(&key));
            let trace = Trace::milestone("mpc.flow.detected", text).with("destination", key.1);
            bus.trace(match key.2 {
                Some(filter) => trace.with("entry", filter),
                None => trace,
            });
            self.own.note(entry.source);
            query(key, entry, qos, now, params, bus);
        }
        match &mut entry.binding {
            Some(binding) => {
                let (back, shown) = (back(binding.egress), binding.shown());
                let packets = &mut entry.packets;
                let path = forward(key, (binding, back), packets, (longest, count), now, bus);
                if binding.shown() != shown {
                    self.entries.shows_other(key);
                }
                path
            }
            None => Path::Lane,
        }
    }

    /// 101: proceeds as if a flow had been detected.
    pub(super) fn trigger(
        &mut self,
        key: Key,
        qos: Option<Qos>,
        now: Instant,
        (params, limits): (&MpcParams, &MpcLimits),
        bus: &mut Bus,
    ) {
        if !self.entries.contains_key(&key) && !self.make_room(now, params, limits) {
            bus.counters.ingress_limit += 1;
            return;
        }
        if !self.entries.contains_key(&key) {
            let nobody = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
            self.entries.insert(key, Entry::new(nobody, now));
        }
        let Some(entry) = self.entries.get_mut(&key) else {
            return;
        };
        if matches!(entry.state, IngressState::Cached | IngressState::Refresh) {
            self.own.note(entry.source);
            query(key, entry, qos, now, params, bus);
        }
    }

    /// 102. Returns true if a binding was dropped.
    pub(super) fn reply(
        &mut self,
        info: &IngressInfo,
        qos: Option<Qos>,
        now: Instant,
        params: &MpcParams,
        bus: &mut Bus,
    ) -> bool {
        let key = info.flow();
        let Some(entry) = self
            .entries
            .get_mut(&key)
            .filter(|e| e.state == IngressState::Query)
        else {
            bus.counters.unsolicited += 1;
            return false;
        };
        entry.last_code = info.code;
        if info.code != 0 {
            let text = format!("{} is not resolved: {}", name(&key), code_name(info.code));
            bus.trace(
                Trace::milestone("mpc.resolution.refused", text)
                    .with("destination", info.destination)
                    .with("code", info.code),
            );
            entry.hold_down(now, params);
            return true;
        }
        let text = format!("{} is behind {}", name(&key), info.egress);
        let tag = info
            .tag
            .map_or_else(|| "none".to_owned(), |tag| format!("{tag:08x}"));
        bus.trace(
            Trace::milestone("mpc.resolution.answered", text)
                .with("destination", info.destination)
                .with("egress", info.egress)
                .with("tag", tag)
                .with("holding", info.holding_s),
        );
        let old = entry
            .binding
            .take()
            .filter(|b| b.egress == info.egress && b.qos == qos);
        let holding = Duration::from_secs(info.holding_s.into());
        let wanted = qos.and_then(|qos| category_bits(&qos));
        let taken = info.category.unwrap_or(u16::MAX);
        let denied = wanted.is_some_and(|wanted| wanted & taken == 0);
        let mut spare = old.as_ref().and_then(|b| b.spare);
        let mut call = old.as_ref().map_or(Call::Idle, |b| b.call);
        let (sent, back) = old.as_ref().map_or((None, None), |b| (b.sent, b.back));
        let conn = old.and_then(|b| b.conn);
        if denied && conn.is_none() {
            call = Call::Wait(now + holding);
            if spare.is_none() {
                fall_back(&key, qos, "the egress takes best effort only", bus);
            }
            spare = Some(spare.unwrap_or_default());
        }
        entry.binding = Some(Binding {
            egress: info.egress,
            tag: info.tag,
            mtu: info.mtu,
            expires: now + holding,
            refresh: now + holding * 2 / 3,
            conn,
            qos,
            call,
            spare,
            sent,
            back,
        });
        (entry.state, entry.retry) = (IngressState::Resolved, None);
        true
    }

    /// Requests the shortcut of an entry that has no connection, unless the shortcut was requested already.
    pub(super) fn open(&mut self, key: Key, now: Instant, bus: &mut Bus) {
        let entry = self.entries.count_mut(&key);
        if let Some(binding) = entry.and_then(|entry| entry.binding.as_mut()) {
            open(key, binding, now, bus);
        }
    }

    /// Handles all entries that are due. Returns true if a binding was dropped.
    pub(super) fn expire(&mut self, now: Instant, params: &MpcParams, bus: &mut Bus) -> bool {
        let mut dropped = false;
        for key in self.entries.due(now) {
            let mut stays = true;
            while stays
                && let Some(entry) = self.entries.get_mut(&key)
                && entry.deadline().is_some_and(|at| at <= now)
            {
                dropped |= entry.binding.is_some();
                stays = step(key, entry, now, params, bus);
            }
            if !stays {
                self.entries.remove(&key);
            }
        }
        dropped
    }

    /// Removes the entries that `gone` selects. Returns their number.
    pub(super) fn remove(&mut self, gone: impl Fn(&Key, &Entry) -> bool) -> usize {
        let before = self.entries.len();
        self.entries.retain(|key, entry| !gone(key, entry));
        before - self.entries.len()
    }

    /// The daemon died, and its connections with it. Information from MPSs stays valid; outstanding requests end with
    /// the daemon.
    pub(super) fn orphan(&mut self) {
        self.entries
            .retain(|_, entry| entry.state != IngressState::Query || entry.binding.is_some());
        for key in self.entries.keys_now() {
            let Some(entry) = self.entries.get_mut(&key) else {
                continue;
            };
            if entry.state == IngressState::Query {
                (entry.state, entry.retry, entry.count) = (IngressState::Refresh, None, 0);
            }
            if let Some(binding) = &mut entry.binding {
                (binding.conn, binding.call, binding.spare) = (None, Call::Idle, None);
                (binding.sent, binding.back) = (None, None);
            }
        }
    }

    /// The entries that a new daemon did not ask for and must know.
    pub(super) fn bound(&self) -> impl Iterator<Item = IngressInfo> {
        self.entries.iter().filter_map(|(key, entry)| {
            let binding = entry.binding.as_ref()?;
            Some(IngressInfo {
                egress: binding.egress,
                tag: binding.tag,
                mtu: binding.mtu,
                ..IngressInfo::unresolved(*key, entry.source)
            })
        })
    }

    /// 103, a purge of an MPS. Returns the number of removed entries.
    pub(super) fn purge_mps(&mut self, mps: AtmAddress, destination: IpAddr, prefix: u8) -> usize {
        // An entry without a binding contains nothing that could be wrong.
        self.remove(|key, entry| {
            key.0 == mps && entry.binding.is_some() && within(key.1, destination, prefix)
        })
    }

    /// A purge of the client at the other end of shortcuts. Returns the number of removed entries.
    pub(super) fn purge_egress(&mut self, egress: AtmAddress, to: IpAddr, prefix: u8) -> usize {
        let mut gone = self.entries.of(egress);
        gone.retain(|key| within(key.1, to, prefix));
        for key in &gone {
            self.entries.remove(key);
        }
        gone.len()
    }

    /// The connection that was opened for one flow is up.
    pub(super) fn granted(&mut self, flow: Key, conn: ConnId, peer: AtmAddress, qos: Option<Qos>) {
        let entry = self.entries.get_mut(&flow);
        let binding = entry.and_then(|entry| entry.binding.as_mut());
        // The flow may have taken a connection of the other end in the meantime.
        let alone = |b: &&mut Binding| b.egress == peer && b.qos == qos && b.conn.is_none();
        if let Some(binding) = binding.filter(alone) {
            (binding.conn, binding.call, binding.spare) = (Some(conn), Call::Idle, None);
        }
    }

    /// This end closes a connection with `peer`: another one takes its place. The next packet that needs one of its own
    /// asks for it.
    pub(super) fn leave(&mut self, conn: ConnId, peer: AtmAddress) {
        for key in self.entries.of(peer) {
            let entry = self.entries.get(&key).and_then(|e| e.binding.as_ref());
            let spare = |b: &Binding| b.spare.and_then(|spare| spare.conn);
            if !entry.is_some_and(|b| b.conn == Some(conn) || spare(b) == Some(conn)) {
                continue;
            }
            let entry = self.entries.get_mut(&key);
            let Some(binding) = entry.and_then(|entry| entry.binding.as_mut()) else {
                continue;
            };
            if binding.conn == Some(conn) {
                (binding.conn, binding.call) = (None, Call::Idle);
            }
            if let Some(spare) = binding.spare.as_mut().filter(|s| s.conn == Some(conn)) {
                *spare = Spare::default();
            }
        }
    }

    /// A connection with `peer` went down: its entries continue over LANE and may ask for another connection after
    /// `wait`.
    pub(super) fn detach(&mut self, conn: ConnId, peer: AtmAddress, cause: Cause, wait: Instant) {
        for key in self.entries.of(peer) {
            let Some(entry) = self.entries.get_mut(&key) else {
                continue;
            };
            let Some(binding) = entry.binding.as_mut() else {
                continue;
            };
            if binding.conn == Some(conn) {
                (binding.conn, binding.call) = (None, Call::Wait(wait));
                if !cause.is_normal() {
                    entry.last_cause = Some(cause);
                }
            }
            if let Some(spare) = binding.spare.as_mut().filter(|s| s.conn == Some(conn)) {
                (spare.conn, spare.call) = (None, Call::Wait(wait));
            }
            binding.back = binding.back.filter(|back| *back != conn);
        }
    }

    /// A call for best effort failed: its entries stay, and ask again after `wait`.
    pub(super) fn open_failed(&mut self, egress: AtmAddress, cause: Cause, wait: Instant) {
        for key in self.entries.of(egress) {
            let Some(entry) = self.entries.get_mut(&key) else {
                continue;
            };
            let Some(binding) = entry.binding.as_mut() else {
                continue;
            };
            let spare = binding.spare.as_mut().map(|spare| &mut spare.call);
            let call = match binding.qos {
                None => Some(&mut binding.call),
                Some(_) => spare,
            };
            if let Some(call) = call.filter(|call| **call == Call::Asked) {
                *call = Call::Wait(wait);
                entry.last_cause = Some(cause);
            }
        }
    }

    /// A call for one flow was refused: the flow uses best effort, and asks again after `wait`.
    pub(super) fn refused(
        &mut self,
        flow: Key,
        (egress, qos): (AtmAddress, Option<Qos>),
        cause: Cause,
        wait: Instant,
        bus: &mut Bus,
    ) {
        let Some(entry) = self.entries.get_mut(&flow) else {
            return;
        };
        let asked = |b: &&mut Binding| b.egress == egress && b.qos == qos && b.call == Call::Asked;
        if let Some(binding) = entry.binding.as_mut().filter(asked) {
            binding.call = Call::Wait(wait);
            binding.spare = Some(binding.spare.unwrap_or_default());
            entry.last_cause = Some(cause);
            fall_back(&flow, qos, &cause.to_string(), bus);
        }
    }

    /// True if there is room for one more entry; entries that no longer count frames are removed to make room.
    fn make_room(&mut self, now: Instant, params: &MpcParams, limits: &MpcLimits) -> bool {
        if self.entries.len() >= limits.ingress && self.next_sweep.is_none_or(|at| at <= now) {
            // At most one search per p2; otherwise each destination of a flood would cost one.
            self.next_sweep = Some(now + params.flow_time);
            self.entries.retain(|_, e| {
                e.state != IngressState::Cached || now.since(e.window) < params.flow_time
            });
        }
        self.entries.len() < limits.ingress
    }
}

/// Sends the first Resolution Request of a query.
fn query(
    key: Key,
    entry: &mut Entry,
    qos: Option<Qos>,
    now: Instant,
    params: &MpcParams,
    bus: &mut Bus,
) {
    entry.state = IngressState::Query;
    entry.retry = Some(params.repeats(now));
    let info = IngressInfo::unresolved(key, entry.source);
    bus.daemon(ToDaemon::SendResolutionRequest { info, qos });
}

/// Handles one due event of an entry; false if the entry ends.
fn step(key: Key, entry: &mut Entry, now: Instant, params: &MpcParams, bus: &mut Bus) -> bool {
    match entry.state {
        IngressState::Cached => return false,
        IngressState::Query => {
            if entry.binding.as_ref().is_some_and(|b| b.expires <= now) {
                entry.binding = None;
            } else if entry.retry.as_mut().is_some_and(|retry| retry.step(now)) {
                let info = IngressInfo::unresolved(key, entry.source);
                bus.daemon(ToDaemon::SendResolutionRetry(info));
            } else {
                let text = format!("no answer about {}", name(&key));
                bus.trace(
                    Trace::milestone("mpc.resolution.failed", text).with("destination", key.1),
                );
                entry.hold_down(now, params);
            }
        }
        IngressState::Resolved => entry.state = IngressState::Refresh,
        IngressState::Refresh => {
            let text = format!("the binding of {} has expired", name(&key));
            bus.trace(Trace::detail("mpc.ingress.expired", text).with("destination", key.1));
            return false;
        }
        IngressState::HoldDown => {
            (entry.state, entry.count, entry.last_frame) = (IngressState::Cached, 0, now);
        }
    }
    true
}

/// The path of a frame whose destination is resolved.
fn forward(
    key: Key,
    (binding, back): (&mut Binding, Back),
    packets: &mut u64,
    (len, count): (usize, u16),
    now: Instant,
    bus: &mut Bus,
) -> Path {
    let (conn, room) = match back {
        Back::Over(conn, room) => (Some(conn), room.min(binding.mtu)),
        Back::Expected | Back::Elsewhere => {
            if binding.conn.is_none() && back == Back::Elsewhere {
                open(key, binding, now, bus);
            }
            (binding.in_use(), binding.room())
        }
    };
    let Some(conn) = conn.filter(|_| len <= room.into()) else {
        return Path::Lane;
    };
    match back {
        Back::Over(..) => binding.back = Some(conn),
        Back::Expected | Back::Elsewhere => {
            (binding.sent, binding.back) = (Some(now), None);
        }
    }
    let first = *packets == 0;
    *packets += u64::from(count);
    Path::Shortcut {
        conn,
        tag: binding.tag,
        first,
    }
}

fn open(key: Key, binding: &mut Binding, now: Instant, bus: &mut Bus) {
    let info = IngressInfo {
        egress: binding.egress,
        tag: binding.tag,
        mtu: binding.mtu,
        ..IngressInfo::unresolved(key, IpAddr::V4(Ipv4Addr::UNSPECIFIED))
    };
    if binding.conn.is_none() && binding.call.may(now) {
        binding.call = Call::Asked;
        let (info, qos) = (info.clone(), binding.qos);
        bus.daemon(ToDaemon::OpenIngressSvc { info, qos });
    }
    if let Some(spare) = &mut binding.spare
        && binding.conn.is_none()
        && spare.conn.is_none()
        && spare.call.may(now)
    {
        spare.call = Call::Asked;
        bus.daemon(ToDaemon::OpenIngressSvc { info, qos: None });
    }
}

/// Traces that a flow does not get the traffic of its QoS entry.
fn fall_back(key: &Key, qos: Option<Qos>, why: &str, bus: &mut Bus) {
    let Some(qos) = qos else { return };
    bus.counters.qos_fallbacks += 1;
    let text = format!(
        "best effort for {} in place of {}: {why}",
        name(key),
        qos.tx
    );
    let trace = Trace::milestone("mpc.qos.fallback", text).with("destination", key.1);
    bus.trace(match key.2 {
        Some(filter) => trace.with("entry", filter),
        None => trace,
    });
}
