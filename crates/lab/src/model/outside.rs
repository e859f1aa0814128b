//! What is behind links out of the lab.

use super::{Attachment, Side};
use aerostat_proto::Duration;
use aerostat_wire::q2931::Version;
use aerostat_wire::{AtmAddress, MacAddr};
use std::net::{IpAddr, SocketAddr};

/// The far end of a link out of the lab. Unless it is a trunk, the switch plays the network side there and treats it as
/// a host.
#[derive(Clone, Debug, PartialEq)]
pub struct Outside {
    /// Where it is attached; the address is the first of `addresses`, or one that stands for it.
    pub attachment: Attachment,
    /// How it is reached.
    pub way: OutsideWay,
    /// Its ATM addresses: calls to them go there, calls from there come from one of them. None if it registers its own.
    pub addresses: Vec<AtmAddress>,
    /// The switch offers ILMI.
    pub ilmi: bool,
    /// Version of the UNI; with ILMI the highest, and 4.0 if left open.
    pub version: Option<Version>,
    /// Another switch is there. It has no addresses then, and ILMI only to find out the sides.
    pub trunk: Option<OutsideTrunk>,
}

/// What leads over a trunk out of the lab.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutsideTrunk {
    /// What the port of this lab's switch plays in signalling; the other lab's plays the other. `None`: both find out by
    /// ILMI.
    pub side: Option<Side>,
    /// Leading octets of addresses to be called there.
    pub prefixes: Vec<Vec<u8>>,
    /// The LANE services are there.
    pub lane: bool,
}

/// How the far end of a link out of the lab is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutsideWay {
    /// ATM over TCP; the peer connects here.
    AtmTcpListen {
        /// Where to listen.
        at: SocketAddr,
        /// From which address alone connections are taken; `None`: from this machine only.
        from: Option<IpAddr>,
    },
    /// ATM over TCP; this end connects.
    AtmTcpConnect {
        /// HOST:PORT.
        to: String,
    },
    /// Cells over UDP.
    Udp {
        /// Where datagrams are taken.
        local: SocketAddr,
        /// Where they are sent, and alone come from.
        peer: SocketAddr,
        /// How cells are put into datagrams.
        packing: Packing,
    },
    /// Cells in Ethernet frames.
    Ethernet {
        /// Name of the interface.
        interface: String,
        /// The peer on the same cable.
        peer: MacAddr,
        /// How cells are put into frames: many.
        packing: Packing,
    },
}

/// How cells are put into datagrams and frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// One cell of 53 octets.
    One,
    /// Cells of 52 octets, without HEC (RFC 4717, N to one).
    Many {
        /// At most so many, 1 to [`MAX_CELLS`](Self::MAX_CELLS).
        cells: u16,
        /// How long a cell waits for others.
        wait: Duration,
        /// A control word comes first.
        word: bool,
    },
}

impl Packing {
    /// Most cells of a datagram: what an Ethernet frame of 9000 octets holds.
    pub const MAX_CELLS: u16 = 172;
}
