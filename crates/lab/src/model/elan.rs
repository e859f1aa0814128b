//! Emulated LANs and Classical IP subnets, and their servers.

use super::{Attachment, ElanId, NodeId};
use crate::ipv6::Ip6Net;
use crate::units::IpNet;
use aerostat_proto::clip;
use aerostat_proto::lane::Quotas;
use aerostat_proto::lane::lecs::Criterion;
use aerostat_wire::lane::MaxFrameSize;
use aerostat_wire::line::Encapsulation;
use aerostat_wire::q2931::Version;
use aerostat_wire::{AtmAddress, MacAddr, Qos, TrafficParams};
use std::fmt;
use std::net::Ipv4Addr;
use std::path::PathBuf;

/// A host of LANE services. The first has the LECS, and a LES and a BUS for every ELAN; the others have further LESs
/// and BUSs on standby.
#[derive(Clone, Debug, PartialEq)]
pub struct LaneServer {
    /// The attachment.
    pub attachment: Attachment,
    /// 0 for the first host; N for the host of entry N-1 of [`Elan::standby`].
    pub rank: usize,
    /// How the LECS assigns clients, level by level.
    pub policies: Vec<Vec<Criterion>>,
    /// ELAN of clients that give no name and are not listed.
    pub default: Option<ElanId>,
    /// The LECS's own address. The LECS also answers on [`AtmAddress::LECS`] and [`AtmAddress::LECS_ANYCAST`], to which
    /// the switches have routes.
    pub lecs: AtmAddress,
    /// True if it registers its address by ILMI.
    pub ilmi: bool,
    /// Version of the UNI.
    pub uni: Version,
    /// Limits of a BUS on frames from one end system.
    pub quota: Quotas,
}

impl LaneServer {
    /// A host with this attachment. The fields of the LECS are to be filled in.
    pub(crate) fn at(attachment: Attachment) -> Self {
        Self {
            lecs: attachment.address,
            attachment,
            rank: 0,
            policies: Vec::new(),
            default: None,
            ilmi: false,
            uni: crate::plan::UNI,
            quota: Quotas::DEFAULT,
        }
    }
}

/// Addresses of a LES and of its BUS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LesAndBus {
    /// Address of the LES.
    pub les: AtmAddress,
    /// Address of the BUS.
    pub bus: AtmAddress,
}

aerostat_wire::named! {
    /// How packets of a subnet cross the ATM network.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum SubnetKind {
        /// An emulated LAN.
        Lane = "lane",
        /// A Classical IP subnet.
        ClassicalIp = "clip",
        /// An ATM line between two stations.
        Line = "line",
    }
}

/// One emulated LAN (Ethernet), Classical IP subnet or ATM line.
#[derive(Clone, Debug, PartialEq)]
pub struct Elan {
    /// Name, at most 32 octets (a LANE limit).
    pub name: String,
    /// ELAN-ID, from 1.
    pub id: u32,
    /// Its IP subnet.
    pub subnet: IpNet,
    /// Its IPv6 prefix, for kernel nodes; see [`Lab::ip6`](super::Lab::ip6).
    pub ip6: Option<Ip6Net>,
    /// Largest data frame.
    pub max_frame: MaxFrameSize,
    /// Address of its LES.
    pub les: AtmAddress,
    /// Address of its BUS.
    pub bus: AtmAddress,
    /// Standby LESs, each with its BUS, in the order in which they take over.
    pub standby: Vec<LesAndBus>,
    /// True if its LESs use LANE v2 with clients that support it.
    pub v2: bool,
    /// Leading octets of ATM addresses of clients that belong here; if empty, all clients may join by name.
    pub members: Vec<Vec<u8>>,
    /// MAC addresses of clients that belong here.
    pub macs: Vec<MacAddr>,
    /// Traffic of data direct connections of its clients, in both directions; `None`: best effort.
    pub data: Option<TrafficParams>,
    /// C25 and C26: average and peak rate of connections to the BUS, cells/s; `None`: best effort.
    pub multicast_send: Option<[u32; 2]>,
    /// Servers outside the lab; with these, `les` and `bus` have no meaning.
    pub foreign: Option<ForeignServers>,
    /// Set for a Classical IP subnet, which is not an emulated LAN; frame size, LES and BUS have no meaning then.
    pub clip: Option<Lis>,
    /// Set for an ATM line, which is neither.
    pub line: Option<AtmLine>,
}

/// An ATM line: a subnet of two stations, or of one whose line leads out of the lab.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtmLine {
    /// Encapsulation of frames or packets.
    pub encapsulation: Encapsulation,
    /// The network of which it is a part, with the same subnet; `None`: it is a network of its own.
    pub into: Option<ElanId>,
    /// Largest IP packet, octets.
    pub mtu: u16,
    /// The station that calls the other one, and traffic as it sees it; `None`: a permanent connection has the line.
    pub calls: Option<(NodeId, Qos)>,
}

