//! ATMARP and InATMARP: which ATM address an IP address has, and the reverse. LLC/SNAP type 0806.
//!
//! **Format** (12 octets, then fields of the lengths that they say): `ar$hrd` 0013, `ar$pro` 0800, type and length of
//! the source's ATM number and subaddress, `ar$op`, length of the source's IP address, the same for the target; then
//! source number, subaddress and IP address, and the target's. A length octet is `0 T LLLLLL`: T is 0 for an NSAP
//! address, 1 for E.164; length 0 means that the field is absent.
//!
//! **Kept as received**: E.164 numbers, subaddresses, IP addresses of length 0 (apart from 0.0.0.0) and unknown
//! operations. So every packet that decodes encodes to the same octets.
//!
//! **Standards**: RFC 2225 §8, RFC 2390.

use crate::llc::LlcSnap;
use crate::{AtmAddress, DecodeError, Reader};
use core::fmt;
use std::net::Ipv4Addr;

/// Octets of the fixed part.
const FIXED: usize = 12;
/// `ar$hrd` of ATM.
const HARDWARE: u16 = 0x0013;
/// `ar$pro` of IP.
const PROTOCOL: u16 = 0x0800;
/// Longest number or subaddress.
const MAX_NUMBER: u8 = 20;
/// In a length octet: the number is E.164.
const E164: u8 = 0x40;

/// The operation of a packet (`ar$op`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation(pub u16);

impl Operation {
    /// ATMARP_Request: who has the target's IP address?
    pub const REQUEST: Self = Self(1);
    /// ATMARP_Reply: the source has the IP address that was asked for.
    pub const REPLY: Self = Self(2);
    /// InATMARP_Request: which IP address has the target?
    pub const INVERSE_REQUEST: Self = Self(8);
    /// InATMARP_Reply: the source states its IP address.
    pub const INVERSE_REPLY: Self = Self(9);
    /// ATMARP_NAK: no station has the IP address. The packet is a copy of the request.
    pub const NAK: Self = Self(10);
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match *self {
            Self::REQUEST => "ATMARP request",
            Self::REPLY => "ATMARP reply",
            Self::INVERSE_REQUEST => "InATMARP request",
            Self::INVERSE_REPLY => "InATMARP reply",
            Self::NAK => "ATMARP NAK",
            Self(other) => return write!(f, "ATMARP operation {other}"),
        })
    }
}

/// An ATM number or subaddress: empty, an NSAP address, or an E.164 number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Number {
    /// True for an E.164 number.
    pub e164: bool,
    /// Its octets, 0 to 20.
    pub octets: Vec<u8>,
}

impl Number {
    /// An NSAP address.
    #[must_use]
    pub fn nsap(address: AtmAddress) -> Self {
        Self {
            e164: false,
            octets: address.0.to_vec(),
        }
    }
    /// The address, if it is a whole NSAP address.
    #[must_use]
    pub fn address(&self) -> Option<AtmAddress> {
        let octets = self.octets.as_slice().try_into().ok()?;
        (!self.e164).then_some(AtmAddress(octets))
    }
    fn length_octet(&self) -> u8 {
        debug_assert!(self.octets.len() <= usize::from(MAX_NUMBER));
        self.octets.len() as u8 | if self.e164 { E164 } else { 0 }
    }
}

/// One end: number, subaddress, IP address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Party {
    /// ATM number.
    pub number: Number,
    /// ATM subaddress.
    pub subaddress: Number,
    /// IP address; `None` if it has length 0.
    pub ip: Option<Ipv4Addr>,
}

impl Party {
    /// An end with an NSAP address, or without an address if it is unknown.
    #[must_use]
    pub fn new(address: Option<AtmAddress>, ip: Option<Ipv4Addr>) -> Self {
        Self {
            number: address.map(Number::nsap).unwrap_or_default(),
            subaddress: Number::default(),
            ip,
        }
    }
    /// The IP address, if it is present and not 0.0.0.0.
    #[must_use]
    pub fn known_ip(&self) -> Option<Ipv4Addr> {
        self.ip.filter(|ip| !ip.is_unspecified())
    }
}

/// A packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AtmArp {
    /// The operation.
    pub operation: Operation,
    /// The sender; in a NAK, the station that asked.
    pub source: Party,
    /// The addressee, or the station that is asked for.
    pub target: Party,
}

