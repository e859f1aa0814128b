//! Connections for single sessions: one for each TCP connection or UDP session, beside those for next hops.
//!
//! **What a session is.** The two IP addresses, the protocol (TCP or UDP) and the two ports. All other packets, and all
//! fragments, use the connection of the next hop.
//!
//! **The calling member** ([`Per::Session`]) opens a connection when the first packet of a session leaves: any datagram
//! of UDP; of TCP a segment with SYN or with data, so that the last acknowledgement of a connection that is over opens
//! nothing. The call carries the mark [`MARK`] as high layer information. The connection has the contract of the port,
//! or else that of the next hop.
//!
//! **The called member** knows a marked connection as one of a session. The first packet tells which session, and what
//! goes back uses this connection, whatever the called member does with its own sessions. The other end of the
//! connection must be the station that ATMARP names for the next hop. So no station draws the packets for another to
//! itself.
//!
//! **End.** A connection is released [`Params::close`](super::Params::close) after FIN in both directions or RST, and
//! otherwise when it has been idle like all others. A new SYN in that time keeps it.
//!
//! **Bounds.** [`Limits::sessions`](super::Limits::sessions) sessions that this member opens, and as many connections
//! that one caller opens. Beyond the bound packets use the connection of the next hop; the same holds for a session
//! whose call was refused, for [`Params::negative`](super::Params::negative). Both are counted.

use super::conns::{Offer, Role};
use super::{Clip, Encapsulation};
use crate::discard::Discard;
use crate::{Cause, ConnId, Deadlines, Instant};
use aerostat_wire::ipv4::{Ipv4View, TCP, UDP};
use aerostat_wire::{AtmAddress, Bhli, Qos};
use core::fmt;
use core::ops::RangeInclusive;
use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;

/// High layer information of calls for one session.
pub(super) const MARK: Bhli = Bhli::IP_SESSION;

/// Kind of connections that a member opens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Per {
    /// One for each next hop.
    #[default]
    Destination,
    /// One for each TCP connection and UDP session, and one for each next hop for all other packets.
    Session,
}

/// The contract of sessions with certain ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortContract {
    /// IP protocol number: TCP or UDP; `None`: both.
    pub protocol: Option<u8>,
    /// Ports of either end.
    pub ports: RangeInclusive<u16>,
    /// Traffic of the connection, tx from the member that opens it. The largest SDU is always that of the interface.
    pub qos: Qos,
}

/// A session, in the direction in which this member sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SessionKey {
    /// Source address.
    pub source: Ipv4Addr,
    /// Destination address.
    pub destination: Ipv4Addr,
    /// IP protocol number: TCP or UDP.
    pub protocol: u8,
    /// Source and destination port.
    pub ports: (u16, u16),
}

impl SessionKey {
    /// The session of a packet; `None` for other protocols and for fragments.
    #[must_use]
    pub fn of(packet: &[u8]) -> Option<Self> {
        let view = Ipv4View::new(packet)?;
        if view.more_fragments() || !matches!(view.protocol(), TCP | UDP) {
            return None;
        }
        Some(Self {
            source: view.source(),
            destination: view.destination(),
            protocol: view.protocol(),
            ports: view.ports()?,
        })
    }

    /// The same session in the other direction.
    #[must_use]
    pub const fn reversed(self) -> Self {
        Self {
            source: self.destination,
            destination: self.source,
            protocol: self.protocol,
            ports: (self.ports.1, self.ports.0),
        }
    }
}

impl fmt::Display for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = if self.protocol == TCP { "tcp" } else { "udp" };
        let (from, to) = self.ports;
        let (source, destination) = (self.source, self.destination);
        write!(f, "{name} {source}:{from} > {destination}:{to}")
    }
}

/// A session with its station: connections of different stations never carry the same session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SessionId {
    /// The end system, with selector 0.
    station: AtmAddress,
    pub(super) key: SessionKey,
}

impl SessionId {
    const fn new(station: AtmAddress, key: SessionKey) -> Self {
        let station = station.with_selector(0);
        Self { station, key }
    }
}

