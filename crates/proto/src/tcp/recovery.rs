//! The sending half between acknowledgements and timers: losses are found and repaired, the window is reduced, and a
//! reduction without a loss is taken back.
//!
//! **States.** Open; recovery (a loss was found by acknowledgements, until all is acknowledged that was outstanding
//! then); loss (a timer has expired, until the same).
//!
//! | | found by | window | ends |
//! |---|---|---|---|
//! | Tahoe | third duplicate ACK | one segment, all is sent again | as after a timer |
//! | Reno | the same | half, and a segment for each further duplicate | first new ACK |
//! | NewReno | the same | the same; a partial ACK repairs the next hole | all acknowledged |
//! | SACK | three segments above have arrived | `pipe` of RFC 6675 below the half | all acknowledged |
//! | RACK | a later transmission has arrived, and time | the same | all acknowledged |
//!
//! **Standards.** RFC 5681 §3.2, 6582, 6675 (rules 1 and 2 of `NextSeg`), 8985, 6937 (with the bound SSRB), 5682
//! (both forms), 3522 and 4015 (undo by time stamps), 3708 (undo by duplicate blocks), 6298 §5.
//!
//! **Not implemented.** Rules 3 and 4 of `NextSeg` (rescue retransmission), the longer windows for reordering of RFC
//! 8985 step 4 (the multiple of a quarter of the round trip stays one).
//!
//! **Without blocks.** A TCP that reduces in proportion counts duplicate ACKs as segments that have arrived, as Linux
//! does; another one inflates its window (RFC 6582).
//!
//! **Deviations.** A second timer in a row is doubted again (Linux `tcp_enter_loss`), where RFC 5682 asks once. The
//! half is that of the window or of the flight, whichever is less: octets of limited transmit do not count. The blocks
//! that a peer has named are kept after a timer, as in Linux; RFC 6675 §5.1 would forget them. A peer that takes them
//! back has its segments sent again after the second timer in a row.

mod timers;

use super::Counters;
use super::growth::Step;
use super::params::Recovery;
use super::scoreboard::Acked;
use super::send::{SendTimer, Sender};
use crate::{Duration, Instant};

/// Duplicate ACKs, or segments above a hole, that tell of a loss. Source: RFC 5681 §3.2.
const DUPLICATES: u32 = 3;

aerostat_wire::named! {
    /// State of the repair.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum Phase {
        /// No loss is known.
        #[default]
        Open = "open",
        /// A loss was found by acknowledgements.
        Recovery = "recovery",
        /// A timer has expired.
        Loss = "loss",
    }
}

/// Proportional rate reduction. Source: RFC 6937 §3.
#[derive(Clone, Copy, Debug, Default)]
struct Prr {
    delivered: u64,
    out: u64,
    flight: u64,
}

/// The steps of RFC 5682.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Frto {
    #[default]
    Off,
    /// The first segment was sent again: step 2.
    First,
    /// New data is sent in place of repairs; so many octets may go: step 3.
    Second(u64),
}

/// Values before a reduction, in case that nothing was lost.
#[derive(Clone, Copy, Debug)]
struct Undo {
    window: u64,
    threshold: u64,
    /// Clock of time stamps at the first repetition.
    stamp: Option<u32>,
    /// Octets that were sent again and have not been reported as duplicates.
    repeated: u64,
}

/// The segment that was sent last of those that have arrived. Source: RFC 8985 §5.
#[derive(Clone, Copy, Debug, Default)]
struct Rack {
    at: Option<(Instant, u64)>,
    round_trip: Duration,
    reordered: bool,
}

