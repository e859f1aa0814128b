//! Both halves at both ends of a link, in one process or in processes of their own, in virtual time.

use super::super::split::{FromIlmid, MANAGEMENT};
use super::super::*;
use super::{ESI, OTHER, PREFIX, network, own, registering, user};
use crate::AtmRequest;
use crate::machine::settle;
use crate::split::codec::Message as _;
use crate::split::tests::sample;
use crate::split::{
    FromDaemon, Numbered, Process, ProcessEvent, ProcessInput, ProcessOutput, Signal,
};
use aerostat_testing::messages::Random;
use aerostat_wire::ilmi::{Binding, ErrorStatus, Kind, mib};
use proptest::prelude::*;

const NETWORK: usize = 0;
const USER: usize = 1;
/// Delay of the link, and of a frame between two processes.
const DELAY: Duration = Duration::from_millis(1);
/// When a successor gives up what was not confirmed.
const GIVES_UP: Duration = Duration::from_secs(16);

struct End {
    channel: Channel,
    process: Option<Process<Ilmid>>,
    /// Number of processes before this one.
    lives: usize,
    /// The process neither reads nor says anything (SIGSTOP).
    hangs: bool,
    events: Vec<Event>,
}

enum Crossing {
    Sdu(Vec<u8>),
    ToDaemon(usize, Vec<u8>),
    FromDaemon(usize, Vec<u8>),
}

struct Line {
    ends: [End; 2],
    now: Instant,
    /// Everything on the way, by time and order, with its end.
    crossings: BTreeMap<(Instant, usize), (usize, Crossing)>,
    count: usize,
    /// Addresses that the switch has elsewhere.
    taken: BTreeSet<AtmAddress>,
    /// No SDU arrives.
    cut: bool,
}

