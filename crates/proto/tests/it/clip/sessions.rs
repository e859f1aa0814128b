//! Connections for single sessions.

use super::*;
use aerostat_proto::Cause;
use aerostat_wire::ipv4::{TCP, UDP};

const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;

/// A packet from port `ports.0` of member `from` to port `ports.1` of `to`; TCP with these flags and 0 or 4 octets.
fn packet(
    (from, to): (usize, usize),
    protocol: u8,
    ports: (u16, u16),
    (flags, data): (u8, bool),
) -> Vec<u8> {
    let mut body = [ports.0.to_be_bytes(), ports.1.to_be_bytes()].concat();
    match protocol {
        TCP => body.extend([0, 0, 0, 0, 0, 0, 0, 0, 0x50, flags, 1, 0, 0, 0, 0, 0]),
        _ => body.extend([0, 8, 0, 0]),
    }
    body.extend(&[7; 4][..if data { 4 } else { 0 }]);
    let mut packet = vec![
        0x45,
        0,
        0,
        20 + body.len() as u8,
        0,
        0,
        0x40,
        0,
        64,
        protocol,
        0,
        0,
    ];
    packet.extend(ip(from).octets());
    packet.extend(ip(to).octets());
    packet.extend(body);
    packet
}

fn udp(ends: (usize, usize), port: u16) -> Vec<u8> {
    packet(ends, UDP, (port, 7), (0, true))
}

fn tcp(ends: (usize, usize), port: u16, flags: u8) -> Vec<u8> {
    packet(ends, TCP, (port, 80), (flags, false))
}

fn back(ends: (usize, usize), port: u16, flags: u8) -> Vec<u8> {
    packet(ends, TCP, (80, port), (flags, flags == ACK))
}

fn offer(w: &mut Net, from: usize, to: usize, packet: Vec<u8>) {
    w.with(from, |clip, now| {
        let next_hop = ip(to);
        clip.handle_input(Input::Send { next_hop, packet }, now)
            .unwrap();
    });
}

fn per_session(n: usize) -> Config {
    Config {
        per: Per::Session,
        ..client(n)
    }
}

fn rows(w: &Net, who: usize, role: &str) -> Vec<ConnRow> {
    let conns = w.users[who].snapshot(w.now).conns.into_iter();
    conns.filter(|row| row.role == role).collect()
}

fn counters(w: &Net, who: usize) -> Counters {
    w.users[who].snapshot(w.now).counters
}

fn received(w: &mut Net, who: usize) -> usize {
    let notes = w.take_notes().into_iter();
    let packets =
        notes.filter(|(_, from, note)| *from == who && matches!(note, Output::Deliver { .. }));
    packets.count()
}

#[test]
fn each_session_has_its_connection_and_its_contract() {
    let mut one = per_session(1);
    one.ports = vec![PortContract {
        protocol: Some(TCP),
        ports: 80..=80,
        qos: Qos::cbr(1000, 0),
    }];
    let mut w = world(vec![server(), one, client(2)]);
    for port in [1000, 1001] {
        offer(&mut w, 1, 2, tcp((1, 2), port, SYN));
    }
    offer(&mut w, 1, 2, udp((1, 2), 1000));
    send(&mut w, 1, ip(2), 9);
    w.run_for(Duration::from_secs(1));
    assert_eq!(received(&mut w, 2), 4);
    let sessions = rows(&w, 1, "session");
    let told: Vec<_> = sessions
        .iter()
        .map(|row| (row.session.unwrap().to_string(), row.qos.tx.max_pcr))
        .collect();
    let tcp_of = |port: u16| (format!("tcp 10.9.0.1:{port} > 10.9.0.2:80"), Some(1000));
    assert_eq!(told[..2], [tcp_of(1000), tcp_of(1001)]);
    assert_eq!(told[2], ("udp 10.9.0.1:1000 > 10.9.0.2:7".to_owned(), None));
    // What is no session uses the connection of the next hop.
    assert_eq!(rows(&w, 1, "peer").len(), 1);
    // The called side knows them too, and its answers go back on them, although it opens none itself.
    let calls = w.net.calls();
    offer(&mut w, 2, 1, back((2, 1), 1001, SYN | ACK));
    w.run_for(Duration::from_millis(100));
    assert_eq!((received(&mut w, 1), w.net.calls()), (1, calls));
    let there = rows(&w, 2, "session");
    let used: Vec<_> = there.iter().map(|row| row.packets).collect();
    assert_eq!(used, [(0, 1), (1, 1), (0, 1)]);
    assert_eq!(w.users[2].snapshot(w.now).sessions, (0, 3));
    finish(w);
}

#[test]
fn the_end_of_tcp_ends_the_connection_soon() {
    let mut w = world(vec![server(), per_session(1), per_session(2)]);
    for port in [1000, 1001, 1002] {
        offer(&mut w, 1, 2, tcp((1, 2), port, SYN));
    }
    w.run_for(Duration::from_secs(1));
    assert_eq!(rows(&w, 1, "session").len(), 3);
    // One is closed in order, one is reset, one goes on with half of it closed.
    offer(&mut w, 1, 2, tcp((1, 2), 1000, FIN | ACK));
    offer(&mut w, 2, 1, back((2, 1), 1000, FIN | ACK));
    offer(&mut w, 2, 1, back((2, 1), 1001, RST));
    offer(&mut w, 1, 2, tcp((1, 2), 1002, FIN | ACK));
    w.run_for(Duration::from_millis(1500));
    assert_eq!(
        rows(&w, 1, "session").len(),
        3,
        "a moment for the last segments"
    );
    w.run_for(Duration::from_secs(3));
    let left = rows(&w, 1, "session");
    assert_eq!(left.len(), 1, "{left:?}");
    assert_eq!(left[0].session.unwrap().ports, (1002, 80));
    assert_eq!(rows(&w, 2, "session").len(), 1);
    // The last acknowledgement of what is over opens nothing; a new connection with the same ports does.
    offer(&mut w, 1, 2, tcp((1, 2), 1000, ACK));
    w.run_for(Duration::from_millis(100));
    assert_eq!(rows(&w, 1, "session").len(), 1);
    offer(&mut w, 1, 2, tcp((1, 2), 1000, SYN));
    w.run_for(Duration::from_millis(100));
    assert_eq!(rows(&w, 1, "session").len(), 2);
    // Idle sessions go as other connections do.
    w.run_for(Duration::from_secs(21 * 60));
    assert_eq!(rows(&w, 1, "session").len(), 0);
    assert_eq!(w.users[1].snapshot(w.now).sessions, (0, 0));
    finish(w);
}

