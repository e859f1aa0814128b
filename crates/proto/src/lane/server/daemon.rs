//! A server as a daemon.

use super::{FromServer, SHOW, ServerConfig, ServerSnapshot, ToServer};
use crate::discard::Discard;
use crate::lane::lecs::Elan;
use crate::lane::{Bus, Lecs, Les, bus, lecs, les};
use crate::split::codec::Message as _;
use crate::split::{Daemon, Ended, FRAME_MAX, FromDaemon, Numbered, Signal};
use crate::{AtmEvent, Duration, Instant, Machine};
use std::collections::VecDeque;

#[allow(
    clippy::large_enum_variant,
    reason = "a host has a handful of them, each in a slot of its own"
)]
enum Server {
    Lecs(Lecs),
    Les(Les),
    Bus(Bus),
}

/// A LECS, a LES or a BUS. It is idle until it is started.
#[derive(Default)]
pub struct ServerDaemon {
    /// For a LECS that is about to start.
    elans: Vec<Elan>,
    server: Option<Server>,
    /// The state that was reported last.
    shown: Option<ServerSnapshot>,
    out: VecDeque<FromDaemon<FromServer>>,
}

impl core::fmt::Debug for ServerDaemon {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let runs = self.server.is_some();
        f.debug_struct("ServerDaemon").field("runs", &runs).finish()
    }
}

impl ServerDaemon {
    /// The state of the server for display; `None` for a LECS.
    #[must_use]
    pub fn snapshot(&self) -> Option<ServerSnapshot> {
        self.server.as_ref().and_then(Server::snapshot)
    }
    /// The next packet that was discarded.
    pub fn take_discard(&mut self) -> Option<(Discard, Vec<u8>)> {
        match &mut self.server {
            Some(Server::Bus(bus)) => bus.take_discard(),
            _ => None,
        }
    }

    fn start(&mut self, config: ServerConfig, now: Instant) {
        let elans = core::mem::take(&mut self.elans);
        let mut server = match config {
            ServerConfig::Lecs(mut config) => {
                config.elans.extend(elans);
                Server::Lecs(Lecs::new(config))
            }
            ServerConfig::Les(config) => Server::Les(Les::new(config)),
            ServerConfig::Bus(config) => Server::Bus(Bus::new(config)),
        };
        server.start(now);
        (self.server, self.shown) = (Some(server), None);
    }

    /// Releases everything regularly.
    fn stop(&mut self, ended: Ended, now: Instant) {
        if let Some(mut server) = self.server.take() {
            server.stop(now);
            self.out.extend(core::iter::from_fn(|| server.poll()));
        }
        self.out.push_back(FromDaemon::Ended(ended));
    }
}

impl Daemon for ServerDaemon {
    type To = ToServer;
    type From = FromServer;
    const REPORT: Option<Duration> = Some(SHOW);

    fn message(&mut self, message: ToServer, now: Instant) {
        match message {
            ToServer::Elan(elan) => self.elans.push(*elan),
            ToServer::Start(config) => self.start(*config, now),
            ToServer::Stop => self.stop(Ended::Stops, now),
            ToServer::Member { address, member } => {
                if let Some(Server::Bus(bus)) = &mut self.server {
                    // Servers refuse no input.
                    let Ok(()) = bus.handle_input(bus::Input::Member { address, member }, now);
                }
            }
        }
    }

    fn atm(&mut self, event: AtmEvent<&[u8]>, now: Instant) {
        if let Some(server) = &mut self.server {
            server.atm(event, now);
        }
    }

    fn signal(&mut self, signal: Signal, now: Instant) {
        match signal {
            Signal::Terminate => self.stop(Ended::Exits, now),
            // Its seat starts it again, without state.
            Signal::Reload => self.stop(Ended::Stops, now),
        }
    }

