//! Closed forms: measurements of the simulator compared with queueing theory and arithmetic, in docs/theory.md.
//!
//! Each test compares one kind of quantity, fails beyond 1 %, and checks that its table in the page is up to date.
//! `UPDATE_EXPECTED=1 cargo test --release -p aerostat-sim --test it theory -- --include-ignored` rewrites the tables.
//! Means of random quantities need millions of packets for that precision, so these tests are ignored by default. They
//! have a 95 % confidence interval from 20 batches, and the closed form must lie within one and a half times that
//! interval. Tests that do not need millions of packets always run. Seeds are the labs' defaults. The tests share no
//! arithmetic with the simulator: rates, cell counts and tolerances are computed again here.

mod contracts;
mod detken;
mod frames;
mod levels;
mod links;
mod multiplex;
mod queues;

use crate::bench::lab_of;
use aerostat_lab::build::{Builder, Flavour};
use aerostat_lab::model::Lab;
use aerostat_node::host::HostEvent;
use aerostat_node::ip::meter::{PacketKey, Sample, Side};
use aerostat_proto::{Duration, Instant, Trace};
use aerostat_sim::circuits::{self, Circuits};
use aerostat_sim::{LabEvent, LabNode, NodeId, Observer, World, lab_world};
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::Mutex;

/// Seconds of one cell on an OC-3c: 53 octets at 149.76 Mbit/s.
const OC3_CELL: f64 = 424.0 / 149.76e6;
/// Default delay of a link.
const PROPAGATION: f64 = 5e-6;

/// Cells of an SDU in AAL5: its octets and eight of trailer, in payloads of 48.
fn cells(sdu: usize) -> usize {
    (sdu + 8).div_ceil(48)
}

/// A running lab, with the delay of each numbered datagram, or the round trip of each echo.
struct Probe {
    lab: Lab,
    world: World<LabNode>,
    heard: Heard,
}

/// By flow: when each packet on its way was sent; for each packet that arrived, when it was sent, and its delay in
/// seconds.
#[derive(Default)]
struct Heard {
    sent: Vec<VecDeque<(u64, Instant)>>,
    arrived: Vec<Vec<(Instant, f64)>>,
    /// How many packets were sent, by flow.
    sent_in_all: Vec<u64>,
}

impl Observer<LabEvent> for Heard {
    fn trace(&mut self, _node: NodeId, _trace: Trace, _now: Instant) {}
    fn event(&mut self, _node: NodeId, event: LabEvent, _now: Instant) {
        if let LabEvent::Host(HostEvent::Sample(sample)) = event {
            self.sample(&sample);
        }
    }
}

impl Heard {
    fn sample(&mut self, sample: &Sample) {
        // Datagrams in one direction, echoes in both.
        let (sequence, last) = match sample.key {
            PacketKey::Stamped { sequence } => (sequence, Side::Received),
            PacketKey::Echo { sequence, .. } => (sequence, Side::Answered),
            _ => return,
        };
        let flow = sample.flow.0;
        if self.sent.len() <= flow {
            self.sent.resize_with(flow + 1, VecDeque::new);
            self.arrived.resize_with(flow + 1, Vec::new);
            self.sent_in_all.resize(flow + 1, 0);
        }
        let sent = &mut self.sent[flow];
        if sample.side == Side::Sent {
            self.sent_in_all[flow] += 1;
            sent.push_back((sequence, sample.at));
        } else if sample.side == last {
            while let Some((number, at)) = sent.pop_front() {
                if number == sequence {
                    let delay = sample.at.since(at).as_secs_f64();
                    self.arrived[flow].push((at, delay));
                    break;
                }
            }
        }
    }
}

impl Probe {
    fn new(name: &str, text: &str) -> Self {
        Self::of(lab_of(name, text, &[]))
    }
    fn of(lab: Lab) -> Self {
        let mut world = lab_world::build(&lab, lab.seed);
        let mut heard = Heard::default();
        let builder = Builder::new(&lab, lab.seed, Flavour::Embedded);
        lab_world::start(&mut world, &builder, &mut heard);
        Self { lab, world, heard }
    }
    /// Runs to this time of the run.
    fn until(&mut self, seconds: f64) {
        let until = Instant::ZERO + Duration::from_secs_f64(seconds);
        self.world.run_until(until, &mut self.heard);
    }
    /// Runs to the end.
    fn all(mut self) -> Self {
        self.until(self.lab.end().as_secs_f64());
        self
    }
    /// Delays of a flow in the order of sending, in seconds.
    fn delays(&self, flow: usize) -> Vec<f64> {
        self.heard.arrived[flow].iter().map(|one| one.1).collect()
    }
    fn circuits(&self) -> Circuits {
        circuits::read(&self.lab, self.world.plant())
    }
    /// The direction of the connection with this label at its sender.
    fn circuit(&self, node: &str, vci: u16) -> circuits::Circuit {
        let id = self.lab.find(node).expect("a node of the lab");
        let all = self.circuits().circuits;
        let mut found = all
            .into_iter()
            .filter(|one| one.from.node == id && one.from.vc.vci == vci);
        found.next().expect("a connection of the lab")
    }
}

