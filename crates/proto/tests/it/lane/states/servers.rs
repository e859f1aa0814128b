//! Clients as the servers see them: at the LES and the LECS. The BUS is in `broadcast.rs`.

use super::*;

pub(super) fn les() -> Bench {
    let mut b = Bench::new(new_les());
    let Node::Les(les) = &mut b.node else {
        unreachable!()
    };
    les.handle_input(les::Input::Start, b.now).unwrap();
    b.drain();
    b.requests.clear();
    b
}
pub(super) fn of_les(b: &Bench) -> les::LesSnapshot {
    match &b.node {
        Node::Les(les) => les.snapshot(),
        _ => panic!("no LES"),
    }
}
pub(super) fn request(op: OpCode, who: u8, lecid: u16) -> ControlFrame {
    let mut frame = ControlFrame::new(op);
    (frame.lecid, frame.transaction) = (lecid, 40);
    frame.source = LanDestination::mac(mac(who));
    frame.source_atm = address(who);
    frame
}
/// Joins and leaves that the BUS is told of: last octet of the client's MAC address, LECID.
fn members(b: &Bench) -> Vec<(u8, Option<u16>)> {
    let told = b.notes.iter().filter_map(|note| match note {
        Note::Member(address, member) => {
            Some((address.0[18], member.as_ref().map(|member| member.lecid)))
        }
        _ => None,
    });
    told.collect()
}

/// A client that is connected, joining or joined.
pub(super) fn client(b: &mut Bench, who: u8, state: &str) -> ConnId {
    let conn = b.caller(address(who), Sap::LANE_CONTROL);
    if state != "connected" {
        b.receive(conn, &request(OpCode::JOIN, who, 0));
    }
    if state == "joined" {
        for (conn, _) in b.calls(Sap::LANE_CONTROL) {
            b.distribute = conn;
            b.connected(conn);
        }
        for (conn, party, _) in b.parties() {
            b.event(AtmEvent::PartyAdded { conn, party });
        }
    }
    let rows = of_les(b).clients;
    let row = rows.iter().find(|row| row.address == address(who)).unwrap();
    assert_eq!(row.state, state);
    conn
}

// ---- LES: connected ----

#[test]
fn les_connected_join_granted_adds_the_leaf_first() {
    let mut b = les();
    let conn = client(&mut b, 1, "joining");
    assert!(b.frames().is_empty());
    let (distribute, called) = b.call(Sap::LANE_CONTROL);
    assert_eq!(called, address(1));
    b.connected(distribute);
    let (to, answer) = b.frame();
    assert_eq!(
        (to, answer.status, answer.lecid),
        (conn, Status::SUCCESS, 1)
    );
    assert_eq!(members(&b), [(1, Some(1))]);
}

#[test]
fn les_connected_join_refused_stays_connected_for_s4() {
    let mut b = les();
    client(&mut b, 1, "joined");
    b.frames();
    type Spoil = fn(&mut ControlFrame);
    let twins: [(Spoil, Status); 6] = [
        (
            |frame| frame.source = LanDestination::mac(mac(1)),
            Status::DUPLICATE_LAN,
        ),
        (
            |frame| frame.source = LanDestination::mac(MacAddr::BROADCAST),
            Status::LAN_DESTINATION,
        ),
        (|frame| frame.source_atm = address(1), Status::ATM_ADDRESS),
        (
            |frame| frame.lan_type = LanType::TOKEN_RING,
            Status::PARAMETERS,
        ),
        (
            |frame| frame.elan = ElanName::new("b").unwrap(),
            Status::PARAMETERS,
        ),
        (|frame| frame.version = 2, Status::VERSION),
    ];
    let conn = client(&mut b, 2, "connected");
    for (spoil, status) in twins {
        let mut join = request(OpCode::JOIN, 2, 0);
        spoil(&mut join);
        b.receive(conn, &join);
        assert_eq!(b.frame().1.status, status);
    }
    assert_eq!(of_les(&b).counters.joins_refused, 6);
    b.seconds(119);
    assert!(b.hung_up().is_empty());
    b.seconds(1);
    assert_eq!(b.hung_up(), [conn], "S4 = 120 s");
}

#[test]
fn les_connected_no_join_in_s4_is_released() {
    let mut b = les();
    let conn = client(&mut b, 1, "connected");
    b.seconds(120);
    assert_eq!(b.hung_up(), [conn]);
    assert_eq!(of_les(&b).counters.join_timeouts, 1);
    assert!(members(&b).is_empty());
}

