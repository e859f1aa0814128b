//! The lab with small TCP buffers beside its closed forms.

use crate::losses::books;
use aerostat_lab::report::RunReport;
use aerostat_node::ip::apps::AppResult;
use aerostat_sim::run::LabRun;

fn run() -> (aerostat_lab::Lab, RunReport) {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../labs/tcp-windows.atm.yml"
    );
    let lab = aerostat_lab::read(path.as_ref(), &[]).expect("the lab").lab;
    let mut watcher = ();
    let mut running = LabRun::new(&lab, &mut watcher);
    running.start();
    running.run_to_end();
    let report = running.finish().expect("no captures");
    (lab, report)
}

/// One flow over a queue that marks from `efci` cells on, under LANE, Classical IP and a shortcut of MPOA.
fn marked(over: &str, efci: u32, ecn: [bool; 2]) -> String {
    let (services, ends) = match over {
        "lane" => (
            "lane: { on: s1, elans: { n: { subnet: 10.1.0.0/24 } } }",
            ["n", "n"],
        ),
        "clip" => (
            "clip: { n: { subnet: 10.1.0.0/24, server: b } }",
            ["n", "n"],
        ),
        "mux" => (
            "clip: { n: { subnet: 10.1.0.0/24, server: b } }\n\
             pvcs: [{ from: a, vc: 0.100, to: b, mux: true }]",
            ["n", "n"],
        ),
        _ => (
            "mpoa: true\n\
             lane: { on: s1, elans: { n: { subnet: 10.1.0.0/24 }, m: { subnet: 10.2.0.0/24 } } }\n\
             routers: { r: { on: s2, elans: { n: 10.1.0.254, m: 10.2.0.254 } } }",
            ["n", "m"],
        ),
    };
    let far = if ends[1] == "n" { 1 } else { 2 };
    format!(
        "switches: {{ s1: {{}}, s2: {{}} }}\n\
         links: [[s1, s2, {{ rate: 10Mbps, delay: 5ms, queues: {{ buffer: 1000, efci: {efci} }} }}]]\n\
         {services}\n\
         hosts:\n\
         \x20 a: {{ on: s1, elan: {}, ip: 10.1.0.1, tcp: {{ congestion: reno, mss: 1400, ecn: {} }} }}\n\
         \x20 b: {{ on: s2, elan: {}, ip: 10.{far}.0.2, tcp: {{ ecn: {} }} }}\n\
         traffic: [{{ name: t, from: a, to: b, kind: tcp, start: 5s, duration: 8s }}]\n",
        ends[0], ecn[0], ends[1], ecn[1],
    )
}

#[test]
fn marks_of_cells_reach_tcp_over_every_encapsulation_and_only_if_both_ends_want_them() {
    for over in ["lane", "clip", "mux", "shortcut"] {
        for (ecn, hears) in [
            ([true, true], true),
            ([true, false], false),
            ([false, true], false),
        ] {
            let books = books(&marked(over, 250, ecn), 0);
            let lost: u64 = books.lost.values().sum();
            assert!(books.delivered > 1000, "{over}: {}", books.delivered);
            assert_eq!(lost == 0, hears, "{over}, {ecn:?}: {:?}", books.lost);
        }
    }
}

#[test]
fn one_segment_waits_for_the_acknowledgement_and_three_cross_in_a_round_trip() {
    let (lab, report) = run();
    let mbps = |name: &str| {
        let index = lab.traffic.iter().position(|flow| flow.name == name);
        let of = |(flow, role, result): &(usize, &str, AppResult)| match result {
            AppResult::TcpSource(source) if Some(*flow) == index && *role == "from" => {
                Some(source.throughput_mbps)
            }
            _ => None,
        };
        report.programs.iter().find_map(of).expect(name)
    };
    // A segment of 9136 octets is a PDU of 192 cells, an acknowledgement has 2. TAXI: 54 octets in 80 ns steps for each
    // cell. Three lines one way, all cells except the first ones of a PDU cross them together.
    let cell = 54.0 * 80e-9;
    let way = 0.005 + 2.0 * 0.000_005;
    let round_trip = 2.0 * way + (192.0 + 2.0 + 4.0 * 1.0) * cell;
    let segment = 9136.0 * 8.0 / 1e6;
    for (name, form) in [
        ("interval", segment / (0.2 + round_trip)),
        ("tick", segment / 0.2),
        ("window", 3.0 * segment / round_trip),
    ] {
        let got = mbps(name);
        // Slow start costs some round trips.
        assert!(
            (got / form - 1.0).abs() < 0.03,
            "{name}: {got}, {form} in theory"
        );
    }
    let stacks: Vec<_> = lab.traffic.iter().map(|flow| lab.tcp_of(flow)).collect();
    let [none, reno] = ["reno none", "reno"].map(|name| Some(name.to_owned()));
    assert_eq!(stacks, [none.clone(), none, reno]);
}
