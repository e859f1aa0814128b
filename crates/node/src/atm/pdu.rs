//! Data that moves through the network: runs of consecutive cells of one VC, without copies.
//!
//! A cell of a PDU that was made in this program is the pair (PDU, index). Its octets are computed only where they are
//! needed: in a capture, on a link that damages bits, on a link out of the lab, in a receiver whose cells do not fit
//! together. Cells from outside have octets from the start ([`super::raw`]); they may belong to any AAL.

use super::mark::Mark;
use super::pdu_train::PduTrain;
use super::raw::RawCells;
use super::timing::Timing;
use aerostat_proto::{Instant, Sdu};
use aerostat_wire::Vc;
use aerostat_wire::aal0::UserCell;
use aerostat_wire::aal5::{self, cells_for};
use aerostat_wire::cell::{Cell, CellHeader, PAYLOAD_LEN, Pti};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Debug)]
struct Inner {
    sdu: Sdu,
    cells: u16,
    uu: u8,
    clp: bool,
    mark: Option<Mark>,
    /// When its last cell began to leave its sender, in nanoseconds; [`NOT_LEFT`] before that. No other memory depends
    /// on this number, so its accesses are relaxed.
    left: AtomicU64,
}

/// Driver times end long before this value: it is 584 years.
const NOT_LEFT: u64 = u64::MAX;

/// An AAL5 SDU with its UU octet and CLP; cheap to clone.
#[derive(Clone, Debug)]
pub struct Pdu(Arc<Inner>);

impl Pdu {
    /// A PDU with UU 0 and CLP 0.
    ///
    /// # Panics
    /// If the SDU is empty or longer than 65535 octets.
    #[must_use]
    pub fn new(sdu: Vec<u8>) -> Self {
        Self::of(sdu.into())
    }
    /// The same, of an SDU that may begin behind the start of its memory.
    ///
    /// # Panics
    /// If the SDU is empty or longer than 65535 octets.
    #[must_use]
    pub fn of(sdu: Sdu) -> Self {
        Self::made(sdu, 0, false, None)
    }
    /// A PDU with UU 0 and CLP 0, and with a mark for the accounts.
    ///
    /// # Panics
    /// If the SDU is empty or longer than 65535 octets.
    #[must_use]
    pub fn marked(sdu: Vec<u8>, mark: Option<Mark>) -> Self {
        Self::made(sdu.into(), 0, false, mark)
    }
    /// A PDU with all its parameters.
    ///
    /// # Panics
    /// If the SDU is empty or longer than 65535 octets.
    #[must_use]
    pub fn with(sdu: Vec<u8>, uu: u8, clp: bool) -> Self {
        Self::made(sdu.into(), uu, clp, None)
    }

    /// A single cell of a program as a PDU of one cell, without AAL: its SDU is the payload of the cell, which ends a
    /// PDU. So the accounts follow the cell as they follow a PDU.
    #[must_use]
    pub fn of_cell(payload: [u8; PAYLOAD_LEN], clp: bool, mark: Mark) -> Self {
        Self(Arc::new(Inner {
            sdu: payload.to_vec().into(),
            cells: 1,
            uu: 0,
            clp,
            mark: Some(mark),
            left: AtomicU64::new(NOT_LEFT),
        }))
    }
    /// True for a single cell without AAL: a PDU of AAL5 in one cell has an SDU of at most 40 octets.
    #[must_use]
    pub fn is_cell(&self) -> bool {
        self.0.cells == 1 && self.0.sdu.len() == PAYLOAD_LEN
    }

