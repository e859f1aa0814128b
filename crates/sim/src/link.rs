//! One direction of a link: propagation delay, lost cells, inverted bits, header error control.
//!
//! Loss removes a cell as a whole, and so does the loss of a block ([`Blocks`]). Bit errors affect header and payload
//! alike: the 53 octets are made, and bits are inverted. The receiver's header error control corrects, discards or is
//! deceived. The rest travels on as a cell with its own octets, which AAL5 checks. Idle cells in between have no
//! errors.

use aerostat_lab::circuits::LinkCounters;
use aerostat_lab::model::Errors;
use aerostat_lab::plant::{Blocks, Crossed, Medium};
use aerostat_node::atm::{CellRun, Content, Received, RunReassembler};
use aerostat_node::ip::books::Cause;
use aerostat_proto::Instant;
use aerostat_wire::Vc;
use aerostat_wire::cell::{CELL_BITS, Cell, CellHeader, HeaderForm, HecReceiver, HecVerdict};
use aerostat_wire::pcapng::Direction;
use rand_pcg::Pcg32;
use rand_pcg::rand_core::Rng;
use std::collections::BTreeMap;

/// One direction of a link in virtual time.
#[derive(Debug)]
pub struct CellLine {
    impairment: Option<Impairment>,
    random: Random,
    /// True if the sender is an end system, where transfer delays start.
    pub(crate) first: bool,
    /// Taps at the sending end and at the receiving end.
    pub(crate) taps: [Option<Tap>; 2],
    /// True if every cell is shown, too.
    pub(crate) cells: bool,
}

/// Reassembles the SDUs that pass one link end in one direction.
type Tap = BTreeMap<Vc, RunReassembler>;

impl CellLine {
    pub(crate) fn new(errors: &Errors, random: Random, first: bool) -> Self {
        Self {
            impairment: Impairment::new(errors, &random),
            random,
            first,
            taps: [None, None],
            cells: false,
        }
    }

    /// The SDU that a cell completes at a tap.
    pub(crate) fn complete(&mut self, direction: Direction, run: &CellRun) -> Option<Received> {
        let [sender, receiver] = &mut self.taps;
        let tap = match direction {
            Direction::Sent => sender,
            Direction::Received => receiver,
        };
        let receiver = tap.as_mut()?.entry(run.vc);
        let receiver = receiver.or_insert_with(|| RunReassembler::new(0));
        receiver.push(run.clone())?.ok()
    }
}

impl Medium for CellLine {
    fn change(&mut self, errors: &Errors) {
        if let Some(before) = self.impairment.take() {
            self.random.rng = before.rng;
        }
        self.impairment = Impairment::new(errors, &self.random);
    }

    fn cross(
        &mut self,
        run: CellRun,
        start: Instant,
        finish: Instant,
        counters: &mut LinkCounters,
    ) -> Crossed {
        match &mut self.impairment {
            None => Crossed::Intact(run),
            Some(impairment) => impairment.cross(run, start, finish, counters),
        }
    }

    fn is_plain(&self) -> bool {
        // A tap at the sending end alone is for messages, which trains tell, too.
        let seen = self.cells || self.taps[1].is_some();
        self.impairment.is_none() && !seen
    }

    fn interrupt(&mut self) {
        for tap in self.taps.iter_mut().flatten() {
            tap.clear();
        }
    }
}

/// Sources of the random errors of one direction. They go on when errors begin, change or end.
#[derive(Clone, Debug)]
pub(crate) struct Random {
    /// Of cells and bits.
    pub(crate) rng: Pcg32,
    /// Of blocks: [`Blocks::seed`].
    pub(crate) blocks: u64,
    /// Form of the headers.
    pub(crate) form: HeaderForm,
}

/// Random errors of one direction.
#[derive(Debug)]
struct Impairment {
    rng: Pcg32,
    blocks: Option<Blocks>,
    loss: f64,
    /// Probability that `n` bits in a row are correct, by `n`.
    clean: Vec<f64>,
    form: HeaderForm,
    hec: HecReceiver,
    last_finish: Instant,
}

impl Impairment {
    /// `None` if the link has no errors.
    fn new(errors: &Errors, random: &Random) -> Option<Self> {
        if !errors.any() {
            return None;
        }
        let right = 1.0 - errors.bits.clamp(0.0, 1.0);
        let mut clean = vec![1.0];
        for bits in 0..CELL_BITS as usize {
            clean.push(clean[bits] * right);
        }
        Some(Self {
            rng: random.rng.clone(),
            blocks: Blocks::new(errors, random.blocks),
            loss: errors.loss,
            clean,
            form: random.form,
            hec: HecReceiver::default(),
            last_finish: Instant::ZERO,
        })
    }

