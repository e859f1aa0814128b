//! Peers that lie, flood and do not read.

use super::*;

fn data(seq: u32, last: bool, octets: &[u8]) -> Vec<u8> {
    let seq = Seq30::new(seq);
    Pdu::Data { seq, last, octets }.encode()
}

fn give(end: &mut Atp, sdu: &[u8], now: Instant) -> Vec<Output> {
    assert_eq!(end.handle_input(Input::Sdu(sdu), now), Ok(()));
    settle(end, now)
}

#[test]
fn what_is_no_pdu_is_counted() {
    let mut end = Atp::new(Params {
        mtu: 10,
        ..Params::DEFAULT
    });
    for sdu in [&[][..], &[0; 3], &[0xc0, 0, 0, 0], &[0; 11]] {
        assert_eq!(give(&mut end, sdu, Instant::ZERO), []);
    }
    assert_eq!(end.counters().malformed, 4);
    let ack = Pdu::Ack(Seq30::new(7)).encode();
    let nak = Pdu::Nak(Seq30::new(7)).encode();
    assert_eq!(give(&mut end, &ack, Instant::ZERO), []);
    assert_eq!(give(&mut end, &nak, Instant::ZERO), []);
    let counters = end.counters();
    assert_eq!((counters.acks_ignored, counters.naks_ignored), (1, 1));
}

#[test]
fn a_packet_far_ahead_asks_for_a_bounded_number_of_packets() {
    for profile in BOTH {
        let mut end = Atp::new(params(profile));
        let out = give(&mut end, &data(MAX_WINDOW - 1, false, &[1]), Instant::ZERO);
        // An ACK and 64 NAKs.
        assert_eq!(out.len(), 65, "{profile:?}");
        assert_eq!(
            give(&mut end, &data(MAX_WINDOW, false, &[1]), Instant::ZERO),
            []
        );
        assert_eq!(end.counters().out_of_window, 1);
        assert_eq!(end.snapshot().asked, 64);
    }
}

#[test]
fn a_gap_that_nobody_fills_is_asked_for_ten_times_and_then_left() {
    let mut end = Atp::new(params(Profile::Adaptive));
    give(&mut end, &data(MAX_WINDOW - 1, false, &[1]), Instant::ZERO);
    let mut calls = 0;
    while let Some(at) = end.poll_timeout() {
        settle(&mut end, at);
        calls += 1;
        assert!(calls < 100, "timers without end");
    }
    let counters = *end.counters();
    assert_eq!(counters.naks_sent, 64 * 10);
    assert!(counters.steps < 64 * 12, "{} steps", counters.steps);
    // Each one that comes makes place for the next.
    for seq in 0..10 {
        let out = give(&mut end, &data(seq, false, &[1]), Instant::from_secs(100));
        let nak = Pdu::Nak(Seq30::new(64 + seq)).encode();
        assert_eq!(out.last(), Some(&Output::Sdu(nak)));
    }
    assert_eq!(end.snapshot().asked, 64);
}

/// Each second packet opens a gap of its own.
#[test]
fn many_gaps_cost_no_more_than_their_packets() {
    for profile in BOTH {
        let mut end = Atp::new(params(profile));
        let mut now = Instant::ZERO;
        for seq in 0..MAX_WINDOW / 2 {
            now += Duration::from_nanos(100);
            give(&mut end, &data(2 * seq + 1, false, &[1]), now);
        }
        let counters = end.counters();
        assert_eq!(counters.packets_received, u64::from(MAX_WINDOW) / 2);
        assert_eq!(counters.naks_sent, 64, "{profile:?}");
        // 64 NAKs, and the numbers up to the 64th gap.
        assert!(counters.steps < 256, "{profile:?} {} steps", counters.steps);
        // Now they are filled: each number is looked at once for a NAK, and once when it is in its turn.
        for seq in 0..MAX_WINDOW / 2 {
            give(&mut end, &data(2 * seq, false, &[1]), now);
        }
        let steps = end.counters().steps;
        assert!(
            steps < 3 * u64::from(MAX_WINDOW),
            "{profile:?} {steps} steps"
        );
    }
}

