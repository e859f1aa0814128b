//! Bulk TCP: a source that keeps the socket full and a sink that checks every octet.

use super::caller::{Caller, ConnectionEvent};
use super::listener::Listener;
use super::{AppResult, Net, Program};
use crate::ip::stack::Socket;
use crate::ip::tcp::State;
use aerostat_proto::{Duration, Instant};
use std::sync::LazyLock;

/// How long a source that has sent everything waits for the last acknowledgement.
const LINGER: Duration = Duration::from_secs(10);
/// Length after which the contents repeat. It is prime, so that a lost or repeated segment is noticed.
const PERIOD: usize = 251;
/// Octets of what is written or read at once, at most.
const CHUNK: usize = 64 * 1024;

/// Results of a bulk source.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TcpSourceResult {
    /// Connections established: more than one if connections ended too early.
    pub connections: u64,
    /// When the first connection was established.
    pub established: Option<Instant>,
    /// Octets acknowledged by the sink's host.
    pub octets: u64,
    /// From `established` to the acknowledgement of the last of `octets`.
    pub elapsed: Duration,
    /// `octets` over `elapsed`, 10⁶ bit/s.
    pub throughput_mbps: f64,
    /// True if the connection was refused, if it had ended before the end, or if not everything was acknowledged in
    /// time.
    pub failed: bool,
}

/// Results of a bulk sink, over all its connections.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TcpSinkResult {
    /// Connections accepted.
    pub connections: u64,
    /// Octets received in order.
    pub octets: u64,
    /// Octets of these that differ from what a source sends.
    pub wrong: u64,
    /// When the first octet arrived.
    pub first: Option<Instant>,
    /// When the last octet arrived.
    pub last: Option<Instant>,
}

/// The endless contents of a stream, from any offset below [`PERIOD`] on.
static CONTENTS: LazyLock<Vec<u8>> =
    LazyLock::new(|| (0..CHUNK + PERIOD).map(|at| (at % PERIOD) as u8).collect());

/// The contents at `offset`, at most `len` and at most [`CHUNK`] octets.
fn contents(offset: u64, len: usize) -> &'static [u8] {
    let start = (offset % PERIOD as u64) as usize;
    let end = start + len.min(CHUNK);
    CONTENTS.get(start..end).unwrap_or_default()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Connecting,
    Sending,
    Draining,
    Done,
}

pub(super) struct Source {
    caller: Caller,
    limit: Option<u64>,
    /// Octets of each write, if the program does not fill the buffer, and those of the present write that are left.
    write: Option<usize>,
    unfinished: usize,
    phase: Phase,
    /// Octets that the sink acknowledged on earlier connections.
    before: u64,
    /// Octets written to the current connection.
    written: u64,
    last_progress: Instant,
    give_up: Option<Instant>,
    result: TcpSourceResult,
}

impl Source {
    pub(super) fn new(caller: Caller, limit: Option<u64>, write: Option<usize>) -> Self {
        Self {
            caller,
            limit,
            write,
            unfinished: 0,
            phase: Phase::Connecting,
            before: 0,
            written: 0,
            last_progress: Instant::ZERO,
            give_up: None,
            result: TcpSourceResult::default(),
        }
    }

    /// Octets left to write to the current connection.
    fn left(&self) -> u64 {
        self.limit
            .map_or(u64::MAX, |limit| limit - self.before - self.written)
    }

    /// Fills the socket, or makes one write; true if there is a further write that waits for the network only.
    fn fill(&mut self, socket: &mut Socket<'_>) -> bool {
        let before = self.written;
        if let (Some(write), 0) = (self.write, self.unfinished) {
            self.unfinished = write;
        }
        while socket.room() > 0 {
            let most = match self.write {
                Some(_) => self.unfinished.min(CHUNK),
                None => CHUNK,
            };
            let len = usize::try_from(self.left()).unwrap_or(usize::MAX).min(most);
            let sent = socket.write(contents(self.written, len));
            if sent == 0 {
                break;
            }
            self.written += sent as u64;
            self.unfinished = self.unfinished.saturating_sub(sent);
        }
        self.write.is_some() && self.written > before && socket.room() > 0
    }

    /// Records the octets acknowledged so far.
    fn note(&mut self, socket: &Socket<'_>, now: Instant) {
        // A closed socket has an empty queue whether or not its contents arrived, so the last figure is kept.
        if socket.state() != State::Closed {
            let acknowledged = self.before + self.written - socket.unacknowledged() as u64;
            if acknowledged > self.result.octets {
                self.result.octets = acknowledged;
                self.last_progress = now;
            }
        }
    }

