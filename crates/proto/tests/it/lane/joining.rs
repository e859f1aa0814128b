//! Joining: order of events, servers that come late, refusals.

use super::*;
use aerostat_proto::Cause;
use aerostat_proto::lane::lec::{LecState, News, Output};
use aerostat_wire::Sap;
use aerostat_wire::lane::{MaxFrameSize, Tlv, TlvType};

#[test]
fn three_clients_join() {
    let mut w = joined_world(3);
    let les = les_of(&w).snapshot();
    let mut lecids: Vec<u16> = les.clients.iter().map(|c| c.lecid).collect();
    lecids.sort_unstable();
    assert_eq!(lecids, [1, 2, 3]);
    assert!(
        les.clients
            .iter()
            .all(|c| c.v2 && c.state == "joined" && !c.copy)
    );
    let bus = bus_of(&w).snapshot();
    assert_eq!((bus.members, bus.clients.len()), (3, 3));
    assert!(bus.clients.iter().all(|c| c.forward));
    // One point-to-multipoint connection each, rooted at the servers.
    let control = w.net.roots(Sap::LANE_CONTROL);
    assert_eq!(control.iter().filter(|who| **who == LES).count(), 1);
    let multicast = w.net.roots(Sap::LANE_MULTICAST_ETHERNET);
    assert_eq!(multicast.iter().filter(|who| **who == BUS).count(), 1);
    // Config direct is released, control and multicast connections stay: 2 x 3 + 2.
    assert_eq!(w.net.calls(), 8);
    let told = w.take_notes();
    let joined: Vec<_> = (told.iter())
        .filter_map(|(_, who, note)| match note {
            Note::Lec(Output::News(News::Joined {
                elan_id, max_frame, ..
            })) => Some((*who, *elan_id, *max_frame)),
            _ => None,
        })
        .collect();
    assert_eq!(joined.len(), 3);
    assert!(
        joined
            .iter()
            .all(|j| j.1 == 7 && j.2 == MaxFrameSize::S1516)
    );
    finish(w);
}

#[test]
fn lecid_of_one_who_left_is_assigned_again() {
    let mut w = joined_world(3);
    stop(&mut w, LEC0 + 1);
    w.run_for(Duration::from_millis(100));
    assert_eq!(les_of(&w).snapshot().clients.len(), 2);
    assert_eq!(bus_of(&w).snapshot().clients.len(), 2);
    let before = lec_of(&w, LEC0).snapshot().lecid;
    start(&mut w, LEC0 + 1);
    w.run_for(Duration::from_millis(500));
    let again = lec_of(&w, LEC0 + 1).snapshot().lecid;
    assert_ne!(again, before);
    assert!((1..=3).contains(&again));
    finish(w);
}

#[test]
fn lecs_comes_late() {
    let mut w = world(vec![lec_config(0)]);
    w.replace(LECS, new_lecs());
    start(&mut w, LEC0);
    w.run_for(Duration::from_secs(60));
    assert_ne!(lec_of(&w, LEC0).state(), LecState::Operational);
    start(&mut w, LECS);
    w.run_for(Duration::from_secs(6));
    assert_eq!(lec_of(&w, LEC0).state(), LecState::Operational);
    finish(w);
}

#[test]
fn lecs_addresses_in_order() {
    // The configured address does not answer, the anycast address is refused, the well-known address serves.
    let config = LecConfig {
        lecs: Some(address(0xee)),
        ..lec_config(0)
    };
    let mut w = world(vec![config]);
    w.net
        .refuse(AtmAddress::LECS_ANYCAST, None, Cause::NO_ROUTE, 1);
    start(&mut w, LEC0);
    w.run_for(Duration::from_millis(100));
    assert_eq!(lec_of(&w, LEC0).state(), LecState::Operational);
    assert_eq!(w.net.refusals[0].times, 0);
    finish(w);
}

#[test]
fn les_address_by_hand_needs_no_lecs() {
    let config = LecConfig {
        les: Some(address(0xa1)),
        ..lec_config(0)
    };
    let mut w = world(vec![config]);
    w.replace(LECS, new_lecs());
    start(&mut w, LEC0);
    w.run_for(Duration::from_millis(100));
    assert_eq!(lec_of(&w, LEC0).state(), LecState::Operational);
    finish(w);
}

