//! NHRP and MPOA packets: worked examples, the recording of linux-atm's mpcd, and properties.

use aerostat_testing::recording::{sdus, unhex};
use aerostat_wire::mpoa::{self, DllHeader, EgressPurge, Imposition, ShortcutSdu, Tag};
use aerostat_wire::nhrp::{self, Body, Cie, Common, Extension, NbmaAddress, Packet};
use aerostat_wire::nhrp::{ErrorIndication, ProtocolAddress};
use aerostat_wire::{AtmAddress, ErrorKind, MacAddr};
use proptest::prelude::*;
use std::net::{IpAddr, Ipv4Addr};

/// The octets of each example of a `.hex` file, in order.
fn examples(name: &str) -> Vec<Vec<u8>> {
    let path = format!("{}/tests/vectors/{name}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .map(unhex)
        .collect()
}

/// An address of the worked sequence: ESI 02:00:00:00:00:`id`.
fn atm(id: u8, selector: u8) -> AtmAddress {
    let prefix = [0x47, 0, 5, 0x80, 0xff, 0xde, 0, 0, 0, 0, 0, 1, 1];
    AtmAddress::from_parts(prefix, MacAddr([2, 0, 0, 0, 0, id]), selector)
}

const INGRESS: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 1, 0, 11));
const INGRESS_MPS: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 1, 0, 1));
const EGRESS: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 2, 0, 12));
const EGRESS_MPS: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 2, 0, 1));
const TARGET: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 2, 0, 20));
const TAG: u32 = 0x8000_0001;

fn imposition(id: u32) -> Imposition {
    let (target_mac, mps_mac) = (
        MacAddr([2, 0, 0, 0, 2, 0x20]),
        MacAddr([2, 0, 0, 0, 0, 0x22]),
    );
    Imposition {
        id,
        ingress_data: atm(0x11, 0x51),
        mps: EGRESS_MPS,
        target: TARGET,
        prefix: 32,
        holding_s: 1200,
        dll: DllHeader {
            cache_id: 0x101,
            elan_id: 2,
            header: DllHeader::ethernet_ipv4(target_mac, mps_mac),
        },
        want_tag: true,
    }
}

/// The packets of the worked sequence, 1 to 16, built from values.
fn built() -> Vec<Packet> {
    let request = mpoa::resolution_request(0x11, atm(0x11, 0x51), INGRESS, TARGET);
    let mut nhrp_request = request.clone();
    nhrp_request.op = nhrp::op::RESOLUTION_REQUEST;
    nhrp_request.hop_count = 0x3f;
    if let Body::Common(c) = &mut nhrp_request.body {
        (c.flags, c.request_id) = (nhrp::flag::ROUTER, 0x2001);
        c.source = INGRESS_MPS.into();
    }
    let imposed = imposition(0x3001).packet();
    let answer = mpoa::reply_entry(32, 1500, 1200, atm(0x12, 0x51));
    let imposition_reply = mpoa::with_tag(imposed.reply(vec![answer.clone()]).unwrap(), TAG);
    let next_hop = Cie {
        protocol: EGRESS_MPS.into(),
        ..answer.clone()
    };
    let mut nhrp_reply = mpoa::with_tag(nhrp_request.reply(vec![next_hop]).unwrap(), TAG);
    if let Body::Common(c) = &mut nhrp_reply.body {
        c.flags |= nhrp::flag::AUTHORITATIVE;
    }
    let reply = mpoa::with_tag(request.reply(vec![answer]).unwrap(), TAG);
    let egress_purge = EgressPurge {
        id: 0x21,
        mpc_control: atm(0x12, 0x50),
        mpc_data: atm(0x12, 0x51),
        mpc: EGRESS,
        mps: EGRESS_MPS,
        target: TARGET,
        prefix: 32,
        cache_id: 0x101,
        elan_id: 2,
    };
    let egress_purge = egress_purge.packet();
    let egress_purge_reply = egress_purge.reply(egress_purge.common().unwrap().cies.clone());
    let purge = |id, from, ip, to| mpoa::purge_request(id, from, ip, to, TARGET, 32);
    let last_purge = purge(0x2101, atm(0x21, 0x52), INGRESS_MPS, INGRESS);
    let last_reply = last_purge.reply(last_purge.common().unwrap().cies.clone());
    let refused = imposition(0x3002).packet();
    let refusal = vec![mpoa::refusal_entry(32, mpoa::code::NO_ROOM_FOR_ENTRY)];
    let unresolved = mpoa::resolution_request(0x12, atm(0x11, 0x51), INGRESS, TARGET);
    let no_binding = vec![mpoa::refusal_entry(32, nhrp::code::NO_BINDING)];
    vec![
        request,
        nhrp_request,
        imposed,
        imposition_reply,
        nhrp_reply,
        reply,
        mpoa::keep_alive(5, atm(0x21, 0x52), 35),
        mpoa::trigger(atm(0x21, 0x52), INGRESS_MPS, TARGET),
        egress_purge,
        egress_purge_reply.unwrap(),
        purge(0x2002, atm(0x22, 0x52), EGRESS_MPS, INGRESS_MPS),
        last_purge,
        last_reply.unwrap(),
        mpoa::data_plane_purge(atm(0x12, 0x51), Some(EGRESS_MPS), TARGET, 32),
        refused.reply(refusal).unwrap(),
        unresolved.reply(no_binding).unwrap(),
    ]
}

