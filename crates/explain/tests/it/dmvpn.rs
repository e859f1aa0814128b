//! NHRP over GRE: a hub and a spoke, packets made by the codec of `aerostat-wire`.

use crate::captures::{explained, rules, said};
use aerostat_explain::{Report, Rule};
use aerostat_wire::gre::{self, Gre};
use aerostat_wire::nhrp::{
    self, Body, Cie, Common, ErrorIndication, Extension, NbmaAddress, Packet, ProtocolAddress,
    code, error, ext, op,
};
use std::net::Ipv4Addr;

pub(crate) const HUB: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
pub(crate) const HUB_TUNNEL: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);

/// Packets with their seconds, source and destination below GRE.
pub(crate) type Packets = Vec<(u32, Ipv4Addr, Ipv4Addr, Vec<u8>)>;

pub(crate) fn spoke(n: u8) -> (Ipv4Addr, Ipv4Addr) {
    (Ipv4Addr::new(192, 0, 2, n), Ipv4Addr::new(10, 0, 0, n))
}

fn ip(from: Ipv4Addr, to: Ipv4Addr, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let total = (20 + payload.len()) as u16;
    let mut packet = vec![0x45, 0];
    packet.extend(total.to_be_bytes());
    packet.extend([0, 0, 0, 0, 255, protocol, 0, 0]);
    packet.extend(from.octets());
    packet.extend(to.octets());
    let sum = nhrp::internet_checksum(&packet).to_be_bytes();
    packet[10..12].copy_from_slice(&sum);
    packet.extend_from_slice(payload);
    packet
}

/// A pcap of Ethernet frames, each with GRE and its key.
pub(crate) fn pcap(packets: &Packets) -> Vec<u8> {
    let gre = Gre {
        protocol: gre::NHRP,
        key: Some(42),
        ..Gre::default()
    };
    pcap_with(packets, |packet| gre.wrap(packet))
}

/// A pcap of Ethernet frames; `wrap` puts GRE around a packet.
pub(crate) fn pcap_with(packets: &Packets, wrap: impl Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let mut file = 0xa1b2_c3d4_u32.to_le_bytes().to_vec();
    file.extend([2, 0, 4, 0]);
    file.extend(
        [0_u32, 0, 65535, 1]
            .iter()
            .flat_map(|word| word.to_le_bytes()),
    );
    for (second, from, to, packet) in packets {
        let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
        frame.extend(ip(*from, *to, gre::IP_PROTOCOL, &wrap(packet)));
        let length = frame.len() as u32;
        file.extend(
            [*second, 0, length, length]
                .iter()
                .flat_map(|word| word.to_le_bytes()),
        );
        file.extend(frame);
    }
    file
}

pub(crate) fn nbma(ip: Ipv4Addr) -> NbmaAddress {
    NbmaAddress::new(&ip.octets(), false).expect("4 octets")
}

pub(crate) fn packet(kind: u8, id: u32, n: u8, target: Ipv4Addr, cies: Vec<Cie>) -> Packet {
    let (own, tunnel) = spoke(n);
    let mut packet = Packet::new(
        kind,
        Common {
            request_id: id,
            source_nbma: nbma(own),
            source: tunnel.into(),
            destination: target.into(),
            cies,
            ..Common::default()
        },
    );
    packet.afn = 1;
    packet.hop_count = 255;
    packet
}

pub(crate) fn entry(at: Option<(Ipv4Addr, Ipv4Addr)>, holding_s: u16, code: u8) -> Cie {
    let (own, tunnel) = match at {
        Some((own, tunnel)) => (nbma(own), tunnel.into()),
        None => (NbmaAddress::NONE, ProtocolAddress::NONE),
    };
    Cie {
        code,
        prefix: 32,
        mtu: 17_912,
        holding_s,
        nbma: own,
        protocol: tunnel,
        ..Cie::default()
    }
}

pub(crate) fn with_password(packet: Packet, password: &str) -> Packet {
    let value = [&[0, 0, 0, 1], password.as_bytes()].concat();
    packet.with(Extension::compulsory(ext::AUTHENTICATION, value))
}

/// A spoke registers, asks for another spoke, and is answered; a last packet ten seconds later.
pub(crate) struct Story {
    pub(crate) register: Packet,
    pub(crate) registered: Packet,
    pub(crate) ask: Packet,
    pub(crate) answer: Packet,
}

impl Story {
    /// The same with what the spoke (`own`) and the hub put into their packets.
    pub(crate) fn with(
        self,
        own: impl Fn(Packet) -> Packet,
        hub: impl Fn(Packet) -> Packet,
    ) -> Self {
        Self {
            register: own(self.register),
            registered: hub(self.registered),
            ask: own(self.ask),
            answer: hub(self.answer),
        }
    }

