//! Ingress role: a client asks, NHRP finds the answer, the client gets the answer and is purged when it changes.

use std::net::IpAddr;

use aerostat_wire::AtmAddress;
use aerostat_wire::mpoa::{self, code_name};
use aerostat_wire::nhrp::{Body, Cie, Extension, Packet, code, flag, op};
use aerostat_wire::prefix::width;

use super::Server;
use super::clients::of_client;
use super::faults::RefusedWith;
use super::state::{Asked, CollectKey, Ingress, IngressKey, PurgeTarget, Purpose, count};
use super::waiting::{Question, is_same};
use crate::mpoa::params::MAX_MTU;
use crate::nhrp::{Binding, Key, Reason, transit};
use crate::{Duration, Instant, Trace};

impl Server {
    /// MPOA Resolution Request from the client `mpc`.
    pub(super) fn mpoa_request(&mut self, mpc: AtmAddress, packet: Packet, now: Instant) {
        self.counters.mpoa_requests_received += 1;
        if !self.speaks(&packet) {
            return self.mpoa_refuse(mpc, &packet, mpoa::code::PROTOCOL, now);
        }
        let Some(Told {
            source, target, id, ..
        }) = Told::by(&packet)
        else {
            self.counters.malformed += 1;
            return;
        };
        let checked = self
            .station
            .check(&packet)
            .and_then(|()| self.station.reply_extensions(&packet))
            .and_then(|_| transit::may_go_on(&packet));
        if let Err(fault) = checked {
            return self.fault(mpc, &packet, fault, now);
        }
        let key = (mpc, target);
        self.trace(
            Trace::milestone(
                "mps.resolution.received",
                format!("client {source} asks for a shortcut to {target}"),
            )
            .with("mpc", mpc)
            .with("target", target)
            .with("id", id),
        );
        let current = self.ingress.get(&key).filter(|entry| entry.asking);
        match current.map(|entry| is_same(&entry.request, &packet)) {
            None => self.begin(mpc, packet, now),
            Some(same) if same || self.waits_in.has(&key, &packet) => {
                self.counters.duplicates += 1;
            }
            Some(_) => {
                self.counters.waited += 1;
                let question = Question { packet, from: mpc };
                if let Err(question) = self.waits_in.add(key, question, &self.config.limits) {
                    self.counters.limits_met += 1;
                    self.mpoa_refuse(mpc, &question.packet, code::RESOURCES, now);
                }
            }
        }
    }

    /// Makes an ingress entry for a request, or uses the one that has its answer already, and asks over NHRP.
    fn begin(&mut self, mpc: AtmAddress, packet: Packet, now: Instant) {
        let Some(Told {
            data,
            source,
            target,
            id,
        }) = Told::by(&packet)
        else {
            return;
        };
        let key = (mpc, target);
        if !self.ingress.contains_key(&key) && !self.ingress_has_room(mpc) {
            self.counters.limits_met += 1;
            return self.mpoa_refuse(mpc, &packet, code::RESOURCES, now);
        }
        let rule = self.config.params.resolution_rule();
        let Some(nhrp_id) = self.requests.open(Asked::Resolution(key), rule, now) else {
            self.counters.limits_met += 1;
            return self.mpoa_refuse(mpc, &packet, code::RESOURCES, now);
        };
        let old = self.ingress.remove(&key);
        let entry = Ingress {
            mpoa_id: id,
            mpc_data: data,
            mpc_protocol: source,
            nhrp_id,
            asking: true,
            // The previous binding stays in use during the refresh.
            resolved: old
                .filter(|old| old.mpc_data == data)
                .and_then(|old| old.resolved),
            prefix_len: width(target),
            category: mpoa::service_category(&packet).ok().flatten(),
            reach: None,
            request: packet,
        };
        self.ingress.insert(key, entry);
        self.ask_nhrp(key, now);
    }

    /// The request of an ingress entry has been answered: the one that has waited for longest is the next.
    fn next_in(&mut self, key: IngressKey, now: Instant) {
        let is_asking = |server: &Self| server.ingress.get(&key).is_some_and(|e| e.asking);
        while !is_asking(self)
            && let Some(next) = self.waits_in.next(&key)
        {
            self.begin(key.0, next.packet, now);
        }
    }

