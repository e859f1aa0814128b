//! Frames: over the BUS, then over data direct connections, in order.

use super::*;
use aerostat_proto::Cause;
use aerostat_proto::lane::lec::{ArpStatus, News, Output};
use aerostat_wire::Sap;

fn arp_status(w: &World<Node>, who: usize, of: u8) -> Option<ArpStatus> {
    let cache = lec_of(w, who).snapshot().cache;
    cache
        .iter()
        .find(|row| row.mac == mac(of + 1))
        .map(|row| row.status)
}

#[test]
fn group_frames_reach_all_others_once() {
    let mut w = joined_world(3);
    w.take_notes();
    let octets = frame(LEC0, MacAddr::BROADCAST, 1);
    tell(&mut w, LEC0, lec::Input::Transmit(octets.clone()));
    w.run_for(Duration::from_millis(10));
    let got: Vec<usize> = (w.take_notes().into_iter())
        .filter_map(|(_, who, note)| match note {
            Note::Lec(Output::Deliver(frame)) => {
                assert_eq!(frame, octets);
                Some(who)
            }
            _ => None,
        })
        .collect();
    assert_eq!(got, [LEC0 + 1, LEC0 + 2]);
    assert_eq!(lec_of(&w, LEC0).snapshot().data.echoes, 1);
    finish(w);
}

#[test]
fn unicast_moves_from_the_bus_to_data_direct_in_order() {
    let mut w = joined_world(3);
    w.take_notes();
    // Frames every 300 us while LE_ARP, call and flush are under way.
    for number in 0..100 {
        unicast(&mut w, LEC0, LEC0 + 1, number);
        w.run_for(Duration::from_micros(300));
    }
    w.run_for(Duration::from_secs(1));
    let got = delivered(&mut w, LEC0 + 1);
    assert!(got.is_sorted(), "order was lost: {got:?}");
    // The quota and the queue bound what waits; in this test all frames arrive.
    assert_eq!(got.len(), 100);
    assert_eq!(arp_status(&w, LEC0, 1), Some(ArpStatus::ForwardDirect));
    let data = lec_of(&w, LEC0).snapshot().data;
    assert!(data.sent_bus <= 10, "C10 frames at most: {data:?}");
    assert!(bus_of(&w).snapshot().counters.flushes >= 1);
    // The third client did not receive these frames.
    let third = lec_of(&w, LEC0 + 2).snapshot();
    assert_eq!((third.data.not_for_us, third.control.bad), (0, 0));
    finish(w);
}

#[test]
fn quota_bounds_unknown_frames() {
    let mut w = joined_world(2);
    w.take_notes();
    let nobody = mac(0x77);
    for number in 0..1000 {
        let octets = frame(LEC0, nobody, number);
        tell(&mut w, LEC0, lec::Input::Transmit(octets));
        w.run_for(Duration::from_millis(10));
    }
    let data = lec_of(&w, LEC0).snapshot().data;
    // C10 = 10 frames in C11 = 1 s, for 10 s; the other frames find the queue full.
    assert!((90..=120).contains(&data.sent_bus), "{data:?}");
    assert!(data.queue_full > 800);
    assert!(les_of(&w).snapshot().counters.arp_unknown >= 5);
    finish(w);
}

