//! Signalling managers that cost time: set-up times beside their closed form, lines that fail, queues that are full.

use crate::bench::{Bench, lab_of, repository_lab};
use crate::sockets::calls;
use aerostat_node::inspect::StateKind;
use aerostat_proto::Duration;

/// Nodes of the lab with a manager.
const PLACES: [&str; 6] = [
    "hosts.one",
    "hosts.two",
    "hosts.three",
    "hosts.four",
    "hosts.five",
    "switches.s",
];

/// Set-up times over the link, over the switch and inside a host in microseconds, with these costs in nanoseconds.
fn set_up(message: u64, hand_over: u64, links: &str) -> [u64; 3] {
    let managers = PLACES
        .map(|place| format!("{place}.manager={{message: {message}ns, hand_over: {hand_over}ns}}"));
    let rates = [
        "links.one-two.rate",
        "hosts.three.link.rate",
        "hosts.four.link.rate",
    ];
    let rates = rates.map(|key| format!("{key}={links}"));
    let changes: Vec<&str> = managers.iter().chain(&rates).map(String::as_str).collect();
    let lab = repository_lab("managers", &changes);
    let end = lab.end();
    let mut bench = Bench::new(lab, 1);
    bench.run(end);
    let rows = [("one", "direct"), ("three", "switched"), ("five", "local")];
    rows.map(|(host, program)| {
        let call = &calls(&bench, host)[program][0];
        assert_eq!((&*call["sent_pdus"], &*call["cause"]), ("1", "16"));
        call["setup_us"].parse().expect("a number")
    })
}

/// A message is written, carried and read. Over the link: SETUP, CONNECT. Over the switch, which writes CALL PROCEEDING
/// before it forwards SETUP, and CONNECT ACKNOWLEDGE before it forwards CONNECT, as well.
///
/// ```text
///             messages            hand-overs                       lines
///   link      2 + 2               4 x 2                            2
///   switch    2 + 3 + 2 + 3       4 x 2 at hosts, 6 at the switch  4
///   inside    2 + 2               4 x 2                            0
/// ```
fn closed_form(message: u64, hand_over: u64) -> [u64; 3] {
    let link = 4 * message + 8 * hand_over;
    [link, 10 * message + 14 * hand_over, link]
}

#[test]
fn a_call_takes_the_sum_of_its_messages_and_of_its_lines() {
    // Without costs there is the time of the cells, and 1 us for each line.
    let lines = [2_u64, 4, 0];
    let wires = set_up(0, 0, "taxi");
    let cells: [u64; 3] = core::array::from_fn(|n| ((wires[n] - lines[n]) * 1000).div_ceil(4320));
    let wire = |n: usize, cell: u64| cells[n] * cell + lines[n] * 1000;
    assert_eq!(wires, core::array::from_fn(|n| wire(n, 4320) / 1000));
    // Each message is carried once, or twice.
    assert_eq!(cells[1], 2 * cells[0]);
    for (message, hand_over, rate, cell) in [
        (2_411_000, 1_344_000, "taxi", 4320),
        (2_411_000, 1_344_000, "e3", 12_500),
        (1_000_003, 0, "taxi", 4320),
        (0, 777_777, "taxi", 4320),
        (9, 1, "e3", 12_500),
    ] {
        let costs = closed_form(message, hand_over);
        let expected = core::array::from_fn(|n| (costs[n] + wire(n, cell)) / 1000);
        assert_eq!(
            set_up(message, hand_over, rate),
            expected,
            "{message} {hand_over} {rate}"
        );
    }
}

/// Source: Black and Crosby (1993), Table 1. The first row is a calibration, the second a prediction.
#[test]
fn the_row_of_the_switch_follows_from_that_of_the_link() {
    let lab = repository_lab("managers", &[]);
    let mut bench = Bench::new(lab, 1);
    bench.run(Duration::from_secs(3));
    let micros = |host: &str, program: &str| -> f64 {
        calls(&bench, host)[program][0]["setup_us"]
            .parse()
            .expect("a number")
    };
    let (direct, switched) = (micros("one", "direct"), micros("three", "switched"));
    let local = micros("five", "local");
    assert!((direct / 20_400.0 - 1.0).abs() < 0.005, "{direct}");
    assert!((switched / 42_100.0 - 1.0).abs() < 0.03, "{switched}");
    assert!((local / 21_800.0 - 1.0).abs() < 0.07, "{local}");
}

