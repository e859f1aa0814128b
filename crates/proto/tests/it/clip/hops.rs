//! Next hops that are known beforehand: default next hops, changes while the member runs, questions.

use super::*;

fn replace(w: &mut Net, who: usize, hops: NextHops) {
    w.with(who, |clip, now| {
        clip.handle_input(Input::NextHops(hops), now).unwrap();
    });
}

fn by_default(n: usize, prefix_len: u8) -> DefaultHop {
    DefaultHop {
        network: Ipv4Addr::UNSPECIFIED,
        prefix_len,
        address: atm(n),
        qos: None,
    }
}

fn ask(w: &mut Net, who: usize, token: u64, ip: Ipv4Addr) {
    w.with(who, |clip, now| {
        clip.handle_input(Input::Resolve { token, ip }, now)
            .unwrap();
    });
}

fn answers(w: &mut Net, who: usize) -> Vec<(u64, Resolved)> {
    let notes = w.take_notes().into_iter();
    let answers = notes.filter_map(|(_, from, note)| match note {
        Output::Resolved { token, answer } if from == who => Some((token, answer)),
        _ => None,
    });
    answers.collect()
}

#[test]
fn the_default_router_first_and_a_better_way_later() {
    let mut one = client(1);
    one.hops.defaults.push(by_default(3, 0));
    let mut w = world(vec![server(), one, client(2), client(3)]);
    // The server is slow: the first packets go over the default next hop.
    let mut lost = false;
    w.net.loss = Some(Box::new(move |sdu| {
        let asks = sdu.get(6..8) == Some(&[8, 6]);
        asks && !core::mem::replace(&mut lost, true)
    }));
    send(&mut w, 1, ip(2), 1);
    w.run_for(Duration::from_millis(20));
    let got_by_3 = got(&mut w, 3);
    assert_eq!(got_by_3, [1]);
    w.run_for(Duration::from_secs(3));
    assert_eq!(entry(&w, 1, ip(2)).unwrap().state, "known");
    send(&mut w, 1, ip(2), 2);
    w.run_for(Duration::from_millis(50));
    assert_eq!(got(&mut w, 2), [2], "directly");
    assert_eq!(w.users[1].snapshot(w.now).counters.by_default, 1);
    // An address without an owner stays with the default next hop, also after the server has said so.
    for number in [3, 4] {
        send(&mut w, 1, ip(99), number);
        w.run_for(Duration::from_secs(1));
    }
    assert_eq!(got(&mut w, 3), [3, 4]);
    let row = entry(&w, 1, Ipv4Addr::UNSPECIFIED).unwrap();
    assert_eq!((row.state, row.prefix_len), ("default", 0));
    finish(w);
}

#[test]
fn the_longest_prefix_counts_and_needs_no_server() {
    let mut one = Config::new(atm(1), ip(1));
    one.hops.defaults = vec![by_default(2, 0), by_default(3, 8)];
    one.hops.defaults[1].network = Ipv4Addr::new(10, 0, 0, 0);
    let plain = |n| Config::new(atm(n), ip(n));
    let mut w = world(vec![one, plain(2), plain(3)]);
    send(&mut w, 0, Ipv4Addr::new(10, 77, 0, 1), 1);
    send(&mut w, 0, Ipv4Addr::new(11, 77, 0, 1), 2);
    w.run_for(Duration::from_secs(1));
    let notes = w.take_notes().into_iter();
    let arrived: Vec<_> = notes
        .filter_map(|(_, who, note)| match note {
            Output::Deliver { packet, .. } => Some((who, packet[1])),
            _ => None,
        })
        .collect();
    assert_eq!(arrived.len(), 2, "{arrived:?}");
    assert!(arrived.contains(&(2, 1)) && arrived.contains(&(1, 2)));
    finish(w);
}

