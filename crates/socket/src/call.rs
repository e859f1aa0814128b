//! Calls that a program makes.

use crate::Error;
use crate::session::Session;
use aerostat_proto::socket::{Answer, Request, SocketRef, UserData};
use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use std::sync::Arc;
use std::time::Duration;

/// A call that a program makes: [`Self::to`] has the defaults.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// Address of the other end in hex digits, or a name of the lab with an optional selector (`sello/e1`).
    pub called: &'a str,
    /// Purpose of the call, as in `sap(7)`; empty: nothing is said.
    pub sap: &'a str,
    /// The contract, as in `qos(7)`.
    pub qos: &'a str,
    /// The call is given up after this time; `None`: when the timers of signalling end it.
    pub timeout: Option<Duration>,
    /// True for the root of a point-to-multipoint call, whose first leaf is the other end. Data go from the root to its
    /// leaves only; of the contract, that direction counts.
    pub multipoint: bool,
    /// True if the root is told of leaves that leave ([`Socket::left`](crate::Socket::left)).
    pub reports: bool,
    /// User data for the called side, which sees it before it answers; at most 128 octets. Each link on the way needs
    /// UNI 4.0.
    pub user_data: &'a [u8],
}

impl<'a> Call<'a> {
    /// A best effort call without an access point.
    #[must_use]
    pub const fn to(called: &'a str) -> Self {
        Self {
            called,
            sap: "",
            qos: "ubr",
            timeout: None,
            multipoint: false,
            reports: false,
            user_data: &[],
        }
    }
    pub(crate) fn request(&self, socket: SocketRef) -> Result<Request, Error> {
        let millis = self.timeout.map_or(0, |timeout| timeout.as_millis().max(1));
        Ok(Request::Connect {
            socket,
            called: self.called.to_owned(),
            sap: self.sap.to_owned(),
            qos: self.qos.to_owned(),
            timeout: u32::try_from(millis).unwrap_or(u32::MAX),
            multipoint: self.multipoint,
            reports: self.reports,
            user_data: user_data(self.user_data)?,
        })
    }
}

/// User data for a message.
///
/// # Errors
/// EMSGSIZE if they are too long.
pub(crate) fn user_data(octets: &[u8]) -> Result<UserData, Error> {
    UserData::new(octets.to_vec()).ok_or_else(|| {
        let text = format!(
            "{} octets of user data: a message of a call carries at most {}",
            octets.len(),
            UserData::MAX
        );
        Error::new(Errno::MSGSIZE, text)
    })
}

/// Packets without octets that fill a descriptor: more than its buffer takes.
const FILL: usize = 4096;

/// A call that is being made ([`Control::start_connect`](crate::Control::start_connect)). If this is dropped, the call
/// goes on.
#[derive(Debug)]
#[must_use]
pub struct Connecting {
    session: Arc<Session>,
    number: u16,
    /// The contract, if the result is known already.
    result: Option<String>,
}

impl Connecting {
    /// Sends the request for the call.
    pub(crate) fn start(session: Arc<Session>, request: &Request) -> Result<Self, Error> {
        Ok(Self {
            number: session.start(request, None)?,
            session,
            result: None,
        })
    }
    /// Makes the descriptor of the socket full, with packets that the service drops: so it is writable once the service
    /// reads there, which it does when the call can be used, and when the call has failed.
    pub(crate) fn fill(&self, fd: BorrowedFd<'_>) {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        for _ in 0..FILL {
            match send(fd, &[], flags) {
                Ok(_) | Err(Errno::INTR) => {}
                // It is full, or the call has failed already.
                Err(_) => break,
            }
        }
    }
    /// Takes the result, which has come already.
    pub(crate) fn settle(&mut self) -> Result<(), Error> {
        self.result = Some(self.wait()?);
        Ok(())
    }
    /// Waits for the result: the contract that was agreed.
    ///
    /// # Errors
    /// If the call has failed; with its cause then.
    pub fn finish(mut self) -> Result<String, Error> {
        match self.result.take() {
            Some(agreed) => Ok(agreed),
            None => self.wait(),
        }
    }
    /// True if [`Self::finish`] does not wait, because the result was known at once.
    #[must_use]
    pub const fn is_done(&self) -> bool {
        self.result.is_some()
    }
    fn wait(&self) -> Result<String, Error> {
        match self.session.finish(self.number)?.0 {
            Answer::Connected { qos, .. } => Ok(qos),
            _ => Err(Error::nonsense()),
        }
    }
}

impl Drop for Connecting {
    fn drop(&mut self) {
        self.session.forget(self.number);
    }
}
