//! Levels of buffers over time beside closed forms, and beside runs without trains.

use crate::bench::lab_of;
use aerostat_lab::occupancy::Sample;
use aerostat_proto::Instant;
use aerostat_sim::run::LabRun;

/// A host sends to another one whose line has half the rate. There are no LANE services, and no other traffic.
fn text(programs: &str, occupancy: &str) -> String {
    format!(
        "
switches: {{ s: {{}} }}
clip: {{ w: {{ subnet: 10.7.0.0/24 }} }}
hosts:
  x: {{ on: s, elan: w, ip: 10.7.0.1, link: {{ rate: 80000cells/s, delay: 0s }}, sockets: [{programs}] }}
  y: {{ on: s, elan: w, ip: 10.7.0.2, link: {{ rate: 40000cells/s }}, sockets: [{{ vc: 0.50, listen: sink, name: in }}, {{ vc: 0.51, listen: sink, name: in2 }}] }}
pvcs:
  - {{ from: x, vc: 0.50, to: y, pcr: 30000, shape: false }}
  - {{ from: x, vc: 0.51, to: y, qos: ubr }}
until: 3s
occupancy: {{ {occupancy} }}
"
    )
}

fn samples(text: &str, cell_by_cell: bool) -> Vec<Sample> {
    let lab = lab_of("occupancy", text, &[]);
    let mut nobody = ();
    let mut run = LabRun::new(&lab, &mut nobody);
    if cell_by_cell {
        run.cell_by_cell();
    }
    run.start();
    run.run_until(Instant::ZERO + lab.end());
    run.finish().expect("no captures").occupancy
}

const ONE: &str = "{ vc: 0.50, name: one, size: 18000, pdus: 1, start: 1s }";

/// Cell n of a burst is whole at the switch n slots of 12.5 us after the start, and cell n begins to leave 25 us after
/// the one before.
#[test]
fn a_burst_into_a_slower_line_is_a_ramp_up_and_down() {
    let found = samples(&text(ONE, "every: 100us, from: 900ms, links: [y-s]"), false);
    assert_eq!(found.len(), 21_001);
    // 18 000 octets and the trailer of AAL5.
    let cells = 376_u64;
    let mut most = 0;
    for Sample {
        at,
        cells: [guaranteed, best_effort],
        ..
    } in found
    {
        let since = at.as_nanos().saturating_sub(1_000_000_000);
        let come = (since / 12_500).min(cells);
        // The first one leaves as soon as it is there.
        let gone = match come {
            0 => 0,
            _ => ((since - 12_500) / 25_000 + 1).min(cells),
        };
        let level = come - gone.min(come);
        assert!(
            u64::from(guaranteed).abs_diff(level) <= 1,
            "{at}: {guaranteed} {level}"
        );
        assert_eq!(best_effort, 0);
        most = most.max(guaranteed);
    }
    assert!((186..=188).contains(&most), "{most}");
}

/// Trains hold many cells in one event; samples must not show that.
#[test]
fn samples_are_the_same_cell_by_cell() {
    let programs = "{ vc: 0.50, name: one, size: 1000, rate: 500pps, start: 1s }, \
        { vc: 0.51, name: two, size: 9000, rate: 150pps, start: 1s }";
    let text = text(programs, "every: 137us, links: [y-s, x-s]");
    let [trains, single] = [false, true].map(|single| samples(&text, single));
    let most = |pool: usize| trains.iter().map(|sample| sample.cells[pool]).max();
    assert!(
        most(0) > Some(5) && most(1) > Some(80),
        "{:?}",
        [most(0), most(1)]
    );
    assert_eq!(trains.len(), 2 * 21_898);
    let differ = trains.iter().zip(&single).find(|(one, other)| one != other);
    assert_eq!(differ, None);
}

