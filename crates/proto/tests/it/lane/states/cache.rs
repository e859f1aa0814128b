//! Entries of the LE_ARP cache: unknown, arp pending, vc pending, flush pending, forward direct.

use super::*;
use aerostat_proto::lane::lec::{ArpStatus, LecArpRow};

const PEER: u8 = 9;

fn transmit(b: &mut Bench, number: u32) {
    b.tell(Input::Transmit(frame(LEC0, mac(PEER), number)));
}
fn row(b: &Bench) -> Option<LecArpRow> {
    b.lec().cache.into_iter().find(|row| row.mac == mac(PEER))
}
fn status(b: &Bench) -> Option<ArpStatus> {
    row(b).map(|row| row.status)
}
/// An answer to the pending LE_ARP request: this client owns the address.
fn owner(b: &Bench, who: u8) -> ControlFrame {
    let mut frame = b.pending.response(Status::SUCCESS);
    frame.target_atm = address(who);
    frame
}
/// Announcement of another client about the address; `who` 0 is "no source".
fn announcement(op: OpCode, who: u8) -> ControlFrame {
    let mut frame = ControlFrame::new(op);
    frame.lecid = 77;
    frame.source = LanDestination::mac(mac(PEER));
    frame.source_atm = match who {
        0 => AtmAddress::ZERO,
        who => address(who),
    };
    frame
}

/// A member with an entry in this state: one frame has gone to the BUS.
fn cached(wanted: ArpStatus) -> Bench {
    let mut b = at(LecState::Operational);
    transmit(&mut b, 0);
    assert_eq!(b.data(), [b.send]);
    b.asked(OpCode::ARP);
    assert_eq!(b.pending.target.as_mac(), Some(mac(PEER)));
    if wanted >= ArpStatus::VcPending {
        let answer = owner(&b, PEER);
        b.receive(b.control, &answer);
        let (conn, called) = b.call(Sap::LANE_DATA_ETHERNET);
        assert_eq!(called, address(PEER));
        b.direct = conn;
    }
    if wanted >= ArpStatus::FlushPending {
        b.connected(b.direct);
        let frames = b.frames();
        assert_eq!(frames[0], (b.direct, Control::ReadyIndication));
        let (via, Control::Frame(flush)) = &frames[1] else {
            panic!("{frames:?}");
        };
        assert_eq!((*via, flush.op), (b.send, OpCode::FLUSH));
        b.pending = (**flush).clone();
    }
    if wanted >= ArpStatus::ForwardDirect {
        let answer = b.answer(Status::SUCCESS);
        b.receive(b.distribute, &answer);
    }
    assert_eq!(status(&b), Some(wanted));
    b.requests.clear();
    b.notes.clear();
    b
}
fn dissociated(b: &Bench) -> bool {
    let told = |note: &Note| match note {
        Note::Lec(lec::Output::News(lec::News::Dissociate { mac: gone })) => *gone == mac(PEER),
        _ => false,
    };
    b.notes.iter().any(told)
}

// ---- unknown ----

#[test]
fn unknown_frame_goes_to_the_bus_and_asks() {
    let mut b = at(LecState::Operational);
    transmit(&mut b, 1);
    assert_eq!(b.data(), [b.send]);
    assert_eq!(b.asked(OpCode::ARP), b.control);
    assert_eq!(status(&b), Some(ArpStatus::ArpPending));
}

#[test]
fn unknown_data_frame_of_the_peer_teaches() {
    let mut b = at(LecState::Operational);
    let direct = b.caller(address(PEER), Sap::LANE_DATA_ETHERNET);
    let mut octets = mac(1).0.to_vec();
    octets.extend(mac(PEER).0);
    octets.resize(60, 8);
    let sdu = aerostat_wire::lane::DataFrame::encode(77, &octets);
    b.receive_sdu(direct, &sdu);
    let row = row(&b).expect("learned");
    assert_eq!((row.atm, row.from_data), (Some(address(PEER)), true));
    assert_eq!(row.status, ArpStatus::Unknown);
    // The first frame uses the BUS, and the connection follows; LE_ARP asks for the TLVs of the owner.
    transmit(&mut b, 1);
    assert_eq!(b.data(), [b.send]);
    let asked = b.frames().into_iter().map(|(via, frame)| match frame {
        Control::Frame(frame) => (via, frame.op),
        other => panic!("{other:?}"),
    });
    let asked: Vec<_> = asked.collect();
    assert_eq!(asked, [(b.control, OpCode::ARP), (b.send, OpCode::FLUSH)]);
    assert_eq!(status(&b), Some(ArpStatus::FlushPending));
}

