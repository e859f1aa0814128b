//! All results of a run, as named tables of objects under one head.

use super::columns::{ATP, ATP_WINDOW, CELLS, FAIRNESS, FLOW_DELTAS, OCCUPANCY, RARE, flat_name};
use super::{flows, network, rounded};
use aerostat_lab::report::RunReport;
use aerostat_lab::{Checked, Override, settings};
use aerostat_node::host::sockets::Amount;
use aerostat_node::inspect::mpoa::MpcIngress;
use aerostat_node::inspect::nhrp::Way;
use aerostat_node::inspect::{Row, Table};
use aerostat_proto::mpoa::mpc::IngressState;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Name and version of the document. Columns may be added within a version; renaming or removing a column requires a
/// new version.
pub(crate) const SCHEMA: &str = "aerostat.run.v1";

/// Name of the table of shortcuts.
pub(super) const SHORTCUTS: &str = "shortcuts";
/// Name of the table of programs.
pub(super) const PROGRAMS: &str = "programs";

/// A table: its name, and its rows as objects with the columns as keys.
pub(super) type Named = (String, Vec<Value>);

/// The kind of time in which a lab ran.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Time {
    /// `aerostat run`.
    Virtual,
    /// `aerostat up`.
    Real,
}

/// The results of a lab. A lab in real time sends them to `aerostat down` in this form.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Document {
    /// Description of the run.
    pub(super) head: Map<String, Value>,
    /// Tables about the whole lab.
    pub(super) tables: Vec<Named>,
    /// State of each node at the end: its name, kinds of state, tables.
    pub(super) nodes: Map<String, Value>,
}

impl Document {
    /// `overrides` are the changes of the file that were given on the command line.
    pub(crate) fn new(
        checked: &Checked,
        overrides: &[Override],
        time: Time,
        report: &RunReport,
    ) -> Self {
        let lab = &checked.lab;
        let circuits = &report.circuits;
        let table = |name: &str, rows| (name.to_owned(), rows);
        Self {
            head: head(checked, overrides, time, report),
            tables: vec![
                table("flows", flows::objects(&report.flows, lab)),
                table("flow_losses", flows::losses(&report.flows, lab)),
                table(FAIRNESS, flows::fairness(&report.flows, lab)),
                table(FLOW_DELTAS, flows::deltas(&report.flows, lab)),
                table(SHORTCUTS, shortcuts(report)),
                table(PROGRAMS, programs(report)),
                table(ATP, atp(report)),
                table(ATP_WINDOW, windows(report)),
                table(CELLS, cells(report)),
                table("vcs", network::vcs(lab, circuits)),
                table("losses", network::losses(lab, circuits)),
                table("queues", network::queues(lab, circuits)),
                table("policers", network::policers(lab, circuits)),
                table("links", network::links(lab, circuits)),
                table(OCCUPANCY, network::occupancy(lab, &report.occupancy)),
            ],
            nodes: nodes(report),
        }
        .without_empty()
    }

    /// Without the tables that not every lab has, if they are empty.
    fn without_empty(mut self) -> Self {
        self.tables
            .retain(|table| !RARE.contains(&&*table.0) || !table.1.is_empty());
        self
    }

    /// Records whether the run was ended early.
    pub(super) fn interrupted(&mut self, was: bool) {
        self.head.insert("interrupted".into(), was.into());
    }

    /// Only the data for the tables for people: for a large lab all other data would take as much memory as the lab
    /// itself.
    pub(super) fn for_people(report: &RunReport) -> Self {
        Self {
            head: Map::new(),
            tables: vec![
                (SHORTCUTS.to_owned(), shortcuts(report)),
                (PROGRAMS.to_owned(), programs(report)),
                (ATP.to_owned(), atp(report)),
            ],
            nodes: Map::new(),
        }
    }

    /// The whole document as one JSON value.
    pub(crate) fn json(self) -> Value {
        let mut all = self.head;
        let tables = self.tables.into_iter();
        all.extend(tables.map(|(name, rows)| (name, Value::Array(rows))));
        all.insert("nodes".into(), Value::Object(self.nodes));
        Value::Object(all)
    }

