//! `aerostat qos` with a running lab.

use crate::live::Runtime;
use std::time::{Duration, Instant};

/// Two subnets and a router; the link between the switches has room for one call of 80 000 cells/s, but not for two.
const LAB: &str = "
mpoa: { flow_detect: 3 frames per 1s }
switches: { s1: {}, s2: {} }
links: [[s1, s2, { rate: 100000cells/s }]]
lane:
  on: s1
  elans: { a: { subnet: 10.1.0.0/24 }, b: { subnet: 10.2.0.0/24 } }
routers: { r: { on: s1, elans: { a: 10.1.0.1, b: 10.2.0.1 } } }
hosts:
  x: { on: s1, elan: a, ip: 10.1.0.10, mpoa: { qos: [\"10.2.0.10 icmp tx=80000,1600 rx=100,1600\"] } }
  y: { on: s2, elan: b, ip: 10.2.0.10 }
traffic: [{ from: x, to: y, kind: ping, rate: 20pps }]
";

fn document(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap()
}

fn rows(text: &str) -> Vec<serde_json::Value> {
    let document = document(text);
    assert_eq!(document["schema"], "aerostat.qos.v1");
    document["rows"].as_array().unwrap().clone()
}

/// Waits until x has flows for each of these traffics, over connections that are up.
fn flows(lab: &Runtime, wanted: &[(&str, &str)]) {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let all = lab.ok(&["inspect", "x", "mpc", "-o", "jsonl"]);
        let rows: Vec<serde_json::Value> = all.lines().map(document).collect();
        let has = |(traffic, fallback): &(&str, &str)| {
            rows.iter().any(|row| {
                row["traffic"] == *traffic && row["fallback"] == *fallback && row["vci"].is_u64()
            })
        };
        if wanted.iter().all(has) {
            return;
        }
        assert!(Instant::now() < deadline, "{wanted:?} not in {all}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn entries_come_and_go() {
    let lab = Runtime::embedded("qos", LAB);
    flows(&lab, &[("cbr:max_pcr=80000,sdu=1600", "no")]);
    let shown = rows(&lab.ok(&["qos", "show", "-o", "json"]));
    let one = shown.iter().find(|row| row["node"] == "x").unwrap();
    assert_eq!(
        (&one["destination"], &one["protocol"], &one["flows"]),
        (&"10.2.0.10".into(), &"icmp".into(), &1.into())
    );
    // Answers of y would get their traffic only if the link had the rate twice.
    let new = ["qos", "add", "y", "0.0.0.0:0", "10.1.0.10:0", "icmp"];
    let new = [&new[..], &["tx=80000,0,1600", "rx=tx", "-o", "json"]].concat();
    assert_eq!(rows(&lab.ok(&new))[0]["tx"], "cbr:max_pcr=80000,sdu=1600");
    let deadline = Instant::now() + Duration::from_secs(60);
    while rows(&lab.ok(&["qos", "show", "y", "-o", "json"]))[0]["fallbacks"] != 1 {
        assert!(Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(100));
    }
    let events = lab.ok(&["events"]);
    assert!(events.contains("mpc.qos.fallback"), "{events}");
    let text = lab.ok(&["inspect", "y", "mpc", "-o", "proc"]);
    assert!(text.contains("Src IP address:port"), "{text}");

    // Without the entry the flow becomes best effort.
    let left = lab.ok(&["qos", "del", "x", "10.2.0.10", "icmp", "-o", "json"]);
    assert!(rows(&left).is_empty());
    flows(&lab, &[("ubr", "no")]);

    for (args, says, hint) in [
        (
            &["add", "x", "10.2.0.10", "tx=0,1600", "rx=tx"][..],
            "no traffic at 0 cells/s (character 14)",
            "for example",
        ),
        (
            &["add", "r", "10.2.0.10", "tx=1,1600", "rx=tx"],
            "r has no MPOA client",
            "qos show",
        ),
        (
            &["add", "s1", "10.2.0.10", "tx=1,1600", "rx=tx"],
            "s1 has no MPOA client",
            "qos show",
        ),
        (
            &["del", "x", "10.2.0.10"],
            "x has no QoS entry 10.2.0.10",
            "qos show x",
        ),
        (&["show", "nobody"], "there is no node 'nobody'", "nodes: "),
    ] {
        let ran = lab.run(&[&["qos"], args].concat());
        ran.refused(1, &[says, hint]);
    }
    lab.ends();
}
