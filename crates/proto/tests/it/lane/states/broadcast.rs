//! Clients as the BUS sees them.

use super::servers::request;
use super::*;
use aerostat_proto::lane::ServerParams;

fn bus() -> Bench {
    let mut b = Bench::new(new_bus());
    let Node::Bus(bus) = &mut b.node else {
        unreachable!()
    };
    bus.handle_input(bus::Input::Start, b.now).unwrap();
    b.drain();
    b.requests.clear();
    b
}
fn member(b: &mut Bench, who: u8, joined: bool) {
    let member = joined.then(|| Member {
        lecid: who.into(),
        groups: None,
        macs: None,
    });
    tell_member(b, who, member);
}
fn tell_member(b: &mut Bench, who: u8, member: Option<Member>) {
    let Node::Bus(bus) = &mut b.node else {
        panic!("no BUS");
    };
    let address = address(who);
    let input = bus::Input::Member { address, member };
    bus.handle_input(input, b.now).unwrap();
    b.drain();
}
fn of_bus(b: &Bench) -> bus::BusSnapshot {
    match &b.node {
        Node::Bus(bus) => bus.snapshot(),
        _ => panic!("no BUS"),
    }
}

#[test]
fn bus_no_member_is_refused() {
    let mut b = bus();
    assert!(!b.offer(address(1), Sap::LANE_MULTICAST_ETHERNET).1);
    member(&mut b, 1, true);
    assert!(!b.offer(address(1), Sap::LANE_DATA_ETHERNET).1);
    assert!(!b.offer(AtmAddress::ZERO, Sap::LANE_MULTICAST_ETHERNET).1);
    assert_eq!(of_bus(&b).counters.calls_refused, 3);
}

#[test]
fn bus_member_connected_becomes_a_leaf() {
    let mut b = bus();
    member(&mut b, 1, true);
    b.caller(address(1), Sap::LANE_MULTICAST_ETHERNET);
    let (forward, called) = b.call(Sap::LANE_MULTICAST_ETHERNET);
    assert_eq!(called, address(1));
    b.connected(forward);
    assert!(of_bus(&b).clients[0].forward);
}

#[test]
fn bus_member_gone_before_it_called_is_refused() {
    let mut b = bus();
    member(&mut b, 1, true);
    member(&mut b, 1, false);
    assert!(!b.offer(address(1), Sap::LANE_MULTICAST_ETHERNET).1);
}

/// A connected member with its leaf.
fn connected(b: &mut Bench, who: u8) -> ConnId {
    member(b, who, true);
    join_bus(b, who)
}

/// The same, for a client that registered these addresses and has no others.
fn owner(b: &mut Bench, who: u8, macs: &[MacAddr]) -> ConnId {
    registered(b, who, macs);
    join_bus(b, who)
}

fn registered(b: &mut Bench, who: u8, macs: &[MacAddr]) {
    let member = Member {
        lecid: who.into(),
        groups: None,
        macs: Some(macs.to_vec()),
    };
    tell_member(b, who, Some(member));
}

fn join_bus(b: &mut Bench, who: u8) -> ConnId {
    let conn = b.caller(address(who), Sap::LANE_MULTICAST_ETHERNET);
    for (forward, _) in b.calls(Sap::LANE_MULTICAST_ETHERNET) {
        b.forward = forward;
        b.connected(forward);
    }
    for (conn, party, _) in b.parties() {
        b.event(AtmEvent::PartyAdded { conn, party });
    }
    conn
}

#[test]
fn bus_connected_second_call_is_refused() {
    let mut b = bus();
    connected(&mut b, 1);
    assert!(!b.offer(address(1), Sap::LANE_MULTICAST_ETHERNET).1);
}

#[test]
fn bus_connected_frames_and_flushes_go_to_all_in_order() {
    let mut b = bus();
    let conn = connected(&mut b, 1);
    connected(&mut b, 2);
    let data = aerostat_wire::lane::DataFrame::encode(1, &frame(LEC0, MacAddr::BROADCAST, 1));
    let flush = request(OpCode::FLUSH, 1, 1).encode();
    for sdu in [&data, &flush, &data] {
        b.receive_sdu(conn, sdu);
    }
    let forward = b.forward;
    assert_eq!(
        sent_on(&mut b),
        [&data, &flush, &data].map(|sdu| (forward, sdu.clone()))
    );
    assert_eq!(of_bus(&b).counters.directed, 0);
}

fn sent_on(b: &mut Bench) -> Vec<(ConnId, Vec<u8>)> {
    let requests = b.requests.drain(..);
    let sent = requests.filter_map(|request| match request {
        AtmRequest::Send { conn, sdu } => Some((conn, sdu)),
        _ => None,
    });
    sent.collect()
}
fn data_to(to: MacAddr) -> Vec<u8> {
    aerostat_wire::lane::DataFrame::encode(1, &frame(LEC0, to, 1))
}
fn flush_of(whom: u8) -> Vec<u8> {
    let mut flush = request(OpCode::FLUSH, 1, 1);
    flush.target_atm = address(whom);
    flush.encode()
}

