//! Next hops: their addresses, and the packets that wait for them.

use super::{Clip, Encapsulation, Per, Role, Unresolved};
use crate::discard::Discard;
use crate::retry::Backoff;
use crate::vcc::Vcc;
use crate::{Cause, ConnId, Duration, Instant, Several, SharedHeader};
use aerostat_wire::AtmAddress;
use aerostat_wire::llc::LlcSnap;
use std::collections::VecDeque;
use std::net::Ipv4Addr;

/// State of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// A request is outstanding; the next repetition is due `at`.
    Resolving { tries: u32, at: Instant },
    /// The address is known until then; a new request is sent from `renew` on.
    Known { renew: Instant, until: Instant },
    /// Packets for the address are dropped until then, because there is no ATM address or no connection.
    Unknown { until: Instant, why: Unresolved },
    /// Known for ever.
    Static,
}

/// One next hop.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) atm: Option<AtmAddress>,
    pub(super) state: State,
    /// The connection to it, open or being opened.
    pub(super) conn: Option<ConnId>,
    /// Packets that wait.
    pub(super) queue: VecDeque<Vec<u8>>,
    /// True if its calls with VC multiplexing were refused, so that LLC/SNAP is used.
    pub(super) plain: bool,
    /// True if its calls with the mark of sessions were refused, so that they have none.
    pub(super) unmarked: bool,
    /// Tokens of questions for its ATM address.
    pub(super) questions: Vec<u64>,
    /// Known, but could not be called: no further call before this time.
    pub(super) hold: Option<Instant>,
    /// Waits between calls to it.
    pub(super) backoff: Backoff,
    /// True if packets were sent or received since the entry was made or renewed.
    pub(super) used: bool,
    /// True if it is bound to a permanent connection by the configuration, and gets no other.
    pub(super) bound: bool,
}

impl Entry {
    pub(super) fn new(state: State, own: AtmAddress) -> Self {
        Self {
            atm: None,
            state,
            conn: None,
            queue: VecDeque::new(),
            plain: false,
            unmarked: false,
            questions: Vec::new(),
            hold: None,
            backoff: Backoff::of(&own),
            used: false,
            bound: false,
        }
    }
    /// Binds the entry to the permanent connection `conn`, for ever.
    pub(super) fn bind(&mut self, conn: ConnId) {
        (self.state, self.conn, self.bound) = (State::Static, Some(conn), true);
    }
    pub(super) fn fixed(atm: AtmAddress, own: AtmAddress) -> Self {
        Self {
            atm: Some(atm),
            ..Self::new(State::Static, own)
        }
    }
    /// An entry to be bound to a permanent connection; its ATM address is not known.
    pub(super) fn permanent(own: AtmAddress) -> Self {
        Self::new(State::Static, own)
    }
    /// True if nothing needs the ATM address: no packet, no connection and no question.
    pub(super) fn is_spare(&self) -> bool {
        let waits = !self.queue.is_empty() || !self.questions.is_empty();
        !(self.used || self.bound || waits || self.conn.is_some() || self.hold.is_some())
    }
    /// When the entry needs attention next.
    pub(super) fn due(&self) -> Option<Instant> {
        match self.state {
            State::Resolving { at, .. } => Some(at),
            State::Known { renew, until } if self.used => Some(renew.min(until)),
            State::Known { until, .. } | State::Unknown { until, .. } => Some(until),
            State::Static => None,
        }
    }
}

impl Clip {
    /// Sends a packet, or queues it for its next hop.
    pub(super) fn send(&mut self, next_hop: Ipv4Addr, packet: Vec<u8>, now: Instant) {
        if packet.is_empty() {
            self.counters.too_long += 1;
            self.discards.note(Discard::BadLength, &packet);
            return;
        }
        // This member's own address is not a next hop, so it is not resolved.
        if next_hop == self.config.ip {
            self.counters.unreachable += 1;
            self.discards.note(Discard::Unreachable, &packet);
            return;
        }
        let hop = self.hop_for(next_hop, &packet);
        self.send_to(hop, packet, now);
    }

