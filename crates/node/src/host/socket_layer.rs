//! The ATM sockets of programs of the machine: the socket service of a host.
//!
//! **Purpose.** Programs outside the lab's process use the ATM service of this host as they would use sockets of a
//! kernel: they listen, call, accept or refuse calls, use permanent connections, and send and receive PDUs. As in the
//! Cambridge socket family, signalling decides about calls ([`crate::signalling`], in a process of its own with
//! `--split`), the adapter carries PDUs, and this layer between them keeps its own notion of the state of each socket. So
//! an answer of signalling about a socket that has died meanwhile finds nothing, and harms nothing.
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
//!     └───────┴────► connecting ──────────────────► connected ─► ending ─► ended
//! ```
//!
//! A socket that ends for its program is *ending* while the adapter still has PDUs of it. A socket whose call has ended
//! keeps its cause and its counts until [`ENDED`] sockets of the host have ended after it.
//!
//! **Data.** A program writes one PDU at a time; the next one waits until the adapter has taken it
//! ([`SocketLayer::may_write`]), so the program's descriptor fills and `write` blocks. A PDU longer than the contract
//! allows is dropped, counted, and ends the call with cause 111: the program does not keep to its contract. A PDU that the program does
//! not read is dropped by the driver, which counts it here ([`Input::Unread`]): ATM has no flow control.
//!
//! **Calls inside the host.** A call to a listener of this layer, but for a point-to-multipoint call, does not leave the
//! host (`local.rs`): the manager of signalling decides about it, and then each end refers to the other. What one
//! program writes goes to the descriptor of the other, and `write` waits while that is full: nothing is lost.
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
//! [`ENDED`] remembered ends.
//! A program that asks for more gets an error with the number.
//!
//! **Standards.** No standard of its own; see [`aerostat_proto::socket`].
//!
//! **Not implemented.** Calls of single cells (AAL0).
//!
//! **Deviations.** None known.

mod data;
mod interface;
mod local;
mod offers;
mod parties;
mod requests;
#[cfg(test)]
mod tests;

use super::writes::FromAdapter;
use aerostat_proto::socket::{
    Answer, Errno, Failure, Interface, Offer, Request, SocketRef, Status,
};
use aerostat_proto::{
    AtmEvent, AtmRequest, Cause, ConnId, Deadlines, Duration, Instant, Machine, Trace,
};
use aerostat_wire::{AtmAddress, ConnectionQos, Qos, Sap, Vc};
use core::convert::Infallible;
use requests::ended;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// Limit of sockets of a host, with those that have ended and are remembered.
pub const SOCKETS: usize = 8000;
/// Limit of listeners of a host.
pub const LISTENERS: usize = 1024;
/// Limit of ended sockets that are remembered; the oldest is forgotten first.
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

/// Inputs of [`SocketLayer`].
#[derive(Debug)]
pub enum Input<'a> {
    /// The service starts.
    Start,
    /// From the ATM service.
    Atm(AtmEvent<&'a [u8]>),
    /// A call inside the host can be used: `conn` and `peer` are its ends. Each end gets this once.
    Joined {
        /// This end.
        conn: ConnId,
        /// The other end, a connection of this layer, too.
        peer: ConnId,
        /// The contract, seen from this end.
        qos: Qos,
    },
    /// The descriptor of a socket has taken PDUs that were written inside the host ([`ToPrograms::Deliver`]).
    Taken {
        /// The socket.
        socket: SocketRef,
        /// Their number.
        pdus: usize,
        /// Their octets.
        octets: usize,
    },
    /// From the adapter, about PDUs that sockets have written.
    Adapter(FromAdapter),
    /// A request of a program. `shown` is the socket of the descriptor that came with it.
    Request {
        /// The session.
        session: Session,
        /// Number of the request, for its answer.
        number: u16,
        /// The request.
        request: Request,
        /// The socket whose descriptor is attached.
        shown: Option<SocketRef>,
    },
    /// A program asks for the interface ([`Request::Interface`]), of which the adapter has told its part.
    Interface {
        /// The session.
        session: Session,
        /// Number of the request.
        number: u16,
        /// True if the counts of PDUs, or of cells, begin anew afterwards.
        zero: (bool, bool),
        /// The interface, with the counts since the host was switched on.
        interface: Box<Interface>,
    },
    /// A program wrote a PDU. Give it only if [`SocketLayer::may_write`].
    Write {
        /// The socket.
        socket: SocketRef,
        /// The PDU.
        sdu: Vec<u8>,
    },
    /// The last copy of a descriptor was closed, and everything that was written has been given.
    Closed {
        /// The socket.
        socket: SocketRef,
    },
    /// PDUs were dropped because the program did not read.
    Unread {
        /// The socket.
        socket: SocketRef,
        /// Their number.
        pdus: u64,
    },
    /// A session has ended.
    Gone {
        /// The session.
        session: Session,
    },
}

