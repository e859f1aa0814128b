//! Packets that are marked at their entrance, and followed over all links.
//!
//! The entrance of a packet is the link on which an end system of the lab sends it first, or on which it comes in from
//! outside. Of the packets that a client wants, one in N is marked. It is known by its headers
//! ([`identify`]), so nothing is put into it, and routers and LANE servers need not know of it.
//!
//! **Bounds.** The latest [`MOST`] marked packets are known; the steps of older ones are not told any more.

use crate::capture::End;
use aerostat_lab::model::{Lab, NodeId, NodeKind};
use aerostat_lab::way::{Act, Step};
use aerostat_node::atm::DropReason;
use aerostat_node::ip::books::{Identity, identify};
use aerostat_node::ip::meter::Protocol;
use aerostat_proto::Instant;
use aerostat_wire::pcapng::Direction;
use aerostat_wire::{Vc, counted};
use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;

/// Limit of marked packets that are known.
const MOST: usize = 1024;

/// Packets that a client wants.
#[derive(Clone, Debug)]
pub(crate) struct Marking {
    /// Source addresses; an empty list means all.
    pub(crate) from: Vec<Ipv4Addr>,
    /// Destination addresses; an empty list means all.
    pub(crate) to: Vec<Ipv4Addr>,
    /// One in so many is marked; at least 1.
    pub(crate) one_in: u64,
}

/// A marked packet.
#[derive(Clone, Copy, Debug)]
struct Marked {
    number: u64,
    entrance: End,
}

/// Marked packets of a client.
#[derive(Debug)]
pub(crate) struct Marks {
    marking: Marking,
    /// Packets at their entrances so far.
    count: u64,
    /// Number of the latest marked one.
    number: u64,
    known: BTreeMap<Identity, Marked>,
    /// The same, oldest first. A packet that is marked again stands here twice.
    order: VecDeque<(u64, Identity)>,
}

impl Marks {
    pub(crate) fn new(marking: Marking) -> Self {
        Self {
            marking,
            count: 0,
            number: 0,
            known: BTreeMap::new(),
            order: VecDeque::new(),
        }
    }

    /// The step of a marked packet that passes an end of a link, or is dropped there.
    pub(crate) fn step(
        &mut self,
        lab: &Lab,
        (end, direction): (End, Direction),
        (vc, sdu): (Vc, &[u8]),
        dropped: Option<DropReason>,
        now: Instant,
    ) -> Option<Step> {
        let packet = identify(sdu)?;
        let link = lab.link(end.link);
        let [here, there] = [end.side, 1 - end.side].map(|side| link.ends[side].node);
        let is_outside = |id: NodeId| matches!(lab.node(id).kind, NodeKind::Outside(_));
        let enters = match direction {
            Direction::Sent => matches!(lab.node(here).kind, NodeKind::Host(_)),
            Direction::Received => is_outside(there),
        };
        let known = self.known.get(&packet).copied();
        // An end system that forwards a packet, such as a bridge, is not its entrance.
        let enters = enters && known.is_none_or(|known| known.entrance == end && dropped.is_none());
        let marked = match enters {
            true => self.mark(packet, end)?,
            false => known?,
        };
        let act = match (direction, dropped) {
            (_, Some(_)) => Act::Dropped,
            (Direction::Sent, None) => Act::Sent,
            (Direction::Received, None) => Act::Received,
        };
        let arrives = lab.addresses_of(here).any(|own| own == packet.ends.1);
        let leaves = act == Act::Sent && is_outside(there);
        Some(Step {
            packet: marked.number,
            t: now.as_nanos(),
            act,
            node: lab.node(here).name.clone(),
            kind: (&lab.node(here).kind).into(),
            link: link.name.clone(),
            peer: lab.node(there).name.clone(),
            vc: vc.to_string(),
            octets: sdu.len() as u64,
            why: dropped.map(|reason| reason.name().to_owned()),
            text: enters.then(|| text(&packet)),
            last: leaves || act == Act::Received && arrives,
        })
    }

    /// Counts a packet at its entrance; it is marked if its turn has come.
    fn mark(&mut self, packet: Identity, entrance: End) -> Option<Marked> {
        let wanted = |addresses: &[Ipv4Addr], own| addresses.is_empty() || addresses.contains(&own);
        let (from, to) = packet.ends;
        if !wanted(&self.marking.from, from) || !wanted(&self.marking.to, to) {
            return None;
        }
        self.count += 1;
        if !(self.count - 1).is_multiple_of(self.marking.one_in) {
            // A packet with the same headers is another one now.
            self.known.remove(&packet);
            return None;
        }
        self.number += 1;
        let marked = Marked {
            number: self.number,
            entrance,
        };
        self.known.insert(packet, marked);
        self.order.push_back((marked.number, packet));
        if self.order.len() > MOST
            && let Some((number, oldest)) = self.order.pop_front()
            && self
                .known
                .get(&oldest)
                .is_some_and(|known| known.number == number)
        {
            self.known.remove(&oldest);
        }
        Some(marked)
    }
}

