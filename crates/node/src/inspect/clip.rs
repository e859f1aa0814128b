//! Rows of `inspect clip`.

use super::{Name, Table, counters};
use crate::host::Attempts;
use aerostat_proto::clip::{ConnRow, EntryRow, Per, Snapshot};
use aerostat_wire::{AtmAddress, Qos, Vc};
use std::net::Ipv4Addr;

crate::rows! {
    /// Tables about Classical IP.
    pub const TABLES;

    /// One row for each Classical IP interface.
    pub struct Interface: "clip.interface" for (itf: Option<usize>, seen: &Snapshot, attempts: Attempts) {
        /// Its name.
        pub interface: Option<String> = itf.map(|itf| format!("atm{itf}")),
        /// IP address.
        pub ip: Ipv4Addr = seen.ip,
        /// ATM address.
        pub address: AtmAddress = seen.address,
        /// Largest IP packet, octets.
        pub mtu: u16 = seen.mtu,
        /// `destination` or `session`: what has a connection of its own.
        pub per: Name = match seen.per { Per::Destination => "destination", Per::Session => "session", } .into(),
        /// Sessions with connections that it opened.
        pub sessions: usize = seen.sessions.0,
        /// Sessions with connections that others opened.
        pub sessions_of_others: usize = seen.sessions.1,
        /// `yes` if it is the ATMARP server.
        pub server: bool = seen.serves,
        /// `yes` if it is registered.
        pub ready: bool = seen.ready,
        /// ATM address that the ATMARP server has for this IP address, if it is another one: another member has the IP
        /// address, or a next hop that the server knows beforehand is wrong.
        pub owner: Option<AtmAddress> = seen.owner,
        /// Attempts to register that have failed since it was last registered.
        pub failed: u64 = attempts.failed,
        /// Reason why the last attempt failed.
        pub why: Option<String> = attempts.why,
    }

    /// One row for each ATMARP entry; those of a server are the registrations.
    pub struct Entry: "clip.atmarp" for (seen: &EntryRow) {
        /// IP address; the prefix of a default next hop.
        pub ip: String =
            match seen.prefix_len { 32 => seen.ip.to_string(), length => format!("{}/{length}", seen.ip), },
        /// ATM address.
        pub address: Option<AtmAddress> = seen.atm,
        /// State of the entry.
        pub state: Name = seen.state.into(),
        /// Seconds until it ages.
        pub expires_s: Option<u64> = seen.expires_s,
        /// VPI.VCI of the connection to it.
        pub vc: Option<Vc> = seen.vc,
        /// Packets that wait for it.
        pub waiting: usize = seen.waiting,
    }

    /// One row for each connection of a Classical IP interface.
    pub struct Connection: "clip.connections" for (seen: &ConnRow) {
        /// VPI.VCI.
        pub vc: Option<Vc> = seen.vc,
        /// Purpose of the connection.
        pub role: Name = seen.role.into(),
        /// ATM address at the other end.
        pub peer: Option<AtmAddress> = seen.peer,
        /// LLC/SNAP or VC multiplexing.
        pub encapsulation: Name = seen.encapsulation.into(),
        /// The contract, as in qos(7).
        pub qos: Qos = seen.qos,
        /// Largest packet that may be sent on it.
        pub mtu_octets: u16 = seen.mtu,
        /// The session that it carries, from this end.
        pub session: Option<String> = seen.session.map(|session| session.to_string()),
        /// Packets sent.
        pub packets_sent: u64 = seen.packets.0,
        /// Packets received.
        pub packets_received: u64 = seen.packets.1,
    }
}

/// The tables of the member on interface `itf`.
pub(crate) fn tables(itf: Option<usize>, seen: &Snapshot, attempts: Attempts) -> Vec<Table> {
    let member = Interface::of(itf, seen, attempts);
    vec![
        Table::of([member]),
        Table::of(seen.entries.iter().map(Entry::of)),
        Table::of(seen.conns.iter().map(Connection::of)),
        Table::counters(&counters::CLIP, seen.counters.rows()),
    ]
}
