//! Labels whose programs wait for the adapter: for room, or until nothing waits there.

use crate::atm::Nic;
use aerostat_proto::Instant;
use aerostat_wire::Vc;
use std::collections::BTreeMap;

/// A label that is waited for.
#[derive(Clone, Copy, Debug)]
struct Wait {
    /// When to look next; `None`: when the link comes up.
    look: Option<Instant>,
    /// For an empty queue; otherwise for room.
    empty: bool,
    /// How often the queue was looked at.
    looks: u32,
    /// Who waits longer is served first.
    since: u64,
}

/// All labels that are waited for. At most one entry for each open VC of the adapter.
#[derive(Debug, Default)]
pub(super) struct Writers {
    waits: BTreeMap<Vc, Wait>,
    serial: u64,
}

impl Writers {
    /// There was no room for a PDU.
    pub(super) fn full(&mut self, vc: Vc, nic: &mut Nic, now: Instant) {
        self.wait(vc, nic.room_at(vc, now), false, 0);
    }

    /// The program waits until nothing of its VC waits.
    pub(super) fn flush(&mut self, vc: Vc, nic: &mut Nic, now: Instant) {
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

    /// The VC is closed.
    pub(super) fn forget(&mut self, vc: Vc) {
        self.waits.remove(&vc);
    }

    /// The link came up: who waited for that looks at once.
    pub(super) fn link_up(&mut self, now: Instant) {
        for wait in self.waits.values_mut() {
            wait.look.get_or_insert(now);
        }
    }

    /// The next label whose program can go on; who waits longest comes first.
    pub(super) fn due(&mut self, nic: &mut Nic, now: Instant) -> Option<Vc> {
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

    /// When to look next.
    pub(super) fn next(&self) -> Option<Instant> {
        self.waits.values().filter_map(|wait| wait.look).min()
    }
}
