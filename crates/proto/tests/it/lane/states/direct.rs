//! Data direct connections: calling, called, ready, and how they end.

use super::*;

const PEER: u8 = 9;
const READY_QUERY: [u8; 6] = [0xff, 0, 1, 1, 0, 3];
const READY_IND: [u8; 6] = [0xff, 0, 1, 1, 1, 3];

/// A member that calls the owner of an address.
fn calling() -> Bench {
    calling_with(lec_config(0))
}
fn calling_with(config: LecConfig) -> Bench {
    let mut b = at_with(config, LecState::Operational);
    b.tell(Input::Transmit(frame(LEC0, mac(PEER), 0)));
    b.asked(OpCode::ARP);
    let mut answer = b.answer(Status::SUCCESS);
    answer.target_atm = address(PEER);
    b.receive(b.control, &answer);
    b.direct = b.call(Sap::LANE_DATA_ETHERNET).0;
    b.requests.clear();
    b
}
fn data_direct(b: &Bench) -> usize {
    let rows = b.lec().connections.into_iter();
    rows.filter(|row| row.role == "data direct").count()
}
fn from_peer() -> Vec<u8> {
    let mut octets = mac(1).0.to_vec();
    octets.extend(mac(PEER).0);
    octets.resize(60, 8);
    aerostat_wire::lane::DataFrame::encode(77, &octets)
}

// ---- calling ----

#[test]
fn calling_connected_says_ready() {
    let mut b = calling();
    b.connected(b.direct);
    assert_eq!(b.frames()[0], (b.direct, Control::ReadyIndication));
}

#[test]
fn calling_refused_is_gone() {
    let mut b = calling();
    b.released(b.direct);
    assert_eq!(data_direct(&b), 0);
}

#[test]
fn calling_query_is_answered_any_time() {
    let mut b = calling();
    b.connected(b.direct);
    b.frames();
    for _ in 0..2 {
        b.receive_sdu(b.direct, &READY_QUERY);
        assert_eq!(b.frames(), [(b.direct, Control::ReadyIndication)]);
    }
}

#[test]
fn calling_never_asks_for_ready() {
    let mut b = calling();
    b.connected(b.direct);
    b.seconds(20);
    let queries = b.frames().into_iter();
    let queries = queries.filter(|(_, frame)| *frame == Control::ReadyQuery);
    assert_eq!(queries.count(), 0);
}

#[test]
fn calling_frame_before_connected_is_delivered_by_none() {
    let mut b = calling();
    b.receive_sdu(b.direct, &from_peer());
    assert_eq!(b.lec().data.delivered, 0);
}

// ---- called ----

#[test]
fn called_connected_asks_every_c28_until_ready() {
    let mut b = at(LecState::Operational);
    let direct = b.caller(address(PEER), Sap::LANE_DATA_ETHERNET);
    for _ in 0..3 {
        b.pass(Duration::from_millis(3999));
        assert!(b.frames().is_empty());
        b.pass(Duration::from_millis(1));
        assert_eq!(b.frames(), [(direct, Control::ReadyQuery)]);
    }
    b.receive_sdu(direct, &READY_IND);
    b.seconds(20);
    assert!(b.frames().is_empty());
}

#[test]
fn called_data_is_as_good_as_ready() {
    let mut b = at(LecState::Operational);
    let direct = b.caller(address(PEER), Sap::LANE_DATA_ETHERNET);
    b.receive_sdu(direct, &from_peer());
    assert_eq!(b.lec().data.delivered, 1);
    b.seconds(20);
    assert!(b.frames().is_empty());
}

#[test]
fn called_ready_twice_is_ready_once() {
    let mut b = at(LecState::Operational);
    let direct = b.caller(address(PEER), Sap::LANE_DATA_ETHERNET);
    b.receive_sdu(direct, &READY_IND);
    b.receive_sdu(direct, &READY_IND);
    assert!(b.requests.is_empty());
    assert_eq!(b.bad(), 0);
}

#[test]
fn called_released_before_connected_is_gone() {
    let mut b = at(LecState::Operational);
    let (direct, taken) = b.offer(address(PEER), Sap::LANE_DATA_ETHERNET);
    assert!(taken);
    b.released(direct);
    assert_eq!(data_direct(&b), 0);
    b.seconds(20);
    assert!(b.frames().is_empty());
}

