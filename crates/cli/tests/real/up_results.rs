//! The results of a lab in real time at its end: the same accounts, warnings and exit codes as for a run in virtual
//! time.

use crate::live::{Runtime, signal, wait_for, wait_for_end};
use crate::{lab_file, piped, root, schema};
use serde_json::Value;
use std::io::Read as _;
use std::process::Stdio;

/// The trunk loses two PDUs in ten; `lossy` crosses it, `clean` does not.
const LAB: &str = "\
switches: { s1: {}, s2: {} }
links: [[s1, s2, { loss: 0.05 }]]
clip: { w: { subnet: 10.0.0.0/24, server: a } }
hosts:
  a: { on: s1, elan: w, ip: 10.0.0.1 }
  b: { on: s1, elan: w, ip: 10.0.0.2 }
  c: { on: s2, elan: w, ip: 10.0.0.3 }
pvcs: [{ from: a, vc: 0.100, to: c }, { from: a, vc: 0.101, to: b }]
traffic:
  - { name: lossy, from: a, to: c, kind: udp, rate: 500pps, size: 150 }
  - { name: clean, from: a, to: b, kind: udp, rate: 100pps, size: 100 }
  - { name: later, from: b, to: a, kind: ping, start: 3000s }
";

/// Waits until a flow has sent for a while.
fn wait_for_traffic(runtime: &Runtime) {
    wait_for("traffic to start", || {
        let events = runtime.run(&["events"]).out;
        events.matches("traffic.started").count() == 2
    });
    std::thread::sleep(std::time::Duration::from_millis(1500));
}

#[test]
fn a_lossy_flow_ends_up_and_down_with_places_a_warning_and_exit_code_3() {
    let runtime = Runtime::new("lossy");
    let file = lab_file("lossy.atm.yml", LAB);
    let mut up = piped(runtime.command(&["up", "--embedded", "--wide", &file]));
    wait_for_traffic(&runtime);
    let down = runtime.run(&["down", "-o", "json"]);
    assert_eq!(down.code, 3, "{}", down.err);
    let place = "(link s1-s2: cell lost: ";
    let warned = |err: &str| {
        let line = err.lines().find(|line| line.starts_with("warning: "));
        let line = line.unwrap_or_default();
        line.starts_with("warning: traffic lossy lost ") && line.contains(place)
    };
    assert!(warned(&down.err), "{}", down.err);
    // There is no warning about the flow without losses, or about the flow whose time has not come.
    assert_eq!(down.err.matches("warning:").count(), 1, "{}", down.err);
    let json: Value = serde_json::from_str(&down.out).unwrap();
    let rows = json["flows"].as_array().unwrap();
    assert_eq!(rows.len(), 3);
    let (mut out, mut err) = (String::new(), String::new());
    up.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    up.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert_eq!(wait_for_end(&mut up), 3, "{err}");
    assert!(warned(&err), "{err}");
    assert!(
        err.contains("traffic lossy starts: a and c have joined"),
        "{err}"
    );
    assert!(out.contains("link s1-s2: cell lost "), "{out}");
    assert!(!out.contains("unexplained"), "{out}");
    runtime.nothing_is_left();
}

#[test]
fn a_loss_that_is_expected_is_no_warning_in_real_time_either() {
    let runtime = Runtime::new("expected");
    let text = LAB.replace("size: 150", "size: 150, expect: loss");
    let mut up = piped(runtime.command(&[
        "up",
        "-q",
        "--embedded",
        &lab_file("expected.atm.yml", &text),
    ]));
    wait_for_traffic(&runtime);
    signal(&up.id().to_string(), "INT");
    let mut err = String::new();
    up.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert_eq!(wait_for_end(&mut up), 0, "{err}");
    assert!(!err.contains("warning"), "{err}");
    runtime.nothing_is_left();
}

/// The document has everything that the published schema requires and nothing else, and its accounts balance.
fn is_published(lab: &str, text: &str) -> Value {
    let published = std::fs::read_to_string(root().join("docs/results.schema.json")).unwrap();
    let published: Value = serde_json::from_str(&published).unwrap();
    let document: Value = serde_json::from_str(text).unwrap();
    let mut found = Vec::new();
    schema::violations(&published, &document, "", &mut found);
    assert!(found.is_empty(), "{lab}: {}", found.join("\n"));
    schema::balance(lab, &document);
    document
}

