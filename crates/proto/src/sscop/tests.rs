//! Scenarios of one entity against octets, and of two entities over a link that loses PDUs.

mod hostile;
mod retrieval;
mod states;

use super::*;
use crate::Duration;
use crate::machine::settle;
use proptest::prelude::*;

/// Decides whether a PDU, given its running number, is lost.
pub(super) type Fate = Box<dyn FnMut(usize, &SscopPdu) -> bool>;

/// Two entities and a link with a fixed delay, in virtual time. PDUs stay in order.
pub(super) struct Pair {
    pub(super) ends: [Sscop; 2],
    /// (arrival, receiving end, PDU).
    wire: VecDeque<(Instant, usize, Vec<u8>)>,
    pub(super) now: Instant,
    /// Indications of each user, except data.
    pub(super) told: [Vec<Indication>; 2],
    /// Messages delivered to each user.
    pub(super) data: [Vec<Vec<u8>>; 2],
    /// Error letters of both ends in order.
    errors: [Vec<char>; 2],
    pub(super) lose: Fate,
    sent: usize,
    /// True if users answer indications at once.
    auto: bool,
    /// BR of both users. With `Keep` they retrieve messages before they answer.
    pub(super) buffers: Buffers,
    /// Messages that each user has retrieved.
    pub(super) back: [Vec<Vec<u8>>; 2],
}

const DELAY: Duration = Duration::from_millis(5);

impl Pair {
    pub(super) fn new(params: Params) -> Self {
        Self {
            ends: [Sscop::new(params), Sscop::new(params)],
            wire: VecDeque::new(),
            now: Instant::ZERO,
            told: Default::default(),
            data: Default::default(),
            errors: Default::default(),
            lose: Box::new(|_, _| false),
            sent: 0,
            auto: true,
            buffers: Buffers::Release,
            back: Default::default(),
        }
    }
    /// A connected pair; end 0 has requested the connection.
    fn connected(params: Params) -> Self {
        let mut pair = Self::new(params);
        pair.ask(0, Request::Establish(Vec::new(), Buffers::Release));
        pair.run(Duration::from_millis(50));
        assert!(pair.both_ready());
        pair
    }
    pub(super) fn both_ready(&self) -> bool {
        self.ends
            .iter()
            .all(|end| end.state() == State::DataTransferReady)
    }
    pub(super) fn ask(&mut self, end: usize, request: Request) {
        let now = self.now;
        self.ends[end]
            .handle_input(Input::Upper(request), now)
            .unwrap();
        self.drain(end);
    }
    fn drain(&mut self, end: usize) {
        let mut answers = Vec::new();
        for output in settle(&mut self.ends[end], self.now) {
            match output {
                Output::Lower(octets) => {
                    let pdu = SscopPdu::decode(&octets).unwrap();
                    self.sent += 1;
                    if !(self.lose)(self.sent, &pdu) {
                        self.wire.push_back((self.now + DELAY, 1 - end, octets));
                    }
                }
                Output::Upper(Indication::Data(message, _)) => self.data[end].push(message),
                Output::Upper(Indication::Retrieved(message)) => self.back[end].push(message),
                Output::Upper(indication) => {
                    let over = matches!(
                        indication,
                        Indication::Released(..)
                            | Indication::ReleaseConfirmed
                            | Indication::Resync(_)
                            | Indication::Recover
                    );
                    if over && self.buffers == Buffers::Keep {
                        answers.push(Request::Retrieve(Retrieval::Total));
                    }
                    match indication {
                        Indication::Establish(_) => {
                            answers.push(Request::EstablishResponse(Vec::new(), self.buffers));
                        }
                        Indication::Resync(_) => answers.push(Request::ResyncResponse),
                        Indication::Recover => answers.push(Request::RecoverResponse),
                        _ => {}
                    }
                    self.told[end].push(indication);
                }
                Output::Management(error) => self.errors[end].push(error.code),
            }
        }
        for answer in answers {
            if self.auto {
                self.ask(end, answer);
            }
        }
    }
    /// Runs for `span`.
    pub(super) fn run(&mut self, span: Duration) {
        let end_of_run = self.now + span;
        loop {
            let arrival = self.wire.front().map(|(at, ..)| *at);
            let timers = self.ends.iter().filter_map(Machine::poll_timeout).min();
            let Some(next) = arrival.into_iter().chain(timers).min() else {
                break;
            };
            if next > end_of_run {
                break;
            }
            self.now = next;
            if arrival == Some(next) {
                let (_, end, octets) = self.wire.pop_front().unwrap();
                self.ends[end]
                    .handle_input(Input::Lower(&octets), next)
                    .unwrap();
                self.drain(end);
            } else {
                self.drain(0);
                self.drain(1);
            }
        }
        self.now = end_of_run;
    }
}

