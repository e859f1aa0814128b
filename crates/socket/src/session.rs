//! The connection to the service: requests of many threads, and their answers in any order.
//!
//! One thread at a time reads; it gives the answers of others to them. So no thread of this crate's own is needed.
//!
//! **The descriptor.** Programs close descriptors that they do not know, as daemons do, and their own files get the
//! same numbers. So the number is a high one, and before each use the descriptor must still be the socket that was
//! connected ([`Session::owns_descriptor`]). If it is not, the session has gone, and the descriptor is left to the
//! program.

use crate::Error;
use aerostat_proto::socket::{Answer, MESSAGE_MAX, Request};
use aerostat_proto::split::Numbered;
use aerostat_proto::split::codec::Message as _;
use rustix::fd::{AsFd as _, BorrowedFd, IntoRawFd as _, OwnedFd};
use rustix::fs::fstat;
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recvmsg,
    sendmsg, socket_with,
};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

type Got = (Answer, Option<OwnedFd>);

#[derive(Debug, Default)]
struct Table {
    next: u16,
    /// The answers of requests, once they have come.
    waiting: BTreeMap<u16, Option<Got>>,
    /// True while a thread reads.
    reading: bool,
    gone: bool,
}

/// A connection to the service.
#[derive(Debug)]
pub(crate) struct Session {
    /// `None` only while the session is dropped.
    fd: Option<OwnedFd>,
    /// Device and number of the open file behind `fd`.
    file: (u64, u64),
    /// The process that has connected.
    process: u32,
    table: Mutex<Table>,
    changed: Condvar,
}

impl Session {
    pub(crate) fn connect(path: &Path) -> Result<Arc<Self>, Error> {
        let fd = open(path).map_err(|error| {
            let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
            let text = format!("no socket service at {}: {error}", path.display());
            Error::new(errno, text)
        })?;
        let file = file_of(fd.as_fd()).ok_or_else(Error::gone)?;
        Ok(Arc::new(Self {
            fd: Some(fd),
            file,
            process: std::process::id(),
            table: Mutex::default(),
            changed: Condvar::new(),
        }))
    }

    /// True if the descriptor is still the socket that was connected, and not closed or another file of the program.
    pub(crate) fn owns_descriptor(&self) -> bool {
        self.own().is_some()
    }

    fn own(&self) -> Option<BorrowedFd<'_>> {
        let fd = self.fd.as_ref()?.as_fd();
        (file_of(fd) == Some(self.file)).then_some(fd)
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        // A thread that panicked has left the table whole: every change is one statement.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks, and waits for the answer.
    pub(crate) fn ask(
        &self,
        request: &Request,
        with: Option<BorrowedFd<'_>>,
    ) -> Result<Got, Error> {
        let number = self.start(request, with)?;
        self.finish(number)
    }

    /// Asks; [`Self::finish`] or [`Self::forget`] must follow. Returns the number of the request.
    pub(crate) fn start(
        &self,
        request: &Request,
        with: Option<BorrowedFd<'_>>,
    ) -> Result<u16, Error> {
        if !self.owns_descriptor() {
            return Err(Error::gone());
        }
        let number = self.new_number()?;
        let message = Numbered {
            number,
            message: request.clone(),
        };
        // A service that has closed the connection may have said why.
        let _ = self.say(&message.encode(), with);
        Ok(number)
    }

    /// The caller no longer waits for the answer of a request.
    pub(crate) fn forget(&self, number: u16) {
        if std::process::id() == self.process {
            self.table().waiting.remove(&number);
        } else if let Ok(mut table) = self.table.try_lock() {
            // In a child, a thread that only the parent has may hold the lock for ever.
            table.waiting.remove(&number);
        }
    }

    /// Waits for the answer of a request.
    pub(crate) fn finish(&self, number: u16) -> Result<Got, Error> {
        match self.wait(number)? {
            (Answer::Failed(failure), _) => Err(failure.into()),
            got => Ok(got),
        }
    }

