//! Kernel hosts and routers: each has a network namespace with one TAP per LANE client.
//!
//! The lab makes the namespace, or it is that of this process ([`Place`]): then the node is the machine itself, and
//! only the node's own interfaces and their routes are changed there, which end with the process. A client makes those
//! of nodes that a running lab gets ([`brought`]).
//!
//! A host that bridges has its address on a bridge of its kernel. Its TAP is a port of the bridge, and so are the far
//! end of each station's cable (see [`crate::stations`]) and the interfaces of the machine that the lab file names. If
//! the node is the machine itself, the TAP has no address, and the bridge is one of the machine. An interface of the
//! machine returns when the namespace ends, if it is a real one; a virtual one ends with it.

pub(crate) mod brought;
pub(crate) mod tcp;

use crate::namespace::{NetNs, ip};
use crate::routes::{KernelRoutes, Lan};
use crate::stations::Stations;
use crate::supervisor::LabProcesses;
use crate::tap::{Tap, TapConfig};
use aerostat_lab::model::{Host, IpRoute, Lab, NodeId, NodeKind};
use std::io;

/// The bridge of a host with stations behind it.
const BRIDGE: &str = "br0";

/// Where the network namespace of a node comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The lab makes it.
    Made,
    /// It is that of this process: the node is the machine itself.
    Own,
}

impl Place {
    /// The namespace of a node, with the settings of a lab if the lab makes it.
    fn namespace(self, forwards: bool, six: bool) -> io::Result<NetNs> {
        match self {
            Self::Own => NetNs::own(),
            Self::Made => {
                let namespace = NetNs::create()?;
                namespace.run(|| settings(forwards, six))?;
                Ok(namespace)
            }
        }
    }
}

/// Objects of a lab in the kernel; all of them end with the process.
#[derive(Default)]
pub(crate) struct Kernels {
    /// Processes of programs inside; `None` if they are those of this machine.
    pub(crate) processes: Option<LabProcesses>,
    pub(crate) nodes: Vec<(NodeId, KernelNode)>,
    /// Kernel hosts behind bridging hosts.
    pub(crate) stations: Stations,
}

/// The kernel side of a node.
#[derive(Debug)]
pub(crate) struct KernelNode {
    /// Its network namespace.
    pub(crate) namespace: NetNs,
    /// The TAPs; interface `lecN` has index N.
    pub(crate) taps: Vec<Tap>,
    /// A router's own routes.
    pub(crate) routes: Option<KernelRoutes>,
    /// The keys `tcp` of a host that its kernel follows.
    pub(crate) tcp: Vec<tcp::Followed>,
}

impl KernelNode {
    /// Makes the namespace, the interfaces and the routes of the host or router `id`.
    ///
    /// # Errors
    /// The error of the kernel or of `ip`, with the node's name.
    pub(crate) fn create(lab: &Lab, id: NodeId, place: Place) -> io::Result<Self> {
        let node = lab.node(id);
        let named =
            |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", node.name));
        Self::make(lab, id, place).map_err(named)
    }

    /// Makes the host's kernel follow the keys `tcp` of the lab file.
    ///
    /// # Errors
    /// What the kernel refuses, with the place of the key in the file.
    pub(crate) fn follow(&mut self, lab: &Lab, id: NodeId) -> io::Result<()> {
        if let NodeKind::Host(host) = &lab.node(id).kind {
            self.tcp = tcp::follow(&self.namespace, &host.tcp)?;
        }
        Ok(())
    }

