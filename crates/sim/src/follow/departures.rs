//! The cells that have left each port lately: what a followed cell has waited behind.

use super::{Behind, Wait};
use aerostat_proto::{Duration, Instant};
use aerostat_wire::Vc;
use std::collections::{BTreeMap, VecDeque};

/// Limit of cells that are kept for a line, about 0.7 s of an OC-3.
pub(super) const MAX_KEPT: usize = 1 << 18;

/// A cell that has left.
#[derive(Clone, Copy, Debug)]
struct Left {
    vc: Vc,
    /// True for a cell of a followed PDU, which has this identity.
    pdu: Option<usize>,
    start: Instant,
    finish: Instant,
}

/// The last departures of one line.
#[derive(Debug, Default)]
pub(super) struct Departures {
    kept: VecDeque<Left>,
    /// No departure is known that ended before this time, because there were too many.
    complete_from: Instant,
}

impl Departures {
    /// A cell leaves. Those that ended before `floor` are not needed any more; but the last one may still be on the
    /// line when a followed cell comes.
    pub(super) fn push(
        &mut self,
        vc: Vc,
        pdu: Option<usize>,
        start: Instant,
        finish: Instant,
        floor: Option<Instant>,
    ) {
        let old = |left: &Left| floor.is_none_or(|floor| left.finish <= floor);
        while self.kept.front().is_some_and(old) {
            self.kept.pop_front();
        }
        if self.kept.len() >= MAX_KEPT
            && let Some(gone) = self.kept.pop_front()
        {
            self.complete_from = gone.finish;
        }
        self.kept.push_back(Left {
            vc,
            pdu,
            start,
            finish,
        });
    }

    /// Cells that the line carried from `since` to `until`, when a cell of the PDU began to leave.
    pub(super) fn between(&self, since: Instant, until: Instant, pdu: usize) -> Wait {
        let mut wait = Wait {
            complete: self.complete_from <= since,
            ..Wait::default()
        };
        let mut others: BTreeMap<Vc, Behind> = BTreeMap::new();
        // Times are rounded to nanoseconds: no time counts for two cells.
        let mut counted = since;
        for left in &self.kept {
            let (start, finish) = (left.start.max(counted), left.finish.min(until));
            if left.finish <= since || left.start >= until || finish < start {
                continue;
            }
            let time = finish - start;
            wait.idle += start.since(counted);
            counted = finish;
            if left.pdu == Some(pdu) {
                wait.own.cells += 1;
                wait.own.time += time;
            } else {
                let other = others.entry(left.vc).or_insert(Behind {
                    vc: Some(left.vc),
                    ..Behind::default()
                });
                other.cells += 1;
                other.time += time;
            }
        }
        wait.idle += until.since(counted);
        wait.others = others.into_values().collect();
        wait.others
            .sort_by_key(|other| core::cmp::Reverse(other.time));
        wait
    }
}

impl Wait {
    /// The whole time.
    #[must_use]
    pub fn time(&self) -> Duration {
        let others = self.others.iter().map(|other| other.time);
        self.own.time + others.sum::<Duration>() + self.idle
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ns: u64) -> Instant {
        Instant::from_nanos(ns)
    }

    #[test]
    fn a_wait_is_divided_without_a_rest_and_without_counting_a_nanosecond_twice() {
        let mut all = Departures::default();
        let (a, b) = (Vc::new(0, 40), Vc::new(0, 41));
        let floor = Some(at(0));
        all.push(a, None, at(0), at(10), floor);
        // The end of the cell before was rounded up.
        all.push(b, None, at(9), at(20), floor);
        all.push(a, Some(7), at(20), at(30), floor);
        all.push(a, Some(8), at(35), at(45), floor);
        let wait = all.between(at(4), at(50), 7);
        assert_eq!(wait.time(), Duration::from_nanos(46));
        assert_eq!(
            (wait.own.cells, wait.own.time),
            (1, Duration::from_nanos(10))
        );
        let others = wait.others.iter();
        let others: Vec<_> = others
            .map(|other| (other.vc, other.cells, other.time.as_nanos()))
            .collect();
        assert_eq!(others, [(Some(a), 2, 16), (Some(b), 1, 10)]);
        assert_eq!(wait.idle, Duration::from_nanos(10));
        assert!(wait.complete);
    }

    #[test]
    fn what_is_kept_has_a_limit_that_shows() {
        let mut all = Departures::default();
        for n in 0..MAX_KEPT as u64 + 5 {
            all.push(
                Vc::new(0, 40),
                None,
                at(10 * n),
                at(10 * n + 10),
                Some(at(0)),
            );
        }
        assert_eq!(all.kept.len(), MAX_KEPT);
        assert!(!all.between(at(0), at(100), 1).complete);
        assert!(all.between(at(1000), at(2000), 1).complete);
        // Without anything to follow, one cell is kept.
        all.push(Vc::new(0, 40), None, at(1 << 40), at(1 << 41), None);
        assert_eq!(all.kept.len(), 1);
    }
}
