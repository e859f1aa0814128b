//! The seat of a daemon beside its data half: what an operating system does for a process that uses the ATM service.
//!
//! **Purpose.** A daemon runs here or in a process of its own, and its data half need not care: it tells the seat, and polls it. The
//! seat knows the listeners and connections of the daemon, so that they end with it, and lets it ask for nothing that is not its own.
//!
//! **Trust.** What a daemon asks for is granted if the connection is its own, the addresses are, and the data half has room for
//! it ([`Rights`]). A request about a connection that is gone may have crossed the news of that: it is dropped, and counted apart.

use super::daemon::{Daemon, FromDaemon, ToDaemon};
use crate::{AtmEvent, AtmRequest, Cause, ConnId, Instant};
use aerostat_wire::{AtmAddress, Sap};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A connection of a daemon.
#[derive(Clone, Debug)]
pub struct Handle<C> {
    /// The daemon called; else it was called.
    pub outgoing: bool,
    /// The daemon may use it once it is up: it called, or has accepted the call.
    pub accepted: bool,
    /// The connection can be used.
    pub up: bool,
    /// What the data half knows of it.
    pub own: C,
}

/// What a daemon may ask of the ATM service.
pub trait Rights<C> {
    /// True if it is the daemon's own address.
    fn owns(&self, address: AtmAddress, sap: Sap) -> bool;
    /// What the data half knows of a connection that the daemon opens with this [`AtmRequest::Connect`], from an address of its own;
    /// `None` if the daemon may not, or if there is no room.
    fn open(&self, connect: &AtmRequest, conns: &BTreeMap<ConnId, Handle<C>>) -> Option<C>;
    /// True if it may be the root of point-to-multipoint connections.
    const ROOT: bool = false;
}

/// What happened at a seat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SeatCounters {
    /// What the daemon said and may not.
    pub refused: u64,
    /// What it said of a connection that is gone.
    pub stale: u64,
}

/// Where the daemon is.
#[derive(Debug)]
enum Place<D> {
    /// Beside its data half.
    Here(D),
    /// In a process of its own.
    Elsewhere,
}

/// The seat of a daemon `D`, whose data half knows a `C` of each connection.
#[derive(Debug)]
pub struct Seat<D: Daemon, C> {
    place: Place<D>,
    present: bool,
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
    /// A seat whose daemon is in a process of its own, which has not come yet.
    #[must_use]
    pub fn elsewhere() -> Self {
        Self::new(Place::Elsewhere, false)
    }
    fn new(place: Place<D>, present: bool) -> Self {
        Self {
            place,
            present,
            listens: BTreeSet::new(),
            conns: BTreeMap::new(),
            counters: SeatCounters::default(),
            out: VecDeque::new(),
        }
    }

    // ---- the daemon ----

