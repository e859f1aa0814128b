//! The state of a host in the form of linux-atm's tools: the values that `atmarp -a`, `atmaddr -n` and `atmdiag` print.
//!
//! Only the values are collected here; the command makes the text. Entries of next hops that do not exist are left out,
//! because `atmarpd` does not keep them.

use super::{Host, Service, Station};
use crate::atm::port::PortLimits;
use crate::inspect::{Table, Value, text};
use aerostat_proto::Instant;
use aerostat_proto::clip::{ConnRow, EntryRow, Snapshot};
use aerostat_wire::cell::PAYLOAD_LEN;
use aerostat_wire::{AtmAddress, Qos, ServiceCategory};
use std::collections::BTreeSet;
use std::net::Ipv4Addr;

/// The entry never ages.
const PERMANENT: u64 = 0x4;
/// The entry is published to others.
const PUBLISHED: u64 = 0x8;
/// Packets are sent without LLC/SNAP.
const NULL: u64 = 0x1000;
/// The entry is the ATMARP server.
const SERVER: u64 = 0x2000;

impl Station {
    /// PDUs sent and received by AAL. Only AAL5 is used. An adapter of a lab always has room for received PDUs.
    pub(super) fn atmdiag_table(&self) -> Table {
        let columns = &[
            "itf", "aal", "tx_okay", "tx_err", "rx_okay", "rx_err", "rx_drop",
        ];
        let mut table = Table::new("", columns);
        let nic = self.nic();
        let sent = nic.output().totals().pdus_out;
        let received = (nic.counters.pdus_out, nic.pdus_bad);
        for (aal, counts) in [
            ("AAL0", [0; 4]),
            ("AAL5", [sent, self.late(), received.0, received.1]),
        ] {
            let mut row = vec![0_u8.into(), aal.into()];
            row.extend(counts.map(Value::from));
            row.push(0_u8.into());
            table.row(row);
        }
        table
    }
}

impl Host {
    /// The addresses under which this host can be called. As in Linux, each stands for all selectors.
    pub(super) fn atmaddr_table(&self) -> Option<Table> {
        let listeners = self.signalling.listeners();
        let all: BTreeSet<AtmAddress> = listeners
            .map(|(address, ..)| address.with_selector(0))
            .collect();
        let mut table = Table::new("", &["itf", "address"]);
        for address in all {
            table.row(vec![0_u8.into(), text(address)]);
        }
        // A LANE server or router without addresses gets no table; a host that waits for ILMI gets an empty one.
        (!self.slots.is_empty()).then_some(table)
    }

    /// The ATMARP table of each interface: the interface itself, its entries, its connections.
    pub(super) fn atmarp_tables(&self, now: Instant) -> Vec<Table> {
        let mut tables = Vec::new();
        for (slot, state) in self.slots.iter().enumerate() {
            if let (Some(Service::Clip(clip)), Some(itf)) =
                (&state.service, self.interface_of(slot))
            {
                tables.extend(atmarp(itf, &clip.snapshot(now)));
            }
        }
        tables
    }
}

fn atmarp(itf: usize, clip: &Snapshot) -> [Table; 3] {
    let usual = Qos::ubr(clip.mtu.saturating_add(aerostat_proto::clip::LLC_LEN));
    let mut interface = Table::new("interface", &["itf", "ip", "prefix", "qos"]);
    interface.row(vec![
        itf.into(),
        text(clip.ip),
        clip.prefix_len.into(),
        text(usual),
    ]);
    let columns = &["itf", "ip", "state", "address", "flags", "qos"];
    let mut entries = Table::new("entry", columns);
    let columns = &[
        "itf",
        "ip",
        "peer",
        "vc",
        "end",
        "open",
        "qos",
        "send_buffer",
    ];
    let mut conns = Table::new("connection", columns);
    for row in &clip.entries {
        let conn = clip.conns.iter().find(|conn| Some(conn.conn) == row.conn);
        if let Some(state) = state(row) {
            entries.row(vec![
                itf.into(),
                text(row.ip),
                state.into(),
                row.atm.map(text).into(),
                flags(row, conn).into(),
                row.qos.map(text).into(),
            ]);
        }
    }
    for conn in &clip.conns {
        let users = clip.entries.iter();
        let mut users = users.filter(|row| row.conn == Some(conn.conn)).peekable();
        if users.peek().is_none() {
            let row = nameless(itf, clip, conn);
            let ip = row.as_ref().map(|(ip, _)| *ip);
            row.into_iter().for_each(|(_, row)| entries.row(row));
            conns.row(connection(itf, ip, conn, usual));
        }
        for row in users {
            conns.row(connection(itf, Some(row.ip), conn, usual));
        }
    }
    let served = |conn: &ConnRow| conn.role == "server";
    if let Some(server) = clip.server.filter(|_| !clip.conns.iter().any(served)) {
        entries.row(unknown_server(itf, clip, server, false).1);
    }
    [interface, entries, conns]
}

