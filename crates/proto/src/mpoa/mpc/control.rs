//! The daemon's handling of control packets: validation, replies, impositions, purges.
//!
//! Source: MPOA 1.1 appendix I.5; RFC 2332 §5. A packet counts as the packet of an MPS if it came on a connection with
//! the control address of a known MPS; the network authenticates connections, but not source fields.

use super::api::{Bus, Numbers, Output, tally};
use super::daemon::{Carries, Daemon, Ending, Imposed};
use super::egress::header_supported;
use super::purge::{purge_reply, purged};
use crate::mpoa::messages::{EgressInfo, FlowName, IngressInfo, ToKernel};
use crate::mpoa::params::MAX_MTU;
use crate::nhrp::Fault;
use crate::vcc::Vcc;
use crate::{AtmRequest, ConnId, Duration, Instant, Trace};
use aerostat_wire::mpoa::{self, DllHeader, Imposition, Tag, code, code_name, op, op_name};
use aerostat_wire::nhrp::{self, Body, Common, Packet};
use aerostat_wire::prefix::width;
use aerostat_wire::{AtmAddress, MacAddr};
use core::net::{IpAddr, Ipv4Addr};

impl Daemon {
    /// An SDU on a control connection.
    pub(super) fn on_control(
        &mut self,
        conn: ConnId,
        sdu: &[u8],
        numbers: &mut Numbers,
        now: Instant,
        bus: &mut Bus,
    ) {
        let Some(mps) = self.conns.get(conn).map(Vcc::peer) else {
            return;
        };
        let Ok(mut packet) = Packet::from_sdu(sdu) else {
            bus.counters.malformed += 1;
            return;
        };
        let offending = sdu.get(nhrp::LLC.len()..).unwrap_or_default();
        if let Err(fault) = self.config.keys.admit(mps, &mut packet) {
            return self.send_error(conn, offending, fault, bus);
        }
        if !self.mps.contains_key(&mps) {
            bus.counters.unknown_sender += 1;
            return self.discover(&packet, bus);
        }
        if mpoa::unknown_compulsory(&packet).is_some() {
            let (code, offset) = (nhrp::error::UNRECOGNIZED_EXTENSION, 0);
            return self.send_error(conn, offending, Fault { code, offset }, bus);
        }
        let common = match &packet.body {
            Body::Error(error) => return self.on_error(packet.op, error, bus),
            Body::Common(common) => common,
        };
        match packet.op {
            op::RESOLUTION_REPLY => self.on_resolution_reply(mps, common, &packet, now, bus),
            op::IMPOSITION_REQUEST => {
                bus.counters.imposition_requests += 1;
                self.on_imposition(conn, mps, &packet, numbers, now, bus);
            }
            op::EGRESS_PURGE_REPLY => self.on_egress_purge_reply(mps, common, &packet, bus),
            op::KEEP_ALIVE => self.on_keep_alive(mps, common, &packet, now, bus),
            op::TRIGGER => {
                bus.counters.triggers += 1;
                if let Some(destination) = common.destination.ip() {
                    bus.kernel(ToKernel::TriggerReceived { mps, destination });
                }
            }
            nhrp::op::PURGE_REQUEST => {
                bus.counters.purge_requests += 1;
                self.on_purge((conn, mps), common, &packet, bus);
            }
            _ => {
                // A request that only an MPS or NHS handles, or a reply to a request that clients do not send.
                bus.counters.unsolicited += 1;
                let text = format!("{} ignored", op_name(packet.op));
                bus.trace(Trace::detail("mpc.control.ignored", text));
            }
        }
    }

    /// A host that only receives has had no reason to send LE_ARP for its routers, so it may know no MPS after a
    /// restart. An imposition names the MAC address of its MPS: LE_ARP finds the owner of that address in time for the
    /// retry.
    fn discover(&self, packet: &Packet, bus: &mut Bus) {
        if packet.op != op::IMPOSITION_REQUEST {
            return;
        }
        let Ok(Some(wish)) = Imposition::of(packet) else {
            return;
        };
        let elan_id = wish.dll.elan_id;
        let itf = (self.elans.iter()).find(|(_, elan)| elan.elan_id == elan_id && elan_id != 0);
        let source = wish
            .dll
            .header
            .get(6..12)
            .and_then(|mac| mac.try_into().ok());
        if let (Some((itf, _)), Some(mac)) = (itf, source) {
            bus.out.push_back(Output::Discover {
                itf: *itf,
                mac: MacAddr(mac),
            });
        }
    }

