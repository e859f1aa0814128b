//! The state of a queue for a writer: its level, and how fast it empties.

use super::super::rate::CellRate;
use super::{OutputPort, QueueId};
use aerostat_proto::{Duration, Instant};
use aerostat_wire::Vc;

/// A queue at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// Cells that wait in the queue.
    pub cells: u32,
    /// Cells that wait in all queues of the same pool.
    pub pool: u32,
    /// At this level and above, the pool discards new PDUs.
    pub pool_early: u32,
}

impl OutputPort {
    /// True if the label has a queue already. A whole path takes all labels of its VPI.
    #[must_use]
    pub(in crate::atm) fn is_taken(&self, vc: Vc, whole_path: bool) -> bool {
        if whole_path {
            self.table.path(vc.vpi).is_some() || self.table.path_has_channels(vc.vpi)
        } else {
            self.table.get(vc).is_some()
        }
    }

    /// The limit of queues, if the port has as many; `None` if it has a free queue.
    #[must_use]
    pub(in crate::atm) fn full(&self) -> Option<usize> {
        let most = self.limits.queues;
        if self.queues.len() >= most {
            Some(most)
        } else {
            None
        }
    }

    /// Reads the entry of a queue; any number.
    #[inline]
    pub(in crate::atm) fn glance(&self, id: QueueId) -> u32 {
        self.queue(id).map_or(0, |queue| queue.opened)
    }

    /// The level of a queue after all departures due by `now`; `None` if the queue is not open.
    pub fn level(&mut self, id: QueueId, now: Instant) -> Option<Level> {
        if self.late.is_some() {
            self.catch_up(now);
        }
        let queue = self.queue(id)?;
        let limits = [self.limits.guaranteed, self.limits.best_effort][queue.pool()];
        Some(Level {
            cells: queue.cells,
            pool: self.pools[queue.pool()],
            pool_early: limits.early,
        })
    }

    /// PDUs of which at least the last cell waits in a queue after all departures due by `now`.
    pub fn unsent(&mut self, id: QueueId, now: Instant) -> u64 {
        if self.late.is_some() {
            self.catch_up(now);
        }
        self.queue(id).map_or(0, |queue| queue.pdus(&self.runs))
    }

    /// The shortest time in which this many cells of a queue leave: at the rate of its shaper, or of the line.
    #[must_use]
    pub fn time_to_send(&self, id: QueueId, cells: u32) -> Duration {
        let time = |rate: CellRate| rate.time_of(cells.into());
        let shaper = self.queue(id).and_then(|queue| queue.shaper.as_ref());
        shaper
            .map_or(Duration::ZERO, |shaper| time(shaper.mean_rate()))
            .max(time(self.rate))
    }
}
