//! A connection, as its user sees it.

use super::engine::Engine;
use super::state::{State, Wants};
use super::{Amount, Counters, Failure, Options, Params, Snapshot};
use crate::{Error, NORMAL, Service, Socket};
use aerostat_proto::atp::{Meter, Refusal};
use aerostat_proto::socket::Status;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd as _, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// A connection that the engine and its user share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) socket: Socket,
    state: Mutex<State>,
    changed: Condvar,
    /// Readable while [`Connection::recv`] does not wait; made for the user who asks for it.
    ready: OnceLock<OwnedFd>,
}

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        // What a panic leaves is a machine between two inputs.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Wakes all threads that wait, after a change.
    pub(super) fn wake(&self, state: &State) {
        if state.waiters > 0 {
            self.changed.notify_all();
        }
        if let Some(ready) = self.ready.get() {
            // Non-blocking and counting up to 2⁶⁴: neither call can fail in a way that matters.
            match state.is_readable() {
                true => drop(rustix::io::write(ready, &1_u64.to_ne_bytes())),
                false => drop(rustix::io::read(ready, &mut [0; 8])),
            }
        }
    }
    /// Waits for a change, until `end` at most; false if it has passed.
    fn wait<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        end: Option<Instant>,
    ) -> (MutexGuard<'a, State>, bool) {
        state.waiters += 1;
        let (mut state, in_time) = match end {
            None => {
                let woken = self.changed.wait(state);
                (woken.unwrap_or_else(PoisonError::into_inner), true)
            }
            Some(end) => {
                let left = end.saturating_duration_since(Instant::now());
                let woken = self.changed.wait_timeout(state, left);
                let (state, _) = woken.unwrap_or_else(PoisonError::into_inner);
                (state, Instant::now() < end)
            }
        };
        state.waiters -= 1;
        (state, in_time)
    }
}

/// Counts and state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stats {
    /// Parameters in force: the MTU and the rate are those of the contract.
    pub params: Params,
    /// Counters of the protocol.
    pub counters: Counters,
    /// The window, what waits, and what was not read.
    pub snapshot: Snapshot,
    /// Messages received, on the clock of this end: from the first packet to the end of the last complete message.
    pub received: Amount,
    /// PDUs that were dropped because 8192 waited for room in the socket.
    pub unqueued: u64,
}

/// An ATP connection. Several threads may use it at the same time.
///
/// A connection that is dropped sends what is queued, and releases its call, in the background.
#[derive(Debug)]
pub struct Connection {
    shared: Arc<Shared>,
    engine: &'static Engine,
    number: u64,
}

impl Connection {
    /// Calls a listener (an address in hex digits, or a name of the lab with a selector: `sello/e2`), and waits until
    /// the connection can be used.
    ///
    /// # Errors
    /// If a text is wrong, or the call fails, with its cause; EOPNOTSUPP if the contract has traffic in one direction
    /// only; EMSGSIZE if its SDUs are too short for ATP.
    pub fn connect(service: &Service, called: &str, options: &Options) -> Result<Self, Error> {
        let socket = service.socket()?;
        let begun = Instant::now();
        let agreed = socket.connect(called, &options.sap, &options.contract(), options.timeout)?;
        let mut params = options.params(&agreed)?;
        // A set-up that had to wait for something tells nothing about the path.
        params.initial_round_trip = params.initial_round_trip.min(begun.elapsed());
        Self::begin(socket, params, options)
    }

    /// ATP on a socket that has a call or a permanent connection already. At a permanent connection, both ends begin
    /// anew at the same time: nothing tells a new connection from an old one.
    ///
    /// # Errors
    /// As [`Self::connect`]; ENOTCONN if the socket has no connection.
    pub fn over(socket: Socket, options: &Options) -> Result<Self, Error> {
        let status = socket.status()?;
        if status.state == "ended" {
            let text = format!("the call has ended: {}", status.why);
            return Err(Error::with_cause(Errno::NOTCONN, status.cause, text));
        }
        if status.state != "connected" {
            let text = format!("the socket is {}, not connected", status.state);
            return Err(Error::new(Errno::NOTCONN, text));
        }
        let params = options.params(&status.qos)?;
        Self::begin(socket, params, options)
    }

