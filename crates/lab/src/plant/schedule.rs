//! The schedule: the next event, by time and, among events of one instant, by source.
//!
//! A plant has a fixed set of *sources* of events (a direction of a link, a node's deadline), each of which waits for
//! at most one event. So the schedule is not a heap of events but a tournament over the sources: moving a source's
//! event takes one pass from its leaf to the root, and there are no stale events. In a tie the source with the lower
//! number comes first, not the event that was scheduled first. So the order does not depend on the history of the
//! plant: a run that handles cells in batches equals one that does not.

use aerostat_proto::Instant;

const NEVER: u64 = u64::MAX;

/// The time of each source's event.
#[derive(Clone, Debug, Default)]
pub struct Schedule {
    sources: usize,
    /// Nanoseconds by source, padded with [`NEVER`] to a power of two.
    times: Vec<u64>,
    /// Winner of each match: node 1 is the final, and nodes 2n and 2n+1 lead to node n. The second half are the sources
    /// themselves.
    winners: Vec<u32>,
}

impl Schedule {
    /// Adds a source without an event; sources are numbered from 0.
    pub fn add_source(&mut self) -> u32 {
        self.sources += 1;
        if self.sources > self.times.len() {
            let leaves = self.sources.next_power_of_two();
            self.times.resize(leaves, NEVER);
            self.winners = vec![0; 2 * leaves];
            for source in 0..leaves {
                self.winners[leaves + source] = source as u32;
            }
            for node in (1..leaves).rev() {
                self.play(node);
            }
        }
        self.sources as u32 - 1
    }

    /// Sets, moves or removes the event of a source.
    #[inline]
    pub fn set(&mut self, source: u32, at: Option<Instant>) {
        let time = at.map_or(NEVER, Instant::as_nanos);
        if std::mem::replace(&mut self.times[source as usize], time) == time {
            return;
        }
        let mut node = (self.times.len() + source as usize) / 2;
        while node > 0 {
            let before = self.winners[node];
            self.play(node);
            // Another source wins here as before, with its old time: the matches above are as they were.
            if before != source && self.winners[node] == before {
                break;
            }
            node /= 2;
        }
    }

    /// The source with the next event, and its time.
    #[must_use]
    #[inline]
    pub fn next(&self) -> Option<(Instant, u32)> {
        let source = *self.winners.get(1)?;
        match self.times[source as usize] {
            NEVER => None,
            time => Some((Instant::from_nanos(time), source)),
        }
    }

    /// Decides one match; the left side has the sources with lower numbers.
    #[inline]
    fn play(&mut self, node: usize) {
        let (left, right) = (self.winners[2 * node], self.winners[2 * node + 1]);
        let right_wins = self.times[right as usize] < self.times[left as usize];
        self.winners[node] = if right_wins { right } else { left };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The tournament agrees with a plain search for the minimum.
        #[test]
        fn agrees_with_a_search(
            count in 1_usize..70,
            moves in proptest::collection::vec((any::<u32>(), proptest::option::weighted(0.8, 0_u64..50)), 1..300),
        ) {
            let mut schedule = Schedule::default();
            let mut plain: Vec<Option<u64>> = Vec::new();
            for _ in 0..count {
                schedule.add_source();
                plain.push(None);
            }
            prop_assert_eq!(schedule.next(), None);
            for (source, time) in moves {
                let source = source as usize % count;
                schedule.set(source as u32, time.map(Instant::from_nanos));
                plain[source] = time;
                let events = plain.iter().enumerate().filter_map(|(s, time)| Some(((*time)?, s)));
                let want = events.min().map(|(time, s)| (Instant::from_nanos(time), s as u32));
                prop_assert_eq!(schedule.next(), want);
            }
        }
    }
}
