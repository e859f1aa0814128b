//! `aerostat run`: a lab in virtual time.

pub(crate) mod flows;

use crate::args::RunArgs;
use crate::exit::{self, Exit, Failure, Outcome};
use crate::labs;
use crate::output::{self, Format, Rows};
use aerostat_lab::Lab;
use aerostat_lab::event::{Event, Names};
use aerostat_lab::ladder::{self, Message};
use aerostat_node::inspect::{Table, Value as Cell};
use aerostat_proto::Instant;
use aerostat_sim::run::{RunReport, Watcher};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Map, Value, json};
use std::io::{IsTerminal as _, Write as _};

/// Name and version of the JSON document.
const SCHEMA: &str = "aerostat.run.v1";

/// Reads the lab and runs it.
pub(crate) fn run(args: &RunArgs) -> Outcome {
    // The options are changes of the file like any other, so that they are checked and reported alike.
    let mut overrides = args.lab.set.clone();
    overrides.extend(args.seed.map(|seed| format!("seed={seed}")));
    overrides.extend(args.until.as_ref().map(|until| format!("until={until}")));
    let checked = labs::read_for_run(&args.lab.lab, &overrides)?;
    let outside = checked.lab.outside().next();
    if let Some((_, node, _)) = outside {
        let text = format!(
            "{} is outside the lab, where time cannot be virtual",
            node.name
        );
        return Err(Failure::usage(text).hint("'aerostat up' runs this lab in real time"));
    }
    let end = simulate(&checked.lab, args)?;
    Ok(labs::exit(end, &checked.warnings))
}

/// Runs the lab: the story to standard error unless `quiet`, the flows to standard output.
fn simulate(lab: &Lab, args: &RunArgs) -> Outcome {
    let mut teller = Teller::new(args, lab);
    let report =
        aerostat_sim::run::run(lab, args.pcap.as_deref(), &mut teller).map_err(|error| {
            Failure::failed(format!("captures cannot be written: {error}"))
                .hint("--pcap takes a directory; it is made if it does not exist")
        })?;
    teller.say_until(f64::INFINITY);
    teller.bar.finish_and_clear();
    match args.output.output {
        Format::Json => {
            let mut out = std::io::stdout().lock();
            writeln!(out, "{:#}", document(lab, &report))?;
            out.flush()?;
        }
        format => output::write(
            format,
            SCHEMA,
            &[flows::rows(&report.flows, lab), shortcut_rows(&report)],
        )?,
    }
    Ok(Exit::Ok)
}

/// Tells the story as it happens, with a progress bar below it on a terminal.
struct Teller {
    quiet: bool,
    names: Names,
    bar: ProgressBar,
    /// Room for node names in a ladder, if one is wanted.
    ladder: Option<usize>,
    /// With a ladder: lines with their times. A message is known when its last cell has left, so lines do not come
    /// in order.
    waiting: Vec<(f64, String)>,
}

impl Teller {
    fn new(args: &RunArgs, lab: &Lab) -> Self {
        let (quiet, names) = (args.quiet, Names::new(lab));
        let bar = if quiet || !std::io::stderr().is_terminal() {
            ProgressBar::hidden()
        } else {
            ProgressBar::new(0)
        };
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {msg}") {
            bar.set_style(style);
        }
        Self {
            quiet,
            names,
            bar,
            ladder: args.trace.then(|| ladder::width(lab)),
            waiting: Vec::new(),
        }
    }

    /// Says what waits and belongs to times up to `now`, in order.
    fn say_until(&mut self, now: f64) {
        self.waiting.sort_by(|a, b| a.0.total_cmp(&b.0));
        let due = self.waiting.partition_point(|(time, _)| *time <= now);
        if due > 0 {
            self.bar.suspend(|| {
                for (_, line) in self.waiting.drain(..due) {
                    exit::say(line);
                }
            });
        }
    }
}

impl Watcher for Teller {
    fn event(&mut self, event: &Event) {
        if !event.milestone || self.quiet {
            return;
        }
        if self.ladder.is_some() {
            let line = self.names.in_text(&ladder::between(event));
            self.waiting.push((event.time, line));
        } else {
            let line = self.names.in_text(&event.story());
            self.bar.suspend(|| exit::say(line));
        }
    }
    fn wants_messages(&self) -> bool {
        self.ladder.is_some()
    }
    fn message(&mut self, message: &Message) {
        if let Some(width) = self.ladder {
            self.waiting.push((message.time, message.rung(width)));
        }
    }
    fn progress(&mut self, now: Instant, end: Instant) {
        self.say_until(now.as_secs_f64());
        self.bar.set_length(end.as_nanos() / 1_000_000);
        self.bar.set_position(now.as_nanos() / 1_000_000);
        self.bar
            .set_message(format!("{:.1} s of virtual time", now.as_secs_f64()));
    }
}

/// The shortcuts that stand at the end: rows of the hosts' ingress caches.
fn shortcut_rows(report: &RunReport) -> Rows {
    let mut rows = Rows::new(&[
        "from",
        "destination",
        "state",
        "vpi",
        "vci",
        "packets",
        "holding_s",
    ]);
    rows.title = "shortcuts".into();
    for shortcut in shortcuts(report) {
        let field = |name: &str| shortcut.get(name).cloned().unwrap_or(Value::Null);
        rows.push(rows.columns.iter().map(|column| field(column)).collect());
    }
    rows
}

/// The ingress cache entries of all hosts, as objects.
fn shortcuts(report: &RunReport) -> Vec<Map<String, Value>> {
    let mut all = Vec::new();
    for (node, states) in &report.nodes {
        let tables = states
            .iter()
            .filter(|(what, _)| *what == "mpc")
            .flat_map(|(_, tables)| tables);
        for table in tables.filter(|table| table.title == "ingress") {
            for mut row in objects(table) {
                row.insert("from".into(), node.clone().into());
                all.push(row);
            }
        }
    }
    all
}

/// The whole result as one document.
fn document(lab: &Lab, report: &RunReport) -> Value {
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
    json!({
        "schema": SCHEMA,
        "lab": lab.name,
        "seed": lab.seed,
        "end_s": report.end.as_secs_f64(),
        "flows": flows::objects(&report.flows, lab),
        "shortcuts": shortcuts(report),
        "nodes": Value::Object(nodes.collect()),
    })
}

/// Tables of the same title (one per LANE client, say) follow each other in one list.
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

/// A number with so many decimals: enough to tell runs apart, few enough to read.
pub(crate) fn rounded(value: f64, decimals: i32) -> Value {
    let scale = 10_f64.powi(decimals);
    ((value * scale).round() / scale).into()
}

fn objects(table: &Table) -> impl Iterator<Item = Map<String, Value>> + '_ {
    table.rows.iter().map(|row| {
        let keys = table.columns.iter().map(|column| (*column).to_owned());
        keys.zip(row.iter().map(json_of)).collect()
    })
}

fn json_of(cell: &Cell) -> Value {
    match cell {
        Cell::Text(text) => text.clone().into(),
        Cell::Number(number) => (*number).into(),
        Cell::None => Value::Null,
    }
}
