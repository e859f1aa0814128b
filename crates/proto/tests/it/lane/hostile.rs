//! Hosts that forge frames, make forbidden calls, or flood.

use super::*;
use aerostat_proto::{AtmRequest, ConnId};
use aerostat_wire::lane::{Control, ControlFrame, DataFrame, Flags, LanDestination, OpCode};
use aerostat_wire::{Qos, Sap, Vc};
use proptest::prelude::*;

fn call_from_outside(w: &mut World<Node>, called: AtmAddress, calling: AtmAddress, sap: Sap) {
    let outsider = w.users.len() - 1;
    let request = AtmRequest::Connect {
        conn: ConnId(900),
        calling,
        called,
        sap,
        qos: Qos::ubr(1516),
        multipoint: false,
    };
    w.net.request(outsider, request, w.now);
}

/// A host on the network without a LANE client: a client that is never started, so that its number can be used.
fn add_outsider(w: &mut World<Node>) -> usize {
    w.add(Node::Lec(Box::new(Lec::new(lec_config(0x70)))))
}

#[test]
fn unknown_callers_are_refused() {
    let mut w = joined_world(1);
    let outsider = add_outsider(&mut w);
    for (called, sap) in [
        (address(0xa2), Sap::LANE_MULTICAST_ETHERNET),
        (address(1), Sap::LANE_CONTROL),
        (address(1), Sap::LANE_MULTICAST_ETHERNET),
    ] {
        let before = w.net.calls();
        call_from_outside(&mut w, called, address(0x71), sap);
        w.run_for(Duration::from_secs(10));
        assert_eq!(w.net.calls(), before, "{called} took a call for {sap:?}");
    }
    w.replace(outsider, Node::Lec(Box::new(Lec::new(lec_config(0x70)))));
    finish(w);
}

#[test]
fn forged_control_frames_change_nothing() {
    let mut w = joined_world(2);
    unicast(&mut w, LEC0, LEC0 + 1, 1);
    w.run_for(Duration::from_secs(1));
    let before = lec_of(&w, LEC0).snapshot();
    let outsider = add_outsider(&mut w);
    // On a data direct connection, which any host may open.
    call_from_outside(&mut w, address(1), address(0x71), Sap::LANE_DATA_ETHERNET);
    w.run_for(Duration::from_millis(10));
    let mut forged = ControlFrame::new(OpCode::ARP.response());
    forged.lecid = before.lecid;
    forged.target = LanDestination::mac(mac(2));
    forged.target_atm = address(0x71);
    for op in [0x0106, 0x0008, 0x0009, 0x0102, 0x0107, 0x0006, 0x7777] {
        forged.op = OpCode(op);
        forged.flags = Flags::TOPOLOGY_CHANGE;
        for transaction in 0..50 {
            forged.transaction = transaction;
            let sdu = forged.encode();
            let conn = ConnId(900);
            w.net
                .request(outsider, AtmRequest::Send { conn, sdu }, w.now);
        }
    }
    w.run_for(Duration::from_secs(1));
    let after = lec_of(&w, LEC0).snapshot();
    assert_eq!(after.cache, before.cache);
    assert!(!after.topology_change);
    assert!(after.control.bad >= before.control.bad + 350);
    w.replace(outsider, Node::Lec(Box::new(Lec::new(lec_config(0x70)))));
    w.run_for(Duration::from_secs(1));
    finish(w);
}

