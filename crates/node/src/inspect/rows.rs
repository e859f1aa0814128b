//! Rows as structures: columns, headings, units and JSON of a table come from one list of fields.

use super::Value;
use aerostat_wire::{AtmAddress, MacAddr, Qos, TrafficParams, Vc};
use core::fmt;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// A table with the meaning of its rows and columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableInfo {
    /// `KIND.TITLE`: what `aerostat inspect` shows it for, and its heading. It has no heading if nothing follows the
    /// dot.
    pub name: &'static str,
    /// The comment of the row.
    pub doc: &'static str,
    /// The columns, in the order of the row.
    pub columns: &'static [Column],
    /// Their names.
    pub names: &'static [&'static str],
}

/// A column with its meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name, stable, lower case with underscores; the unit is its end (`delay_us`).
    pub name: &'static str,
    /// The type of its values.
    pub kind: Kind,
    /// True if a value may be absent: the field is an `Option`.
    pub null: bool,
    /// True if objects lack the column where it has no value, and CSV lacks it if no row has a value.
    pub rare: bool,
    /// The place of the column where there is no room for all of them.
    pub importance: Importance,
    /// The comment of the field.
    pub doc: &'static str,
}

impl Column {
    /// True if an object has a member for this value: a column without a value may be left out.
    #[must_use]
    pub fn shows(&self, cell: &Value) -> bool {
        !(self.rare && *cell == Value::None)
    }
}

/// Importance of a column on a terminal that is too narrow for the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Importance {
    /// The column is one of the first that are shown, whatever is in it: 1 is the most important one. Columns in front
    /// of all of these are more important, and no other column stands in for one of them.
    Lead(u8),
    /// The column is left out before those to its left.
    #[default]
    Plain,
    /// The column is a detail, which is left out before all others; details with smaller numbers go first.
    Detail(u8),
}

/// The type of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Text, also addresses and states.
    Text,
    /// A count, or an amount in the unit that the column's name gives.
    Count,
    /// Any number.
    Number,
    /// `true` or `false`.
    Flag,
    /// Counts by name.
    Counts,
    /// Columns of their own, which tables have as `NAME_SUB`.
    Group(&'static [Column]),
}

/// A column of a table whose groups are dissolved, as CSV and terminals show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlatColumn {
    /// Its name; that of a column of a group begins with the group's name.
    pub name: String,
    /// The names of the column in a row: its own, or those of the group and of the column in it.
    pub path: (&'static str, Option<&'static str>),
    /// The type of its values, no group.
    pub kind: Kind,
    /// True if a value may be absent.
    pub null: bool,
    /// True if tables lack the column where no row has a value.
    pub rare: bool,
    /// Its place where there is no room for all columns.
    pub importance: Importance,
}

impl TableInfo {
    /// Kind of state for which `aerostat inspect` shows the table, such as `mpc`.
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
    /// Its name on the command line and in names of files: without blanks.
    #[must_use]
    pub fn flat_name(&self) -> String {
        self.name.replace(' ', "_")
    }
    /// True if the table shows the state of a node. A kind of node may lack columns that another one has, and any value
    /// may be missing.
    #[must_use]
    pub fn of_nodes(&self) -> bool {
        self.name.contains('.')
    }
    /// The columns in the order of CSV, with those of groups in the place of the group.
    #[must_use]
    pub fn flat(&self) -> Vec<FlatColumn> {
        self.columns.iter().flat_map(Column::flat).collect()
    }
    /// The meaning of a row, in sentences.
    #[must_use]
    pub fn what(&self) -> &'static str {
        self.doc.trim()
    }
}

