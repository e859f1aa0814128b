//! An embedded IPv4 host: Ethernet interfaces, TCP, UDP and ICMP, and programs on top.
//!
//! **Objects.** [`Stack`] owns the connections of TCP (`connections`), the ports of UDP, the programs ([`super::apps`])
//! and the Ethernet side (`link`): routes, ARP and the packets that wait for it. The node owns the stack, passes it the
//! frames that reach the interface and sends the frames that it outputs. The stack answers ARP and ping by itself.
//!
//! **Several interfaces.** The route of a packet names the interface that sends it. A connection has segments for the
//! MTU of the interface towards its peer.
//!
//! **Path of a packet.** Program → TCP or UDP → route (subnet, the host's routes, default router) → ARP → frame. A
//! packet that the host drops on this path is output with its [`Place`]: `packets = frames of packets + looped +
//! discarded + waiting` at all times. A packet to the host's own address returns to the host.
//!
//! **Order at one instant.** What has arrived goes to its connection and wakes its program; the program runs; then the
//! connection makes segments, and what returns to the host arrives in turn. A host that talks to itself without end at
//! one instant waits for [`STALL_RETRY`] after some rounds, and counts it.
//!
//! **Identification.** The stack numbers its packets as Linux does, so that a measurement can distinguish a segment
//! from its retransmission. No packet may be fragmented, as RFC 1191 asks, until a path is known to be narrower.
//!
//! **Standards**: RFC 826, 791, 792, 768, 1122; those of TCP: [`aerostat_proto::tcp`]. **Fragments**: see
//! [`super::fragments`]; datagrams above the MTU of an interface are refused where they are made, and a tunnel below
//! cuts what it has to. **Not implemented**: IPv6; the limits of `docs/tcp.md`. **Deviations** of ARP from Linux: see
//! [`super::neighbours`]; errors of ICMP are not limited by a rate. A program is not told that its packets are dropped.

mod calls;
mod connections;
mod link;
mod news;
mod programs;

pub use super::tcp::TcpOptions;
pub use calls::{Call, CallKind};
pub use connections::{ConnectionId, ConnectionView, MAX_CONNECTIONS, MAX_ORPHANS, TcpCounters};
pub(super) use connections::{Connections, Socket};
pub(super) use link::Link;
pub use link::Place;

use super::apps::{App, AppCommand, AppId, AppKind, AppResult, AppSpec, Net, Offer};
use super::clock::Clock;
use super::fragments::{FragmentCounters, Fragments};
use super::icmp::{self, Answer, Echo};
use super::meter::FlowId;
use super::neighbours::{ArpParams, NeighbourCounters, NeighbourView};
use super::packet::{self, ETHERNET_HEADER, Frame};
use super::routes::StaticRoute;
use super::udp::{Datagram, Udp};
use crate::random;
use aerostat_proto::tcp::Counters;
use aerostat_proto::{Duration, Instant, Machine, Refused, Trace};
use aerostat_wire::ipv4::{ICMP, Ipv4View, TCP, UDP};
use link::LinkOutput;
use news::News;
use programs::Programs;
use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;

/// How long to wait when a host that talks to itself has not finished.
pub const STALL_RETRY: Duration = Duration::from_millis(1);
/// Limit of rounds at one instant in which programs and network are served alternately, besides one for each write that
/// a send buffer holds.
const ROUNDS: usize = 64;
/// Limit of programs on one host.
const MAX_APPS: usize = 2 * 10_000 + 1024;

/// Configuration of a host.
#[derive(Clone, Debug)]
pub struct StackConfig {
    /// The node's name; with `seed` it selects the random streams.
    pub name: String,
    /// Hardware address of the interface; unicast.
    pub mac: [u8; 6],
    /// IPv4 address.
    pub address: Ipv4Addr,
    /// Prefix length of the subnet, 0–32.
    pub prefix: u8,
    /// Routes in addition to that to the subnet. The longest prefix is used, and of equal prefixes the first. A route
    /// with prefix length 0 leads to the default router.
    pub routes: Vec<StaticRoute>,
    /// Permanent neighbours, which are never requested: addresses on the subnet, and their unicast hardware addresses.
    pub neighbours: Vec<(Ipv4Addr, [u8; 6])>,
    /// Largest IP datagram, octets; 576–65521 (the limit of LANE is 18174, that of Classical IP is higher).
    pub mtu: usize,
    /// Interfaces besides the first one, at most [`MAX_INTERFACES`] less one; a route's next hop is on the subnet of
    /// any.
    pub further: Vec<StackInterface>,
    /// TCP of the host.
    pub tcp: TcpOptions,
    /// Earlier starts of the host: it selects the source ports of its connections.
    pub life: u32,
    /// Seed of the run.
    pub seed: u64,
}

