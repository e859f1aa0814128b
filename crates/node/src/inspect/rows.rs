//! Rows as structures: columns, headings, units and JSON of a table come from one list of fields.

use super::Value;
use aerostat_wire::{AtmAddress, MacAddr, Qos, TrafficParams, Vc};
use core::fmt;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// A table with the meaning of its rows and columns.
#[derive(Clone, Copy, Debug)]
pub struct TableInfo {
    /// `KIND.TITLE`: what `aerostat inspect` shows it for, and its heading. It has no heading if nothing follows the
    /// dot.
    pub name: &'static str,
    /// The comment of the row.
    pub doc: &'static str,
    /// The columns, in the order of the row.
    pub columns: &'static [Column],
}

/// A column with its meaning.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Its name, stable, lower case with underscores; the unit is its end (`delay_us`).
    pub name: &'static str,
    /// The type of its values. Any value may also be missing.
    pub kind: Kind,
    /// The comment of the field.
    pub doc: &'static str,
}

/// The type of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Text, also addresses and states.
    Text,
    /// A count, or an amount in the unit that the column's name gives.
    Count,
}

impl TableInfo {
    /// What `aerostat inspect` shows the table for, such as `mpc`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        self.parts().0
    }
    /// The heading, such as `ingress`.
    #[must_use]
    pub fn title(&self) -> &'static str {
        self.parts().1
    }
    fn parts(&self) -> (&'static str, &'static str) {
        self.name.split_once('.').unwrap_or((self.name, ""))
    }
    /// The meaning of a row, in sentences.
    #[must_use]
    pub fn what(&self) -> &'static str {
        self.doc.trim()
    }
}

impl Column {
    /// The meaning of the column as a phrase: without a capital and without a full stop.
    #[must_use]
    pub fn what(&self) -> String {
        let phrase = self.doc.trim().trim_end_matches('.');
        let mut letters = phrase.chars();
        match (letters.next(), letters.clone().next()) {
            // The first of several capitals belongs to an abbreviation.
            (Some(first), Some(second)) if !second.is_uppercase() => {
                first.to_lowercase().chain(letters).collect()
            }
            _ => phrase.to_owned(),
        }
    }
}

/// A row of a table. [`rows!`](crate::rows!) makes such structures.
pub trait Row: Sized {
    /// The table.
    const TABLE: TableInfo;
    /// Names of the columns.
    const NAMES: &'static [&'static str];
    /// One value per column, in the order of [`Self::NAMES`].
    fn cells(&self) -> Vec<Value>;
    /// The row with these values, one per column.
    ///
    /// # Errors
    /// A column is missing, or has another form.
    fn of_cells(cells: &[Value]) -> Result<Self, Unreadable>;
}

/// A column without a value of its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreadable(pub &'static str);

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "column '{}' has no such value", self.0)
    }
}
impl std::error::Error for Unreadable {}

/// A value that a column can have.
pub trait Cell: Sized {
    /// Its type for readers of the table.
    const KIND: Kind;
    /// The value in the table.
    fn cell(&self) -> Value;
    /// The value of a table; `None` if it has another form.
    fn read(cell: &Value) -> Option<Self>;
}

/// The value of a column.
///
/// # Errors
/// The column is missing, or has another form.
#[doc(hidden)]
pub fn read<T: Cell>(cell: Option<&Value>, column: &'static str) -> Result<T, Unreadable> {
    cell.and_then(T::read).ok_or(Unreadable(column))
}

/// A row of an object with the names of columns as keys, in any order.
///
/// # Errors
/// A column is missing, or has another form.
#[doc(hidden)]
pub fn of_object<R: Row>(mut object: BTreeMap<String, Value>) -> Result<R, Unreadable> {
    let names = R::NAMES.iter();
    let cells = names.map(|name| object.remove(*name).ok_or(Unreadable(name)));
    R::of_cells(&cells.collect::<Result<Vec<_>, _>>()?)
}

/// Text from a fixed list that belongs to a protocol, such as the states of a cache in the words of Linux.
pub type Name = Cow<'static, str>;

/// The name of something that displays as its name.
pub fn named(what: impl fmt::Display) -> Name {
    Name::Owned(what.to_string())
}

impl<T: Cell> Cell for Option<T> {
    const KIND: Kind = T::KIND;
    fn cell(&self) -> Value {
        self.as_ref().map_or(Value::None, Cell::cell)
    }
    fn read(cell: &Value) -> Option<Self> {
        match cell {
            Value::None => Some(None),
            some => T::read(some).map(Some),
        }
    }
}

macro_rules! counts {
    ($($number:ty),*) => {$(
        impl Cell for $number {
            const KIND: Kind = Kind::Count;
            fn cell(&self) -> Value {
                (*self).into()
            }
            fn read(cell: &Value) -> Option<Self> {
                match cell {
                    Value::Number(number) => (*number).try_into().ok(),
                    _ => None,
                }
            }
        }
    )*};
}
counts!(u8, u16, u32, u64, usize);

