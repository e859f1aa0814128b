//! Results of the network in real time: traffic that waits for its hosts, and the places of losses.

use super::{Run, seconds};
use aerostat_lab::Lab;
use aerostat_lab::build::{Builder, Flavour};
use aerostat_lab::report::RunReport;
use aerostat_live::results;
use aerostat_proto::{Duration, Instant};
use std::collections::BTreeMap;
use std::path::Path;

/// The labs of the repository whose traffic meets losses, faults and routes over several switches.
const LABS: [&str; 7] = [
    "two-subnets",
    "clip",
    "dead-destination",
    "cbr-beside-ubr",
    "ring",
    "parallel-links",
    "nhrp",
];

fn parsed(text: &str) -> Lab {
    match aerostat_lab::parse("books.atm.yml", text, &[]) {
        Ok(checked) => checked.lab,
        Err(wrong) => panic!("{wrong}"),
    }
}

impl Run<'_> {
    /// Runs on, with the faults of the lab at their times.
    fn until_with_faults(&mut self, end: Instant) {
        for fault in &self.lab.faults {
            let at = Instant::ZERO + fault.at;
            if at > self.now && at <= end {
                self.until(at);
                self.fault(fault.what);
            }
        }
        self.until(end);
    }
    fn report(&mut self) -> RunReport {
        self.world.settle_books();
        self.drain();
        results::report(&mut self.world, self.builder, self.now, false)
    }
}

/// All accounts balance, and every loss has a place.
fn balance(lab: &Lab, report: &RunReport) {
    for flow in &report.flows {
        for path in &flow.paths {
            let which = format!("{}: {} at {}: {path:#?}", lab.name, flow.name, report.end);
            assert!(path.balances(), "{which}");
            assert_eq!(path.unexplained, 0, "{which}");
        }
    }
    for circuit in &report.circuits.circuits {
        let from_sender = circuit.refused + circuit.waiting + circuit.sent;
        assert_eq!(circuit.offered, from_sender, "{}: {circuit:#?}", lab.name);
    }
}

/// Places of losses of a flow, in words, over all its paths.
fn places(lab: &Lab, report: &RunReport, flow: usize) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    for path in &report.flows[flow].paths {
        for (place, packets) in lab.lost_by(path) {
            *all.entry(place).or_default() += packets;
        }
    }
    all
}

#[test]
fn the_books_of_labs_with_losses_balance_at_any_moment_and_explain_every_packet() {
    for name in LABS {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../labs/{name}.atm.yml"));
        let lab = aerostat_lab::read(&path, &[])
            .unwrap_or_else(|_| panic!("{name}"))
            .lab;
        let builder = Builder::new(&lab, 7, Flavour::Embedded);
        let mut run = Run::start(&lab, &builder, Duration::from_millis(1));
        let mut offered = 0;
        for moment in [700, 2_050, 4_000, 6_333] {
            run.until_with_faults(Instant::from_millis(moment));
            let report = run.report();
            balance(&lab, &report);
            offered = report
                .flows
                .iter()
                .map(|flow| flow.sum(|path| path.offered))
                .sum();
        }
        assert!(offered > 0, "{name}: nothing was sent");
    }
}

#[test]
fn traffic_without_a_start_waits_until_both_hosts_have_joined_and_says_so() {
    // The trunk makes joining take longer than a second.
    let lab = parsed(
        "
switches: { s1: {}, s2: {} }
links: [[s1, s2, { delay: 50ms }]]
lane: { on: s1, elans: { a: { subnet: 10.1.0.0/24 } } }
hosts:
  near: { on: s1, elan: a, ip: 10.1.0.1 }
  far: { on: s2, elan: a, ip: 10.1.0.2 }
traffic:
  - { name: waits, from: near, to: far, kind: udp, rate: 10pps, size: 100 }
  - { name: early, from: far, to: near, kind: udp, rate: 10pps, size: 100, start: 0s }
",
    );
    let builder = Builder::new(&lab, 7, Flavour::Embedded);
    let mut run = Run::start(&lab, &builder, Duration::ZERO);
    let said = |run: &Run<'_>| {
        run.story
            .iter()
            .position(|line| line.ends_with("traffic.started"))
    };
    run.until(Instant::from_millis(300));
    let report = run.report();
    assert_eq!(said(&run), None, "nobody can have joined over 50 ms");
    let far = vec!["far".to_owned()];
    let waits = |report: &RunReport| report.began.iter().map(Option::is_none).collect::<Vec<_>>();
    assert_eq!(waits(&report), [true, false]);
    assert_eq!(report.not_joined, far);
    run.until(seconds(20));
    assert!(said(&run).is_some(), "{:#?}", run.story);
    let report = run.report();
    assert_eq!(waits(&report), [false, false]);
    assert!(report.not_joined.is_empty());
    let [waits, early] = &report.flows[..] else {
        panic!()
    };
    assert_eq!(
        waits.sum(|path| path.lost + path.refused_packets()),
        0,
        "{waits:#?}"
    );
    assert!(waits.sum(|path| path.received_packets) > 100);
    // Traffic with a start time of its own starts then, whichever hosts have joined.
    assert!(early.first < Some(Instant::from_millis(1)), "{early:#?}");
    assert!(waits.first > Some(Instant::from_millis(300)), "{waits:#?}");
    balance(&lab, &report);
}

