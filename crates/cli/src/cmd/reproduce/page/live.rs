//! Rows between Linux kernels in real time: their columns, and the settings of the kernels.

use super::{distance, escaped, number};
use crate::cmd::reproduce::{Score, median};
use crate::output::Rows;
use std::fmt::Write as _;

/// Heads of the columns of [`cells`].
pub(super) const HEADS: &str = "<th class=\"n\">live</th><th class=\"n\">live range</th><th class=\"n\">runs</th>\
    <th class=\"n\">live error</th><th class=\"n\">timeouts</th><th>live result</th>";

/// The cells of a row; empty ones if it did not run between kernels.
pub(super) fn cells(out: &mut String, score: &Score<'_>) {
    let Some(live) = &score.live else {
        out.push_str("<td></td><td></td><td></td><td></td><td></td><td></td>");
        return;
    };
    let range = match (live.values.first(), live.values.last()) {
        (Some(low), Some(high)) => format!("{} to {}", number(*low), number(*high)),
        _ => String::new(),
    };
    let _ = write!(
        out,
        "<td class=\"n\">{}</td><td class=\"n\">{range}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>\
         <td class=\"n\">{}</td><td>{}</td>",
        number(median(&live.values)),
        live.values.len(),
        distance(live.error),
        live.found.timeouts(),
        live.result,
    );
}

/// Settings of all rows in real time: the machine.
pub(super) fn machine(out: &mut String, settings: &Rows) {
    out.push_str(
        "<h2>Virtual and real time</h2>\n<p>The columns <b>model</b>, <b>range</b> and <b>result</b> are of labs in \
         virtual time. The columns <b>live</b> are of the same labs in real time, with Linux kernels as hosts; their \
         result says whether the median of the runs would keep the rule of the row. It counts in no summary. \
         <b>lagged</b>: the machine was too busy, and the values are no result.</p>\n",
    );
    table(out, settings, "");
}

/// The settings of the kernels of an entry.
pub(super) fn settings(out: &mut String, entry: &super::Entry, settings: &Rows) {
    table(out, settings, &entry.name);
}

/// The rows of the table whose first cell is `of`.
fn table(out: &mut String, settings: &Rows, of: &str) {
    let mine = settings.rows.iter().filter(|row| row[3] == of);
    let lines: Vec<String> = mine
        .map(|row| {
            let cells = row[..3].iter();
            let cells = cells.map(|cell| escaped(cell.as_str().unwrap_or_default()));
            let cells: Vec<String> = cells.map(|cell| format!("<td>{cell}</td>")).collect();
            format!("<tr>{}</tr>\n", cells.concat())
        })
        .collect();
    if !lines.is_empty() {
        let _ = writeln!(
            out,
            "<table class=\"keys\">\n<thead><tr><th>live: what</th><th>value</th><th>kernels of</th></tr></thead>\n\
             <tbody>{}</tbody></table>",
            lines.concat()
        );
    }
}
