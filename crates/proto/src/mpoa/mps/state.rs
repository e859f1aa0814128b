//! State of the server: entries, outstanding questions, counters.

use std::collections::BTreeMap;
use std::net::IpAddr;

use aerostat_wire::nhrp::Packet;
use aerostat_wire::{AtmAddress, MacAddr};

use super::Absent;
use super::waiting::Question;
use crate::Instant;
use crate::nhrp::Key;

/// An ingress entry is found by client (control address) and destination.
pub(super) type IngressKey = (AtmAddress, IpAddr);

/// Work of the server for one ingress client and one destination.
#[derive(Clone, Debug)]
pub(super) struct Ingress {
    /// The client's last request, which the reply must mirror.
    pub(super) request: Packet,
    pub(super) mpoa_id: u32,
    pub(super) mpc_data: AtmAddress,
    pub(super) mpc_protocol: IpAddr,
    /// Id of the NHRP request, the last one or the outstanding one.
    pub(super) nhrp_id: u32,
    /// True while the NHRP request is outstanding.
    pub(super) asking: bool,
    /// The binding that the client has, until the end of its holding time.
    pub(super) resolved: Option<(AtmAddress, Instant)>,
    pub(super) prefix_len: u8,
    pub(super) category: Option<u16>,
    /// How the destination was reached when the request left.
    pub(super) reach: Option<Reach>,
}

aerostat_wire::named! {
    /// State of an egress entry. Source: MPOA 1.1 appendix I.4.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum EgressState {
        /// The client has not answered yet.
        Imposing = "Imposing",
        /// The client has accepted.
        Imposed = "Imposed",
        /// The client was told to remove it and has not answered yet.
        Clearing = "Clearing",
    }
}

/// One binding imposed on an egress client.
#[derive(Clone, Debug)]
pub(super) struct Egress {
    pub(super) destination: IpAddr,
    pub(super) ingress_data: AtmAddress,
    pub(super) mpc: AtmAddress,
    pub(super) itf: u32,
    pub(super) elan_id: u32,
    pub(super) next_hop: IpAddr,
    pub(super) header: Vec<u8>,
    pub(super) reach: Reach,
    pub(super) state: EgressState,
    /// The NHRP request to answer when the client has accepted.
    pub(super) request: Option<Question>,
    /// Extensions for the next imposition, as asked for last.
    pub(super) asked: Packet,
    pub(super) imposition: Option<u32>,
    /// Source and id of the last NHRP request.
    pub(super) nhrp_id: u32,
    pub(super) category: Option<u16>,
    pub(super) tag: Option<u32>,
    pub(super) mpc_data: Option<AtmAddress>,
    pub(super) until: Option<Instant>,
}

/// Where the router would send packets for a destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// No route.
    Nothing,
    /// A route whose interface is no member of its network just now, or a state that is not known now.
    Down,
    /// The router itself.
    Own,
    /// Outside the ATM network.
    Outside,
    /// A neighbour that does not answer.
    Silent {
        itf: u32,
        hop: IpAddr,
        absent: Absent,
    },
    /// A neighbour on an ELAN.
    Neighbour {
        itf: u32,
        hop: IpAddr,
        mac: MacAddr,
        mps: Option<AtmAddress>,
        mpc: Option<AtmAddress>,
    },
}

impl Reach {
    /// True if the path leads over this neighbour.
    pub(super) fn is_over(&self, itf: u32, hop: IpAddr) -> bool {
        match self {
            Self::Silent { itf: i, hop: h, .. } | Self::Neighbour { itf: i, hop: h, .. } => {
                (*i, *h) == (itf, hop)
            }
            Self::Nothing | Self::Down | Self::Own | Self::Outside => false,
        }
    }
}

/// A prefix whose shortcuts end at this router.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RouterExit {
    /// An address in the prefix that was asked for.
    pub(super) target: IpAddr,
    /// The path to that address.
    pub(super) reach: Reach,
}

/// Why the router is asked for the path to an address.
#[derive(Clone, Debug)]
pub(super) enum Purpose {
    /// An NHRP Resolution Request, from this neighbour or (own control address) made here.
    Resolve { packet: Packet, from: AtmAddress },
    /// Another packet, ready to be sent.
    Forward(Packet),
    /// The network changed: is the path of an entry still valid?
    Recheck(Subject),
    /// A forwarded flow: from which client does it come?
    Trigger { source: IpAddr, target: IpAddr },
}

/// The entry to check again.
#[derive(Clone, Copy, Debug)]
pub(super) enum Subject {
    Ingress(IngressKey),
    Egress(u32),
    Exit(Key),
    Kept(Key),
}

/// An outstanding question to the router.
#[derive(Clone, Debug)]
pub(super) enum Query {
    Route(IpAddr, Purpose),
    L2 {
        itf: u32,
        hop: IpAddr,
        purpose: Purpose,
        /// The prefix that the route to the neighbour is good for.
        covers: u8,
    },
}

