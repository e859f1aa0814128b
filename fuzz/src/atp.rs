//! Two ends of an ATP connection: messages, loss, repetitions, disorder, time, PDUs that neither of them sent.
//!
//! The first octet of an input has the mode: the profile, whether forged PDUs and one-sided crashes may come, small
//! limits. Without forged PDUs each message arrives once, whole and in order, an end that has closed has delivered all
//! of its messages, and in the end, when nothing is lost any more, nothing is under way. In every mode memory and work
//! are bounded by what the machine's counters say.

use crate::feed::Feed;
use aerostat_proto::atp::{Atp, Event, Input, MAX_WINDOW, Output, Params, Profile};
use aerostat_proto::machine::settle;
use aerostat_proto::parameters::Octets;
use aerostat_proto::{Duration, Instant, Machine};
use aerostat_wire::atp::{Pdu, Seq30};
use std::collections::VecDeque;

struct End {
    atp: Atp,
    /// SDUs on their way to this end.
    wire: VecDeque<Vec<u8>>,
    /// Messages that this end has taken, by length and seed, and that its user was given.
    sent: Vec<(usize, u8)>,
    got: usize,
    /// How it ended.
    end: Option<Event>,
    /// It was told that the connection below is gone.
    released: bool,
    reads: bool,
    /// The highest number that it has sent.
    last: u32,
}

impl End {
    fn new(params: Params) -> Self {
        Self {
            atp: Atp::new(params),
            wire: VecDeque::new(),
            sent: Vec::new(),
            got: 0,
            end: None,
            released: false,
            reads: true,
            last: params.first,
        }
    }
    fn input(&mut self, input: Input<'_>, now: Instant) -> bool {
        self.atp.handle_input(input, now).is_ok()
    }
}

fn message(len: usize, seed: u8) -> Vec<u8> {
    (0..len)
        .map(|n| (n as u8).wrapping_mul(31) ^ seed)
        .collect()
}

struct Pair {
    params: Params,
    ends: [End; 2],
    now: Instant,
    /// SDUs of 256 that are lost, doubled, or overtaken by the next one.
    trouble: [u32; 3],
    random: u32,
    honest: bool,
}

impl Pair {
    fn draw(&mut self) -> u32 {
        self.random = self
            .random
            .wrapping_mul(1_664_525)
            .wrapping_add(1_013_904_223);
        self.random >> 24
    }
    /// Takes what an end has put out.
    fn settle(&mut self, e: usize) {
        let [atp, to] = match self.ends.each_mut() {
            [a, b] if e == 0 => [a, b],
            [a, b] => [b, a],
        };
        for output in settle(&mut atp.atp, self.now) {
            match output {
                Output::Sdu(sdu) => {
                    if let Ok(Pdu::Data { seq, .. }) = Pdu::decode(&sdu) {
                        atp.last = seq.get();
                    }
                    to.wire.push_back(sdu);
                }
                Output::Event(event @ (Event::Closed | Event::Failed(_))) => {
                    assert_eq!(atp.end, None, "an end ends once");
                    atp.end = Some(event);
                }
                Output::Event(Event::Readable | Event::Drained) => {}
            }
        }
        while atp.reads
            && let Some(octets) = atp.atp.take()
        {
            if self.honest {
                let (len, seed) = *to.sent.get(atp.got).expect("a message that nobody sent");
                assert!(
                    octets == message(len, seed),
                    "message {} is another one",
                    atp.got
                );
            }
            atp.got += 1;
        }
        self.bounds(e);
    }
    /// Memory and work have bounds.
    fn bounds(&self, e: usize) {
        let (snapshot, counters) = (self.ends[e].atp.snapshot(), self.ends[e].atp.counters());
        let params = &self.params;
        let packet = params.mtu + 64;
        let kept = params.receive_limit.0 + params.max_message.0 + 2 * packet;
        assert!(snapshot.kept <= kept, "{} octets kept", snapshot.kept);
        assert!(snapshot.waiting <= params.send_limit.0);
        assert!(snapshot.asked <= 64 && snapshot.outstanding <= MAX_WINDOW);
        let packets = counters.packets_received + counters.packets_sent + counters.naks_sent;
        let most = 2 * packets + counters.acks_ignored + counters.packets_repeated + 1;
        assert!(counters.steps <= most, "{counters:?}");
        let asked = counters.naks_received + counters.timeouts;
        let recovered = u64::from(MAX_WINDOW) * counters.timeouts;
        assert!(counters.packets_repeated <= asked + recovered);
    }
    /// Moves what the ends have put out until nothing moves any more.
    fn pump(&mut self) {
        let mut moves = 0;
        loop {
            self.settle(0);
            self.settle(1);
            let Some(to) = (0..2).find(|e| !self.ends[*e].wire.is_empty()) else {
                return;
            };
            moves += 1;
            assert!(moves < 100_000, "the ends never come to rest");
            if self.draw() < self.trouble[2] && self.ends[to].wire.len() > 1 {
                self.ends[to].wire.swap(0, 1);
            }
            let sdu = self.ends[to].wire.pop_front().unwrap_or_default();
            if self.draw() < self.trouble[0] {
                continue;
            }
            let copies = if self.draw() < self.trouble[1] { 2 } else { 1 };
            for _ in 0..copies {
                let taken = self.ends[to].input(Input::Sdu(&sdu), self.now);
                assert!(taken, "a peer's octets are never refused");
            }
        }
    }
    fn wait(&mut self, time: Duration) {
        let end = self.now + time;
        let mut steps = 0;
        self.pump();
        while let Some(next) = self
            .ends
            .iter()
            .filter_map(|end| end.atp.poll_timeout())
            .min()
            && next <= end
        {
            steps += 1;
            assert!(steps < 100_000, "timers fire too often");
            self.now = next;
            self.pump();
        }
        self.now = end;
        self.pump();
    }
    fn send(&mut self, e: usize, len: usize, seed: u8) {
        let end = &mut self.ends[e];
        if end.input(Input::Send(message(len, seed)), self.now) {
            end.sent.push((len, seed));
        }
    }
    /// A PDU with a number near those in use.
    fn forge(&mut self, e: usize, feed: &mut Feed<'_>) {
        let base = match feed.below(4) {
            0 => self.ends[1 - e].last,
            1 => self.ends[e].last,
            2 => self.ends[1 - e].last.wrapping_add(MAX_WINDOW),
            _ => self.params.first,
        };
        let seq = Seq30::new(base.wrapping_add(u32::from(feed.u8())).wrapping_sub(128));
        let mut sdu = match feed.below(8) {
            0 | 1 => Pdu::Ack(seq).encode(),
            2 | 3 => Pdu::Nak(seq).encode(),
            4 => feed.octets(64).to_vec(),
            kind => {
                let (last, octets) = (kind == 5, feed.octets(64));
                Pdu::Data { seq, last, octets }.encode()
            }
        };
        feed.damage(&mut sdu);
        self.ends[e].wire.push_back(sdu);
    }
    /// Conditions that hold when a connection is over, and at the end of a run.
    fn judge(&mut self) {
        self.trouble = [0; 3];
        for end in &mut self.ends {
            end.reads = true;
        }
        // Ten timers, each of at most a minute.
        self.wait(Duration::from_secs(700));
        let [a, b] = &self.ends;
        for (here, there) in [(a, b), (b, a)] {
            assert!(here.wire.is_empty());
            if !self.honest {
                continue;
            }
            let all = here.sent.len() == there.got;
            let closed = here.end == Some(Event::Closed) && !here.released;
            assert!(!closed || all, "closed without delivery");
            if here.end.is_none() && there.end.is_none() {
                let (sender, receiver) = (here.atp.snapshot(), there.atp.snapshot());
                assert!(all, "{} of {} arrived", there.got, here.sent.len());
                assert_eq!(
                    (sender.waiting, sender.outstanding, receiver.kept),
                    (0, 0, 0)
                );
            }
        }
    }
}

