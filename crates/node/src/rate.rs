//! Packet rates. Each packet's time is computed directly from the rate, so that rounding errors do not add up.

use aerostat_proto::Duration;

/// Nanoseconds of a second.
const SECOND: u128 = 1_000_000_000;

/// Packets per time, as a ratio of integers. Packet `k` of a source is due [`after(k)`](Self::after) its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketRate {
    /// Packets, not zero.
    packets: u128,
    /// The time in nanoseconds for that many packets, not zero.
    nanos: u128,
}

impl PacketRate {
    /// Highest rate of the lab file, packets per second: one packet per nanosecond, the resolution of times.
    pub const MOST: u32 = 1_000_000_000;
    /// Lowest rate of the lab file, packets per second: one packet in eleven days.
    pub const LEAST: f64 = 1e-6;

    /// The rate of `packets` packets in `time`; `None` if either is zero.
    #[must_use]
    pub const fn new(packets: u64, time: Duration) -> Option<Self> {
        if packets == 0 || time.is_zero() {
            return None;
        }
        Some(Self {
            packets: packets as u128,
            nanos: time.as_nanos(),
        })
    }

    /// `packets` packets in `nanos` nanoseconds; `None` if either is zero, or the rate is outside
    /// [`LEAST`](Self::LEAST)..=[`MOST`](Self::MOST) per second.
    #[must_use]
    pub fn of_ratio(packets: u128, nanos: u128) -> Option<Self> {
        let sane = packets > 0 && packets <= nanos && nanos / packets <= SECOND * 1_000_000;
        sane.then_some(Self { packets, nanos })
    }

    /// This rate times `numerator / denominator`; `None` as for [`of_ratio`](Self::of_ratio), or if the fraction
    /// becomes too long.
    #[must_use]
    pub fn scaled(self, numerator: u64, denominator: u64) -> Option<Self> {
        let packets = self.packets.checked_mul(numerator.into())?;
        let nanos = self.nanos.checked_mul(denominator.into())?;
        let common = common_divisor(packets, nanos);
        Self::of_ratio(packets.checked_div(common)?, nanos.checked_div(common)?)
    }

    /// One packet per `interval`; `None` if `interval` is zero.
    #[must_use]
    pub const fn every(interval: Duration) -> Option<Self> {
        Self::new(1, interval)
    }

    /// Packets per second; `None` if outside [`LEAST`](Self::LEAST)..=[`MOST`](Self::MOST). The rate is that of the
    /// number's decimal digits: 0.3 is three packets in ten seconds.
    #[must_use]
    pub fn per_second(rate: f64) -> Option<Self> {
        if !(Self::LEAST..=f64::from(Self::MOST)).contains(&rate) {
            return None;
        }
        // At most 17 digits, and an exponent of -6 to 9.
        let text = format!("{rate:e}");
        let (mantissa, exponent) = text.split_once('e')?;
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits: u128 = format!("{whole}{fraction}").parse().ok()?;
        let exponent = exponent.parse::<i32>().ok()? - i32::try_from(fraction.len()).ok()?;
        let power = 10_u128.checked_pow(exponent.unsigned_abs())?;
        let (packets, nanos) = match exponent >= 0 {
            true => (digits.checked_mul(power)?, SECOND),
            false => (digits, SECOND.checked_mul(power)?),
        };
        Some(Self { packets, nanos })
    }

    /// `bits` per second in packets of `octets`; `None` if either is zero, or the packet rate exceeds
    /// [`MOST`](Self::MOST).
    #[must_use]
    pub fn of_bits(bits: u64, octets: usize) -> Option<Self> {
        let size = (octets as u128).checked_mul(8)?;
        let packets = u128::from(bits);
        let sane = bits > 0 && size > 0 && packets <= size.checked_mul(Self::MOST.into())?;
        sane.then(|| Self {
            packets,
            nanos: size * SECOND,
        })
    }