#[test]
fn les_connected_other_requests_are_refused_with_8() {
    let mut b = les();
    let conn = client(&mut b, 1, "connected");
    for op in [
        OpCode::REGISTER,
        OpCode::UNREGISTER,
        OpCode::ARP,
        OpCode::VERIFY,
    ] {
        b.receive(conn, &request(op, 1, 0));
        assert_eq!(b.frame().1.status, Status::REQUESTER);
    }
    for op in [OpCode::NARP, OpCode::TOPOLOGY, OpCode::FLUSH.response()] {
        b.receive(conn, &request(op, 1, 0));
        assert!(b.frames().is_empty());
    }
    assert_eq!(of_les(&b).counters.forged, 7);
}

#[test]
fn les_connected_lost_is_forgotten() {
    let mut b = les();
    let conn = client(&mut b, 1, "connected");
    b.released(conn);
    assert!(of_les(&b).clients.is_empty() && members(&b).is_empty());
    assert_eq!(b.node.poll_timeout(), None);
}

#[test]
fn les_nobody_is_refused() {
    let mut b = les();
    assert!(!b.offer(AtmAddress::ZERO, Sap::LANE_CONTROL).1);
    assert!(!b.offer(address(1), Sap::LANE_DATA_ETHERNET).1);
    assert_eq!(of_les(&b).counters.calls_refused, 2);
}

// ---- LES: joining ----

#[test]
fn les_joining_repeated_join_waits_for_the_leaf() {
    let mut b = les();
    let conn = client(&mut b, 1, "joining");
    b.receive(conn, &request(OpCode::JOIN, 1, 0));
    assert!(b.frames().is_empty());
    assert_eq!(of_les(&b).clients.len(), 1);
}

#[test]
fn les_joining_leaf_refused_for_good_is_served_by_a_copy() {
    let mut b = les();
    let conn = client(&mut b, 1, "joining");
    for _ in 0..3 {
        let (leaf, _) = b.call(Sap::LANE_CONTROL);
        b.released(leaf);
        b.pass(Duration::from_millis(500));
    }
    let (copy, _) = b.call(Sap::LANE_CONTROL);
    b.connected(copy);
    assert_eq!(b.frame().1.status, Status::SUCCESS);
    assert!(of_les(&b).clients[0].copy);
    assert_eq!(of_les(&b).clients[0].state, "joined");
    b.released(conn);
    assert_eq!(b.hung_up(), [copy]);
}

#[test]
fn les_joining_no_leaf_at_all_is_served_on_control_direct() {
    let mut b = les();
    let conn = client(&mut b, 1, "joining");
    for _ in 0..4 {
        let (leaf, _) = b.call(Sap::LANE_CONTROL);
        b.released(leaf);
        b.pass(Duration::from_millis(500));
    }
    assert_eq!(
        b.frame(),
        (conn, {
            let mut answer = request(OpCode::JOIN, 1, 1).response(Status::SUCCESS);
            answer.lan_type = LanType::ETHERNET;
            answer.max_frame = MaxFrameSize::S1516;
            answer.elan = elan();
            answer
        })
    );
    assert_eq!(of_les(&b).clients[0].state, "joined");
}

#[test]
fn les_joining_lost_frees_lecid_and_addresses() {
    let mut b = les();
    let conn = client(&mut b, 1, "joining");
    let (distribute, _) = b.call(Sap::LANE_CONTROL);
    b.released(conn);
    assert_eq!(b.hung_up(), [distribute]);
    assert!(members(&b).is_empty(), "the BUS never heard of it");
    client(&mut b, 1, "joined");
    assert_eq!(of_les(&b).clients[0].lecid, 1);
}

// ---- LES: joined ----

#[test]
fn les_joined_repeated_join_gets_the_same_answer() {
    let mut b = les();
    let conn = client(&mut b, 1, "joined");
    let first = b.frame().1;
    let mut again = request(OpCode::JOIN, 1, 0);
    again.transaction = 41;
    b.receive(conn, &again);
    let second = b.frame().1;
    assert_eq!(
        second,
        ControlFrame {
            transaction: 41,
            ..first
        }
    );
    assert_eq!(members(&b), [(1, Some(1))]);
}

