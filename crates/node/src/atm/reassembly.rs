//! Reassembly of runs: complete PDUs pass unchanged, all other cells follow the rules of AAL5.
//!
//! If the collected cells are exactly those of one undamaged PDU, that PDU is delivered without a look at its octets.
//! Otherwise the octets are put together and AAL5 checks them with the CRC. So a lost cell, a lost last cell and a
//! damaged or misdelivered cell have the same effect as on a real receiver. Cells with their own octets are copied when
//! they come, so the blocks that they come in are free for the next cells.

use super::pdu::{CellRun, Pdu};
use super::pdu_train::TrainPart;
use super::raw::RawCell;
use aerostat_wire::aal5::{self, PduError, ReassemblyCounters, Trailer, cells_for};
use aerostat_wire::cell::PAYLOAD_LEN;

/// Octets that a VC reserves at most for a PDU whose first cell has come: 9180 octets in cells of AAL5. Longer PDUs
/// grow as their cells come, so that one cell does not reserve memory for many.
const MOST_ROOM: usize = 192 * PAYLOAD_LEN;

/// A received SDU.
#[derive(Clone, Debug)]
pub struct Received {
    /// The SDU with its UU. The CLP of this PDU is the one that the sender set.
    pub pdu: Pdu,
    /// True if any cell had CLP 1.
    pub clp: bool,
    /// True if the last cell had congestion indicated.
    pub congested: bool,
}

impl From<Pdu> for Received {
    /// A PDU whose cells met no congestion.
    fn from(pdu: Pdu) -> Self {
        Self {
            clp: pdu.clp(),
            pdu,
            congested: false,
        }
    }
}

/// AAL5 receiver of one VC, fed with runs of cells.
#[derive(Clone, Debug)]
pub struct RunReassembler {
    /// The collected runs. If `octets` has cells, only those runs that have cells of PDUs.
    runs: Vec<CellRun>,
    /// The octets of all cells so far, if the first of them had their own octets; otherwise empty.
    octets: Vec<u8>,
    /// Octets of the last PDU that was put together: the next PDU of a VC is often as long.
    room: u16,
    /// True if any cell had CLP 1.
    clp: bool,
    cells: usize,
    max_sdu: usize,
    /// Cells of such an SDU.
    max_cells: usize,
    skipping: bool,
    /// While the cells behind a PDU that was too long are skipped: the last PDU of which one was, or of which the
    /// failed PDU had the last cell.
    skipped: Option<Pdu>,
    /// The PDUs that failed with the last cells, until they are taken.
    failed: Vec<Pdu>,
    /// Counters.
    pub counters: ReassemblyCounters,
}

impl RunReassembler {
    /// A reassembler for SDUs of up to `max_sdu` octets; 0 means 65535.
    #[must_use]
    pub fn new(max_sdu: u16) -> Self {
        let max_sdu = match max_sdu {
            0 => aal5::MAX_SDU,
            max => max.into(),
        };
        Self {
            runs: Vec::new(),
            octets: Vec::new(),
            room: 0,
            clp: false,
            cells: 0,
            max_sdu,
            max_cells: cells_for(max_sdu),
            skipping: false,
            skipped: None,
            failed: Vec::new(),
            counters: ReassemblyCounters::default(),
        }
    }
    /// Cells of the PDU that is being collected.
    #[must_use]
    pub const fn pending_cells(&self) -> usize {
        self.cells
    }
    /// Forgets the PDU that is being collected.
    pub fn reset(&mut self) {
        self.next_pdu();
        self.skipping = false;
        self.skipped = None;
    }

    /// After each push: the PDUs that cannot be received any more, because cells of them were in a PDU that failed, or
    /// were skipped behind it.
    pub fn take_failed(&mut self) -> Vec<Pdu> {
        std::mem::take(&mut self.failed)
    }

