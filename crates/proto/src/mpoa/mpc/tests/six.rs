//! IPv6: the same client, protocol type 0x86DD.

use super::*;
use aerostat_wire::mpoa::{ShortcutSdu, code};
use aerostat_wire::nhrp::{PROTOCOL_IPV4, PROTOCOL_IPV6};
use core::net::Ipv6Addr;

const OWN_6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 0x10);
const TARGET_6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 0x20);
const SENDER: ConnId = ConnId(ConnId::INCOMING + 1);

fn packet_6(from: Ipv6Addr, to: Ipv6Addr, (next, hops): (u8, u8)) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0, 0, 8, next, hops];
    packet.extend(from.octets());
    packet.extend(to.octets());
    packet.extend([0x5a; 8]);
    packet
}

fn frame_6(packet: &[u8]) -> Vec<u8> {
    [
        &DllHeader::ethernet(TARGET_6.into(), MPS_MAC, OWN_MAC),
        packet,
    ]
    .concat()
}

fn send_6(rig: &mut Rig, to: Ipv6Addr, kind: (u8, u8)) -> Sent {
    let frame = frame_6(&packet_6(OWN_6, to, kind));
    rig.outbound(0, frame)
}

fn asked_6(rig: &mut Rig) -> (ConnId, Packet) {
    let out: Sent = (0..10).map(|_| send_6(rig, TARGET_6, (17, 64))).collect();
    let (conn, called) = connects(&out)[0];
    assert_eq!(called, MPS);
    let sent = control_packets(&rig.connected(conn, 50));
    (conn, sent[0].1.clone())
}

#[test]
fn a_flow_gets_a_shortcut_tagged_or_not() {
    for tag in [None, Some(TAG)] {
        let mut rig = Rig::ready();
        let (control, request) = asked_6(&mut rig);
        assert_eq!(request.protocol, PROTOCOL_IPV6);
        let common = request.common().unwrap();
        assert_eq!(common.source.ip(), Some(OWN_6.into()));
        assert_eq!(common.destination.ip(), Some(TARGET_6.into()));
        assert_eq!(common.cies[0].prefix, 128);
        let out = rig.control(control, &answer(&request, PEER, 1200, tag));
        let (data, called) = connects(&out)[0];
        assert_eq!(called, PEER);
        rig.connected(data, 60);
        let out = send_6(&mut rig, TARGET_6, (17, 64));
        assert_eq!(to_lane(&out), 0);
        let (conn, sdu) = sdus(&out)[0].clone();
        let carried = packet_6(OWN_6, TARGET_6, (17, 63));
        let expected = match tag {
            Some(tag) => ShortcutSdu::Tagged {
                tag,
                packet: &carried,
            },
            None => ShortcutSdu::Routed(&carried),
        };
        assert_eq!((conn, ShortcutSdu::of(&sdu)), (data, expected));
        // IPv4 to the same router is another flow, with another protocol.
        let asked = control_packets(&rig.flow(TARGET));
        assert_eq!(asked[0].1.protocol, PROTOCOL_IPV4);
        assert_eq!(asked[0].1.common().unwrap().source.ip(), Some(OWN));
        // The rows that Linux knows come first in the text, then the rows that Linux does not have.
        let text = rig.mpc.snapshot(rig.now).proc_text();
        let own = text.find("10.2.0.20").expect("the row of IPv4");
        let mark = text.find("IPv6 (not in Linux)").expect("the mark");
        let six = text.find("2001:db8:2::20").expect("the row of IPv6");
        assert!(own < mark && mark < six, "{text}");
    }
}

#[test]
fn what_a_router_must_see_goes_by_lane() {
    let mut rig = Rig::ready();
    let (control, request) = asked_6(&mut rig);
    let out = rig.control(control, &answer(&request, PEER, 1200, None));
    rig.connected(connects(&out)[0].0, 60);
    // Hop limit used up; hop-by-hop, routing, fragment and destination options headers.
    for kind in [(17, 1), (17, 0), (0, 64), (43, 64), (44, 64), (60, 64)] {
        assert_eq!(to_lane(&send_6(&mut rig, TARGET_6, kind)), 1, "{kind:?}");
    }
    assert_eq!(to_lane(&send_6(&mut rig, TARGET_6, (58, 2))), 0);
    let rows = rig.mpc.snapshot(rig.now).ingress.len();
    for to in ["fe80::1", "ff02::1", "ff0e::1", "::1", "::"] {
        let to = to.parse().expect("an address");
        for _ in 0..20 {
            assert_eq!(to_lane(&send_6(&mut rig, to, (17, 64))), 1, "{to}");
        }
    }
    assert_eq!(
        rig.mpc.snapshot(rig.now).ingress.len(),
        rows,
        "nothing is counted"
    );
    // The Ethernet type and the packet differ in the version of IP.
    let mut frame = frame_6(&packet_6(OWN_6, TARGET_6, (17, 64)));
    frame[12..14].copy_from_slice(&[8, 0]);
    assert_eq!(to_lane(&rig.outbound(0, frame)), 1);
}

