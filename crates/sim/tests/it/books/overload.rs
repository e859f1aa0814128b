//! Overload: more packets under way, waiting or lost than any table of fixed size would hold, at links that are far too
//! slow, with long lines, large and small queues, losses and cuts. What arrived is counted in a capture.
//!
//! `AEROSTAT_OVERLOADS` is the number of labs, `AEROSTAT_SEED` the seed of the first.

use super::{Directory, captures, flows};
use crate::bench::lab_of;
use aerostat_lab::model::Lab;
use aerostat_lab::report::RunReport;
use aerostat_sim::run::LabRun;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::collections::BTreeMap;
use std::path::Path;

/// Number of labs of a usual run, in which the loads last a tenth of their time: without optimization a hundred
/// thousand packets take too long. The two other tests have as many as a table of 16 bits does not hold.
const CASES: u64 = 4;
const USUAL: u32 = 10;

/// A sender, a trunk that may be slow, and a receiver.
#[derive(Clone, Debug)]
struct Overload {
    trunk: &'static str,
    /// Delays of the sender's link and of the trunk, ms.
    delays: [u32; 2],
    /// Cells that wait in front of the trunk, and the policy of discard.
    buffer: u32,
    epd: bool,
    loss: f64,
    flows: Vec<Flow>,
    /// Packets a second of all flows.
    rate: u32,
    /// Length of the load, ms.
    ms: u32,
    /// A cut of the trunk, and its repair, ms after the start.
    cut: Option<(u32, Option<u32>)>,
    /// The run ends while packets are under way.
    cut_short: bool,
    seed: u32,
    pdus: Pdus,
}

/// The PDUs of programs.
#[derive(Clone, Copy, Debug)]
struct Pdus {
    /// Cells of each.
    cells: u32,
    /// True if a full queue discards single cells of them.
    torn: bool,
}

impl Pdus {
    /// PDUs of one cell.
    const SHORT: Self = Self {
        cells: 1,
        torn: false,
    };

    fn any() -> impl Strategy<Value = Self> {
        let cells = select(vec![1, 2, 3, 8]);
        (cells, any::<bool>()).prop_map(|(cells, torn)| Self { cells, torn })
    }

    /// Octets of each.
    const fn size(self) -> u32 {
        48 * self.cells - 8
    }
}

#[derive(Clone, Copy, Debug)]
enum Flow {
    Udp,
    Poisson,
    Ping,
    /// A ping without room for a stamp.
    SmallPing,
    /// A program with an ATM socket, on a connection of its own.
    Program,
}

/// When traffic starts, ms.
const START: u32 = 2000;

impl Overload {
    fn any() -> impl Strategy<Value = Self> {
        let flow = select(vec![
            Flow::Udp,
            Flow::Udp,
            Flow::Poisson,
            Flow::Ping,
            Flow::SmallPing,
            Flow::Program,
        ]);
        let cut = proptest::option::of((50u32..1200, proptest::option::of(10u32..500)));
        let line = (
            select(vec!["ds1", "e3", "oc3", "oc3"]),
            [
                select(vec![0u32, 1, 400, 700]),
                select(vec![0u32, 0, 20, 600]),
            ],
            select(vec![500u32, 20_000, 200_000, 1_000_000]),
            any::<bool>(),
            select(vec![0.0, 0.0, 0.001, 0.2]),
        );
        let load = (
            proptest::collection::vec(flow, 1..5),
            60_000u32..170_000,
            400u32..900,
            cut,
            any::<bool>(),
            any::<u32>(),
        );
        (line, load, Pdus::any()).prop_map(
            |(
                (trunk, delays, buffer, epd, loss),
                (flows, rate, ms, cut, cut_short, seed),
                pdus,
            )| Self {
                pdus,
                trunk,
                delays,
                buffer,
                epd,
                loss,
                flows,
                rate,
                ms,
                cut: cut.map(|(at, after)| (at, after.map(|after| at + after))),
                cut_short,
                seed,
            },
        )
    }

