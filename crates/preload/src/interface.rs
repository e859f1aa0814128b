//! The `ioctl`s of ATM interfaces: `<linux/atmdev.h>` and `<linux/sonet.h>`, from what the service tells of its host.
//!
//! A host has the interface 0. Each request has a `struct atmif_sioc`: the interface, octets of the buffer, and the
//! buffer, which the kernel fills whatever its size is, apart from lists. Addresses may be added and removed
//! (`atmaddr -a`, `-d`, `-r`). Another request that would change the interface is refused as the kernel refuses it to a
//! program without `CAP_NET_ADMIN` (EPERM); a loop, or an error to insert, as a driver refuses what its hardware cannot
//! do (EINVAL). A link of a lab has no frames of SONET, so their errors
//! are 0. Source of the errors: net/atm/resources.c and drivers/atm/suni.c of Linux, from memory.

use crate::{layout, table};
use aerostat_socket::{Interface, PduCounts};
use libc::{c_int, c_ulong, c_void};

/// `_IOC` of the magic number `a`: direction, octets of the argument, number. Source: asm-generic/ioctl.h.
const fn request(direction: c_ulong, size: c_ulong, number: c_ulong) -> c_ulong {
    direction << 30 | size << 16 | 0x61 << 8 | number
}
/// `_IOW` of a `struct atmif_sioc`, or of a `struct atm_iobuf`, which are of the same size.
const fn of_interface(number: c_ulong) -> c_ulong {
    request(1, 16, number)
}

const GETLINKRATE: c_ulong = of_interface(0x81);
const GETNAMES: c_ulong = of_interface(0x83);
const GETTYPE: c_ulong = of_interface(0x84);
const GETESI: c_ulong = of_interface(0x85);
const GETADDR: c_ulong = of_interface(0x86);
const RSTADDR: c_ulong = of_interface(0x87);
const ADDADDR: c_ulong = of_interface(0x88);
const DELADDR: c_ulong = of_interface(0x89);
const GETCIRANGE: c_ulong = of_interface(0x8a);
const SETCIRANGE: c_ulong = of_interface(0x8b);
const SETESI: c_ulong = of_interface(0x8c);
const SETESIF: c_ulong = of_interface(0x8d);
const ADDLECSADDR: c_ulong = of_interface(0x8e);
const DELLECSADDR: c_ulong = of_interface(0x8f);
const GETLECSADDR: c_ulong = of_interface(0x90);
const GETSTAT: c_ulong = of_interface(0x50);
const GETSTATZ: c_ulong = of_interface(0x51);
const GETLOOP: c_ulong = of_interface(0x52);
const SETLOOP: c_ulong = of_interface(0x53);
const QUERYLOOP: c_ulong = of_interface(0x54);
const SONET_GETSTAT: c_ulong = request(2, 36, 0x10);
const SONET_GETSTATZ: c_ulong = request(2, 36, 0x11);
const SONET_SETDIAG: c_ulong = request(3, 4, 0x12);
const SONET_CLRDIAG: c_ulong = request(3, 4, 0x13);
const SONET_GETDIAG: c_ulong = request(2, 4, 0x14);
const SONET_SETFRAMING: c_ulong = request(1, 4, 0x15);
const SONET_GETFRAMING: c_ulong = request(2, 4, 0x16);
const SONET_GETFRSENSE: c_ulong = request(2, 6, 0x17);

/// Type of the interface, with its zero octet: at most `ATM_ITFTYP_LEN` octets.
const TYPE: &[u8] = b"lab\0";

/// `struct atmif_sioc`.
#[repr(C)]
struct Sioc {
    number: c_int,
    length: c_int,
    buffer: *mut c_void,
}
/// `struct atm_iobuf`.
#[repr(C)]
struct Iobuf {
    length: c_int,
    buffer: *mut c_void,
}