fn message(i: u32) -> Vec<u8> {
    i.to_be_bytes().repeat(1 + i as usize % 3)
}

/// Feeds one PDU and returns the PDUs sent.
fn feed(end: &mut Sscop, pdu: &SscopPdu, now: Instant) -> Vec<Output> {
    end.handle_input(Input::Lower(&pdu.encode()), now).unwrap();
    settle(end, now)
}

/// Source: recording `c-svc`: BGN, BGAK, the first POLL 0.75 s later and its STAT.
#[test]
fn start_as_linux_atm_does() {
    let params = Params {
        window: 30,
        ..Params::UNI
    };
    let mut end = Sscop::new(params);
    let at = Instant::ZERO;
    end.handle_input(
        Input::Upper(Request::Establish(Vec::new(), Buffers::Release)),
        at,
    )
    .unwrap();
    assert_eq!(
        settle(&mut end, at),
        [Output::Lower(vec![0, 0, 0, 1, 1, 0, 0, 0x1e])]
    );
    end.handle_input(Input::Lower(&[0, 0, 0, 0, 2, 0, 0, 0x1e]), at)
        .unwrap();
    assert_eq!(
        settle(&mut end, at),
        [Output::Upper(Indication::Established(Vec::new()))]
    );
    let at = Instant::from_millis(750);
    assert_eq!(end.poll_timeout(), Some(at));
    assert_eq!(
        settle(&mut end, at),
        [Output::Lower(vec![0, 0, 0, 1, 10, 0, 0, 0])]
    );
    end.handle_input(Input::Lower(&[0, 0, 0, 1, 0, 0, 0, 0x1e, 11, 0, 0, 0]), at)
        .unwrap();
    assert_eq!(settle(&mut end, at), []);
    // Nothing is outstanding: KEEP-ALIVE was running, the STAT starts IDLE.
    assert_eq!(end.poll_timeout(), Some(at + Params::UNI.timer_idle));
}

#[test]
fn delivers_and_goes_idle() {
    let mut pair = Pair::connected(Params::UNI);
    for i in 0..3 {
        pair.ask(0, Request::Data(message(i)));
    }
    pair.run(Duration::from_secs(40));
    assert_eq!(pair.data[1], (0..3).map(message).collect::<Vec<_>>());
    assert_eq!(pair.ends[0].outstanding(), 0);
    assert!(pair.both_ready());
    // Idle links poll every 15 s: far fewer PDUs than one every 0.75 s.
    assert!(pair.sent < 30, "{}", pair.sent);
}

/// USTAT repairs a gap at once.
#[test]
fn ustat_repairs_a_gap() {
    let mut pair = Pair::connected(Params::UNI);
    let mut lost = false;
    pair.lose = Box::new(move |_, pdu| {
        let hit = !lost && matches!(pdu, SscopPdu::Data { s, .. } if s.get() == 1);
        lost |= hit;
        hit
    });
    for i in 0..3 {
        pair.ask(0, Request::Data(message(i)));
    }
    pair.run(Duration::from_millis(20));
    assert_eq!(pair.data[1].len(), 3);
    assert_eq!(pair.errors[0], ['V']);
}

