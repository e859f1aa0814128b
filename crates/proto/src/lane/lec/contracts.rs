//! Contracts of a client's connections: of data direct connections, as configured; of multicast send, as the LECS says.
//!
//! **Data direct.** A client with a contract ([`LecConfig::data_traffic`]) asks for it in both directions whenever it
//! calls another client. If the network cannot give it, the client calls again at once and asks for best effort; it
//! asks such a peer for best effort only until [`LecParams::call_retry`](crate::lane::LecParams) has passed. A called
//! client takes whatever contract the caller asked for.
//!
//! **Multicast send** (C24 to C26). The LECS tells the type of the connection to the BUS, its average and its peak
//! rate; they hold in both directions. The size of a burst is not told: it is one frame of the largest size, as that of
//! IBM's servers (their MIB sets the maximum burst size to the largest frame). A client whose connection to the BUS is
//! refused for want of resources calls once more and asks for best effort; this does not count against C39. Values that
//! contradict each other are counted and traced, and mean best effort.
//!
//! **Standards.** LUNI 2.0 §5.1 (C24 to C26) and its TLVs. The numbers of the types of C24 on the wire are from memory,
//! since no text or capture with them was to be had: [`BEST_EFFORT`], [`VARIABLE`], [`CONSTANT`].
//!
//! **Not implemented.** The contract does not hold for selective multicast send connections.

use super::LecConfig;
use super::control::{Control, Role};
use crate::{Cause, Instant, Trace};
use aerostat_wire::lane::{Tlv, TlvType};
use aerostat_wire::{AtmAddress, Qos, Sap, ServiceCategory, TrafficParams};

/// C24: best effort. From memory.
pub const BEST_EFFORT: u16 = 0;
/// C24: variable bit rate. From memory.
pub const VARIABLE: u16 = 1;
/// C24: constant bit rate. From memory.
pub const CONSTANT: u16 = 2;

/// Causes with which a network refuses a contract, and not the call as such: rate, quality or bearer capability not
/// available, authorised or implemented. Source: UNI 3.1 §5.4.5.15, Q.2610, by number.
const fn lacks_resources(cause: Cause) -> bool {
    matches!(cause.0, 37 | 49 | 51 | 57 | 58 | 63 | 65 | 73)
}

/// The same traffic in both directions.
const fn both(traffic: TrafficParams, sdu: u16) -> Qos {
    let traffic = TrafficParams {
        max_sdu: sdu,
        ..traffic
    };
    Qos {
        tx: traffic,
        rx: traffic,
    }
}

/// C24 to C26 in the TLVs of a LECS: the traffic of the connection to the BUS, whose largest SDU this is; `None` is
/// best effort.
///
/// # Errors
/// What contradicts what, with the name and the offset of the TLV in the list.
pub fn multicast_send(tlvs: &[Tlv], sdu: u16) -> Result<Option<TrafficParams>, String> {
    let find = |kind: TlvType, length: usize| {
        let mut at = 0;
        for tlv in tlvs {
            if tlv.kind == kind {
                let whole = tlv.value.len() == length;
                let number = tlv.number().filter(|_| whole);
                let bad = || format!("{kind:?} at octet {at} has {} octets", tlv.value.len());
                return Ok(Some((number.ok_or_else(bad)?, at)));
            }
            // Type and length come before the value.
            at += 5 + tlv.value.len();
        }
        Ok::<_, String>(None)
    };
    let kind = find(TlvType::MULTICAST_SEND_TYPE, 2)?;
    let average = find(TlvType::MULTICAST_SEND_AVERAGE, 4)?;
    let peak = find(TlvType::MULTICAST_SEND_PEAK, 4)?;
    let Some((kind, kind_at)) = kind else {
        return match average.or(peak) {
            Some((_, at)) => Err(format!(
                "a rate of multicast send at octet {at} without its type"
            )),
            None => Ok(None),
        };
    };
    if kind == u32::from(BEST_EFFORT) {
        return Ok(None);
    }
    if kind != u32::from(VARIABLE) && kind != u32::from(CONSTANT) {
        return Err(format!(
            "multicast-send-vcc-type at octet {kind_at} is {kind}, which is no type"
        ));
    }
    let (Some((average, _)), Some((peak, peak_at))) = (average, peak) else {
        return Err(format!(
            "multicast-send-vcc-type at octet {kind_at} is {kind}, and a rate is missing"
        ));
    };
    if average == 0 || peak < average {
        return Err(format!(
            "multicast-send-peak-rate at octet {peak_at} is {peak}, and the average rate {average}"
        ));
    }
    if kind == u32::from(CONSTANT) {
        return match average == peak {
            true => Ok(Some(TrafficParams::cbr(peak, sdu))),
            false => Err(format!(
                "multicast-send-peak-rate at octet {peak_at} is {peak}, and the average rate {average} of a constant rate"
            )),
        };
    }
    Ok(Some(TrafficParams {
        category: Some(ServiceCategory::NrtVbr),
        max_pcr: Some(peak),
        scr: average,
        // Cells of an SDU with the trailer of AAL5.
        mbs: (u32::from(sdu) + 8).div_ceil(48),
        ..TrafficParams::cbr(peak, sdu)
    }))
}

