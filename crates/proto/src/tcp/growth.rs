//! Growth of the congestion window: slow start, Reno, CUBIC.
//!
//! **Standards.** RFC 5681 §3.1, RFC 3465 (octets, with what an ACK acknowledges as the limit in slow start, as in
//! Linux), RFC 9438 §4. HyStart as in Linux `tcp_cubic.c`: trains of ACKs, and delay.
//!
//! **Deviations.** CUBIC of RFC 9438 estimates the window of Reno from acknowledged octets; so does this one, and that
//! of Linux grows by whole segments with counts that hold for 28 ms ([`Steps`]). The time
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
    steps: Steps,
}

/// Growth by whole segments: one for so many that are acknowledged. Source: Linux `bictcp_update`,
/// `tcp_cong_avoid_ai`.
#[derive(Clone, Copy, Debug, Default)]
struct Steps {
    /// Segments that are acknowledged for each step.
    count: f64,
    /// When the count was taken, and for which window: it holds for a while.
    taken: Option<(Instant, u64)>,
    /// Segments acknowledged since the last step, and since the last step of Reno's window.
    gathered: f64,
    acked: f64,
}

/// Segments that Reno's window of one segment needs for a step, eighths: 8 (1 + β) / 3 (1 − β) in whole numbers.
/// Source: Linux `beta_scale`.
const RENO_SCALE: u64 = 15;
/// A count holds so long for the same window. Source: Linux `bictcp_update`, HZ/32 with HZ 250.
const HOLDS: Duration = Duration::from_millis(28);

impl Cubic {
    /// Whole segments that a window of `window` segments grows towards `goal` for `acked` segments.
    fn steps(&mut self, window: u64, goal: f64, acked: f64, now: Instant) -> f64 {
        let window = window.max(1);
        self.steps.acked += acked;
        let taken = self.steps.taken;
        if taken.is_none_or(|(at, of)| of != window || now.since(at) > HOLDS) {
            self.steps.taken = Some((now, window));
            self.count(window, goal);
        }
        let steps = &mut self.steps;
        let mut added = 0.0;
        if steps.gathered >= steps.count {
            steps.gathered = 0.0;
            added += 1.0;
        }
        steps.gathered += acked;
        let whole = (steps.gathered / steps.count).floor();
        steps.gathered -= whole * steps.count;
        added + whole
    }

    /// Takes the count of segments for a step anew.
    fn count(&mut self, window: u64, goal: f64) {
        let size = window as f64;
        let mut count = match goal > size {
            true => (size / (goal - size)).floor(),
            false => 100.0 * size,
        };
        if self.before == 0.0 {
            // Nothing was lost yet, or a timer has expired: the way up is not known.
            count = count.min(20.0);
        }
        let each = (window * RENO_SCALE / 8).max(1) as f64;
        while self.steps.acked > each {
            self.steps.acked -= each;
            self.reno += 1.0;
        }
        if self.reno > size {
            count = count.min((size / (self.reno - size)).floor());
        }
        self.steps.count = count.max(2.0);
    }
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

    /// The threshold after a loss, when the window (or the flight) was `from`: whole segments, at least two, as in all
    /// hosts (4.3BSD `tcp_input`, Linux `tcp_reno_ssthresh`).
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
        (reduced / mss * mss).max(2 * mss)
    }

    /// A timer has expired. Source: Linux `bictcp_reset`, which RFC 9438 §4.8 does not ask for.
    pub(super) fn forget(&mut self) {
        if let Growth::Cubic {
            standard: false, ..
        } = self.kind
        {
            self.cubic = Cubic::default();
        }
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
            Growth::Cubic { standard, .. } => self.cubic(octets, standard, step, now),
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

    fn cubic(&mut self, octets: u64, standard: bool, step: &Step, now: Instant) -> f64 {
        let mss = step.mss as f64;
        let window = self.octets as f64 / mss;
        let acked = octets as f64 / mss;
        let cubic = &mut self.cubic;
        let epoch = *cubic.epoch.get_or_insert_with(|| {
            cubic.start = window;
            cubic.reno = window;
            cubic.steps.acked = 0.0;
            if window < cubic.most {
                cubic.k = libm::cbrt((cubic.most - window) / C);
            } else {
                cubic.k = 0.0;
                cubic.most = window;
            }
            now
        });
        // Figure 1 and equation 1: the window one round trip from now.
        let time = now.since(epoch).as_secs_f64() + step.smoothed.as_secs_f64();
        let apart = time - cubic.k;
        let distance = C * (apart * apart * apart);
        if !standard {
            // Whole segments from the window of before: upwards below it, downwards above it.
            let goal = cubic.most.floor() + distance.trunc();
            return cubic.steps(self.octets / step.mss, goal, acked, now) * mss;
        }
        let goal = (cubic.most + distance).clamp(window, window * 1.5);
        // Equation 4: the window of Reno with the same reduction.
        let alpha = match cubic.reno < cubic.before {
            true => 3.0 * (1.0 - BETA) / (1.0 + BETA),
            false => 1.0,
        };
        cubic.reno += alpha * acked / window.max(1.0);
        let by_cubic = (goal - window) / window.max(1.0) * acked;
        let by_reno = (cubic.reno - window).min(acked);
        by_cubic.max(by_reno).max(0.0) * mss
    }
}
