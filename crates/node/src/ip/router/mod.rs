//! An embedded IPv4 router: Ethernet interfaces, static routes, ARP, and a forwarding rate.
//!
//! **Objects.** [`Router`] owns the routes (`super::routes`), one ARP table per interface ([`super::neighbours`]) and
//! the forwarding engine (`engine`). The node owns the router, passes it the frames that reach each interface (one per
//! emulated LAN) and sends the frames that it outputs. An MPOA server on the same node uses [`Router::lookup`] and
//! [`RouterInput::Resolve`], is told of [`RouterOutput::NeighbourChanged`] and [`RouterOutput::RoutesChanged`], and
//! passes packets from shortcuts that end here to the router with [`RouterInput::Inject`].
//!
//! Of IPv6 the router knows what that server needs beside a kernel router (`six`). It does not forward IPv6.
//!
//! **Path of a packet.** Interface → checks → own address? answered here; multicast, broadcast? dropped; else engine
//! (rate, queue) → time to live → route → MTU → ARP → interface. Drops are counted by reason at the interface where the
//! packet arrived.
//!
//! **Standards**: RFC 1812 (the parts above), 791, 792, 826. A packet above the MTU becomes fragments; with DF its
//! source is told (RFC 1191). **Not implemented**: IP options (forwarded unchanged), redirects, directed broadcasts
//! (off, as RFC 2644 asks), transport protocols of its own (packets to its addresses other than echo requests are
//! answered with protocol or port unreachable).

mod api;
mod engine;
mod six;

pub use super::neighbours::{ArpParams, ArpRanges};
pub use super::routes::{RouteResult, StaticRoute};
pub use engine::{Forwarding, QueueLimit};
pub use six::StaticRoute6;
pub(crate) use six::is_advertisement;

use super::arp::{self, Own};
use super::icmp::{self, Answer, Limiter};
use super::neighbours::{ArpEvent, NeighbourCounters, NeighbourView, Neighbours};
use super::packet::{self, Class, ETHERNET_HEADER, Frame};
use super::routes::Routes;
use aerostat_proto::discard::HEAD;
use aerostat_proto::{Instant, Machine, Refused, Trace};
use aerostat_wire::fragments::fragment;
use aerostat_wire::ipv4::{ICMP, UDP, decrement_ttl};
pub use api::{
    DropReason, InterfaceCounters, RouterConfig, RouterInput, RouterInterface, RouterOutput,
};
use engine::{Engine, Job};
use six::Six;
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};

/// The origin of a packet, for ICMP errors and counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    Interface(usize),
    Shortcut,
    /// This router made the packet.
    Own,
}

struct Port {
    config: RouterInterface,
    neighbours: Neighbours<Job>,
    counters: InterfaceCounters,
}

impl Port {
    fn own(&self) -> Own {
        Own {
            mac: self.config.mac,
            address: self.config.address,
            prefix: self.config.prefix,
        }
    }
}

/// An embedded router.
pub struct Router {
    ports: Vec<Port>,
    routes: Routes,
    /// Addresses, routes and neighbours of IPv6.
    six: Six,
    engine: Engine,
    limiter: Limiter,
    shortcut: InterfaceCounters,
    own: InterfaceCounters,
    next_ident: u16,
    in_arp_events: bool,
    output: VecDeque<RouterOutput>,
    /// Heads of packets that were dropped.
    discards: VecDeque<(DropReason, Vec<u8>)>,
}

impl Router {
    /// A router.
    ///
    /// # Errors
    /// If the interfaces or routes are not valid.
    pub fn new(config: RouterConfig) -> Result<Self, Refused> {
        for interface in &config.interfaces {
            if !packet::is_station(interface.mac) {
                return Err(Refused("the hardware address of an interface is unicast"));
            }
            if !(576..=65_535).contains(&interface.mtu) {
                return Err(Refused("the MTU is between 576 and 65535 octets"));
            }
        }
        let routes = Routes::new(&config.interfaces, &config.routes)?;
        let engine = Engine::new(config.forwarding, config.queue)?;
        let arp = config.arp;
        let ports = config.interfaces.into_iter().map(|config| Port {
            config,
            neighbours: Neighbours::new(arp),
            counters: InterfaceCounters::default(),
        });
        let ports: Vec<Port> = ports.collect();
        Ok(Self {
            six: Six::new(arp, ports.len()),
            ports,
            routes,
            engine,
            limiter: Limiter::default(),
            shortcut: InterfaceCounters::default(),
            own: InterfaceCounters::default(),
            next_ident: 1,
            in_arp_events: false,
            output: VecDeque::new(),
            discards: VecDeque::new(),
        })
    }

