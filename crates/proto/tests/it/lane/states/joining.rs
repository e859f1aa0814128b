//! The states before a client is a member: initial, lecsConnect, configure, join, initialRegistration.

use super::*;

/// The client refuses the calls of any server and any peer.
fn refuses_all(b: &mut Bench, saps: &[Sap]) {
    for sap in saps {
        for who in [LES_ADDRESS, BUS_ADDRESS, 0x44] {
            assert!(!b.offer(address(who), *sap).1, "{who:#x} {sap:?}");
        }
    }
    b.requests.clear();
}
const ALL: [Sap; 3] = [
    Sap::LANE_CONTROL,
    Sap::LANE_MULTICAST_ETHERNET,
    Sap::LANE_DATA_ETHERNET,
];

/// In the initial state: the client keeps no state of the last try, and starts over after C37..C38.
fn is_initial(b: &mut Bench) {
    assert_eq!(b.state(), LecState::Initial);
    assert!(b.lec().connections.is_empty());
    b.requests.clear();
    b.seconds(5);
    assert_eq!(b.state(), LecState::LecsConnect);
}

// ---- stopped, and what stop does everywhere ----

#[test]
fn any_state_stop_releases_all() {
    for state in [
        LecState::Initial,
        LecState::LecsConnect,
        LecState::Configure,
        LecState::Join,
        LecState::InitialRegistration,
        LecState::BusConnect,
        LecState::Operational,
    ] {
        let mut b = at(state);
        let open = b.lec().connections.len();
        b.tell(Input::Stop);
        assert_eq!(b.state(), LecState::Stopped, "{state}");
        assert_eq!(b.hung_up().len(), open, "{state}");
        assert_eq!(b.node.poll_timeout(), None, "{state}");
        let unlistened = |request: &&AtmRequest| matches!(request, AtmRequest::Unlisten { .. });
        assert_eq!(b.requests.iter().filter(unlistened).count(), 3, "{state}");
        assert_eq!(b.has_left(), state == LecState::Operational);
    }
}

#[test]
fn any_state_start_again_is_ignored() {
    for state in [LecState::Initial, LecState::Join, LecState::Operational] {
        let mut b = at(state);
        b.tell(Input::Start);
        assert_eq!(b.state(), state);
        assert!(b.requests.is_empty());
    }
}

#[test]
fn stopped_anything_is_ignored() {
    let mut b = at(LecState::Stopped);
    refuses_all(&mut b, &ALL);
    b.event(AtmEvent::Up);
    b.tell(Input::Transmit(frame(LEC0, mac(9), 1)));
    b.tell(Input::TopologyChange(true));
    b.receive(ConnId(3), &ControlFrame::new(OpCode::ARP));
    assert_eq!(b.state(), LecState::Stopped);
    assert!(b.requests.is_empty());
    assert_eq!(b.node.poll_timeout(), None);
}

// ---- initial ----

#[test]
fn initial_after_the_delay_starts_over() {
    let mut b = at(LecState::Initial);
    is_initial(&mut b);
    assert_eq!(b.call(Sap::LANE_CONTROL).1, AtmAddress::LECS_ANYCAST);
}

#[test]
fn initial_network_up_starts_over_at_once() {
    let mut b = at(LecState::Initial);
    b.event(AtmEvent::Up);
    assert_eq!(b.state(), LecState::LecsConnect);
    // The event ended the delay: no second call follows.
    b.seconds(6);
    assert_eq!(b.calls(Sap::LANE_CONTROL).len(), 1);
}

#[test]
fn initial_calls_are_refused() {
    let mut b = at(LecState::Initial);
    refuses_all(&mut b, &ALL);
}

#[test]
fn initial_frame_of_an_old_connection_is_bad() {
    let mut b = at(LecState::Initial);
    b.receive(b.config, &ControlFrame::new(OpCode::JOIN.response()));
    assert_eq!((b.bad(), b.state()), (1, LecState::Initial));
}

// ---- lecsConnect ----

#[test]
fn lecs_connect_connected_asks() {
    let mut b = at(LecState::LecsConnect);
    b.connected(b.config);
    assert_eq!(b.asked(OpCode::CONFIGURE), b.config);
    assert_eq!(b.state(), LecState::Configure);
    let asked = &b.pending;
    assert_eq!((asked.lecid, asked.source.as_mac()), (0, Some(mac(1))));
    assert!(asked.flags.contains(Flags::V2_CAPABLE) && asked.elan.same(&elan()));
}

