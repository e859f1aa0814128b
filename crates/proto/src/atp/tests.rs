//! Two ends over a connection with delay, a rate and loss.

use super::*;
use crate::Duration;
use crate::machine::settle;
use crate::parameters::Octets;
use aerostat_wire::atp::Seq30;
use proptest::prelude::*;

mod hostile;
mod recovery;
mod scenarios;
mod theory;

fn us(micros: u64) -> Duration {
    Duration::from_micros(micros)
}
fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// SDUs under way to an end, with their times of arrival.
type Way = VecDeque<(Instant, Vec<u8>)>;

/// Two ends, and a line between them. It keeps the order unless there is jitter.
struct Pair {
    ends: [Atp; 2],
    /// Ways to end 0 and to end 1.
    ways: [Way; 2],
    /// When the line to this end is free.
    free: [Instant; 2],
    now: Instant,
    delay: Duration,
    /// Time of an octet on the line.
    octet: Duration,
    /// Instead of it: the rate of the line in cells/s, for SDUs with the trailer of AAL5 in whole cells.
    cells: Option<u32>,
    /// SDUs come later by up to this time.
    jitter: Duration,
    random: u32,
    events: [Vec<Event>; 2],
    got: [Vec<Vec<u8>>; 2],
    /// Packets of all kinds that were sent to each end.
    sent: [u64; 2],
    reads: bool,
}

impl Pair {
    fn new(params: Params) -> Self {
        Self {
            ends: [Atp::new(params), Atp::new(params)],
            ways: Default::default(),
            free: [Instant::ZERO; 2],
            now: Instant::ZERO,
            delay: us(100),
            octet: Duration::from_nanos(60),
            cells: None,
            jitter: Duration::ZERO,
            random: 1,
            events: Default::default(),
            got: Default::default(),
            sent: [0; 2],
            reads: true,
        }
    }
    fn send(&mut self, end: usize, message: Vec<u8>) {
        let taken = self.ends[end].handle_input(Input::Send(message), self.now);
        assert_eq!(taken, Ok(()));
    }
    fn close(&mut self, end: usize) {
        let closed = self.ends[end].handle_input(Input::Close, self.now);
        assert_eq!(closed, Ok(()));
    }
    /// Time of an SDU on the line.
    fn time(&self, octets: usize) -> Duration {
        match self.cells {
            None => self.octet * octets as u32,
            Some(rate) => {
                let cells = (octets as u64 + 8).div_ceil(48);
                Duration::from_nanos(cells * 1_000_000_000 / u64::from(rate))
            }
        }
    }
    /// A number below `n`.
    fn draw(&mut self, n: u32) -> u32 {
        self.random = self
            .random
            .wrapping_mul(1_664_525)
            .wrapping_add(1_013_904_223);
        (self.random >> 16) % n
    }
    /// Takes outputs; `lose` says which SDU (end to which it goes, its number, its octets) is lost.
    fn drain(&mut self, lose: &mut impl FnMut(usize, u64, &[u8]) -> bool) {
        for end in 0..2 {
            for output in settle(&mut self.ends[end], self.now) {
                match output {
                    Output::Sdu(sdu) => {
                        let to = 1 - end;
                        let number = self.sent[to];
                        self.sent[to] += 1;
                        let start = self.free[to].max(self.now);
                        let end = start + self.time(sdu.len());
                        self.free[to] = end;
                        if !lose(to, number, &sdu) {
                            let late = self.jitter * self.draw(1000) / 1000;
                            let at = end + self.delay + late;
                            let place = self.ways[to].partition_point(|(other, _)| *other <= at);
                            self.ways[to].insert(place, (at, sdu));
                        }
                    }
                    Output::Event(event) => {
                        self.events[end].push(event);
                        while self.reads
                            && let Some(message) = self.ends[end].take()
                        {
                            self.got[end].push(message);
                        }
                    }
                }
            }
        }
    }
    /// Runs until nothing is under way and no timer runs, or until `until`.
    fn run(&mut self, until: Instant, mut lose: impl FnMut(usize, u64, &[u8]) -> bool) {
        loop {
            self.drain(&mut lose);
            let arrivals = self.ways.iter().filter_map(|way| way.front());
            let timers = self.ends.iter().filter_map(Machine::poll_timeout);
            let Some(next) = arrivals.map(|(at, _)| *at).chain(timers).min() else {
                return;
            };
            if next > until {
                self.now = until;
                return;
            }
            self.now = next;
            for end in 0..2 {
                while self.ways[end].front().is_some_and(|(at, _)| *at <= next) {
                    let (_, sdu) = self.ways[end].pop_front().unwrap();
                    let taken = self.ends[end].handle_input(Input::Sdu(&sdu), next);
                    assert_eq!(taken, Ok(()));
                }
            }
        }
    }
    fn run_all(&mut self, lose: impl FnMut(usize, u64, &[u8]) -> bool) {
        self.run(Instant::from_secs(3600), lose);
    }
}

fn message(len: usize, seed: u8) -> Vec<u8> {
    let octet = |n: usize| (n as u8).wrapping_mul(31) ^ (n >> 8) as u8 ^ seed;
    (0..len).map(octet).collect()
}

