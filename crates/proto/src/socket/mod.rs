//! Messages between programs and the socket service of a host.
//!
//! **Purpose.** A program of the machine uses the ATM service of a host of a running lab as it would use sockets of
//! its kernel: it opens, binds, connects, listens and accepts. These messages ask for that. They go over a
//! `SOCK_SEQPACKET` connection to the service, one message in one packet of at most [`MESSAGE_MAX`] octets. Data do
//! not go here: each socket has a descriptor of its own, which the service hands over.
//!
//! **Objects and owners.** A *session* is one connection to the service. A *socket* is an ATM socket; its reference
//! ([`SocketRef`]) is opaque, and is good only in sessions that opened the socket or showed its descriptor
//! ([`Request::Adopt`]). An *offer* is a call that waits for the answer of a listener's program.
//!
//! **Order.** A request has a number of the program's choice. Its answer has the same number. An answer that waits for
//! the network ([`Request::Connect`], [`Request::Accept`]) does not hold up those of later requests. The service sends
//! nothing else here: what happens later is seen at the descriptor of the socket (end of file: the call has ended; a
//! packet at a listener: an [`Offer`]; at the root of a point-to-multipoint call: [`Left`]).
//!
//! **Form.** [`Numbered`](crate::split::Numbered) messages in the form of [`crate::split::codec`]: the number in two
//! octets, the type in two octets, then the fields, big endian; a text is its length in two octets and UTF-8.
//! Addresses, contracts and access points are texts in the syntax of linux-atm (`AtmAddress`, `qos(7)`, `sap(7)`), so a
//! client needs no tables.
//!
//! **Trust.** Nothing in a message is trusted. [`Request`] bounds every text, and `tests.rs` and the fuzz target
//! `decode` feed it with arbitrary octets.
//!
//! **Standards.** No standard. The model is the socket family with a connection manager in user space (Cambridge,
//! 1993) and the sockets of linux-atm.

use crate::{split_choice, split_messages, split_wrapped};
pub use aerostat_wire::q2931::UserData;

/// Version of these messages.
///
/// Version 2: an answer may change the contract of an offer ([`Request::Accept`]); point-to-multipoint calls. Version
/// 3: user data in calls. Version 4: user data of leaves.
pub const VERSION: u16 = 4;
/// Octets of the longest message.
pub const MESSAGE_MAX: usize = 8192;
/// Limit of addresses that programs may add to a host.
pub const ADDED: usize = 32;
/// Limit of addresses in each list of an [`Interface`], and of leaves in [`Answer::Parties`].
pub const ADDRESSES: usize = 64;

/// A reference to a socket: opaque for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SocketRef(pub u64);