#[test]
fn worked_sequence_is_built_and_read() {
    let golden = examples("mpoa/worked-sequence.hex");
    assert_eq!(golden.len(), 17);
    for (i, packet) in built().iter().enumerate() {
        assert_eq!(packet.encode(), golden[i], "packet {}", i + 1);
        assert_eq!(
            Packet::decode(&golden[i]).as_ref(),
            Ok(packet),
            "packet {}",
            i + 1
        );
    }
    let ShortcutSdu::Tagged { tag: TAG, packet } = ShortcutSdu::of(&golden[16]) else {
        panic!("not tagged");
    };
    assert_eq!(mpoa::shortcut_sdu(Some(TAG), packet), golden[16]);
}

#[test]
fn worked_sequence_through_the_typed_readers() {
    let packets: Vec<Packet> = examples("mpoa/worked-sequence.hex")[..16]
        .iter()
        .map(|p| Packet::decode(p).unwrap())
        .collect();
    assert_eq!(Imposition::of(&packets[2]), Ok(Some(imposition(0x3001))));
    assert_eq!(
        Imposition::of(&packets[3]),
        Ok(None),
        "a reply is no request"
    );
    assert_eq!(Tag::of(&packets[0]), Ok(Some(Tag::Wanted)));
    assert_eq!(Tag::of(&packets[5]), Ok(Some(Tag::Value(TAG))));
    assert_eq!(Tag::of(&packets[6]), Ok(None));
    assert_eq!(mpoa::lifetime_s(&packets[6]), Ok(Some(35)));
    let purged = DllHeader::of(&packets[8]).unwrap().unwrap();
    assert_eq!(
        (purged.cache_id, purged.elan_id, purged.header.len()),
        (0x101, 2, 0)
    );
    let refusal = &packets[14].common().unwrap().cies[0];
    assert_eq!(
        (refusal.code, mpoa::code_name(refusal.code).len() > 10),
        (0x81, true)
    );
    assert_eq!(
        packets[4].common().unwrap().cies[0].protocol.ip(),
        Some(EGRESS_MPS)
    );
    assert_eq!(
        packets[4].common().unwrap().source_nbma.atm(),
        Some(atm(0x11, 0x51))
    );
}