#[test]
fn les_knows_whose_frame_it_is() {
    let mut w = joined_world(2);
    let outsider = add_outsider(&mut w);
    call_from_outside(&mut w, address(0xa1), address(0x71), Sap::LANE_CONTROL);
    w.run_for(Duration::from_millis(10));
    let send = |w: &mut World<Node>, frame: &ControlFrame| {
        let (conn, sdu) = (ConnId(900), frame.encode());
        w.net
            .request(outsider, AtmRequest::Send { conn, sdu }, w.now);
        w.run_for(Duration::from_millis(10));
    };
    // A join in the name of another client, and requests with the LECID of another client.
    let mut join = ControlFrame::new(OpCode::JOIN);
    join.source_atm = address(1);
    send(&mut w, &join);
    for op in [
        OpCode::REGISTER,
        OpCode::ARP,
        OpCode::NARP,
        OpCode::TOPOLOGY,
    ] {
        let mut forged = ControlFrame::new(op);
        forged.lecid = 1;
        forged.source = LanDestination::mac(mac(0x71));
        forged.source_atm = address(0x71);
        send(&mut w, &forged);
    }
    let les = les_of(&w).snapshot();
    assert_eq!(les.counters.joins_refused, 1);
    assert_eq!(les.counters.forged, 4);
    assert_eq!(les.counters.joins, 2);
    // A caller that does not join is dropped after S4.
    w.run_for(Duration::from_secs(121));
    assert_eq!(les_of(&w).snapshot().counters.join_timeouts, 1);
    assert_eq!(les_of(&w).snapshot().clients.len(), 2);
    w.replace(outsider, Node::Lec(Box::new(Lec::new(lec_config(0x70)))));
    finish(w);
}

#[test]
fn bus_drops_frames_in_another_name() {
    let mut w = joined_world(2);
    w.take_notes();
    let lecid = lec_of(&w, LEC0 + 1).snapshot().lecid;
    let sdu = DataFrame::encode(lecid, &frame(LEC0, MacAddr::BROADCAST, 9));
    // Client 0's multicast send connection, as its host would use it.
    for conn in (1..20).map(ConnId) {
        let sdu = sdu.clone();
        w.net.request(LEC0, AtmRequest::Send { conn, sdu }, w.now);
    }
    w.run_for(Duration::from_millis(10));
    assert_eq!(bus_of(&w).snapshot().counters.forged, 1);
    assert!(delivered(&mut w, LEC0 + 1).is_empty());
    w.net.misuse = 0;
    finish(w);
}

#[test]
fn thousands_of_addresses_stay_bounded() {
    let mut small = lec_config(0);
    small.limits.cache = 1024;
    let mut w = world(vec![small, lec_config(1)]);
    for who in [LEC0, LEC0 + 1] {
        start(&mut w, who);
    }
    w.run_until(Instant::from_millis(500));
    // Unknown destinations: as many as a scan of a /16 produces.
    for number in 0..5000_u32 {
        let mut m = mac(0);
        m.0[2..6].copy_from_slice(&(number + 0x1000).to_be_bytes());
        let octets = frame(LEC0, m, number);
        tell(&mut w, LEC0, lec::Input::Transmit(octets));
        w.run_for(Duration::from_micros(100));
    }
    let snapshot = lec_of(&w, LEC0).snapshot();
    assert_eq!(snapshot.cache.len(), 1024);
    assert!(snapshot.control.cache_full > 0);
    w.run_for(Duration::from_secs(5));
    assert!(lec_of(&w, LEC0).snapshot().cache.is_empty(), "C20, C13");
    // Announcements of a thousand unknown addresses: targetless LE_ARP with TLVs, through the LES.
    let lecid = lec_of(&w, LEC0 + 1).snapshot().lecid;
    let mut arp = ControlFrame::new(OpCode::ARP).with_tlvs(vec![mps(1).to_tlv()]);
    arp.lecid = lecid;
    arp.source_atm = address(2);
    for number in 0..2000_u32 {
        let mut m = mac(0);
        m.0[2..6].copy_from_slice(&(number + 0x1000).to_be_bytes());
        arp.source = LanDestination::mac(m);
        let sdu = Control::Frame(Box::new(arp.clone())).encode();
        // Control direct is the second connection that client 1 opened.
        let conn = ConnId(2);
        w.net
            .request(LEC0 + 1, AtmRequest::Send { conn, sdu }, w.now);
    }
    w.run_for(Duration::from_secs(1));
    let after = lec_of(&w, LEC0).snapshot();
    assert_eq!(after.cache.len(), 64, "servers that announce themselves");
    assert!(after.control.cache_full > snapshot.control.cache_full);
    finish(w);
}

/// Sends a frame on the control direct connection of client `who`, as its host could; control direct is the second
/// connection that the client opened.
fn forge(w: &mut World<Node>, who: usize, frame: &ControlFrame) {
    let (conn, sdu) = (ConnId(2), frame.encode());
    w.net.request(who, AtmRequest::Send { conn, sdu }, w.now);
}

