//! Rows of `inspect lec`, `les` and `bus`.

use super::{Name, Table, counters, named, words::Direction};
use crate::host::Attempts;
use aerostat_proto::lane::{bus, lec, les};
use aerostat_proto::split::SeatCounters;
use aerostat_wire::{AtmAddress, MacAddr, TrafficParams, Vc};

crate::rows! {
    /// Tables about LAN emulation.
    pub const TABLES;

    /// One row for each LANE client.
    pub struct Client: "lec.client" for (itf: Option<usize>, seen: &lec::LecSnapshot, attempts: Attempts) {
        /// Its interface.
        pub interface: Option<String> = itf.map(|itf| format!("lec{itf}")),
        /// How far joining is.
        pub state: Name = named(seen.state),
        /// ELAN.
        pub elan: String = seen.elan.to_string(),
        /// Number that the LES gave it.
        pub lecid: u16 as Detail(4) = seen.lecid,
        /// Number of the ELAN.
        pub elan_id: u32 as Detail(0) = seen.elan_id,
        /// Version of LANE.
        pub version: u8 as Detail(1) = if seen.v2 { 2 } else { 1 },
        /// MAC address.
        pub mac: MacAddr as Detail(5) = seen.mac,
        /// ATM address.
        pub address: AtmAddress as Detail(6) = seen.address,
        /// Address of its LES.
        pub les: AtmAddress as Detail(3) = seen.les,
        /// Address of its BUS.
        pub bus: AtmAddress as Detail(2) = seen.bus,
        /// Attempts to join that have failed since it was last a member.
        pub failed: u64 = attempts.failed,
        /// Reason why the last attempt failed.
        pub why: Option<String> = attempts.why,
        /// `yes` while the topology of bridges in the ELAN changes: entries of their stations age faster (C19).
        pub topology_change: bool as Detail(7) = seen.topology_change,
    }

    /// One row for each entry of a LANE client's LE_ARP cache.
    pub struct LeArp: "lec.le_arp" for (seen: &lec::LecArpRow) {
        /// MAC address.
        pub mac: MacAddr = seen.mac,
        /// ATM address.
        pub address: Option<AtmAddress> = seen.atm,
        /// State of the entry.
        pub status: Name = named(seen.status),
        /// `yes` if a bridge stands before it.
        pub remote: bool = seen.remote,
        /// VPI.VCI of the data direct connection.
        pub vc: Option<Vc> = seen.vc,
    }

    /// One row for each connection of a LANE client.
    pub struct Connection: "lec.connections" for (seen: &lec::LecConnRow) {
        /// Purpose of the connection.
        pub role: Name = seen.role.into(),
        /// ATM address at the other end.
        pub peer: AtmAddress = seen.peer,
        /// `in` or `out`.
        pub direction: Direction = Direction::of(seen.outgoing),
        /// VPI.VCI.
        pub vc: Option<Vc> = seen.vc,
        /// The contract of what the client sends, as in qos(7), if it is not best effort.
        pub contract: Option<TrafficParams> = seen.traffic,
    }

    /// One row for each group that a LANE client has selected; only clients that select groups have the table.
    pub struct Group: "lec.groups" {
        /// MAC address of the group.
        pub group: MacAddr,
        /// `yes` if the LES knows that the client wants it.
        pub registered: bool,
    }

    /// One row for each LAN emulation server.
    pub struct Server: "les.server" for (seen: &les::LesSnapshot) {
        /// ELAN.
        pub elan: String = seen.elan.to_string(),
        /// ATM address.
        pub address: AtmAddress = seen.address,
        /// Address of its BUS.
        pub bus: AtmAddress = seen.bus,
    }

    /// One row for each client of a LES.
    pub struct LesClient: "les.clients" for (row: &les::LesRow) {
        /// Its number.
        pub lecid: u16 = row.lecid,
        /// ATM address.
        pub address: AtmAddress = row.address,
        /// How far joining is.
        pub state: Name = row.state.into(),
        /// `yes` if it speaks LANE v2.
        pub v2: bool = row.v2,
        /// `yes` for a bridge.
        pub proxy: bool = row.proxy,
        /// MAC addresses that it has registered.
        pub macs: String = list(&row.macs),
        /// Groups that it wants.
        pub groups: String = row.groups.as_deref().map_or_else(|| "all".to_owned(), list),
        /// VPI.VCI of its control direct connection.
        pub vc: Option<Vc> = row.vc,
    }

    /// One row for each client of a BUS.
    pub struct BusClient: "bus.clients" for (seen: &bus::BusSnapshot, row: &bus::BusRow) {
        /// ELAN.
        pub elan: String = seen.elan.to_string(),
        /// Its number.
        pub lecid: u16 = row.lecid,
        /// ATM address.
        pub address: AtmAddress = row.address,
        /// How frames reach it.
        pub forward: bool = row.forward,
        /// VPI.VCI of its multicast send connection.
        pub vc: Option<Vc> = row.vc,
        /// Frames of it that were beyond its quota.
        pub dropped: u64 = row.dropped,
    }

    /// One row for each group that clients of a BUS have selected; a BUS without such clients has no such table.
    pub struct BusGroup: "bus.groups" {
        /// MAC address of the group.
        pub group: MacAddr,
        /// Clients that want it.
        pub clients: usize,
    }
}

