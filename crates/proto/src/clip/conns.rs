//! Connections: to servers, to next hops, for sessions, and permanent ones.

use super::entries::Entry;
use super::sessions::{self, SessionId, TcpEnd};
use super::sizes::{LEAST_MTU, packet_in, sdu_of};
use super::{Clip, Encapsulation, Output, Permanent, Unresolved, sized};
use crate::discard::Discard;
use crate::vcc::{Call, Vcc};
use crate::{AtmEvent, AtmRequest, Cause, ConnId, Duration, Instant, Several, Trace};
use aerostat_wire::llc::LlcSnap;
use aerostat_wire::{AtmAddress, Qos, Sap, Vc};
use std::net::Ipv4Addr;

/// Purpose of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Role {
    /// ATMARP with the server; also packets to the server's host.
    Server,
    /// Packets to a next hop.
    Peer,
    /// Packets of one session.
    Session,
    /// Permanent connection.
    Permanent,
}

/// Data that a member stores with a connection.
#[derive(Clone, Debug)]
pub(super) struct Link {
    pub(super) encapsulation: Encapsulation,
    /// Its traffic, seen from this end.
    pub(super) qos: Qos,
    /// True if it was opened for the contract of one next hop.
    pub(super) own: bool,
    /// Largest packet that may be sent on it, octets: at most the MTU of the interface, and less if the other end takes
    /// less.
    pub(super) mtu: u16,
    /// The session that it carries; `None` on the called side until its first packet.
    pub(super) session: Option<SessionId>,
    /// Ends of TCP that were seen on it.
    pub(super) ends: TcpEnd,
    pub(super) packets: (u64, u64),
}

impl Link {
    const fn new(encapsulation: Encapsulation, qos: Qos, own: bool, mtu: u16) -> Self {
        Self {
            encapsulation,
            qos,
            own,
            mtu,
            session: None,
            ends: TcpEnd::NONE,
            packets: (0, 0),
        }
    }
}

/// Encapsulation that a call offers besides LLC/SNAP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Offer {
    /// VC multiplexing: SDUs are bare packets.
    pub(super) mux: bool,
    /// The mark of connections for one session.
    pub(super) marked: bool,
}

impl Offer {
    /// LLC/SNAP alone.
    pub(super) const PLAIN: Self = Self {
        mux: false,
        marked: false,
    };
}

/// One connection.
pub(super) type Conn = Vcc<Role, Link>;

impl Conn {
    /// The other end, as far as signalling tells: a permanent connection does not tell who is at its ends.
    pub(super) fn other_end(&self) -> Option<AtmAddress> {
        (self.carries() != Role::Permanent).then(|| self.peer())
    }
    /// True if ATMARP can be used on it.
    pub(super) fn says_who(&self) -> bool {
        self.info.encapsulation == Encapsulation::Llc
    }
}

impl Clip {
    /// The other end of a connection, as far as signalling tells.
    pub(super) fn other_end(&self, conn: ConnId) -> Option<AtmAddress> {
        self.conns.get(conn).and_then(Conn::other_end)
    }
    /// True if packets can be sent on this connection.
    pub(super) fn is_open(&self, conn: ConnId) -> bool {
        self.conns.get(conn).is_some_and(Conn::is_open)
    }

    /// Makes a call. With `own` the connection is for the contract of one next hop.
    pub(super) fn call(
        &mut self,
        called: AtmAddress,
        (role, offer): (Role, Offer),
        (qos, own): (Qos, bool),
        now: Instant,
    ) -> Option<ConnId> {
        if self.conns.len() >= self.config.limits.conns {
            self.counters.full += 1;
            return None;
        }
        self.counters.calls += 1;
        let (sap, encapsulation, qos) = if offer.mux {
            (Sap::IP, Encapsulation::VcMux, sized(qos, self.config.mtu))
        } else {
            (Sap::LLC, Encapsulation::Llc, qos)
        };
        let bhli = offer.marked.then_some(sessions::MARK);
        let call = Call {
            calling: self.config.address,
            called,
            sap: Sap { bhli, ..sap },
            qos,
        };
        let link = Link::new(encapsulation, qos, own, self.config.mtu);
        let (conn, connect) = self.conns.dial(call, role, link, now);
        self.request(connect);
        Some(conn)
    }