    /// The route of a packet for `destination`.
    #[must_use]
    pub fn lookup(&self, destination: Ipv4Addr) -> RouteResult {
        self.routes.lookup(destination)
    }

    /// True if there are routes to `destination`, but no interface of theirs has a link at present.
    #[must_use]
    pub fn is_cut_off(&self, destination: Ipv4Addr) -> bool {
        self.routes.is_cut_off(destination)
    }

    /// The shortest prefix around `destination`, 8..=32, whose addresses all take its route.
    #[must_use]
    pub fn covers(&self, destination: Ipv4Addr) -> u8 {
        self.routes.covers(destination)
    }

    /// The interfaces, in order of their numbers.
    pub fn interfaces(&self) -> impl Iterator<Item = (&RouterInterface, &InterfaceCounters)> {
        self.ports.iter().map(|port| (&port.config, &port.counters))
    }

    /// Counters of packets that came by [`RouterInput::Inject`].
    #[must_use]
    pub fn shortcut_counters(&self) -> &InterfaceCounters {
        &self.shortcut
    }

    /// The known neighbours of an interface.
    pub fn neighbours(&self, interface: usize) -> impl Iterator<Item = (Ipv4Addr, [u8; 6])> {
        self.ports
            .get(interface)
            .into_iter()
            .flat_map(|port| port.neighbours.known())
    }

    /// The table of neighbours of an interface, and its counters.
    pub fn arp(&self, interface: usize) -> Option<(Vec<NeighbourView>, NeighbourCounters)> {
        let neighbours = &self.ports.get(interface)?.neighbours;
        Some((neighbours.views().collect(), neighbours.counters()))
    }

    /// Frames that wait for the forwarding engine, or for ARP.
    pub fn held(&self) -> impl Iterator<Item = &[u8]> {
        let waiting = self.ports.iter().flat_map(|port| port.neighbours.held());
        let jobs = self.engine.jobs().chain(waiting);
        // The room for an Ethernet header comes first; packets from a shortcut or over ATM have no header in it.
        jobs.filter_map(|job| job.frame.get(ETHERNET_HEADER..))
    }

    /// The next packet that was dropped, or its head, with the reason.
    pub fn take_discard(&mut self) -> Option<(DropReason, Vec<u8>)> {
        self.discards.pop_front()
    }

    /// Drops a packet that has room for an Ethernet header in front.
    fn drop_frame(&mut self, origin: Origin, reason: DropReason, frame: &[u8]) {
        self.drop_packet(origin, reason);
        let packet = frame.get(ETHERNET_HEADER..).unwrap_or_default();
        let head = packet.get(..HEAD).unwrap_or(packet).to_vec();
        self.discards.push_back((reason, head));
    }

    fn drop_packet(&mut self, origin: Origin, reason: DropReason) {
        *self.counters(origin).dropped.entry(reason).or_default() += 1;
    }

    fn counters(&mut self, origin: Origin) -> &mut InterfaceCounters {
        match origin {
            Origin::Interface(interface) => &mut self.ports[interface].counters,
            Origin::Shortcut => &mut self.shortcut,
            Origin::Own => &mut self.own,
        }
    }

