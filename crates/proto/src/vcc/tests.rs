use super::*;
use proptest::prelude::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Use {
    Control,
    Data,
}

type Table = VccTable<Use, u8>;

const ROOM: Bounds = Bounds {
    held: 2,
    dial: true,
};
const PEER: AtmAddress = AtmAddress([7; 20]);
const CALLED: ConnId = ConnId(ConnId::INCOMING + 3);

fn at(s: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(s)
}
fn call(called: AtmAddress) -> Call {
    Call {
        calling: AtmAddress([1; 20]),
        called,
        sap: Sap::LLC,
        qos: Qos::ubr(1536),
    }
}
fn dial(table: &mut Table, carries: Use) -> ConnId {
    table.dial(call(PEER), carries, 0, at(0)).0
}
fn sends(conn: ConnId, sdus: &[u8]) -> Vec<AtmRequest> {
    let sdus = sdus.iter().map(|octet| vec![*octet]);
    sdus.map(|sdu| AtmRequest::Send { conn, sdu }).collect()
}

#[test]
fn the_first_connection_that_opens_takes_what_waits_for_its_use() {
    let mut table = Table::default();
    let to = (PEER, Use::Control);
    assert_eq!(table.offer(to, vec![1], ROOM, at(0)), Offered::Dial);
    let own = dial(&mut table, Use::Control);
    let data = dial(&mut table, Use::Data);
    table.accept(CALLED, PEER, Use::Control, 0, at(0));
    assert_eq!(table.offer(to, vec![2], ROOM, at(0)), Offered::Held);
    let (_, none) = table.opened(data, Vc::default(), at(1)).expect("known");
    assert_eq!(none, []);
    let (_, all) = table.opened(CALLED, Vc::default(), at(1)).expect("known");
    assert_eq!(all, sends(CALLED, &[1, 2]));
    assert_eq!(
        table.best(PEER, Use::Control),
        Some(CALLED),
        "open ones first"
    );
    let (_, none) = table.opened(own, Vc::default(), at(2)).expect("known");
    assert_eq!(none, [], "sent once");
    assert_eq!(table.best(PEER, Use::Control), Some(own), "then own calls");
    let sent = table.offer(to, vec![3], ROOM, at(0));
    assert_eq!(sent, Offered::Send(sends(own, &[3]).remove(0)));
}

#[test]
fn a_room_has_a_bound_and_none_is_made_without_a_call() {
    let mut table = Table::default();
    let to = (PEER, Use::Control);
    let full = Bounds {
        dial: false,
        ..ROOM
    };
    assert_eq!(table.offer(to, vec![1], full, at(0)), Offered::Full);
    assert_eq!(table.offer(to, vec![1], ROOM, at(0)), Offered::Dial);
    dial(&mut table, Use::Control);
    assert_eq!(table.offer(to, vec![2], full, at(0)), Offered::Held);
    assert_eq!(table.offer(to, vec![3], ROOM, at(0)), Offered::Full);
}

#[test]
fn what_waits_is_forgotten_with_the_last_connection_under_way() {
    let mut table = Table::default();
    let to = (PEER, Use::Control);
    table.offer(to, vec![1], ROOM, at(0));
    let own = dial(&mut table, Use::Control);
    table.accept(CALLED, PEER, Use::Control, 0, at(0));
    assert!(table.remove(own).is_some());
    assert_eq!(table.forget(to), 0, "the peer's own call is under way");
    assert!(table.remove(CALLED).is_some());
    assert_eq!(table.forget(to), 1);
    assert_eq!(table.forget(to), 0);
}

#[test]
fn after_a_failed_call_what_waits_is_called_again_once_and_later_each_time() {
    let mut table = Table::default();
    let to = (PEER, Use::Control);
    let failure = (Cause::NETWORK_OUT_OF_ORDER, Duration::from_secs(5));
    let conn = dial(&mut table, Use::Control);
    let again = |table: &mut Table, now| table.call_later(conn, Backoff::new(1), failure, now);
    assert!(!again(&mut table, at(0)), "nothing waits");
    assert_eq!(table.offer(to, vec![1], ROOM, at(0)), Offered::Held);
    let mut waits = Vec::new();
    let mut now = at(0);
    for _ in 0..3 {
        assert!(again(&mut table, now));
        assert!(table.waits_to_call(conn));
        assert_eq!(table.waits_since(to), Some(at(0)));
        let due = table.next().expect("a call");
        assert_eq!(table.calls_due(due.before(Duration::from_nanos(1))), []);
        waits.push(due.since(now));
        now = due;
        assert_eq!(table.calls_due(now), [conn]);
        assert_eq!(table.calls_due(now), [], "once");
    }
    assert!(waits.is_sorted(), "{waits:?}");
}