    /// Opens a connection to a next hop whose ATM address is known, or uses an existing one.
    pub(super) fn connect(&mut self, ip: Ipv4Addr, now: Instant) {
        let Some(entry) = self.entries.get(&ip) else {
            return;
        };
        let Some(called) = entry.atm else {
            return;
        };
        let mux = self.config.mux && !entry.plain;
        let offer = Offer { mux, marked: false };
        let own_qos = self.contract(ip);
        let shared = |conn: &Conn| {
            conn.other_end().is_some() && conn.carries() != Role::Session && !conn.info.own
        };
        let mut there = self.conns.with(called);
        let found = there.find(|(_, conn)| own_qos.is_none() && shared(conn));
        let found = found.map(|(conn, _)| conn);
        drop(there);
        let qos = own_qos.unwrap_or(Qos::ubr(self.config.max_sdu()));
        let contract = (qos, own_qos.is_some());
        let conn = found.or_else(|| self.call(called, (Role::Peer, offer), contract, now));
        let Some(conn) = conn else {
            return self.give_up(ip, Unresolved::CallFailed, now);
        };
        if let Some(entry) = self.entries.get_mut(&ip) {
            entry.conn = Some(conn);
        }
        if self.is_open(conn) {
            self.flush(ip, now);
        }
    }

    /// Opens this member's end of a permanent connection. Those of [`Config::permanent`](super::Config) open at the
    /// start.
    pub fn open_permanent(&mut self, permanent: Permanent, now: Instant) {
        let Permanent {
            vc,
            qos,
            encapsulation,
            ip,
        } = permanent;
        let known = packet_in(qos.tx.max_sdu, encapsulation).filter(|_| qos.tx.max_sdu > 0);
        let mtu = known.map_or(self.config.mtu, |mtu| mtu.clamp(LEAST_MTU, self.config.mtu));
        let link = Link::new(encapsulation, qos, false, mtu);
        let conn = (self.conns).add(AtmAddress::ZERO, Role::Permanent, link, now);
        if let Some(ip) = ip {
            let own = self.config.address;
            let entry = self.entries.entry(ip);
            let entry = entry.or_insert_with(|| Entry::permanent(own));
            // Of several connections to one next hop, the first one carries the packets.
            if !entry.bound {
                entry.bind(conn);
            }
        }
        self.request(AtmRequest::OpenPermanent { conn, vc, qos });
    }

    /// Sends a packet for a next hop on an open connection: whole, or as the size of its SDUs asks for.
    pub(super) fn transmit(
        &mut self,
        conn: ConnId,
        next_hop: Ipv4Addr,
        packet: &[u8],
        now: Instant,
    ) {
        let Some(link) = self.conns.info(conn) else {
            self.discards.note(Discard::Closed, packet);
            return;
        };
        let (mtu, session) = (link.mtu, link.session.is_some());
        if session {
            self.note_end(conn, packet, true);
        }
        if packet.len() > mtu.into() {
            return self.too_big(conn, (next_hop, mtu), packet, now);
        }
        self.counters.sent += 1;
        self.send_packet(conn, packet, now);
    }

    /// Sends a packet, or a fragment, that fits on an open connection.
    pub(super) fn send_packet(&mut self, conn: ConnId, packet: &[u8], now: Instant) {
        let Some(link) = self.conns.info(conn) else {
            self.discards.note(Discard::Closed, packet);
            return;
        };
        link.packets.0 += 1;
        let encapsulation = link.encapsulation;
        self.conns.touch(conn, now);
        let sdu = match encapsulation {
            Encapsulation::Llc => LlcSnap::Ipv4.wrap(packet),
            Encapsulation::VcMux => packet.to_vec(),
        };
        self.request(AtmRequest::Send { conn, sdu });
    }

    pub(super) fn atm(&mut self, event: AtmEvent<&[u8]>, now: Instant) {
        match event {
            AtmEvent::Up => {
                self.up = true;
                if self.is_client() && self.server.conn.is_none() {
                    self.server.at = Some(now);
                    self.server_due(now);
                }
            }
            AtmEvent::Down => self.up = false,
            AtmEvent::Incoming {
                conn,
                calling,
                multipoint,
                sap,
                qos,
                ..
            } => {
                let calling = calling.filter(|_| !multipoint);
                self.incoming(conn, calling, sap, qos, now);
            }
            AtmEvent::Connected { conn, vc, qos } => self.connected(conn, vc, qos, now),
            AtmEvent::Released { conn, cause } => self.released(conn, cause, now),
            AtmEvent::Received { conn, sdu } => self.received(conn, sdu, now),
            AtmEvent::PartyAdded { .. } | AtmEvent::PartyGone { .. } => {}
        }
    }

