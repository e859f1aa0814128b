//! A host's part of a LANE server: its seat.

use super::{FromServer, ServerConfig, ServerDaemon, ServerSnapshot, ToServer};
use crate::discard::Discard;
use crate::lane::Member;
use crate::split::{FromDaemon, Handle, ProcessEvent, Rights, Role, Seat, SeatCounters, ToDaemon};
use crate::{AtmEvent, AtmRequest, Cause, ConnId, Instant, Machine, Refused, Trace};
use aerostat_wire::{AtmAddress, Sap};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Connections other than those of clients: with the LECS, the roots of trees, calls that are being set up or released.
const SPARE: usize = 192;
/// Connections of one client: its own, and a point-to-multipoint copy.
const PER_CLIENT: usize = 2;

/// Input of a server.
#[derive(Clone, Debug)]
pub enum Input<'a> {
    /// Start to serve, as soon as the daemon is present.
    Start,
    /// Stop regularly.
    Stop,
    /// From the ATM service.
    Atm(AtmEvent<&'a [u8]>),
    /// A member, for a BUS.
    Member {
        /// ATM address of the client.
        address: AtmAddress,
        /// Facts of the member for the BUS; `None` if it is no longer a member.
        member: Option<Member>,
    },
    /// A message from the daemon in a process of its own, or an event of the process.
    Process(ProcessEvent<FromDaemon<FromServer>>),
}

/// Output of a server.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// For the ATM service.
    Atm(AtmRequest),
    /// A client joined or left: for the BUS.
    Member {
        /// ATM address of the client.
        address: AtmAddress,
        /// Facts of the member for the BUS; `None` if it is no longer a member.
        member: Option<Member>,
    },
    /// A client that a BUS reaches, or no longer reaches.
    Reaches {
        /// See [`crate::lane::bus::Output::Reaches`].
        address: AtmAddress,
        /// True if the client is reached.
        reached: bool,
    },
    /// For the daemon in a process of its own.
    Process(ToDaemon<ToServer>),
    /// An observation.
    Trace(Trace),
}

impl Rights<()> for ServerConfig {
    const ROOT: bool = true;
    fn owns(&self, address: AtmAddress, _: Sap) -> bool {
        self.is_own(address)
    }
    fn open(&self, _: &AtmRequest, conns: &BTreeMap<ConnId, Handle<()>>) -> Option<()> {
        self.has_room(conns.len()).then_some(())
    }
}

impl ServerConfig {
    const fn has_room(&self, conns: usize) -> bool {
        conns < PER_CLIENT * self.clients() + SPARE
    }
}

/// A LECS, a LES or a BUS of a host.
#[derive(Debug)]
pub struct LaneServer {
    config: ServerConfig,
    seat: Seat<ServerDaemon, ()>,
    /// The members that the LES named.
    members: BTreeSet<AtmAddress>,
    /// Clients that the BUS reaches.
    reached: BTreeSet<AtmAddress>,
    /// The state that the process reported last.
    seen: Option<Box<ServerSnapshot>>,
    out: VecDeque<Output>,
}