/// Limit of interfaces of a host.
pub const MAX_INTERFACES: usize = 8;

/// An interface of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackInterface {
    /// Hardware address; unicast.
    pub mac: [u8; 6],
    /// IPv4 address.
    pub address: Ipv4Addr,
    /// Prefix length of the subnet, 0–32.
    pub prefix: u8,
    /// Largest IP datagram, octets; 576–65521.
    pub mtu: usize,
}

impl StackConfig {
    /// All interfaces, by number.
    pub fn interfaces(&self) -> impl Iterator<Item = StackInterface> {
        let first = StackInterface {
            mac: self.mac,
            address: self.address,
            prefix: self.prefix,
            mtu: self.mtu,
        };
        core::iter::once(first).chain(self.further.iter().copied())
    }

    /// Largest IP datagram of any interface, octets.
    #[must_use]
    pub fn most_mtu(&self) -> usize {
        self.interfaces().map(|itf| itf.mtu).max().unwrap_or(0)
    }
}

/// Inputs of a [`Stack`].
#[derive(Debug)]
pub enum StackInput<'a> {
    /// An Ethernet frame that reached an interface.
    Frame {
        /// The interface's number.
        interface: usize,
        /// From destination address to end of payload.
        bytes: &'a [u8],
    },
    /// A command to the programs.
    App(AppCommand),
    /// The CPU is through with the call of this connection's program ([`StackOutput::Call`]).
    Called(ConnectionId),
}

impl<'a> StackInput<'a> {
    /// A frame that reached the first interface.
    #[must_use]
    pub const fn of_first(bytes: &'a [u8]) -> Self {
        let interface = 0;
        Self::Frame { interface, bytes }
    }
}

/// Outputs of a [`Stack`].
#[derive(Clone, Debug, PartialEq)]
pub enum StackOutput {
    /// An Ethernet frame to send, without padding and check sequence.
    Frame {
        /// The interface's number.
        interface: usize,
        /// From destination address to end of payload.
        bytes: Vec<u8>,
    },
    /// A program wanted to send a packet. This comes before the frame of the packet.
    Offered(AppId, Offer),
    /// A program has ended with this result.
    Finished(AppId, AppResult),
    /// The host dropped a packet of its own.
    Discarded {
        /// Place of the drop.
        place: Place,
        /// The packet as it would have been sent, with an Ethernet header whose destination is unknown (0).
        frame: Vec<u8>,
    },
    /// A program has made a call that takes time of the CPU; it waits for [`StackInput::Called`].
    Call(ConnectionId, Call),
    /// A trace event.
    Trace(Trace),
}

/// Counters of the interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StackCounters {
    /// Frames given to the interface.
    pub frames_in: u64,
    /// Octets of these frames.
    pub octets_in: u64,
    /// Frames sent.
    pub frames_out: u64,
    /// Octets of these frames.
    pub octets_out: u64,
    /// Frames that were not passed to the stack: cut short, or from an impossible source.
    pub malformed: u64,
    /// Frames that were not passed to the stack: for another station, or neither IPv4 nor ARP.
    pub ignored: u64,
    /// IP packets made here.
    pub packets: u64,
    /// Of these, packets to the host itself.
    pub looped: u64,
    /// Of these, packets dropped at [`Place::Arp`]; [`Stack::arp`] has the reasons.
    pub discarded_arp: u64,
    /// Of these, packets dropped at [`Place::Route`].
    pub discarded_route: u64,
    /// How often the stack was kept from spinning; see [`STALL_RETRY`].
    pub stalls: u64,
}

