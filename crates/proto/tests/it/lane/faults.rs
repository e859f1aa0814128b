//! Servers that die and come back, and connections that break.

use super::*;
use aerostat_proto::lane::lec::{LecState, News, Output};
use aerostat_wire::Sap;

fn operational(w: &World<Node>, clients: usize) -> bool {
    let mut all = (LEC0..LEC0 + clients).map(|who| lec_of(w, who).state());
    all.all(|state| state == LecState::Operational)
}
fn left(w: &mut World<Node>) -> usize {
    let notes = w.take_notes();
    let left = |note: &Note| matches!(note, Note::Lec(Output::News(News::Left)));
    notes.iter().filter(|(_, _, note)| left(note)).count()
}

#[test]
fn les_crashes_and_returns() {
    let mut w = joined_world(3);
    w.take_notes();
    w.replace(LES, new_les());
    // The membership ends with the LES: the owner of both tells the BUS, in this test by a restart.
    w.replace(BUS, new_bus());
    start(&mut w, BUS);
    w.run_for(Duration::from_secs(10));
    assert_eq!(left(&mut w), 3);
    assert!(!operational(&w, 3));
    start(&mut w, LES);
    w.run_for(Duration::from_secs(10));
    assert!(operational(&w, 3));
    assert_eq!(les_of(&w).snapshot().clients.len(), 3);
    finish(w);
}

#[test]
fn bus_crashes_and_returns() {
    let mut w = joined_world(3);
    w.take_notes();
    w.replace(BUS, new_bus());
    w.run_for(Duration::from_secs(10));
    assert!(!operational(&w, 3));
    start(&mut w, BUS);
    w.run_for(Duration::from_secs(20));
    assert!(operational(&w, 3));
    unicast(&mut w, LEC0, LEC0 + 2, 5);
    w.run_for(Duration::from_millis(100));
    assert_eq!(delivered(&mut w, LEC0 + 2), [5]);
    finish(w);
}

#[test]
fn bus_connection_is_renewed_without_leaving() {
    let mut w = joined_world(2);
    w.take_notes();
    let now = w.now;
    w.net.break_calls(LEC0, Sap::LANE_MULTICAST_ETHERNET, now);
    w.run_for(Duration::from_secs(2));
    assert!(operational(&w, 2));
    assert_eq!(left(&mut w), 0, "the ELAN was never left");
    finish(w);
}

#[test]
fn control_connection_lost_means_rejoin() {
    let mut w = joined_world(2);
    w.take_notes();
    let now = w.now;
    w.net.break_calls(LEC0, Sap::LANE_CONTROL, now);
    w.run_for(Duration::from_secs(12));
    assert!(operational(&w, 2));
    // The point-to-multipoint connection was shared: both joined again.
    assert_eq!(left(&mut w), 2);
    finish(w);
}

#[test]
fn data_direct_connection_lost() {
    let mut w = joined_world(2);
    unicast(&mut w, LEC0, LEC0 + 1, 1);
    w.run_for(Duration::from_secs(1));
    let now = w.now;
    w.net.break_calls(LEC0, Sap::LANE_DATA_ETHERNET, now);
    w.run_for(Duration::from_secs(1));
    delivered(&mut w, LEC0 + 1);
    for number in 0..20 {
        unicast(&mut w, LEC0, LEC0 + 1, number);
        w.run_for(Duration::from_millis(1));
    }
    w.run_for(Duration::from_secs(1));
    let got = delivered(&mut w, LEC0 + 1);
    assert_eq!(got, (0..20).collect::<Vec<_>>());
    assert_eq!(w.net.roots(Sap::LANE_DATA_ETHERNET).len(), 1);
    finish(w);
}

#[test]
fn client_crashes_and_returns() {
    let mut w = joined_world(3);
    unicast(&mut w, LEC0, LEC0 + 1, 1);
    w.run_for(Duration::from_secs(1));
    w.replace(LEC0 + 1, Node::Lec(Box::new(Lec::new(lec_config(1)))));
    w.run_for(Duration::from_secs(1));
    assert_eq!(les_of(&w).snapshot().clients.len(), 2);
    start(&mut w, LEC0 + 1);
    w.run_for(Duration::from_secs(1));
    assert!(operational(&w, 3));
    delivered(&mut w, LEC0 + 1);
    unicast(&mut w, LEC0, LEC0 + 1, 2);
    w.run_for(Duration::from_secs(1));
    assert_eq!(delivered(&mut w, LEC0 + 1), [2]);
    finish(w);
}

