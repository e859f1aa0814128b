//! Drawings of a sweep: columns over a key, maps of two keys, distributions over seeds.

use crate::args::PlotArgs;
use crate::exit::{self, Failure};
use crate::output::plain;
use crate::plot::words::{numbers, of_column};
use crate::plot::{Axis, Drawing, Figure, MOST_SERIES, Map, Point, Scale, Series, Stroke};
use aerostat_lab::files::{Named, write_whole};
use aerostat_sweep::mean::Moments;
use aerostat_sweep::shape::{Role, Shape};
use aerostat_sweep::variants::Variant;
use aerostat_wire::counted;
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Columns that a directory gets by default, of those that the table has.
const USUAL: [&str; 5] = [
    "throughput_mbps",
    "delay_us_mean",
    "delay_us_p99",
    "lost",
    "utilisation",
];

/// Labels that distinguish lines, of a table that has the first one; otherwise all labels do.
const NAMES: [&str; 2] = ["name", "phase"];

/// Drawings of a sweep, and their values so far.
pub(super) struct Plots {
    path: PathBuf,
    /// True: one drawing into one file.
    single: bool,
    map: bool,
    /// The keys with several values: the first one is on the horizontal axis.
    keys: Vec<Swept>,
    /// Columns: their places in rows, and names.
    columns: Vec<(usize, String)>,
    /// Places of the labels in rows, those first that distinguish lines.
    labels: Vec<usize>,
    /// Number of parts that distinguish lines so far.
    telling: usize,
    /// Labels of lines, and their values by column.
    lines: Vec<(Vec<String>, Vec<Cells>)>,
    /// The lab, in words.
    lab: String,
    seeds: bool,
}

/// The values of a column, a value for each seed, by combination of keys.
type Cells = Vec<Vec<f64>>;

/// A key with several values.
struct Swept {
    path: String,
    values: Vec<String>,
}

impl Plots {
    /// Checks the options before the first run; `None` if nothing is drawn.
    pub(super) fn new(
        args: &PlotArgs,
        shape: &Shape,
        variants: &[Variant],
        lab: &str,
    ) -> Result<Option<Self>, Failure> {
        let Some(path) = &args.plot else {
            return Ok(None);
        };
        let extension = path.extension().unwrap_or_default();
        let single = extension == "svg";
        if !single && !extension.is_empty() && !path.is_dir() {
            let text = format!("{}: a drawing is a file .svg", path.display());
            return Err(Failure::usage(text).hint("--plot FILE.svg, or a directory without a dot"));
        }
        let mut keys = swept(variants);
        if let Some(wanted) = &args.x {
            let at = keys.iter().position(|key| key.path == *wanted);
            let at = at.ok_or_else(|| {
                let known: Vec<&str> = keys.iter().map(|key| &*key.path).collect();
                Failure::usage(format!("--x {wanted}: no such key has several values"))
                    .hint(format!("these have: {}", known.join(", ")))
            })?;
            let key = keys.remove(at);
            keys.insert(0, key);
        }
        if args.map && keys.len() < 2 {
            let text = "--map needs two keys with several values";
            return Err(Failure::usage(text).hint("--set a.b=1,2 --set c.d=3,4"));
        }
        let (labels, telling) = labels(shape);
        Ok(Some(Self {
            path: path.clone(),
            single,
            map: args.map,
            keys,
            columns: columns(args, shape, single)?,
            labels,
            telling,
            lines: Vec::new(),
            lab: lab.to_owned(),
            seeds: variants
                .windows(2)
                .any(|pair| pair[0].settings == pair[1].settings),
        }))
    }

    /// The combinations of values of keys.
    fn cells(&self) -> usize {
        self.keys.iter().map(|key| key.values.len()).product()
    }

