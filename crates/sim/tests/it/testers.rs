//! Testers of cells: what they measure beside what was configured, and beside the accounts.

use crate::bench::lab_of;
use crate::losses::run;
use aerostat_lab::dialogues::Tested;
use aerostat_lab::report::RunReport;
use std::collections::BTreeMap;

/// A tester at each of two hosts, with a link between two switches that has these keys.
fn lab(link: &str, qos: &str, cells: u64, more: &str) -> String {
    format!(
        "
switches: {{ s1: {{}}, s2: {{}} }}
links: [[s1, s2, {{ rate: oc3, delay: 10us, {link} }}]]
lane: {{ on: s1, elans: {{ a: {{ subnet: 10.1.0.0/24 }} }} }}
hosts:
  a: {{ on: s1, elan: a, ip: 10.1.0.10, link: {{ rate: oc3, delay: 1us }}, sockets: [{{ name: t, vc: 0.100, tester: true, pdus: {cells}, rate: 50000pps, expect: loss }}] }}
  b: {{ on: s2, elan: a, ip: 10.1.0.11, link: {{ rate: oc3, delay: 1us }}, sockets: [{{ name: t, vc: 0.200, tester: true }}] }}
pvcs: [{{ from: a, vc: 0.100, to: b, to_vc: 0.200, qos: \"{qos}\" }}]
{more}"
    )
}

fn of<'a>(report: &'a RunReport, node: &str) -> &'a Tested {
    let mut found = report.tested.iter().filter(|tested| tested.at.0 == node);
    found.next().expect("a tester")
}

fn places(report: &RunReport) -> BTreeMap<String, u64> {
    report.dialogues[0].lost_by.clone()
}

/// Lost and damaged cells are those that the accounts have lost at the link, cell by cell, and as many as the link was
/// told to lose: within 4.5 standard deviations.
#[test]
fn ratios_are_those_of_the_link() {
    let text = lab("loss: 0.002, bit_errors: 5e-6", "cbr:pcr=50000", 40_000, "");
    let (_, report) = run(&text);
    let seen = of(&report, "b").measured;
    let lost_by = places(&report);
    assert_eq!(seen.lost, lost_by["link s1-s2: cell lost"]);
    assert_eq!(seen.errored, lost_by["link s1-s2: bit errors"]);
    assert_eq!((seen.misinserted, seen.restarts), (0, 0));
    assert_eq!(
        seen.received,
        report.dialogues[0].delivered.expect("a reader")
    );
    assert_eq!(seen.received + seen.lost + seen.errored, 40_000);
    let near = |ratio: f64, wanted: f64, of: f64| {
        let deviation = (wanted * (1.0 - wanted) / of).sqrt();
        assert!((ratio - wanted).abs() < 4.5 * deviation, "{ratio} {wanted}");
    };
    near(seen.loss_ratio().unwrap(), 0.002, 40_000.0);
    // A cell has 424 bits. An error in its header loses the cell or is corrected; one in its payload damages it.
    let payload = 1.0 - (1.0_f64 - 5e-6).powi(384);
    near(seen.error_ratio().unwrap(), payload, 40_000.0);
    // What came back: nothing was sent.
    let other = of(&report, "a").measured;
    assert_eq!((other.received, other.loss_ratio()), (0, None));
}

/// On idle lines each cell takes three cell times of an OC-3 and the delays of the lines, and its time stamp tells this
/// to 10 ns.
#[test]
fn the_delay_is_that_of_the_lines() {
    let (_, report) = run(&lab("", "cbr:pcr=50000", 1000, ""));
    let seen = of(&report, "b").measured;
    assert_eq!((seen.received, seen.lost, seen.errored), (1000, 0, 0));
    let cell = 424.0 / 149.76;
    let expected = 3.0 * cell + 12.0;
    assert!(
        (seen.delay.min_us - expected).abs() < 0.02,
        "{} {expected}",
        seen.delay.min_us
    );
    assert!(seen.delay.max_us - seen.delay.min_us < 0.011);
    assert!(seen.early.expect("a rate").max_us < 0.011);
    // The same by the accounts of the connection.
    let vcs = report.circuits.circuits.iter();
    let mut transfers = vcs.map(|circuit| &circuit.transfer);
    let transfer = transfers
        .find(|transfer| transfer.count() == 1000)
        .expect("its transfers");
    assert!((transfer.summary().mean_us - seen.delay.mean_us).abs() < 0.02);
}

/// A sender whose host restarts begins again at 0; the receiver follows it and counts only real losses.
#[test]
fn a_sender_that_restarts_is_followed() {
    let faults = "faults: [{ at: 1500ms, crash: a }, { at: 1600ms, restart: a }]";
    let (lab, report) = run(&lab("", "cbr:pcr=50000", 30_000, faults));
    let seen = of(&report, "b").measured;
    let row = &report.dialogues[0];
    assert_eq!(seen.restarts, 1);
    assert_eq!(
        (seen.received, seen.misinserted),
        (row.delivered.expect("a reader"), 0)
    );
    // What was under way as the host crashed is lost behind the last cell of that life: the tester does not see it.
    let lost: u64 = row.lost_by.values().sum();
    assert_eq!(
        (seen.lost, row.sent),
        (0, row.delivered.unwrap() + lost + row.under_way)
    );
    assert!(row.sent > 30_000, "{} {}", row.sent, lab.name);
}

/// Cells that a policer discards are lost, each by itself: no early discard takes more.
#[test]
fn a_policer_takes_single_cells() {
    let text = lab("", "cbr:pcr=40000", 10_000, "")
        .replace("{ s1: {},", "{ s1: { police: true },")
        .replace("on: s1, elan: a", "on: s1, shape: false, elan: a");
    let (_, report) = run(&text);
    let seen = of(&report, "b").measured;
    // One cell in five is too many.
    let lost = places(&report).into_values().sum::<u64>();
    assert!(
        places(&report)
            .keys()
            .all(|place| place.ends_with("policer")),
        "{:?}",
        places(&report)
    );
    let missing = lost - seen.lost;
    assert!(
        (1990..=2000).contains(&lost) && missing <= 1,
        "{lost} {}",
        seen.lost
    );
    assert_eq!(seen.errored + seen.misinserted, 0);
}

#[test]
fn mistakes() {
    for (from, to, says) in [
        ("tester: true }]", "listen: sink }]", "b/t is no tester"),
        (
            "sockets: [{ name: t, vc: 0.200, tester: true }]",
            "kernel: false",
            "the other end of this connection has no tester",
        ),
        (
            "vc: 0.200, tester: true",
            "listen: sink, tester: true",
            "a tester uses a permanent connection",
        ),
        (
            "vc: 0.200, tester: true",
            "vc: 0.200, tester: true, size: 52",
            "a tester has no 'size'",
        ),
        (
            "vc: 0.200, tester: true",
            "vc: 0.200, tester: true, listen: echo",
            "a tester has no 'listen'",
        ),
    ] {
        let good = lab("", "ubr", 10, "");
        lab_of("t.atm.yml", &good, &[]);
        let text = good.replace(from, to);
        assert_ne!(text, good, "{from}");
        let found = aerostat_lab::parse("t.atm.yml", &text, &[]);
        let said = found.err().map(|found| found.to_string());
        assert!(
            said.as_ref().is_some_and(|said| said.contains(says)),
            "{says}: {said:?}"
        );
    }
}
