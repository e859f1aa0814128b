//! ATM sockets for programs, on the socket service of a running lab.
//!
//! **Purpose.** A program makes and accepts ATM calls with a contract in each direction, uses permanent connections,
//! and sends and receives AAL5 SDUs, as with the sockets of a kernel that has ATM. A lab that runs
//! (`aerostat up LAB`) offers this for each of its hosts.
//!
//! ```no_run
//! use aerostat_socket::Service;
//!
//! let service = Service::from_env()?;                       // AEROSTAT_ATM, or Service::connect(path)
//! let socket = service.call("sello", "", "cbr:max_pcr=1Mbps,sdu=1000")?;
//! socket.send(b"hello")?;
//! let mut pdu = vec![0; 1000];
//! let octets = socket.recv(&mut pdu)?;                      // 0: the call has ended
//! println!("{octets} octets; {}", socket.status()?.why);
//! # Ok::<(), aerostat_socket::Error>(())
//! ```
//!
//! # Sockets are descriptors
//!
//! A [`Socket`] and a [`Listener`] are descriptors of the kernel ([`AsFd`](std::os::fd::AsFd)): one packet is one PDU.
//! `poll`, `select` and `epoll` work, and so does tokio's `AsyncFd` with [`Socket::set_nonblocking`]. A call that does
//! not wait ([`Socket::start_connect`]) makes its descriptor writable once its result is known. A descriptor may be
//! duplicated, inherited and passed to other processes; the last one that closes it ends the call, once everything
//! written has left. A full connection blocks the writer; a reader that is too slow loses PDUs, which
//! [`Status::unread`] counts, because ATM has no flow control.
//!
//! # Trees
//!
//! A [`Call`] with `multipoint` makes the root of a point-to-multipoint call ([`Socket::make`],
//! [`Control::add_party`]): what it sends goes to each leaf, and a leaf cannot send. `examples/tree.rs` has both.
//!
//! # Messages of any length
//!
//! [`atp`] carries them over a call, complete and in order, whatever the network loses.
//!
//! # Texts
//!
//! Addresses are 40 hex digits; or names of nodes of the lab, or IPv4 addresses, with an optional selector (`sello`,
//! `sello/e1`, `10.0.0.2`). The host resolves an IP address by the map of next hops and the ATMARP server of its
//! Classical IP interface, or by NHRP. An error then has the cause, and who did not answer. Contracts have the syntax
//! of linux-atm's `qos(7)` (`ubr`, `cbr:max_pcr=64kbps,sdu=48`, different directions with `tx:` and `rx:`), access
//! points that of `sap(7)`; an empty access point says nothing, and a listener without one gets any call without one.
//!
//! # Threads
//!
//! A [`Service`] may be cloned and used by many threads. A call that waits for the network does not hold up the
//! requests of others.
//!
//! # Errors
//!
//! [`Error`] has the error number of Linux, the cause of Q.850 if the network or the other end refused, and the field
//! and offset of a text that is wrong. It becomes an [`std::io::Error`] of the same number.

pub mod atp;
mod call;
mod error;
mod listener;
mod service;
mod session;
mod socket;

pub use call::{Call, Connecting};
pub use error::Error;
pub use listener::{Listener, Offer};

use aerostat_proto::socket::{Answer, Request, SocketRef};
pub use aerostat_proto::socket::{
    Interface, Left, Offer as Offered, Party, PduCounts, Status, UserData,
};
use aerostat_proto::split::codec::Message as _;
use rustix::fd::{BorrowedFd, OwnedFd};
pub use service::Service;
use session::Session;
pub use socket::Socket;
use std::sync::Arc;
use std::time::Duration;

/// The variable that names the service, inside `aerostat exec` and `aerostat shell`.
pub const VARIABLE: &str = "AEROSTAT_ATM";
/// Largest SDU of AAL5, octets.
pub const LARGEST_SDU: usize = 65_535;
/// Cause 16: normal call clearing.
pub const NORMAL: u8 = 16;
/// Cause 21: call rejected.
pub const REJECTED: u8 = 21;

/// The control side of an ATM socket: its requests to the service, without its descriptor.
#[derive(Clone, Debug)]
pub struct Control {
    session: Arc<Session>,
    reference: SocketRef,
}

impl Control {
    /// As [`Service::owns_descriptor`], of the connection that this socket was opened or adopted on.
    #[must_use]
    pub fn owns_descriptor(&self) -> bool {
        self.session.owns_descriptor()
    }

    fn ask(&self, request: &Request) -> Result<Answer, Error> {
        Ok(self.session.ask(request, None)?.0)
    }

    /// Gives the socket an address of its host and an access point; an empty address: a free one. Returns the address.
    ///
    /// # Errors
    /// If a text is wrong, this host does not have the address, or another program has it.
    pub fn bind(&self, address: &str, sap: &str) -> Result<String, Error> {
        let request = Request::Bind {
            socket: self.reference,
            address: address.to_owned(),
            sap: sap.to_owned(),
        };
        match self.ask(&request)? {
            Answer::Bound { address } => Ok(address),
            _ => Err(Error::nonsense()),
        }
    }

