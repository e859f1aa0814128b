//! For tests of the messages of every role: all of them survive their octets, no octets do harm.

use super::FRAME_MAX;
use super::codec::{Field, Message};
use crate::mix::{STEP, mix};
use core::fmt::Debug;

/// Draws samples; the same for the same seed.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// One with this seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }
    /// A number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mix(self.0)
    }
    /// A number below the bound, which is not 0.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.number() % bound as u64) as usize
    }
}

/// A message survives encoding and decoding; shorter and longer octets are refused.
///
/// # Panics
/// If that is not so.
pub fn survives<T: Field + Message + Debug + PartialEq>(seed: u64) {
    let message = T::sample(&mut Random::new(seed));
    let frame = message.encode();
    assert!(frame.len() <= FRAME_MAX);
    assert_eq!(T::decode(&frame).as_ref(), Ok(&message));
    assert!(T::decode(&frame[..frame.len() - 1]).is_err());
    assert!(T::decode(&[&frame[..], &[0]].concat()).is_err());
}

/// What can be decoded has one form only.
///
/// # Panics
/// If that is not so.
pub fn canonical<T: Message>(octets: &[u8]) {
    if let Ok(message) = T::decode(octets) {
        assert_eq!(message.encode(), octets);
    }
}

/// A message with another octet somewhere is a message or an error.
///
/// # Panics
/// If that is not so.
pub fn damaged<T: Field + Message>(seed: u64, at: usize, to: u8) {
    let mut frame = T::sample(&mut Random::new(seed)).encode();
    let at = at % frame.len();
    frame[at] = to;
    canonical::<T>(&frame);
}
