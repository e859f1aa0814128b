//! Cells with their own octets, in blocks of consecutive cells of one VC.
//!
//! A link out of the lab receives cells of any AAL. Their payloads are copied once, from the packet into a block, and
//! stay there until an end needs them: a link out of the lab, a receiver, a capture. The runs of cells that move
//! through switches refer to the block.
//!
//! **Blocks are used again.** A [`RawPool`] keeps the last blocks that it gave out. A block without references becomes
//! the next block, so that forwarding allocates nothing while blocks come back. The pool keeps at most
//! [`RawPool::MOST`] blocks of at most [`RawCells::MOST`] cells: 1 MB.

use super::timing::Timing;
use aerostat_wire::cell::{PAYLOAD_LEN, Pti};
use std::collections::VecDeque;
use std::sync::Arc;

/// A cell with its own octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawCell {
    /// Payload type.
    pub pti: Pti,
    /// The payload.
    pub payload: [u8; PAYLOAD_LEN],
}

/// Consecutive cells of one VC: one cell that is not user data, or user cells of which only the last one can be the
/// last cell of a PDU. All have the same CLP and the same congestion bit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RawCells {
    cells: Vec<RawCell>,
    timing: Option<Timing>,
}

impl RawCells {
    /// Limit of cells in a block.
    pub const MOST: usize = 172;

    /// A block with one cell.
    #[must_use]
    pub fn single(pti: Pti, payload: [u8; PAYLOAD_LEN]) -> Self {
        Self {
            cells: vec![RawCell { pti, payload }],
            timing: None,
        }
    }
    /// The cells.
    #[must_use]
    pub fn cells(&self) -> &[RawCell] {
        &self.cells
    }
    /// When the source of the cells sends them; the first cell has index 0.
    #[must_use]
    pub const fn timing(&self) -> Option<Timing> {
        self.timing
    }
    /// True if the block has times. See [`Self::timing`].
    #[must_use]
    pub const fn is_timed(&self) -> bool {
        self.timing.is_some()
    }
    /// Sets the times at which the source of the cells sends them; the first cell has index 0.
    pub const fn set_timing(&mut self, timing: Timing) {
        self.timing = Some(timing);
    }
    /// True if a cell of the same VC, CLP and congestion bit can follow in this block.
    #[must_use]
    pub fn takes(&self, pti: Pti) -> bool {
        self.cells.len() < Self::MOST
            && self
                .cells
                .last()
                .is_none_or(|last| last.pti.is_user() && !last.pti.is_end() && pti.is_user())
    }
    /// How many cells of this payload type, and of the same VC, CLP and congestion bit, can follow in this block.
    #[must_use]
    pub fn room(&self, pti: Pti) -> usize {
        match self.takes(pti) {
            false => 0,
            true if pti.is_user() && !pti.is_end() => Self::MOST - self.cells.len(),
            true => 1,
        }
    }
    /// Appends cells of one payload type. See [`Self::room`].
    pub fn extend<'a>(&mut self, pti: Pti, payloads: impl Iterator<Item = &'a [u8; PAYLOAD_LEN]>) {
        let cell = |payload: &[u8; PAYLOAD_LEN]| RawCell {
            pti,
            payload: *payload,
        };
        self.cells.extend(payloads.map(cell));
    }
    /// Appends a cell. See [`Self::takes`].
    pub fn push(&mut self, pti: Pti, payload: &[u8; PAYLOAD_LEN]) {
        let payload = *payload;
        self.cells.push(RawCell { pti, payload });
    }
}

/// Blocks that are used again. See the documentation of this module.
#[derive(Debug, Default)]
pub struct RawPool {
    given: VecDeque<Arc<RawCells>>,
}

impl RawPool {
    /// Limit of blocks that the pool remembers.
    pub const MOST: usize = 128;

    /// An empty block without other references.
    pub fn empty(&mut self) -> Arc<RawCells> {
        match self.given.pop_front() {
            Some(mut old) => match Arc::get_mut(&mut old) {
                Some(cells) => {
                    cells.cells.clear();
                    cells.timing = None;
                    old
                }
                None => {
                    // The oldest block is still in use, so the younger ones probably are, too.
                    if self.given.len() + 1 < Self::MOST {
                        self.given.push_front(old);
                    }
                    Arc::default()
                }
            },
            None => Arc::default(),
        }
    }
    /// Gives out a block that was filled, and remembers it to use it again later. Few cells move from a large block to
    /// a small one, so that they do not keep the memory of many while they wait.
    pub fn give(&mut self, block: Arc<RawCells>) -> Arc<RawCells> {
        let (cells, room) = (block.cells.len(), block.cells.capacity());
        if room > 16 && cells < room / 4 {
            let small = Arc::new(RawCells::clone(&block));
            self.given.push_front(block);
            return small;
        }
        self.given.push_back(Arc::clone(&block));
        block
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_used_again_when_nobody_refers_to_it() {
        let mut pool = RawPool::default();
        let mut next = || {
            let mut block = pool.empty();
            let cells = Arc::get_mut(&mut block).unwrap();
            assert!(cells.cells().is_empty());
            cells.push(Pti::USER, &[1; PAYLOAD_LEN]);
            let block = pool.give(block);
            assert!(pool.given.len() <= RawPool::MOST);
            block
        };
        let (first, second) = (next(), next());
        assert!(!Arc::ptr_eq(&first, &second));
        let address = Arc::as_ptr(&first);
        drop(first);
        let again = next();
        assert_eq!((Arc::as_ptr(&again), again.cells().len()), (address, 1));
        let held: Vec<_> = (0..1000).map(|_| next()).collect();
        assert!(held.iter().all(|block| block.cells().len() == 1));
        drop(held);
        next();
    }

    #[test]
    fn few_cells_do_not_keep_the_memory_of_many() {
        let mut pool = RawPool::default();
        let mut held = Vec::new();
        for cells in [RawCells::MOST, 1].repeat(500) {
            let mut block = pool.empty();
            let filled = Arc::get_mut(&mut block).unwrap();
            (0..cells).for_each(|_| filled.push(Pti::USER, &[1; PAYLOAD_LEN]));
            let block = pool.give(block);
            assert_eq!(block.cells().len(), cells);
            held.extend((cells == 1).then_some(block));
        }
        assert!(held.iter().all(|block| block.cells.capacity() <= 16));
    }

    #[test]
    fn the_end_of_a_pdu_and_other_kinds_of_cells_end_a_block() {
        let mut cells = RawCells::default();
        assert!(cells.takes(Pti::OAM_SEGMENT) && cells.takes(Pti::USER));
        cells.push(Pti::USER, &[0; PAYLOAD_LEN]);
        assert!(cells.takes(Pti::USER_END) && !cells.takes(Pti::OAM_SEGMENT));
        cells.push(Pti::USER_END, &[0; PAYLOAD_LEN]);
        assert!(!cells.takes(Pti::USER));
    }
}
