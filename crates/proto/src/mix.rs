//! Numbers from a seed without a stored generator, for delays and first numbers that must differ; not for secrets.

/// The step of SplitMix64: neighbouring seeds give unrelated numbers. Calls with a seed that grows by [`STEP`] form
/// that generator.
pub(crate) const fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(STEP);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The increment of SplitMix64's state.
pub(crate) const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

#[cfg(test)]
mod tests {
    use super::*;

    /// First outputs for seed 0 of the public reference implementation.
    #[test]
    fn is_splitmix64() {
        assert_eq!(mix(0), 0xe220_a839_7b1d_cdaf);
        assert_eq!(mix(STEP), 0x6e78_9e6a_a1b9_65f4);
        assert_eq!(mix(STEP.wrapping_mul(2)), 0x06c4_5d18_8009_454f);
    }
}
