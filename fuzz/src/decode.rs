//! Decoders of any octets: no panic, and what was decoded encodes again.
//!
//! The first octet of an input chooses the decoder, the others are for it. A seed's file name begins with the
//! decoder's name.

use crate::feed::Feed;
use aerostat_wire::aal5::{self, Reassembler, Segmenter};
use aerostat_wire::atp;
use aerostat_wire::cell::{Cell, CellHeader, HeaderForm, HecReceiver, HecVerdict, Pti};
use aerostat_wire::ipv4::{self, Ipv4View};
use aerostat_wire::l2tp::{self, Carrier, Cookie, Sublayer};
use aerostat_wire::lane::{self, Control, DataFrame, TlvList};
use aerostat_wire::llc::LlcSnap;
use aerostat_wire::mpls::Stack;
use aerostat_wire::mpoa::{self, DllHeader, Imposition, ShortcutSdu, Tag};
use aerostat_wire::nhrp::{self, Packet, ProtocolAddress};
use aerostat_wire::oam::{self, LoopbackPoint, Oam, OamFlow};
use aerostat_wire::pseudowire::{self, Aal5Packet, ControlWord};
use aerostat_wire::q2931::{Element, Message, Version, convert, ie};
use aerostat_wire::test_cell::TestCell;
use aerostat_wire::vlan as tags;
use aerostat_wire::{AtmAddress, Blli, MacAddr, Qos, SscopPdu, TrafficParams};

/// Names and decoders, in the order of the first octet.
pub const DECODERS: [(&str, fn(&[u8])); 20] = [
    ("cell", cell),
    ("oam", oam),
    ("cells", cells),
    ("segments", segments),
    ("llc", llc),
    ("sscop", sscop),
    ("q2931", q2931),
    ("element", element),
    ("control", control),
    ("tlv", tlv),
    ("data", data),
    ("nhrp", nhrp),
    ("ipv4", ipv4),
    ("text", text),
    ("mpls", mpls),
    ("pseudowire", pseudowire),
    ("l2tp", l2tp),
    ("atp", atp),
    ("vlan", vlan),
    ("socket", socket),
];

/// Messages of the socket service: in both directions, and an offer.
fn socket(octets: &[u8]) {
    fn canonical<M: aerostat_proto::split::codec::Message>(octets: &[u8]) {
        if let Ok(message) = M::decode(octets) {
            assert_eq!(message.encode(), octets);
        }
    }
    canonical::<aerostat_proto::split::Numbered<aerostat_proto::socket::Request>>(octets);
    canonical::<aerostat_proto::split::Numbered<aerostat_proto::socket::Answer>>(octets);
    canonical::<aerostat_proto::socket::Offer>(octets);
}

/// Runs one input.
pub fn run(input: &[u8]) {
    if let Some((which, octets)) = input.split_first()
        && let Some((_, decoder)) = DECODERS.get(usize::from(*which))
    {
        decoder(octets);
    }
}

/// Up to 53 octets per cell: headers in both forms, the correcting receiver.
fn cell(octets: &[u8]) {
    let mut receiver = HecReceiver::default();
    for chunk in octets.chunks(53) {
        let mut whole = [0; 53];
        whole[..chunk.len()].copy_from_slice(chunk);
        for form in [HeaderForm::Uni, HeaderForm::Nni] {
            if let Ok(cell) = Cell::decode(&whole, form) {
                assert_eq!(cell.encode(form), whole);
                if let Ok(test) = TestCell::decode(&cell.payload) {
                    assert_eq!(test.encode(), cell.payload);
                }
                let _ = (
                    cell.is_end(),
                    OamFlow::of(&cell.header),
                    cell.header.to_string(),
                );
            }
        }
        let mut header = [0; 5];
        header.copy_from_slice(&whole[..5]);
        if receiver.receive(&mut header) != HecVerdict::Discard {
            assert!(CellHeader::decode(header, HeaderForm::Uni).is_ok());
        }
    }
}

/// An OAM payload, with its CRC-10 mended.
fn oam(octets: &[u8]) {
    let mut payload = [0x6a; 48];
    let len = octets.len().min(46);
    payload[..len].copy_from_slice(&octets[..len]);
    let _ = Oam::decode(&payload);
    payload[46..].fill(0);
    let crc = oam::crc10(&payload);
    payload[46..].copy_from_slice(&crc.to_be_bytes());
    let decoded = Oam::decode(&payload).expect("its CRC-10 is right");
    assert_eq!(decoded.encode(), payload);
    if let Oam::Loopback(loopback) = decoded {
        for point in [LoopbackPoint::Intermediate, LoopbackPoint::EndPoint] {
            let _ = loopback.action(loopback.tag[0] & 1 == 1, point, loopback.source);
        }
    }
}

