//! The signalling of a host: the ATM service for the host's users, over one UNI interface.
//!
//! **Purpose.** LANE, MPOA and NHRP entities (*users*) request connections with [`AtmRequest`] and get [`AtmEvent`] as
//! answers. Signalling translates both into calls of one interface (user side) and offers incoming calls to the
//! matching listener.
//!
//! **Objects and owners.** Signalling has two halves. The host half, [`Signalling`], has the tasks of a kernel: the
//! table of listeners (address, B-LLI and B-HLI, exactly one user each), the connections of each user under the user's
//! own [`ConnId`], VCs, and permanent connections. The daemon half, [`Sigd`], owns the interface and reads the
//! network's messages. The host half always has the daemon in a [`Seat`]. In one process the seat hands each message
//! over in the same call; with `up --split` the message goes to the daemon's process. `aerostat_proto::sigd` has the
//! messages.
//!
//! Data pass through neither half: the host asks for the label of an outgoing SDU ([`Signalling::label`]) and for the
//! receiver of an incoming SDU ([`Signalling::receiver`]).
//!
//! **States.** Of a call: waiting for the link, calling, offered, accepted, connected, releasing (the call is over for
//! its user, and the network has not confirmed this yet). A releasing call still has its label and its [`CallId`], but
//! no user.
//!
//! The VC of a called side is open from its acceptance on: the network carries cells of the caller as soon as it has
//! the CONNECT, and at a port with many cells those of a connection with a contract overtake CONNECT ACKNOWLEDGE. The
//! user may send only once that message has come, and so it gets such data at this time, too ([`Signalling::hold`]).
//!
//! **Without a switch.** Two hosts can be joined by one link. One of them then plays the network side of the UNI
//! ([`Config::network`]), as `atmsigd -m network` of linux-atm does: it gives each call its label, and nothing is
//! behind it, so that it takes calls for its own listeners only.
//!
//! **Calls inside the host.** A call of the user with the sockets of programs ([`Input::Sockets`]) to a listener of its
//! own is a connection without a label (`local.rs`). The daemon decides about it, and the link need not be up.
//!
//! **Permanent connections** are calls without messages: the user names the label, and faults of the signalling link do
//! not affect them. A label that a call uses is refused with cause 35.
//!
//! **Death of the daemon.** Each switched connection is released with cause 41 and new calls are refused with this
//! cause at once, as Linux closes every SVC socket when `atmsigd` ends. Listeners stay, which differs from Linux.
//! Before the first daemon has started, calls wait as for the link. The live driver replaces a daemon that hangs.
//!
//! **Trust.** The host half accepts messages of the daemon only about the daemon's own calls: calls for which there is
//! a listener or a request, one free label for each, within the limits.
//!
//! **Timers.** [`Config::wait`]: how long a call waits for the link. All other timers are those of the interface.
//!
//! **Standards.** The rules for matching an incoming call are those of linux-atm: called address equal in all 20
//! octets, one of the call's B-LLI equal to the listener's and the B-HLI equal, where the listener has one, SDUs in
//! either direction not longer than the listener takes; otherwise cause 88 (incompatible destination). Of several
//! matching listeners, the most specific one takes the call, B-LLI before B-HLI. A choice among several B-LLI is
//! reported in the CONNECT. A CBR or VBR call with a `min_pcr` on an interface of 4.0 can get less than its peak rate
//! (Q.2962); its VC is opened with the agreed rate. The called side may answer with smaller SDUs, and with a lower rate
//! where that choice is left (`aerostat_proto::atm::answered`).
//!
//! **Not implemented.** A second leaf of one point-to-multipoint call behind the same interface (ADD PARTY
//! from the network) is refused with cause 63; networks use a SETUP of its own for each leaf.

mod connections;
mod listeners;
mod local;
mod requests;
mod seat;
mod sigd;
mod user_data;

pub use local::Errand;
pub use seat::{DaemonCounters, DaemonEvent};
pub use sigd::{FIRST_CALL_VCI, Sigd};
pub(crate) use user_data::AAL_UNSUPPORTED;
pub use user_data::{Along, FACILITY_REJECTED, Heard};

use connections::Conns;
use listeners::Listeners;
pub use listeners::Listening;
use seat::Presence;

use std::collections::{BTreeMap, VecDeque};

use aerostat_proto::sigd::{LinkInfo, ToSigd};
use aerostat_proto::split::{Seat, ToDaemon};
use aerostat_proto::uni::{self, CallId};
use aerostat_proto::{
    AtmEvent, AtmRequest, Changes, ConnId, Duration, Instant, Machine, Refused, Trace,
};
use aerostat_wire::{AtmAddress, Bhli, Blli, Qos, TrafficParams, Vc};

