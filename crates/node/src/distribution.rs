//! Distributions of times, in bounded memory.
//!
//! Minimum, maximum, mean and variance are exact (Welford's method). Percentiles come from a log-linear histogram: each
//! power of two is divided into 128 buckets. Values below 256 ns have buckets of their own. A bucket keeps the sum of
//! its values; a percentile is interpolated within its bucket on a line through the mean of the bucket. So every
//! percentile of a distribution with one value is exactly this value, a percentile never differs by more than 0.8 %
//! from the true one, and `min ≤ p50 ≤ p99 ≤ p99.9 ≤ max` always.

use aerostat_proto::Duration;
use std::collections::BTreeMap;

/// Buckets per power of two, as a power of two.
const PRECISION_BITS: u32 = 7;

/// A distribution of durations.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Distribution {
    count: u64,
    min_ns: u64,
    max_ns: u64,
    mean_ns: f64,
    /// Sum of squared distances from the mean (Welford).
    squares: f64,
    /// Buckets by number. There are at most 64 × 128 of them, whatever is recorded.
    buckets: BTreeMap<u16, Bucket>,
}

/// Values of about the same size.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Bucket {
    count: u64,
    /// Sum of the distances from the lower edge, ns.
    above_edge: u128,
}

/// The figures of a [`Distribution`], in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Summary {
    /// Number of recorded values; without values all figures are zero.
    pub count: u64,
    /// Smallest value, µs.
    pub min_us: f64,
    /// Arithmetic mean, µs.
    pub mean_us: f64,
    /// Median, µs, within 0.8 % of the true one.
    pub p50_us: f64,
    /// 99th percentile, µs, within 0.8 % of the true one.
    pub p99_us: f64,
    /// 99.9th percentile, µs, within 0.8 % of the true one.
    pub p999_us: f64,
    /// Largest value, µs.
    pub max_us: f64,
    /// Population variance (divided by `count`), µs².
    pub variance_us2: f64,
    /// Square root of the variance, µs.
    pub std_dev_us: f64,
}

impl Distribution {
    /// Adds one value.
    pub fn record(&mut self, value: Duration) {
        let ns = u64::try_from(value.as_nanos()).unwrap_or(u64::MAX);
        self.min_ns = if self.count == 0 {
            ns
        } else {
            self.min_ns.min(ns)
        };
        self.max_ns = self.max_ns.max(ns);
        self.count += 1;
        let distance = ns as f64 - self.mean_ns;
        self.mean_ns += distance / self.count as f64;
        self.squares += distance * (ns as f64 - self.mean_ns);
        let number = bucket(ns);
        let bucket = self.buckets.entry(number).or_default();
        bucket.count += 1;
        bucket.above_edge += u128::from(ns - lower_edge(number));
    }

    /// Exact sum of the values, ns.
    #[must_use]
    pub fn sum_ns(&self) -> u128 {
        let buckets = self.buckets.iter();
        let sums = buckets.map(|(number, bucket)| {
            u128::from(lower_edge(*number)) * u128::from(bucket.count) + bucket.above_edge
        });
        sums.sum()
    }

    /// Values recorded.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The value that `per_mille` of the values do not exceed, ns; always between minimum and maximum.
    #[must_use]
    pub(super) fn percentile_ns(&self, per_mille: u64) -> u64 {
        let rank = (self.count * per_mille).div_ceil(1000).max(1);
        let mut seen = 0;
        for (&number, bucket) in &self.buckets {
            if seen + bucket.count < rank {
                seen += bucket.count;
                continue;
            }
            // The values of the bucket lie within its edges, the minimum and the maximum.
            let low = lower_edge(number).max(self.min_ns);
            let high = upper_edge(number).min(self.max_ns);
            let above = bucket.above_edge / u128::from(bucket.count);
            let mean = lower_edge(number) + u64::try_from(above).unwrap_or(u64::MAX);
            // A line through the mean at the middle rank. Its slope is limited by the nearer edge.
            let reach = (mean.saturating_sub(low)).min(high.saturating_sub(mean)) as f64;
            let ranks = bucket.count as f64;
            let place = 2.0 * ((rank - seen) as f64 - 0.5) / ranks - 1.0;
            let value = (mean as f64 + place * reach).round().max(0.0) as u64;
            return value.clamp(low, high);
        }
        0
    }

    /// The number of values above `limit`. Values in the same bucket as the limit, less than 0.8 % away, are not
    /// counted.
    #[must_use]
    pub fn above(&self, limit: Duration) -> u64 {
        let limit = bucket(u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX));
        let Some(next) = limit.checked_add(1) else {
            return 0;
        };
        self.buckets.range(next..).map(|(_, b)| b.count).sum()
    }

    /// The distribution function: values in µs, each with the share of all values that do not exceed it, 0 to 1. Values
    /// are within 0.8 % of the true ones; the largest is exact. Empty without values.
    #[must_use]
    pub fn shares(&self) -> Vec<(f64, f64)> {
        let mut seen = 0;
        let step = |(number, bucket): (&u16, &Bucket)| {
            seen += bucket.count;
            let value = upper_edge(*number).min(self.max_ns);
            (value as f64 / 1e3, seen as f64 / self.count as f64)
        };
        self.buckets.iter().map(step).collect()
    }

    /// All figures at once.
    #[must_use]
    pub fn summary(&self) -> Summary {
        if self.count == 0 {
            return Summary::default();
        }
        let variance_us2 = self.squares / self.count as f64 / 1e6;
        Summary {
            count: self.count,
            min_us: self.min_ns as f64 / 1e3,
            mean_us: self.mean_ns / 1e3,
            p50_us: self.percentile_ns(500) as f64 / 1e3,
            p99_us: self.percentile_ns(990) as f64 / 1e3,
            p999_us: self.percentile_ns(999) as f64 / 1e3,
            max_us: self.max_ns as f64 / 1e3,
            variance_us2,
            std_dev_us: variance_us2.sqrt(),
        }
    }
}