fn params(profile: Profile) -> Params {
    Params {
        profile,
        ..Params::DEFAULT
    }
}

const BOTH: [Profile; 2] = [Profile::Report, Profile::Adaptive];

#[test]
fn messages_of_all_lengths_arrive_whole_and_in_order_both_ways() {
    for profile in BOTH {
        let mut pair = Pair::new(params(profile));
        let lengths = [1, 0, 9175, 9176, 9177, 100_000, 0, 1_048_576];
        for (seed, len) in (0_u8..).zip(lengths) {
            pair.send(0, message(len, seed));
            pair.send(1, message(len / 2, seed));
        }
        pair.close(0);
        pair.run_all(|_, _, _| false);
        for (seed, len) in (0_u8..).zip(lengths) {
            let index = usize::from(seed);
            assert!(pair.got[1][index] == message(len, seed), "{len}");
            assert!(pair.got[0][index] == message(len / 2, seed), "{len}");
        }
        assert_eq!(pair.events[0].last(), Some(&Event::Closed));
        assert!(pair.events[1].contains(&Event::Drained));
        let counters = pair.ends[0].counters();
        assert_eq!((counters.packets_repeated, counters.timeouts), (0, 0));
        // 1 + 1 + 1 + 1 + 2 + 11 + 1 + 115 packets.
        assert_eq!(counters.packets_sent, 133);
        let books = pair.ends[1].counters();
        assert_eq!((books.packets_received, books.duplicates), (133, 0));
    }
}

#[test]
fn the_report_acknowledges_each_packet_and_the_other_profile_every_second_one() {
    for (profile, acks) in [(Profile::Report, 115), (Profile::Adaptive, 58)] {
        let mut pair = Pair::new(params(profile));
        pair.send(0, message(1_048_576, 1));
        pair.run_all(|_, _, _| false);
        assert_eq!(pair.ends[1].counters().acks_sent, acks, "{profile:?}");
    }
}

#[test]
fn an_mtu_of_ten_octets_carries_six_octets_in_a_packet() {
    let mut pair = Pair::new(Params {
        mtu: 10,
        ..params(Profile::Report)
    });
    pair.send(0, message(60_001, 1));
    pair.run_all(|_, _, _| false);
    assert_eq!(pair.ends[0].counters().packets_sent, 10_001);
    assert_eq!(pair.got[1], [message(60_001, 1)]);
}

#[test]
fn a_single_packet_waits_for_no_window_and_its_answer_takes_a_round_trip() {
    let mut pair = Pair::new(params(Profile::Report));
    pair.send(0, message(1, 1));
    pair.run_all(|_, _, _| false);
    // 5 octets there, 4 back, 100 µs each way.
    let expected = us(200) + Duration::from_nanos(9 * 60);
    assert_eq!(pair.now, Instant::ZERO + expected);
    assert_eq!(pair.ends[0].snapshot().round_trip, expected);
    assert_eq!(pair.events[0], [Event::Drained]);
}

#[test]
fn numbers_wrap() {
    for profile in BOTH {
        let mut pair = Pair::new(Params {
            first: (1 << 30) - 20,
            ..params(profile)
        });
        pair.send(0, message(500_000, 1));
        let mut seen = Vec::new();
        pair.run_all(|to, number, sdu| {
            if let (1, Ok(Pdu::Data { seq, .. })) = (to, Pdu::decode(sdu)) {
                seen.push(seq);
            }
            to == 1 && number % 7 == 3
        });
        assert!(pair.got[1] == [message(500_000, 1)]);
        assert!(seen.contains(&Seq30::new(u32::MAX)) && seen.contains(&Seq30::new(0)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever is lost on the way, in both directions: each message arrives once, whole, in order, and both ends
    /// agree about it.
    #[test]
    fn nothing_is_lost_for_good(
        lengths in prop::collection::vec(0_usize..60_000, 1..8),
        seed: u32,
        percent in 0_u32..25,
        adaptive: bool,
        mtu in 200_usize..9180,
    ) {
        let profile = if adaptive { Profile::Adaptive } else { Profile::Report };
        let mut pair = Pair::new(Params { mtu, retransmissions: 1000, ..params(profile) });
        for (seed, len) in (0_u8..).zip(&lengths) {
            pair.send(0, message(*len, seed));
        }
        // Each SDU has its own draw: a list of draws that comes again may lose most of them.
        let mut state = seed;
        pair.run_all(|_, _, _| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) % 100 < percent
        });
        prop_assert_eq!(pair.got[1].len(), lengths.len());
        for (seed, len) in (0_u8..).zip(&lengths) {
            prop_assert!(pair.got[1][usize::from(seed)] == message(*len, seed));
        }
        prop_assert_eq!(pair.events[0].last(), Some(&Event::Drained));
        let (here, there) = (pair.ends[0].counters(), pair.ends[1].counters());
        prop_assert_eq!(here.packets_sent, there.packets_received);
        prop_assert_eq!(pair.ends[0].snapshot().outstanding, 0);
        prop_assert_eq!(pair.ends[1].snapshot().kept, 0);
    }
}