#[test]
fn crossing_calls_leave_one_connection() {
    let mut w = joined_world(2);
    w.take_notes();
    for number in 0..60 {
        unicast(&mut w, LEC0, LEC0 + 1, number);
        unicast(&mut w, LEC0 + 1, LEC0, 1000 + number);
        w.run_for(Duration::from_micros(500));
    }
    w.run_for(Duration::from_millis(500));
    let notes = w.take_notes();
    let at = |who: usize| -> Vec<u32> {
        let frames = notes.iter().filter_map(|(_, from, note)| match note {
            Note::Lec(Output::Deliver(frame)) if *from == who => Some(frame),
            _ => None,
        });
        frames
            .map(|frame| u32::from_be_bytes(frame[14..18].try_into().unwrap()))
            .collect()
    };
    for who in [LEC0, LEC0 + 1] {
        let got = at(who);
        assert!(got.is_sorted(), "{got:?}");
        assert_eq!(got.len(), 60);
    }
    assert_eq!(w.net.roots(Sap::LANE_DATA_ETHERNET).len(), 2);
    // Traffic goes on; after C21 the call of the higher address is gone.
    for number in 0..100 {
        unicast(&mut w, LEC0, LEC0 + 1, 100 + number);
        unicast(&mut w, LEC0 + 1, LEC0, 1100 + number);
        w.run_for(Duration::from_millis(100));
    }
    assert_eq!(w.net.roots(Sap::LANE_DATA_ETHERNET), [LEC0]);
    finish(w);
}

#[test]
fn idle_connection_is_released_and_comes_back() {
    let mut config = [lec_config(0), lec_config(1)];
    for c in &mut config {
        c.params.vcc_timeout = Duration::from_secs(10);
    }
    let mut w = world(config.to_vec());
    for who in [LEC0, LEC0 + 1] {
        start(&mut w, who);
    }
    w.run_for(Duration::from_millis(500));
    unicast(&mut w, LEC0, LEC0 + 1, 1);
    w.run_for(Duration::from_secs(5));
    assert_eq!(w.net.roots(Sap::LANE_DATA_ETHERNET).len(), 1);
    w.run_for(Duration::from_secs(10));
    assert_eq!(w.net.roots(Sap::LANE_DATA_ETHERNET).len(), 0);
    delivered(&mut w, LEC0 + 1);
    unicast(&mut w, LEC0, LEC0 + 1, 2);
    w.run_for(Duration::from_secs(1));
    assert_eq!(w.net.roots(Sap::LANE_DATA_ETHERNET).len(), 1);
    assert_eq!(delivered(&mut w, LEC0 + 1), [2]);
    finish(w);
}

#[test]
fn refused_call_keeps_frames_on_the_bus() {
    let mut w = joined_world(2);
    w.net.refuse(
        address(2),
        Some(Sap::LANE_DATA_ETHERNET),
        Cause::RESOURCES,
        2,
    );
    w.take_notes();
    for number in 0..40 {
        unicast(&mut w, LEC0, LEC0 + 1, number);
        w.run_for(Duration::from_millis(500));
    }
    let got = delivered(&mut w, LEC0 + 1);
    assert_eq!(got.len(), 40);
    assert!(got.is_sorted());
    // The call is tried every 5 s: the third try succeeds.
    assert_eq!(arp_status(&w, LEC0, 1), Some(ArpStatus::ForwardDirect));
    finish(w);
}

#[test]
fn lost_ready_and_flush_do_not_block() {
    let mut w = joined_world(2);
    w.take_notes();
    // READY_IND, READY_QUERY and flush answers are lost.
    w.net.loss = Some(Box::new(|sdu| {
        sdu.len() == 6 || sdu.starts_with(&[0xff, 0, 1, 1, 1, 7])
    }));
    for number in 0..100 {
        unicast(&mut w, LEC0, LEC0 + 1, number);
        w.run_for(Duration::from_millis(100));
    }
    let got = delivered(&mut w, LEC0 + 1);
    assert!(got.is_sorted());
    assert_eq!(arp_status(&w, LEC0, 1), Some(ArpStatus::ForwardDirect));
    assert_eq!(*got.last().unwrap(), 99);
    // A data frame counts as READY, too: the called side answers on the same connection.
    unicast(&mut w, LEC0 + 1, LEC0, 7);
    w.run_for(Duration::from_secs(12));
    assert_eq!(arp_status(&w, LEC0 + 1, 0), Some(ArpStatus::ForwardDirect));
    assert_eq!(w.net.roots(Sap::LANE_DATA_ETHERNET).len(), 1);
    finish(w);
}

