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
    }
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
    // The gap is filled all the same when the packet that is missing fits.
    let limit = 1 << 20;
    assert!(end.snapshot().kept < limit);
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
    assert_eq!(text, "a message of 1025 octets: 1024 octets are the limit");
    // The window of ten packets is sent, and 64 messages wait.
    for _ in 0..74 {
        let taken = end.handle_input(Input::Send(vec![0; 1024]), Instant::ZERO);
        assert_eq!(taken, Ok(()));
    }
    let full = end.handle_input(Input::Send(vec![0; 1]), Instant::ZERO);
    let (waiting, limit) = (64 << 10, 64 << 10);
    assert_eq!(full, Err(Refusal::Full { waiting, limit }));
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

proptest! {
    /// Any PDUs at any time: the laws of machines hold (in `settle`), and memory is bounded.
    #[test]
    fn any_sequence_of_pdus_is_survived(
        steps in prop::collection::vec((any::<u16>(), 0_u8..8, 0_usize..40, 0_u64..200), 1..200),
        adaptive: bool,
    ) {
        let profile = if adaptive { Profile::Adaptive } else { Profile::Report };
        let mut end = Atp::new(Params { mtu: 40, receive_limit: Octets(64 << 10), ..params(profile) });
        let mut now = Instant::ZERO;
        for (word, kind, len, wait) in steps {
            now += ms(wait);
            let seq = Seq30::new(u32::from(word) >> (kind * 2));
            let octets = message(len, kind);
            let sdu = match kind {
                0 => Pdu::Ack(seq).encode(),
                1 => Pdu::Nak(seq).encode(),
                2 => octets,
                3 => {
                    let _ = end.handle_input(Input::Send(octets), now);
                    Vec::new()
                }
                _ => Pdu::Data { seq, last: kind > 5, octets: &octets }.encode(),
            };
            end.handle_input(Input::Sdu(&sdu), now).unwrap();
            settle(&mut end, now);
            let snapshot = end.snapshot();
            prop_assert!(snapshot.kept <= (64 << 10) + 40 * 33_000);
            prop_assert!(snapshot.outstanding <= MAX_WINDOW);
            prop_assert!((8..=2048).contains(&snapshot.window_eighths));
        }
    }
}