    fn frame_in(&mut self, interface: usize, bytes: &[u8], now: Instant) {
        let origin = Origin::Interface(interface);
        let port = &mut self.ports[interface];
        let Some(frame) = Frame::of(bytes) else {
            return self.drop_frame(origin, DropReason::Malformed, bytes);
        };
        let to = frame.to;
        if !packet::is_group(to) && to != port.config.mac {
            // The frame is for another station on the emulated LAN.
            return;
        }
        port.counters.in_frames += 1;
        port.counters.in_octets += bytes.len() as u64;
        match frame.kind {
            packet::ARP => self.arp_in(interface, frame.payload, now),
            packet::IPV4 if packet::is_group(to) => {
                self.drop_frame(origin, DropReason::Multicast, bytes);
            }
            packet::IPV4 => self.packet_in(origin, bytes.to_vec(), now),
            packet::IPV6 if is_advertisement(bytes) => {
                self.advertised(interface, bytes, now);
            }
            _ => self.drop_frame(origin, DropReason::NotIp, bytes),
        }
    }

    /// Handles a packet that has room for an Ethernet header in front.
    fn packet_in(&mut self, origin: Origin, mut frame: Vec<u8>, now: Instant) {
        let Some(destination) = packet::check(&mut frame) else {
            return self.drop_frame(origin, DropReason::Malformed, &frame);
        };
        match self.routes.lookup(destination) {
            RouteResult::Local { .. } => self.for_us(origin, &frame, now),
            RouteResult::Broadcast | RouteResult::Multicast => {
                self.drop_frame(origin, DropReason::Multicast, &frame);
            }
            _ if packet::class(destination) == Class::Never => {
                self.drop_frame(origin, DropReason::Malformed, &frame);
            }
            _ => {
                if let Err(job) = self.engine.offer(Job { frame, origin }, now) {
                    self.drop_frame(origin, DropReason::QueueFull, &job.frame);
                }
            }
        }
    }

    /// Handles a packet for one of the router's own addresses.
    fn for_us(&mut self, origin: Origin, frame: &[u8], now: Instant) {
        // The packet was checked on arrival.
        let Some(packet) = packet::view(frame) else {
            return;
        };
        let from = packet.destination();
        if let Some(reply) = icmp::echo_reply(&packet, from) {
            return self.send_own(reply, now);
        }
        let answer = match packet.protocol() {
            ICMP => return,
            UDP => Answer::PortUnreachable,
            _ => Answer::ProtocolUnreachable,
        };
        self.complain(origin, frame, answer, Some(from), now);
    }

    /// Forwards a packet from the engine to its outgoing interface.
    fn forward(&mut self, job: Job, now: Instant) {
        let Job { mut frame, origin } = job;
        // The packet was checked on arrival.
        let Some(packet) = packet::view(&frame) else {
            return;
        };
        if packet.ttl() <= 1 {
            self.drop_frame(origin, DropReason::TimeToLive, &frame);
            return self.complain(origin, &frame, Answer::TimeExceeded, None, now);
        }
        let destination = packet.destination();
        let Some((interface, next_hop)) = self.routes.lookup(destination).next_hop(destination)
        else {
            self.drop_frame(origin, DropReason::NoRoute, &frame);
            return self.complain(origin, &frame, Answer::NetworkUnreachable, None, now);
        };
        let mtu = self.ports[interface].config.mtu;
        let fits = usize::from(packet.total_len()) <= mtu;
        if !fits && packet::dont_fragment(packet.packet()) {
            self.drop_frame(origin, DropReason::TooBig, &frame);
            return self.complain(origin, &frame, Answer::TooBig(mtu), None, now);
        }
        let forwarded = decrement_ttl(&mut frame[ETHERNET_HEADER..]);
        debug_assert!(forwarded, "its time to live is above 1");
        if fits {
            return self.send(origin, interface, next_hop, frame, now);
        }
        let most = u16::try_from(mtu).unwrap_or(u16::MAX);
        let Some(pieces) = fragment(&frame[ETHERNET_HEADER..], most) else {
            return self.drop_frame(origin, DropReason::TooBig, &frame);
        };
        for piece in pieces {
            let frame = [&[0; ETHERNET_HEADER][..], &piece].concat();
            self.send(origin, interface, next_hop, frame, now);
        }
    }

