//! Programs of a host that use the ATM service directly, as native ATM sockets do.
//!
//! **Purpose.** Programs like `svc_recv`, `svc_send`, `aread` and `ttcp_atm` on a Linux host: programs that listen for
//! calls, programs that make a call, send PDUs and release it, and programs that use a permanent connection. They need
//! neither LANE nor IP.
//!
//! **Objects and owners.** [`Sockets`] owns all programs of one host. A [`Program`] listens ([`Role::Listen`]),
//! calls ([`Role::Call`]), or reads and writes on a permanent connection ([`Role::Permanent`]); each of its calls,
//! and its permanent connection, is a record with counts and checksums, kept after its end (the last [`ENDED`] of
//! the host).
//!
//! **States** of a call: calling or accepted, open, ended. A caller sends its PDUs at its rate once the call is open.
//! After the last PDU it waits for `hold`, so that PDUs on their way can arrive, and then releases the call. A
//! permanent connection is open from the start to the end of the host.
//!
//! **Writing.** A program writes one PDU at a time, and waits while the adapter has no room for it, like a blocking
//! `write`. A PDU that is not written at its time is late. The times of later PDUs do not change, so a program that was
//! delayed catches up when there is room. An echo program keeps PDUs that it has to send back, up to 256 KiB per call,
//! and refuses further PDUs. Before its release a caller waits until the adapter has sent everything. For each call, at
//! all times:
//!
//! ```text
//! offered = sent + refused + waiting              sent: taken by the adapter; waiting: in the program
//! sent    = left the adapter + unsent             unsent: dropped there, as the call ended or the link went down
//! ```
//!
//! A program with [`Pace::Line`] has no times: it writes the next PDU as soon as the adapter has taken the one before,
//! from memory to memory as `ttcp` does. Its adapter is always full, so its rate is that of the link or the contract.
//!
//! **Calls inside the host.** A program that calls another one of its host, or itself, has a connection without a
//! label: signalling decides about the call, and the other end has each PDU at once. Such PDUs are always taken, and
//! cost the host no time.
//!
//! **Payload.** The printable pattern of `ttcp`: octet `i` of a PDU is `0x20 + i % 95`. For both directions there is a
//! CRC-32 of IEEE 802.3 over all PDUs of the call in order, as `gzip` and `zlib.crc32` compute it.
//!
//! **Failure.** A call that is refused, or that the network or the other end releases, keeps its cause. A listener that
//! has its maximum number of calls refuses further calls with cause 17 (user busy). A caller that makes a single call
//! repeats it while it fails with a temporary cause; only the record of the last attempt stays.
//!
//! **Standards.** No standard of its own. Signalling decides which listener gets a call.
//!
//! **Not implemented.** Point-to-multipoint calls.

mod atp;
mod payload;
mod program;
mod tester;
mod write;

pub use aerostat_proto::atp::Amount;
pub use atp::{Figures, Outcome, STEPS, Step, Transfer};
pub use payload::{crc32, pattern};
pub use program::{Answer, Pace, Program, Role, Sending};
pub use tester::Measured;

use self::tester::Tester;
use self::write::Writer;
use super::socket_layer::LOCAL;
use super::writes::FromAdapter;
use crate::atm::{Mark, Shaping, SocketId};
use crate::ip::clock::Clock;
use aerostat_proto::Trace;
use aerostat_proto::{AtmEvent, AtmRequest, Backoff, Cause, ConnId, Duration, Instant, Machine};
use aerostat_wire::aal0::UserCell;
use aerostat_wire::counted;
use aerostat_wire::{AalType, AtmAddress, Qos, Sap, Vc};
use core::convert::Infallible;
use std::collections::{BTreeMap, VecDeque};

