//! Requests and responses over one TCP connection, one at a time, to measure transactions per second.

use super::caller::{Caller, ConnectionEvent};
use super::listener::Listener;
use super::{AppResult, Net, Program};
use crate::distribution::{Distribution, Summary};
use crate::ip::stack::Socket;
use aerostat_proto::{Duration, Instant, Refused};

/// Largest request or response, octets.
const MAX_SIZE: usize = 1 << 20;
/// Contents of requests and responses.
const FILLER: [u8; 1024] = [0xa5; 1024];

/// Results of a transaction client.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TransactionClientResult {
    /// Connections established: more than one if connections ended too early.
    pub connections: u64,
    /// Responses received completely.
    pub transactions: u64,
    /// Time from the establishment of the first connection to the last response.
    pub elapsed: Duration,
    /// `transactions` over `elapsed`.
    pub per_second: f64,
    /// Time from the request to the complete response.
    pub latency: Summary,
    /// True if the connection was refused, or if it had ended before the end.
    pub failed: bool,
}

/// Results of a transaction server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransactionServerResult {
    /// Connections accepted.
    pub connections: u64,
    /// Requests received completely.
    pub requests: u64,
}

/// Octets of a request and of a response.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    request: usize,
    response: usize,
}

impl Sizes {
    pub(super) fn new(request: usize, response: usize) -> Result<Self, Refused> {
        if !(1..=MAX_SIZE).contains(&request) || !(1..=MAX_SIZE).contains(&response) {
            return Err(Refused("a request or response has 1 to 1048576 octets"));
        }
        Ok(Self { request, response })
    }
}

/// Sends some of `left` octets.
fn send(socket: &mut Socket<'_>, left: &mut usize) {
    while *left > 0 && socket.room() > 0 {
        let sent = socket.write(&FILLER[..FILLER.len().min(*left)]);
        if sent == 0 {
            break;
        }
        *left -= sent;
    }
}

pub(super) struct Client {
    caller: Caller,
    sizes: Sizes,
    established: Option<Instant>,
    /// Octets of the current request that are not in the socket yet, and of its response that are not received yet.
    to_send: usize,
    to_receive: usize,
    asked: Instant,
    last: Instant,
    latency: Distribution,
    /// True if there is a connection.
    up: bool,
    failed: bool,
    done: bool,
}

impl Client {
    pub(super) fn new(caller: Caller, sizes: Sizes) -> Self {
        Self {
            caller,
            sizes,
            established: None,
            to_send: 0,
            to_receive: 0,
            asked: Instant::ZERO,
            last: Instant::ZERO,
            latency: Distribution::default(),
            up: false,
            failed: false,
            done: false,
        }
    }

    fn ask(&mut self, now: Instant) {
        self.to_send = self.sizes.request;
        self.to_receive = self.sizes.response;
        self.asked = now;
    }
}

impl Program for Client {
    fn open(&mut self, _: &mut Net<'_>, now: Instant) {
        self.caller.start(now);
    }

    fn run(&mut self, net: &mut Net<'_>, now: Instant, end: Option<Instant>) -> bool {
        if self.done {
            return false;
        }
        match self.caller.look(net, now) {
            ConnectionEvent::New => {
                self.up = true;
                if self.established.is_none() {
                    (self.established, self.last) = (Some(now), now);
                }
                self.ask(now);
            }
            ConnectionEvent::Lost => {
                self.up = false;
                return true;
            }
            ConnectionEvent::Refused => {
                self.close(net, now);
                return true;
            }
            ConnectionEvent::Waiting => return false,
            ConnectionEvent::Same => {}
        }
        let Some(mut socket) = self.caller.socket(net) else {
            return false;
        };
        // What has arrived while a read took its time is read, too: no further event tells of it.
        let before = self.to_receive;
        while self.to_receive > 0 && socket.unread() > 0 {
            self.to_receive -= socket.read(self.to_receive).len();
        }
        let got = before - self.to_receive;
        let ended = end.is_some_and(|end| now >= end);
        if got > 0 && self.to_receive == 0 && !ended {
            self.latency.record(now - self.asked);
            self.last = now;
            self.ask(now);
        }
        send(&mut socket, &mut self.to_send);
        false
    }

    fn deadline(&self) -> Option<Instant> {
        self.caller.deadline()
    }

    fn is_done(&self) -> bool {
        self.done
    }

    fn close(&mut self, net: &mut Net<'_>, _: Instant) {
        self.failed = !self.up;
        self.caller.retire(net);
        self.done = true;
    }

    fn result(&self) -> AppResult {
        let elapsed = self
            .established
            .map_or(Duration::ZERO, |from| self.last - from);
        let seconds = elapsed.as_secs_f64();
        let transactions = self.latency.count();
        let per_second = if seconds > 0.0 {
            transactions as f64 / seconds
        } else {
            0.0
        };
        AppResult::TransactionClient(TransactionClientResult {
            connections: self.caller.connections,
            transactions,
            elapsed,
            per_second,
            latency: self.latency.summary(),
            failed: self.failed,
        })
    }
}

/// A server's state of a connection.
#[derive(Default)]
struct Connection {
    /// Octets received of the current request.
    received: usize,
    /// Octets of responses that are not in the socket yet.
    to_send: usize,
}

pub(super) struct Server {
    listener: Listener<Connection>,
    sizes: Sizes,
    requests: u64,
    done: bool,
}

impl Server {
    pub(super) fn new(port: u16, sizes: Sizes) -> Self {
        Self {
            listener: Listener::new(port),
            sizes,
            requests: 0,
            done: false,
        }
    }
}

impl Program for Server {
    fn open(&mut self, net: &mut Net<'_>, _: Instant) {
        self.listener.open(net);
    }

    fn run(&mut self, net: &mut Net<'_>, _: Instant, _: Option<Instant>) -> bool {
        let Self {
            listener,
            sizes,
            requests,
            ..
        } = self;
        listener.serve(net, |socket, dialogue| {
            send(socket, &mut dialogue.to_send);
            // While a client does not take its responses, its requests are not read.
            while dialogue.to_send == 0 && socket.unread() > 0 {
                dialogue.received += socket.read(sizes.request - dialogue.received).len();
                if dialogue.received == sizes.request {
                    dialogue.received = 0;
                    dialogue.to_send = sizes.response;
                    *requests += 1;
                    send(socket, &mut dialogue.to_send);
                }
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
        AppResult::TransactionServer(TransactionServerResult {
            connections: self.listener.accepted,
            requests: self.requests,
        })
    }
}