    /// All tables. Those of nodes are called `KIND.TITLE` (without blanks) and have a column `node`.
    pub(super) fn flat(&self) -> Vec<Named> {
        let mut all = self.tables.clone();
        let mut states: Vec<Named> = Vec::new();
        for (node, kinds) in &self.nodes {
            for (kind, tables) in kinds.as_object().into_iter().flatten() {
                for (title, rows) in tables.as_object().into_iter().flatten() {
                    let name = flat_name(&format!("{kind}.{title}"));
                    let at = states.iter().position(|state| state.0 == name);
                    let at = at.unwrap_or_else(|| {
                        states.push((name, Vec::new()));
                        states.len() - 1
                    });
                    for row in rows.as_array().into_iter().flatten() {
                        let mut object = Map::new();
                        object.insert("node".into(), node.clone().into());
                        object.extend(row.as_object().cloned().unwrap_or_default());
                        states[at].1.push(Value::Object(object));
                    }
                }
            }
        }
        states.sort_by(|a, b| a.0.cmp(&b.0));
        all.extend(states);
        all
    }
}

/// The description of the run.
fn head(
    checked: &Checked,
    overrides: &[Override],
    time: Time,
    report: &RunReport,
) -> Map<String, Value> {
    let lab = &checked.lab;
    let head = json!({
        "schema": SCHEMA,
        "version": env!("CARGO_PKG_VERSION"),
        "lab": lab.name,
        "lab_sha256": checked.digest,
        "overrides": overrides.iter().map(Override::change).collect::<Vec<_>>(),
        "seed": lab.seed,
        "time": match time {
            Time::Virtual => "virtual",
            Time::Real => "real",
        },
        "end_s": report.end.as_secs_f64(),
        "interrupted": false,
        "settings": settings::settings(lab, report.until),
    });
    head.as_object().cloned().unwrap_or_default()
}

fn nodes(report: &RunReport) -> Map<String, Value> {
    let nodes = report.nodes.iter().map(|(name, states)| {
        let states = states.iter().map(|(what, tables)| {
            let tables = tables.iter().map(|table| {
                let rows: Vec<_> = objects(table).map(Value::Object).collect();
                (table.title.to_owned(), Value::Array(rows))
            });
            ((*what).to_owned(), Value::Object(merged(tables)))
        });
        (name.clone(), Value::Object(states.collect()))
    });
    nodes.collect()
}

/// Joins tables with the same title (for example one per LANE client) into one list.
fn merged(tables: impl Iterator<Item = (String, Value)>) -> Map<String, Value> {
    let mut all: Map<String, Value> = Map::new();
    for (title, rows) in tables {
        match (all.get_mut(&title), rows) {
            (Some(Value::Array(list)), Value::Array(rows)) => list.extend(rows),
            (_, rows) => {
                all.insert(title, rows);
            }
        }
    }
    all
}

fn objects(table: &Table) -> impl Iterator<Item = Map<String, Value>> + '_ {
    table.rows.iter().map(|row| {
        let keys = table.columns.iter().map(|column| (*column).to_owned());
        keys.zip(row.iter().map(|cell| json!(cell))).collect()
    })
}

/// The shortcuts that exist at the end: the ingress caches of MPOA clients, and the entries of NHRP clients.
fn shortcuts(report: &RunReport) -> Vec<Value> {
    let mut all = Vec::new();
    for (node, states) in &report.nodes {
        for table in states.iter().filter(|(what, _)| *what == "mpc") {
            let rows = table.1.iter().flat_map(rows::<MpcIngress>);
            all.extend(rows.filter(was_asked_for).map(|row| of_entry(node, &row)));
        }
        for table in states.iter().filter(|(what, _)| *what == "nhrp") {
            let ways = table.1.iter().flat_map(rows::<Way>);
            all.extend(ways.map(|way| of_way(node, &way)));
        }
    }
    all
}

/// The rows of this kind; what a node of this program has put into a table can be read.
pub(super) fn rows<R: Row>(table: &Table) -> Vec<R> {
    table.rows().unwrap_or_default()
}

/// False for a destination with so few packets that no shortcut was requested.
fn was_asked_for(row: &MpcIngress) -> bool {
    row.state != IngressState::Cached.name()
        || row.last_code > 0
        || row.last_cause.is_some_and(|cause| cause > 0)
}

/// An MPOA client's entry: the columns of its row, and whose it is.
fn of_entry(node: &str, row: &MpcIngress) -> Value {
    let mut object = json!(row);
    object["from"] = node.into();
    object["by"] = "mpoa".into();
    object
}

/// An NHRP client's entry in the columns of an MPOA client's ingress cache.
fn of_way(node: &str, way: &Way) -> Value {
    json!({
        "from": node,
        "by": "nhrp",
        "destination": way.destination,
        "state": way.state,
        "holding_s": way.left_s,
        "packets": way.packets,
        "vpi": way.vc.map(|vc| vc.vpi),
        "vci": way.vc.map(|vc| vc.vci),
        "egress": way.atm.map(|atm| atm.to_string()),
        "tag": null,
        "mps": null,
        "last_code": way.last_code,
        "last_cause": way.last_cause,
        "protocol": null,
        "port": null,
        "traffic": null,
        "fallback": null,
    })
}

