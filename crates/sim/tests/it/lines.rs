//! Links with two directions of their own, lost blocks, and links that change or train while they carry cells.

use crate::bench::{Bench, lab_of, repository_lab};
use crate::check;
use crate::losses::{books, run};
use aerostat_lab::event::Event;
use aerostat_lab::model::{FaultKind, LineChange, LinkId, Way};
use aerostat_lab::plant::Blocks;
use aerostat_node::atm::CellRate;
use aerostat_node::ip::meter::Side;
use aerostat_node::random::derived_seed;
use aerostat_proto::{Duration, Instant};
use aerostat_sim::run::{LabRun, Watcher};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Seconds that a cell takes at this many kbit/s.
fn cell(kbps: f64) -> f64 {
    424.0 / (kbps * 1e3)
}

/// The shortest round trip of the first flow, seconds.
fn shortest(text: &str) -> f64 {
    let (_, report) = run(text);
    let paths = report.flows[0].paths.iter();
    let times = paths.filter(|path| path.round_trip.count > 0);
    let shortest = times.map(|path| path.round_trip.min_us).reduce(f64::min);
    shortest.expect("an answer") / 1e6
}

#[test]
fn up_and_down_have_their_rates_and_their_delays() {
    const LINE: &str = "rate: { up: 1024kbps, down: 8128kbps }, delay: { up: 2ms, down: 8ms }";
    let traffic =
        "traffic: [{ from: a, to: b, kind: ping, rate: 2pps, start: 1s, duration: 3s }]\n";
    // A ping is 84 octets, and with LLC and trailer 3 cells. Their request and their answer cross the line once each.
    let line = 3.0 * cell(1024.0) + 0.002 + 3.0 * cell(8128.0) + 0.008;
    let direct = format!(
        "switches: {{}}\nlinks: [[a, b, {{ {LINE} }}]]\nclip: {{ n: {{ subnet: 10.1.0.0/24, server: a }} }}\n\
         pvcs: [{{ from: a, vc: \"0.100\", to: b }}]\n\
         hosts: {{ a: {{ elan: n, ip: 10.1.0.1 }}, b: {{ elan: n, ip: 10.1.0.2 }} }}\n{traffic}"
    );
    let time = shortest(&direct);
    assert!((time - line).abs() < 1e-6, "{time} s, {line} s in theory");
    // At a switch, each way has a further line of an OC-3: the time of the last cell, and 5 us.
    let more = 2.0 * (cell(149_760.0) + 5e-6);
    for (of, [a, b]) in [("a", [LINE, "rate: oc3"]), ("b", ["rate: oc3", LINE])] {
        let switched = format!(
            "switches: {{ s: {{}} }}\nclip: {{ n: {{ subnet: 10.1.0.0/24, server: a }} }}\n\
             pvcs: [{{ from: a, vc: \"0.100\", to: b }}]\n\
             hosts:\n  a: {{ on: s, elan: n, ip: 10.1.0.1, link: {{ {a} }} }}\n  \
             b: {{ on: s, elan: n, ip: 10.1.0.2, link: {{ {b} }} }}\n{traffic}"
        );
        let lab = lab_of("ways", &switched, &[]);
        let link = lab
            .links
            .iter()
            .find(|link| link.name == format!("{of}-s"))
            .unwrap();
        let from = |way: Way| &*lab.node(link.ends[link.side(way)].node).name;
        assert_eq!([from(Way::Up), from(Way::Down)], [of, "s"]);
        let time = shortest(&switched);
        let theory = line + more;
        assert!(
            (time - theory).abs() < 1e-6,
            "{of}: {time} s, {theory} s in theory"
        );
    }
}

