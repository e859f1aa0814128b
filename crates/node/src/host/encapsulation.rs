//! How packets of a host cross the ATM network: by the user of their connection.
//!
//! The CPU takes the cost of a packet from it, and a packet whose cells met congestion is found by it: an IPv4 packet
//! gets the mark CE then, if its sender can hear of it. Packets of programs stay as they are. Standards: RFC 3168 §5;
//! the mark of the last cell counts (TM 4.0 §5.6). Not implemented: IPv6.

use super::{Host, ServiceKind};
use crate::encapsulation::Encapsulation;
use crate::ip::books::packet_in;
use aerostat_wire::Vc;
use aerostat_wire::ipv4::mark_congestion;

impl Host {
    /// How packets on this label cross the network; `None` if the label has no user.
    pub(in crate::host) fn encapsulation(&self, vc: Vc) -> Option<Encapsulation> {
        let (user, conn) = self.signalling.owner(vc)?;
        Some(match self.slots.get(usize::from(user.0))?.kind {
            ServiceKind::Lec | ServiceKind::Les | ServiceKind::Bus | ServiceKind::Lecs => {
                Encapsulation::Lane
            }
            ServiceKind::Mpc | ServiceKind::Mps => Encapsulation::Mpoa,
            ServiceKind::Clip | ServiceKind::Nhc => Encapsulation::ClassicalIp,
            ServiceKind::Line => Encapsulation::Line,
            ServiceKind::Sockets => match self.sockets()?.uses_atp(conn) {
                true => Encapsulation::Atp,
                false => Encapsulation::Native,
            },
        })
    }

    /// An SDU whose cells met congestion, with CE in its IPv4 packet; `None` if it has no packet whose sender can hear
    /// of it.
    pub(in crate::host) fn with_congestion(&self, vc: Vc, sdu: &[u8]) -> Option<Vec<u8>> {
        let packet = packet_in(sdu, self.encapsulation(vc)?)?;
        let from = sdu.len() - packet.len();
        let mut told = sdu.to_vec();
        mark_congestion(told.get_mut(from..)?).then_some(told)
    }
}
