//! Hosts whose packets cost time, beside the closed forms that follow from the costs.

use crate::losses::{books, only_at, run};
use aerostat_lab::model::Lab;
use aerostat_lab::report::RunReport;
use aerostat_node::inspect::StateKind;
use aerostat_node::inspect::host::ReceivePath;
use aerostat_node::ip::apps::AppResult;
use aerostat_proto::Instant;
use std::collections::BTreeMap;

/// Two hosts of an ELAN at a switch, with these keys of their own.
fn pair(a: &str, b: &str, traffic: &str) -> String {
    format!(
        "switches: {{ s: {{}} }}\n\
         lane: {{ on: s, elans: {{ e: {{ subnet: 10.1.0.0/24 }} }} }}\n\
         hosts:\n  a: {{ on: s, elan: e, ip: 10.1.0.1, {a} }}\n  b: {{ on: s, elan: e, ip: 10.1.0.2, {b} }}\n\
         traffic:\n  - {{ name: warm, from: a, to: b, kind: ping, rate: 10pps, start: 2s, duration: 1s }}\n  \
         - {{ name: load, from: a, to: b, start: 4s, {traffic} }}\n"
    )
}

/// The row of a host in a table of `cpu`, by column.
fn cpu(report: &RunReport, host: &str, title: &str) -> Vec<BTreeMap<&'static str, String>> {
    let (_, kinds) = report.nodes.iter().find(|(name, _)| name == host).unwrap();
    let (_, tables) = kinds
        .iter()
        .find(|(kind, _)| *kind == StateKind::Cpu)
        .unwrap();
    let table = tables.iter().find(|table| table.title == title).unwrap();
    let row = |row: &Vec<_>| {
        let cells = table.columns.iter().zip(row);
        cells
            .map(|(name, cell): (_, &aerostat_node::inspect::Value)| (*name, cell.to_string()))
            .collect()
    };
    table.rows.iter().map(row).collect()
}

fn number(row: &BTreeMap<&'static str, String>, column: &str) -> u64 {
    row[column].parse().unwrap()
}

/// Mbit/s of payload of a flow.
fn throughput(lab: &Lab, report: &RunReport, flow: &str) -> f64 {
    let index = lab.traffic.iter().position(|known| known.name == flow);
    let paths = &report.flows[index.unwrap()].paths;
    paths.iter().map(|path| path.throughput_mbps).sum()
}

#[test]
fn datagrams_go_through_at_the_rate_of_the_slower_cpu_whatever_their_size() {
    // 1/(a + b × octets): the sender takes 60 µs + 30 ns/octet, the receiver 70 µs + 50 ns/octet or 10 µs + 10
    // ns/octet.
    for (receive, [a, b]) in [
        ("70us + 50ns/octet", [70e-6, 50e-9]),
        ("10us + 10ns/octet", [60e-6, 30e-9]),
    ] {
        for size in [24, 500, 1472] {
            // 12 % more than goes through: the excess waits and then is lost.
            let expected = 1.0 / (a + b * f64::from(size + 28));
            let rate = (expected * 1.12) as u32;
            let text = pair(
                "cpu: { send: 60us + 30ns/octet, queue: 20 }",
                &format!("cpu: {{ receive: {receive}, queue: 20 }}"),
                &format!("kind: udp, rate: {rate}pps, size: {size}, duration: 2s, expect: loss"),
            );
            let books = books(&text, 1);
            let measured = books.delivered as f64 / 2.0;
            // 20 packets wait at the end, which are 10 a second.
            let error = measured - expected;
            assert!(
                error.abs() < 0.002 * expected + 12.0,
                "{receive} {size}: {measured} for {expected}"
            );
            only_at(
                &books,
                if a > 65e-6 {
                    "b: CPU queue full"
                } else {
                    "a: CPU queue full"
                },
            );
        }
    }
}

