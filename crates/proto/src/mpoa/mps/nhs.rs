//! Packets from peers, and the next hop server: forwarding, purges, errors.

use std::net::IpAddr;

use aerostat_wire::mpoa::{self, op_name};
use aerostat_wire::nhrp::{Body, PROTOCOL_IPV4, PROTOCOL_IPV6, Packet, code, error, flag, op};
use aerostat_wire::{AtmAddress, DecodeError};

use super::Server;
use super::conns::{ConnUse, MAX_SDU, Sent};
use super::faults::RefusedWith;
use super::resolve::requester;
use super::state::{Asked, Collect, CollectKey, Ingress, PurgeTarget, Purpose, Reach, count};
use crate::nhrp::{Expired, Fault, transit};
use crate::{ConnId, Instant, Trace};

impl Server {
    pub(super) fn received(&mut self, conn: ConnId, sdu: &[u8], now: Instant) {
        match self.conns.received(conn, now) {
            // The data half takes the packets of shortcuts.
            None | Some((ConnUse::Shortcut, _)) => self.counters.unexpected += 1,
            Some((ConnUse::Control, peer)) => match Packet::from_sdu(sdu) {
                Ok(packet) => self.packet(peer, packet, now),
                Err(error) => self.malformed(peer, error),
            },
        }
    }

    /// A packet of `peer`. Before anything else, whatever its type, it is checked whether this peer may send it.
    fn packet(&mut self, peer: AtmAddress, mut packet: Packet, now: Instant) {
        if let Err(fault) = self.config.keys.admit(peer, &mut packet) {
            return self.fault(peer, &packet, fault, now);
        }
        match packet.op {
            mpoa::op::RESOLUTION_REQUEST => self.mpoa_request(peer, packet, now),
            mpoa::op::IMPOSITION_REPLY => self.imposition_reply(peer, &packet, now),
            mpoa::op::EGRESS_PURGE_REQUEST => self.egress_purge(peer, &packet, now),
            op::ERROR_INDICATION => self.error_received(peer, packet, now),
            op::RESOLUTION_REQUEST..=op::PURGE_REPLY => {
                if let Err(fault) = self.station.check(&packet) {
                    return self.not_checked(peer, &packet, fault, now);
                }
                self.nhrp_packet(peer, packet, now);
            }
            // Packets that only a client receives.
            _ => self.unexpected(peer, &packet),
        }
    }

    /// True for a request whose destination is of the protocol that it names, and that is routed here.
    pub(super) fn speaks(&self, packet: &Packet) -> bool {
        let target = packet.common().and_then(|common| common.destination.ip());
        match packet.protocol {
            PROTOCOL_IPV4 => target.is_none_or(|ip| ip.is_ipv4()),
            PROTOCOL_IPV6 => {
                target.is_some_and(|ip| ip.is_ipv6()) && self.station.protocol6.is_some()
            }
            _ => false,
        }
    }

    fn nhrp_packet(&mut self, peer: AtmAddress, packet: Packet, now: Instant) {
        let here = transit::heading(&packet).is_some_and(|ip| self.station.is_own(ip));
        match packet.op {
            op::RESOLUTION_REQUEST => self.nhrp_request(peer, packet, now),
            op::RESOLUTION_REPLY if here => self.nhrp_reply(Some(peer), packet, now),
            op::PURGE_REQUEST if here => self.purge_received(peer, packet, now),
            op::PURGE_REPLY if here => self.purge_reply(peer, &packet, now),
            op::REGISTRATION_REQUEST if here || is_to_itself(&packet) => {
                self.registration(peer, &packet, now);
            }
            _ if here => self.unexpected(peer, &packet),
            _ => self.transit(peer, packet, now),
        }
    }

    fn nhrp_request(&mut self, peer: AtmAddress, packet: Packet, now: Instant) {
        self.counters.nhrp_requests_received += 1;
        let Some((target, (station, _))) = requester(&packet) else {
            self.counters.malformed += 1;
            return;
        };
        if !self.speaks(&packet) {
            return self.refuse(&packet, code::NO_BINDING, now);
        }
        self.trace(
            Trace::detail(
                "mps.nhrp.request",
                format!("{station} asks for the exit for {target}"),
            )
            .with("from", peer)
            .with("target", target),
        );
        self.note_way_back(&packet, peer, now);
        if !self.answer_from_cache(&packet, now) {
            let from = peer;
            self.find(target, Purpose::Resolve { packet, from }, now);
        }
    }