#[test]
fn lecs_parameters_reach_client_and_user() {
    let mut w = world(vec![lec_config(0)]);
    let mut elan1 = Elan::new(elan(), address(0xa1));
    let p1 = Tlv::u16(TlvType::MPC_P1, 3);
    elan1.tlvs = vec![Tlv::u32(TlvType::VCC_TIMEOUT, 60), p1.clone()];
    let config = LecsConfig {
        address: address(0xa0),
        well_known: true,
        elans: vec![elan1],
        default: Some(elan()),
        ..LecsConfig::default()
    };
    w.replace(LECS, Node::Lecs(Box::new(Lecs::new(config))));
    start(&mut w, LECS);
    // A client without a name gets the default ELAN.
    let nameless = LecConfig {
        elan: ElanName::EMPTY,
        ..lec_config(0)
    };
    w.users[LEC0] = Node::Lec(Box::new(Lec::new(nameless)));
    start(&mut w, LEC0);
    w.run_for(Duration::from_millis(100));
    let found = w
        .take_notes()
        .into_iter()
        .find_map(|(_, _, note)| match note {
            Note::Lec(Output::News(News::Joined { elan, tlvs, .. })) => Some((elan, tlvs)),
            _ => None,
        });
    let (name, tlvs) = found.expect("joined");
    assert!(name.same(&elan()));
    assert!(tlvs.contains(&p1));
    finish(w);
}

#[test]
fn wrong_elan_is_refused_and_tried_again() {
    let config = LecConfig {
        elan: ElanName::new("other").unwrap(),
        ..lec_config(0)
    };
    let mut w = world(vec![config]);
    start(&mut w, LEC0);
    w.run_for(Duration::from_secs(30));
    assert_ne!(lec_of(&w, LEC0).state(), LecState::Operational);
    let refused = w.take_notes().into_iter().filter(|(_, _, note)| {
        matches!(note, Note::Trace(trace) if trace.name == "lecs.refused" && trace.text.read().contains("status 20"))
    });
    // A random delay of 0 to 5 s between two tries.
    assert!((5..60).contains(&refused.count()));
    finish(w);
}

#[test]
fn duplicate_mac_is_refused() {
    let twin = LecConfig {
        mac: mac(1),
        ..lec_config(1)
    };
    let mut w = world(vec![lec_config(0), twin]);
    start(&mut w, LEC0);
    w.run_for(Duration::from_millis(100));
    start(&mut w, LEC0 + 1);
    w.run_for(Duration::from_secs(20));
    assert_eq!(lec_of(&w, LEC0).state(), LecState::Operational);
    assert_ne!(lec_of(&w, LEC0 + 1).state(), LecState::Operational);
    let notes = w.take_notes();
    assert!(notes.iter().any(|(_, who, note)| {
        *who == LEC0 + 1
            && matches!(note, Note::Trace(trace) if trace.text.read().contains("status 4"))
    }));
    // The first client leaves: the second joins by itself.
    stop(&mut w, LEC0);
    w.run_for(Duration::from_secs(6));
    assert_eq!(lec_of(&w, LEC0 + 1).state(), LecState::Operational);
    finish(w);
}

/// A second client joins while calls for its control distribute fail with `cause`; after `patience` it is a leaf
/// nevertheless.
fn leaf_after_failed_calls(cause: Cause, times: u32, patience: Duration) {
    let mut w = world(vec![lec_config(0), lec_config(1)]);
    start(&mut w, LEC0);
    w.run_for(Duration::from_millis(100));
    w.net
        .refuse(address(2), Some(Sap::LANE_CONTROL), cause, times);
    start(&mut w, LEC0 + 1);
    w.run_for(patience);
    assert_eq!(lec_of(&w, LEC0 + 1).state(), LecState::Operational);
    assert!(les_of(&w).snapshot().clients.iter().all(|c| !c.copy));
    finish(w);
}

#[test]
fn leaf_that_listens_late_is_tried_again() {
    // Like a Linux client whose listener does not exist yet.
    leaf_after_failed_calls(Cause::INCOMPATIBLE, 1, Duration::from_secs(1));
}

#[test]
fn leaf_behind_a_way_that_is_cut_for_a_moment_is_added_soon() {
    // Three waits of at most 20, 40 and 80 ms, and the messages of the join.
    let patience = Duration::from_millis(250);
    leaf_after_failed_calls(Cause::NETWORK_OUT_OF_ORDER, 3, patience);
}