use crate::atm::DataUnitBuf;
use crate::inspect::{Table, counters};
use aerostat_proto::interface;

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
    /// The interface. A host plays the user side, except one of two hosts on a link without a switch.
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
    /// The host of two on a link without a switch that plays the network side: it gives the labels, from
    /// [`FIRST_CALL_VCI`] on.
    #[must_use]
    pub fn network(version: uni::Version) -> Self {
        Self {
            interface: interface::Params::new(uni::Side::Network, version),
            ..Self::new(version)
        }
    }
}

/// Inputs of [`Signalling`].
#[derive(Clone, Debug)]
pub enum Input<'a> {
    /// Bring the link up.
    Start,
    /// The line is down.
    LinkDown,
    /// Calls that failed may succeed now: users that wait with theirs get `Up` again, if the link is up.
    CallAgain,
    /// The contract of the permanent connection with this label, seen from this host: management has changed it.
    Contract(Vc, Qos),
    /// The version that both ends speak; a change of the version ends all calls.
    Version(uni::Version),
    /// One SDU of VPI 0 VCI 5.
    Signalling(&'a [u8]),
    /// A new user; it gets `Up` at once if the link is up.
    AddUser(UserId),
    /// This user has the sockets of programs: from now on calls to its own listeners stay in the host
    /// ([`Output::Joined`]), and it is offered calls of single cells.
    Sockets(UserId),
    /// The manager has done this.
    Managed(Errand),
    /// A user is gone: its listeners and calls end.
    DropUser(UserId),
    /// A request of a user.
    Request(UserId, AtmRequest, Along),
    /// From a daemon in a process of its own.
    Daemon(DaemonEvent),
}

impl Input<'_> {
    /// A request without user data, for AAL5.
    #[must_use]
    pub fn request(user: UserId, request: AtmRequest) -> Self {
        Self::Request(user, request, Along::default())
    }
}

/// Outputs of [`Signalling`].
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
        /// The VC.
        vc: Vc,
        /// Traffic that this host sends on it; no traffic if the host is a leaf.
        tx: TrafficParams,
        /// Traffic that this host receives on it.
        rx: TrafficParams,
    },
    /// An open VC sends with this traffic from now on.
    ChangeVc {
        /// The VC.
        vc: Vc,
        /// Traffic that this host sends on it.
        tx: TrafficParams,
    },
    /// A VC must not be used any more.
    CloseVc {
        /// The VC.
        vc: Vc,
    },
    /// An event for a user. Never `Received`: see [`Signalling::receiver`].
    Event(UserId, AtmEvent<&'static [u8]>, Heard),
    /// A call of the sockets to a listener of their own can be used: `conn` and `peer` are its ends, and each end gets
    /// this. No label belongs to it.
    Joined {
        /// The connection.
        conn: ConnId,
        /// The other end, a connection of the same user.
        peer: ConnId,
        /// The contract, seen from `conn`.
        qos: Qos,
        /// User data of the other end.
        heard: Heard,
    },
    /// An SDU for a user that was held until its connection was up ([`Signalling::hold`]).
    Received {
        /// The user.
        user: UserId,
        /// The connection.
        conn: ConnId,
        /// The SDU.
        sdu: DataUnitBuf,
    },
    /// An SDU that was held for a call that has ended before it was up.
    Undelivered(DataUnitBuf),
    /// Work of a manager that takes time ([`Signalling::set_paced`]); [`Input::Managed`] tells its end.
    Manage(Errand),
    /// For the story.
    Trace(Trace),
    /// For a daemon in a process of its own.
    Daemon(ToDaemon<ToSigd>),
}

aerostat_wire::named! {
    /// State of a call.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Phase {
        /// The call was made while the link was down; it waits since then.
        Waiting = "Waiting",
        /// The daemon was told to make the call.
        Calling = "Calling",
        /// Offered to the user.
        Offered = "Offered",
        /// Accepted by the user.
        Accepted = "Accepted",
        /// In use.
        Connected = "Connected",
        /// Over for its user; the network has not confirmed this yet.
        Releasing = "Releasing",
    }
}

/// One call, for display.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallInfo {
    /// The user that has the call; `None` for a releasing call.
    pub owner: Option<(UserId, ConnId)>,
    /// State of the call.
    pub phase: Phase,
    /// Its label, once known.
    pub vc: Option<Vc>,
    /// True if the call was made here.
    pub outgoing: bool,
    /// The caller.
    pub calling: Option<AtmAddress>,
    /// The called party; for a point-to-multipoint call, the first leaf; zero for a permanent connection.
    pub called: AtmAddress,
    /// True for a permanent connection, whose ends have no addresses.
    pub permanent: bool,
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

