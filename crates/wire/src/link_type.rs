//! Headers that capture tools put in front of packets: SUNATM, ERF and Linux cooked captures.
//!
//! ```text
//!  SUNATM  direction (1) traffic type (7 bits) | VPI (8) | VCI (16) | SDU
//!  ERF     time (64, little endian) | type | flags | record length (16) | losses (16) | wire length (16) | record
//!  SLL     type (16) | ARPHRD (16) | address length (16) | address (64) | protocol (16) | payload
//!  SLL2    protocol (16) | reserved (16) | interface (32) | ARPHRD (16) | type (8) | length (8) | address (64) | then
//! ```
//!
//! [`crate::pcapng`] writes SUNATM and ERF.
//!
//! Standards: LINKTYPE_SUNATM, LINKTYPE_ERF, LINKTYPE_LINUX_SLL and LINKTYPE_LINUX_SLL2 of the libpcap registry;
//! Endace's ERF types 2 to 4, 7 and 9. Not implemented: further ERF types, whose records are [`ErfRecord::Other`].

use crate::cell::{CellHeader, HeaderForm};
use crate::{DecodeError, Reader, Vc};

/// Numbers of the libpcap registry.
pub mod number {
    /// Ethernet.
    pub const ETHERNET: u32 = 1;
    /// LLC/SNAP on ATM: the number that BSD systems, and old files, have for 100.
    pub const ATM_RFC1483_BSD: u32 = 11;
    /// Raw IP, as some systems wrote it.
    pub const RAW_OLD: [u32; 2] = [12, 14];
    /// Linux Classical IP: LLC/SNAP, or an IP packet at once.
    pub const ATM_CLIP: u32 = 19;
    /// LLC/SNAP on ATM.
    pub const ATM_RFC1483: u32 = 100;
    /// Raw IP.
    pub const RAW: u32 = 101;
    /// Linux cooked capture.
    pub const LINUX_SLL: u32 = 113;
    /// SUNATM.
    pub const SUNATM: u32 = 123;
    /// ERF.
    pub const ERF: u32 = 197;
    /// Raw IPv4.
    pub const IPV4: u32 = 228;
    /// Raw IPv6.
    pub const IPV6: u32 = 229;
    /// Linux cooked capture, version 2.
    pub const LINUX_SLL2: u32 = 276;
}

/// A packet of SUNATM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SunAtm<'a> {
    /// True for a packet that the capturing end sent (in Wireshark's words from DTE to DCE).
    pub sent: bool,
    /// Connection.
    pub vc: Vc,
    /// The SDU.
    pub sdu: &'a [u8],
}

impl<'a> SunAtm<'a> {
    /// Reads a packet; the traffic type is a guess of its writer, and is ignored.
    ///
    /// # Errors
    /// `Short` if the header is not complete.
    pub fn decode(packet: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(packet);
        let flags = reader.u8("SUNATM flags")?;
        let vpi = reader.u8("VPI")?;
        let vci = reader.u16("VCI")?;
        Ok(Self {
            sent: flags & 0x80 != 0,
            vc: Vc::new(vpi.into(), vci),
            sdu: reader.rest(),
        })
    }
}