/// One object per direction of a connection between programs.
fn programs(report: &RunReport) -> Vec<Value> {
    let all = report.dialogues.iter();
    all.map(|dialogue| {
        let (to, known) = (dialogue.to.as_ref(), dialogue.delivered);
        json!({
            "from": dialogue.from.0,
            "program": dialogue.from.1,
            "to": to.map(|to| &to.0),
            "reader": to.map(|to| &to.1),
            "state": dialogue.state.name(),
            "offered": dialogue.offered,
            "refused": dialogue.refused,
            "waiting": dialogue.waiting,
            "late": dialogue.late,
            "sent": dialogue.sent,
            "delivered": known,
            "lost": known.map(|_| dialogue.lost()),
            "lost_by": dialogue.lost_by,
            "under_way": known.map(|_| dialogue.under_way),
            "delivered_octets": known.map(|_| dialogue.delivered_octets),
            "duration_s": dialogue.duration.as_secs_f64(),
            "throughput_mbps": known.and(dialogue.throughput_mbps),
            "delay_us": flows::summary(&dialogue.delay),
        })
    })
    .collect()
}

/// One object per change of a window of ATP.
fn windows(report: &RunReport) -> Vec<Value> {
    let all = report.windows.iter();
    all.map(|change| {
        let step = change.step;
        json!({
            "time_s": step.at.as_nanos() as f64 / 1e9,
            "node": change.at.0,
            "program": change.at.1,
            "connection": change.connection,
            "window": f64::from(step.window) / 8.0,
            "round_trip_us": rounded(step.round_trip.as_secs_f64() * 1e6, 3),
        })
    })
    .collect()
}

/// One object per tester of cells.
fn cells(report: &RunReport) -> Vec<Value> {
    let all = report.tested.iter();
    all.map(|tested| {
        let seen = tested.measured;
        json!({
            "node": tested.at.0,
            "program": tested.at.1,
            "vc": tested.vc.to_string(),
            "received": seen.received,
            "errored": seen.errored,
            "lost": seen.lost,
            "misinserted": seen.misinserted,
            "restarts": seen.restarts,
            "time_s": seen.time.as_secs_f64(),
            "clr": seen.loss_ratio(),
            "cer": seen.error_ratio(),
            "cmr_per_s": seen.misinsertion_rate(),
            "ctd_us": flows::summary(&seen.delay),
            "cdv_peak_us": (seen.delay.count > 0).then(|| rounded(seen.delay.max_us - seen.delay.min_us, 3)),
            "early_us": seen.early.map(|early| flows::summary(&early)),
        })
    })
    .collect()
}

/// One object per end of a connection with ATP.
fn atp(report: &RunReport) -> Vec<Value> {
    let packets = |eighths: u32| f64::from(eighths) / 8.0;
    let rate = |amount: Amount| amount.mbps().map(|rate| rounded(rate, 6));
    let all = report.dialogues.iter();
    all.filter_map(|dialogue| {
        let seen = dialogue.atp?;
        let counted = seen.counters;
        let [least, most, last] = seen.window;
        Some(json!({
            "node": dialogue.from.0,
            "program": dialogue.from.1,
            "profile": format!("{:?}", seen.profile).to_lowercase(),
            "outcome": seen.outcome.text(),
            "left": seen.left,
            "messages_sent": seen.sent.messages,
            "octets_sent": seen.sent.octets,
            "send_s": (!seen.sent.time.is_zero()).then_some(seen.sent.time.as_secs_f64()),
            "send_mbps": rate(seen.sent),
            "messages_received": seen.received.messages,
            "octets_received": seen.received.octets,
            "receive_s": seen.received.time.as_secs_f64(),
            "receive_mbps": rate(seen.received),
            "refused": seen.refused,
            "turn_s": (!seen.turn.is_zero()).then_some(seen.turn.as_secs_f64()),
            "packets_sent": counted.packets_sent,
            "packets_repeated": counted.packets_repeated,
            "packets_received": counted.packets_received,
            "duplicates": counted.duplicates,
            "no_room": counted.no_room,
            "out_of_window": counted.out_of_window,
            "malformed": counted.malformed,
            "acks_sent": counted.acks_sent,
            "naks_sent": counted.naks_sent,
            "naks_received": counted.naks_received,
            "timeouts": counted.timeouts,
            "window_min": packets(least),
            "window_max": packets(most),
            "window_last": packets(last),
            "round_trip_us": seen.round_trip.as_secs_f64() * 1e6,
            "steps_left_out": seen.steps_left_out,
        }))
    })
    .collect()
}
