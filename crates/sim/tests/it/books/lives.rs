//! Programs with ATM sockets whose hosts crash: their accounts over all lives.

use super::{Directory, captures, flows};
use crate::bench::lab_of;
use aerostat_lab::dialogues::Dialogue;
use aerostat_lab::model::Lab;
use aerostat_lab::report::RunReport;
use aerostat_node::host::sockets::programs::{ENDED, State};
use aerostat_sim::run::LabRun;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::collections::BTreeMap;
use std::path::Path;

/// Two hosts at one switch, with a permanent connection.
fn lab(writer: &str, reader: &str, link: &str, rest: &str) -> String {
    format!(
        "switches: {{ s: {{}} }}\nclip: {{ c: {{ subnet: 10.1.0.0/24, server: z }} }}\nhosts:\n  \
         a: {{ on: s, elan: c, ip: 10.1.0.1, sockets: [{writer}] }}\n  \
         b: {{ on: s, elan: c, ip: 10.1.0.2, link: {{ {link} }}, sockets: [{reader}] }}\n  \
         z: {{ on: s, elan: c, ip: 10.1.0.3 }}\n\
         pvcs: [{{ from: a, vc: 0.100, to: b, to_vc: 0.101 }}]\n{rest}"
    )
}

fn run(text: &str, captures: Option<&Path>) -> (Lab, RunReport) {
    let lab = lab_of("lives", text, &[]);
    let mut watcher = ();
    let mut running = LabRun::new(&lab, &mut watcher);
    if let Some(directory) = captures {
        running.capture_into(directory, false).expect("files");
    }
    running.start();
    running.run_to_end();
    let report = running.finish().expect("captures");
    for books in &report.dialogues {
        assert_eq!(flows::of_programs(books), None, "{text}");
    }
    (lab, report)
}

/// Offered, delivered and lost PDUs of each row of a lab with these faults.
fn rows(writer: &str, reader: &str, faults: &str) -> Vec<(u64, u64, BTreeMap<String, u64>)> {
    let rest = format!("faults: [{faults}]\nuntil: 9s\n");
    let (_, report) = run(&lab(writer, reader, "rate: oc3", &rest), None);
    let rows = report.dialogues.into_iter().map(|books| {
        assert_eq!((books.refused, books.under_way), (0, 0), "{books:?}");
        let delivered = books.delivered.expect("in the lab");
        (books.offered, delivered, books.lost_by)
    });
    rows.collect()
}

fn crash(node: &str, from: u32, to: Option<u32>) -> String {
    let back = to.map(|to| format!(", {{ at: {to}ms, restart: {node} }}"));
    let back = back.unwrap_or_default();
    format!("{{ at: {from}ms, crash: {node} }}{back}")
}

/// PDU k is written at 1 s + k × 20 ms.
#[test]
fn a_permanent_connection_has_one_row_with_the_sums_over_all_lives_of_both_hosts() {
    let writer = "{ name: w, vc: 0.100, size: 100, pdus: 100, rate: 50pps, start: 1s }";
    let reader = "{ name: r, vc: 0.101, listen: sink }";
    let (a, b) = (
        |from, to| crash("a", from, to),
        |from, to| crash("b", from, to),
    );
    let all = |parts: &[String]| parts.join(", ");
    for (what, faults, offered, delivered) in [
        ("reader, after the end", b(4000, Some(5000)), 100, 100),
        ("reader, for good", b(4000, None), 100, 100),
        ("reader, back soon", b(1990, Some(2490)), 100, 75),
        ("reader, back after the end", b(1990, Some(5000)), 100, 50),
        ("reader, in between, for good", b(1990, None), 100, 50),
        ("writer, which starts again", a(1990, Some(2490)), 150, 150),
        ("writer, after the end", a(4000, Some(5000)), 200, 200),
        ("writer, for good", a(1990, None), 50, 50),
        (
            "both",
            all(&[a(1990, Some(2490)), b(1990, Some(2490))]),
            150,
            150,
        ),
        (
            "both, one after the other",
            all(&[b(1490, Some(2985)), a(1990, Some(2490))]),
            150,
            100,
        ),
        (
            "reader twice",
            all(&[b(1490, Some(1590)), b(1990, Some(2090))]),
            100,
            90,
        ),
        (
            "writer twice",
            all(&[a(1490, Some(1590)), a(1985, Some(2090))]),
            145,
            145,
        ),
    ] {
        let lost = offered - delivered;
        let place = (lost > 0).then(|| ("b: switched off".to_owned(), lost));
        let expected = [(offered, delivered, place.into_iter().collect())];
        assert_eq!(rows(writer, reader, &faults), expected, "{what}");
    }
}

