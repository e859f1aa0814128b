//! Messages of `run` about flows that fail, and its exit code.

use crate::{lab_file, ok, run};

/// Two hosts on an ELAN, plus `rest`.
fn lab(name: &str, rest: &str) -> String {
    let text = format!(
        "switches: {{ s: {{}} }}\n\
         lane: {{ on: s, elans: {{ a: {{ subnet: 10.1.0.0/24 }} }} }}\n\
         hosts:\n  a: {{ on: s, elan: a, ip: 10.1.0.1 }}\n  b: {{ on: s, elan: a, ip: 10.1.0.2 }}\n{rest}"
    );
    lab_file(&format!("{name}.atm.yml"), &text)
}

#[test]
fn flows_and_hosts_that_fail_end_a_run_with_3_and_say_why() {
    let udp = "{ name: f, from: a, to: b, kind: udp, rate: 100pps, size: 100, duration: 1s";
    let gone = "until: 6s\nfaults: [{ at: 900ms, crash: b }]\n";
    let dead = "until: 3s\nfaults: [{ at: 0s, crash: lane }]\n";
    for (name, rest, words) in [
        (
            "books-nothing",
            format!("traffic: [{udp}, start: 1s }}]\n{gone}"),
            vec!["warning: traffic f delivered nothing of 100 packets (a: ARP: 100)"],
        ),
        (
            "books-never",
            format!("traffic: [{udp} }}]\n{dead}"),
            vec![
                "warning: a has not joined its network",
                "warning: b has not joined its network",
                "warning: traffic f never started: its hosts have not joined",
            ],
        ),
        (
            "books-tcp",
            format!(
                "traffic: [{{ name: f, from: a, to: b, kind: tcp, start: 1s, duration: 1s }}]\n{gone}"
            ),
            vec!["warning: traffic f never sent anything: no connection"],
        ),
        (
            "books-expected",
            format!("traffic: [{udp}, start: 1s, expect: loss }}]\n"),
            vec!["warning: traffic f: 'expect: loss', but nothing was lost"],
        ),
    ] {
        let ran = run(&["run", &lab(name, &rest)]);
        assert_eq!(ran.code, 3, "{name}: {}", ran.err);
        for words in words {
            assert!(ran.err.contains(words), "{name}: {words}: {}", ran.err);
        }
        assert!(ran.out.contains("\nf  "), "{name} has no row: {}", ran.out);
    }
    for expect in ["loss", "nothing"] {
        let rest = format!("traffic: [{udp}, start: 1s, expect: {expect} }}]\n{gone}");
        ok(&["run", &lab("books-fails", &rest)]);
    }
}

#[test]
fn the_story_says_when_traffic_without_a_start_begins() {
    let rest = "traffic: [{ name: f, from: a, to: b, kind: udp, rate: 100pps, size: 100, duration: 1s }]\n";
    let ran = run(&["run", &lab("books-start", rest)]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let words = "traffic f starts: a and b have joined";
    assert!(
        ran.out.contains(words) || ran.err.contains(words),
        "{}",
        ran.err
    );
}

#[test]
fn the_size_of_tcp_traffic_is_said_to_have_no_effect() {
    let rest = "traffic: [{ from: a, to: b, kind: tcp, size: 100, duration: 100ms }]\n";
    let ran = run(&["validate", &lab("books-size", rest)]);
    assert_eq!(ran.code, 3, "{}", ran.err);
    let words = "size has no effect on tcp, which always writes as much as its socket takes";
    ran.says(words);
}