    /// Takes the rows of a run.
    pub(super) fn add(&mut self, variant: &Variant, rows: &[Vec<Value>]) {
        let mut cell = 0;
        for key in &self.keys {
            let mut settings = variant.settings.iter();
            let value = settings
                .find(|one| one.path == key.path)
                .map(|one| &one.value);
            let at = key.values.iter().position(|known| Some(known) == value);
            cell = cell * key.values.len() + at.unwrap_or(0);
        }
        let cells = self.cells();
        self.tell_apart(rows);
        for row in rows {
            let label = self.label(row);
            let known = self.lines.iter().position(|line| line.0 == label);
            let at = known.unwrap_or_else(|| {
                let empty = vec![vec![Vec::new(); cells]; self.columns.len()];
                self.lines.push((label, empty));
                self.lines.len() - 1
            });
            for ((place, _), values) in self.columns.iter().zip(&mut self.lines[at].1) {
                values[cell].extend(row.get(*place).and_then(Value::as_f64));
            }
        }
    }

    /// Lets further labels distinguish lines until the rows of a run differ, as far as the table tells them apart.
    fn tell_apart(&mut self, rows: &[Vec<Value>]) {
        let labels: Vec<Vec<String>> = rows.iter().map(|row| self.label(row)).collect();
        let mut groups = different(&labels, self.telling);
        let mut more = self.telling;
        while groups < rows.len() && more < self.labels.len() {
            more += 1;
            let finer = different(&labels, more);
            if finer > groups {
                groups = finer;
                self.move_forward(more - 1);
            }
        }
    }

    /// Lets the label with this number distinguish lines, too.
    fn move_forward(&mut self, number: usize) {
        let to = self.telling..=number;
        self.labels[to.clone()].rotate_right(1);
        self.lines
            .iter_mut()
            .for_each(|line| line.0[to.clone()].rotate_right(1));
        self.telling += 1;
    }

    /// The labels of a row.
    fn label(&self, row: &[Value]) -> Vec<String> {
        let label = self.labels.iter().filter_map(|at| row.get(*at));
        label.map(plain).collect()
    }

    /// Writes the drawings, and names them.
    pub(super) fn finish(mut self, quiet: bool) -> Result<bool, Failure> {
        self.join_lines();
        let mut written = 0;
        let mut left_out = 0;
        for (at, (_, column)) in self.columns.iter().enumerate() {
            let mut drawings = self.drawings(at, column);
            if self.single && drawings.len() > 1 {
                left_out = drawings.len() - 1;
                drawings.truncate(1);
            }
            for (name, drawing) in drawings {
                let path = match self.single {
                    true => self.path.clone(),
                    false => self.path.join(name),
                };
                write_drawing(&path, &drawing)?;
                written += 1;
                if !quiet {
                    exit::say(format_args!("{} is drawn", path.display()));
                }
            }
        }
        if written == 0 {
            let names: Vec<&str> = self.columns.iter().map(|column| &*column.1).collect();
            let names = names.join(", ");
            exit::say(format_args!(
                "warning: nothing is drawn: no row has a value of {names}"
            ));
        }
        if left_out > 0 {
            exit::say(format_args!(
                "warning: {} one file: a drawing has at most {MOST_SERIES} lines; --plot DIR has them all",
                counted(
                    left_out,
                    "more drawing does not fit",
                    "more drawings do not fit"
                )
            ));
        }
        Ok(written > 0 && left_out == 0)
    }

    /// Joins the lines that differ in nothing that distinguishes lines.
    fn join_lines(&mut self) {
        let mut joined: Vec<(Vec<String>, Vec<Cells>)> = Vec::new();
        for (mut label, columns) in std::mem::take(&mut self.lines) {
            label.truncate(self.telling);
            let Some(known) = joined.iter_mut().find(|line| line.0 == label) else {
                joined.push((label, columns));
                continue;
            };
            for (known, cells) in known
                .1
                .iter_mut()
                .flatten()
                .zip(columns.into_iter().flatten())
            {
                known.extend(cells);
            }
        }
        self.lines = joined;
    }

    /// The drawings of a column with the names of their files.
    fn drawings(&self, at: usize, column: &str) -> Vec<(String, Drawing)> {
        let maps = if self.map || (!self.single && self.keys.len() == 2) {
            self.maps(at, column)
        } else {
            Vec::new()
        };
        if self.map {
            return maps;
        }
        let series = if self.keys.is_empty() {
            self.distributions(at)
        } else {
            self.over_key(at)
        };
        let series: Vec<Series> = series
            .into_iter()
            .filter(|one| !one.points.is_empty())
            .collect();
        let mut lines = Vec::new();
        if !series.is_empty() {
            let parts = self.figure(column, series).parts().into_iter();
            lines.extend(parts.enumerate().map(|(number, part)| {
                let name = match number {
                    0 => format!("{column}.svg"),
                    more => format!("{column}-{}.svg", more + 1),
                };
                (name, part)
            }));
        }
        lines.extend(maps);
        lines
    }

