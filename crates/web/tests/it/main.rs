//! Labs in steps, on this machine: the same results as in one go, bounds, and findings with places for a browser.

use aerostat_lab::results::{Document, Time};
use aerostat_lab::{Checked, Override};
use aerostat_web::job::{Bound, Host, Job};
use aerostat_web::request::Request;
use std::cell::Cell;

/// A clock that goes on by a millisecond at each look, and memory that grows by a kibibyte.
#[derive(Default)]
struct Looks(Cell<u64>);

impl Host for Looks {
    fn now_ms(&self) -> f64 {
        self.0.set(self.0.get() + 1);
        self.0.get() as f64
    }
    fn memory(&self) -> u64 {
        self.0.get() << 10
    }
}

const LAB: &str = "switches: { s1: {} }
lane: { on: s1, elans: { a: { subnet: 10.1.0.0/24 } } }
hosts:
  anna: { on: s1, elan: a, ip: 10.1.0.10 }
  bert: { on: s1, elan: a, ip: 10.1.0.20 }
traffic:
  - { name: ping, from: anna, to: bert, kind: ping, rate: 10pps, start: 1s, duration: 1s }
";

fn request(text: &str) -> Request {
    Request {
        file: "garden.atm.yml".into(),
        text: text.into(),
        ..Request::default()
    }
}

/// The document of a run in one go without a stream of events.
fn in_one_go(checked: &Checked, overrides: &[Override]) -> String {
    let report = aerostat_sim::run::run(&checked.lab, None, &mut ()).expect("nothing is captured");
    let document = Document::new(checked, overrides, Time::Virtual, &report);
    document.json_text()
}

#[test]
fn a_run_in_steps_has_the_results_of_a_run_in_one_go() {
    let faults = format!(
        "{LAB}faults:\n  - {{ at: 1250ms, link_down: anna-s1 }}\n  - {{ at: 1583ms, link_up: anna-s1 }}\n"
    );
    for text in [LAB, &faults] {
        let mut request = request(text);
        request.seed = Some(" 7 ".into());
        request.set = vec!["hosts.bert.ip=10.1.0.30".into()];
        let (mut job, answer) = Job::begin(&request, Looks::default()).expect("a valid lab");
        let about = answer.lab.expect("a lab");
        assert_eq!(
            (about.name.as_str(), about.seed, about.machines),
            ("garden", 7, 4)
        );
        let mut steps = 0;
        while job.step() {
            steps += 1;
        }
        assert!(steps > 10, "{steps} steps");
        assert_eq!(job.now_s(), job.end_s());
        let results = job.finish();
        let overrides = request.overrides();
        let changes: Vec<_> = overrides.iter().map(Override::change).collect();
        assert_eq!(changes, ["hosts.bert.ip=10.1.0.30", "seed=7"]);
        let checked = request.check().expect("a valid lab");
        assert!(
            results.json == in_one_go(&checked, &overrides),
            "{}",
            results.json
        );
        assert!(!results.summary.interrupted && results.page.contains("<title>garden</title>"));
    }
}

#[test]
fn a_run_ends_at_the_bound_that_it_meets_with_the_results_so_far() {
    let (mut time, mut memory) = (request(LAB), request(LAB));
    time.most_ms = Some(20.0);
    memory.most_memory = Some(20 << 10);
    for (request, bound) in [(time, Bound::Time), (memory, Bound::Memory)] {
        let (mut job, _) = Job::begin(&request, Looks::default()).expect("a valid lab");
        while job.step() {}
        let results = job.finish();
        assert_eq!(results.summary.bound, Some(bound));
        assert!(results.summary.now_s < results.summary.end_s);
        assert!(results.json.contains("\"interrupted\": true"));
    }
}

#[test]
fn a_run_that_is_stopped_says_so() {
    let (mut job, _) = Job::begin(&request(LAB), Looks::default()).expect("a valid lab");
    assert!(job.step());
    let results = job.finish();
    assert!(results.summary.interrupted && results.summary.bound.is_none());
    assert_eq!(results.summary.now_s, 0.1);
}

#[test]
fn places_are_in_the_units_of_a_browser() {
    // Before the mistake stand a letter of two octets and a sign of four, which has two units.
    let text = LAB.replace("bert: { on: s1", "bert: { on: s2");
    let answer = request(&format!("# \u{e9} \u{1f600}\n{text}"))
        .check()
        .unwrap_err();
    let [finding] = &answer.findings[..] else {
        panic!("{:?}", answer.findings);
    };
    let at = finding.at.expect("a place in the text");
    let units: Vec<u16> = format!("# \u{e9} \u{1f600}\n{text}")
        .encode_utf16()
        .collect();
    assert_eq!(String::from_utf16_lossy(&units[at[0]..at[1]]), "s2");
    assert_eq!(
        (finding.severity, finding.line, finding.column),
        ("error", 6, 15)
    );
    assert!(answer.lab.is_none() && answer.text.starts_with("garden.atm.yml:6:15: error: "));
}

#[test]
fn recordings_and_machines_outside_are_mistakes() {
    let said = |text: &str| request(text).check().unwrap_err().text;
    let capture = said(&format!("{LAB}capture: [anna-s1]\n"));
    assert!(
        capture.contains(":8:11: error: a recording is a file"),
        "{capture}"
    );
    let link = "[s1, { udp: { local: 127.0.0.1:10001, peer: 127.0.0.1:10002 } }]";
    let outside = format!("{LAB}links:\n  - {link}\n");
    let outside = said(&outside);
    let why = "is outside the lab, where time cannot be virtual";
    assert!(outside.contains(why), "{outside}");
}

#[test]
fn no_text_of_a_request_is_a_panic() {
    for text in [
        "",
        "\u{0}",
        "hosts: [",
        "a: &a [*a]",
        "\u{feff}switches: {}",
    ] {
        let mut request = request(text);
        request.set = vec![text.into(), "=".into(), "a.b.c".into()];
        request.seed = Some(text.into());
        request.until = Some(text.into());
        assert!(request.check().is_err(), "{text:?}");
    }
}
