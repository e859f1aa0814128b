//! The servers in a process: lecs, les or bus.

use super::{FromServer, SHOW, ServerConfig, ServerSnapshot, ToServer};
use crate::lane::lecs::Elan;
use crate::lane::{Bus, Lecs, Les, Member, bus, lecs, les};
use crate::split::FRAME_MAX;
use crate::split::codec::Message as _;
use crate::{AtmEvent, AtmRequest, Instant, Machine, Refused, Trace};
use aerostat_wire::AtmAddress;
use std::collections::{BTreeMap, VecDeque};

/// What goes into the process.
#[derive(Clone, Debug, PartialEq)]
pub enum ServersInput {
    /// From the lab's process.
    Message(ToServer),
    /// SIGTERM and its like: release everything, exit.
    Terminate,
    /// SIGHUP: release everything, start again, empty.
    Reload,
}

/// What comes out of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServersOutput {
    /// For the lab's process.
    Message(FromServer),
    /// The process may end.
    Exit,
}

enum Server {
    Lecs(Box<Lecs>),
    Les(Box<Les>),
    Bus(Box<Bus>),
}

/// One output of a server.
enum Said {
    Atm(AtmRequest),
    Member(AtmAddress, Option<Member>),
    Reaches(AtmAddress, bool),
    Trace(Trace),
}

struct Hosted {
    server: Server,
    /// What was shown last.
    shown: Option<ServerSnapshot>,
    changed: bool,
}

/// All servers of one role at a host, for a process that has nothing else. It does nothing until it is told to.
#[derive(Default)]
pub struct Servers {
    /// For LECSs that are about to start.
    elans: BTreeMap<u16, Vec<Elan>>,
    all: BTreeMap<u16, Hosted>,
    show_at: Option<Instant>,
    out: VecDeque<ServersOutput>,
}

impl Servers {
    fn say(&mut self, message: FromServer) {
        self.out.push_back(ServersOutput::Message(message));
    }

    fn message(&mut self, message: ToServer, now: Instant) {
        let (server, input) = match message {
            ToServer::Elan { server, elan } => {
                return self.elans.entry(server).or_default().push(*elan);
            }
            ToServer::Start { server, config } => return self.start(server, *config, now),
            ToServer::Stop { server } => {
                self.stop(server, now);
                self.all.remove(&server);
                return;
            }
            ToServer::Member {
                server,
                address,
                member,
            } => {
                if let Some(Hosted {
                    server: Server::Bus(bus),
                    ..
                }) = self.all.get_mut(&server)
                {
                    let input = bus::Input::Member { address, member };
                    // Servers refuse nothing.
                    let _ = bus.handle_input(input, now);
                }
                return self.drain(server, now);
            }
            ToServer::Atm { server, event } => (server, event),
        };
        if let Some(hosted) = self.all.get_mut(&server) {
            hosted.server.atm(input.borrow(), now);
        }
        self.drain(server, now);
    }

    fn start(&mut self, number: u16, config: ServerConfig, now: Instant) {
        let elans = self.elans.remove(&number).unwrap_or_default();
        let mut server = match config {
            ServerConfig::Lecs(mut config) => {
                config.elans.extend(elans);
                Server::Lecs(Box::new(Lecs::new(config)))
            }
            ServerConfig::Les(config) => Server::Les(Box::new(Les::new(config))),
            ServerConfig::Bus(config) => Server::Bus(Box::new(Bus::new(config))),
        };
        server.start(now);
        let hosted = Hosted {
            server,
            shown: None,
            changed: true,
        };
        self.all.insert(number, hosted);
        self.drain(number, now);
    }

    fn stop(&mut self, number: u16, now: Instant) {
        if let Some(hosted) = self.all.get_mut(&number) {
            hosted.server.stop(now);
        }
        self.drain(number, now);
    }

    /// Stops all, in good order.
    fn end(&mut self, exits: bool, now: Instant) {
        for number in self.all.keys().copied().collect::<Vec<_>>() {
            self.stop(number, now);
        }
        self.all.clear();
        self.show_at = None;
        self.say(FromServer::Ended { exits });
        if exits {
            self.out.push_back(ServersOutput::Exit);
        }
    }

    /// Passes on what a server put out.
    fn drain(&mut self, server: u16, now: Instant) {
        let Some(hosted) = self.all.get_mut(&server) else {
            return;
        };
        hosted.changed = true;
        self.show_at.get_or_insert(now + SHOW);
        while let Some(said) = hosted.server.poll() {
            let message = match said {
                Said::Atm(request) => FromServer::Atm { server, request },
                Said::Member(address, member) => FromServer::Member {
                    server,
                    address,
                    member,
                },
                Said::Reaches(address, reached) => FromServer::Reaches {
                    server,
                    address,
                    reached,
                },
                Said::Trace(trace) => FromServer::Trace { server, trace },
            };
            self.out.push_back(ServersOutput::Message(message));
        }
    }

