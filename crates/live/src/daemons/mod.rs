//! Daemons in processes of their own (`up --split`).
//!
//! ```text
//!   aerostat up --split ── spawns, starts again ──> mpcd of urku     unprivileged; dies with the lab
//!        │  daemons.sock (SOCK_SEQPACKET, private)  ◄──┘   ▲
//!        └── seats: the data planes, the calls             └── or started by hand: aerostat mpcd urku
//! ```
//!
//! **Objects and owners.** `Daemons` belongs to the lab's loop: it has the socket, one seat per node and [`Role`] of
//! the node, and the processes that were started. [`serve`] is the whole of such a process: a socket, a clock, signals
//! and the role's machine. [`aerostat_proto::split`] and the role define the messages. For a seat in this module,
//! frames are octets: it has a queue in, a queue out, and the end.
//!
//! **A role is added** by: its messages and its daemon (see [`aerostat_proto::split`]); the seat of its data half, with
//! the input [`HostInput::Daemon`](aerostat_node::host::HostInput::Daemon) and the event
//! [`HostEvent::Daemon`](aerostat_node::host::HostEvent::Daemon); in this module a line in `ROLES` and a line in
//! `program`; and a subcommand by which a user starts such a daemon (`cmd/daemon.rs` of the command).
//!
//! **Life.** A daemon that dies is started again: after 0.1 s, then after doubled waits up to 10 s, until a daemon has
//! lived for 10 s. A daemon that ends regularly (SIGTERM) is not started again until a user starts it. SIGHUP restarts
//! its work inside its process. A daemon that hangs is found by its heartbeat (`beat`), killed and started again like a
//! daemon that died; a daemon that a user started only loses its seat. Without mpcd a host forwards over LANE. Without
//! lecd it remains a member for ten seconds. Without a LES or a BUS its clients join again when the server is back.
//! Without mpsd a router has no MPOA: its shortcuts end, and LANE carries their packets. Without sigd a node has only
//! its permanent connections. Without ilmid addresses stay as they are. When the lab ends, for whatever reason, the
//! kernel ends the processes that the lab started, and the others see that their socket closes.
//!
//! **Cost.** A turn touches only seats with an event; the tick of the heartbeat, 20 times a second, checks the silence
//! of all seats. Up to 800 daemons are asked every 0.4 s each while they have work, and every 0.8 s while they are
//! quiet; more daemons share 2000 questions a second. A tick has whole questions, so 10 daemons with work get 40 a
//! second. Each of 10 000 daemons is asked every 5 s: there a hung daemon is found within 7 s, if it gets its processor
//! time. For each question the lab makes three system calls, and the daemon three. All frames that wait for a daemon
//! together, or that it says together, are one packet (`batch`).
//!
//! **Trust.** Only this user can open the socket. A daemon drops its privileges once it is connected. A daemon that
//! sends an invalid frame, or that does not read, loses its seat and its process. The lab's loop never waits for a
//! daemon.

mod batch;
mod beat;
mod process;
mod queue;
mod seat;
mod seats;
#[cfg(test)]
mod tests;

use aerostat_lab::model::{Lab, LaneServer, Node, NodeKind, Router, Service};
use aerostat_node::signalling::Sigd;
use aerostat_proto::ilmi::Ilmid;
use aerostat_proto::lane::lec::LecDaemon;
use aerostat_proto::lane::server::ServerDaemon;
use aerostat_proto::mpoa::mpc::Mpcd;
use aerostat_proto::mpoa::mps::Mpsd;
pub use aerostat_proto::split::Role;
use aerostat_proto::split::codec::{DecodeError, Field, Message as _};
use aerostat_proto::split::{self, Daemon, Numbered, ProcessInput, ProcessOutput, Signal};
use aerostat_proto::{Instant, Machine};
pub(crate) use beat::Sight;
pub use process::{DaemonError, End, serve};
pub(crate) use seats::{Daemons, pass_on};

/// Hidden first argument with which the command becomes a daemon; its role, the socket and the node's name follow.
pub const DAEMON_ARGUMENT: &str = "__daemon";
/// Name of the socket in the directory of a lab.
pub const SOCKET: &str = "daemons.sock";