    fn on_error(&mut self, op: u8, error: &nhrp::ErrorIndication, bus: &mut Bus) {
        // A Traffic Indication has the same form. Clients of MPOA find shorter ways by counting packets.
        if op != nhrp::op::ERROR_INDICATION {
            bus.counters.unsolicited += 1;
            return;
        }
        tally(&mut bus.counters.errors, error.code);
        let text = format!("error indication {} at offset {}", error.code, error.offset);
        bus.trace(Trace::detail("mpc.error", text));
    }

    fn on_resolution_reply(
        &mut self,
        mps: AtmAddress,
        common: &Common,
        packet: &Packet,
        now: Instant,
        bus: &mut Bus,
    ) {
        // Several flows may have asked for one destination: the request id distinguishes them.
        let pending = common.destination.ip().and_then(|destination| {
            let first = (mps, destination, None);
            let all = self.pending.range(first..);
            let same = |(key, _): &(&FlowName, _)| (key.0, key.1) == (mps, destination);
            let mut all = all.take_while(same);
            let found = all.find(|(_, pending)| pending.id == common.request_id);
            found.map(|(key, _)| *key)
        });
        let (Some(key), Some(cie)) = (pending, common.cies.first()) else {
            bus.counters.unsolicited += 1;
            return;
        };
        self.pending.remove(&key);
        tally(&mut bus.counters.resolution_replies, cie.code.into());
        let egress = cie.nbma.atm().filter(|egress| *egress != self.config.data);
        let mut info = IngressInfo {
            code: cie.code,
            mtu: if cie.mtu > MAX_MTU { 0 } else { cie.mtu },
            holding_s: cie.holding_s,
            egress: egress.unwrap_or_default(),
            category: mpoa::service_category(packet).ok().flatten(),
            ..IngressInfo::unresolved(key, IpAddr::V4(Ipv4Addr::UNSPECIFIED))
        };
        info.tag = match Tag::of(packet) {
            Ok(Some(Tag::Value(tag))) if tag != 0 => Some(tag),
            Ok(_) => None,
            // A tag that cannot be decoded cannot be copied, and without the tag the egress could not assign the
            // packets.
            Err(_) => return self.refuse_reply(info, bus),
        };
        if info.code != code::OK {
            return bus.kernel(ToKernel::ResolutionReply(info));
        }
        if egress.is_none() || info.holding_s == 0 {
            return self.refuse_reply(info, bus);
        }
        self.watch(mps, now);
        bus.kernel(ToKernel::ResolutionReply(info));
    }

    /// A positive reply that cannot be used is treated as a refusal.
    fn refuse_reply(&self, info: IngressInfo, bus: &mut Bus) {
        bus.counters.malformed += 1;
        bus.kernel(ToKernel::ResolutionReply(IngressInfo {
            code: code::OTHER,
            ..info
        }));
    }

    fn on_imposition(
        &mut self,
        conn: ConnId,
        mps: AtmAddress,
        packet: &Packet,
        numbers: &mut Numbers,
        now: Instant,
        bus: &mut Bus,
    ) {
        let (Ok(Some(wish)), Some(common)) = (Imposition::of(packet), packet.common()) else {
            // Without the DLL Header extension no reply can be made.
            bus.counters.malformed += 1;
            return;
        };
        let given = common.cies.first().map_or(0, |cie| cie.prefix);
        let protocol = match wish.target {
            IpAddr::V4(_) => nhrp::PROTOCOL_IPV4,
            IpAddr::V6(_) => nhrp::PROTOCOL_IPV6,
        };
        let outcome = if packet.protocol == protocol {
            self.impose(mps, &wish, numbers, bus)
        } else {
            Err(code::PROTOCOL)
        };
        let (cie, tag) = match outcome {
            Ok((tag, mtu)) => {
                if wish.holding_s > 0 {
                    self.watch(mps, now);
                }
                (
                    mpoa::reply_entry(given, mtu, wish.holding_s, self.config.data),
                    tag,
                )
            }
            Err(refusal) => {
                let text = format!("{} refused: {}", wish.target, code_name(refusal));
                bus.trace(
                    Trace::milestone("mpc.imposition.refused", text)
                        .with("destination", wish.target)
                        .with("code", refusal),
                );
                (mpoa::refusal_entry(given, refusal), None)
            }
        };
        tally(&mut bus.counters.imposition_replies, cie.code.into());
        let Some(reply) = packet.reply(vec![cie]) else {
            return;
        };
        let reply = match tag {
            Some(tag) => mpoa::with_tag(reply, tag),
            None => reply,
        };
        self.answer((conn, mps), reply, bus);
    }