    /// A packet for another station.
    fn transit(&mut self, peer: AtmAddress, packet: Packet, now: Instant) {
        let Some(to) = transit::heading(&packet) else {
            self.counters.malformed += 1;
            return;
        };
        match self.station.forward(packet.clone()) {
            Ok(packet) => {
                self.counters.forwarded += 1;
                self.passes(peer, &packet, now);
                self.find(to, Purpose::Forward(packet), now);
            }
            Err(fault) => self.fault(peer, &packet, fault, now),
        }
    }

    /// NHRP Purge Request for this server: the bindings that it passed on to clients are void.
    fn purge_received(&mut self, peer: AtmAddress, packet: Packet, now: Instant) {
        self.counters.purges_received += 1;
        let Some(common) = packet.common().cloned() else {
            return;
        };
        let (Some(source), id) = (common.source_nbma.atm(), common.request_id) else {
            self.counters.malformed += 1;
            return;
        };
        let wants_reply = common.flags & flag::NO_REPLY == 0;
        let key: CollectKey = (source, id);
        if self.collects.contains_key(&key) {
            self.counters.duplicates += 1;
            return;
        }
        self.purge_kept(&packet, now);
        let collect = wants_reply.then_some(key);
        let mut waiting = 0;
        for cie in common.cies {
            let Some(target) = cie.protocol.ip() else {
                self.counters.malformed += 1;
                continue;
            };
            self.withdraw_all(peer, &cie, now);
            let narrowed = cie.nbma.atm();
            let prefix_len = transit::prefix_len(&cie, target);
            let hit = |entry: &Ingress| {
                narrowed.is_none_or(|nbma| entry.resolved.is_some_and(|(to, _)| to == nbma))
            };
            waiting += self.purge_clients(target, prefix_len, hit, collect, now);
        }
        if !wants_reply {
            return;
        }
        let request = packet;
        if waiting == 0 {
            return self.answer_purge(&request, now);
        }
        self.collects.insert(key, Collect { request, waiting });
    }

    fn answer_purge(&mut self, request: &Packet, now: Instant) {
        let Some(common) = request.common() else {
            return;
        };
        let Some(station) = common.source.ip() else {
            self.counters.malformed += 1;
            return;
        };
        let (flags, cies) = (common.flags, common.cies.clone());
        let extensions = self.reply_extensions(request);
        let reply = transit::reply(request, op::PURGE_REPLY, flags, cies, extensions);
        self.counters.purge_replies_sent += 1;
        self.find(station, Purpose::Forward(reply), now);
    }

    fn purge_reply(&mut self, peer: AtmAddress, packet: &Packet, now: Instant) {
        self.counters.purge_replies_received += 1;
        let id = packet.common().map_or(0, |common| common.request_id);
        let expected = match self.requests.get(id) {
            Some(Asked::Purge { to, .. }) => match to {
                PurgeTarget::Client(mpc) => *mpc == peer,
                PurgeTarget::Station(_) => true,
            },
            _ => false,
        };
        if !expected {
            return self.unexpected(peer, packet);
        }
        if let Some(Asked::Purge {
            collect: Some(key), ..
        }) = self.requests.close(id)
        {
            self.collect_ended(key, now);
        }
    }

    /// One of the purges that an upstream purge caused has ended, answered or not.
    fn collect_ended(&mut self, key: CollectKey, now: Instant) {
        let Some(collect) = self.collects.get_mut(&key) else {
            return;
        };
        collect.waiting = collect.waiting.saturating_sub(1);
        if collect.waiting == 0
            && let Some(collect) = self.collects.remove(&key)
        {
            self.answer_purge(&collect.request, now);
        }
    }

    /// Sends a purge and waits for its reply; true if a reply will count for `collect`.
    pub(super) fn send_purge(
        &mut self,
        mut packet: Packet,
        to: PurgeTarget,
        collect: Option<CollectKey>,
        now: Instant,
    ) -> bool {
        let rule = self.config.params.retry_rule();
        let asked = Asked::Purge {
            packet: packet.clone(),
            to,
            collect,
        };
        let id = self.requests.open(asked, rule, now);
        if let Body::Common(common) = &mut packet.body {
            match id {
                Some(id) => common.request_id = id,
                None => {
                    // There is no room to wait for a reply: the purge is sent once, without a retry.
                    self.counters.limits_met += 1;
                    common.request_id = self.requests.skip_id();
                    common.flags |= flag::NO_REPLY;
                }
            }
        }
        if let Some(id) = id
            && let Some(Asked::Purge { packet: kept, .. }) = self.requests.get_mut(id)
        {
            *kept = packet.clone();
        }
        self.transmit_purge(packet, to, now);
        id.is_some() && collect.is_some()
    }

