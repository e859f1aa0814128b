//! Known sequences of samples and their expected figures.

use super::*;
use crate::ip::meter::Protocol;
use std::net::Ipv4Addr;

fn collector() -> FlowStats {
    FlowStats::new(&[FlowSpec {
        name: "voice".into(),
        source: Ipv4Addr::new(10, 0, 0, 1),
        destination: Ipv4Addr::new(10, 0, 0, 2),
        protocol: Protocol::Udp,
        source_ports: None,
        destination_port: None,
        voice: false,
        series: false,
    }])
}

fn sample(side: Side, path: Path, us: u64, sequence: u64) -> Sample {
    Sample {
        flow: FlowId(0),
        side,
        path,
        at: Instant::from_nanos(us * 1000),
        key: PacketKey::Stamped { sequence },
        payload: 1000,
        ip_octets: 1028,
    }
}

#[test]
fn a_call_is_rated_by_path() {
    let mut stats = collector();
    stats.flows[0].voice = true;
    for n in 0..100 {
        stats.record(&sample(Side::Sent, Path::Lane, n * 20_000, n));
        // Every tenth packet is lost on the path through the routers.
        if n % 10 != 0 {
            stats.record(&sample(Side::Received, Path::Lane, n * 20_000 + 5000, n));
        }
    }
    for n in 100..200 {
        stats.record(&sample(Side::Sent, Path::Shortcut, n * 20_000, n));
        stats.record(&sample(
            Side::Received,
            Path::Shortcut,
            n * 20_000 + 1000,
            n,
        ));
    }
    let report = stats.report(Instant::from_secs(10)).remove(0);
    let [lane, shortcut] = [0, 1].map(|n| report.paths[n].quality.expect("a call"));
    assert!((lane.loss_percent - 10.0).abs() < 1e-9 && shortcut.loss_percent == 0.0);
    assert!(lane.r < 70.0 && shortcut.r > 90.0, "{lane:?} {shortcut:?}");
}

#[test]
fn loss_order_delay_and_variation_of_a_known_sequence() {
    let mut stats = collector();
    // Sent every millisecond; delays 100, 150, lost, 120 µs; number 4 overtakes number 3.
    let path = Path::Lane;
    for n in 0..6 {
        stats.record(&sample(Side::Sent, path, n * 1000, n));
    }
    for (n, at) in [(0, 100), (1, 1150), (4, 4120), (3, 4200), (5, 5100)] {
        stats.record(&sample(Side::Received, path, at, n));
    }
    let report = stats.report(Instant::from_secs(10)).remove(0);
    let routed = &report.paths[0];
    assert_eq!((routed.sent_packets, routed.received_packets), (6, 5));
    assert_eq!(
        (routed.lost, routed.in_flight, routed.out_of_sequence),
        (1, 0, 1)
    );
    assert_eq!((routed.delay.min_us, routed.delay.max_us), (100.0, 1200.0));
    // |150−100|, |120−150|, |1200−120|, |100−1200| = 50, 30, 1080, 1100.
    assert_eq!(
        (routed.variation.count, routed.variation.max_us),
        (4, 1100.0)
    );
    assert!((routed.variation.mean_us - 565.0).abs() < 1e-6);
    let squares = [50.0f64, 30.0, 1080.0, 1100.0].map(|v| (v - 565.0) * (v - 565.0));
    let variance = squares.iter().sum::<f64>() / 4.0;
    assert!((routed.variation.variance_us2 - variance).abs() < 1e-3);
    // From the first to the last packet offered; the last was received 100 µs later.
    assert_eq!(routed.duration, Duration::from_micros(5000));
    assert!((routed.throughput_mbps - 5.0 * 8000.0 / 5100.0).abs() < 1e-9);
}

