//! Contents of `inspect mps` and `inspect nhrp`.

use std::net::IpAddr;

use aerostat_wire::prefix::width;
use aerostat_wire::{AtmAddress, Vc};

use super::conns::{ConnState, ConnUse};
use super::state::{Asked, Counters, EgressState};
use super::{FaultRow, MpsParams, Server};
use crate::nhrp::Reason;
use crate::{ConnId, Instant};

aerostat_wire::named! {
    /// State of an ingress entry. Source: MPOA 1.1 appendix I.3.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum IngressState {
        /// NHRP has been asked.
        Resolving = "Resolving",
        /// The client has the binding.
        Resolved = "Resolved",
        /// The client has the binding, and asks for it again.
        Refreshing = "Refreshing",
    }
}

crate::split_record! {
    /// A row of the ingress cache. Source: MPOA MIB.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct IngressRow {
        /// Destination.
        pub destination: IpAddr,
        /// Its prefix length.
        pub prefix_len: u8,
        /// State of the entry.
        pub state: IngressState,
        /// Protocol address of the client.
        pub source: IpAddr,
        /// Control ATM address of the client.
        pub mpc_control: AtmAddress,
        /// Data ATM address of the client.
        pub mpc_data: AtmAddress,
        /// Where the shortcut ends.
        pub resolved: Option<AtmAddress>,
        /// End of the holding time.
        pub until: Option<Instant>,
        /// Id of the client's last request.
        pub mpoa_id: u32,
        /// Id of the NHRP request made for it.
        pub nhrp_id: u32,
        /// Service categories that the client asked for (bits), if it named any.
        pub category: Option<u16>,
    }
}

crate::split_record! {
    /// A row of the egress cache. Source: MPOA MIB.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct EgressRow {
        /// Cache ID.
        pub cache_id: u32,
        /// Destination.
        pub destination: IpAddr,
        /// Its prefix length.
        pub prefix_len: u8,
        /// State.
        pub state: EgressState,
        /// End of the holding time.
        pub until: Option<Instant>,
        /// Data link header.
        pub header: Vec<u8>,
        /// ELAN on which packets leave.
        pub elan_id: u32,
        /// Data ATM address of the ingress client.
        pub ingress_data: AtmAddress,
        /// Control ATM address of the egress client.
        pub mpc_control: AtmAddress,
        /// Data ATM address of the egress client, once known.
        pub mpc_data: Option<AtmAddress>,
        /// Tag, once known.
        pub tag: Option<u32>,
        /// Id of the last NHRP request for it.
        pub nhrp_id: u32,
        /// Id of the outstanding imposition.
        pub mpoa_id: Option<u32>,
        /// Service categories asked for (bits), if any.
        pub category: Option<u16>,
        /// Next hop on the ELAN.
        pub next_hop: IpAddr,
    }
}

crate::split_record! {
    /// A client that gets Keep-Alives.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct ClientRow {
        /// Its control ATM address.
        pub control: AtmAddress,
        /// Sequence number of the last Keep-Alive.
        pub sequence: u32,
        /// When its connection was last known to work.
        pub reached: Instant,
    }
}

crate::split_record! {
    /// A connection.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct ConnRow {
        /// Its id.
        pub conn: ConnId,
        /// The other end.
        pub peer: AtmAddress,
        /// Use of the connection.
        pub carries: ConnUse,
        /// State of the connection.
        pub state: ConnState,
        /// Its label, once open.
        pub vc: Option<Vc>,
        /// SDUs received.
        pub received: u64,
    }
}

/// The server: `inspect mps`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MpsSnapshot {
    /// True between `Start` and `Stop`.
    pub up: bool,
    /// Control ATM address.
    pub control: AtmAddress,
    /// Data ATM address.
    pub data: AtmAddress,
    /// MPS-p1 to p7.
    pub params: MpsParams,
    /// Ingress cache.
    pub ingress: Vec<IngressRow>,
    /// Egress cache.
    pub egress: Vec<EgressRow>,
    /// Clients with state.
    pub clients: Vec<ClientRow>,
    /// Connections.
    pub connections: Vec<ConnRow>,
    /// Events so far.
    pub counters: Counters,
}

crate::split_record! {
    /// A row of the NHRP cache.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct NhrpRow {
        /// Destination.
        pub destination: IpAddr,
        /// Its prefix length.
        pub prefix_len: u8,
        /// How the entry came about.
        pub reason: Reason,
        /// True if answers made from it are authoritative.
        pub authoritative: bool,
        /// The only station that may use the entry; `None`: any station.
        pub scope: Option<AtmAddress>,
        /// ATM address of the exit.
        pub nbma: AtmAddress,
        /// Next hop's protocol address, if known.
        pub next_hop: Option<IpAddr>,
        /// MTU, octets; 0 is the default.
        pub mtu: u16,
        /// End of the holding time.
        pub until: Instant,
        /// The stations that got the binding, each with the end of its holding time.
        pub requesters: Vec<(IpAddr, AtmAddress, Instant)>,
        /// Further stations that a report of a server in a process of its own does not name.
        pub more: usize,
    }
}

