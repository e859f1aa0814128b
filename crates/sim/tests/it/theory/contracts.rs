//! Contracts: priority, policing, shaping.

use super::{OC3_CELL, PROPAGATION, Probe, Section, batch_means, cells};
use aerostat_node::atm::{CellRate, CellRun, Fabric, FabricOp, Pdu, PortLimits, PortVc};
use aerostat_node::random;
use aerostat_proto::{Duration, Instant};
use aerostat_wire::{TrafficParams, Vc};

/// Seconds of a cell on a link `25.6`: 59111 cells/s.
const ATM25_CELL: f64 = 1.0 / 59_111.0;

/// One host sends single cells at a constant rate with a CBR contract, another as much best effort as possible, both
/// out of one port of 25.6 Mbit/s.
fn beside(best_effort: &str) -> Probe {
    let text = format!(
        "switches: {{ s1: {{}} }}\n\
         clip: {{ net: {{ subnet: 10.1.0.0/24 }} }}\n\
         hosts:\n\
         \x20 circuit:\n    on: s1\n    elan: net\n    ip: 10.1.0.1\n\
         \x20   sockets: [{{ name: cells, vc: 0.100, size: 40, pdus: 24000, rate: 2999pps, start: 200ms }}]\n\
         \x20 data: {{ on: s1, elan: net, ip: 10.1.0.2 }}\n\
         \x20 sink:\n    on: s1\n    elan: net\n    ip: 10.1.0.3\n    link: {{ rate: 25.6 }}\n\
         \x20   sockets: [{{ name: sink, vc: 0.200, listen: sink }}]\n\
         pvcs:\n\
         \x20 - {{ from: circuit, vc: 0.100, to: sink, to_vc: 0.200, pcr: 4000 }}\n\
         \x20 - {{ from: data, vc: 0.100, to: sink, to_vc: 0.201 }}\n\
         traffic: [{{ from: data, to: sink, kind: udp, size: 1472, rate: {best_effort}, start: 100ms, duration: 9s }}]\n\
         until: 9s\n"
    );
    Probe::new("beside", &text).all()
}

/// A CBR cell waits only for the end of the cell that is on the line: half a cell time in the mean, one at most. Best
/// effort gets the rest.
#[test]
fn cbr_beside_ubr_waits_half_a_cell_time_and_ubr_gets_the_rest() {
    let mut section = Section::new("cbr-beside-ubr");
    let rest = OC3_CELL + ATM25_CELL + 2.0 * PROPAGATION;
    for (name, rate, wait) in [
        ("next to nothing beside", "1pps", 0.0),
        ("saturated by best effort", "2400pps", ATM25_CELL / 2.0),
    ] {
        let probe = beside(rate);
        let circuit = probe.circuit("circuit", 100);
        let ctd = circuit.transfer.summary();
        assert_eq!((circuit.sent, ctd.count), (24_000, 24_000));
        assert_eq!((circuit.delivered, circuit.lost_cells()), (24_000, 0));
        section.exact(
            name,
            "mean CTD of CBR",
            "µs",
            [(rest + wait) * 1e6, ctd.mean_us],
        );
        if wait > 0.0 {
            section.exact(
                name,
                "largest CDV of CBR",
                "µs",
                [ATM25_CELL * 1e6, ctd.max_us - ctd.min_us],
            );
            let arrivals: Vec<f64> = probe.heard.arrived[0]
                .iter()
                .map(|(sent, delay)| sent.as_secs_f64() + delay)
                .filter(|at| (1.0..8.0).contains(at))
                .collect();
            let gaps = (arrivals.len() - 1) as f64;
            let time = arrivals[arrivals.len() - 1] - arrivals[0];
            let left = 1.0 / ATM25_CELL - 2999.0;
            let count = cells(1472 + 28 + 8) as f64;
            section.exact(
                name,
                "best effort carried",
                "cells/s",
                [left, count * gaps / time],
            );
        }
    }
    section.check();
}

/// The share of cells that pass a policer of 1/`increment_us` cells/s with tolerance `cdvt_us`, given the gaps before
/// the cells.
fn passed(increment_us: u32, cdvt_us: u32, gaps: impl Iterator<Item = Duration>) -> Vec<f64> {
    let mut fabric = Fabric::new([0; 16]);
    for _ in 0..2 {
        fabric.add_port(CellRate::OC12, PortLimits::SWITCH);
    }
    let (from, to) = (
        PortVc::new(0, Vc::new(0, 100)),
        PortVc::new(1, Vc::new(0, 100)),
    );
    let mut traffic = TrafficParams::cbr(1_000_000 / increment_us, 0);
    traffic.max_cdv = Duration::from_micros(cdvt_us.into());
    let connect = FabricOp::Connect {
        from,
        to,
        traffic,
        police: true.into(),
    };
    fabric.apply(connect).expect("a fabric with two ports");
    let mut now = Instant::from_secs(1);
    let mut all = Vec::new();
    for gap in gaps {
        now += gap;
        let before = fabric
            .connections()
            .next()
            .expect("open")
            .counters
            .cells_out;
        let cell = CellRun::whole(Pdu::new(vec![0; 40]), from.vc);
        fabric.receive(0, cell, now, |_| {});
        let after = fabric
            .connections()
            .next()
            .expect("open")
            .counters
            .cells_out;
        all.push((after - before) as f64);
        while fabric
            .output_mut(1)
            .and_then(|port| port.pop(now, 1))
            .is_some()
        {}
    }
    all
}

