//! The labs of the repository: repeatable, within their physical limits, with recorded figures.
//!
//! `UPDATE_EXPECTED=1 cargo test -p aerostat-sim --test it` rewrites the tables of figures.

use crate::bench::{Bench, repository_lab};
use crate::check;
use aerostat_lab::build::{Builder, Flavour};
use aerostat_lab::model::Lab;
use aerostat_node::ip::flow_stats::{FlowStats, PathReport};
use aerostat_node::ip::meter::Path;
use aerostat_proto::Duration;
use std::fmt::Write as _;

/// The labs, with changes that shorten each for the tests.
const LABS: [(&str, &[&str]); 38] = [
    ("two-hosts", &[]),
    // Tested in `direct`.
    ("back-to-back", &[]),
    // Tested in `theory::detken`.
    ("detken-router", &[]),
    ("detken-trunk", &[]),
    ("cbr-beside-ubr", &[]),
    ("star", &[]),
    ("dead-destination", &[]),
    ("nhrp", &[]),
    // Tested in `clip`.
    ("ip-tunnels", &[]),
    // Tested in `sockets`.
    ("sockets", &[]),
    // Tested in `theory::links`.
    ("native", &[]),
    // Tested in `atp`.
    ("atp", &[]),
    // Tested in `queues` of the command.
    ("early-discard", &[]),
    // Tested in `managers`.
    ("managers", &[]),
    // Tested in `queues` of the command.
    ("shares", &[]),
    ("tunnel", &[]),
    ("call-tunnel", &[]),
    // Tested in `gateways`.
    ("cell-gateway", &[]),
    // Tested in `lines`.
    ("dsl", &[]),
    // Tested in `atm_lines`.
    ("lines", &[]),
    // Tested in `vlans`.
    ("vlans", &[]),
    // Tested in `testers`.
    ("cell-tester", &[]),
    // Tested in `shaping` of the command.
    ("policed-tcp", &[]),
    ("rate-queues", &[]),
    // Tested in `tcp` and `benchmark`.
    ("tcp-windows", &[]),
    ("rfc2544", &[]),
    ("load", &[]),
    (
        "slow-receiver",
        &[
            "traffic.c98-indy2.duration=1s",
            "traffic.c98-indy3.duration=1s",
            "traffic.c98-indy4.duration=2s",
            "traffic.c98-onyx4.duration=200ms",
        ],
    ),
    (
        "slow-hosts",
        &[
            "traffic.jaarli-urku.duration=200ms",
            "traffic.basso-urku.duration=200ms",
            "traffic.sello-basso.duration=200ms",
            "traffic.urku-basso.duration=200ms",
            "traffic.basso-sello.duration=200ms",
            "traffic.jaarli-sello.duration=200ms",
        ],
    ),
    // Tested in `cuts`.
    ("ring", &[]),
    ("parallel-links", &[]),
    ("one-elan", &["traffic.bulk.duration=300ms"]),
    ("wan-detour", &["traffic.bulk.duration=200ms"]),
    ("telephony", &[]),
    ("bridges", &["traffic.file.duration=500ms"]),
    (
        "two-subnets",
        &["traffic.bulk.duration=1s", "traffic.ping.duration=4s"],
    ),
    (
        "campus",
        &[
            "mpoa.start=3s",
            "traffic.urku-basso.duration=1400ms",
            "traffic.basso-urku.duration=1400ms",
            "traffic.sello-jaarli.duration=1400ms",
            "traffic.voice.duration=1400ms",
        ],
    ),
    (
        "clip",
        &[
            "traffic.across.duration=2s",
            "traffic.routed.duration=300ms",
            "traffic.tiny.duration=300ms",
            "traffic.usual.duration=300ms",
            "traffic.large.duration=300ms",
        ],
    ),
];

fn run(lab: Lab, seed: u64) -> Bench {
    let end = lab.end();
    let mut bench = Bench::new(lab, seed);
    bench.run(end);
    bench
}

