//! The world of a lab: its nodes and links have the same numbers as in the lab.

use crate::observer::Observer;
use crate::world::World;
use aerostat_lab::build::{Builder, programs};
use aerostat_lab::model::{Lab, NodeKind};
use aerostat_lab::plant::{LabEvent, LabNode, NodeId};
use aerostat_lab::routing::Routing;
use aerostat_proto::Instant;

/// Builds the world of a lab, with all nodes off.
#[must_use]
pub fn build(lab: &Lab, seed: u64) -> World<LabNode> {
    let mut world = World::new(seed);
    *world.plant_mut().management_mut() = Routing::new(lab);
    world.add_lab(lab);
    world
}

/// A node of the lab at its power-up number `life`, from 0; `None` if the lab has no such node, or if it is outside:
/// in virtual time nothing is outside.
#[must_use]
pub fn machine(builder: &Builder<'_>, id: NodeId, life: u32, now: Instant) -> Option<LabNode> {
    let node = builder.lab().nodes.get(id.0)?;
    let inside = !matches!(node.kind, NodeKind::Outside(_));
    inside.then(|| LabNode::make(builder, id, life, now))?
}

/// Switches every node on and starts the programs of the lab's traffic at their times, including those that a
/// [`LabRun`](crate::run::LabRun) would delay until their hosts have joined.
pub fn start(
    world: &mut World<LabNode>,
    builder: &Builder<'_>,
    observer: &mut impl Observer<LabEvent>,
) {
    let now = world.now();
    let nodes = world.plant().nodes();
    let machines = nodes.filter_map(|id| Some((id, machine(builder, id, 0, now)?)));
    world.power_on_all(machines.collect::<Vec<_>>(), observer);
    for placed in programs(builder.lab()) {
        let id = placed.node;
        world.with_node(id, observer, |node, now| node.command(placed.start(), now));
    }
}
