//! Models of rows: the runs of labs that they need, several at a time, each of them once.

use super::catalogue::{self, Entry, Files, OfAll, Parameters, Row, Spread, Take};
use super::drawings::trace::Tables;
use super::kept::{self, Kept};
use crate::cmd::pool::Pool;
use crate::exit::{Exit, Failure};
use crate::interrupt::Interrupt;
use aerostat_lab::event::Event;
use aerostat_lab::results::{Document, Time};
use aerostat_lab::{Checked, Override};
use aerostat_node::inspect::{Table, Value};
use aerostat_node::rows;
use aerostat_sim::run::{Watcher, run};
use aerostat_sweep::store::Key;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

/// One run: the lab, the changes of it, the seed. Rows that need the same run share it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Run {
    lab: String,
    changes: Vec<(String, String)>,
    seed: u64,
}

/// The value of a row in one seed, and how it follows from runs.
pub(super) struct Plan {
    /// A run for each step, or one.
    runs: Vec<Run>,
    /// The printed step of each run; empty for a row without steps.
    steps: Vec<f64>,
    /// Limit for the values of the steps before the first that counts.
    limit: f64,
    take: Take,
    /// Seconds beside the transfer, for each unit of a rate.
    later: f64,
}

/// The values of a row, a value for each seed.
pub(super) type Values = Vec<f64>;

