//! The programs that run on an embedded host: ping, bulk TCP, paced UDP, and requests with
//! responses.
//!
//! An [`AppSpec`] starts a program (number, kind, start time, duration). The program ends when its work is done, at the
//! end of its duration, or when it is stopped. Its [`AppResult`] can be read at any time. A program without a duration
//! runs until its work is done, or until it is stopped.

mod bulk;
mod caller;
mod datagram;
mod listener;
mod pace;
mod ping;
mod transaction;

pub use bulk::{TcpSinkResult, TcpSourceResult};
pub use datagram::{MIN_PAYLOAD, SHORT_STAMP, Stamp, UdpSinkResult, UdpSourceResult};
pub use pace::{Departure, Pattern};
pub use ping::PingResult;
pub use transaction::{TransactionClientResult, TransactionServerResult};

use super::books::Refusal;
use super::icmp::Echo;
use super::meter::PacketKey;
use super::source_ports::SourcePorts;
use super::stack::{ConnectionId, Connections, Link, Socket, StackConfig};
use super::udp::{self, Udp};
use crate::random;
use crate::rate::PacketRate;
use aerostat_proto::{Duration, Instant, Refused};
use caller::Caller;
use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;

/// Octets of IPv4 and UDP header; IPv4 and ICMP echo header have the same length.
const IP_UDP_HEADERS: usize = 28;
/// First port of the range from which a program gets its own port if no port is given (RFC 6335).
const FIRST_DYNAMIC_PORT: u16 = 49152;

/// A program's number, chosen by the caller who starts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AppId(
    /// Unique within a host.
    pub u32,
);

/// Commands to the programs of a host.
#[derive(Clone, Debug)]
pub enum AppCommand {
    /// Starts a program (at its start time, or now if that has passed).
    Start(AppSpec),
    /// Ends a program as if its duration were over.
    Stop(AppId),
    /// Removes a program that has ended, with its result.
    Forget(AppId),
}

impl AppId {
    /// The port of the dynamic range for a program without a given port.
    #[must_use]
    pub const fn port(self) -> u16 {
        FIRST_DYNAMIC_PORT + (self.0 % 16384) as u16
    }

    /// The identifier of the program's echo requests. It uses all 16 bits, so that no two flows of a lab share an
    /// identifier.
    #[must_use]
    pub const fn ident(self) -> u16 {
        self.0 as u16
    }
}

/// A program to run.
#[derive(Clone, Debug)]
pub struct AppSpec {
    /// Its number.
    pub id: AppId,
    /// Start time. If it has passed, the program starts at once and continues as if it had started then.
    pub start: Instant,
    /// Duration, counted from `start`. With `None` the program runs until its work is done, or until it is stopped.
    pub duration: Option<Duration>,
    /// Kind of the program.
    pub kind: AppKind,
}

