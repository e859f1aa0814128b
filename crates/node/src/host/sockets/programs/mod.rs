//! Programs of the lab file: sockets with a behaviour beside them.
//!
//! **Purpose.** Programs like `svc_recv`, `svc_send`, `aread` and `ttcp_atm` on a Linux host: programs that listen for
//! calls, programs that make a call, send PDUs and release it, and programs that use a permanent connection. They need
//! neither LANE nor IP.
//!
//! **Objects and owners.** The socket layer has the sockets of a [`Program`] as it has those of programs of the
//! machine. A program listens ([`Role::Listen`]), calls ([`Role::Call`]), or uses a permanent connection
//! ([`Role::Permanent`]). Each of its connections has a [`Behaviour`] beside its socket: the PDUs that the program will
//! write and their times, ATP, the cell tester. [`Record`] shows both, also after the end of the connection (the last
//! [`ENDED`] of the host).
//!
//! **States** of a call are those of its socket. A caller sends its PDUs at its rate once the call is open. After the
//! last PDU it waits for `hold`, so that PDUs on their way can arrive, and then releases the call. A permanent
//! connection is open from the start to the end of the host.
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
//! label. A program of the lab file has each PDU of it at once, and a writer waits for a program of the machine that
//! does not read. Such PDUs cost the host no time.
//!
//! **Payload.** The printable pattern of `ttcp`: octet `i` of a PDU is `0x20 + i % 95`. For both directions there is a
//! CRC-32 of IEEE 802.3 over all PDUs of the call in order, as `gzip` and `zlib.crc32` compute it.
//!
//! **Failure.** A call that is refused, or that the network or the other end releases, keeps its cause. A listener that
//! has its maximum number of calls refuses further calls with cause 17 (user busy). A caller that makes a single call
//! repeats it while it fails with a temporary cause; only the record of the last attempt stays.
//!
//! **Standards.** No standard of its own. Signalling decides which listener gets a call.

mod atp;
mod payload;
mod program;
mod tester;
#[cfg(test)]
mod tests;
mod write;

pub use super::{State, Sum};
pub use aerostat_proto::atp::Amount;
pub use atp::{Figures, Outcome, STEPS, Step, Transfer};
pub use payload::{crc32, pattern};
pub use program::{Answer, Pace, Program, Role, Sending};
pub use tester::Measured;

use self::tester::Tester;
use self::write::Writer;
use super::offers::Waiting;
use super::resolve::{Destination, Wanted};
use super::{Label, Output, Socket, SocketLayer, SocketRef, Table};
use crate::atm::{Mark, Shaping, SocketId};
use crate::ip::books::SocketEvent;
use crate::ip::clock::Clock;
use crate::signalling::AAL_UNSUPPORTED;
use aerostat_proto::socket::UserData;
use aerostat_proto::{
    AtmRequest, Backoff, Cause, ConnId, Deadlines, Duration, Instant, Trace, Value, Words,
};
use aerostat_wire::aal0::UserCell;
use aerostat_wire::counted;
use aerostat_wire::{AalType, AtmAddress};
use core::fmt;
use std::collections::{BTreeMap, VecDeque};

/// Limit of ended calls of a host's programs that are remembered; the oldest call is forgotten first.
pub const ENDED: usize = 256;

/// Octets of a PDU that [`Answer::Read`] reports.
const TOLD: usize = 64;

/// Longest wait between a failed call and the next attempt.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

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

/// A program's own side of a connection, beside its socket.
#[derive(Debug, Default)]
pub struct Behaviour {
    /// Id of the connection in the accounts of a run.
    pub id: SocketId,
    /// Time from the request, or the offer, to the open connection.
    pub setup: Option<Duration>,
    since: Instant,
    /// PDUs that the program began to write, or had to send back.
    pub offered: u64,
    /// PDUs of the program itself (not echoed) that were written after their time.
    pub late: u64,
    /// When the program's next PDU is due, or the release.
    next: Option<Instant>,
    /// PDUs that the program still has to send; echoed PDUs are not included.
    left: u64,
    writer: Writer,
    /// ATP, if the program uses it.
    atp: Option<Box<atp::End>>,
    /// The tester, if the program has this role.
    tester: Option<Box<Tester>>,
}