impl Column {
    /// The column, or the columns of the group. Those that say nothing of their importance have that of the group.
    fn flat(&self) -> Vec<FlatColumn> {
        let Kind::Group(columns) = self.kind else {
            return vec![FlatColumn {
                name: self.name.to_owned(),
                path: (self.name, None),
                kind: self.kind,
                null: self.null,
                rare: self.rare,
                importance: self.importance,
            }];
        };
        let inner = columns.iter().map(|inner| FlatColumn {
            name: format!("{}_{}", self.name, inner.name),
            path: (self.name, Some(inner.name)),
            kind: inner.kind,
            null: self.null || inner.null,
            rare: self.rare,
            importance: match inner.importance {
                Importance::Plain => self.importance,
                own => own,
            },
        });
        inner.collect()
    }
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
    /// The same, for tables.
    const INFO: &'static TableInfo = &Self::TABLE;
    /// Names of the columns.
    const NAMES: &'static [&'static str] = Self::TABLE.names;
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
    /// True if it may be absent.
    const NULL: bool = false;
    /// True if objects lack it where it is absent.
    const RARE: bool = false;
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

/// The members of an object for a row: names and values, without rare columns that have no value.
#[doc(hidden)]
pub fn members(
    columns: &'static [Column],
    cells: Vec<Value>,
) -> impl Iterator<Item = (&'static str, Value)> {
    let members = columns.iter().zip(cells);
    members
        .filter(|(column, cell)| column.shows(cell))
        .map(|(column, cell)| (column.name, cell))
}

/// A row of an object with the names of columns as keys, in any order.
///
/// # Errors
/// A column is missing, or has another form.
#[doc(hidden)]
pub fn of_object<R: Row>(mut object: BTreeMap<Name, Value>) -> Result<R, Unreadable> {
    R::of_cells(&in_order(R::TABLE.columns, &mut object)?)
}

/// The values of an object in the order of the columns.
///
/// # Errors
/// A column is missing that is not rare.
#[doc(hidden)]
pub fn in_order(
    columns: &[Column],
    object: &mut BTreeMap<Name, Value>,
) -> Result<Vec<Value>, Unreadable> {
    let cells = columns
        .iter()
        .map(|column| match object.remove(column.name) {
            None if !column.rare => Err(Unreadable(column.name)),
            cell => Ok(cell.unwrap_or(Value::None)),
        });
    cells.collect()
}

/// Text from a fixed list that belongs to a protocol, such as the states of a cache in the words of Linux.
pub type Name = Cow<'static, str>;

/// The name of something that displays as its name.
pub fn named(what: impl fmt::Display) -> Name {
    Name::Owned(what.to_string())
}

