//! Hosts and switches in a chain, in virtual time. Every test ends without calls or connections.

mod admission;
mod crankback;
mod flood;
mod held;
mod management;
mod permanent;
mod relay;
mod screening;
mod tunnels;

use aerostat_node::inspect::StateKind;
use aerostat_proto::{AtmEvent, AtmRequest, Cause, ConnId, PartyId};
use aerostat_wire::{AtmAddress, Qos, Sap, ServiceCategory, TrafficParams};

use aerostat_node::switch::{Input, PortNo};
use aerostat_proto::Machine;
use aerostat_testing::switch::Net;
use proptest::prelude::*;

const A: ConnId = ConnId(1);

/// Three switches in a row, a host at each end; host 1 listens.
fn two_hosts() -> Net {
    let mut net = Net::chain(3, &[0, 2]);
    net.listen(1);
    net
}

#[test]
fn call_carries_data_both_ways_and_is_released_by_either_side() {
    for by_caller in [true, false] {
        let mut net = two_hosts();
        net.call(0, 1, 1);
        net.run_ms(100);
        assert!(net.hosts[0].connected(A));
        let there = net.hosts[1].offered().unwrap();
        assert!(net.hosts[1].connected(there));
        for k in 0..3 {
            assert_eq!(net.connections(k), 2, "one each way in switch {k}");
            let call = net.switches[k].calls().next().unwrap();
            assert!(call.accepted && call.branches[0].connected);
        }
        net.send(0, A, b"to and").unwrap();
        net.send(1, there, b"fro").unwrap();
        net.run_ms(10);
        assert_eq!(net.hosts[1].data, [(there, b"to and".to_vec())]);
        assert_eq!(net.hosts[0].data, [(A, b"fro".to_vec())]);
        if by_caller {
            net.release(0, A);
        } else {
            net.release(1, there);
        }
        net.run_ms(100);
        net.assert_clean();
        if by_caller {
            assert_eq!(net.hosts[1].released(there), Some(Cause::NORMAL));
            assert_eq!(
                net.hosts[0].released(A),
                None,
                "no event for one's own release"
            );
        } else {
            assert_eq!(net.hosts[0].released(A), Some(Cause::NORMAL));
        }
        assert!(net.send(0, A, b"too late").is_err());
    }
}

#[test]
fn refusals_reach_the_caller() {
    let mut net = two_hosts();
    // There is no listener at host 0.
    net.call(1, 0, 1);
    // SDUs larger than the listener takes.
    net.call_with(0, 1, 1, Qos::ubr(1537), false);
    let mut connect = |conn, called: AtmAddress, calling: AtmAddress, sap| {
        let request = AtmRequest::Connect {
            conn: ConnId(conn),
            calling,
            called,
            sap,
            qos: Qos::ubr(1536),
            multipoint: false,
        };
        net.ask(0, request).unwrap();
    };
    let (own, other) = (
        Net::chain(3, &[0, 2]).address(0),
        Net::chain(3, &[0, 2]).address(1),
    );
    connect(2, other, own, Sap::LANE_CONTROL);
    connect(3, AtmAddress::LECS, own, Sap::LLC);
    connect(4, other.with_selector(9), own, Sap::LLC);
    connect(5, other, other, Sap::LLC);
    net.run_ms(200);
    assert_eq!(net.hosts[1].released(A), Some(Cause::INCOMPATIBLE));
    let causes: Vec<_> = (1..=5)
        .map(|conn| net.hosts[0].released(ConnId(conn)).map(|cause| cause.0))
        .collect();
    assert_eq!(causes, [Some(88), Some(88), Some(3), Some(88), Some(21)]);
    net.assert_clean();
}

#[test]
fn user_refuses() {
    let mut net = two_hosts();
    net.hosts[1].auto = false;
    net.call(0, 1, 1);
    net.run_ms(100);
    let conn = net.hosts[1].offered().unwrap();
    let cause = Cause::BUSY;
    net.ask(1, AtmRequest::Release { conn, cause }).unwrap();
    net.run_ms(100);
    assert_eq!(net.hosts[0].released(A), Some(Cause::BUSY));
    // Behind the switch the cause is still that of a busy user (location 0).
    let element = [0x08, 0x80, 0, 2, 0x80, 0x80 | Cause::BUSY.0];
    let sdus = &net.hosts[0].signalled;
    assert!(sdus.iter().any(|sdu| sdu.windows(6).any(|w| w == element)));
    let tables = net.switches[0]
        .inspect(StateKind::Call, aerostat_proto::Instant::ZERO)
        .unwrap();
    let causes = tables.iter().find(|table| table.title == "causes");
    assert_eq!(causes.unwrap().rows.len(), 2, "both ends of the call");
    assert!(
        tables
            .iter()
            .any(|table| table.title == "signalling" && !table.rows.is_empty())
    );
    net.assert_clean();
}

