//! Models of this run beside those of a file of results.

use super::{Score, median};
use crate::exit::{self, Failure};
use aerostat_lab::results::rounded;
use aerostat_node::rows;
use aerostat_wire::counted;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// A row of a file that `-o csv` has written.
#[derive(Debug, Deserialize)]
pub(super) struct Kept {
    entry: String,
    row: String,
    model: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    seeds: usize,
}

rows! {
    /// One row for each row whose model is not that of the file.
    pub(super) struct Difference: "differences" for (score: &Score<'_>, median: f64, file: Option<&Kept>) {
        /// Name of the entry.
        entry: String = score.entry.name.clone(),
        /// Name of the row.
        row: String = score.row.row.clone(),
        /// Median of this run.
        model: f64 = rounded(median, 4),
        /// Median of the file; none if the file does not have the row.
        kept: Option<f64> = file.and_then(|kept| kept.model),
        /// Smallest value of all seeds of the file.
        low: Option<f64> = file.and_then(|kept| kept.low),
        /// Largest value of all seeds of the file.
        high: Option<f64> = file.and_then(|kept| kept.high),
    }
}

/// The rows whose model is not that of the file. With another number of seeds a model is as in the file if it is within
/// the range there.
pub(super) fn differences(file: &Path, scores: &[&Score<'_>]) -> Result<Vec<Difference>, Failure> {
    let failed = |text: String| Failure::usage(format!("{}: {text}", file.display()));
    let mut reader = csv::Reader::from_path(file).map_err(|error| failed(error.to_string()))?;
    let mut kept = BTreeMap::new();
    for row in reader.deserialize::<Kept>() {
        let row = row.map_err(|error| failed(error.to_string()))?;
        kept.insert((row.entry.clone(), row.row.clone()), row);
    }
    let modelled = scores.iter().filter(|score| !score.values.is_empty());
    let all: Vec<Difference> = modelled
        .clone()
        .filter_map(|score| {
            let key = (score.entry.name.clone(), score.row.row.clone());
            difference(score, kept.get(&key))
        })
        .collect();
    let rows = counted(modelled.count(), "row", "rows");
    exit::say(format_args!(
        "{} of {rows} differ from {}",
        all.len(),
        file.display()
    ));
    Ok(all)
}

fn difference(score: &Score<'_>, kept: Option<&Kept>) -> Option<Difference> {
    let model = median(&score.values);
    let same = kept.is_some_and(|kept| {
        let ends = match kept.seeds == score.values.len() {
            true => (kept.model, kept.model),
            false => (kept.low, kept.high),
        };
        let (Some(low), Some(high)) = ends else {
            return false;
        };
        // A file has four decimals.
        let near = 1e-4 + model.abs() * 1e-6;
        (low - near..=high + near).contains(&model)
    });
    (!same).then(|| Difference::of(score, model, kept))
}
