//! Mutants of the labs of the repository: checked, and run for a second if they pass.
//!
//! The octets of the input are the choices of the mutator, so that libFuzzer's small changes are small changes of a
//! mutant.

use crate::feed::Feed;
use aerostat_testing::labs::mutants::mutator::{Corpus, Dice};
use aerostat_testing::labs::mutants::{self, Limits};
use std::sync::OnceLock;

/// Few enough for many inputs in a second.
const EVENTS: u64 = 50_000;

struct Octets<'a>(Feed<'a>);

impl Dice for Octets<'_> {
    fn below(&mut self, n: usize) -> usize {
        match n {
            0..=256 => self.0.below(n),
            _ => usize::from(self.0.u16()) % n,
        }
    }
}

/// Runs one input.
pub fn run(input: &[u8]) {
    static CORPUS: OnceLock<Corpus> = OnceLock::new();
    let corpus = CORPUS.get_or_init(|| Corpus::new(&mutants::labs()));
    let text = corpus.mutant(&mut Octets(Feed::new(input)), &mutants::good);
    mutants::drive(&text, Limits { events: EVENTS });
}
