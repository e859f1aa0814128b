//! The system calls of the probes. Rows of the comparison call these probes limits, so nothing may stand between them
//! and the kernel: blocks of messages are laid out once, and each call passes the same memory again.

#![allow(
    unsafe_code,
    reason = "sendmmsg, recvmmsg, select and TAPs, at the speed of C"
)]

use libc::{c_int, c_void};
use std::fs::File;
use std::io;
use std::mem;
use std::net::UdpSocket;
use std::os::fd::{AsRawFd, FromRawFd as _, OwnedFd, RawFd};
use std::ptr;

/// `sizeof` of something that a system call takes, as the call wants it.
fn length_of<T>() -> libc::socklen_t {
    size_of::<T>() as libc::socklen_t
}

fn result(done: isize) -> io::Result<usize> {
    usize::try_from(done).map_err(|_| io::Error::last_os_error())
}

/// Sets a whole number as an option of a socket.
fn set(socket: &UdpSocket, level: c_int, option: c_int, value: c_int) -> io::Result<()> {
    let value_at = ptr::from_ref(&value).cast::<c_void>();
    let fd = socket.as_raw_fd();
    // SAFETY: the pointer is to a `c_int` that lives through the call, and the length is that of a `c_int`.
    let done = unsafe { libc::setsockopt(fd, level, option, value_at, length_of::<c_int>()) };
    result(done as isize).map(|_| ())
}

/// Room for `octets` in both directions; the kernel may give less.
pub(crate) fn set_buffers(socket: &UdpSocket, octets: c_int) -> io::Result<()> {
    set(socket, libc::SOL_SOCKET, libc::SO_RCVBUF, octets)?;
    set(socket, libc::SOL_SOCKET, libc::SO_SNDBUF, octets)
}

/// Makes packets leave as datagrams of `octets` each, however long the buffer is (GSO; at most 64 datagrams).
pub(crate) fn set_segments(socket: &UdpSocket, octets: usize) -> io::Result<()> {
    set(socket, libc::SOL_UDP, libc::UDP_SEGMENT, octets as c_int)
}

/// One read may give several datagrams of equal length from one sender (GRO).
pub(crate) fn set_coalescing(socket: &UdpSocket) -> io::Result<()> {
    set(socket, libc::SOL_UDP, libc::UDP_GRO, 1)
}

/// A block of datagrams for `sendmmsg` and `recvmmsg`.
pub(crate) struct Block {
    buffers: Vec<u8>,
    room: usize,
    parts: Vec<libc::iovec>,
    headers: Vec<libc::mmsghdr>,
}

// SAFETY: the pointers in the headers are written anew before each use, from memory that the block owns.
unsafe impl Send for Block {}

impl Block {
    /// Room for `count` datagrams of at most `room` octets each.
    pub(crate) fn new(count: usize, room: usize) -> Self {
        let part = libc::iovec {
            iov_base: ptr::null_mut(),
            iov_len: room,
        };
        // SAFETY: a `mmsghdr` of zeros is one without address, parts and control data.
        let header: libc::mmsghdr = unsafe { mem::zeroed() };
        Self {
            buffers: vec![0; count * room],
            room,
            parts: vec![part; count],
            headers: vec![header; count],
        }
    }

    /// Points the first `count` headers at their parts, and these at their buffers.
    fn aim(&mut self, count: usize) {
        let buffers = self.buffers.chunks_exact_mut(self.room);
        let all = self.headers.iter_mut().zip(&mut self.parts).zip(buffers);
        for ((header, part), buffer) in all.take(count) {
            part.iov_base = buffer.as_mut_ptr().cast();
            header.msg_hdr.msg_iov = part;
            header.msg_hdr.msg_iovlen = 1;
        }
    }

    /// Datagram `n`: what was received, or room for what is to be sent.
    pub(crate) fn buffer(&mut self, n: usize) -> &mut [u8] {
        &mut self.buffers[n * self.room..(n + 1) * self.room]
    }

    /// Octets of datagram `n` as received.
    pub(crate) fn length(&self, n: usize) -> usize {
        self.headers[n].msg_len as usize
    }

    /// Sends datagram `n` with this length.
    pub(crate) fn set_length(&mut self, n: usize, octets: usize) {
        self.parts[n].iov_len = octets.min(self.room);
    }

    /// Waits for a datagram, and takes at most `most` that are there.
    pub(crate) fn receive(&mut self, socket: &UdpSocket, most: usize) -> io::Result<usize> {
        let most = most.min(self.headers.len());
        for part in &mut self.parts[..most] {
            part.iov_len = self.room;
        }
        self.aim(most);
        let (fd, headers) = (socket.as_raw_fd(), self.headers.as_mut_ptr());
        // SAFETY: `most` headers are there and aimed at parts and buffers that no other code uses during the call; the
        // lengths are those of the buffers.
        let done = unsafe {
            libc::recvmmsg(
                fd,
                headers,
                most as _,
                libc::MSG_WAITFORONE as _,
                ptr::null_mut(),
            )
        };
        result(done as isize)
    }

    /// Sends the first `count` datagrams; gives how many the kernel took.
    pub(crate) fn send(&mut self, socket: &UdpSocket, count: usize) -> io::Result<usize> {
        let count = count.min(self.headers.len());
        self.aim(count);
        let (fd, headers) = (socket.as_raw_fd(), self.headers.as_mut_ptr());
        // SAFETY: as in `receive`; the lengths set are at most those of the buffers.
        result(unsafe { libc::sendmmsg(fd, headers, count as _, 0) } as isize)
    }
}

