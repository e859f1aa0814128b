//! Queues with Poisson arrivals.

use super::{OC3_CELL, PROPAGATION, Probe, Section, batch_means, cells};
use aerostat_sim::NodeId;

/// Octets of IP and UDP header, and of LLC/SNAP before them.
const HEADERS: usize = 28 + 8;

/// Hosts `a` and `b` on a switch, a permanent connection between them, and Poisson traffic over it: payload octets and
/// packets per second of each flow.
fn lab(flows: &[(usize, u32)], seconds: f64) -> String {
    let mut text = "switches: { s1: {} }\n\
         clip: { net: { subnet: 10.1.0.0/24 } }\n\
         hosts:\n\
         \x20 a: { on: s1, elan: net, ip: 10.1.0.1 }\n\
         \x20 b: { on: s1, elan: net, ip: 10.1.0.2 }\n\
         pvcs: [{ from: a, vc: 0.100, to: b }]\n\
         traffic:\n"
        .to_owned();
    for (number, (size, rate)) in flows.iter().enumerate() {
        text += &format!(
            "  - {{ name: f{number}, from: a, to: b, kind: udp, size: {size}, rate: {rate}pps, poisson: true, start: \
             100ms, duration: {seconds}s }}\n"
        );
    }
    text
}

/// Delay without queues: the PDU's cells leave one after another, and the switch sends the last one once more.
fn unloaded(cells: usize) -> f64 {
    (cells + 1) as f64 * OC3_CELL + 2.0 * PROPAGATION
}

/// The Pollaczek-Khinchine formula: mean wait of an M/G/1 queue with these rates (1/s) and service times (s).
fn mean_wait(classes: &[(f64, f64)]) -> f64 {
    let load: f64 = classes.iter().map(|(rate, service)| rate * service).sum();
    let second: f64 = classes.iter().map(|(rate, s)| rate * s * s).sum();
    second / (2.0 * (1.0 - load))
}

/// The probability that a packet of an M/D/1 queue waits at most `time` service times (Crommelin). The terms alternate:
/// beyond a `time` of about 15 doubles are not precise enough.
fn waits_at_most(load: f64, time: f64) -> f64 {
    let term = |k: f64| {
        let exponent = -load * (time - k);
        let factorial = (1..=k as u32).map(f64::from).product::<f64>();
        exponent.powi(k as i32) / factorial * (-exponent).exp()
    };
    (1.0 - load) * (0..=time as u32).map(f64::from).map(term).sum::<f64>()
}

/// The wait of a packet that comes `gap` seconds after one that waited `before` and takes `previous` (Lindley).
fn lindley(before: f64, previous: f64, gap: f64) -> f64 {
    (before + previous - gap).max(0.0)
}

/// Every single wait follows from the earlier arrivals, except for a few signalling cells. So the means of the next two
/// tests can only be wrong because of the arrivals, which are a Poisson process.
#[test]
fn each_packet_waits_for_the_work_before_it_and_for_nothing_else() {
    let flows = [(24, 20_000_u32), (200, 8_000), (552, 5_000)];
    let probe = Probe::new("lindley", &lab(&flows, 1.0)).all();
    let mut all = Vec::new();
    for (number, (size, _)) in flows.iter().enumerate() {
        let count = cells(size + HEADERS);
        let flow = probe.heard.arrived[number].iter();
        all.extend(flow.map(|(at, delay)| (*at, count, delay - unloaded(count))));
    }
    all.sort_by_key(|one| one.0);
    let (mut wait, mut waited, mut strays) = (0.0, 0, 0);
    for pair in all.windows(2) {
        let [(before, cells, _), (at, _, measured)] = [pair[0], pair[1]];
        let gap = at.since(before).as_secs_f64();
        wait = lindley(wait, cells as f64 * OC3_CELL, gap);
        waited += usize::from(wait > 0.0);
        // Times of samples are whole nanoseconds.
        if (wait - measured).abs() > 5e-9 {
            // A few cells of signalling and ILMI share the line; each delays packets by its own time.
            let late = measured - wait;
            assert!(
                late > 0.0 && late < 4.0 * OC3_CELL,
                "the packet of {at} waits {measured} s, not {wait}"
            );
            wait = measured;
            strays += 1;
        }
    }
    assert!(
        strays * 1000 < all.len(),
        "{strays} of {} packets",
        all.len()
    );
    assert!(all.len() > 32_000 && waited > all.len() / 3);
}

