//! Reasons why a sweep ends.

use std::{fmt, io};

/// The kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A wish of the user that cannot be met.
    Usage,
    /// Something failed.
    Failed,
    /// The system does not give this user the right.
    Privilege,
    /// The reader of the table has gone: it has read enough.
    Closed,
}

/// Why a sweep ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Its kind.
    pub kind: Kind,
    /// The error.
    pub message: String,
    /// How to correct it.
    pub hint: Option<String>,
}

impl Failure {
    fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            hint: None,
        }
    }
    /// Something failed.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(Kind::Failed, message)
    }
    /// The user has asked for something that cannot be.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Kind::Usage, message)
    }
    /// The same failure with a hint.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        let hint = Some(hint.into());
        Self { hint, ..self }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        let kind = match error.kind() {
            io::ErrorKind::BrokenPipe => Kind::Closed,
            io::ErrorKind::PermissionDenied => Kind::Privilege,
            _ => Kind::Failed,
        };
        Self::new(kind, error.to_string())
    }
}
