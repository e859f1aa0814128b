//! The signalling manager of a host: the ATM service for the host's users, over one UNI interface.
//!
//! **Purpose.** LANE, MPOA and NHRP entities (*users*) request connections with [`AtmRequest`] and get [`AtmEvent`] as
//! answers. The manager translates both into calls of one [`Interface`] (user side) and offers incoming calls to the
//! matching listener.
//!
//! **Objects and owners.** A [`Signalling`] owns the interface, the table of listeners (address, B-LLI and B-HLI,
//! exactly one user each) and the calls. A call belongs to one user under the user's own [`ConnId`]. Data do not pass
//! through the manager: an outgoing SDU becomes [`Output::Send`] with the label, and for an incoming SDU the host asks
//! [`Signalling::receiver`].
//!
//! **States.** Of a call: waiting for the link, calling, offered, accepted, connected, releasing (the user has released
//! the call, the peer has not answered yet). A releasing call still has its label, but no user.
//!
//! **Permanent connections** are calls without messages: the user names the label, and faults of the signalling link do
//! not affect them. A label that a call uses is refused with cause 35.
//!
//! **In a process of its own.** [`Manager`] is what a host has: this machine, or the seat ([`Away`]) of a daemon that
//! runs it elsewhere ([`Sigd`]). In this case the host keeps the state that a kernel keeps: listeners, which user has
//! which connection, VCs, and permanent connections; data never leave the host's process. When the daemon dies, each
//! switched connection is released with cause 41 and new calls are refused with this cause at once, as Linux closes
//! every SVC socket when `atmsigd` ends. Listeners stay, and the next daemon is told of them, which differs from Linux.
//! Before the first daemon has started, calls wait as for the link.
//!
//! **Timers.** [`Config::wait`]: how long a call waits for the link. All other timers are those of the interface.
//!
//! **Standards.** The rules for matching an incoming call are those of linux-atm: called address equal in all 20
//! octets, one of the call's B-LLI equal to the listener's and the B-HLI equal, where the listener has one, SDUs in
//! either direction not longer than the listener takes; otherwise cause 88 (incompatible destination). Of several
//! matching listeners, the most specific one takes the call, B-LLI before B-HLI. A choice among several B-LLI is
//! reported in the CONNECT. A CBR or VBR call with a `min_pcr` on an interface of 4.0 can get less than its peak rate
//! (Q.2962); its VC is opened with the agreed rate.
//!
//! **Not implemented.** A second leaf of one point-to-multipoint call behind the same interface (ADD PARTY
//! from the network) is refused with cause 63; networks use a SETUP of its own for each leaf.
//!
//! **Deviations.** None known.

mod away;
mod calls;
mod daemon;
mod listeners;
mod manager;
#[cfg(test)]
mod split_tests;
#[cfg(test)]
mod tests;

pub use away::{Away, AwayCounters, SigdEvent};
pub use daemon::Sigd;
pub use manager::Manager;

use listeners::Listeners;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use aerostat_proto::sigd::ToSigd;
use aerostat_proto::uni::{self, CallId, SetupInfo};
use aerostat_proto::{
    AtmEvent, AtmRequest, Cause, ConnId, Duration, Instant, Machine, PartyId, Refused, Trace,
};
use aerostat_wire::{AtmAddress, Bhli, Blli, Qos, Sap, TrafficParams, Vc};

use crate::interface::{self, Interface, Phase as Link};

/// A user of the ATM service on this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UserId(pub u16);

/// Bounds. A request beyond a bound is refused and counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Users of the service.
    pub users: usize,
    /// Calls of one user, incoming and outgoing.
    pub calls_per_user: usize,
    /// Listeners of one user.
    pub listeners_per_user: usize,
    /// Leaves of one call.
    pub parties_per_call: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            // A router with 64 LANE clients, and its other users.
            users: 80,
            calls_per_user: 1024,
            listeners_per_user: 64,
            parties_per_call: 1024,
        }
    }
}

