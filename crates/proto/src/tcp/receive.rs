//! The receiving half: reassembly, the offered window, acknowledgements.
//!
//! **Objects.** [`Receiver`] keeps the stream from the first octet that the program has not read: what is in order, and
//! behind it the pieces beyond a hole at their places. [`super::ack`] decides when to acknowledge.
//!
//! **Bounds.** The window bounds what is kept: a piece outside of it is cut off and counted. [`MAX_RANGES`] bounds the
//! number of pieces beyond holes: a piece that would make one more is dropped and counted. So 10⁵ holes cost the octets
//! of one window and a small list.
//!
//! **Standards.** RFC 9293 §3.8.6 (window, silly windows), RFC 2018 §4 (blocks; the newest first), RFC 2883
//! (duplicates).

use super::Counters;
use super::ack::AckPolicy;
use super::params::{Accounting, ReceiveParams, WindowForm, WindowUpdate};
use crate::{Duration, Instant};
use aerostat_wire::tcp::{Blocks, MAX_BLOCKS};
use std::collections::{BTreeMap, VecDeque};

/// Pieces beyond holes that are kept at most.
pub const MAX_RANGES: usize = 4096;

/// Data and signs that arrived with a segment.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Arrival {
    /// Octets that became readable.
    pub(super) readable: u64,
    /// The peer's FIN is the next thing in order: it was taken now.
    pub(super) fin: bool,
}

/// The receiving half of a connection.
#[derive(Debug)]
pub(super) struct Receiver {
    pub(super) params: ReceiveParams,
    /// Segment size that was offered to the peer.
    mss: u64,
    irs: u32,
    /// Offset of the number that is expected next.
    next: u64,
    /// Offset of the first octet that the program has not read.
    read: u64,
    octets: VecDeque<u8>,
    /// Pieces beyond a hole: start to end.
    ranges: BTreeMap<u64, u64>,
    /// Where the pieces begin that changed last, the last one first.
    recent: VecDeque<u64>,
    /// A piece that arrived twice and was not reported yet.
    duplicate: Option<(u64, u64)>,
    /// Offset of the peer's FIN.
    fin: Option<u64>,
    /// The offered edge.
    edge: u64,
    /// Next number at the last acknowledgement, and the window in it.
    told: u64,
    told_window: u64,
    /// Shift of the windows that are sent.
    pub(super) scale: u8,
    /// Size of the buffer, which may grow.
    size: usize,
    /// Limit of the window, which grows at the start.
    clamp: u64,
    /// Charges of the pieces in order: end and charge.
    charges: VecDeque<(u64, u32)>,
    charged: usize,
    pub(super) ack: AckPolicy,
    tuning: Tuning,
}

/// Octets that the program has read in a round trip. Source: Linux `tcp_rcv_space_adjust`.
#[derive(Clone, Copy, Debug, Default)]
struct Tuning {
    round_trip: Option<Duration>,
    /// Edge of the window that was offered at a time: when it is reached, a round trip is over at least.
    turn: Option<(u64, Instant)>,
    since: Instant,
    from: u64,
    space: u64,
}

impl Receiver {
    pub(super) fn new(params: ReceiveParams, mss: u64, phase: Duration) -> Self {
        let clamp = match params.first_segments {
            0 => u64::MAX,
            segments => u64::from(segments) * mss,
        };
        Self {
            ack: AckPolicy::new(params, phase),
            params,
            mss,
            irs: 0,
            next: 0,
            read: 1,
            octets: VecDeque::new(),
            ranges: BTreeMap::new(),
            recent: VecDeque::new(),
            duplicate: None,
            fin: None,
            edge: 0,
            told: 0,
            told_window: 0,
            scale: 0,
            size: params.buffer,
            clamp,
            charges: VecDeque::new(),
            charged: 0,
            tuning: Tuning::default(),
        }
    }

