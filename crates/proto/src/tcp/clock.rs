//! The clock of a host as its TCP sees it: ticks with a phase, time stamps, and the estimator of the retransmission
//! timer.
//!
//! **Standards.** RFC 6298; RFC 7323 §4.1 (one sample for each round trip is not required: §4.2 is left to
//! [`TimerParams::one_measurement`]).
//! **Deviations.** [`Floor::Largest`] is the estimator of Linux, with the largest deviation of a round trip, and its
//! timers expire at the slots of a wheel. BSD's ticks round a measurement up to the next tick, as its counter did.

use super::params::{Floor, TimerParams};
use crate::{Duration, Instant};

/// The next time of `phase` + n × `period` that is later than `now`.
pub(super) fn next_tick(now: Instant, period: Duration, phase: Duration) -> Instant {
    let period_ns = nanos(period).max(1);
    let phase = nanos(phase) % period_ns;
    let since = (now.as_nanos() % period_ns + period_ns - phase) % period_ns;
    now + Duration::from_nanos(period_ns - since)
}

/// When a timer of Linux expires that starts now: `jiffy` is the tick, 0 an exact timer. The wheel of timers has levels
/// of 64 slots; a slot of each level is eight of the level below, and a timer takes the slot behind its end.
pub(super) fn wheel(now: Instant, after: Duration, jiffy: Duration, phase: Duration) -> Instant {
    let tick = nanos(jiffy);
    if tick == 0 {
        return now + after;
    }
    let ahead = (tick - nanos(phase) % tick) % tick;
    let count = nanos(after).div_ceil(tick);
    let end = (now.as_nanos() + ahead) / tick + count;
    let level = (0..8).find(|level| count < 63 << (3 * level));
    let shift = 3 * level.unwrap_or(8);
    let slot = ((end >> shift) + 1) << shift;
    now + Duration::from_nanos((slot * tick - ahead).saturating_sub(now.as_nanos()))
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The clock of time stamps.
#[derive(Clone, Copy, Debug)]
pub(super) struct StampClock {
    unit: u64,
    offset: u32,
}

impl StampClock {
    pub(super) fn new(unit: Duration, offset: u32) -> Self {
        let unit = nanos(unit).max(1);
        Self { unit, offset }
    }
    pub(super) fn value(self, now: Instant) -> u32 {
        ((now.as_nanos() / self.unit) as u32).wrapping_add(self.offset)
    }
    /// The time since the value was that of the clock; `None` if it lies ahead.
    pub(super) fn since(self, value: u32, now: Instant) -> Option<Duration> {
        let units = self.value(now).wrapping_sub(value);
        (units < 1 << 31).then(|| Duration::from_nanos(u64::from(units).saturating_mul(self.unit)))
    }
}

/// Progress of a sender when it measures a round trip.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    /// The oldest number that is not acknowledged.
    pub(super) una: u64,
    /// The number that it sends next.
    pub(super) next: u64,
}

/// The estimator of the retransmission timer.
#[derive(Clone, Debug)]
pub(super) struct Estimator {
    params: TimerParams,
    /// The phase of the host's slow tick.
    phase: Duration,
    smoothed: Option<Duration>,
    /// Four times the mean deviation.
    variance: Duration,
    /// The largest deviation of this round trip, and the one in force, of [`Floor::Largest`].
    largest: Duration,
    in_force: Duration,
    /// Number whose acknowledgement ends this round trip.
    turn: u64,
    least: Option<Duration>,
    /// Doublings of the timer.
    back_off: u32,
}

impl Estimator {
    pub(super) const fn new(params: TimerParams, phase: Duration) -> Self {
        Self {
            params,
            phase,
            smoothed: None,
            variance: Duration::ZERO,
            largest: Duration::ZERO,
            in_force: Duration::ZERO,
            turn: 0,
            least: None,
            back_off: 0,
        }
    }
    pub(super) const fn smoothed(&self) -> Option<Duration> {
        self.smoothed
    }
    /// The shortest round trip so far.
    pub(super) const fn least(&self) -> Option<Duration> {
        self.least
    }