/// The content of an ERF record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErfRecord<'a> {
    /// A cell without its HEC: header, and what there is of the payload.
    Cell(CellHeader, &'a [u8]),
    /// A CPCS-PDU with padding and trailer, behind the header of its cells.
    Pdu(CellHeader, &'a [u8]),
    /// An Ethernet frame, perhaps with its FCS.
    Ethernet(&'a [u8]),
    /// A record of another type.
    Other(u8),
}

/// An ERF record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Erf<'a> {
    /// Port of the card, 0 to 3. Wireshark takes port 0 for DTE to DCE.
    pub port: u8,
    /// True if the record was cut off.
    pub cut: bool,
    /// The content.
    pub record: ErfRecord<'a>,
}

impl<'a> Erf<'a> {
    /// Reads a record.
    ///
    /// # Errors
    /// `Short` if a header is not complete.
    pub fn decode(packet: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(packet);
        reader.take("ERF time", 8)?;
        let kind = reader.u8("ERF type")?;
        let port = reader.u8("ERF flags")? & 3;
        reader.u32("ERF record length")?;
        let wire = usize::from(reader.u16("ERF wire length")?);
        let mut more = kind & 0x80 != 0;
        while more {
            let extension: [u8; 8] = reader.array("ERF extension header")?;
            more = extension[0] & 0x80 != 0;
        }
        let kind = kind & 0x7f;
        if matches!(kind, 7 | 9) {
            reader.take("ERF multichannel header", 4)?;
        }
        let record = match kind {
            2 => {
                reader.take("ERF Ethernet padding", 2)?;
                ErfRecord::Ethernet(reader.rest())
            }
            3 | 4 | 7 | 9 => {
                let word = reader.u32("cell header")?;
                let header = CellHeader::from_word(word, HeaderForm::Nni);
                match kind {
                    3 | 7 => ErfRecord::Cell(header, reader.rest()),
                    _ => ErfRecord::Pdu(header, reader.rest()),
                }
            }
            other => ErfRecord::Other(other),
        };
        let cut = match record {
            ErfRecord::Pdu(_, octets) => octets.len() + 4 < wire,
            _ => false,
        };
        Ok(Self { port, cut, record })
    }
}

/// A packet of a Linux cooked capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cooked<'a> {
    /// True for a packet that this machine sent.
    pub sent: bool,
    /// Protocol: an EtherType, or on a GRE interface the protocol type of GRE.
    pub protocol: u16,
    /// Octets behind the header.
    pub payload: &'a [u8],
}

/// Packet type of packets that leave.
const OUTGOING: u16 = 4;

impl<'a> Cooked<'a> {
    /// Reads a packet of LINKTYPE_LINUX_SLL.
    ///
    /// # Errors
    /// `Short` if the header is not complete.
    pub fn decode(packet: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(packet);
        let kind = reader.u16("SLL packet type")?;
        reader.take("SLL address", 12)?;
        Ok(Self {
            sent: kind == OUTGOING,
            protocol: reader.u16("SLL protocol")?,
            payload: reader.rest(),
        })
    }
    /// Reads a packet of LINKTYPE_LINUX_SLL2.
    ///
    /// # Errors
    /// `Short` if the header is not complete.
    pub fn decode_2(packet: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(packet);
        let protocol = reader.u16("SLL2 protocol")?;
        reader.take("SLL2 interface", 8)?;
        let kind = reader.u8("SLL2 packet type")?;
        reader.take("SLL2 address", 9)?;
        Ok(Self {
            sent: u16::from(kind) == OUTGOING,
            protocol,
            payload: reader.rest(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Composed by hand from the figures of the registry.
    #[test]
    fn headers_composed_by_hand() {
        let sun = SunAtm::decode(&[0x86, 1, 0, 5, 9]).unwrap();
        assert_eq!((sun.sent, sun.vc, sun.sdu), (true, Vc::new(1, 5), &[9][..]));
        let mut sll = vec![0, 4, 3, 10, 0, 4];
        sll.extend([0; 8]);
        sll.extend([0x20, 1, 7]);
        let cooked = Cooked::decode(&sll).unwrap();
        assert_eq!((cooked.sent, cooked.protocol), (true, 0x2001));
        assert_eq!(cooked.payload, [7]);
        let mut sll2 = vec![0x20, 1, 0, 0, 0, 0, 0, 3, 3, 10, 0, 4];
        sll2.extend([0; 8]);
        sll2.push(7);
        let cooked = Cooked::decode_2(&sll2).unwrap();
        assert_eq!((cooked.sent, cooked.protocol), (false, 0x2001));
        assert_eq!(cooked.payload, [7]);
        // Type 3 with an extension header; VPI 0, VCI 33, last cell.
        let mut erf = vec![0; 8];
        erf.extend([0x83, 4, 0, 80, 0, 0, 0, 52]);
        erf.extend([5, 0, 0, 0, 0, 0, 0, 0]);
        erf.extend([0, 0, 2, 0x12]);
        erf.extend([1; 48]);
        let record = Erf::decode(&erf).unwrap();
        let ErfRecord::Cell(header, payload) = record.record else {
            panic!("{record:?}");
        };
        assert_eq!((header.vc, payload), (Vc::new(0, 33), &[1; 48][..]));
        assert!(header.pti.is_end() && !record.cut);
    }

    proptest! {
        #[test]
        fn any_octets_are_read_or_refused(octets: Vec<u8>) {
            let _ = (SunAtm::decode(&octets), Erf::decode(&octets));
            let _ = (Cooked::decode(&octets), Cooked::decode_2(&octets));
        }
    }
}
