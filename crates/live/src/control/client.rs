//! The client's side of the control socket.
//!
//! A lab may hang, or be stopped (SIGSTOP), while its socket still accepts connections. No request waits longer than
//! the client's patience.

use super::descriptors::send_with;
use super::{Answer, END_OF_STREAM, Request};
use crate::{signals, threads};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::io::retry_on_intr;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketAddrUnix,
    SocketFlags, SocketType, connect, socket_with,
};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::io::{self, ErrorKind, IoSliceMut, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long a lab may take to answer. Its loop answers within milliseconds; on an overloaded machine this may be a
/// second or two.
pub const PATIENCE: Duration = Duration::from_secs(10);
/// Interval of connection attempts to a socket whose queue is full.
const AGAIN: Duration = Duration::from_millis(20);

/// Time for a lab to pass on what it has recorded before a signal. Its loop and its streams look for it several times
/// in this time.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Octets of an answer that are read at a time.
const CHUNK: usize = 64 * 1024;

/// A client's connection to a running lab.
#[derive(Debug)]
pub struct Client {
    stream: UnixStream,
    /// The lab's socket.
    path: PathBuf,
    patience: Duration,
}

impl Client {
    /// Connects to the lab's socket.
    ///
    /// # Errors
    /// If no process listens there, or no connection is accepted within [`PATIENCE`].
    pub fn connect(path: &Path) -> io::Result<Self> {
        Self::connect_within(path, PATIENCE)
    }

    /// Like [`Self::connect`], with another patience for the connection and for each answer.
    ///
    /// # Errors
    /// As [`Self::connect`].
    pub fn connect_within(path: &Path, patience: Duration) -> io::Result<Self> {
        let until = Instant::now() + patience;
        // A blocking connection attempt would never return once the queue of a stopped process is full.
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        let address = SocketAddrUnix::new(path)?;
        loop {
            match connect(&socket, &address) {
                Ok(()) => break,
                Err(Errno::AGAIN) if Instant::now() < until => std::thread::sleep(AGAIN),
                Err(Errno::AGAIN) => return Err(late(patience)),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let stream = UnixStream::from(socket);
        stream.set_nonblocking(false)?;
        let path = path.to_owned();
        let mut client = Self {
            stream,
            path,
            patience,
        };
        client.set_patience(patience)?;
        Ok(client)
    }

    #[cfg(test)]
    pub(super) fn say(&mut self, octets: &[u8]) -> io::Result<()> {
        self.stream.write_all(octets)
    }

    /// Sets how long to wait for an answer from now on.
    ///
    /// # Errors
    /// If the time is zero.
    pub fn set_patience(&mut self, patience: Duration) -> io::Result<()> {
        self.patience = patience;
        self.stream.set_read_timeout(Some(patience))?;
        self.stream.set_write_timeout(Some(patience))
    }

    /// The process that listens, as reported by the kernel; `None` if it is in a PID namespace that cannot be seen.
    #[must_use]
    pub fn process(&self) -> Option<u32> {
        let peer = rustix::net::sockopt::socket_peercred(&self.stream).ok()?;
        Some(peer.pid.as_raw_pid().unsigned_abs())
    }

    /// Sends a request; returns the answer and the descriptors that came with it.
    ///
    /// # Errors
    /// If the lab ends, gives an invalid answer, or does not answer in time (`TimedOut`).
    pub fn ask(&mut self, request: &Request) -> io::Result<(Answer, Vec<OwnedFd>)> {
        self.ask_with(request, &[])
    }

    /// Like [`Self::ask`], with descriptors for the lab, at most [`MOST`](super::MOST).
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub fn ask_with(
        &mut self,
        request: &Request,
        descriptors: &[OwnedFd],
    ) -> io::Result<(Answer, Vec<OwnedFd>)> {
        let asked = self.ask_slow(request, descriptors);
        asked.map_err(|error| match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => late(self.patience),
            _ => error,
        })
    }

    fn ask_slow(
        &mut self,
        request: &Request,
        descriptors: &[OwnedFd],
    ) -> io::Result<(Answer, Vec<OwnedFd>)> {
        let mut line = serde_json::to_vec(request).map_err(io::Error::other)?;
        line.push(b'\n');
        self.exchange(&line, descriptors).or_else(|error| {
            // A lab with many clients closes idle connections to make room, and does nothing that comes on them.
            let closed = matches!(
                error.kind(),
                ErrorKind::BrokenPipe | ErrorKind::ConnectionReset | ErrorKind::UnexpectedEof
            );
            let again = closed.then(|| Self::connect_within(&self.path, self.patience));
            match again {
                Some(Ok(again)) => *self = again,
                _ => return Err(error),
            }
            self.exchange(&line, descriptors)
        })
    }

    /// Writes a request and reads the answer.
    pub(super) fn exchange(
        &mut self,
        line: &[u8],
        descriptors: &[OwnedFd],
    ) -> io::Result<(Answer, Vec<OwnedFd>)> {
        send_with(&self.stream, line, descriptors)?;
        let (mut got, mut fds) = (Vec::new(), Vec::new());
        let mut room = vec![0; CHUNK];
        loop {
            // Octets behind the line belong to the stream, so no more octets are taken than belong to the answer. A
            // signal that is only noted does not end the wait: its owner looks at it when the answer is there.
            let (seen, _) =
                retry_on_intr(|| rustix::net::recv(&self.stream, &mut room[..], RecvFlags::PEEK))?;
            let end = room[..seen].iter().position(|octet| *octet == b'\n');
            let part = end.map_or(seen, |end| end + 1);
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
            let mut control = RecvAncillaryBuffer::new(&mut space);
            let read = retry_on_intr(|| {
                rustix::net::recvmsg(
                    &self.stream,
                    &mut [IoSliceMut::new(&mut room[..part])],
                    &mut control,
                    RecvFlags::CMSG_CLOEXEC,
                )
            })?;
            for message in control.drain() {
                if let RecvAncillaryMessage::ScmRights(rights) = message {
                    fds.extend(rights);
                }
            }
            if read.bytes == 0 {
                return Err(io::Error::new(ErrorKind::UnexpectedEof, "the lab ended"));
            }
            got.extend(&room[..read.bytes]);
            if got.last() == Some(&b'\n') {
                break;
            }
        }
        Ok((serde_json::from_slice(&got).map_err(io::Error::other)?, fds))
    }

    /// The stream behind a streaming answer. It may be silent for any time.
    #[must_use]
    pub fn into_stream(self) -> UnixStream {
        // These calls cannot fail for a socket and no time-out.
        let _ = self.stream.set_read_timeout(None);
        let _ = self.stream.set_write_timeout(None);
        self.stream
    }

    /// Like [`Self::into_stream`], until SIGINT or SIGTERM: then the lab is asked to end the stream, after what it has
    /// passed on so far. A lab that does not answer has one second. A shell starts background commands with SIGINT
    /// ignored; this call restores it, because a user who starts a stream wants to be able to end it.
    ///
    /// # Errors
    /// The operating system's, when the signals cannot be caught or no thread can be made.
    pub fn into_stream_until_signal(self) -> io::Result<(UnixStream, Interrupted)> {
        let mut caught = signals::pipe([SIGINT, SIGTERM])?;
        // The thread below waits for the first signal.
        caught.set_nonblocking(false)?;
        let ours = self.into_stream();
        let mut stream = ours.try_clone()?;
        let interrupted = Interrupted::default();
        let told = Arc::clone(&interrupted.0);
        let watch = move || {
            if caught.read_exact(&mut [0]).is_ok() {
                told.store(true, Ordering::Relaxed);
                if stream.write_all(END_OF_STREAM).is_ok() {
                    std::thread::sleep(LAST_WORDS);
                }
                let _ = stream.shutdown(Shutdown::Both);
            }
        };
        threads::spawn(watch)?;
        Ok((ours, interrupted))
    }
}

/// Mark of a signal that has ended a stream.
#[derive(Debug, Default)]
pub struct Interrupted(Arc<AtomicBool>);

impl Interrupted {
    /// True if a signal has ended the stream.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

fn late(patience: Duration) -> io::Error {
    let text = format!("no answer within {} s", patience.as_secs_f64());
    io::Error::new(ErrorKind::TimedOut, text)
}