    /// The length that the host's clock gives to a round trip.
    fn in_units(&self, from: Instant, to: Instant) -> Duration {
        let unit = nanos(self.params.granularity);
        let Some(tick) = self.params.slow_tick else {
            let exact = nanos(to.since(from));
            return Duration::from_nanos((exact + unit / 2) / unit * unit);
        };
        // The counter begins at one, and each tick adds one.
        let first = next_tick(from, tick, self.phase);
        let ticks = match to < first {
            true => 1,
            false => nanos(to.since(first)) / nanos(tick) + 2,
        };
        Duration::from_nanos(ticks * nanos(tick))
    }

    /// Takes the round trip of a segment that was sent once.
    pub(super) fn measure(&mut self, from: Instant, to: Instant, progress: Progress) {
        let exact = to.since(from);
        self.least = Some(self.least.map_or(exact, |least| least.min(exact)));
        let sample = self.in_units(from, to);
        let by_turns = matches!(self.params.floor, Floor::Largest(_));
        // Equations 2.2 and 2.3, with four times the variation.
        match self.smoothed {
            None => {
                self.smoothed = Some(sample);
                self.variance = sample * 2;
            }
            Some(smoothed) => {
                let deviation = sample.abs_diff(smoothed);
                let target = self.variance * 3 / 4 + deviation;
                let grows = target.saturating_sub(self.variance);
                self.variance = match by_turns && sample < smoothed && !grows.is_zero() {
                    true => self.variance + grows / 8,
                    false => target,
                };
                self.smoothed = Some(smoothed * 7 / 8 + sample / 8);
            }
        }
        if let Floor::Largest(least) = self.params.floor {
            self.end_turn(least, progress);
        }
        self.back_off = 0;
    }

    /// Takes the deviation into the largest one of the round trip, which lowers the one in force at its end.
    fn end_turn(&mut self, least: Duration, progress: Progress) {
        let begins = self.turn == 0;
        self.largest = self.largest.max(self.variance).max(least);
        self.in_force = self.in_force.max(self.largest);
        if begins || progress.una > self.turn {
            self.in_force -= (self.in_force - self.largest) / 4;
            self.turn = progress.next;
            if !begins {
                self.largest = least;
            }
        }
    }

