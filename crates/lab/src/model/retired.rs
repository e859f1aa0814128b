//! Parts of a running lab that were removed from it.
//!
//! They keep their places in the lists, so that what remains keeps its index, and what they have left behind, such as
//! lost packets in the accounts, keeps its name.

use super::{Elan, ElanId, Lab, Link, LinkId, NodeId, Port, Scale, Switch};
use std::collections::BTreeSet;

/// Parts that are no longer there, by their indices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Retired {
    /// Nodes.
    pub nodes: BTreeSet<NodeId>,
    /// Links.
    pub links: BTreeSet<LinkId>,
    /// ELANs and subnets.
    pub elans: BTreeSet<ElanId>,
    /// Flows.
    pub flows: BTreeSet<usize>,
    /// Counts of the lab at its start, for which all nodes have room; `None` until it changes.
    pub start: Option<Scale>,
}

impl Retired {
    /// Number of all parts.
    #[must_use]
    pub fn count(&self) -> usize {
        self.nodes.len() + self.links.len() + self.elans.len() + self.flows.len()
    }
}

impl Lab {
    /// True if a node is there.
    #[must_use]
    pub fn has_node(&self, id: NodeId) -> bool {
        !self.retired.nodes.contains(&id)
    }

    /// True if a link is there.
    #[must_use]
    pub fn has_link(&self, id: LinkId) -> bool {
        !self.retired.links.contains(&id)
    }

    /// True if an ELAN or a subnet is there.
    #[must_use]
    pub fn has_elan(&self, id: ElanId) -> bool {
        !self.retired.elans.contains(&id)
    }

    /// The ELANs and subnets that are there.
    pub fn elans(&self) -> impl Iterator<Item = (ElanId, &Elan)> {
        let all = self.elans.iter().enumerate();
        let all = all.map(|(id, elan)| (ElanId(id), elan));
        all.filter(|(id, _)| self.has_elan(*id))
    }

    /// The ports of a switch that have links, with their numbers.
    pub fn ports_of<'a>(&'a self, switch: &'a Switch) -> impl Iterator<Item = (usize, &'a Port)> {
        let all = switch.ports.iter().enumerate();
        all.filter(|(_, port)| self.has_link(port.link))
    }

    /// The links that are there.
    pub fn links(&self) -> impl Iterator<Item = (LinkId, &Link)> {
        let all = self.links.iter().enumerate();
        let all = all.map(|(id, link)| (LinkId(id), link));
        all.filter(|(id, _)| self.has_link(*id))
    }
}