    fn file(&self) -> String {
        let Self {
            trunk,
            delays: [near, far],
            buffer,
            loss,
            ms,
            ..
        } = self;
        let epd = if self.epd { *buffer } else { buffer * 3 / 4 };
        let each = self.rate as usize / self.flows.len();
        let programs = |text: &dyn Fn(usize) -> String| {
            let all = self.flows.iter().enumerate();
            let all = all.filter(|(_, flow)| matches!(flow, Flow::Program));
            all.map(|(n, _)| text(n)).collect::<Vec<_>>().join(", ")
        };
        let size = self.pdus.size();
        let writers = programs(&|n| {
            let each = (each / self.pdus.cells as usize).max(1);
            let pdus = (each * *ms as usize / 1000).max(1);
            format!(
                "{{ name: w{n}, vc: 0.{}, size: {size}, pdus: {pdus}, rate: {each}pps, start: {START}ms }}",
                200 + n
            )
        });
        let frames = !self.pdus.torn;
        let readers = programs(&|n| format!("{{ name: r{n}, vc: 0.{}, listen: sink }}", 300 + n));
        let pvcs = programs(&|n| {
            format!(
                "{{ from: x, vc: 0.{}, to: y, to_vc: 0.{}, frame_discard: {frames} }}",
                200 + n,
                300 + n
            )
        });
        let traffic = self.flows.iter().enumerate().filter_map(|(n, flow)| {
            let (kind, size, more) = match flow {
                Flow::Udp => ("udp", 24, ""),
                Flow::Poisson => ("udp", 30, ", poisson: true"),
                Flow::Ping => ("ping", 24, ""),
                Flow::SmallPing => ("ping", 4, ""),
                Flow::Program => return None,
            };
            Some(format!(
                "  - {{ name: f{n}, from: x, to: y, kind: {kind}, size: {size}, rate: {each}pps, start: {START}ms, duration: {ms}ms{more} }}\n"
            ))
        });
        let traffic: String = traffic.collect();
        let traffic = match &*traffic {
            "" => String::new(),
            some => format!("traffic:\n{some}"),
        };
        let fault = |at: u32, what: &str| format!("{{ at: {}ms, {what}: L }}", START + at);
        let faults = self.cut.map_or(String::new(), |(at, back)| {
            let back = back.map(|back| fault(back, "link_up"));
            let all: Vec<String> = [fault(at, "link_down")].into_iter().chain(back).collect();
            format!("faults: [{}]\n", all.join(", "))
        });
        let until = START + ms + if self.cut_short { 100 } else { 8000 };
        let loss = if *loss > 0.0 {
            format!(", loss: {loss}")
        } else {
            String::new()
        };
        let comma = |text: &str| if text.is_empty() { "" } else { ", " };
        format!(
            "seed: {}\nswitches: {{ s1: {{}}, s2: {{}} }}\n\
             links: [[s1, s2, {{ name: L, rate: {trunk}, delay: {far}ms{loss}, queues: {{ buffer: {buffer}, vc_buffer: {buffer}, epd: {epd}, vc_epd: {epd} }} }}]]\n\
             clip: {{ w: {{ subnet: 10.20.0.0/24, mux: true }} }}\nhosts:\n  \
             x: {{ on: s1, elan: w, ip: 10.20.0.1, link: {{ delay: {near}ms }}, sockets: [{writers}] }}\n  \
             y: {{ on: s2, elan: w, ip: 10.20.0.2, sockets: [{readers}] }}\n\
             pvcs: [{{ from: x, vc: 0.100, to: y, mux: true }}{}{pvcs}]\n{traffic}{faults}until: {until}ms\n",
            self.seed,
            comma(&pvcs),
        )
    }
}

/// The packets that came to `y`, by UDP port, ICMP identifier, or VCI of a program.
fn arrived(directory: &Path) -> BTreeMap<(u8, u16), u64> {
    let octets = std::fs::read(directory.join("y.pcapng")).expect("a capture of the run");
    let mut came = BTreeMap::new();
    captures::packets_of_vcs(&octets, |_, sent, vci, sdu| {
        if sent {
            return;
        }
        let be16 = |at: usize| u16::from_be_bytes([sdu[at], sdu[at + 1]]);
        let key = match (vci, sdu.first()) {
            (300.., _) => (0, vci),
            (_, Some(0x45)) if sdu[9] == 17 => (17, be16(22)),
            (_, Some(0x45)) if sdu[9] == 1 && sdu[20] == 8 => (1, be16(24)),
            _ => return,
        };
        *came.entry(key).or_insert(0u64) += 1;
    });
    came
}

