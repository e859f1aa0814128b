//! Questions about a lab: nodes by kind and name, addresses, and what a node has.

use super::LinePort;
use super::elan::{Elan, LaneServer, Member, SubnetKind};
use super::outside::Outside;
use super::traffic::Flow;
use super::{
    ElanId, Host, Lab, Lec, Link, LinkId, Node, NodeId, NodeKind, Router, SegmentHost, Side, Switch,
};
use std::net::Ipv4Addr;

impl Lab {
    /// Names of the two ends of a flow.
    #[must_use]
    pub fn ends_of(&self, flow: &Flow) -> [&str; 2] {
        [(flow.from, flow.segment[0]), (flow.to, flow.segment[1])].map(|(id, behind)| {
            self.behind(id, behind)
                .map_or(&*self.node(id).name, |h| &h.name)
        })
    }

    /// The end system, or the far end of a link out of the lab, at the other end of the link of `id`, and the side that
    /// `id` plays in signalling; `None` if the link leads to a switch of the lab.
    #[must_use]
    pub fn back_to_back(&self, id: NodeId) -> Option<(NodeId, Side)> {
        let attachment = self.node(id).attachment()?;
        self.node(attachment.switch).attachment()?;
        let ends = self.links.get(attachment.link.0)?.ends.map(|end| end.node);
        match ends {
            [own, peer] if own == id => Some((peer, Side::Network)),
            [peer, own] if own == id => Some((peer, Side::User)),
            _ => None,
        }
    }

    /// The far end of the link of this end system, if the link leads out of the lab.
    #[must_use]
    pub fn uplink(&self, id: NodeId) -> Option<(NodeId, &Outside)> {
        let (peer, _) = self.back_to_back(id)?;
        match &self.node(peer).kind {
            NodeKind::Outside(outside) => Some((peer, outside)),
            _ => None,
        }
    }

    /// The network of which a subnet is a part: of a line that a host bridges to it; otherwise the subnet itself.
    #[must_use]
    pub fn network_of(&self, subnet: ElanId) -> ElanId {
        let line = self.elans.get(subnet.0).and_then(|elan| elan.line);
        line.and_then(|line| line.into).unwrap_or(subnet)
    }

    /// The ports by which hosts bridge lines to this network.
    pub fn line_ports(&self, network: ElanId) -> impl Iterator<Item = LinePort> {
        let hosts = self.hosts();
        let all = hosts.flat_map(move |(host, _, model)| {
            let ports = model.line_ports(self);
            ports.map(move |interfaces| LinePort { host, interfaces })
        });
        all.filter(move |port| self.network_of(port.line(self)) == network)
    }

    /// A host on the Ethernet segment behind a node.
    #[must_use]
    pub fn behind(&self, id: NodeId, place: Option<usize>) -> Option<&SegmentHost> {
        match &self.node(id).kind {
            NodeKind::Host(host) => host.bridge.get(place?),
            _ => None,
        }
    }

    /// The LANE client that serves an end of a flow: of a station behind a bridge that of its VLAN, and otherwise the
    /// first one of the node.
    #[must_use]
    pub fn client_of(&self, (id, behind): (NodeId, Option<usize>)) -> Option<&Lec> {
        let lecs = self.node(id).lecs();
        match self.behind(id, behind) {
            Some(station) => lecs.iter().find(|lec| lec.elan == station.elan),
            None => lecs.first(),
        }
    }

    /// IP address of an end of a flow: a node, or a station behind it.
    #[must_use]
    pub fn ip_of(&self, (id, behind): (NodeId, Option<usize>)) -> Option<Ipv4Addr> {
        self.ip_over((id, behind), None)
    }

    /// IP address of an end of a flow that goes over the interface on `over`, or over the first one.
    #[must_use]
    pub fn ip_over(
        &self,
        (id, behind): (NodeId, Option<usize>),
        over: Option<ElanId>,
    ) -> Option<Ipv4Addr> {
        match self.behind(id, behind) {
            Some(station) => Some(station.ip),
            None => self.client_over((id, None), over)?.ip,
        }
    }

    /// The client of an end of a flow: that on `over`, if it has one there, or as [`Self::client_of`].
    #[must_use]
    pub fn client_over(
        &self,
        (id, behind): (NodeId, Option<usize>),
        over: Option<ElanId>,
    ) -> Option<&Lec> {
        let mut lecs = self.node(id).lecs().iter();
        let there = lecs.find(|lec| Some(lec.elan) == over && behind.is_none());
        there.or_else(|| self.client_of((id, behind)))
    }

    /// IP addresses of a node's stack, and of the hosts on the Ethernet segment behind it.
    pub fn addresses_of(&self, id: NodeId) -> impl Iterator<Item = Ipv4Addr> {
        let behind: &[SegmentHost] = match &self.node(id).kind {
            NodeKind::Host(host) => &host.bridge,
            _ => &[],
        };
        let own = self.node(id).lecs().iter().filter_map(|lec| lec.ip);
        own.chain(behind.iter().map(|host| host.ip))
    }

