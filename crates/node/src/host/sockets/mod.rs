//! The ATM sockets of a host: those of programs of the machine, and those of programs of the lab file.
//!
//! **Purpose.** Programs use the ATM service of this host as they would use sockets of a kernel: they listen, call,
//! accept or refuse calls, use permanent connections, and send and receive PDUs. Programs of the machine do so from
//! outside the lab's process. A program of the lab file has its sockets in here, each with a behaviour beside it that
//! answers calls, writes and reads ([`programs`]); what follows about sockets concerns both. As in the
//! Cambridge socket family, signalling decides about calls ([`crate::signalling`], in a process of its own with
//! `--split`), the adapter carries PDUs, and this layer between them keeps its own notion of the state of each socket.
//! So an answer of signalling about a socket that has died meanwhile finds nothing, and harms nothing.
//!
//! **Objects and owners.** [`SocketLayer`] owns the [`Socket`]s of one host, in a table. The reference of a socket
//! ([`SocketRef`]) is an index with a number of use, which is checked on every use. A *session* is a connection of a
//! program to the service: the driver numbers the sessions, and passes requests and answers
//! ([`aerostat_proto::socket`]). A session may use a socket that it has opened or accepted, or whose descriptor it has
//! shown. The driver owns the descriptors; to this machine a descriptor is [`Input::Write`], [`ToPrograms::Deliver`],
//! [`Input::Closed`] and [`ToPrograms::End`].
//!
//! **States** of a socket:
//!
//! ```text
//!   idle ─► bound ─► listening ─► (offers) ─► accepting ─┐
//!     │       │                                          ▼
//!     ├───────┼────────────────► connecting ────────► connected ─► ending ─► ended
//!     └───────┴─► resolving ─────────▲
//! ```
//!
//! A socket that ends for its program is *ending* while the adapter still has PDUs of it. A socket whose call has ended
//! keeps its cause and its counts. [`ENDED`] such sockets are remembered: the next one displaces the oldest of the
//! session that has most of them (`table.rs`).
//!
//! **Data.** A program writes a few PDUs at a time ([`SocketLayer::most`]); the next ones wait until the adapter has
//! taken all of them ([`SocketLayer::may_write`]), so the program's descriptor fills and `write` blocks. A PDU longer
//! than the contract allows is dropped, counted, and ends the call with cause 111: the program does not keep to its
//! contract. A PDU that the program does not read is dropped by the driver, which counts it here ([`Input::Unread`]):
//! ATM has no flow control.
//!
//! **Calls inside the host.** A call to a listener of this layer, of either kind, does not leave the host (`local.rs`),
//! except a point-to-multipoint call: the manager of signalling decides about it, and then each end refers to the
//! other. What one program writes goes to the other, and `write` waits while its descriptor is full: nothing is lost.
//!
//! **Calls to IP addresses.** The host resolves the ATM address; meanwhile the socket is *resolving* (`resolve.rs`).
//!
//! **Timers.** A call has the time that its program gives (`timeout`), and is given up with cause 102 then. An offer is
//! refused after [`OFFER`] with cause 18, an accepted call after [`ACCEPT`]. A socket is *ending* for at most
//! [`LINGER`].
//!
//! **Failure.** A program that dies closes its descriptors: its calls are released with cause 16, its listeners stop,
//! their offers are refused. A crash of this service ends all sockets of the host; the driver closes their
//! descriptors. Without the manager of signalling (`sigd`) every call ends with cause 41, and new ones are refused.
//!
//! **Bounds.** [`SOCKETS`] of a host, [`OFFERS`] of a listener, [`SESSIONS`] of a socket, [`LEAVES`] of a call,
//! [`ENDED`] remembered ends, [`QUESTIONS`] IP addresses that are being resolved, [`WAITING`] calls that wait for
//! these. A program that asks for more gets an error with the number.
//!
//! **Standards.** No standard of its own; see [`aerostat_proto::socket`].

mod adapter;
mod addresses;
mod data;
mod interface;
mod local;
mod messages;
mod offers;
mod parties;
pub mod programs;
mod requests;
mod resolve;
mod resolver;
mod socket;
mod table;
#[cfg(test)]
mod tests;

