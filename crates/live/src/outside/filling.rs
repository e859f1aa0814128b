//! Packing cells into packets: cells that wait, and the time when a packet leaves.
//!
//! A packet leaves when it has the number of cells that the lab sets, or when its first cell has waited for the time
//! that the lab sets. It may contain cells of several PDUs and VCs, and a PDU may span packets. Packets that may leave
//! at the same time are a [`Batch`], which goes to the operating system in one call.

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

/// Packets that leave at the same time. All have the same length.
pub(crate) struct Batch<'a> {
    /// Their octets.
    pub(crate) octets: &'a [u8],
    /// Octets of each.
    pub(crate) length: usize,
    /// How many they are, at least 1.
    pub(crate) packets: usize,
}

/// Waiting cells.
pub(crate) struct Filling {
    unsent: VecDeque<[u8; CELL_LEN]>,
    many: Option<Many>,
    /// The packets of the last batch.
    octets: Vec<u8>,
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
            octets: Vec::new(),
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
        cells::each(run, |cell| self.unsent.push_back(*cell));
    }

    /// Number of waiting cells.
    pub(crate) fn len(&self) -> usize {
        self.unsent.len()
    }

    /// True while the operating system takes no more packets.
    pub(crate) const fn is_blocked(&self) -> bool {
        self.blocked
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

    /// The next packets that may leave, at most `most` for packets of the given length; each begins with `prefix`.
    /// Packets of one cell each have no prefix.
    pub(crate) fn batch(
        &mut self,
        now: Instant,
        prefix: &[u8],
        most: impl FnOnce(usize) -> usize,
    ) -> Option<Batch<'_>> {
        if self.blocked || self.unsent.is_empty() {
            return None;
        }
        let Some(many) = &mut self.many else {
            // The cells lie as the packets need them.
            let (cells, _) = self.unsent.as_slices();
            let packets = most(CELL_LEN).clamp(1, cells.len());
            return Some(Batch {
                octets: cells.get(..packets)?.as_flattened(),
                length: CELL_LEN,
                packets,
            });
        };
        let due = *many.due.get_or_insert(now + many.wait);
        let waiting = self.unsent.len();
        let (cells, packets) = match waiting / many.cells {
            0 if due > now => return None,
            0 => (waiting, 1),
            full => {
                let length = prefix.len() + many.packer.length(many.cells);
                (many.cells, full.min(most(length).max(1)))
            }
        };
        self.octets.clear();
        for packet in 0..packets {
            self.octets.extend_from_slice(prefix);
            let cells = self.unsent.range(packet * cells..(packet + 1) * cells);
            many.packer.put(&mut self.octets, packet, cells);
        }
        Some(Batch {
            octets: &self.octets,
            length: self.octets.len() / packets,
            packets,
        })
    }

    /// Removes the cells of the first packets of a batch, which were sent or are lost; returns the number of cells.
    pub(crate) fn sent(&mut self, packets: usize) -> usize {
        let each = self.many.as_ref().map_or(1, |many| many.cells);
        let cells = (packets * each).min(self.unsent.len());
        self.unsent.drain(..cells);
        if let Some(many) = &mut self.many {
            many.packer.sent(packets);
            many.due = None;
        }
        cells
    }
}
