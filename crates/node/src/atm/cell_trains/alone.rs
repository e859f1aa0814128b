//! Cells that did not move in trains.

use super::super::counters::tally;
use super::{Bound, Train};

aerostat_wire::named! {
    /// Why the arrival of a cell was an event of its own.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Alone {
        /// Each cell is an event everywhere: links are recorded, or the caller wants it so.
        Recorded = "recorded",
        /// The line has random errors, or blocks that can be lost.
        Errors = "line with errors",
        /// The cells of a frame arrive together.
        Framed = "line of frames",
        /// The cell belongs to no PDU: management, cells with octets of their own.
        NoPdu = "no cell of a PDU",
        /// The connection ends at the switch.
        Local = "ends at a switch",
        /// A policer judges the cell.
        Policed = "policed",
        /// The connection has several leaves.
        Leaves = "several leaves",
        /// The label has no connection, or the link of its port is down.
        NoWay = "no connection",
        /// The next line of the way takes cells one by one.
        NextLine = "in front of such a line",
        /// A later node of the way needs each cell at its time.
        Ahead = "on the way to such a node",
    }
}

tally! {
    /// Cells that were events of their own, by reason.
    pub struct AloneCells of Alone
}

impl Train {
    /// Why the cell that arrives at `at`, nanoseconds, is an event of its own; `None` if a train has no other events,
    /// and if the cell has been taken.
    #[must_use]
    pub fn why_alone(&self, at: u64) -> Option<Alone> {
        if self.next() != Some(at) {
            return None;
        }
        let is_end = self.closed && self.times.len() == 1;
        match self.bound {
            Bound::Cells(why) => Some(why),
            _ => (self.dense && !is_end).then_some(Alone::Ahead),
        }
    }
}