/// Outputs of [`SocketLayer`].
#[derive(Debug)]
pub enum Output {
    /// To the ATM service.
    Atm(AtmRequest),
    /// Requests [`FromAdapter::Room`] when no cell of this label waits in the adapter any more.
    Flush(Vc),
    /// For programs.
    Program(ToPrograms),
    /// A trace event.
    Trace(Trace),
}

/// What the socket service has for programs.
#[derive(Debug, PartialEq, Eq)]
pub enum ToPrograms {
    /// The answer to a request.
    Answer {
        /// The session.
        session: Session,
        /// Number of the request.
        number: u16,
        /// The answer. With [`Answer::Opened`] the descriptor goes along unless the session has shown it.
        answer: Answer,
        /// The socket whose descriptor goes along. It is made now.
        descriptor: Option<SocketRef>,
    },
    /// An offer, for the descriptor of a listener.
    Offer {
        /// The listener.
        socket: SocketRef,
        /// The offer.
        offer: Offer,
    },
    /// A PDU for the descriptor of a socket.
    Deliver {
        /// The socket.
        socket: SocketRef,
        /// The PDU.
        sdu: Vec<u8>,
        /// True if it was written inside the host: [`Input::Taken`] tells when the descriptor has taken it.
        local: bool,
    },
    /// [`SocketLayer::may_write`] is true again.
    Room {
        /// The socket.
        socket: SocketRef,
    },
    /// The socket has ended: its descriptor is closed here once everything has been delivered.
    End {
        /// The socket.
        socket: SocketRef,
    },
}

/// State of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Opened.
    Idle,
    /// It has an address.
    Bound,
    /// It waits for calls.
    Listening,
    /// A call was requested and is not answered yet.
    Connecting,
    /// A call was accepted and cannot be used yet.
    Accepting,
    /// Its connection can be used.
    Connected,
    /// The program has ended it, and the adapter still has PDUs of it.
    Ending,
    /// Its connection has ended.
    Ended,
}

impl State {
    /// The state in words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Bound => "bound",
            Self::Listening => "listening",
            Self::Connecting => "connecting",
            Self::Accepting => "accepting",
            Self::Connected => "connected",
            Self::Ending => "ending",
            Self::Ended => "ended",
        }
    }
}

/// A request whose answer waits for the network.
#[derive(Clone, Copy, Debug)]
struct Asked {
    session: Session,
    number: u16,
}

/// The writing side of a socket.
#[derive(Clone, Debug, Default)]
enum Writing {
    /// The adapter has taken everything.
    #[default]
    Idle,
    /// The adapter has been given a PDU of so many octets, and has not answered.
    Asked(usize),
    /// There was no room for this PDU.
    Blocked(Vec<u8>),
}

/// A socket.
#[derive(Debug)]
pub struct Socket {
    state: State,
    /// Sessions that may use it.
    sessions: Vec<Session>,
    local: Option<AtmAddress>,
    peer: Option<AtmAddress>,
    sap: Sap,
    qos: ConnectionQos,
    conn: Option<ConnId>,
    vc: Option<Vc>,
    /// The request of its program that waits.
    asked: Option<Asked>,
    writing: Writing,
    /// Of a call inside the host: the other end.
    local_end: Option<local::End>,
    /// True if the driver has been told that no PDU may be written.
    held: bool,
    /// The cause with which it is released once its PDUs have left.
    last: Cause,
    /// Offers of a listener that wait.
    offers: BTreeMap<u32, ConnId>,
    backlog: usize,
    /// Of the root of a point-to-multipoint call.
    root: Option<parties::Root>,
    cause: Option<Cause>,
    /// True if its own side ended it.
    by_us: bool,
    sent: (u64, u64),
    received: (u64, u64),
    refused: u64,
    unsent: u64,
    unread: u64,
    damaged: u64,
    missed: u64,
}

