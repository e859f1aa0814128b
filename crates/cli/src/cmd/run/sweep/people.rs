//! The table of a sweep for people.

use crate::args::SweepForm;
use crate::output::{self, Form as Shown, Format, Rows};
use aerostat_lab::results::rounded;
use aerostat_sweep::failure::Failure;
use aerostat_sweep::shape::Field;
use aerostat_sweep::table::{Form, Manner, Out, Writer};
use serde_json::Value;

/// Name and version of the table as a document.
const SCHEMA: &str = "aerostat.sweep.v1";

/// How the command writes a table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Looks {
    pub(super) form: SweepForm,
    /// All columns of a table for people.
    pub(super) wide: bool,
    /// True for a file, which is UTF-8 in every locale.
    pub(super) file: bool,
}

impl Manner for Looks {
    fn writer<'a>(&self, out: Out<'a>, fields: &[Field]) -> Result<Box<dyn Writer + 'a>, Failure> {
        let form = match self.form {
            SweepForm::Csv => Form::Csv,
            SweepForm::Jsonl => Form::Jsonl,
            SweepForm::Parquet => Form::Parquet,
            SweepForm::Table => {
                let names: Vec<&str> = fields.iter().map(|field| &*field.name).collect();
                let rows = Rows {
                    importance: fields.iter().map(|field| field.importance).collect(),
                    ..Rows::new(&names)
                };
                return Ok(Box::new(People {
                    out,
                    looks: *self,
                    rows,
                }));
            }
        };
        form.writer(out, fields)
    }
}

/// Columns for people, which are as wide as their widest value.
struct People<'a> {
    out: Out<'a>,
    looks: Looks,
    rows: Rows,
}

impl Writer for People<'_> {
    fn row(&mut self, _fields: &[Field], row: Vec<Value>) -> Result<(), Failure> {
        self.rows.push(row);
        Ok(())
    }
    fn finish(mut self: Box<Self>) -> Result<(), Failure> {
        self.rows.rows.iter_mut().flatten().for_each(for_people);
        let form = Shown::new(Format::Table, self.looks.wide);
        let tables = [self.rows];
        match self.looks.file {
            true => output::write_to(self.out, form, SCHEMA, &tables)?,
            false => output::write_to(self.out, form, SCHEMA, &output::for_locale(&tables))?,
        }
        Ok(())
    }
}

/// Rounds a number to four significant digits: those of a mean that a reader compares.
fn for_people(cell: &mut Value) {
    const DIGITS: i32 = 4;
    if let Some(value) = cell.as_f64().filter(|value| cell.is_f64() && *value != 0.0) {
        let decimals = DIGITS - 1 - value.abs().log10().floor() as i32;
        *cell = rounded(value, decimals.max(0)).into();
    }
}