#[test]
fn admission_by_peak_cell_rate() {
    let mut net = two_hosts();
    let half = Qos::cbr(180_000, 1536);
    net.call_with(0, 1, 1, half, false);
    net.run_ms(100);
    assert!(net.hosts[0].connected(A));
    net.call_with(0, 1, 2, half, false);
    net.call_with(0, 1, 3, Qos::ubr(1536), false);
    let vbr = TrafficParams {
        category: Some(ServiceCategory::NrtVbr),
        scr: 10_000,
        mbs: 100,
        ..TrafficParams::cbr(300_000, 1536)
    };
    net.call_with(0, 1, 4, Qos { tx: vbr, rx: vbr }, false);
    net.run_ms(100);
    assert_eq!(
        net.hosts[0].released(ConnId(2)),
        Some(Cause::RATE_UNAVAILABLE)
    );
    assert!(
        net.hosts[0].connected(ConnId(3)),
        "best effort is not counted"
    );
    assert!(net.hosts[0].connected(ConnId(4)), "VBR counts with its SCR");
    let port = net.switches[1].port_infos().next().unwrap();
    assert_eq!(port.reserved, (190_000, 190_000));
    for conn in [1, 3, 4] {
        net.release(0, ConnId(conn));
    }
    net.run_ms(100);
    net.assert_clean();
    net.call_with(0, 1, 5, half, false);
    net.run_ms(100);
    assert!(net.hosts[0].connected(ConnId(5)), "the rate is free again");
    net.release(0, ConnId(5));
    net.run_ms(100);
    net.assert_clean();
}

#[test]
fn hosts_at_one_switch_and_users_at_one_host() {
    let mut net = Net::chain(1, &[0, 0]);
    net.listen(0);
    net.listen(1);
    net.call(0, 1, 1);
    net.call(0, 0, 2);
    net.run_ms(100);
    assert!(net.hosts[0].connected(A) && net.hosts[0].connected(ConnId(2)));
    let own = net.hosts[0].offered().unwrap();
    net.send(0, ConnId(2), b"to myself").unwrap();
    net.run_ms(10);
    assert_eq!(net.hosts[0].data, [(own, b"to myself".to_vec())]);
    net.release(0, A);
    net.release(0, own);
    net.run_ms(100);
    net.assert_clean();
}

#[test]
fn crossing_calls() {
    let mut net = two_hosts();
    net.listen(0);
    for round in 0..20 {
        net.call(0, 1, 10 + round);
        net.call(1, 0, 10 + round);
    }
    net.run_ms(200);
    for host in 0..2 {
        for round in 0..20 {
            assert!(net.hosts[host].connected(ConnId(10 + round)));
        }
    }
    assert_eq!(net.connections(1), 80);
    for round in 0..20 {
        net.release(0, ConnId(10 + round));
        net.release(1, ConnId(10 + round));
    }
    net.run_ms(200);
    net.assert_clean();
}

/// Releases that cross each other, and a release that overtakes the answer.
#[test]
fn crossing_releases() {
    let mut net = two_hosts();
    net.call(0, 1, 1);
    net.run_ms(100);
    let there = net.hosts[1].offered().unwrap();
    net.release(0, A);
    net.release(1, there);
    for step in 0..12 {
        net.call(0, 1, 100 + step);
        // The set-up takes some 0.6 ms, so this covers every stage of it.
        for _ in 0..step {
            net.run_ms(0);
            net.now += core::time::Duration::from_micros(60);
        }
        net.release(0, ConnId(100 + step));
    }
    net.run_ms(300);
    net.assert_clean();
}

