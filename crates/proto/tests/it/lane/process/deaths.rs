//! Daemons that die at any time.

use super::*;

/// Joins, resolves, calls, is called, flushes and leaves, with a daemon that dies after its `n`th message.
fn dies_after(n: usize, delay: Duration) -> bool {
    let mut w = World::new(Duration::from_millis(1));
    w.relay = Some(relay);
    for node in [new_lecs(), new_les(), new_bus()] {
        w.add(User::Server(node));
    }
    for client in 0..2 {
        let config = LecConfig {
            tlvs: vec![tlv(client)],
            ..lec_config(client)
        };
        let mut split = Split::new(config, delay);
        split.dies_after = (client == 0).then_some(n);
        w.add(User::Split(Box::new(split)));
    }
    for who in 0..w.users.len() {
        begin(&mut w, who);
    }
    let mut died = false;
    for number in 0..60 {
        w.run_for(Duration::from_millis(10));
        if client(&w, LEC0).lecd.is_none() && !died {
            died = true;
            w.run_for(Duration::from_millis(200));
            with(&mut w, LEC0, Split::come);
        }
        transmit(&mut w, LEC0, LEC0 + 1, number);
        transmit(&mut w, LEC0 + 1, LEC0, number);
    }
    with(&mut w, LEC0, |m, _| m.dies_after = None);
    // A client whose daemon dies while the LES calls it can cost another client one try to join (C7 is 30 s).
    w.run_for(Duration::from_secs(60));
    assert_eq!(members(&w), 2, "{n}");
    for who in [LEC0, LEC0 + 1] {
        assert_eq!(client(&w, who).lec.state(), LecState::Operational, "{n}");
    }
    w.take_notes();
    for number in 100..110 {
        transmit(&mut w, LEC0, LEC0 + 1, number);
        transmit(&mut w, LEC0 + 1, LEC0, number);
        w.run_for(Duration::from_secs(1));
    }
    let notes = w.take_notes();
    let all: Vec<u32> = (100..110).collect();
    assert_eq!(arrived(&notes, LEC0), all, "{n}");
    assert_eq!(arrived(&notes, LEC0 + 1), all, "{n}");
    let shown = client(&w, LEC0).lec.snapshot();
    let row = shown.cache.iter().find(|row| row.mac == mac(2)).unwrap();
    assert!(row.vc.is_some(), "{n}: {row:?}");
    // Config direct is gone; one data direct connection, or two that crossed.
    assert!((5..=6).contains(&shown.connections.len()), "{n}: {shown:?}");
    end(w);
    died
}

#[test]
fn a_daemon_may_die_after_any_word() {
    // With a slow socket the daemon dies between other messages: the inputs arrive in another order.
    let deaths = (0..).take_while(|n| dies_after(*n, Duration::ZERO)).count();
    assert!(deaths > 60, "{deaths}");
    for n in (0..deaths).step_by(5) {
        dies_after(n, SLOW);
    }
}

#[test]
fn deaths_at_random_times_and_losses_never_wedge_the_elan() {
    for seed in 0..12 {
        let delay = Duration::from_millis(seed % 4);
        let mut w = split_world(3, delay);
        let mut random = Random::new(seed);
        let mut x = seed;
        w.net.loss = Some(Box::new(move |_| {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (x >> 33).is_multiple_of(10)
        }));
        for number in 0..400 {
            for (from, to) in [(0, 1), (1, 0), (2, 0), (1, 2)] {
                transmit(&mut w, LEC0 + from, LEC0 + to, number);
            }
            w.run_for(Duration::from_millis(random.below(60) as u64));
            let who = LEC0 + random.below(3);
            match (random.below(12), client(&w, who).lecd.is_some()) {
                (0, true) => with(&mut w, who, Split::kill),
                (0..=3, false) => with(&mut w, who, Split::come),
                _ => {}
            }
        }
        w.net.loss = None;
        for who in LEC0..LEC0 + 3 {
            if client(&w, who).lecd.is_none() {
                with(&mut w, who, Split::come);
            }
        }
        w.run_for(Duration::from_secs(90));
        assert_eq!(members(&w), 3, "seed {seed}");
        w.take_notes();
        transmit(&mut w, LEC0 + 2, LEC0, 9999);
        w.run_for(Duration::from_secs(1));
        assert_eq!(arrived(&w.take_notes(), LEC0), [9999], "seed {seed}");
        for who in LEC0..LEC0 + 3 {
            let refused = client(&w, who).lec.snapshot().seat.refused;
            assert_eq!(refused, 0, "seed {seed}: an honest daemon was refused");
        }
        end(w);
    }
}