use crate::atm::Sdus;
use crate::ip::clock::Clock;
use crate::signalling::{Along, Heard};
pub use adapter::FromAdapter;
use aerostat_proto::atm::{AtmUser, UserOutput};
use aerostat_proto::socket::{Answer, Errno, Failure, Interface, SocketRef, UserData};
use aerostat_proto::{
    AtmEvent, AtmRequest, Cause, ConnId, Deadlines, Duration, Instant, Machine, Trace,
};
use aerostat_wire::{AalType, AtmAddress, Qos, Sap, Vc};
use core::convert::Infallible;
pub use messages::{Input, Output, ToPrograms};
use programs::{Behaviour, Program, Programs};
use requests::ended;
use resolve::Waiter;
pub use resolve::{QUESTIONS, RESOLVE, Unresolved, WAITING};
use socket::{Asked, Writing};
pub use socket::{Label, Socket, State, Sum};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::Ipv4Addr;
use std::sync::Arc;

/// Limit of sockets of a host, with those that have ended and are remembered.
pub const SOCKETS: usize = 8000;
/// Limit of listeners of a host.
pub const LISTENERS: usize = 1024;
/// Limit of ended sockets that are remembered; the oldest of the session with most of them is forgotten first.
pub const ENDED: usize = 1024;
/// Limit of offers of a listener that wait for an answer.
pub const OFFERS: usize = 128;
/// Limit of sessions that may use a socket.
pub const SESSIONS: usize = 16;
/// Limit of leaves of a point-to-multipoint call.
pub const LEAVES: usize = 1024;
/// How long an offer waits for its answer.
pub const OFFER: Duration = Duration::from_secs(5);
/// How long an accepted call may take until it can be used.
pub const ACCEPT: Duration = Duration::from_secs(10);
/// How long the PDUs of a socket that ends may take to leave the adapter.
pub const LINGER: Duration = Duration::from_secs(10);

/// Where other connections have a label: the connection does not leave the host.
pub const LOCAL: &str = "local";

/// The number that the driver gave to a session.
pub type Session = u32;

/// The entry of the table with this index is in its use number `generation`.
#[derive(Debug, Default)]
struct Entry {
    generation: u32,
    socket: Option<Box<Socket>>,
    /// Of a connection of a program of the lab file.
    behaviour: Option<Box<Behaviour>>,
    /// True if it stands in [`Table::changed`].
    changed: bool,
}

/// The sockets.
#[derive(Debug, Default)]
struct Table {
    entries: Vec<Entry>,
    /// Places of connections of programs of the lab file that may have work to do at another time than before.
    changed: Vec<u32>,
}

impl Table {
    fn get(&self, at: SocketRef) -> Option<&Entry> {
        let entry = self.entries.get(at.index());
        entry.filter(|entry| entry.generation == at.generation())
    }
    fn get_mut(&mut self, at: SocketRef) -> Option<&mut Entry> {
        let entry = self.entries.get_mut(at.index());
        let entry = entry.filter(|entry| entry.generation == at.generation())?;
        if entry.behaviour.is_some() && !core::mem::replace(&mut entry.changed, true) {
            self.changed.push(at.index() as u32);
        }
        Some(entry)
    }
    /// One of the connections that have changed since it was last asked.
    fn next_changed(&mut self) -> Option<SocketRef> {
        let index = self.changed.pop()?;
        let entry = self.entries.get_mut(index as usize)?;
        entry.changed = false;
        Some(SocketRef::of(index, entry.generation))
    }
}

/// Parts of the layer with a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timed {
    /// A call that is made or accepted, or a socket that ends.
    Socket(SocketRef),
    /// An offer of a listener.
    Offer(SocketRef, u32),
    /// A question for the ATM address of an IP address.
    Question(Ipv4Addr),
}

aerostat_proto::counters! {
    /// Counters of the socket service of a host.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Counters {
        /// Requests that were refused because of their reference: it was not the session's.
        pub strangers: u64,
        /// IP addresses of calls and leaves that were resolved.
        pub resolved: u64,
        /// IP addresses of calls and leaves that were not resolved.
        pub unresolved: u64,
        /// Calls and leaves that were refused because too many IP addresses were being resolved.
        pub resolutions_refused: u64,
    }
}

