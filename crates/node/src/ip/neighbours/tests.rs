use super::*;
use proptest::prelude::*;

type Table = Neighbours<Vec<u8>>;
const MAC: [u8; 6] = [2, 0, 0, 0, 0, 9];

fn at(seconds: u64) -> Instant {
    Instant::from_secs(seconds)
}

fn peer(n: u16) -> Ipv4Addr {
    Ipv4Addr::from([10, 1, (n >> 8) as u8, n as u8])
}

fn events(table: &mut Table) -> Vec<ArpEvent<Vec<u8>>> {
    core::iter::from_fn(|| table.poll_event()).collect()
}

fn state(table: &Table, address: Ipv4Addr) -> Option<NeighbourState> {
    let mut views = table.views();
    views.find(|v| v.address == address).map(|v| v.state)
}

/// First octets (the numbers) of the dropped packets.
fn dropped(events: &[ArpEvent<Vec<u8>>]) -> Vec<u8> {
    let of = |event: &ArpEvent<Vec<u8>>| match event {
        ArpEvent::Overflow(job) | ArpEvent::Release { job, mac: None, .. } => Some(job[0]),
        _ => None,
    };
    events.iter().filter_map(of).collect()
}

#[test]
fn of_more_than_101_packets_the_oldest_are_dropped() {
    let mut table = Table::new(ArpParams::default());
    for n in 0..111 {
        table.wait(peer(1), vec![n; 100], at(0)).expect("room");
    }
    let first: Vec<u8> = (0..10).collect();
    assert_eq!(dropped(&events(&mut table)), first);
    assert_eq!((table.waiting(), table.counters().overflows), (101, 10));
    table.learn(peer(1), MAC, false, at(0));
    let released = events(&mut table)
        .into_iter()
        .filter_map(|event| match event {
            ArpEvent::Release {
                job,
                mac: Some(MAC),
                ..
            } => Some(job[0]),
            _ => None,
        });
    assert!(released.eq(10..111), "in order");
    assert_eq!(table.waiting(), 0);
}

#[test]
fn no_more_than_212992_octets_wait_but_one_packet_always_does() {
    let mut table = Table::new(ArpParams::default());
    for n in 0..30 {
        table.wait(peer(1), vec![n; 9194], at(0)).expect("room");
    }
    // 23 × 9194 = 211462.
    assert_eq!(
        (table.waiting(), dropped(&events(&mut table)).len()),
        (23, 7)
    );
    let params = ArpParams {
        pending_octets: 10,
        ..ArpParams::default()
    };
    let mut table = Table::new(params);
    table.wait(peer(1), vec![0; 100], at(0)).expect("room");
    assert_eq!(table.waiting(), 1);
}

#[test]
fn three_requests_a_second_apart_then_failed_and_the_next_packet_asks_again() {
    let mut table = Table::new(ArpParams::default());
    table.wait(peer(1), vec![1], at(0)).expect("room");
    let asks = |table: &mut Table| {
        let events = events(table);
        let ask = |e: &&ArpEvent<_>| matches!(e, ArpEvent::Ask { known: None, .. });
        (events.iter().filter(ask).count(), dropped(&events))
    };
    for second in 0..3 {
        table.timeout(at(second));
        assert_eq!(asks(&mut table), (1, vec![]), "{second} s");
        assert_eq!(state(&table, peer(1)), Some(NeighbourState::Incomplete));
    }
    table.timeout(at(3));
    assert_eq!(asks(&mut table), (0, vec![1]));
    assert_eq!(state(&table, peer(1)), Some(NeighbourState::Failed));
    table.wait(peer(1), vec![2], at(4)).expect("room");
    assert_eq!(asks(&mut table), (1, vec![]));
    assert_eq!(state(&table, peer(1)), Some(NeighbourState::Incomplete));
    table.timeout(at(5));
    table.timeout(at(6));
    table.timeout(at(7));
    let counters = table.counters();
    assert_eq!(
        (counters.requests, counters.failures, counters.unanswered),
        (6, 2, 2)
    );
    // The failed neighbour is removed, because no packet needed it since.
    table.timeout(at(67));
    assert_eq!((table.views().count(), table.deadline()), (0, None));
}

