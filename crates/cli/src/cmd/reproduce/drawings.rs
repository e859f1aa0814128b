//! Drawings of entries: what the model has, beside what the paper prints.
//!
//! An entry says which of its rows form lines or a surface:
//!
//! ```text
//! plot:
//!   - { rows: "{x} segments", x: segments in the window }
//!   - { rows: "{series}, {x} octets at {y} %", also: "{x} octets", x: octets, y: load (%) }
//! ```
//!
//! The names of rows have the values. Rows of entries without `plot:` stand below each other. Only printed numbers are
//! drawn beside the model. `traces:` draws the packets of one run ([`trace`]).

pub(super) mod trace;

use super::Score;
use super::catalogue::{Entry, Tier};
use super::median;
use crate::plot::{
    Axis, Drawing, Figure, MOST_SERIES, Map, Point, Scale, Series, Sign, Stroke, numbered,
};
use serde::Deserialize;
use std::collections::BTreeMap;
use trace::Tables;

/// Most rows below each other in one drawing.
const STACK: usize = 20;
/// Most rows of an entry that stand below each other; a table says more then.
const MOST_ROWS: usize = 60;

/// Rows of an entry that form lines or a surface.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Plot {
    /// By default that of the entry.
    title: Option<String>,
    /// The names of these rows, with `{x}`, `{series}` and `{y}` for values.
    rows: String,
    /// Further rows, with names of another form. Of a surface, `{y}` is `{x}` where the name has no `{y}`.
    also: Option<String>,
    /// Meaning of `{x}`, with its unit.
    x: String,
    /// Meaning of `{y}`: a surface.
    y: Option<String>,
    /// Words in front of `{series}`.
    #[serde(default)]
    series: String,
    /// The unit of these rows, by default that of the entry.
    unit: Option<String>,
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

impl Values {
    /// `{y}`, which is `{x}` where the name has no `{y}`.
    fn up(&self) -> &String {
        if self.y.is_empty() { &self.x } else { &self.y }
    }
}

