//! What there is to see.

use super::entries::State;
use super::{Clip, Counters, Encapsulation, Role};
use crate::Instant;
use aerostat_wire::{AtmAddress, Vc};
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
    /// Seconds until it is looked at again.
    pub expires_s: Option<u64>,
    /// Label of its connection.
    pub vc: Option<Vc>,
    /// Packets that wait for it.
    pub waiting: usize,
}

/// One connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnRow {
    /// `server`, `peer` or `permanent`.
    pub role: &'static str,
    /// Who is at the other end.
    pub peer: Option<AtmAddress>,
    /// Its label, once it is open.
    pub vc: Option<Vc>,
    /// `llc` or `vc-mux`.
    pub encapsulation: &'static str,
    /// Packets sent and received.
    pub packets: (u64, u64),
}

/// Everything that there is to see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Own IP address.
    pub ip: Ipv4Addr,
    /// Own ATM address.
    pub address: AtmAddress,
    /// Largest packet, octets.
    pub mtu: u16,
    /// The ATMARP server is here.
    pub serves: bool,
    /// Packets can be sent.
    pub ready: bool,
    /// Next hops.
    pub entries: Vec<EntryRow>,
    /// Connections.
    pub conns: Vec<ConnRow>,
    /// Counters.
    pub counters: Counters,
}

impl Clip {
    /// Everything that there is to see.
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
            vc: entry.conn.and_then(|conn| self.conns.get(&conn)?.vc),
            waiting: entry.queue.len(),
        });
        let conns = self.conns.values().map(|conn| ConnRow {
            role: match conn.role {
                Role::Server => "server",
                Role::Peer => "peer",
                Role::Permanent => "permanent",
            },
            peer: conn.peer,
            vc: conn.vc,
            encapsulation: match conn.encapsulation {
                Encapsulation::Llc => "llc",
                Encapsulation::VcMux => "vc-mux",
            },
            packets: conn.packets,
        });
        Snapshot {
            ip: self.config.ip,
            address: self.config.address,
            mtu: self.config.mtu,
            serves: self.config.serve,
            ready: self.ready,
            entries: entries.collect(),
            conns: conns.collect(),
            counters: self.counters,
        }
    }
}
