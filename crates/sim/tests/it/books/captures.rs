//! Flows according to captures: which packets passed which end of which link. This reads the files that a run has
//! written, and finds packets by their own IP headers; it shares no code with the accounts.

use aerostat_lab::model::{FlowKind, Lab};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::path::Path;

/// First ports of the receivers and of the senders of flows: "QoS" in docs/lab-file.md.
const FIRST_SINK_PORT: u16 = 5001;
const FIRST_SOURCE_PORT: u16 = 40_001;
/// First ICMP identifier of flows; flow N adds twice N.
const FIRST_ECHO: u16 = 0;

/// Identifies a packet within its flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mark {
    /// Number and time of a datagram's stamp, because a restarted sender counts from 0 again.
    Datagram(u64, u64),
    /// Sequence number, octets, and identification with source port of a segment.
    Segment(u32, u32, [u16; 2]),
    /// Number of an echo request.
    Echo(u16),
}

/// One end of a link.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct End {
    pub(super) node: String,
    pub(super) link: String,
}

/// The packets of one flow by link end.
#[derive(Clone, Debug, Default)]
pub(super) struct Sightings {
    pub(super) sent: BTreeMap<End, BTreeSet<Mark>>,
    pub(super) received: BTreeMap<End, BTreeSet<Mark>>,
}

impl Sightings {
    /// Packets at each link end, in words.
    pub(super) fn text(&self) -> String {
        let ways = [("sent", &self.sent), ("received", &self.received)];
        let all = ways.into_iter().flat_map(|(way, table)| {
            table.iter().map(move |(end, marks)| {
                let numbers = marks.iter().map(|mark| match mark {
                    Mark::Datagram(number, _) => format!(" {number}"),
                    Mark::Segment(sequence, ..) => format!(" {sequence}"),
                    Mark::Echo(number) => format!(" {number}"),
                });
                let numbers: String = numbers.collect();
                let (node, link) = (&end.node, &end.link);
                format!("{node} {way} on {link} {} packets:{numbers}", marks.len())
            })
        });
        all.collect::<Vec<_>>().join("\n  ")
    }
    /// Packets that entered some link.
    pub(super) fn all(&self) -> BTreeSet<Mark> {
        self.sent.values().flatten().copied().collect()
    }
    /// Packets that came to a node.
    pub(super) fn came_to(&self, node: &str) -> BTreeSet<Mark> {
        of(&self.received, node)
    }
    /// Packets that left a node.
    pub(super) fn left(&self, node: &str) -> BTreeSet<Mark> {
        of(&self.sent, node)
    }
    /// Packets that entered a link and did not leave it at its other end.
    pub(super) fn vanished_on(&self, link: &str) -> BTreeSet<Mark> {
        let mut gone = BTreeSet::new();
        for (from, sent) in self.sent.iter().filter(|(end, _)| end.link == link) {
            let far = |end: &&End| end.link == link && end.node != from.node;
            let received = self.received.keys().find(far);
            let received = received.map(|end| &self.received[end]);
            let came = |mark: &Mark| received.is_some_and(|all| all.contains(mark));
            gone.extend(sent.iter().filter(|mark| !came(mark)));
        }
        gone
    }
}

fn of(table: &BTreeMap<End, BTreeSet<Mark>>, node: &str) -> BTreeSet<Mark> {
    let ends = table.iter().filter(|(end, _)| end.node == node);
    ends.flat_map(|(_, marks)| marks).copied().collect()
}

/// A flow to look for.
struct Wanted {
    ends: [Ipv4Addr; 2],
    protocol: u8,
    ports: [u16; 2],
    /// Distance of the source ports of its connections; 0 for a single port.
    step: u16,
}

/// Reads the capture files of all nodes of a lab; returns the sightings of each flow.
pub(super) fn read(lab: &Lab, directory: &Path) -> Vec<Sightings> {
    let address = |id| lab.node(id).lecs()[0].own_ip();
    let wanted = lab.traffic.iter().enumerate().map(|(index, flow)| {
        let number = index as u16;
        let source = FIRST_SOURCE_PORT + number;
        let sink = flow.port.unwrap_or(FIRST_SINK_PORT + number);
        let (protocol, ports) = match flow.kind {
            FlowKind::Tcp | FlowKind::Rr { .. } => (6, [source, sink]),
            FlowKind::Udp { .. } => (17, [source, sink]),
            FlowKind::Ping { .. } => (1, [FIRST_ECHO + 2 * number, 0]),
        };
        let calls = protocol == 6;
        Wanted {
            step: if calls { lab.traffic.len() as u16 } else { 0 },
            ends: [address(flow.from), address(flow.to)],
            protocol,
            ports,
        }
    });
    let wanted: Vec<Wanted> = wanted.collect();
    let mut seen = vec![Sightings::default(); wanted.len()];
    for (_, node) in lab.nodes() {
        let file = directory.join(format!("{}.pcapng", node.name));
        let octets = std::fs::read(&file).expect("a capture of the run");
        packets(&octets, |interface, sent, sdu| {
            let Some((flow, mark)) = find(&wanted, sdu) else {
                return;
            };
            let (node, link) = interface.split_once(':').expect("NODE:LINK");
            let end = End {
                node: node.into(),
                link: link.into(),
            };
            let table = if sent {
                &mut seen[flow].sent
            } else {
                &mut seen[flow].received
            };
            table.entry(end).or_default().insert(mark);
        });
    }
    seen
}

