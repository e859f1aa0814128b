//! Tables for people on a terminal of 80 columns: which columns are shown, and how wide columns of prose are.

use super::{Rows, readable};
use aerostat_node::inspect::Importance;

/// Columns of the terminal for which tables are made.
pub(crate) const NARROW: usize = 80;
/// Blanks between two columns.
pub(super) const GAP: usize = 2;
/// Prose is broken into lines only if it is longer than this; its lines are not made shorter than this.
const PROSE: usize = 24;

/// The columns of a table that are shown, in the table's order, with width limits for columns of prose.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Choice {
    /// Numbers of the columns.
    pub(super) shown: Vec<usize>,
    /// For each of them the largest number of characters in a line; `None` if values are not broken.
    pub(super) limits: Vec<Option<usize>>,
}

impl Choice {
    /// All columns in their natural width.
    pub(super) fn all(rows: &Rows) -> Self {
        let count = rows.columns.len();
        Self {
            shown: (0..count).collect(),
            limits: vec![None; count],
        }
    }

    /// The columns that fit [`NARROW`]. The most important column is shown even if it does not fit.
    pub(super) fn narrow(rows: &Rows) -> Self {
        let widths: Vec<Width> = (0..rows.columns.len())
            .map(|at| Width::of(rows, at))
            .collect();
        let total = |shown: &[usize]| -> usize {
            let least: usize = shown.iter().map(|&at| widths[at].least).sum();
            least + GAP * shown.len().saturating_sub(1)
        };
        let mut shown = Vec::new();
        let fixed = rows.importance.iter().any(is_lead);
        // A narrower column may follow one that does not fit.
        for at in by_importance(rows) {
            shown.push(at);
            if shown.len() > 1 && total(&shown) > NARROW {
                shown.pop();
                if fixed {
                    break;
                }
            }
        }
        shown.sort_unstable();
        let mut spare = NARROW.saturating_sub(total(&shown));
        let limits = shown.iter().map(|&at| {
            let width = &widths[at];
            let more = (width.natural - width.least).min(spare);
            spare -= more;
            let limit = width.least + more;
            (limit < width.natural).then_some(limit)
        });
        let limits = limits.collect();
        Self { shown, limits }
    }
}

const fn is_lead(importance: &Importance) -> bool {
    matches!(importance, Importance::Lead(_))
}

/// Numbers of the columns, the most important one first.
fn by_importance(rows: &Rows) -> Vec<usize> {
    let first = rows.importance.iter().position(is_lead);
    let mut columns: Vec<usize> = (0..rows.columns.len()).collect();
    columns.sort_by_key(|&at| {
        let importance = rows.importance.get(at).copied().unwrap_or_default();
        let rank = match importance {
            Importance::Detail(rank) => Some(rank),
            Importance::Lead(_) | Importance::Plain => None,
        };
        let detail = rank.is_some();
        // A detail column without information is dropped before all others; a key column is never dropped for that.
        let empty = rank != Some(0) && (detail || at > 0) && is_empty(rows, at, detail);
        let lead = match (first, importance) {
            (Some(first), _) if at < first => 0,
            (Some(_), Importance::Lead(place)) => place.into(),
            (Some(_), _) => usize::MAX,
            (None, _) => 0,
        };
        (lead, empty, detail, std::cmp::Reverse(rank), at)
    });
    columns
}

/// True if no row has a value in this column. With `zeros`, zeros count as no value.
fn is_empty(rows: &Rows, at: usize, zeros: bool) -> bool {
    let mut values = rows.rows.iter().filter_map(|row| row.get(at));
    !rows.rows.is_empty()
        && values
            .all(|value| value.is_null() || value == "" || (zeros && value.as_f64() == Some(0.0)))
}

/// Widths of a column in characters.
struct Width {
    /// Width of its longest value, or of its name.
    natural: usize,
    /// Width with prose broken into lines.
    least: usize,
}

impl Width {
    fn of(rows: &Rows, at: usize) -> Self {
        let length = |text: &str| text.chars().count();
        let header = length(&rows.columns[at]);
        let (mut natural, mut word) = (header, header);
        for value in rows.rows.iter().filter_map(|row| row.get(at)) {
            let text = readable(value);
            natural = natural.max(text.lines().map(length).max().unwrap_or(0));
            word = word.max(text.split_whitespace().map(length).max().unwrap_or(0));
        }
        let least = natural.min(word.max(PROSE));
        Self { natural, least }
    }
}

/// The line below a table with the names of the missing columns, broken to fit. Of very many, as of the means of a
/// sweep, the first ones are named, and the others are counted.
pub(super) fn left_out(rows: &Rows, choice: &Choice) -> Option<String> {
    const MOST: usize = 64;
    const NAMED: usize = 16;
    let all = rows.columns.iter().enumerate();
    let missing = all.filter(|(at, _)| !choice.shown.contains(at));
    let mut missing: Vec<String> = missing.map(|(_, name)| name.clone()).collect();
    if missing.len() > MOST {
        let more = missing.len() - NAMED;
        missing.truncate(NAMED);
        missing.push(format!("and {more} more"));
    }
    let mut text = String::new();
    let mut length = 0;
    for name in &missing {
        let word = if text.is_empty() {
            format!("(--wide adds {name}")
        } else if length + name.len() + 3 > NARROW {
            text.push_str(",\n ");
            length = 1;
            text.push_str(name);
            length += name.len();
            continue;
        } else {
            format!(", {name}")
        };
        length += word.len();
        text.push_str(&word);
    }
    (!text.is_empty()).then(|| text + ")")
}

#[cfg(test)]
mod tests;