/// The generic cell rate algorithm has closed forms where arrivals are periodic, or Poisson without tolerance.
#[test]
fn a_policer_passes_the_share_that_the_generic_cell_rate_algorithm_gives() {
    let mut section = Section::new("policer");
    let share = |all: &[f64]| all.iter().sum::<f64>() / all.len() as f64;
    let every = |us: u64| std::iter::repeat_n(Duration::from_micros(us), 30_000);
    // The tolerance exceeds a gap: every increment passes a cell.
    section.exact(
        "a cell every 7 µs, increment 10 µs, tolerance 50 µs",
        "share that passes",
        "1",
        [0.7, share(&passed(10, 50, every(7)))],
    );
    // The tolerance is 1 µs, less than the 4 µs by which the second cell is early: every other cell passes.
    section.exact(
        "a cell every 6 µs, increment 10 µs, tolerance 1 µs",
        "share that passes",
        "1",
        [0.5, share(&passed(10, 1, every(6)))],
    );
    section.exact(
        "a cell every 10 µs, increment 10 µs, tolerance 1 µs",
        "share that passes",
        "1",
        [1.0, share(&passed(10, 1, every(10)))],
    );
    // Poisson at twice the contract's rate with hardly any tolerance: after each cell that passes, the next to pass is
    // the first one after the increment (minus the tolerance).
    let mut rng = random::stream(1, "theory", "policer");
    let gaps: Vec<Duration> = (0..100_000)
        .map(|_| Duration::from_micros(500).mul_f64(random::exponential(&mut rng)))
        .collect();
    let all = passed(1000, 1, gaps.into_iter());
    section.mean(
        "Poisson every 500 µs, increment 1000 µs, tolerance 1 µs",
        "share that passes",
        "1",
        1.0 / (1.0 + 2.0 * 0.999),
        batch_means(&all),
    );
    section.check();
}

fn shaped(qos: &str, size: usize, rate: &str) -> Probe {
    let text = format!(
        "switches: {{ s1: {{}} }}\n\
         clip: {{ net: {{ subnet: 10.1.0.0/24 }} }}\n\
         hosts:\n\
         \x20 a: {{ on: s1, elan: net, ip: 10.1.0.1 }}\n\
         \x20 b: {{ on: s1, elan: net, ip: 10.1.0.2 }}\n\
         pvcs: [{{ from: a, vc: 0.100, to: b, police: true, {qos} }}]\n\
         traffic: [{{ from: a, to: b, kind: udp, size: {size}, rate: {rate}, start: 100ms, duration: 2s }}]\n"
    );
    Probe::new("shaped", &text).all()
}

/// A shaper sends the cells of a PDU one per peak interval. Bursts of variable bit rate are sent at the peak rate as
/// long as the burst tolerance lasts, then at the sustainable rate. All cells conform: the switch polices them.
#[test]
fn a_shaper_spaces_cells_by_its_rates_and_what_it_sends_conforms() {
    let mut section = Section::new("shaper");
    // One PDU of this many cells alone: from the first cell to the last, then the switch and the way.
    let rest = 2.0 * (OC3_CELL + PROPAGATION);
    let (count, pcr) = (cells(1472 + 36), 20_000.0);
    let alone = shaped("pcr: 20000", 1472, "50pps");
    let over = shaped("pcr: 20000", 1472, "1000pps");
    let mean = |all: &[f64]| all.iter().sum::<f64>() / all.len() as f64;
    section.exact(
        format!("CBR of 20000 cells/s, a PDU of {count} cells"),
        "delay",
        "µs",
        [
            ((count - 1) as f64 / pcr + rest) * 1e6,
            mean(&alone.delays(0)) * 1e6,
        ],
    );
    let arrivals: Vec<f64> = over.heard.arrived[0]
        .iter()
        .map(|(sent, delay)| sent.as_secs_f64() + delay)
        .collect();
    let time = arrivals[arrivals.len() - 1] - arrivals[0];
    section.exact(
        "CBR of 20000 cells/s, more offered",
        "rate carried",
        "cells/s",
        [pcr, count as f64 * (arrivals.len() - 1) as f64 / time],
    );
    let (scr, mbs) = (2_000.0, 10.0);
    let burst = (mbs - 1.0) * (1.0 / scr - 1.0 / pcr);
    let qos = "qos: \"nrt-vbr:max_pcr=20000,scr=2000,mbs=10\"";
    let vbr = shaped(qos, 1472, "10pps");
    let last = (count - 1) as f64;
    section.exact(
        format!("VBR of 20000, 2000 and 10 cells, a PDU of {count} cells"),
        "delay",
        "µs",
        [
            ((last / pcr).max(last / scr - burst) + rest) * 1e6,
            mean(&vbr.delays(0)) * 1e6,
        ],
    );
    for (name, probe) in [("alone", &alone), ("over", &over), ("vbr", &vbr)] {
        let circuit = probe.circuit("a", 100);
        assert!(circuit.sent > 300, "{name}: {} cells", circuit.sent);
        assert_eq!(circuit.lost_cells(), 0, "{name}: {:?}", circuit.lost);
        assert_eq!(circuit.sent, circuit.delivered + circuit.under_way);
    }
    section.check();
}