/// A call or a permanent connection of a program: its socket, and what the program does there.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// Index of the program.
    pub program: usize,
    /// The socket.
    pub socket: &'a Socket,
    /// The behaviour of the program.
    pub own: &'a Behaviour,
}

impl Record<'_> {
    /// PDUs that the program has begun to write, or has to send back, and that the adapter has not accepted yet.
    #[must_use]
    pub const fn waiting(&self) -> u64 {
        self.own.waiting(self.socket)
    }
    /// PDUs of its own that the program has not begun to write yet. They are never written if the call has ended.
    #[must_use]
    pub fn unwritten(&self) -> u64 {
        self.own.unwritten(self.socket.writing.pdus() > 0)
    }
    /// Measurements of a tester; `None` if the program is no tester.
    #[must_use]
    pub fn measured(&self) -> Option<Measured> {
        self.own.tester.as_ref().map(|tester| tester.measured())
    }
}

/// The programs of a host, without their sockets. All times in here are those of the host's clock.
#[derive(Debug)]
pub(super) struct Programs {
    list: Vec<Program>,
    /// Totals of each program.
    fates: Vec<Fate>,
    /// When callers, by index, make their next calls.
    starts: Deadlines<usize>,
    /// For each caller, the waits after failed calls.
    retries: Vec<Backoff>,
    /// Their connections that have not ended.
    pub(super) open: BTreeMap<ConnId, SocketRef>,
    /// When these have work to do.
    work: Deadlines<ConnId>,
    /// Ended connections that are remembered, the oldest first.
    ended: VecDeque<SocketRef>,
    /// Id of the next connection.
    next: SocketId,
    clock: Clock,
    /// Time of the input that is handled.
    pub(super) now: Instant,
}

impl Programs {
    /// These programs, which do not run yet.
    pub(super) fn new(list: Vec<Program>, clock: Clock, (node, life): (u32, u32)) -> Self {
        let retries = list.iter().map(|program| Backoff::of(&program.local));
        Self {
            starts: Deadlines::default(),
            fates: vec![Fate::default(); list.len()],
            retries: retries.collect(),
            list,
            open: BTreeMap::new(),
            work: Deadlines::default(),
            ended: VecDeque::new(),
            next: SocketId {
                node,
                life,
                number: 0,
            },
            clock,
            now: Instant::ZERO,
        }
    }
    /// Sets the network prefix of their addresses, as learnt by ILMI. Call this only before the start.
    pub(super) fn set_prefix(&mut self, prefix: [u8; 13]) {
        for program in &mut self.list {
            program.local = program.local.with_prefix(prefix);
        }
    }
    /// An input comes at this time of the lab.
    pub(super) fn set_time(&mut self, now: Instant) {
        self.now = self.clock.local(now);
    }
    /// A connection has ended.
    pub(super) fn close(&mut self, conn: ConnId) {
        self.open.remove(&conn);
        self.work.set(conn, None);
    }
    fn new_id(&mut self) -> SocketId {
        let id = self.next;
        self.next.number += 1;
        id
    }
}