/// State of loss recovery.
#[derive(Clone, Debug, Default)]
pub(super) struct Repair {
    pub(super) phase: Phase,
    /// End of the data that was outstanding when the state began.
    recover: u64,
    /// A reduction for a congestion mark holds until this is acknowledged.
    marked: u64,
    pub(super) dup_acks: u32,
    /// The next repair is sent whatever the window says.
    pub(super) forced: bool,
    /// A partial ACK has been seen in this recovery.
    partial: bool,
    prr: Prr,
    /// Octets that have arrived beyond a hole as duplicate ACKs tell, where a peer gives no blocks. Source: Linux
    /// `tcp_add_reno_sack`.
    pub(super) arrived: u64,
    frto: Frto,
    undo: Option<Undo>,
    rack: Rack,
    /// A probe of the tail is due.
    pub(super) tail_due: bool,
    /// The probe that is under way: it ends here, and was sent before.
    pub(super) tail: Option<(u64, bool)>,
    /// The initial window, octets.
    pub(super) initial_window: u64,
}

impl Repair {
    pub(super) const fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Open)
    }
    /// New data goes before repairs: step 2b of RFC 5682.
    pub(super) const fn holds_repairs(&self) -> bool {
        matches!(self.frto, Frto::Second(_))
    }
    pub(super) const fn may_send_new(&self, length: u64) -> bool {
        match self.frto {
            Frto::Second(left) => left >= length,
            Frto::Off | Frto::First => true,
        }
    }
    pub(super) const fn sent_new(&mut self, length: u64) {
        self.prr.out += length;
        if let Frto::Second(left) = &mut self.frto {
            *left = left.saturating_sub(length);
        }
    }
    pub(super) fn repeated(&mut self, length: u64, stamp: u32) {
        self.prr.out += length;
        if let Some(undo) = &mut self.undo {
            undo.stamp.get_or_insert(stamp);
            undo.repeated += length;
        }
    }
}

/// An acceptable acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ack<'a> {
    /// Offset.
    pub(super) una: u64,
    /// Blocks, offsets, in the order of the segment.
    pub(super) blocks: &'a [(u64, u64)],
    /// The echoed time stamp.
    pub(super) echo: Option<u32>,
    /// The segment has no data, and its window is that of the last one: it may be a duplicate.
    pub(super) bare: bool,
    /// The peer echoes a congestion mark.
    pub(super) marked: bool,
}

impl Sender {
    /// Takes an acknowledgement with `una` between the known one and `next`; true if it acknowledges something new.
    pub(super) fn acknowledge(
        &mut self,
        ack: &Ack<'_>,
        now: Instant,
        counters: &mut Counters,
    ) -> bool {
        let flight = self.board.pipe();
        let mut acked = Acked::default();
        let duplicate_block = self.take_blocks(ack, &mut acked, counters);
        self.board
            .acknowledge(ack.una, self.repair.recover, &mut acked);
        let advanced = ack.una > self.una;
        // Answers to probes of a window are no duplicates: BSD counts none without a retransmission timer.
        let probes = self.timers.runs(SendTimer::Persist);
        let duplicate = !advanced && ack.bare && !probes && !self.board.is_empty();
        counters.duplicate_acks += u64::from(duplicate);
        self.una = self.una.max(ack.una);
        let sample = self.measure(ack, &acked, advanced, now);
        if acked.delivered > 0 {
            self.note_delivery(&acked, ack.echo, now);
        }
        if advanced {
            self.expired = 0;
        }
        self.end_tail(ack.una, duplicate_block, counters);
        if !self.undo(ack, &acked, advanced, duplicate_block, counters) {
            let step = Step {
                octets: acked.octets,
                una: self.una,
                next: self.next,
                sample,
                smoothed: self.estimator.smoothed().unwrap_or_default(),
                least: self.estimator.least(),
                mss: self.mss,
            };
            match self.repair.phase {
                Phase::Open => self.open(&step, flight, duplicate, now, counters),
                Phase::Recovery => self.in_recovery(&acked, duplicate, now, counters),
                Phase::Loss => self.in_loss(&acked, &step, duplicate, now, counters),
            }
        }
        if ack.marked {
            self.congestion_mark(counters);
        }
        if advanced {
            self.drop_acked();
            self.restart_timer(now);
        }
        advanced
    }

