//! Growth of the congestion window: slow start, Reno, CUBIC.
//!
//! **Standards.** RFC 5681 §3.1, RFC 3465 (octets, with what an ACK acknowledges as the limit in slow start, as in
//! Linux), RFC 9438 §4. HyStart as in Linux `tcp_cubic.c`: trains of ACKs, and delay.
//!
//! **Deviations.** CUBIC of RFC 9438 estimates the window of Reno from acknowledged octets; so does this one. The time
//! of the next epoch begins with the first ACK in congestion avoidance, and moves on while the sender was idle (Linux
//! `cubictcp_cwnd_event_tx_start`).

use super::params::{Counting, Growth};
use crate::{Duration, Instant};

/// Constant C of CUBIC, segments/s³. Source: RFC 9438 §5.
const C: f64 = 0.4;
/// β of CUBIC. Source: RFC 9438 §4.6. Linux has 717/1024.
const BETA: f64 = 0.7;
/// HyStart begins with a window of so many segments. Source: Linux `hystart_low_window`.
const LOW_WINDOW: u64 = 16;
/// ACKs of one train are at most so far apart. Source: Linux `hystart_ack_delta_us`.
const TRAIN_GAP: Duration = Duration::from_millis(2);
/// Samples of the delay in a round. Source: Linux `HYSTART_MIN_SAMPLES`.
const SAMPLES: u32 = 8;

/// The state of an epoch of CUBIC.
#[derive(Clone, Copy, Debug, Default)]
struct Cubic {
    /// Window before the last reduction, segments.
    most: f64,
    /// Begin of the epoch.
    epoch: Option<Instant>,
    /// Window at the begin of the epoch, segments.
    start: f64,
    /// Time from the begin of the epoch until the window is `most` again, s.
    k: f64,
    /// The window that Reno would have, segments.
    reno: f64,
    /// The window just before the last reduction, segments: Reno's share grows as Reno above it.
    before: f64,
}

/// The state of a round of HyStart.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    begin: Instant,
    /// The round ends when this is acknowledged.
    end: u64,
    last: Instant,
    least: Option<Duration>,
    samples: u32,
}

/// Facts of an ACK for the growth of the window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    /// Octets acknowledged by number or block.
    pub(super) octets: u64,
    /// The cumulative number.
    pub(super) una: u64,
    /// The next new number.
    pub(super) next: u64,
    /// Round trip of the ACK, if it has one.
    pub(super) sample: Option<Duration>,
    /// Smoothed round trip.
    pub(super) smoothed: Duration,
    /// Shortest round trip.
    pub(super) least: Option<Duration>,
    /// Segment size, octets.
    pub(super) mss: u64,
}

/// Congestion window and slow-start threshold, octets.
#[derive(Clone, Debug)]
pub(super) struct Window {
    kind: Growth,
    counting: Counting,
    pub(super) octets: u64,
    pub(super) threshold: u64,
    /// Part of an octet that congestion avoidance has gathered.
    rest: f64,
    cubic: Cubic,
    round: Round,
}

impl Window {
    pub(super) fn new(kind: Growth, counting: Counting, octets: u64) -> Self {
        Self {
            kind,
            counting,
            octets,
            threshold: u64::MAX,
            rest: 0.0,
            cubic: Cubic::default(),
            round: Round::default(),
        }
    }
    /// True if the window does not limit the sender.
    pub(super) const fn is_off(&self) -> bool {
        matches!(self.kind, Growth::Off)
    }
    pub(super) const fn in_slow_start(&self) -> bool {
        self.octets < self.threshold
    }

    /// The threshold after a loss, when the window (or the flight) was `from`. It is at least two segments.
    pub(super) fn reduced(&mut self, from: u64, mss: u64) -> u64 {
        let reduced = match self.kind {
            Growth::Cubic { .. } => {
                let window = from as f64 / mss as f64;
                // Fast convergence, RFC 9438 §4.7.
                self.cubic.most = match window < self.cubic.most {
                    true => window * (1.0 + BETA) / 2.0,
                    false => window,
                };
                self.cubic.before = window;
                self.cubic.epoch = None;
                (from as f64 * BETA) as u64
            }
            Growth::Reno | Growth::Off => from / 2,
        };
        self.rest = 0.0;
        reduced.max(2 * mss)
    }