/// The properties of a role.
#[derive(Debug)]
struct RoleInfo {
    role: Role,
    /// The service of the lab file whose crash is the crash of this process; without a service, only the whole node
    /// crashes.
    service: Option<Service>,
    /// True if a node has seats for its daemons.
    has_seat: fn(&Lab, &Node) -> bool,
}

/// All roles, in the order of `inspect processes`.
const ROLES: &[RoleInfo] = &[
    RoleInfo {
        role: Role::Mpcd,
        service: Some(Service::Mpc),
        has_seat: |_, node| matches!(&node.kind, NodeKind::Host(host) if host.mpoa.is_some()),
    },
    RoleInfo {
        role: Role::Lecd,
        service: None,
        // If all interfaces are on Classical IP subnets, the daemon has no work.
        has_seat: |_, node| !node.lecs().is_empty(),
    },
    RoleInfo {
        role: Role::Lecs,
        service: Some(Service::Lecs),
        // Hosts of standby servers have no LECS.
        has_seat: |_, node| server(node).is_some_and(|server| server.rank == 0),
    },
    RoleInfo {
        role: Role::Les,
        service: Some(Service::Les),
        has_seat: |_, node| server(node).is_some(),
    },
    RoleInfo {
        role: Role::Bus,
        service: Some(Service::Bus),
        has_seat: |_, node| server(node).is_some(),
    },
    RoleInfo {
        role: Role::Sigd,
        service: None,
        has_seat: |_, node| match &node.kind {
            NodeKind::Host(_) | NodeKind::Router(_) | NodeKind::LaneServer(_) => true,
            NodeKind::Switch(_) | NodeKind::Outside(_) => false,
        },
    },
    RoleInfo {
        role: Role::Ilmid,
        service: None,
        has_seat: Lab::speaks_ilmi,
    },
    RoleInfo {
        role: Role::Mpsd,
        service: Some(Service::Mps),
        has_seat: |_, node| router(node).is_some_and(|router| router.mpoa.is_some()),
    },
];

const fn router(node: &Node) -> Option<&Router> {
    match &node.kind {
        NodeKind::Router(router) => Some(router),
        _ => None,
    }
}

const fn server(node: &Node) -> Option<&LaneServer> {
    match &node.kind {
        NodeKind::LaneServer(server) => Some(server),
        _ => None,
    }
}

/// The program of a process with this role. LES and BUS are two processes, as in linux-atm, although the LES tells the
/// BUS who is a member: their host keeps the members.
fn program(role: Role) -> Box<dyn Program> {
    match role {
        Role::Mpcd => Box::<split::Process<Mpcd>>::default(),
        Role::Lecd => Box::<split::Process<LecDaemon>>::default(),
        Role::Lecs | Role::Les | Role::Bus => Box::<split::Process<ServerDaemon>>::default(),
        Role::Sigd => Box::<split::Process<Sigd>>::default(),
        Role::Ilmid => Box::<split::Process<Ilmid>>::default(),
        Role::Mpsd => Box::<split::Process<Mpsd>>::default(),
    }
}

/// The next action of a program.
#[derive(Debug)]
enum Action {
    /// Sends a frame to the lab.
    Send(Vec<u8>),
    /// Ends its process regularly.
    Exit,
}

/// The daemons of a process, with any messages.
trait Program {
    /// A frame from the lab.
    fn frame(&mut self, frame: &[u8], now: Instant) -> Result<(), DecodeError>;
    /// A signal.
    fn signal(&mut self, signal: Signal, now: Instant);
    /// Handles what is due.
    fn handle_timeout(&mut self, now: Instant);
    /// When [`Self::handle_timeout`] is next needed.
    fn poll_timeout(&self) -> Option<Instant>;
    /// The next action.
    fn poll(&mut self) -> Option<Action>;
}

impl<D: Daemon> Program for split::Process<D>
where
    D::To: Field,
    D::From: Field,
{
    fn frame(&mut self, frame: &[u8], now: Instant) -> Result<(), DecodeError> {
        let frame = Numbered::decode(frame)?;
        let Ok(()) = self.handle_input(ProcessInput::Frame(frame), now);
        Ok(())
    }
    fn signal(&mut self, signal: Signal, now: Instant) {
        let Ok(()) = self.handle_input(ProcessInput::Signal(signal), now);
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