/// Configuration of a [`Signalling`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The interface; a host plays the user side.
    pub interface: interface::Params,
    /// Bounds.
    pub limits: Limits,
    /// How long a call waits for the link before it fails with cause 38.
    pub wait: Duration,
}

impl Config {
    /// A host on an interface of `version`.
    #[must_use]
    pub fn new(version: uni::Version) -> Self {
        Self {
            interface: interface::Params::new(uni::Side::User, version),
            limits: Limits::default(),
            wait: Duration::from_secs(8),
        }
    }
}

/// What goes into [`Signalling`].
#[derive(Clone, Debug)]
pub enum Input<'a> {
    /// Bring the link up.
    Start,
    /// The line is down.
    LinkDown,
    /// The version that both ends speak; a change of the version ends all calls.
    Version(uni::Version),
    /// One SDU of VPI 0 VCI 5.
    Signalling(&'a [u8]),
    /// A new user; it gets `Up` at once if the link is up.
    AddUser(UserId),
    /// A user is gone: its listeners and calls end.
    DropUser(UserId),
    /// A request of a user.
    Request(UserId, AtmRequest),
}

/// What comes out of [`Signalling`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send one SDU on a VC (VPI 0 VCI 5 included).
    Send {
        /// The VC.
        vc: Vc,
        /// The SDU.
        sdu: Vec<u8>,
    },
    /// A VC can be used.
    OpenVc {
        /// The connection to which the VC belongs, with its user; `None` if the user has released it already.
        owner: Option<(UserId, ConnId)>,
        /// The VC.
        vc: Vc,
        /// Traffic that this host sends on it; no traffic if the host is a leaf.
        tx: TrafficParams,
        /// Traffic that this host receives on it.
        rx: TrafficParams,
    },
    /// A VC must not be used any more.
    CloseVc {
        /// The VC.
        vc: Vc,
    },
    /// An event for a user. Never `Received`: see [`Signalling::receiver`].
    Event(UserId, AtmEvent<&'static [u8]>),
    /// An SDU for a user that was held until its connection was up ([`Manager::hold`]).
    Received {
        /// The user.
        user: UserId,
        /// The connection.
        conn: ConnId,
        /// The SDU.
        sdu: Vec<u8>,
    },
    /// For the story.
    Trace(Trace),
    /// For the daemon in a process of its own ([`Away`] only).
    Sigd(ToSigd),
}

/// State of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The call was made while the link was down; it waits since then.
    Waiting,
    /// SETUP sent.
    Calling,
    /// Offered to the user.
    Offered,
    /// Accepted by the user.
    Accepted,
    /// In use.
    Connected,
    /// Released by the user; the peer has not confirmed yet.
    Releasing,
}

/// State of one leaf, at its root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Party {
    Adding,
    Active,
    /// Dropped by the user; the peer has not confirmed yet.
    Dropping,
}

#[derive(Debug)]
struct Call {
    /// `None` once the user has released the call.
    owner: Option<(UserId, ConnId)>,
    phase: Phase,
    /// The SETUP; traffic seen from the caller.
    info: SetupInfo,
    outgoing: bool,
    /// The connection was set up by management: signalling does not know it.
    permanent: bool,
    vc: Option<Vc>,
    /// True between `OpenVc` and `CloseVc`.
    open: bool,
    parties: BTreeMap<PartyId, Party>,
}

impl Call {
    /// Traffic seen from this host.
    fn qos(&self) -> Qos {
        if self.outgoing {
            self.info.qos
        } else {
            self.info.qos.reversed()
        }
    }
}

/// One call, for display.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallInfo {
    /// The user that has the call.
    pub owner: Option<(UserId, ConnId)>,
    /// State of the call.
    pub phase: Phase,
    /// Its label, once known.
    pub vc: Option<Vc>,
    /// True if the call was made here.
    pub outgoing: bool,
    /// The caller.
    pub calling: Option<AtmAddress>,
    /// The called party; for a point-to-multipoint call, the first leaf.
    pub called: AtmAddress,
    /// The B-LLI, which names the protocol on the connection.
    pub blli: Option<Blli>,
    /// The B-HLI.
    pub bhli: Option<Bhli>,
    /// Traffic seen from this host.
    pub qos: Qos,
    /// Leaves, if it is the root of a point-to-multipoint call.
    pub parties: usize,
    /// True for point-to-multipoint.
    pub multipoint: bool,
}

