//! A train of PDUs: the PDUs that one super frame of a kernel stands for.
//!
//! A kernel hands over up to 64 KiB of TCP as one frame and leaves it to its network card to make segments. Each of
//! these segments is a PDU, and all counters, queues, policers and captures see them as PDUs. But as long as their
//! octets are not needed, they stay one super frame, and a run of cells can contain the cells of several of them. The
//! kernel at the other end gets one super frame again, or several if the cells came in several parts.
//!
//! A train is a sequence of PDUs of `each` cells, the last of which may be shorter. [`CellRun::singles`] makes runs of
//! single PDUs of it wherever something concerns single PDUs. The PDUs are computed once, when the first of them is
//! needed, so that parts of one PDU that took different ways still belong to the same PDU.
//!
//! [`CellRun::singles`]: super::CellRun::singles

use super::pdu::Pdu;
use crate::ip::offload::{KernelPart, SuperFrame};
use aerostat_proto::Several;
use aerostat_wire::aal5::{self, cells_for};
use core::ops::Range;
use std::sync::{Arc, OnceLock};

#[derive(Debug)]
struct Inner {
    frame: SuperFrame,
    count: u16,
    cells: u16,
    each: u16,
    singles: OnceLock<Vec<Pdu>>,
}

/// The PDUs of a super frame; cheap to clone. See the documentation of this module.
#[derive(Clone, Debug)]
pub struct PduTrain(Arc<Inner>);

impl PduTrain {
    /// True if `count` PDUs of at most `longest` octets can be a train.
    #[must_use]
    pub fn fits(count: u16, longest: usize) -> bool {
        let cells = cells_for(longest.min(aal5::MAX_SDU)) * usize::from(count);
        longest <= aal5::MAX_SDU && cells <= usize::from(u16::MAX)
    }
    /// The PDUs of a super frame whose segments are SDUs.
    ///
    /// # Errors
    /// The super frame, if its PDUs have more than 65535 cells together, or an SDU is longer than AAL5 allows.
    pub fn new(frame: SuperFrame) -> Result<Self, SuperFrame> {
        let count = frame.count();
        let each = cells_for(frame.length(0));
        let cells = each * count.saturating_sub(1) + cells_for(frame.length(count - 1));
        let fits = frame.length(0) <= aal5::MAX_SDU;
        match (u16::try_from(count), u16::try_from(cells)) {
            (Ok(count), Ok(cells)) if fits => Ok(Self(Arc::new(Inner {
                frame,
                count,
                cells,
                each: each as u16,
                singles: OnceLock::new(),
            }))),
            _ => Err(frame),
        }
    }
    /// Number of PDUs.
    #[must_use]
    pub fn count(&self) -> u16 {
        self.0.count
    }
    /// Cells of all PDUs.
    #[must_use]
    pub fn cells(&self) -> u16 {
        self.0.cells
    }
    /// True if both are the same train.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
    /// The PDU `index`. The first call computes all PDUs.
    #[must_use]
    pub fn pdu(&self, index: u16) -> Pdu {
        let all = || self.0.frame.segments().map(Pdu::new).collect();
        let all: &Vec<Pdu> = self.0.singles.get_or_init(all);
        all[usize::from(index.min(self.0.count - 1))].clone()
    }
    /// The PDU of the cell `cell`, and the index of the cell there.
    pub(super) fn place(&self, cell: u16) -> (u16, u16) {
        (cell / self.0.each, cell % self.0.each)
    }
    /// True if a PDU ends in front of the cell `cell`.
    pub(super) fn is_end(&self, cell: u16) -> bool {
        cell == self.0.cells || cell > 0 && cell.is_multiple_of(self.0.each)
    }
    /// Number of PDUs that end in front of the cell `cell`.
    pub(super) fn ends_before(&self, cell: u16) -> u16 {
        if cell >= self.0.cells {
            self.0.count
        } else {
            cell / self.0.each
        }
    }
    /// Number of cells between the last end of a PDU and the cell `cell`.
    pub(super) fn tail_before(&self, cell: u16) -> u16 {
        if cell >= self.0.cells {
            0
        } else {
            cell % self.0.each
        }
    }
    /// Number of cells from `first` on that may leave in one turn of at most `turn` cells: at least one, and only up to
    /// the end of a PDU if `turn` has room for a PDU.
    pub(super) fn turn(&self, first: u16, turn: u16) -> u16 {
        let (each, (_, within)) = (self.0.each, self.place(first));
        let left = self.0.cells - first;
        if turn < each {
            // The rest of a PDU, or a part of it.
            return turn.max(1).min(each - within).min(left);
        }
        (turn / each * each - within).min(left)
    }
    /// The whole PDUs among these cells, if the cells begin with a PDU; and the number of their cells.
    pub(super) fn part(&self, first: u16, count: u16) -> Option<(TrainPart, u16)> {
        let pdus = self.ends_before(first)..self.ends_before(first + count);
        let (index, within) = self.place(first);
        if within != 0 || pdus.is_empty() || index != pdus.start {
            return None;
        }
        let end = (u32::from(pdus.end) * u32::from(self.0.each)).min(self.0.cells.into());
        let cells = end as u16 - first;
        let train = self.clone();
        Some((TrainPart { train, pdus }, cells))
    }
}

/// Consecutive PDUs of a train that arrived whole.
#[derive(Clone, Debug)]
pub struct TrainPart {
    train: PduTrain,
    pdus: Range<u16>,
}

impl TrainPart {
    /// The SDUs of the whole train as one: the headers of the super frame, and all payload.
    #[must_use]
    pub fn octets(&self) -> &[u8] {
        self.train.0.frame.octets()
    }
    /// Number of PDUs of the part.
    #[must_use]
    pub fn count(&self) -> u16 {
        self.pdus.end - self.pdus.start
    }
    /// Octets of the longest SDU.
    #[must_use]
    pub fn longest(&self) -> usize {
        self.train.0.frame.length(self.pdus.start.into())
    }
    /// What protocols count of the PDUs.
    #[must_use]
    pub fn several(&self) -> Several {
        let pdus = usize::from(self.pdus.start)..usize::from(self.pdus.end);
        Several {
            count: self.count(),
            longest: self.longest(),
            octets: self.train.0.frame.length_of(pdus),
        }
    }
    /// Octets in front of the IP header of each SDU.
    #[must_use]
    pub fn front(&self) -> usize {
        self.train.0.frame.front()
    }
    /// The single PDUs.
    pub fn pdus(&self) -> impl Iterator<Item = Pdu> {
        self.pdus.clone().map(|index| self.train.pdu(index))
    }
    /// The part as a frame for a kernel, with `ethernet` in front of the IP header.
    #[must_use]
    pub fn for_kernel(&self, ethernet: &[u8]) -> KernelPart<'_> {
        let pdus = usize::from(self.pdus.start)..usize::from(self.pdus.end);
        self.train.0.frame.part(ethernet, pdus)
    }
    /// The memory of the super frame, if no other part of it is in use.
    #[must_use]
    pub fn into_memory(self) -> Option<Vec<u8>> {
        Arc::try_unwrap(self.train.0)
            .ok()
            .map(|inner| inner.frame.into_memory())
    }
}