#[test]
fn les_joined_register_and_unregister() {
    let mut b = les();
    let conn = client(&mut b, 1, "joined");
    client(&mut b, 2, "joined");
    b.frames();
    for (mac_of, status) in [
        (0x81, Status::SUCCESS),
        (0x81, Status::SUCCESS),
        (2, Status::DUPLICATE_LAN),
    ] {
        let mut register = request(OpCode::REGISTER, 1, 1);
        register.source = LanDestination::mac(mac(mac_of));
        b.receive(conn, &register);
        assert_eq!(b.frame().1.status, status);
    }
    let mut register = request(OpCode::REGISTER, 1, 1);
    register.source = LanDestination::mac(mac(0x82));
    for (atm, status) in [
        (address(2), Status::DUPLICATE_ATM),
        (address(3), Status::ATM_ADDRESS),
        (address(1).with_selector(9), Status::SUCCESS),
    ] {
        register.source_atm = atm;
        b.receive(conn, &register);
        assert_eq!(b.frame().1.status, status);
    }
    // An address that another client registered stays; an address that the client has not registered is no error.
    let mut unregister = request(OpCode::UNREGISTER, 1, 1);
    for mac_of in [2, 0x81, 0x99] {
        unregister.source = LanDestination::mac(mac(mac_of));
        b.receive(conn, &unregister);
        assert_eq!(b.frame().1.status, Status::SUCCESS);
    }
    let macs: Vec<_> = of_les(&b).clients.into_iter().map(|row| row.macs).collect();
    assert_eq!(macs, [vec![mac(1), mac(0x82)], vec![mac(2)]]);
}

#[test]
fn les_joined_le_arp_by_target() {
    let mut b = les();
    let conn = client(&mut b, 1, "joined");
    client(&mut b, 2, "joined");
    b.frames();
    let mut arp = request(OpCode::ARP, 1, 1);
    for (target, owner) in [
        (mac(2), address(2)),
        (MacAddr::BROADCAST, address(BUS_ADDRESS)),
    ] {
        arp.target = LanDestination::mac(target);
        b.receive(conn, &arp);
        let (to, answer) = b.frame();
        assert_eq!((to, answer.target_atm), (conn, owner));
    }
    // The address is not registered, and there is no proxy that could be asked.
    arp.target = LanDestination::mac(mac(0x77));
    b.receive(conn, &arp);
    assert!(b.frames().is_empty());
    assert_eq!(of_les(&b).counters.arp_unknown, 1);
    // Without a target the request is an announcement.
    arp.target = LanDestination::ABSENT;
    b.receive(conn, &arp);
    assert_eq!(b.frame().0, b.distribute);
}

#[test]
fn les_joined_le_arp_for_unregistered_goes_to_a_proxy() {
    let mut b = les();
    let asker = client(&mut b, 1, "joined");
    let proxy = b.caller(address(2), Sap::LANE_CONTROL);
    let mut join = request(OpCode::JOIN, 2, 0);
    join.flags = Flags::PROXY;
    b.receive(proxy, &join);
    for (conn, party, _) in b.parties() {
        b.event(AtmEvent::PartyAdded { conn, party });
    }
    b.frames();
    let mut arp = request(OpCode::ARP, 1, 1);
    arp.target = LanDestination::mac(mac(0x77));
    b.receive(asker, &arp);
    assert_eq!(b.frame(), (proxy, arp.clone()));
    let mut answer = arp.response(Status::SUCCESS);
    answer.target_atm = address(2);
    b.receive(proxy, &answer);
    assert_eq!(b.frame(), (asker, answer.clone()));
    // An answer in the name of another client is not forwarded, nor an answer to a client that is no member.
    answer.target_atm = address(1);
    b.receive(proxy, &answer);
    (answer.target_atm, answer.lecid) = (address(2), 9);
    b.receive(proxy, &answer);
    assert!(b.frames().is_empty());
    assert_eq!(of_les(&b).counters.forged, 2);
}

#[test]
fn les_joined_announcements_go_to_all() {
    let mut b = les();
    let conn = client(&mut b, 1, "joined");
    client(&mut b, 2, "joined");
    b.frames();
    for op in [OpCode::NARP, OpCode::TOPOLOGY] {
        b.receive(conn, &request(op, 1, 1));
        assert_eq!(b.frame().0, b.distribute);
    }
}

