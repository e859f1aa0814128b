//! When data is acknowledged: at once, by count, by a timer.
//!
//! **Standards.** RFC 9293 §3.8.6.3 (delayed acknowledgements), RFC 5681 §4.2 (at once for what is out of order or
//! fills a hole). The rules of Linux are those of `tcp_input.c` (`__tcp_ack_snd_check`, `tcp_event_data_recv`), those
//! of BSD of `tcp_timer.c` (`tcp_fasttimo`).

use super::clock::{next_tick, wheel};
use super::params::{AckDelay, AckPush, ReceiveParams};
use crate::{Duration, Instant};

/// Acknowledgements that are due.
#[derive(Debug)]
pub(super) struct AckPolicy {
    params: ReceiveParams,
    /// The phase of the host's tick.
    phase: Duration,
    /// Acknowledgements that are due now, one segment for each.
    due: u32,
    /// When what is delayed is acknowledged.
    delayed: Option<Instant>,
    /// Segments that are still acknowledged at once; `None` before the first one.
    quick: Option<u16>,
    /// Largest segment so far: the size of a full one.
    full: u64,
    /// The delay that follows from the gaps.
    gap_delay: Duration,
    last: Option<Instant>,
    /// The program answers what it reads: quick acknowledgements would only be more segments.
    interactive: bool,
    /// Segments that are acknowledged once all has been read, 0, 1 or more.
    pushed: u8,
}

impl AckPolicy {
    pub(super) const fn new(params: ReceiveParams, phase: Duration) -> Self {
        Self {
            params,
            phase,
            due: 0,
            delayed: None,
            quick: None,
            full: 0,
            gap_delay: Duration::ZERO,
            last: None,
            interactive: false,
            pushed: 0,
        }
    }
    /// An acknowledgement is due now, besides those that are due already.
    pub(super) fn at_once(&mut self) {
        // An ACK for each segment: the peer counts them. The limit is for inputs whose outputs no caller takes.
        self.due = (self.due + 1).min(1024);
    }
    /// An acknowledgement is due now, unless one is due already.
    pub(super) fn update(&mut self) {
        self.due = self.due.max(1);
    }
    pub(super) const fn is_due(&self) -> bool {
        self.due > 0
    }
    pub(super) const fn deadline(&self) -> Option<Instant> {
        self.delayed
    }
    /// The timer may have expired.
    pub(super) fn expire(&mut self, now: Instant) -> bool {
        if self.delayed.is_none_or(|at| at > now) {
            return false;
        }
        self.delayed = None;
        self.update();
        true
    }
    /// The window grows with the segment that arrives now: it is acknowledged at once, by a host that does so at the
    /// start.
    pub(super) fn quicken(&mut self) {
        if self.params.quick_acks == 0 {
            return;
        }
        let quick = self.quick.get_or_insert(self.params.quick_acks);
        *quick = (*quick).max(1);
    }
    /// The program has read all that has arrived.
    pub(super) fn all_read(&mut self) {
        if self.delayed.is_some() && self.pushed > u8::from(self.interactive) {
            self.update();
        }
    }
    /// A segment with an acknowledgement is sent.
    pub(super) const fn sent(&mut self) {
        self.due = self.due.saturating_sub(1);
        self.delayed = None;
        self.pushed = 0;
    }
    /// A segment with data is sent: it acknowledges all that is due.
    pub(super) fn sent_data(&mut self, now: Instant) {
        self.due = 0;
        self.pushed = 0;
        self.interactive |= self
            .last
            .is_some_and(|last| now.since(last) < self.least_delay());
    }
    /// True if this many octets are more than the count allows.
    pub(super) const fn is_counted(&self, octets: u64) -> bool {
        match self.params.ack_every {
            0 => false,
            every => octets > (every as u64 - 1) * self.full,
        }
    }

    const fn least_delay(&self) -> Duration {
        match self.params.ack_delay {
            AckDelay::Adaptive { least, .. } => least,
            AckDelay::Never | AckDelay::After(_) | AckDelay::Tick(_) => Duration::ZERO,
        }
    }

    /// Data has arrived in order.
    pub(super) fn data(&mut self, octets: u64, push: bool, now: Instant) {
        if self.params.ack_push == AckPush::WhenRead {
            let small = octets < self.full;
            self.pushed = match (small, push, self.pushed) {
                (true, _, pushed) => (pushed + 1).min(2),
                (false, true, pushed) => pushed.max(1),
                (false, false, pushed) => pushed,
            };
        }
        self.full = self.full.max(octets);
        let gap = self.last.map(|last| now.since(last));
        self.last = Some(now);
        let quick = self.quick.get_or_insert(self.params.quick_acks);
        if let AckDelay::Adaptive { least, most, .. } = self.params.ack_delay {
            match gap {
                None => self.gap_delay = least,
                Some(gap) if gap <= least / 2 => self.gap_delay = self.gap_delay / 2 + least / 2,
                Some(gap) if gap < self.gap_delay => {
                    self.gap_delay = (self.gap_delay / 2 + gap).min(most);
                }
                // Source: Linux `tcp_event_data_recv`: a pause of more than a timer begins anew.
                Some(gap) if gap > most => *quick = self.params.quick_acks,
                Some(_) => {}
            }
        }
        let is_quick = *quick > 0 && !self.interactive;
        *quick = quick.saturating_sub(1);
        if is_quick {
            return self.update();
        }
        let at = match self.params.ack_delay {
            AckDelay::Never => return self.update(),
            AckDelay::After(time) => now + time.max(Duration::from_nanos(1)),
            AckDelay::Tick(period) => next_tick(now, period, self.phase),
            AckDelay::Adaptive { least, most, jiffy } => {
                wheel(now, self.gap_delay.clamp(least, most), jiffy, self.phase)
            }
        };
        self.delayed.get_or_insert(at);
    }
}
