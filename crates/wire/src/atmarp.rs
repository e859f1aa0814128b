//! ATMARP and InATMARP packets: which ATM address has this IP address, and the other way round.
//!
//! ```text
//!  0      2      4    5    6      8    9    10   11   12
//! | hrd  | pro  |shtl|sstl| op   |spln|thtl|tstl|tpln| source number, sub-address, IP; target likewise
//! ```
//!
//! Lengths may be zero: then nothing stands there. An ATM address is an NSAPA (structure 1), an E.164 number
//! (structure 2), or an E.164 number with an NSAPA as its sub-address (structure 3). In front of the packet
//! stands the LLC/SNAP prefix [`crate::llc::LlcSnap::Arp`].
//!
//! Standards: RFC 2225 §8. Not implemented: MARS (RFC 2022), which has a packet of its own.
//! Deviations: octets behind the last field are an error, as AAL5 gives the exact length.

use crate::{AtmAddress, DecodeError, Reader};
use core::fmt;
use std::net::Ipv4Addr;

/// Hardware type of ATM.
const HARDWARE: u16 = 0x0013;
/// Protocol type of IPv4.
const PROTOCOL: u16 = 0x0800;
/// Type bit of a type and length octet: E.164.
const TYPE_E164: u8 = 0x40;
/// Reserved bit of a type and length octet: must be zero.
const RESERVED: u8 = 0x80;

/// What a packet asks or says (`ar$op`). Unknown values are kept; receivers discard them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Operation(pub u16);

impl Operation {
    /// ATMARP_Request: who has the target IP address?
    pub const REQUEST: Self = Self(1);
    /// ATMARP_Reply: the source has it.
    pub const REPLY: Self = Self(2);
    /// InATMARP_Request: which IP address have you?
    pub const IN_REQUEST: Self = Self(8);
    /// InATMARP_Reply.
    pub const IN_REPLY: Self = Self(9);
    /// ATMARP_NAK: the server does not know.
    pub const NAK: Self = Self(10);
}

impl fmt::Debug for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::REQUEST => f.write_str("ATMARP_Request"),
            Self::REPLY => f.write_str("ATMARP_Reply"),
            Self::IN_REQUEST => f.write_str("InATMARP_Request"),
            Self::IN_REPLY => f.write_str("InATMARP_Reply"),
            Self::NAK => f.write_str("ATMARP_NAK"),
            Self(other) => write!(f, "operation {other}"),
        }
    }
}

/// An ATM number or sub-address of 0 to 20 octets; no octets is "null".
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Number {
    e164: bool,
    octets: Vec<u8>,
}

impl Number {
    /// Most octets.
    pub const MAX: usize = 20;

    /// Nothing.
    #[must_use]
    pub const fn null() -> Self {
        Self {
            e164: false,
            octets: Vec::new(),
        }
    }
    /// An E.164 number (its octets as the packet has them); `None` if longer than [`Self::MAX`].
    #[must_use]
    pub fn e164(octets: &[u8]) -> Option<Self> {
        (octets.len() <= Self::MAX).then(|| Self {
            e164: true,
            octets: octets.to_vec(),
        })
    }
    /// True if nothing is there.
    #[must_use]
    pub const fn is_null(&self) -> bool {
        self.octets.is_empty()
    }
    /// True if the type bit says E.164; means nothing for a null number.
    #[must_use]
    pub const fn is_e164(&self) -> bool {
        self.e164
    }
    /// The octets.
    #[must_use]
    pub fn octets(&self) -> &[u8] {
        &self.octets
    }
    /// The complete NSAPA that this is, if it is one.
    #[must_use]
    pub fn nsapa(&self) -> Option<AtmAddress> {
        let octets = self.octets.as_slice().try_into().ok();
        octets.filter(|_| !self.e164).map(AtmAddress)
    }

    /// Length fits into the six bits: at most 20.
    fn type_length(&self) -> u8 {
        let kind = if self.e164 { TYPE_E164 } else { 0 };
        kind | self.octets.len() as u8
    }
    fn decode(r: &mut Reader<'_>, field: &'static str, shape: Shape) -> Result<Self, DecodeError> {
        Ok(Self {
            e164: shape.e164,
            octets: r.take(field, shape.len)?.to_vec(),
        })
    }
}

impl From<AtmAddress> for Number {
    fn from(address: AtmAddress) -> Self {
        Self {
            e164: false,
            octets: address.0.to_vec(),
        }
    }
}

impl fmt::Debug for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(address) = self.nsapa() {
            return write!(f, "{address}");
        }
        if self.is_null() {
            return f.write_str("null");
        }
        f.write_str(if self.e164 { "e164:" } else { "nsapa:" })?;
        self.octets
            .iter()
            .try_for_each(|octet| write!(f, "{octet:02x}"))
    }
}

/// An ATM address: number and sub-address.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// The number.
    pub number: Number,
    /// The sub-address: an NSAPA behind an E.164 number, else null.
    pub sub: Number,
}

impl Address {
    /// True if there is no number.
    #[must_use]
    pub const fn is_null(&self) -> bool {
        self.number.is_null()
    }
    /// The NSAPA of structure 1, which is all that connections here are opened to.
    #[must_use]
    pub fn nsapa(&self) -> Option<AtmAddress> {
        self.number.nsapa().filter(|_| self.sub.is_null())
    }
}

