//! The statements of the help texts: order of words, exit codes, results of interrupted commands.

use crate::lab_file;
use crate::live::{Runtime, signal, wait_for, wait_for_end};
use crate::{Ran, command, piped, rest_of, run};
use std::io::{Read as _, Write as _};
use std::process::Stdio;

const LAB: &str = "\
switches: { s: {} }
lane: { on: s, elans: { a: { subnet: 10.1.0.0/24 } } }
hosts:
  h1: { on: s, elan: a, ip: 10.1.0.1 }
  h2: { on: s, elan: a, ip: 10.1.0.2 }
traffic:
  - { from: h1, to: h2, kind: udp, rate: 1Mbps, size: 500, start: 2s, duration: 6000s }
";

/// The same with a flow that starts after the end of the run, which causes a warning.
fn with_a_warning() -> String {
    let text = LAB.replace("duration: 6000s", "duration: 1s");
    text + "  - { name: late, from: h2, to: h1, kind: ping, start: 9s }\nuntil: 4s\n"
}

#[test]
fn labs_come_from_standard_input_too() {
    let mut child = command(&["run", "-q", "-", "--until", "4s", "-o", "json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(LAB.as_bytes())
        .unwrap();
    let Ran { code, out, .. } = rest_of(child);
    assert!(code == 0 || code == 3);
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(json["lab"], "stdin");
    let file = lab_file("same.atm.yml", LAB);
    let from_file = run(&["run", "-q", &file, "--until", "4s", "-o", "json"]).out;
    let json: serde_json::Value = serde_json::from_str(&from_file).unwrap();
    assert_eq!(json["lab"], "same");
}

#[test]
fn several_files_are_validated_and_the_worst_of_them_counts() {
    let good = lab_file("good.atm.yml", LAB);
    let bad = lab_file(
        "bad.atm.yml",
        &LAB.replace("elan: a, ip: 10.1.0.2", "elan: b, ip: 10.1.0.2"),
    );
    let both = run(&["validate", &good, "labs/one-elan.atm.yml"]);
    assert_eq!(both.code, 0, "{}", both.err);
    let names: Vec<_> = both
        .out
        .lines()
        .filter_map(|line| line.split(':').next())
        .collect();
    assert_eq!(names, ["good", "one-elan"]);
    let mixed = run(&["validate", &bad, &good, "labs/nowhere.atm.yml"]);
    assert_eq!(mixed.code, 2);
    assert!(mixed.out.starts_with("good: "), "{}", mixed.out);
    mixed.says("bad.atm.yml: 1 error");
    mixed.says("nowhere.atm.yml");
    let json = run(&["validate", &bad, &good, "-o", "json"]).json();
    assert_eq!(json["rows"].as_array().unwrap().len(), 1, "{json}");
}

#[test]
fn an_interrupted_run_shows_what_it_has_and_says_so() {
    let file = lab_file("endless.atm.yml", LAB);
    let mut child = piped(command(&["run", &file, "--until", "5000s", "-o", "json"]));
    // The story tells when both have joined; then the flow has started or is about to.
    let mut err = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut said = String::new();
    while said.matches("joined").count() < 2 {
        assert!(
            std::io::BufRead::read_line(&mut err, &mut said).unwrap() > 0,
            "{said}"
        );
    }
    std::thread::sleep(std::time::Duration::from_millis(500));
    signal(&child.id().to_string(), "INT");
    let mut out = String::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut out)
        .unwrap();
    err.read_to_string(&mut said).unwrap();
    assert_eq!(wait_for_end(&mut child), 3, "{said}");
    assert!(said.contains("interrupted at"), "{said}");
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    let end = json["end_s"].as_f64().unwrap();
    assert!(end > 0.0 && end < 5000.0, "{end}");
    assert!(json["flows"].is_array());
}

#[test]
fn faults_of_the_lab_file_stand_in_the_story_of_a_run() {
    let text = LAB.replace("duration: 6000s", "duration: 1s")
        + "until: 6s\nfaults: [{ at: 3500ms, link_down: h1-s }, { at: 4s, link_up: h1-s }]\n";
    let file = lab_file("faulty.atm.yml", &text);
    let ran = run(&["run", &file]);
    assert!(ran.code == 0 || ran.code == 3, "{}", ran.err);
    ran.says("link h1-s to s is cut");
    ran.says("link h1-s to s is mended");
}

#[test]
fn words_in_any_order_and_faults_in_the_story_of_a_running_lab() {
    let runtime = Runtime::new("any-order");
    for name in ["one", "two"] {
        let file = lab_file(&format!("{name}.atm.yml"), LAB);
        runtime.ok(&["up", "-d", "-q", "--embedded", &file]);
    }
    let before = runtime.ok(&["--lab", "one", "inspect", "h1", "lec", "-o", "jsonl"]);
    let behind = runtime.ok(&["inspect", "h1", "lec", "--lab", "one", "-o", "jsonl"]);
    assert_eq!(before, behind);
    assert!(before.starts_with("{"), "{before}");
    // Several nodes, several kinds, and everything.
    let several = runtime.json(&[
        "inspect", "--lab", "one", "h1", "h2", "lec", "vc", "-o", "json",
    ]);
    assert_eq!(several["schema"], "aerostat.inspect.v1");
    let rows = several["rows"].as_array().unwrap();
    for (node, table) in [("h1", "vc connections"), ("h2", "vc connections")] {
        let found = rows
            .iter()
            .any(|row| row["node"] == node && row["table"] == table);
        assert!(found, "{node} {table}: {several:#}");
    }
    let all = runtime.ok(&["inspect", "--lab", "one", "h1"]);
    for table in [
        "h1: vc connections",
        "h1: port interfaces",
        "h1: port ports",
    ] {
        assert!(all.contains(table), "{table}: {all}");
    }
    // Without `--`, and with options of the command itself.
    let refused = runtime.run(&["--lab", "one", "exec", "h1", "ping", "-c", "1", "10.1.0.2"]);
    refused.ends(1, "h1 is no kernel host");

    let fault = |words: &[&str]| runtime.run(&[&["--lab", "one", "fault"][..], words].concat());
    assert_eq!(fault(&["link-down", "h2-s"]).code, 0);
    let again = fault(&["link-down", "h2-s"]);
    again.ends(1, "h2-s is down already");
    assert_eq!(fault(&["crash", "h1"]).code, 0);
    let dead = fault(&["crash", "h1"]);
    dead.ends(1, "h1 is down already");
    dead.says("'aerostat fault restart h1'");
    assert_eq!(fault(&["restart", "h1"]).code, 0);
    let events = runtime.ok(&["events", "--lab", "one"]);
    for event in ["fault.link-down", "fault.crash", "fault.restart"] {
        assert!(events.contains(event), "{event}: {events}");
    }
    // The command returns after showing the story so far.
    let story = runtime.ok(&["trace", "--no-follow", "--lab", "one"]);
    assert!(story.contains("link h2-s to s is cut"), "{story}");
    assert!(
        story.contains("crashes") && story.contains("starts again"),
        "{story}"
    );
    let of_one = runtime.ok(&["trace", "--no-follow", "--node", "h1", "--lab", "one"]);
    // Earlier messages are shown between the events: a ladder that returns at once.
    for said in ["h1 ──► s ", "SETUP", "LE_JOIN", "BGN"] {
        assert!(of_one.contains(said), "{said}: {of_one}");
    }
    assert!(
        !of_one.contains("h2 ──►") && story.contains("h2 ──►"),
        "{story}"
    );
    let one_link = runtime.ok(&[
        "trace",
        "--no-follow",
        "-o",
        "jsonl",
        "h2-s",
        "--lab",
        "one",
    ]);
    assert!(one_link.lines().count() > 20, "{one_link}");
    for line in one_link.lines() {
        let message: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(message["link"], "h2-s", "{line}");
    }
    assert!(
        of_one.contains("crashes") && !of_one.contains("is cut"),
        "{of_one}"
    );

    runtime.ok(&["down", "one", "two"]);
    runtime.nothing_is_left();
}

#[test]
fn warnings_of_the_lab_file_end_every_command_with_3() {
    let file = lab_file("warned.atm.yml", &with_a_warning());
    let checked = run(&["validate", &file]);
    assert_eq!(checked.code, 3, "{}", checked.err);
    assert_eq!(run(&["graph", &file]).code, 3);
    assert_eq!(run(&["run", "-q", &file]).code, 3);
    let runtime = Runtime::new("warned");
    assert_eq!(
        runtime.run(&["up", "-d", "-q", "--embedded", &file]).code,
        3
    );
    wait_for("the lab", || runtime.ok(&["ls"]).contains("warned"));
    runtime.ends();
}