    /// Sends the NHRP request of an ingress entry, or sends it again.
    pub(super) fn ask_nhrp(&mut self, key: IngressKey, now: Instant) {
        let Some(entry) = self.ingress.get(&key) else {
            return;
        };
        let mut packet = entry.request.clone();
        packet.op = op::RESOLUTION_REQUEST;
        packet.hop_count = packet.hop_count.saturating_sub(1);
        if let Body::Common(common) = &mut packet.body {
            common.request_id = entry.nhrp_id;
            common.flags |= flag::ROUTER;
            // Replies must come back here, so this server's address replaces the client's.
            common.source = self.config.facing(entry.mpc_protocol).into();
        }
        let from = self.config.control;
        self.find(key.1, Purpose::Resolve { packet, from }, now);
    }

    /// The answer to an NHRP request made here; `from` is the peer that sent it, if it came from outside.
    pub(super) fn nhrp_reply(&mut self, from: Option<AtmAddress>, reply: Packet, now: Instant) {
        let Some((id, nbma, cie)) = reply.common().and_then(|c| {
            let target = (c.source_nbma.atm()?, c.destination.ip()?);
            Some((c.request_id, target, c.cies.first()?.clone()))
        }) else {
            self.counters.malformed += 1;
            return;
        };
        let key = match self.requests.get(id) {
            Some(Asked::Resolution(key)) => *key,
            _ => return self.unsolicited(from, id, &reply, now),
        };
        let entry = self.ingress.get_mut(&key);
        let Some(entry) = entry.filter(|entry| (entry.mpc_data, key.1) == nbma) else {
            return self.unsolicited(from, id, &reply, now);
        };
        self.requests.close(id);
        if from.is_some() {
            count(&mut self.counters.nhrp_replies_received, cie.code);
        }
        let usable = cie.code == code::OK && cie.nbma.atm().is_some();
        if cie.code == code::OK && !usable {
            self.counters.malformed += 1;
        }
        entry.asking = false;
        if !usable {
            let refusal = if cie.code == code::OK {
                mpoa::code::OTHER
            } else {
                cie.code
            };
            return self.unresolved(key, refusal, now);
        }
        self.resolved(key, &reply, cie, now);
        self.next_in(key, now);
    }

    /// There is no binding: refuses the request of an entry, and those that asked the same.
    pub(super) fn unresolved(&mut self, key: IngressKey, refusal: u8, now: Instant) {
        let Some(entry) = self.ingress.remove(&key) else {
            return;
        };
        self.forget_learned(key.1, entry.mpc_data);
        self.refuse_all(key, entry.request, refusal, now);
    }

    /// Refuses the request of an entry, and those that asked the same. A request that asks something else is the next
    /// question.
    fn refuse_all(&mut self, key: IngressKey, request: Packet, refusal: u8, now: Instant) {
        let others = self.waits_in.take_served(&key, &request);
        for request in core::iter::once(request).chain(others) {
            self.mpoa_refuse(key.0, &request, refusal, now);
        }
        self.next_in(key, now);
    }

