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
//! A [`Socket`] and a [`Listener`] are descriptors of the kernel ([`AsFd`]): one packet is one PDU. `poll`, `select`
//! and `epoll` work, and so does tokio's `AsyncFd` with [`Socket::set_nonblocking`]. A call that does not wait
//! ([`Socket::start_connect`]) makes its descriptor writable once its result is known. A descriptor may be duplicated,
//! inherited and passed to other processes; the last one that closes it ends the call, once everything written has
//! left. A full connection blocks the writer; a reader that is too slow loses PDUs, which [`Status::unread`] counts,
//! because ATM has no flow control.
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
//! and offset of a text that is wrong. It becomes an [`io::Error`] of the same number.

pub mod atp;
mod call;
mod error;
mod listener;
mod session;

pub use call::{Call, Connecting};
pub use error::Error;
pub use listener::{Listener, Offer};

use aerostat_proto::socket::{Answer, Change, Request, SocketRef};
pub use aerostat_proto::socket::{
    Interface, Left, Offer as Offered, Party, PduCounts, Status, UserData,
};
use aerostat_proto::split::codec::Message as _;
use aerostat_wire::ConnectionQos;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use session::Session;
use std::io;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The variable that names the service, inside `aerostat exec` and `aerostat shell`.
pub const VARIABLE: &str = "AEROSTAT_ATM";
/// Largest SDU of AAL5, octets.
pub const LARGEST_SDU: usize = 65_535;
/// Cause 16: normal call clearing.
pub const NORMAL: u8 = 16;
/// Cause 21: call rejected.
pub const REJECTED: u8 = 21;

/// A connection to the socket service of a host.
#[derive(Clone, Debug)]
pub struct Service {
    session: Arc<Session>,
    host: String,
    address: String,
}

impl Service {
    /// The service that [`VARIABLE`] names.
    ///
    /// # Errors
    /// If the variable is not set, or as [`Self::connect`].
    pub fn from_env() -> Result<Self, Error> {
        let path = std::env::var_os(VARIABLE).ok_or_else(|| {
            let text = format!(
                "{VARIABLE} is not set: run the program by 'aerostat exec HOST -- PROGRAM', or set it to \
                 RUNTIME/LAB/atm/HOST.sock"
            );
            Error::new(Errno::NOENT, text)
        })?;
        Self::connect(Path::new(&path))
    }

    /// The service at this path: `RUNTIME/LAB/atm/HOST.sock`.
    ///
    /// # Errors
    /// If there is no such service, or it does not take this program.
    pub fn connect(path: &Path) -> Result<Self, Error> {
        let session = Session::connect(path)?;
        let version = aerostat_proto::socket::VERSION;
        match session.ask(&Request::Hello { version }, None)?.0 {
            Answer::Welcome { host, address, .. } => Ok(Self {
                session,
                host,
                address,
            }),
            _ => Err(Error::nonsense()),
        }
    }

    /// False once the program has closed the descriptor of this connection, perhaps to use its number for a file of its
    /// own. The connection is useless then: its requests fail with ECONNRESET, and the descriptor is left alone.
    #[must_use]
    pub fn owns_descriptor(&self) -> bool {
        self.session.owns_descriptor()
    }

    /// Name of the host.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }
    /// Its ATM address with selector 00, in hex digits.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Names that can be called, with their addresses, and the number of names that are left out.
    ///
    /// # Errors
    /// If the service has gone.
    pub fn names(&self) -> Result<(Vec<(String, String)>, u32), Error> {
        match self.session.ask(&Request::Names, None)?.0 {
            Answer::Names { names, more } => Ok((names, more)),
            _ => Err(Error::nonsense()),
        }
    }

    /// The ATM interface of the host: its addresses, the rate of its link, and its counts. Afterwards the counts of
    /// PDUs or of cells begin anew for all programs of the host, if `zero_pdus` or `zero_cells` is true.
    ///
    /// # Errors
    /// If the service has gone, or is older than this request (EINVAL).
    pub fn interface(&self, zero_pdus: bool, zero_cells: bool) -> Result<Interface, Error> {
        let request = Request::Interface {
            zero_pdus,
            zero_cells,
        };
        match self.session.ask(&request, None)?.0 {
            Answer::Interface(interface) => Ok(interface),
            _ => Err(Error::nonsense()),
        }
    }

