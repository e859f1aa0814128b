//! Stations without MPOA that register their addresses here, and the answers to requests for these addresses.
//!
//! Registration is off unless [`MpsConfig::register`](super::MpsConfig::register) is set. A station may register only
//! addresses on the networks of this router, and only for the end system that its call came from: otherwise any station
//! could draw the packets of others to itself. Only one station has an address at a time, whether it asked for that
//! (flag U) or not.

use std::net::IpAddr;

use aerostat_wire::AtmAddress;
use aerostat_wire::nhrp::{Cie, Common, Packet, code, flag, op};
use aerostat_wire::prefix::{is_host_on, width};

use super::faults::RefusedWith;
use super::resolve::{requester, wanted};
use super::state::Reach;
use super::{Interface, Server};
use crate::nhrp::{Binding, Key, Reason, cache, transit};
use crate::{Duration, Instant, Trace};

impl Server {
    /// NHRP Registration Request for this server.
    pub(super) fn registration(&mut self, peer: AtmAddress, request: &Packet, now: Instant) {
        if !self.config.register {
            self.note_fault(
                (request, RefusedWith::Code(code::PROHIBITED)),
                Some(peer),
                true,
                now,
            );
            let reply = transit::refuse_registration(request);
            return self.send(peer, &reply, now);
        }
        let extensions = match self.station.reply_extensions(request) {
            Ok(extensions) => extensions,
            Err(fault) => return self.fault(peer, request, fault, now),
        };
        let Some(common) = request.common() else {
            return;
        };
        let mut cies = common.cies.clone();
        for cie in &mut cies {
            cie.code = self.register(peer, common, cie, now);
            if cie.code != code::OK {
                cie.holding_s = 0;
                self.note_fault(
                    (request, RefusedWith::Code(cie.code)),
                    Some(peer),
                    true,
                    now,
                );
            }
        }
        let reply = transit::reply(
            request,
            op::REGISTRATION_REPLY,
            common.flags,
            cies,
            extensions,
        );
        self.send(peer, &reply, now);
    }

    /// Handles one entry of a registration; returns the code of the answer.
    fn register(&mut self, peer: AtmAddress, common: &Common, cie: &Cie, now: Instant) -> u8 {
        // RFC 2332 §5.2.3: fields that the entry leaves out are those of the common header.
        let nbma = match cie.nbma.octets() {
            [] => common.source_nbma.atm(),
            _ => cie.nbma.atm(),
        };
        let address = match cie.protocol.octets() {
            [] => common.source.ip(),
            _ => cie.protocol.ip(),
        };
        let (Some(nbma), Some(address)) = (nbma, address) else {
            self.counters.malformed += 1;
            return code::PROHIBITED;
        };
        let unique = common.flags & flag::REGISTRATION_UNIQUE != 0;
        let Some(prefix_len) = registered_prefix(cie.prefix, width(address), unique) else {
            return code::PROHIBITED;
        };
        if !same_system(nbma, peer) || !self.serves(address, prefix_len) {
            return code::PROHIBITED;
        }
        let overlapping = self.cache.matching(address, prefix_len, None);
        let of_others = overlapping.iter().any(|key| {
            let binding = self.cache.get(key);
            key.reason == Reason::Registered && binding.is_some_and(|b| b.nbma != nbma)
        });
        if of_others {
            return code::ALREADY_REGISTERED;
        }
        let key = registered_key(address, prefix_len);
        if cie.holding_s == 0 {
            self.withdraw(&key, now);
            return code::OK;
        }
        let known = self.cache.get(&key).map(|binding| binding.mtu);
        let registered = self.cache.count(Reason::Registered);
        if known.is_none() && registered >= self.config.limits.registrations {
            self.counters.limits_met += 1;
            return code::RESOURCES;
        }
        if known.is_some_and(|mtu| mtu != cie.mtu) {
            // Requesters that were told the old address must ask again.
            self.withdraw(&key, now);
        }
        let binding = Binding {
            nbma,
            next_hop: Some(address),
            mtu: cie.mtu,
            until: now + Duration::from_secs(cie.holding_s.into()),
            unique: true,
            requesters: Default::default(),
        };
        if !self.cache.store(key, binding, now) {
            self.counters.limits_met += 1;
            return code::RESOURCES;
        }
        self.stations.insert(address, peer);
        if known.is_none() {
            self.registered(address, prefix_len, nbma, now);
        }
        code::OK
    }

    /// A station is new: shortcuts towards it that end at this router are no longer the best ones.
    fn registered(&mut self, address: IpAddr, prefix_len: u8, nbma: AtmAddress, now: Instant) {
        let text = format!("{address}/{prefix_len} is registered");
        self.trace(Trace::milestone("mps.nhrp.registered", text).with("nbma", nbma));
        for key in self.cache.matching(address, prefix_len, None) {
            if key.reason == Reason::Transit {
                self.drop_kept(&key, now);
            } else if key.reason == Reason::Router
                && let Some(binding) = self.cache.remove(&key)
            {
                self.exits.remove(&key);
                self.purge_requesters(&key, binding, None, now);
            }
        }
    }