/// True if a request is of an interface.
pub(crate) const fn is_request(request: c_ulong) -> bool {
    matches!(
        request,
        GETLINKRATE
            | GETNAMES
            | GETTYPE
            | GETESI
            | GETADDR
            | RSTADDR
            | ADDADDR
            | DELADDR
            | GETCIRANGE
            | SETCIRANGE
            | SETESI
            | SETESIF
            | ADDLECSADDR
            | DELLECSADDR
            | GETLECSADDR
            | GETSTAT
            | GETSTATZ
            | GETLOOP
            | SETLOOP
            | QUERYLOOP
            | SONET_GETSTAT
            | SONET_GETSTATZ
            | SONET_SETDIAG
            | SONET_CLRDIAG
            | SONET_GETDIAG
            | SONET_SETFRAMING
            | SONET_GETFRAMING
            | SONET_GETFRSENSE
    )
}

/// A count as the kernel has it: an `int` that begins anew.
const fn count(number: u64) -> c_int {
    number as u32 as c_int
}

fn ints(numbers: impl IntoIterator<Item = c_int>) -> Vec<u8> {
    let octets = numbers.into_iter().map(c_int::to_ne_bytes);
    octets.flatten().collect()
}

/// `struct atm_aal_stats`: sent, errors of sending, received, errors of receiving, without room.
fn aal_stats(counts: PduCounts) -> [c_int; 5] {
    [
        count(counts.sent),
        count(counts.not_sent),
        count(counts.received),
        count(counts.damaged),
        0,
    ]
}

/// `struct atm_dev_stats`: AAL0, AAL3/4, AAL5.
fn statistics(interface: &Interface) -> Vec<u8> {
    let all = [aal_stats(interface.aal0), [0; 5], aal_stats(interface.aal5)];
    ints(all.into_iter().flatten())
}

/// `struct sonet_stats`: seven errors, then cells sent and received.
fn sonet_statistics(interface: &Interface) -> Vec<u8> {
    let cells = [interface.cells_sent, interface.cells_received];
    ints([0; 7].into_iter().chain(cells.map(count)))
}

fn addresses(texts: &[String]) -> Vec<u8> {
    let all = texts.iter().map(|text| layout::svc_octets(text));
    all.flatten().collect()
}

/// Result of a request that only reads; an error is an errno.
fn read(request: c_ulong) -> Result<Vec<u8>, c_int> {
    let asked = |zero_pdus, zero_cells| {
        let service = table::service().map_err(|error| error.errno())?;
        let interface = service.interface(zero_pdus, zero_cells);
        interface.map_err(|error| error.errno())
    };
    let seen = || asked(false, false);
    Ok(match request {
        GETTYPE => TYPE.to_vec(),
        GETESI => seen()?.esi.to_vec(),
        GETADDR => addresses(&seen()?.addresses),
        GETLECSADDR => addresses(&seen()?.lecs),
        GETLINKRATE => ints([c_int::try_from(seen()?.rate).unwrap_or(c_int::MAX)]),
        GETCIRANGE => {
            let (vpi, vci) = seen()?.label_bits;
            vec![vpi, vci]
        }
        GETSTAT => statistics(&seen()?),
        GETSTATZ => statistics(&asked(true, false)?),
        SONET_GETSTAT => sonet_statistics(&seen()?),
        SONET_GETSTATZ => sonet_statistics(&asked(false, true)?),
        // ATM_LM_NONE, and no other mode; no error is inserted.
        GETLOOP | QUERYLOOP | SONET_GETDIAG => ints([0]),
        // There are no frames.
        SONET_GETFRAMING | SONET_SETFRAMING | SONET_GETFRSENSE => return Err(libc::EINVAL),
        // As the kernel: an interface with an identifier keeps it.
        SETESI => return Err(libc::EEXIST),
        _ => return Err(libc::EPERM),
    })
}

