//! The data half: the SDUs of one interface, its results, and the seat of its daemon.
//!
//! **States** (`Presence`). While there is no daemon, results stay as they are: the address of a host, the LECS, the
//! registered addresses of a port. They end when the line goes down, or when the next daemon withdraws them.

use super::split::{FromIlmid, MANAGEMENT, PVCS, Start, ToIlmid};
use super::{Config, Counters, Event, Peer, Prefix, Pvc, Side, Snapshot, State};
use crate::split::{FromDaemon, ProcessEvent, Seat, ToDaemon};
use crate::{AtmEvent, AtmRequest, Instant, Machine, Refused, Trace};
use aerostat_wire::q2931::Version;
use aerostat_wire::{AtmAddress, MacAddr};
use std::collections::{BTreeMap, VecDeque};

use super::daemon::Ilmid;

/// A message from a daemon in a process of its own, or an event of this process.
pub type DaemonEvent = ProcessEvent<FromDaemon<FromIlmid>>;

/// Presence of a daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Presence {
    /// The daemon was told to start, and has not answered: its messages belong to an earlier start.
    Starts,
    /// The daemon serves.
    Serves,
    /// No daemon serves: it has not started, or has ended.
    Gone,
}

crate::counters! {
    /// Counters of the boundary between the two halves.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct DaemonCounters {
        /// Daemons that started in a process of their own.
        pub started: u64,
        /// Daemons that ended, including daemons that began anew.
        pub ended: u64,
        /// SDUs of the other side that arrived while there was no daemon.
        pub unread: u64,
        /// Messages of an earlier start, or about a line that is down.
        pub stale: u64,
        /// Messages that a daemon must not send.
        pub refused: u64,
    }
}

/// Inputs of a [`Channel`].
#[derive(Clone, Debug)]
pub enum ChannelInput<'a> {
    /// The line is up, or is down: then all results end.
    Line(bool),
    /// One SDU of VPI 0 VCI 16.
    Sdu(&'a [u8]),
    /// The answer to [`ChannelOutput::Claim`]. If the claim is granted, the addresses are registered from now on.
    Claimed {
        /// The number of the claim.
        claim: u32,
        /// The index of the first address that cannot be registered here; `None` if all can.
        refused: Option<u16>,
    },
    /// Network side: sets the prefixes to offer.
    SetPrefixes(Vec<Prefix>),
    /// User side: sets the end system identifiers to register. Addresses with another one are no longer usable.
    SetEsis(Vec<MacAddr>),
    /// Sets the permanent connections of the interface.
    SetPvcs(Vec<Pvc>),
    /// From a daemon in a process of its own.
    Daemon(DaemonEvent),
}

/// Outputs of a [`Channel`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChannelOutput {
    /// Send this SDU on VPI 0 VCI 16.
    Send(Vec<u8>),
    /// Network side: can these addresses (selector 0) be registered here, all or none? [`ChannelInput::Claimed`] is the
    /// answer, before any other input.
    Claim {
        /// The number of the claim.
        claim: u32,
        /// The addresses.
        addresses: Vec<AtmAddress>,
    },
    /// A result.
    Event(Event),
    /// A trace event.
    Trace(Trace),
    /// For a daemon in a process of its own.
    Daemon(ToDaemon<ToIlmid>),
}

/// The data half of ILMI at one interface, with the control half in a seat.
#[derive(Debug)]
pub struct Channel {
    pub(super) config: Config,
    seat: Seat<Ilmid, ()>,
    presence: Presence,
    /// Number of the daemon's last start.
    life: u32,
    /// True if the line is up.
    line: bool,
    /// True once the other side has answered.
    up: bool,
    /// Addresses registered (network side), or accepted (user side), in this order.
    addresses: Vec<AtmAddress>,
    /// User side: LECSs that the network names; `None` until they have been requested.
    services: Option<Vec<AtmAddress>>,
    /// Claims that the owner has not answered yet.
    claims: BTreeMap<u32, Vec<AtmAddress>>,
    /// The state, as a daemon in a process of its own has reported it.
    shown: Snapshot,
    out: VecDeque<ChannelOutput>,
    counters: DaemonCounters,
}

