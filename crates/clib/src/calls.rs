//! Calls, offers and data of sockets.

use crate::error::{done, fail, failed};
use crate::user_data::said;
use crate::{OfferObject, SocketObject, boxed, given, libc_errno, made, new_socket, object, text};
use aerostat_socket::{Call, Connecting, Control, Error, Socket};
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr::null_mut;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The text of a parameter, or the end of the function with EINVAL.
macro_rules! texts {
    ($($name:ident),+; $failed:expr) => {$(
        // SAFETY: the pointer is null or a text of C, as the header demands.
        let Ok($name) = (unsafe { given(stringify!($name), $name) }) else {
            return $failed;
        };
    )+};
}

fn number(name: &str, value: c_uint) -> Result<u16, c_int> {
    u16::try_from(value).map_err(|_| {
        let text = format!("{name} is at most 65535, not {value}");
        fail(libc_errno::EINVAL, text)
    })
}

fn cause_of(cause: c_int) -> Result<u8, c_int> {
    u8::try_from(cause).map_err(|_| {
        let text = format!("a cause is 1 to 127, not {cause}");
        fail(libc_errno::EINVAL, text)
    })
}

/// See the header.
///
/// # Safety
/// The object is null or was not freed; texts are null or texts of C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aerostat_bind(
    socket: *mut SocketObject,
    address: *const c_char,
    sap: *const c_char,
) -> c_int {
    let socket = object!(socket, -1);
    texts!(address, sap; -1);
    done(socket.socket.bind(address, sap))
}

/// See the header.
///
/// # Safety
/// The object is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aerostat_listen(
    socket: *mut SocketObject,
    backlog: c_uint,
    max_sdu: c_uint,
) -> c_int {
    let socket = object!(socket, -1);
    match (number("backlog", backlog), number("max_sdu", max_sdu)) {
        (Ok(backlog), Ok(max_sdu)) => done(Control::listen(&socket.socket, backlog, max_sdu)),
        _ => -1,
    }
}

fn timeout(ms: c_uint) -> Option<Duration> {
    (ms > 0).then(|| Duration::from_millis(ms.into()))
}

/// See the header.
///
/// # Safety
/// The object is null or was not freed; texts are null or texts of C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aerostat_connect(
    socket: *mut SocketObject,
    called: *const c_char,
    sap: *const c_char,
    qos: *const c_char,
    timeout_ms: c_uint,
) -> c_int {
    let socket = object!(socket, -1);
    texts!(called, sap, qos; -1);
    let said = said(socket);
    let call = Call {
        sap,
        qos,
        timeout: timeout(timeout_ms),
        user_data: &said,
        ..Call::to(called)
    };
    done(socket.socket.make(&call))
}

/// See the header.
///
/// # Safety
/// The object is null or was not freed; texts are null or texts of C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aerostat_connect_multipoint(
    socket: *mut SocketObject,
    called: *const c_char,
    sap: *const c_char,
    qos: *const c_char,
    timeout_ms: c_uint,
    reports: c_int,
) -> c_int {
    let socket = object!(socket, -1);
    texts!(called, sap, qos; -1);
    let said = said(socket);
    let call = Call {
        called,
        sap,
        qos,
        timeout: timeout(timeout_ms),
        multipoint: true,
        reports: reports != 0,
        user_data: &said,
    };
    done(socket.socket.make(&call))
}

/// See the header.
///
/// # Safety
/// The object is null or was not freed; texts are null or texts of C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aerostat_connect_start(
    socket: *mut SocketObject,
    called: *const c_char,
    sap: *const c_char,
    qos: *const c_char,
) -> c_int {
    let socket = object!(socket, -1);
    texts!(called, sap, qos; -1);
    let said = said(socket);
    let call = Call {
        sap,
        qos,
        user_data: &said,
        ..Call::to(called)
    };
    let started = socket.socket.start_connect(&call);
    done(started.map(|call| {
        let mut place = socket.connecting.lock();
        *place
            .as_deref_mut()
            .unwrap_or_else(|poisoned| poisoned.get_mut()) = Some(call);
    }))
}

