//! Labels whose programs wait for the adapter: for room, or until the adapter has sent everything.

use crate::atm::Nic;
use aerostat_proto::Instant;
use aerostat_wire::Vc;
use std::collections::BTreeMap;

/// A label with a waiting program.
#[derive(Clone, Copy, Debug)]
struct Wait {
    /// When to check next; `None` means when the link comes up.
    look: Option<Instant>,
    /// True to wait for an empty queue, false to wait for room.
    empty: bool,
    /// How often the queue has been checked.
    looks: u32,
    /// Order of waiting: the smallest value is served first.
    since: u64,
}

/// All labels with waiting programs. There is at most one entry for each open VC of the adapter.
#[derive(Debug, Default)]
pub(in crate::host) struct Writers {
    waits: BTreeMap<Vc, Wait>,
    serial: u64,
}

impl Writers {
    /// A program found no room for a PDU.
    pub(in crate::host) fn full(&mut self, vc: Vc, nic: &mut Nic, now: Instant) {
        self.wait(vc, nic.room_at(vc, now), false, 0);
    }

    /// A program waits until no cell of its VC waits.
    pub(in crate::host) fn flush(&mut self, vc: Vc, nic: &mut Nic, now: Instant) {
        self.wait(vc, Some(nic.empty_at(vc, 0, now)), true, 0);
    }

    fn wait(&mut self, vc: Vc, look: Option<Instant>, empty: bool, looks: u32) {
        let since = self.serial;
        self.serial += 1;
        let wait = Wait {
            look,
            empty,
            looks,
            since,
        };
        self.waits.insert(vc, wait);
    }

    /// The VC was closed.
    pub(in crate::host) fn forget(&mut self, vc: Vc) {
        self.waits.remove(&vc);
    }

    /// The link came up: programs that waited for that are checked at once.
    pub(in crate::host) fn link_up(&mut self, now: Instant) {
        for wait in self.waits.values_mut() {
            wait.look.get_or_insert(now);
        }
    }

    /// The next label whose program can continue; the longest wait comes first.
    pub(in crate::host) fn due(&mut self, nic: &mut Nic, now: Instant) -> Option<Vc> {
        loop {
            let due = self.waits.iter();
            let due = due.filter(|(_, wait)| wait.look.is_some_and(|at| at <= now));
            let (&vc, &wait) = due.min_by_key(|(_, wait)| wait.since)?;
            self.waits.remove(&vc);
            let looks = wait.looks + 1;
            let again = nic.empty_at(vc, looks, now);
            if !wait.empty || again <= now {
                return Some(vc);
            }
            self.wait(vc, Some(again), true, looks);
        }
    }

    /// When to check next.
    pub(in crate::host) fn next(&self) -> Option<Instant> {
        self.waits.values().filter_map(|wait| wait.look).min()
    }
}
