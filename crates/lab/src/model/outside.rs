//! Systems behind links out of the lab.

use super::{Attachment, L2tp, Mpls, Side};
use aerostat_proto::Duration;
use aerostat_wire::q2931::Version;
use aerostat_wire::{AtmAddress, MacAddr};
use std::net::{IpAddr, SocketAddr};

/// The far end of a link out of the lab. At a switch the switch has the network side, unless it is a trunk, and treats
/// the far end as a host. At an end system the far end is a switch, and has the network side.
#[derive(Clone, Debug, PartialEq)]
pub struct Outside {
    /// The attachment; its address is the first of `addresses`, or a placeholder.
    pub attachment: Attachment,
    /// How the far end is reached.
    pub way: OutsideWay,
    /// Its ATM addresses: calls to them go there, and calls from there use one of them. Empty if the far end registers
    /// its own.
    pub addresses: Vec<AtmAddress>,
    /// True if the switch offers ILMI.
    pub ilmi: bool,
    /// Version of the UNI; with ILMI the highest allowed one, or 4.0 if `None`.
    pub version: Option<Version>,
    /// Set if the far end is another switch. It has no addresses then, and ILMI only finds out the sides.
    pub trunk: Option<OutsideTrunk>,
}

/// Routes over a trunk out of the lab.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutsideTrunk {
    /// The side of this lab's switch in signalling; the other lab's switch has the other side. With `None` ILMI finds
    /// out the sides.
    pub side: Option<Side>,
    /// Leading octets of addresses behind the trunk.
    pub prefixes: Vec<Vec<u8>>,
    /// True if the LANE services are behind the trunk.
    pub lane: bool,
}

/// How the far end of a link out of the lab is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutsideWay {
    /// ATM over TCP; the peer connects here.
    AtmTcpListen {
        /// The address to listen on.
        at: SocketAddr,
        /// The only address from which connections are accepted; with `None`, only this machine.
        from: Option<IpAddr>,
    },
    /// ATM over TCP; this end connects.
    AtmTcpConnect {
        /// HOST:PORT.
        to: String,
    },
    /// Cells over UDP.
    Udp {
        /// The address on which datagrams are received.
        local: SocketAddr,
        /// The address to which they are sent, and from which they are accepted.
        peer: SocketAddr,
        /// Packing of cells into datagrams.
        packing: Packing,
    },
    /// Cells in Ethernet frames.
    Ethernet {
        /// Name of the interface.
        interface: String,
        /// The peer on the same cable.
        peer: MacAddr,
        /// Packing of cells into frames: always many.
        packing: Packing,
    },
    /// Pseudowires over MPLS.
    Mpls(Mpls),
    /// A session of L2TPv3.
    L2tp(L2tp),
}

/// Packing of cells into datagrams and frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// One cell of 53 octets.
    One,
    /// Cells of 52 octets, without HEC (RFC 4717, N to one).
    Many {
        /// Limit of cells, 1 to [`MAX_CELLS`](Self::MAX_CELLS).
        cells: u16,
        /// How long a cell waits for further cells.
        wait: Duration,
        /// True if a control word comes first.
        word: bool,
    },
}

impl Packing {
    /// Limit of cells in a datagram: those that fit an Ethernet frame of 9000 octets.
    pub const MAX_CELLS: u16 = 172;
}