#[test]
fn tcp_has_the_throughput_of_the_slower_cpu_with_an_acknowledgement_for_two_segments() {
    let text = pair(
        "cpu: { send: 50us + 20ns/octet, ack: 30us }, tcp: { profile: reno, buffer: 65535 }",
        "cpu: { receive: 80us + 40ns/octet, ack: 30us }, tcp: { profile: reno, buffer: 65535 }",
        "kind: tcp, duration: 4s",
    );
    let (lab, report) = run(&text);
    // A segment of 1500 octets of IP carries 1460; the receiver sends half an acknowledgement for it.
    let expected = 1460.0 * 8.0 / (80.0 + 0.040 * 1500.0 + 30.0 / 2.0);
    let measured = throughput(&lab, &report, "load");
    assert!(
        (measured / expected - 1.0).abs() < 0.01,
        "{measured} for {expected}"
    );
    let acks = cpu(&report, "b", "work");
    let count = |work: &str| {
        let row = acks.iter().find(|row| row["work"] == work).unwrap();
        (
            number(row, "packets"),
            number(row, "octets"),
            number(row, "cost_us"),
        )
    };
    let (received, _, _) = count("receive");
    let (acknowledged, octets, cost) = count("acknowledgement");
    assert!(
        acknowledged.abs_diff(received / 2) < received / 50,
        "{acknowledged} for {received}"
    );
    // IP and TCP headers only, and 30 µs each.
    assert!(octets >= 40 * acknowledged && octets < 41 * acknowledged);
    assert_eq!(cost, 30 * acknowledged);
}

#[test]
fn the_cpu_is_busy_for_the_sum_of_its_costs_and_loses_and_keeps_what_the_books_say() {
    let text = pair(
        "cpu: { send: 100us, jitter: 10% }",
        "cpu: { receive: 400us, queue: 7 }",
        "kind: udp, rate: 5000pps, size: 100, duration: 1s, expect: loss",
    );
    let (lab, report) = run(&text);
    for host in ["a", "b"] {
        let load = &cpu(&report, host, "load")[0];
        let work = cpu(&report, host, "work");
        let sum: u64 = work.iter().map(|row| number(row, "cost_us")).sum();
        let busy = number(load, "busy_us");
        // Nothing waits at the end; each row and the sum are rounded down.
        assert!(
            busy.abs_diff(sum)
                <= 3 + work.iter().map(|row| number(row, "packets")).sum::<u64>() / 1000,
            "{busy} {sum}"
        );
        let share = busy as f64 / 1e6 / report.end.as_secs_f64();
        assert!((number(load, "utilisation_ppm") as f64 - share * 1e6).abs() < 2.0);
    }
    // 10 % of jitter, evenly distributed, leaves the mean at 100 µs.
    let sent = &cpu(&report, "a", "work")[0];
    let mean = number(sent, "cost_us") as f64 / number(sent, "packets") as f64;
    assert!((mean - 100.0).abs() < 0.5, "{mean}");
    let load = &cpu(&report, "b", "load")[0];
    let flow = &report.flows[1].paths[0];
    let lost = lab.lost_by(flow)["b: CPU queue full"];
    assert_eq!(number(load, "receive_lost"), lost);
    assert!(number(load, "receive_longest_wait_us") <= 7 * 400);
}

#[test]
fn interrupts_first_starves_the_sender_and_fair_service_does_not() {
    // Packets arrive faster than the CPU can receive them, while the host sends, too.
    let flood = |service: &str| {
        let text = pair(
            "tcp: {}",
            &format!("cpu: {{ send: 100us, receive: 200us, service: {service} }}"),
            "kind: udp, rate: 7000pps, size: 100, duration: 1s, expect: loss",
        );
        let back = "  - { name: back, from: b, to: a, kind: udp, rate: 1000pps, size: 100, start: 4200ms, duration: 500ms, expect: loss }\n";
        books(&format!("{text}{back}"), 2)
    };
    let starved = flood("interrupt-first");
    let fair = flood("fair");
    // What still waits when the flood is over leaves then: 300 packets at most.
    let lost = only_at(&starved, "b: CPU queue full");
    assert!(lost >= 195, "{lost}");
    assert_eq!(fair.delivered, 500, "{:?}", fair.lost);
}