#[test]
fn lost_blocks_take_all_cells_that_begin_in_them_and_are_binomial() {
    // A full line of 1000 cells/s: 20 cells begin in each block.
    let text = "switches: {}\n\
        links: [[a, b, { rate: 1000cells/s, block_errors: { up: 0, down: 5% }, block: 20ms }]]\n\
        clip: { n: { subnet: 10.1.0.0/24, server: a } }\npvcs: [{ from: a, vc: \"0.100\", to: b }]\n\
        hosts: { a: { elan: n, ip: 10.1.0.1 }, b: { elan: n, ip: 10.1.0.2 } }\n\
        traffic: [{ from: a, to: b, kind: udp, rate: 600pps, size: 24, start: 1s, duration: 99s, expect: loss }]\n\
        until: 100s\n";
    let (lab, report) = run(text);
    let [down, up] = [0, 1].map(|way| report.circuits.links[way].counters);
    assert_eq!(up.lost, 0, "no block is lost in the other direction");
    assert_eq!(
        (down.lost, down.discarded, down.down),
        (down.in_blocks, 0, 0)
    );
    let line = lab.links[0].lines[0];
    let blocks = Blocks::new(&line.errors, Blocks::seed(lab.seed, "a-b", 0)).unwrap();
    let begin = |block: u64| Instant::ZERO + Duration::from_millis(20 * block);
    // The line is full from second 1 on.
    let gone = (50..5000)
        .filter(|block| blocks.loses(begin(*block)))
        .count() as u64;
    assert!(
        down.lost.abs_diff(20 * gone) <= 20,
        "{} cells, {gone} blocks",
        down.lost
    );
    let (mean, deviation) = (4950.0 * 0.05, (4950.0_f64 * 0.05 * 0.95).sqrt());
    assert!(
        (gone as f64 - mean).abs() < 4.0 * deviation,
        "{gone} blocks, {mean} in theory"
    );
    let books = books(text, 0);
    let lost = books.lost["link a-b: block lost"];
    // Packets have two cells. Of a packet at the edge of a block one cell may arrive, and spoil the packet behind it.
    assert!(
        (10 * gone..=11 * gone + 2).contains(&lost),
        "{lost} packets, {gone} blocks"
    );
}

/// A download over a DSL line, with faults.
fn download(faults: &str) -> String {
    format!(
        "switches: {{ s: {{}} }}\nlane: {{ on: s, elans: {{ n: {{ subnet: 10.1.0.0/24 }} }} }}\n\
         hosts:\n  x: {{ on: s, elan: n, ip: 10.1.0.1, link: {{ rate: {{ up: 1024kbps, down: 8128kbps }}, \
         delay: {{ up: 2ms, down: 8ms }} }} }}\n  y: {{ on: s, elan: n, ip: 10.1.0.2 }}\n\
         traffic: [{{ from: y, to: x, kind: tcp, start: 2s, duration: 38s }}]\n{faults}until: 40s\n"
    )
}

/// New values of both directions of a link of a host: up, then down.
fn rates(up: u64, down: u64) -> [LineChange; 2] {
    [up, down].map(|kbps| LineChange {
        rate: Some(CellRate::of_bits(1000 * kbps)),
        ..LineChange::default()
    })
}

#[test]
fn a_download_goes_on_after_its_line_has_trained() {
    let mut bench = Bench::new(lab_of("download", &download(""), &[]), 1);
    let link = bench.link("x-s");
    // Programs of the lab start as in a run.
    bench.run(Duration::from_secs(12));
    bench.train(link, true);
    let dark = bench.now();
    bench.run(Duration::from_secs(3));
    let since = bench.received(0, dark + Duration::from_millis(1));
    assert_eq!(since, [0, 0], "nothing arrives while the line trains");
    bench.change_link(link, &rates(640, 4096));
    bench.train(link, false);
    bench.run(Duration::from_secs(25));
    // A packet of 1500 octets has 32 cells; 1448 of them are payload.
    for (from, to, kbps) in [(6, 12, 8128.0), (25, 40, 4096.0)] {
        let within = |at: Instant| (Instant::from_secs(from)..Instant::from_secs(to)).contains(&at);
        let samples = bench.log.samples.iter();
        let came = samples.filter(|s| s.flow.0 == 0 && s.side == Side::Received && within(s.at));
        let octets: u64 = came.map(|sample| u64::from(sample.payload)).sum();
        let got = octets as f64 * 8.0 / (to - from) as f64 / 1e3;
        let most = 1448.0 * 8.0 / (32.0 * cell(kbps)) / 1e3;
        assert!(
            (0.97..1.001).contains(&(got / most)),
            "{got} kb/s, {most} in theory"
        );
    }
    check::order(&bench).unwrap();
}

#[test]
fn what_a_line_loses_while_it_trains_has_its_place() {
    let faults = "faults: [{ at: 12s, retrain: x-s, duration: 3s, rate: { up: 640kbps, down: 4096kbps } }]\n";
    let books = books(&download(faults), 0);
    let places: BTreeSet<&str> = books.lost.keys().map(String::as_str).collect();
    let known = BTreeSet::from([
        "link x-s: retrain",
        "s port 1 to x: early packet discard",
        "s port 1 to x: queue full",
        // No member of the ELAN knows the host without its LANE client, so its frames are flooded.
        "y: flooded, and for nobody here",
    ]);
    assert!(places.contains("link x-s: retrain"), "{places:?}");
    assert!(places.is_subset(&known), "{places:?}");
    assert_eq!(books.offered, books.sent + books.refused);
    let lost: u64 = books.lost.values().sum();
    assert_eq!(books.sent, books.delivered + lost + books.under_way);
}

