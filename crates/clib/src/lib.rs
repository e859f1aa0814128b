//! ATM sockets of the hosts of a running lab, for programs in C.
//!
//! **Purpose.** This is a thin layer over [`aerostat_socket`]: each function checks its pointers, calls one method, and
//! turns the result into what C expects. `include/aerostat.h` is the reference of its users; a test of the repository
//! compares both, and builds a program with them.
//!
//! **Objects and owners.** `aerostat_service`, `aerostat_socket` and `aerostat_offer` are boxes that the program owns
//! until it frees them. `calls.rs` has what is done with sockets, `error.rs` the last error of each thread. `atp.rs`
//! has ATP; its header, `include/aerostat_atp.h`, has the names of the protocol's report beside those of the library.
//!
//! **Standards.** No standard; the names are this library's own.
//!
//! **Not implemented.** A handle that was freed, or is of another kind, is not noticed: as in every library of C.

mod atp;
mod calls;
mod error;
mod user_data;

use aerostat_socket::{Connecting, Control, Error, Offered, Service, Socket};
use error::{done, fail, failed};
use std::ffi::{CStr, CString, c_char, c_int};
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::path::Path;
use std::ptr::null_mut;
use std::sync::Mutex;

/// A connection to the socket service of a host.
#[derive(Debug)]
pub struct ServiceObject {
    service: Service,
    host: CString,
    address: CString,
}

/// An ATM socket.
#[derive(Debug)]
pub struct SocketObject {
    socket: Socket,
    /// The call that is made without waiting.
    connecting: Mutex<Option<Connecting>>,
    /// User data of its next call or release.
    said: Mutex<Vec<u8>>,
}

/// A call that waits for an answer.
#[derive(Debug)]
pub struct OfferObject {
    listener: Control,
    offered: Offered,
    /// User data of its answer.
    said: Mutex<Vec<u8>>,
    /// Caller, called, access point, contract.
    texts: [CString; 4],
}

pub(crate) fn boxed<T>(value: T) -> *mut T {
    Box::into_raw(Box::new(value))
}

/// The object of a value, or null with the error.
pub(crate) fn made<T, O>(value: Result<T, Error>, object: impl FnOnce(T) -> *mut O) -> *mut O {
    value.map(object).unwrap_or_else(|error| {
        failed(&error);
        null_mut()
    })
}

pub(crate) fn new_socket(socket: Socket) -> *mut SocketObject {
    boxed(SocketObject {
        socket,
        connecting: Mutex::new(None),
        said: Mutex::default(),
    })
}

/// A text of the service for C. Such texts have no zero octets; one that has is cut there.
pub(crate) fn text(from: &str) -> CString {
    let shown = from.split('\0').next().unwrap_or_default();
    CString::new(shown).unwrap_or_default()
}

/// A text of the program; a null pointer is an empty text.
///
/// # Safety
/// `text` is null, or ends with a zero octet and is valid as long as it is used.
pub(crate) unsafe fn given<'a>(name: &str, text: *const c_char) -> Result<&'a str, c_int> {
    if text.is_null() {
        return Ok("");
    }
    // SAFETY: as of the caller.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str()
        .map_err(|_| fail(libc_errno::EINVAL, format!("{name} is not UTF-8")))
}

/// The error numbers of Linux that this library gives itself.
pub(crate) mod libc_errno {
    /// Invalid argument.
    pub(crate) const EINVAL: i32 = 22;
    /// A text is too long for its place.
    pub(crate) const ENAMETOOLONG: i32 = 36;
    /// There are no more messages.
    pub(crate) const ENODATA: i32 = 61;
    /// A listener cannot do it.
    pub(crate) const EOPNOTSUPP: i32 = 95;
    /// The socket has a connection already.
    pub(crate) const EISCONN: i32 = 106;
    /// User data are too long.
    pub(crate) const EMSGSIZE: i32 = 90;
    /// The socket makes no call.
    pub(crate) const ENOTCONN: i32 = 107;
}

/// The object behind a pointer of the program, or the end of the function with EINVAL.
macro_rules! object {
    ($pointer:ident, $failed:expr) => {{
        // SAFETY: the pointer is null, or an object that the program has not freed, as the header demands.
        match unsafe { $pointer.as_ref() } {
            Some(object) => object,
            None => {
                let text = concat!(stringify!($pointer), " is NULL");
                $crate::error::fail($crate::libc_errno::EINVAL, text.to_owned());
                return $failed;
            }
        }
    }};
}
pub(crate) use object;

/// See the header.
///
/// # Safety
/// `path` is null or a text of C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aerostat_open(path: *const c_char) -> *mut ServiceObject {
    // SAFETY: as of the caller.
    let Ok(path) = (unsafe { given("path", path) }) else {
        return null_mut();
    };
    let service = match path {
        "" => Service::from_env(),
        path => Service::connect(Path::new(path)),
    };
    made(service, |service| {
        boxed(ServiceObject {
            host: text(service.host()),
            address: text(service.address()),
            service,
        })
    })
}

/// Frees an object; null is nothing.
///
/// # Safety
/// The pointer came from [`boxed`] and was not freed.
unsafe fn free<T>(object: *mut T) {
    if !object.is_null() {
        // SAFETY: as of the caller.
        drop(unsafe { Box::from_raw(object) });
    }
}

