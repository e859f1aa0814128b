//! Random messages of daemons, made by their decoder alone: all of them survive their octets, no octets do harm.
//!
//! [`octets`] asks the decoder after each octet. What it lacks is drawn, and what it refuses is drawn again, so a
//! message has every kind and every field that the decoder knows, without a description beside it. The functions take
//! the two directions of an encoding as functions, because the unit tests of `aerostat-proto` have types of their own.

use aerostat_proto::split::{FRAME_MAX, names};
use aerostat_wire::{DecodeError, ErrorKind};
use core::fmt::Debug;
use std::collections::BTreeSet;

/// Octets after which a draw begins again: a list has become too long.
const LONG: usize = 800;

/// Draws numbers; the same for the same seed.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A source of numbers with this seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }
    /// A number, by SplitMix64.
    pub const fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    /// A number below the bound, which is not 0.
    pub const fn below(&mut self, bound: usize) -> usize {
        (self.number() % bound as u64) as usize
    }
    /// An octet below the bound, which is at most 256.
    const fn octet(&mut self, bound: usize) -> u8 {
        self.below(bound) as u8
    }
}

/// A text with its length before it.
fn text(words: &str) -> Vec<u8> {
    [&(words.len() as u16).to_be_bytes()[..], words.as_bytes()].concat()
}

/// Octets in the place of a field whose octets were refused: a small number, the number of a kind, a word of the
/// program, or any text.
fn instead(random: &mut Random) -> Vec<u8> {
    match random.below(16) {
        0..4 => vec![random.octet(8)],
        4..8 => vec![0, random.octet(24)],
        8 => vec![0, random.octet(256)],
        // Kinds are numbered from these.
        9..13 => {
            let hundred = [100_u16, 200, 300, 400, 0x100, 0x4100][random.below(6)];
            (hundred + u16::from(random.octet(16)))
                .to_be_bytes()
                .to_vec()
        }
        13 => text(&format!("{:x} é", random.number())),
        _ => {
            let all: Vec<&str> = names::all().collect();
            text(all[random.below(all.len())])
        }
    }
}

/// The octets of a random message that begins with these octets, of which `decode` says what is wrong.
///
/// # Panics
/// If no end is found in a hundred thousand steps.
pub fn octets<T>(
    begin: &[u8],
    random: &mut Random,
    decode: impl Fn(&[u8]) -> Result<T, DecodeError>,
) -> Vec<u8> {
    let mut octets = begin.to_vec();
    // Offset of the field at the end, and whether it may be drawn again.
    let (mut field, mut free) = (octets.len(), false);
    for _ in 0..100_000 {
        let Err(error) = decode(&octets) else {
            return octets;
        };
        match error.kind {
            ErrorKind::Short if octets.len() < LONG => {
                if error.offset > field {
                    let two = octets.len() == field + 2;
                    // Most fields of two octets count what follows.
                    if two && core::mem::replace(&mut free, true) && random.below(4) > 0 {
                        octets.splice(field.., [0, random.octet(5)]);
                    }
                    field = octets.len();
                }
                let high = octets.len() == field && random.below(4) > 0;
                octets.push(if high { 0 } else { random.octet(256) });
            }
            ErrorKind::Value(_) if error.offset >= begin.len() => {
                octets.truncate(error.offset);
                (field, free) = (octets.len(), false);
                octets.extend(instead(random));
            }
            _ => {
                octets.truncate(begin.len());
                (field, free) = (octets.len(), false);
            }
        }
    }
    panic!("no message found: {octets:02x?}");
}

/// A random message.
///
/// # Panics
/// As [`octets`].
pub fn message<T>(
    random: &mut Random,
    decode: impl Fn(&[u8]) -> Result<T, DecodeError>,
) -> Result<T, DecodeError> {
    decode(&octets(&[], random, &decode))
}

/// Checks that a random message survives encoding and decoding, and that shorter and longer octets are refused.
///
/// # Panics
/// If that is not so.
pub fn survives<T: Debug + PartialEq>(
    seed: u64,
    encode: impl Fn(&T) -> Vec<u8>,
    decode: impl Fn(&[u8]) -> Result<T, DecodeError>,
) {
    let frame = octets(&[], &mut Random::new(seed), &decode);
    let message = decode(&frame);
    assert!(frame.len() <= FRAME_MAX);
    assert_eq!(message.as_ref().map(&encode).as_ref(), Ok(&frame));
    assert_eq!(decode(&frame), message);
    assert!(decode(&frame[..frame.len() - 1]).is_err());
    assert!(decode(&[&frame[..], &[0]].concat()).is_err());
}

