//! Programs for the ATM sockets of Linux, on the hosts of a lab.
//!
//! **Purpose.** Linux has no ATM sockets any more; its programs are still there. With this library in `LD_PRELOAD` and
//! the socket service of a host in `AEROSTAT_ATM`, `socket(PF_ATMPVC, ...)` and `socket(PF_ATMSVC, ...)` give sockets
//! of that service. Other sockets, and all descriptors of processes without the variable, are left to the kernel.
//!
//! **What is replaced.** `socket`, `bind`, `connect`, `listen`, `accept`, `accept4`, `getsockname`, `getpeername`,
//! `setsockopt`, `getsockopt` and `ioctl` of such sockets. `read`, `poll`, `select`, `dup`, `fork` and `close` need no
//! replacement: an ATM socket is a descriptor of the kernel. `write` and `send` are looked at for two things that
//! the kernel does not know: a PDU without octets is not sent, and one that is longer than the contract allows is
//! EMSGSIZE.
//!
//! **Objects and owners.** `table.rs` has the state of each socket, by the number of its open file, so that `dup`,
//! `fork` and `exec` keep it. `layout.rs` has the structures of the kernel's headers. `interface.rs` has the `ioctl`s
//! of interfaces.
//!
//! **Standards.** `<linux/atm.h>`, `<linux/atmdev.h>`, `<linux/sonet.h>`, `qos(7)`, `sap(7)` of linux-atm.
//!
//! **Not implemented.** Calls with AAL0; several B-LLI; answers with another contract than the offer; `ioctl`s that
//! change an interface. What a preload library cannot reach: programs that are linked statically, setuid programs,
//! programs that make system calls themselves (Go). The result of a `connect` that does not wait is known to the
//! process that has called it, and not to its children.
//!
//! **Deviations.** The interface number of a permanent connection is 0 for every host.

mod interface;
mod layout;
mod names;
mod options;
mod table;

use aerostat_socket::{Call, Control, Error};
use layout::{ATMPVC, ATMSVC, SAP};
use libc::{c_int, c_ulong, c_void, sockaddr, socklen_t, ssize_t};
use std::os::fd::{BorrowedFd, IntoRawFd as _};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use table::Entry;

/// The next function of this name: that of the C library.
macro_rules! real {
    ($name:ident: $kind:ty) => {{
        static FOUND: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        let mut found = FOUND.load(std::sync::atomic::Ordering::Relaxed);
        if found == 0 {
            const NAME: &std::ffi::CStr = match std::ffi::CStr::from_bytes_with_nul(
                concat!(stringify!($name), "\0").as_bytes(),
            ) {
                Ok(name) => name,
                Err(_) => panic!("a name"),
            };
            // SAFETY: the name ends with a zero octet.
            found = unsafe { libc::dlsym(libc::RTLD_NEXT, NAME.as_ptr()) } as usize;
            FOUND.store(found, std::sync::atomic::Ordering::Relaxed);
        }
        assert!(found != 0, "no such function in the C library");
        // SAFETY: the C library has a function of this name with this type.
        unsafe { std::mem::transmute::<usize, $kind>(found) }
    }};
}

pub use options::{getsockopt, setsockopt};
pub(crate) use real;

fn fail(errno: c_int) -> c_int {
    // SAFETY: errno of this thread is valid memory.
    unsafe { *libc::__errno_location() = errno };
    -1
}

fn failed(error: &Error) -> c_int {
    fail(error.errno())
}

/// Tells the user of an error, without a lock that another thread may have had when this process was forked.
fn say(error: &Error) {
    let text = format!("aerostat: {error}\n");
    let real = real!(write: unsafe extern "C" fn(c_int, *const c_void, usize) -> ssize_t);
    // SAFETY: the text has as many octets as the call is told.
    let _ = unsafe { real(libc::STDERR_FILENO, text.as_ptr().cast(), text.len()) };
}