/// Ends of a TCP connection that were seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TcpEnd {
    sent: bool,
    received: bool,
    over: bool,
}

impl TcpEnd {
    pub(super) const NONE: Self = Self {
        sent: false,
        received: false,
        over: false,
    };
}

const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const RST: u8 = 0x04;

/// Flags of a TCP segment, and whether it has data; `None` for other packets.
fn segment(packet: &[u8]) -> Option<(u8, bool)> {
    let view = Ipv4View::new(packet).filter(|view| view.protocol() == TCP)?;
    let segment = view.packet().get(view.header_len()..)?;
    let header = usize::from(*segment.get(12)? >> 4) * 4;
    Some((*segment.get(13)?, segment.len() > header))
}

/// True if the packet may open a connection for its session.
fn opens(packet: &[u8]) -> bool {
    segment(packet).is_none_or(|(flags, data)| flags & RST == 0 && (flags & SYN != 0 || data))
}

/// One session.
#[derive(Debug)]
struct Session {
    next_hop: Ipv4Addr,
    conn: Option<ConnId>,
    /// Packets that wait for the connection.
    queue: VecDeque<Vec<u8>>,
    /// True if this member opens its connection.
    own: bool,
}

/// The sessions of a member.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    table: BTreeMap<SessionId, Session>,
    /// Number of those that this member opens.
    own: usize,
    /// Sessions whose call was refused: until then their packets use the connection of the next hop.
    held: Deadlines<SessionId>,
}

impl Sessions {
    fn insert(&mut self, id: SessionId, session: Session) {
        self.remove(id);
        self.own += usize::from(session.own);
        self.table.insert(id, session);
    }
    fn remove(&mut self, id: SessionId) -> Option<Session> {
        self.held.set(id, None);
        let gone = self.table.remove(&id)?;
        self.own -= usize::from(gone.own);
        Some(gone)
    }
    /// Sessions that this member opens, and those of others.
    pub(super) fn counts(&self) -> (usize, usize) {
        (self.own, self.table.len() - self.own)
    }
    /// When a session that was refused is forgotten.
    pub(super) fn next(&self) -> Option<Instant> {
        self.held.next()
    }
    /// Packets that wait.
    pub(super) fn held(&self) -> impl Iterator<Item = &Vec<u8>> {
        self.table.values().flat_map(|session| &session.queue)
    }
    /// Forgets all; returns the packets that waited.
    pub(super) fn clear(&mut self) -> Vec<Vec<u8>> {
        let all = core::mem::take(self).table.into_values();
        all.flat_map(|session| session.queue).collect()
    }
}

impl Clip {
    /// The session whose connection takes a packet for a next hop; `None` if it uses that of the next hop.
    pub(super) fn session_of(
        &mut self,
        next_hop: Ipv4Addr,
        packet: &[u8],
        now: Instant,
    ) -> Option<SessionId> {
        let opening = self.config.per == Per::Session;
        if !opening && self.sessions.table.is_empty() {
            return None;
        }
        let key = SessionKey::of(packet)?;
        let entry = self.entries.get(&next_hop)?;
        let conn = entry.conn.and_then(|conn| self.conns.get(conn));
        let permanent = conn.is_some_and(|conn| conn.carries() == Role::Permanent);
        if entry.bound || permanent {
            return None;
        }
        let id = SessionId::new(entry.atm?, key);
        if self.sessions.table.contains_key(&id) {
            return self.sessions.held.at(&id).is_none().then_some(id);
        }
        if !opening || !opens(packet) {
            return None;
        }
        if self.sessions.own >= self.config.limits.sessions {
            self.counters.sessions_full += 1;
            return None;
        }
        let conn = self.open_session(id, next_hop, now)?;
        let session = Session {
            next_hop,
            conn: Some(conn),
            queue: VecDeque::new(),
            own: true,
        };
        self.sessions.insert(id, session);
        self.counters.sessions += 1;
        Some(id)
    }

