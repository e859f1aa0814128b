//! The seat of a server whose process is another.

use super::{FromServer, News, ServerConfig, ServerSnapshot, ToServer};
use crate::lane::Member;
use crate::split::Role;
use crate::{AtmEvent, AtmRequest, Cause, ConnId, Instant, Machine, Refused, Trace};
use aerostat_wire::{AtmAddress, Sap};
use std::collections::{BTreeSet, VecDeque};

/// Connections beside those of clients: with the LECS, the roots of trees, calls that come and go.
const SPARE: usize = 192;
/// Connections of one client: its own, and a copy of what all get.
const PER_CLIENT: usize = 2;

/// What goes into a seat.
#[derive(Clone, Debug)]
pub enum AwayInput<'a> {
    /// Serve, when the process is there.
    Start,
    /// Stop in good order.
    Stop,
    /// From the ATM service.
    Atm(AtmEvent<&'a [u8]>),
    /// Who is a member, for a BUS.
    Member {
        /// See [`crate::lane::bus::Input::Member`].
        address: AtmAddress,
        /// The same.
        member: Option<Member>,
    },
    /// From or about the process.
    News(News),
}

/// What comes out of a seat.
#[derive(Clone, Debug, PartialEq)]
pub enum AwayOutput {
    /// For the ATM service.
    Atm(AtmRequest),
    /// A client joined or left: for the BUS.
    Member {
        /// See [`crate::lane::les::Output::Member`].
        address: AtmAddress,
        /// The same.
        member: Option<Member>,
    },
    /// A client that a BUS reaches, or no longer reaches.
    Reaches {
        /// See [`crate::lane::bus::Output::Reaches`].
        address: AtmAddress,
        /// True if the client is reached.
        reached: bool,
    },
    /// For the process.
    Say(ToServer),
    /// An observation.
    Trace(Trace),
}

/// The seat of one server.
#[derive(Debug)]
pub struct Away {
    /// Which of the process's.
    server: u16,
    config: ServerConfig,
    started: bool,
    present: bool,
    listens: BTreeSet<(AtmAddress, Sap)>,
    conns: BTreeSet<ConnId>,
    /// Whom the LES named.
    members: BTreeSet<AtmAddress>,
    /// Clients that the BUS reaches.
    reached: BTreeSet<AtmAddress>,
    seen: Option<Box<ServerSnapshot>>,
    refused: u64,
    out: VecDeque<AwayOutput>,
}