/// Views of programs of the lab file.
impl SocketLayer {
    /// The programs of the lab file.
    #[must_use]
    pub fn programs(&self) -> &[Program] {
        &self.programs.list
    }
    /// Totals of each program, in the same order.
    #[must_use]
    pub fn fates(&self) -> &[Fate] {
        &self.programs.fates
    }
    /// Calls and permanent connections of programs of the lab file: first those that have ended.
    pub fn calls(&self) -> impl Iterator<Item = Record<'_>> {
        let all = self
            .programs
            .ended
            .iter()
            .chain(self.programs.open.values());
        all.filter_map(|at| self.record(*at))
    }
    fn record(&self, at: SocketRef) -> Option<Record<'_>> {
        let entry = self.table.get(at)?;
        let (socket, own) = (entry.socket.as_deref()?, entry.behaviour.as_deref()?);
        let program = socket.program?;
        Some(Record {
            program,
            socket,
            own,
        })
    }
    /// The mark of the PDU that such a program is writing on this socket.
    pub(super) fn mark(&self, at: SocketRef) -> Option<Mark> {
        let own = self.record(at)?.own;
        Some(Mark {
            socket: own.id,
            pdu: own.writer.asked,
        })
    }
    /// The same on this connection.
    pub(in crate::host) fn mark_of(&self, conn: ConnId) -> Option<Mark> {
        self.mark(*self.programs.open.get(&conn)?)
    }
    /// The program that has this connection, by its index; `Some(None)` for one of the machine, `None` if the
    /// connection has ended.
    pub(in crate::host) fn reader(&self, conn: ConnId) -> Option<Option<usize>> {
        let socket = self.get(*self.conns.get(&conn)?)?;
        Some(socket.program)
    }
    /// True if the program of this connection uses ATP.
    pub(in crate::host) fn uses_atp(&self, conn: ConnId) -> bool {
        let program = self.reader(conn).flatten();
        program.is_some_and(|program| self.programs.list[program].atp.is_some())
    }
    /// How the adapter sends on this connection, where its program says so.
    pub(in crate::host) fn shaping(&self, conn: ConnId) -> Option<Shaping> {
        self.programs.list[self.reader(conn)??].shaping
    }
}

/// A socket of a program, and its behaviour.
fn parts(table: &mut Table, at: SocketRef) -> Option<(&mut Socket, &mut Behaviour)> {
    let entry = table.get_mut(at)?;
    Some((
        entry.socket.as_deref_mut()?,
        entry.behaviour.as_deref_mut()?,
    ))
}

impl SocketLayer {
    pub(super) fn start_programs(&mut self) {
        for index in 0..self.programs.list.len() {
            let Program {
                local, sap, role, ..
            } = self.programs.list[index];
            match role {
                Role::Listen { max_sdu, .. } => {
                    let socket = Socket {
                        state: State::Listening,
                        local: Some(local),
                        ..self.socket_of(index)
                    };
                    if let Some(at) = self.add(socket) {
                        self.begin_listening(at, (local, sap), max_sdu);
                    }
                }
                Role::Call { send, .. } => {
                    let start = self.programs.clock.start(send.start);
                    self.programs.starts.set(index, Some(start));
                }
                Role::Permanent { vc, .. } => {
                    let socket = self.socket_of(index);
                    if let Some(at) = self.add_behaving(socket) {
                        self.use_permanent(at, vc);
                        self.opens(at);
                    }
                }
            }
        }
    }

    /// A socket of this program, by its role.
    fn socket_of(&self, index: usize) -> Socket {
        let program = &self.programs.list[index];
        let aal = match program.tester {
            true => AalType::Aal0,
            false => AalType::Aal5,
        };
        let mut socket = Socket {
            program: Some(index),
            sap: program.sap,
            ..Socket::new(None)
        };
        match program.role {
            Role::Call { qos, .. } => (socket.local, socket.qos.qos) = (Some(program.local), qos),
            Role::Permanent { qos, .. } => (socket.qos.aal, socket.qos.qos) = (aal, qos),
            Role::Listen { .. } => {}
        }
        socket
    }

    /// Puts a socket of a program with a connection into the table. A full table fails its call.
    fn add_behaving(&mut self, socket: Socket) -> Option<SocketRef> {
        let behaviour = Behaviour {
            id: self.programs.new_id(),
            since: self.programs.now,
            ..Behaviour::default()
        };
        let program = socket.program;
        let at = self.add(socket);
        if let (Some(program), None) = (program, at) {
            self.plan_call(program, false, Cause::RESOURCES);
            self.call_failed(program, Cause::RESOURCES);
        }
        self.table.get_mut(at?)?.behaviour = Some(Box::new(behaviour));
        at
    }

