//! The server as a daemon: the signals of its process, and the reports of its state.

use super::report::{Part, State, parts};
use super::split::{FromMpsd, ToMpsd};
use super::{Interface, MpsConfig, Output, Server};
use crate::nhrp::auth;
use crate::split::{Daemon, Ended, FromDaemon, Signal};
use crate::{AtmEvent, Duration, Instant};
use aerostat_wire::AtmAddress;
use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;

/// Age of the state that `inspect` shows of a server in a process of its own, unless the report is long.
pub const SHOW: Duration = Duration::from_millis(200);
/// Frames of a report that are sent at once; the rest of a long report follows at intervals of [`SHOW`].
const BURST: usize = 4;

/// The daemon of an MPOA server. It is idle until it is started.
#[derive(Debug, Default)]
pub struct Mpsd {
    /// Settings of a server that is about to start.
    interfaces: Vec<Interface>,
    keys: BTreeMap<AtmAddress, auth::Neighbour>,
    servers: BTreeMap<Ipv4Addr, AtmAddress>,
    pub(super) server: Option<Server>,
    /// State that was reported last.
    shown: Option<State>,
    /// The rest of a report.
    parts: VecDeque<Part>,
    /// When more of the report is due.
    wake: Option<Instant>,
    out: VecDeque<FromDaemon<FromMpsd>>,
}

impl Mpsd {
    fn say(&mut self, message: FromMpsd) {
        self.out.push_back(FromDaemon::Message(message));
    }

    /// A server that only stopped continues its numbers: late answers must not match.
    fn start(&mut self, config: MpsConfig) {
        let config = MpsConfig {
            interfaces: core::mem::take(&mut self.interfaces),
            keys: auth::Keys {
                neighbours: core::mem::take(&mut self.keys),
                ..config.keys
            },
            servers: core::mem::take(&mut self.servers),
            ..config
        };
        let server = self.server.get_or_insert_with(|| Server::new(config));
        if !server.up {
            server.start();
        }
    }

    /// Releases everything regularly.
    fn stop(&mut self, ended: Ended, now: Instant) {
        if let Some(server) = self.serving() {
            server.stop();
        }
        self.drain();
        // The counters outlast the service. A server that has stopped has no rows, so the report is short.
        self.parts.clear();
        (self.shown, self.wake) = (None, None);
        let last = self.server.as_ref().map(State::of);
        for part in last.into_iter().flat_map(|state| parts(state, now)) {
            self.say(FromMpsd::Shown(part));
        }
        self.out.push_back(FromDaemon::Ended(ended));
    }

    /// The server, while it serves.
    fn serving(&mut self) -> Option<&mut Server> {
        self.server.as_mut().filter(|server| server.up)
    }

    /// Sends some parts of a report; the rest follows.
    fn show(&mut self, now: Instant) {
        for _ in 0..BURST {
            if let Some(part) = self.parts.pop_front() {
                self.say(FromMpsd::Shown(part));
            }
        }
        self.wake = (!self.parts.is_empty()).then(|| now + SHOW);
    }

    /// Passes on the outputs of the server.
    fn drain(&mut self) {
        while let Some(output) = self.server.as_mut().and_then(|s| s.out.pop_front()) {
            match output {
                Output::Atm(request) => self.out.push_back(FromDaemon::Atm(request)),
                Output::Trace(trace) => self.out.push_back(FromDaemon::Trace(trace)),
                Output::Router(request) => self.say(FromMpsd::Router(request)),
                // These outputs belong to the data half.
                Output::ForwardIp(_) | Output::Process(_) => {}
            }
        }
    }
}

impl Daemon for Mpsd {
    type To = ToMpsd;
    type From = FromMpsd;
    const REPORT: Option<Duration> = Some(SHOW);

    fn message(&mut self, message: ToMpsd, now: Instant) {
        match message {
            ToMpsd::Interface(interface) => self.interfaces.push(interface),
            ToMpsd::Key { caller, neighbour } => {
                self.keys.insert(caller, neighbour);
            }
            ToMpsd::NextHop { hop, server } => {
                self.servers.insert(hop, server);
            }
            ToMpsd::Start(config) => self.start(*config),
            ToMpsd::Stop => self.stop(Ended::Stops, now),
            ToMpsd::Flow {
                itf,
                source,
                target,
            } => {
                let server = self.serving();
                if server.is_some_and(|server| !server.routed(itf, source, target, now)) {
                    self.say(FromMpsd::Served { source, target });
                }
            }
            ToMpsd::Router(event) => {
                if let Some(server) = self.serving() {
                    server.told(event, now);
                }
            }
        }
        self.drain();
    }

    fn atm(&mut self, event: AtmEvent<&[u8]>, now: Instant) {
        if let Some(server) = self.serving() {
            server.atm(event, now);
        }
        self.drain();
    }

    /// SIGTERM: releases everything and ends. SIGHUP: the same, and its seat starts it again, without state.
    fn signal(&mut self, signal: Signal, now: Instant) {
        match signal {
            Signal::Terminate => self.stop(Ended::Exits, now),
            Signal::Reload => {
                self.stop(Ended::Stops, now);
                self.server = None;
            }
        }
    }

    fn report(&mut self, now: Instant) {
        let serving = self.server.as_ref().filter(|server| server.up);
        if self.parts.is_empty()
            && let Some(state) = serving.map(State::of)
            && self.shown.as_ref() != Some(&state)
        {
            self.shown = Some(state.clone());
            self.parts.extend(parts(state, now));
            self.show(now);
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.wake.is_some_and(|at| at <= now) {
            self.show(now);
        }
        if let Some(server) = self.serving() {
            server.handle_timeout(now);
        }
        self.drain();
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let server = self.server.as_ref().and_then(Server::poll_timeout);
        server.into_iter().chain(self.wake).min()
    }

    fn poll_output(&mut self) -> Option<FromDaemon<FromMpsd>> {
        self.out.pop_front()
    }
}
