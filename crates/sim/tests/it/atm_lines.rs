//! ATM lines: the staircase of round-trip times, what faults cost, and a customer's Ethernet behind a modem.

use crate::bench::{lab_of, repository_lab};
use crate::losses::{books, run};
use aerostat_lab::report::RunReport;
use aerostat_node::inspect::StateKind;
use aerostat_wire::aal5;
use aerostat_wire::line::Encapsulation;
use std::collections::BTreeMap;

/// Octets of a PDU beyond an IP packet, counted from the headers of the standards: LLC 8 and the two octets of a
/// bridged PDU, the Ethernet header 14, PPPoE 6, PPP 2, LLC of PPP 4, FCS 4, and the trailer of AAL5 8.
fn headers(encapsulation: Encapsulation) -> u64 {
    8 + match encapsulation {
        Encapsulation::RoutedVc => 0,
        Encapsulation::RoutedLlc => 8,
        Encapsulation::PppoaVc => 2,
        Encapsulation::PppoaLlc => 4 + 2,
        Encapsulation::BridgedVc => 2 + 14,
        Encapsulation::BridgedVcFcs => 2 + 14 + 4,
        Encapsulation::BridgedLlc => 8 + 2 + 14,
        Encapsulation::BridgedLlcFcs => 8 + 2 + 14 + 4,
        Encapsulation::PppoeVc => 2 + 14 + 6 + 2,
        Encapsulation::PppoeVcFcs => 2 + 14 + 6 + 2 + 4,
        Encapsulation::PppoeLlc => 8 + 2 + 14 + 6 + 2,
        Encapsulation::PppoeLlcFcs => 8 + 2 + 14 + 6 + 2 + 4,
        other => panic!("{other} is no line"),
    }
}

/// Cells of an IP packet. A frame with its FCS has 60 octets and more before it.
fn cells(encapsulation: Encapsulation, packet: u64) -> u64 {
    let least = match encapsulation {
        Encapsulation::BridgedVcFcs | Encapsulation::BridgedLlcFcs => 60 - 14,
        Encapsulation::PppoeVcFcs | Encapsulation::PppoeLlcFcs => 60 - 14 - 8,
        _ => 0,
    };
    (packet.max(least) + headers(encapsulation)).div_ceil(48)
}

/// A customer and a host at the two ends of a line of `rate` bit/s.
fn line(encapsulation: Encapsulation, rate: u64, traffic: &str) -> String {
    format!(
        "links: [[a, b, {{ rate: {rate}bps, delay: 1ms }}]]\n\
         lines: {{ dsl: {{ subnet: 10.1.0.0/30, encapsulation: {encapsulation} }} }}\n\
         pvcs: [{{ from: a, vc: '8.35', to: b, line: dsl }}]\n\
         hosts:\n  a: {{ elan: dsl, ip: 10.1.0.1 }}\n  b: {{ elan: dsl, ip: 10.1.0.2 }}\n\
         traffic: [{traffic}]\n"
    )
}

/// Least round-trip times of three pings with so many octets of data each, ns: one may meet a cell of signalling.
fn round_trips(encapsulation: Encapsulation, rate: u64, sizes: &[u64]) -> Vec<u64> {
    // The first one finds the other end's MAC address.
    let mut traffic = "{ name: warm, from: a, to: b, kind: ping, duration: 500ms }".to_owned();
    for (number, size) in sizes.iter().enumerate() {
        let start = 1000 + 200 * number;
        traffic += &format!(
            ", {{ name: p{size}, from: a, to: b, kind: ping, size: {size}, rate: 15pps, start: {start}ms, duration: 140ms }}"
        );
    }
    let (_, report) = run(&line(encapsulation, rate, &traffic));
    let flows = report.flows[1..].iter().map(|flow| {
        let trip = &flow.paths[0].round_trip;
        assert_eq!(trip.count, 3, "{encapsulation} {}", flow.name);
        (trip.min_us * 1000.0).round() as u64
    });
    flows.collect()
}

