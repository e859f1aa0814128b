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
//! **A role is added** by: its messages and its daemon (see [`aerostat_proto::split`]); the seat of its data half, which a host
//! tells [`HostInput::Daemon`](aerostat_node::host::HostInput::Daemon) and which says
//! [`HostOutput::Daemon`](aerostat_node::host::HostOutput::Daemon); here a line in `ROLES` and one in `program`; and a subcommand
//! that starts one by hand (`cmd/daemon.rs` of the command).
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
mod process;
mod seats;
#[cfg(test)]
mod tests;

use aerostat_lab::model::{LaneServer, Node, NodeKind, Service};
use aerostat_node::signalling::Sigd;
use aerostat_proto::lane::lec::LecDaemon;
use aerostat_proto::lane::server::ServerDaemon;
use aerostat_proto::mpoa::mpc::Mpcd;
pub use aerostat_proto::split::Role;
use aerostat_proto::split::codec::{DecodeError, Field, Message as _};
use aerostat_proto::split::{self, Daemon, Numbered, ProcessInput, ProcessOutput, Signal};
use aerostat_proto::{Instant, Machine};
pub use process::{DaemonError, End, serve};
pub(crate) use seats::{Daemons, Event};

/// Hidden first argument under which the command becomes a daemon; then come its role, the socket and the node's name.
pub const DAEMON_ARGUMENT: &str = "__daemon";
/// Name of the socket in the directory of a lab.
pub const SOCKET: &str = "daemons.sock";

/// What the lab knows of a role.
#[derive(Debug)]
struct RoleInfo {
    role: Role,
    /// The service of the lab file whose crash is that of this process; without one, only the whole node crashes.
    service: Option<Service>,
    /// Whether a node has seats for its daemons.
    has_seat: fn(&Node) -> bool,
}

/// All roles, in the order of `inspect processes`.
const ROLES: &[RoleInfo] = &[
    RoleInfo {
        role: Role::Mpcd,
        service: Some(Service::Mpc),
        has_seat: |node| matches!(&node.kind, NodeKind::Host(host) if host.mpoa.is_some()),
    },
    RoleInfo {
        role: Role::Lecd,
        service: None,
        // Where all interfaces are on Classical IP subnets, it has nothing to do.
        has_seat: |node| !node.lecs().is_empty(),
    },
    RoleInfo {
        role: Role::Lecs,
        service: Some(Service::Lecs),
        // Hosts of standby servers have none.
        has_seat: |node| server(node).is_some_and(|server| server.rank == 0),
    },
    RoleInfo {
        role: Role::Les,
        service: Some(Service::Les),
        has_seat: |node| server(node).is_some(),
    },
    RoleInfo {
        role: Role::Bus,
        service: Some(Service::Bus),
        has_seat: |node| server(node).is_some(),
    },
    RoleInfo {
        role: Role::Sigd,
        service: None,
        has_seat: |node| match &node.kind {
            NodeKind::Host(_) | NodeKind::Router(_) | NodeKind::LaneServer(_) => true,
            NodeKind::Switch(_) | NodeKind::Outside(_) => false,
        },
    },
];

const fn server(node: &Node) -> Option<&LaneServer> {
    match &node.kind {
        NodeKind::LaneServer(server) => Some(server),
        _ => None,
    }
}

/// What a process of this role runs. LES and BUS are two processes, as in linux-atm, though the LES tells the BUS who is a member:
/// their host keeps that.
fn program(role: Role) -> Box<dyn Program> {
    match role {
        Role::Mpcd => Box::<split::Process<Mpcd>>::default(),
        Role::Lecd => Box::<split::Process<LecDaemon>>::default(),
        Role::Lecs | Role::Les | Role::Bus => Box::<split::Process<ServerDaemon>>::default(),
        Role::Sigd => Box::<split::Process<Sigd>>::default(),
    }
}

/// What a program does next.
#[derive(Debug)]
enum Action {
    /// Sends a frame to the lab.
    Send(Vec<u8>),
    /// Ends its process, in good order.
    Exit,
}

/// The daemons of a process, whatever their messages.
trait Program {
    /// A frame of the lab.
    fn frame(&mut self, frame: &[u8], now: Instant) -> Result<(), DecodeError>;
    /// A signal.
    fn signal(&mut self, signal: Signal, now: Instant);
    /// Fires whatever is due.
    fn handle_timeout(&mut self, now: Instant);
    /// When [`Self::handle_timeout`] is next needed.
    fn poll_timeout(&self) -> Option<Instant>;
    /// What it does next.
    fn poll(&mut self) -> Option<Action>;
}

impl<D: Daemon> Program for split::Process<D>
where
    D::To: Field,
    D::From: Field,
{
    fn frame(&mut self, frame: &[u8], now: Instant) -> Result<(), DecodeError> {
        let frame = Numbered::decode(frame)?;
        // Frames and signals are never refused.
        let _ = self.handle_input(ProcessInput::Frame(frame), now);
        Ok(())
    }
    fn signal(&mut self, signal: Signal, now: Instant) {
        let _ = self.handle_input(ProcessInput::Signal(signal), now);
    }
    fn handle_timeout(&mut self, now: Instant) {
        Machine::handle_timeout(self, now);
    }
    fn poll_timeout(&self) -> Option<Instant> {
        Machine::poll_timeout(self)
    }
    fn poll(&mut self) -> Option<Action> {
        Some(match self.poll_output()? {
            ProcessOutput::Frame(frame) => Action::Send(frame.encode()),
            ProcessOutput::Exit => Action::Exit,
        })
    }
}
