//! ATM over TCP, the link of linux-atm's `atmtcp`: to another lab, or to a real Linux host.
//!
//! **Format.** `vpi u16 | vci u16 | length u32 | data`, big endian; data is one whole AAL5 SDU. On 0.0 the data are
//! text for people (`O 0.5 ...`: opened, `C 0.5`: closed), which need not be sent or understood; such messages are
//! counted. There is no greeting and no keep-alive, so the connection itself stands for the line: without a connection
//! the port is down. Source: linux-atm 2.5.1, `atmtcp`.
//!
//! **Cells.** The link ends here for cells: PDUs whose cells come one by one are put together. Cells of another AAL
//! than 5, OAM cells and PDUs with lost cells cannot be carried; they are dropped and counted.
//!
//! **Slow and faulty peers.** Data that the peer does not take wait in a buffer of `BUFFER` octets; whole SDUs that do
//! not fit are dropped, as in any queue. A length over 65535 or a VPI that no cell can carry cannot be skipped, so the
//! connection is closed. There is one connection at a time, and only from the address that the lab allows
//! (`atmtcp/door.rs`). TCP's keep-alive finds peers that have died silently.
//!
//! **Silent peers.** A connection over which nothing has ever arrived is replaced by another one from an allowed
//! address after `GIVES_WAY`. It is closed after `SILENCE` if this end has sent to it: a system that never answers is
//! not an ATM peer. Two ends that only listen to each other (permanent connections without traffic) may stay silent for
//! ever.
//!
//! **Fast peers.** Received data count as cells and are read no faster than the link's rate, after a burst
//! (`bucket.rs`). Excess data wait at the peer's end of the connection. Pauses are counted.
//!
//! **Peers that do not shape.** linux-atm hands a PDU to TCP at once, whatever the contract of its VC. Its cells count
//! as spaced at the link's rate.
//!
//! **Not implemented.** The name that a peer of linux-atm's virtual switch sends first (it looks like a bad VPI).

pub(crate) mod door;

use super::bucket::Bucket;
use super::inbox::Inbox;
use super::{Event, Medium};
use crate::assembly::Assembly;
use aerostat_lab::model::OutsideWay;
use aerostat_node::atm::{CellRate, CellRun, Pdu};
use aerostat_node::inspect::{Name, Table};
use aerostat_proto::{Duration, Instant, Trace};
use aerostat_wire::counted;
use aerostat_wire::{Vc, aal5};
use door::Door;
use mio::net::{TcpListener, TcpStream};
use mio::{Interest, Registry, Token};
use rustix::net::sockopt;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, ToSocketAddrs as _};

/// Limit of octets that wait for a slow peer.
const BUFFER: usize = 1 << 20;
/// Octets of a header.
const HEADER: usize = 8;
/// Largest SDU.
const MAX_SDU: usize = 65_535;
/// Largest VPI at a UNI: 8 bits.
const MAX_VPI: u16 = 255;
/// Octets read at once, and number of reads in one turn.
const READ: usize = 32 * 1024;
const READS: usize = 8;
/// Pauses between attempts to connect to the peer.
const FIRST_RETRY: Duration = Duration::from_millis(250);
const LAST_RETRY: Duration = Duration::from_secs(8);
/// How long one attempt may take.
const CONNECTING: Duration = Duration::from_secs(5);
/// Time after which a connection that has received nothing can be replaced by another one.
const GIVES_WAY: Duration = Duration::from_secs(5);
/// Time after which such a connection is closed, if data were sent on it.
const SILENCE: Duration = Duration::from_secs(30);

/// One message of the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// An SDU; it may be empty.
    Sdu(Vc, Vec<u8>),
    /// Text for people.
    Control(Vec<u8>),
}

/// Why the stream cannot be understood any further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Garbled {
    /// An SDU of more than 65535 octets.
    Length(u32),
    /// A VPI of more than 8 bits.
    Vpi(u16),
}

impl std::fmt::Display for Garbled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Length(length) => write!(f, "an SDU of {}", counted(*length, "octet", "octets")),
            Self::Vpi(vpi) => write!(f, "VPI {vpi}"),
        }
    }
}

/// Parses the stream in pieces of any size. It holds at most one incomplete message besides the last piece.
#[derive(Debug, Default)]
pub struct Parser {
    octets: Vec<u8>,
    used: usize,
}

