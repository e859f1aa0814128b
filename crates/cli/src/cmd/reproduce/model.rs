//! Models of rows: the runs of labs that they need, several at a time, each of them once.

use super::catalogue::{self, Entry, OfAll, Parameters, Row, Take};
use super::drawings::trace::Tables;
use crate::cmd::run::document::{Document, Time};
use crate::exit::{Exit, Failure};
use crate::interrupt::Interrupt;
use aerostat_lab::event::Event;
use aerostat_lab::{Checked, Override};
use aerostat_live::threads::crew;
use aerostat_sim::run::{Watcher, run};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// One run: the lab, the changes of it, the seed. Rows that need the same run share it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Run {
    lab: String,
    changes: Vec<(String, String)>,
    seed: u64,
}

/// The value of a row in one seed, and how it follows from runs.
struct Plan {
    /// A run for each step, or one.
    runs: Vec<Run>,
    /// The printed step of each run; empty for a row without steps.
    steps: Vec<f64>,
    /// What the steps before the first that counts have at most.
    limit: f64,
    take: Take,
    /// Seconds beside the transfer, for each unit of a rate.
    later: f64,
}

/// The values of a row, a value for each seed.
pub(super) type Values = Vec<f64>;

/// How runs are made.
pub(super) struct Work<'a> {
    pub(super) parameters: &'a Parameters,
    /// The seeds that the user names.
    pub(super) seeds: Option<&'a [u64]>,
    pub(super) jobs: usize,
    pub(super) interrupt: &'a Interrupt,
    /// Told after each run: how many are done, and how many there are.
    pub(super) progress: &'a (dyn Fn(usize, usize) + Sync),
}

impl Work<'_> {
    /// The values of all these rows, in their order.
    pub(super) fn values(&self, rows: &[(&Entry, &Row)]) -> Result<Vec<Values>, Failure> {
        Ok(self.models(rows)?.0)
    }

    /// The same, and the tables that drawings need.
    pub(super) fn models(&self, rows: &[(&Entry, &Row)]) -> Result<(Vec<Values>, Tables), Failure> {
        let plans = rows.iter().map(|(entry, row)| {
            let seeds = match self.seeds {
                _ if !entry.random => vec![1],
                Some(seeds) => seeds.to_vec(),
                None => (1..=entry.seeds).collect(),
            };
            // What is only printed has no run.
            let seeds = seeds.into_iter().filter(|_| entry.has_model(row));
            let plans = seeds.map(|seed| self.plan(entry, row, seed));
            plans.collect::<Result<Vec<_>, _>>()
        });
        let plans: Vec<Vec<Plan>> = plans.collect::<Result<_, _>>()?;
        let mut wanted: BTreeMap<&Run, BTreeSet<&str>> = BTreeMap::new();
        for plan in plans.iter().flatten() {
            for run in &plan.runs {
                wanted.entry(run).or_default().insert(&plan.take.table);
            }
        }
        let wanted: Vec<(&Run, BTreeSet<&str>)> = wanted.into_iter().collect();
        let results = self.results(&wanted)?;
        let of = |run: &Run| {
            let at = wanted.binary_search_by(|(known, _)| (*known).cmp(run));
            at.ok()
                .and_then(|at| results.get(at))
                .unwrap_or(&Value::Null)
        };
        let value = |plans: &Vec<Plan>| plans.iter().map(|plan| plan.value(of)).collect();
        let mut values = plans
            .iter()
            .map(value)
            .collect::<Result<Vec<Values>, _>>()?;
        combine(rows, &mut values);
        let mut tables = Tables::new();
        for ((entry, row), plans) in rows.iter().zip(&plans) {
            let is_drawn = entry.traces.iter().any(|trace| trace.is_of(&row.row));
            // The first run stands for the others: a drawing of all of them is no longer legible.
            if let Some(plan) = plans.first().filter(|_| is_drawn) {
                let found = plan.take.rows(plan.runs.first().map_or(&Value::Null, of));
                let key = (entry.name.clone(), row.row.clone());
                tables.insert(key, found.cloned().collect());
            }
        }
        Ok((values, tables))
    }

    fn plan(&self, entry: &Entry, row: &Row, seed: u64) -> Result<Plan, Failure> {
        let changes = catalogue::all_filled(entry.changes(row), self.parameters)?;
        let with = |more: Vec<(String, String)>| Run {
            lab: row.lab.as_ref().unwrap_or(&entry.lab).clone(),
            changes: changes.iter().cloned().chain(more).collect(),
            seed,
        };
        let (runs, steps) = match &row.steps {
            None => (vec![with(Vec::new())], Vec::new()),
            Some(steps) => {
                let runs = steps.of.iter().map(|step| {
                    let paths = [&steps.path].into_iter().chain(&steps.paths);
                    with(
                        paths
                            .map(|path| (path.clone(), step.value.clone()))
                            .collect(),
                    )
                });
                (
                    runs.collect(),
                    steps.of.iter().map(|step| step.at).collect(),
                )
            }
        };
        let take = entry.take(row)?.clone();
        let later = match &take.later {
            None => 0.0,
            Some(text) => {
                let text = catalogue::filled(text, self.parameters)?;
                let wrong = |_| Failure::failed(format!("'{text}' is not a number"));
                text.parse().map_err(wrong)?
            }
        };
        Ok(Plan {
            runs,
            steps,
            limit: row.steps.as_ref().map_or(0.0, |steps| steps.limit),
            take,
            later,
        })
    }

    /// The wanted tables of all runs, in their order.
    fn results(&self, wanted: &[(&Run, BTreeSet<&str>)]) -> Result<Vec<Value>, Failure> {
        let next = AtomicUsize::new(0);
        let done = AtomicUsize::new(0);
        let results = Mutex::new(vec![Value::Null; wanted.len()]);
        let failed: Mutex<Option<Failure>> = Mutex::new(None);
        let work = || {
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some((run, tables)) = wanted.get(at) else {
                    return;
                };
                match run.results(tables, self.interrupt) {
                    Ok(found) => lock(&results)[at] = found,
                    Err(failure) => {
                        next.store(wanted.len(), Ordering::Relaxed);
                        lock(&failed).get_or_insert(failure);
                        return;
                    }
                }
                (self.progress)(done.fetch_add(1, Ordering::Relaxed) + 1, wanted.len());
            }
        };
        thread::scope(|scope| {
            // Those threads that can be made help this one.
            let _ = crew(scope, self.jobs.min(wanted.len()), work);
        });
        match failed.into_inner().unwrap_or_else(|all| all.into_inner()) {
            Some(failure) => Err(failure),
            None => Ok(results.into_inner().unwrap_or_else(|all| all.into_inner())),
        }
    }
}

