//! Edge devices with several Ethernet ports.

use crate::bench::{Bench, lab_of};
use crate::bridges::rows;
use crate::losses::{books, only_at};
use aerostat_node::ip::meter::Path;
use aerostat_proto::{Duration, Instant};
use aerostat_sim::NodeId;
use aerostat_testing::labs::check;

/// An edge device with a slow port, a fast one, and one that two stations share; a second edge device, and a host.
const LAB: &str = "
switches: { s: {} }
lane: { on: s, elans: { a: { subnet: 10.1.0.0/24 }, b: { subnet: 10.2.0.0/24 } } }
routers: { r: { on: s, elans: { a: 10.1.0.1, b: 10.2.0.1 } } }
hosts:
  edge:
    on: s
    elan: a
    ip: 10.1.0.10
    bridge: { slow: 10.1.0.20, fast: 10.1.0.21, one: 10.1.0.22, two: 10.1.0.23 }
    ethernet:
      rate: 100Mbps
      ports:
        e1: { stations: [slow], rate: 10Mbps, queue: 20 }
        e2: { stations: [fast] }
        e3: { stations: [one, two], rate: 1Gbps, tag: true }
  far: { on: s, elan: b, ip: 10.2.0.10, bridge: { phone: 10.2.0.20 }, ethernet: { ports: { e1: { stations: [phone] } } } }
  near: { on: s, elan: a, ip: 10.1.0.30 }
";

fn lab(set: &str, flows: &[String]) -> String {
    let flows: Vec<String> = flows
        .iter()
        .map(|flow| format!("  - {{ {flow} }}\n"))
        .collect();
    format!("{set}{LAB}traffic:\n{}", flows.concat())
}

fn ping(from: &str, to: &str) -> String {
    format!(
        "name: {from}-{to}, from: {from}, to: {to}, kind: ping, rate: 10pps, start: 9s, duration: 2s"
    )
}

fn load(from: &str, to: &str, rate: u32, more: &str) -> String {
    format!(
        "name: load-{to}, from: {from}, to: {to}, kind: udp, size: 1472, rate: {rate}pps, start: 3s, duration: 500ms{more}"
    )
}

const PAIRS: [(&str, &str); 8] = [
    ("slow", "fast"),
    ("one", "two"),
    ("two", "slow"),
    ("fast", "edge"),
    ("edge", "one"),
    ("slow", "near"),
    ("near", "two"),
    ("fast", "phone"),
];

fn node(bench: &Bench, name: &str) -> NodeId {
    NodeId(bench.lab.find(name).expect("a node of the lab").0)
}

fn all_pings(bench: &Bench) {
    for (from, to) in PAIRS {
        let flow = bench.flow(&format!("{from}-{to}"));
        let heard = bench
            .log
            .samples
            .iter()
            .filter(|sample| sample.flow.0 == flow);
        let answered =
            heard.filter(|sample| sample.side == aerostat_node::ip::meter::Side::Answered);
        assert!(answered.count() >= 19, "{from} {to}");
    }
}