/// The list of a STAT repairs what a lost USTAT announced.
#[test]
fn stat_repairs_a_lost_ustat() {
    let mut pair = Pair::connected(Params::UNI);
    let mut lost = false;
    pair.lose = Box::new(move |_, pdu| {
        let hit = !lost && matches!(pdu, SscopPdu::Data { s, .. } if s.get() == 1);
        lost |= hit;
        hit || matches!(pdu, SscopPdu::Ustat { .. })
    });
    for i in 0..3 {
        pair.ask(0, Request::Data(message(i)));
    }
    pair.run(Duration::from_millis(20));
    assert_eq!(pair.data[1].len(), 1);
    // One POLL for the list, and a second one for the acknowledgement.
    pair.run(Duration::from_secs(2));
    assert_eq!(pair.data[1], (0..3).map(message).collect::<Vec<_>>());
    assert_eq!(pair.ends[0].outstanding(), 0);
}

/// A cut link is noticed after NO-RESPONSE.
#[test]
fn no_response() {
    let mut pair = Pair::connected(Params::UNI);
    pair.lose = Box::new(|_, _| true);
    pair.run(Duration::from_secs(30));
    for end in 0..2 {
        assert_eq!(pair.ends[end].state(), State::Idle);
        assert!(matches!(
            pair.told[end].last(),
            Some(Indication::Released(_, Source::Sscop))
        ));
        assert_eq!(pair.errors[end], ['P']);
    }
}

/// A POLL behind VR(H) leads to recovery, hidden from neither user.
#[test]
fn recovery() {
    let mut pair = Pair::connected(Params::UNI);
    pair.ask(0, Request::Data(message(0)));
    pair.run(Duration::from_secs(2));
    let bad = SscopPdu::Poll {
        ps: Seq24::new(9),
        s: Seq24::ZERO,
    };
    let now = pair.now;
    pair.ends[1]
        .handle_input(Input::Lower(&bad.encode()), now)
        .unwrap();
    pair.drain(1);
    assert_eq!(pair.ends[1].state(), State::OutgoingRecoveryPending);
    pair.ask(1, Request::Data(message(7)));
    pair.run(Duration::from_millis(100));
    assert!(pair.both_ready());
    assert!(pair.told.iter().all(|t| t.contains(&Indication::Recover)));
    assert_eq!(pair.data[0], [message(7)]);
    pair.ask(0, Request::Data(message(1)));
    pair.run(Duration::from_secs(2));
    assert_eq!(pair.data[1], [message(0), message(1)]);
}

/// A lost BGAK costs a second BGN, but no second indication.
#[test]
fn lost_bgak() {
    let mut pair = Pair::new(Params::UNI);
    pair.lose = Box::new(|n, _| n == 2);
    pair.ask(0, Request::Establish(Vec::new(), Buffers::Release));
    pair.run(Duration::from_secs(3));
    assert!(pair.both_ready());
    assert_eq!(pair.told[1], [Indication::Establish(Vec::new())]);
}

#[test]
fn crossing_begins_connect() {
    for mode in [Mode::Q2110, Mode::Qsaal1, Mode::Auto] {
        let mut pair = Pair::new(Params {
            mode,
            ..Params::UNI
        });
        pair.ask(0, Request::Establish(Vec::new(), Buffers::Release));
        pair.ask(1, Request::Establish(Vec::new(), Buffers::Release));
        pair.run(Duration::from_secs(3));
        assert!(pair.both_ready(), "{mode:?}");
        for told in &pair.told {
            assert_eq!(told, &[Indication::Established(Vec::new())], "{mode:?}");
        }
    }
}

/// A UNI 3.0 peer sends N(SQ) = 0: `Auto` recognises it, `Q2110` takes the PDU for a retransmission.
#[test]
fn uni30_peer() {
    let begin = SscopPdu::Begin {
        sq: Seq8(0),
        mr: Seq24::new(30),
        uu: Vec::new(),
    };
    let mut strict = Sscop::new(Params::UNI);
    assert_eq!(
        feed(&mut strict, &begin, Instant::ZERO),
        [Output::Lower(
            SscopPdu::BeginReject { uu: Vec::new() }.encode()
        )]
    );
    let mut auto = Sscop::new(Params {
        mode: Mode::Auto,
        ..Params::UNI
    });
    assert_eq!(
        feed(&mut auto, &begin, Instant::ZERO),
        [Output::Upper(Indication::Establish(Vec::new()))]
    );
    auto.handle_input(
        Input::Upper(Request::EstablishResponse(Vec::new(), Buffers::Release)),
        Instant::ZERO,
    )
    .unwrap();
    settle(&mut auto, Instant::ZERO);
    // Each further BGN is a new connection for this end.
    assert_eq!(feed(&mut auto, &begin, Instant::ZERO).len(), 2);
    assert_eq!(auto.state(), State::IncomingConnectionPending);
}

