//! Requests of programs.

use super::parties::Root;
use super::resolve::{Destination, Waiter, Wanted};
use super::{
    Asked, Errno, Failure, OFFERS, Output, SESSIONS, SOCKETS, Socket, SocketLayer, SocketRef,
    State, Timed, ToPrograms, hex,
};
use crate::signalling::{Along, FACILITY_REJECTED};
use aerostat_proto::atm::answered;
use aerostat_proto::socket::{Answer, Request, UserData, VERSION};
use aerostat_proto::{AtmRequest, Cause, Duration, Instant};
use aerostat_wire::qos_text::QosError;
use aerostat_wire::{AalType, AtmAddress, ConnectionQos, Qos, Sap, TrafficParams, Vc};
use core::str::FromStr;
use std::collections::BTreeSet;

/// Names in an answer.
const NAMES: usize = 64;

/// Result of a request: an answer now, or `None` if the answer comes later.
pub(super) type Result = core::result::Result<Option<Answer>, Failure>;

pub(super) fn failure(errno: Errno, field: &str, text: impl Into<String>) -> Failure {
    Failure {
        errno: errno as u16,
        cause: 0,
        field: field.to_owned(),
        offset: 0,
        text: text.into(),
        user_data: UserData::default(),
    }
}

/// An error inside a text.
fn at(offset: usize, mut failure: Failure) -> Failure {
    failure.offset = u16::try_from(offset).unwrap_or(u16::MAX);
    failure
}

fn sap_of(text: &str) -> core::result::Result<Sap, Failure> {
    let parsed = match text {
        "" => return Ok(Sap::default()),
        text => text.parse::<Sap>(),
    };
    parsed.map_err(|error| at(error.at, failure(Errno::Invalid, "sap", error.text)))
}

fn qos_of<Q>(text: &str) -> core::result::Result<Q, Failure>
where
    Q: FromStr<Err = QosError> + Copy + Into<ConnectionQos>,
{
    let parsed = text.parse::<Q>();
    let given = parsed.map_err(|error| at(error.at, failure(Errno::Invalid, "qos", error.text)))?;
    let ConnectionQos { qos, .. } = given.into();
    if qos.tx.category.is_none() && qos.rx.category.is_none() {
        let text = "neither direction has a class: write, for example, ubr";
        return Err(failure(Errno::Invalid, "qos", text));
    }
    Ok(given)
}

/// The selector behind the `/` of an address, at this offset in the text of a field.
pub(super) fn selector_at(
    field: &str,
    offset: usize,
    text: &str,
) -> core::result::Result<u8, Failure> {
    let number = u8::from_str_radix(text, 16).ok();
    number.filter(|_| text.len() == 2).ok_or_else(|| {
        let text = "a selector has two hex digits";
        at(offset, failure(Errno::Invalid, field, text))
    })
}

fn cause_of(number: u8) -> core::result::Result<Cause, Failure> {
    match number {
        1..=127 => Ok(Cause(number)),
        other => {
            let text = format!("a cause is 1 to 127, not {other}");
            Err(failure(Errno::Invalid, "cause", text))
        }
    }
}

fn label_of(text: &str) -> core::result::Result<Vc, Failure> {
    let label = text.split_once('.').and_then(|(vpi, vci)| {
        let (vpi, vci) = (vpi.parse::<u16>().ok()?, vci.parse::<u16>().ok()?);
        // Labels of the user-network interface; those of signalling and of the network are not for programs.
        (vpi <= 255 && vci >= Vc::FIRST_USER_VCI).then_some(Vc { vpi, vci })
    });
    label.ok_or_else(|| {
        let text = "a label is VPI.VCI with a VPI up to 255 and a VCI of at least 32, as in 0.100";
        failure(Errno::Invalid, "label", text)
    })
}

