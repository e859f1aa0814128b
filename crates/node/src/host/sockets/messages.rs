//! Messages of the socket layer: those of programs, of the ATM service and of the adapter.

use super::{FromAdapter, Session, Unresolved};
use crate::atm::Sdus;
use crate::ip::books::SocketEvent;
use crate::signalling::{Along, Heard};
use aerostat_proto::socket::{Answer, Interface, Offer, Request, SocketRef};
use aerostat_proto::{AtmEvent, AtmRequest, ConnId, Trace};
use aerostat_wire::{AtmAddress, Qos, Vc};
use std::net::Ipv4Addr;

/// Inputs of [`SocketLayer`](super::SocketLayer).
#[derive(Debug)]
pub enum Input<'a> {
    /// The service starts.
    Start,
    /// From the ATM service, with what the other end says.
    Atm(AtmEvent<&'a [u8]>, Heard),
    /// A call inside the host can be used: `conn` and `peer` are its ends. Each end gets this once.
    Joined {
        /// This end.
        conn: ConnId,
        /// The other end, a connection of this layer, too.
        peer: ConnId,
        /// The contract, seen from this end.
        qos: Qos,
        /// User data of the other end.
        heard: Heard,
    },
    /// The descriptor of a socket has taken PDUs that were written inside the host ([`ToPrograms::Deliver`]).
    Taken {
        /// The socket.
        socket: SocketRef,
        /// Their number.
        pdus: usize,
        /// Their octets.
        octets: usize,
    },
    /// From the adapter, about PDUs that sockets have written.
    Adapter(FromAdapter),
    /// A request of a program. `shown` is the socket of the descriptor that came with it.
    Request {
        /// The session.
        session: Session,
        /// Number of the request, for its answer.
        number: u16,
        /// The request.
        request: Request,
        /// The socket whose descriptor is attached.
        shown: Option<SocketRef>,
    },
    /// A program asks for the interface ([`Request::Interface`]), of which the adapter has told its part.
    Interface {
        /// The session.
        session: Session,
        /// Number of the request.
        number: u16,
        /// True if the counts of PDUs begin anew afterwards.
        zero_pdus: bool,
        /// True if the counts of cells begin anew afterwards.
        zero_cells: bool,
        /// The interface, with the counts since the host was switched on.
        interface: Box<Interface>,
    },
    /// A program wrote PDUs, at most as many as [`most`](super::SocketLayer::most) tells. Give them only if
    /// [`may_write`](super::SocketLayer::may_write) allows it.
    Write {
        /// The socket.
        socket: SocketRef,
        /// The PDUs.
        sdus: Sdus,
    },
    /// PDUs that a program has written arrived together.
    Received {
        /// Their connection.
        conn: ConnId,
        /// The PDUs.
        sdus: Sdus,
    },
    /// The last copy of a descriptor was closed, and everything that was written has been given.
    Closed {
        /// The socket.
        socket: SocketRef,
    },
    /// PDUs were dropped because the program did not read.
    Unread {
        /// The socket.
        socket: SocketRef,
        /// Their number.
        pdus: u64,
    },
    /// A session has ended.
    Gone {
        /// The session.
        session: Session,
    },
    /// The answer to [`Output::Resolve`].
    Resolved {
        /// The IP address.
        ip: Ipv4Addr,
        /// Its ATM address.
        answer: Result<AtmAddress, Unresolved>,
    },
    /// A part of the host that answers [`Output::Resolve`] has died, with the questions that waited there.
    AskAgain,
}

/// Outputs of [`SocketLayer`](super::SocketLayer).
#[derive(Debug)]
pub enum Output {
    /// To the ATM service, with user data and AAL.
    Atm(AtmRequest, Along),
    /// PDUs for the adapter, on this connection.
    Write(ConnId, Sdus),
    /// Requests [`FromAdapter::Room`] when no cell of this label waits in the adapter any more.
    Flush(Vc),
    /// Asks for the ATM address of an IP address: [`Input::Resolved`].
    Resolve {
        /// The IP address.
        ip: Ipv4Addr,
    },
    /// The addresses that programs have added, with selector 0: for ILMI.
    Addresses(Vec<AtmAddress>),
    /// For programs of the machine.
    Program(ToPrograms),
    /// For the accounts: a PDU of a program of the lab file, or the end of what is known of one of its calls.
    Socket(SocketEvent),
    /// A trace event.
    Trace(Trace),
}

/// Messages of the socket service for programs.
#[derive(Debug, PartialEq, Eq)]
pub enum ToPrograms {
    /// The answer to a request.
    Answer {
        /// The session.
        session: Session,
        /// Number of the request.
        number: u16,
        /// The answer. With [`Answer::Opened`] the descriptor goes along unless the session has shown it.
        answer: Answer,
        /// The socket whose descriptor goes along. It is made now.
        descriptor: Option<SocketRef>,
    },
    /// An offer, for the descriptor of a listener.
    Offer {
        /// The listener.
        socket: SocketRef,
        /// The offer.
        offer: Offer,
    },
    /// PDUs for the descriptor of a socket.
    Deliver {
        /// The socket.
        socket: SocketRef,
        /// The PDUs.
        sdus: Sdus,
        /// True if they were written inside the host: [`Input::Taken`] tells when the descriptor has taken them.
        local: bool,
    },
    /// [`SocketLayer::may_write`](super::SocketLayer::may_write) is true again.
    Room {
        /// The socket.
        socket: SocketRef,
    },
    /// The socket has ended: its descriptor is closed here once everything has been delivered.
    End {
        /// The socket.
        socket: SocketRef,
    },
}