#[test]
fn peer_restarts() {
    for initial_sq in [0, 7] {
        let mut pair = Pair::connected(Params::UNI);
        for i in 0..5 {
            pair.ask(0, Request::Data(message(i)));
            pair.ask(1, Request::Data(message(i)));
        }
        pair.run(Duration::from_secs(1));
        pair.ends[0] = Sscop::new(Params {
            initial_sq,
            ..Params::UNI
        });
        pair.ask(0, Request::Establish(Vec::new(), Buffers::Release));
        pair.run(Duration::from_secs(10));
        assert!(pair.both_ready(), "{initial_sq}");
        // Either a new connection or a recovery: the surviving user is told of it.
        assert!(pair.told[1].len() > 1, "{initial_sq}: {:?}", pair.told);
        pair.data = Default::default();
        pair.ask(0, Request::Data(message(8)));
        pair.ask(1, Request::Data(message(9)));
        pair.run(Duration::from_secs(10));
        assert_eq!(pair.data, [vec![message(9)], vec![message(8)]]);
    }
}

#[test]
fn releases_collide() {
    let mut pair = Pair::connected(Params::UNI);
    pair.ask(0, Request::Release(Vec::new()));
    pair.ask(1, Request::Release(Vec::new()));
    pair.run(Duration::from_secs(10));
    for end in 0..2 {
        assert_eq!(pair.ends[end].state(), State::Idle);
        assert_eq!(pair.told[end].last(), Some(&Indication::ReleaseConfirmed));
    }
    assert!(pair.ends.iter().all(|end| end.poll_timeout().is_none()));
}

#[test]
fn release_into_the_void_is_confirmed_after_four_ends() {
    let mut pair = Pair::connected(Params::UNI);
    pair.lose = Box::new(|_, _| true);
    let before = pair.sent;
    pair.ask(0, Request::Release(Vec::new()));
    pair.run(Duration::from_millis(3900));
    assert_eq!(pair.ends[0].state(), State::OutgoingDisconnectionPending);
    pair.run(Duration::from_millis(200));
    assert_eq!(pair.ends[0].state(), State::Idle);
    assert_eq!(pair.errors[0], ['O']);
    assert!(pair.sent >= before + 4);
}

#[test]
fn resynchronisation_and_its_collision() {
    let mut pair = Pair::connected(Params::UNI);
    pair.ask(0, Request::Resync(Vec::new()));
    pair.run(Duration::from_secs(1));
    assert!(pair.both_ready());
    assert_eq!(pair.told[0].last(), Some(&Indication::Resynced));
    assert_eq!(pair.told[1].last(), Some(&Indication::Resync(Vec::new())));
    pair.ask(0, Request::Resync(Vec::new()));
    pair.ask(1, Request::Resync(Vec::new()));
    pair.run(Duration::from_secs(1));
    assert!(pair.both_ready());
    assert_eq!(pair.told[1].last(), Some(&Indication::Resynced));
    pair.ask(0, Request::Data(message(1)));
    pair.run(Duration::from_secs(1));
    assert_eq!(pair.data[1], [message(1)]);
}

#[test]
fn credit_starvation() {
    let mut pair = Pair::connected(Params {
        window: 4,
        ..Params::UNI
    });
    pair.ask(1, Request::Busy(true));
    for i in 0..10 {
        pair.ask(0, Request::Data(message(i)));
    }
    pair.run(Duration::from_secs(30));
    assert!(pair.both_ready(), "polls keep a starved link alive");
    assert_eq!(pair.data[1].len(), 4);
    assert_eq!(pair.ends[0].outstanding(), 6);
    assert!(pair.errors[0].contains(&'W'));
    pair.ask(1, Request::Busy(false));
    pair.run(Duration::from_secs(10));
    assert_eq!(pair.data[1], (0..10).map(message).collect::<Vec<_>>());
    assert_eq!(pair.errors[0].last(), Some(&'X'));
}

