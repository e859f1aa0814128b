//! Forms of packets: bare or behind LLC/SNAP, under contracts, to preconfigured addresses.

use super::*;

fn mux(config: Config) -> Config {
    Config {
        mux: true,
        ..config
    }
}
/// Encapsulations of a member's open connections, except that to the server.
fn forms(w: &Net, who: usize) -> Vec<&'static str> {
    let conns = w.users[who].snapshot(w.now).conns.into_iter();
    let peers = conns.filter(|row| row.role == "peer" && row.vc.is_some());
    peers.map(|row| row.encapsulation).collect()
}
fn counters(w: &Net, who: usize) -> Counters {
    w.users[who].snapshot(w.now).counters
}
/// Traffic of the connection for a member's packets to `to`.
fn contract(w: &Net, who: usize, to: Ipv4Addr) -> Qos {
    let snapshot = w.users[who].snapshot(w.now);
    let entry = snapshot.entries.iter().find(|row| row.ip == to).unwrap();
    let conn = snapshot
        .conns
        .iter()
        .find(|row| Some(row.conn) == entry.conn);
    conn.unwrap().qos
}

#[test]
fn packets_stand_alone_between_members_that_agree() {
    let mut w = world(vec![server(), mux(client(1)), mux(client(2))]);
    send(&mut w, 1, ip(2), 1);
    w.run_for(Duration::from_secs(1));
    send(&mut w, 2, ip(1), 2);
    w.run_for(Duration::from_secs(1));
    assert_eq!(got(&mut w, 2), [1]);
    assert_eq!(
        (forms(&w, 1), forms(&w, 2)),
        (vec!["vc-mux"], vec!["vc-mux"])
    );
    let calls = w.users[1].snapshot(w.now).conns.len();
    assert_eq!(calls, 2, "the server, and one for both directions");
    // An SDU that is not an IP packet is dropped, although it would be ATMARP with LLC/SNAP.
    let conn = entry(&w, 1, ip(2)).unwrap().conn.unwrap();
    let sdu = says(Operation::INVERSE_REQUEST, 1, ip(1), 2);
    let heard = counters(&w, 2).arp_in;
    w.with(1, |clip, _| clip.request(AtmRequest::Send { conn, sdu }));
    w.run_for(Duration::from_secs(1));
    assert_eq!((counters(&w, 2).bad, counters(&w, 2).arp_in), (1, heard));
    // After an hour: the server renews entries in use.
    w.take_notes();
    for minute in 0..60_u8 {
        send(&mut w, 1, ip(2), minute);
        w.run_for(Duration::from_secs(60));
    }
    assert_eq!(got(&mut w, 2).len(), 60);
    assert_eq!(counters(&w, 1).calls, 2);
    finish(w);
}

#[test]
fn who_knows_llc_alone_is_called_again() {
    let mut w = world(vec![server(), mux(client(1)), client(2)]);
    send(&mut w, 1, ip(2), 1);
    w.run_for(Duration::from_secs(1));
    assert_eq!(got(&mut w, 2), [1]);
    assert_eq!(forms(&w, 1), ["llc"]);
    let seen = counters(&w, 1);
    assert_eq!((seen.calls, seen.calls_failed), (3, 1));
    // In the other direction nothing is special: LLC/SNAP is always accepted.
    let mut back = world(vec![server(), mux(client(1)), client(2)]);
    send(&mut back, 2, ip(1), 2);
    back.run_for(Duration::from_secs(1));
    assert_eq!(got(&mut back, 1), [2]);
    assert_eq!(counters(&back, 2).calls_failed, 0);
    finish(w);
    finish(back);
}

/// The other end called first, without a contract. Also the server's own packets.
#[test]
fn a_contract_holds_whoever_called_first() {
    let fast = Qos::cbr(2000, 0);
    let wanted = Qos::cbr(2000, 9188);
    let mut one = client(1);
    one.hops.qos = vec![(ip(2), fast)];
    let mut hub = server();
    hub.hops.qos = vec![(ip(2), fast)];
    let mut w = world(vec![hub, one, client(2)]);
    send(&mut w, 2, ip(1), 1);
    send(&mut w, 2, ip(0), 1);
    w.run_for(Duration::from_secs(1));
    send(&mut w, 1, ip(2), 2);
    send(&mut w, 0, ip(2), 3);
    w.run_for(Duration::from_secs(1));
    let mut arrived = got(&mut w, 2);
    arrived.sort_unstable();
    assert_eq!(arrived, [2, 3]);
    assert_eq!(contract(&w, 1, ip(2)), wanted);
    assert_eq!(contract(&w, 0, ip(2)), wanted);
    // The connection is not shared with another address of the same member.
    let mut two = client(1);
    two.hops.fixed = vec![(ip(7), atm(2)), (ip(8), atm(2))];
    two.hops.qos = vec![(ip(7), fast)];
    let mut shared = world(vec![server(), two, client(2)]);
    for to in [7, 8, 7, 8] {
        send(&mut shared, 1, ip(to), 1);
        shared.run_for(Duration::from_secs(1));
    }
    assert_eq!(contract(&shared, 1, ip(7)), wanted);
    assert_eq!(contract(&shared, 1, ip(8)), Qos::ubr(9188));
    assert_eq!(counters(&shared, 1).calls, 3);
    finish(w);
    finish(shared);
}

/// No member can take the address of a member to which the server has a contract.
#[test]
fn duplicates_are_seen_beside_a_contract() {
    let mut hub = server();
    hub.hops.qos = vec![(ip(1), Qos::cbr(100, 0))];
    let mut thief = client(2);
    thief.ip = ip(1);
    let mut w = world(vec![hub, client(1), thief]);
    w.run_for(Duration::from_secs(10));
    assert_eq!(entry(&w, 0, ip(1)).unwrap().atm, Some(atm(1)));
    assert!(counters(&w, 0).duplicates > 0);
    finish(w);
}

#[test]
fn known_addresses_need_no_server() {
    let mut one = client(1);
    one.servers.clear();
    one.hops.fixed = vec![(ip(2), atm(2))];
    let mut two = client(2);
    two.servers.clear();
    let mut w = world(vec![one, two]);
    send(&mut w, 0, ip(2), 1);
    w.run_for(Duration::from_secs(1));
    assert_eq!(got(&mut w, 1), [1]);
    // The way back uses the same connection, because InATMARP has identified the caller.
    send(&mut w, 1, ip(1), 2);
    w.run_for(Duration::from_secs(1));
    assert_eq!(got(&mut w, 0), [2]);
    finish(w);
}

/// A known member that cannot be called is called again soon, then less and less often, but not for every packet.
#[test]
fn calls_to_a_known_address_are_not_hurried() {
    let mut one = client(1);
    one.servers.clear();
    one.hops.fixed = vec![(ip(9), atm(9))];
    let mut w = world(vec![one]);
    for number in 0..100 {
        send(&mut w, 0, ip(9), number);
        w.run_for(Duration::from_millis(100));
    }
    let seen = counters(&w, 0);
    assert_eq!(seen.unreachable, 100);
    assert!((6..=11).contains(&seen.calls), "{} calls", seen.calls);
    let late = w.add(Member::new(client(9)));
    start(&mut w, late);
    w.run_for(Duration::from_secs(5));
    send(&mut w, 0, ip(9), 7);
    w.run_for(Duration::from_secs(1));
    assert_eq!(got(&mut w, late), [7]);
    finish(w);
}