/// Packets of one octet: an ACK, or timers that were started together, let go of the largest window at once.
#[test]
fn the_largest_window_is_within_the_law_of_bounded_output() {
    let window = MAX_WINDOW as usize;
    for profile in BOTH {
        let mut end = Atp::new(Params {
            mtu: 5,
            initial_window: MAX_WINDOW,
            max_window: MAX_WINDOW,
            retransmissions: 1,
            ..params(profile)
        });
        let taken = end.handle_input(Input::Send(vec![0; 3 * window]), Instant::ZERO);
        assert_eq!(taken, Ok(()));
        assert_eq!(settle(&mut end, Instant::ZERO).len(), window);
        if profile == Profile::Report {
            assert_eq!(settle(&mut end, Instant::from_millis(500)).len(), window);
        } else {
            let ack = Pdu::Ack(Seq30::new(MAX_WINDOW - 1)).encode();
            assert_eq!(give(&mut end, &ack, Instant::from_millis(1)).len(), window);
        }
    }
}

#[test]
fn naks_are_answered_for_as_long_as_the_peer_asks() {
    let mut pair = Pair::new(params(Profile::Report));
    pair.send(0, message(5, 1));
    settle(&mut pair.ends[0], Instant::ZERO);
    let nak = Pdu::Nak(Seq30::new(0)).encode();
    for times in 1..=30 {
        let now = Instant::from_millis(100 * times);
        assert_eq!(give(&mut pair.ends[0], &nak, now).len(), 1);
    }
    let ack = Pdu::Ack(Seq30::new(0)).encode();
    let out = give(&mut pair.ends[0], &ack, Instant::from_millis(3001));
    assert_eq!(out, [Output::Event(Event::Drained)]);
}

#[test]
fn messages_that_nobody_reads_are_dropped_without_an_answer_at_the_limit() {
    let mut end = Atp::new(Params {
        receive_limit: Octets(64 << 10),
        ..params(Profile::Report)
    });
    let mut kept = 0;
    for seq in 0..5000 {
        let octets = message(30, 1);
        let out = give(&mut end, &data(seq, true, &octets), Instant::ZERO);
        match out.is_empty() {
            true => assert!(end.counters().no_room > 0),
            false => kept += 1,
        }
        assert!(end.snapshot().kept <= 64 << 10);
    }
    // Each counts 64 octets more.
    assert_eq!(kept, (64 << 10) / 94);
    assert!(end.snapshot().kept > (64 << 10) - 200);
    // A message that is read makes room again.
    assert!(end.take().is_some() && end.take().is_some());
    let out = give(&mut end, &data(kept, true, &[]), Instant::ZERO);
    assert_eq!(out.len(), 2, "an ACK and the news");
}

#[test]
fn packets_behind_a_gap_count_as_well() {
    let mut end = Atp::new(Params {
        receive_limit: Octets(64 << 10),
        ..params(Profile::Report)
    });
    for seq in 1..2000 {
        give(&mut end, &data(seq, false, &[1; 9000]), Instant::ZERO);
        assert!(end.snapshot().kept <= 64 << 10);
    }
    assert_eq!(end.counters().packets_received, 7);
    // The packet that all of them wait for nevertheless finds room: only it leads to a message that can be read.
    let out = give(&mut end, &data(0, false, &[1; 9000]), Instant::ZERO);
    assert_eq!(out, [Output::Sdu(Pdu::Ack(Seq30::new(0)).encode())]);
    let out = give(&mut end, &data(8, true, &[1; 9000]), Instant::ZERO);
    assert_eq!(out.last(), Some(&Output::Event(Event::Readable)));
    assert_eq!(end.take(), Some(vec![1; 81_000]));
}

