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
    pub struct Interface: "clip.interface" {
        /// Its name.
        pub interface: Option<String>,
        /// IP address.
        pub ip: Ipv4Addr,
        /// ATM address.
        pub address: AtmAddress,
        /// Largest IP packet, octets.
        pub mtu: u16,
        /// `destination` or `session`: what has a connection of its own.
        pub per: Name,
        /// Sessions with connections that it opened.
        pub sessions: usize,
        /// Sessions with connections that others opened.
        pub sessions_of_others: usize,
        /// `yes` if it is the ATMARP server.
        pub server: bool,
        /// `yes` if it is registered.
        pub ready: bool,
        /// ATM address that the ATMARP server has for this IP address, if it is another one: another member has the IP
        /// address, or a next hop that the server knows beforehand is wrong.
        pub owner: Option<AtmAddress>,
        /// Attempts to register that have failed since it was last registered.
        pub failed: u64,
        /// Reason why the last attempt failed.
        pub why: Option<String>,
    }

    /// One row for each ATMARP entry; those of a server are the registrations.
    pub struct Entry: "clip.atmarp" {
        /// IP address; the prefix of a default next hop.
        pub ip: String,
        /// ATM address.
        pub address: Option<AtmAddress>,
        /// State of the entry.
        pub state: Name,
        /// Seconds until it ages.
        pub expires_s: Option<u64>,
        /// VPI.VCI of the connection to it.
        pub vc: Option<Vc>,
        /// Packets that wait for it.
        pub waiting: usize,
    }

    /// One row for each connection of a Classical IP interface.
    pub struct Connection: "clip.connections" {
        /// VPI.VCI.
        pub vc: Option<Vc>,
        /// What the connection is for.
        pub role: Name,
        /// ATM address at the other end.
        pub peer: Option<AtmAddress>,
        /// LLC/SNAP or VC multiplexing.
        pub encapsulation: Name,
        /// The contract, as in qos(7).
        pub qos: Qos,
        /// Largest packet that may be sent on it.
        pub mtu_octets: u16,
        /// The session that it carries, from this end.
        pub session: Option<String>,
        /// Packets sent.
        pub packets_sent: u64,
        /// Packets received.
        pub packets_received: u64,
    }
}

impl From<&EntryRow> for Entry {
    fn from(seen: &EntryRow) -> Self {
        Self {
            ip: match seen.prefix_len {
                32 => seen.ip.to_string(),
                length => format!("{}/{length}", seen.ip),
            },
            address: seen.atm,
            state: seen.state.into(),
            expires_s: seen.expires_s,
            vc: seen.vc,
            waiting: seen.waiting,
        }
    }
}

impl From<&ConnRow> for Connection {
    fn from(seen: &ConnRow) -> Self {
        Self {
            vc: seen.vc,
            role: seen.role.into(),
            peer: seen.peer,
            encapsulation: seen.encapsulation.into(),
            qos: seen.qos,
            mtu_octets: seen.mtu,
            session: seen.session.map(|session| session.to_string()),
            packets_sent: seen.packets.0,
            packets_received: seen.packets.1,
        }
    }
}

/// The tables of the member on interface `itf`.
pub(crate) fn tables(itf: Option<usize>, seen: &Snapshot, attempts: Attempts) -> Vec<Table> {
    let member = Interface {
        interface: itf.map(|itf| format!("atm{itf}")),
        ip: seen.ip,
        address: seen.address,
        mtu: seen.mtu,
        per: match seen.per {
            Per::Destination => "destination",
            Per::Session => "session",
        }
        .into(),
        sessions: seen.sessions.0,
        sessions_of_others: seen.sessions.1,
        server: seen.serves,
        ready: seen.ready,
        owner: seen.owner,
        failed: attempts.failed,
        why: attempts.why,
    };
    vec![
        Table::of([member]),
        Table::of(seen.entries.iter().map(Entry::from)),
        Table::of(seen.conns.iter().map(Connection::from)),
        Table::counters(&counters::CLIP, seen.counters.rows()),
    ]
}
