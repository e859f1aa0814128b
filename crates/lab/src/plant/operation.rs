//! How a lab is operated: its nodes are switched on, its programs start, its faults happen.
//!
//! **Programs.** The programs of a node start after all nodes that are switched on at the same instant. A sender whose
//! flow has no start time waits until its hosts have joined; [`Operation::start_ready`] starts it.

use super::changes::Change as _;
use super::driver::Driver;
use super::ledger::Ledger;
use super::{LabNode, NodeId};
use crate::build::{Builder, programs};
use crate::dialogues::Life;
use crate::model::{FaultKind, Lab, LineChange};
use crate::starts;
use aerostat_node::host::HostCommand;
use aerostat_proto::Instant;

/// A driver of the nodes of a lab.
pub trait Operation: Driver<Node = LabNode> {
    /// The accounts of the lab.
    fn ledger(&mut self) -> &mut Ledger;

    /// A node at its power-up number `life`; `None` if it stays off.
    fn make(
        &self,
        builder: &Builder<'_>,
        node: NodeId,
        life: u32,
        now: Instant,
    ) -> Option<LabNode> {
        LabNode::make(builder, node, life, now)
    }

    /// True if the programs of the lab file run on this node: its IP stack is not a Linux kernel.
    fn runs_programs(&self, node: NodeId) -> bool {
        let _ = node;
        true
    }

    /// Passes a command to an end system; nothing happens if it is off, or is a switch.
    fn command(&mut self, node: NodeId, command: HostCommand) {
        self.with_node(node, |node, now| node.command(command, now));
    }

    /// Switches all nodes on, and starts the programs that do not wait.
    fn start(&mut self, builder: &Builder<'_>) {
        self.power_on_lab(builder);
        self.start_programs(builder.lab(), None);
        self.start_ready(builder.lab());
    }

    /// Switches all nodes on.
    fn power_on_lab(&mut self, builder: &Builder<'_>) {
        let now = self.plant().now();
        let nodes = self.plant().nodes();
        let machines = nodes.filter_map(|id| Some((id, self.make(builder, id, 0, now)?)));
        let machines: Vec<_> = machines.collect();
        self.power_on_all(machines);
    }

    /// Starts the programs of a node, or of all nodes in their order, except those that wait for their hosts.
    fn start_programs(&mut self, lab: &Lab, of: Option<NodeId>) {
        let mut all = programs(lab);
        all.retain(|placed| {
            of.is_none_or(|id| id == placed.node)
                && self.runs_programs(placed.node)
                && !self.ledger().starts.holds_back(&placed.program)
        });
        all.sort_by_key(|placed| placed.node);
        for placed in all {
            self.command(placed.node, placed.start());
        }
    }

    /// Starts traffic whose hosts have joined now.
    fn start_ready(&mut self, lab: &Lab) {
        let now = self.plant().now();
        for placed in self.ledger().starts.ready(lab, now) {
            if self.runs_programs(placed.node) {
                self.trace(placed.node, starts::told(lab, &placed.program));
                self.command(placed.node, placed.start());
            }
        }
    }

    /// Switches a node of the lab off.
    fn switch_off(&mut self, lab: &Lab, node: NodeId) {
        let station = self.plant().node(node).and_then(LabNode::as_station);
        if let Some(life) = station.and_then(|station| Life::of(node, station)) {
            self.ledger().keep(life);
        }
        self.power_off(node);
        let now = self.plant().now();
        self.ledger().off(lab, node, now);
    }

    /// Switches a node of the lab off and on again, with empty state.
    fn restart(&mut self, builder: &Builder<'_>, node: NodeId) {
        let lab = builder.lab();
        self.switch_off(lab, node);
        let plant = self.plant_mut();
        let (life, now) = (plant.next_life(node), plant.now());
        if let Some(fresh) = self.make(builder, node, life, now) {
            self.power_on(node, fresh);
        }
        self.ledger().starts.again(lab, node);
        self.start_programs(lab, Some(node));
    }

    /// Causes or ends a fault now.
    fn fault(&mut self, builder: &Builder<'_>, what: FaultKind) {
        match what {
            FaultKind::Crash(node, None) => self.switch_off(builder.lab(), node),
            FaultKind::Restart(node, None) => self.restart(builder, node),
            FaultKind::Crash(node, Some(service)) => {
                self.command(node, HostCommand::Crash(service.into()));
            }
            FaultKind::Restart(node, Some(service)) => {
                self.command(node, HostCommand::Restart(service.into()));
            }
            FaultKind::LinkDown(link) => self.set_cut(link, true),
            FaultKind::LinkUp(link) => self.set_cut(link, false),
            FaultKind::Change(link, changes) => self.change_link(link, &changes),
            FaultKind::Reset(link) => {
                let lines = builder.lab().link(link).lines;
                self.change_link(link, &lines.map(LineChange::from));
                if self.plant().is_training(link) {
                    self.set_training(link, false);
                }
            }
            FaultKind::Retrain(link, ..) => self.set_training(link, true),
            FaultKind::Trained(link, changes) => {
                self.change_link(link, &changes);
                self.set_training(link, false);
            }
        }
    }
}
