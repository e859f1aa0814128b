//! One direction of a cable: its cells, its losses and its counters.

use aerostat_lab::circuits::LinkCounters;
use aerostat_lab::model::Link;
use aerostat_node::atm::CellRun;
use aerostat_node::ip::books::Cause;
use aerostat_proto::{Duration, Instant};
use std::collections::VecDeque;

/// One direction of a cable.
pub(super) struct Line {
    pub(super) from: (usize, u16),
    pub(super) to: (usize, u16),
    pub(super) delay: Duration,
    pub(super) on_the_way: VecDeque<(Instant, CellRun)>,
    /// Probabilities that a cell is not lost, and that none of its bits is inverted.
    kept: f64,
    clean: f64,
    random: u64,
    pub(super) up: bool,
    /// Counters in cells. A PDU with a lost or damaged cell is lost or damaged as a whole.
    pub(super) counters: LinkCounters,
}

impl Line {
    pub(super) fn new(link: &Link, [from, to]: [(usize, u16); 2], random: u64) -> Self {
        Self {
            from,
            to,
            delay: link.delay,
            on_the_way: VecDeque::new(),
            kept: 1.0 - link.loss,
            clean: (1.0 - link.bit_errors).powi(aerostat_wire::cell::CELL_BITS as i32),
            random,
            up: true,
            counters: LinkCounters::default(),
        }
    }

    /// Cells leave the port in front. Returns the reason if the cable does not carry all of them; then all are lost.
    pub(super) fn take(&mut self, cells: u16) -> Option<Cause> {
        let count = u64::from(cells);
        self.counters.sent += count;
        if !self.up {
            self.counters.down += count;
            return Some(Cause::Cut);
        }
        if self.harms(self.kept, cells) {
            self.counters.lost += count;
            return Some(Cause::CellLost);
        }
        if self.harms(self.clean, cells) {
            self.counters.damaged += count;
            self.counters.discarded += count;
            return Some(Cause::BitErrors);
        }
        None
    }

    /// Draws whether any of `cells` cells is affected, where each is spared with probability `spared`.
    fn harms(&mut self, spared: f64, cells: u16) -> bool {
        if spared >= 1.0 {
            return false;
        }
        // A small generator of its own (SplitMix64); a run in real time cannot be repeated anyway.
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let uniform = ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64;
        uniform >= spared.powi(cells.into())
    }
}