    fn figure(&self, column: &str, series: Vec<Series>) -> Figure {
        let words = of_column(column);
        let values = || {
            series
                .iter()
                .flat_map(|one| &one.points)
                .map(|point| point.y)
        };
        let (title, x, y) = match self.keys.first() {
            None => {
                let x = Axis {
                    label: words.clone(),
                    scale: Scale::Linear { zero: false },
                };
                let y = Axis {
                    label: "share of seeds".into(),
                    scale: Scale::Share,
                };
                (format!("Distribution over seeds: {words}"), x, y)
            }
            Some(key) => {
                let y = Axis {
                    label: words.clone(),
                    scale: Scale::Linear {
                        zero: values().all(|value| value >= 0.0),
                    },
                };
                (format!("{words} over {}", key.path), key.axis().0, y)
            }
        };
        Figure {
            title: capital(&title),
            note: self.note(1),
            x,
            y,
            sideways: false,
            series,
            words: Vec::new(),
        }
    }

    /// Text below the title; `beyond` is the number of keys that the axes show.
    fn note(&self, beyond: usize) -> String {
        let mut note = self.lab.clone();
        for (key, short) in self.keys.iter().zip(self.short_keys()).skip(beyond) {
            if key.path != short {
                note += &format!("; {short} is {}", key.path);
            }
        }
        match (self.seeds, self.keys.is_empty(), beyond) {
            (false, _, _) => note,
            (true, true, _) => note + "; a step for each seed",
            (true, false, 1) => note + "; means over seeds, bars: their 95 % confidence intervals",
            (true, false, _) => note + "; means over seeds",
        }
    }

    /// The ends of the paths of the keys, as long as they must be to differ.
    fn short_keys(&self) -> Vec<String> {
        let end = |path: &str, parts: usize| {
            let all: Vec<&str> = path.split('.').collect();
            all[all.len().saturating_sub(parts)..].join(".")
        };
        let short = |key: &Swept| {
            let longest = key.path.split('.').count();
            let mut ends = (1..longest).map(|parts| (parts, end(&key.path, parts)));
            let alone = |parts: usize, own: &String| {
                let like = |other: &&Swept| end(&other.path, parts) == *own;
                self.keys.iter().filter(like).count() == 1
            };
            let found = ends.find(|(parts, own)| alone(*parts, own));
            found.map_or_else(|| key.path.clone(), |(_, end)| end)
        };
        self.keys.iter().map(short).collect()
    }

    /// Names of lines: labels that all lines share say nothing, nor do those that follow from the others.
    fn names(&self) -> Vec<String> {
        let labels: Vec<Vec<String>> = self.lines.iter().map(|line| line.0.clone()).collect();
        let all = different(&labels, self.telling);
        let mut kept: Vec<usize> = (0..self.telling).collect();
        for at in (0..self.telling).rev() {
            let without = kept.iter().filter(|kept| **kept != at);
            let without: Vec<usize> = without.copied().collect();
            let same = labels
                .iter()
                .all(|label| label.get(at) == labels[0].get(at));
            let of = |label: &Vec<String>| without.iter().map(|at| label[*at].clone()).collect();
            let rest: BTreeSet<Vec<String>> = labels.iter().map(of).collect();
            // Flow and phase stay, even if one of them would do.
            if same || (at >= NAMES.len() && rest.len() == all) {
                kept = without;
            }
        }
        let name = |label: &Vec<String>| {
            let parts = kept.iter().map(|at| label[*at].as_str());
            parts.collect::<Vec<_>>().join(", ")
        };
        labels.iter().map(name).collect()
    }

