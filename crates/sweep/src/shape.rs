//! The rows that a run has in the table of a sweep, and their columns.

use crate::failure::Failure;
use crate::mean;
use crate::store::Record;
use crate::variants::Variant;
use aerostat_lab::results::{FlowRow, columns, flat_value};
use aerostat_node::inspect::{FlatColumn, Importance, Kind, Row as _, TableInfo};
use aerostat_node::rows;
use serde_json::{Number, Value, json};
use std::collections::BTreeMap;

/// Subject of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Per {
    /// A flow of a run, in one phase; or a row of another table.
    #[default]
    Flow,
    /// A run: sums and means over its flows.
    Run,
}

/// A column of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name; a unit is its end.
    pub name: String,
    /// The type of its values, no group.
    pub kind: Kind,
    /// Its purpose.
    pub role: Role,
    /// True if it may be empty.
    pub null: bool,
    /// Its place where there is no room for all columns.
    pub importance: Importance,
}

/// Purpose of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A key that the user has set.
    Key,
    /// The seed, and the exit code: they tell runs of a point apart.
    Run,
    /// The subject of the row: a flow, a link.
    Label,
    /// A measured value.
    Measure,
    /// Details, of which there is no mean.
    Detail,
}

/// Rows and columns of a sweep.
#[derive(Debug)]
pub struct Shape {
    /// The columns of the rows of runs.
    pub fields: Vec<Field>,
    /// True if the table has means over seeds.
    pub mean: bool,
    per: Per,
    /// Paths of the columns of the table in its rows.
    paths: Vec<(&'static str, Option<&'static str>)>,
    /// Keys, in their order.
    keys: usize,
}

rows! {
    /// One row for each run: all its flows together.
    struct Totals: "runs" {
        /// Flows of the run.
        flows: usize,
        /// Sum of their throughputs.
        throughput_mbps: f64,
        /// Index of fairness of these.
        jain_index: Option<f64>,
        /// Packets made.
        offered: u64,
        /// Packets that stacks did not take.
        refused: u64,
        /// Packets that they took.
        sent: u64,
        /// Packets received.
        delivered: u64,
        /// Packets that did not arrive.
        lost: u64,
        /// Packets on their way at the end.
        under_way: u64,
        /// Octets received.
        delivered_octets: u64,
        /// Mean delay of all packets.
        delay_us_mean: Option<f64>,
        /// Largest delay.
        delay_us_max: Option<f64>,
    }
}

impl Field {
    fn key(name: &str, kind: Kind, role: Role) -> Self {
        Self {
            name: name.to_owned(),
            kind,
            role,
            null: false,
            importance: Importance::Plain,
        }
    }

    /// A column of a table of results, whose rows may lack any value if they are about nodes.
    fn of(column: &FlatColumn, info: &TableInfo) -> Self {
        let role = match column.kind {
            Kind::Text | Kind::Flag => Role::Label,
            Kind::Count | Kind::Number => Role::Measure,
            Kind::Counts | Kind::Group(_) => Role::Detail,
        };
        Self {
            name: column.name.clone(),
            kind: column.kind,
            role,
            null: column.null || column.rare || info.of_nodes() || role == Role::Detail,
            importance: column.importance,
        }
    }
}

impl Shape {
    /// The columns that are written: those of the rows, or of their means.
    #[must_use]
    pub fn written(&self) -> Vec<Field> {
        match self.mean {
            true => mean::fields(&self.fields),
            false => self.fields.clone(),
        }
    }

