//! Two ends with programs, and a link between them in virtual time.

use crate::machine::settle;
use crate::mix::mix;
use crate::tcp::{Config, Event, Input, Output, Params, State, Tcp};
use crate::{Duration, Instant, Machine};
use aerostat_wire::tcp::{Flags, Segment};
use std::collections::{BTreeMap, VecDeque};
use std::sync::OnceLock;

/// A segment on its way.
#[derive(Clone, Debug)]
pub(super) struct Packet {
    pub(super) segment: Segment,
    pub(super) data: Vec<u8>,
    pub(super) marked: bool,
}

/// Fate of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Passes,
    Lost,
    Twice,
    /// It comes later by this, behind others.
    Late(Duration),
    /// It comes not before this.
    Held(Instant),
    Marked,
}

/// Decision of a link about a packet.
pub(super) type Judge = Box<dyn FnMut(&Packet, Instant) -> Fate>;

/// One direction: a server with a rate and a queue, then a delay.
pub(super) struct Link {
    /// Bits per second of packets with 40 octets of headers; `None`: no time.
    pub(super) rate: Option<f64>,
    pub(super) delay: Duration,
    /// Packets that wait at most.
    pub(super) queue: usize,
    pub(super) judge: Judge,
    free_at: Instant,
    waiting: VecDeque<Instant>,
    pub(super) dropped: u64,
    pub(super) passed: u64,
}

impl Link {
    pub(super) fn new(rate: Option<f64>, delay: Duration) -> Self {
        Self {
            rate,
            delay,
            queue: usize::MAX,
            judge: Box::new(|_, _| Fate::Passes),
            free_at: Instant::ZERO,
            waiting: VecDeque::new(),
            dropped: 0,
            passed: 0,
        }
    }

    /// When the packet arrives; none, one or two times.
    fn send(&mut self, packet: &mut Packet, now: Instant) -> Vec<Instant> {
        while self.waiting.front().is_some_and(|at| *at <= now) {
            self.waiting.pop_front();
        }
        let fate = (self.judge)(packet, now);
        if fate == Fate::Lost || self.waiting.len() > self.queue {
            self.dropped += 1;
            return Vec::new();
        }
        self.passed += 1;
        packet.marked |= fate == Fate::Marked;
        let octets = packet.data.len() + 40;
        let time = self.rate.map_or(0.0, |rate| octets as f64 * 8.0 / rate);
        self.free_at = self.free_at.max(now) + Duration::from_secs_f64(time);
        self.waiting.push_back(self.free_at);
        let at = self.free_at + self.delay;
        match fate {
            Fate::Twice => vec![at, at + Duration::from_micros(10)],
            Fate::Late(by) => vec![at + by],
            Fate::Held(until) => vec![at.max(until)],
            _ => vec![at],
        }
    }
}

/// Behaviour of a program.
#[derive(Clone, Debug)]
pub(super) struct Program {
    /// Octets that are to be written, and were.
    pub(super) to_write: u64,
    pub(super) written: u64,
    /// Octets of one write at most.
    pub(super) write_size: usize,
    /// It closes when all is written.
    pub(super) closes: bool,
    /// It reads whenever it can; otherwise it waits until this.
    pub(super) reads_from: Instant,
    /// Octets of one read, and the time between two; `None`: all at once.
    pub(super) read_pace: Option<(usize, Duration)>,
    next_read: Instant,
    pub(super) read: u64,
    pub(super) events: Vec<(Instant, Event)>,
    closed: bool,
}

impl Program {
    pub(super) fn new(to_write: u64) -> Self {
        Self {
            to_write,
            written: 0,
            write_size: usize::MAX,
            closes: true,
            reads_from: Instant::ZERO,
            read_pace: None,
            next_read: Instant::ZERO,
            read: 0,
            events: Vec::new(),
            closed: false,
        }
    }
    pub(super) fn has(&self, event: Event) -> bool {
        self.events.iter().any(|(_, seen)| *seen == event)
    }
}