    /// A connection of a program has been asked for, or accepted.
    fn opens(&mut self, at: SocketRef) {
        if let Some(conn) = self.get_mut(at).and_then(|socket| socket.conn) {
            self.programs.open.insert(conn, at);
        }
    }

    fn call_by_program(&mut self, index: usize) {
        let Role::Call { to, .. } = self.programs.list[index].role else {
            return;
        };
        let socket = self.socket_of(index);
        if let Some(at) = self.add_behaving(socket) {
            let wanted = Wanted {
                to: Destination::Atm(to),
                root: None,
                user_data: UserData::default(),
            };
            self.call(at, to, wanted);
            self.opens(at);
        }
    }

    /// A call arrives for a listener. A listener that only reads can be a leaf of a point-to-multipoint call.
    pub(super) fn offered_to_program(
        &mut self,
        index: usize,
        conn: ConnId,
        waiting: Waiting,
        multipoint: bool,
    ) {
        let program = &self.programs.list[index];
        let Role::Listen { answer, calls, .. } = program.role else {
            return;
        };
        let answers = answer == Answer::Echo || program.atp.is_some();
        let unfit = match waiting.qos.aal {
            AalType::Aal0 => Some(AAL_UNSUPPORTED),
            AalType::Aal5 => (multipoint && answers).then_some(Cause::INCOMPATIBLE),
        };
        if let Some(cause) = unfit {
            return self.request(AtmRequest::Release { conn, cause });
        }
        let open = self.programs.open.values();
        let open = open.filter_map(|at| self.record(*at));
        let busy = open.filter(|call| call.program == index).count() >= calls;
        let socket = Socket {
            program: Some(index),
            ..waiting.accepted(conn, None, None)
        };
        let at = self.add_behaving(socket);
        if let (Some(at), false) = (at, busy) {
            self.conns.insert(conn, at);
            self.opens(at);
            self.begin_atp(at, index, None);
            return self.request(AtmRequest::Accept { conn, terms: None });
        }
        let cause = at.map_or(Cause::RESOURCES, |_| Cause::BUSY);
        self.request(AtmRequest::Release { conn, cause });
        if let Some(at) = at {
            self.over(at, cause, true);
        }
    }

    /// A connection of this program can be used.
    pub(super) fn program_connected(&mut self, at: SocketRef, index: usize) {
        let now = self.programs.now;
        let program = &self.programs.list[index];
        let Some((socket, own)) = parts(&mut self.table, at) else {
            return;
        };
        self.programs.fates[index].opened += 1;
        let setup = now.since(own.since);
        own.setup = Some(setup);
        self.programs.retries[index].reset();
        let (label, peer) = (socket.label(), Peer(socket.peer));
        let (name, next, opened) = match program.role {
            Role::Listen { .. } => ("socket.open", None, Opened::By(peer)),
            // A caller that has nothing to send only waits for the release.
            Role::Call { send, hold, .. } => {
                let wait = if send.pdus > 0 { Duration::ZERO } else { hold };
                ("socket.open", Some(now + wait), Opened::To(peer))
            }
            Role::Permanent { send, qos, .. } => {
                let start = self.programs.clock.start(send.start);
                let start = (send.pdus > 0).then(|| start.max(now));
                if program.tester {
                    own.tester = Some(Box::new(Tester::new(qos.rx.max_pcr)));
                }
                ("socket.bound", start, Opened::Bound(label))
            }
        };
        own.next = next;
        own.left = program.role.sending().map_or(0, |send| send.pdus);
        let (of, micros) = (program.name.clone(), setup.as_micros() as u64);
        let text = Words::later(move |f| write!(f, "{of}: {opened}, set up in {micros} us"));
        let trace = Trace::milestone(name, text)
            .with_value("socket", program.name.clone())
            .with_value("vc", label)
            .with_value("setup_us", micros);
        self.out.push_back(Output::Trace(trace));
        self.begin_atp(at, index, next);
    }

