//! The interface between the world and a node, and the events for observers.

use crate::world::{LinkEnd, NodeId};
use aerostat_node::atm::{CellRun, DataUnit, DropReason, DroppedPdu, OutputPort, Pdu};
use aerostat_node::ip::books::Place;
use aerostat_proto::{Instant, Trace};
use aerostat_wire::Vc;
use aerostat_wire::pcapng::Direction;

/// A node in the view of its links: cells go in, and wait at output ports until they are taken.
///
/// A node is driven like a [`Machine`](aerostat_proto::Machine): any input, then all outputs, then the next deadline,
/// which must be strictly in the future. Departures are not deadlines: the world asks the output ports.
pub trait Node {
    /// Events for the experimenter other than traces: samples, results.
    type Event;
    /// The state of the network's management. Nodes report to it, and are told when it has changed.
    type Plant: Default;
    /// A report of a node to management.
    type Report;
    /// Handles a report; true if nodes must be told of the new state.
    fn report(plant: &mut Self::Plant, from: NodeId, report: Self::Report) -> bool;
    /// Tells the node the state of management.
    fn managed(&mut self, me: NodeId, plant: &Self::Plant, now: Instant);
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
    /// Receives cells that concern more than the cell plane.
    fn cells(&mut self, port: u16, run: CellRun, now: Instant);
    /// The link at `port` went down or came up.
    fn link(&mut self, port: u16, up: bool, now: Instant);
    /// Handles every timer that is due.
    fn handle_timeout(&mut self, now: Instant);
    /// The next output.
    fn poll_output(&mut self) -> Option<NodeOutput<Self::Event, Self::Report>>;
    /// When [`Self::handle_timeout`] must be called next.
    fn poll_timeout(&self) -> Option<Instant>;
    /// Starts to record the packets that the node loses.
    fn keep_books(&mut self) {}
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
    /// An event for the experimenter.
    Event(E),
    /// A report for management.
    Report(R),
}

/// An SDU that passed, or should have passed, a tapped link end.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// The link end.
    pub end: LinkEnd,
    /// When its last cell passed, or its first cell was dropped.
    pub at: Instant,
    /// Direction, as seen from the node at this end.
    pub direction: Direction,
    /// Its VC on this link.
    pub vc: Vc,
    /// The SDU.
    pub pdu: &'a Pdu,
    /// True if a cell had CLP 1.
    pub clp: bool,
    /// The reason if it was dropped here, wholly or in part.
    pub dropped: Option<DropReason>,
}

impl Packet<'_> {
    /// True if the port in front of the link discarded it, wholly or in part, so that no receiver on the link could
    /// reassemble it.
    #[must_use]
    pub const fn never_left(&self) -> bool {
        matches!(self.direction, Direction::Sent) && self.dropped.is_some()
    }
}

/// A cell that passed a link end with tapped cells, in the world's own time.
#[derive(Clone, Copy, Debug)]
pub struct PassedCell<'a> {
    /// The link end.
    pub end: LinkEnd,
    /// When its first bit left the port; at the receiving end, when its last bit arrived.
    pub at: Instant,
    /// Direction, as seen from the node at this end.
    pub direction: Direction,
    /// The cell.
    pub run: &'a CellRun,
}

/// An observer of a world. Every method has a default.
pub trait Observer<E> {
    /// A node reports a trace event.
    fn trace(&mut self, _node: NodeId, _trace: Trace, _now: Instant) {}
    /// A node reports an event for the experimenter.
    fn event(&mut self, _node: NodeId, _event: E, _now: Instant) {}
    /// An SDU passed a tapped link end.
    fn packet(&mut self, _packet: &Packet<'_>) {}
    /// A cell passed a link end with tapped cells.
    fn cell(&mut self, _cell: &PassedCell<'_>) {}
    /// With [`World::keep_books`](crate::World::keep_books): a packet, or a cell of it, was lost: an SDU, a frame
    /// or a packet, or its head.
    fn lost(&mut self, _place: Place, _unit: DataUnit<'_>, _at: Instant) {}
    /// True to make [`World::run_until`](crate::World::run_until) return after the current event.
    fn interrupts(&mut self) -> bool {
        false
    }
}

/// No observer.
impl<E> Observer<E> for () {}