/// Reads one datagram, or several of equal length if the socket coalesces them; gives all octets, and the octets of
/// each datagram except the last.
pub(crate) fn receive_coalesced(
    socket: &UdpSocket,
    buffer: &mut [u8],
) -> io::Result<(usize, usize)> {
    // Room for one control message with a whole number, aligned as a `cmsghdr`.
    let mut control = [0_u64; 8];
    let mut part = libc::iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: buffer.len(),
    };
    // SAFETY: a `msghdr` of zeros has no address, parts and control data.
    let mut header: libc::msghdr = unsafe { mem::zeroed() };
    header.msg_iov = &raw mut part;
    header.msg_iovlen = 1;
    header.msg_control = control.as_mut_ptr().cast();
    header.msg_controllen = size_of_val(&control) as _;
    // SAFETY: the header points to a part and to control memory that live through the call, with their true lengths.
    let length = result(unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut header, 0) })?;
    let mut each = length;
    // SAFETY: the kernel has filled in the control messages and their length; the macros stay inside that length.
    unsafe {
        let mut message = libc::CMSG_FIRSTHDR(&raw const header);
        while !message.is_null() {
            if (*message).cmsg_level == libc::SOL_UDP && (*message).cmsg_type == libc::UDP_GRO {
                let value = libc::CMSG_DATA(message).cast::<c_int>().read_unaligned();
                each = usize::try_from(value).unwrap_or(length);
            }
            message = libc::CMSG_NXTHDR(&raw const header, message);
        }
    }
    Ok((length, each.max(1)))
}

/// Waits with `select` until one of two sockets can be read, at most 20 ms, as Dynamips does.
pub(crate) fn select_two(a: &UdpSocket, b: &UdpSocket) -> io::Result<bool> {
    let (a, b) = (a.as_raw_fd(), b.as_raw_fd());
    let mut time = libc::timeval {
        tv_sec: 0,
        tv_usec: 20_000,
    };
    // SAFETY: the set is made empty before it is used; both descriptors are open and below `FD_SETSIZE`, because the
    // process has opened a handful of files; the set and the time live through the call.
    let ready = unsafe {
        let mut set: libc::fd_set = mem::zeroed();
        libc::FD_ZERO(&raw mut set);
        libc::FD_SET(a, &raw mut set);
        libc::FD_SET(b, &raw mut set);
        let none = ptr::null_mut();
        libc::select(a.max(b) + 1, &raw mut set, none, none, &raw mut time)
    };
    result(ready as isize).map(|ready| ready > 0)
}

/// Offloads of a TAP with vnet headers: checksums, and super-frames of TCP over IPv4 and IPv6.
/// Source: linux/if_tun.h (`TUN_F_CSUM`, `TUN_F_TSO4`, `TUN_F_TSO6`).
const OFFLOADS: libc::c_ulong = 0x01 | 0x02 | 0x04;

/// Makes a TAP that does not block.
pub(crate) fn tap(name: &str, vnet: bool) -> io::Result<File> {
    let path = c"/dev/net/tun".as_ptr();
    // SAFETY: the path is a C string.
    let fd = unsafe { libc::open(path, libc::O_RDWR | libc::O_NONBLOCK | libc::O_CLOEXEC) };
    result(fd as isize)?;
    // SAFETY: a descriptor that was just opened and has no other owner.
    let file = unsafe { File::from_raw_fd(fd) };
    // SAFETY: an `ifreq` of zeros has an empty name and no flags.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    let room = request.ifr_name.len() - 1;
    for (to, from) in request.ifr_name[..room].iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    let extra = if vnet { libc::IFF_VNET_HDR } else { 0 };
    request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI | extra) as i16;
    // SAFETY: TUNSETIFF takes an `ifreq`, which lives through the call.
    let done = unsafe { libc::ioctl(fd, libc::TUNSETIFF as _, &raw mut request) };
    result(done as isize)?;
    if vnet {
        // SAFETY: TUNSETOFFLOAD takes a number.
        let done = unsafe { libc::ioctl(fd, libc::TUNSETOFFLOAD as _, OFFLOADS) };
        result(done as isize)?;
    }
    Ok(file)
}

/// Waits until one of two files can be read; says for each whether it can.
pub(crate) fn poll_two(files: &[File; 2]) -> io::Result<[bool; 2]> {
    let mut both = files.each_ref().map(|file| libc::pollfd {
        fd: file.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    });
    // SAFETY: two entries are there, and they live through the call.
    result(unsafe { libc::poll(both.as_mut_ptr(), 2, -1) } as isize)?;
    Ok(both.map(|one| one.revents != 0))
}

/// A descriptor that this process has inherited. It blocks, whatever its other owners wanted.
pub(crate) fn inherited(fd: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: F_GETFL and F_SETFL take a number, and fail for a number that is no descriptor.
    let flags = result(unsafe { libc::fcntl(fd, libc::F_GETFL) } as isize)?;
    // SAFETY: as above.
    result(unsafe { libc::fcntl(fd, libc::F_SETFL, flags as c_int & !libc::O_NONBLOCK) } as isize)?;
    // SAFETY: the descriptor is open, it was named on the command line, and no other code of this process uses it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Reads one packet; 0 at the end of the file.
pub(crate) fn read(file: &OwnedFd, buffer: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the buffer is writable through the call and has the given length.
    result(unsafe { libc::read(file.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len()) })
}

/// Writes one packet.
pub(crate) fn write(file: &OwnedFd, packet: &[u8]) -> io::Result<usize> {
    let (data, length) = (packet.as_ptr().cast(), packet.len());
    // SAFETY: the packet is readable through the call and has the given length. A closed peer is an error, not a
    // signal.
    result(unsafe { libc::send(file.as_raw_fd(), data, length, libc::MSG_NOSIGNAL) })
}
