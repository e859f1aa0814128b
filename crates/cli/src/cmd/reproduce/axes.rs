//! Axes of an entry: a row for each combination of values of several keys, for surfaces and families of curves.

use super::catalogue::{Entry, Row};
use crate::exit::Failure;
use serde::Deserialize;

/// Most rows of an entry.
const ROWS: usize = 1000;

/// Values that one or more keys of the lab take together.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Axis {
    /// The keys. They get the same value.
    paths: Vec<String>,
    /// Further keys, which have this value whenever a row uses the axis.
    #[serde(default)]
    with: Vec<(String, String)>,
    /// The value of the keys for a position of 1: others are multiples of it.
    each: Option<f64>,
    /// The unit behind a multiple.
    #[serde(default)]
    unit: String,
    /// Values by position, where they are no multiples.
    #[serde(default)]
    values: Vec<(String, String)>,
}

impl Axis {
    /// The value of the keys at this position.
    fn value(&self, at: &str) -> Option<String> {
        if let Some((_, value)) = self.values.iter().find(|(name, _)| name == at) {
            return Some(value.clone());
        }
        let multiple = self.each? * at.parse::<f64>().ok()?;
        // Rates and sizes of papers have no more than four decimals.
        let digits = format!("{multiple:.4}");
        let digits = digits.trim_end_matches('0').trim_end_matches('.');
        Some(format!("{digits}{}", self.unit))
    }
}

/// Puts a row for each combination of values into the place of each row that has `over`.
pub(super) fn expand(entry: &mut Entry) -> Result<(), Failure> {
    let mut all: Vec<Row> = Vec::new();
    for row in std::mem::take(&mut entry.rows) {
        let mut rows = vec![row.clone()];
        for (name, places) in &row.over {
            let axis = entry.axes.get(name);
            let axis = axis.ok_or_else(|| {
                Failure::failed(format!("{}: there is no axis '{name}'", entry.name))
            })?;
            let wider = rows.iter().map(|row| along(row, name, axis, places));
            rows = wider.collect::<Result<Vec<_>, _>>()?.concat();
        }
        all.extend(rows);
        if all.len() > ROWS {
            let text = format!("{}: more than {ROWS} rows", entry.name);
            return Err(Failure::failed(text));
        }
    }
    entry.rows = all;
    Ok(())
}

/// Rows like `row` at all these places of an axis.
fn along(row: &Row, name: &str, axis: &Axis, places: &str) -> Result<Vec<Row>, Failure> {
    let mark = format!("{{{name}}}");
    let at = |place: &str| {
        let value = axis.value(place).ok_or_else(|| {
            Failure::failed(format!(
                "{}: the axis '{name}' has no value at '{place}'",
                row.row
            ))
        })?;
        let mut row = row.clone();
        row.row = row.row.replace(&mark, place);
        for reference in row.references_mut() {
            *reference = reference.replace(&mark, place);
        }
        let keys = axis.paths.iter().map(|path| (path.clone(), value.clone()));
        row.set.extend(keys.chain(axis.with.clone()));
        Ok(row)
    };
    places.split_whitespace().map(at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(rows: &str) -> Entry {
        let text = format!(
            "{{ title: t, what: w, unit: u, lab: l, axes: {{ size: {{ paths: [a, b], each: 9136 }}, \
             load: {{ paths: [r], each: 81.274, unit: pps, with: [[x, y]] }} }}, rows: [{rows}] }}"
        );
        serde_saphyr::from_str(&text).expect("an entry")
    }

    #[test]
    fn a_row_over_two_axes_is_a_row_for_each_combination() {
        let mut entry = entry(
            "{ row: one, tier: A }, { row: '{size} at {load} %', tier: A, like: 'e/1: {size}', \
             over: { size: '1 2', load: '10 100' } }",
        );
        expand(&mut entry).expect("rows");
        let names: Vec<&str> = entry.rows.iter().map(|row| &*row.row).collect();
        assert_eq!(
            names,
            ["one", "1 at 10 %", "2 at 10 %", "1 at 100 %", "2 at 100 %"]
        );
        let last = &entry.rows[4];
        assert_eq!(last.set["a"], "18272");
        assert_eq!(last.set["b"], "18272");
        assert_eq!(last.set["r"], "8127.4pps");
        assert_eq!(last.set["x"], "y");
        assert_eq!(last.like.as_deref(), Some("e/1: 2"));
        assert!(entry.rows[0].set.is_empty());
    }

    #[test]
    fn an_axis_or_a_place_that_is_missing_is_told() {
        let told = |rows: &str| {
            let mut entry = entry(rows);
            format!("{:?}", expand(&mut entry).expect_err("a mistake"))
        };
        let text = told("{ row: a, tier: A, over: { weight: '1' } }");
        assert!(text.contains("no axis 'weight'"), "{text}");
        let text = told("{ row: a, tier: A, over: { size: 'huge' } }");
        assert!(text.contains("no value at 'huge'"), "{text}");
    }
}
