//! Numbers from a seed without a stored generator, for delays and first numbers that must differ; not for secrets.

/// The step of SplitMix64: neighbouring seeds give unrelated numbers. Calls with a seed that grows by [`STEP`] form
/// that generator.
#[must_use]
pub const fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(STEP);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A number of [`mix`] as a fraction in [0, 1), with 53 bits.
#[must_use]
pub const fn fraction(mixed: u64) -> f64 {
    (mixed >> 11) as f64 / (1_u64 << 53) as f64
}

/// The increment of SplitMix64's state.
pub const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The daemons that one client has had, one after the other: each gets a seed of its own, so that a late answer to a
/// request of one daemon matches no request of the next.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lives {
    /// Daemons so far.
    count: u64,
    /// The last daemon has not ended.
    lasts: bool,
}

impl Lives {
    /// The seed of the daemon that is told to run now: the same as before, unless the last daemon has ended. The first
    /// daemon gets the client's own seed.
    pub(crate) const fn begin(&mut self, seed: u64) -> u64 {
        if !self.lasts {
            self.lasts = true;
            self.count += 1;
        }
        match self.is_first() {
            true => seed,
            false => mix(seed ^ self.count.wrapping_mul(STEP)),
        }
    }
    /// True if no daemon came before this one.
    pub(crate) const fn is_first(&self) -> bool {
        self.count <= 1
    }
    /// The daemon has ended.
    pub(crate) const fn end(&mut self) {
        self.lasts = false;
    }
}

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

    #[test]
    fn each_daemon_of_a_client_has_a_seed_of_its_own_until_it_ends() {
        let mut lives = Lives::default();
        assert_eq!((lives.begin(7), lives.is_first()), (7, true));
        assert_eq!(lives.begin(7), 7, "it starts again in the same process");
        let mut seen = vec![7];
        for _ in 0..100 {
            lives.end();
            let seed = lives.begin(7);
            assert_eq!((lives.begin(7), lives.is_first()), (seed, false));
            assert!(!seen.contains(&seed));
            seen.push(seed);
        }
    }
}
