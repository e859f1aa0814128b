//! Group addresses: the groups that a client wants, and the groups that it sends to.

use super::*;
use aerostat_proto::lane::lec::ArpStatus;

const SMS: u8 = 0xa5;

fn group(n: u8) -> MacAddr {
    MacAddr([1, 0, 0x5e, 0, 0, n])
}
fn chooser() -> LecConfig {
    LecConfig {
        selective: true,
        groups: vec![group(1), group(2), MacAddr::BROADCAST, mac(4)],
        ..lec_config(0)
    }
}
fn transmit(b: &mut Bench) {
    b.tell(Input::Transmit(frame(LEC0, group(7), 1)));
}
fn granted(b: &mut Bench) {
    let answer = b.answer(Status::SUCCESS);
    b.receive(b.control, &answer);
}

// ---- wanted ----

#[test]
fn group_wanted_is_registered_before_the_bus() {
    let mut b = at_with(chooser(), LecState::Join);
    let join = b.pending.flags;
    assert!(join.contains(Flags::SELECTIVE_MULTICAST));
    let answer = admission(&b);
    b.receive(b.control, &answer);
    for n in [1, 2] {
        b.asked(OpCode::REGISTER);
        assert_eq!(b.pending.source.as_mac(), Some(group(n)));
        granted(&mut b);
    }
    assert_eq!(b.state(), LecState::BusConnect, "broadcast is not a choice");
}

#[test]
fn group_wanted_with_a_v1_les_is_not_registered() {
    let mut b = at_with(chooser(), LecState::Join);
    let mut answer = admission(&b);
    answer.flags = Flags::NONE;
    b.receive(b.control, &answer);
    assert_eq!(b.state(), LecState::BusConnect);
}

#[test]
fn group_wanted_by_a_proxy_means_nothing() {
    let config = LecConfig {
        proxy: true,
        ..chooser()
    };
    let b = at_with(config, LecState::Join);
    assert!(!b.pending.flags.contains(Flags::SELECTIVE_MULTICAST));
    assert_eq!(b.lec().groups, None);
}

#[test]
fn group_refused_joins_again_without_choice() {
    let mut b = at_with(chooser(), LecState::Join);
    let answer = admission(&b);
    b.receive(b.control, &answer);
    b.asked(OpCode::REGISTER);
    let answer = b.answer(Status::LAN_DESTINATION);
    b.receive(b.control, &answer);
    assert_eq!(b.state(), LecState::Initial);
    b.requests.clear();
    b.seconds(5);
    b.config = b.call(Sap::LANE_CONTROL).0;
    b.connected(b.config);
    b.asked(OpCode::CONFIGURE);
    let answer = configuration(&b);
    b.receive(b.config, &answer);
    b.control = b.call(Sap::LANE_CONTROL).0;
    b.connected(b.control);
    b.asked(OpCode::JOIN);
    assert!(!b.pending.flags.contains(Flags::SELECTIVE_MULTICAST));
    let answer = admission(&b);
    b.receive(b.control, &answer);
    assert_eq!(b.state(), LecState::BusConnect);
}

#[test]
fn group_new_is_registered_and_old_taken_back_one_by_one() {
    let mut b = at_with(chooser(), LecState::Operational);
    b.tell(Input::SetGroups(vec![group(2), group(3), group(4)]));
    for (op, n) in [
        (OpCode::REGISTER, 3),
        (OpCode::REGISTER, 4),
        (OpCode::UNREGISTER, 1),
    ] {
        b.asked(op);
        assert_eq!(b.pending.source.as_mac(), Some(group(n)));
        granted(&mut b);
    }
    assert!(b.frames().is_empty());
    let rows = [2, 3, 4].map(|n| (group(n), true));
    assert_eq!(b.lec().groups, Some(rows.to_vec()));
}

#[test]
fn group_new_waits_for_other_registrations() {
    let mut b = at_with(chooser(), LecState::Operational);
    b.tell(Input::SetTlvs(vec![mps(0).to_tlv()]));
    b.tell(Input::SetGroups(vec![group(1), group(2), group(3)]));
    let mut frames = b.frames().into_iter().filter_map(|(_, frame)| match frame {
        Control::Frame(frame) if frame.op == OpCode::REGISTER => Some(*frame),
        _ => None,
    });
    b.pending = frames.next().expect("the TLVs");
    assert!(frames.next().is_none());
    granted(&mut b);
    b.asked(OpCode::REGISTER);
    assert_eq!(b.pending.source.as_mac(), Some(group(3)));
}

#[test]
fn group_new_unanswered_means_initial() {
    let mut b = at_with(chooser(), LecState::Operational);
    b.tell(Input::SetGroups(vec![group(3)]));
    b.seconds(31);
    assert!(b.has_left());
}

#[test]
fn group_frames_of_others_are_dropped() {
    let mut b = at_with(chooser(), LecState::Operational);
    for (to, delivered) in [(group(1), 1), (group(9), 1), (MacAddr::BROADCAST, 2)] {
        let mut octets = to.0.to_vec();
        octets.extend(mac(9).0);
        octets.resize(60, 8);
        let sdu = aerostat_wire::lane::DataFrame::encode(77, &octets);
        b.receive_sdu(b.forward, &sdu);
        assert_eq!(b.lec().data.delivered, delivered, "{to}");
    }
    assert_eq!(b.lec().data.not_for_us, 1);
}

