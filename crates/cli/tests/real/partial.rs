//! Ctrl-C of measurements: the results so far are shown, with exit code 3.

use crate::live::{Runtime, can_run, has, signal};
use crate::{Ran, piped, rest_of};
use serde_json::Value;
use std::time::{Duration, Instant};

const LAB: &str = "labs/two-subnets.atm.yml";

/// Starts a measurement that would take minutes, interrupts it after `after` and returns its row.
fn interrupted(runtime: &Runtime, words: &[&str], after: Duration) -> Value {
    let began = Instant::now();
    let child = piped(runtime.command(&[words, &["-o", "json"]].concat()));
    std::thread::sleep(after);
    signal(&child.id().to_string(), "INT");
    let Ran { code, out, err, .. } = rest_of(child);
    assert_eq!(code, 3, "{words:?}: {out}{err}");
    assert!(began.elapsed() < Duration::from_secs(30), "{words:?}");
    assert!(
        err.contains("warning: interrupted, these are the results so far"),
        "{err}"
    );
    let json: Value =
        serde_json::from_str(&out).unwrap_or_else(|_| panic!("{words:?}: {out}{err}"));
    json["rows"][0].clone()
}

fn both(runtime: &Runtime) {
    let ping = ["ping", "-c", "1000", "-i", "0.1", "urku", "sello"];
    let row = interrupted(runtime, &ping, Duration::from_millis(2500));
    let count = |column: &str| row[column].as_u64().unwrap();
    assert!((5..1000).contains(&count("sent")), "{row}");
    assert!(
        count("received") > 0 && row["rtt_mean_ms"].as_f64() > Some(0.0),
        "{row}"
    );
    let iperf = ["iperf", "-t", "300", "urku", "sello"];
    let row = interrupted(runtime, &iperf, Duration::from_secs(4));
    assert!(row["octets"].as_u64().unwrap() > 100_000, "{row}");
    let seconds = row["seconds"].as_f64().unwrap();
    assert!(seconds > 0.5 && seconds < 30.0, "{row}");
}

#[test]
fn an_interrupted_measurement_of_embedded_hosts_shows_what_it_has() {
    let runtime = Runtime::new("partial");
    // The lab's own transfer fills a queue, which then discards some of the packets.
    runtime.ok(&["up", "-d", "-q", "--embedded", "--set", "traffic=[]", LAB]);
    both(&runtime);
    // No program continues in the hosts after the client has ended.
    let row = runtime.ok(&["ping", "-c", "2", "sello", "urku", "-o", "csv"]);
    assert!(row.contains("sello,urku,2,2,0,"), "{row}");
    runtime.down_with_warnings();
}

#[test]
fn an_interrupted_measurement_of_kernel_hosts_shows_what_it_has() {
    if !can_run() || !has("ping") || !has("iperf3") {
        return;
    }
    let runtime = Runtime::new("partial-kernel");
    runtime.ok(&["up", "-d", "-q", LAB]);
    both(&runtime);
    runtime.down_with_warnings();
}
