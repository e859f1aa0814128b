//! Many cells in a packet: the N-to-one cell mode of RFC 4717, over UDP, in Ethernet frames, over MPLS and L2TPv3.
//!
//! **Format.** An optional word ([`Shim`]), then 1 to 172 cells of 52 octets: a word with VPI (12 bits), VCI (16), PTI
//! (3) and CLP (1), no HEC, and 48 octets of payload. Cells of different VCs may be mixed; each keeps its own header.
//! Source: RFC 4717 §8.1, RFC 4454 §5.2 (cells).
//!
//! **The word** is the control word (RFC 4717 §5.1.2, flags and length 0) or a sublayer of L2TPv3. Both carry a
//! sequence number; `sequence.rs` has its rules.
//!
//! Both ends must have the same setting for the word. The two forms differ in length by 4 octets, so a length of one
//! form is never valid in the other (52k and 52k + 4), and a wrong setting shows as bad lengths.

use super::sequence::{Numbers, Order, Space};
use aerostat_lab::model::Packing;
use aerostat_wire::cell::CELL_LEN;
use aerostat_wire::l2tp::{Sublayer, SublayerWord};
use aerostat_wire::pseudowire::{self, AtmFlags, BARE_CELL_LEN, BareCell, ControlWord, WORD_LEN};

/// Longest packet.
pub const MAX_DATAGRAM: usize = WORD_LEN + BARE_CELL_LEN * Packing::MAX_CELLS as usize;

/// Header in front of the cells of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shim {
    /// Nothing.
    None,
    /// The control word.
    Word {
        /// True if packets are numbered, and the numbers of the peer's packets count.
        numbers: bool,
    },
    /// A sublayer of L2TPv3.
    Sublayer {
        /// Form of the sublayer; with [`Sublayer::None`] no octets.
        form: Sublayer,
        /// True if packets are numbered, and the numbers of the peer's packets count.
        numbers: bool,
    },
}

impl Shim {
    /// The control word with numbers, or nothing.
    #[must_use]
    pub const fn numbered(word: bool) -> Self {
        if word {
            Self::Word { numbers: true }
        } else {
            Self::None
        }
    }
    const fn space(self) -> Space {
        match self {
            Self::None | Self::Word { .. } => Space::Sixteen,
            Self::Sublayer { .. } => Space::TwentyFour,
        }
    }
    const fn counts(self) -> bool {
        match self {
            Self::None => false,
            Self::Word { numbers } | Self::Sublayer { numbers, .. } => numbers,
        }
    }
}

/// Puts cells into packets.
#[derive(Debug)]
pub struct Packer {
    shim: Shim,
    numbers: Numbers,
}

impl Packer {
    /// A packer with this word.
    #[must_use]
    pub const fn new(shim: Shim) -> Self {
        let numbers = Numbers::new(shim.space());
        Self { shim, numbers }
    }

    /// Octets of a packet with this many cells.
    #[must_use]
    pub const fn length(&self, cells: usize) -> usize {
        let shim = match self.shim {
            Shim::None
            | Shim::Sublayer {
                form: Sublayer::None,
                ..
            } => 0,
            Shim::Word { .. } | Shim::Sublayer { .. } => WORD_LEN,
        };
        shim + cells * BARE_CELL_LEN
    }

    /// The word of the packet that is sent after `later` others, if packets have a word. Numbers go on only after
    /// [`Self::sent`].
    #[must_use]
    pub fn word(&self, later: usize) -> Option<[u8; WORD_LEN]> {
        let number = self.shim.counts().then(|| self.numbers.after(later));
        match self.shim {
            Shim::None => None,
            Shim::Word { .. } => {
                let sequence = number.unwrap_or(0) as u16;
                let word = ControlWord {
                    sequence,
                    ..ControlWord::default()
                };
                Some(word.encode())
            }
            Shim::Sublayer { form, .. } => {
                // With cells the flags are reserved, also T: 0. Source: RFC 4454 §5.2, figure 4.
                let word = SublayerWord {
                    sequence: number,
                    flags: AtmFlags::default(),
                };
                form.octets(word)
            }
        }
    }

    /// The next packet, with these cells.
    #[must_use]
    pub fn datagram<'a>(&self, cells: impl Iterator<Item = &'a [u8; CELL_LEN]>) -> Vec<u8> {
        let mut octets = Vec::with_capacity(MAX_DATAGRAM);
        octets.extend(self.word(0).into_iter().flatten());
        cells.for_each(|cell| pseudowire::put_cell(&mut octets, cell));
        octets
    }

    /// Records that so many packets were sent.
    pub const fn sent(&mut self, packets: usize) {
        self.numbers.sent(packets);
    }
}

