//! The next cell that matters ([`OutputPort::next_matter`]) at a port with another discipline than round robin, or with
//! shaped paths: a lower bound. Who looks at this time finds the cell on the line, or asks again.

use super::path::path_of;
use super::schedule::{BEST_EFFORT, Discipline, Schedule, Share};
use super::{OutputPort, Turn, VcQueue};
use crate::atm::cell_trains::Trains;
use crate::atm::shaper::Shaper;
use aerostat_proto::Instant;

/// Queues that wait, and entries of an order of cells, to look at. Beyond them the port is asked again cell by cell.
const LOOK: usize = 64;

/// Queues of one schedule whose tags are compared, each with each.
const COMPARED: usize = 16;

impl OutputPort {
    /// See [`Self::next_matter`].
    pub(super) fn next_matter_of_more(&self, trains: &Trains, line: u32) -> Option<Instant> {
        // The line goes on at the fraction of a nanosecond where it is, so a start that is rounded up is too late.
        let soonest = match self.schedule.count {
            0 => self.after(self.waiting.peek()?.0.0),
            _ => self.after_cells(1),
        };
        let mut best: Option<Instant> = None;
        let mut offer = |at: Instant| {
            let at = at.max(soonest);
            best = Some(best.map_or(at, |best| best.min(at)));
        };
        let mut inside = |schedule: &Schedule, shaper: Option<&Shaper>| {
            self.matter_in(schedule, trains, line, &mut |cells| {
                let shaped = shaper.map(|shaper| self.after(shaper.after(cells - 1)));
                offer(self.after_cells(cells).max(shaped.unwrap_or_default()));
            });
        };
        inside(&self.schedule, None);
        for path in self.paths.iter().filter(|path| path.schedule.count > 0) {
            inside(&path.schedule, Some(&path.shaper));
        }
        // Shaped queues that are held back, or wait for their turns.
        let held = self.waiting.iter().map(|entry| entry.0.2);
        let ready = self.schedule.entries().map(|(turn, _)| turn);
        for (index, turn) in held.chain(ready).enumerate() {
            if index >= LOOK {
                offer(soonest);
                break;
            }
            if let Some(queue) = self.at_turn(turn)
                && let Some(shaper) = &queue.shaper
                && let Some(wanted) = queue.until_matters(trains, line, &self.runs)
            {
                let start = match wanted {
                    0 | 1 => shaper.eligible(),
                    more => shaper.after(more - 1),
                };
                offer(self.after(start));
            }
        }
        best
    }

    /// The queue of an entry, if cells wait in it.
    fn at_turn(&self, turn: Turn) -> Option<&VcQueue> {
        path_of(turn).is_none().then_some(())?;
        let queue = self.queues.get(turn.0 as usize)?;
        (queue.opened == turn.1 && queue.cells > 0).then_some(queue)
    }

    /// Calls `offer` with a number of cells of this schedule that are served at least, up to and including a cell that
    /// matters, for each queue without a shaper.
    fn matter_in(
        &self,
        schedule: &Schedule,
        trains: &Trains,
        line: u32,
        offer: &mut dyn FnMut(u32),
    ) {
        /// A queue, and the cells up to one that matters.
        type Waiting<'a> = (Turn, &'a VcQueue, Option<u32>);
        fn share<'a>(one: &Waiting<'a>) -> Option<&'a Share> {
            let share = one.1.share.as_deref();
            share.filter(|_| one.1.class >= BEST_EFFORT)
        }
        let mut seen: Vec<Waiting<'_>> = Vec::new();
        let mut ahead = 0;
        for (index, (turn, cells)) in schedule.entries().enumerate() {
            if index >= LOOK {
                return offer(ahead + 1);
            }
            let Some(queue) = self.at_turn(turn).filter(|queue| queue.shaper.is_none()) else {
                continue;
            };
            let known = seen.iter().position(|one| one.0 == turn);
            let at = known.unwrap_or_else(|| {
                let wanted = queue.until_matters(trains, line, &self.runs);
                seen.push((turn, queue, wanted));
                seen.len() - 1
            });
            // Where the order of cells is known, a queue's own cells are among those in front.
            if let (Some(cells), Some(wanted)) = (cells, seen[at].2) {
                if wanted <= cells {
                    offer(ahead + wanted);
                    seen[at].2 = None;
                } else {
                    seen[at].2 = Some(wanted - cells);
                }
            }
            ahead += cells.unwrap_or_default();
        }
        if ahead > 0 {
            return;
        }
        let compared = seen.len() <= COMPARED && schedule.discipline() == Discipline::Weighted;
        for one in &seen {
            let Some(wanted) = one.2 else { continue };
            let mut cells = wanted;
            if let Some(own) = share(one).filter(|_| compared) {
                for other in seen.iter().filter(|other| other.0 != one.0) {
                    let before = share(other).map(|share| own.ahead(wanted, share, other.1.cells));
                    cells = cells.saturating_add(before.unwrap_or_default());
                }
            }
            offer(cells);
        }
    }
}