/// All drawings of an entry.
pub(super) fn of(entry: &Entry, scores: &[&Score<'_>], tables: &Tables) -> Vec<Drawing> {
    let rows = entry.plot.iter();
    let rows = rows.flat_map(|plot| plot.drawings(entry, scores));
    let traces = entry.traces.iter();
    let traces = traces.filter_map(|trace| trace.drawing(entry, tables));
    let mut drawings: Vec<Drawing> = match entry.plot.is_empty() {
        true => stacked(entry, scores),
        false => rows.collect(),
    };
    drawings.extend(traces);
    drawings.retain(|drawing| !drawing.is_empty());
    numbered(drawings)
}

impl Plot {
    fn drawings(&self, entry: &Entry, scores: &[&Score<'_>]) -> Vec<Drawing> {
        // A row may have the form of these rows' names and another unit.
        let alike = |score: &&&Score<'_>| {
            let unit = score.row.unit.as_ref();
            unit.is_none() || unit == self.unit.as_ref()
        };
        let rows = scores.iter().filter(alike).filter_map(|score| {
            let name = &score.row.row;
            let found = match self.at.get(name) {
                Some(x) => Some(Values {
                    x: x.clone(),
                    ..Values::default()
                }),
                None => {
                    let also = || values(self.also.as_deref()?, name);
                    values(&self.rows, name).or_else(also)
                }
            };
            Some((found?, *score))
        });
        let mut rows: Vec<(Values, &Score<'_>)> = rows.collect();
        // "lost at 80 % load" has the form "{x} % load", but its value is no number as that of the others is.
        let is_number = |text: &str| text.parse::<f64>().is_ok();
        if rows.iter().any(|(values, _)| is_number(&values.x)) {
            rows.retain(|(values, _)| is_number(&values.x));
        }
        let names = distinct(rows.iter().map(|(values, _)| &values.series));
        if let Some(y) = &self.y {
            let maps = names.iter().map(|name| self.map(entry, y, name, &rows));
            return maps.collect();
        }
        let (mut drawings, mut series) = (Vec::new(), Vec::new());
        for (number, name) in names.iter().enumerate() {
            let more = self.series(number % MOST_SERIES, name, &rows);
            if series.len() + more.len() > MOST_SERIES {
                drawings.push(self.lines(entry, &rows, std::mem::take(&mut series)));
            }
            series.extend(more);
        }
        if !series.is_empty() {
            drawings.push(self.lines(entry, &rows, series));
        }
        drawings
    }

    fn title(&self, entry: &Entry) -> String {
        self.title.clone().unwrap_or_else(|| heading(entry))
    }

    /// Name of `{series}`.
    fn called(&self, name: &str) -> String {
        [&self.series, name].join(" ").trim().to_owned()
    }

    /// A line of the model, with what the paper prints and fitted rows.
    fn series(&self, number: usize, name: &str, rows: &[(Values, &Score<'_>)]) -> Vec<Series> {
        let scale = Horizontal::of(rows);
        let mine = rows.iter().filter(|(values, _)| values.series == name);
        let points = mine.map(|(values, score)| (scale.place(&values.x), *score));
        let mut points: Vec<(f64, &Score<'_>)> = points.collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let form = match scale {
            Horizontal::Numbers(_) => Stroke::Joined,
            Horizontal::Names(_) => Stroke::Marks,
        };
        beside((number, &self.called(name)), form, &points)
    }

    fn lines(&self, entry: &Entry, rows: &[(Values, &Score<'_>)], series: Vec<Series>) -> Drawing {
        let unit = self.unit.as_ref().unwrap_or(&entry.unit);
        Drawing::Lines(Figure {
            title: self.title(entry),
            note: note(entry),
            x: Axis {
                label: self.x.clone(),
                scale: match Horizontal::of(rows) {
                    Horizontal::Numbers(numbers) => Scale::fitting(&numbers),
                    Horizontal::Names(names) => Scale::Names(names),
                },
            },
            y: value_axis(entry, unit, &series),
            sideways: false,
            series,
            words: self.words(rows),
        })
    }

    /// The words of the paper, where it has no number.
    fn words(&self, rows: &[(Values, &Score<'_>)]) -> Vec<(f64, String)> {
        let scale = Horizontal::of(rows);
        let words = rows.iter().filter_map(|(values, score)| {
            let says = words_of(score)?;
            Some((scale.place(&values.x), says))
        });
        let mut words: Vec<(f64, String)> = words.collect();
        words.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(&b.1)));
        words.dedup();
        // What is said of several lines at one place is one text.
        let places = words.chunk_by(|a, b| a.0.total_cmp(&b.0).is_eq());
        let joined = places.map(|all| {
            let texts: Vec<&str> = all.iter().map(|(_, text)| &**text).collect();
            (all[0].0, texts.join("”, “"))
        });
        joined.collect()
    }

    /// A surface of the model: papers print few of its numbers, and the table has them.
    fn map(&self, entry: &Entry, y: &str, name: &str, rows: &[(Values, &Score<'_>)]) -> Drawing {
        let mine = || rows.iter().filter(|(values, _)| values.series == name);
        let columns = sorted(mine().map(|(values, _)| &values.x));
        let lines = sorted(mine().map(|(values, _)| values.up()));
        let value = |x: &String, y: &String| {
            let mut mine = mine();
            let found = mine.find(|(values, _)| values.x == *x && values.up() == y);
            found
                .map(|(_, score)| median(&score.values))
                .filter(|value| value.is_finite())
        };
        let line = |y: &String| columns.iter().map(|x| value(x, y)).collect();
        let title = self.title(entry);
        let title = if name.is_empty() {
            title
        } else {
            format!("{title}: {}", self.called(name))
        };
        Drawing::Map(Map {
            title,
            note: format!("{}: the model", entry.title),
            values: lines.iter().map(line).collect(),
            x: (self.x.clone(), columns.clone()),
            y: (y.to_owned(), lines.clone()),
            label: entry.quantity(self.unit.as_ref().unwrap_or(&entry.unit)),
        })
    }
}

/// Rows below each other, a drawing for each unit.
fn stacked(entry: &Entry, scores: &[&Score<'_>]) -> Vec<Drawing> {
    if scores.len() > MOST_ROWS {
        return Vec::new();
    }
    let units = distinct(
        scores
            .iter()
            .map(|score| score.row.unit.as_ref().unwrap_or(&entry.unit)),
    );
    let mut all = Vec::new();
    for unit in units {
        let mine = scores.iter().filter(|score| score.unit() == unit);
        let mine: Vec<&Score<'_>> = mine.copied().collect();
        // A single number needs no drawing.
        let parts = mine.chunks(STACK).filter(|_| mine.len() > 1);
        all.extend(parts.filter_map(|scores| stack(entry, &unit, scores)));
    }
    all
}

/// Rows below each other, in one drawing; `None` without a model.
fn stack(entry: &Entry, unit: &str, scores: &[&Score<'_>]) -> Option<Drawing> {
    let points = scores.iter().enumerate();
    let points: Vec<(f64, &Score<'_>)> = points.map(|(at, score)| (at as f64, *score)).collect();
    let series = beside((0, ""), Stroke::Marks, &points);
    let words = points.iter();
    let words = words.filter_map(|(x, score)| Some((*x, words_of(score)?)));
    let names = scores.iter().map(|score| score.row.row.clone());
    let modelled = scores
        .iter()
        .any(|score| !score.values.is_empty() || score.live.is_some());
    modelled.then(|| {
        Drawing::Lines(Figure {
            title: heading(entry),
            note: note(entry),
            x: Axis {
                label: String::new(),
                scale: Scale::Names(names.collect()),
            },
            y: value_axis(entry, unit, &series),
            sideways: true,
            series,
            words: words.collect(),
        })
    })
}

/// The median of values in order of size, and their range; `None` without values.
fn ranged(values: &[f64]) -> Option<(f64, f64, f64)> {
    let value = median(values);
    let (low, high) = (*values.first()?, *values.last()?);
    Some((value, low, high)).filter(|value| value.0.is_finite())
}

/// The words of the paper, for a row without a number.
fn words_of(score: &Score<'_>) -> Option<String> {
    score.says.clone().filter(|_| score.paper.is_none())
}

/// Meanings of marks: they are the same in all drawings, and the colour is that of the line.
const MEANINGS: [(&str, usize); 5] = [
    ("model", 0),
    ("paper", 1),
    ("live, between Linux kernels", 2),
    ("fitted to the paper here", 4),
    ("closed form", 7),
];

/// The model, what the paper prints, what rows have in real time, the rows of the model that were fitted, and closed
/// forms. Rows of tier E are grey.
fn beside(
    (number, name): (usize, &str),
    form: Stroke,
    points: &[(f64, &Score<'_>)],
) -> Vec<Series> {
    let same = |value: f64| (value, value, value);
    let model = |score: &Score<'_>| ranged(&score.values);
    let live = |score: &Score<'_>| ranged(&score.live.as_ref()?.values);
    let paper = |score: &Score<'_>| score.paper.map(same);
    let fitted = |score: &Score<'_>| {
        let value = score.row.calibrates.as_ref().and_then(|_| model(score));
        value.map(|(value, ..)| same(value))
    };
    let closed = |score: &Score<'_>| {
        let aim = score.row.equals.filter(|_| score.paper.is_none());
        aim.filter(|aim| *aim != 0.0).map(same)
    };
    let readings: [&Reading<'_>; 5] = [&model, &paper, &live, &fitted, &closed];
    let is_grey = |score: &Score<'_>| score.row.tier == Tier::E && score.paper.is_some();
    let mut all = Vec::new();
    for ((what, mark), of) in MEANINGS.into_iter().zip(readings) {
        for grey in [false, true] {
            let mine = points.iter().filter(|(_, score)| is_grey(score) == grey);
            let found = mine.filter_map(|(x, score)| {
                let (y, low, high) = of(score)?;
                let x = *x;
                Some(Point { x, y, low, high })
            });
            let what = if grey {
                format!("{what}, tier E")
            } else {
                what.to_owned()
            };
            let series = Series {
                name: match name {
                    "" => what,
                    name => format!("{name}: {what}"),
                },
                form: if mark == 0 { form } else { Stroke::Marks },
                points: found.collect(),
                sign: Some(Sign {
                    colour: (!grey).then_some(number),
                    mark,
                }),
            };
            all.extend(Some(series).filter(|series| !series.points.is_empty()));
        }
    }
    all
}

/// The title of a drawing without its own: what the entry measures, without what is said beside it.
fn heading(entry: &Entry) -> String {
    let first = entry.what.split([';', ':']).next();
    first.unwrap_or_default().to_owned()
}

fn note(entry: &Entry) -> String {
    let bars = if entry.random {
        "; bars: range of the seeds or runs"
    } else {
        ""
    };
    format!("{}{bars}", entry.title)
}

/// The axis of the values in this unit. It begins at 0, unless all values are within a tenth of the largest. Those that
/// differ by less than a thousandth are equal for the reader, too.
fn value_axis(entry: &Entry, unit: &str, series: &[Series]) -> Axis {
    let values = || {
        series
            .iter()
            .flat_map(|one| &one.points)
            .flat_map(|point| [point.low, point.high])
    };
    let low = values().fold(f64::INFINITY, f64::min);
    let high = values().fold(f64::NEG_INFINITY, f64::max);
    let close = low > 0.0 && (0.001 * high..0.1 * high).contains(&(high - low));
    let wide = low > 0.0 && high > 200.0 * low;
    Axis {
        label: entry.quantity(unit),
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

/// The same in the order of their numbers, if all are numbers.
fn sorted<'a>(all: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut all = distinct(all);
    let number = |text: &String| text.parse::<f64>();
    if all.iter().all(|text| number(text).is_ok()) {
        all.sort_by(|a, b| {
            number(a)
                .unwrap_or(0.0)
                .total_cmp(&number(b).unwrap_or(0.0))
        });
    }
    all
}

/// The values of `{x}` of all rows of a drawing.
enum Horizontal {
    Numbers(Vec<f64>),
    Names(Vec<String>),
}

impl Horizontal {
    fn of(rows: &[(Values, &Score<'_>)]) -> Self {
        let all = distinct(rows.iter().map(|(values, _)| &values.x));
        let numbers: Option<Vec<f64>> = all.iter().map(|x| x.parse().ok()).collect();
        numbers.map_or(Self::Names(all), Self::Numbers)
    }

    /// The place of a value.
    fn place(&self, x: &str) -> f64 {
        match self {
            Self::Numbers(_) => x.parse().unwrap_or(0.0),
            Self::Names(names) => names.iter().position(|name| name == x).unwrap_or(0) as f64,
        }
    }
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
        value.trim().trim_start_matches([',', ' ']).clone_into(slot);
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
    fn an_axis_begins_at_zero_unless_values_are_close_but_different() {
        let text = "{ title: t, what: w, unit: Mb/s, lab: l, rows: [] }";
        let entry: Entry = serde_saphyr::from_str(text).unwrap();
        let scale = |values: [f64; 2]| {
            let points = values.map(|value| Point::new(0.0, value));
            let series = Series {
                name: String::new(),
                form: Stroke::Marks,
                points: points.into(),
                sign: None,
            };
            value_axis(&entry, "Mb/s", &[series]).scale
        };
        assert_eq!(scale([135.05, 135.36]), Scale::Linear { zero: false });
        assert_eq!(scale([135.040, 135.043]), Scale::Linear { zero: true });
        assert_eq!(scale([60.0, 135.0]), Scale::Linear { zero: true });
        assert_eq!(scale([0.5, 135.0]), Scale::Log);
    }

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
        assert_eq!(
            found("{x} octets{series}", "64 octets, MPOA"),
            wanted("64||MPOA")
        );
        assert_eq!(found("{x} octets{series}", "64 octets"), wanted("64||"));
        assert_eq!(found("{x} µs", " µs"), None);
        assert_eq!(found("{x}", "a"), wanted("a||"));
        assert_eq!(found("no place", "no place"), None);
    }
}