/// Throughput, loss and delay of each flow by path.
fn table(bench: &Bench) -> String {
    let builder = Builder::new(&bench.lab, bench.seed, Flavour::Embedded);
    let mut stats = FlowStats::new(builder.flows());
    for sample in &bench.log.samples {
        stats.record(sample);
    }
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{:<14}{:<10}{:>9}{:>9}{:>7}{:>7}{:>11}{:>11}{:>11}{:>11}",
        "flow", "path", "sent", "received", "lost", "order", "Mb/s", "delay us", "p99 us", "max us"
    );
    for flow in stats.report(bench.now()) {
        for path in flow.paths {
            let _ = writeln!(
                text,
                "{:<14}{:<10}{:>9}{:>9}{:>7}{:>7}{:>11.3}{:>11.1}{:>11.1}{:>11.1}",
                flow.name,
                path.path.name(),
                path.sent_packets,
                path.received_packets,
                path.lost,
                path.out_of_sequence,
                path.throughput_mbps,
                path.delay.mean_us,
                path.delay.p99_us,
                path.delay.max_us
            );
        }
    }
    text
}

/// Packets that each flow of a lab lost, with the lab's faults.
fn losses(name: &str, set: &[&str]) -> Vec<u64> {
    let report = aerostat_sim::run::run(&repository_lab(name, set), None, &mut ()).unwrap();
    let lost = |paths: &[PathReport]| paths.iter().map(|path| path.lost).sum();
    report.flows.iter().map(|flow| lost(&flow.paths)).collect()
}

/// Compares `text` with a file, or writes the file if asked to.
fn expect(name: &str, text: &str) {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/tables");
    let file = format!("{dir}/{name}.txt");
    if std::env::var_os("UPDATE_EXPECTED").is_some() {
        std::fs::create_dir_all(dir).unwrap();
        std::fs::write(&file, text).unwrap();
    }
    let expected = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        text == expected,
        "{name}.txt differs; run with UPDATE_EXPECTED=1 and look at the difference\n--- is\n{text}--- \
         should be\n{expected}"
    );
}

/// Runs a lab twice and once more with another seed; records its figures.
fn examine(name: &str) {
    let (_, set) = LABS
        .iter()
        .find(|lab| lab.0 == name)
        .expect("a lab of the list");
    let lab = || repository_lab(name, set);
    let bench = run(lab(), 1);
    check::order(&bench).unwrap_or_else(|why| bench.fail(&why));
    check::cells(&bench).unwrap_or_else(|why| bench.fail(&why));
    no_address_is_zero(name, &bench.log.story);
    check::seats(&bench).unwrap_or_else(|why| bench.fail(&why));
    // The start, until all flows have begun, is enough to distinguish runs.
    let last = bench.lab.traffic.iter().map(|flow| flow.start).max();
    let until = last.expect("a lab has traffic") + Duration::from_millis(200);
    let start = |seed| {
        let mut bench = Bench::new(lab(), seed);
        bench.run(until);
        bench
    };
    let (one, again, other) = (start(1), start(1), start(2));
    assert!(
        one.log.story == again.log.story,
        "{name}: the same seed tells another story"
    );
    assert!(
        one.log.samples == again.log.samples,
        "{name}: the same seed gives other samples"
    );
    assert_eq!(one.world.events(), again.world.events());
    assert!(
        bench.log.story.starts_with(&one.log.story),
        "{name}: a pause changes the story"
    );
    let same = one.log.story == other.log.story && one.log.samples == other.log.samples;
    // Two hosts without errors use no random numbers, nor do pings one after another.
    assert_eq!(
        same,
        [
            "two-hosts",
            "cbr-beside-ubr",
            "nhrp",
            "star",
            "dead-destination"
        ]
        .contains(&name),
        "{name}: what another seed changes"
    );
    expect(name, &table(&bench));
}

#[test]
fn the_list_of_labs_is_complete() {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../../labs");
    for entry in std::fs::read_dir(dir).unwrap() {
        let file = entry.unwrap().file_name().to_string_lossy().into_owned();
        // 'papers' has labs of the catalogue of 'aerostat reproduce', 'host' those of 'aerostat host', and 'exercises'
        // those with checks: their own tests run them.
        let Some(name) = file.strip_suffix(".atm.yml") else {
            assert!(["exercises", "host", "papers"].contains(&&*file), "{file}");
            continue;
        };
        assert!(
            LABS.iter().any(|lab| lab.0 == name),
            "{file} is not tested here"
        );
    }
}

/// A party without an ATM address is not called by an address: a permanent connection, an unknown caller.
fn no_address_is_zero(name: &str, story: &[String]) {
    let zero = aerostat_wire::AtmAddress::ZERO.to_string();
    let line = story.iter().find(|line| line.contains(&zero));
    assert_eq!(line, None, "{name}");
}

