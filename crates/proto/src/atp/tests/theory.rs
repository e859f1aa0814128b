//! Closed forms of throughput, and the report's numbers that follow from them.
//!
//! N packets of T each on the line, a round trip of T + 2d + A with an ACK of A. A window W of packets is
//! - window-limited for W·T < T + 2d + A: a window for each round trip;
//! - line-limited otherwise: a packet each T.

use super::*;

/// 9180 octets at 60 ns each, and an ACK of four.
const PACKET: Duration = Duration::from_nanos(550_800);
const ACK: Duration = Duration::from_nanos(240);

/// Time until the last ACK of `packets` full packets with a window that stays.
fn measured(window: u32, packets: usize, delay: Duration) -> Duration {
    let mut pair = Pair::new(Params {
        initial_window: window,
        max_window: window,
        ..params(Profile::Report)
    });
    pair.delay = delay;
    pair.send(0, message(packets * 9176, 1));
    pair.run_all(|_, _, _| false);
    assert_eq!(pair.got[1][0].len(), packets * 9176);
    assert_eq!(pair.events[0], [Event::Drained]);
    pair.now - Instant::ZERO
}

#[test]
fn stop_and_wait_takes_a_round_trip_for_each_packet() {
    for micros in [0, 100, 5000] {
        let cycle = PACKET + us(2 * micros) + ACK;
        assert_eq!(measured(1, 50, us(micros)), cycle * 50);
    }
}

#[test]
fn a_small_window_takes_a_round_trip_for_each_window() {
    let cycle = PACKET + ms(4) + ACK;
    for window in [2, 4, 5] {
        assert!(PACKET * window < cycle);
        // The last window's ACKs come a packet apart.
        let expected = cycle * (40 / window) + PACKET * (window - 1);
        assert_eq!(measured(window, 40, ms(2)), expected, "{window}");
    }
}

#[test]
fn a_window_beyond_the_knee_is_limited_by_the_line() {
    // 4.55 ms / 0.55 ms: from 9 packets on.
    for packets in [40, 200] {
        let window = 9;
        let expected = PACKET * packets + ms(4) + ACK;
        assert_eq!(measured(window, packets as usize, ms(2)), expected);
    }
}

/// CARD moves around the knee: above it a packet more makes the round trip longer, and the window loses an eighth until
/// a smaller window makes it no shorter; then it grows again. The adaptive window keeps 2 to 4 packets in the queue
/// besides the second packet of each pair, which waits for the first one.
#[test]
fn both_windows_find_the_knee() {
    let cycle = PACKET + ms(10) + ACK;
    let knee = cycle.as_secs_f64() / PACKET.as_secs_f64();
    assert_eq!((knee * 10.0).round(), 192.0);
    for (profile, least, most) in [
        // Two times an eighth below the knee, two packets above it.
        (Profile::Report, knee * 49.0 / 64.0, knee + 2.0),
        (Profile::Adaptive, knee + 3.0, knee + 6.0),
    ] {
        let mut pair = Pair::new(params(profile));
        pair.delay = ms(5);
        pair.send(0, vec![0; 9176 * 4000]);
        let mut windows = Vec::new();
        for at in 0..300 {
            pair.run(Instant::from_millis(600 + at * 5), |_, _, _| false);
            let snapshot = pair.ends[0].snapshot();
            assert!(snapshot.waiting > 0, "the transfer goes on");
            windows.push(f64::from(snapshot.window_eighths) / 8.0);
        }
        assert!(
            windows.iter().all(|window| (least..=most).contains(window)),
            "{profile:?} {windows:?}"
        );
        let mean = windows.iter().sum::<f64>() / 300.0;
        assert!(mean > 0.9 * knee, "{profile:?} {mean}");
        let sent = pair.ends[0].counters();
        assert_eq!((sent.timeouts, sent.packets_repeated), (0, 0));
    }
}

/// OC-3: 353 207 cells/s, 192 cells for 9180 octets. Native ATM carries 135.10 Mb/s of 9180 octets (report: 135.08 to
/// 135.36), and ATP 135.04 Mb/s less its start and its last round trip. The report measured 109.19 Mb/s at most.
#[test]
fn the_ceiling_of_oc3() {
    let rate = 353_207;
    let packet = 192.0 / f64::from(rate);
    let ceiling = 9176.0 * 8.0 / packet / 1e6;
    assert_eq!((ceiling * 100.0).round(), 13_504.0);
    assert_eq!((9180.0 * 8.0 / packet / 1e4).round(), 13_510.0);
    for profile in BOTH {
        let mut pair = Pair::new(params(profile));
        (pair.cells, pair.delay) = (Some(rate), us(50));
        pair.send(0, vec![0; 9176 * 1000]);
        pair.run_all(|_, _, _| false);
        let measured = 9.176 * 8.0 / pair.now.as_secs_f64();
        let tail = 2.0 * 50e-6 + 1.0 / f64::from(rate);
        let expected = ceiling * (1000.0 * packet) / (1000.0 * packet + tail);
        assert!(
            (measured / expected - 1.0).abs() < 1e-5,
            "{profile:?} {measured} {expected}"
        );
    }
}

/// The report's correctness test, MTU 10: 912 345 octets in 130.4 s, 2 456 789 in 352.6 s. Six octets fit into a
/// packet, so a packet took 858 and 861 µs: time goes with packets, as it does here behind a line of 857.6 µs for each
/// packet.
#[test]
fn the_reports_runs_with_an_mtu_of_ten() {
    let packet = |octets: f64, seconds: f64| seconds / (octets / 6.0).ceil();
    let (short, long) = (packet(912_345.0, 130.4), packet(2_456_789.0, 352.6));
    assert!((long / short - 1.0).abs() < 0.005, "{short} {long}");
    let mut pair = Pair::new(Params {
        mtu: 10,
        ..params(Profile::Report)
    });
    pair.octet = Duration::from_nanos(85_760);
    // A tenth of the octets: the time is proportional.
    pair.send(0, message(91_235, 1));
    pair.run_all(|_, _, _| false);
    assert_eq!(pair.ends[0].counters().packets_sent, 15_206);
    let seconds = pair.now.as_secs_f64();
    assert!((seconds / 13.04 - 1.0).abs() < 0.001, "{seconds}");
}
