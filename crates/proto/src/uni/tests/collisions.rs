//! Both sides of one interface at the same time: SETUPs, answers, releases and restarts that cross.

use super::*;
use aerostat_wire::q2931::ConnectionId;
use proptest::prelude::*;
use std::collections::VecDeque;

/// Makes both requests before either message has arrived.
fn at_once(p: &mut Pair, user: Request, net: Request) {
    for (end, request) in [(USER, user), (NET, net)] {
        let input = Input::Request(request);
        p.ends[end].uni.handle_input(input, p.now).expect("request");
    }
    p.drain();
}

/// Both SETUPs have call reference 1, with flag 0 from each side: these are two calls.
#[test]
fn setups_that_cross_are_two_calls() {
    for version in [Version::Uni30, Version::Uni31, Version::Uni40] {
        let mut p = Pair::new(version);
        at_once(&mut p, setup(info(1), None), setup(info(2), Some(VC1)));
        for end in [USER, NET] {
            let sent = p.ends[end].last();
            assert_eq!((sent.call.flag, sent.call.value), (false, 1));
        }
        p.ask(NET, accept(IN1, Some(VC2)));
        p.ask(USER, accept(IN1, None));
        for end in [USER, NET] {
            let mut labels: Vec<_> = p.ends[end].uni.calls().map(|c| (c.state, c.vc)).collect();
            labels.sort_unstable();
            let active = |vc| (CallState::Active, Some(vc));
            assert_eq!(labels, [active(VC1), active(VC2)]);
        }
        at_once(&mut p, release(C1), release(C1));
        p.clean();
    }
}

/// The network side gives the user's call the label of another of its calls. This is a fault of the network and costs
/// only the later call.
#[test]
fn one_label_for_two_calls() {
    let mut p = Pair::new(Version::Uni31);
    at_once(&mut p, setup(info(1), None), setup(info(2), Some(VC1)));
    p.forget();
    let reference = reference(true, 1);
    let answer = Message::new(reference, MessageType::CALL_PROCEEDING);
    p.inject_message(
        USER,
        &answer.with(&Ie::ConnectionId(ConnectionId::exact(VC1))),
    );
    let release = &p.ends[USER].sent[0];
    assert_eq!(
        (release.kind, causes(release)),
        (MessageType::RELEASE, vec![35])
    );
    p.ask(USER, accept(IN1, None));
    assert_eq!(
        p.ends[USER].state(IN1),
        Some(CallState::Active),
        "the other one lives"
    );
    assert!(p.ends[USER].uni.uses(VC1));
}

/// The owner of the network side cannot give a label twice, and a user cannot choose one.
#[test]
fn labels_of_the_owner() {
    let mut p = Pair::new(Version::Uni31);
    at_once(&mut p, setup(info(1), None), setup(info(2), Some(VC1)));
    assert!(p.try_ask(NET, proceeding(IN1, Some(VC1))).is_err());
    p.ask(NET, proceeding(IN1, Some(VC2)));
    let second = Request::Setup {
        call: C2,
        info: info(3),
        vc: Some(Vc::new(0, 40)),
        party: None,
    };
    assert!(p.try_ask(USER, second).is_err());
}

#[test]
fn a_restart_crosses_a_setup() {
    let mut p = Pair::new(Version::Uni31);
    let restart = Request::Restart { what: Restart::All };
    at_once(&mut p, setup(info(1), None), restart);
    let [user, net] = p.take();
    // The SETUP arrived before the RESTART: the call ends at the user, and so does the network's half of it.
    assert!(user.contains(&released(C1, Cause::TEMPORARY)), "{user:?}");
    assert!(
        net.iter()
            .all(|i| !matches!(i, Indication::Connected { .. }))
    );
    p.run(Duration::from_secs(60));
    assert!(p.ends[USER].is_clean());
    // A call that came behind the RESTART is enquired about when the peer appears not to know it.
    p.ask(NET, release(IN1));
    p.run(Duration::from_secs(60));
    p.clean();
}

/// Two sides with messages on their way, and owners that accept every call and know the free labels.
struct Crossing {
    ends: [Uni; 2],
    wire: [VecDeque<Vec<u8>>; 2],
    now: Instant,
    next_vci: u16,
    next_call: u32,
    /// Answers that the owners owe, by end.
    offered: [VecDeque<(CallId, Option<Vc>)>; 2],
}

