//! An embedded IPv4 host: Ethernet interfaces, TCP, UDP and ICMP by smoltcp, and programs on top.
//!
//! **Objects.** [`Stack`] owns the smoltcp interface and sockets, the programs ([`super::apps`]) and the Ethernet side
//! (`link`): routes, ARP and the packets that wait for it. smoltcp knows IP packets only. The node owns the stack,
//! passes it the frames that reach the interface and sends the frames that it outputs. The stack answers ARP and ping
//! by itself. Datagrams of its programs do not pass smoltcp (`udp.rs`).
//!
//! **Several interfaces.** smoltcp has one interface with the addresses of all, and the largest MTU of them. The route of
//! a packet names the interface that sends it. Segments with SYN get the maximum segment size of their interface in
//! both directions (`syn`), so TCP keeps to the MTU of each.
//!
//! **Path of a packet.** Program → smoltcp → route (subnet, the host's routes, default router) → ARP → frame. A packet
//! that the host drops on this path is output with its [`Place`]: `packets = frames of packets + looped + discarded +
//! waiting` at all times. A packet to the host's own address returns to the host.
//!
//! **Time.** smoltcp counts microseconds. Times are rounded down for smoltcp, so that its deadlines are always in the
//! future. If smoltcp wants to be polled again at once although it was just polled, the stack waits for [`STALL_RETRY`]
//! and counts the event, instead of spinning.
//!
//! **Identification.** smoltcp sends every datagram with identification 0, which RFC 6864 allows for atomic datagrams.
//! The stack numbers them as Linux does, so that a measurement can distinguish a segment from its retransmission.
//!
//! **Standards**: RFC 826, 791, 792, 768, 9293 (window scale RFC 7323), 5681 (Reno), 9438 (CUBIC); see smoltcp for
//! details. **Fragments**: see [`super::fragments`]; datagrams above the MTU of an interface are refused where they are
//! made, and a tunnel below cuts what it has to. **Not implemented**: IPv6; [`super::tcp`] has the limits of TCP. **Deviations** of ARP from Linux: see [`super::neighbours`]. A program is not told that its packets are
//! dropped.

mod device;
mod link;
mod programs;
mod syn;

pub use super::tcp::{AckDelay, Congestion, TcpOptions};
pub use link::Place;

use super::apps::{App, AppCommand, AppId, AppKind, AppResult, AppSpec, Net, Offer};
use super::clock::Clock;
use super::fragments::{FragmentCounters, Fragments};
use super::meter::FlowId;
use super::neighbours::{ArpParams, NeighbourCounters, NeighbourView};
use super::packet::ETHERNET_HEADER;
use super::random;
use super::routes::StaticRoute;
use super::tcp::{micros, set_clock, until_tick};
use super::udp::{Datagram, Udp};
use aerostat_proto::{Duration, Instant, Machine, Refused, Trace};
use device::Queues;
use link::{Link, LinkOutput};
use programs::Programs;
use smoltcp::iface::{Config, Interface, PollResult, SocketHandle, SocketSet};
use smoltcp::socket::{Socket, tcp};
use smoltcp::wire::{
    EthernetAddress, EthernetFrame, EthernetProtocol, HardwareAddress, IpCidr, IpEndpoint,
    IpProtocol, Ipv4Cidr, Ipv4Packet, TcpPacket, UdpPacket,
};
use std::collections::VecDeque;
use std::net::Ipv4Addr;
use syn::Syn;

/// How long to wait when smoltcp wants to be polled again although it has no work.
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
    /// Interfaces besides the first one, at most [`MAX_INTERFACES`] less one; a route's next hop is on the subnet of any.
    pub further: Vec<StackInterface>,
    /// Options of TCP sockets.
    pub tcp: TcpOptions,
    /// Earlier starts of the host: it selects the source ports of its connections.
    pub life: u32,
    /// Seed of the run.
    pub seed: u64,
}