/// Limit of ended calls that are remembered; the oldest call is forgotten first.
pub const ENDED: usize = 256;
/// PDUs that a program writes on a connection at once; it continues after [`PAUSE`].
const BURST: u32 = 64;
/// This is shorter than the time of [`BURST`] cells on any line, so it does not lower the rate.
const PAUSE: Duration = Duration::from_micros(1);
/// Limit of octets that an echo keeps for one call while it cannot send them back.
const ECHO_OCTETS: usize = 256 * 1024;
/// Limit of PDUs that an echo keeps for one call.
const ECHO_PDUS: usize = 4096;
/// Octets of a PDU that [`Answer::Read`] reports.
const TOLD: usize = 64;
/// Longest wait between a failed call and the next attempt.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// Inputs of [`Sockets`].
#[derive(Debug)]
pub enum Input<'a> {
    /// The programs start.
    Start,
    /// From the ATM service.
    Atm(AtmEvent<&'a [u8]>),
    /// From the adapter, about PDUs of the programs.
    Adapter(FromAdapter),
    /// A call inside the host can be used: this end of it. It has no label.
    Joined(ConnId),
}

/// Outputs of [`Sockets`].
#[derive(Debug)]
pub enum Output {
    /// To the ATM service.
    Atm(AtmRequest),
    /// The oldest ended call is no longer remembered.
    Forgotten(SocketId),
    /// Requests [`FromAdapter::Room`] when no cell of this label waits in the adapter any more.
    Flush(Vc),
    /// A trace event.
    Trace(Trace),
}

/// State of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Requested, not answered yet.
    Calling,
    /// Accepted here, not confirmed yet.
    Accepted,
    /// Open.
    Open,
    /// Released or refused.
    Ended,
}

impl State {
    /// The state in words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Calling => "calling",
            Self::Accepted => "accepted",
            Self::Open => "open",
            Self::Ended => "ended",
        }
    }
}

/// PDUs in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// PDUs.
    pub pdus: u64,
    /// Their octets.
    pub octets: u64,
    /// CRC-32 of all octets.
    pub crc32: u32,
}

impl Sum {
    fn add(&mut self, sdu: &[u8]) {
        self.pdus += 1;
        self.octets += sdu.len() as u64;
        self.crc32 = crc32(self.crc32, sdu);
    }
}

/// One call of a program.
#[derive(Debug)]
pub struct Record {
    /// Its id in the accounts of a run.
    pub id: SocketId,
    /// Index of the program.
    pub program: usize,
    /// State.
    pub state: State,
    /// The other end, if it is known.
    pub peer: Option<AtmAddress>,
    /// Its label on this host's link, once open; `None` also for a call inside the host.
    pub vc: Option<Vc>,
    /// Time from the request, or the offer, to the open connection.
    pub setup: Option<Duration>,
    /// PDUs that the program began to write, or had to send back.
    pub offered: u64,
    /// PDUs that were never sent: too long for the contract, more than an echo keeps, or abandoned with the call.
    pub refused: u64,
    /// PDUs of the program itself (not echoed) that were written after their time.
    pub late: u64,
    /// PDUs sent: those that the adapter has accepted.
    pub sent: Sum,
    /// PDUs of `sent` that the adapter dropped before they left, because the call ended or the link went down.
    pub unsent: u64,
    /// PDUs received.
    pub received: Sum,
    /// PDUs that arrived with cells missing or damaged.
    pub damaged: u64,
    /// Cause of the end.
    pub cause: Option<Cause>,
    /// True if this end released or refused the call.
    pub by_us: bool,
    since: Instant,
    qos: Qos,
    /// When the program's next PDU is due, or the release.
    next: Option<Instant>,
    /// PDUs that the program still has to send; echoed PDUs are not included.
    left: u64,
    writer: Writer,
    /// True if the adapter has reported what it dropped when the label was closed.
    closed: bool,
    /// ATP, if the program uses it.
    atp: Option<Box<atp::End>>,
    /// The tester, if the program has this role.
    tester: Option<Box<Tester>>,
}

impl Record {
    /// PDUs that the program has begun to write, or has to send back, and that the adapter has not accepted yet.
    #[must_use]
    pub const fn waiting(&self) -> u64 {
        self.offered - self.sent.pdus - self.refused
    }
    /// True for a call that was opened inside the host.
    #[must_use]
    pub const fn is_inside(&self) -> bool {
        self.setup.is_some() && self.vc.is_none()
    }
    /// PDUs of its own that the program has not begun to write yet. They are never written if the call has ended.
    #[must_use]
    pub const fn unwritten(&self) -> u64 {
        self.left.saturating_sub(self.writer.has_own() as u64)
    }
    /// Measurements of a tester; `None` if the program is no tester.
    #[must_use]
    pub fn measured(&self) -> Option<Measured> {
        self.tester.as_ref().map(|tester| tester.measured())
    }
}