    /// Sends an answer to an MPS on the connection of its request.
    fn answer(&self, (conn, mps): (ConnId, AtmAddress), mut reply: Packet, bus: &mut Bus) {
        self.config.keys.sign(mps, &mut reply);
        let sdu = reply.to_sdu();
        bus.atm(AtmRequest::Send { conn, sdu });
    }

    /// Accepts or refuses an imposition. Returns the tag and the MTU of the ELAN, or the code of the refusal.
    fn impose(
        &mut self,
        mps: AtmAddress,
        wish: &Imposition,
        numbers: &mut Numbers,
        bus: &mut Bus,
    ) -> Result<(Option<u32>, u16), u8> {
        let key = (mps, wish.dll.cache_id);
        let prefix = match wish.prefix {
            0 | u8::MAX => width(wish.target),
            length if length <= width(wish.target) => length,
            // The answer would repeat a length that is not kept.
            _ => return Err(code::OTHER),
        };
        let old = self.imposed.get(&key).cloned();
        if wish.holding_s == 0 {
            let (tag, header) = (old.and_then(|entry| entry.tag), Vec::new());
            let info = egress_info(mps, wish, prefix, (0, tag, header));
            bus.kernel(ToKernel::CacheImposition(info));
            let text = format!("the MPS withdrew {}", wish.target);
            bus.trace(
                Trace::milestone("mpc.imposition.withdrawn", text).with("destination", wish.target),
            );
            return Ok((tag, 0));
        }
        if self.ending != Ending::No || wish.ingress_data == self.config.data {
            return Err(code::OTHER);
        }
        if !header_supported(&wish.dll.header, wish.target) {
            return Err(code::MAC_ENCAPSULATION);
        }
        let itf = self.elan_of(mps, wish.dll.elan_id).ok_or(code::OTHER)?;
        let mtu = self.elans.get(&itf).map_or(0, |elan| elan.mtu);
        if old.is_none() {
            self.check_room(wish, bus)?;
        }
        let tag = match &old {
            // A refresh keeps the tag: packets with the tag are under way.
            Some(entry) => entry.tag,
            None => self.choose_tag(key, wish, prefix, numbers)?,
        };
        // The purge of the previous entry of this name is over; this is a new entry.
        self.purges.remove(&key);
        self.tags.extend(tag);
        let header = wish.dll.header.clone();
        self.imposed.insert(
            key,
            Imposed {
                tag,
                ingress: wish.ingress_data,
                destination: wish.target,
                prefix,
                header: header.clone(),
            },
        );
        bus.kernel(ToKernel::CacheImposition(egress_info(
            mps,
            wish,
            prefix,
            (itf, tag, header),
        )));
        let text = format!(
            "packets to {} from {} accepted",
            wish.target, wish.ingress_data
        );
        bus.trace(
            Trace::milestone("mpc.imposition.accepted", text)
                .with("destination", wish.target)
                .with("ingress", wish.ingress_data)
                .with("cache_id", wish.dll.cache_id)
                .with(
                    "tag",
                    tag.map_or_else(|| "none".to_owned(), |tag| format!("{tag:08x}")),
                ),
        );
        Ok((tag, mtu))
    }

    /// The interface that an imposition means: the interface with the ELAN-ID, or the only interface on which the MPS
    /// was seen.
    fn elan_of(&self, mps: AtmAddress, elan_id: u32) -> Option<usize> {
        let by_id = self
            .elans
            .iter()
            .find(|(_, e)| e.elan_id == elan_id && elan_id != 0);
        if let Some((itf, _)) = by_id {
            return Some(*itf);
        }
        let mut seen = self
            .mps
            .get(&mps)?
            .itfs
            .iter()
            .filter(|itf| self.elans.contains_key(itf));
        let only = seen.next()?;
        // A peer without ELAN-IDs says 0, and an ELAN of a v1 LES has none.
        let vague = elan_id == 0 || self.elans.get(only).is_some_and(|e| e.elan_id == 0);
        (vague && seen.next().is_none()).then_some(*only)
    }