#[test]
fn stations_of_all_ports_reach_each_other_the_elan_and_shortcuts() {
    let flows = PAIRS.map(|(from, to)| ping(from, to));
    let text = lab("mpoa: { start: 3s, flow_detect: 5 frames per 1s }", &flows);
    let mut bench = Bench::new(lab_of("ports.atm.yml", &text, &[]), 1);
    bench.run(Duration::from_secs(12));
    check::order(&bench).unwrap_or_else(|why| bench.fail(&why));
    check::cells(&bench).unwrap_or_else(|why| bench.fail(&why));
    all_pings(&bench);
    let ports = rows(&bench, "edge", "bridge", "ports");
    let column = |name: &str| {
        ports
            .iter()
            .map(|row| row[name].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(column("port"), ["e1", "e2", "e3"]);
    assert_eq!(column("rate_bps"), ["10000000", "100000000", "1000000000"]);
    assert_eq!(column("full_duplex"), ["yes", "yes", "no"]);
    assert_eq!(column("addresses"), ["1", "1", "2"]);
    assert_eq!(column("waiting"), ["0"; 3]);
    // The packets from the fast port to another subnet take a shortcut from edge device to edge device.
    let flow = bench.flow("fast-phone");
    let last = bench
        .log
        .samples
        .iter()
        .rfind(|sample| sample.flow.0 == flow);
    assert_eq!(last.expect("samples").path, Path::Shortcut);
}

/// An edge device that restarts learns its stations again; frames that a crash takes have their place.
#[test]
fn a_restart_of_the_edge_device_costs_what_passed_it() {
    let flows = PAIRS.map(|(from, to)| ping(from, to));
    let mut bench = Bench::new(lab_of("ports.atm.yml", &lab("", &flows), &[]), 1);
    bench.run(Duration::from_secs(5));
    let edge = node(&bench, "edge");
    bench.power_off(edge);
    bench.run(Duration::from_secs(1));
    bench.power_on(edge);
    bench.run(Duration::from_secs(6));
    all_pings(&bench);
    let text = lab(
        "faults: [{ at: 9500ms, crash: edge }, { at: 9700ms, restart: edge }]",
        &flows,
    );
    // Stations are part of the device: they are off, too. What was on its way from elsewhere is lost there.
    let books = books(&text, 6);
    let lost: u64 = books.lost.values().sum();
    assert!(lost > 0, "{:?}", books.lost);
    assert_eq!(books.sent, books.delivered + lost + books.under_way);
}

/// 2000 frames/s for a port of 10 Mb/s: it carries 812.7 of 1518 octets, and 20 wait. The other ports lose nothing.
#[test]
fn a_flood_for_a_slow_port_is_lost_there_and_harms_no_other_port() {
    let warm = ["slow", "fast", "one"].map(|to| {
        format!("name: warm-{to}, from: near, to: {to}, kind: ping, rate: 10pps, start: 1s, duration: 1s")
    });
    let loads = [
        load("near", "slow", 2000, ", expect: loss"),
        load("near", "fast", 2000, ""),
        load("near", "one", 2000, ""),
    ];
    let text = lab("", &[&warm[..], &loads[..]].concat());
    let flooded = books(&text, 3);
    only_at(&flooded, "edge: Ethernet port full");
    assert_eq!(flooded.sent, 1000);
    // Half a second at 812.7 frames/s, and 20 that wait at its end.
    assert!(
        (424..=428).contains(&flooded.delivered),
        "{}",
        flooded.delivered
    );
    for flow in [4, 5] {
        let books = books(&text, flow);
        assert_eq!(
            (books.sent, books.delivered, books.lost.len()),
            (1000, 1000, 0),
            "{flow}"
        );
    }
}

/// Both directions at 90 % of a cable: a full-duplex one carries both, a shared one does not.
#[test]
fn a_full_duplex_cable_has_two_directions() {
    let warm = "name: warm, from: near, to: fast, kind: ping, rate: 10pps, start: 1s, duration: 1s"
        .to_owned();
    let loads = [
        load("near", "fast", 7314, ""),
        load("fast", "near", 7314, ""),
    ];
    let text = lab("", &[&[warm][..], &loads[..]].concat());
    for flow in [1, 2] {
        let books = books(&text, flow);
        assert_eq!((books.sent, books.lost.len()), (3657, 0), "{flow}");
    }
    let half = text.replace("stations: [fast]", "stations: [fast], duplex: half");
    let lost: u64 = [1, 2]
        .map(|flow| books(&half, flow).lost.values().sum::<u64>())
        .iter()
        .sum();
    // 8127 frames/s pass of 14 628; 512 wait.
    let passed = 8127.4 * 0.5 + 512.0;
    assert!(
        (lost as f64 - (2.0 * 3657.0 - passed)).abs() < 20.0,
        "{lost}"
    );
}

/// Two edge devices of one ELAN. After one exchange the bridge knows who is behind ATM, and a restart of the device, or
/// of the LANE services, makes it learn again.
#[test]
fn after_one_exchange_frames_for_a_station_behind_atm_reach_no_other_port() {
    let lab = "
switches: { s: {} }
lane: { on: s, elans: { a: { subnet: 10.1.0.0/24 } } }
hosts:
  e:
    on: s
    elan: a
    ip: 10.1.0.10
    bridge: { p1: 10.1.0.20, p2: 10.1.0.21, p3: 10.1.0.22 }
    ethernet: { rate: 100Mbps, ports: { e1: { stations: [p1], rate: 10Mbps }, e2: { stations: [p2] }, e3: { stations: [p3] } } }
  g: { on: s, elan: a, ip: 10.1.0.11, bridge: { q1: 10.1.0.30 }, ethernet: { rate: 100Mbps, ports: { e1: { stations: [q1] } } } }
traffic:
  - { name: before, from: q1, to: p2, kind: ping, rate: 10pps, start: 3s, duration: 1s }
  - { name: stream, from: p2, to: q1, kind: udp, size: 1472, rate: 1000pps, start: 5s, duration: 500ms }
  - { name: hello, from: q1, to: p2, kind: ping, rate: 10pps, start: 58s, duration: 1s }
  - { name: again, from: p2, to: q1, kind: udp, size: 1472, rate: 1000pps, start: 60s, duration: 500ms }
";
    let out = |bench: &Bench, port: usize| -> u64 {
        let ports = rows(bench, "e", "bridge", "ports");
        ports[port]["frames_out"].parse().expect("a number")
    };
    let behind = |bench: &Bench| rows(bench, "e", "bridge", "elan").len();
    for off in [None, Some("e"), Some("lane")] {
        let mut bench = Bench::new(lab_of("learning.atm.yml", lab, &[]), 1);
        bench.run(Duration::from_millis(4900));
        let before = [out(&bench, 0), out(&bench, 2)];
        bench.run(Duration::from_millis(2100));
        // The stream is 500 frames. An ARP request is for everybody, and its answer teaches.
        for (port, before) in [0, 2].into_iter().zip(before) {
            let more = out(&bench, port) - before;
            assert!(more <= 2, "{off:?} {port}: {more}");
        }
        assert_eq!(behind(&bench), 1, "{off:?}");
        if let Some(name) = off {
            let node = node(&bench, name);
            bench.power_off(node);
            bench.run(Duration::from_secs(20));
            if name == "lane" {
                // The client has left its ELAN.
                assert_eq!(behind(&bench), 0);
            }
            bench.power_on(node);
        }
        while bench.now() < Instant::from_millis(59_500) {
            bench.run(Duration::from_millis(500));
        }
        let before = [out(&bench, 0), out(&bench, 2)];
        while bench.now() < Instant::from_secs(62) {
            bench.run(Duration::from_secs(1));
        }
        for (port, before) in [0, 2].into_iter().zip(before) {
            let more = out(&bench, port) - before;
            assert!(more <= 2, "{off:?} {port}: {more}");
        }
        assert_eq!(behind(&bench), 1, "{off:?}");
        check::order(&bench).unwrap_or_else(|why| bench.fail(&why));
        check::cells(&bench).unwrap_or_else(|why| bench.fail(&why));
        // No station speaks for five minutes.
        bench.run(Duration::from_secs(900));
        assert_eq!(behind(&bench), 0, "{off:?}");
    }
    for flow in [1, 3] {
        let books = books(lab, flow);
        assert_eq!(
            (books.sent, books.delivered, books.lost.len()),
            (500, 500, 0)
        );
    }
}
