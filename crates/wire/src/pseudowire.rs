//! ATM pseudowires over MPLS: the control word, cells in N-to-one mode, and SDUs in AAL5-SDU mode.
//!
//! ```text
//!  31..28 | 27..24 | 23..22 | 21..16 | 15..0
//!  0000   | flags  | 0      | length | sequence number        the control word
//!  VPI (12) | VCI (16) | PTI (3) | CLP (1), then 48 octets     a cell in N-to-one mode: no HEC
//! ```
//!
//! The control word is optional in N-to-one mode and compulsory in AAL5-SDU mode. Its first four bits are 0; a packet
//! whose first four bits are 0001 belongs to the associated channel of the pseudowire ([`is_channel`]).
//!
//! In AAL5-SDU mode the flags are T (the payload is one cell in N-to-one form, for OAM), E (EFCI of the last cell), C
//! (CLP of any cell) and U (the lowest bit of the UU octet). The pseudowire stands for one VC, so no label of the VC is
//! sent, and neither are padding and trailer. The length of a packet below 64 octets, with the control word, is in the
//! length field, because an Ethernet may pad the frame. N-to-one mode, also that of T, sends 0 there.
//!
//! Standards: RFC 4385 §3 (first bits, sequence number), §5 (associated channel); RFC 4717 §5.1 (control word, length),
//! §8.1 (N-to-one), §10.1 (AAL5-SDU).
//! Not implemented: one-to-one and AAL5-PDU mode (RFC 4717 §9, §11), messages of the associated channel.

use crate::cell::{CELL_LEN, PAYLOAD_LEN};
use crate::{DecodeError, Reader};

/// Octets of the control word.
pub const WORD_LEN: usize = 4;
/// Octets of a cell's header without HEC.
pub const BARE_HEADER_LEN: usize = 4;
/// Octets of a cell without HEC.
pub const BARE_CELL_LEN: usize = BARE_HEADER_LEN + PAYLOAD_LEN;
/// Packets of fewer octets, with the control word, have their length in the control word. Source: RFC 4717 §5.1.2.
const LENGTH_LIMIT: usize = 64;

/// A cell without HEC: the four octets of its header at the NNI, and its payload.
pub type BareCell = [u8; BARE_CELL_LEN];

/// The control word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ControlWord {
    /// Flags of the mode, 0..=15; higher bits are not sent.
    pub flags: u8,
    /// Length of a short packet with the control word, or 0; 0..=63, higher bits are not sent.
    pub length: u8,
    /// Sequence number; 0 means that the sender does not number its packets.
    pub sequence: u16,
}

impl ControlWord {
    /// The octets. The two reserved bits are 0.
    #[must_use]
    pub const fn encode(self) -> [u8; WORD_LEN] {
        let [high, low] = self.sequence.to_be_bytes();
        [self.flags & 15, self.length & 63, high, low]
    }
    /// Reads a control word; the two reserved bits are ignored.
    ///
    /// # Errors
    /// `Value` with the first four bits if these are not 0.
    pub const fn decode([first, second, high, low]: [u8; WORD_LEN]) -> Result<Self, DecodeError> {
        if first >> 4 != 0 {
            let nibble = (first >> 4) as u32;
            return Err(DecodeError::value("control word", 0, nibble));
        }
        Ok(Self {
            flags: first,
            length: second & 63,
            sequence: u16::from_be_bytes([high, low]),
        })
    }
}

/// True if a packet of a pseudowire with control word belongs to the associated channel. Source: RFC 4385 §5.
#[must_use]
pub fn is_channel(packet: &[u8]) -> bool {
    packet.first().is_some_and(|first| first >> 4 == 1)
}

/// Appends a cell without its HEC.
pub fn put_cell(out: &mut Vec<u8>, [a, b, c, d, _, payload @ ..]: &[u8; CELL_LEN]) {
    out.extend([*a, *b, *c, *d]);
    out.extend(payload);
}

/// The cells of a payload in N-to-one mode, at least one.
///
/// # Errors
/// `Short` if there is no cell, or if the last cell is not whole.
pub fn cells(payload: &[u8]) -> Result<&[BareCell], DecodeError> {
    let (cells, rest) = payload.as_chunks::<BARE_CELL_LEN>();
    if cells.is_empty() || !rest.is_empty() {
        let offset = payload.len() - rest.len();
        return Err(DecodeError::short("cell", offset));
    }
    Ok(cells)
}

/// Flags of AAL5-SDU mode, or of the ATM-specific sublayer of L2TPv3, whose names are T, G, C and U.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AtmFlags {
    /// T: the payload is a cell, not an SDU.
    pub cell: bool,
    /// E or G: congestion was indicated (EFCI) in the last cell of the SDU, or in the cell.
    pub congested: bool,
    /// C: any cell of the SDU, or the cell, has CLP 1.
    pub clp: bool,
    /// U: the lowest bit of the UU octet (C/R of Frame Relay).
    pub command: bool,
}

impl AtmFlags {
    /// The four bits, 0..=15, T first.
    #[must_use]
    pub const fn bits(self) -> u8 {
        (self.cell as u8) << 3
            | (self.congested as u8) << 2
            | (self.clp as u8) << 1
            | self.command as u8
    }
    /// From the low four bits.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Self {
        Self {
            cell: bits & 8 != 0,
            congested: bits & 4 != 0,
            clp: bits & 2 != 0,
            command: bits & 1 != 0,
        }
    }
}

/// A packet in AAL5-SDU mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aal5Packet<'a> {
    /// The flags.
    pub flags: AtmFlags,
    /// Sequence number; 0 means that the sender does not number its packets.
    pub sequence: u16,
    /// The SDU; with T one cell in N-to-one form, which [`cells`] reads.
    pub payload: &'a [u8],
}

impl<'a> Aal5Packet<'a> {
    /// Appends the control word and the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let length = WORD_LEN + self.payload.len();
        // With T the payload is in N-to-one form, whose length field is 0. One cell needs no padding.
        let told = length < LENGTH_LIMIT && !self.flags.cell;
        let length = if told { length } else { 0 };
        let word = ControlWord {
            flags: self.flags.bits(),
            length: length as u8,
            sequence: self.sequence,
        };
        out.extend(word.encode());
        out.extend(self.payload);
    }
    /// Reads a packet; octets behind the length of a short packet are padding.
    ///
    /// # Errors
    /// `Short` if control word or payload is missing, or if the packet is shorter than its length field says. `Value`
    /// if the first four bits are not 0, if the length is that of a packet without payload, or if T does not come with
    /// one cell.
    pub fn decode(packet: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(packet);
        let word = ControlWord::decode(reader.array("control word")?)?;
        let length = usize::from(word.length);
        let payload = match length {
            0 => reader.rest(),
            _ if length <= WORD_LEN => {
                let length = u32::from(word.length);
                return Err(DecodeError::value("length", 1, length));
            }
            _ => reader.take("payload", length - WORD_LEN)?,
        };
        if payload.is_empty() {
            return Err(DecodeError::short("payload", WORD_LEN));
        }
        let flags = AtmFlags::from_bits(word.flags);
        if flags.cell && payload.len() != BARE_CELL_LEN {
            return Err(DecodeError::value("cell", WORD_LEN, payload.len() as u32));
        }
        Ok(Self {
            flags,
            sequence: word.sequence,
            payload,
        })
    }
}

#[cfg(test)]
mod tests;
