//! Figures of one run: columns of one of its tables, packet by packet.
//!
//! ```text
//! traces:
//!   - { run: 5.3 late packets, title: Figure 5.3, over: packet, x: packet, between: [900, 954], unit: delta time (ms),
//!       scale: 0.001, lines: [[sent, sent_delta_us], [received, received_delta_us]] }
//! ```
//!
//! The table, and the rows of it that are points, are named by the values that the row `run` takes from its results.

use super::super::catalogue::Entry;
use crate::plot::{Axis, Drawing, Figure, Point, Scale, Series, Stroke};
use aerostat_node::inspect::{Table, Value};
use serde::Deserialize;
use std::collections::BTreeMap;

/// The rows of the tables that traces draw, of the run with the first seed, by entry and row.
pub(in super::super) type Tables = BTreeMap<(String, String), Table>;

/// Columns of a table that form lines.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct Trace {
    /// The row of the entry whose run is drawn.
    run: String,
    title: String,
    /// The column that is the horizontal axis.
    over: String,
    /// Meaning of this column, with its unit.
    x: String,
    /// The first value of this column that is drawn, and the value behind the last one.
    between: [f64; 2],
    /// Names and columns of the lines.
    lines: Vec<(String, String)>,
    /// Meaning of the lines, with their unit.
    unit: String,
    /// Factor of their values.
    scale: f64,
}

impl Trace {
    /// True if the run of this row is drawn.
    pub(in super::super) fn is_of(&self, row: &str) -> bool {
        self.run == row
    }

    /// The drawing; `None` if the run was not made, or if no row of its table is in the range.
    pub(super) fn drawing(&self, entry: &Entry, tables: &Tables) -> Option<Drawing> {
        let table = tables.get(&(entry.name.clone(), self.run.clone()))?;
        let [first, end] = self.between;
        let number = |row: &[Value], column: &str| table.cell(row, (column, None)).number();
        let line = |(name, column): &(String, String)| {
            let points = table.rows.iter().filter_map(|row| {
                let x = number(row, &self.over).filter(|x| (first..end).contains(x))?;
                Some(Point::new(x, number(row, column)? * self.scale))
            });
            let mut points: Vec<Point> = points.collect();
            points.sort_by(|a, b| a.x.total_cmp(&b.x));
            Series {
                name: name.clone(),
                form: Stroke::Joined,
                points,
                sign: None,
            }
        };
        let series: Vec<Series> = self.lines.iter().map(line).collect();
        let drawn = series.iter().any(|series| !series.points.is_empty());
        drawn.then(|| {
            Drawing::Lines(Figure {
                title: self.title.clone(),
                note: format!("{}; one run of the model", entry.title),
                x: Axis {
                    label: self.x.clone(),
                    scale: Scale::Linear { zero: false },
                },
                y: Axis {
                    label: self.unit.clone(),
                    scale: Scale::Linear { zero: true },
                },
                sideways: false,
                series,
                words: Vec::new(),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cmd::reproduce::catalogue;
    use aerostat_node::rows;

    rows! {
        /// One row for each packet.
        struct Packet: "packets" {
            /// Its number.
            packet: u32,
            /// When it was sent.
            sent_us: f64,
            /// When it arrived.
            got_us: u32,
        }
    }

    #[test]
    fn traces_draw_runs_of_rows_that_there_are() {
        let mut traces = 0;
        for entry in catalogue::Catalogue::own().entries {
            for trace in &entry.traces {
                let row = entry.rows.iter().find(|row| trace.is_of(&row.row));
                let row = row.unwrap_or_else(|| panic!("{}: no row {}", entry.name, trace.run));
                assert!(entry.has_model(row) && row.steps.is_none());
                traces += 1;
            }
        }
        assert!(
            traces > 0,
            "Figures 5.3 to 5.7 of the thesis are such drawings"
        );
    }

    #[test]
    fn a_trace_has_the_rows_in_its_range_in_the_order_of_its_axis() {
        let mut all = catalogue::Catalogue::own().entries.into_iter();
        let entry = all.find(|entry| entry.name == "thesis/figures").unwrap();
        let trace = Trace {
            run: "a".into(),
            title: "Title".into(),
            over: "packet".into(),
            x: "packet".into(),
            between: [1.0, 4.0],
            lines: vec![
                ("sent".into(), "sent_us".into()),
                ("received".into(), "got_us".into()),
            ],
            unit: "delta time (ms)".into(),
            scale: 0.001,
        };
        let row = |(packet, sent_us)| Packet {
            packet,
            sent_us,
            got_us: 0,
        };
        let rows = Table::of([(0, 9.0), (2, 2000.0), (1, 76.0), (4, 9.0)].map(row));
        let tables = |row: &str| Tables::from([((entry.name.clone(), row.into()), rows.clone())]);
        let Some(Drawing::Lines(figure)) = trace.drawing(&entry, &tables("a")) else {
            panic!("no lines");
        };
        let points = [Point::new(1.0, 0.076), Point::new(2.0, 2.0)];
        assert_eq!(figure.series[0].points, points);
        assert_eq!(figure.series[1].name, "received");
        assert_eq!(figure.series.len(), 2);
        assert_eq!(trace.drawing(&entry, &tables("another row")), None);
    }
}