impl Line {
    fn with(configs: [Config; 2], split: bool) -> Self {
        let end = |config| End {
            channel: match split {
                true => Channel::split(config),
                false => Channel::new(config),
            },
            process: None,
            lives: 0,
            hangs: false,
            events: Vec::new(),
        };
        let mut line = Self {
            ends: configs.map(end),
            now: Instant::ZERO,
            crossings: BTreeMap::new(),
            count: 0,
            taken: BTreeSet::new(),
            cut: false,
        };
        for end in [NETWORK, USER] {
            if split {
                line.comes(end);
            }
            line.tell(end, ChannelInput::Line(true));
        }
        line
    }
    /// Both ends in processes of their own, with a registered address.
    fn up() -> Self {
        let mut line = Self::with([network(), user()], true);
        line.run(Duration::from_secs(1));
        for end in [NETWORK, USER] {
            assert_eq!(line.ends[end].channel.addresses(), [own()]);
            line.take(end);
        }
        line
    }
    fn tell(&mut self, end: usize, input: ChannelInput<'_>) {
        let now = self.now;
        self.ends[end].channel.handle_input(input, now).unwrap();
        self.drain(end);
    }
    fn cross(&mut self, end: usize, crossing: Crossing) {
        self.count += 1;
        let at = (self.now + DELAY, self.count);
        self.crossings.insert(at, (end, crossing));
    }
    fn drain(&mut self, end: usize) {
        let lives = self.ends[end].lives;
        while let Some(output) = self.ends[end].channel.poll_output() {
            match output {
                ChannelOutput::Send(sdu) => self.cross(1 - end, Crossing::Sdu(sdu)),
                ChannelOutput::Daemon(message) => {
                    let frame = Numbered { number: 0, message }.encode();
                    self.cross(end, Crossing::ToDaemon(lives, frame));
                }
                ChannelOutput::Claim { claim, addresses } => {
                    let taken = |address| self.taken.contains(address);
                    let refused = addresses.iter().position(taken).map(|at| at as u16);
                    self.tell(end, ChannelInput::Claimed { claim, refused });
                }
                ChannelOutput::Event(event) => self.ends[end].events.push(event),
                ChannelOutput::Trace(_) => {}
            }
        }
    }
    fn comes(&mut self, end: usize) {
        self.ends[end].process = Some(Process::default());
        self.ends[end].hangs = false;
        self.tell(end, ChannelInput::Daemon(ProcessEvent::Came));
    }
    fn dies(&mut self, end: usize) {
        self.ends[end].process = None;
        self.ends[end].lives += 1;
        self.tell(end, ChannelInput::Daemon(ProcessEvent::Gone));
    }
    fn signal(&mut self, end: usize, signal: Signal) {
        self.tell_process(end, ProcessInput::Signal(signal));
    }
    fn tell_process(&mut self, end: usize, input: ProcessInput<split::ToIlmid>) {
        let now = self.now;
        if let Some(process) = &mut self.ends[end].process {
            process.handle_input(input, now).unwrap();
        }
        self.drain_process(end);
    }
    fn drain_process(&mut self, end: usize) {
        let (lives, now) = (self.ends[end].lives, self.now);
        if self.ends[end].hangs {
            return;
        }
        let Some(process) = &mut self.ends[end].process else {
            return;
        };
        for output in settle(process, now) {
            match output {
                ProcessOutput::Frame(frame) => {
                    self.cross(end, Crossing::FromDaemon(lives, frame.encode()));
                }
                // Its last frames arrive before its end is noticed.
                ProcessOutput::Exit => self.ends[end].process = None,
            }
        }
    }
    fn arrives(&mut self, end: usize, crossing: Crossing) {
        let lives = self.ends[end].lives;
        match crossing {
            Crossing::Sdu(sdu) if !self.cut => self.tell(end, ChannelInput::Sdu(&sdu)),
            Crossing::ToDaemon(life, frame) if life == lives && !self.ends[end].hangs => {
                let frame = Numbered::decode(&frame).expect("own message");
                self.tell_process(end, ProcessInput::Frame(frame));
            }
            Crossing::FromDaemon(life, frame) if life == lives => {
                let frame: Numbered<_> = Numbered::decode(&frame).expect("own message");
                let said = ProcessEvent::Said(frame.message);
                self.tell(end, ChannelInput::Daemon(said));
            }
            _ => {}
        }
    }
    fn run(&mut self, time: Duration) {
        let until = self.now + time;
        loop {
            let arrival = self.crossings.keys().next().map(|(at, _)| *at);
            let ends = self.ends.iter();
            let timers = ends.flat_map(|end| {
                let awake = end.process.as_ref().filter(|_| !end.hangs);
                let process = awake.and_then(Machine::poll_timeout);
                [process, end.channel.poll_timeout()]
            });
            let next = timers.flatten().chain(arrival).min();
            let Some(next) = next.filter(|at| *at <= until) else {
                break;
            };
            self.now = self.now.max(next);
            if let Some(entry) = self.crossings.first_entry()
                && entry.key().0 <= self.now
            {
                let (end, crossing) = entry.remove();
                self.arrives(end, crossing);
            }
            for end in [NETWORK, USER] {
                let now = self.now;
                self.ends[end].channel.handle_timeout(now);
                self.drain(end);
                if let Some(process) = &mut self.ends[end].process
                    && !self.ends[end].hangs
                {
                    process.handle_timeout(now);
                }
                self.drain_process(end);
            }
        }
        self.now = until;
    }
    fn take(&mut self, end: usize) -> Vec<Event> {
        core::mem::take(&mut self.ends[end].events)
    }
    fn addresses(&self, end: usize) -> &[AtmAddress] {
        self.ends[end].channel.addresses()
    }
    fn state(&self, end: usize) -> State {
        self.ends[end].channel.snapshot().state
    }
}