#[test]
fn unknown_announcement_without_tlvs_teaches_nothing() {
    let mut b = at(LecState::Operational);
    for op in [OpCode::ARP, OpCode::NARP] {
        b.receive(b.distribute, &announcement(op, PEER));
    }
    assert_eq!(row(&b), None);
}

#[test]
fn unknown_announcement_with_tlvs_teaches() {
    let mut b = at(LecState::Operational);
    let mut told = announcement(OpCode::ARP, PEER);
    told.tlvs = vec![mps(8).to_tlv()].into();
    b.receive(b.distribute, &told);
    assert_eq!(row(&b).expect("learned").tlvs, [mps(8).to_tlv()]);
    assert_eq!(status(&b), Some(ArpStatus::Unknown));
}

#[test]
fn unknown_unsolicited_answer_teaches_nothing() {
    let mut b = at(LecState::Operational);
    let mut answer = ControlFrame::new(OpCode::ARP.response());
    (answer.lecid, answer.target_atm) = (LECID, address(PEER));
    answer.target = LanDestination::mac(mac(PEER));
    b.receive(b.control, &answer);
    assert_eq!((row(&b), b.unasked()), (None, 1));
}

// ---- arp pending ----

#[test]
fn arp_pending_answer_calls_the_owner() {
    let b = cached(ArpStatus::VcPending);
    let row = row(&b).expect("known");
    assert_eq!((row.atm, row.remote), (Some(address(PEER)), false));
}

#[test]
fn arp_pending_answer_when_connected_uses_that_connection() {
    let mut b = cached(ArpStatus::ArpPending);
    let direct = b.caller(address(PEER), Sap::LANE_DATA_ETHERNET);
    b.receive_sdu(direct, &[0xff, 0, 1, 1, 1, 3]);
    let answer = owner(&b, PEER);
    b.receive(b.control, &answer);
    assert!(b.calls(Sap::LANE_DATA_ETHERNET).is_empty());
    assert_eq!(b.asked(OpCode::FLUSH), b.send);
    assert_eq!(status(&b), Some(ArpStatus::FlushPending));
}

#[test]
fn arp_pending_remote_answer_is_noted() {
    let mut b = cached(ArpStatus::ArpPending);
    let mut answer = owner(&b, PEER);
    answer.flags = Flags::REMOTE;
    b.receive(b.control, &answer);
    assert!(row(&b).expect("known").remote);
}

#[test]
fn arp_pending_refusal_means_unknown() {
    let mut b = cached(ArpStatus::ArpPending);
    let answer = b.answer(Status::LAN_DESTINATION);
    b.receive(b.control, &answer);
    assert_eq!(row(&b), None);
    transmit(&mut b, 1);
    b.asked(OpCode::ARP);
}

#[test]
fn arp_pending_no_answer_asks_c13_times_more() {
    let mut b = cached(ArpStatus::ArpPending);
    let first = b.pending.transaction;
    b.seconds(1); // C20
    b.asked(OpCode::ARP);
    assert_ne!(b.pending.transaction, first);
    assert_eq!(status(&b), Some(ArpStatus::ArpPending));
    b.seconds(1);
    assert_eq!(row(&b), None, "C13 = 1");
    assert!(b.frames().is_empty());
}

#[test]
fn arp_pending_stale_answer_is_unasked() {
    let mut b = cached(ArpStatus::ArpPending);
    let old = owner(&b, PEER);
    b.seconds(1);
    b.receive(b.control, &old);
    assert_eq!(status(&b), Some(ArpStatus::ArpPending));
    assert_eq!(b.unasked(), 1);
}

#[test]
fn arp_pending_answer_to_another_client_is_ignored() {
    let mut b = cached(ArpStatus::ArpPending);
    let mut answer = owner(&b, PEER);
    answer.lecid = 9;
    b.receive(b.distribute, &answer);
    assert_eq!(status(&b), Some(ArpStatus::ArpPending));
    assert_eq!(b.unasked(), 0);
}

/// The address is not local, so its owner cannot be this client: the client would have to call itself.
#[test]
fn arp_pending_answer_that_names_ourselves_means_unknown() {
    let mut b = cached(ArpStatus::ArpPending);
    let answer = owner(&b, 1);
    b.receive(b.control, &answer);
    assert_eq!(row(&b), None);
    assert!(b.calls(Sap::LANE_DATA_ETHERNET).is_empty());
}

