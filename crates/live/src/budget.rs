//! The work of the network between two looks at TAPs and links out of the lab.
//!
//! **Why.** After a restart of a switch, hundreds of hosts set up their connections at the same time. That is work for
//! tenths of a second, and for seconds on a loaded machine. Other hosts are not concerned, and must not wait for it.
//!
//! **How.** Before a look the network handles at most [`STEP`] due events, and looks at the clock after every [`PART`]
//! of them: it ends after [`SLICE`]. If events are due still, the network lags behind. Then frames and cells from
//! outside enter it at its own time, before all events that are due later, so that they do not queue behind the work
//! that waits. Only a few frames are taken in such a turn ([`crate::taps`]), so that the network catches up whatever
//! comes.
//!
//! **What it does not bound.** One event can be long: a fault switches a node off with all of its links. The text of
//! its events has a budget of its own ([`crate::site`]).

use crate::clock::Clock;
use crate::world::World;
use aerostat_proto::{Duration, Instant};

/// Limit of network events handled in one turn.
pub(crate) const STEP: usize = 256;
/// Number of events between two looks at the clock.
const PART: usize = 32;
/// How long the network may catch up in one turn.
const SLICE: Duration = Duration::from_micros(250);

/// How much the network did between two looks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Budget {
    /// Events of the network before the last look.
    before: u64,
    /// The most events between two looks.
    most: u64,
}

impl Budget {
    /// TAPs and links have a look, after so many events of the network.
    pub(crate) fn look(&mut self, events: u64) {
        self.most = self.most.max(events - self.before);
        self.before = events;
    }

    /// The most events of the network between two looks so far.
    pub(crate) const fn most(&self) -> u64 {
        self.most
    }
}

/// Handles due events of the network until the budget of a turn is used up; false if more may be due.
pub(crate) fn catch_up(world: &mut World, clock: Clock, now: Instant) -> bool {
    for _ in 0..STEP / PART {
        if world.step(now, PART) {
            return true;
        }
        if clock.now() >= now + SLICE {
            break;
        }
    }
    false
}
