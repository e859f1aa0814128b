//! The times at which a source of datagrams sends: equal intervals, a Poisson process, a coarse timer, periods with
//! silence between them, or a list.

use crate::random;
use crate::rate::PacketRate;
use aerostat_proto::{Duration, Instant, Refused};
use rand_pcg::Pcg32;
use std::sync::Arc;

/// One datagram of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// Time from the start of the source.
    pub at: Duration,
    /// Octets of payload.
    pub size: usize,
}

/// The distribution of datagrams over time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Pattern {
    /// At equal intervals.
    #[default]
    Constant,
    /// At exponentially distributed intervals.
    Poisson,
    /// Like a program on a system with a coarse timer: all datagrams that have become due are sent at the next tick,
    /// one right after the other. The thesis' mgen 3.0 on Linux 2.2 had a tick of 10 ms and sent datagrams 76 µs apart.
    Ticked {
        /// Time between ticks.
        tick: Duration,
        /// Time between datagrams within a tick.
        spacing: Duration,
    },
    /// Periods with datagrams at equal intervals, and silence between them. Both have exponentially distributed
    /// lengths. The rate is that within a period. The intervals continue from one period to the next, so that the mean
    /// rate is that rate times `on / (on + off)`, whatever the lengths.
    OnOff {
        /// Mean length of a period with datagrams, not zero.
        on: Duration,
        /// Mean length of silence.
        off: Duration,
    },
    /// At the times of a list, which never go back, with sizes of their own; the rate does not count.
    Trace(Arc<[Departure]>),
}

impl Pattern {
    /// Octets of payload of the smallest datagram, if datagrams have sizes of their own.
    pub(super) fn least(&self) -> Option<usize> {
        self.sizes()?.min()
    }

    /// Octets of payload of the largest datagram, if datagrams have sizes of their own.
    pub(super) fn most(&self) -> Option<usize> {
        self.sizes()?.max()
    }

    fn sizes(&self) -> Option<impl Iterator<Item = usize>> {
        match self {
            Self::Trace(list) => Some(list.iter().map(|one| one.size)),
            _ => None,
        }
    }
}

/// The times at which a source sends.
pub(super) struct Pace {
    rate: PacketRate,
    pattern: Pattern,
    rng: Pcg32,
    start: Instant,
    /// When the next datagram is due; `None` after the last one of a trace.
    next: Option<Instant>,
    /// Fraction of a nanosecond by which the next datagram of a Poisson process is due after `next`.
    rest: f64,
    /// Datagrams timed so far.
    index: u64,
    /// Tick of the last datagram, and the number of the datagram within that tick.
    tick: u64,
    place: u32,
    /// Of a source with periods: the end of the present one, in the sum of all periods so far, and the sum of all
    /// silence before it, in nanoseconds.
    period: f64,
    silence: f64,
}

impl Pace {
    pub(super) fn new(rate: PacketRate, pattern: Pattern, rng: Pcg32) -> Result<Self, Refused> {
        if let Pattern::OnOff { on, .. } = pattern
            && on.is_zero()
        {
            return Err(Refused("a period has a length"));
        }
        if let Pattern::Ticked { tick, spacing } = pattern {
            let per_tick = tick.as_secs_f64() * 1e9 / rate.mean_gap() + 1.0;
            if tick.is_zero() || spacing.as_secs_f64() * per_tick > tick.as_secs_f64() {
                return Err(Refused("the datagrams of a tick must fit before the next"));
            }
        }
        let start = Instant::ZERO;
        Ok(Self {
            rate,
            pattern,
            rng,
            start,
            next: None,
            rest: 0.0,
            index: 0,
            tick: u64::MAX,
            place: 0,
            period: 0.0,
            silence: 0.0,
        })
    }

