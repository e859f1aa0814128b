//! Mutants of the labs: each is checked, and run if it is valid.
//!
//! ```sh
//! cargo run --release -p aerostat-sim --example mutants -- --count 100000
//! cargo run --release -p aerostat-sim --example mutants -- --seed 4711 --show
//! ```
//!
//! Requirements: no panic, no hang, bounded memory. A run ends after one second of virtual time, or after a number of
//! events, because a mutant may ask for more than any machine can do.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "it tells how long the mutants take, and when one takes too long"
)]

use aerostat_testing::labs::mutants::mutator::{Corpus, Seed};
use aerostat_testing::labs::mutants::{self, Fate, Limits};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const USAGE: &str = "usage: mutants [--from SEED] [--count N] [--seed SEED [--show]] [--keep DIR]
               [--events N] [--seconds N] [--memory MiB]

Makes N mutants (default 1000) from SEED (default 0) on, checks each and runs those that pass for one second of
virtual time; exit 0 only if there was no panic, no hang and no run above the memory bound.
--seed makes one, --show prints it. Mutants that fail are kept in DIR (default: target/mutants).
--events bounds a run (default 200000 events), --seconds how long one mutant may take (default 30), --memory the
memory of the process (default 1024).";

struct Arguments {
    from: u64,
    count: u64,
    show: bool,
    keep: PathBuf,
    events: u64,
    seconds: u64,
    memory: u64,
}

fn arguments() -> Option<Arguments> {
    let mut found = Arguments {
        from: 0,
        count: 1000,
        show: false,
        keep: PathBuf::from("target/mutants"),
        events: 200_000,
        seconds: 30,
        memory: 1024,
    };
    let mut given = std::env::args().skip(1);
    while let Some(name) = given.next() {
        if name == "--show" {
            found.show = true;
            continue;
        }
        let value = given.next()?;
        match name.as_str() {
            "--from" => found.from = value.parse().ok()?,
            "--count" => found.count = value.parse().ok()?,
            "--seed" => (found.from, found.count) = (value.parse().ok()?, 1),
            "--keep" => found.keep = value.into(),
            "--events" => found.events = value.parse().ok()?,
            "--seconds" => found.seconds = value.parse().ok()?,
            "--memory" => found.memory = value.parse().ok()?,
            _ => return None,
        }
    }
    Some(found)
}

fn keep(directory: &Path, what: &str, seed: u64, text: &str) {
    let file = directory.join(format!("{what}-{seed}.atm.yml"));
    let kept = std::fs::create_dir_all(directory).and_then(|()| std::fs::write(&file, text));
    match kept {
        Ok(()) => println!("  kept as {}", file.display()),
        Err(error) => println!("  cannot be kept as {}: {error}", file.display()),
    }
}

/// The mutant under test, and its start time.
type Tried = Arc<Mutex<Option<(u64, String, Instant)>>>;

/// Resident memory of this process, MiB.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split_whitespace().nth(1);
    let pages = pages.and_then(|n| n.parse::<u64>().ok()).unwrap_or(0);
    // Pages have 4 KiB.
    pages / 256
}

/// Ends the process if a mutant takes too much time or memory.
fn watch(tried: &Tried, most: &Arc<AtomicU64>, arguments: &Arguments) {
    let (tried, most, keep_in) = (tried.clone(), most.clone(), arguments.keep.clone());
    let (seconds, memory) = (arguments.seconds, arguments.memory);
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(Duration::from_millis(50));
            let now = resident();
            most.fetch_max(now, Ordering::Relaxed);
            let guard = tried.lock().expect("nobody panics with this lock");
            let Some((seed, text, since)) = &*guard else {
                continue;
            };
            let what = if since.elapsed() > Duration::from_secs(seconds) {
                "hang"
            } else if now > memory {
                "memory"
            } else {
                continue;
            };
            println!(
                "{what}: mutant {seed} after {:.1?}, {now} MiB",
                since.elapsed()
            );
            keep(&keep_in, what, *seed, text);
            std::process::exit(1);
        }
    });
}

fn main() -> ExitCode {
    let Some(arguments) = arguments() else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let corpus = Corpus::new(&mutants::labs());
    let limits = Limits {
        events: arguments.events,
    };
    // The place of a panic; its message alone does not distinguish panics.
    let place = Arc::new(Mutex::new(String::new()));
    let hook = place.clone();
    set_hook(Box::new(move |panic| {
        let text = panic.to_string().replace('\n', " ");
        *hook.lock().expect("no panic in a panic") = text;
    }));
    let (tried, most): (Tried, _) = (Tried::default(), Arc::new(AtomicU64::new(0)));
    watch(&tried, &most, &arguments);
    let (begin, mut told) = (Instant::now(), Instant::now());
    let mut fates: BTreeMap<Fate, u64> = BTreeMap::new();
    let mut panics: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    let mut slowest = (Duration::ZERO, 0);
    for done in 0..arguments.count {
        let seed = arguments.from + done;
        let text = corpus.mutant(&mut Seed(seed), &mutants::good);
        if arguments.show {
            println!("{text}");
        }
        let since = Instant::now();
        *tried.lock().expect("no panic with this lock") = Some((seed, text.clone(), since));
        match catch_unwind(AssertUnwindSafe(|| mutants::drive(&text, limits))) {
            Ok(fate) => {
                if arguments.show {
                    println!("{fate:?}");
                    if let Err(said) = aerostat_lab::parse("mutant.atm.yml", &text, &[]) {
                        let texts: Vec<_> = said.iter().map(|d| d.message.as_str()).collect();
                        println!("{texts:#?}");
                    }
                }
                *fates.entry(fate).or_default() += 1;
            }
            Err(_) => {
                let why = place.lock().expect("no panic in a panic").clone();
                let known = panics.entry(why.clone()).or_default();
                known.push(seed);
                if known.len() == 1 {
                    println!("PANIC of mutant {seed}: {why}");
                    keep(&arguments.keep, "panic", seed, &text);
                }
            }
        }
        *tried.lock().expect("no panic with this lock") = None;
        slowest = slowest.max((since.elapsed(), seed));
        if told.elapsed() > Duration::from_secs(10) || done + 1 == arguments.count {
            told = Instant::now();
            println!(
                "{} of {} mutants in {:.0?}: {fates:?}, {} panics; slowest {:.1?} (mutant {}), {} MiB at most",
                done + 1,
                arguments.count,
                begin.elapsed(),
                panics.values().map(Vec::len).sum::<usize>(),
                slowest.0,
                slowest.1,
                most.load(Ordering::Relaxed),
            );
        }
    }
    for (why, seeds) in &panics {
        println!(
            "{} panics, first of mutant {}: {why}",
            seeds.len(),
            seeds[0]
        );
    }
    if panics.is_empty() {
        return ExitCode::SUCCESS;
    }
    ExitCode::FAILURE
}
