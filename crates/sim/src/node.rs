//! What the world asks of a node, and what it tells those who watch.

use crate::world::{LinkEnd, NodeId};
use aerostat_node::atm::{CellRun, DropReason, DroppedPdu, OutputPort, Pdu};
use aerostat_node::ip::books::Place;
use aerostat_proto::{Instant, Trace};
use aerostat_wire::Vc;
use aerostat_wire::pcapng::Direction;

/// A node, as its links see it: cells go in, and wait at output ports to be taken.
///
/// Driven as a [`Machine`](aerostat_proto::Machine) is: any input, then outputs until there is none, then
/// the next deadline, which must lie strictly in the future. Departures are no deadlines: the world
/// asks the output ports.
pub trait Node {
    /// What it tells the experimenter besides traces: samples, results.
    type Event;
    /// What management of the whole network knows; nodes report to it, and hear when it has changed.
    type Plant: Default;
    /// What a node reports to management.
    type Report;
    /// Takes a report in; true if nodes have to hear what management knows now.
    fn report(plant: &mut Self::Plant, from: NodeId, report: Self::Report) -> bool;
    /// Hears what management knows now.
    fn managed(&mut self, me: NodeId, plant: &Self::Plant, now: Instant);
    /// Power is on.
    fn start(&mut self, now: Instant);
    /// Cells came from the link at `port`: moves them on if nothing but output queues and counters is
    /// concerned, and adds the ports whose queues took some to `touched`. Gives them back otherwise; then
    /// they come again through [`Self::cells`]. This is what makes a cell cheap.
    fn forward(
        &mut self,
        port: u16,
        run: CellRun,
        now: Instant,
        touched: &mut Vec<u16>,
    ) -> Option<CellRun>;
    /// Cells came that concern more than the cell plane.
    fn cells(&mut self, port: u16, run: CellRun, now: Instant);
    /// The link at `port` went down or came up.
    fn link(&mut self, port: u16, up: bool, now: Instant);
    /// Fires every timer that is due.
    fn handle_timeout(&mut self, now: Instant);
    /// The next effect.
    fn poll_output(&mut self) -> Option<NodeOutput<Self::Event, Self::Report>>;
    /// When [`Self::handle_timeout`] is next needed.
    fn poll_timeout(&self) -> Option<Instant>;
    /// From now on it remembers which packets it loses.
    fn keep_books(&mut self) {}
    /// The next PDU that lost cells in its fabric, and the port where it came in.
    fn poll_discard(&mut self) -> Option<(u16, DroppedPdu)> {
        None
    }
    /// Shows every packet, frame or SDU that waits in it, apart from its output ports.
    fn held(&self, see: &mut dyn FnMut(&[u8])) {
        let _ = see;
    }
    /// The transmitter of a port.
    fn output_port(&mut self, port: u16) -> Option<&mut OutputPort>;
}

/// What a node wants done.
#[derive(Debug)]
pub enum NodeOutput<E, R> {
    /// Cells may have been queued at this port: look at its next departure again.
    Touched(u16),
    /// The story.
    Trace(Trace),
    /// For the experimenter.
    Event(E),
    /// For management.
    Report(R),
}

/// An SDU that passed, or should have passed, a link end that is watched.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// Where.
    pub end: LinkEnd,
    /// When its last cell passed, or its first one was dropped.
    pub at: Instant,
    /// Which way, seen from the node at this end.
    pub direction: Direction,
    /// Its VC on this link.
    pub vc: Vc,
    /// The SDU.
    pub pdu: &'a Pdu,
    /// True if a cell had CLP 1.
    pub clp: bool,
    /// Why it was dropped here, wholly or in part, if it was.
    pub dropped: Option<DropReason>,
}

impl Packet<'_> {
    /// True if the port in front of the link discarded it, wholly or in part: nobody on the link could put it together.
    #[must_use]
    pub const fn never_left(&self) -> bool {
        matches!(self.direction, Direction::Sent) && self.dropped.is_some()
    }
}

/// Cells that passed a link end whose cells are watched: one, in the world's own time.
#[derive(Clone, Copy, Debug)]
pub struct PassedCell<'a> {
    /// Where.
    pub end: LinkEnd,
    /// When its first bit left the port; where it arrives, when its last one did.
    pub at: Instant,
    /// Which way, seen from the node at this end.
    pub direction: Direction,
    /// The cell.
    pub run: &'a CellRun,
}

/// Who watches a world. Every method may be left out.
pub trait Observer<E> {
    /// A node tells its story.
    fn trace(&mut self, _node: NodeId, _trace: Trace, _now: Instant) {}
    /// A node tells the experimenter.
    fn event(&mut self, _node: NodeId, _event: E, _now: Instant) {}
    /// An SDU passed a link end that is watched.
    fn packet(&mut self, _packet: &Packet<'_>) {}
    /// A cell passed a link end whose cells are watched.
    fn cell(&mut self, _cell: &PassedCell<'_>) {}
    /// With [`World::keep_books`](crate::World::keep_books): a packet was lost, or a cell of it. `octets` are an SDU, a frame
    /// or a packet, or the head of one.
    fn lost(&mut self, _place: Place, _octets: &[u8], _at: Instant) {}
    /// True to make [`World::run_until`](crate::World::run_until) return after the present event.
    fn interrupts(&mut self) -> bool {
        false
    }
}

/// Nobody watches.
impl<E> Observer<E> for () {}