/// Kinds of programs.
#[derive(Clone, Debug)]
pub enum AppKind {
    /// Sends ICMP echo requests and measures the round-trip time.
    Ping {
        /// Destination.
        to: Ipv4Addr,
        /// Number of requests; with `None`, as many as fit the duration.
        count: Option<u32>,
        /// Rate of requests.
        rate: PacketRate,
        /// Octets of data in a request.
        size: usize,
        /// Time to live; `None` means 64.
        ttl: Option<u8>,
    },
    /// Sends as fast as TCP allows (netperf's `TCP_STREAM`).
    TcpSource {
        /// The sink's host.
        to: Ipv4Addr,
        /// The sink's port.
        port: u16,
        /// Local ports of its connections; with `None`, a port of the dynamic range.
        local_ports: Option<SourcePorts>,
        /// Octets to send; with `None`, as many as the duration allows.
        octets: Option<u64>,
        /// Octets of each write, at least 1; with `None`, the program fills the send buffer. TCP may send before the
        /// next write, and a write that does not fit the buffer goes there in parts.
        write: Option<usize>,
    },
    /// Accepts connections, checks the received octets and discards them.
    TcpSink {
        /// Port to listen on.
        port: u16,
    },
    /// Sends numbered datagrams at a given rate (mgen).
    UdpSource {
        /// The sink's host.
        to: Ipv4Addr,
        /// The sink's port.
        port: u16,
        /// Local port; with `None`, a port of the dynamic range.
        local_port: Option<u16>,
        /// Rate of datagrams.
        rate: PacketRate,
        /// Distribution of the datagrams over time.
        pattern: Pattern,
        /// Octets of payload, at least [`SHORT_STAMP`]; those of the largest datagram if `pattern` has sizes of its
        /// own.
        size: usize,
    },
    /// Receives numbered datagrams (drec).
    UdpSink {
        /// Port to listen on.
        port: u16,
    },
    /// Sends a request, waits for the response, and repeats this (netperf's `TCP_RR`).
    TransactionClient {
        /// The server's host.
        to: Ipv4Addr,
        /// The server's port.
        port: u16,
        /// Local ports of its connections; with `None`, a port of the dynamic range.
        local_ports: Option<SourcePorts>,
        /// Octets of a request, at least 1.
        request: usize,
        /// Octets of a response, at least 1.
        response: usize,
    },
    /// Answers requests.
    TransactionServer {
        /// Port to listen on.
        port: u16,
        /// Octets of a request, at least 1.
        request: usize,
        /// Octets of a response, at least 1.
        response: usize,
    },
}

/// Results of a program.
#[derive(Clone, Debug, PartialEq)]
pub enum AppResult {
    /// Result of [`AppKind::Ping`].
    Ping(PingResult),
    /// Result of [`AppKind::TcpSource`].
    TcpSource(TcpSourceResult),
    /// Result of [`AppKind::TcpSink`].
    TcpSink(TcpSinkResult),
    /// Result of [`AppKind::UdpSource`].
    UdpSource(UdpSourceResult),
    /// Result of [`AppKind::UdpSink`].
    UdpSink(UdpSinkResult),
    /// Result of [`AppKind::TransactionClient`].
    TransactionClient(TransactionClientResult),
    /// Result of [`AppKind::TransactionServer`].
    TransactionServer(TransactionServerResult),
}

/// A packet that a program wanted to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Key of the packet.
    pub key: PacketKey,
    /// Octets of UDP or ICMP payload.
    pub payload: u32,
    /// Why the host's stack refused the packet; `None` if the stack accepted it.
    pub refused: Option<Refusal>,
}

/// The parts of a host that its programs use.
pub(super) struct Net<'a> {
    /// The program that runs.
    pub(super) app: AppId,
    pub(super) now: Instant,
    pub(super) link: &'a Link,
    pub(super) tcp: &'a mut Connections,
    pub(super) udp: &'a mut Udp,
    /// The programs that send echo requests, by the identifier.
    pub(super) pings: &'a mut BTreeMap<u16, AppId>,
    /// Packets to be sent.
    pub(super) sent: &'a mut VecDeque<Vec<u8>>,
    /// Packets that programs wanted to send. The stack reports them.
    pub(super) offers: &'a mut Vec<Offer>,
}

impl Net<'_> {
    /// Begins a connection of the program from one of its ports; `None` if the port has one to this peer already.
    fn connect(&mut self, port: u16, to: (Ipv4Addr, u16), nagle: bool) -> Option<ConnectionId> {
        let from = self.link.address_towards(to.0)?;
        let mtu = self.link.mtu_towards(to.0);
        let ends = ((port, from), (to.1, to.0));
        self.tcp.connect(self.app, ends, nagle, mtu, self.now)
    }

    /// Sends a datagram from a port of this host.
    fn send_datagram(&mut self, from: u16, to: (Ipv4Addr, u16), payload: &[u8]) {
        // A host has an address.
        if let Some(own) = self.link.address_towards(to.0) {
            self.sent.push_back(udp::datagram((own, from), to, payload));
        }
    }

    /// The socket of a connection; `None` if there is no such connection any more.
    fn socket(&mut self, id: ConnectionId) -> Option<Socket<'_>> {
        self.tcp.socket(id, self.now)
    }

    /// Closes a connection in order and gives it up.
    fn leave(&mut self, id: ConnectionId) {
        self.tcp.leave(id, self.now);
    }

    /// Resets a connection and gives it up.
    fn abort(&mut self, id: ConnectionId) {
        self.tcp.abort(id, self.now);
    }
}