/// An embedded host.
pub struct Stack {
    config: StackConfig,
    link: Link,
    apps: Programs,
    tcp: Connections,
    udp: Udp,
    /// The programs that send echo requests, by the identifier.
    pings: BTreeMap<u16, AppId>,
    /// Packets to be sent, with room for an Ethernet header in front.
    sent: VecDeque<Vec<u8>>,
    /// Programs that have work left once the network was served, or that have heard a reply.
    again: News<AppId>,
    /// The clock that everything here goes by.
    clock: Clock,
    output: VecDeque<StackOutput>,
    deadline: Option<Instant>,
    next_ident: u16,
    /// Fragments that wait for each other, and MTUs of paths.
    fragments: Fragments,
    /// Writes of one program that the send buffer of a connection holds.
    writes: usize,
    counters: StackCounters,
}

impl Stack {
    /// A host at `now`.
    ///
    /// # Errors
    /// If the addresses or the MTU are not valid.
    pub fn new(config: StackConfig) -> Result<Self, Refused> {
        check(&config)?;
        Ok(Self {
            next_ident: hardware_ident(&config),
            writes: 0,
            link: Link::new(&config)?,
            tcp: Connections::new(&config),
            config,
            apps: Programs::default(),
            udp: Udp::default(),
            pings: BTreeMap::new(),
            sent: VecDeque::new(),
            again: News::default(),
            clock: Clock::default(),
            output: VecDeque::new(),
            fragments: Fragments::default(),
            deadline: None,
            counters: StackCounters::default(),
        })
    }

    /// The same host with other timers and limits of ARP.
    #[must_use]
    pub fn with_arp(mut self, params: ArpParams) -> Self {
        self.link.set_arp(params);
        self
    }

    /// The same host with a clock of its own.
    #[must_use]
    pub const fn with_clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// The same host with programs whose writes and reads take time of the CPU ([`StackOutput::Call`]).
    #[must_use]
    pub fn with_paced_calls(mut self) -> Self {
        self.tcp.pace_calls();
        self
    }

