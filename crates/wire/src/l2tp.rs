//! The session header of L2TPv3 in front of data, over IP or over UDP, and the sublayers that carry sequence numbers.
//!
//! ```text
//!  over UDP first: T = 0, 11 bits | version 3 (4) | 16 bits       ignored by the receiver but for T and version
//!  session ID (32) | cookie (0, 4 or 8 octets) | sublayer (0 or 4 octets) | payload
//!  x S x x x x x x | sequence number (24)      default L2-specific sublayer
//!  x S x x T G C U | sequence number (24)      ATM-specific sublayer
//! ```
//!
//! The receiver has assigned session ID and cookie. How long the cookie is and which sublayer follows is known to both
//! ends and not sent. Session 0 over IP, and T over UDP, mark control messages. S says that the sequence number is
//! valid; 0 is a number like the others. In cell relay the payload is that of N-to-one mode ([`crate::pseudowire`]).
//!
//! Standards: RFC 3931 §4.1.1.1, §4.1.2.1 (headers), §4.6 (default sublayer); RFC 4454 §4.1 (ATM-specific sublayer),
//! §5.2 (cells). Not implemented: control messages.

use crate::pseudowire::AtmFlags;
use crate::{DecodeError, Reader};

/// Protocol number of L2TPv3 over IP. Source: RFC 3931 §4.1.1.
pub const IP_PROTOCOL: u8 = 115;
/// UDP port of L2TP. Source: RFC 3931 §4.1.2.
pub const UDP_PORT: u16 = 1701;
/// Octets of the longest header: over UDP, with cookie and sublayer.
pub const MAX_HEADER_LEN: usize = 4 + 4 + 8 + 4;
/// Mask of a sequence number.
pub const SEQUENCE_MASK: u32 = 0xff_ffff;

/// T of a control message, and the version.
const CONTROL: u16 = 0x8000;
const VERSION_MASK: u16 = 15;
const VERSION: u16 = 3;
/// S of a sublayer.
const SEQUENCED: u8 = 0x40;

/// Carrier of L2TPv3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// IP, protocol 115.
    Ip,
    /// UDP.
    Udp,
}

/// A packet, as far as the carrier's part of its header tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet<'a> {
    /// Data of a session: its ID, and what follows it.
    Data(u32, &'a [u8]),
    /// A control message.
    Control,
}

impl Carrier {
    /// Appends the header of a data message up to the session ID.
    pub fn encode(self, session: u32, out: &mut Vec<u8>) {
        if self == Self::Udp {
            out.extend(VERSION.to_be_bytes());
            out.extend([0, 0]);
        }
        out.extend(session.to_be_bytes());
    }
    /// Reads a header up to the session ID.
    ///
    /// # Errors
    /// `Short` if the packet ends before; `Value` with the version if it is not 3.
    pub fn decode(self, packet: &[u8]) -> Result<Packet<'_>, DecodeError> {
        let mut reader = Reader::new(packet);
        if self == Self::Udp {
            let flags = reader.u16("flags and version")?;
            let version = flags & VERSION_MASK;
            if version != VERSION {
                return Err(DecodeError::value("version", 0, version.into()));
            }
            if flags & CONTROL != 0 {
                return Ok(Packet::Control);
            }
            reader.u16("reserved")?;
        }
        Ok(match (reader.u32("session ID")?, self) {
            (0, Self::Ip) => Packet::Control,
            (session, _) => Packet::Data(session, reader.rest()),
        })
    }
}

/// A cookie of 0, 4 or 8 octets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cookie {
    octets: [u8; 8],
    length: usize,
}

impl Cookie {
    /// No cookie.
    pub const NONE: Self = Self {
        octets: [0; 8],
        length: 0,
    };
    /// A cookie of these octets; `None` unless there are 0, 4 or 8.
    #[must_use]
    pub fn new(octets: &[u8]) -> Option<Self> {
        let length = octets.len();
        let mut all = [0; 8];
        all.get_mut(..length)?.copy_from_slice(octets);
        matches!(length, 0 | 4 | 8).then_some(Self {
            octets: all,
            length,
        })
    }
    /// The octets.
    #[must_use]
    pub fn octets(&self) -> &[u8] {
        self.octets.get(..self.length).unwrap_or_default()
    }
}

/// The sublayer behind the cookie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sublayer {
    /// No sublayer: the payload follows at once.
    #[default]
    None,
    /// The default L2-specific sublayer.
    Default,
    /// The ATM-specific sublayer.
    Atm,
}

/// The contents of a sublayer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SublayerWord {
    /// The sequence number, 24 bits, if it is valid; higher bits are not sent.
    pub sequence: Option<u32>,
    /// Flags of the ATM-specific sublayer; without meaning in the default sublayer.
    pub flags: AtmFlags,
}

impl Sublayer {
    /// The octets of the sublayer, if the packet has it. Reserved bits are 0.
    #[must_use]
    pub fn octets(self, word: SublayerWord) -> Option<[u8; 4]> {
        let flags = match self {
            Self::None => return None,
            Self::Default => 0,
            Self::Atm => word.flags.bits(),
        };
        let sequenced = if word.sequence.is_some() {
            SEQUENCED
        } else {
            0
        };
        let [_, a, b, c] = word.sequence.unwrap_or_default().to_be_bytes();
        Some([sequenced | flags, a, b, c])
    }
    /// Appends the sublayer, if the packet has it. See [`Self::octets`].
    pub fn encode(self, word: SublayerWord, out: &mut Vec<u8>) {
        out.extend(self.octets(word).into_iter().flatten());
    }
    /// Reads the sublayer and returns it with what follows it. Reserved bits are ignored.
    ///
    /// # Errors
    /// `Short` if there are not enough octets.
    pub fn decode(self, octets: &[u8]) -> Result<(SublayerWord, &[u8]), DecodeError> {
        if self == Self::None {
            return Ok((SublayerWord::default(), octets));
        }
        let mut reader = Reader::new(octets);
        let flags = reader.u8("sublayer")?;
        let sequence = reader.u24("sequence number")?;
        let word = SublayerWord {
            sequence: (flags & SEQUENCED != 0).then_some(sequence),
            flags: match self {
                Self::Atm => AtmFlags::from_bits(flags),
                Self::None | Self::Default => AtmFlags::default(),
            },
        };
        Ok((word, reader.rest()))
    }
}

#[cfg(test)]
mod tests;