#[test]
fn a_flush_that_is_lost_delays_frames_by_c20_and_not_by_c22() {
    // The peer has joined the LES, which answers LE_ARP for it. It is called, while the BUS does not know it yet.
    let mut w = joined_world(2);
    w.take_notes();
    let mut flushes = 0;
    w.net.loss = Some(Box::new(move |sdu| {
        let flush = sdu.starts_with(&[0xff, 0, 1, 1, 0, 7]);
        flushes += u32::from(flush);
        flush && flushes == 1
    }));
    for number in 0..20 {
        unicast(&mut w, LEC0, LEC0 + 1, number);
        w.run_for(Duration::from_millis(100));
    }
    assert_eq!(arp_status(&w, LEC0, 1), Some(ArpStatus::ForwardDirect));
    let got = delivered(&mut w, LEC0 + 1);
    assert_eq!(got, (0..20).collect::<Vec<_>>(), "all of them, in order");
    finish(w);
}

#[test]
fn called_side_asks_until_ready() {
    let mut w = joined_world(2);
    w.net.loss = Some(Box::new(|sdu| sdu.starts_with(&[0xff, 0, 1, 1, 1, 3])));
    // A call without data: its READY_IND is lost.
    tell(&mut w, LEC0, lec::Input::Resolve { mac: mac(2) });
    unicast(&mut w, LEC0, LEC0 + 1, 1);
    w.run_for(Duration::from_millis(200));
    w.net.loss = None;
    let sent = lec_of(&w, LEC0 + 1).snapshot().control.sent;
    w.run_for(Duration::from_secs(9));
    // READY_QUERY after C28 = 4 s; the answer stops it.
    let after = lec_of(&w, LEC0 + 1).snapshot().control.sent;
    assert_eq!(after, sent + 1);
    finish(w);
}

#[test]
fn tlvs_are_taught_and_taken_back() {
    let mut w = joined_world(2);
    w.take_notes();
    // The entry is known before: the announcement updates it.
    unicast(&mut w, LEC0, LEC0 + 1, 1);
    w.run_for(Duration::from_secs(1));
    let device = mps(1).to_tlv();
    tell(&mut w, LEC0 + 1, lec::Input::SetTlvs(vec![device.clone()]));
    w.run_for(Duration::from_secs(1));
    let taught = |notes: Vec<(Instant, usize, Note)>| {
        notes.into_iter().find_map(|(_, who, note)| match note {
            Note::Lec(Output::News(News::Associate { mac: m, atm, tlvs }))
                if who == LEC0 && m == mac(2) =>
            {
                (!tlvs.is_empty()).then_some((atm, tlvs))
            }
            _ => None,
        })
    };
    let want = Some((address(2), vec![device.clone()]));
    assert_eq!(taught(w.take_notes()), want);
    // A third client that joins later learns them from the LES.
    let late = w.add(Node::Lec(Box::new(Lec::new(lec_config(2)))));
    start(&mut w, late);
    w.run_for(Duration::from_millis(500));
    tell(&mut w, late, lec::Input::Resolve { mac: mac(2) });
    tell(&mut w, late, lec::Input::Resolve { mac: mac(0x66) });
    w.run_for(Duration::from_secs(5));
    let resolved: Vec<_> = (w.take_notes().into_iter())
        .filter_map(|(_, who, note)| match note {
            Note::Lec(Output::News(News::Resolved { mac, owner })) if who == late => {
                Some((mac, owner))
            }
            _ => None,
        })
        .collect();
    assert_eq!(resolved, [(mac(2), want.clone()), (mac(0x66), None)]);
    // The owner leaves: the association is withdrawn after C17 at the latest.
    stop(&mut w, LEC0 + 1);
    w.run_for(Duration::from_secs(310));
    let gone = w.take_notes();
    for who in [LEC0, late] {
        let taken = |note: &Note| {
            let taken = News::Dissociate { mac: mac(2) };
            matches!(note, Note::Lec(Output::News(gone)) if *gone == taken)
        };
        assert!(
            gone.iter()
                .any(|(_, from, note)| *from == who && taken(note))
        );
    }
    finish(w);
}

