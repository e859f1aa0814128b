//! TCP flows whose hosts restart: a connection ends with its host, and the flow goes on with another one.

use crate::losses::run;
use aerostat_lab::model::Lab;
use aerostat_lab::report::RunReport;
use aerostat_node::ip::meter::Path;
use aerostat_proto::{Duration, Instant};

/// Flows between a and b with every kind of connection. A client that waits for an answer of a host that has forgotten
/// it finds out by a probe after 10 s.
const FLOWS: &str = "traffic:\n  \
    - { name: bulk, from: a, to: b, kind: tcp, duration: 20s }\n  \
    - { name: small, from: a, to: b, kind: rr, size: 10, duration: 20s }\n  \
    - { name: large, from: a, to: b, kind: rr, size: 4000, duration: 20s }\n  \
    - { name: back, from: b, to: a, kind: tcp, duration: 20s }\n\
    until: 22s\n";

const LANE: &str = "switches: { s: {} }\n\
    lane: { on: s, elans: { n: { subnet: 10.1.0.0/24 } } }\n\
    hosts:\n  \
    a: { on: s, elan: n, ip: 10.1.0.10, link: { rate: 2Mbps }, tcp: { buffer: 64KiB } }\n  \
    b: { on: s, elan: n, ip: 10.1.0.11, link: { rate: 2Mbps }, tcp: { buffer: 64KiB } }\n";

const MPOA: &str = "mpoa: true\nswitches: { s: {} }\n\
    lane: { on: s, elans: { n: { subnet: 10.1.0.0/24 }, m: { subnet: 10.2.0.0/24 } } }\n\
    routers: { r: { on: s, elans: { n: 10.1.0.1, m: 10.2.0.1 } } }\n\
    hosts:\n  \
    a: { on: s, elan: n, ip: 10.1.0.10, link: { rate: 2Mbps }, tcp: { buffer: 64KiB } }\n  \
    b: { on: s, elan: m, ip: 10.2.0.11, link: { rate: 2Mbps }, tcp: { buffer: 64KiB } }\n";

const CLIP: &str = "switches: { s: {} }\n\
    clip: { n: { subnet: 10.1.0.0/24, server: c } }\n\
    hosts:\n  \
    a: { on: s, elan: n, ip: 10.1.0.10, link: { rate: 2Mbps }, tcp: { buffer: 64KiB } }\n  \
    b: { on: s, elan: n, ip: 10.1.0.11, link: { rate: 2Mbps }, tcp: { buffer: 64KiB } }\n  \
    c: { on: s, elan: n, ip: 10.1.0.12 }\n";

/// Runs the flows with these faults.
fn flows(network: &str, faults: &str) -> (Lab, RunReport) {
    run(&format!("{network}{FLOWS}faults: [{faults}]\n"))
}

/// A host that is off from `at` to `to`, in milliseconds.
fn off(host: &str, at: u32, to: u32) -> String {
    format!("{{ at: {at}ms, crash: {host} }}, {{ at: {to}ms, restart: {host} }}")
}

/// All flows ran to their end, without a warning, and each on connections of its own.
#[track_caller]
fn went_on(name: &str, lab: &Lab, report: &RunReport) {
    for (flow, began) in report.flows.iter().zip(&report.began) {
        let (Some(began), Some(last)) = (*began, flow.last_received) else {
            panic!("{name}: {} never sent", flow.name);
        };
        let end = began + Duration::from_secs(20);
        let gap = end.since(last);
        // The queue in front of the slow link takes some tenths of a second.
        assert!(
            gap < Duration::from_millis(500),
            "{name}: {} was silent for {gap:?}",
            flow.name
        );
        assert_eq!(lab.complaint(flow, Some(began), report.end), None, "{name}");
        assert_eq!(flow.unmatched, 0, "{name}: {}", flow.name);
    }
}

#[test]
fn flows_with_connections_go_on_when_their_hosts_are_back_over_lane_shortcuts_and_classical_ip() {
    let several = [
        off("a", 2000, 2200),
        off("a", 2500, 2600),
        off("b", 3000, 3300),
        off("a", 3100, 3400),
        off("b", 5000, 5001),
        off("b", 5002, 5003),
    ];
    let cases = [
        ("sender", off("a", 2000, 2500)),
        ("receiver", off("b", 2000, 2500)),
        ("both", off("a", 2000, 2500) + ", " + &off("b", 2000, 2500)),
        (
            "in turn",
            off("b", 2000, 2500) + ", " + &off("a", 3700, 3800),
        ),
        ("several", several.join(", ")),
    ];
    for (network, text) in [("LANE", LANE), ("MPOA", MPOA), ("Classical IP", CLIP)] {
        for (case, faults) in &cases {
            let (lab, report) = flows(text, faults);
            went_on(&format!("{network}, {case}"), &lab, &report);
            let shortcut = |path: &&aerostat_node::ip::flow_stats::PathReport| {
                path.path == Path::Shortcut && path.received_packets > 0
            };
            let shortcuts = report.flows.iter().flat_map(|flow| &flow.paths);
            assert_eq!(
                shortcuts.filter(shortcut).count() > 0,
                network == "MPOA",
                "{network}, {case}"
            );
        }
    }
}