#[test]
fn a_permanent_neighbour_is_never_asked_changed_or_evicted() {
    let params = ArpParams {
        neighbours: 4,
        ..ArpParams::default()
    };
    let mut table = Table::new(params);
    table.fix(peer(1), MAC);
    for n in 2..50 {
        table.learn(peer(n), MAC, true, at(0));
        let _ = table.wait(peer(100 + n), vec![0], at(0));
    }
    table.learn(peer(1), [2, 6, 6, 6, 6, 6], true, at(0));
    for second in 1..1000 {
        table.timeout(at(second));
    }
    assert_eq!(table.lookup(peer(1)), Some(MAC));
    assert_eq!(state(&table, peer(1)), Some(NeighbourState::Permanent));
}

/// A full table of neighbours in use.
fn busy() -> Table {
    let params = ArpParams {
        neighbours: 100,
        ..ArpParams::default()
    };
    let mut table = Table::new(params);
    for n in 0..100 {
        table.learn(peer(n), MAC, true, at(0));
        table.lookup(peer(n));
    }
    table
}

#[test]
fn a_flood_of_forged_arp_costs_no_neighbour_in_use() {
    let mut table = busy();
    events(&mut table);
    for n in 1000..9000 {
        table.learn(peer(n), [2, 6, 6, 6, 6, 6], true, at(1));
    }
    assert!(
        table
            .known()
            .map(|(address, _)| address)
            .eq((0..100).map(peer))
    );
    assert!(events(&mut table).is_empty());
}

#[test]
fn a_scan_costs_a_quarter_of_the_table_and_a_neighbour_that_is_there_is_found_through_it() {
    let mut table = busy();
    for n in 1000..9000 {
        table.wait(peer(n), vec![0], at(1)).expect("room");
        if n % 1000 == 500 {
            let there = peer(n + 10_000);
            table.wait(there, vec![7], at(1)).expect("room");
            table.learn(there, MAC, false, at(1));
            let sent = |e: &ArpEvent<Vec<u8>>| matches!(e, ArpEvent::Release { mac: Some(_), .. });
            assert!(events(&mut table).iter().any(sent), "{n}");
        }
    }
    let old = table
        .known()
        .filter(|(address, _)| *address < peer(100))
        .count();
    assert!((67..=75).contains(&old), "{old}");
    assert_eq!(table.views().count(), 100);
}