#[test]
fn a_path_change_cuts_the_time() {
    let mut stats = collector();
    for n in 0..20 {
        let path = if n < 5 { Path::Lane } else { Path::Shortcut };
        stats.record(&sample(Side::Sent, path, n * 1000, n));
        stats.record(&sample(Side::Received, path, n * 1000 + 10, n));
    }
    // A packet that the network moved to the other path, and a packet that was never sent.
    stats.record(&sample(Side::Sent, Path::Shortcut, 20_000, 20));
    stats.record(&sample(Side::Received, Path::Lane, 20_010, 20));
    stats.record(&sample(Side::Received, Path::Lane, 20_010, 99));
    stats.record(&sample(Side::Sent, Path::Shortcut, 21_000, 21));
    let report = stats.report(Instant::from_millis(22)).remove(0);
    assert_eq!(report.unmatched, 1);
    assert_eq!(
        report
            .paths
            .iter()
            .map(|p| p.path.name())
            .collect::<Vec<_>>(),
        ["routed", "shortcut"]
    );
    assert_eq!(report.paths[0].duration, Duration::from_millis(5));
    assert_eq!(report.paths[1].duration, Duration::from_millis(16));
    assert!((report.paths[0].throughput_mbps - 8.0).abs() < 1e-9);
    assert_eq!((report.paths[1].in_flight, report.paths[1].lost), (1, 0));
    assert_eq!(report.paths[1].changed_path, 1);
}

#[test]
fn n_packets_at_a_rate_take_n_intervals_and_what_arrives_later_adds_to_them() {
    let at = Instant::from_millis;
    // Two packets, one a second, in a schedule of two seconds: 0.008 Mbit/s of 1000 octets each.
    for (delay, seconds) in [(10, 2.0), (3000, 4.0)] {
        let mut stats = collector();
        for n in 0..2 {
            let sent = n * 1_000_000;
            stats.record(&sample(Side::Sent, Path::Lane, sent, n));
            stats.record(&sample(Side::Received, Path::Lane, sent + delay * 1000, n));
        }
        let schedule = Schedule {
            from: at(0),
            to: at(2000),
        };
        let report = stats.report_with(at(10_000), None, |_| Some(schedule));
        let path = &report[0].paths[0];
        assert_eq!(path.duration, Duration::from_secs(2));
        assert!(
            (path.throughput_mbps - 0.016 / seconds).abs() < 1e-12,
            "{path:?}"
        );
    }
    // The first packet comes a second after the start, and the path changes with the second one, at 3 s.
    let mut stats = collector();
    for (n, path) in [(1, Path::Lane), (3, Path::Shortcut)] {
        stats.record(&sample(Side::Sent, path, n * 1_000_000, n));
        stats.record(&sample(Side::Received, path, n * 1_000_000 + 10, n));
    }
    let schedule = Schedule {
        from: at(0),
        to: at(8000),
    };
    let report = stats.report_with(at(10_000), None, |_| Some(schedule));
    let times = report[0].paths.iter().map(|path| path.busy.as_secs());
    assert_eq!(times.collect::<Vec<_>>(), [3, 5], "together, the schedule");
}

#[test]
fn packets_of_a_phase_that_arrive_after_it_are_in_its_time_and_no_rate_exceeds_that_of_the_line() {
    // One packet a millisecond, and a line that takes 4 ms for each: 1000 octets, 2 Mbit/s. The path changes every 10
    // ms, while packets of the periods before still wait.
    let mut stats = collector();
    let path = |n: u64| [Path::Lane, Path::Shortcut][(n / 10 % 2) as usize];
    let sent = (0..40).map(|n| (n * 1000, Side::Sent, n));
    let received = (0..40).map(|n| ((n + 1) * 4000, Side::Received, n));
    let mut all: Vec<_> = sent.chain(received).collect();
    all.sort_by_key(|(at, ..)| *at);
    for (at, side, n) in all {
        stats.record(&sample(side, path(n), at, n));
    }
    let schedule = Schedule {
        from: Instant::ZERO,
        to: Instant::from_millis(40),
    };
    let report = stats.report_with(Instant::from_secs(1), None, |_| Some(schedule));
    let [lane, shortcut] = &report[0].paths[..] else {
        panic!("{report:?}");
    };
    // From 0 to the packet at 16 ms, and from 20 to 120 ms; from 10 to 20 ms, and from 30 to 160 ms.
    let ms = Duration::from_millis;
    assert_eq!([lane.duration, lane.busy], [ms(20), ms(116)]);
    assert_eq!([shortcut.duration, shortcut.busy], [ms(20), ms(140)]);
    assert_eq!(report[0].tail, ms(120), "with both durations 160 ms");
    for path in [lane, shortcut] {
        assert_eq!(path.received_packets, 20);
        assert!(path.throughput_mbps <= 2.0, "{path:?}");
    }
}

/// More packets than a ring of 16 bits has places.
const MANY: u64 = 200_000;

