//! Reassembly of AAL5 where SDUs are needed in the middle of the network: at a link that carries SDUs, at a tap.
//!
//! The network moves cells. PDUs that were made in this program mostly stay whole, and pass without any work here.
//! Cells from outside have to be collected, per connection.
//!
//! **Bounds.** A peer outside may use any number of labels. So only a PDU in progress has an entry, and there are at
//! most [`MOST_OPEN`] entries with at most [`MOST_CELLS`] cells together. A new cell displaces the PDU whose last cell
//! is the oldest. So PDUs that never end give way to those that move on, also under a flood; displaced PDUs are
//! counted.

use aerostat_node::atm::{CellRun, Pdu, RunReassembler};
use std::collections::BTreeMap;

/// Limit of PDUs in progress.
pub(crate) const MOST_OPEN: usize = 1024;
/// Limit of their cells together. A cell alone keeps a block of four cells, so this is 16 MB at most.
const MOST_CELLS: usize = 1 << 16;

/// A PDU in progress.
#[derive(Debug)]
struct Open<T> {
    state: State,
    /// Number of its last cells that were collected, among all cells.
    last: u64,
    /// Note of the caller about the cells so far.
    note: T,
}

/// State of the cells of a PDU.
#[derive(Debug)]
enum State {
    Collecting(RunReassembler),
    /// The PDU is lost: its remaining cells are, too.
    Failed,
}

/// An SDU that was put together, or found whole.
#[derive(Debug)]
pub(crate) struct Assembled<T> {
    /// The PDU.
    pub(crate) pdu: Pdu,
    /// True if any of its cells had CLP 1.
    pub(crate) clp: bool,
    /// Note of the caller about its cells.
    pub(crate) note: T,
}

/// PDUs in progress, by a key of the caller for each connection.
#[derive(Debug)]
pub(crate) struct Assembly<K, T> {
    open: BTreeMap<K, Open<T>>,
    /// PDUs by the number of their last cells.
    by_age: BTreeMap<u64, K>,
    taken: u64,
    cells: usize,
    /// PDUs whose cells did not fit together.
    pub(crate) bad: u64,
    /// Cells of such PDUs.
    pub(crate) lost_cells: u64,
    /// PDUs in progress that gave their place to others.
    pub(crate) displaced: u64,
    /// Cells of displaced PDUs, and of PDUs whose connection has gone.
    displaced_cells: u64,
    /// Cells that belong to no PDU, such as OAM cells.
    others: u64,
}

impl<K, T> Default for Assembly<K, T> {
    fn default() -> Self {
        Self {
            open: BTreeMap::new(),
            by_age: BTreeMap::new(),
            taken: 0,
            cells: 0,
            bad: 0,
            lost_cells: 0,
            displaced: 0,
            displaced_cells: 0,
            others: 0,
        }
    }
}

impl<K: Ord + Copy, T: Default> Assembly<K, T> {
    /// True if [`Self::take`] would do nothing with any cell of a run of user cells: it has no PDU in progress of this
    /// connection, and none of the PDUs that begin is wanted.
    pub(crate) fn ignores(&self, key: K, run: &CellRun, wanted: impl Fn(&[u8]) -> bool) -> bool {
        let Some(cells) = run.raw_cells().filter(|_| run.is_user()) else {
            return false;
        };
        let mut begins = true;
        let heads = cells
            .iter()
            .filter(|cell| std::mem::replace(&mut begins, cell.pti.is_end()));
        heads.into_iter().all(|cell| !wanted(&cell.payload)) && !self.open.contains_key(&key)
    }

    /// Takes cells of one PDU of connection `key`; returns the SDU that they complete. `wanted` is asked about each new
    /// PDU, with its first octets (at least 40, if it is not shorter), and about later cells of a PDU that it does not
    /// want; `note` may note something about these cells.
    pub(crate) fn take(
        &mut self,
        key: K,
        run: &CellRun,
        wanted: impl FnOnce(&[u8]) -> bool,
        note: impl FnOnce(&mut T),
    ) -> Option<Assembled<T>> {
        if !run.is_user() {
            self.others += u64::from(run.count);
            return None;
        }
        if !self.open.contains_key(&key) {
            if let Some(pdu) = run.whole_pdu() {
                if !wanted(pdu.sdu()) {
                    return None;
                }
                let mut noted = T::default();
                note(&mut noted);
                let (pdu, clp, note) = (pdu.clone(), run.clp, noted);
                return Some(Assembled { pdu, clp, note });
            }
            let wanted = match (run.pdu(), run.raw_cells()) {
                (Some(pdu), _) => wanted(pdu.sdu()),
                (None, Some([cell, ..])) => wanted(&cell.payload),
                (None, _) => false,
            };
            // Most cells from outside are those of users, so these need no entry. A later cell of the PDU may look like
            // a wanted one: then the rest does not fit together.
            if !wanted {
                return None;
            }
            self.begin(key);
        }
        let done = self.collect(key, run, note);
        if run.ends_pdu()
            && let Some(open) = self.open.remove(&key)
        {
            self.by_age.remove(&open.last);
        }
        done
    }

