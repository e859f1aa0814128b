//! Number of packets from senders of each kind: rate times duration, at every rate.

use crate::bench::lab_of;
use aerostat_lab::model::Lab;
use aerostat_lab::report::RunReport;
use aerostat_sim::run::LabRun;

/// Two hosts of an ELAN at a switch with traffic between them, plus `rest`.
fn pair(rest: &str) -> String {
    format!(
        "name: t\nswitches: {{ s1: {{}} }}\nlane: {{ on: s1, elans: {{ e: {{ subnet: 10.1.0.0/24 }} }} }}\n\
         hosts:\n  a: {{ on: s1, elan: e, ip: 10.1.0.10 }}\n  b: {{ on: s1, elan: e, ip: 10.1.0.20 }}\n{rest}"
    )
}

fn run(rest: &str) -> (Lab, RunReport) {
    let lab = lab_of("rates", &pair(rest), &[]);
    let mut watcher = ();
    let mut running = LabRun::new(&lab, &mut watcher);
    running.start();
    running.run_to_end();
    let report = running.finish().expect("no captures");
    (lab, report)
}

/// A flow of echo requests that has both hosts find each other before other flows begin.
const WARM: &str =
    "  - { name: warm, from: a, to: b, kind: ping, rate: 1pps, start: 1s, duration: 4s }\n";

fn run_text(text: &str) -> RunReport {
    let mut watcher = ();
    let lab = lab_of("rates", text, &[]);
    aerostat_sim::run::run(&lab, None, &mut watcher).expect("no captures")
}

/// Packets offered by each flow of a lab.
fn offered(rest: &str) -> Vec<u64> {
    let (_, report) = run(rest);
    let flows = report.flows.iter();
    flows.map(|flow| flow.sum(|path| path.offered)).collect()
}

#[test]
fn a_flow_offers_its_rate_times_its_duration_whatever_its_rate() {
    // Rate, octets, duration in seconds, and packets: the product, rounded up.
    let cases = [
        ("udp", "0.3pps", 1000, "20", 6),
        ("udp", "1.4pps", 1000, "20", 28),
        ("udp", "2.5pps", 1000, "20", 50),
        ("udp", "100kbps", 1472, "20", 170),
        ("udp", "0.4kbps", 100, "20", 10),
        ("udp", "700000pps", 24, "0.01", 7000),
        ("udp", "900000pps", 24, "0.01", 9000),
        ("udp", "100Gbps", 1000, "0.0005", 6250),
        ("ping", "3pps", 56, "10", 30),
        ("ping", "0.3pps", 56, "20", 6),
        ("ping", "64kbps", 56, "1", 143),
    ];
    let flows: String = (cases.iter().enumerate())
        .map(|(index, (kind, rate, size, seconds, _))| {
            format!(
                "  - {{ name: f{index}, from: a, to: b, kind: {kind}, rate: {rate}, size: {size}, \
                 start: {}s, duration: {seconds}s }}\n",
                1 + index
            )
        })
        .collect();
    let offered = offered(&format!("traffic:\n{flows}"));
    for ((kind, rate, size, seconds, packets), offered) in cases.iter().zip(offered) {
        assert_eq!(
            offered, *packets,
            "{kind} {rate} size {size} for {seconds} s"
        );
    }
}

#[test]
fn poisson_packets_come_at_the_rate_that_the_file_gives() {
    for (rate, seconds) in [("2.5pps", 1200.0), ("1500000pps", 0.002)] {
        let flow = format!(
            "traffic: [{{ name: f, from: a, to: b, kind: udp, size: 24, rate: {rate}, poisson: true, start: 1s, \
             duration: {seconds}s }}]\n"
        );
        // 3000 packets are expected, with a standard deviation of their square root.
        let packets = offered(&flow)[0] as f64;
        assert!(
            (packets - 3000.0).abs() < 4.0 * 3000_f64.sqrt(),
            "{rate}: {packets}"
        );
    }
}

#[test]
fn a_program_of_a_socket_keeps_its_rate_too() {
    // At 200000 PDUs a second, the last of 2001 is due 10 ms after the first, and the line is fast enough for them.
    let text = pair("").replace(
        "10.1.0.10 }",
        "10.1.0.10, sockets: [{ name: w, call: b, pdus: 2001, rate: 200000pps, size: 8 }] }",
    );
    let text = text.replace(
        "10.1.0.20 }",
        "10.1.0.20, sockets: [{ name: r, listen: read }] }",
    );
    let lab = lab_of("rates", &text, &[]);
    // The call begins after a second, and the grace of every run follows.
    assert_eq!(
        lab.end().as_nanos() % 1_000_000_000,
        10_000_000,
        "{:?}",
        lab.end()
    );
}

