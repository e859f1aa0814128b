//! LANE servers in a host: a LECS, a LES or a BUS behind its seat.
//!
//! **Purpose.** A LECS, a LES or a BUS is a machine that uses only the ATM service, so it can run wherever its requests
//! and events are carried to: beside its seat, or with `--split` in a process of its own, as linux-atm's programs do.
//!
//! ```text
//!   host                                                       lecs, les, bus: one process each per host of servers
//!   LaneServer: seat of one server  ── ToServer, AtmEvent ───► ServerDaemon: the LECS, LES or BUS
//!   signalling of the host          ◄── FromServer, AtmRequest ──
//! ```
//!
//! **Objects and owners.** [`LaneServer`] is what a host has: it owns, as an operating system does for a process, the
//! server's listeners and connections ([`Seat`](crate::split::Seat)). [`ServerDaemon`] owns the server. The LES reports
//! the members of an ELAN to its seat, which stores them and passes them to the seat of the BUS. So a BUS that restarts
//! alone learns the members without the LES.
//!
//! **Life.** Without its process a server's calls are released and new ones are refused, as at a host without a
//! listener. LANE clients go back to the initial state, and join again when the process is back. SIGTERM stops the
//! servers regularly; SIGHUP starts them again, without state.
//!
//! **Timers**: in a process of its own, the state for `inspect` is reported [`SHOW`] after a change, at most that
//! often.
//!
//! **Bounds.** The seat stores the addresses of as many members as the server may have clients, and two connections for
//! each client, with some for calls that are being set up. A report that does not fit a frame loses rows. Members and
//! ELANs are sent one by one, so that each fits a frame.
//!
//! **Trust.** The seat lets a server listen and call only with the server's own addresses, and use only its own
//! connections, within the server's bounds; other requests are refused and counted. Only a LES may name members; only a
//! BUS may report which clients it reaches.
//!
//! **Standards.** None: the encoding is this project's own ([`crate::split`]).
//!
//! **Not implemented**: servers of other programs (such as linux-atm's `les`) as the process behind a seat. They take
//! part as stations of their own, over a link.

mod codec;
mod daemon;
mod seat;
#[cfg(test)]
mod tests;

use super::lecs::Elan;
use super::{BusConfig, LecsConfig, LesConfig, Member, bus, les};
use crate::Duration;
use crate::split::Role;
use aerostat_wire::AtmAddress;
pub use daemon::ServerDaemon;
pub use seat::{Input, LaneServer, Output};

/// Largest age of the state that `inspect` shows of a server in a process.
pub const SHOW: Duration = Duration::from_millis(200);

/// Configuration of a server before its start.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerConfig {
    /// LANE configuration server; its ELANs are sent one by one ([`ToServer::Elan`]).
    Lecs(LecsConfig),
    /// LAN emulation server.
    Les(LesConfig),
    /// Broadcast and unknown server.
    Bus(BusConfig),
}

impl ServerConfig {
    /// The role whose process runs the server.
    #[must_use]
    pub const fn role(&self) -> Role {
        match self {
            Self::Lecs(_) => Role::Lecs,
            Self::Les(_) => Role::Les,
            Self::Bus(_) => Role::Bus,
        }
    }
    fn is_own(&self, address: AtmAddress) -> bool {
        match self {
            Self::Lecs(lecs) => {
                let well_known = [AtmAddress::LECS_ANYCAST, AtmAddress::LECS];
                address == lecs.address || (lecs.well_known && well_known.contains(&address))
            }
            Self::Les(les) => address == les.address,
            Self::Bus(bus) => address == bus.address,
        }
    }
    /// Largest number of clients.
    const fn clients(&self) -> usize {
        match self {
            Self::Lecs(lecs) => lecs.params.clients,
            Self::Les(les) => les.params.clients,
            Self::Bus(bus) => bus.params.clients,
        }
    }
}

/// A server, seen from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerSnapshot {
    /// LAN emulation server.
    Les(les::LesSnapshot),
    /// Broadcast and unknown server.
    Bus(bus::BusSnapshot),
}

/// To a server.
#[derive(Clone, Debug, PartialEq)]
pub enum ToServer {
    /// One more ELAN for the LECS that is about to start.
    Elan(Box<Elan>),
    /// Start as this server.
    Start(Box<ServerConfig>),
    /// Release everything and stop.
    Stop,
    /// A member, for a BUS; see [`bus::Input::Member`].
    Member {
        /// ATM address of the client.
        address: AtmAddress,
        /// The client's data for the BUS; `None` if it is no longer a member.
        member: Option<Member>,
    },
}

/// From a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromServer {
    /// A member, from a LES; see [`les::Output::Member`].
    Member {
        /// ATM address of the client.
        address: AtmAddress,
        /// The client's data for the BUS; `None` if it is no longer a member.
        member: Option<Member>,
    },
    /// The state of the server for display.
    Shown(Box<ServerSnapshot>),
    /// A client that a BUS reaches, or no longer reaches.
    Reaches {
        /// See [`bus::Output::Reaches`].
        address: AtmAddress,
        /// True if the client is reached.
        reached: bool,
    },
}
