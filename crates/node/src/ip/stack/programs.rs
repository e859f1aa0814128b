//! The programs of a host, and which of them have to run.
//!
//! A program runs when it is due, or has news of the network. So thousands of programs that wait cost nothing.

use crate::ip::apps::{App, AppId, AppResult};
use crate::ip::icmp::Echo;
use crate::ip::stack::news::News;
use aerostat_proto::Instant;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// A program, and when it is due.
struct Entry {
    app: App,
    due: Option<Instant>,
}

/// The programs of a host, by number.
#[derive(Default)]
pub(super) struct Programs {
    all: BTreeMap<AppId, Entry>,
    /// The times of `due` in order.
    order: BTreeSet<(Instant, AppId)>,
}

impl Programs {
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn get(&self, id: AppId) -> Option<&App> {
        self.all.get(&id).map(|entry| &entry.app)
    }

    /// Adds a program with a new number.
    pub(super) fn insert(&mut self, id: AppId, app: App) {
        self.all.insert(id, Entry { app, due: None });
        self.update(id);
    }

    /// Removes a program that has ended.
    pub(super) fn remove(&mut self, id: AppId) {
        if let Some(entry) = self.all.remove(&id) {
            entry.due.map(|due| self.order.remove(&(due, id)));
        }
    }

    /// Changes a program. `None` means that no program has this number.
    pub(super) fn change<T>(&mut self, id: AppId, change: impl FnOnce(&mut App) -> T) -> Option<T> {
        let changed = change(&mut self.all.get_mut(&id)?.app);
        self.update(id);
        Some(changed)
    }

    /// Gives the reply to an echo request to a program.
    pub(super) fn hear_echo(&mut self, id: AppId, echo: &Echo<'_>, from: Ipv4Addr, now: Instant) {
        if let Some(entry) = self.all.get_mut(&id) {
            entry.app.hear_echo(echo, from, now);
        }
    }

    /// Gives a datagram to a program.
    pub(super) fn hear(&mut self, id: AppId, payload: &[u8], from: (Ipv4Addr, u16), now: Instant) {
        if let Some(entry) = self.all.get_mut(&id) {
            entry.app.hear(payload, from, now);
        }
    }

    /// Adds the programs that are due.
    pub(super) fn take_due(&self, into: &mut News<AppId>, now: Instant) {
        let due = self.order.iter().take_while(|(due, _)| *due <= now);
        into.extend(due.map(|(_, id)| *id));
    }

    /// When the next program is due.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.order.first().map(|(due, _)| *due)
    }

    /// The results of all programs so far.
    pub(super) fn results(&self) -> impl Iterator<Item = (AppId, AppResult)> {
        let all = self.all.iter();
        all.map(|(id, entry)| (*id, entry.app.result()))
    }

    fn update(&mut self, id: AppId) {
        let Some(entry) = self.all.get_mut(&id) else {
            return;
        };
        let due = entry.app.deadline();
        let before = std::mem::replace(&mut entry.due, due);
        if before != due {
            before.map(|before| self.order.remove(&(before, id)));
            self.order.extend(due.map(|due| (due, id)));
        }
    }
}
