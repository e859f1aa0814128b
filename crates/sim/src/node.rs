//! What the world asks of a node, and what it tells those who watch.

use crate::world::{LinkEnd, NodeId};
use aerostat_node::atm::fabric::FabricError;
use aerostat_node::atm::{DropReason, FabricOp, Pdu, Received};
use aerostat_proto::{Instant, Trace};
use aerostat_wire::pcapng::Direction;
use aerostat_wire::{TrafficParams, Vc};

/// The control and service side of a node: everything above AAL5.
///
/// Driven as a [`Machine`](aerostat_proto::Machine) is: any input, then outputs until there is none, then
/// the next deadline, which must lie strictly in the future.
pub trait Node {
    /// What it tells the experimenter besides traces: samples, results.
    type Event;
    /// Power is on.
    fn start(&mut self, now: Instant);
    /// An SDU arrived: on port 0 of a host, or on a local label of a switch.
    fn sdu(&mut self, port: u16, vc: Vc, sdu: Received, now: Instant);
    /// The link at `port` went down or came up.
    fn link(&mut self, port: u16, up: bool, now: Instant);
    /// Fires every timer that is due.
    fn handle_timeout(&mut self, now: Instant);
    /// The next effect.
    fn poll_output(&mut self) -> Option<NodeOutput<Self::Event>>;
    /// When [`Self::handle_timeout`] is next needed.
    fn poll_timeout(&self) -> Option<Instant>;
}

/// What a node wants done.
#[derive(Debug)]
pub enum NodeOutput<E> {
    /// Send an SDU: on a VC that the host opened, or on a local label of a switch.
    Send {
        /// The port; 0 on a host.
        port: u16,
        /// The VC.
        vc: Vc,
        /// The SDU.
        pdu: Pdu,
    },
    /// Open a VC of a host, or a local label of a switch, besides signalling and ILMI, which are always open.
    OpenVc {
        /// The port; 0 on a host.
        port: u16,
        /// The VC.
        vc: Vc,
        /// What the node sends on it.
        traffic: TrafficParams,
        /// Largest SDU that it takes, octets; 0: any.
        max_sdu: u16,
    },
    /// Close it.
    CloseVc {
        /// The port; 0 on a host.
        port: u16,
        /// The VC.
        vc: Vc,
    },
    /// A switch changes its connection table.
    Fabric(FabricOp),
    /// The story.
    Trace(Trace),
    /// For the experimenter.
    Event(E),
}

/// An SDU that passed, or should have passed, a link end that is watched.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// Where.
    pub end: LinkEnd,
    /// When its last cell passed.
    pub at: Instant,
    /// Which way, seen from the node at this end.
    pub direction: Direction,
    /// Its VC on this link.
    pub vc: Vc,
    /// The SDU.
    pub pdu: &'a Pdu,
    /// True if a cell had CLP 1.
    pub clp: bool,
    /// Why it was dropped here, if it was.
    pub dropped: Option<DropReason>,
}

/// Who watches a world. Every method may be left out.
pub trait Observer<E> {
    /// A node tells its story.
    fn trace(&mut self, _node: NodeId, _trace: Trace, _now: Instant) {}
    /// A node tells the experimenter.
    fn event(&mut self, _node: NodeId, _event: E, _now: Instant) {}
    /// An SDU passed a link end that is watched.
    fn packet(&mut self, _packet: &Packet<'_>) {}
    /// A switch asked for something that its fabric refused: a defect of the control plane.
    fn refused(&mut self, _node: NodeId, _op: FabricOp, _error: FabricError, _now: Instant) {}
}

/// Nobody watches.
impl<E> Observer<E> for () {}
