//! Queues, schedulers and shaped paths: shares, departures in a capture, and what is wrong in a lab file.

use crate::{lab_file, run};
use aerostat_node::atm::police::Gcra;
use aerostat_proto::Instant;
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

/// A lab of the directory `labs`.
fn shipped(name: &str) -> String {
    format!("{}/../../labs/{name}.atm.yml", env!("CARGO_MANIFEST_DIR"))
}

/// Cells that left the queues of a port of a switch, with VPI.VCI.
fn left(results: &Value, node: &str, port: u64) -> Vec<(String, u64)> {
    let rows = results["queues"].as_array().unwrap().iter();
    let rows = rows.filter(|row| row["node"] == node && row["port"] == port);
    let of = |row: &Value| {
        let vc = row["vc"].as_str().unwrap().to_owned();
        (vc, row["cells_out"].as_u64().unwrap())
    };
    rows.map(of).collect()
}

fn cells(all: &[(String, u64)], vc: &str) -> u64 {
    all.iter()
        .find(|one| one.0 == vc)
        .unwrap_or_else(|| panic!("{all:?}"))
        .1
}

#[test]
fn greedy_connections_share_a_link_by_weight_within_a_hundredth() {
    let ran = run(&["run", "-q", &shipped("shares"), "-o", "json"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let results: Value = serde_json::from_str(&ran.out).unwrap();
    let all = left(&results, "s", 4);
    // From 10 ms on: the minimum rate of the fourth, and ten parts of what is left of 96 000 cells/s.
    let time = 0.99;
    let part = (96_000.0 - 16_000.0) * time / 10.0;
    for (vc, want) in [
        ("0.101", part),
        ("0.102", 2.0 * part),
        ("0.103", 5.0 * part),
        ("0.104", 2.0 * part + 16_000.0 * time),
    ] {
        let got = cells(&all, vc) as f64;
        assert!((got - want).abs() < want / 100.0, "{vc}: {got} of {want}");
    }
}

/// Times (ns) and labels of the cells in a recording. Source: draft-ietf-opsawg-pcapng; ERF type ATM, whose time stamp
/// is seconds and a binary fraction, so the packet block's own time is read.
fn recorded(file: &Path) -> Vec<(u64, u16, u16)> {
    let file = std::fs::read(file).unwrap();
    let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
    let mut all = Vec::new();
    let mut at = 0;
    while at < file.len() {
        if word(at) == 6 {
            let time = u64::from(word(at + 12)) << 32 | u64::from(word(at + 16));
            let header = u32::from_be_bytes(file[at + 28 + 16..at + 28 + 20].try_into().unwrap());
            all.push((
                time,
                (header >> 20 & 0xff) as u16,
                (header >> 4 & 0xffff) as u16,
            ));
        }
        at += word(at + 4) as usize;
    }
    all
}

#[test]
fn a_shaped_path_never_exceeds_its_peak_rate() {
    let directory = std::env::temp_dir().join(format!("aerostat-tunnel-{}", std::process::id()));
    let into = directory.to_str().unwrap();
    let text = std::fs::read_to_string(shipped("tunnel")).unwrap();
    let text = text.replace("until: 500ms", "until: 200ms\ncapture: [s1-s2]");
    for (cdvt, fewest) in [(0, 3500), (250, 3790)] {
        let text = text.replace("cdvt: 250us", &format!("cdvt: {cdvt}us"));
        let lab = lab_file("tunnel.atm.yml", &text);
        let ran = run(&["run", "-q", &lab, "--cells", "--pcap", into, "-o", "json"]);
        assert_eq!(ran.code, 0, "{}", ran.err);
        let inside = recorded(&directory.join("tunnel.pcapng"));
        let inside: Vec<_> = inside.into_iter().filter(|cell| cell.1 == 5).collect();
        let mut upc = Gcra::new(20_000, Duration::from_micros(cdvt));
        for (time, ..) in &inside {
            assert!(upc.arrive(Instant::from_nanos(*time)), "{time} with {cdvt}");
        }
        assert!((fewest..=3801).contains(&inside.len()), "{}", inside.len());
        let results: Value = serde_json::from_str(&ran.out).unwrap();
        let all = left(&results, "s1", 0);
        let share = inside.len() as f64 / 55.0;
        for weight in 1..=10 {
            let got = cells(&all, &format!("5.{}", 8191 + weight)) as f64;
            let want = share * f64::from(weight);
            assert!((got - want).abs() <= 1.5, "{weight}: {got} of {want}");
        }
    }
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn mistakes_in_queues_are_told_with_their_numbers() {
    let lab = |switch: &str, link: &str, pvcs: &str| {
        format!(
            "switches: {{ s: {{ {switch} }}, t: {{}} }}\nlinks: [[s, t, {{ {link} }}]]\n\
             clip: {{ n: {{ subnet: 10.0.0.0/24, server: a }} }}\npvcs: [{pvcs}]\n\
             hosts: {{ a: {{ on: s, elan: n, ip: 10.0.0.1 }}, b: {{ on: t, elan: n, ip: 10.0.0.2 }} }}\n"
        )
    };
    let tunnel = "tunnels: { 5: { pcr: 1000 } }";
    let pvc = |more: &str| format!("{{ from: a, vc: 0.100, to: b, {more} }}");
    for (switch, link, pvcs, says) in [
        (
            "queues: { epd: 9000 }",
            "",
            String::new(),
            "epd of 9000 cells is above the buffer of 8192 cells",
        ),
        (
            "queues: { buffer: 100 }",
            "queues: { efci: 101 }",
            String::new(),
            "efci of 101 cells is above the buffer of 100",
        ),
        (
            "queues: { scheduler: fair }",
            "",
            String::new(),
            "round-robin, weighted or per-class",
        ),
        (
            "",
            "tunnels: { 0: { pcr: 1 } }",
            String::new(),
            "a VPI of a tunnel is 1 to 255",
        ),
        (
            "",
            "tunnels: { 5: { pcr: 0 } }",
            String::new(),
            "at least 1 cell/s",
        ),
        (
            "",
            "tunnels: { 5: { pcr: 300000 }, 6: { pcr: 50000 } }",
            String::new(),
            "the tunnels need 350000 cells/s of 335546",
        ),
        (
            "",
            tunnel,
            pvc("tunnel: 6"),
            "no link between switches on its way has a tunnel 6",
        ),
        (
            "",
            tunnel,
            pvc("tunnel: 5, pcr: 1001"),
            "tunnel 5 of link s-t cannot guarantee 1001 cells/s: its peak rate is 1000",
        ),
        (
            "",
            tunnel,
            pvc("queue: { weight: 1001 }"),
            "weight is 1 to 1000",
        ),
        (
            "",
            tunnel,
            pvc("queue: { weight: 0 }"),
            "weight is 1 to 1000",
        ),
        (
            "",
            tunnel,
            pvc("queue: { buffer: 10, epd: 11 }"),
            "epd of 11 cells is above the buffer of 10 cells",
        ),
        (
            "",
            tunnel,
            pvc("queue: { clp: 4097 }"),
            "clp of 4097 cells is above the buffer of 4096 cells",
        ),
        (
            "",
            tunnel,
            pvc("tunnel: 5, queue: { weight: 3 }"),
            "weight has no effect",
        ),
        (
            "queues: { scheduler: weighted }",
            tunnel,
            pvc("pcr: 100, queue: { weight: 3 }"),
            "weights share what is left among ABR, GFR and UBR",
        ),
        (
            "",
            tunnel,
            pvc("qos: 'ubr:mdcr=100', queue: { shape: true }"),
            "shape has no effect: the contract has no rate to shape to",
        ),
        (
            "",
            "tunnels: { 5: { pcr: 20Mbps } }",
            String::new(),
            "expected cells per second, such as 20000 or 20000cells/s",
        ),
    ] {
        let told = run(&[
            "validate",
            &lab_file("wrong-queues.atm.yml", &lab(switch, link, &pvcs)),
        ]);
        assert!(
            told.code > 0 && told.err.contains(says),
            "{says}: {}",
            told.err
        );
    }
    let unit = "tunnels: { 5: { pcr: 1000cells/s } }";
    let good = lab(
        "queues: { scheduler: weighted }",
        unit,
        &pvc("tunnel: 5, qos: 'ubr:mdcr=1000', queue: { weight: 3 }"),
    );
    let told = run(&["validate", &lab_file("good-queues.atm.yml", &good)]);
    assert_eq!(told.code, 0, "{}", told.err);
}

/// What ten TCP connections over one small buffer get, as shares of the line's cells: cells of the octets that the
/// programs received, cells of PDUs that did not arrive whole, and cells that were sent.
fn over_a_small_buffer(mtu: u32, way: &str) -> [f64; 3] {
    let mut words = vec![
        "run".into(),
        "-q".into(),
        shipped("early-discard"),
        "-o".into(),
        "json".into(),
        format!("--set=clip.n.mtu={mtu}"),
    ];
    if way != "early" {
        words.push("--set=switches.s.queues.epd=1000".into());
    }
    if way == "plain" {
        words.extend((0..10).map(|n| format!("--set=pvcs.{n}.frame_discard=false")));
    }
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    let ran = run(&words);
    assert!(matches!(ran.code, 0 | 3), "{}", ran.err);
    let results: Value = serde_json::from_str(&ran.out).unwrap();
    let table = |name: &str| results[name].as_array().unwrap().clone();
    let count = |row: &Value, name: &str| row[name].as_u64().unwrap();
    let line = table("links").into_iter().find(|row| row["to"] == "z");
    let line = line.unwrap();
    let room = line["rate_cps"].as_f64().unwrap() * 30.0;
    let (mut arrived, mut wasted) = (0, 0);
    let is_data = |row: &Value| row["to"] == "z" && row["user"] == "clip0";
    for row in table("vcs").iter().filter(|row| is_data(row)) {
        let [sent, lost, under_way] =
            ["cells_sent", "cells_lost", "cells_under_way"].map(|name| count(row, name));
        assert_eq!(
            sent,
            count(row, "cells_delivered") + lost + under_way,
            "{row}"
        );
        arrived += count(row, "cells_delivered");
        wasted += count(row, "cells_wasted");
        // Each PDU that was thrown away has brought at least one cell, and no more than those of all PDUs that it was
        // taken for.
        assert!(
            count(row, "cells_wasted") >= count(row, "pdus_bad"),
            "{row}"
        );
    }
    assert_eq!(table("vcs").iter().filter(|row| is_data(row)).count(), 10);
    // Signalling of the host and ILMI have the rest of the line.
    let others = count(&line, "cells_delivered") - arrived;
    assert!(others < 100, "{others}");
    let octets: u64 = table("flows")
        .iter()
        .map(|row| count(row, "delivered_octets"))
        .sum();
    let cells = f64::from((mtu + 8 + 8).div_ceil(48));
    let effective = octets as f64 / f64::from(mtu - 40) * cells;
    [effective, wasted as f64, count(&line, "cells_sent") as f64].map(|cells| cells / room)
}

/// Source of the order: Romanow and Floyd, Dynamics of TCP Traffic over ATM Networks, IEEE JSAC 13(4), 1995, abstract.
#[test]
fn early_discard_brings_more_than_partial_discard_and_this_more_than_single_cells() {
    for mtu in [1500, 4352] {
        let ways = ["early", "partial", "plain"];
        let [early, partial, plain] = ways.map(|way| over_a_small_buffer(mtu, way));
        let all = format!("{mtu}: {early:?} {partial:?} {plain:?}");
        assert!(
            early[0] > partial[0] + 0.01 && partial[0] > plain[0] + 0.01,
            "{all}"
        );
        assert!(
            early[1] < 0.01 && early[1] < partial[1] && partial[1] < plain[1],
            "{all}"
        );
        for [effective, wasted, sent] in [early, partial, plain] {
            assert!(sent <= 1.0 && effective + wasted <= sent, "{all}");
        }
    }
}

/// A run has the queues, buffers and shaped paths of switches whose lab file sets them, and of no others.
#[test]
fn results_have_shaped_paths_and_shared_buffers() {
    let nodes = |lab: &str| -> Value {
        let args = ["-q", "-o", "json", "--until", "510ms"];
        let ran = run(&[&["run", &shipped(lab)][..], &args].concat());
        let document: Value = serde_json::from_str(&ran.out).expect("JSON");
        document["nodes"].clone()
    };
    let tunnel = nodes("tunnel");
    let queue = &tunnel["s1"]["queue"];
    let path = &queue["tunnels"][0];
    assert_eq!(
        (&path["vpi"], &path["pcr_cps"]),
        (&5.into(), &20_000.into())
    );
    // Half a second at 20 000 cells/s.
    let cells = path["cells_out"].as_u64().expect("a number");
    assert!(cells.abs_diff(10_000) <= 3, "{path}");
    assert_eq!(queue["buffers"][1]["buffer"], "best effort");
    let usual = nodes("two-hosts");
    let mut usual = usual.as_object().expect("nodes").values();
    assert!(usual.len() > 2 && usual.all(|node| node.get("queue").is_none()));
}
