//! Nodes and services that a lab waits for before it can be used.

use super::World;
use aerostat_lab::model::{NodeId, NodeKind};
use aerostat_lab::plant::{LabNode, LinkEnd};
use aerostat_node::host::{Station, Waits};
use aerostat_node::switch::{PortNo, Switch};
use aerostat_proto::interface::Phase;
use aerostat_wire::AtmAddress;
use std::net::Ipv4Addr;

impl World {
    /// The conditions that are missing before the lab can be used, in words.
    #[must_use]
    pub fn waits_for(&self) -> Vec<String> {
        let mut missing = Vec::new();
        for (id, name, node) in self.nodes() {
            match node {
                None => missing.push(format!("{name} to start")),
                // The lab cannot know whether there is a peer.
                Some(LabNode::Outside(_)) => {}
                Some(node) => {
                    if let Some(switch) = node.as_switch() {
                        self.switch_waits(id, name, switch, &mut missing);
                    } else if let Some(station) = node.as_station() {
                        self.station_waits(id, name, station, &mut missing);
                    }
                }
            }
        }
        missing
    }

    fn switch_waits(&self, node: NodeId, name: &str, switch: &Switch, missing: &mut Vec<String>) {
        let inside = |port: &PortNo| {
            let line = self.plant.line_from(LinkEnd { node, port: port.0 });
            let peer = line.and_then(|line| self.node(self.plant.line(line).to.node));
            !matches!(peer, Some(LabNode::Outside(_)))
        };
        let ports = switch.port_infos();
        let down = ports.filter(|port| port.phase != Phase::Ready && inside(&port.port));
        missing.extend(down.map(|port| format!("signalling between {name} and {}", port.name)));
    }

    fn station_waits(&self, id: NodeId, name: &str, station: &Station, missing: &mut Vec<String>) {
        let reason = |waits| {
            let text = station.host().attempts(waits).text();
            text.map(|text| format!(" ({text})")).unwrap_or_default()
        };
        let waits = station.host().waits().into_iter();
        missing.extend(waits.filter_map(|waits| match waits {
            Waits::Elan(n) => {
                let why = reason(waits);
                Some(format!("lec{n} of {name} to join its ELAN{why}"))
            }
            Waits::Clip(n) if self.has_arp_server(id, n) => {
                let owner = station.host().other_owner(n);
                let why = owner.map(|(ip, address)| self.other_owner(ip, address));
                let why = why.unwrap_or_else(|| reason(waits));
                Some(format!(
                    "lec{n} of {name} to register with its ATMARP server{why}"
                ))
            }
            Waits::Line(n) => {
                let why = reason(waits);
                Some(format!("nas{n} of {name} to open its line{why}"))
            }
            Waits::Nhrp if self.has_nhrp_server(id) => {
                let why = reason(waits);
                Some(format!("{name} to register with its NHRP server{why}"))
            }
            // The lab cannot know whether a server outside is present. What waits for ILMI is told of its interface.
            Waits::Clip(_) | Waits::Nhrp | Waits::Ilmi => None,
        }));
        let unreached = self.ledger.starts.members().unreached(id);
        missing.extend(unreached.map(|n| format!("the BUS to reach lec{n} of {name}")));
    }

    /// Why a member of a Classical IP subnet is not registered, in parentheses.
    fn other_owner(&self, ip: Ipv4Addr, address: AtmAddress) -> String {
        let mut nodes = self.lab.nodes();
        let owner = nodes.find(|(_, node)| {
            node.attachment()
                .is_some_and(|at| at.address.same_end_system(&address))
        });
        let owner = owner.map_or_else(|| address.to_string(), |(_, node)| node.name.clone());
        format!(
            " (which has {ip} at {owner}: {owner} has the same IP address, or the entry {ip} of 'next_hops:' is wrong)"
        )
    }

    /// True if interface `itf` of a node is on a Classical IP subnet whose ATMARP server is in the lab.
    fn has_arp_server(&self, node: NodeId, itf: usize) -> bool {
        let lec = self.lab.node(node).lecs().get(itf);
        let lis = lec.and_then(|lec| self.lab.elan(lec.elan).clip.as_ref());
        lis.is_some_and(|lis| lis.server.is_some())
    }

    /// True if the server of a host's NHRP client is in the lab.
    fn has_nhrp_server(&self, node: NodeId) -> bool {
        let NodeKind::Host(host) = &self.lab.node(node).kind else {
            return false;
        };
        let server = host.nhrp.as_ref().map(|nhc| nhc.server.0);
        let mut lecs = self.lab.nodes().flat_map(|(_, node)| node.lecs());
        server.is_some() && lecs.any(|lec| lec.ip == server)
    }
}