/// Names of the faults so far.
#[derive(Default)]
struct Told(Vec<String>);

impl Watcher for Told {
    fn event(&mut self, event: &Event) {
        if event.event.starts_with("fault.") {
            self.0.push(event.event.clone());
        }
    }
}

#[test]
fn a_reset_ends_a_training_and_forgets_its_values() {
    let faults = "faults: [{ at: 12s, retrain: x-s, duration: 3s, rate: { up: 640kbps, down: 4096kbps } }]\n";
    let lab = lab_of("reset", &download(faults), &[]);
    let link = lab.links.iter().position(|link| link.name == "x-s");
    let mut told = Told::default();
    let mut running = LabRun::new(&lab, &mut told);
    running.start();
    running.run_until(Instant::from_secs(13));
    running.fault(FaultKind::Reset(LinkId(link.unwrap())));
    running.run_to_end();
    let report = running.finish().expect("no captures");
    assert_eq!(told.0, ["fault.link-retrain", "fault.link-reset"]);
    // Of 38 s one is dark, and the connections and TCP need some to begin anew.
    let full = 1448.0 * 8.0 / (32.0 * cell(8128.0)) / 1e6;
    let share = report.flows[0].paths[0].throughput_mbps / full;
    assert!((0.8..0.975).contains(&share), "{share} of {full} Mb/s");
}

/// A permanent connection with a contract over a link of 10 Mb/s.
const CONTRACT: &str = "switches: { s: {} }\nclip: { n: { subnet: 10.1.0.0/24, server: y } }\n\
    pvcs: [{ from: x, vc: \"0.100\", to: y, qos: \"cbr:tx:pcr=2000,rx:pcr=3000\" }]\n\
    hosts:\n  x: { on: s, elan: n, ip: 10.1.0.1, link: { rate: 10Mbps } }\n  y: { on: s, elan: n, ip: 10.1.0.2 }\n\
    traffic: [{ from: x, to: y, kind: udp, rate: 500pps, size: 24, start: 1s }]\n";

#[test]
fn a_link_that_had_the_longest_delay_is_silent_for_no_longer_than_this() {
    let mut bench = Bench::new(lab_of("contracts", CONTRACT, &[]), 1);
    let link = bench.link("x-s");
    bench.run(Duration::from_secs(2));
    let delay = |delay| {
        let change = LineChange {
            delay: Some(delay),
            ..LineChange::default()
        };
        [change; 2]
    };
    // The longest delay that the reader takes.
    bench.change_link(link, &delay(Duration::from_secs(10)));
    let from = bench.now() + Duration::from_millis(1);
    bench.run(Duration::from_secs(1));
    bench.change_link(link, &delay(Duration::from_micros(5)));
    bench.run(Duration::from_millis(8990));
    assert_eq!(bench.received(0, from), [0, 0], "cells keep their order");
    // What was sent in the long second comes as it was sent; what waited behind it comes at once, into a full queue.
    bench.run(Duration::from_millis(1010));
    let [came, _] = bench.received(0, from);
    assert!((498..1500).contains(&came), "{came}");
    bench.run(Duration::from_secs(1));
    let since = bench.now();
    bench.run(Duration::from_secs(1));
    let [came, _] = bench.received(0, since);
    assert!((499..=501).contains(&came), "{came}");
    check::order(&bench).unwrap();
}

#[test]
fn a_link_that_is_cut_while_it_trains_stays_cut() {
    let mut bench = Bench::new(lab_of("contracts", CONTRACT, &[]), 1);
    let link = bench.link("x-s");
    bench.run(Duration::from_secs(2));
    for (step, up) in [
        ("train", false),
        ("cut", false),
        ("ready", false),
        ("mend", true),
    ] {
        match step {
            "train" | "ready" => bench.train(link, step == "train"),
            _ => bench.cut(link, step == "cut"),
        }
        let before = bench.now();
        bench.run(Duration::from_secs(3));
        let came = bench.received(0, before + Duration::from_millis(20));
        assert_eq!(came != [0, 0], up, "{step}");
    }
}

