//! An independent check of the accounts: random labs run as in `aerostat run`, with captures of every link end. The
//! results of each flow are compared with the packets in the captures, and the counts of ports, fabrics, adapters and
//! links are compared with each other.
//!
//! `AEROSTAT_CASES` is the number of labs, `AEROSTAT_SEED` the seed of the first.

mod captures;
mod cells;
mod flows;
mod labs;
mod lives;
mod overload;
mod rows;

use aerostat_lab::model::Lab;
use aerostat_lab::report::RunReport;
use aerostat_sim::run::LabRun;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::path::PathBuf;

/// Number of labs of a usual run.
const CASES: u64 = 24;

/// Runs a lab with captures and checks its cells; returns its results and the captured packets.
fn run(lab: &Lab) -> Result<(RunReport, Vec<captures::Sightings>), String> {
    let directory = Directory::new();
    let mut watcher = ();
    let mut running = LabRun::new(lab, &mut watcher);
    let failed = |error: std::io::Error| error.to_string();
    running.capture_into(&directory.0, false).map_err(failed)?;
    running.start();
    running.run_to_end();
    cells::check(lab, running.world())?;
    rows::check(lab, running.world())?;
    let report = running.finish().map_err(failed)?;
    Ok((report, captures::read(lab, &directory.0)))
}

/// A directory for one run's captures.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Self {
        use std::sync::atomic::{AtomicU32, Ordering};
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("aerostat-books-{}-{number}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// All mistakes in the accounts of a lab; `Ok(false)` if the lab is not valid.
fn check(text: &str) -> Result<bool, String> {
    let lab = match aerostat_lab::parse("random", text, &[]) {
        Ok(checked) => checked.lab,
        Err(_) => return Ok(false),
    };
    let (report, seen) = run(&lab)?;
    let mistakes = flows::mistakes(&lab, &report, &seen);
    if mistakes.is_empty() {
        Ok(true)
    } else {
        Err(mistakes.join("\n"))
    }
}

/// Packets that a full port of an Ethernet segment discards have their place, whatever station sends them: the bridging
/// host itself, one of its stations, or a host of the ELAN, with every kind of traffic, and in both directions.
#[test]
fn packets_that_find_no_room_on_a_segment_have_their_place() {
    let kinds = [
        "kind: udp, rate: 1Mbps, size: 200",
        "kind: ping, rate: 100pps",
        "kind: tcp",
        "kind: rr, size: 200",
        "kind: voice",
    ];
    let ends = [
        ("pc", "two"),
        ("two", "pc"),
        ("one", "two"),
        ("far", "two"),
        ("two", "far"),
    ];
    let mut full = 0;
    for (from, to) in ends {
        for kind in kinds {
            let text = format!(
                "switches: {{ s: {{}} }}
lane: {{ on: s, elans: {{ a: {{ subnet: 10.1.0.0/24 }} }} }}
hosts:
  pc:
    on: s
    elan: a
    ip: 10.1.0.10
    bridge: {{ one: 10.1.0.91, two: 10.1.0.92 }}
    ethernet: {{ rate: 10Mbps, ports: {{ e1: {{ stations: [one], queue: 4 }}, e2: {{ stations: [two], queue: 4 }} }} }}
  far: {{ on: s, elan: a, ip: 10.1.0.20 }}
traffic:
  - {{ name: load, from: one, to: two, kind: udp, rate: 20Mbps, size: 24, start: 2s, duration: 300ms }}
  - {{ name: flow, from: {from}, to: {to}, {kind}, start: 2s, duration: 1s }}
until: 4s
"
            );
            let lab = aerostat_lab::parse("segment", &text, &[]).expect(&text).lab;
            let report = aerostat_sim::run::run(&lab, None, &mut ()).expect("a run");
            for flow in &report.flows {
                assert_eq!(flows::balance(flow), [""; 0], "{from} to {to}, {kind}");
                let unexplained = flow.sum(|path| path.unexplained);
                assert_eq!(unexplained, 0, "{}: {from} to {to}, {kind}", flow.name);
            }
            full += u32::from(report.flows[1].sum(|path| path.lost) > 0);
        }
    }
    assert!(full > 5, "only {full} flows lost something");
}

/// The lab of a seed.
fn lab_of(seed: u64) -> String {
    let mut octets = [0; 32];
    octets[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &octets);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let tree = labs::labs().new_tree(&mut runner).expect("no filters");
    tree.current().file()
}

/// Labs of seeds from `AEROSTAT_SEED` on.
#[test]
fn books_of_random_labs_balance_and_agree_with_captures_and_cell_counters() {
    let number = |name, default| match std::env::var(name) {
        Ok(text) => text.parse().expect("a number"),
        Err(_) => default,
    };
    let (cases, first) = (number("AEROSTAT_CASES", CASES), number("AEROSTAT_SEED", 0));
    let (mut failures, mut valid) = (Vec::new(), 0);
    for seed in first..first + cases {
        let text = lab_of(seed);
        match check(&text) {
            Ok(lab) => valid += u64::from(lab),
            Err(why) => failures.push(format!("# seed {seed}\n{text}\n{why}")),
        }
    }
    let count = failures.len();
    assert!(
        failures.is_empty(),
        "{}\n{count} of {cases}",
        failures.join("\n")
    );
    assert!(valid * 10 >= cases * 8, "only {valid} of {cases} are labs");
}

/// Checks a lab from a file, to examine a failure: `AEROSTAT_LAB=FILE cargo test -p aerostat-sim --test it
/// books::a_named_lab`.
#[test]
fn a_named_lab() {
    let Some(file) = std::env::var_os("AEROSTAT_LAB") else {
        return;
    };
    let text = std::fs::read_to_string(file).expect("a lab file");
    match check(&text) {
        Ok(lab) => assert!(lab, "not a lab"),
        Err(why) => panic!("{why}"),
    }
}
