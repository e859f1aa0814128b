//! The runs of a sweep, which of them are done, and their table. Who makes the runs is Python's business.
//!
//! Points, the store of runs and the table are those of `aerostat sweep`: the same directory can be continued by either
//! of them, and the tables have the same octets.

use crate::lab::{Lab, overrides};
use crate::run::{self, Bounds, Ending};
use crate::table::Table;
use aerostat_lab::Override;
use aerostat_lab::results;
use aerostat_node::inspect::TableInfo;
use aerostat_sweep::failure::{Failure, Kind};
use aerostat_sweep::identity;
use aerostat_sweep::points::{self, MOST};
use aerostat_sweep::shape::{Field, Per, Shape};
use aerostat_sweep::store::{Keeper, Key, Place, Record, SWEEP, Store};
use aerostat_sweep::table::{Form, Sink, Writer};
use aerostat_sweep::variants::{Setting, Variant, too_many, with_seeds};
use pyo3::exceptions::{PyException, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};

pyo3::create_exception!(
    aerostat,
    SweepError,
    PyException,
    "A sweep that did not come to its end."
);

/// The file of runs: that of the command, with the words of Python in messages.
const KEEPER: Keeper = Keeper {
    option: "directory",
    ..SWEEP
};

/// Sweeps of this process, by the numbers that their runs carry.
static ENDINGS: Mutex<BTreeMap<u64, Ending>> = Mutex::new(BTreeMap::new());

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn raised(failure: Failure) -> PyErr {
    let hint = failure.hint.map(|hint| format!(" ({hint})"));
    let text = failure.message + &hint.unwrap_or_default();
    match failure.kind {
        Kind::Usage => PyValueError::new_err(text),
        _ => SweepError::new_err(text),
    }
}

/// A sweep: its runs, their identities, and those that are done.
#[pyclass(frozen, name = "_Sweep", module = "aerostat._aerostat")]
pub(crate) struct Sweep {
    lab: Py<Lab>,
    until: Option<String>,
    info: &'static TableInfo,
    variants: Vec<Variant>,
    /// Identities of the labs of the runs.
    keys: Vec<String>,
    shape: Shape,
    /// The number that runs of this sweep carry.
    token: u64,
    kept: Mutex<Kept>,
}

/// Runs that are done.
#[derive(Default)]
struct Kept {
    store: Option<Store>,
    places: Vec<Option<Place>>,
    stale: usize,
    bad: Option<String>,
}

impl Kept {
    fn store(&mut self) -> PyResult<&mut Store> {
        let closed = || PyRuntimeError::new_err("the sweep is not open");
        self.store.as_mut().ok_or_else(closed)
    }
}

/// Words of a sweep for Python: what a row is about.
fn per(word: &str) -> PyResult<Per> {
    match word {
        "flow" => Ok(Per::Flow),
        "run" => Ok(Per::Run),
        other => Err(PyValueError::new_err(format!(
            "per is 'flow' or 'run', and not '{other}'"
        ))),
    }
}

/// A list of keys with their values.
type Point = Vec<(String, String)>;

/// The runs: each point with each seed.
fn variants(
    points: Vec<Point>,
    seeds: Option<&str>,
    until: Option<&str>,
) -> PyResult<Vec<Variant>> {
    if points.len() > MOST {
        return Err(raised(too_many(&points.len().to_string(), MOST)));
    }
    let of = |point: Point| Variant {
        settings: point
            .into_iter()
            .map(|(path, value)| Setting {
                option: "set",
                path,
                value,
            })
            .collect(),
        seed: None,
    };
    let all: Vec<Variant> = points.into_iter().map(of).collect();
    let paths = |variant: &Variant| {
        let settings = variant.settings.iter();
        settings.map(|one| one.path.clone()).collect::<Vec<_>>()
    };
    let first = all.first().map(paths).unwrap_or_default();
    if all.iter().any(|variant| paths(variant) != first) {
        let text = "all points have the same keys in the same order";
        return Err(PyValueError::new_err(text));
    }
    if first.iter().any(|path| path == "seed") {
        let text = "the grid cannot vary the seed: give seeds";
        return Err(PyValueError::new_err(text));
    }
    let all = with_seeds(all, seeds, MOST).map_err(raised)?;
    points::distinct(all, until).map_err(raised)
}