#[test]
fn arp_pending_more_frames_do_not_ask_again() {
    let mut b = cached(ArpStatus::ArpPending);
    for number in 1..20 {
        transmit(&mut b, number);
    }
    assert!(b.frames().is_empty());
    assert_eq!(b.data().len(), 9, "C10 = 10 with the first");
    b.seconds(1); // C11
    assert_eq!(b.data().len(), 10);
}

#[test]
fn arp_pending_announcement_is_as_good_as_an_answer() {
    let mut b = cached(ArpStatus::ArpPending);
    b.receive(b.distribute, &announcement(OpCode::ARP, PEER));
    assert_eq!(b.call(Sap::LANE_DATA_ETHERNET).1, address(PEER));
    let late = owner(&b, PEER);
    b.receive(b.control, &late);
    assert_eq!(b.unasked(), 1);
}

// ---- vc pending ----

#[test]
fn vc_pending_connected_flushes_the_old_path() {
    let mut b = cached(ArpStatus::FlushPending);
    transmit(&mut b, 1);
    assert!(b.data().is_empty(), "held until the BUS is empty");
}

#[test]
fn vc_pending_connected_after_a_silence_needs_no_flush() {
    let mut b = cached(ArpStatus::VcPending);
    b.seconds(6); // C22: no frame can be under way any more.
    b.connected(b.direct);
    assert_eq!(b.frames(), [(b.direct, Control::ReadyIndication)]);
    assert_eq!(status(&b), Some(ArpStatus::ForwardDirect));
}

#[test]
fn vc_pending_refused_stays_on_the_bus_and_calls_later() {
    let mut b = cached(ArpStatus::VcPending);
    b.released(b.direct);
    b.asked(OpCode::ARP); // The address may have moved.
    let answer = owner(&b, PEER);
    b.receive(b.control, &answer);
    transmit(&mut b, 1);
    assert_eq!(b.data(), [b.send]);
    assert!(b.calls(Sap::LANE_DATA_ETHERNET).is_empty());
    b.seconds(5);
    transmit(&mut b, 2);
    assert_eq!(b.call(Sap::LANE_DATA_ETHERNET).1, address(PEER));
}

#[test]
fn vc_pending_owner_moves_calls_the_new_one() {
    let mut b = cached(ArpStatus::VcPending);
    b.receive(b.distribute, &announcement(OpCode::ARP, 8));
    transmit(&mut b, 1);
    assert_eq!(b.call(Sap::LANE_DATA_ETHERNET).1, address(8));
    // The previous owner accepts the call: its connection is not for these frames.
    b.connected(b.direct);
    transmit(&mut b, 2);
    assert_eq!(b.data(), [b.send, b.send]);
    assert_eq!(status(&b), Some(ArpStatus::VcPending));
}

#[test]
fn vc_pending_narp_without_source_means_unknown() {
    let mut b = cached(ArpStatus::VcPending);
    b.receive(b.distribute, &announcement(OpCode::NARP, 0));
    assert_eq!(row(&b), None);
    assert!(dissociated(&b));
    b.connected(b.direct);
    assert_eq!(row(&b), None);
}

#[test]
fn vc_pending_called_by_the_owner_uses_its_connection() {
    let mut b = cached(ArpStatus::VcPending);
    let theirs = b.caller(address(PEER), Sap::LANE_DATA_ETHERNET);
    assert_eq!(status(&b), Some(ArpStatus::VcPending), "not ready yet");
    b.receive_sdu(theirs, &[0xff, 0, 1, 1, 1, 3]);
    assert_eq!(status(&b), Some(ArpStatus::FlushPending));
}

// ---- flush pending ----

#[test]
fn flush_pending_answer_means_forward_direct() {
    let mut b = cached(ArpStatus::FlushPending);
    transmit(&mut b, 1);
    transmit(&mut b, 2);
    let answer = b.answer(Status::SUCCESS);
    b.receive(b.control, &answer);
    assert_eq!(b.data(), [b.direct, b.direct], "what was held, in order");
    assert_eq!(status(&b), Some(ArpStatus::ForwardDirect));
    // The same again, on control distribute: it may be the answer to a repeated request.
    b.receive(b.distribute, &answer);
    assert_eq!(b.unasked(), 0);
}

#[test]
fn flush_pending_stale_or_foreign_answer_changes_nothing() {
    let mut b = cached(ArpStatus::FlushPending);
    let mut stale = b.answer(Status::SUCCESS);
    stale.transaction += 1;
    b.receive(b.control, &stale);
    assert_eq!(b.unasked(), 1);
    let mut foreign = b.answer(Status::SUCCESS);
    foreign.lecid = 9;
    b.receive(b.distribute, &foreign);
    // The flush request itself, which the BUS copies to all members, this client included.
    let echo = b.pending.clone();
    b.receive(b.forward, &echo);
    assert_eq!(status(&b), Some(ArpStatus::FlushPending));
    assert!(b.frames().is_empty());
}

