//! The MPLS label stack: entries of four octets in front of a packet, the outermost first.
//!
//! ```text
//!  31..12 | 11..9 | 8 | 7..0
//!  label  | TC    | S | TTL       S is 1 in the last entry of the stack
//! ```
//!
//! Standards: RFC 3032 §2.1 (entries, reserved labels), RFC 5462 (the name of the TC field).

use crate::{DecodeError, Reader};

/// EtherType of frames with a label stack (unicast). Source: RFC 3032 §5.
pub const ETHERTYPE: u16 = 0x8847;
/// Octets of an entry.
pub const ENTRY_LEN: usize = 4;
/// Limit of entries in one stack. This limit is the crate's own.
pub const MAX_DEPTH: usize = 8;
/// Explicit null for IPv4: its entry asks for no more than its own removal. Source: RFC 3032 §2.1, RFC 4182.
pub const EXPLICIT_NULL: u32 = 0;
/// First label that is free for users; those below are reserved. Source: RFC 3032 §2.1.
pub const FIRST_LABEL: u32 = 16;
/// Largest label, 20 bits.
pub const MAX_LABEL: u32 = 0xf_ffff;

/// An entry of a label stack. The S bit is not part of it: it follows from the place of the entry in its stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// The label, 0..=[`MAX_LABEL`]; higher bits are not sent.
    pub label: u32,
    /// Traffic class, 0..=7; higher bits are not sent.
    pub class: u8,
    /// Time to live.
    pub ttl: u8,
}

impl Entry {
    fn to_word(self, last: bool) -> u32 {
        (self.label & MAX_LABEL) << 12
            | u32::from(self.class & 7) << 9
            | u32::from(last) << 8
            | u32::from(self.ttl)
    }
}

/// A label stack of 1 to [`MAX_DEPTH`] entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stack {
    entries: [Entry; MAX_DEPTH],
    depth: usize,
}

impl Stack {
    /// A stack of these entries, the outermost first; `None` if there is no entry or there are too many.
    #[must_use]
    pub fn new(entries: &[Entry]) -> Option<Self> {
        let mut all = [Entry::default(); MAX_DEPTH];
        all.get_mut(..entries.len())?.copy_from_slice(entries);
        let depth = entries.len();
        (depth > 0).then_some(Self {
            entries: all,
            depth,
        })
    }
    /// The entries, the outermost first.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        self.entries.get(..self.depth).unwrap_or_default()
    }
    /// Appends the octets to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        for (entry, place) in self.entries().iter().zip(1..) {
            out.extend(entry.to_word(place == self.depth).to_be_bytes());
        }
    }
    /// Reads a stack; returns it and what follows it.
    ///
    /// # Errors
    /// `Short` if the octets end before an entry with S; `Value` with the number of entries if there are more than
    /// [`MAX_DEPTH`].
    pub fn decode(octets: &[u8]) -> Result<(Self, &[u8]), DecodeError> {
        let mut reader = Reader::new(octets);
        let mut stack = Self {
            entries: [Entry::default(); MAX_DEPTH],
            depth: 0,
        };
        loop {
            let at = reader.offset();
            let word = reader.u32("label stack entry")?;
            let too_deep = DecodeError::value("label stack", at, stack.depth as u32 + 1);
            let place = stack.entries.get_mut(stack.depth).ok_or(too_deep)?;
            *place = Entry {
                label: word >> 12,
                class: (word >> 9 & 7) as u8,
                ttl: word as u8,
            };
            stack.depth += 1;
            if word & 0x100 != 0 {
                return Ok((stack, reader.rest()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;
    use proptest::prelude::*;

    fn entry(label: u32, class: u8, ttl: u8) -> Entry {
        Entry { label, class, ttl }
    }

    /// Composed by hand from the figure of RFC 3032 §2.1.
    #[test]
    fn two_entries_composed_by_hand() {
        let stack = Stack::new(&[entry(16, 0, 255), entry(0xabcde, 5, 2)]).unwrap();
        let octets = [0, 1, 0, 255, 0xab, 0xcd, 0xeb, 2];
        let mut out = Vec::new();
        stack.encode(&mut out);
        assert_eq!(out, octets);
        out.push(9);
        assert_eq!(Stack::decode(&out), Ok((stack, &[9][..])));
    }

    #[test]
    fn a_stack_without_an_end_and_one_that_is_too_deep_are_errors() {
        let endless = [0, 1, 0, 64].repeat(MAX_DEPTH);
        let error = Stack::decode(&endless).unwrap_err();
        assert_eq!((error.kind, error.offset), (ErrorKind::Short, 32));
        let deep = [&endless[..], &[0, 1, 1, 64]].concat();
        let error = Stack::decode(&deep).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Value(9));
        for length in 0..4 {
            assert!(Stack::decode(&deep[..length]).is_err());
        }
        assert_eq!(Stack::new(&[]), None);
        assert_eq!(Stack::new(&[Entry::default(); MAX_DEPTH + 1]), None);
    }

    proptest! {
        #[test]
        fn any_octets_decode_to_what_encodes_to_them(octets in prop::collection::vec(any::<u8>(), 0..60)) {
            if let Ok((stack, rest)) = Stack::decode(&octets) {
                let mut again = Vec::new();
                stack.encode(&mut again);
                again.extend(rest);
                prop_assert_eq!(again, octets);
            }
        }
    }
}
