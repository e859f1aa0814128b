//! Scope of a stream: the whole lab, or the part that a drawing shows.
//!
//! A page of 5000 hosts would have 100 MB, of which a reader sees nothing: trees of 5000 leaves, each told again for
//! each leaf. A stream for a page leaves out hosts that its drawing only counts, and everything that concerns them
//! alone.

use crate::model::{Lab, LinkId, NodeId};
use crate::picture::{Picture, shown};
use std::collections::BTreeSet;

/// Nodes and links that a stream is about.
#[derive(Clone, Debug)]
pub(super) struct Scope {
    /// Marks of nodes and of links, by number; `None` for the whole lab.
    part: Option<(Vec<bool>, Vec<bool>)>,
    /// Names of the nodes outside.
    outside: BTreeSet<String>,
}

impl Scope {
    /// The whole lab.
    pub(super) const fn whole() -> Self {
        Self {
            part: None,
            outside: BTreeSet::new(),
        }
    }

    /// The part of the lab that a drawing shows, which may be all of it.
    pub(super) fn drawn(lab: &Lab) -> Self {
        let mut nodes = shown(&Picture::of(lab));
        if !nodes.contains(&false) && lab.retired.links.is_empty() {
            return Self::whole();
        }
        // Stations have numbers behind those of the nodes.
        nodes.truncate(lab.nodes.len());
        let ends = |ends: &[crate::model::LinkEnd; 2]| ends.iter().all(|end| nodes[end.node.0]);
        let links = lab.links.iter().enumerate();
        let links = links.map(|(id, link)| ends(&link.ends) && lab.has_link(LinkId(id)));
        let links = links.collect();
        let outside = lab.nodes().filter(|(id, _)| !nodes[id.0]);
        let outside = outside.map(|(_, node)| node.name.clone()).collect();
        Self {
            part: Some((nodes, links)),
            outside,
        }
    }

    pub(super) const fn is_whole(&self) -> bool {
        self.part.is_none()
    }
    pub(super) fn has_node(&self, node: NodeId) -> bool {
        let part = self.part.as_ref();
        part.is_none_or(|(nodes, _)| nodes[node.0])
    }
    pub(super) fn has_link(&self, link: LinkId) -> bool {
        let part = self.part.as_ref();
        part.is_none_or(|(_, links)| links[link.0])
    }
    pub(super) fn has_name(&self, node: &str) -> bool {
        !self.outside.contains(node)
    }
}
