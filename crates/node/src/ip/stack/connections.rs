//! The TCP connections of a host, and the ports on which its programs listen.
//!
//! **Objects.** [`Connections`] owns a [`Tcp`] for each connection. A connection belongs to a program until the program
//! gives it up; then it ends by itself, and is forgotten once it has. Programs reach their connections by a [`Socket`].
//!
//! **The loop.** An input makes a connection *touched*, and its events wake its program. The program runs before the
//! connection is asked for segments: so an acknowledgement offers the window after the program has read.
//!
//! **Bounds.** A port serves [`MAX_CONNECTIONS`] at a time, handshakes included; for a further SYN the oldest handshake
//! gives way, and without one the SYN is refused. Of connections that no program has any more, [`MAX_ORPHANS`] are kept
//! with [`MAX_ORPHAN_OCTETS`] of data in all, and the oldest gives way. Of connections that
//! have ended, the figures of the last [`MAX_ENDED`] are kept; [`TcpCounters::forgotten`] counts the others.

use crate::ip::apps::AppId;
use crate::ip::packet;
use crate::ip::stack::StackConfig;
use crate::ip::stack::calls::{Call, CallKind, Calls, Turn};
use crate::ip::stack::news::News;
use crate::ip::tcp::TcpOptions;
use crate::random;
use aerostat_proto::tcp::{
    Config, Counters, Event, Failure, Input, Output, Snapshot, State, Tcp, reset_for,
};
use aerostat_proto::{Deadlines, Duration, Instant, Machine};
use aerostat_wire::ipv4::{CONGESTION_EXPERIENCED, Ipv4View, TCP};
use aerostat_wire::tcp::{Flags, Segment, checksum_ok};
use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;

/// Limit of connections that one port serves at a time, including handshakes; each takes the memory of its buffers.
pub const MAX_CONNECTIONS: usize = 32;
/// Limit of connections that no program has any more, most of them in TIME-WAIT.
pub const MAX_ORPHANS: usize = 4096;
/// Limit of data of these connections that is not acknowledged, octets.
const MAX_ORPHAN_OCTETS: usize = 64 << 20;
/// Limit of ended connections whose figures are kept.
const MAX_ENDED: usize = 1024;
/// Time to live of segments (RFC 1700).
const TIME_TO_LIVE: u8 = 64;
/// The ticks of hosts have phases below this, which the ticks of all profiles divide.
const PHASES: u64 = 10_000_000;

/// A connection of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConnectionId(u64);

/// The ends of a connection: own port and address, those of the peer.
pub(in crate::ip) type Ends = ((u16, Ipv4Addr), (u16, Ipv4Addr));

/// A connection, and its program.
struct Connection {
    tcp: Tcp,
    ends: Ends,
    owner: Option<AppId>,
    /// It came to a port on which the owner listens.
    passive: bool,
    /// The owner has not heard of it.
    waits: bool,
    failure: Option<Failure>,
    /// The call of its program.
    turn: Turn,
    /// When it was made.
    since: Instant,
}

impl Connection {
    /// The connection as others see it; `ended`: when it ended, if it has.
    fn view(&self, ended: Option<Instant>) -> ConnectionView {
        ConnectionView {
            local: self.ends.0,
            remote: self.ends.1,
            snapshot: self.tcp.snapshot(),
            counters: *self.tcp.counters(),
            failure: self.failure,
            since: self.since,
            ended,
        }
    }
}

/// A program that listens on a port.
struct Listening {
    app: AppId,
    nagle: bool,
    /// Established connections that the program has not taken yet.
    accepted: VecDeque<ConnectionId>,
}

aerostat_proto::counters! {
    /// Counters of TCP.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct TcpCounters {
        /// Segments dropped: damaged.
        pub damaged: u64,
        /// Segments of no connection, and SYNs for which a port has no room; most are answered by a reset.
        pub strangers: u64,
        /// Handshakes that gave way, because their port was full.
        pub handshakes_dropped: u64,
        /// Connections without a program that gave way.
        pub orphans_dropped: u64,
        /// Ended connections whose figures are not kept any more.
        pub forgotten: u64,
    }
}

/// A connection as others see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionView {
    /// Own port and address.
    pub local: (u16, Ipv4Addr),
    /// Port and address of the peer.
    pub remote: (u16, Ipv4Addr),
    /// State of the connection.
    pub snapshot: Snapshot,
    /// Counters of the connection.
    pub counters: Counters,
    /// Why it has failed, if it has.
    pub failure: Option<Failure>,
    /// When it was made.
    pub since: Instant,
    /// When it ended, if it has.
    pub ended: Option<Instant>,
}