/// See the header.
///
/// # Safety
/// The object is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aerostat_connected(socket: *mut SocketObject) -> c_int {
    let socket = object!(socket, -1);
    let mut place = socket
        .connecting
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    match place.take() {
        Some(call) => done(Connecting::finish(call)),
        None => fail(libc_errno::ENOTCONN, "the socket makes no call"),
    }
}

/// See the header.
///
/// # Safety
/// The object is null or was not freed; the text is null or a text of C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aerostat_add_party(
    socket: *mut SocketObject,
    called: *const c_char,
) -> c_int {
    let socket = object!(socket, -1);
    texts!(called; -1);
    let added = socket.socket.add_party_with(called, &said(socket));
    added.map_or_else(|error| failed(&error), |(party, _)| c_int::from(party))
}

/// See the header.
///
/// # Safety
/// The object is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aerostat_drop_party(socket: *mut SocketObject, party: c_int) -> c_int {
    let socket = object!(socket, -1);
    match u16::try_from(party) {
        Ok(party) => done(socket.socket.drop_party(party)),
        Err(_) => fail(libc_errno::EINVAL, format!("the call has no leaf {party}")),
    }
}

/// See the header.
///
/// # Safety
/// The object is null or was not freed; the other pointers are null or valid for an `int`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aerostat_left(
    socket: *mut SocketObject,
    party: *mut c_int,
    cause: *mut c_int,
) -> c_int {
    let socket = object!(socket, -1);
    match socket.socket.left() {
        Err(error) => failed(&error),
        Ok(None) => 0,
        Ok(Some(left)) => {
            for (place, value) in [(party, left.party.into()), (cause, left.cause.into())] {
                if !place.is_null() {
                    // SAFETY: as of the caller.
                    unsafe { place.write(value) };
                }
            }
            1
        }
    }
}

/// See the header.
///
/// # Safety
/// The object is null or was not freed; texts are null or texts of C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aerostat_permanent(
    socket: *mut SocketObject,
    label: *const c_char,
    qos: *const c_char,
) -> c_int {
    let socket = object!(socket, -1);
    texts!(label, qos; -1);
    done(socket.socket.open_permanent(label, qos))
}

/// See the header.
///
/// # Safety
/// The object is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aerostat_offer_next(listener: *mut SocketObject) -> *mut OfferObject {
    let listener = object!(listener, null_mut());
    made(listener.socket.next_offer(), |offered| {
        let texts = [&offered.caller, &offered.called, &offered.sap, &offered.qos];
        boxed(OfferObject {
            listener: Control::clone(&listener.socket),
            said: Mutex::default(),
            texts: texts.map(|of| text(of)),
            offered,
        })
    })
}

/// See the header.
///
/// # Safety
/// The object is null or was not freed; the text is null or a text of C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aerostat_accept(
    offer: *mut OfferObject,
    qos: *const c_char,
) -> *mut SocketObject {
    let offer = object!(offer, null_mut());
    texts!(qos; null_mut());
    let said = offer.said.lock().unwrap_or_else(PoisonError::into_inner);
    made(
        offer.listener.answer(&offer.offered, qos, &said),
        new_socket,
    )
}

/// See the header.
///
/// # Safety
/// The object is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aerostat_refuse(offer: *mut OfferObject, cause: c_int) -> c_int {
    let offer = object!(offer, -1);
    match cause_of(cause) {
        Ok(cause) => {
            let said = offer.said.lock().unwrap_or_else(PoisonError::into_inner);
            done(offer.listener.refuse(offer.offered.offer, cause, &said))
        }
        Err(failed) => failed,
    }
}

