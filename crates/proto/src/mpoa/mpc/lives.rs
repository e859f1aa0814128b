//! The data plane when its daemon starts and ends: what it hands over, and what it forgets.

use super::api::Bus;
use super::data::DataPlane;
use super::egress::{Egress, EgressState};
use super::ingress::Ingress;
use crate::Instant;
use crate::mpoa::messages::{EgressInfo, ToDaemon};
use crate::mpoa::params::INITIAL_KEEP_ALIVE_LIFETIME;
use aerostat_wire::AtmAddress;
use aerostat_wire::mpoa::DeviceType;
use std::collections::BTreeSet;

impl DataPlane {
    /// The daemon has started: register the TLVs at the LECs, and tell the daemon what is known.
    pub(super) fn start(&mut self, control: AtmAddress, now: Instant, bus: &mut Bus) {
        self.control = Some(control);
        self.orphan_until = None;
        let device = DeviceType::Mpc { control };
        self.set_tlvs(bus, &[device.to_tlv()]);
        for (itf, lec) in &self.lecs {
            let all: BTreeSet<AtmAddress> = lec.macs.values().map(|mac| mac.mps).collect();
            for mps in all {
                bus.daemon(ToDaemon::SetMpsControlAddress { itf: *itf, mps });
            }
        }
        self.hand_over(now, bus);
    }

    /// A new daemon takes over the caches that its predecessor left, and finishes its purges.
    fn hand_over(&mut self, now: Instant, bus: &mut Bus) {
        let (ingress, egress) = (self.ingress.bound(), self.egress.entries.values());
        self.active = ingress
            .map(|info| info.mps)
            .chain(egress.map(|entry| entry.info.mps))
            .collect();
        for info in self.ingress.bound() {
            bus.daemon(ToDaemon::IngressEntry(info));
        }
        for entry in self.egress.entries.values() {
            let left = entry.expires.since(now).as_secs().clamp(1, u16::MAX.into());
            bus.daemon(ToDaemon::EgressEntry(EgressInfo {
                holding_s: left as u16,
                ..entry.info.clone()
            }));
            if entry.state != EgressState::Active {
                bus.daemon(ToDaemon::SendEgressPurge(entry.info.clone()));
            }
        }
    }

    /// The daemon died without a message, and its connections with it. All packets go by LANE. The contents of the
    /// caches are kept for the next daemon, as long as an MPS is trusted without a Keep-Alive.
    pub(super) fn orphan(&mut self, now: Instant, bus: &mut Bus) {
        if self.control.take().is_some() {
            self.set_tlvs(bus, &[]);
        }
        self.shortcuts.clear();
        self.returns.clear();
        self.active.clear();
        self.ingress.orphan();
        for entry in self.egress.entries.values_mut() {
            entry.conn = None;
        }
        self.orphan_until = None;
        if !(self.ingress.entries.is_empty() && self.egress.entries.is_empty()) {
            self.orphan_until = Some(now + INITIAL_KEEP_ALIVE_LIFETIME);
            self.note(self.orphan_until);
        }
    }

    /// The daemon has ended regularly.
    pub(super) fn reset(&mut self, bus: &mut Bus) {
        if self.control.take().is_some() {
            self.set_tlvs(bus, &[]);
        }
        self.ingress = Ingress::default();
        self.egress = Egress::default();
        self.shortcuts.clear();
        self.returns.clear();
        self.active.clear();
        self.orphan_until = None;
        self.wake = None;
    }
}
