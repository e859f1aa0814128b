//! VLANs of edge devices: each is an ELAN of its own.

use crate::bench::{Bench, lab_of};
use crate::bridges::rows;
use crate::losses::{books, only_at};
use aerostat_node::ip::meter::Path;
use aerostat_proto::Duration;
use aerostat_sim::NodeId;
use aerostat_testing::labs::check;

/// Two edge devices with access ports, trunks and a native VLAN, and a host in each ELAN.
const LAB: &str = "
switches: { s: {} }
lane: { on: s, elans: { red: { subnet: 10.1.0.0/24 }, blue: { subnet: 10.2.0.0/24 } } }
routers: { r: { on: s, elans: { red: 10.1.0.1, blue: 10.2.0.1 } } }
hosts:
  edge:
    on: s
    elan: red
    ip: 10.1.0.10
    vlans: { 20: blue, 10: red }
    bridge: { a: 10.1.0.20, b: 10.2.0.20, c: 10.1.0.21, d: 10.2.0.21, e: 10.2.0.22 }
    ethernet:
      rate: 100Mbps
      ports:
        e1: { stations: [a], vlan: 10 }
        e2: { stations: [b], vlan: 20 }
        up: { stations: [c, d], trunk: [20], vlan: 10 }
        all: { stations: [e], trunk: [10, 20] }
  far:
    on: s
    elan: blue
    ip: 10.2.0.11
    vlans: { 7: blue, 8: red }
    bridge: { f: 10.1.0.30, g: 10.2.0.30 }
    ethernet: { ports: { e1: { stations: [f, g], trunk: [7, 8] } } }
  host: { on: s, elan: blue, ip: 10.2.0.40 }
";

const PAIRS: [(&str, &str, &str); 9] = [
    // On the device: from access to native VLAN, from tag to tag, and to no tag.
    ("a", "c", "direct"),
    ("d", "e", "direct"),
    ("b", "e", "direct"),
    // Over ATM, where the VLAN has another number.
    ("a", "f", "direct"),
    ("e", "g", "direct"),
    ("b", "host", "direct"),
    ("c", "edge", "direct"),
    // Over the router, also on one cable, or between stations of one device.
    ("c", "d", "routed"),
    ("e", "f", "routed"),
];

fn flows(more: &str) -> String {
    let flows = PAIRS.map(|(from, to, _)| {
        format!("  - {{ from: {from}, to: {to}, kind: ping, rate: 10pps, start: 3s, duration: 4s{more} }}\n")
    });
    format!("{LAB}traffic:\n{}", flows.concat())
}

#[test]
fn stations_reach_each_other_in_their_vlan_and_over_the_router() {
    let text = flows("");
    for (number, (from, to, path)) in PAIRS.into_iter().enumerate() {
        let books = books(&text, number);
        assert_eq!(
            (books.sent, books.delivered, books.lost.len()),
            (40, 40, 0),
            "{from} {to}"
        );
        let lab = lab_of("vlans.atm.yml", &text, &[]);
        assert_eq!(lab.phase(number, Path::Lane), path, "{from} {to}");
    }
    let mut bench = Bench::new(lab_of("vlans.atm.yml", &text, &[]), 1);
    bench.run(Duration::from_secs(8));
    check::order(&bench).unwrap_or_else(|why| bench.fail(&why));
    check::cells(&bench).unwrap_or_else(|why| bench.fail(&why));
    let vlans = rows(&bench, "edge", "bridge", "vlans");
    let column = |name: &str| {
        vlans
            .iter()
            .map(|row| row[name].clone())
            .collect::<Vec<_>>()
    };
    // The VLAN of the device itself comes first.
    assert_eq!(column("vlan"), ["10", "20"]);
    assert_eq!(column("interface"), ["lec0", "lec1"]);
    assert_eq!(column("untagged"), ["e1 up", "e2"]);
    assert_eq!(column("tagged"), ["all", "up all"]);
    assert_eq!(column("addresses"), ["2", "3"]);
}