/// The connections of a host.
pub(in crate::ip) struct Connections {
    options: TcpOptions,
    seed: u64,
    phase: Duration,
    all: BTreeMap<ConnectionId, Connection>,
    by_ends: BTreeMap<Ends, ConnectionId>,
    /// Connections that no program has any more, with the data that was not acknowledged when their program left.
    orphans: BTreeMap<ConnectionId, usize>,
    orphan_octets: usize,
    /// Connections that programs had and that have ended, in the order of their ends.
    ended: VecDeque<ConnectionView>,
    /// The programs of each port in the order in which they have opened it: the first one gets the connections.
    listening: BTreeMap<u16, Vec<Listening>>,
    deadlines: Deadlines<ConnectionId>,
    touched: News<ConnectionId>,
    woken: News<AppId>,
    opened: u64,
    /// Calls of programs for the CPU; `None` if they take no time.
    calls: Option<Calls>,
    pub(super) counters: TcpCounters,
    /// Counters of all connections that have ended.
    past: Counters,
}

impl Connections {
    pub(super) fn new(config: &StackConfig) -> Self {
        let phase = random::derived_seed(config.seed, &config.name, "ack-tick") % PHASES;
        let seed = random::derived_seed(config.seed, &config.name, "ip-stack");
        Self {
            options: config.tcp,
            seed: seed.wrapping_add(u64::from(config.life) << 40),
            phase: Duration::from_micros(phase),
            all: BTreeMap::new(),
            by_ends: BTreeMap::new(),
            orphans: BTreeMap::new(),
            orphan_octets: 0,
            ended: VecDeque::new(),
            listening: BTreeMap::new(),
            deadlines: Deadlines::default(),
            touched: News::default(),
            woken: News::default(),
            opened: 0,
            calls: None,
            counters: TcpCounters::default(),
            past: Counters::default(),
        }
    }

    /// All connections: those that have ended, then the others, the oldest first.
    pub(super) fn views(&self) -> impl Iterator<Item = ConnectionView> {
        let open = self.all.values().map(|connection| connection.view(None));
        self.ended.iter().copied().chain(open)
    }

    /// Adds the counters of all connections, and of TCP besides.
    pub(super) fn add_counters(&self, connections: &mut Counters, host: &mut TcpCounters) {
        connections.add(&self.past);
        for connection in self.all.values() {
            connections.add(connection.tcp.counters());
        }
        host.add(&self.counters);
    }

    /// True if the segment in a packet belongs to a connection.
    pub(super) fn knows(&self, packet: &Ipv4View<'_>) -> bool {
        let ends = packet.ports().map(|ports| ends_of(packet, ports));
        ends.is_some_and(|ends| self.by_ends.contains_key(&ends))
    }

    /// Adds a connection; `None` if these ends have one.
    fn add(
        &mut self,
        ends: Ends,
        app: AppId,
        nagle: bool,
        mtu: usize,
        first: Input<'_>,
        now: Instant,
    ) -> Option<ConnectionId> {
        if let Some(known) = self.by_ends.get(&ends).copied() {
            // What no program has any more gives way to a new connection.
            self.orphans.contains_key(&known).then_some(())?;
            self.remove(known, now);
        }
        let id = ConnectionId(self.opened);
        self.opened += 1;
        let mut tcp = Tcp::new(Config {
            params: self.options.of_connection(mtu, nagle),
            local: ends.0.0,
            remote: ends.1.0,
            seed: self.seed.wrapping_add(self.opened),
            phase: self.phase,
        });
        tcp.handle_input(first, now).ok()?;
        let passive = matches!(first, Input::Listen);
        let connection = Connection {
            tcp,
            ends,
            owner: Some(app),
            passive,
            waits: passive,
            failure: None,
            turn: Turn::Free,
            since: now,
        };
        self.all.insert(id, connection);
        self.by_ends.insert(ends, id);
        self.touched.insert(id);
        Some(id)
    }

    fn remove(&mut self, id: ConnectionId, now: Instant) {
        if let Some(connection) = self.all.remove(&id) {
            self.by_ends.remove(&connection.ends);
            self.past.add(connection.tcp.counters());
            if !connection.waits {
                self.ended.push_back(connection.view(Some(now)));
            }
            if self.ended.len() > MAX_ENDED {
                self.ended.pop_front();
                self.counters.forgotten += 1;
            }
        }
        self.orphan_octets -= self.orphans.remove(&id).unwrap_or(0);
        self.deadlines.set(id, None);
    }