/// Facts that a host has to know for its programs.
#[derive(Clone, Debug)]
pub struct Config {
    /// Name of the host.
    pub host: String,
    /// Its address, with selector 00.
    pub address: AtmAddress,
    /// First selector that the service gives to sockets; it gives those from here to 0xff.
    pub first_selector: u8,
    /// Programs of the lab file on this host.
    pub programs: Vec<Program>,
    /// Clock of the host, which these go by.
    pub clock: Clock,
    /// Number of the node, and how often it was switched on before: for the ids of their connections.
    pub life: (u32, u32),
    /// Limit of calls, and of permanent connections in use.
    pub calls: usize,
    /// Limit of listeners.
    pub listeners: usize,
    /// Nodes of the lab that can be called by name, with the address and the selector that stand for the name.
    pub names: Arc<BTreeMap<String, AtmAddress>>,
}

/// The socket service of a host. See the documentation of this module.
#[derive(Debug)]
pub struct SocketLayer {
    config: Config,
    table: Table,
    free: Vec<u32>,
    /// Sockets by connection.
    conns: BTreeMap<ConnId, SocketRef>,
    /// Sockets by label, until the adapter has closed it.
    labels: BTreeMap<Vc, SocketRef>,
    /// Calls that wait for the answer of a program.
    offers: BTreeMap<ConnId, offers::Waiting>,
    /// Listeners by what they listen for.
    listeners: BTreeMap<(AtmAddress, Sap), SocketRef>,
    /// Ended sockets that are remembered, by the first session that used them; the oldest is in front.
    ended: BTreeMap<Option<Session>, VecDeque<SocketRef>>,
    deadlines: Deadlines<Timed>,
    next_conn: u32,
    next_offer: u32,
    /// Calls and leaves that wait for an ATM address, by IP address.
    questions: BTreeMap<Ipv4Addr, Vec<Waiter>>,
    counters: Counters,
    programs: Programs,
    /// PDUs of programs of the lab file for the other end inside the host.
    inside: VecDeque<(SocketRef, Sdus)>,
    /// Addresses that programs have added, with selector 0.
    added: BTreeSet<AtmAddress>,
    /// The counts of the interface when programs set them to 0.
    zeroed: Interface,
    out: VecDeque<Output>,
}

impl SocketLayer {
    /// The service of a host without sockets.
    #[must_use]
    pub fn new(mut config: Config) -> Self {
        let programs = Programs::new(
            std::mem::take(&mut config.programs),
            config.clock,
            config.life,
        );
        Self {
            config,
            programs,
            inside: VecDeque::new(),
            table: Table::default(),
            free: Vec::new(),
            conns: BTreeMap::new(),
            labels: BTreeMap::new(),
            offers: BTreeMap::new(),
            listeners: BTreeMap::new(),
            ended: BTreeMap::new(),
            deadlines: Deadlines::default(),
            next_conn: 0,
            next_offer: 1,
            questions: BTreeMap::new(),
            counters: Counters::default(),
            added: BTreeSet::new(),
            zeroed: Interface::default(),
            out: VecDeque::new(),
        }
    }
    /// The sockets of programs of the machine, with their references.
    pub fn sockets(&self) -> impl Iterator<Item = (SocketRef, &Socket)> {
        let all = self.table.entries.iter().enumerate();
        let all = all.filter_map(|(index, entry)| {
            let at = SocketRef::of(index as u32, entry.generation);
            Some((at, entry.socket.as_deref()?))
        });
        all.filter(|(_, socket)| socket.program.is_none())
    }
    /// Its counters.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }
    /// True if a PDU of this socket's program may be given now. After the end of a call it may: the PDU is counted as
    /// refused.
    #[must_use]
    pub fn may_write(&self, at: SocketRef) -> bool {
        self.get(at).is_none_or(|socket| {
            let room = match socket.state {
                State::Connected => socket.local_end.as_ref().is_none_or(local::End::has_room),
                State::Ended => true,
                _ => false,
            };
            room && matches!(socket.writing, Writing::Idle)
        })
    }
    /// As [`Self::may_write`]; if false, [`ToPrograms::Room`] will tell when it is true.
    pub fn asks_to_write(&mut self, at: SocketRef) -> bool {
        let may = self.may_write(at);
        if let Some(socket) = self.get_mut(at) {
            socket.held = !may;
        }
        may
    }

