//! The rows that a run has in the table of a sweep, and their columns.

use super::super::columns::{Column, Kind, TableInfo};
use super::super::many::variants::Variant;
use super::super::write::value_at;
use super::store::Record;
use crate::args::Per;
use serde_json::{Number, Value};
use std::collections::BTreeMap;

/// A column of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) kind: FieldKind,
    pub(super) role: Role,
    /// True if it may be empty.
    pub(super) null: bool,
}

/// The values of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldKind {
    Text,
    /// A whole number, at least 0.
    Count,
    Number,
    Flag,
}

/// What a column is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// What the user has set.
    Key,
    /// The seed, and the exit code: they tell runs of a point apart.
    Run,
    /// What the row is about: a flow, a link.
    Label,
    /// What was measured.
    Measure,
    /// Details, of which there is no mean.
    Detail,
}

/// Rows and columns of a sweep.
#[derive(Debug)]
pub(super) struct Shape {
    /// The columns of the rows of runs.
    pub(super) fields: Vec<Field>,
    pub(super) mean: bool,
    per: Per,
    /// Paths of the columns of the table in its rows.
    paths: Vec<Vec<&'static str>>,
    /// Keys, in their order.
    keys: usize,
}

/// Columns of `--per run`, after keys, seed and exit code.
const TOTALS: [(&str, FieldKind, bool); 12] = [
    ("flows", FieldKind::Count, false),
    ("throughput_mbps", FieldKind::Number, false),
    ("jain_index", FieldKind::Number, true),
    ("offered", FieldKind::Count, false),
    ("refused", FieldKind::Count, false),
    ("sent", FieldKind::Count, false),
    ("delivered", FieldKind::Count, false),
    ("lost", FieldKind::Count, false),
    ("under_way", FieldKind::Count, false),
    ("delivered_octets", FieldKind::Count, false),
    ("delay_us_mean", FieldKind::Number, true),
    ("delay_us_max", FieldKind::Number, true),
];

impl Shape {
    pub(super) fn new(info: &TableInfo, per: Per, mean: bool, variants: &[Variant]) -> Self {
        let field = |name: &str, kind, role, null| Field {
            name: name.to_owned(),
            kind,
            role,
            null,
        };
        let paths = info.flat_columns();
        let settings = variants.first().map(|first| first.settings.iter());
        let settings = settings.into_iter().flatten().enumerate();
        let mut fields: Vec<Field> = settings
            .map(|(at, one)| field(&one.path, kind_of_key(variants, at), Role::Key, false))
            .collect();
        let keys = fields.len();
        fields.push(field("seed", FieldKind::Count, Role::Run, false));
        fields.push(field("exit", FieldKind::Count, Role::Run, false));
        match per {
            Per::Run => {
                let totals = TOTALS.iter();
                fields.extend(
                    totals.map(|(name, kind, null)| field(name, *kind, Role::Measure, *null)),
                );
            }
            Per::Flow => fields.extend(paths.iter().map(|path| {
                let (kind, role, null) = described(info, path);
                field(&path.join("_"), kind, role, null)
            })),
        }
        Self {
            fields,
            mean,
            per,
            paths,
            keys,
        }
    }

    /// The rows of a run.
    pub(super) fn rows(&self, variant: &Variant, record: &Record) -> Vec<Vec<Value>> {
        let settings = variant.settings.iter().take(self.keys).zip(&self.fields);
        let mut lead: Vec<Value> = settings
            .map(|(one, field)| typed(&one.value, field.kind))
            .collect();
        lead.extend([record.seed.into(), record.exit.into()]);
        let rows: Vec<Vec<Value>> = match self.per {
            Per::Run => vec![totals(&record.rows)],
            Per::Flow => record
                .rows
                .iter()
                .map(|row| self.paths.iter().map(|path| value_at(row, path)).collect())
                .collect(),
        };
        let with = |row: Vec<Value>| lead.iter().cloned().chain(row).collect();
        rows.into_iter().map(with).collect()
    }
}

/// Kind and role of a column of a table of results.
fn described(info: &TableInfo, path: &[&str]) -> (FieldKind, Role, bool) {
    // The tables of nodes have a column for the node, which is no column of their description.
    let label = (FieldKind::Text, Role::Label, true);
    let named = |columns: &[Column], name: &str| {
        let column = columns.iter().find(|column| column.name == name);
        column.map(|column| {
            (
                column.kind,
                column.null || column.rare || info.name.contains('.'),
            )
        })
    };
    let (kind, mut null) = match path {
        [name] => match named(&info.columns, name) {
            Some(found) => found,
            None => return label,
        },
        [name, inner] => match named(&info.columns, name) {
            Some((Kind::Group(columns), outer)) => match named(columns, inner) {
                Some((kind, null)) => (kind, null || outer),
                None => return label,
            },
            _ => return label,
        },
        _ => return label,
    };
    let (kind, role) = match kind {
        Kind::Text => (FieldKind::Text, Role::Label),
        Kind::Flag => (FieldKind::Flag, Role::Label),
        Kind::Count => (FieldKind::Count, Role::Measure),
        Kind::Number => (FieldKind::Number, Role::Measure),
        Kind::Counts | Kind::Group(_) => (FieldKind::Text, Role::Detail),
    };
    null |= role == Role::Detail;
    (kind, role, null)
}