/// An entry for a connection that belongs to no other entry: to the server, or a permanent connection whose other end
/// has not told its IP address. A caller that has not told its IP address gets no entry.
fn nameless(itf: usize, clip: &Snapshot, conn: &ConnRow) -> Option<(Ipv4Addr, Vec<Value>)> {
    match (conn.role, conn.peer) {
        ("server", Some(peer)) => Some(unknown_server(itf, clip, peer, conn.vc.is_some())),
        ("permanent", _) => {
            let ip = Ipv4Addr::UNSPECIFIED;
            let (state, flags) = ("RESOLV".into(), 0_u64.into());
            let row = vec![itf.into(), text(ip), state, Value::None, flags, Value::None];
            Some((ip, row))
        }
        _ => None,
    }
}

/// The server before its IP address is known. The entry then has the address of the subnet, like one entered in Linux.
fn unknown_server(
    itf: usize,
    clip: &Snapshot,
    server: AtmAddress,
    reached: bool,
) -> (Ipv4Addr, Vec<Value>) {
    let host_bits = 32 - u32::from(clip.prefix_len.min(32));
    let mask = u32::MAX.checked_shl(host_bits).unwrap_or(0);
    let ip = Ipv4Addr::from_bits(clip.ip.to_bits() & mask);
    let state = if reached { "VALID" } else { "INVALID" };
    let flags = PERMANENT | SERVER;
    let row = vec![
        itf.into(),
        text(ip),
        state.into(),
        text(server),
        flags.into(),
        Value::None,
    ];
    (ip, row)
}

/// States in the words of `atmarpd`.
fn state(row: &EntryRow) -> Option<&'static str> {
    match row.state {
        "resolving" => Some("RESOLV"),
        "known" | "static" => Some("VALID"),
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

fn connection(itf: usize, ip: Option<Ipv4Addr>, conn: &ConnRow, usual: Qos) -> Vec<Value> {
    // A permanent connection may be configured for SDUs of any size, but the packets are those of the subnet.
    let mut qos = conn.qos;
    if conn.role == "permanent" {
        (qos.tx.max_sdu, qos.rx.max_sdu) = (usual.tx.max_sdu, usual.rx.max_sdu);
    }
    let end = match (conn.role, conn.incoming) {
        ("permanent", _) => "permanent",
        (_, true) => "passive",
        (_, false) => "active",
    };
    vec![
        itf.into(),
        ip.map(text).into(),
        conn.peer.map(text).into(),
        conn.vc.map(text).into(),
        end.into(),
        if conn.vc.is_some() { "yes" } else { "no" }.into(),
        text(qos),
        send_buffer(&conn.qos).into(),
    ]
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
    use aerostat_proto::clip::{Clip, Config, Encapsulation, Input, Permanent};
    use aerostat_proto::{AtmEvent, AtmRequest, Machine as _};
    use aerostat_wire::Vc;

    fn rows(table: &Table) -> Vec<String> {
        let cell = |value: &Value| match value {
            Value::Text(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            Value::None => "-".into(),
        };
        let row = |row: &Vec<Value>| row.iter().map(cell).collect::<Vec<_>>().join(" ");
        table.rows.iter().map(row).collect()
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
            fixed: vec![(Ipv4Addr::new(10, 5, 3, 7), address(0x57))],
            qos: vec![(Ipv4Addr::new(10, 5, 3, 7), Qos::cbr(500, 9188))],
            permanent: vec![
                permanent(100, Encapsulation::Llc, None),
                permanent(101, Encapsulation::VcMux, Some(Ipv4Addr::new(10, 5, 3, 9))),
            ],
            ..Config::new(address(0x50), Ipv4Addr::new(10, 5, 3, 2))
        });
        let now = Instant::from_secs(1);
        clip.handle_input(Input::Start, now).unwrap();
        let [interface, entries, conns] = atmarp(3, &clip.snapshot(now));
        assert_eq!(rows(&interface), ["3 10.5.3.2 22 ubr,aal5:sdu=9188"]);
        let (server, fixed) = (address(0x51), address(0x57));
        // The server is called at once, but has not answered.
        let wanted = [
            format!("3 10.5.3.7 VALID {fixed} 4 cbr,aal5:max_pcr=500,sdu=9188"),
            "3 10.5.3.9 VALID - 4100 -".into(),
            "3 0.0.0.0 RESOLV - 0 -".into(),
            format!("3 10.5.0.0 INVALID {server} 8196 -"),
        ];
        let mut seen = rows(&entries);
        seen.sort_by_key(|row| !row.contains("10.5.3"));
        assert_eq!(seen, wanted);
        assert_eq!(conns.rows.len(), 3, "{conns:?}");
        let mut requests = core::iter::from_fn(|| clip.poll_output());
        let call = requests.find_map(|output| match output {
            aerostat_proto::clip::Output::Atm(AtmRequest::Connect { conn, .. }) => Some(conn),
            _ => None,
        });
        let (conn, vc) = (call.unwrap(), Vc::new(0, 32));
        let event = AtmEvent::Connected { conn, vc };
        clip.handle_input(Input::Atm(event), now).unwrap();
        let [_, entries, conns] = atmarp(3, &clip.snapshot(now));
        let reached = format!("3 10.5.0.0 VALID {server} 8196 -");
        assert!(rows(&entries).contains(&reached), "{entries:?}");
        let open = format!("3 10.5.0.0 {server} 0.32 active yes ubr,aal5:sdu=9188 786432");
        assert!(rows(&conns).contains(&open), "{conns:?}");
    }
}