impl Channel {
    /// A channel whose control half is in this process.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let mut new = Self::with(config, Seat::here());
        new.start_daemon(Instant::ZERO);
        new.drain(Instant::ZERO);
        new
    }
    /// A channel whose control half is in a process of its own, which has not started yet.
    #[must_use]
    pub fn split(config: Config) -> Self {
        Self::with(config, Seat::elsewhere())
    }
    fn with(config: Config, seat: Seat<Ilmid, ()>) -> Self {
        Self {
            shown: nothing(&config),
            config,
            seat,
            presence: Presence::Gone,
            life: 0,
            line: false,
            up: false,
            addresses: Vec::new(),
            services: None,
            claims: BTreeMap::new(),
            out: VecDeque::new(),
            counters: DaemonCounters::default(),
        }
    }

    /// Addresses that the host has registered (network side), or that this end can use (user side), in the order of
    /// acceptance.
    #[must_use]
    pub fn addresses(&self) -> &[AtmAddress] {
        &self.addresses
    }
    /// User side: LECSs that the network names; `None` until they have been requested.
    #[must_use]
    pub fn services(&self) -> Option<&[AtmAddress]> {
        self.services.as_deref()
    }
    /// Counters of the boundary between the two halves.
    #[must_use]
    pub const fn daemon_counters(&self) -> DaemonCounters {
        self.counters
    }
    /// True if the daemon is a process of its own.
    #[must_use]
    pub const fn is_split(&self) -> bool {
        self.seat.daemon().is_none()
    }
    /// A snapshot.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let here = self.seat.daemon().and_then(Ilmid::ime);
        let mut seen = here.map_or_else(|| self.shown.clone(), super::Ime::snapshot);
        if here.is_none() {
            let named = match self.config.side {
                Side::Network => Some(&self.config.lecs),
                Side::User => self.services.as_ref(),
            };
            seen.services = named.cloned().unwrap_or_default();
        }
        seen.addresses.clone_from(&self.addresses);
        seen.addresses.sort_unstable();
        seen
    }

    // ---- the daemon ----

    fn daemon_event(&mut self, event: DaemonEvent, now: Instant) -> Result<(), Refused> {
        if !self.is_split() {
            return Err(Refused("the ILMI daemon is no process of its own"));
        }
        match event {
            ProcessEvent::Came => {
                self.daemon_left("was replaced");
                self.seat.came();
                self.counters.started += 1;
                self.start_daemon(now);
            }
            ProcessEvent::Gone => {
                self.daemon_left("is gone");
                self.seat.gone();
            }
            ProcessEvent::Said(message) => self.daemon_said(message, now),
        }
        Ok(())
    }

    /// Tells a daemon to start, with what its predecessor has left.
    fn start_daemon(&mut self, now: Instant) {
        self.life = self.life.wrapping_add(1);
        self.presence = Presence::Starts;
        self.seat.begin_anew();
        let left = self.up || !self.addresses.is_empty();
        let start = Start {
            life: self.life,
            config: Config {
                pvcs: Vec::new(),
                ..self.config.clone()
            },
            former: left.then(|| self.addresses.clone()),
        };
        self.seat.tell(ToIlmid::Start(Box::new(start)), now);
        self.tell_pvcs(now);
        if self.line {
            self.seat.tell_atm(AtmEvent::Up, now);
        }
    }

    fn tell_pvcs(&mut self, now: Instant) {
        let mut rest = self.config.pvcs.as_slice();
        loop {
            let (part, further) = rest.split_at(rest.len().min(PVCS));
            rest = further;
            let (pvcs, more) = (part.to_vec(), !rest.is_empty());
            self.seat.tell(ToIlmid::Pvcs { pvcs, more }, now);
            if !more {
                return;
            }
        }
    }

    /// There is no daemon any more: the results stay.
    fn daemon_left(&mut self, how: &str) {
        if core::mem::replace(&mut self.presence, Presence::Gone) == Presence::Gone {
            return;
        }
        self.counters.ended += 1;
        self.claims.clear();
        self.shown = nothing(&self.config);
        let count = self.addresses.len();
        if count > 0 {
            let text = format!("the ILMI daemon {how}; addresses that stay as they are: {count}");
            let trace = Trace::milestone("ilmi.gone", text);
            self.trace(trace.with("addresses", count));
        }
    }

    fn daemon_said(&mut self, message: FromDaemon<FromIlmid>, now: Instant) {
        match message {
            FromDaemon::Atm(request) => self.daemon_sends(request),
            FromDaemon::Trace(trace) => self.trace(trace),
            FromDaemon::Message(FromIlmid::Begun { life }) => {
                if life == self.life && self.presence == Presence::Starts {
                    self.presence = Presence::Serves;
                }
            }
            FromDaemon::Message(message) if self.presence == Presence::Serves => {
                self.message(message, now);
            }
            FromDaemon::Message(_) => self.counters.stale += 1,
            // The end of its process is reported, too.
            FromDaemon::Ended(_) => {}
        }
    }

    /// The only request of the daemon to the ATM service: an SDU for VPI 0 VCI 16.
    fn daemon_sends(&mut self, request: AtmRequest) {
        match request {
            AtmRequest::Send {
                conn: MANAGEMENT,
                sdu,
            } if !sdu.is_empty() && sdu.len() <= usize::from(u16::MAX) => match self.presence {
                Presence::Serves => self.out.push_back(ChannelOutput::Send(sdu)),
                Presence::Starts | Presence::Gone => self.counters.stale += 1,
            },
            _ => self.counters.refused += 1,
        }
    }

    /// A message of a daemon that serves.
    fn message(&mut self, message: FromIlmid, now: Instant) {
        let user = self.config.side == Side::User;
        match message {
            // Handled by the caller.
            FromIlmid::Begun { .. } => {}
            FromIlmid::Shown(seen) => self.shown = *seen,
            FromIlmid::Again => {
                self.daemon_left("begins anew");
                self.counters.started += 1;
                self.start_daemon(now);
            }
            FromIlmid::Down => self.down(),
            FromIlmid::Withdrawn(address)
            | FromIlmid::Address {
                address,
                usable: false,
            } => self.forget(address),
            // The daemon has not heard of the end of the line yet, which has ended all results.
            _ if !self.line => self.counters.stale += 1,
            FromIlmid::Up { version } if version <= self.config.version => self.is_up(version),
            FromIlmid::Link(link) if self.config.detect => self.event(Event::Link(link)),
            FromIlmid::Claim { claim, addresses } if !user => self.claim(claim, addresses, now),
            FromIlmid::Address { address, .. } if user && self.is_own(address) => {
                self.keep(address);
            }
            FromIlmid::Services(services)
                if user && services.len() <= self.config.limits.services =>
            {
                self.services = Some(services.clone());
                self.event(Event::Services(services));
            }
            FromIlmid::Up { .. }
            | FromIlmid::Link(_)
            | FromIlmid::Claim { .. }
            | FromIlmid::Address { .. }
            | FromIlmid::Services(_) => self.counters.refused += 1,
        }
    }

    /// Passes on what the daemon in this process says, and what is for another process.
    fn drain(&mut self, now: Instant) {
        while let Some(message) = self.seat.poll() {
            self.daemon_said(message, now);
        }
        while let Some(message) = self.seat.poll_message() {
            self.out.push_back(ChannelOutput::Daemon(message));
        }
    }

    // ---- the results ----

    fn event(&mut self, event: Event) {
        self.out.push_back(ChannelOutput::Event(event));
    }
    fn trace(&mut self, trace: Trace) {
        self.out.push_back(ChannelOutput::Trace(trace));
    }
    fn is_up(&mut self, version: Version) {
        self.up = true;
        self.event(Event::Up { version });
    }
    fn down(&mut self) {
        self.services = None;
        if core::mem::take(&mut self.up) {
            self.event(Event::Down);
        }
    }
    /// The event of an address of this end.
    const fn of(&self, address: AtmAddress, there: bool) -> Event {
        match self.config.side {
            Side::Network => Event::Registered(address, there),
            Side::User => Event::Address(address, there),
        }
    }
    /// User side: the end system identifiers that are registered.
    #[must_use]
    pub fn esis(&self) -> &[MacAddr] {
        &self.config.esis
    }
    fn keep(&mut self, address: AtmAddress) {
        if !self.addresses.contains(&address) {
            self.addresses.push(address);
            self.event(self.of(address, true));
        }
    }
    fn forget(&mut self, address: AtmAddress) {
        if let Some(at) = self.addresses.iter().position(|known| *known == address) {
            self.addresses.remove(at);
            self.event(self.of(address, false));
        }
    }
    /// User side: true for an address with an identifier of this system, if there is room for it.
    fn is_own(&self, address: AtmAddress) -> bool {
        let own = self.config.esis.contains(&address.esi()) && address.selector() == 0;
        own && self.has_room(&[address])
    }
    fn has_room(&self, addresses: &[AtmAddress]) -> bool {
        let fresh = addresses.iter().filter(|new| !self.addresses.contains(new));
        self.addresses.len() + fresh.count() <= self.config.limits.addresses
    }

    /// The host wants to register addresses: asks the owner, if the daemon may claim them.
    fn claim(&mut self, claim: u32, addresses: Vec<AtmAddress>, now: Instant) {
        let good = |address: &AtmAddress| {
            let esi = address.esi();
            let offered = self.config.prefixes.contains(&address.prefix());
            offered && address.selector() == 0 && !esi.is_group() && esi.0 != [0; 6]
        };
        let good = !addresses.is_empty() && addresses.iter().all(good);
        if !good || !self.has_room(&addresses) || self.claims.contains_key(&claim) {
            self.counters.refused += 1;
            let refused = Some(0);
            return self.seat.tell(ToIlmid::Claimed { claim, refused }, now);
        }
        self.claims.insert(claim, addresses.clone());
        self.out
            .push_back(ChannelOutput::Claim { claim, addresses });
    }

    fn claimed(&mut self, claim: u32, refused: Option<u16>, now: Instant) -> Result<(), Refused> {
        let Some(addresses) = self.claims.remove(&claim) else {
            return Err(Refused("no such claim"));
        };
        if refused.is_none() {
            addresses.into_iter().for_each(|address| self.keep(address));
        }
        self.seat.tell(ToIlmid::Claimed { claim, refused }, now);
        Ok(())
    }

    fn set_line(&mut self, up: bool, now: Instant) {
        self.line = up;
        if !up {
            self.claims.clear();
            for address in self.addresses.clone() {
                self.forget(address);
            }
            self.down();
        }
        let line = if up { AtmEvent::Up } else { AtmEvent::Down };
        self.seat.tell_atm(line, now);
    }
}