/// See the header.
///
/// # Safety
/// The object is null or was not freed; `pdu` is valid for `length` octets.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aerostat_send(
    socket: *mut SocketObject,
    pdu: *const c_void,
    length: usize,
) -> isize {
    let socket = object!(socket, -1);
    if length == 0 {
        return 0;
    }
    if pdu.is_null() {
        return fail(libc_errno::EINVAL, "pdu is NULL") as isize;
    }
    // SAFETY: as of the caller.
    let pdu = unsafe { std::slice::from_raw_parts(pdu.cast::<u8>(), length) };
    match socket.socket.send(pdu) {
        Ok(()) => length as isize,
        Err(error) => failed(&Error::from(error)) as isize,
    }
}

/// See the header.
///
/// # Safety
/// The object is null or was not freed; `buffer` is valid for `length` octets.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aerostat_recv(
    socket: *mut SocketObject,
    buffer: *mut c_void,
    length: usize,
) -> isize {
    let socket = object!(socket, -1);
    if buffer.is_null() || length == 0 {
        let text = "buffer is NULL, or has no room: 0 would mean the end of the call";
        return fail(libc_errno::EINVAL, text) as isize;
    }
    // SAFETY: as of the caller. The octets may be anything; they are initialised first.
    let buffer = unsafe {
        buffer.cast::<u8>().write_bytes(0, length);
        std::slice::from_raw_parts_mut(buffer.cast::<u8>(), length)
    };
    match socket.socket.recv(buffer) {
        Ok(octets) => octets as isize,
        Err(error) => failed(&Error::from(error)) as isize,
    }
}

/// See the header.
///
/// # Safety
/// The object is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aerostat_release(socket: *mut SocketObject, cause: c_int) -> c_int {
    let socket = object!(socket, -1);
    match cause_of(cause) {
        Ok(cause) => done(socket.socket.release_with(cause, &said(socket))),
        Err(failed) => failed,
    }
}

/// `struct aerostat_status`.
#[repr(C)]
#[derive(Debug)]
pub struct StatusObject {
    state: [u8; 16],
    local: [u8; 41],
    peer: [u8; 41],
    label: [u8; 16],
    qos: [u8; 256],
    why: [u8; 256],
    cause: c_int,
    sent_pdus: u64,
    sent_octets: u64,
    received_pdus: u64,
    received_octets: u64,
    refused: u64,
    unsent: u64,
    unread: u64,
    damaged: u64,
    leaves: c_uint,
}

/// A text in its place, with a zero octet at its end.
fn placed<const N: usize>(name: &str, text: &str) -> Result<[u8; N], c_int> {
    let mut place = [0; N];
    match place.get_mut(..text.len()) {
        Some(part) if text.len() < N => {
            part.copy_from_slice(text.as_bytes());
            Ok(place)
        }
        _ => {
            let text = format!("{name} has {} octets, and its place {N}", text.len());
            Err(fail(libc_errno::ENAMETOOLONG, text))
        }
    }
}

/// The state of a socket for C.
fn status_of(socket: &Socket) -> Result<StatusObject, c_int> {
    let seen = socket.status().map_err(|error: Error| failed(&error))?;
    Ok(StatusObject {
        state: placed("state", &seen.state)?,
        local: placed("local", &seen.local)?,
        peer: placed("peer", &seen.peer)?,
        label: placed("label", &seen.label)?,
        qos: placed("qos", &seen.qos)?,
        why: placed("why", &seen.why)?,
        cause: seen.cause.into(),
        sent_pdus: seen.sent.0,
        sent_octets: seen.sent.1,
        received_pdus: seen.received.0,
        received_octets: seen.received.1,
        refused: seen.refused,
        unsent: seen.unsent,
        unread: seen.unread,
        damaged: seen.damaged,
        leaves: seen.leaves.into(),
    })
}

/// See the header.
///
/// # Safety
/// The object is null or was not freed; `status` is null or valid for its structure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aerostat_status(
    socket: *const SocketObject,
    status: *mut StatusObject,
) -> c_int {
    let socket = object!(socket, -1);
    if status.is_null() {
        return fail(libc_errno::EINVAL, "status is NULL");
    }
    match status_of(&socket.socket) {
        Ok(seen) => {
            // SAFETY: as of the caller.
            unsafe { status.write(seen) };
            0
        }
        Err(failed) => failed,
    }
}