impl LaneServer {
    /// A server in this process.
    #[must_use]
    pub fn new(config: ServerConfig) -> Self {
        Self::with(config, Seat::here())
    }
    /// A server in a process of its own, which has not started yet.
    #[must_use]
    pub fn split(config: ServerConfig) -> Self {
        Self::with(config, Seat::elsewhere())
    }
    fn with(config: ServerConfig, seat: Seat<ServerDaemon, ()>) -> Self {
        Self {
            config,
            seat,
            members: BTreeSet::new(),
            reached: BTreeSet::new(),
            seen: None,
            out: VecDeque::new(),
        }
    }
    /// The role of the server.
    #[must_use]
    pub const fn role(&self) -> Role {
        self.config.role()
    }
    /// The state of the server for display. For a server in a process of its own: the state that was reported last, or
    /// `None` while there is no process.
    #[must_use]
    pub fn snapshot(&self) -> Option<ServerSnapshot> {
        match self.seat.daemon() {
            Some(daemon) => daemon.snapshot(),
            None => self.seen.as_deref().cloned(),
        }
    }
    /// The clients that a BUS reaches.
    pub fn reached(&self) -> impl Iterator<Item = AtmAddress> + '_ {
        self.reached.iter().copied()
    }
    /// Counters of its seat: what a daemon in a process of its own may not do.
    #[must_use]
    pub const fn seat_counters(&self) -> SeatCounters {
        self.seat.counters()
    }
    /// The next packet that was discarded.
    pub fn take_discard(&mut self) -> Option<(Discard, Vec<u8>)> {
        self.seat.daemon_mut()?.take_discard()
    }

    /// Tells the daemon to serve, if it should and is present.
    fn begin(&mut self, now: Instant) {
        if self.seat.begin(0).is_none() {
            return;
        }
        let mut config = Box::new(self.config.clone());
        if let ServerConfig::Lecs(lecs) = &mut *config {
            for elan in core::mem::take(&mut lecs.elans) {
                self.seat.tell(ToServer::Elan(Box::new(elan)), now);
            }
        }
        self.seat.tell(ToServer::Start(config), now);
    }

    /// Closes its listeners and connections, and removes its members.
    fn close_all(&mut self) {
        let requests = self.seat.close_all().into_iter();
        self.out.extend(requests.map(Output::Atm));
        for address in core::mem::take(&mut self.members) {
            let member = None;
            self.out.push_back(Output::Member { address, member });
        }
        for address in core::mem::take(&mut self.reached) {
            let reached = false;
            self.out.push_back(Output::Reaches { address, reached });
        }
        self.seen = None;
    }

    fn said(&mut self, message: FromDaemon<FromServer>, now: Instant) {
        let Some(message) = self.seat.hear(message, &self.config) else {
            return;
        };
        match message {
            FromDaemon::Atm(request) => self.out.push_back(Output::Atm(request)),
            FromDaemon::Trace(trace) => self.out.push_back(Output::Trace(trace)),
            FromDaemon::Message(FromServer::Member { address, member }) => {
                self.member(address, member);
            }
            FromDaemon::Message(FromServer::Reaches { address, reached }) => {
                self.reaches(address, reached);
            }
            FromDaemon::Message(FromServer::Shown(seen)) => {
                let proper = matches!(
                    (&self.config, &*seen),
                    (ServerConfig::Les(_), ServerSnapshot::Les(_))
                        | (ServerConfig::Bus(_), ServerSnapshot::Bus(_))
                );
                match proper {
                    true => self.seen = Some(seen),
                    false => self.seat.refuse(),
                }
            }
            FromDaemon::Ended(_) => {
                self.close_all();
                self.begin(now);
            }
        }
    }

    fn member(&mut self, address: AtmAddress, member: Option<Member>) {
        let most = member.as_ref().map_or(0, Member::most);
        let room = self.members.len() < self.config.clients();
        let known = self.members.contains(&address);
        let proper = match &self.config {
            ServerConfig::Les(les) if most > les.params.registrations => false,
            ServerConfig::Les(_) if member.is_some() => room || known,
            ServerConfig::Les(_) => known,
            ServerConfig::Lecs(_) | ServerConfig::Bus(_) => false,
        };
        if !proper {
            return self.seat.refuse();
        }
        match &member {
            Some(_) => self.members.insert(address),
            None => self.members.remove(&address),
        };
        self.out.push_back(Output::Member { address, member });
    }

    fn reaches(&mut self, address: AtmAddress, reached: bool) {
        let is_bus = matches!(self.config, ServerConfig::Bus(_));
        let room = self.reached.len() < self.config.clients();
        if !is_bus || (reached && !room && !self.reached.contains(&address)) {
            return self.seat.refuse();
        }
        let changed = match reached {
            true => self.reached.insert(address),
            false => self.reached.remove(&address),
        };
        if changed {
            self.out.push_back(Output::Reaches { address, reached });
        }
    }

    /// An event of the ATM service.
    fn atm(&mut self, event: AtmEvent<&[u8]>, now: Instant) {
        let known = match event {
            AtmEvent::Up | AtmEvent::Down => true,
            AtmEvent::Incoming { conn, .. } => {
                let room = self.config.has_room(self.seat.conns().len());
                if !self.seat.is_told() || !room {
                    let cause = match self.seat.is_told() {
                        true => Cause::RESOURCES,
                        false => Cause::INCOMPATIBLE,
                    };
                    let request = AtmRequest::Release { conn, cause };
                    return self.out.push_back(Output::Atm(request));
                }
                self.seat.offered(conn, ());
                true
            }
            AtmEvent::Released { conn, .. } => self.seat.released(conn).is_some(),
            AtmEvent::Connected { conn, .. } => self.seat.connected(conn),
            AtmEvent::PartyAdded { conn, .. }
            | AtmEvent::PartyGone { conn, .. }
            | AtmEvent::Received { conn, .. } => self.seat.conns().contains_key(&conn),
        };
        if known {
            self.seat.tell_atm(event, now);
        }
    }

    /// Takes the outputs of the daemon, and passes them on.
    fn drain(&mut self, now: Instant) {
        while let Some(message) = self.seat.poll() {
            self.said(message, now);
        }
        while let Some(message) = self.seat.poll_message() {
            self.out.push_back(Output::Process(message));
        }
    }
}

impl Machine for LaneServer {
    type Input<'a> = Input<'a>;
    type Output = Output;
    type Refusal = Refused;

    fn handle_input(&mut self, input: Input<'_>, now: Instant) -> Result<(), Refused> {
        match input {
            Input::Start => {
                self.seat.want(true);
                self.begin(now);
            }
            Input::Stop => {
                self.seat.want(false);
                self.seat.tell(ToServer::Stop, now);
            }
            Input::Atm(event) => self.atm(event, now),
            Input::Member { address, member } => {
                self.seat.tell(ToServer::Member { address, member }, now);
            }
            Input::Process(_) if self.seat.daemon().is_some() => {
                return Err(Refused("the server runs in this process"));
            }
            Input::Process(ProcessEvent::Came) => {
                self.seat.came();
                self.begin(now);
            }
            Input::Process(ProcessEvent::Gone) => {
                self.seat.gone();
                self.close_all();
            }
            Input::Process(ProcessEvent::Said(message)) => self.said(message, now),
        }
        self.drain(now);
        Ok(())
    }
    fn handle_timeout(&mut self, now: Instant) {
        self.seat.handle_timeout(now);
        self.drain(now);
    }
    fn poll_output(&mut self) -> Option<Output> {
        self.out.pop_front()
    }
    fn poll_timeout(&self) -> Option<Instant> {
        self.seat.poll_timeout()
    }
}

crate::atm_user!(LaneServer {
    fn take_discard(&mut self) -> Option<(Discard, Vec<u8>)> {
        self.take_discard()
    }
});
