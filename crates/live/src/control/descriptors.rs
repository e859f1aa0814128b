//! Descriptors beside the lines of the control socket.

use crate::kernel::brought::MOST;
use rustix::fd::{AsFd as _, OwnedFd};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use std::io::{self, IoSlice, IoSliceMut, Read, Write as _};
use std::mem::MaybeUninit;
use std::os::unix::net::UnixStream;

/// Descriptors that go with one octet at most; the kernel takes 253.
const AT_ONCE: usize = 128;

/// Writes a line with descriptors, which are there for the reader when it has the line.
///
/// # Errors
/// The error of the kernel.
pub(super) fn send_with(
    mut stream: &UnixStream,
    line: &[u8],
    descriptors: &[OwnedFd],
) -> io::Result<()> {
    let mut left = line;
    for some in descriptors.chunks(AT_ONCE) {
        let borrowed: Vec<_> = some.iter().map(OwnedFd::as_fd).collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(AT_ONCE))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let (first, rest) = left.split_at_checked(1).unwrap_or_default();
        if first.is_empty() || !control.push(SendAncillaryMessage::ScmRights(&borrowed)) {
            return Err(io::Error::other("too many descriptors"));
        }
        sendmsg(
            stream,
            &[IoSlice::new(first)],
            &mut control,
            SendFlags::NOSIGNAL,
        )?;
        left = rest;
    }
    stream.write_all(left)
}

/// Reads octets of a connection, and keeps the descriptors that come with them.
#[derive(Debug)]
pub(super) struct WithDescriptors<'a> {
    stream: &'a UnixStream,
    /// Descriptors that have come, at most [`MOST`]; others are closed.
    pub(super) come: Vec<OwnedFd>,
}

impl<'a> WithDescriptors<'a> {
    pub(super) const fn of(stream: &'a UnixStream) -> Self {
        Self {
            stream,
            come: Vec::new(),
        }
    }
}

impl Read for WithDescriptors<'_> {
    fn read(&mut self, octets: &mut [u8]) -> io::Result<usize> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(AT_ONCE))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let into = &mut [IoSliceMut::new(octets)];
        let read = recvmsg(self.stream, into, &mut control, RecvFlags::CMSG_CLOEXEC)?;
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = message {
                let room = MOST - self.come.len();
                self.come.extend(rights.take(room));
            }
        }
        Ok(read.bytes)
    }
}