    /// True if this socket has, or had, a connection: what its program has written is read before its end is noticed.
    #[must_use]
    pub fn is_open(&self, at: SocketRef) -> bool {
        let open = [State::Connected, State::Ending, State::Ended];
        self.get(at)
            .is_none_or(|socket| open.contains(&socket.state))
    }

    fn get(&self, at: SocketRef) -> Option<&Socket> {
        self.table.get(at)?.socket.as_deref()
    }
    fn get_mut(&mut self, at: SocketRef) -> Option<&mut Socket> {
        self.table.get_mut(at)?.socket.as_deref_mut()
    }

    fn request(&mut self, request: AtmRequest) {
        self.request_saying(request, UserData::default());
    }
    /// The request says this to the other end.
    fn request_saying(&mut self, request: AtmRequest, data: UserData) {
        let aal = AalType::Aal5;
        self.out
            .push_back(Output::Atm(request, Along { data, aal }));
    }
    fn tell(&mut self, what: ToPrograms) {
        self.out.push_back(Output::Program(what));
    }
    fn answer(&mut self, to: Asked, answer: Answer) {
        let Asked { session, number } = to;
        self.tell(ToPrograms::Answer {
            session,
            number,
            answer,
            descriptor: None,
        });
    }
    fn new_conn(&mut self) -> ConnId {
        // An id is free again long before the numbers begin anew.
        let conn = ConnId(self.next_conn);
        self.next_conn = (self.next_conn + 1) % ConnId::INCOMING;
        conn
    }

    /// The connection of a socket has ended, or could not be opened.
    fn over(&mut self, at: SocketRef, cause: Cause, by_us: bool) {
        let Some(socket) = self.get_mut(at) else {
            return;
        };
        if socket.state == State::Ended {
            return;
        }
        let program = socket.program;
        let accepting = socket.state == State::Accepting;
        socket.state = State::Ended;
        socket.cause = Some(cause);
        socket.by_us = by_us;
        let (writing, conn) = (std::mem::take(&mut socket.writing), socket.conn.take());
        if let Some(conn) = conn {
            self.conns.remove(&conn);
            self.programs.close(conn);
        }
        self.deadlines.set(Timed::Socket(at), None);
        if let Some(program) = program {
            return self.call_of_program_over((at, program), cause, writing.pdus() > 0);
        }
        let Some(socket) = self.get_mut(at) else {
            return;
        };
        match writing {
            Writing::Blocked(sdus) => socket.count_unsent(&sdus),
            other => socket.refused += other.pdus(),
        }
        let asked = socket.asked.take();
        let (heard, why) = (socket.heard.clone(), socket.why.clone());
        let adding = socket.root.as_mut().map(parties::Root::end);
        let adding = adding.unwrap_or_default();
        self.stop_waiting(at);
        let asked = asked.into_iter().chain(adding);
        for asked in asked.collect::<Vec<_>>() {
            let mut failure = ended(cause);
            failure.user_data = heard.clone();
            if let Some(why) = &why {
                failure.text.clone_from(why);
            }
            self.answer(asked, Answer::Failed(failure));
        }
        if accepting {
            // Its program has never seen it.
            return self.forget(at);
        }
        self.tell(ToPrograms::End { socket: at });
        self.remember(at);
    }

    fn told(&mut self, event: AtmEvent<&[u8]>, heard: Heard, now: Instant) {
        match event {
            AtmEvent::Incoming {
                conn,
                calling,
                called,
                sap,
                qos,
                multipoint,
            } => {
                self.offered(conn, (calling, called), (sap, qos), multipoint, heard, now);
            }
            AtmEvent::Connected { conn, vc, qos } => self.connected(conn, Some(vc), qos, heard),
            AtmEvent::Released { conn, cause } => self.released(conn, cause, heard),
            AtmEvent::Received { conn, sdu } => match self.programs.open.get(&conn) {
                Some(at) => self.read_by_program(*at, sdu),
                None => self.received(conn, sdu.to_vec().into()),
            },
            // A call that is made while signalling is down waits in signalling.
            AtmEvent::Up | AtmEvent::Down => {}
            AtmEvent::PartyAdded { conn, party } => self.party_added(conn, party, heard),
            AtmEvent::PartyGone { conn, party, cause } => {
                self.party_gone(conn, party, cause, heard);
            }
        }
    }

