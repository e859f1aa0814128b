//! Snapshot of a member for display.

use super::entries::State;
use super::{Clip, Counters, Encapsulation, Per, Role, SessionKey};
use crate::{ConnId, Instant};
use aerostat_wire::{AtmAddress, Qos, Vc};
use std::net::Ipv4Addr;

/// One next hop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryRow {
    /// Its IP address, or the prefix of a default next hop.
    pub ip: Ipv4Addr,
    /// Length of the prefix: 32, or that of a default next hop.
    pub prefix_len: u8,
    /// Its ATM address.
    pub atm: Option<AtmAddress>,
    /// `resolving`, `known`, `unknown`, `static` or `default`.
    pub state: &'static str,
    /// Seconds until its next event.
    pub expires_s: Option<u64>,
    /// Its connection, open or being opened.
    pub conn: Option<ConnId>,
    /// Label of its connection.
    pub vc: Option<Vc>,
    /// The contract of connections to it; `None` for best effort.
    pub qos: Option<Qos>,
    /// Packets that wait for it.
    pub waiting: usize,
}

/// One connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnRow {
    /// Its id.
    pub conn: ConnId,
    /// `server`, `peer`, `session` or `permanent`.
    pub role: &'static str,
    /// The other end.
    pub peer: Option<AtmAddress>,
    /// Its label, once it is open.
    pub vc: Option<Vc>,
    /// `llc` or `vc-mux`.
    pub encapsulation: &'static str,
    /// True if the other end called.
    pub incoming: bool,
    /// Its traffic, seen from this end.
    pub qos: Qos,
    /// Largest packet that may be sent on it, octets.
    pub mtu: u16,
    /// The session that it carries, in the direction in which this member sends.
    pub session: Option<SessionKey>,
    /// Seconds since it last carried a packet.
    pub idle_s: u64,
    /// Packets sent and received.
    pub packets: (u64, u64),
}

/// The state of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Own IP address.
    pub ip: Ipv4Addr,
    /// Own ATM address.
    pub address: AtmAddress,
    /// Length of the subnet's prefix.
    pub prefix_len: u8,
    /// Largest packet, octets.
    pub mtu: u16,
    /// Kind of connections that it opens.
    pub per: Per,
    /// Sessions with connections that this member opened, and that others opened.
    pub sessions: (usize, usize),
    /// Packets that wait for connections of sessions.
    pub waiting: usize,
    /// True for the ATMARP server.
    pub serves: bool,
    /// True if packets can be sent.
    pub ready: bool,
    /// The ATM address that the server has for its IP address, if it is another one: another member has the IP address,
    /// or what the server knows beforehand is wrong.
    pub owner: Option<AtmAddress>,
    /// The ATMARP server that it is registered with, or tries next.
    pub server: Option<AtmAddress>,
    /// Next hops.
    pub entries: Vec<EntryRow>,
    /// Connections.
    pub conns: Vec<ConnRow>,
    /// Counters.
    pub counters: Counters,
}

impl Clip {
    /// The state of the member.
    #[must_use]
    pub fn snapshot(&self, now: Instant) -> Snapshot {
        let entries = self.entries.iter().map(|(ip, entry)| EntryRow {
            ip: self.default_at(*ip).map_or(*ip, |hop| hop.network),
            prefix_len: self.default_at(*ip).map_or(32, |hop| hop.prefix_len),
            atm: entry.atm,
            state: match entry.state {
                State::Resolving { .. } => "resolving",
                State::Known { .. } => "known",
                State::Unknown { .. } => "unknown",
                State::Static if self.default_at(*ip).is_some() => "default",
                State::Static => "static",
            },
            expires_s: ends_at(&entry.state).map(|at| at.since(now).as_secs()),
            conn: entry.conn,
            vc: entry.conn.and_then(|conn| self.conns.get(conn)?.vc()),
            qos: self.contract(*ip),
            waiting: entry.queue.len(),
        });
        let conns = self.conns.iter().map(|(id, conn)| ConnRow {
            conn: id,
            role: match conn.carries() {
                Role::Server => "server",
                Role::Peer => "peer",
                Role::Session => "session",
                Role::Permanent => "permanent",
            },
            peer: conn.other_end(),
            vc: conn.vc(),
            encapsulation: match conn.info.encapsulation {
                Encapsulation::Llc => "llc",
                Encapsulation::VcMux => "vc-mux",
            },
            incoming: id.0 >= ConnId::INCOMING,
            qos: conn.info.qos,
            mtu: conn.info.mtu,
            session: conn.info.session.map(|session| session.key),
            idle_s: now.since(conn.used()).as_secs(),
            packets: conn.info.packets,
        });
        Snapshot {
            ip: self.config.ip,
            address: self.config.address,
            prefix_len: self.config.prefix_len,
            mtu: self.config.mtu,
            per: self.config.per,
            sessions: self.sessions.counts(),
            waiting: self.sessions.held().count(),
            serves: self.config.serve,
            ready: self.ready,
            owner: self.owner,
            server: self.next_server(),
            entries: entries.collect(),
            conns: conns.collect(),
            counters: self.counters,
        }
    }
}

/// When a state ends by itself.
fn ends_at(state: &State) -> Option<Instant> {
    match *state {
        State::Known { until, .. } | State::Unknown { until, .. } => Some(until),
        State::Resolving { at, .. } => Some(at),
        State::Static => None,
    }
}
