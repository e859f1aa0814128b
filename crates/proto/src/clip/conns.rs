//! Connections: to servers, to next hops, and permanent ones.

use super::{Clip, Encapsulation, Entry, Output, Permanent, sized};
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
    /// Permanent connection.
    Permanent,
}

/// What a member stores with a connection.
#[derive(Clone, Debug)]
pub(super) struct Link {
    pub(super) encapsulation: Encapsulation,
    /// Its traffic, seen from this end.
    pub(super) qos: Qos,
    /// True if it was opened for the contract of one next hop.
    pub(super) own: bool,
    /// For a permanent connection whose other end is unknown: when InATMARP is repeated.
    pub(super) ask_at: Option<Instant>,
    pub(super) packets: (u64, u64),
}

impl Link {
    const fn new(encapsulation: Encapsulation, qos: Qos, own: bool) -> Self {
        Self {
            encapsulation,
            qos,
            own,
            ask_at: None,
            packets: (0, 0),
        }
    }
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

    /// Makes a call; `mux` offers VC multiplexing, with SDUs that are bare packets. With `own` the connection is for
    /// the contract of one next hop.
    fn call(
        &mut self,
        called: AtmAddress,
        (role, mux): (Role, bool),
        (qos, own): (Qos, bool),
        now: Instant,
    ) -> Option<ConnId> {
        if self.conns.len() >= self.config.limits.conns {
            self.counters.full += 1;
            return None;
        }
        self.counters.calls += 1;
        let (sap, encapsulation, qos) = if mux {
            (Sap::IP, Encapsulation::VcMux, sized(qos, self.config.mtu))
        } else {
            (Sap::LLC, Encapsulation::Llc, qos)
        };
        let call = Call {
            calling: self.config.address,
            called,
            sap,
            qos,
        };
        let link = Link::new(encapsulation, qos, own);
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
        let own_qos = self.contract(ip);
        let shared = |conn: &Conn| conn.other_end().is_some() && !conn.info.own;
        let mut there = self.conns.with(called);
        let found = there.find(|(_, conn)| own_qos.is_none() && shared(conn));
        let found = found.map(|(conn, _)| conn);
        drop(there);
        let qos = own_qos.unwrap_or(Qos::ubr(self.config.max_sdu()));
        let contract = (qos, own_qos.is_some());
        let conn = found.or_else(|| self.call(called, (Role::Peer, mux), contract, now));
        let Some(conn) = conn else {
            return self.give_up(ip, now);
        };
        if let Some(entry) = self.entries.get_mut(&ip) {
            entry.conn = Some(conn);
        }
        if self.is_open(conn) {
            self.flush(ip, now);
        }
    }

