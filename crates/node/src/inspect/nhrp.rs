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
    pub struct CacheEntry: "nhrp.cache" for (seen: &mps::NhrpRow, now: Instant) {
        /// IP address or network.
        pub destination: Network = Network(seen.destination, seen.prefix_len),
        /// Why the server has it.
        pub reason: Name = seen.reason.name().into(),
        /// `yes` if registered here.
        pub authoritative: bool as Detail(0) = seen.authoritative,
        /// ATM address.
        pub nbma: AtmAddress = seen.nbma,
        /// IP address of the next hop.
        pub next_hop: Option<IpAddr> as Detail(7) = seen.next_hop,
        /// Largest packet there.
        pub mtu_octets: u16 as Detail(3) = seen.mtu,
        /// Seconds for which it still holds.
        pub holding_s: u64 = seen.until.since(now).as_secs(),
        /// Stations that were told.
        pub requesters: usize as Detail(4) = seen.requesters.len() + seen.more,
    }

    /// One row for each request that an NHRP server waits for.
    pub struct Pending: "nhrp.pending" for (seen: &mps::PendingRow, now: Instant) {
        /// Number of the request.
        pub id: u32 = seen.id,
        /// Kind of the question.
        pub kind: Name = seen.kind.into(),
        /// IP address.
        pub destination: Option<IpAddr> = seen.destination,
        /// How often it was sent.
        pub sent: u32 = seen.sent,
        /// Seconds until it is given up.
        pub deadline_s: u64 = seen.deadline.since(now).as_secs(),
    }

    /// One row for each NHRP client.
    pub struct Client: "nhrp.client" for (seen: &client::NhcSnapshot, attempts: Attempts, now: Instant) {
        /// IP address.
        pub ip: Ipv4Addr = seen.ip,
        /// IP address of its server.
        pub server: Ipv4Addr = seen.server.0,
        /// ATM address of its server.
        pub server_atm: AtmAddress = seen.server.1,
        /// Seconds for which its registration still holds.
        pub registered_s: Option<u64> = seen.registered.map(|until| until.since(now).as_secs()),
        /// Attempts to register that have failed since it was last registered.
        pub failed: u64 = attempts.failed,
        /// Reason why the last attempt failed.
        pub why: Option<String> = attempts.why,
    }

    /// One row for each destination that an NHRP client knows; `shortcuts` has them for all nodes.
    pub struct Way: "nhrp.ways" for (seen: &client::EntryRow, now: Instant) {
        /// IP address or network.
        pub destination: String = match Network(seen.destination.into(), seen.prefix_len) {
            network if network.1 < 32 => network.to_string(),
            _ => seen.destination.to_string(),
        },
        /// State of the entry.
        pub state: Name = seen.state.name().into(),
        /// ATM address of the next hop.
        pub atm: Option<AtmAddress> = seen.nbma,
        /// Largest packet there.
        pub mtu_octets: u16 as Detail(3) = seen.mtu,
        /// Seconds for which it still holds.
        pub left_s: Option<u64> = seen.until.map(|until| until.since(now).as_secs()),
        /// Server that answered.
        pub responder: Option<Ipv4Addr> as Detail(6) = seen.responder,
        /// Servers on the way of the request.
        pub servers: usize as Detail(5) = seen.servers,
        /// VPI.VCI of the connection.
        pub vc: Option<Vc> = seen.vc,
        /// Packets sent.
        pub packets: u64 = seen.packets,
        /// `yes` if the answer is authoritative, not cached.
        pub authoritative: Option<bool> as Detail(0) = seen.nbma.map(|_| seen.authoritative),
        /// Code of the last negative answer.
        pub last_code: Option<u16> as Detail(1) = seen.last_code,
        /// Cause of the last call that failed, or of a release that was not normal.
        pub last_cause: Option<u8> as Detail(2) = seen.last_cause.map(|cause| cause.0),
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
    let client = Client::of(seen, attempts, now);
    vec![
        Table::of([client]),
        Table::of(seen.entries.iter().map(|row| Way::of(row, now))),
        Table::counters(&counters::NHRP, seen.counters.rows()),
    ]
}