    /// Adds an address to the interface of the host: programs may listen there, with every selector. With ILMI the
    /// switch gets to know it; without ILMI only programs of the same host can call it. It goes with the lab, or when
    /// the host is switched off.
    ///
    /// # Errors
    /// EEXIST if the host has it already, EINVAL if it is no address of an end system, ENOMEM at the limit.
    pub fn add_address(&self, address: &str) -> Result<(), Error> {
        self.change_addresses(Change::Add, address)
    }

    /// Removes an address that a program has added.
    ///
    /// # Errors
    /// ENOENT if no program has added it.
    pub fn remove_address(&self, address: &str) -> Result<(), Error> {
        self.change_addresses(Change::Remove, address)
    }

    /// Removes all addresses that programs have added.
    ///
    /// # Errors
    /// If the service has gone.
    pub fn reset_addresses(&self) -> Result<(), Error> {
        self.change_addresses(Change::Reset, "")
    }

    fn change_addresses(&self, change: Change, address: &str) -> Result<(), Error> {
        let address = address.to_owned();
        let request = Request::Addresses { change, address };
        self.session.ask(&request, None).map(drop)
    }

    /// Opens a socket.
    ///
    /// # Errors
    /// If there is no room for it.
    pub fn socket(&self) -> Result<Socket, Error> {
        let socket = Socket::new(self.open()?);
        socket.most.store(IDLE, Ordering::Relaxed);
        Ok(socket)
    }

    /// Opens a socket: its control side and its descriptor apart.
    ///
    /// # Errors
    /// If there is no room for it.
    pub fn open(&self) -> Result<(Control, OwnedFd), Error> {
        let answer = self.session.ask(&Request::Open, None)?;
        self.control(SocketRef(0)).opened(answer)
    }

    fn control(&self, reference: SocketRef) -> Control {
        let session = Arc::clone(&self.session);
        Control { session, reference }
    }

    /// Makes a call, and waits until it can be used: as long as the resolution of an IP address and signalling try.
    ///
    /// # Errors
    /// If a text is wrong, or the call fails.
    pub fn call(&self, called: &str, sap: &str, qos: &str) -> Result<Socket, Error> {
        let socket = self.socket()?;
        socket.connect(called, sap, qos, None)?;
        Ok(socket)
    }

    /// Listens for calls at a free address of the host, with a backlog of 16.
    ///
    /// # Errors
    /// If the text is wrong, or there is no room.
    pub fn listen(&self, sap: &str) -> Result<Listener, Error> {
        let socket = self.socket()?;
        socket.bind("", sap)?;
        socket.listen(16)
    }

    /// The socket of a descriptor that this process has inherited or was given.
    ///
    /// # Errors
    /// If it is no socket of this service.
    pub fn adopt(&self, fd: OwnedFd) -> Result<Socket, Error> {
        let socket = Socket::new((self.control_of(fd.as_fd())?, fd));
        let status = socket.status()?;
        socket.note_contract(&status.qos);
        if matches!(&*status.state, "idle" | "bound" | "listening") {
            socket.most.store(IDLE, Ordering::Relaxed);
        }
        Ok(socket)
    }

    /// The control side of such a descriptor.
    ///
    /// # Errors
    /// If it is no socket of this service.
    pub fn control_of(&self, fd: BorrowedFd<'_>) -> Result<Control, Error> {
        match self.session.ask(&Request::Adopt, Some(fd))?.0 {
            Answer::Opened { socket } => Ok(self.control(socket)),
            _ => Err(Error::nonsense()),
        }
    }
}

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

/// Stands for the largest SDU of an end that cannot send.
const SILENT: usize = usize::MAX;
/// Stands for the largest SDU of a socket without a connection.
const IDLE: usize = usize::MAX - 1;
/// The same of a listener.
const LISTENING: usize = usize::MAX - 2;

/// An ATM socket: its control side, and its descriptor. The methods of [`Control`] are its own, too.
#[derive(Debug)]
pub struct Socket {
    control: Control,
    fd: OwnedFd,
    /// Largest SDU that it may send, octets, or a state; 0: not known.
    most: AtomicUsize,
}

impl Deref for Socket {
    type Target = Control;
    fn deref(&self) -> &Control {
        &self.control
    }
}

impl Socket {
    fn new((control, fd): (Control, OwnedFd)) -> Self {
        let most = AtomicUsize::new(0);
        Self { control, fd, most }
    }

    fn note_contract(&self, qos: &str) {
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

    /// The descriptor, for another process ([`Service::adopt`]).
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
