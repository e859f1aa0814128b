//! The segments that were sent and are not acknowledged: which of them have arrived, are lost, were sent again.
//!
//! Numbers are 64-bit offsets in the stream: 0 is SYN, 1 the first octet. The list is in the order of numbers. Sums are
//! kept while it changes, so the octets in flight (`pipe` of RFC 6675) cost nothing to know.
//!
//! **Bounds.** The send buffer bounds the list. An ACK looks at the segments that it acknowledges for the first time,
//! and searches the others by halving; so the work for all ACKs together is that of the segments.

use crate::Instant;
use std::collections::VecDeque;

/// A segment that was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    /// First number.
    pub(super) start: u64,
    /// Number behind the last one.
    pub(super) end: u64,
    /// Time of the last transmission.
    pub(super) at: Instant,
    /// Transmissions less one.
    pub(super) again: u32,
    /// A selective acknowledgement has named it.
    pub(super) sacked: bool,
    /// It counts as lost.
    pub(super) lost: bool,
    /// Its last transmission was after the loss, and may be under way.
    pub(super) repaired: bool,
}

impl Sent {
    const fn len(&self) -> u64 {
        self.end - self.start
    }
}

/// Data that an ACK has acknowledged.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Acked {
    /// Octets by the cumulative number.
    pub(super) octets: u64,
    /// Octets that were not known to have arrived, by the number or by a block.
    pub(super) delivered: u64,
    /// Octets that blocks have named for the first time.
    pub(super) sacked: u64,
    /// Transmission of the first segment that was sent once.
    pub(super) first: Option<Instant>,
    /// Transmission and end of the segment that was sent last, with the number of its repetitions.
    pub(super) newest: Option<(Instant, u64, u32)>,
    /// A segment that was sent once, and was outstanding at the last timer, has arrived.
    pub(super) original: bool,
    /// A segment that was sent more than once was acknowledged by the number.
    pub(super) repeated: bool,
    /// A block begins below a segment that had arrived before: the order was changed.
    pub(super) reordered: bool,
}

impl Acked {
    fn note(&mut self, sent: &Sent, recover: u64, highest: u64) {
        self.delivered += sent.len();
        if sent.again == 0 {
            let first = self.first.unwrap_or(sent.at);
            self.first = Some(first.min(sent.at));
            self.original |= sent.end <= recover;
            self.reordered |= sent.end <= highest;
        } else {
            self.repeated = true;
        }
        let newest = (sent.at, sent.end, sent.again);
        if self
            .newest
            .is_none_or(|known| (known.0, known.1) < (newest.0, newest.1))
        {
            self.newest = Some(newest);
        }
    }
}

/// The list.
#[derive(Clone, Debug, Default)]
pub(super) struct Scoreboard {
    list: VecDeque<Sent>,
    /// Transmissions in the order of time: time, first number. Those that something later has overtaken stay until
    /// they come to the front.
    order: VecDeque<(Instant, u64)>,
    outstanding: u64,
    sacked: u64,
    lost: u64,
    repaired: u64,
    sacked_segments: u32,
    /// Ends of the three highest segments that a block has named, the highest first.
    highest: [u64; 3],
    /// No segment below is lost and waits for its repair.
    hint: u64,
    /// All segments below that no block has named count as lost already.
    marked: u64,
    /// The last blocks: runs of segments that have arrived are passed over at once.
    runs: [(u64, u64); 4],
    /// Segments that were looked at: a measure of the work.
    steps: u64,
}

impl Scoreboard {
    /// Octets that are under way: neither arrived nor lost. Source: RFC 6675 §4, `SetPipe`.
    pub(super) const fn pipe(&self) -> u64 {
        self.outstanding - self.sacked - self.lost + self.repaired
    }
    /// Octets that are not acknowledged by the cumulative number.
    pub(super) const fn outstanding(&self) -> u64 {
        self.outstanding
    }
    pub(super) const fn sacked(&self) -> u64 {
        self.sacked
    }
    pub(super) const fn sacked_segments(&self) -> u32 {
        self.sacked_segments
    }
    pub(super) const fn lost(&self) -> u64 {
        self.lost
    }
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
    pub(super) fn segments(&self) -> usize {
        self.list.len()
    }
    pub(super) const fn steps(&self) -> u64 {
        self.steps
    }
    pub(super) fn first(&self) -> Option<&Sent> {
        self.list.front()
    }
    pub(super) fn last(&self) -> Option<&Sent> {
        self.list.back()
    }

