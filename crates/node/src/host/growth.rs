//! Parts that are added to a host while it runs, replaced or removed.

use super::Host;
use super::service::ServiceKind;
use aerostat_proto::Instant;
use aerostat_wire::AtmAddress;

impl Host {
    /// Adds parts to a host that runs, as its builder adds them before the start, and starts them. MPOA turns itself on
    /// at its own time.
    pub fn grow(&mut self, add: impl FnOnce(&mut Self), now: Instant) {
        let (first, had_mpoa) = (self.slots.len(), self.mpc.is_some() || self.mps.is_some());
        add(self);
        // Without a client or server, MPOA may have been turned on for nothing.
        self.mpoa &= had_mpoa;
        for slot in first..self.slots.len() {
            if !matches!(self.slots[slot].kind, ServiceKind::Mpc | ServiceKind::Mps) {
                self.start_slot(slot, now);
            }
        }
        self.settle(now);
    }

    /// Replaces the services of a kind by those that `add` adds; they start with empty state.
    pub fn replace(&mut self, kind: ServiceKind, add: impl FnOnce(&mut Self), now: Instant) {
        self.for_each_of(kind, now, Self::retire_slot);
        self.grow(add, now);
    }

    /// Removes the servers of the ELAN whose LES has this address: its members lose their connections to them.
    pub fn retire_elan(&mut self, les: AtmAddress, now: Instant) {
        let elans = self.elans.iter().filter(|elan| elan.address == les);
        let slots: Vec<usize> = elans.flat_map(|elan| elan.slots()).collect();
        for slot in slots {
            self.retire_slot(slot, now);
        }
        self.settle(now);
        self.elans.retain(|elan| elan.address != les);
    }

    fn retire_slot(&mut self, slot: usize, now: Instant) {
        self.crash_slot(slot, now);
        self.slots[slot].retired = true;
    }
}