#[test]
fn the_story_of_permanent_connections_names_them_by_their_labels() {
    let mut permanent = 0;
    for (name, set) in LABS {
        let lab = repository_lab(name, set);
        if lab.pvcs.is_empty() {
            continue;
        }
        let mut bench = Bench::new(lab, 1);
        bench.run(Duration::from_millis(200));
        no_address_is_zero(name, &bench.log.story);
        let of_one = |line: &&String| line.contains("permanent connection 0.");
        permanent += bench.log.story.iter().filter(of_one).count();
    }
    assert!(permanent > 10, "{permanent}");
}

/// Makes a test of each lab of which nothing else is said.
macro_rules! examined {
    ($($test:ident = $lab:literal,)+) => {$(
        #[test]
        fn $test() {
            examine($lab);
        }
    )+};
}
examined! {
    load = "load",
    slow_receiver = "slow-receiver",
    slow_hosts = "slow-hosts",
    two_hosts = "two-hosts",
    cbr_beside_ubr = "cbr-beside-ubr",
    two_subnets = "two-subnets",
    wan_detour = "wan-detour",
    bridges = "bridges",
    telephony = "telephony",
    clip = "clip",
    nhrp = "nhrp",
    campus = "campus",
}

#[test]
fn star_all_of_19_neighbours_answer_every_ping() {
    examine("star");
    let lost = losses("star", &[]);
    assert_eq!((lost.len(), lost.iter().sum::<u64>()), (19, 0), "{lost:?}");
}

#[test]
fn dead_destination_costs_the_other_nothing() {
    examine("dead-destination");
    // Six seconds at 50 packets/s: two series of three requests, and the host is back half a second before the third.
    assert_eq!(losses("dead-destination", &[]), [300, 0]);
}

#[test]
fn one_elan() {
    examine("one-elan");
    let set = ["traffic.bulk.duration=300ms"];
    assert_eq!(losses("one-elan", &set), [0, 0, 0]);
}

/// Payload per second received by all flows over one path between two times, Mb/s.
fn megabits(bench: &Bench, path: Path, from_s: f64, to_s: f64) -> f64 {
    let range = from_s..to_s;
    let octets: u64 = bench
        .log
        .samples
        .iter()
        .filter(|s| s.side == aerostat_node::ip::meter::Side::Received && s.path == path)
        .filter(|s| range.contains(&s.at.as_secs_f64()))
        .map(|s| u64::from(s.payload))
        .sum();
    octets as f64 * 8.0 / (to_s - from_s) / 1e6
}

#[test]
fn without_mpoa_the_slower_router_bounds_the_campus_and_shortcuts_exceed_it() {
    let campus = LABS.iter().find(|lab| lab.0 == "campus");
    let set = campus.expect("a lab of the list").1;
    let longer = [
        "mpoa=false",
        "traffic.urku-basso.duration=3s",
        "traffic.basso-urku.duration=3s",
        "traffic.sello-jaarli.duration=3s",
        "traffic.voice.duration=3s",
    ];
    let routed = run(repository_lab("campus", &longer), 1);
    let shortcut: Vec<_> = (routed.log.samples.iter())
        .filter(|s| s.path != Path::Lane)
        .collect();
    assert!(
        shortcut.is_empty(),
        "{} packets by shortcut",
        shortcut.len()
    );
    let total = megabits(&routed, Path::Lane, 2.2, 5.0);
    assert!(
        (20.0..35.0).contains(&total),
        "{total} Mb/s through a router of 35 Mb/s"
    );
    let quick = run(repository_lab("campus", set), 1);
    let total = megabits(&quick, Path::Shortcut, 3.2, 3.4);
    assert!(total > 70.0, "{total} Mb/s by shortcuts");
}

/// Two packets a second are no flow for a client (ten are), so the servers of the embedded routers trigger the clients.
#[test]
fn with_triggers_the_first_routed_packet_leads_to_a_shortcut() {
    let paths = |mpoa: &str| {
        let bench = run(repository_lab("two-subnets", &[mpoa, "until=3900ms"]), 1);
        let of = |path| bench.log.samples.iter().filter(|s| s.path == path).count();
        (of(Path::Lane), of(Path::Shortcut))
    };
    let (lane, shortcut) = paths("mpoa=true");
    assert!(lane >= 6 && shortcut == 0, "{lane}, {shortcut}");
    let (first, rest) = paths("mpoa={trigger: true}");
    assert!(
        (1..=4).contains(&first),
        "{first} samples of the first echo"
    );
    assert_eq!(first + rest, lane);
}
