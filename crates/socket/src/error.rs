//! Errors.

use aerostat_proto::socket::{Failure, UserData};
use rustix::io::Errno;
use std::{fmt, io};

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(Failure);

impl Error {
    pub(crate) fn new(errno: Errno, text: impl Into<String>) -> Self {
        Self(Failure {
            errno: errno.raw_os_error() as u16,
            cause: 0,
            field: String::new(),
            offset: 0,
            text: text.into(),
            user_data: UserData::default(),
        })
    }
    pub(crate) fn with_cause(errno: Errno, cause: u8, text: impl Into<String>) -> Self {
        let mut error = Self::new(errno, text);
        error.0.cause = cause;
        error
    }
    /// A value of this field is wrong.
    pub(crate) fn of_field(field: &str, text: impl Into<String>) -> Self {
        let mut error = Self::new(Errno::INVAL, text);
        error.0.field = field.to_owned();
        error
    }
    pub(crate) fn gone() -> Self {
        Self::new(Errno::CONNRESET, "the lab has ended, or its host is off")
    }
    pub(crate) fn nonsense() -> Self {
        Self::new(
            Errno::PROTO,
            "the service does not answer what it was asked",
        )
    }
    /// The error number of Linux.
    #[must_use]
    pub fn errno(&self) -> i32 {
        self.0.errno.into()
    }
    /// The cause of Q.850, if the network or the other end refused.
    #[must_use]
    pub fn cause(&self) -> Option<u8> {
        Some(self.0.cause).filter(|cause| *cause != 0)
    }
    /// User data of the other end when it refused the call; empty if it gave none.
    #[must_use]
    pub fn user_data(&self) -> &[u8] {
        self.0.user_data.octets()
    }
    /// The text that is wrong (`called`, `sap`, `qos`, ...), with the offset in it.
    #[must_use]
    pub fn field(&self) -> Option<(&str, usize)> {
        let at = (&*self.0.field, self.0.offset.into());
        Some(at).filter(|(field, _)| !field.is_empty())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.field() {
            Some((field, 0)) => write!(f, "{field}: {}", self.0.text),
            Some((field, at)) => write!(f, "{field}, character {}: {}", at + 1, self.0.text),
            None => f.write_str(&self.0.text),
        }
    }
}

impl std::error::Error for Error {}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        Self(failure)
    }
}

impl From<io::Error> for Error {
    /// An error of this crate in the form of an [`io::Error`] becomes what it was, with its number and its cause.
    fn from(error: io::Error) -> Self {
        let own = error.get_ref().and_then(|inner| inner.downcast_ref());
        if let Some(own) = own {
            return Self::clone(own);
        }
        Self::new(
            Errno::from_io_error(&error).unwrap_or(Errno::IO),
            error.to_string(),
        )
    }
}

/// The kind is that of the error number; the text stays.
impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = Self::from_raw_os_error(error.errno()).kind();
        Self::new(kind, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program that passes errors on, in either form, keeps what they say.
    #[test]
    fn an_error_survives_both_forms() {
        let own = Error::new(Errno::MSGSIZE, "a PDU of 2 octets: the contract allows 1");
        let passed = Error::from(io::Error::from(own.clone()));
        assert_eq!(passed, own);
        let kernel = Error::from(io::Error::from_raw_os_error(32));
        assert_eq!(kernel.errno(), 32);
    }
}
