//! Rows of `inspect mpc`, `qos` and `mps`.

use super::host::interface;
use super::{Name, Network, Table, Tag, counters, named};
use aerostat_proto::Instant;
use aerostat_proto::mpoa::{mpc, mps};
use aerostat_proto::split::SeatCounters;
use aerostat_wire::mpoa::QosEntry;
use aerostat_wire::{AtmAddress, MacAddr, TrafficParams, Vc};
use std::net::{IpAddr, Ipv4Addr};

crate::rows! {
    /// Tables about MPOA.
    pub const TABLES;

    /// One row for each entry of an MPOA client's ingress cache; `shortcuts` has them for all nodes.
    pub struct MpcIngress: "mpc.ingress" for (seen: &mpc::IngressRow) {
        /// IP address.
        pub destination: IpAddr = seen.destination,
        /// `not asked` while the packets are too few for a request, `resolving`, `resolved`, `refreshing`, or `hold
        /// down` after a request that failed.
        pub state: Name = seen.state.name().into(),
        /// Seconds for which the answer of the server, or the hold-down, still holds.
        pub holding_s: Option<u64> = seen.holding_s,
        /// Packets counted for it.
        pub packets: u64 = seen.packets,
        /// VPI of the shortcut.
        pub vpi: Option<u16> = seen.vc.map(|vc| vc.vpi),
        /// VCI of the shortcut.
        pub vci: Option<u16> = seen.vc.map(|vc| vc.vci),
        /// ATM address of the egress.
        pub egress: Option<AtmAddress> = seen.egress,
        /// Tag that the egress asked for.
        pub tag: Option<Tag> as Detail(4) = seen.tag.map(Tag),
        /// Control address of the MPOA server.
        pub mps: AtmAddress as Detail(5) = seen.mps,
        /// Code of the last answer that was no success.
        pub last_code: u8 as Detail(7) = seen.last_code,
        /// Cause of the last call that failed, or of a release that was not normal.
        pub last_cause: Option<u8> as Detail(6) = seen.last_cause.map(|cause| cause.0),
        /// Protocol of a flow with QoS of its own.
        pub protocol: Option<Name> as Detail(3) = seen.filter.map(|filter| filter.protocol_name().into()),
        /// Its destination port.
        pub port: Option<u16> as Detail(2) = seen.filter.map(|filter| filter.destination_port),
        /// Its contract.
        pub traffic: Name as Detail(1) = seen.qos.map_or(Name::Borrowed("ubr"), |qos| named(qos.tx)),
        /// `yes` if the network had no bandwidth for it.
        pub fallback: bool as Detail(0) = seen.fallback,
    }

    /// One row for each entry of an MPOA client's egress cache.
    pub struct MpcEgress: "mpc.egress" for (seen: &mpc::EgressRow) {
        /// Address of the sender.
        pub ingress_mpc: AtmAddress as Detail(3) = seen.ingress,
        /// Number of the entry.
        pub cache_id: u32 = seen.cache_id,
        /// State of the entry.
        pub state: Name = seen.state.linux_name().into(),
        /// Seconds for which it still holds.
        pub holding_s: u64 = seen.holding_s,
        /// Packets received by it.
        pub packets: u64 = seen.packets,
        /// IP address of the last sender.
        pub latest_source: Option<IpAddr> as Detail(2) = seen.latest_source,
        /// VPI.
        pub vpi: Option<u16> = seen.vc.map(|vc| vc.vpi),
        /// VCI.
        pub vci: Option<u16> = seen.vc.map(|vc| vc.vci),
        /// Destination that it is for.
        pub destination: Network = Network(seen.destination, seen.prefix),
        /// Tag of its packets.
        pub tag: Option<Tag> as Detail(0) = seen.tag.map(Tag),
        /// Interface to which packets go.
        pub interface: String as Detail(1) = interface(seen.itf),
    }

    /// One row for each MPOA server that a client knows.
    pub struct MpcServer: "mpc.servers" for (seen: &mpc::MpsRow) {
        /// On which interface.
        pub interface: String = interface(seen.itf),
        /// MAC address of the router.
        pub mac: MacAddr = seen.mac,
        /// Control address.
        pub control: AtmAddress = seen.control,
        /// Seconds for which the last keep-alive vouches.
        pub keep_alive_s: Option<u64> = seen.keep_alive_s,
    }

    /// One row for each QoS entry of an MPOA client, in the order in which packets are matched.
    pub struct QosRow: "qos.qos" for (entry: &QosEntry, packets: u64, flows: usize, fallbacks: usize) {
        /// IP address of the sender; `0.0.0.0` is any.
        pub source: Ipv4Addr = entry.filter.source,
        /// Port of the sender; 0 is any.
        pub source_port: u16 = entry.filter.source_port,
        /// IP address of the receiver; `0.0.0.0` is any.
        pub destination: Ipv4Addr = entry.filter.destination,
        /// Port of the receiver; 0 is any.
        pub port: u16 = entry.filter.destination_port,
        /// `any`, or the protocol.
        pub protocol: Name = entry.filter.protocol_name().into(),
        /// Traffic to the receiver, as in qos(7).
        pub tx: TrafficParams = entry.qos.tx,
        /// Traffic back.
        pub rx: TrafficParams = entry.qos.rx,
        /// Flows that fit it at the end.
        pub flows: usize = flows,
        /// Flows of these that make do with best effort.
        pub fallbacks: usize = fallbacks,
        /// Packets that fitted it.
        pub packets: u64 = packets,
    }

    /// One row for each resolution that an MPOA server has made for a client.
    pub struct MpsIngress: "mps.ingress" for (seen: &mps::IngressRow, now: Instant) {
        /// IP address or network.
        pub destination: Network = Network(seen.destination, seen.prefix_len),
        /// State of the entry.
        pub state: mps::IngressState = seen.state,
        /// IP address of the client that asked.
        pub source: IpAddr = seen.source,
        /// Control address of the client.
        pub client: AtmAddress = seen.mpc_control,
        /// Address found.
        pub resolved: Option<AtmAddress> = seen.resolved,
        /// Seconds for which it still holds.
        pub holding_s: Option<u64> = seen.until.map(|until| until.since(now).as_secs()),
        /// Number of the client's request.
        pub mpoa_id: u32 = seen.mpoa_id,
        /// Number of the NHRP request.
        pub nhrp_id: u32 = seen.nhrp_id,
    }

    /// One row for each imposition of an MPOA server upon an egress client.
    pub struct MpsEgress: "mps.egress" for (seen: &mps::EgressRow, now: Instant) {
        /// Number of the entry.
        pub cache_id: u32 = seen.cache_id,
        /// IP address or network.
        pub destination: Network = Network(seen.destination, seen.prefix_len),
        /// State of the entry.
        pub state: mps::EgressState = seen.state,
        /// Seconds for which it still holds.
        pub holding_s: Option<u64> = seen.until.map(|until| until.since(now).as_secs()),
        /// Control address of the egress client.
        pub client: AtmAddress = seen.mpc_control,
        /// Data address of the ingress client.
        pub ingress_mpc: AtmAddress = seen.ingress_data,
        /// ELAN of the destination.
        pub elan_id: u32 as Detail(0) = seen.elan_id,
        /// Tag of its packets.
        pub tag: Option<Tag> = seen.tag.map(Tag),
        /// IP address of the next hop.
        pub next_hop: IpAddr = seen.next_hop,
    }

    /// One row for each control connection of an MPOA server.
    pub struct MpsConnection: "mps.connections" for (seen: &mps::ConnRow) {
        /// ATM address at the other end.
        pub peer: AtmAddress = seen.peer,
        /// Purpose of the connection.
        pub carries: mps::ConnUse = seen.carries,
        /// Its state.
        pub state: mps::ConnState = seen.state,
        /// VPI.VCI.
        pub vc: Option<Vc> = seen.vc,
        /// PDUs received.
        pub pdus_received: u64 = seen.received,
    }
}