#[test]
fn what_waits_in_the_cpu_of_a_host_that_crashes_is_lost_there_and_a_restart_begins_empty() {
    let text = pair(
        "tcp: {}",
        "cpu: { receive: 50ms, queue: 100 }",
        "kind: udp, rate: 100pps, size: 100, duration: 3s, expect: loss",
    );
    let text = format!(
        "{text}faults: [{{ at: 4600ms, crash: b }}, {{ at: 4700ms, restart: b }}]\nuntil: 40s\n"
    );
    let books = books(&text, 1);
    // 60 packets came, of which 12 are through.
    let off = books.lost["b: switched off"];
    assert!((45..=60).contains(&off), "{:?}", books.lost);
    assert_eq!(books.under_way, 0);
    assert_eq!(
        books.sent,
        books.delivered + books.lost.values().sum::<u64>()
    );
    assert!(
        books.delivered > 100,
        "{} after the restart",
        books.delivered
    );
}

#[test]
fn what_waits_for_a_connection_that_is_closed_is_lost_with_it() {
    // The sender's LANE client crashes while its packets wait.
    let text = pair(
        "cpu: { send: 20ms, queue: 200 }",
        "tcp: {}",
        "kind: udp, rate: 200pps, size: 100, duration: 1s, expect: loss",
    );
    let text = text + "faults: [{ at: 4500ms, crash: b }]\nuntil: 60s\n";
    let books = books(&text, 1);
    assert_eq!(
        books.sent,
        books.delivered + books.lost.values().sum::<u64>() + books.under_way
    );
    assert!(books.delivered <= 26, "{}", books.delivered);
    assert!(
        books.lost.contains_key("a: connection closed"),
        "{:?}",
        books.lost
    );
}

#[test]
fn a_program_waits_for_the_cpu_and_loses_nothing() {
    let text = "\
switches: { s: {} }
clip: { c: { subnet: 10.1.0.0/24, server: a } }
hosts:
  a: { on: s, elan: c, ip: 10.1.0.1, cpu: { native: { send: 100us + 100ns/octet } }, sockets: [{ name: w, call: b, pdus: 500, size: 4000, rate: 1000pps }] }
  b: { on: s, elan: c, ip: 10.1.0.2, cpu: { native: { receive: 1ms } }, sockets: [{ name: r, listen: sink }] }
traffic: []
until: 6s
";
    let (_, report) = run(text);
    let [books] = &report.dialogues[..] else {
        panic!("{:?}", report.dialogues);
    };
    assert_eq!(
        (books.offered, books.sent, books.delivered),
        (500, 500, Some(500))
    );
    let work = cpu(&report, "a", "work");
    let work = work
        .iter()
        .find(|row| row["encapsulation"] == "native")
        .unwrap();
    assert_eq!(
        (number(work, "packets"), number(work, "cost_us")),
        (500, 500 * 500)
    );
    let load = &cpu(&report, "b", "load")[0];
    assert_eq!(number(load, "receive_lost"), 0);
}

#[test]
fn one_seed_gives_one_run_and_another_seed_another_jitter() {
    let text = |seed: u32| {
        let text = pair(
            "cpu: { send: 100us, jitter: 20% }",
            "cpu: { receive: 100us, jitter: 20% }",
            "kind: udp, rate: 3000pps, size: 100, duration: 1s",
        );
        format!("seed: {seed}\n{text}")
    };
    let delays = |seed: u32| run(&text(seed)).1.flows[1].paths[0].delay;
    assert_eq!(delays(1), delays(1));
    assert_ne!(delays(1), delays(2));
}

