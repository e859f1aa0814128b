//! How many packets may be unacknowledged: quick start, then CARD or the measured queue.
//!
//! **CARD** (R. Jain, *A Delay-Based Approach for Congestion Avoidance in Interconnected Heterogeneous Computer
//! Networks*, 1989; from memory and from the form in the textbook of Peterson and Davie): if window and round trip
//! both grew, or both fell, the queue is beyond its optimum, and the window loses an eighth; otherwise it grows by a
//! packet. A window that has just grown sends two packets at once, and all packets behind them are late by one, even
//! if the line is not full. The next round trip begins with answers that are a packet apart, and is clean. So packets
//! of the second round trip after a change are measured, and the decision follows when they are answered, in the third.
//! With packets of the first round trip, the window sinks (measured: to 4 packets where the line needs 19).
//!
//! **Adaptive profile.** The part of the window that waits in queues is W × (1 - least round trip / mean round trip).
//! It is kept between [`FEW`] and [`MANY`] packets, with a change for each round trip. Lost packets make the window
//! smaller only while packets wait in queues: loss without a queue is damage, and a smaller window does not help.

use super::{Params, Profile};
use crate::{Duration, Instant};

/// Eighths of a packet in a packet: the window has this resolution.
const PARTS: u32 = 8;
/// Packets in queues below which the adaptive window grows.
const FEW: u64 = 2;
/// Packets in queues above which the adaptive window shrinks.
const MANY: u64 = 4;

/// Phase of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Quick start: it doubles for each round trip. The number is that of the first packet of the next round trip.
    Quick(u64),
    /// Packets before the number are not measured, and so are those of as many round trips after it.
    Settle(u64, u8),
    /// CARD and adaptive: packets from the first number on are measured until the second one is acknowledged.
    Measure(u64, u64),
}

/// The window of a sender.
#[derive(Clone, Debug)]
pub(super) struct Window {
    profile: Profile,
    max: u32,
    tick: Duration,
    /// In eighths of a packet.
    size: u32,
    /// The size before the last change, and the round trip that was measured with it.
    old: Option<(u32, Option<Duration>)>,
    phase: Phase,
    sum: Duration,
    samples: u32,
    /// Shortest round trip so far.
    least: Option<Duration>,
    /// Packets were lost since the last change.
    lost: bool,
    /// The window kept packets back since the last change.
    pub(super) limited: bool,
    /// Before this time a timer makes the window no smaller.
    timer_holds: Instant,
}

/// Round trips after a change that are not measured.
const fn settling(profile: Profile) -> u8 {
    match profile {
        Profile::Report => 1,
        Profile::Adaptive => 0,
    }
}

impl Window {
    pub(super) fn new(params: &Params, next: u64) -> Self {
        let max = params.max_window;
        // A contract with a rate tells half of what is needed before anything is measured.
        let optimum = params.packets_within(params.initial_round_trip);
        let start = match optimum {
            Some(packets) => packets.div_ceil(2).max(params.initial_window.into()),
            None => params.initial_window.into(),
        };
        let start = u32::try_from(start).unwrap_or(max).clamp(1, max);
        Self {
            profile: params.profile,
            max,
            tick: params.tick,
            size: start * PARTS,
            old: None,
            phase: match optimum {
                Some(_) => Phase::Settle(next, settling(params.profile)),
                None => Phase::Quick(next),
            },
            sum: Duration::ZERO,
            samples: 0,
            least: None,
            lost: false,
            limited: false,
            timer_holds: Instant::ZERO,
        }
    }
    /// The window in whole packets, at least 1.
    pub(super) const fn packets(&self) -> u32 {
        self.size / PARTS
    }
    /// The window in eighths of a packet.
    pub(super) const fn eighths(&self) -> u32 {
        self.size
    }

