//! The clients that registered unicast addresses.

use crate::lane::Member;
use aerostat_wire::{AtmAddress, MacAddr};
use std::collections::BTreeMap;

/// Owners of unicast addresses, as named by the LES.
pub(super) struct Owners {
    by_mac: BTreeMap<MacAddr, AtmAddress>,
    /// Largest number of addresses of one client.
    limit: usize,
}

impl Owners {
    pub(super) const fn new(limit: usize) -> Self {
        Self {
            by_mac: BTreeMap::new(),
            limit,
        }
    }
    pub(super) fn of(&self, mac: MacAddr) -> Option<AtmAddress> {
        self.by_mac.get(&mac).copied()
    }
    /// The registered addresses of a client have changed.
    pub(super) fn change(
        &mut self,
        client: AtmAddress,
        before: Option<&Member>,
        after: Option<&Member>,
    ) {
        for mac in macs(before) {
            // The address is removed unless another client has registered it since.
            if self.by_mac.get(mac) == Some(&client) {
                self.by_mac.remove(mac);
            }
        }
        for mac in macs(after).take(self.limit) {
            self.by_mac.insert(*mac, client);
        }
    }
    pub(super) fn clear(&mut self) {
        self.by_mac.clear();
    }
}

fn macs(member: Option<&Member>) -> impl Iterator<Item = &MacAddr> {
    member
        .and_then(|member| member.macs.as_ref())
        .into_iter()
        .flatten()
}