    /// Sends a packet to a next hop that has been chosen for it, or queues it.
    fn send_to(&mut self, next_hop: Ipv4Addr, packet: Vec<u8>, now: Instant) {
        if let Some(meanwhile) = self.meanwhile(next_hop, now) {
            self.seek(next_hop, now);
            self.counters.by_default += 1;
            return self.send_to(meanwhile, packet, now);
        }
        let Some(entry) = self.entries.get_mut(&next_hop) else {
            return self.resolve(next_hop, packet, now);
        };
        entry.used = true;
        let held = entry.hold.is_some_and(|until| until > now);
        let lost = entry.bound && entry.conn.is_none();
        if held || lost || matches!(entry.state, State::Unknown { .. }) {
            self.counters.unreachable += 1;
            self.discards.note(Discard::Unreachable, &packet);
            return;
        }
        let conn = entry.conn;
        if let Some(session) = self.session_of(next_hop, &packet, now) {
            return self.send_on_session(session, (next_hop, packet), now);
        }
        if let Some(conn) = conn.filter(|conn| self.is_open(*conn)) {
            return self.transmit(conn, next_hop, &packet, now);
        }
        let Some(entry) = self.entries.get_mut(&next_hop) else {
            return;
        };
        if entry.queue.len() >= self.config.params.queue {
            self.counters.queue_full += 1;
            self.discards.note(Discard::QueueFull, &packet);
            return;
        }
        entry.queue.push_back(packet);
        if entry.conn.is_none() && entry.atm.is_some() {
            self.connect(next_hop, now);
        }
    }

    /// Several packets for a next hop, as segments of one super frame; `head` has the headers of the first one. The
    /// header replaces what is in front of them. `None` if they need something else than a header, because the
    /// connection is not open, or they do not fit. Then nothing has happened, and the packets are to be sent one by
    /// one.
    pub fn send_several(
        &mut self,
        next_hop: Ipv4Addr,
        head: &[u8],
        several: Several,
        now: Instant,
    ) -> Option<SharedHeader> {
        if !self.running || next_hop == self.config.ip || self.hop_for(next_hop, head) != next_hop {
            return None;
        }
        let entry = self.entries.get(&next_hop)?;
        let held = entry.hold.is_some_and(|until| until > now);
        if held || matches!(entry.state, State::Unknown { .. }) || !entry.queue.is_empty() {
            return None;
        }
        let session = self.open_session_of(entry.atm, head);
        if session.is_none() && self.config.per == Per::Session {
            return None;
        }
        let conn = session.or(entry.conn).filter(|conn| self.is_open(*conn))?;
        let link = self.conns.info(conn)?;
        if several.longest > link.mtu.into() {
            return None;
        }
        link.packets.0 += u64::from(several.count);
        let header = match link.encapsulation {
            Encapsulation::Llc => LlcSnap::Ipv4.wrap(&[]),
            Encapsulation::VcMux => Vec::new(),
        };
        if session.is_some() {
            self.note_end(conn, head, true);
        }
        self.conns.touch(conn, now);
        self.counters.sent += u64::from(several.count);
        if let Some(entry) = self.entries.get_mut(&next_hop) {
            entry.used = true;
        }
        self.entries.settle();
        Some(SharedHeader {
            conn,
            header,
            replaces: 0,
            least: 0,
        })
    }

    /// Handles a packet for a next hop without an entry.
    fn resolve(&mut self, next_hop: Ipv4Addr, packet: Vec<u8>, now: Instant) {
        // Without a server the address cannot be resolved; the server itself has all entries already.
        let state = if self.is_client() {
            let at = now + self.config.params.reply;
            State::Resolving { tries: 1, at }
        } else {
            let until = now + self.config.params.negative;
            let why = self.nobody_to_ask();
            State::Unknown { until, why }
        };
        let asked = matches!(state, State::Resolving { .. });
        if !self.room_for(next_hop) {
            self.counters.unreachable += 1;
            self.discards.note(Discard::Unreachable, &packet);
            return;
        }
        let mut entry = Entry::new(state, self.config.address);
        entry.used = true;
        if asked {
            entry.queue.push_back(packet);
        } else {
            self.counters.unreachable += 1;
            self.discards.note(Discard::Unreachable, &packet);
        }
        self.entries.insert(next_hop, entry);
        if asked {
            self.ask_server(next_hop);
        }
    }

