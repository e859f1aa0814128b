//! Losses one by one, and what they cost.

use super::*;

/// A message of 20 packets of which the packets with these places (first transmissions) are lost.
fn twenty(profile: Profile, lost: &[u64]) -> Pair {
    let mut pair = Pair::new(Params {
        mtu: 104,
        ..params(profile)
    });
    pair.send(0, message(2000, 1));
    let mut gone = lost.to_vec();
    pair.run_all(|to, _, sdu| {
        let Ok(Pdu::Data { seq, .. }) = Pdu::decode(sdu) else {
            return false;
        };
        let place = gone.iter().position(|place| *place == u64::from(seq.get()));
        place
            .filter(|_| to == 1)
            .map(|at| gone.remove(at))
            .is_some()
    });
    assert_eq!(pair.got[1], [message(2000, 1)]);
    pair
}

#[test]
fn a_gap_is_mended_by_a_nak_and_the_last_packet_by_a_timer() {
    for profile in BOTH {
        for lost in 0..20 {
            let pair = twenty(profile, &[lost]);
            let (here, there) = (pair.ends[0].counters(), pair.ends[1].counters());
            assert_eq!(here.packets_repeated, 1, "{profile:?} {lost}");
            let by_timer = lost == 19;
            assert_eq!(here.timeouts, u64::from(by_timer), "{profile:?} {lost}");
            assert_eq!(there.naks_sent, u64::from(!by_timer), "{profile:?} {lost}");
            // A NAK costs no more than some round trips, a timer half a second or what was measured.
            let most = match (by_timer, profile) {
                (false, _) => ms(2),
                (true, Profile::Report) => ms(502),
                (true, Profile::Adaptive) => ms(20),
            };
            assert!(
                pair.now <= Instant::ZERO + most,
                "{profile:?} {lost} {}",
                pair.now
            );
        }
    }
}

#[test]
fn lost_naks_and_lost_repetitions_cost_the_report_its_timer_and_the_other_profile_little() {
    // Packet 5 is lost twice: its repetition as well.
    let report = twenty(Profile::Report, &[5, 5]);
    assert!(report.now >= Instant::from_millis(500), "{}", report.now);
    let adaptive = twenty(Profile::Adaptive, &[5, 5]);
    assert!(adaptive.now < Instant::from_millis(250), "{}", adaptive.now);
    assert_eq!(adaptive.got, report.got);
}

#[test]
fn a_lost_tail_of_the_adaptive_profile_comes_back_in_one_timer() {
    let pair = twenty(Profile::Adaptive, &[15, 16, 17, 18, 19]);
    let counters = pair.ends[0].counters();
    assert_eq!((counters.timeouts, counters.packets_repeated), (1, 5));
    assert!(pair.now < Instant::from_millis(30), "{}", pair.now);
}

#[test]
fn lost_acks_of_the_report_are_repeated_and_make_duplicates() {
    let mut pair = Pair::new(params(Profile::Report));
    pair.send(0, message(20_000, 1));
    pair.run_all(|to, number, _| to == 0 && number < 2);
    let (here, there) = (pair.ends[0].counters(), pair.ends[1].counters());
    assert_eq!((here.packets_repeated, there.duplicates), (2, 2));
    assert_eq!(pair.got[1], [message(20_000, 1)]);
    assert_eq!(there.acks_sent, 5);
}

#[test]
fn a_lost_cumulative_ack_is_made_good_by_the_next_one() {
    let mut pair = Pair::new(params(Profile::Adaptive));
    pair.send(0, message(100_000, 1));
    pair.run_all(|to, number, _| to == 0 && number < 3);
    assert_eq!(pair.ends[0].counters().packets_repeated, 0);
    assert_eq!(pair.got[1], [message(100_000, 1)]);
}

#[test]
fn a_peer_that_is_silent_ends_the_connection_after_ten_retransmissions() {
    for (profile, seconds) in [(Profile::Report, 5.5), (Profile::Adaptive, 303.5)] {
        let mut pair = Pair::new(params(profile));
        pair.send(0, message(5, 1));
        pair.run_all(|_, _, _| true);
        let failed = Event::Failed(Failure::Retransmissions(10));
        assert_eq!(pair.events[0], [failed]);
        assert!(
            pair.now.as_secs_f64() <= seconds,
            "{profile:?} {}",
            pair.now
        );
        let refused = pair.ends[0].handle_input(Input::Send(vec![1]), pair.now);
        assert_eq!(refused, Err(Refusal::Closed));
    }
}

#[test]
fn a_close_waits_for_acknowledgements_and_not_for_ever() {
    let mut pair = Pair::new(Params {
        retransmissions: 1000,
        ..params(Profile::Report)
    });
    pair.send(0, message(5, 1));
    pair.close(0);
    pair.run_all(|_, _, _| true);
    assert_eq!(pair.events[0], [Event::Failed(Failure::Close)]);
    assert_eq!(pair.now, Instant::from_secs(5));
}