/// A member claims in every possible way that the MAC address of client 1 is at its own ATM address, or at an unknown
/// one.
#[test]
fn nobody_draws_the_frames_of_another() {
    let mut w = joined_world(3);
    let thief = LEC0 + 2;
    unicast(&mut w, LEC0, LEC0 + 1, 1);
    w.run_for(Duration::from_secs(5));
    w.take_notes();
    let before = lec_of(&w, LEC0).snapshot().cache;
    let forged = les_of(&w).snapshot().counters.forged;
    let mut claim = ControlFrame::new(OpCode::ARP).with_tlvs(vec![mps(2).to_tlv()]);
    claim.lecid = lec_of(&w, thief).snapshot().lecid;
    claim.source = LanDestination::mac(mac(2));
    claim.source_atm = address(3);
    let mut sent = 0;
    let mut say = |w: &mut World<Node>, frame: &ControlFrame| {
        forge(w, thief, frame);
        sent += 1;
        w.run_for(Duration::from_millis(10));
    };
    // Targetless LE_ARP, LE_ARP with a target, LE_NARP in both forms.
    say(&mut w, &claim);
    claim.target = LanDestination::mac(mac(9));
    say(&mut w, &claim);
    claim.op = OpCode::NARP;
    claim.target = LanDestination::mac(mac(2));
    say(&mut w, &claim);
    claim.source = LanDestination::ABSENT;
    say(&mut w, &claim);
    // For an address that no client has, but in the name of another host.
    claim.op = OpCode::ARP;
    claim.source = LanDestination::mac(mac(9));
    claim.source_atm = address(2);
    claim.target = LanDestination::ABSENT;
    say(&mut w, &claim);
    // Answers to no request of the client, with every transaction that client 0 may have used.
    let mut answer = ControlFrame::new(OpCode::ARP.response());
    answer.lecid = lec_of(&w, LEC0).snapshot().lecid;
    answer.target = LanDestination::mac(mac(2));
    answer.target_atm = address(3);
    for transaction in 0..40 {
        answer.transaction = transaction;
        say(&mut w, &answer);
    }
    assert_eq!(les_of(&w).snapshot().counters.forged, forged + sent);
    // The member cannot register the address either, nor unregister it.
    let mut register = ControlFrame::new(OpCode::REGISTER);
    register.lecid = lec_of(&w, thief).snapshot().lecid;
    register.source = LanDestination::mac(mac(2));
    register.source_atm = address(3);
    forge(&mut w, thief, &register);
    register.op = OpCode::UNREGISTER;
    forge(&mut w, thief, &register);
    w.run_for(Duration::from_secs(1));
    let les = les_of(&w).snapshot();
    assert_eq!(les.counters.registrations_refused, 1);
    assert!(
        les.clients
            .iter()
            .any(|row| row.address == address(2) && row.macs == [mac(2)])
    );
    assert_eq!(lec_of(&w, LEC0).snapshot().cache, before);
    unicast(&mut w, LEC0, LEC0 + 1, 2);
    w.run_for(Duration::from_secs(1));
    assert_eq!(delivered(&mut w, LEC0 + 1), [2]);
    finish(w);
}

