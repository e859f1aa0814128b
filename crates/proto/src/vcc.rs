//! The connections (VCCs) of one user of the ATM service, by the address of the other end.
//!
//! **Purpose.** Entities of LANE, MPOA, NHRP and Classical IP call peers, wait for the connection, share it, and
//! release it when it was idle. [`VccTable`] is the part of this that all of them have in common; what an entity does
//! with its connections stays with the entity.
//!
//! **Objects and owners.** The table owns the *connections* ([`Vcc`]: peer, use, label, time of the last use, and what
//! the entity stores with it), the ids of calls that the entity makes, and the *waiting rooms*: SDUs for a peer that
//! has no open connection yet. The table emits nothing by itself: its methods return the requests for the ATM service,
//! so the entity decides their order among its other outputs.
//!
//! **States of a connection**: called or accepted (no label yet), open (with a label), or waiting for its next call
//! after a call that failed ([`VccTable::call_later`]). A connection that waits for its next call keeps its id and its
//! place in the limits, but the network does not know it. A connection that is gone is not in the table.
//!
//! **Rules.** A connection serves its peer and its use, no matter which end has called. Of several, the open ones come
//! first, then the lowest id, so own calls come before those of the peer. The first connection that opens takes all
//! that waits, and ends the wait for the next call. After a call that failed, the entity decides: it calls later, or it
//! forgets what waits ([`VccTable::forget`]).
//!
//! **Timers**: the end of a connection's idle time, the next call.
//!
//! **Bounds.** The entity limits its connections ([`VccTable::len`], [`VccTable::count`]) and the SDUs of a room
//! ([`Bounds::held`]). A room exists only after a call that the entity was free to make.
//!
//! **Users**, and what is not shared because their rules differ:
//!
//! | user | who calls | two calls at once | what waits | idle time | limit | refused call |
//! |---|---|---|---|---|---|---|
//! | MPOA server, control | both ends | first open | SDUs, here | own calls | all, by peer | again until p5 |
//! | MPOA client, control | both ends | first open | SDUs, here | never | by use | again until p5 |
//! | MPOA client, shortcuts | both ends | both stay | no SDU | data plane | by use, by peer | hold-down of flow |
//! | NHRP client, server | both ends | first open | SDUs, here | never | all | requests again soon |
//! | NHRP client, shortcuts | own calls | cannot be | no SDU | last packet sent | all | hold-down of entry |
//! | Classical IP, next hop | both ends | both stay | packets, at entry | last packet | all, by peer | hold of entry |
//! | Classical IP, server | own calls | cannot be | requests, at entry | never | all | next server |
//! | LANE client, data direct | both ends | lower caller wins | frames elsewhere | data plane | by use | hold of peer |
//! | LANE client, servers | by use | cannot be | no SDU | never | by use | join fails |
//!
//! A sender of a LANE server's tree calls leaves, not peers; a LES reports to its LECS on one connection with a fixed
//! id; a socket has one connection for its whole life. These users never look for a connection by peer.
//!
//! **Deviations**: packets of Classical IP wait at their next hop and not here, because they wait for its ATM address
//! as well.

use crate::{AtmRequest, Backoff, Cause, ConnId, Deadlines, Duration, Instant};
use aerostat_wire::{AtmAddress, Qos, Sap, Vc};
use std::collections::{BTreeMap, BTreeSet};

/// One connection with what its entity stores with it (`I`). Its peer, its use (`U`) and its caller never change.
#[derive(Clone, Debug)]
pub(crate) struct Vcc<U, I> {
    peer: AtmAddress,
    carries: U,
    outgoing: bool,
    vc: Option<Vc>,
    used: Instant,
    idle: Option<Duration>,
    /// Data that the entity stores with the connection.
    pub(crate) info: I,
}

impl<U: Copy, I> Vcc<U, I> {
    /// A connection with this label, or without a label while it is not open; last used at `now`.
    pub(crate) const fn new(
        (peer, carries): Route<U>,
        outgoing: bool,
        vc: Option<Vc>,
        info: I,
        now: Instant,
    ) -> Self {
        Self {
            peer,
            carries,
            outgoing,
            vc,
            used: now,
            idle: None,
            info,
        }
    }
    /// ATM address of the other end.
    pub(crate) const fn peer(&self) -> AtmAddress {
        self.peer
    }
    /// Use of the connection.
    pub(crate) const fn carries(&self) -> U {
        self.carries
    }
    /// True if the entity has called, false if the peer has.
    pub(crate) const fn outgoing(&self) -> bool {
        self.outgoing
    }
    /// Its label on this host's link, once it is open.
    pub(crate) const fn vc(&self) -> Option<Vc> {
        self.vc
    }
    /// Time of the last use.
    pub(crate) const fn used(&self) -> Instant {
        self.used
    }
    /// True if SDUs can be sent on it.
    pub(crate) const fn is_open(&self) -> bool {
        self.vc.is_some()
    }
}

