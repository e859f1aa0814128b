//! Several tables for programs: one of them on standard output, or each in a file of its own.

use super::csv::Csv;
use super::{Form, Format, Rows, write};
use crate::args::TableArgs;
use crate::exit::Failure;
use aerostat_lab::files::{Named, write_whole};
use std::io::{self, Write as _};
use std::path::Path;

/// Refuses options that contradict the form of output.
///
/// # Errors
/// `--out` without a form of which each table is a file.
pub(crate) fn check(args: &TableArgs, format: Option<Format>) -> Result<(), Failure> {
    match (&args.out, format) {
        (None, _) => Ok(()),
        (Some(directory), Some(Format::Csv | Format::Jsonl)) => check_directory(directory),
        (Some(_), _) => {
            let text = "--out writes a file for each table";
            Err(Failure::usage(text).hint("-o csv or -o jsonl"))
        }
    }
}

/// Refuses a path that exists and is no directory, before there is anything to lose.
///
/// # Errors
/// The path is a file or something else.
pub(crate) fn check_directory(path: &Path) -> Result<(), Failure> {
    if !path.exists() || path.is_dir() {
        return Ok(());
    }
    Err(Failure::failed(format!("{}: not a directory", path.display())).hint(DIRECTORY))
}

/// Hint about a directory for results.
pub(crate) const DIRECTORY: &str = "--out takes a directory; it is made if it does not exist";

/// Writes the chosen tables in the requested form, to standard output or into files.
///
/// # Errors
/// No table has the name; several tables as CSV on standard output; a file cannot be written.
pub(crate) fn write_chosen(
    (form, args): (Form, &TableArgs),
    schema: &str,
    mut tables: Vec<Rows>,
) -> Result<(), Failure> {
    if let Some(wanted) = &args.table {
        let known = names(&tables).join(", ");
        tables.retain(|rows| is_called(rows.name(), wanted));
        if tables.is_empty() {
            return Err(Failure::usage(format!("there is no table '{wanted}'"))
                .hint(format!("tables are {known}")));
        }
    }
    match &args.out {
        Some(directory) => into_files(directory, form.format, &tables).map_err(|error| {
            let text = format!("{}: {error}", directory.display());
            Failure::failed(text).hint(DIRECTORY)
        }),
        None => write(form, schema, &tables).map_err(|failure| match failure.hint {
            Some(_) if form.format == Format::Csv => {
                failure.hint("--table NAME writes one of them, --out DIR a file for each")
            }
            _ => failure,
        }),
    }
}

/// Names of the tables, each once.
fn names(tables: &[Rows]) -> Vec<&str> {
    Csv::all(tables).iter().map(|csv| csv.name).collect()
}

/// True if a table has this name: `mpc.ingress`, or `ingress`.
fn is_called(name: &str, wanted: &str) -> bool {
    let title = name.split_once('.').map_or(name, |(_, title)| title);
    [name, title].contains(&wanted)
}

/// A file for each table, `DIR/mpc.ingress.csv`, which appears completely or not at all.
fn into_files(directory: &Path, format: Format, tables: &[Rows]) -> io::Result<()> {
    std::fs::create_dir_all(directory)?;
    for csv in Csv::all(tables) {
        let path = directory.join(format!("{}.{}", csv.name, format.name()));
        write_whole(&path, Named::ByProgram, |out| match format {
            Format::Csv => csv.write(out),
            _ => csv
                .objects()
                .try_for_each(|object| writeln!(out, "{object}")),
        })?;
    }
    Ok(())
}
