//! Drawings of a sweep: columns over a key, maps of two keys, distributions over seeds.

use super::super::many::variants::Variant;
use super::mean::Moments;
use super::shape::{Role, Shape};
use crate::args::PlotArgs;
use crate::cmd::run::files::write_whole;
use crate::exit::{self, Failure};
use crate::output::plain;
use crate::plot::words::{numbers, of_column};
use crate::plot::{Axis, Drawing, Figure, MOST_SERIES, Map, Point, Scale, Series, Stroke};
use serde_json::Value;
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

/// Labels that distinguish lines, where a table has them; otherwise all labels do.
const NAMES: [&str; 2] = ["name", "phase"];

/// What is drawn, and its values so far.
pub(super) struct Plots {
    path: PathBuf,
    /// True: one drawing into one file.
    single: bool,
    map: bool,
    /// The keys with several values: the first one is on the horizontal axis.
    keys: Vec<Swept>,
    /// Columns: their places in rows, and names.
    columns: Vec<(usize, String)>,
    /// Places of the labels that distinguish lines.
    labels: Vec<usize>,
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
        let field = |name: &str| shape.fields.iter().position(|field| field.name == name);
        let labels: Vec<usize> = NAMES.iter().filter_map(|name| field(name)).collect();
        let all = shape.fields.iter().enumerate();
        let all = all
            .filter(|(_, field)| field.role == Role::Label)
            .map(|(at, _)| at);
        Ok(Some(Self {
            path: path.clone(),
            single,
            map: args.map,
            keys,
            columns: columns(args, shape, single)?,
            labels: if labels.is_empty() {
                all.collect()
            } else {
                labels
            },
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
        for row in rows {
            let label = self.labels.iter().filter_map(|at| row.get(*at)).map(plain);
            let label: Vec<String> = label.collect();
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

    /// Writes the drawings, and names them.
    pub(super) fn finish(self, quiet: bool) -> Result<bool, Failure> {
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
                "warning: {left_out} more drawings do not fit one file: a drawing has at most {MOST_SERIES} lines; \
                 --plot DIR has them all"
            ));
        }
        Ok(written > 0 && left_out == 0)
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
        let lines = series
            .chunks(MOST_SERIES)
            .enumerate()
            .map(|(number, series)| {
                let name = match number {
                    0 => format!("{column}.svg"),
                    more => format!("{column}-{}.svg", more + 1),
                };
                (name, Drawing::Lines(self.figure(column, series.to_vec())))
            });
        lines.chain(maps).collect()
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
            note: self.note(),
            x,
            y,
            sideways: false,
            series,
        }
    }

    fn note(&self) -> String {
        match (self.seeds, self.keys.is_empty()) {
            (false, _) => self.lab.clone(),
            (true, true) => format!("{}; a step for each seed", self.lab),
            (true, false) => {
                let lab = &self.lab;
                format!("{lab}; means over seeds, bars: 95 % confidence intervals of the means")
            }
        }
    }

    /// Names of lines: labels that all lines share say nothing.
    fn names(&self) -> Vec<String> {
        let differs = |at: usize| {
            let first = self.lines.first().and_then(|line| line.0.get(at));
            self.lines.iter().any(|line| line.0.get(at) != first)
        };
        let name = |line: &(Vec<String>, _)| {
            let parts = line.0.iter().enumerate().filter(|(at, _)| differs(*at));
            parts
                .map(|(_, part)| part.as_str())
                .collect::<Vec<_>>()
                .join(", ")
        };
        self.lines.iter().map(name).collect()
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
                let parts = [name.clone(), self.other(other)];
                let parts = parts.into_iter().filter(|part| !part.is_empty());
                all.push(Series {
                    name: parts.collect::<Vec<_>>().join(", "),
                    form,
                    points,
                });
            }
        }
        all
    }

    /// The values of the keys that are not on the axis: `mpoa=true`.
    fn other(&self, mut number: usize) -> String {
        let mut parts = Vec::new();
        for key in self.keys.iter().skip(1).rev() {
            parts.push(format!(
                "{}={}",
                key.path,
                key.values[number % key.values.len()]
            ));
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
                let title = match name.is_empty() {
                    true => of_column(words),
                    false => format!("{}: {name}", of_column(words)),
                };
                let map = Map {
                    title: capital(&title),
                    note: self
                        .note()
                        .replace(", bars: 95 % confidence intervals of the means", ""),
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
    let written = made.and_then(|()| write_whole(path, |out| out.write_all(svg.as_bytes())));
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
