//! Clients whose control part is in a process of its own: the effects of its deaths.

mod deaths;
mod lies;
mod many;

use super::*;
use aerostat_proto::AtmRequest;
use aerostat_proto::lane::lec::split::{FromLecd, ToLecd};
use aerostat_proto::lane::lec::{GRACE, LecDaemon, LecState};
use aerostat_proto::split::codec::Message as _;
use aerostat_proto::split::{
    Ended, FromDaemon, Numbered, Process, ProcessEvent, ProcessInput, ProcessOutput, Signal,
    ToDaemon,
};
use aerostat_testing::messages::Random;
use aerostat_wire::lane::Tlv;
use aerostat_wire::{Qos, Sap};
use core::convert::Infallible;
use std::collections::{BTreeSet, VecDeque};

type Lecd = Process<LecDaemon>;
type To = Numbered<ToDaemon<ToLecd>>;
type From = Numbered<FromDaemon<FromLecd>>;

/// The lab's end of the socket.
const fn event(event: ProcessEvent<FromDaemon<FromLecd>>) -> lec::Input<'static> {
    lec::Input::Lecd(event)
}
fn said(message: FromLecd) -> lec::Input<'static> {
    event(ProcessEvent::Said(FromDaemon::Message(message)))
}

/// A client and its daemon's process. Their socket takes `delay`.
struct Split {
    lec: Lec,
    lecd: Option<Lecd>,
    delay: Duration,
    to_lecd: VecDeque<(Instant, Vec<u8>)>,
    from_lecd: VecDeque<(Instant, Vec<u8>)>,
    /// The process dies after this many messages.
    dies_after: Option<usize>,
    said: usize,
    /// Associations that the user was told of, without those that have ended.
    associated: BTreeSet<MacAddr>,
    out: VecDeque<lec::Output>,
}

impl Split {
    fn new(config: LecConfig, delay: Duration) -> Self {
        let mut lec = Lec::split(config);
        lec.handle_input(event(ProcessEvent::Came), Instant::ZERO)
            .unwrap();
        Self {
            lec,
            lecd: Some(Lecd::default()),
            delay,
            to_lecd: VecDeque::new(),
            from_lecd: VecDeque::new(),
            dies_after: None,
            said: 0,
            associated: BTreeSet::new(),
            out: VecDeque::new(),
        }
    }
    fn input(&mut self, input: lec::Input<'_>, now: Instant) {
        self.lec.handle_input(input, now).unwrap();
        self.exchange(now);
    }
    /// `kill -9`. Messages that are sent already still arrive.
    fn kill(&mut self, now: Instant) {
        self.lecd = None;
        self.to_lecd.clear();
        self.dies_after = None;
        for (_, frame) in core::mem::take(&mut self.from_lecd) {
            self.hear(&frame, now);
        }
        self.input(event(ProcessEvent::Gone), now);
    }
    fn come(&mut self, now: Instant) {
        self.lecd = Some(Lecd::default());
        self.said = 0;
        self.input(event(ProcessEvent::Came), now);
    }
    fn signal(&mut self, signal: Signal, now: Instant) {
        let lecd = self.lecd.as_mut().unwrap();
        lecd.handle_input(ProcessInput::Signal(signal), now)
            .unwrap();
        self.exchange(now);
    }
    fn hear(&mut self, frame: &[u8], now: Instant) {
        let frame = From::decode(frame).unwrap();
        assert_eq!(frame.number, 4);
        let input = event(ProcessEvent::Said(frame.message));
        self.lec.handle_input(input, now).unwrap();
    }
    /// Delivers everything that is due.
    fn exchange(&mut self, now: Instant) {
        loop {
            let mut moved = false;
            while let Some(output) = self.lec.poll_output() {
                moved = true;
                self.sort(output, now);
            }
            while let Some(output) = self.lecd.as_mut().and_then(Lecd::poll_output) {
                moved = true;
                if self.dies_after == Some(self.said) {
                    self.kill(now);
                    break;
                }
                self.said += 1;
                match output {
                    ProcessOutput::Frame(message) => {
                        let at = now + self.delay;
                        self.from_lecd.push_back((at, message.encode()));
                    }
                    ProcessOutput::Exit => self.kill(now),
                }
            }
            while self.from_lecd.front().is_some_and(|(at, _)| *at <= now) {
                moved = true;
                let (_, frame) = self.from_lecd.pop_front().unwrap();
                self.hear(&frame, now);
            }
            while self.to_lecd.front().is_some_and(|(at, _)| *at <= now) {
                moved = true;
                let (_, frame) = self.to_lecd.pop_front().unwrap();
                let frame = To::decode(&frame).unwrap();
                if let Some(lecd) = &mut self.lecd {
                    lecd.handle_input(ProcessInput::Frame(frame), now).unwrap();
                }
            }
            if !moved {
                return;
            }
        }
    }
    fn sort(&mut self, output: lec::Output, now: Instant) {
        match &output {
            lec::Output::Lecd(message) => {
                let (number, message) = (4, message.clone());
                let frame = Numbered { number, message }.encode();
                return self.to_lecd.push_back((now + self.delay, frame));
            }
            lec::Output::News(lec::News::Associate { mac, .. }) => {
                self.associated.insert(*mac);
            }
            lec::Output::News(lec::News::Dissociate { mac }) => {
                assert!(self.associated.remove(mac), "{mac} was not associated");
            }
            lec::Output::News(lec::News::Left) => {
                assert!(self.associated.is_empty(), "left with associations")
            }
            _ => {}
        }
        self.out.push_back(output);
    }
}

