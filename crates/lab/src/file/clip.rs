//! Sections about Classical IP and permanent connections.

use super::pseudowire::SduWireFile;
use super::queues::{ConnectionQueueFile, PathId};
use super::{AddressList, CellsPerSecond, Ip, Label, Net, PerText, PoliceText, PortsText, QosText};
use super::{NextHopsFile, keys};
use crate::field::{At, Table, section};

/// Smallest MTU of Classical IP.
pub(crate) const LEAST_MTU: u64 = 576;

section! {
    /// A Classical IP subnet. Hosts and routers join it like an ELAN, by its name.
    LisFile (keys::clip()) {
        /// The IP subnet.
        subnet: At<Net>;
        /// Largest IP packet.
        mtu: u64 = 9180, LEAST_MTU..=65_521;
        /// The host or router on it that is its ATMARP server.
        server: Option<At<String>>;
        /// ATM addresses of servers outside the lab, one or a list.
        servers: Option<AddressList>;
        /// Members call each other with VC multiplexing, packets without LLC/SNAP, where the called one knows it.
        mux: bool = false;
        /// Its routers are NHRP servers, and its hosts their clients: packets for other such subnets go directly.
        nhrp: bool = false;
        /// Next hops of which something is known beforehand, for all members of the lab: by IP address, or 'file PATH'.
        next_hops: Option<NextHopsFile>;
        /// Unit that has a connection of its own: destination (each next hop), or session (each TCP connection and UDP
        /// session as well).
        per: PerText = "destination";
        /// Traffic of the connections that its members open, in the words of linux-atm's qos(7), tx from the member;
        /// default: best effort.
        qos: Option<At<QosText>>;
        /// With per session: traffic of sessions by their ports (`tcp 80`, `udp 5000-5010`, `7`); default: as 'qos'.
        ports: Option<Table<PortsText, At<QosText>>>;
        /// With per session: sessions at a time that a member opens, and that it takes of one caller, 1 to 512.
        /// Beyond, packets use the connection of the next hop.
        sessions: u64 = 64, 1..=512;
    }
}
section! {
    /// A member of a Classical IP subnet, where it differs from the others.
    MemberFile {
        /// Largest IP packet of its interface, at most that of the subnet; default: that of the subnet.
        mtu: Option<At<u64>>;
        /// Unit that has a connection of its own: destination or session; default: as the subnet says.
        per: Option<At<PerText>>;
        /// Traffic of the connections that it opens, in the words of linux-atm's qos(7); default: as the subnet says.
        qos: Option<At<QosText>>;
        /// Traffic of sessions by their ports; default: as the subnet says.
        ports: Option<Table<PortsText, At<QosText>>>;
        /// Sessions at a time; default: as the subnet says.
        sessions: u64, 1..=512;
        /// Next hops that it knows besides those of the subnet, and before these: by IP address, or 'file PATH'.
        next_hops: Option<NextHopsFile>;
    }
}
section! {
    /// Facts about a next hop: an address, a contract, or both.
    NextHopFile {
        /// Its ATM address, or the name of the host or router in this lab that has it; default: ATMARP asks.
        address: Option<At<String>>;
        /// Traffic of connections to it, in the words of linux-atm's qos(7), tx to the next hop; default: best effort.
        qos: Option<At<QosText>>;
    }
}
section! {
    /// A permanent connection between two end systems. Classical IP uses those of its hosts.
    PvcFile {
        /// One end: a host, a router, or what is at the end of a link out of the lab.
        from: At<String>;
        /// Its label there.
        vc: At<Label>;
        /// The other end.
        to: At<String>;
        /// Its label there; default: the same.
        to_vc: Option<At<Label>>;
        /// Peak cell rate, cells per second both ways (CBR); default: best effort.
        pcr: Option<At<CellsPerSecond>>;
        /// Instead of pcr: traffic in the words of linux-atm's qos(7), tx from the first end to the second.
        qos: Option<At<QosText>>;
        /// The switches where cells come in hold them to the contract: true, of CBR and VBR; all, also to the peak rate
        /// of best effort; false, not. Default: as the links of its ends say.
        police: Option<At<PoliceText>>;
        /// False: the adapters at its ends do not shape it, and send it at the rate of their links; true: they do.
        /// Default: as these hosts and routers say.
        shape: Option<At<bool>>;
        /// The rate queue of the adapters at its ends that shapes it with others; an end without a rate queue of this
        /// name does as without the key.
        rate_queue: Option<At<String>>;
        /// Full queues discard whole AAL5 frames; default: best effort yes, CBR and VBR no. False for other AALs.
        frame_discard: Option<At<bool>>;
        /// Its queues at the switches on its way: weight, bounds, thresholds.
        queue: Option<ConnectionQueueFile>;
        /// On links between switches that have a tunnel with this VPI, it is inside.
        tunnel: Option<At<PathId>>;
        /// Switch whole paths between two links out of the lab: the labels are VPI.0.
        vp: bool = false;
        /// Classical IP: packets without LLC/SNAP.
        mux: bool = false;
        /// Classical IP: IP address of the station at the outside end; default: InATMARP asks.
        peer: Option<At<Ip>>;
        /// The line of 'lines:' that it carries: each of its ends in the lab is a station on this line.
        line: Option<At<String>>;
        /// Behind a link over MPLS: a pseudowire of its own, with the SDUs of this connection.
        pseudowire: Option<SduWireFile>;
    }
}
