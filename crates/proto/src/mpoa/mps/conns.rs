//! Connections with clients and other servers, in the table of connections by peer ([`crate::vcc`]).
//!
//! Either side may open a control VCC; any open connection is used. Packets that are sent while a connection is being
//! set up wait in its queue. If a set-up fails with a cause that may pass by itself, it is tried again, soon at first,
//! for as long as requests are retried ([`Again`]). Otherwise the queue is dropped, and the retries of the requests
//! send the packets again. Connections opened here are released after [`IDLE`] without traffic.

use std::collections::VecDeque;

use aerostat_wire::{AtmAddress, Qos, Sap, Vc};

use super::Output;
use super::params::Limits;
use crate::retry::Backoff;
use crate::vcc::{Bounds, Call, Offered, Vcc, VccTable};
use crate::{Cause, ConnId, Duration, Instant};

/// Time without traffic after which a control connection opened here is released: as C12 of LANE.
pub const IDLE: Duration = Duration::from_secs(1200);
/// Largest AAL5 SDU on control and data connections, octets.
pub const MAX_SDU: u16 = 1536;

aerostat_wire::named! {
    /// State of a connection.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ConnState {
        /// This side calls, or will call again.
        Calling = "Calling",
        /// Accepted, not yet usable.
        Accepted = "Accepted",
        /// Usable.
        Open = "Open",
    }
}

aerostat_wire::named! {
    /// Use of a connection.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum ConnUse {
        /// MPOA and NHRP packets.
        Control = "Control",
        /// A shortcut that ends at this router.
        Shortcut = "Shortcut",
    }
}

/// Data that the server stores with a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Link {
    /// SDUs received.
    pub(super) received: u64,
}

/// One connection.
pub(super) type Conn = Vcc<ConnUse, Link>;

impl Conn {
    pub(super) const fn state(&self) -> ConnState {
        match (self.is_open(), self.outgoing()) {
            (true, _) => ConnState::Open,
            (false, true) => ConnState::Calling,
            (false, false) => ConnState::Accepted,
        }
    }
}

/// How calls that failed are made again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Again {
    /// Longest wait between two calls.
    pub most: Duration,
    /// No call is made after this time since the first call: the packets in the queue are of no use by then.
    pub limit: Duration,
}

/// Fate of an SDU that was handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// The SDU was sent, or waits for its connection.
    Yes,
    /// There is no room for another connection, or in its queue.
    Full,
}

/// The connections.
#[derive(Clone, Debug)]
pub(super) struct Conns {
    limits: Limits,
    table: VccTable<ConnUse, Link>,
}

impl Conns {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            table: VccTable::default(),
        }
    }

    /// Sends an SDU on a control connection with `peer`; opens a connection if it has none yet.
    pub(super) fn send(
        &mut self,
        own: AtmAddress,
        peer: AtmAddress,
        sdu: Vec<u8>,
        now: Instant,
        out: &mut VecDeque<Output>,
    ) -> Sent {
        let bounds = Bounds {
            held: self.limits.queue,
            dial: self.has_room(),
        };
        let to = (peer, ConnUse::Control);
        let request = match self.table.offer(to, sdu, bounds, now) {
            Offered::Send(send) => send,
            Offered::Held => return Sent::Yes,
            Offered::Dial => {
                let link = Link::default();
                let call = call(own, peer);
                let (conn, connect) = self.table.dial(call, ConnUse::Control, link, now);
                self.table.idle_after(conn, IDLE);
                connect
            }
            Offered::Full => return Sent::Full,
        };
        out.push_back(Output::Atm(request));
        Sent::Yes
    }

    fn has_room(&self) -> bool {
        self.table.len() < self.limits.connections
    }

    /// Accepts an offered call; false if there is no room for it.
    pub(super) fn accept(
        &mut self,
        id: ConnId,
        peer: AtmAddress,
        carries: ConnUse,
        now: Instant,
    ) -> bool {
        let each = self.table.with(peer).count();
        let room = self.has_room() && each < self.limits.connections_per_peer;
        let fits = room && self.table.get(id).is_none();
        if fits {
            self.table.accept(id, peer, carries, Link::default(), now);
        }
        fits
    }

    /// The connection can be used: sends the waiting SDUs. False if the connection is unknown.
    pub(super) fn opened(
        &mut self,
        id: ConnId,
        vc: Vc,
        now: Instant,
        out: &mut VecDeque<Output>,
    ) -> bool {
        let Some((_, sends)) = self.table.opened(id, vc, now) else {
            return false;
        };
        out.extend(sends.into_iter().map(Output::Atm));
        true
    }

    /// Notes a reception; returns the use of the connection and its other end.
    pub(super) fn received(&mut self, id: ConnId, now: Instant) -> Option<(ConnUse, AtmAddress)> {
        self.table.touch(id, now);
        self.table.info(id)?.received += 1;
        let conn = self.table.get(id)?;
        Some((conn.carries(), conn.peer()))
    }

    /// A connection is gone: `None` if it is kept for another call, or unknown.
    pub(super) fn released(
        &mut self,
        id: ConnId,
        cause: Cause,
        again: Again,
        now: Instant,
    ) -> Option<Conn> {
        let conn = self.table.get(id)?;
        let route = (conn.peer(), conn.carries());
        let fresh = |since: Instant| now.since(since) < again.limit;
        let failed = conn.state() == ConnState::Calling && cause.is_temporary();
        if failed && self.table.waits_since(route).is_some_and(fresh) {
            let backoff = Backoff::of(&route.0);
            if (self.table).call_later(id, backoff, (cause, again.most), now) {
                return None;
            }
        }
        let gone = self.table.remove(id);
        self.table.forget(route);
        gone
    }

    /// Makes the calls that are due again.
    pub(super) fn call_again(&mut self, own: AtmAddress, now: Instant, out: &mut VecDeque<Output>) {
        for id in self.table.calls_due(now) {
            if let Some(peer) = self.table.get(id).map(Conn::peer) {
                out.push_back(Output::Atm(call(own, peer).request(id)));
            }
        }
    }

    /// Releases the connections opened here that were idle for too long.
    pub(super) fn release_idle(&mut self, now: Instant, out: &mut VecDeque<Output>) {
        for id in self.table.idle(now) {
            out.extend(self.table.release(id).map(Output::Atm));
        }
    }

    /// Releases everything.
    pub(super) fn release_all(&mut self, out: &mut VecDeque<Output>) {
        out.extend(self.table.release_all().into_iter().map(Output::Atm));
    }

    /// When the next connection becomes idle, or is called again.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.table.next()
    }

    /// True if a control connection with `peer` is usable.
    pub(super) fn is_open(&self, peer: AtmAddress) -> bool {
        let best = self.table.best(peer, ConnUse::Control);
        best.and_then(|id| self.table.get(id))
            .is_some_and(Conn::is_open)
    }

    /// All connections.
    pub(super) fn iter(&self) -> impl Iterator<Item = (ConnId, &Conn)> {
        self.table.iter()
    }
}

const fn call(calling: AtmAddress, called: AtmAddress) -> Call {
    Call {
        calling,
        called,
        sap: Sap::LLC,
        qos: Qos::ubr(MAX_SDU),
    }
}
