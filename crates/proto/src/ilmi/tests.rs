//! Two ends in virtual time, a recorded `ilmid`, and hostile peers.

mod channel;
mod link;
mod split;

use super::*;
use crate::machine::settle;
use aerostat_wire::ilmi::{Binding, ErrorStatus, Kind, Request, Value, mib};
use proptest::prelude::*;

pub(super) const PREFIX: Prefix = [
    0x47, 0, 5, 0x80, 0xff, 0xe1, 0, 0, 0, 0xf2, 0x1a, 0x26, 0xd8,
];
const OTHER: Prefix = [0x39, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];
const ESI: MacAddr = MacAddr([0, 0x20, 0xea, 0, 0, 0xb0]);
const DELAY: Duration = Duration::from_millis(1);

pub(super) fn network() -> Config {
    Config {
        prefixes: vec![PREFIX],
        lecs: vec![AtmAddress::LECS],
        ..Config::new(Side::Network, MacAddr([2; 6]), Version::Uni40)
    }
}
pub(super) fn user() -> Config {
    Config {
        esis: vec![ESI],
        ..Config::new(Side::User, ESI, Version::Uni31)
    }
}
fn own() -> AtmAddress {
    mib::address(PREFIX, ESI)
}

/// A link between two ends that can lose messages.
pub(super) struct Pair {
    pub(super) ends: [Ime; 2],
    wire: VecDeque<(Instant, usize, Vec<u8>)>,
    pub(super) now: Instant,
    events: [Vec<Event>; 2],
    taken: BTreeSet<AtmAddress>,
    lose: Box<dyn FnMut(usize) -> bool>,
    sent: usize,
}

impl Pair {
    pub(super) fn new(configs: [Config; 2]) -> Self {
        Self {
            ends: configs.map(Ime::new),
            wire: VecDeque::new(),
            now: Instant::ZERO,
            events: Default::default(),
            taken: BTreeSet::new(),
            lose: Box::new(|_| false),
            sent: 0,
        }
    }
    /// Network side and user side, both in state verifying.
    pub(super) fn up() -> Self {
        let mut pair = Self::new([network(), user()]);
        pair.tell(0, Input::Start);
        pair.tell(1, Input::Start);
        pair.run(Duration::from_secs(1));
        assert_eq!(pair.ends[0].state(), State::Verifying);
        assert_eq!(pair.ends[1].state(), State::Verifying);
        pair
    }
    pub(super) fn tell(&mut self, end: usize, input: Input<'_>) {
        self.ends[end].handle_input(input, self.now).unwrap();
        self.drain(end);
    }
    fn drain(&mut self, end: usize) {
        for output in settle(&mut self.ends[end], self.now) {
            match output {
                Output::Send(sdu) => {
                    assert!(sdu.len() <= aerostat_wire::ilmi::MAX_MESSAGE);
                    self.sent += 1;
                    if !(self.lose)(self.sent) {
                        self.wire.push_back((self.now + DELAY, 1 - end, sdu));
                    }
                }
                Output::Claim { claim, addresses } => {
                    let taken = |address| self.taken.contains(address);
                    let refused = addresses.iter().position(taken).map(|index| index as u16);
                    self.tell(end, Input::Claimed { claim, refused });
                }
                Output::Event(event) => self.events[end].push(event),
                Output::Trace(_) => {}
            }
        }
    }
    pub(super) fn run(&mut self, time: Duration) {
        let until = self.now + time;
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
                self.tell(end, Input::Message { sdu: &sdu });
            }
            self.drain(0);
            self.drain(1);
        }
        self.now = until;
    }
    pub(super) fn take(&mut self, end: usize) -> Vec<Event> {
        core::mem::take(&mut self.events[end])
    }
}

