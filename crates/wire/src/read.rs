//! A cursor over untrusted octets. Every read names its field, so that an error can name it, too.

use crate::DecodeError;

/// Reads big-endian fields from a slice; never panics, never reads past the end.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    octets: &'a [u8],
    offset: usize,
}

impl<'a> Reader<'a> {
    /// A reader at offset 0.
    #[must_use]
    pub const fn new(octets: &'a [u8]) -> Self {
        Self { octets, offset: 0 }
    }
    /// Offset of the next octet.
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.offset
    }
    /// Octets that are left.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.octets.len().saturating_sub(self.offset)
    }
    /// True when nothing is left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.remaining() == 0
    }
    /// The next `len` octets.
    ///
    /// # Errors
    /// `Short` if fewer are left.
    pub fn take(&mut self, field: &'static str, len: usize) -> Result<&'a [u8], DecodeError> {
        let rest = self.octets.get(self.offset..).unwrap_or_default();
        let part = rest
            .get(..len)
            .ok_or(DecodeError::short(field, self.offset))?;
        self.offset += len;
        Ok(part)
    }
    /// The next `N` octets as an array.
    ///
    /// # Errors
    /// `Short` if fewer are left.
    pub fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], DecodeError> {
        let at = self.offset;
        self.take(field, N)?
            .try_into()
            .map_err(|_| DecodeError::short(field, at))
    }
    /// One octet.
    ///
    /// # Errors
    /// `Short` at the end.
    pub fn u8(&mut self, field: &'static str) -> Result<u8, DecodeError> {
        self.array::<1>(field).map(|[v]| v)
    }
    /// Two octets, big endian.
    ///
    /// # Errors
    /// `Short` at the end.
    pub fn u16(&mut self, field: &'static str) -> Result<u16, DecodeError> {
        self.array(field).map(u16::from_be_bytes)
    }
    /// Three octets, big endian.
    ///
    /// # Errors
    /// `Short` at the end.
    pub fn u24(&mut self, field: &'static str) -> Result<u32, DecodeError> {
        self.array::<3>(field)
            .map(|[a, b, c]| u32::from_be_bytes([0, a, b, c]))
    }
    /// Four octets, big endian.
    ///
    /// # Errors
    /// `Short` at the end.
    pub fn u32(&mut self, field: &'static str) -> Result<u32, DecodeError> {
        self.array(field).map(u32::from_be_bytes)
    }
    /// A reader of the `len` octets that were read last; its offsets count from the same start as those of this reader.
    #[must_use]
    pub fn inside(&self, len: usize) -> Self {
        Self {
            octets: self.octets.get(..self.offset).unwrap_or_default(),
            offset: self.offset.saturating_sub(len),
        }
    }
    /// All octets that are left.
    pub fn rest(&mut self) -> &'a [u8] {
        let rest = self.octets.get(self.offset..).unwrap_or_default();
        self.offset = self.octets.len();
        rest
    }
    /// Checks that no octet is left.
    ///
    /// # Errors
    /// `Trailing` if octets are left.
    pub fn finish(&self, field: &'static str) -> Result<(), DecodeError> {
        if self.is_empty() {
            return Ok(());
        }
        Err(DecodeError::trailing(field, self.offset))
    }
}
