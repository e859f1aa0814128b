//! No bound is met silently: hosts that never joined, and refusals, cause a warning in the results and exit code 3.

use crate::lab_file;
use crate::run;

const LAB: &str = "\
switches: { s: {} }
lane: { on: s, elans: { a: { subnet: 10.1.0.0/24 } } }
hosts:
  h1: { on: s, elan: a, ip: 10.1.0.1 }
  h2: { on: s, elan: a, ip: 10.1.0.2 }
";

#[test]
fn hosts_that_never_join_are_a_warning_also_without_traffic() {
    let file = lab_file("never.atm.yml", LAB);
    let good = run(&["run", "-q", &file, "--until", "3s"]);
    assert_eq!((good.code, &*good.err), (0, ""));
    let cut = LAB.to_owned() + "faults: [{ at: 0s, link_down: h2-s }]\nuntil: 12s\n";
    let cut = run(&["run", "-q", &lab_file("cut.atm.yml", &cut)]);
    assert_eq!(cut.code, 3, "{}", cut.err);
    assert_eq!(cut.err, "warning: h2 has not joined its network\n");
}

#[test]
fn a_run_that_is_too_short_to_join_says_so() {
    let mut text = LAB.to_owned();
    for n in 3..=20 {
        text += &format!("  h{n}: {{ on: s, elan: a, ip: 10.1.0.{n} }}\n");
    }
    let short = run(&[
        "run",
        "-q",
        &lab_file("short.atm.yml", &text),
        "--until",
        "10us",
    ]);
    assert_eq!(short.code, 3, "{}", short.err);
    let err = &short.err;
    assert!(
        err.contains("warning: 20 nodes have not joined their networks: h1, "),
        "{err}"
    );
    assert!(
        err.contains("and 16 more (until the end at 0.00001 s;"),
        "{err}"
    );
}

#[test]
fn frames_beyond_a_quota_are_a_warning() {
    let mut text = LAB.replace("on: s, elans", "on: s, quota: { broadcast: 1pps }, elans");
    for n in 3..=9 {
        text += &format!("  h{n}: {{ on: s, elan: a, ip: 10.1.0.{n} }}\n");
    }
    text += "traffic:\n";
    for n in 2..=9 {
        text += &format!(
            "  - {{ name: p{n}, from: h1, to: h{n}, kind: ping, start: 1s, duration: 1s }}\n"
        );
    }
    let over = run(&["run", "-q", &lab_file("over.atm.yml", &text)]);
    assert_eq!(over.code, 3, "{}", over.err);
    let err = &over.err;
    let told = "warning: lane: h1/00 sends more broadcast frames than its quota";
    assert!(err.contains(told), "{err}");
}
