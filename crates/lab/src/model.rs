//! The resolved lab: plain data, every name an index, every address assigned.
//!
//! `sim` and `live` build their nodes from a [`Lab`] and nothing else. All nodes are in one list: switches first, then
//! the LANE servers, routers, hosts and the far ends of links out of the lab, each in the order of the file. Every
//! cable, also that between a host and its switch, is a [`Link`] with two [`LinkEnd`]s; a switch's ports are numbered
//! from 0 and `switch.ports[n].link` leads back to the link. An end system has exactly one port, number 0.
//!
//! A typical builder:
//!
//! ```text
//! for (id, node) in lab.nodes()       make the machine of node.kind
//! for link in &lab.links              join link.ends[0] and link.ends[1]
//! for flow in &lab.traffic            start it on node flow.from at flow.start
//! ```

mod elan;
mod ends;
mod limits;
mod line;
mod load;
mod look;
mod occupancy;
mod outside;
mod pseudowire;
mod queues;
mod retired;
mod scale;
mod tcp;
mod timers;
mod traffic;

pub use aerostat_node::host::{
    Cable, CallCosts, Costs, CpuConfig, EthernetPort, IntakeConfig, IntakeRate, Interruptions,
    PortVlans,
};
pub use aerostat_node::ip::clock::Clock;
pub use aerostat_node::ip::router::{Forwarding, QueueLimit};
pub use elan::{
    AtmLine, Elan, ForeignServers, LaneServer, LesAndBus, Lis, MapFile, Member, NextHop, SubnetKind,
};
pub use limits::Limits;
pub use line::{Errors, LineChange, LineParams, Link, Way};
pub use load::{Arrivals, Load, LoadOf, Share, Trace, least_frame, most_frame, payload_of};
pub use occupancy::Occupancy;
pub use outside::{Outside, OutsideTrunk, OutsideWay, Packing};
pub use pseudowire::{CellWire, Gathering, L2tp, L2tpEnds, Labels, Mpls, Scope, SduWire};
pub use queues::Queues;
pub use retired::Retired;
pub use scale::Scale;
pub use tcp::{
    ByKernel, Congestion, Follows, GivenKey, InForce, KERNELS, KEYS, Tcp, TcpParams, TcpRanges,
};
pub use timers::Timers;
pub use traffic::{Expect, Fault, FaultKind, Flow, FlowKind, GivenRate, SendRate, Service, Ticks};

