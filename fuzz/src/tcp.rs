//! Two ends of a TCP connection: writes, reads, losses, repetitions, disorder, time, closes, and segments that neither
//! of them sent.
//!
//! The first octets of an input have the profiles, the sizes of buffers, and whether forged segments may come. Without
//! them each octet arrives once and in order, and in the end, when nothing is lost any more, both ends have everything
//! and are closed, unless an end has given up and said so. In every mode memory is bounded by the buffers.

use crate::feed::Feed;
use aerostat_proto::machine::settle;
use aerostat_proto::tcp::{Config, Event, Input, MAX_RANGES, Output, Profile, State, Tcp};
use aerostat_proto::{Duration, Instant, Machine};
use aerostat_wire::tcp::{Flags, Segment, TimeStamps};
use std::collections::VecDeque;

struct End {
    tcp: Tcp,
    /// Segments on their way to this end.
    wire: VecDeque<(Segment, Vec<u8>)>,
    /// Octets that its program has written, and read.
    written: u64,
    read: u64,
    closed: bool,
    failed: bool,
    /// First number, as its SYN has told it.
    first: u32,
}

const fn octet(end: usize, at: u64) -> u8 {
    (at.wrapping_mul(31) ^ at >> 8 ^ end as u64 * 77) as u8
}

struct Pair {
    ends: [End; 2],
    now: Instant,
    honest: bool,
}

impl Pair {
    fn new(feed: &mut Feed<'_>) -> Self {
        let honest = feed.coin();
        let now = Instant::ZERO;
        let ends = [0, 1].map(|end: u16| {
            let mut params = feed.pick(&Profile::ALL).params();
            params.sack ^= feed.coin();
            params.timestamps ^= feed.coin();
            params.window_scaling ^= feed.coin();
            params.ecn = feed.coin();
            params.receive.buffer = 1 + usize::from(feed.u16());
            params.send.buffer = 1 + usize::from(feed.u16());
            let tcp = Tcp::new(Config {
                params,
                local: 1 + end,
                remote: 2 - end,
                seed: feed.u8().into(),
                phase: Duration::from_millis(feed.u8().into()),
            });
            End {
                tcp,
                wire: VecDeque::new(),
                written: 0,
                read: 0,
                closed: false,
                failed: false,
                first: 0,
            }
        });
        let mut pair = Self { ends, now, honest };
        let simultaneous = feed.coin();
        let open = if simultaneous {
            Input::Connect
        } else {
            Input::Listen
        };
        pair.input(1, open);
        pair.input(0, Input::Connect);
        pair.settle(0);
        pair.settle(1);
        pair
    }
    fn input(&mut self, e: usize, input: Input<'_>) -> bool {
        self.ends[e].tcp.handle_input(input, self.now).is_ok()
    }
    /// Takes what an end has put out.
    fn settle(&mut self, e: usize) {
        for output in settle(&mut self.ends[e].tcp, self.now) {
            match output {
                Output::Segment { segment, data, .. } => {
                    if segment.flags.has(Flags::SYN) {
                        self.ends[e].first = segment.seq;
                    }
                    let wire = &mut self.ends[1 - e].wire;
                    wire.push_back((segment, data));
                    // A line without a reader loses its oldest.
                    if wire.len() > 1000 {
                        wire.pop_front();
                    }
                }
                Output::Event(Event::Failed(_)) => self.ends[e].failed = true,
                Output::Event(_) => {}
            }
        }
        let snapshot = self.ends[e].tcp.snapshot();
        let params = self.ends[e].tcp.params();
        assert!(snapshot.ranges <= MAX_RANGES);
        assert!(
            snapshot.receive_buffer.0 <= params.receive.most + 65_535,
            "{snapshot:?}"
        );
        assert!(
            snapshot.send_buffer.0 <= params.send.most + 65_535,
            "{snapshot:?}"
        );
    }
    fn deliver(&mut self, e: usize, (segment, data): &(Segment, Vec<u8>), marked: bool) {
        let input = Input::Segment {
            segment,
            data,
            marked,
        };
        assert!(self.input(e, input), "octets of a peer are never refused");
        self.settle(e);
    }
    fn read(&mut self, e: usize, most: usize) {
        let octets = self.ends[e].tcp.read(most, self.now);
        for found in octets {
            let end = &mut self.ends[e];
            let right = found == octet(1 - e, end.read);
            assert!(right || !self.honest, "octet {} is another one", end.read);
            end.read += 1;
        }
        self.settle(e);
    }
    fn write(&mut self, e: usize, most: usize) {
        let end = &self.ends[e];
        let from = end.written;
        let count = most.min(end.tcp.room()) as u64;
        let octets: Vec<u8> = (from..from + count).map(|at| octet(e, at)).collect();
        if self.input(e, Input::Write(&octets)) {
            self.ends[e].written += count;
        }
        self.settle(e);
    }
    /// An end that closes before its peer has answered has no connection: RFC 9293 §3.10.4.
    fn close(&mut self, e: usize) {
        if matches!(self.ends[e].tcp.state(), State::Listen | State::SynSent) {
            return;
        }
        if self.input(e, Input::Close) {
            self.ends[e].closed = true;
        }
        self.settle(e);
    }
    /// The time goes on to the next deadline of an end.
    fn wait(&mut self, e: usize) {
        if let Some(at) = self.ends[e].tcp.poll_timeout() {
            self.now = self.now.max(at);
        }
        for e in 0..2 {
            self.settle(e);
        }
    }
    fn forge(&mut self, e: usize, feed: &mut Feed<'_>) {
        let near = |first: u32, offset: u16| first.wrapping_add(offset.into()).wrapping_sub(1000);
        let (own, theirs) = (self.ends[e].first, self.ends[1 - e].first);
        let mut segment = Segment {
            source: 2 - e as u16,
            destination: 1 + e as u16,
            seq: near(theirs, feed.u16()),
            ack: near(own, feed.u16()),
            flags: Flags(feed.u8()),
            window: feed.u16(),
            ..Segment::default()
        };
        if feed.coin() {
            let (value, echo) = (feed.u32(), feed.u32());
            segment.options.timestamps = Some(TimeStamps { value, echo });
        }
        for _ in 0..feed.below(4) {
            let (left, right) = (near(own, feed.u16()), near(own, feed.u16()));
            segment.options.sack.push(left, right);
        }
        let data = feed.octets(255).to_vec();
        let marked = feed.coin();
        self.deliver(e, &(segment, data), marked);
    }

