//! Bridged lines as ports of an embedded bridge, between Linux kernel hosts.
//!
//! Without /dev/net/tun or the privilege for namespaces these tests are skipped with a message.

use crate::lab_file;
use crate::live::{Runtime, can_run, has};

/// Customers on lines that a bridge joins to an ELAN: kernel hosts at both ends, with ARP, TCP and a broadcast of their
/// own, through the embedded bridge.
#[test]
fn kernel_hosts_on_lines_and_on_the_elan_are_one_network() {
    if !can_run() || !has("ping") || !has("iperf3") {
        return;
    }
    let lab = Runtime::new("line-ports");
    let path = lab_file(
        "line-ports.atm.yml",
        "
switches: { s1: {}, dslam: {} }
links: [[s1, dslam]]
lane: { on: s1, elans: { office: { subnet: 10.1.0.0/24 } } }
lines: { home1: { elan: office }, home2: { elan: office, encapsulation: bridged-vcmux-fcs, calls: c2 } }
pvcs: [{ from: edge, vc: 1.100, to: c1, to_vc: 8.35, line: home1 }]
hosts:
  edge: { on: s1, elan: office, ip: 10.1.0.2, lines: [home1, home2] }
  desk: { on: s1, elan: office, ip: 10.1.0.4 }
  c1: { on: dslam, elan: home1, ip: 10.1.0.11 }
  c2: { on: dslam, elan: home2, ip: 10.1.0.12 }
",
    );
    lab.ok(&["up", "-d", "-q", &path]);
    for (from, to) in [
        ("c1", "10.1.0.4"),
        ("desk", "10.1.0.12"),
        ("c2", "10.1.0.11"),
        ("c1", "10.1.0.2"),
    ] {
        lab.pings(
            &[from],
            &["-q", "-c", "20", "-i", "0.02", "-s", "1472", "-M", "do", to],
        );
    }
    // Neighbours have the MAC addresses of each other: nothing routes between them.
    let known = lab.ok(&["exec", "desk", "--", "ip", "neigh", "show", "10.1.0.12"]);
    let mac = known
        .split_whitespace()
        .skip_while(|word| *word != "lladdr")
        .nth(1);
    let own = lab.ok(&["exec", "c2", "--", "ip", "-o", "link"]);
    assert!(own.contains(mac.expect("a neighbour")), "{own} {known}");
    let learned = lab.ok(&["inspect", "edge", "bridge"]);
    for line in ["home1", "home2"] {
        assert!(learned.contains(line), "{learned}");
    }
    for (from, to) in [("c1", "desk"), ("desk", "c2")] {
        lab.ok(&["iperf", from, to, "--time", "1"]);
    }
    lab.ends();
}
