//! Destinations, their known shortcuts, and the connections for packets.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};

use aerostat_wire::llc::LlcSnap;
use aerostat_wire::nhrp::{Cie, Packet, ext, flag};
use aerostat_wire::prefix;
use aerostat_wire::{AtmAddress, Reader};

use super::{Asked, Carries, Gone, Nhc, Output};
use crate::clip::LLC_LEN;
use crate::nhrp::transit;
use crate::{AtmRequest, Cause, ConnId, Duration, Instant, Trace};

/// Why there is no shortcut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A negative reply with this code.
    Code(u8),
    /// An Error Indication with this code.
    Error(u16),
    /// No reply.
    Unanswered,
    /// The call failed.
    Call(Cause),
}

/// Why there is no ATM address for a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unresolved {
    /// The server refused or did not answer; or a call to the address failed. It is asked again after
    /// [`Params::hold_down`](super::Params).
    Refused(Refusal),
    /// The client is not registered with its server, so it makes no requests.
    NotRegistered,
    /// Questions for half as many destinations as [`Limits::entries`](super::Limits) are open, or 256 in all.
    Full,
    /// The table has [`Limits::entries`](super::Limits) destinations, and all of them are in use.
    NoRoom,
    /// The client does not run.
    Stopped,
}

/// The address of a destination, from a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Way {
    pub(super) nbma: AtmAddress,
    /// Length of the prefix that the reply covers.
    pub(super) prefix_len: u8,
    /// Largest packet, octets; 0 means the default.
    pub(super) mtu: u16,
    pub(super) until: Instant,
    /// When it is requested again, provided it was used after `used_from`.
    refresh: Option<(Instant, Instant)>,
    /// True if the answer was authoritative.
    pub(super) authoritative: bool,
    /// The responder, and the servers that the request passed before.
    pub(super) responder: Option<Ipv4Addr>,
    pub(super) servers: usize,
}

/// One destination.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// The outstanding request.
    pub(super) asking: Option<u32>,
    pub(super) way: Option<Way>,
    pub(super) conn: Option<ConnId>,
    /// No further request before this time.
    pub(super) refusal: Option<(Instant, Refusal)>,
    /// Code of the last negative answer.
    pub(super) last_code: Option<u16>,
    /// Cause of the last call that failed, or of a release that was not normal.
    pub(super) last_cause: Option<Cause>,
    /// When an entry without any information is removed, unless it is requested before.
    pub(super) forget_at: Option<Instant>,
    /// True to request an authoritative answer, because the previous one was wrong.
    pub(super) again: bool,
    /// Time of the last packet for it.
    pub(super) used: Instant,
    /// Packets sent over a shortcut.
    pub(super) by_shortcut: u64,
    /// True if packets wait for a shortcut, and not only a question for the address.
    wanted: bool,
}

impl Entry {
    /// Removes the information of the entry, which was wrong.
    fn void(&mut self, forget_at: Instant) {
        (self.way, self.conn, self.again) = (None, None, true);
        self.forget_at = self.asking.is_none().then_some(forget_at);
    }
    pub(super) fn due(&self) -> Option<Instant> {
        let refusal = self.refusal.map(|(until, _)| until);
        let until = self.way.map(|way| way.until);
        let refresh = self.way.and_then(|way| way.refresh).map(|(at, _)| at);
        let times = [refusal, until, refresh, self.forget_at];
        times.into_iter().flatten().min()
    }
}

impl Nhc {
    /// Sends a packet for `destination`: over a shortcut, or by the router while there is no shortcut.
    pub(super) fn send(&mut self, destination: Ipv4Addr, packet: Vec<u8>, now: Instant) {
        let destination = self.entry_for(destination);
        if let Some(conn) = self.open_way(destination, packet.len(), now) {
            self.counters.by_shortcut += 1;
            self.conns.touch(conn, now);
            let sdu = LlcSnap::Ipv4.wrap(&packet);
            return self.request(AtmRequest::Send { conn, sdu });
        }
        self.counters.routed += 1;
        self.out.push_back(Output::Routed(packet));
        if self.running {
            // The router has the packet, so the reason for the missing shortcut does not matter.
            let _ = self.want(destination, true, now);
        }
    }

