//! Blocks of a line that are lost whole.
//!
//! A burst of noise on a DSL line spoils more than the code of a block can correct, and an interleaver makes blocks
//! long. So all cells that begin in a block are lost with it, or none of them is. Blocks follow each other in time
//! without a gap. Whether a block is lost depends on its number and the seed of the line alone: the same noise meets
//! whatever a lab sends, as its variants need it for a comparison.

use crate::model::Errors;
use aerostat_node::random::derived_seed;
use aerostat_proto::Instant;
use aerostat_proto::mix::{STEP, fraction, mix};

/// Blocks of one direction of a link.
#[derive(Clone, Copy, Debug)]
pub struct Blocks {
    /// Probability that a block is lost.
    lost: f64,
    /// Length, nanoseconds; above 0.
    length: u64,
    seed: u64,
}

impl Blocks {
    /// The blocks of a line; `None` if it loses none.
    #[must_use]
    pub fn new(errors: &Errors, seed: u64) -> Option<Self> {
        let length = u64::try_from(errors.block.as_nanos()).unwrap_or(u64::MAX);
        (errors.blocks > 0.0).then_some(Self {
            lost: errors.blocks,
            length: length.max(1),
            seed,
        })
    }

    /// The seed of the blocks of a direction of the link `link`, in a lab with this seed.
    #[must_use]
    pub fn seed(seed: u64, link: &str, side: usize) -> u64 {
        derived_seed(
            seed,
            link,
            if side == 0 {
                "blocks forth"
            } else {
                "blocks back"
            },
        )
    }

    /// True if the block is lost in which a cell begins that is sent from `start` on.
    #[must_use]
    pub fn loses(&self, start: Instant) -> bool {
        let number = start.as_nanos() / self.length;
        // Independent bits for numbers that follow each other.
        fraction(mix(self.seed ^ number.wrapping_mul(STEP))) < self.lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aerostat_proto::Duration;

    fn blocks(lost: f64, seed: u64) -> Blocks {
        let errors = Errors {
            blocks: lost,
            block: Duration::from_millis(1),
            ..Errors::NONE
        };
        Blocks::new(&errors, seed).unwrap()
    }

    #[test]
    fn a_block_is_lost_from_its_first_nanosecond_to_its_last() {
        let blocks = blocks(0.3, 7);
        for number in 0..1000_u64 {
            let at = |nanos| blocks.loses(Instant::from_nanos(number * 1_000_000 + nanos));
            assert_eq!([at(0), at(1), at(999_999)], [at(500_000); 3]);
        }
    }

    /// Lost blocks are binomial: their number has mean np and variance np(1 - p), and neighbours are independent.
    #[test]
    fn lost_blocks_are_independent_and_have_their_probability() {
        const N: u64 = 100_000;
        for (lost, seed) in [(0.01, 1), (0.1, 2), (0.5, 3), (0.9, 4)] {
            let blocks = blocks(lost, seed);
            let gone: Vec<bool> = (0..N)
                .map(|number| blocks.loses(Instant::from_nanos(number * 1_000_000)))
                .collect();
            let within = |count: usize, p: f64| {
                let (mean, deviation) = (N as f64 * p, (N as f64 * p * (1.0 - p)).sqrt());
                assert!(
                    (count as f64 - mean).abs() < 4.0 * deviation,
                    "{count} of {N}, p {p}"
                );
            };
            within(gone.iter().filter(|one| **one).count(), lost);
            let pairs = gone.windows(2).filter(|pair| pair[0] && pair[1]).count();
            // The pairs overlap, which widens the deviation by at most a factor of √3.
            let (mean, wide) = (
                N as f64 * lost * lost,
                4.0 * (3.0 * N as f64 * lost * lost).sqrt(),
            );
            assert!(
                (pairs as f64 - mean).abs() < wide,
                "{pairs} pairs, {mean} expected"
            );
        }
    }

    #[test]
    fn directions_and_links_have_noise_of_their_own() {
        let seeds = [("a", 0), ("a", 1), ("b", 0)].map(|(link, side)| Blocks::seed(1, link, side));
        let gone = seeds.map(|seed| {
            let blocks = blocks(0.5, seed);
            (0..64)
                .map(|n| blocks.loses(Instant::from_nanos(n * 1_000_000)))
                .collect::<Vec<_>>()
        });
        assert!(gone[0] != gone[1] && gone[0] != gone[2] && gone[1] != gone[2]);
        assert!(Blocks::new(&Errors::NONE, 1).is_none());
    }
}
