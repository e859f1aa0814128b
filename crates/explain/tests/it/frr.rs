//! Captures of Debian's FRR, as hub and spokes of a DMVPN. Their README tells what happened.

use crate::captures::{explained, rules, said};
use aerostat_explain::{Report, Rule};
use std::path::Path;

fn frr(name: &str) -> Report {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/frr");
    explained(&std::fs::read(folder.join(name).with_extension("pcap")).expect(name))
}

fn broken(name: &str, wanted: &[Rule]) -> Report {
    let report = frr(name);
    let rules: Vec<Rule> = rules(&report).into_iter().collect();
    assert_eq!(rules, wanted, "{name}:\n{}", said(&report));
    report
}

fn story(report: &Report) -> Vec<&str> {
    report.story.iter().map(|one| one.text.as_str()).collect()
}

/// Registrations, redirects and the shortcuts of two spokes: each is told once, though the hub passes replies on.
const STORY: [&str; 6] = [
    "10.0.0.1 registers 10.0.0.2 for 300 s",
    "10.0.0.1 registers 10.0.0.3 for 300 s",
    "10.0.0.1 tells 192.0.2.2 of a shorter way from 192.168.2.1 to 192.168.3.1 (Traffic Indication)",
    "10.0.0.1 tells 192.0.2.3 of a shorter way from 192.168.3.1 to 192.168.2.1 (Traffic Indication)",
    "10.0.0.2 learns that 192.168.3.1 is behind 10.0.0.3 at 192.0.2.3",
    "10.0.0.3 learns that 192.168.2.1 is behind 10.0.0.2 at 192.0.2.2",
];

/// The story in the order of its texts: which spoke is faster differs between captures.
fn sorted(report: &Report) -> Vec<&str> {
    let mut texts = story(report);
    texts.sort_unstable();
    // The hub indicates again each second until the shortcut is there.
    texts.dedup_by(|one, other| one == other && one.ends_with("(Traffic Indication)"));
    texts
}

#[test]
fn a_hub_and_its_spokes_break_no_rule() {
    let report = broken("clean", &[]);
    assert_eq!(sorted(&report), STORY);
    assert!(report.notes.is_empty(), "{:?}", report.notes);
}

#[test]
fn a_password_is_shown_for_each_end_and_nothing_else_is_named() {
    let report = broken("password", &[Rule::NhrpClear]);
    assert_eq!(sorted(&report), STORY);
    let text = "the password 'geheim' in clear text: everybody on the way can read and use it";
    assert!(report.findings.iter().all(|one| one.text == text));
    // Two spokes, and the hub towards each.
    assert_eq!(report.broken[&Rule::NhrpClear], 4);
}

/// FRR's Error Indications hold the refused packet without its entries.
#[test]
fn refusals_are_told_with_their_reason() {
    let wanted = [
        Rule::NhrpError,
        Rule::NhrpErrorAboutError,
        Rule::NhrpClear,
        Rule::NhrpUnsigned,
        Rule::NhrpPassword,
    ];
    let report = broken("refused", &wanted);
    let told = story(&report);
    for spoke in [2, 3] {
        let text = format!(
            "192.0.2.1 refuses NHRP Registration Request 1 of 10.0.0.{spoke}: authentication failure"
        );
        assert!(told.contains(&text.as_str()), "{told:#?}");
    }
    let ends = |rule: Rule| -> Vec<_> {
        let own = report.findings.iter().filter(|one| one.rule == rule);
        own.map(|one| (one.from.as_str(), one.text.as_str()))
            .collect()
    };
    let none = "NHRP Registration Request has no authentication, and 192.0.2.1 needs it";
    assert_eq!(ends(Rule::NhrpUnsigned), [("192.0.2.3", none)]);
    let other = "NHRP Registration Request has a password or key that 192.0.2.1 refuses";
    assert_eq!(ends(Rule::NhrpPassword), [("192.0.2.2", other)]);
    // The first error is about a request, and each of the others about the one before.
    assert!(report.broken[&Rule::NhrpErrorAboutError] > 40);
    assert!(report.broken[&Rule::NhrpError] < 5);
}

#[test]
fn another_gre_key_is_a_note_beside_the_registration_that_nobody_answers() {
    let report = broken("key", &[Rule::NhrpRegistration]);
    assert_eq!(report.findings[0].from, "192.0.2.3");
    let note = "192.0.2.3 sends with GRE key 43 to 192.0.2.1, which does not answer, \
                and answers others with GRE key 42";
    assert!(report.notes.contains_key(note), "{:?}", report.notes);
}