/// Octets of a caller.
///
/// # Safety
/// If `at` is not null, it has `length` octets.
unsafe fn octets<'a>(at: *const c_void, length: socklen_t) -> &'a [u8] {
    if at.is_null() {
        return &[];
    }
    // SAFETY: as the caller of this function says.
    unsafe { std::slice::from_raw_parts(at.cast(), length as usize) }
}

/// Copies a value to a caller, and cuts it if there is less room, as the kernel does.
///
/// # Safety
/// `length` is valid, and `to` has as many octets as it says, or either is null.
unsafe fn give(value: &[u8], to: *mut c_void, length: *mut socklen_t) -> c_int {
    if to.is_null() || length.is_null() {
        return fail(libc::EFAULT);
    }
    // SAFETY: as the caller of this function says.
    unsafe {
        let room = (*length as usize).min(value.len());
        std::ptr::copy_nonoverlapping(value.as_ptr(), to.cast(), room);
        *length = value.len() as socklen_t;
    }
    0
}

/// Most octets of a PDU that may be written to a descriptor, plus 1; 0: the descriptor has no ATM socket. A stale entry
/// costs only a look ([`limit`]).
static LIMITS: [AtomicU32; 1024] = [const { AtomicU32::new(0) }; 1024];

fn set_limit(fd: c_int, most: u32) {
    if let Some(place) = usize::try_from(fd).ok().and_then(|fd| LIMITS.get(fd)) {
        place.store(most + 1, Ordering::Relaxed);
    }
}

/// Answer to a write of so many octets, if the write is not for the kernel.
fn refused_write(fd: c_int, length: usize) -> Option<ssize_t> {
    let place = usize::try_from(fd).ok().and_then(|fd| LIMITS.get(fd))?;
    let most = (place.load(Ordering::Relaxed) as usize).checked_sub(1)?;
    if (1..=most).contains(&length) {
        return None;
    }
    if table::find(fd).is_none() {
        // Another file has this number now.
        place.store(0, Ordering::Relaxed);
        return None;
    }
    Some(match length {
        0 => 0,
        _ => fail(libc::EMSGSIZE) as ssize_t,
    })
}

/// See `write(2)`.
///
/// # Safety
/// As `write`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn write(fd: c_int, data: *const c_void, length: usize) -> ssize_t {
    let real = real!(write: unsafe extern "C" fn(c_int, *const c_void, usize) -> ssize_t);
    // SAFETY: the arguments are the caller's.
    refused_write(fd, length).unwrap_or_else(|| unsafe { real(fd, data, length) })
}

/// See `send(2)`.
///
/// # Safety
/// As `send`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn send(
    fd: c_int,
    data: *const c_void,
    length: usize,
    flags: c_int,
) -> ssize_t {
    let real = real!(send: unsafe extern "C" fn(c_int, *const c_void, usize, c_int) -> ssize_t);
    // SAFETY: the arguments are the caller's.
    refused_write(fd, length).unwrap_or_else(|| unsafe { real(fd, data, length, flags) })
}

/// See `socket(2)`.
#[unsafe(no_mangle)]
pub extern "C" fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    if !matches!(domain, ATMPVC | ATMSVC) || std::env::var_os(aerostat_socket::VARIABLE).is_none() {
        let real = real!(socket: extern "C" fn(c_int, c_int, c_int) -> c_int);
        return real(domain, kind, protocol);
    }
    let opened = table::service().and_then(|service| service.open());
    match opened {
        Ok((control, fd)) => {
            let fd = fd.into_raw_fd();
            table::add(fd, domain, control, None, [0; SAP]);
            as_asked(fd, kind);
            fd
        }
        Err(error) => {
            say(&error);
            failed(&error)
        }
    }
}

/// Sets the flags of a new descriptor.
fn as_asked(fd: c_int, flags: c_int) {
    let close = if flags & libc::SOCK_CLOEXEC != 0 {
        libc::FD_CLOEXEC
    } else {
        0
    };
    // SAFETY: these calls have no pointers.
    unsafe {
        libc::fcntl(fd, libc::F_SETFD, close);
        if flags & libc::SOCK_NONBLOCK != 0 {
            libc::fcntl(fd, libc::F_SETFL, libc::O_RDWR | libc::O_NONBLOCK);
        }
    }
}

