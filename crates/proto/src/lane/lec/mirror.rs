//! What a client's data half knows of a control part in another process: as much as `inspect` shows, and as the next
//! one needs to go on.

use super::split::{KnownConn, KnownEntry, Standing};
use super::{ControlCounters, LecState};
use crate::{ConnId, Instant};
use aerostat_wire::MacAddr;
use std::collections::BTreeMap;

use super::control::Role;

/// What the control part told last.
#[derive(Debug, Default)]
pub(super) struct Mirror {
    pub(super) standing: Option<Box<Standing>>,
    pub(super) conns: BTreeMap<ConnId, KnownConn>,
    /// With the time at which the binding was last verified.
    entries: BTreeMap<MacAddr, (KnownEntry, Instant)>,
    /// What it counted, and what was counted for it here.
    pub(super) counters: ControlCounters,
}

impl Mirror {
    /// Forgets all but what was counted.
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
    pub(super) fn knows(&self, mac: &MacAddr) -> bool {
        self.entries.contains_key(mac)
    }
    pub(super) fn is_associated(&self, mac: &MacAddr) -> bool {
        self.entries.get(mac).is_some_and(|(row, _)| row.associated)
    }
    /// Keeps an entry, if there is room for it among so many.
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
    /// The entries, as old as they are at `now`.
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
    /// True if it has every connection that a member has.
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
