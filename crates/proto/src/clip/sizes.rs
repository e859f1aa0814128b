//! Sizes of packets and SDUs: what both ends of a connection agree on, and what happens to packets that are too big.
//!
//! The caller offers SDUs with room for the MTU of its interface. The called member answers with less where its own
//! interface takes less (RFC 2225 §7.2, the AAL parameters of CONNECT). Each end then sends no larger packets on this
//! connection. A packet that is larger is cut into fragments if its sender allows that, and otherwise the sender is
//! told the size by ICMP (RFC 1191), so that path MTU discovery finds the size of a tunnel as it finds that of a
//! router.

use super::arp::is_host;
use super::{Clip, Encapsulation, LLC_LEN, Output};
use crate::discard::Discard;
use crate::{ConnId, Instant, Trace};
use aerostat_wire::Qos;
use aerostat_wire::fragments::{self, fragment, fragmentation_needed, must_stay_whole};
use aerostat_wire::ipv4::Ipv4View;
use std::net::Ipv4Addr;

/// Smallest packets that a connection must carry, octets.
pub(super) const LEAST_MTU: u16 = fragments::LEAST_MTU;

/// Octets in front of a packet.
const fn header(encapsulation: Encapsulation) -> u16 {
    match encapsulation {
        Encapsulation::Llc => LLC_LEN,
        Encapsulation::VcMux => 0,
    }
}

/// Octets of the SDU of a packet.
pub(super) const fn sdu_of(packet: u16, encapsulation: Encapsulation) -> u16 {
    packet.saturating_add(header(encapsulation))
}

/// The largest packet in SDUs of this size; `None` if IP cannot use such SDUs.
pub(super) fn packet_in(sdu: u16, encapsulation: Encapsulation) -> Option<u16> {
    let packet = sdu.checked_sub(header(encapsulation))?;
    (packet >= LEAST_MTU).then_some(packet)
}

impl Clip {
    /// The answer to an offered contract, whose SDUs have at most `most` octets; `None` if they are too small for IP.
    pub(super) fn answer_of(
        &self,
        offered: Qos,
        most: u16,
        encapsulation: Encapsulation,
    ) -> Option<Qos> {
        let mut answer = offered;
        for direction in [&mut answer.tx, &mut answer.rx] {
            // A caller that names no size takes what comes.
            if direction.category.is_some() && direction.max_sdu > 0 {
                direction.max_sdu = direction.max_sdu.min(most);
                packet_in(direction.max_sdu, encapsulation)?;
            }
        }
        Some(answer)
    }

    /// Both ends have agreed on this contract. False if it has no room for packets of IP.
    pub(super) fn agree(&mut self, conn: ConnId, qos: Qos) -> bool {
        let most = self.config.mtu;
        let Some(link) = self.conns.info(conn) else {
            return false;
        };
        let given = qos.tx.max_sdu;
        let fits = match given {
            0 => Some(most),
            given => packet_in(given, link.encapsulation),
        };
        let Some(mtu) = fits else {
            return false;
        };
        link.qos = qos;
        link.mtu = mtu.min(most);
        if link.mtu < most {
            let mtu = link.mtu;
            self.counters.mtu_lowered += 1;
            let text = format!(
                "packets of at most {mtu} octets on a connection: the other end takes no more"
            );
            self.trace(Trace::detail("clip.mtu", text).with("mtu", mtu));
        }
        true
    }

    /// A packet does not fit into the SDUs of its connection.
    pub(super) fn too_big(
        &mut self,
        conn: ConnId,
        (next_hop, mtu): (Ipv4Addr, u16),
        packet: &[u8],
        now: Instant,
    ) {
        if must_stay_whole(packet) {
            self.counters.too_big += 1;
            self.discards.note(Discard::BadLength, packet);
            // The next hop speaks, as a router there would: no host believes a message from itself.
            let destination = Ipv4View::new(packet).map(|view| view.destination());
            let from = Some(next_hop).filter(|hop| is_host(*hop)).or(destination);
            let told = from.and_then(|from| fragmentation_needed(packet, mtu, from));
            if let Some(packet) = told {
                self.out.push_back(Output::Deliver { packet, from: None });
            }
            return;
        }
        let Some(pieces) = fragment(packet, mtu) else {
            self.counters.too_long += 1;
            self.discards.note(Discard::BadLength, packet);
            return;
        };
        self.counters.sent += 1;
        self.counters.fragments += pieces.len() as u64;
        for piece in pieces {
            self.send_packet(conn, &piece, now);
        }
    }
}
