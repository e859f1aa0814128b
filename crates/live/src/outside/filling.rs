//! Packing cells into packets: cells that wait, and the time when a packet leaves.
//!
//! A packet leaves when it has the number of cells that the lab sets, or when its first cell has waited for the time
//! that the lab sets. It may contain cells of several PDUs and VCs, and a PDU may span packets. Packets that may leave
//! at the same time are a [`Batch`], which goes to the operating system in one call.
//!
//! **Cost.** A waiting cell already lies where its packet needs it, so it is copied once. Only the words with sequence
//! numbers are written when the packets leave, because a packet that is dropped takes no number.

use super::cells;
use super::concat::{Packer, Shim};
use aerostat_lab::model::{Gathering, Packing};
use aerostat_node::atm::CellRun;
use aerostat_proto::{Duration, Instant};
use aerostat_wire::cell::{CELL_LEN, HEADER_LEN};
use aerostat_wire::pseudowire::{BARE_HEADER_LEN, WORD_LEN};

/// Limit of cells that wait for the operating system.
pub(crate) const QUEUE: usize = 16 * 1024;
/// Octets that were sent and may stay in front of those that wait.
const SENT: usize = 1 << 16;

/// Packing of many cells into one packet.
struct Many {
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
    /// Packets: some that were sent, those that wait, and last the packet that is being filled.
    octets: Vec<u8>,
    /// Octets that were sent.
    head: usize,
    /// Cells that wait.
    waiting: usize,
    /// Cells in the packet that is being filled; 0 if no packet is.
    open: usize,
    /// Cells of a full packet.
    cells: usize,
    /// Octets in front of the word of each waiting packet.
    prefix: usize,
    /// `None`: a cell with its HEC is a packet.
    many: Option<Many>,
    /// True while the operating system takes no more packets.
    blocked: bool,
    /// Cells dropped because too many wait.
    pub(crate) dropped: u64,
}

impl Filling {
    pub(crate) fn new(packing: Packing) -> Self {
        match packing {
            Packing::One => Self::with(1, None),
            Packing::Many { cells, wait, word } => {
                Self::gathering(Gathering { cells, wait }, Shim::numbered(word))
            }
        }
    }

    /// Packets of many cells, each with this word.
    pub(crate) fn gathering(Gathering { cells, wait }: Gathering, shim: Shim) -> Self {
        let many = Many {
            wait,
            due: None,
            packer: Packer::new(shim),
        };
        Self::with(usize::from(cells).max(1), Some(many))
    }

    const fn with(cells: usize, many: Option<Many>) -> Self {
        Self {
            octets: Vec::new(),
            head: 0,
            waiting: 0,
            open: 0,
            cells,
            prefix: 0,
            many,
            blocked: false,
            dropped: 0,
        }
    }

    /// Queues all cells of a run, or none. Each packet begins with `prefix`, which stays the same while cells wait.
    pub(crate) fn push(&mut self, run: &CellRun, prefix: &[u8]) {
        if prefix.len() != self.prefix {
            self.clear();
            self.prefix = prefix.len();
        }
        let cells = usize::from(run.count);
        if self.waiting + cells > QUEUE {
            self.dropped += cells as u64;
            return;
        }
        if self.head > SENT.max(self.octets.len() / 2) {
            self.octets.drain(..self.head);
            self.head = 0;
        }
        self.octets
            .reserve((cells / self.cells + 1) * self.length());
        match self.many {
            None => self.put::<HEADER_LEN>(run, prefix),
            Some(_) => self.put::<BARE_HEADER_LEN>(run, prefix),
        }
        self.waiting += cells;
    }

    /// Appends the cells of a run, each with the first octets of its header.
    fn put<const HEADER: usize>(&mut self, run: &CellRun, prefix: &[u8]) {
        let word = [0; WORD_LEN];
        let word = word.get(..self.word_len()).unwrap_or_default();
        let (octets, full) = (&mut self.octets, self.cells);
        let mut open = self.open;
        cells::each(run, |header, payload| {
            if open == 0 {
                octets.extend_from_slice(prefix);
                octets.extend_from_slice(word);
            }
            octets.extend_from_slice(header.first_chunk::<HEADER>().unwrap_or(&[0; HEADER]));
            octets.extend_from_slice(payload);
            open = if open + 1 == full { 0 } else { open + 1 };
        });
        self.open = open;
    }

    /// Octets of a packet's word.
    fn word_len(&self) -> usize {
        self.many.as_ref().map_or(0, |many| many.packer.length(0))
    }

    /// Octets of a full packet.
    fn length(&self) -> usize {
        let length = |many: &Many| self.prefix + many.packer.length(self.cells);
        self.many.as_ref().map_or(CELL_LEN, length)
    }

    /// Number of waiting cells.
    pub(crate) const fn len(&self) -> usize {
        self.waiting
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
        self.dropped += self.waiting as u64;
        self.forget();
        if let Some(many) = &mut self.many {
            many.due = None;
        }
    }

    /// No cell waits.
    fn forget(&mut self) {
        self.octets.clear();
        (self.head, self.waiting, self.open) = (0, 0, 0);
    }

    /// When the next packet leaves that is not full.
    pub(crate) fn due(&self) -> Option<Instant> {
        let many = self.many.as_ref().filter(|_| !self.blocked)?;
        many.due
    }

    /// The next packets that may leave, at most `most` for packets of the given length.
    pub(crate) fn batch(
        &mut self,
        now: Instant,
        most: impl FnOnce(usize) -> usize,
    ) -> Option<Batch<'_>> {
        if self.blocked || self.waiting == 0 {
            return None;
        }
        let mut length = self.length();
        let full = (self.waiting - self.open) / self.cells;
        let mut packets = full.min(most(length).max(1));
        if let Some(many) = &mut self.many {
            let due = *many.due.get_or_insert(now + many.wait);
            if full == 0 && due > now {
                return None;
            }
        }
        if full == 0 {
            (packets, length) = (1, self.octets.len() - self.head);
        }
        let octets = self
            .octets
            .get_mut(self.head..self.head + packets * length)?;
        if let Some(many) = &self.many {
            for (packet, octets) in octets.chunks_exact_mut(length).enumerate() {
                let place = octets.get_mut(self.prefix..).unwrap_or_default();
                if let (Some(word), Some(place)) =
                    (many.packer.word(packet), place.first_chunk_mut())
                {
                    *place = word;
                }
            }
        }
        Some(Batch {
            octets,
            length,
            packets,
        })
    }

    /// Removes the cells of the first packets of a batch, which were sent or are lost; returns the number of cells.
    pub(crate) fn sent(&mut self, packets: usize) -> usize {
        let cells = (packets * self.cells).min(self.waiting);
        if cells == self.waiting {
            self.forget();
        } else {
            self.head += packets * self.length();
            self.waiting -= cells;
        }
        if let Some(many) = &mut self.many {
            many.packer.sent(packets);
            many.due = None;
        }
        cells
    }
}

#[cfg(test)]
mod tests;
