//! One end of a connection, as its lock holds it: the machine, the PDUs that wait for the socket, and the end.

use super::Failure;
use crate::Socket;
use aerostat_proto::atp::{Atp, Counters, Event, Input, Meter, Output, Params};
use aerostat_proto::{Instant, Machine as _};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::collections::VecDeque;
use std::sync::OnceLock;
use std::time::Duration;

/// PDUs that wait for room in the socket: two largest windows. ATP repeats what is dropped beyond.
const QUEUE: usize = 8192;
/// PDUs that are read in one turn, so that one connection does not hold up the others.
const READS: usize = 64;
/// Cause 16, normal call clearing, and 102, recovery on timer expiry. Source: Q.850.
const NORMAL: u8 = crate::NORMAL;
const TIMER: u8 = 102;
/// Cause 41, temporary failure.
const TEMPORARY: u8 = 41;

/// Time since the first use of this module, on the monotonic clock.
pub(super) fn clock() -> Instant {
    static START: OnceLock<std::time::Instant> = OnceLock::new();
    let elapsed = START.get_or_init(std::time::Instant::now).elapsed();
    Instant::from_nanos(u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX))
}

/// Conditions for which the engine waits on behalf of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Wants {
    /// Room in the socket.
    pub(super) room: bool,
    /// A time.
    pub(super) until: Option<Instant>,
}

/// One end of a connection.
#[derive(Debug)]
pub(super) struct State {
    machine: Atp,
    pub(super) meter: Meter,
    /// PDUs that the socket had no room for.
    queue: VecDeque<Vec<u8>>,
    /// PDUs that were dropped because of [`QUEUE`].
    pub(super) unqueued: u64,
    /// The machine has failed.
    pub(super) failed: Option<Failure>,
    /// The machine was closed, and everything is acknowledged.
    pub(super) closed: bool,
    /// When the call is released after that.
    release: Option<Instant>,
    /// The release was asked for.
    pub(super) released: bool,
    /// The call has ended.
    pub(super) ended: bool,
    /// A message from the other end was cut.
    pub(super) cut: bool,
    /// When the last packet came.
    last: Option<Instant>,
    linger: Option<Duration>,
    /// [`Wants`] that the engine has seen last.
    pub(super) armed: Wants,
    /// Threads that wait for a change.
    pub(super) waiters: u32,
    pub(super) nonblocking: bool,
}

impl State {
    pub(super) fn new(params: Params, linger: Option<Duration>) -> Self {
        Self {
            machine: Atp::new(params),
            meter: Meter::default(),
            queue: VecDeque::new(),
            unqueued: 0,
            failed: None,
            closed: false,
            release: None,
            released: false,
            ended: false,
            cut: false,
            last: None,
            linger,
            armed: Wants::default(),
            waiters: 0,
            nonblocking: false,
        }
    }
    pub(super) fn machine(&self) -> &Atp {
        &self.machine
    }
    /// The next complete message.
    pub(super) fn take(&mut self) -> Option<Vec<u8>> {
        self.machine.take()
    }
    /// True if a message can be taken, or will never come.
    pub(super) fn is_readable(&self) -> bool {
        self.ended || self.failed.is_some() || self.machine.snapshot().unread_messages > 0
    }
    /// True if nothing is left to do for this connection.
    pub(super) const fn is_over(&self) -> bool {
        self.ended
    }

    /// Gives a message to the machine, which takes it ([`Atp::can_send`]).
    pub(super) fn send(&mut self, message: Vec<u8>, socket: &Socket) {
        let now = clock();
        let _ = self.machine.handle_input(Input::Send(message), now);
        self.drive(socket, now);
    }
    /// No more messages.
    pub(super) fn close(&mut self, socket: &Socket) {
        let now = clock();
        let _ = self.machine.handle_input(Input::Close, now);
        self.drive(socket, now);
    }