/// A permanent connection; the label is its address.
fn open_permanent(fd: c_int, entry: &Entry, address: &[u8]) -> c_int {
    let Some((itf, vpi, vci)) = layout::pvc(address) else {
        return fail(libc::EINVAL);
    };
    let Some(qos) = entry.qos else {
        // As the kernel: a socket without SO_ATMQOS has no connection.
        return fail(libc::EBADFD);
    };
    // ATM_ITF_ANY is -1; a host has the interface 0.
    if !matches!(itf, -1 | 0) {
        return fail(libc::ENODEV);
    }
    if vpi < 0 || vci < 0 {
        return fail(libc::EADDRNOTAVAIL);
    }
    let Some(text) = layout::qos_text(&qos) else {
        return fail(libc::EINVAL);
    };
    match entry.control.open_permanent(&format!("{vpi}.{vci}"), &text) {
        Ok(agreed) => connected(fd, &agreed),
        Err(error) => failed(&error),
    }
}

/// A connection can be used with this contract.
fn connected(fd: c_int, agreed: &str) -> c_int {
    table::change(fd, |entry| {
        entry.qos = layout::qos_octets(agreed).or(entry.qos);
        entry.open = true;
        set_limit(fd, entry.qos.map_or(65_535, |qos| layout::sends(&qos)));
    });
    0
}

/// See `bind(2)`.
///
/// # Safety
/// As `bind`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bind(fd: c_int, address: *const sockaddr, length: socklen_t) -> c_int {
    let Some(entry) = table::find(fd) else {
        let real = real!(bind: unsafe extern "C" fn(c_int, *const sockaddr, socklen_t) -> c_int);
        // SAFETY: the arguments are the caller's.
        return unsafe { real(fd, address, length) };
    };
    // SAFETY: as of the caller.
    let address = unsafe { octets(address.cast(), length) };
    if entry.family == ATMPVC {
        return open_permanent(fd, &entry, address);
    }
    match layout::svc(address) {
        Some(address) => bind_to(fd, &entry, &address),
        None => fail(libc::EINVAL),
    }
}

/// The selector of the address that a host's name stands for.
const NAMED_SELECTOR: &str = "e0";

/// Gives a socket an address in hex digits; empty: the service chooses.
fn bind_to(fd: c_int, entry: &Entry, address: &str) -> c_int {
    let Some(sap) = layout::sap_text(&entry.sap) else {
        return fail(libc::EINVAL);
    };
    match entry.control.bind(address, &sap) {
        Ok(given) => {
            let named = given.to_lowercase().ends_with(NAMED_SELECTOR);
            table::change(fd, |entry| {
                entry.bound = true;
                entry.beside = address.is_empty() && !named;
            });
            0
        }
        Err(error) => failed(&error),
    }
}

/// See `connect(2)`.
///
/// # Safety
/// As `connect`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn connect(fd: c_int, address: *const sockaddr, length: socklen_t) -> c_int {
    let Some(entry) = table::find(fd) else {
        let real = real!(connect: unsafe extern "C" fn(c_int, *const sockaddr, socklen_t) -> c_int);
        // SAFETY: the arguments are the caller's.
        return unsafe { real(fd, address, length) };
    };
    // SAFETY: as of the caller.
    let address = unsafe { octets(address.cast(), length) };
    if entry.family == ATMPVC {
        return open_permanent(fd, &entry, address);
    }
    if entry.is_connecting() {
        return match progress(fd, &entry) {
            None => fail(libc::EALREADY),
            Some(0) => 0,
            Some(errno) => fail(errno),
        };
    }
    let Some(qos) = entry.qos else {
        return fail(libc::EBADFD);
    };
    let most = layout::sends(&qos);
    let texts = (
        layout::svc(address).filter(|address| !address.is_empty()),
        layout::sap_text(&entry.sap),
        layout::qos_text(&qos),
    );
    let (Some(called), Some(sap), Some(qos)) = texts else {
        return fail(libc::EINVAL);
    };
    let call = Call {
        sap: &sap,
        qos: &qos,
        multipoint: entry.multipoint,
        ..Call::to(&called)
    };
    // SAFETY: this call has no pointers.
    if unsafe { libc::fcntl(fd, libc::F_GETFL) } & libc::O_NONBLOCK != 0 {
        return start_connect(fd, &entry, &call, most);
    }
    match entry.control.make(&call) {
        Ok(agreed) => connected(fd, &agreed),
        Err(error) => failed(&error),
    }
}

