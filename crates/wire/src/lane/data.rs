//! The header of LAN emulation data frames, and how they differ from control frames.

use crate::{DecodeError, MacAddr, Reader};

/// Smallest AAL5 SDU of an Ethernet data frame, octets: 2 of LECID and 60 of frame.
pub const MIN_DATA_SDU: usize = 62;

/// True if an SDU carries a control frame: its LECID field holds the marker FF00, which is not a valid LECID.
#[must_use]
pub fn is_control(sdu: &[u8]) -> bool {
    sdu.starts_with(&[0xff, 0x00])
}

/// An Ethernet data frame on a data direct, multicast send or multicast forward connection.
///
/// ```text
/// 0      2             8        14
/// | LECID | destination | source | type/length and data ... (no FCS) |
/// ```
/// Source: LUNI 1.0 §4.1.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataFrame<'a> {
    /// LECID of the sender, or 0.
    pub lecid: u16,
    /// Destination MAC address.
    pub destination: MacAddr,
    /// Source MAC address.
    pub source: MacAddr,
    /// The Ethernet frame, from the destination address on.
    pub frame: &'a [u8],
}

impl<'a> DataFrame<'a> {
    /// Decodes an SDU. Frames below the minimum length are accepted, as long as the header is complete.
    ///
    /// # Errors
    /// `Short` without a complete Ethernet header; `Value` if the SDU is a control frame.
    pub fn decode(sdu: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(sdu);
        let lecid = reader.u16("LECID")?;
        if lecid == 0xff00 {
            return Err(DecodeError::value("LECID", 0, lecid.into()));
        }
        let frame = reader.rest();
        let mut header = Reader::new(frame);
        let at = |mut e: DecodeError| {
            e.offset += 2;
            e
        };
        let destination = MacAddr(header.array("destination MAC").map_err(at)?);
        let source = MacAddr(header.array("source MAC").map_err(at)?);
        header.u16("type/length").map_err(at)?;
        Ok(Self {
            lecid,
            destination,
            source,
            frame,
        })
    }

    /// Encodes `frame` (an Ethernet frame without FCS) behind `lecid`, padded with zeros to the minimum.
    #[must_use]
    pub fn encode(lecid: u16, frame: &[u8]) -> Vec<u8> {
        let mut sdu = Vec::with_capacity((2 + frame.len()).max(MIN_DATA_SDU));
        sdu.extend_from_slice(&lecid.to_be_bytes());
        sdu.extend_from_slice(frame);
        if sdu.len() < MIN_DATA_SDU {
            sdu.resize(MIN_DATA_SDU, 0);
        }
        sdu
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_and_marker() {
        let mut frame = vec![0xff; 6];
        frame.extend([2, 0, 0, 0, 0, 0x31, 8, 6, 1]);
        let sdu = DataFrame::encode(3, &frame);
        assert_eq!(sdu.len(), MIN_DATA_SDU);
        assert!(!is_control(&sdu));
        let data = DataFrame::decode(&sdu).unwrap();
        assert_eq!(data.lecid, 3);
        assert!(data.destination.is_group());
        assert_eq!(data.source.to_string(), "02:00:00:00:00:31");
        assert_eq!(&data.frame[..frame.len()], &frame[..]);
        assert!(is_control(&[0xff, 0, 1, 1]));
        assert!(DataFrame::decode(&[0xff, 0, 1, 1, 0, 1]).is_err());
        assert_eq!(
            DataFrame::decode(&sdu[..13]).unwrap_err().field,
            "source MAC"
        );
    }
}