    /// Another part of the host asks for the ATM address of a destination.
    pub(super) fn question(&mut self, token: u64, destination: Ipv4Addr, now: Instant) {
        let destination = self.entry_for(destination);
        if self.running && self.questions.len() < super::QUESTIONS {
            let other = self.want(destination, false, now).err();
            self.questions.push((destination, token));
            return self.answer_questions(destination, other, now);
        }
        self.counters.limits_met += u64::from(self.running);
        let why = if self.running {
            Unresolved::Full
        } else {
            Unresolved::Stopped
        };
        let answer = Err(why);
        self.out.push_back(Output::Resolved { token, answer });
    }

    /// Answers the questions for a destination, unless its answer is still to come; `other` says why nothing is known
    /// of it and no server was asked.
    fn answer_questions(&mut self, destination: Ipv4Addr, other: Option<Unresolved>, now: Instant) {
        let entry = self.entries.get(&destination);
        let way = entry
            .and_then(|entry| entry.way)
            .filter(|way| way.until > now);
        if way.is_none() && entry.is_some_and(|entry| entry.asking.is_some()) {
            return;
        }
        let refusal = entry
            .and_then(|entry| entry.refusal)
            .map(|(_, why)| Unresolved::Refused(why));
        let other = other.unwrap_or(Unresolved::Refused(Refusal::Unanswered));
        let answer = way.map_or(Err(refusal.unwrap_or(other)), |way| Ok(way.nbma));
        let out = &mut self.out;
        self.questions.retain(|(asked, token)| {
            if *asked == destination {
                let token = *token;
                out.push_back(Output::Resolved { token, answer });
            }
            *asked != destination
        });
    }

    /// The entry for a destination: its own, or another one that covers it.
    fn entry_for(&self, destination: Ipv4Addr) -> Ipv4Addr {
        if self.config.params.prefix >= 32 || self.entries.contains_key(&destination) {
            return destination;
        }
        let length = |known: Ipv4Addr, entry: &Entry| {
            let len = entry.way?.prefix_len;
            let same = prefix::within(destination.into(), known.into(), len);
            same.then_some(len)
        };
        let all = self.entries.iter();
        let covering = all.filter_map(|(known, entry)| Some((length(*known, entry)?, *known)));
        covering.max().map_or(destination, |(_, known)| known)
    }

    /// The open connection for a packet of this length.
    fn open_way(&mut self, destination: Ipv4Addr, length: usize, now: Instant) -> Option<ConnId> {
        let entry = self.entries.get_mut(&destination)?;
        entry.used = now;
        let way = entry.way.filter(|way| way.until > now)?;
        let conn = entry.conn?;
        let known = self.conns.get(conn).filter(|known| known.is_open())?;
        // A packet that is too long for the destination goes to the router, which fragments it or sends an error. So
        // does a packet that is too long for a connection that was opened for another destination.
        let most = self
            .config
            .largest(way.mtu)
            .min(known.info.0.saturating_sub(LLC_LEN));
        if length > usize::from(most) {
            return None;
        }
        entry.by_shortcut += 1;
        Some(conn)
    }

    /// Makes room for a new destination, if there is less. Open questions and their answers fill half of the table at
    /// most, so the packets of the host have the other half.
    fn make_room(&mut self, packets: bool) -> Result<(), Unresolved> {
        let most = self.config.limits.entries;
        let asked = |entry: &&Entry| entry.asking.is_some() && !entry.wanted;
        let open = self.entries.values().filter(asked).count();
        let (room, why) = if packets || open < most / 2 {
            let bound = if packets { most } else { most / 2 };
            if self.entries.len() >= bound {
                self.displace(!packets);
            }
            (self.entries.len() < most, Unresolved::NoRoom)
        } else {
            (false, Unresolved::Full)
        };
        self.counters.limits_met += u64::from(!room);
        room.then_some(()).ok_or(why)
    }

