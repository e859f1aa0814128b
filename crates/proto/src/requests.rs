//! Requests that are asked, repeated and given up: growing waits and a time limit, and a table of ids.
//!
//! The waits grow by a factor from [`RetryRule::initial`] on. No retry is sent once [`RetryRule::retry_limit`] has
//! passed since the first transmission, and the request fails after [`RetryRule::give_up`]. With MPOA's defaults (5 s,
//! 40 s, 40 s) transmissions are at 0, 5, 15 and 35 s and the failure is at 40 s.
//!
//! [`Repeats`] is this schedule for one request: resolutions and purges of an MPOA client (MPC-p4, MPC-p5), control
//! requests of a LANE client (C7i, C7x, C7). A [`RequestTable`] has many requests by id, for NHRP: a request keeps its
//! id over all its retries, and the id comes back in the reply (RFC 2332 §5.2.0.1).
//!
//! LE_ARP, LE_FLUSH and ATMARP have rules of their own, in their tables: LE_ARP repeats at a fixed interval under a new
//! number, LE_FLUSH ends in a path that is used without an answer, and ATMARP counts its requests, so that an answer to
//! any of them counts.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Duration, Instant};

/// When to repeat a request, and when to give up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryRule {
    /// Wait after the first transmission; it grows with every retry.
    pub initial: Duration,
    /// There is no retry at or after this time since the first transmission.
    pub retry_limit: Duration,
    /// Time after which the request fails, since the first transmission.
    pub give_up: Duration,
}

impl RetryRule {
    /// No retry: a single wait.
    #[must_use]
    pub const fn once(give_up: Duration) -> Self {
        Self {
            initial: give_up,
            retry_limit: Duration::ZERO,
            give_up,
        }
    }
}

/// The result for a request whose wait is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expired<T> {
    /// The request must be repeated, with the same id.
    Retry(u32),
    /// The request has failed and has left the table.
    GivenUp(u32, T),
}

/// The transmissions of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeats {
    rule: RetryRule,
    factor: u32,
    first: Instant,
    sent: u32,
    wait: Duration,
    at: Instant,
}

impl Repeats {
    /// A request was sent at `now` for the first time. Each wait is `factor` times the wait before.
    #[must_use]
    pub fn first(rule: RetryRule, factor: u32, now: Instant) -> Self {
        let mut repeats = Self {
            rule,
            factor,
            first: now,
            sent: 1,
            wait: rule.initial,
            at: now,
        };
        repeats.at = repeats.next(now);
        repeats
    }
    /// When the next step is due.
    #[must_use]
    pub const fn at(&self) -> Instant {
        self.at
    }
    /// Transmissions so far.
    #[must_use]
    pub const fn sent(&self) -> u32 {
        self.sent
    }
    /// The wait is over: `true` to send again, `false` if the request has failed.
    pub fn step(&mut self, now: Instant) -> bool {
        if now >= self.first + self.rule.give_up {
            return false;
        }
        self.sent += 1;
        self.wait = self.wait.saturating_mul(self.factor);
        self.at = self.next(now);
        true
    }
    /// The next retry if one may still be sent, else the end. Strictly later than `now`.
    fn next(&self, now: Instant) -> Instant {
        let end = self.first + self.rule.give_up;
        let last_retry = self.first + self.rule.retry_limit;
        let retry = now + self.wait.max(Duration::from_nanos(1));
        let next = if retry < last_retry && retry < end {
            retry
        } else {
            end
        };
        next.max(now + Duration::from_nanos(1))
    }
}

#[derive(Clone, Debug)]
struct Pending<T> {
    what: T,
    repeats: Repeats,
}

/// An outstanding request, for display.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outstanding<'a, T> {
    /// Its id.
    pub id: u32,
    /// The request.
    pub what: &'a T,
    /// Transmissions so far.
    pub sent: u32,
    /// Time of the next step.
    pub due: Instant,
}

/// Outstanding requests by id; at most `limit`. Their waits double.
#[derive(Clone, Debug)]
pub struct RequestTable<T> {
    next_id: u32,
    limit: usize,
    pending: BTreeMap<u32, Pending<T>>,
    deadlines: BTreeSet<(Instant, u32)>,
}

impl<T> RequestTable<T> {
    /// An empty table whose first request has id `first_id`.
    #[must_use]
    pub const fn new(first_id: u32, limit: usize) -> Self {
        Self {
            next_id: first_id,
            limit,
            pending: BTreeMap::new(),
            deadlines: BTreeSet::new(),
        }
    }

