//! The egress states of MPOA 1.1 appendix I.5, event by event.

use super::*;
use crate::Cause;
use aerostat_wire::mpoa::{Tag, code, op};
use aerostat_wire::nhrp::PROTOCOL_IPV4;

const SOURCE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 2, 0, 20));
const SENDER: ConnId = ConnId(ConnId::INCOMING);

/// A client with a control call from its MPS.
fn called_with(config: MpcConfig) -> Rig {
    let mut rig = Rig::ready_with(config);
    assert_eq!(rig.call_in(0, MPS, CONTROL), SENDER);
    rig
}

fn called() -> Rig {
    called_with(MpcConfig::new(CONTROL, DATA))
}

/// Imposes and returns the reply.
fn impose(rig: &mut Rig, wish: &Imposition) -> Packet {
    let sent = control_packets(&rig.control(SENDER, &wish.packet()));
    assert_eq!(
        (sent.len(), sent[0].0),
        (1, SENDER),
        "answered where it was asked"
    );
    assert_eq!(sent[0].1.op, op::IMPOSITION_REPLY);
    sent[0].1.clone()
}

fn tag_of(reply: &Packet) -> u32 {
    match Tag::of(reply) {
        Ok(Some(Tag::Value(tag))) => tag,
        other => panic!("no tag: {other:?}"),
    }
}

/// A packet to this host that arrives over a shortcut from the peer.
fn arrive(rig: &mut Rig, conn: ConnId, tag: Option<u32>) -> Vec<Output> {
    let sdu = mpoa::shortcut_sdu(tag, &packet(SOURCE, OWN, 63, 100));
    rig.atm(AtmEvent::Received { conn, sdu: &sdu })
}

fn egress_rows(rig: &Rig) -> Vec<EgressRow> {
    rig.mpc.snapshot(rig.now).egress
}

#[test]
fn new_entry_is_accepted_with_a_tag() {
    let mut rig = called();
    let wish = imposition(0x101, 1200);
    let out = rig.control(SENDER, &wish.packet());
    assert_eq!(story(&out), ["mpc.imposition.accepted"]);
    let reply = control_packets(&out)[0].1.clone();
    let tag = tag_of(&reply);
    assert_ne!(tag, 0);
    // All other fields are those of the reply in the worked sequence.
    let entry = mpoa::reply_entry(32, 1500, 1200, DATA);
    assert_eq!(
        reply,
        mpoa::with_tag(wish.packet().reply(vec![entry]).unwrap(), tag)
    );
    assert_eq!(rig.counters().imposition_replies[&0], 1);

    let data = rig.call_in(1, PEER, DATA);
    let expected = ethernet_from_mps(&packet(SOURCE, OWN, 63, 100));
    assert_eq!(
        delivered(&arrive(&mut rig, data, Some(tag))),
        [(0, expected)]
    );
    let row = &egress_rows(&rig)[0];
    assert_eq!(
        (row.packets, row.latest_source, row.cache_id),
        (1, Some(SOURCE), 0x101)
    );
    assert_eq!(
        (row.vc, row.holding_s, row.state),
        (Some(Vc::new(0, 101)), 1200, EgressState::Active)
    );
    assert_eq!(
        (
            rig.counters().packets_received,
            rig.counters().octets_received
        ),
        (1, 132)
    );
}

fn ethernet_from_mps(packet: &[u8]) -> Vec<u8> {
    [&DllHeader::ethernet_ipv4(OWN_MAC, MPS_MAC), packet].concat()
}

#[test]
fn refresh_keeps_the_tag_and_takes_the_new_header() {
    let mut rig = called();
    let tag = tag_of(&impose(&mut rig, &imposition(0x101, 100)));
    rig.until(50);
    let mut again = imposition(0x101, 1000);
    again.dll.header[5] = 0x99;
    assert_eq!(tag_of(&impose(&mut rig, &again)), tag);
    let rows = egress_rows(&rig);
    assert_eq!(
        (rows.len(), rows[0].holding_s, rows[0].header[5]),
        (1, 1000, 0x99)
    );
}

#[test]
fn entries_have_different_tags() {
    let mut rig = called();
    let mut tags: Vec<u32> = (1..=50)
        .map(|id| tag_of(&impose(&mut rig, &imposition(id, 1200))))
        .collect();
    tags.sort_unstable();
    tags.dedup();
    assert_eq!(tags.len(), 50);
}