/// Takes cells from packets.
#[derive(Debug)]
pub struct Unpacker {
    shim: Shim,
    order: Order,
    /// Packets of no valid length.
    pub bad_length: u64,
    /// Control words that do not begin with 0000.
    pub bad_word: u64,
}

impl Unpacker {
    /// An unpacker with this word.
    #[must_use]
    pub const fn new(shim: Shim) -> Self {
        Self {
            shim,
            order: Order::new(shim.space()),
            bad_length: 0,
            bad_word: 0,
        }
    }

    /// Packets that did not arrive, or arrived too late.
    #[must_use]
    pub const fn missing(&self) -> u64 {
        self.order.missing
    }

    /// Packets dropped because they were late.
    #[must_use]
    pub const fn late(&self) -> u64 {
        self.order.late
    }

    /// The cells of a packet; no cells if the packet is dropped.
    pub fn cells<'a>(&mut self, datagram: &'a [u8]) -> &'a [BareCell] {
        self.check(datagram).unwrap_or_default()
    }

    fn check<'a>(&mut self, datagram: &'a [u8]) -> Option<&'a [BareCell]> {
        let (number, cells) = self.split(datagram)?;
        let cells = pseudowire::cells(cells).ok();
        let Some(cells) = cells.filter(|_| datagram.len() <= MAX_DATAGRAM) else {
            self.bad_length += 1;
            return None;
        };
        let number = number.filter(|_| self.shim.counts());
        self.order.takes(number).then_some(cells)
    }

    /// The sequence number, if the packet has one, and what follows the word.
    fn split<'a>(&mut self, datagram: &'a [u8]) -> Option<(Option<u32>, &'a [u8])> {
        match self.shim {
            Shim::None => Some((None, datagram)),
            Shim::Word { .. } => {
                let Some((word, cells)) = datagram.split_first_chunk() else {
                    self.bad_length += 1;
                    return None;
                };
                let Ok(word) = ControlWord::decode(*word) else {
                    self.bad_word += 1;
                    return None;
                };
                let number = (word.sequence != 0).then(|| word.sequence.into());
                Some((number, cells))
            }
            Shim::Sublayer { form, .. } => {
                let Ok((word, cells)) = form.decode(datagram) else {
                    self.bad_length += 1;
                    return None;
                };
                Some((word.sequence, cells))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::sequence::AGAIN;
    use super::*;
    use proptest::prelude::*;

    const WORD: Shim = Shim::Word { numbers: true };

    /// VPI 0, VCI 100, last cell of its PDU; VPI 801 hex, VCI 5. Composed by hand after RFC 4717 §8.
    fn two_cells() -> [[u8; CELL_LEN]; 2] {
        let mut cells = [[0x11; CELL_LEN], [0x22; CELL_LEN]];
        cells[0][..5].copy_from_slice(&[0, 0, 6, 0x42, 0xee]);
        cells[1][..5].copy_from_slice(&[0x80, 0x10, 0, 0x50, 0xee]);
        cells
    }

    /// The frames whose cost a link inside a lab has are those that leave a lab.
    #[test]
    fn frames_inside_and_outside_a_lab_have_one_layout() {
        use aerostat_wire::cell::{Cell, CellHeader, HeaderForm, Pti};
        use aerostat_wire::{MacAddr, Vc, cell_frame};
        let cell = |octet: u8| Cell {
            header: CellHeader {
                gfc: 0,
                vc: Vc::new(octet.into(), 100),
                pti: Pti::USER,
                clp: false,
            },
            payload: [octet; 48],
        };
        for count in [1, 2, 28, 172] {
            let cells: Vec<Cell> = (0..count).map(cell).collect();
            let octets: Vec<_> = cells
                .iter()
                .map(|cell| cell.encode(HeaderForm::Nni))
                .collect();
            let payload = Packer::new(Shim::None).datagram(octets.iter());
            let frame = cell_frame::encode(MacAddr([2; 6]), MacAddr([4; 6]), &cells);
            assert_eq!(frame[cell_frame::HEADER..], payload);
            let length = cell_frame::HEADER + payload.len() + cell_frame::CHECK;
            assert_eq!(cell_frame::octets(count.into()), length);
        }
        assert_eq!(cell_frame::MAX_CELLS, Packing::MAX_CELLS);
    }

    #[test]
    fn two_cells_and_a_control_word() {
        let cells = two_cells();
        let mut packer = Packer::new(WORD);
        let first = packer.datagram(cells.iter());
        let mut expected = vec![0, 0, 0, 1, 0, 0, 6, 0x42];
        expected.extend([0x11; 48]);
        expected.extend([0x80, 0x10, 0, 0x50]);
        expected.extend([0x22; 48]);
        assert_eq!(first, expected);
        // The datagram was not sent, so the number stays.
        assert_eq!(packer.datagram(cells.iter()), first);
        packer.sent(1);
        assert_eq!(packer.datagram(cells.iter())[..4], [0, 0, 0, 2]);
        let mut unpacker = Unpacker::new(WORD);
        assert_eq!(unpacker.cells(&first).as_flattened(), &expected[4..]);
        assert_eq!(
            Packer::new(Shim::None).datagram(cells.iter()),
            expected[4..]
        );
    }

    #[test]
    fn wrong_lengths_and_words() {
        let mut unpacker = Unpacker::new(WORD);
        let with = |length: usize| vec![0; length];
        for length in [0, 1, 3, 4, 52, 55, 57, 104, 108 + 1, MAX_DATAGRAM + 52] {
            assert_eq!(unpacker.cells(&with(length)).len(), 0, "{length}");
        }
        assert_eq!(unpacker.bad_length, 10);
        assert_eq!(unpacker.cells(&with(MAX_DATAGRAM)).len(), 172);
        let mut word = with(56);
        word[0] = 0x10;
        assert_eq!((unpacker.cells(&word).len(), unpacker.bad_word), (0, 1));
        let mut bare = Unpacker::new(Shim::None);
        assert_eq!(bare.cells(&with(104)).len(), 2);
        assert_eq!(bare.cells(&with(108)).len(), 0);
    }

    #[test]
    fn the_order_of_datagrams() {
        let mut unpacker = Unpacker::new(WORD);
        let mut push = |sequence: u16| {
            let [high, low] = sequence.to_be_bytes();
            let mut datagram = vec![0; 56];
            datagram[2..4].copy_from_slice(&[high, low]);
            let taken = unpacker.cells(&datagram).len() == 1;
            (taken, unpacker.missing(), unpacker.late())
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

    #[test]
    fn sublayers_of_l2tp_and_words_without_numbers() {
        let cells = two_cells();
        for (shim, first, second) in [
            (
                Shim::Word { numbers: false },
                &[0, 0, 0, 0][..],
                &[0, 0, 0, 0][..],
            ),
            (
                Shim::Sublayer {
                    form: Sublayer::None,
                    numbers: false,
                },
                &[],
                &[],
            ),
            (
                Shim::Sublayer {
                    form: Sublayer::Default,
                    numbers: true,
                },
                &[0x40, 0, 0, 0],
                &[0x40, 0, 0, 1],
            ),
            (
                Shim::Sublayer {
                    form: Sublayer::Atm,
                    numbers: true,
                },
                &[0x40, 0, 0, 0],
                &[0x40, 0, 0, 1],
            ),
            (
                Shim::Sublayer {
                    form: Sublayer::Atm,
                    numbers: false,
                },
                &[0, 0, 0, 0],
                &[0, 0, 0, 0],
            ),
        ] {
            let (mut packer, mut unpacker) = (Packer::new(shim), Unpacker::new(shim));
            for word in [first, second] {
                let packet = packer.datagram(cells.iter());
                assert_eq!(&packet[..packet.len() - 104], word, "{shim:?}");
                assert_eq!(unpacker.cells(&packet).len(), 2);
                packer.sent(1);
            }
            // An old number counts only if numbers do.
            let mut old = packer.datagram(cells.iter());
            let length = old.len() - 104;
            if let Some(octet) = old[..length].last_mut() {
                *octet = 0;
            }
            let counts = matches!(shim, Shim::Sublayer { numbers: true, .. });
            assert_eq!(unpacker.cells(&old).len(), if counts { 0 } else { 2 });
            assert_eq!(unpacker.late(), u64::from(counts));
        }
    }

    proptest! {
        #[test]
        fn round_trip(payloads in prop::collection::vec(any::<[u8; 53]>(), 1..172), word in any::<bool>()) {
            let datagram = Packer::new(Shim::numbered(word)).datagram(payloads.iter());
            let got = Unpacker::new(Shim::numbered(word)).cells(&datagram).to_vec();
            prop_assert_eq!(got.len(), payloads.len());
            for (cell, got) in payloads.iter().zip(got) {
                prop_assert_eq!(&cell[..4], &got[..4]);
                prop_assert_eq!(&cell[5..], &got[4..]);
            }
        }

        #[test]
        fn never_panics(datagrams in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..40), word in any::<bool>()) {
            let mut unpacker = Unpacker::new(Shim::numbered(word));
            for datagram in datagrams {
                prop_assert!(unpacker.cells(&datagram).len() <= datagram.len() / 52);
            }
        }

        #[test]
        fn any_order_of_numbers(sequences in prop::collection::vec(any::<u16>(), 0..200)) {
            let mut unpacker = Unpacker::new(WORD);
            for sequence in sequences {
                let mut datagram = vec![0; 56];
                datagram[2..4].copy_from_slice(&sequence.to_be_bytes());
                unpacker.cells(&datagram);
                prop_assert!(unpacker.order.late_in_a_row < AGAIN);
            }
        }
    }
}