#[pymethods]
impl Sweep {
    #[new]
    #[expect(
        clippy::too_many_arguments,
        reason = "the function in Python names them"
    )]
    fn new(
        py: Python<'_>,
        lab: Py<Lab>,
        points: Vec<Point>,
        seeds: Option<&str>,
        until: Option<String>,
        table: &str,
        per_word: &str,
        mean: bool,
        token: u64,
    ) -> PyResult<Self> {
        let info = results::find(table)
            .ok_or_else(|| PyValueError::new_err(format!("results have no table '{table}'")))?;
        let variants = variants(points, seeds, until.as_deref())?;
        let shape = Shape::new(info, per(per_word)?, mean, &variants);
        let mut sweep = Self {
            lab,
            until,
            info,
            variants,
            keys: Vec::new(),
            shape,
            token,
            kept: Mutex::default(),
        };
        sweep.keys = sweep.check(py)?;
        Ok(sweep)
    }

    /// Checks the lab with the values of each point; seeds are no part of it, because each of them is valid.
    fn check(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let lab = self.lab.get();
        let mut keys: Vec<String> = Vec::with_capacity(self.variants.len());
        for (at, variant) in self.variants.iter().enumerate() {
            py.check_signals()?;
            let before = at.checked_sub(1).map(|before| &self.variants[before]);
            let same = before.is_some_and(|before| before.settings == variant.settings);
            let key = match keys.last().filter(|_| same) {
                Some(key) => key.clone(),
                None => {
                    let set = self.changes(variant);
                    let checked = py.detach(|| run::check(&lab.file, &lab.text, &set));
                    identity(&checked.map_err(|mistake| mistake.raise(py))?)
                }
            };
            keys.push(key);
        }
        Ok(keys)
    }

    /// Number of runs.
    fn __len__(&self) -> usize {
        self.variants.len()
    }

    /// Name of a run: its keys with their values, and its seed.
    fn name(&self, number: usize) -> PyResult<String> {
        let variant = self.variants.get(number);
        let variant = variant.map(ToString::to_string);
        variant.ok_or_else(|| PyValueError::new_err(format!("there is no run {number}")))
    }

    /// Changes and seed of a run: a worker needs them and the lab.
    fn run(&self, number: usize) -> PyResult<(Vec<String>, Option<u64>)> {
        let variant = self.variants.get(number);
        let variant =
            variant.ok_or_else(|| PyValueError::new_err(format!("there is no run {number}")))?;
        let settings = variant.overrides();
        let changes = settings.iter().map(|change| change.change().to_owned());
        Ok((changes.collect(), variant.seed))
    }

    /// Opens the file of runs, and finds those that are done: the numbers of the others.
    fn open(&self, path: PathBuf, again: bool) -> PyResult<Vec<usize>> {
        let mut store = Store::open(&path, again, KEEPER).map_err(raised)?;
        let keys = (0..self.variants.len()).map(|number| self.key(number));
        let found = store.find(keys).map_err(raised)?;
        let places = found.places.iter().enumerate();
        let todo = places.filter(|(_, place)| place.is_none());
        let todo = todo.map(|(number, _)| number).collect();
        *locked(&self.kept) = Kept {
            store: Some(store),
            places: found.places,
            stale: found.stale,
            bad: found.bad.map(|(_, first)| first),
        };
        locked(&ENDINGS).insert(self.token, Ending::default());
        Ok(todo)
    }

    /// Runs in the file that are of another lab, with other options or of another version.
    fn stale(&self) -> usize {
        locked(&self.kept).stale
    }

    /// The first line of the file that is no run, and why.
    fn bad(&self) -> Option<String> {
        locked(&self.kept).bad.clone()
    }

    /// Wishes the end of runs of this sweep in this process.
    fn end(&self) {
        if let Some(ending) = locked(&ENDINGS).get(&self.token) {
            ending.store(true, Ordering::Relaxed);
        }
    }

    /// Closes the file of runs.
    fn close(&self) {
        locked(&ENDINGS).remove(&self.token);
        locked(&self.kept).store = None;
    }

    /// Keeps a run that has ended, as [`point()`] gives it.
    fn add(&self, number: usize, record: &str) -> PyResult<()> {
        let record: Record = serde_json::from_str(record)
            .map_err(|error| SweepError::new_err(format!("a worker gave no run: {error}")))?;
        let mut kept = locked(&self.kept);
        let place = kept.store()?.add(&self.key(number), &record);
        kept.places[number] = Some(place.map_err(raised)?);
        Ok(())
    }

    /// Writes the table into a file, which appears completely or not at all; true if a run has warnings.
    fn write(&self, py: Python<'_>, path: PathBuf) -> PyResult<bool> {
        let extension = path.extension().unwrap_or_default().to_string_lossy();
        let form = Form::of_extension(&extension).ok_or_else(|| {
            let text = format!("{}: a table is .csv, .jsonl or .parquet", path.display());
            PyValueError::new_err(text)
        })?;
        py.detach(|| {
            let mut warned = false;
            let written = Sink::file(&path, &form, &self.shape, |sink| {
                warned = self.fill(sink)?;
                Ok(())
            });
            written.map_err(raised).map(|()| warned)
        })
    }

    /// The table as columns.
    fn table(&self, py: Python<'_>) -> PyResult<Table> {
        py.detach(|| {
            let mut rows = Vec::new();
            let mut sink = Sink::into(Box::new(Collected(&mut rows)), &self.shape);
            let filled = self.fill(&mut sink).and_then(|_| sink.finish());
            filled.map_err(raised)?;
            Table::of_rows(&self.info.flat_name(), &self.shape.written(), rows)
        })
    }
}

