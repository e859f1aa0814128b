//! The ATM cell: header at the UNI and at the NNI, header error control, and the whole 53 octets.
//!
//! The HEC octet is a CRC-8 over the other four, XORed with a coset, and lets a receiver correct one
//! wrong bit. [`HecReceiver`] is the receiver's mode machine: after an error it only detects until a
//! good header comes, so that a burst of errors does not turn into misdelivered cells.
//!
//! Standards: I.361 (format), I.432 §4.3 (header error control).
//! Not implemented: cell delineation and payload scrambling, which links that carry whole cells do
//! not need.

use crate::{DecodeError, Vc};
use core::fmt;

/// Octets of a cell.
pub const CELL_LEN: usize = 53;
/// Octets of a cell's header, with the HEC.
pub const HEADER_LEN: usize = 5;
/// Octets of a cell's payload.
pub const PAYLOAD_LEN: usize = 48;
/// Bits of a cell on the line.
pub const CELL_BITS: u64 = 424;

/// Where a header is used: the two forms differ in its first four bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderForm {
    /// User-network interface: GFC (4 bits) and VPI (8 bits).
    Uni,
    /// Network-node interface: VPI (12 bits), no GFC.
    Nni,
}

/// Payload type indicator, 0..=7.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pti(u8);

impl Pti {
    /// User data, not the last cell of an AAL5 PDU.
    pub const USER: Self = Self(0);
    /// User data, last cell of an AAL5 PDU.
    pub const USER_END: Self = Self(1);
    /// OAM F5, segment.
    pub const OAM_SEGMENT: Self = Self(4);
    /// OAM F5, end to end.
    pub const OAM_END_TO_END: Self = Self(5);
    /// Resource management.
    pub const RESOURCE: Self = Self(6);

    /// From the low three bits of `value`.
    #[must_use]
    pub const fn new(value: u8) -> Self {
        Self(value & 7)
    }
    /// User data; `end` marks the last cell of an AAL5 PDU.
    #[must_use]
    pub const fn user(end: bool) -> Self {
        if end { Self::USER_END } else { Self::USER }
    }
    /// The value, 0..=7.
    #[must_use]
    pub const fn value(self) -> u8 {
        self.0
    }
    /// True for user data, false for OAM, RM and the reserved value.
    #[must_use]
    pub const fn is_user(self) -> bool {
        self.0 & 4 == 0
    }
    /// True for the last cell of an AAL5 PDU.
    #[must_use]
    pub const fn is_end(self) -> bool {
        self.0 & 5 == 1
    }
    /// Explicit forward congestion indication of a user cell.
    #[must_use]
    pub const fn congested(self) -> bool {
        self.0 & 6 == 2
    }
    /// The same with congestion indicated, if this is a user cell. A network sets it and never clears it.
    #[must_use]
    pub const fn with_congestion(self) -> Self {
        if self.is_user() {
            Self(self.0 | 2)
        } else {
            self
        }
    }
}

/// The header of a cell, without the HEC.
///
/// ```text
///  31..28 | 27..20 | 19..4 | 3..1 | 0
///  GFC    | VPI    | VCI   | PTI  | CLP      UNI; at the NNI the VPI is 31..20
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CellHeader {
    /// Generic flow control, 0..=15; 0 on links that do not use it. The header at the NNI has no such field.
    pub gfc: u8,
    /// The virtual connection. VPI 0..=255 at the UNI, 0..=4095 at the NNI; higher bits are not sent.
    pub vc: Vc,
    /// Payload type.
    pub pti: Pti,
    /// Cell loss priority: true is discard-eligible.
    pub clp: bool,
}

