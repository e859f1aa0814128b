//! Rows of `aerostat atmarp`, `atmaddr` and `atmdiag`: the values that linux-atm's tools print.
//!
//! Only the values are collected here; the command makes the text of these same rows. Entries of next hops that do not
//! exist are left out, because `atmarpd` does not keep them.

use super::words::{Aal, AtmarpEnd, AtmarpState};
use crate::atm::port::PortLimits;
use aerostat_proto::clip::{ConnRow, EntryRow, Snapshot};
use aerostat_proto::socket::PduCounts;
use aerostat_wire::cell::PAYLOAD_LEN;
use aerostat_wire::{AtmAddress, Qos, ServiceCategory, Vc};
use std::net::Ipv4Addr;

crate::rows! {
    /// Tables in the form of linux-atm.
    pub const TABLES;

    /// One row for each Classical IP interface.
    pub struct ArpInterface: "atmarp.interface" {
        /// Number of the interface.
        pub itf: usize,
        /// IP address.
        pub ip: Ipv4Addr,
        /// Length of the subnet's prefix.
        pub prefix: u8,
        /// Contract of connections that have no other.
        pub qos: Qos,
    }

    /// One row for each ATMARP entry.
    pub struct ArpEntry: "atmarp.entry" {
        /// Number of the interface.
        pub itf: usize,
        /// IP address; that of the subnet for a server that has not told its own.
        pub ip: Ipv4Addr,
        /// State of the entry.
        pub state: AtmarpState,
        /// ATM address.
        pub address: Option<AtmAddress>,
        /// Sum of [`FLAGS`].
        pub flags: u64,
        /// Contract of its connections; empty for that of the interface.
        pub qos: Option<Qos>,
    }

    /// One row for each connection of Classical IP.
    pub struct ArpConnection: "atmarp.connection" {
        /// Number of the interface.
        pub itf: usize,
        /// IP address of its entry; empty before the other end has told its own.
        pub ip: Option<Ipv4Addr>,
        /// ATM address at the other end.
        pub peer: Option<AtmAddress>,
        /// VPI.VCI.
        pub vc: Option<Vc>,
        /// How it came about.
        pub end: AtmarpEnd,
        /// `yes` if it can be used.
        pub open: bool,
        /// Its contract.
        pub qos: Qos,
        /// Octets that may wait in the adapter.
        pub send_buffer: u64,
    }

    /// One row for each address under which a host can be called. As in Linux, each stands for all selectors.
    pub struct LocalAddress: "atmaddr." {
        /// Number of the ATM interface.
        pub itf: u8,
        /// ATM address.
        pub address: AtmAddress,
    }

    /// One row for each AAL: PDUs sent and received. Only AAL5 is used.
    pub struct Diag: "atmdiag." for (aal: Aal, counts: PduCounts) {
        /// Number of the ATM interface.
        pub itf: u8 = 0,
        /// The AAL.
        pub aal: Aal = aal,
        /// PDUs sent.
        pub tx_okay: u64 = counts.sent,
        /// PDUs that the adapter had no room for.
        pub tx_err: u64 = counts.not_sent,
        /// PDUs received.
        pub rx_okay: u64 = counts.received,
        /// PDUs that came with cells missing or damaged.
        pub rx_err: u64 = counts.damaged,
        /// PDUs received without room for them: 0, because an adapter of a lab always has room.
        pub rx_drop: u64 = 0,
    }
}

/// The entry never ages.
const PERMANENT: u64 = 0x4;
/// The entry is published to others.
const PUBLISHED: u64 = 0x8;
/// Packets are sent without LLC/SNAP.
const NULL: u64 = 0x1000;
/// The entry is the ATMARP server.
const SERVER: u64 = 0x2000;

/// Flags of an entry with the names that `atmarp` prints.
pub const FLAGS: [(u64, &str); 4] = [
    (PERMANENT, "PERM"),
    (PUBLISHED, "PUBL"),
    (NULL, "NULL"),
    (SERVER, "ARPSRV"),
];

/// The ATMARP table of an interface: the interface itself, its entries, its connections.
pub(crate) type AtmarpRows = (ArpInterface, Vec<ArpEntry>, Vec<ArpConnection>);

