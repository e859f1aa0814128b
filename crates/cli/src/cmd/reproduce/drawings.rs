//! Drawings of entries: what the model has, beside what the paper prints.
//!
//! An entry says which of its rows form lines or a surface:
//!
//! ```text
//! plot:
//!   - { rows: "{x} segments", x: segments in the window }
//!   - { rows: "{series}, {x} octets at {y} %", x: octets, y: load (%) }
//! ```
//!
//! The names of rows have the values. Rows of entries without `plot:` stand below each other. Only printed numbers are
//! drawn beside the model.

use super::Score;
use super::catalogue::Entry;
use super::median;
use crate::plot::{Axis, Drawing, Figure, MOST_SERIES, Map, Point, Scale, Series, Stroke};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Most rows below each other in one drawing.
const STACK: usize = 20;
/// Most rows of an entry that stand below each other; a table says more then.
const MOST_ROWS: usize = 60;
/// Lines of one drawing that have a line of the paper and fitted rows beside them.
const GROUPS: usize = MOST_SERIES / 3;

/// Which rows of an entry form lines or a surface.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Plot {
    /// By default that of the entry.
    title: Option<String>,
    /// The names of these rows, with `{x}`, `{series}` and `{y}` for values.
    rows: String,
    /// What `{x}` is, with its unit.
    x: String,
    /// What `{y}` is: a surface.
    y: Option<String>,
    /// Further rows, with their values of `{x}`.
    #[serde(default)]
    at: BTreeMap<String, String>,
}

/// Takes a value with its range from a row.
type Reading<'a> = dyn Fn(&Score<'_>) -> Option<(f64, f64, f64)> + 'a;

/// Values in the name of a row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Values {
    x: String,
    y: String,
    series: String,
}

