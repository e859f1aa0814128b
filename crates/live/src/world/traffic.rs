//! Traffic that waits for its hosts: it starts when they can be reached.

use super::{Output, World};
use aerostat_lab::model::NodeId;
use aerostat_lab::starts;
use aerostat_node::host::{HostCommand, HostInput};
use aerostat_node::ip::apps::AppCommand;
use aerostat_proto::Instant;

use super::Machine;

impl World {
    /// Starts traffic whose hosts can be reached now.
    pub(super) fn start_ready(&mut self) {
        let now = self.time;
        let ready = self.starts.ready(&self.lab, now);
        for (node, behind, spec) in ready {
            // No program makes the traffic of kernel hosts.
            if self.nodes[node.0].kernel {
                continue;
            }
            let trace = starts::told(&self.lab, &spec);
            self.out.push_back(Output::Trace(node, now, trace));
            let command = HostCommand::app(behind, AppCommand::Start(spec));
            if let Some(Machine::Station(station)) = &mut self.nodes[node.0].machine {
                station.handle_input(HostInput::Command(command), now);
                self.settle(node.0);
            }
        }
    }

    /// When each flow started; `None` if it has not, because its hosts have not joined.
    #[must_use]
    pub fn began(&self) -> Vec<Option<Instant>> {
        self.starts.began(&self.lab)
    }

    /// True if all interfaces of a node have been members of their networks at some time.
    #[must_use]
    pub fn ever_joined(&self, node: NodeId) -> bool {
        self.starts.members().ever_joined(node)
    }
}
