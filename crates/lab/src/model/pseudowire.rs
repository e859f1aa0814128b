//! ATM pseudowires of links out of the lab: over MPLS (RFC 4717), and over L2TPv3 with static sessions (RFC 4454).

use aerostat_proto::Duration;
use aerostat_wire::l2tp::{Cookie, Sublayer};
use aerostat_wire::{MacAddr, Vc};
use std::net::{IpAddr, SocketAddr};

/// The connections of a link for which a pseudowire of cells stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The whole link (port mode): every cell keeps its label.
    Port,
    /// One path (VPC mode): cells of this VPI; those from the peer get it and keep their VCI.
    Path(u16),
    /// One channel (VCC mode): cells of this VC; those from the peer get its label.
    Channel(Vc),
}

/// Gathering of cells into packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gathering {
    /// Limit of cells in a packet, 1 to [`MAX_CELLS`](super::Packing::MAX_CELLS).
    pub cells: u16,
    /// How long a cell waits for further cells.
    pub wait: Duration,
}

/// The labels of a pseudowire over MPLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Labels {
    /// Labels of packets to the peer, the outermost first; at least one.
    pub outgoing: Vec<u32>,
    /// Label of packets from the peer, the innermost of their stack.
    pub incoming: u32,
}

/// A pseudowire of cells (N-to-one mode).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellWire {
    /// Its labels.
    pub labels: Labels,
    /// Scope of the pseudowire.
    pub scope: Scope,
    /// How cells fill packets.
    pub gathering: Gathering,
    /// True if a control word comes first.
    pub word: bool,
    /// True if packets are numbered, and the numbers of the peer's packets count. Only with the control word.
    pub sequence: bool,
}

/// A pseudowire of the SDUs of one VC (AAL5-SDU mode).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SduWire {
    /// The VC on the link.
    pub vc: Vc,
    /// Its labels.
    pub labels: Labels,
    /// True if packets are numbered, and the numbers of the peer's packets count.
    pub sequence: bool,
}

/// A link whose far end is reached by pseudowires over MPLS on an Ethernet interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mpls {
    /// Name of the interface.
    pub interface: String,
    /// MAC address of the next hop.
    pub peer: MacAddr,
    /// The pseudowire of cells, if the link has one.
    pub cells: Option<CellWire>,
    /// Pseudowires of permanent connections.
    pub sdus: Vec<SduWire>,
}

/// The two ends of an L2TPv3 session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum L2tpEnds {
    /// Over IP, protocol 115: this end and the peer.
    Ip(IpAddr, IpAddr),
    /// Over UDP: this end and the peer.
    Udp(SocketAddr, SocketAddr),
}

/// A link whose far end is reached by an L2TPv3 session that both ends have configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct L2tp {
    /// The two ends.
    pub ends: L2tpEnds,
    /// Session ID in packets from the peer; not 0.
    pub session: u32,
    /// Session ID in packets to the peer; not 0.
    pub peer_session: u32,
    /// Cookie in packets from the peer.
    pub cookie: Cookie,
    /// Cookie in packets to the peer.
    pub peer_cookie: Cookie,
    /// The sublayer in both directions.
    pub sublayer: Sublayer,
    /// True if packets are numbered, and the numbers of the peer's packets count. Only with a sublayer.
    pub sequence: bool,
    /// Scope of the session.
    pub scope: Scope,
    /// How cells fill packets.
    pub gathering: Gathering,
}
