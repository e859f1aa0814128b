//! Fits parameters: each so that the model of its row is what the paper prints there.
//!
//! A row rises or falls with its parameter over the whole range that the catalogue gives, so the root of the difference
//! is found by false position. Parameters that share rows are fitted in turns until none of them moves.

use super::catalogue::{AllPrinted, Entry, Parameters, Row};
use super::model::Work;
use crate::exit::{self, Failure};
use std::path::Path;

/// Most runs for a parameter in one turn.
const TRIALS: u32 = 30;
/// A model this near to the printed value, as a share of it, is found.
const CLOSE: f64 = 1e-4;
/// Most turns of all parameters.
const TURNS: u32 = 12;
/// A parameter that moves less than this share of its value stands still.
const STILL: f64 = 1e-4;

/// The parameters of `work`, of which those of the entries are fitted again.
pub(super) fn fit(
    work: &Work<'_>,
    entries: &[&Entry],
    printed: &AllPrinted,
    quiet: bool,
) -> Result<Parameters, Failure> {
    let mut parameters = work.parameters.clone();
    let rows = entries.iter().flat_map(|entry| {
        let rows = entry.rows.iter().map(move |row| (*entry, row));
        rows.filter_map(|(entry, row)| Some((entry, row, row.calibrates.as_deref()?)))
    });
    let fits: Vec<(&Entry, &Row, &str)> = rows.collect();
    for turn in 1..=TURNS {
        let mut moved = 0.0_f64;
        for (entry, row, name) in &fits {
            let aim = printed
                .of(&entry.name, &row.row)
                .and_then(|printed| printed.value);
            let aim = aim.ok_or_else(|| missing(entry, row))?;
            let old = parameters
                .get(*name)
                .map_or(f64::NAN, |parameter| parameter.value);
            let new = solve(work, &parameters, (entry, row, name), aim)?;
            moved = moved.max((new / old - 1.0).abs());
            if let Some(parameter) = parameters.get_mut(*name) {
                parameter.value = new;
            }
            if !quiet {
                exit::say(format_args!(
                    "turn {turn}: {name} = {new:.4} from {}, {}",
                    entry.name, row.row
                ));
            }
        }
        // Only parameters of the same entries touch each other's rows.
        if moved < STILL || fits.len() < 2 {
            break;
        }
    }
    Ok(parameters)
}

fn missing(entry: &Entry, row: &Row) -> Failure {
    Failure::usage(format!(
        "{}, {}: a fit needs the printed value, and there is no such value",
        entry.name, row.row
    ))
}

/// The value of the parameter with which the row has the value `aim`.
fn solve(
    work: &Work<'_>,
    parameters: &Parameters,
    (entry, row, name): (&Entry, &Row, &str),
    aim: f64,
) -> Result<f64, Failure> {
    let known = parameters.get(name);
    let range = known.and_then(|parameter| Some((parameter.low?, parameter.high?)));
    let (mut low, mut high) = range
        .ok_or_else(|| Failure::failed(format!("the parameter '{name}' has no range for a fit")))?;
    let step = known.and_then(|parameter| parameter.step);
    let rounded = |value: f64| step.map_or(value, |step| (value / step).round() * step);
    let model = |value: f64| -> Result<f64, Failure> {
        let mut trial = parameters.clone();
        if let Some(parameter) = trial.get_mut(name) {
            parameter.value = rounded(value);
        }
        let work = Work {
            parameters: &trial,
            ..*work
        };
        let values = work.values(&[(entry, row)])?;
        Ok(super::median(&values[0]))
    };
    let (mut at_low, mut at_high): (f64, f64) = (model(low)? - aim, model(high)? - aim);
    if at_low * at_high > 0.0 {
        let (from, to) = (at_low + aim, at_high + aim);
        return Err(Failure::failed(format!(
            "{}, {}: {name} from {low} to {high} gives {from:.3} to {to:.3}, and the paper has {aim}",
            entry.name, row.row
        )));
    }
    let mut best = f64::midpoint(low, high);
    for _ in 0..TRIALS {
        best = (low * at_high - high * at_low) / (at_high - at_low);
        let at_best = model(best)? - aim;
        if (at_best / aim).abs() < CLOSE {
            break;
        }
        // An end that stays counts half the next time: both ends come near (Illinois).
        if at_best * at_low > 0.0 {
            (low, at_low) = (best, at_best);
            at_high /= 2.0;
        } else {
            (high, at_high) = (best, at_best);
            at_low /= 2.0;
        }
    }
    Ok(rounded(best))
}

/// Writes a file for `--parameters`.
pub(super) fn write(file: &Path, parameters: &Parameters) -> Result<(), Failure> {
    // JSON is YAML.
    let text = serde_json::to_string_pretty(parameters)
        .map_err(|error| Failure::failed(error.to_string()))?;
    let failed = |error| Failure::failed(format!("{}: {error}", file.display()));
    std::fs::write(file, text + "\n").map_err(failed)
}