#[test]
fn a_server_without_ipv6_refuses_and_is_left_alone() {
    let mut rig = Rig::ready();
    let (control, request) = asked_6(&mut rig);
    rig.control(control, &refusal(&request, code::PROTOCOL));
    let row = rig.row(TARGET_6.into()).expect("an entry");
    assert_eq!(
        (row.state, row.last_code),
        (IngressState::HoldDown, code::PROTOCOL)
    );
    for _ in 0..20 {
        assert_eq!(to_lane(&send_6(&mut rig, TARGET_6, (17, 64))), 1);
    }
}

#[test]
fn a_purge_ends_what_it_names_and_no_more() {
    let mut rig = Rig::ready();
    let (control, request) = asked_6(&mut rig);
    let out = rig.control(control, &answer(&request, PEER, 1200, None));
    rig.connected(connects(&out)[0].0, 60);
    let near = Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 0x21);
    let server = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1);
    let state = |rig: &Rig| rig.row(TARGET_6.into()).map(|row| row.state);
    // 255 stands for a single address, as 128 does.
    for (what, prefix, left) in [
        (near, 128, true),
        (near, 255, true),
        (server, 64, true),
        (near, 127, false),
    ] {
        let purge = mpoa::purge_request(9, MPS, server.into(), OWN_6.into(), what.into(), prefix);
        rig.control(control, &purge);
        assert_eq!(state(&rig).is_some(), left, "{what}/{prefix}");
    }
}

fn wish_6(want_tag: bool) -> Imposition {
    let base = imposition(7, 1200);
    Imposition {
        mps: Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1).into(),
        target: OWN_6.into(),
        prefix: 128,
        dll: DllHeader {
            header: DllHeader::ethernet(OWN_6.into(), OWN_MAC, MPS_MAC),
            ..base.dll
        },
        want_tag,
        ..base
    }
}

/// A client that its MPS has called on [`SENDER`].
fn called() -> Rig {
    let mut rig = Rig::ready();
    assert_eq!(rig.call_in(1, MPS, CONTROL), SENDER);
    rig
}

#[test]
fn impositions_and_what_arrives_under_them() {
    for want_tag in [false, true] {
        let mut rig = called();
        let reply = control_packets(&rig.control(SENDER, &wish_6(want_tag).packet()))[0]
            .1
            .clone();
        assert_eq!((code_of(&reply), reply.protocol), (code::OK, PROTOCOL_IPV6));
        let tag = match mpoa::Tag::of(&reply) {
            Ok(Some(mpoa::Tag::Value(tag))) => Some(tag),
            _ => None,
        };
        assert_eq!(tag.is_some(), want_tag);
        let data = rig.call_in(2, PEER, DATA);
        let carried = packet_6(TARGET_6, OWN_6, (17, 63));
        let sdu = &mpoa::shortcut_sdu(tag, &carried)[..];
        let out = rig.atm(AtmEvent::Received { conn: data, sdu });
        let header = DllHeader::ethernet(OWN_6.into(), OWN_MAC, MPS_MAC);
        assert_eq!(delivered(&out), [(0, [&header[..], &carried].concat())]);
        // A packet of the other version has no entry, with or without a tag: the header of the entry would be wrong.
        let other = packet(TARGET, OWN, 63, 20);
        let sdu = &mpoa::shortcut_sdu(tag, &other)[..];
        let out = rig.atm(AtmEvent::Received { conn: data, sdu });
        assert!(delivered(&out).is_empty());
        assert_eq!(rig.counters().egress_misses, 1);
    }
}

#[test]
fn impositions_that_mix_the_versions_are_refused() {
    let mut rig = called();
    let mut wish = wish_6(false);
    wish.dll.header = DllHeader::ethernet_ipv4(OWN_MAC, MPS_MAC);
    let mut four = wish_6(false).packet();
    four.protocol = PROTOCOL_IPV4;
    for (request, expected) in [
        (wish.packet(), code::MAC_ENCAPSULATION),
        (four, code::PROTOCOL),
    ] {
        let reply = control_packets(&rig.control(SENDER, &request))[0].1.clone();
        assert_eq!(code_of(&reply), expected);
    }
}

#[test]
fn the_same_in_a_process() {
    across_a_boundary(&[
        a_flow_gets_a_shortcut_tagged_or_not,
        impositions_and_what_arrives_under_them,
    ]);
}