#[test]
fn multipoint_leaves_come_and_go() {
    // Root at switch 0; leaves at switches 0, 1 and two at switch 2.
    let mut net = Net::chain(3, &[0, 0, 1, 2, 2]);
    for leaf in 1..5 {
        net.listen(leaf);
    }
    let qos = Qos::ubr_multipoint(1536);
    net.call_with(0, 3, 1, qos, true);
    net.run_ms(100);
    assert!(net.hosts[0].connected(A));
    for (party, leaf) in [(1, 1), (2, 2), (3, 4)] {
        net.add_party(0, 1, party, leaf);
    }
    net.run_ms(100);
    for party in 1..=3 {
        let added = AtmEvent::PartyAdded {
            conn: A,
            party: PartyId(party),
        };
        assert!(net.hosts[0].events.contains(&added), "party {party}");
    }
    net.send(0, A, b"all").unwrap();
    net.run_ms(10);
    for leaf in 1..5 {
        let conn = net.hosts[leaf].offered().unwrap();
        assert_eq!(
            net.hosts[leaf].data,
            [(conn, b"all".to_vec())],
            "leaf {leaf}"
        );
        assert!(net.send(leaf, conn, b"back").is_err(), "leaves cannot send");
    }
    // One copy towards switch 1, which copies it to three leaves.
    let view = |net: &Net, k: usize| {
        let fabric = net.switches[k].fabric();
        let connection = fabric.connections().find(|c| !c.local).unwrap();
        let mut ports: Vec<_> = connection.to.iter().map(|to| to.port).collect();
        ports.sort_unstable();
        ports
    };
    assert_eq!(view(&net, 0), [1, net.port_of(1).0]);
    assert_eq!(view(&net, 1), [1, net.port_of(2).0]);
    assert_eq!(view(&net, 2), [net.port_of(3).0, net.port_of(4).0]);
    // The root drops the leaf at switch 1, and the first leaf leaves by itself.
    let (conn, party) = (A, PartyId(2));
    net.ask(0, AtmRequest::DropParty { conn, party }).unwrap();
    let leaving = net.hosts[3].offered().unwrap();
    net.release(3, leaving);
    net.run_ms(100);
    let dropped = net.hosts[2].offered().unwrap();
    assert!(net.hosts[2].released(dropped).is_some());
    let gone = AtmEvent::PartyGone {
        conn: A,
        party: PartyId(0),
        cause: Cause::NORMAL,
    };
    assert!(net.hosts[0].events.contains(&gone));
    net.send(0, A, b"rest").unwrap();
    net.run_ms(10);
    let received: Vec<_> = net.hosts.iter().map(|host| host.data.len()).collect();
    assert_eq!(received, [0, 2, 1, 1, 2]);
    net.release(0, A);
    net.run_ms(100);
    net.assert_clean();
}

#[test]
fn multipoint_refusals_and_the_last_leaf() {
    let mut net = Net::chain(2, &[0, 1, 1]);
    net.listen(1);
    net.call_with(0, 2, 1, Qos::ubr_multipoint(1536), true);
    net.run_ms(100);
    assert_eq!(net.hosts[0].released(A), Some(Cause::INCOMPATIBLE));
    net.assert_clean();
    net.call_with(0, 1, 1, Qos::ubr_multipoint(1536), true);
    net.run_ms(100);
    net.add_party(0, 1, 7, 2);
    net.run_ms(100);
    let gone = AtmEvent::PartyGone {
        conn: A,
        party: PartyId(7),
        cause: Cause::INCOMPATIBLE,
    };
    assert!(
        net.hosts[0].events.contains(&gone),
        "{:?}",
        net.hosts[0].events
    );
    net.listen(2);
    net.add_party(0, 1, 7, 2);
    net.run_ms(100);
    // Both leaves leave; the call ends with the last one.
    for leaf in [1, 2] {
        let conn = net.hosts[leaf].offered().unwrap();
        net.release(leaf, conn);
        net.run_ms(100);
    }
    assert!(net.hosts[0].released(A).is_some());
    net.assert_clean();
}

#[test]
fn switch_restarts_in_the_middle_of_calls() {
    let mut net = two_hosts();
    net.listen(0);
    net.call(0, 1, 1);
    net.call(1, 0, 1);
    net.call_with(0, 1, 2, Qos::ubr_multipoint(1536), true);
    net.run_ms(100);
    assert!(net.hosts[0].connected(A) && net.hosts[1].connected(A));
    net.restart_switch(1);
    net.run_s(30);
    assert!(net.hosts[0].released(A).is_some());
    assert!(net.hosts[1].released(A).is_some());
    net.assert_clean();
    net.call(0, 1, 3);
    net.run_ms(100);
    assert!(net.hosts[0].connected(ConnId(3)), "the network works again");
    net.restart_switch(0);
    net.run_s(30);
    net.assert_clean();
    net.call(0, 1, 4);
    net.run_ms(100);
    assert!(net.hosts[0].connected(ConnId(4)));
    net.release(0, ConnId(4));
    net.run_ms(100);
    net.assert_clean();
}