enum User {
    Server(Node),
    Split(Box<Split>),
}

impl Machine for User {
    type Input<'a> = AtmEvent<&'a [u8]>;
    type Output = UserOutput<Note>;
    type Refusal = Infallible;

    fn handle_input(&mut self, event: AtmEvent<&[u8]>, now: Instant) -> Result<(), Infallible> {
        self.event(event, now);
        Ok(())
    }
    fn handle_timeout(&mut self, now: Instant) {
        match self {
            Self::Server(node) => node.handle_timeout(now),
            Self::Split(m) => {
                m.lec.handle_timeout(now);
                if let Some(lecd) = &mut m.lecd {
                    lecd.handle_timeout(now);
                }
                m.exchange(now);
            }
        }
    }
    fn poll_output(&mut self) -> Option<UserOutput<Note>> {
        match self {
            Self::Server(node) => node.poll_output(),
            Self::Split(m) => Some(match m.out.pop_front()? {
                lec::Output::Atm(request) => UserOutput::Atm(request),
                lec::Output::Trace(trace) => UserOutput::Other(Note::Trace(trace)),
                other => UserOutput::Other(Note::Lec(other)),
            }),
        }
    }
    fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::Server(node) => node.poll_timeout(),
            Self::Split(m) => {
                let waiting = [&m.to_lecd, &m.from_lecd];
                let waiting = waiting.into_iter().filter_map(|queue| queue.front());
                let lecd = m.lecd.as_ref().and_then(Lecd::poll_timeout);
                let all = waiting.map(|(at, _)| *at).chain(lecd);
                all.chain(m.lec.poll_timeout()).min()
            }
        }
    }
}

impl AtmUser for User {
    type Other = Note;

    fn event(&mut self, event: AtmEvent<&[u8]>, now: Instant) {
        match self {
            Self::Server(node) => node.event(event, now),
            Self::Split(m) => m.input(lec::Input::Atm(event), now),
        }
    }
    fn sort(output: UserOutput<Note>) -> UserOutput<Note> {
        output
    }
}

fn relay(who: usize, note: &Note, users: &mut [User], now: Instant) -> Option<usize> {
    let Note::Member(address, ref member) = *note else {
        return None;
    };
    let User::Server(Node::Bus(bus)) = &mut users[who + 1] else {
        panic!("no BUS behind the LES");
    };
    let member = member.clone();
    let input = bus::Input::Member { address, member };
    bus.handle_input(input, now).unwrap();
    Some(who + 1)
}