#[test]
fn flush_pending_no_answer_switches_after_c22() {
    let mut b = cached(ArpStatus::FlushPending);
    b.seconds(4); // C21: the answer is lost.
    assert_eq!(status(&b), Some(ArpStatus::FlushPending));
    b.seconds(2); // C22 since the last frame.
    assert_eq!(status(&b), Some(ArpStatus::ForwardDirect));
}

#[test]
fn flush_pending_no_answer_repeats_the_request_every_c20_until_c21() {
    let mut b = cached(ArpStatus::FlushPending);
    transmit(&mut b, 1);
    let first = (b.send, Control::Frame(Box::new(b.pending.clone())));
    for _ in 0..3 {
        b.seconds(1); // C20
        assert_eq!(
            b.frames(),
            std::slice::from_ref(&first),
            "the same, on the same path"
        );
    }
    b.seconds(1);
    assert!(b.frames().is_empty(), "C21");
    assert!(b.data().is_empty(), "still held");

    let mut b = cached(ArpStatus::FlushPending);
    transmit(&mut b, 1);
    b.seconds(1);
    let answer = b.answer(Status::SUCCESS);
    b.receive(b.control, &answer);
    assert_eq!(status(&b), Some(ArpStatus::ForwardDirect));
    assert_eq!(b.data(), [b.direct]);
    // The answer to the other request is no fault.
    b.receive(b.control, &answer);
    assert_eq!(
        (b.unasked(), status(&b)),
        (0, Some(ArpStatus::ForwardDirect))
    );
}

#[test]
fn flush_pending_connection_lost_means_the_bus() {
    let mut b = cached(ArpStatus::FlushPending);
    transmit(&mut b, 1);
    b.released(b.direct);
    assert_eq!(b.data(), [b.send], "what was held");
    // The frame waits for a path: the owner is known, and is called again.
    assert!(status(&b) < Some(ArpStatus::FlushPending));
    transmit(&mut b, 2);
    assert_eq!(b.call(Sap::LANE_DATA_ETHERNET).1, address(PEER));
}

#[test]
fn flush_pending_bus_lost_still_switches() {
    let mut b = cached(ArpStatus::FlushPending);
    b.released(b.send);
    b.seconds(6);
    assert_eq!(status(&b), Some(ArpStatus::ForwardDirect));
    transmit(&mut b, 1);
    assert_eq!(b.data(), [b.direct]);
}

#[test]
fn flush_pending_narp_moves_to_the_new_owner() {
    let mut b = cached(ArpStatus::FlushPending);
    transmit(&mut b, 1);
    b.receive(b.distribute, &announcement(OpCode::NARP, 8));
    assert_eq!(b.data(), [b.send]);
    transmit(&mut b, 2);
    assert_eq!(b.call(Sap::LANE_DATA_ETHERNET).1, address(8));
    let late = b.answer(Status::SUCCESS);
    b.receive(b.control, &late);
    assert_eq!(status(&b), Some(ArpStatus::VcPending));
}

// ---- forward direct ----

#[test]
fn forward_direct_frames_go_on_the_connection() {
    let mut b = cached(ArpStatus::ForwardDirect);
    transmit(&mut b, 1);
    assert_eq!(b.data(), [b.direct]);
    assert!(b.frames().is_empty());
}

#[test]
fn forward_direct_connection_lost_means_the_bus() {
    let mut b = cached(ArpStatus::ForwardDirect);
    b.released(b.direct);
    assert_eq!(status(&b), Some(ArpStatus::Unknown));
    transmit(&mut b, 1);
    assert_eq!(b.data(), [b.send]);
    assert_eq!(b.call(Sap::LANE_DATA_ETHERNET).1, address(PEER));
}

#[test]
fn forward_direct_unused_for_c17_means_unknown() {
    let mut b = cached(ArpStatus::ForwardDirect);
    b.seconds(299);
    assert_eq!(status(&b), Some(ArpStatus::ForwardDirect));
    b.seconds(2);
    assert_eq!(row(&b), None);
    assert!(dissociated(&b) && b.frames().is_empty());
}