    /// A positive answer: remembers it for purges and sends it to the client.
    fn resolved(&mut self, key: IngressKey, reply: &Packet, mut cie: Cie, now: Instant) {
        let (Some(nbma), Some(entry)) = (cie.nbma.atm(), self.ingress.get_mut(&key)) else {
            return;
        };
        let until = now + Duration::from_secs(cie.holding_s.into());
        let next_hop = cie.protocol.ip();
        entry.resolved = Some((nbma, until));
        entry.prefix_len = transit::prefix_len(&cie, key.1);
        let requester = (entry.mpc_protocol, entry.mpc_data);
        let cache_key = Key {
            destination: key.1,
            prefix_len: entry.prefix_len,
            scope: Some(entry.mpc_data),
            reason: Reason::Learned,
        };
        let mut requests = vec![entry.request.clone()];
        requests.extend(self.waits_in.take_served(&key, &entry.request));
        if cie.mtu > MAX_MTU {
            cie.mtu = 0;
        }
        cie.protocol = aerostat_wire::nhrp::ProtocolAddress::NONE;
        let binding = Binding {
            nbma,
            next_hop,
            mtu: cie.mtu,
            until,
            unique: false,
            requesters: std::iter::once((requester, until)).collect(),
        };
        if cie.holding_s == 0 {
            self.ingress.remove(&key);
        } else if !self.cache.store(cache_key, binding, now) {
            self.counters.limits_met += 1;
            self.ingress.remove(&key);
            for request in requests {
                self.mpoa_refuse(key.0, &request, code::RESOURCES, now);
            }
            return;
        }
        for request in &requests {
            count(&mut self.counters.mpoa_replies_sent, code::OK);
            self.trace(
                Trace::milestone(
                    "mps.resolution.replied",
                    format!("client {} may open a shortcut to {}", requester.0, key.1),
                )
                .with("mpc", key.0)
                .with("target", key.1)
                .with("atm", nbma)
                .with("holding", cie.holding_s),
            );
            let extensions = client_extensions(request, reply);
            let cies = vec![cie.clone()];
            let answer = transit::reply(request, mpoa::op::RESOLUTION_REPLY, 0, cies, extensions);
            self.send(key.0, &answer, now);
        }
        self.keep_alive_for(key.0, now);
    }

    /// A negative reply to a client.
    pub(super) fn mpoa_refuse(
        &mut self,
        mpc: AtmAddress,
        request: &Packet,
        refusal: u8,
        now: Instant,
    ) {
        let reply = transit::reply(
            request,
            mpoa::op::RESOLUTION_REPLY,
            0,
            vec![transit::refusal(request, refusal)],
            request.extensions.clone(),
        );
        count(&mut self.counters.mpoa_replies_sent, refusal);
        self.note_fault((request, RefusedWith::Code(refusal)), Some(mpc), true, now);
        let target = request.common().and_then(|c| c.destination.ip());
        self.trace(
            Trace::milestone(
                "mps.resolution.refused",
                format!(
                    "no shortcut to {}: {}",
                    target.map_or_else(|| "?".into(), |ip| ip.to_string()),
                    code_name(refusal)
                ),
            )
            .with("mpc", mpc)
            .with("code", refusal),
        );
        self.send(mpc, &reply, now);
    }

    /// No answer within p6: the client is told so. A binding that the request was to refresh stays until its holding
    /// time is over.
    ///
    /// The code is 0x88 (unspecified). Code 12 would say that no binding exists, which no server has told (RFC 2332
    /// §5.2.2), and codes 4, 5 and 13 give reasons that are not known either. MPOA 1.1 names the wait (MPS-p6) and
    /// leaves the code open; a server that drops the request in silence leaves its client to its own retries.
    pub(super) fn give_up(&mut self, key: IngressKey, now: Instant) {
        self.counters.give_ups += 1;
        self.trace(
            Trace::detail(
                "mps.resolution.given-up",
                format!("nobody answered for {}", key.1),
            )
            .with("mpc", key.0),
        );
        let Some(entry) = self.ingress.get_mut(&key) else {
            return;
        };
        entry.asking = false;
        if entry.resolved.is_none() {
            return self.unresolved(key, mpoa::code::OTHER, now);
        }
        let request = entry.request.clone();
        self.refuse_all(key, request, mpoa::code::OTHER, now);
    }

    /// Purges the clients that have a binding for this prefix and that `only` selects.
    ///
    /// Returns how many replies will count for `collect`, the purge from upstream that caused it.
    pub(super) fn purge_clients(
        &mut self,
        destination: IpAddr,
        prefix_len: u8,
        only: impl Fn(&Ingress) -> bool,
        collect: Option<CollectKey>,
        now: Instant,
    ) -> usize {
        let hit = |key: &IngressKey, entry: &Ingress| {
            let learned = Key {
                destination: key.1,
                prefix_len: entry.prefix_len,
                scope: None,
                reason: Reason::Learned,
            };
            entry.resolved.is_some() && learned.overlaps(destination, prefix_len) && only(entry)
        };
        let keys: Vec<IngressKey> = self
            .ingress
            .iter()
            .filter(|(key, entry)| hit(key, entry))
            .map(|(key, _)| *key)
            .collect();
        keys.into_iter()
            .filter(|key| self.purge_client(*key, collect, now))
            .count()
    }