#[test]
fn tags_wrap_past_zero_and_past_those_in_use() {
    let mut rig = called();
    rig.mpc.set_next_tag(u32::MAX);
    assert_eq!(tag_of(&impose(&mut rig, &imposition(1, 1200))), u32::MAX);
    assert_eq!(tag_of(&impose(&mut rig, &imposition(2, 1200))), 1);
    rig.mpc.set_next_tag(u32::MAX);
    assert_eq!(tag_of(&impose(&mut rig, &imposition(3, 1200))), 2);
    // A removed entry releases its tag.
    impose(&mut rig, &imposition(2, 0));
    rig.mpc.set_next_tag(1);
    assert_eq!(tag_of(&impose(&mut rig, &imposition(4, 1200))), 1);
}

#[test]
fn holding_time_zero_removes() {
    let mut rig = called();
    impose(&mut rig, &imposition(0x101, 1200));
    assert_eq!(code_of(&impose(&mut rig, &imposition(0x101, 0))), code::OK);
    assert!(egress_rows(&rig).is_empty());
    assert_eq!(
        code_of(&impose(&mut rig, &imposition(0x102, 0))),
        code::OK,
        "known or not"
    );
    assert_eq!(rig.mpc.snapshot(rig.now).mps[0].keep_alive_s, None);
}

#[test]
fn without_dll_header_nothing_happens() {
    let mut rig = called();
    let mut bare = imposition(1, 1200).packet();
    bare.extensions = None;
    assert!(rig.control(SENDER, &bare).is_empty());
    assert_eq!(rig.counters().malformed, 1);
}

#[test]
fn what_cannot_be_accepted_is_refused_with_its_code() {
    let refuse = |change: &dyn Fn(&mut Imposition)| {
        let mut rig = called();
        let mut wish = imposition(1, 1200);
        change(&mut wish);
        let reply = impose(&mut rig, &wish);
        let cie = &reply.common().unwrap().cies[0];
        assert!(
            cie.nbma.octets().is_empty() && cie.holding_s == 0,
            "no client address"
        );
        assert!(egress_rows(&rig).is_empty());
        cie.code
    };
    assert_eq!(refuse(&|w| w.dll.header.clear()), code::MAC_ENCAPSULATION);
    assert_eq!(
        refuse(&|w| w.dll.header = vec![0; 30]),
        code::MAC_ENCAPSULATION
    );
    assert_eq!(refuse(&|w| w.dll.elan_id = 99), code::OTHER);
    assert_eq!(refuse(&|w| w.ingress_data = DATA), code::OTHER);
    // A reply repeats the length of the prefix, so one that cannot be kept is refused.
    for prefix in [33, 128, 254] {
        assert_eq!(refuse(&|w| w.prefix = prefix), code::OTHER, "{prefix}");
    }
    let mut rig = called();
    let mut other = imposition(1, 1200).packet();
    other.protocol = 0x86dd;
    assert_ne!(other.protocol, PROTOCOL_IPV4);
    let reply = control_packets(&rig.control(SENDER, &other))[0].1.clone();
    assert_eq!(code_of(&reply), code::PROTOCOL);
}

#[test]
fn limits_give_81_82_83() {
    let mut config = MpcConfig::new(CONTROL, DATA);
    config.limits.egress = 2;
    config.limits.shortcuts = 1;
    let mut rig = called_with(config);
    let from = |id: u32, peer: u8| Imposition {
        ingress_data: address(peer, 0x51),
        ..imposition(id, 1200)
    };
    assert_eq!(code_of(&impose(&mut rig, &from(1, 0x31))), code::OK);
    rig.call_in(1, address(0x31, 0x51), DATA);
    assert_eq!(
        code_of(&impose(&mut rig, &from(2, 0x32))),
        code::NO_ROOM_FOR_SHORTCUT
    );
    assert_eq!(code_of(&impose(&mut rig, &from(2, 0x31))), code::OK);
    assert_eq!(
        code_of(&impose(&mut rig, &from(3, 0x31))),
        code::NO_ROOM_FOR_ENTRY
    );
    assert_eq!(
        code_of(&impose(&mut rig, &from(3, 0x32))),
        code::NO_ROOM_FOR_EITHER
    );
    assert_eq!(
        code_of(&impose(&mut rig, &from(2, 0x31))),
        code::OK,
        "a refresh needs no room"
    );
    assert_eq!(
        (
            rig.counters().egress_limit,
            rig.counters().imposition_replies[&0x81]
        ),
        (3, 1)
    );
    // A further call is refused, too.
    let conn = ConnId(ConnId::INCOMING + 7);
    let out = rig.offer(conn, Some(address(0x33, 0x51)), DATA);
    assert_eq!(
        out,
        [Output::Atm(AtmRequest::Release {
            conn,
            cause: Cause::RESOURCES
        })]
    );
}

