//! Rules of a row in words, and whether a value keeps all of them.

use super::catalogue::Row;
use crate::exit::Failure;

/// Facts that rules look at.
pub(super) struct Facts<'a, Other> {
    /// The median of the seeds.
    pub(super) found: f64,
    /// The values of all seeds.
    pub(super) values: &'a [f64],
    /// Printed value of the paper.
    pub(super) paper: Option<f64>,
    /// The median of the row that a reference names.
    pub(super) other: Other,
}

/// Judgement of the rules of a row about its value.
#[derive(Debug)]
pub(super) struct Judged {
    /// All rules in words.
    pub(super) words: String,
    /// Rules that do not hold.
    pub(super) missed: String,
    /// True if all rules hold; `None` if there is no rule.
    pub(super) holds: Option<bool>,
}

/// Judges a row by its rules.
///
/// # Errors
///
/// A value with which a rule compares is missing.
pub(super) fn rule(
    row: &Row,
    facts: &Facts<'_, impl Fn(&str) -> Option<f64>>,
) -> Result<Judged, Failure> {
    let mut all = distances(row, facts)?;
    bounds(row, facts, &mut all);
    orders(row, facts, &mut all)?;
    let joined = |wanted: &dyn Fn(bool) -> bool| {
        let found = all.iter().filter(|(_, holds)| wanted(*holds));
        let words: Vec<&str> = found.map(|(words, _)| words.as_str()).collect();
        words.join("; ")
    };
    Ok(Judged {
        words: joined(&|_| true),
        missed: joined(&|holds| !holds),
        holds: (!all.is_empty()).then_some(all.iter().all(|(_, holds)| *holds)),
    })
}

/// A rule in words, and whether it holds.
type Told = (String, bool);

fn needed(row: &Row, value: Option<f64>, what: &str) -> Result<f64, Failure> {
    value.ok_or_else(|| {
        Failure::usage(format!("{}: {what} is missing", row.row))
            .hint("rows with 'within' or 'exact' need a printed value, and a reference a row")
    })
}

/// Rules about the distance from one value: that of the paper, of a closed form or of another row.
fn distances(
    row: &Row,
    facts: &Facts<'_, impl Fn(&str) -> Option<f64>>,
) -> Result<Vec<Told>, Failure> {
    let found = facts.found;
    let (aim, what) = match (row.equals, &row.like) {
        (Some(equals), _) => (Some(equals), format!(" of {equals}")),
        (None, Some(like)) => ((facts.other)(like), format!(" of {like}")),
        (None, None) => (facts.paper, String::new()),
    };
    let near = |aim: f64, within: f64| (found - aim).abs() <= aim.abs() * within / 100.0;
    let mut all = Vec::new();
    if let Some(within) = row.within {
        let aim = needed(row, aim, "the value to compare with")?;
        all.push((format!("within {within} %{what}"), near(aim, within)));
    } else if let Some(equals) = row.equals {
        all.push((format!("equals {equals}"), near(equals, 1e-7)));
    } else if row.exact {
        let aim = needed(row, aim, "the paper's value")?;
        all.push(("exact".into(), near(aim, 1e-7)));
    }
    if let Some(factor) = row.factor {
        let aim = needed(row, aim, "the value to compare with")?;
        let close = found >= aim / factor && found <= aim * factor;
        let words = format!("within a factor of {factor}{what}");
        if row.in_range {
            let inside = facts.values.iter().any(|value| *value <= aim)
                && facts.values.iter().any(|value| *value >= aim);
            let words = format!("{words}, or the paper inside the range of seeds");
            all.push((words, close || inside));
        } else {
            all.push((words, close));
        }
    }
    Ok(all)
}

/// Rules with bounds that the entry itself gives.
fn bounds<Other>(row: &Row, facts: &Facts<'_, Other>, all: &mut Vec<Told>) {
    let found = facts.found;
    if let Some(below) = row.below {
        all.push((format!("below {below}"), found < below));
    }
    if let Some(above) = row.above {
        all.push((format!("above {above}"), found > above));
    }
    if let Some(above) = row.some_above {
        let holds = facts.values.iter().any(|value| *value > above);
        all.push((format!("above {above} in some seed"), holds));
    }
    if let Some([least, most]) = row.between {
        let holds = least <= found && found <= most;
        all.push((format!("{least} to {most}"), holds));
    }
}

/// Rules about the order of rows.
fn orders(
    row: &Row,
    facts: &Facts<'_, impl Fn(&str) -> Option<f64>>,
    all: &mut Vec<Told>,
) -> Result<(), Failure> {
    let times = row.times.unwrap_or(1.0);
    let of = row
        .times
        .map_or_else(String::new, |times| format!("{times} of "));
    let orders = [(&row.above_row, "more"), (&row.below_row, "less")];
    for (names, word) in orders {
        if names.is_empty() {
            continue;
        }
        let mut holds = true;
        for name in names.iter() {
            let aim = times * needed(row, (facts.other)(name), name)?;
            holds &= match word {
                "less" => facts.found < aim,
                _ => facts.found > aim,
            };
        }
        all.push((format!("{word} than {of}{}", listed(names)), holds));
    }
    Ok(())
}

/// How far a row is beyond another one with which an order rule compares it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Effect {
    /// In the model: distance from the value that it must exceed, or stay below, per cent of that value.
    pub(super) model: f64,
    /// The same between the printed numbers of both rows.
    pub(super) printed: Option<f64>,
}

