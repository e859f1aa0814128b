//! Egress role: the server tells a client on a served ELAN how packets from a shortcut leave; the client accepts or
//! refuses.

use std::net::IpAddr;

use aerostat_wire::AtmAddress;
use aerostat_wire::mpoa::{self, DllHeader, Imposition, Tag, code_name};
use aerostat_wire::nhrp::{Body, Cie, Extension, Packet, code, flag};
use aerostat_wire::prefix::width;

use super::Server;
use super::resolve::{Exit, requester};
use super::state::{Asked, Egress, EgressState, PurgeTarget, Purpose, Reach, count};
use super::waiting::{Question, WaitKey, is_same};
use crate::mpoa::params::MAX_MTU;
use crate::nhrp::{Binding, Key, Reason};
use crate::{Duration, Instant, Trace};

impl Server {
    /// Imposes the binding for this request, or refreshes an existing binding.
    pub(super) fn impose_for(
        &mut self,
        question: Question,
        exit: &Exit,
        reach: &Reach,
        now: Instant,
    ) {
        let request = &question.packet;
        let Some((destination, (_, ingress_data))) = requester(request) else {
            self.counters.malformed += 1;
            return;
        };
        let Some(interface) = self.config.interface(exit.itf).copied() else {
            return self.refuse(request, code::NO_BINDING, now);
        };
        let index = (ingress_data, destination);
        if let Some(cache_id) = self.egress_index.get(&index).copied() {
            if let Some(entry) = self.egress.get(&cache_id).filter(|e| e.reach == *reach) {
                let current = entry.request.as_ref();
                let current = current.filter(|_| entry.imposition.is_some());
                return match current.map(|current| is_same(&current.packet, request)) {
                    None => self.impose_again(cache_id, question, now),
                    Some(same) if same || self.waits_out.has(&index, request) => {
                        self.counters.duplicates += 1;
                    }
                    Some(_) => self.wait_out(index, question, now),
                };
            }
            self.remove_egress(cache_id, true, "the way to it changed", now);
        }
        if self.egress.len() >= self.config.limits.egress {
            self.counters.limits_met += 1;
            return self.refuse(request, code::RESOURCES, now);
        }
        let nhrp_id = request.common().map_or(0, |c| c.request_id);
        let cache_id = self.free_cache_id();
        let entry = Egress {
            destination,
            ingress_data,
            mpc: exit.mpc,
            itf: exit.itf,
            elan_id: interface.elan_id,
            next_hop: exit.hop,
            header: DllHeader::ethernet(destination, exit.mac, interface.mac),
            reach: reach.clone(),
            state: EgressState::Imposing,
            category: mpoa::service_category(request).ok().flatten(),
            asked: request.clone(),
            request: Some(question),
            imposition: None,
            nhrp_id,
            tag: None,
            mpc_data: None,
            until: None,
        };
        self.egress.insert(cache_id, entry);
        self.egress_index.insert(index, cache_id);
        self.impose(cache_id, now);
    }

    /// Imposes an existing binding again, for a request that the client has not answered yet.
    fn impose_again(&mut self, cache_id: u32, question: Question, now: Instant) {
        if let Some(entry) = self.egress.get_mut(&cache_id) {
            let request = &question.packet;
            entry.nhrp_id = request.common().map_or(0, |c| c.request_id);
            entry.category = mpoa::service_category(request).ok().flatten();
            entry.asked = request.clone();
            entry.request = Some(question);
            self.impose(cache_id, now);
        }
    }

    /// An imposition for another request is under way: this one waits.
    fn wait_out(&mut self, index: WaitKey, question: Question, now: Instant) {
        self.counters.waited += 1;
        if let Err(question) = self.waits_out.add(index, question, &self.config.limits) {
            self.counters.limits_met += 1;
            self.refuse(&question.packet, code::RESOURCES, now);
        }
    }

    /// The request of an entry has been answered. The one that has waited for longest is the next: the binding is
    /// imposed again, or, if it is gone, the path is looked up anew.
    fn next_out(&mut self, index: WaitKey, now: Instant) {
        if let Some(cache_id) = self.egress_index.get(&index).copied() {
            if let Some(next) = self.waits_out.next(&index) {
                self.impose_again(cache_id, next, now);
            }
            return;
        }
        for Question { packet, from } in self.waits_out.end(&index) {
            self.find(index.1, Purpose::Resolve { packet, from }, now);
        }
    }