/// The time of a round trip by arithmetic, ns, rounded down: 424 bit for each cell in each direction, and the delay.
fn expected(encapsulation: Encapsulation, rate: u64, size: u64) -> u64 {
    2 * (cells(encapsulation, size + 28) * 424 * 1_000_000_000 / rate + 1_000_000)
}

/// The numbers of `aerostat overhead` are those of the headers.
#[test]
fn the_overhead_of_each_encapsulation_is_that_of_its_headers() {
    for encapsulation in Encapsulation::lines() {
        assert_eq!(encapsulation.overhead() as u64, headers(encapsulation));
        for packet in 20..1500 {
            let sdu = encapsulation.sdu(&vec![0; packet]);
            let cells_of_sdu = aal5::cells_for(sdu.len()) as u64;
            assert_eq!(
                cells_of_sdu,
                cells(encapsulation, packet as u64),
                "{encapsulation} {packet}"
            );
        }
    }
}

/// Each octet of data from 16 to 1452 on a line of 0.5 Mb/s, and both sides of each step on faster ones: the times are
/// those of arithmetic, to the nanosecond that rounding of two cell times may add.
#[test]
fn round_trips_climb_a_staircase_of_48_octets() {
    for encapsulation in Encapsulation::lines() {
        let every: Vec<u64> = (16..=1452).collect();
        let edges: Vec<u64> = (17..=1452)
            .filter(|size| cells(encapsulation, size + 28) != cells(encapsulation, size + 27))
            .flat_map(|size| [size - 1, size])
            .collect();
        assert!(
            edges.len() >= 2 * 29,
            "{encapsulation}: {} edges",
            edges.len()
        );
        for (rate, sizes) in [(500_000, &every), (1_000_000, &edges), (8_000_000, &edges)] {
            let measured = round_trips(encapsulation, rate, sizes);
            for (size, measured) in sizes.iter().zip(measured) {
                let expected = expected(encapsulation, rate, *size);
                let error = measured.abs_diff(expected);
                assert!(
                    error <= 4,
                    "{encapsulation} {rate} {size}: {measured} for {expected}"
                );
            }
        }
    }
}

/// Counters of a line at a host.
fn counters(report: &RunReport, host: &str) -> BTreeMap<String, String> {
    let (_, kinds) = report
        .nodes
        .iter()
        .find(|(name, _)| name == host)
        .expect("the host");
    let (_, tables) = kinds
        .iter()
        .find(|(kind, _)| *kind == StateKind::Line)
        .expect("its line");
    let rows = tables[1].rows.iter();
    rows.map(|row| (row[0].to_string(), row[1].to_string()))
        .collect()
}

/// A customer's network: stations on an Ethernet behind a modem that bridges to its line, and a BRAS that routes.
const MODEM: &str = "
switches: { dslam: {}, core: {} }
links: [[dslam, core]]
lines:
  home: { subnet: 10.1.0.0/24, encapsulation: ENCAPSULATION }
  bob: { subnet: 10.2.0.0/30, encapsulation: pppoa-vcmux }
pvcs:
  - { from: modem, vc: '8.35', to: bras, to_vc: '1.35', line: home }
  - { from: bob, vc: '8.35', to: bras, to_vc: '1.36', line: bob }
routers: { bras: { on: core, elans: { home: 10.1.0.1, bob: 10.2.0.1 } } }
hosts:
  modem: { on: dslam, elan: home, ip: 10.1.0.2, bridge: { pc1: 10.1.0.11, pc2: 10.1.0.12 }, link: { rate: 1Mbps } }
  bob: { on: dslam, elan: bob, ip: 10.2.0.2 }
traffic:
  - { name: inside, from: pc1, to: pc2, kind: ping, rate: 10pps, start: 2s, duration: 2s }
  - { name: out, from: pc1, to: bob, kind: ping, rate: 10pps, size: 1400, start: 2s, duration: 2s }
  - { name: in, from: bob, to: pc2, kind: udp, rate: 20pps, size: 500, start: 2s, duration: 2s }
  - { name: own, from: modem, to: bob, kind: ping, rate: 10pps, start: 2s, duration: 2s }