type Splits = World<User>;

fn begin(w: &mut Splits, who: usize) {
    w.with(who, |user, now| match user {
        User::Server(Node::Les(m)) => m.handle_input(les::Input::Start, now).unwrap(),
        User::Server(Node::Bus(m)) => m.handle_input(bus::Input::Start, now).unwrap(),
        User::Server(Node::Lecs(m)) => m.handle_input(lecs::Input::Start, now).unwrap(),
        User::Server(Node::Lec(m)) => m.handle_input(lec::Input::Start, now).unwrap(),
        User::Split(m) => m.input(lec::Input::Start, now),
    });
}

/// Servers and `n` split clients that have joined.
fn split_world(n: u8, delay: Duration) -> Splits {
    split_world_with(n, delay, |_, config| config)
}
fn split_world_with(n: u8, delay: Duration, change: fn(u8, LecConfig) -> LecConfig) -> Splits {
    let mut w = World::new(Duration::from_millis(1));
    w.relay = Some(relay);
    for node in [new_lecs(), new_les(), new_bus()] {
        w.add(User::Server(node));
    }
    for client in 0..n {
        let config = LecConfig {
            tlvs: vec![tlv(client)],
            ..lec_config(client)
        };
        let config = change(client, config);
        w.add(User::Split(Box::new(Split::new(config, delay))));
    }
    for who in 0..w.users.len() {
        begin(&mut w, who);
    }
    w.run_until(Instant::from_secs(40));
    for who in LEC0..w.users.len() {
        assert_eq!(client(&w, who).lec.state(), LecState::Operational);
    }
    w.take_notes();
    w
}

fn tlv(n: u8) -> Tlv {
    mps(n).to_tlv()
}

fn client(w: &Splits, who: usize) -> &Split {
    match &w.users[who] {
        User::Split(m) => m,
        User::Server(_) => panic!("user {who} is no split client"),
    }
}
fn with(w: &mut Splits, who: usize, f: impl FnOnce(&mut Split, Instant)) {
    w.with(who, |user, now| match user {
        User::Split(m) => f(m, now),
        User::Server(_) => panic!("user {who} is no split client"),
    });
}
fn transmit(w: &mut Splits, from: usize, to: usize, number: u32) {
    let octets = frame(from, mac((to - LEC0 + 1) as u8), number);
    with(w, from, |m, now| m.input(lec::Input::Transmit(octets), now));
}
fn members(w: &Splits) -> usize {
    match &w.users[LES] {
        User::Server(Node::Les(les)) => les.snapshot().clients.len(),
        _ => panic!("no LES"),
    }
}
fn arrived(notes: &[(Instant, usize, Note)], who: usize) -> Vec<u32> {
    let frames = notes.iter().filter_map(|(_, from, note)| match note {
        Note::Lec(lec::Output::Deliver(frame)) if *from == who => Some(frame),
        _ => None,
    });
    frames
        .map(|frame| u32::from_be_bytes(frame[14..18].try_into().unwrap()))
        .collect()
}
fn names(notes: &[(Instant, usize, Note)], who: usize) -> Vec<&'static str> {
    let traces = notes.iter().filter_map(|(_, from, note)| match note {
        Note::Trace(trace) if *from == who => Some(trace.name),
        _ => None,
    });
    traces.collect()
}
/// Stops everything; no connection is left.
fn end(mut w: Splits) {
    for who in LEC0..w.users.len() {
        with(&mut w, who, |m, now| m.input(lec::Input::Stop, now));
    }
    w.run_for(Duration::from_secs(2));
    for who in [BUS, LES, LECS] {
        w.with(who, |user, now| match user {
            User::Server(Node::Les(m)) => m.handle_input(les::Input::Stop, now).unwrap(),
            User::Server(Node::Bus(m)) => m.handle_input(bus::Input::Stop, now).unwrap(),
            User::Server(Node::Lecs(m)) => m.handle_input(lecs::Input::Stop, now).unwrap(),
            User::Server(Node::Lec(_)) | User::Split(_) => {}
        });
    }
    w.run_for(Duration::from_secs(5));
    assert_eq!(w.net.calls(), 0, "connections left over");
    assert_eq!(w.net.misuse, 0, "requests for connections that are none");
    for user in &w.users {
        assert_eq!(user.poll_timeout(), None, "a stopped machine has a timer");
    }
}