    /// Sends a Cache Imposition Request for an entry: with its holding time, or 0 if it is being cleared.
    fn impose(&mut self, cache_id: u32, now: Instant) {
        let Some(packet) = self.imposition_packet(cache_id) else {
            return;
        };
        let rule = self.config.params.retry_rule();
        let asked = Asked::Imposition { cache_id, packet };
        let Some(id) = self.requests.open(asked, rule, now) else {
            self.counters.limits_met += 1;
            return self.no_imposition(cache_id, now);
        };
        let Some(Asked::Imposition { packet, .. }) = self.requests.get_mut(id) else {
            return;
        };
        if let Body::Common(common) = &mut packet.body {
            common.request_id = id;
        }
        let packet = packet.clone();
        let Some(entry) = self.egress.get_mut(&cache_id) else {
            return;
        };
        if let Some(old) = entry.imposition.replace(id) {
            self.requests.close(old);
        }
        let (mpc, target, clearing) = (
            entry.mpc,
            entry.destination,
            entry.state == EgressState::Clearing,
        );
        let text = if clearing {
            format!("tells the client to remove the binding for {target}")
        } else {
            format!("imposes a binding for {target} on its client")
        };
        self.trace(
            Trace::milestone("mps.imposition.sent", text)
                .with("mpc", mpc)
                .with("cache-id", format!("{cache_id:#x}"))
                .with("target", target),
        );
        self.counters.impositions_sent += 1;
        self.send(mpc, &packet, now);
    }

    fn imposition_packet(&self, cache_id: u32) -> Option<Packet> {
        let entry = self.egress.get(&cache_id)?;
        let dll = DllHeader {
            cache_id,
            elan_id: entry.elan_id,
            header: entry.header.clone(),
        };
        let clearing = entry.state == EgressState::Clearing;
        let imposition = Imposition {
            id: 0,
            ingress_data: entry.ingress_data,
            mps: self.config.interface(entry.itf)?.own(entry.destination),
            target: entry.destination,
            prefix: width(entry.destination),
            holding_s: if clearing {
                0
            } else {
                self.config.params.holding_s()
            },
            want_tag: false,
            dll,
        };
        let mut packet = imposition.packet();
        // Only MPOA's extensions are sent: existing clients cannot skip NHRP's.
        let mut list: Vec<Extension> = entry
            .asked
            .extensions
            .iter()
            .flatten()
            .filter(|e| mpoa::ext::known(e.kind()) && e.kind() != mpoa::ext::DLL_HEADER)
            .cloned()
            .collect();
        list.append(packet.extensions.get_or_insert_default());
        packet.extensions = Some(list);
        Some(packet)
    }

    /// Cache Imposition Reply from the client `mpc`.
    pub(super) fn imposition_reply(&mut self, mpc: AtmAddress, reply: &Packet, now: Instant) {
        let id = reply.common().map_or(0, |common| common.request_id);
        let Some(Asked::Imposition { cache_id, .. }) = self.requests.get(id) else {
            self.counters.unexpected += 1;
            return;
        };
        let cache_id = *cache_id;
        if self.egress.get(&cache_id).is_none_or(|e| e.mpc != mpc) {
            self.counters.unexpected += 1;
            return;
        }
        let Some(cie) = reply.common().and_then(|c| c.cies.first()).cloned() else {
            self.counters.malformed += 1;
            return;
        };
        self.requests.close(id);
        count(&mut self.counters.imposition_replies_received, cie.code);
        let Some(entry) = self.egress.get_mut(&cache_id) else {
            return;
        };
        entry.imposition = None;
        if entry.state == EgressState::Clearing {
            self.egress.remove(&cache_id);
            return;
        }
        // A good reply names the client's data address. Its holding time may be 0 (Linux): the code decides.
        match cie.nbma.atm().filter(|_| cie.code == code::OK) {
            Some(data) => self.accepted(cache_id, data, &cie, reply, now),
            None => {
                let refusal = if cie.code == code::OK {
                    mpoa::code::OTHER
                } else {
                    cie.code
                };
                self.refused_by_client(cache_id, refusal, now);
            }
        }
    }

