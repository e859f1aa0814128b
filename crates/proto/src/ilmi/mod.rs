//! Integrated Local Management Interface: the two ends of a link identify each other, and the host gets its address.
//!
//! **Purpose.** A host knows only its end system identifier (ESI). The switch tells it the network prefix of the port;
//! the host registers prefix and ESI as its address; from then on calls for that address come to this port. Both ends
//! learn each other's UNI version and notice when the peer disappears, is replaced, or restarts. The switch's service
//! registry tells hosts where the LECS is.
//!
//! **Objects and owners.** An [`Ime`] (interface management entity) is one end of one link, of the network or of the
//! user side. It owns the agent's objects (`agent.rs`: what the other side may read and set) and the manager's jobs
//! (`manager.rs`: what this side asks of the other, one request at a time). The switch owns the resulting routes, so
//! the switch decides about each address that a host wants to register ([`Output::Claim`]).
//!
//! **Two halves.** The entity is the inside of a daemon, [`Ilmid`]: the control half, which reads the messages of the
//! other side. A host, and each port of a switch, owns the data half, a [`Channel`]: it carries the SDUs of VPI 0
//! VCI 16, and keeps the results. The two halves exchange only typed messages ([`split`]), in one process or through a
//! socket. The data half keeps the results while there is no daemon, and the entity of the next daemon withdraws what
//! the other side does not confirm (`former.rs`).
//!
//! **Which end is the network side** follows from the device types of both ends ([`Link`]). A switch that is not
//! configured for a certain kind of peer sets [`Config::detect`]: addresses are registered if the peer is a host, but
//! not towards a switch.
//!
//! **States** ([`State`]): stopped; establishing (the other side's attachment point is requested until there is an
//! answer); configuring (its versions are read); registering (network side: prefixes are set; user side: the service
//! registry is read); verifying (the attachment point is polled; registrations come and go). When the peer is lost,
//! changes or restarts, the state returns to establishing, and all registrations are forgotten.
//!
//! **Timers** ([`Params`]): a request without an answer is repeated. Four polls without an answer mean that the peer is
//! lost. While establishing, requests are repeated for ever.
//!
//! **A cold start** trap is sent once after a local start or a loss, and never in answer to a cold start, because two
//! ends that do that would never stop (Debian's `ilmid` does it). In both cases `sysUpTime` restarts, so a peer that
//! misses the trap still notices.
//!
//! **Permanent connections** of the interface, which the owner gives ([`Config::pvcs`]), can be read in the tables of
//! VPCs and VCCs; changes are reported by traps.
//!
//! **Bounds**: prefixes, addresses, services and jobs ([`Limits`]), and messages that wait for a decision about a
//! registration; excess is refused and counted.
//!
//! **Standards**: ATM Forum af-ilmi-0065.000 (ILMI 4.0), with what UNI 3.1 clause 4 says of the same objects.
//! Messages: [`aerostat_wire::ilmi`].
//!
//! **Not implemented**: ABR parameters and statistics; group addresses; several ports behind one channel. The other
//! side's permanent connections are not read.
//!
//! **Deviations**: a rule of our own decides which of two switches has the network side ([`Link`]). The numeric values
//! of the timers are those of linux-atm and of vendors' manuals, because the standard's text was not available.

mod agent;
mod channel;
mod codec;
mod daemon;
mod former;
mod link;
mod manager;
mod pvc;
pub mod split;
#[cfg(test)]
mod tests;

pub use channel::{Channel, ChannelInput, ChannelOutput, DaemonCounters, DaemonEvent};
pub use daemon::Ilmid;
pub use link::{Link, NniSignalling};
pub use pvc::{Pvc, PvcStatus};

use crate::{Duration, Instant, Machine, Trace};
use aerostat_wire::ilmi::{Message, Oid, Pdu, Trap, Value};
use aerostat_wire::q2931::Version;
use aerostat_wire::{AtmAddress, MacAddr};
use agent::Claiming;
use core::convert::Infallible;
use former::Former;
use manager::{Job, Pending};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The kind of end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// A switch.
    Network,
    /// A host.
    User,
}

/// A network prefix: the first 13 octets of addresses.
pub type Prefix = [u8; 13];

crate::split_record! {
    /// Timers. Source: af-ilmi-0065.000 clause 8.3 (T, and K of the polls); the response time is the one of linux-atm.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Params {
        /// How long a response may take before the request is repeated.
        pub response: Duration,
        /// Number of attempts before the peer counts as lost, except while establishing.
        pub tries: u32,
        /// T: interval between polls of the attachment point.
        pub poll: Duration,
    }
}

impl Default for Params {
    fn default() -> Self {
        Self {
            response: Duration::from_secs(2),
            tries: 4,
            poll: Duration::from_secs(5),
        }
    }
}

