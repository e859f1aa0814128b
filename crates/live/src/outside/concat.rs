//! Many cells in a datagram: the N-to-one cell mode of RFC 4717, here over UDP instead of MPLS.
//!
//! **Format.** An optional control word, then 1 to 172 cells of 52 octets: a word with VPI (12 bits), VCI (16), PTI (3)
//! and CLP (1), no HEC, and 48 octets of payload. Cells of different VCs may be mixed; each keeps its own header.
//! Source: RFC 4717 §8 (cells), §6 (control word).
//!
//! **The control word** is `0000`, four flags, two reserved bits, six bits of length, all sent as 0, and a sequence
//! number of 16 bits that starts at 1 and skips 0. A sender with number 0 does not number its datagrams. A datagram
//! that is late is dropped, because cells must keep their order; a gap is counted. After `AGAIN` late datagrams in a
//! row the peer counts as restarted. Source: RFC 4385 §3, §4 (to which RFC 4717 refers); `AGAIN` is this program's own.
//!
//! Both ends must have the same setting for the control word. The two forms differ in length by 4 octets, so a length
//! of one form is never valid in the other (52k and 52k + 4), and a wrong setting shows as bad lengths.

use aerostat_lab::model::Packing;
use aerostat_wire::cell::{CELL_LEN, HEADER_LEN, PAYLOAD_LEN};

/// Octets of the control word.
const WORD: usize = 4;
/// Octets of a cell without HEC.
const CELL: usize = CELL_LEN - 1;
/// Longest datagram.
pub const MAX_DATAGRAM: usize = WORD + CELL * Packing::MAX_CELLS as usize;
/// This many late datagrams in a row mean that the peer has restarted.
const AGAIN: u8 = 4;

/// A cell in a datagram: header without HEC, payload.
pub type Cell = ([u8; HEADER_LEN - 1], [u8; PAYLOAD_LEN]);

/// Puts cells into datagrams.
#[derive(Debug)]
pub struct Packer {
    word: bool,
    sequence: u16,
}

impl Packer {
    /// A packer with or without control word.
    #[must_use]
    pub const fn new(word: bool) -> Self {
        Self { word, sequence: 1 }
    }

    /// A datagram with these cells, without their HEC. The next datagram has the next number only after [`Self::sent`].
    #[must_use]
    pub fn datagram<'a>(&self, cells: impl Iterator<Item = &'a [u8; CELL_LEN]>) -> Vec<u8> {
        let mut octets = Vec::with_capacity(MAX_DATAGRAM);
        if self.word {
            octets.extend([0, 0]);
            octets.extend(self.sequence.to_be_bytes());
        }
        for [a, b, c, d, _, payload @ ..] in cells {
            octets.extend([*a, *b, *c, *d]);
            octets.extend(payload);
        }
        octets
    }

    /// Records that the datagram was sent.
    pub const fn sent(&mut self) {
        self.sequence = next(self.sequence);
    }
}

/// The sequence number after this one.
const fn next(sequence: u16) -> u16 {
    match sequence.wrapping_add(1) {
        0 => 1,
        other => other,
    }
}

/// Takes cells from datagrams.
#[derive(Debug)]
pub struct Unpacker {
    word: bool,
    expected: Option<u16>,
    late_in_a_row: u8,
    /// Datagrams of no valid length.
    pub bad_length: u64,
    /// Control words that do not begin with 0000.
    pub bad_word: u64,
    /// Datagrams that did not arrive, or arrived too late.
    pub missing: u64,
    /// Datagrams dropped because they were late.
    pub late: u64,
}

impl Unpacker {
    /// An unpacker with or without control word.
    #[must_use]
    pub const fn new(word: bool) -> Self {
        Self {
            word,
            expected: None,
            late_in_a_row: 0,
            bad_length: 0,
            bad_word: 0,
            missing: 0,
            late: 0,
        }
    }