impl Parser {
    /// The next octets of the stream.
    pub fn push(&mut self, octets: &[u8]) {
        self.octets.drain(..self.used);
        self.used = 0;
        self.octets.extend_from_slice(octets);
    }

    /// The next complete message.
    ///
    /// # Errors
    /// If the stream cannot be understood any further.
    pub fn poll(&mut self) -> Result<Option<Message>, Garbled> {
        let rest = self.octets.get(self.used..).unwrap_or_default();
        let Some((header, rest)) = rest.split_first_chunk::<HEADER>() else {
            return Ok(None);
        };
        let [v0, v1, c0, c1, length @ ..] = *header;
        let (vpi, vci) = (u16::from_be_bytes([v0, v1]), u16::from_be_bytes([c0, c1]));
        let length = u32::from_be_bytes(length);
        if vpi > MAX_VPI {
            return Err(Garbled::Vpi(vpi));
        }
        let octets = usize::try_from(length).unwrap_or(usize::MAX);
        if octets > MAX_SDU {
            return Err(Garbled::Length(length));
        }
        let Some(data) = rest.get(..octets) else {
            return Ok(None);
        };
        let data = data.to_vec();
        self.used += HEADER + octets;
        Ok(Some(match (vpi, vci) {
            (0, 0) => Message::Control(data),
            _ => Message::Sdu(Vc::new(vpi, vci), data),
        }))
    }
}

/// Appends one message.
pub fn encode(out: &mut Vec<u8>, vc: Vc, sdu: &[u8]) {
    out.extend(vc.vpi.to_be_bytes());
    out.extend(vc.vci.to_be_bytes());
    out.extend((sdu.len() as u32).to_be_bytes());
    out.extend(sdu);
}

aerostat_node::rows! {
    /// One row for each link by ATM over TCP.
    struct Line: "port.ATM over TCP" for (link: &Link, up: Option<&Connection>, door: Option<&Door>) {
        /// `connected`, `listening` or `connecting`.
        state: Name = link.state(up).into(),
        /// Address of the peer.
        peer: Option<SocketAddr> = up.map(|connection| connection.peer),
        /// Connections so far.
        connections: u64 = link.counters.connections,
        /// Connections refused.
        refused: u64 = door.map_or(0, Door::refused),
        /// Connections closed because nothing ever arrived.
        silent: u64 = link.counters.silent,
        /// Connections for which the operating system had no descriptor.
        exhausted: u64 = door.map_or(0, |door| door.exhausted),
        /// SDUs received.
        sdus_in: u64 = link.counters.sdus_in,
        /// Octets of these.
        octets_in: u64 = link.counters.octets_in,
        /// SDUs sent.
        sdus_out: u64 = link.counters.sdus_out,
        /// Octets of these.
        octets_out: u64 = link.counters.octets_out,
        /// Octets that wait for the peer.
        unsent_octets: Option<usize> = up.map(|connection| connection.unsent.len()),
        /// SDUs dropped because the peer is slow or not connected.
        dropped_out: u64 = link.counters.dropped_out,
        /// PDUs that could not be sent, because cells of them were lost, or others took their place.
        bad_pdus_out: u64 = link.assembly.bad + link.assembly.displaced,
        /// Cells of such PDUs, and cells that belong to no PDU, such as OAM cells.
        cells_dropped_out: u64 = link.assembly.dropped_cells(),
        /// Control messages received.
        control_in: u64 = link.counters.control_in,
        /// SDUs without octets.
        empty_in: u64 = link.counters.empty_in,
        /// Connections closed because of invalid data.
        garbled: u64 = link.counters.garbled,
        /// How often reading paused, because the peer was faster than the link.
        pauses: u64 = link.counters.pauses,
    }
}

/// Counters of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counters {
    connections: u64,
    /// Connections closed because nothing ever arrived.
    silent: u64,
    sdus_in: u64,
    octets_in: u64,
    sdus_out: u64,
    octets_out: u64,
    /// SDUs dropped because the peer is slow or not connected.
    dropped_out: u64,
    control_in: u64,
    /// SDUs without octets.
    empty_in: u64,
    /// Connections closed because of invalid data.
    garbled: u64,
    /// How often reading paused, because the peer was faster than the link.
    pauses: u64,
}

enum Way {
    Listen(Door),
    Connect {
        to: Vec<SocketAddr>,
        attempts: usize,
        pause: Duration,
        /// When to connect next, or when to give up the current attempt.
        at: Option<Instant>,
    },
}