#[test]
fn a_switch_that_starts_anew_learns_the_rate_of_its_line() {
    let mut bench = Bench::new(lab_of("download", &download(""), &[]), 1);
    let (link, s, x) = (bench.link("x-s"), bench.node("s"), bench.node("x"));
    bench.change_link(link, &rates(640, 4096));
    let end = bench.lab.link(link).ends[1];
    for node in [s, x] {
        bench.power_off(node);
        bench.run(Duration::from_secs(1));
        bench.power_on(node);
        let port = bench
            .switch(s)
            .unwrap()
            .fabric()
            .output(end.port)
            .unwrap()
            .rate();
        let adapter = bench.station(x).unwrap().nic().output().rate();
        let kbps = |kbps: u64| CellRate::of_bits(1000 * kbps);
        assert_eq!([adapter, port], [kbps(640), kbps(4096)]);
    }
}

#[test]
fn contracts_that_no_longer_fit_are_told_once_by_name_and_go_on() {
    let mut bench = Bench::new(lab_of("contracts", CONTRACT, &[]), 1);
    let link = bench.link("x-s");
    bench.run(Duration::from_secs(2));
    let told = |bench: &Bench| -> Vec<String> {
        let story = bench.log.story.iter();
        story
            .filter(|line| line.contains("switch.overbooked"))
            .cloned()
            .collect()
    };
    bench.change_link(link, &rates(512, 8000));
    let said = told(&bench);
    // 512 kb/s are 1207 cells/s, of which 95 % are 1146.
    let words = "contracts from x (0.100) reserve 2000 cells/s, and link x-s can guarantee 1146";
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains(words), "{said:?}");
    let from = bench.now();
    bench.run(Duration::from_secs(1));
    let [came, _] = bench.received(0, from);
    // Two cells a packet at the rate of the line.
    assert!((590..=605).contains(&came) || came == 500, "{came}");
    bench.change_link(link, &rates(512, 1024));
    assert_eq!(told(&bench).len(), 3, "both directions");
    bench.change_link(link, &rates(10_000, 10_000));
    assert_eq!(told(&bench).len(), 3, "everything fits again");
}

/// A small generator.
struct Dice(u64);

impl Dice {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = derived_seed(self.0, "dice", "lines");
        (self.0 >> 33) % below
    }
}

const TWO: &str = "switches: { s1: {}, s2: {} }\n\
    links: [[s1, s2, { name: trunk, rate: { up: 2Mbps, down: 8Mbps }, delay: { up: 5ms, down: 1ms } }]]\n\
    lane: { on: s1, elans: { n: { subnet: 10.1.0.0/24 } } }\n\
    hosts:\n  x: { on: s1, elan: n, ip: 10.1.0.1, link: { rate: 10Mbps } }\n  y: { on: s2, elan: n, ip: 10.1.0.2 }\n\
    traffic:\n\
    - { name: there, from: x, to: y, kind: udp, rate: 900pps, size: 300, start: 2s, expect: loss }\n\
    - { name: back, from: y, to: x, kind: udp, rate: 200pps, size: 1400, start: 2s, expect: loss }\n\
    - { name: call, from: x, to: y, kind: tcp, start: 3s }\n";

/// Delays that shrink and grow, rates, and errors that come and go: datagrams keep their order, and no cell vanishes.
#[test]
fn cells_keep_their_order_whatever_changes() {
    let mut shrunk = 0;
    for seed in 1..=12_u64 {
        println!("seed {seed}");
        let mut dice = Dice(seed);
        let mut bench = Bench::new(lab_of("two", TWO, &[]), seed);
        let links = ["trunk", "x-s1"].map(|name| bench.link(name));
        bench.run(Duration::from_secs(4));
        for _ in 0..40 {
            let link = links[dice.next(2) as usize];
            let line = |dice: &mut Dice| LineChange {
                rate: (dice.next(3) == 0)
                    .then(|| CellRate::of_cells(2000 + dice.next(20_000) as u32)),
                delay: Some(Duration::from_micros(dice.next(20_000))),
                loss: (dice.next(4) == 0).then(|| dice.next(3) as f64 / 500.0),
                ..LineChange::default()
            };
            let changes = [line(&mut dice), line(&mut dice)];
            shrunk += u32::from(changes[0].delay < Some(Duration::from_millis(5)));
            bench.change_link(link, &changes);
            if dice.next(10) == 0 {
                bench.train(link, true);
                bench.run(Duration::from_millis(dice.next(50)));
                bench.train(link, false);
            }
            bench.run(Duration::from_micros(1 + dice.next(60_000)));
        }
        if let Err(why) = check::order(&bench) {
            panic!("seed {seed}: {why}");
        }
        check::no_cell_vanishes(&mut bench, Duration::from_secs(1));
        let came = bench.received(bench.flow("there"), Instant::ZERO)[0];
        assert!(came > 500, "seed {seed}: {came}");
    }
    assert!(shrunk > 50, "{shrunk}");
}

