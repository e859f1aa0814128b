//! LANE servers as a host has them: a LECS, a LES or a BUS behind its seat.
//!
//! **Purpose.** A LECS, a LES or a BUS is a machine that uses the ATM service and nothing else, so it can run wherever its
//! requests and events are carried to: beside its seat, or with `--split` in a process of its own, as linux-atm's programs are.
//!
//! ```text
//!   host                                                       lecs, les, bus: one process each per host of servers
//!   LaneServer: seat of one server  ── ToServer, AtmEvent ───► ServerDaemon: the LECS, LES or BUS
//!   signalling manager              ◄── FromServer, AtmRequest ──
//! ```
//!
//! **Objects and owners.** [`LaneServer`] is what a host has: it owns, as an operating system does for a process, the server's
//! listeners and connections ([`Seat`]). [`ServerDaemon`] owns the server. Who is a member of an ELAN travels from the LES to its
//! seat, is kept there, and goes on to the seat of the BUS: so a BUS that starts again alone learns it, without the LES.
//!
//! **Life.** Without its process a server's calls are released and new ones are refused, as at a host where nobody listens;
//! LANE clients go back to initial, and join again when the process is back. SIGTERM stops the servers in good order; SIGHUP
//! starts them again, empty.
//!
//! **Timers**: in a process of its own, what `inspect` shows is told [`SHOW`] after it changed, at most that often.
//!
//! **Trust.** The seat lets a server listen and call with the server's own addresses alone, and use its own connections,
//! as many as the server's bounds allow; what goes beyond is refused and counted. Only a LES names members, only a BUS those that
//! it reaches.
//!
//! **Standards.** None: the octets are this project's own ([`crate::split`]).
//!
//! **Not implemented**: LECS, LES and BUS of an outside process that is no LANE server of this project.

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

/// How old what `inspect` shows of a server in a process may be.
pub const SHOW: Duration = Duration::from_millis(200);

/// What a server is told before it starts.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerConfig {
    /// LANE configuration server; its ELANs travel one by one ([`ToServer::Elan`]).
    Lecs(LecsConfig),
    /// LAN emulation server.
    Les(LesConfig),
    /// Broadcast and unknown server.
    Bus(BusConfig),
}

impl ServerConfig {
    /// Whose process runs it.
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
    /// Most clients.
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
    /// Serve as this.
    Start(Box<ServerConfig>),
    /// Release everything and stop.
    Stop,
    /// Who is a member, to a BUS; see [`bus::Input::Member`].
    Member {
        /// ATM address of the client.
        address: AtmAddress,
        /// What the BUS needs to know of it; `None` if it is no longer a member.
        member: Option<Member>,
    },
}

/// From a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromServer {
    /// Who is a member, from a LES; see [`les::Output::Member`].
    Member {
        /// ATM address of the client.
        address: AtmAddress,
        /// What the BUS needs to know of it; `None` if it is no longer a member.
        member: Option<Member>,
    },
    /// What there is to see of it.
    Shown(Box<ServerSnapshot>),
    /// A client that a BUS reaches, or no longer reaches.
    Reaches {
        /// See [`bus::Output::Reaches`].
        address: AtmAddress,
        /// True if the client is reached.
        reached: bool,
    },
}
