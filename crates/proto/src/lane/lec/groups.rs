//! Group addresses: the groups whose frames this client wants, and where frames that it sends to a group go.
//!
//! Source: LUNI 2.0 clauses 6, 7 (selective multicast).

use super::LecConfig;
use super::arp::Path;
use super::conns::Conn;
use super::control::{Control, Role};
use super::messages::ToData;
use crate::lane::LecLimits;
use crate::{Cause, ConnId, Instant, Trace};
use aerostat_wire::MacAddr;
use aerostat_wire::lane::{ControlFrame, LanDestination, OpCode, Status};
use std::collections::BTreeSet;

/// Largest number of selective multicast servers that are called.
const MAX_SERVERS: usize = 16;

/// Group addresses among `macs`, without broadcast, `limit` at most.
pub(super) fn some(macs: &[MacAddr], limit: usize) -> BTreeSet<MacAddr> {
    let group = |mac: &&MacAddr| mac.is_group() && **mac != MacAddr::BROADCAST;
    macs.iter().filter(group).take(limit).copied().collect()
}
/// The groups among `macs` that a client may want.
pub(super) fn wanted(config: &LecConfig, macs: &[MacAddr]) -> BTreeSet<MacAddr> {
    some(macs, config.limits.groups)
}

/// C15, and which of its groups are registered at the LES.
pub(super) struct Groups {
    wanted: BTreeSet<MacAddr>,
    registered: BTreeSet<MacAddr>,
    /// The LES refused a group: the client wants all frames until it is started again.
    refused: bool,
}

impl Groups {
    pub(super) fn new(config: &LecConfig) -> Self {
        Self {
            wanted: wanted(config, &config.groups),
            registered: BTreeSet::new(),
            refused: false,
        }
    }
    /// How many groups the LES knows.
    pub(super) fn registered(&self) -> usize {
        self.registered.len()
    }
    /// The groups that the LES knows, for another control part; `None` if the LES refused a group.
    pub(super) fn standing(&self) -> Option<Vec<MacAddr>> {
        (!self.refused).then(|| self.registered.iter().copied().collect())
    }
    pub(super) fn stand(&mut self, registered: Option<Vec<MacAddr>>, limits: &LecLimits) {
        self.refused = registered.is_none();
        // A group that is no longer wanted may still be registered.
        let most = limits.groups.saturating_mul(2);
        self.registered = some(&registered.unwrap_or_default(), most);
    }
    pub(super) fn start(&mut self) {
        self.refused = false;
    }
    /// The client is no member any more.
    pub(super) fn forget(&mut self) {
        self.registered.clear();
    }
}

impl LecConfig {
    /// C15 from now on.
    pub(super) fn want_groups(&mut self, macs: &[MacAddr]) {
        self.groups = wanted(self, macs).into_iter().collect();
    }
}

impl Control {
    // ---- groups wanted ----

    /// C32: whether the LES is to be told of the wanted groups.
    pub(super) const fn wants_selective(&self) -> bool {
        self.config.selective && !self.config.proxy && self.config.v2 && !self.groups.refused
    }

    pub(super) fn set_groups(&mut self, macs: &[MacAddr], now: Instant) {
        self.config.want_groups(macs);
        self.groups.wanted = wanted(&self.config, macs);
        if self.state.is_operational() && self.pending.is_none() {
            self.register_next(now);
        }
    }

    /// Registers the next group, or unregisters the next one; false if there is nothing to register.
    pub(super) fn register_group(&mut self, conn: ConnId, now: Instant) -> bool {
        if !self.state.v2() || !self.wants_selective() {
            return false;
        }
        let groups = &self.groups;
        let fresh = groups.wanted.difference(&groups.registered).next();
        let old = || groups.registered.difference(&groups.wanted).next();
        let (op, mac) = match (fresh, old()) {
            (Some(mac), _) => (OpCode::REGISTER, *mac),
            (None, Some(mac)) => (OpCode::UNREGISTER, *mac),
            (None, None) => return false,
        };
        let mut frame = self.frame(op);
        frame.source = LanDestination::mac(mac);
        self.ask(conn, frame, now);
        true
    }

    /// The group that the pending request is about.
    pub(super) fn pending_group(&self) -> Option<MacAddr> {
        let frame = &self.pending.as_ref()?.frame;
        let about = matches!(frame.op, OpCode::REGISTER | OpCode::UNREGISTER);
        frame.source.as_mac().filter(|mac| about && mac.is_group())
    }

    pub(super) fn group_answered(&mut self, mac: MacAddr, frame: &ControlFrame, now: Instant) {
        let register = frame.op == OpCode::REGISTER.response();
        if register && frame.status != Status::SUCCESS {
            // To receive all frames is better than to receive none of this group.
            self.groups.refused = true;
            let why = format!("the LES refuses group {mac}: {}", frame.status);
            return self.fail(&why, now);
        }
        if register {
            self.groups.registered.insert(mac);
        } else {
            self.groups.registered.remove(&mac);
        }
        self.register_next(now);
    }

    // ---- groups sent to ----

    /// The server of a group is known: the BUS, which carries its frames already, or another server.
    pub(super) fn connect_group(&mut self, mac: MacAddr, now: Instant) {
        let Some(entry) = self.cache.get(&mac) else {
            return;
        };
        let Some(server) = entry
            .atm
            .filter(|atm| entry.wanted && *atm != self.state.bus())
        else {
            return;
        };
        match entry.path {
            Path::Direct(_) | Path::Switching | Path::Flushing { .. } => return,
            Path::Refused(until) if until > now => return,
            Path::None | Path::Calling | Path::Refused(_) => {}
        }
        let mut conns = self.conns.with(server);
        let found = conns.find(|(_, conn)| conn.carries() == Role::SelectiveSend);
        let found = found.map(|(to, conn)| (to, conn.is_open()));
        drop(conns);
        let next = match found {
            Some((to, true)) => {
                let fresh = self.params.path_switching_delay;
                self.to_data.push_back(ToData::Switch { mac, to, fresh });
                Path::Switching
            }
            Some(_) => Path::Calling,
            None if self.count(Role::SelectiveSend) >= MAX_SERVERS => return,
            None => {
                self.call(server, Role::SelectiveSend, now);
                Path::Calling
            }
        };
        if let Some(entry) = self.cache.get_mut(&mac) {
            entry.path = next;
        }
    }

    pub(super) fn group_connected(&mut self, conn: ConnId, now: Instant) {
        let Some(server) = self.conns.get(conn).map(Conn::peer) else {
            return;
        };
        let idle = Some(self.params.vcc_timeout).filter(|idle| !idle.is_zero());
        let mux = None;
        self.to_data.push_back(ToData::Open { conn, idle, mux });
        let text = format!("connection with the selective multicast server {server}");
        self.trace(Trace::detail("lane.selective-up", text).with("peer", server));
        for mac in self.groups_of(server) {
            self.connect_group(mac, now);
        }
    }

    /// The connection with a selective multicast server is gone, or could not be opened: the BUS carries its groups.
    pub(super) fn group_released(&mut self, gone: &Conn, cause: Cause, now: Instant) {
        let until = now + self.wait_to_call(gone.peer(), cause);
        for mac in self.groups_of(gone.peer()) {
            if gone.is_open() {
                self.lose_path(mac);
            } else if let Some(entry) = self.cache.get_mut(&mac) {
                entry.path = Path::Refused(until);
            }
        }
    }

    fn groups_of(&mut self, server: aerostat_wire::AtmAddress) -> Vec<MacAddr> {
        let mut all = self.cache.of(server);
        all.retain(|mac| mac.is_group());
        all
    }
}