impl SocketLayer {
    /// A request of a program.
    pub(super) fn asked(
        &mut self,
        asked: Asked,
        request: Request,
        shown: Option<SocketRef>,
        now: Instant,
    ) {
        let done = match request {
            Request::Hello { version } => self.hello(version),
            Request::Open => self.open(asked),
            Request::Adopt => self.adopt(asked, shown),
            Request::Names => Ok(Some(self.names())),
            Request::Bind {
                socket,
                address,
                sap,
            } => self.bind(asked, socket, &address, &sap),
            Request::Listen {
                socket,
                backlog,
                max_sdu,
            } => self.listen(asked, socket, backlog, max_sdu),
            Request::Connect { .. }
            | Request::Accept { .. }
            | Request::Refuse { .. }
            | Request::Release { .. } => self.asked_of_call(asked, request, now),
            Request::AddParty {
                socket,
                called,
                user_data,
            } => self.add_party(asked, socket, (&called, user_data), now),
            Request::DropParty { socket, party } => self.drop_party(asked, socket, party),
            Request::Parties { socket, from } => self.parties(asked, socket, from),
            Request::OpenPermanent { socket, label, qos } => {
                self.open_permanent(asked, socket, &label, &qos)
            }
            Request::Status { socket } => {
                let found = self.own(asked, socket);
                found.map(|socket| Some(Answer::Status(Box::new(socket.status()))))
            }
            Request::Addresses { change, address } => self.change_addresses(change, &address),
            // A host with an adapter gives `Input::Interface` instead.
            Request::Interface { .. } => {
                Err(failure(Errno::NotSupported, "", "the host has no adapter"))
            }
        };
        self.reply(asked, done);
    }

    /// A request about a call: to make, accept, refuse or release it.
    fn asked_of_call(&mut self, asked: Asked, request: Request, now: Instant) -> Result {
        match request {
            Request::Connect {
                socket,
                called,
                sap,
                qos,
                timeout,
                multipoint,
                reports,
                user_data,
            } => {
                let (root, texts) = (multipoint.then_some(reports), (&*called, &*sap, &*qos));
                self.connect(asked, socket, texts, (timeout, root), user_data, now)
            }
            Request::Accept {
                socket,
                offer,
                qos,
                user_data,
            } => self.accept_offer(asked, (socket, offer), &qos, user_data, now),
            Request::Refuse {
                socket,
                offer,
                cause,
                user_data,
            } => self.refuse_offer(asked, (socket, offer), cause, user_data),
            Request::Release {
                socket,
                cause,
                user_data,
            } => self.release_socket(asked, socket, cause, user_data, now),
            _ => Err(failure(Errno::NotSupported, "", "no request about a call")),
        }
    }

    /// Answers a request, unless its answer comes later.
    fn reply(&mut self, asked: Asked, done: Result) {
        match done {
            Ok(None) => {}
            Ok(Some(answer)) => self.answer(asked, answer),
            Err(failure) => self.answer(asked, Answer::Failed(failure)),
        }
    }

    /// A socket of this session.
    pub(super) fn own(
        &mut self,
        asked: Asked,
        at: SocketRef,
    ) -> core::result::Result<&mut Socket, Failure> {
        let known = self
            .get(at)
            .is_some_and(|s| s.sessions.contains(&asked.session));
        self.counters.strangers += u64::from(!known);
        let socket = self.get_mut(at).filter(|_| known);
        socket.ok_or_else(|| {
            failure(
                Errno::BadDescriptor,
                "socket",
                "this session has no such socket",
            )
        })
    }

    /// A socket of this session that has no connection yet.
    fn unused(
        &mut self,
        asked: Asked,
        at: SocketRef,
    ) -> core::result::Result<&mut Socket, Failure> {
        let socket = self.own(asked, at)?;
        match socket.state {
            State::Idle | State::Bound => Ok(socket),
            state => {
                let text = format!("the socket is {} already", state.name());
                Err(failure(Errno::IsConnected, "socket", text))
            }
        }
    }

