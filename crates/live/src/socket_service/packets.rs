//! Packets of sessions and of sockets: one message or one PDU each, sessions with at most one descriptor beside it.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recv, recvmsg, send, sendmsg,
    socketpair,
};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;

/// What was read.
#[derive(Debug)]
pub(super) enum Read {
    /// A packet of this length, in the buffer. A packet that is longer than the buffer has its own length.
    Packet(usize),
    /// A packet without octets.
    Empty,
    /// There is no packet now.
    Nothing,
    /// The program has said that it writes no more, and still reads.
    NoMore,
    /// The program has closed its end.
    End,
}

/// Where a packet went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// To the other end.
    Gone,
    /// There was no room for it.
    Full,
    /// The other end is closed.
    Closed,
}

/// The two ends of a socket: ours, which never blocks, and the program's.
pub(super) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = SocketFlags::CLOEXEC;
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    rustix::io::ioctl_fionbio(&ours, true)?;
    Ok((ours, theirs))
}

/// The number of a descriptor's open file, which is the same for all of its copies.
pub(super) fn inode(fd: impl AsFd) -> Option<u64> {
    rustix::fs::fstat(fd).ok().map(|file| file.st_ino)
}

/// Reads a packet.
pub(super) fn read(fd: impl AsFd, buffer: &mut [u8]) -> Read {
    loop {
        return match recv(fd.as_fd(), &mut *buffer, RecvFlags::TRUNC) {
            Ok((_, 0)) => match no_octets(&fd) {
                // The program has closed its end, and packets with octets come after this one.
                Read::End if rustix::io::ioctl_fionread(&fd).is_ok_and(|left| left > 0) => {
                    Read::Empty
                }
                other => other,
            },
            Ok((_, length)) => Read::Packet(length),
            Err(Errno::AGAIN) => Read::Nothing,
            // The program has closed its end with something unread. What it has written before comes next.
            Err(Errno::INTR | Errno::CONNRESET) => continue,
            Err(_) => Read::End,
        };
    }
}

/// A read of no octets is a packet without octets, or an end.
fn no_octets(fd: impl AsFd) -> Read {
    let flags = PollFlags::IN | PollFlags::RDHUP;
    let mut asked = [PollFd::new(&fd, flags)];
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    if poll(&mut asked, Some(&now)).is_err() {
        return Read::End;
    }
    let found = asked[0].revents();
    if found.contains(PollFlags::HUP) {
        Read::End
    } else if found.contains(PollFlags::RDHUP) {
        Read::NoMore
    } else {
        Read::Empty
    }
}

/// True if the program has closed its end.
pub(super) fn is_closed(fd: impl AsFd) -> bool {
    matches!(no_octets(fd), Read::End)
}

/// Writes a packet.
pub(super) fn write(fd: impl AsFd, packet: &[u8]) -> Sent {
    loop {
        return match send(fd.as_fd(), packet, SendFlags::NOSIGNAL) {
            Ok(_) => Sent::Gone,
            Err(Errno::AGAIN | Errno::NOBUFS) => Sent::Full,
            Err(Errno::INTR) => continue,
            Err(_) => Sent::Closed,
        };
    }
}

/// Writes a packet with a descriptor.
pub(super) fn write_with(fd: impl AsFd, packet: &[u8], with: Option<BorrowedFd<'_>>) -> Sent {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let fds: Vec<BorrowedFd<'_>> = with.into_iter().collect();
    if !fds.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(&fds));
    }
    let octets = [IoSlice::new(packet)];
    loop {
        return match sendmsg(fd.as_fd(), &octets, &mut control, SendFlags::NOSIGNAL) {
            Ok(_) => Sent::Gone,
            // Too many descriptors that nobody has taken yet are no room, either.
            Err(Errno::AGAIN | Errno::NOBUFS | Errno::TOOMANYREFS) => Sent::Full,
            Err(Errno::INTR) => continue,
            Err(_) => Sent::Closed,
        };
    }
}

/// Reads a packet with the descriptor that comes with it.
pub(super) fn read_with(fd: impl AsFd, buffer: &mut [u8]) -> (Read, Option<OwnedFd>) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::TRUNC | RecvFlags::DONTWAIT;
    let length = loop {
        let mut parts = [IoSliceMut::new(buffer)];
        match recvmsg(fd.as_fd(), &mut parts, &mut control, flags) {
            Ok(got) => break got.bytes,
            Err(Errno::INTR | Errno::CONNRESET) => {}
            Err(Errno::AGAIN) => return (Read::Nothing, None),
            Err(_) => return (Read::End, None),
        }
    };
    let mut with = None;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            with = rights.last();
        }
    }
    match length {
        // No message is empty.
        0 => (Read::End, with),
        length => (Read::Packet(length), with),
    }
}