    fn show(&mut self) {
        self.show_at = None;
        for (&server, hosted) in &mut self.all {
            if !core::mem::take(&mut hosted.changed) {
                continue;
            }
            let seen = hosted.server.snapshot();
            if seen == hosted.shown {
                continue;
            }
            hosted.shown.clone_from(&seen);
            if let Some(seen) = seen {
                let message = FromServer::Shown {
                    server,
                    seen: Box::new(seen),
                };
                self.out.push_back(ServersOutput::Message(fitting(message)));
            }
        }
    }
}

/// A frame has an end: what does not fit is not shown.
fn fitting(mut message: FromServer) -> FromServer {
    while message.encode().len() > FRAME_MAX {
        let FromServer::Shown { seen, .. } = &mut message else {
            break;
        };
        match &mut **seen {
            ServerSnapshot::Les(les) => les.clients.truncate(les.clients.len() / 2),
            ServerSnapshot::Bus(bus) => bus.clients.truncate(bus.clients.len() / 2),
        }
    }
    message
}

/// Inputs of servers are never refused.
impl Server {
    fn start(&mut self, now: Instant) {
        let _ = match self {
            Self::Lecs(m) => m.handle_input(lecs::Input::Start, now),
            Self::Les(m) => m.handle_input(les::Input::Start, now),
            Self::Bus(m) => m.handle_input(bus::Input::Start, now),
        };
    }
    fn stop(&mut self, now: Instant) {
        let _ = match self {
            Self::Lecs(m) => m.handle_input(lecs::Input::Stop, now),
            Self::Les(m) => m.handle_input(les::Input::Stop, now),
            Self::Bus(m) => m.handle_input(bus::Input::Stop, now),
        };
    }
    fn atm(&mut self, event: AtmEvent<&[u8]>, now: Instant) {
        let _ = match self {
            Self::Lecs(m) => m.handle_input(lecs::Input::Atm(event), now),
            Self::Les(m) => m.handle_input(les::Input::Atm(event), now),
            Self::Bus(m) => m.handle_input(bus::Input::Atm(event), now),
        };
    }
    fn timeout(&mut self, now: Instant) {
        match self {
            Self::Lecs(m) => m.handle_timeout(now),
            Self::Les(m) => m.handle_timeout(now),
            Self::Bus(m) => m.handle_timeout(now),
        }
    }
    fn deadline(&self) -> Option<Instant> {
        match self {
            Self::Lecs(m) => m.poll_timeout(),
            Self::Les(m) => m.poll_timeout(),
            Self::Bus(m) => m.poll_timeout(),
        }
    }
    fn poll(&mut self) -> Option<Said> {
        Some(match self {
            Self::Lecs(m) => match m.poll_output()? {
                lecs::Output::Atm(request) => Said::Atm(request),
                lecs::Output::Trace(trace) => Said::Trace(trace),
            },
            Self::Les(m) => match m.poll_output()? {
                les::Output::Atm(request) => Said::Atm(request),
                les::Output::Member { address, member } => Said::Member(address, member),
                les::Output::Trace(trace) => Said::Trace(trace),
            },
            Self::Bus(m) => match m.poll_output()? {
                bus::Output::Atm(request) => Said::Atm(request),
                bus::Output::Reaches { address, reached } => Said::Reaches(address, reached),
                bus::Output::Trace(trace) => Said::Trace(trace),
            },
        })
    }
    fn snapshot(&self) -> Option<ServerSnapshot> {
        match self {
            Self::Lecs(_) => None,
            Self::Les(m) => Some(ServerSnapshot::Les(m.snapshot())),
            Self::Bus(m) => Some(ServerSnapshot::Bus(m.snapshot())),
        }
    }
}

impl Machine for Servers {
    type Input<'a> = ServersInput;
    type Output = ServersOutput;

    fn handle_input(&mut self, input: ServersInput, now: Instant) -> Result<(), Refused> {
        match input {
            ServersInput::Message(message) => self.message(message, now),
            ServersInput::Terminate => self.end(true, now),
            ServersInput::Reload => self.end(false, now),
        }
        Ok(())
    }

    fn handle_timeout(&mut self, now: Instant) {
        let due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        for number in self.all.keys().copied().collect::<Vec<_>>() {
            if let Some(hosted) = self.all.get_mut(&number)
                && due(hosted.server.deadline())
            {
                hosted.server.timeout(now);
                self.drain(number, now);
            }
        }
        if due(self.show_at) {
            self.show();
        }
    }

    fn poll_output(&mut self) -> Option<ServersOutput> {
        self.out.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let servers = self.all.values().map(|hosted| hosted.server.deadline());
        servers.chain([self.show_at]).flatten().min()
    }
}