    /// Withdraws the binding from one client. A refresh that is under way continues.
    fn purge_client(&mut self, key: IngressKey, collect: Option<CollectKey>, now: Instant) -> bool {
        let Some(entry) = self.ingress.get_mut(&key) else {
            return false;
        };
        entry.resolved = None;
        let (prefix_len, data, client) = (entry.prefix_len, entry.mpc_data, entry.mpc_protocol);
        if !entry.asking {
            self.ingress.remove(&key);
        }
        self.forget_learned(key.1, data);
        self.trace(
            Trace::milestone(
                "mps.purge",
                format!("client {client} must stop using its shortcut to {}", key.1),
            )
            .with("mpc", key.0)
            .with("target", key.1),
        );
        let packet = mpoa::purge_request(
            0,
            self.config.control,
            self.config.facing(client),
            client,
            key.1,
            prefix_len,
        );
        self.send_purge(packet, PurgeTarget::Client(key.0), collect, now)
    }

    /// The holding time of learned bindings is over, or they were purged.
    pub(super) fn forget_learned(&mut self, destination: IpAddr, data: AtmAddress) {
        for key in self.cache.matching(destination, width(destination), None) {
            if key.reason == Reason::Learned
                && key.scope == Some(data)
                && key.destination == destination
            {
                self.cache.remove(&key);
            }
        }
    }

    /// Removes ingress entries whose binding has run out.
    pub(super) fn expire_ingress(&mut self, destination: IpAddr, data: Option<AtmAddress>) {
        self.ingress.retain(|key, entry| {
            if key.1 == destination && Some(entry.mpc_data) == data {
                entry.resolved = None;
            }
            entry.asking || entry.resolved.is_some()
        });
    }

    fn ingress_has_room(&self, mpc: AtmAddress) -> bool {
        self.ingress.len() < self.config.limits.ingress
            && of_client(&self.ingress, mpc).count() < self.config.limits.ingress_per_mpc
    }

    /// A reply without a request: RFC 2332 §5.2.7, error 10, unless it is a duplicate.
    fn unsolicited(&mut self, from: Option<AtmAddress>, id: u32, reply: &Packet, now: Instant) {
        if self.ingress.values().any(|entry| entry.nhrp_id == id) {
            self.counters.duplicates += 1;
            return;
        }
        self.counters.unexpected += 1;
        if let Some(from) = from {
            let fault = crate::nhrp::Fault {
                code: aerostat_wire::nhrp::error::UNSOLICITED_REPLY,
                offset: 0,
            };
            self.fault(from, reply, fault, now);
        }
    }
}

/// The parts of a request by a client.
struct Told {
    /// Data address of the client.
    data: AtmAddress,
    /// Protocol address of the client.
    source: IpAddr,
    target: IpAddr,
    id: u32,
}

impl Told {
    fn by(request: &Packet) -> Option<Self> {
        let common = request.common()?;
        Some(Self {
            data: common.source_nbma.atm()?,
            source: common.source.ip()?,
            target: common.destination.ip()?,
            id: common.request_id,
        })
    }
}

/// Extensions of the reply to a client: MPOA's, and those that the client sent itself. The other extensions were added
/// on the way; existing clients cannot skip them.
fn client_extensions(request: &Packet, reply: &Packet) -> Option<Vec<Extension>> {
    let list: Vec<Extension> = reply
        .extensions
        .iter()
        .flatten()
        .filter(|e| {
            let wanted = mpoa::ext::known(e.kind()) || request.extension(e.kind()).is_some();
            wanted && e.kind() != mpoa::ext::DLL_HEADER
        })
        .cloned()
        .collect();
    (request.extensions.is_some() || !list.is_empty()).then_some(list)
}
