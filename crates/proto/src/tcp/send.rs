//! The sending half: the program's octets, and which segment is next.
//!
//! **Objects.** [`Sender`] keeps the octets from the first one that is not acknowledged, the scoreboard of what was
//! sent, the congestion window and the timer's estimator. `recovery.rs` is what it does with acknowledgements and
//! timers.
//!
//! **Writers.** A program that has filled the buffer waits until a third of it is free
//! ([`SendParams::wake_at_third`]), and the ends of its writes have PSH ([`Push`]): so the receiver's acknowledgements
//! follow the program's rhythm.
//!
//! **Standards.** RFC 9293 §3.8.6.2.1 (silly windows), §3.7.4 (Nagle), §3.8.6.1 (probes), RFC 5681 §4.1 (idle), RFC
//! 3042.

use super::Counters;
use super::clock::{Estimator, Progress, StampClock};
use super::growth::Window;
use super::params::{
    Accounting, CongestionParams, Nagle, Params, Probe, Push, Recovery, SendParams,
};
use super::recovery::Repair;
use super::scoreboard::{Scoreboard, Sent};
use crate::{Duration, Instant, TimerTable};
use std::collections::VecDeque;

crate::timer_kinds! {
    /// Timers of the sending half.
    pub(super) enum SendTimer {
        /// A transmission counts as lost: order may have changed no longer. Source: RFC 8985 §6.
        Reorder,
        /// The tail is probed. Source: RFC 8985 §7.
        Tail,
        /// Retransmission.
        Retransmit,
        /// The window is zero.
        Persist,
    }
}

/// A segment that is sent now.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    /// Offset of the first number.
    pub(super) start: u64,
    pub(super) data: Vec<u8>,
    pub(super) fin: bool,
    pub(super) push: bool,
    /// It was sent before.
    pub(super) again: bool,
}

/// The sending half of a connection.
#[derive(Debug)]
pub(super) struct Sender {
    pub(super) params: SendParams,
    pub(super) congestion: CongestionParams,
    pub(super) iss: u32,
    /// Octets that are not acknowledged; the first one has the offset `base`.
    octets: VecDeque<u8>,
    base: u64,
    /// Ends of octets whose segment has PSH, a segment or more apart.
    pushes: VecDeque<u64>,
    /// A write has filled the buffer, and its program waits for room.
    full: bool,
    /// Offset of the first number that is not acknowledged.
    pub(super) una: u64,
    /// Offset of the next new number.
    pub(super) next: u64,
    /// No more octets will come: FIN follows.
    pub(super) closing: bool,
    /// Window that the peer offers from `una`, octets, and the largest so far.
    pub(super) window: u64,
    pub(super) most_window: u64,
    /// Numbers of the segment that told the window: the peer's and ours.
    pub(super) window_seq: u64,
    pub(super) window_ack: u64,
    /// Shift of the peer's windows.
    pub(super) scale: u8,
    /// Octets of data in a full segment.
    pub(super) mss: u64,
    /// The peer gives selective acknowledgements, and the recovery uses them.
    pub(super) sack: bool,
    pub(super) board: Scoreboard,
    pub(super) estimator: Estimator,
    pub(super) cwnd: Window,
    pub(super) repair: Repair,
    pub(super) timers: TimerTable<SendTimer>,
    pub(super) stamps: StampClock,
    /// Time stamps are in use.
    pub(super) stamped: bool,
    /// Size of the buffer, which may grow.
    size: usize,
    /// End of a segment that was not full and is not acknowledged.
    small: Option<u64>,
    /// The segment whose round trip is measured, where one is at a time.
    pub(super) timed: Option<(u64, Instant)>,
    pub(super) one_measurement: bool,
    pub(super) last_sent: Option<Instant>,
    /// Timers without an answer.
    pub(super) expired: u32,
    pub(super) retries: u32,
    persist: Option<(Duration, Duration)>,
    /// A probe of the window is to be sent.
    pub(super) probe: bool,
    /// The next new data tells that the window was reduced for a mark.
    pub(super) tell_reduced: bool,
}

