//! Daemons in processes of their own (`up --split`).
//!
//! ```text
//!   aerostat up --split ── spawns, starts again ──> mpcd of urku     unprivileged; dies with the lab
//!        │  daemons.sock (SOCK_SEQPACKET, private)  ◄──┘   ▲
//!        └── seats: the data planes, the calls             └── or started by hand: aerostat mpcd urku
//! ```
//!
//! **Objects and owners.** `Daemons` belongs to the lab's loop: the socket, one seat per node and [`Role`] that the
//! node has, the processes that were started. [`serve`] is the whole of such a process: a socket, a clock, signals and the
//! role's machine. What they say is [`aerostat_proto::split`]'s and the role's; to a seat here, frames are octets: a
//! queue in, a queue out, and the end.
//!
//! **A role is added** by: its messages and its machine (see [`aerostat_proto::split`]); its seat in the node, which takes
//! an input of [`HostInput`] and says [`HostOutput::Daemon`](aerostat_node::host::HostOutput::Daemon); here one file like
//! `mpcd.rs` with a `Glue` (who has a seat, what its coming, its frames and its going are to the node, what runs in the
//! process), a line in `ROLES`, and a subcommand that starts one by hand (`cmd/daemon.rs` of the command).
//!
//! **Life.** A daemon that dies is started again: after 0.1 s, then twice as long each time up to 10 s, until one
//! has lived for 10 s. One that ends in good order (SIGTERM) stays away until somebody starts it by hand. SIGHUP
//! starts what it does again inside its process. Without mpcd a host forwards over LANE; without lecd it goes on as the
//! member that it is, for ten seconds; without a LES or a BUS its clients join again when it is back; without sigd a node
//! has its permanent connections and no others. When the lab ends, however it
//! ends, the kernel ends the processes that it started, and the others see their socket close.
//!
//! **Trust.** The socket is open to this user only. A daemon gives up its privileges once it is connected. One
//! that says what cannot be decoded, or that does not read, loses its seat and its process. The lab's loop never
//! waits for a daemon.

mod frames;
mod lecd;
mod mpcd;
mod process;
mod seats;
mod servers;
mod sigd;
#[cfg(test)]
mod tests;

use aerostat_lab::model::{Node, Service};
use aerostat_node::host::HostInput;
use aerostat_proto::Instant;
pub use aerostat_proto::split::Role;
use aerostat_proto::split::codec::DecodeError;
pub use process::{DaemonError, End, serve};
pub(crate) use seats::{Daemons, Event};

/// Hidden first argument under which the command becomes a daemon; then come its role, the socket and the node's name.
pub const DAEMON_ARGUMENT: &str = "__daemon";
/// Name of the socket in the directory of a lab.
pub const SOCKET: &str = "daemons.sock";

/// All roles, in the order of `inspect processes`.
const ROLES: &[Glue] = &[
    mpcd::MPCD,
    lecd::LECD,
    servers::LECS,
    servers::LES,
    servers::BUS,
    sigd::SIGD,
];

/// What ties a role's messages to its seat in the node, and its machine to its process.
#[derive(Debug)]
struct Glue {
    role: Role,
    /// The service of the lab file whose crash is that of this process.
    service: Option<Service>,
    /// Whether a node has a seat for it.
    has_seat: fn(&Node) -> bool,
    /// The process is there.
    came: fn() -> HostInput<'static>,
    /// A frame of it.
    said: fn(&[u8]) -> Result<Said, DecodeError>,
    /// The process is gone.
    gone: fn() -> HostInput<'static>,
    /// What it does.
    work: fn() -> Box<dyn Work>,
}

fn glue(role: Role) -> Option<&'static Glue> {
    ROLES.iter().find(|glue| glue.role == role)
}

/// What a frame of a daemon is to its node.
#[derive(Debug)]
struct Said {
    input: HostInput<'static>,
    /// It says that it ends in good order.
    farewell: bool,
}

/// A signal that a daemon does something about.
#[derive(Clone, Copy, Debug)]
enum Signal {
    /// SIGTERM and its like.
    Terminate,
    /// SIGHUP.
    Reload,
}

/// What a daemon does.
#[derive(Debug)]
enum Does {
    /// A frame for the lab.
    Say(Vec<u8>),
    /// Its process ends, in good order.
    Exit,
}

/// The machine in a daemon's process.
trait Work {
    /// A frame of the lab.
    fn hear(&mut self, frame: &[u8], now: Instant) -> Result<(), DecodeError>;
    /// A signal.
    fn signal(&mut self, signal: Signal, now: Instant);
    /// Fires whatever is due.
    fn handle_timeout(&mut self, now: Instant);
    /// When [`Self::handle_timeout`] is next needed.
    fn poll_timeout(&self) -> Option<Instant>;
    /// What it does next.
    fn poll(&mut self, now: Instant) -> Option<Does>;
}