#[test]
fn interruptions_take_their_share_of_the_cpu_and_differ_from_seed_to_seed() {
    let rate = |interruptions: &str, seed: u64| {
        let text = pair(
            &format!("cpu: {{ send: 1ms, queue: 20{interruptions} }}"),
            "",
            "kind: udp, rate: 1200pps, size: 1000, duration: 5s, expect: loss",
        );
        books(&format!("seed: {seed}\n{text}"), 1).delivered as f64 / 5.0
    };
    // The CPU has 9 of 10 parts of its time; 250 interruptions of 2 ms differ by 9 % of their sum.
    let whole = rate("", 1);
    assert!((whole - 1000.0).abs() < 10.0, "{whole}");
    let often = ", interruptions: { every: 18ms, length: 2ms }";
    let seeds = [1, 2, 3].map(|seed| rate(often, seed));
    for share in seeds.map(|found| found / whole) {
        assert!((share - 0.9).abs() < 0.025, "{share}");
    }
    assert!(seeds[0] != seeds[1] && seeds[1] != seeds[2], "{seeds:?}");
    assert_eq!(rate(often, 1).to_bits(), seeds[0].to_bits());
    // Some of them only: the sums differ by as much as a single one is long.
    let few = [1, 2, 3].map(|seed| rate(", interruptions: { every: 2s, length: 100ms }", seed));
    assert!(few.iter().any(|found| *found < whole - 10.0), "{few:?}");
}

#[test]
fn a_host_without_a_cpu_has_no_such_table() {
    let (_, report) = run(&pair(
        "tcp: {}",
        "cpu: { send: 1us }",
        "kind: udp, rate: 10pps, duration: 1s",
    ));
    let kinds = |host: &str| {
        let (_, kinds) = report.nodes.iter().find(|(name, _)| name == host).unwrap();
        kinds.iter().any(|(kind, _)| *kind == StateKind::Cpu)
    };
    assert_eq!([kinds("a"), kinds("b")], [false, true]);
}

#[test]
fn an_adapter_loses_what_comes_faster_than_its_buffers_are_free() {
    // 9180 octets are 192 cells; 19 200 cells/s are 100 PDUs a second, and two may be there.
    for (receive, per_second) in [("19200cells/s", 100), ("150pdus/s", 150)] {
        let text = format!(
            "switches: {{ s: {{}} }}\n\
             clip: {{ c: {{ subnet: 10.1.0.0/24, server: a }} }}\n\
             hosts:\n  a: {{ on: s, elan: c, ip: 10.1.0.1 }}\n  \
             b: {{ on: s, elan: c, ip: 10.1.0.2, adapter: {{ receive: {receive}, buffer: 2 }} }}\n\
             traffic:\n  - {{ name: warm, from: a, to: b, kind: ping, rate: 10pps, start: 2s, duration: 1s }}\n  \
             - {{ name: load, from: a, to: b, kind: udp, rate: 200pps, size: 9152, start: 4s, duration: 2s, expect: loss }}\n"
        );
        let (lab, report) = run(&text);
        let flow = &report.flows[1].paths[0];
        let lost = lab.lost_by(flow)["b: receive buffer full"];
        assert_eq!(flow.lost, lost);
        assert!(
            flow.received_packets.abs_diff(2 * per_second) <= 2,
            "{receive}: {}",
            flow.received_packets
        );
        let (_, kinds) = report.nodes.iter().find(|(name, _)| name == "b").unwrap();
        let (_, tables) = kinds
            .iter()
            .find(|(kind, _)| *kind == StateKind::Port)
            .unwrap();
        let rows: Vec<ReceivePath> = tables
            .iter()
            .flat_map(|table| table.rows().unwrap())
            .collect();
        // A message of signalling may have been lost, too.
        assert!(
            (lost..lost + 5).contains(&rows[0].pdus_lost),
            "{}",
            rows[0].pdus_lost
        );
        assert_eq!(rows[0].most_held_pdus, 2);
    }
}

/// Measurements of the receiver of the second flow by its own clock; then the first and the last time of the flow, and
/// its true mean delay, in microseconds.
fn by_clock(a: &str, b: &str) -> ([f64; 2], [f64; 2], u64) {
    let text = pair(a, b, "kind: udp, rate: 1000pps, size: 100, duration: 2s");
    let (_, report) = run(&(text + "until: 8s\n"));
    let flow = &report.flows[1];
    let measured = cpu(&report, "b", "measured");
    let measured = measured
        .iter()
        .find(|row| row["flow"] == "1")
        .map(|row| number(row, "mean_ns") as f64 / 1e3);
    let micros = |at: Option<Instant>| at.unwrap().as_nanos() as f64 / 1e3;
    let path = &flow.paths[0];
    let times = [micros(flow.first), micros(flow.last_offered)];
    let delays = [measured.unwrap(), path.delay.mean_us];
    (delays, times, path.received_packets)
}