    /// Its clock.
    #[must_use]
    pub const fn clock(&self) -> Clock {
        self.clock
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &StackConfig {
        &self.config
    }

    /// The counters of the interface.
    #[must_use]
    pub fn counters(&self) -> &StackCounters {
        &self.counters
    }

    /// The counters of fragments and paths.
    #[must_use]
    pub const fn fragment_counters(&self) -> FragmentCounters {
        self.fragments.counters
    }

    /// Puts the fragments of a datagram together: takes a frame for this host, and gives a frame with a whole datagram,
    /// or nothing while fragments are missing.
    pub fn whole(&mut self, frame: Vec<u8>, now: Instant) -> Option<Vec<u8>> {
        let is_fragment = frame.get(12..14) == Some(&[8, 0])
            && frame
                .get(20..22)
                .is_some_and(|place| (place[0] & 0x3f) != 0 || place[1] != 0);
        if !is_fragment {
            return Some(frame);
        }
        let (header, packet) = frame.split_at(ETHERNET_HEADER);
        let now = self.clock.local(now);
        let whole = self.fragments.take(packet.to_vec(), now)?;
        Some([header, &whole].concat())
    }

    /// The table of neighbours of an interface, and its counters; `None` if there is no such interface.
    #[must_use]
    pub fn arp(&self, interface: usize) -> Option<(Vec<NeighbourView>, NeighbourCounters)> {
        self.link.arp(interface)
    }

    /// The result of a program so far; final once it has ended. `None` if there is no such program.
    #[must_use]
    pub fn report(&self, app: AppId) -> Option<AppResult> {
        self.apps.get(app).map(App::result)
    }

    /// True if a program has ended; `None` if there is no such program.
    #[must_use]
    pub fn is_over(&self, app: AppId) -> Option<bool> {
        self.apps.get(app).map(App::is_over)
    }

    /// The results of all programs so far.
    pub fn reports(&self) -> impl Iterator<Item = (AppId, AppResult)> {
        self.apps.results()
    }

    /// False if a frame holds a datagram for which no program listens, which the stack answers with ICMP port
    /// unreachable, or data of a TCP connection that does not exist, which the stack answers with a reset.
    #[must_use]
    pub fn hears(&self, frame: &[u8]) -> bool {
        let frame = Frame::of(frame).filter(|frame| frame.kind == packet::IPV4);
        let packet = frame.and_then(|frame| Ipv4View::new(frame.payload));
        let Some((packet, (_, to))) = packet.and_then(|packet| Some((packet, packet.ports()?)))
        else {
            return true;
        };
        match packet.protocol() {
            UDP => self.udp.is_open(to),
            _ => self.tcp.knows(&packet),
        }
    }

    /// The connections of TCP: those that have ended, then the others, the oldest first.
    pub fn connections(&self) -> impl Iterator<Item = ConnectionView> {
        self.tcp.views()
    }

    /// Adds the counters of TCP: those of all connections, ended ones included, and those of the host.
    pub fn add_tcp_counters(&self, connections: &mut Counters, host: &mut TcpCounters) {
        self.tcp.add_counters(connections, host);
    }

    fn command(&mut self, command: AppCommand, now: Instant) -> Result<(), Refused> {
        match command {
            AppCommand::Start(spec) => {
                if self.apps.get(spec.id).is_some() {
                    return Err(Refused("this program number is in use"));
                }
                if self.apps.len() >= MAX_APPS {
                    return Err(Refused("too many programs"));
                }
                let id = spec.id;
                if let AppKind::TcpSource {
                    write: Some(octets),
                    ..
                } = spec.kind
                {
                    let writes = self.config.tcp.params.send.most / octets.max(1);
                    self.writes = self.writes.max(writes + 1);
                }
                // Senders go by the host's clock; receivers are there when the lab says so.
                let start = match FlowId::of_sender(id) {
                    Some(_) => self.clock.start(spec.start),
                    None => self.clock.local(spec.start),
                };
                let spec = AppSpec { start, ..spec };
                let app = App::new(spec, &self.config, now)?;
                self.apps.insert(id, app);
            }
            AppCommand::Stop(id) => match self.apps.change(id, |app| app.stop(now)) {
                Some(()) => {}
                None => return Err(Refused("no such program")),
            },
            AppCommand::Forget(id) => match self.apps.get(id) {
                Some(app) if app.is_over() => self.apps.remove(id),
                Some(_) => return Err(Refused("this program has not ended")),
                None => return Err(Refused("no such program")),
            },
        }
        Ok(())
    }

    /// Takes a frame, and passes its packet on unless no host can have sent it.
    fn accept(&mut self, interface: usize, bytes: &[u8], now: Instant) {
        self.counters.frames_in += 1;
        self.counters.octets_in += bytes.len() as u64;
        let Some(frame) = Frame::of(bytes) else {
            self.counters.malformed += 1;
            return;
        };
        let own = self.link.mac(interface);
        let good = match frame.kind {
            _ if !packet::is_group(frame.to) && Some(frame.to) != own => {
                self.counters.ignored += 1;
                true
            }
            packet::ARP => self.link.hear_arp(interface, frame.payload, now),
            packet::IPV4 => match possible(frame.payload, &self.config) {
                Some(packet) => {
                    let own = |ip| self.config.interfaces().any(|itf| itf.address == ip);
                    self.fragments.hear(frame.payload, own, now);
                    self.deliver(&packet, now);
                    true
                }
                None => false,
            },
            _ => {
                self.counters.ignored += 1;
                true
            }
        };
        self.counters.malformed += u64::from(!good);
    }

    /// Gives a packet to the program whose datagram or reply it is, or to TCP, or answers it.
    fn deliver(&mut self, packet: &Ipv4View<'_>, now: Instant) {
        let to = packet.destination();
        let is_own = self.config.interfaces().any(|itf| itf.address == to);
        let for_all = is_broadcast(to, &self.config);
        let fragment = packet.more_fragments() || packet.fragment_offset() > 0;
        if !(is_own || for_all) || fragment || !packet.checksum_ok() {
            return;
        }
        let reply = match packet.protocol() {
            TCP if is_own => {
                let mtu = self.link.mtu_towards(packet.source());
                self.tcp.arrive(packet, mtu, now)
            }
            UDP => match self.udp.receive(packet.packet(), |_| true) {
                Some(Datagram { to, from, payload }) => {
                    if let Some(payload) = payload {
                        self.apps.hear(to, payload, from, now);
                    }
                    None
                }
                None => complaint(packet, Answer::PortUnreachable, is_own),
            },
            ICMP => self.hear_icmp(packet, is_own, now),
            TCP => None,
            _ => complaint(packet, Answer::ProtocolUnreachable, is_own),
        };
        self.sent.extend(reply);
    }

    /// Answers an echo request, and gives a reply to the program that waits for it.
    fn hear_icmp(&mut self, packet: &Ipv4View<'_>, is_own: bool, now: Instant) -> Option<Vec<u8>> {
        let echo = Echo::of(packet)?;
        if echo.is_request {
            let from = if is_own {
                packet.destination()
            } else {
                self.config.address
            };
            return icmp::echo_reply(packet, from);
        }
        let app = *self.pings.get(&echo.ident)?;
        self.apps.hear_echo(app, &echo, packet.source(), now);
        self.again.insert(app);
        None
    }

    /// Serves network and programs until neither has work left at `now`.
    fn run(&mut self, now: Instant) {
        let mut settled = false;
        self.link.timeout(now);
        for _ in 0..ROUNDS + self.writes {
            self.tcp.timeout(now);
            self.run_apps(now);
            self.tcp.segments(&mut self.sent, now);
            let looped = self.take_packets(now);
            self.take_frames();
            if !looped && self.again.is_empty() && self.tcp.is_settled() {
                settled = true;
                break;
            }
        }
        let deadlines = [
            self.tcp.deadline(),
            self.apps.deadline(),
            self.link.deadline(),
        ];
        let next = deadlines.into_iter().flatten().min();
        self.deadline = match next {
            Some(at) if at > now && settled => Some(at),
            None if settled => None,
            _ => {
                self.counters.stalls += 1;
                Some(now + STALL_RETRY)
            }
        };
    }

    fn run_apps(&mut self, now: Instant) {
        self.tcp.take_woken(&mut self.again);
        self.apps.take_due(&mut self.again, now);
        let to_run = self.again.take();
        let mut offers = Vec::new();
        let mut net = Net {
            app: AppId(0),
            now,
            link: &self.link,
            tcp: &mut self.tcp,
            udp: &mut self.udp,
            pings: &mut self.pings,
            sent: &mut self.sent,
            offers: &mut offers,
        };
        for id in to_run {
            net.app = id;
            let ran = self.apps.change(id, |app| {
                let was_over = app.is_over();
                let again = app.run(&mut net, now);
                (again, (app.is_over() && !was_over).then(|| app.result()))
            });
            let Some((again, result)) = ran else { continue };
            if again {
                self.again.insert(id);
            }
            let offered = net.offers.drain(..);
            self.output
                .extend(offered.map(|offer| StackOutput::Offered(id, offer)));
            let finished = result.map(|result| StackOutput::Finished(id, result));
            self.output.extend(finished);
        }
        let calls = self.tcp.take_calls().into_iter();
        self.output
            .extend(calls.map(|(on, call)| StackOutput::Call(on, call)));
    }

    /// Hands packets to the Ethernet side; true if some of them returned to this host.
    fn take_packets(&mut self, now: Instant) -> bool {
        let mut looped = false;
        for mut frame in std::mem::take(&mut self.sent) {
            let packet = &mut frame[ETHERNET_HEADER..];
            packet[6] |= 0x40;
            packet::number(packet, self.next_ident);
            self.next_ident = self.next_ident.wrapping_add(1);
            self.fragments.permit(packet, now);
            self.counters.packets += 1;
            if let Some(own) = self.link.send(frame, now) {
                self.counters.looped += 1;
                if let Some(packet) = packet::view(&own) {
                    self.deliver(&packet, now);
                }
                looped = true;
            }
        }
        looped
    }

    fn take_frames(&mut self) {
        while let Some(output) = self.link.poll_output() {
            self.output.push_back(match output {
                LinkOutput::Frame(interface, bytes) => {
                    self.counters.frames_out += 1;
                    self.counters.octets_out += bytes.len() as u64;
                    StackOutput::Frame { interface, bytes }
                }
                LinkOutput::Discarded(place, frame) => {
                    *match place {
                        Place::Arp => &mut self.counters.discarded_arp,
                        Place::Route => &mut self.counters.discarded_route,
                    } += 1;
                    StackOutput::Discarded { place, frame }
                }
                LinkOutput::Trace(trace) => StackOutput::Trace(trace),
            });
        }
    }
}

impl Machine for Stack {
    type Input<'a> = StackInput<'a>;
    type Output = StackOutput;
    type Refusal = Refused;

