//! The last error of each thread.

use aerostat_socket::Error;
use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};

thread_local! {
    static LAST: RefCell<(CString, c_int)> = RefCell::new((CString::default(), 0));
}

unsafe extern "C" {
    fn __errno_location() -> *mut c_int;
}

fn set(errno: c_int, text: String, cause: c_int) -> c_int {
    let text = crate::text(&text);
    LAST.with(|last| last.replace((text, cause)));
    // SAFETY: the C library gives the place of this thread's `errno`, which is valid as long as the thread.
    unsafe { *__errno_location() = errno };
    -1
}

/// An error of this library; -1.
pub(crate) fn fail(errno: c_int, text: impl Into<String>) -> c_int {
    set(errno, text.into(), 0)
}

/// An error of the service; -1.
pub(crate) fn failed(error: &Error) -> c_int {
    let cause = error.cause().map_or(0, c_int::from);
    set(error.errno(), error.to_string(), cause)
}

/// 0, or -1 with the error.
pub(crate) fn done<T>(result: Result<T, Error>) -> c_int {
    result.map_or_else(|error| failed(&error), |_| 0)
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn aerostat_error() -> *const c_char {
    LAST.with(|last| last.borrow().0.as_ptr())
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn aerostat_cause() -> c_int {
    LAST.with(|last| last.borrow().1)
}
