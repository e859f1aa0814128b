//! ATP as Wireshark shows it with `wireshark/atp.lua`: counts beside the results of the run, and SDUs with mistakes.

use crate::{lab_file, run};
use aerostat_testing::wireshark::tshark_with;
use serde_json::Value;
use std::path::Path;

/// A permanent connection whose receiver's link loses cells in both directions.
const LAB: &str = "
switches: { s: {} }
clip: { n: { subnet: 10.1.0.0/24, server: a } }
hosts:
  a: { on: s, elan: n, ip: 10.1.0.1, sockets: [{ name: w, vc: 0.100, atp: { bytes: 60kB, message: 20kB, mtu: 500 } }] }
  b: { on: s, elan: n, ip: 10.1.0.2, link: { loss: 0.004 }, sockets: [{ name: r, vc: 0.101, listen: sink, atp: { mtu: 500 } }] }
pvcs: [{ from: a, vc: 0.100, to: b, to_vc: 0.101 }]
until: 20s
";

/// Lines of tshark with ATP on the VC, or `None` without tshark.
fn seen(file: &Path, vc: &str, arguments: &[&str]) -> Option<Vec<String>> {
    let vcs = format!("atm_atp.vcs:{vc}");
    tshark_with("atp.lua", file, &[&["-o", &vcs], arguments].concat())
}

/// Each end's own file has all that this end wrote, also what the link lost later.
#[test]
fn wireshark_counts_the_packets_that_the_ends_counted() {
    let directory = std::env::temp_dir().join(format!("aerostat-atp-{}", std::process::id()));
    let lab = lab_file("atp-seen.atm.yml", LAB);
    let into = directory.to_str().unwrap();
    let ran = run(&["run", "-q", &lab, "--pcap", into, "-o", "json"]);
    assert!(matches!(ran.code, 0 | 3), "{}", ran.err);
    let results: Value = serde_json::from_str(&ran.out).unwrap();
    let mut compared = 0;
    for (node, vc) in [("a", "0.100"), ("b", "0.101")] {
        let file = directory.join(format!("{node}.pcapng"));
        let rows = results["atp"].as_array().unwrap().iter();
        let row = rows.clone().find(|row| row["node"] == node).unwrap();
        let figure = |name: &str| row[name].as_u64().unwrap();
        let both = figure("packets_sent") + figure("packets_repeated");
        for (filter, wanted) in [
            ("atm_atp.type == 0 or atm_atp.type == 1", both),
            ("atm_atp.repeats", figure("packets_repeated")),
            (
                "atm_atp.type == 1 and not atm_atp.repeats",
                figure("messages_sent"),
            ),
            ("atm_atp.type == 2", figure("acks_sent")),
            ("atm_atp.type == 3", figure("naks_sent")),
            ("_ws.malformed or atm_atp.flags_invalid", 0),
        ] {
            // Only what this end wrote.
            let filter = format!("frame.p2p_dir == 0 and ({filter})");
            let Some(lines) = seen(&file, vc, &["-Y", &filter]) else {
                return;
            };
            assert_eq!(lines.len() as u64, wanted, "{node}: {filter}");
            compared += wanted;
        }
        // The lab has lost something of each kind that is compared.
        let lossy = if node == "a" {
            "packets_repeated"
        } else {
            "naks_sent"
        };
        assert!(figure(lossy) > 0, "{row}");
    }
    std::fs::remove_dir_all(&directory).unwrap();
    assert!(compared > 250, "{compared}");
}

/// SDUs on VC 0.100 as a file of Sun's ATM header: direction and type, VPI, VCI. Source: pcap-linktype(7), 123.
fn recording(sdus: &[&[u8]]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0002_0004, 0, 0, 65_535, 123] {
        file.extend(word.to_be_bytes());
    }
    for sdu in sdus {
        let length = sdu.len() as u32 + 4;
        for word in [1, 0, length, length] {
            file.extend(u32::to_be_bytes(word));
        }
        file.extend([0x80, 0, 0, 100]);
        file.extend(*sdu);
    }
    file
}

/// The vectors of `wire`'s codec, with its mistakes, and packets at and beyond the MTU.
#[test]
fn wireshark_marks_what_is_invalid() {
    let sdus: [&[u8]; 11] = [
        &[0, 0, 0, 5, 7],
        &[0x80, 0, 0, 5, 7],
        &[0x80, 0, 0, 6],
        &[0x40, 0, 0, 5],
        &[0x3f, 0xff, 0xff, 0xff],
        &[0xc0, 0, 0, 5],
        &[0xc0, 0, 0, 5, 1],
        &[0x40, 0, 0, 5, 1],
        &[0, 0, 0, 9, 1, 2, 3, 4, 5, 6],
        &[0, 0, 0, 10, 1, 2, 3, 4, 5, 6, 7],
        &[0x80, 0, 0],
    ];
    let name = format!("aerostat-atp-{}.pcap", std::process::id());
    let file = std::env::temp_dir().join(name);
    std::fs::write(&file, recording(&sdus)).unwrap();
    let mut arguments = vec!["-o", "atm_atp.mtu:10", "-T", "fields", "-E", "separator=,"];
    for field in [
        "atm_atp.type",
        "atm_atp.seq",
        "atm_atp.length",
        "atm_atp.flags_invalid",
        "atm_atp.too_long",
        "atm_atp.repeats",
        "atm_atp.short",
    ] {
        arguments.extend(["-e", field]);
    }
    let lines = seen(&file, "0.100", &arguments);
    std::fs::remove_file(&file).unwrap();
    let Some(lines) = lines else {
        return;
    };
    let wanted = [
        "0,5,1,,,,",
        "1,5,1,,,1,",
        "1,6,0,,,,",
        "2,5,0,,,,",
        "3,1073741823,0,,,,",
        "4,5,0,1,,,",
        "4,5,1,1,,,",
        "4,5,1,1,,,",
        "0,9,6,,,,",
        "0,10,7,,1,,",
        "4,,,,,,1",
    ];
    assert_eq!(lines, wanted);
}
