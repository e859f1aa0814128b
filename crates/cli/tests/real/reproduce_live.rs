//! `aerostat reproduce --live`: rows between Linux kernels in real time.

use crate::live::{Runtime, can_run, has, signal, wait_for};
use serde_json::Value;
use std::process::{Command, Stdio};

/// A row whose streams collapse, on a quiet machine and on a busy one.
const ROW: &str = "sara/2: 4 segments";

#[test]
fn a_row_between_kernels_stands_beside_its_model_and_nothing_is_left() {
    if !can_run() {
        return;
    }
    let runtime = Runtime::new("reproduce-live");
    let report = runtime.directory.join("report");
    let words = ["reproduce", ROW, "-q", "-o", "json"];
    let live = ["--live", "--live-runs", "1", "--live-seconds", "2"];
    let page = ["--report", report.to_str().unwrap()];
    let ran = runtime.run(&[&words[..], &live, &page].concat());
    assert!(ran.code == 0, "{}{}", ran.out, ran.err);
    let document: Value = serde_json::from_str(&ran.out).unwrap();
    let rows = document["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| row["table"] == "rows").unwrap();
    let model = row["model"].as_f64().unwrap();
    // That of virtual time, to the last digit.
    let virtual_time = runtime.json(&words);
    let same = &virtual_time["rows"][0];
    assert_eq!(same["model"], model);
    assert_eq!(same["live"], Value::Null);
    // An adapter that reassembles two segments loses the others, whatever TCP the hosts have.
    let found = row["live"].as_f64().unwrap();
    assert!(found < 5.0 && found != model, "{row}");
    assert!(row["live_retransmitted"].as_u64().unwrap() > 0, "{row}");
    assert_eq!(row["live_runs"], 1);
    let result = row["live_result"].as_str().unwrap();
    assert!(["ok", "lagged"].contains(&result), "{row}");
    let set = |what: &str, value: &str| {
        let found = rows.iter().any(|row| {
            let told = row["value"].as_str().unwrap_or_default();
            row["table"] == "live" && row["what"] == *what && told.contains(value)
        });
        assert!(found, "{what} {value}: {}", ran.out);
    };
    set("kernel", "Linux ");
    set("net.ipv4.tcp_congestion_control", "reno");
    set("net.ipv4.tcp_sack", "0");
    set("net.ipv4.tcp_recovery", "0");
    set("route", "cwnd lock 4");
    let page = std::fs::read_to_string(report.join("index.html")).unwrap();
    for text in [
        "Virtual and real time",
        "<th>live result</th>",
        "cwnd lock 4",
    ] {
        assert!(page.contains(text), "{text}");
    }
    runtime.nothing_is_left();
}

#[test]
fn without_privilege_live_rows_are_refused_and_the_others_run() {
    // Root of a user namespace that gives all capabilities away, and has no further namespaces.
    let poor = "echo 0 > /proc/sys/user/max_user_namespaces && \
        exec setpriv --bounding-set=-all --inh-caps=-all \"$@\"";
    let unprivileged = |words: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "sh", "-c", poor, "sh"]);
        command.args(words).output().unwrap()
    };
    if !has("setpriv") || !has("unshare") || !unprivileged(&["true"]).status.success() {
        println!("skipped: no user namespaces");
        return;
    }
    let words = [env!("CARGO_BIN_EXE_aerostat"), "reproduce", ROW, "-q"];
    let refused = unprivileged(&[&words[..], &["--live"]].concat());
    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(5), "{told}");
    let hint = "hint: without --live, rows need no privilege\n";
    assert!(
        told.contains("no privilege for kernel hosts: ") && told.contains(hint),
        "{told}"
    );
    assert!(refused.stdout.is_empty());
    assert_eq!(unprivileged(&words).status.code(), Some(0));
}

/// The exit code of a run between kernels that got `name` while its lab ran.
fn ended_by(name: &str) -> Option<i32> {
    let runtime = Runtime::new(&format!("reproduce-{name}"));
    let words = ["reproduce", ROW, "-q", "--live", "--live-seconds", "600"];
    let mut command = runtime.command(&words);
    let (out, err) = (Stdio::null(), Stdio::null());
    let mut child = command.stdout(out).stderr(err).spawn().unwrap();
    wait_for("the lab to run", || {
        let listed = runtime.run(&["ls", "-o", "csv"]).out;
        listed.contains(&format!("reproduce-{}", child.id()))
    });
    signal(&child.id().to_string(), name);
    let status = child.wait().unwrap();
    runtime.nothing_is_left();
    status.code()
}

#[test]
fn a_killed_or_interrupted_reproduce_leaves_nothing() {
    if !can_run() {
        return;
    }
    assert_eq!(ended_by("KILL"), None);
    assert_eq!(ended_by("INT"), Some(3));
}