struct Connection {
    stream: TcpStream,
    peer: SocketAddr,
    established: bool,
    readable: bool,
    since: Instant,
    /// True if data have arrived.
    heard: bool,
    /// True if data were sent.
    spoken: bool,
    parser: Parser,
    unsent: Vec<u8>,
}

impl Connection {
    /// True if another connection may replace this one.
    fn gives_way(&self, now: Instant) -> bool {
        !self.heard && now >= self.since + GIVES_WAY
    }

    /// Until when the connection may stay silent; `None` means for ever.
    fn patience(&self) -> Option<Instant> {
        let asked = self.established && self.spoken && !self.heard;
        asked.then(|| self.since + SILENCE)
    }
}

/// One link out of the lab.
pub(crate) struct Link {
    way: Way,
    token: Token,
    connection: Option<Connection>,
    /// The PDUs of cells that do not come as whole PDUs.
    assembly: Assembly<Vc, ()>,
    counters: Counters,
    bucket: Bucket,
    /// No data are read before this time.
    paused_until: Option<Instant>,
    octets: Vec<u8>,
}

impl Link {
    /// Opens the listening socket, or resolves the address to connect to; uses `token` and the next one.
    ///
    /// # Errors
    /// The error of the operating system.
    pub(crate) fn new(
        way: &OutsideWay,
        rate: CellRate,
        registry: &Registry,
        token: Token,
    ) -> io::Result<Self> {
        let way = match way {
            OutsideWay::AtmTcpListen { at, from } => {
                let mut listener = TcpListener::bind(*at)
                    .map_err(|error| io::Error::new(error.kind(), format!("{at}: {error}")))?;
                registry.register(&mut listener, token, Interest::READABLE)?;
                Way::Listen(Door::new(listener, *from))
            }
            OutsideWay::AtmTcpConnect { to } => {
                let found = to
                    .to_socket_addrs()
                    .map_err(|error| io::Error::new(error.kind(), format!("{to}: {error}")))?;
                Way::Connect {
                    to: found.collect(),
                    attempts: 0,
                    pause: FIRST_RETRY,
                    at: Some(Instant::ZERO),
                }
            }
            OutsideWay::Udp { .. }
            | OutsideWay::Ethernet { .. }
            | OutsideWay::Mpls(_)
            | OutsideWay::L2tp(_) => {
                return Err(ErrorKind::Unsupported.into());
            }
        };
        Ok(Self {
            way,
            token: Token(token.0 + 1),
            connection: None,
            assembly: Assembly::default(),
            counters: Counters::default(),
            bucket: Bucket::new(rate),
            paused_until: None,
            octets: vec![0; READ],
        })
    }

    /// Accepts waiting connections, if they are allowed and there is no connection; true if more may wait.
    fn accept(&mut self, registry: &Registry, now: Instant, told: &mut Vec<Event>) -> bool {
        let Way::Listen(door) = &mut self.way else {
            return false;
        };
        let mut traces = Vec::new();
        let (came, more) = door.take(now, &mut traces);
        for (stream, peer) in came {
            let present = self.connection.as_ref();
            if present.is_some_and(|present| present.gives_way(now)) {
                self.counters.silent += 1;
                self.lost("it never said anything and another one came", now, told);
            }
            if self.connection.is_none() {
                self.begin(stream, peer, registry, now);
            } else if let Way::Listen(door) = &mut self.way {
                door.refuse(peer, "there is a connection already", now, &mut traces);
            }
        }
        told.extend(traces.into_iter().map(Event::Trace));
        more
    }

    fn begin(
        &mut self,
        mut stream: TcpStream,
        peer: SocketAddr,
        registry: &Registry,
        now: Instant,
    ) -> bool {
        let interest = Interest::READABLE | Interest::WRITABLE;
        if registry
            .register(&mut stream, self.token, interest)
            .is_err()
        {
            return false;
        }
        self.connection = Some(Connection {
            stream,
            peer,
            established: false,
            readable: true,
            since: now,
            heard: false,
            spoken: false,
            parser: Parser::default(),
            unsent: Vec::new(),
        });
        true
    }

    /// Connects to the peer if it is time to.
    fn connect(&mut self, registry: &Registry, now: Instant) {
        let Way::Connect {
            to, attempts, at, ..
        } = &mut self.way
        else {
            return;
        };
        if !at.is_some_and(|at| at <= now) {
            return;
        }
        if self.connection.take().is_some() {
            // The attempt took too long.
            return self.retry(now);
        }
        let Some(&peer) = to.get(*attempts % to.len().max(1)) else {
            *at = None;
            return;
        };
        *attempts += 1;
        *at = Some(now + CONNECTING);
        let begun =
            TcpStream::connect(peer).is_ok_and(|stream| self.begin(stream, peer, registry, now));
        if !begun {
            self.retry(now);
        }
    }

