//! Peers and loads of `bench/compare`: what any switch of cells or frames in user space must at least do, and what
//! measures it. Results are JSON, one object on a line; a program that serves prints `ready` first.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "printing results is what this program is for"
)]

mod calls;
mod cells;
mod copier;
mod form;
mod packets;
mod relay;
mod roundtrip;
mod sys;

use clap::Parser;
use std::process::ExitCode;

#[derive(Debug, Parser)]
#[command(name = "probe", about = "Peers and loads of bench/compare")]
enum Probe {
    /// Send cells into a switch over UDP, and check what comes out
    Cells(cells::Options),
    /// The least switch of cells over UDP: VPI.VCI 1.100 becomes 2.200, 1.101 becomes 2.201, and so on
    Relay(relay::Options),
    /// Join two TAPs, frame by frame
    Copier(copier::Options),
    /// Set calls up from outside a lab, one after another
    Calls(calls::Options),
    /// Send, count or relay packets of inherited descriptors
    Packets(packets::Options),
    /// Answer datagrams
    Echo(roundtrip::Echo),
    /// Measure round trips of datagrams
    Roundtrip(roundtrip::RoundTrip),
}

fn main() -> ExitCode {
    let done = match Probe::parse() {
        Probe::Cells(options) => cells::run(&options),
        Probe::Relay(options) => relay::run(&options),
        Probe::Copier(options) => copier::run(&options),
        Probe::Calls(options) => calls::run(&options),
        Probe::Packets(options) => packets::run(&options),
        Probe::Echo(options) => roundtrip::echo(&options),
        Probe::Roundtrip(options) => roundtrip::run(&options),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("probe: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Median, 99th percentile and greatest of times in nanoseconds, as further members of a JSON object, in microseconds.
fn percentiles(times: &mut [u64]) -> String {
    times.sort_unstable();
    let at = |part: f64| {
        let index = (times.len() as f64 * part) as usize;
        let value = times.get(index.min(times.len().saturating_sub(1)));
        value.map_or_else(
            || "null".to_owned(),
            |ns| format!("{:.2}", *ns as f64 / 1e3),
        )
    };
    let (p50, p99, most) = (at(0.5), at(0.99), at(1.0));
    format!(", \"p50_us\": {p50}, \"p99_us\": {p99}, \"max_us\": {most}")
}
