//! The listening side of ATM over TCP: accepting connections.
//!
//! The poller reports once when connections wait, however many there are, so all of them must be accepted before the
//! next sleep. A turn accepts at most [`TAKEN`] connections and tells whether more may wait. Connections that the lab
//! does not allow are closed at once and counted. Refusals are traced at most every [`TOLD_EVERY`], so that a flood of
//! connections does not become a flood of trace lines.

use aerostat_proto::{Duration, Instant, Trace};
use aerostat_wire::counted;
use mio::net::{TcpListener, TcpStream};
use rustix::io::Errno;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};

/// Limit of connections accepted in one turn.
const TAKEN: usize = 64;
/// Shortest interval between trace lines about refused connections.
const TOLD_EVERY: Duration = Duration::from_secs(10);
/// Pause after the operating system had no descriptor for a connection.
const BREATH: Duration = Duration::from_millis(250);

/// A listening socket with its access rule.
pub(super) struct Door {
    listener: TcpListener,
    /// Address at which it listens.
    at: Option<SocketAddr>,
    from: Option<IpAddr>,
    /// True if connections may be waiting.
    waiting: bool,
    /// Time before which no connection is accepted, because the operating system had no descriptor.
    not_before: Option<Instant>,
    refusals: Refusals,
    /// Connections that could not be accepted for lack of descriptors or memory.
    pub(super) exhausted: u64,
}

/// Number of refused connections, and how many of them were traced.
#[derive(Default)]
struct Refusals {
    count: u64,
    told: u64,
    told_at: Option<Instant>,
}

impl Door {
    /// Accepts connections from `from`, or only from this machine.
    pub(super) fn new(listener: TcpListener, from: Option<IpAddr>) -> Self {
        Self {
            at: listener.local_addr().ok(),
            listener,
            from,
            waiting: false,
            not_before: None,
            refusals: Refusals::default(),
            exhausted: 0,
        }
    }

    #[cfg(test)]
    pub(super) fn local_addr(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    #[cfg(test)]
    pub(super) fn allow(&mut self, from: IpAddr) {
        self.from = Some(from);
    }

    /// Address at which it listens.
    pub(super) const fn at(&self) -> Option<SocketAddr> {
        self.at
    }

    /// The poller has reported the listener.
    pub(super) fn ready(&mut self) {
        self.waiting = true;
    }

    /// When the listener must be checked again without a report of the poller.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.not_before.filter(|_| self.waiting)
    }

    /// Connections that were refused.
    pub(super) fn refused(&self) -> u64 {
        self.refusals.count
    }

    /// The waiting connections that are allowed. Together with those that are not, they are at most [`TAKEN`]; true if
    /// more may wait.
    pub(super) fn take(
        &mut self,
        now: Instant,
        told: &mut Vec<Trace>,
    ) -> (Vec<(TcpStream, SocketAddr)>, bool) {
        let mut allowed = Vec::new();
        if !self.waiting || self.not_before.is_some_and(|at| now < at) {
            return (allowed, false);
        }
        self.not_before = None;
        for _ in 0..TAKEN {
            match self.listener.accept() {
                Ok((stream, peer)) if self.may_come(peer) => allowed.push((stream, peer)),
                Ok((_, peer)) => self.refuse(peer, STRANGER, now, told),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.waiting = false;
                    return (allowed, false);
                }
                Err(error) if is_exhausted(&error) => {
                    self.exhausted += 1;
                    self.not_before = Some(now + BREATH);
                    return (allowed, false);
                }
                // That connection was already closed; the next one may be valid.
                Err(_) => {}
            }
        }
        (allowed, true)
    }

    fn may_come(&self, peer: SocketAddr) -> bool {
        let address = peer.ip().to_canonical();
        self.from
            .map_or(address.is_loopback(), |from| from.to_canonical() == address)
    }

    /// Counts a refused connection, and traces it unless other refusals were traced a moment ago.
    pub(super) fn refuse(
        &mut self,
        peer: SocketAddr,
        why: &str,
        now: Instant,
        told: &mut Vec<Trace>,
    ) {
        let refusals = &mut self.refusals;
        refusals.count += 1;
        if refusals.told_at.is_some_and(|at| now < at + TOLD_EVERY) {
            return;
        }
        let more = refusals.count - refusals.told - 1;
        let text = match more {
            0 => format!("refused {peer}: {why}"),
            _ => format!(
                "refused {peer}: {why}; {} refused since the last word",
                counted(more, "other was", "others were")
            ),
        };
        let trace = Trace::milestone("atmtcp.refused", text).with("count", more + 1);
        told.push(trace);
        (refusals.told, refusals.told_at) = (refusals.count, Some(now));
    }
}

/// The reason for refusing an address that the lab does not name.
const STRANGER: &str = "the lab does not allow this address";

/// True if the operating system has no descriptor or memory for another connection.
pub(crate) fn is_exhausted(error: &std::io::Error) -> bool {
    let code = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(
        code,
        Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM)
    )
}