    fn hello(&self, version: u16) -> Result {
        if version != VERSION {
            let text = format!("the service speaks version {VERSION}, the program {version}");
            return Err(failure(Errno::NotSupported, "version", text));
        }
        Ok(Some(Answer::Welcome {
            version: VERSION,
            host: self.config.host.clone(),
            address: hex(self.config.address),
            sockets: SOCKETS as u32,
        }))
    }

    fn names(&self) -> Answer {
        let all = self.config.names.iter().take(NAMES);
        Answer::Names {
            names: all.map(|(name, at)| (name.clone(), hex(*at))).collect(),
            more: self.config.names.len().saturating_sub(NAMES) as u32,
        }
    }

    fn open(&mut self, asked: Asked) -> Result {
        let at = self
            .add(Socket::new(Some(asked.session)))
            .ok_or_else(full)?;
        let Asked { session, number } = asked;
        self.tell(ToPrograms::Answer {
            session,
            number,
            answer: Answer::Opened { socket: at },
            descriptor: Some(at),
        });
        Ok(None)
    }

    fn adopt(&mut self, asked: Asked, shown: Option<SocketRef>) -> Result {
        let Some((at, socket)) = shown.and_then(|at| Some((at, self.get_mut(at)?))) else {
            let text = "no descriptor of a socket of this host is attached";
            return Err(failure(Errno::BadDescriptor, "", text));
        };
        if !socket.sessions.contains(&asked.session) {
            if socket.sessions.len() >= SESSIONS {
                let text = format!("{SESSIONS} sessions use this socket, which is the limit");
                return Err(failure(Errno::NoMemory, "", text));
            }
            socket.sessions.push(asked.session);
        }
        Ok(Some(Answer::Opened { socket: at }))
    }

    fn bind(&mut self, asked: Asked, at: SocketRef, address: &str, sap: &str) -> Result {
        let sap = sap_of(sap)?;
        let state = self.unused(asked, at)?.state;
        if state == State::Bound {
            let text = "the socket has an address already";
            return Err(failure(Errno::Invalid, "address", text));
        }
        let chosen = address.is_empty();
        let address = match address {
            "" => self.free_address(sap)?,
            given => self.own_address(given)?,
        };
        if self.is_listened(address, sap) {
            let text = "another program listens for this address and sap";
            return Err(failure(Errno::AddressInUse, "address", text));
        }
        let socket = self.own(asked, at)?;
        socket.state = State::Bound;
        socket.local = Some(address);
        socket.chosen = chosen;
        socket.sap = sap;
        Ok(Some(Answer::Bound {
            address: hex(address),
        }))
    }

    /// True if a program of the machine or of the lab file listens for this.
    fn is_listened(&self, address: AtmAddress, sap: Sap) -> bool {
        self.listeners.contains_key(&(address, sap))
    }

    /// True if a program of the lab file listens for this where those call who name the host alone. A program that
    /// listens beside it for the same, at an address that it does not even choose, would wait for ever.
    fn is_served_by_the_lab_file(&self, sap: Sap) -> bool {
        let named = self
            .config
            .address
            .with_selector(self.config.first_selector);
        let listener = self.listeners.get(&(named, sap));
        let socket = listener.and_then(|at| self.get(*at));
        socket.is_some_and(|socket| socket.program.is_some())
    }

    fn served_already(&self) -> Failure {
        let (host, first) = (&self.config.host, self.config.first_selector);
        let text = format!(
            "a program of the lab file listens for this at {host}/{first:02x} and takes the calls for {host}; bind \
             another address, such as {host}/{:02x}, to listen beside it",
            first + 1
        );
        failure(Errno::AddressInUse, "socket", text)
    }

