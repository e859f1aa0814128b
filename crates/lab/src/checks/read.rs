//! Checks from a lab file, or from a file of their own.

use super::sentence::Sentence;
use super::{Check, Figure, Level, MOST, Wanted, What};
use crate::diag::{Diagnostics, Span};
use crate::field::{At, Optional as _, Table};
use crate::file::{CheckFile, ColumnName, LabFile};
use crate::results;
use crate::tree::{Tree, Value};
use aerostat_proto::Duration;
use std::collections::BTreeMap;

/// How long a host has for an answer, if a check does not say so.
const WITHIN: Duration = Duration::from_secs(10);
/// Longest time for an answer.
const LONGEST: Duration = Duration::from_secs(3600);

/// Keys that say what a check looks at, each with the other keys that belong to it.
const KINDS: [(&str, &[&str]); 12] = [
    ("reach", &["is"]),
    ("shortcut", &["is"]),
    (
        "flow",
        &[
            "lost",
            "delivered",
            "delay_us",
            "throughput_mbps",
            "phase",
            "tolerance",
        ],
    ),
    ("table", &["where", "column", "is", "tolerance"]),
    ("message", &["is"]),
    ("run", &["in", "exit", "prints"]),
    ("host", &["elan", "on"]),
    ("router", &["elan", "on"]),
    ("link", &[]),
    ("count", &["is"]),
    ("setting", &["is"]),
    ("answer", &["is"]),
];

/// Puts the sections of a file of checks in place of those of a lab. A list is one of checks.
pub(crate) fn replace(lab: &mut Tree, checks: Tree, d: &mut Diagnostics) -> Option<()> {
    let sections = match checks.value {
        Value::Map(sections) => sections,
        Value::List(_) => {
            let (at, text) = (checks.at, "checks".to_owned());
            vec![(crate::tree::Key { at, text }, checks)]
        }
        other => {
            let text = format!("expected 'checks:' and a list, not {}", other.kind());
            d.error(checks.at, text);
            return None;
        }
    };
    if !sections.iter().any(|(key, _)| key.text == "checks") {
        let found = d.error(
            checks_place(&sections),
            "there is no 'checks:' in this file",
        );
        found.hint("checks: [{ reach: urku -> sello within 10s }]");
        return None;
    }
    if let Value::Null = lab.value {
        lab.value = Value::Map(Vec::new());
    }
    // What else may stand there, the reader of the lab says.
    let Value::Map(own) = &mut lab.value else {
        return Some(());
    };
    for (key, value) in sections {
        if key.text == "answers" {
            d.error(key.at, "answers are those of the lab, not of the checks");
            continue;
        }
        own.retain(|(known, _)| known.text != key.text);
        own.push((key, value));
    }
    Some(())
}

fn checks_place(sections: &[(crate::tree::Key, Tree)]) -> Span {
    let first = sections.first();
    first.map_or_else(Span::default, |(key, _)| key.at)
}

/// The answers of a lab.
pub(crate) fn answers(file: &LabFile) -> BTreeMap<String, String> {
    let all = file.answers.iter().flat_map(|table| &table.0);
    all.map(|(name, text)| (name.value.0.clone(), text.value.clone()))
        .collect()
}

/// The checks of a lab; mistakes are told with their places.
pub(crate) fn read(file: &LabFile, d: &mut Diagnostics) -> Vec<Check> {
    let sections = file.checks.as_deref().unwrap_or_default();
    if let Some(first) = sections.get(MOST) {
        let text = format!(
            "a lab has at most {MOST} checks, and here are {}",
            sections.len()
        );
        // The place is all that is too many, so that the rest of the file is looked at without these checks, once.
        let end = sections
            .last()
            .map_or(first.place.end, |last| last.place.end);
        let rest = Span { end, ..first.place };
        d.error(rest, text);
        return Vec::new();
    }
    let read = sections.iter().filter_map(|section| check(section, d));
    read.collect()
}

fn check(section: &CheckFile, d: &mut Diagnostics) -> Option<Check> {
    let kind = kind(section, d)?;
    let level = section.level.value.0;
    let points = match level {
        Level::Required => 1,
        Level::Warning => 0,
    };
    let what = what(kind, section, d)?;
    let text = |text: &Option<At<String>>| text.as_ref().map(|text| text.value.clone());
    Some(Check {
        title: text(&section.title).unwrap_or_else(|| title(kind, section)),
        what,
        stage: text(&section.stage),
        points: section.points.plain().unwrap_or(points),
        level,
        pass: text(&section.pass),
        fail: text(&section.fail),
        tolerance: section.tolerance.as_ref().map(|share| share.value.0),
    })
}

