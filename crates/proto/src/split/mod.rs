//! Daemons: the control halves of clients, of servers and of signalling, and their messages to and from the data
//! halves.
//!
//! **Purpose.** On a Linux host mpcd, zeppelin, atmsigd, lecs, les and bus are processes beside the kernel. In this
//! program each of them is a daemon beside its data half, and the two exchange only typed messages. The daemon runs in
//! the process of its data half. With `up --split` it runs in a process of its own, and the messages go through a
//! socket. This module has what all daemons have in common.
//!
//! **Objects and owners.** A [`Daemon`] is the control half. The data half owns a [`Seat`], which has the duties of an
//! operating system for the daemon: it knows the daemon's listeners and connections, grants its requests, and releases
//! everything when the daemon ends. A [`Process`] owns all daemons of one role at a node. On a socket, each side first
//! sends a [`Greeting`]; the daemon's names the node and the [`Role`]. Each further frame is one message ([`ToDaemon`],
//! [`FromDaemon`]) with the number of its daemon ([`Numbered`]), encoded by [`codec`]. The live driver owns the socket
//! and starts the processes. It puts several frames into one packet of the socket where they wait together.
//!
//! **Trust.** Neither side trusts the other. A frame that cannot be decoded ends the connection. A request about an
//! object of somebody else is refused and counted ([`SeatCounters`]). A trace has only names that the program knows
//! ([`names`]).
//!
//! **A role is added** by: a line in [`Role`] (here and in `codec.rs`), its two types of messages with
//! [`split_choice!`](crate::split_choice) and [`split_record!`](crate::split_record) (in whatever crate the types are),
//! its list in [`names`], a [`Daemon`], a data half with a [`Seat`], and a test with `message_properties!` of
//! `aerostat-testing` for both types. The rest is in the essay of `aerostat_live::daemons`.
//!
//! **Bounds.** A frame has at most [`FRAME_MAX`] octets. [`Early::MOST`] SDUs of a connection wait until the data half
//! can use the connection. The live driver bounds what waits for a process that does not read.
//!
//! **Standards.** None: the encoding is this project's own, and both ends have the same version.

pub mod codec;
mod daemon;
pub mod names;
mod seat;
#[cfg(test)]
pub(crate) mod tests;

pub use daemon::{
    Daemon, Ended, FromDaemon, Numbered, Process, ProcessEvent, ProcessInput, ProcessOutput,
    Signal, ToDaemon,
};
pub use seat::{Early, Handle, Rights, Seat, SeatCounters};

aerostat_wire::named! {
    /// The purpose of a daemon.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Role {
        /// The MPOA client's daemon: [`crate::mpoa::split`].
        Mpcd = "mpcd",
        /// The control parts of LANE clients: [`crate::lane::lec::split`].
        Lecd = "lecd",
        /// LANE configuration servers: [`crate::lane::server`].
        Lecs = "lecs",
        /// LAN emulation servers.
        Les = "les",
        /// Broadcast and unknown servers.
        Bus = "bus",
        /// The signalling daemon: [`crate::sigd`].
        Sigd = "sigd",
        /// The ILMI daemon: [`crate::ilmi::split`].
        Ilmid = "ilmid",
        /// MPOA servers: [`crate::mpoa::mps::split`].
        Mpsd = "mpsd",
    }
}

/// Version of the messages. Ends of different versions close their connection.
pub const VERSION: u16 = 15;
/// Octets of the longest frame: an SDU of 65 535 octets with its header fields.
pub const FRAME_MAX: usize = 65_535 + 64;

/// First frame of a connection, in each direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Greeting {
    /// From the daemon: it asks to serve this node.
    Hello {
        /// [`VERSION`] of the daemon.
        version: u16,
        /// The role that it asks for.
        role: Role,
        /// Name of the node.
        node: String,
    },
    /// From the lab: the daemon is accepted.
    Welcome {
        /// [`VERSION`] of the lab.
        version: u16,
    },
    /// From the lab: the daemon is refused, with the reason.
    Refused(String),
    /// From the daemon, once it is accepted, before any other frame: it has given up its rights. What it may still do,
    /// in words, because the system refused to take it away.
    Confined(Vec<String>),
}
