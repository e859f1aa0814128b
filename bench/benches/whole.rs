//! Scenarios too long for criterion: each is run several times, and the median is printed beside a limit of the
//! machine measured in the same run. `--json` prints one object per line instead of the table.

#![allow(
    clippy::print_stdout,
    reason = "printing results is what this program is for"
)]

use aerostat_bench::{anchors, assured, calls, cells, labs};
use std::time::{Duration, Instant};

/// Runs of each scenario.
const RUNS: usize = 5;

struct Report {
    json: bool,
}

impl Report {
    /// One result: what, value, unit, what it is compared with.
    fn line(&self, name: &str, value: f64, unit: &str, beside: &str) {
        if self.json {
            println!(
                "{{\"name\": \"{name}\", \"value\": {value:.6}, \"unit\": \"{unit}\", \"beside\": \"{beside}\"}}"
            );
        } else {
            println!("{name:<52} {:>12} {unit:<14} {beside}", short(value));
        }
    }
}

/// Three significant digits, with a letter for thousands.
fn short(value: f64) -> String {
    match value {
        v if v >= 1e9 => format!("{:.2} G", v / 1e9),
        v if v >= 1e6 => format!("{:.2} M", v / 1e6),
        v if v >= 1e4 => format!("{:.1} k", v / 1e3),
        v if v >= 100.0 => format!("{v:.0}"),
        v => format!("{v:.2}"),
    }
}

/// The median of [`RUNS`] results.
fn median(mut once: impl FnMut() -> f64) -> f64 {
    let mut all: Vec<f64> = (0..RUNS).map(|_| once()).collect();
    all.sort_by(f64::total_cmp);
    all[RUNS / 2]
}

fn seconds(f: impl FnOnce()) -> f64 {
    let start = Instant::now();
    f();
    start.elapsed().as_secs_f64()
}

fn ratio(value: f64, limit: f64) -> String {
    format!("{:.3} of it", value / limit)
}

fn main() {
    let json = std::env::args().any(|arg| arg == "--json");
    let report = Report { json };
    let udp = median(|| anchors::datagrams(100).unwrap_or(f64::NAN));
    report.line(
        "anchor: UDP datagrams on loopback, 100 octets",
        udp,
        "datagrams/s",
        "",
    );
    let syscalls = median(anchors::null_syscall);
    report.line("anchor: getppid()", syscalls, "calls/s", "");
    let copy = median(|| anchors::memcpy(9180));
    report.line("anchor: memcpy of 9180 octets", copy, "octets/s", "");
    let heap = median(|| anchors::heap(256));
    report.line(
        "anchor: event queue of 256, take and put",
        heap,
        "operations/s",
        "",
    );
    sscop(&report, udp);
    setup(&report, udp);
    chains(&report, heap);
    campus(&report, heap);
}

fn sscop(report: &Report, udp: f64) {
    for len in [100, 1000] {
        let rate = median(|| {
            let mut link = assured::Link::default();
            let time = seconds(|| link.send(20_000, len));
            assert_eq!(link.delivered, 20_000, "all messages arrive");
            20_000.0 / time
        });
        let name = format!("SSCOP: assured messages of {len} octets, both ends");
        report.line(
            &name,
            rate,
            "messages/s",
            &format!("UDP loopback: {}", ratio(rate, udp)),
        );
    }
}

fn setup(report: &Report, udp: f64) {
    for switches in [1, 3] {
        let mut chain = calls::Chain::new(switches);
        let latency = chain.call();
        let wire = switches + 1;
        // SETUP there and CONNECT back on each link; a CONNECT ACKNOWLEDGE is not waited for.
        let floor = 2 * wire * 5;
        let name = format!("call set-up over {switches} switch(es), virtual time");
        let beside = format!("delay of the links alone: {floor} us");
        report.line(&name, latency.as_secs_f64() * 1e6, "us", &beside);
    }
    let (mut p50, mut p99) = (Vec::new(), Vec::new());
    let rate = median(|| {
        let mut chain = calls::Chain::new(1);
        let mut times = Vec::new();
        for n in 0..4000 {
            let time = seconds(|| {
                chain.call();
            });
            times.push(time);
            if n % 20 == 0 {
                chain.rest(Duration::from_millis(100));
            }
        }
        let total: f64 = times.iter().sum();
        times.sort_by(f64::total_cmp);
        p50.push(times[times.len() / 2]);
        p99.push(times[times.len() * 99 / 100]);
        times.len() as f64 / total
    });
    let middle = |mut all: Vec<f64>| {
        all.sort_by(f64::total_cmp);
        all[all.len() / 2] * 1e6
    };
    let beside = format!("UDP loopback datagrams per call: {:.1}", udp / rate);
    report.line(
        "calls through 1 switch: set up and released",
        rate,
        "calls/s",
        &beside,
    );
    report.line("wall time of one such call, p50", middle(p50), "us", "");
    report.line("wall time of one such call, p99", middle(p99), "us", "");
}

fn chains(report: &Report, heap: f64) {
    let kinds = [
        (4, 9188, false, "4 sources, UBR, 192 cells a PDU"),
        (64, 9188, true, "64 sources, CBR, 192 cells a PDU"),
        (64, 40, true, "64 sources, CBR, 1 cell a PDU"),
    ];
    for (n, len, paced, text) in kinds {
        let mut last = None;
        let rate = median(|| {
            let mut chain = cells::Chain::new(n, len, paced);
            chain.run(Duration::from_millis(20));
            let mut outcome = None;
            let time = seconds(|| outcome = Some(chain.run(Duration::from_millis(400))));
            last = outcome;
            outcome.map_or(0.0, |o| o.cells as f64 / time)
        });
        let per_cell = last.map_or(0.0, |o| o.events as f64 / o.cells as f64);
        let beside = format!(
            "event queue: {}, {per_cell:.2} events a cell-link",
            ratio(rate, heap)
        );
        report.line(
            &format!("simulated cells, {text}"),
            rate,
            "cell-links/s",
            &beside,
        );
    }
}

fn campus(report: &Report, heap: f64) {
    let lab = labs::read("campus");
    let mut runs: Vec<labs::Outcome> = (0..3).map(|_| labs::run(&lab)).collect();
    runs.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    let o = runs[1];
    let rate = |n: u64| n as f64 / o.seconds;
    let speed = o.simulated.as_secs_f64() / o.seconds;
    report.line(
        "campus lab (3 runs): virtual time a second",
        speed,
        "s/s",
        "",
    );
    report.line("campus lab: cells", rate(o.cells), "cell-links/s", "");
    let beside = format!("event queue: {}", ratio(rate(o.events), heap));
    report.line("campus lab: events", rate(o.events), "events/s", &beside);
    report.line(
        "campus lab: packets measured at IP stacks",
        rate(o.packets),
        "packets/s",
        "",
    );
}