    /// Begins at `now` for a source whose start time is `start`: the first datagram is the first one that is not due
    /// before `now`.
    pub(super) fn begin(&mut self, start: Instant, now: Instant) {
        (self.start, self.next) = (start, Some(now));
        let elapsed = now - start;
        self.index = match &self.pattern {
            Pattern::Trace(list) => list.partition_point(|one| one.at < elapsed) as u64,
            Pattern::OnOff { on, off } => {
                let (on, off, elapsed) = (*on, *off, elapsed.as_nanos() as f64);
                self.new_period(on, Duration::ZERO);
                while self.period + self.silence < elapsed {
                    self.new_period(on, off);
                }
                // At most the length of a run.
                let within = (elapsed - self.silence).max(0.0) as u64;
                self.rate.first_at(Duration::from_nanos(within))
            }
            _ => self.rate.first_at(elapsed),
        };
        self.plan();
    }

    /// When the next datagram is due.
    pub(super) fn next(&self) -> Option<Instant> {
        self.next
    }

    /// Octets of payload of the next datagram, if datagrams have sizes of their own.
    pub(super) fn size(&self) -> Option<usize> {
        match &self.pattern {
            Pattern::Trace(list) => Some(list.get(usize::try_from(self.index).ok()?)?.size),
            _ => None,
        }
    }

    /// Adds a period of silence and one with datagrams.
    fn new_period(&mut self, on: Duration, off: Duration) {
        let mut draw = |mean: Duration| random::exponential(&mut self.rng) * mean.as_nanos() as f64;
        if !off.is_zero() {
            self.silence += draw(off);
        }
        self.period += draw(on);
    }

    /// The time of `index` intervals after the start, in nanoseconds; exact at every rate.
    fn even(&self) -> u64 {
        u64::try_from(self.rate.after(self.index).as_nanos()).unwrap_or(u64::MAX)
    }

    pub(super) fn advance(&mut self) {
        self.index += 1;
        self.plan();
    }

    fn plan(&mut self) {
        match self.pattern {
            Pattern::Constant => self.next = Some(self.start + Duration::from_nanos(self.even())),
            Pattern::Poisson => self.draw(),
            Pattern::Ticked { tick, spacing } => {
                let tick_ns = u64::try_from(tick.as_nanos()).unwrap_or(u64::MAX);
                let number = self.even().div_ceil(tick_ns);
                self.place = if number == self.tick {
                    self.place + 1
                } else {
                    0
                };
                self.tick = number;
                let at = self.start + Duration::from_nanos(number.saturating_mul(tick_ns));
                self.next = Some(at + spacing * self.place);
            }
            Pattern::OnOff { on, off } => {
                let within = self.even();
                while within as f64 >= self.period {
                    self.new_period(on, off);
                }
                let at = within.saturating_add(self.silence as u64);
                self.next = Some(self.start + Duration::from_nanos(at));
            }
            Pattern::Trace(ref list) => {
                let one = usize::try_from(self.index).ok().and_then(|at| list.get(at));
                self.next = one.map(|one| self.start + one.at);
            }
        }
    }

