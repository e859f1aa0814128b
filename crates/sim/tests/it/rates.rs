//! Packets offered by flows: rate times duration, also at high rates and after a crash of the sender.

use crate::bench::{Bench, lab_of};
use aerostat_lab::model::{Lab, NodeKind};
use aerostat_node::inspect::StateKind;
use aerostat_sim::run::run;
use std::path::Path;

const PAIR: &str = "\
switches: { s1: {} }
clip: { n: { subnet: 10.0.0.0/24, server: b, mtu: 1800 } }
hosts: { a: { on: s1, elan: n, ip: 10.0.0.1 }, b: { on: s1, elan: n, ip: 10.0.0.2 } }
";

fn pair(flow: &str, more: &str) -> Lab {
    let text =
        format!("{PAIR}traffic: [{{ from: a, to: b, kind: udp, size: 100, {flow} }}]\n{more}");
    lab_of("pair.atm.yml", &text, &[])
}

fn offered(lab: &Lab) -> u64 {
    let report = run(lab, None::<&Path>, &mut ()).unwrap();
    let paths = report.flows[0].paths.iter();
    paths.map(|path| path.offered).sum()
}

#[test]
fn flows_offer_what_their_rate_says_above_a_million_and_below_one_packet_per_second() {
    for (rate, packets) in [
        ("900000pps, duration: 10ms", 9_000),
        ("2500000pps, duration: 4ms", 10_000),
        // 1.25 million datagrams of 100 octets per second.
        ("1Gbps, duration: 8ms", 10_000),
        ("0.5pps, duration: 10s", 5),
        ("2.5pps, duration: 10s", 25),
    ] {
        let lab = pair(&format!("start: 1s, rate: {rate}"), "");
        assert_eq!(offered(&lab), packets, "{rate}");
    }
}

#[test]
fn a_sender_that_crashes_comes_back_for_what_is_left_of_its_duration() {
    let faults = "faults: [{ at: 3s, crash: a }, { at: 3500ms, restart: a }]\nuntil: 20s\n";
    for start in ["start: 1s, ", ""] {
        let lab = pair(&format!("{start}rate: 100pps, duration: 4s"), faults);
        let packets = offered(&lab);
        // Four seconds minus half a second. The sender that waits for its hosts is absent until it has registered
        // again. The packet at the moment of the crash counts.
        assert!((250..=351).contains(&packets), "{start}: {packets}");
    }
    let over = "faults: [{ at: 6s, crash: a }, { at: 7s, restart: a }]\nuntil: 20s\n";
    let lab = pair("start: 1s, rate: 100pps, duration: 4s", over);
    assert_eq!(offered(&lab), 400);
}

#[test]
fn interfaces_of_classical_ip_show_their_own_mtu() {
    let lab = pair("rate: 10pps, duration: 1s", "until: 3s\n");
    let mut bench = Bench::new(lab.clone(), 1);
    bench.run(aerostat_proto::Duration::from_secs(2));
    for (id, _) in lab
        .nodes()
        .filter(|(_, node)| matches!(node.kind, NodeKind::Host(_)))
    {
        let node = bench.world.node(aerostat_sim::NodeId(id.0)).unwrap();
        let tables = node.inspect(StateKind::Port, bench.now()).unwrap();
        let interfaces = tables
            .iter()
            .find(|table| table.title == "interfaces")
            .unwrap();
        let column = interfaces
            .columns
            .iter()
            .position(|name| *name == "mtu_octets")
            .unwrap();
        assert_eq!(interfaces.rows[0][column].to_string(), "1800");
    }
}
