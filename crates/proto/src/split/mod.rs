//! Daemons in processes of their own: their messages to and from the lab's process, and the encoding of these messages.
//!
//! **Purpose.** On a Linux host mpcd, zeppelin, atmsigd, lecs, les and bus are processes beside the kernel; `up
//! --split` makes the same of this program's machines. A daemon is a machine that runs in a process of its own; its
//! *seat* is the machine in the lab's process that stands where the whole one would stand. Here is what all daemons
//! have in common.
//!
//! **Objects and owners.** A [`Daemon`] is the control half of a client, of a server or of a host's signalling;
//! [`Seat`] is what its data half has of it, and [`Process`] is several of them in a process of their own. A connection
//! begins with a [`Greeting`] each way, which names the node and the [`Role`]; then a frame is one message,
//! [`ToDaemon`] or [`FromDaemon`] with the number of its daemon, in the form of [`codec`]. The socket and the processes
//! are the live driver's.
//!
//! **What all roles share.** Calls belong to a daemon as its sockets would: the seat releases them when it is gone.
//! Neither side trusts the other: a frame that cannot be decoded ends the connection, a request about something that is
//! not the daemon's is refused and counted. Traces keep the words of the program ([`names`]).
//!
//! **A role is added** by: a line in [`Role`] (here and in `codec.rs`), its two types of messages with
//! [`split_choice!`](crate::split_choice) and [`split_record!`](crate::split_record) (in whatever crate the types are),
//! its list in [`names`], a [`Daemon`], a data half with a [`Seat`], and a test that calls [`testing::survives`] for
//! both types. The rest is in the essay of `aerostat_live::daemons`.
//!
//! **Bounds.** A frame has at most [`FRAME_MAX`] octets.
//!
//! **Standards.** None: the encoding is this project's own, and both ends have the same version.

pub mod codec;
mod daemon;
pub mod names;
mod seat;
pub mod testing;
#[cfg(test)]
mod tests;

use core::fmt;
pub use daemon::{
    Daemon, Ended, FromDaemon, Numbered, Process, ProcessEvent, ProcessInput, ProcessOutput,
    Signal, ToDaemon,
};
pub use seat::{Early, Handle, Rights, Seat, SeatCounters};
pub use testing::Random;

/// The purpose of a daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// The MPOA client's daemon: [`crate::mpoa::split`].
    Mpcd,
    /// The control parts of LANE clients: [`crate::lane::lec::split`].
    Lecd,
    /// LANE configuration servers: [`crate::lane::server`].
    Lecs,
    /// LAN emulation servers.
    Les,
    /// Broadcast and unknown servers.
    Bus,
    /// The signalling manager: [`crate::sigd`].
    Sigd,
}

impl Role {
    /// All roles.
    pub const ALL: [Self; 6] = [
        Self::Mpcd,
        Self::Lecd,
        Self::Lecs,
        Self::Les,
        Self::Bus,
        Self::Sigd,
    ];

    /// The name of the process for users.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mpcd => "mpcd",
            Self::Lecd => "lecd",
            Self::Lecs => "lecs",
            Self::Les => "les",
            Self::Bus => "bus",
            Self::Sigd => "sigd",
        }
    }
    /// The role of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.name() == name)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Version of the messages. Ends of different versions close their connection.
pub const VERSION: u16 = 7;
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
}