crate::split_record! {
    /// Bounds on what the other side can make this end store.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Limits {
        /// Prefixes.
        pub prefixes: usize,
        /// Addresses.
        pub addresses: usize,
        /// Addresses of LECSs.
        pub services: usize,
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            prefixes: 8,
            addresses: 64,
            services: 8,
        }
    }
}

crate::split_record! {
    /// Configuration of an IME.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Config {
        /// The kind of this end.
        pub side: Side,
        /// Identifier of the whole system: a MAC address of its own.
        pub system: MacAddr,
        /// `atmfPortMyIfName`.
        pub name: String,
        /// `atmfPortMyIfIdentifier`: number of the port in the system.
        pub number: i32,
        /// The highest UNI version that this side speaks.
        pub version: Version,
        /// Network side: prefixes to offer.
        pub prefixes: Vec<Prefix>,
        /// Network side: addresses of LECSs for the service registry.
        pub lecs: Vec<AtmAddress>,
        /// User side: end system identifiers to register under each prefix.
        pub esis: Vec<MacAddr>,
        /// True if the kind of the other end is unknown: [`Event::Link`] reports it, and addresses are used only
        /// between a host and a switch. `side` tells whether this end is a switch or a host.
        pub detect: bool,
        /// Signalling of this end towards a switch, if this end is a switch.
        pub nni: NniSignalling,
        /// Permanent connections of the interface.
        pub pvcs: Vec<Pvc>,
        /// Rate of the line, cells/s: peak rate of permanent connections without a peak rate.
        pub line_rate: u32,
        /// Timers.
        pub params: Params,
        /// Bounds.
        pub limits: Limits,
    }
}

impl Config {
    /// One end of a link, which does not offer or register anything yet.
    #[must_use]
    pub fn new(side: Side, system: MacAddr, version: Version) -> Self {
        Self {
            side,
            system,
            name: String::from("atm0"),
            number: 1,
            version,
            prefixes: Vec::new(),
            lecs: Vec::new(),
            esis: Vec::new(),
            detect: false,
            nni: match side {
                Side::Network => NniSignalling::Iisp,
                Side::User => NniSignalling::None,
            },
            pvcs: Vec::new(),
            // 155.52 Mbit/s.
            line_rate: 353_207,
            params: Params::default(),
            limits: Limits::default(),
        }
    }
}

/// Inputs of an IME.
#[derive(Clone, Debug)]
pub enum Input<'a> {
    /// The line is up, or this side starts.
    Start,
    /// The line is dead: all registrations are forgotten.
    Stop,
    /// One SDU of VPI 0 VCI 16.
    Message {
        /// The SDU.
        sdu: &'a [u8],
    },
    /// The owner's answer to [`Output::Claim`]. An answer to an old claim changes nothing.
    Claimed {
        /// The number of the claim.
        claim: u32,
        /// The index of the first address that cannot be registered here, and so all are refused; `None` if all are
        /// granted.
        refused: Option<u16>,
    },
    /// Network side: sets the prefixes to offer. A user side ignores this input and reports so in the trace.
    SetPrefixes(Vec<Prefix>),
    /// User side: sets the end system identifiers to register under each prefix. What is no longer among them is
    /// withdrawn. A network side ignores this input.
    SetEsis(Vec<MacAddr>),
    /// Sets the permanent connections of the interface.
    SetPvcs(Vec<Pvc>),
}

/// Events of an IME for its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The other side has answered.
    Up {
        /// The lower of both sides' UNI versions; this end's own version if the other side gives none.
        version: Version,
    },
    /// The kind of link, before `Up`, if [`Config::detect`] is set.
    Link(Link),
    /// The other side was lost or replaced, or has restarted.
    Down,
    /// Network side: the host has registered this address (true) after a granted claim, or has withdrawn it (false).
    Registered(AtmAddress, bool),
    /// User side: this address can be used (true), or can no longer be used (false).
    Address(AtmAddress, bool),
    /// User side: the LECSs that the network names.
    Services(Vec<AtmAddress>),
}

/// Outputs of an IME.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send this SDU on VPI 0 VCI 16.
    Send(Vec<u8>),
    /// Network side: the host wants to register these addresses (selector 0), all or none. The host gets its response
    /// after [`Input::Claimed`].
    Claim {
        /// The number of the claim.
        claim: u32,
        /// The addresses.
        addresses: Vec<AtmAddress>,
    },
    /// For the owner.
    Event(Event),
    /// A trace event.
    Trace(Trace),
}

aerostat_wire::named! {
    /// State of an IME.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum State {
        /// Not started, or the line is dead.
        Stopped = "stopped",
        /// The other side has not answered yet.
        Establishing = "establishing",
        /// The other side's versions are being read.
        Configuring = "configuring",
        /// Prefixes are being set, or services read.
        Registering = "registering",
        /// The other side is being polled.
        Verifying = "verifying",
    }
}