#[test]
fn each_call_has_a_row_after_the_crash_of_either_host() {
    let writer = "{ name: w, call: b, size: 100, pdus: 100, rate: 50pps, start: 1s, hold: 100ms }";
    let reader = "{ name: r, listen: sink }";
    for (what, faults, expected) in [
        (
            "reader, after the end",
            crash("b", 4000, Some(5000)),
            vec![(100, 100)],
        ),
        ("reader, for good", crash("b", 4000, None), vec![(100, 100)]),
        // The network releases the call at once.
        (
            "reader, in between",
            crash("b", 1990, Some(2490)),
            vec![(50, 50)],
        ),
        (
            "writer, which calls again",
            crash("a", 1990, Some(2490)),
            vec![(50, 50), (100, 100)],
        ),
        (
            "writer, after the end",
            crash("a", 4000, Some(5000)),
            vec![(100, 100), (100, 100)],
        ),
        ("writer, for good", crash("a", 1990, None), vec![(50, 50)]),
        (
            "both",
            format!(
                "{}, {}",
                crash("b", 1990, Some(2490)),
                crash("a", 1990, Some(2990))
            ),
            vec![(50, 50), (100, 100)],
        ),
    ] {
        let rows = rows(writer, reader, &faults);
        let counts = rows
            .iter()
            .map(|(offered, delivered, _)| (*offered, *delivered));
        assert_eq!(counts.collect::<Vec<_>>(), expected, "{what}: {rows:?}");
    }
}

#[test]
fn pdus_that_came_although_they_were_not_to_come_are_a_warning_after_the_crash_of_the_called_host()
{
    let reader = "{ name: r, listen: sink }";
    let writer =
        "{ name: w, call: b, size: 100, pdus: 50, rate: 100pps, hold: 100ms, expect: nothing }";
    for back in [None, Some(5000)] {
        let rest = format!("faults: [{}]\nuntil: 6s\n", crash("b", 4000, back));
        let (_, report) = run(&lab(writer, reader, "rate: oc3", &rest), None);
        let told: Vec<_> = report
            .dialogues
            .iter()
            .filter_map(Dialogue::complaint)
            .collect();
        let words = "program a/w: 'expect: nothing', but 50 of 50 PDUs arrived";
        assert_eq!(told, [words]);
    }
}

#[test]
fn a_program_that_had_a_connection_before_a_crash_has_not_failed() {
    let writer = "{ name: w, call: b, size: 100, pdus: 10, rate: 100pps, start: 1s }";
    let faults = format!(
        "{}, {}",
        crash("b", 3000, None),
        crash("a", 3500, Some(4000))
    );
    let rest = format!("faults: [{faults}]\nuntil: 8s\n");
    let reader = "{ name: r, listen: sink }";
    let (_, report) = run(&lab(writer, reader, "rate: oc3", &rest), None);
    assert!(
        report.failed_programs.is_empty(),
        "{:?}",
        report.failed_programs
    );
    // Without the first life there is only a failure, which is known after the host is gone.
    let faults = format!("{}, {}", crash("b", 500, None), crash("a", 3500, None));
    let rest = format!("faults: [{faults}]\nuntil: 8s\n");
    let (_, report) = run(&lab(writer, reader, "rate: oc3", &rest), None);
    let [told] = &report.failed_programs[..] else {
        panic!("{:?}", report.failed_programs);
    };
    assert!(told.starts_with("program a/w: its call failed "), "{told}");
}