#[test]
fn a_host_that_knows_its_esi_gets_an_address() {
    let mut pair = Pair::up();
    let version = Version::Uni31;
    assert_eq!(
        pair.take(0),
        [Event::Up { version }, Event::Registered(own(), true)]
    );
    assert_eq!(
        pair.take(1),
        [
            Event::Up { version },
            Event::Address(own(), true),
            Event::Services(vec![AtmAddress::LECS])
        ]
    );
    let [network, user] = [0, 1].map(|end| pair.ends[end].snapshot());
    assert_eq!(network.addresses, [own()]);
    assert_eq!(user.prefixes, [PREFIX]);
    assert_eq!(network.peer.device, Some(1));
    assert_eq!(user.peer.device, Some(2));
    // From here on there are only polls.
    pair.run(Duration::from_secs(600));
    assert!(pair.take(0).is_empty() && pair.take(1).is_empty());
}

#[test]
fn whoever_starts_later_is_waited_for() {
    for first in [0, 1] {
        let mut pair = Pair::new([network(), user()]);
        pair.tell(first, Input::Start);
        pair.run(Duration::from_secs(60));
        assert!(pair.take(first).is_empty());
        pair.tell(1 - first, Input::Start);
        pair.run(Duration::from_secs(5));
        assert_eq!(pair.ends[0].snapshot().addresses, [own()], "first {first}");
        assert!(pair.take(1).contains(&Event::Address(own(), true)));
    }
}

#[test]
fn lost_messages_are_repeated() {
    for seed in 0..50_u64 {
        let mut pair = Pair::new([network(), user()]);
        let mut x = seed;
        pair.lose = Box::new(move |_| {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (x >> 33).is_multiple_of(3)
        });
        pair.tell(0, Input::Start);
        pair.tell(1, Input::Start);
        pair.run(Duration::from_secs(120));
        pair.lose = Box::new(|_| false);
        pair.run(Duration::from_secs(30));
        assert_eq!(pair.ends[0].snapshot().addresses, [own()], "seed {seed}");
        assert_eq!(pair.ends[1].snapshot().addresses, [own()], "seed {seed}");
    }
}

#[test]
fn a_silent_host_loses_its_address() {
    let mut pair = Pair::up();
    pair.take(0);
    pair.lose = Box::new(|_| true);
    pair.run(Duration::from_secs(12));
    assert!(pair.take(0).is_empty(), "a poll or two may be lost");
    pair.run(Duration::from_secs(8));
    assert_eq!(pair.take(0), [Event::Registered(own(), false), Event::Down]);
    pair.lose = Box::new(|_| false);
    pair.run(Duration::from_secs(10));
    assert!(pair.take(0).contains(&Event::Registered(own(), true)));
    assert_eq!(pair.ends[0].snapshot().counters.losses, 1);
}

#[test]
fn a_restarted_host_registers_anew() {
    let mut pair = Pair::up();
    pair.run(Duration::from_secs(30));
    pair.take(0);
    pair.ends[1] = Ime::new(user());
    pair.tell(1, Input::Start);
    pair.run(Duration::from_secs(3));
    let version = Version::Uni31;
    assert_eq!(
        pair.take(0),
        [
            Event::Registered(own(), false),
            Event::Down,
            Event::Up { version },
            Event::Registered(own(), true)
        ]
    );
}

#[test]
fn a_restart_that_nobody_told_is_noticed_by_the_clock() {
    let mut pair = Pair::up();
    pair.run(Duration::from_secs(60));
    pair.take(0);
    pair.ends[1] = Ime::new(user());
    let sent = pair.sent;
    pair.lose = Box::new(move |n| n == sent + 1);
    pair.tell(1, Input::Start);
    pair.run(Duration::from_secs(10));
    let events = pair.take(0);
    assert_eq!(events.first(), Some(&Event::Registered(own(), false)));
    assert_eq!(events.last(), Some(&Event::Registered(own(), true)));
}

