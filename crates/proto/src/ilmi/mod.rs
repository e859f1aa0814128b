//! Integrated Local Management Interface: the two ends of a link get to know each other, and the host gets its address.
//!
//! **Purpose.** A host knows only its end system identifier (ESI). The switch tells it the network prefix of the port; the
//! host registers prefix and ESI as its address; from then on calls for that address come to this port. Both ends learn
//! each other's UNI version and notice when the other is gone, is another, or has restarted. The switch's service registry
//! tells hosts where the LECS is.
//!
//! **Objects and owners.** An [`Ime`] (interface management entity) is one end of one link, of the network or of the user
//! side. It owns the agent's objects (`agent.rs`: what the other side may read and set) and the manager's jobs
//! (`manager.rs`: what this side asks of the other, one request at a time). The switch owns what follows from it: routes.
//!
//! **Which end is the network** follows from the device types of both ([`Link`]); a switch that does not know what will be at
//! the other end asks for it ([`Config::detect`]): addresses are registered if a host turns up, and not towards a switch.
//!
//! **States** ([`State`]): stopped; establishing (the other side's attachment point is asked for until it answers);
//! configuring (its versions); registering (network side: prefixes are set; user side: the service registry is read);
//! verifying (the attachment point is polled; registrations come and go). A lost, changed or restarted peer leads back to
//! establishing, and everything that was registered is forgotten.
//!
//! **Timers** ([`Params`]): a request without an answer is repeated; a poll without an answer, four times, is a loss.
//! While establishing, requests are repeated for ever.
//!
//! **A cold start** is told once after a local start or a loss, and never in answer to one: two ends that do that never
//! end (Debian's `ilmid` does). After both, `sysUpTime` begins anew: who did not get the trap sees that.
//!
//! **Permanent connections** of the interface, which the owner names ([`Config::pvcs`]), can be read in the tables of VPCs and
//! VCCs; what changes is told by traps.
//!
//! **Bounds**: prefixes, addresses, services and jobs ([`Limits`]); what exceeds them is refused and counted.
//!
//! **Standards**: ATM Forum af-ilmi-0065.000 (ILMI 4.0), with what UNI 3.1 clause 4 says of the same objects.
//! Messages: [`aerostat_wire::ilmi`].
//!
//! **Not implemented**: ABR parameters and statistics; group addresses; several ports behind one channel. What the other
//! side says of its permanent connections is not read.
//!
//! **Deviations**: which of two switches plays the network side is decided by a rule of our own ([`Link`]); the numeric values of the timers are those of linux-atm and of vendors' manuals, as the standard's text
//! was not at hand.

mod agent;
mod link;
#[cfg(test)]
mod link_tests;
mod manager;
mod pvc;
#[cfg(test)]
mod tests;

pub use link::{Link, NniSignalling};
pub use pvc::{Pvc, PvcStatus};

use crate::{Duration, Instant, Machine, Refused, Trace};
use aerostat_wire::ilmi::{Message, Oid, Pdu, Trap, Value};
use aerostat_wire::q2931::Version;
use aerostat_wire::{AtmAddress, MacAddr};
use manager::{Job, Pending};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Which end of the link this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// A switch.
    Network,
    /// A host.
    User,
}

/// A network prefix: the first 13 octets of addresses.
pub type Prefix = [u8; 13];

/// Timers. Source: af-ilmi-0065.000 clause 8.3 (T, and K of the polls); the response time is the one of linux-atm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// How long a response may take before the request is repeated.
    pub response: Duration,
    /// How often a request is made before the peer is given up, except while establishing.
    pub tries: u32,
    /// T: from one poll of the attachment point to the next.
    pub poll: Duration,
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

/// Bounds of what the other side can make this one hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Prefixes.
    pub prefixes: usize,
    /// Addresses.
    pub addresses: usize,
    /// Addresses of LECSs.
    pub services: usize,
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

