//! One direction of a link in real time: a cell that is lost or damaged costs the cells of its turn, if its PDU was
//! made in the lab, so the PDU is lost. Cells with their own octets are lost one by one. A damaged cell that comes
//! alone has one inverted bit: in its header, where it is corrected, or in its payload, with which the cell arrives.

use aerostat_lab::circuits::LinkCounters;
use aerostat_lab::model::Errors;
use aerostat_lab::plant::{Blocks, Crossed, Medium};
use aerostat_node::atm::CellRun;
use aerostat_node::ip::books::Cause;
use aerostat_proto::Instant;
use aerostat_proto::mix::{STEP, fraction, mix};
use aerostat_wire::cell::{CELL_BITS, HEADER_LEN};

/// Bits of the header of a cell.
const HEADER_BITS: usize = HEADER_LEN * 8;

/// Random errors of one direction of a link.
pub struct RunLine {
    /// Probabilities that a cell is not lost, and that none of its bits is inverted.
    kept: f64,
    clean: f64,
    blocks: Option<Blocks>,
    /// Seed of the blocks: [`Blocks::seed`].
    block_seed: u64,
    random: u64,
}

impl RunLine {
    pub(super) fn new(errors: &Errors, block_seed: u64, random: u64) -> Self {
        let mut line = Self {
            kept: 1.0,
            clean: 1.0,
            blocks: None,
            block_seed,
            random,
        };
        line.change(errors);
        line
    }

    /// Draws whether any of `cells` cells is affected, where each is spared with probability `spared`.
    fn harms(&mut self, spared: f64, cells: u16) -> bool {
        spared < 1.0 && self.uniform() >= spared.powi(cells.into())
    }

    /// Uniform in [0, 1), with 53 bits.
    fn uniform(&mut self) -> f64 {
        // A small generator of its own; a run in real time cannot be repeated anyway.
        let drawn = mix(self.random);
        self.random = self.random.wrapping_add(STEP);
        fraction(drawn)
    }

    /// A cell with one inverted bit.
    fn damage(&mut self, run: CellRun, counters: &mut LinkCounters) -> Crossed {
        let bit = (self.uniform() * CELL_BITS as f64) as usize;
        let in_payload = bit.checked_sub(HEADER_BITS);
        let cell = run.to_cells().pop();
        let (Some(at), Some(mut cell)) = (in_payload, cell) else {
            counters.corrected += 1;
            return Crossed::Intact(run);
        };
        if let Some(octet) = cell.payload.get_mut(at / 8) {
            *octet ^= 0x80 >> (at % 8);
        }
        Crossed::Damaged(CellRun::of_cell(&cell), run)
    }
}

impl Medium for RunLine {
    fn change(&mut self, errors: &Errors) {
        self.kept = 1.0 - errors.loss;
        self.clean = (1.0 - errors.bits).powi(CELL_BITS as i32);
        self.blocks = Blocks::new(errors, self.block_seed);
    }

    fn one_by_one(&self, run: &CellRun) -> bool {
        (self.kept < 1.0 || self.clean < 1.0)
            && (run.raw_cells().is_some() || run.train().is_some())
    }
    fn cross(
        &mut self,
        run: CellRun,
        start: Instant,
        _finish: Instant,
        counters: &mut LinkCounters,
    ) -> Crossed {
        let count = u64::from(run.count);
        if let Some(blocks) = &self.blocks
            && blocks.loses(start)
        {
            counters.lost += count;
            counters.in_blocks += count;
            return Crossed::Lost(run, Cause::BlockLost);
        }
        if self.harms(self.kept, run.count) {
            counters.lost += count;
            return Crossed::Lost(run, Cause::CellLost);
        }
        if self.harms(self.clean, run.count) {
            counters.damaged += count;
            if count == 1 {
                return self.damage(run, counters);
            }
            counters.discarded += count;
            return Crossed::Lost(run, Cause::BitErrors);
        }
        Crossed::Intact(run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aerostat_node::atm::Pdu;
    use aerostat_wire::Vc;

    /// Of single cells with an inverted bit 40 in 424 are corrected, and the others arrive with another payload.
    #[test]
    fn a_damaged_cell_that_comes_alone_arrives() {
        let errors = Errors {
            bits: 1.0,
            ..Errors::NONE
        };
        let mut line = RunLine::new(&errors, 1, 1);
        let sent = CellRun::whole(Pdu::new(vec![7; 40]), Vc::new(0, 100));
        let mut counters = LinkCounters::default();
        let mut corrected = 0;
        for _ in 0..10_000 {
            let now = Instant::ZERO;
            match line.cross(sent.clone(), now, now, &mut counters) {
                Crossed::Intact(_) => corrected += 1,
                Crossed::Damaged(arrives, run) => {
                    let (got, sent) = (&arrives.to_cells()[0], &run.to_cells()[0]);
                    assert_eq!(got.header, sent.header);
                    let both = got.payload.iter().zip(&sent.payload);
                    let bits: u32 = both.map(|(a, b)| (a ^ b).count_ones()).sum();
                    assert_eq!(bits, 1);
                }
                Crossed::Lost(..) => panic!("a lost cell"),
            }
        }
        assert_eq!(
            (counters.damaged, counters.discarded, counters.lost),
            (10_000, 0, 0)
        );
        assert_eq!(counters.corrected, corrected);
        // 943.4 ± 29 are expected.
        assert!((820..1070).contains(&corrected), "{corrected}");
        // Several cells are lost together.
        let two = CellRun::whole(Pdu::new(vec![7; 80]), Vc::new(0, 100));
        let lost = line.cross(two, Instant::ZERO, Instant::ZERO, &mut counters);
        assert!(matches!(lost, Crossed::Lost(..)));
    }
}