impl CellHeader {
    /// A header of a user cell with CLP 0.
    #[must_use]
    pub const fn user(vc: Vc, end: bool) -> Self {
        Self {
            gfc: 0,
            vc,
            pti: Pti::user(end),
            clp: false,
        }
    }
    /// The first four octets as one big-endian number.
    #[must_use]
    pub fn to_word(self, form: HeaderForm) -> u32 {
        let top = match form {
            HeaderForm::Uni => u32::from(self.gfc & 15) << 28 | u32::from(self.vc.vpi & 0xff) << 20,
            HeaderForm::Nni => u32::from(self.vc.vpi & 0xfff) << 20,
        };
        top | u32::from(self.vc.vci) << 4 | u32::from(self.pti.0) << 1 | u32::from(self.clp)
    }
    /// From the first four octets as one big-endian number. Every value is a valid header.
    #[must_use]
    pub const fn from_word(word: u32, form: HeaderForm) -> Self {
        let (gfc, vpi) = match form {
            HeaderForm::Uni => ((word >> 28) as u8, (word >> 20 & 0xff) as u16),
            HeaderForm::Nni => (0, (word >> 20 & 0xfff) as u16),
        };
        Self {
            gfc,
            vc: Vc::new(vpi, (word >> 4) as u16),
            pti: Pti::new((word >> 1) as u8),
            clp: word & 1 == 1,
        }
    }
    /// The five octets, with a correct HEC.
    #[must_use]
    pub fn encode(self, form: HeaderForm) -> [u8; HEADER_LEN] {
        let [a, b, c, d] = self.to_word(form).to_be_bytes();
        [a, b, c, d, hec([a, b, c, d])]
    }
    /// From five octets; corrects nothing (see [`HecReceiver`]).
    ///
    /// # Errors
    /// `Checksum` if the HEC does not fit.
    pub fn decode(octets: [u8; HEADER_LEN], form: HeaderForm) -> Result<Self, DecodeError> {
        if syndrome(octets) != 0 {
            return Err(DecodeError::checksum("cell.hec", 4));
        }
        let [a, b, c, d, _] = octets;
        Ok(Self::from_word(u32::from_be_bytes([a, b, c, d]), form))
    }
}

impl fmt::Display for CellHeader {
    /// `0.100 pti 1 clp 0`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} pti {} clp {}",
            self.vc,
            self.pti.0,
            u8::from(self.clp)
        )
    }
}

const COSET: u8 = 0x55;

/// CRC-8 with generator x^8+x^2+x+1, per octet.
const CRC8: [u8; 256] = {
    let mut table = [0; 256];
    let mut i = 0;
    while i < 256 {
        let mut crc = i as u8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x80 != 0 {
                crc << 1 ^ 0x07
            } else {
                crc << 1
            };
            bit += 1;
        }
        table[i] = crc;
        i += 1;
    }
    table
};

const NO_BIT: u8 = 0xff;

/// Syndrome to the number of the wrong bit (0 is the first one sent), or [`NO_BIT`].
const WRONG_BIT: [u8; 256] = {
    let mut table = [NO_BIT; 256];
    let mut bit = 0;
    while bit < 40 {
        let word = 1_u64 << (39 - bit);
        let mut crc = 0;
        let mut octet = 0;
        while octet < 4 {
            crc = CRC8[(crc ^ (word >> (32 - 8 * octet)) as u8) as usize];
            octet += 1;
        }
        table[(crc ^ word as u8) as usize] = bit as u8;
        bit += 1;
    }
    table
};

/// The HEC octet for four header octets. Source: I.432 §4.3.2.
#[must_use]
pub fn hec(octets: [u8; 4]) -> u8 {
    octets
        .iter()
        .fold(0, |crc, octet| CRC8[usize::from(crc ^ octet)])
        ^ COSET
}

/// 0 for a good header; otherwise the index into [`WRONG_BIT`], which tells whether a single bit is wrong, and which.
fn syndrome([a, b, c, d, e]: [u8; HEADER_LEN]) -> u8 {
    hec([a, b, c, d]) ^ e
}

/// Verdict of a receiver about one header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HecVerdict {
    /// No error.
    Good,
    /// One bit was wrong and has been corrected. The value is the number of that bit; 0 is the first bit sent.
    Corrected(u8),
    /// Errors that cannot be corrected, or that must not be corrected in detection mode: discard the cell.
    Discard,
}

/// Receiver mode machine of the header error control, one per incoming link.
///
/// Correction mode: one wrong bit is corrected; any error leads to detection mode. Detection mode: any
/// error discards the cell; a good header leads back to correction mode. Source: I.432 §4.3.3.
#[derive(Clone, Debug, Default)]
pub struct HecReceiver {
    detecting: bool,
    /// Headers without an error.
    pub good: u64,
    /// Headers corrected.
    pub corrected: u64,
    /// Headers discarded.
    pub discarded: u64,
}