/// The ATMARP table of interface `itf`.
pub(crate) fn atmarp(itf: usize, clip: &Snapshot) -> AtmarpRows {
    let usual = Qos::ubr(clip.mtu.saturating_add(aerostat_proto::clip::LLC_LEN));
    let interface = ArpInterface {
        itf,
        ip: clip.ip,
        prefix: clip.prefix_len,
        qos: usual,
    };
    let (mut entries, mut conns) = (Vec::new(), Vec::new());
    // linux-atm has no default next hops.
    for row in clip.entries.iter().filter(|row| row.prefix_len == 32) {
        let conn = clip.conns.iter().find(|conn| Some(conn.conn) == row.conn);
        entries.extend(state(row).map(|state| ArpEntry {
            itf,
            ip: row.ip,
            state,
            address: row.atm,
            flags: flags(row, conn),
            qos: row.qos,
        }));
    }
    for conn in &clip.conns {
        let users = clip.entries.iter().filter(|row| row.prefix_len == 32);
        let mut users = users.filter(|row| row.conn == Some(conn.conn)).peekable();
        if users.peek().is_none() {
            let entry = nameless(itf, clip, conn);
            let ip = entry.as_ref().map(|entry| entry.ip);
            entries.extend(entry);
            conns.push(connection(itf, ip, conn, usual));
        }
        conns.extend(users.map(|row| connection(itf, Some(row.ip), conn, usual)));
    }
    let served = |conn: &ConnRow| conn.role == "server";
    if let Some(server) = clip.server.filter(|_| !clip.conns.iter().any(served)) {
        entries.push(unknown_server(itf, clip, server, false));
    }
    (interface, entries, conns)
}

/// An entry for a connection that belongs to no other entry: to the server, or a permanent connection whose other end
/// has not told its IP address. A caller that has not told its IP address gets no entry.
fn nameless(itf: usize, clip: &Snapshot, conn: &ConnRow) -> Option<ArpEntry> {
    match (conn.role, conn.peer) {
        ("server", Some(peer)) => Some(unknown_server(itf, clip, peer, conn.vc.is_some())),
        ("permanent", _) => Some(ArpEntry {
            itf,
            ip: Ipv4Addr::UNSPECIFIED,
            state: AtmarpState::Resolving,
            address: None,
            flags: 0,
            qos: None,
        }),
        _ => None,
    }
}

/// The server before its IP address is known. The entry then has the address of the subnet, like one entered in Linux.
fn unknown_server(itf: usize, clip: &Snapshot, server: AtmAddress, reached: bool) -> ArpEntry {
    let host_bits = 32 - u32::from(clip.prefix_len.min(32));
    let mask = u32::MAX.checked_shl(host_bits).unwrap_or(0);
    ArpEntry {
        itf,
        ip: Ipv4Addr::from_bits(clip.ip.to_bits() & mask),
        state: if reached {
            AtmarpState::Valid
        } else {
            AtmarpState::Invalid
        },
        address: Some(server),
        flags: PERMANENT | SERVER,
        qos: None,
    }
}

/// States in the words of `atmarpd`.
fn state(row: &EntryRow) -> Option<AtmarpState> {
    match row.state {
        "resolving" => Some(AtmarpState::Resolving),
        "known" | "static" => Some(AtmarpState::Valid),
        _ => None,
    }
}

fn flags(row: &EntryRow, conn: Option<&ConnRow>) -> u64 {
    let fixed = if row.state == "static" { PERMANENT } else { 0 };
    match conn {
        Some(conn) if conn.role == "server" => PERMANENT | SERVER,
        Some(conn) if conn.role == "permanent" => {
            let null = if conn.encapsulation == "vc-mux" {
                NULL
            } else {
                0
            };
            fixed | null
        }
        _ if row.state == "known" => PUBLISHED,
        _ => fixed,
    }
}

fn connection(itf: usize, ip: Option<Ipv4Addr>, conn: &ConnRow, usual: Qos) -> ArpConnection {
    // A permanent connection may be configured for SDUs of any size, but the packets are those of the subnet.
    let mut qos = conn.qos;
    if conn.role == "permanent" {
        (qos.tx.max_sdu, qos.rx.max_sdu) = (usual.tx.max_sdu, usual.rx.max_sdu);
    }
    ArpConnection {
        itf,
        ip,
        peer: conn.peer,
        vc: conn.vc,
        end: match (conn.role, conn.incoming) {
            ("permanent", _) => AtmarpEnd::Permanent,
            (_, true) => AtmarpEnd::Passive,
            (_, false) => AtmarpEnd::Active,
        },
        open: conn.vc.is_some(),
        qos,
        send_buffer: send_buffer(&conn.qos),
    }
}