/// A member that asks for a thousand addresses a second and registers as many is bounded and counted; the others
/// neither lose a frame nor learn an address.
#[test]
fn a_flood_of_control_frames_costs_the_others_nothing() {
    let mut w = joined_world(3);
    let flooder = LEC0 + 2;
    w.take_notes();
    let lecid = lec_of(&w, flooder).snapshot().lecid;
    let mut frame = ControlFrame::new(OpCode::ARP);
    (frame.lecid, frame.source_atm) = (lecid, address(3));
    let mut expected = Vec::new();
    for number in 0..3000_u32 {
        let mut strange = mac(0);
        strange.0[2..6].copy_from_slice(&(number + 0x10_0000).to_be_bytes());
        frame.op = if number % 3 == 2 {
            OpCode::REGISTER
        } else {
            OpCode::ARP
        };
        frame.source = LanDestination::mac(if number % 3 == 2 { strange } else { mac(3) });
        frame.target = match number % 3 {
            0 => LanDestination::mac(strange),
            1 => LanDestination::mac(mac((number % 2) as u8 + 1)),
            _ => LanDestination::ABSENT,
        };
        frame.transaction = number;
        forge(&mut w, flooder, &frame);
        w.run_for(Duration::from_millis(1));
        if number % 10 == 0 {
            unicast(&mut w, LEC0, LEC0 + 1, number);
            expected.push(number);
        }
    }
    w.run_for(Duration::from_secs(2));
    assert_eq!(delivered(&mut w, LEC0 + 1), expected);
    let les = les_of(&w).snapshot();
    let own = les.clients.iter().find(|row| row.lecid == lecid);
    assert_eq!(own.map(|row| row.macs.len()), Some(256), "with its own");
    assert_eq!(les.counters.registrations_refused, 1000 - 255);
    assert_eq!(les.counters.arp_unknown, 1000);
    assert!(les.counters.arp_requests >= 2000);
    for who in [LEC0, LEC0 + 1] {
        assert!(lec_of(&w, who).snapshot().cache.len() <= 2);
    }
    // Its registrations end with the client.
    stop(&mut w, flooder);
    w.run_for(Duration::from_secs(1));
    let macs: usize = les_of(&w)
        .snapshot()
        .clients
        .iter()
        .map(|row| row.macs.len())
        .sum();
    assert_eq!(macs, 2);
    finish(w);
}

/// One host calls the LES and the LECS as often as it can, and sends nothing: other clients can still join.
#[test]
fn calls_of_one_host_do_not_take_all_the_room() {
    let mut w = world((0..2).map(lec_config).collect());
    let outsider = add_outsider(&mut w);
    w.run_for(Duration::from_millis(10));
    let before = w.net.calls();
    for (called, first) in [(address(0xa1), 1000), (address(0xa0), 3000)] {
        for number in 0..1100 {
            let request = AtmRequest::Connect {
                conn: ConnId(first + number),
                calling: address(0x71).with_selector(number as u8),
                called,
                sap: Sap::LANE_CONTROL,
                qos: Qos::ubr(1516),
                multipoint: false,
            };
            w.net.request(outsider, request, w.now);
        }
        w.run_for(Duration::from_millis(20));
    }
    assert_eq!(w.net.calls(), before + 16 + 128);
    assert_eq!(les_of(&w).snapshot().counters.calls_refused, 1100 - 16);
    let lecs = |w: &World<Node>| match &w.users[LECS] {
        Node::Lecs(lecs) => lecs.counters(),
        _ => panic!("no LECS"),
    };
    assert_eq!(lecs(&w).calls_refused, 1100 - 128);
    for who in [LEC0, LEC0 + 1] {
        start(&mut w, who);
    }
    w.run_for(Duration::from_secs(5));
    assert_eq!(lec_of(&w, LEC0 + 1).state(), lec::LecState::Operational);
    // The connections of a silent caller are released.
    w.run_for(Duration::from_secs(120));
    assert_eq!(les_of(&w).snapshot().counters.join_timeouts, 16);
    assert!(lecs(&w).idle >= 128);
    w.replace(outsider, Node::Lec(Box::new(Lec::new(lec_config(0x70)))));
    finish(w);
}

/// The LECS answers valid requests, counts frames that it cannot decode, and keeps no state of them.
#[test]
fn the_lecs_and_nonsense() {
    let mut w = joined_world(1);
    let outsider = add_outsider(&mut w);
    call_from_outside(&mut w, address(0xa0), address(0x71), Sap::LANE_CONTROL);
    w.run_for(Duration::from_millis(10));
    let calls = w.net.calls();
    let mut frame = ControlFrame::new(OpCode::CONFIGURE);
    frame.elan = ElanName::new("nowhere").unwrap();
    let octets = frame.encode();
    let register = ControlFrame::new(OpCode::REGISTER).encode();
    for sdu in [
        octets.clone(),
        octets[..50].to_vec(),
        vec![0xff; 108],
        register,
    ] {
        let conn = ConnId(900);
        w.net
            .request(outsider, AtmRequest::Send { conn, sdu }, w.now);
    }
    w.run_for(Duration::from_millis(10));
    let Node::Lecs(lecs) = &w.users[LECS] else {
        panic!("no LECS");
    };
    let counters = lecs.counters();
    assert_eq!(
        (counters.granted, counters.refused, counters.bad),
        (1, 1, 3)
    );
    assert_eq!(w.net.calls(), calls);
    w.replace(outsider, Node::Lec(Box::new(Lec::new(lec_config(0x70)))));
    finish(w);
}