#[test]
fn next_hops_change_while_packets_flow() {
    let mut one = client(1);
    one.hops.fixed = vec![(ip(7), atm(2))];
    one.hops.qos = vec![(ip(7), Qos::cbr(100, 0))];
    let mut w = world(vec![server(), one, client(2), client(3)]);
    send(&mut w, 1, ip(7), 1);
    w.run_for(Duration::from_secs(1));
    assert_eq!(got(&mut w, 2), [1]);
    let mut hops = w.users[1].config().hops.clone();
    hops.fixed = vec![(ip(7), atm(3))];
    replace(&mut w, 1, hops.clone());
    send(&mut w, 1, ip(7), 2);
    w.run_for(Duration::from_secs(1));
    assert_eq!(got(&mut w, 3), [2], "the other station");
    let contracts = |w: &Net| {
        let conns = w.users[1].snapshot(w.now).conns.into_iter();
        let peers = conns.filter(|row| row.role == "peer");
        peers
            .map(|row| (row.peer, row.qos.tx.max_pcr))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        contracts(&w),
        [(Some(atm(3)), Some(100))],
        "the old one is released"
    );
    // Another contract, and then nothing: the server is asked as for other addresses.
    hops.qos = vec![(ip(7), Qos::cbr(200, 0))];
    replace(&mut w, 1, hops);
    send(&mut w, 1, ip(7), 3);
    w.run_for(Duration::from_secs(1));
    assert_eq!(contracts(&w), [(Some(atm(3)), Some(200))]);
    replace(&mut w, 1, NextHops::default());
    send(&mut w, 1, ip(7), 4);
    w.run_for(Duration::from_secs(1));
    assert_eq!(entry(&w, 1, ip(7)).unwrap().state, "unknown");
    let counters = w.users[1].snapshot(w.now).counters;
    assert_eq!((counters.maps, counters.maps_wrong), (3, 0));
    w.take_notes();
    finish(w);
}

/// An address without an owner.
fn other(n: u32) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(ip(0)) + 0x1_0000 + n)
}

#[test]
fn questions_get_answers() {
    let mut one = client(1);
    one.hops.fixed = vec![(ip(7), atm(9))];
    let mut w = world(vec![server(), one, client(2)]);
    for (token, who) in [(1, 2), (2, 99), (3, 7), (4, 1), (5, 2)] {
        ask(&mut w, 1, token, ip(who));
    }
    w.run_for(Duration::from_secs(1));
    let mut told = answers(&mut w, 1);
    told.sort_by_key(|(token, _)| *token);
    let known = |n| Resolved::Known(atm(n));
    let nobody = Resolved::Unknown(Unresolved::Nak);
    let wanted = [known(2), nobody, known(9), known(1), known(2)];
    assert_eq!(
        told,
        [1, 2, 3, 4, 5].into_iter().zip(wanted).collect::<Vec<_>>()
    );
    // No answer of the server, too many questions, and the end of the member: each is answered.
    w.net.loss = Some(Box::new(|sdu| sdu.get(6..8) == Some(&[8, 6])));
    for token in 0..70 {
        ask(&mut w, 1, token, ip(50));
    }
    w.run_for(Duration::from_millis(10));
    assert_eq!(answers(&mut w, 1).len(), 6, "64 wait");
    w.run_for(Duration::from_secs(30));
    let told = answers(&mut w, 1);
    let late = Resolved::Unknown(Unresolved::Unanswered);
    assert_eq!(told.iter().filter(|(_, told)| *told == late).count(), 64);
    // Open questions fill half of the table; packets have the rest.
    let half = Limits::default().entries as u32 / 2;
    for n in 0..half + 3 {
        ask(&mut w, 1, n.into(), other(n));
    }
    w.run_for(Duration::from_millis(10));
    let refused = (half..half + 3).map(|n| (n.into(), Resolved::Full));
    assert_eq!(answers(&mut w, 1), refused.collect::<Vec<_>>());
    send(&mut w, 1, other(half), 1);
    assert_eq!(entry(&w, 1, other(half)).unwrap().state, "resolving");
    w.run_for(Duration::from_secs(30));
    answers(&mut w, 1);
    ask(&mut w, 1, 1, ip(51));
    w.with(1, |clip, now| clip.handle_input(Input::Stop, now).unwrap());
    let stopped = Resolved::Unknown(Unresolved::Stopped);
    assert_eq!(answers(&mut w, 1), [(1, stopped)]);
    w.net.loss = None;
    finish(w);
}