#[test]
fn every_packet_under_way_is_remembered_however_many_there_are() {
    let mut stats = collector();
    for n in 0..MANY {
        stats.record(&sample(Side::Sent, Path::Lane, n, n));
    }
    assert_eq!(stats.remembered() as u64, MANY);
    for n in 0..MANY {
        stats.record(&sample(Side::Received, Path::Lane, MANY + n, n));
    }
    let report = stats.report(Instant::from_secs(10)).remove(0);
    let path = &report.paths[0];
    let counts = (path.received_packets, path.lost, report.unmatched);
    assert_eq!(counts, (MANY, 0, 0));
    assert_eq!([path.delay.min_us, path.delay.max_us], [MANY as f64; 2]);
    assert_eq!(stats.remembered(), 0);
}

/// A place of losses.
fn place() -> Place {
    Place {
        spot: crate::ip::books::Spot::Link(0),
        cause: crate::ip::books::Cause::CellLost,
    }
}

#[test]
fn lost_packets_become_numbers_when_no_copy_is_left_and_the_figures_stay() {
    let mut stats = collector();
    // Of each ten packets one is lost, one is lost and has a copy that is still in the network, one is in the network.
    let mut census = Census::default();
    for n in 0..MANY {
        stats.record(&sample(Side::Sent, Path::Lane, n, n));
        let key = PacketKey::Stamped { sequence: n };
        if n % 10 <= 1 {
            stats.loose[0] += usize::from(stats.flows[0].lost(key, place(), Instant::ZERO));
        }
        match n % 10 {
            0 => {}
            1 | 2 => drop(census.packets.insert((FlowId(0), key))),
            _ => {
                stats.record(&sample(Side::Received, Path::Lane, n + 5, n));
            }
        }
    }
    assert!(stats.wants_sweep());
    let now = Instant::from_secs(10);
    let before = stats.report_with(now, Some(&census), |_| None);
    stats.sweep(now, &census, false);
    assert_eq!(stats.remembered() as u64, MANY / 5, "those in the network");
    assert!(!stats.wants_sweep());
    assert_eq!(stats.report_with(now, Some(&census), |_| None), before);
    assert_eq!(before[0].paths[0].lost, MANY / 5);
    assert_eq!(before[0].paths[0].in_flight, MANY / 10);
    // A copy of a packet that was reported as lost arrives.
    stats.record(&sample(Side::Received, Path::Lane, MANY + 5, 1));
    let after = stats.report_with(now, Some(&census), |_| None).remove(0);
    assert_eq!((after.paths[0].lost, after.unmatched), (MANY / 5 - 1, 0));
}

/// Echo requests without a stamp, whose numbers wrap.
fn echo(side: Side, us: u64, number: u64) -> Sample {
    let key = PacketKey::Echo {
        ident: 1,
        sequence: u64::from(number as u16),
    };
    let at = Instant::from_nanos(us * 1000);
    let path = Path::Lane;
    Sample {
        key,
        at,
        side,
        path,
        ..sample(side, path, us, 0)
    }
}

#[test]
fn requests_whose_numbers_wrap_while_they_are_under_way_are_told_apart_by_their_order() {
    let mut stats = collector();
    // A queue takes the first 100 000 requests, and drops the others at its tail.
    let taken = MANY / 2;
    for n in 0..MANY {
        stats.record(&echo(Side::Sent, n, n));
        if n >= taken {
            let key = echo(Side::Sent, n, n).key;
            stats.flows[0].lost(key, place(), Instant::from_nanos(n * 1000));
        }
    }
    for n in 0..taken {
        stats.record(&echo(Side::Received, MANY + n, n));
    }
    for n in 0..taken {
        stats.record(&echo(Side::Answered, 2 * MANY + n, n));
    }
    let now = Instant::from_secs(10);
    let census = Census::default();
    let before = stats.report_with(now, Some(&census), |_| None);
    let path = &before[0].paths[0];
    assert_eq!((path.received_packets, path.lost), (taken, MANY - taken));
    assert_eq!(
        (path.unexplained, path.unanswered, before[0].unmatched),
        (0, 0, 0)
    );
    assert_eq!([path.delay.min_us, path.delay.max_us], [MANY as f64; 2]);
    let round_trip = path.round_trip;
    assert_eq!(
        [round_trip.min_us, round_trip.max_us],
        [2.0 * MANY as f64; 2]
    );
    stats.sweep(now, &census, false);
    assert_eq!(stats.remembered(), 0);
    assert_eq!(stats.report_with(now, Some(&census), |_| None), before);
}