    /// NHRP Purge Request of a station about its own registrations.
    pub(super) fn withdraw_all(&mut self, peer: AtmAddress, cie: &Cie, now: Instant) {
        let Some(address) = cie.protocol.ip() else {
            return;
        };
        let prefix_len = transit::prefix_len(cie, address);
        for key in self.cache.matching(address, prefix_len, cie.nbma.atm()) {
            let binding = self.cache.get(&key);
            if key.reason == Reason::Registered
                && binding.is_some_and(|b| same_system(b.nbma, peer))
            {
                self.withdraw(&key, now);
            }
        }
    }

    fn withdraw(&mut self, key: &Key, now: Instant) {
        if let Some(binding) = self.cache.remove(key) {
            self.stations.remove(&key.destination);
            let text = format!("{}/{} is withdrawn", key.destination, key.prefix_len);
            self.trace(Trace::milestone("mps.nhrp.withdrawn", text).with("nbma", binding.nbma));
            self.purge_requesters(key, binding, None, now);
        }
    }

    /// The receiver of a packet for a station on a network of this router: the end system from which the station
    /// registered; the server that spoke for the station; or the requester, as the reply itself says. Source: RFC 2332
    /// §2 and §3.
    pub(super) fn station_of(
        &self,
        packet: &Packet,
        reach: &Reach,
        now: Instant,
    ) -> Option<AtmAddress> {
        let to = transit::heading(packet)?;
        if let Some(station) = self.stations.get(&to) {
            return Some(*station);
        }
        let (Reach::Silent { itf, hop, .. } | Reach::Neighbour { itf, hop, .. }) = reach else {
            return None;
        };
        if *hop != to || self.config.interface(*itf).is_none_or(|known| known.lane) {
            return None;
        }
        if let Some(server) = self.ways_back.to(to, now) {
            return Some(server);
        }
        let common = packet.common().filter(|c| c.source.ip() == Some(to))?;
        common
            .source_nbma
            .atm()
            .filter(|_| matches!(reach, Reach::Silent { .. }))
    }

    /// Answers a Resolution Request for a registered station. False if no station has the address.
    pub(super) fn answer_registered(&mut self, request: &Packet, now: Instant) -> bool {
        let Some((target, who)) = requester(request) else {
            return false;
        };
        let about = self.cache.about(target);
        let found =
            about.filter(|(key, binding)| key.reason == Reason::Registered && binding.until > now);
        let Some((key, binding)) = found.max_by_key(|(key, _)| key.prefix_len) else {
            return false;
        };
        let holding_s = binding.until.since(now).as_secs();
        let covers = key.prefix_len.max(wanted(request, target));
        // No other station may have registered an address within the prefix of the answer.
        let told = Key {
            destination: cache::network(target, covers),
            prefix_len: covers,
            ..*key
        };
        let registered = |other: &Key| other.reason == Reason::Registered && other != key;
        let others =
            (self.cache.overlapping(told.destination, covers)).any(|(other, _)| registered(other));
        let covers = if others { width(target) } else { covers };
        let (key, cie) = (
            *key,
            Cie {
                mtu: binding.mtu,
                nbma: binding.nbma.into(),
                protocol: binding.next_hop.map(Into::into).unwrap_or_default(),
                ..Cie::brief(covers, u16::try_from(holding_s).unwrap_or(u16::MAX))
            },
        );
        if holding_s == 0 {
            return false;
        }
        if !self.cache.note_requester(&key, who) {
            self.counters.limits_met += 1;
            self.refuse(request, code::RESOURCES, now);
            return true;
        }
        let extensions = self.reply_extensions(request);
        // The station that registers sets the holding time; requesters are purged if the registration ends before.
        let made = flag::AUTHORITATIVE | flag::DESTINATION_STABLE;
        self.nhrp_answer(request, (cie, made), extensions, now);
        true
    }

    /// True if all addresses of the prefix lie on one network of this router, and the router has none of them. A single
    /// address must be one that a host can have.
    fn serves(&self, address: IpAddr, prefix_len: u8) -> bool {
        let asked = registered_key(address, prefix_len);
        let of = |own: &IpAddr| asked.overlaps(*own, width(*own));
        let mut own = self.config.interfaces.iter();
        let on = |itf: &Interface| {
            let (net, length) = (itf.own(address), itf.prefix_of(address));
            match prefix_len < width(address) {
                true => itf.covers(address) && prefix_len >= length,
                false => is_host_on(address, net, length),
            }
        };
        !self.station.own.iter().any(of) && own.any(on)
    }
}

/// The prefix length of a registration; `None` if the entry's length says nothing that can be kept.
///
/// A unique registration (flag U) is for a single address, so its length is 255, "not used", or that of the whole
/// address. Without the flag, 0 stands for a single address, too. Source: RFC 2332 §5.2.0.1, §5.2.3.
fn registered_prefix(told: u8, whole: u8, unique: bool) -> Option<u8> {
    match told {
        u8::MAX => Some(whole),
        0 if !unique => Some(whole),
        length if length == whole || (!unique && (1..whole).contains(&length)) => Some(length),
        _ => None,
    }
}

/// Addresses of one end system differ in the selector only.
fn same_system(one: AtmAddress, other: AtmAddress) -> bool {
    one.with_selector(0) == other.with_selector(0)
}

const fn registered_key(destination: IpAddr, prefix_len: u8) -> Key {
    Key {
        destination,
        prefix_len,
        scope: None,
        reason: Reason::Registered,
    }
}