/// The place of the control half changes only the time of the way between the halves.
#[test]
fn two_processes_have_the_results_of_one() {
    let mut events = Vec::new();
    for split in [false, true] {
        let mut line = Line::with([network(), user()], split);
        line.run(Duration::from_secs(10));
        line.tell(NETWORK, ChannelInput::SetPrefixes(vec![OTHER]));
        line.run(Duration::from_secs(10));
        line.tell(USER, ChannelInput::Line(false));
        line.run(Duration::from_secs(60));
        line.tell(USER, ChannelInput::Line(true));
        line.run(Duration::from_secs(60));
        let [a, b] = [NETWORK, USER].map(|end| {
            let shown = line.ends[end].channel.snapshot();
            let counters = shown.counters;
            assert_eq!((counters.bad, counters.full), (0, 0));
            (line.take(end), shown.state, shown.addresses, shown.services)
        });
        assert_eq!(a.2, [mib::address(OTHER, ESI)]);
        events.push((a, b));
    }
    assert_eq!(events[0], events[1]);
}

/// A daemon is killed at either end: at its own end no result changes, and its successor confirms what it finds.
#[test]
fn results_stay_while_a_daemon_is_away_and_its_successor_confirms_them() {
    for end in [NETWORK, USER] {
        let mut line = Line::up();
        line.run(Duration::from_secs(8));
        line.dies(end);
        assert_eq!(line.state(end), State::Stopped);
        line.run(Duration::from_secs(2));
        assert_eq!(line.addresses(end), [own()]);
        line.comes(end);
        line.run(Duration::from_secs(2));
        assert_eq!(line.state(end), State::Verifying);
        // Past the time at which it would have withdrawn the address.
        line.run(GIVES_UP * 3);
        let gone = |event: &Event| {
            matches!(
                event,
                Event::Registered(_, false) | Event::Address(_, false) | Event::Down
            )
        };
        let events = line.take(end);
        assert!(!events.iter().any(gone), "{events:?}");
        assert_eq!(line.addresses(NETWORK), [own()]);
        assert_eq!(line.addresses(USER), [own()]);
        // The cold start trap has told the other end, which has registered again.
        let events = line.take(1 - end);
        assert_eq!(events.iter().filter(|event| gone(event)).count(), 2);
        let counters = line.ends[end].channel.daemon_counters();
        assert_eq!((counters.started, counters.ended), (2, 1));
        assert_eq!(counters.refused, 0);
    }
}

/// The host has gone while there was no daemon: its address is not confirmed.
#[test]
fn what_the_other_side_does_not_confirm_ends() {
    for (end, event) in [
        (NETWORK, Event::Registered(own(), false)),
        (USER, Event::Address(own(), false)),
    ] {
        let mut line = Line::up();
        line.dies(end);
        line.cut = true;
        line.run(Duration::from_secs(600));
        assert_eq!(
            line.addresses(end),
            [own()],
            "no message has said otherwise"
        );
        line.comes(end);
        line.run(GIVES_UP - DELAY);
        assert_eq!(line.addresses(end), [own()]);
        line.run(Duration::from_secs(1));
        assert_eq!(line.take(end), [event, Event::Down]);
        assert!(line.addresses(end).is_empty());
        line.cut = false;
        line.run(Duration::from_secs(30));
        assert_eq!(line.addresses(NETWORK), [own()]);
        assert_eq!(line.addresses(USER), [own()]);
    }
}

/// Another prefix was configured while the daemon of the host was away.
#[test]
fn a_successor_gives_up_the_address_under_a_former_prefix() {
    let mut line = Line::up();
    line.dies(USER);
    line.tell(NETWORK, ChannelInput::SetPrefixes(vec![OTHER]));
    line.run(Duration::from_secs(10));
    line.comes(USER);
    line.run(Duration::from_secs(5));
    let new = mib::address(OTHER, ESI);
    assert_eq!(line.addresses(USER), [own(), new]);
    line.run(GIVES_UP);
    assert_eq!(line.addresses(USER), [new]);
    assert_eq!(line.addresses(NETWORK), [new]);
}