/// Octets of the stream from one end: a block whose length divides no power of two, again and again.
pub(super) fn pattern(end: usize, from: u64, count: usize) -> Vec<u8> {
    const LENGTH: usize = 65_521;
    static BLOCKS: OnceLock<[Vec<u8>; 2]> = OnceLock::new();
    let blocks = BLOCKS.get_or_init(|| {
        [0, 1].map(|end| {
            (0..LENGTH as u64)
                .map(|at| mix(at ^ end << 60) as u8)
                .collect()
        })
    });
    let mut octets = Vec::with_capacity(count);
    while octets.len() < count {
        let at = ((from + octets.len() as u64) % LENGTH as u64) as usize;
        let part = (LENGTH - at).min(count - octets.len());
        octets.extend_from_slice(&blocks[end][at..at + part]);
    }
    octets
}

/// Two ends: 0 connects, 1 listens.
pub(super) struct Pair {
    pub(super) now: Instant,
    pub(super) ends: [Tcp; 2],
    pub(super) programs: [Program; 2],
    /// From end 0 to end 1, and back.
    pub(super) links: [Link; 2],
    on_the_way: BTreeMap<(Instant, u64), (usize, Packet)>,
    count: u64,
    /// Every segment that was sent: time, end, header, octets of data.
    pub(super) log: Vec<(Instant, usize, Segment, usize)>,
    pub(super) logs: bool,
}

pub(super) fn config(params: Params, end: usize) -> Config {
    let ports = [4000, 5001];
    Config {
        params,
        local: ports[end],
        remote: ports[1 - end],
        seed: 7 + end as u64,
        phase: Duration::from_millis(37 * (end as u64 + 1)),
    }
}

impl Pair {
    pub(super) fn new(params: [Params; 2], octets: [u64; 2], links: [Link; 2]) -> Self {
        let mut ends = [0, 1].map(|end| Tcp::new(config(params[end], end)));
        ends[1]
            .handle_input(Input::Listen, Instant::ZERO)
            .expect("listens");
        ends[0]
            .handle_input(Input::Connect, Instant::ZERO)
            .expect("connects");
        let mut pair = Self {
            now: Instant::ZERO,
            ends,
            programs: octets.map(Program::new),
            links,
            on_the_way: BTreeMap::new(),
            count: 0,
            log: Vec::new(),
            logs: false,
        };
        pair.serve(0);
        pair
    }

    /// Takes the outputs of an end, and lets its program act.
    pub(super) fn serve(&mut self, end: usize) {
        loop {
            while let Some(output) = self.ends[end].poll_output() {
                self.output(end, output);
            }
            if !self.act(end) {
                break;
            }
        }
        assert!(
            settle(&mut self.ends[end], self.now).is_empty(),
            "a drained end has outputs"
        );
    }

    fn output(&mut self, end: usize, output: Output) {
        match output {
            Output::Event(event) => {
                self.programs[end].events.push((self.now, event));
                self.act(end);
            }
            Output::Segment { segment, data, .. } => {
                if self.logs {
                    self.log.push((self.now, end, segment, data.len()));
                }
                let mut packet = Packet {
                    segment,
                    data,
                    marked: false,
                };
                for at in self.links[end].send(&mut packet, self.now) {
                    self.count += 1;
                    self.on_the_way
                        .insert((at, self.count), (1 - end, packet.clone()));
                }
            }
        }
    }

    /// The program reads and writes; true if it did something.
    fn act(&mut self, end: usize) -> bool {
        let (program, tcp, now) = (&mut self.programs[end], &mut self.ends[end], self.now);
        let mut acted = false;
        if now >= program.reads_from.max(program.next_read) && tcp.unread() > 0 {
            let most = program.read_pace.map_or(usize::MAX, |(most, _)| most);
            let read = tcp.read(most, now);
            let right = read == pattern(1 - end, program.read, read.len());
            assert!(right, "other octets from {}", program.read);
            program.read += read.len() as u64;
            if let Some((_, pause)) = program.read_pace {
                program.next_read = now + pause;
            }
            acted = true;
        }
        let open = matches!(tcp.state(), State::Established | State::CloseWait);
        if open && program.written < program.to_write && tcp.room() > 0 {
            let left = program.to_write - program.written;
            let count = left.min(tcp.room().min(program.write_size) as u64);
            let octets = pattern(end, program.written, count as usize);
            tcp.handle_input(Input::Write(&octets), now)
                .expect("there is room");
            program.written += count;
            acted = true;
        }
        if open && program.closes && !program.closed && program.written == program.to_write {
            tcp.handle_input(Input::Close, now).expect("closes");
            program.closed = true;
            acted = true;
        }
        acted
    }

