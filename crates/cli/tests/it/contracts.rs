//! Contracts of calls, from the lab file through signalling to the policer of the switch.

use crate::{json, lab_file, root, run};
use aerostat_testing::wireshark::tshark;
use serde_json::Value;

/// Three calls of a host that shapes, each with another kind of contract.
const CALLS: &str = "
switches: { s: { police: true, queues: { scheduler: weighted } } }
clip: { w: { subnet: 10.7.0.0/24, server: y } }
hosts:
  x:
    on: s
    elan: w
    ip: 10.7.0.1
    uni: 4.0
    link: { rate: 25.6 }
    sockets:
      - { name: vbr, call: y/e1, qos: \"VBR\", size: 1000, pdus: 20, rate: 20pps, hold: 10s }
      - { name: cbr, call: y/e1, qos: \"cbr:max_pcr=3000,pcr0=2500\", size: 1000, pdus: 20, rate: 20pps, hold: 10s }
      - { name: ubr, call: y/e1, qos: \"ubr:max_pcr=3000,mdcr=200\", size: 1000, pdus: 20, rate: 20pps, hold: 10s }
  y:
    on: s
    elan: w
    ip: 10.7.0.2
    sockets: [{ name: sink, listen: sink, selector: e1 }]
until: 3s
";
const VBR: &str =
    "nrt-vbr:tx:max_pcr=2000,scr0=500,mbs=10,tagging=true,rx:max_pcr=1000,scr=100,mbs=2";

fn calls(name: &str) -> String {
    lab_file(name, &CALLS.replace("VBR", VBR))
}

/// The rows of the policers at the port of host x.
fn policers(lab: &str, set: &[&str], code: i32) -> Vec<Value> {
    let mut args = vec!["run", lab, "-q", "-o", "json"];
    args.extend(set.iter().flat_map(|set| ["--set", set]));
    let ran = run(&args);
    assert_eq!(ran.code, code, "{}", ran.err);
    let results: Value = serde_json::from_str(&ran.out).unwrap();
    let rows = results["policers"].as_array().unwrap().clone();
    rows.into_iter().filter(|row| row["port"] == 0).collect()
}

#[test]
fn the_switch_polices_calls_by_the_contract_that_they_signalled() {
    let lab = calls("contracts.atm.yml");
    let rows = policers(&lab, &[], 0);
    let [vbr, cbr] = &rows[..] else {
        panic!("{rows:#?}");
    };
    assert_eq!(vbr["conformance"], "VBR.3");
    assert_eq!(
        vbr["contract"],
        "nrt-vbr:max_pcr=2000,scr0=500,mbs=10,sdu=1000,tagging=true"
    );
    assert_eq!(cbr["conformance"], "CBR.2");
    for row in &rows {
        // 20 PDUs of 21 cells, from a host that shapes.
        assert_eq!(
            (&row["cells_in"], &row["cells_passed"]),
            (&420.into(), &420.into())
        );
    }
    // Best effort is policed at its peak rate where that is asked for; the nearest word counts.
    let rows = policers(&lab, &["hosts.x.link.police=all"], 0);
    assert_eq!(rows.len(), 3, "{rows:#?}");
    assert_eq!(rows[2]["conformance"], "UBR.1");
    assert_eq!(rows[2]["contract"], "ubr:max_pcr=3000,min_pcr=200,sdu=1000");
    assert!(policers(&lab, &["hosts.x.link.police=false"], 0).is_empty());
}

/// Without tolerance, a cell that had to wait for others is followed too soon by the next.
#[test]
fn a_policer_counts_by_the_test_that_a_cell_failed() {
    let lab = calls("contracts-tight.atm.yml");
    // The programs lose PDUs: exit code 3.
    let rows = policers(&lab, &["hosts.x.link.cdvt=1us"], 3);
    let count = |row: &Value, column: &str| row[column].as_u64().unwrap();
    let failed = |column: &str| rows.iter().map(|row| count(row, column)).sum::<u64>();
    assert!(
        failed("over_peak") > 0 && failed("over_peak_clp0") > 0,
        "{rows:#?}"
    );
    for row in &rows {
        let by_test = ["over_peak", "over_peak_clp0", "over_sustained"];
        let by_test: u64 = by_test.iter().map(|column| count(row, column)).sum();
        assert_eq!(
            by_test,
            count(row, "cells_discarded") + count(row, "cells_tagged")
        );
        let passed = count(row, "cells_passed");
        assert_eq!(
            count(row, "cells_in"),
            passed + count(row, "cells_discarded")
        );
    }
}

/// Wireshark's reading of the SETUPs of the host.
#[test]
fn wireshark_reads_the_contracts_of_calls() {
    let directory = std::env::temp_dir().join(format!("aerostat-contracts-{}", std::process::id()));
    let lab = calls("contracts-seen.atm.yml");
    let pcap = directory.to_str().unwrap();
    let ran = run(&["run", &lab, "-q", "--until", "2s", "--pcap", pcap]);
    let lines = tshark(
        &directory.join("x.pcapng"),
        &["-Y", "q2931.message_type == 5", "-V"],
    );
    std::fs::remove_dir_all(&directory).unwrap();
    let Some(lines) = lines else {
        return;
    };
    assert!(matches!(ran.code, 0 | 3), "{}", ran.err);
    for wanted in [
        "Forward sustainable cell rate (CLP = 0) (0x88)",
        "Backward sustainable cell rate (CLP = 0 + 1) (0x91)",
        "Forward maximum burst size (CLP = 0) (0xa0)",
        "Backward maximum burst size (CLP = 0 + 1) (0xb1)",
        "Tagging in forward direction: Requested",
        "Tagging in backward direction: Not Requested",
        "ATM Transfer Capability: Non-real time VBR (0x0a)",
        "Forward peak cell rate (CLP = 0) (0x82)",
    ] {
        assert!(
            lines.iter().any(|line| line.contains(wanted)),
            "{wanted}: {lines:#?}"
        );
    }
}

/// A shortcut of variable rate under load: the host shapes its packets, so the policer drops no cell of them.
#[test]
fn a_shortcut_of_variable_rate_keeps_its_contract() {
    let lab = root().join("labs/two-subnets.atm.yml");
    let entry = "hosts.urku.mpoa.qos=['10.2.0.10 tx=nrt-vbr:max_pcr=90000,scr=60000,mbs=400,sdu=1600 rx=tx']";
    let set = ["--set", "switches.s1.police=true", "--set", entry];
    let mut args = vec![
        "run",
        lab.to_str().unwrap(),
        "-q",
        "-o",
        "json",
        "--until",
        "5s",
    ];
    args.extend(set);
    let results = json(&args);
    let of = |table: &str, wanted: (&str, &str)| {
        let rows = results[table].as_array().unwrap();
        let row = rows.iter().find(|row| row[wanted.0] == wanted.1);
        row.unwrap_or_else(|| panic!("{table}: {rows:#?}")).clone()
    };
    let shortcut = of("shortcuts", ("from", "urku"));
    let contract = "nrt-vbr:max_pcr=90000,scr=60000,mbs=400,sdu=1600";
    assert_eq!(
        (&shortcut["traffic"], &shortcut["fallback"]),
        (&contract.into(), &"no".into())
    );
    let policer = of("policers", ("contract", contract));
    assert_eq!(
        (&policer["conformance"], &policer["cells_discarded"]),
        (&"VBR.1".into(), &0.into())
    );
    assert!(policer["cells_in"].as_u64().unwrap() > 40_000, "{policer}");
}