    fn transmit_purge(&mut self, packet: Packet, to: PurgeTarget, now: Instant) {
        self.counters.purges_sent += 1;
        match to {
            PurgeTarget::Client(mpc) => self.send(mpc, &packet, now),
            PurgeTarget::Station(ip) => self.find(ip, Purpose::Forward(packet), now),
        }
    }

    /// The time of a request is over.
    pub(super) fn request_expired(&mut self, expired: Expired<Asked>, now: Instant) {
        match expired {
            Expired::Retry(id) => match self.requests.get(id).cloned() {
                Some(Asked::Resolution(key)) => self.ask_nhrp(key, now),
                Some(Asked::Imposition { cache_id, packet }) => {
                    if let Some(mpc) = self.egress.get(&cache_id).map(|entry| entry.mpc) {
                        self.counters.impositions_sent += 1;
                        self.send(mpc, &packet, now);
                    }
                }
                Some(Asked::Purge { packet, to, .. }) => self.transmit_purge(packet, to, now),
                None => {}
            },
            Expired::GivenUp(_, Asked::Resolution(key)) => self.give_up(key, now),
            Expired::GivenUp(_, Asked::Imposition { cache_id, .. }) => {
                self.counters.impositions_unanswered += 1;
                self.imposition_failed(cache_id, now);
            }
            Expired::GivenUp(_, Asked::Purge { collect, .. }) => {
                self.counters.purges_unanswered += 1;
                if let Some(key) = collect {
                    self.collect_ended(key, now);
                }
            }
        }
    }

    /// Error Indication: for a request made here, this is a negative answer.
    fn error_received(&mut self, peer: AtmAddress, mut packet: Packet, now: Instant) {
        let Body::Error(indication) = &packet.body else {
            return;
        };
        let source = indication.source.ip();
        if source.is_some_and(|ip| self.station.is_own(ip)) {
            self.counters.unexpected += 1;
            return;
        }
        match transit::heading(&packet) {
            Some(to) if self.station.is_own(to) => {}
            Some(to) if packet.hop_count > 0 => {
                packet.hop_count -= 1;
                self.counters.forwarded += 1;
                return self.find(to, Purpose::Forward(packet), now);
            }
            // RFC 2332 §5.2.7: no error indication about an error indication.
            _ => {
                self.counters.undeliverable += 1;
                return;
            }
        }
        count(&mut self.counters.errors_received, indication.code);
        let Ok(offending) = Packet::decode(&indication.offending) else {
            return;
        };
        // It has no signature. Where messages must be signed, it counts only from the neighbour that was asked.
        if !self.config.keys.unsigned && !self.asked(peer, &offending) {
            self.counters.unexpected += 1;
            return;
        }
        let observer = indication.source_nbma.atm();
        let with = RefusedWith::Error(indication.code);
        self.note_fault((&offending, with), observer, false, now);
        let (error_code, id) = (
            indication.code,
            offending.common().map_or(0, |common| common.request_id),
        );
        self.trace(
            Trace::detail(
                "mps.nhrp.error",
                format!("error {error_code} about {}", op_name(offending.op)),
            )
            .with("code", error_code),
        );
        self.resolution_failed(id, &offending, now);
    }

    /// True if `packet` was made here and sent to this neighbour, and its answer is still to come.
    fn asked(&self, peer: AtmAddress, packet: &Packet) -> bool {
        let id = packet.common().map_or(0, |common| common.request_id);
        match self.requests.get(id) {
            Some(Asked::Resolution(key)) => {
                let reach = self.ingress.get(key).and_then(|entry| entry.reach.as_ref());
                matches!(reach, Some(Reach::Neighbour { mps: Some(mps), .. }) if *mps == peer)
            }
            Some(Asked::Imposition { cache_id, .. }) => {
                let entry = self.egress.get(cache_id);
                entry.is_some_and(|entry| entry.mpc == peer)
            }
            Some(Asked::Purge { to, .. }) => match to {
                PurgeTarget::Client(mpc) => *mpc == peer,
                PurgeTarget::Station(_) => true,
            },
            None => false,
        }
    }