#[test]
fn forward_direct_used_for_c17_is_verified() {
    let mut b = cached(ArpStatus::ForwardDirect);
    b.seconds(200);
    transmit(&mut b, 1);
    b.data();
    b.seconds(100);
    b.asked(OpCode::ARP);
    assert_eq!(
        status(&b),
        Some(ArpStatus::ForwardDirect),
        "in use meanwhile"
    );
    let answer = owner(&b, PEER);
    b.receive(b.control, &answer);
    transmit(&mut b, 2);
    assert_eq!(b.data(), [b.direct]);
    b.seconds(290);
    assert_eq!(status(&b), Some(ArpStatus::ForwardDirect));
}

#[test]
fn forward_direct_verified_elsewhere_moves() {
    let mut b = cached(ArpStatus::ForwardDirect);
    b.seconds(200);
    transmit(&mut b, 1);
    b.seconds(100);
    b.data();
    b.asked(OpCode::ARP);
    let answer = owner(&b, 8);
    b.receive(b.control, &answer);
    transmit(&mut b, 2);
    assert_eq!(b.call(Sap::LANE_DATA_ETHERNET).1, address(8));
    // Frames follow on the BUS, behind those that went on the old connection.
    assert_eq!(b.data(), [b.send]);
}

#[test]
fn forward_direct_verified_by_nobody_means_unknown() {
    let mut b = cached(ArpStatus::ForwardDirect);
    b.seconds(200);
    transmit(&mut b, 1);
    b.seconds(102);
    assert_eq!(row(&b), None);
    assert!(dissociated(&b));
}

#[test]
fn forward_direct_topology_change_hurries_remote_entries_alone() {
    for (remote, left) in [(true, None), (false, Some(ArpStatus::ForwardDirect))] {
        let mut b = cached(ArpStatus::ForwardDirect);
        let mut told = announcement(OpCode::ARP, PEER);
        told.flags = if remote { Flags::REMOTE } else { Flags::NONE };
        b.receive(b.distribute, &told);
        let mut change = ControlFrame::new(OpCode::TOPOLOGY);
        (change.lecid, change.flags) = (9, Flags::TOPOLOGY_CHANGE);
        b.receive(b.distribute, &change);
        b.seconds(16); // C18 = 15 s
        assert_eq!(status(&b), left);
    }
}

#[test]
fn forward_direct_narp_without_source_means_unknown() {
    let mut b = cached(ArpStatus::ForwardDirect);
    b.receive(b.distribute, &announcement(OpCode::NARP, 0));
    assert_eq!(row(&b), None);
    transmit(&mut b, 1);
    assert_eq!(b.data(), [b.send]);
    b.asked(OpCode::ARP);
}

#[test]
fn forward_direct_narp_with_source_moves() {
    let mut b = cached(ArpStatus::ForwardDirect);
    b.receive(b.distribute, &announcement(OpCode::NARP, 8));
    assert_eq!(row(&b).expect("known").atm, Some(address(8)));
    transmit(&mut b, 1);
    assert_eq!(b.call(Sap::LANE_DATA_ETHERNET).1, address(8));
}

/// The client's own LE_NARP that the LES copies back, or an LE_NARP that names this client, changes nothing.
#[test]
fn forward_direct_narp_of_ourselves_is_ignored() {
    let mut b = cached(ArpStatus::ForwardDirect);
    let mut own = announcement(OpCode::NARP, 1);
    own.lecid = LECID;
    b.receive(b.distribute, &own);
    b.receive(b.distribute, &announcement(OpCode::NARP, 1));
    assert_eq!(row(&b).expect("known").atm, Some(address(PEER)));
}

#[test]
fn forward_direct_narp_is_ignored_by_v1() {
    let config = LecConfig {
        v2: false,
        ..lec_config(0)
    };
    let mut b = at_with(config, LecState::Operational);
    transmit(&mut b, 1);
    b.asked(OpCode::ARP);
    let answer = owner(&b, PEER);
    b.receive(b.control, &answer);
    b.receive(b.distribute, &announcement(OpCode::NARP, 0));
    assert!(row(&b).is_some());
}

#[test]
fn forward_direct_announcement_updates_tlvs_and_keeps_the_path() {
    let mut b = cached(ArpStatus::ForwardDirect);
    let mut told = announcement(OpCode::ARP, PEER);
    told.tlvs = vec![mps(8).to_tlv()].into();
    b.receive(b.distribute, &told);
    assert_eq!(row(&b).expect("known").tlvs, [mps(8).to_tlv()]);
    transmit(&mut b, 1);
    assert_eq!(b.data(), [b.direct]);
}

#[test]
fn forward_direct_control_connection_lost_forgets() {
    let mut b = cached(ArpStatus::ForwardDirect);
    b.released(b.control);
    assert!(b.lec().cache.is_empty() && dissociated(&b));
    assert!(b.hung_up().contains(&b.direct));
}