/// Subject of a check; wrong keys beside it are mistakes.
fn kind(section: &CheckFile, d: &mut Diagnostics) -> Option<&'static str> {
    let given = |name: &str| section.given.of(&[name]).next().map(|(_, at)| at);
    let mut kinds = KINDS.iter().filter(|(kind, _)| given(kind).is_some());
    let Some((kind, own)) = kinds.next() else {
        let known = KINDS.map(|(kind, _)| kind);
        d.error(section.place, "this check looks at nothing")
            .suggest("", known)
            .rests_in(section.place, known);
        return None;
    };
    if let Some((other, _)) = kinds.next() {
        let text = format!("'{kind}' and '{other}' are two checks");
        d.error(given(other).unwrap_or(section.place), text)
            .hint("a check looks at one thing: make two of it")
            .rests_in(section.place, [*kind, *other]);
        return None;
    }
    let foreign = KINDS.iter().flat_map(|(_, keys)| *keys);
    for key in foreign
        .filter(|key| !own.contains(key))
        .collect::<std::collections::BTreeSet<_>>()
    {
        if let Some(at) = given(key) {
            let text = format!("'{key}' does not belong to a check of {kind}");
            let found = d.error(at, text);
            match own.is_empty() {
                true => found.hint("leave it out"),
                false => found.hint(format!("{kind} has {}", own.join(", "))),
            };
            return None;
        }
    }
    Some(kind)
}

/// The name of a check without a title.
fn title(kind: &str, section: &CheckFile) -> String {
    let is = section.is.as_ref().map(|is| format!(" {}", is.value));
    let is = is.unwrap_or_default();
    let text = |text: &Option<At<String>>| {
        let text = text.as_ref();
        text.map_or_else(String::new, |text| text.value.clone())
    };
    match kind {
        "reach" => format!("reach {}", text(&section.reach)),
        "shortcut" => format!("shortcut {}", text(&section.shortcut)),
        "flow" => format!("flow {}", text(&section.flow)),
        "table" => format!("table {}", text(&section.table)),
        "message" => format!("message {}", text(&section.message)),
        "run" => format!("run {}", text(&section.run)),
        "host" => format!("host {}", text(&section.host)),
        "router" => format!("router {}", text(&section.router)),
        "link" => format!("link {}", text(&section.link)),
        "setting" => format!("setting {}", text(&section.setting)),
        "answer" => format!("answer {}", text(&section.answer)),
        _ => {
            let part = section.count.as_ref();
            let part = part.map(|part| crate::file::PartText::word(&part.value.0));
            format!("count {}{is}", part.unwrap_or_default())
        }
    }
}

/// Reads a sentence, and reports what is wrong with it.
fn told<T>(at: Span, found: Result<T, String>, d: &mut Diagnostics) -> Option<T> {
    found.map_err(|why| d.error(at, why)).ok()
}

/// How many are wanted: one or more, unless the check says so.
fn how_many(section: &CheckFile, d: &mut Diagnostics) -> Option<Wanted> {
    let Some(is) = &section.is else {
        return Some(Wanted::at_least(1));
    };
    if !is.value.fits_counts() {
        d.error(is.at, format!("'{}' is no number of things", is.value))
            .hint("0, 3, >=2 or 1..5");
        return None;
    }
    Some(is.value.clone())
}

/// The condition that this kind of check needs.
fn needed(section: &CheckFile, d: &mut Diagnostics) -> Option<Wanted> {
    if section.is.is_none() {
        d.error(section.place, "'is' is missing here")
            .hint("is: 3, is: <100 or is: open")
            .rests_in(section.place, ["is"]);
    }
    section.is.as_ref().map(|is| is.value.clone())
}

fn what(kind: &str, section: &CheckFile, d: &mut Diagnostics) -> Option<What> {
    match kind {
        "reach" => {
            let At { value, at } = section.reach.as_ref()?;
            let said = told(*at, Sentence::of(value, &["within"]), d)?;
            let ends = told(*at, said.ends("urku -> sello within 10s"), d)?;
            let within = told(*at, said.time("within"), d)?.unwrap_or(WITHIN);
            if within > LONGEST || within.is_zero() {
                d.error(*at, "a host has more than 0s and at most 1h for an answer");
                return None;
            }
            let is = how_many(section, d)?;
            Some(What::Reach { ends, within, is })
        }
        "shortcut" => {
            let At { value, at } = section.shortcut.as_ref()?;
            let said = told(*at, Sentence::of(value, &["by"]), d)?;
            let ends = told(*at, said.ends("urku -> sello by 7s"), d)?;
            let by = told(*at, said.time("by"), d)?;
            let is = how_many(section, d)?;
            Some(What::Shortcut { ends, by, is })
        }
        "flow" => flow(section, d),
        "table" => table(section, d),
        "message" => message(section, d),
        "run" => {
            let Some(node) = &section.r#in else {
                d.error(section.place, "'in' is missing here")
                    .hint("in: urku, the host of the command")
                    .rests_in(section.place, ["in"]);
                return None;
            };
            Some(What::Run {
                node: node.value.clone(),
                command: section.run.as_ref()?.value.clone(),
                exit: section.exit.plain().unwrap_or(0),
                prints: section.prints.plain(),
            })
        }
        "host" | "router" => {
            let name = section.host.as_ref().or(section.router.as_ref())?;
            Some(What::Station {
                router: kind == "router",
                name: name.value.clone(),
                elan: section.elan.plain(),
                on: section.on.plain(),
            })
        }
        "link" => {
            let At { value, at } = section.link.as_ref()?;
            let said = told(*at, Sentence::of(value, &[]), d)?;
            Some(What::Link(told(*at, said.ends("s1 -> s2"), d)?))
        }
        "count" => {
            let is = how_many(section, d)?;
            Some(What::Count(section.count.as_ref()?.value.0, is))
        }
        "setting" => {
            let path = section.setting.as_ref()?.value.clone();
            Some(What::Setting(path, needed(section, d)?))
        }
        _ => {
            let name = section.answer.as_ref()?.value.clone();
            Some(What::Answer(name, needed(section, d)?))
        }
    }
}