impl CallInfo {
    /// The other end, as far as this end knows it; nothing for a permanent connection.
    #[must_use]
    pub fn peer(&self) -> Option<AtmAddress> {
        match (self.permanent, self.outgoing) {
            (true, _) => None,
            (false, true) => Some(self.called),
            (false, false) => self.calling,
        }
    }
}

aerostat_proto::counters! {
    /// Counters of the calls of a host's users.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Counters {
        /// Calls made by users.
        pub outgoing: u64,
        /// Calls offered to users.
        pub incoming: u64,
        /// Incoming calls without a listener (cause 88).
        pub incompatible: u64,
        /// Requests refused (unknown ids, wrong state, bounds), and incoming calls above a bound.
        pub refused: u64,
        /// Calls that failed because the link did not come up in time.
        pub no_link: u64,
    }
}

/// The signalling of a host: its host half, with the daemon half in a seat.
#[derive(Debug)]
pub struct Signalling {
    config: Config,
    version: uni::Version,
    seat: Seat<Sigd, ()>,
    presence: Presence,
    /// Number of the daemon's last start.
    life: u32,
    /// True if the line is up.
    line: bool,
    /// True if the link is up, so that calls need not wait.
    up: bool,
    /// Users, with the number of their connections.
    users: BTreeMap<UserId, usize>,
    /// Contracts of permanent connections that management has changed, by label.
    contracts: BTreeMap<Vc, Qos>,
    /// The user with the sockets of programs.
    sockets: Option<UserId>,
    /// True if the manager takes time for calls inside the host.
    paced: bool,
    listeners: Listeners,
    /// All connections, also those that are being released.
    conns: Conns,
    /// Connections that have a user, by the user's own id.
    ids: BTreeMap<(UserId, ConnId), CallId>,
    /// Connections with an open VC, by its label.
    labels: BTreeMap<Vc, CallId>,
    /// Calls that wait for the link, oldest first; all wait for the same time.
    waiting: VecDeque<(Instant, CallId)>,
    next_call: u32,
    next_conn: u32,
    /// The link, as a daemon in a process of its own has reported it.
    link: LinkInfo,
    outputs: VecDeque<Output>,
    counters: Counters,
    /// All counters except those of the seat.
    daemon_counters: DaemonCounters,
}

