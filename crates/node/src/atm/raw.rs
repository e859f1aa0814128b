//! Cells with their own octets, in blocks of consecutive cells of one VC.
//!
//! A link out of the lab receives cells of any AAL. Their payloads are copied once, from the packet into a block, and
//! stay there until an end needs them: a link out of the lab, a receiver, a capture. The runs of cells that move
//! through switches refer to the block.
//!
//! **Blocks are used again.** A [`RawPool`] keeps the last blocks that it gave out. A block without references becomes
//! the next block, so that forwarding allocates nothing while blocks come back. The blocks of a pool have at most
//! [`RawPool::MOST`] cells together: 1 MB.
//!
//! **Ends of PDUs.** Cells of one VC stand in one block, also behind the end of a PDU: voice, acknowledgements and
//! signalling have PDUs of a cell or two, and a run for each of them would cost an event at each port. A block knows
//! which of its cells end a PDU, so that queues and counters see the PDUs of a run without a look at its cells.

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

/// Bits of a word of marks.
const WORD: usize = u64::BITS as usize;

/// Consecutive cells of one VC: one cell that is not user data, or user cells, of any number of PDUs. All have the same
/// CLP and the same congestion bit.
///
/// The facts of a block that queues and counters need stand together in front, so no cell is looked at for them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct RawCells {
    /// A mark for each cell that is user data and the last cell of a PDU.
    ends: [u64; RawCells::MOST.div_ceil(WORD)],
    /// True if the cell is not user data.
    other: bool,
    timing: Option<Timing>,
    cells: Vec<RawCell>,
}

impl RawCells {
    /// Limit of cells in a block.
    pub const MOST: usize = 172;

    /// A block with one cell.
    #[must_use]
    pub fn single(pti: Pti, payload: [u8; PAYLOAD_LEN]) -> Self {
        let mut block = Self {
            cells: Vec::with_capacity(1),
            ..Self::default()
        };
        block.push(pti, &payload);
        block
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
                .is_none_or(|last| last.pti.is_user() && pti.is_user())
    }
    /// True if the cells are user data, or if the block is empty.
    #[inline]
    #[must_use]
    pub const fn is_user(&self) -> bool {
        !self.other
    }
    /// True if the cell with this index is the last cell of a PDU.
    #[inline]
    #[must_use]
    pub fn is_end(&self, index: u16) -> bool {
        let (word, bit) = (usize::from(index) / WORD, usize::from(index) % WORD);
        self.ends.get(word).is_some_and(|word| word >> bit & 1 != 0)
    }
    /// How many cells of this payload type, or for user cells of any PDU, and of the same VC, CLP and congestion bit,
    /// can follow in this block.
    #[must_use]
    pub fn room(&self, pti: Pti) -> usize {
        match self.takes(pti) {
            false => 0,
            true if pti.is_user() => Self::MOST - self.cells.len(),
            true => 1,
        }
    }
    /// Appends a cell. See [`Self::takes`].
    #[inline]
    pub fn push(&mut self, pti: Pti, payload: &[u8; PAYLOAD_LEN]) {
        self.mark(self.cells.len(), u64::from(pti.is_end()));
        self.other = !pti.is_user();
        let payload = *payload;
        self.cells.push(RawCell { pti, payload });
    }
    /// Appends cells that `read` takes from what it is given; see [`Self::room`].
    #[inline]
    pub fn extend<'a, C>(
        &mut self,
        cells: &'a [C],
        read: impl Fn(&'a C) -> (Pti, &'a [u8; PAYLOAD_LEN]),
    ) {
        let mut other = self.other;
        for cells in cells.chunks(WORD) {
            let (at, mut marks, mut bit) = (self.cells.len(), 0, 0_u32);
            self.cells.extend(cells.iter().map(|cell| {
                let (pti, payload) = read(cell);
                marks |= u64::from(pti.is_end()) << bit;
                other |= !pti.is_user();
                bit += 1;
                let payload = *payload;
                RawCell { pti, payload }
            }));
            self.mark(at, marks);
        }
        self.other = other;
    }
    /// Sets the marks of up to 64 cells from `at` on.
    #[inline]
    fn mark(&mut self, at: usize, marks: u64) {
        let (word, bit) = (at / WORD, at % WORD);
        let parts = [marks << bit, (marks >> 1) >> (WORD - 1 - bit)];
        for (word, part) in self.ends.iter_mut().skip(word).zip(parts) {
            *word |= part;
        }
    }
    /// Cells for which the block has memory, at least 1.
    fn room_for(&self) -> usize {
        self.cells.capacity().max(1)
    }
    /// Removes all cells.
    fn clear(&mut self) {
        self.cells.clear();
        (self.ends, self.other, self.timing) = (Default::default(), false, None);
    }
    /// The marks of the cells from `first` on, in words of 64, and how many of the bits of each word count. Cells that
    /// do not count have no marks.
    fn marks(&self, first: u16, count: u16) -> impl DoubleEndedIterator<Item = (usize, u64)> {
        let (first, end) = (usize::from(first), usize::from(first) + usize::from(count));
        let words = self.ends.iter().enumerate();
        words.map(move |(index, word)| {
            let begin = index * WORD;
            let below = |place: usize| match place.saturating_sub(begin) {
                bits if bits >= WORD => u64::MAX,
                bits => (1 << bits) - 1,
            };
            (begin, word & below(end) & !below(first))
        })
    }
    /// Number of ends of PDUs among `count` cells from `first` on.
    #[inline]
    #[must_use]
    pub fn ends(&self, first: u16, count: u16) -> u16 {
        let marks = self.marks(first, count);
        marks.map(|(_, word)| word.count_ones() as u16).sum()
    }
    /// Number of cells up to the first end of a PDU among `count` cells from `first` on; all of them if none is an end.
    #[must_use]
    pub fn to_first_end(&self, first: u16, count: u16) -> u16 {
        let found = self.marks(first, count).find(|(_, word)| *word != 0);
        let index = found.map(|(begin, word)| begin + word.trailing_zeros() as usize);
        index.map_or(count, |index| (index as u16 + 1).saturating_sub(first))
    }
    /// Number of cells behind the last end of a PDU among `count` cells from `first` on; all of them if none is an end.
    #[must_use]
    pub fn behind_last_end(&self, first: u16, count: u16) -> u16 {
        let found = self.marks(first, count).rev().find(|(_, word)| *word != 0);
        let index = found.map(|(begin, word)| begin + word.ilog2() as usize);
        index.map_or(count, |index| {
            (first + count).saturating_sub(index as u16 + 1)
        })
    }
}