    /// Makes an entry for a PDU that begins.
    fn begin(&mut self, key: K) {
        self.make_room(1);
        self.taken += 1;
        let entry = Open {
            state: State::Collecting(RunReassembler::new(0)),
            last: self.taken,
            note: T::default(),
        };
        self.open.insert(key, entry);
        self.by_age.insert(self.taken, key);
    }

    /// Adds cells to the PDU in progress of `key`.
    fn collect(
        &mut self,
        key: K,
        run: &CellRun,
        note: impl FnOnce(&mut T),
    ) -> Option<Assembled<T>> {
        let count = usize::from(run.count);
        let open = self.open.get_mut(&key)?;
        let cells = match &mut open.state {
            State::Collecting(cells) => cells,
            State::Failed => {
                self.lost_cells += count as u64;
                return None;
            }
        };
        self.taken += 1;
        self.by_age.remove(&open.last);
        self.by_age.insert(self.taken, key);
        open.last = self.taken;
        note(&mut open.note);
        let before = cells.pending_cells();
        match cells.push(run.clone()) {
            None => {
                self.cells += count;
                self.make_room(0);
                None
            }
            Some(Ok(received)) => {
                self.cells -= before;
                Some(Assembled {
                    pdu: received.pdu,
                    clp: received.clp,
                    note: std::mem::take(&mut open.note),
                })
            }
            Some(Err(_)) => {
                self.bad += 1;
                self.cells -= before;
                self.lost_cells += (before + count) as u64;
                open.state = State::Failed;
                None
            }
        }
    }

    /// Displaces the oldest PDUs in progress until there is room for `more`.
    fn make_room(&mut self, more: usize) {
        while (self.open.len() + more > MOST_OPEN || self.cells > MOST_CELLS)
            && let Some((_, key)) = self.by_age.pop_first()
        {
            let gone = self.open.remove(&key);
            if let Some(State::Collecting(cells)) = gone.map(|open| open.state) {
                self.displaced += 1;
                self.displaced_cells += cells.pending_cells() as u64;
                self.cells -= cells.pending_cells();
            }
        }
    }

    /// All cells that did not become part of an SDU.
    pub(crate) const fn dropped_cells(&self) -> u64 {
        self.others + self.lost_cells + self.displaced_cells
    }

    /// The connections are gone: forgets all PDUs in progress.
    pub(crate) fn clear(&mut self) {
        self.displaced_cells += self.cells as u64;
        self.cells = 0;
        self.open.clear();
        self.by_age.clear();
    }
}

/// The SDUs of these cells, each with its connection, as a receiver gets them.
#[cfg(test)]
pub(crate) fn sdus<'a>(
    runs: impl IntoIterator<Item = &'a CellRun>,
) -> Vec<(aerostat_wire::Vc, Vec<u8>)> {
    let mut all = Assembly::<_, ()>::default();
    let mut got = Vec::new();
    for run in runs.into_iter().flat_map(|run| run.clone().singles()) {
        let done = all.take(run.vc, &run, |_| true, |()| {});
        got.extend(done.map(|done| (run.vc, done.pdu.sdu().to_vec())));
    }
    got
}

#[cfg(test)]
mod tests {
    use super::*;
    use aerostat_wire::Vc;
    use aerostat_wire::cell::Pti;

    fn cells(pdu: &Pdu, vci: u16) -> Vec<CellRun> {
        let run = CellRun::whole(pdu.clone(), Vc::new(0, vci));
        let cells = run.to_cells().into_iter();
        cells
            .map(|cell| CellRun::raw(run.vc, cell.header.pti, cell.payload))
            .collect()
    }

    fn take(all: &mut Assembly<u16, u32>, run: &CellRun) -> Option<Vec<u8>> {
        let done = all.take(run.vc.vci, run, |_| true, |count| *count += 1)?;
        assert!(done.note > 0);
        Some(done.pdu.sdu().to_vec())
    }

    #[test]
    fn a_run_is_ignored_if_no_pdu_of_it_is_wanted_and_none_is_open() {
        let mut block = aerostat_node::atm::RawCells::default();
        // Two PDUs, and the first cell of a third one.
        for (fill, end) in [(1, false), (2, true), (3, true), (4, false)] {
            block.push(Pti::user(end), &[fill; 48]);
        }
        let run = CellRun::of_raw(Vc::new(0, 40), false, block.into()).unwrap();
        let mut all = Assembly::<u16, ()>::default();
        let ignored = |all: &Assembly<u16, ()>, wanted: u8| {
            all.ignores(40, &run, |head: &[u8]| head.first() == Some(&wanted))
        };
        let seen = [0, 1, 2, 3, 4].map(|wanted| ignored(&all, wanted));
        assert_eq!(seen, [true, false, true, false, false]);
        let begins = CellRun::raw(run.vc, Pti::USER, [0; 48]);
        assert!(all.take(40, &begins, |_| true, |()| {}).is_none());
        assert!(!ignored(&all, 0));
    }