/// Arbitrary cells at a reassembler: 2 octets of limit, then flags and payload of each cell.
fn cells(octets: &[u8]) {
    let mut feed = Feed::new(octets);
    let max = feed.u16() % 2048;
    let mut receiver = Reassembler::new(max);
    let limit = if max == 0 { aal5::MAX_SDU } else { max.into() };
    let (mut good, mut bad, mut user) = (0, 0, 0);
    while !feed.is_empty() {
        let flags = feed.u8();
        let mut payload = [0; 48];
        for octet in &mut payload {
            *octet = feed.u8();
        }
        let pti = Pti::new(flags & 7);
        user += u64::from(pti.is_user());
        match receiver.push(&payload, pti, flags & 8 != 0) {
            Some(Ok(pdu)) => {
                assert!(pdu.sdu.len() <= limit && !pdu.sdu.is_empty());
                good += 1;
            }
            Some(Err(_)) => bad += 1,
            None => {}
        }
        assert!(receiver.pending_cells() <= aal5::cells_for(limit));
    }
    let counters = receiver.counters;
    assert_eq!((counters.cells, counters.sdus), (user, good));
    assert_eq!(counters.errors() + counters.aborted, bad);
}

/// SDUs segmented, then cells lost, doubled or damaged on the way: what arrives is one of those that were sent.
fn segments(octets: &[u8]) {
    let mut feed = Feed::new(octets);
    let mut receiver = Reassembler::new(feed.u16() % 300 + 1);
    let mut sent = Vec::new();
    while !feed.is_empty() {
        // Different from the others, without using up the input.
        let (len, uu) = (feed.below(255) + 1, sent.len() as u8);
        let sdu: Vec<u8> = (0..len).map(|n| (n as u8).wrapping_mul(31) ^ uu).collect();
        let pdu = aal5::encode_pdu(&sdu, uu);
        let reflected = false;
        let trailer = aal5::Trailer { uu, reflected };
        assert_eq!(aal5::decode_pdu(&pdu), Ok((&sdu[..], trailer)));
        sent.push(sdu.clone());
        for (mut payload, pti) in Segmenter::new(&sdu, uu) {
            // Mostly, and once the input is used up, a cell arrives as it was sent.
            let times = match feed.u8() & 15 {
                13 => 0,
                14 => 2,
                15 => {
                    payload[feed.below(48)] ^= 1 << feed.below(8);
                    1
                }
                _ => 1,
            };
            for _ in 0..times {
                if let Some(Ok(got)) = receiver.push(&payload, pti, false) {
                    assert!(sent.contains(&got.sdu), "an SDU that nobody sent");
                }
            }
        }
    }
    // Whatever came before: a VC that starts anew takes the next SDU.
    receiver.reset();
    let got = Segmenter::new(&[9], 3).find_map(|(p, pti)| receiver.push(&p, pti, false));
    assert!(matches!(got, Some(Ok(pdu)) if pdu.sdu == [9]));
}

fn llc(octets: &[u8]) {
    if let Ok((prefix, payload)) = LlcSnap::decode(octets) {
        assert_eq!(prefix.wrap(payload), octets);
    }
}

fn sscop(octets: &[u8]) {
    if let Ok(pdu) = SscopPdu::decode(octets) {
        let again = pdu.encode();
        assert!(again.len() <= octets.len(), "longer than it came");
        assert_eq!(SscopPdu::decode(&again), Ok(pdu));
    }
}

fn q2931(octets: &[u8]) {
    let Ok(decoded) = Message::decode(octets) else {
        return;
    };
    assert_eq!(decoded.message.elements.len(), decoded.verdicts.len());
    if !decoded.length_error {
        assert_eq!(decoded.encode(), octets);
    }
    let again = Message::decode(&decoded.encode()).expect("what was encoded decodes");
    assert_eq!(again.message, decoded.message);
    assert_eq!(again.verdicts, decoded.verdicts);
    let _ = (decoded.missing(), decoded.faults().count());
    for element in &decoded.message.elements {
        one_element(element);
    }
    traffic(&decoded.message);
}