    /// The connection ended too early: the next one sends what was not acknowledged, unless the time is over.
    fn lost(&mut self, net: &mut Net<'_>, ended: bool) {
        let open = self.result.octets < self.before + self.written;
        if ended || (self.phase == Phase::Draining && !open) {
            return self.finish(net, open || self.phase != Phase::Draining);
        }
        (self.before, self.written) = (self.result.octets, 0);
        self.unfinished = 0;
        self.phase = Phase::Connecting;
        self.give_up = None;
    }

    fn finish(&mut self, net: &mut Net<'_>, failed: bool) {
        if failed {
            self.caller.give_up(net);
        } else {
            self.caller.retire(net);
        }
        self.result.failed = failed;
        self.phase = Phase::Done;
    }
}

impl Program for Source {
    fn open(&mut self, _: &mut Net<'_>, now: Instant) {
        self.caller.start(now);
    }

    fn run(&mut self, net: &mut Net<'_>, now: Instant, end: Option<Instant>) -> bool {
        if self.phase == Phase::Done {
            return false;
        }
        if let Some(socket) = self.caller.socket(net) {
            self.note(&socket, now);
        }
        let ended = end.is_some_and(|end| now >= end);
        match self.caller.look(net, now) {
            ConnectionEvent::New => {
                self.result.established.get_or_insert(now);
                self.last_progress = self.last_progress.max(now);
                self.phase = Phase::Sending;
            }
            ConnectionEvent::Lost => {
                self.lost(net, ended);
                return true;
            }
            ConnectionEvent::Refused => {
                self.finish(net, true);
                return true;
            }
            ConnectionEvent::Waiting if ended => {
                self.finish(net, true);
                return true;
            }
            ConnectionEvent::Waiting => return false,
            ConnectionEvent::Same => {}
        }
        let Some(mut socket) = self.caller.socket(net) else {
            return false;
        };
        let mut again = false;
        if self.phase == Phase::Sending {
            if !ended {
                again = self.fill(&mut socket);
            }
            if ended || self.left() == 0 {
                socket.close();
                self.phase = Phase::Draining;
                self.give_up = Some(now + LINGER);
            }
        }
        if self.phase == Phase::Draining {
            // Our FIN is acknowledged, and so is all data before it.
            let state = socket.state();
            let through = matches!(state, State::FinWait2 | State::TimeWait);
            let late = self.give_up.is_some_and(|at| now >= at);
            if through {
                self.finish(net, false);
            } else if late {
                self.finish(net, self.result.octets < self.before + self.written);
            }
        }
        again
    }

    fn deadline(&self) -> Option<Instant> {
        [self.give_up, self.caller.deadline()]
            .into_iter()
            .flatten()
            .min()
            .filter(|_| self.phase != Phase::Done)
    }

    fn is_done(&self) -> bool {
        self.phase == Phase::Done
    }

    fn close(&mut self, net: &mut Net<'_>, _: Instant) {
        self.finish(net, true);
    }

    fn result(&self) -> AppResult {
        let elapsed = self
            .result
            .established
            .map_or(Duration::ZERO, |established| {
                self.last_progress - established
            });
        let seconds = elapsed.as_secs_f64();
        let throughput_mbps = if seconds > 0.0 {
            self.result.octets as f64 * 8.0 / seconds / 1e6
        } else {
            0.0
        };
        AppResult::TcpSource(TcpSourceResult {
            connections: self.caller.connections,
            elapsed,
            throughput_mbps,
            ..self.result
        })
    }

    fn closes_at_end(&self) -> bool {
        false
    }
}

pub(super) struct Sink {
    listener: Listener<u64>,
    result: TcpSinkResult,
    done: bool,
}

impl Sink {
    pub(super) fn new(port: u16) -> Self {
        Self {
            listener: Listener::new(port),
            result: TcpSinkResult::default(),
            done: false,
        }
    }
}

impl Program for Sink {
    fn open(&mut self, net: &mut Net<'_>, _: Instant) {
        self.listener.open(net);
    }

    fn run(&mut self, net: &mut Net<'_>, now: Instant, _: Option<Instant>) -> bool {
        let Self {
            listener, result, ..
        } = self;
        listener.serve(net, |socket, offset| {
            let before = *offset;
            while socket.unread() > 0 {
                let data = socket.read(CHUNK);
                let expected = contents(*offset, data.len());
                if data != expected {
                    let differ = data.iter().zip(expected).filter(|(a, b)| a != b).count();
                    result.wrong += differ as u64;
                }
                *offset += data.len() as u64;
            }
            if *offset > before {
                result.octets += *offset - before;
                result.first.get_or_insert(now);
                result.last = Some(now);
            }
        });
        false
    }

    fn is_done(&self) -> bool {
        self.done
    }

    fn close(&mut self, net: &mut Net<'_>, _: Instant) {
        self.listener.close(net);
        self.done = true;
    }

    fn result(&self) -> AppResult {
        let connections = self.listener.accepted;
        AppResult::TcpSink(TcpSinkResult {
            connections,
            ..self.result
        })
    }
}