    /// Removes the oldest answer that no packet uses. If there is no such one, `also_wanted` allows a negative answer
    /// that packets have met.
    fn displace(&mut self, also_wanted: bool) {
        let age = |entry: &Entry| {
            let idle = entry.asking.is_none() && entry.conn.is_none();
            let spare = !entry.wanted || (also_wanted && entry.way.is_none());
            let refused = entry.refusal.map(|(until, _)| until);
            let until = entry.way.map(|way| way.until).or(refused);
            // After its refusal an entry is kept for a while, and is older than those that are still refused.
            (idle && spare).then_some((entry.wanted, until, entry.forget_at))
        };
        let all = self.entries.iter();
        let spare = all.filter_map(|(ip, entry)| Some((age(entry)?, *ip)));
        if let Some((_, ip)) = spare.min() {
            self.entries.remove(&ip);
        }
    }

    /// Takes the next step towards a shortcut, or with `packets` false towards the address alone. The error says why no
    /// server is asked.
    fn want(
        &mut self,
        destination: Ipv4Addr,
        packets: bool,
        now: Instant,
    ) -> Result<(), Unresolved> {
        if self.config.params.holding_s() > 0 && self.registered.is_none() {
            return Err(Unresolved::NotRegistered);
        }
        if !self.entries.contains_key(&destination) {
            self.make_room(packets)?;
            let entry = Entry {
                asking: None,
                way: None,
                conn: None,
                refusal: None,
                last_code: None,
                last_cause: None,
                forget_at: None,
                again: false,
                used: now,
                by_shortcut: 0,
                wanted: false,
            };
            self.entries.insert(destination, entry);
        }
        let Some(entry) = self.entries.get_mut(&destination) else {
            return Err(Unresolved::NoRoom);
        };
        entry.wanted |= packets;
        if entry.refusal.is_some() {
            return Ok(());
        }
        match (entry.way, entry.conn, entry.asking) {
            (Some(way), None, _) if packets => self.open(destination, way.nbma, now),
            (None, _, None) => self.ask(destination, now),
            _ => {}
        }
        Ok(())
    }

    fn ask(&mut self, destination: Ipv4Addr, now: Instant) {
        let asked = Asked::Resolution(destination);
        let id = self.requests.open(asked, self.config.retry, now);
        if let Some(entry) = self.entries.get_mut(&destination) {
            entry.asking = id;
            // If there is no room for the request, the entry makes room for others.
            entry.forget_at = id.is_none().then_some(now + self.config.params.hold_down);
        }
        match id {
            Some(id) => self.send_request(id, destination, now),
            None => self.counters.limits_met += 1,
        }
    }

    /// True if the answer must be authoritative: by configuration, or because a cached answer was wrong.
    pub(super) fn wants_first_hand(&self, destination: Ipv4Addr) -> bool {
        let again = self.entries.get(&destination).is_some_and(|e| e.again);
        self.config.params.authoritative || again
    }

    /// A cached answer was wrong: requests an authoritative one.
    pub(super) fn ask_first_hand(&mut self, destination: Ipv4Addr, now: Instant) {
        let Some(entry) = self.entries.get_mut(&destination) else {
            return;
        };
        entry.asking = None;
        entry.void(now + self.config.params.hold_down);
        self.ask(destination, now);
    }

    /// Opens a connection, or shares one.
    fn open(&mut self, destination: Ipv4Addr, nbma: AtmAddress, now: Instant) {
        let carries = Carries::Packets;
        let mut there = self.conns.with(nbma);
        let found = there.find(|(_, known)| known.carries() == carries);
        let found = found.map(|(conn, _)| conn);
        drop(there);
        let conn = match found {
            Some(conn) => Some(conn),
            None => {
                self.counters.calls += 1;
                // The other end takes packets of its own MTU at most, and refuses calls for longer ones.
                let way = self.entries.get(&destination).and_then(|entry| entry.way);
                let packet = self.config.largest(way.map_or(0, |way| way.mtu));
                let sdu = packet.saturating_add(LLC_LEN);
                let room = self.may_call();
                self.counters.limits_met += u64::from(!room);
                room.then(|| self.call(nbma, carries, sdu, now))
            }
        };
        let Some(conn) = conn else {
            return self.refused(destination, Refusal::Call(Cause::RESOURCES), now);
        };
        if let Some(entry) = self.entries.get_mut(&destination) {
            entry.conn = Some(conn);
        }
        if self.conns.get(conn).is_some_and(|known| known.is_open()) {
            self.tell_way(destination, nbma);
        }
    }

