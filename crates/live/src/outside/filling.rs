//! Cells on their way to a packet: what waits, and when a packet leaves.
//!
//! A packet leaves when it has as many cells as the lab allows, or when its first cell has waited as long as the lab
//! says. It may hold cells of several PDUs and VCs, and a PDU may span packets.

use super::cells;
use super::concat::Packer;
use aerostat_lab::model::Packing;
use aerostat_node::atm::CellRun;
use aerostat_proto::{Duration, Instant};
use aerostat_wire::cell::CELL_LEN;
use std::collections::VecDeque;

/// Cells that wait for the operating system at most.
pub(crate) const QUEUE: usize = 16 * 1024;

/// Many cells in a packet.
struct Many {
    cells: usize,
    wait: Duration,
    /// When the cells that wait leave.
    due: Option<Instant>,
    packer: Packer,
}

/// Cells that wait.
pub(crate) struct Filling {
    unsent: VecDeque<[u8; CELL_LEN]>,
    many: Option<Many>,
    /// The operating system takes no more for now.
    blocked: bool,
    /// Cells dropped because too many wait.
    pub(crate) dropped: u64,
}

impl Filling {
    pub(crate) fn new(packing: Packing) -> Self {
        let many = match packing {
            Packing::One => None,
            Packing::Many { cells, wait, word } => Some(Many {
                cells: usize::from(cells).max(1),
                wait,
                due: None,
                packer: Packer::new(word),
            }),
        };
        Self {
            unsent: VecDeque::new(),
            many,
            blocked: false,
            dropped: 0,
        }
    }

    /// Puts cells into the queue, all or none.
    pub(crate) fn push(&mut self, run: &CellRun) {
        let cells = usize::from(run.count);
        if self.unsent.len() + cells > QUEUE {
            self.dropped += cells as u64;
            return;
        }
        self.unsent.extend(cells::encode(run));
    }

    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        self.unsent.len()
    }

    /// The operating system takes no more, or does again.
    pub(crate) const fn block(&mut self, blocked: bool) {
        self.blocked = blocked;
    }

    /// Nothing can be sent: all is dropped.
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

    /// The next packet that may leave, and how many cells it has.
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

    /// The packet with so many cells is gone.
    pub(crate) fn sent(&mut self, cells: usize) {
        self.unsent.drain(..cells);
        if let Some(many) = &mut self.many {
            many.packer.sent();
            many.due = None;
        }
    }
}