/// A message of 1500 octets at a limit of 1024, whose first packet comes last: what is behind the limit is no message.
#[test]
fn a_message_that_was_cut_is_not_given() {
    for profile in BOTH {
        let mut end = Atp::new(Params {
            max_message: Octets(1 << 10),
            ..params(profile)
        });
        let rest = [
            data(1, false, &[1; 500]),
            data(2, false, &[1; 500]),
            data(3, false, &[1; 500]),
            data(4, true, &[1; 10]),
            data(5, true, &[2; 10]),
        ];
        for sdu in &rest {
            give(&mut end, sdu, Instant::ZERO);
        }
        let out = give(&mut end, &data(0, true, &[0; 10]), Instant::ZERO);
        let failed = Event::Failed(Failure::TooLong(1 << 10));
        assert_eq!(out, [Event::Readable, failed].map(Output::Event));
        assert_eq!(end.take(), Some(vec![0; 10]));
        assert_eq!((end.take(), end.snapshot().kept), (None, 0));
    }
}

#[test]
fn a_message_without_an_end_fails_at_its_limit() {
    let mut end = Atp::new(Params {
        max_message: Octets(1 << 20),
        ..params(Profile::Report)
    });
    for seq in 0..115 {
        give(&mut end, &data(seq, false, &[0; 9040]), Instant::ZERO);
    }
    let failed = Output::Event(Event::Failed(Failure::TooLong(1 << 20)));
    assert_eq!(
        give(&mut end, &data(115, false, &[0; 9040]), Instant::ZERO),
        [failed]
    );
    assert_eq!(end.snapshot().kept, 0);
    assert_eq!(
        give(&mut end, &data(116, false, &[0; 9040]), Instant::ZERO),
        []
    );
    assert_eq!(end.counters().late, 1);
}

#[test]
fn what_waits_for_transmission_has_a_limit_that_is_told() {
    let mut end = Atp::new(Params {
        send_limit: Octets(64 << 10),
        max_message: Octets(1 << 10),
        ..Params::DEFAULT
    });
    let long = end.handle_input(Input::Send(vec![0; 1025]), Instant::ZERO);
    let (octets, limit) = (1025, 1024);
    assert_eq!(long, Err(Refusal::TooLong { octets, limit }));
    let text = long.unwrap_err().to_string();
    assert_eq!(text, "a message of 1025 octets, and 1024 is the limit");
    // The window of ten packets is sent, and 60 messages of 1024 octets and 64 more wait.
    for _ in 0..70 {
        let taken = end.handle_input(Input::Send(vec![0; 1024]), Instant::ZERO);
        assert_eq!(taken, Ok(()));
    }
    let full = end.handle_input(Input::Send(vec![0; 200]), Instant::ZERO);
    let (waiting, limit) = (60 * 1088, 64 << 10);
    assert_eq!(full, Err(Refusal::Full { waiting, limit }));
}

#[test]
fn empty_messages_take_room_as_well() {
    let mut end = Atp::new(Params {
        send_limit: Octets(64 << 10),
        ..Params::DEFAULT
    });
    let send = |end: &mut Atp| end.handle_input(Input::Send(Vec::new()), Instant::ZERO);
    let taken = (0..5000).take_while(|_| send(&mut end).is_ok()).count();
    // Ten are sent, and 64 KiB of 64 octets each wait.
    assert_eq!(taken, 10 + 1024);
    assert_eq!(end.snapshot().waiting, 64 << 10);
}

/// A message that never fits is not refused with a reason that asks for patience.
#[test]
fn a_message_beyond_the_send_limit_is_too_long_and_never_waits_for_room() {
    let mut end = Atp::new(Params {
        send_limit: Octets(64 << 10),
        ..Params::DEFAULT
    });
    let limit = (64 << 10) - 64;
    let long = end.handle_input(Input::Send(vec![0; limit + 1]), Instant::ZERO);
    let octets = limit + 1;
    assert_eq!(long, Err(Refusal::TooLong { octets, limit }));
    let fits = end.handle_input(Input::Send(vec![0; limit]), Instant::ZERO);
    assert_eq!(fits, Ok(()));
}

#[test]
fn naks_without_end_repeat_a_packet_once_in_half_a_round_trip() {
    let mut end = Atp::new(params(Profile::Report));
    let taken = end.handle_input(Input::Send(vec![1]), Instant::ZERO);
    assert_eq!(taken, Ok(()));
    settle(&mut end, Instant::ZERO);
    let nak = Pdu::Nak(Seq30::new(0)).encode();
    let mut repeated = 0;
    for millis in 0..200 {
        repeated += give(&mut end, &nak, Instant::from_millis(millis)).len();
    }
    // At 0, 50, 100 and 150 ms: the round trip is assumed to be 100 ms.
    assert_eq!(repeated, 4);
}