    /// True if there is an entry for this address, or room for one. What only questions have left gives way.
    pub(super) fn room_for(&mut self, ip: Ipv4Addr) -> bool {
        let most = self.config.limits.entries;
        if self.entries.contains_key(&ip) {
            return true;
        }
        if self.entries.len() >= most {
            self.displace(false);
        }
        let room = self.entries.len() < most;
        self.counters.full += u64::from(!room);
        room
    }

    /// False if the member at the other end of a connection has the maximum number of addresses.
    fn room_on(&mut self, conn: Option<ConnId>, atm: Option<AtmAddress>, ip: Ipv4Addr) -> bool {
        if conn.is_none() {
            return true;
        }
        let own = |entry: &Entry| entry.conn == conn || (atm.is_some() && entry.atm == atm);
        let known = self.entries.get(&ip).is_some_and(own);
        let room = known || self.entries.count_of(conn, atm) < self.config.limits.entries_each;
        self.counters.full += u64::from(!room);
        room
    }

    /// How long an entry is known.
    fn life(&self) -> Duration {
        match self.config.serve {
            true => self.config.params.server_life,
            false => self.config.params.client_life,
        }
    }

    /// Learns the ATM address of an IP address: from a server's answer, from InATMARP on `conn`, or from a
    /// registration.
    pub(super) fn learn(
        &mut self,
        ip: Ipv4Addr,
        atm: Option<AtmAddress>,
        conn: Option<ConnId>,
        now: Instant,
    ) {
        // No other member has this member's own ATM address, whatever a packet says.
        let own = ip == self.config.ip || atm == Some(self.config.address);
        if own || !self.room_for(ip) || !self.room_on(conn, atm, ip) {
            return;
        }
        let life = self.life();
        let state = State::Known {
            renew: now + life * 2 / 3,
            until: now + life,
        };
        // A contract applies only to connections that were opened for it.
        let is_permanent = |conn: &ConnId| {
            let known = self.conns.get(*conn);
            known.is_some_and(|known| known.carries() == Role::Permanent)
        };
        let permanent = conn.is_some_and(|conn| is_permanent(&conn));
        let shared = self.contract(ip).is_none();
        let conn = conn.filter(|_| shared || permanent);
        let held = self.entries.get(&ip).and_then(|entry| entry.conn);
        // A next hop with a permanent connection keeps it, even if it also calls.
        let better = permanent && !held.is_some_and(|held| is_permanent(&held));
        let keeps = !permanent && held.is_some_and(|held| is_permanent(&held));
        let address = self.config.address;
        let entry = self
            .entries
            .entry(ip)
            .or_insert_with(|| Entry::new(state, address));
        if entry.state != State::Static {
            let moved = entry.atm.is_some() && atm.is_some() && entry.atm != atm;
            entry.state = state;
            entry.atm = atm.or(entry.atm);
            if moved && !keeps {
                entry.conn = None;
            }
        } else if entry.bound {
            // A server needs the ATM address to answer others.
            entry.atm = atm.or(entry.atm);
        }
        entry.used = false;
        if let Some(conn) = conn
            && !entry.bound
            && (entry.conn.is_none() || entry.conn == Some(conn) || better)
        {
            entry.conn = Some(conn);
        }
        self.sort_sessions(ip, now);
        self.flush(ip, now);
        self.answer_questions(ip);
    }

    /// Sends the packets that wait for a next hop, or opens a connection to it.
    pub(super) fn flush(&mut self, ip: Ipv4Addr, now: Instant) {
        let Some(entry) = self.entries.get_mut(&ip) else {
            return;
        };
        match entry.conn {
            Some(conn) if self.conns.get(conn).is_some_and(Vcc::is_open) => {
                entry.used |= !entry.queue.is_empty();
                for packet in core::mem::take(&mut entry.queue) {
                    self.transmit(conn, ip, &packet, now);
                }
            }
            Some(_) => {}
            None if entry.bound => self.give_up(ip, Unresolved::Permanent, now),
            None if !entry.queue.is_empty() && entry.atm.is_some() => self.connect(ip, now),
            None => {}
        }
    }