    fn next_pdu(&mut self) {
        self.runs.clear();
        // A VC that waits for its next PDU keeps no memory.
        self.octets = Vec::new();
        self.clp = false;
        self.cells = 0;
    }

    /// Takes a run of cells of one PDU. `Some` if it completes the PDU or shows that the PDU is bad. Runs without user
    /// data are ignored.
    pub fn push(&mut self, run: CellRun) -> Option<Result<Received, PduError>> {
        debug_assert!(!run.has_several(), "PDUs come one by one");
        let copied = (self.runs.is_empty() || !self.octets.is_empty()) && !self.skipping;
        let count = usize::from(run.count);
        // The common case of cells from outside: the block is read where it is.
        if copied
            && self.cells + count <= self.max_cells
            && run.is_user()
            && let Some(cells) = run.raw_cells()
        {
            self.counters.cells += count as u64;
            self.cells += count;
            self.clp |= run.clp;
            self.copy(cells);
            return run.ends_pdu().then(|| self.complete(run.congested));
        }
        self.push_any(run)
    }

    #[inline(never)]
    fn push_any(&mut self, mut run: CellRun) -> Option<Result<Received, PduError>> {
        if !run.is_user() {
            return None;
        }
        self.counters.cells += u64::from(run.count);
        let ends = run.ends_pdu();
        self.failed.clear();
        if self.skipping {
            self.skip(&run);
            return None;
        }
        // The cells in front of the one that is too many belong to the PDU that fails.
        let room = self.max_cells.saturating_sub(self.cells);
        if let Ok(room @ 1..) = u16::try_from(room)
            && let Some(front) = run.split_off_front(room)
        {
            self.cells += usize::from(room);
            self.keep(front);
        }
        self.cells += usize::from(run.count);
        if self.cells > self.max_cells {
            let failure = self.fail(PduError::TooLong);
            self.skipped = self.failed.last().cloned();
            self.skip(&run);
            return Some(failure);
        }
        let congested = run.congested;
        self.keep(run);
        ends.then(|| self.complete(congested))
    }

    /// Skips cells up to the end of a PDU. It may be another one than that which was too long, if the last cell of that
    /// one was lost.
    fn skip(&mut self, run: &CellRun) {
        self.skipping = !run.ends_pdu();
        let last = self.skipped.take();
        let Some(pdu) = run.pdu() else {
            self.skipped = last.filter(|_| self.skipping);
            return;
        };
        if !last.is_some_and(|last| last.is_same(pdu)) {
            self.failed.push(pdu.clone());
        }
        self.skipped = self.skipping.then(|| pdu.clone());
    }

    fn keep(&mut self, run: CellRun) {
        self.clp |= run.clp;
        if let Some(cells) = run.raw_cells() {
            if self.runs.is_empty() || !self.octets.is_empty() {
                return self.copy(cells);
            }
        } else if !self.octets.is_empty() {
            run.each_payload(|payload| self.octets.extend_from_slice(payload));
        }
        if !self.runs.last_mut().is_some_and(|last| last.try_join(&run)) {
            self.runs.push(run);
        }
    }

    /// Copies cells that have their own octets.
    #[inline]
    fn copy(&mut self, cells: &[RawCell]) {
        if self.octets.is_empty() {
            self.reserve();
        }
        for cell in cells {
            self.octets.extend_from_slice(&cell.payload);
        }
    }

    /// Memory for a PDU that begins.
    #[inline(never)]
    fn reserve(&mut self) {
        self.octets.reserve_exact(usize::from(self.room));
    }

    /// Takes the whole PDUs at the front of `rest` together, if they are PDUs of a train and no other PDU is being
    /// collected. With `None`, `rest` is unchanged: its PDUs concern the receiver one by one.
    pub fn take_train(&mut self, rest: &mut Option<CellRun>) -> Option<TrainPart> {
        if self.skipping || self.cells > 0 {
            return None;
        }
        let run = rest.as_mut()?;
        let (part, cells) = run.train()?.part(run.first(), run.count)?;
        if part.longest() > self.max_sdu {
            return None;
        }
        self.counters.cells += u64::from(cells);
        self.counters.sdus += u64::from(part.count());
        self.counters.whole += u64::from(cells);
        if run.split_off_front(cells).is_none() {
            *rest = None;
        }
        Some(part)
    }