    /// Applies the blocks; true if the first one reports a duplicate. Source: RFC 2018, RFC 2883 §4.
    fn take_blocks(&mut self, ack: &Ack<'_>, acked: &mut Acked, counters: &mut Counters) -> bool {
        let mut blocks = ack.blocks;
        let mut duplicate = false;
        if let Some((left, right)) = blocks.first().copied()
            && (right <= ack.una
                || blocks
                    .get(1)
                    .is_some_and(|second| second.0 <= left && right <= second.1))
        {
            duplicate = true;
            counters.duplicate_blocks += 1;
            blocks = blocks.get(1..).unwrap_or_default();
        }
        let mut sorted = [(0, 0); 4];
        let count = blocks.len().min(sorted.len());
        sorted[..count].copy_from_slice(&blocks[..count]);
        sorted[..count].sort_unstable();
        for (left, right) in &sorted[..count] {
            // A block beyond what was sent is a lie, one below the number is old news.
            if left < right && *right <= self.next && *right > ack.una && self.sack {
                self.board
                    .sack((*left).max(ack.una), *right, self.repair.recover, acked);
            } else {
                counters.blocks_ignored += 1;
            }
        }
        duplicate
    }

    /// Measures the round trip, if this acknowledgement shows one.
    fn measure(
        &mut self,
        ack: &Ack<'_>,
        acked: &Acked,
        advanced: bool,
        now: Instant,
    ) -> Option<Duration> {
        let progress = self.progress();
        if let Some((end, at)) = self.timed
            && ack.una >= end
        {
            self.timed = None;
            self.estimator.measure(at, now, progress);
            return Some(now.since(at));
        }
        let (true, false) = (advanced || acked.sacked > 0, self.one_measurement) else {
            return None;
        };
        if let (Some(first), false) = (acked.first, acked.repeated) {
            self.estimator.measure(first, now, progress);
            return acked.newest.map(|newest| now.since(newest.0));
        }
        let sample = ack.echo.filter(|_| advanced && self.stamped)?;
        let sample = self.stamps.since(sample, now)?;
        self.estimator.measure(now.before(sample), now, progress);
        None
    }

    /// Notes what has arrived for the order of transmissions. Source: RFC 8985 §6.2 steps 1 to 3.
    ///
    /// The acknowledgement of data that was sent again may be for its first transmission. To take that for a short
    /// round trip would make all that is under way late, and each repetition of it the cause of a further one. Time
    /// stamps tell the two apart, unless there is a hole before the data: then they are of what came before the hole.
    fn note_delivery(&mut self, acked: &Acked, echo: Option<u32>, now: Instant) {
        let rack = &mut self.repair.rack;
        rack.reordered |= acked.reordered;
        let Some((at, end, again)) = acked.newest else {
            return;
        };
        let round_trip = now.since(at);
        let older = echo.filter(|_| self.stamped && end <= self.una);
        let older = older
            .is_some_and(|echo| self.stamps.value(at).wrapping_sub(echo).wrapping_sub(1) < 1 << 31);
        let short = (self.estimator.least()).is_some_and(|least| round_trip < least);
        let ambiguous = again > 0 && (older || short);
        if !ambiguous && rack.at.is_none_or(|known| known < (at, end)) {
            rack.at = Some((at, end));
            rack.round_trip = round_trip;
        }
    }

    /// The probe of the tail was acknowledged: one that repaired a loss is a sign of congestion. Source: RFC 8985 §7.4.
    fn end_tail(&mut self, una: u64, duplicate_block: bool, counters: &mut Counters) {
        let Some((end, again)) = self.repair.tail else {
            return;
        };
        if una < end {
            return;
        }
        self.repair.tail = None;
        if again && !duplicate_block && self.repair.is_open() {
            counters.fast_recoveries += 1;
            let threshold = self.cwnd.reduced(self.cwnd.octets, self.mss);
            (self.cwnd.threshold, self.cwnd.octets) = (threshold, threshold);
        }
    }

