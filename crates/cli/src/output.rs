//! Data for standard output: a table for people, JSON or CSV for programs.

use crate::exit::Failure;
use aerostat_lab::printable;
use aerostat_live::charset;
use clap::ValueEnum;
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, Width, presets};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::io::{self, Write};

mod choice;
mod csv;
mod width;

pub(crate) use aerostat_sweep::text::{plain, quoted};
pub(crate) use choice::{DIRECTORY, check, check_directory, write_chosen};
pub(crate) use csv::write_csv_table;

pub(crate) use aerostat_view::Rows;

use csv::Csv;
use width::Choice;

aerostat_wire::named! {
    /// Forms of output.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
    pub(crate) enum Format {
        /// Columns for people
        #[default]
        Table = "table",
        /// One JSON document with a "schema"
        Json = "json",
        /// One JSON object per row and line
        Jsonl = "jsonl",
        /// Comma-separated values with a header line
        Csv = "csv",
    }
}

/// Width of tables for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// 80 columns: the most important columns of the table.
    Narrow,
    /// All columns of the table.
    Wide,
}

/// The form of output, and the width of its tables.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form {
    pub(crate) format: Format,
    pub(crate) layout: Layout,
}

impl Form {
    pub(crate) const fn new(format: Format, wide: bool) -> Self {
        let layout = if wide { Layout::Wide } else { Layout::Narrow };
        Self { format, layout }
    }
}

/// Writes tables in the requested form; `schema` names the JSON document.
pub(crate) fn write(form: Form, schema: &str, tables: &[Rows]) -> Result<(), Failure> {
    match form.format {
        Format::Table => write_to(&mut io::stdout().lock(), form, schema, &for_locale(tables)),
        _ => write_to(&mut io::stdout().lock(), form, schema, tables),
    }
}

/// The tables with characters that the user's locale can show. This happens before columns get their widths.
pub(crate) fn for_locale(tables: &[Rows]) -> Cow<'_, [Rows]> {
    match charset::is_utf8() {
        true => Cow::Borrowed(tables),
        false => Cow::Owned(tables.iter().map(Rows::in_ascii).collect()),
    }
}

/// Like [`write()`], to any place, in UTF-8.
pub(crate) fn write_to(
    mut out: &mut dyn Write,
    form: Form,
    schema: &str,
    tables: &[Rows],
) -> Result<(), Failure> {
    match form.format {
        Format::Table => write_tables(&mut out, tables, form.layout)?,
        Format::Json => {
            let rows: Vec<Value> = tables.iter().flat_map(Rows::objects).collect();
            let document = json!({ "schema": schema, "rows": rows });
            writeln!(out, "{document:#}")?;
        }
        Format::Jsonl => {
            for row in tables.iter().flat_map(Rows::objects) {
                writeln!(out, "{row}")?;
            }
        }
        Format::Csv => match &Csv::all(tables)[..] {
            [] => {}
            [csv] => csv.write(&mut out)?,
            several => {
                let names: Vec<&str> = several.iter().map(|csv| csv.name).collect();
                let text = format!("CSV is one table, and these are {}", names.join(", "));
                return Err(Failure::usage(text).hint("-o jsonl has all of them"));
            }
        },
    }
    out.flush()?;
    Ok(())
}

fn write_tables(out: &mut impl Write, tables: &[Rows], layout: Layout) -> io::Result<()> {
    for (number, rows) in tables.iter().enumerate() {
        if number > 0 {
            writeln!(out)?;
        }
        let heading = rows.heading();
        if !heading.is_empty() {
            writeln!(out, "{heading}")?;
        }
        writeln!(out, "{}", render(rows, layout))?;
    }
    Ok(())
}