/// The state without a daemon.
fn nothing(config: &Config) -> Snapshot {
    Snapshot {
        side: config.side,
        state: State::Stopped,
        peer: Peer::default(),
        version: None,
        link: None,
        prefixes: Vec::new(),
        addresses: Vec::new(),
        services: Vec::new(),
        counters: Counters::default(),
    }
}

impl Machine for Channel {
    type Input<'a> = ChannelInput<'a>;
    type Output = ChannelOutput;
    type Refusal = Refused;

    fn handle_input(&mut self, input: ChannelInput<'_>, now: Instant) -> Result<(), Refused> {
        let done = match input {
            ChannelInput::Line(up) => {
                self.set_line(up, now);
                Ok(())
            }
            ChannelInput::Sdu(sdu) => {
                if self.presence == Presence::Gone {
                    self.counters.unread += 1;
                }
                let conn = MANAGEMENT;
                self.seat.tell_atm(AtmEvent::Received { conn, sdu }, now);
                Ok(())
            }
            ChannelInput::Claimed { claim, refused } => self.claimed(claim, refused, now),
            ChannelInput::SetPrefixes(prefixes) => {
                self.config.prefixes.clone_from(&prefixes);
                self.seat.tell(ToIlmid::Prefixes(prefixes), now);
                Ok(())
            }
            ChannelInput::SetEsis(esis) => {
                let gone = self.addresses.iter().copied();
                let gone: Vec<_> = gone.filter(|a| !esis.contains(&a.esi())).collect();
                self.config.esis.clone_from(&esis);
                gone.into_iter().for_each(|address| self.forget(address));
                self.seat.tell(ToIlmid::Esis(esis), now);
                Ok(())
            }
            ChannelInput::SetPvcs(pvcs) => {
                if self.config.pvcs != pvcs {
                    self.config.pvcs = pvcs;
                    self.tell_pvcs(now);
                }
                Ok(())
            }
            ChannelInput::Daemon(event) => self.daemon_event(event, now),
        };
        self.drain(now);
        done
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.seat.handle_timeout(now);
        self.drain(now);
    }

    fn poll_output(&mut self) -> Option<ChannelOutput> {
        self.out.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.seat.poll_timeout()
    }
}
