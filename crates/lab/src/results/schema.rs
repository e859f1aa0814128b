//! The JSON Schema of the results.

use super::tables::{is_rare, tables};
use super::{ORDER, SCHEMA};
use aerostat_node::inspect::{Column, Kind, TableInfo};
use serde_json::{Map, Value, json};

/// The schema of a list of rows.
fn rows(info: &TableInfo) -> Value {
    let mut row = json!({ "type": "object" });
    describe(&mut row, info.columns, info.of_nodes());
    json!({ "type": "array", "description": info.what(), "items": row })
}

/// Adds the columns to the schema of an object. With `open` any column may be missing or empty.
fn describe(schema: &mut Value, columns: &[Column], open: bool) {
    let always = columns.iter().filter(|column| !column.rare);
    let names: Vec<_> = always.map(|column| column.name).collect();
    let properties = columns
        .iter()
        .map(|column| (column.name.to_owned(), of_column(column, open)));
    schema["properties"] = Value::Object(properties.collect());
    if !open {
        schema["required"] = json!(names);
    }
    schema["additionalProperties"] = false.into();
}

fn of_column(column: &Column, null: bool) -> Value {
    let kind = match column.kind {
        Kind::Text => "string",
        Kind::Count => "integer",
        Kind::Number => "number",
        Kind::Flag => "boolean",
        Kind::Group(_) | Kind::Counts => "object",
    };
    let mut schema = json!({ "description": column.what() });
    schema["type"] = if null || column.null {
        json!([kind, "null"])
    } else {
        kind.into()
    };
    match column.kind {
        Kind::Count => schema["minimum"] = 0.into(),
        Kind::Counts => {
            schema["additionalProperties"] = json!({ "type": "integer", "minimum": 0 });
        }
        Kind::Group(columns) => describe(&mut schema, columns, false),
        Kind::Text | Kind::Number | Kind::Flag => {}
    }
    schema
}

/// The members before the tables, with their schema.
fn head() -> Map<String, Value> {
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
            json!({ "const": SCHEMA, "description": "Name and version of this form." }),
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

/// The JSON Schema of the document (draft 2020-12).
#[must_use]
pub fn schema() -> Value {
    let mut properties = Map::new();
    for (name, value) in head() {
        properties.insert(name, value);
    }
    let mut kinds: Map<String, Value> = Map::new();
    for table in tables() {
        let rows = rows(table);
        match table.name.split_once('.') {
            None => {
                properties.insert(table.name.into(), rows);
            }
            Some((kind, title)) => {
                let entry = kinds.entry(kind).or_insert_with(
                    || json!({ "type": "object", "additionalProperties": false, "properties": {} }),
                );
                entry["properties"][title] = rows;
            }
        }
    }
    let required: Vec<Value> = properties
        .keys()
        .filter(|key| tables().all(|table| table.name != **key || !is_rare(table)))
        .map(|key| key.as_str().into())
        .collect();
    properties.insert(
        "nodes".into(),
        json!({
            "type": "object",
            "description": "State of each node at the end of the run: its name, kinds of state, tables.",
            "additionalProperties": {
                "type": "object",
                "additionalProperties": false,
                "properties": kinds,
            },
        }),
    );
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Results of aerostat run",
        "description": format!(
            "What 'aerostat run -o json' writes. docs/results.md says where each value is measured, and in which order CSV \
             has the columns: version {ORDER}."
        ),
        "type": "object",
        "additionalProperties": false,
        "required": required,
        "properties": properties,
    })
}