    fn made(sdu: Sdu, uu: u8, clp: bool, mark: Option<Mark>) -> Self {
        assert!(
            !sdu.is_empty() && sdu.len() <= aal5::MAX_SDU,
            "an AAL5 SDU has 1 to 65535 octets"
        );
        let cells = cells_for(sdu.len()) as u16;
        Self(Arc::new(Inner {
            sdu,
            cells,
            uu,
            clp,
            mark,
            left: AtomicU64::new(NOT_LEFT),
        }))
    }
    /// Records when the first bit of the last cell leaves the sender's adapter. This is the cell exit event of I.356,
    /// at which the transfer delay of that cell starts. Only a driver with exact times calls this.
    pub fn last_cell_leaves(&self, at: Instant) {
        self.0.left.store(at.as_nanos(), Ordering::Relaxed);
    }
    /// When the last cell left; `None` if no driver recorded it.
    #[must_use]
    pub fn last_cell_left(&self) -> Option<Instant> {
        let left = self.0.left.load(Ordering::Relaxed);
        (left != NOT_LEFT).then(|| Instant::from_nanos(left))
    }
    /// The SDU.
    #[must_use]
    pub fn sdu(&self) -> &[u8] {
        &self.0.sdu
    }
    /// The mark that its sender's adapter gave it; `None` unless a program wrote it.
    #[must_use]
    pub fn mark(&self) -> Option<Mark> {
        self.0.mark
    }
    /// User-to-user octet.
    #[must_use]
    pub fn uu(&self) -> u8 {
        self.0.uu
    }
    /// Cell loss priority of all cells.
    #[must_use]
    pub fn clp(&self) -> bool {
        self.0.clp
    }
    /// Number of cells of the PDU, 1..=1366.
    #[must_use]
    pub fn cells(&self) -> u16 {
        self.0.cells
    }
    /// True if both are the same PDU, not just equal PDUs.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
    /// The SDU, without a copy if this is the only reference to the PDU.
    #[must_use]
    pub fn into_sdu(self) -> Vec<u8> {
        let sdu =
            Arc::try_unwrap(self.0).map_or_else(|shared| shared.sdu.clone(), |inner| inner.sdu);
        sdu.into_vec()
    }
}

/// Content of the cells of a run. A tag and a pointer, which move in two registers.
#[derive(Clone, Debug, Default)]
pub enum Content {
    /// Nothing: what remains where a run was taken from. A run of cells has another content.
    #[default]
    Nothing,
    /// Consecutive cells of a PDU.
    Pdu(Pdu),
    /// Consecutive cells of several PDUs that one super frame of a kernel stands for.
    Train(PduTrain),
    /// Consecutive cells with their own octets: cells from outside, OAM cells, cells that were damaged on a link.
    Raw(Arc<RawCells>),
}

/// Consecutive cells on one VC. Cells of a train, and user cells with their own octets, may belong to several PDUs; for
/// who is concerned by single PDUs there is [`Self::singles`].
///
/// The default is no cell: what remains where a run was taken from.
///
/// The order of the parts keeps a processor from waiting (`take_from`): compilers join copies of parts of the
/// same size that are neighbours, and read two octets at an address divisible by four as four octets.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub struct CellRun {
    /// Content of the cells.
    pub content: Content,
    /// When their source sends the cells, if a driver moves them as one run. See [`Timing`].
    pub timing: Option<Arc<Timing>>,
    /// True if the cells are discard-eligible: sent with CLP 1, or tagged by the network.
    pub clp: bool,
    /// Index of the first cell in its PDU, train or block.
    pub first: u16,
    /// The VC of the cells on their current link.
    pub vc: Vc,
    /// True if the cells met congestion (EFCI).
    pub congested: bool,
    /// Number of cells, at least 1.
    pub count: u16,
    /// Number of lines that the cells have entered, up to 255. See [`Self::rounding`].
    pub lines: u8,
}