#[test]
fn a_host_keeps_a_bounded_number_of_calls_of_its_former_lives() {
    let writer =
        "{ name: w, call: b, size: 40, pdus: 1, rate: 100pps, start: 1s, hold: 0s, every: 4ms }";
    let rest = format!(
        "faults: [{}, {}, {}]\nuntil: 8s\n",
        crash("a", 3000, Some(3100)),
        crash("a", 5000, Some(5100)),
        crash("a", 7000, None)
    );
    let reader = "{ name: r, listen: sink }";
    let (_, report) = run(&lab(writer, reader, "rate: oc3", &rest), None);
    let rows = &report.dialogues;
    assert_eq!(rows.len(), ENDED);
    let told = report
        .limits
        .iter()
        .filter(|text| text.contains("ended calls of programs left out"));
    assert_eq!(told.count(), 2, "writer and reader: {:?}", report.limits);
    for row in rows {
        assert_eq!(row.state, State::Ended);
        assert!(row.delivered.is_some(), "{row:?}");
    }
}

#[test]
fn pdus_that_a_switch_polices_or_a_link_loses_have_its_port_or_its_name() {
    let reader = "{ name: r, vc: 0.101, listen: sink }";
    let writer = "{ name: w, vc: 0.100, size: 900, pdus: 500, rate: 500pps, start: 1s }";
    let text = lab(writer, reader, "rate: 2Mbps", "until: 5s\n");
    // 19 cells a PDU: 9500 cells/s for a line of 4717.
    let (_, report) = run(&text, None);
    let books = &report.dialogues[0];
    let place = "s port 1 to b: early packet discard";
    assert_eq!(
        books.lost_by.keys().collect::<Vec<_>>(),
        [place],
        "{books:?}"
    );
    assert!((50..260).contains(&books.lost()), "{books:?}");
    let text = lab(writer, reader, "rate: oc3, loss: 0.01", "until: 5s\n");
    let (_, report) = run(&text, None);
    let books = &report.dialogues[0];
    let link = books.lost_by["link b-s: cell lost"];
    assert!((50..130).contains(&link), "{books:?}");
    let merged = books.lost_by.get("b: reassembly").copied().unwrap_or(0);
    assert_eq!(books.lost(), link + merged, "{books:?}");
}

