//! An NHRP client without MPOA: a station that registers with its server and resolves addresses itself.
//!
//! **Purpose.** A station of a logical IP subnet sends packets for other subnets to its router. If that router is a
//! next hop server, the station requests the ATM address of the destination, or of the exit towards it, opens a
//! connection there and sends the packets over it. Such a shortcut bypasses all routers on the way.
//!
//! **Objects and owners.** The machine owns the *registration* of its station, the *entries* (by destination), and its
//! *connections*: one with the server, and one to each ATM address to which packets go, shared by all entries with that
//! address. It does not own the path over the router: packets without a shortcut come back as [`Output::Routed`], so no
//! packet waits here. Packets over shortcuts of others reach the station at [`Config::data`], which is not this
//! machine's address: for a member of a Classical IP subnet it is the member's own address.
//!
//! **States of an entry**: asking (a request is outstanding), known (with a connection or without one), refused (no
//! request for [`Params::hold_down`]). A binding that is used in the last two thirds of its holding time is requested
//! again when a third is left; the connection stays.
//!
//! **Registration** is repeated after a third of its holding time. No request is made before it is accepted. When the
//! machine stops in order, it purges its registration.
//!
//! **Timers**: requests ([`Config::retry`]), holding times, [`Config::idle`] of connections, [`Params::hold_down`].
//!
//! **Trust.** Only the configured server is accepted, and no other station may call [`Config::address`]. With
//! [`Config::keys`] its packets must be signed, and so must the purges of stations at the other ends of shortcuts;
//! Error Indications cannot be signed.
//!
//! **Standards**: RFC 2332 §5.1, §5.2 (client's side), §5.3.1–§5.3.4; RFC 2333 (its router is its server).
//!
//! **Networks.** With [`Params::prefix`] an answer may cover a network. The entry of the requested destination then
//! serves all destinations in the network that have no entry of their own, and a purge of any part of the network ends
//! it.
//!
//! **Not implemented**: several servers; anycast; more than
//! one binding for a destination at a time; answering Resolution Requests.
//!
//! **Deviations**: if a connection to an address from an authoritative answer fails, the destination is put under
//! hold-down before it is requested again.

mod control;
mod entries;
mod snapshot;
#[cfg(test)]
mod tests;

use core::convert::Infallible;
use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;

use aerostat_wire::llc::LlcSnap;
use aerostat_wire::{AtmAddress, Qos, Sap, Vc};

pub use entries::{Refusal, Unresolved};
pub use snapshot::{EntryRow, EntryState, NhcSnapshot};

use super::{Expired, RequestTable, RetryRule, Station, auth};
use crate::atm::within;
use crate::discard::{Discard, Discards};
use crate::retry::Backoff;
use crate::time::s;
use crate::vcc::{Call, VccTable};
use crate::{AtmEvent, AtmRequest, Cause, ConnId, Duration, Instant, Machine, Trace};
use entries::Entry;

/// Largest SDU on the connection with the server, octets.
const CONTROL_SDU: u16 = crate::mpoa::mps::MAX_SDU;
/// Least MTU of a link for IPv4, octets.
const LEAST_MTU: u16 = aerostat_wire::fragments::LEAST_MTU;
/// Limit of questions of other parts of the host that wait for answers.
const QUESTIONS: usize = 256;

crate::parameters! {
    /// Parameters of a client.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Params, ParamRanges {
        /// Holding time of its registration.
        ///
        /// In whole seconds. With less than a second the station does not register and only sends requests.
        holding: Duration = s(900), s(1)..=s(65_535);
        /// Accept authoritative answers only, not cached ones.
        ///
        /// Flag A of requests.
        authoritative: bool = true, false..=true;
        /// The widest network that an answer may cover, as prefix length (32: single addresses).
        ///
        /// Wider answers are narrowed to this length.
        prefix: u8 = 32, 8..=32;
        /// Pause before a refused destination is requested again.
        ///
        /// A refused registration is repeated after it, too. Above zero.
        hold_down: Duration = s(10), s(1)..=s(1200);
    }
}