#[derive(Clone, Debug)]
enum Step {
    Wait(u16, usize),
    Learn(u16, bool),
    Look(u16),
    Ask(u16),
    Pass(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let who = 0u16..12;
    prop_oneof![
        4 => (who.clone(), 1usize..3000).prop_map(|(n, size)| Step::Wait(n, size)),
        2 => (who.clone(), any::<bool>()).prop_map(|(n, create)| Step::Learn(n, create)),
        1 => who.clone().prop_map(Step::Look),
        1 => who.prop_map(Step::Ask),
        2 => (1u64..400_000).prop_map(Step::Pass),
    ]
}

proptest! {
    /// At all times: the bounds hold; every packet that waited has been sent or dropped or still waits; every question
    /// has been answered once or waits; and there is a deadline while any neighbour is requested.
    #[test]
    fn the_books_of_a_table_balance_and_its_bounds_hold(
        steps in proptest::collection::vec(step(), 1..300),
    ) {
        let params = ArpParams { neighbours: 8, pending: 5, pending_octets: 6000, questions: 2, ..ArpParams::default() };
        let mut table = Table::new(params);
        table.fix(peer(0), MAC);
        let (mut now, mut offered, mut sent, mut lost, mut refused) = (at(0), 0, 0, 0, 0);
        let (mut asked, mut answered) = (0, 0);
        for step in steps {
            match step {
                Step::Wait(n, size) => if table.lookup(peer(n)).is_none() {
                    offered += 1;
                    refused += u64::from(table.wait(peer(n), vec![0; size], now).is_err());
                },
                Step::Learn(n, create) => table.learn(peer(n), MAC, create, now),
                Step::Look(n) => { table.lookup(peer(n)); }
                Step::Ask(n) => { asked += 1; table.ask(7, peer(n), now); }
                Step::Pass(ms) => {
                    let until = now + Duration::from_millis(ms);
                    while let Some(due) = table.deadline().filter(|due| *due <= until) {
                        prop_assert!(due >= now);
                        now = due;
                        table.timeout(now);
                        prop_assert!(table.deadline().is_none_or(|next| next > now));
                    }
                    now = until;
                }
            }
            for event in events(&mut table) {
                match event {
                    ArpEvent::Release { mac: Some(_), .. } => sent += 1,
                    ArpEvent::Release { mac: None, .. } | ArpEvent::Overflow(_) => lost += 1,
                    ArpEvent::Answer { .. } => answered += 1,
                    _ => {}
                }
            }
            let waiting = table.waiting() as u64;
            prop_assert_eq!(offered, sent + lost + refused + waiting);
            let counters = table.counters();
            prop_assert_eq!(lost, counters.overflows + counters.unanswered);
            prop_assert_eq!(refused, counters.refused);
            let open: usize = table.table.values().map(|n| n.questions.len()).sum();
            prop_assert_eq!(asked, answered + open);
            prop_assert!(table.table.len() <= 8);
            for neighbour in table.table.values() {
                let octets: usize = neighbour.pending.iter().map(Vec::len).sum();
                prop_assert_eq!(octets, neighbour.octets);
                prop_assert!(neighbour.pending.len() <= 5 && octets <= 6000);
                prop_assert!(neighbour.pending.is_empty() || neighbour.asked > 0);
            }
            prop_assert!(waiting == 0 || table.deadline().is_some());
        }
    }
}

/// The neighbour is present: a thousand forged packets cause one request a second, and change nothing.
#[test]
fn a_forged_address_is_asked_back_and_not_believed() {
    let mut table = Table::new(ArpParams::default());
    table.learn(peer(1), MAC, true, at(0));
    events(&mut table);
    let thief = [2, 6, 6, 6, 6, 6];
    for second in 10..20 {
        for _ in 0..100 {
            table.learn(peer(1), thief, true, at(second));
        }
        assert_eq!(table.lookup(peer(1)), Some(MAC));
        let asked = events(&mut table);
        assert!(
            matches!(
                asked[..],
                [ArpEvent::Ask {
                    known: Some(MAC),
                    ..
                }]
            ),
            "{asked:?}"
        );
        // The neighbour answers, and no change is reported.
        table.learn(peer(1), MAC, false, at(second));
        table.timeout(at(second));
        assert!(events(&mut table).is_empty());
    }
    assert_eq!(table.counters().doubts, 1000);
}

/// The neighbour no longer answers at its known address. After two requests and two seconds the claimed address is
/// used; until then packets go to the known one.
#[test]
fn a_neighbour_that_has_moved_is_found_after_two_seconds() {
    let mut table = Table::new(ArpParams::default());
    table.learn(peer(1), MAC, true, at(0));
    events(&mut table);
    let new = [2, 7, 7, 7, 7, 7];
    table.learn(peer(1), new, true, at(10));
    table.timeout(at(11));
    assert_eq!(table.lookup(peer(1)), Some(MAC));
    let asked = |event: &ArpEvent<_>| {
        matches!(
            event,
            ArpEvent::Ask {
                known: Some(MAC),
                ..
            }
        )
    };
    assert_eq!(events(&mut table).iter().filter(|e| asked(e)).count(), 2);
    table.timeout(at(12));
    assert_eq!(table.lookup(peer(1)), Some(new));
    let told = events(&mut table);
    let changed = |event: &ArpEvent<_>| matches!(event, ArpEvent::Changed { mac: Some(mac), .. } if *mac == new);
    assert!(told.iter().any(changed), "{told:?}");
    assert_eq!(state(&table, peer(1)), Some(NeighbourState::Reachable));
}