/// What has happened so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Calls made by users.
    pub outgoing: u64,
    /// Calls offered to users.
    pub incoming: u64,
    /// Incoming calls without a listener (cause 88).
    pub incompatible: u64,
    /// Requests refused: unknown ids, wrong state, bounds.
    pub refused: u64,
    /// Calls that failed because the link did not come up in time.
    pub no_link: u64,
}

/// The signalling manager of a host.
#[derive(Debug)]
pub struct Signalling {
    config: Config,
    interface: Interface,
    users: BTreeSet<UserId>,
    listeners: Listeners,
    calls: BTreeMap<CallId, Call>,
    conns: BTreeMap<(UserId, ConnId), CallId>,
    labels: BTreeMap<Vc, CallId>,
    /// Calls that wait for the link, oldest first; all wait for the same time.
    waiting: VecDeque<(Instant, CallId)>,
    next_call: u32,
    next_conn: u32,
    outputs: VecDeque<Output>,
    counters: Counters,
}

impl Signalling {
    /// A manager whose link is down until [`Input::Start`].
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            interface: Interface::new(config.interface),
            config,
            users: BTreeSet::new(),
            listeners: Listeners::default(),
            calls: BTreeMap::new(),
            conns: BTreeMap::new(),
            labels: BTreeMap::new(),
            waiting: VecDeque::new(),
            next_call: 0,
            next_conn: 0,
            outputs: VecDeque::new(),
            counters: Counters::default(),
        }
    }
    /// The same, but the first call received gets this number, which is from [`ConnId::INCOMING`] upwards.
    #[must_use]
    pub fn numbered_from(mut self, first_incoming: u32) -> Self {
        self.next_conn = first_incoming % ConnId::INCOMING;
        self
    }
    /// The user that receives the SDUs on `vc`; `None` before the call is answered. A called user may get SDUs before
    /// it is told that the connection is up: the caller knows it already.
    #[must_use]
    pub fn receiver(&self, vc: Vc) -> Option<(UserId, ConnId)> {
        let call = self.calls.get(self.labels.get(&vc)?)?;
        match call.phase {
            Phase::Connected | Phase::Accepted => call.owner,
            _ => None,
        }
    }
    /// True while calls can be made without waiting.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.interface.phase() == Link::Ready
    }
    /// What has happened so far.
    #[must_use]
    pub const fn counters(&self) -> Counters {
        self.counters
    }
    /// The interface, for display.
    #[must_use]
    pub const fn interface(&self) -> &Interface {
        &self.interface
    }
    /// All calls, for display.
    pub fn calls(&self) -> impl Iterator<Item = CallInfo> + '_ {
        self.calls.values().map(|call| CallInfo {
            owner: call.owner,
            phase: call.phase,
            vc: call.vc,
            outgoing: call.outgoing,
            calling: call.info.calling,
            called: call.info.called,
            blli: call.info.blli,
            bhli: call.info.bhli,
            qos: call.qos(),
            parties: call.parties.len(),
            multipoint: call.info.multipoint,
        })
    }
    /// Listeners, for display: address, description, user, largest SDU in octets.
    pub fn listeners(&self) -> impl Iterator<Item = (AtmAddress, Sap, UserId, u16)> + '_ {
        self.listeners.iter()
    }

    fn event(&mut self, user: UserId, event: AtmEvent<&'static [u8]>) {
        self.outputs.push_back(Output::Event(user, event));
    }
    fn broadcast(&mut self, event: &AtmEvent<&'static [u8]>) {
        for user in &self.users {
            self.outputs.push_back(Output::Event(*user, *event));
        }
    }
    /// A request to the interface that this state allows; the answer comes as an indication.
    fn ask(&mut self, request: uni::Request, now: Instant) -> Result<(), Refused> {
        self.interface
            .handle_input(interface::Input::Request(request), now)
    }

    fn add_user(&mut self, user: UserId) -> Result<(), Refused> {
        if self.users.len() >= self.config.limits.users {
            return Err(Refused("too many users of the ATM service"));
        }
        if !self.users.insert(user) {
            return Err(Refused("this user is known already"));
        }
        if self.is_up() {
            self.event(user, AtmEvent::Up);
        }
        Ok(())
    }

    fn drop_user(&mut self, user: UserId, now: Instant) -> Result<(), Refused> {
        if !self.users.remove(&user) {
            return Err(Refused("unknown user"));
        }
        self.listeners.drop_user(user);
        let range = (user, ConnId(0))..=(user, ConnId(u32::MAX));
        let conns: Vec<ConnId> = self
            .conns
            .range(range)
            .map(|((_, conn), _)| *conn)
            .collect();
        for conn in conns {
            self.release(user, conn, Cause::NORMAL, now)?;
        }
        Ok(())
    }

    fn request(&mut self, user: UserId, request: AtmRequest, now: Instant) -> Result<(), Refused> {
        if !self.users.contains(&user) {
            return Err(Refused("unknown user"));
        }
        match request {
            AtmRequest::Listen {
                address,
                sap,
                max_sdu,
            } => {
                let limit = self.config.limits.listeners_per_user;
                self.listeners.add(user, (address, sap), max_sdu, limit)
            }
            AtmRequest::Unlisten { address, sap } => self.listeners.remove(user, (address, sap)),
            AtmRequest::Connect {
                conn,
                calling,
                called,
                sap,
                qos,
                multipoint,
            } => {
                let mut info = SetupInfo::new(called, Some(calling), sap, qos);
                info.multipoint = multipoint;
                self.connect(user, conn, info, now)
            }
            AtmRequest::OpenPermanent { conn, vc, qos } => self.open_permanent(user, conn, vc, qos),
            AtmRequest::AddParty {
                conn,
                party,
                called,
            } => self.add_party(user, conn, party, called, now),
            AtmRequest::DropParty { conn, party } => self.drop_party(user, conn, party, now),
            AtmRequest::Accept { conn } => self.accept(user, conn, now),
            AtmRequest::Release { conn, cause } => self.release(user, conn, cause, now),
            AtmRequest::Send { conn, sdu } => self.send(user, conn, sdu),
        }
    }

    /// Passes on the outputs of the interface.
    fn drain(&mut self, now: Instant) {
        while let Some(output) = self.interface.poll_output() {
            match output {
                interface::Output::Lower(sdu) => self.outputs.push_back(Output::Send {
                    vc: Vc::SIGNALLING,
                    sdu,
                }),
                interface::Output::Indication(indication) => self.indication(indication, now),
                interface::Output::Trace(trace) => self.outputs.push_back(Output::Trace(trace)),
            }
        }
    }
}

impl Machine for Signalling {
    type Input<'a> = Input<'a>;
    type Output = Output;
    type Refusal = Refused;

    fn handle_input(&mut self, input: Input<'_>, now: Instant) -> Result<(), Refused> {
        let done = match input {
            Input::Start => self.interface.handle_input(interface::Input::Start, now),
            Input::LinkDown => self.interface.handle_input(interface::Input::LinkDown, now),
            Input::Version(version) => self
                .interface
                .handle_input(interface::Input::Version(version), now),
            Input::Signalling(sdu) => self
                .interface
                .handle_input(interface::Input::Lower(sdu), now),
            Input::AddUser(user) => self.add_user(user),
            Input::DropUser(user) => self.drop_user(user, now),
            Input::Request(user, request) => self.request(user, request, now),
        };
        self.counters.refused += u64::from(done.is_err());
        self.drain(now);
        done
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.interface.handle_timeout(now);
        self.drain(now);
        self.expire_waiting(now);
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let waiting = self.waiting.front().map(|(until, _)| *until);
        self.interface
            .poll_timeout()
            .into_iter()
            .chain(waiting)
            .min()
    }
}
