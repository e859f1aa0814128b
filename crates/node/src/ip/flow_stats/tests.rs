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
    let squares = [50.0f64, 30.0, 1080.0, 1100.0].map(|v| (v - 565.0).powi(2));
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
            .map(|p| p.path.as_str())
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
fn memory_is_bounded_and_the_oldest_are_lost() {
    let mut stats = collector();
    for n in 0..MAX_OUTSTANDING as u64 + 10 {
        stats.record(&sample(Side::Sent, Path::Lane, n, n));
    }
    let flow = &stats.flows[0];
    assert_eq!(
        (flow.outstanding.len(), flow.by_key.len()),
        (MAX_OUTSTANDING, MAX_OUTSTANDING)
    );
    assert_eq!(flow.paths[&Path::Lane].unexplained, 10);
}
