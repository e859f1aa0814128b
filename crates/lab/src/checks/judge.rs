//! Verdicts about a lab.

use super::{Check, Delay, Figure, Level, Part, Phase, Wanted, What};
use crate::diag::nearest;
use crate::file::{DelayText, PhaseText};
use crate::model::{Host, Lab, Node, NodeKind, Router};
use crate::results;
use aerostat_node::inspect::TableInfo;
use aerostat_wire::counted;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Knowledge of a driver about a lab.
pub struct Evidence<'a> {
    /// The lab.
    pub lab: &'a Lab,
    /// Answers of the lab file by name.
    pub answers: &'a BTreeMap<String, String>,
    /// True if the lab runs in real time.
    pub real: bool,
    /// The rows of a table, with the columns of CSV; an error is a sentence.
    pub rows: &'a dyn Fn(&'static TableInfo) -> Result<Vec<Map<String, Value>>, String>,
    /// The settings, as in the results.
    pub settings: &'a Value,
    /// Observations, by the number of the check: see [`What::Reach`], [`What::Shortcut`], [`What::Message`] and
    /// [`What::Run`].
    pub seen: &'a BTreeMap<usize, Seen>,
}

/// Observation for one check.
#[derive(Clone, Debug)]
pub enum Seen {
    /// So many answers, shortcuts or messages.
    Count(u64),
    /// A command ended.
    Ran {
        /// Its exit code, or what ended it: `a signal`, `60 s`, `1 MiB of output`.
        exit: Result<u64, String>,
        /// Its output.
        output: String,
    },
    /// It cannot be known, and why.
    Unknown(String),
}

aerostat_wire::named! {
    /// The result of one check.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Verdict {
        /// It is as it should be.
        Passed = "pass",
        /// It is not.
        Failed = "fail",
        /// It is not, and that is a warning.
        Warned = "warning",
        /// It cannot be judged here.
        Unjudged = "unjudged",
        /// A check of an earlier stage has failed.
        Skipped = "skipped",
    }
}

/// A check with its verdict.
#[derive(Clone, Debug)]
pub struct Judged<'a> {
    /// The check.
    pub check: &'a Check,
    /// The verdict.
    pub verdict: Verdict,
    /// Points that it gives.
    pub points: u64,
    /// Values found and wanted, or why it is not judged; may give the answer away.
    pub details: String,
    /// Words for the student: those of the check, or else the details.
    pub text: String,
}

/// Verdict of one look: true if something is as it should be, with what was found and wanted; or why that is not known.
type Found = Result<(bool, String), String>;

/// The verdicts about all checks, in their order.
#[must_use]
pub fn judge<'a>(checks: &'a [Check], evidence: &Evidence<'_>) -> Vec<Judged<'a>> {
    let mut stages: Vec<&str> = Vec::new();
    for stage in checks.iter().filter_map(|check| check.stage.as_deref()) {
        if !stages.contains(&stage) {
            stages.push(stage);
        }
    }
    let mut all: Vec<Judged<'a>> = (checks.iter().enumerate())
        .map(|(number, check)| one(number, check, evidence))
        .collect();
    let place = |judged: &Judged<'_>| {
        let stage = judged.check.stage.as_deref()?;
        stages.iter().position(|known| *known == stage)
    };
    let failed = all
        .iter()
        .filter(|judged| judged.verdict == Verdict::Failed);
    let Some(last) = failed.filter_map(place).min() else {
        return all;
    };
    for judged in &mut all {
        if place(judged).is_some_and(|stage| stage > last) {
            judged.verdict = Verdict::Skipped;
            judged.points = 0;
            judged.details = format!("not judged: stage '{}' has failed", stages[last]);
            judged.text.clone_from(&judged.details);
        }
    }
    all
}