#[test]
fn another_host_on_the_same_line() {
    let mut pair = Pair::up();
    pair.take(0);
    let other = MacAddr([0, 0x20, 0xea, 0, 0, 0xc0]);
    let config = Config {
        esis: vec![other],
        system: other,
        ..user()
    };
    pair.ends[1] = Ime::new(config);
    let sent = pair.sent;
    pair.lose = Box::new(move |n| n == sent + 1);
    pair.tell(1, Input::Start);
    pair.run(Duration::from_secs(10));
    assert_eq!(
        pair.ends[0].snapshot().addresses,
        [mib::address(PREFIX, other)]
    );
}

#[test]
fn prefixes_change() {
    let mut pair = Pair::up();
    pair.take(0);
    pair.take(1);
    pair.tell(0, Input::SetPrefixes(vec![OTHER]));
    pair.run(Duration::from_secs(1));
    let new = mib::address(OTHER, ESI);
    assert_eq!(pair.ends[0].snapshot().addresses, [new]);
    assert_eq!(
        pair.take(1),
        [Event::Address(own(), false), Event::Address(new, true)]
    );
    let events = pair.take(0);
    assert!(events.contains(&Event::Registered(own(), false)));
    assert!(events.contains(&Event::Registered(new, true)));
    pair.tell(0, Input::SetPrefixes(Vec::new()));
    pair.run(Duration::from_secs(1));
    assert!(pair.ends[0].snapshot().addresses.is_empty());
    assert!(pair.ends[1].snapshot().addresses.is_empty());
}

/// A host gets another end system, and loses it: only the address of that one comes and goes.
#[test]
fn end_systems_change() {
    let mut pair = Pair::up();
    pair.take(0);
    pair.take(1);
    let second = MacAddr([0, 0x20, 0xea, 0, 0, 0xc0]);
    let added = mib::address(PREFIX, second);
    pair.tell(1, Input::SetEsis(vec![ESI, second]));
    pair.run(Duration::from_secs(1));
    assert_eq!(pair.take(0), [Event::Registered(added, true)]);
    assert_eq!(pair.take(1), [Event::Address(added, true)]);
    pair.tell(1, Input::SetEsis(vec![ESI]));
    pair.run(Duration::from_secs(1));
    assert_eq!(pair.take(0), [Event::Registered(added, false)]);
    assert_eq!(pair.take(1), [Event::Address(added, false)]);
    assert_eq!(pair.ends[0].snapshot().addresses, [own()]);
    // A switch has no end systems of its own.
    pair.tell(0, Input::SetEsis(vec![second]));
    pair.run(Duration::from_secs(1));
    assert_eq!(pair.ends[0].snapshot().addresses, [own()]);
}

#[test]
fn an_address_that_somebody_has_is_refused() {
    let mut pair = Pair::new([network(), user()]);
    pair.taken.insert(own());
    pair.tell(0, Input::Start);
    pair.tell(1, Input::Start);
    pair.run(Duration::from_secs(20));
    assert!(pair.ends[0].snapshot().addresses.is_empty());
    assert!(pair.ends[1].snapshot().addresses.is_empty());
    assert_eq!(pair.ends[1].snapshot().counters.errors_received, 1);
}

#[test]
fn two_hosts_on_one_line_do_not_quarrel() {
    let mut pair = Pair::new([user(), user()]);
    pair.tell(0, Input::Start);
    pair.tell(1, Input::Start);
    pair.run(Duration::from_secs(40));
    assert!(pair.sent < 60, "{} messages in 40 s", pair.sent);
}

/// A request to register addresses with this status.
pub(super) fn registering(addresses: &[AtmAddress], status: i32) -> Vec<u8> {
    let name = |address: &AtmAddress| mib::of_address(&mib::address_status(), *address);
    let bindings = addresses.iter();
    let bindings = bindings.map(|a| Binding::new(name(a), Value::Integer(status)));
    Message(Pdu::Request(Request::new(Kind::Set, 7, bindings.collect()))).encode()
}

