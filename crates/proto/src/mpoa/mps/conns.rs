//! Connections with clients and other servers: one table, found by peer.
//!
//! Either side may open a control VCC; any open connection is used. Packets that are sent while a connection is being
//! set up wait in its queue. If a set-up fails with a cause that may pass by itself, it is tried again, soon at first,
//! for as long as requests are retried ([`Again`]). Otherwise the queue is dropped, and the retries of the requests
//! send the packets again. Connections opened here are released after [`IDLE`] without traffic.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use aerostat_wire::{AtmAddress, Qos, Sap, Vc};

use super::Output;
use super::params::Limits;
use crate::retry::Backoff;
use crate::{AtmRequest, Cause, ConnId, Duration, Instant};

/// Time without traffic after which a control connection opened here is released: as C12 of LANE.
pub const IDLE: Duration = Duration::from_secs(1200);
/// Largest AAL5 SDU on control and data connections, octets.
pub const MAX_SDU: u16 = 1536;

/// State of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnState {
    /// This side calls, or will call again.
    Calling,
    /// Accepted, not yet usable.
    Accepted,
    /// Usable.
    Open,
}

/// What a connection carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnUse {
    /// MPOA and NHRP packets.
    Control,
    /// A shortcut that ends at this router.
    Shortcut,
}

/// One connection.
#[derive(Clone, Debug)]
pub(super) struct Conn {
    /// ATM address of the other end.
    pub peer: AtmAddress,
    /// What it carries.
    pub carries: ConnUse,
    /// Its state.
    pub state: ConnState,
    /// Time of the last sending, reception or change.
    pub used: Instant,
    /// Its label on this host's link, once open.
    pub vc: Option<Vc>,
    /// SDUs received.
    pub received: u64,
    ours: bool,
    queue: Vec<Vec<u8>>,
    backoff: Backoff,
    /// Time of the first call.
    since: Instant,
    /// Time of the next call, after a call that failed.
    again: Option<Instant>,
}

/// How calls that failed are made again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Again {
    /// Longest wait between two calls.
    pub most: Duration,
    /// No call is made after this time since the first call: the packets in the queue are of no use by then.
    pub limit: Duration,
}

/// What happened to an SDU that was handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// The SDU was sent, or waits for its connection.
    Yes,
    /// There is no room for another connection, or in its queue.
    Full,
}

/// The table.
#[derive(Clone, Debug)]
pub(super) struct Conns {
    limits: Limits,
    next: u32,
    conns: BTreeMap<ConnId, Conn>,
    by_peer: BTreeMap<AtmAddress, BTreeSet<ConnId>>,
}

impl Conns {
    pub(super) const fn new(limits: Limits) -> Self {
        Self {
            limits,
            next: 1,
            conns: BTreeMap::new(),
            by_peer: BTreeMap::new(),
        }
    }

    /// Sends an SDU on a control connection with `peer`; opens a connection if there is none.
    pub(super) fn send(
        &mut self,
        own: AtmAddress,
        peer: AtmAddress,
        sdu: Vec<u8>,
        now: Instant,
        out: &mut VecDeque<Output>,
    ) -> Sent {
        if let Some(id) = self.control_with(peer)
            && let Some(conn) = self.conns.get_mut(&id)
        {
            conn.used = now;
            if conn.state == ConnState::Open {
                out.push_back(Output::Atm(AtmRequest::Send { conn: id, sdu }));
            } else if conn.queue.len() < self.limits.queue {
                conn.queue.push(sdu);
            } else {
                return Sent::Full;
            }
            return Sent::Yes;
        }
        if self.conns.len() >= self.limits.connections {
            return Sent::Full;
        }
        let id = self.free_id();
        out.push_back(call(id, own, peer));
        self.insert(id, peer, ConnUse::Control, ConnState::Calling, now);
        if let Some(conn) = self.conns.get_mut(&id) {
            conn.queue.push(sdu);
        }
        Sent::Yes
    }

    /// Accepts an offered call; false if there is no room for it.
    pub(super) fn accept(
        &mut self,
        id: ConnId,
        peer: AtmAddress,
        carries: ConnUse,
        now: Instant,
    ) -> bool {
        let with_peer = self.by_peer.get(&peer).map_or(0, BTreeSet::len);
        if self.conns.len() >= self.limits.connections
            || with_peer >= self.limits.connections_per_peer
            || self.conns.contains_key(&id)
        {
            return false;
        }
        self.insert(id, peer, carries, ConnState::Accepted, now);
        true
    }

    /// The connection can be used: sends the waiting SDUs. False if the connection is unknown.
    pub(super) fn opened(
        &mut self,
        id: ConnId,
        vc: Vc,
        now: Instant,
        out: &mut VecDeque<Output>,
    ) -> bool {
        let Some(conn) = self.conns.get_mut(&id) else {
            return false;
        };
        conn.state = ConnState::Open;
        conn.vc = Some(vc);
        conn.used = now;
        let (peer, control) = (conn.peer, conn.carries == ConnUse::Control);
        let mut queue = std::mem::take(&mut conn.queue);
        // The peer's own call succeeded while ours waited for its next try.
        if control && let Some(waiting) = self.waiting_for(peer) {
            queue.extend(self.remove(waiting).into_iter().flat_map(|conn| conn.queue));
        }
        out.extend(
            queue
                .into_iter()
                .map(|sdu| Output::Atm(AtmRequest::Send { conn: id, sdu })),
        );
        true
    }