#[test]
fn queue_has_a_bound() {
    let mut end = Sscop::new(Params {
        max_queue: 2,
        ..Params::UNI
    });
    let now = Instant::ZERO;
    end.handle_input(
        Input::Upper(Request::Establish(Vec::new(), Buffers::Release)),
        now,
    )
    .unwrap();
    let refused = end.handle_input(Input::Upper(Request::Data(vec![1])), now);
    assert_eq!(refused, Err(NOT_NOW));
    let ack = SscopPdu::BeginAck {
        mr: Seq24::new(10),
        uu: Vec::new(),
    };
    feed(&mut end, &ack, now);
    for want in [Ok(()), Ok(()), Err(QUEUE_FULL)] {
        let got = end.handle_input(Input::Upper(Request::Data(vec![1])), now);
        assert_eq!(got, want);
    }
    let long = Request::Data(vec![0; SscopPdu::MAX_INFO + 1]);
    assert_eq!(end.handle_input(Input::Upper(long), now), Err(TOO_LONG));
}

/// More gaps than one STAT can list: the list is split, and every gap is still repaired.
#[test]
fn split_stat() {
    let mut pair = Pair::connected(Params {
        max_stat: 5,
        ..Params::UNI
    });
    pair.lose = Box::new(|_, pdu| match pdu {
        SscopPdu::Data { s, .. } => s.get() % 2 == 0,
        SscopPdu::Ustat { .. } => true,
        _ => false,
    });
    for i in 0..20 {
        pair.ask(0, Request::Data(message(i)));
    }
    pair.run(Duration::from_millis(50));
    assert_eq!(pair.data[1].len(), 0);
    pair.lose = Box::new(|_, _| false);
    pair.run(Duration::from_secs(3));
    assert_eq!(pair.data[1], (0..20).map(message).collect::<Vec<_>>());
    assert_eq!(pair.errors[0], ['V'; 5], "five STATs of at most two gaps");
    assert!(pair.told[0].len() == 1, "no recovery: {:?}", pair.told[0]);
}

/// Sets both directions `below` numbers before the wrap of all 24-bit counters.
fn near_the_wrap(pair: &mut Pair, below: u32) {
    let start = Seq24::ZERO.plus(Seq24::MODULUS - below);
    for end in &mut pair.ends {
        (end.tx.vt_s, end.tx.vt_a) = (start, start);
        (end.tx.vt_ps, end.tx.vt_pa) = (start, start);
        (end.rx.vr_r, end.rx.vr_h) = (start, start);
        end.rx.vr_mr = start.plus(end.params.window);
        end.tx.vt_ms = end.rx.vr_mr;
    }
}

/// Messages in both directions over a link that loses PDU n if `losses[7 n]` is below `rate`: they arrive in order and
/// once, and none is missing while the connection exists.
fn in_order_exactly_once(losses: Vec<u8>, rate: u8, counts: (u32, u32), below: u32, window: u32) {
    let mut pair = Pair::connected(Params {
        window,
        ..Params::UNI
    });
    pair.run(Duration::from_secs(3));
    near_the_wrap(&mut pair, below);
    pair.lose = Box::new(move |n, _| losses[n * 7 % losses.len()] < rate);
    for i in 0..counts.0.max(counts.1) {
        if i < counts.0 {
            pair.ask(0, Request::Data(message(i)));
        }
        if i < counts.1 {
            pair.ask(1, Request::Data(message(i + 1000)));
        }
        pair.run(Duration::from_millis(u64::from(i % 5) * 30));
    }
    pair.run(Duration::from_secs(5));
    pair.lose = Box::new(|_, _| false);
    let lives = |pair: &Pair| pair.both_ready() && pair.told.iter().all(|told| told.len() == 1);
    // NO-RESPONSE may have been about to expire when the losses ended. After that nothing ends the connection.
    pair.run(Params::UNI.timer_no_response);
    let lived = lives(&pair);
    pair.run(Duration::from_secs(60));
    let sent = [
        (0..counts.1).map(|i| message(i + 1000)).collect::<Vec<_>>(),
        (0..counts.0).map(message).collect::<Vec<_>>(),
    ];
    for (data, sent) in pair.data.iter().zip(&sent) {
        if lived {
            assert_eq!(data, sent);
        } else {
            // The connection was lost: the received messages are a prefix, or have a gap there, but are in order.
            let mut rest = sent.iter();
            assert!(data.iter().all(|got| rest.any(|want| want == got)));
        }
    }
    assert_eq!(lives(&pair), lived);
}