#[test]
fn a_sender_that_is_restarted_starts_its_traffic_again_when_it_has_joined_again() {
    let lab = parsed(
        "
switches: { s: {} }
lane: { on: s, elans: { a: { subnet: 10.1.0.0/24 } } }
hosts:
  h1: { on: s, elan: a, ip: 10.1.0.1 }
  h2: { on: s, elan: a, ip: 10.1.0.2 }
traffic:
  - { from: h1, to: h2, kind: udp, rate: 100pps, size: 100 }
faults:
  - { at: 4s, restart: h1 }
",
    );
    let builder = Builder::new(&lab, 7, Flavour::Embedded);
    let mut run = Run::start(&lab, &builder, Duration::ZERO);
    run.until_with_faults(seconds(12));
    let started = run
        .story
        .iter()
        .filter(|line| line.ends_with("traffic.started"));
    assert_eq!(started.count(), 2, "{:#?}", run.story);
    let report = run.report();
    balance(&lab, &report);
    assert!(report.flows[0].sum(|path| path.received_packets) > 600);
}

/// A sender `a` and a receiver `b` on permanent connections over two switches.
const TWO_SWITCHES: &str = "
switches: { s1: {}, s2: {} }
links: [[s1, s2, TRUNK]]
clip: { w: { subnet: 10.0.0.0/24, server: b } }
hosts:
  a: { on: s1, elan: w, ip: 10.0.0.1 }
  b: { on: s2, elan: w, ip: 10.0.0.2 }
pvcs:
  - { from: a, vc: 0.100, to: b, QOS }
traffic:
  - { from: a, to: b, kind: udp, rate: RATE, size: 9000, start: 1s }
";

/// Runs the lab for six seconds, with a fault; returns the places where packets were lost.
fn lost_in(text: &str) -> BTreeMap<String, u64> {
    let lab = parsed(text);
    let builder = Builder::new(&lab, 7, Flavour::Embedded);
    let mut run = Run::start(&lab, &builder, Duration::from_millis(2));
    run.until_with_faults(seconds(6));
    let report = run.report();
    balance(&lab, &report);
    let lost = places(&lab, &report, 0);
    assert!(!lost.is_empty(), "{:#?}", report.flows);
    lost
}

#[test]
fn each_place_that_loses_packets_is_named() {
    let lab = |trunk: &str, qos: &str, rate: &str| {
        let text = TWO_SWITCHES.replace("TRUNK", trunk).replace("RATE", rate);
        text.replace(", QOS", qos)
    };
    let only = |lost: BTreeMap<String, u64>, place: &str| {
        let places: Vec<_> = lost.keys().map(String::as_str).collect();
        assert_eq!(places, [place], "{lost:?}");
    };
    only(
        lost_in(&lab("{ rate: ds3 }", "", "100Mbps")),
        "s1 port 0 to s2: early packet discard",
    );
    // A lost turn with the end of a PDU costs the next PDU, too, at the receiver. The last of the 12 turns of a PDU has
    // 2 of its 189 cells, so this happens with one in 94 losses.
    let mostly = |mut lost: BTreeMap<String, u64>, place: &str| {
        let ends = lost.remove("b: reassembly").unwrap_or(0);
        let all = lost.get(place).copied().unwrap_or(0);
        assert!(all > 100 && ends * 20 < all, "{ends} and {lost:?}");
        only(lost, place);
    };
    mostly(
        lost_in(&lab("{ loss: 0.002 }", "", "10Mbps")),
        "link s1-s2: cell lost",
    );
    mostly(
        lost_in(&lab("{ bit_errors: 1.0e-5 }", "", "10Mbps")),
        "link s1-s2: bit errors",
    );
    let cut = "faults:\n  - { at: 3s, link_down: s1-s2 }\n";
    let text = lab("{ delay: 100ms }", "", "10Mbps") + cut;
    let lost = lost_in(&text);
    assert!(lost.contains_key("link s1-s2: cut"), "{lost:?}");
    let dead = "faults:\n  - { at: 3s, crash: b }\n";
    let lost = lost_in(&(lab("{}", "", "10Mbps") + dead));
    assert!(lost.contains_key("b: switched off"), "{lost:?}");
}