    /// Sends a packet to a neighbour, after ARP if necessary.
    fn send(&mut self, from: Origin, itf: usize, hop: Ipv4Addr, frame: Vec<u8>, now: Instant) {
        let neighbours = &mut self.ports[itf].neighbours;
        if let Some(mac) = neighbours.lookup(hop) {
            return self.transmit(from, itf, mac, frame);
        }
        let job = Job {
            frame,
            origin: from,
        };
        if let Err(job) = neighbours.wait(hop, job, now) {
            self.drop_frame(from, DropReason::ArpQueueFull, &job.frame);
        }
        self.arp_events(now);
    }

    fn transmit(&mut self, origin: Origin, interface: usize, mac: [u8; 6], mut frame: Vec<u8>) {
        let port = &mut self.ports[interface];
        packet::address(&mut frame, mac, port.config.mac, packet::IPV4);
        port.counters.out_frames += 1;
        port.counters.out_octets += frame.len() as u64;
        if origin != Origin::Own {
            port.counters.forwarded_packets += 1;
            port.counters.forwarded_octets += (frame.len() - ETHERNET_HEADER) as u64;
        }
        self.output.push_back(RouterOutput::Frame {
            interface,
            bytes: frame,
        });
    }

    /// Sends a packet that this router made. Such packets bypass the engine.
    fn send_own(&mut self, mut frame: Vec<u8>, now: Instant) {
        // Packets of a router may be fragmented.
        frame[ETHERNET_HEADER + 6] = 0;
        packet::number(&mut frame[ETHERNET_HEADER..], self.next_ident);
        self.next_ident = self.next_ident.wrapping_add(1);
        let Some(destination) = packet::view(&frame).map(|packet| packet.destination()) else {
            return;
        };
        if let Some((itf, next_hop)) = self.routes.lookup(destination).next_hop(destination) {
            self.send(Origin::Own, itf, next_hop, frame, now);
        }
    }

    /// Sends an ICMP error to the source of a packet, where RFC 1812 §4.3.2.7 allows that. `from` is the source address
    /// of the error; `None` means the address of the interface towards the source (also for a packet from a shortcut).
    fn complain(
        &mut self,
        origin: Origin,
        frame: &[u8],
        answer: Answer,
        from: Option<Ipv4Addr>,
        now: Instant,
    ) {
        let Some(packet) = packet::view(frame) else {
            return;
        };
        if origin == Origin::Own || !icmp::may_complain(&packet) || !self.limiter.allows(now) {
            return;
        }
        let source = packet.source();
        let incoming = match origin {
            Origin::Interface(interface) => Some(interface),
            Origin::Shortcut | Origin::Own => None,
        };
        let outgoing = || {
            self.routes
                .lookup(source)
                .next_hop(source)
                .map(|(itf, _)| itf)
        };
        let from = from.or_else(|| {
            incoming
                .or_else(outgoing)
                .map(|interface| self.ports[interface].config.address)
        });
        if let Some(from) = from {
            self.send_own(icmp::error(&packet, answer, from), now);
        }
    }

    fn arp_in(&mut self, interface: usize, payload: &[u8], now: Instant) {
        let port = &mut self.ports[interface];
        let own = port.own();
        match arp::hear(&mut port.neighbours, own, payload, now) {
            Ok(Some(bytes)) => {
                port.counters.out_frames += 1;
                port.counters.out_octets += bytes.len() as u64;
                self.output
                    .push_back(RouterOutput::Frame { interface, bytes });
            }
            Ok(None) => {}
            Err(arp::Impossible) => {
                self.drop_packet(Origin::Interface(interface), DropReason::Malformed);
            }
        }
        self.arp_events(now);
    }

    /// Handles events of the ARP tables. Further events that arise are queued and handled here, too, without recursion.
    fn arp_events(&mut self, now: Instant) {
        if core::mem::replace(&mut self.in_arp_events, true) {
            return;
        }
        let next = |port: (usize, &mut Port)| Some((port.0, port.1.neighbours.poll_event()?));
        while let Some((interface, event)) = self.ports.iter_mut().enumerate().find_map(next) {
            self.arp_event(interface, event, now);
        }
        self.in_arp_events = false;
    }