/// Totals over all calls of a program, including calls that are not remembered any more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fate {
    /// Connections that were opened, in both roles.
    pub opened: u64,
    /// Calls that were refused or failed before they were open, made or received.
    pub failed: u64,
    /// Cause of the last of these failures.
    pub cause: Option<Cause>,
}

/// All socket programs of a host.
#[derive(Debug)]
pub struct Sockets {
    programs: Vec<Program>,
    /// Totals of each program.
    fates: Vec<Fate>,
    /// When each caller makes its next call; `None` if no call is planned, or the program is not a caller.
    starts: Vec<Option<Instant>>,
    /// For each caller, the waits after failed calls.
    retries: Vec<Backoff>,
    calls: BTreeMap<ConnId, Record>,
    ended: VecDeque<Record>,
    next_conn: u32,
    /// Id of the next call.
    next: SocketId,
    /// The clock of the host. All times in here are those of this clock.
    clock: Clock,
    out: VecDeque<Output>,
}

impl Sockets {
    /// The sockets of these programs, which do not run yet.
    #[must_use]
    pub fn new(programs: Vec<Program>) -> Self {
        let retries = programs.iter().map(|program| Backoff::of(&program.local));
        Self {
            starts: vec![None; programs.len()],
            fates: vec![Fate::default(); programs.len()],
            retries: retries.collect(),
            programs,
            calls: BTreeMap::new(),
            ended: VecDeque::new(),
            next_conn: 0,
            next: SocketId {
                node: 0,
                life: 0,
                number: 0,
            },
            clock: Clock::default(),
            out: VecDeque::new(),
        }
    }
    /// The same programs, on the node with this number, which was switched on `life` times before.
    #[must_use]
    pub const fn of(mut self, node: u32, life: u32) -> Self {
        self.next.node = node;
        self.next.life = life;
        self
    }
    /// The same programs, which go by this clock.
    #[must_use]
    pub const fn by(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }
    /// Sets the network prefix of their addresses, as learnt by ILMI. Call this only before the start.
    pub fn set_prefix(&mut self, prefix: [u8; 13]) {
        for program in &mut self.programs {
            program.local = program.local.with_prefix(prefix);
        }
    }
    /// The programs.
    #[must_use]
    pub fn programs(&self) -> &[Program] {
        &self.programs
    }
    /// Totals of each program, in the same order.
    #[must_use]
    pub fn fates(&self) -> &[Fate] {
        &self.fates
    }
    /// The calls: first those that have ended.
    pub fn calls(&self) -> impl Iterator<Item = &Record> {
        self.ended.iter().chain(self.calls.values())
    }

    fn request(&mut self, request: AtmRequest) {
        self.out.push_back(Output::Atm(request));
    }
    fn trace(&mut self, trace: Trace) {
        self.out.push_back(Output::Trace(trace));
    }

    fn start(&mut self, now: Instant) {
        for index in 0..self.programs.len() {
            let Program {
                local, sap, role, ..
            } = self.programs[index];
            match role {
                Role::Listen { max_sdu, .. } => self.request(AtmRequest::Listen {
                    address: local,
                    sap,
                    max_sdu,
                }),
                Role::Call { send, .. } => self.starts[index] = Some(self.clock.start(send.start)),
                Role::Permanent { vc, qos, .. } => {
                    let id = self.new_id();
                    let record = Record::new(id, index, State::Calling, None, qos, now);
                    let conn = self.record(record);
                    self.request(AtmRequest::OpenPermanent { conn, vc, qos });
                }
            }
        }
    }

    /// Records a connection of a program under a new id.
    fn record(&mut self, record: Record) -> ConnId {
        let conn = ConnId(self.next_conn);
        self.next_conn = (self.next_conn + 1) % ConnId::INCOMING;
        self.calls.insert(conn, record);
        conn
    }
    fn new_id(&mut self) -> SocketId {
        let id = self.next;
        self.next.number += 1;
        id
    }
    /// The mark of the PDU that is being written on this connection.
    pub(super) fn mark(&self, conn: ConnId) -> Option<Mark> {
        let call = self.calls.get(&conn)?;
        Some(Mark {
            socket: call.id,
            pdu: call.writer.asked,
        })
    }
    /// The program that reads on this connection.
    pub(super) fn reader(&self, conn: ConnId) -> Option<usize> {
        self.calls.get(&conn).map(|call| call.program)
    }

