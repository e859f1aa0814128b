//! Crankback in a diamond of switches: 0 is joined with 1 and 2, and these with 3. Host 0 is at switch 0, hosts 1 and 2
//! at switch 3, host 3 at switch 1.

use super::A;
use aerostat_node::switch::crankback::LACK_OF_ROOM;
use aerostat_proto::{AtmEvent, AtmRequest, Cause, ConnId, PartyId};
use aerostat_testing::switch::Net;
use aerostat_wire::{Qos, ServiceCategory, TrafficParams};

const WIDE: u32 = 300_000;
/// The trunks by number.
const ENDS: [(usize, usize); 4] = [(0, 1), (0, 2), (1, 3), (2, 3)];

fn diamond(admit: [u32; 4]) -> Net {
    let trunks = ENDS
        .iter()
        .zip(admit)
        .map(|((a, b), admit)| (*a, *b, admit));
    let mut net = Net::with_links(4, &trunks.collect::<Vec<_>>(), &[0, 3, 3, 1]);
    (0..4).for_each(|host| net.listen(host));
    net
}

fn moved(net: &Net) -> Vec<u64> {
    net.switches.iter().map(|of| of.counters().moved).collect()
}

/// The causes with their locations that host 0 was told in RELEASE and RELEASE COMPLETE.
fn told(net: &Net) -> Vec<(u8, u8)> {
    let elements = net.hosts[0].signalled.iter().flat_map(|sdu| sdu.windows(6));
    let causes = elements.filter(|w| w[..4] == [0x08, 0x80, 0, 2]);
    causes.map(|w| (w[4] & 15, w[5] & 127)).collect()
}

#[test]
fn a_call_takes_the_other_way_and_its_caller_waits_for_one_answer() {
    // The way by switch 1 is chosen first, because both are free and its number is lower.
    let mut net = diamond([WIDE, WIDE, 1000, WIDE]);
    net.call_with(0, 1, 1, Qos::cbr(100_000, 1536), false);
    net.run_ms(100);
    assert!(net.hosts[0].connected(A));
    assert_eq!(moved(&net), [1, 0, 0, 0]);
    let call = net.switches[0].calls().next().unwrap();
    let tried: Vec<_> = call.failed.iter().map(|failed| failed.port).collect();
    assert_eq!(tried, [net.trunk_port(0, 0)]);
    let reason = &call.failed[0].reason;
    assert_eq!(
        (reason.cause, reason.location),
        (Cause::RATE_UNAVAILABLE, Some(3))
    );
    assert_eq!(call.branches[0].port, net.trunk_port(0, 1));
    // Nothing is left of the first try.
    assert_eq!(net.switches[1].calls().count(), 0);
    let ports = net.switches[1].port_infos();
    assert!(
        ports
            .into_iter()
            .all(|port| port.reserved == (0, 0) && port.labels == 0)
    );
    let there = net.hosts[1].offered().unwrap();
    net.send(0, A, b"over").unwrap();
    net.run_ms(10);
    assert_eq!(net.hosts[1].data, [(there, b"over".to_vec())]);
    net.release(0, A);
    net.run_ms(100);
    net.assert_clean();
}

#[test]
fn without_room_anywhere_the_caller_hears_the_last_try() {
    let mut net = diamond([WIDE, WIDE, 1000, 1000]);
    net.call_with(0, 1, 1, Qos::cbr(100_000, 1536), false);
    net.run_ms(100);
    assert_eq!(net.hosts[0].released(A), Some(Cause::RATE_UNAVAILABLE));
    assert_eq!(told(&net), [(3, 37)]);
    assert_eq!(moved(&net), [1, 0, 0, 0]);
    net.assert_clean();
    // The second link of its own has no room, either: one way is tried, and nothing is moved.
    let mut net = diamond([WIDE, 1000, 1000, WIDE]);
    net.call_with(0, 1, 1, Qos::cbr(100_000, 1536), false);
    net.run_ms(100);
    assert_eq!(net.hosts[0].released(A), Some(Cause::RATE_UNAVAILABLE));
    assert_eq!((told(&net), moved(&net)), (vec![(1, 37)], vec![0; 4]));
    net.assert_clean();
}