/// Packets of one size: a packet waits at the adapter for the residual work of those before it. The queue is also
/// sampled every 50 µs: the waiting cells, without the one on the line.
#[test]
#[ignore = "millions of packets: cargo test --release -p aerostat-sim --test it theory -- --ignored"]
fn an_adapter_with_poisson_packets_of_one_size_is_an_md1_queue() {
    let mut section = Section::new("md1");
    for (load, seconds) in [(0.3, 40.0), (0.5, 24.0), (0.7, 24.0)] {
        let count = cells(24 + HEADERS);
        let service = count as f64 * OC3_CELL;
        let rate = (load / service).round();
        let mut probe = Probe::new("md1", &lab(&[(24, rate as u32)], seconds));
        let mut queue = Vec::new();
        let mut time = 0.101;
        while time < 0.1 + seconds {
            probe.until(time);
            let node = probe.world.node(NodeId(probe.lab.find("a").unwrap().0));
            let nic = node.and_then(|node| node.as_station()).unwrap().nic();
            queue.push(f64::from(nic.output().queued_total()));
            time += 50e-6;
        }
        let probe = probe.all();
        let waits: Vec<f64> = probe
            .delays(0)
            .iter()
            .map(|delay| (delay - unloaded(count)) * 1e6)
            .collect();
        let wait = mean_wait(&[(rate, service)]);
        let load = rate * service;
        let case = format!("load {load:.3}, {} packets", waits.len());
        section.mean(&case, "mean wait", "µs", wait * 1e6, batch_means(&waits));
        // Second moment of the wait (Takács): λ E[S³] / 3 (1 − ρ) + 2 W².
        let second = rate * service.powi(3) / (3.0 * (1.0 - load)) + 2.0 * wait * wait;
        let squares: Vec<f64> = waits.iter().map(|wait| wait * wait).collect();
        let (measured, interval) = batch_means(&squares);
        let of = |square: f64| square.sqrt();
        section.mean(
            &case,
            "root mean square of the wait",
            "µs",
            of(second * 1e12),
            (of(measured), interval / (2.0 * of(measured))),
        );
        for (limit, quantity) in [
            (0.0, "share that waits"),
            (1.0, "share that waits longer than S"),
            (2.0, "share that waits longer than 2 S"),
        ] {
            // Times are rounded: a wait of less than two nanoseconds is no wait.
            let above = waits.iter().map(|wait| {
                let wait = wait * 1e-6 / service;
                f64::from(u8::from(wait > limit + 1e-3))
            });
            let above: Vec<f64> = above.collect();
            let theory = 1.0 - waits_at_most(load, limit);
            section.mean(&case, quantity, "1", theory, batch_means(&above));
        }
        // Poisson arrivals see time averages: the unfinished work is the wait; it includes half of the cell on the
        // line.
        section.mean(
            &case,
            "mean queue",
            "cells",
            wait / OC3_CELL - load / 2.0,
            batch_means(&queue),
        );
    }
    section.check();
}