#[test]
fn a_connection_that_waits_for_its_next_call_is_unknown_to_the_network() {
    let mut table = Table::default();
    let to = (PEER, Use::Control);
    let failure = (Cause::NETWORK_OUT_OF_ORDER, Duration::from_secs(5));
    for peer_calls in [false, true] {
        let conn = dial(&mut table, Use::Control);
        table.offer(to, vec![1], ROOM, at(0));
        assert!(table.call_later(conn, Backoff::new(1), failure, at(0)));
        if peer_calls {
            table.accept(CALLED, PEER, Use::Control, 0, at(0));
            let (_, sent) = table.opened(CALLED, Vc::default(), at(1)).expect("known");
            assert_eq!(sent, sends(CALLED, &[1]));
            assert!(table.get(conn).is_none(), "the peer's own call has opened");
        } else {
            assert_eq!(table.release(conn), None);
            assert_eq!(table.forget(to), 1);
        }
        assert_eq!(table.next(), None);
    }
}

#[test]
fn ids_in_use_are_not_given_again_and_continue_after_a_release_of_all() {
    let mut table = Table::default();
    let first = dial(&mut table, Use::Data);
    assert_eq!(first, ConnId(1));
    table.last_id = ConnId::INCOMING - 1;
    assert_eq!(dial(&mut table, Use::Data), ConnId(0), "own ids wrap");
    assert_eq!(dial(&mut table, Use::Data), ConnId(2), "1 is in use");
    let released = table.release_all();
    let ids = released.iter().map(|request| match request {
        AtmRequest::Release { conn, cause } if cause.is_normal() => conn.0,
        other => panic!("{other:?}"),
    });
    assert_eq!(ids.collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(dial(&mut table, Use::Data), ConnId(3));
}

proptest! {
    /// Compares look-ups and idle times with plain walks over all connections.
    #[test]
    fn agrees_with_a_walk(
        moves in proptest::collection::vec((0_u32..12, 0_u8..4, 0_u8..6, 0_u64..40), 1..200),
    ) {
        let mut table = Table::default();
        for (id, whom, what, when) in moves {
            let conn = ConnId(id);
            let peer = AtmAddress([whom; 20]);
            let carries = if whom % 2 == 0 { Use::Control } else { Use::Data };
            match what {
                0 => {
                    table.accept(conn, peer, carries, whom, at(when));
                }
                1 => {
                    let known = table.get(conn).is_some();
                    prop_assert_eq!(table.remove(conn).is_some(), known);
                }
                2 => table.idle_after(conn, Duration::from_secs(u64::from(whom))),
                3 => table.touch(conn, at(when)),
                _ => {
                    table.opened(conn, Vc::default(), at(when));
                }
            }
            for n in 0..4 {
                let peer = AtmAddress([n; 20]);
                let same = |vcc: &Vcc<Use, u8>| vcc.peer() == peer;
                let walk: Vec<_> = table.iter().filter(|(_, vcc)| same(vcc)).map(|(conn, _)| conn).collect();
                let with: Vec<_> = table.with(peer).map(|(conn, _)| conn).collect();
                prop_assert_eq!(&with, &walk);
                for carries in [Use::Control, Use::Data] {
                    let key = |conn: &ConnId| (table.get(*conn).is_none_or(|vcc| vcc.vc().is_none()), *conn);
                    let fits = |conn: &ConnId| table.get(*conn).is_some_and(|vcc| vcc.carries() == carries);
                    let best = walk.iter().copied().filter(fits).min_by_key(key);
                    prop_assert_eq!(table.best(peer, carries), best);
                }
            }
            let ends = |vcc: &Vcc<Use, u8>| Some(vcc.used + vcc.idle?);
            let walk = table.iter().filter_map(|(_, vcc)| ends(vcc)).min();
            prop_assert_eq!(table.next(), walk);
            let due = |vcc: &Vcc<Use, u8>| ends(vcc).is_some_and(|end| end <= at(20));
            let walk: Vec<_> = table.iter().filter(|(_, vcc)| due(vcc)).map(|(conn, _)| conn).collect();
            prop_assert_eq!(table.idle(at(20)), walk);
        }
    }
}