/// A peer that is slow and not dead: five packets in a window of one, each acknowledged 4.9 s after it was sent.
#[test]
fn a_close_takes_as_long_as_new_acknowledgements_come() {
    let mut end = Atp::new(Params {
        retransmissions: 1000,
        max_window: 1,
        ..params(Profile::Report)
    });
    let taken = end.handle_input(Input::Send(message(5 * 9176, 1)), Instant::ZERO);
    assert_eq!(taken, Ok(()));
    assert_eq!(end.handle_input(Input::Close, Instant::ZERO), Ok(()));
    let mut out = settle(&mut end, Instant::ZERO);
    for seq in 0..5 {
        let ack = Instant::from_millis(4900 * (u64::from(seq) + 1));
        while let Some(at) = end.poll_timeout().filter(|at| *at < ack) {
            settle(&mut end, at);
        }
        let sdu = Pdu::Ack(Seq30::new(seq)).encode();
        assert_eq!(end.handle_input(Input::Sdu(&sdu), ack), Ok(()));
        out = settle(&mut end, ack);
    }
    assert_eq!(out, [Event::Drained, Event::Closed].map(Output::Event));
}

/// The last ACK is lost, and the end that sent it has closed: it answers the repetition, so both ends agree.
#[test]
fn a_closed_end_acknowledges_what_the_peer_repeats() {
    for profile in BOTH {
        let mut pair = Pair::new(params(profile));
        pair.send(0, message(5, 1));
        pair.run(Instant::from_millis(1), |to, _, _| to == 0);
        pair.close(1);
        pair.run_all(|_, _, _| false);
        assert_eq!(pair.events[1], [Event::Readable, Event::Closed]);
        assert_eq!(pair.events[0], [Event::Drained], "{profile:?}");
        assert_eq!(pair.ends[1].counters().late, 1);
        // New data is not acknowledged: no program will read it.
        pair.send(0, message(5, 2));
        pair.run_all(|_, _, _| false);
        let failed = Event::Failed(Failure::Retransmissions(10));
        assert_eq!(pair.events[0].last(), Some(&failed), "{profile:?}");
    }
}

#[test]
fn a_doubled_timer_stays_until_a_round_trip_is_measured() {
    let mut end = Atp::new(Params {
        max_window: 1,
        ..params(Profile::Adaptive)
    });
    let ack = |end: &mut Atp, seq, now| {
        let sdu = Pdu::Ack(Seq30::new(seq)).encode();
        assert_eq!(end.handle_input(Input::Sdu(&sdu), now), Ok(()));
        settle(end, now);
    };
    let taken = end.handle_input(Input::Send(message(3 * 9176, 1)), Instant::ZERO);
    assert_eq!(taken, Ok(()));
    settle(&mut end, Instant::ZERO);
    settle(&mut end, Instant::from_millis(500));
    // The answer to a packet that was sent twice tells nothing: the next packet has the doubled timer.
    ack(&mut end, 0, Instant::from_millis(600));
    assert_eq!(end.poll_timeout(), Some(Instant::from_millis(1600)));
    // 30 ms: 30 + 4 × 15 + 5 ms.
    ack(&mut end, 1, Instant::from_millis(630));
    assert_eq!(end.poll_timeout(), Some(Instant::from_millis(725)));
}

#[test]
fn what_was_complete_can_be_read_after_the_end() {
    let mut pair = Pair::new(params(Profile::Report));
    pair.reads = false;
    pair.send(0, message(5, 1));
    // Of the second message only the first packet arrives.
    pair.send(0, message(20_000, 2));
    pair.run(Instant::from_millis(2), |to, number, _| {
        to == 1 && number > 1
    });
    for end in 0..2 {
        let taken = pair.ends[end].handle_input(Input::Released, pair.now);
        assert_eq!(taken, Ok(()));
    }
    pair.run_all(|_, _, _| false);
    assert_eq!(pair.ends[1].take(), Some(message(5, 1)));
    assert_eq!(pair.ends[1].take(), None);
    assert_eq!(pair.ends[1].snapshot().kept, 0);
    assert_eq!(pair.events[0], [Event::Failed(Failure::Released)]);
    assert_eq!(pair.events[1], [Event::Readable, Event::Closed]);
}

/// Loss of one cell in 10³ loses 17 % of packets of 192 cells. The window stays, because nothing waits in queues.
#[test]
fn damage_does_not_shrink_the_adaptive_window() {
    let mut pair = Pair::new(params(Profile::Adaptive));
    pair.delay = ms(2);
    pair.send(0, message(8_000_000, 1));
    let mut state = 1_u32;
    pair.run_all(|to, _, _| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        to == 1 && state >> 16 < 11_400
    });
    assert!(pair.got[1] == [message(8_000_000, 1)]);
    // The octets alone take 0.48 s, with their repetitions 0.58 s; gaps hold the window back for round trips.
    assert!(pair.now < Instant::from_millis(1500), "{}", pair.now);
    let window = pair.ends[0].snapshot().window_eighths;
    assert!(window >= 80, "{window} eighths");
}
