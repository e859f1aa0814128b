//! Connections whose cells need no look by the fabric: they go from a line to one queue.

use super::{Fabric, PortVc};
use crate::atm::port::QueueId;

/// The way of the cells of a connection to one leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Through {
    /// The port of the leaf.
    pub port: u16,
    /// Its queue there.
    pub queue: QueueId,
    /// Number of the connection, for [`Fabric::pass`].
    pub connection: u32,
}

impl Fabric {
    /// The way of PDU cells with this label, if every one of them goes to the same queue: the connection is not local,
    /// is not policed and has one leaf.
    #[must_use]
    pub fn through(&self, at: PortVc) -> Option<Through> {
        let index = self.find(at)?;
        let connection = self.connections.get(index)?;
        let plain = !connection.local && connection.policer.is_none();
        let leaf = connection.leaf.filter(|_| connection.more.is_none())?;
        (plain && self.link_is_up(at.port)).then_some(Through {
            port: leaf.to.port,
            queue: leaf.queue,
            connection: index as u32,
        })
    }

    /// Counts cells that have gone the way of [`Self::through`].
    pub fn pass(&mut self, port: u16, connection: u32, cells: u64) {
        if let Some(input) = self.ports.get_mut(usize::from(port)) {
            input.counters.cells_in += cells;
        }
        if let Some(connection) = self.connections.get_mut(connection as usize) {
            connection.cells_in += cells;
            connection.cells_out += cells;
        }
    }
}