#[test]
fn the_end_of_the_line_ends_the_results_without_a_daemon_too() {
    for end in [NETWORK, USER] {
        let mut line = Line::up();
        line.dies(end);
        line.tell(end, ChannelInput::Line(false));
        let gone = match end {
            NETWORK => Event::Registered(own(), false),
            _ => Event::Address(own(), false),
        };
        assert_eq!(line.take(end), [gone, Event::Down]);
        line.comes(end);
        line.run(Duration::from_secs(1));
        line.tell(end, ChannelInput::Line(true));
        line.run(Duration::from_secs(60));
        assert_eq!(line.addresses(NETWORK), [own()]);
        assert_eq!(line.addresses(USER), [own()]);
    }
}

/// A message that the daemon sent before it heard of the end of the line does not bring results back.
#[test]
fn results_that_cross_the_end_of_the_line_are_stale() {
    let mut line = Line::up();
    let services = FromIlmid::Services(Vec::new());
    line.tell(USER, ChannelInput::Line(false));
    line.take(USER);
    for message in [
        FromIlmid::Address {
            address: own(),
            usable: true,
        },
        services,
    ] {
        let said = ProcessEvent::Said(FromDaemon::Message(message));
        line.tell(USER, ChannelInput::Daemon(said));
    }
    assert_eq!(line.take(USER), []);
    assert_eq!(line.ends[USER].channel.daemon_counters().stale, 2);
}

/// A daemon that hangs is replaced: the SDUs that it has not read are lost, and nothing else.
#[test]
fn a_daemon_that_hangs_and_is_replaced_costs_no_result() {
    for end in [NETWORK, USER] {
        let mut line = Line::up();
        line.ends[end].hangs = true;
        line.run(Duration::from_secs(2));
        line.dies(end);
        line.run(Duration::from_millis(100));
        line.comes(end);
        line.run(GIVES_UP * 2);
        for end in [NETWORK, USER] {
            assert_eq!(line.addresses(end), [own()]);
            assert_eq!(line.state(end), State::Verifying);
        }
        let gone = line.take(end);
        assert!(!gone.contains(&Event::Down), "{gone:?}");
    }
}

#[test]
fn a_daemon_that_is_asked_to_end_withdraws_everything_and_one_that_begins_anew_nothing() {
    for end in [NETWORK, USER] {
        let mut line = Line::up();
        line.signal(end, Signal::Reload);
        line.run(GIVES_UP * 2);
        let events = line.take(end);
        assert!(!events.contains(&Event::Down), "{events:?}");
        assert_eq!(line.addresses(end), [own()]);
        line.take(1 - end);
        line.signal(end, Signal::Terminate);
        line.run(Duration::from_secs(2));
        assert!(line.ends[end].process.is_none(), "it has exited");
        assert!(line.addresses(NETWORK).is_empty());
        let gone = match end {
            // The host's own address ends with the prefix.
            NETWORK => (line.take(USER), Event::Address(own(), false)),
            _ => (line.take(NETWORK), Event::Registered(own(), false)),
        };
        let before = if end == NETWORK { 1 } else { 2 };
        assert!(
            gone.0.len() <= before && gone.0.contains(&gone.1),
            "{gone:?}"
        );
        line.dies(end);
        line.comes(end);
        line.run(Duration::from_secs(20));
        assert_eq!(line.addresses(NETWORK), [own()]);
        assert_eq!(line.addresses(USER), [own()]);
    }
}

#[test]
fn an_address_that_another_port_has_is_refused_through_the_boundary() {
    for split in [false, true] {
        let mut line = Line::with([network(), user()], split);
        line.taken.insert(own());
        line.run(Duration::from_secs(3));
        assert!(line.addresses(NETWORK).is_empty() && line.addresses(USER).is_empty());
        let shown = line.ends[USER].channel.snapshot();
        assert_eq!(shown.counters.errors_received, 1);
        // The refused address does not become usable at the next poll either.
        line.run(Duration::from_secs(30));
        assert!(line.addresses(NETWORK).is_empty() && line.addresses(USER).is_empty());
    }
}