/// MAC addresses in one text.
fn list(macs: &[MacAddr]) -> String {
    let macs: Vec<_> = macs.iter().map(ToString::to_string).collect();
    macs.join(" ")
}

/// The tables of the client on interface `itf`.
pub(crate) fn client(
    itf: Option<usize>,
    seen: &lec::LecSnapshot,
    attempts: Attempts,
) -> Vec<Table> {
    let client = Client::of(itf, seen, attempts);
    let mut tables = vec![
        Table::of([client]),
        Table::of(seen.cache.iter().map(LeArp::of)),
        Table::of(seen.connections.iter().map(Connection::of)),
    ];
    tables.extend(seen.groups.as_ref().map(|groups| {
        let group = |&(group, registered): &(MacAddr, bool)| Group { group, registered };
        Table::of(groups.iter().map(group))
    }));
    let control = counters::with_seat(seen.control.rows(), seen.seat);
    tables.push(Table::counters(&counters::LEC_CONTROL, control));
    tables.push(Table::counters(&counters::LEC_DATA, seen.data.rows()));
    tables
}

/// The tables of a LES.
pub(crate) fn les(seen: &les::LesSnapshot, seat: SeatCounters) -> Vec<Table> {
    let server = Server::of(seen);
    let counts = counters::with_seat(seen.counters.rows(), seat);
    vec![
        Table::of([server]),
        Table::of(seen.clients.iter().map(LesClient::of)),
        Table::counters(&counters::LES, counts),
    ]
}

/// Refusals at the seat of a server that has told nothing of itself, as a LECS. `None` stands for a seat that has
/// refused nothing.
pub(crate) fn lecs(seat: SeatCounters) -> Option<Table> {
    let counts = counters::with_seat(Vec::new(), seat);
    (seat.refused > 0).then(|| Table::counters(&counters::LES, counts))
}

/// The tables of a BUS.
pub(crate) fn bus(seen: &bus::BusSnapshot, seat: SeatCounters) -> Vec<Table> {
    let client = |row: &bus::BusRow| BusClient::of(seen, row);
    let mut tables = vec![Table::of(seen.clients.iter().map(client))];
    let group = |&(group, clients): &(MacAddr, usize)| BusGroup { group, clients };
    let groups = Table::of(seen.groups.iter().map(group));
    tables.extend((!seen.groups.is_empty()).then_some(groups));
    let counts = counters::with_seat(seen.counters.rows(), seat);
    tables.push(Table::counters(&counters::BUS, counts));
    tables
}