    fn incoming(
        &mut self,
        conn: ConnId,
        calling: Option<AtmAddress>,
        sap: Sap,
        qos: Qos,
        now: Instant,
    ) {
        // A caller that does not identify itself cannot be told from others. Source: RFC 1755, calling party number.
        let Some(caller) = calling else {
            let cause = Cause::REJECTED;
            return self.request(AtmRequest::Release { conn, cause });
        };
        let role = match sap.bhli {
            Some(sessions::MARK) => Role::Session,
            _ => Role::Peer,
        };
        if !self.takes_from(&caller, role) {
            self.counters.full += 1;
            let cause = Cause::RESOURCES;
            return self.request(AtmRequest::Release { conn, cause });
        }
        let encapsulation = if sap.blli == Sap::IP.blli {
            Encapsulation::VcMux
        } else {
            Encapsulation::Llc
        };
        let most = sdu_of(self.config.mtu, encapsulation);
        let Some(answer) = self.answer_of(qos, most, encapsulation) else {
            self.counters.full += 1;
            let cause = Cause::AAL_PARAMETERS;
            return self.request(AtmRequest::Release { conn, cause });
        };
        let link = Link::new(encapsulation, answer, false, self.config.mtu);
        (self.conns).accept(conn, caller, role, link, now);
        let terms = (answer != qos).then_some(answer);
        self.counters.sizes_lowered += u64::from(terms.is_some());
        self.request(AtmRequest::Accept { conn, terms });
    }

    /// True if there is room for another connection that this caller makes for such a use.
    fn takes_from(&self, caller: &AtmAddress, role: Role) -> bool {
        let limits = self.config.limits;
        let all = self.conns.with_end_system(caller);
        let same =
            all.filter(|(_, known)| (known.carries() == Role::Session) == (role == Role::Session));
        let most = match role {
            Role::Session => limits.sessions,
            Role::Server | Role::Peer | Role::Permanent => limits.conns_each,
        };
        self.conns.len() < limits.conns && same.count() < most
    }

    fn connected(&mut self, conn: ConnId, vc: Vc, qos: Qos, now: Instant) {
        let Some((known, _)) = self.conns.opened(conn, vc, now) else {
            return;
        };
        let (role, encapsulation) = (known.carries(), known.info.encapsulation);
        if role != Role::Permanent && !self.agree(conn, qos) {
            // Not even the smallest packets of IP fit into its SDUs.
            self.request(AtmRequest::Release {
                conn,
                cause: Cause::AAL_PARAMETERS,
            });
            return self.ended(conn, Cause::AAL_PARAMETERS, false, now);
        }
        // A member registers with a server over a connection of its own, and ends that itself.
        let of_member = self.config.serve && role == Role::Peer && conn.0 >= ConnId::INCOMING;
        if matches!(role, Role::Peer | Role::Session) && !of_member {
            self.conns.idle_after(conn, self.config.params.idle);
        }
        if role == Role::Session {
            return self.session_open(conn, now);
        }
        for ip in self.entries.on(conn) {
            if let Some(entry) = self.entries.get_mut(&ip) {
                entry.backoff.reset();
            }
        }
        match role {
            Role::Server => self.register(now),
            // InATMARP needs LLC/SNAP.
            _ if encapsulation == Encapsulation::VcMux => {}
            // The IP address of a caller, and of the other end of a permanent connection, is not known yet.
            Role::Permanent => self.ask_who(conn, now),
            Role::Peer if conn.0 >= ConnId::INCOMING => self.ask_who(conn, now),
            Role::Peer | Role::Session => {}
        }
        for ip in self.entries.on(conn) {
            self.flush(ip, now);
        }
    }

    fn released(&mut self, conn: ConnId, cause: Cause, now: Instant) {
        let opened = self.is_open(conn);
        self.ended(conn, cause, opened, now);
    }

