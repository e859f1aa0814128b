//! An NHRP Resolution Request whose destination has been looked up: which server answers it, and how.

use std::net::IpAddr;

use aerostat_wire::mpoa::{self, Tag};
use aerostat_wire::nhrp::{Cie, Extension, Packet, code, flag, op};
use aerostat_wire::prefix::width;
use aerostat_wire::{AtmAddress, MacAddr};

use super::faults::RefusedWith;
use super::state::{Asked, Purpose, Reach, RouterExit, Subject, count};
use super::waiting::Question;
use super::{Absent, Server, TAG_ROUTER};
use crate::nhrp::{Binding, Key, Reason, cache, transit};
use crate::{Duration, Instant, Trace};

/// Where packets of an imposed binding go.
pub(super) struct Exit {
    pub(super) itf: u32,
    pub(super) hop: IpAddr,
    pub(super) mac: MacAddr,
    pub(super) mpc: AtmAddress,
}

impl Server {
    /// An NHRP Resolution Request and the path to its destination: forward the request, impose, be the exit, or refuse.
    pub(super) fn resolve(
        &mut self,
        packet: Packet,
        from: AtmAddress,
        (reach, covers): (&Reach, u8),
        now: Instant,
    ) {
        if from == self.config.control {
            // The request was made here: its path is stored, so that a change of the path purges the client.
            let id = packet.common().map(|common| common.request_id);
            let Some(Asked::Resolution(key)) = id.and_then(|id| self.requests.get(id)) else {
                return;
            };
            if let Some(entry) = self.ingress.get_mut(key) {
                entry.reach = Some(reach.clone());
            }
        }
        if let Reach::Neighbour { mps: Some(mps), .. } = reach
            && !self.is_on_elan(reach, &packet)
        {
            if from != self.config.control {
                if self.answer_kept(&packet, reach, now) {
                    return;
                }
                self.note_passing(&packet, *mps, reach, now);
            }
            return self.pass_on(packet, from, *mps, now);
        }
        if let Err(fault) = self.station.reply_extensions(&packet) {
            return self.fault(from, &packet, fault, now);
        }
        if self.answer_registered(&packet, now) {
            return;
        }
        match reach {
            Reach::Neighbour {
                itf,
                hop,
                mac,
                mpc: Some(mpc),
                ..
            } => {
                let exit = Exit {
                    itf: *itf,
                    hop: *hop,
                    mac: *mac,
                    mpc: *mpc,
                };
                self.impose_for(Question { packet, from }, &exit, reach, now);
            }
            Reach::Outside | Reach::Neighbour { mpc: None, .. } if self.config.terminate => {
                self.take(&packet, reach, covers, now);
            }
            Reach::Down
            | Reach::Silent {
                absent: Absent::ForNow,
                ..
            } => self.cannot_tell(&packet, reach),
            Reach::Outside
            | Reach::Neighbour { .. }
            | Reach::Nothing
            | Reach::Own
            | Reach::Silent { .. } => self.refuse(&packet, code::NO_BINDING, now),
        }
    }

    /// The server cannot tell now, and gives no answer: the client would keep to a refusal for its hold-down. The
    /// requester asks again.
    fn cannot_tell(&mut self, packet: &Packet, reach: &Reach) {
        self.counters.untold += 1;
        let Some(target) = packet.common().and_then(|c| c.destination.ip()) else {
            return;
        };
        let why = match reach {
            Reach::Silent { hop, .. } => format!("{hop} does not answer for now"),
            _ => "its network is not there for now".to_owned(),
        };
        self.trace(
            Trace::detail(
                "mps.resolution.untold",
                format!("no answer about {target} yet: {why}"),
            )
            .with("target", target),
        );
    }

    /// True if the destination itself is the neighbour, with a client to impose on. If a server is also a client, a
    /// request is forwarded to it only for destinations behind it.
    fn is_on_elan(&self, reach: &Reach, packet: &Packet) -> bool {
        let target = packet.common().and_then(|c| c.destination.ip());
        matches!(reach, Reach::Neighbour { hop, mpc: Some(_), .. } if target == Some(*hop))
    }

