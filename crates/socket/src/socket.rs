//! A socket with its descriptor: calls, PDUs and offers.

use super::call::{Call, Connecting};
use super::error::Error;
use super::listener::Listener;
use super::{Control, LARGEST_SDU};
use aerostat_proto::socket::{Left, Offer as Offered};
use aerostat_wire::ConnectionQos;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::io;
use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Stands for the largest SDU of an end that cannot send.
pub(super) const SILENT: usize = usize::MAX;

/// Stands for the largest SDU of a socket without a connection.
pub(super) const IDLE: usize = usize::MAX - 1;

/// The same of a listener.
pub(super) const LISTENING: usize = usize::MAX - 2;

/// An ATM socket: its control side, and its descriptor. The methods of [`Control`] are its own, too.
#[derive(Debug)]
pub struct Socket {
    pub(super) control: Control,
    pub(super) fd: OwnedFd,
    /// Largest SDU that it may send, octets, or a state; 0: not known.
    pub(super) most: AtomicUsize,
}

impl Deref for Socket {
    type Target = Control;
    fn deref(&self) -> &Control {
        &self.control
    }
}

impl Socket {
    pub(super) fn new((control, fd): (Control, OwnedFd)) -> Self {
        let most = AtomicUsize::new(0);
        Self { control, fd, most }
    }

    pub(super) fn note_contract(&self, qos: &str) {
        let given = qos.parse::<ConnectionQos>().ok();
        let most = given.map_or(0, |given| match given.qos.tx.category {
            Some(_) => given.qos.tx.max_sdu.into(),
            None => SILENT,
        });
        self.most.store(most, Ordering::Relaxed);
    }

    /// As [`Control::connect`].
    ///
    /// # Errors
    /// If a text is wrong, or the call fails; with its cause then.
    pub fn connect(
        &self,
        called: &str,
        sap: &str,
        qos: &str,
        timeout: Option<Duration>,
    ) -> Result<String, Error> {
        let agreed = self.control.connect(called, sap, qos, timeout)?;
        self.note_contract(&agreed);
        Ok(agreed)
    }

    /// As [`Control::make`].
    ///
    /// # Errors
    /// If a text is wrong, or the call fails; with its cause then.
    pub fn make(&self, call: &Call<'_>) -> Result<String, Error> {
        let agreed = self.control.make(call)?;
        self.note_contract(&agreed);
        Ok(agreed)
    }

    /// As [`Control::start_connect`]. [`Self::send`] then refuses what is longer than the contract of `call` allows.
    ///
    /// # Errors
    /// If a text is wrong, or the call cannot be tried.
    pub fn start_connect(&self, call: &Call<'_>) -> Result<Connecting, Error> {
        let started = self.control.start_connect(self.fd.as_fd(), call)?;
        self.note_contract(call.qos);
        Ok(started)
    }

    /// As [`Control::open_permanent`].
    ///
    /// # Errors
    /// If a text is wrong, or another program uses the label (cause 35).
    pub fn open_permanent(&self, label: &str, qos: &str) -> Result<String, Error> {
        let contract = self.control.open_permanent(label, qos)?;
        self.note_contract(&contract);
        Ok(contract)
    }

    /// Waits for calls; at most `backlog` (1 to 128) of them wait for an answer at the same time.
    ///
    /// # Errors
    /// If the socket has no address, or another program listens there.
    pub fn listen(self, backlog: u16) -> Result<Listener, Error> {
        self.control.listen(backlog, 0)?;
        Ok(Listener(self))
    }

    /// Sends a PDU. A PDU without octets is not sent. Waits while the connection is full, unless the socket is
    /// non-blocking.
    ///
    /// # Errors
    /// EMSGSIZE if it is longer than the contract allows, EPIPE if the call has ended, ENOTCONN before the first call,
    /// EAGAIN; EOPNOTSUPP at a leaf of a point-to-multipoint call, or where the contract has no traffic in this
    /// direction.
    pub fn send(&self, pdu: &[u8]) -> io::Result<()> {
        let most = match self.most.load(Ordering::Relaxed) {
            SILENT => {
                let text = "the contract has no traffic from this end";
                return Err(Error::new(Errno::OPNOTSUPP, text).into());
            }
            IDLE | LISTENING => {
                let text = "the socket has no connection yet";
                return Err(Error::new(Errno::NOTCONN, text).into());
            }
            0 => LARGEST_SDU,
            most => most,
        };
        if pdu.len() > most {
            let text = format!("a PDU of {} octets: the contract allows {most}", pdu.len());
            return Err(Error::new(Errno::MSGSIZE, text).into());
        }
        if pdu.is_empty() {
            return Ok(());
        }
        loop {
            match send(&self.fd, pdu, SendFlags::NOSIGNAL) {
                Err(Errno::INTR) => {}
                other => return Ok(other.map(drop)?),
            }
        }
    }

    /// Receives a PDU; returns its length, 0 if the call has ended. A PDU that is longer than the buffer is cut. Waits
    /// for it, unless the socket is non-blocking.
    ///
    /// # Errors
    /// EAGAIN.
    pub fn recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match recv(&self.fd, &mut *buffer, RecvFlags::empty()) {
                Err(Errno::INTR) => {}
                // The service has closed its end.
                Err(Errno::CONNRESET) => return Ok(0),
                Err(error) => return Err(error.into()),
                Ok((octets, _)) => return Ok(octets),
            }
        }
    }

    /// At a listener ([`Control::listen`]): the next call that is offered. It waits for an answer for 5 s.
    ///
    /// # Errors
    /// EINVAL if the socket is no listener; if the service has gone; EAGAIN if the socket is non-blocking.
    pub fn next_offer(&self) -> Result<Offered, Error> {
        // Packets of a socket that is no listener would be read as offers, or would never come.
        if self.most.load(Ordering::Relaxed) != LISTENING {
            let state = self.status()?.state;
            if state != "listening" {
                let text = format!("the socket is {state}, not listening");
                return Err(Error::new(Errno::INVAL, text));
            }
            self.most.store(LISTENING, Ordering::Relaxed);
        }
        let mut packet = vec![0; aerostat_proto::socket::MESSAGE_MAX];
        match self.recv(&mut packet)? {
            0 => Err(Error::gone()),
            octets => Control::offered(packet.get(..octets).unwrap_or_default()),
        }
    }

    /// At a root that asked for reports: waits for the next leaf that leaves. `None`: the call has ended.
    ///
    /// # Errors
    /// EAGAIN; or if the packet is no report, because the socket is no such root.
    pub fn left(&self) -> Result<Option<Left>, Error> {
        let mut packet = [0; 64];
        match self.recv(&mut packet)? {
            0 => Ok(None),
            octets => Control::reported(packet.get(..octets).unwrap_or_default()).map(Some),
        }
    }

    /// Makes [`Self::send`] and [`Self::recv`] return EAGAIN where they would wait.
    ///
    /// # Errors
    /// As the kernel.
    pub fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        Ok(rustix::io::ioctl_fionbio(&self.fd, nonblocking)?)
    }

    /// The descriptor, for another process ([`Service::adopt`](super::Service::adopt)).
    #[must_use]
    pub fn into_fd(self) -> OwnedFd {
        self.fd
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl AsRawFd for Socket {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}