    /// A packet was acknowledged. `sample` is its round trip, if it was sent once; `next` is the number of the next new
    /// packet.
    pub(super) fn acknowledged(&mut self, number: u64, sample: Option<Duration>, next: u64) {
        if let Some(sample) = sample {
            let least = self.least.map_or(sample, |least| least.min(sample));
            self.least = Some(least);
            if matches!(self.phase, Phase::Quick(_)) && sample > least + least / 2 {
                self.end_quick_start(next);
            }
            if matches!(self.phase, Phase::Measure(from, _) if number >= from) {
                self.sum += sample;
                self.samples += 1;
            }
        }
        match self.phase {
            Phase::Quick(mark) if number >= mark => {
                self.old = Some((self.size, None));
                if self.limited {
                    self.set(self.size.saturating_mul(2));
                }
                self.limited = false;
                self.phase = Phase::Quick(next);
            }
            Phase::Settle(mark, more) if number >= mark => {
                self.phase = match more.checked_sub(1) {
                    Some(more) => Phase::Settle(next, more),
                    None => Phase::Measure(mark, next),
                };
            }
            Phase::Measure(_, end) if number >= end => {
                match self.profile {
                    Profile::Report => self.card(),
                    Profile::Adaptive => self.by_queue(),
                }
                (self.sum, self.samples) = (Duration::ZERO, 0);
                (self.lost, self.limited) = (false, false);
                self.phase = match self.profile {
                    Profile::Report => Phase::Settle(next, settling(self.profile)),
                    Profile::Adaptive => Phase::Measure(next, next),
                };
            }
            _ => {}
        }
    }

    /// A packet was lost: the peer asked for it again.
    pub(super) fn asked_again(&mut self, next: u64) {
        self.lost = true;
        if matches!(self.phase, Phase::Quick(_)) {
            self.end_quick_start(next);
        }
    }

    /// A retransmission timer has expired: an eighth less, once for each round trip.
    pub(super) fn expired(&mut self, now: Instant, round_trip: Duration, next: u64) {
        self.asked_again(next);
        if now >= self.timer_holds {
            self.set(self.size - self.size / 8);
            self.timer_holds = now + round_trip;
        }
    }

    fn end_quick_start(&mut self, next: u64) {
        self.phase = Phase::Settle(next, settling(self.profile));
    }

    fn mean(&self) -> Option<Duration> {
        (self.samples > 0).then(|| self.sum / self.samples)
    }

    /// One decision of CARD.
    fn card(&mut self) {
        // Without a sample nothing is known: all packets of the round trip were sent twice.
        let Some(delay) = self.mean() else {
            return;
        };
        let (before, now) = (self.old, self.size);
        let smaller = match before {
            Some((old, Some(old_delay))) => {
                let (grown, fallen) =
                    (delay > old_delay + self.tick, old_delay > delay + self.tick);
                now > old && grown || now < old && fallen
            }
            _ => false,
        };
        match smaller {
            true => self.set(now - (now / 8).max(1)),
            false => self.set(now + PARTS),
        }
        self.old = Some((now, Some(delay)));
    }

    /// One decision by the packets that wait in queues.
    fn by_queue(&mut self) {
        let (Some(mean), Some(least)) = (self.mean(), self.least) else {
            return;
        };
        let waiting = mean.saturating_sub(least).as_nanos() * u128::from(self.size);
        let waiting = waiting / u128::from(PARTS) / mean.as_nanos().max(1);
        let waiting = u64::try_from(waiting).unwrap_or(u64::MAX);
        if waiting > MANY || self.lost && waiting >= FEW {
            self.set(self.size - (self.size / 8).max(1));
        } else if waiting < FEW && self.limited {
            self.set(self.size + PARTS);
        }
    }

