//! State for people and programs: every protocol's snapshot as rows of tables.
//!
//! A row is a structure ([`rows!`](crate::rows!)): its fields are the columns, and their comments are the meanings that
//! `docs/results.md` and the schema give. The modules below have the rows by what `aerostat inspect` shows them for,
//! and make them of the snapshots of the machines. [`words`] has the spelling of states.
//!
//! All tables have one form: a terminal shows them as tables, JSON as objects with the column names as keys. `run`'s
//! results and `inspect` of a running lab have the same rows.

use aerostat_proto::Duration;
use aerostat_proto::counters::CounterRow;
use core::fmt;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub mod clip;
pub mod counters;
pub mod host;
pub mod ilmi;
pub mod lane;
pub mod line;
pub mod linux;
pub mod mpoa;
pub mod nhrp;
mod rows;
pub mod saal;
pub mod sockets;
pub mod switch;
pub mod why;
pub mod words;

pub use rows::{
    Cell, Column, Counts, Flag, FlatColumn, Importance, Kind, Name, Network, Rare, Row, TableInfo,
    Tag, Unreadable, named,
};
#[doc(hidden)]
pub use rows::{in_order, members, of_object, read};
#[doc(hidden)]
pub use serde;
pub use words::StateKind;

/// Whole microseconds, at most what fits.
pub(crate) fn microseconds(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// Nanoseconds, at most what fits.
pub(crate) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// All tables of nodes. Several rows may have a table in common: hosts and switches have ports.
pub fn tables() -> impl Iterator<Item = &'static TableInfo> {
    let families = [
        clip::TABLES,
        counters::TABLES,
        host::TABLES,
        ilmi::TABLES,
        lane::TABLES,
        line::TABLES,
        linux::TABLES,
        mpoa::TABLES,
        nhrp::TABLES,
        saal::TABLES,
        sockets::TABLES,
        switch::TABLES,
        why::TABLES,
    ];
    families.into_iter().flatten()
}

/// One value of a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// Text, also addresses and states.
    Text(String),
    /// A count, or an amount in the unit that the column's name gives.
    Number(u64),
    /// Any number.
    Float(f64),
    /// `true` or `false`.
    Flag(bool),
    /// Values by name: counts, or the columns of a group.
    Object(BTreeMap<Name, Self>),
    /// No value.
    None,
}

impl Value {
    /// The number that this is; `None` for all other values.
    #[must_use]
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number as f64),
            Self::Float(number) => Some(*number),
            _ => None,
        }
    }
    /// The value of this name in an object.
    #[must_use]
    pub fn member(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Object(members) => members.get(name),
            _ => None,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Number(number) => write!(f, "{number}"),
            Self::Float(number) => write!(f, "{number:?}"),
            Self::Flag(flag) => write!(f, "{flag}"),
            Self::Object(members) => {
                f.write_str("{")?;
                for (number, (name, value)) in members.iter().enumerate() {
                    let comma = if number > 0 { "," } else { "" };
                    write!(f, "{comma}{name:?}:{value}")?;
                }
                f.write_str("}")
            }
            Self::None => f.write_str("-"),
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}
impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}
macro_rules! from_number {
    ($($number:ty),*) => {$(
        impl From<$number> for Value {
            fn from(number: $number) -> Self {
                Self::Number(number.into())
            }
        }
    )*};
}
from_number!(u8, u16, u32, u64);
impl From<usize> for Value {
    fn from(number: usize) -> Self {
        Self::Number(number as u64)
    }
}
impl<T: Into<Self>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::None, Into::into)
    }
}

/// Rows under named columns: rows of any kind in one form.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Its name, and the meaning of its columns.
    pub info: &'static TableInfo,
    /// The kind of the rows: `ingress`, `counters`, …
    pub title: &'static str,
    /// Column names, stable, lower case with underscores; units as suffix.
    pub columns: &'static [&'static str],
    /// One value per column.
    pub rows: Vec<Vec<Value>>,
}

impl Table {
    /// The table of these rows.
    #[must_use]
    pub fn of<R: Row>(rows: impl IntoIterator<Item = R>) -> Self {
        Self::named(R::INFO, rows)
    }
    /// A table of these rows with another name.
    fn named<R: Row>(info: &'static TableInfo, rows: impl IntoIterator<Item = R>) -> Self {
        Self::read(info, rows.into_iter().map(|row| row.cells()).collect())
    }
    /// A table of these rows, which have a value for each column.
    #[must_use]
    pub fn read(info: &'static TableInfo, rows: Vec<Vec<Value>>) -> Self {
        Self {
            info,
            title: info.title(),
            columns: info.names,
            rows,
        }
    }
    /// A table of counters; counters at zero are left out.
    #[must_use]
    pub fn counters(
        table: &'static TableInfo,
        counters: impl IntoIterator<Item = CounterRow>,
    ) -> Self {
        let counters = counters.into_iter().filter(|(_, value)| *value > 0);
        let rows = counters.map(|(counter, value)| counters::Counter { counter, value });
        Self::named(table, rows)
    }
    /// The value of a row in a column of [`TableInfo::flat`]; [`Value::None`] if the table has no such column.
    #[must_use]
    pub fn cell<'a>(&self, row: &'a [Value], (name, inner): (&str, Option<&str>)) -> &'a Value {
        let at = self.columns.iter().position(|column| *column == name);
        let cell = at.and_then(|at| row.get(at));
        let cell = match inner {
            Some(inner) => cell.and_then(|cell| cell.member(inner)),
            None => cell,
        };
        cell.unwrap_or(&Value::None)
    }
    /// The rows as structures; empty if this is another table.
    ///
    /// # Errors
    /// A column has another form.
    pub fn rows<R: Row>(&self) -> Result<Vec<R>, Unreadable> {
        if self.title != R::TABLE.title() || self.columns != R::NAMES {
            return Ok(Vec::new());
        }
        self.rows.iter().map(|row| R::of_cells(row)).collect()
    }
}

#[cfg(test)]
mod tests;