impl Params {
    /// Holding time of the registration as a packet has it, s.
    fn holding_s(&self) -> u16 {
        self.holding.as_secs().try_into().unwrap_or(u16::MAX)
    }
}

crate::parameters! {
    /// Bounds.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Limits, LimitRanges {
        /// Destinations.
        entries: usize = 256, 1..=65_536;
        /// Connections.
        conns: usize = 256, 1..=65_536;
        /// NHRP packets that wait for the connection with the server.
        queue: usize = 16, 1..=65_536;
    }
}

/// Configuration of a client.
#[derive(Clone, Debug)]
pub struct Config {
    /// ATM address of this machine, for NHRP, and the calling address of its connections.
    pub address: AtmAddress,
    /// Registered ATM address, to which others send the station's packets.
    pub data: AtmAddress,
    /// IP address of the station.
    pub ip: Ipv4Addr,
    /// The server: IP and ATM address.
    pub server: (Ipv4Addr, AtmAddress),
    /// Largest IP packet that the station accepts, 68..=65527 octets.
    pub mtu: u16,
    /// Parameters.
    pub params: Params,
    /// Keys shared with the server, and with the stations at the other ends of shortcuts.
    pub keys: auth::Keys,
    /// Retries of requests.
    pub retry: RetryRule,
    /// Idle time after which a connection to a destination is released; zero means never.
    pub idle: Duration,
    /// Bounds.
    pub limits: Limits,
    /// First request id.
    pub first_request_id: u32,
}

impl Config {
    /// Defaults: 15 minutes of registration, authoritative answers, retries at 1, 3, 7 s and the end after 10 s.
    #[must_use]
    pub fn new(
        address: AtmAddress,
        data: AtmAddress,
        ip: Ipv4Addr,
        server: (Ipv4Addr, AtmAddress),
    ) -> Self {
        Self {
            address,
            data,
            ip,
            server,
            mtu: crate::clip::MTU,
            params: Params::DEFAULT,
            keys: auth::Keys {
                signs_as: ip,
                ..auth::Keys::default()
            },
            retry: RetryRule {
                initial: Duration::from_secs(1),
                retry_limit: Duration::from_secs(10),
                give_up: Duration::from_secs(10),
            },
            idle: Duration::from_secs(20 * 60),
            limits: Limits::default(),
            first_request_id: 1,
        }
    }
    /// Largest packet to a destination whose reply gives this MTU; 0 means the default. Every link takes IPv4 packets
    /// of [`LEAST_MTU`], whatever a reply says.
    fn largest(&self, mtu: u16) -> u16 {
        match mtu {
            0 => self.mtu,
            mtu => mtu.max(LEAST_MTU).min(self.mtu),
        }
    }
}

/// Inputs of a client.
#[derive(Clone, Debug)]
pub enum Input<'a> {
    /// Listen and register.
    Start,
    /// Purge the registration, release everything and stop.
    Stop,
    /// From the ATM service.
    Atm(AtmEvent<&'a [u8]>),
    /// An IP packet that would otherwise go to the router.
    Send {
        /// Its destination.
        destination: Ipv4Addr,
        /// The packet.
        packet: Vec<u8>,
    },
    /// Asks for the ATM address of a destination; [`Output::Resolved`] is the answer.
    Resolve {
        /// Copied to the answer.
        token: u64,
        /// The destination.
        destination: Ipv4Addr,
    },
}

/// Outputs of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// For the ATM service.
    Atm(AtmRequest),
    /// There is no shortcut: the router gets this packet.
    Routed(Vec<u8>),
    /// A packet that arrived on a connection opened here.
    Deliver(Vec<u8>),
    /// The answer to [`Input::Resolve`].
    Resolved {
        /// As asked.
        token: u64,
        /// The ATM address, or the reason why no address is known.
        answer: Result<AtmAddress, Unresolved>,
    },
    /// A trace event.
    Trace(Trace),
}