    /// The cells of a datagram; no cells if the datagram is dropped.
    pub fn cells<'a>(&mut self, datagram: &'a [u8]) -> impl Iterator<Item = Cell> + use<'a> {
        let cells = self.check(datagram).unwrap_or_default();
        cells.chunks_exact(CELL).filter_map(|cell| {
            let (header, payload) = cell.split_first_chunk()?;
            Some((*header, *payload.first_chunk()?))
        })
    }

    fn check<'a>(&mut self, datagram: &'a [u8]) -> Option<&'a [u8]> {
        let (word, cells) = match datagram.split_first_chunk::<WORD>() {
            Some((word, cells)) if self.word => (Some(*word), cells),
            _ => (None, datagram),
        };
        let whole = !cells.is_empty() && cells.len().is_multiple_of(CELL);
        if !whole || datagram.len() > MAX_DATAGRAM || self.word != word.is_some() {
            self.bad_length += 1;
            return None;
        }
        if let Some([first, _, high, low]) = word {
            if first >> 4 != 0 {
                self.bad_word += 1;
                return None;
            }
            if !self.in_order(u16::from_be_bytes([high, low])) {
                self.late += 1;
                return None;
            }
        }
        Some(cells)
    }

    /// RFC 4385 §4.2.
    fn in_order(&mut self, sequence: u16) -> bool {
        if sequence == 0 {
            return true;
        }
        let expected = self.expected.unwrap_or(sequence);
        let ahead = sequence.wrapping_sub(expected);
        if ahead >= 0x8000 {
            self.late_in_a_row += 1;
            if self.late_in_a_row < AGAIN {
                return false;
            }
        } else {
            // 0 is skipped when numbers wrap.
            self.missing += u64::from(ahead) - u64::from(sequence < expected);
        }
        self.late_in_a_row = 0;
        self.expected = Some(next(sequence));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// VPI 0, VCI 100, last cell of its PDU; VPI 801 hex, VCI 5. Composed by hand after RFC 4717 §8.
    fn two_cells() -> [[u8; CELL_LEN]; 2] {
        let mut cells = [[0x11; CELL_LEN], [0x22; CELL_LEN]];
        cells[0][..5].copy_from_slice(&[0, 0, 6, 0x42, 0xee]);
        cells[1][..5].copy_from_slice(&[0x80, 0x10, 0, 0x50, 0xee]);
        cells
    }

    #[test]
    fn two_cells_and_a_control_word() {
        let cells = two_cells();
        let mut packer = Packer::new(true);
        let first = packer.datagram(cells.iter());
        let mut expected = vec![0, 0, 0, 1, 0, 0, 6, 0x42];
        expected.extend([0x11; 48]);
        expected.extend([0x80, 0x10, 0, 0x50]);
        expected.extend([0x22; 48]);
        assert_eq!(first, expected);
        // The datagram was not sent, so the number stays.
        assert_eq!(packer.datagram(cells.iter()), first);
        packer.sent();
        assert_eq!(packer.datagram(cells.iter())[..4], [0, 0, 0, 2]);
        let mut unpacker = Unpacker::new(true);
        let got: Vec<Cell> = unpacker.cells(&first).collect();
        assert_eq!(
            got,
            [
                ([0, 0, 6, 0x42], [0x11; 48]),
                ([0x80, 0x10, 0, 0x50], [0x22; 48])
            ]
        );
        assert_eq!(Packer::new(false).datagram(cells.iter()), expected[4..]);
    }

    #[test]
    fn wrong_lengths_and_words() {
        let mut unpacker = Unpacker::new(true);
        let with = |length: usize| vec![0; length];
        for length in [0, 1, 3, 4, 52, 55, 57, 104, 108 + 1, MAX_DATAGRAM + 52] {
            assert_eq!(unpacker.cells(&with(length)).count(), 0, "{length}");
        }
        assert_eq!(unpacker.bad_length, 10);
        assert_eq!(unpacker.cells(&with(MAX_DATAGRAM)).count(), 172);
        let mut word = with(56);
        word[0] = 0x10;
        assert_eq!((unpacker.cells(&word).count(), unpacker.bad_word), (0, 1));
        let mut bare = Unpacker::new(false);
        assert_eq!(bare.cells(&with(104)).count(), 2);
        assert_eq!(bare.cells(&with(108)).count(), 0);
    }

    #[test]
    fn the_order_of_datagrams() {
        let mut unpacker = Unpacker::new(true);
        let mut push = |sequence: u16| {
            let [high, low] = sequence.to_be_bytes();
            let mut datagram = vec![0; 56];
            datagram[2..4].copy_from_slice(&[high, low]);
            let taken = unpacker.cells(&datagram).count() == 1;
            (taken, unpacker.missing, unpacker.late)
        };
        assert_eq!(push(65_533), (true, 0, 0));
        assert_eq!(push(65_534), (true, 0, 0));
        assert_eq!(push(65_534), (false, 0, 1));
        // 65535 is missing; 0 is not used.
        assert_eq!(push(1), (true, 1, 1));
        assert_eq!(push(65_535), (false, 1, 2));
        assert_eq!(push(0), (true, 1, 2));
        assert_eq!(push(5), (true, 4, 2));
        // A restarted peer is recognised at the fourth datagram.
        for sequence in 1..=3 {
            assert!(!push(sequence).0);
        }
        assert_eq!(push(4), (true, 4, 5));
        assert_eq!(push(5), (true, 4, 5));
    }

    proptest! {
        #[test]
        fn round_trip(payloads in prop::collection::vec(any::<[u8; 53]>(), 1..172), word in any::<bool>()) {
            let datagram = Packer::new(word).datagram(payloads.iter());
            let got: Vec<Cell> = Unpacker::new(word).cells(&datagram).collect();
            prop_assert_eq!(got.len(), payloads.len());
            for (cell, (header, payload)) in payloads.iter().zip(got) {
                prop_assert_eq!(&cell[..4], header);
                prop_assert_eq!(&cell[5..], payload);
            }
        }

        #[test]
        fn never_panics(datagrams in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..40), word in any::<bool>()) {
            let mut unpacker = Unpacker::new(word);
            for datagram in datagrams {
                prop_assert!(unpacker.cells(&datagram).count() <= datagram.len() / 52);
            }
        }

        #[test]
        fn any_order_of_numbers(sequences in prop::collection::vec(any::<u16>(), 0..200)) {
            let mut unpacker = Unpacker::new(true);
            for sequence in sequences {
                let mut datagram = vec![0; 56];
                datagram[2..4].copy_from_slice(&sequence.to_be_bytes());
                unpacker.cells(&datagram).for_each(drop);
                prop_assert!(unpacker.late_in_a_row < AGAIN);
            }
        }
    }
}