#[test]
fn nhrp_samples() {
    let golden = examples("nhrp/samples.hex");
    assert_eq!(golden.len(), 3);
    let packets: Vec<Packet> = golden.iter().map(|p| Packet::decode(p).unwrap()).collect();
    for (packet, octets) in packets.iter().zip(&golden) {
        assert_eq!(&packet.encode(), octets);
    }
    let registration = packets[0].common().unwrap();
    assert_eq!(packets[0].op, nhrp::op::REGISTRATION_REQUEST);
    assert_eq!(registration.flags, nhrp::flag::REGISTRATION_UNIQUE);
    assert_eq!(
        registration.cies,
        [Cie {
            mtu: 9180,
            ..Cie::brief(0xff, 900)
        }]
    );
    assert_eq!(
        packets[0].reply(registration.cies.clone()),
        Some(packets[1].clone())
    );
    let Body::Error(error) = &packets[2].body else {
        panic!("no error")
    };
    assert_eq!(
        (error.code, error.offset),
        (nhrp::error::UNRECOGNIZED_EXTENSION, 66)
    );
    let rebuilt = Packet::error_about(
        &error.offending,
        error.code,
        error.offset,
        error.source_nbma.atm().unwrap(),
        error.source.clone(),
    );
    assert_eq!(rebuilt, Some(packets[2].clone()));
    let of_error = Packet::error_about(&golden[2], 7, 0, AtmAddress::ZERO, INGRESS.into());
    assert_eq!(of_error, None, "never an error about an error");
}

/// Every control packet and every shortcut SDU of two linux-atm hosts, and all values read from them.
#[test]
fn recorded_mpcd() {
    let (mut ops, mut tagged) = (Vec::new(), 0);
    for record in sdus("g-mpoa") {
        match ShortcutSdu::of(&record.sdu) {
            ShortcutSdu::Control(octets) => {
                let packet =
                    Packet::decode(octets).unwrap_or_else(|e| panic!("{}: {e}", record.at));
                assert_eq!(packet.to_sdu(), record.sdu, "{}", record.at);
                assert_eq!(Packet::from_sdu(&record.sdu), Ok(packet.clone()));
                assert_eq!(mpoa::unknown_compulsory(&packet), None);
                for tag in [Tag::of(&packet).unwrap()].into_iter().flatten() {
                    assert!(matches!(tag, Tag::Wanted | Tag::Value(0x0100_0000)));
                }
                if let Some(imposed) = Imposition::of(&packet).unwrap() {
                    assert_eq!((imposed.holding_s, imposed.dll.elan_id), (1200, 1));
                    assert_eq!(imposed.dll.header.len(), 14);
                }
                if packet.op == mpoa::op::KEEP_ALIVE {
                    assert_eq!(mpoa::lifetime_s(&packet), Ok(Some(35)));
                }
                ops.push(packet.op);
            }
            ShortcutSdu::Tagged { tag, packet } => {
                let view = aerostat_wire::ipv4::Ipv4View::new(packet).unwrap();
                assert!(view.checksum_ok() && view.ttl() == 63 && tag == 0x0100_0000);
                assert_eq!(mpoa::shortcut_sdu(Some(tag), packet), record.sdu);
                tagged += 1;
            }
            ShortcutSdu::Routed(_) | ShortcutSdu::Unknown => {}
        }
    }
    // The recording starts with one resolution each way, seen on two links, then keep-alives to both MPCs.
    assert_eq!(ops.len(), 20);
    for (op, count) in [(134, 4), (128, 4), (129, 4), (135, 4), (132, 4)] {
        assert_eq!(ops.iter().filter(|o| **o == op).count(), count, "op {op}");
    }
    assert_eq!(tagged, 112);
}