/// The tables of an MPOA client.
pub(crate) fn client(seen: &mpc::MpcSnapshot) -> Vec<Table> {
    let counts = counters::with_seat(seen.counters.rows(), seen.seat);
    vec![
        Table::of(seen.ingress.iter().map(MpcIngress::of)),
        Table::of(seen.egress.iter().map(MpcEgress::of)),
        Table::of(seen.mps.iter().map(MpcServer::of)),
        Table::counters(&counters::MPC, counts),
    ]
}

/// The QoS entries of a client, and how many flows match each.
pub(crate) fn qos(seen: &mpc::MpcSnapshot) -> Table {
    let row = |(entry, packets): (&QosEntry, &u64)| {
        let flows = || (seen.ingress.iter()).filter(|row| row.filter == Some(entry.filter));
        let fallbacks = flows().filter(|row| row.fallback).count();
        QosRow::of(entry, *packets, flows().count(), fallbacks)
    };
    Table::of(seen.qos.iter().zip(&seen.qos_packets).map(row))
}

/// The tables of an MPOA server.
pub(crate) fn server(seen: &mps::MpsSnapshot, seat: SeatCounters, now: Instant) -> Vec<Table> {
    let counts = counters::with_seat(seen.counters.rows(), seat);
    vec![
        Table::of(seen.ingress.iter().map(|row| MpsIngress::of(row, now))),
        Table::of(seen.egress.iter().map(|row| MpsEgress::of(row, now))),
        Table::of(seen.connections.iter().map(MpsConnection::of)),
        Table::counters(&counters::MPS, counts),
    ]
}