    /// The first address of this host at which no program has this access point.
    fn free_address(&self, sap: Sap) -> core::result::Result<AtmAddress, Failure> {
        let first = self.config.first_selector;
        let used: BTreeSet<AtmAddress> = self
            .sockets()
            .filter(|(_, socket)| matches!(socket.state, State::Bound | State::Listening))
            .filter(|(_, socket)| socket.sap == sap)
            .filter_map(|(_, socket)| socket.local)
            .collect();
        let mut all = (first..=u8::MAX).map(|selector| self.config.address.with_selector(selector));
        let free = all.find(|address| !used.contains(address) && !self.is_listened(*address, sap));
        free.ok_or_else(|| {
            let text = format!("all selectors from {first:02x} to ff are in use for this sap");
            failure(Errno::AddressInUse, "address", text)
        })
    }

    fn own_address(&self, given: &str) -> core::result::Result<AtmAddress, Failure> {
        let first = self.config.first_selector;
        let address = self.address_of("address", given)?;
        if self.is_added(address) {
            return Ok(address);
        }
        if address.with_selector(0) != self.config.address {
            let text = format!("not an address of {}", self.config.host);
            return Err(failure(Errno::AddressNotAvailable, "address", text));
        }
        if address.selector() < first {
            let text = format!("selectors of sockets are {first:02x} to ff");
            return Err(failure(Errno::AddressNotAvailable, "address", text));
        }
        Ok(address)
    }

    fn listen(&mut self, asked: Asked, at: SocketRef, backlog: u16, max_sdu: u16) -> Result {
        if !(1..=OFFERS).contains(&usize::from(backlog)) {
            let text = format!("a backlog is 1 to {OFFERS}, not {backlog}");
            return Err(failure(Errno::Invalid, "backlog", text));
        }
        let socket = self.unused(asked, at)?;
        let Some(address) = socket.local else {
            let text = "the socket has no address: bind it first";
            return Err(failure(Errno::Invalid, "socket", text));
        };
        let (sap, chosen) = (socket.sap, socket.chosen);
        if self.is_listened(address, sap) {
            let text = "another program listens for this address and sap";
            return Err(failure(Errno::AddressInUse, "socket", text));
        }
        if chosen && self.is_served_by_the_lab_file(sap) {
            return Err(self.served_already());
        }
        if self.listeners.len() >= self.config.listeners {
            let text = format!(
                "the host has {} listeners, which is its limit",
                self.config.listeners
            );
            return Err(failure(Errno::NoMemory, "", text));
        }
        if let Some(socket) = self.get_mut(at) {
            socket.state = State::Listening;
            socket.backlog = backlog.into();
        }
        let max_sdu = match max_sdu {
            0 => u16::MAX,
            given => given,
        };
        self.begin_listening(at, (address, sap), max_sdu);
        Ok(Some(Answer::Done))
    }

    /// A socket gets the calls for this address and access point from now on.
    pub(super) fn begin_listening(
        &mut self,
        at: SocketRef,
        (address, sap): (AtmAddress, Sap),
        max_sdu: u16,
    ) {
        self.listeners.insert((address, sap), at);
        self.request(AtmRequest::listen(address, sap, max_sdu));
    }

    fn connect(
        &mut self,
        asked: Asked,
        at: SocketRef,
        (called, sap, qos): (&str, &str, &str),
        (timeout, root): (u32, Option<bool>),
        user_data: UserData,
        now: Instant,
    ) -> Result {
        let (to, sap) = (self.destination(called)?, sap_of(sap)?);
        let ConnectionQos { aal, mut qos } = qos_of(qos)?;
        let multipoint = root.is_some();
        if multipoint && aal == AalType::Aal0 {
            let text = "a point-to-multipoint call carries AAL5";
            return Err(failure(Errno::Invalid, "qos", text));
        }
        if multipoint {
            // Nothing goes to the root.
            qos.rx = TrafficParams::none();
        }
        self.has_room()?;
        self.unused(asked, at)?;
        self.may_wait_for(to)?;
        let socket = self.unused(asked, at)?;
        (socket.sap, socket.qos) = (sap, ConnectionQos { aal, qos });
        socket.asked = Some(asked);
        let wanted = Wanted {
            to,
            root,
            user_data,
        };
        if timeout > 0 {
            let until = now + Duration::from_millis(timeout.into());
            self.deadlines.set(Timed::Socket(at), Some(until));
        }
        match to {
            Destination::Atm(called) => self.call(at, called, wanted),
            Destination::Ip(ip, _) => {
                if let Some(socket) = self.get_mut(at) {
                    socket.state = State::Resolving;
                    socket.wanted = Some(Box::new(wanted));
                }
                self.wait_for(ip, Waiter::Call(at), now);
            }
        }
        Ok(None)
    }