/// The kind that fits all values of a key.
fn kind_of_key(variants: &[Variant], at: usize) -> FieldKind {
    let all = |fits: fn(&str) -> bool| {
        let mut values = variants
            .iter()
            .filter_map(|variant| variant.settings.get(at));
        values.all(|one| fits(&one.value))
    };
    if all(|text| text.parse::<u32>().is_ok()) {
        FieldKind::Count
    } else if all(|text| text.parse::<f64>().is_ok_and(f64::is_finite)) {
        FieldKind::Number
    } else if all(|text| text.parse::<bool>().is_ok()) {
        FieldKind::Flag
    } else {
        FieldKind::Text
    }
}

/// A value of a key in its column.
fn typed(text: &str, kind: FieldKind) -> Value {
    let value = match kind {
        FieldKind::Count => text.parse::<u64>().ok().map(Value::from),
        FieldKind::Number => {
            let number = text.parse().ok().and_then(Number::from_f64);
            number.map(Value::Number)
        }
        FieldKind::Flag => text.parse::<bool>().ok().map(Value::from),
        FieldKind::Text => None,
    };
    value.unwrap_or_else(|| text.into())
}

/// One row for all flows of a run, in the order of [`TOTALS`].
fn totals(rows: &[Value]) -> Vec<Value> {
    let sum = |column: &str| -> u64 {
        let values = rows.iter().filter_map(|row| row.get(column));
        values.filter_map(Value::as_u64).sum()
    };
    let of_delay = |name: &str| {
        let values = rows
            .iter()
            .map(move |row| row.get("delay_us")?.get(name)?.as_f64());
        values.collect::<Vec<Option<f64>>>()
    };
    let rates = rates(rows);
    let (total, squares) = rates.values().fold((0.0, 0.0), |(sum, squares), rate| {
        (sum + rate, squares + rate * rate)
    });
    let fair = (squares > 0.0).then(|| total * total / (rates.len() as f64 * squares));
    let delivered = rows
        .iter()
        .map(|row| row.get("delivered").and_then(Value::as_u64));
    let weighted = of_delay("mean")
        .into_iter()
        .zip(delivered)
        .filter_map(|(mean, count)| {
            let count = count? as f64;
            Some((mean? * count, count))
        });
    let (delays, count) = weighted.fold((0.0, 0.0), |(a, b), (c, d)| (a + c, b + d));
    let longest = of_delay("max").into_iter().flatten().reduce(f64::max);
    let mean = (count > 0.0).then(|| delays / count);
    vec![
        rates.len().into(),
        total.into(),
        fair.into(),
        sum("offered").into(),
        sum("refused").into(),
        sum("sent").into(),
        sum("delivered").into(),
        sum("lost").into(),
        sum("under_way").into(),
        sum("delivered_octets").into(),
        mean.into(),
        longest.into(),
    ]
}

/// The throughput of each flow over all its phases, Mbit/s: octets by the sum of their times and the time after them in
/// which some came.
fn rates(rows: &[Value]) -> BTreeMap<&str, f64> {
    let mut flows: BTreeMap<&str, [f64; 3]> = BTreeMap::new();
    for row in rows {
        let number = |column: &str| row.get(column).and_then(Value::as_f64).unwrap_or(0.0);
        let name = row.get("name").and_then(Value::as_str).unwrap_or_default();
        let [bits, time, tail] = flows.entry(name).or_default();
        *bits += number("delivered_octets") * 8.0;
        *time += number("duration_s");
        *tail = number("tail_s");
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
    use serde_json::json;

    #[test]
    fn totals_of_a_run_are_sums_and_means_over_flows_and_phases() {
        let row = |name: &str, octets: u64, rate: f64, delivered: u64, mean: f64| {
            json!({
                "name": name, "delivered_octets": octets, "throughput_mbps": rate, "duration_s": 1.0,
                "offered": delivered + 1, "sent": delivered + 1, "delivered": delivered, "lost": 1,
                "delay_us": { "mean": mean, "max": 2.0 * mean },
            })
        };
        // 1 MB in 1 s and 3 MB in 1 s are 16 Mbit/s; the other flow has 8 Mbit/s. The first phase of `a` is that of packets
        // which came during the second one, too.
        let rows = [
            row("a", 1_000_000, 5.0, 10, 100.0),
            row("a", 3_000_000, 24.0, 30, 200.0),
            row("b", 1_000_000, 8.0, 10, 50.0),
        ];
        let all = totals(&rows);
        let named = |name: &str| {
            let at = TOTALS.iter().position(|total| total.0 == name).unwrap();
            all[at].as_f64().unwrap()
        };
        assert_eq!((named("flows"), named("throughput_mbps")), (2.0, 24.0));
        assert!((named("jain_index") - 24.0 * 24.0 / (2.0 * (256.0 + 64.0))).abs() < 1e-12);
        assert_eq!(
            (named("delivered"), named("lost"), named("offered")),
            (50.0, 3.0, 53.0)
        );
        assert_eq!(
            (named("delay_us_mean"), named("delay_us_max")),
            (150.0, 400.0)
        );
        let none = totals(&[]);
        assert!(none[2].is_null() && none[10].is_null() && none[1] == 0.0);
    }
}