    /// Opens a request that is first sent at `now`; `None` if the table is full.
    pub fn open(&mut self, what: T, rule: RetryRule, now: Instant) -> Option<u32> {
        if self.pending.len() >= self.limit {
            return None;
        }
        while self.pending.contains_key(&self.next_id) {
            self.next_id = self.next_id.wrapping_add(1);
        }
        let id = self.next_id;
        self.next_id = id.wrapping_add(1);
        let repeats = Repeats::first(rule, 2, now);
        self.deadlines.insert((repeats.at, id));
        self.pending.insert(id, Pending { what, repeats });
        Some(id)
    }

    /// The next id, which is used up at once: for a message without a reply.
    pub const fn skip_id(&mut self) -> u32 {
        let id = self.next_id;
        self.next_id = id.wrapping_add(1);
        id
    }

    /// The request with this id, if it is outstanding.
    #[must_use]
    pub fn get(&self, id: u32) -> Option<&T> {
        self.pending.get(&id).map(|entry| &entry.what)
    }

    /// The request with this id, if it is outstanding.
    pub fn get_mut(&mut self, id: u32) -> Option<&mut T> {
        self.pending.get_mut(&id).map(|entry| &mut entry.what)
    }

    /// Ends a request: its reply has come, or it is no longer needed.
    pub fn close(&mut self, id: u32) -> Option<T> {
        let entry = self.pending.remove(&id)?;
        self.deadlines.remove(&(entry.repeats.at, id));
        Some(entry.what)
    }

    /// Returns one request whose wait is over, earliest first. Call until `None`.
    pub fn expire(&mut self, now: Instant) -> Option<Expired<T>> {
        let &(at, id) = self.deadlines.first().filter(|(at, _)| *at <= now)?;
        self.deadlines.remove(&(at, id));
        let entry = self.pending.get_mut(&id)?;
        if !entry.repeats.step(now) {
            let entry = self.pending.remove(&id)?;
            return Some(Expired::GivenUp(id, entry.what));
        }
        self.deadlines.insert((entry.repeats.at, id));
        Some(Expired::Retry(id))
    }

    /// The earliest time at which [`Self::expire`] returns a request.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    /// Outstanding requests, in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = Outstanding<'_, T>> {
        self.pending.iter().map(|(id, entry)| Outstanding {
            id: *id,
            what: &entry.what,
            sent: entry.repeats.sent,
            due: entry.repeats.at,
        })
    }

    /// Number of outstanding requests.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pending.len()
    }

    /// True if no request is outstanding.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// Removes all requests; ids continue.
    pub fn clear(&mut self) {
        self.pending.clear();
        self.deadlines.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: RetryRule = RetryRule {
        initial: Duration::from_secs(5),
        retry_limit: Duration::from_secs(40),
        give_up: Duration::from_secs(40),
    };

    fn run(table: &mut RequestTable<char>) -> Vec<(u64, Expired<char>)> {
        let mut seen = Vec::new();
        while let Some(at) = table.deadline() {
            while let Some(expired) = table.expire(at) {
                seen.push((at.as_nanos() / 1_000_000_000, expired));
            }
        }
        seen
    }

    #[test]
    fn retries_double_and_the_sum_of_waits_is_bounded() {
        let mut table = RequestTable::new(7, 4);
        assert_eq!(table.open('a', RULE, Instant::ZERO), Some(7));
        use Expired::{GivenUp, Retry};
        assert_eq!(
            run(&mut table),
            [
                (5, Retry(7)),
                (15, Retry(7)),
                (35, Retry(7)),
                (40, GivenUp(7, 'a'))
            ]
        );
        assert!(table.is_empty());
    }

    #[test]
    fn giving_up_earlier_or_later_than_the_retries_end() {
        let late = RetryRule {
            give_up: Duration::from_secs(90),
            ..RULE
        };
        let early = RetryRule {
            give_up: Duration::from_secs(12),
            ..RULE
        };
        let mut table = RequestTable::new(u32::MAX, 4);
        table.open('l', late, Instant::ZERO);
        assert_eq!(table.open('e', early, Instant::ZERO), Some(0), "ids wrap");
        let times: Vec<u64> = run(&mut table).into_iter().map(|(at, _)| at).collect();
        assert_eq!(times, [5, 5, 12, 15, 35, 90]);
    }

    #[test]
    fn a_full_table_refuses_and_an_id_in_use_is_not_given_again() {
        let mut table = RequestTable::new(0, 2);
        assert_eq!(table.open('a', RULE, Instant::ZERO), Some(0));
        table.next_id = 0;
        assert_eq!(table.open('b', RULE, Instant::ZERO), Some(1));
        assert_eq!(table.open('c', RULE, Instant::ZERO), None);
        assert_eq!(table.close(0), Some('a'));
        assert_eq!(table.close(0), None);
        assert_eq!(table.open('c', RULE, Instant::ZERO), Some(2));
    }
}
