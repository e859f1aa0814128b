//! One fault for each rule: the fault names this rule, and its near miss names nothing. The crate gives the list of
//! rules.

mod arp;
mod calls;
mod cells;
mod ilmi;
mod lane;
mod llc;
mod mpoa;
mod nhrp;
mod sscop;

use crate::captures::{Sdu, explained, file, rules, said};
use aerostat_explain::Rule;
use aerostat_wire::Vc;
use std::collections::BTreeSet;

/// A fault, and what is almost the same and right.
pub(crate) struct Case {
    rule: Rule,
    /// Rules that the same fault breaks besides.
    also: Vec<Rule>,
    fault: Vec<u8>,
    near: Vec<u8>,
}

impl Case {
    /// Two files.
    fn files(rule: Rule, near: Vec<u8>, fault: Vec<u8>) -> Self {
        Self {
            rule,
            also: Vec::new(),
            fault,
            near,
        }
    }
    /// Two lists of SDUs.
    fn sdus(rule: Rule, near: &[Sdu], fault: &[Sdu]) -> Self {
        Self::files(rule, file(near), file(fault))
    }
    /// A clean list of SDUs, and a change that breaks the rule.
    fn change(rule: Rule, near: &[Sdu], change: impl FnOnce(&mut Vec<Sdu>)) -> Self {
        let mut fault = near.to_vec();
        change(&mut fault);
        Self::sdus(rule, near, &fault)
    }
    fn also(mut self, rules: &[Rule]) -> Self {
        self.also.extend(rules);
        self
    }
}

/// A clean capture, and the mistake that a reader could make about it.
type Clean = (&'static str, Vec<u8>);

fn sdu(time: f64, way: &str, vc: Vc, octets: Vec<u8>) -> Sdu {
    let way = way.to_owned();
    Sdu {
        time,
        way,
        vc,
        octets,
    }
}

/// Five minutes later: longer than any answer may take.
fn later() -> Sdu {
    sdu(300.0, "A>B", Vc::new(0, 999), vec![0; 70])
}

fn all() -> Vec<Case> {
    [
        sscop::cases(),
        calls::cases(),
        ilmi::cases(),
        lane::cases(),
        arp::cases(),
        llc::cases(),
        cells::cases(),
        nhrp::cases(),
        mpoa::cases(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[test]
fn each_rule_has_a_fault_that_names_it_and_a_near_miss_that_names_nothing() {
    let mut wrong = Vec::new();
    let mut seen = BTreeSet::new();
    for case in all() {
        let Case {
            rule,
            also,
            fault,
            near,
        } = case;
        seen.insert(rule);
        let wanted: BTreeSet<Rule> = also.into_iter().chain([rule]).collect();
        let report = explained(&fault);
        if rules(&report) != wanted {
            wrong.push(format!(
                "fault of {rule}, wanted {wanted:?}:\n{}",
                said(&report)
            ));
        }
        let report = explained(&near);
        if !rules(&report).is_empty() {
            wrong.push(format!("near miss of {rule}:\n{}", said(&report)));
        }
    }
    for rule in Rule::ALL.iter().filter(|rule| !seen.contains(rule)) {
        wrong.push(format!("{rule} has no case"));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// The reader learns that a file may have one direction only.
#[test]
fn answers_that_miss_on_a_link_of_one_direction_have_a_note() {
    let note = "a link on which nothing comes back: its other end is silent, or the file has one direction only";
    for case in all() {
        let report = explained(&case.fault);
        let both = matches!(
            case.rule,
            Rule::CallAcknowledge | Rule::CallConnect | Rule::LaneArp
        );
        let one = matches!(case.rule, Rule::SscopBegin | Rule::InAtmArpAnswer);
        if both || one {
            assert_eq!(report.notes.contains_key(note), one, "{}", case.rule);
        }
    }
}

#[test]
fn what_only_looks_like_a_fault_names_nothing() {
    let lists = [
        sscop::clean(),
        calls::clean(),
        ilmi::clean(),
        lane::clean(),
        arp::clean(),
        cells::clean(),
        nhrp::clean(),
        mpoa::clean(),
    ];
    let mut wrong = Vec::new();
    for (name, file) in lists.into_iter().flatten() {
        let report = explained(&file);
        if !rules(&report).is_empty() {
            wrong.push(format!("{name}:\n{}", said(&report)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