/// A condition that is for numbers.
fn of_number(is: &At<Wanted>, d: &mut Diagnostics) -> Option<Wanted> {
    if !is.value.is_number() {
        let text = format!("'{}': expected a number", is.value);
        d.error(is.at, text)
            .hint("3, <100, >=2, 10..20 or 35.3 +- 2%");
        return None;
    }
    Some(is.value.clone())
}

fn flow(section: &CheckFile, d: &mut Diagnostics) -> Option<What> {
    let mut figures = Vec::new();
    let single = [
        (Figure::Lost, &section.lost),
        (Figure::Delivered, &section.delivered),
        (Figure::ThroughputMbps, &section.throughput_mbps),
    ];
    for (figure, is) in single {
        if let Some(is) = is {
            figures.push((figure, of_number(is, d)?));
        }
    }
    for (delay, is) in section.delay_us.iter().flat_map(|table| &table.0) {
        figures.push((Figure::DelayUs(delay.value.0), of_number(is, d)?));
    }
    let name = section.flow.as_ref()?;
    if figures.is_empty() {
        d.error(name.at, "this check says nothing about the flow")
            .hint("lost: 0, delivered: >0, delay_us: { p99: <100 } or throughput_mbps: >30")
            .rests_in(
                section.place,
                ["lost", "delivered", "delay_us", "throughput_mbps"],
            );
        return None;
    }
    Some(What::Flow {
        name: name.value.clone(),
        phase: section.phase.as_ref().map(|phase| phase.value.0),
        figures,
    })
}

fn table(section: &CheckFile, d: &mut Diagnostics) -> Option<What> {
    let At { value, at } = section.table.as_ref()?;
    let Some(info) = results::find(value) else {
        let names: Vec<String> = results::tables().map(|table| table.flat_name()).collect();
        let found = d.error(*at, format!("there is no table '{value}' in the results"));
        found.suggest(value, names.iter().map(String::as_str));
        if found.hint.is_none() {
            found.hint("docs/results.md has all of them");
        }
        return None;
    };
    let columns = results::columns(info);
    let mut known = |name: &str, at: Span| {
        let names = || columns.iter().map(|column| column.name.as_str());
        if !names().any(|column| column == name) {
            let text = format!("table {value} has no column '{name}'");
            let found = d.error(at, text);
            found.suggest(name, names());
            if found.hint.is_none() {
                found.hint("docs/results.md has the columns of all tables");
            }
            return None;
        }
        Some(name.to_owned())
    };
    let mut conditions = Vec::new();
    let given: Option<&Table<ColumnName, At<Wanted>>> = section.r#where.as_ref();
    for (name, is) in given.iter().flat_map(|table| &table.0) {
        conditions.push((known(&name.value.0, name.at)?, is.value.clone()));
    }
    let column = match &section.column {
        Some(column) => Some(known(&column.value, column.at)?),
        None => None,
    };
    let is = match column {
        Some(_) => needed(section, d)?,
        None => how_many(section, d)?,
    };
    Some(What::Table {
        info,
        conditions,
        column,
        is,
    })
}

fn message(section: &CheckFile, d: &mut Diagnostics) -> Option<What> {
    let At { value, at } = section.message.as_ref()?;
    let words = ["from", "to", "after", "before"];
    let said = told(*at, Sentence::of(value, &words), d)?;
    if said.head.is_empty() {
        d.error(*at, "there are no words of a message here")
            .hint("message: Resolution Request from urku before 7s");
        return None;
    }
    let name = |word: &str| said.get(word).map(str::to_owned);
    Some(What::Message {
        words: said.head.to_lowercase(),
        from: name("from"),
        to: name("to"),
        after: told(*at, said.time("after"), d)?,
        before: told(*at, said.time("before"), d)?,
        is: how_many(section, d)?,
    })
}