/// Limit of octets that wait in the adapter's queue of a connection.
fn send_buffer(qos: &Qos) -> u64 {
    let limits = match qos.tx.category {
        None => return 0,
        Some(ServiceCategory::Cbr | ServiceCategory::RtVbr | ServiceCategory::NrtVbr) => {
            PortLimits::HOST.guaranteed_vc
        }
        Some(_) => PortLimits::HOST.best_effort_vc,
    };
    u64::from(limits.max) * PAYLOAD_LEN as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inspect::Row;
    use aerostat_proto::Instant;
    use aerostat_proto::clip::{Clip, Config, Encapsulation, Input, Permanent};
    use aerostat_proto::{AtmEvent, AtmRequest, Machine as _};
    use aerostat_wire::Vc;

    /// The values of each row.
    fn texts<R: Row>(rows: impl IntoIterator<Item = R>) -> Vec<String> {
        let text = |row: R| {
            row.cells()
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
        };
        rows.into_iter().map(|row| text(row).join(" ")).collect()
    }

    /// A client whose server does not answer yet, with permanent connections of both kinds and a known next hop.
    #[test]
    fn what_is_not_known_yet() {
        let address = |n: u8| AtmAddress([n; 20]);
        let permanent = |vci, encapsulation, ip| Permanent {
            vc: Vc::new(0, vci),
            qos: Qos::ubr(9188),
            encapsulation,
            ip,
        };
        let mut clip = Clip::new(Config {
            prefix_len: 22,
            servers: vec![address(0x51)],
            hops: aerostat_proto::clip::NextHops {
                fixed: vec![(Ipv4Addr::new(10, 5, 3, 7), address(0x57))],
                qos: vec![(Ipv4Addr::new(10, 5, 3, 7), Qos::cbr(500, 9188))],
                ..Default::default()
            },
            permanent: vec![
                permanent(100, Encapsulation::Llc, None),
                permanent(101, Encapsulation::VcMux, Some(Ipv4Addr::new(10, 5, 3, 9))),
            ],
            ..Config::new(address(0x50), Ipv4Addr::new(10, 5, 3, 2))
        });
        let now = Instant::from_secs(1);
        clip.handle_input(Input::Start, now).unwrap();
        let (interface, entries, conns) = atmarp(3, &clip.snapshot(now));
        assert_eq!(texts([interface]), ["3 10.5.3.2 22 ubr,aal5:sdu=9188"]);
        let (server, fixed) = (address(0x51), address(0x57));
        // The server is called at once, but has not answered.
        let wanted = [
            format!("3 10.5.3.7 VALID {fixed} 4 cbr,aal5:max_pcr=500,sdu=9188"),
            "3 10.5.3.9 VALID - 4100 -".into(),
            "3 0.0.0.0 RESOLV - 0 -".into(),
            format!("3 10.5.0.0 INVALID {server} 8196 -"),
        ];
        let mut seen = texts(entries);
        seen.sort_by_key(|row| !row.contains("10.5.3"));
        assert_eq!(seen, wanted);
        assert_eq!(conns.len(), 3, "{conns:?}");
        let mut requests = core::iter::from_fn(|| clip.poll_output());
        let call = requests.find_map(|output| match output {
            aerostat_proto::clip::Output::Atm(AtmRequest::Connect { conn, .. }) => Some(conn),
            _ => None,
        });
        let (conn, vc) = (call.unwrap(), Vc::new(0, 32));
        let event = AtmEvent::Connected {
            conn,
            vc,
            qos: Qos::ubr(9188),
        };
        clip.handle_input(Input::Atm(event), now).unwrap();
        let (_, entries, conns) = atmarp(3, &clip.snapshot(now));
        let reached = format!("3 10.5.0.0 VALID {server} 8196 -");
        assert!(texts(entries.clone()).contains(&reached), "{entries:?}");
        let open = format!("3 10.5.0.0 {server} 0.32 active yes ubr,aal5:sdu=9188 786432");
        assert!(texts(conns.clone()).contains(&open), "{conns:?}");
    }
}
