//! `cargo run --release -p aerostat-bench --bin setup -- [--split] [--calls N] [--json]`: the time of a
//! call's set-up in real time. See `bench/README.md`.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "printing results is what this program is for"
)]

use aerostat_bench::setup::{Plan, Setup, hidden_role, percentile, run, sorted};
use std::process::ExitCode;

fn main() -> ExitCode {
    match hidden_role() {
        None => {}
        Some(Ok(())) => return ExitCode::SUCCESS,
        Some(Err(error)) => {
            eprintln!("setup: {error}");
            return ExitCode::FAILURE;
        }
    }
    let mut plan = Plan {
        program: std::env::current_exe().unwrap_or_default(),
        split: false,
        calls: 5000,
        warm: 500,
    };
    let mut json = false;
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let parsed = match arg.as_str() {
            "--json" => {
                json = true;
                Some(())
            }
            "--split" => {
                plan.split = true;
                Some(())
            }
            "--calls" => number(args.next()).map(|n| plan.calls = n),
            _ => None,
        };
        if parsed.is_none() {
            eprintln!("{arg}: expected --split, --calls N or --json");
            return ExitCode::from(2);
        }
    }
    let done = |all: &[Setup]| {
        print(all, plan.split, json);
        std::process::exit(0);
    };
    match run(&plan, done) {
        // It was stopped before the last call.
        Ok(()) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("setup: {error}");
            ExitCode::FAILURE
        }
    }
}

fn number(text: Option<String>) -> Option<usize> {
    text?.parse().ok().filter(|n| (1..=1_000_000).contains(n))
}

fn print(all: &[Setup], split: bool, json: bool) {
    let us = |values: &[std::time::Duration], part| {
        let value = percentile(values, part).unwrap_or_default();
        value.as_secs_f64() * 1e6
    };
    let times = sorted(all.iter().map(|setup| setup.time));
    let late = sorted(all.iter().map(|setup| setup.late));
    let turns = sorted(all.iter().map(|setup| setup.turns));
    let turns = percentile(&turns, 0.5).unwrap_or_default();
    let (p50, p99, most) = (us(&times, 0.5), us(&times, 0.99), us(&times, 1.0));
    let least = us(&times, 0.0);
    let (late50, late99) = (us(&late, 0.5), us(&late, 0.99));
    let what = if split { "split" } else { "one process" };
    let calls = all.len();
    if json {
        println!(
            "{{\"processes\": \"{what}\", \"calls\": {calls}, \"setup_min_us\": {least:.1}, \"setup_p50_us\": {p50:.1}, \
             \"setup_p99_us\": {p99:.1}, \"setup_max_us\": {most:.1}, \"turns_p50\": {turns}, \
             \"late_p50_us\": {late50:.1}, \"late_p99_us\": {late99:.1}}}"
        );
    } else {
        println!(
            "{what}: {calls} calls; set-up: least {least:.1} us, p50 {p50:.1} us, p99 {p99:.1} us, most {most:.1} us; \
             {turns} turns of the loop (median); the program was called {late50:.1} us late (p50), {late99:.1} us (p99)"
        );
    }
}