    /// A connection is gone, or its call has failed (`opened` is false).
    fn ended(&mut self, conn: ConnId, cause: Cause, opened: bool, now: Instant) {
        let Some(known) = self.conns.remove(conn) else {
            return;
        };
        self.asks.set(conn, None);
        let encapsulation = known.info.encapsulation;
        self.counters.calls_failed += u64::from(!opened);
        // A member that does not support VC multiplexing may accept LLC/SNAP.
        let refused = !opened
            && cause == Cause::INCOMPATIBLE
            && known.info.encapsulation == Encapsulation::VcMux
            && known.carries() == Role::Peer;
        for ip in self.entries.on(conn) {
            if opened {
                // The next packet opens another connection.
                if let Some(entry) = self.entries.get_mut(&ip) {
                    entry.conn = None;
                }
                self.flush(ip, now);
            } else if refused {
                if let Some(entry) = self.entries.get_mut(&ip) {
                    (entry.conn, entry.plain) = (None, true);
                }
                self.connect(ip, now);
            } else {
                let text = format!("no connection with {ip}: {cause}");
                self.trace(Trace::detail("clip.call-failed", text).with("ip", ip));
                self.call_failed(ip, cause, now);
            }
        }
        match known.carries() {
            Role::Server => self.server_lost(conn, cause, now),
            Role::Permanent => {
                let text = format!("permanent connection lost: {cause}");
                self.trace(Trace::milestone("clip.pvc-lost", text));
            }
            Role::Session => {
                let id = known.info.session;
                self.session_gone(id, conn, encapsulation, cause, opened, now);
            }
            Role::Peer => {}
        }
    }

    fn received(&mut self, conn: ConnId, sdu: &[u8], now: Instant) {
        let Some(known) = self.conns.get(conn) else {
            self.counters.bad += 1;
            self.discards.note(Discard::Malformed, sdu);
            return;
        };
        let encapsulation = known.info.encapsulation;
        self.conns.touch(conn, now);
        let is_ip = sdu.first().is_some_and(|octet| octet >> 4 == 4);
        if encapsulation == Encapsulation::VcMux && !is_ip {
            self.counters.bad += 1;
            self.discards.note(Discard::Malformed, sdu);
            return;
        }
        if encapsulation == Encapsulation::VcMux {
            return self.deliver(conn, sdu);
        }
        match LlcSnap::decode(sdu) {
            Ok((LlcSnap::Ipv4, packet)) => self.deliver(conn, packet),
            Ok((LlcSnap::Arp, packet)) => self.arp(conn, packet, now),
            Ok(_) | Err(_) => {
                self.counters.bad += 1;
                self.discards.note(Discard::Malformed, sdu);
            }
        }
    }

    /// Several SDUs with equal headers on one connection; `sdu` has these headers. Gives the octets in front of each
    /// packet, and the other end as far as signalling tells, if the IP stack gets all packets. With `None` nothing has
    /// been counted, and the SDUs are to be received one by one.
    pub fn receive_several(
        &mut self,
        conn: ConnId,
        sdu: &[u8],
        several: Several,
        now: Instant,
    ) -> Option<(usize, Option<AtmAddress>)> {
        let link = self.conns.info(conn).filter(|_| self.running)?;
        let front = match (link.encapsulation, LlcSnap::decode(sdu)) {
            (Encapsulation::Llc, Ok((LlcSnap::Ipv4, packet))) => sdu.len() - packet.len(),
            (Encapsulation::VcMux, _) if sdu.first().is_some_and(|octet| octet >> 4 == 4) => 0,
            _ => return None,
        };
        link.packets.1 += u64::from(several.count);
        self.conns.touch(conn, now);
        self.counters.delivered += u64::from(several.count);
        self.hear_session(conn, sdu.get(front..).unwrap_or_default());
        Some((front, self.other_end(conn)))
    }

    /// Hands the IP stack a packet that a connection carried.
    fn deliver(&mut self, conn: ConnId, packet: &[u8]) {
        self.counters.delivered += 1;
        if let Some(link) = self.conns.info(conn) {
            link.packets.1 += 1;
        }
        self.hear_session(conn, packet);
        let (packet, from) = (packet.to_vec(), self.other_end(conn));
        self.out.push_back(Output::Deliver { packet, from });
    }

    /// When InATMARP is repeated next, or a connection becomes idle.
    pub(super) fn next_conn_due(&self) -> Option<Instant> {
        let next = [self.asks.next(), self.conns.next()];
        next.into_iter().flatten().min()
    }

    pub(super) fn conns_due(&mut self, now: Instant) {
        for conn in self.asks.due(now) {
            self.ask_who(conn, now);
        }
        for conn in self.conns.idle(now) {
            self.counters.idle += 1;
            self.hang_up(conn);
        }
    }