fn one<'a>(number: usize, check: &'a Check, evidence: &Evidence<'_>) -> Judged<'a> {
    let found = found(number, check, evidence);
    let soft = evidence.real && check.tolerance.is_none() && check.is_timing();
    let (verdict, mut details) = match found {
        Ok((true, details)) => (Verdict::Passed, details),
        Ok((false, details)) if soft || check.level == Level::Warning => (Verdict::Warned, details),
        Ok((false, details)) => (Verdict::Failed, details),
        Err(why) => (Verdict::Unjudged, why),
    };
    if soft && verdict == Verdict::Warned {
        details.push_str("; a warning, because times of a running lab need a 'tolerance:'");
    }
    let text = match verdict {
        Verdict::Passed => check.pass.clone().unwrap_or_default(),
        Verdict::Failed | Verdict::Warned => check.fail.clone().unwrap_or_else(|| details.clone()),
        Verdict::Unjudged | Verdict::Skipped => details.clone(),
    };
    Judged {
        check,
        verdict,
        points: if verdict == Verdict::Passed {
            check.points
        } else {
            0
        },
        details,
        text,
    }
}

fn found(number: usize, check: &Check, evidence: &Evidence<'_>) -> Found {
    let off = check
        .tolerance
        .filter(|_| evidence.real)
        .unwrap_or_default();
    match &check.what {
        What::Reach { is, ends, .. } | What::Shortcut { is, ends, .. } => {
            if let Some(missing) = ends.iter().find_map(|end| no_node(evidence.lab, end)) {
                return Ok((false, missing));
            }
            let what = match check.what {
                What::Reach { .. } => "answers",
                _ => "shortcuts",
            };
            seen_count(number, evidence, what, is)
        }
        What::Message { is, from, to, .. } => {
            let mut ends = from.iter().chain(to);
            if let Some(missing) = ends.find_map(|end| no_node(evidence.lab, end)) {
                return Ok((false, missing));
            }
            seen_count(number, evidence, "messages", is)
        }
        What::Flow {
            name,
            phase,
            figures,
        } => flow(name, *phase, figures, evidence, off),
        What::Table {
            info,
            conditions,
            column,
            is,
        } => {
            let rows = (evidence.rows)(info)?;
            Ok(table(&rows, conditions, (column.as_deref(), is), off))
        }
        What::Run {
            node, exit, prints, ..
        } => match no_node(evidence.lab, node) {
            Some(missing) => Ok((false, missing)),
            None => ran(number, node, *exit, prints.as_deref(), evidence),
        },
        What::Station {
            router,
            name,
            elan,
            on,
        } => Ok(station(
            evidence.lab,
            (*router, name),
            elan.as_deref(),
            on.as_deref(),
        )),
        What::Link(ends) => Ok(link(evidence.lab, ends)),
        What::Count(part, is) => {
            let count = part.count(evidence.lab);
            let text = format!("found {count}, wanted {is}");
            Ok((is.fits(count as f64, 0.0), text))
        }
        What::Setting(path, is) => Ok(setting(evidence.settings, path, is)),
        What::Answer(name, is) => Ok(match evidence.answers.get(name) {
            None => (false, format!("'answers:' of the lab file has no '{name}'")),
            Some(answer) => {
                let fits = is.fits_value(&answer.as_str().into(), 0.0);
                (fits, format!("answered {answer}, wanted {is}"))
            }
        }),
    }
}

/// Says that the lab has no node, or station behind a bridge, of this name.
fn no_node(lab: &Lab, name: &str) -> Option<String> {
    let names = || {
        let stations = lab.hosts().flat_map(|(_, _, host)| &host.bridge);
        let nodes = lab.nodes.iter().map(|node| node.name.as_str());
        nodes.chain(stations.map(|station| station.name.as_str()))
    };
    if names().any(|known| known == name) {
        return None;
    }
    let known: Vec<&str> = names().collect();
    let hint = nearest(name, &known).map_or_else(String::new, |near| format!(" ('{near}'?)"));
    Some(format!("the lab has no '{name}'{hint}"))
}

fn seen_count(number: usize, evidence: &Evidence<'_>, what: &str, is: &Wanted) -> Found {
    match evidence.seen.get(&number) {
        Some(Seen::Count(count)) => {
            let text = format!("found {count} {what}, wanted {is}");
            Ok((is.fits(*count as f64, 0.0), text))
        }
        Some(Seen::Unknown(why)) => Err(why.clone()),
        Some(Seen::Ran { .. }) | None => Err(format!("nothing is known about {what}")),
    }
}

