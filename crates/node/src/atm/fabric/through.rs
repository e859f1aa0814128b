//! Connections whose cells need no look by the fabric: they go from a line to one queue. The leaves of any connection.

use super::{Fabric, FabricOp, PortVc};
use crate::atm::cell_trains::Alone;
use crate::atm::port::QueueId;
use aerostat_proto::Changes;
use aerostat_wire::Vc;

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
    ///
    /// # Errors
    /// Why the fabric must get each cell.
    pub fn through(&self, at: PortVc) -> Result<Through, Alone> {
        let index = self.find(at).ok_or(Alone::NoWay)?;
        let connection = self.connections.get(index).ok_or(Alone::NoWay)?;
        if connection.local {
            return Err(Alone::Local);
        }
        if connection.policer.is_some() {
            return Err(Alone::Policed);
        }
        if connection.more.is_some() {
            return Err(Alone::Leaves);
        }
        let leaf = connection.leaf.filter(|_| self.link_is_up(at.port));
        let leaf = leaf.ok_or(Alone::NoWay)?;
        Ok(Through {
            port: leaf.to.port,
            queue: leaf.queue,
            connection: index as u32,
        })
    }

    /// A number that changes whenever a result of [`Self::through`] may change.
    #[must_use]
    pub const fn ways(&self) -> u64 {
        self.ways
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

    /// The outgoing labels of a connection; none for an incoming label that no connection has, or that ends at the
    /// control plane.
    #[must_use]
    pub fn leaves(&self, at: PortVc) -> Vec<PortVc> {
        let connection = self.find(at).and_then(|index| self.connections.get(index));
        let Some(connection) = connection else {
            return Vec::new();
        };
        // A path keeps the VCIs.
        let vci = |to: PortVc| match connection.whole_path {
            true => PortVc::new(to.port, Vc::new(to.vc.vpi, at.vc.vci)),
            false => to,
        };
        connection.leaves().map(|leaf| vci(leaf.to)).collect()
    }

    /// Incoming labels whose connections may have changed since the last call of this method.
    pub fn take_changes(&mut self) -> Changes<PortVc> {
        self.changes.take()
    }

    /// Notes which connections an operation changes.
    pub(super) fn note(&mut self, op: &FabricOp) {
        match *op {
            FabricOp::ConnectPath { .. } => self.changes.note_all(),
            FabricOp::Connect { from, .. }
            | FabricOp::AddLeaf { from, .. }
            | FabricOp::DropLeaf { from, .. }
            | FabricOp::Disconnect { from } => match self.find(from) {
                // Every label of a path changes with it.
                Some(index) if self.is_path(index) => self.changes.note_all(),
                _ => self.changes.note(from),
            },
        }
    }

    fn is_path(&self, index: usize) -> bool {
        let connection = self.connections.get(index);
        connection.is_some_and(|connection| connection.whole_path)
    }
}