impl From<AtmAddress> for Address {
    fn from(address: AtmAddress) -> Self {
        Self {
            number: address.into(),
            sub: Number::null(),
        }
    }
}

/// One half of a packet: an ATM address and an IP address, each may be absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Party {
    /// ATM address.
    pub atm: Address,
    /// IP address as it stands in the packet; see [`Self::ip`].
    pub protocol: Option<Ipv4Addr>,
}

impl Party {
    /// With both addresses.
    #[must_use]
    pub fn new(atm: AtmAddress, ip: Ipv4Addr) -> Self {
        Self {
            atm: atm.into(),
            protocol: Some(ip),
        }
    }
    /// The IP address; 0.0.0.0 in the packet is none. Source: RFC 2225 §8.4.
    #[must_use]
    pub fn ip(&self) -> Option<Ipv4Addr> {
        self.protocol.filter(|ip| !ip.is_unspecified())
    }
}

/// An ATMARP or InATMARP packet, without its LLC/SNAP prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// What it asks or says.
    pub op: Operation,
    /// Who sends it; in a NAK, who asked.
    pub source: Party,
    /// Who is meant.
    pub target: Party,
}

impl Packet {
    /// Most octets that a packet has.
    pub const MAX: usize = 12 + 4 * Number::MAX + 2 * 4;

    /// The negative answer: the request again, with another operation. Source: RFC 2225 §8.4.4.
    #[must_use]
    pub fn nak(&self) -> Self {
        Self {
            op: Operation::NAK,
            ..self.clone()
        }
    }

    /// As octets.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let Self { op, source, target } = self;
        let length = |ip: Option<Ipv4Addr>| if ip.is_some() { 4 } else { 0 };
        let mut out = Vec::with_capacity(Self::MAX);
        out.extend_from_slice(&HARDWARE.to_be_bytes());
        out.extend_from_slice(&PROTOCOL.to_be_bytes());
        out.push(source.atm.number.type_length());
        out.push(source.atm.sub.type_length());
        out.extend_from_slice(&op.0.to_be_bytes());
        out.push(length(source.protocol));
        out.push(target.atm.number.type_length());
        out.push(target.atm.sub.type_length());
        out.push(length(target.protocol));
        for party in [source, target] {
            out.extend_from_slice(party.atm.number.octets());
            out.extend_from_slice(party.atm.sub.octets());
            if let Some(ip) = party.protocol {
                out.extend_from_slice(&ip.octets());
            }
        }
        out
    }

    /// From octets.
    ///
    /// # Errors
    /// `Value` for another hardware or protocol type, a reserved bit, or a length that is not allowed;
    /// `Short` or `Trailing` if the lengths and the octets disagree.
    pub fn decode(octets: &[u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(octets);
        fixed(&mut r, "ar$hrd", HARDWARE)?;
        fixed(&mut r, "ar$pro", PROTOCOL)?;
        let shtl = Shape::decode(&mut r, "ar$shtl")?;
        let sstl = Shape::decode(&mut r, "ar$sstl")?;
        let op = Operation(r.u16("ar$op")?);
        let spln = protocol_length(&mut r, "ar$spln")?;
        let thtl = Shape::decode(&mut r, "ar$thtl")?;
        let tstl = Shape::decode(&mut r, "ar$tstl")?;
        let tpln = protocol_length(&mut r, "ar$tpln")?;
        let source = Party {
            atm: Address {
                number: Number::decode(&mut r, "ar$sha", shtl)?,
                sub: Number::decode(&mut r, "ar$ssa", sstl)?,
            },
            protocol: protocol(&mut r, "ar$spa", spln)?,
        };
        let target = Party {
            atm: Address {
                number: Number::decode(&mut r, "ar$tha", thtl)?,
                sub: Number::decode(&mut r, "ar$tsa", tstl)?,
            },
            protocol: protocol(&mut r, "ar$tpa", tpln)?,
        };
        r.finish("ar$tpa")?;
        Ok(Self { op, source, target })
    }
}

/// A type and length octet.
#[derive(Clone, Copy)]
struct Shape {
    e164: bool,
    len: usize,
}

impl Shape {
    fn decode(r: &mut Reader<'_>, field: &'static str) -> Result<Self, DecodeError> {
        let at = r.offset();
        let octet = r.u8(field)?;
        let len = usize::from(octet & !(TYPE_E164 | RESERVED));
        if octet & RESERVED != 0 || len > Number::MAX {
            return Err(DecodeError::value(field, at, octet.into()));
        }
        let e164 = octet & TYPE_E164 != 0;
        Ok(Self { e164, len })
    }
}

fn fixed(r: &mut Reader<'_>, field: &'static str, want: u16) -> Result<(), DecodeError> {
    let at = r.offset();
    let value = r.u16(field)?;
    if value == want {
        return Ok(());
    }
    Err(DecodeError::value(field, at, value.into()))
}

/// True if an IP address is there.
fn protocol_length(r: &mut Reader<'_>, field: &'static str) -> Result<bool, DecodeError> {
    let at = r.offset();
    match r.u8(field)? {
        0 => Ok(false),
        4 => Ok(true),
        other => Err(DecodeError::value(field, at, other.into())),
    }
}

fn protocol(
    r: &mut Reader<'_>,
    field: &'static str,
    there: bool,
) -> Result<Option<Ipv4Addr>, DecodeError> {
    if !there {
        return Ok(None);
    }
    r.array::<4>(field).map(|octets| Some(octets.into()))
}
