//! Rows of `inspect ilmi`, which are the same for ports of switches and for hosts.

use super::words::Device;
use super::{Name, Table, counters, named};
use aerostat_proto::ilmi::{Channel, DaemonCounters, Snapshot};
use aerostat_proto::uni::Version;
use aerostat_wire::AtmAddress;

crate::rows! {
    /// Tables about ILMI.
    pub const TABLES;

    /// One row for each interface that ILMI manages.
    pub struct Peer: "ilmi.ilmi" {
        /// Number of the port; 0 on an end system.
        pub port: usize,
        /// System at the port, or the name of the end system.
        pub name: String,
        /// State of the registration.
        pub state: Name,
        /// System identifier of the other end.
        pub peer: Option<String>,
        /// Device type of the other end: `user` or `node`, or `-` before it has said so.
        pub device: Device,
        /// Version of the UNI that both ends have agreed on.
        pub uni: Option<Version>,
        /// Network prefixes that are registered.
        pub prefixes: usize,
        /// Messages sent.
        pub sent: u64,
        /// Messages received.
        pub received: u64,
        /// Requests that the other end did not answer in time.
        pub unanswered: u64,
        /// Times that the other end was lost.
        pub lost: u64,
        /// Requests that were refused, or for which there was no room.
        pub refused: u64,
    }

    /// One row for each address that is registered by ILMI.
    pub struct Address: "ilmi.addresses" {
        /// Number of the port; 0 on an end system.
        pub port: usize,
        /// System at the port, or the name of the end system.
        pub name: String,
        /// ATM address.
        pub address: AtmAddress,
    }

    /// One row for each LECS that the network names.
    pub struct Lecs: "ilmi.lecs" {
        /// ATM address.
        pub address: AtmAddress,
    }
}

impl Peer {
    fn of(port: usize, name: &str, seen: &Snapshot) -> Self {
        let hex = |octets: &[u8]| {
            let octets: Vec<String> = octets.iter().map(|octet| format!("{octet:02x}")).collect();
            octets.join(":")
        };
        Self {
            port,
            name: name.to_owned(),
            state: named(seen.state),
            peer: seen.peer.system.as_ref().map(|octets| hex(octets)),
            device: match seen.peer.device {
                Some(1) => Device::User,
                Some(2) => Device::Node,
                _ => Device::Unknown,
            },
            uni: seen.version,
            prefixes: seen.prefixes.len(),
            sent: seen.counters.sent,
            received: seen.counters.received,
            unanswered: seen.counters.timeouts,
            lost: seen.counters.losses,
            refused: seen.counters.errors_sent + seen.counters.full,
        }
    }
}

/// An interface with ILMI.
pub(crate) struct End<'a> {
    /// Number of the port.
    pub(crate) port: usize,
    /// Name of the neighbour, or of the host itself.
    pub(crate) name: &'a str,
    pub(crate) seen: Snapshot,
}

/// The peers of these interfaces, and their addresses.
pub(crate) fn tables<'a>(ends: impl Iterator<Item = End<'a>>) -> Vec<Table> {
    let (mut peers, mut addresses) = (Vec::new(), Vec::new());
    for End { port, name, seen } in ends {
        peers.push(Peer::of(port, name, &seen));
        addresses.extend(seen.addresses.iter().map(|address| Address {
            port,
            name: name.to_owned(),
            address: *address,
        }));
    }
    vec![Table::of(peers), Table::of(addresses)]
}

/// Counters of the boundary to the daemons, all interfaces together. `None` stands for a node without a daemon in a
/// process of its own whose daemons' counters are all 0.
pub(crate) fn daemons<'a>(channels: impl Iterator<Item = &'a Channel>) -> Option<Table> {
    let (mut all, mut split) = (DaemonCounters::default(), false);
    for channel in channels {
        split |= channel.is_split();
        all.add(&channel.daemon_counters());
    }
    let told = split || all != DaemonCounters::default();
    if !told {
        return None;
    }
    let rows = counters::with_daemon(Vec::new(), all.rows());
    Some(Table::counters(&counters::ILMI, rows))
}