/// A packet in words.
fn text(packet: &Identity) -> String {
    let (from, to) = packet.ends;
    let (source, destination) = packet.ports;
    let ends = match (packet.protocol, packet.answer) {
        (Protocol::Icmp, false) => format!("echo request {from} > {to}"),
        (Protocol::Icmp, true) => format!("echo reply {from} > {to}"),
        (Protocol::Tcp, _) => format!("tcp {from}:{source} > {to}:{destination}"),
        (Protocol::Udp, _) => format!("udp {from}:{source} > {to}:{destination}"),
    };
    format!("{ends}, {}", counted(packet.octets, "octet", "octets"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use aerostat_lab::model::LinkId;
    use aerostat_wire::llc::LlcSnap;

    const LAB: &str = include_str!("../../../../labs/two-subnets.atm.yml");

    /// A datagram of Classical IP with LLC/SNAP.
    fn sdu(ident: u16, to: [u8; 4]) -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 1, 0, 10];
        packet[4..6].copy_from_slice(&ident.to_be_bytes());
        packet.extend(to);
        packet.extend([0x9c, 0x41, 0x13, 0x89, 0, 8, 0x12, 0x34]);
        let mut sdu = Vec::new();
        LlcSnap::Ipv4.encode(&mut sdu);
        sdu.extend(packet);
        sdu
    }

    fn lab() -> Lab {
        aerostat_lab::parse("two-subnets.atm.yml", LAB, &[])
            .unwrap()
            .lab
    }

    fn end(lab: &Lab, name: &str, node: &str) -> End {
        let link = lab.links.iter().position(|link| link.name == name).unwrap();
        let at = lab.find(node).unwrap();
        let side = usize::from(lab.links[link].ends[1].node == at);
        End {
            link: LinkId(link),
            side,
        }
    }

    fn marks(one_in: u64, to: &[Ipv4Addr]) -> Marks {
        let (from, to) = (Vec::new(), to.to_vec());
        Marks::new(Marking { from, to, one_in })
    }

    const NOW: Instant = Instant::from_millis(5);

    #[test]
    fn a_marked_packet_is_told_at_each_link_until_it_arrives() {
        let lab = lab();
        let mut marks = marks(1, &[]);
        let sdu = sdu(7, [10, 2, 0, 10]);
        let mut tell = |link, node, direction, dropped| {
            marks.step(
                &lab,
                (end(&lab, link, node), direction),
                (Vc::new(0, 40), &sdu),
                dropped,
                NOW,
            )
        };
        // Nothing is known of a packet that has come in before.
        assert_eq!(tell("s1-s2", "s1", Direction::Sent, None), None);
        let first = tell("urku-s1", "urku", Direction::Sent, None).unwrap();
        assert_eq!(
            first.text.as_deref(),
            Some("udp 10.1.0.10:40001 > 10.2.0.10:5001, 28 octets")
        );
        assert_eq!(
            (first.packet, first.act, &*first.node, &*first.peer),
            (1, Act::Sent, "urku", "s1")
        );
        let next = tell("s1-s2", "s1", Direction::Sent, None).unwrap();
        assert_eq!((next.packet, &next.text, next.last), (1, &None, false));
        let lost = tell(
            "s1-s2",
            "s2",
            Direction::Received,
            Some(DropReason::LinkDown),
        )
        .unwrap();
        assert_eq!(
            (lost.act, lost.why.as_deref()),
            (Act::Dropped, Some("link down"))
        );
        let there = tell("sello-s2", "sello", Direction::Received, None).unwrap();
        assert_eq!((there.act, there.last), (Act::Received, true));
        // The same headers at the entrance are those of another packet.
        assert_eq!(
            tell("urku-s1", "urku", Direction::Sent, None)
                .unwrap()
                .packet,
            2
        );
    }

    #[test]
    fn one_in_n_of_the_wanted_packets_is_marked() {
        let lab = lab();
        let mut marks = marks(3, &[Ipv4Addr::new(10, 2, 0, 10)]);
        let at = (end(&lab, "urku-s1", "urku"), Direction::Sent);
        let mut numbers = Vec::new();
        for ident in 0..9 {
            for to in [[10, 9, 9, 9], [10, 2, 0, 10]] {
                let step = marks.step(&lab, at, (Vc::new(0, 40), &sdu(ident, to)), None, NOW);
                numbers.extend(step.map(|step| (ident, step.packet)));
            }
        }
        assert_eq!(numbers, [(0, 1), (3, 2), (6, 3)]);
    }

    #[test]
    fn the_oldest_marked_packets_are_forgotten() {
        let lab = lab();
        let mut marks = marks(1, &[]);
        let (urku, sello) = (end(&lab, "urku-s1", "urku"), end(&lab, "sello-s2", "sello"));
        let mut tell = |at, ident: usize| {
            let sdu = sdu(ident as u16, [10, 2, 0, 10]);
            marks.step(&lab, at, (Vc::new(0, 40), &sdu), None, NOW)
        };
        // The first one is marked again: it is the latest one, too.
        for ident in (0..MOST).chain([0, MOST]) {
            assert!(tell((urku, Direction::Sent), ident).is_some());
        }
        let arrives = (sello, Direction::Received);
        assert!(tell(arrives, 0).is_some() && tell(arrives, MOST).is_some());
        assert_eq!(tell(arrives, 1), None);
        assert!(marks.known.len() <= MOST && marks.order.len() <= MOST);
    }
}