    /// The peer's SYN has this number.
    pub(super) fn synchronize(&mut self, irs: u32, now: Instant) {
        self.irs = irs;
        self.next = 1;
        self.told = 1;
        // The window of an own SYN counts from behind the peer's.
        self.edge += u64::from(self.edge > 0);
        self.told_window = self.edge.saturating_sub(1);
        self.tuning.since = now;
        self.tuning.from = self.read;
        // Source: Linux `tcp_init_buffer_space`.
        self.tuning.space = self.free().min(self.clamp).min(10 * self.mss);
    }
    /// The offset that a number on the wire means, near to what is expected.
    pub(super) fn offset(&self, seq: u32) -> Option<u64> {
        let distance = seq.wrapping_sub(self.irs.wrapping_add(self.next as u32)) as i32;
        self.next.checked_add_signed(distance.into())
    }
    /// The number that is expected next.
    pub(super) const fn ack_number(&self) -> u32 {
        self.irs.wrapping_add(self.next as u32)
    }
    pub(super) const fn next(&self) -> u64 {
        self.next
    }
    pub(super) const fn edge(&self) -> u64 {
        self.edge
    }
    pub(super) const fn told(&self) -> u64 {
        self.told
    }
    pub(super) fn unread(&self) -> usize {
        let end = self.next - u64::from(self.is_finished());
        (end.saturating_sub(self.read)) as usize
    }
    pub(super) fn ranges(&self) -> usize {
        self.ranges.len()
    }
    pub(super) fn kept(&self) -> usize {
        self.octets.len()
    }
    pub(super) const fn size(&self) -> usize {
        self.size
    }
    /// True if the peer's FIN was taken.
    pub(super) fn is_finished(&self) -> bool {
        self.fin.is_some_and(|fin| fin < self.next)
    }

    /// True if a segment of `length` numbers at `start` is acceptable. Source: RFC 9293 §3.10.7.4, first step.
    pub(super) const fn accepts(&self, start: u64, length: u64) -> bool {
        let (next, edge) = (self.next, self.edge);
        match (length == 0, edge <= next) {
            (true, true) => start == next,
            (true, false) => next <= start && start < edge,
            (false, true) => false,
            (false, false) => start < edge && start + length > next,
        }
    }

    /// Octets that the buffer can take.
    fn free(&self) -> u64 {
        let unread = self.unread();
        let limit = self.params.accounting.limit(self.size);
        let free = match self.params.accounting {
            Accounting::Octets => self.size.saturating_sub(unread),
            Accounting::Mbufs { .. } => self
                .size
                .saturating_sub(unread)
                .min(limit.saturating_sub(self.charged)),
            Accounting::TrueSize { .. } => limit.saturating_sub(self.charged),
        };
        free as u64 / u64::from(self.params.share)
    }

    /// The window that would be offered now, octets.
    fn window(&self) -> u64 {
        let free = self.free().min(self.clamp);
        let open = self.edge.saturating_sub(self.next);
        let whole = self.size as u64 / u64::from(self.params.share);
        let window = match self.params.form {
            // A buffer below a segment offers what it has.
            WindowForm::Free if free < whole / 4 && free < self.mss => 0,
            WindowForm::Free => free,
            WindowForm::Segments if free < self.mss.min(whole) => 0,
            WindowForm::Segments if self.scale > 0 || self.mss > free => free,
            WindowForm::Segments if open + self.mss <= free || open > free => {
                free / self.mss * self.mss
            }
            WindowForm::Segments => open,
        };
        window.min(65_535 << self.scale).max(open)
    }

    /// The window for a segment that is sent now, as on the wire; the edge moves with it.
    pub(super) fn offer(&mut self, scaled: bool) -> u16 {
        let scale = if scaled { self.scale } else { 0 };
        let window = self.window();
        let open = self.edge.saturating_sub(self.next);
        // An edge that does not move is not taken back by the rounding.
        let units = match window > open {
            true => window >> scale,
            false => window.div_ceil(1 << scale),
        };
        // An empty buffer below a unit of the scale would never open.
        let least = u64::from(window > 0 && self.unread() == 0);
        let units = units.clamp(least, 65_535);
        self.edge = self.edge.max(self.next + (units << scale));
        self.told = self.next;
        self.told_window = self.edge - self.next;
        self.ack.sent();
        units as u16
    }

