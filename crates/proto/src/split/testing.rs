//! For tests of the messages of every role: all of them survive their octets, no octets do harm.

use super::FRAME_MAX;
use super::codec::{Field, Message};
use crate::mix::{STEP, mix};
use core::fmt::Debug;

/// Draws samples; the same for the same seed.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A source of samples with this seed.
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

/// Checks that octets which can be decoded have one form only.
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

/// The property tests of messages, for these types.
#[cfg(test)]
macro_rules! message_properties {
    ($($message:ty),+ $(,)?) => {
        proptest::proptest! {
            #[test]
            fn messages_survive(seed: u64) {
                $($crate::split::testing::survives::<$message>(seed);)+
            }

            #[test]
            fn any_octets_are_a_message_or_an_error(
                octets in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200),
            ) {
                $($crate::split::testing::canonical::<$message>(&octets);)+
            }

            /// The first octets are a number and, in most cases, a type that exists.
            #[test]
            fn any_fields_are_a_message_or_an_error(
                kind in 0u16..40,
                octets in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..100),
            ) {
                let frame = [&[0, 1, 0, 2][..], &kind.to_be_bytes(), &octets].concat();
                $($crate::split::testing::canonical::<$message>(&frame);)+
            }

            #[test]
            fn a_damaged_message_is_a_message_or_an_error(seed: u64, at: usize, to: u8) {
                $($crate::split::testing::damaged::<$message>(seed, at, to);)+
            }
        }
    };
}
#[cfg(test)]
pub(crate) use message_properties;
