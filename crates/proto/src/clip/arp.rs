//! ATMARP and InATMARP, of clients and of the server. Source: RFC 2225 §8.4, §8.5.

use super::{Clip, Role, Unresolved};
use crate::vcc::Vcc;
use crate::{AtmRequest, ConnId, Instant, Trace};
use aerostat_wire::AtmAddress;
use aerostat_wire::atmarp::{AtmArp, Operation, Party};
use aerostat_wire::prefix::is_host_on;
use std::net::Ipv4Addr;

/// A question by InATMARP waits for its answer so many times as long as one to a server.
const ASK_WAIT: u32 = 4;

impl Clip {
    fn own(&self) -> Party {
        let address = Some(self.config.address).filter(|address| !address.is_zero());
        Party::new(address, Some(self.config.ip))
    }

    fn tell(&mut self, conn: ConnId, packet: &AtmArp) {
        self.counters.arp_out += 1;
        let sdu = packet.to_sdu();
        self.request(AtmRequest::Send { conn, sdu });
    }

    fn ask(&mut self, conn: ConnId, ip: Ipv4Addr) {
        let packet = AtmArp {
            operation: Operation::REQUEST,
            source: self.own(),
            target: Party::new(None, Some(ip)),
        };
        self.tell(conn, &packet);
    }

    /// Asks the server for the ATM address of an IP address. Without a server nothing is sent; the question is
    /// repeated.
    pub(super) fn ask_server(&mut self, ip: Ipv4Addr) {
        if let Some(conn) = self.server.conn.filter(|_| self.server.registered) {
            self.ask(conn, ip);
        }
    }

    /// Asks the server for this member's own address, which registers it.
    pub(super) fn ask_own(&mut self, conn: ConnId) {
        self.ask(conn, self.config.ip);
    }

    /// Asks by InATMARP who is at the other end of a connection. On a permanent connection the question is repeated
    /// until it is answered.
    pub(super) fn ask_who(&mut self, conn: ConnId, now: Instant) {
        let wait = self.config.params.reply * ASK_WAIT;
        let Some(known) = self.conns.get(conn) else {
            return;
        };
        let permanent = known.carries() == Role::Permanent;
        self.asks.set(conn, permanent.then_some(now + wait));
        let packet = AtmArp {
            operation: Operation::INVERSE_REQUEST,
            source: self.own(),
            target: Party::new(self.other_end(conn), None),
        };
        self.tell(conn, &packet);
    }

    /// Repeats the questions of [`Self::ask_who`] that have no answer.
    pub(super) fn ask_again(&mut self, now: Instant) {
        // Where there was an answer, the next question is minutes away.
        for conn in self.asks.due(now + self.config.params.reply * ASK_WAIT) {
            self.ask_who(conn, now);
        }
    }

    /// Handles a packet of type 0806 on a connection.
    pub(super) fn arp(&mut self, conn: ConnId, packet: &[u8], now: Instant) {
        self.counters.arp_in += 1;
        let Ok(packet) = AtmArp::decode(packet) else {
            self.counters.bad += 1;
            return;
        };
        match packet.operation {
            Operation::REQUEST if self.config.serve => self.serve(conn, &packet, now),
            Operation::REQUEST => self.answer_request(conn, packet),
            Operation::REPLY => self.reply(conn, &packet, now),
            Operation::NAK => self.nak(conn, &packet, now),
            Operation::INVERSE_REQUEST => {
                let target = packet.source.clone();
                let answer = AtmArp {
                    operation: Operation::INVERSE_REPLY,
                    source: self.own(),
                    target,
                };
                self.tell(conn, &answer);
                self.bind(conn, &packet.source, now);
                // A server of RFC 1577 has what it needs when this answer arrives.
                if self.server.conn == Some(conn) {
                    self.server.answered.get_or_insert(now);
                }
            }
            Operation::INVERSE_REPLY => self.bind(conn, &packet.source, now),
            // Unknown operations are discarded silently.
            Operation(_) => {}
        }
    }

    /// True if the address can be that of the caller at the other end: no member may speak for another one.
    fn is_of(&self, conn: ConnId, address: Option<AtmAddress>) -> bool {
        match (self.other_end(conn), address) {
            (Some(peer), Some(address)) => peer.same_end_system(&address),
            // A permanent connection does not tell who is at its ends.
            (None, _) => true,
            (Some(_), None) => false,
        }
    }

