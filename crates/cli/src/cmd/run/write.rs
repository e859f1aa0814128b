//! The results in the requested form, to standard output or into a directory.

use super::columns::{self, TableInfo};
use super::document::{Document, PROGRAMS, SCHEMA, SHORTCUTS};
use super::files::Whole;
use super::flows;
use super::rounded;
use crate::args::ResultArgs;
use crate::exit::{Exit, Failure};
use crate::output::{self, Format, Rows};
use aerostat_lab::Lab;
use aerostat_lab::report::RunReport;
use serde_json::{Map, Value, json};
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Refuses invalid combinations of options, before the lab runs.
pub(crate) fn check(args: &ResultArgs) -> Result<(), Failure> {
    wanted(args).map(|_| ())
}

/// True if [`write()`] shows only the tables for people.
pub(crate) const fn for_people(args: &ResultArgs) -> bool {
    matches!(args.output.output, Format::Table) && args.table.is_none() && args.out.is_none()
}

/// The requested table.
fn wanted(args: &ResultArgs) -> Result<Option<&'static TableInfo>, Failure> {
    if args.out.is_some() && args.output.output == Format::Table {
        let text = "--out needs a form for programs";
        return Err(Failure::usage(text).hint("-o csv, -o jsonl or -o json"));
    }
    let Some(wanted) = &args.table else {
        return Ok(None);
    };
    let info = columns::find(wanted).ok_or_else(|| {
        Failure::usage(format!("results have no table '{wanted}'"))
            .hint(format!("tables are {}", super::table_names().join(", ")))
    })?;
    Ok(Some(info))
}

/// Writes the results, or one table of them. `short` are the tables for people: see [`short`]. A reader that closes the
/// pipe is not an error, and the caller continues with its warnings.
pub(crate) fn write(args: &ResultArgs, document: Document, short: &[Rows]) -> Result<(), Failure> {
    match put(args, document, short) {
        Err(failure) if failure.exit == Exit::Ok => Ok(()),
        other => other,
    }
}

fn put(args: &ResultArgs, document: Document, short: &[Rows]) -> Result<(), Failure> {
    let only = wanted(args)?;
    let format = args.output.output;
    if let Some(directory) = &args.out {
        return into_directory(directory, format, document).map_err(|error| {
            let failure = Failure::failed(format!("{}: {error}", directory.display()));
            match error.kind() {
                io::ErrorKind::StorageFull => failure,
                _ => failure.hint("--out takes a directory; it is made if it does not exist"),
            }
        });
    }
    let mut out = BufWriter::new(io::stdout().lock());
    match (format, only) {
        (Format::Table, None) => {
            drop(out);
            // A lab of programs alone has no flows, and most labs have no shortcuts.
            let filled = short.iter().filter(|table| !table.rows.is_empty());
            let filled: Vec<Rows> = filled.cloned().collect();
            return output::write(args.output.form(), SCHEMA, &filled);
        }
        (Format::Table, Some(info)) => {
            drop(out);
            let rows = flat_rows(info, &rows_of(&document, info));
            return output::write(args.output.form(), SCHEMA, &[rows]);
        }
        (Format::Json, None) => writeln!(out, "{:#}", document.json())?,
        (Format::Json, Some(info)) => {
            let rows = rows_of(&document, info);
            let mut all = document.head;
            all.insert(info.flat_name(), rows.into());
            writeln!(out, "{:#}", Value::Object(all))?;
        }
        (Format::Jsonl, Some(info)) => {
            jsonl(&mut out, &info.flat_name(), &rows_of(&document, info))?;
        }
        (Format::Jsonl, None) => {
            for (name, rows) in document.flat() {
                jsonl(&mut out, &name, &rows)?;
            }
        }
        (Format::Csv, only) => {
            let info = only.unwrap_or(columns::flows());
            csv(&mut out, info, &rows_of(&document, info))?;
        }
    }
    out.flush()?;
    Ok(())
}

/// The rows of a table; no rows if this lab has no such table.
fn rows_of(document: &Document, info: &TableInfo) -> Vec<Value> {
    let name = info.flat_name();
    let found = document.flat().into_iter().find(|table| table.0 == name);
    found.map(|table| table.1).unwrap_or_default()
}

fn into_directory(directory: &Path, format: Format, document: Document) -> io::Result<()> {
    // A lab in real time has made the directory before it gave up the right to.
    if !directory.is_dir() {
        std::fs::create_dir_all(directory)?;
    }
    let mut files = Whole::new(directory);
    if format == Format::Json {
        files.add("results.json", |out| writeln!(out, "{:#}", document.json()))?;
        return files.keep();
    }
    for (name, rows) in document.flat() {
        let Some(info) = columns::find(&name) else {
            continue;
        };
        if format == Format::Csv {
            files.add(&format!("{name}.csv"), |out| csv(out, info, &rows))?;
        } else {
            files.add(&format!("{name}.jsonl"), |out| jsonl(out, &name, &rows))?;
        }
    }
    files.add("run.json", |out| {
        writeln!(out, "{:#}", Value::Object(document.head))
    })?;
    files.keep()
}

