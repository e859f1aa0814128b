//! The seat of a daemon beside its data half: it has the duties of an operating system for a process that uses the ATM
//! service.
//!
//! **Purpose.** A daemon runs in the same process or in a process of its own, and its data half uses both in the same
//! way: it sends messages to the seat, and polls the seat. The seat knows the listeners and connections of the daemon,
//! so that they end with it. The seat refuses requests about anything that is not the daemon's own.
//!
//! **Trust.** A request is granted if the connection and the addresses are the daemon's own, and the data half has room
//! for it ([`Rights`]). A request about a connection that is gone may have crossed the report of its release: it is
//! dropped, and counted separately.

use super::daemon::{Daemon, Ended, FromDaemon, ToDaemon};
use crate::mix::Lives;
use crate::{AtmEvent, AtmRequest, Cause, ConnId, Instant};
use aerostat_wire::{AtmAddress, Sap};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// SDUs of a quick caller that wait until their receiver is ready for them, in order.
///
/// The ATM service delivers an SDU as soon as the label is in use; the part that the SDU is for may still have to hear
/// of the connection from a daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Early<T = Vec<u8>>(VecDeque<T>);

impl<T> Default for Early<T> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<T> Early<T> {
    /// SDUs that wait on one connection at most.
    pub const MOST: usize = 64;

    /// Keeps the SDU that `copy` makes; false if there is no room for it.
    #[must_use]
    pub fn hold(&mut self, copy: impl FnOnce() -> T) -> bool {
        let room = self.0.len() < Self::MOST;
        if room {
            self.0.push_back(copy());
        }
        room
    }
    /// The SDUs, in order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter()
    }
    /// Takes all SDUs.
    #[must_use]
    pub fn take(&mut self) -> VecDeque<T> {
        core::mem::take(&mut self.0)
    }
}

/// A connection of a daemon.
#[derive(Clone, Debug)]
pub struct Handle<C> {
    /// True if the daemon called; false if it was called.
    pub outgoing: bool,
    /// The daemon may use the connection once it is up: it called, or has accepted the call.
    pub accepted: bool,
    /// The connection can be used.
    pub up: bool,
    /// Data that arrived before the data half could use the connection.
    early: Early,
    /// The data half's own state of the connection.
    pub own: C,
}

impl<C> Handle<C> {
    fn new(outgoing: bool, own: C) -> Self {
        Self {
            outgoing,
            accepted: outgoing,
            up: false,
            early: Early::default(),
            own,
        }
    }
}

/// The requests that a daemon may make to the ATM service.
pub trait Rights<C> {
    /// True if the address is the daemon's own.
    fn owns(&self, address: AtmAddress, sap: Sap) -> bool;
    /// The data half's state of a connection that the daemon opens with this [`AtmRequest::Connect`], from an address
    /// of its own; `None` if the daemon may not open it, or if there is no room.
    fn open(&self, connect: &AtmRequest, conns: &BTreeMap<ConnId, Handle<C>>) -> Option<C>;
    /// True if the daemon may be the root of point-to-multipoint connections.
    const ROOT: bool = false;
}

crate::counters! {
    /// Counters of a seat.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct SeatCounters {
        /// Requests and messages that the daemon may not send.
        pub refused: u64,
        /// Requests and messages about a connection that is gone.
        pub stale: u64,
        /// SDUs and messages that were dropped because too many waited for the daemon.
        pub dropped: u64,
    }
}

/// Where the daemon runs.
#[derive(Debug)]
enum Place<D> {
    /// Beside its data half.
    Here(D),
    /// In a process of its own.
    Elsewhere,
}

/// The seat of a daemon `D`, whose data half keeps a `C` for each connection.
#[derive(Debug)]
pub struct Seat<D: Daemon, C> {
    place: Place<D>,
    present: bool,
    /// The daemon is to run.
    wanted: bool,
    /// The daemon was told to run, and has not ended.
    told: bool,
    lives: Lives,
    listens: BTreeSet<(AtmAddress, Sap)>,
    conns: BTreeMap<ConnId, Handle<C>>,
    counters: SeatCounters,
    /// For the process.
    out: VecDeque<ToDaemon<D::To>>,
}

impl<D: Daemon, C> Seat<D, C> {
    /// A seat whose daemon is beside its data half.
    #[must_use]
    pub fn here() -> Self {
        Self::new(Place::Here(D::default()), true)
    }
    /// A seat whose daemon is in a process of its own, which has not started yet.
    #[must_use]
    pub fn elsewhere() -> Self {
        Self::new(Place::Elsewhere, false)
    }
    fn new(place: Place<D>, present: bool) -> Self {
        Self {
            place,
            present,
            wanted: false,
            told: false,
            lives: Lives::default(),
            listens: BTreeSet::new(),
            conns: BTreeMap::new(),
            counters: SeatCounters::default(),
            out: VecDeque::new(),
        }
    }

    // ---- the daemon ----

