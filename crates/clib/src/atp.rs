//! ATP: `include/aerostat_atp.h`.

use crate::error::{done, fail, failed};
use crate::{ServiceObject, boxed, given, libc_errno, made, object, text};
use aerostat_socket::atp::{Connection, Listener, Options};
use aerostat_socket::{Error, Service};
use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::ptr::null_mut;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Role of an ATP socket after `listen` or `connect`.
#[derive(Debug)]
enum Role {
    Listener(Box<Listener>, CString),
    Connection(Connection),
}

/// Options of a socket that is neither a listener nor connected yet.
#[derive(Debug)]
struct Plan {
    address: String,
    options: Options,
    nonblocking: bool,
}

/// An ATP socket.
#[derive(Debug)]
pub struct AtpObject {
    service: Service,
    plan: Mutex<Plan>,
    role: OnceLock<Role>,
}

impl AtpObject {
    fn new(service: Service, plan: Plan) -> Self {
        Self {
            service,
            plan: Mutex::new(plan),
            role: OnceLock::new(),
        }
    }
    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// The connection, or -1.
    fn connection(&self) -> Result<&Connection, c_int> {
        match self.role.get() {
            Some(Role::Connection(connection)) => Ok(connection),
            Some(Role::Listener(..)) => Err(fail(
                libc_errno::EOPNOTSUPP,
                "the socket is a listener: accept a connection",
            )),
            None => Err(fail(
                libc_errno::ENOTCONN,
                "the socket has no connection: connect it, or accept one",
            )),
        }
    }
    /// -1, if the socket has become something already.
    fn is_free(&self) -> Result<(), c_int> {
        match self.role.get() {
            None => Ok(()),
            Some(_) => Err(fail(
                libc_errno::EISCONN,
                "the socket has a connection, or listens, already",
            )),
        }
    }
    fn becomes(&self, made: Result<Role, Error>) -> c_int {
        match made {
            Ok(role) => match self.role.set(role) {
                Ok(()) => 0,
                Err(_) => self.is_free().err().unwrap_or(-1),
            },
            Err(error) => failed(&error),
        }
    }
}

/// The text of a parameter, or the end of the function.
macro_rules! text_of {
    ($name:ident, $failed:expr) => {
        // SAFETY: the pointer is null or a text of C, as the header demands.
        match unsafe { given(stringify!($name), $name) } {
            Ok(text) => text,
            Err(_) => return $failed,
        }
    };
}

/// See the header.
///
/// # Safety
/// The object is null or was not freed; texts are null or texts of C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aerostat_atp_new(
    service: *const ServiceObject,
    address: *const c_char,
    qos: *const c_char,
) -> *mut AtpObject {
    let service = object!(service, null_mut());
    let mut options = Options::default();
    match text_of!(qos, null_mut()) {
        "" => {}
        qos => qos.clone_into(&mut options.qos),
    }
    let plan = Plan {
        address: text_of!(address, null_mut()).to_owned(),
        options,
        nonblocking: false,
    };
    boxed(AtpObject::new(service.service.clone(), plan))
}

/// See the header.
///
/// # Safety
/// The object is null or was not freed; texts are null or texts of C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aerostat_atp_option(
    socket: *mut AtpObject,
    name: *const c_char,
    value: *const c_char,
) -> c_int {
    let socket = object!(socket, -1);
    let (name, value) = (text_of!(name, -1), text_of!(value, -1));
    if let Err(failed) = socket.is_free() {
        return failed;
    }
    done(socket.plan().options.set(name, value))
}

/// See the header.
///
/// # Safety
/// The object is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aerostat_atp_connect(socket: *mut AtpObject) -> c_int {
    let socket = object!(socket, -1);
    if let Err(failed) = socket.is_free() {
        return failed;
    }
    let (address, options, nonblocking) = {
        let plan = socket.plan();
        (plan.address.clone(), plan.options.clone(), plan.nonblocking)
    };
    let made = Connection::connect(&socket.service, &address, &options);
    socket.becomes(made.map(|connection| {
        connection.set_nonblocking(nonblocking);
        Role::Connection(connection)
    }))
}