    fn retry(&mut self, now: Instant) {
        if let Way::Connect { pause, at, .. } = &mut self.way {
            *at = Some(now + *pause);
            *pause = (*pause * 2).min(LAST_RETRY);
        }
    }

    /// Checks whether a new connection is established.
    fn establish(&mut self, now: Instant, told: &mut Vec<Event>) {
        let Some(connection) = &mut self.connection else {
            return;
        };
        // The failure of a connection attempt is seen when the connection is read.
        if connection.established || connection.stream.peer_addr().is_err() {
            return;
        }
        connection.established = true;
        connection.since = now;
        connection.readable = true;
        // The link also works without these options, only less well.
        let _ = connection.stream.set_nodelay(true);
        let _ = sockopt::set_socket_keepalive(&connection.stream, true);
        let _ = sockopt::set_tcp_keepidle(&connection.stream, Duration::from_secs(10));
        let _ = sockopt::set_tcp_keepintvl(&connection.stream, Duration::from_secs(5));
        let _ = sockopt::set_tcp_keepcnt(&connection.stream, 3);
        self.counters.connections += 1;
        let peer = connection.peer;
        if let Way::Connect { at, .. } = &mut self.way {
            *at = None;
        }
        told.push(Event::Up);
        let trace = Trace::milestone(
            "atmtcp.up",
            format!("connected with {peer} by ATM over TCP"),
        );
        told.push(Event::Trace(trace.with("peer", peer)));
    }

    /// The connection was lost, or closed here.
    fn lost(&mut self, why: &str, now: Instant, told: &mut Vec<Event>) {
        let Some(connection) = self.connection.take() else {
            return;
        };
        self.assembly.clear();
        self.retry(now);
        if connection.established {
            let peer = connection.peer;
            let text = format!("ATM over TCP with {peer} has ended: {why}");
            let trace = Trace::milestone("atmtcp.down", text).with("peer", peer);
            told.push(Event::Trace(trace));
            told.push(Event::Down);
        }
    }

    fn receive(&mut self, now: Instant, told: &mut Vec<Event>) -> bool {
        for _ in 0..READS {
            if self.paused(now) {
                return false;
            }
            let Some(connection) = &mut self.connection else {
                return false;
            };
            if !connection.readable {
                return false;
            }
            match connection.stream.read(&mut self.octets) {
                Ok(0) => self.lost("closed by the peer", now, told),
                Ok(count) => {
                    connection.heard = true;
                    let octets = self.octets.get(..count).unwrap_or_default();
                    connection.parser.push(octets);
                    if let Err(garbled) = self.messages(now, told) {
                        self.counters.garbled += 1;
                        self.lost(&format!("the peer sent {garbled}"), now, told);
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::WouldBlock | ErrorKind::NotConnected
                    ) =>
                {
                    connection.readable = false;
                }
                Err(error) => self.lost(&error.to_string(), now, told),
            }
        }
        self.connection.is_some()
    }

    /// True while the peer has sent more than the link carries.
    fn paused(&mut self, now: Instant) -> bool {
        let until = self.bucket.full_until(now);
        self.counters.pauses += u64::from(until.is_some() && self.paused_until.is_none());
        // Without a connection there is nothing to wait for.
        self.paused_until = until.filter(|_| self.connection.is_some());
        self.paused_until.is_some()
    }

    fn messages(&mut self, now: Instant, told: &mut Vec<Event>) -> Result<(), Garbled> {
        let Some(connection) = &mut self.connection else {
            return Ok(());
        };
        while let Some(message) = connection.parser.poll()? {
            let octets = match &message {
                Message::Sdu(_, sdu) | Message::Control(sdu) => sdu.len(),
            };
            let timing = self.bucket.charge(aal5::cells_for(octets) as u64, now);
            match message {
                Message::Control(_) => self.counters.control_in += 1,
                Message::Sdu(_, sdu) if sdu.is_empty() => self.counters.empty_in += 1,
                Message::Sdu(vc, sdu) => {
                    self.counters.sdus_in += 1;
                    self.counters.octets_in += sdu.len() as u64;
                    if let Way::Connect { pause, .. } = &mut self.way {
                        *pause = FIRST_RETRY;
                    }
                    let run = CellRun::whole(Pdu::new(sdu), vc).timed(timing);
                    told.push(Event::Cells(run));
                }
            }
        }
        Ok(())
    }

    /// Puts an SDU into the buffer, or drops it.
    fn send_sdu(&mut self, vc: Vc, sdu: &[u8]) {
        let established = self.connection.as_mut().filter(|c| c.established);
        match established {
            Some(connection) if connection.unsent.len() + HEADER + sdu.len() <= BUFFER => {
                connection.spoken = true;
                encode(&mut connection.unsent, vc, sdu);
                self.counters.sdus_out += 1;
                self.counters.octets_out += sdu.len() as u64;
            }
            _ => self.counters.dropped_out += 1,
        }
    }

    /// The state, in words; `up` is the connection if it is established.
    const fn state(&self, up: Option<&Connection>) -> &'static str {
        match (up, &self.way) {
            (Some(_), _) => "connected",
            (None, Way::Listen(_)) => "listening",
            (None, Way::Connect { .. }) => "connecting",
        }
    }
}