#[test]
fn the_peers_of_a_node_that_crashes_see_their_link_go_down_at_once_and_come_up_with_it() {
    let text = TWO_SWITCHES
        .replace("TRUNK", "{}")
        .replace("RATE", "100pps")
        .replace(", QOS", "");
    let lab = parsed(&(text + "faults:\n  - { at: 3s, crash: s2 }\n  - { at: 4s, restart: s2 }\n"));
    let builder = Builder::new(&lab, 7, Flavour::Embedded);
    let mut run = Run::start(&lab, &builder, Duration::ZERO);
    run.until_with_faults(seconds(2));
    assert!(
        run.world.waits_for().is_empty(),
        "{:?}",
        run.world.waits_for()
    );
    run.until_with_faults(Instant::from_millis(3100));
    let waits = run.world.waits_for();
    for missing in ["s2 to start", "signalling between s1 and s2"] {
        assert!(waits.iter().any(|wait| wait == missing), "{waits:?}");
    }
    run.until_with_faults(seconds(9));
    assert!(
        run.world.waits_for().is_empty(),
        "{:?}",
        run.world.waits_for()
    );
    balance(&lab, &run.report());
}

#[test]
fn the_books_of_programs_balance_at_any_moment_and_hold_what_was_before_a_crash_of_either_host() {
    let lab = parsed(
        "
switches: { s: {} }
clip: { c: { subnet: 10.1.0.0/24, server: z } }
hosts:
  a:
    on: s
    elan: c
    ip: 10.1.0.1
    sockets:
      - { name: pvc, vc: 0.100, size: 100, pdus: 100, rate: 50pps, start: 1s }
      - { name: svc, call: b, size: 100, pdus: 50, rate: 50pps, start: 1s, hold: 100ms, expect: nothing }
  b:
    on: s
    elan: c
    ip: 10.1.0.2
    sockets: [{ name: r, vc: 0.101, listen: sink }, { name: e, listen: sink }]
  z: { on: s, elan: c, ip: 10.1.0.3 }
pvcs: [{ from: a, vc: 0.100, to: b, to_vc: 0.101 }]
faults:
  - { at: 2490ms, crash: b }
  - { at: 2690ms, restart: b }
  - { at: 4000ms, restart: a }
  - { at: 6500ms, crash: b }
  - { at: 6600ms, crash: a }
until: 7s
",
    );
    let builder = Builder::new(&lab, 7, Flavour::Embedded);
    let mut run = Run::start(&lab, &builder, Duration::from_millis(1));
    for moment in [1_500, 2_600, 3_900, 5_000, 7_000] {
        run.until_with_faults(Instant::from_millis(moment));
        for books in run.report().dialogues {
            let told = format!("{moment} ms: {books:?}");
            let begun = books.sent + books.refused + books.waiting;
            assert_eq!(books.offered, begun, "{told}");
            let ended = books.lost() + books.under_way;
            assert_eq!(
                books.delivered.map(|came| came + ended),
                Some(books.sent),
                "{told}"
            );
        }
    }
    let report = run.report();
    let [first, pvc, second] = &report.dialogues[..] else {
        panic!("{:#?}", report.dialogues)
    };
    // PDUs of 2.5 s to 2.68 s found no reader; the writer wrote all of them again after its restart.
    let gone = BTreeMap::from([("b: switched off".to_owned(), 10)]);
    assert_eq!((pvc.offered, &pvc.lost_by), (200, &gone), "{pvc:?}");
    let words = "program a/svc: 'expect: nothing', but 50 of 50 PDUs arrived";
    for call in [first, second] {
        assert_eq!(call.complaint().as_deref(), Some(words), "{call:?}");
    }
}
