//! Start of traffic without `start:`: when all nodes on its path can be reached. A frame that is sent earlier misses
//! the members that the BUS does not reach yet, and a host repeats an ARP request only after a second.

use crate::bench::lab_of;
use aerostat_lab::event::Event;
use aerostat_lab::report::RunReport;
use aerostat_node::inspect::StateKind;
use aerostat_node::inspect::Value as Cell;
use aerostat_proto::{Duration, Instant};
use aerostat_sim::run::{LabRun, Watcher};

const DELAYS: [(&str, f64); 4] = [
    ("5us", 5e-6),
    ("1ms", 1e-3),
    ("20ms", 20e-3),
    ("250ms", 0.25),
];
/// The server beside the first host, beside the second, and beside none of them.
const SERVERS: [&str; 3] = ["s1", "s2", "s3"];

/// Seconds that an ARP request of a host at `from`, and its answer, take through the BUS at `server` to a node at `to`
/// and back.
fn round_trip(from: &str, server: &str, to: &str, trunk: f64) -> f64 {
    let place = |switch: &str| f64::from(switch.as_bytes()[1]);
    let trunks = (place(from) - place(server)).abs() + (place(server) - place(to)).abs();
    2.0 * trunks * trunk
}

/// Requests in such a time: the first, and one for each second without an answer, as a Linux host asks.
fn requests(round_trip: f64) -> u64 {
    1 + round_trip as u64
}

/// Three switches in a row with trunks of this delay, and the lab on them.
fn lab(delay: &str, rest: &str) -> String {
    format!(
        "switches: {{ s1: {{}}, s2: {{}}, s3: {{}} }}\n\
         links: [[s1, s2, {{ delay: {delay} }}], [s2, s3, {{ delay: {delay} }}]]\n{rest}\n\
         traffic:\n  \
         - {{ name: forth, from: a, to: b, kind: ping, rate: 10pps, duration: 3s }}\n  \
         - {{ name: back, from: b, to: a, kind: udp, rate: 10pps, size: 100, duration: 3s }}\n"
    )
}

fn one_elan(delay: &str, server: &str) -> String {
    let rest = format!(
        "lane: {{ on: {server}, elans: {{ e: {{ subnet: 10.1.0.0/24 }} }} }}\n\
         hosts: {{ a: {{ on: s1, elan: e, ip: 10.1.0.1 }}, b: {{ on: s2, elan: e, ip: 10.1.0.2 }} }}"
    );
    lab(delay, &rest)
}

/// A router far from both hosts and, if `mpoa`, a shortcut past it.
fn routed(delay: &str, server: &str, mpoa: bool) -> String {
    let rest = format!(
        "mpoa: {mpoa}\n\
         lane: {{ on: {server}, elans: {{ e: {{ subnet: 10.1.0.0/24 }}, f: {{ subnet: 10.2.0.0/24 }} }} }}\n\
         routers: {{ r: {{ on: s3, elans: {{ e: 10.1.0.254, f: 10.2.0.254 }} }} }}\n\
         hosts: {{ a: {{ on: s1, elan: e, ip: 10.1.0.1 }}, b: {{ on: s2, elan: f, ip: 10.2.0.1 }} }}"
    );
    lab(delay, &rest)
}

fn classical(delay: &str, server: &str) -> String {
    let rest = format!(
        "clip: {{ c: {{ subnet: 10.1.0.0/24, server: q }} }}\n\
         hosts:\n  a: {{ on: s1, elan: c, ip: 10.1.0.1 }}\n  b: {{ on: s2, elan: c, ip: 10.1.0.2 }}\n  \
         q: {{ on: {server}, elan: c, ip: 10.1.0.9 }}"
    );
    lab(delay, &rest)
}

/// The events of a run.
#[derive(Default)]
struct Told(Vec<Event>);

impl Watcher for Told {
    fn event(&mut self, event: &Event) {
        self.0.push(event.clone());
    }
}

