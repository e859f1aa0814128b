//! The fixed part of a packet and its checksum.

use super::address::type_length;
use super::{FIXED_LEN, VERSION, op};
use crate::{DecodeError, ErrorKind, Reader};

/// The decoded fixed part.
pub(super) struct Fixed {
    pub(super) afn: u16,
    pub(super) protocol: u16,
    pub(super) snap: [u8; 5],
    pub(super) hop_count: u8,
    size: u16,
    checksum: u16,
    ext_offset: u16,
    version: u8,
    pub(super) op: u8,
    pub(super) source_tl: u8,
    pub(super) source_sub_tl: u8,
}

impl Fixed {
    pub(super) fn fields(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            afn: r.u16("ar$afn")?,
            protocol: r.u16("ar$pro.type")?,
            snap: r.array("ar$pro.snap")?,
            hop_count: r.u8("ar$hopcnt")?,
            size: r.u16("ar$pktsz")?,
            checksum: r.u16("ar$chksum")?,
            ext_offset: r.u16("ar$extoff")?,
            version: r.u8("ar$op.version")?,
            op: r.u8("ar$op.type")?,
            source_tl: type_length(r, "ar$shtl")?,
            source_sub_tl: type_length(r, "ar$sstl")?,
        })
    }
    pub(super) fn decode(octets: &[u8]) -> Result<Self, DecodeError> {
        let fixed = Self::fields(&mut Reader::new(octets))?;
        if usize::from(fixed.size) != octets.len() {
            return Err(DecodeError::value("ar$pktsz", 10, fixed.size.into()));
        }
        if fixed.checksum != checksum_without_field(octets) {
            let kind = ErrorKind::Checksum;
            return Err(DecodeError {
                field: "ar$chksum",
                offset: 12,
                kind,
            });
        }
        if fixed.version != VERSION {
            return Err(DecodeError::value(
                "ar$op.version",
                16,
                fixed.version.into(),
            ));
        }
        if !matches!(fixed.op, 1..=8 | 128..=135) {
            return Err(DecodeError::value("ar$op.type", 17, fixed.op.into()));
        }
        Ok(fixed)
    }
    /// Fixed part and mandatory part together, and the offset of the extensions.
    pub(super) fn split<'a>(
        &self,
        octets: &'a [u8],
    ) -> Result<(&'a [u8], Option<usize>), DecodeError> {
        let at = usize::from(self.ext_offset);
        let bad = DecodeError::value("ar$extoff", 14, self.ext_offset.into());
        match at {
            0 => Ok((octets, None)),
            // RFC 2332 §5.2.7: an Error Indication has no extensions.
            _ if at < FIXED_LEN || self.op == op::ERROR_INDICATION => Err(bad),
            _ => octets.get(..at).map(|part| (part, Some(at))).ok_or(bad),
        }
    }
}

pub(super) fn put_u16(out: &mut [u8], at: usize, value: u16) {
    if let Some(field) = out.get_mut(at..at + 2) {
        field.copy_from_slice(&value.to_be_bytes());
    }
}

/// Sum of 16-bit words in one's complement. The sum does not depend on the order of octets but by a swap at the end, so
/// words of this machine with 32 bits are added (RFC 1071 §2).
fn ones_sum(octets: &[u8]) -> u64 {
    let (words, rest) = octets.as_chunks::<4>();
    let whole: u64 = words
        .iter()
        .map(|word| u64::from(u32::from_ne_bytes(*word)))
        .sum();
    let mut last = [0; 4];
    for (to, octet) in last.iter_mut().zip(rest) {
        *to = *octet;
    }
    u64::from(fold(whole + u64::from(u32::from_ne_bytes(last))).to_be())
}

fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// The Internet checksum of `octets`, an odd last octet padded with zero. Source: RFC 1071.
///
/// The result over octets that contain their own checksum is 0 if they are intact.
#[must_use]
pub fn internet_checksum(octets: &[u8]) -> u16 {
    !fold(ones_sum(octets))
}

/// The checksum for octets 12 and 13.
fn checksum_without_field(octets: &[u8]) -> u16 {
    let (before, rest) = octets.split_at(octets.len().min(12));
    let after = rest.get(2..).unwrap_or_default();
    !fold(ones_sum(before) + ones_sum(after))
}