/// Checks that octets which can be decoded have one form only.
///
/// # Panics
/// If that is not so.
pub fn canonical<T>(
    octets: &[u8],
    encode: impl Fn(&T) -> Vec<u8>,
    decode: impl Fn(&[u8]) -> Result<T, DecodeError>,
) {
    if let Ok(message) = decode(octets) {
        assert_eq!(encode(&message), octets);
    }
}

/// Checks that a message with another octet somewhere is a message or an error.
///
/// # Panics
/// If that is not so.
pub fn damaged<T>(
    (seed, at, to): (u64, usize, u8),
    encode: impl Fn(&T) -> Vec<u8>,
    decode: impl Fn(&[u8]) -> Result<T, DecodeError>,
) {
    let mut frame = octets(&[], &mut Random::new(seed), &decode);
    let at = at % frame.len();
    frame[at] = to;
    canonical(&frame, encode, decode);
}

/// Checks that random messages have every kind that the decoder knows, down to kinds of messages in messages.
///
/// # Panics
/// If that is not so.
pub fn every_kind_is_drawn<T>(decode: impl Fn(&[u8]) -> Result<T, DecodeError>) {
    kinds_are_drawn(&[], &decode);
}

fn kinds_are_drawn<T>(begin: &[u8], decode: &impl Fn(&[u8]) -> Result<T, DecodeError>) {
    let refused = |kind: &[u8; 2]| {
        let error = decode(&[begin, kind].concat()).err();
        error.is_some_and(|e| e.offset == begin.len() && e.kind != ErrorKind::Trailing)
    };
    let mut kinds: Vec<_> = (0..=u16::MAX).map(u16::to_be_bytes).collect();
    let all = kinds.len();
    kinds.retain(|kind| !refused(kind));
    if kinds.len() == all && begin.is_empty() {
        // The number of a daemon.
        kinds_are_drawn(&[0, 0], decode);
    } else if kinds.len() < 64 {
        let mut random = Random::new(1);
        let mut missing: BTreeSet<[u8; 2]> = kinds.iter().copied().collect();
        for _ in 0..500 * kinds.len() {
            let frame = octets(begin, &mut random, decode);
            let kind = frame.get(begin.len()..).and_then(<[u8]>::first_chunk);
            missing.remove(kind.unwrap_or(&[0, 0]));
            if missing.is_empty() {
                break;
            }
        }
        assert!(missing.is_empty(), "{begin:02x?} {missing:02x?}");
        for kind in kinds {
            if begin.len() < 6 {
                kinds_are_drawn(&[begin, &kind[..]].concat(), decode);
            }
        }
    }
}

/// Number of names of traces in the sources of a role (quoted text that begins with `prefix`), and the names and fields
/// that are in no list of [`names`].
#[must_use]
pub fn strangers(sources: &[&str], prefix: &str) -> (usize, Vec<String>) {
    let (mut count, mut strangers) = (0, Vec::new());
    let mut look = |name: &str| {
        if names::known(name).is_none() {
            strangers.push(name.to_owned());
        }
    };
    for source in sources {
        for literal in source.split('"').skip(1).step_by(2) {
            if literal.starts_with(prefix) {
                count += 1;
                look(literal);
            }
        }
        for rest in source.split(".with(").skip(1) {
            if let Some(key) = rest.trim_start().strip_prefix('"') {
                look(key.split('"').next().unwrap_or_default());
            }
        }
    }
    (count, strangers)
}

/// The property tests of messages, for these types. The trait of their encoding is in scope.
#[macro_export]
macro_rules! message_properties {
    ($($message:ty),+ $(,)?) => {
        proptest::proptest! {
            #[test]
            fn messages_survive(seed: u64) {
                $($crate::messages::survives(seed, <$message>::encode, <$message>::decode);)+
            }

            #[test]
            fn any_octets_are_a_message_or_an_error(
                octets in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200),
            ) {
                $($crate::messages::canonical(&octets, <$message>::encode, <$message>::decode);)+
            }

            /// The first octets are a number and, in most cases, a type that exists.
            #[test]
            fn any_fields_are_a_message_or_an_error(
                kind in 0u16..40,
                octets in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..100),
            ) {
                let frame = [&[0, 1, 0, 2][..], &kind.to_be_bytes(), &octets].concat();
                $($crate::messages::canonical(&frame, <$message>::encode, <$message>::decode);)+
            }

            #[test]
            fn a_damaged_message_is_a_message_or_an_error(seed: u64, at: usize, to: u8) {
                $($crate::messages::damaged(
                    (seed, at, to),
                    <$message>::encode,
                    <$message>::decode,
                );)+
            }
        }

        #[test]
        fn random_messages_have_every_kind() {
            $($crate::messages::every_kind_is_drawn(<$message>::decode);)+
        }
    };
}