    /// Reads PDUs that have come; true if there may be more.
    pub(super) fn read(&mut self, socket: &Socket, buffer: &mut [u8]) -> bool {
        for _ in 0..READS {
            match recv(socket, &mut *buffer, RecvFlags::DONTWAIT) {
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return false,
                Err(_) | Ok((_, 0)) => {
                    self.end();
                    return false;
                }
                Ok((_, octets)) => {
                    let now = clock();
                    let sdu = buffer.get(..octets).unwrap_or_default();
                    let before = *self.machine.counters();
                    let _ = self.machine.handle_input(Input::Sdu(sdu), now);
                    self.received(octets, &before, now);
                }
            }
        }
        true
    }

    /// The machine has handled an SDU.
    fn received(&mut self, octets: usize, before: &Counters, now: Instant) {
        let after = self.machine.counters();
        let packets = |of: &Counters| of.packets_received + of.duplicates;
        if packets(after) > packets(before) {
            self.last = Some(now);
        }
        let messages = after.messages_received - before.messages_received;
        self.meter.sdu(&self.machine, octets, now);
        for length in self.machine.newest(messages) {
            self.meter.message(length as u64, now);
        }
    }

    /// The call has ended.
    fn end(&mut self) {
        if self.ended {
            return;
        }
        self.ended = true;
        self.cut = self.machine.snapshot().incomplete > 0;
        let _ = self.machine.handle_input(Input::Released, clock());
        self.queue.clear();
        self.tell();
    }

    /// Timers, PDUs for the socket, the end. The thread that holds the lock calls this after each change.
    pub(super) fn drive(&mut self, socket: &Socket, now: Instant) {
        if self.machine.poll_timeout().is_some_and(|at| at <= now) {
            self.machine.handle_timeout(now);
        }
        self.tell();
        self.flush(socket);
        let due = self.release.is_some_and(|at| at <= now);
        if due && self.queue.is_empty() && !self.released && !self.ended {
            self.released = true;
            socket.release_soon(match self.failed {
                None => NORMAL,
                Some(Failure::Retransmissions(_) | Failure::Close) => TIMER,
                Some(Failure::TooLong(_) | Failure::Released) => TEMPORARY,
            });
        }
    }

    /// Takes what the machine has to say.
    fn tell(&mut self) {
        while let Some(output) = self.machine.poll_output() {
            match output {
                Output::Sdu(sdu) if self.queue.len() < QUEUE && !self.ended => {
                    self.queue.push_back(sdu);
                }
                Output::Sdu(_) => self.unqueued += u64::from(!self.ended),
                Output::Event(Event::Closed) => {
                    self.closed = true;
                    self.release = Some(self.kept_until());
                }
                Output::Event(Event::Failed(failure)) => {
                    self.failed = Some(failure);
                    self.release = Some(Instant::ZERO);
                    self.queue.clear();
                }
                Output::Event(Event::Readable | Event::Drained) => {}
            }
        }
    }

    /// The call is kept so long after the close: the other end may repeat what it has not seen acknowledged.
    fn kept_until(&self) -> Instant {
        let default = || self.machine.params().timer + self.machine.snapshot().round_trip * 2;
        let linger = self.linger.unwrap_or_else(default);
        self.last.map_or(Instant::ZERO, |last| last + linger)
    }

    /// Writes what waits, as far as the socket has room.
    fn flush(&mut self, socket: &Socket) {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        while let Some(sdu) = self.queue.front() {
            match send(socket, sdu, flags) {
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                // The end comes to the reader, after what the other end has sent before.
                Err(_) => return self.queue.clear(),
                Ok(_) => {
                    self.queue.pop_front();
                }
            }
        }
    }

    /// Conditions for which the engine has to wait.
    pub(super) fn wants(&self) -> Wants {
        let own = self.release.filter(|_| !self.released && !self.ended);
        let own = own.filter(|_| self.queue.is_empty());
        Wants {
            room: !self.queue.is_empty(),
            until: own.into_iter().chain(self.machine.poll_timeout()).min(),
        }
    }
}
