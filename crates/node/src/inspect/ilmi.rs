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
    pub struct Peer: "ilmi.ilmi" for (end: &End<'_>) {
        /// Number of the port; 0 on an end system.
        pub port: usize = end.port,
        /// System at the port, or the name of the end system.
        pub name: String = end.name.to_owned(),
        /// State of the registration.
        pub state: Name = named(end.seen.state),
        /// System identifier of the other end.
        pub peer: Option<String> = end.seen.peer.system.as_ref().map(|octets| hex(octets)),
        /// Device type of the other end: `user` or `node`, or `-` before it has said so.
        pub device: Device = match end.seen.peer.device {
            Some(1) => Device::User,
            Some(2) => Device::Node,
            _ => Device::Unknown,
        },
        /// Version of the UNI that both ends have agreed on.
        pub uni: Option<Version> = end.seen.version,
        /// Network prefixes that are registered.
        pub prefixes: usize = end.seen.prefixes.len(),
        /// Messages sent.
        pub sent: u64 = end.seen.counters.sent,
        /// Messages received.
        pub received: u64 = end.seen.counters.received,
        /// Requests that the other end did not answer in time.
        pub unanswered: u64 = end.seen.counters.timeouts,
        /// Times that the other end was lost.
        pub lost: u64 = end.seen.counters.losses,
        /// Requests that were refused, or for which there was no room.
        pub refused: u64 = end.seen.counters.errors_sent + end.seen.counters.full,
    }

    /// One row for each address that is registered by ILMI.
    pub struct Address: "ilmi.addresses" for (end: &End<'_>, address: AtmAddress) {
        /// Number of the port; 0 on an end system.
        pub port: usize = end.port,
        /// System at the port, or the name of the end system.
        pub name: String = end.name.to_owned(),
        /// ATM address.
        pub address: AtmAddress = address,
    }

    /// One row for each LECS that the network names.
    pub struct Lecs: "ilmi.lecs" {
        /// ATM address.
        pub address: AtmAddress,
    }
}

/// Octets in hex digits.
fn hex(octets: &[u8]) -> String {
    let octets: Vec<String> = octets.iter().map(|octet| format!("{octet:02x}")).collect();
    octets.join(":")
}

/// An interface with ILMI.
#[derive(Debug)]
pub struct End<'a> {
    /// Number of the port.
    pub port: usize,
    /// Name of the neighbour, or of the host itself.
    pub name: &'a str,
    /// State of its registration.
    pub seen: Snapshot,
}

/// The peers of these interfaces, and their addresses.
pub(crate) fn tables<'a>(ends: impl Iterator<Item = End<'a>>) -> Vec<Table> {
    let (mut peers, mut addresses) = (Vec::new(), Vec::new());
    for end in ends {
        peers.push(Peer::of(&end));
        let registered = end.seen.addresses.iter();
        addresses.extend(registered.map(|address| Address::of(&end, *address)));
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
