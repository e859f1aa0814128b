//! The largest number of ELANs, and of clients of one ELAN, in a lab; reports that leave out tables.

use crate::bench::{Bench, lab_of};
use aerostat_lab::report::{Extent, RunReport};
use aerostat_lab::results::{Document, Time};
use aerostat_node::inspect::StateKind;
use aerostat_proto::Duration;
use aerostat_sim::run::{Recording, run_and_record};

/// `elans` ELANs with two hosts each on two switches, and in each ELAN a ping from one host to the other.
fn many_elans(elans: usize) -> String {
    let mut text =
        "switches: { s1: {}, s2: {} }\nlinks: [[s1, s2]]\nlane:\n  on: s1\n  elans:\n".to_owned();
    for n in 0..elans {
        text += &format!("    e{n}: {{ subnet: 10.{n}.0.0/24 }}\n");
    }
    text += "hosts:\n";
    for n in 0..elans {
        text += &format!("  a{n}: {{ on: s1, elan: e{n}, ip: 10.{n}.0.1 }}\n");
        text += &format!("  b{n}: {{ on: s2, elan: e{n}, ip: 10.{n}.0.2 }}\n");
    }
    text += "traffic:\n";
    for n in 0..elans {
        text += &format!(
            "  - {{ name: p{n}, from: a{n}, to: b{n}, kind: ping, rate: 5pps, start: 1s, duration: 20s }}\n"
        );
    }
    text
}

#[test]
fn sixty_four_elans_are_served_and_all_their_members_reach_each_other() {
    let mut bench = Bench::new(lab_of("many", &many_elans(64), &[]), 1);
    let flows: Vec<_> = (0..64).map(|n| bench.flow(&format!("p{n}"))).collect();
    bench.until("traffic", 20.0, |bench| bench.all_pass(&flows));
    let id = bench.lab.find("lane").unwrap();
    let node = bench.world.node(aerostat_sim::NodeId(id.0)).unwrap();
    let tables = node.inspect(StateKind::Les, bench.now()).unwrap();
    assert!(!tables.is_empty());
}

/// `AEROSTAT_CLIENTS` clients, or 1700, of one ELAN, on `switches` switches. They only join; there is no traffic. This
/// exceeds the usual limits of servers, ports and signalling (1024 clients of a LES, as many parties), and causes more
/// control frames at once than the usual buffer of a port holds (6144 cells, and four cells of each client with its
/// TLVs). So all clients except `late` of them must have joined before the first of them repeats its request, which is
/// after 5 s, and all clients after that.
fn all_join_at_once(switches: usize, late: usize) {
    let clients = std::env::var("AEROSTAT_CLIENTS").ok();
    let clients: usize = clients.and_then(|text| text.parse().ok()).unwrap_or(1700);
    let switches_and_links = match switches {
        1 => "switches: { s1: {} }",
        _ => "switches: { s1: {}, s2: {} }\nlinks: [[s1, s2]]",
    };
    let mut text = format!(
        "mpoa: true\n{switches_and_links}\nlane: {{ on: s1, elans: {{ big: {{ subnet: 10.0.0.0/8 }} }} }}\nhosts:\n"
    );
    for n in 1..=clients {
        let (switch, high, low) = (1 + n % switches, n / 250, n % 250 + 1);
        text += &format!("  h{n}: {{ on: s{switch}, elan: big, ip: 10.0.{high}.{low} }}\n");
    }
    let mut bench = Bench::new(lab_of("big", &text, &[]), 1);
    for (seconds, most) in [(4, late), (4, 0)] {
        bench.run(Duration::from_secs(seconds));
        let waiting = bench
            .stations()
            .filter(|(_, station)| !station.host().waits().is_empty());
        let waiting = waiting.count();
        let now = bench.now();
        assert!(
            waiting <= most,
            "{waiting} of {clients} on {switches} switches wait at {now:?}"
        );
    }
}