    /// True if the program of this connection uses ATP.
    pub(super) fn uses_atp(&self, conn: ConnId) -> bool {
        self.calls.get(&conn).is_some_and(|call| call.atp.is_some())
    }

    /// The AAL of this connection.
    pub(super) fn aal(&self, conn: ConnId) -> AalType {
        let program = self.reader(conn).and_then(|index| self.programs.get(index));
        match program.is_some_and(|program| program.tester) {
            true => AalType::Aal0,
            false => AalType::Aal5,
        }
    }

    /// How the adapter sends on this connection, where its program says so.
    pub(super) fn shaping(&self, conn: ConnId) -> Option<Shaping> {
        let program = self.calls.get(&conn)?.program;
        self.programs.get(program)?.shaping
    }

    fn call(&mut self, program: usize, now: Instant) {
        let Program {
            local, sap, role, ..
        } = self.programs[program];
        let Role::Call { to, qos, .. } = role else {
            return;
        };
        let id = self.new_id();
        let record = Record::new(id, program, State::Calling, Some(to), qos, now);
        let conn = self.record(record);
        self.request(AtmRequest::Connect {
            conn,
            calling: local,
            called: to,
            sap,
            qos,
            multipoint: false,
        });
    }

    /// A call arrives for one of the listeners.
    fn offered(&mut self, conn: ConnId, called: AtmAddress, sap: Sap, mut record: Record) {
        let found = self.programs.iter().position(|program| {
            matches!(program.role, Role::Listen { .. })
                && (program.local, program.sap) == (called, sap)
        });
        let now = record.since;
        let refused = match found.map(|index| (index, self.programs[index].role)) {
            Some((index, Role::Listen { calls, .. })) => {
                record.program = index;
                let busy = self.calls.values().filter(|call| call.program == index);
                (busy.count() >= calls).then_some(Cause::BUSY)
            }
            // The listener has gone; signalling should not have offered this call.
            _ => return self.request(refusal(conn, Cause::INCOMPATIBLE)),
        };
        match refused {
            None => {
                let program = &self.programs[record.program];
                record.begin_atp(program.atp.as_ref(), program.role.answer(), None);
                self.calls.insert(conn, record);
                self.request(AtmRequest::Accept { conn, terms: None });
            }
            Some(cause) => {
                self.request(refusal(conn, cause));
                record.by_us = true;
                self.over(record, cause, now);
            }
        }
    }

    fn connected(&mut self, conn: ConnId, vc: Option<Vc>, now: Instant) {
        let Some(call) = self.calls.get_mut(&conn) else {
            return;
        };
        self.fates[call.program].opened += 1;
        let setup = now.since(call.since);
        call.vc = vc;
        let label = vc.map_or_else(|| LOCAL.to_owned(), |vc| vc.to_string());
        call.setup = Some(setup);
        self.retries[call.program].reset();
        let program = &self.programs[call.program];
        let peer = name_of(call.peer);
        let (name, next, text) = match program.role {
            Role::Listen { .. } => ("socket.open", None, format!("call from {peer}")),
            // A caller that has nothing to send only waits for the release.
            Role::Call { send, hold, .. } => {
                let wait = if send.pdus > 0 { Duration::ZERO } else { hold };
                let text = format!("connected to {peer}");
                ("socket.open", Some(now + wait), text)
            }
            Role::Permanent { send, .. } => {
                let start = self.clock.start(send.start);
                let start = (send.pdus > 0).then(|| start.max(now));
                ("socket.bound", start, format!("bound to {label}"))
            }
        };
        call.next = next;
        call.left = program.role.sending().map_or(0, |send| send.pdus);
        call.state = State::Open;
        if program.atp.is_some() {
            let starts = call.next.take();
            call.begin_atp(program.atp.as_ref(), program.role.answer(), starts);
        }
        if program.tester {
            call.tester = Some(Box::new(Tester::new(call.qos.rx.max_pcr)));
        }
        let micros = setup.as_micros();
        let text = format!("{}: {text}, set up in {micros} us", program.name);
        let trace = Trace::milestone(name, text)
            .with("socket", &program.name)
            .with("vc", label)
            .with("setup_us", micros);
        self.trace(trace);
    }

