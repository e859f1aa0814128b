//! UNI interfaces: messages that fit and that do not, requests of the owner, loss of the link, time.
//!
//! The first octet of an input chooses the scenario ([`run`]), the second the version; then each step takes an
//! octet and what it asks for. Every call that an owner hears of is released exactly once, tables keep within
//! their limits, own messages are free of faults, and in the end nothing is left.

use crate::feed::Feed;
use aerostat_proto::interface::{self, Interface, Phase};
use aerostat_proto::machine::settle;
use aerostat_proto::uni::{
    CallId, ConnectInfo, Indication, Input, Limits, Output, Params, Request, Restart, SetupInfo,
    Side, Uni, Version,
};
use aerostat_proto::{Cause, Duration, Instant, Machine, PartyId};
use aerostat_wire::q2931::{
    CallRef, CauseIe, ConnectionId, Element, Ie, Message, MessageType, RestartClass, table,
};
use aerostat_wire::{AtmAddress, Blli, MacAddr, Qos, Vc};
use std::collections::{BTreeSet, VecDeque};

const LIMITS: Limits = Limits {
    calls: 6,
    parties: 4,
    restarts: 3,
    max_vpi: 2,
};
const VERSIONS: [Version; 3] = [Version::Uni30, Version::Uni31, Version::Uni40];
const SIDES: [Side; 2] = [Side::User, Side::Network];

fn address(n: u8) -> AtmAddress {
    let mut prefix = [0; 13];
    prefix[0] = 0x47;
    AtmAddress::from_parts(prefix, MacAddr([2, 0, 0, 0, 0, n]), 0)
}

fn offer(multipoint: bool, n: u8) -> SetupInfo {
    let qos = if multipoint {
        Qos::ubr_multipoint(1516)
    } else {
        Qos::ubr(9188)
    };
    let qos = if n & 3 == 3 && !multipoint {
        Qos::cbr(353, 1516)
    } else {
        qos
    };
    let mut info = SetupInfo::new(address(n), Some(address(1)), Blli::LANE_CONTROL, qos);
    info.multipoint = multipoint;
    info
}

fn params(side: Side, version: Version) -> Params {
    Params {
        limits: LIMITS,
        ..Params::new(side, version)
    }
}

/// An interface whose link is up.
fn started(side: Side, version: Version) -> Uni {
    let mut uni = Uni::new(params(side, version));
    let up = uni.handle_input(Input::SaalUp, Instant::ZERO);
    up.expect("the link is never refused");
    settle(&mut uni, Instant::ZERO);
    uni
}

/// The elements of a faultless SETUP.
fn setup(multipoint: bool, version: Version, n: u8) -> Vec<Element> {
    let mut uni = started(Side::Network, version);
    let request = Request::Setup {
        call: CallId(0),
        info: offer(multipoint, n),
        vc: Some(Vc::new(0, 40 + u16::from(n & 7))),
        party: multipoint.then_some(PartyId(0)),
    };
    let taken = uni.handle_input(Input::Request(request), Instant::ZERO);
    taken.expect("a first call is possible");
    for output in settle(&mut uni, Instant::ZERO) {
        if let Output::SaalData(octets) = output {
            let decoded = Message::decode(&octets).expect("own messages decode");
            return decoded.message.elements;
        }
    }
    panic!("a SETUP goes out");
}

fn vc(feed: &mut Feed<'_>) -> Option<Vc> {
    let n = feed.below(12) as u16;
    (n > 1).then(|| Vc::new(n / 11, 38 + n))
}

fn element(feed: &mut Feed<'_>) -> Element {
    let value = match feed.below(10) {
        0 => Ie::Cause(CauseIe::new(0, feed.u8() & 0x7f)),
        1 => Ie::CallState(feed.u8() % 13),
        2 | 3 => Ie::EndpointReference {
            flag: feed.coin(),
            value: feed.below(5) as u16,
        },
        4 => Ie::EndpointState(feed.u8() % 8),
        5 => Ie::ConnectionId(ConnectionId::exact(vc(feed).unwrap_or(Vc::SIGNALLING))),
        6 => {
            Ie::Restart(feed.pick(&[RestartClass::All, RestartClass::Channel, RestartClass::Path]))
        }
        7 => Ie::Notification(vec![0xf1]),
        _ => {
            let id = table::DEFINITIONS[feed.below(table::DEFINITIONS.len())].id;
            let mut element = Element::new(id, Vec::new());
            element.instruction.0 = feed.u8() | 0x80;
            element.contents = feed.octets(24).into();
            return element;
        }
    };
    value.encode()
}