impl AtmArp {
    /// The octets behind the LLC/SNAP header.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let ip_length = |party: &Party| if party.ip.is_some() { 4 } else { 0 };
        let mut out = Vec::with_capacity(FIXED + 88);
        out.extend(HARDWARE.to_be_bytes());
        out.extend(PROTOCOL.to_be_bytes());
        out.push(self.source.number.length_octet());
        out.push(self.source.subaddress.length_octet());
        out.extend(self.operation.0.to_be_bytes());
        out.push(ip_length(&self.source));
        out.push(self.target.number.length_octet());
        out.push(self.target.subaddress.length_octet());
        out.push(ip_length(&self.target));
        for party in [&self.source, &self.target] {
            out.extend(&party.number.octets);
            out.extend(&party.subaddress.octets);
            out.extend(party.ip.iter().flat_map(Ipv4Addr::octets));
        }
        out
    }
    /// The whole SDU, with its LLC/SNAP header.
    #[must_use]
    pub fn to_sdu(&self) -> Vec<u8> {
        LlcSnap::Arp.wrap(&self.encode())
    }

    /// Decodes the octets behind the LLC/SNAP header.
    ///
    /// # Errors
    /// The field that is wrong, by its name in the standard.
    pub fn decode(packet: &[u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(packet);
        for (field, wanted) in [("ar$hrd", HARDWARE), ("ar$pro", PROTOCOL)] {
            let at = r.offset();
            let value = r.u16(field)?;
            if value != wanted {
                return Err(DecodeError::value(field, at, value.into()));
            }
        }
        let shtl = length(&mut r, "ar$shtl")?;
        let sstl = length(&mut r, "ar$sstl")?;
        let operation = Operation(r.u16("ar$op")?);
        let spln = ip_length(&mut r, "ar$spln")?;
        let thtl = length(&mut r, "ar$thtl")?;
        let tstl = length(&mut r, "ar$tstl")?;
        let tpln = ip_length(&mut r, "ar$tpln")?;
        let source = Party {
            number: number(&mut r, "ar$sha", shtl)?,
            subaddress: number(&mut r, "ar$ssa", sstl)?,
            ip: ip(&mut r, "ar$spa", spln)?,
        };
        let target = Party {
            number: number(&mut r, "ar$tha", thtl)?,
            subaddress: number(&mut r, "ar$tsa", tstl)?,
            ip: ip(&mut r, "ar$tpa", tpln)?,
        };
        r.finish("ATMARP")?;
        Ok(Self {
            operation,
            source,
            target,
        })
    }
}

/// A length octet: whether the number is E.164, and its length.
fn length(r: &mut Reader<'_>, field: &'static str) -> Result<(bool, u8), DecodeError> {
    let at = r.offset();
    let octet = r.u8(field)?;
    let length = octet & 0x3f;
    // An empty number has no type. Only the plain form of length 0 is accepted, so that the octets stay the same.
    if octet & 0x80 != 0 || length > MAX_NUMBER || octet == E164 {
        return Err(DecodeError::value(field, at, octet.into()));
    }
    Ok((octet & E164 != 0, length))
}

fn ip_length(r: &mut Reader<'_>, field: &'static str) -> Result<bool, DecodeError> {
    let at = r.offset();
    match r.u8(field)? {
        0 => Ok(false),
        4 => Ok(true),
        other => Err(DecodeError::value(field, at, other.into())),
    }
}

fn number(
    r: &mut Reader<'_>,
    field: &'static str,
    (e164, length): (bool, u8),
) -> Result<Number, DecodeError> {
    let octets = r.take(field, length.into())?.to_vec();
    Ok(Number { e164, octets })
}