// ---- sent to ----

#[test]
fn group_sent_to_uses_the_bus_and_asks_once() {
    let mut b = at(LecState::Operational);
    transmit(&mut b);
    assert_eq!(b.asked(OpCode::ARP), b.control);
    assert_eq!(b.pending.target.as_mac(), Some(group(7)));
    for _ in 0..20 {
        transmit(&mut b);
    }
    assert_eq!(b.data().len(), 21, "no quota");
    assert!(b.frames().is_empty());
}

#[test]
fn group_sent_to_v1_never_asks() {
    let config = LecConfig {
        v2: false,
        ..lec_config(0)
    };
    let mut b = at_with(config, LecState::Operational);
    transmit(&mut b);
    transmit(&mut b);
    assert_eq!(b.data(), [b.send, b.send]);
    assert!(b.frames().is_empty() && b.lec().cache.is_empty());
}

/// A frame has gone to the group, and LE_ARP was answered with this server.
fn answered(server: u8) -> Bench {
    let mut b = at(LecState::Operational);
    transmit(&mut b);
    b.asked(OpCode::ARP);
    let mut answer = b.answer(Status::SUCCESS);
    answer.target_atm = address(server);
    b.receive(b.control, &answer);
    b.data();
    b
}
/// The same, after the client has called the server.
fn called() -> Bench {
    let mut b = answered(SMS);
    let (conn, server) = b.call(Sap::LANE_MULTICAST_ETHERNET);
    assert_eq!(server, address(SMS));
    b.direct = conn;
    b
}

#[test]
fn group_at_the_bus_stays_there() {
    let mut b = answered(BUS_ADDRESS);
    transmit(&mut b);
    assert_eq!(b.data(), [b.send]);
    assert!(b.requests.is_empty());
    let row = &b.lec().cache[0];
    assert_eq!(row.status, ArpStatus::ForwardDirect);
}

#[test]
fn group_at_a_server_of_its_own_goes_there_once_connected() {
    let mut b = called();
    transmit(&mut b);
    assert_eq!(b.data(), [b.send]);
    b.connected(b.direct);
    transmit(&mut b);
    assert_eq!(b.data(), [b.direct]);
    // One connection for all groups of this server.
    b.tell(Input::Transmit(frame(LEC0, group(8), 1)));
    b.asked(OpCode::ARP);
    let mut answer = b.answer(Status::SUCCESS);
    answer.target_atm = address(SMS);
    b.receive(b.control, &answer);
    b.data();
    b.tell(Input::Transmit(frame(LEC0, group(8), 1)));
    assert_eq!(b.data(), [b.direct]);
    assert!(b.calls(Sap::LANE_MULTICAST_ETHERNET).is_empty());
}

#[test]
fn group_server_refuses_and_is_called_again_later() {
    let mut b = called();
    b.released(b.direct);
    transmit(&mut b);
    assert_eq!(b.data(), [b.send]);
    assert!(b.calls(Sap::LANE_MULTICAST_ETHERNET).is_empty());
    b.seconds(5);
    transmit(&mut b);
    assert_eq!(b.call(Sap::LANE_MULTICAST_ETHERNET).1, address(SMS));
}

#[test]
fn group_server_lost_means_the_bus() {
    let mut b = called();
    b.connected(b.direct);
    b.released(b.direct);
    transmit(&mut b);
    assert_eq!(b.data(), [b.send]);
    assert_eq!(b.call(Sap::LANE_MULTICAST_ETHERNET).1, address(SMS));
    assert_eq!(b.state(), LecState::Operational);
}

#[test]
fn group_server_idle_for_c12_is_released() {
    let mut b = called();
    b.connected(b.direct);
    b.seconds(1200);
    assert_eq!(b.hung_up(), [b.direct]);
    assert_eq!(b.state(), LecState::Operational);
}

#[test]
fn group_moves_to_another_server() {
    let mut b = called();
    b.connected(b.direct);
    b.seconds(200);
    transmit(&mut b);
    b.seconds(100);
    b.data();
    b.asked(OpCode::ARP);
    let mut answer = b.answer(Status::SUCCESS);
    answer.target_atm = address(BUS_ADDRESS);
    b.receive(b.control, &answer);
    transmit(&mut b);
    assert_eq!(b.data(), [b.send]);
}

#[test]
fn group_without_answer_uses_the_bus_and_asks_again() {
    let mut b = at(LecState::Operational);
    transmit(&mut b);
    b.seconds(3);
    b.frames();
    b.data();
    transmit(&mut b);
    assert_eq!(b.data(), [b.send]);
    b.asked(OpCode::ARP);
}

/// LE_NARP and announcements about a group are ignored: only the LES names the server of a group.
#[test]
fn group_announced_by_a_client_is_ignored() {
    let mut b = answered(BUS_ADDRESS);
    for op in [OpCode::NARP, OpCode::ARP] {
        let mut told = ControlFrame::new(op);
        (told.lecid, told.source_atm) = (9, address(0x44));
        told.source = LanDestination::mac(group(7));
        b.receive(b.distribute, &told);
    }
    assert_eq!(b.lec().cache[0].atm, Some(address(BUS_ADDRESS)));
}
