//! ATP over ATM sockets: messages of any length, complete and in order, over one call or permanent connection.
//!
//! **Purpose.** The programming interface of ATP, the ATM Transport Protocol, as its report describes it (Z. Yang, *ATP
//! Implementation and Performance*, University of Hawaii, 1999), for programs of a running lab. The protocol itself is
//! [`aerostat_proto::atp`].
//!
//! ```no_run
//! use aerostat_socket::{Service, atp};
//!
//! let service = Service::from_env()?;
//! let options = atp::Options::default();                    // the report's rules, best effort
//! let connection = atp::Connection::connect(&service, "sello/e2", &options)?;
//! connection.send(b"a message of any length")?;             // queues it, and returns
//! if let Some(answer) = connection.recv()? {                // None: the other end has closed
//!     println!("{} octets", answer.len());
//! }
//! connection.close()?;                                      // waits until everything is acknowledged
//! # Ok::<(), aerostat_socket::Error>(())
//! ```
//!
//! **Objects and owners.** A [`Listener`] waits for calls. A [`Connection`] has the machine and the socket of one end.
//! One thread of the process, the engine, serves all connections: it waits for PDUs, timers and room with `epoll`, and
//! a lock gives the machine of a connection to the engine or to the thread that sends. So a thousand connections need
//! one thread, and an idle one costs no time.
//!
//! | the report | here |
//! |---|---|
//! | `InitAtpSocket` with address, QoS, interface | [`Options`]; the interface is the [`Service`] of a host |
//! | `Connect`: the initial round trip is the time of the set-up | [`Connection::connect`]; at most 100 ms |
//! | `AtpBind`, `Listen` | [`Listener::bind`] |
//! | `Accept` | [`Listener::accept`] |
//! | `Send` queues, and returns | [`Connection::send`] |
//! | `Recv` waits for a complete message | [`Connection::recv`], [`Connection::recv_into`] |
//! | `Close` waits until everything is acknowledged | [`Connection::close`] |
//! | three threads for each socket, three semaphores | one thread for all, a lock and a condition for each |
//!
//! **MTU.** The largest SDUs of the contract, in both directions, and [`Params::mtu`] of both ends: the smallest of
//! them. An end that takes less than what the caller offers says so in its answer, and signalling tells the caller.
//! The profile is not negotiated: both ends need the same one.
//!
//! **Bounds.** What waits for transmission ([`Params::send_limit`]): [`Connection::send`] waits then, or returns EAGAIN
//! if the connection is non-blocking. What was not read ([`Params::receive_limit`]): new messages are dropped without
//! an acknowledgement, the window of the other end closes, and after its timers the connection fails there. PDUs that
//! the socket has no room for: 8192, further ones are dropped, counted ([`Stats::unqueued`]), and repeated by ATP. A
//! close: ten timers after the last new acknowledgement.
//!
//! **The end.** A release by the other end is the end of the messages ([`Connection::recv`] returns `None`) if nothing
//! was cut. If messages of this end were not acknowledged, a message was cut, or the network has cleared the call,
//! the error has the cause of Q.850. Complete messages can be read in each case. An end that closes after it has
//! received something keeps the call for a timer and two round trips ([`Options::linger`]), or until the other end
//! releases it, and acknowledges meanwhile what comes again: otherwise the release could overtake the last
//! acknowledgement. A connection that is dropped without a close does the same in the background.
//!
//! **Processes.** The engine does not survive a `fork`: use a connection in the process that has made it.

mod connection;
mod engine;
mod listener;
mod options;
mod state;

pub use aerostat_proto::atp::{Amount, Counters, Failure, Params, Profile, Snapshot, pattern};
pub use connection::{Connection, Stats};
pub use listener::Listener;
pub use options::Options;

#[cfg(doc)]
use crate::Service;