impl Sweep {
    /// The changes of a run, without its seed.
    fn changes(&self, variant: &Variant) -> Vec<Override> {
        let mut all = overrides(&self.lab.get().set);
        all.extend(variant.overrides());
        all.extend(of_end(self.until.as_deref()));
        all
    }

    fn key(&self, number: usize) -> Key {
        Key {
            lab: self.keys[number].clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            table: self.info.flat_name(),
            run: self.variants[number].object(),
        }
    }

    /// The rows of all runs that are done, in their order; true if one of them has warnings.
    fn fill(&self, sink: &mut Sink<'_>) -> Result<bool, Failure> {
        let mut kept = locked(&self.kept);
        let mut warned = false;
        for number in 0..self.variants.len() {
            let place = kept.places.get(number).copied().flatten();
            let (Some(place), Some(store)) = (place, &mut kept.store) else {
                continue;
            };
            let record = store.read(place)?;
            warned |= record.exit != 0;
            let rows = self.shape.rows(&self.variants[number], &record)?;
            sink.add(number, &self.variants, rows)?;
        }
        Ok(warned)
    }
}

/// The change that ends a run.
fn of_end(until: Option<&str>) -> Option<Override> {
    until.map(|until| Override::of("until", "until", until))
}

/// Rows in memory.
struct Collected<'a>(&'a mut Vec<Vec<Value>>);

impl Writer for Collected<'_> {
    fn row(&mut self, _fields: &[Field], row: Vec<Value>) -> Result<(), Failure> {
        self.0.push(row);
        Ok(())
    }
    fn finish(self: Box<Self>) -> Result<(), Failure> {
        Ok(())
    }
}

/// Makes a run of a sweep, in any process: its record as JSON.
#[pyfunction]
#[expect(
    clippy::too_many_arguments,
    reason = "the function in Python names them"
)]
pub(crate) fn point(
    py: Python<'_>,
    lab: &Lab,
    changes: Vec<String>,
    seed: Option<u64>,
    until: Option<&str>,
    table: &str,
    limit: Option<f64>,
    token: u64,
) -> PyResult<String> {
    let info = results::find(table)
        .ok_or_else(|| PyValueError::new_err(format!("results have no table '{table}'")))?;
    let mut set = overrides(&lab.set);
    set.extend(overrides(&changes));
    set.extend(seed.map(|seed| Override::of("seed", "seed", &seed.to_string())));
    set.extend(of_end(until));
    let ending = locked(&ENDINGS).get(&token).cloned();
    let done = py.detach(|| run::run(lab, &set, Bounds { limit, ending }));
    let done = done.map_err(|ended| ended.raise(py))?;
    let record = Record::of(&done.document, info, done.exit);
    serde_json::to_string(&record).map_err(|error| SweepError::new_err(error.to_string()))
}