    /// InATMARP has told who is at the other end of a connection.
    fn bind(&mut self, conn: ConnId, source: &Party, now: Instant) {
        let atm = source.number.address();
        let Some(role) = self.conns.get(conn).map(Vcc::carries) else {
            return;
        };
        let permanent = role == Role::Permanent;
        // A member may know next hops elsewhere, at the ends of permanent connections and by configuration.
        let can_be = |ip: Ipv4Addr| match self.config.serve && !permanent {
            true => self.is_on_subnet(ip),
            false => is_host(ip),
        };
        let genuine = |ip: &Ipv4Addr| can_be(*ip) && self.is_of(conn, atm);
        let Some(ip) = source.known_ip().filter(genuine) else {
            self.counters.bad += 1;
            return;
        };
        let again = now + self.config.params.client_life / 2;
        // Ask again before the entry ages, because nothing else renews it.
        self.asks.set(conn, permanent.then_some(again));
        if self.config.serve && !permanent && self.is_duplicate(conn, ip, atm) {
            return self.duplicate(ip);
        }
        // If a server can be asked, InATMARP of another client may only confirm what the server has told about that
        // client.
        let told = |entry: &super::entries::Entry| entry.atm.is_some() && entry.atm == atm;
        if matches!(role, Role::Peer | Role::Session)
            && self.is_client()
            && !self.entries.get(&ip).is_some_and(told)
        {
            return;
        }
        if permanent || atm.is_some() {
            // A connection of a session carries no other packets for this station.
            let conn = Some(conn).filter(|_| role != Role::Session);
            self.learn(ip, atm.filter(|_| !permanent), conn, now);
        }
    }

    // ---- client ----

    /// Answers a request. A client answers for itself, too.
    fn answer_request(&mut self, conn: ConnId, request: AtmArp) {
        if request.target.known_ip() == Some(self.config.ip) {
            let answer = AtmArp {
                operation: Operation::REPLY,
                source: self.own(),
                target: request.source,
            };
            self.tell(conn, &answer);
        }
    }

    fn reply(&mut self, conn: ConnId, packet: &AtmArp, now: Instant) {
        let Some(ip) = packet.source.known_ip() else {
            self.counters.bad += 1;
            return;
        };
        if self.server.conn != Some(conn) {
            // Only the server may speak for others.
            self.counters.bad += 1;
            return;
        }
        let atm = packet.source.number.address();
        if ip != self.config.ip {
            if atm.is_some() && self.entries.contains_key(&ip) {
                self.learn(ip, atm, None, now);
            }
            return;
        }
        if atm == Some(self.config.address) {
            self.owner = None;
            self.registered(true, now);
        } else {
            self.owner = atm;
            self.duplicate(ip);
            self.refused(now);
        }
    }

    fn nak(&mut self, conn: ConnId, packet: &AtmArp, now: Instant) {
        if self.server.conn != Some(conn) {
            self.counters.bad += 1;
            return;
        }
        self.counters.naks += 1;
        let ip = packet.target.known_ip();
        if ip == Some(self.config.ip) && !self.server.registered {
            let text = format!("the ATMARP server refuses the address {}", self.config.ip);
            self.trace(Trace::detail("clip.refused", text).with("ip", self.config.ip));
        }
        if let Some(ip) = ip.filter(|ip| *ip != self.config.ip) {
            let conn = self.entries.get(&ip).and_then(|entry| entry.conn);
            let peer = |conn: &ConnId| {
                let known = self.conns.get(*conn);
                known.is_some_and(|known| known.carries() == Role::Peer)
            };
            // The server says that the address has no owner any more.
            if let Some(conn) = conn.filter(peer) {
                self.hang_up(conn);
            }
            self.end_sessions(ip);
            self.give_up(ip, Unresolved::Nak, now);
        }
    }

    // ---- server ----