#[test]
fn host_restarts_in_the_middle_of_calls() {
    let mut net = two_hosts();
    net.call(0, 1, 1);
    net.run_ms(100);
    net.restart_host(0);
    net.run_s(30);
    let there = net.hosts[1].offered().unwrap();
    assert!(net.hosts[1].released(there).is_some());
    net.assert_clean();
    net.call(0, 1, 1);
    net.run_ms(100);
    assert!(net.hosts[0].connected(A));
    net.release(0, A);
    net.run_ms(100);
    net.assert_clean();
}

#[test]
fn dead_link_clears_its_calls() {
    let mut net = two_hosts();
    net.call(0, 1, 1);
    net.run_ms(100);
    let (now, down) = (net.now, Input::Link(PortNo(1), false));
    net.switches[1].handle_input(down, now).unwrap();
    net.run_s(40);
    assert_eq!(net.hosts[0].released(A), Some(Cause::OUT_OF_ORDER));
    net.assert_clean();
    net.call(0, 1, 2);
    net.run_ms(100);
    assert!(net.hosts[0].released(ConnId(2)).is_some());
    let (now, up) = (net.now, Input::Link(PortNo(1), true));
    net.switches[1].handle_input(up, now).unwrap();
    net.run_s(10);
    net.call(0, 1, 3);
    net.run_ms(100);
    assert!(net.hosts[0].connected(ConnId(3)));
    net.release(0, ConnId(3));
    net.run_ms(100);
    net.assert_clean();
}

#[test]
fn calls_of_a_port_have_a_bound() {
    let mut net = Net::chain_limited(3, &[0, 2], 3);
    net.listen(1);
    for conn in 1..=5 {
        net.call(0, 1, conn);
    }
    net.run_ms(100);
    let refused =
        (1..=5).filter(|conn| net.hosts[0].released(ConnId(*conn)) == Some(Cause::RESOURCES));
    assert_eq!(refused.count(), 2);
    for call in net.hosts[0].signalling.calls().collect::<Vec<_>>() {
        let (_, conn) = call.owner.unwrap();
        net.release(0, conn);
    }
    net.run_ms(100);
    net.assert_clean();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever signalling frames are lost: once the links are up and all calls are released, nothing is left, and a
    /// new call succeeds.
    #[test]
    fn lost_signalling(
        losses in prop::collection::vec(0_u8..100, 97),
        rate in 0_u8..35,
        steps in prop::collection::vec((0_u8..6, 0_u64..900), 1..30),
    ) {
        let mut net = Net::chain(3, &[0, 1, 2, 2]);
        for host in 0..4 {
            net.listen(host);
        }
        net.lose = Box::new(move |n| losses[n % losses.len()] < rate);
        let mut next = 0;
        for (kind, wait) in steps {
            next += 1;
            let (from, to) = (next as usize % 4, (next as usize / 2 + 1) % 4);
            match kind {
                0 | 1 => net.call(from, to, next),
                2 => net.call_with(from, to, next, Qos::ubr_multipoint(1536), true),
                3 => for call in net.hosts[from].signalling.calls().collect::<Vec<_>>() {
                    let (true, Some((_, conn))) = (call.outgoing && call.multipoint, call.owner) else {
                        continue;
                    };
                    let request = AtmRequest::AddParty {
                        conn, party: PartyId(next as u16), called: net.address(to),
                    };
                    // The manager refuses this while the call is not connected.
                    let _ = net.ask(from, request);
                },
                4 => {
                    let owner = net.hosts[from].signalling.calls().find_map(|call| call.owner);
                    if let Some((_, conn)) = owner {
                        net.release(from, conn);
                    }
                }
                _ => for call in net.hosts[from].signalling.calls().collect::<Vec<_>>() {
                    let (true, Some((_, conn))) = (call.parties > 1, call.owner) else { continue };
                    // The manager refuses this if there is no such party any more.
                    let _ = net.ask(from, AtmRequest::DropParty { conn, party: PartyId(0) });
                },
            }
            net.run_ms(wait);
        }
        net.lose = Box::new(|_| false);
        net.run_s(30);
        for host in 0..4 {
            for call in net.hosts[host].signalling.calls().collect::<Vec<_>>() {
                if let Some((_, conn)) = call.owner {
                    net.release(host, conn);
                }
            }
        }
        net.run_s(200);
        net.assert_clean();
        net.call(0, 3, 1000);
        net.run_s(1);
        prop_assert!(net.hosts[0].connected(ConnId(1000)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn any_sequence(octets in proptest::collection::vec(any::<u8>(), 0..300)) {
        aerostat_testing::switch::sequences::run(&octets);
    }
}