    /// Takes a reduction back, if nothing was lost.
    fn undo(
        &mut self,
        ack: &Ack<'_>,
        acked: &Acked,
        advanced: bool,
        duplicate_block: bool,
        counters: &mut Counters,
    ) -> bool {
        let Some(undo) = &mut self.repair.undo else {
            return false;
        };
        if duplicate_block {
            undo.repeated = undo.repeated.saturating_sub(self.mss);
        }
        let undo = *undo;
        let all_duplicates = duplicate_block && undo.repeated == 0 && undo.stamp.is_some();
        let older = match (undo.stamp, ack.echo) {
            (Some(stamp), Some(echo)) if advanced && self.stamped => {
                stamp.wrapping_sub(echo).wrapping_sub(1) < 1 << 31
            }
            _ => false,
        };
        let by_undo = self.congestion.undo && (older || all_duplicates);
        let by_frto = self.repair.phase == Phase::Loss && self.is_spurious(acked, advanced);
        if !by_undo && !by_frto {
            return false;
        }
        counters.undone += 1;
        self.cwnd.octets = self.cwnd.octets.max(undo.window);
        self.cwnd.threshold = self.cwnd.threshold.max(undo.threshold);
        self.board.unmark_all();
        self.estimator.reset_back_off();
        self.leave();
        true
    }

    /// Step 3 of RFC 5682: data that was sent once and was outstanding at the timer has arrived.
    const fn is_spurious(&self, acked: &Acked, advanced: bool) -> bool {
        match self.repair.frto {
            Frto::Off => false,
            Frto::First => self.sack && acked.original && !acked.repeated,
            Frto::Second(_) => (self.sack && acked.original) || (!self.sack && advanced),
        }
    }

    fn leave(&mut self) {
        let repair = &mut self.repair;
        repair.phase = Phase::Open;
        repair.dup_acks = 0;
        repair.frto = Frto::Off;
        repair.undo = None;
        repair.partial = false;
        repair.forced = false;
        repair.arrived = 0;
    }

    fn open(
        &mut self,
        step: &Step,
        flight: u64,
        duplicate: bool,
        now: Instant,
        counters: &mut Counters,
    ) {
        if step.octets > 0 {
            self.repair.dup_acks = 0;
            let limited = match self.cwnd.in_slow_start() {
                true => self.cwnd.octets < 2 * flight,
                false => flight + self.mss > self.cwnd.octets,
            };
            if limited || !self.congestion.grows_when_limited {
                self.cwnd.grow(step, now);
            }
        } else if duplicate {
            self.repair.dup_acks += 1;
        }
        if self.is_lost(duplicate, now) {
            self.begin_recovery(counters);
        }
    }

    /// True if this acknowledgement tells of a loss.
    fn is_lost(&mut self, duplicate: bool, now: Instant) -> bool {
        match (self.congestion.recovery, self.sack) {
            (Recovery::Rack, true) => self.find_by_time(now),
            (Recovery::Sack, true) => self.board.mark_below_sacked(DUPLICATES as usize),
            (Recovery::Tahoe | Recovery::Reno, _) => {
                duplicate && self.repair.dup_acks == DUPLICATES
            }
            // RFC 6582 §3.2 step 1: the duplicates of a repair are no new loss.
            (Recovery::NewReno | Recovery::Sack | Recovery::Rack, _) => {
                duplicate
                    && self.repair.dup_acks == DUPLICATES
                    && (self.una > self.repair.recover || self.repair.recover == 0)
            }
        }
    }

    /// Marks what is late; true if something was. Source: RFC 8985 §6.2 steps 4 and 5.
    fn find_by_time(&mut self, now: Instant) -> bool {
        let rack = self.repair.rack;
        let Some(newest) = rack.at else {
            return false;
        };
        let enough = self.board.sacked_segments() >= DUPLICATES || !self.repair.is_open();
        let window = match rack.reordered {
            false if enough => Duration::ZERO,
            _ => {
                let least = self.estimator.least().unwrap_or_default();
                (least / 4).min(self.estimator.smoothed().unwrap_or_default())
            }
        };
        let late = rack.round_trip + window;
        let (waits, found) = self
            .board
            .mark_by_time(|sent| (sent.at, sent.end) < newest && sent.at + late <= now);
        match waits.filter(|sent| (sent.at, sent.end) < newest) {
            Some(sent) => {
                let after = (sent.at + late).since(now);
                self.start(SendTimer::Reorder, now, after);
            }
            None => self.timers.stop(SendTimer::Reorder),
        }
        found
    }