crate::split_record! {
    /// An outstanding request.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct PendingRow {
        /// Its id.
        pub id: u32,
        /// Kind of the question: `resolution`, `imposition`, `removal` or `purge`.
        pub kind: &'static str,
        /// The destination of the request.
        pub destination: Option<IpAddr>,
        /// Sendings so far.
        pub sent: u32,
        /// Time of the next retry, or of the end.
        pub deadline: Instant,
    }
}

/// The next hop server of this MPOA server: `inspect nhrp`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NhrpSnapshot {
    /// The protocol address in forward and reverse records.
    pub station: IpAddr,
    /// Cache.
    pub cache: Vec<NhrpRow>,
    /// Requests without a reply yet.
    pub pending: Vec<PendingRow>,
    /// Upstream purges that wait for clients.
    pub collecting: usize,
    /// Questions to the router without an answer yet.
    pub lookups: usize,
    /// Packets that were refused with an Error Indication, here or by others, the latest last.
    pub faults: Vec<FaultRow>,
}

impl Server {
    /// The state of the server.
    #[must_use]
    pub(super) fn snapshot(&self) -> MpsSnapshot {
        MpsSnapshot {
            up: self.up,
            control: self.config.control,
            data: self.config.data,
            params: self.config.params,
            ingress: self.ingress_rows(),
            egress: self.egress_rows(),
            clients: self
                .clients
                .iter()
                .map(|(control, client)| ClientRow {
                    control: *control,
                    sequence: client.sequence,
                    reached: client.reached,
                })
                .collect(),
            connections: self
                .conns
                .iter()
                .map(|(id, conn)| ConnRow {
                    conn: id,
                    peer: conn.peer(),
                    carries: conn.carries(),
                    state: conn.state(),
                    vc: conn.vc(),
                    received: conn.info.received,
                })
                .collect(),
            counters: self.counters.clone(),
        }
    }

    fn ingress_rows(&self) -> Vec<IngressRow> {
        let row = |((control, destination), entry): (&(AtmAddress, IpAddr), &super::Ingress)| {
            IngressRow {
                destination: *destination,
                prefix_len: entry.prefix_len,
                state: match (entry.asking, entry.resolved.is_some()) {
                    (true, true) => IngressState::Refreshing,
                    (false, true) => IngressState::Resolved,
                    _ => IngressState::Resolving,
                },
                source: entry.mpc_protocol,
                mpc_control: *control,
                mpc_data: entry.mpc_data,
                resolved: entry.resolved.map(|(nbma, _)| nbma),
                until: entry.resolved.map(|(_, until)| until),
                mpoa_id: entry.mpoa_id,
                nhrp_id: entry.nhrp_id,
                category: entry.category,
            }
        };
        self.ingress.iter().map(row).collect()
    }

    fn egress_rows(&self) -> Vec<EgressRow> {
        let row = |(cache_id, entry): (&u32, &super::Egress)| EgressRow {
            cache_id: *cache_id,
            destination: entry.destination,
            prefix_len: width(entry.destination),
            state: entry.state,
            until: entry.until,
            header: entry.header.clone(),
            elan_id: entry.elan_id,
            ingress_data: entry.ingress_data,
            mpc_control: entry.mpc,
            mpc_data: entry.mpc_data,
            tag: entry.tag,
            nhrp_id: entry.nhrp_id,
            mpoa_id: entry.imposition,
            category: entry.category,
            next_hop: entry.next_hop,
        };
        self.egress.iter().map(row).collect()
    }

    /// The state of the next hop server.
    #[must_use]
    pub(super) fn nhrp_snapshot(&self) -> NhrpSnapshot {
        let cache = self.cache.iter().map(|(key, binding)| NhrpRow {
            destination: key.destination,
            prefix_len: key.prefix_len,
            reason: key.reason,
            authoritative: key.reason.authoritative(),
            scope: key.scope,
            nbma: binding.nbma,
            next_hop: binding.next_hop,
            mtu: binding.mtu,
            until: binding.until,
            requesters: binding
                .requesters
                .iter()
                .map(|((ip, atm), until)| (*ip, *atm, *until))
                .collect(),
            more: 0,
        });
        let pending = self.requests.iter().map(|request| {
            let (kind, destination) = match request.what {
                Asked::Resolution(key) => ("resolution", Some(key.1)),
                Asked::Imposition { cache_id, .. } => match self.egress.get(cache_id) {
                    Some(entry) if entry.state == EgressState::Clearing => {
                        ("removal", Some(entry.destination))
                    }
                    entry => ("imposition", entry.map(|entry| entry.destination)),
                },
                Asked::Purge { packet, .. } => {
                    let cie = packet.common().and_then(|c| c.cies.first());
                    ("purge", cie.and_then(|cie| cie.protocol.ip()))
                }
            };
            PendingRow {
                id: request.id,
                kind,
                destination,
                sent: request.sent,
                deadline: request.due,
            }
        });
        NhrpSnapshot {
            station: self.station.protocol.into(),
            cache: cache.collect(),
            pending: pending.collect(),
            collecting: self.collects.len(),
            lookups: self.queries.len(),
            faults: self.faults.iter().cloned().collect(),
        }
    }
}