    /// Gives sessions those packets that wait for a next hop whose address is known now.
    fn sort_sessions(&mut self, ip: Ipv4Addr, now: Instant) {
        let Some(entry) = self
            .entries
            .get_mut(&ip)
            .filter(|entry| entry.atm.is_some())
        else {
            return;
        };
        let mut rest = VecDeque::new();
        for packet in core::mem::take(&mut entry.queue) {
            match self.session_of(ip, &packet, now) {
                Some(session) => self.send_on_session(session, (ip, packet), now),
                None => rest.push_back(packet),
            }
        }
        if let Some(entry) = self.entries.get_mut(&ip) {
            entry.queue.append(&mut rest);
        }
    }

    /// A call to a known next hop was refused. It is called again after a while. If that does not help, its address is
    /// resolved again, as it may have changed.
    pub(super) fn call_failed(&mut self, ip: Ipv4Addr, cause: Cause, now: Instant) {
        const TRIES: u32 = 8;
        let most = self.config.params.negative;
        match self.entries.get_mut(&ip) {
            Some(entry) if cause.is_temporary() && entry.backoff.tries() < TRIES => {
                let wait = entry.backoff.wait(Some(cause), Duration::ZERO, most);
                self.counters.unreachable += entry.queue.len() as u64;
                for packet in entry.queue.drain(..) {
                    self.discards.note(Discard::Unreachable, &packet);
                }
                (entry.conn, entry.hold) = (None, Some(now + wait));
            }
            _ => self.give_up(ip, Unresolved::CallFailed, now),
        }
    }

    /// The address has no owner, or cannot be called.
    pub(super) fn give_up(&mut self, ip: Ipv4Addr, why: Unresolved, now: Instant) {
        let until = now + self.config.params.negative;
        if let Some(entry) = self.entries.get_mut(&ip) {
            self.counters.unreachable += entry.queue.len() as u64;
            for packet in entry.queue.drain(..) {
                self.discards.note(Discard::Unreachable, &packet);
            }
            entry.conn = None;
            if entry.state != State::Static {
                entry.state = State::Unknown { until, why };
                entry.atm = None;
            } else {
                entry.hold = Some(until);
            }
        }
        self.answer_questions(ip);
    }

    pub(super) fn entries_due(&mut self, now: Instant) {
        for ip in self.entries.due(now) {
            self.entry_due(ip, now);
        }
    }

    fn entry_due(&mut self, ip: Ipv4Addr, now: Instant) {
        let params = self.config.params;
        let is_client = self.is_client();
        let registered = self.server.registered;
        let Some(entry) = self.entries.get_mut(&ip) else {
            return;
        };
        match entry.state {
            State::Resolving { tries, .. } if tries < params.tries => {
                let wait = params.reply * (1 << tries.min(8));
                let at = now + wait;
                entry.state = State::Resolving {
                    tries: tries + 1,
                    at,
                };
                self.counters.repeated += 1;
                self.ask_server(ip);
            }
            State::Resolving { .. } => self.give_up(ip, Unresolved::Unanswered, now),
            State::Known { until, .. } if until > now => {
                // The entry was used, and two thirds of its life are over.
                entry.used = false;
                let renew = now + params.reply * 4;
                entry.state = State::Known { renew, until };
                let atm = entry.atm;
                match entry.conn.map(|conn| (conn, self.conns.get(conn))) {
                    Some((conn, Some(known))) if known.carries() == Role::Permanent => {
                        self.ask_who(conn, now);
                    }
                    // There is no server to ask, so the other end itself confirms. Source: RFC 2225 §8.5.1.
                    Some((conn, Some(known)))
                        if is_client && !registered && known.is_open() && known.says_who() =>
                    {
                        self.ask_who(conn, now);
                    }
                    _ if is_client && !registered => match self.session_with(atm) {
                        Some(conn) => self.ask_who(conn, now),
                        None => self.ask_server(ip),
                    },
                    _ if is_client => self.ask_server(ip),
                    _ => {}
                }
            }
            // Its connection stays until it is idle, so that a new entry can use it.
            State::Known { .. } | State::Unknown { .. } => self.drop_entry(ip),
            State::Static => {}
        }
    }
}