/// Refusals by the called user, or by the switch that serves it, hold for all paths.
#[test]
fn a_refusal_at_the_destination_is_final() {
    // Its host's link: 335 000 cells/s may be reserved.
    let mut net = diamond([WIDE, WIDE, 2 * WIDE, WIDE]);
    net.call_with(3, 1, 1, Qos::cbr(200_000, 1536), false);
    net.run_ms(100);
    assert!(net.hosts[3].connected(A));
    net.call_with(0, 1, 1, Qos::cbr(200_000, 1536), false);
    net.run_ms(100);
    assert_eq!((told(&net), moved(&net)), (vec![(5, 37)], vec![0; 4]));
    net.release(3, A);
    net.run_ms(100);
    // The user has no resources: location 0.
    net.hosts[1].auto = false;
    net.call_with(0, 1, 2, Qos::cbr(200_000, 1536), false);
    net.run_ms(100);
    let conn = net.hosts[1].offered().unwrap();
    let cause = Cause::RESOURCES;
    net.ask(1, AtmRequest::Release { conn, cause }).unwrap();
    net.run_ms(100);
    assert_eq!(told(&net)[1..], [(0, 47)]);
    assert_eq!(moved(&net), [0; 4]);
    // The caller's own link: location 1.
    net.hosts[1].auto = true;
    net.call_with(0, 2, 3, Qos::cbr(300_000, 1536), false);
    net.run_ms(100);
    net.call_with(0, 1, 4, Qos::cbr(300_000, 1536), false);
    net.run_ms(100);
    assert_eq!(told(&net)[2..], [(1, 37)]);
    net.release(0, ConnId(3));
    net.run_ms(100);
    net.assert_clean();
}

/// A switch that refuses for another reason, and one that says nothing any more, end the call.
#[test]
fn other_causes_do_not_move_a_call() {
    assert!(!LACK_OF_ROOM.contains(&Cause::NO_ROUTE));
    let mut net = diamond([WIDE; 4]);
    let nobody = net.address(1).with_selector(9);
    let mut unknown = nobody;
    unknown.0[13..19].copy_from_slice(&[9; 6]);
    let connect = |conn, called, calling| AtmRequest::Connect {
        conn: ConnId(conn),
        calling,
        called,
        sap: aerostat_wire::Sap::LLC,
        qos: Qos::ubr(1536),
        multipoint: false,
    };
    let own = net.address(0);
    net.ask(0, connect(1, unknown, own)).unwrap();
    net.run_ms(100);
    assert_eq!((told(&net), moved(&net)), (vec![(3, 3)], vec![0; 4]));
    // Switch 1 hangs: the timers of switch 0 end the call, and the other way is not tried.
    let end = (0, net.trunk_port(0, 0));
    let until = net.now + core::time::Duration::from_secs(30);
    net.cut_signalling(end, until);
    net.call(0, 1, 2);
    net.run_s(40);
    assert!(net.hosts[0].released(ConnId(2)).is_some());
    assert_eq!(moved(&net), [0; 4]);
    net.assert_clean();
}

/// A leaf that finds no room behind the branch that it would share gets a branch of its own by the other way.
#[test]
fn a_leaf_takes_another_way_than_the_branch_that_it_shares() {
    let one_way = TrafficParams {
        category: Some(ServiceCategory::Cbr),
        ..TrafficParams::cbr(100_000, 1536)
    };
    let qos = Qos {
        tx: one_way,
        rx: Qos::ubr_multipoint(1536).rx,
    };
    let mut net = diamond([WIDE, WIDE, 1000, WIDE]);
    net.call_with(0, 3, 1, qos, true);
    net.run_ms(100);
    assert!(net.hosts[0].connected(A));
    // By switch 1, where the first leaf is; then by switch 2, over one branch for both leaves of switch 3.
    for party in [1, 2] {
        net.add_party(0, 1, party, usize::from(party));
    }
    net.run_ms(100);
    for party in [1, 2] {
        let party = PartyId(party);
        let added = AtmEvent::PartyAdded { conn: A, party };
        assert!(net.hosts[0].events.contains(&added), "{party:?}");
    }
    assert_eq!(moved(&net)[1..], [0; 3]);
    assert!((1..=2).contains(&moved(&net)[0]));
    net.send(0, A, b"all").unwrap();
    net.run_ms(10);
    for leaf in 1..4 {
        let conn = net.hosts[leaf].offered().unwrap();
        assert_eq!(net.hosts[leaf].data, [(conn, b"all".to_vec())], "{leaf}");
    }
    // The first leaf leaves, and its branch with it; the others stay.
    let leaving = net.hosts[3].offered().unwrap();
    net.release(3, leaving);
    net.run_ms(100);
    net.send(0, A, b"rest").unwrap();
    net.run_ms(10);
    let received: Vec<_> = net.hosts.iter().map(|host| host.data.len()).collect();
    assert_eq!(received, [0, 2, 2, 1]);
    net.release(0, A);
    net.run_ms(100);
    net.assert_clean();
    // Without room on either way the root is told.
    let mut net = diamond([WIDE, WIDE, 1000, 1000]);
    net.call_with(0, 3, 1, qos, true);
    net.run_ms(100);
    net.add_party(0, 1, 1, 1);
    net.run_ms(100);
    let cause = Cause::RATE_UNAVAILABLE;
    let party = PartyId(1);
    let gone = AtmEvent::PartyGone {
        conn: A,
        party,
        cause,
    };
    assert!(
        net.hosts[0].events.contains(&gone),
        "{:?}",
        net.hosts[0].events
    );
    net.release(0, A);
    net.run_ms(100);
    net.assert_clean();
    // The first leaf of a call takes the other way, too.
    let mut net = diamond([WIDE, WIDE, 1000, WIDE]);
    net.call_with(0, 1, 1, qos, true);
    net.run_ms(100);
    net.add_party(0, 1, 1, 2);
    net.run_ms(100);
    let added = AtmEvent::PartyAdded { conn: A, party };
    assert!(net.hosts[0].connected(A) && net.hosts[0].events.contains(&added));
    assert_eq!(moved(&net), [1, 0, 0, 0]);
    net.release(0, A);
    net.run_ms(100);
    net.assert_clean();
}