fn message(feed: &mut Feed<'_>, version: Version) -> Vec<u8> {
    let kind = match feed.below(16) {
        0..=3 => MessageType::SETUP,
        15 => MessageType(feed.u8()),
        _ => table::MESSAGES[feed.below(table::MESSAGES.len())].kind,
    };
    let reference = feed.u8();
    let call = CallRef {
        flag: reference & 0x80 != 0,
        value: u32::from(reference & 7),
    };
    let mut elements = Vec::new();
    let has_offer = kind == MessageType::SETUP || kind == MessageType::ADD_PARTY;
    if has_offer && feed.below(8) < 7 {
        let n = feed.u8();
        elements = setup(n & 0x40 != 0 || kind == MessageType::ADD_PARTY, version, n);
    }
    elements.extend((0..feed.below(5)).map(|_| element(feed)));
    let mut octets = Message::new(call, kind).with_elements(elements).encode();
    feed.damage(&mut octets);
    octets
}

fn call_id(feed: &mut Feed<'_>) -> CallId {
    let n = feed.u8();
    CallId(u32::from(n & 7) + if n & 0x80 == 0 { 0 } else { CallId::INCOMING })
}

fn request(feed: &mut Feed<'_>) -> Request {
    let which = feed.below(15);
    let (call, vc, party) = (call_id(feed), vc(feed), PartyId(feed.below(6) as u16));
    let n = feed.u8();
    let multipoint = n & 0x40 != 0;
    let (cause, info) = (Cause((n & 0x7f).max(1)), ConnectInfo::default());
    match which {
        0 | 1 => {
            let party = multipoint.then_some(party);
            Request::Setup {
                call,
                info: offer(multipoint, n),
                vc,
                party,
            }
        }
        2 => Request::Proceeding { call, vc },
        3 => Request::Alerting {
            call,
            vc,
            elements: Vec::new(),
        },
        4 | 5 => Request::Accept { call, info, vc },
        6 => Request::Release {
            call,
            cause: cause.into(),
        },
        7 => Request::AddParty {
            call,
            party,
            info: offer(true, n),
        },
        8 => Request::AlertParty {
            call,
            party,
            elements: Vec::new(),
        },
        9 => Request::AcceptParty { call, party, info },
        10 => Request::RejectParty {
            call,
            party,
            cause: cause.into(),
        },
        11 => Request::DropParty {
            call,
            party,
            cause: cause.into(),
        },
        12 => Request::StatusEnquiry { call },
        13 => Request::Notify {
            call,
            party: multipoint.then_some(party),
            elements: vec![Ie::Notification(vec![n]).encode()],
        },
        _ => {
            let path = Restart::Path { vpi: n.into() };
            let one = vc.map_or(path, Restart::Channel);
            Request::Restart {
                what: if n & 3 == 0 { Restart::All } else { one },
            }
        }
    }
}

/// The calls that an owner knows of.
#[derive(Default)]
struct Ledger(BTreeSet<CallId>);

impl Ledger {
    fn asked(&mut self, request: &Request) {
        if let Request::Setup { call, .. } = request {
            self.0.insert(*call);
        }
    }
    fn told(&mut self, indication: &Indication) {
        match indication {
            Indication::Setup { call, .. } => assert!(self.0.insert(*call), "{call:?} twice"),
            Indication::Released { call, .. } => assert!(self.0.remove(call), "{call:?} unknown"),
            _ => {}
        }
    }
}

fn check_own(octets: &[u8]) {
    let decoded = Message::decode(octets).expect("own messages decode");
    assert_eq!(decoded.faults().count(), 0, "{decoded:?}");
    assert!(decoded.missing().is_empty(), "{decoded:?}");
}

fn check_tables(uni: &Uni) {
    assert!(uni.calls().count() <= LIMITS.calls);
    for call in uni.calls() {
        assert!(call.parties.len() <= LIMITS.parties, "{call:?}");
        assert!(call.vc.is_none_or(|vc| uni.uses(vc)), "{call:?}");
    }
}

fn pause(feed: &mut Feed<'_>) -> Duration {
    Duration::from_millis(u64::from(feed.u8()).pow(2))
}

/// Runs one input: one interface, two interfaces, or two with their links.
pub fn run(input: &[u8]) {
    let mut feed = Feed::new(input);
    let scenario = feed.u8();
    let version = VERSIONS[feed.below(3)];
    let side = SIDES[usize::from(scenario >> 4 & 1)];
    match scenario & 3 {
        0 => alone(&mut feed, side, version),
        1 | 2 => Links::new(version, feed.u32()).run(&mut feed),
        _ => Pair::new(version).run(&mut feed),
    }
}