#[test]
fn random_loss_never_wedges_the_elan() {
    for seed in 0..10_u64 {
        let mut w = joined_world(3);
        let mut x = seed * 7919 + 1;
        w.net.loss = Some(Box::new(move |_| {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (x >> 33).is_multiple_of(5)
        }));
        for number in 0..300 {
            for (from, to) in [(0, 1), (1, 0), (2, 0), (1, 2)] {
                unicast(&mut w, LEC0 + from, LEC0 + to, number);
            }
            w.run_for(Duration::from_millis(30));
            if number == 150 {
                let now = w.now;
                w.net.break_calls(LEC0 + 1, Sap::LANE_DATA_ETHERNET, now);
                w.net.break_calls(LEC0 + 2, Sap::LANE_CONTROL, now);
            }
        }
        w.net.loss = None;
        w.run_for(Duration::from_secs(60));
        assert!(operational(&w, 3), "seed {seed}");
        delivered(&mut w, LEC0);
        unicast(&mut w, LEC0 + 2, LEC0, 9999);
        w.run_for(Duration::from_secs(1));
        assert_eq!(delivered(&mut w, LEC0), [9999], "seed {seed}");
        finish(w);
    }
}

#[test]
fn same_seed_same_story() {
    let story = || {
        let mut w = joined_world(3);
        w.replace(LES, new_les());
        w.run_for(Duration::from_secs(20));
        start(&mut w, LES);
        w.run_for(Duration::from_secs(20));
        let notes = w.take_notes();
        notes
            .iter()
            .map(|note| format!("{note:?}"))
            .collect::<Vec<_>>()
    };
    assert_eq!(story(), story());
}

#[test]
fn call_that_was_never_ready_and_went_is_replaced() {
    let mut w = joined_world(2);
    // Client 1 calls; every frame that would make client 0 ready is lost.
    let from_1 = lec_of(&w, LEC0 + 1).snapshot().lecid.to_be_bytes();
    w.net.loss = Some(Box::new(move |sdu| {
        sdu.len() == 6 || sdu.starts_with(&from_1)
    }));
    unicast(&mut w, LEC0 + 1, LEC0, 1);
    w.run_for(Duration::from_millis(100));
    assert_eq!(w.net.roots(Sap::LANE_DATA_ETHERNET), [LEC0 + 1]);
    unicast(&mut w, LEC0, LEC0 + 1, 1);
    w.run_for(Duration::from_millis(100));
    assert_eq!(
        w.net.roots(Sap::LANE_DATA_ETHERNET),
        [LEC0 + 1],
        "waits for READY"
    );
    let now = w.now;
    w.net.break_calls(LEC0, Sap::LANE_DATA_ETHERNET, now);
    w.run_for(Duration::from_millis(100));
    w.net.loss = None;
    for number in 0..3 {
        unicast(&mut w, LEC0, LEC0 + 1, number);
        w.run_for(Duration::from_millis(500));
    }
    assert_eq!(w.net.roots(Sap::LANE_DATA_ETHERNET), [LEC0]);
    let cache = lec_of(&w, LEC0).snapshot().cache;
    assert!(cache.iter().any(|row| row.vc.is_some()));
    finish(w);
}

#[test]
fn destination_forgotten_by_the_data_plane_finds_its_path_again() {
    let mut config = [lec_config(0), lec_config(1)];
    config[0].limits.cache = 4;
    let mut w = world(config.to_vec());
    for who in [LEC0, LEC0 + 1] {
        start(&mut w, who);
    }
    w.run_for(Duration::from_millis(500));
    // While the call for client 1 is under way, four others push it out of the table of destinations.
    unicast(&mut w, LEC0, LEC0 + 1, 1);
    w.run_for(Duration::from_millis(3));
    for n in 0x60..0x64 {
        let octets = frame(LEC0, mac(n), 1);
        tell(&mut w, LEC0, lec::Input::Transmit(octets));
    }
    w.run_for(Duration::from_secs(5));
    for number in 0..3 {
        unicast(&mut w, LEC0, LEC0 + 1, number);
        w.run_for(Duration::from_secs(1));
    }
    let cache = lec_of(&w, LEC0).snapshot().cache;
    let row = cache.iter().find(|row| row.mac == mac(2)).unwrap();
    assert!(row.vc.is_some(), "{row:?}");
    finish(w);
}

#[test]
fn les_returns_to_a_bus_that_stayed() {
    let mut w = joined_world(3);
    w.take_notes();
    w.replace(LES, new_les());
    start(&mut w, LES);
    w.run_for(Duration::from_secs(12));
    assert!(operational(&w, 3));
    let bus = bus_of(&w).snapshot();
    assert_eq!(bus.clients.len(), 3);
    // The LECIDs were assigned anew, and the BUS knows them.
    for who in LEC0..LEC0 + 3 {
        w.take_notes();
        let octets = frame(who, MacAddr::BROADCAST, 8);
        tell(&mut w, who, lec::Input::Transmit(octets));
        w.run_for(Duration::from_millis(10));
        let other = if who == LEC0 { LEC0 + 1 } else { LEC0 };
        assert_eq!(delivered(&mut w, other), [8]);
    }
    finish(w);
}