";

/// Stations behind a modem reach each other by their cable and others by the line; frames among them stay at home.
#[test]
fn a_modem_bridges_its_ethernet_to_its_line() {
    for encapsulation in Encapsulation::lines().filter(|one| one.is_bridged()) {
        let (lab, report) = run(&MODEM.replace("ENCAPSULATION", encapsulation.name()));
        for (flow, packets) in report.flows.iter().zip([20, 20, 40, 20]) {
            let path = &flow.paths[0];
            assert_eq!(
                path.received_packets, packets,
                "{encapsulation} {}",
                flow.name
            );
            assert_eq!(lab.lost_by(path).len(), 0, "{encapsulation} {}", flow.name);
        }
        let (modem, bras) = (counters(&report, "modem"), counters(&report, "bras"));
        assert_eq!(modem["sent"], bras["delivered"], "{encapsulation}");
        assert_eq!(bras["sent"], modem["delivered"], "{encapsulation}");
        // Four requests and answers of ARP, an address that is heard for the first time, and 20 pings twice; the pings
        // inside are no frames of the line.
        let sent: u64 = modem["sent"].parse().expect("a number");
        assert!((40..60).contains(&sent), "{encapsulation}: {sent}");
    }
}

/// An edge device with a VLAN that is an ELAN, and two that are lines to customers: frames stay in their VLAN.
#[test]
fn a_vlan_of_a_bridge_may_be_a_line() {
    let (lab, report) = run("
switches: { s1: {} }
lane: { on: s1, elans: { office: { subnet: 10.1.0.0/24 } } }
lines:
  north: { subnet: 10.8.0.0/24 }
  south: { subnet: 10.9.0.0/24, encapsulation: bridged-vcmux-fcs }
pvcs:
  - { from: gate, vc: '0.100', to: far, to_vc: '8.35', line: north }
  - { from: gate, vc: '0.101', to: deep, to_vc: '8.35', line: south }
hosts:
  desk: { on: s1, elan: office, ip: 10.1.0.20 }
  gate:
    { on: s1, elan: office, ip: 10.1.0.2, vlans: { 10: office, 20: north, 30: south },
      bridge: { pc1: 10.1.0.11, pc2: 10.8.0.11, pc3: 10.9.0.11 },
      ethernet: { ports: { e1: { stations: [pc1], vlan: 10 }, e2: { stations: [pc2, pc3], vlan: 20, trunk: [30] } } } }
  far: { on: s1, elan: north, ip: 10.8.0.20 }
  deep: { on: s1, elan: south, ip: 10.9.0.20 }
traffic:
  - { name: lan, from: pc1, to: desk, kind: ping, rate: 10pps, start: 2s, duration: 2s }
  - { name: north, from: pc2, to: far, kind: ping, rate: 10pps, start: 2s, duration: 2s }
  - { name: south, from: deep, to: pc3, kind: udp, rate: 10pps, start: 2s, duration: 2s }
");
    for flow in &report.flows {
        let path = &flow.paths[0];
        assert_eq!(path.received_packets, 20, "{}", flow.name);
        assert_eq!(lab.lost_by(path).len(), 0, "{}", flow.name);
    }
    // Frames of the other VLANs are not on a line.
    let (far, deep) = (counters(&report, "far"), counters(&report, "deep"));
    for got in [&far, &deep] {
        let delivered: u64 = got["delivered"].parse().expect("a number");
        assert!((1..30).contains(&delivered), "{delivered}");
    }
}

/// Packets that an end that is off and a line that is cut cost, each at its place.
#[test]
fn each_fault_of_a_line_has_its_place() {
    let udp = "{ from: a, to: b, kind: udp, rate: 100pps, size: 400, start: 1s, duration: 4s }";
    for encapsulation in Encapsulation::lines() {
        let text = line(encapsulation, 2_000_000, udp);
        let dark = text.clone() + "faults: [{ at: 2s, crash: b }, { at: 3s, restart: b }]\n";
        let cut = text.clone() + "faults: [{ at: 2s, link_down: a-b }, { at: 3s, link_up: a-b }]\n";
        // The sender's link has no light either way.
        for faults in [dark, cut] {
            let books = books(&faults, 0);
            let lost: u64 = books.lost.values().sum();
            assert_eq!(books.sent, books.delivered + lost + books.under_way);
            assert!(
                (98..=104).contains(&lost),
                "{encapsulation}: {:?}",
                books.lost
            );
            let known = |place: &&String| {
                ["a: connection closed", "b: switched off", "link a-b: cut"].contains(&&***place)
            };
            assert_eq!(
                books.lost.keys().filter(known).count(),
                books.lost.len(),
                "{:?}",
                books.lost
            );
        }
    }
}

/// A called line opens with its call, and opens again after each end was off.
#[test]
fn a_called_line_comes_back() {
    for encapsulation in Encapsulation::lines() {
        for faults in [
            "{ at: 2s, crash: b }, { at: 3s, restart: b }",
            "{ at: 2s, crash: a }, { at: 3s, restart: a }",
        ] {
            let text = format!(
                "switches: {{ s: {{}} }}\n\
                 lines: {{ dsl: {{ subnet: 10.1.0.0/30, encapsulation: {encapsulation}, calls: a }} }}\n\
                 hosts:\n  a: {{ on: s, elan: dsl, ip: 10.1.0.1 }}\n  b: {{ on: s, elan: dsl, ip: 10.1.0.2 }}\n\
                 traffic: [{{ from: a, to: b, kind: ping, rate: 10pps, start: 1s, duration: 19s }}]\n\
                 faults: [{faults}]\n"
            );
            let (lab, report) = run(&text);
            let path = &report.flows[0].paths[0];
            let lost: u64 = lab.lost_by(path).into_values().sum();
            // A call that the network has not cleared yet is in the way of no new one; the clearing takes T309 or less.
            assert!(
                path.received_packets >= 70,
                "{encapsulation} {faults}: {path:?}"
            );
            assert_eq!(
                path.sent_packets,
                path.received_packets + lost,
                "{encapsulation}"
            );
        }
    }
}

/// PPPoE leaves 1492 octets of an Ethernet frame.
#[test]
fn a_line_has_the_mtu_of_its_encapsulation() {
    for encapsulation in Encapsulation::lines() {
        let lab = lab_of("lines", &line(encapsulation, 1_000_000, ""), &[]);
        let mtu = if encapsulation.is_pppoe() { 1492 } else { 1500 };
        let own = &lab.node(lab.find("a").expect("a")).lecs()[0];
        assert_eq!(lab.mtu_of(own), mtu, "{encapsulation}");
    }
}

/// Every customer of the lab reaches its server, and each of its round trips has the cells of its encapsulation: the
/// differences between encapsulations are those of arithmetic.
#[test]
fn the_lab_of_lines_has_the_cells_of_its_encapsulations() {
    let lab = repository_lab("lines", &[]);
    let report = aerostat_sim::run::run(&lab, None, &mut ()).expect("no captures");
    let least = |encapsulation: Encapsulation, packet: u64| {
        let name = format!("{encapsulation}-{packet}");
        let flow = report.flows.iter().find(|flow| flow.name == name);
        let trip = &flow.expect("a flow of the lab").paths[0].round_trip;
        assert_eq!(trip.count, 15, "{name}");
        trip.min_us
    };
    for packet in [500, 1460] {
        let usual = least(Encapsulation::RoutedVc, packet);
        for encapsulation in Encapsulation::lines() {
            let more = cells(encapsulation, packet) - cells(Encapsulation::RoutedVc, packet);
            let measured = least(encapsulation, packet) - usual;
            // Each cell more costs some microseconds at OC-3, too, in both directions.
            let expected = more as f64 * 2.0 * 424.0;
            let error = (measured - expected).abs();
            assert!(
                error < 60.0,
                "{encapsulation} {packet}: {measured} for {expected}"
            );
        }
    }
}