    /// Uniform in [0, 1), with 53 bits.
    fn uniform(&mut self) -> f64 {
        (self.rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// The next inverted bit at or after `from`.
    fn next_error(&mut self, from: usize) -> Option<usize> {
        let left = self.clean.len() - 1 - from;
        let draw = self.uniform();
        // P(the next `n` bits are correct) decreases with n; the draw is between two of these values.
        if draw < self.clean[left] {
            return None;
        }
        let right = self.clean[1..=left].partition_point(|p| draw < *p);
        Some(from + right)
    }

    /// One cell crosses the link between `start` and `finish`.
    fn cross(
        &mut self,
        run: CellRun,
        start: Instant,
        finish: Instant,
        counters: &mut LinkCounters,
    ) -> Crossed {
        if start > self.last_finish {
            self.hec.receive_idle();
        }
        self.last_finish = finish;
        if let Some(blocks) = &self.blocks
            && blocks.loses(start)
        {
            counters.lost += 1;
            counters.in_blocks += 1;
            return Crossed::Lost(run, Cause::BlockLost);
        }
        if self.loss > 0.0 && self.uniform() < self.loss {
            counters.lost += 1;
            return Crossed::Lost(run, Cause::CellLost);
        }
        let Some(first) = self.next_error(0) else {
            self.hec.receive_good(1);
            return Crossed::Intact(run);
        };
        counters.damaged += 1;
        match self.damage(&run, first, counters) {
            None => Crossed::Lost(run, Cause::BitErrors),
            Some(cell) => damaged_run(run, &cell),
        }
    }

    /// The cell that arrives if bit `first` is the first one inverted; `None` if header error control discards it.
    fn damage(&mut self, run: &CellRun, first: usize, counters: &mut LinkCounters) -> Option<Cell> {
        let mut octets = run.to_cells().first()?.encode(self.form);
        let mut next = Some(first);
        while let Some(bit) = next {
            octets[bit / 8] ^= 0x80 >> (bit % 8);
            next = self.next_error(bit + 1);
        }
        let (header, payload) = octets.split_first_chunk_mut::<5>()?;
        match self.hec.receive(header) {
            HecVerdict::Discard => {
                counters.discarded += 1;
                return None;
            }
            HecVerdict::Corrected(_) => counters.corrected += 1,
            HecVerdict::Good => {}
        }
        let [a, b, c, d, _] = *header;
        let header = CellHeader::from_word(u32::from_be_bytes([a, b, c, d]), self.form);
        Some(Cell {
            header,
            payload: (&*payload).try_into().ok()?,
        })
    }
}

/// The original run if the cell arrived undamaged, else a raw cell.
fn damaged_run(run: CellRun, cell: &Cell) -> Crossed {
    let intact = run.to_cells().first().is_some_and(|sent| {
        sent.header
            == CellHeader {
                gfc: 0,
                ..cell.header
            }
            && sent.payload == cell.payload
    });
    if intact && matches!(run.content, Content::Pdu(_)) {
        return Crossed::Intact(run);
    }
    Crossed::Damaged(CellRun::of_cell(cell), run)
}

#[cfg(test)]
mod tests {
    use super::*;
    use aerostat_node::atm::Pdu;

    fn impairment(loss: f64, bit_errors: f64) -> Impairment {
        let errors = Errors {
            loss,
            bits: bit_errors,
            ..Errors::NONE
        };
        let random = Random {
            rng: Pcg32::new(1, 2),
            blocks: 3,
            form: HeaderForm::Uni,
        };
        Impairment::new(&errors, &random).unwrap()
    }

    /// The cell that arrives.
    fn arrives(crossed: Crossed) -> Option<CellRun> {
        match crossed {
            Crossed::Intact(run) | Crossed::Damaged(run, _) => Some(run),
            Crossed::Lost(..) => None,
        }
    }

    fn cell() -> CellRun {
        CellRun::whole(Pdu::new(vec![0x5a; 40]), Vc::new(0, 100))
    }

    #[test]
    fn loss_has_its_rate() {
        let mut link = impairment(0.1, 0.0);
        let mut counters = LinkCounters::default();
        let now = Instant::ZERO;
        let arrived = (0..100_000)
            .filter(|_| arrives(link.cross(cell(), now, now, &mut counters)).is_some())
            .count();
        assert_eq!(arrived as u64 + counters.lost, 100_000);
        assert!(
            (9_600..10_400).contains(&counters.lost),
            "{}",
            counters.lost
        );
        let lost = impairment(1.0, 0.0).cross(cell(), now, now, &mut counters);
        assert!(arrives(lost).is_none());
    }

    #[test]
    fn bit_errors_have_their_rate_and_meet_header_error_control() {
        let mut link = impairment(0.0, 1e-4);
        let mut counters = LinkCounters::default();
        let (mut wrong_bits, mut damaged_payloads) = (0_u32, 0);
        for i in 0..100_000_u64 {
            // Cells are apart from each other, so header error control is in correction mode each time.
            let start = Instant::from_nanos(10 * i + 5);
            let crossed = link.cross(cell(), start, start, &mut counters);
            let Some(run) = arrives(crossed) else {
                continue;
            };
            if let Some([raw]) = run.raw_cells() {
                let good = cell().to_cells()[0].payload;
                let wrong: u32 = raw
                    .payload
                    .iter()
                    .zip(good)
                    .map(|(a, b)| (a ^ b).count_ones())
                    .sum();
                wrong_bits += wrong;
                damaged_payloads += u32::from(wrong > 0);
            }
        }
        // 384 payload bits x 1e5 cells x 1e-4 = 3840 expected.
        assert!((3_600..4_100).contains(&wrong_bits), "{wrong_bits}");
        assert!(damaged_payloads <= wrong_bits);
        // 40 header bits: about 400 headers with one wrong bit, hardly any with two.
        assert!(
            (320..480).contains(&counters.corrected),
            "{}",
            counters.corrected
        );
        assert!(counters.discarded < 10);
        assert!(
            (4_000..4_350).contains(&counters.damaged),
            "{}",
            counters.damaged
        );
    }

    #[test]
    fn back_to_back_errors_lead_to_detection_mode() {
        let mut link = impairment(0.0, 0.02);
        let mut counters = LinkCounters::default();
        for _ in 0..2_000 {
            let now = Instant::ZERO;
            let _ = link.cross(cell(), now, now, &mut counters);
        }
        assert!(counters.discarded > counters.corrected);
    }
}