    /// Time from the first packet to packet `index`, which counts from 0: `index` intervals, rounded down to a
    /// nanosecond.
    ///
    /// So a source that sends while this is below its duration sends rate times duration packets, rounded up.
    #[must_use]
    pub fn after(self, index: u64) -> Duration {
        let nanos = u128::from(index).checked_mul(self.nanos);
        let nanos = nanos.map_or(u128::MAX, |nanos| nanos / self.packets);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// The first packet that is due at `elapsed` after packet 0, or later.
    #[must_use]
    pub fn first_at(self, elapsed: Duration) -> u64 {
        let index = elapsed.as_nanos().checked_mul(self.packets);
        let index = index.map_or(u128::MAX, |all| all.div_ceil(self.nanos));
        u64::try_from(index).unwrap_or(u64::MAX)
    }

    /// Mean time between packets, nanoseconds.
    #[must_use]
    pub fn mean_gap(self) -> f64 {
        self.nanos as f64 / self.packets as f64
    }
}

/// The greatest common divisor, by Euclid's algorithm.
fn common_divisor(mut a: u128, mut b: u128) -> u128 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets of `rate` that are due before `duration`.
    fn count(rate: PacketRate, duration: Duration) -> u64 {
        let (mut low, mut high) = (0, 1 << 40);
        while low < high {
            let middle = u64::midpoint(low, high);
            match rate.after(middle) < duration {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    }

    #[test]
    fn any_rate_gives_rate_times_duration_packets() {
        let seconds = Duration::from_secs;
        for (rate, duration, packets) in [
            (0.3, 20, 6),
            (0.35, 20, 7),
            (1.4, 20, 28),
            (2.5, 20, 50),
            (3.0, 10, 30),
            (0.1, 7, 1),
            (1e-6, 3_000_000, 3),
            (700_000.0, 1, 700_000),
            (900_000.0, 1, 900_000),
            (12_500_000.1, 10, 125_000_001),
            (1e9, 3, 3_000_000_000),
            (999.999_999, 1_000_000, 999_999_999),
            (123.456_789_012_345_67, 1000, 123_457),
        ] {
            let exact = PacketRate::per_second(rate).expect("in range");
            assert_eq!(count(exact, seconds(duration)), packets, "{rate}");
        }
        // A third of a second, three times a second, without accumulated rounding errors.
        let three = PacketRate::per_second(3.0).expect("in range");
        assert_eq!(three.after(1).as_nanos(), 333_333_333);
        assert_eq!(three.after(3_000_000), seconds(1_000_000));
        // A source that starts in the middle continues with the packet that is due next.
        let due = [0, 1, 333_333_333, 333_333_334, 1_000_000_000];
        let next = due.map(|at| three.first_at(Duration::from_nanos(at)));
        assert_eq!(next, [0, 1, 1, 2, 3]);
    }

    #[test]
    fn bits_per_second_are_not_rounded_to_packets() {
        for (bits, octets, packets) in [
            (100_000, 1472, 85), // 84.9 packets in ten seconds
            (400, 100, 5),
            (64_000, 1000, 80),
            (100_000_000_000, 1000, 125_000_000),
        ] {
            let rate = PacketRate::of_bits(bits, octets).expect("sane");
            assert_eq!(count(rate, Duration::from_secs(10)), packets, "{bits}");
        }
    }

    #[test]
    fn rates_beyond_the_limits_do_not_exist() {
        for rate in [0.0, -1.0, 1e-7, 1.1e9, f64::NAN, f64::INFINITY] {
            assert_eq!(PacketRate::per_second(rate), None, "{rate}");
        }
        assert_eq!(PacketRate::of_bits(0, 100), None);
        assert_eq!(PacketRate::of_bits(1000, 0), None);
        // 1000 Tb/s in packets of 24 octets.
        assert_eq!(PacketRate::of_bits(1_000_000_000_000_000, 24), None);
        assert_eq!(PacketRate::every(Duration::ZERO), None);
    }
}
