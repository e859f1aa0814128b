//! Names of the lab for programs that look addresses up with `text2atm` of `libatm`: it reads `/etc/hosts.atm`.
//!
//! A program that opens this file gets one whose lines are the names of the lab that can be called, as the service
//! tells them, and then the system's own. The file is one of this process alone, in memory.

use crate::{real, table};
use libc::{FILE, c_char};
use std::ffi::CStr;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::os::fd::{FromRawFd as _, IntoRawFd as _};

/// Source: libatm, `text2atm.c`; `hosts.atm(5)`.
const PATH: &CStr = c"/etc/hosts.atm";

/// The lines of the lab: address, name.
fn text() -> Option<String> {
    // A program without a service has the system's file.
    let service = table::service().ok()?;
    let (names, _) = service.names().ok()?;
    let mut text = String::new();
    for (name, address) in names {
        let _ = writeln!(text, "{address} {name}");
    }
    text.push_str(&std::fs::read_to_string("/etc/hosts.atm").unwrap_or_default());
    Some(text)
}

/// A file in memory with this text, read from its beginning.
fn file_of(text: &str) -> Option<File> {
    // SAFETY: the name ends with a zero octet.
    let fd = unsafe { libc::memfd_create(c"hosts.atm".as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        return None;
    }
    // SAFETY: the descriptor is new, and no other code has it.
    let mut file = unsafe { File::from_raw_fd(fd) };
    file.write_all(text.as_bytes()).ok()?;
    file.seek(SeekFrom::Start(0)).ok()?;
    Some(file)
}

/// The stream, if this is a path and a mode for reading the names of the lab.
///
/// # Safety
/// As `fopen`.
unsafe fn stream(path: *const c_char, mode: *const c_char) -> Option<*mut FILE> {
    if path.is_null() || mode.is_null() {
        return None;
    }
    // SAFETY: as of the caller.
    let (path, mode) = unsafe { (CStr::from_ptr(path), CStr::from_ptr(mode)) };
    if path != PATH || !mode.to_bytes().starts_with(b"r") {
        return None;
    }
    let fd = file_of(&text()?)?.into_raw_fd();
    // SAFETY: the descriptor is open for reading, and belongs to the stream from now on.
    Some(unsafe { libc::fdopen(fd, c"r".as_ptr()) })
}

/// See `fopen(3)`.
///
/// # Safety
/// As `fopen`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fopen(path: *const c_char, mode: *const c_char) -> *mut FILE {
    // SAFETY: as of the caller.
    match unsafe { stream(path, mode) } {
        Some(stream) => stream,
        None => {
            let real =
                real!(fopen: unsafe extern "C" fn(*const c_char, *const c_char) -> *mut FILE);
            // SAFETY: the arguments are the caller's.
            unsafe { real(path, mode) }
        }
    }
}

/// See `fopen(3)`: the same with large files.
///
/// # Safety
/// As `fopen64`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fopen64(path: *const c_char, mode: *const c_char) -> *mut FILE {
    // SAFETY: as of the caller.
    match unsafe { stream(path, mode) } {
        Some(stream) => stream,
        None => {
            let real =
                real!(fopen64: unsafe extern "C" fn(*const c_char, *const c_char) -> *mut FILE);
            // SAFETY: the arguments are the caller's.
            unsafe { real(path, mode) }
        }
    }
}
