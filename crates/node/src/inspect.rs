//! State for people and programs: every protocol's snapshot as a table of named columns.
//!
//! All tables of `inspect` have one form: a terminal shows them as tables, JSON as objects with the column names as
//! keys.

use aerostat_proto::counters::CounterRow;
use core::fmt;

/// One value of a table.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Text, also addresses and states.
    Text(String),
    /// A count, or an amount in the unit that the column's name gives.
    Number(u64),
    /// No value.
    None,
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Number(number) => write!(f, "{number}"),
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

/// A value of anything that can be displayed.
pub fn text(value: impl fmt::Display) -> Value {
    Value::Text(value.to_string())
}

/// Rows under named columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The kind of the rows: `ingress cache`, `counters`, …
    pub title: &'static str,
    /// Column names, stable, lower case with underscores; units as suffix.
    pub columns: &'static [&'static str],
    /// One value per column.
    pub rows: Vec<Vec<Value>>,
}

impl Table {
    /// An empty table.
    #[must_use]
    pub const fn new(title: &'static str, columns: &'static [&'static str]) -> Self {
        Self {
            title,
            columns,
            rows: Vec::new(),
        }
    }
    /// Adds a row.
    ///
    /// # Panics
    /// If the number of values differs from the number of columns.
    pub fn row(&mut self, row: Vec<Value>) {
        assert_eq!(row.len(), self.columns.len(), "table {}", self.title);
        self.rows.push(row);
    }
    /// A two-column table of counters; counters at zero are left out.
    #[must_use]
    pub fn counters(title: &'static str, counters: impl IntoIterator<Item = CounterRow>) -> Self {
        let mut table = Self::new(title, &["counter", "value"]);
        for (name, value) in counters.into_iter().filter(|(_, value)| *value > 0) {
            table.row(vec![name.into(), value.into()]);
        }
        table
    }
}