/// Broadcasts and frames for unknown stations of a VLAN leave by its ports only.
#[test]
fn no_frame_of_a_vlan_leaves_by_a_port_of_another() {
    let text = format!(
        "{LAB}traffic:\n  - {{ from: b, to: host, kind: ping, rate: 10pps, start: 3s, duration: 4s }}\n"
    );
    let mut bench = Bench::new(lab_of("vlans.atm.yml", &text, &[]), 1);
    bench.run(Duration::from_secs(8));
    let ports = rows(&bench, "edge", "bridge", "ports");
    let out = |port: &str| -> u64 {
        let mut found = ports.iter().filter(|row| row["port"] == port);
        found.next().expect("a port")["frames_out"]
            .parse()
            .expect("a number")
    };
    // b hears its echoes; the trunks hear the ARP requests of the VLAN, and the port of the other VLAN nothing.
    assert!(out("e2") >= 40 && (1..10).contains(&out("up")) && (1..10).contains(&out("all")));
    assert_eq!(out("e1"), 0);
}

/// A frame of 1514 octets on a cable of 100 Mb/s takes 123.04 µs with preamble, check sequence and gap, and 0.32 µs
/// more with a tag. Within the bridge it takes no time.
#[test]
fn a_tag_costs_its_octets_on_each_cable() {
    for (from, to, tags) in [("a", "c", 0), ("b", "d", 1), ("e", "b", 1), ("e", "d", 2)] {
        let text = format!(
            "{LAB}traffic:\n  - {{ from: {from}, to: {to}, kind: udp, size: 1472, rate: 100pps, start: 3s, duration: 1s }}\n"
        );
        let (lab, report) = crate::losses::run(&text);
        let flow = &report.flows[0];
        let path = flow.paths.iter().find(|path| path.received_packets > 0);
        let path = path.unwrap_or_else(|| panic!("{}", lab.traffic[0].name));
        let expected = 2.0 * 123.04 + f64::from(tags) * 0.32;
        let least = path.delay.min_us;
        assert!(
            (least - expected).abs() < 1e-6,
            "{from} {to}: {least} µs, not {expected}"
        );
    }
}

/// A flood in one VLAN fills the ports of that VLAN, and the other VLAN keeps what it had.
#[test]
fn a_flood_in_one_vlan_is_lost_at_its_port() {
    let text = format!(
        "{LAB}traffic:
  - {{ from: g, to: b, kind: ping, rate: 10pps, start: 1s, duration: 1s }}
  - {{ from: host, to: g, kind: udp, size: 1472, rate: 3000pps, start: 3s, duration: 500ms, expect: loss }}
  - {{ from: a, to: c, kind: udp, size: 1472, rate: 1000pps, start: 3s, duration: 500ms }}
"
    );
    let flooded = books(&text, 1);
    // 810 tagged frames/s pass the cable of 10 Mb/s, and 512 wait.
    assert!(
        only_at(&flooded, "far: Ethernet port full") > 500,
        "{:?}",
        flooded.lost
    );
    let other = books(&text, 2);
    assert_eq!((other.sent, other.delivered), (500, 500));
}

/// The device crashes and comes back: each of its clients joins its ELAN again.
#[test]
fn a_restart_brings_every_vlan_back() {
    let mut bench = Bench::new(lab_of("vlans.atm.yml", &flows(""), &[]), 1);
    bench.run(Duration::from_millis(4500));
    let edge = NodeId(bench.lab.find("edge").expect("a host").0);
    bench.power_off(edge);
    bench.run(Duration::from_millis(500));
    bench.power_on(edge);
    bench.run(Duration::from_secs(6));
    check::cells(&bench).unwrap_or_else(|why| bench.fail(&why));
    let joined = rows(&bench, "edge", "port", "interfaces");
    let states: Vec<&str> = joined.iter().map(|row| row["up"].as_str()).collect();
    assert_eq!(states, ["yes"; 2], "{joined:?}");
    let text = flows(", expect: loss").replace(
        "\ntraffic:",
        "\nfaults: [{ at: 4s, crash: edge }, { at: 4500ms, restart: edge }]\ntraffic:",
    );
    for (number, (from, to, _)) in PAIRS.into_iter().enumerate() {
        let books = books(&text, number);
        let lost: u64 = books.lost.values().sum();
        assert_eq!(books.offered, books.sent + books.refused, "{from} {to}");
        assert_eq!(
            books.sent,
            books.delivered + lost + books.under_way,
            "{from} {to}"
        );
        assert!(books.delivered >= 20, "{from} {to}: {:?}", books.lost);
    }
}
