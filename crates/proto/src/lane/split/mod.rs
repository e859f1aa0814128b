//! LANE servers in processes of their own: what lecs, les and bus say to the lab's process, and their seats there.
//!
//! **Purpose.** A LECS, a LES or a BUS is a machine that uses the ATM service and nothing else, so it can run wherever its
//! requests and events are carried to. Each is a process of its own, as linux-atm's programs are:
//!
//! ```text
//!   lab's process                                              lecs, les, bus: one process each per host of servers
//!   Away: seat of one server    ── ToServer: Start, Atm ──────► Servers: all LECSs, LESs or BUSs of that host
//!   signalling manager          ◄── FromServer: Atm, Member ──
//! ```
//!
//! **Objects and owners.** [`Away`] stands where the server would stand and owns, as an operating system does for a
//! process, its listeners and connections: they end with the process. [`Servers`] owns the servers in the process. They
//! are told apart by a number that the host chose. Who is a member of an ELAN travels from the LES to its seat, is kept
//! there, and goes on to the seat of the BUS: so a BUS that starts again alone learns it, without the LES.
//!
//! **Life.** Without its process a server's calls are released and new ones are refused, as at a host where nobody listens;
//! LANE clients go back to initial, and join again when the process is back. SIGTERM stops the servers in good order; SIGHUP
//! starts them again, empty.
//!
//! **Timers**: what `inspect` shows is told [`SHOW`] after it changed, at most that often.
//!
//! **Trust.** The seat lets a process listen and call with the server's own addresses alone, and use its own connections,
//! as many as the server's bounds allow; what goes beyond is refused and counted. Only a LES names members, only a BUS those that
//! it reaches.
//!
//! **Standards.** None: the octets are this project's own ([`crate::split`]).
//!
//! **Not implemented**: LECS, LES and BUS of an outside process that is no LANE server of this project.

mod away;
mod codec;
mod process;
#[cfg(test)]
mod tests;

use super::lecs::Elan;
use super::{BusConfig, LecsConfig, LesConfig, Member, bus, les};
use crate::split::Role;
use crate::{AtmEvent, AtmRequest, Duration, Trace};
use aerostat_wire::AtmAddress;
pub use away::{Away, AwayInput, AwayOutput};
pub use process::{Servers, ServersInput, ServersOutput};

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
    fn owns(&self, address: AtmAddress) -> bool {
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

/// To the process.
#[derive(Clone, Debug, PartialEq)]
pub enum ToServer {
    /// One more ELAN for the LECS that is about to start.
    Elan {
        /// Which server.
        server: u16,
        /// The ELAN.
        elan: Box<Elan>,
    },
    /// Serve.
    Start {
        /// Which server.
        server: u16,
        /// As what.
        config: Box<ServerConfig>,
    },
    /// Release everything and stop.
    Stop {
        /// Which server.
        server: u16,
    },
    /// From the ATM service.
    Atm {
        /// Which server.
        server: u16,
        /// The event.
        event: AtmEvent<Vec<u8>>,
    },
    /// Who is a member, to a BUS.
    Member {
        /// Which server.
        server: u16,
        /// See [`bus::Input::Member`].
        address: AtmAddress,
        /// The same.
        member: Option<Member>,
    },
}

impl ToServer {
    /// True for the frame of an SDU: what a server that cannot keep up may lose.
    #[must_use]
    pub fn is_data(frame: &[u8]) -> bool {
        matches!(frame, [0, 3, _, _, 0, 8, ..])
    }
}

/// From the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromServer {
    /// To the ATM service.
    Atm {
        /// Which server.
        server: u16,
        /// The request.
        request: AtmRequest,
    },
    /// Who is a member, from a LES.
    Member {
        /// Which server.
        server: u16,
        /// See [`les::Output::Member`].
        address: AtmAddress,
        /// The same.
        member: Option<Member>,
    },
    /// A client that a BUS reaches, or no longer reaches.
    Reaches {
        /// Which server.
        server: u16,
        /// See [`bus::Output::Reaches`].
        address: AtmAddress,
        /// True if the client is reached.
        reached: bool,
    },
    /// An observation.
    Trace {
        /// Which server.
        server: u16,
        /// The observation.
        trace: Trace,
    },
    /// What there is to see of it.
    Shown {
        /// Which server.
        server: u16,
        /// What.
        seen: Box<ServerSnapshot>,
    },
    /// All servers of the process have stopped in good order.
    Ended {
        /// The process ends; else they are to be started again.
        exits: bool,
    },
}

/// From or about a process, to the host where its servers stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// The process is there.
    Came,
    /// A message of it.
    Said(FromServer),
    /// The process is gone.
    Gone,
}