impl Away {
    /// The seat of a server with this number at its host.
    #[must_use]
    pub fn new(server: u16, config: ServerConfig) -> Self {
        Self {
            server,
            config,
            started: false,
            present: false,
            listens: BTreeSet::new(),
            conns: BTreeSet::new(),
            members: BTreeSet::new(),
            reached: BTreeSet::new(),
            seen: None,
            refused: 0,
            out: VecDeque::new(),
        }
    }
    /// Whose process runs it.
    #[must_use]
    pub const fn role(&self) -> Role {
        self.config.role()
    }
    /// What the process showed last; nothing while it is away.
    #[must_use]
    pub fn seen(&self) -> Option<&ServerSnapshot> {
        self.seen.as_deref()
    }
    /// The clients that a BUS reaches.
    pub fn reached(&self) -> impl Iterator<Item = AtmAddress> + '_ {
        self.reached.iter().copied()
    }
    /// What the process may not do, but tried.
    #[must_use]
    pub const fn refused(&self) -> u64 {
        self.refused
    }

    const fn runs(&self) -> bool {
        self.started && self.present
    }

    fn say(&mut self, message: ToServer) {
        self.out.push_back(AwayOutput::Say(message));
    }

    /// Tells the process to serve, if it should and is there.
    fn begin(&mut self) {
        if !self.runs() {
            return;
        }
        let server = self.server;
        let mut config = Box::new(self.config.clone());
        if let ServerConfig::Lecs(lecs) = &mut *config {
            for elan in core::mem::take(&mut lecs.elans) {
                let elan = Box::new(elan);
                self.say(ToServer::Elan { server, elan });
            }
        }
        self.say(ToServer::Start { server, config });
    }

    /// What the operating system does when a process is gone: its sockets close. And its members are none.
    fn close_all(&mut self) {
        for conn in core::mem::take(&mut self.conns) {
            let cause = Cause::NORMAL;
            let request = AtmRequest::Release { conn, cause };
            self.out.push_back(AwayOutput::Atm(request));
        }
        for (address, sap) in core::mem::take(&mut self.listens) {
            let request = AtmRequest::Unlisten { address, sap };
            self.out.push_back(AwayOutput::Atm(request));
        }
        for address in core::mem::take(&mut self.members) {
            let member = None;
            self.out.push_back(AwayOutput::Member { address, member });
        }
        for address in core::mem::take(&mut self.reached) {
            let reached = false;
            self.out.push_back(AwayOutput::Reaches { address, reached });
        }
        self.seen = None;
    }

    fn gone(&mut self) {
        self.close_all();
        self.present = false;
    }

    fn said(&mut self, message: FromServer) {
        match message {
            FromServer::Ended { exits } => {
                self.gone();
                if !exits {
                    self.present = true;
                    self.begin();
                }
            }
            FromServer::Atm { server, request } if server == self.server => self.request(request),
            FromServer::Member {
                server,
                address,
                member,
            } if server == self.server => self.member(address, member),
            FromServer::Reaches {
                server,
                address,
                reached,
            } if server == self.server => self.reaches(address, reached),
            FromServer::Trace { server, trace } if server == self.server => {
                self.out.push_back(AwayOutput::Trace(trace));
            }
            FromServer::Shown { server, seen } if server == self.server => {
                let proper = matches!(
                    (&self.config, &*seen),
                    (ServerConfig::Les(_), ServerSnapshot::Les(_))
                        | (ServerConfig::Bus(_), ServerSnapshot::Bus(_))
                );
                if proper {
                    self.seen = Some(seen);
                } else {
                    self.refused += 1;
                }
            }
            FromServer::Atm { .. }
            | FromServer::Member { .. }
            | FromServer::Reaches { .. }
            | FromServer::Trace { .. }
            | FromServer::Shown { .. } => self.refused += 1,
        }
    }

    fn member(&mut self, address: AtmAddress, member: Option<Member>) {
        let most = member.as_ref().map_or(0, Member::most);
        let room = self.members.len() < self.config.clients();
        let proper = match &self.config {
            ServerConfig::Les(les) if most > les.params.registrations => false,
            ServerConfig::Les(_) if member.is_some() => room || self.members.contains(&address),
            ServerConfig::Les(_) => self.members.contains(&address),
            ServerConfig::Lecs(_) | ServerConfig::Bus(_) => false,
        };
        if !proper {
            self.refused += 1;
            return;
        }
        if member.is_some() {
            self.members.insert(address);
        } else {
            self.members.remove(&address);
        }
        self.out.push_back(AwayOutput::Member { address, member });
    }

    fn reaches(&mut self, address: AtmAddress, reached: bool) {
        let is_bus = matches!(self.config, ServerConfig::Bus(_));
        let room = self.reached.len() < self.config.clients();
        if !is_bus || (reached && !room && !self.reached.contains(&address)) {
            self.refused += 1;
            return;
        }
        let news = if reached {
            self.reached.insert(address)
        } else {
            self.reached.remove(&address)
        };
        if news {
            self.out.push_back(AwayOutput::Reaches { address, reached });
        }
    }

    fn has_room(&self) -> bool {
        self.conns.len() < PER_CLIENT * self.config.clients() + SPARE
    }

    /// A request to the ATM service, as far as the process may make it.
    fn request(&mut self, request: AtmRequest) {
        let own = |conn: &ConnId| self.conns.contains(conn);
        let proper = match &request {
            AtmRequest::Listen { address, .. } | AtmRequest::Unlisten { address, .. } => {
                self.config.owns(*address)
            }
            AtmRequest::Connect { conn, calling, .. } => {
                let fresh = conn.0 < ConnId::INCOMING && !own(conn);
                fresh && self.has_room() && self.config.owns(*calling)
            }
            AtmRequest::OpenPermanent { .. } => false,
            AtmRequest::AddParty { conn, .. }
            | AtmRequest::DropParty { conn, .. }
            | AtmRequest::Accept { conn }
            | AtmRequest::Release { conn, .. }
            | AtmRequest::Send { conn, .. } => own(conn),
        };
        if !proper {
            self.refused += 1;
            return;
        }
        match &request {
            AtmRequest::Listen { address, sap, .. } => {
                self.listens.insert((*address, *sap));
            }
            AtmRequest::Unlisten { address, sap } => {
                self.listens.remove(&(*address, *sap));
            }
            AtmRequest::Connect { conn, .. } => {
                self.conns.insert(*conn);
            }
            AtmRequest::Release { conn, .. } => {
                self.conns.remove(conn);
            }
            AtmRequest::OpenPermanent { .. }
            | AtmRequest::AddParty { .. }
            | AtmRequest::DropParty { .. }
            | AtmRequest::Accept { .. }
            | AtmRequest::Send { .. } => {}
        }
        self.out.push_back(AwayOutput::Atm(request));
    }

    /// An event of the ATM service.
    fn atm(&mut self, event: AtmEvent<&[u8]>) {
        let known = match event {
            AtmEvent::Up | AtmEvent::Down => true,
            AtmEvent::Incoming { conn, .. } => {
                let runs = self.runs();
                if !runs || !self.has_room() {
                    let cause = if runs {
                        Cause::RESOURCES
                    } else {
                        Cause::INCOMPATIBLE
                    };
                    let request = AtmRequest::Release { conn, cause };
                    return self.out.push_back(AwayOutput::Atm(request));
                }
                self.conns.insert(conn)
            }
            AtmEvent::Released { conn, .. } => self.conns.remove(&conn),
            AtmEvent::Connected { conn, .. }
            | AtmEvent::PartyAdded { conn, .. }
            | AtmEvent::PartyGone { conn, .. }
            | AtmEvent::Received { conn, .. } => self.conns.contains(&conn),
        };
        if known && self.runs() {
            let (server, event) = (self.server, event.into_owned());
            self.say(ToServer::Atm { server, event });
        }
    }
}