crate::counters! {
    /// Counters.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct Counters {
        /// Packets sent over shortcuts.
        pub by_shortcut: u64,
        /// Packets for the router.
        pub routed: u64,
        /// Packets received on connections opened here.
        pub received: u64,
        /// Registration Requests sent, including retries.
        pub registrations_sent: u64,
        /// Registration Replies received, by code.
        pub registration_replies: BTreeMap<u8, u64>,
        /// Resolution Requests sent, including retries.
        pub requests_sent: u64,
        /// Resolution Replies received, by code.
        pub replies: BTreeMap<u8, u64>,
        /// Requests without an answer.
        pub unanswered: u64,
        /// Purge Requests received.
        pub purges: u64,
        /// Error Indications received, by code.
        pub errors_received: BTreeMap<u16, u64>,
        /// Error Indications sent, by code.
        pub errors_sent: BTreeMap<u16, u64>,
        /// Calls to destinations made.
        pub calls: u64,
        /// Calls to destinations that failed.
        pub calls_failed: u64,
        /// Calls refused because they were not from the server.
        pub strangers: u64,
        /// SDUs that break the formats.
        pub malformed: u64,
        /// Well-formed packets without an outstanding request.
        pub unexpected: u64,
        /// How often a bound was met.
        pub limits_met: u64,
    }
}

/// An outstanding request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Registration,
    Resolution(Ipv4Addr),
}

/// Use of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Carries {
    /// NHRP packets, to and from the server.
    Control,
    /// Packets to a destination. The connection is idle if no packet was sent.
    Packets,
}

/// Length of the longest SDU that may be sent on a connection, octets.
#[derive(Clone, Copy, Debug)]
struct Longest(u16);

/// A connection that is gone, or was never opened.
type Gone = crate::vcc::Vcc<Carries, Longest>;

/// A client of NHRP.
#[derive(Debug)]
pub struct Nhc {
    config: Config,
    running: bool,
    /// End of the accepted registration.
    registered: Option<Instant>,
    /// When to register next.
    register_at: Option<Instant>,
    entries: BTreeMap<Ipv4Addr, Entry>,
    /// Questions of other parts of the host that wait, by destination; at most [`QUESTIONS`].
    questions: Vec<(Ipv4Addr, u64)>,
    /// The cause of the last call to the server, if it failed.
    refused_call: Option<Cause>,
    conns: VccTable<Carries, Longest>,
    requests: RequestTable<Asked>,
    /// When to call the server again for waiting packets after a failed call, and the waits so far.
    again_at: Option<Instant>,
    backoff: Backoff,
    counters: Counters,
    discards: Discards,
    out: VecDeque<Output>,
}