crate::split_record! {
    /// Properties of the other side; `None` for objects that it does not support.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct Peer {
        /// Number of its port.
        pub number: Option<i32>,
        /// Name of its port.
        pub name: Option<Vec<u8>>,
        /// Identifier of its system.
        pub system: Option<Vec<u8>>,
        /// When it started, in hundredths of a second before now.
        pub up_time: Option<u32>,
        /// The highest UNI version that it speaks.
        pub version: Option<Version>,
        /// Device type: 1 is a host, 2 a switch.
        pub device: Option<i32>,
        /// Bits of its VPIs.
        pub vpi_bits: Option<i32>,
        /// Bits of its VCIs.
        pub vci_bits: Option<i32>,
        /// Signalling towards switches: 1 means none, 2 IISP, 3 PNNI.
        pub nni: Option<i32>,
        /// False if it tells that it does not register addresses.
        pub registers: Option<bool>,
    }
}

crate::counters! {
    /// Counters.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Counters {
        /// Messages received.
        pub received: u64,
        /// Messages sent.
        pub sent: u64,
        /// SDUs that are not ILMI messages.
        pub bad: u64,
        /// Responses without an outstanding request.
        pub unasked: u64,
        /// Requests that got no response in time.
        pub timeouts: u64,
        /// Requests of the other side that were answered with an error.
        pub errors_sent: u64,
        /// Errors that the other side answered.
        pub errors_received: u64,
        /// Cold starts of the other side.
        pub cold_starts: u64,
        /// How often the other side was lost after it had answered.
        pub losses: u64,
        /// Registrations refused: a bound was met.
        pub full: u64,
        /// Messages that were dropped because too many waited for the decision about a registration.
        pub unread: u64,
    }
}

crate::split_record! {
    /// The state of an IME.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Snapshot {
        /// The kind of this end.
        pub side: Side,
        /// State.
        pub state: State,
        /// The other side.
        pub peer: Peer,
        /// UNI version in use, once both versions are known.
        pub version: Option<Version>,
        /// The kind of link, once both ends are known.
        pub link: Option<Link>,
        /// Prefixes set (network side) or assigned (user side).
        pub prefixes: Vec<Prefix>,
        /// Addresses registered.
        pub addresses: Vec<AtmAddress>,
        /// LECSs offered (network side) or found (user side).
        pub services: Vec<AtmAddress>,
        /// Counters.
        pub counters: Counters,
    }
}

/// One end of a link.
#[derive(Debug)]
pub struct Ime {
    config: Config,
    state: State,
    started: Instant,
    peer: Peer,
    version: Option<Version>,
    link: Option<Link>,
    /// Objects of the permanent connections.
    pvc_rows: BTreeMap<Oid, Value>,
    /// Network side: prefixes that were sent to the host. User side: prefixes that were assigned.
    prefixes: BTreeSet<Prefix>,
    /// Addresses with selector 0; true once the registration has been accepted.
    addresses: BTreeMap<AtmAddress, bool>,
    /// Network side: organizational scopes that the host has set for its addresses.
    scopes: BTreeMap<AtmAddress, i32>,
    services: Vec<AtmAddress>,
    jobs: VecDeque<Job>,
    pending: Option<Pending>,
    poll_at: Option<Instant>,
    next_id: i32,
    /// A registration that the owner has not decided yet, and the messages that wait for it.
    claiming: Option<Claiming>,
    waiting: VecDeque<Vec<u8>>,
    next_claim: u32,
    /// Results of a former daemon.
    former: Option<Former>,
    counters: Counters,
    out: VecDeque<Output>,
}

