//! Observers of a world, and the cells that they see.

use aerostat_lab::plant::{LineId, LinkEnd, NodeId};
use aerostat_node::atm::{CellRun, DataUnit, DropReason, Pdu};
use aerostat_node::ip::books::Place;
use aerostat_proto::{Instant, Trace};
use aerostat_wire::Vc;
use aerostat_wire::pcapng::Direction;

/// An SDU that passed, or should have passed, a tapped link end.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// The line on which it is.
    pub line: LineId,
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
    /// The line on which it is.
    pub line: LineId,
    /// The link end.
    pub end: LinkEnd,
    /// When its first bit left the port; at the receiving end, when its last bit arrived.
    pub at: Instant,
    /// Time at which its last bit left the port; at the receiving end, at which its last bit arrived.
    pub finish: Instant,
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