/// Types with one spelling, which `Display` writes and the function reads.
macro_rules! texts {
    ($($text:ty: $read:expr),* $(,)?) => {$(
        impl Cell for $text {
            const KIND: Kind = Kind::Text;
            fn cell(&self) -> Value {
                Value::Text(self.to_string())
            }
            fn read(cell: &Value) -> Option<Self> {
                let read: fn(&str) -> Option<Self> = $read;
                match cell {
                    Value::Text(text) => read(text),
                    _ => None,
                }
            }
        }
    )*};
}
texts! {
    String: |text| Some(text.to_owned()),
    Name: |text| Some(Name::Owned(text.to_owned())),
    AtmAddress: |text| text.parse().ok(),
    MacAddr: |text| text.parse().ok(),
    Ipv4Addr: |text| text.parse().ok(),
    IpAddr: |text| text.parse().ok(),
    SocketAddr: |text| text.parse().ok(),
    Qos: |text| text.parse().ok(),
    TrafficParams: |text| text.parse().ok(),
    Vc: |text| {
        let (vpi, vci) = text.split_once('.')?;
        Some(Vc::new(vpi.parse().ok()?, vci.parse().ok()?))
    },
    Network: |text| {
        let (address, length) = text.split_once('/')?;
        Some(Network(address.parse().ok()?, length.parse().ok()?))
    },
    Tag: |text| u32::from_str_radix(text.strip_prefix("0x")?, 16).ok().map(Tag),
}

/// `yes` or `no`.
impl Cell for bool {
    const KIND: Kind = Kind::Text;
    fn cell(&self) -> Value {
        if *self { "yes" } else { "no" }.into()
    }
    fn read(cell: &Value) -> Option<Self> {
        match cell {
            Value::Text(word) if word == "yes" => Some(true),
            Value::Text(word) if word == "no" => Some(false),
            _ => None,
        }
    }
}

/// An IP address and the length of its prefix: `10.2.0.0/24`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network(pub IpAddr, pub u8);

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.0, self.1)
    }
}

/// A tag of MPOA: `0x80`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag(pub u32);

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// Makes rows of tables. Each structure has its table's name `KIND.TITLE`; its comment says what a row is, and the
/// comments of its fields say what the columns are. A constant at the top, which may
/// be left out, is the list of all these tables.
///
/// The structures implement [`Row`], `serde::Serialize` and `serde::Deserialize`: JSON has the same values as the
/// table.
///
/// ```
/// use aerostat_node::inspect::{Row as _, Table};
/// aerostat_node::rows! {
///     /// Tables about doors.
///     pub const TABLES;
///     /// One row for each door.
///     pub struct Door: "house.doors" {
///         /// Its name.
///         pub name: String,
///         /// Seconds for which it has been open.
///         pub open_s: Option<u64>,
///     }
/// }
/// let table = Table::of([Door { name: "front".to_owned(), open_s: None }]);
/// assert_eq!((table.title, table.columns), ("doors", &["name", "open_s"][..]));
/// assert_eq!(Door::TABLE.columns[1].what(), "seconds for which it has been open");
/// ```
#[macro_export]
macro_rules! rows {
    (
        $(#[$about:meta])*
        $all:vis const $tables:ident;
        $(
            $(#[doc = $what:literal])+
            $vis:vis struct $row:ident: $name:literal {
                $( $(#[doc = $doc:literal])+ $seen:vis $column:ident: $kind:ty, )+
            }
        )+
    ) => {
        $(#[$about])*
        $all const $tables: &[$crate::inspect::TableInfo] =
            &[$(<$row as $crate::inspect::Row>::TABLE),+];
        $crate::rows! {
            $(
                $(#[doc = $what])+
                $vis struct $row: $name { $( $(#[doc = $doc])+ $seen $column: $kind, )+ }
            )+
        }
    };
    (
        $(
            $(#[doc = $what:literal])+
            $vis:vis struct $row:ident: $name:literal {
                $( $(#[doc = $doc:literal])+ $seen:vis $column:ident: $kind:ty, )+
            }
        )+
    ) => {
        $(
            $(#[doc = $what])+
            #[derive(Clone, Debug, PartialEq)]
            $vis struct $row {
                $( $(#[doc = $doc])+ $seen $column: $kind, )+
            }
            impl $crate::inspect::Row for $row {
                const TABLE: $crate::inspect::TableInfo = $crate::inspect::TableInfo {
                    name: $name,
                    doc: concat!($($what),+),
                    columns: &[$($crate::inspect::Column {
                        name: stringify!($column),
                        kind: <$kind as $crate::inspect::Cell>::KIND,
                        doc: concat!($($doc),+),
                    }),+],
                };
                const NAMES: &'static [&'static str] = &[$(stringify!($column)),+];
                fn cells(&self) -> Vec<$crate::inspect::Value> {
                    vec![$($crate::inspect::Cell::cell(&self.$column)),+]
                }
                fn of_cells(
                    cells: &[$crate::inspect::Value],
                ) -> Result<Self, $crate::inspect::Unreadable> {
                    let mut cells = cells.iter();
                    Ok(Self {
                        $($column: $crate::inspect::read(cells.next(), stringify!($column))?),+
                    })
                }
            }
            impl $crate::inspect::serde::Serialize for $row {
                fn serialize<S: $crate::inspect::serde::Serializer>(
                    &self,
                    serializer: S,
                ) -> Result<S::Ok, S::Error> {
                    let names = <Self as $crate::inspect::Row>::NAMES.iter();
                    serializer.collect_map(names.zip($crate::inspect::Row::cells(self)))
                }
            }
            impl<'de> $crate::inspect::serde::Deserialize<'de> for $row {
                fn deserialize<D: $crate::inspect::serde::Deserializer<'de>>(
                    deserializer: D,
                ) -> Result<Self, D::Error> {
                    let object = $crate::inspect::serde::Deserialize::deserialize(deserializer)?;
                    $crate::inspect::of_object(object)
                        .map_err($crate::inspect::serde::de::Error::custom)
                }
            }
        )+
    };
}