fn render(rows: &Rows, layout: Layout) -> String {
    let choice = match layout {
        Layout::Narrow => Choice::narrow(rows),
        Layout::Wide => Choice::all(rows),
    };
    let shown = |row: &[Value]| -> Vec<String> {
        let values = choice.shown.iter().filter_map(|&at| row.get(at));
        let values = values.map(readable);
        // Line ends in a cell are allowed, other control characters are not.
        values
            .map(|text| printable::lines(&text).into_owned())
            .collect()
    };
    let header = choice
        .shown
        .iter()
        .map(|&at| rows.columns[at].to_uppercase());
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(header);
    for row in &rows.rows {
        table.add_row(shown(row));
    }
    let columns = choice.shown.iter().zip(&choice.limits);
    for (column, (&at, limit)) in table.column_iter_mut().zip(columns) {
        if is_numeric(rows, at) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        column.set_padding((0, 2));
        if let Some(limit) = limit.and_then(|limit| u16::try_from(limit + width::GAP).ok()) {
            column.set_constraint(ColumnConstraint::UpperBoundary(Width::Fixed(limit)));
        }
    }
    let text = table.to_string();
    let lines = text.lines().map(str::trim_end).map(str::to_owned);
    let left_out = width::left_out(rows, &choice);
    lines.chain(left_out).collect::<Vec<_>>().join("\n")
}

fn is_numeric(rows: &Rows, at: usize) -> bool {
    let mut values = rows.rows.iter().filter_map(|row| row.get(at));
    !rows.rows.is_empty() && values.all(|value| value.is_number() || value.is_null())
}

/// A value for people: as [`plain`], but numbers have no more decimals than people read.
pub(crate) fn readable(value: &Value) -> String {
    match value {
        Value::Number(number) if number.is_f64() => {
            number.as_f64().map_or_else(|| plain(value), decimals)
        }
        _ => plain(value),
    }
}

/// A number for people, with at most six decimals; one that has more zeros than that stays as it is.
fn decimals(value: f64) -> String {
    let whole = Value::from(value).to_string();
    let digits = whole.split_once('.').map_or(0, |(_, digits)| digits.len());
    if digits <= 6 || value.abs() < 1e-4 || whole.contains('e') {
        return whole;
    }
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Rows {
        let mut rows = Rows::new(&["name", "count"]);
        rows.node = "urku".into();
        rows.push(vec!["a, \"b\"".into(), 7.into()]);
        rows.push(vec!["c".into(), Value::Null]);
        rows
    }

    #[test]
    fn numbers_for_people_have_at_most_six_decimals() {
        let told = [
            (11359.546999999999, "11359.547"),
            (0.40034649599999994, "0.400346"),
            (0.0000012345, "1.2345e-6"),
            (0.00001234567, "0.00001234567"),
            (25.0, "25.0"),
            (1e20, "1e+20"),
        ];
        for (value, text) in told {
            assert_eq!(readable(&value.into()), text);
        }
        assert_eq!(readable(&Value::Null), "-");
    }

    #[test]
    fn forms() {
        let csv = |tables: &[Rows]| {
            let (mut out, form) = (Vec::new(), Form::new(Format::Csv, false));
            let written = write_to(&mut out, form, "", tables);
            written.map(|()| String::from_utf8(out).unwrap())
        };
        let row = "urku,\"a, \"\"b\"\"\",7\nurku,c,\n";
        let twice = csv(&[sample(), sample()]).unwrap();
        assert_eq!(twice, format!("node,name,count\n{row}{row}"));
        // A node of another kind may have other columns in the same table.
        let mut other = Rows::new(&["state", "count"]);
        other.push(vec!["up".into(), 1.into()]);
        let both = csv(&[sample(), other.clone()]).unwrap();
        let row = row.replace(",7\n", ",7,\n").replace("c,\n", "c,,\n");
        assert_eq!(both, format!("node,name,count,state\n{row},,1,up\n"));
        // Another table has a line of names of its own, which CSV has no place for.
        other.title = "states".into();
        let refused = csv(&[sample(), other]).unwrap_err();
        assert!(refused.message.ends_with(", states"), "{refused}");
        let text = render(&sample(), Layout::Narrow);
        assert_eq!(text, "NAME    COUNT\na, \"b\"      7\nc           -");
        let first = sample().objects().next().unwrap();
        assert_eq!(
            first,
            json!({ "node": "urku", "name": "a, \"b\"", "count": 7 })
        );
    }
}