impl HecReceiver {
    /// Checks, and corrects in place, one header.
    pub fn receive(&mut self, header: &mut [u8; HEADER_LEN]) -> HecVerdict {
        let syndrome = syndrome(*header);
        if syndrome == 0 {
            self.detecting = false;
            self.good += 1;
            return HecVerdict::Good;
        }
        let bit = WRONG_BIT[usize::from(syndrome)];
        if self.detecting || bit == NO_BIT {
            self.detecting = true;
            self.discarded += 1;
            return HecVerdict::Discard;
        }
        self.detecting = true;
        self.corrected += 1;
        if let Some(octet) = header.get_mut(usize::from(bit / 8)) {
            *octet ^= 0x80 >> (bit % 8);
        }
        HecVerdict::Corrected(bit)
    }
    /// True if this header has no error; changes no mode and no counter.
    #[must_use]
    pub fn is_good(header: &[u8; HEADER_LEN]) -> bool {
        syndrome(*header) == 0
    }
    /// Records `headers` good headers at once.
    pub const fn receive_good(&mut self, headers: u64) {
        self.detecting = false;
        self.good += headers;
    }
    /// Records that idle cells came: they end detection mode and are not counted.
    pub const fn receive_idle(&mut self) {
        self.detecting = false;
    }
    /// True in detection mode.
    #[must_use]
    pub const fn is_detecting(&self) -> bool {
        self.detecting
    }
}

/// A whole cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The header.
    pub header: CellHeader,
    /// The payload.
    pub payload: [u8; PAYLOAD_LEN],
}