/// The books of flows balance, and each loss has its place, under random schedules of changes: [`run`] checks both.
#[test]
fn the_books_balance_under_random_changes() {
    let (mut places, mut trained) = (BTreeSet::new(), 0);
    for seed in 1..=10_u64 {
        println!("seed {seed}");
        let mut dice = Dice(1000 + seed);
        let mut text = format!("{TWO}seed: {seed}\nuntil: 9s\nfaults:\n");
        let mut trainings: Vec<(u64, &str)> = Vec::new();
        for _ in 0..14 {
            let at = 2500 + dice.next(6000);
            let link = ["trunk", "x-s1"][dice.next(2) as usize];
            let way = ["", "up", "down"][dice.next(3) as usize];
            let mut value = |of: &[&str]| {
                let value = of[dice.next(of.len() as u64) as usize];
                match way {
                    "" => value.to_owned(),
                    way => format!("{{ {way}: {value} }}"),
                }
            };
            let values = [
                format!("rate: {}", value(&["1Mbps", "20Mbps", "3000cells/s"])),
                format!("delay: {}", value(&["0s", "3ms", "40ms"])),
                format!("loss: {}", value(&["0", "0.01"])),
                format!("bit_errors: {}", value(&["0", "1e-6"])),
                format!(
                    "block: {}, block_errors: {}",
                    value(&["2ms", "30ms"]),
                    value(&["0", "0.05"])
                ),
            ];
            let values = &values[dice.next(5) as usize];
            // A link trains once at a time.
            let trains = |&(from, of): &(u64, &str)| of == link && at.abs_diff(from) < 80;
            let _ = match dice.next(8) {
                0 if trainings.iter().any(trains) => continue,
                0 => {
                    trainings.push((at, link));
                    writeln!(
                        text,
                        "- {{ at: {at}ms, retrain: {link}, duration: 80ms, {values} }}"
                    )
                }
                1 => {
                    let _ = writeln!(text, "- {{ at: {at}ms, link_down: {link} }}");
                    writeln!(text, "- {{ at: {}ms, link_up: {link} }}", at + 60)
                }
                _ => writeln!(text, "- {{ at: {at}ms, change: {link}, {values} }}"),
            };
        }
        trained += text.matches("retrain").count();
        let (lab, report) = run(&text);
        for flow in &report.flows {
            let all = flow.paths.iter().flat_map(|path| lab.lost_by(path));
            places.extend(all.map(|(place, _)| place));
        }
        for way in &report.circuits.links {
            let of = way.counters;
            let gone = of.delivered + of.lost + of.discarded + of.down + way.on_the_way;
            assert_eq!(of.sent, gone, "seed {seed}");
            assert!(
                way.utilisation <= 1.0 + 1e-9,
                "seed {seed}: {}",
                way.utilisation
            );
        }
    }
    assert!(trained > 5, "{trained}");
    for cause in ["retrain", "cut", "cell lost", "bit errors", "block lost"] {
        let there = places.iter().any(|place| place.ends_with(cause));
        assert!(there, "{cause}: {places:?}");
    }
}

/// The lab of the examples does what its description says.
#[test]
fn the_lab_of_dsl_lines_has_the_figures_of_its_description() {
    let lab = repository_lab("dsl", &[]);
    let report = aerostat_sim::run::run(&lab, None, &mut ()).expect("no captures");
    let mbps = |name: &str| {
        let flow = report.flows.iter().find(|flow| flow.name == name);
        flow.unwrap().paths[0].throughput_mbps
    };
    let form = |cells: f64| cells / 32.0 * 1448.0 * 8.0 / 1e6;
    // The line of carol is undisturbed.
    let carol = mbps("download-c") / form(4500.0);
    assert!((0.98..=1.001).contains(&carol), "{carol}");
    let alice = (8.0 * form(19000.0) + 10.0 * form(4096e3 / 424.0)) / 22.0;
    let share = mbps("download-a") / alice;
    assert!((0.85..=1.01).contains(&share), "{share} of {alice}");
    let link = lab.links.iter().position(|link| link.name == "bob-dslam");
    let ways = report.circuits.links.iter();
    let mut down = ways.filter(|way| Some(way.link.0) == link && way.counters.lost > 0);
    let (down, none) = (down.next().unwrap(), down.next());
    assert!(none.is_none(), "no block is lost on the way up");
    // 22 s have 1375 blocks, of which one in 50 is lost: 27.5 with a deviation of 5.2.
    let share = down.counters.in_blocks as f64 / down.counters.sent as f64;
    assert!((0.005..0.035).contains(&share), "{share}");
}