/// The bucket of a value: its power of two, then its next seven bits.
fn bucket(ns: u64) -> u16 {
    let exponent = (64 - ns.leading_zeros()).saturating_sub(PRECISION_BITS + 1);
    // At most 56 × 128 + 255, which fits 16 bits.
    ((u64::from(exponent) << PRECISION_BITS) + (ns >> exponent)) as u16
}

/// The smallest value of a bucket.
fn lower_edge(bucket: u16) -> u64 {
    let bucket = u64::from(bucket);
    let exponent = (bucket >> PRECISION_BITS).saturating_sub(1);
    (bucket - (exponent << PRECISION_BITS)) << exponent
}

/// The largest value of a bucket.
fn upper_edge(number: u16) -> u64 {
    match number.checked_add(1) {
        Some(next) if bucket(u64::MAX) >= next => lower_edge(next) - 1,
        _ => u64::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_a_known_population() {
        let mut d = Distribution::default();
        for us in [2, 4, 4, 4, 5, 5, 7, 9] {
            d.record(Duration::from_micros(us));
        }
        let s = d.summary();
        assert_eq!((s.count, s.min_us, s.max_us), (8, 2.0, 9.0));
        assert!((s.mean_us - 5.0).abs() < 1e-9);
        assert!((s.variance_us2 - 4.0).abs() < 1e-9);
        assert!((s.std_dev_us - 2.0).abs() < 1e-9);
        let shares = d.shares();
        assert_eq!(shares.len(), 5);
        for ((us, share), (wanted, count)) in
            shares
                .iter()
                .zip([(2.0, 1.0), (4.0, 4.0), (5.0, 6.0), (7.0, 7.0), (9.0, 8.0)])
        {
            assert!((us / wanted - 1.0).abs() < 0.008 && *share == count / 8.0);
        }
        assert_eq!(shares.last(), Some(&(9.0, 1.0)));
    }

    #[test]
    fn a_constant_distribution_has_its_value_as_mean_and_as_every_percentile() {
        for ns in [1, 300, 1_000_003, 86_400_000_000_123] {
            let mut d = Distribution::default();
            (0..1000).for_each(|_| d.record(Duration::from_nanos(ns)));
            let s = d.summary();
            let all = [s.min_us, s.p50_us, s.p99_us, s.p999_us, s.max_us];
            assert_eq!(all, [ns as f64 / 1e3; 5]);
            assert!((s.mean_us - s.p99_us).abs() <= s.mean_us * 1e-12);
        }
    }

    proptest::proptest! {
        #[test]
        fn percentiles_are_in_order_and_within_the_extremes(
            values in proptest::collection::vec(0_u64..50_000_000, 1..300),
        ) {
            let mut d = Distribution::default();
            values.iter().for_each(|ns| d.record(Duration::from_nanos(*ns)));
            let s = d.summary();
            let all = [s.min_us, s.p50_us, s.p99_us, s.p999_us, s.max_us];
            assert!(all.is_sorted(), "{all:?}");
            let mut sorted = values;
            sorted.sort_unstable();
            for per_mille in [500, 990, 999] {
                let exact = sorted[(sorted.len() * per_mille).div_ceil(1000).max(1) - 1] as f64;
                let got = d.percentile_ns(per_mille as u64) as f64;
                assert!((got - exact).abs() <= exact * 0.008 + 1.0, "{got} {exact}");
            }
        }
    }

    #[test]
    fn percentiles_are_at_most_one_bucket_away() {
        let mut d = Distribution::default();
        for ns in 1..=100_000u64 {
            d.record(Duration::from_nanos(ns * 17));
        }
        for (per_mille, exact) in [(500, 50_000 * 17), (990, 99_000 * 17), (1000, 100_000 * 17)] {
            let got = d.percentile_ns(per_mille);
            assert!(
                got.abs_diff(exact) as f64 <= exact as f64 * 0.008,
                "{per_mille}: {got}"
            );
        }
    }

    #[test]
    fn edges_meet_their_buckets() {
        for ns in [0, 1, 127, 128, 255, 256, 257, 511, 512, 1_000_003, u64::MAX] {
            let edge = lower_edge(bucket(ns));
            assert!(edge <= ns && bucket(edge) == bucket(ns), "{ns} {edge}");
        }
        assert_eq!(Distribution::default().summary(), Summary::default());
    }
}
