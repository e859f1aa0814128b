//! Stacks joined by one wire, for the tests of this module.

use crate::ip::apps::{AppCommand, AppId, AppKind, AppResult, AppSpec};
use crate::ip::flow_stats::FlowStats;
use crate::ip::meter::{FlowSpec, Meter, Path, Sample};
use crate::ip::stack::{Place, Stack, StackConfig, StackInput, StackOutput, TcpOptions};
use crate::random;
use aerostat_proto::machine::settle;
use aerostat_proto::{Duration, Instant, Machine};
use rand_pcg::Pcg32;
use rand_pcg::rand_core::Rng;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

pub(super) fn config(name: &str, last: u8, seed: u64) -> StackConfig {
    StackConfig {
        name: name.into(),
        mac: [2, 0, 0, 0, 0, last],
        address: Ipv4Addr::new(10, 1, 0, last),
        prefix: 24,
        routes: Vec::new(),
        neighbours: Vec::new(),
        mtu: 1500,
        further: Vec::new(),
        tcp: TcpOptions::default(),
        life: 0,
        seed,
    }
}

/// The fate of one frame on the wire.
pub(super) enum Fate {
    Deliver(Duration),
    Lose,
}

/// Decides on a frame: number of the frame, sender, octets.
pub(super) type Rule = Box<dyn FnMut(u64, usize, &[u8]) -> Fate>;

/// Hosts on one wire.
pub(super) struct World {
    pub(super) hosts: Vec<Stack>,
    pub(super) now: Instant,
    meters: Vec<Meter>,
    pub(super) stats: FlowStats,
    pub(super) samples: Vec<Sample>,
    pub(super) finished: Vec<(usize, AppId, AppResult)>,
    pub(super) discarded: Vec<(usize, Place)>,
    /// Every frame that a host sent, when `record` is set.
    pub(super) frames: Vec<Vec<u8>>,
    pub(super) record: bool,
    pub(super) path: Path,
    rule: Rule,
    count: u64,
    flying: BTreeMap<(Instant, u64), (usize, Vec<u8>)>,
}

impl World {
    pub(super) fn new(configs: Vec<StackConfig>, flows: &[FlowSpec], rule: Rule) -> Self {
        let meters = configs
            .iter()
            .map(|c| Meter::new(flows, vec![c.address]))
            .collect();
        let hosts = configs
            .into_iter()
            .map(|c| Stack::new(c).expect("sane configuration"))
            .collect();
        Self {
            hosts,
            now: Instant::ZERO,
            meters,
            stats: FlowStats::new(flows),
            samples: Vec::new(),
            finished: Vec::new(),
            discarded: Vec::new(),
            frames: Vec::new(),
            record: false,
            path: Path::Lane,
            rule,
            count: 0,
            flying: BTreeMap::new(),
        }
    }

    pub(super) fn start(&mut self, host: usize, id: u32, kind: AppKind, duration_ms: u64) {
        let duration = (duration_ms > 0).then(|| Duration::from_millis(duration_ms));
        let spec = AppSpec {
            id: AppId(id),
            start: self.now,
            duration,
            kind,
        };
        let command = StackInput::App(AppCommand::Start(spec));
        self.hosts[host]
            .handle_input(command, self.now)
            .expect("a program that can run");
        self.drain(host);
    }

    pub(super) fn report(&self, host: usize, id: u32) -> AppResult {
        self.hosts[host]
            .report(AppId(id))
            .expect("a program of this number")
    }

    fn drain(&mut self, host: usize) {
        for output in settle(&mut self.hosts[host], self.now) {
            match output {
                StackOutput::Finished(id, result) => self.finished.push((host, id, result)),
                StackOutput::Frame { bytes: frame, .. } => self.carry(host, frame),
                StackOutput::Discarded { place, .. } => self.discarded.push((host, place)),
                StackOutput::Trace(_) | StackOutput::Call(..) => {}
                // Only frames that leave the host matter here.
                StackOutput::Offered(..) => {}
            }
        }
    }

    fn carry(&mut self, from: usize, frame: Vec<u8>) {
        if let Some(sample) = self.meters[from].sent(&frame, self.path, self.now) {
            self.stats.record(&sample);
            self.samples.push(sample);
        }
        if self.record {
            self.frames.push(frame.clone());
        }
        let number = self.count;
        self.count += 1;
        if let Fate::Deliver(delay) = (self.rule)(number, from, &frame) {
            self.flying
                .insert((self.now + delay, number), (from, frame));
        }
    }

    pub(super) fn run_until(&mut self, end: Instant) {
        loop {
            let timer = self.hosts.iter().filter_map(Machine::poll_timeout).min();
            let frame = self.flying.first_key_value().map(|((at, _), _)| *at);
            let Some(next) = [timer, frame]
                .into_iter()
                .flatten()
                .min()
                .filter(|at| *at <= end)
            else {
                self.now = end;
                return;
            };
            self.now = next;
            while let Some(((at, _), _)) = self.flying.first_key_value()
                && *at <= next
            {
                let (_, (from, frame)) = self.flying.pop_first().expect("it was there");
                self.deliver(from, &frame);
            }
            for host in 0..self.hosts.len() {
                if self.hosts[host].poll_timeout().is_some_and(|at| at <= next) {
                    self.drain(host);
                }
            }
        }
    }

    fn deliver(&mut self, from: usize, frame: &[u8]) {
        for to in (0..self.hosts.len()).filter(|to| *to != from) {
            let mac = self.hosts[to].config().mac;
            if frame[0] & 1 == 0 && frame[..6] != mac {
                continue;
            }
            if let Some(sample) = self.meters[to].received(frame, self.path, self.now) {
                self.stats.record(&sample);
                self.samples.push(sample);
            }
            self.hosts[to]
                .handle_input(StackInput::of_first(frame), self.now)
                .expect("never refused");
            self.drain(to);
        }
    }
}

/// Every frame takes this long.
pub(super) fn perfect(delay: Duration) -> Rule {
    Box::new(move |_, _, _| Fate::Deliver(delay))
}

/// A link of `bps` with `delay` each way that loses `per_mille` of the frames.
pub(super) fn lossy(per_mille: u32, delay: Duration, seed: u64) -> Rule {
    let mut rng: Pcg32 = random::stream(seed, "wire", "loss");
    Box::new(move |_, _, _| {
        if rng.next_u32() % 1000 < per_mille {
            Fate::Lose
        } else {
            Fate::Deliver(delay)
        }
    })
}
