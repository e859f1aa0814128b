//! Sources of cells at even distances that share a link: the queue ΣDi/D/1.

use super::{OC3_CELL, PROPAGATION, Section, batch_means};
use crate::bench::lab_of;
use aerostat_lab::build::{Builder, Flavour};
use aerostat_node::atm::Mark;
use aerostat_node::host::HostEvent;
use aerostat_node::ip::books::SocketEvent;
use aerostat_proto::{Duration, Instant, Trace};
use aerostat_sim::{LabEvent, NodeId, Observer, lab_world};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Sources.
const SOURCES: u32 = 10;
/// Cells per second of a source, on average: a twelfth of an OC-3.
const RATE: u32 = 29_434;
/// Cell times from a cell of a source to its next one.
const PERIOD: f64 = 12.0;
/// When the first sources start, in nanoseconds.
const START: u64 = 20_000_000;

/// Numbers of 0 to `limit` − 1, by the generator MMIX of D. Knuth.
struct Draws(u64);

impl Draws {
    fn below(&mut self, limit: u32) -> u32 {
        const FACTOR: u64 = 6_364_136_223_846_793_005;
        self.0 = self
            .0
            .wrapping_mul(FACTOR)
            .wrapping_add(1_442_695_040_888_963_407);
        (((self.0 >> 32) * u64::from(limit)) >> 32) as u32
    }
}

/// Ten programs on two switches, whose trunk all share. Rates are drawn within 1 % of their mean, and phases as well.
/// No two sources keep their phases, but rates in whole cells per second have the same phases again after a second:
/// another set of sources has others.
fn lab(set: u64, seconds: f64) -> String {
    let mut draws = Draws(set);
    // The first numbers of neighbouring seeds are alike.
    draws.below(2);
    let spread = RATE / 100;
    let mut rates: Vec<u32> = (0..SOURCES)
        .map(|_| RATE - spread + draws.below(2 * spread + 1))
        .collect();
    rates[0] = (RATE * SOURCES + rates[0]) - rates.iter().sum::<u32>();
    let mut text = "switches: { s1: {}, s2: {} }\nlinks: [[s1, s2, { rate: oc3 }]]\n\
         clip: { n: { subnet: 10.1.0.0/24, server: a0 } }\n"
        .to_owned();
    let mut pvcs = "pvcs:\n".to_owned();
    text += "hosts:\n";
    for (number, rate) in rates.into_iter().enumerate() {
        let pdus = (f64::from(rate) * seconds) as u64;
        let start = START + u64::from(draws.below(1_000_000_000 / RATE));
        let _ = write!(
            text,
            "  a{number}: {{ on: s1, elan: n, ip: 10.1.0.{}, sockets: [{{ name: w, vc: 0.100, size: 40, \
             pdus: {pdus}, rate: {rate}pps, start: {start}ns }}] }}\n  \
             b{number}: {{ on: s2, elan: n, ip: 10.1.0.{}, sockets: [{{ name: r, vc: 0.100, listen: sink }}] }}\n",
            number + 1,
            number + 101
        );
        let _ = writeln!(pvcs, "  - {{ from: a{number}, vc: 0.100, to: b{number} }}");
    }
    text + &pvcs
}

/// When each cell left its program, and its time to the other end.
#[derive(Default)]
struct Heard {
    under_way: BTreeMap<Mark, Instant>,
    /// Nanoseconds.
    arrived: Vec<(Instant, u64)>,
}

impl Observer<LabEvent> for Heard {
    fn trace(&mut self, _node: NodeId, _trace: Trace, _now: Instant) {}
    fn event(&mut self, _node: NodeId, event: LabEvent, now: Instant) {
        match event {
            LabEvent::Host(HostEvent::Socket(SocketEvent::Sent { mark, .. })) => {
                self.under_way.insert(mark, now);
            }
            LabEvent::Host(HostEvent::Socket(SocketEvent::Received { mark, .. })) => {
                let sent = self.under_way.remove(&mark).expect("sent before");
                let nanos = now.since(sent).as_nanos() as u64;
                self.arrived.push((sent, nanos));
            }
            _ => {}
        }
    }
}