/// How runs are made.
pub(super) struct Work<'a> {
    pub(super) files: &'a Files,
    pub(super) parameters: &'a Parameters,
    /// Values that are finished already, and where others are kept.
    pub(super) kept: Option<&'a Kept>,
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
        let drawn = |at: usize| {
            let (entry, row) = &rows[at];
            entry.traces.iter().any(|trace| trace.is_of(&row.row))
        };
        let flat: Vec<&Plan> = plans.iter().flatten().collect();
        let mut found = match self.kept {
            Some(kept) => kept.find(&flat, self.files)?,
            None => vec![None; flat.len()],
        };
        let mut wanted: BTreeMap<&Run, BTreeSet<&str>> = BTreeMap::new();
        let is_drawn = (0..rows.len()).flat_map(|at| plans[at].iter().map(move |_| drawn(at)));
        for ((plan, found), is_drawn) in flat.iter().zip(&found).zip(is_drawn) {
            for run in plan.runs.iter().filter(|_| found.is_none() || is_drawn) {
                wanted.entry(run).or_default().insert(&plan.take.table);
            }
        }
        let wanted: Vec<(&Run, BTreeSet<&str>)> = wanted.into_iter().collect();
        let place = |run: &Run| wanted.binary_search_by(|(known, _)| (*known).cmp(run)).ok();
        // The plans that can be finished after each run.
        let mut ready: Vec<Vec<usize>> = vec![Vec::new(); wanted.len()];
        for (at, plan) in flat.iter().enumerate() {
            let last = plan.runs.iter().filter_map(place).max();
            if let Some(last) = last.filter(|_| found[at].is_none()) {
                ready[last].push(at);
            }
        }
        let results = self.results(&wanted, &mut |results| {
            for at in &ready[results.len() - 1] {
                let plan = flat[*at];
                let value = plan.value(|run| results.get(place(run)?))?;
                found[*at] = Some(value);
                if let Some(kept) = self.kept {
                    kept.add(plan, value, self.files)?;
                }
            }
            Ok(())
        })?;
        let mut each = found.into_iter().map(|found| found.unwrap_or(f64::NAN));
        let values = plans
            .iter()
            .map(|plans| each.by_ref().take(plans.len()).collect());
        let mut values: Vec<Values> = values.collect();
        combine(rows, &mut values);
        for ((entry, _), values) in rows.iter().zip(&mut values) {
            if let Some(spread) = entry.spread.filter(|_| !values.is_empty()) {
                *values = vec![spread.of(values)];
            }
        }
        let mut tables = Tables::new();
        for (at, ((entry, row), plans)) in rows.iter().zip(&plans).enumerate() {
            // The first run stands for the others: a drawing of all of them is no longer legible.
            if let Some(plan) = plans.first().filter(|_| drawn(at)) {
                let key = (entry.name.clone(), row.row.clone());
                let first = plan.runs.first().and_then(place);
                let ran = first.and_then(|at| results.get(at));
                let table = ran.and_then(|ran| ran.table(&plan.take));
                tables.extend(table.map(|table| (key, plan.take.filtered(table))));
            }
        }
        Ok((values, tables))
    }

    fn plan(&self, entry: &Entry, row: &Row, seed: u64) -> Result<Plan, Failure> {
        let changes = catalogue::all_filled(entry.changes(row), self.parameters)?;
        let with = |more: Vec<(String, String)>| Run {
            lab: entry.lab(row).to_owned(),
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

    /// The wanted tables of all runs, in their order; `each` is called after each run.
    fn results(
        &self,
        wanted: &[(&Run, BTreeSet<&str>)],
        each: &mut dyn FnMut(&[Ran]) -> Result<(), Failure>,
    ) -> Result<Vec<Ran>, Failure> {
        let pool = Pool::new(wanted.len(), self.jobs);
        let mut results = Ok(Vec::with_capacity(wanted.len()));
        let (files, interrupt) = (self.files, self.interrupt);
        let work = |at: usize| {
            let (run, tables) = &wanted[at];
            run.results(tables, files, interrupt)
        };
        pool.all(&work, &|| (), |_, found| {
            let Ok(all) = &mut results else {
                return;
            };
            let done = found.and_then(|found| {
                all.push(found);
                each(all)
            });
            (self.progress)(all.len(), wanted.len());
            if let Err(failure) = done {
                results = Err(self.told(failure));
                pool.stop();
            }
        });
        results
    }

    /// A failure; after an interruption with what remains.
    fn told(&self, failure: Failure) -> Failure {
        match (self.interrupt.has_come(), self.kept) {
            (false, _) => failure,
            (true, None) => failure.hint("--keep FILE keeps what is finished"),
            (true, Some(_)) => failure.hint("the same command does what is not finished"),
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

/// Events that rows may take beside the milestones.
const DETAILS: [&str; 1] = ["signalling.released"];

rows! {
    /// One row for each event of a run.
    struct EventRow: "events" for (seen: &Event) {
        /// Name of the event.
        event: String = seen.event.clone(),
        /// The node.
        node: String = seen.node.clone(),
        /// Time of the event, s.
        time: f64 = seen.time,
        /// Values for programs; a row of a paper takes them as columns.
        fields: BTreeMap<String, String> = seen.fields.clone(),
    }
}

/// Parts of a run from which rows may take values.
#[derive(Clone, Debug, Default)]
pub(super) struct Ran {
    tables: Vec<Table>,
}

impl From<Vec<Table>> for Ran {
    fn from(tables: Vec<Table>) -> Self {
        Self { tables }
    }
}

impl Ran {
    /// The table from which a value is taken; `None` if the run has none.
    fn table(&self, take: &Take) -> Option<&Table> {
        self.tables
            .iter()
            .find(|table| table.info.name == take.table)
    }
}

/// The value of a row in a column, such as `delay_us.max`; or of an event, whose fields are columns, too.
fn value<'a>(table: &Table, row: &'a [Value], column: &str) -> &'a Value {
    let path = match column.split_once('.') {
        Some((group, column)) => (group, Some(column)),
        None => (column, None),
    };
    match table.cell(row, path) {
        Value::None => table.cell(row, ("fields", Some(column))),
        found => found,
    }
}

/// Collects the milestones of a run, and ends it early.
struct Listener<'a> {
    events: Vec<EventRow>,
    interrupt: &'a Interrupt,
}

impl Watcher for Listener<'_> {
    fn event(&mut self, event: &Event) {
        if event.milestone || DETAILS.contains(&&*event.event) {
            self.events.push(EventRow::of(event));
        }
    }
    fn interrupted(&self) -> bool {
        self.interrupt.has_come()
    }
}

impl Run {
    /// The tables of this run that are wanted.
    fn results(
        &self,
        tables: &BTreeSet<&str>,
        files: &Files,
        interrupt: &Interrupt,
    ) -> Result<Ran, Failure> {
        let changes = self.changes.iter();
        let changes = changes.map(|(path, value)| format!("{path}={value}"));
        let changes = changes.chain([format!("seed={}", self.seed)]);
        let changes: Vec<Override> = changes.map(Override::from).collect();
        let checked = aerostat_lab::parse(&self.lab, files.lab(&self.lab)?, &changes)
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
        let document = Document::new(&checked, &changes, Time::Virtual, &report);
        let mut kept = document.into_tables();
        kept.retain(|table| tables.contains(table.info.name));
        kept.push(Table::of(listener.events));
        Ok(Ran { tables: kept })
    }
}