    /// Handles a positive reply.
    pub(super) fn resolved(
        &mut self,
        destination: Ipv4Addr,
        cie: &Cie,
        reply: &Packet,
        now: Instant,
    ) {
        let (Some(nbma), Some(entry)) = (cie.nbma.atm(), self.entries.get_mut(&destination)) else {
            return;
        };
        let holding = Duration::from_secs(cie.holding_s.into());
        let third = holding / 3;
        let responders = stations(reply, ext::RESPONDER);
        let way = Way {
            nbma,
            prefix_len: transit::prefix_len(cie, destination.into()).max(self.config.params.prefix),
            mtu: cie.mtu,
            until: now + holding,
            refresh: Some((now + third * 2, now + third)),
            authoritative: reply
                .common()
                .is_some_and(|common| common.flags & flag::AUTHORITATIVE != 0),
            responder: responders.first().copied(),
            servers: stations(reply, ext::FORWARD_TRANSIT).len(),
        };
        (entry.asking, entry.again) = (None, false);
        (entry.refusal, entry.forget_at) = (None, None);
        let moved = entry.way.is_some_and(|known| known.nbma != nbma);
        entry.way = Some(way);
        if moved {
            entry.conn = None;
            self.release_unused();
        }
        if self
            .entries
            .get(&destination)
            .is_some_and(|e| e.conn.is_none() && e.wanted)
        {
            self.open(destination, nbma, now);
        }
        self.answer_questions(destination, None, now);
    }

    /// There is no shortcut for the time being.
    pub(super) fn refused(&mut self, destination: Ipv4Addr, why: Refusal, now: Instant) {
        let Some(entry) = self.entries.get_mut(&destination) else {
            return;
        };
        entry.asking = None;
        // If a refresh is not answered, the current information stays until it ends.
        if why == Refusal::Unanswered && entry.way.is_some() {
            return;
        }
        (entry.again, entry.forget_at) = (true, None);
        (entry.way, entry.conn) = (None, None);
        entry.refusal = Some((now + self.config.params.hold_down, why));
        match why {
            Refusal::Code(code) => entry.last_code = Some(code.into()),
            Refusal::Error(code) => entry.last_code = Some(code),
            Refusal::Call(cause) => entry.last_cause = Some(cause),
            Refusal::Unanswered => {}
        }
        let text = format!("no shortcut to {destination}: {}", why.text());
        self.trace(Trace::milestone("nhc.no-way", text).with("target", destination));
        self.release_unused();
        self.answer_questions(destination, None, now);
    }

    pub(super) fn way_opened(&mut self, conn: ConnId, peer: AtmAddress) {
        let users = self.entries.iter().filter(|(_, e)| e.conn == Some(conn));
        for destination in users.map(|(ip, _)| *ip).collect::<Vec<_>>() {
            self.tell_way(destination, peer);
        }
    }

    fn tell_way(&mut self, destination: Ipv4Addr, peer: AtmAddress) {
        let text = format!("packets for {destination} take the shortcut");
        let trace = Trace::milestone("nhc.way", text);
        self.trace(trace.with("target", destination).with("atm", peer));
    }

    /// A connection failed, or the other side released it.
    pub(super) fn way_lost(&mut self, conn: ConnId, lost: &Gone, cause: Cause, now: Instant) {
        let failed = !lost.is_open();
        self.counters.calls_failed += u64::from(failed);
        let users = self.entries.iter().filter(|(_, e)| e.conn == Some(conn));
        for destination in users.map(|(ip, _)| *ip).collect::<Vec<_>>() {
            let Some(entry) = self.entries.get_mut(&destination) else {
                continue;
            };
            if failed || !cause.is_normal() {
                entry.last_cause = Some(cause);
            }
            let way = entry.way;
            if failed && way.is_some_and(|way| !way.authoritative) {
                // RFC 2332 §6.2: the cached answer was wrong. A refresh in progress would be answered from the same
                // cache.
                if let Some(id) = self.entries.get(&destination).and_then(|e| e.asking) {
                    self.requests.close(id);
                }
                self.ask_first_hand(destination, now);
            } else if failed {
                self.refused(destination, Refusal::Call(cause), now);
            } else if let Some(entry) = self.entries.get_mut(&destination) {
                // The station may have disappeared, so an authoritative answer is requested.
                entry.void(now + self.config.params.hold_down);
            }
        }
    }