    fn begin(socket: Socket, params: Params, options: &Options) -> Result<Self, Error> {
        let engine = Engine::get()?;
        let shared = Arc::new(Shared {
            socket,
            state: Mutex::new(State::new(params.in_range(), options.linger)),
            changed: Condvar::new(),
            ready: OnceLock::new(),
        });
        let number = engine.add(&shared)?;
        Ok(Self {
            shared,
            engine,
            number,
        })
    }

    /// Does something with the machine, and tells the engine if it has to wait for something else now.
    fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.shared.lock();
        let result = change(&mut state);
        self.settle(&mut state);
        result
    }
    fn settle(&self, state: &mut State) {
        let wants = state.wants();
        let sooner = |at| state.armed.until.is_none_or(|armed| at < armed);
        if wants.room && !state.armed.room || wants.until.is_some_and(sooner) {
            state.armed = Wants {
                room: wants.room,
                until: wants.until,
            };
            self.engine.look_at(self.number);
        }
        self.shared.wake(state);
    }

    /// Queues a message of any length, and returns. Waits while [`Params::send_limit`] octets wait for transmission.
    ///
    /// # Errors
    /// EMSGSIZE if the message is longer than [`Params::max_message`] or [`Params::send_limit`]; EAGAIN if the
    /// connection is non-blocking and full; EPIPE after the end of the connection, ETIMEDOUT or ECONNRESET if it has
    /// failed, with the cause of Q.850 if the network has ended it.
    pub fn send(&self, message: &[u8]) -> Result<(), Error> {
        self.send_until(message, None)
    }

    /// As [`Self::send`], but waits at most for `timeout`.
    ///
    /// # Errors
    /// As [`Self::send`]; EAGAIN when the time has passed.
    pub fn send_within(&self, message: &[u8], timeout: Duration) -> Result<(), Error> {
        self.send_until(message, Some(Instant::now() + timeout))
    }

    fn send_until(&self, message: &[u8], end: Option<Instant>) -> Result<(), Error> {
        let mut state = self.shared.lock();
        let mut in_time = true;
        loop {
            if state.ended || state.failed.is_some() {
                let (failed, pending) = (state.failed, state.failed.is_some());
                drop(state);
                return Err(self.broken(failed, pending));
            }
            match state.machine().can_send(message.len()) {
                Ok(()) => {
                    state.send(message.to_vec(), &self.shared.socket);
                    self.settle(&mut state);
                    return Ok(());
                }
                Err(Refusal::Full { .. }) if in_time && !state.nonblocking => {
                    (state, in_time) = self.shared.wait(state, end);
                }
                Err(refused) => {
                    let errno = match refused {
                        Refusal::Full { .. } => Errno::AGAIN,
                        Refusal::TooLong { .. } => Errno::MSGSIZE,
                        Refusal::Closed => Errno::PIPE,
                    };
                    return Err(Error::new(errno, refused.to_string()));
                }
            }
        }
    }

    /// Receives the next complete message; waits for it, unless the connection is non-blocking. `None`: the other end
    /// has closed, and there are no more messages.
    ///
    /// # Errors
    /// EAGAIN; ETIMEDOUT or EMSGSIZE if the connection has failed; ECONNRESET if the call has ended in the middle of a
    /// message, or otherwise than by the other end's release, with the cause of Q.850. Complete messages come first.
    pub fn recv(&self) -> Result<Option<Vec<u8>>, Error> {
        self.recv_until(None)
    }

    /// As [`Self::recv`], but waits at most for `timeout`.
    ///
    /// # Errors
    /// As [`Self::recv`]; EAGAIN when the time has passed.
    pub fn recv_within(&self, timeout: Duration) -> Result<Option<Vec<u8>>, Error> {
        self.recv_until(Some(Instant::now() + timeout))
    }

    /// As [`Self::recv`], into a buffer: what does not fit is lost, and the length is that of the whole message.
    ///
    /// # Errors
    /// As [`Self::recv`].
    pub fn recv_into(&self, buffer: &mut [u8]) -> Result<Option<usize>, Error> {
        Ok(self.recv()?.map(|message| {
            let fits = message.len().min(buffer.len());
            buffer[..fits].copy_from_slice(&message[..fits]);
            message.len()
        }))
    }

    fn recv_until(&self, end: Option<Instant>) -> Result<Option<Vec<u8>>, Error> {
        let mut state = self.shared.lock();
        let mut in_time = true;
        loop {
            if let Some(message) = state.take() {
                self.settle(&mut state);
                return Ok(Some(message));
            }
            if state.ended || state.failed.is_some() {
                let (failed, cut) = (state.failed, state.cut);
                drop(state);
                return match failed {
                    None if !cut && self.ended_normally() => Ok(None),
                    // What this end could not send is no news for who reads.
                    Some(Failure::Released) if !cut && self.ended_normally() => Ok(None),
                    failed => Err(self.broken(failed, true)),
                };
            }
            if state.nonblocking || !in_time {
                return Err(Error::new(Errno::AGAIN, "no message is complete"));
            }
            (state, in_time) = self.shared.wait(state, end);
        }
    }

    /// Closes the connection: waits until all messages are acknowledged, and releases the call. A call of which this
    /// end has received something is kept for [`Options::linger`], or until the other end releases it.
    ///
    /// # Errors
    /// If something was not acknowledged: ETIMEDOUT when nothing new was acknowledged for ten timers, or as
    /// [`Self::send`]. The connection is closed in each case.
    pub fn close(self) -> Result<(), Error> {
        self.with(|state| state.close(&self.shared.socket));
        let mut state = self.shared.lock();
        while !(state.ended || state.released || state.failed.is_some()) {
            (state, _) = self.shared.wait(state, None);
        }
        let failed = state.failed;
        drop(state);
        match failed {
            None => Ok(()),
            failed => Err(self.broken(failed, true)),
        }
    }

    /// Makes [`Self::send`] and [`Self::recv`] return EAGAIN where they would wait.
    pub fn set_nonblocking(&self, nonblocking: bool) {
        self.with(|state| state.nonblocking = nonblocking);
    }

    /// A descriptor for `poll`: readable if [`Self::recv`] does not wait. It belongs to the connection; no other code
    /// reads from it.
    ///
    /// # Errors
    /// If the process has no descriptor left.
    pub fn readable(&self) -> Result<BorrowedFd<'_>, Error> {
        let state = self.shared.lock();
        if self.shared.ready.get().is_none() {
            let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
            let made = eventfd(0, flags).map_err(std::io::Error::from)?;
            let _ = self.shared.ready.set(made);
        }
        self.shared.wake(&state);
        drop(state);
        let made = self.shared.ready.get().map(|ready| ready.as_fd());
        made.ok_or_else(|| Error::new(Errno::IO, "no descriptor"))
    }

    /// Lets [`Stats::received`] begin anew, with the next packet.
    pub fn measure_anew(&self) {
        self.with(|state| state.meter = Meter::default());
    }

    /// Counts and state.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let state = self.shared.lock();
        let machine = state.machine();
        Stats {
            params: *machine.params(),
            counters: *machine.counters(),
            snapshot: machine.snapshot(),
            received: state.meter.received(),
            unqueued: state.unqueued,
        }
    }

    /// State and counts of the ATM socket below.
    ///
    /// # Errors
    /// If the service has gone.
    pub fn status(&self) -> Result<Status, Error> {
        self.shared.socket.status()
    }

    /// True if the other end has released the call, in the usual way.
    fn ended_normally(&self) -> bool {
        self.status().is_ok_and(|status| status.cause == NORMAL)
    }

    /// The error of a connection that has failed or ended; `pending`: something was lost by that.
    fn broken(&self, failed: Option<Failure>, pending: bool) -> Error {
        match failed {
            Some(failure @ (Failure::Retransmissions(_) | Failure::Close)) => {
                Error::new(Errno::TIMEDOUT, failure.to_string())
            }
            Some(failure @ Failure::TooLong(_)) => Error::new(Errno::MSGSIZE, failure.to_string()),
            Some(Failure::Released) | None => {
                let errno = if pending {
                    Errno::CONNRESET
                } else {
                    Errno::PIPE
                };
                let (why, cause) = match self.status() {
                    Ok(status) => (status.why, status.cause),
                    Err(gone) => (gone.to_string(), 0),
                };
                let what = match (failed, pending) {
                    (Some(failure), _) => failure.to_string(),
                    (None, true) => "the connection has ended in the middle".to_owned(),
                    (None, false) => "the connection has ended".to_owned(),
                };
                Error::with_cause(errno, cause, format!("{what}: {why}"))
            }
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.with(|state| state.close(&self.shared.socket));
    }
}