#[test]
fn a_late_or_fast_clock_moves_what_is_sent_and_what_the_receiver_measures() {
    let ([measured, delay], [first, last], packets) = by_clock("tcp: {}", "clock: { phase: 1ns }");
    assert!((measured - delay).abs() < 1.0 && packets == 2000);
    assert_eq!((first, last), (4e6, 5.999e6));
    // A sender that is 3 ms late sends 3 ms later, with stamps that are 3 ms too small.
    let ([measured, delay], [first, _], packets) =
        by_clock("clock: { phase: 3ms }", "clock: { phase: 1ns }");
    assert!(
        (measured - delay - 3000.0).abs() < 1.0,
        "{measured} {delay}"
    );
    assert_eq!((first, packets), (4.003e6, 2000));
    // A clock that is 1000 ppm fast makes two seconds of 2 s / 1.001. At 4 s it is 4 ms ahead, and then gains.
    let ([measured, delay], [first, last], packets) = by_clock("tcp: {}", "clock: { ppm: 1000 }");
    assert!(
        (measured - delay - 4999.5).abs() < 2.0,
        "{measured} {delay}"
    );
    assert_eq!((first, last, packets), (4e6, 5.999e6, 2000));
    let (_, [first, last], packets) = by_clock("clock: { ppm: 1000 }", "clock: { phase: 1ns }");
    assert!(
        (last - first - 1_999_000.0 / 1.001).abs() < 1.0,
        "{first} {last}"
    );
    assert_eq!(packets, 2000);
}

/// Packets, octets and microseconds of a kind of work.
fn work(report: &RunReport, host: &str, kind: &str) -> [u64; 3] {
    let rows = cpu(report, host, "work");
    let row = rows.iter().find(|row| row["work"] == kind).unwrap();
    ["packets", "octets", "cost_us"].map(|column| number(row, column))
}