/// See the header.
///
/// # Safety
/// The object is null or was not freed; the text is null or a text of C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aerostat_atp_bind(
    socket: *mut AtpObject,
    address: *const c_char,
) -> c_int {
    let socket = object!(socket, -1);
    if let Err(failed) = socket.is_free() {
        return failed;
    }
    if !address.is_null() {
        text_of!(address, -1).clone_into(&mut socket.plan().address);
    }
    0
}

/// See the header.
///
/// # Safety
/// The object is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aerostat_atp_listen(socket: *mut AtpObject, backlog: c_uint) -> c_int {
    let socket = object!(socket, -1);
    if let Err(failed) = socket.is_free() {
        return failed;
    }
    let Ok(backlog) = u16::try_from(backlog) else {
        let text = format!("backlog is at most 128, not {backlog}");
        return fail(libc_errno::EINVAL, text);
    };
    let plan = socket.plan();
    let made = Listener::bind(&socket.service, &plan.address, backlog, &plan.options);
    socket.becomes(made.and_then(|listener| {
        listener.set_nonblocking(plan.nonblocking)?;
        let address = text(&listener.address()?);
        Ok(Role::Listener(Box::new(listener), address))
    }))
}

/// See the header.
///
/// # Safety
/// The object is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aerostat_atp_address(listener: *const AtpObject) -> *const c_char {
    match object!(listener, std::ptr::null()).role.get() {
        Some(Role::Listener(_, address)) => address.as_ptr(),
        _ => {
            fail(libc_errno::EINVAL, "the socket does not listen");
            std::ptr::null()
        }
    }
}

/// See the header.
///
/// # Safety
/// The object is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aerostat_atp_accept(listener: *mut AtpObject) -> *mut AtpObject {
    let socket = object!(listener, null_mut());
    let Some(Role::Listener(listener, _)) = socket.role.get() else {
        fail(libc_errno::EINVAL, "the socket does not listen");
        return null_mut();
    };
    made(listener.accept(), |connection| {
        let plan = Plan {
            address: String::new(),
            options: socket.plan().options.clone(),
            nonblocking: false,
        };
        let accepted = AtpObject::new(socket.service.clone(), plan);
        accepted.becomes(Ok(Role::Connection(connection)));
        boxed(accepted)
    })
}

/// See the header.
///
/// # Safety
/// The object is null or was not freed; `message` is valid for `length` octets, or null if `length` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aerostat_atp_send(
    socket: *mut AtpObject,
    message: *const c_void,
    length: usize,
) -> isize {
    let socket = object!(socket, -1);
    if message.is_null() && length > 0 {
        return fail(libc_errno::EINVAL, "message is NULL") as isize;
    }
    let message = match length {
        0 => &[],
        // SAFETY: as of the caller.
        length => unsafe { std::slice::from_raw_parts(message.cast::<u8>(), length) },
    };
    let sent = socket
        .connection()
        .map(|connection| connection.send(message));
    match sent {
        Ok(Ok(())) => length as isize,
        Ok(Err(error)) => failed(&error) as isize,
        Err(failed) => failed as isize,
    }
}

/// See the header.
///
/// # Safety
/// The object is null or was not freed; `buffer` is valid for `length` octets, or null if `length` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aerostat_atp_recv(
    socket: *mut AtpObject,
    buffer: *mut c_void,
    length: usize,
) -> isize {
    let socket = object!(socket, -1);
    if buffer.is_null() && length > 0 {
        return fail(libc_errno::EINVAL, "buffer is NULL") as isize;
    }
    let connection = match socket.connection() {
        Ok(connection) => connection,
        Err(failed) => return failed as isize,
    };
    match connection.recv() {
        Ok(Some(message)) => {
            let fits = message.len().min(length);
            if fits > 0 {
                // SAFETY: the buffer has room for `length` octets, as of the caller.
                unsafe { buffer.cast::<u8>().copy_from(message.as_ptr(), fits) };
            }
            message.len() as isize
        }
        Ok(None) => fail(libc_errno::ENODATA, "the other end has closed") as isize,
        Err(error) => failed(&error) as isize,
    }
}