    /// Releases a connection. Entries that used it open another one when necessary.
    pub(super) fn hang_up(&mut self, conn: ConnId) {
        let session = self.conns.get(conn).and_then(|known| known.info.session);
        let Some(release) = self.conns.release(conn) else {
            return;
        };
        self.asks.set(conn, None);
        if let Some(session) = session {
            self.forget_session(session, conn);
        }
        for ip in self.entries.on(conn) {
            if let Some(entry) = self.entries.get_mut(&ip) {
                entry.conn = None;
            }
        }
        self.request(release);
    }

    // ---- the server ----

    /// Takes the next step towards the server: a call, a registration, a refresh.
    pub(super) fn server_due(&mut self, now: Instant) {
        if self.server.at.is_none_or(|at| at > now) {
            return;
        }
        self.server.at = None;
        match self.server.conn {
            Some(conn) if self.is_open(conn) => self.register(now),
            // The call is in progress; its result will be reported.
            Some(_) => {}
            None => {
                let Some(called) = self.next_server() else {
                    return;
                };
                let qos = Qos::ubr(self.config.max_sdu());
                self.server.conn =
                    self.call(called, (Role::Server, Offer::PLAIN), (qos, false), now);
                if self.server.conn.is_none() {
                    self.server.at = Some(now + self.config.params.server_retry);
                }
            }
        }
    }

    /// Asks the server for this member's own address, which registers it.
    fn register(&mut self, now: Instant) {
        let Some(conn) = self.server.conn else {
            return;
        };
        let params = self.config.params;
        let assumed = |at: Instant| now.since(at) >= params.reply;
        if self.server.answered.is_some_and(assumed) {
            self.registered(false, now);
        }
        if self.server.tries >= params.tries && self.server.registered {
            // A server of RFC 1577 has asked by InATMARP and does not answer our requests; or that answer was lost.
            self.server.tries = 0;
            self.server.at = Some(now + params.reply * 60);
            return;
        }
        if self.server.tries >= params.tries {
            // A server that does not answer any more counts as lost.
            self.hang_up(conn);
            return self.server_lost(conn, Cause::NO_RESPONSE, now);
        }
        let wait = params.reply * (1 << self.server.tries.min(8));
        self.server.tries += 1;
        self.server.at = Some(now + wait);
        self.ask_own(conn);
    }

    /// The server knows this member, because it says so (`confirmed`), or because its InATMARP request was answered
    /// some time ago.
    /// That answer may get lost, so this member's own request is still repeated.
    pub(super) fn registered(&mut self, confirmed: bool, now: Instant) {
        if confirmed {
            self.server.tries = 0;
            self.server.at = Some(now + self.config.params.refresh);
        }
        if !core::mem::replace(&mut self.server.registered, true) {
            let text = format!("{} is registered with the ATMARP server", self.config.ip);
            self.trace(Trace::milestone("clip.registered", text).with("ip", self.config.ip));
            self.server.backoff.reset();
            self.set_ready(true);
            // Questions that came up while there was no server.
            let open = self.entries.iter();
            let open = open.filter(|(_, entry)| {
                matches!(entry.state, super::entries::State::Resolving { .. })
            });
            for ip in open.map(|(ip, _)| *ip).collect::<Vec<_>>() {
                self.ask_server(ip);
            }
        }
    }

    /// Another member has this member's IP address. Nothing is sent under the address, and the server is asked again
    /// after a minute.
    pub(super) fn refused(&mut self, now: Instant) {
        let ip = self.config.ip;
        let text = format!("the ATMARP server has {ip} at another ATM address");
        self.trace(Trace::detail("clip.refused", text).with("ip", ip));
        self.server.registered = false;
        self.server.tries = 0;
        self.server.at = Some(now + self.config.params.reply * 60);
        self.set_ready(false);
    }

    fn server_lost(&mut self, conn: ConnId, cause: Cause, now: Instant) {
        if self.server.conn != Some(conn) {
            return;
        }
        let text = format!("the ATMARP server is lost: {cause}");
        let why = format!("no connection with the ATMARP server: {cause}");
        let trace = Trace::detail("clip.server-lost", text).with("why", why);
        let milestone = self.server.registered;
        self.trace(Trace { milestone, ..trace });
        self.server.conn = None;
        self.server.registered = false;
        self.server.answered = None;
        self.server.tries = 0;
        self.server.index = (self.server.index + 1) % self.config.servers.len().max(1);
        let most = self.config.params.server_retry;
        let wait = self.server.backoff.wait(Some(cause), Duration::ZERO, most);
        self.server.at = Some(now + wait);
    }
}