/// Takes the values of other rows away, or divides by them, seed by seed, where a row says so.
fn combine(rows: &[(&Entry, &Row)], values: &mut [Values]) {
    let plain = values.to_vec();
    let of = |entry: &Entry, row: &Row, reference: &str, seed: usize| {
        let wanted = row.referred(&entry.name, reference);
        let named = |(entry, row): &(&Entry, &Row)| (&*entry.name, &*row.row) == wanted;
        let other = rows.iter().position(named);
        let other = other.and_then(|at| plain.get(at)?.get(seed));
        other.copied().unwrap_or(f64::NAN)
    };
    for ((entry, row), values) in rows.iter().zip(values) {
        for (seed, value) in values.iter_mut().enumerate() {
            if let Some(minus) = &row.minus {
                *value -= of(entry, row, minus, seed);
            }
            if let Some(divisor) = &row.divided_by {
                *value /= of(entry, row, divisor, seed);
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|held| held.into_inner())
}

/// Events that rows may take beside the milestones.
const DETAILS: [&str; 1] = ["signalling.released"];

/// Collects the milestones of a run, and ends it early.
struct Listener<'a> {
    events: Vec<Value>,
    interrupt: &'a Interrupt,
}

impl Watcher for Listener<'_> {
    fn event(&mut self, event: &Event) {
        if event.milestone || DETAILS.contains(&&*event.event) {
            let mut row = json!({ "event": event.event, "node": event.node, "time": event.time });
            if let Value::Object(row) = &mut row {
                let fields = event.fields.iter();
                row.extend(fields.map(|(name, value)| (name.clone(), value.clone().into())));
            }
            self.events.push(row);
        }
    }
    fn interrupted(&self) -> bool {
        self.interrupt.has_come()
    }
}

impl Run {
    /// The tables of this run that are wanted.
    fn results(&self, tables: &BTreeSet<&str>, interrupt: &Interrupt) -> Result<Value, Failure> {
        let changes = self.changes.iter();
        let changes = changes.map(|(path, value)| format!("{path}={value}"));
        let changes = changes.chain([format!("seed={}", self.seed)]);
        let changes: Vec<Override> = changes.map(Override::from).collect();
        let checked = aerostat_lab::parse(&self.lab, catalogue::lab(&self.lab)?, &changes)
            .map(Checked::in_virtual_time)
            .map_err(|findings| Failure::failed(format!("{}: {findings}", self.lab)))?;
        let mut listener = Listener {
            events: Vec::new(),
            interrupt,
        };
        let report = run(&checked.lab, None, &mut listener)?;
        if interrupt.has_come() {
            return Err(Failure::new(Exit::Warnings, "interrupted"));
        }
        let document = Document::new(&checked, &changes, Time::Virtual, &report).json();
        let Value::Object(document) = document else {
            return Ok(Value::Null);
        };
        let kept = document.into_iter();
        let mut kept: Map<String, Value> =
            kept.filter(|(name, _)| tables.contains(&**name)).collect();
        kept.insert("events".into(), Value::Array(listener.events));
        Ok(Value::Object(kept))
    }
}

