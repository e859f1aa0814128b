//! Next hops that are known beforehand: their addresses, their contracts, and default next hops. All of it may be
//! replaced while the member runs.
//!
//! **Default router first, a better way later.** A default next hop takes the packets for all addresses of a prefix
//! that have no known address of their own. Meanwhile the server is asked; once it has told the address, the next
//! packets go directly. A prefix longer than 0 also takes packets to destinations behind a router: the map knows better
//! than the routing of the host.
//!
//! **Questions.** Other parts of the host ask for the ATM address of a next hop ([`Input::Resolve`](super::Input)). The
//! answer comes at once, or when the server has answered. Half of the table is for questions that are open. Answers
//! stay in it, too, but those that no packet uses give way, the oldest first.

use super::entries::{Entry, State};
use super::{Clip, Output};
use crate::discard::Discard;
use crate::{ConnId, Instant};
use aerostat_wire::ipv4::Ipv4View;
use aerostat_wire::{AtmAddress, Qos};
use std::net::Ipv4Addr;

/// Limit of default next hops.
pub const MAX_DEFAULTS: usize = 1024;
/// Limit of questions that wait for one next hop.
const MAX_QUESTIONS: usize = 64;

/// The next hop of all addresses of a prefix that have none of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DefaultHop {
    /// Any address of the prefix.
    pub network: Ipv4Addr,
    /// Length of the prefix, 0..=31.
    pub prefix_len: u8,
    /// ATM address that takes the packets.
    pub address: AtmAddress,
    /// Traffic of connections to it; `None`: as to all others.
    pub qos: Option<Qos>,
}

impl DefaultHop {
    fn contains(&self, ip: Ipv4Addr) -> bool {
        let mask = u32::MAX.checked_shl(32 - u32::from(self.prefix_len));
        (u32::from(ip) ^ u32::from(self.network)) & mask.unwrap_or(0) == 0
    }
}

/// All that is known of next hops beforehand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NextHops {
    /// IP addresses with their ATM addresses.
    pub fixed: Vec<(Ipv4Addr, AtmAddress)>,
    /// Traffic of connections to these next hops.
    pub qos: Vec<(Ipv4Addr, Qos)>,
    /// Default next hops, at most [`MAX_DEFAULTS`]. Of equal prefixes the first one counts.
    pub defaults: Vec<DefaultHop>,
}

/// The answer to a question for a next hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolved {
    /// Its ATM address.
    Known(AtmAddress),
    /// The next hop has no address.
    Unknown(Unresolved),
    /// Questions for half as many addresses as [`Limits::entries`](super::Limits) wait already, or 64 for this one.
    Full,
    /// The table has [`Limits::entries`](super::Limits) entries, and all of them are in use.
    NoRoom,
}

/// Why there is no ATM address for an IP address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unresolved {
    /// The server has no such address.
    Nak,
    /// No server answered [`Params::tries`](super::Params) requests.
    Unanswered,
    /// There is no server to ask, and the address is not known beforehand.
    NoServer,
    /// A packet for it led to a call that failed. The address is asked for again after
    /// [`Params::negative`](super::Params).
    CallFailed,
    /// A permanent connection leads to it, and its ATM address is not known.
    Permanent,
    /// The member does not run.
    Stopped,
}

/// The key of default next hop number `index` in the table of entries: 0.0.0.0/8 has no hosts.
fn key_of(index: usize) -> Ipv4Addr {
    Ipv4Addr::from(u32::try_from(index + 1).unwrap_or(u32::MAX) & 0x00ff_ffff)
}

/// Why an entry in this state has no ATM address.
const fn why(state: State) -> Unresolved {
    match state {
        State::Unknown { why, .. } => why,
        State::Resolving { .. } | State::Known { .. } | State::Static => Unresolved::Permanent,
    }
}

impl Clip {
    /// The default next hop behind a key of the table of entries.
    pub(super) fn default_at(&self, key: Ipv4Addr) -> Option<&DefaultHop> {
        let index = u32::from(key).checked_sub(1)?;
        self.config.hops.defaults.get(usize::try_from(index).ok()?)
    }

    /// The key of the default next hop for an address, by the longest prefix; `least` is the shortest that counts.
    fn default_for(&self, ip: Ipv4Addr, least: u8) -> Option<Ipv4Addr> {
        let all = self.config.hops.defaults.iter().enumerate();
        let there = all.filter(|(_, hop)| hop.prefix_len >= least && hop.contains(ip));
        let best = there.min_by_key(|(index, hop)| (core::cmp::Reverse(hop.prefix_len), *index));
        best.map(|(index, _)| key_of(index))
    }