    /// The nodes that are there, with their ids.
    pub fn nodes(&self) -> impl Iterator<Item = (NodeId, &Node)> {
        let all = self.nodes.iter().enumerate();
        let all = all.map(|(i, n)| (NodeId(i), n));
        all.filter(|(id, _)| self.has_node(*id))
    }

    /// The switches.
    pub fn switches(&self) -> impl Iterator<Item = (NodeId, &Node, &Switch)> {
        self.nodes().filter_map(|(id, node)| match &node.kind {
            NodeKind::Switch(switch) => Some((id, node, switch)),
            _ => None,
        })
    }

    /// The routers.
    pub fn routers(&self) -> impl Iterator<Item = (NodeId, &Node, &Router)> {
        self.nodes().filter_map(|(id, node)| match &node.kind {
            NodeKind::Router(router) => Some((id, node, router)),
            _ => None,
        })
    }

    /// The hosts.
    pub fn hosts(&self) -> impl Iterator<Item = (NodeId, &Node, &Host)> {
        self.nodes().filter_map(|(id, node)| match &node.kind {
            NodeKind::Host(host) => Some((id, node, host)),
            _ => None,
        })
    }

    /// True if anything in the lab is measured: traffic, or programs with ATM sockets.
    #[must_use]
    pub fn keeps_books(&self) -> bool {
        !self.traffic.is_empty() || self.hosts().any(|(.., host)| !host.sockets.is_empty())
    }

    /// The far ends of links out of the lab.
    pub fn outside(&self) -> impl Iterator<Item = (NodeId, &Node, &Outside)> {
        self.nodes().filter_map(|(id, node)| match &node.kind {
            NodeKind::Outside(outside) => Some((id, node, outside)),
            _ => None,
        })
    }

    /// Reason why the lab cannot run in virtual time: a part of it is outside. `None` if it can.
    #[must_use]
    pub fn outside_of_time(&self) -> Option<String> {
        if let Some((_, node, _)) = self.outside().next() {
            let name = &node.name;
            return Some(format!(
                "{name} is outside the lab, where time cannot be virtual"
            ));
        }
        // Without a link out of the lab they are at the sockets of a host.
        let elan = self.elans.iter().find(|elan| elan.foreign.is_some())?;
        let name = &elan.name;
        Some(format!(
            "the LANE servers of {name} are programs of the machine, whose time is not virtual"
        ))
    }

    /// True if this subnet may have stations outside the lab that the lab does not know: routers, for example.
    #[must_use]
    pub fn is_open(&self, elan: &Elan) -> bool {
        let others = self.outside().next().is_some();
        others && (elan.foreign.is_some() || self.lane_server().is_none())
    }

    /// Settings of the member of a Classical IP subnet at an interface; `None` on an ELAN.
    #[must_use]
    pub fn member<'a>(&'a self, lec: &'a Lec) -> Option<&'a Member> {
        let lis = self.elan(lec.elan).clip.as_ref()?;
        Some(lec.member.as_deref().unwrap_or(&lis.usual))
    }

    /// Largest IP packet of an interface, octets.
    #[must_use]
    pub fn mtu_of(&self, lec: &Lec) -> u16 {
        let member = self.member(lec);
        member.map_or_else(|| self.elan(lec.elan).ip_mtu(), |member| member.mtu)
    }

    /// Name of an IP interface: `lecN` on an ELAN, `atmN` on a Classical IP subnet, `nasN` on an ATM line.
    #[must_use]
    pub fn interface_name(&self, lec: &Lec) -> String {
        let kind = match self.elan(lec.elan).kind() {
            SubnetKind::Lane => "lec",
            SubnetKind::ClassicalIp => "atm",
            SubnetKind::Line => "nas",
        };
        format!("{kind}{}", lec.index)
    }

    /// The first host of the LANE services, which has the LECS, if the lab has such services.
    #[must_use]
    pub fn lane_server(&self) -> Option<(NodeId, &Node, &LaneServer)> {
        self.nodes().find_map(|(id, node)| match &node.kind {
            NodeKind::LaneServer(server) => Some((id, node, server)),
            _ => None,
        })
    }

    /// The node of this name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<NodeId> {
        let mut all = self.nodes();
        all.find(|(_, node)| node.name == name).map(|(id, _)| id)
    }

    /// The node with this id.
    ///
    /// # Panics
    /// If the id belongs to another lab.
    #[must_use]
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0]
    }

    /// The link with this id.
    ///
    /// # Panics
    /// If the id belongs to another lab.
    #[must_use]
    pub fn link(&self, id: LinkId) -> &Link {
        &self.links[id.0]
    }

    /// The ELAN with this id.
    ///
    /// # Panics
    /// If the id belongs to another lab.
    #[must_use]
    pub fn elan(&self, id: ElanId) -> &Elan {
        &self.elans[id.0]
    }
}
