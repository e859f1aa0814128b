//! Sizes of packets and SDUs: what both ends agree on, fragments, and the message that names the MTU.

use super::*;
use aerostat_wire::fragments::needs_fragments;
use aerostat_wire::ipv4::Ipv4View;

/// A UDP packet of this length from member `from` to member `to`.
fn datagram((from, to): (usize, usize), length: u16, whole: bool) -> Vec<u8> {
    let [high, low] = length.to_be_bytes();
    let mut packet = vec![
        0x45,
        0,
        high,
        low,
        0x12,
        0x34,
        u8::from(whole) << 6,
        0,
        64,
        17,
        0,
        0,
    ];
    packet.extend(ip(from).octets());
    packet.extend(ip(to).octets());
    packet.resize(length.into(), 7);
    packet
}

fn offer(w: &mut Net, from: usize, to: usize, packet: Vec<u8>) {
    w.with(from, |clip, now| {
        let next_hop = ip(to);
        clip.handle_input(Input::Send { next_hop, packet }, now)
            .unwrap();
    });
}

/// Packets that user `who` got since the last call.
fn packets(w: &mut Net, who: usize) -> Vec<Vec<u8>> {
    let notes = w.take_notes().into_iter();
    let packets = notes.filter_map(|(_, from, note)| match note {
        Output::Deliver { packet, .. } if from == who => Some(packet),
        _ => None,
    });
    packets.collect()
}

fn with_mtu(n: usize, mtu: u16) -> Config {
    Config { mtu, ..client(n) }
}

/// The MTU of the connection between two members, as each of them sees it.
fn agreed(w: &Net, who: usize, peer: usize) -> u16 {
    let conns = w.users[who].snapshot(w.now).conns;
    let found = conns.iter().find(|row| row.peer == Some(atm(peer)));
    found.expect("a connection").mtu
}

#[test]
fn the_smaller_interface_decides_whoever_calls() {
    for (first, second) in [(9180, 1500), (1500, 9180)] {
        let mut w = world(vec![server(), with_mtu(1, first), with_mtu(2, second)]);
        offer(&mut w, 1, 2, datagram((1, 2), 1500, true));
        w.run_for(Duration::from_secs(1));
        assert_eq!(packets(&mut w, 2), [datagram((1, 2), 1500, true)]);
        assert_eq!((agreed(&w, 1, 2), agreed(&w, 2, 1)), (1500, 1500));
        let counters = |who: usize| w.users[who].snapshot(w.now).counters;
        let lowered = |who: usize| (counters(who).mtu_lowered, counters(who).sizes_lowered);
        // The member with the larger interface sends smaller packets; the called one answers with less if it takes
        // less.
        let told = if first > second {
            [(1, 0), (0, 1)]
        } else {
            [(0, 0), (1, 0)]
        };
        assert_eq!([lowered(1), lowered(2)], told, "{first} and {second}");
        finish(w);
    }
}

#[test]
fn one_octet_more_is_told_by_icmp_or_cut() {
    let mut w = world(vec![server(), with_mtu(1, 9180), with_mtu(2, 1500)]);
    offer(&mut w, 1, 2, datagram((1, 2), 100, true));
    w.run_for(Duration::from_secs(1));
    w.take_notes();
    offer(&mut w, 1, 2, datagram((1, 2), 1501, true));
    w.run_for(Duration::from_millis(100));
    let told = packets(&mut w, 1);
    let [told] = &told[..] else {
        panic!("{told:?}");
    };
    let view = Ipv4View::new(told).unwrap();
    assert_eq!((view.source(), view.destination()), (ip(2), ip(1)));
    assert_eq!(
        needs_fragments(told, |own| own == ip(1)),
        Some((ip(2), 1500))
    );
    // Without DF the packet arrives as fragments, each of which fits.
    offer(&mut w, 1, 2, datagram((1, 2), 9180, false));
    w.run_for(Duration::from_millis(100));
    let parts = packets(&mut w, 2);
    assert!(parts.iter().all(|part| part.len() <= 1500));
    let octets: usize = parts.iter().map(|part| part.len() - 20).sum();
    assert_eq!((parts.len(), octets), (7, 9160));
    let counters = w.users[1].snapshot(w.now).counters;
    assert_eq!(
        (counters.too_big, counters.fragments, counters.sent),
        (1, 7, 2)
    );
    finish(w);
}

#[test]
fn sizes_that_ip_cannot_use_are_refused() {
    let mut w = subnet(1);
    let outsider = w.add(Member::new(Config {
        mtu: 60,
        servers: Vec::new(),
        ..client(7)
    }));
    start(&mut w, outsider);
    let hops = NextHops {
        fixed: vec![(ip(1), atm(1))],
        ..NextHops::default()
    };
    w.with(outsider, |clip, now| {
        clip.handle_input(Input::NextHops(hops), now).unwrap();
    });
    offer(&mut w, outsider, 1, datagram((7, 1), 60, false));
    w.run_for(Duration::from_secs(1));
    assert_eq!(w.users[outsider].snapshot(w.now).counters.calls_failed, 1);
    assert_eq!(
        w.users[1].snapshot(w.now).conns.len(),
        1,
        "that to the server"
    );
    finish(w);
}
