//! Selective multicast: which clients get the frames of a group, and where the frames are sent.

use super::*;
use aerostat_proto::lane::lec::{ArpStatus, LecState};
use aerostat_wire::Sap;

fn group(n: u8) -> MacAddr {
    MacAddr([1, 0, 0x5e, 0, 0, n])
}

/// Members of an ELAN, with the groups that they choose; `None`: all.
fn members(wants: &[Option<&[u8]>]) -> World<Node> {
    let config = |(n, wants): (usize, &Option<&[u8]>)| LecConfig {
        selective: wants.is_some(),
        groups: wants.iter().copied().flatten().map(|n| group(*n)).collect(),
        ..lec_config(n as u8)
    };
    let mut w = world(wants.iter().enumerate().map(config).collect());
    for who in LEC0..LEC0 + wants.len() {
        start(&mut w, who);
    }
    w.run_for(Duration::from_secs(1));
    for who in LEC0..LEC0 + wants.len() {
        assert_eq!(lec_of(&w, who).state(), LecState::Operational);
    }
    w.take_notes();
    w
}

/// The clients that deliver a frame of client `from` to `to`.
fn who_gets(w: &mut World<Node>, from: usize, to: MacAddr) -> Vec<usize> {
    w.take_notes();
    tell(w, from, lec::Input::Transmit(frame(from, to, 1)));
    w.run_for(Duration::from_millis(10));
    let notes = w.take_notes().into_iter();
    let got = notes.filter(|(_, _, note)| matches!(note, Note::Lec(lec::Output::Deliver(_))));
    let mut who: Vec<_> = got.map(|(_, who, _)| who - LEC0).collect();
    who.sort_unstable();
    who
}
fn not_for_us(w: &World<Node>) -> u64 {
    let lecs = w.users.iter().filter_map(|user| match user {
        Node::Lec(lec) => Some(lec.snapshot().data.not_for_us),
        _ => None,
    });
    lecs.sum()
}

#[test]
fn only_members_of_a_group_and_those_who_did_not_choose_get_its_frames() {
    let mut w = members(&[None, Some(&[1, 2]), Some(&[1]), Some(&[]), None]);
    for (to, got) in [
        (group(1), vec![1, 2, 4]),
        (group(2), vec![1, 4]),
        (group(3), vec![4]),
        (MacAddr::BROADCAST, vec![1, 2, 3, 4]),
    ] {
        assert_eq!(who_gets(&mut w, LEC0, to), got, "{to}");
    }
    assert_eq!(not_for_us(&w), 0, "nothing came that was not wanted");
    let bus = bus_of(&w).snapshot();
    assert_eq!((bus.counters.group, bus.counters.selective), (4, 3));
    assert_eq!(bus.groups, [(group(1), 2), (group(2), 1)]);
    // A sender that chose groups need not be a member of the group.
    assert_eq!(who_gets(&mut w, LEC0 + 3, group(2)), [0, 1, 4]);
    let les = les_of(&w).snapshot().clients;
    let registered: Vec<_> = les.into_iter().map(|row| row.groups).collect();
    let some = |groups: &[u8]| Some(groups.iter().map(|n| group(*n)).collect());
    assert_eq!(
        registered,
        [None, some(&[1, 2]), some(&[1]), some(&[]), None]
    );
    finish(w);
}

#[test]
fn groups_are_joined_and_left() {
    let mut w = members(&[None, Some(&[]), Some(&[1])]);
    assert_eq!(who_gets(&mut w, LEC0, group(1)), [2]);
    tell(&mut w, LEC0 + 1, lec::Input::SetGroups(vec![group(1)]));
    w.run_for(Duration::from_millis(50));
    assert_eq!(who_gets(&mut w, LEC0, group(1)), [1, 2]);
    assert_eq!(
        lec_of(&w, LEC0 + 1).snapshot().groups,
        Some(vec![(group(1), true)])
    );
    tell(&mut w, LEC0 + 2, lec::Input::SetGroups(vec![group(4)]));
    w.run_for(Duration::from_millis(50));
    assert_eq!(who_gets(&mut w, LEC0, group(1)), [1]);
    assert_eq!(who_gets(&mut w, LEC0, group(4)), [2]);
    // The last client leaves the group: its connection ends. Two connections to all remain, one to the clients that did
    // not choose, one of group 4.
    tell(&mut w, LEC0 + 1, lec::Input::SetGroups(vec![]));
    w.run_for(Duration::from_millis(50));
    assert!(who_gets(&mut w, LEC0, group(1)).is_empty());
    let roots = w.net.roots(Sap::LANE_MULTICAST_ETHERNET);
    assert_eq!(roots.iter().filter(|who| **who == BUS).count(), 3);
    assert_eq!(bus_of(&w).snapshot().groups, [(group(4), 1)]);
    finish(w);
}