/// The outputs of an end after a message, where every address can be registered.
fn outputs(end: &mut Ime, sdu: &[u8], now: Instant) -> Vec<Output> {
    end.handle_input(Input::Message { sdu }, now).unwrap();
    let mut outputs = settle(end, now);
    if let Some(Output::Claim { claim, .. }) = outputs.last() {
        let (claim, refused) = (*claim, None);
        end.handle_input(Input::Claimed { claim, refused }, now)
            .unwrap();
        outputs.extend(settle(end, now));
    }
    outputs
}

/// An end's answer to a request.
pub(super) fn ask(end: &mut Ime, kind: Kind, bindings: Vec<Binding>) -> Request {
    let message = Message(Pdu::Request(Request::new(kind, 77, bindings)));
    let answers = outputs(end, &message.encode(), Instant::from_secs(100)).into_iter();
    let mut answers = answers.filter_map(|output| match output {
        Output::Send(sdu) => match Message::decode(&sdu) {
            Ok(Message(Pdu::Request(request))) if request.kind == Kind::Response => Some(request),
            _ => None,
        },
        _ => None,
    });
    answers.next().unwrap()
}
fn set(end: &mut Ime, address: AtmAddress, value: i32) -> ErrorStatus {
    let name = mib::of_address(&mib::address_status(), address);
    ask(
        end,
        Kind::Set,
        vec![Binding::new(name, Value::Integer(value))],
    )
    .status
}

#[test]
fn what_a_host_may_not_register() {
    let mut pair = Pair::up();
    let end = &mut pair.ends[0];
    let esi = |n| MacAddr([2, 0, 0, 0, 1, n]);
    assert_eq!(
        set(end, mib::address(OTHER, ESI), 1),
        ErrorStatus::BAD_VALUE,
        "a prefix that was never offered"
    );
    assert_eq!(set(end, own(), 3), ErrorStatus::BAD_VALUE);
    let group = mib::address(PREFIX, MacAddr([1, 0, 0, 0, 0, 1]));
    assert_eq!(set(end, group, 1), ErrorStatus::BAD_VALUE);
    // Another ESI under the prefix is another address.
    assert_eq!(
        set(end, mib::address(PREFIX, esi(1)), 1),
        ErrorStatus::NO_ERROR
    );
    for n in 2..=63 {
        assert_eq!(
            set(end, mib::address(PREFIX, esi(n)), 1),
            ErrorStatus::NO_ERROR
        );
    }
    assert_eq!(
        set(end, mib::address(PREFIX, esi(64)), 1),
        ErrorStatus::GENERAL
    );
    assert_eq!(end.snapshot().counters.full, 1);
    // The address may be withdrawn.
    assert_eq!(
        set(end, mib::address(PREFIX, esi(5)), 2),
        ErrorStatus::NO_ERROR
    );
    assert_eq!(
        set(end, mib::address(PREFIX, esi(64)), 1),
        ErrorStatus::NO_ERROR
    );
    // With one wrong variable nothing changes.
    let before = end.snapshot().addresses;
    let name = |address| mib::of_address(&mib::address_status(), address);
    let bindings = vec![
        Binding::new(name(own()), Value::Integer(2)),
        Binding::new(mib::system(1), Value::Octets(vec![1])),
    ];
    let answer = ask(end, Kind::Set, bindings.clone());
    assert_eq!((answer.status, answer.index), (ErrorStatus::READ_ONLY, 2));
    assert_eq!(answer.bindings, bindings);
    assert_eq!(end.snapshot().addresses, before);
}

