//! A look ahead at the connections of cells that are to be received one after the other.
//!
//! With many connections most of what a cell touches has to come from memory: an entry of the input table, two lines
//! for the connection and its policer, a line for the queue. The work of one cell has so many instructions that a
//! processor does not see those of the next cell while it waits. A look at the entries of several cells in a few
//! instructions makes their lines come at the same time.

use super::{Fabric, Leaf, Port};
use aerostat_wire::Vc;
use core::hint::black_box;

impl Fabric {
    /// Cells whose lines come from memory at the same time.
    pub const AHEAD: usize = 32;

    /// Connections up to which a look ahead is not worth its time: their entries stay in the processor's own cache.
    const FEW: usize = 2048;

    /// Reads the entries of cells with these labels, which `port` is to receive soon. This changes only the time that
    /// [`Self::receive`] takes.
    pub fn look_ahead(&self, port: u16, labels: impl IntoIterator<Item = Vc>) {
        if self.connections.len() <= Self::FEW {
            return;
        }
        let Some(input) = self.ports.get(usize::from(port)) else {
            return;
        };
        let mut labels = labels.into_iter();
        while self.look(input, &mut labels) == Self::AHEAD {}
    }

    /// Looks at the entries of as many labels as are fetched at the same time; returns their number. Each loop has
    /// reads that do not depend on each other, so the processor waits once per loop.
    fn look(&self, input: &Port, labels: &mut impl Iterator<Item = Vc>) -> usize {
        let mut found = [None; Self::AHEAD];
        let mut count = 0;
        // The array comes first, because a pair of iterators asks its first one first.
        for (found, vc) in found.iter_mut().zip(labels) {
            *found = input.input.get(vc);
            count += 1;
        }
        let mut leaves: [Option<Leaf>; Self::AHEAD] = [None; Self::AHEAD];
        let mut seen = 0;
        for (leaf, index) in leaves.iter_mut().zip(&found) {
            let connection = index.and_then(|index| self.connections.get(index));
            if let Some(connection) = connection {
                seen += u32::from(connection.policer.is_some());
                *leaf = connection.leaf;
            }
        }
        for leaf in leaves.iter().flatten() {
            if let Some(port) = self.ports.get(usize::from(leaf.to.port)) {
                seen ^= port.output.glance(leaf.queue);
            }
        }
        black_box(seen);
        count
    }
}
