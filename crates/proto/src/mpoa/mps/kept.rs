//! Replies to other servers that passed through: they are kept while they are valid, for requesters that accept a
//! non-authoritative answer (flag A clear).
//!
//! RFC 2332 §6.2.1 lets a transit server keep replies; this server keeps a part of them. It keeps a positive
//! authoritative reply with one entry, whose destination is stable (flag D), without extensions of MPOA (bindings of
//! MPOA are for one ingress client). The reply must answer a request that passed here, and come from the server that
//! got this request: a neighbour cannot insert bindings. Sources of requests (flag S) are never kept.
//!
//! A requester that got an answer from here is purged when the binding ends: by a purge on its way to the first
//! requester, by a route that changes, or by a newer reply. Only requests that take the path of the kept reply are
//! answered.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use aerostat_wire::nhrp::{Cie, Packet, code, flag, op};
use aerostat_wire::prefix::width;
use aerostat_wire::{AtmAddress, mpoa};

use super::Server;
use super::resolve::requester;
use super::state::Reach;
use crate::nhrp::{Binding, Key, Reason, transit};
use crate::{Duration, Instant, Trace};

/// A request is known by its source, its id and its destination.
type PassKey = (AtmAddress, u32, IpAddr);

/// Requests that were forwarded from here, for as long as a reply may come back.
#[derive(Debug)]
pub(super) struct Passing {
    limit: usize,
    open: BTreeMap<PassKey, (Instant, AtmAddress, Reach)>,
    ends: BTreeSet<(Instant, PassKey)>,
}

impl Passing {
    pub(super) const fn new(limit: usize) -> Self {
        Self {
            limit,
            open: BTreeMap::new(),
            ends: BTreeSet::new(),
        }
    }

    /// The request is forwarded to the server `next`; a retry is stored already. False without room: its reply is not
    /// kept.
    #[must_use]
    fn note(&mut self, key: PassKey, next: AtmAddress, reach: &Reach, until: Instant) -> bool {
        if self.open.len() >= self.limit && !self.open.contains_key(&key) {
            return false;
        }
        if let Some((old, ..)) = self.open.insert(key, (until, next, reach.clone())) {
            self.ends.remove(&(old, key));
        }
        self.ends.insert((until, key));
        true
    }

    /// The path of the request that a reply from `peer` answers.
    fn take(&mut self, key: &PassKey, peer: AtmAddress) -> Option<Reach> {
        self.open.get(key).filter(|(_, next, _)| *next == peer)?;
        let (until, _, reach) = self.open.remove(key)?;
        self.ends.remove(&(until, *key));
        Some(reach)
    }

    pub(super) fn expire(&mut self, now: Instant) {
        while let Some((at, key)) = self.ends.first().copied().filter(|(at, _)| *at <= now) {
            self.ends.remove(&(at, key));
            self.open.remove(&key);
        }
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.ends.first().map(|(at, _)| *at)
    }

    pub(super) fn clear(&mut self) {
        self.open.clear();
        self.ends.clear();
    }
}

impl Server {
    /// A request is forwarded to the server `next`: its reply may be kept.
    pub(super) fn note_passing(
        &mut self,
        request: &Packet,
        next: AtmAddress,
        reach: &Reach,
        now: Instant,
    ) {
        let Some((target, (_, source))) = requester(request) else {
            return;
        };
        if self.config.limits.kept == 0 || !is_plain(request) {
            return;
        }
        let id = request.common().map_or(0, |common| common.request_id);
        let until = now + self.config.params.resolution_rule().give_up;
        if !(self.passing).note((source, id, target), next, reach, until) {
            self.counters.limits_met += 1;
        }
    }

    /// A packet for another station that is forwarded: replies may be kept, purges remove kept replies.
    pub(super) fn passes(&mut self, peer: AtmAddress, packet: &Packet, now: Instant) {
        match packet.op {
            op::RESOLUTION_REPLY => self.keep(peer, packet, now),
            op::PURGE_REQUEST => self.purge_kept(packet, now),
            _ => {}
        }
    }