/// Calls inside a host whose manager takes 20 ms for a call, and 10 ms for its end, while the link is cut.
#[test]
fn calls_inside_a_host_take_the_time_of_its_manager_and_no_link() {
    let text = "
switches: { s: {} }
clip: { w: { subnet: 10.0.0.0/24, server: b } }
hosts:
  a: { on: s, elan: w, ip: 10.0.0.1, manager: { message: 1ms, hand_over: 2ms, release: 1 }, sockets: [
       { listen: echo },
       { name: talk, call: a, start: 2s, pdus: 100, rate: 1000pps, hold: 50ms },
       { name: brief, call: a, start: 5s, pdus: 0, hold: 0s, every: 35ms } ] }
  b: { on: s, elan: w, ip: 10.0.0.2 }
faults: [{ at: 1s, link_down: a-s }]
";
    let mut bench = Bench::new(lab_of("inside.atm.yml", text, &[]), 1);
    bench.run(Duration::from_secs(6));
    let all = calls(&bench, "a");
    let talk = &all["talk"][0];
    assert_eq!((&*talk["vc"], &*talk["setup_us"]), ("local", "20000"));
    let counts = ["sent_pdus", "received_pdus", "refused_pdus", "cause"].map(|key| &*talk[key]);
    assert_eq!(counts, ["100", "100", "0", "16"]);
    assert_eq!(talk["sent_crc32"], talk["received_crc32"]);
    // A call of 20 ms and its end of 10 ms, and 35 ms from the end of a call to the next one.
    let brief = all["brief"].len();
    assert!((15..=25).contains(&brief), "{brief}");
    for call in &all["brief"] {
        assert!(["", "-", "16"].contains(&&*call["cause"]), "{call:?}");
    }
}

/// Eight callers at once over a switch whose manager is slow.
fn crowd(manager: &str, rest: &str) -> Bench {
    let callers: Vec<String> = (0..8)
        .map(|n| format!("{{ name: c{n}, call: b, start: 2s, pdus: 1, hold: 20s }}"))
        .collect();
    let text = format!(
        "switches: {{ s: {{ manager: {{ message: 2ms, hand_over: 1ms{manager} }} }} }}\n\
         clip: {{ w: {{ subnet: 10.0.0.0/24, server: b }} }}\n\
         hosts:\n  a: {{ on: s, elan: w, ip: 10.0.0.1, sockets: [{}] }}\n  \
           b: {{ on: s, elan: w, ip: 10.0.0.2, sockets: [{{ listen: sink }}] }}\n{rest}",
        callers.join(", ")
    );
    let mut bench = Bench::new(lab_of("managers.atm.yml", &text, &[]), 1);
    bench.run(Duration::from_secs(15));
    let all = calls(&bench, "a");
    for n in 0..8 {
        let call = all[&format!("c{n}")].last().expect("a call");
        assert_eq!(
            (&*call["state"], &*call["sent_pdus"]),
            ("open", "1"),
            "{call:?}"
        );
    }
    bench
}

/// Messages that the manager of the switch has lost.
fn lost(bench: &Bench) -> u64 {
    let id = bench.lab.find("s").expect("a switch");
    let tables = bench.world.node(aerostat_sim::NodeId(id.0)).expect("on");
    let tables = tables
        .inspect(StateKind::Cpu, bench.now())
        .expect("a manager");
    let load = tables
        .iter()
        .find(|table| table.title == "load")
        .expect("a table");
    let column = load.columns.iter().position(|name| *name == "control_lost");
    load.rows[0][column.expect("a column")]
        .to_string()
        .parse()
        .expect("a number")
}

#[test]
fn messages_that_find_no_room_are_counted_and_sent_again() {
    assert_eq!(lost(&crowd("", "")), 0);
    assert!(lost(&crowd(", queue: 3", "")) > 0);
}

#[test]
fn what_waits_for_a_line_that_fails_is_gone_and_calls_come_up_after_it() {
    // 2.005 s: the manager has begun with the first SETUP, and the others wait.
    let faults = "faults:\n  - { at: 2005ms, link_down: a-s }\n  - { at: 2500ms, link_up: a-s }\n";
    crowd("", faults);
    let crash = "faults:\n  - { at: 2005ms, crash: s }\n  - { at: 2500ms, restart: s }\n";
    crowd("", crash);
}