    /// Makes the call of a socket, whose destination is known now.
    pub(super) fn call(&mut self, at: SocketRef, called: AtmAddress, wanted: Wanted) {
        let conn = self.new_conn();
        let first = self.config.first_selector;
        let default = self.config.address.with_selector(first);
        let Some(socket) = self.get_mut(at) else {
            return;
        };
        let calling = *socket.local.get_or_insert(default);
        socket.state = State::Connecting;
        socket.peer = Some(called);
        socket.conn = Some(conn);
        let to = Destination::Atm(called);
        socket.root = wanted.root.map(|reports| Root::new(to, reports));
        let (sap, ConnectionQos { aal, qos }) = (socket.sap, socket.qos);
        self.conns.insert(conn, at);
        let data = wanted.user_data;
        let connect = AtmRequest::Connect {
            conn,
            calling,
            called,
            sap,
            qos,
            multipoint: wanted.root.is_some(),
        };
        self.out
            .push_back(Output::Atm(connect, Along { data, aal }));
    }

    /// Signalling bounds the connections of each of its users.
    pub(super) fn has_room(&self) -> core::result::Result<(), Failure> {
        let most = self.config.calls;
        if self.conns.len() + self.offers.len() < most {
            return Ok(());
        }
        let text = format!("the sockets of the host have {most} connections, which is their limit");
        Err(failure(Errno::NoMemory, "", text))
    }

    /// The address in a field of a request: in hex digits, or a name with an optional selector.
    pub(super) fn address_of(
        &self,
        field: &str,
        text: &str,
    ) -> core::result::Result<AtmAddress, Failure> {
        if let Ok(address) = text.parse() {
            return Ok(address);
        }
        let (name, selector) = match text.split_once('/') {
            None => (text, None),
            Some((name, selector)) => {
                let number = selector_at(field, name.len() + 1, selector)?;
                (name, Some(number))
            }
        };
        let Some(address) = self.config.names.get(name) else {
            let text = match field {
                "called" => {
                    "neither an ATM address of 40 hex digits nor a name of the lab nor an IPv4 address"
                }
                _ => "neither an ATM address of 40 hex digits nor a name of the lab",
            };
            return Err(failure(Errno::Invalid, field, text));
        };
        Ok(selector.map_or(*address, |selector| address.with_selector(selector)))
    }

    fn open_permanent(&mut self, asked: Asked, at: SocketRef, label: &str, qos: &str) -> Result {
        let given = qos_of::<ConnectionQos>(qos)?;
        let vc = label_of(label)?;
        self.has_room()?;
        let socket = self.unused(asked, at)?;
        socket.qos = given;
        socket.asked = Some(asked);
        self.use_permanent(at, vc);
        Ok(None)
    }

    /// Opens the permanent connection with this label, by the contract of its socket.
    pub(super) fn use_permanent(&mut self, at: SocketRef, vc: Vc) {
        let conn = self.new_conn();
        if let Some(socket) = self.get_mut(at) {
            socket.state = State::Connecting;
            socket.conn = Some(conn);
            let qos = socket.qos.qos;
            self.conns.insert(conn, at);
            self.request(AtmRequest::OpenPermanent { conn, vc, qos });
        }
    }