    fn accepted(
        &mut self,
        cache_id: u32,
        data: AtmAddress,
        cie: &Cie,
        reply: &Packet,
        now: Instant,
    ) {
        let imposed_s = self.config.params.holding_s();
        let holding_s = match cie.holding_s {
            0 => imposed_s,
            told => told.min(imposed_s),
        };
        let until = now + Duration::from_secs(holding_s.into());
        let Some(entry) = self.egress.get_mut(&cache_id) else {
            return;
        };
        entry.state = EgressState::Imposed;
        entry.until = Some(until);
        entry.mpc_data = Some(data);
        entry.tag = match Tag::of(reply) {
            Ok(Some(Tag::Value(tag))) => Some(tag),
            _ => None,
        };
        let (mpc, destination) = (entry.mpc, entry.destination);
        let key = imposed_key(entry);
        let index = (entry.ingress_data, destination);
        let Some(question) = entry.request.take() else {
            return;
        };
        let request = question.packet;
        let mut requests = self.waits_out.take_served(&index, &request);
        requests.insert(0, request);
        let next_hop = self
            .config
            .interface(entry.itf)
            .map(|interface| interface.own(destination));
        let mtu = if cie.mtu > MAX_MTU { 0 } else { cie.mtu };
        let binding = Binding {
            nbma: data,
            next_hop,
            mtu,
            until,
            unique: false,
            requesters: Default::default(),
        };
        let noted = self.cache.store(key, binding, now)
            && requests.iter().all(|request| {
                requester(request).is_some_and(|(_, who)| self.cache.note_requester(&key, who))
            });
        if !noted {
            self.counters.limits_met += 1;
            for request in requests {
                self.refuse(&request, code::RESOURCES, now);
            }
            return self.remove_egress(cache_id, true, "there is no room for the requester", now);
        }
        self.trace(
            Trace::milestone(
                "mps.imposition.accepted",
                format!("the client accepted the binding for {destination}"),
            )
            .with("mpc", mpc)
            .with("cache-id", format!("{cache_id:#x}"))
            .with("atm", data),
        );
        let cie = Cie {
            code: code::OK,
            prefix: width(destination),
            mtu,
            holding_s,
            nbma: data.into(),
            protocol: next_hop.map(Into::into).unwrap_or_default(),
            ..Cie::default()
        };
        for request in requests {
            let extensions = self.answer_extensions(&request, reply);
            let made = (cie.clone(), flag::AUTHORITATIVE);
            self.nhrp_answer(&request, made, extensions, now);
        }
        self.keep_alive_for(mpc, now);
        self.next_out(index, now);
    }

    /// A client's negative reply: it is passed on to the requester, and the previous binding is void.
    fn refused_by_client(&mut self, cache_id: u32, refusal: u8, now: Instant) {
        let Some(entry) = self.egress.get_mut(&cache_id) else {
            return;
        };
        let (question, target, mpc) = (entry.request.take(), entry.destination, entry.mpc);
        let index = (entry.ingress_data, target);
        self.trace(
            Trace::milestone(
                "mps.imposition.refused",
                format!(
                    "the client refused the binding for {target}: {}",
                    code_name(refusal)
                ),
            )
            .with("mpc", mpc)
            .with("code", refusal),
        );
        if let Some(Question { packet, .. }) = question {
            let others = self.waits_out.take_served(&index, &packet);
            for request in core::iter::once(packet).chain(others) {
                self.refuse(&request, refusal, now);
            }
        }
        self.remove_egress(cache_id, false, "its client refused it", now);
    }

    /// There is no room to wait for the answer to an imposition: the requesters are refused.
    fn no_imposition(&mut self, cache_id: u32, now: Instant) {
        let Some(entry) = self.egress.get_mut(&cache_id) else {
            return;
        };
        let index = (entry.ingress_data, entry.destination);
        let others = self.waits_out.end(&index).into_iter();
        let all: Vec<Question> = entry.request.take().into_iter().chain(others).collect();
        for question in all {
            self.refuse(&question.packet, code::RESOURCES, now);
        }
        self.imposition_failed(cache_id, now);
    }

    /// No client answered an imposition (p5), or it could not be sent.
    pub(super) fn imposition_failed(&mut self, cache_id: u32, now: Instant) {
        let Some(entry) = self.egress.get_mut(&cache_id) else {
            return;
        };
        entry.imposition = None;
        if entry.state == EgressState::Clearing {
            self.egress.remove(&cache_id);
        } else {
            // Who asked does so again, by retries of its own.
            entry.request = None;
            self.waits_out.end(&(entry.ingress_data, entry.destination));
            self.remove_egress(cache_id, false, "its client does not answer", now);
        }
    }

    /// Ends an entry: purges the stations that got the binding and, if `tell`, makes the client remove it, too. For the
    /// requests that wait for it the path is looked up anew.
    pub(super) fn remove_egress(&mut self, cache_id: u32, tell: bool, why: &str, now: Instant) {
        let Some(entry) = self.egress.get_mut(&cache_id) else {
            return;
        };
        if entry.state == EgressState::Clearing {
            return;
        }
        let question = entry.request.take();
        if let Some(id) = entry.imposition.take() {
            self.requests.close(id);
        }
        let index = (entry.ingress_data, entry.destination);
        let (key, itf, destination) = (imposed_key(entry), entry.itf, entry.destination);
        if tell {
            entry.state = EgressState::Clearing;
            entry.until = None;
        }
        self.egress_index.remove(&index);
        let text = format!("binding for {destination} removed: {why}");
        self.trace(Trace::detail("mps.egress.removed", text).with("target", destination));
        // The stations that send on the shortcut stop first.
        let source = self.config.interface(itf);
        let source = source.map(|interface| interface.own(destination));
        if let Some(binding) = self.cache.remove(&key) {
            self.purge_requesters(&key, binding, source, now);
        }
        if tell {
            self.impose(cache_id, now);
        } else {
            self.egress.remove(&cache_id);
        }
        if let Some(Question { packet, from }) = question {
            self.find(destination, Purpose::Resolve { packet, from }, now);
        }
        self.next_out(index, now);
    }

