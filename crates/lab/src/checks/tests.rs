//! Tests of checks: what the reader refuses, and verdicts.

use super::*;
use crate::event::{Event, Names};
use crate::ladder::Message;
use aerostat_proto::{Instant, Trace};
use serde_json::{Value, json};
use std::collections::BTreeMap;

const LAB: &str = "
switches: { s1: {}, s2: {} }
links: [[s1, s2]]
lane: { on: s1, elans: { a: { subnet: 10.1.0.0/24 } } }
hosts:
  anna: { on: s1, elan: a, ip: 10.1.0.10 }
  bert: { on: s2, elan: a, ip: 10.1.0.20 }
answers: { cells: 22 }
";

fn parsed(checks: &str) -> Result<crate::Checked, String> {
    let text = format!("{LAB}checks:\n{checks}");
    crate::parse("x.atm.yml", &text, &[]).map_err(|d| d.to_string())
}

#[test]
fn wrong_checks_are_told_with_their_place_and_a_hint() {
    for (check, said, hint) in [
        (
            "{ points: 1 }",
            "this check looks at nothing",
            "known: reach",
        ),
        (
            "{ reach: a -> b, count: hosts }",
            "two checks",
            "make two of it",
        ),
        ("{ reach: a to b }", "expected two names", ""),
        ("{ reach: a -> b within soon }", "behind 'within'", ""),
        ("{ reach: a -> b within 2h }", "at most 1h", ""),
        ("{ reach: a -> b, is: -1 }", "no number of things", "0, 3"),
        (
            "{ reach: a -> b, lost: 0 }",
            "'lost' does not belong to a check of reach",
            "reach has is",
        ),
        (
            "{ link: s1 -> s2, is: 1 }",
            "does not belong",
            "leave it out",
        ),
        ("{ flow: f }", "says nothing about the flow", "lost: 0"),
        ("{ flow: f, lost: few }", "expected a number", "3, <100"),
        (
            "{ flow: f, delay_us: { p98: <1 } }",
            "expected min, mean",
            "",
        ),
        ("{ flow: f, lost: <x }", "behind the comparison", ""),
        (
            "{ table: flow, is: 1 }",
            "there is no table 'flow'",
            "did you mean 'flows'?",
        ),
        (
            "{ table: flows, where: { form: anna } }",
            "no column 'form'",
            "did you mean 'from'?",
        ),
        ("{ table: flows, column: lost }", "'is' is missing", ""),
        (
            "{ table: flows, columns: lost, is: 0 }",
            "unknown key 'columns'",
            "did you mean 'column'?",
        ),
        ("{ message: from anna }", "no words of a message", ""),
        ("{ run: ls }", "'in' is missing", ""),
        ("{ count: cows, is: 1 }", "expected switches", ""),
        ("{ answer: cells }", "'is' is missing", ""),
        (
            "{ count: hosts, level: high }",
            "expected required or warning",
            "",
        ),
        ("{ count: hosts, points: 1001 }", "points is 0 to 1000", ""),
    ] {
        let error = parsed(&format!("  - {check}\n")).expect_err(check);
        assert!(error.starts_with("x.atm.yml:10:"), "{check}: {error}");
        assert!(
            error.contains(said) && error.contains(hint),
            "{check}: {error}"
        );
    }
    let many = "  - { count: hosts }\n".repeat(MOST + 3);
    let said = parsed(&many).unwrap_err();
    let told = "at most 1000 checks, and here are 1003";
    assert_eq!(
        (said.contains(told), said.matches("error:").count()),
        (true, 1),
        "{said}"
    );
}

/// The verdicts about checks, with the evidence.
fn verdicts(checks: &str, real: bool, flows: &[Value]) -> Vec<(Verdict, String)> {
    let checked = parsed(checks).unwrap();
    let mut watch = Watch::new(&checked.checks);
    watch.message(&Message {
        time: 2.0,
        link: "anna-s1".into(),
        from: "anna".into(),
        to: "s1".into(),
        vc: "0.5".into(),
        protocol: "q2931".into(),
        text: "SETUP cr 1".into(),
        dropped: None,
    });
    for line in [
        json!({ "is": "shortcut", "t": 1_000_000_000_u64, "id": 1, "from": "anna", "state": "resolving" }),
        json!({ "is": "shortcut", "t": 2_000_000_000_u64, "id": 1, "to": "bert", "state": "open" }),
        json!({ "is": "shortcut", "t": 3_000_000_000_u64, "id": 1, "gone": true }),
    ] {
        watch.line(&line.to_string());
    }
    let names = Names::new(&checked.lab);
    let bert = checked.lab.find("bert").unwrap();
    let bert = checked.lab.node(bert).attachment().unwrap().address;
    for (time, node) in [(2, "anna"), (3, "anna"), (1, "s1")] {
        let first = Trace::milestone("mpc.shortcut.first", "a first packet")
            .with("destination", "10.1.0.20")
            .with("peer", bert);
        watch.step(&names, &Event::new(Instant::from_secs(time), node, &first));
    }
    let flows: Vec<_> = flows
        .iter()
        .filter_map(|row| row.as_object().cloned())
        .collect();
    let rows = |_| Ok(flows.clone());
    let evidence = Evidence {
        lab: &checked.lab,
        answers: &checked.answers,
        real,
        rows: &rows,
        settings: &json!({ "nodes": { "anna": { "switch": "s1" } } }),
        seen: &watch.seen(),
    };
    let all = judge(&checked.checks, &evidence);
    all.into_iter().map(|one| (one.verdict, one.text)).collect()
}