/// Calls `each` with the interface, the direction and the SDU of each packet that was not dropped at the capture.
/// Sections are little-endian and link types SUNATM, as the run writes them.
pub(super) fn packets(octets: &[u8], mut each: impl FnMut(&str, bool, &[u8])) {
    packets_of_vcs(octets, |interface, sent, _, sdu| each(interface, sent, sdu));
}

/// The same, with the VCI before the SDU: octets 2 and 3 of the header of SUNATM.
pub(super) fn packets_of_vcs(mut octets: &[u8], mut each: impl FnMut(&str, bool, u16, &[u8])) {
    let u32_at = |block: &[u8], at: usize| {
        u32::from_le_bytes(block[at..at + 4].try_into().expect("four octets"))
    };
    let mut interfaces = Vec::new();
    while !octets.is_empty() {
        let length = u32_at(octets, 4) as usize;
        let (block, rest) = octets.split_at(length);
        octets = rest;
        let body = &block[8..length - 4];
        match u32_at(block, 0) {
            1 => {
                let mut name = String::new();
                options(&body[8..], |code, value| {
                    if code == 2 {
                        name = String::from_utf8(value.to_vec()).expect("a name");
                    }
                });
                interfaces.push(name);
            }
            6 => {
                let captured = u32_at(body, 12) as usize;
                let data = &body[20..20 + captured];
                let (mut sent, mut dropped) = (false, false);
                options(
                    &body[20 + captured.next_multiple_of(4)..],
                    |code, value| match code {
                        2 => sent = value[0] & 3 == 2,
                        1 => dropped |= value.starts_with(b"dropped"),
                        _ => {}
                    },
                );
                if !dropped {
                    let interface = &interfaces[u32_at(body, 0) as usize];
                    each(interface, sent, be16(data, 2), &data[4..]);
                }
            }
            _ => {}
        }
    }
}

fn options(mut octets: &[u8], mut each: impl FnMut(u16, &[u8])) {
    while octets.len() >= 4 {
        let code = u16::from_le_bytes([octets[0], octets[1]]);
        let length = usize::from(u16::from_le_bytes([octets[2], octets[3]]));
        if code == 0 {
            return;
        }
        each(code, &octets[4..4 + length]);
        octets = &octets[4 + length.next_multiple_of(4)..];
    }
}

/// The first IPv4 packet in an SDU, behind any headers: it begins at a header with a correct checksum.
fn find(wanted: &[Wanted], sdu: &[u8]) -> Option<(usize, Mark)> {
    let starts = (0..sdu.len().saturating_sub(20).min(64)).map(|at| &sdu[at..]);
    let packet = starts.into_iter().find(|rest| is_header(rest))?;
    let total = usize::from(be16(packet, 2));
    let body = packet.get(20..total)?;
    let address =
        |at: usize| Ipv4Addr::new(packet[at], packet[at + 1], packet[at + 2], packet[at + 3]);
    let protocol = packet[9];
    if body.len() < 8 {
        return None;
    }
    let ports = match protocol {
        // Echo requests only: answers do not count as packets of the flow.
        1 if body[0] == 8 => [be16(body, 4), 0],
        1 => return None,
        _ => [be16(body, 0), be16(body, 2)],
    };
    let ends = [address(12), address(16)];
    // Each connection has a source port of its own: "QoS" in docs/lab-file.md.
    let from = |flow: &Wanted| match ports[0].checked_sub(flow.ports[0]) {
        Some(above) if flow.step > 0 => above % flow.step == 0,
        above => above == Some(0),
    };
    let fits = |flow: &Wanted| {
        flow.protocol == protocol && flow.ends == ends && from(flow) && flow.ports[1] == ports[1]
    };
    let flow = wanted.iter().position(fits)?;
    let mark = match protocol {
        1 => Mark::Echo(be16(body, 6)),
        6 => {
            let octets = body.len() - usize::from(body[12] >> 4) * 4;
            if octets == 0 {
                return None;
            }
            let sequence = u32::from_be_bytes(body[4..8].try_into().ok()?);
            Mark::Segment(sequence, octets as u32, [be16(packet, 4), ports[0]])
        }
        _ => {
            let stamp = body.get(8..32).filter(|stamp| stamp.starts_with(b"AERO"))?;
            let word = |at: usize| u64::from_be_bytes(stamp[at..at + 8].try_into().expect("8"));
            Mark::Datagram(word(8), word(16))
        }
    };
    Some((flow, mark))
}

fn is_header(octets: &[u8]) -> bool {
    octets[0] == 0x45 && {
        let sum: u32 = (0..20)
            .step_by(2)
            .map(|at| u32::from(be16(octets, at)))
            .sum();
        (sum & 0xffff) + (sum >> 16) == 0xffff
    }
}

fn be16(octets: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([octets[at], octets[at + 1]])
}