/// The waits of all cells, in cell times, in the order in which the cells were sent.
fn waits(set: u64, seconds: f64) -> Vec<(Instant, f64)> {
    let lab = lab_of("multiplex", &lab(set, seconds), &[]);
    let mut world = lab_world::build(&lab, lab.seed);
    world.keep_books();
    let mut heard = Heard::default();
    let builder = Builder::new(&lab, lab.seed, Flavour::Embedded);
    lab_world::start(&mut world, &builder, &mut heard);
    world.run_until(
        Instant::ZERO + Duration::from_secs_f64(seconds + 0.1),
        &mut heard,
    );
    assert!(heard.under_way.is_empty(), "every cell arrives");
    // Each of three links sends the cell once.
    let unloaded = 3.0 * (OC3_CELL + PROPAGATION);
    heard.arrived.sort();
    let wait = |nanos: u64| (nanos as f64 * 1e-9 - unloaded) / OC3_CELL;
    let waits = heard.arrived.iter();
    waits.map(|(sent, nanos)| (*sent, wait(*nanos))).collect()
}

/// The probability that a cell waits longer than `cells` cell times. It sees the other sources at a random time:
/// N·D/D/1 with one source less. Source: J. Roberts, U. Mocci, J. Virtamo (eds.), Broadband Network Teletraffic (COST
/// 242, 1996), the exact solution of N·D/D/1 (from memory; its mean agrees with a simulation of the queue alone).
fn longer(cells: f64) -> f64 {
    let others = SOURCES as i32 - 1;
    let n_choose =
        |n: i32| (0..n).fold(1.0, |all, i| all * f64::from(others - i) / f64::from(i + 1));
    let first = cells.floor() as i32 + 1;
    let terms = (first..=others).map(|n| {
        let share = (f64::from(n) - cells) / PERIOD;
        let rest = (PERIOD - f64::from(others) + cells) / (PERIOD - f64::from(n) + cells);
        n_choose(n) * share.powi(n) * (1.0 - share).powi(others - n) * rest
    });
    terms.sum()
}

/// Each wait follows from the arrivals (Lindley).
#[test]
fn cells_of_even_sources_wait_for_the_cells_before_them_and_for_nothing_else() {
    let all = waits(0, 0.05);
    assert!(all.len() > 14_000, "{}", all.len());
    let (mut wait, mut waited) = (0.0, 0);
    for pair in all.windows(2) {
        let [(before, _), (at, measured)] = [pair[0], pair[1]];
        let gap = at.since(before).as_nanos() as f64 * 1e-9 / OC3_CELL;
        wait = f64::max(wait + 1.0 - gap, 0.0);
        waited += usize::from(wait > 0.0);
        // Times are whole nanoseconds, and those of a full queue add up.
        assert!(
            (wait - measured).abs() < 0.02,
            "the cell of {at} waits {measured} cells, not {wait}"
        );
    }
    assert!(waited > all.len() / 2 && waited < all.len());
}

#[test]
#[ignore = "millions of cells: cargo test --release -p aerostat-sim --test it theory -- --ignored"]
fn the_waits_of_cells_of_even_sources_have_the_distribution_of_sigma_d_d_1() {
    /// Sets of sources, each for a second. Within a set waits depend on each other, so the sets are the batches.
    const SETS: u64 = 20;
    const BATCH: usize = 100;
    let mut section = Section::new("sigma-d-d-1");
    let steps = 10_000;
    let mean = (0..9 * steps).map(|step| longer((f64::from(step) + 0.5) / f64::from(steps)));
    let mean = mean.sum::<f64>() / f64::from(steps);
    // The mean wait, and the shares that wait longer than 0, 1 and 2 cells.
    let mut of_sets = [const { Vec::new() }; 4];
    let mut cells = 0;
    for set in 0..SETS {
        let all = waits(set, 1.0);
        let count = all.len() as f64;
        cells += all.len();
        // Times are rounded: a wait of less than two nanoseconds is no wait.
        let above = |limit: f64| all.iter().filter(|one| one.1 > limit + 1e-3).count() as f64;
        let sum: f64 = all.iter().map(|one| one.1).sum();
        let values = [sum, above(0.0), above(1.0), above(2.0)];
        for (values, value) in of_sets.iter_mut().zip(values) {
            values.extend([value / count; BATCH]);
        }
    }
    let case = format!("10 sources, a cell every 12 cell times each, {cells} cells");
    for (values, quantity, unit, theory) in [
        (&of_sets[0], "mean wait", "cells", mean),
        (&of_sets[1], "share that waits", "1", longer(0.0)),
        (
            &of_sets[2],
            "share that waits longer than 1 cell",
            "1",
            longer(1.0),
        ),
        (
            &of_sets[3],
            "share that waits longer than 2 cells",
            "1",
            longer(2.0),
        ),
    ] {
        section.mean(&case, quantity, unit, theory, batch_means(values));
    }
    section.check();
}