fn ip(
    r: &mut Reader<'_>,
    field: &'static str,
    there: bool,
) -> Result<Option<Ipv4Addr>, DecodeError> {
    there
        .then(|| r.array::<4>(field).map(Ipv4Addr::from))
        .transpose()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MacAddr;
    use proptest::prelude::*;

    fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<u8> = text
            .bytes()
            .filter_map(|c| char::from(c).to_digit(16).map(|digit| digit as u8))
            .collect();
        digits.chunks(2).map(|two| two[0] << 4 | two[1]).collect()
    }
    fn at(n: u8) -> AtmAddress {
        let prefix = [0x47, 0, 5, 0x80, 0xff, 0xde, 0, 0, 0, 0, 0, 1, 1];
        AtmAddress::from_parts(prefix, MacAddr([2, 0, 0, 0, 0, n]), 0)
    }
    fn party(n: Option<u8>, ip: Option<u8>) -> Party {
        Party::new(n.map(at), ip.map(|ip| Ipv4Addr::new(10, 9, 0, ip)))
    }

    /// Octets built from RFC 2225 §8 and dissected by Wireshark without an error.
    #[test]
    fn samples() {
        let a = "47 00 05 80 ff de 00 00 00 00 00 01 01 02 00 00 00 00 51 00";
        let b = "47 00 05 80 ff de 00 00 00 00 00 01 01 02 00 00 00 00 61 00";
        let (one, two) = ("0a 09 00 01", "0a 09 00 02");
        let (asks, answers) = (party(Some(0x51), Some(1)), party(Some(0x61), Some(2)));
        for (op, lengths, rest, source, target) in [
            (
                1,
                "14 00 00 01 04 00 00 04",
                [a, one, "", one],
                &asks,
                party(None, Some(1)),
            ),
            (
                2,
                "14 00 00 02 04 14 00 04",
                [a, one, a, one],
                &asks,
                asks.clone(),
            ),
            (
                1,
                "14 00 00 01 04 00 00 04",
                [a, one, "", two],
                &asks,
                party(None, Some(2)),
            ),
            (
                2,
                "14 00 00 02 04 14 00 04",
                [b, two, a, one],
                &answers,
                asks.clone(),
            ),
            (
                10,
                "14 00 00 0a 04 00 00 04",
                [a, one, "", two],
                &asks,
                party(None, Some(2)),
            ),
            (
                8,
                "14 00 00 08 04 14 00 00",
                [a, one, b, ""],
                &asks,
                party(Some(0x61), None),
            ),
            (
                9,
                "14 00 00 09 04 14 00 04",
                [b, two, a, one],
                &answers,
                asks.clone(),
            ),
        ] {
            let octets = hex(&format!("00 13 08 00 {lengths} {}", rest.join(" ")));
            let packet = AtmArp {
                operation: Operation(op),
                source: source.clone(),
                target,
            };
            assert_eq!(AtmArp::decode(&octets), Ok(packet.clone()));
            assert_eq!(packet.encode(), octets);
        }
    }

    #[test]
    fn errors_name_the_field() {
        let good = AtmArp {
            operation: Operation::REQUEST,
            source: party(Some(1), Some(1)),
            target: party(None, Some(2)),
        }
        .encode();
        for (offset, octet, field) in [
            (1, 1, "ar$hrd"),
            (3, 6, "ar$pro"),
            (4, 0x80, "ar$shtl"),
            (4, 21, "ar$shtl"),
            (5, 0x40, "ar$sstl"),
            (8, 3, "ar$spln"),
            (11, 16, "ar$tpln"),
        ] {
            let mut octets = good.clone();
            octets[offset] = octet;
            let error = AtmArp::decode(&octets).unwrap_err();
            assert_eq!((error.field, error.offset & !1), (field, offset & !1));
        }
        assert_eq!(AtmArp::decode(&good[..30]).unwrap_err().field, "ar$sha");
        let longer = [good.as_slice(), &[0]].concat();
        assert_eq!(AtmArp::decode(&longer).unwrap_err().field, "ATMARP");
    }

    proptest! {
        #[test]
        fn what_decodes_keeps_its_octets(
            lengths in any::<[u8; 8]>(),
            rest in prop::collection::vec(any::<u8>(), 0..100),
        ) {
            let mut octets = vec![0, 0x13, 8, 0];
            // Lengths that often lead to a valid packet.
            octets.extend(lengths.iter().enumerate().map(|(n, octet)| match n {
                4 | 7 => octet & 4,
                2 | 3 => octet & 15,
                _ => octet & 0x54,
            }));
            octets.extend(rest);
            for end in 0..=octets.len() {
                if let Ok(packet) = AtmArp::decode(&octets[..end]) {
                    prop_assert_eq!(packet.encode(), &octets[..end]);
                }
            }
        }
    }
}