impl Ime {
    /// An end that has not been started.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            pvc_rows: Self::pvc_objects(&config.pvcs, config.line_rate),
            config,
            state: State::Stopped,
            started: Instant::ZERO,
            peer: Peer::default(),
            version: None,
            link: None,
            prefixes: BTreeSet::new(),
            addresses: BTreeMap::new(),
            scopes: BTreeMap::new(),
            services: Vec::new(),
            jobs: VecDeque::new(),
            pending: None,
            poll_at: None,
            next_id: 0,
            claiming: None,
            waiting: VecDeque::new(),
            next_claim: 0,
            former: None,
            counters: Counters::default(),
            out: VecDeque::new(),
        }
    }
    /// The state.
    #[must_use]
    pub const fn state(&self) -> State {
        self.state
    }
    /// A snapshot.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let network = self.config.side == Side::Network;
        let addresses = self.addresses.iter().filter(|(_, accepted)| **accepted);
        Snapshot {
            side: self.config.side,
            state: self.state,
            peer: self.peer.clone(),
            version: self.version,
            link: self.link,
            prefixes: self.prefixes.iter().copied().collect(),
            addresses: addresses.map(|(address, _)| *address).collect(),
            services: if network {
                self.config.lecs.clone()
            } else {
                self.services.clone()
            },
            counters: self.counters,
        }
    }

    fn start(&mut self, now: Instant) {
        if self.state != State::Stopped {
            return;
        }
        self.started = now;
        self.succeed(now);
        self.cold_start(now);
        self.establish(now);
    }

    fn stop(&mut self) {
        self.forget();
        self.state = State::Stopped;
    }

    fn cold_start(&mut self, now: Instant) {
        let trap = Trap::cold_start(self.up_time(now));
        self.send(&Message(Pdu::Trap(trap)));
    }

    /// Hundredths of a second since this side started.
    fn up_time(&self, now: Instant) -> u32 {
        (now.since(self.started).as_millis() / 10) as u32
    }

    fn message(&mut self, sdu: &[u8], now: Instant) {
        if self.state == State::Stopped {
            return;
        }
        if self.claiming.is_some() {
            return self.wait(sdu);
        }
        self.counters.received += 1;
        match Message::decode(sdu) {
            Ok(Message(Pdu::Request(request))) => match request.kind {
                aerostat_wire::ilmi::Kind::Response => self.response(&request, now),
                _ => self.answer(request, now),
            },
            Ok(Message(Pdu::Trap(trap))) if trap.generic == Trap::COLD_START => {
                self.counters.cold_starts += 1;
                self.lost("has started anew", false, now);
            }
            // Traps about changes of PVCs, and other traps.
            Ok(Message(Pdu::Trap(_))) => {}
            Err(_) => self.counters.bad += 1,
        }
    }

    /// The peer was lost or replaced: everything starts again, with a cold start trap if `tell` is set.
    fn lost(&mut self, why: &str, tell: bool, now: Instant) {
        if self.version.is_some() {
            self.counters.losses += 1;
            let text = format!("ILMI: the other side {why}");
            self.out
                .push_back(Output::Trace(Trace::milestone("ilmi.lost", text)));
        }
        self.forget();
        if tell {
            // The age changes, too, in case the trap is lost.
            self.started = now;
            self.cold_start(now);
        }
        self.establish(now);
    }

    /// Forgets what the other side has told and registered.
    fn forget(&mut self) {
        for (address, accepted) in core::mem::take(&mut self.addresses) {
            if accepted {
                self.tell_address(address, false);
            }
        }
        self.scopes.clear();
        self.give_up_claim();
        let former = self.give_up_former();
        self.prefixes.clear();
        self.services.clear();
        self.peer = Peer::default();
        self.link = None;
        self.jobs.clear();
        self.pending = None;
        self.poll_at = None;
        if self.version.take().is_some() || former {
            self.out.push_back(Output::Event(Event::Down));
        }
    }

    fn tell_address(&mut self, address: AtmAddress, there: bool) {
        let (event, text) = match self.config.side {
            Side::Network => (Event::Registered(address, there), "the host's address is"),
            Side::User => (Event::Address(address, there), "own address is"),
        };
        let verb = if there { "registered" } else { "gone" };
        let trace = Trace::milestone("ilmi.address", format!("ILMI: {text} {verb}: {address}"));
        self.out
            .push_back(Output::Trace(trace.with("address", address)));
        self.out.push_back(Output::Event(event));
    }

    fn send(&mut self, message: &Message) {
        self.counters.sent += 1;
        self.out.push_back(Output::Send(message.encode()));
    }
}

impl Machine for Ime {
    type Input<'a> = Input<'a>;
    type Output = Output;
    type Refusal = Infallible;

    fn handle_input(&mut self, input: Input<'_>, now: Instant) -> Result<(), Infallible> {
        match input {
            Input::Start => self.start(now),
            Input::Stop => self.stop(),
            Input::Message { sdu } => self.message(sdu, now),
            Input::Claimed { claim, refused } => self.claimed(claim, refused, now),
            Input::SetPrefixes(prefixes) => {
                if self.config.side == Side::Network {
                    self.set_prefixes(prefixes, now);
                } else {
                    let text = "only the network side offers prefixes";
                    let trace = Trace::milestone("ilmi.refused", text);
                    self.out.push_back(Output::Trace(trace));
                }
            }
            Input::SetEsis(esis) => {
                if self.config.side == Side::User {
                    self.set_esis(esis, now);
                }
            }
            Input::SetPvcs(pvcs) => self.set_pvcs(pvcs, now),
        }
        Ok(())
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.expire(now);
        self.expire_former(now);
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.out.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let pending = self.pending.as_ref().map(|pending| pending.at);
        let former = self.former.as_ref().and_then(|former| former.until);
        [pending, self.poll_at, former].into_iter().flatten().min()
    }
}