impl Sender {
    pub(super) const fn progress(&self) -> Progress {
        Progress {
            una: self.una,
            next: self.next,
        }
    }
    pub(super) fn new(params: &Params, iss: u32, stamps: StampClock, phase: Duration) -> Self {
        let mss = u64::from(params.mss);
        let congestion = params.congestion;
        Self {
            params: params.send,
            congestion,
            iss,
            octets: VecDeque::new(),
            base: 1,
            pushes: VecDeque::new(),
            full: false,
            una: 0,
            next: 0,
            closing: false,
            window: 0,
            most_window: 0,
            window_seq: 0,
            window_ack: 0,
            scale: 0,
            mss,
            sack: false,
            board: Scoreboard::default(),
            estimator: Estimator::new(params.timers, phase),
            cwnd: Window::new(
                congestion.growth,
                congestion.counting,
                params.initial_window(mss),
            ),
            repair: Repair::default(),
            timers: TimerTable::default(),
            stamps,
            stamped: false,
            size: params.send.buffer,
            small: None,
            timed: None,
            one_measurement: params.timers.one_measurement,
            last_sent: None,
            expired: 0,
            retries: params.timers.retries,
            persist: params.timers.persist,
            probe: false,
            tell_reduced: false,
        }
    }

    /// Number on the wire of an offset.
    pub(super) const fn number(&self, offset: u64) -> u32 {
        self.iss.wrapping_add(offset as u32)
    }
    /// The offset that a number on the wire means, near to what is not acknowledged.
    pub(super) fn offset(&self, number: u32) -> Option<u64> {
        let distance = number.wrapping_sub(self.number(self.una)) as i32;
        self.una.checked_add_signed(distance.into())
    }
    /// Offset behind the last octet of the program.
    fn data_end(&self) -> u64 {
        self.base + self.octets.len() as u64
    }
    /// Octets that were not sent yet.
    pub(super) fn unsent(&self) -> u64 {
        self.data_end().saturating_sub(self.next)
    }
    /// Octets in the buffer.
    pub(super) fn queued(&self) -> usize {
        self.octets.len()
    }
    pub(super) const fn size(&self) -> usize {
        self.size
    }
    /// FIN was sent.
    pub(super) fn fin_sent(&self) -> bool {
        self.closing && self.next > self.data_end()
    }
    /// FIN is acknowledged.
    pub(super) fn fin_acked(&self) -> bool {
        self.closing && self.una > self.data_end()
    }

    /// Octets that the program may write now.
    pub(super) fn room(&self) -> usize {
        match self.closing || self.full {
            true => 0,
            false => self.free(),
        }
    }
    /// Octets that the buffer can take.
    fn free(&self) -> usize {
        let accounting = self.params.accounting;
        let limit = accounting.limit(self.size);
        match accounting {
            Accounting::Octets => {
                let (used, mss) = (self.octets.len(), self.mss.max(1) as usize);
                match limit.saturating_sub(used) {
                    // The last segment that begins in the buffer ends as a whole one.
                    free @ 1.. if self.params.wake_at_third => {
                        (used + free).next_multiple_of(mss) - used
                    }
                    free => free,
                }
            }
            Accounting::Mbufs { .. } | Accounting::TrueSize { .. } => {
                let mss = self.mss.max(1) as usize;
                let each = accounting.charge(mss);
                let used = self.octets.len().div_ceil(mss) * each;
                // A buffer below one packet takes one packet, as in all these hosts.
                let packets =
                    (limit.saturating_sub(used) / each).max(usize::from(self.octets.is_empty()));
                let octets = self.size.saturating_sub(self.octets.len());
                match accounting {
                    Accounting::TrueSize { .. } => packets * mss,
                    _ => octets.min(packets * mss),
                }
            }
        }
    }
    /// Takes octets of the program; there is room for them.
    pub(super) fn write(&mut self, octets: &[u8]) {
        let mut from = self.data_end();
        self.octets.extend(octets);
        if self.params.push == Push::Written {
            let half = (self.most_window / 2).max(1).next_multiple_of(self.mss);
            let end = self.data_end();
            while end - from > half {
                from += half;
                self.mark_push(from);
            }
            self.mark_push(end);
        }
        self.full = self.params.wake_at_third && self.free() == 0;
    }
    /// The segment with the octet before `end` has PSH. A mark replaces one that is less than a segment before it.
    fn mark_push(&mut self, end: u64) {
        if self.pushes.back().is_some_and(|last| end - last < self.mss) {
            self.pushes.pop_back();
        }
        self.pushes.push_back(end);
    }