    fn handle_input(&mut self, input: StackInput<'_>, now: Instant) -> Result<(), Refused> {
        let now = self.clock.local(now);
        match input {
            StackInput::Frame { interface, bytes } => self.accept(interface, bytes, now),
            StackInput::App(command) => self.command(command, now)?,
            StackInput::Called(connection) => self.tcp.called(connection),
        }
        self.run(now);
        Ok(())
    }

    fn handle_timeout(&mut self, now: Instant) {
        let now = self.clock.local(now);
        if self.deadline.is_some_and(|at| at <= now) {
            self.run(now);
        }
    }

    fn poll_output(&mut self) -> Option<StackOutput> {
        self.output.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.deadline.map(|at| self.clock.of_lab(at))
    }
}

fn check(config: &StackConfig) -> Result<(), Refused> {
    if config.further.len() >= MAX_INTERFACES {
        return Err(Refused("a host has at most 8 interfaces"));
    }
    for itf in config.interfaces() {
        if !packet::is_station(itf.mac) {
            return Err(Refused("the hardware address of a host is unicast"));
        }
        if itf.prefix > 32 {
            return Err(Refused("an IPv4 prefix has at most 32 bits"));
        }
        if !is_unicast(itf.address) {
            return Err(Refused("the address of a host is unicast"));
        }
        if !(576..=65_521).contains(&itf.mtu) {
            return Err(Refused("the MTU is between 576 and 65521 octets"));
        }
    }
    let params = &config.tcp.params;
    let buffers = [
        params.receive.buffer,
        params.receive.most,
        params.send.buffer,
        params.send.most,
    ];
    if buffers.contains(&0) {
        return Err(Refused("a TCP buffer holds at least one octet"));
    }
    if buffers.iter().any(|size| *size > 1 << 30) {
        return Err(Refused("a TCP buffer holds at most 1 GiB"));
    }
    if params.mss < 48 {
        return Err(Refused("a TCP segment holds at least 48 octets"));
    }
    Ok(())
}

fn is_unicast(address: Ipv4Addr) -> bool {
    !address.is_unspecified() && !address.is_multicast() && !address.is_broadcast()
}

fn hardware_ident(config: &StackConfig) -> u16 {
    random::derived_seed(config.seed, &config.name, "ip-ident") as u16
}

/// The packet, if another host can have sent it to this one.
fn possible<'a>(packet: &'a [u8], own: &StackConfig) -> Option<Ipv4View<'a>> {
    let packet = Ipv4View::new(packet)?;
    let source = packet.source();
    let other = is_unicast(source)
        && !is_broadcast(source, own)
        && own.interfaces().all(|itf| itf.address != source);
    other.then_some(packet)
}

/// True for the limited broadcast and that of a subnet of the host.
fn is_broadcast(to: Ipv4Addr, own: &StackConfig) -> bool {
    let of_subnet = |itf: StackInterface| {
        // RFC 3021: a subnet of two addresses has no broadcast.
        let hosts = !packet::mask(itf.prefix);
        itf.prefix < 31 && to.to_bits() == itf.address.to_bits() | hosts
    };
    to.is_broadcast() || own.interfaces().any(of_subnet)
}

/// An error about a packet to an address of the host's own, unless none may be sent.
fn complaint(packet: &Ipv4View<'_>, answer: Answer, is_own: bool) -> Option<Vec<u8>> {
    let may = is_own && icmp::may_complain(packet);
    may.then(|| icmp::error(packet, answer, packet.destination()))
}
