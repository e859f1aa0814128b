//! NHRP: resolving an address to the exit of the ATM network for it.
//!
//! A station sends a request along the routed path. The server whose network holds the address (or that routes out of
//! the ATM network) answers with an ATM address, and the requester opens a shortcut to it. This module has the parts of
//! a next hop server. The machine that uses them is the MPOA server ([`crate::mpoa::mps`]), which owns connections,
//! routes and clients. [`client`] is a separate machine: a station that registers and sends requests without MPOA.
//!
//! * [`crate::requests`]: outstanding requests by id, with retries and a time limit;
//! * [`cache`]: bindings that were given and learned, until their holding time is over, with the stations that must be
//!   purged when one changes, and the rules for authoritative and unique answers;
//! * [`auth`]: the authentication extension, with a key for each neighbour;
//! * [`transit`]: what a server does to a packet that it forwards or answers: hop count, transit records, responder
//!   address, loops, unknown extensions, copying of extensions.
//!
//! These parts own no timers: tables tell their next deadline, and what is due.
//!
//! **Standards.** RFC 2332 (request ids and retries §5.2.0.1; answers §5.2.1, §5.2.2; purges §5.2.5;
//! errors §5.2.7; extensions §5.3); defaults of RFC 2677 are replaced by those of MPOA.
//!
//! **Not implemented.** Server cache synchronisation (RFC 2334, 2335).

pub mod auth;
pub mod cache;
pub mod client;
pub mod transit;

pub use crate::requests::{Expired, RequestTable, RetryRule};
pub use cache::{Binding, Cache, Key, Reason};
pub use transit::{Fault, Station};
