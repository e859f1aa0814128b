//! PDUs of ATP, the ATM Transport Protocol of the University of Hawaii: four octets of header in front of the data.
//!
//! ```text
//!  31   30   29                                  0
//! +----+----+-------------------------------------+
//! | L  | K  | sequence number                     |   L: last packet of a message
//! +----+----+-------------------------------------+   K: acknowledgement
//! | data                                          |
//! +-----------------------------------------------+
//! ```
//!
//! One PDU is one AAL5 SDU. The CRC of AAL5 protects it: ATP has no checksum of its own. A PDU without data is an ACK
//! or a NAK, except for the last packet of a message that ends with an empty packet.
//!
//! **Standards.** The report (Z. Yang, *ATP Implementation and Performance*, University of Hawaii, 1999) names three
//! fields in four octets: a sequence number, a bit for the last packet, and a bit for ACK and NAK.
//!
//! **Deviations.** The report gives no layout. The order of the bits, the width of the sequence number (30 bits) and
//! the way in which data, ACK and NAK differ (a PDU of four octets without L is control) are Aerostat's own.

use crate::{DecodeError, Reader};

/// Octets of the header.
pub const HEADER_LEN: usize = 4;
/// Smallest MTU: the header and one octet of data.
pub const MIN_MTU: usize = HEADER_LEN + 1;

const LAST: u32 = 1 << 31;
const ACK: u32 = 1 << 30;

/// A sequence number of packets, 30 bits, which counts the packets of a direction over all of its messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Seq30(u32);

impl Seq30 {
    /// The number modulo 2³⁰.
    #[must_use]
    pub const fn new(number: u32) -> Self {
        Self(number & (ACK - 1))
    }
    /// The number, 0..2³⁰.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
    /// The signed distance from `from` to this number, -2²⁹..2²⁹.
    #[must_use]
    pub const fn distance(self, from: Self) -> i32 {
        // The upper two bits of the difference are shifted out, and the sign comes back in.
        (self.0.wrapping_sub(from.0) << 2) as i32 >> 2
    }
}

/// A PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pdu<'a> {
    /// A packet of a message.
    Data {
        /// Its number.
        seq: Seq30,
        /// True for the last packet of a message. A packet without octets is the last one, whatever this says.
        last: bool,
        /// Its octets of the message, at most the MTU less [`HEADER_LEN`].
        octets: &'a [u8],
    },
    /// The receiver has this packet; with cumulative acknowledgements, all packets up to this one.
    Ack(Seq30),
    /// The receiver lacks this packet and asks for it.
    Nak(Seq30),
}

impl<'a> Pdu<'a> {
    /// Reads one SDU.
    ///
    /// # Errors
    /// `Short` below four octets; `Value` with the upper two bits of the header for an ACK bit where data or an end of
    /// a message is.
    pub fn decode(sdu: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(sdu);
        let word = reader.u32("ATP header")?;
        let octets = reader.rest();
        let (last, ack, seq) = (word & LAST != 0, word & ACK != 0, Seq30::new(word));
        match (octets.is_empty(), last, ack) {
            (true, false, true) => Ok(Self::Ack(seq)),
            (true, false, false) => Ok(Self::Nak(seq)),
            (_, last, false) => Ok(Self::Data { seq, last, octets }),
            (_, _, true) => Err(DecodeError::value("ATP flags", 0, word >> 30)),
        }
    }
    /// The SDU.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let (word, octets) = match *self {
            Self::Data { seq, last, octets } => match last || octets.is_empty() {
                true => (seq.0 | LAST, octets),
                false => (seq.0, octets),
            },
            Self::Ack(seq) => (seq.0 | ACK, &[][..]),
            Self::Nak(seq) => (seq.0, &[][..]),
        };
        let mut sdu = Vec::with_capacity(HEADER_LEN + octets.len());
        sdu.extend(word.to_be_bytes());
        sdu.extend(octets);
        sdu
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;
    use proptest::prelude::*;

    const FIVE: Seq30 = Seq30(5);

    /// Composed by hand from the figure above: no other implementation of these four octets is known.
    #[test]
    fn all_combinations_of_the_flags() {
        let data = |last, octets| Pdu::Data {
            seq: FIVE,
            last,
            octets,
        };
        let good: [(&[u8], Pdu<'_>); 6] = [
            (&[0, 0, 0, 5, 7], data(false, &[7])),
            (&[0x80, 0, 0, 5, 7], data(true, &[7])),
            (&[0x80, 0, 0, 5], data(true, &[])),
            (&[0x40, 0, 0, 5], Pdu::Ack(FIVE)),
            (&[0, 0, 0, 5], Pdu::Nak(FIVE)),
            (&[0x3f, 0xff, 0xff, 0xff], Pdu::Nak(Seq30::new(u32::MAX))),
        ];
        for (octets, pdu) in good {
            assert_eq!(Pdu::decode(octets), Ok(pdu));
            assert_eq!(pdu.encode(), octets);
        }
        assert_eq!(data(false, &[]).encode(), [0x80, 0, 0, 5]);
        for bad in [
            &[0xc0, 0, 0, 5][..],
            &[0xc0, 0, 0, 5, 1],
            &[0x40, 0, 0, 5, 1],
        ] {
            let error = Pdu::decode(bad).unwrap_err();
            let flags = u32::from(bad[0] >> 6);
            assert_eq!((error.offset, error.kind), (0, ErrorKind::Value(flags)));
        }
        for short in 0..4 {
            let error = Pdu::decode(&[0; 4][..short]).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Short);
        }
    }

    #[test]
    fn distances_wrap() {
        let far = Seq30::new(1 << 29);
        for (to, from, distance) in [
            (FIVE, FIVE, 0),
            (Seq30::new(0), Seq30::new(u32::MAX), 1),
            (Seq30::new(u32::MAX), Seq30::new(0), -1),
            (far, Seq30::new(0), -(1 << 29)),
            (Seq30::new((1 << 29) - 1), Seq30::new(0), (1 << 29) - 1),
        ] {
            assert_eq!(to.distance(from), distance);
        }
    }

    proptest! {
        #[test]
        fn any_octets_decode_to_what_encodes_to_them(octets in prop::collection::vec(any::<u8>(), 0..12)) {
            if let Ok(pdu) = Pdu::decode(&octets) {
                prop_assert_eq!(pdu.encode(), octets);
            }
        }
    }
}