    /// Takes the data of an acceptable segment.
    pub(super) fn take(
        &mut self,
        (start, data): (u64, &[u8]),
        fin: bool,
        push: bool,
        now: Instant,
        counters: &mut Counters,
    ) -> Arrival {
        let end = start + data.len() as u64;
        if end + u64::from(fin) <= self.next {
            if end > start || fin {
                counters.duplicates += 1;
                self.duplicate = (end > start).then_some((start, end));
                self.ack.at_once();
            }
            return Arrival::default();
        }
        let before = self.next;
        let left = start.max(self.next);
        let right = end.min(self.edge);
        if right < end {
            counters.beyond_window += 1;
        }
        if start < self.next && end > start {
            self.duplicate = Some((start, self.next.min(end)));
        }
        if fin && right == end && self.fin.is_none_or(|known| known == end) {
            self.fin = Some(end);
        }
        let from = (left - start) as usize;
        let data = data
            .get(from..from + right.saturating_sub(left) as usize)
            .unwrap_or_default();
        // FIN has a number of its own, behind the data: blocks name it, too.
        let right = right.max(left) + u64::from(self.fin == Some(right.max(left)) && fin);
        if right > left && !self.keep(left, right, data, counters) {
            return Arrival::default();
        }
        let arrival = Arrival {
            readable: self.next - before - u64::from(self.is_finished()),
            fin: self.is_finished(),
        };
        let waits = !self.ranges.is_empty() || self.fin.is_some_and(|at| at >= self.next);
        if arrival.fin || waits || left > before || arrival.readable > data.len() as u64 {
            self.ack.at_once();
            self.charge(arrival.readable as usize);
        } else if arrival.readable > 0 {
            self.charge(arrival.readable as usize);
            self.ack.data(arrival.readable, push, now);
            self.by_count();
        }
        arrival
    }

    /// A piece came that was there already.
    pub(super) const fn note_duplicate(&mut self, left: u64, right: u64) {
        self.duplicate = Some((left, right));
    }

    /// Keeps a piece within the window; `false` if it is dropped.
    fn keep(&mut self, left: u64, right: u64, data: &[u8], counters: &mut Counters) -> bool {
        if left > self.next {
            counters.out_of_order += 1;
            if !self.add_range(left, right) {
                counters.ranges_full += 1;
                self.ack.at_once();
                return false;
            }
        } else {
            self.next = right;
            while let Some((&start, &end)) = self.ranges.first_key_value()
                && start <= self.next
            {
                self.next = self.next.max(end);
                self.ranges.pop_first();
                counters.holes_filled += 1;
            }
        }
        let at = (left - self.read) as usize;
        if at == self.octets.len() {
            self.octets.extend(data);
            return true;
        }
        let end = at + data.len();
        if self.octets.len() < end {
            self.octets.resize(end, 0);
        }
        let (head, tail) = self.octets.as_mut_slices();
        let in_head = head.len().saturating_sub(at).min(data.len());
        let (first, second) = data.split_at(in_head);
        if let Some(place) = head.get_mut(at..at + in_head) {
            place.copy_from_slice(first);
        }
        let at = (at + in_head).saturating_sub(head.len());
        if let Some(place) = tail.get_mut(at..at + second.len()) {
            place.copy_from_slice(second);
        }
        true
    }

    /// Adds a piece beyond a hole to its neighbours; `false` if there are too many.
    fn add_range(&mut self, mut left: u64, mut right: u64) -> bool {
        if let Some((&start, &end)) = self.ranges.range(..=left).next_back()
            && end >= left
        {
            if end >= right {
                self.duplicate = Some((left, right));
            }
            left = start;
            right = right.max(end);
            self.ranges.remove(&start);
        }
        while let Some((&start, &end)) = self.ranges.range(left..=right).next() {
            right = right.max(end);
            self.ranges.remove(&start);
        }
        if self.ranges.len() >= MAX_RANGES {
            return false;
        }
        self.ranges.insert(left, right);
        let (ranges, recent) = (&self.ranges, &mut self.recent);
        recent.retain(|start| *start != left && ranges.contains_key(start));
        recent.push_front(left);
        recent.truncate(MAX_BLOCKS);
        true
    }

    /// The blocks of an acknowledgement, at most `most`.
    pub(super) fn blocks(&mut self, most: usize) -> Blocks {
        let mut blocks = Blocks::default();
        let number = |offset: u64| self.irs.wrapping_add(offset as u32);
        if let Some((left, right)) = self.duplicate.take() {
            blocks.push(number(left), number(right));
        }
        for start in &self.recent {
            if blocks.as_slice().len() >= most.min(MAX_BLOCKS) {
                break;
            }
            if let Some(end) = self.ranges.get(start) {
                blocks.push(number(*start), number(*end));
            }
        }
        blocks
    }

