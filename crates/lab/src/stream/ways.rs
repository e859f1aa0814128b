//! The way of a connection: the links that cells of its caller take now, with the label on each.
//!
//! Like [`crate::circuits`], a walk goes from table to table through the switches. A way remembers which entries of
//! tables it has looked at, so that a change of a table leads to the ways that it concerns.

use crate::circuits::Network;
use crate::model::{Lab, LinkEnd, LinkId, NodeId};
use aerostat_node::atm::PortVc;
use aerostat_proto::uni::CallId;
use aerostat_wire::Vc;
use std::collections::{BTreeMap, BTreeSet};

/// A connection: a call by its caller, or a permanent connection of the lab by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Conn {
    Call(NodeId, CallId),
    Pvc(usize),
}

/// A connection before all others.
const FIRST: Conn = Conn::Call(NodeId(0), CallId(0));

/// A way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Way {
    /// Links and labels, depth first.
    pub(super) hops: Vec<(LinkId, Vc)>,
    /// End systems that it reaches, with the label there.
    pub(super) ends: Vec<(NodeId, Vc)>,
    /// End system and label where it begins.
    pub(super) from: Option<(NodeId, Vc)>,
    /// Entries of the tables of switches on it, also those that do not exist.
    looked: BTreeSet<(NodeId, PortVc)>,
}

/// The links of a lab by their ends, and the ways of connections by what they depend on.
#[derive(Debug)]
pub(super) struct Ways {
    links: BTreeMap<LinkEnd, (LinkEnd, LinkId)>,
    ways: BTreeMap<Conn, Way>,
    looked: BTreeSet<(NodeId, PortVc, Conn)>,
    /// Connections by link and label.
    hops: BTreeMap<(LinkId, Vc), Conn>,
    /// Connections by end system and label, at both ends.
    labels: BTreeMap<(NodeId, Vc), Conn>,
}

impl Ways {
    pub(super) fn new(lab: &Lab) -> Self {
        let links = lab.links.iter().enumerate().flat_map(|(number, link)| {
            let [a, b] = link.ends;
            [(a, (b, LinkId(number))), (b, (a, LinkId(number)))]
        });
        Self {
            links: links.collect(),
            ways: BTreeMap::new(),
            looked: BTreeSet::new(),
            hops: BTreeMap::new(),
            labels: BTreeMap::new(),
        }
    }

    /// The way of cells that this end system sends with this label.
    fn walk(&self, network: &impl Network, (node, vc): (NodeId, Vc)) -> Way {
        let mut way = Way {
            from: Some((node, vc)),
            ..Way::default()
        };
        let mut walks = vec![(LinkEnd { node, port: 0 }, vc)];
        while let Some((at, vc)) = walks.pop() {
            let Some((far, link)) = self.links.get(&at) else {
                continue;
            };
            way.hops.push((*link, vc));
            let entry = PortVc::new(far.port, vc);
            match network.switch(far.node) {
                // An entry for the second time would be a loop.
                Some(switch) if way.looked.insert((far.node, entry)) => {
                    let leaves = switch.fabric().leaves(entry);
                    let next = leaves.into_iter().rev().map(|leaf| {
                        let (node, port) = (far.node, leaf.port);
                        (LinkEnd { node, port }, leaf.vc)
                    });
                    walks.extend(next);
                }
                Some(_) => {}
                None => {
                    way.looked.insert((far.node, entry));
                    way.ends.push((far.node, vc));
                }
            }
        }
        way
    }

    /// Finds the way of a connection anew; a connection without a label has none.
    pub(super) fn find(
        &mut self,
        key: Conn,
        network: &impl Network,
        from: Option<(NodeId, Vc)>,
    ) -> &Way {
        let way = from.map(|from| self.walk(network, from));
        let way = way.unwrap_or_default();
        if self.ways.get(&key) != Some(&way) {
            self.forget(key);
            for (node, entry) in &way.looked {
                self.looked.insert((*node, *entry, key));
            }
            self.hops.extend(way.hops.iter().map(|hop| (*hop, key)));
            let ends = way.from.iter().chain(&way.ends);
            self.labels.extend(ends.map(|end| (*end, key)));
            self.ways.insert(key, way);
        }
        self.ways.entry(key).or_default()
    }

    /// Removes a connection.
    pub(super) fn forget(&mut self, key: Conn) {
        let Some(way) = self.ways.remove(&key) else {
            return;
        };
        for (node, entry) in way.looked {
            self.looked.remove(&(node, entry, key));
        }
        for hop in way.hops {
            if self.hops.get(&hop) == Some(&key) {
                self.hops.remove(&hop);
            }
        }
        for end in way.from.into_iter().chain(way.ends) {
            if self.labels.get(&end) == Some(&key) {
                self.labels.remove(&end);
            }
        }
    }

    /// The connections whose ways depend on the table of a switch, or on one entry of it.
    pub(super) fn through(&self, node: NodeId, entry: Option<PortVc>) -> Vec<Conn> {
        let first = entry.unwrap_or(PortVc::new(0, Vc::new(0, 0)));
        let all = self.looked.range((node, first, FIRST)..);
        let of =
            all.take_while(|(at, of, _)| *at == node && entry.is_none_or(|entry| entry == *of));
        of.map(|(_, _, key)| *key).collect()
    }
    /// The connection with this label on a link.
    pub(super) fn on(&self, link: LinkId, vc: Vc) -> Option<Conn> {
        self.hops.get(&(link, vc)).copied()
    }
    /// The connection with this label at an end system.
    pub(super) fn at(&self, node: NodeId, vc: Vc) -> Option<Conn> {
        self.labels.get(&(node, vc)).copied()
    }
    /// End systems with the labels of a connection there.
    pub(super) fn labels_of(&self, key: Conn) -> Vec<(NodeId, Vc)> {
        let ends = |way: &Way| {
            way.from
                .into_iter()
                .chain(way.ends.iter().copied())
                .collect()
        };
        self.ways.get(&key).map_or_else(Vec::new, ends)
    }
    pub(super) fn way(&self, key: Conn) -> Option<&Way> {
        self.ways.get(&key)
    }
}