    /// Connects a program to a peer; `None` if these ports have a connection already. `nagle` is what the program would
    /// have, `mtu` that of the path.
    pub(in crate::ip) fn connect(
        &mut self,
        app: AppId,
        ends: Ends,
        nagle: bool,
        mtu: usize,
        now: Instant,
    ) -> Option<ConnectionId> {
        self.add(ends, app, nagle, mtu, Input::Connect, now)
    }

    /// Opens a port for a program.
    pub(in crate::ip) fn listen(&mut self, port: u16, app: AppId, nagle: bool) {
        self.listening.entry(port).or_default().push(Listening {
            app,
            nagle,
            accepted: VecDeque::new(),
        });
    }

    /// Closes the port of a program; handshakes and connections that it has not taken are reset.
    pub(in crate::ip) fn close_port(&mut self, port: u16, app: AppId, now: Instant) {
        let Some(programs) = self.listening.get_mut(&port) else {
            return;
        };
        let mut gone: Vec<ConnectionId> = Vec::new();
        programs.retain(|program| {
            let closes = program.app == app;
            if closes {
                gone.extend(&program.accepted);
            }
            !closes
        });
        if programs.is_empty() {
            self.listening.remove(&port);
        }
        let begun = |(id, of): (&ConnectionId, &Connection)| {
            (of.waits && of.owner == Some(app) && of.ends.0.0 == port).then_some(*id)
        };
        gone.extend(self.all.iter().filter_map(begun));
        for id in gone {
            self.give_up(id, Input::Abort, now);
        }
    }

    /// The next connection that has come to a port of a program.
    pub(in crate::ip) fn accept(&mut self, port: u16, app: AppId) -> Option<ConnectionId> {
        let programs = self.listening.get_mut(&port)?;
        let program = programs.iter_mut().find(|program| program.app == app)?;
        program.accepted.pop_front()
    }