/// One interface against any messages.
fn alone(feed: &mut Feed<'_>, side: Side, version: Version) {
    let mut uni = started(side, version);
    let (mut now, mut ledger) = (Instant::ZERO, Ledger::default());
    let drain = |uni: &mut Uni, ledger: &mut Ledger, now| {
        for output in settle(uni, now) {
            match output {
                Output::Indication(indication) => ledger.told(&indication),
                Output::SaalData(octets) => check_own(&octets),
                _ => {}
            }
        }
        check_tables(uni);
    };
    for _ in 0..200 {
        if feed.is_empty() {
            break;
        }
        let input = match feed.below(16) {
            0..=6 => {
                let octets = message(feed, version);
                uni.handle_input(Input::SaalData(&octets), now)
            }
            7..=11 => {
                let request = request(feed);
                let taken = uni.handle_input(Input::Request(request.clone()), now);
                if taken.is_ok() {
                    ledger.asked(&request);
                }
                Ok(())
            }
            12 => uni.handle_input(Input::SaalUp, now),
            13 => uni.handle_input(Input::SaalDown, now),
            _ => {
                now += pause(feed);
                Ok(())
            }
        };
        input.expect("a peer's octets and the link are never refused");
        drain(&mut uni, &mut ledger, now);
    }
    let down = uni.handle_input(Input::SaalDown, now);
    down.expect("the link is never refused");
    for _ in 0..60 {
        now += Duration::from_secs(60);
        drain(&mut uni, &mut ledger, now);
    }
    assert_eq!(uni.calls().count(), 0, "a call outlives its link");
    assert!(ledger.0.is_empty(), "never released: {:?}", ledger.0);
    assert_eq!(uni.poll_timeout(), None);
}

/// Both sides of an interface over a link without loss.
struct Pair {
    ends: [Uni; 2],
    ledgers: [Ledger; 2],
    wire: VecDeque<(usize, Vec<u8>)>,
    now: Instant,
}

impl Pair {
    fn new(version: Version) -> Self {
        Self {
            ends: SIDES.map(|side| started(side, version)),
            ledgers: Default::default(),
            wire: VecDeque::new(),
            now: Instant::ZERO,
        }
    }
    fn drain(&mut self, e: usize) {
        // What an answer to a restart puts out comes behind it.
        let mut outputs = VecDeque::from(settle(&mut self.ends[e], self.now));
        while let Some(output) = outputs.pop_front() {
            match output {
                Output::Indication(indication) => {
                    self.ledgers[e].told(&indication);
                    if let Indication::Restarted { what } = indication {
                        let request = Request::RestartCleared { what };
                        let taken = self.ends[e].handle_input(Input::Request(request), self.now);
                        taken.expect("the restart waits for this");
                        outputs.extend(settle(&mut self.ends[e], self.now));
                    }
                }
                Output::SaalData(octets) => {
                    check_own(&octets);
                    self.wire.push_back((1 - e, octets));
                }
                _ => {}
            }
        }
        check_tables(&self.ends[e]);
    }
    fn pump(&mut self) {
        let mut moves = 0;
        loop {
            self.drain(0);
            self.drain(1);
            let Some((to, octets)) = self.wire.pop_front() else {
                return;
            };
            moves += 1;
            assert!(moves < 5000, "the ends never come to rest");
            let taken = self.ends[to].handle_input(Input::SaalData(&octets), self.now);
            taken.expect("a peer's octets are never refused");
        }
    }
    fn wait(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(next) = self.ends.iter().filter_map(Machine::poll_timeout).min()
            && next <= end
        {
            self.now = next;
            self.pump();
        }
        self.now = end;
        self.pump();
    }
    fn ask(&mut self, e: usize, request: Request) {
        let taken = self.ends[e].handle_input(Input::Request(request.clone()), self.now);
        if taken.is_ok() {
            self.ledgers[e].asked(&request);
        }
        self.drain(e);
    }
    fn run(mut self, feed: &mut Feed<'_>) {
        for _ in 0..200 {
            if feed.is_empty() {
                break;
            }
            let op = feed.u8();
            match op & 7 {
                0..=5 => self.ask(usize::from(op >> 7), request(feed)),
                6 => self.pump(),
                _ => self.wait(pause(feed)),
            }
        }
        self.pump();
        for e in 0..2 {
            let calls: Vec<CallId> = self.ends[e].calls().map(|c| c.call).collect();
            for call in calls {
                self.ask(
                    e,
                    Request::Release {
                        call,
                        cause: Cause::NORMAL.into(),
                    },
                );
            }
            self.pump();
        }
        self.wait(Duration::from_secs(600));
        for (end, ledger) in self.ends.iter().zip(&self.ledgers) {
            assert_eq!(end.calls().count(), 0, "{:?}", end.calls().next());
            assert!(ledger.0.is_empty(), "never released: {:?}", ledger.0);
            assert_eq!(end.poll_timeout(), None);
        }
    }
}