    fn step(&mut self, feed: &mut Feed<'_>) {
        let e = feed.below(2);
        match feed.below(12) {
            0..=2 => {
                if let Some(packet) = self.ends[e].wire.pop_front() {
                    self.deliver(e, &packet, false);
                }
            }
            3 => drop(self.ends[e].wire.pop_front()),
            4 => {
                if let Some(packet) = self.ends[e].wire.front().cloned() {
                    self.deliver(e, &packet, true);
                }
            }
            5 => {
                let count = feed.below(8).min(self.ends[e].wire.len());
                self.ends[e].wire.rotate_left(count);
            }
            6 => self.write(e, feed.u16().into()),
            7 => self.read(e, feed.u16().into()),
            8 => self.wait(e),
            9 => {
                self.now += Duration::from_micros(feed.u16().into());
                self.settle(e);
            }
            10 if feed.below(8) == 0 => self.close(e),
            11 if !self.honest => match feed.below(16) {
                0 => {
                    self.input(e, Input::Leave);
                    self.settle(e);
                }
                1 => {
                    self.input(e, Input::Abort);
                    self.settle(e);
                }
                _ => self.forge(e, feed),
            },
            _ => {}
        }
    }

    /// Nothing is lost any more, and both programs read and close.
    fn heal(&mut self) {
        for _ in 0..200_000 {
            for e in 0..2 {
                self.read(e, usize::MAX);
                let open = matches!(
                    self.ends[e].tcp.state(),
                    State::Established | State::CloseWait
                );
                if open && !self.ends[e].closed {
                    self.close(e);
                }
            }
            let next = (0..2).find_map(|e| self.ends[e].wire.pop_front().map(|packet| (e, packet)));
            match next {
                Some((e, packet)) => self.deliver(e, &packet, false),
                None => {
                    let deadlines = self.ends.each_ref().map(|end| end.tcp.poll_timeout());
                    match deadlines.into_iter().flatten().min() {
                        Some(at) => self.now = self.now.max(at),
                        None => return,
                    }
                    for e in 0..2 {
                        self.settle(e);
                    }
                }
            }
        }
        assert!(
            !self.honest,
            "two ends that hear each other do not come to an end"
        );
    }
}

/// Runs one input.
///
/// # Panics
/// If a law is broken.
pub fn run(input: &[u8]) {
    let mut feed = Feed::new(input);
    let mut pair = Pair::new(&mut feed);
    while !feed.is_empty() {
        pair.step(&mut feed);
    }
    pair.heal();
    let failed = pair.ends.iter().any(|end| end.failed);
    if pair.honest && !failed {
        for e in 0..2 {
            assert_eq!(
                pair.ends[e].read,
                pair.ends[1 - e].written,
                "octets of end {e}"
            );
            assert_eq!(pair.ends[e].tcp.state(), State::Closed);
        }
    }
}