    /// Notes a reception; returns the use of the connection and its other end.
    pub(super) fn received(&mut self, id: ConnId, now: Instant) -> Option<(ConnUse, AtmAddress)> {
        let conn = self.conns.get_mut(&id)?;
        conn.used = now;
        conn.received += 1;
        Some((conn.carries, conn.peer))
    }

    /// A connection is gone: `None` if it is kept for another call, or unknown.
    pub(super) fn released(
        &mut self,
        id: ConnId,
        cause: Cause,
        again: Again,
        now: Instant,
        out: &mut VecDeque<Output>,
    ) -> Option<Conn> {
        let conn = self.conns.get_mut(&id)?;
        let failed = conn.ours && conn.state == ConnState::Calling;
        let peer = conn.peer;
        let keep = failed && cause.is_temporary() && now.since(conn.since) < again.limit;
        if keep {
            let wait = conn.backoff.wait(Some(cause), Duration::ZERO, again.most);
            conn.again = Some(now + wait);
        }
        if keep && !self.is_open(peer) {
            return None;
        }
        let mut gone = self.remove(id)?;
        // The peer's own call succeeded meanwhile.
        if failed && let Some(open) = self.control_with(peer).filter(|_| self.is_open(peer)) {
            let queue = std::mem::take(&mut gone.queue).into_iter();
            out.extend(queue.map(|sdu| Output::Atm(AtmRequest::Send { conn: open, sdu })));
        }
        Some(gone)
    }

    /// Makes the calls that are due again.
    pub(super) fn call_again(&mut self, own: AtmAddress, now: Instant, out: &mut VecDeque<Output>) {
        for (id, conn) in &mut self.conns {
            if conn.again.is_some_and(|at| at <= now) {
                conn.again = None;
                out.push_back(call(*id, own, conn.peer));
            }
        }
    }

    /// Forgets a connection.
    pub(super) fn remove(&mut self, id: ConnId) -> Option<Conn> {
        let conn = self.conns.remove(&id)?;
        if let Some(ids) = self.by_peer.get_mut(&conn.peer) {
            ids.remove(&id);
            if ids.is_empty() {
                self.by_peer.remove(&conn.peer);
            }
        }
        Some(conn)
    }

    /// Releases the connections opened here that were idle for too long; returns their number.
    pub(super) fn release_idle(&mut self, now: Instant, out: &mut VecDeque<Output>) -> usize {
        let idle: Vec<ConnId> = self
            .conns
            .iter()
            .filter(|(_, conn)| conn.ours && conn.used + IDLE <= now)
            .map(|(id, _)| *id)
            .collect();
        for id in &idle {
            self.release(*id, out);
        }
        idle.len()
    }

    /// Releases everything.
    pub(super) fn release_all(&mut self, out: &mut VecDeque<Output>) {
        let ids: Vec<ConnId> = self.conns.keys().copied().collect();
        for id in ids {
            self.release(id, out);
        }
    }

    /// When the next connection becomes idle, or is called again.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let ours = self.conns.values().filter(|conn| conn.ours);
        let times = ours.flat_map(|conn| [Some(conn.used + IDLE), conn.again]);
        times.flatten().min()
    }

    /// True if a control connection with `peer` is usable.
    pub(super) fn is_open(&self, peer: AtmAddress) -> bool {
        self.control_with(peer)
            .and_then(|id| self.conns.get(&id))
            .is_some_and(|conn| conn.state == ConnState::Open)
    }

    /// All connections.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&ConnId, &Conn)> {
        self.conns.iter()
    }

    fn release(&mut self, id: ConnId, out: &mut VecDeque<Output>) {
        // A connection that waits for its next call does not exist in the network.
        if self.remove(id).is_some_and(|conn| conn.again.is_some()) {
            return;
        }
        out.push_back(Output::Atm(AtmRequest::Release {
            conn: id,
            cause: Cause::NORMAL,
        }));
    }

    /// A control connection with `peer`, an open one first.
    fn control_with(&self, peer: AtmAddress) -> Option<ConnId> {
        let ids = self.by_peer.get(&peer)?;
        ids.iter()
            .filter_map(|id| self.conns.get(id).map(|conn| (*id, conn)))
            .filter(|(_, conn)| conn.carries == ConnUse::Control)
            .min_by_key(|(id, conn)| (conn.state != ConnState::Open, *id))
            .map(|(id, _)| id)
    }

    /// The connection with `peer` that waits to be called again.
    fn waiting_for(&self, peer: AtmAddress) -> Option<ConnId> {
        let mut ids = self.by_peer.get(&peer)?.iter().copied();
        ids.find(|id| self.conns.get(id).is_some_and(|conn| conn.again.is_some()))
    }

    fn insert(
        &mut self,
        id: ConnId,
        peer: AtmAddress,
        carries: ConnUse,
        state: ConnState,
        now: Instant,
    ) {
        let conn = Conn {
            peer,
            carries,
            state,
            used: now,
            vc: None,
            received: 0,
            ours: state == ConnState::Calling,
            queue: Vec::new(),
            backoff: Backoff::of(&peer),
            since: now,
            again: None,
        };
        self.conns.insert(id, conn);
        self.by_peer.entry(peer).or_default().insert(id);
    }

    fn free_id(&mut self) -> ConnId {
        loop {
            let id = ConnId(self.next);
            self.next = (self.next + 1) % ConnId::INCOMING;
            if !self.conns.contains_key(&id) {
                return id;
            }
        }
    }
}

fn call(conn: ConnId, calling: AtmAddress, called: AtmAddress) -> Output {
    Output::Atm(AtmRequest::Connect {
        conn,
        calling,
        called,
        sap: Sap::LLC,
        qos: Qos::ubr(MAX_SDU),
        multipoint: false,
    })
}
