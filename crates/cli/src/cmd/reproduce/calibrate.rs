//! Fits parameters: each so that the model of its row is what the paper prints there.
//!
//! A row rises or falls with its parameter over the whole range that the catalogue gives. The root of the difference is
//! looked for from the value that the parameter has, by secants, and between the ends of the range by false position if
//! that fails. Parameters that share rows are fitted in turns, in the order of the catalogue, until none of them moves
//! (coordinate iteration). A parameter that stands already costs one trial of its row in each turn.

use super::catalogue::{AllPrinted, Entry, Parameters, Printed, Row};
use super::model::Work;
use crate::exit::{self, Failure};
use aerostat_lab::files::{Named, write_whole};
use std::io::Write as _;
use std::path::Path;

/// Most trials between the ends of a range.
const TRIALS: u32 = 30;
/// Most trials by secants.
const SECANTS: u32 = 8;
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
            let aim = printed.of(&entry.name, &row.row).and_then(Printed::number);
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
    let range = range
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
    let start = known.map_or(range.0, |parameter| parameter.value);
    let found = Search { model, aim }.root(start, range)?;
    found.map(rounded).map_err(|(from, to)| {
        let (low, high) = range;
        Failure::failed(format!(
            "{}, {}: {name} from {low} to {high} gives {from:.3} to {to:.3}, and the paper has {aim}",
            entry.name, row.row
        ))
    })
}

/// Looks for the value of a parameter with which a model has the value `aim`.
struct Search<M> {
    model: M,
    aim: f64,
}

/// A value of the parameter, and the distance of the model from its aim there.
type Trial = (f64, f64);

impl<M: FnMut(f64) -> Result<f64, Failure>> Search<M> {
    fn trial(&mut self, value: f64) -> Result<Trial, Failure> {
        Ok((value, (self.model)(value)? - self.aim))
    }

    fn is_near(&self, trial: Trial) -> bool {
        (trial.1 / self.aim).abs() < CLOSE
    }

    /// The value, looked for from `start` on; the models at the ends of the range if none is between them.
    fn root(
        &mut self,
        start: f64,
        (low, high): (f64, f64),
    ) -> Result<Result<f64, (f64, f64)>, Failure> {
        let mut last = self.trial(start.clamp(low, high))?;
        if self.is_near(last) {
            return Ok(Ok(last.0));
        }
        // Most parameters are costs, of which a rate is a multiple of the inverse.
        let mut next = last.0 * (1.0 + last.1 / self.aim);
        for _ in 0..SECANTS {
            if !(low..=high).contains(&next) || next == last.0 {
                break;
            }
            let here = self.trial(next)?;
            if self.is_near(here) {
                return Ok(Ok(here.0));
            }
            if here.1 * last.1 < 0.0 {
                return self.between(last, here).map(Ok);
            }
            next = (last.0 * here.1 - here.0 * last.1) / (here.1 - last.1);
            last = here;
        }
        let (low, high) = (self.trial(low)?, self.trial(high)?);
        if low.1 * high.1 > 0.0 {
            return Ok(Err((low.1 + self.aim, high.1 + self.aim)));
        }
        self.between(low, high).map(Ok)
    }

    /// The value between two others, at which the model is too small and too large.
    fn between(&mut self, mut low: Trial, mut high: Trial) -> Result<f64, Failure> {
        let mut best = f64::midpoint(low.0, high.0);
        for _ in 0..TRIALS {
            best = (low.0 * high.1 - high.0 * low.1) / (high.1 - low.1);
            let here = self.trial(best)?;
            if self.is_near(here) || (high.0 - low.0).abs() < STILL * best.abs() {
                break;
            }
            // An end that stays counts half the next time: both ends come near (Illinois).
            if here.1 * low.1 > 0.0 {
                low = here;
                high.1 /= 2.0;
            } else {
                high = here;
                low.1 /= 2.0;
            }
        }
        Ok(best)
    }
}

/// Writes a file for `--parameters`.
pub(super) fn write(file: &Path, parameters: &Parameters) -> Result<(), Failure> {
    // JSON is YAML.
    let text = serde_json::to_string_pretty(parameters)
        .map_err(|error| Failure::failed(error.to_string()))?;
    let failed = |error| Failure::failed(format!("{}: {error}", file.display()));
    write_whole(file, Named::ByUser, |out| writeln!(out, "{text}")).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The root of a model, and the number of trials.
    fn root(model: impl Fn(f64) -> f64, aim: f64, start: f64) -> (Result<f64, (f64, f64)>, u32) {
        let mut trials = 0;
        let model = |value| {
            trials += 1;
            Ok(model(value))
        };
        let found = Search { model, aim }.root(start, (10.0, 200.0)).unwrap();
        (found, trials)
    }

    #[test]
    fn a_root_is_found_from_the_value_that_a_parameter_has() {
        let near = |found: Result<f64, (f64, f64)>, wanted: f64| {
            let found = found.unwrap();
            assert!((found / wanted - 1.0).abs() < 2e-3, "{found} {wanted}");
        };
        // A cost: what stands is left alone.
        let (found, trials) = root(|cost| 8000.0 / cost, 100.0, 80.0);
        assert_eq!((found, trials), (Ok(80.0), 1));
        let (found, trials) = root(|cost| 8000.0 / cost, 100.0, 120.0);
        near(found, 80.0);
        assert!(trials < 8, "{trials}");
        // A rate, a curve with a ceiling on which secants lead nowhere, and a step.
        near(root(|rate| 3.0 * rate, 330.0, 20.0).0, 110.0);
        near(
            root(|cost| f64::min(50.0, 2000.0 / cost), 25.0, 20.0).0,
            80.0,
        );
        let (found, trials) = root(|cost| if cost < 55.0 { 7.0 } else { 5.0 }, 6.0, 20.0);
        near(found, 55.0);
        assert!(trials < 45, "{trials}");
        assert_eq!(root(|cost| cost, 500.0, 20.0).0, Err((10.0, 200.0)));
    }
}