/// Mean of a series and half of its 95 % confidence interval, from 20 batches in order.
fn batch_means(values: &[f64]) -> (f64, f64) {
    const BATCHES: usize = 20;
    /// Student's t, 19 degrees of freedom, 97.5 %.
    const T: f64 = 2.093;
    let size = values.len() / BATCHES;
    assert!(size >= 100, "too few values: {}", values.len());
    let means: Vec<f64> = values
        .chunks_exact(size)
        .take(BATCHES)
        .map(|batch| batch.iter().sum::<f64>() / size as f64)
        .collect();
    let mean = means.iter().sum::<f64>() / BATCHES as f64;
    let squares: f64 = means.iter().map(|one| (one - mean).powi(2)).sum();
    let error = (squares / (BATCHES - 1) as f64 / BATCHES as f64).sqrt();
    (mean, T * error)
}

/// One comparison.
struct Row {
    case: String,
    quantity: &'static str,
    unit: &'static str,
    theory: f64,
    measured: f64,
    /// Half of the 95 % confidence interval; `None` for a quantity that is not random.
    interval: Option<f64>,
}

/// The comparisons of one test: a section of the page.
struct Section {
    name: &'static str,
    rows: Vec<Row>,
}

impl Section {
    const fn new(name: &'static str) -> Self {
        Self {
            name,
            rows: Vec::new(),
        }
    }

    /// Adds a quantity that is not random.
    fn exact(
        &mut self,
        case: impl Into<String>,
        quantity: &'static str,
        unit: &'static str,
        [theory, measured]: [f64; 2],
    ) {
        self.rows.push(Row {
            case: case.into(),
            quantity,
            unit,
            theory,
            measured,
            interval: None,
        });
    }

    /// Adds the mean of a random quantity.
    fn mean(
        &mut self,
        case: impl Into<String>,
        quantity: &'static str,
        unit: &'static str,
        theory: f64,
        (measured, interval): (f64, f64),
    ) {
        self.rows.push(Row {
            case: case.into(),
            quantity,
            unit,
            theory,
            measured,
            interval: Some(interval),
        });
    }

    fn table(&self) -> String {
        let mut text = String::from(
            "| case | quantity | unit | theory | measured | ± | difference |\n|---|---|---|---:|---:|---:|---:|\n",
        );
        for row in &self.rows {
            let interval = row.interval.map_or("exact".into(), number);
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} | {} | {} | {:+.3} % |",
                row.case,
                row.quantity,
                row.unit,
                number(row.theory),
                number(row.measured),
                interval,
                100.0 * deviation(row),
            );
        }
        text
    }

    /// Prints the table, fails if a row is more than 1 % off, and compares the table with the page.
    fn check(self) {
        let table = self.table();
        println!("{}\n{table}", self.name);
        for row in &self.rows {
            let Row {
                case,
                quantity,
                theory,
                measured,
                ..
            } = row;
            assert!(
                deviation(row).abs() <= 0.01,
                "{case}: {quantity} is {measured}, and theory says {theory}\n{table}"
            );
            if let Some(interval) = row.interval {
                assert!(
                    (theory - measured).abs() <= 1.5 * interval,
                    "{case}: {quantity} is {measured} ± {interval}, and theory says {theory}\n{table}"
                );
            }
        }
        page(self.name, &table);
    }
}

fn deviation(row: &Row) -> f64 {
    if row.theory == row.measured {
        0.0
    } else {
        row.measured / row.theory - 1.0
    }
}

/// Six digits, in the usual notation.
fn number(value: f64) -> String {
    if value == value.trunc() && value.abs() < 1e12 {
        return format!("{value}");
    }
    let digits = (5 - value.abs().log10().floor() as i32).clamp(0, 9) as usize;
    let text = format!("{value:.digits$}");
    if digits == 0 {
        return text;
    }
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Compares a table with that in the page, or writes it there.
fn page(name: &str, table: &str) {
    static PAGE: Mutex<()> = Mutex::new(());
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/theory.md");
    let _guard = PAGE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let text = std::fs::read_to_string(file).expect("docs/theory.md");
    let begin = format!("<!-- measured: {name} -->\n");
    let (before, rest) = text
        .split_once(&begin)
        .unwrap_or_else(|| panic!("docs/theory.md has no table {name}"));
    let (old, after) = rest
        .split_once("<!-- end -->")
        .expect("the table has an end");
    if std::env::var_os("UPDATE_EXPECTED").is_some() {
        let new = format!("{before}{begin}{table}<!-- end -->{after}");
        std::fs::write(file, new).expect("docs/theory.md can be written");
        return;
    }
    assert!(
        old == table,
        "docs/theory.md has other numbers for {name}; run with UPDATE_EXPECTED=1 and look at the difference\n--- \
         measured\n{table}--- page\n{old}"
    );
}
