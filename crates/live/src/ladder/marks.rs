//! Packets that are marked at their entrance, and followed over all links.
//!
//! The entrance of a packet is the link on which an end system of the lab sends it first, or on which it comes in from
//! outside. Of the packets that a client wants, one in N is marked. It is known by its headers
//! ([`identify`]), so nothing is put into it, and routers and LANE servers need not know of it.
//!
//! **Bounds.** A packet is forgotten when it has arrived, or left the lab. At most [`MOST_MARKED`] packets are known;
//! at this limit the oldest one gives its place to another if nothing was seen of it for [`SILENCE`]. A packet without
//! a place is not marked, but counted; so are packets that come while a slow client has lines to read.
//!
//! **Cost.** A packet that is not marked costs a look at its headers at its entrance, and a look for them among the
//! marked ones that are under way at the other ends of links, if there are any.

use crate::capture::End;
use aerostat_lab::model::{Lab, NodeId, NodeKind};
use aerostat_lab::way::{Act, MOST_MARKED, SILENCE, Step};
use aerostat_node::atm::{CellRun, DropReason};
use aerostat_node::ip::books::{Identity, identify};
use aerostat_node::ip::meter::Protocol;
use aerostat_proto::{Duration, Instant};
use aerostat_wire::pcapng::Direction;
use aerostat_wire::{Vc, counted};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

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
    /// Time of its last step; that of its mark before the first one.
    heard: Instant,
    /// Packets that were left out before it, for its first step; `None` after that.
    first: Option<u64>,
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
    /// The same by number.
    order: BTreeMap<u64, Identity>,
    /// Packets that were not marked in their turn since the latest marked one.
    left_out: u64,
    /// True while no packet is marked.
    rests: bool,
}

impl Marks {
    pub(crate) fn new(marking: Marking) -> Self {
        Self {
            marking,
            count: 0,
            number: 0,
            known: BTreeMap::new(),
            order: BTreeMap::new(),
            left_out: 0,
            rests: false,
        }
    }

    /// Marks no further packet, or marks packets again.
    pub(crate) const fn rest(&mut self, rests: bool) {
        self.rests = rests;
    }

    /// Looks at cells that enter the link of an end: the first ones of a packet may be marked, if this is its entrance.
    pub(crate) fn enters(&mut self, lab: &Lab, end: End, run: &CellRun, now: Instant) {
        // Later cells may be at the other end already, so that the first ones decide.
        let pdu = run.pdu().filter(|_| run.first() == 0);
        let Some(pdu) = pdu.filter(|_| is_entrance(lab, end, Direction::Sent)) else {
            return;
        };
        if let Some(packet) = identify(pdu.sdu()) {
            self.mark_at(end, packet, now);
        }
    }

    /// True if a step of the packet of these cells may be told, here or later.
    pub(crate) fn wants(&self, lab: &Lab, at: (End, Direction), run: &CellRun) -> bool {
        // Cells from outside have to be put together before their packet is known.
        let Some(pdu) = run.pdu() else {
            return true;
        };
        let comes_in = at.1 == Direction::Received && is_entrance(lab, at.0, at.1);
        comes_in
            || !self.known.is_empty()
                && identify(pdu.sdu()).is_some_and(|packet| self.known.contains_key(&packet))
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
        if direction == Direction::Received && is_entrance(lab, end, direction) {
            self.mark_at(end, packet, now);
        }
        let marked = self.known.get_mut(&packet)?;
        marked.heard = now;
        let (number, first) = (marked.number, marked.first.take());
        let act = match (direction, dropped) {
            (_, Some(_)) => Act::Dropped,
            (Direction::Sent, None) => Act::Sent,
            (Direction::Received, None) => Act::Received,
        };
        let arrives = lab.addresses_of(here).any(|own| own == packet.ends.1);
        let leaves = act == Act::Sent && is_outside(lab, there);
        let last = leaves || act == Act::Received && arrives;
        if last {
            self.forget(&packet);
        }
        Some(Step {
            packet: number,
            t: now.as_nanos(),
            act,
            node: lab.node(here).name.clone(),
            kind: (&lab.node(here).kind).into(),
            link: link.name.clone(),
            peer: lab.node(there).name.clone(),
            vc: vc.to_string(),
            octets: sdu.len() as u64,
            why: dropped.map(|reason| reason.name().to_owned()),
            text: first.map(|_| text(&packet)),
            last,
            left_out: first.unwrap_or(0),
            missed: 0,
        })
    }

    /// Counts a packet that enters at this end.
    fn mark_at(&mut self, end: End, packet: Identity, now: Instant) {
        // An end system that forwards a packet, such as a bridge, is not its entrance.
        let known = self.known.get(&packet);
        if known.is_none_or(|known| known.entrance == end) {
            self.mark(packet, end, now);
        }
    }

    /// Counts a packet at its entrance; it is marked if its turn has come.
    fn mark(&mut self, packet: Identity, entrance: End, now: Instant) {
        let wanted = |addresses: &[Ipv4Addr], own| addresses.is_empty() || addresses.contains(&own);
        let (from, to) = packet.ends;
        if !wanted(&self.marking.from, from) || !wanted(&self.marking.to, to) {
            return;
        }
        // A packet with the same headers is another one now.
        self.forget(&packet);
        self.count += 1;
        if !(self.count - 1).is_multiple_of(self.marking.one_in) {
            return;
        }
        if self.rests || !self.has_place(now) {
            self.left_out += 1;
            return;
        }
        self.number += 1;
        let marked = Marked {
            number: self.number,
            entrance,
            heard: now,
            first: Some(std::mem::take(&mut self.left_out)),
        };
        self.known.insert(packet, marked);
        self.order.insert(marked.number, packet);
    }