    /// True if there is a daemon to talk to.
    #[must_use]
    pub const fn is_present(&self) -> bool {
        self.present
    }
    /// The daemon, to look at, if it is beside its data half.
    #[must_use]
    pub const fn daemon(&self) -> Option<&D> {
        match &self.place {
            Place::Here(daemon) => Some(daemon),
            Place::Elsewhere => None,
        }
    }
    /// The same, to take something from it.
    pub const fn daemon_mut(&mut self) -> Option<&mut D> {
        match &mut self.place {
            Place::Here(daemon) => Some(daemon),
            Place::Elsewhere => None,
        }
    }
    /// The daemon is there, or back; false if it was.
    pub const fn came(&mut self) -> bool {
        !core::mem::replace(&mut self.present, true)
    }
    /// The daemon is gone, and has forgotten everything; one beside its data half can be told to start at once. Its connections
    /// wait for [`Self::close_all`].
    pub fn gone(&mut self) {
        self.out.clear();
        match &mut self.place {
            Place::Here(daemon) => *daemon = D::default(),
            Place::Elsewhere => self.present = false,
        }
    }
    /// The process is about to end, and hears nothing any more.
    pub const fn leaves(&mut self) {
        self.present = false;
    }
    /// Tells the daemon, if there is one.
    pub fn tell(&mut self, message: D::To, now: Instant) {
        match &mut self.place {
            _ if !self.present => {}
            Place::Here(daemon) => daemon.message(message, now),
            Place::Elsewhere => self.out.push_back(ToDaemon::Message(message)),
        }
    }
    /// Tells the daemon of an event of the ATM service, if there is one.
    pub fn tell_atm(&mut self, event: AtmEvent<&[u8]>, now: Instant) {
        match &mut self.place {
            _ if !self.present => {}
            Place::Here(daemon) => daemon.atm(event, now),
            Place::Elsewhere => self.out.push_back(ToDaemon::Atm(event.into_owned())),
        }
    }
    /// What a daemon here says next. What one elsewhere says comes from its process.
    #[must_use]
    pub fn poll(&mut self) -> Option<FromDaemon<D::From>> {
        match &mut self.place {
            Place::Here(daemon) => daemon.poll_output(),
            Place::Elsewhere => None,
        }
    }
    /// The next message for the process elsewhere.
    #[must_use]
    pub fn poll_message(&mut self) -> Option<ToDaemon<D::To>> {
        self.out.pop_front()
    }
    /// Fires whatever is due in a daemon here.
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
    /// One of them.
    pub fn conn_mut(&mut self, conn: ConnId) -> Option<&mut Handle<C>> {
        self.conns.get_mut(&conn)
    }
    /// A call is offered to it.
    pub fn offered(&mut self, conn: ConnId, own: C) {
        let (outgoing, accepted, up) = (false, false, false);
        let handle = Handle {
            outgoing,
            accepted,
            up,
            own,
        };
        self.conns.insert(conn, handle);
    }
    /// A connection can be used; false if it has no such connection.
    pub fn connected(&mut self, conn: ConnId) -> bool {
        self.conns
            .get_mut(&conn)
            .map(|known| known.up = true)
            .is_some()
    }
    /// A connection is gone.
    pub fn released(&mut self, conn: ConnId) -> Option<Handle<C>> {
        self.conns.remove(&conn)
    }

    /// Whether the daemon may ask for this. What it opens or gives up is known from then on.
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
                        let (outgoing, accepted, up) = (true, true, false);
                        let handle = Handle {
                            outgoing,
                            accepted,
                            up,
                            own,
                        };
                        self.conns.insert(*conn, handle);
                        true
                    }
                }
            }
            AtmRequest::OpenPermanent { .. } => false,
            AtmRequest::AddParty { conn, .. }
            | AtmRequest::DropParty { conn, .. }
            | AtmRequest::Accept { conn }
            | AtmRequest::Release { conn, .. }
            | AtmRequest::Send { conn, .. }
                if !known(conn) =>
            {
                self.counters.stale += 1;
                return false;
            }
            AtmRequest::AddParty { .. } | AtmRequest::DropParty { .. } => R::ROOT,
            AtmRequest::Accept { conn } => match self.conns.get_mut(conn) {
                Some(known) => !core::mem::replace(&mut known.accepted, true),
                None => false,
            },
            AtmRequest::Release { conn, .. } => self.conns.remove(conn).is_some(),
            AtmRequest::Send { sdu, .. } => !sdu.is_empty(),
        };
        self.counters.refused += u64::from(!granted);
        granted
    }

    /// What the operating system does when a process is gone: its sockets close.
    #[must_use]
    pub fn close_all(&mut self) -> Vec<AtmRequest> {
        let cause = Cause::NORMAL;
        let conns = core::mem::take(&mut self.conns).into_keys();
        let releases = conns.map(|conn| AtmRequest::Release { conn, cause });
        let listens = core::mem::take(&mut self.listens).into_iter();
        let unlistens = listens.map(|(address, sap)| AtmRequest::Unlisten { address, sap });
        releases.chain(unlistens).collect()
    }

    /// The daemon said what it may not.
    pub const fn refuse(&mut self) {
        self.counters.refused += 1;
    }
    /// The daemon said something that is over.
    pub const fn stale(&mut self) {
        self.counters.stale += 1;
    }
    /// What happened here.
    #[must_use]
    pub const fn counters(&self) -> SeatCounters {
        self.counters
    }
}