    /// The sender begins to send after a pause of this length.
    pub(super) fn pause(&mut self, length: Duration) {
        if let Some(epoch) = &mut self.cubic.epoch {
            *epoch += length;
        }
    }

    /// A new round of HyStart may begin.
    fn hystart(&mut self, step: &Step, now: Instant) {
        let Growth::Cubic { hystart: true, .. } = self.kind else {
            return;
        };
        if step.una >= self.round.end {
            self.round = Round {
                begin: now,
                end: step.next,
                last: now,
                least: None,
                samples: 0,
            };
        }
        let (Some(least), true) = (step.least, self.octets >= LOW_WINDOW * step.mss) else {
            return;
        };
        let round = &mut self.round;
        if now.since(round.last) <= TRAIN_GAP {
            round.last = now;
            // Half of the shortest round trip: the other half of the train is under way.
            if now.since(round.begin) > least / 2 {
                self.threshold = self.octets;
            }
        }
        if let Some(sample) = step.sample {
            round.least = Some(round.least.map_or(sample, |known| known.min(sample)));
            round.samples += 1;
            let margin = (least / 8).clamp(Duration::from_millis(4), Duration::from_millis(16));
            if round.samples >= SAMPLES && round.least.is_some_and(|seen| seen > least + margin) {
                self.threshold = self.octets;
            }
        }
    }

    /// Grows the window for an ACK.
    pub(super) fn grow(&mut self, step: &Step, now: Instant) {
        let (mss, mut octets) = (step.mss, step.octets);
        if self.in_slow_start() {
            self.hystart(step, now);
        }
        if self.in_slow_start() {
            let room = match self.counting {
                Counting::Acks => octets.min(mss),
                Counting::Octets => octets.min(self.threshold.saturating_sub(self.octets)),
            };
            self.octets = self.octets.saturating_add(room);
            octets -= room;
            if octets == 0 || self.counting == Counting::Acks {
                return;
            }
        }
        let added = match self.kind {
            Growth::Reno => self.reno(octets, mss),
            Growth::Cubic { whole_reno, .. } => self.cubic(octets, whole_reno, step, now),
            Growth::Off => 0.0,
        };
        self.rest += added;
        let whole = self.rest as u64;
        self.rest -= whole as f64;
        self.octets = self.octets.saturating_add(whole);
    }

    fn reno(&self, octets: u64, mss: u64) -> f64 {
        let counted = match self.counting {
            Counting::Acks => mss,
            Counting::Octets => octets,
        };
        counted as f64 * mss as f64 / self.octets.max(1) as f64
    }

    fn cubic(&mut self, octets: u64, whole_reno: bool, step: &Step, now: Instant) -> f64 {
        let mss = step.mss as f64;
        let window = self.octets as f64 / mss;
        let acked = octets as f64 / mss;
        let cubic = &mut self.cubic;
        let epoch = *cubic.epoch.get_or_insert_with(|| {
            cubic.start = window;
            cubic.reno = window;
            if window < cubic.most {
                cubic.k = ((cubic.most - window) / C).cbrt();
            } else {
                cubic.k = 0.0;
                cubic.most = window;
            }
            now
        });
        // Figure 1 and equation 1: the window one round trip from now.
        let time = now.since(epoch).as_secs_f64() + step.smoothed.as_secs_f64();
        let goal = C * (time - cubic.k).powi(3) + cubic.most;
        let goal = goal.clamp(window, window * 1.5);
        // Equation 4: the window of Reno with the same reduction.
        let alpha = match !whole_reno || cubic.reno < cubic.before {
            true => 3.0 * (1.0 - BETA) / (1.0 + BETA),
            false => 1.0,
        };
        cubic.reno += alpha * acked / window.max(1.0);
        let by_cubic = (goal - window) / window.max(1.0) * acked;
        let by_reno = (cubic.reno - window).min(acked);
        by_cubic.max(by_reno).max(0.0) * mss
    }
}