/// What an IME is told before it starts.
#[derive(Clone, Debug)]
pub struct Config {
    /// Which end it is.
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
    /// It is not known what is at the other end: [`Event::Link`] tells, and there are no addresses but between a host and a
    /// switch. `side` says what this end is: a switch or a host.
    pub detect: bool,
    /// What this end speaks towards a switch, if it is one.
    pub nni: NniSignalling,
    /// Permanent connections of the interface.
    pub pvcs: Vec<Pvc>,
    /// Rate of the line, cells/s: peak rate of permanent connections that name none.
    pub line_rate: u32,
    /// Timers.
    pub params: Params,
    /// Bounds.
    pub limits: Limits,
}

impl Config {
    /// One end of a link, with nothing to offer or to register yet.
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

/// What goes into an IME.
#[derive(Clone, Debug)]
pub enum Input<'a> {
    /// The line is up, or this side starts.
    Start,
    /// The line is dead: everything registered is forgotten.
    Stop,
    /// One SDU of VPI 0 VCI 16.
    Message {
        /// The SDU.
        sdu: &'a [u8],
        /// Addresses, selector 0, that are registered elsewhere and so cannot be registered here.
        taken: &'a BTreeSet<AtmAddress>,
    },
    /// Network side: the prefixes to offer from now on.
    SetPrefixes(Vec<Prefix>),
    /// The permanent connections of the interface from now on.
    SetPvcs(Vec<Pvc>),
}

/// What follows from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The other side has answered.
    Up {
        /// The lower of both sides' UNI versions; the own one if the other side names none.
        version: Version,
    },
    /// What the two ends make of the link, before `Up`, if [`Config::detect`] asks for it.
    Link(Link),
    /// The other side is gone, is another, or has restarted.
    Down,
    /// Network side: the host has this address (true), or has it no longer.
    Registered(AtmAddress, bool),
    /// User side: this address of ours can be used (true), or no longer.
    Address(AtmAddress, bool),
    /// User side: the LECSs that the network names.
    Services(Vec<AtmAddress>),
}

/// What comes out of an IME.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send this SDU on VPI 0 VCI 16.
    Send(Vec<u8>),
    /// For the owner.
    Event(Event),
    /// An observation.
    Trace(Trace),
}

/// Where an IME stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Not started, or the line is dead.
    Stopped,
    /// The other side has not answered yet.
    Establishing,
    /// It is asked what it speaks.
    Configuring,
    /// Prefixes are set, or services read.
    Registering,
    /// It is polled.
    Verifying,
}

impl core::fmt::Display for State {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Stopped => "stopped",
            Self::Establishing => "establishing",
            Self::Configuring => "configuring",
            Self::Registering => "registering",
            Self::Verifying => "verifying",
        })
    }
}

/// What the other side says of itself; `None` where it does not know the object.
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
    /// 1 is a host, 2 a switch.
    pub device: Option<i32>,
    /// Bits of its VPIs.
    pub vpi_bits: Option<i32>,
    /// Bits of its VCIs.
    pub vci_bits: Option<i32>,
    /// What it speaks towards switches: nothing is 1, IISP 2, PNNI 3.
    pub nni: Option<i32>,
    /// False if it says that it does not register addresses.
    pub registers: Option<bool>,
}

/// What has happened so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Messages received.
    pub received: u64,
    /// Messages sent.
    pub sent: u64,
    /// SDUs that are no ILMI message.
    pub bad: u64,
    /// Responses that nobody waits for.
    pub unasked: u64,
    /// Requests that got no response in time.
    pub timeouts: u64,
    /// Requests of the other side that were answered with an error.
    pub errors_sent: u64,
    /// Errors that the other side answered.
    pub errors_received: u64,
    /// Cold starts of the other side.
    pub cold_starts: u64,
    /// Times that the other side was lost after it had answered.
    pub losses: u64,
    /// Registrations refused: a bound was met.
    pub full: u64,
}