    fn report(&mut self, _: Instant) {
        let seen = self.snapshot();
        if let Some(seen) = seen.filter(|seen| self.shown.as_ref() != Some(seen)) {
            self.shown = Some(seen.clone());
            self.out.push_back(fitting(seen));
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        match &mut self.server {
            Some(Server::Lecs(m)) => m.handle_timeout(now),
            Some(Server::Les(m)) => m.handle_timeout(now),
            Some(Server::Bus(m)) => m.handle_timeout(now),
            None => {}
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self.server.as_ref()? {
            Server::Lecs(m) => m.poll_timeout(),
            Server::Les(m) => m.poll_timeout(),
            Server::Bus(m) => m.poll_timeout(),
        }
    }

    fn poll_output(&mut self) -> Option<FromDaemon<FromServer>> {
        let own = self.out.pop_front();
        own.or_else(|| self.server.as_mut()?.poll())
    }
}

/// A frame has a limited size: rows that do not fit are left out, first of the longer list, and counted.
fn fitting(mut seen: ServerSnapshot) -> FromDaemon<FromServer> {
    let rows = |seen: &ServerSnapshot| match seen {
        ServerSnapshot::Les(les) => les.clients.len(),
        ServerSnapshot::Bus(bus) => bus.clients.len() + bus.groups.len(),
    };
    let all = rows(&seen);
    loop {
        let message = FromDaemon::Message(FromServer::Shown(Box::new(seen)));
        let (number, message) = (0, message);
        let frame = Numbered { number, message };
        if frame.encode().len() <= FRAME_MAX {
            return frame.message;
        }
        let FromDaemon::Message(FromServer::Shown(too_long)) = frame.message else {
            return frame.message;
        };
        seen = *too_long;
        match &mut seen {
            ServerSnapshot::Les(les) => les.clients.truncate(les.clients.len() / 2),
            ServerSnapshot::Bus(bus) if bus.groups.len() > bus.clients.len() => {
                bus.groups.truncate(bus.groups.len() / 2);
            }
            ServerSnapshot::Bus(bus) => bus.clients.truncate(bus.clients.len() / 2),
        }
        let left_out = (all - rows(&seen)) as u64;
        match &mut seen {
            ServerSnapshot::Les(les) => les.counters.not_shown = left_out,
            ServerSnapshot::Bus(bus) => bus.counters.not_shown = left_out,
        }
    }
}

impl Server {
    fn start(&mut self, now: Instant) {
        let Ok(()) = match self {
            Self::Lecs(m) => m.handle_input(lecs::Input::Start, now),
            Self::Les(m) => m.handle_input(les::Input::Start, now),
            Self::Bus(m) => m.handle_input(bus::Input::Start, now),
        };
    }
    fn stop(&mut self, now: Instant) {
        let Ok(()) = match self {
            Self::Lecs(m) => m.handle_input(lecs::Input::Stop, now),
            Self::Les(m) => m.handle_input(les::Input::Stop, now),
            Self::Bus(m) => m.handle_input(bus::Input::Stop, now),
        };
    }
    fn atm(&mut self, event: AtmEvent<&[u8]>, now: Instant) {
        let Ok(()) = match self {
            Self::Lecs(m) => m.handle_input(lecs::Input::Atm(event), now),
            Self::Les(m) => m.handle_input(les::Input::Atm(event), now),
            Self::Bus(m) => m.handle_input(bus::Input::Atm(event), now),
        };
    }
    fn poll(&mut self) -> Option<FromDaemon<FromServer>> {
        Some(match self {
            Self::Lecs(m) => match m.poll_output()? {
                lecs::Output::Atm(request) => FromDaemon::Atm(request),
                lecs::Output::Trace(trace) => FromDaemon::Trace(trace),
            },
            Self::Les(m) => match m.poll_output()? {
                les::Output::Atm(request) => FromDaemon::Atm(request),
                les::Output::Member { address, member } => {
                    FromDaemon::Message(FromServer::Member { address, member })
                }
                les::Output::Trace(trace) => FromDaemon::Trace(trace),
            },
            Self::Bus(m) => match m.poll_output()? {
                bus::Output::Atm(request) => FromDaemon::Atm(request),
                bus::Output::Reaches { address, reached } => {
                    FromDaemon::Message(FromServer::Reaches { address, reached })
                }
                bus::Output::Trace(trace) => FromDaemon::Trace(trace),
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