/// Client 2 registers all its addresses; client 3 is a proxy; client 4 has not called the BUS.
#[test]
fn bus_connected_unicast_and_flush_go_to_who_registered_all() {
    let mut b = bus();
    let conn = connected(&mut b, 1);
    let second = owner(&mut b, 2, &[mac(2), mac(0x22)]);
    connected(&mut b, 3);
    registered(&mut b, 4, &[mac(4)]);
    b.requests.clear();
    let all = b.forward;
    for (sdu, way) in [
        (data_to(mac(2)), second),
        (data_to(mac(0x22)), second),
        (flush_of(2), second),
        (data_to(MacAddr::BROADCAST), all),
        (data_to(mac(3)), all),
        (flush_of(3), all),
        (data_to(mac(4)), all),
        (flush_of(4), all),
        (data_to(mac(9)), all),
        (flush_of(9), all),
    ] {
        b.receive_sdu(conn, &sdu);
        assert_eq!(sent_on(&mut b), [(way, sdu)]);
    }
    let counters = of_bus(&b).counters;
    assert_eq!((counters.unicast, counters.flushes), (5, 4));
    assert_eq!(counters.directed, 3);
}

#[test]
fn bus_connected_owner_changes_with_what_the_les_says() {
    let mut b = bus();
    let conn = connected(&mut b, 1);
    let second = owner(&mut b, 2, &[mac(2), mac(9)]);
    let third = owner(&mut b, 3, &[mac(3)]);
    b.requests.clear();
    let all = b.forward;
    let way = |b: &mut Bench| {
        b.receive_sdu(conn, &data_to(mac(9)));
        let sent = sent_on(b);
        sent.iter().map(|(conn, _)| *conn).collect::<Vec<_>>()
    };
    assert_eq!(way(&mut b), [second]);
    // The address moves: the LES may report this in any order.
    registered(&mut b, 3, &[mac(3), mac(9)]);
    assert_eq!(way(&mut b), [third]);
    registered(&mut b, 2, &[mac(2)]);
    assert_eq!(way(&mut b), [third]);
    registered(&mut b, 3, &[mac(3)]);
    assert_eq!(way(&mut b), [all]);
    registered(&mut b, 2, &[mac(2), mac(9)]);
    assert_eq!(way(&mut b), [second]);
    // Its connection ends, then its membership.
    b.released(second);
    assert_eq!(way(&mut b), [all]);
    tell_member(&mut b, 2, None);
    assert_eq!(way(&mut b), [all]);
    registered(&mut b, 3, &[mac(3), mac(9)]);
    assert_eq!(way(&mut b), [third]);
}

/// The state that one client can make the BUS keep is bounded, whatever the LES says.
#[test]
fn bus_connected_owner_of_more_than_it_may_register_gets_the_rest_with_all() {
    let mut b = bus();
    let conn = connected(&mut b, 1);
    let most = ServerParams::default().registrations;
    let macs: Vec<_> = (0..most + 1)
        .map(|n| MacAddr([2, 9, 0, 0, (n >> 8) as u8, n as u8]))
        .collect();
    let second = owner(&mut b, 2, &macs);
    b.requests.clear();
    for (to, way) in [(macs[most - 1], second), (macs[most], b.forward)] {
        b.receive_sdu(conn, &data_to(to));
        assert_eq!(sent_on(&mut b)[0].0, way);
    }
}

#[test]
fn bus_connected_forged_or_ill_sized_frames_go_nowhere() {
    let mut b = bus();
    let conn = connected(&mut b, 1);
    let encode = |lecid| {
        let octets = frame(LEC0, mac(2), 1);
        aerostat_wire::lane::DataFrame::encode(lecid, &octets)
    };
    b.receive_sdu(conn, &encode(2));
    b.receive(conn, &request(OpCode::FLUSH, 1, 2));
    b.receive(conn, &request(OpCode::ARP, 1, 1));
    b.receive_sdu(conn, &[0, 1, 2]);
    b.receive_sdu(conn, &vec![0; 1517]);
    let counters = of_bus(&b).counters;
    assert_eq!((counters.forged, counters.bad_length), (3, 2));
    assert!(b.sent(true).is_empty() && b.data().is_empty());
}

#[test]
fn bus_connected_leaf_lost_lets_the_client_go() {
    let mut b = bus();
    let conn = connected(&mut b, 1);
    b.released(b.forward);
    assert_eq!(b.hung_up(), [conn]);
    // The client is still a member, and may call again.
    assert!(b.offer(address(1), Sap::LANE_MULTICAST_ETHERNET).1);
}

#[test]
fn bus_connected_multicast_send_lost_takes_its_leaf() {
    let mut b = bus();
    let conn = connected(&mut b, 1);
    b.released(conn);
    assert_eq!(b.hung_up(), [b.forward]);
    assert!(b.offer(address(1), Sap::LANE_MULTICAST_ETHERNET).1);
}

#[test]
fn bus_connected_membership_ends_releases_both() {
    let mut b = bus();
    let conn = connected(&mut b, 1);
    member(&mut b, 1, false);
    let mut gone = b.hung_up();
    gone.sort_unstable();
    assert_eq!(gone, [b.forward, conn]);
    assert_eq!(of_bus(&b).members, 0);
}
