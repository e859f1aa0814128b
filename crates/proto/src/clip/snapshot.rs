//! Snapshot of a member for display.

use super::entries::State;
use super::{Clip, Counters, Encapsulation, Role};
use crate::{ConnId, Instant};
use aerostat_wire::{AtmAddress, Qos, Vc};
use std::net::Ipv4Addr;

/// One next hop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryRow {
    /// Its IP address.
    pub ip: Ipv4Addr,
    /// Its ATM address.
    pub atm: Option<AtmAddress>,
    /// `resolving`, `known`, `unknown` or `static`.
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
    /// `server`, `peer` or `permanent`.
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
    /// True for the ATMARP server.
    pub serves: bool,
    /// True if packets can be sent.
    pub ready: bool,
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
            ip: *ip,
            atm: entry.atm,
            state: match entry.state {
                State::Resolving { .. } => "resolving",
                State::Known { .. } => "known",
                State::Unknown { .. } => "unknown",
                State::Static => "static",
            },
            expires_s: match entry.state {
                State::Known { until, .. } | State::Unknown { until } => {
                    Some(until.since(now).as_secs())
                }
                State::Resolving { at, .. } => Some(at.since(now).as_secs()),
                State::Static => None,
            },
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
            idle_s: now.since(conn.used()).as_secs(),
            packets: conn.info.packets,
        });
        Snapshot {
            ip: self.config.ip,
            address: self.config.address,
            prefix_len: self.config.prefix_len,
            mtu: self.config.mtu,
            serves: self.config.serve,
            ready: self.ready,
            server: self.next_server(),
            entries: entries.collect(),
            conns: conns.collect(),
            counters: self.counters,
        }
    }
}
