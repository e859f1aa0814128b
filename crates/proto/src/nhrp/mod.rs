//! NHRP: who is the exit of the ATM network for an address.
//!
//! A station asks along the routed path; the server whose network holds the address (or that routes out of
//! the ATM network) answers with an ATM address, and the asking side opens a shortcut to it. Here are the
//! parts that a next hop server is made of; the machine that drives them is the MPOA server
//! ([`crate::mpoa::mps`]), which owns connections, routes and clients. [`client`] is a machine of its own: a station that
//! registers and asks without MPOA.
//!
//! * [`requests`]: outstanding requests by id, with retries and giving up;
//! * [`cache`]: bindings given and learned until their holding time is over, with the stations that must
//!   be purged when one changes, and the rules for authoritative and unique answers;
//! * [`auth`]: the authentication extension, with a key for each neighbour;
//! * [`transit`]: what a server does to a packet that it forwards or answers: hop count, transit records,
//!   responder address, loops, unknown extensions, copying of extensions.
//!
//! Nothing here owns a timer: tables tell their next deadline and are asked what is due.
//!
//! **Standards.** RFC 2332 (request ids and retries §5.2.0.1; answers §5.2.1, §5.2.2; purges §5.2.5;
//! errors §5.2.7; extensions §5.3); defaults of RFC 2677 are replaced by those of MPOA.
//!
//! **Not implemented.** Server cache synchronisation (RFC 2334, 2335).

pub mod auth;
pub mod cache;
pub mod client;
pub mod requests;
pub mod transit;

pub use cache::{Binding, Cache, Key, Reason};
pub use requests::{Expired, RequestTable, RetryRule};
pub use transit::{Fault, Station};