/// Operations of every kind of program. `end` is the end of the program's duration.
trait Program: Send {
    /// Opens sockets. Called once, at the start time.
    fn open(&mut self, net: &mut Net<'_>, now: Instant);
    /// Serves the sockets; true if the program has work left that waits only for the network to be served.
    fn run(&mut self, net: &mut Net<'_>, now: Instant, end: Option<Instant>) -> bool;
    /// Takes a datagram that arrived at an open port of the program.
    fn hear(&mut self, payload: &[u8], from: (Ipv4Addr, u16), now: Instant) {
        let _ = (payload, from, now);
    }
    /// Takes a reply to an echo request of the program, which runs then.
    fn hear_echo(&mut self, echo: &Echo<'_>, from: Ipv4Addr, now: Instant) {
        let _ = (echo, from, now);
    }
    /// When the program wants to run next without other events. The time may be in the past if there is nothing left to
    /// do.
    fn deadline(&self) -> Option<Instant> {
        None
    }
    /// True if the program's work is done and it has given up its sockets.
    fn is_done(&self) -> bool;
    /// Gives up the sockets at once.
    fn close(&mut self, net: &mut Net<'_>, now: Instant);
    /// The result so far.
    fn result(&self) -> AppResult;
    /// True if the program is closed at `end`; otherwise it finishes by itself.
    fn closes_at_end(&self) -> bool {
        true
    }
    /// Tells a program that it had already started at `start`, before its host restarted: a program with a rate
    /// continues from there. If called at all, this comes before `open`.
    fn resume(&mut self, start: Instant) {
        let _ = start;
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Waiting,
    Running,
    Over,
}

/// A program and its times.
pub(super) struct App {
    program: Box<dyn Program>,
    stage: Stage,
    start: Instant,
    end: Option<Instant>,
    /// True if the program has run since its end, so that the end wakes it only once.
    saw_end: bool,
}

impl App {
    /// A program that waits for its start.
    pub(super) fn new(spec: AppSpec, config: &StackConfig, now: Instant) -> Result<Self, Refused> {
        let start = spec.start.max(now);
        let end = spec.duration.map(|duration| spec.start + duration);
        let mut program = program(spec.kind, spec.id, config)?;
        if spec.start < now {
            program.resume(spec.start);
        }
        Ok(Self {
            program,
            stage: Stage::Waiting,
            start,
            end,
            saw_end: false,
        })
    }

    /// Ends the program as if its duration were over.
    pub(super) fn stop(&mut self, now: Instant) {
        self.end = Some(self.end.map_or(now, |end| end.min(now)));
    }

    /// Runs the program; true if it has work left that waits only for the network to be served.
    pub(super) fn run(&mut self, net: &mut Net<'_>, now: Instant) -> bool {
        if self.stage == Stage::Over || (self.stage == Stage::Waiting && now < self.start) {
            return false;
        }
        let ended = self.end.is_some_and(|end| end <= now);
        if self.stage == Stage::Waiting {
            if ended {
                self.stage = Stage::Over;
                return false;
            }
            self.program.open(net, now);
            self.stage = Stage::Running;
        }
        let again = self.program.run(net, now, self.end);
        self.saw_end = ended;
        if ended && self.program.closes_at_end() && !self.program.is_done() {
            self.program.close(net, now);
        }
        if self.program.is_done() {
            self.stage = Stage::Over;
        }
        again
    }

    /// When the program must run next.
    pub(super) fn deadline(&self) -> Option<Instant> {
        match self.stage {
            Stage::Waiting => Some(self.start),
            Stage::Running => {
                let end = self.end.filter(|_| !self.saw_end);
                [end, self.program.deadline()].into_iter().flatten().min()
            }
            Stage::Over => None,
        }
    }

    /// Takes a datagram.
    pub(super) fn hear(&mut self, payload: &[u8], from: (Ipv4Addr, u16), now: Instant) {
        if self.stage == Stage::Running {
            self.program.hear(payload, from, now);
        }
    }

    /// Takes a reply to an echo request.
    pub(super) fn hear_echo(&mut self, echo: &Echo<'_>, from: Ipv4Addr, now: Instant) {
        if self.stage == Stage::Running {
            self.program.hear_echo(echo, from, now);
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.stage == Stage::Over
    }

    pub(super) fn result(&self) -> AppResult {
        self.program.result()
    }
}

fn program(kind: AppKind, id: AppId, config: &StackConfig) -> Result<Box<dyn Program>, Refused> {
    let dynamic = id.port();
    let most = config.most_mtu();
    let fits = |payload: usize| payload.saturating_add(IP_UDP_HEADERS) <= most;
    match kind {
        AppKind::Ping {
            to,
            count,
            rate,
            size,
            ttl,
        } => {
            if !fits(size) {
                return Err(Refused("an echo request must fit the MTU"));
            }
            if ttl == Some(0) {
                return Err(Refused("a ping needs a time to live"));
            }
            Ok(Box::new(ping::Ping::new(
                to,
                id.ident(),
                count,
                rate,
                size,
                ttl,
            )))
        }
        AppKind::TcpSource {
            to,
            port,
            local_ports,
            octets,
            write,
        } => {
            if write == Some(0) {
                return Err(Refused("a write has at least one octet"));
            }
            let remote = remote(to, port)?;
            let ports = calling(local_ports, dynamic)?;
            let caller = Caller::new(remote, ports, config.life, true);
            Ok(Box::new(bulk::Source::new(caller, octets, write)))
        }
        AppKind::TcpSink { port } => Ok(Box::new(bulk::Sink::new(listening(port)?))),
        AppKind::UdpSource {
            to,
            port,
            local_port,
            rate,
            pattern,
            size,
        } => {
            if size < SHORT_STAMP || pattern.least().is_some_and(|least| least < SHORT_STAMP) {
                return Err(Refused("a datagram holds its stamp"));
            }
            if !fits(pattern.most().unwrap_or(size)) {
                return Err(Refused("a datagram fits the MTU"));
            }
            let purpose = format!("udp-source-{}", id.0);
            let rng = random::stream(config.seed, &config.name, &purpose);
            let local = local(local_port, dynamic)?;
            let pace = pace::Pace::new(rate, pattern, rng)?;
            Ok(Box::new(datagram::Source::new(
                remote(to, port)?,
                local,
                id.0,
                pace,
                size,
            )))
        }
        AppKind::UdpSink { port } => Ok(Box::new(datagram::Sink::new(id, listening(port)?))),
        AppKind::TransactionClient {
            to,
            port,
            local_ports,
            request,
            response,
        } => {
            let sizes = transaction::Sizes::new(request, response)?;
            let remote = remote(to, port)?;
            let ports = calling(local_ports, dynamic)?;
            let caller = Caller::new(remote, ports, config.life, false);
            Ok(Box::new(transaction::Client::new(caller, sizes)))
        }
        AppKind::TransactionServer {
            port,
            request,
            response,
        } => {
            let sizes = transaction::Sizes::new(request, response)?;
            Ok(Box::new(transaction::Server::new(listening(port)?, sizes)))
        }
    }
}

fn remote(to: Ipv4Addr, port: u16) -> Result<(Ipv4Addr, u16), Refused> {
    if port == 0 || to.is_unspecified() {
        return Err(Refused("a peer has an address and a port"));
    }
    Ok((to, port))
}

fn local(given: Option<u16>, dynamic: u16) -> Result<u16, Refused> {
    listening(given.unwrap_or(dynamic))
}

fn calling(given: Option<SourcePorts>, dynamic: u16) -> Result<SourcePorts, Refused> {
    let ports = given.unwrap_or(SourcePorts::only(dynamic));
    listening(ports.first())?;
    Ok(ports)
}

fn listening(port: u16) -> Result<u16, Refused> {
    if port == 0 {
        return Err(Refused("port 0 cannot be used"));
    }
    Ok(port)
}