#[test]
fn a_sender_that_starts_again_goes_on_to_the_end_that_it_had() {
    // Ten packets a second for a second: a restart in the middle of an interval does not add packets, a crash reduces
    // their number.
    for (kind, start) in [("udp", "start: 1s, "), ("ping", "start: 1s, "), ("udp", "")] {
        let flow = format!(
            "traffic: [{{ name: f, from: a, to: b, kind: {kind}, rate: 10pps, {start}duration: 1s }}]\n"
        );
        let whole = offered(&flow)[0];
        assert_eq!(whole, 10, "{kind} {start}");
        let again = offered(&format!("{flow}faults: [{{ at: 1450ms, restart: a }}]\n"))[0];
        assert!((5..=10).contains(&again), "{kind} {start}: {again}");
    }
    // A crash from just before 2 s to just before 4 s of a flow from 1 s to 5 s: 100 packets before, 100 after, and
    // none after its end.
    let flow = "traffic: [{ name: f, from: a, to: b, kind: udp, rate: 100pps, start: 1s, duration: 4s }]\n\
                until: 12s\nfaults: [{ at: 1995ms, crash: a }, { at: 3995ms, restart: a }]\n";
    assert_eq!(offered(flow), [200]);
}

#[test]
fn throughput_is_over_the_time_of_the_schedule() {
    // Rate, duration in milliseconds, and packets: all arrive before the next one would be due, so that the throughput
    // is their octets over the duration.
    let cases = [
        ("1pps", 500, 1_u32),
        ("2pps", 1000, 2),
        ("1pps", 2000, 2),
        ("10pps", 1000, 10),
        ("1000pps", 1000, 1000),
    ];
    let flows: String = (cases.iter().enumerate())
        .map(|(index, (rate, millis, _))| {
            format!(
                "  - {{ name: f{index}, from: a, to: b, kind: udp, rate: {rate}, size: 1000, start: 8s, \
                 duration: {millis}ms, group: all }}\n"
            )
        })
        .collect();
    let (lab, report) = run(&format!("traffic:\n{WARM}{flows}"));
    let rates = cases.map(|(_, millis, packets)| f64::from(packets) * 8.0 / f64::from(millis));
    for ((case, flow), rate) in cases.iter().zip(&report.flows[1..]).zip(rates) {
        let path = &flow.paths[0];
        assert_eq!(path.received_packets, u64::from(case.2), "{case:?}");
        let off = path.throughput_mbps / rate - 1.0;
        assert!(off.abs() < 1e-9, "{case:?}: {path:?}");
    }
    let group = &aerostat_lab::fairness::of(&lab, &report.flows)[0];
    let off = group.throughput_mbps[0] / rates.iter().sum::<f64>() - 1.0;
    assert!(off.abs() < 1e-9, "{group:?}");
}

#[test]
fn packets_that_arrive_after_the_end_of_the_schedule_add_to_its_time() {
    // Ten packets, one each 10 ms, behind a line of 300 ms: the last one arrives 390 ms after the first was sent.
    let load = "  - { name: f, from: a, to: b, kind: udp, rate: 100pps, size: 1000, start: 9s, duration: 100ms }\n";
    let text = pair(&format!("traffic:\n{WARM}{load}"))
        .replace("b: { on: s1", "b: { on: s1, link: { delay: 300ms }");
    let report = run_text(&text);
    let path = &report.flows[1].paths[0];
    let seconds = path.received_octets as f64 * 8.0 / path.throughput_mbps / 1e6;
    assert_eq!(path.received_packets, 10);
    assert!((path.duration.as_secs_f64() - 0.1).abs() < 1e-9, "{path:?}");
    assert!((0.390..0.392).contains(&seconds), "{seconds} s: {path:?}");
}

#[test]
fn a_program_is_never_faster_than_its_rate() {
    // One, two and ten PDUs of 1000 octets, ten a second.
    for pdus in [1_u32, 2, 10] {
        let text = pair("until: 5s\n").replace(
            "10.1.0.10 }",
            &format!("10.1.0.10, sockets: [{{ name: w, call: b, pdus: {pdus}, rate: 10pps, size: 1000 }}] }}"),
        );
        let text = text.replace(
            "10.1.0.20 }",
            "10.1.0.20, sockets: [{ name: r, listen: read }] }",
        );
        let report = run_text(&text);
        let writer = report.dialogues.iter().find(|row| row.from.1 == "w");
        let writer = writer.expect("a row of the writer");
        assert_eq!(writer.delivered_octets, u64::from(pdus) * 1000);
        let mbps = writer.throughput_mbps.expect("a rate");
        assert!((mbps / 0.08 - 1.0).abs() < 1e-6, "{pdus} PDUs: {mbps}");
    }
}