/// LANE servers outside the lab, as configured for clients inside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignServers {
    /// Name of the ELAN there, at most 32 octets; empty lets the LECS choose.
    pub name: String,
    /// True if the LECS has the well-known address.
    pub well_known: bool,
    /// Address of the LECS, if it has its own address.
    pub lecs: Option<AtmAddress>,
    /// Address of the LES, for clients that do not ask the LECS or get no answer from it.
    pub les: Option<AtmAddress>,
    /// Frame size that clients request; if unspecified, they take the size of the servers.
    pub max_frame: MaxFrameSize,
}

/// Its kind and name, for texts: `ELAN a`, `Classical IP subnet w`.
impl fmt::Display for Elan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind() {
            SubnetKind::Lane => "ELAN",
            SubnetKind::ClassicalIp => "Classical IP subnet",
            SubnetKind::Line => "line",
        };
        write!(f, "{kind} {}", self.name)
    }
}

impl Elan {
    /// A subnet about which nothing else is said.
    pub(crate) fn with_subnet(name: String, subnet: IpNet) -> Self {
        Self {
            name,
            id: 0,
            subnet,
            ip6: None,
            max_frame: MaxFrameSize::UNSPECIFIED,
            les: AtmAddress::ZERO,
            bus: AtmAddress::ZERO,
            standby: Vec::new(),
            v2: false,
            members: Vec::new(),
            macs: Vec::new(),
            data: None,
            multicast_send: None,
            foreign: None,
            clip: None,
            line: None,
        }
    }
    /// How its packets cross the ATM network.
    #[must_use]
    pub const fn kind(&self) -> SubnetKind {
        match (&self.clip, &self.line) {
            (Some(_), _) => SubnetKind::ClassicalIp,
            (None, Some(_)) => SubnetKind::Line,
            (None, None) => SubnetKind::Lane,
        }
    }
    /// True for an emulated LAN.
    #[must_use]
    pub fn is_lane(&self) -> bool {
        self.kind() == SubnetKind::Lane
    }
    /// True if its stations exchange Ethernet frames: an emulated LAN or a bridged line.
    #[must_use]
    pub fn is_ethernet(&self) -> bool {
        let bridged = |line: &AtmLine| line.encapsulation.is_bridged();
        self.is_lane() || self.line.as_ref().is_some_and(bridged)
    }
    /// True if the LANE services of this lab, or those behind a trunk, serve this ELAN.
    #[must_use]
    pub fn is_own(&self) -> bool {
        self.is_lane() && self.foreign.is_none()
    }
    /// Largest IP packet, octets.
    #[must_use]
    pub fn ip_mtu(&self) -> u16 {
        match (&self.clip, &self.line) {
            (Some(lis), _) => lis.mtu,
            (None, Some(line)) => line.mtu,
            (None, None) => self.max_frame.mtu().unwrap_or(1500),
        }
    }
}

/// A logical IP subnet of Classical IP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lis {
    /// Largest IP packet, octets.
    pub mtu: u16,
    /// The node that is its ATMARP server, if that is in the lab.
    pub server: Option<NodeId>,
    /// Its ATMARP servers in the order in which clients try them.
    pub servers: Vec<AtmAddress>,
    /// Timers of its members.
    pub params: clip::Params,
    /// True if members call each other with VC multiplexing.
    pub mux: bool,
    /// True if its routers are NHRP servers and its hosts their clients.
    pub nhrp: bool,
    /// Preconfigured next hops of all members.
    pub next_hops: Vec<NextHop>,
    /// The file that they come from, if they do not stand in the lab file.
    pub map: Option<MapFile>,
    /// Settings of a member without settings of its own.
    pub usual: Member,
}

/// A file with next hops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapFile {
    /// Its name in the lab file.
    pub name: String,
    /// Its absolute path.
    pub path: PathBuf,
}

/// Settings of a member of a Classical IP subnet for its connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Largest IP packet of its interface, octets.
    pub mtu: u16,
    /// Unit that has a connection of its own.
    pub per: clip::Per,
    /// Traffic of connections that it opens; `None` is best effort.
    pub contract: Option<Qos>,
    /// Traffic of sessions by port.
    pub ports: Vec<clip::PortContract>,
    /// Sessions at a time.
    pub sessions: usize,
    /// Next hops that it alone knows.
    pub next_hops: Vec<NextHop>,
    /// The file that they come from, if they do not stand in the lab file.
    pub map: Option<MapFile>,
}

/// Configuration of a next hop on a Classical IP subnet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextHop {
    /// Its IP address, or any address of a prefix.
    pub ip: Ipv4Addr,
    /// 32; or, in a file, the length of the prefix for which it is the default next hop.
    pub length: u8,
    /// Its ATM address, if ATMARP is not needed.
    pub address: Option<AtmAddress>,
    /// Traffic of connections to it, as seen by the caller; `None` is best effort.
    pub qos: Option<Qos>,
}