    /// Numbers are free again long before they begin anew, unless requests wait for the network for so long.
    fn new_number(&self) -> Result<u16, Error> {
        let mut table = self.table();
        for _ in 0..=u16::MAX {
            // 0 is the number of an answer without a request.
            table.next = table.next.wrapping_add(1).max(1);
            let number = table.next;
            if let Entry::Vacant(place) = table.waiting.entry(number) {
                place.insert(None);
                return Ok(number);
            }
        }
        Err(Error::new(
            Errno::NOMEM,
            "65 535 requests have no answer yet",
        ))
    }

    fn wait(&self, number: u16) -> Result<Got, Error> {
        let mut table = self.table();
        loop {
            if let Some(got) = table.waiting.get_mut(&number).and_then(Option::take) {
                table.waiting.remove(&number);
                return Ok(got);
            }
            if table.gone {
                table.waiting.remove(&number);
                return Err(Error::gone());
            }
            if table.reading {
                table = self
                    .changed
                    .wait(table)
                    .unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            table.reading = true;
            drop(table);
            let read = self.read();
            table = self.table();
            table.reading = false;
            match read {
                Some((0, Answer::Failed(failure), _)) => {
                    // The service has turned the program away.
                    table.gone = true;
                    table.waiting.remove(&number);
                    self.changed.notify_all();
                    return Err(failure.into());
                }
                Some((of, answer, fd)) => {
                    if let Some(place) = table.waiting.get_mut(&of) {
                        *place = Some((answer, fd));
                    }
                }
                None => table.gone = true,
            }
            self.changed.notify_all();
        }
    }

    fn say(&self, message: &[u8], with: Option<BorrowedFd<'_>>) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let fds: Vec<BorrowedFd<'_>> = with.into_iter().collect();
        if !fds.is_empty() {
            control.push(SendAncillaryMessage::ScmRights(&fds));
        }
        loop {
            let octets = [IoSlice::new(message)];
            let fd = self.own().ok_or(Errno::CONNRESET)?;
            match sendmsg(fd, &octets, &mut control, SendFlags::NOSIGNAL) {
                Err(Errno::INTR) => {}
                other => return Ok(other.map(drop)?),
            }
        }
    }

    /// The next answer with its number and descriptor; `None` if the service has gone.
    fn read(&self) -> Option<(u16, Answer, Option<OwnedFd>)> {
        let mut octets = vec![0; MESSAGE_MAX];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let length = loop {
            let mut parts = [IoSliceMut::new(&mut octets)];
            let flags = RecvFlags::CMSG_CLOEXEC;
            match recvmsg(self.own()?, &mut parts, &mut control, flags) {
                // The service has closed the connection with something unread; what it has said comes next.
                Err(Errno::INTR | Errno::CONNRESET) => {}
                Err(_) => return None,
                Ok(got) => break got.bytes,
            }
        };
        let mut fd = None;
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = message {
                fd = rights.last();
            }
        }
        let Numbered { number, message } =
            Numbered::<Answer>::decode(octets.get(..length).filter(|m| !m.is_empty())?).ok()?;
        Some((number, message, fd))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let own = self.owns_descriptor();
        if let Some(fd) = self.fd.take().filter(|_| !own) {
            // The number belongs to the program now, so it is not closed.
            let _ = fd.into_raw_fd();
        }
    }
}

/// Device and number of an open file; `None` if the descriptor is closed.
fn file_of(fd: BorrowedFd<'_>) -> Option<(u64, u64)> {
    let stat = fstat(fd).ok()?;
    Some((stat.st_dev, stat.st_ino))
}

/// Least number of the descriptor of a session, if the process may have such numbers.
const LEAST_NUMBER: i32 = 512;

fn open(path: &Path) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC;
    let fd = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    connect(&fd, &SocketAddrUnix::new(path)?)?;
    Ok(fcntl_dupfd_cloexec(&fd, LEAST_NUMBER).unwrap_or(fd))
}
