//! One direction of a link in real time: a cell that is lost or damaged costs the cells of its turn, if its PDU was
//! made in the lab, so the PDU is lost. Cells with their own octets are lost one by one.

use aerostat_lab::circuits::LinkCounters;
use aerostat_lab::model::Link;
use aerostat_lab::plant::{Crossed, Medium};
use aerostat_node::atm::CellRun;
use aerostat_node::ip::books::Cause;
use aerostat_proto::Instant;

/// Random errors of one direction of a link.
pub struct RunLine {
    /// Probabilities that a cell is not lost, and that none of its bits is inverted.
    kept: f64,
    clean: f64,
    random: u64,
}

impl RunLine {
    pub(super) fn new(link: &Link, random: u64) -> Self {
        Self {
            kept: 1.0 - link.loss,
            clean: (1.0 - link.bit_errors).powi(aerostat_wire::cell::CELL_BITS as i32),
            random,
        }
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

impl Medium for RunLine {
    fn one_by_one(&self, run: &CellRun) -> bool {
        (self.kept < 1.0 || self.clean < 1.0)
            && (run.raw_cells().is_some() || run.train().is_some())
    }
    fn cross(
        &mut self,
        run: CellRun,
        _start: Instant,
        _finish: Instant,
        counters: &mut LinkCounters,
    ) -> Crossed {
        let count = u64::from(run.count);
        if self.harms(self.kept, run.count) {
            counters.lost += count;
            return Crossed::Lost(run, Cause::CellLost);
        }
        if self.harms(self.clean, run.count) {
            counters.damaged += count;
            counters.discarded += count;
            return Crossed::Lost(run, Cause::BitErrors);
        }
        Crossed::Intact(run)
    }
}