    /// Adds a segment with new numbers.
    pub(super) fn push(&mut self, start: u64, end: u64, at: Instant) {
        self.list.push_back(Sent {
            start,
            end,
            at,
            again: 0,
            sacked: false,
            lost: false,
            repaired: false,
        });
        self.outstanding += end - start;
        self.order.push_back((at, start));
    }

    /// Position of the segment that holds the number, or of the first one above it.
    fn position(&self, number: u64) -> usize {
        self.list.partition_point(|sent| sent.end <= number)
    }

    /// Takes a cumulative acknowledgement: everything below `una` has arrived. `recover`: see [`Acked::original`].
    pub(super) fn acknowledge(&mut self, una: u64, recover: u64, acked: &mut Acked) {
        while let Some(sent) = self.list.front().copied()
            && sent.start < una
        {
            let part = sent.end.min(una) - sent.start;
            acked.octets += part;
            self.outstanding -= part;
            let whole = sent.end <= una;
            for (flag, sum) in [
                (sent.sacked, &mut self.sacked),
                (sent.lost, &mut self.lost),
                (sent.repaired, &mut self.repaired),
            ] {
                *sum -= if flag { part } else { 0 };
            }
            if !whole {
                acked.delivered += part;
                if let Some(sent) = self.list.front_mut() {
                    sent.start = una;
                }
                break;
            }
            if sent.sacked {
                self.sacked_segments -= 1;
            } else {
                acked.note(&sent, recover, self.highest[0]);
            }
            self.list.pop_front();
        }
        for end in &mut self.highest {
            *end = if *end <= una { 0 } else { *end };
        }
        self.tidy_order();
    }

    /// Takes a block of a selective acknowledgement. Segments that it covers in part are left as they are.
    pub(super) fn sack(&mut self, left: u64, right: u64, recover: u64, acked: &mut Acked) {
        let mut at = self.list.partition_point(|sent| sent.start < left);
        let highest = self.highest[0];
        while let Some(sent) = self.list.get_mut(at)
            && sent.end <= right
        {
            self.steps += 1;
            // Each ACK of a peer names the same run again, a little longer.
            if sent.sacked {
                let start = sent.start;
                let known = self
                    .runs
                    .iter()
                    .filter(|run| run.0 <= start && start < run.1);
                let end = known.map(|run| run.1).max().unwrap_or(start);
                at = self.position(end.min(right)).max(at + 1);
                continue;
            }
            acked.note(sent, recover, highest);
            let length = sent.len();
            acked.sacked += length;
            self.sacked += length;
            self.sacked_segments += 1;
            self.lost -= if sent.lost { length } else { 0 };
            self.repaired -= if sent.repaired { length } else { 0 };
            (sent.sacked, sent.lost, sent.repaired) = (true, false, false);
            let end = sent.end;
            if let Some(place) = self.highest.iter().position(|known| *known < end) {
                self.highest[place..].rotate_right(1);
                self.highest[place] = end;
            }
            at += 1;
        }
        self.remember(left, right);
    }

    /// Keeps the block in place of a part of it, or of the oldest one.
    fn remember(&mut self, left: u64, right: u64) {
        let part = |run: &(u64, u64)| run.1 == 0 || (left <= run.0 && run.1 <= right);
        let place = self
            .runs
            .iter()
            .position(part)
            .unwrap_or(self.runs.len() - 1);
        self.runs[..=place].rotate_right(1);
        self.runs[0] = (left, right);
    }

    /// Marks what lies below `threshold` segments that have arrived as lost; true if something was. Source: RFC 6675
    /// §4, `IsLost` with segments of one size.
    pub(super) fn mark_below_sacked(&mut self, threshold: usize) -> bool {
        let Some(&end) = self.highest.get(threshold - 1) else {
            return false;
        };
        let mut found = false;
        let from = self.position(self.marked);
        let range = from..self.list.len();
        for at in range {
            let Some(sent) = self.list.get(at) else { break };
            if sent.end >= end {
                break;
            }
            self.marked = sent.end;
            found |= self.mark(at);
        }
        found
    }

    fn mark(&mut self, at: usize) -> bool {
        let Some(sent) = self.list.get_mut(at) else {
            return false;
        };
        if sent.sacked || (sent.lost && !sent.repaired) {
            return false;
        }
        let length = sent.len();
        if sent.repaired {
            self.repaired -= length;
            sent.repaired = false;
        }
        if !sent.lost {
            self.lost += length;
            sent.lost = true;
        }
        self.hint = self.hint.min(sent.start);
        true
    }