/// A scope that was acknowledged can be read, and that of an address that is not there is not acknowledged.
#[test]
fn scopes_are_kept_with_their_addresses() {
    let mut pair = Pair::up();
    let end = &mut pair.ends[0];
    let scope = |address: AtmAddress| mib::of_address(&mib::address_scope(), address);
    let status = |address: AtmAddress| mib::of_address(&mib::address_status(), address);
    let binding = |name: Oid, value: i32| Binding::new(name, Value::Integer(value));
    let read = |end: &mut Ime, address| {
        let answer = ask(
            end,
            Kind::Get,
            vec![Binding::new(scope(address), Value::Null)],
        );
        (answer.status == ErrorStatus::NO_ERROR).then(|| answer.bindings[0].value.integer())
    };
    let other = mib::address(PREFIX, MacAddr([2, 0, 0, 0, 1, 1]));
    assert_eq!(read(end, own()), Some(Some(15)), "global");
    let answer = ask(end, Kind::Set, vec![binding(scope(own()), 5)]);
    assert_eq!(answer.status, ErrorStatus::NO_ERROR);
    assert_eq!(read(end, own()), Some(Some(5)));
    let answer = ask(end, Kind::Set, vec![binding(scope(own()), 16)]);
    assert_eq!(answer.status, ErrorStatus::BAD_VALUE);
    let answer = ask(end, Kind::Set, vec![binding(scope(other), 5)]);
    assert_eq!(answer.status, ErrorStatus::NO_SUCH_NAME);
    assert_eq!(read(end, other), None);
    // Together with the address, in either order.
    for order in [[0, 1], [1, 0]] {
        let both = [binding(status(other), 1), binding(scope(other), 3)];
        let both = order.map(|n: usize| both[n].clone()).to_vec();
        assert_eq!(ask(end, Kind::Set, both).status, ErrorStatus::NO_ERROR);
        assert_eq!(read(end, other), Some(Some(3)));
        assert_eq!(set(end, other, 2), ErrorStatus::NO_ERROR);
        assert_eq!(read(end, other), None);
    }
    assert_eq!(set(end, other, 1), ErrorStatus::NO_ERROR);
    assert_eq!(
        read(end, other),
        Some(Some(15)),
        "the scope ended with the address"
    );
    let both = vec![binding(status(other), 2), binding(scope(other), 3)];
    assert_eq!(ask(end, Kind::Set, both).status, ErrorStatus::NO_SUCH_NAME);
}

#[test]
fn the_whole_table_can_be_walked() {
    let mut pair = Pair::up();
    for end in [0, 1] {
        let mut name = Oid::new(&[1, 3]);
        let mut seen = Vec::new();
        loop {
            let answer = ask(
                &mut pair.ends[end],
                Kind::GetNext,
                vec![Binding::new(name, Value::Null)],
            );
            if answer.status == ErrorStatus::NO_SUCH_NAME {
                break;
            }
            name = answer.bindings[0].name.clone();
            assert!(seen.last().is_none_or(|last| *last < name));
            seen.push(name.clone());
        }
        assert!(seen.len() > 15, "end {end}: {}", seen.len());
        let everything: Vec<Binding> = seen
            .into_iter()
            .map(|name| Binding::new(name, Value::Null))
            .collect();
        let answer = ask(&mut pair.ends[end], Kind::Get, everything);
        assert!([ErrorStatus::NO_ERROR, ErrorStatus::TOO_BIG].contains(&answer.status));
    }
}