/// See the header.
///
/// # Safety
/// `service` is null, or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aerostat_close(service: *mut ServiceObject) {
    // SAFETY: as of the caller.
    unsafe { free(service) }
}

/// See the header.
///
/// # Safety
/// `service` is null, or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aerostat_host(service: *const ServiceObject) -> *const c_char {
    object!(service, std::ptr::null()).host.as_ptr()
}

/// See the header.
///
/// # Safety
/// `service` is null, or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aerostat_address(service: *const ServiceObject) -> *const c_char {
    object!(service, std::ptr::null()).address.as_ptr()
}

/// See the header.
///
/// # Safety
/// `service` is null, or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aerostat_socket_new(service: *const ServiceObject) -> *mut SocketObject {
    let service = object!(service, null_mut());
    made(service.service.socket(), new_socket)
}

/// See the header.
///
/// # Safety
/// `socket` is null, or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aerostat_socket_free(socket: *mut SocketObject) {
    // SAFETY: as of the caller.
    unsafe { free(socket) }
}

/// See the header.
///
/// # Safety
/// `socket` is null, or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aerostat_fd(socket: *const SocketObject) -> c_int {
    object!(socket, -1).socket.as_raw_fd()
}

/// See the header.
///
/// # Safety
/// `service` is null, or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aerostat_adopt(
    service: *const ServiceObject,
    fd: c_int,
) -> *mut SocketObject {
    let service = object!(service, null_mut());
    if fd < 0 {
        fail(libc_errno::EINVAL, format!("fd is {fd}"));
        return null_mut();
    }
    // SAFETY: the program says that the descriptor is open; the kernel checks it.
    let shown = unsafe { BorrowedFd::borrow_raw(fd) };
    if done(service.service.control_of(shown)) != 0 {
        return null_mut();
    }
    // SAFETY: it is a socket of this service, and from now on belongs to the new object alone.
    let owned = unsafe { std::os::fd::FromRawFd::from_raw_fd(fd) };
    made(service.service.adopt(owned), new_socket)
}

/// See the header.
///
/// # Safety
/// `offer` is null, or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aerostat_offer_free(offer: *mut OfferObject) {
    // SAFETY: as of the caller.
    unsafe { free(offer) }
}

macro_rules! offer_texts {
    ($($name:ident $index:literal;)*) => {$(
        /// See the header.
        ///
        /// # Safety
        /// `offer` is null, or was not freed.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(offer: *const OfferObject) -> *const c_char {
            object!(offer, std::ptr::null()).texts[$index].as_ptr()
        }
    )*};
}
offer_texts! {
    aerostat_offer_caller 0;
    aerostat_offer_called 1;
    aerostat_offer_sap 2;
    aerostat_offer_qos 3;
}

/// See the header.
///
/// # Safety
/// `offer` is null, or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aerostat_offer_multipoint(offer: *const OfferObject) -> c_int {
    c_int::from(object!(offer, -1).offered.multipoint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::atp::*;
    use crate::calls::*;
    use crate::error::{aerostat_cause, aerostat_error};
    use std::ptr::null;

    fn told() -> String {
        // SAFETY: the text of this thread's last error.
        let text = unsafe { CStr::from_ptr(aerostat_error()) };
        text.to_str().unwrap().to_owned()
    }

    /// A null pointer is an error that names its parameter, wherever an object is expected; freeing it is nothing.
    #[test]
    fn null_pointers() {
        // SAFETY: each function takes null pointers.
        unsafe {
            assert!(aerostat_socket_new(null()).is_null());
            assert_eq!((&*told(), aerostat_cause()), ("service is NULL", 0));
            assert_eq!(aerostat_bind(null_mut(), null(), null()), -1);
            assert_eq!(told(), "socket is NULL");
            assert!(aerostat_offer_next(null_mut()).is_null());
            assert_eq!(told(), "listener is NULL");
            assert!(aerostat_accept(null_mut(), null()).is_null());
            assert_eq!(told(), "offer is NULL");
            assert!(aerostat_offer_qos(null()).is_null() && aerostat_host(null()).is_null());
            assert_eq!(aerostat_send(null_mut(), null(), 0), -1);
            assert_eq!(aerostat_status(null(), null_mut()), -1);
            assert!(aerostat_atp_new(null(), null(), null()).is_null());
            assert_eq!(told(), "service is NULL");
            assert_eq!(aerostat_atp_connect(null_mut()), -1);
            assert_eq!(aerostat_atp_recv(null_mut(), null_mut(), 0), -1);
            assert_eq!(aerostat_atp_close(null_mut()), -1);
            assert_eq!(told(), "socket is NULL");
            assert!(aerostat_atp_accept(null_mut()).is_null());
            assert_eq!(told(), "listener is NULL");
            aerostat_close(null_mut());
            aerostat_socket_free(null_mut());
            aerostat_offer_free(null_mut());
            let wrong = c"\xff\xfe";
            assert!(aerostat_open(wrong.as_ptr()).is_null());
            assert_eq!(told(), "path is not UTF-8");
            assert!(aerostat_open(c"/nowhere/x.sock".as_ptr()).is_null());
            assert_eq!(
                std::io::Error::last_os_error().raw_os_error(),
                Some(2),
                "{}",
                told()
            );
        }
    }
}