/// All drawings of an entry.
pub(super) fn of(entry: &Entry, scores: &[&Score<'_>]) -> Vec<Drawing> {
    if entry.plot.is_empty() {
        return stacked(entry, scores);
    }
    let drawings = entry
        .plot
        .iter()
        .flat_map(|plot| plot.drawings(entry, scores));
    drawings.collect()
}

impl Plot {
    fn drawings(&self, entry: &Entry, scores: &[&Score<'_>]) -> Vec<Drawing> {
        let rows = scores.iter().filter_map(|score| {
            let name = &score.row.row;
            let values = match self.at.get(name) {
                Some(x) => Some(Values {
                    x: x.clone(),
                    ..Values::default()
                }),
                None => values(&self.rows, name),
            };
            Some((values?, *score))
        });
        let mut rows: Vec<(Values, &Score<'_>)> = rows.collect();
        // Where places are numbers, other names only look like these rows.
        let is_number = |values: &Values| values.x.parse::<f64>().is_ok();
        if rows.iter().any(|(values, _)| is_number(values)) {
            rows.retain(|(values, _)| is_number(values));
        }
        let names = distinct(rows.iter().map(|(values, _)| &values.series));
        match &self.y {
            Some(y) => names
                .iter()
                .map(|name| self.map(entry, y, name, &rows))
                .collect(),
            None => names
                .chunks(GROUPS)
                .map(|names| self.lines(entry, names, &rows))
                .collect(),
        }
    }

    fn title(&self, entry: &Entry) -> String {
        self.title.clone().unwrap_or_else(|| entry.what.clone())
    }

    fn lines(&self, entry: &Entry, names: &[String], rows: &[(Values, &Score<'_>)]) -> Drawing {
        let all = distinct(rows.iter().map(|(values, _)| &values.x));
        let numbers: Option<Vec<f64>> = all.iter().map(|x| x.parse().ok()).collect();
        let place = |x: &String| match &numbers {
            Some(_) => x.parse().unwrap_or(0.0),
            None => all.iter().position(|known| known == x).unwrap_or(0) as f64,
        };
        let mut series = Vec::new();
        for name in names {
            let mine = rows.iter().filter(|(values, _)| values.series == *name);
            let mut points: Vec<(f64, &Score<'_>)> = mine
                .map(|(values, score)| (place(&values.x), *score))
                .collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            series.extend(beside(name, Stroke::Joined, &points));
        }
        Drawing::Lines(Figure {
            title: self.title(entry),
            note: note(entry),
            x: Axis {
                label: self.x.clone(),
                scale: numbers.map_or(Scale::Names(all), |numbers| Scale::fitting(&numbers)),
            },
            y: value_axis(entry, &series),
            sideways: false,
            series,
        })
    }

    /// A surface of the model: papers print few of its numbers, and the table has them.
    fn map(&self, entry: &Entry, y: &str, name: &str, rows: &[(Values, &Score<'_>)]) -> Drawing {
        let mine = || rows.iter().filter(|(values, _)| values.series == name);
        let columns = distinct(mine().map(|(values, _)| &values.x));
        let lines = distinct(mine().map(|(values, _)| &values.y));
        let value = |x: &String, y: &String| {
            let mut mine = mine();
            let found = mine.find(|(values, _)| values.x == *x && values.y == *y);
            found
                .map(|(_, score)| median(&score.values))
                .filter(|value| value.is_finite())
        };
        let line = |y: &String| columns.iter().map(|x| value(x, y)).collect();
        let title = self.title(entry);
        let title = if name.is_empty() {
            title
        } else {
            format!("{title}: {name}")
        };
        Drawing::Map(Map {
            title,
            note: format!("{}: the model", entry.title),
            values: lines.iter().map(line).collect(),
            x: (self.x.clone(), columns.clone()),
            y: (y.to_owned(), lines.clone()),
            label: format!("model ({})", entry.unit),
        })
    }
}

/// Rows below each other.
fn stacked(entry: &Entry, scores: &[&Score<'_>]) -> Vec<Drawing> {
    if scores.len() < 2 || scores.len() > MOST_ROWS {
        return Vec::new();
    }
    let drawings = scores.chunks(STACK).map(|scores| {
        let points = scores
            .iter()
            .enumerate()
            .map(|(at, score)| (at as f64, *score));
        let points: Vec<(f64, &Score<'_>)> = points.collect();
        let series = beside("", Stroke::Marks, &points);
        let names = scores.iter().map(|score| score.row.row.clone());
        Drawing::Lines(Figure {
            title: entry.what.clone(),
            note: note(entry),
            x: Axis {
                label: String::new(),
                scale: Scale::Names(names.collect()),
            },
            y: value_axis(entry, &series),
            sideways: true,
            series,
        })
    });
    drawings.collect()
}

/// The model, what the paper prints, and the rows of the model that were fitted.
fn beside(name: &str, form: Stroke, points: &[(f64, &Score<'_>)]) -> Vec<Series> {
    let model = |score: &Score<'_>| {
        let value = median(&score.values);
        let ends = (score.values.first(), score.values.last());
        let (low, high) = (
            ends.0.copied().unwrap_or(value),
            ends.1.copied().unwrap_or(value),
        );
        Some((value, low, high)).filter(|value| value.0.is_finite())
    };
    let line = |what: &str, form: Stroke, of: &Reading<'_>| {
        let points = points.iter().filter_map(|(x, score)| {
            let (y, low, high) = of(score)?;
            Some(Point {
                x: *x,
                y,
                low,
                high,
            })
        });
        let name = if name.is_empty() {
            what.to_owned()
        } else {
            format!("{name}: {what}")
        };
        Series {
            name,
            form,
            points: points.collect(),
        }
    };
    let paper = |score: &Score<'_>| score.paper.map(|value| (value, value, value));
    let fitted = |score: &Score<'_>| {
        let value = score.row.calibrates.as_ref().and_then(|_| model(score));
        value.map(|(value, _, _)| (value, value, value))
    };
    let all = [
        line("model", form, &model),
        line("paper", Stroke::Marks, &paper),
        line("fitted to the paper here", Stroke::Marks, &fitted),
    ];
    all.into_iter()
        .filter(|series| !series.points.is_empty())
        .collect()
}

fn note(entry: &Entry) -> String {
    let bars = if entry.random {
        "; bars: range of the seeds"
    } else {
        ""
    };
    format!("{}{bars}", entry.title)
}

/// The axis of the values. It begins at 0, unless all values are within a tenth of the largest.
fn value_axis(entry: &Entry, series: &[Series]) -> Axis {
    let values = || {
        series
            .iter()
            .flat_map(|one| &one.points)
            .flat_map(|point| [point.low, point.high])
    };
    let low = values().fold(f64::INFINITY, f64::min);
    let high = values().fold(f64::NEG_INFINITY, f64::max);
    let close = low > 0.0 && high - low < 0.1 * high;
    let wide = low > 0.0 && high > 200.0 * low;
    Axis {
        label: entry.unit.clone(),
        scale: if wide {
            Scale::Log
        } else {
            Scale::Linear { zero: !close }
        },
    }
}

/// The different texts, in their order.
fn distinct<'a>(all: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut seen: Vec<String> = Vec::new();
    for text in all {
        if !seen.contains(text) {
            seen.push(text.clone());
        }
    }
    seen
}

/// The values in `name` at the places that `pattern` has for them; `None` if the name has another form.
fn values(pattern: &str, name: &str) -> Option<Values> {
    let mut found = Values::default();
    let (before, mut pattern) = pattern.split_once('{')?;
    let mut rest = name.strip_prefix(before)?;
    loop {
        let (key, after) = pattern.split_once('}')?;
        let (literal, next) = match after.split_once('{') {
            Some((literal, next)) => (literal, Some(next)),
            None => (after, None),
        };
        let end = match (literal, next) {
            ("", _) => rest.len(),
            (_, None) => rest.len().checked_sub(literal.len())?,
            (_, Some(_)) => rest.find(literal)?,
        };
        let (value, behind) = rest.split_at_checked(end)?;
        rest = behind.strip_prefix(literal)?;
        let slot = match key {
            "x" => &mut found.x,
            "y" => &mut found.y,
            _ => &mut found.series,
        };
        value.trim().clone_into(slot);
        match next {
            None => return (rest.is_empty() && !found.x.is_empty()).then_some(found),
            Some(next) => pattern = next,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_rows_have_the_values_of_patterns() {
        let found = |pattern: &str, name: &str| {
            values(pattern, name).map(|found| [found.x, found.y, found.series].join("|"))
        };
        let wanted = |text: &str| Some(text.to_owned());
        assert_eq!(found("{x} segments", "6 segments"), wanted("6||"));
        assert_eq!(found("{x} segments", "6 octets"), None);
        assert_eq!(
            found("{series}, {x} at {y} %", "up, 64 at 10 %"),
            wanted("64|10|up")
        );
        assert_eq!(found("load {x}", "load 80 %"), wanted("80 %||"));
        assert_eq!(found("load {x}", "80"), None);
        assert_eq!(found("{x} µs", " µs"), None);
        assert_eq!(found("{x}", "a"), wanted("a||"));
        assert_eq!(found("no place", "no place"), None);
    }
}