    fn keep(&mut self, peer: AtmAddress, reply: &Packet, now: Instant) {
        let (Some(common), Some((target, (_, source)))) = (reply.common(), requester(reply)) else {
            return;
        };
        let key = (source, common.request_id, target);
        let Some(reach) = self.passing.take(&key, peer) else {
            return;
        };
        let has = |bit: u16| common.flags & bit != 0;
        let ([cie], true) = (&common.cies[..], has(flag::AUTHORITATIVE)) else {
            return;
        };
        let good = cie.code == code::OK && cie.holding_s > 0;
        let binding = cie.nbma.atm().filter(|_| good).map(|nbma| Binding {
            nbma,
            next_hop: cie.protocol.ip(),
            mtu: cie.mtu,
            until: now + Duration::from_secs(cie.holding_s.into()),
            unique: has(flag::UNIQUE),
            requesters: BTreeMap::new(),
        });
        let binding = binding.filter(|_| is_plain(reply) && has(flag::DESTINATION_STABLE));
        if binding.is_none() && cie.code != code::NO_BINDING {
            return;
        }
        // Kept replies that say otherwise are void.
        for old in self.cache.matching(target, width(target), None) {
            let known = self.cache.get(&old).map(|known| (known.nbma, known.mtu));
            let same = binding.as_ref().map(|new| (new.nbma, new.mtu)) == known;
            if old.reason == Reason::Transit && !same {
                self.drop_kept(&old, now);
            }
        }
        let prefix_len = transit::prefix_len(cie, target);
        let Some(binding) = binding else { return };
        let key = Key {
            destination: crate::nhrp::cache::network(target, prefix_len),
            prefix_len,
            scope: None,
            reason: Reason::Transit,
        };
        let room = self.kept.len() < self.config.limits.kept || self.kept.contains_key(&key);
        if !room || !self.cache.store(key, binding, now) {
            self.counters.limits_met += 1;
            return;
        }
        self.kept.insert(key, reach);
        self.counters.kept += 1;
        let text = format!("the answer about {target} is kept");
        self.trace(Trace::detail("mps.nhrp.kept", text).with("target", target));
    }

    /// Answers a request that would be forwarded over `reach` from a kept reply. False if there is no kept reply, or
    /// the request wants an authoritative answer.
    pub(super) fn answer_kept(&mut self, request: &Packet, reach: &Reach, now: Instant) -> bool {
        let Some((target, who)) = requester(request) else {
            return false;
        };
        let flags = request.common().map_or(0, |common| common.flags);
        if flags & flag::AUTHORITATIVE != 0 || !is_plain(request) {
            return false;
        }
        let fits = |(key, binding): &(&Key, &Binding)| {
            let whole = binding.until.since(now).as_secs() > 0;
            key.reason == Reason::Transit
                && (flags & flag::UNIQUE == 0 || binding.unique)
                && binding.until > now
                && whole
        };
        let found = self.cache.about(target).filter(fits);
        let best = found.max_by_key(|(key, _)| key.prefix_len);
        let best = best.filter(|(key, _)| self.kept.get(key) == Some(reach));
        let Some((key, binding)) = best else {
            return false;
        };
        let left = binding.until.since(now).as_secs();
        let cie = Cie {
            mtu: binding.mtu,
            nbma: binding.nbma.into(),
            protocol: binding.next_hop.map(Into::into).unwrap_or_default(),
            ..Cie::brief(width(target), u16::try_from(left).unwrap_or(u16::MAX))
        };
        let key = *key;
        // A requester that cannot be purged later gets no answer from here: the authoritative server answers.
        if !self.cache.note_requester(&key, who) {
            self.counters.limits_met += 1;
            return false;
        }
        self.counters.kept_answers += 1;
        let extensions = self.reply_extensions(request);
        let made = flag::DESTINATION_STABLE;
        self.nhrp_answer(request, (cie, made), extensions, now);
        true
    }

    /// The destinations that a purge names are not answered from here any more.
    pub(super) fn purge_kept(&mut self, purge: &Packet, now: Instant) {
        for cie in purge.common().map_or(&[][..], |common| &common.cies) {
            let Some(address) = cie.protocol.ip() else {
                continue;
            };
            let hit =
                self.cache
                    .matching(address, transit::prefix_len(cie, address), cie.nbma.atm());
            for key in hit.iter().filter(|key| key.reason == Reason::Transit) {
                self.drop_kept(key, now);
            }
        }
    }

    pub(super) fn drop_kept(&mut self, key: &Key, now: Instant) {
        self.kept.remove(key);
        if let Some(binding) = self.cache.remove(key) {
            self.purge_requesters(key, binding, None, now);
        }
    }
}

/// True if the packet neither asks for nor carries anything that concerns only one requester or is unknown here.
fn is_plain(packet: &Packet) -> bool {
    let mut all = packet.extensions.iter().flatten();
    !all.any(|extension| mpoa::ext::known(extension.kind())) && !transit::has_unknown(packet)
}