    /// The socket of a connection.
    pub(in crate::ip) fn socket(&mut self, id: ConnectionId, now: Instant) -> Option<Socket<'_>> {
        let connection = self.all.get_mut(&id)?;
        Some(Socket {
            id,
            failure: connection.failure,
            tcp: &mut connection.tcp,
            touched: &mut self.touched,
            turn: &mut connection.turn,
            calls: self.calls.as_mut(),
            now,
        })
    }

    /// Makes calls of programs take time from now on.
    pub(super) fn pace_calls(&mut self) {
        self.calls = Some(Calls::default());
    }

    /// The calls of programs for the CPU.
    pub(super) fn take_calls(&mut self) -> Vec<(ConnectionId, Call)> {
        self.calls.as_mut().map(Calls::take).unwrap_or_default()
    }

    /// The CPU is through with the call of a connection: its program runs. The connection may have ended meanwhile.
    pub(super) fn called(&mut self, id: ConnectionId) {
        if let Some(connection) = self.all.get_mut(&id)
            && let Turn::Working(call) = connection.turn
        {
            connection.turn = Turn::Through(call);
            self.woken.extend(connection.owner);
        }
    }

    /// A program closes a connection in order and gives it up.
    pub(in crate::ip) fn leave(&mut self, id: ConnectionId, now: Instant) {
        self.give_up(id, Input::Leave, now);
    }

    /// A program resets a connection and gives it up.
    pub(in crate::ip) fn abort(&mut self, id: ConnectionId, now: Instant) {
        self.give_up(id, Input::Abort, now);
    }

    fn give_up(&mut self, id: ConnectionId, how: Input<'_>, now: Instant) {
        let Some(connection) = self.all.get_mut(&id) else {
            return;
        };
        connection.owner = None;
        // A connection that has ended already takes nothing any more.
        let _ = connection.tcp.handle_input(how, now);
        let octets = connection.tcp.unacknowledged();
        self.touched.insert(id);
        self.orphan_octets += octets;
        self.orphans.insert(id, octets);
        while (self.orphans.len() > MAX_ORPHANS || self.orphan_octets > MAX_ORPHAN_OCTETS)
            && let Some((oldest, _)) = self.orphans.first_key_value()
        {
            self.counters.orphans_dropped += 1;
            self.remove(*oldest, now);
        }
    }

    /// Takes a segment for the host in a whole packet; `mtu` is that of the path back. A segment of no connection is
    /// answered by the packet that comes back.
    pub(super) fn arrive(
        &mut self,
        packet: &Ipv4View<'_>,
        mtu: usize,
        now: Instant,
    ) -> Option<Vec<u8>> {
        let octets = packet.packet().get(packet.header_len()..)?;
        let (from, to) = (packet.source(), packet.destination());
        let decoded = Segment::decode(octets).ok();
        let Some((segment, data)) = decoded.filter(|_| checksum_ok(octets, from, to)) else {
            self.counters.damaged += 1;
            return None;
        };
        let ends = ends_of(packet, (segment.source, segment.destination));
        let known = self.by_ends.get(&ends).copied();
        let id = known.or_else(|| self.welcome(ends, &segment, mtu, now));
        let Some((id, connection)) = id.and_then(|id| Some((id, self.all.get_mut(&id)?))) else {
            self.counters.strangers += 1;
            let reset = reset_for(&segment, data.len())?;
            return Some(packet_of(&reset, &[], to, from));
        };
        let before = connection.tcp.state();
        // Segments are never refused.
        let _ = connection.tcp.handle_input(
            Input::Segment {
                segment: &segment,
                data,
                marked: packet.ecn() == CONGESTION_EXPERIENCED,
            },
            now,
        );
        if connection.tcp.state() == State::Listen {
            // The peer has taken its SYN back.
            self.remove(id, now);
            return None;
        }
        self.look(id, Some(before));
        None
    }

    /// Begins a connection that a peer wants with a port that has room for it.
    fn welcome(
        &mut self,
        ends: Ends,
        segment: &Segment,
        mtu: usize,
        now: Instant,
    ) -> Option<ConnectionId> {
        let opens = segment.flags.has(Flags::SYN)
            && !segment.flags.has(Flags::ACK)
            && !segment.flags.has(Flags::RST);
        let program = self.listening.get(&ends.0.0).filter(|_| opens)?.first()?;
        let (app, nagle) = (program.app, program.nagle);
        // Connections of a port stand together.
        let first = (ends.0, (0, Ipv4Addr::UNSPECIFIED));
        let of_port = self.by_ends.range(first..).map(|(of, id)| (of.0, *id));
        let of_port = of_port.take_while(|(own, _)| *own == ends.0);
        let served = of_port.filter_map(|(_, id)| Some((id, self.all.get(&id)?)));
        let served = served.filter(|(_, of)| of.passive && of.owner == Some(app));
        let served: Vec<_> = served.map(|(id, of)| (id, of.waits)).collect();
        if served.len() >= MAX_CONNECTIONS {
            let begun = served.iter().filter_map(|(id, waits)| waits.then_some(*id));
            let oldest = begun.min()?;
            self.counters.handshakes_dropped += 1;
            self.remove(oldest, now);
        }
        self.add(ends, app, nagle, mtu, Input::Listen, now)
    }

    /// Takes the events of a connection, and wakes its program; segments are asked for later.
    fn look(&mut self, id: ConnectionId, before: Option<State>) {
        self.touched.insert(id);
        self.hear(id, before);
    }

    /// Takes the events of a connection, and wakes its program.
    fn hear(&mut self, id: ConnectionId, before: Option<State>) {
        let Some(connection) = self.all.get_mut(&id) else {
            return;
        };
        let mut news = before.is_some_and(|before| before != connection.tcp.state());
        while let Some(event) = connection.tcp.poll_event() {
            news = true;
            match event {
                Event::Failed(failure) => connection.failure = Some(failure),
                Event::Connected if connection.waits => {
                    connection.waits = false;
                    let programs = self.listening.get_mut(&connection.ends.0.0);
                    let programs = programs.into_iter().flatten();
                    for program in programs.filter(|of| Some(of.app) == connection.owner) {
                        program.accepted.push_back(id);
                    }
                }
                Event::Connected
                | Event::Readable
                | Event::Writable
                | Event::PeerClosed
                | Event::Closed => {}
            }
        }
        self.woken.extend(connection.owner.filter(|_| news));
    }

    /// Handles timers.
    pub(super) fn timeout(&mut self, now: Instant) {
        if self.deadlines.next().is_none_or(|next| next > now) {
            return;
        }
        for id in self.deadlines.due(now) {
            if let Some(connection) = self.all.get_mut(&id) {
                let before = connection.tcp.state();
                connection.tcp.handle_timeout(now);
                self.look(id, Some(before));
            }
        }
    }

    /// Takes the segments of all connections that have changed.
    pub(super) fn segments(&mut self, packets: &mut VecDeque<Vec<u8>>, now: Instant) {
        for id in self.touched.take() {
            self.hear(id, None);
            let Some(connection) = self.all.get_mut(&id) else {
                continue;
            };
            while let Some(output) = connection.tcp.poll_output() {
                if let Output::Segment {
                    segment,
                    data,
                    markable,
                } = output
                {
                    let (from, to) = (connection.ends.0.1, connection.ends.1.1);
                    let mut packet = packet_of(&segment, &data, from, to);
                    if markable {
                        packet::set_capable(&mut packet);
                    }
                    packets.push_back(packet);
                }
            }
            let unknown = connection.owner.is_none() || connection.waits;
            if connection.tcp.state() == State::Closed && unknown {
                self.remove(id, now);
            } else {
                self.deadlines.set(id, connection.tcp.poll_timeout());
            }
        }
    }

    /// Adds the programs that have news.
    pub(super) fn take_woken(&mut self, into: &mut News<AppId>) {
        into.extend(self.woken.take());
    }

    /// True if no segment and no news wait.
    pub(super) fn is_settled(&self) -> bool {
        self.touched.is_empty() && self.woken.is_empty()
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.deadlines.next()
    }
}