    /// Opens the own end of a permanent connection. Those of [`Config::permanent`](super::Config) open at the start.
    pub fn open_permanent(&mut self, permanent: Permanent, now: Instant) {
        let Permanent {
            vc,
            qos,
            encapsulation,
            ip,
        } = permanent;
        let link = Link::new(encapsulation, qos, false);
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

    /// Sends a packet on an open connection.
    pub(super) fn transmit(&mut self, conn: ConnId, packet: &[u8], now: Instant) {
        let Some(link) = self.conns.info(conn) else {
            self.discards.note(Discard::Closed, packet);
            return;
        };
        link.packets.0 += 1;
        let encapsulation = link.encapsulation;
        self.conns.touch(conn, now);
        self.counters.sent += 1;
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
                self.incoming(conn, calling, sap == Sap::IP, qos, now);
            }
            AtmEvent::Connected { conn, vc, .. } => self.connected(conn, vc, now),
            AtmEvent::Released { conn, cause } => self.released(conn, cause, now),
            AtmEvent::Received { conn, sdu } => self.received(conn, sdu, now),
            AtmEvent::PartyAdded { .. } | AtmEvent::PartyGone { .. } => {}
        }
    }

    fn incoming(
        &mut self,
        conn: ConnId,
        calling: Option<AtmAddress>,
        mux: bool,
        qos: Qos,
        now: Instant,
    ) {
        // A caller that does not identify itself cannot be told from others. Source: RFC 1755, calling party number.
        let Some(caller) = calling else {
            let cause = Cause::REJECTED;
            return self.request(AtmRequest::Release { conn, cause });
        };
        let limits = self.config.limits;
        let is_caller = |peer: AtmAddress| peer.same_end_system(&caller);
        let others = self.conns.iter();
        let others = others.filter(|(_, known)| known.other_end().is_some_and(is_caller));
        let each = others.count();
        if self.conns.len() >= limits.conns || each >= limits.conns_each {
            self.counters.full += 1;
            let cause = Cause::RESOURCES;
            return self.request(AtmRequest::Release { conn, cause });
        }
        let encapsulation = if mux {
            Encapsulation::VcMux
        } else {
            Encapsulation::Llc
        };
        let link = Link::new(encapsulation, qos, false);
        let accept = (self.conns).accept(conn, caller, Role::Peer, link, now);
        self.request(accept);
    }

    fn connected(&mut self, conn: ConnId, vc: Vc, now: Instant) {
        let Some((known, _)) = self.conns.opened(conn, vc, now) else {
            return;
        };
        let (role, encapsulation) = (known.carries(), known.info.encapsulation);
        if role == Role::Peer {
            self.conns.idle_after(conn, self.config.params.idle);
        }
        for entry in self.entries.values_mut() {
            if entry.conn == Some(conn) {
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
            Role::Peer => {}
        }
        let waiting = self
            .entries
            .iter()
            .filter(|(_, entry)| entry.conn == Some(conn));
        for ip in waiting.map(|(ip, _)| *ip).collect::<Vec<_>>() {
            self.flush(ip, now);
        }
    }

    fn released(&mut self, conn: ConnId, cause: Cause, now: Instant) {
        let Some(known) = self.conns.remove(conn) else {
            return;
        };
        let opened = known.is_open();
        self.counters.calls_failed += u64::from(!opened);
        // A member that does not support VC multiplexing may accept LLC/SNAP.
        let refused = !opened
            && cause == Cause::INCOMPATIBLE
            && known.info.encapsulation == Encapsulation::VcMux
            && known.carries() == Role::Peer;
        let users = self
            .entries
            .iter()
            .filter(|(_, entry)| entry.conn == Some(conn));
        for ip in users.map(|(ip, _)| *ip).collect::<Vec<_>>() {
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
        Some((front, self.other_end(conn)))
    }

    /// Hands the IP stack a packet that a connection carried.
    fn deliver(&mut self, conn: ConnId, packet: &[u8]) {
        self.counters.delivered += 1;
        if let Some(link) = self.conns.info(conn) {
            link.packets.1 += 1;
        }
        let (packet, from) = (packet.to_vec(), self.other_end(conn));
        self.out.push_back(Output::Deliver { packet, from });
    }

    /// When InATMARP is repeated next, or a connection becomes idle.
    pub(super) fn next_conn_due(&self) -> Option<Instant> {
        let asks = self.conns.iter();
        let asks = asks.filter_map(|(_, known)| known.info.ask_at);
        asks.chain(self.conns.next()).min()
    }

    pub(super) fn conns_due(&mut self, now: Instant) {
        let due = |conn: &Conn| conn.info.ask_at.is_some_and(|at| at <= now);
        let late = self.conns.iter().filter(|(_, conn)| due(conn));
        for conn in late.map(|(conn, _)| conn).collect::<Vec<_>>() {
            self.ask_who(conn, now);
        }
        for conn in self.conns.idle(now) {
            self.counters.idle += 1;
            self.hang_up(conn);
        }
    }

    /// Releases a connection. Entries that used it open another one when necessary.
    pub(super) fn hang_up(&mut self, conn: ConnId) {
        let Some(release) = self.conns.release(conn) else {
            return;
        };
        for entry in self.entries.values_mut() {
            if entry.conn == Some(conn) {
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
                self.server.conn = self.call(called, (Role::Server, false), (qos, false), now);
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
        let trace = Trace::detail("clip.server-lost", text);
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
