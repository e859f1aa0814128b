//! The Basic Encoding Rules, as far as SNMPv1 needs them. Source: RFC 1157, ITU-T X.690 clause 8.

use super::Oid;
use crate::{DecodeError, Reader};

/// Identifier octet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tag(pub(super) u8);

impl Tag {
    pub(super) const INTEGER: Self = Self(0x02);
    pub(super) const OCTET_STRING: Self = Self(0x04);
    pub(super) const NULL: Self = Self(0x05);
    pub(super) const OID: Self = Self(0x06);
    pub(super) const SEQUENCE: Self = Self(0x30);
    pub(super) const IP_ADDRESS: Self = Self(0x40);
    pub(super) const COUNTER: Self = Self(0x41);
    pub(super) const GAUGE: Self = Self(0x42);
    pub(super) const TIME_TICKS: Self = Self(0x43);
    pub(super) const GET: Self = Self(0xa0);
    pub(super) const GET_NEXT: Self = Self(0xa1);
    pub(super) const RESPONSE: Self = Self(0xa2);
    pub(super) const SET: Self = Self(0xa3);
    pub(super) const TRAP: Self = Self(0xa4);
}

/// The next element: its tag and its content.
pub(super) fn primitive<'a>(
    reader: &mut Reader<'a>,
    field: &'static str,
) -> Result<(Tag, &'a [u8]), DecodeError> {
    let tag = Tag(reader.u8(field)?);
    let at = reader.offset();
    let first = reader.u8(field)?;
    let length = match first {
        0..=0x7f => usize::from(first),
        // The indefinite form (0x80) and lengths that no SDU can hold are refused.
        0x81..=0x84 => {
            let octets = reader.take(field, usize::from(first & 0x7f))?;
            octets
                .iter()
                .fold(0, |sum, octet| sum << 8 | usize::from(*octet))
        }
        _ => return Err(DecodeError::value(field, at, first.into())),
    };
    Ok((tag, reader.take(field, length)?))
}

/// The next element, and a reader of its content. Offsets of that reader count from the start of the message.
pub(super) fn any<'a>(
    reader: &mut Reader<'a>,
    field: &'static str,
) -> Result<(Tag, Reader<'a>), DecodeError> {
    let (tag, content) = primitive(reader, field)?;
    Ok((tag, reader.inside(content.len())))
}

/// Like [`any`], for an element that must have this tag.
pub(super) fn constructed<'a>(
    reader: &mut Reader<'a>,
    field: &'static str,
    wanted: Tag,
) -> Result<Reader<'a>, DecodeError> {
    let at = reader.offset();
    let (tag, content) = any(reader, field)?;
    if tag != wanted {
        return Err(DecodeError::value(field, at, tag.0.into()));
    }
    Ok(content)
}

/// The next element as an INTEGER.
pub(super) fn integer(reader: &mut Reader<'_>, field: &'static str) -> Result<i32, DecodeError> {
    let at = reader.offset();
    let (tag, octets) = primitive(reader, field)?;
    if tag != Tag::INTEGER {
        return Err(DecodeError::value(field, at, tag.0.into()));
    }
    signed(octets).ok_or(DecodeError::short(field, at))
}

/// The next element as an OBJECT IDENTIFIER.
pub(super) fn oid(reader: &mut Reader<'_>, field: &'static str) -> Result<Oid, DecodeError> {
    let at = reader.offset();
    let (tag, octets) = primitive(reader, field)?;
    if tag != Tag::OID {
        return Err(DecodeError::value(field, at, tag.0.into()));
    }
    Oid::from_ber(octets).ok_or(DecodeError::short(field, at))
}

/// A signed number of 1 to 4 octets, or of more octets if those only extend the sign.
pub(super) fn signed(octets: &[u8]) -> Option<i32> {
    wide(octets)?.try_into().ok()
}

/// An unsigned number that fits 32 bits.
pub(super) fn unsigned(octets: &[u8]) -> Option<u32> {
    // Some encoders omit the zero octet in front of a set high bit.
    let value = wide(octets)?;
    u32::try_from(value)
        .or_else(|_| i32::try_from(value).map(|v| v as u32))
        .ok()
}

fn wide(octets: &[u8]) -> Option<i64> {
    let first = *octets.first().filter(|_| octets.len() <= 8)?;
    let start = if first & 0x80 == 0 { 0 } else { -1 };
    Some(
        octets
            .iter()
            .fold(start, |sum, octet| sum << 8 | i64::from(*octet)),
    )
}

/// Writes a message from its end to its start, so that lengths are known when they are written.
#[derive(Default)]
pub(super) struct Writer {
    /// The octets in reverse order.
    octets: Vec<u8>,
}

impl Writer {
    pub(super) fn mark(&self) -> usize {
        self.octets.len()
    }
    pub(super) fn octets(&mut self, tag: Tag, content: &[u8]) {
        let end = self.mark();
        self.octets.extend(content.iter().rev());
        self.wrap_from(end, tag);
    }
    pub(super) fn integer(&mut self, tag: Tag, value: i64) {
        let octets = value.to_be_bytes();
        let redundant = |pair: &[u8]| matches!((pair[0], pair[1] & 0x80), (0, 0) | (0xff, 0x80));
        let skip = octets.windows(2).take_while(|pair| redundant(pair)).count();
        self.octets(tag, &octets[skip..]);
    }
    pub(super) fn oid(&mut self, oid: &Oid) {
        self.octets(Tag::OID, &oid.to_ber());
    }
    /// Puts tag and length in front of what was written since `end`.
    pub(super) fn wrap_from(&mut self, end: usize, tag: Tag) {
        let length = self.octets.len() - end;
        if length < 0x80 {
            self.octets.push(length as u8);
        } else {
            let octets = length.to_be_bytes();
            let skip = octets.iter().take_while(|octet| **octet == 0).count();
            self.octets.extend(octets[skip..].iter().rev());
            self.octets.push(0x80 | (octets.len() - skip) as u8);
        }
        self.octets.push(tag.0);
    }
    /// Puts tag and length in front of everything.
    pub(super) fn wrap(&mut self, tag: Tag) {
        self.wrap_from(0, tag);
    }
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.octets.reverse();
        self.octets
    }
}