/// A call to make.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    /// Address of this end.
    pub(crate) calling: AtmAddress,
    /// Address of the peer.
    pub(crate) called: AtmAddress,
    /// Protocol that the connection carries, as the peer's listener describes it.
    pub(crate) sap: Sap,
    /// Traffic in both directions.
    pub(crate) qos: Qos,
}

impl Call {
    /// The request that makes this call, with the id of its connection.
    pub(crate) const fn request(self, conn: ConnId) -> AtmRequest {
        let Self {
            calling,
            called,
            sap,
            qos,
        } = self;
        AtmRequest::Connect {
            conn,
            calling,
            called,
            sap,
            qos,
            multipoint: false,
        }
    }
}

/// Room that is left for an SDU and for a new connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Number of SDUs that may wait for one peer.
    pub(crate) held: usize,
    /// True if there is room for another connection.
    pub(crate) dial: bool,
}

/// Outcome of an SDU that is offered for a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Offered {
    /// A connection is open: this request sends the SDU.
    Send(AtmRequest),
    /// The SDU waits for a call that is under way, or for the next call.
    Held,
    /// The SDU waits, and no call is under way: the entity must make one.
    Dial,
    /// There is no room for the SDU, or for its connection.
    Full,
}

/// SDUs that wait for a connection.
#[derive(Clone, Debug)]
struct Room {
    held: Vec<Vec<u8>>,
    /// When the first SDU began to wait.
    since: Instant,
    /// Waits between calls that failed.
    backoff: Option<Backoff>,
}

impl Room {
    const fn new(since: Instant) -> Self {
        Self {
            held: Vec::new(),
            since,
            backoff: None,
        }
    }
}

/// A peer and a use: what an SDU is for.
pub(crate) type Route<U> = (AtmAddress, U);

/// The table. `U` is the use of a connection, `I` what the entity stores with it.
#[derive(Clone, Debug)]
pub(crate) struct VccTable<U, I> {
    last_id: u32,
    vccs: BTreeMap<ConnId, Vcc<U, I>>,
    by_peer: BTreeSet<(AtmAddress, ConnId)>,
    counts: BTreeMap<U, usize>,
    idle: Deadlines<ConnId>,
    rooms: BTreeMap<Route<U>, Room>,
    /// Connections that wait for their next call.
    calls: Deadlines<ConnId>,
}

impl<U, I> Default for VccTable<U, I> {
    fn default() -> Self {
        Self {
            last_id: 0,
            vccs: BTreeMap::new(),
            by_peer: BTreeSet::new(),
            counts: BTreeMap::new(),
            idle: Deadlines::default(),
            rooms: BTreeMap::new(),
            calls: Deadlines::default(),
        }
    }
}

impl<U: Copy + Ord, I> VccTable<U, I> {
    /// An empty table whose first own call gets the id after `last`.
    pub(crate) fn after(last: ConnId) -> Self {
        Self {
            last_id: last.0,
            ..Self::default()
        }
    }

    // ---- look-ups ----