/// A random lab of [`lab`].
#[derive(Clone, Debug)]
struct Random {
    permanent: bool,
    echo: bool,
    /// Octets.
    size: u16,
    /// PDUs per second.
    rate: u16,
    link: &'static str,
    faults: Vec<(u32, &'static str)>,
}

impl Random {
    fn file(&self) -> String {
        let Self { size, rate, .. } = self;
        let answer = if self.echo { "echo" } else { "sink" };
        let sends = format!("size: {size}, pdus: {rate}, rate: {rate}pps, start: 1s");
        let (writer, reader) = if self.permanent {
            let reader = format!("{{ name: r, vc: 0.101, listen: {answer} }}");
            (format!("{{ name: w, vc: 0.100, {sends} }}"), reader)
        } else {
            let reader = format!("{{ name: r, listen: {answer} }}");
            let call = "call: b, hold: 50ms, every: 300ms";
            (format!("{{ name: w, {call}, {sends} }}"), reader)
        };
        let faults = self.faults.iter();
        let faults: Vec<_> = faults
            .map(|(at, what)| format!("{{ at: {at}us, {what} }}"))
            .collect();
        let rest = format!("faults: [{}]\nuntil: 4s\n", faults.join(", "));
        lab(&writer, &reader, self.link, &rest)
    }
}

fn random() -> impl Strategy<Value = Random> {
    let what = vec![
        "crash: a",
        "restart: a",
        "crash: b",
        "restart: b",
        "restart: a",
        "restart: b",
        "restart: s",
        "link_down: b-s",
        "link_up: b-s",
    ];
    let links = vec![
        "rate: oc3",
        "rate: 25.6, delay: 30ms",
        "rate: 2Mbps",
        "rate: 2Mbps, delay: 5ms, loss: 0.002",
    ];
    (
        any::<bool>(),
        any::<bool>(),
        1..4000_u16,
        20..200_u16,
        select(links),
        vec((800_000..3_900_000_u32, select(what)), 1..6),
    )
        .prop_map(|(permanent, echo, size, rate, link, mut faults)| {
            faults.sort_unstable_by_key(|fault| fault.0);
            Random {
                permanent,
                echo,
                size,
                rate,
                link,
                faults,
            }
        })
}

/// Whole PDUs of the programs that passed the access link of `node`: those it sent and those it received.
fn passed(directory: &Path, node: &str, size: u16) -> [u64; 2] {
    let pdu: Vec<u8> = (0..size).map(|at| b' ' + (at % 95) as u8).collect();
    let file = std::fs::read(directory.join(format!("{node}.pcapng"))).expect("a capture");
    let mut counts = [0; 2];
    captures::packets(&file, |_, sent, sdu| {
        counts[usize::from(!sent)] += u64::from(sdu == pdu);
    });
    counts
}

/// Compares the rows of one direction with the PDUs in the captures.
fn compare(random: &Random, report: &RunReport, from: &str, to: &str, left: u64, came: u64) {
    let rows = report.dialogues.iter().filter(|row| row.from.0 == from);
    let (mut calls, mut sent, mut delivered, mut under_way) = (0, 0, 0, 0);
    let mut lost: BTreeMap<&str, u64> = BTreeMap::new();
    for row in rows {
        calls += 1;
        sent += row.sent;
        delivered += row.delivered.expect("in the lab");
        under_way += row.under_way;
        for (place, pdus) in &row.lost_by {
            *lost.entry(place).or_default() += pdus;
        }
    }
    let at = |of: &dyn Fn(&str) -> bool| -> u64 {
        let places = lost.iter().filter(|(place, _)| of(place));
        places.map(|(_, pdus)| pdus).sum()
    };
    let here = at(&|place| {
        let gone = place.ends_with("switched off") || place.ends_with("cut");
        gone || place.starts_with(from)
    });
    // A fault or the end of a call cuts the PDU that is leaving, whose first cells may have been lost elsewhere.
    let torn = random.faults.len() as u64 + calls;
    let there = at(&|place| place.starts_with(to) && !place.ends_with("switched off"));
    let told = format!(
        "{random:?}\n{from} to {to}: {sent} sent, {left} left, {came} came, {delivered} delivered, {lost:?}"
    );
    assert!(
        left <= sent && sent <= left + here + under_way + torn,
        "{told}"
    );
    assert!(delivered <= came && came <= delivered + there, "{told}");
    if random.permanent {
        assert_eq!(delivered, came, "{told}");
    }
}

/// `AEROSTAT_CASES` is the number of labs, `AEROSTAT_SEED` the seed of the first.
#[test]
fn books_of_programs_balance_over_random_crashes_and_agree_with_captures() {
    let number = |name, default| match std::env::var(name) {
        Ok(text) => text.parse().expect("a number"),
        Err(_) => default,
    };
    let (cases, first) = (number("AEROSTAT_CASES", 40), number("AEROSTAT_SEED", 0));
    let (mut crashed, mut lost) = (0, 0);
    for seed in first..first + cases {
        let mut octets = [0; 32];
        octets[..8].copy_from_slice(&u64::to_le_bytes(seed));
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &octets);
        let mut runner = TestRunner::new_with_rng(Config::default(), rng);
        let random = random()
            .new_tree(&mut runner)
            .expect("no filters")
            .current();
        let directory = Directory::new();
        let (_, report) = run(&random.file(), Some(&directory.0));
        let [a, b] = ["a", "b"].map(|node| passed(&directory.0, node, random.size));
        compare(&random, &report, "a", "b", a[0], b[1]);
        compare(&random, &report, "b", "a", b[0], a[1]);
        crashed += u64::from(report.dialogues.iter().any(|row| row.sent > 0));
        lost += report.dialogues.iter().map(Dialogue::lost).sum::<u64>();
    }
    assert!(crashed * 4 >= cases * 3 && lost > 0, "{crashed}, {lost}");
}