#[test]
fn untagged_path_looks_up_caller_and_destination() {
    let mut config = MpcConfig::new(CONTROL, DATA);
    config.tag = false;
    let mut rig = called_with(config);
    let reply = impose(&mut rig, &imposition(1, 1200));
    assert_eq!(
        Tag::of(&reply),
        Ok(Some(Tag::Wanted)),
        "the wish comes back unfulfilled"
    );
    let data = rig.call_in(1, PEER, DATA);
    assert_eq!(delivered(&arrive(&mut rig, data, None)).len(), 1);
    // The same destination from another caller was not imposed.
    let other = rig.call_in(2, address(0x13, 0x51), DATA);
    assert!(delivered(&arrive(&mut rig, other, None)).is_empty());
    assert_eq!(rig.counters().egress_misses, 1);
    // A repeated imposition changes nothing; a second header needs a tag to be distinguished.
    rig.associate(MacAddr([2, 0, 0, 0, 0, 0x22]), mps_tlv(MPS_2));
    let second = rig.call_in(3, MPS_2, CONTROL);
    let mut wish = imposition(1, 1200);
    wish.dll.header[11] = 0x22;
    let reply = control_packets(&rig.control(second, &wish.packet()))[0]
        .1
        .clone();
    let tag = tag_of(&reply);
    assert_eq!(delivered(&arrive(&mut rig, data, Some(tag)))[0].1[11], 0x22);
    assert_eq!(delivered(&arrive(&mut rig, data, None))[0].1[11], 0x21);
    // Without the wish for a tag the imposition is refused.
    wish.want_tag = false;
    wish.dll.cache_id = 2;
    let reply = control_packets(&rig.control(second, &wish.packet()))[0]
        .1
        .clone();
    assert_eq!(code_of(&reply), code::OTHER);
}

#[test]
fn no_wish_no_tag() {
    let mut rig = called();
    let reply = impose(
        &mut rig,
        &Imposition {
            want_tag: false,
            ..imposition(1, 1200)
        },
    );
    assert_eq!((Tag::of(&reply), code_of(&reply)), (Ok(None), code::OK));
    let data = rig.call_in(1, PEER, DATA);
    assert_eq!(delivered(&arrive(&mut rig, data, None)).len(), 1);
}

#[test]
fn elan_ids_choose_the_interface() {
    let mut rig = called();
    rig.input(Input::LecUp {
        itf: 3,
        elan_id: 8,
        mtu: 9180,
    });
    let mut wish = imposition(1, 1200);
    wish.dll.elan_id = 8;
    let reply = impose(&mut rig, &wish);
    assert_eq!(reply.common().unwrap().cies[0].mtu, 9180);
    assert_eq!(egress_rows(&rig)[0].itf, 3);
    // 0 is "some ELAN": the ELAN on which the MPS is known.
    let mut vague = imposition(2, 1200);
    vague.dll.elan_id = 0;
    impose(&mut rig, &vague);
    assert_eq!(
        egress_rows(&rig)
            .iter()
            .map(|row| row.itf)
            .collect::<Vec<_>>(),
        [3, 0]
    );
}

#[test]
fn miss_sends_a_data_plane_purge_but_not_for_each_packet() {
    let mut rig = called();
    let data = rig.call_in(1, PEER, DATA);
    let out = arrive(&mut rig, data, Some(99));
    assert!(delivered(&out).is_empty());
    let sent = control_packets(&out);
    assert_eq!(sent, [(data, mpoa::data_plane_purge(DATA, None, OWN, 32))]);
    for _ in 0..100 {
        assert!(control_packets(&arrive(&mut rig, data, None)).is_empty());
    }
    rig.until(1);
    assert_eq!(control_packets(&arrive(&mut rig, data, None)).len(), 1);
    assert_eq!(rig.counters().egress_misses, 102);
    assert_eq!(rig.counters().data_plane_purges_sent, 2);
}

#[test]
fn what_is_no_ip_packet_is_counted() {
    let mut rig = called();
    let data = rig.call_in(1, PEER, DATA);
    let tagged = mpoa::shortcut_sdu(Some(1), &[0x60; 40]);
    for sdu in [&[][..], &[0xaa; 7], &[0xaa; 30], &tagged, &mpoa::LLC_TAGGED] {
        assert!(rig.atm(AtmEvent::Received { conn: data, sdu }).is_empty());
    }
    assert_eq!(rig.counters().bad_packets, 5);
}

