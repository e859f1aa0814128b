//! The server of a router: its data half, with the seat of its daemon.
//!
//! The data half does not wait for the daemon when a packet arrives on a shortcut that ends here: the packet goes to
//! the router. So a daemon that hangs stops no flow before its connections end with it.

use super::data::{self, Flows};
use super::process::Mpsd;
use super::report::{Reports, State};
use super::split::{FromMpsd, ToMpsd};
use super::{
    ConnUse, Counters, FromRouter, Input, MpsConfig, MpsSnapshot, NhrpSnapshot, Output, ToRouter,
    lookup,
};
use crate::discard::{Discard, Discards};
use crate::nhrp::RequestTable;
use crate::split::{FromDaemon, Handle, ProcessEvent, Rights, Seat, SeatCounters};
use crate::{AtmEvent, AtmRequest, Cause, ConnId, Instant, Machine, Refused};
use aerostat_wire::{AtmAddress, Sap};
use std::collections::{BTreeMap, VecDeque};

/// Connections beside those that the daemon counts: calls that are offered to it, or whose end it has not heard of.
const SPARE: usize = 64;

/// The data half's state of a connection of the daemon.
#[derive(Clone, Copy, Debug)]
struct Conn {
    /// True for a shortcut that ends here.
    shortcut: bool,
    /// SDUs received, if the connection is a shortcut.
    received: u64,
}

impl Conn {
    const fn new(shortcut: bool) -> Self {
        Self {
            shortcut,
            received: 0,
        }
    }
}

impl MpsConfig {
    const fn has_room(&self, conns: usize) -> bool {
        conns < self.limits.connections.saturating_add(SPARE)
    }
}

impl Rights<Conn> for MpsConfig {
    fn owns(&self, address: AtmAddress, sap: Sap) -> bool {
        let own = address == self.control || (self.terminate && address == self.data);
        sap == Sap::LLC && own
    }
    fn open(&self, connect: &AtmRequest, conns: &BTreeMap<ConnId, Handle<Conn>>) -> Option<Conn> {
        // The server calls only for its packets of MPOA and NHRP.
        let control =
            matches!(connect, AtmRequest::Connect { calling, .. } if *calling == self.control);
        (control && self.has_room(conns.len())).then_some(Conn::new(false))
    }
}

/// The MPOA server of a router, with its next hop server.
#[derive(Debug)]
pub struct Mps {
    config: MpsConfig,
    seat: Seat<Mpsd, Conn>,
    /// The daemon's numbers of its questions to the router, by the numbers that the router gets.
    questions: RequestTable<u32>,
    flows: Flows,
    /// The events of this half.
    counters: Counters,
    discards: Discards,
    reports: Reports,
    out: VecDeque<Output>,
}

impl Mps {
    /// A server in this process that has not started.
    #[must_use]
    pub fn new(config: MpsConfig) -> Self {
        Self::with(config, Seat::here())
    }
    /// A server whose daemon is in a process of its own, which has not started yet.
    #[must_use]
    pub fn split(config: MpsConfig) -> Self {
        Self::with(config, Seat::elsewhere())
    }
    fn with(config: MpsConfig, seat: Seat<Mpsd, Conn>) -> Self {
        Self {
            seat,
            questions: RequestTable::new(config.first_request_id, config.limits.queries),
            flows: Flows::default(),
            counters: Counters::default(),
            discards: Discards::default(),
            reports: Reports::default(),
            out: VecDeque::new(),
            config,
        }
    }