    /// The next hop of a packet: that of the host's routing, unless the map knows a better one for the destination.
    pub(super) fn hop_for(&self, next_hop: Ipv4Addr, packet: &[u8]) -> Ipv4Addr {
        if self.config.hops.defaults.is_empty() && !self.far {
            return next_hop;
        }
        let Some(destination) = Ipv4View::new(packet).map(|view| view.destination()) else {
            return next_hop;
        };
        if destination == next_hop {
            return next_hop;
        }
        let entry = self.entries.get(&destination);
        let known = entry.is_some_and(|entry| entry.state == State::Static);
        let better = known.then_some(destination);
        better
            .or_else(|| self.default_for(destination, 1))
            .unwrap_or(next_hop)
    }

    /// The default next hop for packets to `hop`, while the address of that is not known.
    pub(super) fn meanwhile(&self, hop: Ipv4Addr, now: Instant) -> Option<Ipv4Addr> {
        if self.config.hops.defaults.is_empty() || self.default_at(hop).is_some() {
            return None;
        }
        let known = |entry: &Entry| {
            let held = entry.hold.is_some_and(|until| until > now);
            (entry.atm.is_some() || entry.bound) && !held
        };
        match self.entries.get(&hop) {
            Some(entry) if known(entry) => None,
            _ => self.default_for(hop, 0),
        }
    }

    /// Asks the server for a next hop whose packets go another way meanwhile.
    pub(super) fn seek(&mut self, hop: Ipv4Addr, now: Instant) {
        if let Some(entry) = self.entries.get_mut(&hop) {
            entry.used = true;
        } else if self.is_client() && self.room_for(hop) {
            self.resolving(hop, now).used = true;
            self.ask_server(hop);
        }
    }

    /// Adds an entry for which the server is to be asked.
    pub(super) fn resolving(&mut self, hop: Ipv4Addr, now: Instant) -> &mut Entry {
        let at = now + self.config.params.reply;
        let (state, own) = (State::Resolving { tries: 1, at }, self.config.address);
        self.entries
            .entry(hop)
            .or_insert_with(|| Entry::new(state, own))
    }

    /// Makes the entries of what is known beforehand.
    pub(super) fn enter_hops(&mut self) {
        let own = self.config.address;
        let hops = self.config.hops.clone();
        for (ip, atm) in hops.fixed.iter().filter(|(ip, _)| *ip != self.config.ip) {
            let entry = self.entries.entry(*ip);
            let entry = entry.or_insert_with(|| Entry::fixed(*atm, own));
            if !entry.bound {
                if entry.atm != Some(*atm) {
                    entry.conn = None;
                }
                (entry.state, entry.atm) = (State::Static, Some(*atm));
                entry.hold = None;
            }
        }
        for (index, hop) in hops.defaults.iter().take(MAX_DEFAULTS).enumerate() {
            let entry = self.entries.entry(key_of(index));
            entry.or_insert_with(|| Entry::fixed(hop.address, own));
        }
        let prefix = u32::MAX.checked_shl(32 - u32::from(self.config.prefix_len));
        let far =
            |ip: Ipv4Addr| (u32::from(ip) ^ u32::from(self.config.ip)) & prefix.unwrap_or(0) != 0;
        self.far = hops.fixed.iter().any(|(ip, _)| far(*ip));
    }

    /// Replaces what is known beforehand. Connections that no longer fit are released: those to next hops whose
    /// contract has changed, and those of sessions over next hops that have changed. Others stay until they are idle.
    pub(super) fn replace_hops(&mut self, hops: NextHops, now: Instant) {
        if hops == self.config.hops {
            return;
        }
        self.counters.maps += 1;
        let before = core::mem::replace(&mut self.config.hops, hops);
        if !self.running {
            return;
        }
        let mut waiting = Vec::new();
        for ip in self.changed(&before) {
            self.end_sessions(ip);
            let Some(entry) = self.entries.get_mut(&ip) else {
                continue;
            };
            let own = |conn: &ConnId| self.conns.get(*conn).is_some_and(|known| known.info.own);
            let contract = entry.conn.filter(own);
            if entry.bound {
                continue;
            }
            entry.conn = None;
            let queue = core::mem::take(&mut entry.queue);
            waiting.extend(queue.into_iter().map(|packet| (ip, packet)));
            if entry.state == State::Static {
                self.drop_entry(ip);
            }
            if let Some(conn) = contract {
                self.hang_up(conn);
            }
        }
        self.enter_hops();
        for (ip, packet) in waiting {
            self.send(ip, packet, now);
        }
        // Questions that wait may have an answer now.
        for ip in self.entries.keys().copied().collect::<Vec<_>>() {
            self.answer_questions(ip);
        }
    }