/// The smallest effect in the model, of all rows with which an order rule compares `row`; `None` without such a rule.
/// `model` and `printed` have the values of rows that a reference names, and of `row` itself.
pub(super) fn effect(
    row: &Row,
    found: f64,
    model: impl Fn(&str) -> Option<f64>,
    paper: Option<f64>,
    printed: impl Fn(&str) -> Option<f64>,
) -> Option<Effect> {
    let beyond = |value: f64, other: f64| {
        let aim = row.times.unwrap_or(1.0) * other;
        Some((value - aim) / aim * 100.0).filter(|share| share.is_finite())
    };
    let others = row.above_row.iter().chain(&row.below_row);
    let effects = others.filter_map(|name| {
        let model = beyond(found, model(name)?)?;
        let printed = paper.zip(printed(name));
        let printed = printed.and_then(|(paper, other)| beyond(paper, other));
        Some(Effect { model, printed })
    });
    effects.min_by(|a, b| a.model.abs().total_cmp(&b.model.abs()))
}

/// Names of rows; an entry that has several of them stands once.
fn listed(names: &[String]) -> String {
    let mut text = String::new();
    let mut last = "";
    for name in names {
        let (entry, row) = name.split_once(": ").unwrap_or(("", name));
        if !text.is_empty() {
            text += ", ";
        }
        text += if entry == last { row } else { name };
        last = entry;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cmd::reproduce::catalogue;

    /// The rules of a row as a claim: calibrations, then what must hold.
    fn claim(row: &Row) -> String {
        let facts = Facts {
            found: 1.0,
            values: &[1.0],
            paper: Some(1.0),
            other: |_: &str| Some(1.0),
        };
        let words = rule(row, &facts).unwrap().words;
        let calibrates = row.calibrates.as_ref();
        let calibrates = calibrates.map(|name| format!("calibrates {name}"));
        let words = (!words.is_empty()).then_some(words);
        let all: Vec<String> = calibrates.into_iter().chain(words).collect();
        format!("{:?}: {}", row.tier, all.join("; "))
    }

    #[test]
    fn entries_have_the_rules_that_were_claimed_before_their_first_run() {
        let claims = catalogue::Catalogue::own().claims();
        assert!(claims.len() > 5, "{claims:?}");
        for entry in catalogue::Catalogue::own().entries {
            let Some(claimed) = claims.get(&entry.name) else {
                continue;
            };
            let ruled = entry.rows.iter().map(|row| (row.row.clone(), claim(row)));
            let ruled = ruled.filter(|(_, claim)| !claim.ends_with(": "));
            let ruled: std::collections::BTreeMap<String, String> = ruled.collect();
            assert_eq!(&ruled, claimed, "{}", entry.name);
        }
    }

    #[test]
    fn rules_hold_or_not_together() {
        let row = |text: &str| -> Row {
            serde_saphyr::from_str(&format!("{{ row: r, tier: D, {text} }}")).unwrap()
        };
        let check = |text: &str, found: f64, values: &[f64]| {
            let other = |name: &str| name.strip_prefix("e/1: ").unwrap_or(name).parse().ok();
            let facts = Facts {
                found,
                values,
                paper: Some(10.0),
                other,
            };
            rule(&row(text), &facts).unwrap().holds
        };
        assert_eq!(check("within: 5", 10.4, &[]), Some(true));
        assert_eq!(check("within: 5, below: 10.2", 10.4, &[]), Some(false));
        assert_eq!(check("factor: 2", 5.0, &[]), Some(true));
        assert_eq!(check("factor: 2", 20.1, &[]), Some(false));
        assert_eq!(
            check("factor: 2, in_range: true", 30.0, &[9.0, 30.0]),
            Some(true)
        );
        assert_eq!(
            check("factor: 2, in_range: true", 30.0, &[21.0, 30.0]),
            Some(false)
        );
        assert_eq!(check("some_above: 0", 0.0, &[0.0, 1.0]), Some(true));
        assert_eq!(check("some_above: 0", 0.0, &[0.0]), Some(false));
        assert_eq!(
            check("above_row: [\"3\", \"e/1: 5\"]", 4.0, &[]),
            Some(false)
        );
        assert_eq!(check("above_row: \"3\"", 4.0, &[]), Some(true));
        assert_eq!(
            check("below_row: [\"16\", \"20\"], times: 0.25", 4.1, &[]),
            Some(false)
        );
        assert_eq!(
            check("below_row: [\"17\", \"20\"], times: 0.25", 4.1, &[]),
            Some(true)
        );
        assert_eq!(check("set: {}", 4.1, &[]), None);
    }

    #[test]
    fn the_smallest_effect_of_an_order_rule_is_told_with_that_of_the_paper() {
        let row = |text: &str| -> Row {
            serde_saphyr::from_str(&format!("{{ row: r, tier: D, {text} }}")).unwrap()
        };
        let model = |name: &str| name.parse().ok();
        let printed = |name: &str| (name == "8").then_some(20.0);
        let of = |text: &str| effect(&row(text), 10.0, model, Some(30.0), printed);
        let near = Effect {
            model: 25.0,
            printed: Some(50.0),
        };
        assert_eq!(of("above_row: [\"4\", \"8\"]"), Some(near));
        let half = Effect {
            model: -50.0,
            printed: None,
        };
        assert_eq!(of("below_row: \"10\", times: 2"), Some(half));
        assert_eq!(of("within: 5"), None);
        assert_eq!(of("above_row: \"0\""), None);
    }
}
