//! One connection for both directions, between two hosts that each see the other's calls: thesis Figure 6.1.

use crate::bench::{Bench, lab_of};
use crate::check;
use aerostat_node::host::ServiceKind;
use aerostat_node::ip::meter::Path;
use aerostat_node::signalling::{CallInfo, Phase};
use aerostat_proto::{Duration, Instant};

const LAB: &str = "
mpoa: true
switches: { s1: {}, s2: {} }
links: [[s1, s2]]
lane: { on: s1, elans: { pcs: { subnet: 10.1.0.0/24 }, suns: { subnet: 10.2.0.0/24 } } }
routers: { r: { on: s1, elans: { pcs: 10.1.0.1, suns: 10.2.0.1 } } }
hosts:
  a: { on: s1, elan: pcs, ip: 10.1.0.10 }
  b: { on: s2, elan: suns, ip: 10.2.0.10 }
traffic:
  - { name: there, from: a, to: b, kind: udp, rate: 50pps, size: 100, start: 2s, duration: 28s }
  - { name: back, from: b, to: a, kind: udp, rate: 50pps, size: 100, start: 2s, duration: 28s }
";
const ENTRY: [&str; 2] = [
    "hosts.a.mpoa.qos=['10.2.0.10 tx=8000,1600 rx=tx']",
    "hosts.b.mpoa.qos=['10.1.0.10 tx=8000,1600 rx=tx']",
];

/// Open connections between the data addresses of two hosts, each with its peak rate, as signalling of the first has
/// them.
fn connections(bench: &Bench, from: &str, to: &str) -> Vec<Option<u32>> {
    let host = |name: &str| bench.station(bench.node(name)).unwrap().host();
    let address = |name: &str| {
        let id = bench.node(name);
        bench.lab.node(id).attachment().unwrap().address
    };
    let there = address(to);
    let calls = host(from).signalling().calls();
    let open = calls.filter(|call| call.phase == Phase::Connected);
    let peer = |call: &CallInfo| match call.outgoing {
        true => Some(call.called),
        false => call.calling,
    };
    let between = open.filter(|call| peer(call).is_some_and(|peer| peer.same_end_system(&there)));
    between.map(|call| call.qos.tx.max_pcr).collect()
}

fn world(set: &[&str], seed: u64) -> Bench {
    Bench::new(lab_of("both", LAB, set), seed)
}

fn runs_until(bench: &mut Bench, seconds: u64) {
    let end = Instant::from_secs(seconds);
    let left = end.since(bench.now());
    bench.run(left);
}

fn one_for_both(bench: &Bench, what: &str, rate: Option<u32>) {
    for (from, to) in [("a", "b"), ("b", "a")] {
        let found = connections(bench, from, to);
        assert_eq!(found, [rate], "{what}: {from} to {to}");
    }
}

fn both_by_shortcut(bench: &Bench) {
    let flows = ["there", "back"].map(|name| bench.flow(name));
    if let Err(why) = bench.all_by(&flows, Path::Shortcut) {
        bench.fail(&why);
    }
}

/// Flows in both directions from the same moment on, with an entry at either end, at both, or at none, for five seeds:
/// one connection is left, and it has the contract of the entry.
#[test]
fn one_connection_is_left_whoever_has_an_entry() {
    for seed in 1..=5 {
        for (set, rate) in [
            (&ENTRY[..1], Some(8000)),
            (&ENTRY[1..], Some(8000)),
            (&ENTRY[..], Some(8000)),
            (&[][..], None),
        ] {
            let mut bench = world(set, seed);
            runs_until(&mut bench, 6);
            one_for_both(&bench, &format!("{set:?} seed {seed}"), rate);
            both_by_shortcut(&bench);
            check::seats(&bench).unwrap_or_else(|why| bench.fail(&why));
        }
    }
}

/// The client at one end crashes and comes back; the connection between the switches is cut and comes back. Packets go
/// on, and in the end there is one connection again.
#[test]
fn after_a_crash_there_is_one_connection_again() {
    for end in ["a", "b"] {
        let mut bench = world(&ENTRY[..1], 1);
        runs_until(&mut bench, 6);
        let id = bench.node(end);
        bench.crash(id, ServiceKind::Mpc);
        bench.run(Duration::from_secs(1));
        bench.restart(id, ServiceKind::Mpc);
        runs_until(&mut bench, 20);
        one_for_both(&bench, &format!("{end} restarted"), Some(8000));
        both_by_shortcut(&bench);
    }
    let mut bench = world(&ENTRY[..1], 2);
    runs_until(&mut bench, 6);
    let trunk = bench.link("s1-s2");
    bench.cut(trunk, true);
    bench.run(Duration::from_secs(2));
    bench.cut(trunk, false);
    runs_until(&mut bench, 28);
    one_for_both(&bench, "the trunk is back", Some(8000));
    both_by_shortcut(&bench);
}