/// `ATM_GETNAMES`: the numbers of all interfaces.
///
/// # Safety
/// `iobuf` is null or valid, and its buffer has as many octets as it says.
unsafe fn names(iobuf: *mut Iobuf) -> Result<(), c_int> {
    // SAFETY: as the caller of this function says.
    let iobuf = unsafe { iobuf.as_mut() }.ok_or(libc::EFAULT)?;
    let all = ints([0]);
    if usize::try_from(iobuf.length).unwrap_or(0) < all.len() {
        return Err(libc::E2BIG);
    }
    if iobuf.buffer.is_null() {
        return Err(libc::EFAULT);
    }
    // SAFETY: the buffer has room, as its length says.
    unsafe { std::ptr::copy_nonoverlapping(all.as_ptr(), iobuf.buffer.cast(), all.len()) };
    iobuf.length = all.len() as c_int;
    Ok(())
}

/// `ATM_ADDADDR`, `ATM_DELADDR` and `ATM_RSTADDR`.
///
/// # Safety
/// The buffer is null or a `struct sockaddr_atmsvc`.
unsafe fn change(request: c_ulong, buffer: *const c_void) -> Result<(), c_int> {
    let service = table::service().map_err(|error| error.errno())?;
    if request == RSTADDR {
        return service.reset_addresses().map_err(|error| error.errno());
    }
    // As the kernel: whatever the length says, the buffer is a `struct sockaddr_atmsvc`, or EFAULT.
    if buffer.is_null() {
        return Err(libc::EFAULT);
    }
    // SAFETY: as the caller of this function says.
    let octets = unsafe { std::slice::from_raw_parts(buffer.cast::<u8>(), layout::SVC_ADDRESS) };
    let address = layout::svc(octets).filter(|address| !address.is_empty());
    let address = address.ok_or(libc::EINVAL)?;
    let done = match request {
        ADDADDR => service.add_address(&address),
        _ => service.remove_address(&address),
    };
    done.map_err(|error| error.errno())
}

/// Handles a request ([`is_request`]); an error is an errno.
///
/// # Safety
/// The argument is null or as `<linux/atmdev.h>` has it for the request.
pub(crate) unsafe fn handle(request: c_ulong, argument: *mut c_void) -> Result<(), c_int> {
    if request == GETNAMES {
        // SAFETY: as the caller of this function says.
        return unsafe { names(argument.cast()) };
    }
    // SAFETY: as the caller of this function says.
    let sioc = unsafe { argument.cast::<Sioc>().as_mut() }.ok_or(libc::EFAULT)?;
    if sioc.number != 0 {
        return Err(libc::ENODEV);
    }
    match request {
        // The mode is in the place of the buffer.
        SETLOOP if sioc.buffer.is_null() => return Ok(()),
        SETLOOP => return Err(libc::EINVAL),
        SONET_SETDIAG | SONET_CLRDIAG => {
            // SAFETY: the buffer is null or an `int`.
            let errors = unsafe { sioc.buffer.cast::<c_int>().as_ref() };
            return match errors.ok_or(libc::EFAULT)? {
                0 => Ok(()),
                _ => Err(libc::EINVAL),
            };
        }
        ADDADDR | DELADDR | RSTADDR => {
            // SAFETY: the buffer is null or as long as it says.
            return unsafe { change(request, sioc.buffer) };
        }
        _ => {}
    }
    let result = read(request)?;
    // Only a list is cut to the room that its caller has; its length is told whole.
    let room = match request {
        GETADDR | GETLECSADDR => usize::try_from(sioc.length).unwrap_or(0).min(result.len()),
        _ => result.len(),
    };
    if sioc.buffer.is_null() && room > 0 {
        return Err(libc::EFAULT);
    }
    if room > 0 {
        // SAFETY: the buffer has room, as its length, or the kind of the request, says.
        unsafe { std::ptr::copy_nonoverlapping(result.as_ptr(), sioc.buffer.cast(), room) };
    }
    sioc.length = result.len() as c_int;
    Ok(())
}
