//! Assumed and chosen values of labs, halved and doubled: which rows then have another result.

use super::catalogue::{AllPrinted, Entry, Parameter, Row};
use super::model::{Values, Work};
use super::score::scores;
use crate::exit::Failure;
use aerostat_lab::results::rounded;
use aerostat_node::rows;
use aerostat_wire::counted;

rows! {
    /// One row for each value that was tried in the place of an assumed or chosen one.
    pub(super) struct Tried: "assumed" {
        /// Name of the parameter.
        parameter: String,
        /// Its meaning.
        what: String,
        /// Its value.
        value: f64,
        /// Unit of the value.
        unit: String,
        /// Value that was tried.
        tried: f64,
        /// Rows of the entries that use it.
        rows: usize,
        /// Rows whose result became a miss.
        worse: usize,
        /// Rows that were a miss before.
        better: usize,
        /// Names of these rows, with both results.
        which: String,
    }
}

/// Runs the rows that use each free parameter with its other values, beside their results with its own.
pub(super) fn tried(
    work: &Work<'_>,
    rows: &[(&Entry, &Row)],
    printed: &AllPrinted,
) -> Result<Vec<Tried>, Failure> {
    let parameters = work.parameters;
    let values = work.values(rows)?;
    let before = results(rows, &values, printed)?;
    let mut all = Vec::new();
    for (name, parameter) in parameters.iter().filter(|(_, known)| known.is_free()) {
        let uses = |(entry, row): &(&Entry, &Row)| {
            entry.has_model(row) && entry.parameters_of(row).contains(name)
        };
        let at: Vec<usize> = (0..rows.len()).filter(|at| uses(&rows[*at])).collect();
        for other in parameter.others() {
            if at.is_empty() {
                continue;
            }
            let mut trial = parameters.clone();
            if let Some(known) = trial.get_mut(name) {
                known.value = other;
            }
            let work = Work {
                parameters: &trial,
                ..*work
            };
            // Rules may compare with rows that do not use the parameter; those have their values.
            let part: Vec<(&Entry, &Row)> = at.iter().map(|at| rows[*at]).collect();
            let mut whole = values.clone();
            for (at, values) in at.iter().zip(all_values(&work, &part)?) {
                whole[*at] = values;
            }
            let after = results(rows, &whole, printed)?;
            all.push(line(
                (name, parameter),
                other,
                rows,
                (&before, &after),
                at.len(),
            ));
        }
    }
    Ok(all)
}

/// The values of these rows. A lab that cannot run with such a parameter has none, and its rows are misses.
fn all_values(work: &Work<'_>, rows: &[(&Entry, &Row)]) -> Result<Vec<Values>, Failure> {
    let whole = work.values(rows);
    if whole.is_ok() || work.interrupt.has_come() {
        return whole;
    }
    let each = rows.iter().map(|row| match work.values(&[*row]) {
        Err(failure) if work.interrupt.has_come() => Err(failure),
        Err(_) => Ok(vec![f64::NAN]),
        Ok(values) => Ok(values.concat()),
    });
    each.collect()
}

/// The results of all rows.
fn results(
    rows: &[(&Entry, &Row)],
    values: &[Values],
    printed: &AllPrinted,
) -> Result<Vec<&'static str>, Failure> {
    let scored = scores(rows, values, printed, None)?;
    Ok(scored.iter().map(|score| score.result).collect())
}

fn line(
    (name, parameter): (&str, &Parameter),
    other: f64,
    rows: &[(&Entry, &Row)],
    (before, after): (&[&str], &[&str]),
    uses: usize,
) -> Tried {
    let pairs = || rows.iter().zip(before.iter().zip(after));
    let changed = pairs().filter(|(_, (before, after))| before != after);
    let named = changed.map(|((entry, row), (before, after))| {
        format!("{}: {} ({before} to {after})", entry.name, row.row)
    });
    let count = |of: fn(&str, &str) -> bool| {
        pairs()
            .filter(|(_, (before, after))| of(before, after))
            .count()
    };
    Tried {
        parameter: name.to_owned(),
        what: parameter.what.clone(),
        value: rounded(parameter.value, 4),
        unit: parameter.unit.clone(),
        tried: rounded(other, 4),
        rows: uses,
        worse: count(|before, after| before != "miss" && after == "miss"),
        better: count(|before, after| before == "miss" && after != "miss"),
        which: named.collect::<Vec<_>>().join("; "),
    }
}

/// The table in a few words.
pub(super) fn words(tried: &[Tried]) -> String {
    let changed = tried.iter().filter(|line| line.worse + line.better > 0);
    format!(
        "{} of {} change a result",
        changed.count(),
        counted(
            tried.len(),
            "value in its place",
            "values in the place of others"
        )
    )
}