impl Cell {
    /// The 53 octets.
    #[must_use]
    pub fn encode(&self, form: HeaderForm) -> [u8; CELL_LEN] {
        let mut octets = [0; CELL_LEN];
        octets[..HEADER_LEN].copy_from_slice(&self.header.encode(form));
        octets[HEADER_LEN..].copy_from_slice(&self.payload);
        octets
    }
    /// From 53 octets; corrects nothing.
    ///
    /// # Errors
    /// `Checksum` if the HEC does not fit.
    pub fn decode(octets: &[u8; CELL_LEN], form: HeaderForm) -> Result<Self, DecodeError> {
        let mut header = [0; HEADER_LEN];
        header.copy_from_slice(&octets[..HEADER_LEN]);
        let mut payload = [0; PAYLOAD_LEN];
        payload.copy_from_slice(&octets[HEADER_LEN..]);
        Ok(Self {
            header: CellHeader::decode(header, form)?,
            payload,
        })
    }
    /// True for the last cell of an AAL5 PDU.
    #[must_use]
    pub const fn is_end(&self) -> bool {
        self.header.pti.is_end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header(vpi: u16, vci: u16, pti: u8, clp: bool) -> CellHeader {
        CellHeader {
            gfc: 0,
            vc: Vc::new(vpi, vci),
            pti: Pti::new(pti),
            clp,
        }
    }

    /// Headers whose HEC was computed by a script that shares no code with this crate.
    #[test]
    fn header_vectors() {
        let uni = [
            (header(0, 0, 0, false), [0, 0, 0, 0, 0x55]),
            (header(0, 0, 0, true), [0, 0, 0, 1, 0x52]),
            (header(0, 5, 0, false), [0, 0, 0, 0x50, 0xe2]),
            (header(0, 5, 1, false), [0, 0, 0, 0x52, 0xec]),
            (header(0, 16, 0, false), [0, 0, 1, 0, 0x40]),
            (header(0, 16, 1, false), [0, 0, 1, 2, 0x4e]),
            (header(0, 17, 0, false), [0, 0, 1, 0x10, 0x30]),
            (header(0, 18, 1, false), [0, 0, 1, 0x22, 0xae]),
            (header(1, 32, 1, false), [0, 0x10, 2, 2, 0xd3]),
            (header(0, 100, 1, true), [0, 0, 6, 0x43, 0xe5]),
            (header(3, 200, 5, false), [0, 0x30, 0x0c, 0x8a, 0xf7]),
            (header(3, 200, 4, false), [0, 0x30, 0x0c, 0x88, 0xf9]),
            (header(3, 4, 0, false), [0, 0x30, 0, 0x40, 0x73]),
        ];
        for (value, octets) in uni {
            assert_eq!(value.encode(HeaderForm::Uni), octets, "{value}");
            assert_eq!(CellHeader::decode(octets, HeaderForm::Uni), Ok(value));
        }
        let nni = header(4095, 65535, 7, true);
        assert_eq!(nni.encode(HeaderForm::Nni), [0xff, 0xff, 0xff, 0xff, 0x8b]);
    }

    /// Syndromes of the 40 single-bit errors; Wireshark has the same table.
    #[test]
    fn syndromes() {
        let table = [
            0x31, 0x9b, 0xce, 0x67, 0xb0, 0x58, 0x2c, 0x16, 0x0b, 0x86, 0x43, 0xa2, 0x51, 0xab,
            0xd6, 0x6b, 0xb6, 0x5b, 0xae, 0x57, 0xa8, 0x54, 0x2a, 0x15, 0x89, 0xc7, 0xe0, 0x70,
            0x38, 0x1c, 0x0e, 0x07, 0x80, 0x40, 0x20, 0x10, 0x08, 0x04, 0x02, 0x01,
        ];
        for (bit, syndrome) in table.into_iter().enumerate() {
            assert_eq!(WRONG_BIT[usize::from(syndrome as u8)], bit as u8);
        }
        assert_eq!(WRONG_BIT.iter().filter(|bit| **bit != NO_BIT).count(), 40);
    }

    #[test]
    fn receiver_modes() {
        let good = header(0, 100, 1, false).encode(HeaderForm::Uni);
        let wrong = |bits: &[usize]| {
            let mut octets = good;
            for bit in bits {
                octets[bit / 8] ^= 0x80 >> (bit % 8);
            }
            octets
        };
        let mut receiver = HecReceiver::default();
        let mut first = wrong(&[13]);
        assert_eq!(receiver.receive(&mut first), HecVerdict::Corrected(13));
        assert_eq!(first, good);
        // In detection mode even a single wrong bit costs the cell.
        assert_eq!(receiver.receive(&mut wrong(&[13])), HecVerdict::Discard);
        assert!(receiver.is_detecting());
        assert_eq!(receiver.receive(&mut good.clone()), HecVerdict::Good);
        assert_eq!(receiver.receive(&mut wrong(&[1, 2])), HecVerdict::Discard);
        assert!(receiver.is_detecting());
        assert_eq!(
            (receiver.good, receiver.corrected, receiver.discarded),
            (1, 1, 2)
        );
    }

    proptest! {
        #[test]
        fn any_word_round_trips(word: u32, nni: bool) {
            let form = if nni { HeaderForm::Nni } else { HeaderForm::Uni };
            let value = CellHeader::from_word(word, form);
            prop_assert_eq!(value.to_word(form), word);
            prop_assert_eq!(CellHeader::decode(value.encode(form), form), Ok(value));
        }
        #[test]
        fn any_single_bit_error_is_corrected(word: u32, bit in 0_usize..40) {
            let good = CellHeader::from_word(word, HeaderForm::Nni).encode(HeaderForm::Nni);
            let mut octets = good;
            octets[bit / 8] ^= 0x80 >> (bit % 8);
            prop_assert!(CellHeader::decode(octets, HeaderForm::Nni).is_err());
            let mut receiver = HecReceiver::default();
            prop_assert_eq!(receiver.receive(&mut octets), HecVerdict::Corrected(bit as u8));
            prop_assert_eq!(octets, good);
        }
        #[test]
        fn double_bit_errors_are_never_taken_as_good(word: u32, a in 0_usize..40, b in 0_usize..40) {
            prop_assume!(a != b);
            let mut octets = CellHeader::from_word(word, HeaderForm::Nni).encode(HeaderForm::Nni);
            for bit in [a, b] {
                octets[bit / 8] ^= 0x80 >> (bit % 8);
            }
            prop_assert_ne!(HecReceiver::default().receive(&mut octets), HecVerdict::Good);
        }
        #[test]
        fn cells_round_trip(word: u32, payload in proptest::array::uniform32(any::<u8>())) {
            let mut cell = Cell { header: CellHeader::from_word(word, HeaderForm::Uni), payload: [0xa5; 48] };
            cell.payload[..32].copy_from_slice(&payload);
            prop_assert_eq!(Cell::decode(&cell.encode(HeaderForm::Uni), HeaderForm::Uni), Ok(cell));
        }
    }
}