#[test]
fn lecs_connect_refused_tries_the_next_address() {
    let mut b = at(LecState::LecsConnect);
    b.released(b.config);
    assert_eq!(b.state(), LecState::LecsConnect);
    assert_eq!(b.call(Sap::LANE_CONTROL).1, AtmAddress::LECS);
}

#[test]
fn lecs_connect_all_refused_means_initial() {
    let mut b = at(LecState::LecsConnect);
    for _ in 0..2 {
        b.released(b.config);
        b.config = b.calls(Sap::LANE_CONTROL).first().map_or(b.config, |c| c.0);
    }
    is_initial(&mut b);
}

#[test]
fn lecs_connect_all_refused_with_c9_joins() {
    let config = LecConfig {
        lecs: Some(address(0xee)),
        les: Some(address(LES_ADDRESS)),
        ..lec_config(0)
    };
    let mut b = at_with(config, LecState::LecsConnect);
    for _ in 0..3 {
        b.released(b.config);
        b.config = b.call(Sap::LANE_CONTROL).0;
    }
    assert_eq!(b.state(), LecState::Join);
}

/// Signalling has its own timers and always reports the end of a call, so this state needs none.
#[test]
fn lecs_connect_time_alone_changes_nothing() {
    let mut b = at(LecState::LecsConnect);
    assert_eq!(b.node.poll_timeout(), None);
    b.seconds(3600);
    assert_eq!(b.state(), LecState::LecsConnect);
}

#[test]
fn lecs_connect_early_response_is_unasked() {
    let mut b = at(LecState::LecsConnect);
    let mut early = ControlFrame::new(OpCode::CONFIGURE.response());
    early.target_atm = address(LES_ADDRESS);
    b.receive(b.config, &early);
    assert_eq!((b.unasked(), b.state()), (1, LecState::LecsConnect));
}

#[test]
fn lecs_connect_calls_are_refused() {
    let mut b = at(LecState::LecsConnect);
    refuses_all(&mut b, &ALL);
}

// ---- configure ----

#[test]
fn configure_granted_calls_the_les() {
    let mut b = at(LecState::Configure);
    let mut answer = configuration(&b);
    answer.tlvs = vec![Tlv::u16(TlvType::CONTROL_TIMEOUT, 20)].into();
    b.receive(b.config, &answer);
    assert_eq!(b.state(), LecState::Join);
    assert_eq!(b.hung_up(), [b.config], "configure direct is not kept");
    assert_eq!(b.call(Sap::LANE_CONTROL).1, address(LES_ADDRESS));
}

#[test]
fn configure_refused_means_initial() {
    let mut b = at(LecState::Configure);
    let answer = b.answer(Status::NO_CONFIGURATION);
    b.receive(b.config, &answer);
    assert_eq!(b.hung_up(), [b.config]);
    is_initial(&mut b);
}

#[test]
fn configure_granted_without_les_means_initial() {
    let mut b = at(LecState::Configure);
    let mut answer = configuration(&b);
    answer.target_atm = AtmAddress::ZERO;
    b.receive(b.config, &answer);
    is_initial(&mut b);
}

#[test]
fn configure_granted_token_ring_means_initial() {
    let mut b = at(LecState::Configure);
    let mut answer = configuration(&b);
    answer.lan_type = LanType::TOKEN_RING;
    b.receive(b.config, &answer);
    is_initial(&mut b);
}

#[test]
fn configure_no_answer_repeats_then_tries_the_next_address() {
    let mut b = at(LecState::Configure);
    let mut times = Vec::new();
    for second in 1..30 {
        b.seconds(1);
        for (conn, again) in b.frames() {
            assert_eq!(conn, b.config);
            assert_eq!(again, Control::Frame(Box::new(b.pending.clone())));
            times.push(second);
        }
    }
    assert_eq!(times, [5, 15], "C7i = 5 s, then C7x = 2 times as long");
    b.seconds(1);
    assert_eq!(b.hung_up(), [b.config], "C7 = 30 s");
    assert_eq!(b.state(), LecState::LecsConnect);
    assert_eq!(b.call(Sap::LANE_CONTROL).1, AtmAddress::LECS);
}

#[test]
fn configure_connection_lost_tries_the_next_address() {
    let mut b = at(LecState::Configure);
    b.released(b.config);
    assert_eq!(b.state(), LecState::LecsConnect);
    assert_eq!(b.call(Sap::LANE_CONTROL).1, AtmAddress::LECS);
}

