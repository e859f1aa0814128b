//! The socket service of a host: names, addresses, and sockets.

use super::error::Error;
use super::listener::Listener;
use super::session::Session;
use super::socket::IDLE;
use super::{Control, Socket, VARIABLE};
use aerostat_proto::socket::{Answer, Change, Interface, Request, SocketRef};
use rustix::fd::{AsFd as _, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A connection to the socket service of a host.
#[derive(Clone, Debug)]
pub struct Service {
    pub(super) session: Arc<Session>,
    pub(super) host: String,
    pub(super) address: String,
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

    pub(super) fn change_addresses(&self, change: Change, address: &str) -> Result<(), Error> {
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

    pub(super) fn control(&self, reference: SocketRef) -> Control {
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
