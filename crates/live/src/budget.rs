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
//! **Rest.** Events happen at their own times, whenever the loop handles them. So a network in which no source takes
//! part ([`crate::source::Source::takes_part`]) may wait for its turn, which has what was due since the last: such a
//! network with at least [`BUSY`] events in a [`REST`] has a turn after each of these, and not one for each event.
//! A client that follows each change needs each event, too.
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
/// Time between two turns of a busy network in which no source takes part. A person sees no difference.
const REST: Duration = Duration::from_millis(1);
/// Number of events in this time from which a network is busy. Fewer of them cost little, and may be the calls of one
/// program, which somebody waits for.
const BUSY: u64 = 100;

/// How much the network did between two looks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Budget {
    /// Events of the network before the last look.
    before: u64,
    /// The most events between two looks.
    most: u64,
    /// Time of the last look.
    looked: Instant,
    /// Time and number of events from which events are counted, and whether they were many in the time before.
    counted: (Instant, u64),
    busy: bool,
}

impl Budget {
    /// TAPs and links have a look at `now`, after so many events of the network.
    pub(crate) fn look(&mut self, now: Instant, events: u64) {
        self.most = self.most.max(events - self.before);
        (self.before, self.looked) = (events, now);
        let (since, before) = self.counted;
        if now >= since + REST {
            let rests = now.since(since).as_nanos() / REST.as_nanos();
            self.busy = u128::from(events - before) >= rests * u128::from(BUSY);
            self.counted = (now, events);
        }
    }

    /// True if a network in which no source takes part may rest.
    pub(crate) const fn rests(&self) -> bool {
        self.busy
    }

    /// When a network that rests needs its turn, if its next event is due at `next`. An event that was due at the last
    /// look waits for no rest.
    pub(crate) fn rested(&self, next: Instant) -> Instant {
        match next > self.looked {
            true => next.max(self.looked + REST),
            false => next,
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_network_rests_and_a_quiet_one_or_one_that_lags_does_not() {
        let at = |us| Instant::ZERO + Duration::from_micros(us);
        let mut budget = Budget::default();
        // An event each 10 µs, with a turn for each, is what makes a network busy.
        let turns = (1..=100).map(|turn| (at(10 * turn), turn));
        turns.for_each(|(now, events)| budget.look(now, events));
        assert!(budget.rests());
        assert_eq!(budget.rested(at(1010)), at(2000));
        assert_eq!(budget.rested(at(2500)), at(2500));
        // What was due at the last look has its turn at once.
        assert_eq!(budget.rested(at(1000)), at(1000));
        assert_eq!(budget.rested(at(900)), at(900));
        // It goes on resting with few turns, each with many events.
        budget.look(at(2000), 200);
        assert!(budget.rests());
        budget.look(at(3000), 299);
        assert!(!budget.rests());
        budget.look(at(3500), 399);
        assert!(!budget.rests(), "half of a rest tells nothing");
        budget.look(at(4000), 399);
        assert!(budget.rests());
        // A second without an event ends that.
        budget.look(at(1_004_000), 400);
        assert!(!budget.rests());
    }
}
