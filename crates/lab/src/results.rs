//! All results of a run, as named tables of rows under one head.
//!
//! The rows are structures ([`rows!`](aerostat_node::rows!)): a field is a column, and its comment is the meaning of
//! the column. From them follow the tables for people, JSON, CSV and the columns of sweeps, the [`schema`], and the
//! tables of docs/results.md. The tables of nodes are the rows of `aerostat inspect`. A new column is one field, which
//! says what it is made of.
//!
//! Nothing here needs an operating system: a page in a browser can have the same results.

mod flows;
mod network;
mod programs;
mod schema;
mod sent;
mod tables;
mod whole;

pub use flows::{Call, FairnessRow, FlowRow, Times, answered, fairness, throughput};
pub use network::OccupancyRow;
pub use programs::{AtpRow, ProgramRow, ShortcutRow, TesterRow, rows};
pub use schema::schema;
pub use tables::{FlatTable, columns, find, flat_value, tables};

use crate::report::{NodeState, RunReport};
use crate::{Checked, Override, settings};
use aerostat_node::inspect::{Row, Table, TableInfo};
use serde_json::{Map, Value, json};
use std::io;
use std::sync::Arc;

/// Name and version of the document. Columns may be added within a version; renaming or removing a column requires a
/// new version.
pub const SCHEMA: &str = "aerostat.run.v1";

/// Version of the order of columns in CSV: within a version, new columns come after all others of their table.
/// Version 2 has the order of `aerostat inspect` in the tables of nodes.
pub const ORDER: u32 = 2;

/// The kind of time in which a lab ran.
#[derive(Clone, Copy, Debug)]
pub enum Time {
    /// `aerostat run`.
    Virtual,
    /// `aerostat up`.
    Real,
}

impl Time {
    /// Its word in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Virtual => "virtual",
            Self::Real => "real",
        }
    }
}

/// The results of a lab. A lab in real time sends them to `aerostat down` in a form of its own.
#[derive(Clone, Debug, Default)]
pub struct Document {
    /// Description of the run.
    head: Map<String, Value>,
    /// Tables about the whole lab.
    tables: Vec<Table>,
    /// State of each node at the end: kinds of state, tables. The report has the same.
    nodes: Arc<Vec<NodeState>>,
}

impl Document {
    /// The results of `report`. `overrides` are the changes of the file that were given on the command line.
    #[must_use]
    pub fn new(checked: &Checked, overrides: &[Override], time: Time, report: &RunReport) -> Self {
        let lab = &checked.lab;
        let circuits = &report.circuits;
        let mut tables = vec![
            Table::of(flows::flows(lab, report)),
            Table::of(flows::losses(lab, &report.flows)),
            Table::of(fairness(lab, &report.flows)),
            Table::of(flows::deltas(lab, &report.flows)),
            Table::of(programs::shortcuts(report)),
            Table::of(programs::programs(&report.dialogues)),
            Table::of(programs::atp(&report.dialogues)),
            Table::of(programs::windows(&report.windows)),
            Table::of(programs::testers(&report.tested)),
            Table::of(network::vcs(lab, circuits)),
            Table::of(network::losses(lab, circuits)),
            Table::of(network::queues(lab, circuits)),
            Table::of(network::policers(lab, circuits)),
            Table::of(network::links(lab, circuits)),
            Table::of(network::occupancy(lab, &report.occupancy)),
        ];
        tables.retain(|table| !tables::is_rare(table.info) || !table.rows.is_empty());
        Self {
            head: head(checked, overrides, time, report),
            tables,
            nodes: Arc::clone(&report.nodes),
        }
    }

    /// Only the data for the tables for people: for a large lab all other data would take as much memory as the lab
    /// itself.
    #[must_use]
    pub fn for_people(report: &RunReport) -> Self {
        Self {
            tables: vec![
                Table::of(programs::shortcuts(report)),
                Table::of(programs::programs(&report.dialogues)),
                Table::of(programs::atp(&report.dialogues)),
            ],
            ..Self::default()
        }
    }

