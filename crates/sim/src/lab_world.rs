//! The world of a lab: its nodes and links have the same numbers as in the lab.

use crate::link::LinkConfig;
use crate::node::Observer;
use crate::nodes::{LabEvent, LabNode};
use crate::world::{LinkEnd, LinkId, NodeId, World};
use aerostat_lab::build::{Builder, programs};
use aerostat_lab::circuits::{LinkCounters, Network};
use aerostat_lab::model::{self, Lab, NodeKind};
use aerostat_lab::routing::Routing;
use aerostat_node::host::{HostCommand, Station};
use aerostat_node::ip::apps::AppCommand;
use aerostat_node::switch::Switch;
use aerostat_proto::Instant;
use aerostat_wire::Vc;
use std::collections::BTreeMap;

/// Builds the world of a lab, with all nodes off.
#[must_use]
pub fn build(lab: &Lab, seed: u64) -> World<LabNode> {
    let mut world = World::new(seed);
    *world.plant_mut() = Routing::new(lab);
    for (_, node) in lab.nodes() {
        match &node.kind {
            NodeKind::Switch(switch) => world.add_switch(&node.name, switch.ports.len() as u16),
            _ => world.add_host(&node.name),
        };
    }
    for link in &lab.links {
        let ends = link.ends.map(|end| LinkEnd {
            node: NodeId(end.node.0),
            port: end.port as u16,
        });
        let config = LinkConfig {
            delay: link.delay,
            loss: link.loss,
            bit_errors: link.bit_errors,
        };
        world.connect(&link.name, ends, config);
    }
    world
}

/// A node of the lab at its power-up number `life`, from 0; `None` if the lab has no such node.
#[must_use]
pub fn machine(
    lab: &Lab,
    builder: &Builder<'_>,
    id: NodeId,
    life: u32,
    now: Instant,
) -> Option<LabNode> {
    let id = model::NodeId(id.0);
    let node = lab.nodes.get(id.0)?;
    let Some(attachment) = node.attachment() else {
        return builder.switch(id, life).map(LabNode::switch);
    };
    let rate = lab.link(attachment.link).rate;
    let host = builder.host(id, life, now)?;
    Some(LabNode::station(Station::new(host, rate)))
}

/// Switches every node on and starts the programs of the lab's traffic at their times, including those that a
/// [`LabRun`](crate::run::LabRun) would delay until their hosts have joined.
pub fn start(
    world: &mut World<LabNode>,
    lab: &Lab,
    builder: &Builder<'_>,
    observer: &mut impl Observer<LabEvent>,
) {
    power_on(world, lab, builder, observer);
    for (node, behind, program) in programs(lab) {
        let command = HostCommand::app(behind, AppCommand::Start(program));
        world.with_node(NodeId(node.0), observer, |node, now| {
            node.command(command, now);
        });
    }
}

/// Switches every node on.
pub fn power_on(
    world: &mut World<LabNode>,
    lab: &Lab,
    builder: &Builder<'_>,
    observer: &mut impl Observer<LabEvent>,
) {
    let now = world.now();
    let machines = (0..lab.nodes.len())
        .map(NodeId)
        .filter_map(|id| Some((id, machine(lab, builder, id, 0, now)?)));
    let machines: Vec<_> = machines.collect();
    world.power_on_all(machines, observer);
}

impl Network for World<LabNode> {
    fn time(&self) -> Instant {
        self.now()
    }
    fn station(&self, node: model::NodeId) -> Option<&Station> {
        self.node(NodeId(node.0))?.as_station()
    }
    fn switch(&self, node: model::NodeId) -> Option<&Switch> {
        self.node(NodeId(node.0))?.as_switch()
    }
    fn cells_on(&self, link: model::LinkId) -> [BTreeMap<Vc, u64>; 2] {
        self.on_the_way(LinkId(link.0))
    }
    fn on_since(&self, node: model::NodeId) -> Instant {
        World::on_since(self, NodeId(node.0))
    }
    fn counters_of(&self, link: model::LinkId) -> [LinkCounters; 2] {
        self.link_counters(LinkId(link.0))
    }
}
