use super::*;
use crate::Cause;
use crate::machine::settle;
use crate::uni::{Side, Version};
use aerostat_wire::{AtmAddress, Blli, Qos, SscopPdu, Vc};

/// Two interfaces and a link with a delay of 1 ms.
struct Pair {
    ends: [Interface; 2],
    wire: VecDeque<(Instant, usize, Vec<u8>)>,
    told: [Vec<Indication>; 2],
    now: Instant,
    cut: bool,
    sent: usize,
    /// Every n-th SDU is lost; 0 means that no SDU is lost.
    lose_every: usize,
}

impl Pair {
    fn new() -> Self {
        Self::of(Version::Uni31)
    }
    fn of(version: Version) -> Self {
        let end = |side| Interface::new(Params::new(side, version));
        Self {
            ends: [end(Side::User), end(Side::Network)],
            wire: VecDeque::new(),
            told: Default::default(),
            now: Instant::ZERO,
            cut: false,
            sent: 0,
            lose_every: 0,
        }
    }
    fn feed(&mut self, end: usize, input: Input<'_>) {
        self.ends[end].handle_input(input, self.now).unwrap();
        self.drain(end);
    }
    fn drain(&mut self, end: usize) {
        let mut cleared_now = Vec::new();
        for output in settle(&mut self.ends[end], self.now) {
            match output {
                Output::Lower(sdu) => {
                    self.sent += 1;
                    let lost = self.lose_every > 0 && self.sent.is_multiple_of(self.lose_every);
                    if !self.cut && !lost {
                        let at = self.now + Duration::from_millis(1);
                        self.wire.push_back((at, 1 - end, sdu));
                    }
                }
                Output::Indication(indication) => {
                    if let Indication::Restarted { what } = indication {
                        let cleared = uni::Request::RestartCleared { what };
                        cleared_now.push(Input::Request(cleared));
                    }
                    self.told[end].push(indication);
                }
                Output::Trace(_) => {}
            }
        }
        for cleared in cleared_now {
            self.feed(end, cleared);
        }
    }
    fn run(&mut self, seconds: u64) {
        let until = self.now + Duration::from_secs(seconds);
        loop {
            let arrival = self.wire.front().map(|(at, ..)| *at);
            let timers = self.ends.iter().filter_map(Machine::poll_timeout);
            let Some(next) = timers.chain(arrival).min().filter(|at| *at <= until) else {
                break;
            };
            self.now = next;
            if arrival == Some(next)
                && let Some((_, end, sdu)) = self.wire.pop_front()
            {
                self.feed(end, Input::Lower(&sdu));
            }
            self.drain(0);
            self.drain(1);
        }
        self.now = until;
    }
}

fn ups(told: &[Indication]) -> usize {
    told.iter().filter(|i| **i == Indication::Up).count()
}

#[test]
fn another_version_ends_calls_and_starts_over() {
    let mut pair = Pair::of(Version::Uni40);
    pair.feed(0, Input::Start);
    pair.feed(1, Input::Start);
    pair.run(5);
    let call = CallId(1);
    let qos = Qos::ubr(100);
    let info = uni::SetupInfo::new(AtmAddress::LECS, None, aerostat_wire::Sap::LLC, qos);
    let setup = uni::Request::Setup {
        call,
        info,
        vc: None,
        party: None,
    };
    pair.feed(0, Input::Request(setup));
    pair.run(1);
    assert_eq!(pair.ends[1].calls(), 1);
    for end in [1, 0] {
        pair.feed(end, Input::Version(Version::Uni30));
        pair.feed(end, Input::Version(Version::Uni30));
    }
    assert_eq!((pair.ends[0].calls(), pair.ends[1].calls()), (0, 0));
    pair.run(5);
    for end in 0..2 {
        assert_eq!(pair.ends[end].version(), Version::Uni30);
        assert_eq!(pair.ends[end].phase(), Phase::Ready);
        assert_eq!(ups(&pair.told[end]), 2);
        let released = |i: &Indication| matches!(i, Indication::Released { .. });
        assert!(pair.told[end].iter().any(released));
    }
}

#[test]
fn both_ends_are_restarted_and_then_ready() {
    let mut pair = Pair::new();
    pair.feed(0, Input::Start);
    pair.run(5);
    assert_eq!(pair.ends[1].phase(), Phase::Down, "not started: deaf");
    pair.feed(1, Input::Start);
    pair.run(2);
    for end in 0..2 {
        assert_eq!(pair.ends[end].phase(), Phase::Ready);
        assert_eq!(ups(&pair.told[end]), 1);
        let restarted = Indication::Restarted { what: Restart::All };
        let at = |wanted: &Indication| pair.told[end].iter().position(|i| i == wanted);
        assert!(at(&restarted) < at(&Indication::Up), "{:?}", pair.told[end]);
    }
}

