//! A train of PDUs: those that one super frame of a kernel stands for, or that a program wrote one after another.
//!
//! A kernel hands over up to 64 KiB of TCP as one frame and leaves it to its network card to make segments. Each of
//! these segments is a PDU, and all counters, queues, policers and captures see them as PDUs. But as long as their
//! octets are not needed, they stay one super frame, and a run of cells can contain the cells of several of them. The
//! kernel at the other end gets one super frame again, or several if the cells came in several parts.
//!
//! A program that writes PDUs of one length writes several of them before the network looks; they are a train, too
//! ([`Sdus`]), and so are they when they reach the other program.
//!
//! A train is a sequence of PDUs of `each` cells, the last of which may be shorter. [`CellRun::singles`] makes runs of
//! single PDUs of it wherever something concerns single PDUs. The PDUs are computed once, when the first of them is
//! needed, so that parts of one PDU that took different ways still belong to the same PDU.
//!
//! [`CellRun::singles`]: super::CellRun::singles

use super::pdu::Pdu;
use super::sdus::Sdus;
use crate::offload::{KernelPart, SuperFrame};
use aerostat_proto::Several;
use aerostat_wire::aal5::{self, cells_for};
use core::ops::Range;
use std::sync::{Arc, OnceLock};

/// Source of the PDUs of a train.
#[derive(Debug)]
pub enum TrainSource {
    /// A super frame of a kernel, whose segments are SDUs.
    Frame(SuperFrame),
    /// SDUs that a program wrote.
    Sdus(Sdus),
}

impl From<SuperFrame> for TrainSource {
    fn from(frame: SuperFrame) -> Self {
        Self::Frame(frame)
    }
}

impl From<Sdus> for TrainSource {
    fn from(sdus: Sdus) -> Self {
        Self::Sdus(sdus)
    }
}

impl TrainSource {
    fn count(&self) -> usize {
        match self {
            Self::Frame(frame) => frame.count(),
            Self::Sdus(sdus) => sdus.count(),
        }
    }
    /// Octets of the SDU `index`.
    fn length(&self, index: usize) -> usize {
        match self {
            Self::Frame(frame) => frame.length(index),
            Self::Sdus(sdus) => sdus.length(index),
        }
    }
    /// Octets of these SDUs together.
    fn octets_of(&self, pdus: Range<usize>) -> usize {
        match self {
            Self::Frame(frame) => frame.length_of(pdus),
            Self::Sdus(sdus) => pdus.map(|index| sdus.length(index)).sum(),
        }
    }
    /// The single PDUs.
    #[must_use]
    pub fn pdus(&self) -> Vec<Pdu> {
        match self {
            Self::Frame(frame) => frame.segments().map(Pdu::new).collect(),
            Self::Sdus(sdus) => sdus.iter().map(|sdu| Pdu::new(sdu.to_vec())).collect(),
        }
    }
}

#[derive(Debug)]
struct Inner {
    source: TrainSource,
    count: u16,
    cells: u16,
    each: u16,
    singles: OnceLock<Vec<Pdu>>,
}

/// The PDUs of a super frame, or of a program; cheap to clone. See the documentation of this module.
#[derive(Clone, Debug)]
pub struct PduTrain(Arc<Inner>);

impl PduTrain {
    /// True if `count` PDUs of at most `longest` octets can be a train.
    #[must_use]
    pub fn fits(count: u16, longest: usize) -> bool {
        let cells = cells_for(longest.min(aal5::MAX_SDU)) * usize::from(count);
        longest <= aal5::MAX_SDU && cells <= usize::from(u16::MAX)
    }
    /// The PDUs of these SDUs.
    ///
    /// # Errors
    /// What was given, if its PDUs have more than 65535 cells together, or an SDU is longer than AAL5 allows.
    pub fn new(source: impl Into<TrainSource>) -> Result<Self, TrainSource> {
        let source = source.into();
        let count = source.count();
        let each = cells_for(source.length(0));
        let cells = each * count.saturating_sub(1) + cells_for(source.length(count - 1));
        let fits = source.length(0) <= aal5::MAX_SDU;
        match (u16::try_from(count), u16::try_from(cells)) {
            (Ok(count), Ok(cells)) if fits => Ok(Self(Arc::new(Inner {
                source,
                count,
                cells,
                each: each as u16,
                singles: OnceLock::new(),
            }))),
            _ => Err(source),
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
        let all = self.0.singles.get_or_init(|| self.0.source.pdus());
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
    /// Number of PDUs of the part.
    #[must_use]
    pub fn count(&self) -> u16 {
        self.pdus.end - self.pdus.start
    }
    fn indices(&self) -> Range<usize> {
        self.pdus.start.into()..self.pdus.end.into()
    }
    /// Octets of the longest SDU.
    #[must_use]
    pub fn longest(&self) -> usize {
        self.train.0.source.length(self.pdus.start.into())
    }
    /// Number of the PDUs for the counters of protocols.
    #[must_use]
    pub fn several(&self) -> Several {
        Several {
            count: self.count(),
            longest: self.longest(),
            octets: self.train.0.source.octets_of(self.indices()),
        }
    }
    /// The super frame of the whole train; `None` if a program wrote the SDUs.
    #[must_use]
    pub fn frame(&self) -> Option<&SuperFrame> {
        match &self.train.0.source {
            TrainSource::Frame(frame) => Some(frame),
            TrainSource::Sdus(_) => None,
        }
    }
    /// The single PDUs.
    pub fn pdus(&self) -> impl Iterator<Item = Pdu> {
        self.pdus.clone().map(|index| self.train.pdu(index))
    }
    /// The part as a frame for a kernel, with `ethernet` in front of the IP header; `None` if a program wrote the SDUs.
    #[must_use]
    pub fn for_kernel(&self, ethernet: &[u8]) -> Option<KernelPart<'_>> {
        Some(self.frame()?.part(ethernet, self.indices()))
    }
    /// The memory of the train, if no other part of it is in use.
    #[must_use]
    pub fn into_memory(self) -> Option<Vec<u8>> {
        let inner = Arc::try_unwrap(self.train.0).ok()?;
        Some(match inner.source {
            TrainSource::Frame(frame) => frame.into_memory(),
            TrainSource::Sdus(sdus) => sdus.into_vec(),
        })
    }
    /// The SDUs that a program wrote, without a copy if no other part of the train is in use.
    ///
    /// # Errors
    /// The part, if it is one of a super frame.
    pub fn into_sdus(self) -> Result<Sdus, Self> {
        let (indices, Self { train, pdus }) = (self.indices(), self);
        let again = |inner| Self {
            train: PduTrain(inner),
            pdus,
        };
        match Arc::try_unwrap(train.0) {
            Ok(Inner {
                source: TrainSource::Sdus(sdus),
                ..
            }) if indices.len() == sdus.count() => Ok(sdus),
            Ok(inner) => Self::copied(&inner, indices).ok_or_else(|| again(Arc::new(inner))),
            Err(shared) => Self::copied(&shared, indices).ok_or_else(|| again(shared)),
        }
    }
    fn copied(inner: &Inner, pdus: Range<usize>) -> Option<Sdus> {
        match &inner.source {
            TrainSource::Sdus(sdus) => Some(sdus.part(pdus.start, pdus.end)),
            TrainSource::Frame(_) => None,
        }
    }
}