    fn received(&mut self, conn: ConnId, sdu: &[u8], now: Instant) {
        let Some(call) = self.calls.get_mut(&conn) else {
            return;
        };
        call.received.add(sdu);
        if call.atp.is_some() {
            return self.atp(conn, Some(sdu), now);
        }
        if let Some(tester) = &mut call.tester {
            if let Ok(cell) = UserCell::decode(sdu) {
                tester.arrived(&cell.payload, now);
            }
            return;
        }
        let answer = self.programs[call.program].role.answer();
        if answer == Some(Answer::Echo) {
            call.offer_back(sdu);
            return self.write(conn, now);
        }
        let program = &self.programs[call.program];
        let Some(answer) = answer else {
            return;
        };
        match answer {
            Answer::Sink | Answer::Echo => {}
            Answer::Read => {
                let told = sdu.get(..TOLD).unwrap_or(sdu);
                let text = String::from_utf8_lossy(told).escape_debug().to_string();
                let octets = counted(sdu.len(), "octet", "octets");
                let text = format!("{}: {octets}: {text}", program.name);
                let trace = Trace::milestone("socket.read", text).with("socket", &program.name);
                self.trace(trace);
            }
        }
    }

    fn released(&mut self, conn: ConnId, cause: Cause, now: Instant) {
        if let Some(call) = self.calls.remove(&conn) {
            self.over(call, cause, now);
        }
    }

    /// A call has ended: traces the end and remembers the call.
    fn over(&mut self, mut call: Record, cause: Cause, now: Instant) {
        let program = &self.programs[call.program];
        let mut repeated = false;
        if let Role::Call { every, .. } = program.role {
            // A busy listener is an answer.
            let answered = call.setup.is_some() || cause == Cause::BUSY;
            let failed = !answered && cause.is_temporary();
            let retries = &mut self.retries[call.program];
            let wait = match every {
                None if failed => {
                    repeated = retries.tries() > 0;
                    Some(retries.wait(Some(cause), Duration::ZERO, LONGEST_WAIT))
                }
                every => every,
            };
            self.starts[call.program] = wait.map(|wait| now + wait);
        }
        if repeated {
            // Of repeated attempts that all failed, only the record of the last one stays.
            let same = |old: &Record| old.program == call.program && old.setup.is_none();
            if let Some(before) = self.ended.iter().rposition(same) {
                self.ended.remove(before);
            }
        }
        let name = &program.name;
        let (caller, peer) = match program.role {
            Role::Permanent { vc, .. } => (true, vc.to_string()),
            Role::Call { .. } => (true, name_of(call.peer)),
            Role::Listen { .. } => (false, name_of(call.peer)),
        };
        let who = if call.by_us {
            "here"
        } else {
            "by the other side"
        };
        let text = match (call.setup, caller) {
            (None, true) => format!("{name}: call to {peer} failed: {cause}"),
            (None, false) => format!("{name}: call from {peer} not taken: {cause}"),
            (Some(_), _) => format!(
                "{name}: call with {peer} released {who}, {cause}; sent {}, {}, received {}, {}",
                counted(call.sent.pdus, "PDU", "PDUs"),
                counted(call.sent.octets, "octet", "octets"),
                counted(call.received.pdus, "PDU", "PDUs"),
                counted(call.received.octets, "octet", "octets")
            ),
        };
        call.end_atp(now);
        call.give_up();
        let text = format!("{text}{}", call.troubles());
        let event = match call.setup {
            None => "socket.refused",
            Some(_) => "socket.ended",
        };
        let trace = if repeated {
            Trace::detail(event, text)
        } else {
            Trace::milestone(event, text)
        };
        let trace = trace
            .with("socket", name)
            .with("cause", cause.0)
            .with("sent_pdus", call.sent.pdus)
            .with("sent_octets", call.sent.octets)
            .with("received_pdus", call.received.pdus)
            .with("received_octets", call.received.octets)
            .with("received_crc32", format!("{:08x}", call.received.crc32));
        self.trace(trace);
        if call.setup.is_none() {
            let fate = &mut self.fates[call.program];
            fate.failed += 1;
            fate.cause = Some(cause);
        }
        call.closed = call.vc.is_none();
        call.state = State::Ended;
        call.cause = Some(cause);
        call.next = None;
        if self.ended.len() >= ENDED {
            let oldest = self.ended.pop_front();
            self.out
                .extend(oldest.map(|call| Output::Forgotten(call.id)));
        }
        self.ended.push_back(call);
    }
}

