//! Options of sockets: `setsockopt` and `getsockopt`.

use super::layout::{QOS, SAP, SOL_ATM, option};
use super::{fail, give, layout, octets, progress, table};
use crate::real;
use libc::{c_int, c_void, socklen_t};

/// See `setsockopt(2)`.
///
/// # Safety
/// As `setsockopt`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn setsockopt(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *const c_void,
    length: socklen_t,
) -> c_int {
    let number = option::number(name).filter(|_| level == SOL_ATM);
    let entry = number.and_then(|number| Some((number, table::find(fd)?)));
    let Some((number, entry)) = entry else {
        let real = real!(setsockopt: unsafe extern "C" fn(c_int, c_int, c_int, *const c_void, socklen_t) -> c_int);
        // SAFETY: the arguments are the caller's.
        return unsafe { real(fd, level, name, value, length) };
    };
    // SAFETY: as of the caller.
    let value = unsafe { octets(value, length) };
    match number {
        option::QOS => {
            let Ok(qos) = <[u8; QOS]>::try_from(value) else {
                return fail(libc::EINVAL);
            };
            if entry.open {
                return fail(libc::EOPNOTSUPP);
            }
            if layout::qos_text(&qos).is_none() {
                return fail(libc::EINVAL);
            }
            table::change(fd, |entry| entry.qos = Some(qos));
            0
        }
        option::SAP => {
            let Ok(sap) = <[u8; SAP]>::try_from(value) else {
                return fail(libc::EINVAL);
            };
            if layout::sap_text(&sap).is_none() {
                return fail(libc::EINVAL);
            }
            table::change(fd, |entry| entry.sap = sap);
            0
        }
        option::MULTIPOINT => {
            let multipoint = match <[u8; 4]>::try_from(value).map(c_int::from_ne_bytes) {
                Ok(number @ 0..=1) => number == 1,
                _ => return fail(libc::EINVAL),
            };
            table::change(fd, |entry| entry.multipoint = multipoint);
            0
        }
        option::SETCLP if value.iter().all(|octet| *octet == 0) => 0,
        _ => fail(libc::EOPNOTSUPP),
    }
}

/// See `getsockopt(2)`.
///
/// # Safety
/// As `getsockopt`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getsockopt(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    length: *mut socklen_t,
) -> c_int {
    let number = option::number(name).filter(|_| level == SOL_ATM);
    let of_call = (level, name) == (libc::SOL_SOCKET, libc::SO_ERROR);
    let found = (of_call || number.is_some()).then(|| table::find(fd));
    let entry = found.flatten();
    let result = entry
        .as_ref()
        .filter(|entry| entry.is_connecting())
        .map(|entry| progress(fd, entry).unwrap_or(0));
    if of_call && let Some(result) = result {
        // SAFETY: as of the caller.
        return unsafe { give(&result.to_ne_bytes(), value, length) };
    }
    let entry = match result {
        // The contract is known now.
        Some(_) => table::find(fd),
        None => entry,
    };
    let entry = number.and_then(|number| Some((number, entry?)));
    let Some((number, entry)) = entry else {
        let real = real!(getsockopt: unsafe extern "C" fn(c_int, c_int, c_int, *mut c_void, *mut socklen_t) -> c_int);
        // SAFETY: the arguments are the caller's.
        return unsafe { real(fd, level, name, value, length) };
    };
    let found = match number {
        option::QOS => entry.qos.map(|qos| qos.to_vec()).ok_or(libc::EINVAL),
        option::SAP => Ok(entry.sap.to_vec()),
        option::PVC => match entry.control.status() {
            Ok(status) if status.label.is_empty() => Err(libc::ENOTCONN),
            Ok(status) => Ok(layout::pvc_octets(&status.label).to_vec()),
            Err(error) => Err(error.errno()),
        },
        option::MULTIPOINT => Ok(c_int::from(entry.multipoint).to_ne_bytes().to_vec()),
        option::SETCLP => Ok(vec![0; 4]),
        _ => Err(libc::EINVAL),
    };
    match found {
        // SAFETY: as of the caller.
        Ok(found) => unsafe { give(&found, value, length) },
        Err(errno) => fail(errno),
    }
}
