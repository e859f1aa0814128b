//! Writes the table of a sweep, row by row.

use crate::failure::Failure;
use crate::mean::Point;
use crate::parquet;
use crate::shape::{Field, Shape};
use crate::text::{plain, quoted};
use crate::variants::Variant;
use aerostat_lab::files::{Named, write_whole};
use serde_json::{Map, Value};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Where a table goes.
pub type Out<'a> = &'a mut (dyn Write + Send);

/// Forms of a table for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Comma-separated values with a header line.
    Csv,
    /// One JSON object per row and line.
    Jsonl,
    /// Apache Parquet.
    Parquet,
}

impl Form {
    /// All forms.
    pub const ALL: [Self; 3] = [Self::Csv, Self::Jsonl, Self::Parquet];

    /// The end of a file's name.
    #[must_use]
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Jsonl => "jsonl",
            Self::Parquet => "parquet",
        }
    }

    /// The form that the end of a file's name stands for.
    #[must_use]
    pub fn of_extension(extension: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|form| form.extension() == extension)
    }
}

/// Writes rows in one form.
pub trait Writer {
    /// Writes one row, whose values are those of these columns.
    ///
    /// # Errors
    /// It cannot be written.
    fn row(&mut self, fields: &[Field], row: Vec<Value>) -> Result<(), Failure>;
    /// Writes what is left.
    ///
    /// # Errors
    /// It cannot be written.
    fn finish(self: Box<Self>) -> Result<(), Failure>;
}

/// Takes the runs of a sweep in their order, and writes their rows.
pub struct Sink<'a> {
    shape: &'a Shape,
    /// The columns that are written.
    fields: Vec<Field>,
    /// With means: the runs of one point so far, and its number.
    point: Option<(usize, Point)>,
    out: Box<dyn Writer + 'a>,
}

/// A way to write a table.
pub trait Manner {
    /// The writer of a table with these columns.
    ///
    /// # Errors
    /// The head cannot be written.
    fn writer<'a>(&self, out: Out<'a>, fields: &[Field]) -> Result<Box<dyn Writer + 'a>, Failure>;
}

impl Manner for Form {
    fn writer<'a>(&self, out: Out<'a>, fields: &[Field]) -> Result<Box<dyn Writer + 'a>, Failure> {
        Ok(match self {
            Self::Csv => {
                let header: Vec<String> = fields.iter().map(|field| quoted(&field.name)).collect();
                writeln!(out, "{}", header.join(","))?;
                Box::new(Csv(out))
            }
            Self::Jsonl => Box::new(Jsonl(out)),
            Self::Parquet => Box::new(parquet::Writer::new(out, fields)?),
        })
    }
}

impl<'a> Sink<'a> {
    /// Rows into `out`.
    ///
    /// # Errors
    /// The head cannot be written.
    pub fn new(out: Out<'a>, manner: &dyn Manner, shape: &'a Shape) -> Result<Self, Failure> {
        let fields = shape.written();
        Ok(Self {
            shape,
            out: manner.writer(out, &fields)?,
            fields,
            point: None,
        })
    }

    /// Rows for a writer that exists.
    #[must_use]
    pub fn into(out: Box<dyn Writer + 'a>, shape: &'a Shape) -> Self {
        Self {
            shape,
            out,
            fields: shape.written(),
            point: None,
        }
    }

    /// Writes a file that appears completely or not at all; `fill` gives the runs.
    ///
    /// # Errors
    /// Errors of `fill`, and those of a file that cannot be written, with its name.
    pub fn file(
        path: &Path,
        manner: &dyn Manner,
        shape: &Shape,
        fill: impl FnOnce(&mut Sink<'_>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut failed = None;
        let written = write_whole(path, Named::ByUser, |out: &mut BufWriter<&File>| {
            let filled = Sink::new(out, manner, shape).and_then(|mut sink| {
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
    ///
    /// # Errors
    /// They cannot be written.
    pub fn add(
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
        let (_, point) = self.point.get_or_insert_with(|| (number, Point::default()));
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

    /// Writes what is left.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn finish(mut self) -> Result<(), Failure> {
        self.end_point()?;
        self.out.finish()
    }
}

struct Csv<'a>(Out<'a>);

impl Writer for Csv<'_> {
    fn row(&mut self, _fields: &[Field], row: Vec<Value>) -> Result<(), Failure> {
        let cell = |value: &Value| match value {
            Value::Null => String::new(),
            other => quoted(&plain(other)),
        };
        let cells: Vec<String> = row.iter().map(cell).collect();
        Ok(writeln!(self.0, "{}", cells.join(","))?)
    }
    fn finish(self: Box<Self>) -> Result<(), Failure> {
        Ok(self.0.flush()?)
    }
}

struct Jsonl<'a>(Out<'a>);

impl Writer for Jsonl<'_> {
    fn row(&mut self, fields: &[Field], row: Vec<Value>) -> Result<(), Failure> {
        let names = fields.iter().map(|field| field.name.clone());
        let object: Map<String, Value> = names.zip(row).collect();
        Ok(writeln!(self.0, "{}", Value::Object(object))?)
    }
    fn finish(self: Box<Self>) -> Result<(), Failure> {
        Ok(self.0.flush()?)
    }
}