    /// If `request` was made here and is still outstanding, its client is refused.
    fn resolution_failed(&mut self, id: u32, request: &Packet, now: Instant) {
        if request.op == op::RESOLUTION_REQUEST
            && let Some(Asked::Resolution(key)) = self.requests.get(id).cloned()
            && request.common().and_then(|c| c.destination.ip()) == Some(key.1)
        {
            self.requests.close(id);
            self.unresolved(key, code::NO_BINDING, now);
        }
    }

    /// A packet that must not be forwarded. A packet that was made here needs no indication: this server is its source.
    fn not_checked(&mut self, peer: AtmAddress, packet: &Packet, fault: Fault, now: Instant) {
        let common = packet.common();
        let source = common.and_then(|common| common.source.ip());
        if fault.code != error::LOOP || source.is_none_or(|ip| !self.station.is_own(ip)) {
            return self.fault(peer, packet, fault, now);
        }
        self.counters.loops += 1;
        let id = common.map_or(0, |common| common.request_id);
        let text = format!("{} made here came back", op_name(packet.op));
        self.trace(Trace::detail("mps.nhrp.loop", text).with("peer", peer));
        self.resolution_failed(id, packet, now);
    }

    /// Sends an Error Indication about a packet to the peer that sent it.
    pub(super) fn fault(&mut self, peer: AtmAddress, packet: &Packet, fault: Fault, now: Instant) {
        let indication = Packet::error_about(
            &packet.encode(),
            fault.code,
            fault.offset,
            self.station.nbma,
            self.station.name(packet.protocol).into(),
        );
        let name = if fault.code == error::LOOP {
            "mps.nhrp.loop"
        } else {
            "mps.nhrp.fault"
        };
        let text = format!("{} refused with error {}", op_name(packet.op), fault.code);
        self.trace(Trace::detail(name, text).with("peer", peer));
        if packet.op == op::ERROR_INDICATION {
            // RFC 2332 §5.2.7: no error indication about an error indication.
            self.counters.unexpected += 1;
        }
        if let Some(indication) = indication {
            self.note_fault(
                (packet, RefusedWith::Error(fault.code)),
                Some(peer),
                true,
                now,
            );
            count(&mut self.counters.errors_sent, fault.code);
            // A looping packet came from a server. A station of this server gets the indication directly, since the
            // indication would not pass this server again.
            let source = packet.common().and_then(|common| common.source.ip());
            let station = source.and_then(|ip| self.stations.get(&ip)).copied();
            let to = station.filter(|_| matches!(fault.code, error::LOOP | error::HOP_COUNT));
            self.send(to.unwrap_or(peer), &indication, now);
        }
    }

    /// Sends a packet on a control connection.
    pub(super) fn send(&mut self, peer: AtmAddress, packet: &Packet, now: Instant) {
        let mut packet = packet.clone();
        self.config.keys.sign(peer, &mut packet);
        let sdu = packet.to_sdu();
        let own = self.config.control;
        if peer == own || sdu.len() > usize::from(MAX_SDU) {
            self.counters.undeliverable += 1;
            return;
        }
        if self.conns.send(own, peer, sdu, now, &mut self.out) == Sent::Full {
            self.counters.limits_met += 1;
        }
    }

    fn malformed(&mut self, peer: AtmAddress, error: DecodeError) {
        self.counters.malformed += 1;
        let text = format!("packet dropped: {error}");
        self.trace(Trace::detail("mps.malformed", text).with("peer", peer));
    }

    fn unexpected(&mut self, peer: AtmAddress, packet: &Packet) {
        self.counters.unexpected += 1;
        let text = format!("{} dropped: nothing here waits for it", op_name(packet.op));
        self.trace(Trace::detail("mps.unexpected", text).with("peer", peer));
    }

    /// Asks a client to resolve a destination.
    pub(super) fn send_trigger(
        &mut self,
        mpc: AtmAddress,
        source: IpAddr,
        target: IpAddr,
        now: Instant,
    ) {
        self.counters.triggers_sent += 1;
        let packet = mpoa::trigger(self.config.control, self.config.facing(source), target);
        self.trace(
            Trace::milestone(
                "mps.trigger",
                format!("asks the client of {source} to resolve {target}"),
            )
            .with("mpc", mpc)
            .with("target", target),
        );
        self.send(mpc, &packet, now);
    }
}

/// True if the packet goes to its sender: a client that does not know its server registers "at itself".
fn is_to_itself(packet: &Packet) -> bool {
    packet
        .common()
        .is_some_and(|common| common.source.ip() == common.destination.ip())
}