    /// The same with these passwords in clear text.
    pub(crate) fn with_passwords(self, own: Option<&str>, hub: Option<&str>) -> Self {
        let with = |password: Option<&str>, packet: Packet| match password {
            Some(password) => with_password(packet, password),
            None => packet,
        };
        self.with(|packet| with(own, packet), |packet| with(hub, packet))
    }

    pub(crate) fn new() -> Self {
        let ask = packet(
            op::RESOLUTION_REQUEST,
            2,
            2,
            spoke(3).1,
            vec![entry(None, 600, 0)],
        );
        Self {
            register: packet(
                op::REGISTRATION_REQUEST,
                1,
                2,
                HUB_TUNNEL,
                vec![entry(None, 600, 0)],
            ),
            registered: packet(
                op::REGISTRATION_REPLY,
                1,
                2,
                HUB_TUNNEL,
                vec![entry(None, 600, 0)],
            ),
            answer: ask
                .reply(vec![entry(Some(spoke(3)), 600, 0)])
                .expect("a request"),
            ask,
        }
    }
    pub(crate) fn packets(&self) -> Packets {
        let own = spoke(2).0;
        vec![
            (1, own, HUB, self.register.encode()),
            (1, HUB, own, self.registered.encode()),
            (2, own, HUB, self.ask.encode()),
            (2, HUB, own, self.answer.encode()),
        ]
    }
}

/// The clean story, and packets behind it.
pub(crate) fn clean() -> Packets {
    later(Story::new().packets())
}

/// A purge of another spoke, so that the capture goes on.
pub(crate) fn later(mut packets: Packets) -> Packets {
    let own = spoke(9).0;
    let last = packet(op::PURGE_REQUEST, 7, 9, HUB_TUNNEL, vec![]);
    packets.push((60, own, HUB, last.encode()));
    packets
}

fn report(packets: Packets) -> Report {
    explained(&pcap(&later(packets)))
}

fn broken(name: &str, packets: Packets, wanted: &[Rule]) -> Report {
    let report = report(packets);
    let rules: Vec<Rule> = rules(&report).into_iter().collect();
    assert_eq!(rules, wanted, "{name}:\n{}", said(&report));
    report
}

#[test]
fn a_clean_spoke_names_nothing_and_tells_its_story() {
    let report = broken("clean", Story::new().packets(), &[]);
    let story: Vec<_> = report.story.iter().map(|one| one.text.as_str()).collect();
    assert_eq!(
        story,
        [
            "10.0.0.1 registers 10.0.0.2 for 600 s",
            "10.0.0.2 learns that 10.0.0.3 is behind 10.0.0.3 at 192.0.2.3"
        ]
    );
    let first = &report.messages[0];
    assert_eq!(
        (first.from.as_str(), first.to.as_str()),
        ("192.0.2.2", "192.0.2.1")
    );
    assert!(
        first
            .text
            .starts_with("NHRP Registration Request id 1 10.0.0.2 → 10.0.0.1")
    );
}

#[test]
fn answers_that_never_come_and_refusals_are_named() {
    let story = Story::new();
    let all = story.packets();
    broken(
        "registration",
        [&all[..1], &all[2..]].concat(),
        &[Rule::NhrpRegistration],
    );
    broken("resolution", all[..3].to_vec(), &[Rule::NhrpResolution]);
    let mut refused = Story::new();
    refused.registered = packet(
        op::REGISTRATION_REPLY,
        1,
        2,
        HUB_TUNNEL,
        vec![entry(None, 600, code::ALREADY_REGISTERED)],
    );
    let report = broken("refused", refused.packets(), &[Rule::NhrpRefused]);
    let text = "NHRP Registration Reply 1: code 14 (unique address already registered)";
    assert_eq!(report.findings[0].text, text);
    let mut late = Story::new();
    late.answer = story
        .ask
        .reply(vec![entry(None, 600, code::NO_BINDING)])
        .expect("a request");
    broken(
        "nak",
        late.packets(),
        &[Rule::NhrpNakHolding, Rule::NhrpRefused],
    );
}

/// Makes the checksum of a packet right again.
pub(crate) fn summed(octets: &mut [u8]) {
    octets[12..14].fill(0);
    let sum = nhrp::internet_checksum(octets).to_be_bytes();
    octets[12..14].copy_from_slice(&sum);
}

/// An Error Indication of the hub to the first spoke.
pub(crate) fn refusal(code: u16, offending: &[u8]) -> Packet {
    Packet {
        body: Body::Error(ErrorIndication {
            code,
            source_nbma: nbma(HUB),
            source: HUB_TUNNEL.into(),
            destination: spoke(2).1.into(),
            offending: offending.to_vec(),
            ..ErrorIndication::default()
        }),
        op: op::ERROR_INDICATION,
        ..Story::new().register
    }
}

