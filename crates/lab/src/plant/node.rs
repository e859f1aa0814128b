//! A node in the view of its links.

use crate::model::NodeId;
use aerostat_node::atm::{Alone, CellRate, CellRun, DataUnit, DroppedPdu, OutputPort, Through};
use aerostat_proto::{Instant, Trace};
use aerostat_wire::Vc;

/// A node in the view of its links: cells go in, and wait at output ports until they are taken.
///
/// A node is driven like a [`Machine`](aerostat_proto::Machine): any input, then all outputs, then the next deadline,
/// which must be strictly in the future. Departures are not deadlines: the driver asks the output ports.
pub trait Node {
    /// Events for the driver other than traces: frames, samples, results.
    type Event;
    /// The state of the network's management. Nodes report to it, and switches are told when it has changed.
    type Management: Default;
    /// A report of a node to management.
    type Report;
    /// Handles a report; true if switches must be told of the new state.
    fn report(management: &mut Self::Management, from: NodeId, report: Self::Report) -> bool;
    /// The port at which calls can go out from now on, if that is what a report says.
    fn usable(report: &Self::Report) -> Option<u16> {
        let _ = report;
        None
    }
    /// Tells the node the state of management. Only switches are told of changes.
    fn managed(&mut self, me: NodeId, management: &Self::Management, now: Instant);
    /// Power is on.
    fn start(&mut self, now: Instant);
    /// Receives cells from the link at `port`. If only output queues and counters are concerned, forwards them and adds
    /// the ports whose queues accepted cells to `touched`. Otherwise returns them; then they come again through
    /// [`Self::cells`]. This makes a cell cheap.
    fn forward(
        &mut self,
        port: u16,
        run: CellRun,
        now: Instant,
        touched: &mut Vec<u16>,
    ) -> Option<CellRun>;
    /// The way of PDU cells of this VC that the node need not see: see [`Fabric::through`](aerostat_node::atm::Fabric).
    ///
    /// # Errors
    /// Why the node must get each cell when it arrives.
    fn through(&self, port: u16, vc: Vc) -> Result<Through, Alone> {
        let _ = (port, vc);
        Err(Alone::Local)
    }
    /// A number that changes whenever a result of [`Self::through`] may change; `None` if the node keeps none.
    fn ways(&self) -> Option<u64> {
        None
    }
    /// Counts cells that have gone such a way.
    fn pass(&mut self, port: u16, connection: u32, cells: u64) {
        let _ = (port, connection, cells);
    }
    /// Receives cells that concern more than the cell plane.
    fn cells(&mut self, port: u16, run: CellRun, now: Instant);
    /// The link at `port` went down or came up.
    fn link(&mut self, port: u16, up: bool, now: Instant);
    /// The line of `port` has other rates: towards the other end of the link, and from there.
    fn rates(&mut self, port: u16, [rate, input]: [CellRate; 2], now: Instant) {
        let _ = (input, now);
        if let Some(output) = self.output_port(port) {
            output.set_rate(rate);
        }
    }
    /// Handles every timer that is due.
    fn handle_timeout(&mut self, now: Instant);
    /// The next output.
    fn poll_output(&mut self) -> Option<NodeOutput<Self::Event, Self::Report>>;
    /// When [`Self::handle_timeout`] must be called next.
    fn poll_timeout(&self) -> Option<Instant>;
    /// False if the links of the node carry nothing although the node is on: it stands for a peer outside that is not
    /// connected.
    fn is_connected(&self) -> bool {
        true
    }
    /// True if the node only hands on the cells that it gets, to a peer outside the network: nothing in the network
    /// depends on when it gets them.
    fn is_outlet(&self) -> bool {
        false
    }
    /// Starts to record the packets that the node loses.
    fn keep_books(&mut self) {}
    /// Starts to report the steps of data units inside the node.
    fn show_steps(&mut self) {}
    /// The next PDU that lost cells in its fabric, and its input port.
    fn poll_discard(&mut self) -> Option<(u16, DroppedPdu)> {
        None
    }
    /// Calls `see` with every packet, frame or SDU that waits in the node, except in its output ports.
    fn held(&self, see: &mut dyn FnMut(DataUnit<'_>)) {
        let _ = see;
    }
    /// The transmitter of a port.
    fn output_port(&mut self, port: u16) -> Option<&mut OutputPort>;
}

/// Outputs of a node.
#[derive(Debug)]
pub enum NodeOutput<E, R> {
    /// Cells may have been queued at this port, so its next departure may have changed.
    Touched(u16),
    /// A trace event.
    Trace(Trace),
    /// An event for the driver.
    Event(E),
    /// A report for management.
    Report(R),
}