impl Machine for Sockets {
    type Input<'a> = Input<'a>;
    type Output = Output;
    type Refusal = Infallible;

    fn handle_input(&mut self, input: Input<'_>, now: Instant) -> Result<(), Infallible> {
        let now = self.clock.local(now);
        match input {
            Input::Start => self.start(now),
            Input::Atm(AtmEvent::Incoming {
                conn,
                calling,
                called,
                sap,
                qos,
                multipoint: false,
            }) => {
                let id = self.new_id();
                let record = Record::new(id, 0, State::Accepted, calling, qos, now);
                self.offered(conn, called, sap, record);
            }
            Input::Atm(AtmEvent::Incoming { conn, .. }) => {
                self.request(refusal(conn, Cause::INCOMPATIBLE));
            }
            Input::Atm(AtmEvent::Connected { conn, vc, .. }) => self.connected(conn, Some(vc), now),
            Input::Joined(conn) => self.connected(conn, None, now),
            Input::Atm(AtmEvent::Received { conn, sdu }) => self.received(conn, sdu, now),
            Input::Atm(AtmEvent::Released { conn, cause }) => self.released(conn, cause, now),
            Input::Adapter(event) => self.adapter(event, now),
            // A call that is made while signalling is down waits in signalling.
            Input::Atm(
                AtmEvent::Up
                | AtmEvent::Down
                | AtmEvent::PartyAdded { .. }
                | AtmEvent::PartyGone { .. },
            ) => {}
        }
        Ok(())
    }

    fn handle_timeout(&mut self, now: Instant) {
        let now = self.clock.local(now);
        for index in 0..self.starts.len() {
            if self.starts[index].is_some_and(|at| at <= now) {
                self.starts[index] = None;
                self.call(index, now);
            }
        }
        let due = self.calls.iter();
        let due = due.filter(|(_, call)| call.wake().is_some_and(|at| at <= now));
        let due: Vec<ConnId> = due.map(|(conn, _)| *conn).collect();
        for conn in due {
            self.write(conn, now);
        }
        let due = self.calls.iter();
        let due = due.filter(|(_, call)| call.atp_deadline().is_some_and(|at| at <= now));
        let due: Vec<ConnId> = due.map(|(conn, _)| *conn).collect();
        for conn in due {
            self.atp(conn, None, now);
        }
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.out.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let starts = self.starts.iter().flatten().copied();
        let steps = self.calls.values().filter_map(Record::wake);
        let atp = self.calls.values().filter_map(Record::atp_deadline);
        let first = starts.chain(steps).chain(atp).min();
        first.map(|at| self.clock.of_lab(at))
    }
}

aerostat_proto::atm_user!(Sockets {});

impl Record {
    fn new(
        id: SocketId,
        program: usize,
        state: State,
        peer: Option<AtmAddress>,
        qos: Qos,
        since: Instant,
    ) -> Self {
        Self {
            id,
            program,
            state,
            peer,
            vc: None,
            setup: None,
            offered: 0,
            refused: 0,
            late: 0,
            sent: Sum::default(),
            unsent: 0,
            received: Sum::default(),
            damaged: 0,
            cause: None,
            by_us: false,
            since,
            qos,
            next: None,
            left: 0,
            writer: Writer::default(),
            closed: false,
            atp: None,
            tester: None,
        }
    }
}

const fn refusal(conn: ConnId, cause: Cause) -> AtmRequest {
    AtmRequest::Release { conn, cause }
}

fn name_of(peer: Option<AtmAddress>) -> String {
    peer.map_or_else(|| "an unknown caller".to_owned(), |peer| peer.to_string())
}

#[cfg(test)]
mod tests;