    fn charge(&mut self, octets: usize) {
        if octets == 0 {
            return;
        }
        if self.params.first_segments > 0 {
            let most = (self.size as u64).max(self.mss);
            if self.clamp < most {
                self.clamp = self.clamp.saturating_add(2 * octets as u64).min(most);
                self.ack.quicken();
            }
        }
        match self.params.accounting {
            Accounting::Octets => {}
            accounting @ (Accounting::Mbufs { .. } | Accounting::TrueSize { .. }) => {
                let charge = accounting.charge(octets);
                self.charged += charge;
                self.charges.push_back((self.next, charge as u32));
            }
        }
    }

    /// An acknowledgement by the count of segments may be due.
    fn by_count(&mut self) {
        let open = !self.params.ack_after_read || self.window() >= self.told_window;
        if open && self.ack.is_counted(self.next - self.told) {
            self.ack.update();
        }
    }

    /// The program reads at most `most` octets.
    pub(super) fn read(&mut self, most: usize, now: Instant) -> Vec<u8> {
        let count = self.unread().min(most);
        // Two copies of slices: an iterator over octets costs a tenth of a whole run.
        let (head, tail) = self.octets.as_slices();
        let of_head = count.min(head.len());
        let parts = (head.get(..of_head), tail.get(..count - of_head));
        let read = [parts.0.unwrap_or_default(), parts.1.unwrap_or_default()].concat();
        self.octets.drain(..count);
        self.read += count as u64;
        if self.is_finished() && self.octets.is_empty() {
            self.release();
        }
        while let Some((end, charge)) = self.charges.front()
            && *end <= self.read
        {
            self.charged -= *charge as usize;
            self.charges.pop_front();
        }
        if count > 0 {
            self.tune(now);
            self.after_read();
        }
        read
    }

    /// Octets of memory of the buffer.
    #[cfg(test)]
    pub(super) fn memory(&self) -> usize {
        self.octets.capacity()
    }

    /// Nothing will be read any more: the buffer's memory is free.
    pub(super) fn release(&mut self) {
        self.octets = VecDeque::new();
    }

    /// Reading has moved the window: the peer may have to know. The peer does not wait for it after its FIN.
    fn after_read(&mut self) {
        if self.is_finished() {
            return;
        }
        let (window, open) = (self.window(), self.edge.saturating_sub(self.next));
        let moved = window.saturating_sub(open);
        let update = match self.params.update {
            WindowUpdate::TwoSegmentsOrHalf => {
                moved >= 2 * self.mss
                    || 2 * moved >= self.size as u64 / u64::from(self.params.share)
            }
            WindowUpdate::Doubled => moved > 0 && window >= 2 * open,
        };
        if update {
            self.ack.update();
        } else if self.params.ack_after_read {
            self.by_count();
        }
        if self.unread() == 0 {
            self.ack.all_read();
        }
    }

    /// A time stamp has shown the round trip.
    pub(super) fn round_trip(&mut self, sample: Duration) {
        let known = self.tuning.round_trip.unwrap_or(sample);
        self.tuning.round_trip = Some(known * 7 / 8 + sample / 8);
    }

    /// The round trip without time stamps: a whole window takes one at least, so the shortest of these times counts.
    /// Source: Linux `tcp_rcv_rtt_measure`.
    pub(super) fn measure_turn(&mut self, now: Instant) {
        if let Some((edge, since)) = self.tuning.turn {
            if self.next < edge {
                return;
            }
            let sample = now.since(since);
            let known = self.tuning.round_trip.unwrap_or(sample);
            self.tuning.round_trip = Some(known.min(sample));
        }
        self.tuning.turn = Some((self.next.max(self.edge), now));
    }

    /// Lets the buffer grow with what the program has read in a round trip.
    fn tune(&mut self, now: Instant) {
        let Some(round_trip) = self.tuning.round_trip else {
            return;
        };
        if self.params.most <= self.params.buffer || now.since(self.tuning.since) < round_trip {
            return;
        }
        let copied = self.read - self.tuning.from;
        let space = self.tuning.space.max(1);
        if copied > space {
            let wanted = 2 * copied + 16 * self.mss;
            let more = u128::from(wanted) * u128::from(copied - space) / u128::from(space);
            let wanted = u128::from(wanted) + 2 * more;
            let wanted = usize::try_from(wanted)
                .unwrap_or(usize::MAX)
                .min(self.params.most);
            self.size = self.size.max(wanted);
            self.tuning.space = copied;
        }
        self.tuning.since = now;
        self.tuning.from = self.read;
    }
}
