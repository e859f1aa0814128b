//! Rows under named columns.

use aerostat_lab::printable;
use aerostat_lab::results::FlatTable;
use aerostat_node::inspect::{self, Importance, Row, TableInfo};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Rows under named columns, of one node or of a whole lab. A running lab answers `inspect` in the same form: a JSON
/// list of such objects.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rows {
    /// The node; empty if the rows are not about a node.
    #[serde(default)]
    pub node: String,
    /// The kind of the rows; empty if there is only one kind.
    #[serde(default)]
    pub title: String,
    /// Its name on the command line and in names of files, such as `mpc.ingress`; if empty, the title has that role.
    #[serde(skip)]
    pub name: String,
    /// Column names.
    pub columns: Vec<String>,
    /// Places of the columns where there is no room for all; columns without one are [`Importance::Plain`].
    #[serde(default)]
    pub importance: Vec<Importance>,
    /// One value per column.
    pub rows: Vec<Vec<Value>>,
}

impl Rows {
    /// A table without rows.
    #[must_use]
    pub fn new(columns: &[&str]) -> Self {
        Self {
            columns: columns.iter().map(|&column| column.to_owned()).collect(),
            ..Self::default()
        }
    }
    /// The table of these rows, under its name.
    pub fn of<R: Row>(rows: impl IntoIterator<Item = R>) -> Self {
        Self::table(&inspect::Table::of(rows))
    }
    /// A table under its name.
    #[must_use]
    pub fn table(table: &inspect::Table) -> Self {
        let mut rows = Self::flat(&FlatTable::of_lab(table));
        table.info.name.clone_into(&mut rows.title);
        rows
    }
    /// A table with the columns of CSV, without a title.
    #[must_use]
    pub fn flat(table: &FlatTable<'_>) -> Self {
        let columns = table.columns();
        Self {
            rows: table.rows(&columns).collect(),
            importance: columns.iter().map(|column| column.importance).collect(),
            columns: columns.into_iter().map(|column| column.name).collect(),
            ..Self::default()
        }
    }
    /// The same with the importance of columns that the description of the table has.
    #[must_use]
    pub fn described(mut self, info: &TableInfo) -> Self {
        let of = |name: &String| info.columns.iter().find(|column| column.name == *name);
        let columns = self.columns.iter().map(of);
        self.importance = columns
            .map(|column| column.map_or_else(Importance::default, |column| column.importance))
            .collect();
        self
    }
    /// Its name on the command line.
    #[must_use]
    pub fn name(&self) -> &str {
        match self.name.as_str() {
            "" => &self.title,
            name => name,
        }
    }
    /// Adds a row: a value for each column.
    pub fn push(&mut self, row: Vec<Value>) {
        self.rows.push(row);
    }
    /// One object per row; the node and the title come first if there are any.
    pub fn objects(&self) -> impl Iterator<Item = Value> + '_ {
        self.rows.iter().map(|row| {
            let mut object = Map::new();
            if !self.node.is_empty() {
                object.insert("node".into(), self.node.clone().into());
            }
            if !self.title.is_empty() {
                object.insert("table".into(), self.title.clone().into());
            }
            object.extend(self.columns.iter().cloned().zip(row.iter().cloned()));
            Value::Object(object)
        })
    }
    /// The same in ASCII, for locales without UTF-8.
    #[must_use]
    pub fn in_ascii(&self) -> Self {
        let ascii = |text: &String| printable::ascii(text).into_owned();
        let value = |value: &Value| match value {
            Value::String(text) => Value::String(ascii(text)),
            other => other.clone(),
        };
        let rows = self.rows.iter();
        Self {
            node: ascii(&self.node),
            title: ascii(&self.title),
            columns: self.columns.iter().map(ascii).collect(),
            rows: rows.map(|row| row.iter().map(value).collect()).collect(),
            ..self.clone()
        }
    }
    /// Its heading: node and title.
    #[must_use]
    pub fn heading(&self) -> String {
        [self.node.as_str(), self.title.as_str()]
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join(": ")
    }
}