#[test]
fn les_joined_verify_knows_the_bus_alone() {
    let mut b = les();
    let conn = client(&mut b, 1, "joined");
    b.frames();
    for (who, status) in [(BUS_ADDRESS, Status::SUCCESS), (0x44, Status::ATM_ADDRESS)] {
        let mut verify = request(OpCode::VERIFY, 1, 1);
        verify.target_atm = address(who);
        b.receive(conn, &verify);
        assert_eq!(b.frame().1.status, status);
    }
}

#[test]
fn les_joined_flush_answer_goes_to_who_asked() {
    let mut b = les();
    let asker = client(&mut b, 1, "joined");
    let peer = client(&mut b, 2, "joined");
    b.frames();
    let answer = request(OpCode::FLUSH, 1, 1).response(Status::SUCCESS);
    b.receive(peer, &answer);
    assert_eq!(b.frame(), (asker, answer));
}

#[test]
fn les_joined_wrong_lecid_is_refused_with_8() {
    let mut b = les();
    client(&mut b, 1, "joined");
    let conn = client(&mut b, 2, "joined");
    b.frames();
    b.receive(conn, &request(OpCode::REGISTER, 2, 1));
    assert_eq!(b.frame().1.status, Status::REQUESTER);
}

#[test]
fn les_joined_unknown_or_unexpected_is_bad() {
    let mut b = les();
    let conn = client(&mut b, 1, "joined");
    b.frames();
    b.receive(conn, &request(OpCode(0x77), 1, 1));
    b.receive(conn, &request(OpCode::FLUSH, 1, 1));
    b.receive_sdu(conn, &[0xff, 0, 1, 1, 1, 3]);
    b.receive_sdu(conn, &[7; 200]);
    assert!(b.frames().is_empty());
    assert_eq!(of_les(&b).counters.bad, 4);
}

#[test]
fn les_joined_control_direct_lost_forgets_all_of_it() {
    let mut b = les();
    let conn = client(&mut b, 1, "joined");
    client(&mut b, 2, "joined");
    b.released(conn);
    assert_eq!(members(&b), [(1, Some(1)), (2, Some(2)), (1, None)]);
    let rows = of_les(&b).clients;
    assert_eq!((rows.len(), rows[0].lecid), (1, 2));
    let dropped = |request: &AtmRequest| matches!(request, AtmRequest::DropParty { .. });
    assert!(b.requests.iter().any(dropped));
}

#[test]
fn les_joined_leaf_lost_lets_the_client_go() {
    let mut b = les();
    client(&mut b, 1, "joined");
    let conn = client(&mut b, 2, "joined");
    let party = PartyId(1);
    b.event(AtmEvent::PartyGone {
        conn: b.distribute,
        party,
        cause: Cause::OUT_OF_ORDER,
    });
    assert_eq!(b.hung_up(), [conn], "it will join again");
    assert_eq!(members(&b).last(), Some(&(2, None)));
}

#[test]
fn les_joined_group_is_registered_by_many() {
    let mut b = les();
    let mut clients = Vec::new();
    for who in [1, 2, 3] {
        let conn = b.caller(address(who), Sap::LANE_CONTROL);
        let mut join = request(OpCode::JOIN, who, 0);
        // The third client speaks v1.
        join.flags = match who {
            3 => Flags::SELECTIVE_MULTICAST,
            _ => Flags::SELECTIVE_MULTICAST.with(Flags::V2_CAPABLE),
        };
        b.receive(conn, &join);
        for (conn, _) in b.calls(Sap::LANE_CONTROL) {
            b.connected(conn);
        }
        for (conn, party, _) in b.parties() {
            b.event(AtmEvent::PartyAdded { conn, party });
        }
        clients.push(conn);
    }
    b.frames();
    b.notes.clear();
    let group = MacAddr([1, 0, 0x5e, 0, 0, 9]);
    for (who, status) in [
        (1, Status::SUCCESS),
        (2, Status::SUCCESS),
        (3, Status::LAN_DESTINATION),
    ] {
        for op in [OpCode::REGISTER, OpCode::REGISTER] {
            let mut register = request(op, who, who.into());
            register.source = LanDestination::mac(group);
            b.receive(clients[usize::from(who) - 1], &register);
            assert_eq!(b.frame().1.status, status);
        }
    }
    let told = |b: &mut Bench| -> Vec<_> {
        let notes = core::mem::take(&mut b.notes).into_iter();
        let told = notes.filter_map(|note| match note {
            Note::Member(_, Some(member)) => Some((member.lecid, member.groups)),
            _ => None,
        });
        told.collect()
    };
    let some = Some(vec![group]);
    assert_eq!(told(&mut b), [(1, some.clone()), (2, some.clone())]);
    let mut unregister = request(OpCode::UNREGISTER, 1, 1);
    unregister.source = LanDestination::mac(group);
    b.receive(clients[0], &unregister);
    assert_eq!(b.frame().1.status, Status::SUCCESS);
    assert_eq!(told(&mut b), [(1, Some(vec![]))]);
    let groups = of_les(&b).clients.into_iter().map(|row| row.groups);
    assert_eq!(groups.collect::<Vec<_>>(), [Some(vec![]), some, None]);
    // LE_ARP for a group is answered with the BUS, whether the group is registered or not.
    let mut arp = request(OpCode::ARP, 1, 1);
    arp.target = LanDestination::mac(group);
    b.receive(clients[0], &arp);
    assert_eq!(b.frame().1.target_atm, address(BUS_ADDRESS));
}