/// The losses end when one side has waited for a STAT for almost the maximum time: the connection is lost nevertheless.
#[test]
fn losses_that_end_too_late() {
    let losses = [
        0, 0, 0, 37, 0, 0, 0, 37, 37, 0, 0, 37, 0, 37, 0, 0, 0, 37, 0, 37, 37, 0, 37, 37, 0, 37, 0,
        0, 0, 0, 37, 37, 37, 0, 0, 37, 37, 37, 37, 0, 0, 37, 41, 45, 20, 71, 71, 35, 61, 61, 54,
        71, 22, 67, 30, 47, 16, 54, 87, 39, 19, 86, 19, 74,
    ];
    in_order_exactly_once(losses.to_vec(), 37, (31, 28), 1, 10);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// With any losses: see [`in_order_exactly_once`].
    #[test]
    fn any_loss(
        losses in prop::collection::vec(0_u8..100, 64),
        rate in 0_u8..40,
        counts in (1_u32..60, 1_u32..60),
        below in 0_u32..40,
        window in 1_u32..40,
    ) {
        in_order_exactly_once(losses, rate, counts, below, window);
    }

    /// Any octets, any request, any time: no panic, and the laws of machines hold.
    #[test]
    fn survives_anything(
        steps in prop::collection::vec((0_u8..28, any::<u32>(), any::<u32>(), any::<u32>(), 0_u64..3000), 1..60)
    ) {
        let mut end = Sscop::new(Params { window: 8, ..Params::UNI });
        let mut now = Instant::ZERO;
        for (kind, a, b, c, wait) in steps {
            now += Duration::from_millis(wait / 4);
            let (small, other) = (|v: u32| Seq24::ZERO.plus(v % 16), |v: u32| Seq24::ZERO.plus(v));
            let pick = |v: u32| if v & 0x1000 == 0 { small(v) } else { other(v) };
            let uu = Vec::new();
            let pdu = match kind {
                0 => SscopPdu::Begin { sq: Seq8(a as u8 % 4), mr: pick(b), uu },
                1 => SscopPdu::BeginAck { mr: pick(b), uu },
                2 => SscopPdu::BeginReject { uu },
                3 => SscopPdu::End { by_sscop: a % 2 == 0, uu },
                4 => SscopPdu::EndAck,
                5 => SscopPdu::Resync { sq: Seq8(a as u8 % 4), mr: pick(b), uu },
                6 => SscopPdu::ResyncAck { mr: pick(b) },
                7 => SscopPdu::Recover { sq: Seq8(a as u8 % 4), mr: pick(b) },
                8 => SscopPdu::RecoverAck { mr: pick(b) },
                9..=12 => SscopPdu::Data { s: pick(a), info: vec![1] },
                13 | 14 => SscopPdu::Poll { ps: pick(a), s: pick(b) },
                15 | 16 => SscopPdu::Stat {
                    ps: pick(a), mr: pick(b), r: small(c),
                    list: vec![small(c), small(c + 1), small(a), pick(b)],
                },
                17 => SscopPdu::Ustat { mr: pick(a), r: small(b), from: small(b), to: pick(c) },
                _ => {
                    let request = match kind {
                        18 => Request::Establish(uu, Buffers::Release),
                        19 | 20 => Request::EstablishResponse(uu, Buffers::Release),
                        21 => Request::Release(uu),
                        22 | 23 => Request::Data(vec![2]),
                        24 => Request::Resync(uu),
                        25 => Request::ResyncResponse,
                        26 => Request::RecoverResponse,
                        _ => Request::Busy(a % 2 == 0),
                    };
                    // A refusal is an acceptable answer here.
                    let _ = end.handle_input(Input::Upper(request), now);
                    settle(&mut end, now);
                    continue;
                }
            };
            feed(&mut end, &pdu, now);
        }
        prop_assert!(end.outstanding() <= end.params.max_queue);
    }
}
