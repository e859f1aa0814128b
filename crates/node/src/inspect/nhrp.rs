//! Rows of `inspect nhrp`, for servers and for clients without MPOA.

use super::{Name, Network, Table, counters};
use crate::host::Attempts;
use aerostat_proto::Instant;
use aerostat_proto::mpoa::mps;
use aerostat_proto::nhrp::client;
use aerostat_wire::{AtmAddress, Vc};
use std::net::{IpAddr, Ipv4Addr};

crate::rows! {
    /// Tables about NHRP.
    pub const TABLES;

    /// One row for each entry of an NHRP server's cache.
    pub struct CacheEntry: "nhrp.cache" {
        /// IP address or network.
        pub destination: Network,
        /// Why the server has it.
        pub reason: Name,
        /// `yes` if registered here.
        pub authoritative: bool,
        /// ATM address.
        pub nbma: AtmAddress,
        /// IP address of the next hop.
        pub next_hop: Option<IpAddr>,
        /// Largest packet there.
        pub mtu_octets: u16,
        /// Seconds for which it still holds.
        pub holding_s: u64,
        /// Stations that were told.
        pub requesters: usize,
    }

    /// One row for each request that an NHRP server waits for.
    pub struct Pending: "nhrp.pending" {
        /// Number of the request.
        pub id: u32,
        /// What it asks.
        pub kind: Name,
        /// IP address.
        pub destination: Option<IpAddr>,
        /// How often it was sent.
        pub sent: u32,
        /// Seconds until it is given up.
        pub deadline_s: u64,
    }

    /// One row for each NHRP client.
    pub struct Client: "nhrp.client" {
        /// IP address.
        pub ip: Ipv4Addr,
        /// IP address of its server.
        pub server: Ipv4Addr,
        /// ATM address of its server.
        pub server_atm: AtmAddress,
        /// Seconds for which its registration still holds.
        pub registered_s: Option<u64>,
        /// Attempts to register that have failed since it was last registered.
        pub failed: u64,
        /// Reason why the last attempt failed.
        pub why: Option<String>,
    }

    /// One row for each destination that an NHRP client knows; `shortcuts` has them for all nodes.
    pub struct Way: "nhrp.ways" {
        /// IP address or network.
        pub destination: String,
        /// State of the entry.
        pub state: Name,
        /// ATM address of the next hop.
        pub atm: Option<AtmAddress>,
        /// Largest packet there.
        pub mtu_octets: u16,
        /// Seconds for which it still holds.
        pub left_s: Option<u64>,
        /// Server that answered.
        pub responder: Option<Ipv4Addr>,
        /// Servers on the way of the request.
        pub servers: usize,
        /// VPI.VCI of the connection.
        pub vc: Option<Vc>,
        /// Packets sent.
        pub packets: u64,
        /// `yes` if the answer is authoritative, not cached.
        pub authoritative: Option<bool>,
        /// Code of the last negative answer.
        pub last_code: Option<u16>,
        /// Cause of the last call that failed, or of a release that was not normal.
        pub last_cause: Option<u8>,
    }
}

impl CacheEntry {
    fn of(seen: &mps::NhrpRow, now: Instant) -> Self {
        Self {
            destination: Network(seen.destination, seen.prefix_len),
            reason: seen.reason.name().into(),
            authoritative: seen.authoritative,
            nbma: seen.nbma,
            next_hop: seen.next_hop,
            mtu_octets: seen.mtu,
            holding_s: seen.until.since(now).as_secs(),
            requesters: seen.requesters.len() + seen.more,
        }
    }
}

impl Pending {
    fn of(seen: &mps::PendingRow, now: Instant) -> Self {
        Self {
            id: seen.id,
            kind: seen.kind.into(),
            destination: seen.destination,
            sent: seen.sent,
            deadline_s: seen.deadline.since(now).as_secs(),
        }
    }
}

impl Way {
    fn of(seen: &client::EntryRow, now: Instant) -> Self {
        let network = Network(seen.destination.into(), seen.prefix_len);
        Self {
            destination: if seen.prefix_len < 32 {
                network.to_string()
            } else {
                seen.destination.to_string()
            },
            state: seen.state.name().into(),
            atm: seen.nbma,
            mtu_octets: seen.mtu,
            left_s: seen.until.map(|until| until.since(now).as_secs()),
            responder: seen.responder,
            servers: seen.servers,
            vc: seen.vc,
            packets: seen.packets,
            authoritative: seen.nbma.map(|_| seen.authoritative),
            last_code: seen.last_code,
            last_cause: seen.last_cause.map(|cause| cause.0),
        }
    }
}

/// The tables of an MPOA server's NHRP server.
pub(crate) fn server(seen: &mps::NhrpSnapshot, now: Instant) -> Vec<Table> {
    vec![
        Table::of(seen.cache.iter().map(|row| CacheEntry::of(row, now))),
        Table::of(seen.pending.iter().map(|row| Pending::of(row, now))),
    ]
}

/// The destinations of a client, each with its row.
pub(crate) fn ways(seen: &client::NhcSnapshot, now: Instant) -> Vec<(Ipv4Addr, Way)> {
    let rows = seen.entries.iter();
    rows.map(|row| (row.destination, Way::of(row, now)))
        .collect()
}

/// The tables of a client without MPOA.
pub(crate) fn client(seen: &client::NhcSnapshot, attempts: Attempts, now: Instant) -> Vec<Table> {
    let client = Client {
        ip: seen.ip,
        server: seen.server.0,
        server_atm: seen.server.1,
        registered_s: seen.registered.map(|until| until.since(now).as_secs()),
        failed: attempts.failed,
        why: attempts.why,
    };
    vec![
        Table::of([client]),
        Table::of(seen.entries.iter().map(|row| Way::of(row, now))),
        Table::counters(&counters::NHRP, seen.counters.rows()),
    ]
}