    /// A line for each label and combination of the keys that are not on the axis.
    fn over_key(&self, column: usize) -> Vec<Series> {
        let Some(key) = self.keys.first() else {
            return Vec::new();
        };
        let (axis, places) = key.axis();
        // Between names there is nothing.
        let form = match axis.scale {
            Scale::Names(_) => Stroke::Marks,
            Scale::Linear { .. } | Scale::Log | Scale::Share => Stroke::Joined,
        };
        let others = self.cells() / key.values.len();
        let mut all = Vec::new();
        for (name, (_, values)) in self.names().into_iter().zip(&self.lines) {
            for other in 0..others {
                let points = places.iter().enumerate().filter_map(|(at, x)| {
                    let moments = Moments::of(&values[column][at * others + other]);
                    let y = moments.mean()?;
                    let reach = moments.half_width().unwrap_or(0.0);
                    let (low, high) = (y - reach, y + reach);
                    Some(Point {
                        x: *x,
                        y,
                        low,
                        high,
                    })
                });
                let mut points: Vec<Point> = points.collect();
                points.sort_by(|a, b| a.x.total_cmp(&b.x));
                all.push(Series {
                    name: listed(&[&name, &self.other(1, other)]),
                    form,
                    points,
                    sign: None,
                });
            }
        }
        all
    }

    /// The values of the keys beyond those on the axes: `mpoa=true`.
    fn other(&self, beyond: usize, mut number: usize) -> String {
        let mut parts = Vec::new();
        let keys = self.keys.iter().zip(self.short_keys());
        for (key, short) in keys.skip(beyond).collect::<Vec<_>>().into_iter().rev() {
            parts.push(format!("{short}={}", key.values[number % key.values.len()]));
            number /= key.values.len();
        }
        parts.reverse();
        parts.join(", ")
    }

    /// The share of seeds up to each value.
    fn distributions(&self, column: usize) -> Vec<Series> {
        let series = self
            .names()
            .into_iter()
            .zip(&self.lines)
            .map(|(name, (_, values))| {
                let values = values[column].first().map_or(&[][..], Vec::as_slice);
                Series {
                    name,
                    form: Stroke::Steps,
                    points: shares(values),
                    sign: None,
                }
            });
        series.collect()
    }

    /// A map for each line: the first key to the right, the second one upwards.
    fn maps(&self, column: usize, words: &str) -> Vec<(String, Drawing)> {
        let [x, y, rest @ ..] = &self.keys[..] else {
            return Vec::new();
        };
        let others: usize = rest.iter().map(|key| key.values.len()).product();
        let mut all = Vec::new();
        for (number, (name, (_, values))) in self.names().into_iter().zip(&self.lines).enumerate() {
            for other in 0..others {
                let value = |column_at: usize, row: usize| {
                    let cell = (column_at * y.values.len() + row) * others + other;
                    Moments::of(&values[column][cell]).mean()
                };
                let rows = 0..y.values.len();
                let rows = rows.map(|row| (0..x.values.len()).map(|at| value(at, row)).collect());
                let title = match listed(&[&name, &self.other(2, other)]) {
                    what if what.is_empty() => of_column(words),
                    what => format!("{}: {what}", of_column(words)),
                };
                let map = Map {
                    title: capital(&title),
                    note: self.note(2),
                    x: (x.path.clone(), x.values.clone()),
                    y: (y.path.clone(), y.values.clone()),
                    label: of_column(words),
                    values: rows.collect(),
                };
                let file = format!("{words}-map-{}.svg", number * others + other + 1);
                all.push((file, Drawing::Map(map)));
            }
        }
        all
    }
}

impl Swept {
    /// The axis of the key, and the places of its values.
    fn axis(&self) -> (Axis, Vec<f64>) {
        let values: Vec<&str> = self.values.iter().map(String::as_str).collect();
        match numbers(&values) {
            Some((places, unit)) => {
                let label = match unit {
                    "" => self.path.clone(),
                    unit => format!("{} ({unit})", self.path),
                };
                let scale = Scale::fitting(&places);
                (Axis { label, scale }, places)
            }
            None => {
                let axis = Axis {
                    label: self.path.clone(),
                    scale: Scale::Names(self.values.clone()),
                };
                let places = (0..self.values.len()).map(|at| at as f64);
                (axis, places.collect())
            }
        }
    }
}