const SLOW: Duration = Duration::from_millis(3);

#[test]
fn a_client_whose_control_part_is_away_is_a_client() {
    for delay in [Duration::ZERO, SLOW] {
        let mut w = split_world(3, delay);
        for number in 0..20 {
            for (from, to) in [(0, 1), (1, 0), (2, 1)] {
                transmit(&mut w, LEC0 + from, LEC0 + to, number + 100 * from as u32);
            }
            w.run_for(Duration::from_millis(20));
        }
        w.run_for(Duration::from_secs(1));
        let notes = w.take_notes();
        assert_eq!(arrived(&notes, LEC0), (100..120).collect::<Vec<_>>());
        let (from_0, from_2): (Vec<u32>, Vec<u32>) =
            arrived(&notes, LEC0 + 1).iter().partition(|n| **n < 200);
        assert_eq!(from_0, (0..20).collect::<Vec<_>>());
        assert_eq!(from_2, (200..220).collect::<Vec<_>>());
        let shown = client(&w, LEC0).lec.snapshot();
        // Two connections with the LES, two with the BUS, one with each peer or two that crossed.
        let count = shown.connections.len();
        assert!((5..=7).contains(&count), "{:?}", shown.connections);
        assert_eq!((shown.lecid, shown.control.joins), (1, 1));
        assert_eq!(shown.seat.refused, 0);
        let row = shown.cache.iter().find(|row| row.mac == mac(2)).unwrap();
        assert!(row.vc.is_some() && row.atm == Some(address(2)), "{row:?}");
        // The user asks and gets answers.
        for asked in [mac(2), mac(1), mac(0x66)] {
            let ask = lec::Input::Resolve { mac: asked };
            with(&mut w, LEC0, |m, now| m.input(ask, now));
        }
        w.run_for(Duration::from_secs(5));
        let notes = w.take_notes();
        let answers = notes.iter().filter_map(|(_, _, note)| match note {
            Note::Lec(lec::Output::News(lec::News::Resolved { mac, owner })) => {
                Some((*mac, owner.as_ref().map(|owner| owner.0)))
            }
            _ => None,
        });
        let answers: BTreeSet<_> = answers.collect();
        let expected = [
            (mac(2), Some(address(2))),
            (mac(1), Some(address(1))),
            (mac(0x66), None),
        ];
        assert_eq!(answers, expected.into());
        end(w);
    }
}

#[test]
fn a_daemon_that_dies_stops_no_traffic_and_the_next_goes_on() {
    for delay in [Duration::ZERO, SLOW] {
        let mut w = split_world(3, delay);
        transmit(&mut w, LEC0, LEC0 + 1, 0);
        w.run_for(Duration::from_secs(10));
        w.take_notes();
        let (calls, lecid) = (w.net.calls(), client(&w, LEC0).lec.snapshot().lecid);
        let associated = client(&w, LEC0).associated.clone();
        assert!(!associated.is_empty());
        for number in 1..400 {
            match number {
                100 => with(&mut w, LEC0, Split::kill),
                200 => with(&mut w, LEC0, Split::come),
                _ => {}
            }
            transmit(&mut w, LEC0, LEC0 + 1, number);
            transmit(&mut w, LEC0 + 1, LEC0, number);
            let octets = frame(LEC0, MacAddr::BROADCAST, 1000 + number);
            with(&mut w, LEC0, |m, now| {
                m.input(lec::Input::Transmit(octets), now);
            });
            w.run_for(Duration::from_millis(20));
        }
        w.run_for(Duration::from_secs(1));
        let notes = w.take_notes();
        let numbers: Vec<u32> = (1..400).collect();
        assert_eq!(arrived(&notes, LEC0), numbers);
        let (unicast, group): (Vec<u32>, Vec<u32>) =
            arrived(&notes, LEC0 + 1).iter().partition(|n| **n < 1000);
        assert_eq!(unicast, numbers);
        let groups: Vec<u32> = (1001..1400).collect();
        assert_eq!(group, groups);
        assert_eq!(arrived(&notes, LEC0 + 2), groups);
        let path = "lane.direct-path";
        assert_eq!(
            names(&notes, LEC0),
            ["lane.unattended", "lane.adopted", path]
        );
        assert!(!notes.iter().any(|(_, _, note)| matches!(
            note,
            Note::Member(..)
                | Note::Lec(
                    lec::Output::News(lec::News::Left)
                        | lec::Output::News(lec::News::Joined { .. })
                )
                | Note::Lec(lec::Output::News(lec::News::Dissociate { .. }))
        )));
        let shown = client(&w, LEC0).lec.snapshot();
        assert_eq!((shown.state, shown.lecid), (LecState::Operational, lecid));
        assert_eq!((shown.control.joins, shown.control.losses), (1, 0));
        assert_eq!(shown.seat.refused, 0);
        assert_eq!(client(&w, LEC0).associated, associated);
        assert_eq!(w.net.calls(), calls, "no more connections, and no fewer");
        end(w);
    }
}