    /// Records whether the run was ended early.
    pub fn interrupted(&mut self, was: bool) {
        self.head.insert("interrupted".into(), was.into());
    }

    /// The description of the run.
    #[must_use]
    pub const fn head(&self) -> &Map<String, Value> {
        &self.head
    }

    /// The tables about the whole lab.
    #[must_use]
    pub fn into_tables(self) -> Vec<Table> {
        self.tables
    }

    /// The table about the whole lab with such rows; `None` if this lab has none.
    #[must_use]
    pub fn table<R: Row>(&self) -> Option<&Table> {
        let mut tables = self.tables.iter();
        tables.find(|table| table.info.name == R::TABLE.name)
    }

    /// The state of each node, by name.
    fn nodes(&self) -> impl Iterator<Item = &NodeState> {
        let mut nodes: Vec<&NodeState> = self.nodes.iter().collect();
        nodes.sort_by(|a, b| a.0.cmp(&b.0));
        nodes.into_iter()
    }

    /// Writes the whole document as one JSON value, over several lines and with a last newline.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write_json(&self, mut out: impl io::Write) -> io::Result<()> {
        serde_json::to_writer_pretty(&mut out, &whole::Whole(self))?;
        writeln!(out)
    }

    /// The same as text.
    #[must_use]
    pub fn json_text(&self) -> String {
        let text = serde_json::to_string_pretty(&whole::Whole(self));
        // Names of columns are texts, so everything has a form in JSON.
        text.unwrap_or_default() + "\n"
    }

    /// All tables. Those of nodes are called `KIND.TITLE` and have a column `node`.
    #[must_use]
    pub fn flat(&self) -> Vec<FlatTable<'_>> {
        let mut all: Vec<FlatTable<'_>> = Vec::new();
        all.extend(self.tables.iter().map(FlatTable::of_lab));
        let mut states: Vec<FlatTable<'_>> = Vec::new();
        for (node, kinds) in self.nodes() {
            for table in kinds.iter().flat_map(|(_, tables)| tables) {
                let known = states
                    .iter()
                    .position(|known| known.info.name == table.info.name);
                match (known, tables::of_nodes(table.info.name)) {
                    (Some(at), _) => states[at].add(node, table),
                    (None, Some(info)) => states.push(FlatTable::of_nodes(info, node, table)),
                    (None, None) => {}
                }
            }
        }
        states.sort_by_key(|state| state.info.flat_name());
        all.extend(states);
        all
    }

    /// The table of this description; without rows if the lab has no such table.
    #[must_use]
    pub fn flat_table(&self, info: &'static TableInfo) -> FlatTable<'_> {
        let mut all = self.flat().into_iter();
        all.find(|table| table.info.name == info.name)
            .unwrap_or_else(|| FlatTable::empty(info))
    }
}

/// The rows of a table, with the columns of CSV.
#[must_use]
pub fn rows_of(document: &Document, info: &'static TableInfo) -> Vec<Map<String, Value>> {
    let columns = columns(info);
    let names = || columns.iter().map(|column| column.name.clone());
    let table = document.flat_table(info);
    let rows = table.rows(&columns);
    rows.map(|row| names().zip(row).collect()).collect()
}

/// The description of the run.
fn head(
    checked: &Checked,
    overrides: &[Override],
    time: Time,
    report: &RunReport,
) -> Map<String, Value> {
    let lab = &checked.lab;
    let head = json!({
        "schema": SCHEMA,
        "version": env!("CARGO_PKG_VERSION"),
        "lab": lab.name,
        "lab_sha256": checked.digest,
        "overrides": overrides.iter().map(Override::change).collect::<Vec<_>>(),
        "seed": lab.seed,
        "time": time.name(),
        "end_s": report.end.as_secs_f64(),
        "interrupted": false,
        "settings": settings::settings(lab, report.until),
    });
    head.as_object().cloned().unwrap_or_default()
}

/// A number with this many decimals: enough to distinguish runs, few enough to read.
#[must_use]
pub fn rounded(value: f64, decimals: i32) -> f64 {
    let scale = libm::pow(10.0, decimals.into());
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests;
