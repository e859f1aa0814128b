//! The results in the requested form, to standard output or into a directory.

use super::files::Whole;
use crate::args::ResultArgs;
use crate::exit::{Exit, Failure};
use crate::manifest;
use crate::output::{self, Format, Rows};
use aerostat_lab::results::{self, Document, FlatTable, FlowRow, SCHEMA, schema};
use aerostat_node::inspect::{Row as _, TableInfo};
use serde_json::{Map, Value};
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Refuses invalid combinations of options, before the lab runs.
pub(crate) fn check(args: &ResultArgs) -> Result<(), Failure> {
    wanted(args)?;
    args.out.as_deref().map_or(Ok(()), output::check_directory)
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
    let info = results::find(wanted).ok_or_else(|| {
        Failure::usage(format!("results have no table '{wanted}'"))
            .hint(format!("tables are {}", super::table_names().join(", ")))
    })?;
    Ok(Some(info))
}

/// Writes the results, or one table of them. `short` are the tables for people ([`aerostat_view::people::short`]). A
/// reader that closes the pipe is not an error, and the caller continues with its warnings.
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
        // The manifest of earlier results says nothing about these.
        manifest::remove(directory)?;
        return into_directory(directory, format, document).map_err(|error| {
            let failure = Failure::failed(format!("{}: {error}", directory.display()));
            match error.kind() {
                io::ErrorKind::StorageFull => failure,
                _ => failure.hint(output::DIRECTORY),
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
            let rows = Rows::flat(&document.flat_table(info));
            return output::write(args.output.form(), SCHEMA, &[rows]);
        }
        (Format::Json, None) => document.write_json(&mut out)?,
        (Format::Json, Some(info)) => {
            let mut all = document.head().clone();
            let table = document.flat_table(info);
            all.insert(
                info.flat_name(),
                table.objects().map(Value::Object).collect(),
            );
            writeln!(out, "{:#}", Value::Object(all))?;
        }
        (Format::Jsonl, Some(info)) => {
            jsonl(&mut out, &document.flat_table(info))?;
        }
        (Format::Jsonl, None) => {
            for table in document.flat() {
                jsonl(&mut out, &table)?;
            }
        }
        (Format::Csv, only) => {
            let info = only.unwrap_or(FlowRow::INFO);
            csv(&mut out, &document.flat_table(info))?;
        }
    }
    out.flush()?;
    Ok(())
}

fn into_directory(directory: &Path, format: Format, document: Document) -> io::Result<()> {
    // A lab in real time has made the directory before it gave up the right to.
    if !directory.is_dir() {
        std::fs::create_dir_all(directory)?;
    }
    let mut files = Whole::new(directory);
    if format == Format::Json {
        files.add("results.json", |out| document.write_json(out))?;
        return files.keep();
    }
    for table in document.flat() {
        let name = table.info.flat_name();
        if format == Format::Csv {
            files.add(&format!("{name}.csv"), |out| csv(out, &table))?;
        } else {
            files.add(&format!("{name}.jsonl"), |out| jsonl(out, &table))?;
        }
    }
    files.add("run.json", |out| {
        writeln!(out, "{:#}", Value::Object(document.head().clone()))
    })?;
    files.keep()
}

fn jsonl(out: &mut impl Write, table: &FlatTable<'_>) -> io::Result<()> {
    let name = table.info.flat_name();
    for row in table.objects() {
        let mut object = Map::new();
        object.insert("table".into(), name.clone().into());
        object.extend(row);
        writeln!(out, "{}", Value::Object(object))?;
    }
    Ok(())
}

/// One table with a line of column names.
fn csv(out: &mut impl Write, table: &FlatTable<'_>) -> io::Result<()> {
    output::write_csv_table(out, &Rows::flat(table))
}

/// The JSON Schema of the document.
pub(super) fn print_schema() -> io::Result<()> {
    writeln!(io::stdout().lock(), "{:#}", schema())
}
