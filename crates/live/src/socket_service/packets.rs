//! Packets of sessions and of sockets: one message or one PDU each, sessions with at most one descriptor beside it.

use aerostat_node::atm::Sdus;
use nix::sys::socket::{MsgFlags, MultiHeaders, recvmmsg, sendmmsg};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, send, sendmsg, socketpair,
};
use std::collections::VecDeque;
use std::fmt;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;

/// Packets in one call.
const MOST: usize = 32;
/// Octets of the buffers of a call together: twice those of the packets that a program may write at once.
const OCTETS: usize = 256 * 1024;

/// Blocks of memory that are kept for PDUs that come next.
const SPARE: usize = 8;
/// Octets of the smallest of them: less is cheap to get.
const LEAST_SPARE: usize = 4096;

/// Result of reading.
#[derive(Debug)]
pub(super) enum Read {
    /// Packets, or a packet without octets.
    Packets,
    /// There is no packet now.
    Nothing,
    /// The program has said that it writes no more, and still reads.
    NoMore,
    /// The program has closed its end.
    End,
}

/// Result of reading a session.
#[derive(Debug)]
pub(super) enum Message {
    /// A message of this length, in the buffer; 0: without octets. A message that is longer than the buffer has its own
    /// length.
    Octets(usize),
    /// There is no message now.
    Nothing,
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

/// Identity of a socket that all copies of its descriptor share, and that no other open file has: numbers of files are
/// those of one file system, and a user can make file systems.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SocketId {
    file_system: u64,
    file: u64,
}

impl SocketId {
    /// That of an open socket.
    pub(super) fn of(fd: impl AsFd) -> Option<Self> {
        let file = rustix::fs::fstat(fd).ok()?;
        Some(Self {
            file_system: file.st_dev,
            file: file.st_ino,
        })
    }
}

/// Buffers for packets that are read or written in one call. All sockets use the same ones, one after another.
pub(super) struct Batch {
    octets: Vec<u8>,
    headers: MultiHeaders<()>,
    /// Memory of PDUs that were delivered, for those that come next.
    spare: Vec<Vec<u8>>,
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch").finish_non_exhaustive()
    }
}

impl Batch {
    pub(super) fn new() -> Self {
        Self {
            octets: vec![0; OCTETS],
            headers: MultiHeaders::preallocate(MOST, None),
            spare: Vec::new(),
        }
    }