    /// True if another packet can be known; the oldest one gives its place if nothing more is expected of it.
    fn has_place(&mut self, now: Instant) -> bool {
        if self.known.len() < MOST_MARKED {
            return true;
        }
        let oldest = self.order.first_key_value().map(|(_, packet)| *packet);
        let silent = oldest.filter(|oldest| {
            let heard = self.known.get(oldest).map_or(now, |known| known.heard);
            now.since(heard) > Duration::from_nanos(SILENCE)
        });
        silent.inspect(|oldest| self.forget(oldest)).is_some()
    }

    fn forget(&mut self, packet: &Identity) {
        if let Some(known) = self.known.remove(packet) {
            self.order.remove(&known.number);
        }
    }
}

fn is_outside(lab: &Lab, node: NodeId) -> bool {
    matches!(lab.node(node).kind, NodeKind::Outside(_))
}

/// True if packets can enter the lab, or begin, at this end of a link.
fn is_entrance(lab: &Lab, end: End, direction: Direction) -> bool {
    let node = |side: usize| lab.link(end.link).ends[side].node;
    match direction {
        Direction::Sent => matches!(lab.node(node(end.side)).kind, NodeKind::Host(_)),
        Direction::Received => is_outside(lab, node(1 - end.side)),
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
    use aerostat_node::atm::Pdu;
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
    const VC: Vc = Vc::new(0, 40);

    /// The step of a PDU at an end; what enters a link there may be marked.
    fn pass(
        marks: &mut Marks,
        lab: &Lab,
        at: (End, Direction),
        sdu: &[u8],
        dropped: Option<DropReason>,
        now: Instant,
    ) -> Option<Step> {
        let run = CellRun::whole(Pdu::new(sdu.to_vec()), VC);
        if at.1 == Direction::Sent {
            marks.enters(lab, at.0, &run, now);
        }
        let wanted = marks.wants(lab, at, &run);
        let step = marks.step(lab, at, (VC, sdu), dropped, now);
        assert_eq!(wanted, step.is_some());
        step
    }

    #[test]
    fn a_marked_packet_is_told_at_each_link_until_it_arrives() {
        let lab = lab();
        let mut marks = marks(1, &[]);
        let sdu = sdu(7, [10, 2, 0, 10]);
        let mut tell = |link, node, direction, dropped| {
            let at = (end(&lab, link, node), direction);
            pass(&mut marks, &lab, at, &sdu, dropped, NOW)
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
                let step = pass(&mut marks, &lab, at, &sdu(ident, to), None, NOW);
                numbers.extend(step.map(|step| (ident, step.packet)));
            }
        }
        assert_eq!(numbers, [(0, 1), (3, 2), (6, 3)]);
    }

    /// Packets that have arrived leave their places; those that are lost do so when they are silent.
    #[test]
    fn a_packet_without_a_place_is_counted_and_not_marked() {
        let lab = lab();
        let mut marks = marks(1, &[]);
        let (urku, sello) = (end(&lab, "urku-s1", "urku"), end(&lab, "sello-s2", "sello"));
        let (sent, arrives) = ((urku, Direction::Sent), (sello, Direction::Received));
        let mut tell = |at, ident: usize, now| {
            let sdu = sdu(ident as u16, [10, 2, 0, 10]);
            pass(&mut marks, &lab, at, &sdu, None, now)
        };
        for ident in 0..2 * MOST_MARKED {
            assert!(tell(sent, ident, NOW).is_some());
            assert_eq!(tell(arrives, ident, NOW).map(|step| step.last), Some(true));
            assert_eq!(tell(arrives, ident, NOW), None, "it has arrived");
        }
        for ident in 0..MOST_MARKED {
            assert!(tell(sent, ident, NOW).is_some());
        }
        for ident in 0..5 {
            assert_eq!(tell(sent, 2 * MOST_MARKED + ident, NOW), None);
        }
        assert!(tell(arrives, 7, NOW).is_some());
        let next = tell(sent, 3 * MOST_MARKED, NOW).unwrap();
        assert_eq!(
            (next.packet, next.left_out),
            (3 * MOST_MARKED as u64 + 1, 5)
        );
        let later = NOW + Duration::from_nanos(SILENCE + 1);
        let next = tell(sent, 4 * MOST_MARKED, later).unwrap();
        assert_eq!((next.left_out, next.text.is_some()), (0, true));
        assert_eq!(tell(arrives, 0, later), None, "its place was taken");
        assert!(marks.known.len() == MOST_MARKED && marks.order.len() == MOST_MARKED);
    }

    /// A long PDU arrives at the next node while its last cells are still to be sent.
    #[test]
    fn a_packet_is_marked_with_its_first_cells() {
        let lab = lab();
        let mut marks = marks(1, &[]);
        let mut long = sdu(7, [10, 2, 0, 10]);
        long.resize(9000, 0);
        let (urku, s1) = (end(&lab, "urku-s1", "urku"), end(&lab, "urku-s1", "s1"));
        let mut rest = CellRun::whole(Pdu::new(long), VC);
        let first = rest.split_off_front(17).unwrap();
        let arrives = (s1, Direction::Received);
        assert!(!marks.wants(&lab, arrives, &first));
        marks.enters(&lab, urku, &first, NOW);
        assert!(marks.wants(&lab, arrives, &first) && marks.wants(&lab, arrives, &rest));
        marks.enters(&lab, urku, &rest, NOW);
        assert_eq!((marks.count, marks.known.len()), (1, 1));
    }
}