fn run(lab: &Lab, captures: Option<&Path>) -> RunReport {
    let mut watcher = ();
    let mut running = LabRun::new(lab, &mut watcher);
    if let Some(directory) = captures {
        running.capture_into(directory, false).expect("files");
    }
    running.start();
    running.run_to_end();
    running.finish().expect("captures")
}

/// Mistakes in the accounts of a lab, in words.
fn mistakes(random: &Overload) -> (Vec<String>, RunReport) {
    let text = random.file();
    let lab = lab_of("overload", &text, &[]);
    let directory = Directory::new();
    let report = run(&lab, Some(&directory.0));
    let came = arrived(&directory.0);
    let count = |key| came.get(&key).copied().unwrap_or(0);
    let mut wrong = Vec::new();
    for flow in &report.flows {
        let number = flow.flow.0 as u16;
        let name = &flow.name;
        let found = flows::balance(flow);
        wrong.extend(found.into_iter().map(|what| format!("{name}: {what}")));
        let delivered = flow.sum(|path| path.received_packets);
        let key = match lab.traffic[flow.flow.0].kind {
            aerostat_lab::model::FlowKind::Ping { .. } => (1, 2 * number),
            _ => (17, 5001 + number),
        };
        if delivered != count(key) {
            wrong.push(format!(
                "{name}: delivered {delivered}, captured {}",
                count(key)
            ));
        }
    }
    for row in &report.dialogues {
        wrong.extend(flows::of_programs(row));
        let number: u16 = row.from.1[1..].parse().expect("wN");
        let captured = count((0, 300 + number));
        if row.delivered != Some(captured) {
            wrong.push(format!("{:?}: captured {captured}\n{row:?}", row.from));
        }
    }
    // Captures make each cell an event. Without them the books are the same.
    let plain = run(&lab, None);
    if plain.flows != report.flows || plain.dialogues != report.dialogues {
        wrong.push(format!(
            "without captures:\n{:?}\n{:?}",
            plain.flows, plain.dialogues
        ));
    }
    (wrong, report)
}

/// The lab of a seed. Its load lasts a part of its time.
fn of_seed(seed: u64, part: u32) -> Overload {
    let mut octets = [0; 32];
    octets[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &octets);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let tree = Overload::any().new_tree(&mut runner);
    let mut random = tree.expect("no filters").current();
    random.ms /= part;
    random.buffer /= part;
    random.cut = (random.cut).map(|(at, back)| (at / part, back.map(|back| back / part + 1)));
    random
}

#[test]
fn books_under_overload_have_nothing_unexplained_and_agree_with_captures() {
    let number = |name| std::env::var(name).map(|text| text.parse().expect("a number"));
    let cases = number("AEROSTAT_OVERLOADS");
    let part = if cases.is_ok() { 1 } else { USUAL };
    let (cases, first) = (cases.unwrap_or(CASES), number("AEROSTAT_SEED").unwrap_or(0));
    let mut failures = Vec::new();
    let (mut lost, mut delivered, mut sent) = (0, 0, 0);
    for seed in first..first + cases {
        let random = of_seed(seed, part);
        let (wrong, report) = mistakes(&random);
        let sum = |of: fn(&aerostat_node::ip::flow_stats::PathReport) -> u64| {
            report.flows.iter().map(|flow| flow.sum(of)).sum::<u64>()
        };
        sent += sum(|path| path.sent_packets);
        lost += sum(|path| path.lost);
        delivered += sum(|path| path.received_packets);
        if !wrong.is_empty() {
            let text = random.file();
            failures.push(format!("# seed {seed}\n{text}\n{}", wrong.join("\n")));
        }
    }
    println!("{cases} labs: {sent} packets sent, {delivered} delivered, {lost} lost");
    assert!(
        failures.is_empty(),
        "{}\n{} of {cases}",
        failures.join("\n"),
        failures.len()
    );
    assert!(lost > 0 && delivered > 0);
}

