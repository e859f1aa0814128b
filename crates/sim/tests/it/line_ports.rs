//! Bridged lines as ports of a bridge: customers and an ELAN, or a VLAN, are one network.

use crate::losses::{books, run};
use aerostat_node::inspect::StateKind;

/// Two customers on an office's ELAN, with a router to another one.
const OFFICE: &str = "
mpoa: true
switches: { s1: {}, s2: {}, dslam: {} }
links: [[s1, s2], [s2, dslam]]
lane: { on: s1, elans: { office: { subnet: 10.1.0.0/24 }, core: { subnet: 10.9.0.0/24 } } }
lines:
  home1: { elan: office }
  home2: { elan: office, encapsulation: bridged-vcmux-fcs, calls: edge }
pvcs: [{ from: edge, vc: 1.100, to: c1, to_vc: 8.35, line: home1 }]
routers: { gw: { on: s1, elans: { office: 10.1.0.1, core: 10.9.0.1 } } }
hosts:
  edge: { on: s2, elan: office, ip: 10.1.0.2, bridge: { local: 10.1.0.3 }, lines: [home1, home2] }
  desk: { on: s1, elan: office, ip: 10.1.0.4 }
  far: { on: s1, elan: core, ip: 10.9.0.2 }
  c1: { on: dslam, elan: home1, ip: 10.1.0.11 }
  c2: { on: dslam, elan: home2, ip: 10.1.0.12, bridge: { behind: 10.1.0.13 } }
traffic:
  - { name: to-desk, from: c1, to: desk, kind: ping, rate: 10pps, start: 3s, duration: 2s }
  - { name: to-edge, from: c1, to: edge, kind: ping, rate: 10pps, start: 3s, duration: 2s }
  - { name: to-local, from: c2, to: local, kind: ping, rate: 10pps, start: 3s, duration: 2s }
  - { name: between, from: c1, to: behind, kind: ping, rate: 10pps, start: 3s, duration: 2s }
  - { name: own, from: edge, to: c2, kind: ping, rate: 10pps, start: 3s, duration: 2s }
  - { name: out, from: far, to: c1, kind: udp, rate: 100pps, start: 3s, duration: 2s }
  - { name: file, from: desk, to: behind, kind: tcp, start: 3s, duration: 2s }
until: 6s
";

/// Customers reach the ELAN, the bridge, its stations, each other, and other networks by the router. A packet from one
/// of these takes a shortcut to the bridge in front of them.
#[test]
fn customers_are_stations_of_the_elan() {
    let (lab, report) = run(OFFICE);
    for flow in &report.flows[..5] {
        assert_eq!(flow.paths[0].received_packets, 20, "{}", flow.name);
        assert_eq!(lab.lost_by(&flow.paths[0]).len(), 0, "{}", flow.name);
    }
    let out: Vec<u64> = (report.flows[5].paths.iter())
        .map(|path| path.received_packets)
        .collect();
    assert_eq!((out.len(), out.iter().sum()), (2, 200));
    let file: u64 = (report.flows[6].paths.iter())
        .map(|path| path.received_packets)
        .sum();
    // The cable behind the customer carries 10 Mb/s.
    assert!(file > 1500, "TCP: {file}");
    // The bridge knows each customer at the port of its line.
    let (_, kinds) = (report.nodes.iter().find(|(name, _)| name == "edge")).expect("it");
    let (_, tables) = (kinds.iter().find(|(kind, _)| *kind == StateKind::Bridge)).expect("one");
    let learned = tables[1].rows.iter().map(|row| row[2].to_string());
    let learned: Vec<String> = learned.collect();
    for line in ["home1", "home2"] {
        assert!(
            learned.iter().any(|port| port == line),
            "{line}: {learned:?}"
        );
    }
}