/// The traffic of a message, read and written for every version.
fn traffic(message: &Message) {
    let (mut fields, mut bearer, mut aal) = (None, None, None);
    for element in &message.elements {
        match ie::decode(element) {
            Ok(ie::Ie::Traffic(value)) => fields = Some(value),
            Ok(ie::Ie::Bearer(value)) => bearer = Some(value),
            Ok(ie::Ie::Aal(value)) => aal = Some(value),
            _ => {}
        }
    }
    let Some(fields) = fields else { return };
    let _ = convert::combination_allowed(&fields, true);
    let qos = convert::qos(&fields, bearer.as_ref(), aal.as_ref());
    for version in [Version::Uni30, Version::Uni31, Version::Uni40] {
        for value in convert::elements(&qos, false, version) {
            assert_eq!(ie::decode(&value.encode()), Ok(value));
        }
    }
}

/// One information element: identifier, instruction, contents.
fn element(octets: &[u8]) {
    let mut feed = Feed::new(octets);
    let (id, instruction) = (feed.u8(), feed.u8());
    let mut element = Element::new(id, feed.rest().to_vec());
    element.instruction.0 = instruction;
    one_element(&element);
}

fn one_element(element: &Element) {
    if let Ok(value) = ie::decode(element) {
        assert_eq!(ie::decode(&value.encode()), Ok(value));
    }
    for version in [Version::Uni30, Version::Uni31, Version::Uni40] {
        if let Some(adapted) = version.adapt(element) {
            assert_eq!(version.adapt(&adapted).as_ref(), Some(&adapted));
        }
    }
    if let Some(blli) = Blli::from_octets(&element.contents) {
        assert_eq!(blli.octets(), &element.contents[..]);
    }
}

fn control(octets: &[u8]) {
    let Ok(decoded) = Control::decode(octets) else {
        return;
    };
    match &decoded {
        Control::Frame(frame) => {
            assert_eq!(frame.encode(), octets);
            let _ = (frame.elan.to_string(), format!("{frame:?}"));
            let _ = mpoa::DeviceType::find(&frame.tlvs.list);
        }
        _ => assert!(octets.starts_with(&decoded.encode()[..2])),
    }
    assert_eq!(Control::decode(&decoded.encode()), Ok(decoded));
}

/// A count and TLVs; then the values of MPOA's device type TLV.
fn tlv(octets: &[u8]) {
    let mut feed = Feed::new(octets);
    let count = feed.u8();
    let body = feed.rest();
    let list = TlvList::decode(count, body);
    let mut out = Vec::new();
    list.encode(&mut out);
    assert_eq!((list.count(), &out[..]), (count, body));
    for tlv in &list.list {
        let _ = (tlv.number(), tlv.address());
        if let Ok(device) = mpoa::DeviceType::decode(&tlv.value) {
            let again = device.encode();
            assert_eq!(mpoa::DeviceType::decode(&again), Ok(device));
        }
    }
}

/// A data frame of LANE, and an SDU of a shortcut.
fn data(octets: &[u8]) {
    let _ = lane::is_control(octets);
    if let Ok(frame) = DataFrame::decode(octets) {
        let again = DataFrame::encode(frame.lecid, frame.frame);
        assert!(again.starts_with(octets) && again.len() <= octets.len().max(lane::MIN_DATA_SDU));
        assert_eq!(DataFrame::decode(&again).map(|f| f.lecid), Ok(frame.lecid));
    }
    let _ = ShortcutSdu::of(octets);
}

/// NHRP and MPOA: as it is, then with checksum and size mended.
fn nhrp(octets: &[u8]) {
    let _ = Packet::from_sdu(octets);
    packet(octets);
    if octets.len() >= nhrp::FIXED_LEN {
        let mut mended = octets.to_vec();
        mended[10..12].copy_from_slice(&(octets.len() as u16).to_be_bytes());
        crate::nhrp::sum_up(&mut mended);
        packet(&mended);
    }
}

fn packet(octets: &[u8]) {
    let nobody = AtmAddress::ZERO;
    if let Some(error) = Packet::error_about(octets, 7, 0, nobody, ProtocolAddress::NONE) {
        assert!(error.encode().len() > octets.len());
    }
    let Ok(packet) = Packet::decode(octets) else {
        return;
    };
    assert_eq!(packet.encode(), octets);
    let _ = (
        DllHeader::of(&packet),
        Tag::of(&packet),
        mpoa::unknown_compulsory(&packet),
    );
    let _ = (mpoa::service_category(&packet), mpoa::lifetime_s(&packet));
    if let Ok(Some(imposition)) = Imposition::of(&packet) {
        let again = Imposition::of(&imposition.packet());
        assert_eq!(again, Ok(Some(imposition)));
    }
    if let Some(reply) = packet.reply(Vec::new()) {
        assert_eq!(Packet::decode(&reply.encode()), Ok(reply));
    }
}

