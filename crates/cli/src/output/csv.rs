//! Comma-separated values: one table under one line of column names.

use super::{Rows, plain, quoted};
use serde_json::Value;
use std::io::{self, Write};

/// One table of comma-separated values: the tables of several nodes with the same name, under the columns of all.
#[derive(Debug)]
pub(super) struct Csv<'a> {
    /// Its name.
    pub(super) name: &'a str,
    /// True if a column names the node, and if one names the table.
    leads: [bool; 2],
    columns: Vec<&'a str>,
    parts: Vec<&'a Rows>,
}

impl<'a> Csv<'a> {
    /// The tables of each name together, in the order in which the names come.
    pub(super) fn all(tables: &'a [Rows]) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for rows in tables {
            let at = all.iter().position(|known| known.name == rows.name());
            let at = at.unwrap_or_else(|| {
                all.push(Self {
                    name: rows.name(),
                    leads: [false; 2],
                    columns: Vec::new(),
                    parts: Vec::new(),
                });
                all.len() - 1
            });
            all[at].add(rows);
        }
        all
    }

    fn add(&mut self, rows: &'a Rows) {
        self.leads[0] |= !rows.node.is_empty();
        self.leads[1] |= !rows.title.is_empty();
        for column in &rows.columns {
            if !self.columns.contains(&column.as_str()) {
                self.columns.push(column);
            }
        }
        self.parts.push(rows);
    }

    /// One object per row.
    pub(super) fn objects(&self) -> impl Iterator<Item = Value> {
        self.parts.iter().flat_map(|rows| rows.objects())
    }

    /// Writes the line of column names, and a line for each row. A column that a node does not have is empty there.
    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let leads = ["node", "table"].into_iter().zip(self.leads);
        let leads = leads.filter_map(|(name, shown)| shown.then_some(name));
        let header: Vec<&str> = leads.chain(self.columns.iter().copied()).collect();
        writeln!(out, "{}", header.join(","))?;
        for rows in &self.parts {
            let places = self.columns.iter();
            let places: Vec<Option<usize>> = places
                .map(|name| rows.columns.iter().position(|column| column == name))
                .collect();
            for row in &rows.rows {
                let lead = [&rows.node, &rows.title].into_iter().zip(self.leads);
                let lead = lead
                    .filter(|(_, shown)| *shown)
                    .map(|(text, _)| quoted(text));
                let cells = places.iter().map(|at| match at.and_then(|at| row.get(at)) {
                    None | Some(Value::Null) => String::new(),
                    Some(value) => quoted(&plain(value)),
                });
                let line: Vec<String> = lead.chain(cells).collect();
                writeln!(out, "{}", line.join(","))?;
            }
        }
        Ok(())
    }
}

/// One table as CSV.
pub(crate) fn write_csv_table(out: &mut impl Write, rows: &Rows) -> io::Result<()> {
    let tables = std::slice::from_ref(rows);
    Csv::all(tables).iter().try_for_each(|csv| csv.write(out))
}