#[test]
fn a_flood_of_sessions_stays_within_its_bound() {
    let mut w = world(vec![server(), per_session(1), client(2)]);
    for port in 1..=10_000 {
        offer(&mut w, 1, 2, udp((1, 2), port));
        w.run_for(Duration::from_millis(1));
    }
    w.run_for(Duration::from_secs(1));
    let limits = Limits::default();
    assert_eq!(rows(&w, 1, "session").len(), limits.sessions);
    assert_eq!(rows(&w, 2, "session").len(), limits.sessions);
    let seen = counters(&w, 1);
    assert_eq!(seen.sessions, limits.sessions as u64);
    assert_eq!(seen.sessions_full, 10_000 - limits.sessions as u64);
    // The others used the connection of the next hop; the only lost packets are those that waited for it at the start.
    assert!(received(&mut w, 2) as u64 + seen.queue_full == 10_000);
    assert!(seen.queue_full < 32, "{seen:?}");
    finish(w);
}

#[test]
fn a_refused_session_uses_the_connection_of_the_next_hop() {
    let mut two = client(2);
    two.limits.sessions = 1;
    let mut w = world(vec![server(), per_session(1), two]);
    for port in [1, 2] {
        offer(&mut w, 1, 2, udp((1, 2), port));
    }
    w.run_for(Duration::from_secs(1));
    assert_eq!(received(&mut w, 2), 2);
    assert_eq!(rows(&w, 1, "session").len(), 1);
    assert_eq!(counters(&w, 1).sessions_refused, 1);
    assert_eq!(counters(&w, 2).full, 1);
    // It is called again later.
    w.run_for(Duration::from_secs(6));
    offer(&mut w, 1, 2, udp((1, 2), 2));
    w.run_for(Duration::from_secs(1));
    assert_eq!(counters(&w, 1).sessions_refused, 2);
    assert_eq!(received(&mut w, 2), 1);
    finish(w);
}

/// A station of another make refuses the mark, and VC multiplexing.
#[test]
fn who_does_not_know_the_mark_is_called_without_it() {
    for mux in [false, true] {
        let mut one = per_session(1);
        one.mux = mux;
        let mut w = world(vec![server(), one, client(2)]);
        let bhli = Some(aerostat_wire::Bhli::IP_SESSION);
        for sap in [Sap { bhli, ..Sap::LLC }, Sap { bhli, ..Sap::IP }] {
            w.net.refuse(atm(2), Some(sap), Cause::INCOMPATIBLE, 9);
        }
        for port in [1, 2] {
            offer(&mut w, 1, 2, udp((1, 2), port));
            w.run_for(Duration::from_secs(1));
        }
        assert_eq!(received(&mut w, 2), 2, "mux {mux}");
        let sessions = rows(&w, 1, "session");
        assert!(sessions.iter().all(|row| row.encapsulation == "llc"));
        assert_eq!((sessions.len(), counters(&w, 1).sessions_refused), (2, 0));
        finish(w);
    }
}

#[test]
fn sessions_survive_the_death_and_the_silence_of_their_peer() {
    let mut w = world(vec![server(), per_session(1), client(2)]);
    offer(&mut w, 1, 2, udp((1, 2), 5));
    w.run_for(Duration::from_secs(1));
    received(&mut w, 2);
    // The peer dies and comes back: its connections are released, and the next packet opens another one.
    w.replace(2, Member::new(client(2)));
    w.run_for(Duration::from_secs(1));
    assert_eq!(rows(&w, 1, "session").len(), 0);
    start(&mut w, 2);
    w.run_for(Duration::from_secs(10));
    offer(&mut w, 1, 2, udp((1, 2), 5));
    w.run_for(Duration::from_secs(1));
    assert_eq!(received(&mut w, 2), 1);
    assert_eq!(rows(&w, 1, "session").len(), 1);
    // Without the server the peer confirms its address itself, on the connection of a session.
    w.replace(0, Member::new(server()));
    for minute in 0..30 {
        offer(&mut w, 1, 2, udp((1, 2), 5));
        w.run_for(Duration::from_secs(60));
        assert_eq!(received(&mut w, 2), 1, "minute {minute}");
    }
    finish(w);
}

/// A caller that claims the address of another gets none of its packets.
#[test]
fn nobody_draws_the_sessions_of_another() {
    let mut w = world(vec![server(), client(1), client(2), per_session(3)]);
    // 3 calls 1 with a packet that pretends to come from 2.
    offer(&mut w, 3, 1, udp((2, 1), 5));
    w.run_for(Duration::from_secs(1));
    received(&mut w, 1);
    assert_eq!(w.users[1].snapshot(w.now).sessions, (0, 1));
    offer(&mut w, 1, 2, packet((1, 2), UDP, (7, 5), (0, true)));
    w.run_for(Duration::from_secs(1));
    assert_eq!(received(&mut w, 2), 1);
    finish(w);
}