#[test]
fn all_clients_of_a_large_elan_on_one_switch_join_without_a_retry() {
    all_join_at_once(1, 0);
}

#[test]
fn all_clients_of_a_large_elan_on_two_switches_join_and_hardly_any_asks_twice() {
    all_join_at_once(2, 8);
}

#[test]
fn one_elan_too_many_is_one_error() {
    let wrong = aerostat_lab::parse("many.atm.yml", &many_elans(65), &[]);
    let wrong = wrong.unwrap_err().to_string();
    assert_eq!(wrong.matches("error:").count(), 1, "{wrong}");
    assert!(
        wrong.contains("65 ELANs") && wrong.contains("at most 64"),
        "{wrong}"
    );
}

/// As many flows as a lab may have, between one pair of hosts: each has one packet, and all arrive. With a cost by the
/// number of flows at each packet this would take minutes.
#[test]
fn ten_thousand_flows_between_two_hosts_arrive() {
    const FLOWS: usize = 10_000;
    let mut text = "switches: { s: {} }\nclip: { e: { subnet: 10.1.0.0/24, server: b } }\nhosts:\n  \
                    a: { on: s, elan: e, ip: 10.1.0.1 }\n  b: { on: s, elan: e, ip: 10.1.0.2 }\ntraffic:\n  \
                    - { name: first, from: a, to: b, kind: ping, start: 1s, duration: 1s }\n"
        .to_owned();
    for n in 1..FLOWS {
        text += &format!(
            "  - {{ name: f{n}, from: a, to: b, kind: udp, rate: 1pps, start: {}us, duration: 1s }}\n",
            3_000_000 + 100 * n
        );
    }
    let lab = lab_of("flows", &text, &[]);
    let mut watcher = ();
    let mut run = aerostat_sim::run::LabRun::new(&lab, &mut watcher);
    run.start();
    run.run_to_end();
    let report = run.finish().expect("no captures");
    let arrived = report
        .flows
        .iter()
        .filter(|flow| flow.sum(|path| path.received_packets) == 1);
    assert_eq!(arrived.count(), FLOWS);
}

/// A report for people lacks the tables that no reader sees. What is left is the same as in a whole report.
#[test]
fn a_report_for_people_has_all_that_their_tables_need() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../labs/two-subnets.atm.yml"
    );
    let text = std::fs::read_to_string(path).expect("the lab");
    let checked = aerostat_lab::parse("two-subnets.atm.yml", &text, &[]);
    let Ok(checked) = checked else {
        panic!("the lab has no mistakes");
    };
    let report = |extent: Extent| {
        let recording = Recording {
            extent,
            ..Recording::default()
        };
        run_and_record(&checked.lab, recording, &mut ()).unwrap().0
    };
    let (whole, people) = (report(Extent::Whole), report(Extent::People));
    let tables = |report: &RunReport| Document::for_people(report).into_tables();
    assert_eq!(tables(&people), tables(&whole));
    assert!(tables(&people).iter().any(|table| !table.rows.is_empty()));
    assert_eq!(format!("{:?}", people.flows), format!("{:?}", whole.flows));
    assert_eq!(people.refusals, whole.refusals);
    assert!(people.circuits.links.is_empty() && !whole.circuits.links.is_empty());
    let kept = people.nodes.iter().flat_map(|(_, kinds)| kinds);
    let shown = whole.nodes.iter().flat_map(|(_, kinds)| kinds);
    assert!(kept.count() < shown.count());
    // The document that is written row by row is one JSON value, whose members have the order of their names.
    let document = Document::new(&checked, &[], Time::Virtual, &whole);
    let text = document.json_text();
    let value: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
    // Digits are left out: what is read may differ from what was written in the last digit.
    let form = |text: &str| text.replace(|letter: char| letter.is_ascii_digit(), "");
    assert_eq!(form(&format!("{value:#}\n")), form(&text));
    let mut written = Vec::new();
    document.write_json(&mut written).unwrap();
    assert_eq!(String::from_utf8(written).unwrap(), text);
}
