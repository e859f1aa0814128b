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
    pub struct MpcIngress: "mpc.ingress" {
        /// IP address.
        pub destination: IpAddr,
        /// `not asked` while the packets are too few for a request, `resolving`, `resolved`, `refreshing`, or `hold down`
        /// after a request that failed.
        pub state: Name,
        /// Seconds for which the answer of the server, or the hold-down, still holds.
        pub holding_s: Option<u64>,
        /// Packets counted for it.
        pub packets: u64,
        /// VPI of the shortcut.
        pub vpi: Option<u16>,
        /// VCI of the shortcut.
        pub vci: Option<u16>,
        /// ATM address of the egress.
        pub egress: Option<AtmAddress>,
        /// Tag that the egress asked for.
        pub tag: Option<Tag>,
        /// Control address of the MPOA server.
        pub mps: AtmAddress,
        /// Code of the last answer that was no success.
        pub last_code: u8,
        /// Cause of the last call that failed, or of a release that was not normal.
        pub last_cause: Option<u8>,
        /// Protocol of a flow with QoS of its own.
        pub protocol: Option<Name>,
        /// Its destination port.
        pub port: Option<u16>,
        /// Its contract.
        pub traffic: Name,
        /// `yes` if the network had no bandwidth for it.
        pub fallback: bool,
    }

    /// One row for each entry of an MPOA client's egress cache.
    pub struct MpcEgress: "mpc.egress" {
        /// Address of the sender.
        pub ingress_mpc: AtmAddress,
        /// Number of the entry.
        pub cache_id: u32,
        /// State of the entry.
        pub state: Name,
        /// Seconds for which it still holds.
        pub holding_s: u64,
        /// Packets received by it.
        pub packets: u64,
        /// IP address of the last sender.
        pub latest_source: Option<IpAddr>,
        /// VPI.
        pub vpi: Option<u16>,
        /// VCI.
        pub vci: Option<u16>,
        /// Destination that it is for.
        pub destination: Network,
        /// Tag of its packets.
        pub tag: Option<Tag>,
        /// Interface to which packets go.
        pub interface: String,
    }

    /// One row for each MPOA server that a client knows.
    pub struct MpcServer: "mpc.servers" {
        /// On which interface.
        pub interface: String,
        /// MAC address of the router.
        pub mac: MacAddr,
        /// Control address.
        pub control: AtmAddress,
        /// Seconds for which the last keep-alive vouches.
        pub keep_alive_s: Option<u64>,
    }

    /// One row for each QoS entry of an MPOA client, in the order in which packets are matched.
    pub struct QosRow: "qos.qos" {
        /// IP address of the sender; `0.0.0.0` is any.
        pub source: Ipv4Addr,
        /// Port of the sender; 0 is any.
        pub source_port: u16,
        /// IP address of the receiver; `0.0.0.0` is any.
        pub destination: Ipv4Addr,
        /// Port of the receiver; 0 is any.
        pub port: u16,
        /// `any`, or the protocol.
        pub protocol: Name,
        /// Traffic to the receiver, as in qos(7).
        pub tx: TrafficParams,
        /// Traffic back.
        pub rx: TrafficParams,
        /// Flows that fit it at the end.
        pub flows: usize,
        /// Those of them that make do with best effort.
        pub fallbacks: usize,
        /// Packets that fitted it.
        pub packets: u64,
    }

    /// One row for each resolution that an MPOA server has made for a client.
    pub struct MpsIngress: "mps.ingress" {
        /// IP address or network.
        pub destination: Network,
        /// State of the entry.
        pub state: mps::IngressState,
        /// Who asked.
        pub source: IpAddr,
        /// Control address of the client.
        pub client: AtmAddress,
        /// Address found.
        pub resolved: Option<AtmAddress>,
        /// Seconds for which it still holds.
        pub holding_s: Option<u64>,
        /// Number of the client's request.
        pub mpoa_id: u32,
        /// Number of the NHRP request.
        pub nhrp_id: u32,
    }

    /// One row for each imposition of an MPOA server upon an egress client.
    pub struct MpsEgress: "mps.egress" {
        /// Number of the entry.
        pub cache_id: u32,
        /// IP address or network.
        pub destination: Network,
        /// State of the entry.
        pub state: mps::EgressState,
        /// Seconds for which it still holds.
        pub holding_s: Option<u64>,
        /// Control address of the egress client.
        pub client: AtmAddress,
        /// Data address of the ingress client.
        pub ingress_mpc: AtmAddress,
        /// ELAN of the destination.
        pub elan_id: u32,
        /// Tag of its packets.
        pub tag: Option<Tag>,
        /// IP address of the next hop.
        pub next_hop: IpAddr,
    }

    /// One row for each control connection of an MPOA server.
    pub struct MpsConnection: "mps.connections" {
        /// ATM address at the other end.
        pub peer: AtmAddress,
        /// What it is for.
        pub carries: mps::ConnUse,
        /// Its state.
        pub state: mps::ConnState,
        /// VPI.VCI.
        pub vc: Option<Vc>,
        /// PDUs received.
        pub pdus_received: u64,
    }
}