    /// A PDU for a program.
    pub(super) fn read_by_program(&mut self, at: SocketRef, sdu: &[u8]) {
        let now = self.programs.now;
        let Some((socket, own)) = parts(&mut self.table, at) else {
            return;
        };
        let Some(index) = socket.program.filter(|_| socket.state != State::Ended) else {
            return;
        };
        socket.received.add_summed(sdu);
        if own.atp.is_some() {
            return self.atp(at, Some(sdu));
        }
        if let Some(tester) = &mut own.tester {
            if let Ok(cell) = UserCell::decode(sdu) {
                tester.arrived(&cell.payload, now);
            }
            return;
        }
        let program = &self.programs.list[index];
        match program.role.answer() {
            Some(Answer::Echo) => {
                own.offer_back(socket, sdu);
                self.write_next(at);
            }
            Some(Answer::Read) => {
                let told = sdu.get(..TOLD).unwrap_or(sdu);
                let text = String::from_utf8_lossy(told).escape_debug().to_string();
                let octets = counted(sdu.len(), "octet", "octets");
                let text = format!("{}: {octets}: {text}", program.name);
                let trace = Trace::milestone("socket.read", text).with("socket", &program.name);
                self.out.push_back(Output::Trace(trace));
            }
            Some(Answer::Sink) | None => {}
        }
    }

    /// A call of a program has failed before it was open.
    fn call_failed(&mut self, index: usize, cause: Cause) {
        let fate = &mut self.programs.fates[index];
        fate.failed += 1;
        fate.cause = Some(cause);
    }

    /// A caller's call is over: plans the next one. True if it repeats a call that has failed, not for the first time.
    fn plan_call(&mut self, index: usize, was_open: bool, cause: Cause) -> bool {
        let programs = &mut self.programs;
        let Role::Call { every, .. } = programs.list[index].role else {
            return false;
        };
        // A busy listener is an answer.
        let failed = !was_open && cause != Cause::BUSY && cause.is_temporary();
        let retries = &mut programs.retries[index];
        let repeated = every.is_none() && failed && retries.tries() > 0;
        let wait = match every {
            None if failed => Some(retries.wait(Some(cause), Duration::ZERO, LONGEST_WAIT)),
            every => every,
        };
        let start = wait.map(|wait| programs.now + wait);
        programs.starts.set(index, start);
        repeated
    }

    /// A connection of this program has ended: traces the end and remembers the connection. `begun` tells whether a PDU
    /// was being written.
    pub(super) fn call_of_program_over(
        &mut self,
        (at, index): (SocketRef, usize),
        cause: Cause,
        begun: bool,
    ) {
        let now = self.programs.now;
        let Some((socket, own)) = parts(&mut self.table, at) else {
            return;
        };
        own.end(socket, begun, now);
        let was_open = own.setup.is_some();
        let trace = ending(&self.programs.list[index], socket, own, cause);
        let repeated = self.plan_call(index, was_open, cause);
        if repeated {
            // Of repeated attempts that all failed, only the record of the last one stays.
            let same = |call: Record<'_>| call.program == index && call.own.setup.is_none();
            let same = |old: &SocketRef| self.record(*old).is_some_and(same);
            let before = self.programs.ended.iter().rposition(same);
            let before = before.and_then(|before| self.programs.ended.remove(before));
            before.into_iter().for_each(|at| self.forget(at));
        }
        let milestone = !repeated;
        self.out
            .push_back(Output::Trace(Trace { milestone, ..trace }));
        if !was_open {
            self.call_failed(index, cause);
        }
        if self.programs.ended.len() >= ENDED
            && let Some(oldest) = self.programs.ended.pop_front()
        {
            let id = self.record(oldest).map(|call| call.own.id);
            self.forget(oldest);
            let gone = id.map(SocketEvent::Forgotten);
            self.out.extend(gone.map(Output::Socket));
        }
        self.programs.ended.push_back(at);
    }

    /// Does what is due for programs.
    pub(super) fn programs_due(&mut self) {
        for index in self.programs.starts.due(self.programs.now) {
            self.programs.starts.set(index, None);
            self.call_by_program(index);
        }
        for at in self.due(|call| call.own.wake(call.socket)) {
            self.write_next(at);
        }
        for at in self.due(|call| call.own.atp_deadline()) {
            self.atp(at, None);
        }
    }

