//! Options of sockets of links out of the lab that no library has.

use rustix::fd::{AsFd, AsRawFd as _};
use rustix::net::sockopt;
use std::io;

/// Requested size of a socket's receive buffer, octets; the system may allow less.
const SOCKET_BUFFER: usize = 4 << 20;
/// Numbers that `SO_MEMINFO` tells, and the place of the packets that found no room. Source: linux/sock_diag.h.
const MEMINFO: usize = 9;
const DROPS: usize = 8;

/// Asks for a large receive buffer. A smaller one also works, only less well. A privileged process may exceed the
/// system's limit.
pub(super) fn large_buffer(socket: impl AsFd) {
    if sockopt::set_socket_recv_buffer_size_force(&socket, SOCKET_BUFFER).is_err() {
        let _ = sockopt::set_socket_recv_buffer_size(&socket, SOCKET_BUFFER);
    }
}

/// Packets for which the socket had no room, since it was opened. This is the counter of `SO_RXQ_OVFL`, without a
/// control message in each packet; the kernel also counts packets with a wrong checksum in it. `None` if the system
/// does not tell (Linux before 4.12).
pub(super) fn overflowed(socket: impl AsFd) -> Option<u32> {
    let mut numbers = [0_u32; MEMINFO];
    let mut length = size_of_val(&numbers) as libc::socklen_t;
    #[allow(unsafe_code)]
    // SAFETY: the kernel writes at most `length` octets into the array, which lives longer than the call.
    let done = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            numbers.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    let whole = done == 0 && length as usize > DROPS * size_of::<u32>();
    numbers.get(DROPS).copied().filter(|_| whole)
}

/// An option whose value is a number.
pub(super) fn number(socket: impl AsFd, (level, name): (i32, i32)) -> io::Result<i32> {
    let mut value: libc::c_int = 0;
    let mut length = size_of_val(&value) as libc::socklen_t;
    #[allow(unsafe_code)]
    // SAFETY: the kernel writes at most `length` octets into the number, which lives longer than the call.
    let done = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            name,
            (&raw mut value).cast(),
            &raw mut length,
        )
    };
    match done {
        0 => Ok(value),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Sets an option whose value is a number.
pub(super) fn set_number(
    socket: impl AsFd,
    (level, name): (i32, i32),
    value: libc::c_int,
) -> io::Result<()> {
    #[allow(unsafe_code)]
    // SAFETY: the kernel reads the number during the call, within the length that is given.
    let done = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            size_of_val(&value) as libc::socklen_t,
        )
    };
    match done {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    /// A socket without a reader loses datagrams, and the system counts them.
    #[test]
    fn datagrams_without_room_are_counted_by_the_system() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        assert_eq!(overflowed(&socket), Some(0));
        sockopt::set_socket_recv_buffer_size(&socket, 1).unwrap();
        let from = UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = socket.local_addr().unwrap();
        for _ in 0..1000 {
            from.send_to(&[0; 53], to).unwrap();
        }
        socket.set_nonblocking(true).unwrap();
        let mut octets = [0; 60];
        let come = (0..).take_while(|_| socket.recv(&mut octets).is_ok());
        let come = come.count() as u32;
        assert!((1..1000).contains(&come));
        assert_eq!(overflowed(&socket), Some(1000 - come));
    }
}