    /// The segment size after the options of a handshake.
    pub(super) fn set_mss(&mut self, mss: u64, initial_window: u64) {
        self.mss = mss.max(1);
        self.cwnd.octets = initial_window;
    }
    /// Forgets what is acknowledged.
    pub(super) fn drop_acked(&mut self) {
        let count = self
            .una
            .saturating_sub(self.base)
            .min(self.octets.len() as u64);
        self.octets.drain(..count as usize);
        self.base += count;
        if self.small.is_some_and(|end| end <= self.una) {
            self.small = None;
        }
        // Source: Linux `tcp_sndbuf_expand`: twice the congestion window.
        let wanted = usize::try_from(2 * self.cwnd.octets).unwrap_or(usize::MAX);
        self.size = self.size.max(wanted.min(self.params.most));
        let done = self.pushes.partition_point(|end| *end <= self.una);
        self.pushes.drain(..done);
        self.full &= 2 * self.free() < self.octets.len();
    }

    fn copy(&self, start: u64, end: u64) -> Vec<u8> {
        let from = start.saturating_sub(self.base) as usize;
        let to = (end.min(self.data_end()).saturating_sub(self.base) as usize).max(from);
        let mut data = Vec::with_capacity(to - from);
        let (head, tail) = self.octets.as_slices();
        data.extend(
            head.get(from.min(head.len())..to.min(head.len()))
                .unwrap_or_default(),
        );
        let (from, to) = (
            from.saturating_sub(head.len()),
            to.saturating_sub(head.len()),
        );
        data.extend(tail.get(from..to).unwrap_or_default());
        data
    }

    fn outgoing(&self, start: u64, end: u64, again: bool) -> Outgoing {
        let data_end = self.data_end();
        let mark = self.pushes.partition_point(|mark| *mark <= start);
        let marked = self.pushes.get(mark).is_some_and(|mark| *mark <= end);
        Outgoing {
            start,
            data: self.copy(start, end),
            fin: end > data_end,
            push: marked || (end >= data_end && self.params.push == Push::Emptied),
            again,
        }
    }

    /// Octets that are under way: those of [`Scoreboard::pipe`] less those that duplicate ACKs have reported.
    pub(super) fn pipe(&self) -> u64 {
        self.board.pipe().saturating_sub(self.repair.arrived)
    }

    /// Octets that the congestion window allows now.
    fn allowance(&self) -> u64 {
        if self.cwnd.is_off() {
            return u64::MAX;
        }
        let pipe = self.pipe();
        let open = self.repair.is_open();
        let (extra, pipe) = match (open, self.sack, self.congestion.limited_transmit) {
            // Blocks have taken from the pipe already.
            (true, true, false) => (0, pipe + self.board.sacked()),
            (true, false, true) => (u64::from(self.repair.dup_acks.min(2)) * self.mss, pipe),
            _ => (0, pipe),
        };
        (self.cwnd.octets + extra).saturating_sub(pipe)
    }

    /// The next segment that may be sent at `now`, which counts as sent then.
    pub(super) fn next_segment(
        &mut self,
        now: Instant,
        counters: &mut Counters,
    ) -> Option<Outgoing> {
        if self.una == 0 {
            return None;
        }
        let out = self
            .repair_segment(now, counters)
            .or_else(|| self.tail_segment(now, counters))
            .or_else(|| self.new_segment(now, counters))
            .or_else(|| self.probe_segment(now, counters));
        if let Some(out) = &out {
            self.last_sent = Some(now);
            counters.octets_sent += out.data.len() as u64;
            if !self.timers.runs(SendTimer::Retransmit) && !self.timers.runs(SendTimer::Persist) {
                self.start_retransmit(now);
            } else if !out.again {
                self.start_tail(now);
            }
        } else {
            self.watch(now);
        }
        out
    }