/// An unknown peer finds the client, and is found, after its daemon has restarted.
#[test]
fn who_calls_and_asks_meanwhile_waits_for_the_next_daemon() {
    let mut w = split_world(3, Duration::ZERO);
    with(&mut w, LEC0, Split::kill);
    // Client 2 resolves client 0 and calls it; client 0 wants client 1. No request is answered, no call is refused.
    for number in 0..5 {
        transmit(&mut w, LEC0 + 2, LEC0, number);
        transmit(&mut w, LEC0, LEC0 + 1, number);
    }
    let ask = |asked| lec::Input::Resolve { mac: asked };
    with(&mut w, LEC0, |m, now| m.input(ask(mac(2)), now));
    w.run_for(Duration::from_millis(500));
    let tlvs = vec![tlv(9)];
    with(&mut w, LEC0, |m, now| {
        m.input(lec::Input::SetTlvs(tlvs.clone()), now);
    });
    with(&mut w, LEC0, Split::come);
    w.run_for(Duration::from_secs(8));
    for number in 5..9 {
        transmit(&mut w, LEC0 + 2, LEC0, number);
        transmit(&mut w, LEC0, LEC0 + 1, number);
        w.run_for(Duration::from_millis(100));
    }
    let notes = w.take_notes();
    let all: Vec<u32> = (0..9).collect();
    assert_eq!(arrived(&notes, LEC0), all);
    assert_eq!(arrived(&notes, LEC0 + 1), all);
    assert!(notes.iter().any(|(_, who, note)| *who == LEC0
        && matches!(note, Note::Lec(lec::Output::News(lec::News::Resolved { mac: asked, owner: Some(_) })) if *asked == mac(2))));
    for (from, to) in [(LEC0, mac(2)), (LEC0 + 2, mac(1))] {
        let cache = client(&w, from).lec.snapshot().cache;
        let row = cache.iter().find(|row| row.mac == to).unwrap();
        assert!(row.vc.is_some(), "{row:?}");
    }
    // Changes in the meantime are announced.
    let cache = client(&w, LEC0 + 1).lec.snapshot().cache;
    let row = cache.iter().find(|row| row.mac == mac(1)).unwrap();
    assert_eq!(row.tlvs, tlvs);
    end(w);
}