#[test]
fn octets_for_a_connection_that_its_receiver_has_forgotten_are_not_delivered() {
    let (lab, report) = flows(LANE, &off("b", 2000, 2500));
    let bulk = &report.flows[0];
    let mut lost = bulk.paths.iter().flat_map(|path| lab.lost_by(path));
    let forgotten = lost.find(|(place, _)| place == "b: nobody listens");
    // The sender finds out by the answer to the first segment that reaches the new receiver.
    assert!(
        forgotten.as_ref().is_some_and(|(_, packets)| *packets < 10),
        "{forgotten:?}"
    );
}

/// The warning about flow `kind` whose network has these faults; it lasts from 1 s to 7 s.
fn complaint(kind: &str, faults: &str) -> Option<String> {
    let traffic = format!(
        "traffic: [{{ name: f, from: a, to: b, {kind}, start: 1s, duration: 6s }}]\nuntil: 9s\n"
    );
    let (lab, report) = run(&format!("{LANE}{traffic}faults: [{faults}]\n"));
    lab.complaint(&report.flows[0], report.began[0], report.end)
}

#[test]
fn a_flow_that_stops_before_its_end_is_a_warning_with_its_reason() {
    let kinds = ["kind: tcp", "kind: rr, size: 10"];
    let stopped = |text: Option<String>, reason: &str| {
        let text = text.unwrap_or_default();
        assert!(text.starts_with("traffic f stopped at "), "{text}");
        assert!(text.ends_with(reason), "{text}");
    };
    for kind in kinds {
        for host in ["a", "b"] {
            let reason = format!("s before its end ({host}: switched off)");
            stopped(
                complaint(kind, &format!("{{ at: 6500ms, crash: {host} }}")),
                &reason,
            );
            // It is back, but too late.
            stopped(complaint(kind, &off(host, 6500, 8000)), &reason);
            // The flow was over.
            assert_eq!(
                complaint(kind, &format!("{{ at: 7500ms, crash: {host} }}")),
                None
            );
            // A request, or its answer, is under way when a host dies: only the one is a loss of the flow.
            let expected = format!("{kind}, expect: loss");
            let dies = |at: u32| format!("{{ at: {at}ms, crash: {host} }}");
            let told = (4000..4010).map(|at| complaint(&expected, &dies(at)));
            let (lost, kept): (Vec<_>, Vec<_>) = told.partition(Option::is_none);
            assert!(!lost.is_empty(), "{kind} {host}");
            for text in kept.into_iter().flatten() {
                let nothing = "traffic f: 'expect: loss', but nothing was lost";
                assert_eq!(text, nothing, "{kind} {host}");
            }
        }
        stopped(
            complaint(kind, "{ at: 3s, link_down: b-s }"),
            "s before its end",
        );
        assert_eq!(complaint(kind, ""), None);
    }
    // A transfer that has arrived is over, and one that has not has stopped.
    let transfer = "kind: tcp, bytes: 1MiB";
    for faults in ["", "{ at: 6500ms, crash: a }", "{ at: 6500ms, crash: b }"] {
        assert_eq!(complaint(transfer, faults), None, "{faults}");
    }
    stopped(
        complaint(transfer, "{ at: 1050ms, link_down: b-s }"),
        "s before its end",
    );
    for kind in ["kind: udp, rate: 100pps", "kind: ping, rate: 100pps"] {
        stopped(
            complaint(kind, "{ at: 6500ms, crash: a }"),
            "(a: switched off)",
        );
        assert_eq!(complaint(kind, &off("a", 6500, 6600)), None, "{kind}");
    }
    let slow = "kind: ping, rate: 1pps";
    assert_eq!(complaint(slow, &off("a", 6200, 6300)), None);
}

#[test]
fn the_same_lab_has_the_same_restarts() {
    let faults = off("a", 2000, 2500) + ", " + &off("b", 3000, 3500);
    let [one, other] = [(), ()].map(|()| flows(LANE, &faults).1);
    assert_eq!(one.flows, other.flows);
    let end = Instant::from_secs(22);
    assert_eq!((one.end, other.end), (end, end));
}

/// The router holds packets of a sender's former life, and the new life uses the same numbers again.
#[test]
fn packets_of_two_lives_of_a_sender_have_their_places() {
    let network = "switches: { s0: {}, s1: {} }\n\
        links: [[s0, s1, { name: trunk }]]\n\
        lane: { on: s0, elans: { n: { subnet: 10.1.0.0/24 }, m: { subnet: 10.2.0.0/24 } } }\n\
        routers: { r: { on: s0, elans: { n: 10.1.0.1, m: 10.2.0.1 } } }\n\
        hosts:\n  \
        a: { on: s0, elan: n, ip: 10.1.0.10 }\n  \
        b: { on: s1, elan: m, ip: 10.2.0.11 }\n";
    for kind in ["udp", "ping"] {
        for restart in ["830ms", "910ms", "1s", "2s"] {
            let (_, report) = run(&format!(
                "{network}traffic: [{{ name: f, from: a, to: b, kind: {kind}, start: 500ms, rate: 100pps }}]\n\
                faults: [{{ at: 760ms, link_down: trunk }}, {{ at: {restart}, restart: a }}]\n\
                until: 6s\n"
            ));
            // `run` has looked at the books: no packet is unexplained.
            let lost = report.flows[0].sum(|path| path.lost);
            assert!(lost > 400, "{kind}, {restart}: {lost}");
        }
    }
}