/// Makes a call, and does not wait for it.
fn start_connect(fd: c_int, entry: &Entry, call: &Call<'_>, most: u32) -> c_int {
    // SAFETY: the descriptor is open during the call, because the program has just used it in this thread.
    let descriptor = unsafe { BorrowedFd::borrow_raw(fd) };
    let started = entry.control.start_connect(descriptor, call);
    let result = started.and_then(|call| match call.is_done() {
        true => call.finish().map(|agreed| connected(fd, &agreed)),
        false => {
            let call = Arc::new(Mutex::new(Some(call)));
            table::change(fd, |entry| entry.connecting = Some(call));
            set_limit(fd, most);
            Ok(fail(libc::EINPROGRESS))
        }
    });
    result.unwrap_or_else(|error| failed(&error))
}

/// The result of a call for which its program does not wait: 0, or an errno; `None` while it is being made.
fn progress(fd: c_int, entry: &Entry) -> Option<c_int> {
    let mut asked = libc::pollfd {
        fd,
        events: libc::POLLOUT,
        revents: 0,
    };
    // SAFETY: there is one structure, as the call is told.
    if unsafe { libc::poll(&raw mut asked, 1, 0) } == 0 {
        return None;
    }
    // The answer has been sent before the descriptor became writable.
    let result = entry.take_call()?.finish();
    table::change(fd, |entry| entry.connecting = None);
    Some(match result {
        Ok(agreed) => connected(fd, &agreed),
        Err(error) => error.errno(),
    })
}

/// See `listen(2)`.
#[unsafe(no_mangle)]
pub extern "C" fn listen(fd: c_int, backlog: c_int) -> c_int {
    let Some(entry) = table::find(fd) else {
        let real = real!(listen: extern "C" fn(c_int, c_int) -> c_int);
        return real(fd, backlog);
    };
    // Without `bind`, a listener of the kernel has all addresses of the host.
    if !entry.bound && bind_to(fd, &entry, "") != 0 {
        return -1;
    }
    // In the kernel a listener without an address has all of the host, and the second one for a service is an error.
    // Here another program has the selector that callers mean who name the host alone: this one would wait for ever.
    if table::find(fd).is_some_and(|entry| entry.beside) {
        return fail(libc::EADDRINUSE);
    }
    // ATM_BACKLOG_DEFAULT is 32.
    let backlog = if backlog <= 0 { 32 } else { backlog.min(128) };
    let max_sdu = entry.qos.map_or(0, |qos| layout::receives(&qos));
    match entry.control.listen(backlog as u16, max_sdu) {
        Ok(()) => 0,
        Err(error) => failed(&error),
    }
}

/// AAL parameters cannot be supported. Source: Q.2610.
const AAL_UNSUPPORTED: u8 = 78;

/// The contract of an answer to this offer: as offered. A listener takes single cells if its own contract has AAL0, and
/// SDUs of AAL5 otherwise; `None` if the offer is not so.
fn answer<'a>(listener: &Entry, offered: &'a str) -> Option<&'a str> {
    let cells = |text: Option<String>| text.is_some_and(|text| text.contains("aal0"));
    let takes = cells(listener.qos.as_ref().and_then(layout::qos_text));
    match (takes, offered.contains("aal0")) {
        (true, true) => Some(offered),
        (false, false) => Some(""),
        _ => None,
    }
}