    fn released(&mut self, conn: ConnId, cause: Cause, heard: Heard) {
        let heard = heard.carried.filter(|data| !data.is_empty());
        if let Some(at) = self.conns.get(&conn).copied() {
            if let (Some(socket), Some(heard)) = (self.get_mut(at), heard) {
                socket.heard = heard;
            }
            return self.over(at, cause, false);
        }
        self.withdrawn(conn);
    }

    /// The connection of a socket can be used: with a label, or inside the host.
    fn connected(&mut self, conn: ConnId, vc: Option<Vc>, agreed: Qos, heard: Heard) {
        let Some(at) = self.conns.get(&conn).copied() else {
            return;
        };
        let Some(socket) = self.get_mut(at) else {
            return;
        };
        let accepted = socket.state == State::Accepting;
        socket.state = State::Connected;
        socket.vc = vc;
        socket.qos.qos = agreed;
        if let Some(root) = &mut socket.root {
            root.begin();
        }
        socket.carries = heard.carried.is_some();
        if !accepted {
            socket.heard = heard.carried.unwrap_or_default();
        }
        let program = socket.program;
        self.labels.extend(vc.map(|vc| (vc, at)));
        self.deadlines.set(Timed::Socket(at), None);
        if let Some(program) = program {
            return self.program_connected(at, program);
        }
        let Some(socket) = self.get_mut(at) else {
            return;
        };
        let asked = socket.asked.take();
        let (qos, label) = (socket.qos, socket.label().to_string());
        let user_data = socket.heard.clone();
        let peer = socket
            .peer
            .map_or_else(|| label.clone(), |peer| peer.to_string());
        let text = format!("a program of the machine is connected to {peer}");
        let trace = Trace::detail("socket.open", text).with("vc", &label);
        if let Some(asked) = asked {
            let Asked { session, number } = asked;
            let answer = match accepted {
                true => Answer::Opened { socket: at },
                false => Answer::Connected {
                    label,
                    qos: qos.to_string(),
                    user_data,
                },
            };
            self.tell(ToPrograms::Answer {
                session,
                number,
                answer,
                descriptor: accepted.then_some(at),
            });
        }
        if !accepted {
            self.tell(ToPrograms::Room { socket: at });
        }
        self.out.push_back(Output::Trace(trace));
    }

    /// The program has ended its use of a socket, or a session has: what is written leaves first.
    fn end(&mut self, at: SocketRef, cause: Cause, now: Instant) {
        let Some(socket) = self.get_mut(at) else {
            return;
        };
        match socket.state {
            State::Idle | State::Bound | State::Listening => self.stop_listening(at),
            State::Resolving | State::Connecting | State::Accepting => self.release(at, cause),
            State::Connected => {
                if socket.local_end.is_some() {
                    // The other end has everything already.
                    return self.release(at, cause);
                }
                socket.state = State::Ending;
                socket.last = cause;
                let flush = socket
                    .vc
                    .filter(|_| matches!(socket.writing, Writing::Idle));
                self.deadlines.set(Timed::Socket(at), Some(now + LINGER));
                // A PDU that is being written goes first.
                self.out.extend(flush.map(Output::Flush));
            }
            State::Ending | State::Ended => {}
        }
    }
    fn release(&mut self, at: SocketRef, cause: Cause) {
        let socket = self.get_mut(at);
        let said =
            socket.and_then(|socket| Some((socket.conn?, std::mem::take(&mut socket.farewell))));
        if let Some((conn, data)) = said {
            self.request_saying(AtmRequest::Release { conn, cause }, data);
        }
        self.over(at, cause, true);
    }