impl Medium for Link {
    fn ready(&mut self, which: usize) {
        match (&mut self.way, &mut self.connection) {
            (Way::Listen(door), _) if which == 0 => door.ready(),
            (_, Some(connection)) => connection.readable = true,
            _ => {}
        }
    }
    fn trouble(&self) -> Option<String> {
        if self
            .connection
            .as_ref()
            .is_some_and(|open| open.established)
        {
            return None;
        }
        Some(match &self.way {
            Way::Listen(door) => {
                let at = door.at().map(|at| at.to_string());
                format!("nobody has connected to {}", at.unwrap_or_default())
            }
            Way::Connect { to, attempts, .. } => {
                let last = attempts.saturating_sub(1) % to.len().max(1);
                let to = to.get(last).map(ToString::to_string);
                format!("{} does not answer", to.unwrap_or_default())
            }
        })
    }
    fn peer(&self) -> String {
        let peer = self.connection.as_ref().map(|open| open.peer.to_string());
        peer.unwrap_or_default()
    }
    fn poll_timeout(&self) -> Option<Instant> {
        let call = match &self.way {
            Way::Connect { at, .. } => *at,
            Way::Listen(door) => door.poll_timeout(),
        };
        let silent = self.connection.as_ref().and_then(Connection::patience);
        call.into_iter()
            .chain(self.paused_until)
            .chain(silent)
            .min()
    }
    fn turn(
        &mut self,
        registry: &Registry,
        now: Instant,
        _: &mut Inbox,
        told: &mut Vec<Event>,
    ) -> bool {
        let more = self.accept(registry, now, told);
        self.connect(registry, now);
        self.establish(now, told);
        let more = self.receive(now, told) || more;
        self.flush(registry, now, told);
        let patience = self.connection.as_ref().and_then(Connection::patience);
        if patience.is_some_and(|until| until <= now) {
            self.counters.silent += 1;
            self.lost("it never said anything", now, told);
        }
        more
    }
    fn send(&mut self, run: &CellRun) {
        if run.has_several() {
            return run.clone().singles().for_each(|single| self.send(&single));
        }
        let done = self.assembly.take(run.vc, run, |_| true, |()| {});
        if let Some(done) = done {
            self.send_sdu(run.vc, done.pdu.sdu());
        }
    }
    fn flush(&mut self, _: &Registry, now: Instant, told: &mut Vec<Event>) {
        let Some(connection) = self.connection.as_mut().filter(|c| c.established) else {
            return;
        };
        let mut sent = 0;
        let failed = loop {
            let rest = connection.unsent.get(sent..).unwrap_or_default();
            if rest.is_empty() {
                break None;
            }
            match connection.stream.write(rest) {
                Ok(count) => sent += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break None,
                Err(error) => break Some(error),
            }
        };
        connection.unsent.drain(..sent);
        if let Some(error) = failed {
            self.lost(&error.to_string(), now, told);
        }
    }
    fn tables(&self) -> Vec<Table> {
        let up = self.connection.as_ref().filter(|c| c.established);
        let door = match &self.way {
            Way::Listen(door) => Some(door),
            Way::Connect { .. } => None,
        };
        vec![Table::of([Line::of(self, up, door)])]
    }
}

#[cfg(test)]
mod tests;