/// Takes the next offer, and accepts it.
fn accepted(fd: c_int, listener: &Entry, flags: c_int) -> Result<(c_int, String), c_int> {
    let mut packet = vec![0_u8; 8192];
    loop {
        // SAFETY: the packet has room for as many octets as the call is told.
        let got = unsafe { libc::recv(fd, packet.as_mut_ptr().cast(), packet.len(), 0) };
        let got = match usize::try_from(got) {
            Ok(0) => return Err(fail(libc::ECONNABORTED)),
            Ok(got) => got,
            // errno is that of `recv`.
            Err(_) => return Err(-1),
        };
        let offer = Control::offered(packet.get(..got).unwrap_or_default());
        let offer = offer.map_err(|error| failed(&error))?;
        let Some(answer) = answer(listener, &offer.qos) else {
            // The caller has gone if this fails; the next one may be there.
            let _ = listener.control.refuse(offer.offer, AAL_UNSUPPORTED, &[]);
            continue;
        };
        let (control, new) = match listener.control.accept(offer.offer, answer, &[]) {
            Ok(accepted) => accepted,
            // The caller has gone; the next one may be there.
            Err(error) if error.errno() == libc::EBADF || error.cause().is_some() => continue,
            Err(error) => return Err(failed(&error)),
        };
        let new = new.into_raw_fd();
        let qos = layout::qos_octets(&offer.qos);
        table::add(new, ATMSVC, control, qos, layout::sap_octets(&offer.sap));
        connected(new, &offer.qos);
        as_asked(new, flags);
        return Ok((new, offer.caller));
    }
}

/// See `accept4(2)`.
///
/// # Safety
/// As `accept4`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn accept4(
    fd: c_int,
    address: *mut sockaddr,
    length: *mut socklen_t,
    flags: c_int,
) -> c_int {
    let Some(entry) = table::find(fd) else {
        let real = real!(accept4: unsafe extern "C" fn(c_int, *mut sockaddr, *mut socklen_t, c_int) -> c_int);
        // SAFETY: the arguments are the caller's.
        return unsafe { real(fd, address, length, flags) };
    };
    match accepted(fd, &entry, flags) {
        Ok((new, caller)) => {
            if !address.is_null() {
                // SAFETY: as of the caller.
                unsafe { give(&layout::svc_octets(&caller), address.cast(), length) };
            }
            new
        }
        Err(failed) => failed,
    }
}

/// See `accept(2)`.
///
/// # Safety
/// As `accept`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn accept(
    fd: c_int,
    address: *mut sockaddr,
    length: *mut socklen_t,
) -> c_int {
    // SAFETY: the arguments are the caller's.
    unsafe { accept4(fd, address, length, 0) }
}

/// The address of one end.
fn name_of(entry: &Entry, own: bool) -> Result<Vec<u8>, c_int> {
    let status = entry.control.status().map_err(|error| failed(&error))?;
    if entry.family == ATMPVC {
        return Ok(layout::pvc_octets(&status.label).to_vec());
    }
    let address = if own { status.local } else { status.peer };
    if address.is_empty() {
        // As the kernel: a socket without an address has one of zero octets. Python asks each descriptor that it gets.
        return match own {
            true => Ok(vec![0; layout::SVC_ADDRESS]),
            false => Err(fail(libc::ENOTCONN)),
        };
    }
    Ok(layout::svc_octets(&address).to_vec())
}

macro_rules! names {
    ($($(#[$doc:meta])* $name:ident, $own:literal;)*) => {$(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            fd: c_int,
            address: *mut sockaddr,
            length: *mut socklen_t,
        ) -> c_int {
            let Some(entry) = table::find(fd) else {
                let real = real!($name: unsafe extern "C" fn(c_int, *mut sockaddr, *mut socklen_t) -> c_int);
                // SAFETY: the arguments are the caller's.
                return unsafe { real(fd, address, length) };
            };
            match name_of(&entry, $own) {
                // SAFETY: as of the caller.
                Ok(name) => unsafe { give(&name, address.cast(), length) },
                Err(failed) => failed,
            }
        }
    )*};
}
names! {
    /// See `getsockname(2)`.
    ///
    /// # Safety
    /// As `getsockname`.
    getsockname, true;
    /// See `getpeername(2)`.
    ///
    /// # Safety
    /// As `getpeername`.
    getpeername, false;
}