#[test]
fn configure_stale_response_is_unasked() {
    let mut b = at(LecState::Configure);
    let mut stale = configuration(&b);
    stale.transaction += 1;
    b.receive(b.config, &stale);
    assert_eq!((b.unasked(), b.state()), (1, LecState::Configure));
}

#[test]
fn configure_unexpected_frames_are_bad() {
    let mut b = at(LecState::Configure);
    let mut join = b.answer(Status::SUCCESS);
    join.op = OpCode::JOIN.response();
    b.receive(b.config, &join);
    b.receive_sdu(b.config, &[0xff, 0, 1, 1, 1, 3]);
    b.receive_sdu(b.config, &[1; 70]);
    let mut version = configuration(&b);
    version.version = 2;
    b.receive(b.config, &version);
    assert_eq!((b.bad(), b.state()), (4, LecState::Configure));
}

#[test]
fn configure_calls_are_refused() {
    let mut b = at(LecState::Configure);
    refuses_all(&mut b, &ALL);
}

// ---- join ----

#[test]
fn join_connected_asks() {
    let mut b = at(LecState::Configure);
    let answer = configuration(&b);
    b.receive(b.config, &answer);
    let (control, _) = b.call(Sap::LANE_CONTROL);
    assert!(b.frames().is_empty());
    b.connected(control);
    assert_eq!(b.asked(OpCode::JOIN), control);
    assert_eq!(b.pending.max_frame, MaxFrameSize::S1516);
}

#[test]
fn join_refused_call_means_initial() {
    let mut b = at(LecState::Configure);
    let answer = configuration(&b);
    b.receive(b.config, &answer);
    let (control, _) = b.call(Sap::LANE_CONTROL);
    b.released(control);
    is_initial(&mut b);
}

#[test]
fn join_granted_registers() {
    let config = LecConfig {
        more_macs: vec![mac(0x81)],
        ..lec_config(0)
    };
    let mut b = at_with(config, LecState::Join);
    let answer = admission(&b);
    b.receive(b.control, &answer);
    assert_eq!(b.state(), LecState::InitialRegistration);
    b.asked(OpCode::REGISTER);
    assert_eq!(b.pending.source.as_mac(), Some(mac(0x81)));
    assert_eq!(b.pending.lecid, LECID);
}

#[test]
fn join_granted_with_one_address_asks_for_the_bus() {
    let mut b = at(LecState::Join);
    let answer = admission(&b);
    b.receive(b.control, &answer);
    assert_eq!(b.state(), LecState::BusConnect);
    b.asked(OpCode::ARP);
    assert_eq!(b.pending.target.as_mac(), Some(MacAddr::BROADCAST));
    assert_eq!(b.lec().elan_id, 7);
}

#[test]
fn join_granted_on_control_distribute_counts() {
    let mut b = at(LecState::Join);
    let distribute = b.caller(address(LES_ADDRESS), Sap::LANE_CONTROL);
    let answer = admission(&b);
    b.receive(distribute, &answer);
    assert_eq!(b.state(), LecState::BusConnect);
    // The other copy of the frame has no effect.
    b.receive(b.control, &answer);
    assert_eq!((b.unasked(), b.state()), (1, LecState::BusConnect));
}

#[test]
fn join_granted_by_a_v1_les_means_v1() {
    let mut b = at(LecState::Join);
    let mut answer = admission(&b);
    answer.flags = Flags::default();
    b.receive(b.control, &answer);
    assert_eq!((b.lec().v2, b.lec().elan_id), (false, 0));
}

#[test]
fn join_refused_means_initial() {
    let mut b = at(LecState::Join);
    let answer = b.answer(Status::DENIED);
    b.receive(b.control, &answer);
    assert_eq!(b.hung_up(), [b.control]);
    is_initial(&mut b);
}

#[test]
fn join_granted_senselessly_means_initial() {
    let senseless: [fn(&mut ControlFrame); 4] = [
        |frame| frame.lecid = 0,
        |frame| frame.lecid = 0xff00,
        |frame| frame.max_frame = MaxFrameSize(9),
        |frame| frame.lan_type = LanType::TOKEN_RING,
    ];
    for spoil in senseless {
        let mut b = at(LecState::Join);
        let mut answer = admission(&b);
        spoil(&mut answer);
        b.receive(b.control, &answer);
        is_initial(&mut b);
    }
}