/// An outstanding request to a peer.
#[derive(Clone, Debug)]
pub(super) enum Asked {
    Resolution(IngressKey),
    Imposition {
        cache_id: u32,
        packet: Packet,
    },
    Purge {
        packet: Packet,
        to: PurgeTarget,
        /// The upstream purge that is answered when all its purges have ended.
        collect: Option<CollectKey>,
    },
}

/// The receiver of a purge.
#[derive(Clone, Copy, Debug)]
pub(super) enum PurgeTarget {
    /// To a client, on its control connection.
    Client(AtmAddress),
    /// To a station, along the routed path.
    Station(IpAddr),
}

/// A received purge is known by its source and id.
pub(super) type CollectKey = (AtmAddress, u32);

/// A purge from upstream whose reply waits for the replies of clients.
#[derive(Clone, Debug)]
pub(super) struct Collect {
    pub(super) request: Packet,
    pub(super) waiting: usize,
}

/// A client that has state from this server.
#[derive(Clone, Copy, Debug)]
pub(super) struct Client {
    /// When its control connection was last known to work.
    pub(super) reached: Instant,
    /// Sequence number of the last Keep-Alive to it.
    pub(super) sequence: u32,
}

crate::counters! {
    /// Events since construction. Source: MPOA 1.1 annex F (the MIB), groups of the MPS.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct Counters {
        /// MPOA Resolution Requests received.
        pub mpoa_requests_received: u64,
        /// MPOA Resolution Replies sent, by code.
        pub mpoa_replies_sent: BTreeMap<u8, u64>,
        /// Questions over NHRP without an answer within p6; their clients were told so.
        pub give_ups: u64,
        /// Resolution Requests without an answer because the server could not tell at that time.
        pub untold: u64,
        /// Cache Imposition Requests sent, with retries.
        pub impositions_sent: u64,
        /// Cache Imposition Replies received, by code.
        pub imposition_replies_received: BTreeMap<u8, u64>,
        /// Impositions without an answer (p5).
        pub impositions_unanswered: u64,
        /// Egress Cache Purge Requests received.
        pub egress_purges_received: u64,
        /// Egress Cache Purge Replies sent.
        pub egress_purge_replies_sent: u64,
        /// Keep-Alives sent.
        pub keep_alives_sent: u64,
        /// Triggers sent.
        pub triggers_sent: u64,
        /// NHRP Resolution Requests sent on behalf of clients, with retries.
        pub nhrp_requests_sent: u64,
        /// NHRP Resolution Requests received.
        pub nhrp_requests_received: u64,
        /// NHRP Resolution Replies made here, by code.
        pub nhrp_replies_sent: BTreeMap<u8, u64>,
        /// NHRP Resolution Replies received for requests made here, by code.
        pub nhrp_replies_received: BTreeMap<u8, u64>,
        /// NHRP Purge Requests sent, with retries.
        pub purges_sent: u64,
        /// NHRP Purge Requests received.
        pub purges_received: u64,
        /// NHRP Purge Replies sent.
        pub purge_replies_sent: u64,
        /// NHRP Purge Replies received.
        pub purge_replies_received: u64,
        /// Purges without an answer (p5).
        pub purges_unanswered: u64,
        /// Replies that passed through and were kept.
        pub kept: u64,
        /// Requests answered from kept replies.
        pub kept_answers: u64,
        /// Packets for other stations that were forwarded.
        pub forwarded: u64,
        /// Packets dropped because there is no way to the station they are for.
        pub undeliverable: u64,
        /// Error Indications sent, by code.
        pub errors_sent: BTreeMap<u16, u64>,
        /// Error Indications received, by code.
        pub errors_received: BTreeMap<u16, u64>,
        /// Packets made here that came back.
        pub loops: u64,
        /// SDUs and packets with format errors.
        pub malformed: u64,
        /// Well-formed packets of types that a server never receives, or from the wrong peer.
        pub unexpected: u64,
        /// Resolution Requests that waited for the answer to an earlier request of the same client for the destination.
        pub waited: u64,
        /// Requests received again while their answer is being made, and replies received twice.
        pub duplicates: u64,
        /// Calls refused: no calling address, wrong address, or no room.
        pub calls_refused: u64,
        /// Connections that failed or were released by the other side.
        pub connections_lost: u64,
        /// Times that a table or queue was full.
        pub limits_met: u64,
        /// Clients removed because Keep-Alives could not reach them.
        pub clients_lost: u64,
        /// IP packets received on shortcuts that end here.
        pub shortcut_packets: u64,
        /// Octets of these packets.
        pub shortcut_octets: u64,
    }
}

/// Adds 1 to the counter of a code.
pub(super) fn count<K: Ord>(counters: &mut BTreeMap<K, u64>, code: K) {
    *counters.entry(code).or_default() += 1;
}