    fn set(&mut self, size: u32) {
        self.size = size.clamp(PARTS, self.max * PARTS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(micros: u64) -> Duration {
        Duration::from_micros(micros)
    }

    /// The decisions: (W, W of the time before, D, D of the time before) to W.
    #[test]
    fn decisions_of_card() {
        for (now, old, delay, old_delay, expected) in [
            (11, 10, 12, 10, 77), // 9.625
            (11, 10, 10, 12, 96),
            (10, 11, 12, 10, 88),
            (10, 11, 9, 10, 70), // 8.75
            (10, 10, 9, 10, 88),
            (1, 2, 5, 6, 8), // the floor
        ] {
            let mut window = Window::new(&Params::DEFAULT, 0);
            window.tick = Duration::ZERO;
            window.size = now * PARTS;
            window.old = Some((old * PARTS, Some(us(old_delay))));
            (window.sum, window.samples) = (us(2 * delay), 2);
            window.card();
            assert_eq!(
                window.eighths(),
                expected,
                "{now} {old} {delay} {old_delay}"
            );
            assert_eq!(window.old, Some((now * PARTS, Some(us(delay)))));
        }
        // Without a measurement there is no decision, and the next one goes by the last measurement.
        let mut window = Window::new(&Params::DEFAULT, 0);
        window.old = Some((72, Some(us(10))));
        window.card();
        assert_eq!(window.packets(), 10);
        assert_eq!(window.old, Some((72, Some(us(10)))));
        // A clock that ticks tells no difference of a tick.
        let mut window = Window::new(&Params::DEFAULT, 0);
        window.old = Some((72, Some(us(10))));
        (window.sum, window.samples) = (us(11), 1);
        window.card();
        assert_eq!(window.packets(), 11);
    }

    #[test]
    fn a_change_of_card_takes_three_round_trips() {
        let params = Params {
            cell_rate: 1,
            ..Params::DEFAULT
        };
        let mut window = Window::new(&params, 0);
        let mut sizes = Vec::new();
        // Windows of ten packets; each is acknowledged as a whole, and the window after it is under way.
        for round in 0..8 {
            for number in round * 10..(round + 1) * 10 {
                window.acknowledged(number, Some(us(100)), number + 10);
            }
            sizes.push(window.packets());
        }
        assert_eq!(sizes, [10, 10, 11, 11, 11, 12, 12, 12]);
    }

    #[test]
    fn quick_start_doubles_until_the_round_trip_grows() {
        let mut window = Window::new(&Params::DEFAULT, 0);
        assert_eq!(window.packets(), 10);
        window.limited = true;
        window.acknowledged(0, Some(us(100)), 10);
        assert_eq!(window.packets(), 20);
        window.acknowledged(9, Some(us(100)), 30);
        assert_eq!(window.packets(), 20, "once for each round trip");
        window.limited = true;
        window.acknowledged(10, Some(us(150)), 40);
        assert_eq!(window.packets(), 40);
        window.limited = true;
        window.acknowledged(40, Some(us(151)), 80);
        assert_eq!(window.packets(), 40, "half as long again as the least");
        assert_eq!(window.phase, Phase::Settle(80, 1));
        assert_eq!(window.old, Some((160, None)));
    }

    #[test]
    fn a_window_that_keeps_nothing_back_does_not_double() {
        let mut window = Window::new(&Params::DEFAULT, 0);
        window.acknowledged(0, Some(us(100)), 10);
        assert_eq!(window.packets(), 10);
    }

    #[test]
    fn a_rate_gives_half_of_what_it_needs_and_the_bounds_hold() {
        let mut params = Params {
            // 192 cells a packet; in 100 ms 184 of them.
            cell_rate: 353_207,
            ..Params::DEFAULT
        };
        assert_eq!(params.packets_within(params.initial_round_trip), Some(184));
        assert_eq!(Window::new(&params, 0).packets(), 92);
        params.max_window = 50;
        let mut window = Window::new(&params, 0);
        assert_eq!(window.packets(), 50);
        window.set(u32::MAX);
        assert_eq!(window.packets(), 50);
        window.set(0);
        assert_eq!(window.packets(), 1);
    }

    #[test]
    fn timers_shrink_the_window_once_for_each_round_trip() {
        let mut window = Window::new(&Params::DEFAULT, 0);
        let at = Instant::from_millis;
        for (now, eighths) in [(1000, 70), (1001, 70), (1100, 62), (1150, 62)] {
            window.expired(at(now), Duration::from_millis(100), 5);
            assert_eq!(window.eighths(), eighths);
        }
    }

    #[test]
    fn the_adaptive_window_keeps_a_few_packets_in_queues() {
        let params = Params {
            profile: Profile::Adaptive,
            cell_rate: 1,
            ..Params::DEFAULT
        };
        for (mean, lost, limited, expected) in [
            (100, false, true, 88), // no queue: a packet more
            (100, true, true, 88),  // loss without a queue is damage
            (100, false, false, 80),
            (145, false, true, 80), // 3.1 packets wait
            (145, true, true, 70),
            (200, false, true, 70), // 5 packets wait
        ] {
            let mut window = Window::new(&params, 0);
            window.least = Some(us(100));
            (window.sum, window.samples) = (us(mean), 1);
            (window.lost, window.limited) = (lost, limited);
            window.by_queue();
            assert_eq!(window.eighths(), expected, "{mean} {lost} {limited}");
        }
    }
}
