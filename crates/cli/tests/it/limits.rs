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
    // Each has a reason, however it is cut off, and however long its first attempt lasts.
    let routed = LAB
        .replace("{ a: {", "{ b: { subnet: 10.2.0.0/24, members: [\"47.0091.8100.0000.02a7.0000.0200.02a703000200\"] }, a: {")
        + "routers: { r: { on: s, elans: { a: 10.1.0.3, b: 10.2.0.3 } } }\n";
    for (name, lab, fault, end, says) in [
        (
            "cut",
            LAB,
            "link_down: h2-s",
            "12s",
            "h2 has not joined its network: ",
        ),
        (
            "long",
            LAB,
            "link_down: h2-s",
            "20s",
            "h2 has not joined its network: ",
        ),
        (
            "off",
            LAB,
            "crash: h2",
            "12s",
            "h2 has not joined its network: it has been switched off since 0 s",
        ),
        (
            "ilmi",
            &LAB.replace("10.1.0.2 }", "10.1.0.2, ilmi: true }"),
            "link_down: h2-s",
            "12s",
            "h2 has not joined its network: ILMI: the link to the switch is down",
        ),
        (
            "les",
            LAB,
            "crash: lane/les",
            "12s",
            "h1 has not joined its network: ",
        ),
        (
            "of",
            &*routed,
            "restart: h1",
            "12s",
            "r has not joined its network b: the LECS refuses: status 7",
        ),
    ] {
        let text = format!("{lab}faults: [{{ at: 0s, {fault} }}]\nuntil: {end}\n");
        let cut = run(&["run", "-q", &lab_file(&format!("{name}.atm.yml"), &text)]);
        assert_eq!(cut.code, 3, "{}", cut.err);
        let told = cut
            .err
            .lines()
            .filter(|line| line.contains("has not joined"));
        let told: Vec<&str> = told.collect();
        let reasoned = |line: &&str| {
            line.split_once("network")
                .is_some_and(|(_, why)| why.contains(": "))
        };
        assert!(
            !told.is_empty() && told.iter().all(reasoned),
            "{name}: {}",
            cut.err
        );
        assert!(
            told.iter().any(|line| line.contains(says)),
            "{name}: {}",
            cut.err
        );
    }
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
        err.contains("and 16 more; of the first one: the LECS has not answered its call yet (until the end at 0.00001 s;"),
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
