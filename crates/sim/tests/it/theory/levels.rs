//! Levels of the buffer of a switch, as `occupancy:` of a lab samples them, with Poisson arrivals.

use super::{OC3_CELL, PROPAGATION, Probe, Section, batch_means, cells};
use aerostat_lab::occupancy::{Sample, Sampler};
use aerostat_proto::Instant;

/// Seconds of a cell on the line to the receiver, which has the rate of a link of `25.6`.
const SLOW_CELL: f64 = 1.0 / 59_111.0;
/// Octets of a packet's payload, and of what goes before it: two cells.
const SIZE: usize = 24;
const CELLS: usize = 2;
/// When the traffic starts, in seconds.
const START: f64 = 0.1;

/// Host `a` on an OC-3 sends Poisson packets of two cells to host `b` on a slower link: the queue is at the switch.
fn lab(rate: u32, seconds: f64, every: &str) -> String {
    format!(
        "switches: {{ s1: {{}} }}\n\
         clip: {{ net: {{ subnet: 10.1.0.0/24 }} }}\n\
         hosts:\n\
         \x20 a: {{ on: s1, elan: net, ip: 10.1.0.1 }}\n\
         \x20 b: {{ on: s1, elan: net, ip: 10.1.0.2, link: {{ rate: 59111cells/s }} }}\n\
         pvcs: [{{ from: a, vc: 0.100, to: b }}]\n\
         traffic: [{{ name: f, from: a, to: b, kind: udp, size: {SIZE}, rate: {rate}pps, poisson: true, start: 100ms, \
         duration: {seconds}s }}]\n\
         occupancy: {{ every: {every}, from: 101ms, links: [b-s1] }}\n"
    )
}

/// The samples of a run until its traffic ends, and all that was heard of its packets.
fn sampled(text: &str, seconds: f64) -> (Vec<Sample>, Probe) {
    let mut probe = Probe::new("levels", text);
    let mut sampler = Sampler::new(&probe.lab);
    let end = Instant::ZERO + aerostat_proto::Duration::from_secs_f64(START + seconds);
    while let Some(at) = sampler.next_at().filter(|at| *at < end) {
        probe.world.run_until(at, &mut probe.heard);
        sampler.take(probe.world.plant());
    }
    assert_eq!(sampler.limits(), Vec::<String>::new());
    (sampler.samples().to_vec(), probe.all())
}

/// The mean wait of a cell, if packets of two cells come as a Poisson process of `rate` to a line with this cell time:
/// that of the packet (Pollaczek and Khinchine), and half a cell behind the other cell of the packet.
fn wait(rate: f64, cell: f64) -> f64 {
    let service = CELLS as f64 * cell;
    rate * service * service / (2.0 * (1.0 - rate * service)) + cell / 2.0
}

/// Of two lines one behind the other the slower one determines when cells leave: they wait at both together as long as
/// they would at the slower one alone. So the wait at the switch is the difference, and Little's law gives the level.
#[test]
#[ignore = "millions of packets: cargo test --release -p aerostat-sim --test it theory -- --ignored"]
fn the_mean_level_of_a_buffer_of_a_switch_is_that_of_an_md1_queue() {
    assert_eq!(cells(SIZE + 28 + 8), CELLS);
    let mut section = Section::new("levels");
    for (load, seconds) in [(0.5, 40.0), (0.7, 60.0)] {
        let rate = (load / (CELLS as f64 * SLOW_CELL)).round();
        let (samples, probe) = sampled(&lab(rate as u32, seconds, "100us"), seconds);
        let levels: Vec<f64> = samples.iter().map(|one| f64::from(one.cells[1])).collect();
        let theory = CELLS as f64 * rate * (wait(rate, SLOW_CELL) - wait(rate, OC3_CELL));
        let packets = probe.delays(0).len();
        let case = format!("load {load}, {packets} packets, {} samples", levels.len());
        section.mean(case, "mean level", "cells", theory, batch_means(&levels));
    }
    section.check();
}

/// Each sample has the cells that Lindley's recursion over the packets sent finds at its time, so the distribution is
/// right as well.
#[test]
fn each_level_follows_from_the_packets_before_it() {
    let (samples, probe) = sampled(&lab(23_000, 0.4, "37us"), 0.4);
    let mut sent: Vec<f64> = probe.heard.arrived[0]
        .iter()
        .map(|one| one.0.as_secs_f64())
        .collect();
    sent.sort_by(f64::total_cmp);
    // When each cell comes to the switch, and when its line begins with it.
    let (mut first, mut second) = (0.0_f64, 0.0_f64);
    let (mut come, mut begun) = (Vec::new(), Vec::new());
    for at in sent.iter().flat_map(|at| [*at; CELLS]) {
        first = first.max(at) + OC3_CELL;
        let arrives = first + PROPAGATION;
        let begins = second.max(arrives);
        second = begins + SLOW_CELL;
        come.push(arrives);
        begun.push(begins);
    }
    let (mut differ, mut queued) = (0, 0);
    for sample in &samples {
        let at = sample.at.as_secs_f64();
        let by = |times: &[f64]| times.partition_point(|time| *time <= at);
        let level = by(&come) - by(&begun);
        queued += usize::from(level > 0);
        differ += usize::from(sample.cells[1] as usize != level);
    }
    // A few cells of signalling and ILMI share the line, and times are whole nanoseconds.
    assert!(
        differ * 200 < samples.len(),
        "{differ} of {}",
        samples.len()
    );
    assert!(
        samples.len() > 10_000 && queued * 3 > samples.len(),
        "{queued}"
    );
}