    /// The rows of a table, of flows with `per`, in a sweep of these runs.
    #[must_use]
    pub fn new(info: &TableInfo, per: Per, mean: bool, variants: &[Variant]) -> Self {
        let settings = variants.first().map(|first| first.settings.iter());
        let settings = settings.into_iter().flatten().enumerate();
        let mut fields: Vec<Field> = settings
            .map(|(at, one)| Field::key(&one.path, kind_of_key(variants, at), Role::Key))
            .collect();
        let keys = fields.len();
        fields.push(Field::key("seed", Kind::Count, Role::Run));
        fields.push(Field::key("exit", Kind::Count, Role::Run));
        let info = match per {
            Per::Run => Totals::INFO,
            Per::Flow => info,
        };
        let columns = columns(info);
        fields.extend(columns.iter().map(|column| Field::of(column, info)));
        Self {
            fields,
            mean,
            per,
            paths: columns.iter().map(|column| column.path).collect(),
            keys,
        }
    }

    /// The rows of a run.
    ///
    /// # Errors
    /// A row of the store is no row of a flow.
    pub fn rows(&self, variant: &Variant, record: &Record) -> Result<Vec<Vec<Value>>, Failure> {
        let settings = variant.settings.iter().take(self.keys).zip(&self.fields);
        let mut lead: Vec<Value> = settings
            .map(|(one, field)| typed(&one.value, field.kind))
            .collect();
        lead.extend([record.seed.into(), record.exit.into()]);
        let with = |row: Vec<Value>| lead.iter().cloned().chain(row).collect();
        if self.per == Per::Run {
            let flows = record.rows.iter().cloned().map(serde_json::from_value);
            let flows = flows.collect::<Result<Vec<FlowRow>, _>>();
            let flows = flows.map_err(|error| {
                let text = format!("a run of the store is of another program: {error}");
                Failure::failed(text).hint("--again does all runs anew")
            })?;
            let cells = totals(&flows).cells();
            return Ok(vec![with(cells.iter().map(|cell| json!(cell)).collect())]);
        }
        let cell = |row: &Value, (name, inner): (&str, Option<&str>)| {
            let value = row.get(name).unwrap_or(&Value::Null);
            let value = inner.map_or(Some(value), |inner| value.get(inner));
            flat_value(value.cloned().unwrap_or_default())
        };
        let rows = record.rows.iter();
        Ok(rows
            .map(|row| with(self.paths.iter().map(|path| cell(row, *path)).collect()))
            .collect())
    }
}

/// The kind that fits all values of a key.
fn kind_of_key(variants: &[Variant], at: usize) -> Kind {
    let all = |fits: fn(&str) -> bool| {
        let mut values = variants
            .iter()
            .filter_map(|variant| variant.settings.get(at));
        values.all(|one| fits(&one.value))
    };
    if all(|text| text.parse::<u32>().is_ok()) {
        Kind::Count
    } else if all(|text| text.parse::<f64>().is_ok_and(f64::is_finite)) {
        Kind::Number
    } else if all(|text| text.parse::<bool>().is_ok()) {
        Kind::Flag
    } else {
        Kind::Text
    }
}

/// A value of a key in its column.
fn typed(text: &str, kind: Kind) -> Value {
    let value = match kind {
        Kind::Count => text.parse::<u64>().ok().map(Value::from),
        Kind::Number => {
            let number = text.parse().ok().and_then(Number::from_f64);
            number.map(Value::Number)
        }
        Kind::Flag => text.parse::<bool>().ok().map(Value::from),
        _ => None,
    };
    value.unwrap_or_else(|| text.into())
}

/// One row for all flows of a run.
fn totals(rows: &[FlowRow]) -> Totals {
    let sum = |of: fn(&FlowRow) -> u64| rows.iter().map(of).sum();
    let rates = rates(rows);
    let (total, squares) = rates.values().fold((0.0, 0.0), |(sum, squares), rate| {
        (sum + rate, squares + rate * rate)
    });
    let weighted = rows.iter().filter_map(|row| {
        let count = row.delivered as f64;
        Some((row.delay_us.mean? * count, count))
    });
    let (delays, count) = weighted.fold((0.0, 0.0), |(a, b), (c, d)| (a + c, b + d));
    let longest = rows.iter().filter_map(|row| row.delay_us.max);
    Totals {
        flows: rates.len(),
        throughput_mbps: total,
        jain_index: (squares > 0.0).then(|| total * total / (rates.len() as f64 * squares)),
        offered: sum(|row| row.offered),
        refused: sum(|row| row.refused),
        sent: sum(|row| row.sent),
        delivered: sum(|row| row.delivered),
        lost: sum(|row| row.lost),
        under_way: sum(|row| row.under_way),
        delivered_octets: sum(|row| row.delivered_octets),
        delay_us_mean: (count > 0.0).then(|| delays / count),
        delay_us_max: longest.reduce(f64::max),
    }
}

