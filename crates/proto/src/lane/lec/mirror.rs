//! Knowledge of a client's data half about a control part in another process: the state that `inspect` shows, and that
//! the next control part needs to continue.

use super::split::{KnownConn, KnownEntry, Standing};
use super::{ControlCounters, LecState};
use crate::{ConnId, Instant};
use aerostat_wire::MacAddr;
use std::collections::BTreeMap;

use super::control::Role;

/// The state that the control part reported last.
#[derive(Debug, Default)]
pub(super) struct Mirror {
    pub(super) standing: Option<Box<Standing>>,
    pub(super) conns: BTreeMap<ConnId, KnownConn>,
    /// Each entry has the time at which its binding was last verified.
    entries: BTreeMap<MacAddr, (KnownEntry, Instant)>,
    /// Counts that the control part reported, and counts of the data half on its behalf.
    pub(super) counters: ControlCounters,
}

impl Mirror {
    /// Forgets everything except the counters.
    pub(super) fn clear(&mut self) {
        *self = Self {
            counters: self.counters,
            ..Self::default()
        };
    }
    pub(super) fn state(&self) -> LecState {
        let standing = self.standing.as_ref();
        standing.map_or(LecState::Stopped, |standing| standing.state)
    }
    pub(super) fn lecid(&self) -> u16 {
        let standing = self.standing.as_ref();
        standing.map_or(0, |standing| standing.lecid)
    }
    pub(super) fn knows(&self, mac: &MacAddr) -> bool {
        self.entries.contains_key(mac)
    }
    pub(super) fn is_associated(&self, mac: &MacAddr) -> bool {
        self.entries.get(mac).is_some_and(|(row, _)| row.associated)
    }
    /// Stores an entry; false if `limit` entries are stored already.
    pub(super) fn keep(&mut self, row: KnownEntry, limit: usize, now: Instant) -> bool {
        let room = self.knows(&row.mac) || self.entries.len() < limit;
        if room {
            let verified = now.before(row.age);
            self.entries.insert(row.mac, (row, verified));
        }
        room
    }
    pub(super) fn forget(&mut self, mac: &MacAddr) {
        self.entries.remove(mac);
    }
    /// The entries, with their ages at `now`.
    pub(super) fn entries(&self, now: Instant) -> impl Iterator<Item = KnownEntry> {
        self.entries
            .values()
            .map(move |(row, verified)| KnownEntry {
                age: now.since(*verified),
                ..row.clone()
            })
    }

    fn count(&self, role: Role) -> usize {
        self.conns.values().filter(|row| row.role == role).count()
    }
    /// True if the client leaves its ELAN when this connection is lost.
    pub(super) fn is_essential(&self, conn: ConnId) -> bool {
        match self.conns.get(&conn).map(|row| row.role) {
            Some(Role::ControlDirect | Role::MulticastSend) => true,
            Some(Role::Distribute) => self.count(Role::Distribute) == 1,
            _ => false,
        }
    }
    /// True if the client has every connection that a member needs.
    pub(super) fn has_servers(&self) -> bool {
        let servers = [Role::ControlDirect, Role::Distribute, Role::MulticastSend];
        servers.into_iter().all(|role| self.count(role) > 0)
    }
    /// The connection to the BUS.
    pub(super) fn bus_conn(&self) -> Option<ConnId> {
        let mut all = self.conns.values();
        let bus = all.find(|row| row.role == Role::MulticastSend);
        bus.map(|row| row.conn)
    }
}