    /// The timer without back-off.
    pub(super) fn base(&self) -> Duration {
        let Some(smoothed) = self.smoothed else {
            return self.params.initial;
        };
        let unit = self.params.slow_tick.unwrap_or(self.params.granularity);
        let spread = self.variance.max(unit);
        match self.params.floor {
            Floor::Timer(least) => (smoothed + spread).max(least),
            Floor::Variance(least) => smoothed + spread.max(least),
            Floor::Largest(_) => smoothed + self.in_force,
        }
    }
    /// The timer in force.
    pub(super) fn timer(&self) -> Duration {
        self.base()
            .saturating_mul(1 << self.back_off.min(20))
            .min(self.params.most)
    }
    pub(super) const fn double(&mut self) {
        self.back_off = self.back_off.saturating_add(1);
    }
    pub(super) const fn reset_back_off(&mut self) {
        self.back_off = 0;
    }
    /// When a timer of this length expires that starts now.
    pub(super) fn expiry(&self, now: Instant, after: Duration) -> Instant {
        let Some(tick) = self.params.slow_tick else {
            return wheel(now, after, self.params.jiffy, self.phase);
        };
        let ticks = nanos(after).div_ceil(nanos(tick)).max(1);
        next_tick(now, tick, self.phase) + tick.saturating_mul((ticks - 1) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::profiles::Profile;

    const fn numbers(una: u64, next: u64) -> Progress {
        Progress { una, next }
    }

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    #[test]
    fn ticks_are_later_than_now() {
        assert_eq!(next_tick(at(0), MS(200), MS(0)), at(200));
        assert_eq!(next_tick(at(199), MS(200), MS(0)), at(200));
        assert_eq!(next_tick(at(200), MS(200), MS(50)), at(250));
        assert_eq!(next_tick(at(250), MS(200), MS(50)), at(450));
    }

    /// The example that follows from equations 2.2 and 2.3 of RFC 6298 with R = 100 ms, R' = 140 ms.
    #[test]
    fn the_estimator_is_that_of_rfc_6298() {
        let mut timers = Profile::NewReno.params().timers;
        timers.floor = Floor::Timer(MS(1));
        timers.granularity = Duration::from_micros(1);
        let mut estimator = Estimator::new(timers, Duration::ZERO);
        assert_eq!(estimator.timer(), Duration::from_secs(1));
        estimator.measure(at(0), at(100), numbers(1, 2));
        assert_eq!(estimator.timer(), MS(300));
        estimator.measure(at(0), at(140), numbers(1, 2));
        // RTTVAR = 3/4 × 50 + 1/4 × 40 = 47.5; SRTT = 7/8 × 100 + 1/8 × 140 = 105.
        assert_eq!(estimator.timer(), MS(105 + 190));
        estimator.double();
        assert_eq!(estimator.timer(), MS(590));
    }

    /// A kernel with HZ 250 repeats a SYN after 1.024 and 3.072 s: the levels of its wheel are that coarse.
    #[test]
    fn a_wheel_of_timers_is_never_early_and_coarse_for_long_ones() {
        let end = |now, after, phase| wheel(at(now), MS(after), MS(4), MS(phase));
        assert_eq!(end(0, 200, 0), at(204));
        assert_eq!(end(3, 200, 0), at(204));
        assert_eq!(end(4, 200, 0), at(208));
        assert_eq!(end(0, 1000, 0), at(1024));
        assert_eq!(end(0, 3000, 0), at(3072));
        assert_eq!(end(0, 200, 1), at(201));
        assert_eq!(wheel(at(5), MS(200), MS(0), MS(1)), at(205));
    }

    /// A long round trip counts until the round trip after it has ended, and then a quarter less of the difference.
    #[test]
    fn the_largest_deviation_of_a_round_trip_counts() {
        let mut estimator = Estimator::new(Profile::Linux.params().timers, Duration::ZERO);
        let spread = |estimator: &Estimator| estimator.timer() - estimator.smoothed().unwrap();
        estimator.measure(at(0), at(100), numbers(1, 10));
        assert_eq!(spread(&estimator), MS(200));
        estimator.measure(at(0), at(500), numbers(5, 12));
        assert_eq!(spread(&estimator), MS(550));
        for _ in 0..20 {
            estimator.measure(at(0), at(150), numbers(6, 14));
            assert_eq!(spread(&estimator), MS(550), "within the round trip");
        }
        estimator.measure(at(0), at(150), numbers(11, 20));
        assert_eq!(spread(&estimator), MS(550), "its own largest one");
        estimator.measure(at(0), at(150), numbers(21, 30));
        let left = spread(&estimator);
        assert!(left >= MS(462) && left <= MS(464), "{left:?}");
    }

    /// Linux adds 200 ms at least to the smoothed round trip; a BSD with ticks of 500 ms has at least a second, which
    /// lasts between one and two ticks' less than that.
    #[test]
    fn floors_and_ticks() {
        let mut linux = Estimator::new(Profile::Linux.params().timers, Duration::ZERO);
        linux.measure(at(0), at(10), numbers(1, 2));
        linux.measure(at(0), at(10), numbers(1, 2));
        assert_eq!(linux.timer(), MS(210));
        let mut bsd = Estimator::new(Profile::Bsd43.params().timers, MS(100));
        for _ in 0..50 {
            bsd.measure(at(300), at(310), numbers(1, 2));
        }
        assert!(bsd.timer() >= Duration::from_secs(1), "{:?}", bsd.timer());
        let expiry = bsd.expiry(at(300), Duration::from_secs(1));
        assert_eq!(expiry, at(1100), "ticks at 600 and 1100");
    }
}
