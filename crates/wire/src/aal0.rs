//! Single cells between a program and the ATM layer: "AAL0".
//!
//! An SDU is one cell without its HEC: the first four octets of the header at the UNI as one number in the order of the
//! machine, then 48 octets of payload. Nothing is added, checked or repeated: a lost cell is an SDU that does not come.
//!
//! A program chooses payload type and CLP. The label in the header counts on arrival only, where it is the label of the
//! receiver's end: a sender's cells go out with the label of its connection, and its GFC is not sent.
//!
//! Standards: none. 52 octets is `ATM_AAL0_SDU` of `<linux/atm.h>`, and the fields of the header are its `ATM_HDR_*`.
//! Debian's `atmdump` reads the number in the order of the machine.
//! Not implemented: cells of OAM and resource management. OAM cells are the adapter's matter.

use crate::cell::{CellHeader, HeaderForm, PAYLOAD_LEN, Pti};
use crate::{DecodeError, ErrorKind, Vc};

/// Octets of an SDU.
pub const SDU_LEN: usize = 4 + PAYLOAD_LEN;

/// A cell of user data, as a program gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserCell {
    /// Payload type: user data, 0..=3.
    pub pti: Pti,
    /// Cell loss priority: true is discard-eligible.
    pub clp: bool,
    /// The payload.
    pub payload: [u8; PAYLOAD_LEN],
}

impl UserCell {
    /// The SDU of this cell on a label.
    #[must_use]
    pub fn encode(&self, vc: Vc) -> [u8; SDU_LEN] {
        let header = CellHeader {
            gfc: 0,
            vc,
            pti: self.pti,
            clp: self.clp,
        };
        let mut sdu = [0; SDU_LEN];
        let (head, payload) = sdu.split_at_mut(4);
        head.copy_from_slice(&header.to_word(HeaderForm::Uni).to_ne_bytes());
        payload.copy_from_slice(&self.payload);
        sdu
    }

    /// The cell of an SDU. Its label and GFC are not looked at.
    ///
    /// # Errors
    /// `Short` or `Trailing` if there are not 52 octets, `Value` if the payload type is not that of user data.
    pub fn decode(sdu: &[u8]) -> Result<Self, DecodeError> {
        let parts = sdu.split_first_chunk::<4>();
        let parts = parts.and_then(|(head, rest)| Some((*head, rest.try_into().ok()?)));
        let Some((head, payload)) = parts else {
            return Err(DecodeError {
                field: "aal0.sdu",
                offset: sdu.len().min(SDU_LEN),
                kind: match sdu.len() {
                    0..SDU_LEN => ErrorKind::Short,
                    _ => ErrorKind::Trailing,
                },
            });
        };
        let header = CellHeader::from_word(u32::from_ne_bytes(head), HeaderForm::Uni);
        if !header.pti.is_user() {
            return Err(DecodeError::value("aal0.pti", 0, header.pti.value().into()));
        }
        Ok(Self {
            pti: header.pti,
            clp: header.clp,
            payload,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_header_is_that_of_the_uni() {
        let cell = UserCell {
            pti: Pti::new(3),
            clp: true,
            payload: [0xa5; PAYLOAD_LEN],
        };
        let sdu = cell.encode(Vc::new(0x12, 0x3456));
        // I.361 §2.2: GFC 0, VPI 12, VCI 3456, PTI 011, CLP 1.
        let head = 0x0123_4567_u32.to_ne_bytes();
        assert_eq!((&sdu[..4], sdu[4]), (&head[..], 0xa5));
        assert_eq!(UserCell::decode(&sdu), Ok(cell));
    }

    #[test]
    fn errors_say_where() {
        let at = |sdu: &[u8]| UserCell::decode(sdu).map_err(|e| (e.field, e.offset));
        for len in [0, 3, 4, 48, 51, 53, 1000] {
            assert_eq!(at(&vec![0; len]), Err(("aal0.sdu", len.min(SDU_LEN))));
        }
        for pti in 0..8_u8 {
            let mut sdu = [0; SDU_LEN];
            sdu[..4].copy_from_slice(&u32::from(pti << 1).to_ne_bytes());
            assert_eq!(at(&sdu).is_ok(), pti < 4, "{pti}");
        }
    }

    proptest! {
        #[test]
        fn what_decodes_encodes_again(octets in prop::collection::vec(any::<u8>(), 0..60)) {
            if let Ok(cell) = UserCell::decode(&octets) {
                let word = u32::from_ne_bytes([octets[0], octets[1], octets[2], octets[3]]);
                let vc = CellHeader::from_word(word, HeaderForm::Uni).vc;
                let sdu = cell.encode(vc);
                // The GFC is not kept.
                prop_assert_eq!(&sdu[..4], &(word & 0x0fff_ffff).to_ne_bytes());
                prop_assert_eq!(&sdu[4..], &octets[4..]);
            }
        }
    }
}