    fn accept_offer(
        &mut self,
        asked: Asked,
        (at, offer): (SocketRef, u32),
        qos: &str,
        user_data: UserData,
        now: Instant,
    ) -> Result {
        self.own(asked, at)?;
        self.may_say((at, offer), &user_data)?;
        let offered = self.offered_qos(at, offer).ok_or_else(no_offer)?;
        let terms = match (qos, offered.aal) {
            ("", AalType::Aal5) => None,
            ("", AalType::Aal0) => {
                let text = "the caller offers single cells: accept them with aal0 in the contract";
                return Err(failure(Errno::Invalid, "qos", text));
            }
            (given, _) => Some(terms(&offered, &qos_of(given)?)?),
        };
        self.accept(asked, (at, offer), (terms, user_data), now)
            .map(|()| None)
    }

    fn refuse_offer(
        &mut self,
        asked: Asked,
        (at, offer): (SocketRef, u32),
        cause: u8,
        user_data: UserData,
    ) -> Result {
        let cause = cause_of(cause)?;
        self.own(asked, at)?;
        self.may_say((at, offer), &user_data)?;
        match self.refuse(at, offer, cause, user_data) {
            true => Ok(Some(Answer::Done)),
            false => Err(no_offer()),
        }
    }

    fn release_socket(
        &mut self,
        asked: Asked,
        at: SocketRef,
        cause: u8,
        user_data: UserData,
        now: Instant,
    ) -> Result {
        let cause = cause_of(cause)?;
        let socket = self.own(asked, at)?;
        let (state, carries) = (socket.state, socket.carries);
        if !user_data.is_empty() && !carries && state != State::Ended {
            return Err(says_nothing());
        }
        if state == State::Connected {
            socket.farewell = user_data;
        }
        match state {
            State::Resolving | State::Connecting | State::Accepting | State::Connected => {
                self.end(at, cause, now);
                Ok(Some(Answer::Done))
            }
            State::Idle | State::Bound | State::Listening => {
                let text = format!("the socket is {}: it has no call", state.name());
                Err(failure(Errno::NotConnected, "socket", text))
            }
            State::Ending | State::Ended => Ok(Some(Answer::Done)),
        }
    }
}

/// The contract of an answer to an offer.
fn terms(offered: &ConnectionQos, answer: &ConnectionQos) -> core::result::Result<Qos, Failure> {
    if offered.aal != answer.aal {
        let text = "the AAL of the answer is not that of the offer";
        return Err(failure(Errno::Invalid, "qos", text));
    }
    answered(&offered.qos, &answer.qos).map_err(|why| failure(Errno::Invalid, "qos", why))
}

/// The table of sockets is full.
pub(super) fn full() -> Failure {
    let text = format!("the host has {SOCKETS} sockets, which is its limit");
    failure(Errno::NoMemory, "", text)
}

pub(super) fn no_offer() -> Failure {
    let text = "no such offer: the caller has gone, or 5 s have passed";
    failure(Errno::BadDescriptor, "offer", text)
}

/// The messages of a call carry no user data.
pub(super) fn says_nothing() -> Failure {
    let text = "this call carries no user data: each link needs UNI 4.0 ('uni: 4.0' in the lab file), and the call must \
                have been answered";
    failure(Errno::NotSupported, "user_data", text)
}

/// The end of a call as an error for its program.
pub(super) fn ended(cause: Cause) -> Failure {
    let errno = match cause.0 {
        18 | 102 => Errno::TimedOut,
        1 | 3 => Errno::NetworkUnreachable,
        27 => Errno::HostUnreachable,
        38 | 41 => Errno::NetworkDown,
        35 => Errno::AddressInUse,
        37 | 47 | 51 => Errno::NoMemory,
        16 | 31 => Errno::ConnectionReset,
        29 => Errno::NotSupported,
        _ => Errno::Refused,
    };
    Failure {
        errno: errno as u16,
        cause: cause.0,
        field: String::new(),
        offset: 0,
        text: match cause {
            FACILITY_REJECTED => format!(
                "{cause}: user data need UNI 4.0 on the link of the host ('uni: 4.0' in the lab file)"
            ),
            cause => cause.to_string(),
        },
        user_data: UserData::default(),
    }
}
