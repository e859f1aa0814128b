//! Turns: how many cells leave a port at once for a driver in real time.

use super::{CellRate, OutputPort, Turn};
use aerostat_proto::{Duration, Instant};
use core::cmp::Reverse;

/// The longest time that the cells of one turn may take, at the rate at which they are sent. So each cell is at most
/// this far from its own time, and a cell of another VC waits for at most this long. It is 17 cells of an OC-3. A
/// driver in real time does not wake up more exactly than this.
const TURN: Duration = Duration::from_micros(50);

/// The same while another queue waits. It is the time of one cell of an OC-3, so on such a line, and on slower ones,
/// cells of different VCs interleave one by one. On a faster line as many cells make a turn as an OC-3 would need the
/// time of one cell for.
const SHARED_TURN: Duration = Duration::from_micros(3);

/// How much leaves a port at once: cells of one run.
#[derive(Clone, Copy, Debug)]
pub(super) enum Most {
    /// As many cells.
    Cells(u16),
    /// The cells of a turn.
    Turn,
    /// The cells of a turn that is as long beside another queue as it is alone.
    LongTurn,
}

/// Cells of this rate that a turn of this time has.
fn turn_of(rate: CellRate, time: Duration) -> u16 {
    rate.cells_in(time).clamp(1, u16::MAX.into()) as u16
}

/// Cells of one turn on a line of this rate while no other queue waits, and while another queue waits.
pub(super) fn of_rate(rate: CellRate) -> [u16; 2] {
    [turn_of(rate, TURN), turn_of(rate, SHARED_TURN)]
}

impl OutputPort {
    /// True if the line is so slow, below 40 000 cells per second, that a turn has one cell alone.
    #[must_use]
    pub const fn has_turns_of_one_cell(&self) -> bool {
        self.turns[0] == 1
    }

    /// Limit of the cells of a turn that begins at `start`; the turns are those of [`Self::turns`].
    pub(super) fn most_of_turn(
        &self,
        turn: Turn,
        start: Instant,
        [alone, shared]: [u16; 2],
    ) -> u16 {
        let held = self.waiting.peek().map(|Reverse((at, ..))| *at);
        let mut most = alone;
        if self.schedule.count > 0 || self.others_in_path(turn) {
            most = shared;
        } else if let Some(at) = held {
            most = shared.max(self.cells_before(at, most));
        }
        if let Some(shaper) = self.shaper_of(turn) {
            // The cells of a turn leave together: the last ones no earlier than the tolerance allows.
            let end = start + shaper.early();
            let end = held.map_or(end, |at| at.min(end));
            most = shaper.most_before(end, most);
        }
        most
    }

    /// Number of cells, at most `most`, that begin before `at` if they follow each other now; at least 1.
    fn cells_before(&self, at: Instant, most: u16) -> u16 {
        let mut line = self.line;
        line.not_before(self.schedule.since);
        let about = self.rate.cells_in(at.since(line.at()));
        // The exact times of cells are those of the line.
        let mut cells = about.saturating_sub(1).clamp(1, most.into()) as u16;
        line.advance(cells);
        while cells < most && line.at() < at {
            line.step();
            cells += 1;
        }
        cells
    }
}