/// A response with status 0 is an entry of the table. The address 00:00:00:00:00:00 belongs to no station.
#[test]
fn les_registers_what_it_acknowledges() {
    let mut b = les();
    let conn = client(&mut b, 1, "joined");
    b.frames();
    let other = address(9);
    let own = address(1).with_selector(7);
    for (mac, atm) in [
        (MacAddr([2, 0, 0, 0, 9, 9]), own),
        (MacAddr::default(), own),
        (MacAddr([2, 0, 0, 0, 9, 8]), other),
        (MacAddr([1, 0, 0x5e, 0, 0, 9]), own),
    ] {
        let mut register = request(OpCode::REGISTER, 1, 1);
        (register.source, register.source_atm) = (LanDestination::mac(mac), atm);
        b.receive(conn, &register);
        let acknowledged = b.frame().1.status == Status::SUCCESS;
        let mut rows = of_les(&b).clients.into_iter();
        let kept = rows.any(|row| row.macs.contains(&mac));
        assert_eq!(acknowledged, kept, "{mac} {atm}");
        assert_eq!(kept, mac.0[5] == 9 && mac.0[0] == 2, "{mac} {atm}");
    }
}

// ---- LECS ----

fn lecs() -> Bench {
    let mut b = Bench::new(new_lecs());
    let Node::Lecs(lecs) = &mut b.node else {
        unreachable!()
    };
    lecs.handle_input(lecs::Input::Start, b.now).unwrap();
    b.drain();
    b.requests.clear();
    b
}

#[test]
fn lecs_connected_configure_is_answered_every_time() {
    let mut b = lecs();
    let conn = b.caller(address(1), Sap::LANE_CONTROL);
    let mut configure = request(OpCode::CONFIGURE, 1, 0);
    for (name, status) in [("elan1", Status::SUCCESS), ("b", Status::NO_CONFIGURATION)] {
        configure.elan = ElanName::new(name).unwrap();
        b.receive(conn, &configure);
        let (to, answer) = b.frame();
        assert_eq!((to, answer.status), (conn, status));
    }
    assert!(b.hung_up().is_empty(), "the client releases");
}

#[test]
fn lecs_connected_idle_for_s4_is_released() {
    let mut b = lecs();
    let conn = b.caller(address(1), Sap::LANE_CONTROL);
    b.seconds(100);
    b.receive(conn, &request(OpCode::CONFIGURE, 1, 0));
    b.seconds(119);
    assert!(b.hung_up().is_empty());
    b.seconds(1);
    assert_eq!(b.hung_up(), [conn]);
    assert_eq!(b.node.poll_timeout(), None);
}

#[test]
fn lecs_connected_lost_is_forgotten() {
    let mut b = lecs();
    let conn = b.caller(address(1), Sap::LANE_CONTROL);
    b.released(conn);
    assert_eq!(b.node.poll_timeout(), None);
    b.receive(conn, &request(OpCode::CONFIGURE, 1, 0));
    assert!(b.frames().is_empty());
}

#[test]
fn lecs_connected_other_frames_are_bad() {
    let mut b = lecs();
    let conn = b.caller(address(1), Sap::LANE_CONTROL);
    b.receive(conn, &request(OpCode::JOIN, 1, 0));
    b.receive_sdu(conn, &[0xff, 0, 1, 1, 0, 3]);
    b.receive_sdu(conn, &[5; 40]);
    assert!(b.frames().is_empty());
    let Node::Lecs(lecs) = &b.node else {
        unreachable!()
    };
    assert_eq!(lecs.counters().bad, 3);
}
