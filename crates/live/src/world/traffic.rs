//! Traffic that waits for its hosts: it starts at the moment when both have joined their networks.

use super::{Output, World};
use aerostat_lab::model::NodeId;
use aerostat_lab::starts;
use aerostat_node::host::{HostCommand, HostInput};
use aerostat_node::ip::apps::AppCommand;

use super::Machine;

/// Whether all interfaces of a node are, and have ever been, members of their networks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Joined {
    now: bool,
    ever: bool,
}

impl World {
    /// Records that a node has joined, or is no longer a member; true if traffic may start now.
    pub(super) fn note_joined(&mut self, node: usize, joined: bool) -> bool {
        let known = &mut self.joined[node];
        (known.now, known.ever) = (joined, known.ever || joined);
        joined
    }

    /// Starts traffic whose hosts have joined now.
    pub(super) fn start_ready(&mut self) {
        let (joined, now) = (&self.joined, self.time);
        let ready = self.starts.ready(&self.lab, |id| joined[id.0].now, now);
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

    /// Numbers of the flows that have not started, because their hosts have not joined.
    #[must_use]
    pub fn not_started(&self) -> Vec<usize> {
        self.starts.missing()
    }

    /// True if all interfaces of a node have been members of their networks at some time.
    #[must_use]
    pub fn ever_joined(&self, node: NodeId) -> bool {
        self.joined.get(node.0).is_some_and(|joined| joined.ever)
    }
}
