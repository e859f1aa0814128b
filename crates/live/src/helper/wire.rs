//! Packets with a descriptor between the lab and its helper.

use super::messages::MESSAGE_MAX;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, Shutdown, SocketFlags, SocketType, recvmsg, sendmsg, shutdown,
    socketpair,
};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::time::Duration;

/// One end. It waits for the other end, at most for its patience.
#[derive(Debug)]
pub(super) struct Wire(OwnedFd);

impl Wire {
    /// A connected pair.
    pub(super) fn pair() -> io::Result<(Self, Self)> {
        let flags = SocketFlags::CLOEXEC;
        let (here, there) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        Ok((Self(here), Self(there)))
    }
    /// Sets how long to wait for an answer; after that the result is an error.
    pub(super) fn set_patience(&self, patience: Duration) -> io::Result<()> {
        for which in [Timeout::Recv, Timeout::Send] {
            set_socket_timeout(&self.0, which, Some(patience))?;
        }
        Ok(())
    }
    /// Sends a message, optionally with a descriptor.
    pub(super) fn send(&self, message: &[u8], fd: Option<BorrowedFd<'_>>) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let fds: Vec<BorrowedFd<'_>> = fd.into_iter().collect();
        if !fds.is_empty() {
            control.push(SendAncillaryMessage::ScmRights(&fds));
        }
        loop {
            let octets = [IoSlice::new(message)];
            match sendmsg(&self.0, &octets, &mut control, SendFlags::NOSIGNAL) {
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
                Ok(_) => return Ok(()),
            }
        }
    }
    /// The next message with its descriptor; `None` at the end. A message that is too long becomes empty.
    pub(super) fn receive(&self) -> io::Result<Option<(Vec<u8>, Option<OwnedFd>)>> {
        let mut octets = vec![0; MESSAGE_MAX];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::TRUNC;
        let length = loop {
            let mut parts = [IoSliceMut::new(&mut octets)];
            match recvmsg(&self.0, &mut parts, &mut control, flags) {
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
                Ok(got) => break got.bytes,
            }
        };
        if length == 0 {
            return Ok(None);
        }
        let mut fd = None;
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = message {
                fd = rights.last();
            }
        }
        octets.truncate(if length > MESSAGE_MAX { 0 } else { length });
        Ok(Some((octets, fd)))
    }
    /// Ends the connection, even if another process holds a copy of this end.
    pub(super) fn close(&self) {
        let _ = shutdown(&self.0, Shutdown::Both);
    }
}

impl From<OwnedFd> for Wire {
    fn from(fd: OwnedFd) -> Self {
        Self(fd)
    }
}
impl From<Wire> for OwnedFd {
    fn from(wire: Wire) -> Self {
        wire.0
    }
}
impl AsFd for Wire {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
