//! Runs of cells that are being collected from the packets of one turn, one for each VC.
//!
//! Cells of different VCs mostly alternate on a line. A run for each of them would cost an event at each port, so the
//! cells of a VC become one run although cells of others come between them. Cells keep their order within their VC, as
//! in any ATM network; between VCs that come within one turn of the loop they do not, because the queues of a port
//! serve them in turns anyway. While a capture runs, runs end where another VC begins, and a capture shows the order of
//! the line.
//!
//! **Bounds.** At most [`MOST`] runs are open, and none is when the turn is over, which has about 2048 cells. A VC has
//! its place by its label; one that finds its place taken ends the run there.

use super::super::Event;
use aerostat_node::atm::{CellRun, RawCells, RawPool, Timing};
use aerostat_proto::{Duration, Instant};
use aerostat_wire::Vc;
use aerostat_wire::cell::Pti;
use std::sync::Arc;

/// Limit of runs that are open.
const MOST: usize = 1024;

/// How long after its first cell a run may get another PDU: with cells at even distances, none is further from its own
/// time than this. It is about the time of a turn of a port (`port/turns.rs`).
pub(super) const SPAN: Duration = Duration::from_micros(64);

/// Label, priority and congestion bit of all cells of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kind {
    pub(super) vc: Vc,
    pub(super) clp: bool,
    pub(super) congested: bool,
}

/// The times of the cells of a packet that are taken: the first one has this index in `times`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken {
    pub(super) times: Timing,
    pub(super) index: u16,
}

impl Taken {
    pub(super) fn at(&self, cell: u16) -> Instant {
        self.times.of(self.index + cell)
    }
}

fn place_of(vc: Vc) -> usize {
    usize::from(vc.vci ^ vc.vpi) % MOST
}

/// A run that is being collected.
pub(super) struct Begun {
    kind: Kind,
    cells: Arc<RawCells>,
    first: Instant,
    last: Taken,
}

impl Begun {
    /// Number of cells, at least 1, among `count` cells of the same kind and payload type at these times, apart from
    /// the mark of the end of a PDU, that the run can take at once; 0 if it must end before them.
    fn takes(&self, kind: Kind, pti: Pti, taken: &Taken, count: u16) -> usize {
        let room = self.cells.room(pti);
        if self.kind != kind || room == 0 {
            return 0;
        }
        if taken.at(count - 1).since(self.first) <= SPAN {
            return room;
        }
        // On a slow line each cell is compared with the time of the first one.
        let last = self.cells.cells().last();
        let between = last.is_some_and(|last| last.pti.is_end());
        usize::from(!between || taken.at(0).since(self.first) <= SPAN)
    }

    /// Appends cells; `None` if another run refers to the block, which none does while it is filled.
    pub(super) fn fill(&mut self) -> Option<&mut RawCells> {
        Arc::get_mut(&mut self.cells)
    }

    fn finish(mut self, pool: &mut RawPool) -> Option<Event> {
        if let Some(cells) = Arc::get_mut(&mut self.cells) {
            let count = cells.cells().len() as u16;
            cells.set_timing(Timing::spread(self.first, self.last.at(0), count));
        }
        let Kind { vc, clp, .. } = self.kind;
        CellRun::of_raw(vc, clp, pool.give(self.cells)).map(Event::Cells)
    }
}

/// The open runs. See the documentation of this module.
pub(super) struct Gathering {
    pool: RawPool,
    begun: Vec<Begun>,
    /// By the place of a VC, one more than the index of its run; 0: none.
    places: Box<[u16; MOST]>,
    /// True if a run ends where another VC begins.
    pub(super) in_order: bool,
}

impl Default for Gathering {
    fn default() -> Self {
        Self {
            pool: RawPool::default(),
            begun: Vec::new(),
            places: Box::new([0; MOST]),
            in_order: false,
        }
    }
}

impl Gathering {
    /// The run for the next of `count` cells of one kind and payload type, apart from the mark of the end of a PDU; and
    /// how many of them it takes at once. Runs that have ended are told.
    pub(super) fn run(
        &mut self,
        kind: Kind,
        pti: Pti,
        (taken, count): (&Taken, u16),
        told: &mut Vec<Event>,
    ) -> (&mut Begun, usize) {
        let place = place_of(kind.vc);
        let open = usize::from(self.places[place]).checked_sub(1);
        let takes = open.map_or(0, |index| self.begun[index].takes(kind, pti, taken, count));
        let index = match open {
            Some(index) if takes > 0 => {
                let begun = &mut self.begun[index];
                begun.last = Taken {
                    index: taken.index + (takes as u16).min(count) - 1,
                    ..*taken
                };
                return (begun, takes);
            }
            Some(index) if !self.in_order => index,
            _ => {
                if self.in_order {
                    self.end(told);
                }
                self.begun.len()
            }
        };
        let begun = Begun {
            kind,
            cells: self.pool.empty(),
            first: taken.at(0),
            last: *taken,
        };
        match self.begun.get_mut(index) {
            Some(old) => {
                let old = std::mem::replace(old, begun);
                told.extend(old.finish(&mut self.pool));
            }
            None => self.begun.push(begun),
        }
        self.places[place] = index as u16 + 1;
        (&mut self.begun[index], 1)
    }

    /// No more cells have arrived: the open runs are told.
    pub(super) fn end(&mut self, told: &mut Vec<Event>) {
        let pool = &mut self.pool;
        for begun in self.begun.drain(..) {
            self.places[place_of(begun.kind.vc)] = 0;
            told.extend(begun.finish(pool));
        }
    }
}
