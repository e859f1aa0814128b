//! busConnect and operational.

use super::*;

fn lost_all(b: &Bench) -> bool {
    b.state() == LecState::Initial && b.lec().connections.is_empty()
}
/// The multicast send connection that the client calls once it knows the BUS.
fn call_of_bus(b: &mut Bench) -> ConnId {
    let answer = bus_address(b);
    b.receive(b.control, &answer);
    let (conn, called) = b.call(Sap::LANE_MULTICAST_ETHERNET);
    assert_eq!(called, address(BUS_ADDRESS));
    conn
}

// ---- busConnect ----

#[test]
fn bus_connect_both_connections_mean_operational() {
    for forward_first in [false, true] {
        let mut b = at(LecState::BusConnect);
        let send = call_of_bus(&mut b);
        if !forward_first {
            b.connected(send);
            assert_eq!(b.state(), LecState::BusConnect);
        }
        b.caller(address(BUS_ADDRESS), Sap::LANE_MULTICAST_ETHERNET);
        if forward_first {
            assert_eq!(b.state(), LecState::BusConnect);
            b.connected(send);
        }
        assert_eq!(b.state(), LecState::Operational);
        let joined = |note: &Note| match note {
            Note::Lec(lec::Output::News(lec::News::Joined { lecid, .. })) => *lecid == LECID,
            _ => false,
        };
        assert!(b.notes.iter().any(joined));
    }
}

#[test]
fn bus_connect_address_refused_asks_c39_times_more() {
    let mut b = at(LecState::BusConnect);
    let answer = b.answer(Status::LAN_DESTINATION);
    b.receive(b.control, &answer);
    assert_eq!(b.state(), LecState::BusConnect);
    b.asked(OpCode::ARP);
    let answer = b.answer(Status::SUCCESS); // Without an address.
    b.receive(b.control, &answer);
    assert!(lost_all(&b), "C39 = 1");
}

#[test]
fn bus_connect_no_answer_asks_c39_times_more() {
    let mut b = at(LecState::BusConnect);
    b.seconds(30);
    assert_eq!(b.state(), LecState::BusConnect);
    b.seconds(30);
    // Each request is repeated after 5 and 15 s: 1 (sent before) + 2, 1 + 2, and the delay is at most 5 s.
    assert_eq!(b.frames().len(), 5);
    assert_ne!(b.state(), LecState::BusConnect);
    assert!(!b.has_left(), "it was no member yet");
}

#[test]
fn bus_connect_call_refused_asks_c39_times_more() {
    let mut b = at(LecState::BusConnect);
    let send = call_of_bus(&mut b);
    b.released(send);
    b.asked(OpCode::ARP);
    let send = call_of_bus(&mut b);
    b.released(send);
    assert!(lost_all(&b));
}

#[test]
fn bus_connect_no_multicast_forward_calls_again() {
    let mut b = at(LecState::BusConnect);
    let send = call_of_bus(&mut b);
    b.connected(send);
    b.seconds(29);
    assert!(b.hung_up().is_empty());
    b.seconds(1);
    assert_eq!(b.hung_up(), [send], "C7");
    b.asked(OpCode::ARP);
}

#[test]
fn bus_connect_forward_of_a_stranger_is_verified() {
    for (status, taken) in [(Status::SUCCESS, true), (Status::ATM_ADDRESS, false)] {
        let mut b = at(LecState::BusConnect);
        let send = call_of_bus(&mut b);
        b.connected(send);
        let (conn, at_once) = b.offer(address(0x44), Sap::LANE_MULTICAST_ETHERNET);
        assert!(!at_once);
        b.asked(OpCode::VERIFY);
        assert_eq!(b.pending.target_atm, address(0x44));
        let answer = b.answer(status);
        b.receive(b.control, &answer);
        assert_eq!(
            b.requests
                .contains(&AtmRequest::Accept { conn, terms: None }),
            taken
        );
        assert_eq!(b.hung_up().contains(&conn), !taken);
    }
}

#[test]
fn bus_connect_forward_of_a_stranger_unanswered_is_refused() {
    let mut b = at(LecState::BusConnect);
    let (conn, _) = b.offer(address(0x44), Sap::LANE_MULTICAST_ETHERNET);
    b.asked(OpCode::VERIFY);
    b.pass(Duration::from_millis(5001)); // C7i
    assert_eq!(b.hung_up(), [conn]);
    let answer = b.answer(Status::SUCCESS);
    b.receive(b.control, &answer);
    assert_eq!(b.unasked(), 1);
}

