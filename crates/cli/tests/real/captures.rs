//! Contents of recordings: each packet once, cells including OAM, the links of the lab file. Checked by capinfos and
//! tshark.

use crate::lab_file;
use crate::live::{Runtime, signal, wait_for, wait_for_end};
use crate::wireshark::{malformed_filter, tshark};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

pub(crate) const LAB: &str = "\
switches: { s: {} }
lane: { on: s, elans: { a: { subnet: 10.1.0.0/24 } } }
hosts:
  h1: { on: s, elan: a, ip: 10.1.0.1 }
  h2: { on: s, elan: a, ip: 10.1.0.2 }
traffic:
  - { from: h1, to: h2, kind: ping, rate: 20pps, start: 1s, duration: 3s }
capture: [h1-s, h2-s]
until: 5s
";

/// Number of interfaces and of packets according to capinfos; `None` without capinfos.
fn capinfos(file: &Path) -> Option<(usize, usize)> {
    let out = Command::new("capinfos")
        .args(["-T", "-M", "-I", "-c"])
        .arg(file)
        .output();
    let Ok(out) = out else {
        println!("skipped: capinfos cannot be run; Debian package wireshark-common");
        return None;
    };
    assert!(
        out.status.success(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    let plain = Command::new("capinfos")
        .args(["-M", "-I", "-c"])
        .arg(file)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&plain.stdout).into_owned();
    let field = |name: &str| {
        let line = text.lines().find(|line| line.contains(name)).unwrap();
        line.rsplit([' ', '='])
            .next()
            .unwrap()
            .trim()
            .parse()
            .unwrap()
    };
    Some((
        field("Number of interfaces in file"),
        field("Number of packets"),
    ))
}

/// How often each echo request and reply occurs, by interface, direction and number. A frame over the BUS also returns
/// to its sender.
fn pings(file: &Path) -> Option<BTreeMap<String, usize>> {
    let columns = [
        "frame.interface_name",
        "frame.packet_flags_direction",
        "icmp.type",
        "icmp.seq",
    ];
    let columns = columns.iter().flat_map(|column| ["-e", column]);
    let words = ["-Y", "icmp", "-T", "fields"].into_iter().chain(columns);
    let lines = tshark(file, &words.collect::<Vec<_>>())?;
    let mut seen = BTreeMap::new();
    for line in lines {
        *seen.entry(line).or_default() += 1;
    }
    Some(seen)
}

#[test]
fn the_lab_file_names_links_and_a_run_records_each_packet_once() {
    let directory = std::env::temp_dir().join(format!("aerostat-record-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let lab = lab_file("recorded.atm.yml", LAB);
    let ran = Command::new(env!("CARGO_BIN_EXE_aerostat"))
        .args(["run", &lab])
        .current_dir(&directory)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(
        said.contains("recording 2 links into recorded.pcapng"),
        "{said}"
    );
    let file = directory.join("recorded.pcapng");
    let octets = std::fs::metadata(&file).unwrap().len();
    assert!((10_000..1_000_000).contains(&octets), "{octets}");
    let size = format!("the captures have {:.0} kB\n", octets as f64 / 1e3);
    assert!(said.contains(&size), "{octets}: {said}");
    if let Some((interfaces, packets)) = capinfos(&file) {
        assert_eq!(interfaces, 2);
        assert!(packets > 200, "{packets}");
    }
    if let Some(seen) = pings(&file) {
        // 60 requests and their replies on two links.
        assert!(seen.len() >= 200, "{}", seen.len());
        assert!(seen.values().all(|times| *times == 1), "{seen:#?}");
        let malformed = tshark(&file, &["-Y", &malformed_filter()]).unwrap();
        assert!(malformed.is_empty(), "{malformed:#?}");
    }
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn a_running_lab_is_recorded_by_its_file_and_by_whoever_asks_as_pdus_or_cells() {
    let runtime = Runtime::new("captures");
    let here = runtime.directory.clone();
    let endless = LAB
        .replace("duration: 3s", "duration: 600s")
        .replace("until: 5s\n", "");
    // OAM cells go over permanent connections.
    let lab = lab_file("filmed.atm.yml", &endless);
    let up = runtime
        .command(&["up", "-d", "-q", "--embedded", &lab])
        .current_dir(&here)
        .output()
        .unwrap();
    assert!(
        up.status.success(),
        "{}",
        String::from_utf8_lossy(&up.stderr)
    );
    let mut children = Vec::new();
    let forms: [(&str, &[&str]); 3] = [
        ("once", &[]),
        ("twice", &["--both-ends"]),
        ("cells", &["--cells"]),
    ];
    for (name, options) in forms {
        let file = here.join(format!("{name}.pcapng"));
        let words = ["capture", "h1-s", "-w", file.to_str().unwrap()];
        let child = runtime
            .command(&[&words[..], options].concat())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        children.push((name, file, child));
    }
    for (name, file, _) in &children {
        wait_for(name, || {
            std::fs::metadata(file).is_ok_and(|file| file.len() > 20_000)
        });
    }
    for (name, file, mut child) in children {
        signal(&child.id().to_string(), "INT");
        let mut said = String::new();
        let err = child.stderr.as_mut().unwrap();
        std::io::Read::read_to_string(err, &mut said).unwrap();
        assert_eq!(wait_for_end(&mut child), 0, "{name}: {said}");
        let what = if name == "cells" {
            " cells, "
        } else {
            " PDUs, "
        };
        assert!(said.contains(what), "{name}: {said}");
        let Some((interfaces, packets)) = capinfos(&file) else {
            continue;
        };
        assert!(
            said.contains(&format!("{packets}{what}")),
            "{name}: {packets}, {said}"
        );
        assert_eq!(interfaces, if name == "twice" { 2 } else { 1 }, "{name}");
        let Some(seen) = pings(&file) else { continue };
        match name {
            "once" => assert!(!seen.is_empty() && seen.values().all(|times| *times == 1)),
            "twice" => assert!(seen.keys().any(|key| key.contains("h1-s:s"))),
            _ => {
                let sizes = tshark(&file, &["-T", "fields", "-e", "frame.len"]).unwrap();
                // A record's header, the cell's header without HEC, and its payload.
                assert!(
                    sizes.iter().all(|size| size == &sizes[0]),
                    "{:?}",
                    sizes.iter().max()
                );
            }
        }
    }
    let counters = runtime.ok(&["inspect", "lab", "--table", "lab.lab", "-o", "csv"]);
    let mut lines = counters.lines();
    let row = lines.find_map(|line| line.split_once("octets of the recording of 'capture:',"));
    let so_far: u64 = row.unwrap().1.parse().unwrap();
    let down = runtime.run(&["down"]);
    assert_eq!(down.code, 0, "{}", down.err);
    let filmed = here.join("filmed.pcapng");
    let octets = std::fs::metadata(&filmed).unwrap().len();
    assert!(so_far > 0 && so_far <= octets, "{so_far} of {octets}");
    let said = format!("the recording has {}\n", aerostat_lab::growth::size(octets));
    assert!(down.err.contains(&said), "{octets}: {}", down.err);
    if let Some((interfaces, packets)) = capinfos(&filmed) {
        assert_eq!(interfaces, 2);
        assert!(packets > 50, "{packets}");
    }
    runtime.nothing_is_left();
}
