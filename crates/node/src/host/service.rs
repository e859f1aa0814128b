//! The services of a host: each is a machine that uses the ATM service, in a slot of its own.
//!
//! A slot never changes the type of its machine. The host keeps each slot with this type ([`Typed`]), and can give only
//! inputs of this machine to the slot. What all machines have in common goes through [`Service`].

use super::sockets::{self, SocketLayer};
use aerostat_proto::clip::{self, Clip};
use aerostat_proto::discard::Discard;
use aerostat_proto::lane::{LaneServer, Lec, lec, server};
use aerostat_proto::line::{self, Line};
use aerostat_proto::mpoa::{Mpc, Mps, mpc, mps};
use aerostat_proto::nhrp::client::{self, Nhc};
use aerostat_proto::split::Role;
use aerostat_proto::{AtmEvent, AtmUser, Instant, Machine, Refused};
use aerostat_wire::AtmAddress;
use core::fmt;
use core::marker::PhantomData;

aerostat_wire::named! {
    /// Kinds of services, by their usual names.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum ServiceKind {
        /// LANE client.
        Lec = "lec",
        /// LANE server.
        Les = "les",
        /// Broadcast and unknown server.
        Bus = "bus",
        /// LANE configuration server.
        Lecs = "lecs",
        /// MPOA client.
        Mpc = "mpc",
        /// MPOA server, with its NHRP server.
        Mps = "mps",
        /// Member of a Classical IP subnet, optionally with its ATMARP server.
        Clip = "clip",
        /// One end of an ATM line.
        Line = "line",
        /// NHRP client of a member of a Classical IP subnet.
        Nhc = "nhc",
        /// ATM sockets of programs.
        Sockets = "sockets",
    }
}

/// A slot whose machine is an `M`, whether it runs or has crashed.
pub struct Typed<M> {
    slot: usize,
    machine: PhantomData<fn() -> M>,
}

impl<M> Typed<M> {
    /// Only for a slot that was made for an `M`.
    pub(super) const fn new(slot: usize) -> Self {
        let machine = PhantomData;
        Self { slot, machine }
    }
    /// The number of the slot in its host.
    #[must_use]
    pub const fn slot(self) -> usize {
        self.slot
    }
}

impl<M> Clone for Typed<M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M> Copy for Typed<M> {}

impl<M> fmt::Debug for Typed<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "slot {}", self.slot)
    }
}

/// A machine that can be a service of a host.
pub trait Serves: AtmUser + Into<Service> {
    /// The machine of a service; `None` for a machine of another type.
    fn of(service: &Service) -> Option<&Self>;
    /// The same, to change it.
    fn of_mut(service: &mut Service) -> Option<&mut Self>;
}

/// Makes a service from its configuration; the argument counts the starts, from 0.
pub(super) type Factory = Box<dyn Fn(u32) -> Service + Send>;

/// The list of all machines: the two enums over them, and what is the same for each of them.
macro_rules! services {
    ($($(#[$doc:meta])* $name:ident: $machine:ty, $module:ident;)*) => {
        /// A running service.
        #[allow(
            clippy::large_enum_variant,
            reason = "a host has a handful of them, each in a slot of its own"
        )]
        pub enum Service {
            $($(#[$doc])* $name($machine),)*
        }

        /// An output of a service.
        #[allow(clippy::large_enum_variant, reason = "lives on the stack for one move")]
        pub(super) enum Output {
            $($name(<$machine as Machine>::Output),)*
        }

        impl Service {
            pub(super) fn start(&mut self, now: Instant) -> Result<(), Refused> {
                match self {
                    $(Self::$name(machine) => give(machine, $module::Input::Start, now),)*
                }
            }
            pub(super) fn event(&mut self, event: AtmEvent<&[u8]>, now: Instant) {
                match self {
                    $(Self::$name(machine) => machine.event(event, now),)*
                }
            }
            pub(super) fn handle_timeout(&mut self, now: Instant) {
                match self {
                    $(Self::$name(machine) => machine.handle_timeout(now),)*
                }
            }
            pub(super) fn poll_timeout(&self) -> Option<Instant> {
                match self {
                    $(Self::$name(machine) => machine.poll_timeout(),)*
                }
            }
            pub(super) fn poll_output(&mut self) -> Option<Output> {
                match self {
                    $(Self::$name(machine) => machine.poll_output().map(Output::$name),)*
                }
            }
            pub(super) fn held(&self, see: &mut dyn FnMut(&[u8])) {
                match self {
                    $(Self::$name(machine) => AtmUser::held(machine, see),)*
                }
            }
            pub(super) fn take_discard(&mut self) -> Option<(Discard, Vec<u8>)> {
                match self {
                    $(Self::$name(machine) => AtmUser::take_discard(machine),)*
                }
            }
        }

        $(
            impl From<$machine> for Service {
                fn from(machine: $machine) -> Self {
                    Self::$name(machine)
                }
            }

            impl Serves for $machine {
                fn of(service: &Service) -> Option<&Self> {
                    match service {
                        Service::$name(machine) => Some(machine),
                        _ => None,
                    }
                }
                fn of_mut(service: &mut Service) -> Option<&mut Self> {
                    match service {
                        Service::$name(machine) => Some(machine),
                        _ => None,
                    }
                }
            }
        )*
    };
}

services! {
    /// LANE client.
    Lec: Lec, lec;
    /// LANE server, LANE configuration server, or broadcast and unknown server.
    LaneServer: LaneServer, server;
    /// MPOA client.
    Mpc: Mpc, mpc;
    /// MPOA server.
    Mps: Mps, mps;
    /// Member of a Classical IP subnet.
    Clip: Clip, clip;
    /// One end of an ATM line.
    Line: Line, line;
    /// NHRP client.
    Nhc: Nhc, client;
    /// ATM sockets of programs.
    Sockets: SocketLayer, sockets;
}

fn give<M: Machine>(machine: &mut M, input: M::Input<'_>, now: Instant) -> Result<(), Refused> {
    machine.handle_input(input, now).map_err(Into::into)
}

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
            Self::Line(_) => ServiceKind::Line,
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
            Self::Line(machine) => machine.set_prefix(prefix),
            Self::Nhc(machine) => machine.set_prefix(prefix),
            // Servers and routers have addresses of their own, which others must know in advance.
            Self::LaneServer(_) | Self::Mps(_) => {}
            // Inside a lab this changes nothing: its file has the addresses that ILMI assigns.
            Self::Sockets(machine) => machine.set_prefix(prefix),
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