    fn draw(&mut self) {
        let ns = self.rest + random::exponential(&mut self.rng) * self.rate.mean_gap();
        self.rest = ns.fract();
        self.next = self.next.map(|next| next + Duration::from_nanos(ns as u64));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(packets: u32) -> PacketRate {
        PacketRate::per_second(packets.into()).expect("sane")
    }

    fn times(packets: u32, pattern: Pattern, count: usize) -> Vec<u64> {
        let rate = rate(packets);
        let mut pace = Pace::new(rate, pattern, random::stream(1, "a", "b")).expect("sane");
        pace.begin(Instant::ZERO, Instant::ZERO);
        (0..count)
            .map(|_| {
                let at = pace.next.expect("endless").as_nanos();
                pace.advance();
                at
            })
            .collect()
    }

    #[test]
    fn even_pace_does_not_drift() {
        let times = times(450, Pattern::Constant, 4501);
        assert_eq!(times[4500], 10_000_000_000);
        assert_eq!(times[1], 2_222_222);
    }

    #[test]
    fn ticked_pace_is_that_of_the_thesis() {
        // Chapter 5.4.2. At 900 pps every ninth packet comes after more than nine milliseconds, the others 76 µs after
        // the packet before. At 450 pps 2/9 of all packets are delayed longer.
        let pattern = Pattern::Ticked {
            tick: Duration::from_millis(10),
            spacing: Duration::from_micros(76),
        };
        for (rate, long_share) in [(900, 1.0 / 9.0), (450, 2.0 / 9.0)] {
            let times = times(rate, pattern.clone(), 9001);
            let gaps: Vec<u64> = times.windows(2).map(|w| w[1] - w[0]).collect();
            let long = gaps.iter().filter(|g| **g > 9_000_000).count();
            assert!(
                (long as f64 / gaps.len() as f64 - long_share).abs() < 0.002,
                "{long}"
            );
            assert!(gaps.iter().all(|g| *g == 76_000 || *g > 9_000_000));
        }
        assert!(
            Pace::new(
                rate(200_000),
                Pattern::Ticked {
                    tick: Duration::from_millis(10),
                    spacing: Duration::from_micros(76)
                },
                random::stream(1, "a", "b")
            )
            .is_err()
        );
    }

    #[test]
    fn poisson_pace_has_the_rate() {
        // With gaps of two nanoseconds, no gap may lose its fraction of a nanosecond.
        for rate in [1000, 700_000, 500_000_000] {
            let times = times(rate, Pattern::Poisson, 20_001);
            let mean = times[20_000] as f64 / 1e9 / 20_000.0 * f64::from(rate);
            // Four standard deviations of the mean of 20000 exponential gaps.
            assert!(
                (mean - 1.0).abs() < 4.0 / 20_000_f64.sqrt(),
                "{rate}: {mean}"
            );
        }
    }

    #[test]
    fn periods_and_silence_keep_the_mean_rate() {
        let (on, off) = (Duration::from_millis(3), Duration::from_millis(9));
        let times = times(40_000, Pattern::OnOff { on, off }, 200_001);
        // 10 000 a second in the mean: a quarter of the time is on.
        let mean = times[200_000] as f64 / 200_000.0 / 100_000.0;
        // 1667 periods of silence in the mean: their sum is 15 s, with a standard deviation of 9 ms √(2 · 1667).
        assert!(
            (mean - 1.0).abs() < 4.0 * 0.009 * 3334_f64.sqrt() / 20.0,
            "{mean}"
        );
        let gaps: Vec<u64> = times.windows(2).map(|w| w[1] - w[0]).collect();
        assert!(gaps.iter().all(|gap| *gap >= 24_999));
        let silent = gaps.iter().filter(|gap| **gap > 26_000).count() as f64;
        // A gap for nearly each of 1667 periods, with four standard deviations.
        assert!((1500.0..1834.0).contains(&silent), "{silent}");
    }

    #[test]
    fn periods_go_on_after_a_restart_as_if_nothing_had_happened() {
        let pattern = Pattern::OnOff {
            on: Duration::from_millis(3),
            off: Duration::from_millis(9),
        };
        let whole = times(40_000, pattern.clone(), 5000);
        let from = whole[3000];
        let rng = random::stream(1, "a", "b");
        let mut pace = Pace::new(rate(40_000), pattern, rng).expect("sane");
        pace.begin(Instant::ZERO, Instant::from_nanos(from));
        for at in &whole[3000..] {
            assert_eq!(pace.next().map(Instant::as_nanos), Some(*at));
            pace.advance();
        }
    }

    #[test]
    fn a_trace_has_its_times_and_sizes_and_an_end() {
        let list = [(0, 100), (5, 18), (5, 1472)];
        let list = list.map(|(ms, size)| Departure {
            at: Duration::from_millis(ms),
            size,
        });
        let rng = random::stream(1, "a", "b");
        let trace = Pattern::Trace(list.into());
        let mut pace = Pace::new(rate(1), trace, rng).expect("sane");
        pace.begin(Instant::from_millis(7), Instant::from_millis(8));
        for (at, size) in [(12, 18), (12, 1472)] {
            assert_eq!(pace.next(), Some(Instant::from_millis(at)));
            assert_eq!(pace.size(), Some(size));
            pace.advance();
        }
        assert_eq!(
            (pace.next(), pace.size(), pace.pattern.most()),
            (None, None, Some(1472))
        );
    }
}
