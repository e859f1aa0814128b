//! Throughput of the profile `linux` beside that of the kernel, over the same path: a rate, a delay, a queue, losses.
//!
//! Once the kernel sends to the machine, once the machine to the kernel. The receivers differ, too, so each sender has
//! a peer that is not its own.

use super::{Bench, KERNEL, control};
use aerostat_proto::tcp::{Config, Input, Output, Profile, State, Tcp};
use aerostat_proto::{Duration, Instant, Machine};
use aerostat_wire::tcp::Segment;
use std::collections::{BTreeMap, VecDeque};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const PORT: u16 = 5001;

/// A path, the same in both directions.
#[derive(Clone, Copy, Debug)]
struct Path {
    name: &'static str,
    /// Bits per second of IP packets.
    rate: f64,
    delay: Duration,
    /// Packets that wait at most.
    queue: usize,
    /// One data segment in so many is lost; 0: none.
    loss: u64,
    control: &'static str,
    sack: bool,
}

/// One direction of a path.
#[derive(Default)]
struct Direction {
    free_at: Instant,
    waiting: VecDeque<Instant>,
    way: BTreeMap<(Instant, u64), (Segment, Vec<u8>)>,
    count: u64,
    data: u64,
}

impl Direction {
    fn enter(&mut self, path: &Path, segment: Segment, data: Vec<u8>, now: Instant) {
        while self.waiting.front().is_some_and(|at| *at <= now) {
            self.waiting.pop_front();
        }
        self.data += u64::from(!data.is_empty());
        // The places of losses are by chance, and the same in each run.
        let random = self.data.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        let lost = !data.is_empty() && path.loss > 0 && random.is_multiple_of(path.loss);
        if lost || self.waiting.len() > path.queue {
            return;
        }
        let octets = 20 + segment.header_len() + data.len();
        let time = Duration::from_secs_f64(octets as f64 * 8.0 / path.rate);
        self.free_at = self.free_at.max(now) + time;
        self.waiting.push_back(self.free_at);
        self.count += 1;
        self.way
            .insert((self.free_at + path.delay, self.count), (segment, data));
    }
    fn due(&mut self, now: Instant) -> Option<(Segment, Vec<u8>)> {
        let first = self.way.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }
}

/// Octets that arrive in so long a time, after a tenth of it.
fn measure(path: &Path, kernel_sends: bool, time: Duration) -> Option<f64> {
    let bench = Bench::new()?;
    let word = if path.sack { "1" } else { "0" };
    bench.set("tcp_sack", word).expect("a variable");
    let listener = bench
        .namespace
        .run(|| TcpListener::bind((KERNEL, PORT)))
        .expect("a socket");
    control(&listener, path.control).expect("an algorithm");
    let (stop, kernel_read) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicU64::new(0)),
    );
    let program = {
        let (stop, read) = (stop.clone(), kernel_read.clone());
        std::thread::spawn(move || {
            let (mut stream, _): (TcpStream, _) = listener.accept().expect("a connection");
            // The end of a measurement may leave the kernel without an answer.
            let patience = Some(Duration::from_millis(500));
            stream.set_read_timeout(patience).expect("a time");
            stream.set_write_timeout(patience).expect("a time");
            let mut buffer = vec![0; 16_384];
            while !stop.load(Ordering::Relaxed) {
                if kernel_sends {
                    let _ = stream.write(&buffer);
                } else if let Ok(count) = stream.read(&mut buffer) {
                    read.fetch_add(count as u64, Ordering::Relaxed);
                }
            }
        })
    };
    let mut params = Profile::Linux.params();
    params.sack = path.sack;
    if path.control == "reno" {
        params.congestion.growth = aerostat_proto::tcp::params::Growth::Reno;
    }
    let config = Config {
        params,
        local: 40_000,
        remote: PORT,
        seed: 5,
        phase: Duration::ZERO,
    };
    let mut end = Tcp::new(config);
    let begin = std::time::Instant::now();
    end.handle_input(Input::Connect, Instant::ZERO)
        .expect("connects");
    let mut ways = [Direction::default(), Direction::default()];
    let (mut read, mut before) = (0, None);
    let octets = vec![5; 65_536];
    let total = |read: u64| {
        if kernel_sends {
            read
        } else {
            kernel_read.load(Ordering::Relaxed)
        }
    };
    while begin.elapsed() < time {
        let now = Instant::ZERO + begin.elapsed();
        if before.is_none() && begin.elapsed() > time / 10 {
            before = Some((now, total(read)));
        }
        while let Some((segment, data)) = ways[0].due(now) {
            bench.send(&segment, &data).expect("the TAP can be written");
        }
        let mut again = true;
        while again {
            again = false;
            if let Some((segment, data)) = ways[1].due(now) {
                let input = Input::Segment {
                    segment: &segment,
                    data: &data,
                    marked: false,
                };
                end.handle_input(input, now)
                    .expect("segments are never refused");
                again = true;
            }
            end.handle_timeout(now);
            loop {
                while let Some(output) = end.poll_output() {
                    if let Output::Segment { segment, data, .. } = output {
                        ways[0].enter(path, segment, data, now);
                    }
                }
                let count = end.read(usize::MAX, now).len() as u64;
                read += count;
                let room = if kernel_sends {
                    0
                } else {
                    end.room().min(octets.len())
                };
                if room > 0 && end.state() == State::Established {
                    end.handle_input(Input::Write(&octets[..room]), now)
                        .expect("room");
                } else if count == 0 {
                    break;
                }
            }
        }
        let way = ways
            .iter()
            .filter_map(|way| way.way.keys().next().map(|key| key.0));
        let next = way.chain(end.poll_timeout()).min();
        let wait = next.map_or(Duration::from_millis(20), |next| next.since(now));
        for (segment, data) in bench
            .receive(wait.min(Duration::from_millis(20)))
            .expect("the TAP can be read")
        {
            ways[1].enter(path, segment, data, Instant::ZERO + begin.elapsed());
        }
    }
    let now = Instant::ZERO + begin.elapsed();
    let (from, octets) = before.expect("a tenth has passed");
    let rate = (total(read) - octets) as f64 * 8.0 / now.since(from).as_secs_f64();
    stop.store(true, Ordering::Relaxed);
    end.handle_input(Input::Abort, now).expect("aborts");
    while let Some(output) = end.poll_output() {
        if let Output::Segment { segment, data, .. } = output {
            bench.send(&segment, &data).expect("the TAP can be written");
        }
    }
    let _ = program.join();
    Some(rate)
}

