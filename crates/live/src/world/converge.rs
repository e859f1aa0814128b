//! A running network that becomes another one.

use super::World;
use super::line::RunLine;
use aerostat_lab::build::Builder;
use aerostat_lab::model::{Lab, LinkId, NodeId};
use aerostat_lab::plant::{Blocks, Converge, LineId, Refused};
use aerostat_node::random::derived_seed;
use aerostat_proto::Instant;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The two directions of a link.
pub(super) fn media(lab: &Lab, id: LinkId) -> [RunLine; 2] {
    let link = lab.link(id);
    LineId::both(id).map(|line| {
        let random = derived_seed(lab.seed, &link.name, "loss") ^ u64::from(line.0);
        let blocks = Blocks::seed(lab.seed, &link.name, line.side());
        RunLine::new(&link.lines[line.side()].errors, blocks, random)
    })
}

impl World {
    /// Makes this network that of the builder, whose lab has the indices of this one
    /// ([`aerostat_lab::converge::beside`]). These nodes start again. Returns permanent connections that there was no
    /// room for: [`Self::adopt`] has to be given the lab without them.
    pub fn converge(
        &mut self,
        builder: &Builder<'_>,
        again: &BTreeSet<NodeId>,
        now: Instant,
    ) -> Vec<Refused> {
        self.plant.advance_to(now);
        let old = Arc::clone(&self.lab);
        let kernels = builder.lab().nodes().map(|(id, _)| id);
        self.kernels = kernels.filter(|id| builder.is_kernel(*id)).collect();
        let refused = Converge::converge(self, &old, builder, again);
        self.adopt(builder.lab());
        refused
    }

    /// The lab of this network.
    #[must_use]
    pub const fn lab(&self) -> &Arc<Lab> {
        &self.lab
    }

    /// The lab of this network is this one from now on.
    pub fn adopt(&mut self, lab: &Lab) {
        self.lab = Arc::new(lab.clone());
    }
}

impl Converge for World {
    fn media(&self, lab: &Lab, link: LinkId) -> [RunLine; 2] {
        media(lab, link)
    }
}