/// Both sides with their signalling links, over a wire that loses.
struct Links {
    ends: [Interface; 2],
    ledgers: [Ledger; 2],
    wire: VecDeque<(usize, Vec<u8>)>,
    now: Instant,
    loss: u32,
    random: u32,
}

impl Links {
    fn new(version: Version, random: u32) -> Self {
        let end = |side| {
            let mut end = Interface::new(interface::Params {
                uni: params(side, version),
                ..interface::Params::new(side, version)
            });
            let taken = end.handle_input(interface::Input::Start, Instant::ZERO);
            taken.expect("a start is never refused");
            end
        };
        Self {
            ends: SIDES.map(end),
            ledgers: Default::default(),
            wire: VecDeque::new(),
            now: Instant::ZERO,
            loss: 0,
            random,
        }
    }
    fn drain(&mut self, e: usize) {
        let mut cleared = Vec::new();
        for output in settle(&mut self.ends[e], self.now) {
            match output {
                interface::Output::Indication(indication) => {
                    self.ledgers[e].told(&indication);
                    if let Indication::Restarted { what } = indication {
                        cleared.push(what);
                    }
                }
                interface::Output::Lower(sdu) => self.wire.push_back((1 - e, sdu)),
                interface::Output::Trace(_) => {}
            }
        }
        for what in cleared {
            let request = interface::Input::Request(Request::RestartCleared { what });
            // Refused if the link was lost behind the peer's RESTART.
            let _ = self.ends[e].handle_input(request, self.now);
        }
        let end = &self.ends[e];
        check_tables(end.uni());
        assert_eq!(
            end.calls(),
            end.uni().calls().count(),
            "an interface forgets no call"
        );
    }
    fn pump(&mut self) {
        let mut moves = 0;
        loop {
            self.drain(0);
            self.drain(1);
            let Some((to, sdu)) = self.wire.pop_front() else {
                return;
            };
            moves += 1;
            assert!(moves < 20_000, "the ends never come to rest");
            self.random = self
                .random
                .wrapping_mul(1_664_525)
                .wrapping_add(1_013_904_223);
            if self.random >> 24 >= self.loss {
                let taken = self.ends[to].handle_input(interface::Input::Lower(&sdu), self.now);
                taken.expect("a peer's octets are never refused");
            }
        }
    }
    fn wait(&mut self, time: Duration) {
        let end = self.now + time;
        self.pump();
        while let Some(next) = self.ends.iter().filter_map(Machine::poll_timeout).min()
            && next <= end
        {
            self.now = next;
            self.pump();
        }
        self.now = end;
        self.pump();
    }
    fn ask(&mut self, e: usize, request: Request) {
        let input = interface::Input::Request(request.clone());
        if self.ends[e].handle_input(input, self.now).is_ok() {
            self.ledgers[e].asked(&request);
        }
        self.drain(e);
    }
    fn run(mut self, feed: &mut Feed<'_>) {
        for _ in 0..100 {
            if feed.is_empty() {
                break;
            }
            let op = feed.u8();
            let e = usize::from(op >> 7);
            match op & 15 {
                0..=8 => self.ask(e, request(feed)),
                9 => self.loss = u32::from(feed.u8()),
                10 => self.loss = 0,
                11 => {
                    let sdu = feed.octets(40).to_vec();
                    self.wire.push_back((e, sdu));
                }
                12 => self.pump(),
                13 => {
                    // The line fails for a moment.
                    self.wire.clear();
                    for input in [interface::Input::LinkDown, interface::Input::Start] {
                        let taken = self.ends[e].handle_input(input, self.now);
                        taken.expect("the line is never refused");
                        self.drain(e);
                    }
                }
                _ => self.wait(pause(feed)),
            }
        }
        self.loss = 0;
        self.wait(Duration::from_secs(60));
        for e in 0..2 {
            let calls: Vec<CallId> = self.ends[e].uni().calls().map(|c| c.call).collect();
            for call in calls {
                self.ask(
                    e,
                    Request::Release {
                        call,
                        cause: Cause::NORMAL.into(),
                    },
                );
            }
        }
        self.wait(Duration::from_secs(600));
        for (end, ledger) in self.ends.iter().zip(&self.ledgers) {
            assert_eq!(
                end.uni().calls().count(),
                0,
                "{:?}",
                end.uni().calls().next()
            );
            assert!(ledger.0.is_empty(), "never released: {:?}", ledger.0);
            assert_eq!(
                end.phase(),
                Phase::Ready,
                "an interface without loss is in use"
            );
        }
    }
}
