//! `aerostat check --lab`: verdicts about a running lab.

use crate::live::{Runtime, can_run, has, wait_for, with_a_shortcut};
use crate::{lab_file, rest_of};
use aerostat_testing::command::signal;
use serde_json::Value;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

const REST: &str = "\
traffic:
  - { name: voice, from: urku, to: sello, kind: udp, rate: 50pps, size: 160, start: 500ms, duration: 1s }
until: 4s
checks:
  - { host: urku, elan: a, on: s1 }
  - { count: switches, is: 3 }
  - { setting: seed, is: 1 }
  - { reach: urku -> sello within 5s }
  - { reach: sello -> urku within 2s, is: 2 }
  - { reach: urku -> r9, is: 0 }
  - { reach: urku -> s1, is: 0 }
  - { shortcut: urku -> sello by 2s }
  - { shortcut: urku -> sello by 100ms, is: 0 }
  - { shortcut: urku -> sello }
  - { shortcut: r1 -> r2, is: 0 }
  - { message: Resolution Request from urku before 2s, is: 1 }
  - { message: Purge, is: \">0\" }
  - { flow: voice, lost: 0 }
  - { flow: voice, delivered: 50 }
  - { flow: voice, delay_us: { min: <1 } , points: 0 }
  - { table: lec.client, where: { node: urku, state: operational }, is: 1 }
  - { table: flows, where: { name: voice, phase: shortcut }, column: lost, is: 0 }
";

/// Titles and verdicts of a report as JSON.
fn verdicts(report: &str) -> Vec<(String, String)> {
    let report: Value = serde_json::from_str(report).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let all = report["checks"].as_array().unwrap().iter();
    all.map(|one| (text(&one["title"]), text(&one["verdict"])))
        .collect()
}

/// Reach, shortcuts, messages, structure, tables and books have the same verdicts in virtual and in real time.
#[test]
fn a_running_lab_gets_the_verdicts_of_virtual_time() {
    let lab = Runtime::new("check-two");
    let path = lab_file("check-two.atm.yml", &with_a_shortcut("check-two", REST));
    let exact = lab.run(&["check", &path, "-o", "json"]);
    lab.ok(&["up", "-d", "-q", "--embedded", &path]);
    let real = lab.run(&["check", "--lab", "check-two", "-o", "json"]);
    assert_eq!((exact.code, real.code), (1, 1), "{}", real.err);
    let (exact, mut got) = (verdicts(&exact.out), verdicts(&real.out));
    let of = |name: &str| got.iter().filter(|(_, verdict)| verdict == name).count();
    assert_eq!(
        [of("pass"), of("fail"), of("unjudged")],
        [13, 3, 1],
        "{got:?}"
    );
    // A delay of a running lab needs a tolerance.
    let soft = got.iter_mut().find(|(_, verdict)| verdict == "warning");
    soft.unwrap().1 = "fail".into();
    assert_eq!(exact, got);
    real.shows("\"time\": \"real\"");
    // Checks of a file; its traffic is not that of the lab.
    let others = lab_file(
        "check-two-others.yml",
        "traffic: [{ name: more, from: urku, to: sello, kind: udp, rate: 9pps, start: 0s, duration: 1s }]
checks: [{ count: hosts, is: 2 }, { flow: more, lost: 0 }]\n",
    );
    let other = lab.run(&["check", "--lab", "check-two", "--checks", &others]);
    assert_eq!(other.code, 6, "{}{}", other.out, other.err);
    other.shows("the running lab has no flow 'more'");
    let none = lab.run(&["check", "--lab", "nowhere"]);
    assert_eq!(none.code, 4, "{}", none.err);
}

/// Commands run in kernel hosts; what they start ends with the command.
#[test]
fn commands_in_hosts_are_judged_and_leave_nothing_behind() {
    if !can_run() || !has("ping") {
        return;
    }
    let lab = Runtime::new("check-run");
    let path = lab_file(
        "check-run.atm.yml",
        "
name: check-run
switches: { s1: {} }
lane: { on: s1, elans: { a: { subnet: 10.1.0.0/24 } } }
hosts:
  anna: { on: s1, elan: a, ip: 10.1.0.10 }
  bert: { on: s1, elan: a, ip: 10.1.0.20, kernel: false }
checks:
  - { reach: anna -> bert within 9s }
  - { reach: bert -> anna within 2s, is: 2 }
  - { run: ping -c 1 10.1.0.20, in: anna, prints: 1 received }
  - { run: ping -c 1 -W 1 10.1.0.99, in: anna, exit: 1 }
  - { run: yes | head -c 900000, in: anna }
  - { run: cat /dev/zero, in: anna }
  - { run: exit 3, in: anna, exit: 3 }
  - { run: exit 0, in: bert }
  - { run: exit 0, in: carl }
",
    );
    lab.ok(&["up", "-d", "-q", &path]);
    let report = lab.run(&["check", "--lab", "check-run", "-o", "json"]);
    let got: Vec<String> = verdicts(&report.out).into_iter().map(|one| one.1).collect();
    let wanted = [
        "pass", "pass", "pass", "pass", "pass", "fail", "pass", "unjudged", "fail",
    ];
    assert_eq!(got, wanted, "{}{}", report.out, report.err);
    let told = "ended by its limit of 1 MiB of output, wanted exit code 0";
    report.shows(told);
    let endless = lab_file(
        "check-run-endless.yml",
        "checks: [{ run: sleep 98765, in: anna }]\n",
    );
    let check = lab
        .command(&["check", "--lab", "check-run", "--checks", &endless])
        .spawn()
        .unwrap();
    let sleeps = || {
        let all = lab.ok(&["exec", "--lab", "check-run", "anna", "--", "ps", "ax"]);
        all.contains("sleep 98765")
    };
    wait_for("the command", sleeps);
    signal(&check.id().to_string(), "INT");
    assert_eq!(rest_of(check).code, 6);
    wait_for("its end", || !sleeps());
}

/// A lab serves 64 connections at once. Fifty checks that wait have more, and each gets its verdicts.
#[test]
fn checks_without_end_of_one_lab_give_way_to_each_other() {
    let lab = Runtime::embedded("check-many", &with_a_shortcut("check-many", REST));
    let checks = lab_file(
        "check-many.yml",
        "checks: [{ reach: urku -> sello within 5s }, { flow: voice, lost: 0 }, { message: Resolution Request from urku }]\n",
    );
    let args = [
        "check",
        "--lab",
        "check-many",
        "--checks",
        &checks,
        "-o",
        "json",
    ];
    let start = || {
        let mut check = lab.command(&args);
        check
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let all: Vec<_> = (0..50).map(|_| start()).collect();
    for check in all {
        let check = rest_of(check);
        assert_eq!(check.code, 0, "{}{}", check.out, check.err);
    }
    // A lab that ends before its checks are judged, and one that hangs.
    let far = lab_file(
        "check-far.yml",
        "checks: [{ message: Purge before 900s }]\n",
    );
    let waits = || {
        let mut check = lab.command(&["check", "--lab", "check-many", "--checks", &far]);
        let mut check = check.stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let mut said = BufReader::new(check.stderr.as_mut().unwrap());
        said.read_line(&mut line).unwrap();
        assert!(line.contains("waiting for second 900"), "{line}");
        check
    };
    let process = lab.process();
    let check = waits();
    signal(&process, "STOP");
    assert_eq!(rest_of(check).code, 6);
    signal(&process, "CONT");
    let check = waits();
    lab.ok(&["down"]);
    let ended = rest_of(check);
    ended.ends(4, "the lab has ended");
}
