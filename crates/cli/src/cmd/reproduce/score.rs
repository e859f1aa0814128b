//! What rows show: the model, what the paper prints, whether the rule holds, and the same in real time.

use super::catalogue::{AllPrinted, Entry, Row};
use super::model::Values;
use super::{live, rules};
use crate::cmd::run::rounded;
use crate::exit::Failure;
use serde_json::Value;

/// What a row shows.
pub(super) struct Score<'a> {
    pub(super) entry: &'a Entry,
    pub(super) row: &'a Row,
    /// The values of all seeds, in order of size.
    pub(super) values: Values,
    pub(super) paper: Option<f64>,
    pub(super) says: Option<String>,
    pub(super) place: String,
    /// Distance from the printed value, per cent.
    pub(super) error: Option<f64>,
    pub(super) rule: String,
    /// The rules that do not hold.
    pub(super) missed: String,
    pub(super) result: &'static str,
    /// What it has between Linux kernels in real time.
    pub(super) live: Option<Live<'a>>,
}

/// A row between Linux kernels in real time.
pub(super) struct Live<'a> {
    pub(super) found: &'a live::Found,
    /// The values of all runs, in order of size.
    pub(super) values: Values,
    /// Distance from the printed value, per cent.
    pub(super) error: Option<f64>,
    /// Whether the rule of the row would hold; `lagged`: the machine was too busy.
    pub(super) result: &'static str,
}

/// Scores of the rows of the chosen entries: rows that are only compared with get a score, too.
///
/// # Errors
/// A value with which a rule compares is missing.
pub(super) fn scores<'a>(
    rows: &[(&'a Entry, &'a Row)],
    values: &[Values],
    printed: &AllPrinted,
    measured: Option<&'a live::Measured>,
) -> Result<Vec<Score<'a>>, Failure> {
    let all = All {
        rows,
        values,
        measured,
    };
    let scores = rows.iter().zip(values).enumerate();
    let scores = scores.map(|(at, ((entry, row), values))| {
        let printed = printed.of(&entry.name, &row.row);
        let paper = printed.and_then(|printed| printed.value);
        let found = median(values);
        let facts = rules::Facts {
            found,
            values,
            paper,
            other: |reference: &str| all.model(entry, row, reference),
        };
        let judged = rules::rule(row, &facts)?;
        // A fit is no prediction, but it can miss.
        let result = match judged.holds {
            Some(false) => "miss",
            _ if row.calibrates.is_some() => "calibration",
            None => "shown",
            Some(true) => "ok",
        };
        Ok(Score {
            entry,
            row,
            values: sorted(values),
            paper,
            says: printed.and_then(|printed| printed.says.clone()),
            place: printed
                .map(|printed| printed.place.clone())
                .unwrap_or_default(),
            error: far(found, paper),
            rule: judged.words,
            missed: judged.missed,
            result,
            live: all.live(at, paper),
        })
    });
    scores.collect()
}

/// All rows, and their values.
struct All<'a, 'b> {
    rows: &'b [(&'a Entry, &'a Row)],
    values: &'b [Values],
    measured: Option<&'a live::Measured>,
}

impl<'a> All<'a, '_> {
    /// The place of the row that `reference` names in `row`.
    fn at(&self, entry: &Entry, row: &Row, reference: &str) -> Option<usize> {
        let wanted = row.referred(&entry.name, reference);
        let mut all = self.rows.iter();
        all.position(|(entry, row)| (&*entry.name, &*row.row) == wanted)
    }

    /// The model of the row that `reference` names.
    fn model(&self, entry: &Entry, row: &Row, reference: &str) -> Option<f64> {
        let at = self.at(entry, row, reference)?;
        Some(median(self.values.get(at)?))
    }

    fn measured(&self, at: usize) -> Option<&'a live::Found> {
        self.measured?.rows.get(at)?.as_ref()
    }

    /// What the row has in real time. It is compared with other rows in real time only.
    fn live(&self, at: usize, paper: Option<f64>) -> Option<Live<'a>> {
        let measured = self.measured(at)?;
        let (entry, row) = self.rows.get(at)?;
        let found = median(&measured.values);
        let facts = rules::Facts {
            found,
            values: &measured.values,
            paper,
            other: |reference: &str| {
                let other = self.measured(self.at(entry, row, reference)?)?;
                Some(median(&other.values))
            },
        };
        // There may be no rule, or a row to compare with does not run in real time.
        let judged = rules::rule(row, &facts).ok();
        let result = match judged.and_then(|judged| judged.holds) {
            _ if measured.lagged() => "lagged",
            Some(true) => "ok",
            Some(false) => "miss",
            None => "shown",
        };
        Some(Live {
            found: measured,
            values: sorted(&measured.values),
            error: far(found, paper),
            result,
        })
    }
}

/// Distance from the printed value, per cent; `None` if there is nothing to compare.
fn far(found: f64, paper: Option<f64>) -> Option<f64> {
    let far = (found - paper?) / paper? * 100.0;
    far.is_finite().then_some(far)
}

fn sorted(values: &[f64]) -> Values {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values
}

/// The median; NaN without values.
pub(super) fn median(values: &[f64]) -> f64 {
    let values = sorted(values);
    let middle = values.len() / 2;
    match values.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => values[middle],
        _ => f64::midpoint(values[middle - 1], values[middle]),
    }
}

impl Score<'_> {
    /// The cells of [`live::COLUMNS`].
    pub(super) fn live_cells(&self) -> Vec<Value> {
        let Some(live) = &self.live else {
            return vec![Value::Null; live::COLUMNS.len()];
        };
        let number = |value: Option<f64>| value.map_or(Value::Null, |value| rounded(value, 4));
        let mut cells = vec![
            number(Some(median(&live.values))),
            number(live.values.first().copied()),
            number(live.values.last().copied()),
            live.values.len().into(),
            live.error.map_or(Value::Null, |error| rounded(error, 2)),
            live.result.into(),
        ];
        cells.extend(live.found.counted());
        cells
    }
    pub(super) fn unit(&self) -> &str {
        self.row.unit.as_ref().unwrap_or(&self.entry.unit)
    }
    /// Its cells in the table of rows, but for the TCP.
    pub(super) fn cells(&self) -> Vec<Value> {
        // Small numbers, such as Mb/s of tiny packets, have four digits, too.
        let decimals = |value: f64| if value.abs() < 0.1 { 7 } else { 4 };
        let number = |value: Option<&f64>| {
            value.map_or(Value::Null, |value| rounded(*value, decimals(*value)))
        };
        let text = |text: &str| Value::from(text.to_owned());
        vec![
            text(&self.entry.name),
            text(&self.row.row),
            number(Some(&median(&self.values))),
            text(self.unit()),
            number(self.paper.as_ref()),
            self.error.map_or(Value::Null, |error| rounded(error, 2)),
            serde_json::to_value(self.row.tier).unwrap_or_default(),
            text(&self.rule),
            text(self.result),
            number(self.values.first()),
            number(self.values.last()),
            self.values.len().into(),
            self.says.clone().map_or(Value::Null, Value::from),
            text(&self.place),
        ]
    }
}