impl From<&mpc::IngressRow> for MpcIngress {
    fn from(seen: &mpc::IngressRow) -> Self {
        Self {
            destination: seen.destination,
            state: seen.state.name().into(),
            holding_s: seen.holding_s,
            packets: seen.packets,
            vpi: seen.vc.map(|vc| vc.vpi),
            vci: seen.vc.map(|vc| vc.vci),
            egress: seen.egress,
            tag: seen.tag.map(Tag),
            mps: seen.mps,
            last_code: seen.last_code,
            last_cause: seen.last_cause.map(|cause| cause.0),
            protocol: seen.filter.map(|filter| filter.protocol_name().into()),
            port: seen.filter.map(|filter| filter.destination_port),
            traffic: seen.qos.map_or(Name::Borrowed("ubr"), |qos| named(qos.tx)),
            fallback: seen.fallback,
        }
    }
}

impl From<&mpc::EgressRow> for MpcEgress {
    fn from(seen: &mpc::EgressRow) -> Self {
        Self {
            ingress_mpc: seen.ingress,
            cache_id: seen.cache_id,
            state: seen.state.linux_name().into(),
            holding_s: seen.holding_s,
            packets: seen.packets,
            latest_source: seen.latest_source,
            vpi: seen.vc.map(|vc| vc.vpi),
            vci: seen.vc.map(|vc| vc.vci),
            destination: Network(seen.destination, seen.prefix),
            tag: seen.tag.map(Tag),
            interface: interface(seen.itf),
        }
    }
}

impl From<&mpc::MpsRow> for MpcServer {
    fn from(seen: &mpc::MpsRow) -> Self {
        Self {
            interface: interface(seen.itf),
            mac: seen.mac,
            control: seen.control,
            keep_alive_s: seen.keep_alive_s,
        }
    }
}

impl MpsIngress {
    fn of(seen: &mps::IngressRow, now: Instant) -> Self {
        Self {
            destination: Network(seen.destination, seen.prefix_len),
            state: seen.state,
            source: seen.source,
            client: seen.mpc_control,
            resolved: seen.resolved,
            holding_s: seen.until.map(|until| until.since(now).as_secs()),
            mpoa_id: seen.mpoa_id,
            nhrp_id: seen.nhrp_id,
        }
    }
}

impl MpsEgress {
    fn of(seen: &mps::EgressRow, now: Instant) -> Self {
        Self {
            cache_id: seen.cache_id,
            destination: Network(seen.destination, seen.prefix_len),
            state: seen.state,
            holding_s: seen.until.map(|until| until.since(now).as_secs()),
            client: seen.mpc_control,
            ingress_mpc: seen.ingress_data,
            elan_id: seen.elan_id,
            tag: seen.tag.map(Tag),
            next_hop: seen.next_hop,
        }
    }
}

impl From<&mps::ConnRow> for MpsConnection {
    fn from(seen: &mps::ConnRow) -> Self {
        Self {
            peer: seen.peer,
            carries: seen.carries,
            state: seen.state,
            vc: seen.vc,
            pdus_received: seen.received,
        }
    }
}

/// The tables of an MPOA client.
pub(crate) fn client(seen: &mpc::MpcSnapshot) -> Vec<Table> {
    let counts = counters::with_seat(seen.counters.rows(), seen.seat);
    vec![
        Table::of(seen.ingress.iter().map(MpcIngress::from)),
        Table::of(seen.egress.iter().map(MpcEgress::from)),
        Table::of(seen.mps.iter().map(MpcServer::from)),
        Table::counters(&counters::MPC, counts),
    ]
}

/// The QoS entries of a client, and how many flows match each.
pub(crate) fn qos(seen: &mpc::MpcSnapshot) -> Table {
    let row = |(QosEntry { filter, qos }, packets): (&QosEntry, &u64)| {
        let flows = || (seen.ingress.iter()).filter(|row| row.filter == Some(*filter));
        QosRow {
            source: filter.source,
            source_port: filter.source_port,
            destination: filter.destination,
            port: filter.destination_port,
            protocol: filter.protocol_name().into(),
            tx: qos.tx,
            rx: qos.rx,
            flows: flows().count(),
            fallbacks: flows().filter(|row| row.fallback).count(),
            packets: *packets,
        }
    };
    Table::of(seen.qos.iter().zip(&seen.qos_packets).map(row))
}

/// The tables of an MPOA server.
pub(crate) fn server(seen: &mps::MpsSnapshot, seat: SeatCounters, now: Instant) -> Vec<Table> {
    let counts = counters::with_seat(seen.counters.rows(), seat);
    vec![
        Table::of(seen.ingress.iter().map(|row| MpsIngress::of(row, now))),
        Table::of(seen.egress.iter().map(|row| MpsEgress::of(row, now))),
        Table::of(seen.connections.iter().map(MpsConnection::from)),
        Table::counters(&counters::MPS, counts),
    ]
}