#[test]
fn join_no_answer_repeats_then_initial() {
    let mut b = at(LecState::Join);
    b.seconds(29);
    assert_eq!(b.frames().len(), 2);
    assert_eq!(b.state(), LecState::Join);
    b.seconds(1);
    assert_eq!(b.hung_up(), [b.control]);
    is_initial(&mut b);
}

#[test]
fn join_control_direct_lost_means_initial() {
    let mut b = at(LecState::Join);
    b.released(b.control);
    is_initial(&mut b);
}

#[test]
fn join_distribute_is_taken_from_the_les_alone() {
    let mut b = at(LecState::Join);
    assert!(!b.offer(address(0x44), Sap::LANE_CONTROL).1);
    assert!(b.offer(address(LES_ADDRESS), Sap::LANE_CONTROL).1);
    assert_eq!(b.state(), LecState::Join);
}

#[test]
fn join_distribute_lost_means_initial() {
    let mut b = at(LecState::Join);
    let distribute = b.caller(address(LES_ADDRESS), Sap::LANE_CONTROL);
    b.released(distribute);
    is_initial(&mut b);
}

#[test]
fn join_stale_or_foreign_response_is_ignored() {
    let mut b = at(LecState::Join);
    let mut stale = admission(&b);
    stale.transaction += 1;
    b.receive(b.control, &stale);
    assert_eq!(b.unasked(), 1);
    let mut foreign = admission(&b);
    foreign.source_atm = address(0x44);
    b.receive(b.control, &foreign);
    assert_eq!(b.state(), LecState::Join);
}

#[test]
fn join_other_calls_are_refused() {
    let mut b = at(LecState::Join);
    refuses_all(&mut b, &ALL[1..]);
}

// ---- initialRegistration ----

#[test]
fn initial_registration_granted_goes_on_to_the_bus() {
    let mut b = at(LecState::InitialRegistration);
    let answer = b.answer(Status::SUCCESS);
    b.receive(b.control, &answer);
    b.asked(OpCode::REGISTER);
    assert_eq!(b.pending.source.as_mac(), Some(mac(0x82)), "one by one");
    assert_eq!(b.state(), LecState::InitialRegistration);
    let answer = b.answer(Status::SUCCESS);
    b.receive(b.control, &answer);
    assert_eq!(b.state(), LecState::BusConnect);
}

#[test]
fn initial_registration_refused_means_initial() {
    let mut b = at(LecState::InitialRegistration);
    let answer = b.answer(Status::DUPLICATE_LAN);
    b.receive(b.control, &answer);
    let mut gone = b.hung_up();
    gone.sort_unstable();
    assert_eq!(gone, [b.control, b.distribute]);
    is_initial(&mut b);
}

#[test]
fn initial_registration_no_answer_repeats_then_initial() {
    let mut b = at(LecState::InitialRegistration);
    b.seconds(29);
    assert_eq!(b.frames().len(), 2);
    b.seconds(1);
    is_initial(&mut b);
}

#[test]
fn initial_registration_control_direct_lost_means_initial() {
    let mut b = at(LecState::InitialRegistration);
    b.released(b.control);
    assert_eq!(b.hung_up(), [b.distribute]);
    is_initial(&mut b);
}

#[test]
fn initial_registration_distribute_lost_means_initial() {
    let mut b = at(LecState::InitialRegistration);
    b.released(b.distribute);
    assert_eq!(b.hung_up(), [b.control]);
    is_initial(&mut b);
}

#[test]
fn initial_registration_stale_or_duplicate_response_is_unasked() {
    let mut b = at(LecState::InitialRegistration);
    let mut stale = b.answer(Status::SUCCESS);
    stale.transaction += 100;
    b.receive(b.control, &stale);
    let answer = b.answer(Status::SUCCESS);
    b.receive(b.control, &answer);
    b.receive(b.control, &answer);
    assert_eq!(b.unasked(), 2);
    assert_eq!(b.state(), LecState::InitialRegistration);
    // The response to another client, on control distribute.
    let mut foreign = b.answer(Status::DUPLICATE_LAN);
    foreign.lecid = 9;
    b.receive(b.distribute, &foreign);
    assert_eq!(b.state(), LecState::InitialRegistration);
}

#[test]
fn initial_registration_other_calls_are_refused() {
    let mut b = at(LecState::InitialRegistration);
    refuses_all(&mut b, &ALL[1..]);
}
