//! Connections with clients and other servers: one table, found by peer.
//!
//! Either side may open a control VCC; any that is open is used. What is sent while a connection is being
//! set up waits in its queue; if the set-up fails the queue is lost, and the retries of the requests send
//! again. Connections opened here are released after [`IDLE`] without traffic.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use aerostat_wire::{AtmAddress, Qos, Sap, Vc};

use super::Output;
use super::params::Limits;
use crate::{AtmRequest, Cause, ConnId, Duration, Instant};

/// Silence after which a control connection opened here is released: as LANE's C12.
pub const IDLE: Duration = Duration::from_secs(1200);
/// Largest AAL5 SDU on control and data connections, octets.
pub const MAX_SDU: u16 = 1536;

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnState {
    /// Asked for by this side.
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
    /// How far it is.
    pub state: ConnState,
    /// Last sending, reception or change.
    pub used: Instant,
    /// Its label on this host's link, once open.
    pub vc: Option<Vc>,
    /// SDUs received.
    pub received: u64,
    ours: bool,
    queue: Vec<Vec<u8>>,
}

/// What became of an SDU that was handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// On its way, or waiting for its connection.
    Yes,
    /// No room for another connection, or in its queue.
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

    /// Sends on a control connection with `peer`, opening one if there is none.
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
        out.push_back(Output::Atm(AtmRequest::Connect {
            conn: id,
            calling: own,
            called: peer,
            sap: Sap::LLC,
            qos: Qos::ubr(MAX_SDU),
            multipoint: false,
        }));
        self.insert(id, peer, ConnUse::Control, ConnState::Calling, now);
        if let Some(conn) = self.conns.get_mut(&id) {
            conn.queue.push(sdu);
        }
        Sent::Yes
    }

    /// Takes in an offered call; false if there is no room for it.
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

    /// The connection can be used: sends what waited. False if it is unknown.
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
        let queue = std::mem::take(&mut conn.queue);
        out.extend(
            queue
                .into_iter()
                .map(|sdu| Output::Atm(AtmRequest::Send { conn: id, sdu })),
        );
        true
    }

    /// Notes a reception: what the connection carries and who is at the other end.
    pub(super) fn received(&mut self, id: ConnId, now: Instant) -> Option<(ConnUse, AtmAddress)> {
        let conn = self.conns.get_mut(&id)?;
        conn.used = now;
        conn.received += 1;
        Some((conn.carries, conn.peer))
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

    /// Releases the connections opened here that were idle for too long; the number of them.
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

    /// When the next connection becomes idle.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let ours = self.conns.values().filter(|conn| conn.ours);
        ours.map(|conn| conn.used + IDLE).min()
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
        self.remove(id);
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