    #[inline(never)]
    fn complete(&mut self, congested: bool) -> Result<Received, PduError> {
        let clp = self.clp;
        let whole = if self.octets.is_empty() {
            self.whole()
        } else {
            None
        };
        let pdu = match whole {
            Some(pdu) => pdu,
            None => {
                let mut octets = std::mem::take(&mut self.octets);
                if octets.is_empty() {
                    octets.reserve_exact(self.cells * PAYLOAD_LEN);
                    for run in &self.runs {
                        run.each_payload(|payload| octets.extend_from_slice(payload));
                    }
                } else {
                    self.room = octets.len().min(MOST_ROOM) as u16;
                }
                // A PDU that lost its first cells has arrived if those of an equal PDU stand in their place.
                let last = self.runs.last().and_then(CellRun::pdu);
                match aal5::strip_pdu(&mut octets) {
                    Ok(Trailer { uu, reflected }) => {
                        self.counters.reflected += u64::from(reflected);
                        match last.filter(|last| last.uu() == uu && last.sdu() == octets) {
                            Some(last) => last.clone(),
                            None => Pdu::with(octets, uu, clp),
                        }
                    }
                    Err(error) => return self.fail(error),
                }
            }
        };
        if pdu.sdu().len() > self.max_sdu {
            return self.fail(PduError::TooLong);
        }
        self.counters.sdus += 1;
        self.counters.whole += self.cells as u64;
        self.next_pdu();
        Ok(Received {
            pdu,
            clp,
            congested,
        })
    }

    /// The PDU, if exactly its cells were collected, undamaged and in order.
    fn whole(&self) -> Option<Pdu> {
        let mut next = 0;
        let mut whole: Option<&Pdu> = None;
        for run in &self.runs {
            let pdu = run.pdu()?;
            if run.first != next || whole.is_some_and(|other| !other.is_same(pdu)) {
                return None;
            }
            whole = Some(pdu);
            next += run.count;
        }
        whole
            .filter(|pdu| pdu.cells() == next && !pdu.is_cell())
            .cloned()
    }

