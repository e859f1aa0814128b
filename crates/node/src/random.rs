//! Random numbers that are the same on every machine: one PCG stream per (node, purpose).

use rand_pcg::Pcg32;
use rand_pcg::rand_core::Rng;

/// A generator for one purpose of one node. Adding a node or a purpose changes no other stream.
#[must_use]
pub fn stream(seed: u64, node: &str, purpose: &str) -> Pcg32 {
    Pcg32::new(seed, fnv1a(&[node.as_bytes(), b"/", purpose.as_bytes()]))
}

/// A seed for a component that makes its own generator.
#[must_use]
pub fn derived_seed(seed: u64, node: &str, purpose: &str) -> u64 {
    stream(seed, node, purpose).next_u64()
}

/// The next gap of a Poisson process, in mean gaps.
#[must_use]
pub fn exponential(rng: &mut Pcg32) -> f64 {
    // (0, 1]: one step of 2^32 is added to the draw, so that the logarithm is finite.
    let uniform = (f64::from(rng.next_u32()) + 1.0) / 4_294_967_296.0;
    -natural_log(uniform)
}

/// ln x for positive normal x. The platform's own function may differ in the last bit from one machine to another, so
/// that two runs of one seed would differ. This function uses only operations that IEEE 754 defines.
fn natural_log(x: f64) -> f64 {
    let bits = x.to_bits();
    let mut exponent = ((bits >> 52) & 0x7ff) as i32 - 1023;
    let mut mantissa = f64::from_bits((bits & 0x000f_ffff_ffff_ffff) | 0x3ff0_0000_0000_0000);
    if mantissa > core::f64::consts::SQRT_2 {
        mantissa /= 2.0;
        exponent += 1;
    }
    // ln m = 2 artanh((m − 1)/(m + 1)); |t| ≤ 0.172, so 11 terms exceed the precision of f64.
    let t = (mantissa - 1.0) / (mantissa + 1.0);
    let mut sum = 0.0;
    for k in (0..11).rev() {
        sum = sum * t * t + 1.0 / f64::from(2 * k + 1);
    }
    2.0 * t * sum + f64::from(exponent) * core::f64::consts::LN_2
}

/// FNV-1a, 64 bits, over the parts in order.
fn fnv1a(parts: &[&[u8]]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for byte in parts.iter().copied().flatten() {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithm_agrees_with_the_platform() {
        for x in [1e-300, 2.3e-10, 0.1, 0.5, 0.999_999, 1.0, 1.5, 2.0, 1e17] {
            let error = (natural_log(x) - libm::log(x)).abs();
            assert!(error <= libm::log(x).abs() * 1e-14 + 1e-16, "{x}: {error}");
        }
    }

    #[test]
    fn exponential_gaps_have_mean_and_deviation_of_the_process() {
        let mut rng = stream(7, "urku", "test");
        let gaps: Vec<f64> = (0..20_000)
            .map(|_| exponential(&mut rng) * 1000.0)
            .collect();
        let average = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps
            .iter()
            .map(|g| (g - average) * (g - average))
            .sum::<f64>()
            / gaps.len() as f64;
        assert!((average - 1000.0).abs() < 30.0, "{average}");
        assert!((variance.sqrt() - 1000.0).abs() < 50.0, "{variance}");
    }

    #[test]
    fn streams_are_apart_and_repeat() {
        let first = |seed, node, purpose| stream(seed, node, purpose).next_u64();
        assert_eq!(first(1, "a", "tcp"), first(1, "a", "tcp"));
        assert_ne!(first(1, "a", "tcp"), first(1, "a", "udp"));
        assert_ne!(first(1, "a", "tcp"), first(1, "b", "tcp"));
        assert_ne!(first(1, "a", "tcp"), first(2, "a", "tcp"));
    }
}