impl Nhc {
    /// A client that has not been started.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            requests: RequestTable::new(config.first_request_id, config.limits.entries + 1),
            again_at: None,
            backoff: Backoff::of(&config.address),
            config,
            running: false,
            registered: None,
            register_at: None,
            entries: BTreeMap::new(),
            questions: Vec::new(),
            refused_call: None,
            conns: VccTable::default(),
            counters: Counters::default(),
            discards: Discards::default(),
            out: VecDeque::new(),
        }
    }
    /// Sets the network prefix of its addresses, as learnt by ILMI. Call this only before the start.
    pub fn set_prefix(&mut self, prefix: [u8; 13]) {
        self.config.address = self.config.address.with_prefix(prefix);
        self.config.data = self.config.data.with_prefix(prefix);
    }
    /// The configuration.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }
    /// True while it is registered with its server, or if it does not register.
    #[must_use]
    pub fn is_registered(&self) -> bool {
        self.registered.is_some() || self.config.params.holding_s() == 0
    }
    /// The next packet that was dropped, with the reason.
    pub fn take_discard(&mut self) -> Option<(Discard, Vec<u8>)> {
        self.discards.take()
    }
    /// The counters.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The client's identity in extensions.
    fn station(&self) -> Station {
        Station {
            nbma: self.config.address,
            protocol: self.config.ip,
            protocol6: None,
            own: vec![self.config.ip.into()],
        }
    }

    fn start(&mut self, now: Instant) {
        if core::mem::replace(&mut self.running, true) {
            return;
        }
        self.request(AtmRequest::listen(self.config.address, Sap::LLC, u16::MAX));
        self.register(now);
    }

    fn stop(&mut self, now: Instant) {
        if !self.running {
            return;
        }
        self.deregister(now);
        self.running = false;
        for release in self.conns.release_all() {
            self.request(release);
        }
        for (_, token) in core::mem::take(&mut self.questions) {
            let answer = Err(Unresolved::Stopped);
            self.out.push_back(Output::Resolved { token, answer });
        }
        self.entries.clear();
        self.requests.clear();
        (self.registered, self.register_at, self.again_at) = (None, None, None);
        self.request(AtmRequest::Unlisten {
            address: self.config.address,
            sap: Sap::LLC,
        });
    }

    fn request(&mut self, request: AtmRequest) {
        self.out.push_back(Output::Atm(request));
    }
    fn trace(&mut self, trace: Trace) {
        self.out.push_back(Output::Trace(trace));
    }

    fn atm(&mut self, event: AtmEvent<&[u8]>, now: Instant) {
        match event {
            AtmEvent::Up if self.registered.is_none() => self.register(now),
            AtmEvent::Up | AtmEvent::Down => {}
            AtmEvent::Incoming {
                conn,
                calling,
                multipoint,
                qos,
                ..
            } => self.incoming((conn, &qos), calling.filter(|_| !multipoint), now),
            AtmEvent::Connected { conn, vc, qos } => {
                // The other end may take smaller SDUs than it was offered.
                if let Some(longest) = self.conns.info(conn).filter(|_| qos.tx.max_sdu > 0) {
                    longest.0 = longest.0.min(qos.tx.max_sdu);
                }
                self.connected(conn, vc, now);
            }
            AtmEvent::Released { conn, cause } => self.released(conn, cause, now),
            AtmEvent::Received { conn, sdu } => self.received(conn, sdu, now),
            AtmEvent::PartyAdded { .. } | AtmEvent::PartyGone { .. } => {
                self.counters.unexpected += 1;
            }
        }
    }

    /// Handles an incoming call: only the server may call.
    fn incoming(&mut self, (conn, qos): (ConnId, &Qos), calling: Option<AtmAddress>, now: Instant) {
        let server = self.config.server.1;
        let cause = match calling.filter(|calling| *calling == server) {
            None => {
                self.counters.strangers += 1;
                Cause::REJECTED
            }
            Some(_) if self.conns.len() >= self.config.limits.conns => {
                self.counters.limits_met += 1;
                Cause::RESOURCES
            }
            Some(peer) => {
                let terms = within(qos, CONTROL_SDU);
                let longest = Longest(terms.as_ref().unwrap_or(qos).tx.max_sdu);
                (self.conns).accept(conn, peer, Carries::Control, longest, now);
                return self.request(AtmRequest::Accept { conn, terms });
            }
        };
        self.request(AtmRequest::Release { conn, cause });
    }

    /// True if there is room for another connection.
    fn may_call(&self) -> bool {
        self.conns.len() < self.config.limits.conns
    }

    /// Makes a call for SDUs of up to `sdu` octets.
    fn call(&mut self, called: AtmAddress, carries: Carries, sdu: u16, now: Instant) -> ConnId {
        let call = Call {
            calling: self.config.address,
            called,
            sap: Sap::LLC,
            qos: Qos::ubr(sdu),
        };
        let (conn, connect) = self.conns.dial(call, carries, Longest(sdu), now);
        self.request(connect);
        conn
    }

    fn connected(&mut self, conn: ConnId, vc: Vc, now: Instant) {
        let Some((known, sends)) = self.conns.opened(conn, vc, now) else {
            return;
        };
        let (peer, carries) = (known.peer(), known.carries());
        for send in sends {
            self.request(send);
        }
        match carries {
            Carries::Control => {
                self.again_at = None;
                self.backoff.reset();
            }
            Carries::Packets => {
                self.conns.idle_after(conn, self.config.idle);
                self.way_opened(conn, peer);
            }
        }
    }

    fn released(&mut self, conn: ConnId, cause: Cause, now: Instant) {
        let Some(gone) = self.conns.remove(conn) else {
            return;
        };
        if gone.carries() == Carries::Packets {
            return self.way_lost(conn, &gone, cause, now);
        }
        // Packets for the server are repeated by their retries. If the server may just be starting, the call is
        // repeated before that.
        self.conns.forget((gone.peer(), Carries::Control));
        self.refused_call = (!gone.is_open()).then_some(cause);
        if !gone.is_open() && cause.is_temporary() {
            let most = self.config.retry.initial;
            let wait = self.backoff.wait(Some(cause), Duration::ZERO, most);
            self.again_at = Some(now + wait);
        }
    }

    fn send_again(&mut self, id: u32, now: Instant) {
        match self.requests.get(id).copied() {
            Some(Asked::Registration) => self.send_registration(id, now),
            Some(Asked::Resolution(destination)) => self.send_request(id, destination, now),
            None => {}
        }
    }

    fn received(&mut self, conn: ConnId, sdu: &[u8], now: Instant) {
        let Some(known) = self.conns.get(conn) else {
            return;
        };
        if known.carries() == Carries::Control {
            return self.control_sdu(sdu, now);
        }
        match LlcSnap::decode(sdu) {
            Ok((LlcSnap::Ipv4, packet)) => {
                self.counters.received += 1;
                self.out.push_back(Output::Deliver(packet.to_vec()));
            }
            // A member of Classical IP sends InATMARP to every caller.
            Ok((LlcSnap::Arp, _)) => {}
            Ok((LlcSnap::Nhrp, _)) => self.purge_on_way(conn, sdu, now),
            _ => {
                self.counters.malformed += 1;
                self.discards.note(Discard::Malformed, sdu);
            }
        }
    }

    fn timeouts(&mut self, now: Instant) {
        if !self.running {
            return;
        }
        if self.registered.is_some_and(|until| until <= now) {
            self.registered = None;
            self.trace(Trace::milestone("nhc.expired", "the registration is over"));
        }
        if self.register_at.is_some_and(|at| at <= now) {
            self.register(now);
        }
        self.entries_due(now);
        self.conns_due(now);
        if self.again_at.is_some_and(|at| at <= now) {
            self.again_at = None;
            let ids: Vec<u32> = self.requests.iter().map(|request| request.id).collect();
            for id in ids.into_iter().take(self.config.limits.queue) {
                self.send_again(id, now);
            }
        }
        while let Some(expired) = self.requests.expire(now) {
            match expired {
                Expired::Retry(id) => self.send_again(id, now),
                Expired::GivenUp(_, asked) => self.unanswered(asked, now),
            }
        }
    }
}

impl Machine for Nhc {
    type Input<'a> = Input<'a>;
    type Output = Output;
    type Refusal = Infallible;

    fn handle_input(&mut self, input: Input<'_>, now: Instant) -> Result<(), Infallible> {
        match input {
            Input::Start => self.start(now),
            Input::Stop => self.stop(now),
            Input::Send {
                destination,
                packet,
            } => self.send(destination, packet, now),
            Input::Resolve { token, destination } => self.question(token, destination, now),
            // Calls that were in progress at the stop may still report.
            Input::Atm(event) if self.running => self.atm(event, now),
            Input::Atm(_) => {}
        }
        Ok(())
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.timeouts(now);
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.out.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        if !self.running {
            return None;
        }
        let own = [
            self.registered,
            self.register_at,
            self.again_at,
            self.requests.deadline(),
            self.conns.next(),
        ];
        let entries = self.entries.values().filter_map(Entry::due);
        own.into_iter().flatten().chain(entries).min()
    }
}

crate::atm_user!(Nhc {
    fn take_discard(&mut self) -> Option<(Discard, Vec<u8>)> {
        self.take_discard()
    }
});
