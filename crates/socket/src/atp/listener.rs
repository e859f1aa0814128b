//! Listeners.

use super::{Connection, Options};
use crate::{Error, Offer, Service};
use rustix::fd::{AsFd, BorrowedFd};
use std::io;

/// Waits for calls that are ATP connections.
#[derive(Debug)]
pub struct Listener {
    listener: crate::Listener,
    options: Options,
}

impl Listener {
    /// Listens at an address of the host (empty: a free one), with at most `backlog` (1 to 128) calls that wait for
    /// [`Self::accept`]. Of the options, the access point, the parameters and `linger` count.
    ///
    /// # Errors
    /// If a text is wrong, this host does not have the address, or another program listens there.
    pub fn bind(
        service: &Service,
        address: &str,
        backlog: u16,
        options: &Options,
    ) -> Result<Self, Error> {
        let socket = service.socket()?;
        socket.bind(address, &options.sap)?;
        Ok(Self {
            listener: socket.listen(backlog)?,
            options: options.clone(),
        })
    }

    /// Its address in hex digits.
    ///
    /// # Errors
    /// If the service has gone.
    pub fn address(&self) -> Result<String, Error> {
        self.listener.address()
    }

    /// Waits for the next call, and accepts it; with smaller SDUs if the caller's are longer than [`Params::mtu`].
    ///
    /// # Errors
    /// If the service has gone; EAGAIN if the listener is non-blocking; as [`Self::take`]: the listener goes on.
    ///
    /// [`Params::mtu`]: super::Params::mtu
    pub fn accept(&self) -> Result<Connection, Error> {
        self.take(self.listener.offer()?)
    }

    /// The next call, for a program that looks at it before it answers: with [`Self::take`] or [`Offer::refuse`].
    ///
    /// # Errors
    /// If the service has gone; EAGAIN if the listener is non-blocking.
    pub fn offer(&self) -> Result<Offer<'_>, Error> {
        self.listener.offer()
    }

    /// Accepts an offer of this listener.
    ///
    /// # Errors
    /// If the caller has gone, or there is no room; EOPNOTSUPP if the contract has traffic in one direction only.
    pub fn take(&self, offer: Offer<'_>) -> Result<Connection, Error> {
        let answer = self.options.answer(offer.qos());
        Connection::over(offer.accept_on(&answer)?, &self.options)
    }

    /// Makes [`Self::accept`] return EAGAIN where it would wait for a call.
    ///
    /// # Errors
    /// As the kernel.
    pub fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        self.listener.set_nonblocking(nonblocking)
    }
}

impl AsFd for Listener {
    /// Readable if a call waits.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}