#[test]
fn expiry_purges_with_retries_until_the_reply() {
    let mut rig = called();
    let tag = tag_of(&impose(&mut rig, &imposition(0x101, 20)));
    let data = rig.call_in(1, PEER, DATA);
    assert!(rig.until(19).is_empty());
    let purges = |out: Vec<(u64, Output)>| {
        let sent = |(at, o): (u64, Output)| {
            let packets = control_packets(core::slice::from_ref(&o));
            packets.into_iter().map(move |(_, packet)| (at, packet))
        };
        out.into_iter().flat_map(sent).collect::<Vec<_>>()
    };
    let sent = purges(rig.until(36));
    assert_eq!(
        sent.iter().map(|(at, _)| *at).collect::<Vec<_>>(),
        [20, 25, 35]
    );
    let request = sent[0].1.clone();
    assert!(sent.iter().all(|(_, packet)| *packet == request));
    assert_eq!(request.op, op::EGRESS_PURGE_REQUEST);
    let dll = DllHeader::of(&request).unwrap().unwrap();
    assert_eq!(
        (dll.cache_id, dll.elan_id, dll.header.len()),
        (0x101, ELAN, 0)
    );
    // A purging entry forwards nothing.
    assert!(delivered(&arrive(&mut rig, data, Some(tag))).is_empty());
    assert_eq!(
        egress_rows(&rig)[0].state,
        EgressState::Purging { usable: false }
    );
    let reply = |id: u32| {
        let mut reply = request
            .reply(request.common().unwrap().cies.clone())
            .unwrap();
        if let aerostat_wire::nhrp::Body::Common(common) = &mut reply.body {
            common.request_id = common.request_id.wrapping_add(id);
        }
        reply
    };
    rig.control(SENDER, &reply(1));
    assert_eq!(
        (egress_rows(&rig).len(), rig.counters().unsolicited),
        (1, 1)
    );
    rig.control(SENDER, &reply(0));
    assert_eq!(
        (egress_rows(&rig).len(), rig.counters().egress_purge_replies),
        (0, 1)
    );
    assert!(purges(rig.until(100)).is_empty());
}

#[test]
fn unanswered_purge_ends_after_p5() {
    let mut rig = called();
    impose(&mut rig, &imposition(0x101, 10));
    rig.until(49);
    assert_eq!(egress_rows(&rig).len(), 1);
    rig.until(50);
    assert!(egress_rows(&rig).is_empty());
    assert_eq!(rig.counters().egress_purges_sent, 4);
}

#[test]
fn lec_down_purges_its_entries() {
    let mut rig = called();
    impose(&mut rig, &imposition(0x101, 1200));
    let sent = control_packets(&rig.input(Input::LecDown { itf: 0 }));
    assert_eq!((sent.len(), sent[0].1.op), (1, op::EGRESS_PURGE_REQUEST));
}

#[test]
fn a_station_that_leaves_its_bridge_is_purged() {
    let mut rig = called();
    let tag = tag_of(&impose(&mut rig, &imposition(0x101, 1200)));
    let data = rig.call_in(1, PEER, DATA);
    assert_eq!(delivered(&arrive(&mut rig, data, Some(tag))).len(), 1);
    let mac = OWN_MAC;
    let other = MacAddr([2, 9, 9, 9, 9, 9]);
    for (itf, mac) in [(0, other), (7, mac)] {
        assert!(control_packets(&rig.input(Input::StationLeft { itf, mac })).is_empty());
        assert_eq!(egress_rows(&rig)[0].state, EgressState::Active);
    }
    let sent = control_packets(&rig.input(Input::StationLeft { itf: 0, mac }));
    assert_eq!(sent.len(), 1);
    assert_eq!(sent[0].1.op, op::EGRESS_PURGE_REQUEST);
    let purging = EgressState::Purging { usable: false };
    assert_eq!(egress_rows(&rig)[0].state, purging);
    assert!(delivered(&arrive(&mut rig, data, Some(tag))).is_empty());
}

#[test]
fn imposition_during_a_purge_makes_a_new_entry() {
    let mut rig = called();
    impose(&mut rig, &imposition(0x101, 10));
    rig.until(12);
    let tag = tag_of(&impose(&mut rig, &imposition(0x101, 1200)));
    let data = rig.call_in(1, PEER, DATA);
    assert_eq!(delivered(&arrive(&mut rig, data, Some(tag))).len(), 1);
    let late: Vec<Output> = rig.until(55).into_iter().map(|(_, o)| o).collect();
    assert!(
        control_packets(&late).is_empty(),
        "the old purge is not repeated"
    );
}