    /// Lowers the threshold after a loss, and keeps what an undo would restore.
    fn reduce(&mut self) {
        let from = self.board.outstanding().min(self.cwnd.octets);
        let (window, threshold) = (self.cwnd.octets, self.cwnd.threshold);
        self.repair.undo = Some(Undo {
            window,
            threshold,
            stamp: None,
            repeated: 0,
        });
        self.cwnd.threshold = self.cwnd.reduced(from, self.mss);
    }

    fn begin_recovery(&mut self, counters: &mut Counters) {
        counters.fast_recoveries += 1;
        self.timers.stop(SendTimer::Tail);
        self.reduce();
        self.repair.recover = self.next;
        self.repair.partial = false;
        self.repair.forced = true;
        self.repair.phase = Phase::Recovery;
        self.repair.prr = Prr {
            flight: self.board.outstanding(),
            ..Prr::default()
        };
        match (self.congestion.recovery, self.sack) {
            (Recovery::Tahoe, _) => {
                self.cwnd.octets = self.mss;
                self.board.mark_all(true);
                self.repair.phase = Phase::Loss;
            }
            (Recovery::Sack | Recovery::Rack, true) => {
                if !self.congestion.prr {
                    self.cwnd.octets = self.cwnd.threshold;
                }
            }
            _ if self.counts_duplicates() => {
                self.board.mark_first();
                self.note_duplicates(u64::from(DUPLICATES));
            }
            _ => {
                self.board.mark_first();
                self.cwnd.octets = self.cwnd.threshold + u64::from(DUPLICATES) * self.mss;
            }
        }
        self.reduce_proportionally(0);
    }

    fn in_recovery(
        &mut self,
        acked: &Acked,
        duplicate: bool,
        now: Instant,
        counters: &mut Counters,
    ) {
        let blocks = self.sack;
        let ends = acked.octets > 0
            && (self.una >= self.repair.recover || self.congestion.recovery == Recovery::Reno);
        if ends {
            let flight = self.board.pipe().max(self.mss) + self.mss;
            self.cwnd.octets = match (blocks || self.counts_duplicates(), self.congestion.recovery)
            {
                (false, Recovery::NewReno | Recovery::Sack | Recovery::Rack) => {
                    self.cwnd.threshold.min(flight)
                }
                _ => self.cwnd.threshold,
            };
            self.leave();
            if !blocks {
                // What is still outstanding, as Reno has it, is not lost any more.
                self.board.unmark_all();
            } else if self.board.lost() > 0 {
                self.begin_recovery(counters);
            }
            return;
        }
        if blocks {
            if self.congestion.recovery == Recovery::Rack {
                self.find_by_time(now);
            } else {
                self.board.mark_below_sacked(DUPLICATES as usize);
                // A partial ACK: the first segment is a hole, whatever is above it.
                if acked.octets > 0 && self.board.sacked() > 0 {
                    self.mark_first_hole();
                }
            }
            return self.reduce_proportionally(acked.delivered);
        }
        if self.counts_duplicates() {
            return self.in_counted_recovery(acked.octets, duplicate, counters);
        }
        if acked.octets > 0 {
            // A partial ACK, RFC 6582 §3.2 step 3.
            counters.partial_acks += 1;
            let back = if acked.octets >= self.mss {
                self.mss
            } else {
                0
            };
            self.cwnd.octets = self.cwnd.octets.saturating_sub(acked.octets) + back;
            self.board.mark_first();
            self.repair.forced = true;
        } else if duplicate {
            self.cwnd.octets += self.mss;
        }
    }