    fn deadline(&self, end: usize) -> Option<Instant> {
        let program = &self.programs[end];
        let reads = program.reads_from.max(program.next_read);
        let reads = (self.ends[end].unread() > 0 && reads > self.now).then_some(reads);
        [self.ends[end].poll_timeout(), reads]
            .into_iter()
            .flatten()
            .min()
    }

    /// Goes on to the next thing that happens; `false` if nothing does before `until`.
    pub(super) fn step(&mut self, until: Instant) -> bool {
        let arrival = self.on_the_way.keys().next().copied();
        let deadlines = [self.deadline(0), self.deadline(1)];
        let next = deadlines
            .into_iter()
            .flatten()
            .chain(arrival.map(|key| key.0))
            .min();
        let Some(next) = next.filter(|next| *next <= until) else {
            self.now = until;
            return false;
        };
        self.now = next;
        if let Some(key) = arrival.filter(|key| key.0 == next) {
            let (end, packet) = self.on_the_way.remove(&key).expect("a packet");
            let input = Input::Segment {
                segment: &packet.segment,
                data: &packet.data,
                marked: packet.marked,
            };
            self.ends[end]
                .handle_input(input, next)
                .expect("segments are never refused");
            self.ends[end].handle_timeout(next);
            self.serve(end);
        } else {
            for (end, deadline) in deadlines.into_iter().enumerate() {
                if deadline == Some(next) {
                    self.ends[end].handle_timeout(next);
                    self.serve(end);
                }
            }
        }
        true
    }

    pub(super) fn run(&mut self, until: Instant) {
        while self.step(until) {}
    }

    /// Runs until both programs have read everything and both directions are closed.
    /// The log as text, for a person who looks for a mistake.
    pub(super) fn story(&self, from: Instant, until: Instant) -> String {
        let lines = self
            .log
            .iter()
            .filter(|(at, ..)| from <= *at && *at <= until);
        let lines =
            lines.map(|(at, end, segment, data)| format!("{at} {end}: {segment} ({data})\n"));
        lines.collect()
    }

    pub(super) fn finish(&mut self, until: Instant) {
        while !self.is_done() {
            assert!(
                self.step(until),
                "not done at {}: read {:?} of {:?}, {:?} {:?}",
                self.now,
                [self.programs[0].read, self.programs[1].read],
                [self.programs[1].to_write, self.programs[0].to_write],
                self.ends[0].snapshot(),
                self.ends[1].snapshot(),
            );
        }
    }

    fn is_done(&self) -> bool {
        let read = |end: usize| self.programs[end].read == self.programs[1 - end].to_write;
        let ended = |end: usize| {
            !self.programs[end].closes
                || matches!(self.ends[end].state(), State::Closed | State::TimeWait)
        };
        read(0) && read(1) && ended(0) && ended(1)
    }
}

/// A judge that loses, doubles and delays by chance, in parts of a thousand.
pub(super) fn chance(seed: u64, lost: u64, twice: u64, late: u64) -> Judge {
    let mut count = 0;
    Box::new(move |_, _| {
        count += 1;
        let random = mix(seed.wrapping_mul(0x1_0000_0001) ^ count);
        match random % 1000 {
            n if n < lost => Fate::Lost,
            n if n < lost + twice => Fate::Twice,
            n if n < lost + twice + late => {
                Fate::Late(Duration::from_micros((random >> 32) % 20_000))
            }
            _ => Fate::Passes,
        }
    })
}

/// A judge that loses the data segments with these numbers of order, first transmissions and others alike.
pub(super) fn lose(which: &'static [u64]) -> Judge {
    let mut count = 0;
    Box::new(move |packet, _| {
        if packet.data.is_empty() {
            return Fate::Passes;
        }
        count += 1;
        if which.contains(&count) {
            Fate::Lost
        } else {
            Fate::Passes
        }
    })
}

/// True for a segment that only acknowledges.
pub(super) fn is_bare(segment: &Segment, data: usize) -> bool {
    data == 0 && !segment.flags.has(Flags::SYN) && !segment.flags.has(Flags::FIN)
}