const fn path(
    name: &'static str,
    queue: usize,
    loss: u64,
    control: &'static str,
    sack: bool,
) -> Path {
    Path {
        name,
        rate: 8e6,
        delay: Duration::from_millis(10),
        queue,
        loss,
        control,
        sack,
    }
}

/// The paths stand here before anything was measured.
const PATHS: [Path; 6] = [
    path("queue 40", 40, 0, "cubic", true),
    path("queue 10", 10, 0, "cubic", true),
    path("queue 5", 5, 0, "cubic", true),
    path("queue 40, one in 100 lost", 40, 100, "cubic", true),
    path("queue 10, Reno, no SACK", 10, 0, "reno", false),
    path("one in 100 lost, Reno, no SACK", 40, 100, "reno", false),
];

/// Measurements of each, of which the median counts; `AEROSTAT_TCP_RUNS` gives another number, and longer ones.
const RUNS: usize = 1;

/// A few seconds of a shared machine are rough: the bound is wide, and the lines are for people.
#[test]
fn the_profile_linux_is_as_fast_as_the_kernel() {
    let runs = std::env::var("AEROSTAT_TCP_RUNS");
    let runs = runs.map_or(RUNS, |runs| runs.parse().expect("a number"));
    let time = Duration::from_secs(if runs > RUNS { 6 } else { 3 });
    let mut wrong = Vec::new();
    for path in PATHS {
        let rates = [false, true].map(|kernel_sends| {
            let rates = (0..runs).map(|_| measure(&path, kernel_sends, time).unwrap_or(0.0));
            let mut rates: Vec<f64> = rates.collect();
            rates.sort_by(f64::total_cmp);
            (rates[runs / 2], rates[0], rates[runs - 1])
        });
        let [own, kernel] = rates;
        if own.0 == 0.0 {
            return;
        }
        let text = |(middle, least, most): (f64, f64, f64)| {
            format!(
                "{:.2} ({:.2} to {:.2})",
                middle / 1e6,
                least / 1e6,
                most / 1e6
            )
        };
        let ratio = own.0 / kernel.0;
        let line = format!(
            "{:<30} machine {}, kernel {} Mb/s: {:+.0} %",
            path.name,
            text(own),
            text(kernel),
            (ratio - 1.0) * 100.0
        );
        println!("{line}");
        if !(0.5..=2.0).contains(&ratio) {
            wrong.push(line);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