    /// Calls for a session.
    fn open_session(&mut self, id: SessionId, next_hop: Ipv4Addr, now: Instant) -> Option<ConnId> {
        let entry = self.entries.get(&next_hop)?;
        let (called, mux) = (entry.atm?, self.config.mux && !entry.plain);
        let marked = !entry.unmarked;
        let qos = self.session_contract(next_hop, id.key);
        let offer = Offer { mux, marked };
        let conn = self.call(called, (Role::Session, offer), (qos, true), now)?;
        if let Some(link) = self.conns.info(conn) {
            link.session = Some(id);
        }
        Some(conn)
    }

    /// The contract of a session: that of its port, or else that of its next hop.
    fn session_contract(&self, next_hop: Ipv4Addr, key: SessionKey) -> Qos {
        let size = self.config.max_sdu();
        let fits = |rule: &&PortContract| {
            let port = |port: u16| rule.ports.contains(&port);
            rule.protocol
                .is_none_or(|protocol| protocol == key.protocol)
                && (port(key.ports.0) || port(key.ports.1))
        };
        let rule = self.config.ports.iter().find(fits);
        let of_port = rule.map(|rule| super::sized(rule.qos, size));
        of_port
            .or_else(|| self.contract(next_hop))
            .unwrap_or(Qos::ubr(size))
    }

    /// Sends a packet on the connection of its session, or lets it wait for that.
    pub(super) fn send_on_session(
        &mut self,
        id: SessionId,
        (next_hop, packet): (Ipv4Addr, Vec<u8>),
        now: Instant,
    ) {
        let most = self.config.params.queue;
        let Some(session) = self.sessions.table.get_mut(&id) else {
            return;
        };
        match session.conn {
            Some(conn) if self.conns.get(conn).is_some_and(crate::vcc::Vcc::is_open) => {
                self.transmit(conn, next_hop, &packet, now);
            }
            _ if session.queue.len() < most => session.queue.push_back(packet),
            _ => {
                self.counters.queue_full += 1;
                self.discards.note(Discard::QueueFull, &packet);
            }
        }
    }

    /// The open connection of the session of these packets, if the session has one.
    pub(super) fn open_session_of(&self, atm: Option<AtmAddress>, head: &[u8]) -> Option<ConnId> {
        if self.sessions.table.is_empty() {
            return None;
        }
        let id = SessionId::new(atm?, SessionKey::of(head)?);
        let conn = self.sessions.table.get(&id)?.conn?;
        self.is_open(conn).then_some(conn)
    }

    /// An open connection of any session with a station, on which that station can be asked who it is.
    pub(super) fn session_with(&self, atm: Option<AtmAddress>) -> Option<ConnId> {
        let atm = atm?;
        let mut there = self.conns.with_end_system(&atm);
        let found = there.find(|(_, known)| {
            known.carries() == Role::Session && known.is_open() && known.says_who()
        });
        found.map(|(conn, _)| conn)
    }

    /// The connection of a session is open.
    pub(super) fn session_open(&mut self, conn: ConnId, now: Instant) {
        let id = self.conns.get(conn).and_then(|known| known.info.session);
        let session = id.and_then(|id| self.sessions.table.get_mut(&id));
        let Some(session) = session else {
            return;
        };
        let next_hop = session.next_hop;
        for packet in core::mem::take(&mut session.queue) {
            self.transmit(conn, next_hop, &packet, now);
        }
    }

    /// The connection of a session is gone, or its call has failed.
    pub(super) fn session_gone(
        &mut self,
        id: Option<SessionId>,
        conn: ConnId,
        encapsulation: Encapsulation,
        cause: Cause,
        opened: bool,
        now: Instant,
    ) {
        let session = id.and_then(|id| Some((id, self.sessions.table.get_mut(&id)?)));
        let Some((id, session)) = session.filter(|(_, session)| session.conn == Some(conn)) else {
            return;
        };
        session.conn = None;
        let (next_hop, own) = (session.next_hop, session.own);
        let queue = core::mem::take(&mut session.queue);
        if opened || !own {
            // The next packet opens another connection.
            self.sessions.remove(id);
            for packet in queue {
                self.send(next_hop, packet, now);
            }
            return;
        }
        if cause == Cause::INCOMPATIBLE && self.offer_less(next_hop, encapsulation) {
            let again = self.open_session(id, next_hop, now);
            if let Some(session) = self.sessions.table.get_mut(&id).filter(|_| again.is_some()) {
                (session.conn, session.queue) = (again, queue);
                return;
            }
        }
        self.counters.sessions_refused += 1;
        let until = now + self.config.params.negative;
        self.sessions.held.set(id, Some(until));
        for packet in queue {
            self.send(next_hop, packet, now);
        }
    }

