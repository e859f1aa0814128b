//! From the link type of a packet to SDUs, cells and NHRP packets.

use crate::Explainer;
use crate::book::At;
use crate::capture::{Interface, Packet};
use crate::cells::{self, Pdu};
use crate::limits::Limit;
use crate::raw::{self, Kind};
use crate::rules::Rule;
use aerostat_wire::cell::CellHeader;
use aerostat_wire::ipv4::{self, Ipv4View};
use aerostat_wire::ipv6::Ipv6View;
use aerostat_wire::l2tp::{self, Carrier};
use aerostat_wire::link_type::{Cooked, Erf, ErfRecord, SunAtm, number};
use aerostat_wire::pseudowire::{self, Aal5Packet, BARE_CELL_LEN, ControlWord, WORD_LEN};
use aerostat_wire::{MacAddr, Vc, aal5, cell_frame, gre, lane, mpls, vlan};
use std::net::IpAddr;
use std::rc::Rc;

/// A link of a capture.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Link {
    /// An interface of the file.
    Interface(usize),
    /// Two ends of a tunnel, the smaller address first, and its key or label.
    Pair(String, String, Option<u32>),
}

/// Two ends and what tells links between them apart.
#[derive(Clone, Debug)]
struct Ends {
    from: String,
    to: String,
    key: Option<u32>,
}

impl Ends {
    fn new(from: &str, to: &str) -> Self {
        Self {
            from: from.to_owned(),
            to: to.to_owned(),
            key: None,
        }
    }
    fn unknown() -> Self {
        Self::new("-", "-")
    }
}

const IPV6: u16 = 0x86dd;
const IPV4: u16 = 0x0800;
/// Tags of provider bridges. Source: IEEE 802.1Q Table 9-1.
const SERVICE_TAG: u16 = 0x88a8;
/// Protocol numbers of IPsec. Source: RFC 4303, RFC 4302.
const ESP: u8 = 50;
const AH: u8 = 51;
/// Extension headers of IPv6. Source: RFC 8200 §4.
const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const DESTINATION: u8 = 60;
/// UDP port of ESP through NAT. Source: RFC 3948.
const ESP_PORT: u16 = 4500;

