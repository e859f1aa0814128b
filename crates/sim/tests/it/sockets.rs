//! Programs with ATM sockets: their PDUs arrive undamaged, and refused calls have their cause at both ends.

use crate::bench::{Bench, lab_of, repository_lab};
use crate::losses;
use aerostat_node::inspect::StateKind;
use aerostat_proto::Duration;
use std::collections::BTreeMap;

/// The calls of a host: name of the program, then the columns of its calls in order.
pub(crate) fn calls(
    bench: &Bench,
    host: &str,
) -> BTreeMap<String, Vec<BTreeMap<&'static str, String>>> {
    let id = bench.lab.find(host).expect("a host of the lab");
    let node = bench.world.node(aerostat_sim::NodeId(id.0)).expect("on");
    let tables = node
        .inspect(StateKind::Sockets, bench.now())
        .expect("sockets");
    let table = tables.iter().find(|table| table.title == "calls");
    let mut all: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for row in &table.expect("a table of calls").rows {
        let row: BTreeMap<_, _> = tables[1]
            .columns
            .iter()
            .zip(row)
            .map(|(column, value)| (*column, value.to_string()))
            .collect();
        all.entry(row["name"].clone()).or_default().push(row);
    }
    all
}

#[test]
fn calls_of_the_lab() {
    let lab = repository_lab("sockets", &[]);
    let end = lab.end();
    let mut bench = Bench::new(lab, 1);
    bench.run(end);
    let (urku, sello) = (calls(&bench, "urku"), calls(&bench, "sello"));
    // 200 PDUs of 4096 octets in one direction, and the same sum at the other end.
    let (bulk, sink) = (&urku["bulk"][0], &sello["sink"][0]);
    assert_eq!(
        (&*bulk["sent_pdus"], &*bulk["sent_octets"]),
        ("200", "819200")
    );
    assert_eq!(bulk["sent_crc32"], "430ffa9a");
    for (sent, received) in [
        ("sent_pdus", "received_pdus"),
        ("sent_octets", "received_octets"),
        ("sent_crc32", "received_crc32"),
    ] {
        assert_eq!(bulk[sent], sink[received]);
    }
    assert_eq!(sello["sink"].len(), 1, "the stranger does not come to it");
    // Its host counts every call without a listener, and shows this. The callers try again and again.
    let node = bench.world.node(aerostat_sim::NodeId(
        bench.lab.find("sello").expect("a host").0,
    ));
    let tables = node.and_then(|node| node.inspect(StateKind::Call, bench.now()));
    let tables = tables.expect("calls of an end system");
    let counters = tables.iter().find(|table| table.title == "counters");
    let rows = &counters.expect("a table of counters").rows;
    let shown = |name| rows.iter().find(|row| row[0].to_string() == name);
    let strangers = shown("incompatible").expect("a row")[1].to_string();
    let strangers: usize = strangers.parse().expect("a number");
    let seen = urku["stranger"].len() + urku["nobody"].len();
    assert!(seen > 0 && strangers >= seen, "{strangers} {seen}");
    assert!(shown("refused").is_none(), "what did not happen");
    // The echo, in both directions.
    let (talk, echo) = (&urku["talk"][0], &sello["echo"]);
    assert_eq!(
        (&*talk["received_pdus"], &*talk["received_crc32"]),
        ("10", "d98906b2")
    );
    assert_eq!(
        (&*echo[1]["sent_pdus"], &*echo[1]["received_crc32"]),
        ("10", "d98906b2")
    );
    let setup: u64 = talk["setup_us"].parse().expect("a number");
    assert!((10..10_000).contains(&setup), "{setup} us");
    // Released by the caller, with the same cause at both ends.
    for (here, there) in [(bulk, sink), (talk, &echo[1])] {
        assert_eq!((&*here["cause"], &*there["cause"]), ("16", "16"));
        assert_eq!(
            (&*here["released_by"], &*there["released_by"]),
            ("us", "peer")
        );
    }
    // Refused, each for its own reason.
    for (name, cause) in [
        ("second", "17"),
        ("stranger", "88"),
        ("nobody", "88"),
        ("nowhere", "3"),
    ] {
        let call = &urku[name][0];
        assert_eq!((&*call["cause"], &*call["vc"]), (cause, "-"), "{name}");
    }
    assert_eq!((&*echo[0]["cause"], &*echo[0]["released_by"]), ("17", "us"));
    for host in ["urku", "sello"] {
        let id = bench.lab.find(host).expect("a host of the lab");
        let node = bench.world.node(aerostat_sim::NodeId(id.0)).expect("on");
        let left = node.as_station().expect("a host").host();
        let left: Vec<_> = left
            .signalling()
            .calls()
            .filter(|call| call.called.selector() >= 0xe0)
            .collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

/// A program that calls once, at 1 s, over a trunk.
const CUT: &str = "
switches: { s1: {}, s2: {} }
links: [[s1, s2, { rate: oc3 }]]
clip: { w: { subnet: 10.7.0.0/24, server: x } }
hosts:
  x:
    on: s1
    elan: w
    ip: 10.7.0.1
    sockets: [{ name: once, call: y/e1, size: 100, pdus: 5, rate: 100pps, start: 1s }]
  y: { on: s2, elan: w, ip: 10.7.0.2, sockets: [{ name: sink, listen: sink, selector: e1 }] }
until: 5s
";

#[test]
fn a_program_that_calls_once_calls_again_when_its_trunk_was_down_at_the_first_try() {
    let lab = aerostat_lab::parse("cut.atm.yml", CUT, &[]);
    let lab = lab.unwrap_or_else(|wrong| panic!("{wrong}")).lab;
    let end = lab.end();
    let mut bench = Bench::new(lab, 1);
    let trunk = bench.link("s1-s2");
    bench.run(Duration::from_millis(500));
    bench.cut(trunk, true);
    bench.run(Duration::from_secs(1));
    bench.cut(trunk, false);
    bench.run(end);
    let (here, there) = (calls(&bench, "x"), calls(&bench, "y"));
    // The last of the failed calls, and the one that was answered.
    let [failed, answered] = &here["once"][..] else {
        panic!("{here:#?}");
    };
    assert_eq!(failed["vc"], "-");
    assert_eq!(
        (&*answered["sent_pdus"], &*answered["cause"]),
        ("5", "16"),
        "{here:#?}"
    );
    assert_eq!(there["sink"][0]["received_pdus"], "5");
}

/// The adapter may take a whole transfer at one instant: its rate is still that of the contract. A call that its far
/// end cuts off names how much was left.
#[test]
fn a_transfer_that_the_adapter_takes_at_once_has_a_rate_and_a_cut_one_names_what_was_left() {
    let lab = |program: &str, rest: &str| {
        format!(
            "switches: {{ s: {{}} }}\nclip: {{ n: {{ subnet: 10.1.0.0/24, server: a }} }}\nhosts:\n\
             \x20 a: {{ on: s, elan: n, ip: 10.1.0.1, sockets: [{{ name: w, call: b, {program} }}] }}\n\
             \x20 b: {{ on: s, elan: n, ip: 10.1.0.2, sockets: [{{ name: r, listen: sink }}] }}\n{rest}"
        )
    };
    let slow = "qos: 'cbr:pcr=1000', size: 8192, pdus: 20, rate: line";
    let (_, report) = losses::run(&lab(slow, ""));
    let [books] = &report.dialogues[..] else {
        panic!("{:?}", report.dialogues);
    };
    assert_eq!((books.sent, books.delivered), (20, Some(20)));
    // 20 PDUs of 171 cells.
    let theory = 20.0 * 8192.0 * 8.0 / (20.0 * 171.0 / 1000.0) / 1e6;
    let error = books.throughput_mbps.unwrap_or_default() / theory - 1.0;
    assert!(error.abs() < 0.001, "{books:?} {theory}");
    for rate in ["line", "2000pps"] {
        let cut = format!("qos: ubr, size: 8192, pdus: 2000, rate: {rate}");
        let faults = "until: 3s\nfaults: [{ at: 1200ms, crash: b }]\n";
        let (_, report) = losses::run(&lab(&cut, faults));
        let books = &report.dialogues[0];
        let left = books.cut.expect("a call that ended early").unwritten;
        assert_eq!(books.offered + left, 2000, "{rate}: {books:?}");
    }
}

/// A run without an end of its own lasts until the PDUs of programs have left by their contracts, whatever their pace,
/// on calls and on permanent connections.
#[test]
fn a_run_ends_when_the_contracts_of_programs_have_let_everything_out() {
    for pace in ["line", "100pps"] {
        let program = format!("pdus: 100, size: 1000, rate: {pace}");
        let ends = [
            (
                format!("call: b, qos: 'cbr,aal5:pcr=100', {program}"),
                "listen: sink",
                "",
            ),
            (
                format!("vc: 0.100, {program}"),
                "vc: 0.100, listen: sink",
                "pvcs: [{ from: a, vc: 0.100, to: b, pcr: 100 }]\n",
            ),
        ];
        for (sender, receiver, rest) in ends {
            let text = format!(
                "switches: {{ s: {{}} }}
clip: {{ n: {{ subnet: 10.1.0.0/24, server: a }} }}
hosts:
  a: {{ on: s, elan: n, ip: 10.1.0.1, sockets: [{{ name: w, {sender} }}] }}
  b: {{ on: s, elan: n, ip: 10.1.0.2, sockets: [{{ name: r, {receiver} }}] }}
{rest}"
            );
            let (_, report) = losses::run(&text);
            let books = &report.dialogues[0];
            let (sent, arrived) = (books.sent, books.delivered);
            assert_eq!((sent, arrived), (100, Some(100)), "{sender}: {books:?}");
            // 100 PDUs of 21 cells at 100 cells a second, and two seconds.
            let end = report.end.as_secs_f64();
            assert!((23.0..25.5).contains(&end), "{sender}: {end}");
        }
    }
}

/// The receiver of a congested connection counts the marks that the switch has set.
#[test]
fn marks_of_congestion_are_counted_where_they_arrive() {
    let text = "\
switches: { s: { queues: { efci: 100 } } }
clip: { n: { subnet: 10.1.0.0/24, server: a } }
hosts:
  a: { on: s, elan: n, ip: 10.1.0.1, sockets: [{ name: w, vc: 0.100, size: 4096, pdus: 20, rate: line }] }
  b: { on: s, elan: n, ip: 10.1.0.2, link: { rate: 25.6 }, sockets: [{ name: r, vc: 0.100, listen: sink }] }
pvcs: [{ from: a, vc: 0.100, to: b }]
until: 2s
";
    let mut bench = Bench::new(lab_of("marks", text, &[]), 1);
    bench.run(Duration::from_secs(2));
    let sum = |node: &str, kind: &str, table: &str, column: &str| -> u64 {
        let id = bench.lab.find(node).expect("a node of the lab");
        let node = bench.world.node(aerostat_sim::NodeId(id.0)).expect("on");
        let tables = node
            .inspect(kind.parse().expect("a kind"), bench.now())
            .expect("a kind of state");
        let mut all = tables.iter().filter(|found| found.title == table);
        let found = all.next().expect("a table");
        let at = found.columns.iter().position(|name| *name == column);
        let at = at.expect("a column");
        let values = found.rows.iter().map(|row| row[at].to_string());
        values.map(|value| value.parse::<u64>().unwrap_or(0)).sum()
    };
    let marked = sum("b", "vc", "connections", "cells_marked");
    assert_eq!(marked, sum("s", "queue", "queues", "marked"));
    // 20 PDUs of 86 cells; most find more than 100 cells before them.
    assert!((1000..1720).contains(&marked), "{marked}");
}