#[test]
fn what_is_wrong_is_named() {
    let good = &examples("mpoa/worked-sequence.hex")[0];
    let with = |at: usize, value: u8| {
        let mut bad = good.clone();
        bad[at] = value;
        let sum = {
            bad[12] = 0;
            bad[13] = 0;
            nhrp::internet_checksum(&bad)
        };
        bad[12..14].copy_from_slice(&sum.to_be_bytes());
        Packet::decode(&bad).unwrap_err().field
    };
    assert_eq!(with(11, 75), "ar$pktsz");
    assert_eq!(with(16, 0), "ar$op.version");
    assert_eq!(with(17, 9), "ar$op.type");
    assert_eq!(with(18, 0x94), "ar$shtl");
    assert_eq!(with(15, 0x13), "ar$extoff");
    assert_eq!(with(15, 0xff), "ar$extoff");
    assert_eq!(with(15, 0x42), "client protocol length");
    assert_eq!(with(71, 5), "extension value");
    assert_eq!(with(72, 0), "end of extensions");
    assert_eq!(with(75, 1), "end of extensions length");
    let mut damaged = good.clone();
    damaged[30] ^= 1;
    assert_eq!(
        Packet::decode(&damaged).unwrap_err().kind,
        ErrorKind::Checksum
    );
    let dll = |value| {
        let packet = Packet::new(128, Common::default());
        DllHeader::of(&packet.with(Extension::compulsory(mpoa::ext::DLL_HEADER, value)))
    };
    assert!(dll(vec![0; 8]).is_err());
    assert!(dll(vec![0, 0, 0, 1, 0, 0, 0, 2, 1]).is_err());
    assert!(dll(vec![0; 10]).is_err());
    assert!(dll(vec![0; 9]).is_ok());
}

fn octets(len: usize) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..=len)
}

prop_compose! {
    fn nbma()(octets in octets(63), e164 in any::<bool>()) -> NbmaAddress {
        NbmaAddress::new(&octets, e164).unwrap()
    }
}
prop_compose! {
    fn protocol()(octets in octets(20)) -> ProtocolAddress {
        ProtocolAddress::new(&octets).unwrap()
    }
}
prop_compose! {
    fn cie()(
        head in any::<(u8, u8, u16, u16, u16, u8)>(),
        nbma in nbma(), nbma_sub in nbma(), protocol in protocol(),
    ) -> Cie {
        let (code, prefix, unused, mtu, holding_s, preference) = head;
        Cie { code, prefix, unused, mtu, holding_s, preference, nbma, nbma_sub, protocol }
    }
}

fn body() -> impl Strategy<Value = (u8, Body)> {
    let addresses = || (nbma(), nbma(), protocol(), protocol());
    let head = (
        any::<u16>(),
        any::<u32>(),
        prop_oneof![1..=6_u8, 128..=135_u8],
    );
    let common = (head, addresses(), prop::collection::vec(cie(), 0..4)).prop_map(
        |((flags, request_id, op), (source_nbma, source_sub, source, destination), cies)| {
            let common = Common {
                flags,
                request_id,
                source_nbma,
                source_sub,
                source,
                destination,
                cies,
            };
            (op, Body::Common(common))
        },
    );
    let error = (any::<[u16; 3]>(), addresses(), octets(80)).prop_map(
        |([unused, code, offset], (source_nbma, source_sub, source, destination), offending)| {
            let error = ErrorIndication {
                unused,
                code,
                offset,
                source_nbma,
                source_sub,
                source,
                destination,
                offending,
            };
            (nhrp::op::ERROR_INDICATION, Body::Error(error))
        },
    );
    prop_oneof![4 => common, 1 => error]
}

prop_compose! {
    fn packet()(
        (op, body) in body(),
        (afn, protocol, snap, hop_count) in any::<(u16, u16, [u8; 5], u8)>(),
        extensions in prop::option::of(prop::collection::vec(
            (1..=0x3fff_u16, 0..4_u16, octets(40)), 0..5)),
    ) -> Packet {
        let extensions = extensions.filter(|_| op != nhrp::op::ERROR_INDICATION).map(|list| {
            list.into_iter()
                .map(|(kind, bits, value)| Extension { type_field: kind | bits << 14, value })
                .collect()
        });
        Packet { afn, protocol, snap, hop_count, op, body, extensions }
    }
}