    fn make(lab: &Lab, id: NodeId, place: Place) -> io::Result<Self> {
        let node = lab.node(id);
        let (routes, forwards): (&[IpRoute], bool) = match &node.kind {
            NodeKind::Host(host) => (&host.routes, false),
            NodeKind::Router(router) => (&router.routes, true),
            NodeKind::Switch(_) | NodeKind::LaneServer(_) | NodeKind::Outside(_) => (&[], false),
        };
        let six = node.lecs().iter().any(|lec| lab.ip6(lec).is_some());
        let namespace = place.namespace(forwards, six)?;
        let host = match &node.kind {
            NodeKind::Host(host) => Some(host).filter(|host| host.bridges()),
            _ => None,
        };
        let bridges = host.is_some();
        let proxy = host.and_then(|host| host.proxy.as_deref());
        let mut taps = Vec::new();
        for lec in node.lecs() {
            let elan = lab.elan(lec.elan);
            let config = TapConfig {
                name: lab.interface_name(lec),
                mac: lec.mac,
                ip: lec
                    .ip
                    .filter(|_| !bridges)
                    .map(|ip| (ip, elan.subnet.length)),
                ip6: lab.ip6(lec).filter(|_| !bridges),
                mtu: lab.mtu_of(lec),
            };
            taps.push(Tap::create(&namespace, &config)?);
            if let Some(own) = proxy.and_then(|proxy| proxy.bridge.as_ref())
                && place == Place::Own
            {
                join(&config.name, own)?;
            }
            if bridges && place == Place::Made {
                let address = format!("{}/{}", lec.own_ip(), elan.subnet.length);
                let six = lab.ip6(lec).map(|(ip, length)| format!("{ip}/{length}"));
                namespace.run(|| {
                    bridge(&config, &address)?;
                    six.map_or(Ok(()), |address| ipv6_of_bridge(&address))
                })?;
            }
        }
        namespace.run(|| {
            for route in routes {
                let to = format!("{}/{}", route.to.network, route.to.length);
                ip(&["route", "add", &to, "via", &route.via.to_string()])?;
            }
            for (to, via) in lab.routes6(id) {
                let (to, via) = (to.to_string(), via.to_string());
                ip(&["-6", "route", "add", &to, "via", &via])?;
            }
            Ok(())
        })?;
        if let NodeKind::Host(host) = &node.kind
            && let Some(lec) = node.lecs().first()
        {
            let lan = lab.interface_name(lec);
            let dev = match (bridges, place) {
                (true, Place::Made) => BRIDGE,
                _ => &lan,
            };
            namespace.run(|| static_neighbours(host, dev))?;
        }
        let routes = forwards
            .then(|| KernelRoutes::new(&namespace, lans(lab, id)))
            .transpose()?;
        Ok(Self {
            namespace,
            taps,
            routes,
            tcp: Vec::new(),
        })
    }
}

/// The interfaces of a node on emulated LANs.
fn lans(lab: &Lab, id: NodeId) -> Vec<Lan> {
    let lecs = lab.node(id).lecs().iter();
    let lans = lecs.map(|lec| Lan {
        name: lab.interface_name(lec),
        ip: lec.own_ip(),
        prefix: lab.elan(lec.elan).subnet.length,
    });
    lans.collect()
}

/// Makes a bridge with one port, the TAP, whose MAC address it takes over. Spanning tree is off; `ip link set br0 type
/// bridge stp_state 1` turns it on. A port forwards at once, and multicast goes to all ports.
fn bridge(tap: &TapConfig, address: &str) -> io::Result<()> {
    let mac = tap.mac.to_string();
    let kind = "type bridge forward_delay 0 stp_state 0 mcast_snooping 0";
    let make = ["link", "add", "name", BRIDGE, "address", &mac];
    ip(&make.into_iter().chain(kind.split(' ')).collect::<Vec<_>>())?;
    ip(&["link", "set", "dev", &tap.name, "master", BRIDGE])?;
    let make = ["address", "add", address, "broadcast", "+", "dev", BRIDGE];
    ip(&make)?;
    ip(&["link", "set", "dev", BRIDGE, "up"])
}