fn ipv4(octets: &[u8]) {
    if let Some(view) = Ipv4View::new(octets) {
        assert!(view.packet().len() <= octets.len() && view.header_len() <= view.packet().len());
        let _ = (
            view.ports(),
            view.ttl(),
            view.source(),
            view.destination(),
            view.protocol(),
        );
        let good = view.checksum_ok();
        let mut hop = octets.to_vec();
        if ipv4::decrement_ttl(&mut hop) && good {
            assert!(Ipv4View::new(&hop).is_some_and(|view| view.checksum_ok()));
        }
    }
    let _ = ipv4::decrement_ttl(&mut octets.to_vec());
}

/// Texts that users write: QoS, addresses.
fn text(octets: &[u8]) {
    let Ok(text) = core::str::from_utf8(octets) else {
        return;
    };
    if let Ok(qos) = text.parse::<Qos>() {
        assert_eq!(qos.to_string().parse(), Ok(qos));
    }
    if let Ok(traffic) = text.parse::<TrafficParams>() {
        assert_eq!(traffic.to_string().parse(), Ok(traffic));
    }
    if let Ok(address) = text.parse::<AtmAddress>() {
        assert_eq!(address.to_string().parse().ok(), Some(address));
    }
    if let Ok(mac) = text.parse::<MacAddr>() {
        assert_eq!(mac.to_string().parse().ok(), Some(mac));
    }
}

/// Tags of an Ethernet frame, from the outer one inwards: each goes back to where it was.
fn vlan(octets: &[u8]) {
    let mut frame = octets.to_vec();
    let before = frame.clone();
    if let Ok(Some(tag)) = tags::remove(&mut frame) {
        let inner = frame.clone();
        tag.insert(&mut frame);
        assert_eq!(frame, before);
        vlan(&inner);
    } else {
        assert_eq!(frame, before);
    }
}

/// A label stack and what it carries in each mode.
fn mpls(octets: &[u8]) {
    let Ok((stack, packet)) = Stack::decode(octets) else {
        return;
    };
    let mut again = Vec::new();
    stack.encode(&mut again);
    again.extend(packet);
    assert_eq!(again, octets);
    pseudowire(packet);
}

/// A packet of a pseudowire over MPLS: control word, SDU, cells.
fn pseudowire(packet: &[u8]) {
    let _ = pseudowire::is_channel(packet);
    if let Some((word, cells)) = packet.split_first_chunk() {
        if let Ok(word) = ControlWord::decode(*word) {
            assert_eq!(ControlWord::decode(word.encode()), Ok(word));
        }
        let _ = pseudowire::cells(cells);
    }
    if let Ok(read) = Aal5Packet::decode(packet) {
        let mut again = Vec::new();
        read.encode(&mut again);
        assert_eq!(Aal5Packet::decode(&again), Ok(read));
        assert!(!read.flags.cell || pseudowire::cells(read.payload).is_ok());
    }
}

/// One octet for carrier, sublayer and cookie, then a packet.
fn l2tp(octets: &[u8]) {
    let mut feed = Feed::new(octets);
    let choice = feed.u8();
    let carrier = [Carrier::Ip, Carrier::Udp][usize::from(choice & 1)];
    let sublayer = match choice >> 1 & 3 {
        0 => Sublayer::None,
        1 => Sublayer::Default,
        _ => Sublayer::Atm,
    };
    let cookie = Cookie::new(&[0x55; 8][..usize::from(choice >> 3 & 15).min(8)]);
    let packet = feed.rest();
    let Ok(l2tp::Packet::Data(session, rest)) = carrier.decode(packet) else {
        return;
    };
    let mut again = Vec::new();
    carrier.encode(session, &mut again);
    assert_eq!(again.len() + rest.len(), packet.len());
    let rest = rest.strip_prefix(cookie.unwrap_or_default().octets());
    if let Some(Ok((word, payload))) = rest.map(|rest| sublayer.decode(rest)) {
        let mut again = Vec::new();
        sublayer.encode(word, &mut again);
        assert_eq!(sublayer.decode(&again), Ok((word, &[][..])));
        let _ = pseudowire::cells(payload);
    }
}

/// A PDU of ATP.
fn atp(octets: &[u8]) {
    if let Ok(pdu) = atp::Pdu::decode(octets) {
        assert_eq!(pdu.encode(), octets);
    }
}
