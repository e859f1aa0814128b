//! Test cells: the payload of cells by which a tester measures a connection, after ITU-T O.191.
//!
//! ```text
//!  sequence number | time stamp | unused, 6A | type | CRC-16
//!         4             4            37         1       2       octets
//! ```
//!
//! The sequence number counts the cells of a tester from 0 and wraps. The time stamp is the time of the sender in units
//! of 10 ns, and wraps after 42.9 s. The CRC has the polynomial x^16 + x^12 + x^5 + 1, begins with ones, and covers the
//! 46 octets before it.
//!
//! Standards: ITU-T O.191 (02/2000) §6.2, from memory: the text was not available. The widths agree with manuals of
//! testers as far as these give them (4 octets of stamps in units of 10 ns, a CRC of 16 bits). Not implemented:
//! scrambling of the payload (Annex C). Deviations: the value of the type and the first value of the CRC are our own.
//! So testers of others are not expected to understand these cells.

use crate::cell::PAYLOAD_LEN;
use core::fmt;

/// The type of test cells. Our own value.
const TYPE: u8 = 0x01;
/// The unused octets.
const FILL: u8 = 0x6a;
/// Where type and CRC begin.
const TYPE_AT: usize = 45;
const CRC_AT: usize = 46;

/// A test cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TestCell {
    /// Number of the cell.
    pub sequence: u32,
    /// Time of the sender, units of 10 ns.
    pub stamp: u32,
}

/// Why a payload is no test cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoTestCell {
    /// The CRC is wrong: the payload was damaged.
    Damaged,
    /// The CRC is right, and the cell is not that of a tester.
    Foreign,
}

impl fmt::Display for NoTestCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Damaged => "the CRC-16 of the test cell is wrong",
            Self::Foreign => "the cell is no test cell",
        })
    }
}

impl TestCell {
    /// The payload.
    #[must_use]
    pub fn encode(self) -> [u8; PAYLOAD_LEN] {
        let mut payload = [FILL; PAYLOAD_LEN];
        payload[..4].copy_from_slice(&self.sequence.to_be_bytes());
        payload[4..8].copy_from_slice(&self.stamp.to_be_bytes());
        payload[TYPE_AT] = TYPE;
        let crc = crc16(&payload[..CRC_AT]);
        payload[CRC_AT..].copy_from_slice(&crc.to_be_bytes());
        payload
    }

    /// The test cell of a payload.
    ///
    /// # Errors
    /// [`NoTestCell`].
    pub fn decode(payload: &[u8; PAYLOAD_LEN]) -> Result<Self, NoTestCell> {
        let (body, crc) = payload.split_at(CRC_AT);
        if crc != crc16(body).to_be_bytes() {
            return Err(NoTestCell::Damaged);
        }
        let (numbers, rest) = body.split_at(8);
        let (fill, kind) = rest.split_at(TYPE_AT - 8);
        if kind != [TYPE] || fill.iter().any(|octet| *octet != FILL) {
            return Err(NoTestCell::Foreign);
        }
        let mut r = crate::Reader::new(numbers);
        let mut next = || r.u32("test_cell.number").map_err(|_| NoTestCell::Foreign);
        Ok(Self {
            sequence: next()?,
            stamp: next()?,
        })
    }
}

/// CRC-16 with x^16 + x^12 + x^5 + 1, first value FFFF, without reflection or inversion.
fn crc16(octets: &[u8]) -> u16 {
    octets.iter().fold(0xffff, |crc: u16, octet| {
        let crc = crc ^ u16::from(*octet) << 8;
        (0..8).fold(crc, |crc, _| {
            crc << 1 ^ if crc & 0x8000 == 0 { 0 } else { 0x1021 }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The check value of this CRC in the catalogue of parametrised CRC algorithms (CRC-16/IBM-3740).
    #[test]
    fn the_crc_is_that_of_the_catalogue() {
        assert_eq!(crc16(b"123456789"), 0x29b1);
    }

    #[test]
    fn octets_of_a_cell() {
        let cell = TestCell {
            sequence: 0x0102_0304,
            stamp: 0xa0b0_c0d0,
        };
        let payload = cell.encode();
        assert_eq!(payload[..8], [1, 2, 3, 4, 0xa0, 0xb0, 0xc0, 0xd0]);
        assert_eq!(
            (payload[8..45].iter().all(|o| *o == 0x6a), payload[45]),
            (true, 1)
        );
        assert_eq!(TestCell::decode(&payload), Ok(cell));
        // A cell of others with a CRC that happens to be right.
        let mut other = [0; PAYLOAD_LEN];
        let crc = crc16(&other[..46]);
        other[46..].copy_from_slice(&crc.to_be_bytes());
        assert_eq!(TestCell::decode(&other), Err(NoTestCell::Foreign));
        assert_eq!(
            TestCell::decode(&[0; PAYLOAD_LEN]),
            Err(NoTestCell::Damaged)
        );
    }

    proptest! {
        /// Every burst of errors of at most 16 bits is found.
        #[test]
        fn damage_is_found(sequence: u32, stamp: u32, at in 0_usize..384, burst in 1_u16..) {
            let cell = TestCell { sequence, stamp };
            let mut payload = cell.encode();
            prop_assert_eq!(TestCell::decode(&payload), Ok(cell));
            for bit in (0..16).filter(|bit| burst >> bit & 1 == 1) {
                if let Some(octet) = payload.get_mut((at + bit) / 8) {
                    *octet ^= 0x80 >> ((at + bit) % 8);
                }
            }
            prop_assume!(payload != cell.encode());
            prop_assert_eq!(TestCell::decode(&payload), Err(NoTestCell::Damaged));
        }

        #[test]
        fn any_octets(payload: [u8; 32], rest: [u8; 16]) {
            let mut all = [0; PAYLOAD_LEN];
            all[..32].copy_from_slice(&payload);
            all[32..].copy_from_slice(&rest);
            let _ = TestCell::decode(&all);
        }
    }
}