/// Makes an interface of the machine a port of a bridge that is there.
fn join(interface: &str, bridge: &str) -> io::Result<()> {
    ip(&["link", "set", "dev", interface, "master", bridge]).map_err(|error| {
        let text = format!("{bridge} takes no port: {error}; 'ip link show type bridge' lists bridges, and 'ip link add {bridge} type bridge' makes one");
        io::Error::new(error.kind(), text)
    })
}

/// Moves the interfaces that the lab file names from the machine into its hosts, as ports of their bridges. If one
/// cannot be moved, those before it return: a virtual one would end with the host.
///
/// # Errors
/// The error of `ip`, with the host and the interface.
pub(crate) fn plug_ports(lab: &Lab, kernels: &Kernels) -> io::Result<()> {
    let own = NetNs::own()?;
    let machine = own.path();
    let mut moved: Vec<(&NetNs, &str)> = Vec::new();
    for (id, made) in &kernels.nodes {
        let NodeKind::Host(host) = &lab.node(*id).kind else {
            continue;
        };
        for port in host.proxy.iter().flat_map(|proxy| &proxy.ports) {
            let there = made.namespace.path();
            let done = ip(&["link", "set", "dev", port, "netns", &there]).and_then(|()| {
                moved.push((&made.namespace, port));
                made.namespace.run(|| plug_in(port))
            });
            let Err(error) = done else { continue };
            for (from, port) in moved.drain(..).rev() {
                // The machine had it, so it has room for it.
                let back = ["link", "set", "dev", port, "nomaster", "netns", &machine];
                let _ = from.run(|| ip(&back));
            }
            let name = &lab.node(*id).name;
            let text = format!("{name}: port {port}: {error}; 'ip link' lists the interfaces");
            return Err(io::Error::new(error.kind(), text));
        }
    }
    Ok(())
}

/// Makes the interface a port of the bridge of the calling thread's namespace.
pub(crate) fn plug_in(port: &str) -> io::Result<()> {
    ip(&["link", "set", "dev", port, "master", BRIDGE, "up"])
}

/// Sets the permanent neighbours of the lab file, which the kernel never requests.
fn static_neighbours(host: &Host, dev: &str) -> io::Result<()> {
    host.neighbours.iter().try_for_each(|(address, mac)| {
        let (address, mac) = (address.to_string(), mac.to_string());
        let entry = ["neigh", "replace", &address, "lladdr", &mac, "dev", dev];
        ip(&entry)
    })
}

fn ipv6_of_bridge(address: &str) -> io::Result<()> {
    std::fs::write(
        format!("/proc/sys/net/ipv6/conf/{BRIDGE}/disable_ipv6"),
        "0",
    )?;
    ip(&["-6", "address", "add", address, "dev", BRIDGE, "nodad"])
}

/// Settings of the calling thread's network namespace, before it has interfaces.
pub(crate) fn settings(forwards: bool, six: bool) -> io::Result<()> {
    let set = |name: &str, value: &str| {
        let path = format!("/proc/sys/net/{name}");
        std::fs::write(&path, value)
            .map_err(|error| io::Error::new(error.kind(), format!("{path}: {error}")))
    };
    // A packet may come back on another path: by a shortcut, or by the other router.
    for scope in ["all", "default"] {
        let _ = set(&format!("ipv4/conf/{scope}/rp_filter"), "0");
        let _ = set(&format!("ipv4/conf/{scope}/send_redirects"), "0");
    }
    let _ = set("ipv6/conf/default/disable_ipv6", "1");
    if six {
        // Addresses and routes are those of the lab file, and unique: no autoconfiguration and no duplicate address
        // detection.
        for name in ["accept_ra", "autoconf", "accept_dad", "dad_transmits"] {
            let _ = set(&format!("ipv6/conf/default/{name}"), "0");
        }
        if forwards {
            set("ipv6/conf/all/forwarding", "1")?;
        }
    }
    // All users may ping, without a capability inside the lab.
    let _ = set("ipv4/ping_group_range", "0 0");
    if forwards {
        set("ipv4/ip_forward", "1")
    } else {
        Ok(())
    }
}