impl Socket {
    fn new(session: Session) -> Self {
        Self {
            state: State::Idle,
            sessions: vec![session],
            local: None,
            peer: None,
            sap: Sap::default(),
            qos: Qos::ubr(0).into(),
            conn: None,
            vc: None,
            asked: None,
            writing: Writing::Idle,
            local_end: None,
            held: false,
            last: Cause::NORMAL,
            offers: BTreeMap::new(),
            backlog: 0,
            root: None,
            cause: None,
            by_us: false,
            sent: (0, 0),
            received: (0, 0),
            refused: 0,
            unsent: 0,
            unread: 0,
            damaged: 0,
            missed: 0,
        }
    }

    /// Its state, for its program and for `inspect`.
    #[must_use]
    pub fn status(&self) -> Status {
        let text = |address: Option<AtmAddress>| address.map_or_else(String::new, hex);
        let by = if self.by_us {
            "here"
        } else {
            "by the other side"
        };
        Status {
            state: self.state.name().to_owned(),
            local: text(self.local),
            peer: text(self.peer),
            sap: self.sap.to_string(),
            qos: if self.conn.is_some() || self.vc.is_some() || self.local_end.is_some() {
                self.qos.to_string()
            } else {
                String::new()
            },
            label: self.label(),
            cause: self.cause.map_or(0, |cause| cause.0),
            why: self
                .cause
                .map_or_else(String::new, |cause| format!("ended {by}, {cause}")),
            sent: self.sent,
            refused: self.refused,
            unsent: self.unsent,
            received: self.received,
            unread: self.unread,
            damaged: self.damaged,
            offers: self.offers.len() as u16,
            missed: self.missed,
            leaves: self.root.as_ref().map_or(0, parties::Root::active),
        }
    }
    /// Its label; [`LOCAL`] if the call does not leave the host, empty if there is no label.
    fn label(&self) -> String {
        match (self.vc, &self.local_end) {
            (Some(vc), _) => vc.to_string(),
            (None, Some(_)) => LOCAL.to_owned(),
            (None, None) => String::new(),
        }
    }
    /// Its state.
    #[must_use]
    pub const fn state(&self) -> State {
        self.state
    }
    /// Number of sessions that may use it.
    #[must_use]
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }
}

/// The entry of the table with this index is in its use number `generation`.
#[derive(Debug, Default)]
struct Entry {
    generation: u32,
    socket: Option<Box<Socket>>,
}

/// What has a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timed {
    /// A call that is made or accepted, or a socket that ends.
    Socket(SocketRef),
    /// An offer of a listener.
    Offer(SocketRef, u32),
}

/// What a host has to know for its programs.
#[derive(Clone, Debug)]
pub struct Config {
    /// Name of the host.
    pub host: String,
    /// Its address, with selector 00.
    pub address: AtmAddress,
    /// First selector that the service gives to sockets; it gives those from here to 0xff.
    pub first_selector: u8,
    /// What programs of the lab file listen for on this host: sockets cannot have that.
    pub taken: BTreeSet<(AtmAddress, Sap)>,
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
    entries: Vec<Entry>,
    free: Vec<u32>,
    /// Sockets by connection.
    conns: BTreeMap<ConnId, SocketRef>,
    /// Sockets by label, until the adapter has closed it.
    labels: BTreeMap<Vc, SocketRef>,
    /// Calls that wait for the answer of a program.
    offers: BTreeMap<ConnId, offers::Waiting>,
    /// Listeners by what they listen for.
    listeners: BTreeMap<(AtmAddress, Sap), SocketRef>,
    ended: VecDeque<SocketRef>,
    deadlines: Deadlines<Timed>,
    next_conn: u32,
    next_offer: u32,
    /// Requests that were refused because of their reference.
    strangers: u64,
    /// The counts of the interface when programs set them to 0.
    zeroed: Interface,
    out: VecDeque<Output>,
}