#[test]
fn bus_connect_forward_of_a_stranger_is_refused_by_v1() {
    let config = LecConfig {
        v2: false,
        ..lec_config(0)
    };
    let mut b = at_with(config, LecState::BusConnect);
    let (conn, _) = b.offer(address(0x44), Sap::LANE_MULTICAST_ETHERNET);
    assert_eq!(b.hung_up(), [conn]);
    assert!(b.frames().is_empty());
}

#[test]
fn bus_connect_data_direct_is_taken() {
    let mut b = at(LecState::BusConnect);
    assert!(b.offer(address(0x44), Sap::LANE_DATA_ETHERNET).1);
}

#[test]
fn bus_connect_stale_response_is_unasked() {
    let mut b = at(LecState::BusConnect);
    let mut stale = bus_address(&b);
    stale.transaction += 7;
    b.receive(b.control, &stale);
    assert_eq!((b.unasked(), b.state()), (1, LecState::BusConnect));
    let mut foreign = bus_address(&b);
    foreign.lecid = 9;
    b.receive(b.distribute, &foreign);
    assert!(b.calls(Sap::LANE_MULTICAST_ETHERNET).is_empty());
}

#[test]
fn bus_connect_control_connection_lost_means_initial() {
    for direct in [true, false] {
        let mut b = at(LecState::BusConnect);
        let send = call_of_bus(&mut b);
        let conn = if direct { b.control } else { b.distribute };
        b.released(conn);
        assert!(lost_all(&b));
        assert!(b.hung_up().contains(&send));
    }
}

// ---- operational ----

#[test]
fn operational_control_connection_lost_means_initial() {
    for direct in [true, false] {
        let mut b = at(LecState::Operational);
        let conn = if direct { b.control } else { b.distribute };
        b.released(conn);
        assert!(lost_all(&b) && b.has_left());
        assert_eq!(b.hung_up().len(), 3);
        b.seconds(5);
        assert_eq!(b.state(), LecState::LecsConnect);
    }
}

#[test]
fn operational_multicast_send_lost_means_bus_connect() {
    let mut b = at(LecState::Operational);
    b.released(b.send);
    assert_eq!(b.state(), LecState::BusConnect);
    assert!(!b.has_left());
    b.asked(OpCode::ARP);
    let send = call_of_bus(&mut b);
    b.connected(send);
    assert_eq!(
        b.state(),
        LecState::Operational,
        "multicast forward is still there"
    );
}

#[test]
fn operational_multicast_forward_lost_waits_for_another() {
    let mut b = at(LecState::Operational);
    b.released(b.forward);
    assert_eq!(b.state(), LecState::Operational);
    b.seconds(59);
    b.caller(address(BUS_ADDRESS), Sap::LANE_MULTICAST_ETHERNET);
    b.seconds(60);
    assert_eq!(b.state(), LecState::Operational);
    assert!(b.hung_up().is_empty());
}

#[test]
fn operational_multicast_forward_lost_for_c33_means_bus_connect() {
    let mut b = at(LecState::Operational);
    b.released(b.forward);
    b.seconds(60);
    assert_eq!(b.state(), LecState::BusConnect);
    assert_eq!(b.hung_up(), [b.send]);
}

#[test]
fn operational_refused_registration_of_tlvs_costs_nothing_else() {
    let mut b = at(LecState::Operational);
    b.tell(Input::SetTlvs(vec![mps(0).to_tlv()]));
    b.pending = last_of(&mut b, OpCode::REGISTER);
    let answer = b.answer(Status::RESOURCES);
    b.receive(b.control, &answer);
    assert_eq!(b.state(), LecState::Operational);
    assert!(!b.has_left());
}

/// A LES that does not know the client any more cannot serve this client.
#[test]
fn operational_registration_refused_as_nobody_means_initial() {
    let mut b = at(LecState::Operational);
    b.tell(Input::SetTlvs(vec![mps(0).to_tlv()]));
    b.pending = last_of(&mut b, OpCode::REGISTER);
    let answer = b.answer(Status::REQUESTER);
    b.receive(b.control, &answer);
    assert!(lost_all(&b) && b.has_left());
}

#[test]
fn operational_registration_unanswered_is_given_up() {
    let mut b = at(LecState::Operational);
    b.tell(Input::SetTlvs(vec![mps(0).to_tlv()]));
    b.seconds(31);
    assert_eq!(b.state(), LecState::Operational);
    let registers = b.frames().into_iter().filter(
        |(_, frame)| matches!(frame, Control::Frame(frame) if frame.op == OpCode::REGISTER),
    );
    assert_eq!(registers.count(), 3, "repeated after 5 and 15 s");
}

fn last_of(b: &mut Bench, op: OpCode) -> ControlFrame {
    let frames = b.frames().into_iter().rev();
    let mut found = frames.filter_map(|(_, frame)| match frame {
        Control::Frame(frame) if frame.op == op => Some(*frame),
        _ => None,
    });
    found.next().expect("it was sent")
}