/// The throughput of each flow over all its phases, Mbit/s: octets by the sum of their times and the time after them in
/// which some came.
fn rates(rows: &[FlowRow]) -> BTreeMap<&str, f64> {
    let mut flows: BTreeMap<&str, [f64; 3]> = BTreeMap::new();
    for row in rows {
        let [bits, time, tail] = flows.entry(&row.name).or_default();
        *bits += row.delivered_octets as f64 * 8.0;
        *time += row.duration_s;
        *tail = row.tail_s;
    }
    let rate = |[bits, time, tail]: [f64; 3]| {
        if time > 0.0 {
            bits / (time + tail) / 1e6
        } else {
            0.0
        }
    };
    flows
        .into_iter()
        .map(|(name, flow)| (name, rate(flow)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use aerostat_lab::results::Times;
    use aerostat_node::distribution::Summary;
    use aerostat_node::inspect::{Counts, Rare};

    #[test]
    fn totals_of_a_run_are_sums_and_means_over_flows_and_phases() {
        let none = Times::of(&Summary::default());
        let row = |name: &str, octets: u64, rate: f64, delivered: u64, mean: f64| FlowRow {
            name: name.into(),
            from: String::new(),
            to: String::new(),
            phase: "direct".into(),
            duration_s: 1.0,
            tail_s: 0.0,
            throughput_mbps: Some(rate),
            offered: delivered + 1,
            refused: 0,
            refused_by: Counts::new(),
            sent: delivered + 1,
            delivered,
            under_way: 0,
            lost_by: Counts::new(),
            unexplained: 0,
            sent_octets: octets,
            delivered_octets: octets,
            answered: None,
            unanswered: None,
            sent_packets: delivered + 1,
            received_packets: delivered,
            retransmitted: 0,
            lost: 1,
            in_flight: 0,
            out_of_sequence: 0,
            delay_us: Times {
                mean: Some(mean),
                max: Some(2.0 * mean),
                ..none.clone()
            },
            jitter_us: none.clone(),
            rtt_us: None,
            response_us: Rare(None),
            call: None,
            deltas_left_out: Rare(None),
            tcp: Rare(None),
        };
        // 1 MB in 1 s and 3 MB in 1 s are 16 Mbit/s; the other flow has 8 Mbit/s. The first phase of `a` is that of
        // packets which came during the second one, too.
        let rows = [
            row("a", 1_000_000, 5.0, 10, 100.0),
            row("a", 3_000_000, 24.0, 30, 200.0),
            row("b", 1_000_000, 8.0, 10, 50.0),
        ];
        let all = totals(&rows);
        assert_eq!((all.flows, all.throughput_mbps), (2, 24.0));
        let fair = 24.0 * 24.0 / (2.0 * (256.0 + 64.0));
        assert!((all.jain_index.unwrap() - fair).abs() < 1e-12);
        assert_eq!((all.delivered, all.lost, all.offered), (50, 3, 53));
        assert_eq!(
            (all.delay_us_mean, all.delay_us_max),
            (Some(150.0), Some(400.0))
        );
        let none = totals(&[]);
        assert_eq!((none.jain_index, none.delay_us_mean), (None, None));
        assert_eq!(none.throughput_mbps, 0.0);
    }
}