/// 75 000 packets are on a line at a time, and all arrive. The sender's capture is not needed: nothing is lost.
#[test]
fn more_packets_on_a_line_than_16_bits_count_are_all_delivered() {
    for kind in [Flow::Ping, Flow::Program] {
        let random = Overload {
            trunk: "oc3",
            delays: [490, 0],
            buffer: 1000,
            epd: false,
            loss: 0.0,
            flows: vec![kind],
            rate: 150_000,
            ms: 480,
            cut: None,
            cut_short: false,
            seed: 1,
            pdus: Pdus::SHORT,
        };
        let report = run(&lab_of("window", &random.file(), &[]), None);
        for flow in &report.flows {
            assert_eq!(flows::balance(flow), Vec::<String>::new(), "{kind:?}");
            let [path] = &flow.paths[..] else {
                panic!("{kind:?}: {flow:?}");
            };
            let counts = (path.offered, path.received_packets, path.lost);
            assert_eq!(counts, (72_000, 72_000, 0), "{kind:?}");
            // Line, and three times two cells: 490 ms and some microseconds.
            assert!(
                (490_000.0..490_100.0).contains(&path.delay.max_us),
                "{kind:?} {:?}",
                path.delay
            );
        }
        for row in &report.dialogues {
            let counts = (row.offered, row.delivered, row.lost());
            assert_eq!(counts, (72_000, Some(72_000), 0), "{kind:?}");
        }
    }
}

/// A queue that discards single cells lets long PDUs run into each other without their last cells, until the receiver
/// skips cells of one that has lost nothing.
#[test]
fn a_pdu_that_is_skipped_behind_torn_ones_has_a_place() {
    let text = "switches: { s1: {}, s2: {} }
links: [[s1, s2, { rate: ds1, queues: { buffer: 900, vc_buffer: 900, epd: 900, vc_epd: 900 } }]]
clip: { w: { subnet: 10.20.0.0/24, mux: true } }
hosts:
  x: { on: s1, elan: w, ip: 10.20.0.1, sockets: [{ vc: 0.200, size: 34000, pdus: 80, rate: 3pps, start: 2s }] }
  y: { on: s2, elan: w, ip: 10.20.0.2, sockets: [{ vc: 0.300, listen: sink }] }
pvcs:
  - { from: x, vc: 0.100, to: y, mux: true }
  - { from: x, vc: 0.200, to: y, to_vc: 0.300, qos: 'ubr,aal5:sdu=34000', frame_discard: false }
traffic:
  - { from: x, to: y, kind: udp, size: 24, rate: 1500pps, poisson: true, start: 2s, duration: 26s }
until: 30s
";
    let report = run(&lab_of("torn", text, &[]), None);
    let [row] = &report.dialogues[..] else {
        panic!("{report:?}");
    };
    assert_eq!(flows::of_programs(row), None);
    assert!(row.lost_by.contains_key("y: reassembly"), "{row:?}");
}

/// All packets that wait before a link are lost at one instant when it is cut.
#[test]
fn more_packets_than_16_bits_count_are_lost_at_the_instant_of_a_cut_and_all_have_a_place() {
    let random = Overload {
        trunk: "ds1",
        delays: [0, 0],
        buffer: 1_000_000,
        epd: true,
        loss: 0.0,
        flows: vec![Flow::Udp; 2],
        rate: 150_000,
        ms: 500,
        cut: Some((600, None)),
        cut_short: false,
        seed: 1,
        pdus: Pdus::SHORT,
    };
    let report = run(&lab_of("cut", &random.file(), &[]), None);
    let mut lost = 0;
    for flow in &report.flows {
        assert_eq!(flows::balance(flow), Vec::<String>::new());
        lost += flow.sum(|path| path.lost);
    }
    assert!(lost > 66_000, "{lost}");
}
