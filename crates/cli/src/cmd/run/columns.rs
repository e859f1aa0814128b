//! All tables of the results with their columns: the source of the published schema, of the columns of CSV files, and
//! of the test that checks docs/results.md. The tables of nodes are the rows of `aerostat inspect`.

mod lab;
mod nodes;

pub(super) use lab::{ATP, ATP_WINDOW, CELLS, FAIRNESS, FLOW_DELTAS, OCCUPANCY, RARE};
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// A table of the results.
pub(super) struct TableInfo {
    /// Its name; those of nodes are `KIND.TITLE`.
    pub(super) name: &'static str,
    /// The meaning of a row.
    pub(super) what: Cow<'static, str>,
    /// Its columns, in the order of CSV.
    pub(super) columns: Cow<'static, [Column]>,
}

/// A column.
#[derive(Clone)]
pub(super) struct Column {
    /// Its name; the unit is part of it.
    pub(super) name: &'static str,
    /// The type of its values.
    pub(super) kind: Kind,
    /// True if it may be empty: `null`.
    pub(super) null: bool,
    /// True if rows may lack it; CSV lacks it if all rows do.
    pub(super) rare: bool,
    /// Its meaning.
    pub(super) what: Cow<'static, str>,
}

/// The values of a column.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    /// Text.
    Text,
    /// A whole number, at least 0.
    Count,
    /// Any number.
    Number,
    /// `true` or `false`.
    Flag,
    /// Counts by name; CSV has them in one cell, as a JSON object.
    Counts,
    /// Columns of their own, which CSV has as `NAME_SUB`.
    Group(&'static [Column]),
}

pub(super) const fn text(name: &'static str, what: &'static str) -> Column {
    column(name, Kind::Text, what)
}
pub(super) const fn count(name: &'static str, what: &'static str) -> Column {
    column(name, Kind::Count, what)
}
pub(super) const fn number(name: &'static str, what: &'static str) -> Column {
    column(name, Kind::Number, what)
}
pub(super) const fn flag(name: &'static str, what: &'static str) -> Column {
    column(name, Kind::Flag, what)
}
pub(super) const fn counts(name: &'static str, what: &'static str) -> Column {
    column(name, Kind::Counts, what)
}
pub(super) const fn group(
    name: &'static str,
    columns: &'static [Column],
    what: &'static str,
) -> Column {
    column(name, Kind::Group(columns), what)
}
const fn column(name: &'static str, kind: Kind, what: &'static str) -> Column {
    Column {
        name,
        kind,
        null: false,
        rare: false,
        what: Cow::Borrowed(what),
    }
}

impl Column {
    /// The same column, which may be empty.
    pub(super) const fn or_null(mut self) -> Self {
        self.null = true;
        self
    }

    /// The same column, which rows may lack.
    pub(super) const fn or_missing(mut self) -> Self {
        self.rare = true;
        self
    }

    fn schema(&self, null: bool) -> Value {
        let kind = match self.kind {
            Kind::Text => "string",
            Kind::Count => "integer",
            Kind::Number => "number",
            Kind::Flag => "boolean",
            Kind::Group(_) | Kind::Counts => "object",
        };
        let mut schema = json!({ "description": self.what });
        schema["type"] = if null || self.null {
            json!([kind, "null"])
        } else {
            kind.into()
        };
        match self.kind {
            Kind::Count => schema["minimum"] = 0.into(),
            Kind::Counts => {
                schema["additionalProperties"] = json!({ "type": "integer", "minimum": 0 });
            }
            Kind::Group(columns) => describe(&mut schema, columns, false),
            _ => {}
        }
        schema
    }
}

/// Adds the columns to the schema of an object. With `open` any column may be missing or empty.
fn describe(schema: &mut Value, columns: &[Column], open: bool) {
    let always = columns.iter().filter(|column| !column.rare);
    let names: Vec<_> = always.map(|column| column.name).collect();
    let properties = columns
        .iter()
        .map(|column| (column.name.to_owned(), column.schema(open)));
    schema["properties"] = Value::Object(properties.collect());
    if !open {
        schema["required"] = json!(names);
    }
    schema["additionalProperties"] = false.into();
}