    fn fail(&mut self, error: PduError) -> Result<Received, PduError> {
        self.counters.count(error);
        self.failed.clear();
        for pdu in self.runs.iter().filter_map(CellRun::pdu) {
            if !self.failed.last().is_some_and(|last| last.is_same(pdu)) {
                self.failed.push(pdu.clone());
            }
        }
        self.next_pdu();
        Err(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aerostat_wire::Vc;
    use aerostat_wire::aal5::Reassembler;
    use proptest::prelude::*;

    fn cells(len: usize, fill: u8) -> Vec<CellRun> {
        let mut rest = CellRun::whole(Pdu::new(vec![fill; len]), Vc::new(0, 99));
        let mut all = Vec::new();
        while let Some(cell) = rest.split_off_front(1) {
            all.push(cell);
        }
        all.push(rest);
        all
    }

    /// After a reset in the middle of a PDU that is too long, the next PDU is taken whole.
    #[test]
    fn reset_ends_skipping() {
        let mut receiver = RunReassembler::new(10);
        let mut too_long = cells(100, 1).into_iter().take(2);
        let mut next = || too_long.next().and_then(|run| receiver.push(run));
        assert!(next().is_none());
        assert!(matches!(next(), Some(Err(PduError::TooLong))));
        receiver.reset();
        let got = receiver.push(CellRun::whole(Pdu::new(vec![7; 10]), Vc::new(0, 99)));
        assert!(matches!(got, Some(Ok(received)) if received.pdu.sdu() == [7; 10]));
    }

    proptest! {
        /// A PDU is received, or lost a cell, or failed with others, or waits for its last cell: none is gone without a
        /// trace. Its mark tells which one it was.
        #[test]
        fn no_pdu_is_gone_without_a_trace(
            sizes in proptest::collection::vec(1_usize..4, 1..30),
            lost in proptest::collection::vec(0_u8..5, 90),
            together in any::<bool>(),
            max_sdu in 40_u16..200,
        ) {
            let socket = crate::atm::SocketId { node: 0, life: 0, number: 0 };
            let mut receiver = RunReassembler::new(max_sdu);
            let mut lost = lost.into_iter();
            let (mut known, mut received) = (std::collections::BTreeSet::new(), 0);
            let last = sizes.len() as u64 - 1;
            for (number, size) in sizes.into_iter().enumerate() {
                // All have equal octets, as those of a program have.
                let mark = crate::atm::Mark { socket, pdu: number as u64 };
                let pdu = Pdu::marked(vec![7; size * PAYLOAD_LEN - 8], Some(mark));
                let mut rest = Some(CellRun::whole(pdu, Vc::new(0, 99)));
                while let Some(mut run) = rest.take() {
                    let count = if together { run.count } else { 1 };
                    let front = run.split_off_front(count);
                    let run = match front {
                        Some(front) => {
                            rest = Some(run);
                            front
                        }
                        None => run,
                    };
                    if lost.next() == Some(0) {
                        known.insert(mark.pdu);
                        continue;
                    }
                    let outcome = receiver.push(run);
                    let failed = receiver.take_failed();
                    known.extend(failed.iter().filter_map(Pdu::mark).map(|mark| mark.pdu));
                    if let Some(Ok(sdu)) = outcome {
                        let mark = sdu.pdu.mark();
                        prop_assert!(mark.is_some(), "a PDU without a mark");
                        known.extend(mark.map(|mark| mark.pdu));
                        received += 1;
                    }
                }
            }
            prop_assert_eq!(receiver.counters.sdus, received);
            let missing: Vec<u64> = (0..=last).filter(|pdu| !known.contains(pdu)).collect();
            prop_assert!(missing.is_empty(), "gone: {:?}", missing);
        }

        /// With any cells lost or damaged, the results are the same SDUs and the same errors as those of the octet
        /// receiver, be they cells of PDUs or cells with their own octets.
        #[test]
        fn agrees_with_the_octet_receiver(
            sdus in proptest::collection::vec((1_usize..400, any::<u8>(), any::<bool>()), 1..12),
            fates in proptest::collection::vec(0_u8..12, 120),
            max_sdu in 100_u16..400,
        ) {
            let mut runs = RunReassembler::new(max_sdu);
            let mut octets = Reassembler::new(max_sdu);
            let mut fates = fates.into_iter().cycle();
            for (len, fill, raw) in sdus {
                for mut cell in cells(len, fill) {
                    if raw {
                        let own = cell.to_cells()[0];
                        cell = CellRun::raw(cell.vc, own.header.pti, own.payload);
                    }
                    match fates.next() {
                        Some(0) => continue,
                        Some(1) => {
                            let mut damaged = cell.to_cells()[0];
                            damaged.payload[47] ^= 4;
                            cell = CellRun::raw(cell.vc, damaged.header.pti, damaged.payload);
                        }
                        Some(2) => cell.clp = true,
                        Some(3) => cell.congested = true,
                        _ => {}
                    }
                    let real = cell.to_cells()[0];
                    let want = octets.push(&real.payload, real.header.pti, real.header.clp);
                    let got = runs.push(cell);
                    prop_assert_eq!(
                        got.map(|r| r.map(|s| (s.pdu.sdu().to_vec(), s.clp, s.congested))),
                        want.map(|r| r.map(|s| (s.sdu, s.clp, s.congested)))
                    );
                }
            }
            prop_assert_eq!(runs.counters, octets.counters);
        }
    }
}