#[test]
fn a_request_that_comes_again_with_fewer_hops_goes_round() {
    let story = Story::new();
    let mut packets = story.packets();
    let mut again = story.ask.clone();
    again.hop_count = 252;
    packets.insert(3, (2, spoke(2).0, HUB, again.encode()));
    let report = broken("loop", packets, &[Rule::NhrpLoop]);
    let text = "NHRP Resolution Request 2 came with hop count 255, and again with 252";
    assert_eq!(report.findings[0].text, text);
}

#[test]
fn cisco_passwords_are_shown_and_compared() {
    let secured = |own, hub| Story::new().with_passwords(own, hub).packets();
    let report = broken(
        "clear",
        secured(Some("geheim"), Some("geheim")),
        &[Rule::NhrpClear],
    );
    let text = "the password 'geheim' in clear text: everybody on the way can read and use it";
    assert_eq!(report.findings[0].text, text);
    assert_eq!(report.broken[&Rule::NhrpClear], 2, "once for each end");
    let none = secured(None, Some("geheim"));
    broken("none", none, &[Rule::NhrpClear, Rule::NhrpUnsigned]);
    let other = secured(Some("anders"), Some("geheim"));
    broken("other", other, &[Rule::NhrpClear, Rule::NhrpPassword]);
}

/// The usual case: the hub drops what has no password, and answers nothing, or with an error.
#[test]
fn a_spoke_without_the_password_of_the_hub_is_named() {
    let mut packets = Story::new().packets();
    packets.retain(|(_, from, ..)| *from != HUB);
    let other = spoke(5).0;
    let good = packet(
        op::REGISTRATION_REQUEST,
        3,
        5,
        HUB_TUNNEL,
        vec![entry(None, 600, 0)],
    );
    let answer = good.reply(vec![entry(None, 600, 0)]).expect("a request");
    packets.push((3, other, HUB, with_password(good, "geheim").encode()));
    packets.push((3, HUB, other, with_password(answer, "geheim").encode()));
    broken(
        "dropped",
        packets.clone(),
        &[
            Rule::NhrpRegistration,
            Rule::NhrpResolution,
            Rule::NhrpClear,
            Rule::NhrpUnsigned,
        ],
    );
    let (own, _) = spoke(2);
    let refusal = refusal(error::AUTHENTICATION, &Story::new().register.encode());
    packets.insert(1, (1, HUB, own, refusal.encode()));
    let report = broken(
        "error",
        packets,
        &[
            Rule::NhrpResolution,
            Rule::NhrpError,
            Rule::NhrpClear,
            Rule::NhrpUnsigned,
        ],
    );
    let story = "10.0.0.1 refuses NHRP Registration Request 1 of 10.0.0.2: authentication failure";
    assert!(
        report.story.iter().any(|one| one.text == story),
        "{:?}",
        report.story
    );
}

#[test]
fn a_traffic_indication_is_a_sentence_of_the_story() {
    let mut packets = Story::new().packets();
    let (own, _) = spoke(2);
    let redirect = Packet {
        body: Body::Error(ErrorIndication {
            source_nbma: nbma(HUB),
            source: HUB_TUNNEL.into(),
            destination: spoke(2).1.into(),
            // The packet that took the long way, without its end.
            offending: ip(spoke(2).1, spoke(3).1, 17, &[0; 600])[..128].to_vec(),
            ..ErrorIndication::default()
        }),
        op: op::TRAFFIC_INDICATION,
        ..Story::new().register
    };
    packets.insert(2, (1, HUB, own, with_password(redirect, "x").encode()));
    let report = broken("redirect", packets, &[]);
    let text =
        "10.0.0.1 tells 192.0.2.2 of a shorter way from 10.0.0.2 to 10.0.0.3 (Traffic Indication)";
    assert!(report.story.iter().any(|one| one.text == text));
}

/// A spoke behind NAT registers another address than the one that its packets have.
#[test]
fn nat_is_a_note() {
    let mut packets = Story::new().packets();
    for (_, from, to, _) in &mut packets {
        for end in [from, to] {
            if *end == spoke(2).0 {
                *end = Ipv4Addr::new(198, 51, 100, 7);
            }
        }
    }
    let report = broken("nat", packets, &[]);
    let note = "10.0.0.2 registers 192.0.2.2 from 198.51.100.7: it is behind NAT, or the request was passed on";
    assert_eq!(report.notes.keys().collect::<Vec<_>>(), [note]);
}
