//! Tables of `inspect` about LANE clients and servers.

use crate::host::{Host, Service};
use crate::inspect::{Table, text};
use aerostat_proto::counters::CounterRow;
use aerostat_proto::lane::{bus, lec, les};
use aerostat_proto::split::SeatCounters;

impl Host {
    /// The text of `/proc/net/atm/lec`: all LANE clients under one header line. `None` without LANE clients.
    pub(super) fn lec_proc_text(&self) -> Option<String> {
        let slots = self.slots.iter().enumerate();
        let clients = slots.filter_map(|(slot, state)| match &state.service {
            Some(Service::Lec(lec)) => Some(lec.snapshot().proc_lines(self.interface_of(slot)?)),
            _ => None,
        });
        let clients: Vec<String> = clients.collect();
        let header = lec::LecSnapshot::PROC_HEADER;
        (!clients.is_empty()).then(|| header.to_owned() + &clients.concat())
    }
}

pub(super) fn lec_tables(itf: Option<usize>, lec: &lec::LecSnapshot) -> Vec<Table> {
    let columns = &[
        "interface",
        "state",
        "elan",
        "lecid",
        "elan_id",
        "version",
        "mac",
        "address",
        "les",
        "bus",
    ];
    let mut client = Table::new("client", columns);
    client.row(vec![
        itf.map(|itf| format!("lec{itf}")).into(),
        text(lec.state),
        text(lec.elan),
        lec.lecid.into(),
        lec.elan_id.into(),
        if lec.v2 { 2_u8 } else { 1 }.into(),
        text(lec.mac),
        text(lec.address),
        text(lec.les),
        text(lec.bus),
    ]);
    let mut cache = Table::new("le_arp", &["mac", "address", "status", "remote", "vc"]);
    for row in &lec.cache {
        cache.row(vec![
            text(row.mac),
            row.atm.map(text).into(),
            text(row.status),
            if row.remote { "yes" } else { "no" }.into(),
            row.vc.map(text).into(),
        ]);
    }
    let mut conns = Table::new("connections", &["role", "peer", "direction", "vc"]);
    for row in &lec.connections {
        conns.row(vec![
            row.role.into(),
            text(row.peer),
            if row.outgoing { "out" } else { "in" }.into(),
            row.vc.map(text).into(),
        ]);
    }
    let mut groups = Table::new("groups", &["group", "registered"]);
    for (mac, registered) in lec.groups.iter().flatten() {
        groups.row(vec![
            text(mac),
            if *registered { "yes" } else { "no" }.into(),
        ]);
    }
    let mut tables = vec![client, cache, conns];
    // Only for a client that has selected groups.
    tables.extend(lec.groups.is_some().then_some(groups));
    tables.push(with_seat("control counters", lec.control.rows(), lec.seat));
    tables.push(Table::counters("data counters", lec.data.rows()));
    tables
}

/// Counters of a client or server, and after them those of its daemon's seat.
pub(super) fn with_seat(
    title: &'static str,
    mut counters: Vec<CounterRow>,
    seat: SeatCounters,
) -> Table {
    counters.push(("daemon_refused".to_owned(), seat.refused));
    counters.push(("daemon_stale".to_owned(), seat.stale));
    counters.push(("daemon_dropped".to_owned(), seat.dropped));
    Table::counters(title, counters)
}

pub(super) fn les_tables(les: &les::LesSnapshot, seat: SeatCounters) -> Vec<Table> {
    let mut server = Table::new("server", &["elan", "address", "bus"]);
    server.row(vec![text(les.elan), text(les.address), text(les.bus)]);
    let mut clients = Table::new(
        "clients",
        &[
            "lecid", "address", "state", "v2", "proxy", "macs", "groups", "vc",
        ],
    );
    for row in &les.clients {
        let macs: Vec<_> = row.macs.iter().map(ToString::to_string).collect();
        clients.row(vec![
            row.lecid.into(),
            text(row.address),
            row.state.into(),
            if row.v2 { "yes" } else { "no" }.into(),
            if row.proxy { "yes" } else { "no" }.into(),
            macs.join(" ").into(),
            match &row.groups {
                None => "all".to_owned(),
                Some(groups) => {
                    let groups: Vec<_> = groups.iter().map(ToString::to_string).collect();
                    groups.join(" ")
                }
            }
            .into(),
            row.vc.map(text).into(),
        ]);
    }
    vec![
        server,
        clients,
        with_seat("counters", les.counters.rows(), seat),
    ]
}

pub(super) fn bus_tables(bus: &bus::BusSnapshot, seat: SeatCounters) -> Vec<Table> {
    let mut clients = Table::new(
        "clients",
        &["elan", "lecid", "address", "forward", "vc", "dropped"],
    );
    for row in &bus.clients {
        clients.row(vec![
            text(bus.elan),
            row.lecid.into(),
            text(row.address),
            if row.forward { "yes" } else { "no" }.into(),
            row.vc.map(text).into(),
            row.dropped.into(),
        ]);
    }
    let mut groups = Table::new("groups", &["group", "clients"]);
    for (mac, clients) in &bus.groups {
        groups.row(vec![text(mac), (*clients as u64).into()]);
    }
    let mut tables = vec![clients];
    tables.extend((!bus.groups.is_empty()).then_some(groups));
    tables.push(with_seat("counters", bus.counters.rows(), seat));
    tables
}