/// Limit of interfaces of a host: so many addresses smoltcp is built for.
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
    interface: Interface,
    sockets: SocketSet<'static>,
    queues: Queues,
    link: Link,
    apps: Programs,
    udp: Udp,
    /// The clock that everything here goes by.
    clock: Clock,
    /// Sockets that their program has given up; they are removed once closed.
    retired: Vec<SocketHandle>,
    output: VecDeque<StackOutput>,
    deadline: Option<Instant>,
    next_ident: u16,
    /// Fragments that wait for each other, and MTUs of paths.
    fragments: Fragments,
    /// What changes in segments with SYN, by interface.
    syn: Vec<Option<Syn>>,
    /// The time of any tick of delayed acknowledgements.
    phase: Duration,
    /// Writes of one program that the send buffer of a connection holds.
    writes: usize,
    counters: StackCounters,
}

impl Stack {
    /// A host at `now`.
    ///
    /// # Errors
    /// If the addresses or the MTU are not valid.
    pub fn new(config: StackConfig, now: Instant) -> Result<Self, Refused> {
        check(&config)?;
        let link = Link::new(&config)?;
        let most = config.most_mtu();
        let mut queues = Queues::new(most);
        let mut hardware = Config::new(HardwareAddress::Ip);
        hardware.random_seed = random::derived_seed(config.seed, &config.name, "ip-stack");
        let mut interface = Interface::new(hardware, &mut queues, to_smoltcp(now));
        let mut fits = true;
        for itf in config.interfaces() {
            let cidr = IpCidr::Ipv4(Ipv4Cidr::new(itf.address, itf.prefix));
            interface.update_ip_addrs(|table| fits &= table.push(cidr).is_ok());
        }
        debug_assert!(fits, "smoltcp has room for {MAX_INTERFACES} addresses");
        let syn = config.interfaces();
        let syn = syn.map(|itf| Syn::of(&config.tcp, (itf.mtu < most).then_some(itf.mtu)));
        Ok(Self {
            next_ident: hardware_ident(&config),
            syn: syn.collect(),
            phase: phase(&config),
            writes: 0,
            config,
            interface,
            sockets: SocketSet::new(Vec::new()),
            queues,
            link,
            apps: Programs::default(),
            udp: Udp::default(),
            clock: Clock::default(),
            retired: Vec::new(),
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

    /// Puts the fragments of a datagram together: takes a frame for this host, and gives a frame with a whole datagram, or
    /// nothing while fragments are missing.
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
        match transport(frame) {
            Some(Transport::Datagram { to }) => self.udp.is_open(to),
            Some(Transport::Segment { from, to }) => {
                let ends = Some((Some(from), to));
                self.sockets.iter().any(|(_, socket)| match socket {
                    Socket::Tcp(socket) => {
                        let local = socket.local_endpoint();
                        local.map(|local| (socket.remote_endpoint(), local.port)) == ends
                    }
                    _ => false,
                })
            }
            None => true,
        }
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
                    let writes = self.config.tcp.send_buffer / octets.max(1);
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

    /// Passes a packet to smoltcp, unless no host can have sent it: smoltcp asserts that it never answers to the
    /// unspecified address.
    fn accept(&mut self, interface: usize, bytes: &[u8], now: Instant) {
        self.counters.frames_in += 1;
        self.counters.octets_in += bytes.len() as u64;
        let Ok(frame) = EthernetFrame::new_checked(bytes) else {
            self.counters.malformed += 1;
            return;
        };
        let to = frame.dst_addr();
        let own = self.link.mac(interface);
        let good = match frame.ethertype() {
            _ if !to.is_broadcast() && !to.is_multicast() && Some(to.0) != own => {
                self.counters.ignored += 1;
                true
            }
            EthernetProtocol::Arp => self.link.hear_arp(interface, frame.payload(), now),
            EthernetProtocol::Ipv4 => {
                let good = possible(frame.payload(), &self.config);
                if good {
                    let own = |ip| self.config.interfaces().any(|itf| itf.address == ip);
                    self.fragments.hear(frame.payload(), own, now);
                    let mut bytes = bytes.to_vec();
                    if let Some(syn) = self.syn.get(interface).copied().flatten() {
                        syn.apply(&mut bytes[ETHERNET_HEADER..]);
                    }
                    self.deliver(bytes, now);
                }
                good
            }
            _ => {
                self.counters.ignored += 1;
                true
            }
        };
        self.counters.malformed += u64::from(!good);
    }

    /// Gives a packet with room for an Ethernet header in front to the program whose datagram it is, or to smoltcp.
    fn deliver(&mut self, packet: Vec<u8>, now: Instant) {
        let own = |to: Ipv4Addr| {
            let mut interfaces = self.config.interfaces();
            to.is_broadcast()
                || interfaces.any(|itf| {
                    let subnet = Ipv4Cidr::new(itf.address, itf.prefix);
                    itf.address == to || subnet.broadcast() == Some(to)
                })
        };
        let body = packet.get(ETHERNET_HEADER..).unwrap_or_default();
        match self.udp.receive(body, own) {
            Some(Datagram { to, from, payload }) => {
                if let Some(payload) = payload {
                    self.apps.hear(to, payload, from, now);
                }
            }
            None => self.queues.received.push_back(packet),
        }
    }

    /// Serves network and programs until neither has work left at `now`.
    fn run(&mut self, now: Instant) {
        let at = to_smoltcp(now);
        let mut settled = false;
        self.link.timeout(now);
        if self.config.tcp.timestamps {
            set_clock(now);
        }
        for _ in 0..ROUNDS + self.writes {
            self.set_ticks(now);
            let changed = self.interface.poll(at, &mut self.queues, &mut self.sockets);
            let looped = self.take_packets(now);
            self.take_frames();
            let moved = self.run_apps(now) || looped;
            if !moved && changed == PollResult::None {
                settled = true;
                break;
            }
        }
        self.bury();
        let network = self
            .interface
            .poll_at(at, &self.sockets)
            .map(|at| Instant::from_nanos(u64::try_from(at.total_micros()).unwrap_or(0) * 1000));
        let next = [network, self.apps.deadline(), self.link.deadline()]
            .into_iter()
            .flatten()
            .min();
        self.deadline = match next {
            Some(at) if at > now && settled => Some(at),
            None if settled => None,
            _ => {
                self.counters.stalls += 1;
                Some(now + STALL_RETRY)
            }
        };
    }

    /// With a clock of delayed acknowledgements: data that smoltcp reads now are acknowledged at the next tick.
    fn set_ticks(&mut self, now: Instant) {
        let AckDelay::Tick(tick) = self.config.tcp.ack_delay else {
            return;
        };
        if self.queues.received.is_empty() {
            return;
        }
        let delay = micros(until_tick(now, tick, self.phase));
        for (_, socket) in self.sockets.iter_mut() {
            if let Socket::Tcp(socket) = socket {
                socket.set_ack_delay(Some(delay));
            }
        }
    }

    fn run_apps(&mut self, now: Instant) -> bool {
        let mut offers = Vec::new();
        let mut net = Net {
            interface: &mut self.interface,
            sockets: &mut self.sockets,
            udp: &mut self.udp,
            retired: &mut self.retired,
            options: &self.config.tcp,
            offers: &mut offers,
        };
        let mut moved = false;
        for id in self.apps.to_run(now) {
            let ran = self.apps.change(id, |app| {
                let was_over = app.is_over();
                let moved = app.run(&mut net, now);
                (moved, (app.is_over() && !was_over).then(|| app.result()))
            });
            let Some((did, result)) = ran else { continue };
            moved |= did;
            let offered = net.offers.drain(..);
            self.output
                .extend(offered.map(|offer| StackOutput::Offered(id, offer)));
            let finished = result.map(|result| StackOutput::Finished(id, result));
            self.output.extend(finished);
            let sent = std::iter::from_fn(|| net.udp.take_sent());
            self.queues.sent.extend(sent);
        }
        moved
    }

    /// Removes sockets that were given up and have closed.
    fn bury(&mut self) {
        let sockets = &mut self.sockets;
        self.retired.retain(|&handle| {
            let open = sockets.get::<tcp::Socket<'_>>(handle).state() != tcp::State::Closed;
            if !open {
                sockets.remove(handle);
            }
            open
        });
    }

    /// Hands smoltcp's packets to the Ethernet side; true if some of them returned to this host.
    fn take_packets(&mut self, now: Instant) -> bool {
        let mut looped = false;
        while let Some(mut frame) = self.queues.sent.pop_front() {
            if let Some(syn) = self.syn_towards(&frame) {
                syn.apply(&mut frame[ETHERNET_HEADER..]);
            }
            self.number(&mut frame);
            self.fragments.permit(&mut frame[ETHERNET_HEADER..], now);
            self.counters.packets += 1;
            if let Some(own) = self.link.send(frame, now) {
                self.counters.looped += 1;
                self.deliver(own, now);
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

    /// What changes in a segment with SYN that this host made: as its interface says.
    fn syn_towards(&self, frame: &[u8]) -> Option<Syn> {
        let interface = match self.syn.len() {
            1 => 0,
            _ => self.link.interface_of(frame)?,
        };
        self.syn.get(interface).copied().flatten()
    }

    /// Gives an IPv4 datagram its identification.
    fn number(&mut self, frame: &mut [u8]) {
        let mut packet = Ipv4Packet::new_unchecked(&mut frame[ETHERNET_HEADER..]);
        packet.set_ident(self.next_ident);
        packet.fill_checksum();
        self.next_ident = self.next_ident.wrapping_add(1);
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
        if !EthernetAddress(itf.mac).is_unicast() || itf.mac == [0; 6] {
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
    if config.tcp.receive_buffer == 0 || config.tcp.send_buffer == 0 {
        return Err(Refused("a TCP buffer holds at least one octet"));
    }
    if config.tcp.receive_buffer > 1 << 30 || config.tcp.send_buffer > 1 << 30 {
        return Err(Refused("a TCP buffer holds at most 1 GiB"));
    }
    if config.tcp.mss.is_some_and(|mss| mss < 48) {
        return Err(Refused("a TCP segment holds at least 48 octets"));
    }
    Ok(())
}

/// The receiving socket of a packet.
enum Transport {
    Datagram { to: u16 },
    Segment { from: IpEndpoint, to: u16 },
}

/// The ports of the packet in an Ethernet frame, if the frame contains a UDP datagram or a TCP segment.
fn transport(frame: &[u8]) -> Option<Transport> {
    let frame = EthernetFrame::new_checked(frame).ok()?;
    let packet = Ipv4Packet::new_checked(frame.payload()).ok()?;
    let payload = packet.payload();
    match packet.next_header() {
        IpProtocol::Udp => {
            let to = UdpPacket::new_checked(payload).ok()?.dst_port();
            Some(Transport::Datagram { to })
        }
        IpProtocol::Tcp => {
            let segment = TcpPacket::new_checked(payload).ok()?;
            let from = IpEndpoint::new(packet.src_addr().into(), segment.src_port());
            let to = segment.dst_port();
            Some(Transport::Segment { from, to })
        }
        _ => None,
    }
}

fn is_unicast(address: Ipv4Addr) -> bool {
    !address.is_unspecified() && !address.is_multicast() && !address.is_broadcast()
}

/// The phase of the host's clock of delayed acknowledgements. All hosts with one phase would acknowledge together.
fn phase(config: &StackConfig) -> Duration {
    match config.tcp.ack_delay {
        AckDelay::Tick(tick) => {
            let any = random::derived_seed(config.seed, &config.name, "ack-tick");
            let tick = u64::try_from(tick.as_micros()).unwrap_or(u64::MAX);
            Duration::from_micros(any % tick.max(1))
        }
        AckDelay::Never | AckDelay::After(_) => Duration::ZERO,
    }
}

fn hardware_ident(config: &StackConfig) -> u16 {
    random::derived_seed(config.seed, &config.name, "ip-ident") as u16
}

/// True if another host can have sent this packet to this one.
fn possible(packet: &[u8], own: &StackConfig) -> bool {
    Ipv4Packet::new_checked(packet).is_ok_and(|packet| {
        let source = packet.src_addr();
        is_unicast(source) && own.interfaces().all(|itf| itf.address != source)
    })
}

fn to_smoltcp(now: Instant) -> smoltcp::time::Instant {
    smoltcp::time::Instant::from_micros(i64::try_from(now.as_nanos() / 1000).unwrap_or(i64::MAX))
}