    /// A lost segment, if one may be sent again.
    fn repair_segment(&mut self, now: Instant, counters: &mut Counters) -> Option<Outgoing> {
        if !self.board.has_lost() || self.repair.holds_repairs() {
            self.repair.forced = false;
            return None;
        }
        let lost = self.board.next_lost()?;
        let length = (lost.end - lost.start).min(self.mss);
        if !self.repair.forced && self.allowance() < length {
            return None;
        }
        self.repair.forced = false;
        Some(self.again(lost, now, counters))
    }

    /// Sends a segment again, or its first part if it has become too long.
    fn again(&mut self, sent: Sent, now: Instant, counters: &mut Counters) -> Outgoing {
        let data = sent.end.min(self.data_end()) - sent.start.min(self.data_end());
        if data > self.mss {
            self.board.divide(sent.start, self.mss);
        }
        let end = if data > self.mss {
            sent.start + self.mss
        } else {
            sent.end
        };
        self.board.repeat(sent.start, now);
        self.timed = None;
        counters.retransmissions += 1;
        let stamp = self.stamps.value(now);
        self.repair.repeated(end - sent.start, stamp);
        self.outgoing(sent.start, end, true)
    }

    /// The probe of the tail: new data if there is some, or else the last segment. Source: RFC 8985 §7.3.
    fn tail_segment(&mut self, now: Instant, counters: &mut Counters) -> Option<Outgoing> {
        if !core::mem::take(&mut self.repair.tail_due) {
            return None;
        }
        counters.tail_probes += 1;
        let usable = (self.una + self.window).saturating_sub(self.next);
        let length = self.unsent().min(self.mss);
        let out = if length > 0 && length <= usable {
            self.send_new(length, false, now)
        } else {
            let last = *self.board.last()?;
            self.again(last, now, counters)
        };
        self.repair.tail = Some((self.next, out.again));
        Some(out)
    }

    /// A segment with new numbers. The rules are those of BSD's `tcp_output`.
    fn new_segment(&mut self, now: Instant, counters: &mut Counters) -> Option<Outgoing> {
        let unsent = self.unsent();
        let fin = self.closing && !self.fin_sent();
        if unsent == 0 && !fin {
            return None;
        }
        self.begin_again_after_idle(now);
        let usable = (self.una + self.window).saturating_sub(self.next);
        let full = self.full();
        let length = unsent.min(full).min(usable);
        let last = length == unsent;
        let fin = fin && last && usable > length;
        let goes = length == full
            || fin
            || (last && length > 0 && (self.closing || self.may_send_small()))
            || (length > 0 && 2 * length >= self.most_window);
        if !goes {
            return None;
        }
        // A sender without anything under way always has room for a segment.
        if self.allowance() < length.max(1) && self.board.pipe() > 0 {
            counters.window_limited += 1;
            return None;
        }
        if !self.repair.may_send_new(length) {
            return None;
        }
        Some(self.send_new(length, fin, now))
    }

    /// Octets of a full segment with new numbers.
    fn full(&self) -> u64 {
        const DEFAULT: u64 = 536;
        match self.params.half_window && self.most_window > DEFAULT {
            true => self.mss.min((self.most_window / 2).max(48)),
            false => self.mss,
        }
    }

    /// Nagle's algorithm, for a segment that is not full and empties the buffer.
    fn may_send_small(&self) -> bool {
        match self.params.nagle {
            Nagle::Off => true,
            Nagle::Rfc896 => self.board.is_empty(),
            Nagle::Minshall => self.small.is_none(),
        }
    }