impl Plan {
    /// Its seed, which all runs share.
    pub(super) fn seed(&self) -> u64 {
        self.runs.first().map_or(0, |run| run.seed)
    }

    /// Key of its value.
    pub(super) fn key(&self, files: &Files) -> Result<Key, Failure> {
        let lab = self.runs.first().map_or("", |run| &run.lab);
        let runs = self.runs.iter();
        let runs = runs.map(|run| json!([run.lab, run.changes, run.seed]));
        let Self {
            steps,
            limit,
            take,
            later,
            ..
        } = self;
        let taken = format!("{take:?} {steps:?} {limit:?} {later:?}");
        Ok(kept::key(files.lab(lab)?, &runs.collect(), &taken))
    }

    fn value<'a>(&self, of: impl Fn(&Run) -> Option<&'a Ran>) -> Result<f64, Failure> {
        if self.steps.is_empty() {
            return self.taken(self.runs.first().and_then(of));
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
    fn taken(&self, ran: Option<&Ran>) -> Result<f64, Failure> {
        let value = self.take.of(ran)?;
        Ok(match &self.take.later {
            None => value,
            Some(_) => 1.0 / (1.0 / value + self.later),
        })
    }
}

impl Take {
    /// True for a row from which the value is taken.
    fn fits(&self, table: &Table, row: &[Value]) -> bool {
        let mut wanted = self.wanted.iter();
        wanted.all(|(column, text)| match value(table, row, column) {
            Value::Text(found) => found == text,
            Value::None => false,
            other => other.to_string() == *text,
        })
    }

    /// The table with those rows alone.
    fn filtered(&self, table: &Table) -> Table {
        let mut table = table.clone();
        let all = std::mem::take(&mut table.rows).into_iter();
        table.rows = all.filter(|row| self.fits(&table, row)).collect();
        table
    }

    /// The value in the results of a run, without what a program takes beside the transfer.
    pub(super) fn of(&self, ran: Option<&Ran>) -> Result<f64, Failure> {
        let Some(table) = ran.and_then(|ran| ran.table(self)) else {
            return match self.of_all {
                Some(of_all) => Ok(of_all.of(&[]) * self.scale),
                None => Err(self.missing(&self.column)),
            };
        };
        let mut fitting = table.rows.iter().filter(|row| self.fits(table, row));
        let in_time = |row: &&Vec<Value>| {
            let time = value(table, row, "time_s").number();
            time.zip(self.until)
                .is_some_and(|(time, most)| time <= most)
        };
        let found = |row: Option<&Vec<Value>>| {
            let row = row.ok_or_else(|| self.missing(&self.column))?;
            self.value(table, row)
        };
        let value = match self.of_all {
            None if self.until.is_some() => found(fitting.rfind(in_time))?,
            None => found(fitting.next())?,
            Some(OfAll::Count) => fitting.count() as f64,
            Some(of_all) => {
                let values = fitting.map(|row| found(Some(row)));
                of_all.of(&values.collect::<Result<Vec<f64>, _>>()?)
            }
        };
        Ok(value * self.scale)
    }

    fn missing(&self, column: &str) -> Failure {
        let (table, wanted) = (&self.table, &self.wanted);
        Failure::failed(format!(
            "no column {column} of table {table} where {wanted:?}"
        ))
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
    fn value(&self, table: &Table, row: &[Value]) -> Result<f64, Failure> {
        let number = |column: &str| {
            let found = match value(table, row, column) {
                Value::Text(text) => self.number(text),
                other => other.number(),
            };
            found.ok_or_else(|| self.missing(column))
        };
        let less = self.less.as_deref().map_or(Ok(0.0), number)?;
        Ok(number(&self.column)? - less)
    }
}

impl Spread {
    /// The value of at least one.
    fn of(self, values: &[f64]) -> f64 {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        match self {
            Self::MeanDifference => {
                values.iter().map(|value| (value - mean).abs()).sum::<f64>() / count
            }
            Self::Range => {
                let low = values.iter().copied().fold(f64::INFINITY, f64::min);
                values.iter().copied().fold(f64::NEG_INFINITY, f64::max) - low
            }
        }
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