    /// Connections of programs with such a time that has come.
    fn due(&mut self, when: impl Fn(Record<'_>) -> Option<Instant>) -> Vec<SocketRef> {
        self.plan_work();
        let programs = &self.programs;
        let work = programs.work.due(programs.now).into_iter();
        let open = work.filter_map(|conn| programs.open.get(&conn).copied());
        let due = open.filter(|at| {
            let when = self.record(*at).and_then(&when);
            when.is_some_and(|at| at <= programs.now)
        });
        due.collect()
    }

    /// Finds out anew when the connections of programs that have changed have work to do.
    pub(super) fn plan_work(&mut self) {
        while let Some(at) = self.table.next_changed() {
            let Some(call) = self.record(at) else {
                continue;
            };
            let whens = [call.own.wake(call.socket), call.own.atp_deadline()];
            let open = |conn: &ConnId| self.programs.open.get(conn) == Some(&at);
            if let Some(conn) = call.socket.conn.filter(open) {
                let when = whens.into_iter().flatten().min();
                self.programs.work.set(conn, when);
            }
        }
    }

    /// When a program has work to do, by the clock of the lab.
    pub(super) fn programs_deadline(&self) -> Option<Instant> {
        let programs = &self.programs;
        let first = [programs.starts.next(), programs.work.next()];
        let first = first.into_iter().flatten().min();
        first.map(|at| programs.clock.of_lab(at))
    }
}

/// The trace of the end of a connection.
fn ending(program: &Program, socket: &Socket, own: &Behaviour, cause: Cause) -> Trace {
    let name = program.name.clone();
    let (caller, bound) = match program.role {
        Role::Permanent { vc, .. } => (true, Some(vc)),
        Role::Call { .. } => (true, None),
        Role::Listen { .. } => (false, None),
    };
    let peer = Peer(socket.peer);
    let who = if socket.by_us {
        "here"
    } else {
        "by the other side"
    };
    let (setup, troubles) = (own.setup, own.troubles(socket));
    let (sent, received) = (socket.sent, socket.received);
    let text = Words::later(move |f| {
        let peer: &dyn fmt::Display = match &bound {
            Some(vc) => vc,
            None => &peer,
        };
        match (setup, caller) {
            (None, true) => write!(f, "{name}: call to {peer} failed: {cause}"),
            (None, false) => write!(f, "{name}: call from {peer} not taken: {cause}"),
            (Some(_), _) => write!(
                f,
                "{name}: call with {peer} released {who}, {cause}; sent {}, {}, received {}, {}",
                counted(sent.pdus, "PDU", "PDUs"),
                counted(sent.octets, "octet", "octets"),
                counted(received.pdus, "PDU", "PDUs"),
                counted(received.octets, "octet", "octets")
            ),
        }?;
        f.write_str(&troubles)
    });
    let event = match own.setup {
        None => "socket.refused",
        Some(_) => "socket.ended",
    };
    Trace::milestone(event, text)
        .with_value("socket", program.name.clone())
        .with_value("cause", cause.0)
        .with_value("sent_pdus", sent.pdus)
        .with_value("sent_octets", sent.octets)
        .with_value("received_pdus", received.pdus)
        .with_value("received_octets", received.octets)
        .with_value("received_crc32", Value::Hex(received.crc32))
}

/// The other end of a connection, in a text.
#[derive(Clone, Copy)]
struct Peer(Option<AtmAddress>);

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(peer) => peer.fmt(f),
            None => f.write_str("an unknown caller"),
        }
    }
}

/// Words about the opening of a connection.
enum Opened {
    By(Peer),
    To(Peer),
    Bound(Label),
}

impl fmt::Display for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::By(peer) => write!(f, "call from {peer}"),
            Self::To(peer) => write!(f, "connected to {peer}"),
            Self::Bound(label) => write!(f, "bound to {label}"),
        }
    }
}