fn ran(
    number: usize,
    node: &str,
    exit: u64,
    prints: Option<&str>,
    evidence: &Evidence<'_>,
) -> Found {
    match evidence.seen.get(&number) {
        Some(Seen::Ran {
            exit: found,
            output,
        }) => {
            let said = prints.is_none_or(|words| output.contains(words));
            let ended = match found {
                Ok(code) => format!("exit code {code}"),
                Err(by) => format!("ended by {by}"),
            };
            let words = match said {
                true => String::new(),
                false => format!(", and it did not print '{}'", prints.unwrap_or_default()),
            };
            let text = format!("{ended}, wanted exit code {exit}{words}");
            Ok((*found == Ok(exit) && said, text))
        }
        Some(Seen::Unknown(why)) => Err(why.clone()),
        Some(Seen::Count(_)) | None => Err(format!(
            "a command in {node} cannot be judged in virtual time"
        )),
    }
}

/// The row has these values.
fn fits(row: &Map<String, Value>, conditions: &[(String, Wanted)], off: f64) -> bool {
    let value = |name: &String| row.get(name).unwrap_or(&Value::Null);
    let mut conditions = conditions.iter();
    conditions.all(|(name, is)| is.fits_value(value(name), off))
}

fn table(
    rows: &[Map<String, Value>],
    conditions: &[(String, Wanted)],
    (column, is): (Option<&str>, &Wanted),
    off: f64,
) -> (bool, String) {
    let rows: Vec<_> = rows
        .iter()
        .filter(|row| fits(row, conditions, off))
        .collect();
    let Some(column) = column else {
        let text = format!("found {}, wanted {is}", counted(rows.len(), "row", "rows"));
        return (is.fits(rows.len() as f64, off), text);
    };
    let value = |row: &&Map<String, Value>| row.get(column).cloned().unwrap_or_default();
    let values: Vec<Value> = rows.iter().map(value).collect();
    let wrong = values.iter().find(|value| !is.fits_value(value, off));
    match (wrong, values.first()) {
        (_, None) => (false, "found no such row".to_owned()),
        (Some(value), _) => (
            false,
            format!("found {column} {}, wanted {is}", plain(value)),
        ),
        (None, Some(value)) => (
            true,
            format!("found {column} {}, wanted {is}", plain(value)),
        ),
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "nothing".to_owned(),
        other => other.to_string(),
    }
}

impl Figure {
    fn name(self) -> String {
        match self {
            Self::Lost => "lost".to_owned(),
            Self::Delivered => "delivered".to_owned(),
            Self::ThroughputMbps => "throughput_mbps".to_owned(),
            Self::DelayUs(delay) => format!("delay_us {}", DelayText::word(&delay)),
        }
    }

    /// The figure of all these phases of a flow; `None` if nothing was delivered.
    fn of(self, rows: &[Map<String, Value>]) -> Option<f64> {
        let all = |column: &str| -> Vec<f64> {
            let values = rows.iter().filter_map(|row| row.get(column)?.as_f64());
            values.collect()
        };
        let sum = |column: &str| all(column).iter().sum::<f64>();
        match self {
            // A flow that sent nothing has not kept anything, either.
            Self::Lost => (sum("sent") > 0.0).then(|| sum("lost")),
            Self::Delivered => Some(sum("delivered")),
            Self::ThroughputMbps => match rows {
                [row] => row.get("throughput_mbps")?.as_f64(),
                _ => {
                    let seconds = sum("duration_s");
                    (seconds > 0.0).then(|| sum("delivered_octets") * 8e-6 / seconds)
                }
            },
            Self::DelayUs(delay) => {
                let column = format!("delay_us_{}", DelayText::word(&delay));
                match delay {
                    Delay::Min => all(&column).into_iter().reduce(f64::min),
                    Delay::Mean => {
                        let weight = |row: &Map<String, Value>| {
                            let mean = row.get(&column)?.as_f64()?;
                            Some(mean * row.get("delivered")?.as_f64()?)
                        };
                        let delivered = sum("delivered");
                        let all = rows.iter().filter_map(weight).sum::<f64>();
                        (delivered > 0.0).then(|| all / delivered)
                    }
                    _ => all(&column).into_iter().reduce(f64::max),
                }
            }
        }
    }
}

