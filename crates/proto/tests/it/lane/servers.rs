//! An ELAN with two LESs and BUSs: one serves, the other takes over.

use super::*;
use aerostat_proto::lane::lec::LecState;
use aerostat_wire::Sap;

/// The LES and the BUS that stand by.
fn second_les() -> Node {
    let mut config = LesConfig::new(elan(), address(0xb1), address(0xb2));
    (config.elan_id, config.lecs) = (7, Some(address(0xa0)));
    Node::Les(Box::new(Les::new(config)))
}
fn first_les() -> Node {
    let lecs = Some(address(0xa0));
    Node::Les(Box::new(Les::new(LesConfig {
        lecs,
        ..les_config()
    })))
}
fn second_bus() -> Node {
    Node::Bus(Box::new(Bus::new(BusConfig::new(elan(), address(0xb2)))))
}
fn lecs_of_two() -> Node {
    let standby = vec![address(0xb1)];
    let config = LecsConfig {
        address: address(0xa0),
        well_known: true,
        elans: vec![Elan {
            standby,
            ..Elan::new(elan(), address(0xa1))
        }],
        ..LecsConfig::default()
    };
    Node::Lecs(Box::new(Lecs::new(config)))
}

/// `n` clients of an ELAN with two pairs of servers; the second LES is the user behind the clients.
fn world_of_two(n: u8) -> (World<Node>, usize) {
    let mut w = world((0..n).map(lec_config).collect());
    w.replace(LECS, lecs_of_two());
    w.replace(LES, first_les());
    let second = w.add(second_les());
    w.add(second_bus());
    for who in [LECS, LES, second, second + 1] {
        start(&mut w, who);
    }
    w.run_for(Duration::from_millis(100));
    for who in LEC0..LEC0 + usize::from(n) {
        start(&mut w, who);
    }
    w.run_for(Duration::from_secs(20));
    (w, second)
}
fn members(w: &World<Node>, who: usize) -> usize {
    match &w.users[who] {
        Node::Les(les) => les.snapshot().clients.len(),
        _ => panic!("user {who} is no LES"),
    }
}
fn together(w: &mut World<Node>, n: usize) -> bool {
    w.take_notes();
    for (from, to) in [(0, 1), (1, 0)] {
        unicast(w, LEC0 + from, LEC0 + to, 77);
        w.run_for(Duration::from_secs(1));
        if delivered(w, LEC0 + to) != [77] {
            return false;
        }
    }
    (LEC0..LEC0 + n).all(|who| lec_of(w, who).state() == LecState::Operational)
}
fn takeovers(w: &World<Node>) -> u64 {
    match &w.users[LECS] {
        Node::Lecs(lecs) => lecs.counters().takeovers,
        _ => panic!("no LECS"),
    }
}

#[test]
fn the_first_choice_serves_while_it_is_there() {
    let (mut w, second) = world_of_two(3);
    assert_eq!((members(&w, LES), members(&w, second)), (3, 0));
    w.run_for(Duration::from_secs(300));
    assert_eq!((members(&w, LES), members(&w, second)), (3, 0));
    assert!(together(&mut w, 3));
    finish(w);
}

#[test]
fn the_standby_takes_over_and_keeps_the_elan() {
    let (mut w, second) = world_of_two(3);
    w.replace(LES, first_les());
    w.replace(BUS, new_bus());
    w.run_for(Duration::from_secs(30));
    assert_eq!(members(&w, second), 3);
    assert_eq!(takeovers(&w), 1);
    assert!(together(&mut w, 3));
    // The first LES comes back: it stands by now, and no client moves.
    start(&mut w, BUS);
    start(&mut w, LES);
    w.run_for(Duration::from_secs(60));
    assert_eq!((members(&w, LES), members(&w, second)), (0, 3));
    assert!(together(&mut w, 3));
    // The other direction.
    w.replace(second, second_les());
    w.replace(second + 1, second_bus());
    w.run_for(Duration::from_secs(30));
    assert_eq!(members(&w, LES), 3);
    assert!(together(&mut w, 3));
    finish(w);
}

#[test]
fn the_lecs_forgets_and_the_elan_becomes_whole_again() {
    let (mut w, second) = world_of_two(3);
    w.replace(LES, first_les());
    w.replace(BUS, new_bus());
    w.run_for(Duration::from_secs(30));
    assert_eq!(members(&w, second), 3);
    // The LECS restarts and has no state; the first LES is back, and the LECS chooses it for a new client.
    w.replace(LECS, lecs_of_two());
    for who in [LECS, BUS, LES] {
        start(&mut w, who);
    }
    w.run_for(Duration::from_secs(1));
    w.replace(LEC0, Node::Lec(Box::new(Lec::new(lec_config(0)))));
    start(&mut w, LEC0);
    w.run_for(Duration::from_secs(60));
    // The other LES was told that it does not serve, and released its clients.
    assert_eq!((members(&w, LES), members(&w, second)), (3, 0));
    assert!(together(&mut w, 3));
    finish(w);
}

#[test]
fn a_dead_lecs_costs_no_client() {
    let (mut w, second) = world_of_two(2);
    w.replace(LECS, lecs_of_two());
    w.run_for(Duration::from_secs(100));
    assert_eq!((members(&w, LES), members(&w, second)), (2, 0));
    assert!(together(&mut w, 2));
    start(&mut w, LECS);
    w.run_for(Duration::from_secs(60));
    assert_eq!((members(&w, LES), members(&w, second)), (2, 0));
    assert!(together(&mut w, 2));
    finish(w);
}

#[test]
fn a_silent_les_is_lost_too() {
    let (mut w, second) = world_of_two(2);
    // Its reports are lost, its connection stays.
    w.net.loss = Some(Box::new(|sdu| {
        sdu.len() == 108 && sdu[4..6] == [0, 1] && sdu[32..52] == address(0xa1).0
    }));
    w.run_for(Duration::from_secs(45));
    assert_eq!(takeovers(&w), 1);
    // Its clients stay with it; new clients go to the other LES, which sends no client away. When the first LES reports
    // again, it releases its clients.
    w.net.loss = None;
    w.run_for(Duration::from_secs(60));
    assert_eq!((members(&w, LES), members(&w, second)), (0, 2));
    assert!(together(&mut w, 2));
    finish(w);
}

/// Only its own LES may report for an ELAN.
#[test]
fn a_client_cannot_pose_as_les() {
    let (mut w, _) = world_of_two(2);
    let before = w.net.roots(Sap::LANE_CONTROL).len();
    w.add(Node::Les(Box::new(Les::new(LesConfig {
        lecs: Some(address(0xa0)),
        ..LesConfig::new(elan(), address(0xee), address(0xef))
    }))));
    let impostor = w.users.len() - 1;
    w.add(Node::Bus(Box::new(Bus::new(BusConfig::new(
        elan(),
        address(0xef),
    )))));
    start(&mut w, impostor);
    w.run_for(Duration::from_secs(30));
    assert_eq!(w.net.roots(Sap::LANE_CONTROL).len(), before + 1);
    w.replace(LES, first_les());
    w.run_for(Duration::from_secs(30));
    assert_eq!(members(&w, impostor), 0);
    finish(w);
}
