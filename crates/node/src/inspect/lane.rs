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
    pub struct Client: "lec.client" {
        /// Its interface.
        pub interface: Option<String>,
        /// How far joining is.
        pub state: Name,
        /// ELAN.
        pub elan: String,
        /// Number that the LES gave it.
        pub lecid: u16,
        /// Number of the ELAN.
        pub elan_id: u32,
        /// Version of LANE.
        pub version: u8,
        /// MAC address.
        pub mac: MacAddr,
        /// ATM address.
        pub address: AtmAddress,
        /// Address of its LES.
        pub les: AtmAddress,
        /// Address of its BUS.
        pub bus: AtmAddress,
        /// Attempts to join that have failed since it was last a member.
        pub failed: u64,
        /// Reason why the last attempt failed.
        pub why: Option<String>,
    }

    /// One row for each entry of a LANE client's LE_ARP cache.
    pub struct LeArp: "lec.le_arp" {
        /// MAC address.
        pub mac: MacAddr,
        /// ATM address.
        pub address: Option<AtmAddress>,
        /// State of the entry.
        pub status: Name,
        /// `yes` if a bridge stands before it.
        pub remote: bool,
        /// VPI.VCI of the data direct connection.
        pub vc: Option<Vc>,
    }

    /// One row for each connection of a LANE client.
    pub struct Connection: "lec.connections" {
        /// What the connection is for.
        pub role: Name,
        /// ATM address at the other end.
        pub peer: AtmAddress,
        /// `in` or `out`.
        pub direction: Direction,
        /// VPI.VCI.
        pub vc: Option<Vc>,
        /// The contract of what the client sends, as in qos(7), if it is not best effort.
        pub contract: Option<TrafficParams>,
    }

    /// One row for each group that a LANE client has selected; only clients that select groups have the table.
    pub struct Group: "lec.groups" {
        /// MAC address of the group.
        pub group: MacAddr,
        /// `yes` if the LES knows that the client wants it.
        pub registered: bool,
    }

    /// One row for each LAN emulation server.
    pub struct Server: "les.server" {
        /// ELAN.
        pub elan: String,
        /// ATM address.
        pub address: AtmAddress,
        /// Address of its BUS.
        pub bus: AtmAddress,
    }

    /// One row for each client of a LES.
    pub struct LesClient: "les.clients" {
        /// Its number.
        pub lecid: u16,
        /// ATM address.
        pub address: AtmAddress,
        /// How far joining is.
        pub state: Name,
        /// `yes` if it speaks LANE v2.
        pub v2: bool,
        /// `yes` for a bridge.
        pub proxy: bool,
        /// MAC addresses that it has registered.
        pub macs: String,
        /// Groups that it wants.
        pub groups: String,
        /// VPI.VCI of its control direct connection.
        pub vc: Option<Vc>,
    }

    /// One row for each client of a BUS.
    pub struct BusClient: "bus.clients" {
        /// ELAN.
        pub elan: String,
        /// Its number.
        pub lecid: u16,
        /// ATM address.
        pub address: AtmAddress,
        /// How frames reach it.
        pub forward: bool,
        /// VPI.VCI of its multicast send connection.
        pub vc: Option<Vc>,
        /// Frames of it that were beyond its quota.
        pub dropped: u64,
    }

    /// One row for each group that clients of a BUS have selected; a BUS without such clients has no such table.
    pub struct BusGroup: "bus.groups" {
        /// MAC address of the group.
        pub group: MacAddr,
        /// Clients that want it.
        pub clients: usize,
    }
}

impl From<&lec::LecArpRow> for LeArp {
    fn from(seen: &lec::LecArpRow) -> Self {
        Self {
            mac: seen.mac,
            address: seen.atm,
            status: named(seen.status),
            remote: seen.remote,
            vc: seen.vc,
        }
    }
}

impl From<&lec::LecConnRow> for Connection {
    fn from(seen: &lec::LecConnRow) -> Self {
        Self {
            role: seen.role.into(),
            peer: seen.peer,
            direction: Direction::of(seen.outgoing),
            vc: seen.vc,
            contract: seen.traffic,
        }
    }
}

impl From<&les::LesRow> for LesClient {
    fn from(seen: &les::LesRow) -> Self {
        let list = |macs: &[MacAddr]| -> String {
            let macs: Vec<_> = macs.iter().map(ToString::to_string).collect();
            macs.join(" ")
        };
        let all = || "all".to_owned();
        Self {
            lecid: seen.lecid,
            address: seen.address,
            state: seen.state.into(),
            v2: seen.v2,
            proxy: seen.proxy,
            macs: list(&seen.macs),
            groups: seen.groups.as_ref().map_or_else(all, |groups| list(groups)),
            vc: seen.vc,
        }
    }
}

/// The tables of the client on interface `itf`.
pub(crate) fn client(
    itf: Option<usize>,
    seen: &lec::LecSnapshot,
    attempts: Attempts,
) -> Vec<Table> {
    let client = Client {
        interface: itf.map(|itf| format!("lec{itf}")),
        state: named(seen.state),
        elan: seen.elan.to_string(),
        lecid: seen.lecid,
        elan_id: seen.elan_id,
        version: if seen.v2 { 2 } else { 1 },
        mac: seen.mac,
        address: seen.address,
        les: seen.les,
        bus: seen.bus,
        failed: attempts.failed,
        why: attempts.why,
    };
    let mut tables = vec![
        Table::of([client]),
        Table::of(seen.cache.iter().map(LeArp::from)),
        Table::of(seen.connections.iter().map(Connection::from)),
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
    let server = Server {
        elan: seen.elan.to_string(),
        address: seen.address,
        bus: seen.bus,
    };
    let counts = counters::with_seat(seen.counters.rows(), seat);
    vec![
        Table::of([server]),
        Table::of(seen.clients.iter().map(LesClient::from)),
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
    let client = |row: &bus::BusRow| BusClient {
        elan: seen.elan.to_string(),
        lecid: row.lecid,
        address: row.address,
        forward: row.forward,
        vc: row.vc,
        dropped: row.dropped,
    };
    let mut tables = vec![Table::of(seen.clients.iter().map(client))];
    let group = |&(group, clients): &(MacAddr, usize)| BusGroup { group, clients };
    let groups = Table::of(seen.groups.iter().map(group));
    tables.extend((!seen.groups.is_empty()).then_some(groups));
    let counts = counters::with_seat(seen.counters.rows(), seat);
    tables.push(Table::counters(&counters::BUS, counts));
    tables
}