impl Explainer<'_> {
    /// Takes a packet of the file.
    pub(crate) fn packet(&mut self, interfaces: &[Interface], packet: &Packet<'_>) {
        self.first_ns.get_or_insert(packet.time_ns);
        // Times may go back.
        let time_ns = packet.time_ns - self.first_ns.unwrap_or_default();
        self.last_ns = self.last_ns.max(time_ns);
        self.packets += 1;
        let Some(interface) = interfaces.get(packet.interface) else {
            return;
        };
        while self.kinds.len() <= packet.interface {
            let link_type = interfaces
                .get(self.kinds.len())
                .map_or(0, |one| one.link_type);
            self.kinds.push(Kind::new(link_type));
        }
        *self.link_types.entry(interface.link_type).or_default() += 1;
        let Some(kind) = self.kinds.get_mut(packet.interface) else {
            return;
        };
        match kind {
            Kind::Labelled => self.labelled(interface, packet),
            Kind::Cells => self.raw_cell(interface, packet),
            Kind::Held(held) => {
                self.held += 1;
                let known = held.hold(packet);
                let known = known.or_else(|| {
                    let full = self.held > self.book.limits.open;
                    full.then(|| {
                        self.book.met.note(Limit::Held);
                        held.verdict()
                    })
                });
                if let Some(known) = known {
                    self.settle(interface, packet.interface, known);
                }
            }
        }
    }

    /// Gives an interface its kind, and reads the packets that were held.
    pub(crate) fn settle(&mut self, interface: &Interface, at: usize, known: Kind) {
        let cells = matches!(known, Kind::Cells);
        let Some(kind) = self.kinds.get_mut(at) else {
            return;
        };
        if let Kind::Held(held) = std::mem::replace(kind, known) {
            self.held = self.held.saturating_sub(held.packets().len());
            for packet in held.packets() {
                match cells {
                    true => self.raw_cell(interface, &packet.packet()),
                    false => self.labelled(interface, &packet.packet()),
                }
            }
        }
    }

    /// Gives the interfaces whose kind was not settled theirs.
    pub(crate) fn settle_all(&mut self, interfaces: &[Interface]) {
        for (at, interface) in interfaces.iter().enumerate() {
            if let Some(Kind::Held(held)) = self.kinds.get(at) {
                let known = held.verdict();
                self.settle(interface, at, known);
            }
        }
    }

    fn raw_cell(&mut self, interface: &Interface, packet: &Packet<'_>) {
        self.mislabelled.get_or_insert(interface.link_type);
        let Some(at) = self.of_interface(interface, packet, packet.sent) else {
            return;
        };
        if raw::cell_with_bad_hec(packet.octets) {
            return self
                .book
                .name(Rule::CellHec, &at, "the HEC of a cell is wrong");
        }
        match raw::cell(packet.octets) {
            Some(Ok((header, payload))) => self.cell(&at, &header, &payload, true),
            _ => self.book.met.note(Limit::Headers),
        }
    }

    /// Place of a packet on the link of an interface; `sent` is its direction.
    fn of_interface(
        &mut self,
        interface: &Interface,
        packet: &Packet<'_>,
        sent: Option<bool>,
    ) -> Option<At> {
        let Ends { from, to, key } = names_of(interface);
        let ends = match sent {
            Some(true) => Ends { from, to, key },
            Some(false) => Ends {
                from: to,
                to: from,
                key,
            },
            None => Ends::unknown(),
        };
        self.at(packet, Link::Interface(packet.interface), sent, ends)
    }

    fn of_ends(&mut self, packet: &Packet<'_>, ends: Ends) -> Option<At> {
        let way = ends.from < ends.to;
        let (from, to) = (ends.from.clone(), ends.to.clone());
        let link = match way {
            true => Link::Pair(from, to, ends.key),
            false => Link::Pair(to, from, ends.key),
        };
        self.at(packet, link, Some(way), ends)
    }

    fn at(&mut self, packet: &Packet<'_>, link: Link, way: Option<bool>, ends: Ends) -> Option<At> {
        let next = self.links.len();
        if next >= self.book.limits.links && !self.links.contains_key(&link) {
            self.book.met.note(Limit::Links);
            return None;
        }
        let link = *self.links.entry(link).or_insert(next);
        if self.ways.len() <= link {
            self.ways.push([false; 2]);
        }
        if let (Some(ways), Some(way)) = (self.ways.get_mut(link), way) {
            ways[usize::from(way)] = true;
        }
        Some(At {
            number: packet.number,
            time_ns: packet.time_ns - self.first_ns.unwrap_or_default(),
            link,
            way,
            from: Rc::from(ends.from),
            to: Rc::from(ends.to),
            vc: None,
        })
    }

    fn labelled(&mut self, interface: &Interface, packet: &Packet<'_>) {
        if packet.cut {
            return self.book.met.note(Limit::Cut);
        }
        let octets = packet.octets;
        match interface.link_type {
            number::SUNATM => match SunAtm::decode(octets) {
                Ok(sun) => {
                    let sent = packet.sent.or(Some(sun.sent));
                    let vc = Vc::new(packet.vpi.unwrap_or(sun.vc.vpi), sun.vc.vci);
                    self.captured_sdu(interface, packet, (sent, Some(vc)), sun.sdu);
                }
                Err(_) => self.book.met.note(Limit::Headers),
            },
            number::ATM_RFC1483 | number::ATM_RFC1483_BSD => {
                self.captured_sdu(interface, packet, (packet.sent, None), octets);
            }
            number::ATM_CLIP if octets.starts_with(&[0xaa, 0xaa, 3]) => {
                self.captured_sdu(interface, packet, (packet.sent, None), octets);
            }
            number::ERF => self.erf(interface, packet),
            number::ETHERNET => self.ethernet(interface, packet, octets),
            number::LINUX_SLL | number::LINUX_SLL2 => self.cooked(interface, packet),
            number::RAW | number::IPV4 | number::IPV6 | number::ATM_CLIP | 12 | 14 => {
                let protocol = match octets.first().map(|first| first >> 4) {
                    Some(6) => IPV6,
                    _ => IPV4,
                };
                self.protocol(interface, packet, protocol, octets, None);
            }
            _ => self.book.met.note(Limit::LinkTypes),
        }
    }

    fn cooked(&mut self, interface: &Interface, packet: &Packet<'_>) {
        let cooked = match interface.link_type {
            number::LINUX_SLL => Cooked::decode(packet.octets),
            _ => Cooked::decode_2(packet.octets),
        };
        let Ok(cooked) = cooked else {
            return self.book.met.note(Limit::Headers);
        };
        let packet = Packet {
            sent: packet.sent.or(Some(cooked.sent)),
            ..packet.clone()
        };
        self.protocol(interface, &packet, cooked.protocol, cooked.payload, None);
    }

    fn captured_sdu(
        &mut self,
        interface: &Interface,
        packet: &Packet<'_>,
        (sent, vc): (Option<bool>, Option<Vc>),
        sdu: &[u8],
    ) {
        if let Some(at) = self.of_interface(interface, packet, sent) {
            self.sdu(&At { vc, ..at }, sdu, packet.dropped.as_deref());
        }
    }

    fn erf(&mut self, interface: &Interface, packet: &Packet<'_>) {
        let Ok(erf) = Erf::decode(packet.octets) else {
            return self.book.met.note(Limit::Headers);
        };
        if erf.cut {
            return self.book.met.note(Limit::Cut);
        }
        let sent = packet.sent.or(Some(erf.port & 1 == 0));
        let Some(at) = self.of_interface(interface, packet, sent) else {
            return;
        };
        match erf.record {
            ErfRecord::Cell(header, payload) => match payload.try_into() {
                Ok(payload) => self.cell(&at, &header, payload, false),
                Err(_) => self.book.met.note(Limit::Headers),
            },
            ErfRecord::Pdu(header, pdu) => {
                let at = At {
                    vc: Some(header.vc),
                    ..at
                };
                match aal5::decode_pdu(pdu) {
                    Ok((sdu, _)) => self.sdu(&at, sdu, packet.dropped.as_deref()),
                    Err(error) => {
                        let text = format!("{error}: a PDU of VC {}", header.vc);
                        self.book.name(cells::rule_of(error), &at, text);
                    }
                }
            }
            ErfRecord::Ethernet(frame) => self.ethernet(interface, packet, frame),
            ErfRecord::Other(_) => self.book.met.note(Limit::Records),
        }
    }

    /// Takes a cell; `raw` if its interface had a wrong link type.
    fn cell(&mut self, at: &At, header: &CellHeader, payload: &[u8; 48], raw: bool) {
        let at = At {
            vc: Some(header.vc),
            ..at.clone()
        };
        let pdu = self.cells.push(&at, header, payload, &mut self.book);
        let user = header.pti.is_user() && aerostat_wire::oam::OamFlow::of(header).is_none();
        if raw {
            self.repaired.cells += 1;
            if !user {
                self.repair_cell(&at, header, payload);
            }
        }
        if let Some(Pdu { sdu, uu }) = pdu {
            if raw {
                self.repair_sdu(&at, header, &sdu, uu);
            }
            self.sdu(&at, &sdu, None);
        }
    }

    fn ethernet(&mut self, interface: &Interface, packet: &Packet<'_>, frame: &[u8]) {
        let (Some(to), Some(from), Some(mut rest)) = (
            frame.first_chunk::<6>(),
            frame.get(6..).and_then(|rest| rest.first_chunk::<6>()),
            frame.get(12..),
        ) else {
            return self.book.met.note(Limit::Headers);
        };
        let ends = Ends {
            from: MacAddr(*from).to_string(),
            to: MacAddr(*to).to_string(),
            key: None,
        };
        for _ in 0..4 {
            let Some((kind, after)) = rest.split_first_chunk::<2>() else {
                return self.book.met.note(Limit::Headers);
            };
            let kind = u16::from_be_bytes(*kind);
            if kind != vlan::ETHERTYPE && kind != SERVICE_TAG {
                return self.protocol(interface, packet, kind, after, Some(ends));
            }
            rest = after.get(2..).unwrap_or_default();
        }
        self.book.met.note(Limit::Headers);
    }

    /// Takes what an EtherType announces. `ends` are the stations of the Ethernet frame.
    fn protocol(
        &mut self,
        interface: &Interface,
        packet: &Packet<'_>,
        protocol: u16,
        payload: &[u8],
        ends: Option<Ends>,
    ) {
        match protocol {
            IPV4 => self.ipv4(packet, payload),
            IPV6 => match Ipv6View::new(payload) {
                Some(view) => {
                    let ends = [view.source(), view.destination()].map(IpAddr::V6);
                    self.above_ip(packet, ends, view.next_header(), view.payload());
                }
                None => self.book.met.note(Limit::Headers),
            },
            gre::NHRP => {
                let at = match ends {
                    Some(ends) => self.of_ends(packet, ends),
                    None => self.of_interface(interface, packet, packet.sent),
                };
                if let Some(at) = at {
                    self.nhrp(&at, payload, packet.dropped.as_deref());
                }
            }
            mpls::ETHERTYPE => {
                let ends = ends.unwrap_or_else(Ends::unknown);
                self.labels(packet, &ends, payload);
            }
            cell_frame::ETHERTYPE => {
                if let Some(at) = ends.and_then(|ends| self.of_ends(packet, ends)) {
                    self.bare_cells(&at, payload);
                }
            }
            _ => {}
        }
    }

    fn ipv4(&mut self, packet: &Packet<'_>, octets: &[u8]) {
        let Some(view) = Ipv4View::new(octets) else {
            return self.book.met.note(Limit::Headers);
        };
        let total = usize::from(view.total_len());
        let Some(payload) = view.packet().get(view.header_len()..total) else {
            return self.book.met.note(Limit::Headers);
        };
        if view.more_fragments() || view.fragment_offset() > 0 {
            return match view.protocol() {
                gre::IP_PROTOCOL | l2tp::IP_PROTOCOL => self.book.met.note(Limit::Fragments),
                _ => {}
            };
        }
        let ends = [view.source(), view.destination()].map(IpAddr::V4);
        self.above_ip(packet, ends, view.protocol(), payload);
    }

    fn above_ip(&mut self, packet: &Packet<'_>, ends: [IpAddr; 2], protocol: u8, payload: &[u8]) {
        let [from, to] = ends.map(|ip| ip.to_string());
        let ends = Ends {
            from,
            to,
            key: None,
        };
        match protocol {
            gre::IP_PROTOCOL => match gre::Gre::decode(payload) {
                Ok((header, inner)) => {
                    let ends = Ends {
                        key: header.key,
                        ..ends
                    };
                    self.in_gre(packet, &header, ends, inner);
                }
                // PPTP has version 1, and is no tunnel of this kind.
                Err(_) if payload.get(1).is_some_and(|second| second & 7 == 1) => {}
                Err(error) => {
                    if let Some(at) = self.of_ends(packet, ends) {
                        self.book.name(Rule::GreHeader, &at, error.to_string());
                    }
                }
            },
            l2tp::IP_PROTOCOL => self.l2tp(packet, Carrier::Ip, ends, payload),
            ipv4::UDP => {
                let Some((&[a, b, c, d, ..], inner)) = payload.split_first_chunk::<8>() else {
                    return self.book.met.note(Limit::Headers);
                };
                let ports = [u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])];
                if ports.contains(&l2tp::UDP_PORT) {
                    self.l2tp(packet, Carrier::Udp, ends, inner);
                } else if ports.contains(&ESP_PORT) {
                    self.book.met.note(Limit::Encrypted);
                }
            }
            ESP | AH => self.book.met.note(Limit::Encrypted),
            FRAGMENT => self.book.met.note(Limit::Fragments),
            HOP_BY_HOP | ROUTING | DESTINATION => self.book.met.note(Limit::Extensions),
            _ => {}
        }
    }

    fn in_gre(&mut self, packet: &Packet<'_>, header: &gre::Gre, ends: Ends, inner: &[u8]) {
        match header.protocol {
            gre::NHRP => {
                let book = &self.book;
                self.gre_keys.sent(&ends.from, &ends.to, header.key, book);
                if let Some(at) = self.of_ends(packet, ends) {
                    self.nhrp(&at, inner, packet.dropped.as_deref());
                }
            }
            mpls::ETHERTYPE => self.labels(packet, &ends, inner),
            _ => {}
        }
    }

    fn labels(&mut self, packet: &Packet<'_>, ends: &Ends, octets: &[u8]) {
        let Ok((stack, inner)) = mpls::Stack::decode(octets) else {
            return self.book.met.note(Limit::Headers);
        };
        if inner
            .first()
            .is_some_and(|first| matches!(first >> 4, 4 | 6))
        {
            return;
        }
        let label = stack.entries().last().map(|entry| entry.label);
        let ends = Ends {
            key: label,
            ..ends.clone()
        };
        let Some(at) = self.of_ends(packet, ends) else {
            return;
        };
        if pseudowire::is_channel(inner) {
            return;
        }
        let (word, behind) = inner.split_at(WORD_LEN.min(inner.len()));
        if inner.len().is_multiple_of(BARE_CELL_LEN) && !inner.is_empty() {
            self.bare_cells(&at, inner);
        } else if !behind.is_empty() && behind.len().is_multiple_of(BARE_CELL_LEN) {
            let word = word.try_into().ok().map(ControlWord::decode);
            match word {
                Some(Ok(word)) => {
                    self.numbered(&at, u32::from(word.sequence), 16);
                    self.bare_cells(&at, behind);
                }
                Some(Err(error)) => {
                    self.book.name(Rule::PseudowireWord, &at, error.to_string());
                }
                None => {}
            }
        } else {
            self.aal5_packet(&at, inner);
        }
    }

    /// An SDU in AAL5-SDU mode, if it begins as SDUs do; other pseudowires have control words, too.
    fn aal5_packet(&mut self, at: &At, inner: &[u8]) {
        let sdu = inner.get(WORD_LEN..).unwrap_or_default();
        let is_sdu = sdu.starts_with(&[0xaa, 0xaa, 3])
            || sdu.starts_with(&[0xfe, 0xfe, 3])
            || lane::is_control(sdu);
        if !is_sdu {
            return self.book.met.note(Limit::Pseudowires);
        }
        match Aal5Packet::decode(inner) {
            Ok(packet) => {
                self.numbered(at, u32::from(packet.sequence), 16);
                self.sdu(at, packet.payload, None);
            }
            Err(error) => self.book.name(Rule::PseudowireWord, at, error.to_string()),
        }
    }

    fn l2tp(&mut self, packet: &Packet<'_>, carrier: Carrier, ends: Ends, octets: &[u8]) {
        let (session, inner) = match carrier.decode(octets) {
            Ok(l2tp::Packet::Data(session, inner)) => (session, inner),
            // Control messages, and version 2, which carries PPP.
            _ => return self.book.met.note(Limit::Pseudowires),
        };
        // The length tells how long cookie and sublayer are together: 0, 4, 8 or 12 octets.
        let header = inner.len() % BARE_CELL_LEN;
        let cells = inner.get(header..).filter(|cells| !cells.is_empty());
        let Some(cells) = cells.filter(|_| matches!(header, 0 | 4 | 8 | 12)) else {
            return self.book.met.note(Limit::Pseudowires);
        };
        let ends = Ends {
            key: Some(session),
            ..ends
        };
        if let Some(at) = self.of_ends(packet, ends) {
            self.bare_cells(&at, cells);
        }
    }

    fn bare_cells(&mut self, at: &At, octets: &[u8]) {
        match pseudowire::cells(octets) {
            Ok(cells) => {
                for cell in cells {
                    let (header, payload) = raw::bare_cell(cell);
                    self.cell(at, &header, &payload, false);
                }
            }
            Err(error) => self.book.name(Rule::PseudowireWord, at, error.to_string()),
        }
    }

    /// Checks the sequence number of a pseudowire; 0 stands for a packet without a number. 1 follows the last number,
    /// and is the first number of a sender that starts again.
    fn numbered(&mut self, at: &At, sequence: u32, bits: u32) {
        if sequence == 0 {
            return;
        }
        let last = (1 << bits) - 1;
        let before = self.sequences.insert((at.link, at.way), sequence);
        let wanted = before.map(|before| if before >= last { 1 } else { before + 1 });
        if let Some(wanted) = wanted.filter(|wanted| *wanted != sequence && sequence != 1) {
            let text = format!("number {sequence}, where {wanted} follows");
            self.book.name(Rule::PseudowireSequence, at, text);
        }
    }
}

/// Names of the two ends of an interface: of captures of Aerostat `NODE:LINK`, where the link is often called after its
/// two nodes.
fn names_of(interface: &Interface) -> Ends {
    let Some(name) = &interface.name else {
        return Ends::new("DTE", "DCE");
    };
    let Some((node, link)) = name.split_once(':') else {
        return Ends::new(name, "far end");
    };
    let peer = match (link.strip_prefix(node), link.strip_suffix(node)) {
        (Some(peer), _) if peer.starts_with('-') => peer.get(1..),
        (_, Some(peer)) => peer.strip_suffix('-'),
        _ => None,
    };
    Ends::new(node, peer.unwrap_or(link))
}
