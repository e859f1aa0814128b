//! Quotas of frames that go to all members: a bucket for each end system.
//!
//! A frame that a server copies to all members costs each member line capacity and processor time. On an Ethernet, only
//! the line's rate bounds what one station costs the others. A server of an ELAN accepts from one end system no more
//! than its quota, of which a second's amount may come at once; further frames are dropped and counted.

use crate::parameters::PerSecond;
use crate::{Duration, Instant};
use aerostat_wire::AtmAddress;
use std::collections::BTreeMap;

/// Time between two traces about one end system.
const TELL: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug)]
struct Bucket {
    /// When the next frame is due at the rate (GCRA's theoretical arrival time).
    due: Instant,
    dropped: u64,
    told: Option<Instant>,
}

/// Verdict about a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The frame goes to all.
    Pass,
    /// The frame is dropped.
    Drop,
    /// The frame is dropped, and a trace says which end system exceeds the quota.
    Tell,
}

/// The buckets of a server, by end system: another selector or another connection gives no larger quota.
#[derive(Clone, Debug)]
pub(super) struct Quota {
    /// Frames a second; 0: no limit.
    rate: u32,
    buckets: BTreeMap<AtmAddress, Bucket>,
    /// Above this number of buckets, buckets that are full again are forgotten.
    limit: usize,
}

impl Quota {
    /// For at most `members` end systems at a time.
    pub(super) const fn new(rate: PerSecond, members: usize) -> Self {
        Self {
            rate: rate.0,
            buckets: BTreeMap::new(),
            limit: members * 2,
        }
    }
    /// Takes a frame of `who` out of its bucket. (GCRA of I.371 with an increment of 1/rate and a limit of one second.)
    pub(super) fn take(&mut self, who: AtmAddress, now: Instant) -> Verdict {
        if self.rate == 0 {
            return Verdict::Pass;
        }
        let step = Duration::from_nanos(1_000_000_000 / u64::from(self.rate));
        let who = who.with_selector(0);
        if self.buckets.len() >= self.limit && !self.buckets.contains_key(&who) {
            self.buckets.retain(|_, bucket| bucket.due > now);
        }
        let bucket = self.buckets.entry(who).or_insert(Bucket {
            due: now,
            dropped: 0,
            told: None,
        });
        if bucket.due.since(now) >= Duration::from_secs(1) {
            bucket.dropped += 1;
            let news = bucket.told.is_none_or(|told| now.since(told) >= TELL);
            if !news {
                return Verdict::Drop;
            }
            bucket.told = Some(now);
            return Verdict::Tell;
        }
        bucket.due = bucket.due.max(now) + step;
        Verdict::Pass
    }
    /// Frames of `who` that were dropped, as long as its bucket is known.
    pub(super) fn dropped(&self, who: AtmAddress) -> u64 {
        let bucket = self.buckets.get(&who.with_selector(0));
        bucket.map_or(0, |bucket| bucket.dropped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passes(quota: &mut Quota, who: AtmAddress, count: u32, from: Instant, gap: Duration) -> u32 {
        let times = (0..count).map(|n| from + gap * n);
        times
            .filter(|at| quota.take(who, *at) == Verdict::Pass)
            .count() as u32
    }

    #[test]
    fn a_second_at_once_then_the_rate_and_each_for_itself() {
        let (a, b) = (AtmAddress([1; 20]), AtmAddress([2; 20]));
        let mut quota = Quota::new(PerSecond(100), 10);
        assert_eq!(
            passes(&mut quota, a, 1000, Instant::ZERO, Duration::ZERO),
            100
        );
        // Ten times the rate for ten seconds: frames pass at the rate.
        let gap = Duration::from_millis(1);
        let passed = passes(&mut quota, a, 10_000, Instant::ZERO, gap);
        assert!((999..=1001).contains(&passed), "{passed}");
        assert_eq!(quota.dropped(a), 900 + u64::from(10_000 - passed));
        // Another selector is the same end system; another end system has its own.
        let at = Instant::from_secs(10);
        assert!(passes(&mut quota, a.with_selector(7), 100, at, Duration::ZERO) <= 1);
        assert_eq!(passes(&mut quota, b, 100, at, Duration::ZERO), 100);
        assert_eq!(
            passes(
                &mut Quota::new(PerSecond(0), 1),
                a,
                10_000,
                at,
                Duration::ZERO
            ),
            10_000
        );
    }

    #[test]
    fn end_systems_that_come_and_go_take_no_room() {
        let mut quota = Quota::new(PerSecond(10), 10);
        for n in 0..10_000_u32 {
            let mut who = AtmAddress([0; 20]);
            who.0[13..17].copy_from_slice(&n.to_be_bytes());
            quota.take(who, Instant::from_secs(u64::from(n)));
            assert!(quota.buckets.len() <= 20);
        }
    }
}