#[test]
fn lost_links_come_back() {
    let mut pair = Pair::new();
    pair.feed(0, Input::Start);
    pair.feed(1, Input::Start);
    pair.run(2);
    pair.cut = true;
    pair.run(60);
    for end in 0..2 {
        assert_eq!(pair.ends[end].phase(), Phase::Down);
        assert_eq!(pair.told[end].last(), Some(&Indication::Down));
    }
    pair.cut = false;
    pair.run(10);
    for end in 0..2 {
        assert_eq!(pair.ends[end].phase(), Phase::Ready);
        assert_eq!(ups(&pair.told[end]), 2);
    }
    pair.feed(0, Input::LinkDown);
    assert_eq!(pair.ends[0].phase(), Phase::Down);
    let before = pair.sent;
    pair.run(30);
    assert_eq!(pair.ends[1].phase(), Phase::Down, "the other end is alone");
    assert!(pair.sent - before < 100);
}

/// The line of one end fails and recovers before the other end misses it. The other end is told nevertheless,
/// because no call of the old connection exists any more.
#[test]
fn a_short_failure_at_one_end_is_noticed_by_the_other() {
    let mut pair = Pair::new();
    pair.feed(0, Input::Start);
    pair.feed(1, Input::Start);
    pair.run(2);
    pair.told = Default::default();
    pair.feed(0, Input::LinkDown);
    pair.feed(0, Input::Start);
    pair.run(3);
    for end in 0..2 {
        assert_eq!(pair.ends[end].phase(), Phase::Ready);
        assert_eq!(pair.told[end].first(), Some(&Indication::Down));
        assert_eq!(pair.told[end].last(), Some(&Indication::Up));
    }
}

#[test]
fn calls_over_a_lossy_link() {
    for version in [Version::Uni30, Version::Uni31, Version::Uni40] {
        let mut pair = Pair::of(version);
        pair.lose_every = 5;
        pair.feed(0, Input::Start);
        pair.feed(1, Input::Start);
        pair.run(10);
        let (call, vc) = (CallId(1), Some(Vc::new(0, 40)));
        let called = AtmAddress::LECS;
        let info = uni::SetupInfo::new(called, Some(called), Blli::LLC, Qos::ubr(1516));
        let party = None;
        let setup = uni::Request::Setup {
            call,
            info,
            vc: None,
            party,
        };
        pair.feed(0, Input::Request(setup));
        pair.run(3);
        let offered = pair.told[1].iter().find_map(|told| match told {
            Indication::Setup { call, .. } => Some(*call),
            _ => None,
        });
        let accept = uni::Request::Accept {
            call: offered.expect("the call came through"),
            info: uni::ConnectInfo::default(),
            vc,
        };
        pair.feed(1, Input::Request(accept));
        pair.run(3);
        let connected = |told: &Indication| matches!(told, Indication::Connected { vc, .. } if *vc == Vc::new(0, 40));
        assert!(pair.told[0].iter().any(connected), "{version:?}");
        let cause = Cause::NORMAL;
        pair.feed(
            0,
            Input::Request(uni::Request::Release {
                call,
                cause: cause.into(),
            }),
        );
        pair.run(5);
        for end in &pair.ends {
            assert_eq!((end.calls(), end.uni().calls().count()), (0, 0));
            assert_eq!(end.saal().counters().released, 0, "the link held");
        }
    }
}

/// A peer that connects but never answers RESTART.
#[test]
fn an_unanswered_restart_does_not_block() {
    let mut end = Interface::new(Params::new(Side::User, Version::Uni31));
    let now = Instant::ZERO;
    end.handle_input(Input::Start, now).unwrap();
    settle(&mut end, now);
    let ack = [0, 0, 0, 0, 2, 0, 0, 30];
    end.handle_input(Input::Lower(&ack), now).unwrap();
    let sent = settle(&mut end, now);
    assert!(sent.iter().any(|o| matches!(o, Output::Lower(_))));
    assert_eq!(end.phase(), Phase::Restarting);
    let mut now = now;
    while end.phase() != Phase::Ready {
        now = end.poll_timeout().unwrap();
        settle(&mut end, now);
    }
    assert_eq!(now, Instant::from_secs(3));
}

/// A peer that refuses every connection is asked about once a second.
#[test]
fn refusals_do_not_spin() {
    let mut end = Interface::new(Params::new(Side::User, Version::Uni31));
    let mut now = Instant::ZERO;
    end.handle_input(Input::Start, now).unwrap();
    let refusal = SscopPdu::BeginReject { uu: Vec::new() }.encode();
    let mut begins = 0;
    while now < Instant::from_secs(60) {
        for output in settle(&mut end, now) {
            if matches!(output, Output::Lower(_)) {
                begins += 1;
                end.handle_input(Input::Lower(&refusal), now).unwrap();
            }
        }
        now = end.poll_timeout().unwrap();
    }
    assert_eq!(begins, 60);
}