impl Plan {
    fn value<'a>(&self, of: impl Fn(&Run) -> &'a Value) -> Result<f64, Failure> {
        if self.steps.is_empty() {
            let run = self.runs.first();
            return self.taken(run.map_or(&Value::Null, of));
        }
        let mut best = 0.0;
        for (run, at) in self.runs.iter().zip(&self.steps) {
            if self.taken(of(run))? > self.limit {
                break;
            }
            best = *at;
        }
        Ok(best)
    }

    /// The value in the results of a run.
    fn taken(&self, results: &Value) -> Result<f64, Failure> {
        let value = self.take.of(results)?;
        Ok(match &self.take.later {
            None => value,
            Some(_) => 1.0 / (1.0 / value + self.later),
        })
    }
}

impl Take {
    /// The rows in the results of a run from which the value is taken.
    fn rows<'a>(&self, results: &'a Value) -> impl DoubleEndedIterator<Item = &'a Value> {
        let rows = results.get(&self.table).and_then(Value::as_array);
        let fits = |row: &&Value| {
            let mut wanted = self.wanted.iter();
            wanted.all(|(column, value)| match row.get(column) {
                Some(Value::String(text)) => text == value,
                Some(other) => other.to_string().as_str() == value.as_str(),
                None => false,
            })
        };
        rows.into_iter().flatten().filter(fits)
    }

    /// The value in the results of a run, without what a program takes beside the transfer.
    pub(super) fn of(&self, results: &Value) -> Result<f64, Failure> {
        let in_time = |row: &&Value| {
            let time = row.get("time_s").and_then(Value::as_f64);
            time.zip(self.until)
                .is_some_and(|(time, most)| time <= most)
        };
        let mut fitting = self.rows(results);
        let value = match self.of_all {
            None if self.until.is_some() => self.value(fitting.rfind(in_time))?,
            None => self.value(fitting.next())?,
            Some(OfAll::Count) => fitting.count() as f64,
            Some(of_all) => {
                let values = fitting.map(|row| self.value(Some(row)));
                of_all.of(&values.collect::<Result<Vec<f64>, _>>()?)
            }
        };
        Ok(value * self.scale)
    }
    /// The number that a text is, or that it has behind the words of `after`.
    fn number(&self, text: &str) -> Option<f64> {
        let Some(after) = &self.after else {
            return text.parse().ok();
        };
        let (_, rest) = text.split_once(after.as_str())?;
        let end = rest.find(|c: char| !c.is_ascii_digit());
        rest[..end.unwrap_or(rest.len())].parse().ok()
    }
    /// The value in a row of the table.
    fn value(&self, row: Option<&Value>) -> Result<f64, Failure> {
        let number = |column: &str| {
            let value = row.and_then(|row| column.split('.').try_fold(row, |at, key| at.get(key)));
            let value = value.and_then(|value| match value {
                Value::String(text) => self.number(text),
                other => other.as_f64(),
            });
            value.ok_or_else(|| {
                let (table, wanted) = (&self.table, &self.wanted);
                Failure::failed(format!(
                    "no column {column} of table {table} where {wanted:?}"
                ))
            })
        };
        let less = self.less.as_deref().map_or(Ok(0.0), number)?;
        Ok(number(&self.column)? - less)
    }
}

impl OfAll {
    /// The value of several rows; NaN without a row.
    fn of(self, values: &[f64]) -> f64 {
        let count = values.len() as f64;
        match self {
            Self::Count => count,
            Self::Used => values.iter().filter(|value| **value > 0.0).count() as f64,
            Self::Max => values.iter().copied().fold(f64::NAN, f64::max),
            Self::Beyond(bound) => {
                let beyond = values.iter().filter(|value| value.abs() > bound);
                100.0 * beyond.count() as f64 / count
            }
            Self::MeanWithin(bound) => {
                let within = values.iter().filter(|value| value.abs() <= bound);
                within.clone().sum::<f64>() / within.count() as f64
            }
        }
    }
}
