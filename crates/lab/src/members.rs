//! The interfaces that all other members of their networks can reach. Traffic without a start, and `ready`, wait for
//! them.
//!
//! A LANE client has joined when it has answered the call of its BUS. The switches add its leaf to the multicast tree
//! while this answer travels to the BUS. A broadcast frame, for example an ARP request, misses the client until then.
//! An interface is therefore ready when its client has joined and the BUS has received the answer
//! ([`HostEvent::Reaches`](aerostat_node::host::HostEvent::Reaches)). An interface on a Classical IP subnet is
//! ready when the server has confirmed its registration. A BUS outside the lab reports nothing: then the client alone
//! decides.

use crate::model::{Lab, NodeId};
use aerostat_wire::AtmAddress;
use std::collections::{BTreeMap, BTreeSet};

/// One interface.
#[derive(Clone, Debug, Default)]
struct Interface {
    joined: bool,
    /// True if it has been a member at some time.
    ever_joined: bool,
    /// True if a BUS of the lab serves it.
    served: bool,
    /// Nodes of the BUSs that reach it: 2 while it moves from a BUS to the next.
    by: BTreeSet<NodeId>,
}

impl Interface {
    fn is_ready(&self) -> bool {
        self.joined && (!self.by.is_empty() || !self.served)
    }
}

/// The interfaces of all nodes.
#[derive(Clone, Debug)]
pub struct Members {
    /// By node and interface.
    nodes: Vec<Vec<Interface>>,
    /// Node and interface that have an address.
    owners: BTreeMap<AtmAddress, (NodeId, usize)>,
}

impl Members {
    /// The interfaces of `lab`, before any has joined.
    #[must_use]
    pub fn new(lab: &Lab) -> Self {
        let servers = lab.lane_server().is_some();
        let nodes = lab.nodes.iter().map(|node| {
            let interfaces = node.lecs().iter().map(|lec| Interface {
                served: servers && lab.elan(lec.elan).is_own(),
                ..Interface::default()
            });
            interfaces.collect()
        });
        let owners = lab.nodes().flat_map(|(id, node)| {
            let lecs = node.lecs().iter().enumerate();
            lecs.map(move |(itf, lec)| (lec.address, (id, itf)))
        });
        Self {
            nodes: nodes.collect(),
            owners: owners.collect(),
        }
    }

    /// The interfaces of a changed lab: those that stay keep their state.
    pub fn adopt(&mut self, lab: &Lab) {
        let mut new = Self::new(lab);
        for (is, was) in new.nodes.iter_mut().zip(&self.nodes) {
            for (is, was) in is.iter_mut().zip(was) {
                let served = is.served;
                *is = Interface {
                    served,
                    ..was.clone()
                };
            }
        }
        *self = new;
    }

    fn change(&mut self, (node, itf): (NodeId, usize), what: impl FnOnce(&mut Interface)) -> bool {
        let interfaces = self.nodes.get_mut(node.0);
        let Some(interface) = interfaces.and_then(|all| all.get_mut(itf)) else {
            return false;
        };
        let before = interface.is_ready();
        what(interface);
        interface.ever_joined |= interface.joined;
        !before && interface.is_ready()
    }

    /// Records that an interface has joined its network, or is no longer a member. True if it has become ready.
    pub fn joined(&mut self, node: NodeId, itf: usize, joined: bool) -> bool {
        self.change((node, itf), |interface| interface.joined = joined)
    }

    /// Records that a BUS of node `server` reaches the LANE client `address`, or no longer reaches it. Returns the node
    /// of which an interface has become ready.
    pub fn reaches(
        &mut self,
        server: NodeId,
        address: AtmAddress,
        reached: bool,
    ) -> Option<NodeId> {
        let owner = *self.owners.get(&address)?;
        let ready = self.change(owner, |Interface { by, .. }| {
            if reached {
                by.insert(server);
            } else {
                by.remove(&server);
            }
        });
        ready.then_some(owner.0)
    }

    /// Records that a node is switched off: its clients are no longer members, and its BUSs reach no client.
    pub fn off(&mut self, node: NodeId) {
        for itf in 0..self.nodes.get(node.0).map_or(0, Vec::len) {
            self.joined(node, itf, false);
        }
        for interface in self.nodes.iter_mut().flatten() {
            interface.by.remove(&node);
        }
    }

    /// True while all members of its network can reach this interface.
    #[must_use]
    pub fn is_ready(&self, (node, itf): (NodeId, usize)) -> bool {
        let interfaces = self.nodes.get(node.0);
        interfaces.is_some_and(|all| all.get(itf).is_some_and(Interface::is_ready))
    }

    /// The interfaces of a node that have joined, but that their BUS does not reach yet.
    pub fn unreached(&self, node: NodeId) -> impl Iterator<Item = usize> + '_ {
        let interfaces = self.nodes.get(node.0).into_iter().flatten().enumerate();
        let not = interfaces.filter(|(_, interface)| interface.joined && !interface.is_ready());
        not.map(|(itf, _)| itf)
    }

    /// True if each interface of a node has been a member of its network at some time.
    #[must_use]
    pub fn ever_joined(&self, node: NodeId) -> bool {
        let interfaces = self.nodes.get(node.0);
        interfaces.is_some_and(|all| all.iter().all(|interface| interface.ever_joined))
    }
}