fn flow(
    name: &str,
    phase: Option<Phase>,
    figures: &[(Figure, Wanted)],
    evidence: &Evidence<'_>,
    off: f64,
) -> Found {
    let Some(info) = results::find("flows") else {
        return Err("there is no table of flows".to_owned());
    };
    let mut rows = (evidence.rows)(info)?;
    rows.retain(|row| row.get("name").and_then(Value::as_str) == Some(name));
    if rows.is_empty() {
        // The checks may bring traffic along that the running lab was not started with.
        return match evidence.real && evidence.lab.traffic.iter().any(|flow| flow.name == name) {
            true => Err(format!("the running lab has no flow '{name}'")),
            false => Ok((false, format!("the lab has no flow '{name}'"))),
        };
    }
    if let Some(phase) = phase {
        rows.retain(|row| {
            row.get("phase").and_then(Value::as_str) == Some(PhaseText::word(&phase))
        });
        if rows.is_empty() {
            return Ok((
                false,
                format!("no packet of the flow was {}", PhaseText::word(&phase)),
            ));
        }
    }
    let sent = |row: &Map<String, Value>| row.get("sent").and_then(Value::as_u64) > Some(0);
    if !rows.iter().any(sent) {
        let all = figures.iter().all(|(figure, is)| {
            let value = figure.of(&rows);
            value.is_some_and(|value| is.fits(value, off))
        });
        return Ok((all, "the flow has sent nothing".to_owned()));
    }
    let (mut good, mut texts) = (true, Vec::new());
    for (figure, is) in figures {
        let value = figure.of(&rows);
        good &= value.is_some_and(|value| is.fits(value, off));
        let value = value.map_or_else(
            || "nothing".to_owned(),
            |value| results::rounded(value, 3).to_string(),
        );
        texts.push(format!("found {} {value}, wanted {is}", figure.name()));
    }
    Ok((good, texts.join("; ")))
}

fn station(
    lab: &Lab,
    (router, name): (bool, &str),
    elan: Option<&str>,
    on: Option<&str>,
) -> (bool, String) {
    let what = if router { "router" } else { "host" };
    let is_one = |node: &&Node| match &node.kind {
        NodeKind::Host(Host { .. }) => !router,
        NodeKind::Router(Router { .. }) => router,
        _ => false,
    };
    let mut nodes = lab.nodes.iter().filter(is_one);
    let Some(node) = nodes.find(|node| node.name == name) else {
        return (false, format!("the lab has no {what} '{name}'"));
    };
    if let Some(wanted) = elan
        && node
            .lecs()
            .iter()
            .all(|lec| lab.elan(lec.elan).name != wanted)
    {
        return (false, format!("{name} is not on '{wanted}'"));
    }
    let switch = node.attachment().map(|at| &*lab.node(at.switch).name);
    match on {
        Some(wanted) if switch != Some(wanted) => {
            (false, format!("{name} is not at the switch '{wanted}'"))
        }
        _ => (true, format!("{name} is there")),
    }
}

fn link(lab: &Lab, ends: &[String; 2]) -> (bool, String) {
    let [one, other] = ends;
    let joined = lab.links.iter().any(|link| {
        let names = link.ends.map(|end| &lab.node(end.node).name);
        names == [one, other] || names == [other, one]
    });
    let what = if joined {
        "there is a link"
    } else {
        "there is no link"
    };
    (joined, format!("{what} between {one} and {other}"))
}

fn setting(settings: &Value, path: &str, is: &Wanted) -> (bool, String) {
    let value = path
        .split('.')
        .try_fold(settings, |value, key| match value {
            Value::Array(list) => list.get(key.parse::<usize>().ok()?),
            other => other.get(key),
        });
    match value {
        None => (false, format!("the settings have no {path}")),
        Some(value) => {
            let text = format!("found {}, wanted {is}", plain(value));
            (is.fits_value(value, 0.0), text)
        }
    }
}

impl Part {
    fn count(self, lab: &Lab) -> usize {
        match self {
            Self::Switches => lab.switches().count(),
            Self::Hosts => lab.hosts().count(),
            Self::Routers => lab.routers().count(),
            Self::Links => lab.links.len(),
            Self::Elans => lab.elans.len(),
            Self::Pvcs => lab.pvcs.len(),
            Self::Traffic => lab.traffic.len(),
            Self::Faults => lab.faults.len(),
        }
    }
}
