//! A ring and parallel links with a cut: losses, and the time until calls take another way.

use crate::bench::{Bench, repository_lab};
use crate::check;
use aerostat_lab::model::FaultKind;
use aerostat_node::ip::meter::Side;
use aerostat_proto::{Duration, Instant};

/// When packets of a flow were sent or received, from `from` on.
fn times(bench: &Bench, flow: usize, from: Instant, side: Side) -> Vec<Instant> {
    let samples = bench.log.samples.iter();
    let hit = samples.filter(|s| s.flow.0 == flow && s.side == side && s.at >= from);
    hit.map(|s| s.at).collect()
}

/// From `at`: packets sent in the next two seconds and lost, and the longest time without an arrival.
fn gap(bench: &Bench, flow: &str, at: Instant) -> (usize, Duration) {
    let flow = bench.flow(flow);
    let end = at + Duration::from_secs(2);
    let within = |side| -> Vec<Instant> {
        let list = times(bench, flow, at, side).into_iter();
        list.filter(|time| *time < end).collect()
    };
    let (sent, received) = (within(Side::Sent), within(Side::Received));
    let mut longest = Duration::ZERO;
    let mut last = at;
    for time in received.iter().copied().chain([end]) {
        longest = longest.max(time.since(last));
        last = time;
    }
    (sent.len().saturating_sub(received.len()), longest)
}

/// Time from `at` until a program is connected again; zero if its call was not affected.
fn call_gap(bench: &Bench, at: Instant) -> Duration {
    let time = |line: &String| -> Option<f64> {
        line.split_whitespace()
            .next()?
            .trim_end_matches('s')
            .parse()
            .ok()
    };
    let after = |what: &str, from: f64| {
        let lines = bench.log.story.iter().filter(|line| line.contains(what));
        lines.filter_map(time).find(|time| *time >= from)
    };
    let at = at.as_secs_f64();
    match after("call with", at).filter(|lost| *lost < at + 0.01) {
        None => Duration::ZERO,
        Some(lost) => {
            let back = after("tone: connected", lost).expect("the call comes back");
            Duration::from_secs_f64(back - at)
        }
    }
}

fn examine(name: &str, cuts: &[u64]) {
    let lab = repository_lab(name, &[]);
    let end = lab.end();
    let mut bench = Bench::new(lab, 1);
    let mut passed = Instant::ZERO;
    for fault in bench.lab.faults.clone() {
        bench.run((Instant::ZERO + fault.at).since(passed));
        passed = Instant::ZERO + fault.at;
        let (link, cut) = match fault.what {
            FaultKind::LinkDown(link) => (link, true),
            FaultKind::LinkUp(link) => (link, false),
            other => panic!("{name} is about links, not {other:?}"),
        };
        bench.cut(aerostat_sim::LinkId(link.0), cut);
    }
    bench.run((Instant::ZERO + end).since(passed));
    println!("{name}: each flow has 100 packets/s");
    println!(
        "{:>6} {:<22} {:>5} {:>16}",
        "CUT s", "WHAT", "LOST", "WITHOUT A WAY ms"
    );
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    for cut in cuts {
        let at = Instant::from_secs(*cut);
        for (flow, text) in [("lane", "IP over LANE"), ("clip", "Classical IP")] {
            let (lost, without) = gap(&bench, flow, at);
            println!("{cut:>6} {text:<22} {lost:>5} {:>16.3}", ms(without));
            assert!(lost <= 30, "{name}: {text} loses {lost} packets");
            assert!(
                without <= Duration::from_millis(300),
                "{name}: {text}: {without:?}"
            );
        }
        let without = call_gap(&bench, at);
        println!(
            "{cut:>6} {:<22} {:>5} {:>16.3}",
            "call of a program",
            "-",
            ms(without)
        );
        assert!(without <= Duration::from_millis(50), "{name}: {without:?}");
    }
    check::order(&bench).unwrap_or_else(|why| bench.fail(&why));
    bench.until("agreement of calls", 15.0, check::agreement);
}

#[test]
fn a_ring_with_a_cut_goes_the_other_way_round() {
    examine("ring", &[4]);
}

#[test]
fn parallel_links_stand_in_for_each_other() {
    examine("parallel-links", &[4, 8]);
}