    /// Marks the first segment as lost, unless it was sent again since.
    pub(super) fn mark_first(&mut self) -> bool {
        self.mark(0)
    }

    /// Marks everything as lost that has not arrived: after a timer. With `forget`, what blocks have named is lost,
    /// too.
    pub(super) fn mark_all(&mut self, forget: bool) {
        for at in 0..self.list.len() {
            if forget
                && let Some(sent) = self.list.get_mut(at)
                && sent.sacked
            {
                sent.sacked = false;
                self.sacked -= sent.len();
                self.sacked_segments -= 1;
            }
            self.mark(at);
        }
        if forget {
            self.highest = [0; 3];
            self.runs = [(0, 0); 4];
        }
        self.hint = 0;
        self.marked = self.list.back().map_or(0, |sent| sent.end);
        self.order.clear();
    }

    /// Everything that is marked as lost was not: a timer or a loss was spurious.
    pub(super) fn unmark_all(&mut self) {
        for sent in &mut self.list {
            sent.lost = false;
            sent.repaired = false;
        }
        (self.lost, self.repaired) = (0, 0);
        let mut order: Vec<_> = self.list.iter().map(|sent| (sent.at, sent.start)).collect();
        order.sort_unstable();
        self.order = order.into();
        self.tidy_order();
    }

    /// The lowest segment that is lost and was not sent again since.
    pub(super) fn next_lost(&mut self) -> Option<Sent> {
        let mut at = self.position(self.hint);
        while let Some(sent) = self.list.get(at) {
            if sent.lost && !sent.repaired {
                self.hint = sent.start;
                return Some(*sent);
            }
            at += 1;
        }
        self.hint = self.list.back().map_or(0, |sent| sent.end);
        None
    }

    /// True if something waits for its repair.
    pub(super) const fn has_lost(&self) -> bool {
        self.lost > self.repaired
    }

    /// Divides the segment that begins with `start`, so that its first part has `length` octets.
    pub(super) fn divide(&mut self, start: u64, length: u64) {
        let at = self.position(start);
        if let Some(sent) = self.list.get_mut(at)
            && sent.len() > length
        {
            let mut rest = *sent;
            sent.end = sent.start + length;
            rest.start = sent.end;
            self.sacked_segments += u32::from(rest.sacked);
            self.order.push_back((rest.at, rest.start));
            self.list.insert(at + 1, rest);
        }
    }

    /// The segment that begins with `start` was sent again.
    pub(super) fn repeat(&mut self, start: u64, now: Instant) {
        let at = self.position(start);
        if let Some(sent) = self.list.get_mut(at) {
            sent.at = now;
            sent.again += 1;
            if sent.lost && !sent.repaired {
                sent.repaired = true;
                self.repaired += sent.end - sent.start;
            }
            let start = sent.start;
            self.order.push_back((now, start));
        }
        self.tidy_order();
    }

    /// Removes transmissions from the front that are under way no more.
    fn tidy_order(&mut self) {
        while let Some((at, start)) = self.order.front() {
            if self.is_under_way(*at, *start) {
                break;
            }
            self.order.pop_front();
        }
        // Segments that stay unanswered keep the front in place; a list that is mostly old is made anew.
        if self.order.len() > 4 * self.list.len() + 64 {
            let mut order = core::mem::take(&mut self.order);
            order.retain(|(at, start)| self.is_under_way(*at, *start));
            self.order = order;
        }
    }

    fn is_under_way(&self, at: Instant, start: u64) -> bool {
        self.list.get(self.position(start)).is_some_and(|sent| {
            // A cumulative acknowledgement may have taken a part of the segment.
            sent.at == at && sent.start >= start && !sent.sacked && (!sent.lost || sent.repaired)
        })
    }

    /// The oldest transmissions for which `is_lost` is true are marked; `Some` with the first one for which it is not.
    /// The second value is true if something was marked. Source: RFC 8985 §6.2 step 5.
    pub(super) fn mark_by_time(
        &mut self,
        mut is_lost: impl FnMut(&Sent) -> bool,
    ) -> (Option<Sent>, bool) {
        let mut found = false;
        while let Some((at, start)) = self.order.front().copied() {
            if !self.is_under_way(at, start) {
                self.order.pop_front();
                continue;
            }
            let place = self.position(start);
            let Some(sent) = self.list.get(place).copied() else {
                break;
            };
            if !is_lost(&sent) {
                return (Some(sent), found);
            }
            self.order.pop_front();
            found |= self.mark(place);
        }
        (None, found)
    }
}