    fn pass_on(&mut self, packet: Packet, from: AtmAddress, mps: AtmAddress, now: Instant) {
        let made_here = from == self.config.control;
        let target = packet.common().and_then(|c| c.destination.ip());
        let packet = if made_here {
            self.counters.nhrp_requests_sent += 1;
            let text = target.map_or_else(String::new, |ip| ip.to_string());
            self.trace(
                Trace::milestone(
                    "mps.resolution.translated",
                    format!("asks the next server for {text} over NHRP"),
                )
                .with("mps", mps)
                .with("target", text),
            );
            packet
        } else {
            match self.station.forward(packet.clone()) {
                Ok(packet) => {
                    self.counters.forwarded += 1;
                    packet
                }
                Err(fault) => return self.fault(from, &packet, fault, now),
            }
        };
        self.send(mps, &packet, now);
    }

    /// This router is the exit: shortcuts for the destination end at its own data address.
    ///
    /// All addresses in the prefix of the route (`covers`) behind a neighbour or outside take the same path: the answer
    /// is for that prefix, or for the part of it that the request asks for. Source: RFC 2332 §5.2.1, prefix length.
    fn take(&mut self, request: &Packet, reach: &Reach, covers: u8, now: Instant) {
        let Some((target, requester)) = requester(request) else {
            self.counters.malformed += 1;
            return;
        };
        // RFC 2332 §5.2.1: a requester that wants a unique binding (flag U) is not told of a router on the way.
        if request
            .common()
            .is_some_and(|c| c.flags & flag::UNIQUE != 0)
        {
            return self.refuse(request, code::NOT_UNIQUE, now);
        }
        let holding_s = self.config.params.holding_s();
        let beside = matches!(reach, Reach::Neighbour { hop, .. } if *hop == target);
        let whole = width(target);
        let prefix_len = if beside {
            whole
        } else {
            covers.max(wanted(request, target)).min(whole)
        };
        let key = exit_key(target, prefix_len);
        let binding = Binding {
            nbma: self.config.data,
            next_hop: Some(self.station.name(request.protocol)),
            mtu: self.config.mtu,
            until: now + Duration::from_secs(holding_s.into()),
            unique: false,
            requesters: Default::default(),
        };
        let room =
            self.exits.len() < self.config.limits.router_bindings || self.exits.contains_key(&key);
        if !room
            || !self.cache.store(key, binding, now)
            || !self.cache.note_requester(&key, requester)
        {
            self.counters.limits_met += 1;
            return self.refuse(request, code::RESOURCES, now);
        }
        let reach = reach.clone();
        self.exits.insert(key, RouterExit { target, reach });
        self.trace(
            Trace::milestone(
                "mps.resolution.router",
                format!(
                    "shortcuts to {} end at this router",
                    told(target, prefix_len)
                ),
            )
            .with("target", target),
        );
        self.reply_with_router(request, (prefix_len, beside), now);
    }

    /// Answers from a binding of this router that was made before and is still valid. False if there is no such
    /// binding.
    pub(super) fn answer_from_cache(&mut self, request: &Packet, now: Instant) -> bool {
        let Some((target, _)) = requester(request) else {
            return false;
        };
        let flags = request.common().map_or(0, |c| c.flags);
        let wants = |flag| flags & flag != 0;
        if wants(flag::UNIQUE) {
            return false;
        }
        // An earlier, narrower answer is no reason to ask again and again.
        let fits = |key: &Key| {
            key.overlaps(target, width(target)) && key.prefix_len <= wanted(request, target)
        };
        let fitting = self.exits.iter().filter(|(key, _)| fits(key));
        let Some((key, exit)) = fitting.max_by_key(|(key, _)| key.prefix_len) else {
            return false;
        };
        let (key, aim, reach) = (*key, exit.target, exit.reach.clone());
        self.take(request, &reach, key.prefix_len, now);
        // A neighbour without a client may have started one. Clients do not announce that to all members; so whenever
        // somebody asks for the exit, the neighbour is looked up again, too.
        if matches!(reach, Reach::Neighbour { mpc: None, .. }) {
            self.find(aim, Purpose::Recheck(Subject::Exit(key)), now);
        }
        true
    }