fn parameters(mode: u8, feed: &mut Feed<'_>) -> Params {
    let small = mode & 4 == 4;
    Params {
        profile: if mode & 1 == 1 {
            Profile::Adaptive
        } else {
            Profile::Report
        },
        mtu: 5 + usize::from(feed.u8()),
        initial_window: 1 + u32::from(feed.u8() % 16),
        max_window: if small { 8 } else { 256 },
        receive_limit: Octets(64 << 10),
        send_limit: Octets(64 << 10),
        max_message: Octets(if small { 1 << 10 } else { 1 << 20 }),
        cell_rate: if mode & 8 == 8 { 353_207 } else { 0 },
        first: if mode & 16 == 16 { (1 << 30) - 40 } else { 0 },
        ..Params::DEFAULT
    }
}

/// Runs one input.
pub fn run(input: &[u8]) {
    let mut feed = Feed::new(input);
    let mode = feed.u8();
    let params = parameters(mode, &mut feed);
    let hostile = mode & 2 == 2;
    let mut p = Pair {
        params,
        ends: [End::new(params), End::new(params)],
        now: Instant::ZERO,
        trouble: [0; 3],
        random: feed.u32(),
        honest: !hostile,
    };
    let mut steps = 0;
    while !feed.is_empty() && steps < 200 {
        steps += 1;
        let op = feed.u8();
        let e = usize::from(op >> 7);
        match op & 15 {
            0..=2 => p.send(e, feed.below(256) * 7, op),
            3 => (0..feed.below(20)).for_each(|n| p.send(e, n, op)),
            4..=6 if hostile => p.forge(e, &mut feed),
            7 => {
                let which = feed.below(3);
                p.trouble[which] = u32::from(feed.u8());
            }
            8 => p.trouble = [0; 3],
            9 => p.ends[e].reads = feed.coin(),
            10 => p.wait(Duration::from_millis(u64::from(feed.u8()))),
            11 => p.wait(Duration::from_millis(u64::from(feed.u8()) * 20)),
            12 if feed.below(4) == 0 => {
                p.ends[e].input(Input::Close, p.now);
            }
            13 if hostile && feed.below(4) == 0 => p.ends[e] = End::new(params),
            // The call is released, and a new one is set up.
            14 if feed.below(4) == 0 => {
                for end in &mut p.ends {
                    end.input(Input::Released, p.now);
                    (end.released, end.wire) = (true, VecDeque::new());
                }
                p.judge();
                p.ends = [End::new(params), End::new(params)];
            }
            15 => p.send(e, 0, op),
            _ => p.pump(),
        }
    }
    p.judge();
}
