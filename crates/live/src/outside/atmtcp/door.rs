//! The listening side of ATM over TCP: who may come in.
//!
//! The poller speaks once when somebody waits, however many they are, so the door takes everybody before it goes back
//! to sleep; a turn takes at most [`TAKEN`] of them and says that more may wait. Whoever the lab does not allow is
//! closed at once and counted. The story tells of refusals at most every [`TOLD_EVERY`]: a flood of connections must
//! not become a flood of lines.

use aerostat_proto::{Duration, Instant, Trace};
use mio::net::{TcpListener, TcpStream};
use rustix::io::Errno;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};

/// Connections taken in one turn.
const TAKEN: usize = 64;
/// How often the story tells of refused connections.
const TOLD_EVERY: Duration = Duration::from_secs(10);
/// When the door looks again after the operating system had no descriptor for a connection.
const BREATH: Duration = Duration::from_millis(250);

/// A listening socket with its rule.
pub(super) struct Door {
    listener: TcpListener,
    from: Option<IpAddr>,
    /// Somebody may wait to be taken.
    waiting: bool,
    /// The operating system had no descriptor: not before this.
    not_before: Option<Instant>,
    refusals: Refusals,
    /// Connections that could not be taken for want of descriptors or memory.
    pub(super) exhausted: u64,
}

/// How many were turned away, and what the story knows of them.
#[derive(Default)]
struct Refusals {
    count: u64,
    told: u64,
    told_at: Option<Instant>,
}

impl Door {
    /// Takes connections of `from`, or of this machine alone.
    pub(super) fn new(listener: TcpListener, from: Option<IpAddr>) -> Self {
        Self {
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

    /// The poller spoke of the listener.
    pub(super) fn ready(&mut self) {
        self.waiting = true;
    }

    /// When the door must be looked at again if the poller says nothing.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.not_before.filter(|_| self.waiting)
    }

    /// Connections that were turned away.
    pub(super) fn refused(&self) -> u64 {
        self.refusals.count
    }

    /// The connections that wait and may come, at most [`TAKEN`] with those that may not; true if more may wait.
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
                // That connection has gone again; the next may be good.
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

    /// Counts a connection that is turned away, and tells of it unless the story has just told of others.
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
            _ => format!("refused {peer}: {why}; {more} others were refused since the last word"),
        };
        let trace = Trace::milestone("atmtcp.refused", text).with("count", more + 1);
        told.push(trace);
        (refusals.told, refusals.told_at) = (refusals.count, Some(now));
    }
}

/// Why an address that the lab does not name is turned away.
const STRANGER: &str = "the lab does not allow this address";

/// True if the operating system has no descriptor or memory for another connection.
pub(crate) fn is_exhausted(error: &std::io::Error) -> bool {
    let code = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(
        code,
        Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM)
    )
}