/// Three sizes of packets in one queue: all have the same wait, given by the second moment of the cell counts.
#[test]
#[ignore = "millions of packets: cargo test --release -p aerostat-sim --test it theory -- --ignored"]
fn an_adapter_with_poisson_packets_of_mixed_sizes_is_an_mg1_queue() {
    let mut section = Section::new("mg1");
    let flows = [(24, 20_000_u32), (200, 8_000), (552, 5_000)];
    let classes: Vec<(f64, f64)> = flows
        .iter()
        .map(|(size, rate)| (f64::from(*rate), cells(size + HEADERS) as f64 * OC3_CELL))
        .collect();
    let load: f64 = classes.iter().map(|(rate, service)| rate * service).sum();
    let probe = Probe::new("mg1", &lab(&flows, 80.0)).all();
    let wait = mean_wait(&classes) * 1e6;
    let mut all = Vec::new();
    for (number, (size, _)) in flows.iter().enumerate() {
        let count = cells(size + HEADERS);
        let sent = probe.heard.arrived[number].iter().map(|one| one.0);
        let waits = probe.delays(number);
        let waits: Vec<f64> = waits
            .iter()
            .map(|delay| (delay - unloaded(count)) * 1e6)
            .collect();
        all.extend(sent.zip(waits.iter().copied()));
        section.mean(
            format!("load {load:.3}, packets of {count} cells"),
            "mean wait",
            "µs",
            wait,
            batch_means(&waits),
        );
    }
    all.sort_by_key(|one| one.0);
    let waits: Vec<f64> = all.into_iter().map(|one| one.1).collect();
    section.mean(
        format!("load {load:.3}, all {} packets", waits.len()),
        "mean wait",
        "µs",
        wait,
        batch_means(&waits),
    );
    section.check();
}

/// Poisson sources of one host and of several: counts in windows of 1 ms have the variance of a Poisson process,
/// individually and together, and no two sources are correlated.
#[test]
fn poisson_sources_are_independent_streams() {
    let text = "switches: { s1: {} }\n\
         clip: { net: { subnet: 10.1.0.0/24 } }\n\
         hosts:\n\
         \x20 a: { on: s1, elan: net, ip: 10.1.0.1 }\n\
         \x20 b: { on: s1, elan: net, ip: 10.1.0.2 }\n\
         \x20 c: { on: s1, elan: net, ip: 10.1.0.3 }\n\
         pvcs: [{ from: a, vc: 0.100, to: c }, { from: b, vc: 0.100, to: c, to_vc: 0.101 }]\n\
         traffic:\n\
         \x20 - { name: f0, from: a, to: c, kind: udp, size: 24, rate: 4000pps, poisson: true, start: 100ms, duration: 6s }\n\
         \x20 - { name: f1, from: a, to: c, kind: udp, size: 24, rate: 4000pps, poisson: true, start: 100ms, duration: 6s }\n\
         \x20 - { name: f2, from: b, to: c, kind: udp, size: 24, rate: 4000pps, poisson: true, start: 100ms, duration: 6s }\n";
    let probe = Probe::new("streams", text).all();
    let windows = 6_000;
    let counts: Vec<Vec<f64>> = probe
        .heard
        .arrived
        .iter()
        .map(|flow| {
            let mut counts = vec![0.0; windows];
            for (at, _) in flow {
                let window = (at.as_secs_f64() - 0.1) * 1e3;
                counts[window as usize] += 1.0;
            }
            counts
        })
        .collect();
    let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len() as f64;
    let covariance = |a: &[f64], b: &[f64]| {
        let (x, y) = (mean(a), mean(b));
        let products = a.iter().zip(b).map(|(a, b)| (a - x) * (b - y));
        products.sum::<f64>() / a.len() as f64
    };
    // Four standard errors of a correlation, and of an index of dispersion, for independent sources.
    let correlation_limit = 4.0 / (windows as f64).sqrt();
    let dispersion_limit = 4.0 * (2.0 / windows as f64).sqrt();
    for (a, b) in [(0, 1), (0, 2), (1, 2)] {
        for lag in [0, 1, 2] {
            let (first, second) = (&counts[a][lag..], &counts[b][..windows - lag]);
            let correlation = covariance(first, second)
                / (covariance(first, first) * covariance(second, second)).sqrt();
            assert!(
                correlation.abs() < correlation_limit,
                "flows {a} and {b} at lag {lag}: {correlation}"
            );
        }
    }
    let sum: Vec<f64> = (0..windows)
        .map(|window| counts.iter().map(|counts| counts[window]).sum())
        .collect();
    for (name, counts) in [
        ("f0", &counts[0]),
        ("f1", &counts[1]),
        ("f2", &counts[2]),
        ("all", &sum),
    ] {
        let dispersion = covariance(counts, counts) / mean(counts);
        assert!(
            (dispersion - 1.0).abs() < dispersion_limit,
            "{name}: index of dispersion {dispersion}"
        );
    }
}
