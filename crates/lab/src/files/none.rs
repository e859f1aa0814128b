//! Files where the system has none, as in a browser's tab: everything that needs one is an error.

use std::fs::File;
use std::io;
use std::path::Path;

/// Reason for every error of this module.
const NONE: &str = "there are no files here; 'aerostat run' on a machine has them";

/// Origin of the name of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// The program derives it.
    ByProgram,
    /// The user gives it.
    ByUser,
}

/// The text of a file: an error.
///
/// # Errors
/// Always.
pub fn text(_: &Path, _: u64, _: &str) -> Result<String, String> {
    Err(NONE.to_owned())
}

/// A new file: an error.
///
/// # Errors
/// Always.
pub fn begin(_: &Path, _: Named) -> io::Result<File> {
    Err(io::Error::new(io::ErrorKind::Unsupported, NONE))
}