#[test]
fn accepted_shortcut_without_entries_lingers_then_closes() {
    let mut rig = called();
    let data = rig.call_in(1, PEER, DATA);
    let gone =
        |out: Vec<(u64, Output)>| releases(&out.into_iter().map(|(_, o)| o).collect::<Vec<_>>());
    assert!(gone(rig.until(19)).is_empty());
    impose(&mut rig, &imposition(1, 100));
    rig.control(SENDER, &mpoa::keep_alive(1, MPS, 500));
    assert!(gone(rig.until(99)).is_empty(), "an entry keeps it");
    impose(&mut rig, &imposition(1, 0));
    assert!(gone(rig.until(118)).is_empty());
    assert_eq!(gone(rig.until(119)), [data]);
}

#[test]
fn accepted_shortcut_carries_the_way_back() {
    let mut rig = called();
    impose(&mut rig, &imposition(1, 1200));
    let data = rig.call_in(1, PEER, DATA);
    let request = control_packets(&rig.flow(TARGET))[0].1.clone();
    let out = rig.control(SENDER, &answer(&request, PEER, 1200, Some(TAG)));
    assert!(connects(&out).is_empty(), "no second connection");
    assert_eq!(sdus(&rig.send(TARGET))[0].0, data);
    // The connection outlives the entries of either direction.
    impose(&mut rig, &imposition(1, 0));
    assert_eq!(sdus(&rig.send(TARGET))[0].0, data);
    let purge = mpoa::purge_request(9, MPS, MPS_IP, OWN, TARGET, 32);
    assert!(releases(&rig.control(SENDER, &purge)).is_empty());
}

#[test]
fn data_may_overtake_the_news_of_the_connection() {
    let mut rig = called();
    let tag = tag_of(&impose(&mut rig, &imposition(1, 1200)));
    let conn = ConnId(ConnId::INCOMING + 1);
    rig.offer(conn, Some(PEER), DATA);
    assert_eq!(delivered(&arrive(&mut rig, conn, Some(tag))).len(), 1);
    assert_eq!(story(&rig.connected(conn, 70)), ["mpc.shortcut.up"]);
    assert_eq!(
        rig.mpc.snapshot(rig.now).shortcuts[0].vc,
        Some(Vc::new(0, 70))
    );
}

#[test]
fn calls_that_make_no_sense_are_refused() {
    let mut rig = called();
    let conn = ConnId(ConnId::INCOMING + 9);
    let refused = |cause| [Output::Atm(AtmRequest::Release { conn, cause })];
    assert_eq!(rig.offer(conn, None, DATA), refused(Cause::REJECTED));
    assert_eq!(
        rig.offer(conn, Some(PEER), address(0x11, 0)),
        refused(Cause::INCOMPATIBLE)
    );
    let (sap, qos) = (Sap::LLC, Qos::ubr_multipoint(1536));
    let (calling, called) = (Some(PEER), DATA);
    let event = AtmEvent::Incoming {
        conn,
        calling,
        called,
        sap,
        qos,
        multipoint: true,
    };
    assert_eq!(rig.atm(event), refused(Cause::REJECTED));
}

#[test]
fn the_same_with_the_daemon_in_a_process_of_its_own() {
    across_a_boundary(&[
        new_entry_is_accepted_with_a_tag,
        refresh_keeps_the_tag_and_takes_the_new_header,
        entries_have_different_tags,
        tags_wrap_past_zero_and_past_those_in_use,
        holding_time_zero_removes,
        without_dll_header_nothing_happens,
        what_cannot_be_accepted_is_refused_with_its_code,
        limits_give_81_82_83,
        untagged_path_looks_up_caller_and_destination,
        no_wish_no_tag,
        elan_ids_choose_the_interface,
        miss_sends_a_data_plane_purge_but_not_for_each_packet,
        what_is_no_ip_packet_is_counted,
        expiry_purges_with_retries_until_the_reply,
        unanswered_purge_ends_after_p5,
        lec_down_purges_its_entries,
        imposition_during_a_purge_makes_a_new_entry,
        accepted_shortcut_without_entries_lingers_then_closes,
        accepted_shortcut_carries_the_way_back,
        calls_that_make_no_sense_are_refused,
    ]);
}
