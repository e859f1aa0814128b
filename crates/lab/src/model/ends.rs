//! The end of a run.

use super::{Fault, Lab, LinkEnd, NodeId, traffic};
use aerostat_node::atm::CellRate;
use aerostat_proto::Duration;

impl Lab {
    /// The rate at which an end system sends into its link; `None` for a switch.
    #[must_use]
    pub fn own_rate(&self, node: NodeId) -> Option<CellRate> {
        let link = self.link(self.node(node).attachment()?.link);
        Some(link.rate_from(LinkEnd { node, port: 0 }))
    }

    /// When a run ends: `until`, or two seconds after the last limited flow and the last fault; 30 s if there is
    /// neither.
    ///
    /// `began` tells when a flow has started, by its index. While a limited flow waits for its hosts the run goes on,
    /// at most to second 15, in which even a client whose first requests are lost has joined. A flow that starts may
    /// bring the end nearer, but never to a time that is over.
    #[must_use]
    pub fn end_from(&self, began: impl Fn(usize) -> Option<Duration>) -> Duration {
        const GRACE: Duration = Duration::from_secs(2);
        const PATIENCE: Duration = Duration::from_secs(15);
        let limited = self.traffic.iter().enumerate();
        let limited = limited.filter_map(|(index, flow)| Some((index, flow.duration?)));
        let flows = limited.map(|(index, length)| match began(index) {
            Some(start) => start + length + GRACE,
            None => PATIENCE,
        });
        let faults = self.faults.iter().map(Fault::end);
        let calls = self.hosts().flat_map(|(id, _, host)| {
            let rate = self.own_rate(id);
            let programs = host.sockets.iter();
            programs.filter_map(move |program| traffic::call_end(program, rate?))
        });
        let others = faults.chain(calls).map(|last| last + GRACE);
        let last = || flows.chain(others).max();
        self.until
            .unwrap_or_else(|| last().unwrap_or(Duration::from_secs(30)))
    }

    /// When a run ends if the flows that wait for their hosts start at once: the earliest end.
    #[must_use]
    pub fn end(&self) -> Duration {
        self.end_from(|index| self.traffic.get(index).map(|flow| flow.start))
    }
}