#[test]
fn leaf_that_goes_on_refusing_gets_a_copy() {
    let mut w = world(vec![lec_config(0), lec_config(1)]);
    start(&mut w, LEC0);
    w.run_for(Duration::from_millis(100));
    w.net
        .refuse(address(2), Some(Sap::LANE_CONTROL), Cause::REJECTED, 3);
    start(&mut w, LEC0 + 1);
    w.run_for(Duration::from_secs(3));
    assert_eq!(lec_of(&w, LEC0 + 1).state(), LecState::Operational);
    let les = les_of(&w).snapshot();
    assert_eq!(les.clients.iter().filter(|c| c.copy).count(), 1);
    finish(w);
}

#[test]
fn client_that_cannot_be_called_is_served_on_control_direct() {
    let mut w = world(vec![lec_config(0), lec_config(1)]);
    w.net.refuse(
        address(1),
        Some(Sap::LANE_CONTROL),
        Cause::INCOMPATIBLE,
        u32::MAX,
    );
    for who in [LEC0, LEC0 + 1] {
        start(&mut w, who);
    }
    w.run_for(Duration::from_secs(10));
    for who in [LEC0, LEC0 + 1] {
        assert_eq!(lec_of(&w, who).state(), LecState::Operational);
    }
    // Announcements reach the client nevertheless.
    unicast(&mut w, LEC0, LEC0 + 1, 1);
    w.run_for(Duration::from_secs(1));
    w.take_notes();
    tell(&mut w, LEC0 + 1, lec::Input::SetTlvs(vec![mps(1).to_tlv()]));
    w.run_for(Duration::from_secs(1));
    assert!(w.take_notes().iter().any(|(_, who, note)| *who == LEC0
        && matches!(note, Note::Lec(Output::News(News::Associate { mac: m, .. })) if *m == mac(2))));
    finish(w);
}

#[test]
fn lost_requests_are_repeated() {
    let mut w = world(vec![lec_config(0)]);
    let mut count = 0;
    w.net.loss = Some(Box::new(move |_| {
        count += 1;
        count % 2 == 1
    }));
    start(&mut w, LEC0);
    w.run_for(Duration::from_secs(120));
    w.net.loss = None;
    w.run_for(Duration::from_secs(60));
    assert_eq!(lec_of(&w, LEC0).state(), LecState::Operational);
    finish(w);
}

#[test]
fn further_mac_addresses_are_registered() {
    let config = LecConfig {
        more_macs: vec![mac(0x31), mac(0x32)],
        tlvs: vec![mps(0).to_tlv()],
        ..lec_config(0)
    };
    let mut w = world(vec![config, lec_config(1)]);
    for who in [LEC0, LEC0 + 1] {
        start(&mut w, who);
    }
    w.run_for(Duration::from_millis(500));
    let les = les_of(&w).snapshot();
    let row = les
        .clients
        .iter()
        .find(|c| c.address == address(1))
        .unwrap();
    assert_eq!(row.macs, [mac(1), mac(0x31), mac(0x32)]);
    w.take_notes();
    let octets = frame(LEC0 + 1, mac(0x32), 5);
    tell(&mut w, LEC0 + 1, lec::Input::Transmit(octets));
    tell(&mut w, LEC0 + 1, lec::Input::Resolve { mac: mac(0x31) });
    w.run_for(Duration::from_millis(500));
    let want = Some((address(1), vec![mps(0).to_tlv()]));
    assert!(w.notes.iter().any(|(_, _, note)| {
        matches!(note, Note::Lec(Output::News(News::Resolved { owner, .. })) if *owner == want)
    }));
    assert_eq!(delivered(&mut w, LEC0), [5]);
    finish(w);
}

#[test]
fn the_bus_says_whom_it_reaches_once_the_leaf_is_there_and_when_it_is_gone() {
    let mut w = joined_world(3);
    let reached = |w: &mut World<Node>| -> Vec<(AtmAddress, bool)> {
        let told = w.take_notes().into_iter();
        let told = told.filter_map(|(_, who, note)| match note {
            Note::Reaches(address, reached) if who == BUS => Some((address, reached)),
            _ => None,
        });
        told.collect()
    };
    let mut told = reached(&mut w);
    told.sort_unstable();
    assert_eq!(told, [1, 2, 3].map(|n| (address(n), true)));
    stop(&mut w, LEC0 + 1);
    w.run_for(Duration::from_millis(100));
    assert_eq!(reached(&mut w), [(address(2), false)]);
    // It joins again.
    start(&mut w, LEC0 + 1);
    w.run_for(Duration::from_millis(500));
    assert_eq!(reached(&mut w), [(address(2), true)]);
    stop(&mut w, BUS);
    let mut told = reached(&mut w);
    told.sort_unstable();
    assert_eq!(told, [1, 2, 3].map(|n| (address(n), false)));
}