/// While the owner decides, further messages wait, so their responses keep their order. Their number is bounded.
#[test]
fn messages_wait_for_a_decision_in_order_and_within_a_bound() {
    let mut end = super::Pair::up().ends.into_iter().next().unwrap();
    let now = Instant::from_secs(50);
    let other = mib::address(PREFIX, MacAddr([2, 0, 0, 0, 0, 9]));
    let say = |end: &mut Ime, sdu: &[u8]| {
        end.handle_input(Input::Message { sdu }, now).unwrap();
        settle(end, now)
    };
    let claims = say(&mut end, &registering(&[other], mib::VALID));
    let [Output::Claim { claim, addresses }, ..] = &claims[..] else {
        panic!("{claims:?}");
    };
    assert_eq!(addresses[..], [other]);
    for _ in 0..20 {
        assert_eq!(say(&mut end, &registering(&[other], mib::INVALID)), []);
    }
    assert_eq!(end.snapshot().counters.unread, 4);
    // An answer to another claim changes nothing.
    for claim in [claim.wrapping_add(1), *claim] {
        let refused = None;
        end.handle_input(Input::Claimed { claim, refused }, now)
            .unwrap();
    }
    let outputs = settle(&mut end, now);
    let events = outputs.iter().filter_map(|output| match output {
        Output::Event(event) => Some(event.clone()),
        _ => None,
    });
    assert_eq!(
        events.collect::<Vec<_>>(),
        [
            Event::Registered(other, true),
            Event::Registered(other, false)
        ]
    );
    let sent = |output: &&Output| matches!(output, Output::Send(_));
    assert_eq!(outputs.iter().filter(sent).count(), 17);
}

