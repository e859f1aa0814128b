//! Two ends of an assured link: primitives, time, loss, and PDUs that neither of them sent.
//!
//! The first octet of an input has the mode: SAAL or bare SSCOP, the edition, whether forged PDUs may come. Each
//! step takes an octet and what it asks for. Without forged PDUs and on SAAL, what arrives was sent, in order and
//! once, and in the end, when nothing is lost any more, both ends agree about the link.

use crate::feed::Feed;
use aerostat_proto::machine::settle;
use aerostat_proto::saal::{self, Saal};
use aerostat_proto::sscop::{self, Buffers, Mode, Params, Retrieval, Sscop};
use aerostat_proto::{Duration, Instant, Machine};
use aerostat_wire::{Seq8, Seq24, SscopPdu};
use std::collections::VecDeque;

enum End {
    Saal(Box<Saal>),
    Sscop(Box<Sscop>),
}

/// News for the user of an end.
enum Told {
    Data(Vec<u8>),
    Other,
}

impl End {
    fn new(bare: bool, params: Params) -> Self {
        if bare {
            Self::Sscop(Box::new(Sscop::new(params)))
        } else {
            Self::Saal(Box::new(Saal::new(params)))
        }
    }
    fn lower(&mut self, pdu: &[u8], now: Instant) {
        match self {
            Self::Saal(m) => m.handle_input(saal::Input::Lower(pdu), now),
            Self::Sscop(m) => m.handle_input(sscop::Input::Lower(pdu), now),
        }
        .expect("a peer's octets are never refused");
    }
    /// True if it was taken.
    fn data(&mut self, message: Vec<u8>, now: Instant) -> bool {
        match self {
            Self::Saal(m) => m.handle_input(saal::Input::Upper(saal::Request::Data(message)), now),
            Self::Sscop(m) => {
                m.handle_input(sscop::Input::Upper(sscop::Request::Data(message)), now)
            }
        }
        .is_ok()
    }
    fn request(&mut self, which: usize, now: Instant) {
        let saal = [saal::Request::Establish, saal::Request::Release];
        let sscop = [
            sscop::Request::Establish(Vec::new(), Buffers::Release),
            sscop::Request::Establish(vec![4; 3], Buffers::Keep),
            sscop::Request::Release(Vec::new()),
            sscop::Request::EstablishResponse(vec![1; 9], Buffers::Release),
            sscop::Request::EstablishResponse(Vec::new(), Buffers::Keep),
            sscop::Request::Resync(vec![2]),
            sscop::Request::ResyncResponse,
            sscop::Request::RecoverResponse,
            sscop::Request::ManagementData(vec![3; 5]),
            sscop::Request::Busy(true),
            sscop::Request::Busy(false),
            sscop::Request::Retrieve(Retrieval::Total),
            sscop::Request::Retrieve(Retrieval::Unsent),
            sscop::Request::Retrieve(Retrieval::After(Seq24::new(3))),
        ];
        let _ = match self {
            Self::Saal(m) => {
                m.handle_input(saal::Input::Upper(saal[which % saal.len()].clone()), now)
            }
            Self::Sscop(m) => {
                m.handle_input(sscop::Input::Upper(sscop[which % sscop.len()].clone()), now)
            }
        };
    }
    fn deadline(&self) -> Option<Instant> {
        match self {
            Self::Saal(m) => m.poll_timeout(),
            Self::Sscop(m) => m.poll_timeout(),
        }
    }
    /// PDUs for the other end, and what the user is told.
    fn settle(&mut self, now: Instant) -> (Vec<Vec<u8>>, Vec<Told>) {
        let (mut pdus, mut told) = (Vec::new(), Vec::new());
        match self {
            Self::Saal(m) => {
                for output in settle(&mut **m, now) {
                    match output {
                        saal::Output::Lower(pdu) => pdus.push(pdu),
                        saal::Output::Upper(saal::Indication::Data(d)) => told.push(Told::Data(d)),
                        _ => told.push(Told::Other),
                    }
                }
            }
            Self::Sscop(m) => {
                for output in settle(&mut **m, now) {
                    match output {
                        sscop::Output::Lower(pdu) => pdus.push(pdu),
                        sscop::Output::Upper(sscop::Indication::Data(d, _)) => {
                            told.push(Told::Data(d))
                        }
                        _ => told.push(Told::Other),
                    }
                }
                assert!(m.outstanding() <= LIMIT);
            }
        }
        (pdus, told)
    }
}

/// Messages that may wait at an end.
const LIMIT: usize = 60;

struct Pair {
    ends: [End; 2],
    /// PDUs on their way to each end.
    wire: [VecDeque<Vec<u8>>; 2],
    now: Instant,
    /// PDUs of 256 that are lost.
    loss: u32,
    random: u32,
    /// Number of the last message sent by, and received at, each end.
    sent: [u32; 2],
    got: [u32; 2],
    honest: bool,
}