    #[test]
    fn interleaved_cells_of_two_connections_become_two_sdus() {
        let mut all = Assembly::default();
        let pdus = [Pdu::new(vec![1; 100]), Pdu::new(vec![2; 130])];
        let [first, second] = [cells(&pdus[0], 32), cells(&pdus[1], 33)];
        let mut got = Vec::new();
        for pair in first.iter().zip(&second) {
            got.extend(take(&mut all, pair.0));
            got.extend(take(&mut all, pair.1));
        }
        assert_eq!(got, [pdus[0].sdu().to_vec(), pdus[1].sdu().to_vec()]);
        assert_eq!((all.open.len(), all.cells), (0, 0));
        let oam = CellRun::raw(Vc::new(0, 32), Pti::OAM_SEGMENT, [0; 48]);
        assert_eq!(take(&mut all, &oam), None);
        assert_eq!(all.others, 1);
    }

    /// A flood of PDUs that never end displaces itself, and not the PDUs of others.
    #[test]
    fn pdus_without_an_end_give_their_places_to_those_that_move_on() {
        let mut all = Assembly::default();
        let begun = CellRun::raw(Vc::new(0, 32), Pti::USER, [0; 48]);
        let pdu = Pdu::new(vec![1; 100]);
        let (mut got, mut next) = (Vec::new(), 0);
        for cell in cells(&pdu, 9999) {
            for _ in 0..MOST_OPEN - 2 {
                next += 1;
                let vc = Vc::new(0, 32 + next);
                let run = CellRun {
                    vc,
                    ..begun.clone()
                };
                assert_eq!(take(&mut all, &run), None);
            }
            got.extend(take(&mut all, &cell));
            assert!(all.open.len() <= MOST_OPEN && all.by_age.len() == all.open.len());
        }
        assert_eq!(got, [pdu.sdu()]);
        assert!(all.displaced > MOST_OPEN as u64 / 2);
        assert_eq!((all.displaced, all.lost_cells), (all.displaced_cells, 0));
        assert_eq!(all.cells as u64 + all.displaced, u64::from(next));
    }

    /// Cells of AAL1 and AAL2: all of them are lost, and counted.
    #[test]
    fn cells_without_an_end_are_counted_as_lost_and_keep_no_memory() {
        let mut all = Assembly::default();
        let cell = CellRun::raw(Vc::new(0, 32), Pti::USER, [0; 48]);
        for _ in 0..5000 {
            assert_eq!(take(&mut all, &cell), None);
        }
        assert_eq!((all.bad, all.lost_cells, all.cells), (1, 5000, 0));
        let end = CellRun::raw(Vc::new(0, 32), Pti::USER_END, [0; 48]);
        assert_eq!(take(&mut all, &end), None);
        let pdu = Pdu::new(vec![1; 100]);
        let got: Vec<_> = cells(&pdu, 32)
            .iter()
            .filter_map(|run| take(&mut all, run))
            .collect();
        assert_eq!(got, [pdu.sdu()]);
    }

    #[test]
    fn all_cells_in_progress_have_a_limit_together() {
        let mut all = Assembly::default();
        for n in 0..100_u16 {
            for _ in 0..1300 {
                let run = CellRun::raw(Vc::new(0, 100 + n), Pti::USER, [0; 48]);
                assert_eq!(take(&mut all, &run), None);
            }
            assert!(all.cells <= MOST_CELLS);
        }
        assert_eq!(all.cells as u64 + all.displaced_cells, 130_000);
        all.clear();
        assert_eq!((all.cells, all.open.len()), (0, 0));
    }

    /// A flood of cells on many connections costs no entries. A cell in the middle of a PDU that looks like the first
    /// cell of a wanted one makes no SDU.
    #[test]
    fn a_pdu_that_nobody_wants_has_no_entry_and_no_part_of_it_becomes_an_sdu() {
        let mut all = Assembly::<u16, ()>::default();
        let pdu = Pdu::new(vec![1; 200]);
        let cells = cells(&pdu, 32);
        for mistaken in 1..cells.len() {
            for (n, cell) in cells.iter().enumerate() {
                let done = all.take(32, cell, |_| n == mistaken, |()| {});
                assert!(done.is_none());
                assert_eq!(all.open.is_empty(), n < mistaken || cell.ends_pdu());
            }
        }
        assert_eq!((all.cells, all.by_age.len(), all.displaced), (0, 0, 0));
    }
}
