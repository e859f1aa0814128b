//! Rows of `inspect line`.

use super::{Name, Table, counters};
use crate::host::Attempts;
use aerostat_proto::line::{Line, Way};
use aerostat_wire::{AtmAddress, MacAddr, Vc};

crate::rows! {
    /// Tables about ATM lines.
    pub const TABLES;

    /// One row for each end of an ATM line.
    pub struct End: "line.ends" for (itf: Option<usize>, seen: &Line, attempts: Attempts) {
        /// Interface above it.
        pub interface: Option<String> = itf.map(|itf| format!("nas{itf}")),
        /// Encapsulation of frames or packets.
        pub encapsulation: Name = seen.config().encapsulation.name().into(),
        /// Largest IP packet, octets.
        pub mtu: u16 = seen.config().mtu,
        /// VPI.VCI of its connection, while that is open.
        pub vc: Option<Vc> = seen.vc(),
        /// `permanent`, `calls` or `called`: how it gets its connection.
        pub way: Name = match seen.config().way {
            Way::Permanent { .. } => "permanent",
            Way::Calls { .. } => "calls",
            Way::Called { .. } => "called",
        }.into(),
        /// ATM address at the other end, of a connection that is called.
        pub peer: Option<AtmAddress> = match seen.config().way {
            Way::Permanent { .. } => None,
            Way::Calls { peer, .. } | Way::Called { peer } => Some(peer),
        },
        /// MAC address at the other end, of a session of PPPoE.
        pub peer_mac: Option<MacAddr> =
            seen.config().encapsulation.is_pppoe().then_some(seen.config().session.peer),
        /// Number of the session of PPPoE.
        pub session: Option<u16> =
            seen.config().encapsulation.is_pppoe().then_some(seen.config().session.id),
        /// Attempts to open its connection that have failed since it was last open.
        pub failed: u64 = attempts.failed,
        /// Reason why its connection ended or could not be opened.
        pub why: Option<String> = seen.ended().map(|cause| cause.to_string()),
    }
}

/// The tables of the line below interface `itf`.
pub(crate) fn tables(itf: Option<usize>, seen: &Line, attempts: Attempts) -> Vec<Table> {
    vec![
        Table::of([End::of(itf, seen, attempts)]),
        Table::counters(&counters::LINE, seen.counters().rows()),
    ]
}
