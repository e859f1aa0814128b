//! The services of a host: each is a machine that uses the ATM service.

use super::sockets::Sockets;
use aerostat_proto::clip::Clip;
use aerostat_proto::lane::{LaneServer, Lec};
use aerostat_proto::mpoa::{Mpc, Mps};
use aerostat_proto::nhrp::client::Nhc;
use aerostat_proto::split::Role;
use aerostat_proto::{Instant, Machine};
use aerostat_wire::AtmAddress;
use core::fmt;

/// Kinds of services, by their usual names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ServiceKind {
    /// LANE client.
    Lec,
    /// LANE server.
    Les,
    /// Broadcast and unknown server.
    Bus,
    /// LANE configuration server.
    Lecs,
    /// MPOA client.
    Mpc,
    /// MPOA server, with its NHRP server.
    Mps,
    /// Member of a Classical IP subnet, optionally with its ATMARP server.
    Clip,
    /// NHRP client of a member of a Classical IP subnet.
    Nhc,
    /// Socket programs.
    Sockets,
}

impl ServiceKind {
    /// The name that people use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lec => "lec",
            Self::Les => "les",
            Self::Bus => "bus",
            Self::Lecs => "lecs",
            Self::Mpc => "mpc",
            Self::Mps => "mps",
            Self::Clip => "clip",
            Self::Nhc => "nhc",
            Self::Sockets => "sockets",
        }
    }
}

impl fmt::Display for ServiceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A running service.
#[allow(
    clippy::large_enum_variant,
    reason = "a host has a handful of them, each in a slot of its own"
)]
pub enum Service {
    /// LANE client.
    Lec(Lec),
    /// LANE server, LANE configuration server, or broadcast and unknown server.
    LaneServer(LaneServer),
    /// MPOA client.
    Mpc(Mpc),
    /// MPOA server.
    Mps(Mps),
    /// Member of a Classical IP subnet.
    Clip(Clip),
    /// NHRP client.
    Nhc(Nhc),
    /// Socket programs.
    Sockets(Sockets),
}

/// Makes a service from its configuration; the argument counts the starts, from 0.
pub type Factory = Box<dyn Fn(u32) -> Service + Send>;

impl Service {
    /// The kind of the service.
    #[must_use]
    pub const fn kind(&self) -> ServiceKind {
        match self {
            Self::Lec(_) => ServiceKind::Lec,
            Self::LaneServer(server) => kind_of(server),
            Self::Mpc(_) => ServiceKind::Mpc,
            Self::Mps(_) => ServiceKind::Mps,
            Self::Clip(_) => ServiceKind::Clip,
            Self::Nhc(_) => ServiceKind::Nhc,
            Self::Sockets(_) => ServiceKind::Sockets,
        }
    }
    /// Sets the host's place in the network, as learnt by ILMI. The prefix may change only before the service starts.
    pub(super) fn set_network(&mut self, prefix: [u8; 13], lecs: Option<AtmAddress>) {
        match self {
            Self::Lec(machine) => machine.set_network(prefix, lecs),
            Self::Mpc(machine) => machine.set_prefix(prefix),
            Self::Clip(machine) => machine.set_prefix(prefix),
            Self::Nhc(machine) => machine.set_prefix(prefix),
            // Servers and routers have addresses of their own, which others must know in advance.
            Self::LaneServer(_) | Self::Mps(_) => {}
            // Programs use the addresses of the lab file, which are those that ILMI assigns.
            Self::Sockets(_) => {}
        }
    }
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        match self {
            Self::Lec(machine) => machine.handle_timeout(now),
            Self::LaneServer(machine) => machine.handle_timeout(now),
            Self::Mpc(machine) => machine.handle_timeout(now),
            Self::Mps(machine) => machine.handle_timeout(now),
            Self::Clip(machine) => machine.handle_timeout(now),
            Self::Nhc(machine) => machine.handle_timeout(now),
            Self::Sockets(machine) => machine.handle_timeout(now),
        }
    }
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::Lec(machine) => machine.poll_timeout(),
            Self::LaneServer(machine) => machine.poll_timeout(),
            Self::Mpc(machine) => machine.poll_timeout(),
            Self::Mps(machine) => machine.poll_timeout(),
            Self::Clip(machine) => machine.poll_timeout(),
            Self::Nhc(machine) => machine.poll_timeout(),
            Self::Sockets(machine) => machine.poll_timeout(),
        }
    }
}

const fn kind_of(server: &LaneServer) -> ServiceKind {
    match server.role() {
        Role::Lecs => ServiceKind::Lecs,
        Role::Les => ServiceKind::Les,
        // A LANE server has no other role.
        _ => ServiceKind::Bus,
    }
}