/// A switch that is off has no samples, and one that is on again begins with nothing.
#[test]
fn a_switch_that_is_off_has_no_samples() {
    let text = text(ONE, "every: 10ms, links: [y-s]");
    let text =
        format!("{text}faults: [{{ at: 1002ms, crash: s }}, {{ at: 2005ms, restart: s }}]\n");
    let found = samples(&text, false);
    let off = |sample: &&Sample| (1_010..=2_000).contains(&(sample.at.as_nanos() / 1_000_000));
    assert_eq!(found.iter().filter(off).count(), 0);
    assert_eq!(found.len(), 301 - 100);
    assert!(found.iter().all(|sample| sample.cells == [0, 0]));
}

/// Nanoseconds of a cell on the line to the sink of [`even`].
const SLOT: u64 = 25_000;
/// When the first source of [`even`] starts.
const START: u64 = 1_000_000_000;
/// From a cell of a source to its next one.
const PERIOD: u64 = 6 * SLOT;
/// Nanoseconds of a cell on the lines of the sources.
const CELL: u64 = 12_500;
/// When each source starts, after the first one. Two cells come at one time.
const PHASES: [u64; 5] = [0, 7_000, 7_000, 31_000, 90_000];
/// Most cells that wait.
const MOST: usize = 2;
/// Cells of each source.
const CELLS: u64 = 2_000;

/// Five programs on hosts of their own send a cell every six slots of the line to the sink: a pattern of ΣDi/D/1.
fn even() -> String {
    let mut text =
        String::from("switches: { s: {} }\nclip: { w: { subnet: 10.7.0.0/24 } }\nhosts:\n");
    let mut sinks = String::new();
    let mut pvcs = String::from("pvcs:\n");
    let rate = 1_000_000_000.0 / PERIOD as f64;
    let (number, gap) = (CELLS, format!("{rate:.9}pps"));
    for (source, phase) in PHASES.iter().enumerate() {
        let (ip, start) = (source + 1, START + phase);
        text += &format!(
            "  x{source}: {{ on: s, elan: w, ip: 10.7.0.{ip}, link: {{ rate: 80000cells/s, delay: 0s }}, \
             sockets: [{{ name: w, vc: 0.50, size: 40, pdus: {number}, rate: {gap}, start: {start}ns }}] }}\n"
        );
        sinks += &format!(
            "{{ name: r{source}, vc: 0.{}, listen: sink }}, ",
            60 + source
        );
        pvcs += &format!(
            "  - {{ from: x{source}, vc: 0.50, to: y, to_vc: 0.{}, qos: ubr }}\n",
            60 + source
        );
    }
    text += &format!(
        "  y: {{ on: s, elan: w, ip: 10.7.0.100, link: {{ rate: 40000cells/s }}, sockets: [{sinks}] }}\n{pvcs}\
         until: 1400ms\noccupancy: {{ every: 3us, from: 990ms, links: [y-s] }}\n"
    );
    text
}

/// The cells that wait at a time for which all cells before it are known, by Lindley's recursion.
struct Line {
    /// When the cells come, in order.
    come: Vec<u64>,
    /// When the line begins with each of them.
    begun: Vec<u64>,
}

impl Line {
    fn new(mut come: Vec<u64>) -> Self {
        come.sort_unstable();
        let mut free = 0;
        let begin = |come: &u64| {
            let begin = free.max(*come);
            free = begin + SLOT;
            begin
        };
        let begun = come.iter().map(begin).collect();
        Self { come, begun }
    }
    /// Cells that came before or at this time, without those that had begun to leave.
    fn waiting(&self, at: u64) -> usize {
        let by = |times: &[u64]| times.partition_point(|time| *time <= at);
        by(&self.come) - by(&self.begun)
    }
}

/// Each sample, and so the mean and the distribution, is that of the pattern.
#[test]
fn even_sources_have_exactly_the_levels_of_their_pattern() {
    let found = samples(&even(), false);
    let all = PHASES
        .iter()
        .flat_map(|phase| (0..CELLS).map(move |number| START + phase + number * PERIOD + CELL));
    let line = Line::new(all.collect());
    let mut most = 0;
    for sample in &found {
        let waiting = line.waiting(sample.at.as_nanos());
        assert_eq!(sample.cells, [0, waiting as u32], "{}", sample.at);
        most = most.max(waiting);
    }
    assert_eq!((found.len(), most), (136_667, MOST));
}
