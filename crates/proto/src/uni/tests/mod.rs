//! Scenarios of a user side against a network side in virtual time.

mod calls;
mod collisions;
mod errors;
mod hostile;
mod parties;
mod passing;
mod reasons;
mod recorded;
mod timeouts;

use aerostat_wire::q2931::{Ie, Message, MessageType, id};
use aerostat_wire::{AtmAddress, Blli, Qos, Vc};

use super::*;
use crate::machine::settle;
use crate::{Duration, Machine};

pub(super) const fn addr(n: u8) -> AtmAddress {
    let mut octets = [0; 20];
    octets[0] = 0x47;
    octets[18] = n;
    AtmAddress(octets)
}

pub(super) fn info(n: u8) -> SetupInfo {
    SetupInfo::new(addr(n), Some(addr(200)), Blli::LLC, Qos::ubr(1516))
}

pub(super) fn multipoint(n: u8) -> SetupInfo {
    SetupInfo {
        multipoint: true,
        qos: Qos::ubr_multipoint(1516),
        ..info(n)
    }
}

pub(super) const C1: CallId = CallId(1);
pub(super) const C2: CallId = CallId(2);
pub(super) const IN1: CallId = CallId(CallId::INCOMING);
pub(super) const VC1: Vc = Vc::new(0, 33);
pub(super) const VC2: Vc = Vc::new(0, 34);

/// One side with its indications and the messages of its peer.
#[derive(Debug)]
pub(super) struct End {
    pub(super) uni: Uni,
    pub(super) heard: Vec<Indication>,
    pub(super) sent: Vec<Message>,
}

impl End {
    fn new(side: Side, version: Version) -> Self {
        Self {
            uni: Uni::new(Params::new(side, version)),
            heard: Vec::new(),
            sent: Vec::new(),
        }
    }
    /// Indications since the last call, without `Up`.
    pub(super) fn take(&mut self) -> Vec<Indication> {
        self.heard.retain(|i| *i != Indication::Up);
        core::mem::take(&mut self.heard)
            .into_iter()
            .map(plain)
            .collect()
    }
    pub(super) fn state(&self, call: CallId) -> Option<CallState> {
        self.uni.calls().find(|c| c.call == call).map(|c| c.state)
    }
    /// Types of the messages sent since the last call.
    pub(super) fn kinds(&mut self) -> Vec<MessageType> {
        core::mem::take(&mut self.sent)
            .iter()
            .map(|m| m.kind)
            .collect()
    }
    /// The last message sent.
    pub(super) fn last(&self) -> &Message {
        self.sent.last().expect("a message")
    }
    pub(super) fn is_clean(&self) -> bool {
        let u = &self.uni;
        u.calls.is_empty() && u.ids.is_empty() && u.labels.is_empty() && u.timers.next().is_none()
    }
}

/// A user side (0) and a network side (1) with a link between them.
pub(super) struct Pair {
    pub(super) ends: [End; 2],
    pub(super) now: Instant,
    /// True if the link can be established.
    pub(super) cable: bool,
    /// Messages of these types are lost in both directions.
    pub(super) lossy: Vec<MessageType>,
    /// True if owners do not finish the restarts of their peers.
    pub(super) stuck: bool,
}

pub(super) const USER: usize = 0;
pub(super) const NET: usize = 1;