impl<T: Cell> Cell for Option<T> {
    const KIND: Kind = T::KIND;
    const NULL: bool = true;
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
pub(super) use texts;
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

impl Cell for f64 {
    const KIND: Kind = Kind::Number;
    fn cell(&self) -> Value {
        Value::Float(*self)
    }
    fn read(cell: &Value) -> Option<Self> {
        cell.number()
    }
}

/// A value that an object has only if it is known: without it, the object lacks the column, too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rare<T>(pub Option<T>);

impl<T: Cell> Cell for Rare<T> {
    const KIND: Kind = T::KIND;
    const RARE: bool = true;
    fn cell(&self) -> Value {
        self.0.cell()
    }
    fn read(cell: &Value) -> Option<Self> {
        Option::<T>::read(cell).map(Self)
    }
}

/// `true` or `false`, also in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flag(pub bool);

impl Cell for Flag {
    const KIND: Kind = Kind::Flag;
    fn cell(&self) -> Value {
        Value::Flag(self.0)
    }
    fn read(cell: &Value) -> Option<Self> {
        match cell {
            Value::Flag(flag) => Some(Self(*flag)),
            _ => None,
        }
    }
}

/// Counts by name, such as losses by their places. A cell of CSV has them as a JSON object.
pub type Counts = BTreeMap<String, u64>;

impl<T: Cell> Cell for BTreeMap<String, T> {
    const KIND: Kind = Kind::Counts;
    fn cell(&self) -> Value {
        let members = self.iter();
        Value::Object(
            members
                .map(|(name, value)| (Name::Owned(name.clone()), value.cell()))
                .collect(),
        )
    }
    fn read(cell: &Value) -> Option<Self> {
        let Value::Object(members) = cell else {
            return None;
        };
        let members = members.iter();
        members
            .map(|(name, value)| Some((name.clone().into_owned(), T::read(value)?)))
            .collect()
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

/// Name of a column: that of its field, or another one.
#[doc(hidden)]
#[macro_export]
macro_rules! column_name {
    ($column:ident) => {
        stringify!($column)
    };
    ($column:ident $name:literal) => {
        $name
    };
}

/// The columns of a structure.
#[doc(hidden)]
#[macro_export]
macro_rules! columns {
    ($( [$($doc:literal)+] $column:ident [$($name:literal)?] $kind:ty, [$($place:ident($rank:literal))?]; )+) => {
        &[$($crate::inspect::Column {
            name: $crate::column_name!($column $($name)?),
            kind: <$kind as $crate::inspect::Cell>::KIND,
            null: <$kind as $crate::inspect::Cell>::NULL,
            rare: <$kind as $crate::inspect::Cell>::RARE,
            importance: [$($crate::inspect::Importance::$place($rank),)? $crate::inspect::Importance::Plain][0],
            doc: concat!($($doc),+),
        }),+]
    };
}

/// The function that makes a row, if its columns say what they are made of.
#[doc(hidden)]
#[macro_export]
macro_rules! made {
    ($vis:vis $row:ident [] $($column:ident [])+) => {};
    ($vis:vis $row:ident [$($arg:ident: $type:ty),+] $($column:ident [$value:expr])+) => {
        impl $row {
            /// The row of these.
            #[must_use]
            $vis fn of($($arg: $type),+) -> Self {
                Self { $($column: $value),+ }
            }
        }
    };
}

/// Makes groups of columns, which rows have as one field: `delay_us` with `mean` and `max` is the member `delay_us` of
/// an object, and the columns `delay_us_mean` and `delay_us_max` of a table.
///
/// ```
/// use aerostat_node::inspect::Row as _;
/// aerostat_node::group! {
///     /// Times in which it was open.
///     pub struct Times {
///         /// Longest time.
///         pub max: f64,
///     }
/// }
/// aerostat_node::rows! {
///     /// One row for each door.
///     pub struct Door: "doors" {
///         /// Times in which it was open, s.
///         pub open_s: Times,
///     }
/// }
/// let row = Door { open_s: Times { max: 1.5 } };
/// assert_eq!(Door::TABLE.flat()[0].name, "open_s_max");
/// assert_eq!(row.cells()[0].to_string(), r#"{"max":1.5}"#);
/// ```
#[macro_export]
macro_rules! group {
    ($(
        $(#[doc = $what:literal])+
        $vis:vis struct $group:ident $(for ($($arg:ident: $type:ty),+))? {
            $(
                $(#[doc = $doc:literal])+
                $seen:vis $column:ident $(($name:literal))?: $kind:ty
                    $(as $place:ident($rank:literal))? $(= $value:expr)?,
            )+
        }
    )+) => {$(
        $(#[doc = $what])+
        #[derive(Clone, Debug, PartialEq)]
        $vis struct $group {
            $( $(#[doc = $doc])+ $seen $column: $kind, )+
        }
        $crate::made! { $vis $group [$($($arg: $type),+)?] $($column [$($value)?])+ }
        impl $group {
            const COLUMNS: &'static [$crate::inspect::Column] = $crate::columns! {
                $( [$($doc)+] $column [$($name)?] $kind, [$($place($rank))?]; )+
            };
        }
        impl $crate::inspect::Cell for $group {
            const KIND: $crate::inspect::Kind = $crate::inspect::Kind::Group(Self::COLUMNS);
            fn cell(&self) -> $crate::inspect::Value {
                let cells = vec![$($crate::inspect::Cell::cell(&self.$column)),+];
                let members = $crate::inspect::members(Self::COLUMNS, cells);
                $crate::inspect::Value::Object(
                    members.map(|(name, cell)| (name.into(), cell)).collect(),
                )
            }
            fn read(cell: &$crate::inspect::Value) -> Option<Self> {
                let $crate::inspect::Value::Object(members) = cell else {
                    return None;
                };
                let cells = $crate::inspect::in_order(Self::COLUMNS, &mut members.clone()).ok()?;
                let mut cells = cells.iter();
                Some(Self {
                    $($column: $crate::inspect::Cell::read(cells.next()?)?),+
                })
            }
        }
    )+};
}

/// Makes rows of tables. Each structure has its table's name `KIND.TITLE`; its comment says what a row is, and the
/// comments of its fields say what the columns are. A constant at the top, which may
/// be left out, is the list of all these tables.
///
/// A field whose column has a name that Rust does not allow gives it in parentheses: `place ("where"): String`. The
/// [importance](Importance) of a column follows its type: `frames: u64 as Detail(3)`. A structure may say what its rows
/// are made of, and each field how: `struct Door: "house.doors" for (model: &Model) { .. }` with fields such as
/// `open_s: u64 = model.seconds()` has a function `Door::of(model)`.
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
            $vis:vis struct $row:ident: $table:literal $(for ($($arg:ident: $type:ty),+))? {
                $(
                    $(#[doc = $doc:literal])+
                    $seen:vis $column:ident $(($name:literal))?: $kind:ty
                        $(as $place:ident($rank:literal))? $(= $value:expr)?,
                )+
            }
        )+
    ) => {
        $(#[$about])*
        $all const $tables: &[$crate::inspect::TableInfo] =
            &[$(<$row as $crate::inspect::Row>::TABLE),+];
        $crate::rows! {
            $(
                $(#[doc = $what])+
                $vis struct $row: $table $(for ($($arg: $type),+))? {
                    $(
                        $(#[doc = $doc])+
                        $seen $column $(($name))?: $kind $(as $place($rank))? $(= $value)?,
                    )+
                }
            )+
        }
    };
    (
        $(
            $(#[doc = $what:literal])+
            $vis:vis struct $row:ident: $table:literal $(for ($($arg:ident: $type:ty),+))? {
                $(
                    $(#[doc = $doc:literal])+
                    $seen:vis $column:ident $(($name:literal))?: $kind:ty
                        $(as $place:ident($rank:literal))? $(= $value:expr)?,
                )+
            }
        )+
    ) => {
        $(
            $(#[doc = $what])+
            #[derive(Clone, Debug, PartialEq)]
            $vis struct $row {
                $( $(#[doc = $doc])+ $seen $column: $kind, )+
            }
            $crate::made! { $vis $row [$($($arg: $type),+)?] $($column [$($value)?])+ }
            impl $crate::inspect::Row for $row {
                const TABLE: $crate::inspect::TableInfo = $crate::inspect::TableInfo {
                    name: $table,
                    doc: concat!($($what),+),
                    columns: $crate::columns! {
                        $( [$($doc)+] $column [$($name)?] $kind, [$($place($rank))?]; )+
                    },
                    names: &[$($crate::column_name!($column $($name)?)),+],
                };
                fn cells(&self) -> Vec<$crate::inspect::Value> {
                    vec![$($crate::inspect::Cell::cell(&self.$column)),+]
                }
                fn of_cells(
                    cells: &[$crate::inspect::Value],
                ) -> Result<Self, $crate::inspect::Unreadable> {
                    let mut cells = cells.iter();
                    Ok(Self {
                        $($column: $crate::inspect::read(
                            cells.next(),
                            $crate::column_name!($column $($name)?),
                        )?),+
                    })
                }
            }
            impl $crate::inspect::serde::Serialize for $row {
                fn serialize<S: $crate::inspect::serde::Serializer>(
                    &self,
                    serializer: S,
                ) -> Result<S::Ok, S::Error> {
                    let columns = <Self as $crate::inspect::Row>::TABLE.columns;
                    let cells = $crate::inspect::Row::cells(self);
                    serializer.collect_map($crate::inspect::members(columns, cells))
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