#[test]
fn operational_late_responses_are_unasked() {
    let mut b = at(LecState::Operational);
    for op in [OpCode::JOIN, OpCode::REGISTER, OpCode::VERIFY, OpCode::ARP] {
        let mut late = ControlFrame::new(op.response());
        late.lecid = LECID;
        late.source_atm = address(1);
        late.target = LanDestination::mac(MacAddr::BROADCAST);
        late.target_atm = address(0x44);
        b.receive(b.control, &late);
    }
    assert_eq!(b.unasked(), 4);
    assert_eq!(b.state(), LecState::Operational);
    assert_eq!(b.lec().bus, address(BUS_ADDRESS));
    assert!(b.requests.is_empty());
}

#[test]
fn operational_unknown_op_code_is_ignored() {
    let mut b = at(LecState::Operational);
    b.receive(b.control, &ControlFrame::new(OpCode(0x0055)));
    assert_eq!((b.bad(), b.unasked()), (0, 0));
    assert!(b.requests.is_empty());
}

#[test]
fn operational_frames_that_do_not_belong_are_bad() {
    let mut b = at(LecState::Operational);
    let direct = b.caller(address(0x44), Sap::LANE_DATA_ETHERNET);
    let mut narp = ControlFrame::new(OpCode::NARP);
    narp.lecid = 9;
    b.receive(direct, &narp);
    b.receive(b.forward, &narp);
    b.receive_sdu(b.control, &[0xff, 0, 1, 1, 0, 3]);
    b.receive_sdu(b.distribute, &[1, 2, 3]);
    b.receive_sdu(ConnId(77), &narp.encode());
    assert_eq!(b.bad(), 5);
    assert_eq!(b.state(), LecState::Operational);
}

#[test]
fn operational_more_server_calls_have_a_bound() {
    let mut b = at(LecState::Operational);
    for (who, sap) in [
        (LES_ADDRESS, Sap::LANE_CONTROL),
        (BUS_ADDRESS, Sap::LANE_MULTICAST_ETHERNET),
    ] {
        let taken = (0..9).filter(|_| b.offer(address(who), sap).1).count();
        assert_eq!(taken, 3, "four with the first");
    }
    assert_eq!(b.lec().control.calls_refused, 12);
}

#[test]
fn operational_one_of_two_distributes_lost_changes_nothing() {
    let mut b = at(LecState::Operational);
    b.caller(address(LES_ADDRESS), Sap::LANE_CONTROL);
    b.released(b.distribute);
    assert_eq!(b.state(), LecState::Operational);
}

#[test]
fn operational_network_down_alone_changes_nothing() {
    let mut b = at(LecState::Operational);
    b.event(AtmEvent::Down);
    b.event(AtmEvent::Up);
    assert_eq!(b.state(), LecState::Operational);
    assert!(b.requests.is_empty());
}

#[test]
fn operational_flush_request_for_us_is_answered() {
    let mut b = at(LecState::Operational);
    let mut flush = ControlFrame::new(OpCode::FLUSH);
    (flush.lecid, flush.transaction) = (9, 77);
    flush.source_atm = address(0x44);
    flush.target_atm = address(1);
    b.receive(b.forward, &flush);
    let (conn, answer) = b.frame();
    assert_eq!((conn, answer.op), (b.control, OpCode::FLUSH.response()));
    assert_eq!((answer.lecid, answer.transaction), (9, 77));
    // Not answered: a request for another client, the client's own request that comes back, a request on control
    // direct.
    flush.target_atm = address(0x55);
    b.receive(b.forward, &flush);
    (flush.target_atm, flush.lecid) = (address(1), LECID);
    b.receive(b.forward, &flush);
    flush.lecid = 9;
    b.receive(b.control, &flush);
    assert!(b.frames().is_empty());
}

#[test]
fn operational_le_arp_for_us_is_answered() {
    let mut b = at(LecState::Operational);
    let mut arp = ControlFrame::new(OpCode::ARP);
    (arp.lecid, arp.source_atm) = (9, address(0x44));
    arp.source = LanDestination::mac(mac(0x44));
    arp.target = LanDestination::mac(mac(1));
    b.receive(b.distribute, &arp);
    let (conn, answer) = b.frame();
    assert_eq!((conn, answer.target_atm), (b.control, address(1)));
    arp.target = LanDestination::mac(mac(2));
    b.receive(b.distribute, &arp);
    assert!(b.frames().is_empty());
    assert!(b.lec().cache.is_empty(), "a request teaches nothing alone");
}