/// The caller gives up, or a line goes, at any moment of the tries.
#[test]
fn releases_and_lost_frames_while_a_call_is_moved() {
    for step in 0..40 {
        let mut net = diamond([WIDE, WIDE, 1000, WIDE]);
        net.call_with(0, 1, 1, Qos::cbr(100_000, 1536), false);
        net.run_to(net.now + core::time::Duration::from_micros(50 * step));
        match step % 2 {
            0 => net.release(0, A),
            _ => net.lose = Box::new(|frame| frame.is_multiple_of(3)),
        }
        net.run_s(20);
        net.lose = Box::new(|_| false);
        net.run_s(20);
        if net.hosts[0].connected(A) && net.hosts[0].released(A).is_none() && step % 2 == 1 {
            net.release(0, A);
        }
        net.run_s(20);
        net.assert_clean();
    }
}

/// A grid of switches whose last links have no room. Without a memory a call would try each shortest path: 70 in a grid
/// of five by five, 3432 in one of eight by eight.
#[test]
fn a_search_in_vain_costs_each_switch_its_ways_once() {
    for (n, paths) in [(3, 6), (5, 70), (8, 3432)] {
        let at = |x: usize, y: usize| y * n + x;
        let mut trunks = Vec::new();
        for y in 0..n {
            for x in 0..n {
                let last = |x: usize, y: usize| (x, y) == (n - 1, n - 1);
                let room = |x, y| if last(x, y) { 1000 } else { WIDE };
                if x + 1 < n {
                    trunks.push((at(x, y), at(x + 1, y), room(x + 1, y)));
                }
                if y + 1 < n {
                    trunks.push((at(x, y), at(x, y + 1), room(x, y + 1)));
                }
            }
        }
        let mut net = Net::with_links(n * n, &trunks, &[0, n * n - 1]);
        net.listen(1);
        for conn in 1..=3 {
            net.call_with(0, 1, conn, Qos::cbr(100_000, 1536), false);
            net.run_s(2);
            let released = net.hosts[0].released(ConnId(conn));
            assert_eq!(released, Some(Cause::RATE_UNAVAILABLE));
        }
        let moves: u64 = moved(&net).iter().sum();
        println!("{n} by {n}: {moves} moves for 3 calls, {paths} paths");
        assert!(moves <= 3 * trunks.len() as u64, "{n}: {moves}");
        // Best effort goes on, and so does a call once there is room.
        net.call(0, 1, 9);
        net.run_ms(100);
        assert!(net.hosts[0].connected(ConnId(9)));
        net.release(0, ConnId(9));
        net.run_ms(100);
        net.assert_clean();
    }
}

/// Rates that become free are found at once: a search in vain is forgotten when a call ends.
#[test]
fn a_call_that_ends_makes_room_for_the_next_at_once() {
    let mut net = diamond([WIDE, WIDE, 110_000, 1000]);
    let qos = Qos::cbr(100_000, 1536);
    net.call_with(0, 1, 1, qos, false);
    net.run_ms(100);
    net.call_with(0, 2, 2, qos, false);
    net.run_ms(1);
    assert_eq!(
        net.hosts[0].released(ConnId(2)),
        Some(Cause::RATE_UNAVAILABLE)
    );
    net.release(0, A);
    net.run_ms(2);
    net.call_with(0, 2, 3, qos, false);
    net.run_ms(100);
    assert!(net.hosts[0].connected(ConnId(3)));
    net.release(0, ConnId(3));
    net.run_ms(100);
    net.assert_clean();
}