    /// Id of the latest own call.
    pub(crate) const fn last_id(&self) -> ConnId {
        ConnId(self.last_id)
    }
    /// Number of connections, open or not.
    pub(crate) fn len(&self) -> usize {
        self.vccs.len()
    }
    /// Number of connections that carry this use, open or not.
    pub(crate) fn count(&self, carries: U) -> usize {
        self.counts.get(&carries).copied().unwrap_or_default()
    }
    /// The connection with this id.
    pub(crate) fn get(&self, conn: ConnId) -> Option<&Vcc<U, I>> {
        self.vccs.get(&conn)
    }
    /// Data that the entity stores with the connection.
    pub(crate) fn info(&mut self, conn: ConnId) -> Option<&mut I> {
        self.vccs.get_mut(&conn).map(|vcc| &mut vcc.info)
    }
    /// All connections, by id.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (ConnId, &Vcc<U, I>)> {
        self.vccs.iter().map(|(conn, vcc)| (*conn, vcc))
    }
    /// The connections with `peer`, lowest id first.
    pub(crate) fn with(&self, peer: AtmAddress) -> impl Iterator<Item = (ConnId, &Vcc<U, I>)> {
        let ids = (peer, ConnId(0))..=(peer, ConnId(u32::MAX));
        let ids = self.by_peer.range(ids).map(|(_, conn)| *conn);
        ids.filter_map(|conn| Some((conn, self.vccs.get(&conn)?)))
    }
    /// The connections with addresses of the end system of `peer`, whatever their selector.
    pub(crate) fn with_end_system(
        &self,
        peer: &AtmAddress,
    ) -> impl Iterator<Item = (ConnId, &Vcc<U, I>)> {
        let [first, last] = [0, u8::MAX].map(|selector| peer.with_selector(selector));
        let ids = (first, ConnId(0))..=(last, ConnId(u32::MAX));
        let ids = self.by_peer.range(ids).map(|(_, conn)| *conn);
        ids.filter_map(|conn| Some((conn, self.vccs.get(&conn)?)))
    }
    /// The connection that carries this use with `peer`: an open one first, then the lowest id.
    pub(crate) fn best(&self, peer: AtmAddress, carries: U) -> Option<ConnId> {
        let same = self.with(peer).filter(|(_, vcc)| vcc.carries == carries);
        let best = same.min_by_key(|(conn, vcc)| (!vcc.is_open(), *conn));
        best.map(|(conn, _)| conn)
    }

    // ---- life ----

    /// Adds a call to the table. Returns its new id with the request that makes it.
    pub(crate) fn dial(
        &mut self,
        call: Call,
        carries: U,
        info: I,
        now: Instant,
    ) -> (ConnId, AtmRequest) {
        let conn = self.add(call.called, carries, info, now);
        (conn, call.request(conn))
    }
    /// Adds a connection that a request of another kind opens, or a call to another address of the peer. Returns its
    /// new id.
    pub(crate) fn add(&mut self, peer: AtmAddress, carries: U, info: I, now: Instant) -> ConnId {
        let conn = self.free_id();
        self.insert(conn, (peer, carries), true, info, now);
        conn
    }
    /// Adds an offered call to the table. Returns the request that accepts it.
    pub(crate) fn accept(
        &mut self,
        conn: ConnId,
        peer: AtmAddress,
        carries: U,
        info: I,
        now: Instant,
    ) -> AtmRequest {
        self.insert(conn, (peer, carries), false, info, now);
        AtmRequest::Accept { conn, terms: None }
    }
    /// Adds a connection that exists already: another part of the entity had it before.
    pub(crate) fn adopt(&mut self, conn: ConnId, vcc: Vcc<U, I>) {
        self.remove(conn);
        self.by_peer.insert((vcc.peer, conn));
        *self.counts.entry(vcc.carries).or_default() += 1;
        self.vccs.insert(conn, vcc);
    }
    /// A connection is open. Returns it with the requests that send what has waited for it; `None` if the connection is
    /// unknown.
    pub(crate) fn opened(
        &mut self,
        conn: ConnId,
        vc: Vc,
        now: Instant,
    ) -> Option<(&Vcc<U, I>, Vec<AtmRequest>)> {
        let vcc = self.vccs.get_mut(&conn)?;
        vcc.vc = Some(vc);
        let route = (vcc.peer, vcc.carries);
        self.touch(conn, now);
        let others = self
            .with(route.0)
            .filter(|(_, other)| other.carries == route.1);
        let waiting = others.filter(|(id, _)| self.waits_to_call(*id));
        for other in waiting.map(|(id, _)| id).collect::<Vec<_>>() {
            self.remove(other);
        }
        let held = self.take_held(route).into_iter();
        let sends = held.map(|sdu| AtmRequest::Send { conn, sdu });
        Some((self.vccs.get(&conn)?, sends.collect()))
    }
    /// Removes a connection that is gone. What waits for its peer stays.
    pub(crate) fn remove(&mut self, conn: ConnId) -> Option<Vcc<U, I>> {
        let gone = self.vccs.remove(&conn)?;
        self.by_peer.remove(&(gone.peer, conn));
        if let Some(count) = self.counts.get_mut(&gone.carries) {
            *count -= 1;
        }
        self.idle.set(conn, None);
        self.calls.set(conn, None);
        Some(gone)
    }
    /// Removes a connection. Returns the request that releases it, if the network knows it.
    pub(crate) fn release(&mut self, conn: ConnId) -> Option<AtmRequest> {
        let known = !self.waits_to_call(conn);
        let cause = Cause::NORMAL;
        self.remove(conn)?;
        known.then_some(AtmRequest::Release { conn, cause })
    }
    /// Removes everything; ids continue. Returns the requests that release the connections.
    pub(crate) fn release_all(&mut self) -> Vec<AtmRequest> {
        self.rooms.clear();
        let all: Vec<ConnId> = self.vccs.keys().copied().collect();
        all.into_iter()
            .filter_map(|conn| self.release(conn))
            .collect()
    }

    fn insert(
        &mut self,
        conn: ConnId,
        (peer, carries): Route<U>,
        outgoing: bool,
        info: I,
        now: Instant,
    ) {
        let vcc = Vcc::new((peer, carries), outgoing, None, info, now);
        self.adopt(conn, vcc);
    }
    fn free_id(&mut self) -> ConnId {
        loop {
            self.last_id = (self.last_id + 1) % ConnId::INCOMING;
            let conn = ConnId(self.last_id);
            if !self.vccs.contains_key(&conn) {
                return conn;
            }
        }
    }

    // ---- waiting ----

    /// Sends an SDU on the best connection with `peer`, or lets it wait.
    pub(crate) fn offer(
        &mut self,
        route: Route<U>,
        sdu: Vec<u8>,
        bounds: Bounds,
        now: Instant,
    ) -> Offered {
        let best = self.best(route.0, route.1);
        if let Some(conn) = best
            && self.vccs.get(&conn).is_some_and(Vcc::is_open)
        {
            self.touch(conn, now);
            return Offered::Send(AtmRequest::Send { conn, sdu });
        }
        let under_way = best.is_some();
        let waiting = self.rooms.get(&route);
        let waiting = waiting.map_or(0, |room| room.held.len());
        if waiting >= bounds.held || !(under_way || bounds.dial) {
            return Offered::Full;
        }
        let room = self.rooms.entry(route);
        let room = room.or_insert_with(|| Room::new(now));
        room.held.push(sdu);
        match best {
            Some(conn) => {
                self.touch(conn, now);
                Offered::Held
            }
            None => Offered::Dial,
        }
    }
    /// Forgets what waits for `peer`, unless a connection is under way. Returns the number of SDUs that are lost.
    pub(crate) fn forget(&mut self, route: Route<U>) -> usize {
        if self.best(route.0, route.1).is_some() {
            return 0;
        }
        self.take_held(route).len()
    }
    fn take_held(&mut self, route: Route<U>) -> Vec<Vec<u8>> {
        let room = self.rooms.remove(&route);
        room.map_or_else(Vec::new, |room| room.held)
    }

    /// Since when SDUs wait for `peer`; `None` if no SDU waits.
    pub(crate) fn waits_since(&self, route: Route<U>) -> Option<Instant> {
        self.rooms.get(&route).map(|room| room.since)
    }
    /// A call for what waits has failed: the next call is made after a wait ([`Backoff`]) of `most` at most. False if
    /// nothing waits.
    pub(crate) fn call_later(
        &mut self,
        conn: ConnId,
        backoff: Backoff,
        (cause, most): (Cause, Duration),
        now: Instant,
    ) -> bool {
        let route = self.vccs.get(&conn).map(|vcc| (vcc.peer, vcc.carries));
        let Some(room) = route.and_then(|route| self.rooms.get_mut(&route)) else {
            return false;
        };
        let backoff = room.backoff.get_or_insert(backoff);
        let wait = backoff.wait(Some(cause), Duration::ZERO, most);
        self.calls.set(conn, Some(now + wait));
        true
    }
    /// True if the connection waits for its next call.
    pub(crate) fn waits_to_call(&self, conn: ConnId) -> bool {
        self.calls.at(&conn).is_some()
    }
    /// Takes the connections whose next call is due. The entity calls, or removes them.
    pub(crate) fn calls_due(&mut self, now: Instant) -> Vec<ConnId> {
        let due = self.calls.due(now);
        for conn in &due {
            self.calls.set(*conn, None);
        }
        due
    }

    // ---- time ----

    /// The connection was used at `now`: its idle time begins anew.
    pub(crate) fn touch(&mut self, conn: ConnId, now: Instant) {
        if let Some(vcc) = self.vccs.get_mut(&conn) {
            vcc.used = now;
            self.idle.set(conn, vcc.idle.map(|idle| now + idle));
        }
    }
    /// Sets the idle time of a connection; zero means that it is never idle.
    pub(crate) fn idle_after(&mut self, conn: ConnId, idle: Duration) {
        if let Some(vcc) = self.vccs.get_mut(&conn) {
            vcc.idle = Some(idle).filter(|idle| !idle.is_zero());
            let at = vcc.idle.map(|idle| vcc.used + idle);
            self.idle.set(conn, at);
        }
    }
    /// The connections whose idle time is over. They stay until they are released or touched.
    pub(crate) fn idle(&self, now: Instant) -> Vec<ConnId> {
        self.idle.due(now)
    }
    /// When a connection becomes idle, or a call is due.
    pub(crate) fn next(&self) -> Option<Instant> {
        [self.idle.next(), self.calls.next()]
            .into_iter()
            .flatten()
            .min()
    }
}

#[cfg(test)]
mod tests;