use crate::numbers::Numbers;
use crate::units::IpNet;
use aerostat_node::atm::{NicConfig, Policing};
use aerostat_node::host::sockets::programs::Program;
use aerostat_node::manager::ManagerConfig;
use aerostat_node::switch::ConnectionQueue;
use aerostat_proto::Duration;
use aerostat_proto::mpoa::mps::MpsParams;
use aerostat_proto::mpoa::params::MpcParams;
use aerostat_proto::nhrp::{auth, client};
use aerostat_wire::mpoa::QosEntry;
use aerostat_wire::q2931::Version;
use aerostat_wire::{AtmAddress, MacAddr, Qos, TrafficParams, Vc};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Index of a node in [`Lab::nodes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub usize);

/// Index of a link in [`Lab::links`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub usize);

/// Index of an emulated LAN in [`Lab::elans`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ElanId(pub usize);

/// A validated lab.
#[derive(Clone, Debug, PartialEq)]
pub struct Lab {
    /// Name: from the file, or the file's name without `.atm.yml`.
    pub name: String,
    /// Purpose of the lab in words, if the file has a description.
    pub description: Option<String>,
    /// Seed of every random stream; 1 by default.
    pub seed: u64,
    /// When a run in virtual time ends; with `None`, some time after the last traffic ([`Lab::end`]).
    pub until: Option<Duration>,
    /// All nodes: switches, LANE server, routers, hosts, far ends of links out of the lab.
    pub nodes: Vec<Node>,
    /// All links: between switches first, then one per end system in node order, then those between two end systems.
    pub links: Vec<Link>,
    /// All emulated LANs and Classical IP subnets, in the order of the file. Own ones ([`Elan::is_own`]) are served by
    /// the node [`Lab::lane_server`], or by that of the lab behind a trunk.
    pub elans: Vec<Elan>,
    /// All permanent connections.
    pub pvcs: Vec<Pvc>,
    /// The expected failures of programs, by node and index in its [`Host::sockets`].
    pub sockets_expect: BTreeMap<(NodeId, usize), Expect>,
    /// Flows to generate, in the order of the file.
    pub traffic: Vec<Flow>,
    /// Faults, in order of time.
    pub faults: Vec<Fault>,
    /// Parameters that all nodes have in common.
    pub timers: Timers,
    /// Limits that all nodes of a kind have in common.
    pub limits: Limits,
    /// Links to record during the run; if empty, only those requested on the command line.
    pub capture: Vec<LinkId>,
    /// Levels of buffers over time.
    pub occupancy: Option<Occupancy>,
    /// Names for ATM addresses of systems outside the lab, in the order of the file.
    pub names: Vec<(String, AtmAddress)>,
    /// The group of the system whose members may connect to the socket service, beside the user of the lab.
    pub sockets_group: Option<String>,
    /// Numbers of its nodes and ELANs in the address plan.
    pub numbers: Numbers,
    /// Parts that are no longer there. A file has none: they are of a lab that runs and was changed.
    pub retired: Retired,
}

/// A node of the lab.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Unique name, fit for a network namespace.
    pub name: String,
    /// The kind of node.
    pub kind: NodeKind,
}

/// Kind of a node.
#[derive(Clone, Debug, PartialEq)]
pub enum NodeKind {
    /// An ATM switch.
    Switch(Switch),
    /// A host that runs LECS, LES and BUS.
    LaneServer(LaneServer),
    /// An IP router with one LANE client per ELAN.
    Router(Router),
    /// An IP host with one LANE client.
    Host(Host),
    /// The far end of a link out of the lab.
    Outside(Outside),
}

impl NodeKind {
    /// True if the node registers its addresses with its switch by ILMI, so that the switch does not know them before.
    #[must_use]
    pub const fn registers(&self) -> bool {
        match self {
            Self::Switch(_) => false,
            Self::LaneServer(server) => server.ilmi,
            Self::Router(router) => router.ilmi,
            Self::Host(host) => host.ilmi,
            Self::Outside(outside) => outside.addresses.is_empty(),
        }
    }
}

impl Lab {
    /// True if the switch of this port speaks ILMI with the node at the other end.
    #[must_use]
    pub fn is_managed(&self, port: &Port) -> bool {
        match &self.node(port.peer).kind {
            NodeKind::Outside(outside) => outside.ilmi,
            kind => kind.registers(),
        }
    }
    /// True if this node speaks ILMI: an end system that registers, or a switch with such a port.
    #[must_use]
    pub fn speaks_ilmi(&self, node: &Node) -> bool {
        match &node.kind {
            NodeKind::Switch(switch) => {
                self.ports_of(switch).any(|(_, port)| self.is_managed(port))
            }
            // The far end of a link has its own ILMI.
            NodeKind::Outside(_) => false,
            kind => kind.registers(),
        }
    }
}

/// An ATM switch.
#[derive(Clone, Debug, PartialEq)]
pub struct Switch {
    /// Network prefix of the addresses on its ports, 13 octets.
    pub prefix: [u8; 13],
    /// Its ports, by number.
    pub ports: Vec<Port>,
    /// Policing of what comes in from end systems, where their links do not say otherwise.
    pub police: Policing,
    /// Queues of its ports, where their links do not say otherwise.
    pub queues: Queues,
    /// Costs of messages of signalling; `None`: nothing.
    pub manager: Option<ManagerConfig>,
    /// Limit of calls and parties that wait for signalling of a link; `None`: what the lab needs.
    pub held: Option<usize>,
}

/// One port of a switch.
#[derive(Clone, Debug, PartialEq)]
pub struct Port {
    /// The link at the port.
    pub link: LinkId,
    /// The node at the other end.
    pub peer: NodeId,
    /// The side of this port in signalling.
    pub side: Side,
    /// Address (selector 0) of the end system behind the port; `None` towards a switch. Calling addresses from this
    /// port must have the same end system.
    pub station: Option<AtmAddress>,
}

/// The side of a port in UNI or IISP signalling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The network side, which assigns VCIs.
    Network,
    /// The user side (only towards another switch, or on an end system).
    User,
}

/// The attachment of an end system, and its ATM address.
#[derive(Clone, Debug, PartialEq)]
pub struct Attachment {
    /// The switch; on a link without a switch, the end system at the other end, or the far end of a link out of the
    /// lab.
    pub switch: NodeId,
    /// Port number there.
    pub port: usize,
    /// The access link.
    pub link: LinkId,
    /// ATM address with selector 0: the switch's prefix, or one that no switch has, and the node's ESI.
    pub address: AtmAddress,
}

/// A permanent connection.
#[derive(Clone, Debug, PartialEq)]
pub struct Pvc {
    /// Both end systems, each with the label on its link.
    pub ends: [(NodeId, Vc); 2],
    /// Its way through the switches; empty on a link between two end systems.
    pub hops: Vec<Hop>,
    /// Traffic, seen from the first end.
    pub qos: Qos,
    /// True if whole paths are switched instead of one channel; the VCIs have no meaning then.
    pub path: bool,
    /// Policing where cells come in, at both ends; `None`: as at these ports.
    pub police: Option<Policing>,
    /// True if adapters at its ends shape it; `None`: as they do with others.
    pub shape: Option<bool>,
    /// The rate queue of adapters at its ends in which it is, where they have one of this name.
    pub rate_queue: Option<String>,
    /// Its queues at the switches on its way.
    pub queue: ConnectionQueue,
    /// The shaped path in which it is on links between switches.
    pub tunnel: Option<u16>,
    /// True if IP packets have no LLC/SNAP header in it.
    pub mux: bool,
    /// IP address of an end outside the lab, if known.
    pub peer: Option<Ipv4Addr>,
    /// The ATM line that it carries.
    pub line: Option<ElanId>,
}

/// A permanent connection in one switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The switch.
    pub switch: NodeId,
    /// Port and label towards the first end.
    pub from: (usize, Vc),
    /// Port and label towards the second end.
    pub to: (usize, Vc),
}

/// A LANE client and the IP interface on top of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Lec {
    /// Number N of interface `lecN` on its node.
    pub index: u8,
    /// The ELAN that it joins.
    pub elan: ElanId,
    /// MAC address, unique in the lab.
    pub mac: MacAddr,
    /// ATM address: the node's, with selector N.
    pub address: AtmAddress,
    /// IP address of the interface; `None` for the further VLANs of a bridge, in which it has no IP side.
    pub ip: Option<Ipv4Addr>,
    /// True to use LANE v2 if the LES supports it.
    pub v2: bool,
    /// True to give the name of the ELAN to the LECS.
    pub named: bool,
    /// True to accept and make LLC-multiplexed data direct calls.
    pub llc: bool,
    /// Groups whose frames the client receives, besides broadcast; `None` means all groups.
    pub groups: Option<Vec<MacAddr>>,
    /// Traffic of data direct connections that it calls, in both directions; `None`: best effort.
    pub data: Option<TrafficParams>,
    /// On a Classical IP subnet: where it differs from what is usual there.
    pub member: Option<Box<Member>>,
}

impl Lec {
    /// A client with the defaults of a lab file, with its MAC, ATM and IP addresses.
    #[must_use]
    pub const fn new(
        index: u8,
        elan: ElanId,
        mac: MacAddr,
        address: AtmAddress,
        ip: Option<Ipv4Addr>,
    ) -> Self {
        Self {
            index,
            elan,
            mac,
            address,
            ip,
            v2: true,
            named: true,
            llc: false,
            groups: None,
            data: None,
            member: None,
        }
    }

    /// IP address of an interface with an IP side; 0.0.0.0 without one.
    #[must_use]
    pub fn own_ip(&self) -> Ipv4Addr {
        self.ip.unwrap_or(Ipv4Addr::UNSPECIFIED)
    }
}

/// An entry of an IP routing table. The subnets of the node's own interfaces are not listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpRoute {
    /// Destination; `0.0.0.0/0` is the default route.
    pub to: IpNet,
    /// Next hop, on the subnet of one of the node's interfaces.
    pub via: Ipv4Addr,
    /// Index of that interface in [`Router::lecs`]; 0 on a host.
    pub lec: usize,
}

/// An IP host.
#[derive(Clone, Debug, PartialEq)]
pub struct Host {
    /// The attachment.
    pub attachment: Attachment,
    /// Its LANE clients and members of Classical IP subnets: one for each of its interfaces, or one for each of
    /// `vlans`, and behind these one for each line that is a port of its bridge. The first has the address of the host.
    pub lecs: Vec<Lec>,
    /// VIDs of the VLANs that it bridges to the ELANs of `lecs`, in their order; empty if it reads no tags.
    pub vlans: Vec<u16>,
    /// Routes beyond its own subnet: usually one default route; empty if its ELAN has no router.
    pub routes: Vec<IpRoute>,
    /// Permanent neighbours on its subnet, which it never requests.
    pub neighbours: Vec<(Ipv4Addr, MacAddr)>,
    /// Its MPOA client; `None` if MPOA is off.
    pub mpoa: Option<Box<Mpc>>,
    /// Its NHRP client without MPOA.
    pub nhrp: Option<Nhc>,
    /// TCP settings of the embedded stack.
    pub tcp: Box<Tcp>,
    /// Costs of packets at its CPU; `None` if nothing. Its seed is that of the run.
    pub cpu: Option<Box<CpuConfig>>,
    /// The receive path of its adapter; `None` if it is as fast as the link.
    pub intake: Option<IntakeConfig>,
    /// Its clock; `None` if it is that of the lab.
    pub clock: Option<Clock>,
    /// True if the node knows only its ESI, and registers its addresses by ILMI. The addresses given here are those
    /// that it will get.
    pub ilmi: bool,
    /// Version of the UNI.
    pub uni: Version,
    /// True or false if the file requires a Linux kernel host or an embedded one; with `None` the driver decides.
    pub kernel: Option<bool>,
    /// Settings of its adapter for connections.
    pub nic: NicConfig,
    /// Programs that use the ATM service directly.
    pub sockets: Vec<Program>,
    /// Hosts on an Ethernet segment behind it. If there are any, it is a bridge, and its LANE client a proxy.
    pub bridge: Vec<SegmentHost>,
    /// The cable of the segment; with `ports`, only their default.
    pub ethernet: Cable,
    /// Ethernet ports with cables of their own; if empty, all hosts of the segment share one cable.
    pub ports: Vec<EthernetPort>,
    /// Its LANE client stands for stations behind a bridge of the kernel; `None` if it does not.
    pub proxy: Option<Box<Proxy>>,
}

/// Ethernet of the machine behind a kernel host whose LANE client is a proxy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proxy {
    /// Interfaces of the machine that become ports of the host's bridge.
    pub ports: Vec<String>,
    /// Bridge of the machine that gets the host's interface as a port, if the machine is the host.
    pub bridge: Option<String>,
}

impl Host {
    /// True if the host bridges: its LANE client is a proxy.
    #[must_use]
    pub fn bridges(&self) -> bool {
        let has_ports = self.lecs.iter().any(|lec| lec.ip.is_none());
        has_ports || !self.bridge.is_empty() || self.proxy.is_some()
    }

    /// The lines that are ports of its bridge: the numbers of the interface on the line and of that on the VLAN, or on
    /// the network of the host, of which the line is a part.
    pub fn line_ports<'a>(&'a self, lab: &'a Lab) -> impl Iterator<Item = [usize; 2]> + 'a {
        let networks = self.vlans.len().max(1);
        let (own, ports) = self.lecs.split_at(networks.min(self.lecs.len()));
        let ports = (networks..).zip(ports).filter(|(_, lec)| lec.ip.is_none());
        ports.map(move |(line, port)| {
            let network = lab.network_of(port.elan);
            let mut own = own.iter();
            let vlan = own.position(|lec| lab.network_of(lec.elan) == network);
            [line, vlan.unwrap_or(0)]
        })
    }

    /// Its LANE client with an address; that of the first VLAN.
    #[must_use]
    pub fn lec(&self) -> &Lec {
        &self.lecs[0]
    }

    /// The cable on which a station of its segment sits: that of its port, if the bridge has ports.
    #[must_use]
    pub fn cable_of(&self, station: usize) -> Cable {
        let cable = self
            .port_of(station)
            .map_or(self.ethernet, |port| port.cable);
        Cable {
            tagged: cable.tagged || self.tag_of(station).is_some(),
            ..cable
        }
    }

    fn port_of(&self, station: usize) -> Option<&EthernetPort> {
        let mut ports = self.ports.iter();
        ports.find(|port| port.stations.contains(&station))
    }

    /// The VID in the tags of a station of its segment; `None` if its frames have none.
    #[must_use]
    pub fn tag_of(&self, station: usize) -> Option<u16> {
        let elan = self.bridge.get(station)?.elan;
        let mut vlans = self.vlans.iter().zip(&self.lecs);
        let (vid, _) = vlans.find(|(_, lec)| lec.elan == elan)?;
        let tagged = &self.port_of(station)?.vlans.tagged;
        tagged.contains(vid).then_some(*vid)
    }
}

/// A line that is a port of the bridge of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinePort {
    /// The host.
    pub host: NodeId,
    /// Numbers of its interfaces on the line, and on the rest of the network.
    pub interfaces: [usize; 2],
}

impl LinePort {
    /// The line.
    #[must_use]
    pub fn line(&self, lab: &Lab) -> ElanId {
        lab.node(self.host).lecs()[self.interfaces[0]].elan
    }
}

/// An embedded host on the Ethernet segment behind a bridging host, in its subnet and with its default route.
#[derive(Clone, Debug, PartialEq)]
pub struct SegmentHost {
    /// Name, unique among all nodes.
    pub name: String,
    /// MAC address.
    pub mac: MacAddr,
    /// IP address.
    pub ip: Ipv4Addr,
    /// The ELAN of its VLAN; that of the host without VLANs.
    pub elan: ElanId,
    /// Routes beyond its own subnet.
    pub routes: Vec<IpRoute>,
}

/// An IP router.
#[derive(Clone, Debug, PartialEq)]
pub struct Router {
    /// The attachment.
    pub attachment: Attachment,
    /// Its LANE clients; entry N is interface `lecN`.
    pub lecs: Vec<Lec>,
    /// Routes beyond its own subnets.
    pub routes: Vec<IpRoute>,
    /// Forwarding speed.
    pub forwarding: Forwarding,
    /// Limit of what waits for forwarding.
    pub queue: QueueLimit,
    /// Its MPOA server and NHRP server; `None` if MPOA is off and the router has no subnet with NHRP.
    pub mpoa: Option<Mps>,
    /// As in [`Host::ilmi`], except that its MPOA server keeps its address.
    pub ilmi: bool,
    /// Version of the UNI.
    pub uni: Version,
    /// As in [`Host::kernel`].
    pub kernel: Option<bool>,
    /// As in [`Host::nic`].
    pub nic: NicConfig,
}

/// Parameters of an MPOA client. Source: MPOA 1.1 §4.1, parameters MPC-p1..p6.
#[derive(Clone, Debug, PartialEq)]
pub struct Mpc {
    /// Time of the run at which the client starts.
    pub start: Duration,
    /// Control address (selector 0x50).
    pub control: AtmAddress,
    /// Data address for shortcuts (selector 0x51).
    pub data: AtmAddress,
    /// MPC-p1 to p6.
    pub params: MpcParams,
    /// True if the egress asks for tagged frames on the shortcut.
    pub tag: bool,
    /// Packets that get shortcuts of their own with guaranteed traffic.
    pub qos: Vec<QosEntry>,
    /// True if the entries of `qos` are those of the lab, for all hosts without entries of their own.
    pub shared_qos: bool,
    /// MPOA servers that do not announce themselves: MAC address on the ELAN, and control address.
    pub static_mps: Vec<(MacAddr, AtmAddress)>,
    /// Keys shared with servers and with other clients.
    pub keys: auth::Keys,
}

/// An NHRP client without MPOA.
#[derive(Clone, Debug, PartialEq)]
pub struct Nhc {
    /// Its address (selector 0x54).
    pub address: AtmAddress,
    /// Its router, which is also its NHRP server: IP address on the subnet, and control address.
    pub server: (Ipv4Addr, AtmAddress),
    /// Keys shared with the server and with other clients.
    pub keys: auth::Keys,
    /// Its parameters.
    pub params: client::Params,
}

/// Parameters of an MPOA server. Source: MPOA 1.1 §4.2, parameters MPS-p1..p7.
#[derive(Clone, Debug, PartialEq)]
pub struct Mps {
    /// Time of the run at which the server starts.
    pub start: Duration,
    /// Control address (selector 0x52).
    pub control: AtmAddress,
    /// MPS-p1 to p7, in whole seconds.
    pub params: MpsParams,
    /// True to trigger a client to resolve with the first routed packet of its flow.
    pub trigger: bool,
    /// True if stations may register their addresses on its networks.
    pub register: bool,
    /// NHRP servers on its Classical IP subnets, by their IP addresses there.
    pub servers: BTreeMap<Ipv4Addr, AtmAddress>,
    /// Keys shared with neighbours: servers, clients and stations.
    pub keys: auth::Keys,
}

/// One end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkEnd {
    /// The node.
    pub node: NodeId,
    /// Port number on the node; 0 on an end system.
    pub port: u16,
}

impl NodeKind {
    /// The services that can fail on their own.
    #[must_use]
    pub const fn services(&self) -> &'static [Service] {
        match self {
            Self::Switch(_) | Self::Outside(_) => &[],
            Self::LaneServer(server) if server.rank > 0 => &[Service::Les, Service::Bus],
            Self::LaneServer(_) => &[Service::Lecs, Service::Les, Service::Bus],
            Self::Router(_) => &[Service::Mps],
            Self::Host(_) => &[Service::Mpc],
        }
    }
}

impl Node {
    /// The node's attachment; `None` for a switch.
    #[must_use]
    pub fn attachment(&self) -> Option<&Attachment> {
        match &self.kind {
            NodeKind::Switch(_) => None,
            NodeKind::LaneServer(server) => Some(&server.attachment),
            NodeKind::Router(router) => Some(&router.attachment),
            NodeKind::Host(host) => Some(&host.attachment),
            NodeKind::Outside(outside) => Some(&outside.attachment),
        }
    }
    /// The LANE clients of the node.
    #[must_use]
    pub fn lecs(&self) -> &[Lec] {
        match &self.kind {
            NodeKind::Switch(_) | NodeKind::LaneServer(_) | NodeKind::Outside(_) => &[],
            NodeKind::Router(router) => &router.lecs,
            NodeKind::Host(host) => &host.lecs,
        }
    }
}