fn one(check: &str) -> Verdict {
    verdicts(&format!("  - {check}\n"), false, &[])[0].0
}

#[test]
fn structure_settings_and_answers_are_those_of_the_lab() {
    for (check, passes) in [
        ("{ host: anna, elan: a, on: s1 }", true),
        ("{ host: anna, on: s2 }", false),
        ("{ host: anna, elan: b }", false),
        ("{ host: s1 }", false),
        ("{ router: anna }", false),
        ("{ link: s2 -> s1 }", true),
        ("{ link: s1 -> bert }", false),
        ("{ count: switches, is: 1..2 }", true),
        ("{ count: hosts, is: 3 }", false),
        ("{ setting: nodes.anna.switch, is: s1 }", true),
        ("{ setting: nodes.anna.colour, is: s1 }", false),
        ("{ answer: cells, is: 22 }", true),
        ("{ answer: cells, is: 21 +- 2% }", false),
        ("{ answer: octets, is: 22 }", false),
    ] {
        let wanted = if passes {
            Verdict::Passed
        } else {
            Verdict::Failed
        };
        assert_eq!(one(check), wanted, "{check}");
    }
}

#[test]
fn messages_and_shortcuts_count_in_their_time() {
    for (check, passes) in [
        ("{ message: setup from anna before 2s }", true),
        ("{ message: setup from anna before 1s }", false),
        ("{ message: setup after 2s }", false),
        ("{ message: setup to bert }", false),
        ("{ message: release, is: 0 }", true),
        ("{ message: setup from berta, is: 0 }", false),
        ("{ message: setup from bert to s3, is: 0 }", false),
        ("{ shortcut: anna -> bert by 2s }", true),
        ("{ shortcut: anna -> bert by 1s }", false),
        ("{ shortcut: bert -> anna by 2s }", false),
        // It has gone.
        ("{ shortcut: anna -> bert }", false),
        ("{ shortcut: anna -> bert, is: 0 }", true),
        ("{ shortcut: anna -> berta, is: 0 }", false),
    ] {
        let wanted = if passes {
            Verdict::Passed
        } else {
            Verdict::Failed
        };
        assert_eq!(one(check), wanted, "{check}");
    }
}

#[test]
fn figures_of_a_flow_are_those_of_all_its_phases_and_times_need_a_tolerance_in_real_time() {
    let row = |phase: &str, lost: u64, p99: u64| {
        json!({ "name": "f", "phase": phase, "sent": 10 + lost, "lost": lost, "delivered": 10, "duration_s": 1.0,
            "delivered_octets": 125_000, "delay_us_p99": p99, "delay_us_mean": p99 })
    };
    let flows = [row("routed", 2, 100), row("shortcut", 0, 20)];
    let of = |check: &str, real| verdicts(&format!("  - {check}\n"), real, &flows)[0].0;
    assert_eq!(
        of("{ flow: f, lost: 2, delivered: 20 }", false),
        Verdict::Passed
    );
    assert_eq!(of("{ flow: f, lost: 0 }", false), Verdict::Failed);
    assert_eq!(
        of("{ flow: f, phase: shortcut, lost: 0 }", false),
        Verdict::Passed
    );
    assert_eq!(
        of("{ flow: f, phase: direct, lost: 0 }", false),
        Verdict::Failed
    );
    assert_eq!(of("{ flow: g, lost: 0 }", false), Verdict::Failed);
    // A flow that never began has a row, too.
    let silent = [json!({ "name": "f", "phase": "direct", "sent": 0, "lost": 0, "delivered": 0 })];
    let never = verdicts("  - { flow: f, lost: 0 }\n", false, &silent);
    assert_eq!(never[0].0, Verdict::Failed, "{never:?}");
    assert_eq!(
        of("{ flow: f, throughput_mbps: 1 }", false),
        Verdict::Passed
    );
    assert_eq!(
        of("{ flow: f, delay_us: { p99: 100, mean: 60 } }", false),
        Verdict::Passed
    );
    assert_eq!(
        of("{ flow: f, delay_us: { p99: <90 } }", false),
        Verdict::Failed
    );
    assert_eq!(
        of("{ flow: f, delay_us: { p99: <90 } }", true),
        Verdict::Warned
    );
    assert_eq!(
        of("{ flow: f, delay_us: { p99: <90 }, tolerance: 5% }", true),
        Verdict::Failed
    );
    assert_eq!(
        of("{ flow: f, delay_us: { p99: <90 }, tolerance: 20% }", true),
        Verdict::Passed
    );
    assert_eq!(of("{ flow: f, lost: 0 }", true), Verdict::Failed);
    // The tolerance is for running labs alone.
    assert_eq!(
        of("{ flow: f, delay_us: { p99: <90 }, tolerance: 20% }", false),
        Verdict::Failed
    );
    assert_eq!(
        of("{ table: flows, where: { lost: 0 }, is: 1 }", false),
        Verdict::Passed
    );
    assert_eq!(
        of("{ table: flows, column: lost, is: <=2 }", false),
        Verdict::Passed
    );
    assert_eq!(
        of("{ table: flows, column: lost, is: 0 }", false),
        Verdict::Failed
    );
    assert_eq!(
        of(
            "{ table: flows, where: { name: g }, column: lost, is: 0 }",
            false
        ),
        Verdict::Failed
    );
}