/// A targetless LE_ARP is not answered: it is repeated after 1, 2, 4 and 8 more seconds, and then no more.
#[test]
fn tlvs_that_nobody_heard_are_announced_again() {
    let mut w = joined_world(2);
    unicast(&mut w, LEC0, LEC0 + 1, 1);
    w.run_for(Duration::from_secs(20));
    w.take_notes();
    w.net.loss = Some(Box::new(|_| true));
    let device = mps(1).to_tlv();
    tell(&mut w, LEC0 + 1, lec::Input::SetTlvs(vec![device]));
    w.run_for(Duration::from_millis(1500));
    w.net.loss = None;
    let taught = |note: &Note| match note {
        Note::Lec(Output::News(News::Associate { mac: m, tlvs, .. })) => {
            *m == mac(2) && !tlvs.is_empty()
        }
        _ => false,
    };
    let heard = |w: &mut World<Node>| {
        let notes = w.take_notes().into_iter();
        notes
            .filter(|(_, who, note)| *who == LEC0 && taught(note))
            .count()
    };
    assert_eq!(heard(&mut w), 0);
    w.run_for(Duration::from_secs(2));
    assert_eq!(heard(&mut w), 1);
    w.run_for(Duration::from_secs(200));
    assert_eq!(heard(&mut w), 2);
    finish(w);
}

#[test]
fn tlvs_survive_ageing_while_their_owner_lives() {
    let mut w = joined_world(2);
    let device = mps(1).to_tlv();
    tell(&mut w, LEC0 + 1, lec::Input::SetTlvs(vec![device]));
    tell(&mut w, LEC0, lec::Input::Resolve { mac: mac(2) });
    w.run_for(Duration::from_secs(1000));
    let lost = |note: &Note| matches!(note, Note::Lec(Output::News(News::Dissociate { .. })));
    assert!(!w.take_notes().iter().any(|(_, _, note)| lost(note)));
    finish(w);
}

#[test]
fn unused_entries_age_and_topology_change_hurries_remote_ones() {
    let proxy = LecConfig {
        proxy: true,
        ..lec_config(1)
    };
    let mut w = world(vec![lec_config(0), proxy, lec_config(2)]);
    for who in LEC0..LEC0 + 3 {
        start(&mut w, who);
    }
    w.run_for(Duration::from_millis(500));
    let behind = mac(0x55);
    tell(&mut w, LEC0 + 1, lec::Input::SetRemote(vec![behind]));
    tell(&mut w, LEC0, lec::Input::Resolve { mac: behind });
    tell(&mut w, LEC0, lec::Input::Resolve { mac: mac(3) });
    w.run_for(Duration::from_secs(1));
    let row = |w: &World<Node>, m| {
        let cache = lec_of(w, LEC0).snapshot().cache;
        cache.into_iter().find(|row| row.mac == m)
    };
    let found = row(&w, behind).expect("the proxy answers");
    assert!(found.remote);
    assert_eq!(found.atm, Some(address(2)));
    assert!(!row(&w, mac(3)).unwrap().remote);
    tell(&mut w, LEC0 + 1, lec::Input::TopologyChange(true));
    w.run_for(Duration::from_secs(20));
    assert!(lec_of(&w, LEC0).snapshot().topology_change);
    assert_eq!(row(&w, behind), None, "C18 = 15 s");
    assert!(row(&w, mac(3)).is_some(), "C17 = 300 s");
    tell(&mut w, LEC0 + 1, lec::Input::TopologyChange(false));
    w.run_for(Duration::from_secs(300));
    assert!(!lec_of(&w, LEC0).snapshot().topology_change);
    assert_eq!(row(&w, mac(3)), None);
    finish(w);
}

