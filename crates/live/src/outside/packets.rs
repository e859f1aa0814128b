//! A raw socket in batches: frames of Ethernet, packets of IP. The kernel has no segmentation for such packets, so a
//! batch is one call with many packets (`sendmmsg`).

use super::inbox::{Inbox, SLOTS};
use super::options;
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use nix::sys::socket::{MsgFlags, MultiHeaders, sendmmsg};
use rustix::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::io::{self, IoSlice};

/// A raw socket.
pub(super) struct Packets {
    socket: OwnedFd,
    token: Token,
    headers: MultiHeaders<()>,
    pub(super) readable: bool,
    /// True while the poller is to report that the socket takes data again.
    awaited: bool,
}

impl Packets {
    /// Prepares an open socket.
    ///
    /// # Errors
    /// The error of the operating system.
    pub(super) fn new(socket: OwnedFd, registry: &Registry, token: Token) -> io::Result<Self> {
        options::large_buffer(&socket);
        // Without time stamps packets count when they are read.
        let _ = options::set_number(&socket, (libc::SOL_SOCKET, libc::SO_TIMESTAMPNS), 1);
        registry.register(
            &mut SourceFd(&socket.as_raw_fd()),
            token,
            Interest::READABLE,
        )?;
        Ok(Self {
            socket,
            token,
            headers: MultiHeaders::preallocate(SLOTS, None),
            readable: true,
            awaited: false,
        })
    }

    /// Reads at most `most` packets; returns how many have come, 0 if no packet waits.
    ///
    /// # Errors
    /// Another error than an empty socket.
    pub(super) fn read(&mut self, inbox: &mut Inbox, most: usize) -> Result<usize, Errno> {
        match inbox.packets(&self.socket, most) {
            Ok(count) => {
                self.readable = count == most;
                Ok(count)
            }
            Err(error) => match Errno::from_io_error(&error).unwrap_or(Errno::IO) {
                Errno::INTR => Ok(0),
                Errno::AGAIN => {
                    self.readable = false;
                    Ok(0)
                }
                other => Err(other),
            },
        }
    }

    /// How many packets go in one call.
    pub(super) const MOST: usize = SLOTS;

    /// Sends packets of `length` octets, of which the last one may be shorter. Returns how many of them the system
    /// took, at least one.
    ///
    /// # Errors
    /// The error of the first packet; the system took no packet.
    pub(super) fn send(&mut self, octets: &[u8], length: usize) -> Result<usize, Errno> {
        let mut packets = octets.chunks(length.max(1));
        let count = packets.len().min(Self::MOST);
        let slices: [[IoSlice<'_>; 1]; Self::MOST] =
            std::array::from_fn(|_| [IoSlice::new(packets.next().unwrap_or_default())]);
        let to = [None::<()>; Self::MOST];
        let flags = MsgFlags::MSG_DONTWAIT;
        let slices = slices.iter().take(count);
        let fd = self.socket.as_raw_fd();
        loop {
            match sendmmsg(fd, &mut self.headers, slices.clone(), to, [], flags) {
                Ok(sent) => return Ok(sent.count()),
                Err(nix::errno::Errno::EINTR) => {}
                Err(error) => return Err(Errno::from_raw_os_error(error as i32)),
            }
        }
    }

    /// Has the poller report, or not, that the socket takes data again.
    pub(super) fn await_room(&mut self, awaited: bool, registry: &Registry) {
        if self.awaited == awaited {
            return;
        }
        let interest = match awaited {
            true => Interest::READABLE | Interest::WRITABLE,
            false => Interest::READABLE,
        };
        // The descriptor is registered, so this can only fail for lack of memory; then the next packet tries again.
        let fd = self.socket.as_raw_fd();
        let changed = registry.reregister(&mut SourceFd(&fd), self.token, interest);
        self.awaited = if changed.is_ok() { awaited } else { !awaited };
    }

    /// Packets for which the socket had no room.
    pub(super) fn overflowed(&self) -> Option<u32> {
        options::overflowed(&self.socket)
    }
}

impl AsFd for Packets {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