    /// Reads at most `most` packets of a program, which are of at most `OCTETS / most` octets unless they are too long,
    /// and puts those of one length together.
    pub(super) fn read(&mut self, fd: impl AsFd, most: usize, to: &mut VecDeque<Sdus>) -> Read {
        let most = most.clamp(1, MOST);
        let slot = OCTETS / most;
        let mut lengths = [0; MOST];
        let come = loop {
            let mut slots = self.octets.chunks_exact_mut(slot);
            let mut slots: [[IoSliceMut<'_>; 1]; MOST] =
                std::array::from_fn(|_| [IoSliceMut::new(slots.next().unwrap_or_default())]);
            let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_TRUNC;
            let slots = slots.iter_mut().take(most);
            let socket = fd.as_fd().as_raw_fd();
            match recvmmsg(socket, &mut self.headers, slots, flags, None) {
                Ok(come) => {
                    let come = lengths.iter_mut().zip(come);
                    break come.map(|(length, packet)| *length = packet.bytes).count();
                }
                Err(nix::errno::Errno::EAGAIN) => return Read::Nothing,
                // The program has closed its end with something unread. What it has written before comes next.
                Err(nix::errno::Errno::EINTR | nix::errno::Errno::ECONNRESET) => {}
                Err(_) => return Read::End,
            }
        };
        let lengths = lengths.get(..come).unwrap_or_default();
        let last = lengths.iter().rposition(|length| *length > 0);
        let with_octets = last.map_or(0, |last| last + 1);
        // Reads without octets at the end of these are packets without octets, or an end.
        let read = match with_octets < come {
            true => no_octets_and_more(&fd),
            false => Read::Packets,
        };
        let packets = match read {
            Read::Packets => come,
            _ => with_octets,
        };
        let slots = self.octets.chunks_exact(slot);
        let mut memory = || self.spare.pop().unwrap_or_default();
        let packets = lengths.iter().copied().zip(slots).take(packets);
        group(packets, &mut memory, to);
        read
    }

    /// Takes the memory of PDUs that were delivered.
    pub(super) fn recycle(&mut self, sdus: Sdus) {
        let mut memory = sdus.into_vec();
        if self.spare.len() < SPARE && memory.capacity() >= LEAST_SPARE {
            memory.clear();
            self.spare.push(memory);
        }
    }

    /// Writes packets as long as there is room; returns how many of them went, and what is with the next one.
    pub(super) fn write(&mut self, fd: impl AsFd, sdus: &Sdus) -> (usize, Sent) {
        let socket = fd.as_fd().as_raw_fd();
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
        let mut gone = 0;
        while gone < sdus.count() {
            let mut rest = sdus.iter().skip(gone);
            let count = rest.len().min(MOST);
            let slices: [[IoSlice<'_>; 1]; MOST] =
                std::array::from_fn(|_| [IoSlice::new(rest.next().unwrap_or_default())]);
            let slices = slices.iter().take(count);
            match sendmmsg(
                socket,
                &mut self.headers,
                slices,
                [None::<()>; MOST],
                [],
                flags,
            ) {
                Ok(sent) => gone += sent.count(),
                Err(nix::errno::Errno::EINTR) => {}
                Err(nix::errno::Errno::EAGAIN | nix::errno::Errno::ENOBUFS) => {
                    return (gone, Sent::Full);
                }
                Err(_) => return (gone, Sent::Closed),
            }
        }
        (gone, Sent::Gone)
    }
}

/// Puts packets of one length together, each of which is given with its length and its buffer. A shorter one may be the
/// last of them.
fn group<'a>(
    packets: impl Iterator<Item = (usize, &'a [u8])>,
    memory: &mut dyn FnMut() -> Vec<u8>,
    to: &mut VecDeque<Sdus>,
) {
    let (mut octets, mut each) = (Vec::new(), 0);
    let mut open = false;
    for (length, buffer) in packets {
        let fits = open && length > 0 && length <= each;
        if !fits && open {
            to.push_back(Sdus::new(std::mem::take(&mut octets), each));
        }
        if !fits {
            each = length;
            octets = memory();
        }
        match buffer.get(..length) {
            Some(packet) => octets.extend_from_slice(packet),
            // Longer than any SDU of this contract: the machine refuses it by its length.
            None => octets.resize(octets.len() + length, 0),
        }
        open = length == each && length > 0;
        if !open {
            to.push_back(Sdus::new(std::mem::take(&mut octets), each));
        }
    }
    if open {
        to.push_back(Sdus::new(octets, each));
    }
}

/// As [`no_octets`], where the program may have closed its end with packets with octets behind these.
fn no_octets_and_more(fd: impl AsFd) -> Read {
    match no_octets(&fd) {
        Read::End | Read::NoMore if rustix::io::ioctl_fionread(&fd).is_ok_and(|left| left > 0) => {
            Read::Packets
        }
        other => other,
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
        Read::Packets
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
            // Too many descriptors that the receiver has not taken yet leave no room, either.
            Err(Errno::AGAIN | Errno::NOBUFS | Errno::TOOMANYREFS) => Sent::Full,
            Err(Errno::INTR) => continue,
            Err(_) => Sent::Closed,
        };
    }
}

/// Reads a packet with the descriptor that comes with it.
pub(super) fn read_with(fd: impl AsFd, buffer: &mut [u8]) -> (Message, Option<OwnedFd>) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::TRUNC | RecvFlags::DONTWAIT;
    let length = loop {
        let mut parts = [IoSliceMut::new(buffer)];
        match recvmsg(fd.as_fd(), &mut parts, &mut control, flags) {
            Ok(got) => break got.bytes,
            Err(Errno::INTR | Errno::CONNRESET) => {}
            Err(Errno::AGAIN) => return (Message::Nothing, None),
            Err(_) => return (Message::End, None),
        }
    };
    let mut with = None;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            with = rights.last();
        }
    }
    match length {
        // No message is empty: without octets it is answered as all that cannot be decoded. A program that writes no
        // more has ended its session.
        0 => match no_octets_and_more(&fd) {
            Read::Packets => (Message::Octets(0), with),
            _ => (Message::End, with),
        },
        length => (Message::Octets(length), with),
    }
}