/// A router that knows a station behind a bridge learns later that the bridge is an MPOA client.
#[test]
fn new_tlvs_of_a_proxy_reach_those_who_know_what_is_behind_it() {
    let proxy = LecConfig {
        proxy: true,
        ..lec_config(1)
    };
    let mut w = world(vec![lec_config(0), proxy]);
    for who in [LEC0, LEC0 + 1] {
        start(&mut w, who);
    }
    w.run_for(Duration::from_millis(500));
    let behind = mac(0x55);
    tell(&mut w, LEC0 + 1, lec::Input::SetRemote(vec![behind]));
    tell(&mut w, LEC0, lec::Input::Resolve { mac: behind });
    w.run_for(Duration::from_secs(1));
    let row = |w: &World<Node>| {
        let cache = lec_of(w, LEC0).snapshot().cache;
        let row = cache.into_iter().find(|row| row.mac == behind);
        row.expect("it is known")
    };
    assert!(row(&w).tlvs.is_empty());
    let device = mps(1).to_tlv();
    tell(&mut w, LEC0 + 1, lec::Input::SetTlvs(vec![device.clone()]));
    w.run_for(Duration::from_secs(1));
    let found = row(&w);
    assert_eq!((found.tlvs, found.remote), (vec![device], true));
    finish(w);
}

/// A client and two proxies that have joined.
fn two_proxies() -> World<Node> {
    let proxy = |n| LecConfig {
        proxy: true,
        ..lec_config(n)
    };
    let mut w = world(vec![lec_config(0), proxy(1), proxy(2)]);
    for who in LEC0..LEC0 + 3 {
        start(&mut w, who);
    }
    w.run_for(Duration::from_millis(500));
    w
}

#[test]
fn station_that_moves_behind_another_proxy() {
    let mut w = two_proxies();
    let station = mac(0x55);
    tell(&mut w, LEC0 + 1, lec::Input::SetRemote(vec![station]));
    for who in [LEC0, LEC0 + 2] {
        tell(&mut w, who, lec::Input::Resolve { mac: station });
    }
    w.run_for(Duration::from_secs(1));
    let owner = |w: &World<Node>| {
        let cache = lec_of(w, LEC0).snapshot().cache;
        cache
            .iter()
            .find(|row| row.mac == station)
            .and_then(|row| row.atm)
    };
    assert_eq!(owner(&w), Some(address(2)));
    tell(&mut w, LEC0 + 1, lec::Input::SetRemote(vec![]));
    tell(&mut w, LEC0 + 2, lec::Input::SetRemote(vec![station]));
    w.run_for(Duration::from_secs(1));
    assert_eq!(owner(&w), Some(address(3)), "LE_NARP moves it");
    finish(w);
}

/// The new proxy does not know who had the station, and the old one did not see it leave.
#[test]
fn a_new_proxy_claims_a_station_that_it_never_asked_for() {
    let mut w = two_proxies();
    let station = mac(0x55);
    tell(&mut w, LEC0 + 1, lec::Input::SetRemote(vec![station]));
    tell(&mut w, LEC0, lec::Input::Resolve { mac: station });
    w.run_for(Duration::from_secs(1));
    w.take_notes();
    tell(&mut w, LEC0 + 2, lec::Input::SetRemote(vec![station]));
    w.run_for(Duration::from_secs(1));
    let cache = lec_of(&w, LEC0).snapshot().cache;
    let row = cache.iter().find(|row| row.mac == station).unwrap();
    assert_eq!((row.atm, row.remote), (Some(address(3)), true));
    let gave_up = |(_, from, note): &(Instant, usize, Note)| {
        *from == LEC0 + 1
            && matches!(note, Note::Lec(Output::News(News::RemoteMoved { mac })) if *mac == station)
    };
    assert_eq!(w.take_notes().iter().filter(|n| gave_up(n)).count(), 1);
    // The old proxy does not answer for the station any more.
    w.run_for(Duration::from_secs(400));
    tell(&mut w, LEC0, lec::Input::Resolve { mac: station });
    w.run_for(Duration::from_secs(1));
    let cache = lec_of(&w, LEC0).snapshot().cache;
    let row = cache.iter().find(|row| row.mac == station).unwrap();
    assert_eq!(row.atm, Some(address(3)));
    finish(w);
}
