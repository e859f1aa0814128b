//! The ELANs of an MPOA client: their interfaces, and the MAC addresses of their servers.

use super::DataPlane;
use crate::mpoa::messages::ToDaemon;
use crate::mpoa::mpc::api::{Bus, Output};
use crate::mpoa::mpc::egress;
use crate::{Instant, Trace};
use aerostat_wire::lane::Tlv;
use aerostat_wire::mpoa::DeviceType;
use aerostat_wire::{AtmAddress, MacAddr};
use std::collections::{BTreeMap, BTreeSet};

/// A MAC address of an MPS on one interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::mpoa::mpc) struct MpsMac {
    pub(in crate::mpoa::mpc) mps: AtmAddress,
    /// True if the TLV of this MAC address itself, or the configuration, names the MPS; false if the TLV of another MAC
    /// address lists this one.
    pub(super) own: bool,
    /// The information from LE_ARP has aged out: no new flows start, but shortcuts stay.
    pub(in crate::mpoa::mpc) stale: bool,
}

/// A LANE interface.
#[derive(Debug, Default)]
pub(in crate::mpoa::mpc) struct Lec {
    pub(in crate::mpoa::mpc) up: bool,
    pub(in crate::mpoa::mpc) macs: BTreeMap<MacAddr, MpsMac>,
}

impl Lec {
    /// True if one more MAC address of an MPS may be stored; an address that is only listed gives way to an address
    /// with a TLV of its own.
    pub(super) fn has_room(&mut self, limit: usize, own: bool) -> bool {
        if self.macs.len() < limit {
            return true;
        }
        let listed = self.macs.iter().find(|(_, known)| own && !known.own);
        let victim = listed.map(|(mac, _)| *mac);
        victim.is_some_and(|mac| self.macs.remove(&mac).is_some())
    }
}

impl DataPlane {
    /// True for a LAN emulation client of this host.
    pub(in crate::mpoa::mpc) fn has_interface(&self, itf: usize) -> bool {
        self.itfs.contains(&itf) || self.lecs.contains_key(&itf)
    }

    pub(in crate::mpoa::mpc) fn set_tlvs(&self, bus: &mut Bus, tlvs: &[Tlv]) {
        let itfs: BTreeSet<usize> = self.itfs.iter().chain(self.lecs.keys()).copied().collect();
        for itf in itfs {
            bus.out.push_back(Output::SetTlvs {
                itf,
                tlvs: tlvs.to_vec(),
            });
        }
    }

    /// The LEC has joined.
    pub(in crate::mpoa::mpc) fn lec_up(&mut self, itf: usize, bus: &mut Bus) {
        let told = self.has_interface(itf);
        self.lecs.entry(itf).or_default().up = true;
        if let Some(control) = self.control.filter(|_| !told) {
            let device = DeviceType::Mpc { control };
            let tlvs = vec![device.to_tlv()];
            bus.out.push_back(Output::SetTlvs { itf, tlvs });
        }
    }

    /// The LEC has left: no frame arrives from its ELAN and no MPS is reached through it.
    pub(in crate::mpoa::mpc) fn lec_down(&mut self, itf: usize, now: Instant, bus: &mut Bus) {
        let Some(lec) = self.lecs.get_mut(&itf) else {
            return;
        };
        lec.up = false;
        lec.macs.clear();
        self.purge_egress(bus, |entry| entry.info.itf == itf);
        self.forget_unreachable(now, bus);
    }

    /// LE_ARP found the owner of `mac`.
    pub(in crate::mpoa::mpc) fn associate(
        &mut self,
        itf: usize,
        mac: MacAddr,
        tlvs: &[Tlv],
        now: Instant,
        bus: &mut Bus,
    ) {
        let Some(device) = DeviceType::find(tlvs) else {
            // Devices may leave the TLV out; the known information stays, and is valid again.
            if let Some(known) = self
                .lecs
                .get_mut(&itf)
                .and_then(|lec| lec.macs.get_mut(&mac))
            {
                known.stale = false;
            }
            return;
        };
        let Ok(device) = device else {
            bus.counters.malformed += 1;
            return;
        };
        match device.mps(Some(mac)) {
            Some((mps, macs)) => {
                for listed in macs {
                    self.learn(itf, (listed, listed == mac), mps, now, bus);
                }
            }
            None => {
                let lec = self.lecs.entry(itf).or_default();
                if lec.macs.remove(&mac).is_some() {
                    self.forget_unreachable(now, bus);
                }
            }
        }
    }

    /// The LE_ARP information about `mac` has aged out.
    pub(in crate::mpoa::mpc) fn dissociate(&mut self, itf: usize, mac: MacAddr) {
        if let Some(known) = self
            .lecs
            .get_mut(&itf)
            .and_then(|lec| lec.macs.get_mut(&mac))
        {
            known.stale = true;
        }
    }

    /// A station is behind another bridge now: packets that arrive for it over shortcuts must go through the routers
    /// again.
    pub(in crate::mpoa::mpc) fn station_left(&mut self, itf: usize, mac: MacAddr, bus: &mut Bus) {
        let to = |entry: &egress::Entry| entry.info.header.starts_with(&mac.0);
        self.purge_egress(bus, |entry| entry.info.itf == itf && to(entry));
    }

    /// A MAC address belongs to an MPS: its own TLV says so (`own`), or the TLV of another MAC address. The TLV of the
    /// address itself has precedence over such lists: the LES guarantees the owner of the one address, but not of the
    /// listed ones.
    pub(super) fn learn(
        &mut self,
        itf: usize,
        (mac, own): (MacAddr, bool),
        mps: AtmAddress,
        now: Instant,
        bus: &mut Bus,
    ) {
        let limit = self.limits.mps;
        let lec = self.lecs.entry(itf).or_default();
        let known = lec.macs.get(&mac).copied();
        let stands = |known: MpsMac| known.own && !own && known.mps != mps;
        if known.is_some_and(stands) || known.is_none() && !lec.has_room(limit, own) {
            bus.counters.mps_limit += 1;
            return;
        }
        let own = own || known.is_some_and(|known| known.own && known.mps == mps);
        let new = !lec.macs.values().any(|known| known.mps == mps);
        let stale = false;
        let old = lec.macs.insert(mac, MpsMac { mps, own, stale });
        if new {
            let text = format!("lec{itf}: {mac} is the MPS {mps}");
            bus.trace(
                Trace::milestone("mpc.mps.discovered", text)
                    .with("itf", itf)
                    .with("mac", mac)
                    .with("mps", mps),
            );
            bus.daemon(ToDaemon::SetMpsControlAddress { itf, mps });
        }
        if old.is_some_and(|old| old.mps != mps) {
            self.forget_unreachable(now, bus);
        }
    }

    /// Removes the ingress entries of MPSs that have no MAC address any more.
    fn forget_unreachable(&mut self, now: Instant, bus: &mut Bus) {
        let macs = self.lecs.values().flat_map(|lec| lec.macs.values());
        let reachable: BTreeSet<AtmAddress> = macs.map(|mac| mac.mps).collect();
        self.ingress.remove(|key, _| !reachable.contains(&key.0));
        self.collect(now, bus);
    }
}
