//! Writes the table of a sweep, row by row.

use super::mean::{self, Point};
use super::parquet;
use super::shape::{Field, Shape};
use crate::args::SweepForm;
use crate::cmd::run::many::variants::Variant;
use crate::exit::Failure;
use crate::output::{self, Form, Format, Rows, plain, quoted};
use aerostat_lab::files::{Named, write_whole};
use aerostat_lab::results::rounded;
use serde_json::{Map, Value};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Name and version of a table for people as a document.
const SCHEMA: &str = "aerostat.sweep.v1";

/// Takes the runs of a sweep in their order, and writes their rows.
pub(super) struct Sink<'a> {
    shape: &'a Shape,
    /// The columns that are written.
    fields: Vec<Field>,
    /// With means: the runs of one point so far, and its number.
    point: Option<(usize, Point)>,
    out: Writer<'a>,
    /// True for a file, which is UTF-8 in every locale.
    file: bool,
}

/// Writes rows in one form.
enum Writer<'a> {
    Csv(Out<'a>),
    Jsonl(Out<'a>),
    People(Out<'a>, Form, Rows),
    Parquet(parquet::Writer<'a>),
}

/// Rounds a number to four significant digits: those of a mean that a reader compares.
fn for_people(cell: &mut Value) {
    const DIGITS: i32 = 4;
    if let Some(value) = cell.as_f64().filter(|value| cell.is_f64() && *value != 0.0) {
        let decimals = DIGITS - 1 - value.abs().log10().floor() as i32;
        *cell = rounded(value, decimals.max(0)).into();
    }
}

/// Where a table goes.
pub(super) type Out<'a> = &'a mut (dyn Write + Send);

impl<'a> Sink<'a> {
    /// Rows into `out`.
    pub(super) fn new(
        out: Out<'a>,
        form: SweepForm,
        wide: bool,
        shape: &'a Shape,
    ) -> Result<Self, Failure> {
        let fields = if shape.mean {
            mean::fields(&shape.fields)
        } else {
            shape.fields.clone()
        };
        let names = fields.iter().map(|field| &*field.name);
        let names: Vec<&str> = names.collect();
        let writer = match form {
            SweepForm::Csv => {
                let header: Vec<String> = names.iter().map(|name| quoted(name)).collect();
                writeln!(out, "{}", header.join(","))?;
                Writer::Csv(out)
            }
            SweepForm::Jsonl => Writer::Jsonl(out),
            SweepForm::Table => {
                let rows = Rows {
                    importance: fields.iter().map(|field| field.importance).collect(),
                    ..Rows::new(&names)
                };
                Writer::People(out, Form::new(Format::Table, wide), rows)
            }
            SweepForm::Parquet => Writer::Parquet(parquet::Writer::new(out, &fields)?),
        };
        Ok(Self {
            shape,
            fields,
            point: None,
            out: writer,
            file: false,
        })
    }

    /// Writes a file that appears completely or not at all; `fill` gives the runs.
    pub(super) fn file(
        path: &Path,
        form: SweepForm,
        wide: bool,
        shape: &Shape,
        fill: impl FnOnce(&mut Sink<'_>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut failed = None;
        let written = write_whole(path, Named::ByUser, |out: &mut BufWriter<&File>| {
            let filled = Sink::new(out, form, wide, shape).and_then(|mut sink| {
                sink.file = true;
                fill(&mut sink)?;
                sink.finish()
            });
            filled.map_err(|failure| {
                failed = Some(failure);
                io::ErrorKind::Other.into()
            })
        });
        let shown = path.display();
        match (failed, written) {
            (Some(mut failure), _) => {
                failure.message = format!("{shown}: {}", failure.message);
                Err(failure)
            }
            (None, Err(error)) => Err(Failure::failed(format!("{shown}: {error}"))),
            (None, Ok(())) => Ok(()),
        }
    }

    /// The rows of the next run.
    pub(super) fn add(
        &mut self,
        number: usize,
        variants: &[Variant],
        rows: Vec<Vec<Value>>,
    ) -> Result<(), Failure> {
        if !self.shape.mean {
            return rows
                .into_iter()
                .try_for_each(|row| self.out.row(&self.fields, row));
        }
        let settings = &variants[number].settings;
        let begun = self
            .point
            .as_ref()
            .map(|(first, _)| &variants[*first].settings);
        if begun.is_some_and(|begun| begun != settings) {
            self.end_point()?;
        }
        let (_, point) = self.point.get_or_insert_with(|| (number, Point::new()));
        rows.iter()
            .for_each(|row| point.add(&self.shape.fields, row));
        Ok(())
    }

    /// The means of a point of which all runs have come.
    fn end_point(&mut self) -> Result<(), Failure> {
        let Some((_, mut point)) = self.point.take() else {
            return Ok(());
        };
        let mut rows = point.rows(&self.shape.fields).into_iter();
        rows.try_for_each(|row| self.out.row(&self.fields, row))
    }

    pub(super) fn finish(mut self) -> Result<(), Failure> {
        self.end_point()?;
        match self.out {
            Writer::Csv(out) | Writer::Jsonl(out) => out.flush()?,
            Writer::People(out, form, mut rows) => {
                rows.rows.iter_mut().flatten().for_each(for_people);
                match self.file {
                    true => output::write_to(out, form, SCHEMA, &[rows])?,
                    false => output::write_to(out, form, SCHEMA, &output::for_locale(&[rows]))?,
                }
            }
            Writer::Parquet(writer) => writer.finish()?,
        }
        Ok(())
    }
}

impl Writer<'_> {
    fn row(&mut self, fields: &[Field], row: Vec<Value>) -> Result<(), Failure> {
        match self {
            Self::Csv(out) => {
                let cell = |value: &Value| match value {
                    Value::Null => String::new(),
                    other => quoted(&plain(other)),
                };
                let cells: Vec<String> = row.iter().map(cell).collect();
                writeln!(out, "{}", cells.join(","))?;
            }
            Self::Jsonl(out) => {
                let names = fields.iter().map(|field| field.name.clone());
                let object: Map<String, Value> = names.zip(row).collect();
                writeln!(out, "{}", Value::Object(object))?;
            }
            Self::People(_, _, rows) => rows.push(row),
            Self::Parquet(writer) => writer.row(row)?,
        }
        Ok(())
    }
}