fn run(text: &str) -> (RunReport, Vec<Event>) {
    let lab = lab_of("starts", text, &[]);
    let mut told = Told::default();
    let mut running = LabRun::new(&lab, &mut told);
    running.start();
    running.run_to_end();
    // What is still on long trunks then has time to arrive.
    running.run_until(running.end() + Duration::from_secs(5));
    let report = running.finish().expect("no captures");
    (report, told.0)
}

/// Frames to groups that the BUSs copied: only ARP requests, since no other frames of this test go to all.
fn arp_requests(report: &RunReport) -> u64 {
    let nodes = report.nodes.iter().flat_map(|(_, states)| states);
    let tables = nodes.filter(|(what, _)| *what == StateKind::Bus);
    let rows = tables
        .flat_map(|(_, tables)| tables)
        .flat_map(|table| &table.rows);
    let counts = rows.filter_map(|row| match &row[..] {
        [Cell::Text(name), Cell::Number(count)] if name == "group" => Some(*count),
        _ => None,
    });
    counts.sum()
}

/// Every packet of both flows arrived.
#[track_caller]
fn all_arrived(name: &str, report: &RunReport) {
    assert!(report.began.iter().all(Option::is_some), "{name}");
    for flow in &report.flows {
        let [offered, sent, delivered] = [
            flow.sum(|path| path.offered),
            flow.sum(|path| path.sent_packets),
            flow.sum(|path| path.received_packets),
        ];
        assert_eq!(
            [offered, sent, delivered],
            [30; 3],
            "{name}: {}: {flow:#?}",
            flow.name
        );
    }
}

#[test]
fn the_first_arp_request_of_a_flow_is_heard_however_long_the_trunks_are() {
    for (delay, trunk) in DELAYS {
        for server in SERVERS {
            // a at s1 and b at s2 ask for each other at one instant: each learns from the other's question.
            let direct = 2 * requests(round_trip("s1", server, "s2", trunk) / 2.0);
            // Each asks for the router at s3, which knows both by then.
            let routed_by = requests(round_trip("s1", server, "s3", trunk))
                + requests(round_trip("s2", server, "s3", trunk));
            let labs = [
                ("one ELAN", one_elan(delay, server), direct),
                ("router", routed(delay, server, false), routed_by),
                ("MPOA", routed(delay, server, true), routed_by),
            ];
            for (what, text, wanted) in labs {
                let name = format!("{what}, trunks of {delay}, server at {server}");
                let (report, told) = run(&text);
                let asked = arp_requests(&report);
                let at = report.flows[0].first.expect("it has sent").as_secs_f64();
                println!("{name}: from {at:.6} s, {asked} ARP requests");
                all_arrived(&name, &report);
                assert_eq!(asked, wanted, "{name}: {told:#?}");
            }
        }
    }
}

#[test]
fn the_first_packet_over_classical_ip_waits_for_no_timer_however_long_the_trunks_are() {
    for (delay, _) in DELAYS {
        for server in SERVERS {
            let name = format!("Classical IP, trunks of {delay}, server at {server}");
            let (report, _) = run(&classical(delay, server));
            all_arrived(&name, &report);
        }
    }
}

#[test]
fn a_run_in_parts_causes_each_fault_once_and_also_those_at_the_end_of_a_part() {
    let rest = "faults: [{ at: 5s, link_down: s1-s2 }, { at: 5s, link_down: s2-s3 }, { at: 6s, link_up: s1-s2 }]\n";
    let lab = lab_of("parts", &format!("{}{rest}", one_elan("5us", "s1")), &[]);
    let mut told = Told::default();
    let mut running = LabRun::new(&lab, &mut told);
    running.start();
    for seconds in [5, 5, 10] {
        running.run_until(Instant::from_secs(seconds));
    }
    running.finish().expect("no captures");
    let faults = told
        .0
        .iter()
        .filter(|event| event.event.starts_with("fault."));
    let times: Vec<f64> = faults.map(|event| event.time).collect();
    assert_eq!(times, [5.0, 5.0, 6.0]);
}