#[test]
fn down_and_the_end_of_up_give_the_same_document_as_a_run() {
    let runtime = Runtime::new("document");
    let lab = "labs/two-subnets.atm.yml";
    let set = "traffic.ping.rate=50pps";
    let out = runtime.directory.join("results");
    let out = out.to_str().unwrap();
    let mut up = runtime
        .command(&["up", "-q", "--embedded", "-o", "json", lab, "--set", set])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_for("a shortcut", || {
        let rows = runtime
            .run(&["inspect", "urku", "mpc", "--table", "ingress", "-o", "csv"])
            .out;
        rows.contains("urku,ingress,10.2.0.10,resolved")
    });
    let down = runtime.run(&["down", "-o", "json"]);
    assert_eq!(down.code, 0, "{}", down.err);
    let mut own = String::new();
    up.stdout.take().unwrap().read_to_string(&mut own).unwrap();
    assert_eq!(wait_for_end(&mut up), 0);
    let first = down
        .out
        .lines()
        .zip(own.lines())
        .find(|(down, up)| down != up);
    assert_eq!(first, None, "the same document, and nothing else");
    assert_eq!(down.out.len(), own.len());
    let document = is_published(lab, &own);
    let head = ["schema", "time", "lab"].map(|key| document[key].as_str().unwrap());
    assert_eq!(head, ["aerostat.run.v1", "real", "two-subnets"]);
    assert_eq!(document["overrides"], serde_json::json!([set]));
    let rows = |table: &str| document[table].as_array().unwrap();
    assert!(
        rows("shortcuts")
            .iter()
            .any(|row| row["state"] == "resolved")
    );
    assert!(rows("vcs").len() > 20 && rows("queues").len() > 20);
    assert!(
        rows("vcs").iter().all(|row| row["ctd_us"].is_null()),
        "cells have no times there"
    );
    let busy = rows("links")
        .iter()
        .filter_map(|row| row["utilisation"].as_f64());
    assert!(busy.clone().any(|share| share > 0.0) && busy.clone().all(|share| share <= 1.0));
    assert!(
        document["nodes"]["s1"]["call"].is_object(),
        "calls stood when the end was asked for"
    );

    // A lab in the background writes into a directory; its flows are one table of several.
    runtime.ok(&[
        "up",
        "-d",
        "-q",
        "--embedded",
        "--out",
        out,
        "-o",
        "csv",
        lab,
    ]);
    let flows = runtime.run(&["down", "-o", "csv"]).out;
    assert!(
        flows.starts_with("name,from,to,phase,duration_s,"),
        "{flows}"
    );
    runtime.nothing_is_left();
    let file = |name: &str| std::fs::read_to_string(format!("{out}/{name}")).unwrap_or_default();
    assert_eq!(file("flows.csv"), flows);
    assert!(file("vcs.csv").lines().count() > 20);
    assert!(
        file("run.json").contains("\"time\": \"real\""),
        "{}",
        file("run.json")
    );
}

/// A lab whose ATMARP and NHRP server is off from the start, and which has no traffic.
const SERVERLESS: &str = "\
switches: { w: {}, e: {} }
links: [[w, e]]
clip: { a: { subnet: 10.5.0.0/24, server: r1, nhrp: true } }
routers: { r1: { on: w, elans: { a: 10.5.0.1 } } }
hosts:
  x: { on: w, elan: a, ip: 10.5.0.10 }
  z: { on: e, elan: a, ip: 10.5.0.11 }
faults: [{ at: 0s, crash: r1 }]
";

/// Hosts that never registered are a warning with its reason at both ends, also without traffic; and the story is in
/// the order of its times, also where faults come before the first step of the network.
#[test]
fn hosts_that_never_joined_are_told_at_the_end_without_traffic_too() {
    let runtime = Runtime::new("serverless");
    let file = lab_file("serverless.atm.yml", SERVERLESS);
    let mut up = runtime
        .command(&["up", "--embedded", &file])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let why = "has not joined its network: no connection with the ATMARP server: cause 27";
    wait_for("an attempt of z", || {
        runtime
            .run(&["inspect", "z", "clip", "-o", "json"])
            .out
            .contains("cause 27")
    });
    let down = runtime.run(&["down", "-q"]);
    assert_eq!(down.code, 3, "{}", down.err);
    let mut err = String::new();
    up.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert_eq!(wait_for_end(&mut up), 3, "{err}");
    for text in [&down.err, &err] {
        assert!(text.contains(&format!("warning: z {why}")), "{text}");
    }
    let times = err.lines().filter_map(|line| {
        let time = line.split_whitespace().next()?;
        time.parse::<f64>().ok().filter(|_| time.contains('.'))
    });
    let times: Vec<f64> = times.collect();
    assert!(times.len() > 1 && times.is_sorted(), "{err}");
    runtime.nothing_is_left();
}