/// Requests of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// The first message of a session. Answer: [`Answer::Welcome`].
    Hello {
        /// [`VERSION`].
        version: u16,
    },
    /// Opens a socket. Answer: [`Answer::Opened`] with its descriptor.
    Open,
    /// Gives a socket its own address. Answer: [`Answer::Bound`].
    Bind {
        /// The socket.
        socket: SocketRef,
        /// An address of this host in hex digits; empty: the service takes a free selector.
        address: String,
        /// The calls that a listener wants, as in `sap(7)`; empty: any call.
        sap: String,
    },
    /// Makes a bound socket a listener. Offers come as packets at its descriptor. Answer: [`Answer::Done`].
    Listen {
        /// The socket.
        socket: SocketRef,
        /// Offers that may wait for an answer, 1 to 128.
        backlog: u16,
        /// Largest SDU that a caller may send, octets; 0: 65 535.
        max_sdu: u16,
    },
    /// Makes a call. Answer, when it is known: [`Answer::Connected`] or [`Answer::Failed`].
    Connect {
        /// The socket.
        socket: SocketRef,
        /// Address of the other end in hex digits; or the name of a node of the lab, or an IPv4 address that the host
        /// resolves first, each with an optional selector (`sello`, `sello/e1`, `10.0.0.2`, `10.0.0.2/e1`).
        called: String,
        /// Purpose of the call, as in `sap(7)`; empty: nothing is said.
        sap: String,
        /// The contract, as in `qos(7)`.
        qos: String,
        /// Milliseconds until the call is given up; 0: when the timers of signalling end it.
        timeout: u32,
        /// True for the root of a point-to-multipoint call. Its contract is that of the direction away from the root.
        multipoint: bool,
        /// True if the root's descriptor gets a packet for each leaf that leaves ([`Left`]).
        reports: bool,
        /// User data of the caller for the called side.
        user_data: UserData,
    },
    /// Uses a permanent connection of this host. Answer: [`Answer::Connected`].
    OpenPermanent {
        /// The socket.
        socket: SocketRef,
        /// Its label on the link of the host: `VPI.VCI`.
        label: String,
        /// The contract, as in `qos(7)`.
        qos: String,
    },
    /// Accepts an offer. Answer, when the call can be used: [`Answer::Opened`] with the descriptor of a new socket.
    Accept {
        /// The listener.
        socket: SocketRef,
        /// The offer.
        offer: u32,
        /// The contract of the answer as this end sees it, as in `qos(7)`: smaller SDUs, and a lower rate if the caller
        /// gave a least one ([`crate::atm::answered`]). Empty: as offered.
        qos: String,
        /// User data of the called side for the caller.
        user_data: UserData,
    },
    /// Refuses an offer. Answer: [`Answer::Done`].
    Refuse {
        /// The listener.
        socket: SocketRef,
        /// The offer.
        offer: u32,
        /// Cause of Q.850 for the caller, 1 to 127.
        cause: u8,
        /// User data of the called side for the caller.
        user_data: UserData,
    },
    /// Ends the call of a socket, once what its program has written has left. Answer: [`Answer::Done`].
    Release {
        /// The socket.
        socket: SocketRef,
        /// Cause of Q.850 for the other end, 1 to 127; 16 is normal.
        cause: u8,
        /// User data of this end for the other.
        user_data: UserData,
    },
    /// Asks for the state of a socket. Answer: [`Answer::Status`].
    Status {
        /// The socket.
        socket: SocketRef,
    },
    /// Shows the descriptor of a socket, which is attached. Answer: [`Answer::Opened`] without a descriptor.
    Adopt,
    /// Asks for the names and addresses that can be called. Answer: [`Answer::Names`].
    Names,
    /// Adds a leaf to a point-to-multipoint call. Answer, when it is known: [`Answer::PartyAdded`] or
    /// [`Answer::Failed`].
    AddParty {
        /// The root.
        socket: SocketRef,
        /// The leaf, as in `Connect`.
        called: String,
        /// User data of the root for this leaf.
        user_data: UserData,
    },
    /// Drops a leaf; with the last leaf the call ends. Answer: [`Answer::Done`].
    DropParty {
        /// The root.
        socket: SocketRef,
        /// Number of the leaf; the one of `Connect` has 0.
        party: u16,
    },
    /// Asks for the leaves of a point-to-multipoint call. Answer: [`Answer::Parties`].
    Parties {
        /// The root.
        socket: SocketRef,
        /// The least number.
        from: u16,
    },
    /// Changes the addresses of the ATM interface of the host. Answer: [`Answer::Done`].
    Addresses {
        /// Kind of the change.
        change: Change,
        /// The address in hex digits; empty with [`Change::Reset`].
        address: String,
    },
    /// Asks for the ATM interface of the host. Answer: [`Answer::Interface`].
    Interface {
        /// True if the counts of PDUs begin anew afterwards, for all programs of the host.
        zero_pdus: bool,
        /// The same for the counts of cells.
        zero_cells: bool,
    },
}

/// A change of the addresses of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Programs may listen there from now on. With ILMI the address is registered with the switch.
    Add,
    /// The address that was added goes.
    Remove,
    /// All that were added go.
    Reset,
}

/// Answers of the service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The session has begun.
    Welcome {
        /// [`VERSION`].
        version: u16,
        /// Name of the host.
        host: String,
        /// Its address, with selector 00.
        address: String,
        /// Limit of sockets of the host.
        sockets: u32,
    },
    /// A socket that this session may use from now on.
    Opened {
        /// Its reference.
        socket: SocketRef,
    },
    /// The address of a socket.
    Bound {
        /// In hex digits.
        address: String,
    },
    /// The request is done.
    Done,
    /// The connection can be used.
    Connected {
        /// Its label on the link of the host: `VPI.VCI`.
        label: String,
        /// The contract, as in `qos(7)`.
        qos: String,
        /// User data in the answer of the called side.
        user_data: UserData,
    },
    /// The leaf gets what the root sends from now on.
    PartyAdded {
        /// Its number.
        party: u16,
        /// User data in the answer of the leaf.
        user_data: UserData,
    },
    /// Leaves in the order of their numbers.
    Parties {
        /// At most [`ADDRESSES`].
        parties: Vec<Party>,
        /// Leaves with higher numbers that were left out.
        more: u32,
    },
    /// State of a socket.
    Status(Box<Status>),
    /// Names and addresses.
    Names {
        /// Names of nodes with their addresses, at most 64.
        names: Vec<(String, String)>,
        /// Number of names that were left out.
        more: u32,
    },
    /// The request failed.
    Failed(Failure),
    /// The ATM interface of the host.
    Interface(Interface),
}