/// Frames similar enough to valid frames to pass the first checks.
fn any_sdu() -> impl Strategy<Value = Vec<u8>> {
    let frame = (
        0..0x10c_u16,
        0..4_u32,
        0..4_u16,
        0..0x400_u16,
        any::<[u8; 4]>(),
    );
    let control = (frame, prop::collection::vec(any::<u8>(), 0..40)).prop_map(
        |((op, transaction, lecid, flags, pick), tail)| {
            let mut f = ControlFrame::new(OpCode(op));
            (f.transaction, f.lecid, f.flags) = (transaction, lecid, Flags(flags));
            f.source = LanDestination::mac(mac(pick[0] % 4));
            f.target = LanDestination::mac(mac(pick[1] % 4));
            f.source_atm = address(pick[2] % 4);
            f.target_atm = address(pick[3] % 4);
            f.tlvs.missing = pick[0] & 1;
            f.tlvs.trailing = tail;
            f.encode()
        },
    );
    let data = (0..4_u16, prop::collection::vec(0..3_u8, 1..80))
        .prop_map(|(lecid, frame)| DataFrame::encode(lecid, &frame));
    let noise = prop::collection::vec(any::<u8>(), 1..200);
    prop_oneof![4 => control, 1 => data, 1 => noise]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever frames come on its connections, no machine panics, breaks a law, or keeps a connection in the end.
    #[test]
    fn any_sdu_on_any_connection(
        sdus in prop::collection::vec((any_sdu(), 0..6_usize, 0..5_u32), 1..80)
    ) {
        let mut w = joined_world(3);
        for who in LEC0..LEC0 + 3 {
            unicast(&mut w, who, LEC0 + (who - LEC0 + 1) % 3, 1);
        }
        w.run_for(Duration::from_secs(1));
        for (sdu, who, conn) in sdus {
            for base in [0, w.net.incoming_base(who)] {
                let conn = ConnId(base + conn);
                let event = AtmEvent::Received { conn, sdu: &sdu[..] };
                w.with(who, |node, now| node.event(event, now));
            }
            w.run_for(Duration::from_millis(100));
        }
        w.run_for(Duration::from_secs(30));
        finish(w);
    }

    /// The same for events of the ATM service that name unknown connections, or come at a bad time.
    #[test]
    fn any_event_at_any_time(
        events in prop::collection::vec((0..6_usize, 0..5_u8, 0..6_u32, any::<bool>()), 1..60)
    ) {
        let mut w = world((0..3).map(lec_config).collect());
        for who in LEC0..LEC0 + 3 {
            start(&mut w, who);
        }
        for (who, kind, conn, high) in events {
            let conn = ConnId(conn + if high { ConnId::INCOMING } else { 0 });
            let party = aerostat_proto::PartyId(conn.0 as u16 % 8);
            let cause = aerostat_proto::Cause::TEMPORARY;
            let event = match kind {
                0 => AtmEvent::Connected { conn, vc: Vc::new(0, 99), qos: Qos::ubr(0) },
                1 => AtmEvent::Up,
                2 => AtmEvent::PartyAdded { conn, party },
                3 => AtmEvent::PartyGone { conn, party, cause },
                _ => AtmEvent::Down,
            };
            w.with(who, |node, now| node.event(event, now));
            w.run_for(Duration::from_millis(2));
        }
        w.run_for(Duration::from_secs(60));
        for who in 0..w.users.len() {
            stop(&mut w, who);
        }
        w.run_for(Duration::from_secs(5));
        for user in &w.users {
            prop_assert_eq!(user.poll_timeout(), None);
        }
    }
}
