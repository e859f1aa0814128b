//! Tables about the weight of rows as evidence.

use super::{error, named as entry, number, percent, printed, table};
use crate::cmd::reproduce::catalogue::{Kind, Tier};
use crate::cmd::reproduce::page::ruled;
use crate::cmd::reproduce::{Results, Score};
use aerostat_wire::counted;

/// Rows that are no evidence, with the reason.
pub(super) fn weak(results: &Results<'_>) -> String {
    let mine = results.scores.iter().filter_map(|score| {
        let fitted = score
            .row
            .calibrates
            .iter()
            .map(|name| format!("fits {name}"));
        let chosen = score
            .row
            .chosen
            .iter()
            .map(|name| format!("{name} was chosen for it"));
        let why = match (score.kind, &score.row.circular) {
            (Kind::Circular, Some(why)) => why.clone(),
            (Kind::Fitted, _) => fitted.chain(chosen).collect::<Vec<_>>().join("; "),
            _ => return None,
        };
        let kind = score.kind.name().to_owned();
        Some(vec![entry(score), score.row.row.clone(), kind, why])
    });
    table(&["entry", "row", "kind", "why"], &mine.collect::<Vec<_>>())
}

/// Distance of a baseline from the number to compare with.
fn far(value: Option<f64>, score: &Score<'_>) -> String {
    let share = value.zip(score.paper).map(|(value, paper)| value / paper);
    share.map_or_else(String::new, |share| percent((share - 1.0) * 100.0))
}

/// Rows beside the baseline that they name.
pub(super) fn named(results: &Results<'_>) -> String {
    let mine = results
        .scores
        .iter()
        .filter(|score| score.baseline.is_some());
    let lines = mine.map(|score| {
        vec![
            entry(score),
            score.row.row.clone(),
            score.kind.name().to_owned(),
            printed(score),
            error(score),
            far(score.baseline, score),
            far(score.above, score),
            score.row.baseline.join(", "),
        ]
    });
    let heads = [
        "entry",
        "row",
        "kind",
        "#paper",
        "#model",
        "#baseline",
        "#row above",
        "baseline is",
    ];
    table(&heads, &lines.collect::<Vec<_>>())
}

/// Rows with an order rule, with the sizes of their effects.
pub(super) fn effects(results: &Results<'_>) -> String {
    let mine = results.scores.iter().filter(|score| score.effect.is_some());
    let lines = mine.map(|score| {
        let result = score.result.to_owned();
        vec![entry(score), score.row.row.clone(), ruled(score), result]
    });
    table(
        &["entry", "row", "rule", "result"],
        &lines.collect::<Vec<_>>(),
    )
}

/// Rows in units of the ± of their printed numbers, and how many lie within it.
pub(super) fn precision(results: &Results<'_>) -> String {
    let mine = results
        .scores
        .iter()
        .filter(|score| score.row.tier != Tier::E);
    let mine: Vec<_> = mine
        .filter_map(|score| Some((score, score.in_plus_minus()?)))
        .collect();
    let lines = mine.iter().map(|(score, far)| {
        let plus_minus = score.plus_minus.map_or_else(String::new, number);
        vec![
            entry(score),
            score.row.row.clone(),
            score.kind.name().to_owned(),
            score.result.to_owned(),
            printed(score),
            plus_minus,
            error(score),
            format!("{far:.1}"),
        ]
    });
    let heads = [
        "entry",
        "row",
        "kind",
        "result",
        "#paper",
        "#±",
        "#error",
        "#error in ±",
    ];
    let text = table(&heads, &lines.collect::<Vec<_>>());
    let count = |wanted: &dyn Fn(&Score<'_>) -> bool| {
        let far: Vec<f64> = mine
            .iter()
            .filter(|(score, _)| wanted(score))
            .map(|(_, far)| *far)
            .collect();
        let within = |most: f64| far.iter().filter(|far| **far <= most).count();
        format!(
            "{}: {} within the ±, {} within three times it",
            counted(far.len(), "row", "rows"),
            within(1.0),
            within(3.0)
        )
    };
    let is = |kind: Kind| move |score: &Score<'_>| score.kind == kind;
    let lines = [
        ("predictions", count(&is(Kind::Prediction))),
        ("circular", count(&is(Kind::Circular))),
        ("fitted", count(&is(Kind::Fitted))),
        ("with the result `ok`", count(&|score| score.result == "ok")),
    ];
    let lines: Vec<_> = lines.map(|(of, count)| vec![of.to_owned(), count]).into();
    format!("{text}\n{}", table(&["rows", "count"], &lines))
}
