//! MPOA daemons as processes of their own (`up --split`).
//!
//! ```text
//!   aerostat up --split ── spawns, starts again ──> mpcd of urku     unprivileged; dies with the lab
//!        │  mpcd.sock (SOCK_SEQPACKET, private)  ◄──────┘   ▲
//!        └── Mpc of urku: data plane, caches, calls         └── or started by hand: aerostat mpcd urku
//! ```
//!
//! **Objects and owners.** `Daemons` belongs to the lab's loop: the socket, one seat per host with an MPOA client, the
//! processes that were started. [`serve`] is the whole of such a process: a socket, a clock, signals and the
//! machine [`Mpcd`](aerostat_proto::mpoa::mpc::Mpcd). What they say is [`aerostat_proto::mpoa::split`].
//!
//! **Life.** A daemon that dies is started again: after 0.1 s, then twice as long each time up to 10 s, until one
//! has lived for 10 s. One that ends in good order (SIGTERM) stays away until somebody starts it by hand. SIGHUP
//! starts it again inside its process. Without a daemon a host forwards over LANE. When the lab ends, however it
//! ends, the kernel ends the processes that it started, and the others see their socket close.
//!
//! **Trust.** The socket is open to this user only. A daemon gives up its privileges once it is connected. One
//! that says what cannot be decoded, or that does not read, loses its seat and its process. The lab's loop never
//! waits for a daemon.

mod frames;
mod process;
mod seats;
#[cfg(test)]
mod tests;

pub use process::{End, MpcdError, serve};
pub(crate) use seats::{Daemons, Event};

/// Hidden first argument under which the command becomes a daemon; then come the socket and the node's name.
pub const MPCD_ARGUMENT: &str = "__mpcd";
/// Name of the socket in the directory of a lab.
pub const SOCKET: &str = "mpcd.sock";