/// Octets of the flow `load` that the sink's host has acknowledged.
fn acknowledged(report: &RunReport) -> u64 {
    let mut programs = report.programs.iter();
    match programs.find(|(flow, role, _)| (*flow, *role) == (1, "from")) {
        Some((_, _, AppResult::TcpSource(source))) => source.octets,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_program_writes_as_fast_as_its_calls_and_their_segments_take() {
    // Writes of w octets take a + b × w, and the CPU then sends their segments; the window does not matter.
    for (write, send) in [(4096, 0), (8192, 0), (1448, 0), (4344, 50), (8688, 120)] {
        let text = pair(
            &format!(
                "cpu: {{ write: 400us + 50ns/octet, send: {send}us }}, tcp: {{ buffer: 256KiB }}"
            ),
            "tcp: { buffer: 256KiB }",
            &format!("kind: tcp, write: {write}, duration: 3s"),
        );
        let (lab, report) = run(&text);
        // A write of whole segments leaves no rest; other writes share segments with their neighbours.
        let segments = f64::from(write) / 1448.0;
        let expected =
            f64::from(write) * 8.0 / (400.0 + 0.05 * f64::from(write) + f64::from(send) * segments);
        let measured = throughput(&lab, &report, "load");
        assert!(
            (measured / expected - 1.0).abs() < 0.01,
            "{write} {send}: {measured} for {expected}"
        );
        // Each octet of the flow was written once, in writes of the given size; the last one may be under way.
        let [calls, moved, cost] = work(&report, "a", "write");
        let rest = moved - acknowledged(&report);
        assert!([0, write as u64].contains(&rest), "{write}: {rest}");
        assert_eq!(calls, moved.div_ceil(write as u64), "{write}");
        let exact = 400.0 * calls as f64 + 0.05 * moved as f64;
        assert!((cost as f64 - exact).abs() < 2.0, "{write}: {cost}");
    }
}

#[test]
fn a_program_reads_as_fast_as_the_cpu_copies_and_the_window_follows_it() {
    // 100 ns/octet are 80 Mb/s. Without a cost for each call it does not matter how much a call reads.
    for buffer in ["32KiB", "64KiB", "512KiB"] {
        let text = pair(
            &format!("tcp: {{ buffer: {buffer} }}"),
            &format!("cpu: {{ read: 100ns/octet }}, tcp: {{ buffer: {buffer} }}"),
            "kind: tcp, duration: 3s",
        );
        let (lab, report) = run(&text);
        let measured = throughput(&lab, &report, "load");
        assert!((measured / 80.0 - 1.0).abs() < 0.02, "{buffer}: {measured}");
        let flow = &report.flows[1].paths[0];
        assert!(lab.lost_by(flow).is_empty(), "{buffer}");
        let [_, moved, cost] = work(&report, "b", "read");
        assert_eq!(acknowledged(&report), moved, "{buffer}");
        assert!((cost as f64 - 0.1 * moved as f64).abs() < 2.0, "{buffer}");
    }
}

#[test]
fn a_request_and_its_response_wait_for_two_writes_and_two_reads() {
    let time = |a: &str, b: &str| {
        let traffic = "kind: rr, size: 100, duration: 2s";
        let (_, report) = run(&pair(a, b, traffic));
        *report.response_of(1).unwrap()
    };
    let free = time("tcp: {}", "tcp: {}");
    let paced = time(
        "cpu: { write: 300us + 1us/octet, read: 500us }",
        "cpu: { read: 70us + 2us/octet, write: 11us + 10ns/octet }",
    );
    // The client writes 100 octets, and reads as many; so does the server.
    let calls = 300 + 100 + 500 + 70 + 200 + 11 + 1;
    let more = paced.min_us - free.min_us;
    assert!(
        (more - f64::from(calls)).abs() < 0.1,
        "{more} µs for {calls}"
    );
    assert!(paced.mean_us - paced.min_us < 60.0, "{paced:?}");
}

#[test]
fn connections_share_the_cpu_of_their_reader_and_a_restart_begins_without_calls() {
    let text = pair(
        "tcp: { buffer: 64KiB }",
        "tcp: { buffer: 64KiB }, cpu: { read: 100us + 100ns/octet, write: 1us, jitter: 10% }",
        "kind: tcp, duration: 6s, expect: loss",
    );
    let more = "  - { name: other, from: a, to: b, kind: tcp, port: 5009, start: 4s, duration: 6s, expect: loss }\n";
    let (lab, report) = run(&format!("{text}{more}"));
    let [one, other] = ["load", "other"].map(|flow| throughput(&lab, &report, flow));
    assert!((one / other - 1.0).abs() < 0.1, "{one} and {other}");
    assert!(
        one + other < 80.0 && one + other > 70.0,
        "{one} and {other}"
    );

    // A crash in the middle of a call: the flow goes on after the restart, and the books balance.
    let faults = "faults: [{ at: 5s, crash: b }, { at: 5500ms, restart: b }]\nuntil: 60s\n";
    let books = books(&format!("{text}{faults}"), 1);
    let lost: u64 = books.lost.values().sum();
    assert_eq!(books.sent, books.delivered + lost + books.under_way);
    let (_, report) = run(&format!("{text}{faults}"));
    let [_, moved, _] = work(&report, "b", "read");
    assert!(moved > 1 << 20, "{moved} after the restart");
}

/// Octets that arrive while a read takes its time are read next, although no event tells of them.
#[test]
fn a_response_of_several_segments_is_read_in_as_many_calls_as_it_takes() {
    for (size, read, write) in [
        (3000, 10_000, 0),
        (3000, 200, 0),
        (100_000, 5000, 100),
        (2049, 1000, 100),
    ] {
        let text = pair(
            &format!("cpu: {{ read: {read}us }}"),
            &format!("cpu: {{ write: {write}us }}"),
            &format!("kind: rr, size: {size}, duration: 4s"),
        );
        let (_, report) = run(&text);
        let times = report.response_of(1).unwrap();
        let most = times.max_us.max(1.0);
        let expected = 4e6 / most;
        assert!(
            times.count as f64 > 0.8 * expected,
            "{size} {read}: {times:?}"
        );
    }
}