proptest! {
    #[test]
    fn round_trip(packet in packet()) {
        let octets = packet.encode();
        prop_assert_eq!(nhrp::internet_checksum(&octets), 0);
        prop_assert_eq!(Packet::decode(&octets), Ok(packet));
    }

    /// Damage anywhere, with the checksum recomputed: either an error or a value that encodes to the same octets.
    #[test]
    fn damaged_packets(packet in packet(), at in any::<prop::sample::Index>(), value: u8) {
        let mut octets = packet.encode();
        let at = at.index(octets.len());
        octets[at] = value;
        octets[12..14].fill(0);
        let sum = nhrp::internet_checksum(&octets);
        octets[12..14].copy_from_slice(&sum.to_be_bytes());
        if let Ok(read) = Packet::decode(&octets) {
            let _ = (DllHeader::of(&read), Tag::of(&read), Imposition::of(&read));
            let _ = (mpoa::service_category(&read), mpoa::lifetime_s(&read));
            prop_assert_eq!(read.encode(), octets);
        }
    }

    #[test]
    fn never_panics(octets in octets(200)) {
        let _ = Packet::decode(&octets);
        let _ = Packet::from_sdu(&octets);
        let _ = Packet::error_about(&octets, 7, 0, AtmAddress::ZERO, ProtocolAddress::NONE);
        let _ = ShortcutSdu::of(&octets);
    }
}

#[test]
fn ipv6_by_hand() {
    let golden = examples("mpoa-ipv6.hex");
    let ip = |text: &str| text.parse::<IpAddr>().expect(text);
    let target = ip("2001:db8:2::20");
    let request = mpoa::resolution_request(0x11, atm(0x11, 0x51), ip("2001:db8:1::10"), target);
    let base = imposition(0x31);
    let (target_mac, mps_mac) = (
        MacAddr([2, 0, 0, 0, 2, 0x20]),
        MacAddr([2, 0, 0, 0, 0, 0x22]),
    );
    let wish = Imposition {
        mps: ip("2001:db8:2::1"),
        target,
        prefix: 128,
        dll: DllHeader {
            header: DllHeader::ethernet(target, target_mac, mps_mac),
            ..base.dll
        },
        ..base
    };
    for (octets, packet) in golden.iter().zip([request, wish.packet()]) {
        assert_eq!(packet.protocol, nhrp::PROTOCOL_IPV6);
        assert_eq!(packet.encode(), *octets);
        assert_eq!(Packet::decode(octets).unwrap(), packet);
    }
    let decoded = Packet::decode(&golden[1]).unwrap();
    assert_eq!(Imposition::of(&decoded).unwrap(), Some(wish));
    let v4 = mpoa::resolution_request(1, atm(0x11, 0x51), INGRESS, TARGET);
    assert_eq!(v4.protocol, nhrp::PROTOCOL_IPV4);
    // A data-plane purge has a source of the same kind as its destination, or no source.
    let purge = |own| mpoa::data_plane_purge(atm(0x11, 0x51), Some(own), target, 128);
    assert_eq!(
        purge(INGRESS).common().unwrap().source,
        ProtocolAddress::NONE
    );
    assert_eq!(purge(target).common().unwrap().source.ip(), Some(target));
    assert_eq!(purge(INGRESS).protocol, nhrp::PROTOCOL_IPV6);
}

#[test]
fn ipv6_on_a_shortcut() {
    let packet = [&[0x60][..], &[0; 39]].concat();
    let bare = mpoa::shortcut_sdu(None, &packet);
    assert_eq!(bare[..8], [0xaa, 0xaa, 3, 0, 0, 0, 0x86, 0xdd]);
    assert_eq!(ShortcutSdu::of(&bare), ShortcutSdu::Routed(&packet));
    let tagged = mpoa::shortcut_sdu(Some(TAG), &packet);
    assert_eq!(tagged[..8], mpoa::LLC_TAGGED);
    let found = ShortcutSdu::of(&tagged);
    assert_eq!(
        found,
        ShortcutSdu::Tagged {
            tag: TAG,
            packet: &packet
        }
    );
    // The LLC header and the packet disagree about the IP version.
    let mut mixed = bare;
    mixed[8] = 0x45;
    assert_eq!(ShortcutSdu::of(&mixed), ShortcutSdu::Unknown);
    mixed[..8].copy_from_slice(&mpoa::LLC_IPV4);
    mixed[8] = 0x60;
    assert_eq!(ShortcutSdu::of(&mixed), ShortcutSdu::Unknown);
}
