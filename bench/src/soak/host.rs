//! The two hosts: who calls, and who is called.

use super::line::Line;
use super::{Outcome, Plan, address, resident};
use aerostat_node::signalling::{Config, Input, Output, Signalling, UserId};
use aerostat_proto::machine::Machine as _;
use aerostat_proto::uni::Version;
use aerostat_proto::{AtmEvent, AtmRequest, Cause, ConnId, Duration, Instant};
use aerostat_wire::{AtmAddress, Qos, Sap, Vc};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

const USER: UserId = UserId(1);
/// Octets of the PDU that goes each way.
const PDU: usize = 100;
pub(super) const MAX_SDU: u16 = 1536;
/// How long the last calls may take, and how long signalling may take to come up.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// The time of a run.
#[derive(Clone, Copy)]
pub(super) struct Clock(std::time::Instant);

impl Clock {
    pub(super) fn start() -> Self {
        Self(std::time::Instant::now())
    }
    pub(super) fn now(self) -> Instant {
        Instant::ZERO + self.0.elapsed()
    }
}

/// A host: its signalling manager and its link.
pub(super) struct Host {
    clock: Clock,
    pub(super) signalling: Signalling,
    line: Box<dyn Line>,
    came: Vec<(Vc, Vec<u8>)>,
}

/// Events for a host's program.
pub(super) enum Event {
    Up,
    Offered(ConnId),
    Connected(ConnId),
    Released(ConnId, Cause),
    Pdu(ConnId, Vec<u8>),
}

impl Host {
    pub(super) fn new(own: AtmAddress, line: Box<dyn Line>, clock: Clock) -> Self {
        let mut config = Config::new(Version::Uni31);
        config.limits.calls_per_user = 16_384;
        let mut host = Self {
            clock,
            signalling: Signalling::new(config),
            line,
            came: Vec::new(),
        };
        host.feed(Input::AddUser(USER));
        host.ask(AtmRequest::listen(own, Sap::LLC, MAX_SDU));
        host.feed(Input::Start);
        host
    }
    fn feed(&mut self, input: Input<'_>) {
        // A request that came too late: the event that tells so is under way.
        let _ = self.signalling.handle_input(input, self.clock.now());
    }
    pub(super) fn ask(&mut self, request: AtmRequest) {
        self.feed(Input::request(USER, request));
    }
    pub(super) fn release(&mut self, conn: ConnId) {
        let cause = Cause::NORMAL;
        self.ask(AtmRequest::Release { conn, cause });
    }
    /// Everything up to now, and waits for more until `until`, or for a timer.
    pub(super) fn turn(&mut self, until: Instant, events: &mut Vec<Event>) {
        let now = self.clock.now();
        if self.signalling.poll_timeout().is_some_and(|at| at <= now) {
            self.signalling.handle_timeout(now);
        }
        self.drain(events);
        let next = self
            .signalling
            .poll_timeout()
            .map_or(until, |at| at.min(until));
        let next = if events.is_empty() { next } else { now };
        let mut came = core::mem::take(&mut self.came);
        self.line.wait(next.since(self.clock.now()), &mut came);
        for (vc, sdu) in came.drain(..) {
            if vc == Vc::SIGNALLING {
                self.feed(Input::Signalling(&sdu));
                self.drain(events);
            } else if let Some((_, conn)) = self.signalling.receiver(vc) {
                events.push(Event::Pdu(conn, sdu));
            }
        }
        self.came = came;
    }
    fn drain(&mut self, events: &mut Vec<Event>) {
        while let Some(output) = self.signalling.poll_output() {
            match output {
                Output::Send { vc, sdu } => self.line.send(vc, sdu),
                Output::Event(_, event, _) => events.extend(match event {
                    AtmEvent::Up => Some(Event::Up),
                    AtmEvent::Incoming { conn, .. } => Some(Event::Offered(conn)),
                    AtmEvent::Connected { conn, .. } => Some(Event::Connected(conn)),
                    AtmEvent::Released { conn, cause } => Some(Event::Released(conn, cause)),
                    _ => None,
                }),
                Output::OpenVc { .. }
                | Output::ChangeVc { .. }
                | Output::CloseVc { .. }
                | Output::Received { .. }
                | Output::Undelivered(_)
                | Output::Joined { .. }
                | Output::Manage(_)
                | Output::Trace(_)
                | Output::Daemon(_) => {}
            }
        }
    }
    pub(super) fn wait_until_up(&mut self) {
        let limit = self.clock.now() + PATIENCE;
        let mut events = Vec::new();
        while !events.iter().any(|event| matches!(event, Event::Up)) {
            assert!(self.clock.now() < limit, "signalling does not come up");
            self.turn(limit, &mut events);
        }
    }
}