    /// The next hops that differ from those `before`; all default ones if any of these does.
    fn changed(&self, before: &NextHops) -> Vec<Ipv4Addr> {
        let after = &self.config.hops;
        let fixed = |hops: &NextHops, ip: Ipv4Addr| {
            let found = hops.fixed.iter().find(|(known, _)| *known == ip);
            found.map(|(_, atm)| *atm)
        };
        let qos = |hops: &NextHops, ip: Ipv4Addr| {
            let found = hops.qos.iter().find(|(known, _)| *known == ip);
            found.map(|(_, qos)| *qos)
        };
        let all = [before, after].into_iter().flat_map(|hops| {
            let fixed = hops.fixed.iter().map(|(ip, _)| *ip);
            fixed.chain(hops.qos.iter().map(|(ip, _)| *ip))
        });
        let differs = |ip: &Ipv4Addr| {
            fixed(before, *ip) != fixed(after, *ip) || qos(before, *ip) != qos(after, *ip)
        };
        let mut changed: Vec<Ipv4Addr> = all.filter(differs).collect();
        if before.defaults != after.defaults {
            changed.extend((0..before.defaults.len().min(MAX_DEFAULTS)).map(key_of));
        }
        changed.sort_unstable();
        changed.dedup();
        changed
    }

    // ---- questions ----

    /// Another part of the host asks for the ATM address of a next hop.
    pub(super) fn question(&mut self, token: u64, ip: Ipv4Addr, now: Instant) {
        if ip == self.config.ip {
            return self.resolved(token, Resolved::Known(self.config.address));
        }
        let known = self.entries.get(&ip).map(|entry| (entry.atm, entry.state));
        let answer = match known {
            Some((Some(atm), _)) => Some(Resolved::Known(atm)),
            Some((None, State::Resolving { .. })) => None,
            Some((None, state)) => Some(Resolved::Unknown(why(state))),
            None if !self.is_client() => Some(Resolved::Unknown(self.nobody_to_ask())),
            None => self.room_for_question(ip),
        };
        if let Some(answer) = answer {
            return self.resolved(token, answer);
        }
        let new = known.is_none();
        let entry = self.resolving(ip, now);
        if entry.questions.len() >= MAX_QUESTIONS {
            return self.resolved(token, Resolved::Full);
        }
        entry.questions.push(token);
        if new {
            self.ask_server(ip);
        }
    }

    /// Makes room for a question for a new address, if there is less; or tells why there is no room. Open questions and
    /// their answers fill half of the table at most, so the packets of the host have the other half.
    fn room_for_question(&mut self, ip: Ipv4Addr) -> Option<Resolved> {
        let half = self.config.limits.entries / 2;
        let open = self.entries.values().filter(|e| !e.questions.is_empty());
        if open.count() >= half {
            self.counters.full += 1;
            return Some(Resolved::Full);
        }
        if self.entries.len() >= half {
            self.displace(true);
        }
        (!self.room_for(ip)).then_some(Resolved::NoRoom)
    }

    /// Removes the oldest answer that no packet uses. If there is no such one, `also_used` allows a negative answer
    /// that packets have met.
    pub(super) fn displace(&mut self, also_used: bool) {
        let is_client = self.is_client();
        let age = |entry: &Entry| match entry.state {
            State::Unknown { until, .. } if also_used || !entry.used => Some((entry.used, until)),
            // The entries of a server are registrations.
            State::Known { until, .. } if is_client && entry.is_spare() => Some((false, until)),
            _ => None,
        };
        let all = self.entries.iter();
        let spare = all.filter_map(|(ip, entry)| Some((age(entry)?, *ip)));
        if let Some((_, ip)) = spare.min() {
            self.drop_entry(ip);
        }
    }

    /// Why a member that asks no server does not know an address.
    pub(super) const fn nobody_to_ask(&self) -> Unresolved {
        match self.config.serve {
            true => Unresolved::Nak,
            false => Unresolved::NoServer,
        }
    }

    fn resolved(&mut self, token: u64, answer: Resolved) {
        self.out.push_back(Output::Resolved { token, answer });
    }

    /// Answers the questions for a next hop, if what is known of it is an answer.
    pub(super) fn answer_questions(&mut self, ip: Ipv4Addr) {
        let Some(entry) = self.entries.get_mut(&ip) else {
            return;
        };
        let answer = match (entry.atm, entry.state) {
            (Some(atm), _) => Resolved::Known(atm),
            (None, State::Resolving { .. }) => return,
            (None, state) => Resolved::Unknown(why(state)),
        };
        for token in core::mem::take(&mut entry.questions) {
            self.resolved(token, answer);
        }
    }

    /// Removes an entry. Packets and questions that still wait for it are lost.
    pub(super) fn drop_entry(&mut self, ip: Ipv4Addr) {
        let Some(entry) = self.entries.remove(&ip) else {
            return;
        };
        self.counters.unreachable += entry.queue.len() as u64;
        for packet in entry.queue {
            self.discards.note(Discard::Unreachable, &packet);
        }
        for token in entry.questions {
            self.resolved(token, Resolved::Unknown(Unresolved::Unanswered));
        }
    }
}