crate::split_record! {
    /// Why a request failed.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Failure {
        /// The error number of Linux ([`Errno`]).
        pub errno: u16,
        /// The cause of Q.850, if the network or the other end refused; else 0.
        pub cause: u8,
        /// The field of the request; empty if no field is meant.
        pub field: String,
        /// Offset in the text of this field, from 0.
        pub offset: u16,
        /// The reason, in one sentence.
        pub text: String,
        /// User data of the other end in its refusal.
        pub user_data: UserData,
    }
}

crate::split_record! {
    /// The ATM interface of a host: what its adapter, its signalling and its ILMI know.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct Interface {
        /// End system identifier of the adapter.
        pub esi: [u8; 6],
        /// Addresses at which the host can be called, with selector 00, in hex digits; the host's own first. At most
        /// [`ADDRESSES`].
        pub addresses: Vec<String>,
        /// LECSs that ILMI has found, in hex digits. At most [`ADDRESSES`].
        pub lecs: Vec<String>,
        /// Addresses that were left out of both lists.
        pub more: u32,
        /// Rate of the link, cells per second.
        pub rate: u32,
        /// True if signalling is up on the link.
        pub up: bool,
        /// Bits of VPI and VCI that permanent connections of programs may use.
        pub label_bits: (u8, u8),
        /// Single cells of programs.
        pub aal0: PduCounts,
        /// PDUs of AAL5, those of signalling and ILMI among them.
        pub aal5: PduCounts,
        /// Cells sent to the link.
        pub cells_sent: u64,
        /// Cells that came from the link.
        pub cells_received: u64,
    }
}

crate::split_record! {
    /// PDUs of an AAL, since the host was switched on, or since they were set to 0.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct PduCounts {
        /// Sent.
        pub sent: u64,
        /// Not sent, because their connection was closed meanwhile.
        pub not_sent: u64,
        /// Received.
        pub received: u64,
        /// Received with cells missing or damaged.
        pub damaged: u64,
    }
}

crate::split_record! {
    /// State of a socket.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct Status {
        /// `idle`, `bound`, `listening`, `resolving`, `connecting`, `accepting`, `connected`, `ending` or `ended`.
        pub state: String,
        /// Own address in hex digits; empty if the socket has no address.
        pub local: String,
        /// Address of the other end in hex digits; the IP address while its ATM address is not known; empty if nothing
        /// is known.
        pub peer: String,
        /// Purpose of the call, as in `sap(7)`.
        pub sap: String,
        /// The contract, as in `qos(7)`.
        pub qos: String,
        /// Label on the link of the host; empty if there is no label.
        pub label: String,
        /// Cause of the end; 0 before the end.
        pub cause: u8,
        /// The end in words; empty before the end.
        pub why: String,
        /// PDUs that its program has sent, and their octets.
        pub sent: (u64, u64),
        /// PDUs that were refused: longer than the contract allows, or on a connection that does not send.
        pub refused: u64,
        /// PDUs of `sent` that were dropped here, because the call ended or the link went down before they left.
        pub unsent: u64,
        /// PDUs that arrived, and their octets.
        pub received: (u64, u64),
        /// PDUs of `received` that were dropped, because the program did not read.
        pub unread: u64,
        /// PDUs that arrived with cells missing or damaged.
        pub damaged: u64,
        /// Offers that wait for an answer.
        pub offers: u16,
        /// Calls for this listener that were refused for want of an answer or of room.
        pub missed: u64,
        /// Leaves that get what this root of a point-to-multipoint call sends.
        pub leaves: u16,
        /// Latest user data of the other end: in its call, answer or release.
        pub user_data: UserData,
    }
}

