//! Devices that a client keeps without having asked for them.
//!
//! LE_ARP tells the TLVs of a station that is asked for. Of the stations that announce themselves to all members (with
//! a targetless LE_ARP), a client keeps only MPOA servers: they are few, and they must be known before a frame goes to
//! them. Of the other stations a client keeps those that it asked for. So the rows of a client do not grow with the
//! members of its ELAN.
//!
//! Source: af-mpoa-0114 §4.2 (device discovery); LUNI 2.0 clause 7 (targetless LE_ARP).

use super::control::Control;
use aerostat_wire::lane::{Tlv, TlvType};

/// True if the TLVs tell the owner's device type. The owner may have other TLVs (LLC multiplexing) and become an MPOA
/// device later.
pub(super) fn is_device(tlvs: &[Tlv]) -> bool {
    tlvs.iter().any(|tlv| tlv.kind == TlvType::DEVICE_TYPE)
}

/// True if the TLVs are those of an MPOA server (device types 1 and 3).
pub(super) fn is_server(tlvs: &[Tlv]) -> bool {
    let device = tlvs.iter().find(|tlv| tlv.kind == TlvType::DEVICE_TYPE);
    device.is_some_and(|tlv| matches!(tlv.value.first(), Some(1 | 3)))
}

impl Control {
    /// True if these are the TLVs of a server and one more server may be kept without having been asked for.
    pub(super) fn takes_server(&mut self, tlvs: &[Tlv]) -> bool {
        if !is_server(tlvs) {
            return false;
        }
        let known = self.cache.values().filter(|entry| is_server(&entry.tlvs));
        let room = known.count() < self.config.limits.servers;
        if !room {
            self.counters.cache_full += 1;
        }
        room
    }
}