    /// Removes the information that a purge concerns.
    pub(super) fn purged(
        &mut self,
        (address, prefix_len): (IpAddr, u8),
        nbma: Option<AtmAddress>,
        now: Instant,
    ) {
        let mut hit = Vec::new();
        let forget_at = now + self.config.params.hold_down;
        for (destination, entry) in &mut self.entries {
            let leads = |way: Way| nbma.is_none_or(|nbma| nbma == way.nbma);
            let within = |way: &Way| {
                let both = prefix_len.min(way.prefix_len);
                prefix::within((*destination).into(), address, both)
            };
            if entry.way.filter(within).is_some_and(leads) {
                entry.void(forget_at);
                hit.push(*destination);
            }
        }
        for destination in hit {
            let text = format!("the way to {destination} is void");
            self.trace(Trace::milestone("nhc.purged", text).with("target", destination));
        }
        self.release_unused();
    }

    pub(super) fn entries_due(&mut self, now: Instant) {
        let due = |entry: &Entry| entry.due().is_some_and(|at| at <= now);
        let all = self.entries.iter().filter(|(_, entry)| due(entry));
        for destination in all.map(|(ip, _)| *ip).collect::<Vec<_>>() {
            let Some(entry) = self.entries.get_mut(&destination) else {
                continue;
            };
            if entry.refusal.is_some_and(|(until, _)| until <= now) {
                (entry.refusal, entry.forget_at) = (None, Some(now + self.config.params.hold_down));
            }
            if entry.way.is_some_and(|way| way.until <= now) {
                (entry.way, entry.conn, entry.forget_at) = (None, None, Some(now));
            }
            let mut ask = false;
            if let Some(way) = &mut entry.way
                && let Some((at, used_from)) = way.refresh
                && at <= now
            {
                way.refresh = None;
                ask = entry.used >= used_from && entry.asking.is_none();
            }
            let idle = entry.way.is_none() && entry.asking.is_none() && entry.refusal.is_none();
            let forget = entry.forget_at.is_some_and(|at| at <= now);
            if forget {
                entry.forget_at = None;
            }
            if ask {
                self.ask(destination, now);
            } else if idle && forget {
                self.entries.remove(&destination);
            }
        }
        self.release_unused();
    }

    /// Ends the use of connections that were idle for too long.
    pub(super) fn conns_due(&mut self, now: Instant) {
        for conn in self.conns.idle(now) {
            for entry in self.entries.values_mut() {
                if entry.conn == Some(conn) {
                    entry.conn = None;
                }
            }
        }
        self.release_unused();
    }

    /// Releases the connections that no entry uses.
    fn release_unused(&mut self) {
        let used: BTreeSet<ConnId> = self.entries.values().filter_map(|e| e.conn).collect();
        let packets = self.conns.iter();
        let packets = packets.filter(|(_, known)| known.carries() == Carries::Packets);
        let unused = packets.filter(|(conn, _)| !used.contains(conn));
        for conn in unused.map(|(conn, _)| conn).collect::<Vec<_>>() {
            if let Some(release) = self.conns.release(conn) {
                self.request(release);
            }
        }
    }
}

impl Refusal {
    /// The refusal in words.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Code(code) => format!("refused with code {code}"),
            Self::Error(code) => format!("refused with error {code}"),
            Self::Unanswered => "nobody answered".into(),
            Self::Call(cause) => format!("the call failed: {cause}"),
        }
    }
}

/// The protocol addresses in a record.
fn stations(packet: &Packet, kind: u16) -> Vec<Ipv4Addr> {
    let Some(extension) = packet.extension(kind) else {
        return Vec::new();
    };
    let mut reader = Reader::new(&extension.value);
    let entries = std::iter::from_fn(|| Cie::decode(&mut reader).ok());
    entries.filter_map(|entry| entry.protocol.ipv4()).collect()
}