    /// True if duplicate ACKs stand in for blocks that the peer does not give.
    const fn counts_duplicates(&self) -> bool {
        self.congestion.recovery.uses_blocks() && !self.sack && self.congestion.prr
    }
    /// Notes segments that have arrived behind the hole as duplicate ACKs tell; the hole itself has not.
    fn note_duplicates(&mut self, count: u64) {
        let most = self.board.outstanding().saturating_sub(self.mss);
        self.repair.arrived = (self.repair.arrived + count * self.mss).min(most);
    }
    /// An acknowledgement in a recovery that counts duplicates. Source: Linux `tcp_remove_reno_sacks`.
    fn in_counted_recovery(&mut self, octets: u64, duplicate: bool, counters: &mut Counters) {
        let mut delivered = 0;
        if octets > 0 {
            // A partial ACK: one segment filled the hole, and the others are those that duplicates have told.
            counters.partial_acks += 1;
            delivered = octets.saturating_sub(self.repair.arrived).max(self.mss);
            let told = octets.saturating_sub(self.mss);
            self.repair.arrived = self.repair.arrived.saturating_sub(told);
            self.note_duplicates(0);
            self.board.mark_first();
        } else if duplicate {
            let before = self.repair.arrived;
            self.note_duplicates(1);
            delivered = self.repair.arrived - before;
        }
        self.reduce_proportionally(delivered);
    }

    /// The first segment is a hole that nothing has repaired yet.
    fn mark_first_hole(&mut self) {
        if self
            .board
            .first()
            .is_some_and(|first| !first.lost && !first.sacked)
        {
            self.board.mark_first();
        }
    }

    /// The window in recovery, by what has arrived. Source: RFC 6937 §3.
    fn reduce_proportionally(&mut self, delivered: u64) {
        if !self.congestion.prr || !self.congestion.recovery.uses_blocks() {
            return;
        }
        let (pipe, threshold, mss) = (self.pipe(), self.cwnd.threshold, self.mss);
        let prr = &mut self.repair.prr;
        prr.delivered += delivered;
        let count = if pipe > threshold {
            let goal = u128::from(prr.delivered) * u128::from(threshold);
            let goal = goal.div_ceil(u128::from(prr.flight.max(1)));
            u64::try_from(goal)
                .unwrap_or(u64::MAX)
                .saturating_sub(prr.out)
        } else {
            let limit = prr.delivered.saturating_sub(prr.out).max(delivered) + mss;
            (threshold - pipe).min(limit)
        };
        self.cwnd.octets = pipe + count;
    }

    fn in_loss(
        &mut self,
        acked: &Acked,
        step: &Step,
        duplicate: bool,
        now: Instant,
        counters: &mut Counters,
    ) {
        if self.una >= self.repair.recover && acked.octets > 0 {
            self.leave();
            self.cwnd.grow(step, now);
            if self.board.lost() > 0 {
                self.begin_recovery(counters);
            }
            return;
        }
        match self.repair.frto {
            Frto::First if acked.octets > 0 && self.unsent() > 0 => {
                counters.frto_steps += 1;
                self.repair.frto = Frto::Second(2 * self.mss);
                self.cwnd.octets = self.board.pipe() + 2 * self.mss;
                return;
            }
            Frto::Second(_) if duplicate || acked.sacked > 0 || acked.octets > 0 => {
                self.repair.frto = Frto::Off;
                self.cwnd.octets = self.board.pipe().max(self.mss) + self.mss;
                self.repair.forced = true;
            }
            Frto::First if duplicate || acked.octets > 0 => self.repair.frto = Frto::Off,
            Frto::Off | Frto::First | Frto::Second(_) => {}
        }
        if self.sack && self.congestion.recovery == Recovery::Rack {
            self.find_by_time(now);
        }
        if acked.octets > 0 {
            self.cwnd.grow(step, now);
        }
    }

    /// A congestion mark: the window is reduced once in a round trip. Source: RFC 3168 §6.1.2.
    fn congestion_mark(&mut self, counters: &mut Counters) {
        // Only what is sent after the reduction carries the news of it.
        if self.una <= self.repair.marked || !self.repair.is_open() {
            return;
        }
        counters.mark_reductions += 1;
        self.repair.marked = self.next;
        self.tell_reduced = true;
        let from = self.board.outstanding().min(self.cwnd.octets).max(self.mss);
        let threshold = self.cwnd.reduced(from, self.mss);
        (self.cwnd.threshold, self.cwnd.octets) = (threshold, threshold);
    }
}