fn jsonl(out: &mut impl Write, name: &str, rows: &[Value]) -> io::Result<()> {
    for row in rows {
        let mut object = Map::new();
        object.insert("table".into(), name.into());
        object.extend(row.as_object().cloned().unwrap_or_default());
        writeln!(out, "{}", Value::Object(object))?;
    }
    Ok(())
}

/// One table with a line of column names.
fn csv(out: &mut impl Write, info: &TableInfo, rows: &[Value]) -> io::Result<()> {
    let rows = flat_rows(info, rows);
    output::write_csv_table(out, &rows)
}

/// Objects as rows; an inner object, such as `delay_us`, becomes columns of its own, such as `delay_us_mean`.
fn flat_rows(info: &TableInfo, rows: &[Value]) -> Rows {
    let mut columns = info.flat_columns();
    let lacked = |name: &str| rows.iter().all(|row| row.get(name).is_none());
    for rare in info.columns.iter().filter(|column| column.rare) {
        columns.retain(|path| path[..] != [rare.name] || !lacked(rare.name));
    }
    let mut flat = Rows {
        columns: columns.iter().map(|path| path.join("_")).collect(),
        ..Rows::default()
    };
    for row in rows {
        flat.push(columns.iter().map(|path| value_at(row, path)).collect());
    }
    flat
}

pub(super) fn value_at(row: &Value, path: &[&str]) -> Value {
    let mut value = row;
    for step in path {
        value = value.get(step).unwrap_or(&Value::Null);
    }
    match value {
        // Counts by name stay in one cell, because names may contain any separator.
        Value::Object(counts) if counts.is_empty() => "".into(),
        Value::Object(_) => value.to_string().into(),
        _ => value.clone(),
    }
}

/// Tables about the programs of a lab.
const OF_PROGRAMS: [&str; 2] = [PROGRAMS, columns::ATP];

/// The tables for people.
pub(crate) fn short(report: &RunReport, lab: &Lab, document: &Document) -> Vec<Rows> {
    let programs = OF_PROGRAMS.iter().filter_map(|name| {
        let (_, objects) = document.tables.iter().find(|table| table.0 == *name)?;
        let mut rows = flat_rows(columns::find(name)?, objects);
        rows.title = (*name).into();
        Some(rows)
    });
    let mut tables = vec![flows::rows(&report.flows, lab), shortcut_rows(document)];
    tables.extend(programs);
    tables.extend(flows::fairness_rows(&report.flows, lab));
    tables.extend(super::network::occupancy_rows(lab, &report.occupancy));
    tables.extend(tester_rows(report));
    tables
}

/// The testers that cells have reached, for people; `None` without any.
fn tester_rows(report: &RunReport) -> Option<Rows> {
    let mut rows = Rows::new(&[
        "node",
        "program",
        "received",
        "lost",
        "errored",
        "misinserted",
        "clr",
        "ctd_mean_us",
        "cdv_peak_us",
    ]);
    rows.title = columns::CELLS.into();
    for tested in &report.tested {
        let seen = &tested.measured;
        if seen.time.is_zero() {
            continue;
        }
        let delay = &seen.delay;
        rows.push(vec![
            tested.at.0.clone().into(),
            tested.at.1.clone().into(),
            seen.received.into(),
            seen.lost.into(),
            seen.errored.into(),
            seen.misinserted.into(),
            rounded(seen.loss_ratio().unwrap_or(0.0), 9),
            rounded(delay.mean_us, 3),
            rounded(delay.max_us - delay.min_us, 3),
        ]);
    }
    (!rows.rows.is_empty()).then_some(rows)
}

/// The shortcuts for people.
fn shortcut_rows(document: &Document) -> Rows {
    let mut rows = Rows::new(&[
        "from",
        "destination",
        "state",
        "vpi",
        "vci",
        "packets",
        "holding_s",
    ]);
    rows.title = "shortcuts".into();
    let shortcuts = document.tables.iter().find(|table| table.0 == SHORTCUTS);
    for shortcut in shortcuts.into_iter().flat_map(|table| &table.1) {
        let field = |name: &String| shortcut.get(name).cloned().unwrap_or(Value::Null);
        rows.push(rows.columns.iter().map(field).collect());
    }
    rows
}

/// The JSON Schema of the document.
pub(super) fn print_schema() -> io::Result<()> {
    writeln!(io::stdout().lock(), "{:#}", schema())
}

/// The JSON Schema of the document (draft 2020-12).
pub(super) fn schema() -> Value {
    let mut properties = Map::new();
    for (name, value) in columns::head() {
        properties.insert(name, value);
    }
    let mut kinds: Map<String, Value> = Map::new();
    for table in columns::tables() {
        let rows = table.schema();
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
        .filter(|key| !columns::RARE.contains(&key.as_str()))
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
        "description": "What 'aerostat run -o json' writes. docs/results.md says where each value is measured.",
        "type": "object",
        "additionalProperties": false,
        "required": required,
        "properties": properties,
    })
}