    fn check_room(&self, wish: &Imposition, bus: &mut Bus) -> Result<(), u8> {
        let limits = &self.config.limits;
        let entries = self.imposed.len() >= limits.egress;
        let connected = self.conns.with(wish.ingress_data).next().is_some();
        let shortcuts = !connected && self.conns.count(Carries::Shortcut) >= limits.shortcuts;
        let refusal = match (entries, shortcuts) {
            (false, false) => return Ok(()),
            (true, false) => code::NO_ROOM_FOR_ENTRY,
            (false, true) => code::NO_ROOM_FOR_SHORTCUT,
            (true, true) => code::NO_ROOM_FOR_EITHER,
        };
        bus.counters.egress_limit += 1;
        Err(refusal)
    }

    /// A tag for a new entry, or no tag if packets can be assigned by ingress and destination.
    fn choose_tag(
        &self,
        key: (AtmAddress, u32),
        wish: &Imposition,
        prefix: u8,
        numbers: &mut Numbers,
    ) -> Result<Option<u32>, u8> {
        let ambiguous = self.imposed.iter().any(|(other, entry)| {
            *other != key
                && entry.tag.is_none()
                && entry.ingress == wish.ingress_data
                && (entry.destination, entry.prefix) == (wish.target, prefix)
                && entry.header != wish.dll.header
        });
        match (wish.want_tag, self.config.tag || ambiguous) {
            (true, true) => Ok(Some(numbers.tag(|tag| self.tags.contains(&tag)))),
            (false, _) if ambiguous => Err(code::OTHER),
            _ => Ok(None),
        }
    }

    fn on_egress_purge_reply(
        &mut self,
        mps: AtmAddress,
        common: &Common,
        packet: &Packet,
        bus: &mut Bus,
    ) {
        let cache_id = DllHeader::of(packet).ok().flatten().map(|dll| dll.cache_id);
        let known = cache_id.filter(|id| {
            self.purges
                .get(&(mps, *id))
                .is_some_and(|purge| purge.id == common.request_id)
        });
        let Some(cache_id) = known else {
            bus.counters.unsolicited += 1;
            return;
        };
        bus.counters.egress_purge_replies += 1;
        self.purges.remove(&(mps, cache_id));
        bus.kernel(ToKernel::EgressPurged { mps, cache_id });
    }

    fn on_keep_alive(
        &mut self,
        mps: AtmAddress,
        common: &Common,
        packet: &Packet,
        now: Instant,
        bus: &mut Bus,
    ) {
        bus.counters.keep_alives += 1;
        if common.source_nbma.atm() != Some(mps) {
            bus.counters.unknown_sender += 1;
            return;
        }
        // Without a lifetime the packet has no meaning.
        let Ok(Some(lifetime)) = mpoa::lifetime_s(packet) else {
            bus.counters.malformed += 1;
            return;
        };
        let Some(check) = self
            .mps
            .get_mut(&mps)
            .and_then(|known| known.keep_alive.as_mut())
        else {
            return;
        };
        if check.sequence.is_some_and(|last| common.request_id < last) {
            return self.dead(mps, "it has started again", bus);
        }
        check.sequence = Some(common.request_id);
        check.deadline = now + Duration::from_secs(lifetime.max(1).into());
    }

    /// An NHRP Purge Request of an MPS. Those of other clients come over shortcuts, to the data plane.
    fn on_purge(
        &self,
        (conn, mps): (ConnId, AtmAddress),
        common: &Common,
        packet: &Packet,
        bus: &mut Bus,
    ) {
        for (destination, prefix) in purged(common) {
            bus.kernel(ToKernel::IngressPurge {
                mps,
                destination,
                prefix,
            });
        }
        if let Some(reply) = purge_reply(common, packet) {
            bus.counters.purge_replies_sent += 1;
            self.answer((conn, mps), reply, bus);
        }
    }
}

fn egress_info(
    mps: AtmAddress,
    wish: &Imposition,
    prefix: u8,
    (itf, tag, header): (usize, Option<u32>, Vec<u8>),
) -> EgressInfo {
    EgressInfo {
        mps,
        mps_ip: wish.mps,
        cache_id: wish.dll.cache_id,
        tag,
        destination: wish.target,
        prefix,
        ingress: wish.ingress_data,
        itf,
        elan_id: wish.dll.elan_id,
        header,
        holding_s: wish.holding_s,
    }
}
