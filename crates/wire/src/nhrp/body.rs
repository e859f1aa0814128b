//! The two forms of a mandatory part.

use super::address::{NbmaAddress, ProtocolAddress};
use super::entry::Cie;
use super::header::Fixed;
use crate::{DecodeError, Reader};

/// Mandatory part of all packets except the Error Indication. Source: RFC 2332 §5.2.0.1.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Common {
    /// Flags ([`super::flag`]).
    pub flags: u16,
    /// Request id; the sequence number of an MPOA Keep-Alive.
    pub request_id: u32,
    /// Source NBMA address.
    pub source_nbma: NbmaAddress,
    /// Source NBMA sub-address.
    pub source_sub: NbmaAddress,
    /// Source protocol address.
    pub source: ProtocolAddress,
    /// Destination protocol address.
    pub destination: ProtocolAddress,
    /// Client information entries.
    pub cies: Vec<Cie>,
}

/// Mandatory part of an Error Indication. Source: RFC 2332 §5.2.7.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorIndication {
    /// Unused field; kept.
    pub unused: u16,
    /// The error ([`super::error`]).
    pub code: u16,
    /// Offset of the error in the offending packet, octets from its start.
    pub offset: u16,
    /// NBMA address of the node that found the error.
    pub source_nbma: NbmaAddress,
    /// NBMA sub-address of that node.
    pub source_sub: NbmaAddress,
    /// Protocol address of that node.
    pub source: ProtocolAddress,
    /// Protocol address of the offending packet's source.
    pub destination: ProtocolAddress,
    /// The offending packet.
    pub offending: Vec<u8>,
}

pub(super) fn decode_common_header(
    r: &mut Reader<'_>,
    fixed: &Fixed,
) -> Result<Common, DecodeError> {
    let source_len = r.u8("source protocol length")?;
    let destination_len = r.u8("destination protocol length")?;
    Ok(Common {
        flags: r.u16("flags")?,
        request_id: r.u32("request id")?,
        source_nbma: NbmaAddress::decode(r, fixed.source_tl, "source NBMA address")?,
        source_sub: NbmaAddress::decode(r, fixed.source_sub_tl, "source NBMA sub-address")?,
        source: ProtocolAddress::decode(r, source_len, "source protocol address")?,
        destination: ProtocolAddress::decode(r, destination_len, "destination protocol address")?,
        cies: Vec::new(),
    })
}

pub(super) fn decode_common(r: &mut Reader<'_>, fixed: &Fixed) -> Result<Common, DecodeError> {
    let mut common = decode_common_header(r, fixed)?;
    while !r.is_empty() {
        common.cies.push(Cie::decode(r)?);
    }
    Ok(common)
}

pub(super) fn encode_common(c: &Common, out: &mut Vec<u8>) {
    out.extend([c.source.length(), c.destination.length()]);
    out.extend(c.flags.to_be_bytes());
    out.extend(c.request_id.to_be_bytes());
    out.extend(c.source_nbma.octets());
    out.extend(c.source_sub.octets());
    out.extend(c.source.octets());
    out.extend(c.destination.octets());
    for cie in &c.cies {
        cie.encode(out);
    }
}

pub(super) fn decode_error(
    r: &mut Reader<'_>,
    fixed: &Fixed,
) -> Result<ErrorIndication, DecodeError> {
    let source_len = r.u8("source protocol length")?;
    let destination_len = r.u8("destination protocol length")?;
    Ok(ErrorIndication {
        unused: r.u16("unused")?,
        code: r.u16("error code")?,
        offset: r.u16("error offset")?,
        source_nbma: NbmaAddress::decode(r, fixed.source_tl, "source NBMA address")?,
        source_sub: NbmaAddress::decode(r, fixed.source_sub_tl, "source NBMA sub-address")?,
        source: ProtocolAddress::decode(r, source_len, "source protocol address")?,
        destination: ProtocolAddress::decode(r, destination_len, "destination protocol address")?,
        offending: r.rest().to_vec(),
    })
}

pub(super) fn encode_error(e: &ErrorIndication, out: &mut Vec<u8>) {
    out.extend([e.source.length(), e.destination.length()]);
    out.extend(e.unused.to_be_bytes());
    out.extend(e.code.to_be_bytes());
    out.extend(e.offset.to_be_bytes());
    out.extend(e.source_nbma.octets());
    out.extend(e.source_sub.octets());
    out.extend(e.source.octets());
    out.extend(e.destination.octets());
    out.extend(&e.offending);
}