impl TableInfo {
    /// True for tables of the state of nodes. A kind of node may lack columns that another one has, and any value may
    /// be missing.
    fn of_nodes(&self) -> bool {
        self.name.contains('.')
    }

    /// Its name on the command line and in names of files: without blanks.
    pub(super) fn flat_name(&self) -> String {
        flat_name(self.name)
    }

    /// The schema of a list of rows.
    pub(super) fn schema(&self) -> Value {
        let mut row = json!({ "type": "object" });
        describe(&mut row, &self.columns, self.of_nodes());
        json!({ "type": "array", "description": self.what, "items": row })
    }

    /// The columns of a CSV file, each as its path in a row.
    pub(super) fn flat_columns(&self) -> Vec<Vec<&'static str>> {
        let mut all = Vec::new();
        if self.of_nodes() {
            all.push(vec!["node"]);
        }
        for column in &*self.columns {
            match column.kind {
                Kind::Group(inner) => {
                    all.extend(inner.iter().map(|inner| vec![column.name, inner.name]));
                }
                _ => all.push(vec![column.name]),
            }
        }
        all
    }
}

/// All tables: those about the lab first, then state of nodes.
pub(super) fn tables() -> impl Iterator<Item = &'static TableInfo> {
    lab::TABLES.iter().chain(&*nodes::TABLES)
}

/// The table that CSV shows by default.
pub(super) const fn flows() -> &'static TableInfo {
    &lab::TABLES[0]
}

/// A table's name without blanks.
pub(super) fn flat_name(name: &str) -> String {
    name.replace(' ', "_")
}

/// The table of this name on the command line.
pub(super) fn find(name: &str) -> Option<&'static TableInfo> {
    tables().find(|table| table.flat_name() == name)
}

/// The members before the tables, with their schema.
pub(super) fn head() -> Map<String, Value> {
    let settings = [
        ("seed", "integer"),
        ("until_s", "number"),
        ("nodes", "object"),
        ("links", "object"),
        ("subnets", "object"),
        ("pvcs", "array"),
        ("traffic", "object"),
        ("faults", "array"),
        ("timers", "object"),
        ("capture", "array"),
    ];
    let of_type = |(name, kind): (&str, &str)| (name.to_owned(), json!({ "type": kind }));
    let entries = [
        (
            "schema",
            json!({ "const": super::SCHEMA, "description": "Name and version of this form." }),
        ),
        (
            "version",
            json!({ "type": "string", "description": "Version of the program." }),
        ),
        (
            "lab",
            json!({ "type": "string", "description": "Name of the lab." }),
        ),
        (
            "lab_sha256",
            json!({
                "type": "string",
                "pattern": "^[0-9a-f]{64}$",
                "description": "SHA-256 of the lab file's octets; each of the overrides follows after an octet 0.",
            }),
        ),
        (
            "overrides",
            json!({
                "type": "array",
                "items": { "type": "string" },
                "description": "Changes of the file that were given on the command line, in order.",
            }),
        ),
        (
            "seed",
            json!({ "type": "integer", "minimum": 0, "description": "Seed of all random streams." }),
        ),
        (
            "time",
            json!({
                "type": "string",
                "description": "virtual (aerostat run) or real (aerostat up): see 'Real time' in docs/results.md.",
            }),
        ),
        (
            "end_s",
            json!({ "type": "number", "description": "Time at the end of the run, seconds: virtual, or since the lab was started." }),
        ),
        (
            "interrupted",
            json!({ "type": "boolean", "description": "The run in virtual time was ended by a signal; what follows is as of `end_s`." }),
        ),
        (
            "settings",
            json!({
                "type": "object",
                "description": "Effective parameters: what the lab file says, and what it leaves to defaults; see 'Settings' in docs/results.md.",
                "properties": settings.into_iter().map(of_type).collect::<Map<_, _>>(),
                "required": settings.map(|(name, _)| name),
            }),
        ),
    ];
    entries
        .into_iter()
        .map(|(name, schema)| (name.to_owned(), schema))
        .collect()
}

#[cfg(test)]
mod tests;