impl CellRun {
    /// All cells of a PDU.
    #[must_use]
    pub fn whole(pdu: Pdu, vc: Vc) -> Self {
        Self {
            count: pdu.cells(),
            clp: pdu.clp(),
            content: Content::Pdu(pdu),
            first: 0,
            vc,
            congested: false,
            timing: None,
            lines: 0,
        }
    }
    /// All cells of a train.
    #[must_use]
    pub fn of_train(train: PduTrain, vc: Vc) -> Self {
        Self {
            count: train.cells(),
            clp: false,
            content: Content::Train(train),
            first: 0,
            vc,
            congested: false,
            timing: None,
            lines: 0,
        }
    }
    /// The train of the cells; `None` for other cells.
    #[must_use]
    pub const fn train(&self) -> Option<&PduTrain> {
        match &self.content {
            Content::Train(train) => Some(train),
            Content::Nothing | Content::Pdu(_) | Content::Raw(_) => None,
        }
    }
    /// One cell with its own octets and CLP 0.
    #[must_use]
    pub fn raw(vc: Vc, pti: Pti, payload: [u8; PAYLOAD_LEN]) -> Self {
        Self {
            content: Content::Raw(Arc::new(RawCells::single(pti, payload))),
            first: 0,
            count: 1,
            vc,
            clp: false,
            congested: false,
            timing: None,
            lines: 0,
        }
    }
    /// A cell with the label, payload type and priority of its header.
    #[must_use]
    pub fn of_cell(cell: &Cell) -> Self {
        Self {
            clp: cell.header.clp,
            congested: cell.header.pti.congested(),
            ..Self::raw(cell.header.vc, cell.header.pti, cell.payload)
        }
    }
    /// The cell of a program.
    #[must_use]
    pub fn of_user_cell(vc: Vc, cell: &UserCell) -> Self {
        Self {
            clp: cell.clp,
            congested: cell.pti.congested(),
            ..Self::raw(vc, cell.pti, cell.payload)
        }
    }
    /// All cells of a block with their own octets. `None` if the block is empty.
    #[must_use]
    pub fn of_raw(vc: Vc, clp: bool, cells: Arc<RawCells>) -> Option<Self> {
        let first = cells.cells().first()?;
        Some(Self {
            count: cells.cells().len() as u16,
            clp,
            congested: first.pti.congested(),
            vc,
            content: Content::Raw(cells),
            first: 0,
            timing: None,
            lines: 0,
        })
    }
    /// Nanoseconds by which the time of a cell may be late because times are whole nanoseconds, exclusive: its source
    /// rounds the time once, and each line on its way once. A policer allows for that (`police.rs`).
    #[inline]
    #[must_use]
    pub const fn rounding(&self) -> u64 {
        1 + self.lines as u64
    }
    /// The same cells with the times at which their source sends them.
    #[must_use]
    pub fn timed(mut self, timing: Timing) -> Self {
        self.timing = Some(Arc::new(timing));
        self
    }
    /// When the source of the cells sends them; `None` if each cell counts at its arrival.
    #[must_use]
    pub fn times(&self) -> Option<Timing> {
        let of_block = match &self.content {
            Content::Nothing | Content::Pdu(_) | Content::Train(_) => None,
            Content::Raw(cells) => cells.timing(),
        };
        self.timing.as_deref().copied().or(of_block)
    }
    /// True if the times are known at which the source of the cells sends them. See [`Self::times`].
    #[must_use]
    pub fn has_times(&self) -> bool {
        self.timing.is_some() || matches!(&self.content, Content::Raw(cells) if cells.is_timed())
    }
    /// Index of the first cell in its PDU, train or block.
    #[must_use]
    pub const fn first(&self) -> u16 {
        self.first
    }
    /// The cells with their own octets; `None` for cells of a PDU that was made in this program.
    #[must_use]
    pub fn raw_cells(&self) -> Option<&[super::raw::RawCell]> {
        match &self.content {
            Content::Nothing | Content::Pdu(_) | Content::Train(_) => None,
            Content::Raw(cells) => {
                let first = usize::from(self.first);
                cells.cells().get(first..first + usize::from(self.count))
            }
        }
    }
    /// The PDU of AAL5, if the run has all its cells.
    #[must_use]
    pub fn whole_pdu(&self) -> Option<&Pdu> {
        match &self.content {
            Content::Pdu(pdu) if self.first == 0 && self.count == pdu.cells() => {
                (!pdu.is_cell()).then_some(pdu)
            }
            _ => None,
        }
    }
    /// The PDU of the cells; `None` for cells with their own octets, and for cells of a train.
    #[must_use]
    pub const fn pdu(&self) -> Option<&Pdu> {
        match &self.content {
            Content::Pdu(pdu) => Some(pdu),
            Content::Nothing | Content::Train(_) | Content::Raw(_) => None,
        }
    }
    /// True if the cells carry user data.
    #[inline]
    #[must_use]
    pub fn is_user(&self) -> bool {
        match &self.content {
            Content::Nothing => false,
            Content::Pdu(_) | Content::Train(_) => true,
            Content::Raw(cells) => cells.is_user(),
        }
    }
    /// True if the last cell of the run is the last cell of a PDU.
    #[inline(always)]
    #[must_use]
    pub fn ends_pdu(&self) -> bool {
        match &self.content {
            Content::Nothing => false,
            Content::Pdu(pdu) => self.first + self.count == pdu.cells(),
            Content::Train(train) => train.is_end(self.first + self.count),
            Content::Raw(cells) if self.count == 1 => cells.is_end(self.first),
            Content::Raw(cells) => cells.is_end(self.first + self.count.saturating_sub(1)),
        }
    }
    /// True if the first cell is the last cell of a PDU.
    pub(super) fn begins_with_end(&self) -> bool {
        match &self.content {
            Content::Nothing => false,
            Content::Pdu(pdu) => self.first + 1 == pdu.cells(),
            Content::Train(train) => train.is_end(self.first + 1),
            Content::Raw(cells) => cells.is_end(self.first),
        }
    }
    /// Number of ends of PDUs in the run.
    #[must_use]
    pub fn ends(&self) -> u16 {
        match &self.content {
            Content::Train(train) => {
                train.ends_before(self.first + self.count) - train.ends_before(self.first)
            }
            Content::Pdu(_) => u16::from(self.ends_pdu()),
            Content::Raw(cells) if self.count == 1 => u16::from(cells.is_end(self.first)),
            Content::Raw(cells) => cells.ends(self.first, self.count),
            Content::Nothing => 0,
        }
    }
    /// True if the cells may belong to several PDUs: those of a train, and user cells with their own octets among which
    /// a PDU ends in front of the last cell.
    #[inline]
    #[must_use]
    pub fn has_several(&self) -> bool {
        match &self.content {
            Content::Nothing | Content::Pdu(_) => false,
            Content::Train(_) => true,
            Content::Raw(cells) => {
                self.count > 1 && cells.to_first_end(self.first, self.count) < self.count
            }
        }
    }
    /// Moves the cells of `from` here; `from` has no cells then.
    ///
    /// The parts move one by one. A copy of all octets at once takes 16 of them at a time, and a processor that reads
    /// 16 octets right after writes of less than 16 must wait until these writes are in the cache.
    #[inline(always)]
    pub(super) fn take_from(&mut self, from: &mut Self) {
        use core::mem::{forget, replace, take};
        if !matches!(self.content, Content::Nothing) || self.timing.is_some() {
            self.clear();
        }
        // What is replaced has nothing to drop.
        forget(replace(&mut self.content, take(&mut from.content)));
        forget(replace(&mut self.timing, from.timing.take()));
        self.first = from.first;
        self.clp = from.clp;
        self.vc = from.vc;
        self.count = from.count;
        self.congested = from.congested;
        self.lines = from.lines;
    }
    #[cold]
    #[inline(never)]
    fn clear(&mut self) {
        *self = Self::default();
    }
    /// Number of ends of PDUs in the run, if its cells carry user data; otherwise 0.
    #[inline]
    pub(super) fn user_ends(&self) -> u16 {
        match &self.content {
            Content::Nothing => 0,
            Content::Pdu(pdu) => u16::from(self.first + self.count == pdu.cells()),
            Content::Raw(cells) if self.count == 1 => u16::from(cells.is_end(self.first)),
            Content::Raw(_) | Content::Train(_) => self.ends(),
        }
    }
    /// Number of cells behind the last end of a PDU; all cells if there is no end.
    #[must_use]
    pub fn tail(&self) -> u16 {
        match (&self.content, self.ends()) {
            (_, 0) => self.count,
            (Content::Train(train), _) => train.tail_before(self.first + self.count),
            (Content::Raw(cells), _) => cells.behind_last_end(self.first, self.count),
            (Content::Nothing | Content::Pdu(_), _) => 0,
        }
    }
    /// The payload type of cell `index` of the run, as its source set it.
    #[inline]
    fn pti(&self, index: u16) -> Pti {
        match &self.content {
            Content::Nothing => Pti::USER,
            Content::Pdu(pdu) => Pti::user(self.first + index + 1 == pdu.cells()),
            Content::Train(train) => Pti::user(train.is_end(self.first + index + 1)),
            Content::Raw(cells) => {
                let cell = cells.cells().get(usize::from(self.first + index));
                cell.map_or(Pti::USER, |cell| cell.pti)
            }
        }
    }
    /// Removes the first `count` cells and returns them. `None` if that would be all cells.
    #[must_use]
    pub fn split_off_front(&mut self, count: u16) -> Option<Self> {
        (count < self.count).then(|| self.front(count))
    }
    #[cold]
    #[inline(never)]
    fn front(&mut self, count: u16) -> Self {
        let mut front = self.clone();
        front.count = count;
        self.skip(count);
        front
    }
    /// Removes the first cell without a look at it. The run may have no cells afterwards.
    #[inline]
    pub(super) const fn skip_cell(&mut self) {
        self.skip(1);
    }
    #[inline]
    const fn skip(&mut self, cells: u16) {
        self.first += cells;
        self.count = self.count.saturating_sub(cells);
    }
    /// Appends `next` if its cells directly follow those of this run.
    pub fn try_join(&mut self, next: &Self) -> bool {
        let same = match (&self.content, &next.content) {
            (Content::Pdu(pdu), Content::Pdu(other)) => pdu.is_same(other),
            (Content::Train(train), Content::Train(other)) => train.is_same(other),
            (Content::Raw(cells), Content::Raw(other)) => Arc::ptr_eq(cells, other),
            _ => false,
        };
        let fits = same && self.first() + self.count == next.first() && self.timing == next.timing;
        if fits && self.clp == next.clp && self.congested == next.congested && self.vc == next.vc {
            self.count += next.count;
            return true;
        }
        false
    }
    /// The header of cell `index` of the run.
    #[must_use]
    pub fn header(&self, index: u16) -> CellHeader {
        let pti = self.pti(index);
        CellHeader {
            gfc: 0,
            vc: self.vc,
            pti: if self.congested {
                pti.with_congestion()
            } else {
                pti
            },
            clp: self.clp,
        }
    }
    /// The next part that belongs to a single PDU, as cells of this PDU alone, if `rest` may have cells of several;
    /// otherwise all of `rest`.
    pub fn next_single(rest: &mut Option<Self>) -> Option<Self> {
        let mut run = rest.take()?;
        let train = match &run.content {
            Content::Nothing | Content::Pdu(_) => return Some(run),
            Content::Raw(cells) => {
                let front = run.split_off_front(cells.to_first_end(run.first, run.count));
                return match front {
                    None => Some(run),
                    front => {
                        *rest = Some(run);
                        front
                    }
                };
            }
            Content::Train(train) => train,
        };
        let (index, within) = train.place(run.first);
        let (pdu, before) = (train.pdu(index), run.first - within);
        let mut front = match run.split_off_front(pdu.cells() - within) {
            Some(front) => {
                *rest = Some(run);
                front
            }
            None => run,
        };
        (front.content, front.first) = (Content::Pdu(pdu), within);
        if let Some(timing) = front.timing {
            front.timing = Some(Arc::new(timing.from_cell(before)));
        }
        Some(front)
    }
    /// The run, with the cells of each PDU as a run of their own.
    pub fn singles(self) -> impl Iterator<Item = Self> {
        let mut rest = Some(self);
        core::iter::from_fn(move || Self::next_single(&mut rest))
    }
    /// Calls `see` with the payload of each cell. For the end of a PDU this segments the PDU again, so it is not for
    /// the common path.
    pub fn each_payload(&self, mut see: impl FnMut(&[u8; PAYLOAD_LEN])) {
        self.payloads(&mut see);
    }
    fn payloads(&self, see: &mut dyn FnMut(&[u8; PAYLOAD_LEN])) {
        match &self.content {
            Content::Nothing => {}
            Content::Pdu(pdu) => {
                let cells = usize::from(self.first)..usize::from(self.first + self.count);
                // Only the last two cells have octets that are not in the SDU. A run in front of them needs no CRC.
                let (full, _) = pdu.sdu().as_chunks::<PAYLOAD_LEN>();
                if let Some(full) = full.get(cells.clone()) {
                    return full.iter().for_each(see);
                }
                let all = aal5::Segmenter::new(pdu.sdu(), pdu.uu());
                all.skip(cells.start)
                    .take(cells.len())
                    .for_each(|(payload, _)| see(&payload));
            }
            Content::Train(_) => self.clone().singles().for_each(|run| run.payloads(see)),
            Content::Raw(_) => {
                let cells = self.raw_cells().unwrap_or_default();
                cells.iter().for_each(|cell| see(&cell.payload));
            }
        }
    }
    /// The cells with their octets. See [`Self::each_payload`].
    #[must_use]
    pub fn to_cells(&self) -> Vec<Cell> {
        let mut cells = Vec::with_capacity(usize::from(self.count));
        self.each_payload(|payload| {
            cells.push(Cell {
                header: self.header(cells.len() as u16),
                payload: *payload,
            });
        });
        cells
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_split_and_join() {
        let vc = Vc::new(0, 100);
        let pdu = Pdu::with((0..200).collect(), 7, true);
        let whole = CellRun::whole(pdu, vc);
        assert_eq!((whole.count, whole.clp, whole.ends_pdu()), (5, true, true));
        let mut rest = whole.clone();
        let mut front = rest.split_off_front(2).unwrap();
        assert_eq!((front.count, rest.count, front.ends_pdu()), (2, 3, false));
        let cells = [front.to_cells(), rest.to_cells()].concat();
        assert_eq!(cells, whole.to_cells());
        assert!(cells[4].is_end() && !cells[3].is_end());
        assert!(!rest.try_join(&front));
        assert!(front.try_join(&rest));
        assert_eq!(front.count, 5);
        assert!(front.split_off_front(5).is_none());
        assert_eq!(size_of::<CellRun>(), 40);
    }
}