impl SocketLayer {
    /// The service of a host without sockets.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            config,
            entries: Vec::new(),
            free: Vec::new(),
            conns: BTreeMap::new(),
            labels: BTreeMap::new(),
            offers: BTreeMap::new(),
            listeners: BTreeMap::new(),
            ended: VecDeque::new(),
            deadlines: Deadlines::default(),
            next_conn: 0,
            next_offer: 1,
            strangers: 0,
            zeroed: Interface::default(),
            out: VecDeque::new(),
        }
    }
    /// The sockets, with their references.
    pub fn sockets(&self) -> impl Iterator<Item = (SocketRef, &Socket)> {
        let all = self.entries.iter().enumerate();
        all.filter_map(|(index, entry)| {
            let at = SocketRef::of(index as u32, entry.generation);
            Some((at, entry.socket.as_deref()?))
        })
    }
    /// Requests with a reference that was not the session's.
    #[must_use]
    pub const fn strangers(&self) -> u64 {
        self.strangers
    }
    /// True if a PDU of this socket's program may be given now. After the end of a call it may: the PDU is counted as
    /// refused.
    #[must_use]
    pub fn may_write(&self, at: SocketRef) -> bool {
        self.get(at).is_none_or(|socket| {
            let open = matches!(socket.state, State::Connected | State::Ended);
            let room = socket.local_end.as_ref().is_none_or(local::End::has_room);
            open && room && matches!(socket.writing, Writing::Idle)
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
        let entry = self.entries.get(at.index())?;
        let socket = entry.socket.as_deref();
        socket.filter(|_| entry.generation == at.generation())
    }
    fn get_mut(&mut self, at: SocketRef) -> Option<&mut Socket> {
        let entry = self.entries.get_mut(at.index())?;
        let current = entry.generation == at.generation();
        entry.socket.as_deref_mut().filter(|_| current)
    }
    /// Puts a socket into the table; `None` if the table is full.
    fn add(&mut self, socket: Socket) -> Option<SocketRef> {
        let index = match self.free.pop() {
            Some(index) => index,
            None if self.entries.len() < SOCKETS => {
                self.entries.push(Entry::default());
                (self.entries.len() - 1) as u32
            }
            None => {
                let oldest = self.ended.pop_front()?;
                self.forget(oldest);
                self.free.pop()?
            }
        };
        let entry = &mut self.entries[index as usize];
        entry.generation += 1;
        entry.socket = Some(Box::new(socket));
        Some(SocketRef::of(index, entry.generation))
    }
    /// Removes a socket that has neither a call nor a listener.
    fn forget(&mut self, at: SocketRef) {
        let entry = self.entries.get_mut(at.index());
        if let Some(entry) = entry.filter(|entry| entry.generation == at.generation())
            && entry.socket.take().is_some()
        {
            self.deadlines.set(Timed::Socket(at), None);
            self.labels.retain(|_, socket| *socket != at);
            self.free.push(at.index() as u32);
        }
    }

    fn request(&mut self, request: AtmRequest) {
        self.out.push_back(Output::Atm(request));
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
        let accepting = socket.state == State::Accepting;
        socket.state = State::Ended;
        socket.cause = Some(cause);
        socket.by_us = by_us;
        if !matches!(socket.writing, Writing::Idle) {
            socket.refused += 1;
            socket.writing = Writing::Idle;
        }
        let (conn, asked) = (socket.conn.take(), socket.asked.take());
        let adding = socket.root.as_mut().map(parties::Root::end);
        let adding = adding.unwrap_or_default();
        if let Some(conn) = conn {
            self.conns.remove(&conn);
        }
        self.deadlines.set(Timed::Socket(at), None);
        let asked = asked.into_iter().chain(adding);
        for asked in asked.collect::<Vec<_>>() {
            self.answer(asked, Answer::Failed(ended(cause)));
        }
        if accepting {
            // Its program has never seen it.
            return self.forget(at);
        }
        self.tell(ToPrograms::End { socket: at });
        self.ended.push_back(at);
        if self.ended.len() > ENDED
            && let Some(oldest) = self.ended.pop_front()
        {
            self.forget(oldest);
        }
    }

    fn released(&mut self, conn: ConnId, cause: Cause) {
        if let Some(at) = self.conns.get(&conn).copied() {
            return self.over(at, cause, false);
        }
        self.withdrawn(conn);
    }

    /// The connection of a socket can be used: with a label, or inside the host.
    fn connected(&mut self, conn: ConnId, vc: Option<Vc>, agreed: Qos) {
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
        let (asked, qos, label) = (socket.asked.take(), socket.qos, socket.label());
        let peer = socket
            .peer
            .map_or_else(|| label.clone(), |peer| peer.to_string());
        self.labels.extend(vc.map(|vc| (vc, at)));
        self.deadlines.set(Timed::Socket(at), None);
        let text = format!("a program of the machine is connected to {peer}");
        let trace = Trace::detail("socket.open", text).with("vc", &label);
        if let Some(asked) = asked {
            let Asked { session, number } = asked;
            let answer = match accepted {
                true => Answer::Opened { socket: at },
                false => Answer::Connected {
                    label,
                    qos: qos.to_string(),
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
            State::Connecting | State::Accepting => self.release(at, cause),
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
        if let Some(conn) = self.get(at).and_then(|socket| socket.conn) {
            self.request(AtmRequest::Release { conn, cause });
        }
        self.over(at, cause, true);
    }

    /// A session has ended. Its sockets live as long as their descriptors.
    fn gone(&mut self, session: Session, now: Instant) {
        let mut accepting = Vec::new();
        for (index, entry) in self.entries.iter_mut().enumerate() {
            let Some(socket) = &mut entry.socket else {
                continue;
            };
            socket.sessions.retain(|other| *other != session);
            socket.asked.take_if(|asked| asked.session == session);
            if let Some(root) = &mut socket.root {
                root.forget_session(session);
            }
            // Its answer would have brought the descriptor.
            if socket.state == State::Accepting && socket.sessions.is_empty() {
                accepting.push(SocketRef::of(index as u32, entry.generation));
            }
        }
        for at in accepting {
            self.end(at, Cause::NORMAL, now);
        }
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
        match input {
            Input::Start => {}
            Input::Atm(AtmEvent::Incoming {
                conn,
                calling,
                called,
                sap,
                qos,
                multipoint,
            }) => self.offered(conn, (calling, called), (sap, qos), multipoint, now),
            Input::Atm(AtmEvent::Connected { conn, vc, qos }) => {
                self.connected(conn, Some(vc), qos);
            }
            Input::Atm(AtmEvent::Released { conn, cause }) => self.released(conn, cause),
            Input::Atm(AtmEvent::Received { conn, sdu }) => self.received(conn, sdu),
            // A call that is made while signalling is down waits in signalling.
            Input::Atm(AtmEvent::Up | AtmEvent::Down) => {}
            Input::Atm(AtmEvent::PartyAdded { conn, party }) => self.party_added(conn, party),
            Input::Atm(AtmEvent::PartyGone { conn, party, cause }) => {
                self.party_gone(conn, party, cause);
            }
            Input::Joined { conn, peer, qos } => self.joined(conn, peer, qos),
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
                zero,
                interface,
            } => self.describe(Asked { session, number }, zero, *interface),
            Input::Write { socket, sdu } => self.write(socket, sdu, now),
            Input::Closed { socket } => self.closed(socket, now),
            Input::Unread { socket, pdus } => {
                if let Some(socket) = self.get_mut(socket) {
                    socket.unread += pdus;
                }
            }
            Input::Gone { session } => self.gone(session, now),
        }
        Ok(())
    }

    fn handle_timeout(&mut self, now: Instant) {
        for timed in self.deadlines.due(now) {
            self.deadlines.set(timed, None);
            match timed {
                Timed::Offer(listener, offer) => self.unanswered(listener, offer),
                Timed::Socket(at) => {
                    let cause = match self.get(at) {
                        Some(socket) if socket.state == State::Ending => socket.last,
                        _ => Cause::TIMER,
                    };
                    self.release(at, cause);
                }
            }
        }
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.out.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.deadlines.next()
    }
}

aerostat_proto::atm_user!(SocketLayer {});

fn hex(address: AtmAddress) -> String {
    format!("{address:x}")
}