    fn arp_event(&mut self, interface: usize, event: ArpEvent<Job>, now: Instant) {
        let output = match event {
            ArpEvent::Ask { address, known } => {
                let port = &mut self.ports[interface];
                let bytes = arp::request(port.own(), known, address);
                port.counters.out_frames += 1;
                port.counters.out_octets += bytes.len() as u64;
                RouterOutput::Frame { interface, bytes }
            }
            ArpEvent::Release {
                job,
                mac: Some(mac),
            } => {
                return self.transmit(job.origin, interface, mac, job.frame);
            }
            ArpEvent::Release { job, mac: None } => {
                self.drop_frame(job.origin, DropReason::NoNeighbour, &job.frame);
                let answer = Answer::HostUnreachable;
                return self.complain(job.origin, &job.frame, answer, None, now);
            }
            ArpEvent::Failed { address } => {
                let name = &self.ports[interface].config.name;
                let trace = Trace::detail(
                    "router.arp.failed",
                    format!("{address} on {name} does not answer"),
                )
                .with("address", address)
                .with("interface", name);
                RouterOutput::Trace(trace)
            }
            ArpEvent::Overflow(job) => {
                return self.drop_frame(job.origin, DropReason::ArpQueueFull, &job.frame);
            }
            other => return self.output.extend(RouterOutput::news(other, interface)),
        };
        self.output.push_back(output);
    }

    fn routes_changed(&mut self, changed: bool) {
        if changed {
            self.output.push_back(RouterOutput::RoutesChanged);
        }
    }

    fn run_engine(&mut self, now: Instant) {
        while let Some(job) = self.engine.take(now) {
            self.forward(job, now);
        }
    }

    fn resolve(&mut self, token: u64, interface: usize, address: IpAddr, now: Instant) {
        match address {
            IpAddr::V4(address) => {
                self.ports[interface].neighbours.ask(token, address, now);
                self.arp_events(now);
            }
            IpAddr::V6(address) => self.solicit(token, interface, address, now),
        }
    }
}

impl Machine for Router {
    type Input<'a> = RouterInput<'a>;
    type Output = RouterOutput;
    type Refusal = Refused;

    fn handle_input(&mut self, input: RouterInput<'_>, now: Instant) -> Result<(), Refused> {
        match input {
            RouterInput::Frame { interface, .. }
            | RouterInput::Resolve { interface, .. }
            | RouterInput::Link { interface, .. }
                if interface >= self.ports.len() =>
            {
                return Err(Refused("the router has no such interface"));
            }
            RouterInput::Frame { interface, bytes } => self.frame_in(interface, bytes, now),
            RouterInput::Inject(bytes) => {
                self.shortcut.in_frames += 1;
                self.shortcut.in_octets += bytes.len() as u64;
                let mut frame = vec![0; ETHERNET_HEADER];
                frame.extend_from_slice(bytes);
                self.packet_in(Origin::Shortcut, frame, now);
            }
            RouterInput::Resolve {
                token,
                interface,
                address,
            } => {
                self.resolve(token, interface, address, now);
            }
            RouterInput::Link { interface, up } => {
                let changed = self.routes.set_link(interface, up);
                self.routes_changed(changed);
            }
            RouterInput::Routes(routes) => {
                let interfaces: Vec<_> = self.ports.iter().map(|p| p.config.clone()).collect();
                let changed = self.routes.replace(&interfaces, routes)?;
                self.routes_changed(changed);
            }
        }
        self.run_engine(now);
        Ok(())
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.run_engine(now);
        for interface in 0..self.ports.len() {
            self.ports[interface].neighbours.timeout(now);
        }
        self.arp_events(now);
        self.six_timeout(now);
    }

    fn poll_output(&mut self) -> Option<RouterOutput> {
        self.output.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let arp = self
            .ports
            .iter()
            .filter_map(|port| port.neighbours.deadline())
            .min();
        [self.engine.deadline(), arp, self.six.deadline()]
            .into_iter()
            .flatten()
            .min()
    }
}