crate::split_record! {
    /// A leaf of a point-to-multipoint call.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Party {
        /// Its number.
        pub party: u16,
        /// Its address in hex digits.
        pub called: String,
        /// False until it has answered.
        pub active: bool,
    }
}

crate::split_record! {
    /// A leaf has left, or its path has failed: one packet at the root's descriptor.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Left {
        /// Its number.
        pub party: u16,
        /// Cause of Q.850.
        pub cause: u8,
    }
}

crate::split_record! {
    /// A call that waits for the answer of a listener's program: one packet at the listener's descriptor.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Offer {
        /// Its number, for [`Request::Accept`] and [`Request::Refuse`].
        pub offer: u32,
        /// Address of the caller in hex digits; empty if the caller gave none.
        pub caller: String,
        /// The address that was called.
        pub called: String,
        /// Purpose of the call, as in `sap(7)`.
        pub sap: String,
        /// The contract as this end sees it, as in `qos(7)`.
        pub qos: String,
        /// True if this end would be a leaf of a point-to-multipoint call, which cannot send.
        pub multipoint: bool,
        /// User data of the caller.
        pub user_data: UserData,
    }
}

/// Error numbers of Linux, as far as the service uses them. Source: asm-generic/errno-base.h, asm-generic/errno.h.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Errno {
    /// There is no such address.
    NoEntry = 2,
    /// The reference or the offer does not exist, or is not this session's.
    BadDescriptor = 9,
    /// No room: too many sockets, or calls.
    NoMemory = 12,
    /// The program belongs to a user who may not use the service.
    NotAllowed = 13,
    /// The address is there already.
    Exists = 17,
    /// A text cannot be parsed, or a value is out of range.
    Invalid = 22,
    /// No descriptor is free.
    TooManyFiles = 24,
    /// The service does not have this.
    NotSupported = 95,
    /// Another socket has this address and access point.
    AddressInUse = 98,
    /// This host does not have the address.
    AddressNotAvailable = 99,
    /// Signalling is out of order.
    NetworkDown = 100,
    /// There is no route to the address.
    NetworkUnreachable = 101,
    /// The call ended while it was made.
    ConnectionReset = 104,
    /// The socket is in use already.
    IsConnected = 106,
    /// The socket is in no state for this.
    NotConnected = 107,
    /// No answer in time.
    TimedOut = 110,
    /// The other end, or the network, refused.
    Refused = 111,
    /// The other end is off.
    HostUnreachable = 113,
}

impl SocketRef {
    /// For the entry `index` of a table, in its use number `generation`.
    #[must_use]
    pub const fn of(index: u32, generation: u32) -> Self {
        Self((generation as u64) << 32 | index as u64)
    }
    /// The index of the entry.
    #[must_use]
    pub const fn index(self) -> usize {
        (self.0 & 0xffff_ffff) as usize
    }
    /// The number of the use.
    #[must_use]
    pub const fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

split_wrapped!(SocketRef);
split_choice!(Request {
    1 Hello { version };
    2 Open;
    3 Bind { socket, address, sap };
    4 Listen { socket, backlog, max_sdu };
    5 Connect { socket, called, sap, qos, timeout, multipoint, reports, user_data };
    6 OpenPermanent { socket, label, qos };
    7 Accept { socket, offer, qos, user_data };
    8 Refuse { socket, offer, cause, user_data };
    9 Release { socket, cause, user_data };
    10 Status { socket };
    11 Adopt;
    12 Names;
    13 Interface { zero_pdus, zero_cells };
    14 AddParty { socket, called, user_data };
    15 DropParty { socket, party };
    16 Parties { socket, from };
    17 Addresses { change, address };
});
split_choice!(Change { 1 Add; 2 Remove; 3 Reset; });
split_choice!(Answer {
    0x101 Welcome { version, host, address, sockets };
    0x102 Opened { socket };
    0x103 Bound { address };
    0x104 Done;
    0x105 Connected { label, qos, user_data };
    0x106 Status(status);
    0x107 Names { names, more };
    0x108 Failed(failure);
    0x109 Interface(interface);
    0x10a PartyAdded { party, user_data };
    0x10b Parties { parties, more };
});
split_messages!(Left);
split_messages!(Offer);

#[cfg(test)]
mod tests;