#[test]
fn nobody_comes_and_the_client_leaves_as_if_its_sockets_closed() {
    let mut w = split_world(2, Duration::ZERO);
    transmit(&mut w, LEC0, LEC0 + 1, 0);
    w.run_for(Duration::from_secs(1));
    with(&mut w, LEC0, Split::kill);
    w.run_for(GRACE - Duration::from_millis(1));
    assert_eq!(members(&w), 2);
    w.take_notes();
    let ask = lec::Input::Resolve { mac: mac(0x77) };
    with(&mut w, LEC0, |m, now| m.input(ask, now));
    w.run_for(Duration::from_millis(100));
    assert_eq!(members(&w), 1);
    let notes = w.take_notes();
    let told = |what: &dyn Fn(&lec::Output) -> bool| {
        let mut own = notes.iter().filter(|(_, who, _)| *who == LEC0);
        own.any(|(_, _, note)| matches!(note, Note::Lec(output) if what(output)))
    };
    assert!(told(&|o| *o == lec::Output::News(lec::News::Left)));
    assert!(told(&|o| matches!(
        o,
        lec::Output::News(lec::News::Dissociate { .. })
    )));
    assert!(told(&|o| matches!(
        o,
        lec::Output::News(lec::News::Resolved { owner: None, .. })
    )));
    let shown = client(&w, LEC0).lec.snapshot();
    assert_eq!((shown.state, shown.lecid), (LecState::Stopped, 0));
    assert!(shown.cache.is_empty() && shown.connections.is_empty());
    assert_eq!(shown.control.losses, 1);
    let left: Vec<usize> = w.net.roots(Sap::LANE_CONTROL);
    assert!(!left.contains(&LEC0), "{left:?}");

    with(&mut w, LEC0, Split::come);
    w.run_for(Duration::from_secs(1));
    assert_eq!(members(&w), 2);
    assert_eq!(client(&w, LEC0).lec.state(), LecState::Operational);
    end(w);
}

#[test]
fn a_server_that_goes_meanwhile_ends_the_membership() {
    let mut w = split_world(2, Duration::ZERO);
    with(&mut w, LEC0, Split::kill);
    let now = w.now;
    w.net.break_calls(LEC0, Sap::LANE_CONTROL, now);
    w.run_for(Duration::from_millis(100));
    assert_eq!(client(&w, LEC0).lec.state(), LecState::Stopped);
    with(&mut w, LEC0, Split::come);
    w.run_for(Duration::from_secs(12));
    assert_eq!(members(&w), 2);
    assert_eq!(client(&w, LEC0).lec.state(), LecState::Operational);
    end(w);
}

#[test]
fn what_may_have_killed_two_daemons_is_not_given_to_a_third() {
    let mut w = split_world(2, Duration::ZERO);
    for _ in 0..2 {
        with(&mut w, LEC0, Split::kill);
        with(&mut w, LEC0, Split::come);
        w.run_for(Duration::from_secs(2));
    }
    let notes = w.take_notes();
    let told = names(&notes, LEC0);
    let story: Vec<_> = told
        .iter()
        .filter(|name| ["lane.adopted", "lane.lost", "lane.joined"].contains(name))
        .collect();
    assert_eq!(story, [&"lane.adopted", &"lane.lost", &"lane.joined"]);
    // A daemon that has lived long enough has a successor that continues.
    w.run_for(Duration::from_secs(6));
    for _ in 0..2 {
        with(&mut w, LEC0, Split::kill);
        with(&mut w, LEC0, Split::come);
        w.run_for(Duration::from_secs(6));
    }
    let notes = w.take_notes();
    assert!(!names(&notes, LEC0).contains(&"lane.lost"));
    end(w);
}

#[test]
fn signals_leave_the_elan_in_good_order() {
    let mut w = split_world(2, SLOW);
    with(&mut w, LEC0, |m, now| m.signal(Signal::Reload, now));
    w.run_for(Duration::from_secs(1));
    assert_eq!(members(&w), 2);
    let notes = w.take_notes();
    let lefts = notes
        .iter()
        .filter(|(_, _, note)| matches!(note, Note::Lec(lec::Output::News(lec::News::Left))));
    assert_eq!(lefts.count(), 1);
    with(&mut w, LEC0, |m, now| m.signal(Signal::Terminate, now));
    w.run_for(Duration::from_secs(1));
    assert!(client(&w, LEC0).lecd.is_none());
    assert_eq!(members(&w), 1);
    assert_eq!(client(&w, LEC0).lec.state(), LecState::Stopped);
    assert!(!names(&w.take_notes(), LEC0).contains(&"lane.lost"));
    with(&mut w, LEC0, Split::come);
    w.run_for(Duration::from_secs(1));
    assert_eq!(members(&w), 2);
    // Stopped and started again before it has ended.
    with(&mut w, LEC0, |m, now| m.input(lec::Input::Stop, now));
    with(&mut w, LEC0, |m, now| m.input(lec::Input::Start, now));
    w.run_for(Duration::from_secs(1));
    assert_eq!(client(&w, LEC0).lec.state(), LecState::Operational);
    end(w);
}

