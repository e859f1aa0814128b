//! Runs many random schedules of faults in small networks, and reports those that fail.
//!
//! ```sh
//! cargo run --release -p aerostat-sim --example schedules -- --count 10000
//! cargo run --release -p aerostat-sim --example schedules -- --seed 4711 --only 0,2 --story
//! ```
//!
//! Requirements: each datagram is delivered at most once, in order on each path, and visits no router again and again;
//! after the last fault all hosts join and every flow finds its shortcut; then the caches of clients and servers agree,
//! calls and connections agree at both ends of every link, no cell is unaccounted for; and after everything has stopped
//! no call, no label, no bandwidth and no cell is left.

#![allow(
    clippy::disallowed_types,
    reason = "it tells how long the schedules take"
)]

use aerostat_testing::labs::schedules::Schedule;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};
use std::process::ExitCode;
use std::time::{Duration, Instant};

const USAGE: &str = "usage: schedules [--from SEED] [--count N] [--seed SEED [--only I,J...] [--story]]

Runs the schedules of N seeds (default 100) from SEED (default 0) on; exit 0 only if all hold.
From seed 1000000 on they also have bursts of lost cells, routers without routes, and stations of Classical IP.
--seed runs one, --only with these of its faults alone (counted from 0), --story tells what happened.";

struct Arguments {
    from: u64,
    count: u64,
    only: Option<BTreeSet<usize>>,
    story: bool,
}

fn arguments() -> Option<Arguments> {
    let mut found = Arguments {
        from: 0,
        count: 100,
        only: None,
        story: false,
    };
    let mut given = std::env::args().skip(1);
    while let Some(name) = given.next() {
        if name == "--story" {
            found.story = true;
            continue;
        }
        let value = given.next()?;
        match name.as_str() {
            "--from" => found.from = value.parse().ok()?,
            "--count" => found.count = value.parse().ok()?,
            "--seed" => (found.from, found.count) = (value.parse().ok()?, 1),
            "--only" => {
                let numbers = value.split(',').filter(|text| !text.is_empty());
                let numbers = numbers.map(|text| text.parse().ok());
                found.only = Some(numbers.collect::<Option<_>>()?);
            }
            _ => return None,
        }
    }
    Some(found)
}

/// Runs one schedule; the error is the reason of the failure, with the story.
fn run(schedule: &Schedule) -> Result<Duration, String> {
    let done = catch_unwind(AssertUnwindSafe(|| schedule.run()));
    done.map(|end| Duration::from_nanos(end.as_nanos()))
        .map_err(|panic| {
            let text = panic.downcast::<String>().map_or_else(
                |panic| (*panic.downcast::<&str>().unwrap_or_default()).to_owned(),
                |text| *text,
            );
            if text.is_empty() {
                "a panic without a word".to_owned()
            } else {
                text
            }
        })
}

/// The faults that are necessary for the failure.
fn shrink(seed: u64) -> BTreeSet<usize> {
    let mut kept: BTreeSet<usize> = (0..Schedule::of(seed).count()).collect();
    for one in kept.clone() {
        let mut fewer = kept.clone();
        fewer.remove(&one);
        if run(&Schedule::of(seed).only(&fewer)).is_err() {
            kept = fewer;
        }
    }
    kept
}

fn report(seed: u64, why: &str) {
    let last = why.lines().last().unwrap_or_default();
    println!("FAILED: {last}");
    let kept = shrink(seed);
    println!("{}", Schedule::of(seed).only(&kept));
    let list: Vec<String> = kept.iter().map(ToString::to_string).collect();
    let list = list.join(",");
    println!(
        "  again: cargo run --release -p aerostat-sim --example schedules -- --seed {seed} --only {list} --story"
    );
}

fn main() -> ExitCode {
    let Some(arguments) = arguments() else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    // The message of a failure is printed in one line.
    set_hook(Box::new(|_| {}));
    let begin = Instant::now();
    let (mut failed, mut virtual_time, mut told) = (Vec::new(), Duration::ZERO, begin);
    for done in 0..arguments.count {
        let seed = arguments.from + done;
        let mut schedule = Schedule::of(seed);
        if let Some(only) = &arguments.only {
            schedule = schedule.only(only);
        }
        if arguments.count == 1 {
            println!("{schedule}");
        }
        match run(&schedule) {
            Ok(time) => virtual_time += time,
            Err(why) if arguments.story || arguments.only.is_some() => {
                println!("{why}");
                failed.push(seed);
            }
            Err(why) => {
                report(seed, &why);
                failed.push(seed);
            }
        }
        let now = Instant::now();
        if now.duration_since(told) > Duration::from_secs(10) || done + 1 == arguments.count {
            told = now;
            let each = now.duration_since(begin) / (done as u32 + 1);
            println!(
                "{} of {} schedules, {each:.1?} each, {} s of virtual time, {} failed",
                done + 1,
                arguments.count,
                virtual_time.as_secs(),
                failed.len()
            );
        }
    }
    if failed.is_empty() {
        return ExitCode::SUCCESS;
    }
    println!("failed: {failed:?}");
    ExitCode::FAILURE
}
