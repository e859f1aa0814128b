//! Listeners, and the calls that they are offered.

use crate::{Error, Offered, Socket, Status};
use rustix::fd::{AsFd, BorrowedFd};
use std::io;

/// A socket that waits for calls. Its descriptor is readable if an offer waits.
#[derive(Debug)]
pub struct Listener(pub(crate) Socket);

impl Listener {
    /// Its address in hex digits.
    ///
    /// # Errors
    /// If the service has gone.
    pub fn address(&self) -> Result<String, Error> {
        Ok(self.0.status()?.local)
    }

    /// State and counts.
    ///
    /// # Errors
    /// If the service has gone.
    pub fn status(&self) -> Result<Status, Error> {
        self.0.status()
    }

    /// The next call that is offered. It waits for an answer for 5 s, and is refused then.
    ///
    /// # Errors
    /// If the service has gone; EAGAIN if the listener is non-blocking.
    pub fn offer(&self) -> Result<Offer<'_>, Error> {
        let offered = self.0.next_offer()?;
        Ok(Offer {
            listener: self,
            offered,
        })
    }

    /// Accepts the next call, whatever it is.
    ///
    /// # Errors
    /// As [`Self::offer`] and [`Offer::accept`].
    pub fn accept(&self) -> Result<Socket, Error> {
        self.offer()?.accept()
    }

    /// As [`Socket::set_nonblocking`], for [`Self::offer`].
    ///
    /// # Errors
    /// As the kernel.
    pub fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        self.0.set_nonblocking(nonblocking)
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A call that waits for an answer.
#[derive(Debug)]
pub struct Offer<'a> {
    listener: &'a Listener,
    offered: Offered,
}

impl Offer<'_> {
    /// Address of the caller in hex digits; empty if the caller gave none.
    #[must_use]
    pub fn caller(&self) -> &str {
        &self.offered.caller
    }
    /// The address that was called.
    #[must_use]
    pub fn called(&self) -> &str {
        &self.offered.called
    }
    /// The access point, as in `sap(7)`.
    #[must_use]
    pub fn sap(&self) -> &str {
        &self.offered.sap
    }
    /// The contract as this end sees it, as in `qos(7)`.
    #[must_use]
    pub fn qos(&self) -> &str {
        &self.offered.qos
    }

    /// User data of the caller; empty if it gave none.
    #[must_use]
    pub fn user_data(&self) -> &[u8] {
        self.offered.user_data.octets()
    }

    /// True if this end would be a leaf of a point-to-multipoint call, which cannot send.
    #[must_use]
    pub fn is_multipoint(&self) -> bool {
        self.offered.multipoint
    }

    /// Accepts the call, and waits until it can be used.
    ///
    /// # Errors
    /// If the caller has gone, or there is no room.
    pub fn accept(self) -> Result<Socket, Error> {
        self.accept_on("")
    }

    /// As [`Self::accept`], on these terms: a contract with smaller SDUs, and with a lower rate if the offer has a
    /// `min_pcr`. What the text does not state is as offered.
    ///
    /// # Errors
    /// If the offer does not allow this answer (EINVAL; the offer waits on), the caller has gone, or there is no room.
    pub fn accept_on(&self, qos: &str) -> Result<Socket, Error> {
        self.accept_with(qos, &[])
    }

    /// As [`Self::accept_on`]; the caller gets these octets, at most 128.
    ///
    /// # Errors
    /// As [`Self::accept_on`]; EOPNOTSUPP if the link carries no user data.
    pub fn accept_with(&self, qos: &str, user_data: &[u8]) -> Result<Socket, Error> {
        let control = &self.listener.0.control;
        control.answer(&self.offered, qos, user_data)
    }

    /// Refuses the call with this cause of Q.850, 1 to 127; for example [`crate::REJECTED`].
    ///
    /// # Errors
    /// If the caller has gone.
    pub fn refuse(self, cause: u8) -> Result<(), Error> {
        self.refuse_with(cause, &[])
    }

    /// As [`Self::refuse`]; the caller gets these octets, at most 128 ([`Error::user_data`]).
    ///
    /// # Errors
    /// If the caller has gone; EOPNOTSUPP if the link carries no user data.
    pub fn refuse_with(self, cause: u8, user_data: &[u8]) -> Result<(), Error> {
        let (control, offer) = (&self.listener.0.control, self.offered.offer);
        control.refuse(offer, cause, user_data)
    }
}