#[test]
fn a_failed_stage_ends_those_behind_it_and_words_of_the_check_hide_what_was_found() {
    let all = verdicts(
        "  - { stage: one, count: hosts, is: 3, fail: count again }
  - { stage: one, count: switches, is: 2, pass: two switches }
  - { stage: two, count: switches, is: 2 }
  - { count: switches, is: 1 }
  - { stage: one, count: hosts, is: 9, level: warning }
  - { run: ls, in: anna }
",
        false,
        &[],
    );
    let verdicts: Vec<Verdict> = all.iter().map(|(verdict, _)| *verdict).collect();
    use Verdict::{Failed, Passed, Skipped, Unjudged, Warned};
    assert_eq!(
        verdicts,
        [Failed, Passed, Skipped, Failed, Warned, Unjudged]
    );
    assert_eq!(all[0].1, "count again");
    assert_eq!(all[1].1, "two switches");
    assert_eq!(all[3].1, "found 2, wanted 1");
    assert!(all[5].1.contains("virtual time"), "{}", all[5].1);
}

#[test]
fn checks_of_another_file_stand_in_place_of_those_of_the_lab() {
    let lab = format!("{LAB}checks: [{{ count: hosts, is: 2 }}]\nuntil: 1s\n");
    let with = |checks| {
        crate::parse_with_checks(
            "x.atm.yml",
            &lab,
            &[],
            crate::ChecksText {
                name: "c.yml",
                text: checks,
            },
        )
        .map_err(|d| d.to_string())
    };
    let all = with("until: 3s\nchecks:\n  - { count: switches }\n  - { count: links }\n").unwrap();
    assert_eq!(all.checks.len(), 2);
    assert_eq!(all.lab.until, Some(Duration::from_secs(3)));
    assert_eq!(with("[{ count: links }]").unwrap().checks.len(), 1);
    assert_eq!(
        all.answers,
        BTreeMap::from([("cells".to_owned(), "22".to_owned())])
    );
    for (bad, said) in [
        ("checks:\n  - { count: cows }\n", "c.yml"),
        ("until: 3s\n", "there is no 'checks:'"),
        ("3", "expected 'checks:'"),
        (
            "answers: { cells: 22 }\nchecks: []\n",
            "answers are those of the lab",
        ),
    ] {
        let error = with(bad).unwrap_err();
        assert!(error.contains(said), "{bad}: {error}");
    }
    let only = crate::parse_checks(
        "c.yml",
        "traffic: [{ from: x }]\nchecks: [{ count: links }]\n",
    );
    assert_eq!(only.unwrap().len(), 1);
}

/// A running lab keeps its latest messages and steps only.
#[test]
fn counts_that_could_be_other_with_what_is_forgotten_are_not_judged() {
    let checked = parsed(
        "  - { message: setup }
  - { message: setup, is: 1 }
  - { message: release, is: 0 }
  - { message: poll }
  - { message: poll, is: 3 }
  - { shortcut: anna -> bert by 2s }
  - { shortcut: anna -> bert }
",
    );
    let checked = checked.unwrap();
    let mut watch = Watch::new(&checked.checks);
    for (protocol, text) in [("q2931", "SETUP cr 1"), ("sscop", "POLL ps 1 s 2")] {
        watch.message(&Message {
            time: 2.0,
            link: "anna-s1".into(),
            from: "anna".into(),
            to: "s1".into(),
            vc: "0.5".into(),
            protocol: protocol.into(),
            text: text.into(),
            dropped: None,
        });
    }
    let unknown = |messages, idle, steps| {
        let mut seen = watch.seen();
        let gone = Forgotten {
            messages,
            idle,
            steps,
        };
        watch.forget(&mut seen, &gone);
        let unknown = seen
            .iter()
            .filter(|(_, seen)| matches!(seen, Seen::Unknown(_)));
        unknown.map(|(number, _)| *number).collect::<Vec<_>>()
    };
    assert_eq!(unknown(0, 0, 0), [0; 0]);
    assert_eq!(unknown(0, 7, 0), [4]);
    assert_eq!(unknown(7, 0, 0), [1, 2, 4]);
    assert_eq!(unknown(0, 0, 7), [5]);
}
