//! Snapshot of a client for display.

use std::net::Ipv4Addr;

use aerostat_wire::{AtmAddress, Vc};

use super::{Counters, Nhc, Refusal};
use crate::vcc::Vcc;
use crate::{Cause, Instant};

/// State of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryState {
    /// A request is outstanding.
    Asking,
    /// A shortcut is known; its connection is being opened, or was idle.
    Known,
    /// Packets use the shortcut.
    Shortcut,
    /// There is no shortcut for the time being.
    Refused(Refusal),
    /// The information was wrong and has been removed.
    Void,
}

impl EntryState {
    /// One word for tables.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Asking => "asking",
            Self::Known => "known",
            Self::Shortcut => "shortcut",
            Self::Refused(_) => "refused",
            Self::Void => "void",
        }
    }
}

/// One destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryRow {
    /// Its address.
    pub destination: Ipv4Addr,
    /// Length of the prefix that the entry serves.
    pub prefix_len: u8,
    /// State.
    pub state: EntryState,
    /// Where packets are sent.
    pub nbma: Option<AtmAddress>,
    /// Largest packet, octets; 0 means the default.
    pub mtu: u16,
    /// End of the holding time, or of the hold-down.
    pub until: Option<Instant>,
    /// True if the answer was authoritative.
    pub authoritative: bool,
    /// The responder.
    pub responder: Option<Ipv4Addr>,
    /// Number of servers that the request passed before the responder.
    pub servers: usize,
    /// The connection's label.
    pub vc: Option<Vc>,
    /// Packets sent over the shortcut.
    pub packets: u64,
    /// Code of the last negative answer: of a reply, or of an Error Indication.
    pub last_code: Option<u16>,
    /// Cause of the last call that failed, or of a release that was not normal.
    pub last_cause: Option<Cause>,
}

/// The client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NhcSnapshot {
    /// The station.
    pub ip: Ipv4Addr,
    /// Its server.
    pub server: (Ipv4Addr, AtmAddress),
    /// End of its registration.
    pub registered: Option<Instant>,
    /// Its entries.
    pub entries: Vec<EntryRow>,
    /// Counters.
    pub counters: Counters,
}

impl Nhc {
    /// The state of the client.
    #[must_use]
    pub fn snapshot(&self) -> NhcSnapshot {
        let rows = self.entries.iter().map(|(destination, entry)| {
            let conn = entry.conn.and_then(|conn| self.conns.get(conn));
            let vc = conn.and_then(Vcc::vc);
            let state = match (entry.refusal, entry.way, entry.asking) {
                (Some((_, why)), ..) => EntryState::Refused(why),
                (None, Some(_), _) if vc.is_some() => EntryState::Shortcut,
                (None, Some(_), _) => EntryState::Known,
                (None, None, Some(_)) => EntryState::Asking,
                (None, None, None) => EntryState::Void,
            };
            EntryRow {
                destination: *destination,
                prefix_len: entry.way.map_or(32, |way| way.prefix_len),
                state,
                nbma: entry.way.map(|way| way.nbma),
                mtu: entry.way.map_or(0, |way| way.mtu),
                until: entry
                    .refusal
                    .map(|(until, _)| until)
                    .or(entry.way.map(|way| way.until)),
                authoritative: entry.way.is_some_and(|way| way.authoritative),
                responder: entry.way.and_then(|way| way.responder),
                servers: entry.way.map_or(0, |way| way.servers),
                vc,
                packets: entry.by_shortcut,
                last_code: entry.last_code,
                last_cause: entry.last_cause,
            }
        });
        NhcSnapshot {
            ip: self.config.ip,
            server: self.config.server,
            registered: self.registered,
            entries: rows.collect(),
            counters: self.counters.clone(),
        }
    }
}
