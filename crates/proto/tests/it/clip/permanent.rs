//! Permanent connections beside a server and calls: a member with a permanent connection to a next hop uses it.

use super::*;

const VC: Vc = Vc::new(0, 100);

fn permanent(ip: Option<Ipv4Addr>) -> Permanent {
    Permanent {
        vc: VC,
        qos: Qos::cbr(4717, 9188),
        encapsulation: Encapsulation::Llc,
        ip,
    }
}

/// A server, and clients 1 and 2 with a permanent connection between them. `told` says whether each knows the other end
/// from its configuration.
fn net(told: [bool; 2]) -> Net {
    let mut w = World::new(Duration::from_millis(1));
    w.net.patch((1, VC), (2, VC));
    w.add(Member::new(server()));
    for (n, told) in [1, 2].into_iter().zip(told) {
        let mut config = client(n);
        config.permanent = vec![permanent(told.then(|| ip(3 - n)))];
        w.add(Member::new(config));
    }
    w
}

/// Packets sent on permanent connections, and on others except that to the server.
fn sent(w: &Net, who: usize) -> (u64, u64) {
    let conns = w.users[who].snapshot(w.now).conns.into_iter();
    let mut sums = (0, 0);
    for row in conns {
        match row.role {
            "permanent" => sums.0 += row.packets.0,
            _ => sums.1 += row.packets.0,
        }
    }
    sums
}

#[test]
fn what_the_configuration_says_is_used_from_the_first_packet_on() {
    let mut w = net([true, true]);
    for who in 0..3 {
        start(&mut w, who);
    }
    // No client is registered, and no InATMARP request has been answered.
    for number in 0..10 {
        send(&mut w, 1, ip(2), number);
        w.run_for(Duration::from_micros(500));
    }
    w.run_for(Duration::from_secs(5));
    assert_eq!(got(&mut w, 2), (0..10).collect::<Vec<_>>());
    assert_eq!(sent(&w, 1), (10, 0));
    // The server can answer requests of others for this address.
    let mut third = client(3);
    third.servers = vec![atm(0)];
    let who = w.add(Member::new(third));
    start(&mut w, who);
    w.run_for(Duration::from_secs(1));
    send(&mut w, who, ip(2), 7);
    w.run_for(Duration::from_secs(1));
    assert_eq!(got(&mut w, 2), [7]);
    // This holds hours later, too.
    w.run_for(Duration::from_secs(7200));
    send(&mut w, 2, ip(1), 8);
    w.run_for(Duration::from_secs(1));
    assert_eq!(got(&mut w, 1), [8]);
    assert_eq!(sent(&w, 2), (1, 0));
    finish(w);
}

#[test]
fn a_call_from_the_next_hop_is_taken_and_not_used() {
    let mut w = net([true, false]);
    w.users[2] = Member::new(client(2));
    for who in 0..3 {
        start(&mut w, who);
    }
    w.run_for(Duration::from_secs(5));
    // Client 2 has not opened its end yet, so it calls.
    send(&mut w, 2, ip(1), 1);
    w.run_for(Duration::from_secs(1));
    assert_eq!(got(&mut w, 1), [1]);
    assert_eq!(sent(&w, 2), (0, 1));
    w.with(2, |clip, now| clip.open_permanent(permanent(None), now));
    w.run_for(Duration::from_micros(100));
    for number in 0..5 {
        send(&mut w, 1, ip(2), number);
        w.run_for(Duration::from_secs(1));
    }
    assert_eq!(got(&mut w, 2).len(), 5);
    assert_eq!(sent(&w, 1), (5, 0));
    finish(w);
}

#[test]
fn an_answer_by_inatmarp_moves_packets_from_a_call_to_the_permanent_connection() {
    let mut w = net([false, false]);
    for n in [1, 2] {
        w.users[n] = Member::new(client(n));
    }
    for who in 0..3 {
        start(&mut w, who);
    }
    w.run_for(Duration::from_secs(1));
    for (from, to) in [(1, 2), (2, 1)] {
        send(&mut w, from, ip(to), 1);
        w.run_for(Duration::from_secs(1));
        assert_eq!((got(&mut w, to), sent(&w, from)), (vec![1], (0, 1)));
    }
    for who in [1, 2] {
        w.with(who, |clip, now| clip.open_permanent(permanent(None), now));
    }
    w.run_for(Duration::from_secs(20));
    for (from, to) in [(1, 2), (2, 1)] {
        send(&mut w, from, ip(to), 2);
        w.run_for(Duration::from_secs(1));
        assert_eq!((got(&mut w, to), sent(&w, from)), (vec![2], (1, 1)));
    }
    // A later call changes nothing, nor do hours in which the server would be asked again.
    w.with(2, |clip, _| {
        clip.request(AtmRequest::Connect {
            conn: ConnId(999),
            calling: atm(2),
            called: atm(1),
            sap: Sap::LLC,
            qos: Qos::ubr(9188),
            multipoint: false,
        });
    });
    for minutes in 0..100 {
        w.run_for(Duration::from_secs(60));
        send(&mut w, 1, ip(2), minutes);
    }
    w.run_for(Duration::from_secs(1));
    assert_eq!(
        (got(&mut w, 2).len(), sent(&w, 1)),
        (100, (101, 0)),
        "the call was idle"
    );
}
