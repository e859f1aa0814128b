//! All tables of the results, and their rows as those of CSV.

use super::{flows, network, programs};
use crate::report::SHOWN;
use aerostat_node::inspect::{self, Column, FlatColumn, Importance, Kind, Table, TableInfo};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::sync::LazyLock;

/// The tables that a lab has only if something in its file asks for them.
const RARE: [&str; 6] = [
    "fairness",
    "flow_deltas",
    "occupancy",
    "atp",
    "atp_window",
    "cells",
];

/// True if not every lab has the table.
pub(super) fn is_rare(info: &TableInfo) -> bool {
    RARE.contains(&info.name)
}

/// Descriptions of the tables about the whole lab, in the order of the results.
pub(super) fn of_lab() -> impl Iterator<Item = &'static TableInfo> {
    let all = [flows::TABLES, programs::TABLES, network::TABLES];
    all.into_iter().flatten()
}

/// Descriptions of the tables of nodes, by name. Hosts and switches may have a table in common; then it has the columns
/// of both, in the order of `aerostat inspect`.
static OF_NODES: LazyLock<Vec<TableInfo>> = LazyLock::new(|| {
    let mut all: Vec<(TableInfo, Vec<Column>)> = Vec::new();
    let shown =
        inspect::tables().filter(|info| SHOWN.iter().any(|kind| kind.name() == info.kind()));
    for info in shown {
        let at = all.iter().position(|(known, _)| known.name == info.name);
        let at = at.unwrap_or_else(|| {
            all.push((*info, Vec::new()));
            all.len() - 1
        });
        let columns = &mut all[at].1;
        for column in info.columns {
            if columns.iter().all(|known| known.name != column.name) {
                columns.push(*column);
            }
        }
    }
    let all = all.into_iter().map(|(info, columns)| TableInfo {
        columns: columns.leak(),
        ..info
    });
    let mut all: Vec<TableInfo> = all.collect();
    all.sort_by_key(|info| info.name);
    all
});

/// The table of nodes of this name.
pub(super) fn of_nodes(name: &str) -> Option<&'static TableInfo> {
    OF_NODES.iter().find(|info| info.name == name)
}

/// All tables: those about the lab first, then state of nodes.
pub fn tables() -> impl Iterator<Item = &'static TableInfo> {
    of_lab().chain(&*OF_NODES)
}

/// The table of this name on the command line.
#[must_use]
pub fn find(name: &str) -> Option<&'static TableInfo> {
    tables().find(|table| table.flat_name() == name)
}

/// A row as an object.
pub(super) fn object(table: &Table, row: &[inspect::Value]) -> Map<String, Value> {
    let members = inspect::members(table.info.columns, row.to_vec());
    members
        .map(|(name, cell)| (name.to_owned(), json!(cell)))
        .collect()
}

/// One table of the whole lab, as CSV and lines of JSON have it: rows of all nodes under the columns of all.
#[derive(Clone, Debug)]
pub struct FlatTable<'a> {
    /// Its name, and the meaning of its columns.
    pub info: &'static TableInfo,
    /// Rows, with the name of the node if they are about one.
    parts: Vec<(Option<&'a str>, &'a Table)>,
}

/// The name of the column for the node.
const NODE: &str = "node";

impl<'a> FlatTable<'a> {
    pub(super) const fn empty(info: &'static TableInfo) -> Self {
        Self {
            info,
            parts: Vec::new(),
        }
    }

    /// A table about the whole lab.
    #[must_use]
    pub fn of_lab(table: &'a Table) -> Self {
        Self {
            info: table.info,
            parts: vec![(None, table)],
        }
    }

    pub(super) fn of_nodes(info: &'static TableInfo, node: &'a str, table: &'a Table) -> Self {
        Self {
            info,
            parts: vec![(Some(node), table)],
        }
    }

    pub(super) fn add(&mut self, node: &'a str, table: &'a Table) {
        self.parts.push((Some(node), table));
    }

    /// One object per row.
    pub fn objects(&self) -> impl Iterator<Item = Map<String, Value>> {
        self.parts.iter().flat_map(|(node, table)| {
            table.rows.iter().map(|row| {
                let node = node.iter().map(|node| (NODE.to_owned(), (*node).into()));
                node.chain(object(table, row)).collect()
            })
        })
    }

    /// The columns of CSV: without those that no row has.
    #[must_use]
    pub fn columns(&self) -> Vec<FlatColumn> {
        let lacked = |column: &FlatColumn| {
            let mut parts = self.parts.iter();
            parts.all(|(_, table)| {
                let mut rows = table.rows.iter();
                rows.all(|row| *table.cell(row, column.path) == inspect::Value::None)
            })
        };
        let mut columns = columns(self.info);
        columns.retain(|column| !column.rare || !lacked(column));
        columns
    }

    /// The values of one column, row by row; [`inspect::Value::None`] where a row has none.
    pub fn cells<'b>(
        &'b self,
        column: &'b FlatColumn,
    ) -> impl Iterator<Item = Cow<'b, inspect::Value>> {
        self.parts.iter().flat_map(move |(node, table)| {
            let of_node = node.filter(|_| column.path == (NODE, None));
            let rows = table.rows.iter();
            rows.map(move |row| match of_node {
                Some(node) => Cow::Owned(inspect::Value::Text(node.to_owned())),
                None => Cow::Borrowed(table.cell(row, column.path)),
            })
        })
    }

    /// The values of these columns, row by row. Counts by name are text, because names may contain any separator.
    pub fn rows(&self, columns: &[FlatColumn]) -> impl Iterator<Item = Vec<Value>> {
        self.parts.iter().flat_map(move |(node, table)| {
            let rows = table.rows.iter();
            rows.map(move |row| {
                let cells = columns.iter().map(|column| match (node, column.path) {
                    (Some(node), (NODE, None)) => (*node).into(),
                    (_, path) => flat_value(json!(table.cell(row, path))),
                });
                cells.collect()
            })
        })
    }
}

/// The columns of CSV in their order; tables of nodes begin with a column for the node.
#[must_use]
pub fn columns(info: &TableInfo) -> Vec<FlatColumn> {
    let node = info.of_nodes().then(|| FlatColumn {
        name: NODE.to_owned(),
        path: (NODE, None),
        kind: Kind::Text,
        null: true,
        rare: false,
        importance: Importance::Plain,
    });
    node.into_iter().chain(info.flat()).collect()
}

/// A value in one cell.
#[must_use]
pub fn flat_value(value: Value) -> Value {
    match value {
        Value::Object(counts) if counts.is_empty() => "".into(),
        Value::Object(_) => value.to_string().into(),
        _ => value,
    }
}