impl LecConfig {
    /// Contract that a client asks for when it calls another one.
    pub(super) fn data_qos(&self, sdu: u16) -> Qos {
        self.data_traffic
            .map_or(Qos::ubr(sdu), |traffic| both(traffic, sdu))
    }
    /// True if the control part may ask for this traffic.
    pub(super) fn may_ask_for(&self, sap: Sap, qos: &Qos) -> bool {
        let sdu = qos.tx.max_sdu;
        let data = matches!(sap, Sap::LANE_DATA_ETHERNET | Sap::LLC);
        // The rates are those of the LECS, and the network decides about them.
        let reserved = || {
            let class = qos.tx.category;
            let class = matches!(class, Some(ServiceCategory::Cbr | ServiceCategory::NrtVbr));
            sap == Sap::LANE_MULTICAST_ETHERNET && class && qos.tx == qos.rx
        };
        *qos == Qos::ubr(sdu) || (data && *qos == self.data_qos(sdu)) || reserved()
    }
}

impl Control {
    /// The traffic of a call to `peer` for frames of this size; true if it is not best effort.
    pub(super) fn qos_for(
        &mut self,
        (peer, role): (AtmAddress, Role),
        sdu: u16,
        now: Instant,
    ) -> (Qos, bool) {
        let refused = self
            .best_effort
            .get(&peer)
            .is_some_and(|until| *until > now);
        let qos = match role {
            _ if refused => Qos::ubr(sdu),
            Role::DataDirect => self.config.data_qos(sdu),
            Role::MulticastSend => match multicast_send(self.state.lecs_tlvs(), sdu) {
                Ok(traffic) => traffic.map_or(Qos::ubr(sdu), |traffic| both(traffic, sdu)),
                Err(why) => {
                    self.counters.bad_contracts += 1;
                    self.trace(Trace::detail("lane.bad-multicast-send", why));
                    Qos::ubr(sdu)
                }
            },
            _ => Qos::ubr(sdu),
        };
        (qos, qos != Qos::ubr(sdu))
    }

    /// A call that asked for a contract was refused. True if the peer can be called for best effort at once, because
    /// only the contract was the reason.
    pub(super) fn contract_refused(
        &mut self,
        (peer, role): (AtmAddress, Role),
        cause: Cause,
        now: Instant,
    ) -> bool {
        if !lacks_resources(cause) {
            return false;
        }
        self.counters.contracts_refused += 1;
        let text = format!("no contract with {peer}: {cause}; best effort instead");
        self.trace(Trace::detail("lane.contract-refused", text).with("peer", peer));
        let most = self.config.limits.cache;
        if self.best_effort.len() >= most {
            self.best_effort.retain(|_, until| *until > now);
        }
        // The BUS is one peer more. Without room the peer is not called at once, but after a wait like any other.
        let room = self.best_effort.len() < most || role == Role::MulticastSend;
        if room {
            self.best_effort.insert(peer, now + self.params.call_retry);
        }
        room
    }
}