/// Requests of Debian's `ilmid`, as `e-ilmi-net` of the recordings has them. Its Get requests carry INTEGER 0.
#[test]
fn a_recorded_ilmid() {
    let hex = |text: &str| -> Vec<u8> {
        let digits: Vec<u8> = text
            .bytes()
            .map(|c| char::from(c).to_digit(16).unwrap() as u8)
            .collect();
        digits
            .chunks(2)
            .map(|pair| pair[0] << 4 | pair[1])
            .collect()
    };
    let requests = [
        "305f0201000404494c4d49a05402010102010002010030493012060d2b0601040182610201010108000201003012060d2b0601040182610201010107000201003010060b2b06010401826102010400020100300d06082b06010201010300020100",
        "30818f0201000404494c4d49a0818302010202010002010030783012060d2b0601040182610202010109000201003012060d2b0601040182610202010106000201003012060d2b0601040182610202010107000201003012060d2b0601040182610202010108000201003012060d2b060104018261020201010a000201003012060d2b060104018261020b01010200020100",
        "303a0201000404494c4d49a12f02010302010002010030243011060c2b0601040182610206010103020100300f060a2b060104018261020801020100",
        "307f0201000404494c4d49a0740201040201000201003069300d06082b06010201010100020100300d06082b06010201010200020100300d06082b06010201010300020100300d06082b06010201010400020100300d06082b06010201010500020100300d06082b06010201010600020100300d06082b06010201010700020100",
        "30460201000404494c4d49a33b0201050201000201003030302e06292b060104018261020601010300144700058100817f816100000081721a2681580020816a0000812000020101",
    ];
    let mut end = Pair::up().ends.into_iter().next().unwrap();
    let mut answers = Vec::new();
    for request in requests {
        for output in outputs(&mut end, &hex(request), Instant::from_secs(50)) {
            if let Output::Send(sdu) = output
                && let Ok(Message(Pdu::Request(request))) = Message::decode(&sdu)
                && request.kind == Kind::Response
            {
                answers.push(request);
            }
        }
    }
    assert_eq!(answers.len(), requests.len());
    assert!(
        answers
            .iter()
            .all(|answer| answer.status == ErrorStatus::NO_ERROR)
    );
    // `ilmid` accepts the second answer as LECS address only under exactly this name.
    let service = &answers[2].bindings[1];
    assert_eq!(service.name, mib::of_lecs(1));
    assert_eq!(service.value.octets(), Some(&AtmAddress::LECS.0[..]));
    let a0 = mib::address(PREFIX, MacAddr([0, 0x20, 0xea, 0, 0, 0xa0]));
    assert!(end.snapshot().addresses.contains(&a0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Any octets, and any requests: tables stay bounded, laws hold, the real peer recovers.
    #[test]
    fn survives_anything(
        steps in prop::collection::vec(
            (0_u8..8, any::<u8>(), any::<i32>(), prop::collection::vec(any::<u8>(), 0..40), 0_u64..3000),
            1..80,
        ),
        side in 0_usize..2,
    ) {
        let mut pair = Pair::up();
        let end = side;
        for (what, n, id, octets, wait) in steps {
            let address = mib::address(PREFIX, MacAddr([2, 0, 0, 0, 2, n]));
            let mut prefix = PREFIX;
            prefix[12] = n;
            let status = Value::Integer(i32::from(n % 3) + 1);
            let request = |kind, name, value: &Value| {
                let request = Request::new(kind, id % 64, vec![Binding::new(name, value.clone())]);
                Message(Pdu::Request(request)).encode()
            };
            let sdu = match what {
                0 => octets,
                1 => request(Kind::Set, mib::of_address(&mib::address_status(), address), &status),
                2 => request(Kind::Set, mib::of_prefix(prefix), &status),
                3 => request(Kind::GetNext, mib::uni(&[u32::from(n)]), &Value::Null),
                4 => request(Kind::Response, mib::of_lecs(n.into()), &Value::Octets(address.0.to_vec())),
                5 => request(Kind::Response, mib::system(mib::SYS_UP_TIME), &Value::TimeTicks(0)),
                6 => Message(Pdu::Trap(Trap::cold_start(n.into()))).encode(),
                _ => request(Kind::Get, mib::system(n.into()), &Value::Null),
            };
            pair.tell(end, Input::Message { sdu: &sdu });
            pair.run(Duration::from_millis(wait));
            let snapshot = pair.ends[end].snapshot();
            prop_assert!(snapshot.prefixes.len() <= 8 && snapshot.addresses.len() <= 64);
            prop_assert!(snapshot.services.len() <= 8);
        }
        // A cold start of the real peer clears everything that the forged messages caused.
        pair.ends[1 - end] = Ime::new(if end == 0 { user() } else { network() });
        pair.tell(1 - end, Input::Start);
        pair.run(Duration::from_secs(60));
        prop_assert!(pair.ends[0].snapshot().addresses.contains(&own()));
        prop_assert!(pair.ends[1].snapshot().addresses.contains(&own()));
    }
}