    /// A session has ended. Its sockets live as long as their descriptors.
    fn gone(&mut self, session: Session, now: Instant) {
        let mut accepting = Vec::new();
        for (index, entry) in self.table.entries.iter_mut().enumerate() {
            let Some(socket) = &mut entry.socket else {
                continue;
            };
            socket.sessions.retain(|other| *other != session);
            socket.asked.take_if(|asked| asked.session == session);
            if let Some(root) = &mut socket.root {
                root.forget_session(session);
            }
            // Its answer would have brought the descriptor.
            let unseen = socket.sessions.is_empty() && socket.program.is_none();
            if socket.state == State::Accepting && unseen {
                accepting.push(SocketRef::of(index as u32, entry.generation));
            }
        }
        for at in accepting {
            self.end(at, Cause::NORMAL, now);
        }
    }

    /// The time of a call, or of a socket that ends, is over.
    fn late(&mut self, at: SocketRef) {
        let Some(socket) = self.get_mut(at) else {
            return;
        };
        let cause = match socket.state {
            State::Ending => socket.last,
            _ => Cause::TIMER,
        };
        if let (State::Resolving, Some(wanted)) = (socket.state, &socket.wanted) {
            let text = format!("no answer about {} in the time of the call", wanted.to);
            socket.why = Some(text);
        }
        self.release(at, cause);
    }

    fn closed(&mut self, at: SocketRef, now: Instant) {
        let Some(state) = self.get(at).map(|socket| socket.state) else {
            return;
        };
        match state {
            State::Idle | State::Bound | State::Listening => {
                self.stop_listening(at);
                self.forget(at);
            }
            _ => self.end(at, Cause::NORMAL, now),
        }
    }
}

impl Machine for SocketLayer {
    type Input<'a> = Input<'a>;
    type Output = Output;
    type Refusal = Infallible;

    fn handle_input(&mut self, input: Input<'_>, now: Instant) -> Result<(), Infallible> {
        self.programs.set_time(now);
        match input {
            Input::Start => {
                // A service that was restarted has no addresses of programs any more.
                self.out.push_back(Output::Addresses(Vec::new()));
                self.start_programs();
            }
            Input::Atm(event, heard) => self.told(event, heard, now),
            Input::Received { conn, sdus } => self.received(conn, sdus),
            Input::Joined {
                conn,
                peer,
                qos,
                heard,
            } => self.joined(conn, peer, qos, heard),
            Input::Taken {
                socket,
                pdus,
                octets,
            } => self.taken(socket, pdus, octets),
            Input::Adapter(event) => self.adapter(event),
            Input::Request {
                session,
                number,
                request,
                shown,
            } => self.asked(Asked { session, number }, request, shown, now),
            Input::Interface {
                session,
                number,
                zero_pdus,
                zero_cells,
                interface,
            } => {
                let asked = Asked { session, number };
                self.describe(asked, zero_pdus, zero_cells, *interface);
            }
            Input::Write { socket, sdus } => self.write(socket, sdus, now),
            Input::Closed { socket } => self.closed(socket, now),
            Input::Unread { socket, pdus } => {
                if let Some(socket) = self.get_mut(socket) {
                    socket.unread += pdus;
                }
            }
            Input::Gone { session } => self.gone(session, now),
            Input::Resolved { ip, answer } => self.resolved(ip, answer),
            Input::AskAgain => self.ask_again(),
        }
        self.pass_waiting();
        self.plan_work();
        Ok(())
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.programs.set_time(now);
        for timed in self.deadlines.due(now) {
            self.deadlines.set(timed, None);
            match timed {
                Timed::Offer(listener, offer) => self.unanswered(listener, offer),
                Timed::Question(ip) => self.not_resolved(ip),
                Timed::Socket(at) => self.late(at),
            }
        }
        self.programs_due();
        self.pass_waiting();
        self.plan_work();
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.out.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let programs = self.programs_deadline().into_iter();
        programs.chain(self.deadlines.next()).min()
    }
}

impl AtmUser for SocketLayer {
    type Other = Output;

    fn event(&mut self, event: AtmEvent<&[u8]>, now: Instant) {
        let done = self.handle_input(Input::Atm(event, Heard::default()), now);
        debug_assert!(done.is_ok(), "events are never refused");
    }
    fn sort(output: Output) -> UserOutput<Output> {
        match output {
            // The host takes user data and AAL, too, and does not ask here.
            Output::Atm(request, _) => UserOutput::Atm(request),
            other => UserOutput::Other(other),
        }
    }
}

fn hex(address: AtmAddress) -> String {
    format!("{address:x}")
}
