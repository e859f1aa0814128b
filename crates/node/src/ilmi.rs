//! The tables of `inspect ilmi`, which are the same for ports of switches and for hosts.

use aerostat_proto::ilmi::Snapshot;
use aerostat_proto::uni::Version;

use crate::inspect::{Table, text};

/// The peers of these interfaces, and their addresses. Each item is number, name and snapshot.
pub(crate) fn tables<'a>(ends: impl Iterator<Item = (usize, &'a str, Snapshot)>) -> Vec<Table> {
    let columns = &[
        "port", "name", "state", "peer", "device", "uni", "prefixes", "sent", "received", "lost",
        "refused",
    ];
    let mut peers = Table::new("ilmi", columns);
    let mut addresses = Table::new("addresses", &["port", "name", "address"]);
    for (number, name, seen) in ends {
        let system = seen.peer.system.as_ref().map(|octets| {
            let hex: Vec<String> = octets.iter().map(|octet| format!("{octet:02x}")).collect();
            text(hex.join(":"))
        });
        peers.row(vec![
            number.into(),
            name.into(),
            text(seen.state),
            system.into(),
            match seen.peer.device {
                Some(1) => "user".into(),
                Some(2) => "node".into(),
                _ => "-".into(),
            },
            seen.version.map(|version| text(uni(version))).into(),
            seen.prefixes.len().into(),
            seen.counters.sent.into(),
            seen.counters.received.into(),
            seen.counters.losses.into(),
            (seen.counters.errors_sent + seen.counters.full).into(),
        ]);
        for address in seen.addresses {
            addresses.row(vec![number.into(), name.into(), text(address)]);
        }
    }
    vec![peers, addresses]
}

const fn uni(version: Version) -> &'static str {
    match version {
        Version::Uni30 => "3.0",
        Version::Uni31 => "3.1",
        Version::Uni40 => "4.0",
    }
}