/// `SIOCGSTAMP` of 64-bit systems. Source: asm-generic/sockios.h.
const SIOCGSTAMP: c_ulong = 0x8906;

/// `ATM_ADDPARTY` of 64-bit systems: its argument is a `struct sockaddr_atmsvc`, whatever the number says. Source:
/// linux/atmdev.h, net/atm/svc.c.
const ADDPARTY: c_ulong = 0x4010_61f4;
/// `ATM_DROPPARTY`: its argument is an `int`.
const DROPPARTY: c_ulong = 0x4004_61f5;

/// Adds a leaf to a point-to-multipoint call, or drops it. The result is the number of the leaf, or 0.
///
/// # Safety
/// `argument` is null or what the request wants.
unsafe fn party(entry: &Entry, request: c_ulong, argument: *const c_void) -> c_int {
    if argument.is_null() {
        return fail(libc::EFAULT);
    }
    if !entry.multipoint || entry.family != ATMSVC {
        return fail(libc::EINVAL);
    }
    let done = if request == ADDPARTY {
        // SAFETY: as of the caller.
        let address = unsafe { octets(argument.cast(), layout::SVC_ADDRESS as socklen_t) };
        let Some(called) = layout::svc(address).filter(|address| !address.is_empty()) else {
            return fail(libc::EINVAL);
        };
        entry.control.add_party(&called).map(c_int::from)
    } else {
        // SAFETY: as of the caller.
        let number = unsafe { argument.cast::<c_int>().read_unaligned() };
        let Ok(number) = u16::try_from(number) else {
            return fail(libc::EINVAL);
        };
        entry.control.drop_party(number).map(|()| 0)
    };
    done.unwrap_or_else(|error| failed(&error))
}

/// See `ioctl(2)`. It is variadic in C; every request has one argument at most.
///
/// # Safety
/// As `ioctl`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ioctl(fd: c_int, request: c_ulong, argument: *mut c_void) -> c_int {
    let of_socket = matches!(request, SIOCGSTAMP | libc::FIONREAD) || request >> 8 & 0xff == 0x61;
    let Some(entry) = of_socket.then(|| table::find(fd)).flatten() else {
        let real = real!(ioctl: unsafe extern "C" fn(c_int, c_ulong, *mut c_void) -> c_int);
        // SAFETY: the arguments are the caller's.
        return unsafe { real(fd, request, argument) };
    };
    match request {
        // When the last PDU was received: about now, because programs ask right after they have read it.
        SIOCGSTAMP => {
            // SAFETY: the caller gives room for a `timeval`.
            unsafe { libc::gettimeofday(argument.cast(), std::ptr::null_mut()) }
        }
        // Octets of the next PDU, where the kernel counts all of them.
        libc::FIONREAD => {
            let flags = libc::MSG_PEEK | libc::MSG_TRUNC | libc::MSG_DONTWAIT;
            let mut octet = 0_u8;
            // SAFETY: there is room for the one octet that is asked for.
            let got = unsafe { libc::recv(fd, (&raw mut octet).cast(), 1, flags) };
            // SAFETY: the caller gives room for an `int`.
            unsafe { *argument.cast::<c_int>() = c_int::try_from(got).unwrap_or(0).max(0) };
            0
        }
        // SAFETY: the argument is as the caller's request wants it.
        ADDPARTY | DROPPARTY => unsafe { party(&entry, request, argument) },
        _ if interface::is_request(request) => {
            // SAFETY: the argument is as the caller's request wants it.
            match unsafe { interface::handle(request, argument) } {
                Ok(()) => 0,
                Err(errno) => fail(errno),
            }
        }
        _ => fail(libc::EOPNOTSUPP),
    }
}
