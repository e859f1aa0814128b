//! Emulated LANs and Classical IP subnets, and who serves them.

use super::{Attachment, ElanId, NodeId};
use crate::ipv6::Ip6Net;
use crate::units::IpNet;
use aerostat_proto::Duration;
use aerostat_proto::lane::lecs::Criterion;
use aerostat_wire::lane::MaxFrameSize;
use aerostat_wire::q2931::Version;
use aerostat_wire::{AtmAddress, MacAddr, Qos};
use std::net::Ipv4Addr;

/// A host of LANE services: the first has the LECS, and a LES and a BUS for every ELAN; the others have further LESs
/// and BUSs, which stand by.
#[derive(Clone, Debug, PartialEq)]
pub struct LaneServer {
    /// Where it is attached.
    pub attachment: Attachment,
    /// 0 for the first host; N for that of entry N-1 of [`Elan::standby`].
    pub rank: usize,
    /// How the LECS assigns clients, level by level.
    pub policies: Vec<Vec<Criterion>>,
    /// ELAN of clients that name none and are listed nowhere.
    pub default: Option<ElanId>,
    /// Own address of the LECS. The LECS also answers on [`AtmAddress::LECS`] and
    /// [`AtmAddress::LECS_ANYCAST`], to which the switches have routes.
    pub lecs: AtmAddress,
    /// It registers its address by ILMI.
    pub ilmi: bool,
    /// Version of the UNI.
    pub uni: Version,
    /// Frames a second that a BUS takes of one end system.
    pub quota: BusQuota,
}

impl LaneServer {
    /// A host with this attachment; the LECS is to be completed.
    pub(crate) fn at(attachment: Attachment) -> Self {
        Self {
            lecs: attachment.address,
            attachment,
            rank: 0,
            policies: Vec::new(),
            default: None,
            ilmi: false,
            uni: crate::plan::UNI,
            quota: BusQuota::default(),
        }
    }
}

/// Frames a second that a BUS, or a LES, takes of one end system; `None`: the default of
/// [`ServerParams`](aerostat_proto::lane::ServerParams).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BusQuota {
    /// Broadcast frames.
    pub broadcast: Option<u32>,
    /// Frames for unknown destinations, and flush requests.
    pub unknown: Option<u32>,
    /// Multicast frames.
    pub multicast: Option<u32>,
    /// Frames that the LES copies to all members.
    pub announcements: Option<u32>,
    /// LE_ARP requests for addresses that nobody has registered, which the LES copies to all proxies.
    pub unregistered: Option<u32>,
}

/// One emulated LAN (Ethernet).
#[derive(Clone, Debug, PartialEq)]
pub struct Elan {
    /// Name, at most 32 octets (a LANE limit).
    pub name: String,
    /// ELAN-ID, from 1.
    pub id: u32,
    /// The IP subnet that lives on it.
    pub subnet: IpNet,
    /// Its IPv6 prefix, for kernel nodes; see [`Lab::ip6`](super::Lab::ip6).
    pub ip6: Option<Ip6Net>,
    /// Largest data frame.
    pub max_frame: MaxFrameSize,
    /// Address of its LES.
    pub les: AtmAddress,
    /// Address of its BUS.
    pub bus: AtmAddress,
    /// Further LESs, each with its BUS, that take over in this order.
    pub standby: Vec<(AtmAddress, AtmAddress)>,
    /// Its LESs speak LANE v2 with clients that can.
    pub v2: bool,
    /// Leading octets of ATM addresses of clients that belong here; empty: all may join by name.
    pub members: Vec<Vec<u8>>,
    /// MAC addresses of clients that belong here.
    pub macs: Vec<MacAddr>,
    /// Its servers are outside the lab; then `les` and `bus` mean nothing.
    pub foreign: Option<ForeignServers>,
    /// No emulated LAN at all, but a Classical IP subnet; then frame size, LES and BUS mean nothing.
    pub clip: Option<Lis>,
}

/// LANE servers outside the lab, as clients inside are told of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignServers {
    /// Name of the ELAN there, at most 32 octets; empty lets the LECS choose.
    pub name: String,
    /// The LECS is asked at the well-known address.
    pub well_known: bool,
    /// Address of the LECS, if it has one of its own.
    pub lecs: Option<AtmAddress>,
    /// Address of the LES, for clients that ask no LECS or get no answer from it.
    pub les: Option<AtmAddress>,
    /// Frame size that clients ask for; unspecified takes what the servers say.
    pub max_frame: MaxFrameSize,
}

impl Elan {
    /// An emulated LAN that the lab's own LANE services serve, or those behind a trunk.
    #[must_use]
    pub fn is_own(&self) -> bool {
        self.clip.is_none() && self.foreign.is_none()
    }
    /// Largest IP packet, octets.
    #[must_use]
    pub fn ip_mtu(&self) -> u16 {
        match &self.clip {
            Some(lis) => lis.mtu,
            None => self.max_frame.mtu().unwrap_or(1500),
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
    /// Idle time after which a connection is released; zero is never.
    pub idle: Duration,
    /// Members call each other with VC multiplexing.
    pub mux: bool,
    /// Its routers are NHRP servers, its hosts their clients.
    pub nhrp: bool,
    /// Next hops of which something is known beforehand.
    pub next_hops: Vec<NextHop>,
}

/// What is known of a next hop of a Classical IP subnet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextHop {
    /// Its IP address.
    pub ip: Ipv4Addr,
    /// Its ATM address, if ATMARP need not ask.
    pub address: Option<AtmAddress>,
    /// Traffic of connections to it, seen from who calls; `None` is best effort.
    pub qos: Option<Qos>,
}