/// Accepts every call and sends back what comes, until `over` and nothing is left (or [`PATIENCE`] is). Gives the
/// calls that ended, and those that are left.
pub(super) fn called(line: Box<dyn Line>, clock: Clock, over: &AtomicBool) -> (u64, usize) {
    let mut host = Host::new(address(2), line, clock);
    let (mut ended, mut events) = (0, Vec::new());
    let mut limit = None;
    loop {
        let now = clock.now();
        if limit.is_none() && over.load(Ordering::Relaxed) {
            limit = Some(now + PATIENCE);
        }
        let left = host.signalling.calls().count();
        if limit.is_some_and(|limit| left == 0 || now >= limit) {
            return (ended, left);
        }
        host.turn(now + Duration::from_millis(20), &mut events);
        for event in core::mem::take(&mut events) {
            match event {
                Event::Offered(conn) => host.ask(AtmRequest::Accept { conn, terms: None }),
                Event::Pdu(conn, sdu) => host.ask(AtmRequest::Send { conn, sdu }),
                Event::Released(..) => ended += 1,
                Event::Up | Event::Connected(_) => {}
            }
        }
    }
}

struct Caller {
    host: Host,
    outcome: Outcome,
    /// Calls under way: when they were due.
    under_way: BTreeMap<ConnId, Instant>,
}

/// Makes the calls of `plan`.
pub(super) fn caller(line: Box<dyn Line>, clock: Clock, plan: Plan) -> Outcome {
    let mut caller = Caller {
        host: Host::new(address(1), line, clock),
        outcome: Outcome::default(),
        under_way: BTreeMap::new(),
    };
    caller.host.wait_until_up();
    // The other end comes up at its own pace.
    std::thread::sleep(Duration::from_secs(1));
    let (total, start) = (u64::from(plan.rate) * u64::from(plan.seconds), clock.now());
    let due = |n: u64| start + Duration::from_nanos(n * 1_000_000_000 / u64::from(plan.rate));
    // All the memory that the measurement itself needs is taken, and touched, beforehand.
    caller.outcome.setup = vec![u32::MAX; total as usize];
    caller.outcome.setup.clear();
    let (mut made, mut limit, mut events) = (0, None, Vec::new());
    loop {
        let now = clock.now();
        while made < total && due(made) <= now {
            caller.call(made, due(made));
            made += 1;
            if made == total / 6 {
                caller.outcome.memory.0 = resident();
            }
        }
        if made == total {
            let limit = *limit.get_or_insert(now + PATIENCE);
            if caller.host.signalling.calls().next().is_none() || now >= limit {
                break;
            }
        }
        let next = if made < total {
            due(made)
        } else {
            now + Duration::from_millis(20)
        };
        caller.host.turn(next, &mut events);
        for event in events.drain(..) {
            caller.event(event);
        }
    }
    caller.outcome.took = clock.now().since(start);
    caller.outcome.left = caller.host.signalling.calls().count();
    caller.outcome.memory.1 = resident();
    caller.outcome
}

impl Caller {
    fn call(&mut self, number: u64, due: Instant) {
        let conn = ConnId((number % u64::from(ConnId::INCOMING)) as u32);
        self.outcome.asked += 1;
        self.under_way.insert(conn, due);
        self.host.ask(AtmRequest::Connect {
            conn,
            calling: address(1),
            called: address(2),
            sap: Sap::LLC,
            qos: Qos::ubr(MAX_SDU),
            multipoint: false,
        });
    }
    /// Payload on a call: its number, again and again.
    fn octets(conn: ConnId) -> Vec<u8> {
        conn.0.to_be_bytes().into_iter().cycle().take(PDU).collect()
    }
    fn event(&mut self, event: Event) {
        match event {
            Event::Connected(conn) => {
                let now = self.host.clock.now();
                if let Some(due) = self.under_way.get(&conn) {
                    let ns = now.since(*due).as_nanos();
                    self.outcome.setup.push(ns.try_into().unwrap_or(u32::MAX));
                }
                let sdu = Self::octets(conn);
                self.host.ask(AtmRequest::Send { conn, sdu });
            }
            Event::Pdu(conn, sdu) => {
                let known = self.under_way.remove(&conn).is_some();
                if !known || sdu != Self::octets(conn) {
                    self.outcome.wrong += 1;
                }
                self.outcome.completed += u64::from(known);
                self.host.release(conn);
            }
            Event::Released(conn, cause) => {
                self.under_way.remove(&conn);
                *self.outcome.failed.entry(cause.0).or_default() += 1;
            }
            Event::Up | Event::Offered(_) => {}
        }
    }
}