    /// True if the server must be told of packets that the router forwards ([`Input::Routed`]).
    #[must_use]
    pub const fn triggers(&self) -> bool {
        self.config.trigger
    }
    /// The next packet that was discarded.
    pub fn take_discard(&mut self) -> Option<(Discard, Vec<u8>)> {
        self.discards.take()
    }
    /// Counters of its seat: what the daemon may not do.
    #[must_use]
    pub const fn seat_counters(&self) -> SeatCounters {
        self.seat.counters()
    }
    /// The events so far, in both halves. The events of a daemon in a process of its own are as old as its last report,
    /// and end with the daemon.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.state().mps.counters
    }
    /// The state of the server. That of a daemon in a process of its own is as old as its last report.
    #[must_use]
    pub fn snapshot(&self) -> MpsSnapshot {
        self.state().mps
    }
    /// The state of the next hop server, as old as that of [`Self::snapshot`].
    #[must_use]
    pub fn nhrp_snapshot(&self) -> NhrpSnapshot {
        self.state().nhrp
    }

    fn state(&self) -> State {
        let known = match self.seat.daemon() {
            Some(daemon) => daemon.server.as_ref().map(State::of),
            None => self.reports.last.clone(),
        };
        let mut state = known.unwrap_or_else(|| State::idle(&self.config));
        state.mps.counters.add(&self.counters);
        for row in &mut state.mps.connections {
            if let Some(handle) = self.seat.conns().get(&row.conn)
                && row.carries == ConnUse::Shortcut
            {
                row.received = handle.own.received;
            }
        }
        state
    }

    /// Tells the daemon to serve, if it should and is present.
    fn begin(&mut self, now: Instant) {
        let (id, cache_id) = (self.config.first_request_id, self.config.first_cache_id);
        let seed = (u64::from(id) << 32) | u64::from(cache_id);
        let Some(seed) = self.seat.begin(seed) else {
            return;
        };
        let mut config = Box::new(self.config.clone());
        if !self.seat.is_first_life() {
            (config.first_request_id, config.first_cache_id) = MpsConfig::first_numbers(seed);
        }
        for interface in core::mem::take(&mut config.interfaces) {
            self.seat.tell(ToMpsd::Interface(interface), now);
        }
        for (caller, neighbour) in core::mem::take(&mut config.keys.neighbours) {
            self.seat.tell(ToMpsd::Key { caller, neighbour }, now);
        }
        for (hop, server) in core::mem::take(&mut config.servers) {
            self.seat.tell(ToMpsd::NextHop { hop, server }, now);
        }
        self.seat.tell(ToMpsd::Start(config), now);
    }

    /// Closes its listeners and connections, and forgets what concerns this daemon.
    fn close_all(&mut self) {
        let requests = self.seat.close_all().into_iter();
        self.out.extend(requests.map(Output::Atm));
        self.questions.clear();
        self.flows.clear();
    }

    fn said(&mut self, message: FromDaemon<FromMpsd>, now: Instant) {
        let Some(message) = self.seat.hear(message, &self.config) else {
            return;
        };
        match message {
            FromDaemon::Atm(request) => self.out.push_back(Output::Atm(request)),
            FromDaemon::Trace(trace) => self.out.push_back(Output::Trace(trace)),
            FromDaemon::Message(message) => self.asked(message, now),
            FromDaemon::Ended(_) => {
                self.close_all();
                // A daemon that was not told to stop has forgotten its numbers.
                if self.seat.is_wanted() {
                    self.seat.end_life();
                }
                self.begin(now);
            }
        }
    }

    /// A message of the daemon, if the daemon may send it.
    fn asked(&mut self, message: FromMpsd, now: Instant) {
        match message {
            FromMpsd::Router(request) => self.routers(request, now),
            FromMpsd::Served { source, target } => self.flows.served((source, target), now),
            FromMpsd::Shown(part) => {
                if !self.reports.take(part, &self.config, now) {
                    self.seat.refuse();
                }
            }
        }
    }

    /// A question or order of the daemon to the router, if the daemon may have it. A question gets another number.
    fn routers(&mut self, mut request: ToRouter, now: Instant) {
        let lane = |itf| self.config.interface(itf).filter(|known| known.lane);
        let allowed = match &request {
            ToRouter::LookupRoute { .. } => true,
            ToRouter::ResolveL2 { itf, .. } => lane(*itf).is_some(),
            ToRouter::SetTlvs { itf, tlvs } => {
                lane(*itf).is_some_and(|known| self.config.announces(known) == *tlvs)
            }
        };
        // The daemon no longer waits for these answers.
        while self.questions.expire(now).is_some() {}
        let numbered = match request.query_mut().filter(|_| allowed) {
            Some(query) => self
                .questions
                .open(*query, lookup::PATIENCE, now)
                .map(|number| *query = number),
            None => allowed.then_some(()),
        };
        match numbered {
            Some(()) => self.out.push_back(Output::Router(request)),
            // Too many questions are open, or the daemon may not ask this.
            None => self.seat.refuse(),
        }
    }

    /// The router answered, or has news: an answer goes to the daemon under the daemon's own number.
    fn told_by_router(&mut self, mut event: FromRouter, now: Instant) {
        if let Some(query) = event.query_mut() {
            match self.questions.close(*query) {
                Some(own) => *query = own,
                None => return,
            }
        }
        self.seat.tell(ToMpsd::Router(event), now);
    }

    /// An event of the ATM service.
    fn atm(&mut self, event: AtmEvent<&[u8]>, now: Instant) {
        match event {
            AtmEvent::Incoming { conn, called, .. } => {
                let cause = match self.seat.is_told() {
                    false => Some(Cause::INCOMPATIBLE),
                    true if self.config.has_room(self.seat.conns().len()) => None,
                    true => Some(Cause::RESOURCES),
                };
                if let Some(cause) = cause {
                    self.counters.calls_refused += 1;
                    let request = AtmRequest::Release { conn, cause };
                    return self.out.push_back(Output::Atm(request));
                }
                let shortcut = called == self.config.data && called != self.config.control;
                self.seat.offered(conn, Conn::new(shortcut));
            }
            // All connections ended with the daemon. An SDU that was under way on such a connection is lost here.
            AtmEvent::Received { sdu, .. } if !self.seat.is_told() => return self.strays(sdu),
            _ if !self.seat.is_told() => return,
            AtmEvent::Up | AtmEvent::Down => {}
            AtmEvent::Connected { conn, .. } => {
                if !self.seat.connected(conn) {
                    self.counters.unexpected += 1;
                    return;
                }
            }
            AtmEvent::Released { conn, .. } => {
                if self.seat.released(conn).is_none() {
                    return;
                }
            }
            AtmEvent::PartyAdded { .. } | AtmEvent::PartyGone { .. } => {
                self.counters.unexpected += 1;
                return;
            }
            AtmEvent::Received { conn, sdu } => match self.seat.conn_mut(conn) {
                Some(known) if known.own.shortcut => {
                    known.own.received += 1;
                    return self.shortcut(sdu);
                }
                Some(_) => {}
                None => return self.strays(sdu),
            },
        }
        self.seat.tell_atm(event, now);
    }

    /// An SDU on a connection that the server does not know.
    fn strays(&mut self, sdu: &[u8]) {
        self.counters.unexpected += 1;
        self.discards.note(Discard::NoEntry, sdu);
    }

    /// An SDU of a shortcut that ends here: its packet goes to the router.
    fn shortcut(&mut self, sdu: &[u8]) {
        let packet = data::packet(sdu, &mut self.counters, &mut self.discards);
        if let Some(packet) = packet {
            self.out.push_back(Output::ForwardIp(packet.to_vec()));
        }
    }

    /// A packet that the router forwarded.
    fn routed(&mut self, itf: u32, packet: &[u8], now: Instant) {
        let counters = &mut self.counters;
        let flow = (self.flows).meets((itf, packet), &self.config, counters, now);
        if let Some((source, target)) = flow {
            let flow = ToMpsd::Flow {
                itf,
                source,
                target,
            };
            self.seat.tell(flow, now);
        }
    }

    /// An event of the daemon's process.
    fn process(
        &mut self,
        event: ProcessEvent<FromDaemon<FromMpsd>>,
        now: Instant,
    ) -> Result<(), Refused> {
        if self.seat.daemon().is_some() {
            return Err(Refused("the MPOA server runs in this process"));
        }
        match event {
            ProcessEvent::Came => {
                self.seat.came();
                self.begin(now);
            }
            ProcessEvent::Gone => {
                self.seat.gone();
                self.close_all();
                self.reports = Reports::default();
            }
            ProcessEvent::Said(message) => self.said(message, now),
        }
        Ok(())
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

    /// For tests: the server of a daemon in this process, and the flows.
    #[cfg(test)]
    pub(super) fn parts(&self) -> (Option<&super::Server>, &Flows) {
        let daemon = self.seat.daemon();
        (
            daemon.and_then(|daemon| daemon.server.as_ref()),
            &self.flows,
        )
    }
}

impl Machine for Mps {
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
                self.seat.tell(ToMpsd::Stop, now);
            }
            Input::Atm(event) => self.atm(event, now),
            Input::Process(event) => self.process(event, now)?,
            // The daemon does not serve: answers and changes are of no use.
            _ if !self.seat.is_told() => {}
            Input::Router(event) => self.told_by_router(event, now),
            Input::Routed { itf, packet } => self.routed(itf, packet, now),
        }
        self.drain(now);
        Ok(())
    }
    fn handle_timeout(&mut self, now: Instant) {
        self.flows.expire(now);
        self.seat.handle_timeout(now);
        self.drain(now);
    }
    fn poll_output(&mut self) -> Option<Output> {
        self.out.pop_front()
    }
    fn poll_timeout(&self) -> Option<Instant> {
        let flows = self.flows.deadline();
        self.seat.poll_timeout().into_iter().chain(flows).min()
    }
}

crate::atm_user!(Mps {
    fn take_discard(&mut self) -> Option<(Discard, Vec<u8>)> {
        self.take_discard()
    }
});