/// An age is sent as a duration, although the clock of the next process has just started.
#[test]
fn a_binding_is_not_younger_for_the_next_daemon() {
    let mut w = split_world(2, Duration::ZERO);
    transmit(&mut w, LEC0, LEC0 + 1, 0);
    // The address was announced last 16 s after the join; C17 is 300 s.
    w.run_until(Instant::from_secs(300));
    with(&mut w, LEC0, Split::kill);
    with(&mut w, LEC0, Split::come);
    w.run_for(Duration::from_secs(5));
    w.take_notes();
    // No frame of the address arrives any more; the entry ends when it has aged, and not 300 s from now.
    let mute = Node::Lec(Box::new(Lec::new(lec_config(1))));
    w.replace(LEC0 + 1, User::Server(mute));
    w.run_for(Duration::from_secs(60));
    let notes = w.take_notes();
    assert!(notes.iter().any(|(_, who, note)| *who == LEC0
        && matches!(note, Note::Lec(lec::Output::News(lec::News::Dissociate { mac: gone })) if *gone == mac(2))));
    end_without(w, LEC0 + 1);
}

fn end_without(mut w: Splits, who: usize) {
    let fresh = Split::new(lec_config((who - LEC0) as u8), Duration::ZERO);
    w.replace(who, User::Split(Box::new(fresh)));
    end(w);
}

/// Groups change while there is no daemon: the next daemon tells the LES.
#[test]
fn groups_outlive_a_daemon() {
    let group = |n| MacAddr([1, 0, 0x5e, 0, 0, n]);
    let mut w = split_world_with(3, SLOW, |n, config| LecConfig {
        selective: n > 0,
        groups: vec![MacAddr([1, 0, 0x5e, 0, 0, n])],
        ..config
    });
    let got = |w: &mut Splits, to: MacAddr| {
        let octets = frame(LEC0, to, 1);
        with(w, LEC0, |m, now| m.input(lec::Input::Transmit(octets), now));
        w.run_for(Duration::from_millis(50));
        let notes = w.take_notes();
        [1, 2].map(|n| arrived(&notes, LEC0 + n).len())
    };
    assert_eq!(got(&mut w, group(1)), [1, 0]);
    let known = Some(vec![(group(1), true)]);
    assert_eq!(client(&w, LEC0 + 1).lec.snapshot().groups, known);
    with(&mut w, LEC0 + 1, Split::kill);
    let groups = vec![group(2), group(3)];
    with(&mut w, LEC0 + 1, |m, now| {
        m.input(lec::Input::SetGroups(groups), now);
    });
    w.run_for(Duration::from_secs(1));
    with(&mut w, LEC0 + 1, Split::come);
    w.run_for(Duration::from_secs(1));
    let known = [2, 3].map(|n| (group(n), true)).to_vec();
    assert_eq!(client(&w, LEC0 + 1).lec.snapshot().groups, Some(known));
    assert_eq!(got(&mut w, group(1)), [0, 0]);
    assert_eq!(got(&mut w, group(2)), [1, 1]);
    // The same while there is a daemon.
    with(&mut w, LEC0 + 1, |m, now| {
        m.input(lec::Input::SetGroups(Vec::new()), now);
    });
    w.run_for(Duration::from_secs(1));
    assert_eq!(got(&mut w, group(2)), [0, 1]);
    assert!(!names(&w.take_notes(), LEC0 + 1).contains(&"lane.lost"));
    end(w);
}
