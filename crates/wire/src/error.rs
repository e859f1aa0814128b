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
    /// The field ended early.
    #[must_use]
    pub const fn short(field: &'static str, offset: usize) -> Self {
        Self {
            field,
            offset,
            kind: ErrorKind::Short,
        }
    }
    /// The field holds a value that is not allowed.
    #[must_use]
    pub const fn value(field: &'static str, offset: usize, value: u32) -> Self {
        Self {
            field,
            offset,
            kind: ErrorKind::Value(value),
        }
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            field,
            offset,
            kind,
        } = self;
        match kind {
            ErrorKind::Short => write!(f, "{field} at offset {offset}: too short"),
            ErrorKind::Trailing => write!(f, "{field} at offset {offset}: octets left over"),
            ErrorKind::Value(v) => write!(f, "{field} at offset {offset}: bad value {v:#x}"),
            ErrorKind::Checksum => write!(f, "{field} at offset {offset}: checksum mismatch"),
        }
    }
}

impl std::error::Error for DecodeError {}