    fn send_new(&mut self, length: u64, fin: bool, now: Instant) -> Outgoing {
        let (start, end) = (self.next, self.next + length + u64::from(fin));
        self.board.push(start, end, now);
        self.next = end;
        if length < self.full() {
            self.small = Some(end);
        }
        if self.one_measurement && self.timed.is_none() {
            self.timed = Some((end, now));
        }
        self.repair.sent_new(length);
        self.outgoing(start, end, false)
    }

    fn begin_again_after_idle(&mut self, now: Instant) {
        let Some(last) = self.last_sent.filter(|_| self.board.is_empty()) else {
            return;
        };
        let idle = now.since(last);
        if idle > self.estimator.timer() && self.congestion.restart_after_idle {
            let first = self.repair.initial_window;
            self.cwnd.octets = self.cwnd.octets.min(first.max(self.mss));
        }
        self.cwnd.pause(idle);
        self.last_sent = Some(now);
    }

    /// The probe of a window that is too small for what waits.
    fn probe_segment(&mut self, now: Instant, counters: &mut Counters) -> Option<Outgoing> {
        if !core::mem::take(&mut self.probe) {
            return None;
        }
        counters.window_probes += 1;
        let usable = (self.una + self.window).saturating_sub(self.next);
        let waits = self.unsent() > 0 || (self.closing && !self.fin_sent());
        // What fits in a small window is sent now. Source: RFC 9293 §3.8.6.2.1, override timeout.
        let octet = self.params.probe == Probe::Octet;
        if waits && self.board.is_empty() && (usable > 0 || octet) {
            let length = self.unsent().min(self.mss).min(usable.max(1));
            let fin = self.closing && self.unsent() == 0;
            let small = self.small;
            let out = self.send_new(length, fin, now);
            // The probe holds no small segment back.
            self.small = small;
            return Some(out);
        }
        if octet && let Some(first) = self.board.first().copied() {
            let out = self.again(first, now, counters);
            return Some(out);
        }
        Some(Outgoing {
            start: self.una.saturating_sub(1),
            ..Outgoing::default()
        })
    }

    /// Nothing more can be sent. Data that wait without anything under way wait for the window, and a timer asks for
    /// it. Data under way have a timer, also if they were a probe of a window that has opened since.
    fn watch(&mut self, now: Instant) {
        if self.timers.runs(SendTimer::Persist) {
            return;
        }
        let waits = self.unsent() > 0 || (self.closing && !self.fin_sent());
        if !self.board.is_empty() {
            if !self.timers.runs(SendTimer::Retransmit) {
                self.start_retransmit(now);
            }
        } else if waits {
            self.timers.stop(SendTimer::Retransmit);
            self.start_persist(now);
        }
    }

    pub(super) fn start_persist(&mut self, now: Instant) {
        let timer = self.estimator.timer();
        let after = self
            .persist
            .map_or(timer, |(least, most)| timer.clamp(least, most.max(least)));
        self.start(SendTimer::Persist, now, after);
    }
    pub(super) fn start_retransmit(&mut self, now: Instant) {
        self.start(SendTimer::Retransmit, now, self.estimator.timer());
        self.start_tail(now);
    }
    /// Starts the timer of the tail anew, while nothing is lost.
    fn start_tail(&mut self, now: Instant) {
        let probes = matches!(self.congestion.recovery, Recovery::Rack) && self.sack;
        if probes && self.repair.is_open() && self.repair.tail.is_none() {
            // At the time of the retransmission timer the probe comes first.
            let after = self.tail_time().min(self.estimator.timer());
            self.start(SendTimer::Tail, now, after);
        }
    }
    /// Time until the tail is probed. Source: RFC 8985 §7.2; Linux adds its least timer to a single segment's.
    fn tail_time(&self) -> Duration {
        let Some(smoothed) = self.estimator.smoothed() else {
            return Duration::from_secs(1);
        };
        let single = self.board.segments() <= 1;
        smoothed * 2 + Duration::from_millis(if single { 200 } else { 2 })
    }
    pub(super) fn start(&mut self, timer: SendTimer, now: Instant, after: Duration) {
        let at = self.estimator.expiry(now, after);
        self.timers.start(timer, now, at.since(now));
    }
}