/// The places of the labels in rows, and how many of them distinguish lines from the beginning: the name and the phase,
/// or all labels of a table without names.
fn labels(shape: &Shape) -> (Vec<usize>, usize) {
    let all = shape.fields.iter().enumerate();
    let all = all.filter(|(_, field)| field.role == Role::Label);
    let (named, others): (Vec<_>, Vec<_>) =
        all.partition(|(_, field)| NAMES.contains(&field.name.as_str()));
    let telling = match named.iter().any(|(_, field)| field.name == NAMES[0]) {
        true => named.len(),
        false => named.len() + others.len(),
    };
    // The order of the table, unless the table has names.
    let mut places: Vec<usize> = named.iter().chain(&others).map(|(at, _)| *at).collect();
    if telling > named.len() {
        places.sort_unstable();
    }
    (places, telling)
}

/// Number of these lists that differ in their first `count` parts.
fn different(labels: &[Vec<String>], count: usize) -> usize {
    let parts = labels.iter().map(|label| label.get(..count));
    parts.collect::<BTreeSet<_>>().len()
}

/// Texts that are not empty, with commas between them.
fn listed(texts: &[&str]) -> String {
    let texts = texts.iter().filter(|text| !text.is_empty());
    texts.copied().collect::<Vec<_>>().join(", ")
}

/// Steps of the distribution of values: the share of them up to each.
pub(in crate::cmd::run) fn shares(values: &[f64]) -> Vec<Point> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let count = values.len() as f64;
    let steps = values
        .iter()
        .zip(1..)
        .map(|(value, rank)| Point::new(*value, f64::from(rank) / count));
    let first = values.first().map(|first| Point::new(*first, 0.0));
    first.into_iter().chain(steps).collect()
}

/// The keys with several values.
fn swept(variants: &[Variant]) -> Vec<Swept> {
    let paths = variants.first().map(|first| first.settings.iter());
    let paths = paths.into_iter().flatten().map(|one| one.path.clone());
    let keys = paths.enumerate().map(|(at, path)| {
        let mut values: Vec<String> = Vec::new();
        for one in variants
            .iter()
            .filter_map(|variant| variant.settings.get(at))
        {
            if values.last() != Some(&one.value) && !values.contains(&one.value) {
                values.push(one.value.clone());
            }
        }
        Swept { path, values }
    });
    keys.filter(|key| key.values.len() > 1).collect()
}

/// The columns to draw.
fn columns(args: &PlotArgs, shape: &Shape, single: bool) -> Result<Vec<(usize, String)>, Failure> {
    let measures = || {
        let all = shape.fields.iter().enumerate();
        all.filter(|(_, field)| field.role == Role::Measure)
    };
    let find = |name: &str| {
        let mut all = measures();
        all.find(|(_, field)| field.name == name)
            .map(|(at, _)| (at, name.to_owned()))
    };
    let known = || {
        let names: Vec<&str> = measures().map(|(_, field)| field.name.as_str()).collect();
        names.join(", ")
    };
    if args.y.is_empty() {
        let mut usual: Vec<(usize, String)> = USUAL.iter().filter_map(|name| find(name)).collect();
        usual.truncate(if single { 1 } else { USUAL.len() });
        return match usual.is_empty() {
            true => Err(Failure::usage("--plot needs a column of this table")
                .hint(format!("--y COLUMN, one of {}", known()))),
            false => Ok(usual),
        };
    }
    if single && args.y.len() > 1 {
        let text = "--y has several columns, and one file has one drawing";
        return Err(Failure::usage(text).hint("--plot DIR has a file for each column"));
    }
    let column = |name: &String| {
        find(name).ok_or_else(|| {
            let text = format!("--y {name}: the table has no such number");
            Failure::usage(text).hint(format!("columns with numbers are {}", known()))
        })
    };
    args.y.iter().map(column).collect()
}

/// Writes a drawing, completely or not at all.
pub(in crate::cmd) fn write_drawing(path: &Path, drawing: &Drawing) -> Result<(), Failure> {
    let svg = drawing.svg().map_err(Failure::failed)?;
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let made = folder.map_or(Ok(()), std::fs::create_dir_all);
    let written =
        made.and_then(|()| write_whole(path, Named::ByUser, |out| out.write_all(svg.as_bytes())));
    written.map_err(|error| Failure::failed(format!("{}: {error}", path.display())))
}

/// The text with a capital letter.
fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters
        .next()
        .map(|letter| letter.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}