/// Blocks that are used again. See the documentation of this module.
#[derive(Debug, Default)]
pub struct RawPool {
    given: VecDeque<Arc<RawCells>>,
    /// Cells for which these blocks have memory.
    cells: usize,
}

impl RawPool {
    /// Limit of the cells for which the blocks that the pool remembers have memory.
    pub const MOST: usize = 128 * RawCells::MOST;

    /// An empty block without other references.
    pub fn empty(&mut self) -> Arc<RawCells> {
        let Some(mut old) = self.given.pop_front() else {
            return Arc::default();
        };
        let room = old.room_for();
        if let Some(cells) = Arc::get_mut(&mut old) {
            self.cells -= room;
            cells.clear();
            return old;
        }
        // The oldest block is still in use, so the younger ones probably are, too. One that waits long gives way.
        if self.cells < Self::MOST {
            self.given.push_back(old);
        } else {
            self.cells -= room;
        }
        Arc::default()
    }
    /// Gives out a block that was filled, and remembers it to use it again later. Few cells move from a large block to
    /// a small one, so that they do not keep the memory of many while they wait.
    pub fn give(&mut self, block: Arc<RawCells>) -> Arc<RawCells> {
        let (cells, room) = (block.cells.len(), block.cells.capacity());
        self.cells += block.room_for();
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
    use proptest::prelude::*;

    #[test]
    fn a_block_is_used_again_when_nobody_refers_to_it() {
        let mut pool = RawPool::default();
        let mut next = || {
            let mut block = pool.empty();
            let cells = Arc::get_mut(&mut block).unwrap();
            assert!(cells.cells().is_empty());
            cells.push(Pti::USER, &[1; PAYLOAD_LEN]);
            let block = pool.give(block);
            assert!(pool.cells <= RawPool::MOST + RawCells::MOST);
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
    fn pdus_follow_each_other_in_a_block_and_other_kinds_of_cells_end_it() {
        let mut cells = RawCells::default();
        assert!(cells.takes(Pti::OAM_SEGMENT) && cells.takes(Pti::USER));
        cells.push(Pti::USER_END, &[0; PAYLOAD_LEN]);
        assert!(
            cells.takes(Pti::USER) && cells.takes(Pti::USER_END) && !cells.takes(Pti::OAM_SEGMENT)
        );
        assert_eq!(
            (cells.room(Pti::USER), cells.room(Pti::OAM_SEGMENT)),
            (RawCells::MOST - 1, 0)
        );
        let oam = RawCells::single(Pti::OAM_END_TO_END, [0; PAYLOAD_LEN]);
        assert_eq!((oam.room(Pti::USER), oam.ends(0, 1)), (0, 0));
        assert!(cells.is_user() && !oam.is_user() && !oam.is_end(0));
    }

    proptest! {
        /// The marks of a block tell of any of its parts what a look at each cell tells.
        #[test]
        fn marks_are_those_of_the_cells(
            ends in proptest::collection::vec(any::<bool>(), 1..RawCells::MOST + 1),
            part in any::<(proptest::sample::Index, proptest::sample::Index, proptest::sample::Index)>(),
        ) {
            let mut block = RawCells::default();
            let read = |end: &bool| (Pti::user(*end), &[0; PAYLOAD_LEN]);
            let (front, rest) = ends.split_at(part.2.index(ends.len()));
            front.iter().map(read).for_each(|(pti, payload)| block.push(pti, payload));
            block.extend(rest, read);
            prop_assert!(block.cells().iter().map(|cell| cell.pti.is_end()).eq(ends.iter().copied()));
            prop_assert!((0..).zip(&ends).all(|(index, end)| block.is_end(index) == *end));
            let (a, b) = (part.0.index(ends.len() + 1), part.1.index(ends.len() + 1));
            let (from, to) = (a.min(b), a.max(b));
            let (first, count, seen) = (from as u16, (to - from) as u16, &ends[from..to]);
            let number = seen.iter().filter(|end| **end).count();
            prop_assert_eq!(usize::from(block.ends(first, count)), number);
            let to_end = seen.iter().position(|end| *end).map_or(seen.len(), |at| at + 1);
            prop_assert_eq!(usize::from(block.to_first_end(first, count)), to_end);
            let behind = seen.iter().rev().position(|end| *end).unwrap_or(seen.len());
            prop_assert_eq!(usize::from(block.behind_last_end(first, count)), behind);
            block.clear();
            prop_assert_eq!(block, RawCells::default());
        }
    }
}