    /// Rules 1 to 6 of RFC 2225 §8.4.
    fn serve(&mut self, conn: ConnId, request: &AtmArp, now: Instant) {
        let (source, target) = (request.source.known_ip(), request.target.known_ip());
        let atm = request.source.number.address();
        let genuine = atm.filter(|_| self.is_of(conn, atm));
        let host = source.filter(|ip| self.is_on_subnet(*ip));
        if let Some(ip) = source.filter(|_| genuine.is_none() || host.is_none()) {
            // Such a source is not learned. A question is nevertheless answered; a registration is not, because a reply
            // would acknowledge it.
            self.counters.refused += 1;
            let why = match host {
                None => "is no address of a member of the subnet",
                Some(_) => "comes with an ATM address that is not the caller's",
            };
            let trace = Trace::detail("clip.not-learned", format!("{ip} {why}")).with("ip", ip);
            let from = self
                .other_end(conn)
                .map_or_else(String::new, |atm| atm.to_string());
            self.trace(trace.with("from", from));
            if source == target {
                return self.refuse(conn, request);
            }
        }
        if let (Some(ip), Some(_)) = (host, genuine) {
            let known = self.entries.get(&ip).and_then(|entry| entry.atm);
            let fixed = self.fixed_elsewhere(ip, atm);
            if let Some(fixed) = fixed {
                self.contradicted(ip, atm, fixed);
            } else if self.is_duplicate(conn, ip, atm) {
                self.duplicate(ip);
            } else if source == target || known.is_none() || known == atm {
                self.learn(ip, atm, Some(conn), now);
            }
        }
        let Some(wanted) = target else {
            return;
        };
        let found = if wanted == self.config.ip {
            Some(self.config.address)
        } else {
            self.entries.get(&wanted).and_then(|entry| entry.atm)
        };
        let answer = match found {
            Some(_) => AtmArp {
                operation: Operation::REPLY,
                source: Party::new(found, Some(wanted)),
                target: request.source.clone(),
            },
            None => return self.refuse(conn, request),
        };
        self.tell(conn, &answer);
    }

    /// Sends ATMARP_NAK: a copy of the request with another operation.
    fn refuse(&mut self, conn: ConnId, request: &AtmArp) {
        self.counters.naks += 1;
        let nak = AtmArp {
            operation: Operation::NAK,
            ..request.clone()
        };
        self.tell(conn, &nak);
    }

    /// True for an address that a member of the subnet can have.
    fn is_on_subnet(&self, ip: Ipv4Addr) -> bool {
        is_host(ip) && is_host_on(ip.into(), self.config.ip.into(), self.config.prefix_len)
    }

    /// True if another member has this IP address, and has an open connection.
    fn is_duplicate(&self, conn: ConnId, ip: Ipv4Addr, atm: Option<AtmAddress>) -> bool {
        if ip == self.config.ip {
            return true;
        }
        let Some(entry) = self.entries.get(&ip) else {
            return false;
        };
        let Some(theirs) = entry.atm.filter(|theirs| Some(*theirs) != atm) else {
            return false;
        };
        let own = entry.conn.and_then(|id| Some((id, self.conns.get(id)?)));
        let with = self.conns.with(theirs);
        let with = with.filter(|(_, other)| other.other_end() == Some(theirs));
        let mut others = own.into_iter().chain(with).filter(|(id, _)| *id != conn);
        others.any(|(_, other)| other.is_open())
    }

    /// The ATM address that is known beforehand for an IP address, if it is not this one.
    fn fixed_elsewhere(&self, ip: Ipv4Addr, atm: Option<AtmAddress>) -> Option<AtmAddress> {
        let fixed = self.config.hops.fixed.iter();
        let mut fixed = fixed.filter(|(known, _)| *known == ip);
        let (_, address) = fixed.next().filter(|_| ip != self.config.ip)?;
        (Some(*address) != atm).then_some(*address)
    }

    /// A member registers an IP address that belongs to another ATM address, as far as is known beforehand.
    fn contradicted(&mut self, ip: Ipv4Addr, atm: Option<AtmAddress>, fixed: AtmAddress) {
        self.counters.duplicates += 1;
        let text =
            format!("{ip} registers from another address than the next hops of its server say");
        let trace = Trace::milestone("clip.wrong-hop", text).with("ip", ip);
        let from = atm.map_or_else(String::new, |atm| atm.to_string());
        self.trace(trace.with("atm", from).with("known", fixed));
    }

    fn duplicate(&mut self, ip: Ipv4Addr) {
        self.counters.duplicates += 1;
        let text = format!("two have the IP address {ip}");
        self.trace(Trace::milestone("clip.duplicate", text).with("ip", ip));
    }
}

/// True for an address that a host can have.
#[must_use]
pub fn is_host(ip: Ipv4Addr) -> bool {
    // 0.0.0.0/8 has no hosts; members keep their default next hops there.
    !(ip.octets()[0] == 0 || ip.is_multicast() || ip.is_broadcast() || ip.is_loopback())
}