impl Crossing {
    fn new() -> Self {
        let side = |side| Uni::new(Params::new(side, Version::Uni31));
        let mut crossing = Self {
            ends: [side(Side::User), side(Side::Network)],
            wire: Default::default(),
            now: Instant::from_secs(1),
            next_vci: 32,
            next_call: 0,
            offered: Default::default(),
        };
        for end in 0..2 {
            crossing.feed(end, Input::SaalUp);
        }
        crossing
    }
    fn feed(&mut self, end: usize, input: Input<'_>) {
        // The end refuses requests for calls that have ended.
        let _ = self.ends[end].handle_input(input, self.now);
        for output in settle(&mut self.ends[end], self.now) {
            match output {
                Output::SaalData(octets) => self.wire[1 - end].push_back(octets),
                Output::Indication(Indication::Setup { call, vc, .. }) => {
                    self.offered[end].push_back((call, vc));
                }
                _ => {}
            }
        }
    }
    fn label(&mut self) -> Option<Vc> {
        self.next_vci += 1;
        Some(Vc::new(0, self.next_vci))
    }
    fn step(&mut self, end: usize, what: u8) {
        match what {
            0 => {
                let call = CallId(self.next_call);
                self.next_call += 1;
                let vc = if end == NET { self.label() } else { None };
                let info = info(1);
                let party = None;
                let request = Request::Setup {
                    call,
                    info,
                    vc,
                    party,
                };
                self.feed(end, Input::Request(request));
            }
            1 => {
                if let Some((call, offered)) = self.offered[end].pop_front() {
                    let vc = match offered {
                        None if end == NET => self.label(),
                        _ => None,
                    };
                    self.feed(end, Input::Request(accept(call, vc)));
                }
            }
            2 => {
                let call = self.ends[end].calls().next().map(|c| c.call);
                if let Some(call) = call {
                    self.feed(end, Input::Request(release(call)));
                }
            }
            _ => {
                if let Some(octets) = self.wire[end].pop_front() {
                    self.feed(end, Input::SaalData(&octets));
                }
            }
        }
    }
    fn deliver_all(&mut self) {
        while self.wire.iter().any(|wire| !wire.is_empty()) {
            self.step(USER, 3);
            self.step(NET, 3);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// However messages of both sides cross: when all have arrived, the two sides have the same calls, in compatible
    /// states, on the same labels, and no label is used twice. After all calls are released nothing is left.
    #[test]
    fn the_sides_agree(steps in prop::collection::vec((0..2_usize, 0..6_u8), 0..120)) {
        let mut crossing = Crossing::new();
        for (end, what) in steps {
            crossing.step(end, what);
        }
        crossing.deliver_all();
        let view = |end: usize| {
            let calls = crossing.ends[end].calls();
            // The side that chose the reference depends on the end.
            let mut calls: Vec<_> = calls
                .map(|c| ((c.ours == (end == USER), c.reference), c.state, c.vc))
                .collect();
            calls.sort_unstable();
            calls
        };
        let (user, net) = (view(USER), view(NET));
        prop_assert_eq!(user.len(), net.len());
        for (u, n) in user.iter().zip(&net) {
            prop_assert_eq!(u.0, n.0);
            prop_assert!(u.1.agrees_with(Side::User, n.1.number(Side::Network)), "{:?} {:?}", u, n);
            if u.2.is_some() && n.2.is_some() {
                prop_assert_eq!(u.2, n.2);
            }
        }
        let mut labels: Vec<_> = net.iter().filter_map(|call| call.2).collect();
        let all = labels.len();
        labels.sort_unstable();
        labels.dedup();
        prop_assert_eq!(labels.len(), all);
        for end in 0..2 {
            let calls: Vec<_> = crossing.ends[end].calls().map(|c| c.call).collect();
            for call in calls {
                crossing.feed(end, Input::Request(release(call)));
            }
        }
        crossing.deliver_all();
        for end in 0..2 {
            prop_assert_eq!(crossing.ends[end].calls().count(), 0);
            prop_assert_eq!(crossing.ends[end].poll_timeout(), None);
        }
    }
}