    /// Tells all stations that got a binding that it is void.
    pub(super) fn purge_requesters(
        &mut self,
        key: &Key,
        binding: Binding,
        source: Option<IpAddr>,
        now: Instant,
    ) {
        let source = source.unwrap_or_else(|| self.station.name_for(key.destination));
        for ((station, data), until) in binding.requesters {
            if until <= now {
                continue;
            }
            let (target, prefix_len) = (key.destination, key.prefix_len);
            if self.station.is_own(station) {
                self.purge_clients(target, prefix_len, |e| e.mpc_data == data, None, now);
                continue;
            }
            self.trace(
                Trace::milestone(
                    "mps.purge",
                    format!("{station} must drop its binding for {target}"),
                )
                .with("to", station)
                .with("target", target),
            );
            let control = self.config.control;
            let packet = mpoa::purge_request(0, control, source, station, target, prefix_len);
            self.send_purge(packet, PurgeTarget::Station(station), None, now);
        }
    }

    /// Egress Cache Purge Request from the client `mpc`.
    pub(super) fn egress_purge(&mut self, mpc: AtmAddress, packet: &Packet, now: Instant) {
        self.counters.egress_purges_received += 1;
        let Ok(Some(dll)) = DllHeader::of(packet) else {
            self.counters.malformed += 1;
            return;
        };
        let flags = packet.common().map_or(0, |common| common.flags);
        if flags & flag::NO_REPLY == 0 {
            let mut reply = packet.clone();
            reply.op = mpoa::op::EGRESS_PURGE_REPLY;
            reply.hop_count = Packet::HOP_COUNT;
            self.counters.egress_purge_replies_sent += 1;
            self.send(mpc, &reply, now);
        }
        // The destination in the packet is not reliable (Linux gives its own address); the Cache ID is reliable.
        match self.egress.get(&dll.cache_id).filter(|e| e.mpc == mpc) {
            Some(entry) if entry.state == EgressState::Clearing => {
                let pending = entry.imposition;
                self.egress.remove(&dll.cache_id);
                if let Some(id) = pending {
                    self.requests.close(id);
                }
            }
            Some(_) => {
                let why = "its client purged it";
                self.remove_egress(dll.cache_id, false, why, now);
            }
            None => {}
        }
    }

    /// The holding time of an imposed binding is over: client and requester drop it by themselves.
    pub(super) fn expire_egress(&mut self, key: &Key) {
        let Some(data) = key.scope else { return };
        let index = (data, key.destination);
        let Some(cache_id) = self.egress_index.get(&index).copied() else {
            return;
        };
        let Some(entry) = self.egress.get_mut(&cache_id) else {
            return;
        };
        if entry.imposition.is_some() {
            // A refresh is under way; the answer to it decides.
            entry.state = EgressState::Imposing;
            entry.until = None;
            return;
        }
        self.egress.remove(&cache_id);
        self.egress_index.remove(&index);
    }

    /// Extensions of the answer after an imposition: those of the request, with the values that the client filled in or
    /// added.
    fn answer_extensions(&self, request: &Packet, reply: &Packet) -> Option<Vec<Extension>> {
        let mut list = self.reply_extensions(request);
        for filled in reply.extensions.iter().flatten() {
            if !mpoa::ext::known(filled.kind()) || filled.kind() == mpoa::ext::DLL_HEADER {
                continue;
            }
            let list = list.get_or_insert_default();
            match list.iter_mut().find(|e| e.kind() == filled.kind()) {
                Some(slot) => slot.value.clone_from(&filled.value),
                None => list.push(filled.clone()),
            }
        }
        list
    }

    fn free_cache_id(&mut self) -> u32 {
        while self.next_cache_id == 0 || self.egress.contains_key(&self.next_cache_id) {
            self.next_cache_id = self.next_cache_id.wrapping_add(1);
        }
        let id = self.next_cache_id;
        self.next_cache_id = id.wrapping_add(1);
        id
    }
}

fn imposed_key(entry: &Egress) -> Key {
    Key {
        destination: entry.destination,
        prefix_len: width(entry.destination),
        scope: Some(entry.ingress_data),
        reason: Reason::Imposed,
    }
}