impl Signalling {
    /// Signalling whose daemon half is in this process. The link is down until [`Input::Start`].
    #[must_use]
    pub fn new(config: Config) -> Self {
        let mut new = Self::with(config, Seat::here());
        new.start_daemon(Instant::ZERO);
        new.drain(Instant::ZERO);
        new
    }
    /// Signalling whose daemon half is in a process of its own, which has not started yet. The host half enforces the
    /// limits, whatever the daemon does.
    #[must_use]
    pub fn split(config: Config) -> Self {
        Self::with(config, Seat::elsewhere())
    }
    fn with(config: Config, seat: Seat<Sigd, ()>) -> Self {
        Self {
            version: config.interface.uni.version,
            config,
            seat,
            presence: Presence::Awaited,
            life: 0,
            line: false,
            up: false,
            users: BTreeMap::new(),
            contracts: BTreeMap::new(),
            sockets: None,
            paced: false,
            listeners: Listeners::default(),
            conns: Conns::default(),
            ids: BTreeMap::new(),
            labels: BTreeMap::new(),
            waiting: VecDeque::new(),
            next_call: 0,
            next_conn: 0,
            link: LinkInfo::default(),
            outputs: VecDeque::new(),
            counters: Counters::default(),
            daemon_counters: DaemonCounters::default(),
        }
    }
    /// The user of a label that is open, also before the connection is up.
    #[must_use]
    pub fn owner(&self, vc: Vc) -> Option<(UserId, ConnId)> {
        self.conns.get(self.labels.get(&vc)?)?.owner
    }
    /// The user that receives the SDUs on `vc`; `None` before the connection is up: see [`Self::hold`].
    #[must_use]
    pub fn receiver(&self, vc: Vc) -> Option<(UserId, ConnId)> {
        let conn = self.conns.get(self.labels.get(&vc)?)?;
        conn.owner.filter(|_| conn.phase == Phase::Connected)
    }
    /// True while calls can be made without waiting.
    #[must_use]
    pub const fn is_up(&self) -> bool {
        self.up
    }
    /// The version of the interface.
    #[must_use]
    pub const fn version(&self) -> uni::Version {
        self.version
    }
    /// Counters of the calls of this host's users.
    #[must_use]
    pub const fn counters(&self) -> Counters {
        self.counters
    }
    /// Counters of the boundary between the two halves.
    #[must_use]
    pub const fn daemon_counters(&self) -> DaemonCounters {
        let seat = self.seat.counters();
        DaemonCounters {
            stale: seat.stale,
            refused: seat.refused,
            ..self.daemon_counters
        }
    }
    /// The daemon half, if it is in this process.
    #[must_use]
    pub const fn daemon(&self) -> Option<&Sigd> {
        self.seat.daemon()
    }
    /// All calls, for display.
    pub fn calls(&self) -> impl Iterator<Item = CallInfo> + '_ {
        self.conns.values().map(|conn| conn.info())
    }
    /// Ids of all calls.
    pub fn call_ids(&self) -> impl Iterator<Item = CallId> + '_ {
        self.conns.keys().copied()
    }
    /// A call, for display; `None` if there is no such call.
    #[must_use]
    pub fn call(&self, id: CallId) -> Option<CallInfo> {
        self.conns.get(&id).map(|conn| conn.info())
    }
    /// Calls that may have changed since the last call of this method.
    pub fn take_changes(&mut self) -> Changes<CallId> {
        self.conns.take_changes()
    }
    /// Listeners in the order of their addresses, for display.
    pub fn listeners(&self) -> impl Iterator<Item = Listening> + '_ {
        self.listeners.iter()
    }
    /// Both sets of counters as a table of `inspect call`; names of the second set begin with `daemon_`.
    #[must_use]
    pub fn counter_table(&self) -> Table {
        let rows = counters::with_daemon(self.counters.rows(), self.daemon_counters().rows());
        Table::counters(&counters::SIGNALLING, rows)
    }
    /// State of the link, for display.
    #[must_use]
    pub fn link_info(&self) -> LinkInfo {
        let here = self.seat.daemon().and_then(Sigd::interface);
        here.map_or_else(|| self.link.clone(), |here| LinkInfo::of(here.saal()))
    }

    fn event(&mut self, user: UserId, event: AtmEvent<&'static [u8]>) {
        self.tell_user(user, event, Heard::default());
    }
    /// The same, with what comes along.
    fn tell_user(&mut self, user: UserId, event: AtmEvent<&'static [u8]>, heard: Heard) {
        self.outputs.push_back(Output::Event(user, event, heard));
    }
    fn broadcast(&mut self, event: &AtmEvent<&'static [u8]>) {
        for user in self.users.keys() {
            self.outputs
                .push_back(Output::Event(*user, *event, Heard::default()));
        }
    }
    fn trace(&mut self, trace: Trace) {
        self.outputs.push_back(Output::Trace(trace));
    }
    /// Sends a message to the daemon, if a daemon is there.
    fn tell(&mut self, message: ToSigd, now: Instant) {
        self.seat.tell(message, now);
    }
    /// Handles what the daemon in this process says, and sends what is for another process.
    fn drain(&mut self, now: Instant) {
        while let Some(message) = self.seat.poll() {
            self.daemon_said(message, now);
        }
        while let Some(message) = self.seat.poll_message() {
            self.outputs.push_back(Output::Daemon(message));
        }
    }
}

impl Machine for Signalling {
    type Input<'a> = Input<'a>;
    type Output = Output;
    type Refusal = Refused;

    fn handle_input(&mut self, input: Input<'_>, now: Instant) -> Result<(), Refused> {
        let done = match input {
            Input::Start | Input::LinkDown => {
                self.line = matches!(input, Input::Start);
                let line = if self.line {
                    AtmEvent::Up
                } else {
                    AtmEvent::Down
                };
                self.seat.tell_atm(line, now);
                Ok(())
            }
            Input::Contract(vc, qos) => {
                self.contract(vc, qos);
                Ok(())
            }
            Input::CallAgain => {
                let users = self.users.keys().copied().filter(|_| self.up);
                for user in users.collect::<Vec<_>>() {
                    self.event(user, AtmEvent::Up);
                }
                Ok(())
            }
            Input::Version(version) => {
                self.version = version;
                self.tell(ToSigd::Version(version), now);
                Ok(())
            }
            Input::Signalling(sdu) => {
                self.signalled(sdu, now);
                Ok(())
            }
            Input::AddUser(user) => self.add_user(user),
            Input::Sockets(user) => {
                self.sockets = Some(user);
                Ok(())
            }
            Input::Managed(errand) => {
                self.managed(errand, now);
                Ok(())
            }
            Input::DropUser(user) => self.drop_user(user, now),
            Input::Request(user, request, along) => self.request(user, request, along, now),
            Input::Daemon(event) => self.daemon_event(event, now),
        };
        self.counters.refused += u64::from(done.is_err());
        self.drain(now);
        done
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.seat.handle_timeout(now);
        self.drain(now);
        self.expire_waiting(now);
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let waiting = self.waiting.front().map(|(until, _)| *until);
        let daemon = self.seat.poll_timeout();
        daemon.into_iter().chain(waiting).min()
    }
}