/// See the header.
///
/// # Safety
/// The object is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aerostat_atp_set_nonblocking(
    socket: *mut AtpObject,
    nonblocking: c_int,
) -> c_int {
    let socket = object!(socket, -1);
    let nonblocking = nonblocking != 0;
    socket.plan().nonblocking = nonblocking;
    match socket.role.get() {
        Some(Role::Connection(connection)) => connection.set_nonblocking(nonblocking),
        Some(Role::Listener(listener, _)) => {
            return done(listener.set_nonblocking(nonblocking).map_err(Error::from));
        }
        None => {}
    }
    0
}

/// See the header.
///
/// # Safety
/// The object is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aerostat_atp_fd(socket: *mut AtpObject) -> c_int {
    let socket = object!(socket, -1);
    if let Some(Role::Listener(listener, _)) = socket.role.get() {
        return listener.as_fd().as_raw_fd();
    }
    let readable = socket.connection().map(Connection::readable);
    match readable {
        Ok(Ok(fd)) => fd.as_raw_fd(),
        Ok(Err(error)) => failed(&error),
        Err(failed) => failed,
    }
}

/// `struct aerostat_atp_status`.
#[repr(C)]
#[derive(Debug)]
pub struct AtpStatusObject {
    mtu: c_uint,
    window_eighths: c_uint,
    outstanding: c_uint,
    unread_messages: c_uint,
    round_trip_ns: u64,
    waiting: u64,
    kept: u64,
    messages_sent: u64,
    messages_received: u64,
    packets_sent: u64,
    packets_repeated: u64,
    packets_received: u64,
    duplicates: u64,
    naks_sent: u64,
    naks_received: u64,
    timeouts: u64,
    dropped: u64,
}

impl AtpStatusObject {
    fn of(connection: &Connection) -> Self {
        let seen = connection.stats();
        let (now, counts) = (seen.snapshot, seen.counters);
        Self {
            mtu: c_uint::try_from(seen.params.mtu).unwrap_or(c_uint::MAX),
            window_eighths: now.window_eighths,
            outstanding: now.outstanding,
            unread_messages: c_uint::try_from(now.unread_messages).unwrap_or(c_uint::MAX),
            round_trip_ns: u64::try_from(now.round_trip.as_nanos()).unwrap_or(u64::MAX),
            waiting: now.waiting as u64,
            kept: now.kept as u64,
            messages_sent: counts.messages_sent,
            messages_received: counts.messages_received,
            packets_sent: counts.packets_sent,
            packets_repeated: counts.packets_repeated,
            packets_received: counts.packets_received,
            duplicates: counts.duplicates,
            naks_sent: counts.naks_sent,
            naks_received: counts.naks_received,
            timeouts: counts.timeouts,
            dropped: counts.out_of_window + counts.no_room,
        }
    }
}

/// See the header.
///
/// # Safety
/// The object is null or was not freed; `status` is null or valid for its structure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aerostat_atp_status(
    socket: *const AtpObject,
    status: *mut AtpStatusObject,
) -> c_int {
    let socket = object!(socket, -1);
    if status.is_null() {
        return fail(libc_errno::EINVAL, "status is NULL");
    }
    match socket.connection() {
        Ok(connection) => {
            // SAFETY: as of the caller.
            unsafe { status.write(AtpStatusObject::of(connection)) };
            0
        }
        Err(failed) => failed,
    }
}

/// See the header.
///
/// # Safety
/// The object is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aerostat_atp_close(socket: *mut AtpObject) -> c_int {
    if socket.is_null() {
        return fail(libc_errno::EINVAL, "socket is NULL");
    }
    // SAFETY: it came from `boxed`, and the program has not freed it.
    let socket = unsafe { Box::from_raw(socket) };
    match socket.role.into_inner() {
        Some(Role::Connection(connection)) => done(connection.close()),
        _ => 0,
    }
}