    /// A station did not know what a call for a session offered: less is offered from now on. False if nothing is left
    /// to leave out.
    fn offer_less(&mut self, next_hop: Ipv4Addr, encapsulation: Encapsulation) -> bool {
        let Some(entry) = self.entries.get_mut(&next_hop) else {
            return false;
        };
        let less = match encapsulation {
            Encapsulation::VcMux => &mut entry.plain,
            Encapsulation::Llc => &mut entry.unmarked,
        };
        !core::mem::replace(less, true)
    }

    /// A packet came on a connection: if that carries a session, the packet tells which, and whether it ends.
    pub(super) fn hear_session(&mut self, conn: ConnId, packet: &[u8]) {
        let Some(known) = self
            .conns
            .get(conn)
            .filter(|c| c.carries() == Role::Session)
        else {
            return;
        };
        let known_session = known.info.session.is_some();
        if let (false, Some(key)) = (known_session, SessionKey::of(packet)) {
            let id = SessionId::new(known.peer(), key.reversed());
            let other = self.sessions.table.get(&id);
            if other.is_none_or(|other| other.conn.is_none()) {
                let session = Session {
                    next_hop: id.key.destination,
                    conn: Some(conn),
                    queue: VecDeque::new(),
                    own: false,
                };
                self.sessions.insert(id, session);
                if let Some(link) = self.conns.info(conn) {
                    link.session = Some(id);
                }
            }
        }
        self.note_end(conn, packet, false);
    }

    /// Looks for the end of the TCP connection that a connection carries.
    pub(super) fn note_end(&mut self, conn: ConnId, packet: &[u8], sent: bool) {
        let Some((flags, _)) = segment(packet) else {
            return;
        };
        if flags & (SYN | FIN | RST) == 0 {
            return;
        }
        let (idle, close) = (self.config.params.idle, self.config.params.close);
        let Some(link) = self.conns.info(conn) else {
            return;
        };
        let ends = &mut link.ends;
        if flags & SYN != 0 {
            *ends = TcpEnd::NONE;
        }
        ends.sent |= sent && flags & FIN != 0;
        ends.received |= !sent && flags & FIN != 0;
        ends.over |= flags & RST != 0 || (ends.sent && ends.received);
        let wait = match ends.over {
            true if idle.is_zero() => close,
            true => close.min(idle),
            false => idle,
        };
        self.conns.idle_after(conn, wait);
    }

    /// Forgets the session of a connection that this member has released.
    pub(super) fn forget_session(&mut self, id: SessionId, conn: ConnId) {
        let session = self.sessions.table.get(&id);
        if session.is_some_and(|session| session.conn == Some(conn)) {
            let queue = self.sessions.remove(id).map(|session| session.queue);
            for packet in queue.into_iter().flatten() {
                self.counters.unreachable += 1;
                self.discards.note(Discard::Unreachable, &packet);
            }
        }
    }

    /// Releases the connections of all sessions over a next hop.
    pub(super) fn end_sessions(&mut self, next_hop: Ipv4Addr) {
        let all = self.sessions.table.values();
        let there = all.filter(|session| session.next_hop == next_hop);
        let conns: Vec<ConnId> = there.filter_map(|session| session.conn).collect();
        for conn in conns {
            self.hang_up(conn);
        }
    }

    /// Forgets the sessions whose calls were refused some time ago: their next packets call again.
    pub(super) fn sessions_due(&mut self, now: Instant) {
        for id in self.sessions.held.due(now) {
            self.sessions.remove(id);
        }
    }
}