/// A program that asks for addresses without an owner does not take the table from others.
#[test]
fn negative_answers_give_way_to_questions() {
    let mut w = subnet(3);
    let half = Limits::default().entries / 2;
    for turn in 0..50 {
        for n in 0..200 {
            ask(&mut w, 1, 0, other(turn * 200 + n));
        }
        ask(&mut w, 1, 1, ip(2));
        w.run_for(Duration::from_millis(10));
        let told = answers(&mut w, 1);
        let nobody = |told: &(u64, Resolved)| told.1 == Resolved::Unknown(Unresolved::Nak);
        assert_eq!(told.iter().filter(|told| nobody(told)).count(), 200);
        assert!(told.contains(&(1, Resolved::Known(atm(2)))), "turn {turn}");
        assert!(w.users[1].snapshot(w.now).entries.len() <= half);
    }
    // The packets of the host have their half meanwhile.
    send(&mut w, 1, ip(3), 7);
    w.run_for(Duration::from_secs(1));
    assert_eq!(got(&mut w, 3), [7]);
    w.run_for(Duration::from_secs(10));
    assert!(entry(&w, 1, other(9999)).is_none());
    finish(w);
}

#[test]
fn the_oldest_answer_that_no_packet_uses_gives_way_first() {
    let mut one = client(1);
    one.limits.entries = 8;
    let mut all = vec![server(), one];
    all.extend((2..=9).map(client));
    let mut w = world(all);
    let pause = Duration::from_millis(100);
    // Packets use this negative answer, so it is the last one that gives way; the server has an entry, too.
    send(&mut w, 1, other(99), 1);
    w.run_for(pause);
    for n in 0..6 {
        ask(&mut w, 1, 0, other(n));
        w.run_for(pause);
        let rows = [0, 1, 2, 3, 4, 5].map(|n| entry(&w, 1, other(n)).is_some());
        let young = [0, 1, 2, 3, 4, 5].map(|old| old <= n && old + 2 > n);
        assert_eq!(rows, young, "{n}");
    }
    assert_eq!(entry(&w, 1, other(99)).unwrap().state, "unknown");
    answers(&mut w, 1);
    // So do addresses that were only asked for, but those of packets stay.
    send(&mut w, 1, ip(2), 2);
    w.run_for(pause);
    for n in 3..=9 {
        ask(&mut w, 1, n as u64, ip(n));
        w.run_for(pause);
        let told = answers(&mut w, 1);
        assert_eq!(told, [(n as u64, Resolved::Known(atm(n)))]);
    }
    assert!(entry(&w, 1, ip(2)).is_some() && entry(&w, 1, ip(9)).is_some());
    assert!(w.users[1].snapshot(w.now).entries.len() <= 5);
    // Packets fill the table once the negative answers have gone, and there is no room for a question.
    w.run_for(Duration::from_secs(6));
    w.net.loss = Some(Box::new(|sdu| sdu.get(6..8) == Some(&[8, 6])));
    for n in 10..20 {
        send(&mut w, 1, other(n), 3);
    }
    ask(&mut w, 1, 1, ip(3));
    let told = answers(&mut w, 1);
    assert_eq!(told, [(1, Resolved::NoRoom)]);
    w.net.loss = None;
    w.take_notes();
    finish(w);
}

/// A static entry of the server about a member is wrong: the member is told whose address its own is, and does not get
/// ready. It does when the entry has gone.
#[test]
fn a_next_hop_that_is_wrong_at_the_server_is_named() {
    let mut first = server();
    first.hops.fixed = vec![(ip(2), atm(9))];
    let mut w = world(vec![first, client(1), client(2)]);
    w.run_for(Duration::from_secs(2));
    let seen = w.users[2].snapshot(w.now);
    assert_eq!((seen.ready, seen.owner), (false, Some(atm(9))));
    assert_eq!(w.users[1].snapshot(w.now).owner, None);
    assert!(w.users[0].snapshot(w.now).counters.duplicates > 0);
    replace(&mut w, 0, NextHops::default());
    w.run_for(Duration::from_secs(120));
    let seen = w.users[2].snapshot(w.now);
    assert_eq!((seen.ready, seen.owner), (true, None));
    finish(w);
}