/// Everything that there is to see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Which end it is.
    pub side: Side,
    /// Where it stands.
    pub state: State,
    /// The other side.
    pub peer: Peer,
    /// UNI version in use, once both have spoken.
    pub version: Option<Version>,
    /// What both ends make of the link, once both have spoken.
    pub link: Option<Link>,
    /// Prefixes set (network side) or given (user side).
    pub prefixes: Vec<Prefix>,
    /// Addresses registered.
    pub addresses: Vec<AtmAddress>,
    /// LECSs offered (network side) or found (user side).
    pub services: Vec<AtmAddress>,
    /// Counters.
    pub counters: Counters,
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
    /// Network side: prefixes that were sent to the host. User side: prefixes that were given.
    prefixes: BTreeSet<Prefix>,
    /// By address with selector 0; true once the other side has accepted it, or we have.
    addresses: BTreeMap<AtmAddress, bool>,
    services: Vec<AtmAddress>,
    jobs: VecDeque<Job>,
    pending: Option<Pending>,
    poll_at: Option<Instant>,
    next_id: i32,
    counters: Counters,
    out: VecDeque<Output>,
}

impl Ime {
    /// An end that is stopped.
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
            services: Vec::new(),
            jobs: VecDeque::new(),
            pending: None,
            poll_at: None,
            next_id: 0,
            counters: Counters::default(),
            out: VecDeque::new(),
        }
    }
    /// Where it stands.
    #[must_use]
    pub const fn state(&self) -> State {
        self.state
    }
    /// Everything that there is to see.
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

    fn message(&mut self, sdu: &[u8], taken: &BTreeSet<AtmAddress>, now: Instant) {
        if self.state == State::Stopped {
            return;
        }
        self.counters.received += 1;
        match Message::decode(sdu) {
            Ok(Message(Pdu::Request(request))) => match request.kind {
                aerostat_wire::ilmi::Kind::Response => self.response(&request, now),
                _ => self.answer(request, taken, now),
            },
            Ok(Message(Pdu::Trap(trap))) if trap.generic == Trap::COLD_START => {
                self.counters.cold_starts += 1;
                self.lost("has started anew", false, now);
            }
            // Changes of PVCs, and whatever else it tells.
            Ok(Message(Pdu::Trap(_))) => {}
            Err(_) => self.counters.bad += 1,
        }
    }

    /// The other side is not what it was: everything starts over, and it is told so if `tell`.
    fn lost(&mut self, why: &str, tell: bool, now: Instant) {
        if self.version.is_some() {
            self.counters.losses += 1;
            let text = format!("ILMI: the other side {why}");
            self.out
                .push_back(Output::Trace(Trace::milestone("ilmi.lost", text)));
        }
        self.forget();
        if tell {
            // By the age too, should the trap get lost.
            self.started = now;
            self.cold_start(now);
        }
        self.establish(now);
    }

    /// Forgets what the other side said and registered.
    fn forget(&mut self) {
        for (address, accepted) in core::mem::take(&mut self.addresses) {
            if accepted {
                self.tell_address(address, false);
            }
        }
        self.prefixes.clear();
        self.services.clear();
        self.peer = Peer::default();
        self.link = None;
        self.jobs.clear();
        self.pending = None;
        self.poll_at = None;
        if self.version.take().is_some() {
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

    fn handle_input(&mut self, input: Input<'_>, now: Instant) -> Result<(), Refused> {
        match input {
            Input::Start => self.start(now),
            Input::Stop => self.stop(),
            Input::Message { sdu, taken } => self.message(sdu, taken, now),
            Input::SetPrefixes(prefixes) => {
                if self.config.side != Side::Network {
                    return Err(Refused("the network side offers prefixes"));
                }
                self.set_prefixes(prefixes, now);
            }
            Input::SetPvcs(pvcs) => self.set_pvcs(pvcs, now),
        }
        Ok(())
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.expire(now);
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.out.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let pending = self.pending.as_ref().map(|pending| pending.at);
        [pending, self.poll_at].into_iter().flatten().min()
    }
}
