//! User data of calls.

use crate::error::{fail, failed};
use crate::{OfferObject, SocketObject, libc_errno, object};
use aerostat_socket::UserData;
use std::ffi::{c_int, c_void};
use std::sync::PoisonError;

/// User data for the next call, leaf or release of a socket, which is told once.
pub(crate) fn said(socket: &SocketObject) -> Vec<u8> {
    let mut place = socket.said.lock().unwrap_or_else(PoisonError::into_inner);
    std::mem::take(&mut place)
}

/// Octets of the caller; EINVAL if there are octets at a null pointer, EMSGSIZE if they are too many.
///
/// # Safety
/// The pointer is null or valid for `length` octets.
unsafe fn octets_of(data: *const c_void, length: usize) -> Result<Vec<u8>, c_int> {
    if length > UserData::MAX {
        let most = UserData::MAX;
        let text =
            format!("{length} octets of user data: a message of a call carries at most {most}");
        return Err(fail(libc_errno::EMSGSIZE, text));
    }
    if length == 0 {
        return Ok(Vec::new());
    }
    if data.is_null() {
        return Err(fail(libc_errno::EINVAL, "data is NULL"));
    }
    // SAFETY: as of the caller.
    Ok(unsafe { std::slice::from_raw_parts(data.cast::<u8>(), length) }.to_vec())
}

/// See the header.
///
/// # Safety
/// The object is null or was not freed; `data` is valid for `length` octets.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aerostat_say(
    socket: *mut SocketObject,
    data: *const c_void,
    length: usize,
) -> c_int {
    let socket = object!(socket, -1);
    // SAFETY: as of the caller.
    match unsafe { octets_of(data, length) } {
        Ok(octets) => {
            *socket.said.lock().unwrap_or_else(PoisonError::into_inner) = octets;
            0
        }
        Err(failed) => failed,
    }
}

/// See the header.
///
/// # Safety
/// The object is null or was not freed; `data` is valid for `length` octets.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aerostat_offer_say(
    offer: *mut OfferObject,
    data: *const c_void,
    length: usize,
) -> c_int {
    let offer = object!(offer, -1);
    // SAFETY: as of the caller.
    match unsafe { octets_of(data, length) } {
        Ok(octets) => {
            *offer.said.lock().unwrap_or_else(PoisonError::into_inner) = octets;
            0
        }
        Err(failed) => failed,
    }
}

/// Copies octets to a buffer of C, as many as fit; returns their number.
///
/// # Safety
/// `buffer` is null or valid for `length` octets.
unsafe fn copied(octets: &[u8], buffer: *mut c_void, length: usize) -> isize {
    let fits = octets.len().min(length);
    if !buffer.is_null() {
        // SAFETY: as of the caller; the regions are not the same.
        unsafe { std::ptr::copy_nonoverlapping(octets.as_ptr(), buffer.cast::<u8>(), fits) };
    }
    octets.len() as isize
}

/// See the header.
///
/// # Safety
/// The object is null or was not freed; `buffer` is null or valid for `length` octets.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aerostat_heard(
    socket: *const SocketObject,
    buffer: *mut c_void,
    length: usize,
) -> isize {
    let socket = object!(socket, -1);
    match socket.socket.user_data() {
        // SAFETY: as of the caller.
        Ok(octets) => unsafe { copied(&octets, buffer, length) },
        Err(error) => failed(&error) as isize,
    }
}

/// See the header.
///
/// # Safety
/// The object is null or was not freed; `buffer` is null or valid for `length` octets.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aerostat_offer_heard(
    offer: *const OfferObject,
    buffer: *mut c_void,
    length: usize,
) -> isize {
    let offer = object!(offer, -1);
    // SAFETY: as of the caller.
    unsafe { copied(offer.offered.user_data.octets(), buffer, length) }
}
