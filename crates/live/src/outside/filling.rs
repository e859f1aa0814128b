//! Packing cells into packets: cells that wait, and the time when a packet leaves.
//!
//! A packet leaves when it has the number of cells that the lab sets, or when its first cell has waited for the time
//! that the lab sets. It may contain cells of several PDUs and VCs, and a PDU may span packets.

use super::cells;
use super::concat::{Packer, Shim};
use aerostat_lab::model::{Gathering, Packing};
use aerostat_node::atm::CellRun;
use aerostat_proto::{Duration, Instant};
use aerostat_wire::cell::CELL_LEN;
use std::collections::VecDeque;

/// Limit of cells that wait for the operating system.
pub(crate) const QUEUE: usize = 16 * 1024;

/// Packing of many cells into one packet.
struct Many {
    cells: usize,
    wait: Duration,
    /// When the waiting cells leave.
    due: Option<Instant>,
    packer: Packer,
}

/// Waiting cells.
pub(crate) struct Filling {
    unsent: VecDeque<[u8; CELL_LEN]>,
    many: Option<Many>,
    /// True while the operating system takes no more packets.
    blocked: bool,
    /// Cells dropped because too many wait.
    pub(crate) dropped: u64,
}

impl Filling {
    pub(crate) fn new(packing: Packing) -> Self {
        match packing {
            Packing::One => Self::with(None),
            Packing::Many { cells, wait, word } => {
                Self::gathering(Gathering { cells, wait }, Shim::numbered(word))
            }
        }
    }

    /// Packets of many cells, each with this word.
    pub(crate) fn gathering(Gathering { cells, wait }: Gathering, shim: Shim) -> Self {
        Self::with(Some(Many {
            cells: usize::from(cells).max(1),
            wait,
            due: None,
            packer: Packer::new(shim),
        }))
    }

    fn with(many: Option<Many>) -> Self {
        Self {
            unsent: VecDeque::new(),
            many,
            blocked: false,
            dropped: 0,
        }
    }

    /// Queues all cells of a run, or none.
    pub(crate) fn push(&mut self, run: &CellRun) {
        let cells = usize::from(run.count);
        if self.unsent.len() + cells > QUEUE {
            self.dropped += cells as u64;
            return;
        }
        self.unsent.extend(cells::encode(run));
    }

    /// Number of waiting cells.
    pub(crate) fn len(&self) -> usize {
        self.unsent.len()
    }

    /// Sets whether the operating system takes packets.
    pub(crate) const fn block(&mut self, blocked: bool) {
        self.blocked = blocked;
    }

    /// The line is down: drops all waiting cells.
    pub(crate) fn clear(&mut self) {
        self.dropped += self.unsent.len() as u64;
        self.unsent.clear();
        if let Some(many) = &mut self.many {
            many.due = None;
        }
    }

    /// When the next packet leaves that is not full.
    pub(crate) fn due(&self) -> Option<Instant> {
        let many = self.many.as_ref().filter(|_| !self.blocked)?;
        many.due
    }

    /// The next packet that may leave, and its number of cells.
    pub(crate) fn packet(&mut self, now: Instant) -> Option<(Vec<u8>, usize)> {
        if self.blocked {
            return None;
        }
        let first = self.unsent.front()?;
        let Some(many) = &mut self.many else {
            return Some((first.to_vec(), 1));
        };
        let due = *many.due.get_or_insert(now + many.wait);
        let cells = self.unsent.len().min(many.cells);
        if cells < many.cells && due > now {
            return None;
        }
        Some((many.packer.datagram(self.unsent.range(..cells)), cells))
    }

    /// Removes the cells of a packet that was sent.
    pub(crate) fn sent(&mut self, cells: usize) {
        self.unsent.drain(..cells);
        if let Some(many) = &mut self.many {
            many.packer.sent();
            many.due = None;
        }
    }
}
