//! The server's data plane: packets of shortcuts that end here, and the flows that the router forwards.

use super::{Counters, MpsConfig};
use crate::discard::{Discard, Discards};
use crate::{Deadlines, Duration, Instant};
use aerostat_wire::ipv4::Ipv4View;
use aerostat_wire::ipv6::Ipv6View;
use aerostat_wire::mpoa::ShortcutSdu;
use std::net::IpAddr;

/// How long no second trigger for a flow is sent: MPC-p6, the client's own hold-down.
const TRIGGER_PAUSE: Duration = Duration::from_secs(160);

/// How long the daemon is not asked again about a flow that needed no trigger. Without this pause it would be asked
/// with each packet of the flow.
const SERVED_PAUSE: Duration = Duration::from_secs(1);

/// Source and destination.
pub(super) type Flow = (IpAddr, IpAddr);

/// The flows for which the daemon was asked for a trigger a short time ago.
#[derive(Debug, Default)]
pub(super) struct Flows {
    until: Deadlines<Flow>,
}

impl Flows {
    /// The flow of a packet that came in on interface `itf`, if the daemon is to hear of the flow.
    ///
    /// Only flows that start on this ELAN are meant: packets from other routers are a matter for the servers before
    /// this one.
    pub(super) fn meets(
        &mut self,
        (itf, packet): (u32, &[u8]),
        config: &MpsConfig,
        counters: &mut Counters,
        now: Instant,
    ) -> Option<Flow> {
        let ip = Ipv4View::new(packet).filter(|_| config.trigger)?;
        let (source, target) = (IpAddr::from(ip.source()), IpAddr::from(ip.destination()));
        let local = config.interface(itf)?.covers(source);
        let flow = (source, target);
        if !local || self.until.at(&flow).is_some() || target.is_multicast() {
            return None;
        }
        if self.until.len() >= config.limits.devices {
            counters.limits_met += 1;
            return None;
        }
        self.until.set(flow, Some(now + TRIGGER_PAUSE));
        Some(flow)
    }
    /// The flow needs no trigger now: the daemon may be asked about it again after a short pause.
    pub(super) fn served(&mut self, flow: Flow, now: Instant) {
        if let Some(until) = self.until.at(&flow) {
            self.until.set(flow, Some(until.min(now + SERVED_PAUSE)));
        }
    }
    pub(super) fn expire(&mut self, now: Instant) {
        for flow in self.until.due(now) {
            self.until.set(flow, None);
        }
    }
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.until.next()
    }
    pub(super) fn clear(&mut self) {
        self.until.clear();
    }
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.until.is_empty()
    }
}

/// The packet in an SDU of a shortcut that ends here: it is for the router.
pub(super) fn packet<'a>(
    sdu: &'a [u8],
    counters: &mut Counters,
    discards: &mut Discards,
) -> Option<&'a [u8]> {
    let packet = match ShortcutSdu::of(sdu) {
        ShortcutSdu::Tagged { packet, .. } | ShortcutSdu::Routed(packet) => {
            let four = Ipv4View::new(packet).map(|ip| ip.packet());
            four.or_else(|| Ipv6View::new(packet).map(|ip| ip.packet()))
        }
        ShortcutSdu::Control(_) => {
            counters.unexpected += 1;
            return None;
        }
        ShortcutSdu::Unknown => None,
    };
    match packet {
        Some(packet) => {
            counters.shortcut_packets += 1;
            counters.shortcut_octets += packet.len() as u64;
        }
        None => {
            counters.malformed += 1;
            discards.note(Discard::Malformed, sdu);
        }
    }
    packet
}