    /// Makes the socket a listener: at most `backlog` (1 to 128) calls wait for an answer at the same time, and a
    /// caller sends SDUs of at most `max_sdu` octets (0: any). Offers come as packets at the descriptor
    /// ([`Self::offered`]).
    ///
    /// # Errors
    /// If the socket has no address, or another program listens there.
    pub fn listen(&self, backlog: u16, max_sdu: u16) -> Result<(), Error> {
        let request = Request::Listen {
            socket: self.reference,
            backlog,
            max_sdu,
        };
        self.ask(&request).map(drop)
    }

    /// Makes a call, and waits until it can be used, at most for `timeout`. Returns the contract that was agreed.
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
        let call = Call {
            sap,
            qos,
            timeout,
            ..Call::to(called)
        };
        self.make(&call)
    }

    /// As [`Self::connect`], for every kind of call.
    ///
    /// # Errors
    /// If a text is wrong, or the call fails; with its cause then.
    pub fn make(&self, call: &Call<'_>) -> Result<String, Error> {
        self.connected(&call.request(self.reference)?)
    }

    /// Makes a call, and does not wait for it. `fd` is the descriptor of this socket. It is not writable until the call
    /// can be used or has failed: then [`Connecting::finish`] has the result at once.
    ///
    /// # Errors
    /// If a text is wrong, or the call cannot be tried.
    pub fn start_connect(&self, fd: BorrowedFd<'_>, call: &Call<'_>) -> Result<Connecting, Error> {
        let request = call.request(self.reference)?;
        let session = Arc::clone(&self.session);
        let mut connecting = Connecting::start(session, &request)?;
        // The service answers in order, so a call that cannot be tried has failed before this answer.
        match self.status()?.state.as_str() {
            "connecting" => connecting.fill(fd),
            _ => connecting.settle()?,
        }
        Ok(connecting)
    }

    /// Adds a leaf to the point-to-multipoint call of this root, and waits until the leaf has answered. Returns its
    /// number.
    ///
    /// # Errors
    /// If the text is wrong, or the leaf cannot be added; with its cause then.
    pub fn add_party(&self, called: &str) -> Result<u16, Error> {
        self.add_party_with(called, &[]).map(|(party, _)| party)
    }

    /// As [`Self::add_party`]; the leaf sees `user_data`, at most 128 octets, before it answers. Returns what it says
    /// in its answer, too.
    ///
    /// # Errors
    /// As [`Self::add_party`]. The error has what the leaf said when it refused ([`Error::user_data`]).
    pub fn add_party_with(&self, called: &str, user_data: &[u8]) -> Result<(u16, UserData), Error> {
        let request = Request::AddParty {
            socket: self.reference,
            called: called.to_owned(),
            user_data: call::user_data(user_data)?,
        };
        match self.ask(&request)? {
            Answer::PartyAdded { party, user_data } => Ok((party, user_data)),
            _ => Err(Error::nonsense()),
        }
    }

    /// Drops a leaf; the one that was called first has the number 0. With the last leaf the call ends.
    ///
    /// # Errors
    /// If the call has no such leaf.
    pub fn drop_party(&self, party: u16) -> Result<(), Error> {
        let socket = self.reference;
        self.ask(&Request::DropParty { socket, party }).map(drop)
    }

    /// The leaves of the point-to-multipoint call of this root, by number.
    ///
    /// # Errors
    /// If the socket is no such root.
    pub fn parties(&self) -> Result<Vec<Party>, Error> {
        let (socket, mut all) = (self.reference, Vec::new());
        loop {
            let last = all.last().map(|party: &Party| party.party);
            let from = last.map_or(0, |last| last.saturating_add(1));
            match self.ask(&Request::Parties { socket, from })? {
                Answer::Parties { parties, more } => {
                    let done = more == 0 || parties.is_empty();
                    all.extend(parties);
                    if done {
                        return Ok(all);
                    }
                }
                _ => return Err(Error::nonsense()),
            }
        }
    }

    /// The report in a packet that was read from the descriptor of a root ([`Call::reports`]).
    ///
    /// # Errors
    /// If it is no such report.
    pub fn reported(packet: &[u8]) -> Result<Left, Error> {
        Left::decode(packet).map_err(|_| Error::nonsense())
    }

    /// Uses a permanent connection with this label (`VPI.VCI`) on the link of the host. Returns its contract.
    ///
    /// With `aal0` in `qos`, each SDU is one cell of 52 octets: four octets of header, in which payload type and CLP
    /// count, and the payload.
    ///
    /// # Errors
    /// If a text is wrong, or another program uses the label (cause 35).
    pub fn open_permanent(&self, label: &str, qos: &str) -> Result<String, Error> {
        let request = Request::OpenPermanent {
            socket: self.reference,
            label: label.to_owned(),
            qos: qos.to_owned(),
        };
        self.connected(&request)
    }

    fn connected(&self, request: &Request) -> Result<String, Error> {
        match self.ask(request)? {
            Answer::Connected { qos, .. } => Ok(qos),
            _ => Err(Error::nonsense()),
        }
    }

    /// State, addresses, contract, counts, and the cause of the end.
    ///
    /// # Errors
    /// If the service has forgotten the socket, or has gone.
    pub fn status(&self) -> Result<Status, Error> {
        let socket = self.reference;
        match self.ask(&Request::Status { socket })? {
            Answer::Status(status) => Ok(*status),
            _ => Err(Error::nonsense()),
        }
    }

    /// Ends the call with this cause of Q.850 (1 to 127), once what was written has left. The last copy of the
    /// descriptor that is closed does the same with cause 16.
    ///
    /// # Errors
    /// If the socket has no call.
    pub fn release(&self, cause: u8) -> Result<(), Error> {
        self.release_with(cause, &[])
    }

    /// As [`Self::release`]; the other end gets these octets, at most 128.
    ///
    /// # Errors
    /// If the socket has no call, or its link carries no user data (EOPNOTSUPP).
    pub fn release_with(&self, cause: u8, user_data: &[u8]) -> Result<(), Error> {
        let request = Request::Release {
            socket: self.reference,
            cause,
            user_data: call::user_data(user_data)?,
        };
        self.ask(&request).map(drop)
    }

    /// Latest user data of the other end: in its call, its answer, or its release. Empty if it said nothing.
    ///
    /// # Errors
    /// If the service has forgotten the socket, or has gone.
    pub fn user_data(&self) -> Result<Vec<u8>, Error> {
        Ok(self.status()?.user_data.octets().to_vec())
    }

    /// As [`Self::release`], without waiting for the answer.
    pub(crate) fn release_soon(&self, cause: u8) {
        let socket = self.reference;
        if let Ok(number) = self.session.start(
            &Request::Release {
                socket,
                cause,
                user_data: UserData::default(),
            },
            None,
        ) {
            self.session.forget(number);
        }
    }

    /// Accepts an offer of this listener, and waits until the call can be used. Returns the new socket and its
    /// descriptor. `qos` is the contract of the answer as this end sees it: it may have smaller SDUs than the offer,
    /// and a lower rate if the offer has a `min_pcr`. An empty text accepts the call as offered. The caller gets
    /// `user_data`, at most 128 octets.
    ///
    /// # Errors
    /// If the offer does not allow this answer (EINVAL; the offer waits on), its link carries no user data
    /// (EOPNOTSUPP), the caller has gone, or there is no room.
    pub fn accept(
        &self,
        offer: u32,
        qos: &str,
        user_data: &[u8],
    ) -> Result<(Self, OwnedFd), Error> {
        let request = Request::Accept {
            socket: self.reference,
            offer,
            qos: qos.to_owned(),
            user_data: call::user_data(user_data)?,
        };
        self.opened(self.session.ask(&request, None)?)
    }

    /// As [`Self::accept`], for an offer in hand: the socket, which knows what was agreed.
    ///
    /// # Errors
    /// As [`Self::accept`].
    pub fn answer(&self, offered: &Offered, qos: &str, user_data: &[u8]) -> Result<Socket, Error> {
        let opened = Socket::new(self.accept(offered.offer, qos, user_data)?);
        match qos {
            "" => opened.note_contract(&offered.qos),
            _ => opened.note_contract(&opened.status()?.qos),
        }
        Ok(opened)
    }

    /// Refuses an offer of this listener with this cause of Q.850, 1 to 127; for example [`REJECTED`]. The caller gets
    /// `user_data`, at most 128 octets.
    ///
    /// # Errors
    /// If the caller has gone, or its link carries no user data (EOPNOTSUPP).
    pub fn refuse(&self, offer: u32, cause: u8, user_data: &[u8]) -> Result<(), Error> {
        let request = Request::Refuse {
            socket: self.reference,
            offer,
            cause,
            user_data: call::user_data(user_data)?,
        };
        self.ask(&request).map(drop)
    }

    /// The offer in a packet that was read from a listener's descriptor.
    ///
    /// # Errors
    /// If it is no offer.
    pub fn offered(packet: &[u8]) -> Result<Offered, Error> {
        Offered::decode(packet).map_err(|_| Error::nonsense())
    }

    fn opened(&self, (answer, fd): (Answer, Option<OwnedFd>)) -> Result<(Self, OwnedFd), Error> {
        match (answer, fd) {
            (Answer::Opened { socket }, Some(fd)) => {
                let session = Arc::clone(&self.session);
                let reference = socket;
                Ok((Self { session, reference }, fd))
            }
            _ => Err(Error::nonsense()),
        }
    }
}