    /// The daemon is to run from now on, or no longer: see [`Self::begin`].
    pub const fn want(&mut self, wanted: bool) {
        self.wanted = wanted;
    }
    /// True if the daemon is to run.
    #[must_use]
    pub const fn is_wanted(&self) -> bool {
        self.wanted
    }
    /// True if a daemon was told to run and has not ended. Messages to it are dropped otherwise.
    #[must_use]
    pub const fn is_told(&self) -> bool {
        self.told
    }
    /// The seed of a daemon that is to be told to run now: it is present and wanted, and has not been told. The first
    /// daemon gets `seed`, as does one that stopped and did not end its life ([`Self::end_life`]).
    #[must_use]
    pub fn begin(&mut self, seed: u64) -> Option<u64> {
        let begins = self.present && self.wanted && !self.told;
        self.told |= begins;
        begins.then(|| self.lives.begin(seed))
    }
    /// A daemon that is always wanted begins, or one that runs begins anew by itself.
    pub const fn begin_anew(&mut self) {
        self.told = self.present;
    }
    /// True if no daemon came before this one.
    #[must_use]
    pub const fn is_first_life(&self) -> bool {
        self.lives.is_first()
    }
    /// The daemon has forgotten its numbers: the next one gets another seed.
    pub const fn end_life(&mut self) {
        self.lives.end();
    }
    /// The daemon, for reading, if it is beside its data half.
    #[must_use]
    pub const fn daemon(&self) -> Option<&D> {
        match &self.place {
            Place::Here(daemon) => Some(daemon),
            Place::Elsewhere => None,
        }
    }
    /// The same, for taking something from it.
    pub const fn daemon_mut(&mut self) -> Option<&mut D> {
        match &mut self.place {
            Place::Here(daemon) => Some(daemon),
            Place::Elsewhere => None,
        }
    }
    /// The daemon has started; false if it was present already.
    pub const fn came(&mut self) -> bool {
        !core::mem::replace(&mut self.present, true)
    }
    /// The daemon is gone, and its state is lost; a daemon beside its data half can be started at once. Its connections
    /// wait for [`Self::close_all`]. True if it had been told to run.
    pub fn gone(&mut self) -> bool {
        self.out.clear();
        self.lives.end();
        match &mut self.place {
            Place::Here(daemon) => *daemon = D::default(),
            Place::Elsewhere => self.present = false,
        }
        core::mem::take(&mut self.told)
    }
    /// Takes a message of the daemon. `None` if it was under way when the daemon ended, or if it is a request that the
    /// daemon may not make: see [`Self::grants`].
    #[must_use]
    pub fn hear<R: Rights<C>>(
        &mut self,
        message: FromDaemon<D::From>,
        rights: &R,
    ) -> Option<FromDaemon<D::From>> {
        match &message {
            FromDaemon::Ended(_) if !self.told => return None,
            _ if !self.told => {
                self.stale();
                return None;
            }
            FromDaemon::Atm(request) if !self.grants(request, rights) => return None,
            FromDaemon::Ended(ended) => {
                self.told = false;
                if *ended == Ended::Exits {
                    self.present = false;
                    self.lives.end();
                }
            }
            FromDaemon::Atm(_) | FromDaemon::Message(_) | FromDaemon::Trace(_) => {}
        }
        Some(message)
    }
    /// Sends a message to the daemon, if it was told to run.
    pub fn tell(&mut self, message: D::To, now: Instant) {
        match &mut self.place {
            _ if !self.told => {}
            Place::Here(daemon) => daemon.message(message, now),
            Place::Elsewhere => self.out.push_back(ToDaemon::Message(message)),
        }
    }
    /// Passes an event of the ATM service to the daemon, if it was told to run.
    pub fn tell_atm(&mut self, event: AtmEvent<&[u8]>, now: Instant) {
        match &mut self.place {
            _ if !self.told => {}
            Place::Here(daemon) => daemon.atm(event, now),
            Place::Elsewhere => self.out.push_back(ToDaemon::Atm(event.into_owned())),
        }
    }
    /// Passes on a message that waited.
    pub fn forward(&mut self, message: ToDaemon<D::To>, now: Instant) {
        match message {
            ToDaemon::Atm(event) => self.tell_atm(event.borrow(), now),
            ToDaemon::Message(message) => self.tell(message, now),
        }
    }
    /// Next message of a daemon in this process. A daemon elsewhere sends its messages from its process. What one
    /// elsewhere says comes from its process.
    #[must_use]
    pub fn poll(&mut self) -> Option<FromDaemon<D::From>> {
        match &mut self.place {
            Place::Here(daemon) => daemon.poll_output(),
            Place::Elsewhere => None,
        }
    }
    /// The next message for the daemon's process.
    #[must_use]
    pub fn poll_message(&mut self) -> Option<ToDaemon<D::To>> {
        self.out.pop_front()
    }
    /// Handles what is due in a daemon of this process.
    pub fn handle_timeout(&mut self, now: Instant) {
        if let Place::Here(daemon) = &mut self.place {
            daemon.handle_timeout(now);
        }
    }
    /// When [`Self::handle_timeout`] is next needed.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.daemon().and_then(Daemon::poll_timeout)
    }

    // ---- its connections ----

    /// Its connections.
    #[must_use]
    pub const fn conns(&self) -> &BTreeMap<ConnId, Handle<C>> {
        &self.conns
    }
    /// One of its connections.
    pub fn conn_mut(&mut self, conn: ConnId) -> Option<&mut Handle<C>> {
        self.conns.get_mut(&conn)
    }
    /// A call is offered to the daemon.
    pub fn offered(&mut self, conn: ConnId, own: C) {
        self.conns.insert(conn, Handle::new(false, own));
    }
    /// A connection can be used; false if the daemon has no such connection.
    pub fn connected(&mut self, conn: ConnId) -> bool {
        self.conns
            .get_mut(&conn)
            .map(|known| known.up = true)
            .is_some()
    }
    /// Keeps an SDU of a connection that the data half cannot use yet.
    pub fn hold(&mut self, conn: ConnId, sdu: &[u8]) {
        let known = self.conns.get_mut(&conn);
        if !known.is_some_and(|known| known.early.hold(|| sdu.to_vec())) {
            self.drop_one();
        }
    }
    /// Takes what arrived on a connection before the data half could use it.
    #[must_use]
    pub fn take_early(&mut self, conn: ConnId) -> VecDeque<Vec<u8>> {
        let known = self.conns.get_mut(&conn);
        known.map(|known| known.early.take()).unwrap_or_default()
    }
    /// A connection is gone.
    pub fn released(&mut self, conn: ConnId) -> Option<Handle<C>> {
        self.conns.remove(&conn)
    }

    /// True if the daemon may make this request. Connections that it opens or releases are recorded from then on.
    #[must_use]
    pub fn grants<R: Rights<C>>(&mut self, request: &AtmRequest, rights: &R) -> bool {
        let known = |conn: &ConnId| self.conns.contains_key(conn);
        let granted = match request {
            AtmRequest::Listen { address, sap, .. } => {
                let own = rights.owns(*address, *sap);
                if own {
                    self.listens.insert((*address, *sap));
                }
                own
            }
            AtmRequest::Unlisten { address, sap } => self.listens.remove(&(*address, *sap)),
            AtmRequest::Connect {
                conn,
                calling,
                sap,
                multipoint,
                ..
            } => {
                let fresh = conn.0 < ConnId::INCOMING && !known(conn);
                let allowed = rights.owns(*calling, *sap) && (R::ROOT || !multipoint);
                let own = rights.open(request, &self.conns);
                match own.filter(|_| fresh && allowed) {
                    None => false,
                    Some(own) => {
                        self.conns.insert(*conn, Handle::new(true, own));
                        true
                    }
                }
            }
            AtmRequest::OpenPermanent { .. } => false,
            AtmRequest::AddParty { conn, .. }
            | AtmRequest::DropParty { conn, .. }
            | AtmRequest::Accept { conn, .. }
            | AtmRequest::Release { conn, .. }
            | AtmRequest::Send { conn, .. }
                if !known(conn) =>
            {
                self.counters.stale += 1;
                return false;
            }
            AtmRequest::AddParty { .. } | AtmRequest::DropParty { .. } => R::ROOT,
            AtmRequest::Accept { conn, .. } => match self.conns.get_mut(conn) {
                Some(known) => !core::mem::replace(&mut known.accepted, true),
                None => false,
            },
            AtmRequest::Release { conn, .. } => self.conns.remove(conn).is_some(),
            AtmRequest::Send { sdu, .. } => !sdu.is_empty(),
        };
        self.counters.refused += u64::from(!granted);
        granted
    }

    /// Closes all sockets, as the operating system does when a process ends.
    #[must_use]
    pub fn close_all(&mut self) -> Vec<AtmRequest> {
        let cause = Cause::NORMAL;
        let conns = core::mem::take(&mut self.conns).into_keys();
        let releases = conns.map(|conn| AtmRequest::Release { conn, cause });
        let listens = core::mem::take(&mut self.listens).into_iter();
        let unlistens = listens.map(|(address, sap)| AtmRequest::Unlisten { address, sap });
        releases.chain(unlistens).collect()
    }

    /// The daemon sent a message that it may not send.
    pub const fn refuse(&mut self) {
        self.counters.refused += 1;
    }
    /// The daemon sent a message about something that is gone.
    pub const fn stale(&mut self) {
        self.counters.stale += 1;
    }
    /// An SDU or a message was dropped because too many waited for the daemon.
    pub const fn drop_one(&mut self) {
        self.counters.dropped += 1;
    }
    /// Counters of this seat.
    #[must_use]
    pub const fn counters(&self) -> SeatCounters {
        self.counters
    }
}