impl Pair {
    /// Moves what the ends have put out until nothing moves any more.
    fn pump(&mut self) {
        let mut moves = 0;
        loop {
            for e in 0..2 {
                let (pdus, told) = self.ends[e].settle(self.now);
                self.wire[1 - e].extend(pdus);
                for one in told {
                    self.check(e, one);
                }
            }
            let Some(to) = (0..2).find(|e| !self.wire[*e].is_empty()) else {
                return;
            };
            moves += 1;
            assert!(moves < 20_000, "the ends never come to rest");
            let pdu = self.wire[to].pop_front().unwrap_or_default();
            self.random = self
                .random
                .wrapping_mul(1_664_525)
                .wrapping_add(1_013_904_223);
            if self.random >> 24 >= self.loss {
                self.ends[to].lower(&pdu, self.now);
            }
        }
    }
    fn check(&mut self, e: usize, told: Told) {
        if let (Told::Data(message), true) = (told, self.honest) {
            let number = message.first_chunk().map(|n| u32::from_be_bytes(*n));
            let number = number.expect("every message begins with a number");
            assert!(number > self.got[e], "twice or out of order: {number}");
            assert!(number <= self.sent[1 - e], "nobody sent {number}");
            self.got[e] = number;
        }
    }
    fn wait(&mut self, time: Duration) {
        let end = self.now + time;
        let mut steps = 0;
        self.pump();
        while let Some(next) = self.ends.iter().filter_map(End::deadline).min()
            && next <= end
        {
            steps += 1;
            assert!(steps < 20_000, "timers fire too often");
            self.now = next;
            self.pump();
        }
        self.now = end;
        self.pump();
    }
    fn send(&mut self, e: usize, size: usize) {
        let number = self.sent[e] + 1;
        let mut message = number.to_be_bytes().to_vec();
        message.resize(4 + size, 0xd5);
        if self.ends[e].data(message, self.now) {
            self.sent[e] = number;
        }
    }
}

/// A PDU with numbers near those in use.
fn forged(feed: &mut Feed<'_>) -> Vec<u8> {
    let near = |feed: &mut Feed<'_>| {
        let low = u32::from(feed.u8());
        let base = if feed.below(8) == 7 {
            Seq24::MODULUS - 8
        } else {
            0
        };
        Seq24::new((base + low) % Seq24::MODULUS)
    };
    let uu = Vec::new();
    let pdu = match feed.below(16) {
        0 => SscopPdu::Begin {
            sq: Seq8(feed.u8()),
            mr: near(feed),
            uu,
        },
        1 => SscopPdu::BeginAck { mr: near(feed), uu },
        2 => SscopPdu::BeginReject { uu },
        3 => SscopPdu::End {
            by_sscop: feed.coin(),
            uu,
        },
        4 => SscopPdu::EndAck,
        5 => SscopPdu::Resync {
            sq: Seq8(feed.u8()),
            mr: near(feed),
            uu,
        },
        6 => SscopPdu::ResyncAck { mr: near(feed) },
        7 => SscopPdu::Recover {
            sq: Seq8(feed.u8()),
            mr: near(feed),
        },
        8 => SscopPdu::RecoverAck { mr: near(feed) },
        9 | 10 => SscopPdu::Data {
            s: near(feed),
            info: vec![7; feed.below(64)],
        },
        11 => SscopPdu::Poll {
            ps: near(feed),
            s: near(feed),
        },
        12 | 13 => {
            let (r, mr, ps) = (near(feed), near(feed), near(feed));
            let list = (0..feed.below(6)).map(|_| near(feed)).collect();
            SscopPdu::Stat { list, ps, mr, r }
        }
        14 => SscopPdu::Ustat {
            from: near(feed),
            to: near(feed),
            mr: near(feed),
            r: near(feed),
        },
        _ => return feed.octets(64).to_vec(),
    };
    let mut octets = pdu.encode();
    feed.damage(&mut octets);
    octets
}

/// Runs one input.
pub fn run(input: &[u8]) {
    let mut feed = Feed::new(input);
    let mode = feed.u8();
    let edition = [Mode::Q2110, Mode::Qsaal1, Mode::Auto, Mode::Q2110][usize::from(mode >> 2 & 3)];
    let (bare, hostile) = (mode & 1 == 1, mode & 2 == 2);
    let params = Params {
        mode: edition,
        max_queue: LIMIT,
        window: u32::from(feed.u8() % 40) + 1,
        max_stat: feed.below(12),
        max_pd: u32::from(feed.u8() % 8),
        ..Params::UNI
    };
    let mut p = Pair {
        ends: [End::new(bare, params), End::new(bare, params)],
        wire: Default::default(),
        now: Instant::ZERO,
        loss: 0,
        random: feed.u32(),
        sent: [0; 2],
        got: [0; 2],
        honest: !hostile && edition != Mode::Qsaal1,
    };
    let mut steps = 0;
    while !feed.is_empty() && steps < 300 {
        steps += 1;
        let op = feed.u8();
        let e = usize::from(op >> 7);
        match op & 15 {
            0..=1 => p.ends[e].request(0, p.now),
            2 => p.ends[e].request(feed.below(14), p.now),
            3..=6 => (0..feed.below(20)).for_each(|n| p.send(e, n * 3)),
            7..=8 if hostile => p.ends[e].lower(&forged(&mut feed), p.now),
            9 => p.loss = u32::from(feed.u8()),
            10 => p.loss = 0,
            11 => p.pump(),
            12 => p.wait(Duration::from_millis(u64::from(feed.u8()) * 10)),
            13 => p.wait(Duration::from_millis(u64::from(feed.u8()) * 100)),
            14 => p.wait(feed.pick(&TIMES)),
            _ => p.send(e, 4),
        }
    }
    p.loss = 0;
    p.wait(Duration::from_secs(120));
    if let (true, [End::Saal(a), End::Saal(b)]) = (p.honest, &p.ends) {
        assert_eq!(a.state(), b.state(), "the ends disagree about the link");
        if a.state() == saal::State::Established {
            p.send(0, 1);
            p.send(1, 1);
            p.wait(Duration::from_secs(5));
            assert_eq!(p.got, [p.sent[1], p.sent[0]], "a link that is up delivers");
        }
    }
}

/// Times of the protocol's timers.
const TIMES: [Duration; 5] = [
    Duration::from_millis(750),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(7),
    Duration::from_secs(15),
];