#[test]
fn who_leaves_the_elan_leaves_its_groups() {
    let mut w = members(&[None, Some(&[1]), Some(&[1])]);
    stop(&mut w, LEC0 + 1);
    w.run_for(Duration::from_millis(50));
    assert_eq!(who_gets(&mut w, LEC0, group(1)), [2]);
    start(&mut w, LEC0 + 1);
    w.run_for(Duration::from_secs(1));
    assert_eq!(who_gets(&mut w, LEC0, group(1)), [1, 2]);
    // The same holds for a client that breaks down.
    let now = w.now;
    w.net.break_calls(LEC0 + 2, Sap::LANE_CONTROL, now);
    w.run_for(Duration::from_secs(12));
    assert_eq!(who_gets(&mut w, LEC0, group(1)), [1, 2]);
    finish(w);
}

/// Without a difference between clients there is one multicast forward connection.
#[test]
fn an_elan_without_choosers_has_one_forward_connection() {
    let mut w = members(&[None, None, None]);
    assert_eq!(who_gets(&mut w, LEC0, group(1)), [1, 2]);
    let roots = w.net.roots(Sap::LANE_MULTICAST_ETHERNET);
    assert_eq!(roots.iter().filter(|who| **who == BUS).count(), 1);
    assert_eq!(bus_of(&w).snapshot().counters.selective, 0);
    finish(w);
}

/// A client that takes no second multicast forward connection still gets all frames.
#[test]
fn who_cannot_be_reached_apart_gets_the_frames_of_all() {
    let mut w = members(&[None, None]);
    for _ in 0..20 {
        w.net.refuse(
            address(2),
            Some(Sap::LANE_MULTICAST_ETHERNET),
            aerostat_proto::Cause::INCOMPATIBLE,
            1,
        );
    }
    let chooser = LecConfig {
        selective: true,
        groups: vec![group(1)],
        ..lec_config(2)
    };
    let late = w.add(Node::Lec(Box::new(Lec::new(chooser))));
    start(&mut w, late);
    w.run_for(Duration::from_secs(5));
    assert_eq!(who_gets(&mut w, LEC0, group(1)), [1, 2]);
    assert_eq!(
        who_gets(&mut w, LEC0, group(2)),
        [1],
        "the chooser drops it"
    );
    assert_eq!(not_for_us(&w), 1);
    assert_eq!(bus_of(&w).snapshot().counters.selective, 0);
    finish(w);
}

#[test]
fn more_groups_than_the_bus_can_tell_apart_go_to_all() {
    let mut w = members(&[None]);
    let les = les_config();
    let mut bus = BusConfig::new(elan(), les.bus);
    bus.params.groups = 2;
    w.replace(LES, new_les());
    w.replace(BUS, Node::Bus(Box::new(Bus::new(bus))));
    start(&mut w, LES);
    start(&mut w, BUS);
    let chooser = LecConfig {
        selective: true,
        groups: (1..5).map(group).collect(),
        ..lec_config(1)
    };
    let late = w.add(Node::Lec(Box::new(Lec::new(chooser))));
    start(&mut w, late);
    w.run_for(Duration::from_secs(12));
    for n in 1..5 {
        assert_eq!(who_gets(&mut w, LEC0, group(n)), [1], "group {n}");
    }
    assert_eq!(bus_of(&w).snapshot().counters.selective, 2);
    finish(w);
}

/// A v1 LES does not know selective multicast: the client filters the frames that it wants from all frames.
#[test]
fn with_a_v1_les_the_client_filters() {
    let mut w = world(vec![
        lec_config(0),
        LecConfig {
            selective: true,
            groups: vec![group(1)],
            ..lec_config(1)
        },
    ]);
    let les = LesConfig {
        v2: false,
        ..les_config()
    };
    w.replace(LES, Node::Les(Box::new(Les::new(les))));
    start(&mut w, LES);
    for who in [LEC0, LEC0 + 1] {
        start(&mut w, who);
    }
    w.run_for(Duration::from_secs(6));
    assert_eq!(who_gets(&mut w, LEC0, group(1)), [1]);
    assert!(who_gets(&mut w, LEC0, group(2)).is_empty());
    assert_eq!(not_for_us(&w), 1);
    assert_eq!(les_of(&w).snapshot().counters.arp_requests, 2, "the BUS's");
    finish(w);
}

/// A v2 client asks once where the frames of a group go, and asks again when the answer has aged.
#[test]
fn le_arp_for_a_group_is_answered_with_the_bus() {
    let mut w = members(&[None, None]);
    let before = les_of(&w).snapshot().counters.arp_requests;
    for _ in 0..5 {
        assert_eq!(who_gets(&mut w, LEC0, group(1)), [1]);
    }
    assert_eq!(les_of(&w).snapshot().counters.arp_requests, before + 1);
    let cache = lec_of(&w, LEC0).snapshot().cache;
    let row = cache.iter().find(|row| row.mac == group(1)).expect("known");
    assert_eq!(
        (row.atm, row.status),
        (Some(address(0xa2)), ArpStatus::ForwardDirect)
    );
    assert!(row.vc.is_some());
    let told = |note: &Note| {
        matches!(
            note,
            Note::Lec(lec::Output::News(lec::News::Associate { .. }))
        )
    };
    assert!(!w.take_notes().iter().any(|(_, _, note)| told(note)));
    w.run_for(Duration::from_secs(700));
    assert!(lec_of(&w, LEC0).snapshot().cache.is_empty(), "C17");
    finish(w);
}
