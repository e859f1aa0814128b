//! A connection in the tables of the fabric.

use super::super::counters::{CellCounters, DropReason, Drops, UpcCounters, UpcReason};
use super::super::police::Policer;
use super::super::port::QueueId;
use super::{ConnectionView, PortVc};
use aerostat_wire::TrafficParams;

#[derive(Clone, Copy, Debug)]
pub(super) struct Leaf {
    pub(super) to: PortVc,
    pub(super) queue: QueueId,
}

/// Cells that did not pass as they came. Most connections have none of these.
#[derive(Debug, Default)]
struct Losses {
    dropped: Drops,
    upc: UpcCounters,
}

/// The second and further leaves of a connection; at least one. A box around them keeps the mark of free entries of the
/// table, which each cell reads, away from their length.
#[derive(Debug, Default)]
pub(super) struct More(Vec<Leaf>);

/// A connection of the fabric. Fields that each cell needs come first, in the order of declaration: two lines of the
/// processor's cache.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Connection {
    pub(super) cells_in: u64,
    pub(super) cells_out: u64,
    /// The only leaf, or the first of several ones.
    pub(super) leaf: Option<Leaf>,
    pub(super) from: PortVc,
    pub(super) whole_path: bool,
    pub(super) local: bool,
    pub(super) policer: Option<Policer>,
    losses: Option<Box<Losses>>,
    /// The second and further leaves.
    pub(super) more: Option<Box<More>>,
    pub(super) traffic: TrafficParams,
}

impl Connection {
    pub(super) const fn new(from: PortVc, leaf: Leaf, traffic: TrafficParams) -> Self {
        Self {
            cells_in: 0,
            cells_out: 0,
            leaf: Some(leaf),
            from,
            whole_path: false,
            local: false,
            policer: None,
            losses: None,
            more: None,
            traffic,
        }
    }

    /// All leaves, in the order in which they get their copies.
    pub(super) fn leaves(&self) -> impl Iterator<Item = Leaf> {
        self.leaf.into_iter().chain(self.more().iter().copied())
    }

    pub(super) fn add_leaf(&mut self, leaf: Leaf) {
        match self.leaf {
            None => self.leaf = Some(leaf),
            Some(_) => self.more.get_or_insert_default().0.push(leaf),
        }
    }

    pub(super) fn remove_leaf(&mut self, to: PortVc) -> Option<Leaf> {
        if self.leaf.is_some_and(|leaf| leaf.to == to) {
            let next = self.take_more(0);
            return std::mem::replace(&mut self.leaf, next);
        }
        let at = self.more().iter().position(|leaf| leaf.to == to)?;
        self.take_more(at)
    }

    /// The second and further leaves.
    pub(super) fn more(&self) -> &[Leaf] {
        self.more.as_ref().map_or(&[], |more| &more.0)
    }

    /// Removes the leaf number `at` of [`Self::more`].
    fn take_more(&mut self, at: usize) -> Option<Leaf> {
        let more = self.more.as_mut()?;
        let leaf = more.0.remove(at);
        if more.0.is_empty() {
            self.more = None;
        }
        Some(leaf)
    }

    #[cold]
    pub(super) fn dropped(&mut self, reason: DropReason, cells: u64) {
        let losses = self.losses.get_or_insert_default();
        losses.dropped.add(reason, cells);
    }

    /// Counts cells that the policer discarded.
    #[cold]
    pub(super) fn policed(&mut self, reason: UpcReason, cells: u64) {
        self.dropped(DropReason::Policed, cells);
        let losses = self.losses.get_or_insert_default();
        losses.upc.discard(reason, cells);
    }

    /// Counts what the policer did to the cells of a run.
    pub(super) fn count(&mut self, upc: &UpcCounters) {
        if *upc == UpcCounters::default() {
            return;
        }
        let losses = self.losses.get_or_insert_default();
        losses.upc.merge(upc);
        losses
            .dropped
            .add(DropReason::Policed, upc.discarded_total());
    }

    /// Counts cells that the policer tagged.
    pub(super) fn tagged(&mut self, reason: UpcReason, cells: u64) {
        let losses = self.losses.get_or_insert_default();
        losses.upc.tag(reason, cells);
    }

    pub(super) fn view(&self) -> ConnectionView {
        let losses = self.losses.as_deref();
        let counted = losses.map(|losses| (losses.dropped, losses.upc));
        let (dropped, upc) = counted.unwrap_or_default();
        ConnectionView {
            from: self.from,
            to: self.leaves().map(|leaf| leaf.to).collect(),
            whole_path: self.whole_path,
            local: self.local,
            traffic: self.traffic,
            policed: self.policer.is_some(),
            counters: CellCounters {
                cells_in: self.cells_in,
                cells_out: self.cells_out,
                pdus_out: 0,
                tagged: upc.tagged_total(),
                dropped,
            },
            upc,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fields that each cell needs fill two lines of the cache, and a connection has three.
    #[test]
    fn a_connection_is_small() {
        assert!(core::mem::offset_of!(Connection, losses) <= 128);
        assert_eq!(size_of::<Option<Connection>>(), 192);
    }
}