impl Machine for Away {
    type Input<'a> = AwayInput<'a>;
    type Output = AwayOutput;

    fn handle_input(&mut self, input: AwayInput<'_>, _: Instant) -> Result<(), Refused> {
        match input {
            AwayInput::Start => {
                if !core::mem::replace(&mut self.started, true) {
                    self.begin();
                }
            }
            AwayInput::Stop => {
                if self.runs() {
                    let server = self.server;
                    self.say(ToServer::Stop { server });
                }
                self.close_all();
                self.started = false;
            }
            AwayInput::Atm(event) => self.atm(event),
            AwayInput::Member { address, member } => {
                if self.runs() {
                    let server = self.server;
                    self.say(ToServer::Member {
                        server,
                        address,
                        member,
                    });
                }
            }
            AwayInput::News(News::Came) => {
                if !core::mem::replace(&mut self.present, true) {
                    self.begin();
                }
            }
            AwayInput::News(News::Gone) => self.gone(),
            // What was on its way when it was all over is nobody's.
            AwayInput::News(News::Said(message)) if self.runs() => self.said(message),
            AwayInput::News(News::Said(_)) => {}
        }
        Ok(())
    }
    fn handle_timeout(&mut self, _: Instant) {}
    fn poll_output(&mut self) -> Option<AwayOutput> {
        self.out.pop_front()
    }
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
}