/// One request with several addresses cannot pass the limit, and is granted or refused as a whole.
#[test]
fn a_request_with_many_addresses_obeys_the_limit() {
    let mut config = network();
    config.limits.addresses = 3;
    let mut end = Ime::new(config);
    let now = Instant::from_secs(1);
    end.handle_input(Input::Start, now).unwrap();
    // The peer's versions are not needed for this, but the prefix is.
    let mut pair = super::Pair::up();
    core::mem::swap(&mut pair.ends[NETWORK], &mut end);
    pair.run(Duration::from_secs(10));
    assert_eq!(pair.ends[NETWORK].snapshot().addresses, [own()]);
    let of = |n: u8| mib::address(PREFIX, MacAddr([2, 0, 0, 0, 0, n]));
    let answers = |pair: &mut super::Pair, all: &[AtmAddress]| {
        let sdu = registering(all, mib::VALID);
        pair.tell(NETWORK, Input::Message { sdu: &sdu });
        pair.ends[NETWORK].snapshot().addresses.len()
    };
    assert_eq!(answers(&mut pair, &[of(1), of(2), of(3)]), 1);
    assert_eq!(answers(&mut pair, &[of(1), of(2)]), 3);
    assert_eq!(pair.ends[NETWORK].snapshot().counters.full, 1);
    // The same for prefixes at the user side.
    let name = |n| mib::of_prefix([n; 13]);
    let value = Value::Integer(mib::VALID);
    let bindings = (1..20).map(|n| Binding::new(name(n), value.clone()));
    let answer = super::ask(&mut pair.ends[USER], Kind::Set, bindings.collect());
    assert_ne!(answer.status, ErrorStatus::NO_ERROR);
    assert_eq!(pair.ends[USER].snapshot().prefixes, [PREFIX]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// A daemon that tells lies: results stay within the limits and belong to this end, and its successor repairs them.
    #[test]
    fn lies_of_a_daemon_stay_within_the_limits(
        seed: u64,
        steps in prop::collection::vec((0_u8..7, any::<u8>(), 0_u64..500), 1..120),
        end in 0_usize..2,
    ) {
        let mut line = Line::up();
        let mut random = Random::new(seed);
        for (what, n, wait) in steps {
            let mut address = mib::address(PREFIX, MacAddr([2, 0, 0, 0, 0, n]));
            if n % 7 == 0 {
                address.0[n as usize % 20] ^= n;
            }
            let claim = n.into();
            let message = match what {
                0 => sample(&mut random),
                1 => FromDaemon::Message(FromIlmid::Claim { claim, addresses: vec![address] }),
                2 => FromDaemon::Message(FromIlmid::Address { address, usable: n % 4 != 0 }),
                3 => FromDaemon::Message(FromIlmid::Withdrawn(address)),
                4 => FromDaemon::Message(FromIlmid::Services(vec![address; n.into()])),
                5 => FromDaemon::Atm(AtmRequest::Send { conn: MANAGEMENT, sdu: vec![n; 20] }),
                _ => FromDaemon::Message(sample(&mut random)),
            };
            line.tell(end, ChannelInput::Daemon(ProcessEvent::Said(message)));
            let channel = &line.ends[end].channel;
            let limits = &channel.config.limits;
            prop_assert!(channel.addresses().len() <= limits.addresses);
            prop_assert!(channel.services().is_none_or(|all| all.len() <= limits.services));
            for address in channel.addresses() {
                match end {
                    NETWORK => prop_assert_eq!(address.prefix(), PREFIX),
                    _ => prop_assert_eq!(address.esi(), ESI),
                }
            }
            line.run(Duration::from_millis(wait));
        }
        line.dies(end);
        line.comes(end);
        line.run(GIVES_UP * 4);
        prop_assert_eq!(line.addresses(NETWORK), [own()]);
        prop_assert_eq!(line.addresses(USER), [own()]);
    }
}

/// Requests of the daemon to the ATM service other than an SDU for its channel are refused.
#[test]
fn a_daemon_may_only_send_on_its_channel() {
    let mut line = Line::up();
    let sap = aerostat_wire::Sap::LLC;
    let sdu = vec![1];
    for request in [
        AtmRequest::listen(own(), sap, 1),
        AtmRequest::Send {
            conn: crate::ConnId(5),
            sdu,
        },
        AtmRequest::Send {
            conn: MANAGEMENT,
            sdu: Vec::new(),
        },
    ] {
        let said = ProcessEvent::Said(FromDaemon::Atm(request));
        line.tell(USER, ChannelInput::Daemon(said));
    }
    assert_eq!(line.ends[USER].channel.daemon_counters().refused, 3);
    // A channel whose control half is in this process takes no messages of another process.
    let mut here = Channel::new(user());
    let came = ChannelInput::Daemon(ProcessEvent::Came);
    assert!(here.handle_input(came, Instant::ZERO).is_err());
}

/// Many permanent connections reach the other side through the boundary.
#[test]
fn permanent_connections_cross_the_boundary_in_parts() {
    use aerostat_wire::{TrafficParams, Vc};
    let pvc = |n: u16| Pvc {
        vc: Vc::new(0, 100 + n),
        path: false,
        tx: TrafficParams::ubr(100),
        rx: TrafficParams::ubr(100),
        status: PvcStatus::LocalUp,
    };
    let pvcs: Vec<Pvc> = (0..1300).map(pvc).collect();
    let mut line = Line::up();
    line.tell(NETWORK, ChannelInput::SetPvcs(pvcs.clone()));
    line.run(Duration::from_secs(1));
    let count = |line: &Line| {
        let process = line.ends[NETWORK].process.as_ref();
        let ime = process.and_then(|p| p.daemon(0)?.ime());
        ime.map_or(0, |ime| ime.config.pvcs.len())
    };
    assert_eq!(count(&line), pvcs.len());
    line.dies(NETWORK);
    line.comes(NETWORK);
    line.run(Duration::from_secs(1));
    assert_eq!(count(&line), pvcs.len());
}
