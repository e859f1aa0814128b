//! Kernel hosts and routers: a network namespace each, with one TAP per LANE client.

use crate::namespace::{NetNs, ip};
use crate::routes::{KernelRoutes, Lan};
use crate::tap::{Tap, TapConfig};
use aerostat_lab::model::{IpRoute, Lab, NodeId, NodeKind};
use std::io;

/// The kernel side of a node.
#[derive(Debug)]
pub(crate) struct KernelNode {
    /// Its network namespace.
    pub(crate) namespace: NetNs,
    /// Interface `lecN` at place N.
    pub(crate) taps: Vec<Tap>,
    /// A router's own routes.
    pub(crate) routes: Option<KernelRoutes>,
}

impl KernelNode {
    /// Makes namespace, interfaces and routes of the host or router `id`.
    ///
    /// # Errors
    /// What the kernel or `ip` answered, with the node's name.
    pub(crate) fn create(lab: &Lab, id: NodeId) -> io::Result<Self> {
        let node = lab.node(id);
        let named =
            |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", node.name));
        Self::make(lab, id).map_err(named)
    }

    fn make(lab: &Lab, id: NodeId) -> io::Result<Self> {
        let node = lab.node(id);
        let (routes, forwards): (&[IpRoute], bool) = match &node.kind {
            NodeKind::Host(host) => (&host.routes, false),
            NodeKind::Router(router) => (&router.routes, true),
            NodeKind::Switch(_) | NodeKind::LaneServer(_) | NodeKind::Outside(_) => (&[], false),
        };
        let namespace = NetNs::create()?;
        namespace.run(|| settings(forwards))?;
        let mut taps = Vec::new();
        for lec in node.lecs() {
            let elan = lab.elan(lec.elan);
            let config = TapConfig {
                name: lab.interface_name(lec),
                mac: lec.mac,
                ip: Some((lec.ip, elan.subnet.length)),
                mtu: elan.ip_mtu(),
            };
            taps.push(Tap::create(&namespace, &config)?);
        }
        namespace.run(|| {
            for route in routes {
                let to = format!("{}/{}", route.to.network, route.to.length);
                ip(&["route", "add", &to, "via", &route.via.to_string()])?;
            }
            Ok(())
        })?;
        let lans = node.lecs().iter().map(|lec| Lan {
            name: lab.interface_name(lec),
            ip: lec.ip,
            prefix: lab.elan(lec.elan).subnet.length,
        });
        let routes = forwards
            .then(|| KernelRoutes::new(&namespace, lans.collect()))
            .transpose()?;
        Ok(Self {
            namespace,
            taps,
            routes,
        })
    }
}

/// Settings of the calling thread's network namespace, before it has interfaces.
fn settings(forwards: bool) -> io::Result<()> {
    let set = |name: &str, value: &str| {
        let path = format!("/proc/sys/net/{name}");
        std::fs::write(&path, value)
            .map_err(|error| io::Error::new(error.kind(), format!("{path}: {error}")))
    };
    // A packet may come back another way than it went: by a shortcut, or by the other router.
    for scope in ["all", "default"] {
        let _ = set(&format!("ipv4/conf/{scope}/rp_filter"), "0");
        let _ = set(&format!("ipv4/conf/{scope}/send_redirects"), "0");
    }
    let _ = set("ipv6/conf/default/disable_ipv6", "1");
    // Everybody may ping, without a capability of its own inside the lab.
    let _ = set("ipv4/ping_group_range", "0 0");
    if forwards {
        set("ipv4/ip_forward", "1")
    } else {
        Ok(())
    }
}
