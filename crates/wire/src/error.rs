//! The one decode error: which field, at which offset, and what was wrong with it.

use core::fmt;

/// Why bytes from a peer are not a valid value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeError {
    /// Name of the field, in the words of its standard.
    pub field: &'static str,
    /// Offset in octets from the start of the decoded unit.
    pub offset: usize,
    /// Kind of the mistake.
    pub kind: ErrorKind,
}

/// The kind of a [`DecodeError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// Fewer octets than the field needs.
    Short,
    /// Octets are left over after the last field.
    Trailing,
    /// The value is not allowed here.
    Value(u32),
    /// A checksum or CRC does not match.
    Checksum,
}

impl DecodeError {
    const fn new(field: &'static str, offset: usize, kind: ErrorKind) -> Self {
        Self {
            field,
            offset,
            kind,
        }
    }
    /// The field ended early.
    #[must_use]
    pub const fn short(field: &'static str, offset: usize) -> Self {
        Self::new(field, offset, ErrorKind::Short)
    }
    /// Octets are left over after the last field.
    #[must_use]
    pub const fn trailing(field: &'static str, offset: usize) -> Self {
        Self::new(field, offset, ErrorKind::Trailing)
    }
    /// The field holds a value that is not allowed.
    #[must_use]
    pub const fn value(field: &'static str, offset: usize, value: u32) -> Self {
        Self::new(field, offset, ErrorKind::Value(value))
    }
    /// The checksum or CRC does not match.
    #[must_use]
    pub const fn checksum(field: &'static str, offset: usize) -> Self {
        Self::new(field, offset, ErrorKind::Checksum)
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (field, offset) = (self.field, self.offset);
        match self.kind {
            ErrorKind::Short => write!(f, "{field} at offset {offset}: too short"),
            ErrorKind::Trailing => write!(f, "{field} at offset {offset}: octets left over"),
            ErrorKind::Value(v) => write!(f, "{field} at offset {offset}: bad value {v:#x}"),
            ErrorKind::Checksum => write!(f, "{field} at offset {offset}: checksum mismatch"),
        }
    }
}

impl std::error::Error for DecodeError {}