#[test]
fn called_by_nobody_or_too_often_is_refused() {
    let mut config = lec_config(0);
    config.limits.vccs = 3;
    let mut b = at_with(config, LecState::Operational);
    assert!(!b.offer(AtmAddress::ZERO, Sap::LANE_DATA_ETHERNET).1);
    let calls = (20..30).filter(|who| b.offer(address(*who), Sap::LANE_DATA_ETHERNET).1);
    assert_eq!(calls.count(), 3);
}

#[test]
fn called_with_llc_without_multiplexing_is_refused() {
    let mut b = at(LecState::Operational);
    assert!(!b.offer(address(PEER), Sap::LLC).1);
}

// ---- ready ----

#[test]
fn ready_idle_for_c12_is_released() {
    let mut config = lec_config(0);
    config.params.vcc_timeout = Duration::from_secs(20);
    let mut b = calling_with(config);
    b.connected(b.direct);
    b.seconds(15);
    b.receive_sdu(b.direct, &from_peer());
    b.seconds(19);
    assert!(b.hung_up().is_empty(), "frames that come are use, too");
    b.seconds(1);
    assert_eq!(b.hung_up(), [b.direct]);
    assert_eq!(data_direct(&b), 0);
}

#[test]
fn ready_c12_of_zero_is_never() {
    let mut config = lec_config(0);
    config.params.vcc_timeout = Duration::ZERO;
    let mut b = calling_with(config);
    b.connected(b.direct);
    b.seconds(100_000);
    assert_eq!(data_direct(&b), 1);
}

#[test]
fn ready_released_by_the_peer_is_gone() {
    let mut b = calling();
    b.connected(b.direct);
    b.released(b.direct);
    assert_eq!(data_direct(&b), 0);
    // A frame that still arrives for it is counted.
    b.receive_sdu(b.direct, &READY_IND);
    assert_eq!(b.bad(), 1);
}

/// The client has the lower address: its own call stays, and the peer releases the other one.
#[test]
fn ready_crossing_calls_the_lower_caller_wins() {
    let mut b = calling();
    let theirs = b.caller(address(PEER), Sap::LANE_DATA_ETHERNET);
    b.receive_sdu(theirs, &READY_IND);
    b.connected(b.direct);
    b.seconds(7);
    b.data();
    b.tell(Input::Transmit(frame(LEC0, mac(PEER), 1)));
    assert_eq!(b.data(), [b.direct]);
    assert!(b.hung_up().is_empty());
    // If the client's own call loses, that call ends after C21.
    let mut b = at(LecState::Operational);
    b.tell(Input::Transmit(frame(LEC0, mac(PEER), 0)));
    b.asked(OpCode::ARP);
    let mut answer = b.answer(Status::SUCCESS);
    answer.target_atm = address(0);
    b.receive(b.control, &answer);
    let ours = b.call(Sap::LANE_DATA_ETHERNET).0;
    let theirs = b.caller(address(0), Sap::LANE_DATA_ETHERNET);
    b.connected(ours);
    b.receive_sdu(theirs, &READY_IND);
    b.seconds(11);
    assert_eq!(b.hung_up(), [ours]);
    b.data();
    b.tell(Input::Transmit(frame(LEC0, mac(PEER), 1)));
    assert_eq!(b.data(), [theirs]);
}

#[test]
fn ready_one_of_two_lost_the_other_carries_on() {
    let mut b = calling();
    let theirs = b.caller(address(PEER), Sap::LANE_DATA_ETHERNET);
    b.receive_sdu(theirs, &READY_IND);
    b.connected(b.direct);
    b.seconds(7);
    b.tell(Input::Transmit(frame(LEC0, mac(PEER), 1)));
    b.released(b.direct);
    b.data();
    b.tell(Input::Transmit(frame(LEC0, mac(PEER), 2)));
    assert_eq!(b.data(), [theirs]);
}

#[test]
fn ready_frames_of_any_length_never_count_as_control() {
    let mut b = calling();
    b.connected(b.direct);
    b.receive_sdu(b.direct, &[0, 5, 1]);
    b.receive_sdu(b.direct, &vec![0; 1517]);
    assert_eq!(b.lec().data.bad_length, 2);
    let mut echo = from_peer();
    echo[..2].copy_from_slice(&LECID.to_be_bytes());
    b.receive_sdu(b.direct, &echo);
    assert_eq!(b.lec().data.echoes, 1);
    assert_eq!(b.lec().data.delivered, 0);
}
