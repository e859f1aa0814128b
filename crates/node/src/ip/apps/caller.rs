//! The calling side of TCP: one connection at a time, and the next one if the connection ends too early.
//!
//! A connection that was established and then ends (the peer's host restarted and reset it, or nothing was acknowledged
//! for as long as the host's TCP waits) is followed by another one at once. An attempt that fails is followed by the
//! next one after [`RETRY`]. If a host refuses an attempt, the attempt fails at once; if no host answers, TCP repeats
//! the SYN at growing distances, as often as the host's TCP does. A program whose first connection is refused gives up,
//! because no program listens there.

use super::Net;
use crate::ip::source_ports::SourcePorts;
use crate::ip::stack::{ConnectionId, Socket};
use crate::ip::tcp::State;
use aerostat_proto::tcp::Failure;
use aerostat_proto::{Duration, Instant};
use std::net::Ipv4Addr;

/// Time from an attempt that failed to the next one.
const RETRY: Duration = Duration::from_secs(1);

/// The program's connection, see the documentation of this module.
pub(super) struct Caller {
    remote: (Ipv4Addr, u16),
    ports: SourcePorts,
    /// Earlier starts of the host.
    life: u32,
    nagle: bool,
    id: Option<ConnectionId>,
    /// True if the current connection has been established.
    up: bool,
    /// Attempts to connect so far.
    attempts: u32,
    /// When to connect again.
    again: Option<Instant>,
    /// Connections that have been established so far.
    pub(super) connections: u64,
}

/// Event of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionEvent {
    /// There is no connection yet, or the next attempt has its time.
    Waiting,
    /// A connection has just been established.
    New,
    /// The connection is as before: open, or being closed by this side.
    Same,
    /// The connection has just ended. The next attempt is scheduled.
    Lost,
    /// The first attempt was refused, so the program makes no further attempt.
    Refused,
}

impl Caller {
    pub(super) fn new(remote: (Ipv4Addr, u16), ports: SourcePorts, life: u32, nagle: bool) -> Self {
        Self {
            remote,
            ports,
            life,
            nagle,
            id: None,
            up: false,
            attempts: 0,
            again: None,
            connections: 0,
        }
    }

    /// The time of the first attempt.
    pub(super) fn start(&mut self, now: Instant) {
        self.again = Some(now);
    }

    /// Looks after the connection. The socket of a lost connection is given up.
    pub(super) fn look(&mut self, net: &mut Net<'_>, now: Instant) -> ConnectionEvent {
        if self.again.is_some_and(|at| at <= now) {
            self.again = None;
            let port = self.ports.of(self.life, self.attempts);
            self.attempts = self.attempts.wrapping_add(1);
            self.id = net.connect(port, self.remote, self.nagle);
            if self.id.is_none() {
                return self.ended(net, now, false);
            }
        }
        let Some(socket) = self.socket(net) else {
            return ConnectionEvent::Waiting;
        };
        match socket.state() {
            State::Closed => {
                let silent = socket.failure == Some(Failure::TimedOut);
                self.ended(net, now, !silent)
            }
            _ if self.up => ConnectionEvent::Same,
            _ if socket.is_up() => {
                self.up = true;
                self.connections += 1;
                ConnectionEvent::New
            }
            _ => ConnectionEvent::Waiting,
        }
    }

    /// The connection, or the attempt, has ended; the next one follows, unless the first one was refused.
    fn ended(&mut self, net: &mut Net<'_>, now: Instant, refused: bool) -> ConnectionEvent {
        // A connection that ends is replaced at once, an attempt that failed after a while.
        let pause = if self.up { Duration::ZERO } else { RETRY };
        self.give_up(net);
        if refused && self.connections == 0 {
            return ConnectionEvent::Refused;
        }
        self.again = Some(now + pause);
        ConnectionEvent::Lost
    }

    /// The socket of the connection, established or not; `None` without a connection.
    pub(super) fn socket<'a>(&self, net: &'a mut Net<'_>) -> Option<Socket<'a>> {
        net.socket(self.id?)
    }

    /// When the next attempt is due.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.again
    }

    /// Closes the connection in order.
    pub(super) fn retire(&mut self, net: &mut Net<'_>) {
        self.again = None;
        self.up = false;
        if let Some(id) = self.id.take() {
            net.leave(id);
        }
    }

    /// Resets the connection.
    pub(super) fn give_up(&mut self, net: &mut Net<'_>) {
        self.again = None;
        self.up = false;
        if let Some(id) = self.id.take() {
            net.abort(id);
        }
    }
}
