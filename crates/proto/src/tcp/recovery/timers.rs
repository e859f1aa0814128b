//! Timers of a sender: retransmission, persist, probe of the tail, and reordering.

use super::{Frto, Phase};
use crate::Instant;
use crate::tcp::Counters;
use crate::tcp::send::{SendTimer, Sender};

impl Sender {
    /// The timer after something new was acknowledged. Source: RFC 6298 §5, RFC 6582 §3.2 (the impatient variant).
    pub(super) fn restart_timer(&mut self, now: Instant) {
        self.timers.stop(SendTimer::Persist);
        self.timers.stop(SendTimer::Tail);
        if self.board.is_empty() {
            self.timers.stop(SendTimer::Retransmit);
            self.timers.stop(SendTimer::Reorder);
            return;
        }
        let later = self.repair.phase == Phase::Recovery && self.repair.partial && !self.sack;
        self.repair.partial |= self.repair.phase == Phase::Recovery;
        if !later {
            self.start_retransmit(now);
        }
    }

    /// The retransmission timer has expired; `false` if it has expired too often. Source: RFC 6298 §5.4 to 5.6, RFC
    /// 5681 §3.1.
    pub(in crate::tcp) fn retransmit_timer(
        &mut self,
        now: Instant,
        counters: &mut Counters,
    ) -> bool {
        if self.board.is_empty() {
            return true;
        }
        self.expired += 1;
        if self.expired > self.retries {
            return false;
        }
        counters.timeouts += 1;
        // What was found by acknowledgements has reduced the window already, and so has the same timer before. Source:
        // RFC 5681 §3.1, Linux `tcp_enter_loss`.
        let open = self.repair.is_open();
        if open || (self.repair.phase == Phase::Loss && self.expired == 1) {
            self.reduce();
        }
        self.repair.frto = match self.congestion.frto && (open || self.expired > 1) {
            true => Frto::First,
            false => Frto::Off,
        };
        self.repair.arrived = 0;
        self.repair.phase = Phase::Loss;
        self.repair.recover = self.next;
        self.repair.dup_acks = 0;
        self.repair.forced = true;
        self.repair.tail = None;
        self.repair.tail_due = false;
        if !self.cwnd.is_off() {
            self.cwnd.octets = self.mss;
        }
        self.cwnd.forget();
        self.timed = None;
        self.board.mark_all(!self.sack || self.expired > 1);
        self.timers.stop(SendTimer::Tail);
        self.timers.stop(SendTimer::Reorder);
        self.estimator.double();
        self.start_retransmit(now);
        true
    }

    /// The timer of the window has expired; `false` if the peer has not answered for too long.
    pub(in crate::tcp) fn persist_timer(&mut self, now: Instant) -> bool {
        let waits = self.unsent() > 0 || (self.closing && !self.fin_acked());
        if !waits {
            return true;
        }
        self.expired += 1;
        if self.expired > self.retries {
            return false;
        }
        self.probe = true;
        self.estimator.double();
        self.start_persist(now);
        true
    }

    /// The timer of the tail has expired.
    pub(in crate::tcp) fn tail_timer(&mut self, now: Instant) {
        if self.repair.is_open() && !self.board.is_empty() {
            self.repair.tail_due = true;
            self.start_retransmit(now);
            self.timers.stop(SendTimer::Tail);
        }
    }

    /// The timer of changed order has expired.
    pub(in crate::tcp) fn reorder_timer(&mut self, now: Instant, counters: &mut Counters) {
        let found = self.find_by_time(now);
        match (found, self.repair.phase) {
            (true, Phase::Open) => self.begin_recovery(counters),
            (true, Phase::Recovery) => self.reduce_proportionally(0),
            _ => {}
        }
    }
}