/// Each VLAN of an edge device has lines of its own; one of them has no ELAN, and another has long frames.
#[test]
fn each_vlan_has_lines_of_its_own() {
    let (lab, report) = run("
switches: { s1: {}, s2: {}, dslam: {} }
links: [[s1, s2], [s2, dslam]]
lane: { on: s1, elans: { red: { subnet: 10.1.0.0/24 }, blue: { subnet: 10.2.0.0/24, mtu: 4544 } } }
lines: { r1: { elan: red }, b1: { elan: blue }, b2: { elan: blue }, alone: { subnet: 10.3.0.0/24 }, a2: { elan: alone } }
pvcs:
  - { from: edge, vc: 1.100, to: cr, to_vc: 8.35, line: r1 }
  - { from: edge, vc: 1.101, to: cb, to_vc: 8.35, line: b1 }
  - { from: edge, vc: 1.102, to: cb2, to_vc: 8.35, line: b2 }
  - { from: edge, vc: 1.103, to: ca, to_vc: 8.35, line: alone }
  - { from: edge, vc: 1.104, to: ca2, to_vc: 8.35, line: a2 }
routers: { gw: { on: s1, elans: { red: 10.1.0.1, blue: 10.2.0.1 } } }
hosts:
  edge: { on: s2, elan: red, ip: 10.1.0.2, vlans: { 10: red, 20: blue, 30: alone }, lines: [r1, b1, b2, a2] }
  cr: { on: dslam, elan: r1, ip: 10.1.0.11 }
  cb: { on: dslam, elan: b1, ip: 10.2.0.11, bridge: { behind: 10.2.0.13 } }
  cb2: { on: dslam, elan: b2, ip: 10.2.0.12 }
  ca: { on: dslam, elan: alone, ip: 10.3.0.11 }
  ca2: { on: dslam, elan: a2, ip: 10.3.0.12 }
traffic:
  - { name: red-blue, from: cr, to: cb, kind: ping, rate: 10pps, start: 3s, duration: 2s }
  - { name: long, from: cb2, to: cb, kind: ping, rate: 10pps, size: 4000, start: 3s, duration: 2s }
  - { name: behind, from: cr, to: behind, kind: ping, rate: 10pps, start: 3s, duration: 2s }
  - { name: alone, from: ca, to: ca2, kind: ping, rate: 10pps, start: 3s, duration: 2s }
until: 6s
");
    for flow in &report.flows {
        assert_eq!(flow.paths[0].received_packets, 20, "{}", flow.name);
        assert_eq!(lab.lost_by(&flow.paths[0]).len(), 0, "{}", flow.name);
    }
}

/// A customer that is off, a line that is cut, and a bridge that starts again: what is lost has its place.
#[test]
fn faults_of_lines_and_bridges_have_their_places() {
    for (faults, places) in [
        (
            "crash: c1 }, { at: 4s, restart: c1",
            &["c1: switched off"][..],
        ),
        (
            "link_down: c1-dslam }, { at: 4s, link_up: c1-dslam",
            &["c1: connection closed", "link c1-dslam: cut"],
        ),
        (
            "crash: edge }, { at: 4s, restart: edge",
            &[
                "edge: switched off",
                "edge: not joined",
                // The router learns that the bridge is off, and asks for the customer again.
                "gw: flooded, and for nobody here",
                "gw: too many packets wait for the destination",
                "s1 port 4 from far: unknown VC",
            ],
        ),
    ] {
        let text = format!("{OFFICE}faults: [{{ at: 3500ms, {faults} }}]\n");
        for flow in [0, 1, 3, 5] {
            let books = books(&text, flow);
            let lost: u64 = books.lost.values().sum();
            assert_eq!(books.sent, books.delivered + lost + books.under_way);
            assert!(
                lost > 0 && books.delivered > 0,
                "{faults} {flow}: {:?}",
                books.lost
            );
            for place in books.lost.keys() {
                assert!(
                    places.contains(&&**place),
                    "{faults} {flow}: {:?}",
                    books.lost
                );
            }
        }
    }
}
