//! `cargo bench -p aerostat-bench --bench soak -- [--rate N] [--seconds N] [--atmtcp CALLER,CALLED] [--json]`:
//! N calls a second for N seconds through one switch, in real time. See `bench/README.md`.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "printing results is what this program is for"
)]

use aerostat_bench::soak::{Outcome, Plan, Way, run};
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut plan = Plan {
        rate: 1000,
        seconds: 60,
    };
    let (mut way, mut json) = (Way::Memory, false);
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let parsed = match arg.as_str() {
            "--json" => {
                json = true;
                Some(())
            }
            // Cargo's own.
            "--bench" => Some(()),
            "--rate" => number(args.next()).map(|n| plan.rate = n),
            "--seconds" => number(args.next()).map(|n| plan.seconds = n),
            "--atmtcp" => args.next().and_then(|two| {
                let (caller, called) = two.split_once(',')?;
                way = Way::AtmTcp([caller.parse().ok()?, called.parse().ok()?]);
                Some(())
            }),
            _ => None,
        };
        if parsed.is_none() {
            eprintln!("{arg}: expected --rate N, --seconds N, --atmtcp IP:PORT,IP:PORT or --json");
            return ExitCode::from(2);
        }
    }
    match run(plan, way) {
        Ok(outcome) => {
            print(plan, way, &outcome, json);
            ExitCode::from(u8::from(!outcome.is_clean()))
        }
        Err(error) => {
            eprintln!("soak: {error}");
            ExitCode::FAILURE
        }
    }
}

fn number(text: Option<String>) -> Option<u32> {
    text?.parse().ok().filter(|n| (1..=1_000_000).contains(n))
}

fn print(plan: Plan, way: Way, outcome: &Outcome, json: bool) {
    let links = match way {
        Way::Memory => "in memory",
        Way::AtmTcp(_) => "ATM over TCP",
    };
    let us = |part| outcome.percentile(part).as_secs_f64() * 1e6;
    let (p50, p99, most) = (us(0.5), us(0.99), us(1.0));
    let seconds = outcome.took.as_secs_f64();
    let rate = outcome.completed as f64 / seconds;
    let failed: u64 = outcome.failed.values().sum();
    let (early, late) = outcome.memory;
    if json {
        println!(
            "{{\"links\": \"{links}\", \"rate\": {}, \"asked\": {}, \"completed\": {}, \"ended\": {}, \"wrong\": {}, \
             \"failed\": {failed}, \"left\": {}, \"seconds\": {seconds:.3}, \"calls_per_second\": {rate:.1}, \
             \"setup_p50_us\": {p50:.1}, \"setup_p99_us\": {p99:.1}, \"setup_max_us\": {most:.1}, \
             \"memory_early_kib\": {early}, \"memory_late_kib\": {late}}}",
            plan.rate, outcome.asked, outcome.completed, outcome.ended, outcome.wrong, outcome.left
        );
        return;
    }
    println!(
        "links {links}: {} calls asked for, {} a second",
        outcome.asked, plan.rate
    );
    println!(
        "  {} completed, {} ended at the called host, {} wrong PDUs, {failed} failed {:?}, {} left, in {seconds:.1} s: {rate:.0} a second",
        outcome.completed, outcome.ended, outcome.wrong, outcome.failed, outcome.left
    );
    println!("  set-up: p50 {p50:.0} us, p99 {p99:.0} us, most {most:.0} us");
    println!("  memory: {early} KiB after a sixth of the time, {late} KiB at the end");
}
