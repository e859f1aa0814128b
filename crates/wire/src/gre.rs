//! GRE: the header in front of a packet that IP carries to the other end of a tunnel.
//!
//! ```text
//!  C R K S  reserved, version 0 (12) | protocol type (16)
//!  checksum (16) | reserved (16)       with C
//!  key (32)                            with K
//!  sequence number (32)                with S
//! ```
//!
//! NHRP over GRE (DMVPN) has the protocol type 2001 and no LLC. The key tells the tunnels of a router apart.
//!
//! Standards: RFC 2784, RFC 2890. Not implemented: the routing field of RFC 1701 (R), and version 1 (PPTP).

use crate::{DecodeError, Reader, nhrp};

/// Protocol number of GRE over IP. Source: RFC 2784 §3.
pub const IP_PROTOCOL: u8 = 47;
/// Protocol type of NHRP. Source: RFC 2332 §5.1, IANA.
pub const NHRP: u16 = 0x2001;

const CHECKSUM: u16 = 0x8000;
const ROUTING: u16 = 0x4000;
const KEY: u16 = 0x2000;
const SEQUENCE: u16 = 0x1000;
const VERSION: u16 = 7;

/// A header. The checksum is made where a header is encoded, and checked where one is decoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gre {
    /// Protocol type of the payload, mostly an EtherType.
    pub protocol: u16,
    /// True if the header has a checksum over itself and the payload.
    pub checksum: bool,
    /// The key.
    pub key: Option<u32>,
    /// The sequence number.
    pub sequence: Option<u32>,
}

impl Gre {
    /// Header and payload.
    #[must_use]
    pub fn wrap(&self, payload: &[u8]) -> Vec<u8> {
        let flag = |set: bool, flag| if set { flag } else { 0 };
        let flags = flag(self.checksum, CHECKSUM)
            | flag(self.key.is_some(), KEY)
            | flag(self.sequence.is_some(), SEQUENCE);
        let mut out = Vec::with_capacity(16 + payload.len());
        out.extend(flags.to_be_bytes());
        out.extend(self.protocol.to_be_bytes());
        if self.checksum {
            out.extend([0; 4]);
        }
        for word in [self.key, self.sequence].into_iter().flatten() {
            out.extend(word.to_be_bytes());
        }
        out.extend_from_slice(payload);
        if self.checksum {
            let sum = nhrp::internet_checksum(&out).to_be_bytes();
            if let Some(field) = out.get_mut(4..6) {
                field.copy_from_slice(&sum);
            }
        }
        out
    }
    /// Splits a packet into header and payload. Reserved bits are ignored.
    ///
    /// # Errors
    /// `Short` if the packet ends inside the header; `Value` for another version or a routing field; `Checksum`.
    pub fn decode(packet: &[u8]) -> Result<(Self, &[u8]), DecodeError> {
        let mut reader = Reader::new(packet);
        let flags = reader.u16("GRE flags")?;
        if flags & (VERSION | ROUTING) != 0 {
            return Err(DecodeError::value("GRE flags", 0, flags.into()));
        }
        let protocol = reader.u16("GRE protocol type")?;
        let checksum = flags & CHECKSUM != 0;
        if checksum {
            reader.u32("GRE checksum")?;
            if nhrp::internet_checksum(packet) != 0 {
                return Err(DecodeError::checksum("GRE checksum", 4));
            }
        }
        let mut word = |flag, field| -> Result<Option<u32>, DecodeError> {
            (flags & flag != 0).then(|| reader.u32(field)).transpose()
        };
        let header = Self {
            protocol,
            checksum,
            key: word(KEY, "GRE key")?,
            sequence: word(SEQUENCE, "GRE sequence number")?,
        };
        Ok((header, reader.rest()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Composed by hand from the figures of RFC 2784 §2.1 and RFC 2890 §2.
    #[test]
    fn headers_composed_by_hand() {
        let plain = Gre {
            protocol: NHRP,
            key: Some(42),
            ..Gre::default()
        };
        let octets = [0x20, 0, 0x20, 1, 0, 0, 0, 42, 7];
        assert_eq!(plain.wrap(&[7]), octets);
        assert_eq!(Gre::decode(&octets), Ok((plain, &[7][..])));
        let full = Gre {
            protocol: 0x0800,
            checksum: true,
            key: None,
            sequence: Some(1),
        };
        // The words without the checksum are 9000, 0800, 0001 and 0700, together 9f01.
        let octets = [0x90, 0, 8, 0, 0x60, 0xfe, 0, 0, 0, 0, 0, 1, 7, 0];
        assert_eq!(full.wrap(&[7, 0]), octets);
        assert_eq!(Gre::decode(&octets), Ok((full, &[7, 0][..])));
        let mut wrong = octets;
        wrong[12] = 6;
        assert_eq!(
            Gre::decode(&wrong).unwrap_err().kind,
            crate::ErrorKind::Checksum
        );
        assert!(Gre::decode(&[0x20, 1, 0x88, 0x0b]).is_err());
        for length in 0..8 {
            assert!(Gre::decode(&plain.wrap(&[])[..length]).is_err(), "{length}");
        }
    }

    proptest! {
        #[test]
        fn what_was_encoded_decodes(protocol: u16, checksum: bool, key: Option<u32>, sequence: Option<u32>,
                                    payload: Vec<u8>) {
            let header = Gre { protocol, checksum, key, sequence };
            let packet = header.wrap(&payload);
            prop_assert_eq!(Gre::decode(&packet), Ok((header, &payload[..])));
            let _ = Gre::decode(&payload);
        }
    }
}