/// The connection of a program.
pub(in crate::ip) struct Socket<'a> {
    id: ConnectionId,
    tcp: &'a mut Tcp,
    touched: &'a mut News<ConnectionId>,
    turn: &'a mut Turn,
    calls: Option<&'a mut Calls>,
    /// Why it has failed, if it has.
    pub(in crate::ip) failure: Option<Failure>,
    now: Instant,
}

impl Socket<'_> {
    pub(in crate::ip) const fn state(&self) -> State {
        self.tcp.state()
    }

    /// True if the peer may send more, or has sent what was not read.
    pub(in crate::ip) fn is_open(&self) -> bool {
        let sends = matches!(
            self.tcp.state(),
            State::Established | State::FinWait1 | State::FinWait2
        );
        sends || self.tcp.unread() > 0
    }

    /// True if data can be written.
    pub(in crate::ip) const fn is_up(&self) -> bool {
        matches!(self.tcp.state(), State::Established | State::CloseWait)
    }

    /// Octets that can be read; 0 while the program waits for a call.
    pub(in crate::ip) fn unread(&self) -> usize {
        let may = self.may(CallKind::Read);
        if may { self.tcp.unread() } else { 0 }
    }

    /// Octets that fit the send buffer; 0 if the connection takes none, and while the program waits for a call.
    pub(in crate::ip) fn room(&self) -> usize {
        let may = self.is_up() && self.may(CallKind::Write);
        if may { self.tcp.room() } else { 0 }
    }

    fn may(&self, kind: CallKind) -> bool {
        self.calls.is_none() || self.turn.allows(kind)
    }

    /// Octets that a call of the program moves now: none until the CPU is through with it, if calls take time.
    fn call(&mut self, kind: CallKind, octets: usize) -> usize {
        match &mut self.calls {
            Some(calls) => calls.moves(self.id, self.turn, Call { kind, octets }),
            None => octets,
        }
    }

    /// Octets that were written and are not acknowledged.
    pub(in crate::ip) fn unacknowledged(&self) -> usize {
        self.tcp.unacknowledged()
    }

    /// Writes as many of the octets as there is room for; gives their number. If calls take time, it is 0 at first, and
    /// the program runs again once the CPU is through with the call.
    pub(in crate::ip) fn write(&mut self, octets: &[u8]) -> usize {
        let count = self.call(CallKind::Write, octets.len().min(self.room()));
        let written = octets.get(..count).filter(|written| !written.is_empty());
        let Some(written) = written else { return 0 };
        let taken = self.tcp.handle_input(Input::Write(written), self.now);
        self.touched.insert(self.id);
        if taken.is_ok() { count } else { 0 }
    }

    /// Reads at most `most` octets. If calls take time, this gives none at first, as [`Self::write`].
    pub(in crate::ip) fn read(&mut self, most: usize) -> Vec<u8> {
        let count = self.call(CallKind::Read, most.min(self.unread()));
        if count == 0 {
            return Vec::new();
        }
        self.touched.insert(self.id);
        self.tcp.read(count, self.now)
    }

    /// Ends the sending direction.
    pub(in crate::ip) fn close(&mut self) {
        // A connection that has ended already takes nothing any more.
        let _ = self.tcp.handle_input(Input::Close, self.now);
        self.touched.insert(self.id);
    }
}

/// The ends of the connection of a segment that has arrived, whose ports are source and destination.
fn ends_of(packet: &Ipv4View<'_>, ports: (u16, u16)) -> Ends {
    ((ports.1, packet.destination()), (ports.0, packet.source()))
}

/// The packet of a segment, with room for an Ethernet header in front.
fn packet_of(segment: &Segment, data: &[u8], from: Ipv4Addr, to: Ipv4Addr) -> Vec<u8> {
    let length = segment.header_len() + data.len();
    let mut packet = packet::begin(from, to, TCP, TIME_TO_LIVE, length);
    segment.encode(data, from, to, &mut packet);
    packet
}

#[cfg(test)]
mod tests;