/// Bounds of memory and work, whatever the peer sends.
fn bounded(end: &Atp, params: &Params) {
    let (snapshot, counters) = (end.snapshot(), end.counters());
    // Two packets: the one that all others wait for, and the one that went over the limit.
    let packets = 2 * (params.mtu + 64);
    assert!(snapshot.kept <= params.receive_limit.0 + params.max_message.0 + packets);
    assert!(snapshot.waiting <= params.send_limit.0);
    assert!(snapshot.asked <= 64);
    assert!(snapshot.outstanding <= params.max_window);
    assert!((8..=params.max_window * 8).contains(&snapshot.window_eighths));
    // A packet that is received is looked at when gaps are sought, and in its turn; one that is missing when it is
    // sought and for each NAK; one that is sent when it is acknowledged and when it is forgotten.
    let twice = counters.packets_received + counters.naks_sent + counters.packets_sent;
    let steps = 2 * twice + counters.acks_ignored + counters.packets_repeated + 1;
    assert!(counters.steps <= steps, "{counters:?}");
}

/// A step of a peer that knows which numbers hurt: `at` is an offset to the next number in order.
fn hostile_step(end: &mut Atp, first: u32, (kind, at, len): (u8, i32, usize), now: Instant) {
    let counters = *end.counters();
    let outstanding = u64::from(end.snapshot().outstanding);
    let seq = |near: u64| Seq30::new(first.wrapping_add(near as u32).wrapping_add_signed(at));
    let (here, there) = (
        seq(counters.packets_sent - outstanding),
        seq(counters.packets_received),
    );
    let octets = message(len, kind);
    let far = Seq30::new(there.get().wrapping_add_signed(at * 400));
    let sdu = match kind {
        0 | 1 => Pdu::Ack(here).encode(),
        2 => Pdu::Nak(here).encode(),
        3 => octets,
        4 => {
            // The user's own messages: refused beyond the limit, never the peer's doing.
            let _ = end.handle_input(Input::Send(octets), now);
            return;
        }
        5 => {
            end.take();
            return;
        }
        _ => Pdu::Data {
            seq: if kind == 6 { far } else { there },
            last: kind > 8,
            octets: &octets,
        }
        .encode(),
    };
    assert_eq!(end.handle_input(Input::Sdu(&sdu), now), Ok(()));
}

proptest! {
    /// Any PDUs at any time, near the numbers in use: the laws of machines hold (in `settle`), memory and work are
    /// bounded, and so is what one step puts out.
    #[test]
    fn any_sequence_of_pdus_is_survived(
        steps in prop::collection::vec((0_u8..11, -8_i32..12, 0_usize..44, 0_u64..200), 1..400),
        adaptive: bool,
        patient in 0_u64..4,
        first in prop::sample::select(vec![0_u32, (1 << 30) - 5]),
    ) {
        let profile = if adaptive { Profile::Adaptive } else { Profile::Report };
        let params = Params {
            mtu: 40,
            receive_limit: Octets(64 << 10),
            send_limit: Octets(64 << 10),
            max_message: Octets(1 << 10),
            first,
            ..params(profile)
        };
        let mut end = Atp::new(params);
        let mut now = Instant::ZERO;
        for (kind, at, len, wait) in steps {
            // Microseconds, milliseconds, or hours.
            now += us(wait) * [1, 1000, 1000, 100_000_000][patient as usize];
            hostile_step(&mut end, first, (kind, at, len), now);
            // An ACK, NAKs, a window of repetitions and a window of new packets, the news.
            let out = settle(&mut end, now);
            prop_assert!(out.len() <= 1 + 64 + 2 * 256 + 3, "{} outputs", out.len());
            bounded(&end, &params);
        }
        // Left alone, it comes to rest: its timers end.
        let mut calls = 0;
        while let Some(at) = end.poll_timeout() {
            settle(&mut end, at);
            calls += 1;
            prop_assert!(calls < 20_000);
        }
        bounded(&end, &params);
    }
}