    fn reply_with_router(
        &mut self,
        request: &Packet,
        (prefix_len, beside): (u8, bool),
        now: Instant,
    ) {
        let cie = Cie {
            mtu: self.config.mtu,
            nbma: self.config.data.into(),
            protocol: self.station.name(request.protocol).into(),
            ..Cie::brief(prefix_len, self.config.params.holding_s())
        };
        let mut extensions = self.reply_extensions(request);
        for extension in extensions.iter_mut().flatten() {
            // A client that asks for a tag may not be able to send without a tag.
            if extension.kind() == mpoa::ext::TAG {
                *extension = Tag::Value(TAG_ROUTER).extension();
            }
        }
        // A station on a network of this router stays behind the router; the path to farther destinations may change.
        let made = if beside { flag::DESTINATION_STABLE } else { 0 };
        self.nhrp_answer(request, (cie, made | flag::AUTHORITATIVE), extensions, now);
    }

    /// A negative reply to a Resolution Request.
    pub(super) fn refuse(&mut self, request: &Packet, refusal: u8, now: Instant) {
        let cie = transit::refusal(request, refusal);
        let extensions = self.reply_extensions(request);
        // A request that was made here is told of as that of its client.
        let common = request.common();
        if !common.is_some_and(|c| c.source.ip().is_some_and(|ip| self.station.is_own(ip))) {
            let who = common.and_then(|common| common.source_nbma.atm());
            self.note_fault((request, RefusedWith::Code(refusal)), who, true, now);
        }
        self.nhrp_answer(request, (cie, flag::AUTHORITATIVE), extensions, now);
    }

    /// Sends an NHRP Resolution Reply made here, or handles it here if the request was made here, too. `made` contains
    /// the flags A and D, which tell the quality of the answer.
    pub(super) fn nhrp_answer(
        &mut self,
        request: &Packet,
        (cie, made): (Cie, u16),
        extensions: Option<Vec<Extension>>,
        now: Instant,
    ) {
        let asked = request.common().map_or(0, |common| common.flags);
        let flags = transit::reply_flags(asked, made);
        let answered = cie.code;
        let reply = transit::reply(request, op::RESOLUTION_REPLY, flags, vec![cie], extensions);
        let Some(station) = request.common().and_then(|c| c.source.ip()) else {
            self.counters.malformed += 1;
            return;
        };
        if self.station.is_own(station) {
            return self.nhrp_reply(None, reply, now);
        }
        count(&mut self.counters.nhrp_replies_sent, answered);
        self.find(station, Purpose::Forward(reply), now);
    }

    /// Extensions of a reply made here. Requests with unknown compulsory extensions were refused before.
    pub(super) fn reply_extensions(&self, request: &Packet) -> Option<Vec<Extension>> {
        self.station
            .reply_extensions(request)
            .unwrap_or_else(|_| request.extensions.clone())
    }
}

/// Destination of a request, and the receiver of the answer: protocol address and ATM address.
pub(super) fn requester(request: &Packet) -> Option<(IpAddr, (IpAddr, AtmAddress))> {
    let common = request.common()?;
    let who = (common.source.ip()?, common.source_nbma.atm()?);
    Some((common.destination.ip()?, who))
}

/// The widest prefix that the requester accepts in an answer.
pub(super) fn wanted(request: &Packet, target: IpAddr) -> u8 {
    let cies = request.common().map_or(&[][..], |common| &common.cies);
    let told = cies.first().map(|cie| transit::prefix_len(cie, target));
    told.unwrap_or(width(target))
}

/// Text for an address, or for its network.
fn told(target: IpAddr, prefix_len: u8) -> String {
    if prefix_len >= width(target) {
        return target.to_string();
    }
    format!("{}/{prefix_len}", cache::network(target, prefix_len))
}

fn exit_key(target: IpAddr, prefix_len: u8) -> Key {
    Key {
        destination: cache::network(target, prefix_len),
        prefix_len,
        scope: None,
        reason: Reason::Router,
    }
}
