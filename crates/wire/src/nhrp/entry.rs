//! Repeated parts of a packet: client information entries and extensions.

use super::address::{NbmaAddress, ProtocolAddress, type_length};
use super::ext;
use crate::{DecodeError, Reader};

/// A client information entry. Source: RFC 2332 §5.2.0.1.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cie {
    /// Result ([`super::code`], and for MPOA `mpoa::code`).
    pub code: u8,
    /// Prefix length in bits; 0 and 255 mean that no prefix length is given.
    pub prefix: u8,
    /// Unused field; kept.
    pub unused: u16,
    /// Largest transmission unit, octets; 0 means the default.
    pub mtu: u16,
    /// Holding time, s.
    pub holding_s: u16,
    /// Preference: higher is better.
    pub preference: u8,
    /// NBMA address of the client.
    pub nbma: NbmaAddress,
    /// NBMA sub-address of the client.
    pub nbma_sub: NbmaAddress,
    /// Protocol address of the client.
    pub protocol: ProtocolAddress,
}

impl Cie {
    /// An entry that carries only a prefix length and a holding time.
    #[must_use]
    pub fn brief(prefix: u8, holding_s: u16) -> Self {
        Self {
            prefix,
            holding_s,
            ..Self::default()
        }
    }
    /// Appends the entry's octets.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend([self.code, self.prefix]);
        out.extend(self.unused.to_be_bytes());
        out.extend(self.mtu.to_be_bytes());
        out.extend(self.holding_s.to_be_bytes());
        out.extend([self.nbma.type_length(), self.nbma_sub.type_length()]);
        out.extend([self.protocol.length(), self.preference]);
        out.extend(self.nbma.octets());
        out.extend(self.nbma_sub.octets());
        out.extend(self.protocol.octets());
    }
    /// Decodes one entry. Extensions of NHRP contain entries, too.
    ///
    /// # Errors
    /// If a field is short or a type/length octet has its reserved bit set.
    pub fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let code = r.u8("code")?;
        let prefix = r.u8("prefix length")?;
        let unused = r.u16("unused")?;
        let mtu = r.u16("maximum transmission unit")?;
        let holding_s = r.u16("holding time")?;
        let nbma_tl = type_length(r, "client address T/L")?;
        let sub_tl = type_length(r, "client sub-address T/L")?;
        let protocol_len = r.u8("client protocol length")?;
        let preference = r.u8("preference")?;
        Ok(Self {
            code,
            prefix,
            unused,
            mtu,
            holding_s,
            preference,
            nbma: NbmaAddress::decode(r, nbma_tl, "client NBMA address")?,
            nbma_sub: NbmaAddress::decode(r, sub_tl, "client NBMA sub-address")?,
            protocol: ProtocolAddress::decode(r, protocol_len, "client protocol address")?,
        })
    }
}

/// One extension: C bit, u bit and 14-bit type in one field, then the value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extension {
    /// The type field as on the wire, with the C bit (0x8000) and the u bit (0x4000).
    pub type_field: u16,
    /// The value, at most 65535 octets.
    pub value: Vec<u8>,
}

impl Extension {
    /// The C bit.
    pub const COMPULSORY: u16 = 0x8000;
    /// An extension of type `kind` (14 bits) without the C bit.
    #[must_use]
    pub fn new(kind: u16, value: Vec<u8>) -> Self {
        Self {
            type_field: kind & 0x3fff,
            value,
        }
    }
    /// The same with the C bit: a receiver that does not know the extension must refuse the packet.
    #[must_use]
    pub fn compulsory(kind: u16, value: Vec<u8>) -> Self {
        Self {
            type_field: kind & 0x3fff | Self::COMPULSORY,
            value,
        }
    }
    /// The type, without C and u bits.
    #[must_use]
    pub fn kind(&self) -> u16 {
        self.type_field & 0x3fff
    }
    /// True if the C bit is set.
    #[must_use]
    pub fn is_compulsory(&self) -> bool {
        self.type_field & Self::COMPULSORY != 0
    }
}

/// Reads the list from offset `at` to its end marker. The end marker must be the last extension of the packet.
pub(super) fn decode_extensions(octets: &[u8], at: usize) -> Result<Vec<Extension>, DecodeError> {
    let mut r = Reader::new(octets);
    r.take("mandatory part", at)?;
    let mut list = Vec::new();
    loop {
        let at = r.offset();
        let type_field = r.u16("extension type")?;
        let len = r.u16("extension length")?;
        if type_field & 0x3fff == ext::END {
            if type_field != Extension::COMPULSORY {
                return Err(DecodeError::value(
                    "end of extensions",
                    at,
                    type_field.into(),
                ));
            }
            if len != 0 {
                return Err(DecodeError::value(
                    "end of extensions length",
                    at + 2,
                    len.into(),
                ));
            }
            r.finish("end of extensions")?;
            return Ok(list);
        }
        let value = r.take("extension value", len.into())?.to_vec();
        list.push(Extension { type_field, value });
    }
}