impl Pair {
    pub(super) fn new(version: Version) -> Self {
        let mut pair = Self {
            ends: [
                End::new(Side::User, version),
                End::new(Side::Network, version),
            ],
            now: Instant::from_secs(1),
            cable: true,
            lossy: Vec::new(),
            stuck: false,
        };
        pair.drain();
        assert!(pair.ends.iter().all(|end| end.heard == [Indication::Up]));
        pair.ends.iter_mut().for_each(|end| end.heard.clear());
        pair
    }
    pub(super) fn ask(&mut self, end: usize, request: Request) {
        self.try_ask(end, request).expect("request");
    }
    pub(super) fn try_ask(&mut self, end: usize, request: Request) -> Result<(), Refused> {
        let result = self.ends[end]
            .uni
            .handle_input(Input::Request(request), self.now);
        self.drain();
        result
    }
    /// Delivers a raw message to one end, as if its peer had sent it.
    pub(super) fn inject(&mut self, end: usize, octets: &[u8]) {
        let input = Input::SaalData(octets);
        self.ends[end]
            .uni
            .handle_input(input, self.now)
            .expect("peer bytes never fail");
        self.drain();
    }
    pub(super) fn inject_message(&mut self, end: usize, message: &Message) {
        self.inject(end, &message.encode());
    }
    /// Delivers messages until none is left.
    pub(super) fn drain(&mut self) {
        for _ in 0..1000 {
            let mut idle = true;
            for from in [USER, NET] {
                for output in settle(&mut self.ends[from].uni, self.now) {
                    idle = false;
                    self.carry(from, output);
                }
            }
            if idle {
                return;
            }
        }
        panic!("the two ends never stop");
    }
    fn carry(&mut self, from: usize, output: Output) {
        match output {
            Output::SaalData(octets) => {
                let mut decoded = Message::decode(&octets).expect("own messages decode");
                decoded.pass_along();
                assert_eq!(decoded.faults().count(), 0, "{decoded:?}");
                assert!(decoded.missing().is_empty(), "{decoded:?}");
                let lost = self.lossy.contains(&decoded.message.kind) || !self.cable;
                self.ends[from].sent.push(decoded.message);
                if !lost {
                    let input = Input::SaalData(&octets);
                    self.ends[1 - from]
                        .uni
                        .handle_input(input, self.now)
                        .expect("never");
                }
            }
            Output::SaalEstablish => {
                let down = self.ends.iter().all(|end| !end.uni.is_up());
                if self.cable && down {
                    for end in &mut self.ends {
                        end.uni
                            .handle_input(Input::SaalUp, self.now)
                            .expect("never");
                    }
                }
            }
            Output::Indication(indication) => {
                if let (Indication::Restarted { what }, false) = (&indication, self.stuck) {
                    let cleared = Request::RestartCleared { what: *what };
                    let input = Input::Request(cleared);
                    let uni = &mut self.ends[from].uni;
                    uni.handle_input(input, self.now).expect("the peer waits");
                }
                self.ends[from].heard.push(indication);
            }
            Output::Trace(_) => {}
        }
    }
    /// Lets time pass, from deadline to deadline.
    pub(super) fn run(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(next) = self.next().filter(|next| *next <= end) {
            self.now = next;
            self.drain();
        }
        self.now = end;
        self.drain();
    }
    fn next(&self) -> Option<Instant> {
        let deadlines = self.ends.iter().map(|end| end.uni.poll_timeout());
        deadlines.flatten().min()
    }
    pub(super) fn cut(&mut self) {
        self.cable = false;
        for end in &mut self.ends {
            end.uni
                .handle_input(Input::SaalDown, self.now)
                .expect("never");
        }
        self.drain();
    }
    pub(super) fn mend(&mut self) {
        self.cable = true;
        for end in &mut self.ends {
            end.uni
                .handle_input(Input::SaalUp, self.now)
                .expect("never");
        }
        self.drain();
    }
    pub(super) fn take(&mut self) -> [Vec<Indication>; 2] {
        let [user, net] = &mut self.ends;
        [user.take(), net.take()]
    }
    pub(super) fn clean(&self) {
        for end in &self.ends {
            assert!(end.is_clean(), "{:?}", end.uni);
        }
    }
    /// An active call from the user: C1 at the user, IN1 at the network, on VC1.
    pub(super) fn call_from_user(&mut self) {
        self.ask(USER, setup(info(1), None));
        self.ask(NET, proceeding(IN1, Some(VC1)));
        self.ask(NET, accept(IN1, None));
        assert_eq!(self.ends[USER].state(C1), Some(CallState::Active));
        assert_eq!(self.ends[NET].state(IN1), Some(CallState::Active));
        self.forget();
    }
    pub(super) fn forget(&mut self) {
        self.take();
        self.ends.iter_mut().for_each(|end| end.sent.clear());
    }
}

pub(super) const fn reference(flag: bool, value: u32) -> CallRef {
    CallRef { flag, value }
}
pub(super) fn setup(info: SetupInfo, vc: Option<Vc>) -> Request {
    let party = info.multipoint.then_some(PartyId(0));
    Request::Setup {
        call: C1,
        info,
        vc,
        party,
    }
}
pub(super) const fn proceeding(call: CallId, vc: Option<Vc>) -> Request {
    Request::Proceeding { call, vc }
}
pub(super) fn accept(call: CallId, vc: Option<Vc>) -> Request {
    let info = ConnectInfo::default();
    Request::Accept { call, info, vc }
}
pub(super) const fn release(call: CallId) -> Request {
    let cause = Reason::NORMAL;
    Request::Release { call, cause }
}
/// An indication without location and diagnostics of its cause, which have tests of their own.
fn plain(mut indication: Indication) -> Indication {
    if let Indication::Clearing { cause, .. }
    | Indication::Released { cause, .. }
    | Indication::PartyRejected { cause, .. }
    | Indication::PartyDropped { cause, .. } = &mut indication
    {
        *cause = cause.cause.into();
    }
    indication
}
pub(super) fn released(call: CallId, cause: Cause) -> Indication {
    let cause = cause.into();
    Indication::Released { call, cause }
}
/// The cause values of a message.
pub(super) fn causes(message: &Message) -> Vec<u8> {
    let of_type = message.elements.iter().filter(|e| e.id == id::CAUSE);
    let values = of_type.map(aerostat_wire::q2931::ie::decode);
    values
        .map(|ie| match ie {
            Ok(Ie::Cause(cause)) => cause.value,
            other => panic!("{other:?}"),
        })
        .collect()
}
